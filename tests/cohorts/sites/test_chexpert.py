"""CheXpert: frontal images, labels, unknown sexes and ages, race from two places, insurance, reports."""

import importlib.util
from collections import Counter

import pandas as pd
import pytest
from chest_sources import (
    LABELS,
    SYNTHETIC,
    by_image,
    check_form,
    codes,
    left_out,
    needs_synthetic,
    read_text,
    site_files,
    tally,
    write_table,
)

from frame.cohorts.adjudicated import installed_table
from frame.cohorts.sites.chexpert import read_reports, read_rows
from frame.errors import InputError

needs_package = pytest.mark.skipif(
    importlib.util.find_spec("torchxrayvision") is None,
    reason="the package with the CheXpert table is not installed (make env installs it)",
)


def image(path="train/patient00001/study1/view1_frontal.jpg", folder="CheXpert-v1.0/", **cells):
    named = {name.replace("_", " "): text for name, text in cells.items()}
    row = {
        "Path": folder + path,
        "Sex": "Female",
        "Age": "68",
        "Frontal/Lateral": "Frontal",
        "AP/PA": "AP",
        "No Finding": "",
        **dict.fromkeys(LABELS, ""),
    }
    row.update({name: named.pop(name) for name in list(named) if name in row})
    row.update({"AP/PA": named.pop("view", row["AP/PA"]), "Frontal/Lateral": named.pop("side", "Frontal")})
    assert not named
    return row


def demographics(patient="patient00001", race="White", ethnicity="Non-Hispanic/Non-Latino"):
    return {
        "PATIENT": patient,
        "GENDER": "Female",
        "AGE_AT_CXR": "68",
        "PRIMARY_RACE": race,
        "ETHNICITY": ethnicity,
    }


def plus(path="train/patient00001/study1/view1_frontal.jpg", **cells):
    return {
        "path_to_image": path,
        "section_findings": "",
        "section_impression": "",
        "race": "",
        "ethnicity": "",
        "insurance_type": "",
        **cells,
    }


@pytest.fixture
def release(tmp_path):
    def written(train, root=tmp_path, images=False, **tables):
        paths = {"train": write_table(tmp_path / "train.csv", train)}
        paths |= {key: write_table(tmp_path / f"{key}.csv", rows) for key, rows in tables.items()}
        return site_files("chexpert", paths, root, images)

    return written


def test_one_image_in_full(release):
    rows = read_rows(
        release(
            [image(Edema="1.0", Fracture="0.0", Pneumonia="-1.0")],
            images=True,
            demographics=[demographics(race="White or Caucasian")],
            plus=[plus(insurance_type="Private Insurance", race="Asian")],
        )
    )
    check_form(rows)
    (row,) = rows.table.to_dict("records")
    assert row["image_id"] == "train/patient00001/study1/view1_frontal"
    assert row["patient_id"] == row["subject_id"] == "patient00001"
    assert (row["subject_kind"], row["study_id"]) == ("patient", "patient00001/study1")
    assert row["released_split"] == "train"
    assert (row["age"], row["sex"], row["view"]) == (68.0, "female", "AP")
    assert (row["race_recorded"], row["insurance_recorded"]) == ("White", "Private")
    found = codes(row)
    assert (found.pop("edema"), found.pop("fracture"), found.pop("pneumonia")) == (1, 0, -1)
    assert set(found.values()) == {-2}


def test_lateral_images_are_left_out_and_a_frontal_one_marked_so_has_no_view(release):
    rows = read_rows(
        release(
            [
                image("train/patient00001/study1/view1_frontal.jpg", view="PA"),
                image("train/patient00001/study1/view2_lateral.jpg", view="", side="Lateral"),
                image("train/patient00002/study1/view1_frontal.jpg", view="LL"),
                image("train/patient00003/study1/view1_frontal.jpg", view="", side=""),
            ]
        )
    )
    assert list(rows.table["view"]) == ["PA", "unknown"]
    assert left_out(rows) == {"lateral view": 1, "neither frontal nor lateral": 1}
    assert tally(rows, "view") == {"PA": ("PA", 1), "LL": ("unknown", 1)}


def test_unknown_sex_and_age_0_are_missing_and_counted(release):
    rows = read_rows(
        release(
            [
                image("train/patient00001/study1/view1_frontal.jpg", Sex="Unknown", Age="0"),
                image("train/patient00002/study1/view1_frontal.jpg", Sex="Male", Age="18"),
            ]
        )
    )
    assert list(rows.table["sex"].fillna("missing")) == ["missing", "male"]
    assert list(rows.table["age"].fillna(-1)) == [-1, 18]
    assert tally(rows, "age")["0 years, which stands for unknown"] == (None, 1)
    assert tally(rows, "sex")["Unknown"] == (None, 1)


def test_validation_images_are_of_the_released_validation_split(release):
    rows = read_rows(release([image()], valid=[image("valid/patient64541/study1/view1_frontal.jpg")]))
    assert list(rows.table["released_split"]) == ["train", "validation"]
    assert list(rows.table["subject_id"]) == ["patient00001", "patient64541"]


@pytest.mark.parametrize(
    ("race", "ethnicity", "expected"),
    [
        ("White or Caucasian", "", "White"),
        ("White, non-Hispanic", "Non-Hispanic/Non-Latino", "White"),
        ("White, Hispanic", "Hispanic/Latino", "White"),
        ("Other, Hispanic", "Hispanic/Latino", "Hispanic or Latino"),
        ("Other", "Hispanic/Latino", "Hispanic or Latino"),
        ("Other", "Non-Hispanic/Non-Latino", "Other"),
        ("Asian - Historical Conv", "", "Asian"),
        ("Pacific Islander, non-Hispanic", "", "Other"),
        ("Race and Ethnicity Unknown", "", None),
        ("Patient Refused", "", None),
        ("", "", None),
    ],
)
def test_race_of_the_sheet(release, race, ethnicity, expected):
    rows = read_rows(release([image()], demographics=[demographics(race=race, ethnicity=ethnicity)]))
    (found,) = rows.table["race_recorded"]
    assert pd.isna(found) if expected is None else found == expected


def test_race_of_chexpert_plus_where_there_is_no_sheet(release):
    rows = read_rows(
        release(
            [image(), image("train/patient00002/study1/view1_frontal.jpg")],
            plus=[
                plus(race="Black or African American"),
                plus("train/patient00009/study1/view1_frontal.jpg"),
            ],
        )
    )
    assert list(rows.table["race_recorded"].fillna("missing")) == ["Black", "missing"]
    assert tally(rows, "image") == {"not in CheXpert Plus": (None, 1)}


def test_patients_whose_rows_differ_get_the_most_frequent_race(release):
    sheet = [
        demographics(race="White"),
        demographics(race="Asian"),
        demographics(race="Asian, non-Hispanic"),
        demographics("patient00002", race="Unknown"),
        demographics("patient00002", race="Black, non-Hispanic"),
    ]
    rows = read_rows(
        release(
            [
                image(),
                image("train/patient00002/study1/view1_frontal.jpg"),
                image("train/patient00003/study1/view1_frontal.jpg"),
            ],
            demographics=sheet,
        )
    )
    assert list(rows.table["race_recorded"].fillna("missing")) == ["Asian", "Black", "missing"]
    told = tally(rows, "race")
    assert told["rows of the demographics sheet that differ (1 patients)"] == (
        "the level most often recorded",
        1,
    )
    assert tally(rows, "patient") == {"not in the demographics sheet": (None, 1)}


def test_without_sheet_and_plus_race_and_insurance_are_missing(release):
    rows = read_rows(release([image()]))
    assert rows.table[["race_recorded", "insurance_recorded"]].isna().all(axis=None)
    assert tally(rows, "race") == {"(blank)": (None, 1)}


def test_chexpert_plus_is_joined_whatever_its_order_and_suffix(release):
    paths = [f"train/patient0000{at}/study1/view1_frontal" for at in (1, 2, 3)]
    rows = read_rows(
        release(
            [image(f"{path}.jpg") for path in paths],
            plus=[
                plus(f"{path}.png", insurance_type=text)
                for path, text in zip(paths[::-1], ["Medicare", "Medicaid", "Private Insurance"], strict=True)
            ],
        )
    )
    assert list(rows.table["insurance_recorded"]) == ["Private", "Medicaid", "Medicare"]


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("beside", "train/patient00001/study1/view1_frontal.jpg"),
        ("above", "CheXpert-v1.0/train/patient00001/study1/view1_frontal.jpg"),
        ("elsewhere", "train/patient00001/study1/view1_frontal.jpg"),
        ("other name", "small/train/patient00001/study1/view1_frontal.jpg"),
    ],
)
def test_image_files_lie_beside_the_table_or_below_the_named_folder(tmp_path, layout, expected):
    root = tmp_path / "root"
    (root / "CheXpert-v1.0").mkdir(parents=True) if layout == "above" else root.mkdir()
    table = {
        "beside": root / "train.csv",
        "above": root / "train.csv",
        "elsewhere": tmp_path / "tables" / "train.csv",
        "other name": root / "small" / "train.csv",
    }[layout]
    write_table(table, [image()])
    rows = read_rows(site_files("chexpert", {"train": table}, root, images=True))
    assert list(rows.table["file"]) == [expected]
    assert read_rows(site_files("chexpert", {"train": table}, root)).table["file"].isna().all()


@pytest.mark.parametrize("folder", ["", "CheXpert-v1.0/", "CheXpert-v1.0-small/"])
def test_the_folder_in_front_of_a_path_is_no_part_of_the_id(release, folder):
    rows = read_rows(release([image(folder=folder)]))
    assert list(rows.table["image_id"]) == ["train/patient00001/study1/view1_frontal"]


def test_a_spreadsheet_is_refused_with_what_to_do(release, tmp_path):
    files = release([image()])
    sheet = tmp_path / "CHEXPERT DEMO.xlsx"
    sheet.write_bytes(b"PK")
    with pytest.raises(InputError) as error:
        read_rows(site_files("chexpert", {**files.paths, "demographics": sheet}))
    assert str(error.value) == (
        "CHEXPERT DEMO.xlsx is a spreadsheet, which is not read; save it as CSV under the name "
        "CHEXPERT DEMO.csv (in a spreadsheet program, or with pandas.read_excel and openpyxl) and take "
        "the spreadsheet away."
    )


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (
            {"train": [image("patient00001.jpg")]},
            "train.csv: 1 of 1 image paths are not like "
            "CheXpert-v1.0/train/patient<n>/study<n>/view<n>_frontal.jpg; the table must be as released.",
        ),
        (
            {"train": [image(), image()]},
            "train.csv: 1 of 2 rows have the image of an earlier row; one row each is needed.",
        ),
        (
            {"train": [image(Edema="yes")]},
            "The labels of chexpert hold 1 cells with another text ('yes') in column Edema; allowed is "
            "1.0, 0.0, -1.0 or blank.",
        ),
        (
            {"train": [image(side="Lateral")]},
            "No image of chexpert is marked Frontal, of 1; one is needed.",
        ),
        (
            {"train": [image()], "plus": [plus(), plus()]},
            "plus.csv: 1 of 2 rows have the image of an earlier row; one row each is needed.",
        ),
    ],
    ids=["path", "twice", "label", "only-lateral", "plus-twice"],
)
def test_refusals(release, tables, message):
    with pytest.raises(InputError) as error:
        read_rows(release(**tables))
    assert str(error.value) == message


def test_reports_come_from_chexpert_plus(release):
    files = release(
        [image()],
        plus=[
            plus(section_findings="No effusion.\n Clear lungs.", section_impression="1. Normal."),
            plus("train/patient00002/study1/view1_frontal.jpg", section_impression="2. Edema."),
        ],
    )
    table = pd.DataFrame(
        {
            "image_id": [
                "chexpert:train/patient00002/study1/view1_frontal",
                "chexpert:train/patient00003/study1/view1_frontal",
                "chexpert:train/patient00001/study1/view1_frontal",
            ]
        },
        dtype="str",
    )
    reports = read_reports(files, table)
    assert list(reports["image_id"]) == list(table["image_id"])
    assert list(reports["findings"]) == ["", "", "No effusion. Clear lungs."]
    assert list(reports["impression"]) == ["2. Edema.", "", "1. Normal."]


def test_reports_need_chexpert_plus(release):
    with pytest.raises(InputError, match="Source chexpert needs its file 'plus'; found: train"):
        read_reports(release([image()]), pd.DataFrame({"image_id": ["a"]}, dtype="str"))


@needs_synthetic
def test_synthetic_release():
    paths = {
        "train": SYNTHETIC / "chexpert_train.csv",
        "demographics": SYNTHETIC / "chexpert_demo.csv",
        "plus": SYNTHETIC / "df_chexpert_plus_240401.csv",
    }
    rows = read_rows(site_files("chexpert", paths))
    check_form(rows)
    raw = read_text(paths["train"])
    frontal = {
        row["Path"].partition("/")[2].removesuffix(".jpg"): row
        for row in raw
        if row["Frontal/Lateral"] == "Frontal"
    }
    found = by_image(rows)
    assert set(found) == set(frontal)
    assert left_out(rows) == {"lateral view": len(raw) - len(frontal)}
    expected = {"1.0": 1, "0.0": 0, "-1.0": -1, "": -2}
    for name, row in frontal.items():
        for label in LABELS:
            assert found[name][label.lower().replace(" ", "_")] == expected[row[label]]
        assert found[name]["sex"] == row["Sex"].lower() or row["Sex"] == "Unknown"
    told = {row["path_to_image"].removesuffix(".jpg"): row for row in read_text(paths["plus"])}
    words = {"Medicare": "Medicare", "Medicaid": "Medicaid", "Private Insurance": "Private"}
    for name, row in found.items():
        insurance = words.get(told[name]["insurance_type"])
        assert row["insurance_recorded"] == insurance if insurance else pd.isna(row["insurance_recorded"])
    reports = read_reports(site_files("chexpert", paths), rows.table)
    for image_id, findings in zip(reports["image_id"], reports["findings"], strict=True):
        assert findings == " ".join(told[image_id]["section_findings"].split())


@needs_package
def test_the_released_training_table():
    path = installed_table("chexpert_train.csv.gz")
    rows = read_rows(site_files("chexpert", {"train": path}))
    raw = [row for row in read_text(path) if row["Frontal/Lateral"] == "Frontal"]
    assert len(rows.table) == len(raw) == 191_027
    assert rows.table["subject_id"].nunique() == 64_534
    assert left_out(rows) == {"lateral view": 32_387}
    assert Counter(rows.table["view"]) == {"AP": 161_590, "PA": 29_420, "unknown": 17}
    assert (rows.table["pleural_effusion"] == 1).sum() == sum(row["Pleural Effusion"] == "1.0" for row in raw)
    assert (rows.table["fracture"] == -2).sum() == sum(row["Fracture"] == "" for row in raw)
    assert rows.table["age"].isna().sum() == sum(row["Age"] == "0" for row in raw)

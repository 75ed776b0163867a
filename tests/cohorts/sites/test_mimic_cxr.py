"""MIMIC-CXR-JPG with MIMIC-IV: views, labels, ages at the study, race and insurance of several admissions."""

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

from frame.cohorts.sites.mimic_cxr import read_reports, read_rows
from frame.errors import InputError


def image(name, subject="10000001", study="50000001", view="AP", date="21500315"):
    return {
        "dicom_id": name,
        "subject_id": subject,
        "study_id": study,
        "PerformedProcedureStepDescription": "CHEST (PORTABLE AP)",
        "ViewPosition": view,
        "StudyDate": date,
        "StudyTime": "101500.123",
    }


def labels(subject="10000001", study="50000001", **answers):
    found = {name.replace("_", " "): text for name, text in answers.items()}
    return {"subject_id": subject, "study_id": study, **dict.fromkeys(LABELS, ""), "No Finding": "", **found}


def patient(subject="10000001", gender="F", age="60", year="2150"):
    return {
        "subject_id": subject,
        "gender": gender,
        "anchor_age": age,
        "anchor_year": year,
        "anchor_year_group": "2011 - 2013",
        "dod": "",
    }


def admission(stay, day, subject="10000001", race="WHITE", insurance="Medicare"):
    return {
        "subject_id": subject,
        "hadm_id": stay,
        "admittime": f"{day} 10:00:00",
        "insurance": insurance,
        "race": race,
    }


@pytest.fixture
def release(tmp_path):
    """Write the five tables, each replaceable; gives the files."""

    def written(suffix=".csv", **tables):
        images = tables.get("metadata", [image("a")])
        content = {
            "metadata": images,
            "labels": tables.get("labels", [labels()]),
            "split": tables.get(
                "split",
                [
                    {"dicom_id": row["dicom_id"], "study_id": row["study_id"], "split": "train"}
                    for row in images
                ],
            ),
            "patients": tables.get("patients", [patient()]),
            "admissions": tables.get("admissions", [admission("20000001", "2150-03-01")]),
        }
        paths = {key: write_table(tmp_path / f"{key}{suffix}", rows) for key, rows in content.items()}
        return site_files("mimic_cxr", paths, tmp_path, images=True)

    return written


def test_one_frontal_image_in_full(release):
    rows = read_rows(release(labels=[labels(Edema="1.0", Pneumonia="-1.0", Fracture="0.0")]))
    check_form(rows)
    (row,) = rows.table.to_dict("records")
    assert row["image_id"] == "a"
    assert row["patient_id"] == row["subject_id"] == "10000001"
    assert (row["subject_kind"], row["study_id"], row["released_split"]) == ("patient", "50000001", "train")
    assert row["file"] == "files/p10/p10000001/s50000001/a.jpg"
    assert (row["age"], row["sex"], row["view"]) == (60.0, "female", "AP")
    assert (row["race_recorded"], row["insurance_recorded"]) == ("White", "Medicare")
    assert pd.isna(row["ethnicity"])
    found = codes(row)
    assert (found.pop("edema"), found.pop("pneumonia"), found.pop("fracture")) == (1, -1, 0)
    assert set(found.values()) == {-2}
    assert len(found) == 10


def test_lateral_and_unrecorded_views_are_left_out_and_counted(release):
    views = ["AP", "PA", "LATERAL", "LATERAL", "LL", "", "AP AXIAL", "PA LLD"]
    rows = read_rows(release(metadata=[image(f"i{at}", view=view) for at, view in enumerate(views)]))
    assert list(rows.table["view"]) == ["AP", "PA", "AP", "PA"]
    assert left_out(rows) == {"no view recorded": 1, "view LATERAL": 2, "view LL": 1}
    assert len(rows.table) + rows.left_out["n_images"].sum() == len(views)
    assert "LATERAL" not in tally(rows, "view")


def test_no_frontal_image_is_an_error(release):
    message = r"^No frontal chest radiograph is left in ViewPosition \(1 images: view LL\)\.$"
    with pytest.raises(InputError, match=message):
        read_rows(release(metadata=[image("a", view="LL")]))


@pytest.mark.parametrize(
    ("anchor", "date", "expected"),
    [
        (("60", "2150"), "21531231", 63.0),
        (("60", "2150"), "21480101", 58.0),
        (("91", "2150"), "21550101", 91.0),
        (("91", "2150"), "21450101", 91.0),
        (("90", "2150"), "21520101", 92.0),
        (("18", "2150"), "21300101", None),
        (("60", "2010"), "21500101", None),
        (("", "2150"), "21500101", None),
    ],
    ids=["later", "earlier", "over-89-later", "over-89-earlier", "90", "below-0", "above-120", "blank"],
)
def test_age_at_the_study(release, anchor, date, expected):
    rows = read_rows(
        release(metadata=[image("a", date=date)], patients=[patient(age=anchor[0], year=anchor[1])])
    )
    (age,) = rows.table["age"]
    assert pd.isna(age) if expected is None else age == expected


def test_what_stands_for_over_89_is_counted(release):
    rows = read_rows(release(metadata=[image("a"), image("b")], patients=[patient(age="91")]))
    assert tally(rows, "age")["anchor age 91, which stands for over 89"] == ("91 years", 2)


def test_a_patient_absent_from_mimic_iv_is_kept_and_counted(release):
    images = [image("a"), image("b", subject="10000002", study="50000002")]
    rows = read_rows(release(metadata=images, labels=[labels()]))
    row = by_image(rows)["b"]
    assert all(pd.isna(row[name]) for name in ("age", "sex", "race_recorded", "insurance_recorded"))
    assert tally(rows, "patient") == {
        "not in the table of patients": (None, 1),
        "without an admission": (None, 1),
    }


def test_a_study_without_labels_is_blank_and_counted(release):
    images = [image("a"), image("b", study="50000009")]
    rows = read_rows(release(metadata=images))
    assert set(codes(by_image(rows)["b"]).values()) == {-2}
    assert tally(rows, "label")["study without a row of labels"] == ("blank", 1)
    assert tally(rows, "label")["Edema: blank"] == ("edema", 2)


@pytest.mark.parametrize(
    ("races", "expected"),
    [
        (["WHITE", "BLACK/AFRICAN", "BLACK/CAPE VERDEAN"], "Black"),
        (["WHITE", "ASIAN"], "Asian"),
        (["ASIAN", "WHITE"], "White"),
        (["UNKNOWN", "UNKNOWN", "ASIAN - CHINESE"], "Asian"),
        (["WHITE", "ASIAN", "UNKNOWN", "ASIAN", "WHITE"], "White"),
        (["UNKNOWN", "UNABLE TO OBTAIN"], None),
        (["WHITE - BRAZILIAN"], "White"),
        (["PORTUGUESE"], "Other"),
    ],
    ids=["most", "tie", "other-tie", "unknown-does-not-count", "tie-of-two", "none", "one", "other"],
)
def test_race_is_the_level_most_often_recorded(release, races, expected):
    # The numbers of the admissions say nothing about their order.
    stays = [admission(f"2{9 - at}", f"2150-0{at + 1}-01", race=race) for at, race in enumerate(races)]
    (race,) = read_rows(release(admissions=stays)).table["race_recorded"]
    assert pd.isna(race) if expected is None else race == expected
    # The order of the rows in the file does not matter, only that of time.
    (race,) = read_rows(release(admissions=stays[::-1])).table["race_recorded"]
    assert pd.isna(race) if expected is None else race == expected


def test_patients_whose_admissions_differ_are_counted(release):
    stays = [
        admission("21", "2150-01-01", race="WHITE"),
        admission("22", "2150-02-01", race="ASIAN"),
        admission("23", "2150-02-01", subject="10000002", race="WHITE"),
        admission("24", "2150-02-02", subject="10000002", race="WHITE - RUSSIAN"),
        admission("25", "2150-02-02", subject="10000003", race="BLACK/AFRICAN"),
    ]
    images = [
        image("a"),
        image("b"),
        image("c", subject="10000002", study="50000002"),
    ]
    rows = read_rows(release(metadata=images, admissions=stays))
    told = tally(rows, "race")
    assert told["admissions that differ (1 patients)"] == ("the level most often recorded", 2)
    assert told["ASIAN"] == ("Asian", 2)
    assert told["WHITE - RUSSIAN"] == ("White", 1)
    assert "BLACK/AFRICAN" not in told


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("21500101", "Medicare"),
        ("21500301", "Medicare"),
        ("21500302", "Medicare"),
        ("21500501", "Private"),
        ("21500630", "Private"),
        ("21520101", "Medicaid"),
    ],
    ids=["before-all", "day-of-first", "after-first", "day-of-second", "after-second", "after-all"],
)
def test_insurance_is_that_of_the_last_admission_up_to_the_study(release, date, expected):
    stays = [
        admission("21", "2151-07-01", insurance="Medicaid"),
        admission("22", "2150-03-01", insurance="Medicare"),
        admission("23", "2150-05-01", insurance="Private"),
        admission("24", "2149-01-01", subject="10000002", insurance="Other"),
    ]
    rows = read_rows(release(metadata=[image("a", date=date)], admissions=stays))
    assert list(rows.table["insurance_recorded"]) == [expected]


def test_insurance_follows_the_image_and_not_the_order_of_rows(release):
    stays = [
        admission("21", "2150-01-01", insurance="Medicaid"),
        admission("22", "2151-01-01", insurance="Private"),
        admission("23", "2150-01-01", subject="10000002", insurance="No charge"),
        admission("24", "2152-01-01", subject="10000002", insurance=""),
    ]
    images = [
        image("d", date="21530101", subject="10000002", study="50000004"),
        image("a", date="21520101", study="50000001"),
        image("c", date="21500601", subject="10000002", study="50000003"),
        image("b", date="21500601", study="50000002"),
    ]
    rows = by_image(read_rows(release(metadata=images, admissions=stays)))
    assert rows["a"]["insurance_recorded"] == "Private"
    assert rows["b"]["insurance_recorded"] == "Medicaid"
    assert rows["c"]["insurance_recorded"] == "Other"
    assert pd.isna(rows["d"]["insurance_recorded"])


def test_released_split(release):
    images = [image(name) for name in "abcd"]
    split = [
        {"dicom_id": name, "split": text}
        for name, text in zip("abc", ["train", "validate", "test"], strict=True)
    ]
    rows = read_rows(release(metadata=images, split=split))
    assert list(rows.table["released_split"][:3]) == ["train", "validation", "test"]
    assert pd.isna(rows.table["released_split"][3])
    assert tally(rows, "released_split")["not in the table of splits"] == (None, 1)


def test_compressed_tables_and_no_images(release):
    files = release(suffix=".csv.gz")
    rows = read_rows(site_files("mimic_cxr", files.paths))
    assert rows.table["file"].isna().all()
    assert len(rows.table) == 1


ERRORS = {
    "two-rows-of-one-image": (
        {"metadata": [image("a"), image("a")]},
        "metadata.csv: 1 of 2 rows have the dicom_id of an earlier row; one row each is needed.",
    ),
    "blank-patient": (
        {"metadata": [image("a", subject="")]},
        "metadata.csv: subject_id is blank in 1 of 1 rows; every row needs one.",
    ),
    "two-rows-of-one-study": (
        {"labels": [labels(), labels()]},
        "labels.csv: 1 of 2 rows have the study_id of an earlier row; one row each is needed.",
    ),
    "study-of-another-patient": (
        {"labels": [labels(subject="10000002")]},
        "labels.csv gives 1 images to another patient than the table of images does.",
    ),
    "strange-label": (
        {"labels": [labels(Edema="2")]},
        "The labels of mimic_cxr hold 1 cells with another text ('2') in column Edema; allowed is 1.0, 0.0, "
        "-1.0 or blank.",
    ),
    "strange-split": (
        {"split": [{"dicom_id": "a", "split": "dev"}]},
        "split.csv holds 1 cells with another text ('dev') in column split; allowed is train, validate, "
        "test.",
    ),
    "no-date": (
        {"metadata": [image("a", date="2150")]},
        "metadata.csv: 1 of 1 dates are no dates such as 21500131; download the table again.",
    ),
    "no-time-of-admission": (
        {"admissions": [{**admission("21", "2150-03-01"), "admittime": "soon"}]},
        "admissions.csv: 1 of 1 dates are no dates such as 21500131; download the table again.",
    ),
    "patient-twice": (
        {"patients": [patient(), patient(age="61")]},
        "patients.csv: 1 of 2 rows have the subject_id of an earlier row; one row each is needed.",
    ),
    "admission-twice": (
        {"admissions": [admission("21", "2150-03-01"), admission("21", "2150-03-02", race="ASIAN")]},
        "admissions.csv: 1 of 2 rows have the hadm_id of an earlier row; one row each is needed.",
    ),
    "age-that-is-no-number": (
        {"patients": [patient(age="old")]},
        "patients.csv holds 1 cells with another text ('old') in column anchor_age; allowed is a whole "
        "number.",
    ),
    "year-that-is-no-number": (
        {"patients": [patient(year="2150-2152")]},
        "patients.csv holds 1 cells with another text in column anchor_year; allowed is a whole number.",
    ),
    **{
        f"ids-as-numbers-in-{key}": (
            {key: [row]},
            f"{key}.csv has no row for any of 1 images by {column}; the tables are not of one release, or a "
            "program changed the ids (12 into 12.0, 007 into 7): take both as released.",
        )
        for key, row, column in (
            ("labels", labels(study="50000001.0"), "study_id"),
            ("patients", patient("10000001.0"), "subject_id"),
            ("admissions", admission("21", "2150-03-01", subject="10000001.0"), "subject_id"),
            ("split", {"dicom_id": "A", "split": "train"}, "dicom_id"),
        )
    },
    "no-label-column": (
        {"labels": [{"subject_id": "10000001", "study_id": "50000001", "Edema": "1.0"}]},
        "labels.csv has no column Atelectasis, Cardiomegaly, Consolidation, Enlarged Cardiomediastinum, "
        "Fracture, Lung Lesion, Lung Opacity, Pleural Effusion, Pleural Other, Pneumonia, Pneumothorax, "
        "Support Devices among its 3 columns; it must be the table as its owner releases it, with its "
        "header.",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_refusals(release, case):
    tables, message = ERRORS[case]
    with pytest.raises(InputError) as error:
        read_rows(release(**tables))
    assert str(error.value) == message


def test_a_long_strange_text_is_counted_and_not_shown(release):
    with pytest.raises(InputError) as error:
        read_rows(release(labels=[labels(Edema="10000001")]))
    assert "10000001" not in str(error.value)
    assert "1 cells with another text in column Edema" in str(error.value)


@pytest.mark.parametrize("key", ["metadata", "labels", "split", "patients", "admissions"])
def test_each_table_is_needed(release, key):
    files = release()
    paths = {name: path for name, path in files.paths.items() if name != key}
    with pytest.raises(InputError, match=f"Source mimic_cxr needs its file '{key}'; found: "):
        read_rows(site_files("mimic_cxr", paths))


def test_reports_are_read_by_study(tmp_path):
    folder = tmp_path / "files" / "p10" / "p10000001"
    folder.mkdir(parents=True)
    (folder / "s50000001.txt").write_text("FINDINGS: Clear lungs.\n\nIMPRESSION: Normal chest.\n")
    table = pd.DataFrame(
        {
            "image_id": ["mimic_cxr:a", "mimic_cxr:b", "mimic_cxr:c"],
            "patient_id": ["mimic_cxr:10000001", "mimic_cxr:10000001", "mimic_cxr:10000001"],
            "study_id": ["mimic_cxr:50000002", "mimic_cxr:50000001", "mimic_cxr:50000001"],
        }
    )
    files = site_files("mimic_cxr", {"reports_folder": tmp_path / "files"})
    reports = read_reports(files, table)
    assert list(reports.columns) == ["image_id", "findings", "impression"]
    assert list(reports["image_id"]) == list(table["image_id"])
    assert list(reports["findings"]) == ["", "Clear lungs.", "Clear lungs."]
    assert list(reports["impression"]) == ["", "Normal chest.", "Normal chest."]
    bare = table.apply(lambda column: column.str.removeprefix("mimic_cxr:"))
    assert read_reports(files, bare)["findings"].equals(reports["findings"])


def test_reports_need_their_folder():
    table = pd.DataFrame({"image_id": ["a"], "patient_id": ["1"], "study_id": ["2"]}, dtype="str")
    with pytest.raises(InputError, match="needs its file 'reports_folder'"):
        read_reports(site_files("mimic_cxr", {}), table)


@pytest.fixture(scope="module")
def synthetic():
    paths = {
        "metadata": SYNTHETIC / "mimic-cxr-2.0.0-metadata.csv",
        "labels": SYNTHETIC / "mimic-cxr-2.0.0-chexpert.csv",
        "split": SYNTHETIC / "mimic-cxr-2.0.0-split.csv",
        "patients": SYNTHETIC / "mimic-iv_hosp_patients.csv",
        "admissions": SYNTHETIC / "mimic-iv_hosp_admissions.csv",
    }
    raw = {key: read_text(path) for key, path in paths.items()}
    return read_rows(site_files("mimic_cxr", paths, SYNTHETIC, images=True)), raw


@needs_synthetic
def test_synthetic_release(synthetic):
    rows, raw = synthetic
    check_form(rows)
    frontal = [row for row in raw["metadata"] if row["ViewPosition"] in ("AP", "PA")]
    assert sorted(rows.table["image_id"]) == sorted(row["dicom_id"] for row in frontal)
    assert Counter(rows.table["view"]) == Counter(row["ViewPosition"] for row in frontal)
    assert sum(left_out(rows).values()) == len(raw["metadata"]) - len(frontal)
    study = {row["study_id"]: row for row in raw["labels"]}
    expected = {"1.0": 1, "0.0": 0, "-1.0": -1, "": -2}
    found = by_image(rows)
    for row in frontal:
        for name in LABELS:
            finding = name.lower().replace(" ", "_")
            assert found[row["dicom_id"]][finding] == expected[study[row["study_id"]][name]]


@needs_synthetic
def test_synthetic_persons(synthetic):
    rows, raw = synthetic
    persons = {row["subject_id"]: row for row in raw["patients"]}
    dates = {row["dicom_id"]: row["StudyDate"] for row in raw["metadata"]}
    sexes = {"M": "male", "F": "female"}
    assert set(rows.table["subject_id"]) - set(persons), "a subject is absent from the table of patients"
    for row in rows.table.to_dict("records"):
        person = persons.get(row["subject_id"])
        if person is None:
            assert pd.isna(row["age"])
            assert pd.isna(row["sex"])
            continue
        age = int(person["anchor_age"])
        if age != 91:
            age += int(dates[row["image_id"]][:4]) - int(person["anchor_year"])
        assert row["age"] == age
        assert row["sex"] == sexes[person["gender"]]

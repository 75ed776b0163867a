"""PadChest: label lists as text matched by whole names, projections, ages by year, odd cells."""

import importlib.util

import pandas as pd
import pytest
from chest_sources import (
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
from frame.cohorts.sites.padchest import read_rows
from frame.errors import InputError

TABLE = "PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv"
needs_package = pytest.mark.skipif(
    importlib.util.find_spec("torchxrayvision") is None,
    reason="the package with the PadChest table is not installed (make env installs it)",
)
UNLABELLED = {"enlarged_cardiomediastinum", "lung_opacity"}


def image(name="1_a.png", labels="['normal']", **cells):
    return {
        "": "0",
        "ImageID": name,
        "ImageDir": "0",
        "StudyDate_DICOM": cells.get("date", "20091231"),
        "StudyID": "1",
        "PatientID": cells.get("patient", "839860488694292331637988235681460987"),
        "PatientBirth": cells.get("birth", "1930.0"),
        "PatientSex_DICOM": cells.get("sex", "F"),
        "ViewPosition_DICOM": "POSTEROANTERIOR",
        "Projection": cells.get("projection", "PA"),
        "Pediatric": cells.get("pediatric", "No"),
        "Report": " texto sintetic .",
        "MethodLabel": "Physician",
        "Labels": labels,
        "Localizations": "[]",
    }


@pytest.fixture
def release(tmp_path):
    def written(*rows, images=False):
        return site_files("padchest", {"labels": write_table(tmp_path / TABLE, rows)}, tmp_path, images)

    return written


def positive(row):
    return {finding for finding, code in codes(row).items() if code == 1}


def test_one_image_in_full(release):
    rows = read_rows(release(image(labels="['cardiomegaly', ' pleural effusion']")))
    check_form(rows)
    (row,) = rows.table.to_dict("records")
    assert row["image_id"] == "1_a"
    # 36 digits stay as they are: a number would lose most of them.
    assert row["patient_id"] == row["subject_id"] == "839860488694292331637988235681460987"
    assert (row["age"], row["sex"], row["view"], row["study_id"]) == (79.0, "female", "PA", "1")
    assert positive(row) == {"cardiomegaly", "pleural_effusion"}
    assert set(codes(row).values()) == {0, 1}
    assert len(codes(row)) == 13 - len(UNLABELLED)
    assert all(pd.isna(row[name]) for name in ("file", "released_split", "race_recorded", "ethnicity"))
    assert tally(rows, "age") == {
        "study year minus birth year, approximate: number in years": ("age in years", 1)
    }


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("['normal']", set()),
        ("['breast mass']", set()),
        ("['mediastinal mass', 'soft tissue mass', 'mass', 'pleural mass']", set()),
        ("['pulmonary mass']", {"lung_lesion"}),
        ("['pericardial effusion']", set()),
        ("['fracture', 'callus rib fracture']", {"fracture"}),
        ("['callus rib fracture']", {"fracture"}),
        ("['vertebral compression']", set()),
        ("['pseudonodule', 'nipple shadow']", set()),
        ("['multiple nodules']", {"lung_lesion"}),
        ("['hydropneumothorax']", {"pleural_effusion", "pneumothorax"}),
        ("['laminar atelectasis', '', 'unchanged']", {"atelectasis"}),
        ("['  atypical pneumonia  ']", {"pneumonia"}),
        ("['PNEUMONIA']", set()),
        ("['pulmonary edema', 'heart insufficiency']", {"edema"}),
        ("['apical pleural thickening']", {"pleural_other"}),
        ("['NSG tube']", {"support_devices"}),
        ("['suboptimal study', 'consolidation']", {"consolidation"}),
        ("['mediastinal enlargement', 'infiltrates']", set()),
        ('["cardiomegaly"]', {"cardiomegaly"}),
    ],
)
def test_names_are_compared_whole(release, labels, expected):
    (row,) = read_rows(release(image(labels=labels))).table.to_dict("records")
    assert positive(row) == expected
    assert len(codes(row)) == 13 - len(UNLABELLED)


@pytest.mark.parametrize(
    "labels", ["", "nan", "None", "[]", "['']", "['exclude']", "['exclude', 'pneumonia']"]
)
def test_an_image_without_usable_labels_stays_with_all_findings_missing(release, labels):
    rows = read_rows(release(image("1_a.png", labels), image("1_b.png")))
    assert codes(by_image(rows)["1_a"]) == {}
    assert set(codes(by_image(rows)["1_b"]).values()) == {0}
    assert tally(rows, "label")["no label"] == (None, 1)
    assert tally(rows, "label")["normal"] == (None, 1)


@pytest.mark.parametrize(
    "labels",
    ["normal", "['normal'", "{'normal'}", "[1]", "__import__('os').getcwd()", "['a'] + ['b']", "None,"],
)
def test_a_text_that_is_no_list_is_refused_and_not_shown(release, labels):
    with pytest.raises(InputError) as error:
        read_rows(release(image(), image("2_b.png", labels)))
    assert str(error.value) == (
        f"{TABLE}: 1 of 2 cells of Labels are neither blank nor a list of texts such as ['normal']; the "
        "table must be as released."
    )


def test_a_name_that_the_table_of_names_lacks_is_told(release):
    rows = read_rows(release(image(labels="['new finding', 'pneumonia']")))
    assert tally(rows, "label") == {"new finding": ("not listed", 1), "pneumonia": ("pneumonia", 1)}


def test_an_unknown_name_that_may_be_an_id_or_a_note_is_counted_and_not_shown(release):
    rows = read_rows(
        release(image(labels="['patient 4711', 'nodule']"), image("2_b.png", f"['{'long ' * 9}']"))
    )
    assert tally(rows, "label") == {
        "(text with digits, or long)": ("not listed", 2),
        "nodule": ("lung_lesion", 1),
    }


def test_projections(release):
    projections = ["PA", "AP", "AP_horizontal", "L", "COSTAL", "EXCLUDE", "UNK", ""]
    rows = read_rows(release(*(image(f"{at}.png", projection=text) for at, text in enumerate(projections))))
    assert list(rows.table["view"]) == ["PA", "AP", "AP"]
    assert left_out(rows) == {
        "no view recorded": 1,
        "view COSTAL": 1,
        "view EXCLUDE": 1,
        "view L": 1,
        "view UNK": 1,
    }


@pytest.mark.parametrize(
    ("date", "birth", "expected"),
    [
        ("20091231", "1930.0", 79),
        ("20091231", "1930", 79),
        ("20170101", "1930.0", 87),
        ("2017-01-01", "1930.0", 87),
        ("20091231", "2009.0", 0),
        ("20091231", "2010.0", None),
        ("20091231", "1800.0", None),
        ("20091231", "", None),
        ("20091231", "nan", None),
        ("", "1930.0", None),
    ],
)
def test_age_is_the_difference_of_the_years(release, date, birth, expected):
    (age,) = read_rows(release(image(date=date, birth=birth))).table["age"]
    assert pd.isna(age) if expected is None else age == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("M", "male"), ("F", "female"), ("O", None), ("", None), ("nan", None)]
)
def test_sex(release, text, expected):
    (sex,) = read_rows(release(image(sex=text))).table["sex"]
    assert pd.isna(sex) if expected is None else sex == expected


def test_children_stay_and_are_counted(release):
    rows = read_rows(release(image(pediatric="PED", birth="2005.0"), image("2_b.png")))
    assert len(rows.table) == 2
    assert tally(rows, "patient") == {"child (Pediatric PED)": ("kept", 1)}


@pytest.mark.parametrize("folder", ["0", "images/0", "."])
def test_files_are_found_by_name(release, tmp_path, folder):
    files = release(image("1_a.png"), image("1_b.png"), images=True)
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / folder / "1_a.png").write_bytes(b"")
    rows = by_image(read_rows(files))
    assert rows["1_a"]["file"] == (f"{folder}/1_a.png" if folder != "." else "1_a.png")
    assert pd.isna(rows["1_b"]["file"])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([image(), image()], "1 of 2 rows have the ImageID of an earlier row; one row each is needed."),
        (
            [image(birth="19x0")],
            "holds 1 cells with another text ('19x0') in column PatientBirth; allowed is a whole number.",
        ),
        (
            [image(date="31/12/2009")],
            "holds 1 cells with another text in column StudyDate_DICOM; allowed is a whole number.",
        ),
        ([image(patient="")], "PatientID is blank in 1 of 1 rows; every row needs one."),
    ],
    ids=["twice", "birth", "date", "no-patient"],
)
def test_refusals(release, rows, message):
    with pytest.raises(InputError) as error:
        read_rows(release(*rows))
    assert str(error.value) in (f"{TABLE}: {message}", f"{TABLE} {message}")


@needs_synthetic
def test_synthetic_release():
    path = SYNTHETIC / TABLE
    rows = read_rows(site_files("padchest", {"labels": path}))
    check_form(rows)
    raw = [row for row in read_text(path) if row["Projection"] in ("PA", "AP", "AP_horizontal")]
    found = by_image(rows)
    assert len(found) == len(raw)
    for row in raw:
        name = row["ImageID"].removesuffix(".png")
        assert found[name]["view"] == row["Projection"][:2]
        assert found[name]["age"] == int(row["StudyDate_DICOM"][:4]) - float(row["PatientBirth"])
        assert (found[name]["cardiomegaly"] == 1) == ("'cardiomegaly'" in row["Labels"])


@needs_package
def test_the_released_table_and_every_name_in_it():
    rows = read_rows(site_files("padchest", {"labels": installed_table(f"{TABLE}.gz")}))
    check_form(rows)
    assert len(rows.table) == 110_633
    assert rows.table["subject_id"].nunique() == 67_247
    assert left_out(rows) == {"view COSTAL": 630, "view EXCLUDE": 11, "view L": 49_579, "view UNK": 8}
    assert not [text for text, (value, _) in tally(rows, "label").items() if value == "not listed"]
    assert tally(rows, "label")["no label"] == (None, 1563)
    assert tally(rows, "patient") == {"child (Pediatric PED)": ("kept", 250)}
    assert rows.table["age"].isna().sum() == 3
    assert rows.table["sex"].isna().sum() == 18

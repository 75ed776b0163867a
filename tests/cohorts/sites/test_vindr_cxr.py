"""VinDr-CXR: the majority of three readers, consensus, tags from a table or from DICOM files, files."""

import sys

import pandas as pd
import pytest
from chest_sources import (
    SYNTHETIC,
    by_image,
    check_form,
    codes,
    needs_synthetic,
    read_text,
    site_files,
    tally,
    write_table,
)

from frame.cohorts.sites.vindr_cxr import read_rows
from frame.errors import InputError

NAMES = (
    "Aortic enlargement",
    "Atelectasis",
    "Calcification",
    "Cardiomegaly",
    "Clavicle fracture",
    "Consolidation",
    "Edema",
    "Emphysema",
    "Enlarged PA",
    "ILD",
    "Infiltration",
    "Lung Opacity",
    "Lung cavity",
    "Lung cyst",
    "Mediastinal shift",
    "Nodule/Mass",
    "Pleural effusion",
    "Pleural thickening",
    "Pneumothorax",
    "Pulmonary fibrosis",
    "Rib fracture",
    "Other lesion",
    "COPD",
    "Lung tumor",
    "Pneumonia",
    "Tuberculosis",
)


def reading(image, reader, *marked):
    names = (*NAMES, "Other diseases", "No finding")
    return {"image_id": image, "rad_id": reader, **{name: "1" if name in marked else "0" for name in names}}


def readings(image, *marked):
    """Three readings of an image, one tuple of names each."""
    return [reading(image, f"R{at}", *names) for at, names in enumerate(marked)]


def consensus(image, *marked):
    names = (*NAMES, "Other disease", "No finding")
    return {"image_id": image, **{name: "1" if name in marked else "0" for name in names}}


def tags(image, sex="M", age="045Y"):
    return {"image_id": image, "PatientSex": sex, "PatientAge": age}


@pytest.fixture
def release(tmp_path):
    def written(train=None, test=None, tag=None, images=False):
        content = {
            "train_labels": train or readings("a", (), (), ()),
            "test_labels": test or [consensus("z")],
            **({"tags": tag} if tag else {}),
        }
        paths = {key: write_table(tmp_path / f"{key}.csv", rows) for key, rows in content.items()}
        return site_files("vindr_cxr", paths, tmp_path, images)

    return written


def positive(row):
    return {finding for finding, code in codes(row).items() if code == 1}


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ([(), (), ()], set()),
        ([("Atelectasis",), (), ()], set()),
        ([("Atelectasis",), ("Atelectasis",), ()], {"atelectasis"}),
        ([("Atelectasis",)] * 3, {"atelectasis"}),
        ([("Clavicle fracture",), (), ("Rib fracture",)], {"fracture"}),
        ([("Clavicle fracture", "Rib fracture"), (), ()], set()),
        ([("Nodule/Mass",), ("Lung tumor",), ()], {"lung_lesion"}),
        ([("Infiltration", "ILD", "Lung cavity", "Calcification", "Pulmonary fibrosis")] * 3, set()),
        ([("Lung Opacity", "Pleural thickening")] * 2 + [()], {"lung_opacity", "pleural_other"}),
        ([("Pneumonia",), ("Pneumonia", "Edema"), ("Edema",)], {"pneumonia", "edema"}),
        ([("Enlarged PA", "Mediastinal shift", "Aortic enlargement", "Other diseases")] * 3, set()),
        ([("No finding",)] * 3, set()),
    ],
)
def test_a_finding_is_what_two_of_three_readers_marked(release, marked, expected):
    rows = read_rows(release(readings("a", *marked)))
    check_form(rows)
    row = by_image(rows)["a"]
    assert positive(row) == expected
    assert len(codes(row)) == 11
    assert "enlarged_cardiomediastinum" not in codes(row)
    assert "support_devices" not in codes(row)


def test_rows_of_readers_may_stand_in_any_order(release):
    train = readings("a", ("Edema",), ("Edema",), ()) + readings("b", (), (), ("Edema",))
    assert read_rows(release(train)).table.equals(read_rows(release(train[::-1])).table)
    found = by_image(read_rows(release(train)))
    assert [positive(row) for row in found.values()] == [{"edema"}, set(), set()]


def test_test_images_have_their_consensus(release):
    rows = read_rows(release(test=[consensus("z", "Pneumothorax", "Rib fracture"), consensus("y")]))
    found = by_image(rows)
    assert positive(found["z"]) == {"pneumothorax", "fracture"}
    assert positive(found["y"]) == set()
    splits = {name: row["released_split"] for name, row in found.items()}
    assert splits == {"a": "train", "y": "test", "z": "test"}


def test_an_image_stands_for_itself(release):
    rows = read_rows(release())
    row = by_image(rows)["a"]
    assert (row["subject_id"], row["subject_kind"], row["view"]) == ("a", "image", "unknown")
    for name in ("patient_id", "study_id", "race_recorded", "insurance_recorded", "age", "sex", "file"):
        assert pd.isna(row[name])
    assert rows.left_out.empty
    assert tally(rows, "patient") == {
        "neither in a table of tags nor in a DICOM file that can be read": (None, 2)
    }


def test_the_tally_counts_names_that_a_majority_marked(release):
    train = readings("a", ("Edema", "ILD"), ("Edema",), ("COPD", "ILD")) + readings("b", ("Edema",), (), ())
    rows = read_rows(release(train, [consensus("z", "Edema", "Other disease")]))
    assert tally(rows, "label") == {"Edema": ("edema", 2), "ILD": (None, 1), "Other disease": (None, 1)}


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        ("045Y", 45),
        ("199Y", None),
        ("118Y", 118),
        ("000Y", None),
        ("006M", 0.5),
        ("", None),
        ("45", 45),
        ("abc", None),
    ],
)
def test_ages_of_the_table_of_tags(release, age, expected):
    row = by_image(read_rows(release(tag=[tags("a", age=age), tags("z")])))["a"]
    assert pd.isna(row["age"]) if expected is None else row["age"] == expected
    assert row["sex"] == "male"


def test_images_that_the_table_of_tags_lacks_are_counted(release):
    rows = read_rows(release(tag=[tags("z", sex="F"), tags("other")]))
    assert tally(rows, "patient") == {"image not in the table of tags": (None, 1)}
    assert by_image(rows)["z"]["sex"] == "female"
    assert pd.isna(by_image(rows)["a"]["sex"])


def dicom(path, sex, age):
    """A DICOM file without pixels."""
    from pydicom import DataElement, config
    from pydicom.dataset import Dataset, FileMetaDataset
    from pydicom.uid import ExplicitVRLittleEndian, SecondaryCaptureImageStorage

    data = Dataset()
    data.SOPClassUID = SecondaryCaptureImageStorage
    data.SOPInstanceUID = "1.2.3"
    if sex is not None:
        data.PatientSex = sex
    if age is not None:
        # Not checked, as odd ages stand in the release.
        data.add(DataElement("PatientAge", "AS", age, validation_mode=config.IGNORE))
    data.file_meta = FileMetaDataset()
    data.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    path.parent.mkdir(parents=True, exist_ok=True)
    data.save_as(path, enforce_file_format=True)


def test_tags_are_read_from_dicom_files_where_there_is_no_table(release, tmp_path):
    pytest.importorskip("pydicom")
    dicom(tmp_path / "train" / "a.dicom", "F", "072Y")
    dicom(tmp_path / "test" / "z.dicom", "O", None)
    rows = read_rows(release(images=True))
    found = by_image(rows)
    assert (found["a"]["sex"], found["a"]["age"], found["a"]["file"]) == ("female", 72, "train/a.dicom")
    assert pd.isna(found["z"]["sex"])
    assert pd.isna(found["z"]["age"])
    assert tally(rows, "sex") == {"F": ("female", 1), "O": (None, 1)}
    # Without images nothing is read from files.
    assert by_image(read_rows(release()))["a"]["sex"] is not found["a"]["sex"]


def test_a_damaged_dicom_file_is_counted_and_all_damaged_are_an_error(release, tmp_path):
    pytest.importorskip("pydicom")
    dicom(tmp_path / "train" / "a.dicom", "F", "072Y")
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "z.dicom").write_bytes(b"no DICOM")
    rows = read_rows(release(images=True))
    assert tally(rows, "patient") == {
        "neither in a table of tags nor in a DICOM file that can be read": (None, 1)
    }
    (tmp_path / "train" / "a.dicom").write_bytes(b"")
    with pytest.raises(InputError) as error:
        read_rows(release(images=True))
    assert str(error.value) == "None of the 2 DICOM files of vindr_cxr can be read; unpack the release again."


def test_odd_ages_in_a_dicom_file_are_not_shown_in_a_warning(release, tmp_path):
    pytest.importorskip("pydicom")
    dicom(tmp_path / "train" / "a.dicom", "F", "45 yrs")
    # Warnings are errors in these tests.
    rows = read_rows(release(images=True))
    assert tally(rows, "age")["no age"] == (None, 1)


def test_a_missing_pydicom_is_told(release, tmp_path, monkeypatch):
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "a.dicom").write_bytes(b"x")
    monkeypatch.setitem(sys.modules, "pydicom", None)
    with pytest.raises(InputError) as error:
        read_rows(release(images=True))
    assert str(error.value) == (
        "Sex and age of vindr_cxr stand in its DICOM files, and reading them needs pydicom; install it with: "
        "pip install 'frame-audit[dicom]'."
    )
    # With a table of tags, or with PNG files alone, it is not needed.
    assert read_rows(release(tag=[tags("a"), tags("z")], images=True)).table["age"].notna().all()
    (tmp_path / "train" / "a.dicom").rename(tmp_path / "train" / "a.png")
    assert by_image(read_rows(release(images=True)))["a"]["file"] == "train/a.png"


def test_png_is_preferred_and_a_missing_file_is_missing(release, tmp_path):
    for name in ("train/a.png", "train/a.dicom", "train/b.dcm"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    train = readings("a", (), (), ()) + readings("b", (), (), ())
    rows = by_image(read_rows(release(train, tag=[tags("a")], images=True)))
    assert (rows["a"]["file"], rows["b"]["file"]) == ("train/a.png", "train/b.dcm")
    assert pd.isna(rows["z"]["file"])


ERRORS = {
    "two-readers": (
        {"train": readings("a", (), ())},
        "train_labels.csv: 1 of 1 images have not 3 readers; the table must be as released.",
    ),
    "same-reader": (
        {"train": [*readings("a", (), ()), reading("a", "R0")]},
        "train_labels.csv: 1 of 3 rows have the image_id, rad_id of an earlier row; one row each is needed.",
    ),
    "in-both": (
        {"test": [consensus("a")]},
        "1 images of vindr_cxr are in the training and in the test labels.",
    ),
    "test-twice": (
        {"test": [consensus("z"), consensus("z")]},
        "test_labels.csv: 1 of 2 rows have the image_id of an earlier row; one row each is needed.",
    ),
    "mark": (
        {"test": [{**consensus("z"), "Edema": "2"}]},
        "The labels of vindr_cxr hold 1 cells with another text ('2') in column Edema; allowed is 0 or 1.",
    ),
    "no-column": (
        {"test": [{"image_id": "z", "Edema": "0"}]},
        "The labels of vindr_cxr have no column Atelectasis, Cardiomegaly, Clavicle fracture, Consolidation, "
        "Lung Opacity, Lung tumor, Nodule/Mass, Pleural effusion, Pleural thickening, Pneumonia, "
        "Pneumothorax, Rib fracture among 1 columns; the table must be the one that the owner releases.",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_refusals(release, case):
    tables, message = ERRORS[case]
    with pytest.raises(InputError) as error:
        read_rows(release(**tables))
    assert str(error.value) == message


@needs_synthetic
def test_synthetic_release():
    paths = {
        "train_labels": SYNTHETIC / "vindr-cxr_image_labels_train.csv",
        "test_labels": SYNTHETIC / "vindr-cxr_image_labels_test.csv",
        "tags": SYNTHETIC / "vindr-cxr_dicom_tags_extracted.csv",
    }
    rows = read_rows(site_files("vindr_cxr", paths))
    check_form(rows)
    found = by_image(rows)
    train = read_text(paths["train_labels"])
    test = read_text(paths["test_labels"])
    assert len(found) == len({row["image_id"] for row in train}) + len(test)
    for name in {row["image_id"] for row in train}:
        own = [row for row in train if row["image_id"] == name]
        assert (found[name]["pneumonia"] == 1) == (sum(row["Pneumonia"] == "1" for row in own) >= 2)
        fractures = sum("1" in (row["Clavicle fracture"], row["Rib fracture"]) for row in own)
        assert (found[name]["fracture"] == 1) == (fractures >= 2)
    for row in test:
        assert (found[row["image_id"]]["atelectasis"] == 1) == (row["Atelectasis"] == "1")
    ages = {row["image_id"]: row["PatientAge"] for row in read_text(paths["tags"])}
    for name, row in found.items():
        text = ages[name]
        usable = text.endswith("Y") and 0 < int(text[:-1]) <= 120
        assert row["age"] == int(text[:-1]) if usable else pd.isna(row["age"])

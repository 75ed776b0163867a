"""ChestX-ray14: the real tables in full, 2017's way of writing ages, lists, files, real images."""

import gzip
import importlib.util
from collections import Counter

import pandas as pd
import pytest
from chest_sources import CHEST, REAL, by_image, check_form, codes, read_text, site_files, tally, write_table

from frame.cohorts.adjudicated import MINED_TABLE, installed_table
from frame.cohorts.sites.nih_cxr14 import read_rows
from frame.errors import InputError

LISTS = REAL / "metadata" / "nih"
IMAGES = REAL / "nih_cxr"
needs_package = pytest.mark.skipif(
    importlib.util.find_spec("torchxrayvision") is None,
    reason="the package with the NIH table is not installed (make env installs it)",
)
needs_lists = pytest.mark.skipif(
    not LISTS.is_dir(), reason="the released lists of ChestX-ray14 are not beside this checkout"
)
needs_images = pytest.mark.skipif(
    not IMAGES.is_dir(), reason="the real radiographs of ChestX-ray14 are not beside this checkout"
)
FROM_NAMES = {
    "atelectasis": {"Atelectasis"},
    "cardiomegaly": {"Cardiomegaly"},
    "consolidation": {"Consolidation"},
    "edema": {"Edema"},
    "lung_lesion": {"Nodule", "Mass"},
    "pleural_effusion": {"Effusion"},
    "pleural_other": {"Pleural_Thickening"},
    "pneumonia": {"Pneumonia"},
    "pneumothorax": {"Pneumothorax"},
}


def image(name="00000001_000.png", labels="No Finding", **cells):
    return {
        "Image Index": name,
        "Finding Labels": labels,
        "Follow-up #": "0",
        "Patient ID": cells.get("patient", "1"),
        "Patient Age": cells.get("age", "57"),
        "Patient Gender": cells.get("sex", "M"),
        "View Position": cells.get("view", "PA"),
        "OriginalImage[Width": "2682",
        "Height]": "2749",
        "OriginalImagePixelSpacing[x": "0.143",
        "y]": "0.143",
    }


@pytest.fixture
def release(tmp_path):
    def written(rows, train_val=None, test=None, images=False):
        path = tmp_path / "Data_Entry_2017_v2020.csv"
        lines = [",".join(rows[0])] + [",".join(row.values()) for row in rows]
        path.write_text("\n".join(lines) + "\n")
        paths = {"entries": path}
        for key, names in (("train_val_list", train_val), ("test_list", test)):
            if names is not None:
                paths[key] = tmp_path / f"{key}.txt"
                # As released: the last line has no end.
                paths[key].write_text("\n".join(names))
        return site_files("nih_cxr14", paths, tmp_path, images)

    return written


def test_one_image_in_full(release):
    cells = {"patient": "13", "age": "060Y", "view": "AP"}
    rows = read_rows(release([image("00000013_005.png", "Effusion|Mass", **cells)]))
    check_form(rows)
    (row,) = rows.table.to_dict("records")
    assert row["image_id"] == "00000013_005"
    assert row["patient_id"] == row["subject_id"] == "13"
    assert (row["age"], row["sex"], row["view"]) == (60.0, "male", "AP")
    assert row["subject_kind"] == "patient"
    for name in ("study_id", "file", "released_split", "race_recorded", "insurance_recorded", "ethnicity"):
        assert pd.isna(row[name])
    found = codes(row)
    assert set(found) == set(FROM_NAMES)
    assert {name for name, code in found.items() if code} == {"pleural_effusion", "lung_lesion"}
    assert rows.left_out.empty


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("58", 58),
        ("058Y", 58),
        ("013M", 13 / 12),
        ("001D", 1 / 365.25),
        ("411Y", None),
        ("414", None),
        ("120", 120),
        ("121", None),
        ("-1", None),
        ("0", 0),
        ("", None),
    ],
)
def test_ages(release, text, expected):
    (age,) = read_rows(release([image(age=text)])).table["age"]
    assert pd.isna(age) if expected is None else age == pytest.approx(expected)


def test_blank_labels_are_missing_and_counted(release):
    rows = read_rows(release([image("a.png", ""), image("b.png", "No Finding")]))
    assert codes(by_image(rows)["a"]) == {}
    assert set(codes(by_image(rows)["b"]).values()) == {0}
    assert tally(rows, "label")["no label"] == (None, 1)


def test_a_label_name_that_is_none_of_the_release_is_refused(release):
    with pytest.raises(InputError) as error:
        read_rows(release([image("a.png", "Effusion"), image("b.png", "effusion|Mass")]))
    told = "Data_Entry_2017_v2020.csv: 1 label names in 1 images are none of Atelectasis, Cardiomegaly, "
    assert str(error.value).startswith(told)


def test_lists(release):
    rows = read_rows(
        release(
            [image("a.png"), image("b.png", patient="2"), image("c.png", patient="3")],
            ["a.png", "z.png"],
            ["b.png"],
        )
    )
    assert list(rows.table["released_split"].fillna("missing")) == ["train_val", "test", "missing"]
    assert tally(rows, "released_split") == {
        "train_val": ("train_val", 1),
        "test": ("test", 1),
        "in neither list": (None, 1),
        "listed and not in the table": (None, 1),
    }


def test_without_lists_there_is_no_split(release):
    rows = read_rows(release([image()]))
    assert rows.table["released_split"].isna().all()
    assert tally(rows, "released_split") == {"lists not given": (None, 1)}


@pytest.mark.parametrize(
    ("train_val", "test", "message"),
    [
        (["a.png"], ["a.png"], "1 images of nih_cxr14 are in both released lists; download the lists again."),
        (
            ["a.png"],
            None,
            "Source nih_cxr14 has only one of its two lists, train_val_list.txt; give both or none.",
        ),
        (
            ["a.png", "a.png"],
            ["b.png"],
            "train_val_list.txt: 1 of 2 lines are no image name or repeat one; download it again.",
        ),
        (
            ["a.png,b.png"],
            ["c.png"],
            "train_val_list.txt: 1 of 1 lines are no image name or repeat one; download it again.",
        ),
        (
            ["a.png", "b.pn"],
            ["c.png"],
            "train_val_list.txt: 1 of 2 lines are no image name or repeat one; download it again.",
        ),
        (
            ["y.png"],
            ["z.png"],
            "train_val_list.txt with test_list.txt has no row for any of 1 images by image name",
        ),
        (
            ["a.png"],
            ["<html>"],
            "test_list.txt: 1 of 1 lines are no image name or repeat one; download it again.",
        ),
    ],
    ids=["both", "one-list", "repeated", "two-in-a-line", "cut-off", "none-of-the-table", "no-list"],
)
def test_bad_lists(release, train_val, test, message):
    with pytest.raises(InputError) as error:
        read_rows(release([image("a.png")], train_val, test))
    assert str(error.value).startswith(message)


def test_a_damaged_archive_of_a_list_is_refused(release, tmp_path):
    files = release([image("a.png"), image("b.png")], ["a.png"], ["b.png"])
    packed = gzip.compress(b"a.png\n" * 1000)
    altered = bytearray(packed)
    altered[len(packed) // 2] ^= 0xFF
    path = tmp_path / "train_val_list.txt.gz"
    for content in (packed[:-1], packed[: len(packed) // 2], bytes(altered), b"a.png\n"):
        path.write_bytes(content)
        paths = {**files.paths, "train_val_list": path}
        with pytest.raises(InputError, match=r"^train_val_list.txt.gz cannot be read"):
            read_rows(site_files("nih_cxr14", paths))


def test_a_view_that_is_neither_ap_nor_pa_is_tallied_as_what_it_becomes(release):
    rows = read_rows(release([image("a.png", view="LL"), image("b.png", view="AP")]))
    assert list(rows.table["view"]) == ["unknown", "AP"]
    assert tally(rows, "view") == {"LL": ("unknown", 1), "AP": ("AP", 1)}


def test_an_empty_list_is_an_error(release):
    with pytest.raises(InputError, match=r"^test_list.txt is empty; download it again\.$"):
        read_rows(release([image("a.png")], ["a.png"], []))


def test_an_image_twice_is_an_error(release):
    with pytest.raises(InputError, match="1 of 2 rows have the Image Index of an earlier row"):
        read_rows(release([image(), image()]))


@pytest.mark.parametrize("folder", ["images", "images_001/images", "images_012", "."])
def test_files_are_found_by_name(release, tmp_path, folder):
    files = release([image("a.png"), image("b.png")], images=True)
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / folder / "b.png").write_bytes(b"x")
    rows = by_image(read_rows(files))
    assert rows["b"]["file"] == (f"{folder}/b.png" if folder != "." else "b.png")
    assert pd.isna(rows["a"]["file"])


def test_a_name_in_two_folders_is_an_error(release, tmp_path):
    files = release([image("a.png")], images=True)
    for folder in ("images", "images_001/images"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.png").write_bytes(b"x")
    with pytest.raises(InputError, match=r"1 of 2 files under .* the name of a file in another folder"):
        read_rows(files)


@needs_package
def test_the_released_table_has_112_120_images_of_30_805_patients():
    path = installed_table(MINED_TABLE)
    rows = read_rows(site_files("nih_cxr14", {"entries": path}))
    check_form(rows)
    assert len(rows.table) == 112_120
    assert rows.table["subject_id"].nunique() == 30_805
    raw = {row["Image Index"].removesuffix(".png"): row for row in read_text(path)}
    names = {key: set(row["Finding Labels"].split("|")) for key, row in raw.items()}
    for finding in CHEST:
        column = rows.table[finding]
        if finding not in FROM_NAMES:
            assert column.isna().all()
            continue
        positive = {key for key, found in names.items() if found & FROM_NAMES[finding]}
        assert set(rows.table["image_id"][column == 1]) == positive
        assert (column == 0).sum() == len(raw) - len(positive)
    assert Counter(rows.table["view"]) == Counter(row["View Position"] for row in raw.values())
    assert Counter(rows.table["sex"]) == {"male": 63_340, "female": 48_780}
    ages = dict(zip(rows.table["image_id"], rows.table["age"], strict=True))
    assert all(ages[key] == int(row["Patient Age"]) for key, row in raw.items())


@needs_package
@needs_lists
def test_the_released_lists_give_25_596_test_images_of_2_797_patients():
    paths = {
        "entries": installed_table(MINED_TABLE),
        "train_val_list": LISTS / "train_val_list.txt.gz",
        "test_list": LISTS / "test_list.txt.gz",
    }
    rows = read_rows(site_files("nih_cxr14", paths))
    parts = rows.table.groupby("released_split")["subject_id"].agg(["size", "nunique"])
    assert parts.loc["test"].tolist() == [25_596, 2_797]
    assert parts.loc["train_val"].tolist() == [86_524, 28_008]
    with gzip.open(paths["test_list"], "rt") as file:
        listed = {line.strip().removesuffix(".png") for line in file}
    assert set(rows.table["image_id"][rows.table["released_split"] == "test"]) == listed


@needs_lists
def test_the_table_of_2017_with_its_older_ages():
    path = LISTS / "sample_labels_2017_release.csv.gz"
    rows = read_rows(site_files("nih_cxr14", {"entries": path}))
    raw = read_text(path)
    assert len(rows.table) == len(raw) == 5_606
    kinds = tally(rows, "age")
    assert kinds["above 120 years"] == (None, sum(row["Patient Age"] == "411Y" for row in raw))
    assert kinds["DICOM age in months"][1] == sum(row["Patient Age"].endswith("M") for row in raw)
    assert kinds["DICOM age in days"][1] == sum(row["Patient Age"].endswith("D") for row in raw)
    found = by_image(rows)
    for row in raw:
        age = found[row["Image Index"].removesuffix(".png")]["age"]
        if row["Patient Age"].endswith("Y") and row["Patient Age"] != "411Y":
            assert age == int(row["Patient Age"][:-1])
        else:
            assert not age >= 3


@needs_images
def test_real_radiographs_from_their_raw_columns():
    rows = read_rows(site_files("nih_cxr14", {"entries": IMAGES / "metadata.csv"}, IMAGES, images=True))
    check_form(rows)
    raw = read_text(IMAGES / "metadata.csv")
    assert len(rows.table) == len(raw) == 621
    assert rows.table["subject_id"].nunique() == 621
    assert all((IMAGES / file).is_file() for file in rows.table["file"])
    assert set(rows.table["file"]) == {f"images/{row['Image Index']}" for row in raw}


def test_writing_with_the_csv_module_gives_the_same_rows(tmp_path, release):
    plain = read_rows(release([image("a.png", "Mass")]))
    path = write_table(tmp_path / "Data_Entry_2017.csv.gz", [image("a.png", "Mass")])
    assert read_rows(site_files("nih_cxr14", {"entries": path})).table.equals(plain.table)

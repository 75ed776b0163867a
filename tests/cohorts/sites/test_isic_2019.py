"""ISIC 2019: the counts of the real tables, lesions across images, odd rows, damaged tables."""

import csv
import gzip
import io
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from frame.cohorts.harmonise import age_band
from frame.cohorts.schema import manifest_columns
from frame.cohorts.sites.contract import ROW_COLUMNS, SiteFiles
from frame.cohorts.sites.isic_2019 import BENIGN, MALIGNANT, read_rows
from frame.cohorts.splits import fraction_split
from frame.errors import InputError

REAL = Path(__file__).resolve().parents[4] / "shared" / "data" / "real" / "metadata" / "derm"
TRUTH, METADATA = "ISIC_2019_Training_GroundTruth.csv", "ISIC_2019_Training_Metadata.csv"


@pytest.fixture(scope="module")
def rows():
    if not REAL.is_dir():
        pytest.skip("the real tables are not beside the repository")
    paths = {"truth": REAL / f"{TRUTH}.gz", "metadata": REAL / f"{METADATA}.gz"}
    return read_rows(SiteFiles("isic_2019", REAL, None, paths, images=False))


def recorded(name):
    with gzip.open(REAL / f"{name}.gz", "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# --- the real tables


def test_every_image_is_there(rows):
    assert len(rows.table) == 25331
    assert rows.left_out.empty
    assert tuple(rows.table.columns) == (*ROW_COLUMNS, "malignant")
    assert rows.table["image_id"].is_monotonic_increasing
    assert rows.table["image_id"].is_unique


def test_malignant_and_benign(rows):
    assert rows.table["malignant"].value_counts().to_dict() == {1: 9340, 0: 15991}
    by_hand = Counter(
        "malignant" if any(row[name] == "1" for name in MALIGNANT) else "benign" for row in recorded(TRUTH)
    )
    assert by_hand == {"malignant": 9340, "benign": 15991}
    assert {*MALIGNANT} == {"MEL", "BCC", "AK", "SCC"}
    assert {*BENIGN} == {"NV", "BKL", "DF", "VASC"}


def test_lesions_are_the_subjects(rows):
    kinds = rows.table["subject_kind"].value_counts().to_dict()
    assert kinds == {"lesion": 23247, "image": 2084}
    assert rows.table["subject_id"].nunique() == 13931
    alone = rows.table[rows.table["subject_kind"] == "image"]
    assert (alone["subject_id"] == alone["image_id"]).all()
    assert rows.table["patient_id"].isna().all()


@pytest.mark.parametrize("seed", [0, 1])
def test_subjects_per_split(rows, seed):
    split = fraction_split("isic_2019:" + rows.table["subject_id"], seed)
    subjects = rows.table["subject_id"].groupby(split).nunique().to_dict()
    assert subjects == {"train": 8359, "validation": 1393, "test": 4179}


def test_ages_and_sexes(rows):
    ages = rows.table["age"]
    assert (ages.isna().sum(), ages.min(), ages.max()) == (437, 0, 85)
    assert rows.table["sex"].value_counts(dropna=False).to_dict() == {
        "male": 13286,
        "female": 11661,
        np.nan: 384,
    }
    bands = Counter(
        "missing" if row["age_approx"] == "" else (">=80", "60-<80", "40-<60", "<40")[
            sum(float(row["age_approx"]) < edge for edge in (80, 60, 40))
        ]
        for row in recorded(METADATA)
    )  # fmt: skip
    assert age_band(ages).astype(object).fillna("missing").value_counts().to_dict() == bands


def test_an_age_of_0_is_an_age(rows):
    """What the module says: 54 of age 0, none malignant, and the numbers of ages 5 and 10 continue them."""
    by_age = rows.table.groupby("age")["malignant"]
    assert by_age.size().loc[[0, 5, 10, 15]].tolist() == [54, 113, 142, 375]
    assert by_age.sum().loc[0] == 0


def test_the_tally_counts_every_image_for_every_field(rows):
    totals = rows.tally.groupby("field")["n_images"].sum()
    assert totals.to_dict() == {"age": 25331, "malignant": 25331, "sex": 25331, "subject_id": 25331}


# --- small tables

HEADER = "image,MEL,NV,BCC,AK,BKL,DF,VASC,SCC,UNK\n"


def tables(truth, metadata):
    return {
        TRUTH: HEADER + truth,
        METADATA: "image,age_approx,anatom_site_general,lesion_id,sex\n" + metadata,
    }


GOOD = tables(
    "b,1,0,0,0,0,0,0,0,0\na,0,1.0,0.0,0,0,0,0,0,0\nc,0,0,0,0,0,0,0,0,1\nd_downsampled,0,0,0,0,0,0,0,1,0\n",
    "a,0,,L1,female\nb,85,,L1,male\nc,,,,\nd_downsampled,150,,  ,other\n",
)


def read(folder, content, *, images=False, compressed=False):
    paths = {}
    for name, text in content.items():
        path = folder / (f"{name}.gz" if compressed else name)
        path.write_bytes(gzip.compress(text.encode()) if compressed else text.encode())
        paths["truth" if name == TRUTH else "metadata"] = path
    return read_rows(SiteFiles("isic_2019", folder, None, paths, images=images))


@pytest.mark.parametrize("compressed", [False, True])
def test_odd_rows(tmp_path, compressed):
    table = read(tmp_path, GOOD, compressed=compressed).table
    assert table["image_id"].tolist() == ["a", "b", "c", "d_downsampled"]
    assert table["malignant"].tolist() == [0, 1, pd.NA, 1]
    assert table["subject_id"].tolist() == ["L1", "L1", "c", "d_downsampled"]
    assert table["subject_kind"].tolist() == ["lesion", "lesion", "image", "image"]
    assert table["age"].fillna(-9).tolist() == [0, 85, -9, -9]
    assert table["sex"].fillna("-").tolist() == ["female", "male", "-", "-"]
    assert table["file"].isna().all()


def test_image_files_are_found(tmp_path):
    folder = tmp_path / "ISIC_2019_Training_Input"
    folder.mkdir()
    for name in ("a.jpg", "d_downsampled.jpg", "surplus.jpg"):
        (folder / name).touch()
    table = read(tmp_path, GOOD, images=True).table
    assert table["file"].fillna("-").tolist() == [
        *("ISIC_2019_Training_Input/a.jpg", "-", "-", "ISIC_2019_Training_Input/d_downsampled.jpg"),
    ]


BAD = {
    "two diagnoses": (
        {TRUTH: HEADER + "a,1,1,0,0,0,0,0,0,0\n"},
        "1 of 1 images have not exactly one diagnosis",
    ),
    "no diagnosis": (
        {TRUTH: HEADER + "a,0,0,0,0,0,0,0,0,0\n"},
        "1 of 1 images have not exactly one diagnosis",
    ),
    "half a diagnosis": ({TRUTH: HEADER + "a,.5,.5,0,0,0,0,0,0,0\n"}, "have not exactly one diagnosis"),
    "blank diagnosis": ({TRUTH: HEADER + "a,1,,0,0,0,0,0,0,0\n"}, "have not exactly one diagnosis"),
    "other images": (
        {TRUTH: HEADER + "z,1,0,0,0,0,0,0,0,0\n"},
        "1 images of ISIC_2019_Training_GroundTruth.csv are",
    ),
    "an image twice": (
        {TRUTH: HEADER + "a,1,0,0,0,0,0,0,0,0\n" * 2},
        "1 of 2 rows have the image of an earlier row",
    ),
    "no column": ({TRUTH: "image,MEL\na,1\n"}, "has no column BCC, AK"),
    "a lesion named as an image": (
        tables("a,1,0,0,0,0,0,0,0,0\nb,1,0,0,0,0,0,0,0,0\n", "a,,,b,\nb,,,,\n"),
        "a lesion has the id of an image",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_damaged_table_is_one_sentence(tmp_path, name):
    content, message = BAD[name]
    whole = {**tables("a,1,0,0,0,0,0,0,0,0\n", "a,1,,L1,male\n"), **content}
    with pytest.raises(InputError) as error:
        read(tmp_path, whole)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_table_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match="isic_2019"):
        read_rows(SiteFiles("isic_2019", tmp_path, None, {}, images=False))


def test_the_rows_are_not_part_of_the_text(tmp_path):
    out = io.StringIO()
    print(read(tmp_path, GOOD), file=out)
    assert "d_downsampled" not in out.getvalue()


def test_the_columns_are_those_of_a_manifest():
    assert {*ROW_COLUMNS, "malignant"} - {"released_split"} <= {*manifest_columns("skin")}

"""Fitzpatrick17k: the counts of the real table, the pool with DDI and ISIC, damaged tables."""

import csv
import gzip
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from frame.cohorts.labels import LabelPolicy, counts_under_policies, resolve_labels
from frame.cohorts.missingness import missing_by_label
from frame.cohorts.sites import site_module
from frame.cohorts.sites.contract import ROW_COLUMNS, SiteFiles
from frame.cohorts.sites.fitzpatrick17k import read_rows
from frame.cohorts.splits import fraction_split
from frame.errors import InputError
from frame.tables import load_table

REAL = Path(__file__).resolve().parents[4] / "shared" / "data" / "real" / "metadata" / "derm"
HEADER = "md5hash,fitzpatrick_scale,fitzpatrick_centaur,label,nine_partition_label,three_partition_label,qc\n"


@pytest.fixture(scope="module")
def rows():
    if not REAL.is_dir():
        pytest.skip("the real tables are not beside the repository")
    return read_rows(
        SiteFiles("fitzpatrick17k", REAL, None, {"table": REAL / "fitzpatrick17k.csv.gz"}, images=False)
    )


@pytest.fixture(scope="module")
def recorded():
    with gzip.open(REAL / "fitzpatrick17k.csv.gz", "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def ddi(folder):
    """656 photographs with the published composition: 208, 241 and 207 by skin tone; 171 malignant."""
    tones = ["12"] * 208 + ["34"] * 241 + ["56"] * 207
    lines = [",DDI_ID,DDI_file,skin_tone,malignant,disease\n"]
    lines += [
        f"{n},{n + 1},{n + 1:06d}.png,{tone},{n * 171 // 656 != (n + 1) * 171 // 656},x\n"
        for n, tone in enumerate(tones)
    ]
    path = folder / "ddi_metadata.csv"
    path.write_text("".join(lines), encoding="utf-8")
    return site_module("ddi").read_rows(SiteFiles("ddi", folder, None, {"table": path}, images=False))


def isic():
    paths = {
        key: REAL / f"ISIC_2019_Training_{name}.csv.gz"
        for key, name in (("truth", "GroundTruth"), ("metadata", "Metadata"))
    }
    return site_module("isic_2019").read_rows(SiteFiles("isic_2019", REAL, None, paths, images=False))


# --- the real table


def test_images_with_a_skin_type(rows, recorded):
    assert (len(recorded), len(rows.table)) == (16577, 16012)
    assert rows.left_out.to_numpy().tolist() == [["skin type not annotated (scale -1)", 565]]
    assert tuple(rows.table.columns) == (*ROW_COLUMNS, "malignant")
    assert rows.table["image_id"].is_monotonic_increasing
    groups = Counter((int(row["fitzpatrick_scale"]) + 1) // 2 for row in recorded)
    assert rows.table["skin_type"].value_counts().to_dict() == {
        level: groups[place] for place, level in enumerate(("I-II", "III-IV", "V-VI"), start=1)
    }


def test_cases_are_images(rows):
    assert set(rows.table["subject_kind"]) == {"case"}
    assert rows.table["subject_id"].nunique() == 16012
    counts = fraction_split(rows.table["subject_id"], 0).value_counts().to_dict()
    assert counts == {"train": 9607, "validation": 1601, "test": 4804}


def test_non_neoplastic_images_have_no_label_under_any_policy(rows, recorded):
    kept = [row for row in recorded if row["fitzpatrick_scale"] != "-1"]
    by_hand = Counter(row["three_partition_label"] for row in kept)
    assert by_hand == {"non-neoplastic": 11692, "malignant": 2160, "benign": 2160}
    counts = counts_under_policies(rows.table[["malignant"]])
    assert set(counts["n_evaluable"]) == {4320}
    assert set(counts["n_positive"]) == {2160}


def test_the_dermatology_pool_of_the_paper(rows, tmp_path):
    parts = {"DDI": ddi(tmp_path).table, "Fitzpatrick17k": rows.table, "ISIC 2019": isic().table}
    pool = pd.concat(parts.values())
    assert len(pool) == 41999
    labels = resolve_labels(pool["malignant"], LabelPolicy(uncertain="negative", blank="missing"))
    assert ((labels == 1).sum(), (labels == 0).sum(), labels.isna().sum()) == (11671, 18636, 11692)
    types = pool["skin_type"].value_counts()
    assert types.loc[["I-II", "III-IV", "V-VI"]].tolist() == [7963, 6330, 2375]
    assert types.sum() == 16668
    assert sum(table["subject_id"].nunique() for table in parts.values()) == 30599
    printed = load_table("paper_table1").set_index("row")
    for title, table in parts.items():
        subjects = table["subject_id"].groupby(fraction_split(table["subject_id"], 0)).nunique()
        assert subjects["test"] == printed.loc[title, "test_patients"]
        if (
            title != "ISIC 2019"
        ):  # its images a lesion differ, so that its counts of images depend on the draw
            assert [subjects["train"], subjects["validation"]] == [
                printed.loc[title, "train"],
                printed.loc[title, "validation"],
            ]


def test_skin_type_is_missing_by_source_and_so_by_label(rows, tmp_path):
    """The share without an attribute differs by label, here because ISIC records no skin type."""
    pool = pd.concat([ddi(tmp_path).table, rows.table, isic().table])
    shares = missing_by_label(pool, ["skin_type"], ["malignant"]).set_index("label")["share_missing"]
    assert shares["positive"] == pytest.approx(9340 / 11671)
    assert shares["negative"] == pytest.approx(15991 / 18636)
    assert shares["not labelled"] == 0


# --- small tables


def read(folder, text, *, images=False):
    path = folder / "fitzpatrick17k.csv"
    path.write_text(text, encoding="utf-8")
    return read_rows(SiteFiles("fitzpatrick17k", folder, None, {"table": path}, images=images))


def test_odd_rows_and_files(tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "00b.jpg").touch()
    rows = read(
        tmp_path,
        HEADER + "00b,6,,x,x,Malignant,\n00a,1.0,,x,x,non-neoplastic,\n00c,-1,,x,x,benign,\n",
        images=True,
    )
    assert rows.table["image_id"].tolist() == ["00a", "00b"]
    assert rows.table["skin_type"].tolist() == ["I-II", "V-VI"]
    assert rows.table["malignant"].tolist() == [pd.NA, 1]
    assert rows.table["file"].fillna("-").tolist() == ["-", "images/00b.jpg"]
    assert rows.left_out["n_images"].tolist() == [1]


BAD = {
    "a scale": (HEADER + "a,7,,x,x,benign,\n", "fitzpatrick_scale is neither -1 nor 1 to 6 in 1 of 1 rows"),
    "a blank scale": (
        HEADER + "a,,,x,x,benign,\n",
        "fitzpatrick_scale is neither -1 nor 1 to 6 in 1 of 1 rows",
    ),
    "a partition": (
        HEADER + "a,1,,x,x,begnin,\n",
        "column three_partition_label is none of malignant, benign, non-",
    ),
    "an image twice": (
        HEADER + "a,1,,x,x,benign,\na,1,,x,x,benign,\n",
        "1 of 2 rows have the md5hash of an earlier",
    ),
    "no column": ("md5hash,label\na,x\n", "has no column fitzpatrick_scale, three_partition_label"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_damaged_table_is_one_sentence(tmp_path, name):
    text, message = BAD[name]
    with pytest.raises(InputError) as error:
        read(tmp_path, text)
    assert message in str(error.value)
    assert "begnin" not in str(error.value)

"""Released tables of the chest sources, written small by the tests, and where the real ones lie."""

import csv
import gzip
from pathlib import Path

import pandas as pd
import pytest

from frame.cohorts.schema import FINDINGS
from frame.cohorts.sites.contract import LEFT_OUT_COLUMNS, ROW_COLUMNS, TALLY_COLUMNS, SiteFiles

ROOT = Path(__file__).resolve().parents[3]
REAL = ROOT.parent / "shared" / "data" / "real"
SYNTHETIC = REAL / "metadata" / "synthetic"
CHEST = FINDINGS["chest"]

needs_synthetic = pytest.mark.skipif(
    not SYNTHETIC.is_dir(), reason="the synthetic tables under the real headers are not beside this checkout"
)

#: The labels of the CheXpert labeller, as both releases name them.
LABELS = (
    "Atelectasis",
    "Cardiomegaly",
    "Consolidation",
    "Edema",
    "Enlarged Cardiomediastinum",
    "Fracture",
    "Lung Lesion",
    "Lung Opacity",
    "Pleural Effusion",
    "Pleural Other",
    "Pneumonia",
    "Pneumothorax",
    "Support Devices",
)


def write_table(path, rows, columns=None):
    """Write rows (dicts) as CSV, compressed where the name says so; returns the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns or list(rows[0]), restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def read_text(path):
    """Rows of a CSV file as dicts of text, apart from the code under test."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def site_files(source, paths, root=None, images=False):
    return SiteFiles(source, root, None, paths, images)


def by_image(rows):
    """The rows as dicts by image id."""
    return rows.table.set_index("image_id").to_dict("index")


def left_out(rows):
    return dict(zip(rows.left_out["reason"], rows.left_out["n_images"], strict=True))


def tally(rows, field):
    """What each recorded text of a field became, with its count; missing is None."""
    part = rows.tally[rows.tally["field"] == field]
    values = part["value"].astype(object).where(part["value"].notna(), None)
    return dict(zip(part["recorded"], zip(values, part["n_images"], strict=True), strict=True))


def codes(row):
    """The findings of a row that the source labels."""
    return {finding: int(row[finding]) for finding in CHEST if not pd.isna(row[finding])}


def check_form(rows):
    """What the contract demands of every source."""
    assert list(rows.table.columns) == [*ROW_COLUMNS, *CHEST]
    assert list(rows.left_out.columns) == list(LEFT_OUT_COLUMNS)
    assert list(rows.tally.columns) == list(TALLY_COLUMNS)
    assert rows.table["image_id"].is_unique
    assert rows.table["image_id"].is_monotonic_increasing
    assert rows.table["subject_id"].notna().all()
    assert rows.table["age"].dtype == "float64"
    assert all(rows.table[finding].dtype == "Int8" for finding in CHEST)
    assert set(rows.table["view"]) <= {"AP", "PA", "unknown"}
    assert rows.tally["n_images"].dtype == "int64"
    assert (rows.tally["n_images"] > 0).all()
    assert rows.table["skin_type"].isna().all()

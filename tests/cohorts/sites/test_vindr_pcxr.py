"""VinDr-PCXR: one reader, pneumonia in three spellings, ages of small children, both splits."""

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

from frame.cohorts.sites.vindr_pcxr import read_rows
from frame.errors import InputError

NAMES = (
    "No finding",
    "Bronchitis",
    "Brocho-pneumonia",
    "Other disease",
    "Bronchiolitis",
    "Situs inversus",
    "Pneumonia",
    "Pleuro-pneumonia",
    "Diagphramatic hernia",
    "Tuberculosis",
    "Congenital emphysema",
    "CPAM",
    "Hyaline membrane disease",
    "Mediastinal tumor",
    "Lung tumor",
)


def reading(image, *marked, one="1", reader="rad_ID"):
    head = {"image_id": image, **({reader: "R1"} if reader else {})}
    return head | {name: one if name in marked else one.replace("1", "0") for name in NAMES}


@pytest.fixture
def release(tmp_path):
    def written(**tables):
        paths = {key: write_table(tmp_path / f"{key}.csv", rows) for key, rows in tables.items()}
        return site_files("vindr_pcxr", paths, tmp_path)

    return written


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Pneumonia", 1),
        ("Brocho-pneumonia", 1),
        ("Pleuro-pneumonia", 1),
        ("Bronchitis", 0),
        ("Bronchiolitis", 0),
        ("Lung tumor", 0),
        ("Tuberculosis", 0),
        ("Other disease", 0),
        ("No finding", 0),
    ],
)
def test_only_pneumonia_is_labelled(release, name, expected):
    rows = read_rows(release(train_labels=[reading("a", name)]))
    check_form(rows)
    assert codes(by_image(rows)["a"]) == {"pneumonia": expected}


@pytest.mark.parametrize("reader", ["rad_ID", "rad_id", None])
@pytest.mark.parametrize("one", ["1", "1.0"])
def test_spellings_of_the_reader_and_of_a_mark(release, reader, one):
    rows = read_rows(release(train_labels=[reading("a", "Pneumonia", one=one, reader=reader)]))
    assert codes(by_image(rows)["a"]) == {"pneumonia": 1}
    assert tally(rows, "label") == {"Pneumonia": ("pneumonia", 1)}


def test_both_splits(release):
    rows = read_rows(
        release(
            train_labels=[reading("b", "Pneumonia"), reading("a")],
            test_labels=[reading("c", "Pneumonia", "Bronchitis", reader=None)],
        )
    )
    assert list(rows.table["released_split"]) == ["train", "train", "test"]
    assert [row["pneumonia"] for row in by_image(rows).values()] == [0, 1, 1]
    assert tally(rows, "label") == {"Bronchitis": (None, 1), "Pneumonia": ("pneumonia", 2)}
    row = by_image(rows)["c"]
    assert (row["subject_id"], row["subject_kind"], row["view"]) == ("c", "image", "unknown")
    assert pd.isna(row["patient_id"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [("005Y", 5), ("010M", 10 / 12), ("020D", 20 / 365.25), ("003W", 21 / 365.25), ("000Y", 0), ("", None)],
)
def test_ages_of_small_children(release, text, expected):
    tags = [{"image_id": "a", "PatientSex": "F", "PatientAge": text}]
    row = by_image(read_rows(release(train_labels=[reading("a")], tags=tags)))["a"]
    assert row["sex"] == "female"
    assert pd.isna(row["age"]) if expected is None else row["age"] == pytest.approx(expected)


def test_an_unknown_label_column_is_told_and_not_used(release):
    rows = read_rows(release(train_labels=[{**reading("a"), "New disease": "1"}]))
    assert tally(rows, "label") == {"New disease": ("not listed", 1)}


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (
            {"train_labels": [reading("a")], "test_labels": [reading("a")]},
            "The training and test labels together: 1 of 2 rows have the image_id of an earlier row; one row "
            "each is needed.",
        ),
        (
            {"train_labels": [reading("a"), reading("a")]},
            "train_labels.csv: 1 of 2 rows have the image_id of an earlier row; one row each is needed.",
        ),
        (
            {"train_labels": [{**reading("a"), "Bronchitis": ""}]},
            "The labels of vindr_pcxr hold 1 cells with another text ('') in column Bronchitis; allowed is "
            "0 or 1.",
        ),
        (
            {"train_labels": [{"image_id": "a", "Pneumonia": "0"}]},
            "The labels of vindr_pcxr have no column Brocho-pneumonia, Pleuro-pneumonia among 1 columns; the "
            "table must be the one that the owner releases.",
        ),
    ],
    ids=["in-both", "twice", "blank-mark", "no-column"],
)
def test_refusals(release, tables, message):
    with pytest.raises(InputError) as error:
        read_rows(release(**tables))
    assert str(error.value) == message


@needs_synthetic
def test_synthetic_release():
    paths = {
        "train_labels": SYNTHETIC / "vindr-pcxr_image_labels_train.csv",
        "tags": SYNTHETIC / "vindr-pcxr_dicom_tags_extracted.csv",
    }
    rows = read_rows(site_files("vindr_pcxr", paths))
    check_form(rows)
    raw = read_text(paths["train_labels"])
    found = by_image(rows)
    assert set(found) == {row["image_id"] for row in raw}
    for row in raw:
        marked = "1" in (row["Pneumonia"], row["Brocho-pneumonia"], row["Pleuro-pneumonia"])
        assert found[row["image_id"]]["pneumonia"] == int(marked)
    parts = {"Y": 1, "M": 12, "D": 365.25}
    for row in read_text(paths["tags"]):
        text = row["PatientAge"]
        if text:
            assert found[row["image_id"]]["age"] == pytest.approx(int(text[:-1]) / parts[text[-1]])

"""The manifest: what it refuses, in words without ids, and its file: types, bytes, atomic writing."""

import hashlib

import numpy as np
import pandas as pd
import pytest

from frame.cohorts import schema
from frame.cohorts.schema import (
    BASE_COLUMNS,
    FINDINGS,
    LEVELS,
    check_manifest,
    manifest_columns,
    read_manifest_file,
    write_manifest,
)
from frame.cohorts.sites import SITES
from frame.cohorts.sources import sources
from frame.errors import InputError

CANARY = "80000017"


def chest():
    """Four radiographs of two patients; the canary is in every id."""
    patient = pd.Series([CANARY, CANARY, f"{CANARY}1", f"{CANARY}1"])
    table = pd.DataFrame(
        {
            "image_id": [f"mimic_cxr:{CANARY}-{number}" for number in range(4)],
            "site": "mimic_cxr",
            "modality": "chest",
            "subject_id": "mimic_cxr:" + patient,
            "subject_kind": "patient",
            "patient_id": "mimic_cxr:" + patient,
            "study_id": [f"mimic_cxr:{CANARY}", np.nan, f"mimic_cxr:{CANARY}", f"mimic_cxr:{CANARY}"],
            "file": [f"files/p{CANARY}/{number}.jpg" for number in range(3)] + [np.nan],
            "split": ["train", "train", "test", "validation"],
            "age": [39.5, 60, np.nan, 0],
            "age_band": ["<40", "60-<80", np.nan, "<40"],
            "sex": ["female", "female", "male", np.nan],
            "race": ["White", "White", "Other", "Hispanic or Latino"],
            "race_recorded": ["White", "White", np.nan, "Hispanic or Latino"],
            "ethnicity": np.nan,
            "insurance": ["Medicare", "Other", "Other", "Private"],
            "insurance_recorded": ["Medicare", "Other", np.nan, "Private"],
            "skin_type": np.nan,
            "view": ["AP", "PA", "unknown", "AP"],
        }
    )
    for place, finding in enumerate(FINDINGS["chest"]):
        table[finding] = [[1, 0, -1, -2], [np.nan] * 4][place % 2]
    return table


def skin():
    table = pd.DataFrame(
        {
            "image_id": ["ddi:1", "ddi:2"],
            "site": "ddi",
            "modality": "skin",
            "subject_id": ["ddi:1", "ddi:2"],
            "subject_kind": "case",
            "split": ["train", "test"],
            "skin_type": ["I-II", np.nan],
            "malignant": [1, 0],
        }
    )
    return table.reindex(columns=list(manifest_columns("skin")))


def fundus():
    table = pd.DataFrame(
        {
            "image_id": ["fairvision:d1"],
            "site": "fairvision",
            "modality": "fundus",
            "subject_id": ["fairvision:d1"],
            "patient_id": ["fairvision:d1"],
            "subject_kind": "patient",
            "split": ["train"],
            "age": [63.9],
            "age_band": ["60-<80"],
            "race": ["Black"],
            "race_recorded": ["Black"],
            "ethnicity": ["non-Hispanic"],
            "glaucoma": [1],
        }
    )
    return table.reindex(columns=list(manifest_columns("fundus")))


# --- the registry


def test_names_are_those_of_the_sources():
    assert tuple(sources()) == SITES == LEVELS["site"]
    assert {source.modality for source in sources().values()} == set(FINDINGS) == set(schema.MODALITIES)


def test_findings_are_the_thirteen():
    assert [len(FINDINGS[modality]) for modality in schema.MODALITIES] == [13, 1, 1]
    assert list(FINDINGS["chest"]) == sorted(FINDINGS["chest"])
    assert not {*BASE_COLUMNS} & {name for names in FINDINGS.values() for name in names}


def test_an_unknown_modality_is_refused():
    with pytest.raises(InputError, match="modality is 'ct'; it must be one of chest, skin, fundus"):
        manifest_columns("ct")


# --- the check


@pytest.mark.parametrize("make", [chest, skin, fundus], ids=lambda make: make.__name__)
def test_a_good_manifest_gets_its_types(make):
    raw = make()
    table = check_manifest(raw)
    modality = raw["modality"].iloc[0]
    assert tuple(table.columns) == manifest_columns(modality)
    for name in table.columns:
        kind = str(table[name].dtype)
        expected = (
            "category" if name in LEVELS
            else "float64" if name == "age"
            else "Int8" if name in FINDINGS[modality]
            else "str"
        )  # fmt: skip
        assert kind == expected, name
        if name in LEVELS:
            assert tuple(table[name].cat.categories) == LEVELS[name]
        assert table[name].isna().tolist() == raw[name].isna().tolist()
    assert check_manifest(table).equals(table)
    assert check_manifest(raw.set_index(raw.index + 9)).equals(table)


BAD = [
    (
        "image_id",
        1,
        f"mimic_cxr:{CANARY}-0",
        "Column image_id of the manifest is there a second time in 1 of 4 rows.",
    ),
    ("image_id", 1, np.nan, "Column image_id of the manifest is missing in 1 of 4 rows."),
    (
        "image_id",
        1,
        CANARY,
        "In 1 of 4 rows of the manifest image_id does not begin with the name of its site",
    ),
    ("image_id", 1, f"chexpert:{CANARY}", "image_id does not begin with the name of its site and a colon."),
    ("image_id", 1, "mimic_cxr:", "image_id does not begin"),
    ("patient_id", 1, f"mimic_cxr {CANARY}", "patient_id does not begin"),
    ("study_id", 1, CANARY, "study_id does not begin"),
    ("subject_id", 1, np.nan, "Column subject_id of the manifest is missing in 1 of 4 rows."),
    (
        "subject_id",
        1,
        f"mimic_cxr:{CANARY}9",
        "subject_kind is patient and subject_id is not the patient_id.",
    ),
    ("patient_id", 1, np.nan, "subject_kind is patient and subject_id is not the patient_id."),
    (
        "site",
        1,
        "mimic",
        "Column site of the manifest holds 'mimic' in 1 rows; allowed is mimic_cxr, chexpert,",
    ),
    ("subject_kind", 1, "person", "holds 'person' in 1 rows; allowed is patient, lesion, case, image."),
    (
        "split",
        1,
        "val",
        "Column split of the manifest holds 'val' in 1 rows; allowed is train, validation, test.",
    ),
    ("split", 1, np.nan, "Column split of the manifest is missing in 1 of 4 rows."),
    (
        "file",
        1,
        f"files/p{CANARY}/0.jpg",
        "Column file of the manifest is there a second time in 1 of 4 rows.",
    ),
    ("file", 1, f"/data/{CANARY}.jpg", "is no posix path relative to the source's folder in 1 of 4 rows."),
    ("file", 1, f"..//{CANARY}.jpg", "is no posix path relative"),
    ("file", 1, f"p\\{CANARY}.jpg", "is no posix path relative"),
    ("file", 1, f"C:/{CANARY}.jpg", "is no posix path relative"),
    ("age", 1, 120.5, "Column age of the manifest is not between 0 and 120 years in 1 of 4 rows."),
    ("age", 1, -1.0, "Column age of the manifest is not between 0 and 120 years in 1 of 4 rows."),
    ("age", 1, np.inf, "Column age of the manifest is not between 0 and 120 years in 1 of 4 rows."),
    ("age_band", 1, ">=80", "In 1 of 4 rows of the manifest age_band is not the band of the age."),
    ("age_band", 2, "<40", "age_band is not the band of the age."),
    ("age_band", 1, np.nan, "age_band is not the band of the age."),
    ("sex", 1, "M", "Column sex of the manifest holds 'M' in 1 rows; allowed is female, male."),
    ("race", 1, np.nan, "Column race of the manifest is missing in 1 of 4 rows."),
    ("race", 1, "Black", "In 1 of 4 rows of the manifest race is not what race_recorded says."),
    ("race", 2, "White", "race is not what race_recorded says."),
    ("race_recorded", 1, "WHITE", "Column race_recorded of the manifest holds 'WHITE' in 1 rows"),
    ("insurance", 3, "Other", "insurance is not what insurance_recorded says."),
    ("insurance", 3, np.nan, "Column insurance of the manifest is missing"),
    (
        "skin_type",
        1,
        "I-II",
        "Column skin_type of the manifest is recorded, which chest images are not to be",
    ),
    ("view", 1, np.nan, "Column view of the manifest is missing"),
    (
        "view",
        1,
        "lateral",
        "Column view of the manifest holds 'lateral' in 1 rows; allowed is AP, PA, unknown.",
    ),
    ("edema", 1, 3, "Column edema of the manifest holds a code other than 1, 0, -1, -2 in 1 rows."),
    ("edema", 1, 0.5, "Column edema of the manifest holds a code other than 1, 0, -1, -2 in 1 rows."),
    ("edema", 1, "yes", "Column edema of the manifest holds something that is no number."),
    ("age", 1, f"{CANARY}Y", "Column age of the manifest holds something that is no number."),
    ("modality", 1, "skin", "modality is chest, skin; it must be one of chest, skin, fundus in all rows."),
]


@pytest.mark.parametrize(("column", "row", "value", "message"), BAD, ids=range(len(BAD)))
def test_a_breach_is_one_sentence_without_an_id(column, row, value, message):
    table = chest().astype({column: object})
    table.loc[row, column] = value
    with pytest.raises(InputError) as error:
        check_manifest(table)
    assert message in str(error.value)
    assert CANARY not in str(error.value)
    assert "\n" not in str(error.value)
    assert error.value.__cause__ is None


@pytest.mark.parametrize(
    ("make", "column", "value"),
    [
        *((skin, column, value) for column, value in
          (("race", "White"), ("race_recorded", "White"), ("insurance", "Other"), ("view", "unknown"))),
        *((fundus, column, value) for column, value in (("skin_type", "I-II"), ("view", "AP"))),
    ],
)  # fmt: skip
def test_what_a_modality_does_not_record(make, column, value):
    table = make().astype({column: object})
    table.loc[0, column] = value
    with pytest.raises(InputError, match=f"Column {column} of the manifest is recorded, which"):
        check_manifest(table)


def test_many_foreign_texts_are_not_listed():
    table = pd.concat([chest()] * 10, ignore_index=True)
    table["image_id"] = [f"mimic_cxr:{number}" for number in range(40)]
    table["sex"] = [f"{CANARY}{number}" for number in range(40)]
    with pytest.raises(InputError) as error:
        check_manifest(table)
    assert "Column sex of the manifest holds many texts in 40 rows" in str(error.value)
    assert CANARY not in str(error.value)


def test_other_columns_are_refused():
    table = chest()
    for other, message in (
        (table.drop(columns="view"), "The manifest has no column view; needed are image_id, "),
        (table.drop(columns="edema"), "has no column edema; the columns for chest are"),
        (table.assign(extra=1), "has the unknown column extra; the columns for chest are"),
        (
            table[["site", *table.columns.drop("site")]],
            "has its columns out of order; the columns for chest are",
        ),
        (table.iloc[:0], "The manifest has no row"),
    ):
        with pytest.raises(InputError) as error:
            check_manifest(other)
        assert message in str(error.value)


# --- the file


@pytest.mark.parametrize("make", [chest, skin, fundus], ids=lambda make: make.__name__)
def test_what_is_written_is_read_again(make, tmp_path):
    path = tmp_path / "site.parquet"
    write_manifest(make(), path)
    read = read_manifest_file(path)
    pd.testing.assert_frame_equal(read, check_manifest(make()))
    assert [file.name for file in tmp_path.iterdir()] == ["site.parquet"]
    part = read_manifest_file(path, columns=["split", "image_id"])
    pd.testing.assert_frame_equal(part, read[["split", "image_id"]])
    empty = read_manifest_file(path, columns=["file"])
    assert empty["file"].isna().tolist() == make()["file"].isna().tolist()


def test_the_same_rows_give_the_same_bytes(tmp_path):
    paths = [tmp_path / name for name in ("a", "b", "c")]
    write_manifest(chest(), paths[0])
    write_manifest(check_manifest(chest()), paths[1])
    write_manifest(read_manifest_file(paths[0]).astype(object), paths[2])
    digests = {hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    assert len(digests) == 1


def test_categories_are_stored_as_such_with_all_levels(tmp_path):
    import pyarrow.parquet

    write_manifest(chest(), tmp_path / "m")
    table = pyarrow.parquet.read_table(tmp_path / "m")
    for name in LEVELS:
        column = table.column(name).combine_chunks()
        assert column.dictionary.to_pylist() == list(LEVELS[name]), name
    assert str(table.schema.field("edema").type) == "int8"
    assert pyarrow.parquet.ParquetFile(tmp_path / "m").metadata.row_group(0).column(0).compression == "ZSTD"


def test_nothing_half_written_is_left(tmp_path, monkeypatch):
    import pyarrow.parquet

    path = tmp_path / "m"
    write_manifest(chest(), path)
    before = path.read_bytes()

    def stop(table, where, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(pyarrow.parquet, "write_table", stop)
    with pytest.raises(KeyboardInterrupt):
        write_manifest(chest().iloc[:2], path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["m"]


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match=r"The manifest 'm' cannot be written \(no such file or directory\)"):
        write_manifest(chest(), tmp_path / "none" / "m")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not parquet" * 100])
def test_a_damaged_file_is_one_sentence(content, tmp_path):
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(InputError, match=r"'m' cannot be read as a manifest \(\w+\); make it again"):
        read_manifest_file(tmp_path / "m")


def test_a_file_cut_in_the_middle_is_one_sentence(tmp_path):
    write_manifest(chest(), tmp_path / "m")
    content = (tmp_path / "m").read_bytes()
    (tmp_path / "m").write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match="cannot be read as a manifest"):
        read_manifest_file(tmp_path / "m")


def test_other_files_and_columns_are_refused(tmp_path):
    with pytest.raises(InputError, match="There is no manifest 'm'; make it with: frame data build"):
        read_manifest_file(tmp_path / "m")
    chest().to_parquet(tmp_path / "m")
    with pytest.raises(InputError, match="has not the columns of a manifest of this version"):
        read_manifest_file(tmp_path / "m")
    write_manifest(skin(), tmp_path / "m")
    with pytest.raises(InputError, match="'m' has no column edema; it has image_id, "):
        read_manifest_file(tmp_path / "m", columns=["edema"])


def test_pyarrow_may_be_missing(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        InputError, match=r"needs pyarrow; install it with: pip install 'frame-audit\[study\]'"
    ):
        write_manifest(chest(), tmp_path / "m")

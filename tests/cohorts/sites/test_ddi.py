"""DDI: the released header, files, and texts that are no label."""

from pathlib import Path

import pytest

from frame.cohorts.sites.contract import ROW_COLUMNS, SiteFiles
from frame.cohorts.sites.ddi import read_rows
from frame.errors import InputError

SYNTHETIC = (
    Path(__file__).resolve().parents[4]
    / "shared" / "data" / "real" / "metadata" / "synthetic" / "ddi_metadata.csv"
)  # fmt: skip
HEADER = ",DDI_ID,DDI_file,skin_tone,malignant,disease\n"


def read(folder, text, *, images=False):
    path = folder / "ddi_metadata.csv"
    path.write_text(text, encoding="utf-8")
    return read_rows(SiteFiles("ddi", folder, None, {"table": path}, images=images))


@pytest.mark.skipif(not SYNTHETIC.is_file(), reason="the synthetic raw tables are not beside the repository")
def test_the_synthetic_table():
    rows = read_rows(SiteFiles("ddi", SYNTHETIC.parent, None, {"table": SYNTHETIC}, images=False))
    assert len(rows.table) == 24
    assert tuple(rows.table.columns) == (*ROW_COLUMNS, "malignant")
    assert rows.table["skin_type"].value_counts().to_dict() == {"I-II": 8, "III-IV": 8, "V-VI": 8}
    assert rows.table["malignant"].value_counts().to_dict() == {0: 18, 1: 6}
    assert rows.left_out.empty
    assert rows.tally.groupby("field")["n_images"].sum().to_dict() == {"malignant": 24, "skin_type": 24}


@pytest.mark.parametrize(("true", "false"), [("TRUE", "FALSE"), ("True", "False"), (" true ", "false")])
def test_labels_and_cases(tmp_path, true, false):
    table = read(tmp_path, HEADER + f"0,2,000002.png,12,{true},x\n1,1,000001.png,56,{false},x\n").table
    assert table["image_id"].tolist() == ["1", "2"]
    assert table["malignant"].tolist() == [0, 1]
    assert table["skin_type"].tolist() == ["V-VI", "I-II"]
    assert table["subject_id"].tolist() == ["1", "2"]
    assert set(table["subject_kind"]) == {"case"}
    assert table[["patient_id", "age", "sex", "race_recorded", "view"]].isna().all(axis=None)


@pytest.mark.parametrize("folder", ["", "images/", "a/b/"])
def test_files_beside_the_table_or_in_a_folder(tmp_path, folder):
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / folder / "000002.png").touch()
    table = read(
        tmp_path, HEADER + "0,2,000002.png,12,True,x\n1,1,000001.png,56,False,x\n", images=True
    ).table
    assert table["file"].fillna("-").tolist() == ["-", f"{folder}000002.png"]


def test_an_unknown_skin_tone_is_missing_and_counted(tmp_path):
    rows = read(tmp_path, HEADER + "0,1,1.png,,True,x\n1,2,2.png,78,False,x\n")
    assert rows.table["skin_type"].isna().all()
    tally = rows.tally[rows.tally["field"] == "skin_type"]
    assert tally[["recorded", "n_images"]].to_numpy().tolist() == [["(blank)", 1], ["(text with digits)", 1]]


BAD = {
    "a label": (HEADER + "0,1,1.png,12,yes,x\n", "column malignant is none of true, false in 1 of 1 rows"),
    "a blank label": (HEADER + "0,1,1.png,12,,x\n", "column malignant is none of true, false in 1 of 1 rows"),
    "an id twice": (
        HEADER + "0,1,1.png,12,True,x\n0,1,2.png,12,True,x\n",
        "have the DDI_ID of an earlier row",
    ),
    "a file twice": (
        HEADER + "0,1,1.png,12,True,x\n0,2,1.png,12,True,x\n",
        "have the DDI_file of an earlier row",
    ),
    "no column": ("DDI_ID,DDI_file\n1,1.png\n", "has no column skin_tone, malignant"),
    "no row": (HEADER, "has no row"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_damaged_table_is_one_sentence(tmp_path, name):
    text, message = BAD[name]
    with pytest.raises(InputError) as error:
        read(tmp_path, text)
    assert message in str(error.value)

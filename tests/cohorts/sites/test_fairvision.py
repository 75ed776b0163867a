"""Harvard-FairVision: the released header, folders as the split, files of other diseases."""

from pathlib import Path

import pytest

from frame.cohorts.sites.contract import ROW_COLUMNS, SiteFiles
from frame.cohorts.sites.fairvision import read_rows
from frame.errors import InputError

SYNTHETIC = (
    Path(__file__).resolve().parents[4]
    / "shared" / "data" / "real" / "metadata" / "synthetic" / "fairvision_data_summary_glaucoma.csv"
)  # fmt: skip
HEADER = "filename,age,gender,race,ethnicity,language,maritalstatus,md,glaucoma,use\n"
ROWS = (
    "data_2.npz,63.9,Female,White,Non-Hispanic,English,Single,-1.5,yes,training\n"
    "data_1.npz,25.1,Male,Black or African American,Hispanic,English,Single,0.5,no,validation\n"
    "data_3.npz,0,male,Asian,Unknown,English,Single,,No,Test\n"
)


def read(folder, text, *, images=False):
    path = folder / "data_summary_glaucoma.csv"
    path.write_text(text, encoding="utf-8")
    return read_rows(SiteFiles("fairvision", folder, None, {"table": path}, images=images))


@pytest.mark.skipif(not SYNTHETIC.is_file(), reason="the synthetic raw tables are not beside the repository")
def test_the_synthetic_table():
    rows = read_rows(SiteFiles("fairvision", SYNTHETIC.parent, None, {"table": SYNTHETIC}, images=False))
    assert len(rows.table) == 24
    assert tuple(rows.table.columns) == (*ROW_COLUMNS, "glaucoma")
    assert rows.table["race_recorded"].value_counts().to_dict() == {"White": 12, "Asian": 6, "Black": 6}
    assert rows.table["ethnicity"].value_counts().to_dict() == {"non-Hispanic": 12, "Hispanic": 5}
    assert rows.table["sex"].value_counts().to_dict() == {"female": 12, "male": 12}
    assert rows.table["glaucoma"].value_counts().to_dict() == {0: 12, 1: 12}
    fields = rows.tally.groupby("field")["n_images"].sum().to_dict()
    assert fields == dict.fromkeys(["age", "ethnicity", "glaucoma", "race", "sex"], 24)


def test_rows(tmp_path):
    table = read(tmp_path, HEADER + ROWS).table
    assert table["image_id"].tolist() == ["data_1", "data_2", "data_3"]
    assert table["patient_id"].tolist() == table["subject_id"].tolist() == table["image_id"].tolist()
    assert set(table["subject_kind"]) == {"patient"}
    assert table["released_split"].tolist() == ["validation", "train", "test"]
    assert table["age"].tolist() == [25.1, 63.9, 0]
    assert table["sex"].tolist() == ["male", "female", "male"]
    assert table["race_recorded"].tolist() == ["Black", "White", "Asian"]
    assert table["ethnicity"].fillna("-").tolist() == ["Hispanic", "non-Hispanic", "-"]
    assert table["glaucoma"].tolist() == [0, 1, 0]
    assert table["file"].isna().all()


def made(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


@pytest.mark.parametrize("part", ["", "Glaucoma/"])
@pytest.mark.parametrize("case", [str.capitalize, str.lower])
def test_files_in_the_folders_of_the_release(tmp_path, part, case):
    folder = part + case("training")
    # The parts on other diseases have files of the same names.
    made(tmp_path, f"{folder}/data_2.npz", "AMD/Training/data_2.npz", "DR/Test/data_1.npz")
    table = read(tmp_path, HEADER + ROWS, images=True).table
    assert table["file"].fillna("-").tolist() == ["-", f"{folder}/data_2.npz", "-"]


def test_a_file_in_another_folder_than_the_table_says(tmp_path):
    made(tmp_path, "Glaucoma/Test/data_2.npz", "Glaucoma/Validation/data_1.npz")
    with pytest.raises(
        InputError, match="1 of 2 images lie in the folder of another use than the table says"
    ):
        read(tmp_path, HEADER + ROWS, images=True)


BAD = {
    "a use": (
        HEADER + ROWS.replace("validation", "val"),
        "use is none of training, validation, test in 1 of 3 rows",
    ),
    "a label": (
        HEADER + ROWS.replace(",yes,", ",maybe,"),
        "column glaucoma is none of yes, no in 1 of 3 rows",
    ),
    "a patient twice": (HEADER + ROWS * 2, "3 of 6 rows have the filename of an earlier row"),
    "no column": ("filename,age\na,1\n", "has no column gender, race, ethnicity, glaucoma, use"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_damaged_table_is_one_sentence(tmp_path, name):
    text, message = BAD[name]
    with pytest.raises(InputError) as error:
        read(tmp_path, text)
    assert message in str(error.value)
    assert "data_2" not in str(error.value)

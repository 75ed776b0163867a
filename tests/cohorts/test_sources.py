"""The registries: complete, consistent with each other and with the readers, and files found by pattern."""

import importlib.util
import shutil
from pathlib import Path

import pytest

from frame.cohorts.sites import SITES, site_module
from frame.cohorts.sources import PACKAGED_SOURCES, find_files, source_files, sources
from frame.errors import InputError
from frame.tables import load_table

SYNTHETIC = Path(__file__).resolve().parents[3] / "shared" / "data" / "real" / "metadata" / "synthetic"
KEYS = {
    "mimic_cxr": ("metadata", "labels", "split", "patients", "admissions", "images", "reports_folder"),
    "chexpert": ("train", "valid", "demographics", "plus", "images"),
    "nih_cxr14": ("entries", "train_val_list", "test_list", "images"),
    "padchest": ("labels", "images"),
    "vindr_cxr": ("train_labels", "test_labels", "tags", "images"),
    "vindr_pcxr": ("train_labels", "test_labels", "tags", "images"),
    "ddi": ("table", "images"),
    "fitzpatrick17k": ("table", "images"),
    "isic_2019": ("truth", "metadata", "images"),
    "fairvision": ("table", "images"),
}


def made(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return folder


# --- the registries


def test_every_source_has_its_row_its_files_and_its_module():
    assert tuple(sources()) == SITES
    assert {name: tuple(file.key for file in source_files(name)) for name in SITES} == KEYS
    assert set(load_table("image_source_files")["source"]) == set(SITES)
    for name in SITES:
        assert importlib.util.find_spec(f"frame.cohorts.sites.{name}") is not None


def test_rows_agree_with_the_papers_table_1():
    table = load_table("paper_table1").dropna(subset=["reference"])
    printed = dict(zip(table["reference"].astype(str), table["row"], strict=True))
    assert len(printed) == len(sources())
    for source in sources().values():
        # Two articles each on MIMIC and on ISIC; Table 1 prints one of them.
        numbers = source.cites.strip("[]").split("] and [")
        (row,) = [printed[number] for number in numbers if number in printed]
        assert row in source.title


def test_who_records_race_and_insurance():
    """The paper: race and insurance at two of the six chest sites; no patients in the VinDr sets."""
    chest = [source for source in sources().values() if source.modality == "chest"]
    for field in ("race", "insurance"):
        assert [source.name for source in chest if source.records[field] != "no"] == ["mimic_cxr", "chexpert"]
    assert [source.name for source in chest if source.records["patient"] == "no"] == [
        "vindr_cxr",
        "vindr_pcxr",
    ]
    assert [s.name for s in sources().values() if s.records["ethnicity"] == "yes"] == [
        "chexpert",
        "fairvision",
    ]
    assert [s.name for s in sources().values() if s.records["skin_type"] == "yes"] == [
        "ddi",
        "fitzpatrick17k",
    ]


def test_who_needs_credentials():
    """The paper's data statement."""
    needed = {source.name: source.credential for source in sources().values()}
    assert {name for name, need in needed.items() if need == "credentialed"} == {
        *("mimic_cxr", "vindr_cxr", "vindr_pcxr"),
    }
    assert {name for name, need in needed.items() if need == "none"} == {
        *("nih_cxr14", "isic_2019", "fitzpatrick17k"),
    }


def test_plain_and_compressed_names_are_both_there():
    for name in SITES:
        for file in source_files(name):
            tables = [pattern for pattern in file.patterns if pattern.endswith((".csv", ".csv.gz", ".txt"))]
            for base in {pattern.removesuffix(".gz") for pattern in tables}:
                assert {base, f"{base}.gz"} <= set(file.patterns), (name, file.key, base)


def test_a_spreadsheet_saved_as_csv_is_found_in_its_place(tmp_path):
    """What the sentence about a spreadsheet asks for must be enough, wherever the spreadsheet lay."""
    (file,) = [file for file in source_files("chexpert") if file.key == "demographics"]
    sheets = [pattern for pattern in file.patterns if pattern.endswith(".xlsx")]
    assert len(sheets) == 4
    for at, sheet in enumerate(sheets):
        saved = sheet.replace("*", "CheXpert-v1.0").replace(".xlsx", ".csv")
        root = made(tmp_path / str(at), "train.csv", saved)
        found = find_files("chexpert", root, None, lists_needed=False)
        assert found.paths["demographics"] == root / saved


def test_an_unknown_source_is_refused():
    for function in (source_files, site_module):
        with pytest.raises(InputError, match="There is no source 'mimic'; the sources are mimic_cxr, "):
            function("mimic")
    with pytest.raises(InputError, match="There is no source 'mimic'"):
        find_files("mimic", None, None, lists_needed=False)


# --- finding files


def test_the_first_pattern_wins(tmp_path):
    made(tmp_path, "Data_Entry_2017.csv", "Data_Entry_2017_v2020.csv.gz")
    found = find_files("nih_cxr14", tmp_path, None, lists_needed=False)
    assert found.paths == {"entries": tmp_path / "Data_Entry_2017_v2020.csv.gz"}
    assert (found.missing, found.images) == ((), None)
    made(tmp_path, "Data_Entry_2017_v2020.csv")
    found = find_files("nih_cxr14", tmp_path, None, lists_needed=False)
    assert found.paths["entries"].name == "Data_Entry_2017_v2020.csv"


def test_lists_are_missing_only_where_the_released_split_is_used(tmp_path):
    made(tmp_path, "Data_Entry_2017_v2020.csv", "test_list.txt.gz", "images_001/images/a.png")
    found = find_files("nih_cxr14", tmp_path, None, lists_needed=False)
    assert (list(found.paths), found.missing) == (["entries", "test_list"], ())
    assert found.images == tmp_path / "images_001"
    found = find_files("nih_cxr14", tmp_path, None, lists_needed=True)
    assert [(file.key, file.root) for file in found.missing] == [("train_val_list", "main")]
    assert found.missing[0].patterns[0] == "train_val_list.txt"
    assert found.missing[0].holds == "image names of training and validation together"


def test_a_linked_release(tmp_path):
    cxr, mimic = tmp_path / "cxr", tmp_path / "mimic"
    made(
        cxr,
        *(f"mimic-cxr-2.0.0-{name}.csv.gz" for name in ("metadata", "chexpert", "split")),
        "files/p10/a.jpg",
    )
    found = find_files("mimic_cxr", cxr, None, lists_needed=False)
    assert [(file.key, file.root) for file in found.missing] == [
        ("patients", "linked"),
        ("admissions", "linked"),
    ]
    # Not in the other folder: MIMIC-IV has its own root.
    made(cxr, "hosp/patients.csv.gz")
    assert len(find_files("mimic_cxr", cxr, None, lists_needed=False).missing) == 2
    made(mimic, "hosp/patients.csv.gz", "admissions.csv")
    found = find_files("mimic_cxr", cxr, mimic, lists_needed=True)
    assert found.missing == ()
    assert found.paths["patients"] == mimic / "hosp" / "patients.csv.gz"
    assert found.paths["admissions"] == mimic / "admissions.csv"
    assert found.images == cxr / "files"


def test_either_folder(tmp_path):
    main, linked = made(tmp_path / "main", "train.csv", "CHEXPERT DEMO.xlsx"), tmp_path / "linked"
    found = find_files("chexpert", main, None, lists_needed=False)
    assert found.paths["demographics"] == main / "CHEXPERT DEMO.xlsx"
    made(linked, "CHEXPERT_DEMO.xlsx", "df_chexpert_plus_240401.csv")
    found = find_files("chexpert", main, linked, lists_needed=False)
    assert found.paths["demographics"] == linked / "CHEXPERT_DEMO.xlsx"
    assert found.paths["plus"].parent == linked


def test_two_matches_of_one_pattern_are_refused(tmp_path):
    made(tmp_path, "CheXpert-v1.0/train.csv", "CheXpert-v1.0-small/train.csv")
    with pytest.raises(InputError) as error:
        find_files("chexpert", tmp_path, None, lists_needed=False)
    assert str(error.value).startswith(
        "Source chexpert: 2 files match CheXpert-v1.0*/train.csv (training images "
    )


def test_folders_and_hidden_files_are_no_tables(tmp_path):
    (tmp_path / "ddi_metadata.csv").mkdir()
    made(tmp_path, ".trash/ddi_metadata.csv", "sub/._ddi_metadata.csv")
    found = find_files("ddi", tmp_path, None, lists_needed=False)
    # A hidden folder is looked into by no pattern of ours.
    assert [file.key for file in found.missing] == ["table"]


def test_a_folder_that_is_not_there(tmp_path):
    found = find_files("isic_2019", tmp_path / "none", None, lists_needed=False)
    assert [file.key for file in found.missing] == ["truth", "metadata"]


@pytest.mark.skipif(
    importlib.util.find_spec("torchxrayvision") is None,
    reason="the tables are not installed (make env installs them)",
)
def test_packaged_tables():
    keys = {"nih_cxr14": "entries", "chexpert": "train", "padchest": "labels"}
    assert set(keys) == set(PACKAGED_SOURCES)
    for source, key in keys.items():
        found = find_files(source, None, None, lists_needed=False)
        assert list(found.paths) == [key]
        assert found.missing == ()
        assert found.images is None
    missing = find_files("nih_cxr14", None, None, lists_needed=True).missing
    assert [file.key for file in missing] == ["train_val_list", "test_list"]


def test_what_no_package_holds():
    with pytest.raises(
        InputError, match="tables of ddi are in no installed package; package:torchxrayvision holds"
    ):
        find_files("ddi", None, None, lists_needed=False)


@pytest.mark.skipif(not SYNTHETIC.is_dir(), reason="the synthetic raw tables are not beside the repository")
def test_the_released_names_are_found(tmp_path):
    for name in ("mimic-cxr-2.0.0-metadata.csv", "mimic-cxr-2.0.0-chexpert.csv", "mimic-cxr-2.0.0-split.csv"):
        shutil.copy(SYNTHETIC / name, tmp_path)
    shutil.copy(SYNTHETIC / "PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv", tmp_path)
    for name in ("ddi_metadata.csv", "df_chexpert_plus_240401.csv", "chexpert_demo.csv"):
        shutil.copy(SYNTHETIC / name, tmp_path)
    found = [
        find_files(source, tmp_path, None, lists_needed=False).paths
        for source in ("mimic_cxr", "padchest", "ddi", "chexpert")
    ]
    assert [list(paths) for paths in found] == [
        ["metadata", "labels", "split"], ["labels"], ["table"], ["demographics", "plus"],
    ]  # fmt: skip

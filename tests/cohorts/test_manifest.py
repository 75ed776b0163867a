"""Manifests: what every source gets in the same way."""

import pandas as pd
import pytest
from raw_nih import write_profile, write_release

from frame.cohorts.manifest import SPLITS, build_manifest, located_files, split_rule
from frame.cohorts.schema import BASE_COLUMNS, FINDINGS
from frame.cohorts.sources import sources
from frame.errors import InputError
from frame.workspace.profiles import load_profile
from frame.workspace.roots import source_roots


@pytest.fixture
def built(tmp_path):
    """Build the manifest of a small release under a profile with these settings."""

    def build(root=tmp_path / "raw", seed=0, **settings):
        profile = load_profile(write_profile(tmp_path / "small.yml", root, **settings))
        one = profile.sources["nih_cxr14"]
        files = located_files("nih_cxr14", one, source_roots(profile, "nih_cxr14", tmp_path).root, None)
        return build_manifest(files, one, seed)

    write_release(tmp_path / "raw")
    return build


def test_every_source_has_a_rule_for_its_split():
    assert set(SPLITS) == set(sources())
    for name, about in sources().items():
        if about.released_split == "no":
            assert "released" not in SPLITS[name]


def test_ids_carry_the_site_and_rows_are_sorted(built):
    table = built().table
    assert list(table.columns) == [*BASE_COLUMNS, *FINDINGS["chest"]]
    assert len(table) == 60
    for column in ("image_id", "subject_id", "patient_id"):
        assert table[column].str.startswith("nih_cxr14:").all()
    assert table["image_id"].is_monotonic_increasing
    assert table["study_id"].isna().all()


def test_race_is_pooled_and_what_was_recorded_is_kept_apart(built):
    table = built().table
    assert (table["race"] == "Other").all()
    assert table["race_recorded"].isna().all()
    assert (table["insurance"] == "Other").all()
    assert table["insurance_recorded"].isna().all()


def test_the_released_split_and_a_seeded_tenth(built):
    table = built().table
    people = table.groupby("subject_id")["split"].unique()
    assert (people.map(len) == 1).all()
    assert table["split"].value_counts().to_dict() == {"train": 39, "test": 15, "validation": 6}
    other = built(seed=1).table
    assert (other["split"] == "test").equals(table["split"] == "test")
    assert not other["split"].equals(table["split"])


def test_a_hashed_split_needs_no_list(built, tmp_path):
    for name in ("train_val_list.txt", "test_list.txt"):
        (tmp_path / "raw" / name).unlink()
    with pytest.raises(
        InputError, match=r"not found: train_val_list\.txt .*; test_list\.txt .*`frame data check`"
    ):
        built()
    assert built(split="hashed").table["split"].notna().all()


def test_what_cannot_be_split_that_way():
    assert split_rule("padchest", "default") == "hashed"
    with pytest.raises(InputError, match="padchest cannot have split: released; allowed are default"):
        split_rule("padchest", "released")
    with pytest.raises(InputError, match="ddi cannot have split: hashed; allowed are default"):
        split_rule("ddi", "hashed")


def test_images_without_a_file_are_counted(built, tmp_path):
    for name in sorted((tmp_path / "raw" / "images").iterdir())[:7]:
        name.unlink()
    manifest = built()
    assert len(manifest.table) == 53
    assert manifest.left_out.to_dict("records") == [{"reason": "no image file", "n_images": 7}]
    assert len(built(images="false").table) == 60


def test_the_split_does_not_depend_on_which_files_are_there(built, tmp_path):
    before = built().table.set_index("image_id")["split"]
    for name in sorted((tmp_path / "raw" / "images").iterdir())[::3]:
        name.unlink()
    after = built().table.set_index("image_id")["split"]
    pd.testing.assert_series_equal(after, before[after.index])


def test_images_in_no_list_are_counted(built, tmp_path):
    path = tmp_path / "raw" / "test_list.txt"
    path.write_text("\n".join(path.read_text().split("\n")[3:]), encoding="utf-8")
    manifest = built()
    assert manifest.left_out.to_dict("records") == [
        {"reason": "in none of the released lists", "n_images": 3}
    ]


def test_an_image_in_no_list_and_without_a_file_is_counted_once(built, tmp_path):
    path = tmp_path / "raw" / "test_list.txt"
    names = path.read_text().split("\n")
    path.write_text("\n".join(names[3:]), encoding="utf-8")
    for name in names[1:5]:
        next((tmp_path / "raw").rglob(name)).unlink()
    manifest = built()
    assert manifest.left_out.to_dict("records") == [
        {"reason": "in none of the released lists", "n_images": 3},
        {"reason": "no image file", "n_images": 2},
    ]
    assert len(manifest.table) == 55


def test_no_image_at_all_is_a_sentence(built, tmp_path):
    for name in (tmp_path / "raw" / "images").iterdir():
        name.unlink()
    with pytest.raises(InputError, match="no image is left; 60 images: no image file"):
        built()


def test_a_patient_in_two_splits_is_an_error_without_ids(built, tmp_path):
    lists = {key: tmp_path / "raw" / f"{key}_list.txt" for key in ("train_val", "test")}
    names = lists["train_val"].read_text().split("\n")
    moved = [name for name in names if name.endswith("_000.png")][:2]
    lists["train_val"].write_text("\n".join(name for name in names if name not in moved), encoding="utf-8")
    lists["test"].write_text("\n".join([*lists["test"].read_text().split("\n"), *moved]), encoding="utf-8")
    with pytest.raises(InputError, match="2 ") as refused:
        built()
    said = str(refused.value)
    assert "nih_cxr14" in said
    assert "test" in said
    assert "0000000" not in said


def test_ids_that_look_alike_are_kept_apart_and_counted(built, tmp_path):
    path = tmp_path / "raw" / "Data_Entry_2017_v2020.csv"
    assert "alike" not in str(built().tally["recorded"].tolist())
    text = path.read_text()
    first = next(line for line in text.splitlines() if line.startswith("00000001_002.png"))
    path.write_text(text.replace(first, ",".join([*first.split(",")[:3], "01", *first.split(",")[4:]])))
    tally = built().tally
    alike = tally[tally["recorded"].str.contains("alike")]
    assert alike["n_images"].tolist() == [2] * len(alike)
    assert len(alike) > 0


def test_a_root_that_is_not_there(built, tmp_path):
    with pytest.raises(InputError, match="its root is no folder that is there"):
        built(root=tmp_path / "elsewhere")


def test_text_of_a_manifest_holds_no_row(built):
    assert "0000000" not in repr(built())

"""The sum over the files of a release: what changes it, and what does not."""

import os
from types import SimpleNamespace

import pytest

from frame.cohorts.release_folder import ReleaseFolder


@pytest.fixture
def raw(tmp_path):
    folder = tmp_path / "raw"
    (folder / "images").mkdir(parents=True)
    (folder / "images" / "a.png").write_text("a")
    return folder


def names(folder, workspace="nowhere"):
    return ReleaseFolder(folder).names(SimpleNamespace(root=folder / workspace))


def times(folder, workspace="nowhere"):
    return ReleaseFolder(folder).names_and_times(SimpleNamespace(root=folder / workspace))


def test_a_file_that_comes_changes_both(raw):
    before = names(raw), times(raw)
    (raw / "images" / "b.png").write_text("b")
    assert (names(raw) != before[0], times(raw) != before[1]) == (True, True)


def test_a_file_that_is_written_again_changes_one(raw):
    before = names(raw), times(raw)
    os.utime(raw / "images" / "a.png", (1, 1))
    assert (names(raw) != before[0], times(raw) != before[1]) == (False, True)


def test_the_workspace_in_the_folder_plays_no_part(raw):
    (raw / "workspace").mkdir()
    before = times(raw, "workspace")
    (raw / "workspace" / "made").write_text("made")
    assert times(raw, "workspace") == before
    assert times(raw) != before


def test_links_in_a_circle_and_to_nothing_end(raw):
    """To the folder above, to itself, to nothing; and among twenty folders that all hold each other."""
    (raw / "loop").symlink_to(raw)
    (raw / "self").symlink_to("self")
    (raw / "nothing").symlink_to("nowhere-at-all")
    for one in range(20):
        (raw / f"d{one}").mkdir()
        for other in range(20):
            (raw / f"d{one}" / f"l{other}").symlink_to(raw / f"d{other}")
    assert names(raw) == names(raw)
    before = times(raw)
    (raw / "d3" / "new.png").write_text("new")
    assert times(raw) != before


def test_two_names_are_not_one_with_a_line_end(raw):
    (raw / "a\nb").write_text("")
    one = names(raw)
    (raw / "a\nb").unlink()
    (raw / "a").write_text("")
    (raw / "b").write_text("")
    assert names(raw) != one


def test_no_folder_has_no_sum(raw):
    assert names(raw / "nowhere") is None
    assert names(raw / "images" / "a.png") is None

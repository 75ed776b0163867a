"""Listing the files of a release: patterns, doubles, hidden forks, links, and presence folder by folder."""

import os

import numpy as np
import pandas as pd
import pytest

from frame.cohorts import listing
from frame.cohorts.listing import files_under, present
from frame.errors import InputError


@pytest.fixture
def release(tmp_path):
    for path in (
        "images_001/images/b.png",
        "images_002/images/a.png",
        "images_002/images/._a.png",
        "images_002/notes.txt",
        "images_002/images/deep/c.png",
        "images_002/images/folder.png/d.txt",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"x")
    return tmp_path


def test_patterns_find_files_sorted_by_path(release):
    found = files_under(release, ["images_*/images/*.png"])
    assert list(found.items()) == [("b.png", "images_001/images/b.png"), ("a.png", "images_002/images/a.png")]
    assert files_under(release, ["images_002/*.txt"]) == {"notes.txt": "images_002/notes.txt"}
    assert files_under(release, ["images_001/images/b.png", "images_00[13]/*/?.png"]) == {
        "b.png": "images_001/images/b.png"
    }
    assert files_under(release, ["images_001/images/absent.png", "nowhere/*.png"]) == {}


def test_two_stars_are_any_number_of_folders(release):
    assert set(files_under(release, ["**/*.png"])) == {"a.png", "b.png", "c.png"}
    assert set(files_under(release, ["images_002/**/*.png"])) == {"a.png", "c.png"}
    assert set(files_under(release, ["images_002/**"])) == {"a.png", "c.png", "d.txt", "notes.txt"}


def test_forks_that_begin_with_a_dot_are_no_images(release):
    assert "._a.png" not in files_under(release, ["**/*.png"])
    assert files_under(release, ["images_002/images/._*.png"]) == {"._a.png": "images_002/images/._a.png"}


def test_upper_and_lower_case_differ(release):
    assert files_under(release, ["images_*/images/*.PNG"]) == {}


def test_a_name_in_two_folders_is_an_error_with_counts_only(release):
    (release / "images_001/images/a.png").write_bytes(b"y")
    with pytest.raises(InputError) as caught:
        files_under(release, ["images_*/images/*.png"])
    assert str(caught.value).startswith("1 of 3 files under")
    assert "a.png" not in str(caught.value)


def test_links_are_followed_but_not_in_circles(release):
    (release / "linked").symlink_to(release / "images_001")
    (release / "images_001/images/up").symlink_to(release)
    (release / "images_001/images/broken.png").symlink_to(release / "absent.png")
    assert files_under(release, ["linked/images/*.png"]) == {"b.png": "linked/images/b.png"}
    assert "b.png" in files_under(release, ["images_001/**/b.png"])


@pytest.mark.parametrize("pattern", ["/etc/*", "../*.png", ""])
def test_a_pattern_stays_in_the_release(release, pattern):
    with pytest.raises(InputError, match="must be a relative path"):
        files_under(release, [pattern])


def test_presence_of_files(release):
    (release / "images_001/images/link.png").symlink_to(release / "images_002/images/a.png")
    (release / "images_001/images/broken.png").symlink_to(release / "absent.png")
    (release / "top.png").write_bytes(b"x")
    files = pd.Series(
        {
            "images_002/images/a.png": True,
            None: False,
            "images_001/images/b.png": True,
            "images_001/images/a.png": False,
            "images_001/images/link.png": True,
            "images_001/images/broken.png": False,
            "images_002/images/folder.png": False,
            "images_002/notes.txt/a.png": False,
            "nowhere/a.png": False,
            "top.png": True,
        }
    )
    asked = pd.Series(files.index, index=np.arange(len(files))[::-1])
    assert present(release, asked).tolist() == files.tolist()
    assert present(release, pd.Series([None, np.nan], dtype="str")).tolist() == [False, False]
    assert present(release, pd.Series([], dtype="str")).shape == (0,)


def test_each_folder_is_listed_once_and_no_file_is_asked_for(release, monkeypatch):
    listed = []
    scandir = os.scandir

    def noted(folder):
        listed.append(str(folder))
        return scandir(folder)

    def refused(*_, **__):
        raise AssertionError("a file was asked for alone")

    monkeypatch.setattr(listing.os, "scandir", noted)
    names = [f"images_00{k}/images/{name}.png" for name in "abcd" for k in (1, 2)]
    root = release
    monkeypatch.setattr(listing, "_check_root", lambda _: None)
    monkeypatch.setattr(os, "stat", refused)
    answers = present(root, pd.Series(names))
    monkeypatch.undo()
    assert answers.sum() == 2
    assert len(listed) == 2


@pytest.mark.parametrize("file", ["/etc/passwd", "../a.png", "a/../../b.png", "", "a\x00b"])
def test_a_file_stays_in_the_release(release, file):
    with pytest.raises(InputError, match="1 of 2 file names are blank or lead out") as caught:
        present(release, pd.Series(["a.png", file]))
    assert "passwd" not in str(caught.value)


def test_a_missing_release_is_one_sentence(tmp_path):
    for call in (
        lambda: files_under(tmp_path / "absent", ["*"]),
        lambda: present(tmp_path / "absent", pd.Series(["a"])),
    ):
        with pytest.raises(InputError, match="The folder 'absent' does not exist"):
            call()


def test_a_folder_that_cannot_be_listed_is_told(release, monkeypatch):
    def refused(_):
        raise PermissionError(13, "Permission denied", "secret name")

    monkeypatch.setattr(listing.os, "scandir", refused)
    with pytest.raises(InputError, match=r"cannot be listed \(permission denied\)") as caught:
        files_under(release, ["*.png"])
    assert "secret" not in str(caught.value)

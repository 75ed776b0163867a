"""Equal bytes under two ids: within a split counted, across splits an error without ids (bad_inputs 22)."""

import pandas as pd
import pytest

from frame.cohorts.identical_files import check_identical
from frame.errors import InputError


def tables(rows):
    """Rows of (image, digest, subject, split)."""
    table = pd.DataFrame(rows, columns=["image_id", "sha256", "subject_id", "split"])
    return table[["image_id", "sha256"]], table[["image_id", "subject_id", "split"]].sample(
        frac=1, random_state=0
    )


def test_different_files_are_no_copies():
    found = check_identical(*tables([("a", "1", "s", "train"), ("b", "2", "t", "test")]), site="nih_cxr14")
    assert (found.n_files, found.n_images, found.n_across_subjects) == (0, 0, 0)
    assert found.by_split.empty
    assert list(found.by_split.columns) == ["split", "n_files", "n_images"]


def test_copies_within_a_split_are_counted():
    index, manifest = tables(
        [
            ("a", "1", "s", "train"),
            ("b", "1", "s", "train"),
            ("c", "1", "t", "train"),
            ("d", "2", "u", "test"),
            ("e", "2", "u", "test"),
            ("f", "3", "v", "test"),
        ]
    )
    found = check_identical(index, manifest, site="isic_2019")
    assert (found.n_files, found.n_images, found.n_across_subjects, found.n_across_splits) == (2, 5, 1, 0)
    assert found.by_split.to_dict("records") == [
        {"split": "test", "n_files": 1, "n_images": 2},
        {"split": "train", "n_files": 1, "n_images": 3},
    ]


def test_copies_in_two_splits_are_an_error_without_ids():
    index, manifest = tables(
        [
            ("canary-1", "1", "s1", "train"),
            ("canary-2", "1", "s2", "test"),
            ("canary-3", "2", "s3", "train"),
            ("canary-4", "2", "s4", "validation"),
            ("canary-5", "2", "s5", "test"),
            ("canary-6", "3", "s6", "test"),
            ("canary-7", "3", "s7", "test"),
        ]
    )
    with pytest.raises(InputError) as caught:
        check_identical(index, manifest, site="fitzpatrick17k")
    assert str(caught.value) == (
        "fitzpatrick17k: 2 files stand under 5 image ids in more than one split: test and train (2), "
        "test and validation (1), train and validation (1); give the copies one subject, so that they share "
        "a split, leave all but one out, or set identical_files: count in the profile to have them counted "
        "only."
    )
    counted = check_identical(index, manifest, site="fitzpatrick17k", strict=False)
    assert (counted.n_files, counted.n_images, counted.n_across_splits) == (3, 7, 2)


def test_unreadable_files_are_no_copies_of_each_other():
    index, manifest = tables(
        [("a", "0", "s", "train"), ("b", "0", "t", "test"), ("c", "", "u", "test"), ("d", "", "v", "train")]
    )
    status = ["unreadable"] * 4
    assert check_identical(index.assign(status=status), manifest, site="ddi").n_files == 0
    with pytest.raises(InputError, match="1 file stands under 2 image ids"):
        check_identical(index, manifest, site="ddi")


def test_tables_that_do_not_belong_together_are_refused():
    index, manifest = tables([("a", "1", "s", "train"), ("b", "1", "s", "train")])
    with pytest.raises(InputError, match="ddi: 1 images whose file occurs more than once are in no split"):
        check_identical(index, manifest[manifest["image_id"] == "a"], site="ddi")
    with pytest.raises(InputError, match="the manifest has no column split"):
        check_identical(index, manifest.drop(columns="split"), site="ddi")

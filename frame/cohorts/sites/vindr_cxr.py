"""VinDr-CXR: 15,000 training images with three readers each, 3,000 test images with their consensus.

A finding of a training image is what two of its three readers marked, by any of the names that count for it
(one may have marked the rib and another the clavicle). The release has no patient: each image stands for
itself. No view is recorded. Sex and age stand only in the DICOM files; an age of 0 years is taken as
unknown.
"""

from __future__ import annotations

from typing import Final

import pandas as pd

from frame.cohorts import harmonise
from frame.cohorts.sites.contract import SiteFiles, SiteRows
from frame.cohorts.sites.dicom_tags import image_files, sex_and_age_texts
from frame.cohorts.sites.finding_codes import (
    codes_of_findings,
    label_tally,
    marks_by_finding,
    marks_by_name,
)
from frame.cohorts.sites.released_tables import (
    Columns,
    assembled,
    check_unique,
    left_out,
    needed_path,
    read_columns,
)
from frame.errors import InputError

__all__ = ["read_rows"]

SOURCE: Final = "vindr_cxr"
#: Readers of a training image, and how many of them make a finding.
READERS: Final = 3
MAJORITY: Final = 2


def read_rows(files: SiteFiles) -> SiteRows:
    """Read the images of VinDr-CXR.

    Parameters
    ----------
    files : SiteFiles
        ``train_labels``, ``test_labels``; optionally ``tags``.

    Returns
    -------
    SiteRows
        ``subject_id`` is the image itself. ``file`` is missing where no PNG or DICOM file of that name lies
        in the folders ``train`` and ``test``; PNG is preferred.

    Raises
    ------
    frame.InputError
        If a table is not as released, or an image has not three readers.
    """
    train, train_counts = _train(files)
    test, test_counts = _test(files)
    both = int(test.index.isin(train.index).sum())
    if both:
        raise InputError(f"{both:,} images of {SOURCE} are in the training and in the test labels.")
    image_ids = pd.Series([*train.index, *test.index], dtype="str")
    codes = pd.concat([train, test], ignore_index=True)
    texts, untagged = sex_and_age_texts(files, image_ids)
    sex = harmonise.sex(texts["PatientSex"])
    age = harmonise.ages(texts["PatientAge"], zero_is_unknown=True)
    columns: Columns = {
        "image_id": image_ids,
        "subject_id": image_ids,
        "subject_kind": "image",
        "file": image_files(files, image_ids),
        "released_split": pd.Series(["train"] * len(train) + ["test"] * len(test), dtype="str"),
        "age": age.values,
        "sex": sex.values,
        "view": "unknown",
    }
    both_counts = train_counts.add(test_counts, fill_value=0)
    counts = {str(name): int(count) for name, count in both_counts.items()}
    tallies = [sex.tally, age.tally, untagged, label_tally(SOURCE, counts)]
    return assembled(columns, codes, left_out(pd.Series(dtype="str")), tallies)


def _train(files: SiteFiles) -> tuple[pd.DataFrame, pd.Series]:
    """Codes by image from the majority of the readers, and images by name that a majority marked."""
    path = needed_path(files, "train_labels")
    table = read_columns(path, ("image_id", "rad_id"), others=True)
    check_unique(table, ["image_id", "rad_id"], path.name)
    readers = table.groupby("image_id").size()
    wrong = int((readers != READERS).sum())
    if wrong:
        raise InputError(
            f"{path.name}: {wrong:,} of {len(readers):,} images have not {READERS} readers; the table must "
            "be as released."
        )
    marks = marks_by_name(SOURCE, table.drop(columns=["image_id", "rad_id"]))
    by_name = marks.groupby(table["image_id"]).sum() >= MAJORITY
    by_finding = marks_by_finding(SOURCE, marks).groupby(table["image_id"]).sum() >= MAJORITY
    return codes_of_findings(by_finding), by_name.sum()


def _test(files: SiteFiles) -> tuple[pd.DataFrame, pd.Series]:
    """Codes by image from the consensus, and images by name."""
    path = needed_path(files, "test_labels")
    table = read_columns(path, ("image_id",), others=True)
    check_unique(table, ["image_id"], path.name)
    marks = marks_by_name(SOURCE, table.set_index("image_id"))
    return codes_of_findings(marks_by_finding(SOURCE, marks)), marks.sum()

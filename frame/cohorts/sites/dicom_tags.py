"""Sex, age and file of the images of the VinDr sources, which give none of them in a table.

The releases are DICOM files named by image, and sex and age are tags in them. A user may have taken the tags
out before (a table ``image_id, PatientSex, PatientAge``); otherwise they are read from the files, pixels
untouched. Where there is neither, both are missing. Images may also have been converted to PNG.
"""

from __future__ import annotations

import os
from typing import Final

import numpy as np
import pandas as pd

from frame.cohorts.listing import files_under
from frame.cohorts.sites.contract import SiteFiles
from frame.cohorts.sites.released_tables import check_linked, check_unique, counted, looked_up, read_columns
from frame.errors import InputError

__all__ = ["SUFFIXES", "image_files", "sex_and_age_texts"]

#: Suffixes of an image file; an earlier one is preferred where an image has two.
SUFFIXES: Final = (".png", ".dicom", ".dcm")
_DICOM: Final = (".dicom", ".dcm")
_TAGS: Final = ("PatientSex", "PatientAge")


def image_files(files: SiteFiles, image_ids: pd.Series, suffixes: tuple[str, ...] = SUFFIXES) -> pd.Series:
    """Where each image lies, in the folders ``train`` and ``test`` below the root.

    Parameters
    ----------
    files : SiteFiles
        The root, and whether images are looked for.
    image_ids : pandas.Series of str
        Names without suffix.
    suffixes : tuple of str
        Suffixes looked for, the preferred one first.

    Returns
    -------
    pandas.Series of str
        POSIX paths relative to the root; missing where no file has the name.
    """
    if not files.images or files.root is None:
        return pd.Series(np.nan, index=image_ids.index, dtype="str")
    patterns = [f"{folder}/*{suffix}" for folder in ("train", "test") for suffix in suffixes]
    found = files_under(files.root, patterns)
    # A later entry wins, so the preferred suffix comes last.
    by_image = {
        name.removesuffix(suffix): path
        for suffix in reversed(suffixes)
        for name, path in found.items()
        if name.endswith(suffix)
    }
    return image_ids.map(by_image).astype("str")


def sex_and_age_texts(files: SiteFiles, image_ids: pd.Series) -> tuple[pd.DataFrame, pd.DataFrame]:
    """``PatientSex`` and ``PatientAge`` of each image as recorded.

    Parameters
    ----------
    files : SiteFiles
        Optionally ``tags``; otherwise the DICOM files below the root.
    image_ids : pandas.Series of str
        Images.

    Returns
    -------
    texts, tally : pandas.DataFrame
        The two texts (missing where nothing is known), and images without tags, counted.

    Raises
    ------
    frame.InputError
        If the table of tags is not as described, a DICOM file cannot be read, or pydicom is not installed.
    """
    if "tags" in files.paths:
        path = files.paths["tags"]
        table = read_columns(path, ("image_id", *_TAGS))
        check_unique(table, ["image_id"], path.name)
        rows = looked_up(image_ids, table, "image_id")
        check_linked(rows["found"], path.name, "image_id")
        absent = "image not in the table of tags"
    else:
        rows = _from_files(files, image_ids)
        absent = "neither in a table of tags nor in a DICOM file that can be read"
    tally = counted("patient", absent, np.nan, int((~rows["found"]).sum()))
    return rows[list(_TAGS)], tally


def _from_files(files: SiteFiles, image_ids: pd.Series) -> pd.DataFrame:
    paths = image_files(files, image_ids, _DICOM)
    rows = pd.DataFrame(index=image_ids.index, columns=list(_TAGS), dtype="str")
    rows["found"] = paths.notna()
    if files.root is None or not rows["found"].any():
        return rows
    try:
        from pydicom import dcmread
        from pydicom.errors import InvalidDicomError
    except ImportError:
        raise InputError(
            f"Sex and age of {files.source} stand in its DICOM files, and reading them needs pydicom; "
            "install it with: pip install 'frame-audit[dicom]'."
        ) from None
    texts: dict[str, list[str]] = {tag: [] for tag in _TAGS}
    readable: list[bool] = []
    for path in paths.dropna():
        try:
            tags = dcmread(os.fspath(files.root / path), stop_before_pixels=True, specific_tags=list(_TAGS))
            found = [str(tags.get(tag) or "") for tag in _TAGS]
        except (InvalidDicomError, OSError, ValueError, AttributeError, EOFError):
            found = []
        readable.append(bool(found))
        for tag, text in zip(_TAGS, found or [""] * len(_TAGS), strict=True):
            texts[tag].append(text)
    if not any(readable):
        raise InputError(
            f"None of the {len(readable):,} DICOM files of {files.source} can be read; unpack the release "
            "again."
        )
    named = rows["found"].copy()
    for tag in _TAGS:
        rows.loc[named, tag] = texts[tag]
    rows.loc[named, "found"] = readable
    return rows

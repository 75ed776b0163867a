"""PadChest, from its one table of 160,000 images.

Frontal are the projections PA, AP and AP_horizontal (of a lying patient), the last two both AP. The table
has no age: the year of the study minus the year of birth stands for it, which may be a year too many.
Children stay in.

``Labels`` is a list written as text; its names are compared whole, after blanks around them are taken off.
Where it is blank, has no name, or says ``exclude`` (a report that does not describe the image), all findings
are missing; the image stays, and is counted. A name that the table of names does not know is tallied as not
listed.
"""

from __future__ import annotations

import ast
from typing import Final

import numpy as np
import pandas as pd

from frame.cohorts import harmonise
from frame.cohorts.listing import files_under
from frame.cohorts.sites.contract import SiteFiles, SiteRows
from frame.cohorts.sites.finding_codes import codes_from_names
from frame.cohorts.sites.released_tables import (
    Columns,
    assembled,
    check_filled,
    check_unique,
    counted,
    needed_path,
    only_frontal,
    read_columns,
    whole_numbers,
)
from frame.errors import InputError

__all__ = ["read_rows"]

SOURCE: Final = "padchest"
#: Where the images lie: in numbered folders, below the root or one folder deeper, or all in one.
IMAGES: Final = ("*.png", "*/*.png", "*/*/*.png")
#: How an empty cell is written in the released table, besides nothing at all.
EMPTY: Final = ("", "nan", "None")
#: The label of a report that does not describe the image.
EXCLUDE: Final = "exclude"
_COLUMNS: Final = (
    "ImageID",
    "StudyDate_DICOM",
    "StudyID",
    "PatientID",
    "PatientBirth",
    "PatientSex_DICOM",
    "Projection",
    "Pediatric",
    "Labels",
)


def read_rows(files: SiteFiles) -> SiteRows:
    """Read the frontal images of PadChest.

    Parameters
    ----------
    files : SiteFiles
        ``labels``.

    Returns
    -------
    SiteRows
        ``file`` is missing where no image of that name lies below the root.

    Raises
    ------
    frame.InputError
        If the table is not as released.
    """
    path = needed_path(files, "labels")
    images = read_columns(path, _COLUMNS)
    check_unique(images, ["ImageID"], path.name)
    images, views, excluded, view_tally = only_frontal(images, "Projection")
    check_filled(images, ["PatientID"], path.name)
    malformed = [text for text in images["Labels"].unique() if text not in EMPTY and _names(text) is None]
    if malformed:
        raise InputError(
            f"{path.name}: {int(images['Labels'].isin(malformed).sum()):,} of {len(images):,} cells of "
            "Labels are neither blank nor a list of texts such as ['normal']; the table must be as released."
        )
    coded = codes_from_names(SOURCE, images["Labels"], _parse)
    sex = harmonise.sex(_blank(images["PatientSex_DICOM"]))
    age = harmonise.ages(
        whole_numbers(_year_of_date(images["StudyDate_DICOM"]), "StudyDate_DICOM", path.name)
        - whole_numbers(_blank(images["PatientBirth"]), "PatientBirth", path.name)
    )
    columns: Columns = {
        "image_id": images["ImageID"].str.removesuffix(".png"),
        "patient_id": images["PatientID"],
        "subject_id": images["PatientID"],
        "subject_kind": "patient",
        "study_id": images["StudyID"],
        "file": _image_files(files, images["ImageID"]),
        "age": age.values,
        "sex": sex.values,
        "view": views,
    }
    tallies = [
        view_tally,
        sex.tally,
        age.tally.assign(recorded="study year minus birth year, approximate: " + age.tally["recorded"]),
        counted("patient", "child (Pediatric PED)", "kept", int((images["Pediatric"] == "PED").sum())),
        coded.tally,
    ]
    return assembled(columns, coded.codes, excluded, tallies)


def _blank(texts: pd.Series) -> pd.Series:
    """An empty cell, however it is written, as a blank one."""
    return texts.where(~texts.isin(EMPTY), "")


def _year_of_date(dates: pd.Series) -> pd.Series:
    """The year of a date such as 20150131 or 2015-01-31; another text as it stands, to be refused."""
    texts = _blank(dates)
    return texts.where(~texts.str.match(r"[0-9]{4}([0-9]{4}|-[0-9]{2}-[0-9]{2})"), texts.str[:4])


def _names(text: str) -> list[str] | None:
    """Names in a list written as text, without blanks around them; None where it is no such list."""
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        return None
    return [name.strip() for name in found if name.strip()]


def _parse(text: str) -> list[str] | None:
    names = None if text in EMPTY else _names(text)
    return None if not names or EXCLUDE in names else names


def _image_files(files: SiteFiles, names: pd.Series) -> pd.Series | float:
    if not files.images or files.root is None:
        return np.nan
    return names.map(files_under(files.root, IMAGES))

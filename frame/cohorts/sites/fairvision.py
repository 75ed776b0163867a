"""Harvard-FairVision, glaucoma: one scanning laser ophthalmoscopy image for each of 10,000 patients.

The release's own folders are the split, and its table says the same in the column ``use``.
"""

from __future__ import annotations

from typing import Final

import pandas as pd

from frame.cohorts.harmonise import ages, ethnicity, race, sex
from frame.cohorts.labels import NEGATIVE, POSITIVE
from frame.cohorts.sites.contract import SiteFiles, SiteRows
from frame.cohorts.sites.photographs import binary_codes, image_files, photograph_rows
from frame.cohorts.sites.released_tables import check_unique, counted, needed_path, read_columns
from frame.errors import InputError

__all__ = ["GLAUCOMA", "USES", "read_rows"]

#: The released texts of ``glaucoma`` and of ``use``.
GLAUCOMA: Final = {"yes": POSITIVE, "no": NEGATIVE}
USES: Final = {"training": "train", "validation": "validation", "test": "test"}

#: Folders of the glaucoma part; the parts on other diseases have files of the same names.
IMAGES: Final = tuple(
    f"{part}{folder}/*.npz"
    for part in ("Glaucoma/", "")
    for use in USES
    for folder in (use.capitalize(), use)
)


def read_rows(files: SiteFiles) -> SiteRows:
    """Read all patients.

    Parameters
    ----------
    files : SiteFiles
        With ``table``.

    Returns
    -------
    SiteRows
        Every image of the table; ``released_split`` from ``use``.

    Raises
    ------
    frame.InputError
        If the table is damaged, ``glaucoma`` or ``use`` is none of the released texts, or a file lies in the
        folder of another use.
    """
    path = needed_path(files, "table")
    table = read_columns(path, ["filename", "age", "gender", "race", "ethnicity", "glaucoma", "use"])
    check_unique(table, ["filename"], path.name)
    use = table["use"].str.strip().str.casefold()
    strange = int((~use.isin(list(USES))).sum())
    if strange:
        raise InputError(
            f"{path.name}: use is none of {', '.join(USES)} in {strange:,} of {len(table):,} rows; "
            "download the table again."
        )
    codes = binary_codes(table["glaucoma"], GLAUCOMA, path.name)
    years, sexes, races, ethnicities = (
        ages(table["age"]),
        sex(table["gender"]),
        race(table["race"]),
        ethnicity(table["ethnicity"]),
    )
    patient = table["filename"].str.removesuffix(".npz")
    file = image_files(files, patient + ".npz", IMAGES)
    _check_folders(file, use)
    return photograph_rows(
        "fundus",
        {
            "image_id": patient,
            "patient_id": patient,
            "subject_id": patient,
            "subject_kind": "patient",
            "file": file,
            "released_split": use.map(USES),
            "age": years.values,
            "sex": sexes.values,
            "race_recorded": races.values,
            "ethnicity": ethnicities.values,
        },
        codes,
        {},
        [
            years.tally,
            sexes.tally,
            races.tally,
            ethnicities.tally,
            counted("glaucoma", "yes", "positive", int((codes == POSITIVE).sum())),
            counted("glaucoma", "no", "negative", int((codes == NEGATIVE).sum())),
        ],
    )


def _check_folders(file: pd.Series, use: pd.Series) -> None:
    """Refuse files that lie in the folder of another use than the table says."""
    there = file.notna()
    folder = file[there].str.extract(r"([^/]+)/[^/]+$", expand=False).str.casefold()
    differ = int((folder != use[there]).sum())
    if differ:
        raise InputError(
            f"{differ:,} of {int(there.sum()):,} images lie in the folder of another use than the table "
            "says; unpack the release again."
        )

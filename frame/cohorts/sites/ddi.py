"""Diverse Dermatology Images: biopsied lesions of people of three groups of skin tone.

The table does not say which photographs show one patient, so that each photograph is a case of its own, as in
the paper.
"""

from __future__ import annotations

from typing import Final

from frame.cohorts.harmonise import skin_type
from frame.cohorts.labels import NEGATIVE, POSITIVE
from frame.cohorts.sites.contract import SiteFiles, SiteRows
from frame.cohorts.sites.photographs import binary_codes, image_files, photograph_rows
from frame.cohorts.sites.released_tables import check_unique, counted, needed_path, read_columns

__all__ = ["MALIGNANT", "read_rows"]

#: The released texts of ``malignant``, in small letters.
MALIGNANT: Final = {"true": POSITIVE, "false": NEGATIVE}

IMAGES: Final = ("**/*.png",)


def read_rows(files: SiteFiles) -> SiteRows:
    """Read all photographs.

    Parameters
    ----------
    files : SiteFiles
        With ``table``.

    Returns
    -------
    SiteRows
        Every photograph of the table.

    Raises
    ------
    frame.InputError
        If the table is damaged, or ``malignant`` is neither true nor false.
    """
    path = needed_path(files, "table")
    table = read_columns(path, ["DDI_ID", "DDI_file", "skin_tone", "malignant"])
    check_unique(table, ["DDI_ID"], path.name)
    check_unique(table, ["DDI_file"], path.name)
    codes = binary_codes(table["malignant"], MALIGNANT, path.name)
    skin = skin_type(table["skin_tone"])
    return photograph_rows(
        "skin",
        {
            "image_id": table["DDI_ID"],
            "subject_id": table["DDI_ID"],
            "subject_kind": "case",
            "file": image_files(files, table["DDI_file"], IMAGES),
            "skin_type": skin.values,
        },
        codes,
        {},
        [
            skin.tally,
            counted("malignant", "true", "positive", int((codes == POSITIVE).sum())),
            counted("malignant", "false", "negative", int((codes == NEGATIVE).sum())),
        ],
    )

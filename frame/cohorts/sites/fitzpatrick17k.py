"""Fitzpatrick17k: photographs of two dermatology atlases with an annotated skin type.

Nothing says which photographs show one patient, so that each photograph is a case of its own. Those
without a skin type (scale -1) are left out. The others are malignant, benign or non-neoplastic. The last is
neither class of the task, so that it has no label, under any policy for blank labels.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from frame.cohorts.harmonise import skin_type
from frame.cohorts.labels import NEGATIVE, POSITIVE
from frame.cohorts.sites.contract import SiteFiles, SiteRows
from frame.cohorts.sites.photographs import binary_codes, image_files, photograph_rows
from frame.cohorts.sites.released_tables import check_unique, counted, needed_path, read_columns
from frame.errors import InputError

__all__ = ["PARTITIONS", "read_rows"]

#: What each text of ``three_partition_label`` is to the task; None: no label.
PARTITIONS: Final = {"malignant": POSITIVE, "benign": NEGATIVE, "non-neoplastic": None}

NO_SKIN_TYPE: Final = "skin type not annotated (scale -1)"
IMAGES: Final = ("**/*.jpg",)


def read_rows(files: SiteFiles) -> SiteRows:
    """Read the photographs with a skin type.

    Parameters
    ----------
    files : SiteFiles
        With ``table``.

    Returns
    -------
    SiteRows
        Photographs of scale 1 to 6; ``malignant`` is missing where the partition is non-neoplastic.

    Raises
    ------
    frame.InputError
        If the table is damaged, or a scale or a partition is none of those released.
    """
    path = needed_path(files, "table")
    table = read_columns(path, ["md5hash", "fitzpatrick_scale", "three_partition_label"])
    check_unique(table, ["md5hash"], path.name)
    scale = table["fitzpatrick_scale"].str.strip().str.replace(r"\.0+$", "", regex=True)
    strange = int((~scale.isin(["-1", "1", "2", "3", "4", "5", "6"])).sum())
    if strange:
        raise InputError(
            f"{path.name}: fitzpatrick_scale is neither -1 nor 1 to 6 in {strange:,} of {len(table):,} rows; "
            "download the table again."
        )
    codes = binary_codes(table["three_partition_label"], PARTITIONS, path.name)
    annotated = scale != "-1"
    kept = table[annotated]
    skin = skin_type(scale[annotated])
    partition = kept["three_partition_label"].str.strip().str.casefold()
    return photograph_rows(
        "skin",
        {
            "image_id": kept["md5hash"],
            "subject_id": kept["md5hash"],
            "subject_kind": "case",
            "file": image_files(files, kept["md5hash"] + ".jpg", IMAGES),
            "skin_type": skin.values,
        },
        codes[annotated],
        {NO_SKIN_TYPE: int((~annotated).sum())},
        [
            skin.tally,
            *(
                counted("malignant", text, _MEANING[code], int((partition == text).sum()))
                for text, code in PARTITIONS.items()
            ),
        ],
    )


_MEANING: Final[dict[int | None, str | float]] = {POSITIVE: "positive", NEGATIVE: "negative", None: np.nan}

"""The table of the glaucoma part of FairVision, and what stands beside the image in each of its archives.

An archive holds the image ``slo_fundus`` and the numbers ``race`` (0 Asian, 1 Black, 2 White), ``male``,
``hispanic`` (-1 unknown) and ``glaucoma``. The volumes of optical coherence tomography of the release are not
drawn.
"""

from __future__ import annotations

import io
from collections.abc import Hashable, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frame.cohorts.phantom.quotas import generator, one_of
from frame.cohorts.phantom.table_bytes import csv_bytes
from frame.cohorts.phantom.truth import PhantomTruth

__all__ = ["ARCHIVE_COLUMNS", "archive_bytes", "fairvision_files"]

_RACES: Final = ("Asian", "Black", "White")
_USES: Final = {"train": "training", "validation": "validation", "test": "test"}
#: Columns of the population that an archive needs.
ARCHIVE_COLUMNS: Final = ("race_recorded", "sex_recorded", "ethnicity_recorded", "glaucoma_true")


def fairvision_files(truth: PhantomTruth, images: pd.DataFrame, side: int) -> dict[str, bytes]:
    """The table of the glaucoma part; arguments and result as of the other layouts."""
    random = generator(truth.seed, "fairvision", "table")
    n = len(images)
    ill = images["glaucoma_true"].to_numpy(dtype=bool)
    defect = np.where(ill, random.normal(-7, 4, n), random.normal(-0.5, 1.3, n))
    silent = pd.Series(np.where(random.random(n) < 0.5, "Unknown", ""), dtype=object)
    table = pd.DataFrame(
        {
            "filename": images["image_id"] + ".npz",
            "age": images["age_recorded"],
            "gender": images["sex_recorded"].map({"female": "Female", "male": "Male"}),
            "race": images["race_recorded"],
            "ethnicity": images["ethnicity_recorded"].replace("non-Hispanic", "Non-Hispanic").fillna(silent),
            "language": one_of(random, n, ("English", "Spanish", "Others"), 0.85),
            "maritalstatus": one_of(
                random, n, ("Married or Partnered", "Single", "Widowed", "Divorced"), 0.6
            ),
            "md": np.round(defect, 2),
            "glaucoma": np.where(ill, "yes", "no"),
            "use": images["released_split"].map(_USES),
        }
    )
    name = "Glaucoma/ReadMe/data_summary_glaucoma.csv"
    return {name: csv_bytes(table, name)}


def archive_bytes(picture: NDArray[np.uint8], row: Mapping[Hashable, Any]) -> bytes:
    """One archive of the release.

    Parameters
    ----------
    picture : numpy.ndarray of uint8, shape (side, side)
        The image.
    row : mapping
        The :data:`ARCHIVE_COLUMNS` of its patient.

    Returns
    -------
    bytes
        A compressed npz file without times in it, the same bytes for the same input.
    """
    ethnicity = row["ethnicity_recorded"]
    known = isinstance(ethnicity, str)
    target = io.BytesIO()
    np.savez_compressed(
        target,
        slo_fundus=picture,
        race=np.int64(_RACES.index(row["race_recorded"])),
        male=np.int64(row["sex_recorded"] == "male"),
        hispanic=np.int64(ethnicity == "Hispanic" if known else -1),
        glaucoma=np.int64(row["glaucoma_true"]),
    )
    return target.getvalue()

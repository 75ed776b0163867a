"""What the module of a source takes and gives, whichever source it is.

A source module turns the files of one release into rows of one common form. It decides nothing that is the
same for all sources: prefixes, splits, pooled categories, age bands and the check that an image exists are
made afterwards, from these rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LEFT_OUT_COLUMNS", "RELEASED_SPLITS", "ROW_COLUMNS", "TALLY_COLUMNS", "SiteFiles", "SiteRows"]

#: Columns of :attr:`SiteRows.table` before the finding columns of the modality.
ROW_COLUMNS: Final = (
    "image_id",
    "patient_id",
    "subject_id",
    "subject_kind",
    "study_id",
    "file",
    "released_split",
    "age",
    "sex",
    "race_recorded",
    "ethnicity",
    "insurance_recorded",
    "skin_type",
    "view",
)
#: Columns of :attr:`SiteRows.left_out`.
LEFT_OUT_COLUMNS: Final = ("reason", "n_images")
#: Columns of :attr:`SiteRows.tally`.
TALLY_COLUMNS: Final = ("field", "recorded", "value", "n_images")
#: What a release may say about an image's split.
RELEASED_SPLITS: Final = ("train", "validation", "test", "train_val")


@dataclass(frozen=True)
class SiteFiles:
    """The files of one source, found on disk.

    Attributes
    ----------
    source : str
        One of :data:`frame.cohorts.sites.SITES`.
    root : Path or None
        Folder of the release, to which image paths are relative; None where only packaged tables are read.
    linked_root : Path or None
        Folder of a second release that the first is joined to (MIMIC-IV, CheXpert Plus).
    paths : mapping of str to Path
        Key of ``data/image_source_files.csv`` -> the file found. An optional file that is absent has no key.
    images : bool
        Whether image files are looked for. If not, ``file`` is left missing.
    """

    source: str
    root: Path | None
    linked_root: Path | None
    paths: Mapping[str, Path]
    images: bool = True


@dataclass(frozen=True)
class SiteRows:
    """The rows of one source; no table is part of the text of this object.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per image of the cohort, sorted by ``image_id``: :data:`ROW_COLUMNS` and then the findings of
        the modality (:data:`frame.cohorts.schema.FINDINGS`). Ids carry no prefix. ``patient_id``,
        ``study_id``, ``file`` and ``released_split`` (:data:`RELEASED_SPLITS`) are missing where the source
        has none. ``age`` is in years; findings are codes of :mod:`frame.cohorts.labels`.
    left_out : pandas.DataFrame
        ``reason``, ``n_images``. Every image of the released tables is in ``table`` or counted here.
    tally : pandas.DataFrame
        ``field``, ``recorded``, ``value``, ``n_images``: each text that a release records for a field, what
        it became (missing where it became nothing), and how often.
    """

    table: pd.DataFrame = field(repr=False)
    left_out: pd.DataFrame = field(repr=False)
    tally: pd.DataFrame = field(repr=False)

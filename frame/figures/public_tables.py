"""What the tables of images that lie inside an installed package give: counts, without any image.

CheXpert's training table, PadChest's and ChestX-ray14's are part of the package ``torchxrayvision``. They go
through the same site modules as a release on disk. Only counts leave this module.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final

from frame.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CODE_NAMES", "PublicTable", "public_table"]

#: Names of the label codes, in the order in which they are counted.
CODE_NAMES: Final = {1: "positive", 0: "negative", -1: "uncertain", -2: "blank"}


@dataclass(frozen=True)
class PublicTable:
    """Counts from one table.

    Attributes
    ----------
    source, title : str
        Name of the source, and its name in text.
    n_released : int
        Rows of the table.
    n_images : int
        Rows that belong to the cohort: frontal images.
    n_patients : int
        Patients behind them.
    left_out : pandas.DataFrame
        ``reason``, ``n_images`` of the other rows.
    levels : pandas.DataFrame
        Per ``attribute`` (sex, age) and ``level``: ``images`` and ``patients``; a patient with images in two
        levels counts in both, and images without a level are ``not recorded``.
    codes : pandas.DataFrame
        Per ``finding``: images with the code ``positive``, ``negative``, ``uncertain``, ``blank``, and images
        that the source does not label (``unlabelled``).
    policies : pandas.DataFrame
        Per ``finding`` and policy (``uncertain``, ``blank``): ``n_evaluable``, ``n_positive``.
    """

    source: str
    title: str
    n_released: int
    n_images: int
    n_patients: int
    left_out: pd.DataFrame = field(repr=False)
    levels: pd.DataFrame = field(repr=False)
    codes: pd.DataFrame = field(repr=False)
    policies: pd.DataFrame = field(repr=False)


@cache
def public_table(source: str) -> PublicTable:
    """Read the table of one source from the installed package and count it.

    Parameters
    ----------
    source : {"chexpert", "nih_cxr14", "padchest"}
        The source.

    Returns
    -------
    PublicTable
        Counts; no row of the table.

    Raises
    ------
    frame.InputError
        If the package does not hold the source, or is not installed.
    """
    import pandas as pd

    from frame.cohorts.labels import counts_under_policies
    from frame.cohorts.schema import FINDINGS
    from frame.cohorts.sites import site_module
    from frame.cohorts.sites.contract import SiteFiles
    from frame.cohorts.sources import PACKAGED_SOURCES, find_files, sources

    if source not in PACKAGED_SOURCES:
        raise InputError(
            f"The table of {source!r} is in no installed package; there are {', '.join(PACKAGED_SOURCES)}."
        )
    found = find_files(source, None, None, lists_needed=False)
    if found.missing:
        raise InputError(
            f"The table of {source} is not in the installed package; run `make env`, which installs it from "
            "requirements-tables.lock."
        )
    rows = site_module(source).read_rows(SiteFiles(source, None, None, found.paths, images=False))
    codes = rows.table[list(FINDINGS["chest"])]
    counts = pd.DataFrame(
        {
            "finding": finding,
            **{name: int((codes[finding] == code).sum()) for code, name in CODE_NAMES.items()},
            "unlabelled": int(codes[finding].isna().sum()),
        }
        for finding in codes.columns
    )
    n_images = len(rows.table)
    return PublicTable(
        source=source,
        title=sources()[source].title,
        n_released=n_images + int(rows.left_out["n_images"].sum()),
        n_images=n_images,
        n_patients=int(rows.table["patient_id"].nunique()),
        left_out=rows.left_out.reset_index(drop=True),
        levels=_levels(rows.table),
        codes=counts,
        policies=counts_under_policies(codes),
    )


def _levels(table: pd.DataFrame) -> pd.DataFrame:
    """Images and patients by sex and by age band."""
    import pandas as pd

    from frame.cohorts.harmonise import age_band
    from frame.cohorts.labels import NOT_RECORDED
    from frame.cohorts.schema import LEVELS

    found = []
    for attribute, values, levels in (
        ("sex", table["sex"], LEVELS["sex"]),
        ("age", age_band(table["age"]), LEVELS["age_band"]),
    ):
        values = values.astype(object).where(values.notna(), NOT_RECORDED)
        for level in (*levels, NOT_RECORDED):
            chosen = table.loc[values == level, "patient_id"]
            found.append((attribute, level, len(chosen), chosen.nunique()))
    return pd.DataFrame(found, columns=["attribute", "level", "images", "patients"])

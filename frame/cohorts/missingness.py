"""How often an attribute is missing, by label: that can itself differ between the sick and the well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from frame.cohorts.labels import BLANK, NEGATIVE, POSITIVE, UNCERTAIN
from frame.errors import InputError

__all__ = ["LABELS", "missing_by_label"]

#: What an image may be to a finding; ``not labelled`` where the source does not label it.
LABELS: Final = {
    "positive": POSITIVE,
    "negative": NEGATIVE,
    "uncertain": UNCERTAIN,
    "blank": BLANK,
    "not labelled": None,
}


def missing_by_label(table: pd.DataFrame, attributes: Sequence[str], findings: Sequence[str]) -> pd.DataFrame:
    """Count the images without an attribute, by the label of each finding.

    An attribute that is pooled (``race``, ``insurance``) is never missing; its ``..._recorded`` column is the
    one to ask for. A view ``unknown`` counts as missing.

    Parameters
    ----------
    table : pandas.DataFrame
        One row per image: the attributes, missing where nothing was recorded, and codes of the findings.
    attributes, findings : sequence of str
        Columns of the table.

    Returns
    -------
    pandas.DataFrame
        ``attribute``, ``finding``, ``label`` (:data:`LABELS`, then ``all``), ``n_images``, ``n_missing``,
        ``share_missing`` (from 0 to 1; missing where there is no such image).

    Raises
    ------
    frame.InputError
        If the table lacks a column.
    """
    absent = [name for name in (*attributes, *findings) if name not in table.columns]
    if absent:
        raise InputError(f"The images have no column {', '.join(absent)}.")
    rows = []
    for attribute in attributes:
        missing = table[attribute].isna().to_numpy()
        if attribute == "view":
            missing = missing | (table[attribute] == "unknown").to_numpy()
        for finding in findings:
            codes = table[finding].to_numpy(dtype=np.float64, na_value=np.nan)
            for label, code in LABELS.items():
                here = np.isnan(codes) if code is None else codes == code
                rows.append((attribute, finding, label, int(here.sum()), int((here & missing).sum())))
            rows.append((attribute, finding, "all", len(table), int(missing.sum())))
    counts = pd.DataFrame(rows, columns=["attribute", "finding", "label", "n_images", "n_missing"])
    n_images = counts["n_images"].astype(np.float64)
    counts["share_missing"] = (counts["n_missing"] / n_images.where(n_images > 0)).astype(np.float64)
    return counts

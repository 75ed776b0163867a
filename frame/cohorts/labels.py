"""Label codes, and what uncertain and blank labels are taken for.

The CheXpert labeller leaves four answers: positive, negative, uncertain and blank (not mentioned). Studies
map uncertain to positive, to negative or to missing, and blank to negative or to missing, and their results
are then not comparable. Here the codes stay as released, and every use names its policy: there is no default.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
import pandas as pd

from frame.errors import InputError

__all__ = [
    "BLANK",
    "BLANK_POLICIES",
    "CODES",
    "NEGATIVE",
    "NOT_RECORDED",
    "POSITIVE",
    "UNCERTAIN",
    "UNCERTAIN_POLICIES",
    "LabelPolicy",
    "counts_under_policies",
    "resolve_labels",
]

#: The finding is there.
POSITIVE: Final = 1
#: The finding is not there.
NEGATIVE: Final = 0
#: The report leaves it open.
UNCERTAIN: Final = -1
#: The source labels this finding, and this image's label is blank.
BLANK: Final = -2
#: All codes; a missing code says that the source does not label the finding.
CODES: Final = (POSITIVE, NEGATIVE, UNCERTAIN, BLANK)

#: The subgroup of images without a recorded one.
NOT_RECORDED: Final = "not recorded"

UNCERTAIN_POLICIES: Final = ("negative", "positive", "missing")
BLANK_POLICIES: Final = ("missing", "negative")


@dataclass(frozen=True)
class LabelPolicy:
    """What uncertain and blank labels are taken for. Both must be named.

    Attributes
    ----------
    uncertain : {"negative", "positive", "missing"}
        What an uncertain label becomes.
    blank : {"missing", "negative"}
        What a blank label becomes.
    """

    uncertain: str
    blank: str

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("uncertain", self.uncertain, UNCERTAIN_POLICIES),
            ("blank", self.blank, BLANK_POLICIES),
        ):
            if value not in allowed:
                raise InputError(f"{name} is {value!r}; it must be one of {', '.join(allowed)}.")


def resolve_labels(codes: pd.Series, policy: LabelPolicy) -> pd.Series:
    """Turn codes into labels under a policy.

    Parameters
    ----------
    codes : pandas.Series
        Codes of :data:`CODES`, or missing where the source does not label the finding.
    policy : LabelPolicy
        What uncertain and blank become.

    Returns
    -------
    pandas.Series of float64
        1 positive, 0 negative, NaN not evaluable; the index of ``codes``.

    Raises
    ------
    frame.InputError
        If a code is none of the four; the sentence gives the values and counts.
    """
    values = _values(codes)
    becomes = {"negative": 0.0, "positive": 1.0, "missing": np.nan}
    labels = values.copy()
    labels[values == UNCERTAIN] = becomes[policy.uncertain]
    labels[values == BLANK] = becomes[policy.blank]
    return pd.Series(labels, index=codes.index, name=codes.name)


def counts_under_policies(codes: pd.DataFrame, by: pd.Series | None = None) -> pd.DataFrame:
    """Count evaluable and positive images of each finding under every policy.

    Parameters
    ----------
    codes : pandas.DataFrame
        One column of codes per finding.
    by : pandas.Series, optional
        Subgroup of each image, with the index of ``codes``. Images without one are counted in a subgroup
        :data:`NOT_RECORDED`.

    Returns
    -------
    pandas.DataFrame
        ``finding``, ``uncertain``, ``blank``, then with ``by`` the ``subgroup``, then ``n_evaluable`` and
        ``n_positive``. Findings in column order, policies in the order of :data:`UNCERTAIN_POLICIES` and
        :data:`BLANK_POLICIES`, subgroups in the order of their categories, or sorted. A subgroup without an
        evaluable image is there, with 0.

    Raises
    ------
    frame.InputError
        If a code is none of the four, or the subgroups have another index.
    """
    groups = _groups(codes, by)
    parts = []
    for finding in codes.columns:
        # Four counts a subgroup are enough: each policy adds some of them.
        values = _values(codes[finding])
        counts = {
            code: pd.Series(values == code, index=groups.index).groupby(groups, observed=False).sum()
            for code in CODES
        }
        for uncertain, blank in product(UNCERTAIN_POLICIES, BLANK_POLICIES):
            positive = counts[POSITIVE] + (counts[UNCERTAIN] if uncertain == "positive" else 0)
            evaluable = counts[POSITIVE] + counts[NEGATIVE]
            evaluable = evaluable + (counts[UNCERTAIN] if uncertain != "missing" else 0)
            evaluable = evaluable + (counts[BLANK] if blank != "missing" else 0)
            parts.append(
                pd.DataFrame(
                    {
                        "finding": finding,
                        "uncertain": uncertain,
                        "blank": blank,
                        "subgroup": [str(level) for level in evaluable.index],
                        "n_evaluable": evaluable.to_numpy(dtype=np.int64),
                        "n_positive": positive.to_numpy(dtype=np.int64),
                    }
                )
            )
    table = pd.concat(parts, ignore_index=True)
    return table.drop(columns="subgroup") if by is None else table


def _groups(codes: pd.DataFrame, by: pd.Series | None) -> pd.Series:
    """The subgroup of each image as a category; images without one have their own, last."""
    if by is None:
        return pd.Series("all", index=codes.index, dtype="category")
    if not by.index.equals(codes.index):
        raise InputError("The subgroups and the labels must have one row for each other.")
    groups = by.astype("category")
    if groups.isna().any():
        groups = groups.cat.add_categories([NOT_RECORDED]).fillna(NOT_RECORDED)
    return groups


def _values(codes: pd.Series) -> np.ndarray:
    values = pd.to_numeric(codes).to_numpy(dtype=np.float64, na_value=np.nan)
    known = np.isnan(values) | np.isin(values, CODES)
    if not known.all():
        found = pd.Series(values[~known]).value_counts().sort_index()
        shown = ", ".join(f"{value:g} ({count:,} times)" for value, count in found.items())
        raise InputError(
            f"The labels of {codes.name} hold {shown}; a label is 1 (positive), 0 (negative), "
            "-1 (uncertain), -2 (blank) or missing (not labelled by the source)."
        )
    return values

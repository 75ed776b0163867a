"""Attributes: the levels of a group column, its missing values, and intersections of several.

A level is a value as it prints. ``Unknown`` is a level of its own, because somebody wrote it; a blank is a
missing value, and one of three policies applies to it everywhere: ``error``, ``group`` or ``drop``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frame.errors import InputError
from frame.measures.columns import factorize, is_number, text_of

Booleans = NDArray[np.bool_]
Integers = NDArray[np.int64]

#: What to do with missing values of a group column.
POLICIES = ("error", "group", "drop")
#: The level that ``missing="group"`` makes of them.
MISSING_LEVEL = "(missing)"
_MOST_QUOTED = 50


@dataclass(frozen=True)
class Attribute:
    """One attribute of the images.

    Attributes
    ----------
    name : str
        Column name, or ``"sex x age"`` for an intersection.
    levels : tuple of str
        All subgroups in order, also those without an image.
    codes : ndarray of int64, shape (n,)
        Place of each image's level in ``levels``; -1 for an image left out by ``missing="drop"``.
    n_missing, n_missing_positive : int
        Images without a value, and how many of them are positive.
    missing : ndarray of bool, shape (n,)
        Which images have no value; empty where all have one.
    """

    name: str
    levels: tuple[str, ...]
    codes: Integers
    n_missing: int
    n_missing_positive: int
    missing: Booleans = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))

    def take(self, kept: Booleans, labels: Booleans) -> Attribute:
        """The attribute of the images where ``kept`` is True; ``labels`` are those of all images."""
        missing = self.missing[kept] if len(self.missing) else np.zeros(int(kept.sum()), dtype=np.bool_)
        return replace(
            self,
            codes=self.codes[kept],
            missing=missing,
            n_missing=int(missing.sum()),
            n_missing_positive=int((missing & labels[kept]).sum()),
        )


def check_policy(missing: object) -> str:
    """Return the policy for missing values if there is such a one; otherwise an InputError."""
    if isinstance(missing, str) and missing in POLICIES:
        return missing
    raise InputError(f"missing is {missing!r}; allowed are 'error', 'group', 'drop'.")


def read_attribute(series: pd.Series, name: str, missing: str) -> Attribute:
    """The levels of one group column, over all rows given.

    Levels keep the order of a Categorical, with its unused ones; otherwise numbers are sorted as numbers
    and everything else as text, numbers first. Missing values get the level ``(missing)`` with
    ``missing="group"`` and the code -1 otherwise; :func:`refuse_missing` decides whether that is allowed.

    Parameters
    ----------
    series : Series, shape (n,)
    name : str
    missing : {"error", "group", "drop"}

    Returns
    -------
    Attribute
        Its count of missing positives is 0 until :meth:`Attribute.take` is given the labels.

    Raises
    ------
    InputError
        A column without any value; levels that differ only by blanks around them or by being a number in
        one row and text in another; a level ``(missing)`` where one has to be made.
    """
    codes, levels = _levels(series, name)
    if not levels:
        raise InputError(f"column '{name}' is blank in all {len(series)} rows; it has no subgroups.")
    blank = codes < 0
    if missing == "group" and blank.any():
        if MISSING_LEVEL in levels:
            raise InputError(
                f"column '{name}' has a level '{MISSING_LEVEL}' besides {int(blank.sum())} blank values; "
                "rename it."
            )
        codes = np.where(blank, len(levels), codes)
        levels = [*levels, MISSING_LEVEL]
    return Attribute(name, tuple(levels), codes, int(blank.sum()), 0, blank)


def _levels(series: pd.Series, name: str) -> tuple[Integers, list[str]]:
    """Codes (-1 = missing) and level names in order."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        declared, kept = factorize(pd.Series(list(series.cat.categories), dtype=object), f"column '{name}'")
        codes = np.append(declared, -1)[np.asarray(series.cat.codes, dtype=np.int64)]
        levels = [text_of(value) for value in kept]
    else:
        found, kept = factorize(series, f"column '{name}'")
        ordered = sorted(range(len(kept)), key=lambda i: _sort_key(kept[i]))
        codes = _places(ordered)[found]
        levels = [text_of(kept[i]) for i in ordered]
    stripped = pd.Series([level.strip() for level in levels], dtype=object)
    alike = stripped.duplicated(keep=False)
    if alike.any():
        quoted = f"level {stripped[alike].iloc[0]!r}" if len(levels) <= _MOST_QUOTED else "some levels"
        raise InputError(
            f"column '{name}' writes {quoted} in more than one way (blanks around it, or a number in one "
            "row and text in another); write each level in one way."
        )
    return codes, levels


def _sort_key(value: Any) -> tuple[int, float, str]:
    return (0, float(value), "") if is_number(value) else (1, 0.0, str(value))


def _places(ordered: Sequence[int]) -> Integers:
    """New code of each old one, and -1 for -1."""
    places = np.full(len(ordered) + 1, -1, dtype=np.int64)
    places[list(ordered)] = np.arange(len(ordered))
    return places


def refuse_missing(attribute: Attribute, labels: Booleans, missing: str) -> None:
    """With ``missing="error"``, an InputError naming the column and the counts of its missing values.

    Parameters
    ----------
    attribute : Attribute
        Of the images that are audited.
    labels : ndarray of bool, shape (n,)
    missing : {"error", "group", "drop"}
    """
    if attribute.n_missing and missing == "error":
        counts = missing_counts(attribute.n_missing, attribute.n_missing_positive, labels)
        raise InputError(
            f"column '{attribute.name}' is blank for {counts}; say what to do with them: missing='drop' "
            f"leaves them out and counts them, missing='group' makes them a subgroup '{MISSING_LEVEL}'."
        )


def missing_counts(n_missing: int, n_missing_positive: int, labels: Booleans) -> str:
    """How many images have no value, by label: missingness can itself differ between the classes."""
    n_positive = int(labels.sum())
    n_negative = len(labels) - n_positive
    return (
        f"{n_missing} of {len(labels)} images ({n_missing_positive} of {n_positive} positives, "
        f"{n_missing - n_missing_positive} of {n_negative} negatives)"
    )


def intersection(attributes: Sequence[Attribute]) -> Attribute:
    """One attribute whose levels are the combinations that occur, such as ``F & <40``.

    Parameters
    ----------
    attributes : sequence of Attribute
        At least two, over all rows given.

    Returns
    -------
    Attribute
        The same cells, in the same order, as one column of the texts joined by ``" & "``: in alphabetical
        order where every attribute is; otherwise in the order of the attributes, the first one slowest.
        An image without a value in one of them has none here. As in :func:`read_attribute` the missing
        positives are not counted yet.

    Raises
    ------
    InputError
        Fewer than two attributes, or two combinations that read the same when joined.
    """
    if len(attributes) < 2:
        raise InputError(
            f"intersections need at least two group columns and {len(attributes)} was given; "
            "give a dictionary or a DataFrame of them."
        )
    left_out = np.logical_or.reduce([a.codes < 0 for a in attributes])
    codes, names = attributes[0].codes, list(attributes[0].levels)
    for attribute in attributes[1:]:
        width = len(attribute.levels)
        joined = np.where(left_out, -1, codes * width + attribute.codes)
        present = np.unique(joined[~left_out])
        names = [f"{names[c // width]} & {attribute.levels[c % width]}" for c in present.tolist()]
        codes = np.where(left_out, -1, np.searchsorted(present, joined))
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"two combinations of levels both read {twice!r}; rename levels that contain ' & '.")
    if all(list(a.levels) == sorted(a.levels) for a in attributes):
        ordered = sorted(range(len(names)), key=lambda i: names[i])
        codes, names = _places(ordered)[codes], [names[i] for i in ordered]
    missing = np.logical_or.reduce([a.missing for a in attributes])
    name = " x ".join(a.name for a in attributes)
    return Attribute(name, tuple(names), codes, int(missing.sum()), 0, missing)

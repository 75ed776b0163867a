"""Rows of a drawing table: checked, completed and turned into plain numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from frame.errors import InputError

__all__ = ["rows_of"]


def rows_of(
    table: pd.DataFrame | Mapping[str, Any],
    *,
    needed: Sequence[str],
    defaults: Mapping[str, Any],
    ranges: Mapping[str, tuple[float, float]],
    choices: Mapping[str, Sequence[str]],
    whole: Sequence[str],
) -> list[dict[str, Any]]:
    """The rows of a table that a drawing reads.

    Parameters
    ----------
    table : pandas.DataFrame or mapping of str to array
        Columns of equal length; others than the named ones are not read.
    needed : sequence of str
        Columns that must be there.
    defaults : mapping
        Columns that may be missing, with their value.
    ranges : mapping of str to (float, float)
        Smallest and largest value of columns of numbers. No value may be missing there.
    choices : mapping of str to sequence of str
        Allowed texts of columns of texts.
    whole : sequence of str
        Columns of whole numbers.

    Returns
    -------
    list of dict
        One a row, with Python numbers and texts.

    Raises
    ------
    frame.InputError
        If a column is missing, its length differs, or values are out of range; the sentence has counts of
        rows, never their contents.
    """
    names = set(table.columns) if isinstance(table, pd.DataFrame) else set(table)
    absent = [name for name in needed if name not in names]
    if absent:
        raise InputError(f"The drawing table has no column {', '.join(absent)}.")
    columns: dict[str, list[Any]] = {}
    n = len(table[needed[0]])
    for name in (*needed, *defaults):
        values = table[name] if name in names else [defaults[name]] * n
        if len(values) != n:
            raise InputError(
                f"Column {name} of the drawing table has {len(values):,} values; the others {n:,}."
            )
        columns[name] = _column(name, values, ranges, choices, whole)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _column(
    name: str,
    values: Any,
    ranges: Mapping[str, tuple[float, float]],
    choices: Mapping[str, Sequence[str]],
    whole: Sequence[str],
) -> list[Any]:
    """One checked column as Python values."""
    if name in choices:
        texts = [str(value) for value in values]
        wrong = sum(text not in choices[name] for text in texts)
        if wrong:
            raise InputError(
                f"Column {name} of the drawing table is none of {', '.join(choices[name])} in {wrong:,} rows."
            )
        return texts
    if name == "texture":
        return [str(value) for value in values]
    try:
        numbers = np.asarray(values, dtype=np.int64 if name in whole else np.float64)
        exact = name not in whole or bool((np.asarray(values, dtype=np.float64) % 1 == 0).all())
    except (TypeError, ValueError, OverflowError):
        exact = False
    if not exact:
        raise InputError(f"Column {name} of the drawing table holds values that are not numbers of its kind.")
    if name in ranges:
        low, high = ranges[name]
        wrong = int(np.count_nonzero(~((numbers >= low) & (numbers <= high))))
        if wrong:
            raise InputError(
                f"Column {name} of the drawing table is outside {low:g} to {high:g} in {wrong:,} rows."
            )
    return list(numbers.tolist())

"""Checks of what an operator is given: rows, signs and a strength."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frame.errors import InputError

__all__ = ["check_signs", "checked_rows", "checked_strength", "output_type", "row_numbers"]


def checked_strength(given: Any, name: str, largest: float | None, reason: str = "") -> float:
    """A strength as a number; ``largest`` marks one that counts directions, None one that does not."""
    number = isinstance(given, int | float | np.integer | np.floating) and not isinstance(given, bool)
    value = float(given) if number else math.nan
    whole = largest is None or value.is_integer()
    if not (math.isfinite(value) and value >= 0 and whole):
        kind = "a number" if largest is None else "a whole number of directions"
        raise InputError(f"The strength of the {name} operator is {given!r}; give {kind} from 0.")
    if largest is not None and value > largest:
        raise InputError(
            f"The {name} operator was asked to remove {value:g} direction{'s' * (value != 1)}, and "
            f"there {'is' if largest == 1 else 'are'} {largest:g}"
            f"{f' ({reason})' if reason else ''}."
        )
    return value


def check_signs(signs: NDArray[Any], n_rows: int) -> None:
    """Refuse signs that are not one of -1, 0 and 1 per row."""
    if signs.shape != (n_rows,):
        raise InputError(
            f"There are {n_rows:,} rows of features and signs of shape {signs.shape}; give one sign per row."
        )
    if not bool(np.isin(signs, (-1, 0, 1)).all()):
        raise InputError("Signs are -1, 0 and 1; make them with frame.interventions.operators.signs_of.")


def checked_rows(
    rows: NDArray[Any], signs: NDArray[Any], n_columns: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows and signs that belong together, every row finite."""
    given, a = np.asarray(rows), np.asarray(signs)
    if given.ndim != 2 or given.shape[1] != n_columns:
        raise InputError(
            f"The rows have shape {given.shape}; the operator was made for {n_columns:,} columns."
        )
    check_signs(a, len(given))
    finite = np.isfinite(given).all(axis=1)
    if not finite.all():
        n_wrong = int(np.count_nonzero(~finite))
        raise InputError(
            f"{n_wrong:,} of {len(given):,} rows have a missing or infinite value; make these embeddings "
            "again, or leave the rows out."
        )
    return given, a


def row_numbers(rows: NDArray[Any] | None, n_rows: int) -> NDArray[np.int64]:
    """Row numbers of flags or numbers; None is all rows."""
    if rows is None:
        return np.arange(n_rows, dtype=np.int64)
    given = np.asarray(rows)
    if given.dtype == np.bool_ and given.shape == (n_rows,):
        return np.flatnonzero(given)
    if given.ndim != 1 or (given.dtype.kind not in "iu" and len(given)):
        raise InputError(
            f"Rows are {given.dtype} of shape {given.shape}; give row numbers, or {n_rows:,} flags (bool)."
        )
    numbers: NDArray[np.int64] = given.astype(np.int64)
    if len(numbers) and (numbers.min() < 0 or numbers.max() >= n_rows):
        raise InputError(
            f"Row numbers reach from {numbers.min():,} to {numbers.max():,}; there are {n_rows:,}."
        )
    return numbers


def output_type(dtype: Any, stored: np.dtype[Any]) -> np.dtype[Any]:
    """Type of injected rows: one that holds the stored rows exactly."""
    kind: np.dtype[Any] = np.dtype(dtype)
    if kind not in (np.dtype(np.float32), np.dtype(np.float64)) or not np.can_cast(stored, kind, "safe"):
        raise InputError(
            f"Injected rows of {stored} features cannot be {kind}, which would round the rows that no "
            "operator touches; give float64, or float32 for features that are not wider."
        )
    return kind

"""Means, standard deviations and the covariance of features over training rows, read in fixed blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from frame.errors import InputError
from frame.mitigation.feature_matrix import check_finite, check_matrix

__all__ = ["ColumnMoments", "class_labels", "column_moments", "covariance_of"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_BLOCK: Final = 4096


@dataclass(frozen=True, eq=False)
class ColumnMoments:
    """What single columns look like over some rows.

    Attributes
    ----------
    mean, deviation : ndarray of float64, shape (D,)
        The standard deviation has the divisor n, and is exactly 0 in a constant column.
    constant : ndarray of bool, shape (D,)
        Whether all rows hold the same value.
    n_rows : int
    """

    mean: Floats
    deviation: Floats
    constant: NDArray[np.bool_]
    n_rows: int


def _blocks(features: NDArray[Any], rows: Integers | None) -> Iterator[NDArray[Any]]:
    n_rows = len(features) if rows is None else len(rows)
    for first in range(0, n_rows, _BLOCK):
        part = slice(first, min(first + _BLOCK, n_rows))
        yield features[part] if rows is None else features[rows[part]]


def column_moments(features: NDArray[Any], rows: Integers | None = None) -> ColumnMoments:
    """Means and standard deviations of columns, in two readings of the rows and in float64.

    Parameters
    ----------
    features : ndarray of float16, float32 or float64, shape (n, D)
        May be mapped from a file.
    rows : ndarray of int64, optional
        Rows that are read, rising; None: all.

    Returns
    -------
    ColumnMoments

    Raises
    ------
    InputError
        Where there is no row, or a value that is not finite, with the number of such rows.
    """
    features = check_matrix(features)
    numbers = np.arange(len(features), dtype=np.int64) if rows is None else rows
    if len(numbers) == 0:
        raise InputError("There is no training row; give at least one.")
    low, high = np.full(features.shape[1], np.inf), np.full(features.shape[1], -np.inf)
    sums = np.zeros(features.shape[1])
    for block in _blocks(features, rows):
        values = np.asarray(block, dtype=np.float64)
        if not np.isfinite(values).all():
            check_finite(features, np.sort(numbers))
        np.minimum(low, values.min(axis=0), out=low)
        np.maximum(high, values.max(axis=0), out=high)
        sums += values.sum(axis=0)
    constant = low == high
    mean = np.where(constant, low, sums / len(numbers))
    squares = np.zeros(features.shape[1])
    for block in _blocks(features, rows):
        values = np.asarray(block, dtype=np.float64) - mean
        squares += np.square(values, out=values).sum(axis=0)
    return ColumnMoments(mean, np.sqrt(squares / len(numbers)), constant, len(numbers))


def covariance_of(features: NDArray[Any], mean: Floats) -> Floats:
    """Covariance (divisor n) of all rows about a mean, shape (D, D).

    Parameters
    ----------
    features : ndarray, shape (n, D)
    mean : ndarray of float64, shape (D,)
    """
    total = np.zeros((len(mean), len(mean)))
    for block in _blocks(features, None):
        values = np.asarray(block, dtype=np.float64) - mean
        total += values.T @ values
    return total / len(features)


def class_labels(labels: Any, n_rows: int) -> NDArray[np.int8]:
    """Labels as 0 and 1, one per training row.

    Raises
    ------
    InputError
        For another number of labels, or other values.
    """
    found = np.asarray(labels)
    if found.shape != (n_rows,):
        raise InputError(
            f"There are {n_rows:,} training rows and labels of shape {found.shape}; give one label per row."
        )
    if found.dtype.kind not in "biuf" or not bool(np.isin(found, (0, 1)).all()):
        n_other = n_rows if found.dtype.kind not in "biuf" else int((~np.isin(found, (0, 1))).sum())
        raise InputError(f"{n_other:,} of {n_rows:,} labels are neither 0 nor 1; leave such rows out.")
    return found.astype(np.int8)

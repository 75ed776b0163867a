"""Affine maps of features that are folded into coefficients, so that the features are never rewritten.

A head on standardised, erased or projected features is a linear function of the features as they are:
``((x - centre) * scale) @ matrix @ b = x @ t - centre @ t`` with ``t = scale * (matrix @ b)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frame.errors import InputError

__all__ = ["LinearMap", "checked_features", "identity_map", "standardising_map"]

Floats = NDArray[np.float64]
_KINDS = (np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64))
#: Rows whose mean is a first guess at the mean.
_SOME = 1024


@dataclass(frozen=True, eq=False)
class LinearMap:
    """z = ((x - centre) * scale) @ matrix.

    Attributes
    ----------
    centre, scale : ndarray of float64, shape (D,)
        Subtracted, and multiplied.
    matrix : ndarray of float64, shape (D, M), or None
        None is the identity, with M = D.
    """

    centre: Floats
    scale: Floats
    matrix: Floats | None = None

    def __post_init__(self) -> None:
        n = len(self.centre)
        wrong = self.centre.shape != (n,) or self.scale.shape != (n,)
        wrong = wrong or (self.matrix is not None and (self.matrix.ndim != 2 or len(self.matrix) != n))
        if not wrong:
            parts = (self.centre, self.scale, *(() if self.matrix is None else (self.matrix,)))
            if not all(np.isfinite(part).all() for part in parts):
                raise InputError("The map holds values that are not finite; fit it again on finite features.")
        if wrong:
            matrix = "" if self.matrix is None else f" and a matrix of shape {self.matrix.shape}"
            raise InputError(
                f"The map has a centre of shape {self.centre.shape}, a scale of shape {self.scale.shape}"
                f"{matrix}; give (D,), (D,) and (D, M)."
            )

    @property
    def n_features(self) -> int:
        """Columns of what goes in."""
        return len(self.centre)

    @property
    def n_columns(self) -> int:
        """Columns of what comes out."""
        return self.n_features if self.matrix is None else self.matrix.shape[1]

    def apply(self, features: NDArray[Any]) -> Floats:
        """The mapped rows, shape (n, M), for small data: a copy in float64."""
        z = (np.asarray(features, dtype=np.float64) - self.centre) * self.scale
        return np.asarray(z if self.matrix is None else z @ self.matrix, dtype=np.float64)

    def then(self, matrix: NDArray[Any]) -> LinearMap:
        """The map followed by z @ matrix, matrix of shape (M, M')."""
        step = np.asarray(matrix, dtype=np.float64)
        if step.ndim != 2 or len(step) != self.n_columns:
            raise InputError(
                f"A matrix of shape {step.shape} cannot follow a map onto {self.n_columns:,} columns; "
                f"give ({self.n_columns}, M)."
            )
        whole = step if self.matrix is None else self.matrix @ step
        return LinearMap(self.centre, self.scale, whole)


def identity_map(n_features: int) -> LinearMap:
    """The map that changes nothing."""
    return LinearMap(np.zeros(n_features), np.ones(n_features))


def checked_features(features: NDArray[Any]) -> None:
    """Refuse what is not a matrix of numbers as features are stored.

    Raises
    ------
    InputError
        For another kind, shape or byte order, a masked array, or no row or column.
    """
    if isinstance(features, np.ma.MaskedArray):
        raise InputError(
            "The features are a masked array; leave the masked rows out and give the others as a plain array "
            "(numpy.asarray)."
        )
    if not isinstance(features, np.ndarray) or features.ndim != 2 or features.dtype not in _KINDS:
        found = (
            f"{features.dtype} of shape {features.shape}" if isinstance(features, np.ndarray) else "no array"
        )
        raise InputError(
            f"The features are {found}; give float16, float32 or float64 in the machine's byte order, of "
            "shape (n, D)."
        )
    if not len(features):
        raise InputError("There is no row of features; give at least one.")
    if not features.shape[1]:
        raise InputError("The features have no column; give at least one.")


def standardising_map(
    features: NDArray[Any], weights: NDArray[Any] | None = None, threads: int | None = None
) -> LinearMap:
    """Mean 0 and standard deviation 1 (divisor n) over these rows, as scikit-learn's ``StandardScaler``.

    Parameters
    ----------
    features : ndarray, shape (n, D)
        float16, float32 or float64; read in blocks, accumulated in float64.
    weights : ndarray, shape (n,), optional
        Not negative, not all 0.
    threads : int, optional
        At most; no effect on the result.

    Returns
    -------
    LinearMap
        A constant column is only centred.

    Raises
    ------
    InputError
        Where there is no row with a weight, or a value is not finite (with the number of such rows).
    """
    from frame.heads import kernels
    from frame.heads.passes import Blocks

    checked_features(features)
    n_rows, n_features = features.shape
    shares = np.ones(n_rows) if weights is None else np.asarray(weights, dtype=np.float64)
    total = float(shares.sum()) if shares.shape == (n_rows,) and (shares >= 0).all() else np.nan
    if not (np.isfinite(total) and total > 0):
        raise InputError(f"The weights are not {n_rows:,} numbers from 0 with one above 0; give one per row.")
    # Sums are taken about the mean of some rows, so that a large mean takes no digits from the variance.
    some = features[:: max(n_rows // _SOME, 1)]
    origin: Floats = np.asarray(np.mean(some, axis=0, dtype=np.float64))
    sums, squares = np.zeros(n_features), np.zeros(n_features)
    with Blocks(features, threads) as blocks:

        def work(start: int) -> tuple[Floats, Floats]:
            added = (np.zeros(n_features), np.zeros(n_features))
            for rows, part in blocks.parts(start):
                kernels.add_moments(part, shares[rows], origin, *added)
            return added

        odd = 0
        for block in blocks.each(work):
            sums += block[0]
            squares += block[1]
        if not odd and not (np.isfinite(sums) & np.isfinite(squares)).all():
            odd = blocks.not_finite()
            if not odd:
                raise InputError(
                    "The features are too large for their squares in float64; divide all of them by one "
                    "number, for example the largest absolute value."
                )
    if odd:
        raise InputError(
            f"{odd:,} of {n_rows:,} rows of features hold a value that is not finite; leave these rows "
            "out or make their features again."
        )
    shift = sums / total
    mean, variance = origin + shift, np.maximum(squares / total - shift**2, 0.0)
    # The bound of scikit-learn: what rounding alone makes of a constant column.
    fine = n_rows * np.finfo(np.float64).eps
    constant = variance <= fine * variance + (fine * mean) ** 2
    return LinearMap(mean, 1 / np.sqrt(np.where(constant, 1.0, variance)))

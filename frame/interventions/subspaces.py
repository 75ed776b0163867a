"""Principal angles between the subspaces that two sets of directions span."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from frame.errors import InputError

__all__ = ["mean_cosine", "orthonormal_basis", "principal_cosines"]

Floats = NDArray[np.float64]
#: A direction this much shorter than the longest is rounding.
_SHORTEST = 1e-10


def orthonormal_basis(directions: Floats) -> Floats:
    """Orthonormal basis of the span of some directions.

    Parameters
    ----------
    directions : ndarray of float64, shape (D, r)
        One a column; finite. Columns may depend on each other.

    Returns
    -------
    ndarray of float64, shape (D, rank)
        No column where all directions are zero.
    """
    if directions.ndim != 2 or not np.isfinite(directions).all():
        raise InputError(
            f"The directions have shape {directions.shape} or are not finite; give finite columns (D, r)."
        )
    if directions.size == 0:
        return np.zeros((directions.shape[0], 0))
    basis, sizes, _ = np.linalg.svd(directions, full_matrices=False)
    return np.ascontiguousarray(basis[:, (sizes > _SHORTEST * sizes[0]) & (sizes > 0)])


def principal_cosines(one: Floats, other: Floats) -> Floats:
    """Cosines of the principal angles between two subspaces, the largest first.

    Parameters
    ----------
    one, other : ndarray of float64, shapes (D, r) and (D, s)
        Directions that span each subspace.

    Returns
    -------
    ndarray of float64
        In [0, 1]; as many as the smaller of the two ranks.

    References
    ----------
    Bjorck and Golub, Mathematics of Computation 27, 1973.
    """
    if len(one) != len(other):
        raise InputError(f"The directions have {len(one):,} and {len(other):,} coordinates; give the same.")
    cosines = np.linalg.svd(orthonormal_basis(one).T @ orthonormal_basis(other), compute_uv=False)
    return np.asarray(np.clip(cosines, 0.0, 1.0), dtype=np.float64)


def mean_cosine(one: Floats, other: Floats) -> float:
    """Mean of the principal cosines; NaN where one of the subspaces has no direction.

    Examples
    --------
    >>> mean_cosine(np.array([[1.0], [0.0]]), np.array([[1.0], [1.0]])).__round__(6)
    0.707107
    """
    cosines = principal_cosines(one, other)
    return float(cosines.mean()) if len(cosines) else float("nan")

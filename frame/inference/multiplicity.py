"""Benjamini-Hochberg correction within a family of tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """False-discovery-rate adjusted p values (q values) of one family.

    Parameters
    ----------
    p : array_like, shape (tests,)
        p values in [0, 1]. NaN marks a test that could not be made: it keeps NaN and does not count
        in the size of the family.

    Returns
    -------
    ndarray of float64, shape (tests,)
        ``q_i = min over j with p_j >= p_i of (m p_j / rank_j)``, at most 1.

    References
    ----------
    Benjamini Y, Hochberg Y. Controlling the false discovery rate. J R Stat Soc B 57:289-300, 1995.
    """
    values = np.asarray(p, dtype=np.float64)
    adjusted = np.full(values.shape, np.nan)
    made = np.flatnonzero(~np.isnan(values))
    if len(made) == 0:
        return adjusted
    order = made[np.argsort(values[made], kind="stable")]
    scaled = values[order] * len(order) / np.arange(1, len(order) + 1)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return adjusted


def largest_rejected(p: ArrayLike, alpha: float) -> Floats:
    """How large each p value could be and still be rejected, the others staying as they are.

    Parameters
    ----------
    p : array_like, shape (tests,)
        p values of one family; NaN as in :func:`benjamini_hochberg`.
    alpha : float
        Level; a test is rejected when its q value is below it.

    Returns
    -------
    ndarray of float64, shape (tests,)
        A bound t: with ``p_i`` replaced by any value below t the test is rejected, and with one at or
        above t it is not. NaN where ``p_i`` is NaN.
    """
    values = np.asarray(p, dtype=np.float64)
    bounds = np.full(values.shape, np.nan)
    made = np.flatnonzero(~np.isnan(values))
    m = len(made)
    if m == 0:
        return bounds
    ranks = np.arange(1, m + 1)
    steps = ranks * alpha / m
    sorted_p = np.sort(values[made])
    below = np.searchsorted(sorted_p, steps, side="left")  # how many p values lie below each step
    for i in made:
        others = below - (values[i] < steps)
        reached = np.flatnonzero(others >= ranks - 1)
        bounds[i] = steps[reached[-1]] if len(reached) else 0.0
    return bounds

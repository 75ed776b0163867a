"""Interval for the true max-min difference, from simultaneous pairwise intervals.

All pairwise differences of subgroup values get intervals that hold together with the given
probability (Tukey's idea, with the variances as they are). The largest of their lower ends is a lower
limit of the true max-min difference, and the largest upper end an upper limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from frame.errors import InputError

Floats = NDArray[np.float64]

#: Draws behind the critical value of three or more subgroups; its Monte Carlo error is about 0.003.
_DRAWS = 400_000
_BLOCK = 50_000
#: Cases at the common value that draw an observed value towards it.
_PSEUDO_CASES = 4.0


@dataclass(frozen=True)
class TrueDifferenceInterval:
    """Simultaneous interval of the true max-min difference.

    Attributes
    ----------
    lo, hi : float
        Ends, in [0, 1].
    critical : float
        Critical value of the studentised pairwise differences.
    level : float
        Confidence level.
    """

    lo: float
    hi: float
    critical: float
    level: float


def true_difference_interval(
    values: Floats, covariance: Floats, *, level: float = 0.95, seed: int = 0
) -> TrueDifferenceInterval:
    """Interval for the true largest minus smallest subgroup value.

    Parameters
    ----------
    values : ndarray of float64, shape (subgroups,)
        Observed values; two or more.
    covariance : ndarray of float64, shape (subgroups,) or (subgroups, subgroups)
        Sampling variances of independent subgroup values, or their full covariance.
    level : float
        Confidence level, in (0, 1).
    seed : int
        Generator of the draws that give the critical value of three or more subgroups.

    Returns
    -------
    TrueDifferenceInterval

    Raises
    ------
    InputError
        If there are fewer than two subgroups or the shapes do not fit.

    References
    ----------
    Hochberg Y, Tamhane AC. Multiple Comparison Procedures. Wiley, 1987, chapter 3.
    """
    values = np.asarray(values, dtype=np.float64)
    covariance = np.asarray(covariance, dtype=np.float64)
    if covariance.ndim == 1:
        covariance = np.diag(covariance)
    k = len(values)
    if k < 2 or covariance.shape != (k, k):
        raise InputError(
            f"values has {k} subgroups and covariance the shape {covariance.shape}; "
            "give two or more subgroups and one variance for each."
        )
    order = np.lexsort((values, -np.diag(covariance)))
    values, covariance = values[order], covariance[np.ix_(order, order)]
    pairs = list(combinations(range(k), 2))
    errors = {
        (i, j): float(np.sqrt(max(0.0, covariance[i, i] + covariance[j, j] - 2.0 * covariance[i, j])))
        for i, j in pairs
    }
    critical = _critical_value(covariance, errors, level, seed)
    gaps = {(i, j): abs(float(values[i] - values[j])) for i, j in pairs}
    lower = max(gaps[pair] - critical * errors[pair] for pair in pairs)
    upper = max(gaps[pair] + critical * errors[pair] for pair in pairs)
    return TrueDifferenceInterval(max(0.0, lower), min(1.0, upper), critical, level)


def variances_apart(values: Floats, variances: Floats, common: float, cases: Floats) -> Floats:
    """Sampling variances for subgroups that may truly differ, from those of an exactly fair model.

    Near 0 and 1 a value varies less than in the middle. The variances of a reference are those at the
    common value, so they are too small for a subgroup that truly lies nearer to the middle, and intervals
    made of them cover too rarely.

    Parameters
    ----------
    values : ndarray of float64, shape (subgroups,)
        Observed values m, in [0, 1].
    variances : ndarray of float64, shape (subgroups,)
        Sampling variances v under exact fairness.
    common : float
        Common value c, in (0, 1).
    cases : ndarray of float64, shape (subgroups,)
        Cases n behind each value: the denominator of a rate, the smaller class of an AUROC.

    Returns
    -------
    ndarray of float64, shape (subgroups,)
        ``max(v, v s (1 - s) / (c (1 - c)))`` with ``s = (n m + 4 c) / (n + 4)``: the value drawn towards
        the common one by four pseudo-cases, because a few cases easily show 0 or 1. Never below v.

    References
    ----------
    Agresti A, Coull BA. Approximate is better than "exact" for interval estimation of binomial
    proportions. The American Statistician 52:119-126, 1998 (four pseudo-cases).
    """
    values = np.asarray(values, dtype=np.float64)
    if not 0.0 < common < 1.0:
        raise InputError(f"common is {common:g}; it must lie strictly between 0 and 1.")
    drawn = (cases * values + _PSEUDO_CASES * common) / (cases + _PSEUDO_CASES)
    ratio = drawn * (1.0 - drawn) / (common * (1.0 - common))
    return np.asarray(variances * np.maximum(1.0, ratio), dtype=np.float64)


def _critical_value(
    covariance: Floats, errors: dict[tuple[int, int], float], level: float, seed: int
) -> float:
    """Quantile of the largest studentised pairwise difference."""
    from scipy.special import ndtri

    pairs = [pair for pair, error in errors.items() if error > 0.0]
    if len(pairs) < 2:
        return float(ndtri(0.5 + 0.5 * level))
    spectrum, directions = np.linalg.eigh(covariance)
    root = directions * np.sqrt(np.maximum(spectrum, 0.0))
    rng = np.random.default_rng(seed)
    largest = np.empty(_DRAWS)
    for start in range(0, _DRAWS, _BLOCK):
        drawn = root @ rng.standard_normal((len(covariance), _BLOCK))
        block = np.zeros(_BLOCK)
        for i, j in pairs:
            np.maximum(block, np.abs(drawn[i] - drawn[j]) / errors[i, j], out=block)
        largest[start : start + _BLOCK] = block
    return float(np.quantile(largest, level))

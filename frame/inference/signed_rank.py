"""Wilcoxon's signed-rank test over paired units, and the patient-bootstrap interval beside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from frame.errors import InputError
from frame.inference.contrasts import Contrast, paired_contrast

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Paired differences, or their sizes, closer than this are equal: they differ by rounding only.
TIE = 1e-12
#: Up to this many non-zero differences the law of the statistic is enumerated.
LARGEST_EXACT = 50

#: Goes beside every signed-rank p over units that were read on one test set.
SHARED_PATIENTS = (
    "The paired units are read on the same test patients, so they are not independent and this p is too "
    "sure of itself; the interval beside it resamples the patients."
)


@dataclass(frozen=True)
class SignedRank:
    """Result of Wilcoxon's signed-rank test.

    Attributes
    ----------
    statistic : float
        Smaller of the two sums of ranks.
    p : float
        Two-sided; NaN when no pair differs.
    median_change : float
        Median of second minus first over all pairs, zeros included.
    n : int
        Pairs with both values.
    n_zero : int
        Pairs without a difference: they carry no rank.
    n_missing : int
        Pairs left out because a value is missing.
    law : str
        ``exact`` up to 50 non-zero differences, otherwise ``normal``.
    reason : str
        Why p is NaN, or how many pairs were left out; otherwise empty.
    """

    statistic: float
    p: float
    median_change: float
    n: int
    n_zero: int
    n_missing: int
    law: str
    reason: str = ""

    @property
    def status(self) -> str:
        """``ok`` or ``not estimable``."""
        return "not estimable" if np.isnan(self.p) else "ok"


def wilcoxon_paired(a: ArrayLike, b: ArrayLike) -> SignedRank:
    """Two-sided Wilcoxon signed-rank test of ``b`` against ``a`` over paired units.

    Parameters
    ----------
    a, b : array_like of float, shape (units,)
        The two conditions, unit by unit. A pair with a NaN is left out and counted.

    Returns
    -------
    SignedRank

    Raises
    ------
    InputError
        If the two differ in length or hold an infinite value.

    Notes
    -----
    The test takes the units as independent. Units of one study usually share all test patients; say
    :data:`SHARED_PATIENTS` and show :func:`median_change_interval` beside it.

    Zero differences are dropped (Wilcoxon's own rule). Up to 50 differences the law of the rank sum
    over all sign patterns is computed exactly, given the tied ranks; beyond, a normal law with the
    variance reduced for ties and no continuity correction.

    References
    ----------
    Wilcoxon F. Individual comparisons by ranking methods. Biometrics Bulletin 1:80-83, 1945.

    Examples
    --------
    >>> wilcoxon_paired([0, 0, 0, 0, 0], [1, 2, 3, 4, 5]).p
    0.0625
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise InputError(
            f"the two conditions have shapes {first.shape} and {second.shape}; "
            "give two columns with one value per unit."
        )
    if np.isinf(first).any() or np.isinf(second).any():
        raise InputError("a paired value is infinite; give finite numbers or NaN.")
    change = second - first
    change = change[~np.isnan(change)]
    n_missing = len(first) - len(change)
    said = f"{n_missing} of {len(first)} pairs have a missing value and were left out" if n_missing else ""
    moved = change[np.abs(change) > TIE]
    n_zero = len(change) - len(moved)
    median = float(np.median(change)) if len(change) else float("nan")
    if len(moved) == 0:
        why = "no paired difference is other than zero" if len(change) else "there are no pairs"
        reason = f"{why}; {said}" if said else why
        nan = float("nan")
        return SignedRank(nan, nan, median, len(change), n_zero, n_missing, "none", reason)
    doubled = _doubled_ranks(np.abs(moved))
    above = int(doubled[moved > 0].sum())
    smaller = min(above, int(doubled.sum()) - above)
    exact = len(moved) <= LARGEST_EXACT
    return SignedRank(
        statistic=smaller / 2.0,
        p=_exact_p(doubled, smaller) if exact else _normal_p(doubled, smaller),
        median_change=median,
        n=len(change),
        n_zero=n_zero,
        n_missing=n_missing,
        law="exact" if exact else "normal",
        reason=said,
    )


def median_change_interval(replicates: ArrayLike, point: ArrayLike) -> Contrast:
    """Patient-bootstrap interval of the median change over units.

    Parameters
    ----------
    replicates : array_like of float, shape (units, resamples)
        Change of every unit in every resample of the patients; all units are read from the same
        resamples. NaN where a unit is undefined.
    point : array_like of float, shape (units,)
        Change of every unit on the data. NaN where a unit is undefined.

    Returns
    -------
    Contrast
        ``change`` is the median of ``point`` over its defined units. A resample in which one of
        these units is undefined has no median and is left out and counted.

    Raises
    ------
    InputError
        If the shapes do not fit.
    """
    values, points = np.asarray(replicates, dtype=np.float64), np.asarray(point, dtype=np.float64)
    if values.ndim != 2 or points.shape != values.shape[:1]:
        raise InputError(
            f"replicates has shape {values.shape} and point has shape {points.shape}; "
            "give (units, resamples) and (units,)."
        )
    defined = ~np.isnan(points)
    if not defined.any():
        return paired_contrast(float("nan"), np.full(values.shape[1], np.nan))
    result = paired_contrast(float(np.median(points[defined])), np.median(values[defined], axis=0))
    n_left_out = int(np.count_nonzero(~defined))
    if not n_left_out:
        return result
    said = f"{n_left_out} of {len(points)} units are undefined and were left out"
    reason = f"{result.reason}; {said}" if result.reason else said
    return Contrast(
        result.change,
        result.lo,
        result.hi,
        result.p,
        result.resamples,
        result.n_undefined,
        result.status,
        reason,
    )


def _doubled_ranks(sizes: Floats) -> Integers:
    """Twice the mid-ranks of positive numbers: whole numbers."""
    order = np.argsort(sizes, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(sizes[order]) > TIE]))
    ends = np.append(starts[1:], len(sizes))
    ranks = np.empty(len(sizes), dtype=np.int64)
    ranks[order] = np.repeat(starts + 1 + ends, ends - starts)
    return ranks


def _exact_p(doubled: Integers, smaller: int) -> float:
    """Both tails of the rank sum over all sign patterns, which are equally likely."""
    # Python's whole numbers: up to 2^50 patterns are counted without rounding.
    ways = [0] * (smaller + 1)
    ways[0] = 1
    for rank in doubled.tolist():
        for total in range(smaller, rank - 1, -1):
            ways[total] += ways[total - rank]
    return float(min(1.0, 2 * sum(ways) / 2 ** len(doubled)))


def _normal_p(doubled: Integers, smaller: int) -> float:
    from scipy.special import ndtr

    ranks = doubled / 2.0
    distance = ranks.sum() / 2.0 - smaller / 2.0
    return float(min(1.0, 2.0 * ndtr(-distance / np.sqrt(np.sum(ranks**2) / 4.0))))

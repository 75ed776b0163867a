"""A contrast of two conditions read on the same patients: its interval and its p value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from frame.errors import InputError

Floats = NDArray[np.float64]

#: Differences below this are rounding noise of the arithmetic; ties count as at least as large.
TIE = 1e-12
#: Fewer defined resamples than this carry no interval.
FEWEST_RESAMPLES = 20


@dataclass(frozen=True)
class Contrast:
    """A paired change with its patient-bootstrap interval.

    Attributes
    ----------
    change : float
        The change itself, computed on the data and not the mean of the resamples; on the scale of
        the measure.
    lo, hi : float
        2.5th and 97.5th percentiles of the resampled change (linear interpolation).
    p : float
        Two-sided, in (0, 1]: the resampled changes are moved to mean zero and reflected, and counted
        where they are at least as far from zero as ``change``: ``(1 + #) / (resamples + 1)``.
    resamples : int
        Resamples in which the change was defined; the interval and p use these.
    n_undefined : int
        Resamples in which it was not, because a subgroup had no case of a class.
    status, reason : str
        ``ok`` with an empty reason, or ``not estimable`` with the reason; lo, hi and p are NaN then.
        With ``ok`` the reason says how many resamples were left out, if any.
    """

    change: float
    lo: float
    hi: float
    p: float
    resamples: int
    n_undefined: int = 0
    status: str = "ok"
    reason: str = ""


def paired_contrast(point: float, replicates: ArrayLike) -> Contrast:
    """Interval and two-sided p of a change between two conditions evaluated on the same patients.

    Parameters
    ----------
    point : float
        Change computed on the data: second condition minus first.
    replicates : array_like of float, shape (resamples,)
        The same change in every bootstrap resample of patients, both conditions read from the same
        resample; NaN where it is undefined.

    Returns
    -------
    Contrast

    Raises
    ------
    InputError
        If ``replicates`` is not one column of numbers, or anything is infinite.

    Notes
    -----
    For a change that may have either sign. A max-min difference cannot be negative and its resamples
    lie above zero even under exact fairness, so this is no test of a single difference against zero;
    the fair-model reference is.

    Examples
    --------
    >>> import numpy as np
    >>> result = paired_contrast(0.03, np.linspace(0.01, 0.05, 101))
    >>> round(result.lo, 3), round(result.hi, 3), round(result.p, 3)
    (0.011, 0.049, 0.01)
    """
    values = np.asarray(replicates, dtype=np.float64)
    if values.ndim != 1:
        raise InputError(f"replicates has {values.ndim} dimensions; give one number per resample.")
    change = float(point)
    if np.isinf(values).any() or np.isinf(change):
        raise InputError("a change is infinite; give finite numbers, NaN where it is undefined.")
    defined = values[~np.isnan(values)]
    n_undefined = len(values) - len(defined)
    if np.isnan(change):
        return _not_estimable(change, len(defined), n_undefined, "the change itself is undefined")
    if len(defined) < FEWEST_RESAMPLES:
        reason = (
            f"the change is defined in {len(defined)} of {len(values)} resamples, {FEWEST_RESAMPLES} needed"
        )
        return _not_estimable(change, len(defined), n_undefined, reason)
    lo, hi = np.percentile(defined, [2.5, 97.5])
    distance = np.abs(defined - defined.mean())
    reached = int(np.count_nonzero(distance >= abs(change) - TIE))
    return Contrast(
        change=change,
        lo=float(lo),
        hi=float(hi),
        p=(1 + reached) / (len(defined) + 1),
        resamples=len(defined),
        n_undefined=n_undefined,
        reason=f"undefined in {n_undefined} of {len(values)} resamples, left out" if n_undefined else "",
    )


def _not_estimable(change: float, resamples: int, n_undefined: int, reason: str) -> Contrast:
    nan = float("nan")
    return Contrast(change, nan, nan, nan, resamples, n_undefined, "not estimable", reason)

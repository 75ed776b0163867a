"""What a comparison could have shown: the smallest detectable shift under any law of a difference."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frame.reference.roots import crossing, probit_difference

__all__ = ["MOST_SUBGROUPS", "POWER", "detectable_shift"]

#: With more subgroups than this the search would take minutes, and is not made.
MOST_SUBGROUPS = 20
#: Probability with which a detectable shift would be found.
POWER = 0.8
#: A shift is found to this width; it is shown with three decimals.
_WIDTH = 1e-4


def detectable_shift(
    law: Callable[[Sequence[float]], Any],
    common: float,
    variances: NDArray[np.float64],
    alpha: float,
    power: float = POWER,
) -> float:
    """Smallest true shift of one subgroup that would have been found with the given power.

    Parameters
    ----------
    law : callable
        Law of the max-min difference at given true values, one per subgroup.
    common : float
        Common value of the others; the one subgroup lies that much below it, or above it where below
        would be negative.
    variances : ndarray of float64, shape (subgroups,)
        Sampling variances; subgroups with the same one are interchangeable.
    alpha : float
        Level of the test, not corrected for other tests.
    power : float
        Wanted power.

    Returns
    -------
    float
        The largest of the smallest shifts over the choice of the subgroup, because it is not known in
        advance which one would differ; NaN where no shift reaches the power, and with more than
        :data:`MOST_SUBGROUPS` subgroups.
    """
    if len(variances) > MOST_SUBGROUPS:
        return math.nan
    critical = law([common] * len(variances)).critical_value(alpha)
    if critical is None:
        return math.nan
    largest = 0.0
    for chosen in range(len(variances)):
        if any(variances[chosen] == variances[j] for j in range(chosen)):
            continue
        found = _smallest(law, common, len(variances), chosen, critical, power)
        if math.isnan(found):
            return math.nan
        largest = max(largest, found)
    return largest


def _smallest(
    law: Callable[[Sequence[float]], Any],
    common: float,
    n_groups: int,
    chosen: int,
    critical: float,
    power: float,
) -> float:
    def excess(shift: float) -> float:
        moved = common - shift if common - shift >= 0.0 else min(1.0, common + shift)
        means = [moved if i == chosen else common for i in range(n_groups)]
        reached = law(means).exceedance(critical, min(1e-9, 0.25 * critical))
        return probit_difference(float(reached), power)

    # Downwards as far as 0; only if that is not enough, upwards.
    if excess(common) >= 0.0:
        return _first_reaching(excess, 0.0, common, critical)
    beyond = math.nextafter(common, 1.0)
    if beyond >= 1.0 - common or excess(1.0 - common) < 0.0:
        return math.nan
    return _first_reaching(excess, beyond, 1.0 - common, critical)


def _first_reaching(excess: Callable[[float], float], low: float, high: float, guess: float) -> float:
    """Where the power is reached; the answer usually lies within a factor of two of the critical value."""
    if excess(low) >= 0.0:
        return low
    for candidate in (0.9 * guess, 2.0 * guess):
        if low < candidate < high:
            if excess(candidate) < 0.0:
                low = candidate
            else:
                high = candidate
    return crossing(excess, low, high, width=_WIDTH)

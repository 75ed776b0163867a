"""What a comparison at given counts could have shown: detectable differences and tolerated margins."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product

from frame.errors import InputError
from frame.reference.exact import difference_law
from frame.reference.inputs import KAPPA_RANGE, Counts, check_counts, check_number
from frame.reference.roots import crossing, probit_difference

#: A margin asks for every assignment of subgroups to two values: at most this many subgroups.
LARGEST_MARGIN_SUBGROUPS = 8


def detectable_difference(
    value: float,
    n_positive: Sequence[int] | None,
    n_negative: Sequence[int] | None,
    measure: str = "auroc",
    *,
    method: str = "auto",
    power: float = 0.8,
    alpha: float = 0.05,
    kappa: float = 1.25,
    design_effect: float = 1.0,
) -> float:
    """Smallest true difference that would have been found with the given power at these counts.

    One subgroup truly lies at ``value - d`` (at ``value + d`` where ``value - d`` would be negative)
    and the others at ``value``. For every choice of that subgroup, d is the smallest difference at
    which the observed difference reaches the level-``alpha`` critical value of the fair-model
    reference with probability ``power``; the largest of these is returned, because it is not known
    in advance which subgroup would be the different one.

    Parameters
    ----------
    value, n_positive, n_negative, measure, method, kappa, design_effect
        As in :func:`frame.fair_reference`.
    power, alpha : float
        Strictly between 0 and 1. ``alpha`` is not corrected for multiple claims.

    Returns
    -------
    float
        Difference on the 0-1 scale; NaN when no difference reaches the power at these counts.

    Raises
    ------
    InputError
        One sentence naming the argument, what was found and what is allowed.
    """
    counts = check_counts(value, n_positive, n_negative, measure, method, design_effect)
    check_number("power", power, 0.0, 1.0, above=True, below=True)
    check_number("alpha", alpha, 0.0, 1.0, above=True, below=True)
    check_number("kappa", kappa, *KAPPA_RANGE)
    return detectable_at(counts, power=power, alpha=alpha, kappa=kappa)


def detectable_at(counts: Counts, *, power: float, alpha: float, kappa: float) -> float:
    """:func:`detectable_difference` at counts that have been checked already."""
    critical = difference_law(counts, kappa).critical_value(alpha)
    if critical is None:
        return math.nan
    largest = 0.0
    seen: set[tuple[float, ...]] = set()
    for chosen in range(counts.n_subgroups):
        own = tuple(side[chosen] for side in (counts.n_positive, counts.n_negative) if side)
        if own in seen:
            continue
        seen.add(own)
        found = _smallest_shift(counts, chosen, critical, power, kappa)
        if math.isnan(found):
            return math.nan
        largest = max(largest, found)
    return largest


def _smallest_shift(counts: Counts, chosen: int, critical: float, power: float, kappa: float) -> float:
    """Smallest true shift of one subgroup that reaches the critical value with the given power."""
    value = counts.value

    def excess(shift: float) -> float:
        """Reached power minus the target on the probit scale, where it is nearly a straight line."""
        moved = value - shift if value - shift >= 0.0 else min(1.0, value + shift)
        values = [moved if i == chosen else value for i in range(counts.n_subgroups)]
        return probit_difference(
            difference_law(counts, kappa, values).exceedance(critical, min(1e-9, 0.25 * critical)), power
        )

    # Downwards as far as 0; only if that is not enough, upwards.
    if value > 0.0 and excess(value) >= 0.0:
        return _first_reaching(excess, 0.0, value, critical)
    beyond = math.nextafter(value, 1.0)
    if beyond >= 1.0 - value:
        return math.nan
    if excess(beyond) >= 0.0:
        return value
    if excess(1.0 - value) >= 0.0:
        return _first_reaching(excess, beyond, 1.0 - value, critical)
    return math.nan


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
    return crossing(excess, low, high, width=1e-8)


def exceedance_with_margin(counts: Counts, delta: float | Fraction, margin: float, kappa: float) -> float:
    """Exceedance when true differences up to a margin are tolerated.

    Parameters
    ----------
    counts : Counts
        Checked counts.
    delta : float or Fraction
        Reported difference.
    margin : float
        Tolerated true difference, in [0, 1].
    kappa : float
        Used by ``binormal`` only.

    Returns
    -------
    float
        The largest P(G >= delta) over all assignments of the subgroups to ``value - margin/2`` or
        ``value + margin/2``, clipped to [0, 1].

    Raises
    ------
    InputError
        With more than 8 subgroups, whose assignments are too many to enumerate.
    """
    k = counts.n_subgroups
    if k > LARGEST_MARGIN_SUBGROUPS:
        raise InputError(
            f"a margin was asked for with {k} subgroups; "
            f"it is computed for at most {LARGEST_MARGIN_SUBGROUPS}."
        )
    ends = (max(0.0, counts.value - 0.5 * margin), min(1.0, counts.value + 0.5 * margin))
    sides = [side for side in (counts.n_positive, counts.n_negative) if side]
    seen: set[tuple[tuple[float, ...], ...]] = set()
    largest = 0.0
    for values in product(ends, repeat=k):
        # Subgroups with the same counts are interchangeable.
        kind = tuple(sorted(zip(values, *sides, strict=True)))
        if kind in seen:
            continue
        seen.add(kind)
        largest = max(largest, difference_law(counts, kappa, values).exceedance(delta))
    return largest

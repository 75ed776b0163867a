"""Find where a monotone function crosses zero, without loading an optimisation package."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.special import ndtri

# A law without spread must not stop a search for a bracket.
_SMALLEST_STEP = 1e-3


def narrow_bracket(
    function: Callable[[float], float], low: float, high: float, width: float
) -> tuple[float, float]:
    """Shrink a bracket of a sign change to a given width.

    Interpolate-truncate-project (Oliveira and Takahashi, 2020): false position moved a little towards
    the middle, and never so far from it that the search could need more than one evaluation beyond
    bisection. Few evaluations on smooth functions, safe on step functions.

    Parameters
    ----------
    function : callable
        Increasing, ``function(low) < 0 <= function(high)``.
    low, high : float
        Ends of the bracket.
    width : float
        Wanted width, larger than 0.

    Returns
    -------
    tuple of float
        New ends with ``function(low) < 0 <= function(high)``, at most ``width`` apart unless they
        are neighbouring floating-point numbers.

    Raises
    ------
    ValueError
        If the given ends do not bracket a sign change.
    """
    at_low, at_high = function(low), function(high)
    if not at_low < 0.0 <= at_high:
        raise ValueError("a bracket needs function(low) < 0 <= function(high)")
    first = high - low
    allowed = max(0, math.ceil(math.log2(max(first / width, 1.0)))) + 1
    for step in range(allowed + 1):
        if high - low <= width:
            break
        middle = 0.5 * (low + high)
        interpolated = (high * at_low - low * at_high) / (at_low - at_high)
        towards_middle = math.copysign(1.0, middle - interpolated)
        truncation = 0.2 / first * (high - low) ** 2
        point = middle
        if truncation <= abs(middle - interpolated):
            point = interpolated + towards_middle * truncation
        radius = 0.5 * (width * 2.0 ** (allowed - step) - (high - low))
        if abs(point - middle) > radius:
            point = middle - towards_middle * max(radius, 0.0)
        if not low < point < high:
            break
        value = function(point)
        if value < 0.0:
            low, at_low = point, value
        else:
            high, at_high = point, value
    return low, high


def crossing(function: Callable[[float], float], low: float, high: float, *, width: float = 1e-12) -> float:
    """Point where ``function`` turns from negative to non-negative.

    Parameters
    ----------
    function : callable
        Increasing, ``function(low) < 0 <= function(high)``.
    low, high : float
        Ends of the bracket.
    width : float
        Width of the final bracket, whose upper end is returned.

    Returns
    -------
    float
        A point where the function is not negative, at most ``width`` above the crossing.
    """
    return narrow_bracket(function, low, high, width)[1]


def bracket_quantile(
    function: Callable[[float], float], level: float, mean: float, sd: float, highest: float
) -> tuple[float, float] | None:
    """Bracket the quantile of a difference, from its mean and standard deviation.

    Parameters
    ----------
    function : callable
        Increasing and negative below the quantile.
    level : float
        Level of the quantile; only a guess at the place is taken from it.
    mean, sd : float
        Of the difference.
    highest : float
        Largest point to be tried; the bracket starts at 0.

    Returns
    -------
    tuple of float or None
        ``function(low) < 0 <= function(high)``; ``(0, 0)`` if the function is not negative at 0, None
        if it is negative everywhere.
    """
    guess = min(max(mean + sd * float(ndtri(level)), 0.0), highest)
    low, high = max(0.0, guess - 0.4 * sd), min(highest, guess + 0.6 * sd)
    while function(low) >= 0.0:
        if low == 0.0:
            return 0.0, 0.0
        low, high = max(0.0, low - max(2.0 * (high - low), _SMALLEST_STEP)), low
    while function(high) < 0.0:
        if high == highest:
            return None
        low, high = high, min(highest, high + max(2.0 * (high - low), _SMALLEST_STEP))
    return low, high


def probit_difference(probability: float, level: float) -> float:
    """How far a probability lies above a level, on the scale where distribution functions are straightest."""
    return float(ndtri(min(max(probability, 1e-300), 1.0 - 1e-16)) - ndtri(level))

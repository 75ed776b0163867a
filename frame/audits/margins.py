"""Exceedance where a true difference up to a margin is tolerated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["exceedance_with_margin"]

Floats = NDArray[np.float64]


def exceedance_with_margin(
    law: Callable[[Sequence[float]], Any],
    common: float,
    variances: Floats,
    delta: float | Fraction,
    margin: float,
) -> float:
    """Largest exceedance over all places of the subgroups half a margin below or above the common value.

    Parameters
    ----------
    law : callable
        Law of the max-min difference at given true values, one per subgroup.
    common : float
        Common value.
    variances : ndarray of float64, shape (subgroups,)
        Sampling variances; subgroups with the same one are interchangeable.
    delta : float or fractions.Fraction
        Observed difference.
    margin : float
        Tolerated true difference, larger than 0.

    Returns
    -------
    float
        Probability in [0, 1].
    """
    ends = (max(0.0, common - 0.5 * margin), min(1.0, common + 0.5 * margin))
    seen: set[tuple[tuple[float, float], ...]] = set()
    largest = 0.0
    for means in product(ends, repeat=len(variances)):
        # Subgroups with the same variance are interchangeable.
        kind = tuple(sorted(zip(means, variances.tolist(), strict=True)))
        if kind in seen:
            continue
        seen.add(kind)
        largest = max(largest, float(law(means).exceedance(delta)))
    return largest

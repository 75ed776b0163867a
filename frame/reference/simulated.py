"""The paper's protocol: a reference from a few thousand simulated fair models.

The legacy generator ``numpy.random.RandomState`` is restarted for every unit and the subgroups are
drawn one after another in the given order. ``numpy.random.default_rng`` gives other digits than the
paper prints.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from frame.reference.inputs import Counts
from frame.reference.variances import clip_value, hanley_mcneil_variance

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class SimulatedDifference:
    """Differences of simulated fair models.

    Parameters
    ----------
    counts : Counts
        Checked counts with measure and method.
    draws : int
        Number of simulated models, at least 1 (the paper: 2,000).
    seed : int
        Seed of the legacy generator (the paper: 0).
    """

    def __init__(self, counts: Counts, draws: int, seed: int) -> None:
        generator = np.random.RandomState(seed)
        self._events: list[tuple[Integers, int]] = []
        if counts.method == "binomial":
            for n in counts.denominators:
                self._events.append((generator.binomial(n, counts.value, draws).astype(np.int64), n))
            values = [events / n for events, n in self._events]
        elif counts.method == "hanley-mcneil":
            sd = np.sqrt(hanley_mcneil_variance(counts.value, counts.n_positive, counts.n_negative))
            values = [np.clip(generator.normal(counts.value, float(s), draws), 0.0, 1.0) for s in sd]
        else:
            values = [
                _ranked_binormal(generator, counts.value, int(p), int(n), draws)
                for p, n in zip(counts.n_positive, counts.n_negative, strict=True)
            ]
        table = np.stack(values)
        self.differences: Floats = table.max(axis=0) - table.min(axis=0)

    @property
    def mean(self) -> float:
        """Mean of the draws."""
        return float(np.mean(self.differences))

    @property
    def sd(self) -> float:
        """Standard deviation of the draws (ddof 1); 0 for a single draw."""
        return float(np.std(self.differences, ddof=1)) if len(self.differences) > 1 else 0.0

    def exceedance(self, delta: float | Fraction, tolerance: float = 1e-9) -> float:
        """``(1 + #{G_b >= delta}) / (B + 1)``; draws within ``tolerance`` below ``delta`` count.

        A Fraction is compared with the drawn counts of a rate in whole numbers.
        """
        if isinstance(delta, Fraction) and self._events:
            common = math.lcm(*(n for _, n in self._events), delta.denominator)
            places = np.stack([events.astype(object) * (common // n) for events, n in self._events])
            reached = int(np.count_nonzero(places.max(axis=0) - places.min(axis=0) >= int(delta * common)))
            return (1 + reached) / (len(self.differences) + 1)
        reached = int(np.count_nonzero(self.differences >= float(delta) - tolerance))
        return (1 + reached) / (len(self.differences) + 1)

    def quantile(self, q: float) -> float:
        """Percentile with numpy's linear interpolation."""
        return float(np.quantile(self.differences, q))


def _ranked_binormal(
    generator: np.random.RandomState, value: float, n_positive: int, n_negative: int, draws: int
) -> Floats:
    """AUROCs of ranked normal scores, equal variances, positives moved by sqrt(2) probit(value).

    All positives of a draw are drawn before its negatives.
    """
    shift = float(np.sqrt(2.0) * ndtri(clip_value(value)))
    result = np.empty(draws)
    for b in range(draws):
        positives = generator.normal(shift, 1.0, n_positive)
        negatives = np.sort(generator.normal(0.0, 1.0, n_negative))
        result[b] = np.searchsorted(negatives, positives).sum() / (n_positive * n_negative)
    return result

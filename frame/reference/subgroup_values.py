"""Laws of one subgroup's AUROC that the exact range law integrates over.

Each class holds all subgroups of one audit at once and answers for a whole array of points. A point
is given twice, as its distance ``s`` from 0 and its distance ``t`` from 1, because near the ends one
of them cannot be recovered from the other in floating point and the Beta law may put most of its
mass there.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincc, betainccinv, betaincinv, betaln, ndtr

Floats = NDArray[np.float64]

_ROOT_TWO_PI = float(np.sqrt(2.0 * np.pi))
#: Distances from 0 or 1 below this are one point: an atom of the law.
SMALLEST_DISTANCE = 1e-300
# Mass left out at either side when the points of a Beta law are placed.
_LEFT_OUT = 1e-22
# The same for a normal law, in standard deviations.
_NORMAL_REACH = 9.0


class SubgroupValues(Protocol):
    """Independent laws on [0, 1], one per subgroup; arrays have shape (subgroups, points)."""

    mean: Floats
    sd: Floats
    at_zero: Floats

    def above(self, s: Floats, t: Floats) -> Floats:
        """P(X > x) at points of distance ``s`` from 0 and ``t`` from 1, 0 <= x < 1."""

    def reaching(self, t: Floats) -> Floats:
        """P(X >= 1 - t), 0 <= t < 1."""

    def density(self, s: Floats, t: Floats) -> Floats:
        """Density inside (0, 1)."""

    def bounds(self) -> tuple[Floats, Floats]:
        """Below and above which each subgroup's value has no mass to speak of."""

    def local_scale(self, s: float, t: float) -> float:
        """Distance over which the quickest of the laws changes near a point."""


class ClippedNormals:
    """Normal values clipped to [0, 1] (the paper's draw): atoms at both ends.

    Parameters
    ----------
    mean, sd : ndarray of float64, shape (subgroups,)
        Mean in [0, 1] and standard deviation, larger than 0, before clipping.
    """

    def __init__(self, mean: Floats, sd: Floats) -> None:
        self.mean = mean
        self.sd = sd
        self.at_zero: Floats = ndtr(-mean / sd)
        self._pairs = list(zip(mean.tolist(), sd.tolist(), strict=True))

    def above(self, s: Floats, t: Floats) -> Floats:
        """P(X > x) at points of distance ``s`` from 0 and ``t`` from 1, 0 <= x < 1."""
        return np.asarray(ndtr((self.mean[:, None] - s) / self.sd[:, None]))

    def reaching(self, t: Floats) -> Floats:
        """P(X >= 1 - t), 0 <= t < 1."""
        return np.asarray(ndtr((t - (1.0 - self.mean[:, None])) / self.sd[:, None]))

    def density(self, s: Floats, t: Floats) -> Floats:
        """Density inside (0, 1)."""
        z = (s - self.mean[:, None]) / self.sd[:, None]
        return np.asarray(np.exp(-0.5 * z * z) / (_ROOT_TWO_PI * self.sd[:, None]))

    def bounds(self) -> tuple[Floats, Floats]:
        """Below and above which each subgroup's value has no mass to speak of."""
        reach = _NORMAL_REACH * self.sd
        return self.mean - reach, self.mean + reach

    def local_scale(self, s: float, t: float) -> float:
        """Distance over which the quickest of the laws changes near a point."""
        # Far outside a subgroup's own range its law is flat; the distance back to the range is the scale.
        return float(min(max(sd, 0.25 * (abs(s - mean) - _NORMAL_REACH * sd)) for mean, sd in self._pairs))


class Betas:
    """Beta values with given means and variances.

    Parameters
    ----------
    mean : ndarray of float64, shape (subgroups,)
        In (0, 1).
    variance : ndarray of float64, shape (subgroups,)
        Larger than 0. Capped just below ``mean (1 - mean)``, where the law is two points, 0 and 1.
    """

    def __init__(self, mean: Floats, variance: Floats) -> None:
        variance = np.minimum(variance, (1.0 - 1e-12) * mean * (1.0 - mean))
        self.mean = mean
        self.sd: Floats = np.sqrt(variance)
        total = mean * (1.0 - mean) / variance - 1.0
        self.a: Floats = mean * total
        self.b: Floats = (1.0 - mean) * total
        self.at_zero: Floats = np.asarray(betainc(self.a, self.b, SMALLEST_DISTANCE), dtype=np.float64)
        # The inverse fails or stops short for some shapes; a bound that leaves out more is not one.
        low = np.asarray(betaincinv(self.a, self.b, _LEFT_OUT), dtype=np.float64)
        high = np.asarray(betainccinv(self.a, self.b, _LEFT_OUT), dtype=np.float64)
        self._low: Floats = np.where(betainc(self.a, self.b, low) <= 100.0 * _LEFT_OUT, low, 0.0)
        self._high: Floats = np.where(betaincc(self.a, self.b, high) <= 100.0 * _LEFT_OUT, high, 1.0)
        self._triples = list(
            zip((self.a + self.b + 1.0).tolist(), self._low.tolist(), self._high.tolist(), strict=True)
        )

    def above(self, s: Floats, t: Floats) -> Floats:
        """P(X > x) at points of distance ``s`` from 0 and ``t`` from 1, 0 <= x < 1."""
        return self._upper_tail(s, t)

    def reaching(self, t: Floats) -> Floats:
        """P(X >= 1 - t), 0 <= t < 1."""
        return self._upper_tail(1.0 - t, t)

    def _upper_tail(self, s: Floats, t: Floats) -> Floats:
        """P(X > x), from whichever end is near; below a subgroup's range it is 1 without a call."""
        tails = np.ones((len(self.mean), len(s)))
        for i, (a, b, low) in enumerate(zip(self.a, self.b, self._low, strict=True)):
            from_zero = (s > low) & (s <= 0.5)
            from_one = (s > low) & (s > 0.5)
            tails[i, from_zero] = betaincc(a, b, s[from_zero])
            tails[i, from_one] = betainc(b, a, t[from_one])
        return tails

    def density(self, s: Floats, t: Floats) -> Floats:
        """Density inside (0, 1)."""
        a, b = self.a[:, None], self.b[:, None]
        return np.asarray(np.exp((a - 1.0) * np.log(s) + (b - 1.0) * np.log(t) - betaln(a, b)))

    def bounds(self) -> tuple[Floats, Floats]:
        """Below and above which each subgroup's value has no mass to speak of."""
        return self._low, self._high

    def local_scale(self, s: float, t: float) -> float:
        """Distance over which the quickest of the laws changes near a point."""
        # Near any point a Beta law changes over the deviation it would have if its mean were there.
        product = s * t
        scales = (
            max(math.sqrt(product / total), 0.25 * (low - s), 0.25 * (s - high))
            for total, low, high in self._triples
        )
        return float(min(scales))

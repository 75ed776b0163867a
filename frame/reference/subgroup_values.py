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
from scipy.special import betainc, betaincc, betainccinv, betaincinv, betaln, log_expit, ndtr, roots_legendre

Floats = NDArray[np.float64]

_ROOT_TWO_PI = float(np.sqrt(2.0 * np.pi))
#: Distances from 0 or 1 below this are one point: an atom of the law.
SMALLEST_DISTANCE = 1e-300
# Mass left out at either side when the points of a Beta law are placed.
_LEFT_OUT = 1e-22
# The same for a normal law, in standard deviations.
_NORMAL_REACH = 9.0


# A step between neighbouring points is integrated with these Gauss-Legendre nodes ...
_STEP_NODES, _STEP_WEIGHTS = (np.asarray(x, dtype=np.float64) for x in roots_legendre(4))
# ... where there are this many points, and if the sum agrees at points this far apart with the incomplete
# Beta function: to 1e-11, and to the digits that the function itself has in far tails.
_FEWEST_STEPS, _COMPARED_EVERY, _AGREEMENT, _RELATIVE_AGREEMENT = 48, 96, 1e-11, 1e-7


def _beta_tail(a: float, b: float, s: Floats, t: Floats) -> Floats:
    """P(X > x) of a Beta law, each point taken from the end that is near."""
    near_zero = s <= 0.5
    tail = np.empty(len(s))
    tail[near_zero] = betaincc(a, b, s[near_zero])
    tail[~near_zero] = betainc(b, a, t[~near_zero])
    return tail


class _LogitSteps:
    """Steps between ascending points, prepared once for the tails of several Beta laws.

    The incomplete Beta function costs microseconds a point. The points of a quadrature lie so close
    together that the mass between two of them is a short sum over the density, on the logit axis, where
    both ends are smooth. Added up from the right all terms are positive, so that small tails keep their
    digits.
    """

    def __init__(self, s: Floats, t: Floats) -> None:
        self._s, self._t = s, t
        # A point at an end lies outside every law's range or is reached by no step that is used.
        z = np.log(np.maximum(s, SMALLEST_DISTANCE)) - np.log(np.maximum(t, SMALLEST_DISTANCE))
        half = 0.5 * np.diff(z)[:, None]
        nodes = 0.5 * (z[1:] + z[:-1])[:, None] + half * _STEP_NODES
        self._log_s, self._log_t = log_expit(nodes), log_expit(-nodes)
        self._weights = half * _STEP_WEIGHTS

    def upper_tail(self, a: float, b: float, first: int, last: int) -> Floats | None:
        """P(X > x) at the points ``first`` to ``last - 1``; None if the steps are too wide for this law."""
        within = slice(first, last - 1)
        density = np.exp(a * self._log_s[within] + b * self._log_t[within] - betaln(a, b))
        mass = (density * self._weights[within]).sum(axis=1)
        end = _beta_tail(a, b, self._s[last - 1 : last], self._t[last - 1 : last])
        tail = np.cumsum(np.concatenate([end, mass[::-1]]))[::-1]
        compared = np.arange(0, last - first, _COMPARED_EVERY)
        exact = _beta_tail(a, b, self._s[first:last][compared], self._t[first:last][compared])
        apart = np.abs(tail[compared] - exact)
        agrees = np.all(apart <= np.minimum(_AGREEMENT, _RELATIVE_AGREEMENT * exact))
        return tail if agrees else None


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
        """P(X > x), from whichever end is near; outside a subgroup's range it is 1 or 0 without a call."""
        tails = np.ones((len(self.mean), len(s)))
        steps = _LogitSteps(s, t) if len(s) >= _FEWEST_STEPS else None
        for i, (a, b, low, high) in enumerate(zip(self.a, self.b, self._low, self._high, strict=True)):
            first, last = np.searchsorted(s, (low, high), side="right").tolist()
            tails[i, last:] = 0.0
            if last > first:
                quick = None if steps is None else steps.upper_tail(float(a), float(b), first, last)
                within = slice(first, last)
                tails[i, within] = _beta_tail(a, b, s[within], t[within]) if quick is None else quick
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

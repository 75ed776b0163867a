"""The law of a max-min difference of independent subgroup AUROCs, by quadrature.

``P(G >= d)`` is an integral over the value of the smallest subgroup: the probability that the others
lie above it and at least one lies ``d`` above it. The integrand is built from positive terms only, so
small tails keep their relative accuracy. Values at exactly 0 and 1 are point masses and are summed
apart. Gauss-Legendre panels follow the narrowest law in reach; no random number is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, roots_legendre

from frame.reference.roots import bracket_quantile, crossing, probit_difference
from frame.reference.subgroup_values import SMALLEST_DISTANCE, Betas, SubgroupValues

Floats = NDArray[np.float64]


def _integration_matrix() -> Floats:
    """Integrals from -1 to each Gauss-Legendre node of the polynomials that are 1 at one node."""
    n = len(_NODES)
    # Legendre polynomials at the nodes, and their integrals (P_{k+1} - P_{k-1}) / (2k + 1).
    legendre = np.ones((n + 1, n))
    legendre[1] = _NODES
    for k in range(1, n):
        legendre[k + 1] = ((2 * k + 1) * _NODES * legendre[k] - k * legendre[k - 1]) / (k + 1)
    degree = np.arange(n)
    integrals = np.empty((n, n))
    integrals[0] = _NODES + 1.0
    for k in range(1, n):
        integrals[k] = (legendre[k + 1] - legendre[k - 1]) / (2 * k + 1)
    coefficients = (legendre[:n] * _WEIGHTS) * ((2 * degree + 1) / 2)[:, None]
    return np.asarray(integrals.T @ coefficients)


_NODES, _WEIGHTS = (np.asarray(x, dtype=np.float64) for x in roots_legendre(12))
_BELOW_ONE = 1.0 - 1e-15
# On the logit axis nothing is left beyond this.
_LOGIT_END = -math.log(SMALLEST_DISTANCE)
# Row j integrates the polynomial through the nodes from -1 to node j.
_UP_TO_NODE = _integration_matrix()
# Largest number of subgroups for which the second moment is expanded over subsets.
_EXPANDED_SUBGROUPS = 14
# Where standard deviations differ by more than this, panels are graded instead of equal.
_EQUAL_PANELS_UP_TO = 8.0


class _Axis:
    """Gauss-Legendre panels over points s of (0, length), on the s axis or on a logit axis.

    On the logit axis ``s = length * expit(z)``: power laws at both ends become exponentials in z, and
    the distances of a point from both ends are exact.
    """

    def __init__(self, edges: Floats, logit_length: float | None, length: float) -> None:
        self._half: Floats = 0.5 * np.diff(edges)[:, None]
        middle = 0.5 * (edges[1:] + edges[:-1])[:, None]
        points = (middle + self._half * _NODES).ravel()
        if logit_length is None:
            self._s, self._w = points, length - points
            self._slope: Floats = np.ones_like(points)
        else:
            self._s, self._w = length * expit(points), length * expit(-points)
            self._slope = self._s * self._w / length

    def nodes(self) -> tuple[Floats, Floats, Floats]:
        """Points s, their distances from ``length``, and the weights of an integral over s."""
        return self._s, self._w, (self._half * _WEIGHTS).ravel() * self._slope

    def integral_before(self, values: Floats) -> Floats:
        """Integral of a function, given at the nodes, from the left end up to every node."""
        by_panel = (values * self._slope).reshape(-1, len(_NODES)) * self._half
        whole = np.cumsum(by_panel @ _WEIGHTS)
        return (by_panel @ _UP_TO_NODE.T + (whole - by_panel @ _WEIGHTS)[:, None]).ravel()


class AurocDifference:
    """Law of ``G = max - min`` of independent subgroup AUROCs.

    Parameters
    ----------
    values : SubgroupValues
        The subgroups' laws; two or more. Exact fairness is one common mean.

    Notes
    -----
    :meth:`exceedance` is accurate to about 1e-10 (1e-7 for Beta laws of 1e8 cases), and to a relative
    1e-6 down to 1e-12.
    """

    def __init__(self, values: SubgroupValues) -> None:
        self._values = values
        self._n_subgroups = len(values.mean)
        # The more subgroups enter a product, the faster it changes.
        self._panel = min(2.0, 3.0 / math.sqrt(self._n_subgroups))
        self._low, self._high = values.bounds()
        self._on_logit_axis = isinstance(values, Betas)

    # -- tails ---------------------------------------------------------------------------------

    def exceedance(self, delta: float | Fraction, tolerance: float = 1e-9) -> float:
        """P(G >= delta).

        Parameters
        ----------
        delta : float or Fraction
            Reported difference, 0-1 scale.
        tolerance : float
            A difference this close to 0 or 1 counts as 0 or 1, where the law has point masses;
            elsewhere the law is continuous and a tolerance would change nothing but digits.

        Returns
        -------
        float
            Probability in [0, 1].
        """
        delta = float(delta)
        if delta <= tolerance:
            return 1.0
        if delta > 1.0 + tolerance:
            return 0.0
        return self._tail(1.0 if delta >= 1.0 - tolerance else delta)

    def cdf(self, delta: float) -> float:
        """P(G <= delta); the point mass at a difference of 1 is included only from 1 on."""
        if delta < 0.0:
            return 0.0
        return 1.0 if delta >= 1.0 else 1.0 - self._tail(max(delta, SMALLEST_DISTANCE))

    def _tail(self, d: float) -> float:
        """P(G >= d), 0 < d <= 1."""
        values = self._values
        # The smallest value is exactly 0: the first subgroup there, the earlier ones above 0.
        reaching = values.reaching(np.asarray([max(1.0 - d, SMALLEST_DISTANCE)]))[:, 0]
        total = self._straddling(values.at_zero, 1.0 - values.at_zero, np.ones_like(reaching), reaching)
        if d < 1.0:
            s, w, weights = self._points(d)
            if len(s):
                above = values.above(s, w + d)
                reaching = np.minimum(values.reaching(w), above)
                inside = self._straddling(values.density(s, w + d), above, above, reaching)
                total += float(np.dot(weights, inside))
        return min(1.0, float(total))

    @staticmethod
    def _straddling(smallest: Floats, above_before: Floats, above_after: Floats, reaching: Floats) -> Floats:
        """Sum over which subgroup is smallest of P(the others lie above and one of them reaches).

        A dynamic programme over subgroups: has the smallest been chosen, has one reached. Subgroups
        before the smallest must lie above it (``above_before``), those after may tie
        (``above_after``). All terms are positive.
        """
        shape = smallest.shape[1:]
        open_near, open_far = np.ones(shape), np.zeros(shape)
        chosen_near, chosen_far = np.zeros(shape), np.zeros(shape)
        subgroups = zip(smallest, above_before, above_after, reaching, strict=True)
        for is_smallest, before, after, far in subgroups:
            chosen_far = chosen_far * after + chosen_near * far + open_far * is_smallest
            chosen_near = chosen_near * (after - far) + open_near * is_smallest
            open_far = open_far * before + open_near * far
            open_near = open_near * (before - far)
        return np.asarray(chosen_far)

    # -- where the integrand is evaluated ------------------------------------------------------

    def _points(self, d: float) -> tuple[Floats, Floats, Floats]:
        """Points s of (0, 1-d), their distances w = 1 - d - s from its end, and weights."""
        # Between A - d and A a tail event may be likeliest; below the lowest of both there is nothing.
        deepest = float(np.min(self._values.mean)) - d - 9.0 * float(np.max(self._values.sd))
        low = max(0.0, min(float(np.min(self._low)), deepest))
        high = min(1.0 - d, float(np.min(self._high)))
        if high <= low:
            return np.empty(0), np.empty(0), np.empty(0)
        return self._axis(low, high, d).nodes()

    def _axis(self, low: float, high: float, d: float) -> _Axis:
        """Panels over [low, high] of (0, 1-d), fine enough for the laws at s and at s + d."""
        values = self._values
        length = 1.0 - d
        if not self._on_logit_axis:
            sd = values.sd
            narrow, wide = float(np.min(sd)), float(np.max(sd))
            if wide <= _EQUAL_PANELS_UP_TO * narrow:
                panels = math.ceil((high - low) / (self._panel * narrow))
                return _Axis(np.linspace(low, high, 1 + panels), None, length)

            def step(s: float) -> float:
                t = length - s
                return self._panel * min(values.local_scale(s, t + d), values.local_scale(s + d, t))

            return _Axis(_march(low, high, step), None, length)

        # The axis starts where the point mass at 0 ends: at s = SMALLEST_DISTANCE exactly.
        end = _LOGIT_END + math.log(length)
        first = math.log(low / (length - low)) if low > SMALLEST_DISTANCE else -end
        last = math.log(high / (length - high)) if high < length else end
        # Beyond this both ends are pure powers of the distance, and panels may grow.
        plain = 4.0 + max(abs(math.log(m / (1.0 - m))) for m in values.mean.tolist())
        plain += abs(math.log(d)) if d > 0.0 else 0.0

        def logit_step(z: float) -> float:
            growing = max(1.0, 0.5 * (abs(z) - plain))
            if growing > 1.0:
                return growing
            s, w = length / (1.0 + math.exp(-z)), length / (1.0 + math.exp(z))
            scale = min(values.local_scale(s, w + d), values.local_scale(s + d, w))
            return min(self._panel * scale * length / (s * w), growing)

        return _Axis(_march(first, last, logit_step), length, length)

    # -- moments -------------------------------------------------------------------------------

    @cached_property
    def _whole_axis(self) -> tuple[_Axis, Floats, Floats, Floats]:
        """Panels over all values and, at their nodes, P(X <= x), all above and all below."""
        axis = self._axis(max(0.0, float(np.min(self._low))), min(1.0, float(np.max(self._high))), 0.0)
        s, t, _ = axis.nodes()
        upper = self._values.above(s, t)
        lower = 1.0 - upper
        return axis, lower, np.prod(upper, axis=0), np.prod(lower, axis=0)

    @cached_property
    def mean(self) -> float:
        """E[G], to about 1e-14: the integral of P(min <= x < max)."""
        axis, _, all_above, all_below = self._whole_axis
        return float(np.dot(axis.nodes()[2], 1.0 - all_above - all_below))

    @cached_property
    def sd(self) -> float:
        """Standard deviation of G, to about 1e-11."""
        # E[G^2] = 2 x the integral over s < t of P(min <= s, max > t)
        #        = 2 x the integral over s < t of 1 - prod P(X > s) - prod P(X <= t) + prod [F(t) - F(s)].
        axis, lower, all_above, all_below = self._whole_axis
        weights = axis.nodes()[2]
        second = float(np.dot(weights, axis.integral_before(1.0 - all_above)))
        second -= float(np.dot(weights * all_below, axis.integral_before(np.ones_like(weights))))
        if self._n_subgroups <= _EXPANDED_SUBGROUPS:
            for chosen in range(2**self._n_subgroups):
                at_s = [i for i in range(self._n_subgroups) if chosen >> i & 1]
                at_t = [i for i in range(self._n_subgroups) if not chosen >> i & 1]
                sign = -1.0 if len(at_s) % 2 else 1.0
                inner = axis.integral_before(np.prod(lower[at_s], axis=0))
                second += sign * float(np.dot(weights * np.prod(lower[at_t], axis=0), inner))
        else:
            for k in range(len(weights)):
                inside = axis.integral_before(np.prod(lower[:, k, None] - lower, axis=0))[k]
                second += float(weights[k] * inside)
        return math.sqrt(max(0.0, 2.0 * second - self.mean**2))

    # -- quantiles -----------------------------------------------------------------------------

    def quantile(self, q: float) -> float:
        """Smallest difference d with P(G <= d) >= q, to 1e-12.

        Parameters
        ----------
        q : float
            Level, in (0, 1).
        """
        found = self._smallest(lambda d: probit_difference(self.cdf(d), q), q)
        return 1.0 if found is None else found

    def critical_value(self, alpha: float) -> float | None:
        """Smallest difference d with P(G >= d) <= alpha; None when there is none."""
        return self._smallest(lambda d: -probit_difference(self.exceedance(d, 0.0), alpha), 1.0 - alpha)

    def _smallest(self, margin: Callable[[float], float], level: float) -> float | None:
        margin = cache(margin)
        bracket = bracket_quantile(margin, level, self.mean, self.sd, 1.0)
        if bracket is None:
            return None
        low, high = bracket
        if high == 1.0 and margin(_BELOW_ONE) < 0.0:
            # Only the point mass at a difference of 1 reaches the level.
            return 1.0
        return crossing(margin, low, min(high, _BELOW_ONE)) if high > 0.0 else 0.0


def _march(low: float, high: float, step: Callable[[float], float]) -> Floats:
    """Edges from low to high whose spacing follows ``step`` at both ends of every panel."""
    edges = [low]
    while edges[-1] < high:
        here = edges[-1]
        width = step(here)
        width = min(width, step(min(high, here + width)))
        following = here + width
        edges.append(high if high - following < 0.25 * width else following)
    return np.asarray(edges)

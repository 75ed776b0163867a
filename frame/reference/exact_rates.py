"""The law of a max-min difference of independent binomial proportions, summed over its lattice.

Every subgroup value is a multiple of ``1/n``. The probability that the largest and the smallest
value lie at least ``d`` apart is a sum over which subgroup is the (first) smallest, which value it
takes, and which other subgroup is the first to lie ``d`` above it: all terms are positive, so tail
probabilities keep their relative accuracy however small they are. Nothing is simulated and no
special function is called: a probability mass is a product of ratios of neighbouring terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from frame.reference.roots import bracket_quantile, narrow_bracket, probit_difference

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Mass left out of each subgroup's support: of no account for means and quantiles ...
_NARROW = 1e-26
# ... and for tails that the narrow support cannot see.
_WIDE = 1e-290
# Below this the tail is summed again over the wide support.
_TRUST_NARROW_ABOVE = 1e-14
# Attainable differences listed at once when a quantile is located among them.
_LISTED = 16
# Lattice intervals up to which the second moment is added up over all pairs of them.
_LISTED_INTERVALS = 250
# Largest number of subgroups for which the second moment is expanded over subsets.
_EXPANDED_SUBGROUPS = 14


class Proportion:
    """Law of one subgroup's proportion on its lattice: support ``first .. last``, mass and tails.

    Parameters
    ----------
    n : int
        Trials; values are ``0, 1/n, ..., 1``.
    first : int
        Smallest count that has mass.
    mass : ndarray of float64
        Probabilities of the counts from ``first`` on; they add up to 1.
    """

    def __init__(self, n: int, first: int, mass: Floats) -> None:
        self.n = n
        self.first, self.last = first, first + len(mass) - 1
        self.mass = mass
        self.counts: Integers = np.arange(self.first, self.last + 1, dtype=np.int64)
        self.values: Floats = self.counts / n
        # upper[k - first] = P(X >= k), with a closing 0.
        self.upper: Floats = np.append(np.cumsum(mass[::-1])[::-1], 0.0)
        self.upper[0] = 1.0

        # lower[k - first] = P(X < k), with a leading 0.
        self.lower: Floats = np.concatenate([[0.0], np.cumsum(mass)])
        self.lower[-1] = 1.0

    def below(self, counts: Integers) -> Floats:
        """P(X < count) for every count, not as 1 - P(X >= count): small ones keep their digits."""
        return self.lower.take(counts - self.first, mode="clip")

    def at_least(self, counts: Integers) -> Floats:
        """P(X >= count) for every count."""
        return self.upper.take(counts - self.first, mode="clip")


def _binomial(n: int, rate: float, left_out: float) -> Proportion:
    """Binomial proportion without the ends that together have a mass below ``left_out``."""
    if rate in (0.0, 1.0):
        return Proportion(n, n if rate == 1.0 else 0, np.ones(1))
    # Bernstein's bound gives the distance from the mean beyond which less than left_out remains.
    z_squared = -2.0 * math.log(left_out)
    spread = n * rate * (1.0 - rate)
    reach = z_squared / 6.0 + math.sqrt(z_squared**2 / 36.0 + z_squared * spread)
    first = max(0, math.floor(n * rate - reach))
    last = min(n, math.ceil(n * rate + reach))
    mode = min(n, math.floor((n + 1) * rate))
    odds = rate / (1.0 - rate)
    above = np.arange(mode, last, dtype=np.float64)
    below = np.arange(mode, first, -1, dtype=np.float64)
    rising = np.cumprod((n - above) / (above + 1.0) * odds)
    falling = np.cumprod(below / (n - below + 1.0) / odds)
    mass = np.concatenate([falling[::-1], [1.0], rising])
    return Proportion(n, first, mass / math.fsum(mass.tolist()))


@lru_cache(maxsize=256)
def _proportion(n: int, rate: float, left_out: float) -> Proportion:
    return _binomial(n, rate, left_out)


def binomial_proportion(n: int, rate: float) -> Proportion:
    """Law of a binomial proportion: ``values`` and their ``mass``, ends without mass to speak of cut."""
    return _proportion(n, rate, _NARROW)


def _both_ends(low_s: Floats, low_t: Floats, high_t: Floats) -> Floats:
    """P(some value <= s and some value > t), s <= t, from each P(X <= s), P(X <= t) and P(X > t)."""
    neither, low, high, both = 1.0, 0.0, 0.0, 0.0
    for at_s, at_t, above in zip(low_s, low_t, high_t, strict=True):
        between = at_t - at_s
        both = both + low * above + high * at_s
        low, high = low * (at_s + between) + neither * at_s, high * (above + between) + neither * above
        neither = neither * between
    return np.asarray(both)


class RateDifference:
    """Law of ``G = max - min`` of independent binomial proportions.

    Parameters
    ----------
    counts : sequence of int
        Denominator of each subgroup, at least 1; two or more subgroups.
    rates : sequence of float
        True rate of each subgroup, in [0, 1]. Exact fairness is one common rate.

    Notes
    -----
    The subgroups are sorted first, so that their order changes no digit of a result.
    """

    def __init__(self, counts: Sequence[int], rates: Sequence[float]) -> None:
        pairs = sorted(zip((int(n) for n in counts), (float(r) for r in rates), strict=True))
        self._pairs: tuple[tuple[int, float], ...] = tuple(pairs)
        self._ahead: dict[float, list[list[Floats]]] = {}

    # -- tails ---------------------------------------------------------------------------------

    def _proportions(self, left_out: float) -> list[Proportion]:
        return [_proportion(n, rate, left_out) for n, rate in self._pairs]

    def _above_smallest(self, left_out: float) -> list[list[Floats]]:
        """For every subgroup g taken as the smallest and every other i: P(X_i lies above g's value).

        Ties belong to the first subgroup: those before g must lie strictly above.
        """
        if left_out not in self._ahead:
            groups = self._proportions(left_out)
            table: list[list[Floats]] = []
            for g, smallest in enumerate(groups):
                row: list[Floats] = []
                for i, other in enumerate(groups):
                    if i == g:
                        row.append(np.empty(0))
                        continue
                    scaled = smallest.counts * other.n
                    needed = scaled // smallest.n + 1 if i < g else -((-scaled) // smallest.n)
                    row.append(other.at_least(needed))
                table.append(row)
            self._ahead[left_out] = table
        return self._ahead[left_out]

    def _tail(self, needed: Callable[[Proportion, Proportion], Integers], left_out: float) -> float:
        """P(some value lies far enough above the smallest); ``needed`` gives the count that is far enough."""
        groups = self._proportions(left_out)
        ahead = self._above_smallest(left_out)
        parts: list[float] = []
        for g, smallest in enumerate(groups):
            near: Floats = np.ones(len(smallest.mass))
            far: Floats = np.zeros(len(smallest.mass))
            for i, other in enumerate(groups):
                if i == g:
                    continue
                above = ahead[g][i]
                reaching = np.minimum(other.at_least(needed(smallest, other)), above)
                far = far * above + near * reaching
                near = near * (above - reaching)
            parts.append(float(np.dot(smallest.mass, far)))
        return min(1.0, math.fsum(parts))

    def _tail_at(self, threshold: float) -> float:
        """P(G >= threshold), comparing floating-point values (no tolerance)."""
        if threshold <= 0.0:
            return 1.0
        if threshold > 1.0:
            return 0.0

        def needed(smallest: Proportion, other: Proportion) -> Integers:
            values = smallest.values + threshold
            return np.ceil(values * other.n).astype(np.int64)

        return self._narrow_or_wide(needed)

    def _narrow_or_wide(self, needed: Callable[[Proportion, Proportion], Integers]) -> float:
        tail = self._tail(needed, _NARROW)
        return tail if tail > _TRUST_NARROW_ABOVE else self._tail(needed, _WIDE)

    def exceedance(self, delta: float | Fraction, tolerance: float = 1e-9) -> float:
        """P(G >= delta).

        Parameters
        ----------
        delta : float or Fraction
            Reported difference, 0-1 scale. A float stands for a printed value: lattice values within
            ``tolerance`` below it count as equal. A Fraction is compared exactly, in integers.
        tolerance : float
            For printed values.

        Returns
        -------
        float
            Probability in [0, 1], relative accuracy better than 1e-9 down to about 1e-280.
        """
        if not isinstance(delta, Fraction):
            return self._tail_at(float(delta) - tolerance)
        if delta <= 0:
            return 1.0
        numerator, denominator = delta.numerator, delta.denominator

        def needed(smallest: Proportion, other: Proportion) -> Integers:
            # other/n_o >= smallest/n_s + p/q  <=>  other >= n_o (smallest q + p n_s) / (n_s q)
            largest = other.n * (smallest.n * denominator + numerator * smallest.n)
            if largest < 2**62:
                scaled = other.n * (smallest.counts * denominator + numerator * smallest.n)
                return -((-scaled) // (smallest.n * denominator))
            exact = [
                -((-other.n * (int(k) * denominator + numerator * smallest.n)) // (smallest.n * denominator))
                for k in smallest.counts
            ]
            return np.asarray(exact, dtype=np.int64)

        return self._narrow_or_wide(needed)

    def cdf(self, delta: float, tolerance: float = 1e-9) -> float:
        """P(G <= delta), lattice values within ``tolerance`` above ``delta`` counting as equal."""
        return 1.0 - self._tail_at(delta + tolerance)

    # -- moments -------------------------------------------------------------------------------

    @cached_property
    def _lattice(self) -> tuple[Floats, Floats, Floats]:
        """Widths between neighbouring lattice points and, between them, P(X <= x) and P(X > x)."""
        groups = self._proportions(_NARROW)
        points = np.unique(np.concatenate([p.values for p in groups]))
        middles = 0.5 * (points[:-1] + points[1:])
        following = [np.floor(middles * p.n).astype(np.int64) + 1 for p in groups]
        lower = np.stack([p.below(k) for p, k in zip(groups, following, strict=True)])
        upper = np.stack([p.at_least(k) for p, k in zip(groups, following, strict=True)])
        return np.diff(points), lower, upper

    @cached_property
    def mean(self) -> float:
        """E[G], to about 1e-14: the length of the line weighted by P(min <= x < max)."""
        widths, lower, upper = self._lattice
        return math.fsum((widths * _both_ends(lower, lower, upper)).tolist())

    @cached_property
    def sd(self) -> float:
        """Standard deviation of G, to about 1e-12."""
        return math.sqrt(max(0.0, self._second_moment() - self.mean**2))

    def _second_moment(self) -> float:
        """E[G^2] = 2 x the area of {s < t} weighted by P(min <= s, max > t)."""
        widths, lower, upper = self._lattice
        if len(widths) <= _LISTED_INTERVALS:
            # A few intervals: add up positive terms only, so that a tiny variance keeps its digits.
            weighted = (
                _both_ends(lower[:, :, None], lower[:, None, :], upper[:, None, :]) * widths[:, None] * widths
            )
            return 2.0 * float(np.triu(weighted, 1).sum()) + float(np.trace(weighted))
        total = math.fsum((widths * widths * _both_ends(lower, lower, upper)).tolist())
        if len(lower) > _EXPANDED_SUBGROUPS:
            for t in range(1, len(widths)):
                inside = _both_ends(lower[:, :t], lower[:, t, None], upper[:, t, None])
                total += 2.0 * float(widths[t]) * float(np.dot(widths[:t], inside))
            return total

        def earlier(values: Floats) -> Floats:
            """Sum of ``values`` x width over all earlier intervals, for every interval."""
            return np.cumsum(values * widths) - values * widths

        # P(min <= s, max > t) = 1 - P(all > s) - P(all <= t) + prod_i [F_i(t) - F_i(s)], the product
        # multiplied out, so that every term is a function of s times a function of t.
        total += 2.0 * float(np.dot(widths, earlier(1.0 - np.prod(upper, axis=0))))
        total -= 2.0 * float(np.dot(widths * np.prod(lower, axis=0), earlier(np.ones_like(widths))))
        for chosen in range(2 ** len(lower)):
            at_s = [i for i in range(len(lower)) if chosen >> i & 1]
            at_t = [i for i in range(len(lower)) if not chosen >> i & 1]
            sign = -1.0 if len(at_s) % 2 else 1.0
            inner = earlier(np.prod(lower[at_s], axis=0))
            total += sign * 2.0 * float(np.dot(widths * np.prod(lower[at_t], axis=0), inner))
        return total

    # -- quantiles -----------------------------------------------------------------------------

    def quantile(self, q: float, tolerance: float = 1e-9) -> float:
        """Smallest attainable difference d with P(G <= d) >= q.

        Parameters
        ----------
        q : float
            Level, in (0, 1).
        tolerance : float
            Attainable differences closer than this count as one.

        Returns
        -------
        float
            An attainable difference, 0-1 scale.
        """
        # Probabilities carry rounding of 1e-15: a level met but for that counts as met, on every machine.
        smallest = self._smallest_attainable(
            lambda d: probit_difference(self.cdf(d, tolerance) + 1e-12, q), q
        )
        # P(G <= 1) = 1, so some attainable value qualifies.
        return 1.0 if smallest is None else smallest

    def critical_value(self, alpha: float, tolerance: float = 1e-9) -> float | None:
        """Smallest attainable difference d with P(G >= d) <= alpha; None when there is none."""
        if all(p.first == p.last for p in self._proportions(_NARROW)) and self.mean == 0.0:
            # A common rate of exactly 0 or 1 never shows a difference: a single case is critical.
            return 1.0 / max(n for n, _ in self._pairs)
        return self._smallest_attainable(
            lambda d: -probit_difference(self.exceedance(d, tolerance) * (1.0 - 1e-9), alpha), 1.0 - alpha
        )

    def _smallest_attainable(self, margin: Callable[[float], float], level: float) -> float | None:
        """Smallest attainable difference for which an increasing function is not negative."""
        groups = self._proportions(_NARROW)
        margin = cache(margin)
        bracket = bracket_quantile(margin, level, self.mean, self.sd, 1.0)
        if bracket is None or bracket[1] == 0.0:
            return None if bracket is None else 0.0
        # About this many attainable values lie in a unit of length.
        density = sum(len(p.mass) for p in groups) * sum(p.n for p in groups)
        low, high = narrow_bracket(margin, *bracket, _LISTED / density)
        listed = self._attainable(groups, low, high)
        first, last = 0, len(listed)
        while first < last:
            middle = (first + last) // 2
            if margin(float(listed[middle])) >= 0.0:
                last = middle
            else:
                first = middle + 1
        return float(listed[first]) if first < len(listed) else None

    @staticmethod
    def _bounds(
        smallest: Proportion, other: Proportion, low: float, high: float
    ) -> tuple[Integers, Integers]:
        """Counts of ``other`` that lie (low, high] above ``smallest``, widened by rounding."""
        values = smallest.values
        first = np.floor((values + low) * other.n - 1e-6).astype(np.int64)
        last = np.ceil((values + high) * other.n + 1e-6).astype(np.int64)
        return np.maximum(first, other.first), np.minimum(last, other.last)

    def _attainable(self, groups: list[Proportion], low: float, high: float) -> Floats:
        """Attainable differences in a slightly widened [low, high], ascending, without repeats."""
        found: list[Floats] = []
        for g, smallest in enumerate(groups):
            for i, other in enumerate(groups):
                if i == g:
                    continue
                first, last = self._bounds(smallest, other, low, high)
                repeats = np.maximum(last - first + 1, 0)
                below = np.repeat(smallest.counts, repeats)
                start = np.repeat(np.cumsum(repeats) - repeats, repeats)
                above = np.repeat(first, repeats) + np.arange(len(below)) - start
                found.append((above * smallest.n - below * other.n) / (smallest.n * other.n))
        values = np.unique(np.concatenate(found))
        return values[values >= 0.0]

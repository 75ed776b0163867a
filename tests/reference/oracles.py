"""Independent laws of the max-min difference, to test ``frame.reference`` against.

Nothing here imports ``frame``. Every law is computed in at least two unrelated ways (compared in
``test_oracles.py``):

* rates: full enumeration of the lattice in exact fractions; for many images a sum over the position of the
  minimum in fixed-point integers;
* AUROC, clipped normals and beta laws: composite Gauss-Legendre quadrature with mpmath at 40 digits, and the
  same integral in double precision with ``scipy.special`` where many evaluations are needed;
* all of them: plain simulation.

With G the range of independent X_h on [0, 1], 0 < d <= 1, F_h and S_h = 1 - F_h the distribution and
survival functions of the laws before clipping, and the minimum as the variable of integration,

    P(G < d) = prod_h P(X_h >= 1 - d)                                    (minimum at or above 1 - d)
             + int_0^{1-d} sum_j f_j(x) prod_{h != j} [F_h(x + d) - F_h(x)] dx   (minimum inside)
             + prod_h F_h(d) - prod_h [F_h(d) - F_h(0)]                  (minimum at 0; nothing for beta laws)

where the integral over x > 1 - d of the densities has been carried out: there the upper bound no longer
binds, and sum_j f_j prod_{h != j} S_h is the derivative of -prod_h S_h.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import accumulate, pairwise, product
from math import comb, lcm, prod

import mpmath
import numpy as np
from scipy import special

# A context of its own: the precision set here does not leak into other tests.
mp = mpmath.MPContext()
mp.dps = 40

SE_CLIP = 1e-6


# --------------------------------------------------------------------------------------------- rates


@dataclass(frozen=True)
class RateLaw:
    """The exact law of the range of independent proportions; ranges are integers over ``denominator``."""

    denominator: int
    ranges: tuple[int, ...]
    weights: tuple[int, ...]
    total: int

    @property
    def attainable(self) -> list[Fraction]:
        return [Fraction(r, self.denominator) for r in self.ranges]

    @cached_property
    def _tails(self) -> list[int]:
        """Weight of ranges[i] and above, for every i, and 0."""
        return [*list(accumulate(reversed(self.weights)))[::-1], 0]

    def exceedance(self, delta: Fraction) -> Fraction:
        """P(G >= delta)."""
        first = bisect_left(self.ranges, delta * self.denominator)
        return Fraction(self._tails[first], self.total)

    def cdf(self, delta: Fraction) -> Fraction:
        """P(G <= delta)."""
        first = bisect_right(self.ranges, delta * self.denominator)
        return 1 - Fraction(self._tails[first], self.total)

    def mean(self) -> Fraction:
        weighted = sum(r * w for r, w in zip(self.ranges, self.weights, strict=True))
        return Fraction(weighted, self.total * self.denominator)

    def variance(self) -> Fraction:
        weighted = sum(r * r * w for r, w in zip(self.ranges, self.weights, strict=True))
        return Fraction(weighted, self.total * self.denominator**2) - self.mean() ** 2

    def sd(self) -> float:
        variance = self.variance()
        return float(mp.sqrt(mp.mpf(variance.numerator) / variance.denominator))

    def quantile(self, level: float) -> Fraction:
        """Return the smallest attainable d with P(G <= d) >= level."""
        wanted = Fraction(level)
        cumulative = 0
        for r, w in zip(self.ranges, self.weights, strict=True):
            cumulative += w
            if Fraction(cumulative, self.total) >= wanted:
                return Fraction(r, self.denominator)
        raise AssertionError("the weights do not add up to one")


def _binomial_weights(value: Fraction, count: int) -> list[int]:
    """Binomial probabilities times value.denominator ** count, as integers."""
    p, q = value.numerator, value.denominator - value.numerator
    return [comb(count, x) * p**x * q ** (count - x) for x in range(count + 1)]


def enumerate_rates(values: Sequence[float], counts: Sequence[int]) -> RateLaw:
    """Every outcome of independent Binomial(n_h, A_h)/n_h. A float is taken as the fraction that it is."""
    exact = [Fraction(value) for value in values]
    denominator = lcm(*counts)
    axes = []
    for value, count in zip(exact, counts, strict=True):
        step = denominator // count
        axes.append([(x * step, w) for x, w in enumerate(_binomial_weights(value, count)) if w])
    law: dict[int, int] = {}
    for outcome in product(*axes):
        places = [place for place, _ in outcome]
        spread = max(places) - min(places)
        law[spread] = law.get(spread, 0) + prod(w for _, w in outcome)
    total = prod(value.denominator**count for value, count in zip(exact, counts, strict=True))
    ranges = tuple(sorted(law))
    return RateLaw(denominator, ranges, tuple(law[r] for r in ranges), total)


class LargeRateLaw:
    """Range of independent proportions with a common value, many images, in fixed-point integers.

    P(G < d) is the sum, over every lattice value a that the minimum can take, of
    P(all in [a, a + d)) - P(all in (a, a + d)). ``bits`` fixed binary places make each probability
    good to an absolute error near 2 ** (20 - bits).
    """

    def __init__(self, value: float, counts: Sequence[int], bits: int = 260) -> None:
        self.value = Fraction(value)
        self.counts = list(counts)
        self.bits = bits
        self.one = 1 << bits
        self.cumulative = [self._cumulative(count) for count in counts]

    def _cumulative(self, count: int) -> list[int]:
        """cumulative[x] = P(X < x) in fixed point, x = 0 .. count + 1."""
        p, q = self.value.numerator, self.value.denominator - self.value.numerator
        mode = min(count, int((count + 1) * self.value))
        guard = self.bits + 64
        weights = [0] * (count + 1)
        weights[mode] = 1 << guard
        for x in range(mode, count):
            weights[x + 1] = weights[x] * ((count - x) * p) // ((x + 1) * q)
        for x in range(mode, 0, -1):
            weights[x - 1] = weights[x] * (x * q) // ((count - x + 1) * p)
        total = sum(weights)
        out, running = [0], 0
        for w in weights:
            running += w
            out.append((running << self.bits) // total)
        return out

    def _lattice(self, common: int) -> list[int]:
        """Every value a proportion can take, times ``common``."""
        return sorted({x * (common // count) for count in self.counts for x in range(count + 1)})

    def _all_in(self, low: int, high: int, common: int, low_open: bool) -> int:
        """P(low <= X_h / n_h < high for all h), or low < X_h / n_h when ``low_open``, in fixed point."""
        out = self.one
        for count, cumulative in zip(self.counts, self.cumulative, strict=True):
            first = count * low // common + 1 if low_open else -(-count * low // common)
            stop = min(count + 1, -(-count * high // common))
            if stop <= first:
                return 0
            out = (out * (cumulative[stop] - cumulative[first])) >> self.bits
            if not out:
                return 0
        return out

    def exceedance(self, delta: Fraction) -> float:
        """P(G >= delta)."""
        common = lcm(*self.counts, delta.denominator)
        reach = delta.numerator * (common // delta.denominator)
        below = 0
        for low in self._lattice(common):
            closed = self._all_in(low, low + reach, common, low_open=False)
            if closed:
                below += closed - self._all_in(low, low + reach, common, low_open=True)
        return float(mp.mpf(self.one - below) / self.one)

    def mean(self) -> float:
        """E[max] - E[min], each a sum over the merged lattice."""
        common = lcm(*self.counts)
        lattice = self._lattice(common)
        out = 0
        for low, high in pairwise(lattice):
            below = above = self.one
            for count, cumulative in zip(self.counts, self.cumulative, strict=True):
                share = cumulative[count * low // common + 1]
                below = (below * share) >> self.bits
                above = (above * (self.one - share)) >> self.bits
            out += (self.one - below - above) * (high - low)
        return float(mp.mpf(out) / self.one / common)

    def second_moment_of_two(self) -> float:
        """E[(X/n - Y/m)^2] for two groups: the sum of the two variances, since the means are equal."""
        n, m = self.counts
        out = self.value * (1 - self.value) * (Fraction(1, n) + Fraction(1, m))
        return float(out)


# ------------------------------------------------------------------------------- standard errors, shapes


def hanley_mcneil_sd(value: float, n_positive: float, n_negative: float) -> mpmath.mpf:
    """Standard error after Hanley and McNeil (1982); the value is clipped here and nowhere else."""
    a = mp.mpf(min(max(value, SE_CLIP), 1 - SE_CLIP))
    n, m = mp.mpf(n_positive), mp.mpf(n_negative)
    q1 = a / (2 - a)
    q2 = 2 * a * a / (1 + a)
    return mp.sqrt((a * (1 - a) + (n - 1) * (q1 - a * a) + (m - 1) * (q2 - a * a)) / (n * m))


def probit(value: mpmath.mpf) -> mpmath.mpf:
    return mp.sqrt(2) * mp.erfinv(2 * value - 1)


def owens_t(h: mpmath.mpf, a: mpmath.mpf) -> mpmath.mpf:
    """Owen's T by its defining integral."""
    return mp.quad(lambda x: mp.exp(-h * h * (1 + x * x) / 2) / (1 + x * x), [0, a]) / (2 * mp.pi)


def pair_probability_owen(value: mpmath.mpf, rho: mpmath.mpf) -> mpmath.mpf:
    """Phi2(h, h; rho) with h = probit(value), closed form with Owen's T."""
    return value - 2 * owens_t(probit(value), mp.sqrt((1 - rho) / (1 + rho)))


def pair_probability_bivariate(value: mpmath.mpf, rho: mpmath.mpf) -> mpmath.mpf:
    """The same by integrating the bivariate normal: given one coordinate the other is normal."""
    h = probit(value)
    cut = mp.sqrt(1 - rho * rho)
    edges = [h - 30, h - 12, h - 6, h - 3, h - 1, h]
    return mp.quad(lambda z: mp.npdf(z) * mp.ncdf((h - rho * z) / cut), edges)


def pair_probability_scores(value: mpmath.mpf, kappa: mpmath.mpf, shared: str) -> mpmath.mpf:
    """P(both pairs are ranked correctly) for two pairs that share a negative, or a positive.

    Negatives N(0, 1), positives N(mu, kappa^2): given the shared score the two pairs are independent.
    """
    mu = probit(value) * mp.sqrt(1 + kappa * kappa)
    if shared == "negative":
        edges = [-14, -8, -4, -2, 0, 2, 4, 8, 14]
        return mp.quad(lambda z: mp.npdf(z) * mp.ncdf((mu - z) / kappa) ** 2, edges)
    edges = [-14, -8, -4, -2, 0, 2, 4, 8, 14]
    return mp.quad(lambda z: mp.npdf(z) * mp.ncdf(mu + kappa * z) ** 2, edges)


@cache
def binormal_variance(value: float, n_positive: float, n_negative: float, kappa: float) -> mpmath.mpf:
    """Variance of the AUROC of binormal scores with sd(positive) / sd(negative) = kappa."""
    a = mp.mpf(min(max(value, SE_CLIP), 1 - SE_CLIP))
    n, m, k2 = mp.mpf(n_positive), mp.mpf(n_negative), mp.mpf(kappa) ** 2
    share_negative = pair_probability_owen(a, 1 / (1 + k2)) - a * a
    share_positive = pair_probability_owen(a, k2 / (1 + k2)) - a * a
    return (a * (1 - a) + (n - 1) * share_negative + (m - 1) * share_positive) / (n * m)


def beta_shapes(value: float, variance: mpmath.mpf) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Shapes of the beta law with that mean and variance."""
    a = mp.mpf(min(max(value, SE_CLIP), 1 - SE_CLIP))
    total = a * (1 - a) / variance - 1
    return a * total, (1 - a) * total


# ----------------------------------------------------------------------------------- Gauss-Legendre panels


@cache
def gauss_legendre(order: int) -> tuple[list[mpmath.mpf], list[mpmath.mpf], list[list[mpmath.mpf]]]:
    """Nodes and weights on [-1, 1], and the matrix that integrates from -1 up to each node."""
    nodes, weights, table = [], [], []
    for i in range(order):
        x = mp.cos(mp.pi * (mp.mpf(i) + mp.mpf("0.75")) / (order + mp.mpf("0.5")))
        for _ in range(8):
            values = _legendre(order + 1, x)
            slope = order * (x * values[order] - values[order - 1]) / (x * x - 1)
            x -= values[order] / slope
        values = _legendre(order + 1, x)
        slope = order * (x * values[order] - values[order - 1]) / (x * x - 1)
        nodes.append(x)
        weights.append(2 / ((1 - x * x) * slope * slope))
        table.append(values)
    pairs = sorted(zip(nodes, weights, table, strict=True), key=lambda item: item[0])
    nodes, weights, table = ([item[i] for item in pairs] for i in range(3))
    # The Lagrange polynomial of node k is w_k sum_n (2n + 1)/2 P_n(x_k) P_n(x); integrate it up to node i.
    matrix = []
    for i in range(order):
        integrals = [nodes[i] + 1] + [
            (table[i][n + 1] - table[i][n - 1]) / (2 * n + 1) for n in range(1, order)
        ]
        matrix.append(
            [
                weights[k] * sum((mp.mpf(2 * n + 1) / 2) * table[k][n] * integrals[n] for n in range(order))
                for k in range(order)
            ]
        )
    return nodes, weights, matrix


def _legendre(order: int, x: mpmath.mpf) -> list[mpmath.mpf]:
    values = [mp.mpf(1), x]
    for n in range(1, order):
        values.append(((2 * n + 1) * x * values[n] - n * values[n - 1]) / (n + 1))
    return values


def _stride(x: float, spots: Sequence[tuple[float, float]]) -> float:
    """Length over which laws at ``spots`` (centre, sd) are smooth: sds in the bulk, geometric beyond."""
    return min(max(1.8 * sd, 0.5 * abs(x - centre)) for centre, sd in spots)


def _panels(spots: Sequence[tuple[float, float]], high: float) -> list[float]:
    """Panel edges on [0, high]."""
    edges = [0.0]
    while edges[-1] < high:
        edges.append(edges[-1] + _stride(edges[-1], spots))
    edges[-1] = high
    return edges


def _second_moment(
    weights: np.ndarray, jacobian: np.ndarray, halves: np.ndarray, matrix: np.ndarray, below: np.ndarray
) -> float:
    """E[G^2] = 2 int int_{x < y} P(min <= x, max > y) dx dy, from distribution functions at the panel nodes.

    The inner integral over the panel that holds y runs up to y only, by the integration matrix.
    """
    order = len(matrix)
    lower = below.prod(axis=0)
    upper = (1 - below).prod(axis=0)
    out = 0.0
    for panel in range(len(weights) // order):
        rows = slice(panel * order, (panel + 1) * order)
        left = slice(0, (panel + 1) * order)
        between = (below[:, None, rows] - below[:, left, None]).prod(axis=0)
        joint = 1 - upper[left, None] - lower[None, rows] + between
        inner = weights[left, None] * np.ones((1, order))
        inner[rows, :] = (halves[panel] * matrix * jacobian[rows][None, :]).T
        out += float((weights[rows] * (inner * joint).sum(axis=0)).sum())
    return 2 * out


# -------------------------------------------------------------------------------------- clipped normal laws


def _normal_below(z: mpmath.mpf) -> mpmath.mpf:
    """Phi(z); beyond 30 standard deviations (1e-197) it is 0 or 1 at any precision used here."""
    if abs(z) > 30:
        return mp.mpf(1 if z > 0 else 0)
    return mp.erfc(-z * _ROOT_HALF) / 2


_ROOT_HALF = mp.sqrt(mp.mpf(1) / 2)


@dataclass(frozen=True)
class ClippedNormals:
    """Range of independent N(mean_h, sd_h^2) clipped to [0, 1], with mpmath."""

    means: tuple[float, ...]
    sds: tuple[mpmath.mpf, ...]
    order: int = 16

    @classmethod
    def hanley_mcneil(
        cls,
        values: Sequence[float],
        n_positive: Sequence[float],
        n_negative: Sequence[float],
        order: int = 16,
    ) -> ClippedNormals:
        sds = tuple(hanley_mcneil_sd(a, n, m) for a, n, m in zip(values, n_positive, n_negative, strict=True))
        return cls(tuple(values), sds, order)

    def _below(self, h: int, x: mpmath.mpf) -> mpmath.mpf:
        return _normal_below((x - self.means[h]) / self.sds[h])

    def _above(self, h: int, x: mpmath.mpf) -> mpmath.mpf:
        return _normal_below((self.means[h] - x) / self.sds[h])

    def _groups(self) -> list[tuple[int, int]]:
        """Distinct laws, as (first index, multiplicity): equal counts need not be evaluated twice."""
        found: dict[tuple[float, mpmath.mpf], list[int]] = {}
        for h, key in enumerate(zip(self.means, self.sds, strict=True)):
            found.setdefault(key, []).append(h)
        return [(members[0], len(members)) for members in found.values()]

    def less(self, d: float | mpmath.mpf) -> mpmath.mpf:
        """P(G < d)."""
        d = mp.mpf(d)
        if d <= 0:
            return mp.mpf(0)
        if d > 1:
            return mp.mpf(1)
        groups = self._groups()
        zero, one = mp.mpf(0), mp.mpf(1)
        out = mp.fprod(self._above(h, 1 - d) ** k for h, k in groups)
        out += mp.fprod((self._below(h, d) if d < 1 else self._below(h, one)) ** k for h, k in groups)
        out -= mp.fprod((self._below(h, d) - self._below(h, zero)) ** k for h, k in groups)
        if d == 1:
            return out
        spots = [(float(self.means[h] - shift), float(self.sds[h])) for h, _ in groups for shift in (0, d)]
        edges = [mp.mpf(x) for x in _panels(spots, float(1 - d))]
        edges[-1] = 1 - d
        nodes, weights, _ = gauss_legendre(self.order)
        for left, right in pairwise(edges):
            half, middle = (right - left) / 2, (right + left) / 2
            for node, weight in zip(nodes, weights, strict=True):
                x = middle + half * node
                windows = [(self._below(h, x + d) - self._below(h, x), k) for h, k in groups]
                value = zero
                for g, (h, k) in enumerate(groups):
                    if abs(x - self.means[h]) > 30 * self.sds[h]:
                        continue
                    others = windows[g][0] ** (k - 1)
                    for other, (window, power) in enumerate(windows):
                        if other != g:
                            others *= window**power
                    value += k * mp.npdf(x, self.means[h], self.sds[h]) * others
                out += half * weight * value
        return out

    def exceedance(self, d: float | mpmath.mpf) -> mpmath.mpf:
        """P(G >= d)."""
        return 1 - self.less(d)

    def moments(self) -> tuple[float, float]:
        """Mean, and standard deviation (distribution functions at 40 digits, their sum in doubles)."""
        groups = self._groups()
        spots = [(float(self.means[h]), float(self.sds[h])) for h, _ in groups]
        edges = [mp.mpf(x) for x in _panels(spots, 1.0)]
        nodes, weights, matrix = gauss_legendre(self.order)
        mean = mp.mpf(0)
        steps, halves, below = [], [], []
        for left, right in pairwise(edges):
            half, middle = (right - left) / 2, (right + left) / 2
            halves.append(float(half))
            for node, weight in zip(nodes, weights, strict=True):
                x = middle + half * node
                shares = [self._below(h, x) for h, _ in groups]
                tops = [self._above(h, x) for h, _ in groups]
                low = mp.fprod(f**k for f, (_, k) in zip(shares, groups, strict=True))
                high = mp.fprod(s**k for s, (_, k) in zip(tops, groups, strict=True))
                mean += half * weight * (1 - low - high)
                steps.append(float(half * weight))
                below.append([float(f) for f, (_, k) in zip(shares, groups, strict=True) for _ in range(k)])
        second = _second_moment(
            np.array(steps),
            np.ones(len(steps)),
            np.array(halves),
            np.array([[float(v) for v in row] for row in matrix]),
            np.array(below).T,
        )
        return float(mean), float(np.sqrt(second - float(mean) ** 2))


# ------------------------------------------------------------------------------------------------ beta laws


def beta_below(a: mpmath.mpf, b: mpmath.mpf, x: mpmath.mpf, y: mpmath.mpf) -> mpmath.mpf:
    """Regularised incomplete beta function at x = 1 - y, by Lentz's continued fraction."""
    if x <= 0:
        return mp.mpf(0)
    if y <= 0:
        return mp.mpf(1)
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_below(b, a, y, x)
    front = mp.exp(a * mp.log(x) + b * mp.log(y) - _log_beta(a, b)) / a
    tiny = mp.mpf(10) ** -300
    c, d = mp.mpf(1), 1 - (a + b) * x / (a + 1)
    d = 1 / (d if d else tiny)
    out = d
    for n in range(1, 20000):
        step = n * (b - n) * x / ((a + 2 * n - 1) * (a + 2 * n))
        d = 1 / (1 + step * d or tiny)
        c = 1 + step / c or tiny
        out *= d * c
        step = -(a + n) * (a + b + n) * x / ((a + 2 * n) * (a + 2 * n + 1))
        d = 1 / (1 + step * d or tiny)
        c = 1 + step / c or tiny
        out *= d * c
        if abs(d * c - 1) < mp.mpf(10) ** -38:
            return front * out
    raise AssertionError("the continued fraction did not converge")


@cache
def _log_beta(a: mpmath.mpf, b: mpmath.mpf) -> mpmath.mpf:
    return mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)


@dataclass(frozen=True)
class Betas:
    """Range of independent Beta(a_h, b_h), with mpmath.

    The variable is w with x = length * logistic(w), so that a pole of a density at 0 or 1 (a shape below one)
    becomes an exponential, and 1 - x is never formed by subtraction.
    """

    shapes: tuple[tuple[mpmath.mpf, mpmath.mpf], ...]
    order: int = 16

    @classmethod
    def binormal(
        cls,
        values: Sequence[float],
        n_positive: Sequence[float],
        n_negative: Sequence[float],
        kappa: float,
        order: int = 16,
    ) -> Betas:
        return cls(
            tuple(
                beta_shapes(a, binormal_variance(a, n, m, kappa))
                for a, n, m in zip(values, n_positive, n_negative, strict=True)
            ),
            order,
        )

    def _groups(self) -> list[tuple[tuple[mpmath.mpf, mpmath.mpf], int]]:
        found: dict[tuple[mpmath.mpf, mpmath.mpf], int] = {}
        for shape in self.shapes:
            found[shape] = found.get(shape, 0) + 1
        return list(found.items())

    def _edges(self, length: mpmath.mpf, shifts: Sequence[mpmath.mpf]) -> list[mpmath.mpf]:
        """Panel edges in w, a march whose step is set by the laws (in x), by w itself and by the bends.

        A bend: for a small shift d, x + d leaves the neighbourhood of x where logistic(w) is about d.
        """
        spots = []
        for (a, b), _ in self._groups():
            mean = a / (a + b)
            sd = mp.sqrt(mean * (1 - mean) / (a + b + 1))
            spots += [(float(mean - shift), float(sd)) for shift in shifts]
        bends = [0.0]
        for shift in shifts:
            if 0 < shift < 0.2:
                bends += [float(mp.log(shift)), -float(mp.log(shift))]
        w = -95.0 / float(min(1, *(a for a, _ in self.shapes)))
        edges = [w]
        while edges[-1] < 95:
            w = edges[-1]
            small = float(mp.exp(-abs(w)))
            slope = float(length) * small / (1 + small) ** 2
            x = float(length) * (1 if w > 0 else small) / (1 + small)
            step = min(max(1.2, 0.4 * abs(w - bend)) for bend in bends)
            if slope > 0:
                step = min(step, _stride(x, spots) / slope)
            edges.append(w + 0.8 * step)
        return [mp.mpf(w) for w in edges]

    def _sweep(
        self,
        length: mpmath.mpf,
        d: mpmath.mpf,
        visit: Callable[[mpmath.mpf, mpmath.mpf, mpmath.mpf, list, list, list], None],
    ) -> None:
        """Call ``visit(weight, half, jacobian, densities, below(x), below(x + d))`` at every node in turn.

        Distribution functions are the densities integrated along the panels, from one value at the far left.
        """
        groups = self._groups()
        shifts = (mp.mpf(0), d) if d else (mp.mpf(0),)
        edges = self._edges(length, shifts)
        nodes, weights, matrix = gauss_legendre(self.order)
        start = edges[0]
        x = length / (1 + mp.exp(-start))
        running = [[beta_below(a, b, x + s, 1 - s - x) for s in shifts] for (a, b), _ in groups]
        for left, right in pairwise(edges):
            half, middle = (right - left) / 2, (right + left) / 2
            jacobians, slopes = [], [[[] for _ in shifts] for _ in groups]
            for node in nodes:
                w = middle + half * node
                small = mp.exp(-abs(w))
                near = length / (1 + small)
                far = length * small / (1 + small)
                x, rest = (near, far) if w > 0 else (far, near)
                jacobian = x * rest / length
                jacobians.append(jacobian)
                for i, s in enumerate(shifts):
                    log_x = mp.log(x + s)
                    log_y = mp.log(1 - length - s + rest if s else (1 - length) + rest)
                    for g, ((a, b), _) in enumerate(groups):
                        density = mp.exp((a - 1) * log_x + (b - 1) * log_y - _log_beta(a, b))
                        slopes[g][i].append(density * jacobian)
            below = [
                [
                    [running[g][i] + half * mp.fdot(row, slopes[g][i]) for row in matrix]
                    for i in range(len(shifts))
                ]
                for g in range(len(groups))
            ]
            for k in range(self.order):
                visit(
                    weights[k],
                    half,
                    jacobians[k],
                    [slopes[g][0][k] for g in range(len(groups))],
                    [below[g][0][k] for g in range(len(groups))],
                    [below[g][-1][k] for g in range(len(groups))],
                )
            for g in range(len(groups)):
                for i in range(len(shifts)):
                    running[g][i] += half * mp.fdot(weights, slopes[g][i])

    def less(self, d: float | mpmath.mpf) -> mpmath.mpf:
        """P(G < d)."""
        d = mp.mpf(d)
        if d <= 0:
            return mp.mpf(0)
        if d >= 1:
            return mp.mpf(1)
        groups = self._groups()
        total = [mp.fprod((1 - beta_below(a, b, 1 - d, d)) ** k for (a, b), k in groups)]

        def visit(weight, half, _jacobian, slopes, low, high):
            windows = [(top - bottom, k) for bottom, top, (_, k) in zip(low, high, groups, strict=True)]
            for g, (_, k) in enumerate(groups):
                others = windows[g][0] ** (k - 1)
                for other, (window, power) in enumerate(windows):
                    if other != g:
                        others *= window**power
                total[0] += weight * half * k * slopes[g] * others

        self._sweep(1 - d, d, visit)
        return total[0]

    def exceedance(self, d: float | mpmath.mpf) -> mpmath.mpf:
        """P(G >= d)."""
        return 1 - self.less(d)

    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation, as for the clipped normals."""
        groups = self._groups()
        mean = [mp.mpf(0)]
        steps, jacobians, halves, below = [], [], [], []

        def visit(weight, half, jacobian, _slopes, low, _high):
            under = mp.fprod(f**k for f, (_, k) in zip(low, groups, strict=True))
            over = mp.fprod((1 - f) ** k for f, (_, k) in zip(low, groups, strict=True))
            mean[0] += weight * half * jacobian * (1 - under - over)
            steps.append(float(weight * half * jacobian))
            jacobians.append(float(jacobian))
            halves.append(float(half))
            below.append([float(f) for f, (_, k) in zip(low, groups, strict=True) for _ in range(k)])

        self._sweep(mp.mpf(1), mp.mpf(0), visit)
        _, _, matrix = gauss_legendre(self.order)
        second = _second_moment(
            np.array(steps),
            np.array(jacobians),
            np.array(halves[:: self.order]),
            np.array([[float(v) for v in row] for row in matrix]),
            np.array(below).T,
        )
        return float(mean[0]), float(np.sqrt(second - float(mean[0]) ** 2))


# ------------------------------------------------------------------------- double precision, for many calls


def clipped_normals_exceedance(
    means: Sequence[float], sds: Sequence[float], d: float, order: int = 20
) -> float:
    """P(G >= d) of clipped normals in double precision (absolute error near 1e-14)."""
    if d <= 0:
        return 1.0
    if d > 1:
        return 0.0
    mean, sd = np.asarray(means, float)[:, None], np.asarray(sds, float)[:, None]

    def below(x):
        return special.ndtr((x - mean) / sd)

    out = special.ndtr((mean - (1 - d)) / sd).prod() + below(d).prod() - (below(d) - below(0.0)).prod()
    if d < 1:
        spots = [(m - shift, s) for m, s in zip(means, sds, strict=True) for shift in (0.0, d)]
        edges = np.array(_panels(spots, 1 - d))
        nodes, weights = np.polynomial.legendre.leggauss(order)
        half = np.diff(edges)[:, None] / 2
        x = ((edges[1:] + edges[:-1])[:, None] / 2 + half * nodes).ravel()
        step = (half * weights).ravel()
        window = below(x + d) - below(x)
        density = np.exp(-0.5 * ((x - mean) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))
        for j in range(len(means)):
            out += float((step * density[j] * np.delete(window, j, axis=0).prod(axis=0)).sum())
    return float(1 - out)


def betas_exceedance(shapes: Sequence[tuple[float, float]], d: float, order: int = 20) -> float:
    """P(G >= d) of beta laws in double precision, on the panels of ``Betas``."""
    if d <= 0:
        return 1.0
    if d >= 1:
        return 0.0
    # The range of 1 - X is that of X; with the mass near 1, x ** a does not underflow where it still matters.
    if shapes[0][0] < shapes[0][1]:
        shapes = [(b, a) for a, b in shapes]
    a, b = (np.array([float(shape[i]) for shape in shapes])[:, None] for i in range(2))
    law = Betas(tuple((mp.mpf(float(x)), mp.mpf(float(y))) for x, y in shapes))
    edges = np.array([float(w) for w in law._edges(mp.mpf(1 - d), (mp.mpf(0), mp.mpf(d)))])
    nodes, weights = np.polynomial.legendre.leggauss(order)
    half = np.diff(edges)[:, None] / 2
    w = ((edges[1:] + edges[:-1])[:, None] / 2 + half * nodes).ravel()
    x, rest = (1 - d) * special.expit(w), (1 - d) * special.expit(-w)
    log_x = np.log1p(-d) + special.log_expit(w)
    # Times the derivative of x with respect to w, which keeps a pole at 0 finite.
    density = np.exp(a * log_x + (b - 1) * np.log(d + rest) - special.betaln(a, b)) * rest / (1 - d)
    step = (half * weights).ravel()
    window = special.betaincc(b, a, rest) - special.betainc(a, b, x)
    out = float(special.betainc(b, a, d).prod())
    for j in range(len(shapes)):
        out += float((step * density[j] * np.delete(window, j, axis=0).prod(axis=0)).sum())
    return 1 - out


def rates_exceedance_table(counts: Sequence[int], delta: Fraction) -> np.ndarray:
    """Which outcomes (one axis per group) have a range of at least delta, by integer comparison."""
    denominator = lcm(*counts, delta.denominator)
    places = np.meshgrid(*[np.arange(n + 1) * (denominator // n) for n in counts], indexing="ij")
    spread = np.max(places, axis=0) - np.min(places, axis=0)
    return spread >= delta * denominator


@cache
def _ways(count: int) -> np.ndarray:
    return np.array([float(comb(count, x)) for x in range(count + 1)])


def binomial_mass(value: float, count: int) -> np.ndarray:
    x = np.arange(count + 1)
    return _ways(count) * value**x * (1 - value) ** (count - x)


def binormal_variance_double(value: float, n_positive: float, n_negative: float, kappa: float) -> float:
    """``binormal_variance`` in double precision, with scipy's Owen's T."""
    a = min(max(value, SE_CLIP), 1 - SE_CLIP)
    h, k2 = special.ndtri(a), kappa**2

    def covariance(rho):
        return a - 2 * special.owens_t(h, np.sqrt((1 - rho) / (1 + rho))) - a * a

    one, two = covariance(1 / (1 + k2)), covariance(k2 / (1 + k2))
    variance = (a * (1 - a) + (n_positive - 1) * one + (n_negative - 1) * two) / (n_positive * n_negative)
    return float(variance)


def rates_power(table: np.ndarray, values: Sequence[float], counts: Sequence[int]) -> float:
    """Probability of the outcomes marked in ``table`` when group h has rate values[h]."""
    mass = np.ones(())
    for value, count in zip(values, counts, strict=True):
        mass = np.multiply.outer(mass, binomial_mass(value, count))
    return float(mass[table].sum())


def first_crossing(
    power: Callable[[float], float], level: float, turn: float, largest: float, step: float
) -> float:
    """Smallest d in (0, largest] with power(d) >= level: a scan, then bisection; NaN when there is none.

    ``turn``, where the direction of the shift changes, is scanned too: the power may reach the level just
    below it and lose it again above.
    """
    previous = 0.0
    for here in sorted({turn, largest, *np.arange(step, largest, step)}):
        if power(here) >= level:
            low, high = previous, here
            for _ in range(35):
                middle = (low + high) / 2
                low, high = (low, middle) if power(middle) >= level else (middle, high)
            return high
        previous = here
    return float("nan")


# ----------------------------------------------------------------------------------------------- simulation


def simulate_rates(value: float, counts: Sequence[int], draws: int, seed: int) -> np.ndarray:
    """Ranges of simulated proportions, rounded so that equal fractions are equal floats."""
    rng = np.random.default_rng(seed)
    shares = np.array([rng.binomial(n, value, draws) / n for n in counts])
    return np.round(shares.max(axis=0) - shares.min(axis=0), 12)


def simulate_clipped_normals(
    means: Sequence[float], sds: Sequence[float], draws: int, seed: int
) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = np.array(
        [np.clip(rng.normal(m, float(s), draws), 0, 1) for m, s in zip(means, sds, strict=True)]
    )
    return values.max(axis=0) - values.min(axis=0)


def simulate_betas(shapes: Sequence[tuple[float, float]], draws: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = np.array([rng.beta(float(a), float(b), draws) for a, b in shapes])
    return values.max(axis=0) - values.min(axis=0)


def simulate_binormal_auroc(
    value: float, n_positive: int, n_negative: int, kappa: float, draws: int, seed: int
) -> np.ndarray:
    """AUROC of simulated binormal scores, by counting pairs."""
    rng = np.random.default_rng(seed)
    mu = float(probit(mp.mpf(value))) * np.sqrt(1 + kappa**2)
    positive = rng.normal(mu, kappa, (draws, n_positive))
    negative = rng.normal(0, 1, (draws, n_negative))
    return (positive[:, :, None] > negative[:, None, :]).mean(axis=(1, 2))


# ------------------------------------------------------------------------------------------- Mann-Whitney


def mann_whitney_one_positive(value: float, n_negative: int) -> list[float]:
    """Law of the AUROC of equal-variance binormal scores with one positive: P(AUROC = k / n_negative).

    Given the positive's score z, the number of negatives below it is binomial.
    """
    mu = mp.sqrt(2) * probit(mp.mpf(value))
    edges = [-14, -8, -4, -2, 0, 2, 4, 8, 14]
    out = []
    for k in range(n_negative + 1):
        ways = comb(n_negative, k)

        def mass(z, k=k, ways=ways):
            share = mp.ncdf(z + mu)
            return mp.npdf(z) * ways * share**k * (1 - share) ** (n_negative - k)

        out.append(float(mp.quad(mass, edges)))
    return out

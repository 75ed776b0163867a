"""AUROC, ``protocol="exact"``: equal to 40-digit quadrature to 1e-8 and, in the tails, to a relative 1e-6."""

from fractions import Fraction

import numpy as np
import pytest
from oracles import (
    Betas,
    ClippedNormals,
    beta_below,
    betas_exceedance,
    binormal_variance,
    clipped_normals_exceedance,
    hanley_mcneil_sd,
    mp,
)

import frame

HANLEY_MCNEIL = {
    "equal_two": (0.8, [100, 100], [400, 400]),
    "equal_four": (0.9, [100] * 4, [300] * 4),
    "unequal": (0.85, [150, 60, 20], [900, 500, 100]),
    "three_positives": (0.92, [3, 120, 400], [60, 900, 3000]),
    "one_pair_each": (0.7, [1, 1], [1, 1]),
    "one_pair_beside_many": (0.7, [1, 200], [1, 800]),
    "one_positive_of_many": (0.95, [1, 1, 90], [5000, 40, 700]),
    "twenty_thousands": (0.79, [20_000, 25_000], [22_000, 30_000]),
    "errors_fifty_to_one": (0.75, [4, 10_000], [4, 10_000]),
    "errors_fifty_to_one_three": (0.9, [4, 10_000, 300], [4, 10_000, 900]),
    "near_one": (0.9997, [23, 48, 54, 48], [63, 37, 25, 27]),
    "near_one_few": (0.9997, [3, 5], [4, 9]),
    "half": (0.5, [30, 80], [30, 70]),
    "below_half": (0.35, [10, 40, 25], [20, 60, 10]),
    "near_zero": (0.003, [10, 40, 25], [20, 60, 10]),
    "clipping_high": (0.98, [5, 8], [30, 20]),
    "clipping_wide": (0.6, [1, 2, 2], [2, 1, 3]),
    "exactly_one": (1.0, [20, 40], [30, 10]),
    "exactly_zero": (0.0, [20, 40, 9], [30, 10, 9]),
    "exactly_one_unequal": (1.0, [22, 8763, 26_996], [2971, 60, 2]),
    "five_groups": (0.82, [8, 16, 32, 64, 128], [40, 60, 90, 140, 300]),
}
BINORMAL = {
    "equal_two": (0.8, [100, 100], [400, 400], 1.25),
    "unequal": (0.85, [150, 60, 20], [900, 500, 100], 1.0),
    "unequal_wide": (0.85, [60, 20], [500, 100], 1.5),
    "kappa_below_one": (0.85, [15, 60], [90, 50], 0.67),
    "three_positives": (0.92, [3, 120], [60, 900], 1.25),
    "twenty_thousands": (0.79, [20_000, 25_000], [22_000, 30_000], 1.25),
    "errors_fifty_to_one": (0.75, [4, 10_000], [4, 10_000], 1.5),
    "near_one": (0.9997, [23, 48, 54, 48], [63, 37, 25, 27], 1.0),
    "near_one_few": (0.9997, [3, 5], [4, 9], 1.5),
    "near_one_mixed": (0.9997, [3, 2000], [5, 4000], 1.25),
    "exactly_one": (1.0, [20, 40], [30, 10], 1.25),
    "exactly_zero": (0.0, [20, 40], [30, 10], 1.25),
    "half": (0.5, [30, 80], [30, 70], 1.25),
    "below_half": (0.35, [10, 40, 25], [20, 60, 10], 1.5),
    "near_zero": (0.003, [10, 40], [20, 60], 1.25),
    "two_pairs": (0.7, [1, 2], [2, 1], 1.0),
    # One positive among many negatives: a shape near one beside a pole at the other end.
    "flat_beside_peaked": (0.6746681273088498, [592, 1], [17_769, 739], 1.2275055115417246),
    "flat_few": (0.8, [5, 1], [5, 5], 1.0),
    "flat_twice": (0.92, [1, 1], [28, 637], 1.85),
    "near_zero_mixed": (0.0005, [196, 1, 50], [39, 126, 2958], 1.65),
    "five_groups": (0.82, [8, 32, 32, 128, 128], [40, 90, 90, 300, 300], 1.25),
}
# Differences in standard deviations above the mean: from the bulk to where p is about 1e-12.
STEPS = (0, 2, 6)
LEVELS = (0.025, 0.975, 0.9999)


def build(case, order=16):
    if len(case) == 3:
        value, n, m = case
        law = ClippedNormals.hanley_mcneil([value] * len(n), n, m, order)
        return law, frame.fair_reference(value, n, m, method="hanley-mcneil")
    value, n, m, kappa = case
    law = Betas.binormal([value] * len(n), n, m, kappa, order)
    return law, frame.fair_reference(value, n, m, method="binormal", kappa=kappa)


def below(law, d):
    """P(G < d) in double precision, good to 1e-12: quantiles are asked for to 1e-9, at many points."""
    if isinstance(law, ClippedNormals):
        return 1 - clipped_normals_exceedance(law.means, [float(sd) for sd in law.sds], d)
    return 1 - betas_exceedance(law.shapes, d)


CASES = {f"hm-{k}": v for k, v in HANLEY_MCNEIL.items()} | {f"binormal-{k}": v for k, v in BINORMAL.items()}


@pytest.fixture(scope="module", params=list(CASES), ids=list(CASES))
def pair(request):
    """The oracle, the reference, and the oracle's mean and standard deviation."""
    law, fair = build(CASES[request.param])
    return law, fair, *law.moments()


class TestAgainstQuadrature:
    def test_mean(self, pair):
        _, fair, mean, _ = pair
        assert fair.mean == pytest.approx(mean, abs=1e-8)
        assert fair.mean == pytest.approx(mean, rel=1e-6)

    def test_sd(self, pair):
        _, fair, _, sd = pair
        assert fair.sd == pytest.approx(sd, abs=1e-8)
        assert fair.sd == pytest.approx(sd, rel=1e-6)

    def test_exceedance(self, pair):
        law, fair, mean, sd = pair
        differences = {1e-3, 0.05 * mean, 1.0} | {
            min(mean + k * sd, 0.999) for k in STEPS if mean + k * sd > 0
        }
        for d in sorted(differences):
            expected = float(law.exceedance(d))
            got = fair.exceedance(d, tolerance=0.0)
            assert got == pytest.approx(expected, abs=1e-8), d
            if expected >= 1e-12:
                assert got == pytest.approx(expected, rel=1e-6, abs=0), d

    def test_quantiles_invert_the_distribution(self, pair):
        """F(quantile) is the level to 1e-9, or the quantile is right to 1e-12 where F is that steep.

        Below the probability of "all equal" (all clipped to one end) the quantile is 0; above that of "one at
        0, one at 1" it is 1.
        """
        law, fair, _, _ = pair
        for level in LEVELS:
            d = fair.quantile(level)
            assert 0 <= d <= 1
            if d <= 1e-12:
                assert below(law, 1e-12) >= level - 1e-9
            elif d >= 1 - 1e-12:
                assert below(law, 1 - 1e-12) <= level + 1e-9
            elif abs(below(law, d) - level) > 1e-9:
                assert below(law, d - 1e-12) <= level + 1e-9
                assert below(law, d + 1e-12) >= level - 1e-9

    def test_interval(self, pair):
        _, fair, _, _ = pair
        assert tuple(fair.interval) == (fair.quantile(0.025), fair.quantile(0.975))


def solve(exceedance, p):
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if exceedance(middle) > p else (low, middle)
    return high


@pytest.mark.parametrize(
    "name", ["equal_two", "unequal", "three_positives", "twenty_thousands", "five_groups"]
)
def test_tail_at_chosen_probabilities(name):
    """p of about 1e-3, 1e-6, 1e-9, 1e-11 and 1.5e-12; the difference is found in double precision."""
    law, fair = build(HANLEY_MCNEIL[name])
    sds = [float(s) for s in law.sds]
    for p in (1e-3, 1e-6, 1e-9, 1e-11, 1.5e-12):
        d = solve(lambda x: clipped_normals_exceedance(law.means, sds, x), p)
        expected = float(law.exceedance(d))
        assert expected >= 1e-12
        assert fair.exceedance(d, tolerance=0.0) == pytest.approx(expected, rel=1e-6, abs=0)


@pytest.mark.parametrize("method", ["hanley-mcneil", "binormal"])
def test_far_tails_do_not_come_out_as_zero(method):
    """At 1e-13 and far below the size is asked for within a factor of two."""
    n, m = [400, 300, 350], [900, 800, 1000]
    case = (0.8, n, m) if method == "hanley-mcneil" else (0.8, n, m, 1.25)
    law, fair = build(case, order=32)
    seen = []
    for d in (0.16, 0.2, 0.28):
        expected = float(law.exceedance(d))
        seen.append(expected)
        got = fair.exceedance(d)
        assert got > 0
        assert got == pytest.approx(expected, rel=0.5, abs=0), d
    assert seen[0] < 1e-10
    assert seen[-1] < 1e-25


@pytest.mark.parametrize("level", [1e-9, 1 - 1e-9])
@pytest.mark.parametrize(
    "name", ["hm-one_pair_each", "hm-near_one", "binormal-near_one_mixed", "binormal-near_zero_mixed"]
)
def test_quantiles_at_extreme_levels(name, level):
    """In the terms of the level: 1e-9 of probability may lie on either side, at 1e-12 of the difference."""
    law, fair = build(CASES[name])
    d = fair.quantile(level)
    assert 0 <= d <= 1
    assert float(law.less(max(d - 1e-12, 0.0))) <= level + 1e-9
    assert d >= 1 - 1e-12 or float(law.less(d + 1e-12)) >= level - 1e-9


@pytest.mark.parametrize("method", ["hanley-mcneil", "binormal"])
def test_a_continuous_law_needs_no_tolerance(method):
    """Between its point masses the law has no ties: fractions, floats and any tolerance give the same."""
    fair = frame.fair_reference(0.8, [100, 60], [400, 100], method=method)
    exact = fair.exceedance(Fraction(1, 16))
    assert exact == fair.exceedance(0.0625) == fair.exceedance(0.0625, tolerance=0.0)
    assert fair.exceedance(1e-9) == 1.0
    assert fair.exceedance(1e-9, tolerance=0.0) < 1.0


class TestPointMasses:
    def test_at_one_difference(self):
        """P(G >= 1): one subgroup clipped to 0 and another to 1."""
        n, m = [1, 1, 2], [1, 2, 1]
        law, fair = build((0.6, n, m))
        expected = float(law.exceedance(1.0))
        assert expected > 0.01
        assert fair.exceedance(1.0, tolerance=0.0) == pytest.approx(expected, abs=1e-10)
        assert fair.exceedance(1.0 - 1e-10) == fair.exceedance(1.0) == fair.exceedance(1.0, tolerance=0.0)
        assert fair.exceedance(1.0 + 1e-6) == 0

    def test_at_zero_difference(self):
        """At A = 1 each subgroup is clipped to 1 with probability one half: a tie of both has 1/4."""
        fair = frame.fair_reference(1.0, [20, 40], [30, 10], method="hanley-mcneil")
        assert fair.exceedance(0) == 1
        assert fair.exceedance(1e-9, tolerance=0.0) == pytest.approx(0.75, abs=1e-4)
        assert fair.quantile(0.2499) == pytest.approx(0, abs=1e-12)
        assert fair.quantile(0.26) > 0


class TestOnePairEach:
    """One positive and one negative: the binormal variance is A(1 - A), so the beta law is a coin."""

    def test_two_coins(self):
        fair = frame.fair_reference(0.7, [1, 1], [1, 1], method="binormal")
        assert fair.mean == pytest.approx(0.42, abs=1e-8)
        assert fair.sd == pytest.approx(np.sqrt(0.42 * 0.58), abs=1e-8)
        for d in (1e-6, 0.5, 1.0):
            assert fair.exceedance(d, tolerance=0.0) == pytest.approx(0.42, abs=1e-8)

    def test_a_coin_beside_a_subgroup(self):
        """Given the coin, G is 1 - X or X."""
        fair = frame.fair_reference(0.7, [1, 20], [1, 30], method="binormal")
        other = Betas.binormal([0.7], [20], [30], 1.25).shapes[0]
        below, above = _beta_cdf(*other, 0.4), 1 - _beta_cdf(*other, 0.6)
        expected = 0.7 * below + 0.3 * above
        assert fair.exceedance(0.6, tolerance=0.0) == pytest.approx(expected, abs=1e-8)
        assert fair.mean == pytest.approx(0.7 * 0.3 + 0.3 * 0.7, abs=1e-8)


def _beta_cdf(a, b, x):
    return float(beta_below(a, b, mp.mpf(x), 1 - mp.mpf(x)))


class TestDesignEffect:
    """n+ and n- are divided by the design effect, without rounding."""

    @pytest.mark.parametrize("effect", [1.3, 2.0, 4.5])
    def test_hanley_mcneil(self, effect):
        n, m = [30, 80, 12], [90, 120, 50]
        law = ClippedNormals.hanley_mcneil([0.85] * 3, [x / effect for x in n], [x / effect for x in m])
        fair = frame.fair_reference(0.85, n, m, design_effect=effect)
        mean, sd = law.moments()
        assert fair.mean == pytest.approx(mean, abs=1e-8)
        assert fair.sd == pytest.approx(sd, abs=1e-8)
        assert fair.exceedance(0.2, tolerance=0.0) == pytest.approx(float(law.exceedance(0.2)), abs=1e-8)

    @pytest.mark.parametrize("effect", [1.3, 4.5])
    def test_binormal(self, effect):
        n, m = [30, 80], [90, 120]
        law = Betas.binormal([0.85] * 2, [x / effect for x in n], [x / effect for x in m], 1.25)
        fair = frame.fair_reference(0.85, n, m, method="binormal", design_effect=effect)
        assert fair.mean == pytest.approx(law.moments()[0], abs=1e-8)
        assert fair.exceedance(0.1, tolerance=0.0) == pytest.approx(float(law.exceedance(0.1)), abs=1e-8)


def test_the_default_kappa_is_one_and_a_quarter():
    default = frame.fair_reference(0.85, [30, 80], [90, 120], method="binormal")
    assert default.mean == frame.fair_reference(0.85, [30, 80], [90, 120], method="binormal", kappa=1.25).mean
    assert default.mean != frame.fair_reference(0.85, [30, 80], [90, 120], method="binormal", kappa=1.0).mean


def test_auto_is_hanley_mcneil_and_auroc():
    auto = frame.fair_reference(0.85, [30, 80], [90, 120])
    named = frame.fair_reference(0.85, [30, 80], [90, 120], "auroc", method="hanley-mcneil", protocol="exact")
    assert (auto.method, auto.measure, auto.protocol) == ("hanley-mcneil", "auroc", "exact")
    assert auto.mean == named.mean


def test_two_groups_through_their_second_moment():
    """Binormal, two groups: mean^2 + sd^2 is the sum of the two variances, whatever the quadrature does."""
    fair = frame.fair_reference(0.93, [12, 70], [300, 45], method="binormal", kappa=1.5)
    expected = float(binormal_variance(0.93, 12, 300, 1.5) + binormal_variance(0.93, 70, 45, 1.5))
    assert fair.mean**2 + fair.sd**2 == pytest.approx(expected, abs=1e-10)


def test_two_equal_groups_far_from_the_ends():
    """Where clipping does not matter, the difference of two normals: mean 2 SE / sqrt(pi)."""
    fair = frame.fair_reference(0.6, [2000, 2000], [3000, 3000], method="hanley-mcneil")
    error = float(hanley_mcneil_sd(0.6, 2000, 3000))
    assert fair.mean == pytest.approx(2 * error / np.sqrt(np.pi), abs=1e-12)
    assert fair.mean**2 + fair.sd**2 == pytest.approx(2 * error**2, abs=1e-14)

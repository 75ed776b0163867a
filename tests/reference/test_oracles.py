"""The oracles against each other: each law in ways that share no code, before it judges anything."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from oracles import (
    Betas,
    ClippedNormals,
    LargeRateLaw,
    beta_below,
    betas_exceedance,
    binormal_variance,
    binormal_variance_double,
    clipped_normals_exceedance,
    enumerate_rates,
    hanley_mcneil_sd,
    mann_whitney_one_positive,
    mp,
    pair_probability_bivariate,
    pair_probability_owen,
    pair_probability_scores,
    simulate_betas,
    simulate_binormal_auroc,
    simulate_clipped_normals,
    simulate_rates,
)

DRAWS = 200_000


def within(estimate, truth, sd, errors=4.0):
    """A simulated mean lies within so many standard errors of the truth."""
    return abs(estimate - truth) <= errors * sd / np.sqrt(DRAWS)


@pytest.mark.parametrize(("value", "counts"), [(0.3, [2, 3]), (0.9, [4, 6, 5]), (0.05, [7, 7])])
def test_enumeration_agrees_with_the_sum_over_the_minimum(value, counts):
    law, large = enumerate_rates([value] * len(counts), counts), LargeRateLaw(value, counts)
    assert large.mean() == pytest.approx(float(law.mean()), rel=1e-14)
    for delta in law.attainable[1:]:
        assert large.exceedance(delta) == pytest.approx(float(law.exceedance(delta)), rel=1e-14)


@pytest.mark.parametrize(("value", "counts"), [(0.3, [2, 3]), (0.9, [4, 6, 5]), (0.5, [1, 1])])
def test_enumeration_agrees_with_simulation(value, counts):
    law = enumerate_rates([value] * len(counts), counts)
    ranges = simulate_rates(value, counts, DRAWS, seed=1)
    assert within(ranges.mean(), float(law.mean()), law.sd())
    for delta in law.attainable:
        p = float(law.exceedance(delta))
        assert within((ranges >= float(delta) - 1e-9).mean(), p, np.sqrt(p * (1 - p)))


def test_enumeration_by_hand():
    """Two groups of one image at 1/2: equal with probability 1/2, else a difference of one."""
    law = enumerate_rates([0.5, 0.5], [1, 1])
    assert law.attainable == [0, 1]
    assert law.exceedance(Fraction(1)) == Fraction(1, 2)
    assert law.quantile(0.5) == 0
    assert law.quantile(0.51) == 1
    assert law.variance() == Fraction(1, 4)


def test_second_moment_of_two_large_groups():
    law = enumerate_rates([0.3, 0.3], [6, 9])
    second = law.variance() + law.mean() ** 2
    assert LargeRateLaw(0.3, [6, 9]).second_moment_of_two() == pytest.approx(float(second), rel=1e-14)


def test_hanley_mcneil_by_hand():
    """A = 0.8, 10 positives, 20 negatives: Q1 = 2/3, Q2 = 1.28/1.8."""
    variance = (0.16 + 9 * (2 / 3 - 0.64) + 19 * (1.28 / 1.8 - 0.64)) / 200
    assert float(hanley_mcneil_sd(0.8, 10, 20)) == pytest.approx(np.sqrt(variance), rel=1e-14)


@pytest.mark.parametrize(("value", "kappa"), [(0.05, 1.25), (0.8, 0.5), (0.8, 1.5), (0.9997, 1.0)])
def test_binormal_pair_probabilities_three_ways(value, kappa):
    """Owen's T, the bivariate normal, and two pairs that share a score: also which rho goes where."""
    a, k = mp.mpf(value), mp.mpf(kappa)
    shared_negative, shared_positive = 1 / (1 + k**2), k**2 / (1 + k**2)
    for rho, shared in ((shared_negative, "negative"), (shared_positive, "positive")):
        closed = pair_probability_owen(a, rho)
        assert abs(closed - pair_probability_bivariate(a, rho)) < mp.mpf(10) ** -25
        assert abs(closed - pair_probability_scores(a, k, shared)) < mp.mpf(10) ** -25


@pytest.mark.parametrize(("n", "m", "kappa"), [(1, 1, 1.25), (2, 5, 1.5), (4, 3, 1.0), (1, 6, 0.5)])
def test_binormal_variance_is_that_of_counted_pairs(n, m, kappa):
    auroc = simulate_binormal_auroc(0.85, n, m, kappa, 40_000, seed=3)
    variance = float(binormal_variance(0.85, n, m, kappa))
    spread = np.sqrt(np.mean((auroc - 0.85) ** 4) - variance**2) / np.sqrt(40_000)
    assert abs(np.mean((auroc - 0.85) ** 2) - variance) < 4 * spread


@pytest.mark.parametrize(("value", "kappa"), [(0.3, 1.25), (0.9997, 1.5)])
def test_binormal_variance_in_double_precision(value, kappa):
    expected = float(binormal_variance(value, 30, 7, kappa))
    assert binormal_variance_double(value, 30, 7, kappa) == pytest.approx(expected, rel=1e-9)


def test_binormal_variance_with_one_pair_is_bernoulli():
    assert float(binormal_variance(0.7, 1, 1, 1.25)) == pytest.approx(0.21, rel=1e-14)


@pytest.mark.parametrize(
    ("a", "b", "x"),
    [(2, 3, 0.4), (0.003, 9.1, 1e-12), (9.1, 0.003, 0.999), (8207, 83, 0.99), (0.2, 0.3, 0.7)],
)
def test_incomplete_beta_against_mpmath(a, b, x):
    a, b, x = mp.mpf(a), mp.mpf(b), mp.mpf(x)
    assert abs(beta_below(a, b, x, 1 - x) - mp.betainc(a, b, 0, x, regularized=True)) < mp.mpf(10) ** -30


NORMALS = [
    (0.8, [3, 50, 400], [20, 500, 4000]),
    (0.9997, [23, 48, 54, 48], [63, 37, 25, 27]),
    (0.35, [10, 40], [20, 60]),
    (0.98, [2, 8, 8], [3, 20, 20]),
    (0.7, [1, 1], [1, 1]),
]
BETAS = [
    (0.8, [3, 50, 400], [20, 500, 4000], 1.25),
    (0.9997, [50, 50, 400], [60, 60, 4000], 1.0),
    (0.02, [3, 5], [40, 10], 1.25),
    (0.5, [1, 2], [2, 1], 1.5),
    (0.99, [20000, 4], [20000, 4], 1.0),
]


@pytest.mark.parametrize(("value", "n", "m"), NORMALS)
def test_clipped_normals(value, n, m):
    """Higher order, double precision and simulation agree with the quadrature."""
    law = ClippedNormals.hanley_mcneil([value] * len(n), n, m)
    finer = ClippedNormals(law.means, law.sds, order=24)
    sds = [float(s) for s in law.sds]
    ranges = simulate_clipped_normals(law.means, sds, DRAWS, seed=5)
    mean, sd = law.moments()
    assert (mean, sd) == pytest.approx(finer.moments(), abs=1e-14)
    assert within(ranges.mean(), mean, sd)
    assert ranges.std() == pytest.approx(sd, rel=0.02)
    for d in (1e-8, mean + sd, min(mean + 4 * sd, 1.0), 1.0):
        p = law.exceedance(d)
        assert abs(p - finer.exceedance(d)) < mp.mpf(10) ** -19
        assert clipped_normals_exceedance(law.means, sds, d) == pytest.approx(float(p), abs=1e-13)
        assert within((ranges >= d).mean(), float(p), float(mp.sqrt(p * (1 - p))))


def test_clipped_normals_of_two_groups_by_conditioning_on_one():
    """P(|X - Y| >= d) by integrating over Y in its three parts, with mpmath's own quadrature."""
    a, s, t, d = mp.mpf("0.9"), mp.mpf("0.08"), mp.mpf("0.15"), mp.mpf("0.12")

    def far(y):
        up = mp.ncdf((a - y - d) / s) if y + d <= 1 else mp.mpf(0)
        down = mp.ncdf((y - d - a) / s) if y - d >= 0 else mp.mpf(0)
        return up + down

    inside = mp.quad(lambda y: mp.npdf(y, a, t) * far(y), [0, d, 0.5, 0.7, 0.8, 1 - d, 0.9, 0.95, 1])
    expected = inside + mp.ncdf(-a / t) * far(mp.mpf(0)) + mp.ncdf((a - 1) / t) * far(mp.mpf(1))
    law = ClippedNormals((0.9, 0.9), (s, t))
    # The law's mean is the double nearest to 0.9, which is what limits the agreement.
    assert float(law.exceedance(d)) == pytest.approx(float(expected), abs=1e-15)


@pytest.mark.parametrize(("value", "n", "m", "kappa"), BETAS)
def test_betas(value, n, m, kappa):
    law = Betas.binormal([value] * len(n), n, m, kappa)
    finer = Betas(law.shapes, order=24)
    ranges = simulate_betas(law.shapes, DRAWS, seed=6)
    mean, sd = law.moments()
    assert (mean, sd) == pytest.approx(finer.moments(), abs=1e-13)
    assert within(ranges.mean(), mean, sd)
    for d in (1e-6, mean + 2 * sd):
        p = law.exceedance(d)
        assert abs(p - finer.exceedance(d)) < mp.mpf(10) ** -19
        assert betas_exceedance(law.shapes, d) == pytest.approx(float(p), abs=1e-12)
        assert within((ranges >= d).mean(), float(p), float(mp.sqrt(p * (1 - p))))


def test_betas_by_hand():
    """Two uniform values: P(G >= d) = (1 - d)^2, mean 1/3, variance 1/18."""
    one = mp.mpf(1)
    law = Betas(((one, one), (one, one)))
    assert abs(law.exceedance(mp.mpf("0.3")) - mp.mpf("0.49")) < mp.mpf(10) ** -30
    assert law.moments() == pytest.approx((1 / 3, np.sqrt(1 / 18)), abs=1e-14)


@pytest.mark.parametrize(("value", "n", "m", "kappa"), [case for case in BETAS if len(case[1]) == 2])
def test_second_moment_of_two_betas(value, n, m, kappa):
    """E[(X - Y)^2] is the sum of the two variances, since the means are equal."""
    mean, sd = Betas.binormal([value] * 2, n, m, kappa).moments()
    expected = sum(binormal_variance(value, i, j, kappa) for i, j in zip(n, m, strict=True))
    assert sd**2 + mean**2 == pytest.approx(float(expected), rel=1e-11)


def test_mann_whitney_law_adds_up():
    law = mann_whitney_one_positive(0.8, 2)
    assert sum(law) == pytest.approx(1, abs=1e-14)
    assert sum(k / 2 * p for k, p in enumerate(law)) == pytest.approx(0.8, abs=1e-14)


def test_the_precision_is_not_shared():
    assert mp.dps == 40
    assert mpmath.mp.dps == 15

"""The interval for the true max-min difference: critical values, coverage and a singular covariance."""

import numpy as np
import pytest
from scipy.stats import norm, studentized_range

from frame.errors import InputError
from frame.reference.simultaneous import true_difference_interval, variances_apart


def test_two_subgroups_have_the_normal_interval():
    found = true_difference_interval(np.array([0.8, 0.7]), np.array([0.0004, 0.0005]))
    half = norm.ppf(0.975) * 0.03
    assert (found.lo, found.hi) == pytest.approx((0.1 - half, 0.1 + half), rel=1e-9)


@pytest.mark.parametrize("k", [3, 5, 8])
def test_equal_variances_have_tukeys_critical_value(k):
    found = true_difference_interval(np.linspace(0.7, 0.8, k), np.full(k, 0.0004))
    assert found.critical == pytest.approx(studentized_range.ppf(0.95, k, np.inf) / 2**0.5, abs=0.01)


def test_order_changes_no_digit():
    values, variances = np.array([0.8, 0.7, 0.75]), np.array([0.0004, 0.003, 0.001])
    forward = true_difference_interval(values, variances)
    backward = true_difference_interval(values[::-1], variances[::-1])
    assert (forward.lo, forward.hi) == (backward.lo, backward.hi)


def covered(rates, n, runs, widened):
    """Share of simulated rates whose interval holds the true difference, variances at the common rate."""
    rng = np.random.default_rng(4)
    rates, n = np.asarray(rates), np.asarray(n)
    held = 0
    for _ in range(runs):
        hits = rng.binomial(n, rates)
        common = hits.sum() / n.sum()
        variances = common * (1 - common) / n
        if widened:
            variances = variances_apart(hits / n, variances, common, n)
        found = true_difference_interval(hits / n, variances)
        held += found.lo <= rates.max() - rates.min() <= found.hi
    return held / runs


@pytest.mark.parametrize(
    ("rates", "n"), [((0.95, 0.60), (400, 40)), ((0.9, 0.9), (300, 200)), ((0.1, 0.35), (900, 60))]
)
def test_it_covers_the_true_difference(rates, n):
    assert covered(rates, n, 2000, widened=True) >= 0.93


def test_variances_of_exact_fairness_cover_too_rarely():
    # What variances_apart is for: without it the small subgroup nearer to the middle is taken as too precise.
    assert covered((0.95, 0.60), (400, 40), 2000, widened=False) < 0.80


def test_variances_of_subgroups_apart():
    values, variances = np.array([0.95, 0.6, 0.99]), np.array([1e-4, 2e-3, 3e-3])
    found = variances_apart(values, variances, 0.9, np.array([400, 40, 30]))
    s = (40 * 0.6 + 4 * 0.9) / 44
    # A value further from the middle than the common one keeps its variance.
    assert found == pytest.approx([1e-4, 2e-3 * s * (1 - s) / 0.09, 3e-3], rel=1e-12)
    mirrored = variances_apart(1 - values, variances, 0.1, np.array([400, 40, 30]))
    assert mirrored == pytest.approx(found, rel=1e-12)
    with pytest.raises(InputError, match="common is 1; it must lie strictly between 0 and 1"):
        variances_apart(values, variances, 1.0, np.array([400, 40, 30]))


def test_a_shared_error_drops_out():
    # All subgroups move together: their differences are known exactly.
    found = true_difference_interval(np.array([0.8, 0.7, 0.6]), np.full((3, 3), 0.01))
    assert (found.lo, found.hi) == pytest.approx((0.2, 0.2), abs=1e-6)


def test_ends_stay_on_the_scale():
    found = true_difference_interval(np.array([0.5, 0.5, 0.5]), np.full(3, 0.2))
    assert (found.lo, found.hi) == (0.0, 1.0)


def test_shapes_are_checked():
    with pytest.raises(InputError, match="values has 1 subgroups"):
        true_difference_interval(np.array([0.5]), np.array([0.1]))
    with pytest.raises(InputError, match=r"the shape \(2, 2\)"):
        true_difference_interval(np.array([0.5, 0.6, 0.7]), np.array([0.1, 0.2]))

"""Heterogeneity of subgroup values: the statistic, its law, and its independence of the order."""

import numpy as np
import pytest
from scipy.stats import chi2

from frame.reference.heterogeneity import heterogeneity, heterogeneity_among

VALUES = np.array([0.80, 0.84, 0.70])
VARIANCES = np.array([0.0004, 0.0009, 0.004])


def test_statistic_is_cochrans():
    weights = [1 / v for v in VARIANCES.tolist()]
    mean = sum(w * a for w, a in zip(weights, VALUES.tolist(), strict=True)) / sum(weights)
    q = sum(w * (a - mean) ** 2 for w, a in zip(weights, VALUES.tolist(), strict=True))
    assert heterogeneity(VALUES, VARIANCES, 0.8).statistic == pytest.approx(q, rel=1e-12)


def test_with_small_variances_the_law_is_chi_square():
    found = heterogeneity(VALUES, VARIANCES / 100, 0.8)
    near = heterogeneity(0.8 + (VALUES - 0.8) / 10, VARIANCES / 100, 0.8)
    assert found.p == pytest.approx(1 / 20_001)
    assert near.p == pytest.approx(chi2.sf(near.statistic, 2), abs=4 * near.p_error)


def test_order_changes_no_digit():
    forward = heterogeneity(VALUES, VARIANCES, 0.8)
    backward = heterogeneity(VALUES[::-1], VARIANCES[::-1], 0.8)
    assert (forward.p, forward.statistic) == (backward.p, pytest.approx(backward.statistic))


def test_equal_values_never_exceed():
    assert heterogeneity(np.full(3, 0.8), VARIANCES, 0.8).p == 1.0


def test_p_counts_ties_as_reaching():
    drawn = np.array([[0.8, 0.8, 0.9], [0.7, 0.8, 0.7]])
    found = heterogeneity_among(np.array([0.7, 0.8]), np.full(2, 0.01), drawn)
    # Draws 1 and 3 are at least as far apart; (1 + 2) / (3 + 1).
    assert (found.p, found.draws) == (0.75, 3)
    assert found.p_error == pytest.approx((0.75 * 0.25 / 3) ** 0.5)

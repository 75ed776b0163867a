from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata, spearmanr

from frame.errors import InputError
from frame.inference.multiplicity import benjamini_hochberg
from frame.inference.trends import spearman_trend

# Multiples of 1/8 are further apart than the tie tolerance, so that both ways of ranking agree.
COLUMN = st.lists(st.integers(0, 12).map(lambda i: i / 8), min_size=3, max_size=25)


@given(COLUMN, st.data())
@settings(derandomize=True, deadline=None, max_examples=150)
def test_rho_equals_scipy(x, data):
    y = data.draw(st.lists(st.integers(0, 12).map(lambda i: i / 8), min_size=len(x), max_size=len(x)))
    trend = spearman_trend(x, y, permutations=1)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert np.isnan(trend.rho)
    else:
        assert trend.rho == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([0, 1, 4, 16, 64], [0.1, 0.3, 0.2, 0.5, 0.4]),
        ([0, 0.25, 0.5, 1], [0.3, 0.2, 0.25, 0.1]),
        ([0, 0, 1, 1, 2, 2], [0.1, 0.2, 0.2, 0.4, 0.4, 0.3]),
    ],
)
def test_p_against_every_permutation(x, y):
    rx, ry = rankdata(x), rankdata(y)
    observed = np.corrcoef(rx, ry)[0, 1]
    every = np.array([np.corrcoef(rx, p)[0, 1] for p in permutations(ry)])
    exact = np.mean(np.abs(every) >= abs(observed) - 1e-9)
    trend = spearman_trend(x, y, permutations=20_000, seed=5)
    assert trend.p == pytest.approx(exact, abs=4.5 * np.sqrt(exact * (1 - exact) / 20_000) + 1 / 20_001)


def test_blocked_p_against_every_pair_of_permutations():
    x = [0, 1, 2, 3, 0, 1, 2]
    y = [0.4, 0.1, 0.3, 0.2, 0.9, 0.8, 0.7]
    blocks = ["a"] * 4 + ["b"] * 3
    first = [np.corrcoef(rankdata(x[:4]), p)[0, 1] for p in permutations(rankdata(y[:4]))]
    second = [np.corrcoef(rankdata(x[4:]), p)[0, 1] for p in permutations(rankdata(y[4:]))]
    means = np.array([(a + b) / 2 for a in first for b in second])
    observed = (spearmanr(x[:4], y[:4]).statistic + spearmanr(x[4:], y[4:]).statistic) / 2
    exact = np.mean(np.abs(means) >= abs(observed) - 1e-9)
    trend = spearman_trend(x, y, blocks, permutations=20_000, seed=1)
    assert (trend.kind, trend.n, trend.n_blocks) == ("blocked", 7, 2)
    assert trend.rho == pytest.approx(observed, abs=1e-12)
    assert trend.p == pytest.approx(exact, abs=4.5 * np.sqrt(exact * (1 - exact) / 20_000) + 1 / 20_001)


def test_levels_of_the_blocks_do_not_matter_when_blocked():
    # Four strengths of three findings: each falls steadily, but the findings lie at other levels.
    strength = np.tile([0, 0.25, 0.5, 1], 3)
    difference = np.concatenate([np.array([0.1, 0.08, 0.07, 0.05]) + shift for shift in (0, 0.5, 0.9)])
    finding = np.repeat(["effusion", "fracture", "edema"], 4)
    blocked = spearman_trend(strength, difference, finding)
    pooled = spearman_trend(strength, difference)
    assert blocked.rho == pytest.approx(-1.0)
    assert blocked.p < 0.01 < 0.05 < pooled.p
    assert pooled.rho == pytest.approx(spearmanr(strength, difference).statistic)
    shifted = difference + np.repeat([5.0, -3.0, 0.0], 4)
    assert spearman_trend(strength, shifted, finding) == blocked


def test_noise_below_a_millionth_is_tied():
    quiet = np.array([0.1, 0.1 + 4e-7, 0.1 - 4e-7, 0.1 + 1e-9, 0.1])
    trend = spearman_trend(np.arange(5), quiet)
    assert np.isnan(trend.rho)
    assert np.isnan(trend.p)
    assert (trend.status, trend.reason) == ("not estimable", "the second column is constant")
    assert not np.isnan(spearman_trend(np.arange(5), quiet * 1e6).rho)
    tied = spearman_trend([0, 1, 2, 3], [0.2, 0.3, 0.3 + 5e-7, 0.4], permutations=1)
    assert tied.rho == pytest.approx(spearmanr([0, 1, 2, 3], [0.2, 0.3, 0.3, 0.4]).statistic)


def test_ties_do_not_depend_on_the_direction():
    values = np.array([0.0, 0.9e-6, 1.8e-6, 1.0, 1.0 + 1.5e-6])
    up, down = spearman_trend(np.arange(5), values), spearman_trend(np.arange(5), -values)
    assert up.rho == -down.rho
    assert up.p == down.p


def test_a_constant_is_never_significant():
    constant = spearman_trend([0, 1, 2, 3], [1, 1, 1, 1])
    q = benjamini_hochberg([0.01, constant.p])
    assert q[0] == pytest.approx(0.01)
    assert np.isnan(q[1])
    assert spearman_trend([2, 2, 2], [1, 2, 3]).reason == "the first column is constant"


def test_missing_pairs_and_unusable_blocks_are_counted():
    trend = spearman_trend([0, 1, 2, 3, np.nan], [1, 2, 4, 3, 9])
    assert (trend.n, trend.reason) == (4, "1 of 5 pairs have a missing value and were left out")
    blocks = ["a"] * 4 + ["b"] * 3 + ["c"]
    trend = spearman_trend([0, 1, 2, 3, 0, 1, 2, 0], [1, 2, 3, 4, 5, 5, 5, 1], blocks)
    assert (trend.n, trend.n_blocks, trend.rho) == (4, 1, 1.0)
    assert trend.reason == (
        "2 of 3 blocks left out: 1 because the second column is constant; 1 because it has 1 pair, 3 needed"
    )
    empty = spearman_trend([], [])
    assert (empty.status, empty.reason) == ("not estimable", "there are no pairs")
    assert spearman_trend([1, 2], [1, 2]).reason == "it has 2 pairs, 3 needed"


def test_smallest_p_and_seeds():
    x = np.arange(12)
    assert spearman_trend(x, x**2).p == pytest.approx(1 / 1001)
    y = np.random.default_rng(0).normal(size=12)
    assert spearman_trend(x, y, seed=3) == spearman_trend(x, y, seed=3)
    assert len({spearman_trend(x, y, seed=s).p for s in range(8)}) > 1


def test_refusals():
    with pytest.raises(InputError, match=r"shapes \(3,\) and \(2,\)"):
        spearman_trend([1, 2, 3], [1, 2])
    with pytest.raises(InputError, match="infinite"):
        spearman_trend([1, 2, np.inf], [1, 2, 3])
    with pytest.raises(InputError, match=r"one block per pair, 3"):
        spearman_trend([1, 2, 3], [1, 2, 3], ["a"])
    with pytest.raises(InputError, match="permutations is 0"):
        spearman_trend([1, 2, 3], [1, 2, 3], permutations=0)

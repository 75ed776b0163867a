from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata, wilcoxon

from frame.errors import InputError
from frame.inference.signed_rank import SHARED_PATIENTS, median_change_interval, wilcoxon_paired


@given(st.lists(st.floats(-1, 1).filter(lambda v: abs(v) > 1e-6), min_size=1, max_size=50, unique_by=abs))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_exact_p_equals_scipy_without_ties(change):
    sizes = np.sort(np.abs(change))
    if np.any(np.diff(sizes) <= 1e-11):
        return
    result = wilcoxon_paired(np.zeros(len(change)), change)
    expected = wilcoxon(change, method="exact")
    assert result.p == pytest.approx(expected.pvalue, rel=1e-12)
    assert result.statistic == expected.statistic
    assert result.law == "exact"


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=10))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_exact_p_with_ties_against_every_sign_pattern(change):
    moved = np.array([v for v in change if v != 0])
    result = wilcoxon_paired(np.zeros(len(change)), change)
    assert result.n_zero == len(change) - len(moved)
    if len(moved) == 0:
        assert (result.status, result.reason) == ("not estimable", "no paired difference is other than zero")
        return
    ranks = rankdata(np.abs(moved))
    half = ranks.sum() / 2
    observed = abs(ranks[moved > 0].sum() - half)
    every = np.array([abs(np.dot(signs, ranks) - half) for signs in product([0, 1], repeat=len(ranks))])
    assert result.p == pytest.approx(np.mean(every >= observed - 1e-9), abs=1e-12)


def test_normal_law_equals_scipy_with_ties_and_zeros():
    rng = np.random.default_rng(8)
    change = np.round(rng.normal(0.05, 0.3, 130), 1)
    expected = wilcoxon(change, method="approx", zero_method="wilcox", correction=False)
    result = wilcoxon_paired(np.zeros(130), change)
    assert result.law == "normal"
    assert result.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert result.statistic == expected.statistic


def test_smallest_p_of_the_papers_26_pairs():
    # Figure 7d prints 3.0e-8 for view and 6.0e-8 for site: all, and all but the smallest, of 26 pairs up.
    up = np.arange(1, 27) / 100
    assert wilcoxon_paired(np.zeros(26), up).p == pytest.approx(2.0**-25)
    up[0] = -up[0]
    assert wilcoxon_paired(np.zeros(26), up).p == pytest.approx(2.0**-24)


def test_rounding_noise_is_neither_a_change_nor_breaks_a_tie():
    # 0.3 - 0.1 and 0.2 differ in the last digit.
    result = wilcoxon_paired([0.1, 0.0, 0.5], [0.3, 0.2, 0.5 + 1e-16])
    assert (result.n, result.n_zero) == (3, 1)
    noisy = wilcoxon_paired([0.1, 0.0, 0.0, 0.0], [0.3, -0.2, 0.5, 0.6])
    clean = wilcoxon_paired([0.0, 0.0, 0.0, 0.0], [0.2, -0.2, 0.5, 0.6])
    assert (noisy.statistic, noisy.p) == (clean.statistic, clean.p) == (1.5, 0.375)


def test_direction_and_median():
    result = wilcoxon_paired([0.1, 0.2, 0.3], [0.2, 0.1, 0.6])
    swapped = wilcoxon_paired([0.2, 0.1, 0.6], [0.1, 0.2, 0.3])
    assert result.median_change == pytest.approx(0.1)
    assert swapped.median_change == pytest.approx(-0.1)
    assert result.p == swapped.p


def test_missing_pairs_are_counted():
    result = wilcoxon_paired([0, 0, np.nan, 0], [1, 2, 3, np.nan])
    assert (result.n, result.n_missing) == (2, 2)
    assert result.reason == "2 of 4 pairs have a missing value and were left out"
    assert wilcoxon_paired([], []).reason == "there are no pairs"


def test_refusals():
    with pytest.raises(InputError, match=r"shapes \(2,\) and \(1,\)"):
        wilcoxon_paired([1, 2], [1])
    with pytest.raises(InputError, match="infinite"):
        wilcoxon_paired([1, 2], [1, np.inf])
    with pytest.raises(InputError, match=r"\(units, resamples\)"):
        median_change_interval(np.zeros((3, 10)), [1, 2])


def test_median_interval_is_over_shared_resamples():
    rng = np.random.default_rng(4)
    replicates = rng.normal(0.1, 0.02, (7, 1)) + rng.normal(0, 0.05, (1, 400))
    point = replicates.mean(axis=1)
    result = median_change_interval(replicates, point)
    medians = [sorted(replicates[:, b])[3] for b in range(400)]
    assert result.change == pytest.approx(sorted(point)[3])
    assert (result.lo, result.hi) == pytest.approx(tuple(np.percentile(medians, [2.5, 97.5])))
    # The units share the resamples' luck, so their number does not narrow the interval as the test thinks.
    assert result.p > 0.01
    assert wilcoxon_paired(np.zeros(7), point).p == pytest.approx(2.0**-6)


def test_median_interval_leaves_out_what_is_undefined():
    replicates = np.tile(np.linspace(0.1, 0.2, 40), (3, 1))
    replicates[1, :5] = np.nan
    result = median_change_interval(replicates, [0.15, 0.15, 0.15])
    assert (result.resamples, result.n_undefined) == (35, 5)
    replicates[2] = np.nan
    result = median_change_interval(replicates, [0.15, 0.15, np.nan])
    assert result.resamples == 35
    assert result.reason.endswith("1 of 3 units are undefined and were left out")
    assert median_change_interval(replicates, [np.nan] * 3).status == "not estimable"


def test_the_sentence_on_shared_patients():
    assert "same test patients" in SHARED_PATIENTS
    assert "not independent" in SHARED_PATIENTS

"""The calibrated reference of a rate: variance, law and heterogeneity against enumeration and simulation."""

import itertools
import math

import numpy as np
import pytest

from frame.reference.calibrated import NotEstimable
from frame.reference.clustered_rates import (
    ClusteredRateDifference,
    RateCounts,
    clustered_reference,
    rate_counts,
    rate_heterogeneity,
    ratio_variance,
)
from frame.reference.exact_rates import RateDifference


def beta_binomial(k, rate, correlation):
    """Masses by the product formula, without gamma functions."""
    total = (1 - correlation) / correlation
    a, b = rate * total, (1 - rate) * total
    mass = []
    for x in range(k + 1):
        p = math.comb(k, x)
        for i in range(x):
            p *= a + i
        for i in range(k - x):
            p *= b + i
        for i in range(k):
            p /= a + b + i
        mass.append(p)
    return mass


def sum_law(cases, rate, correlation):
    """Masses of a subgroup's hits by enumerating every patient's number of hits."""
    law = {0: 1.0}
    for k in cases:
        added = {}
        for hits, p in law.items():
            for x, q in enumerate(beta_binomial(k, rate, correlation)):
                added[hits + x] = added.get(hits + x, 0.0) + p * q
        law = added
    return law


def groups_of(rng, sizes, rate=0.7, correlation=0.4, mean_images=2.5):
    total = (1 - correlation) / correlation
    groups = []
    for patients in sizes:
        cases = rng.poisson(mean_images - 1, patients) + 1
        hits = rng.binomial(cases, rng.beta(rate * total, (1 - rate) * total, patients))
        groups.append(RateCounts(cases, hits))
    return groups


def test_counts_per_patient():
    counts = rate_counts(np.array([True, False, True, True]), np.array([7, 3, 7, 9]))
    assert sorted(zip(counts.cases.tolist(), counts.hits.tolist(), strict=True)) == [(1, 0), (1, 1), (2, 2)]
    assert (counts.n, counts.rate, counts.repeats) == (4, 0.75, True)


@pytest.mark.parametrize("correlation", [0.05, 0.4, 0.9])
@pytest.mark.parametrize("rate", [0.2, 0.85])
def test_law_is_the_enumerated_one(rate, correlation):
    cases = [np.array([1, 3, 2]), np.array([2, 2]), np.array([1, 1, 1, 4])]
    laws = [sum_law(k.tolist(), rate, correlation) for k in cases]
    sizes = [int(k.sum()) for k in cases]
    outcomes = []
    for hits in itertools.product(*(law.items() for law in laws)):
        values = [h / n for (h, _), n in zip(hits, sizes, strict=True)]
        outcomes.append((max(values) - min(values), math.prod(p for _, p in hits)))
    law = ClusteredRateDifference(cases, [rate] * 3, correlation)
    assert law.mean == pytest.approx(sum(d * p for d, p in outcomes), abs=1e-12)
    for delta in (0.1, 0.25, 0.5, 1.0):
        expected = sum(p for d, p in outcomes if d >= delta - 1e-9)
        assert law.exceedance(delta) == pytest.approx(expected, abs=1e-12)


def test_variance_is_that_of_the_law():
    rng = np.random.default_rng(3)
    reference = clustered_reference(groups_of(rng, (40, 25)), ["a", "b"])
    for group, variance in zip(
        groups_of(np.random.default_rng(3), (40, 25)), reference.variances, strict=True
    ):
        law = sum_law(group.cases.tolist(), reference.value, reference.correlation)
        mean = sum(h * p for h, p in law.items()) / group.n
        second = sum((h / group.n - mean) ** 2 * p for h, p in law.items())
        assert mean == pytest.approx(reference.value)
        assert variance == pytest.approx(second, rel=1e-9)


def test_without_repeats_it_is_the_binomial_law():
    rng = np.random.default_rng(0)
    groups = [rate_counts(rng.random(n) < 0.3, np.arange(n)) for n in (50, 20, 7)]
    reference = clustered_reference(groups, ["a", "b", "c"])
    binomial = RateDifference([50, 20, 7], [reference.value] * 3)
    assert reference.correlation == 0.0
    assert reference.value == sum(int(g.hits.sum()) for g in groups) / 77
    assert reference.law.mean == binomial.mean
    assert reference.law.exceedance(0.3) == binomial.exceedance(0.3)
    assert reference.flags == ()


def test_order_and_labels_of_patients_change_no_digit():
    rng = np.random.default_rng(5)
    groups = groups_of(rng, (60, 30, 8))
    first = clustered_reference(groups, list("abc"))
    shuffled = [RateCounts(g.cases[::-1].copy(), g.hits[::-1].copy()) for g in groups]
    second = clustered_reference(shuffled[::-1], list("cba"))
    assert second.law.exceedance(0.2) == pytest.approx(first.law.exceedance(0.2), rel=1e-12)
    assert rate_heterogeneity(groups, first).p == rate_heterogeneity(shuffled[::-1], second).p


def test_correlation_is_recovered():
    rng = np.random.default_rng(11)
    found = [clustered_reference(groups_of(rng, (150, 80, 30)), list("abc")).correlation for _ in range(200)]
    assert np.mean(found) == pytest.approx(0.4, abs=0.02)


def test_a_correlation_below_zero_counts_as_none():
    # Every patient has one hit and one miss: the images of a patient agree less than by chance.
    groups = [RateCounts(np.full(20, 2), np.full(20, 1)) for _ in range(2)]
    reference = clustered_reference(groups, ["a", "b"])
    assert reference.correlation == 0.0
    assert reference.law.mean == RateDifference([40, 40], [0.5, 0.5]).mean


def test_patients_who_always_agree_stay_below_a_correlation_of_one():
    groups = [RateCounts(np.full(30, 3), np.repeat([3, 0], 15)) for _ in range(2)]
    reference = clustered_reference(groups, ["a", "b"])
    assert 0.9 < reference.correlation <= 0.999
    # Thirty patients, not ninety images.
    assert reference.law.mean == pytest.approx(RateDifference([30, 30], [0.5, 0.5]).mean, rel=0.1)


@pytest.mark.parametrize(("hits", "reason"), [(2, "every case counts"), (0, "no case counts")])
def test_a_rate_of_one_or_zero_says_nothing_on_variation(hits, reason):
    groups = [RateCounts(np.full(5, 2), np.full(5, hits)) for _ in range(2)]
    with pytest.raises(NotEstimable, match=reason):
        clustered_reference(groups, ["a", "b"])


def test_flags():
    few = [RateCounts(np.array([3, 2]), np.array([3, 0])), RateCounts(np.array([2, 1]), np.array([1, 1]))]
    assert any(
        flag.startswith("reference unreliable: 2 pooled") for flag in clustered_reference(few, "ab").flags
    )
    singles = [rate_counts(np.arange(n) % 2 == 0, np.arange(n)) for n in (400, 30)]
    flagged = clustered_reference(singles, ["large", "small"])
    assert flagged.flags == ("range ruled by group 'small': p speaks of it alone; see the heterogeneity",)
    assert flagged.reliable
    unknown = clustered_reference(singles, ["large", "small"], images_may_repeat=True)
    assert not unknown.reliable
    # In one large group the images of a patient always agree, in the other never.
    agreeing = RateCounts(np.full(60, 4), np.repeat([4, 0], 30))
    disagreeing = RateCounts(np.full(60, 4), np.full(60, 2))
    flags = clustered_reference([agreeing, disagreeing], ["first", "second"]).flags
    assert sum(flag.startswith("check the patient structure") for flag in flags) >= 1


def test_rates_far_apart_are_no_sign_of_the_patient_structure():
    # One image in two agrees by chance only; the rates differ widely.
    rng = np.random.default_rng(7)
    groups = [RateCounts(np.full(400, 2), rng.binomial(2, rate, 400)) for rate in (0.97, 0.75)]
    assert clustered_reference(groups, ["high", "low"]).flags == ()


def test_heterogeneity_is_close_to_a_simulation_of_the_patients():
    rng = np.random.default_rng(8)
    groups = groups_of(rng, (80, 40, 10))
    reference = clustered_reference(groups, list("abc"))
    found = rate_heterogeneity(groups, reference)
    total = (1 - reference.correlation) / reference.correlation
    draws = np.empty((3, 20_000))
    for i, group in enumerate(groups):
        own = rng.beta(reference.value * total, (1 - reference.value) * total, (20_000, len(group.cases)))
        draws[i] = rng.binomial(group.cases, own).sum(axis=1) / group.n
    weights = 1 / reference.variances[:, None]

    def q(values):
        mean = (weights * values).sum(0) / weights.sum()
        return (weights * (values - mean) ** 2).sum(0)

    observed = q(np.array([[g.rate] for g in groups]))[0]
    assert found.statistic == pytest.approx(observed)
    assert found.p == pytest.approx(np.mean(q(draws) >= observed), abs=4 * 2**0.5 * found.p_error + 1e-4)


def test_ratio_variance_is_the_textbook_one():
    group = RateCounts(np.array([1, 2, 3]), np.array([1, 1, 0]))
    residuals = [1 - 1 / 3, 1 - 2 / 3, 0 - 1]
    assert ratio_variance(group) == pytest.approx(3 / 2 * sum(r * r for r in residuals) / 36)
    assert math.isnan(ratio_variance(RateCounts(np.array([4]), np.array([2]))))


def test_planted_rates_move_the_law():
    rng = np.random.default_rng(2)
    groups = groups_of(rng, (50, 50))
    fair = clustered_reference(groups, "ab")
    apart = clustered_reference(groups, "ab", common=[0.5, 0.9])
    assert apart.law.mean > fair.law.mean + 0.2
    assert apart.value == fair.value

"""Placements and the calibrated reference against their definitions, written out as loops."""

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from frame.reference.calibrated import NotEstimable, calibrated_reference
from frame.reference.placement import (
    common_auroc,
    delong_variance,
    obuchowski_variance,
    placements,
)


def cohort(seed, n=60, repeats=True, ties=False, prevalence=0.4, shift=1.0):
    generator = np.random.default_rng(seed)
    patients = np.sort(generator.integers(0, n // 2, n)) if repeats else np.arange(n)
    labels = generator.random(n) < prevalence
    scores = generator.normal(size=n) + shift * labels + generator.normal(size=n)[patients % n] * repeats
    return np.round(scores, 1) if ties else scores, labels, patients


def definition(scores, labels, patients):
    """Placements, AUROC and patient sums by loops over all pairs."""
    positive, negative = np.flatnonzero(labels), np.flatnonzero(~labels)

    def right(i, j):
        return 1.0 if scores[i] > scores[j] else 0.5 if scores[i] == scores[j] else 0.0

    below = {i: sum(right(i, j) for j in negative) / len(negative) for i in positive}
    above = {j: sum(right(i, j) for i in positive) / len(positive) for j in negative}
    auroc = sum(below.values()) / len(positive)
    ids = sorted(set(patients.tolist()))
    sums_p = [sum(below[i] - auroc for i in positive if patients[i] == p) for p in ids]
    sums_n = [sum(above[j] - auroc for j in negative if patients[j] == p) for p in ids]
    k = [sum(1 for i in positive if patients[i] == p) for p in ids]
    m = [sum(1 for j in negative if patients[j] == p) for p in ids]
    d_p = [below[i] - auroc for i in positive]
    d_n = [above[j] - auroc for j in negative]
    return auroc, np.array(sums_p), np.array(sums_n), np.array(k), np.array(m), np.array(d_p), np.array(d_n)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("repeats", [False, True])
def test_placements_equal_their_definition(ties, repeats):
    data = cohort(3, ties=ties, repeats=repeats)
    auroc, sums_p, sums_n, k, m, d_p, d_n = definition(*data)
    group = placements(*data)
    assert group.auroc == pytest.approx(auroc, abs=1e-14)
    assert group.positive_sums == pytest.approx(sums_p, abs=1e-12)
    assert group.negative_sums == pytest.approx(sums_n, abs=1e-12)
    assert group.positives.tolist() == k.tolist()
    assert group.negatives.tolist() == m.tolist()
    assert group.positive_squares == pytest.approx(float(np.sum(d_p**2)))
    assert group.negative_squares == pytest.approx(float(np.sum(d_n**2)))
    assert group.repeats == repeats


def test_auroc_does_not_pass_one_and_keeps_its_direction():
    scores = np.arange(50.0)
    labels = scores >= 34
    patients = np.arange(50)
    assert placements(scores, labels, patients).auroc == 1.0
    assert placements(-scores, labels, patients).auroc == 0.0


def test_delong_and_obuchowski_from_their_formulas():
    for seed in range(5):
        data = cohort(seed)
        _, sums_p, sums_n, k, m, d_p, d_n = definition(*data)
        n_p, n_n = len(d_p), len(d_n)
        group = placements(*data)
        delong = np.var(d_p, ddof=1) / n_p + np.var(d_n, ddof=1) / n_n
        assert delong_variance(group) == pytest.approx(delong, rel=1e-12)
        with_p, with_n, all_ = np.sum(k > 0), np.sum(m > 0), len(k)
        expected = with_p / (with_p - 1) * np.sum(sums_p**2) / n_p**2
        expected += with_n / (with_n - 1) * np.sum(sums_n**2) / n_n**2
        expected += 2 * all_ / (all_ - 1) * np.sum(sums_p * sums_n) / (n_p * n_n)
        assert obuchowski_variance(group) == pytest.approx(expected, rel=1e-12)


def test_delong_gives_the_published_value():
    """CT readings of Hanley and McNeil (Radiology 1982;143:29-36, Table I), normal and abnormal by rating.

    Area 0.893; standard error 0.0307 and interval 0.83295 to 0.95339 as in the manual of Stata, [R] roctab,
    for the same data.
    """
    ratings = np.arange(5.0)
    scores = np.concatenate([np.repeat(ratings, [33, 6, 6, 11, 2]), np.repeat(ratings, [3, 2, 2, 11, 33])])
    group = placements(scores, np.arange(109) >= 58, np.arange(109))
    error = delong_variance(group) ** 0.5
    assert round(group.auroc, 4) == 0.8932
    assert round(error, 4) == 0.0307
    half = 1.959963984540054 * error
    assert (round(group.auroc - half, 5), round(group.auroc + half, 5)) == (0.83295, 0.95339)


def test_without_repeats_obuchowski_is_delong():
    group = placements(*cohort(1, repeats=False))
    assert np.sum(group.positive_sums * group.negative_sums) == 0.0
    assert obuchowski_variance(group) == pytest.approx(delong_variance(group), rel=1e-12)


def test_one_case_of_a_class_has_no_own_variance():
    scores, labels, patients = np.arange(6.0), np.array([0, 0, 1, 0, 0, 0], dtype=bool), np.arange(6)
    group = placements(scores, labels, patients)
    assert math.isnan(delong_variance(group))
    assert math.isnan(obuchowski_variance(group))


def r3_by_the_book(datasets):
    """Steps 1 to 6 as written, one after another, on the loops above."""
    parts = [definition(*d) for d in datasets]
    counts = [(len(p[5]), len(p[6])) for p in parts]
    weights = [a * b / (a + b) for a, b in counts]
    c = sum(w * p[0] for w, p in zip(weights, parts, strict=True)) / sum(weights)
    h = norm.ppf(c)
    q = multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]]).cdf([h, h]) - c * c
    used = [p for p in parts if np.sum(p[3] > 0) >= 2 and np.sum(p[4] > 0) >= 2]

    def side(sums, per, deviations):
        a11 = sum(len(d) - 1 for d in deviations) + 5
        a12 = -sum((np.sum(k**2) - len(d)) / len(d) for k, d in zip(per, deviations, strict=True))
        b1 = sum(np.sum(d**2) for d in deviations) + 5 * q
        a21 = a22 = 0.0
        for k, d in zip(per, deviations, strict=True):
            n, big_k, big_m = len(d), np.sum(k**2), np.sum(k**3)
            a21 += n - big_k / n
            a22 += big_k - n - 2 * (big_m - big_k) / n + big_k * (big_k - n) / n**2
        b2 = sum(np.sum(s**2) for s in sums)
        if a12 == 0:
            return b1 / a11, 0.0
        s, r = np.linalg.solve([[a11, a12], [a21, a22]], [b1, b2])
        if r <= 0:
            return b1 / a11, 0.0
        if r > s:
            both = (b1 + b2) / (a11 + a12 + a21 + a22)
            return both, both
        return s, r

    s, r = side([p[1] for p in used], [p[3] for p in used], [p[5] for p in used])
    s2, r2 = side([p[2] for p in used], [p[4] for p in used], [p[6] for p in used])
    pairs = sum(np.sum(p[3] * p[4]) for p in used)
    x = 0.0
    if pairs > 0 and r * r2 > 0:
        x = np.clip(sum(np.sum(p[1] * p[2]) for p in used) / pairs, -math.sqrt(r * r2), math.sqrt(r * r2))
    variances, freedom = [], 0.0
    for p, (n_p, n_n) in zip(parts, counts, strict=True):
        v = (s + r * (np.sum(p[3] ** 2) / n_p - 1)) / n_p + (s2 + r2 * (np.sum(p[4] ** 2) / n_n - 1)) / n_n
        v += 2 * x * np.sum(p[3] * p[4]) / (n_p * n_n) + max(0, c * (1 - c) - s - s2) / (n_p * n_n)
        with_p, with_n, all_ = np.sum(p[3] > 0), np.sum(p[4] > 0), len(p[3])
        nu = min(with_p, with_n) - 1
        if any(p is u for u in used):
            freedom += nu
        if nu >= 30:
            own = with_p / (with_p - 1) * np.sum(p[1] ** 2) / n_p**2
            own += with_n / (with_n - 1) * np.sum(p[2] ** 2) / n_n**2
            own += 2 * all_ / (all_ - 1) * np.sum(p[1] * p[2]) / (n_p * n_n)
            v = (nu * own + 30 * v) / (nu + 30)
        variances.append(v)
    variances = np.array(variances) * (freedom + 5) / (freedom + 3)
    return c, np.minimum(variances, 0.95 * c * (1 - c)), freedom


COHORTS = {
    "one image a patient": [cohort(s, n, repeats=False) for s, n in ((1, 200), (2, 60), (3, 12))],
    "repeats": [cohort(s, n) for s, n in ((4, 240), (5, 90), (6, 14), (7, 30))],
    "ties": [cohort(s, n, ties=True) for s, n in ((8, 120), (9, 40))],
    "rare": [cohort(s, n, prevalence=0.08) for s, n in ((10, 200), (11, 150), (12, 60))],
    "small": [cohort(s, 12) for s in (13, 14, 15)],
}


@pytest.mark.parametrize("name", COHORTS)
def test_variances_equal_the_definition(name):
    datasets = COHORTS[name]
    c, variances, freedom = r3_by_the_book(datasets)
    result = calibrated_reference([placements(*d) for d in datasets], [str(i) for i in range(len(datasets))])
    assert result.value == pytest.approx(c, abs=1e-12)
    assert result.variances == pytest.approx(variances, rel=1e-9)
    assert result.freedom == freedom


def test_law_is_within_a_thousandth_of_400_000_draws():
    result = calibrated_reference([placements(*d) for d in COHORTS["repeats"]], list("abcd"))
    c, v = result.value, result.variances
    total = c * (1 - c) / v - 1
    generator = np.random.default_rng(20)
    draws = generator.beta(c * total[:, None], (1 - c) * total[:, None], (len(v), 400_000))
    g = draws.max(axis=0) - draws.min(axis=0)
    for d in np.quantile(g, [0.1, 0.5, 0.9, 0.99]):
        assert result.law.exceedance(float(d)) == pytest.approx(float(np.mean(g >= d)), abs=0.001 * 3)
    assert result.law.mean == pytest.approx(float(g.mean()), abs=0.001)


def test_order_of_subgroups_changes_nothing():
    groups = [placements(*d) for d in COHORTS["repeats"]]
    forward = calibrated_reference(groups, list("abcd"))
    backward = calibrated_reference(groups[::-1], list("dcba"))
    assert backward.variances[::-1] == pytest.approx(forward.variances, rel=1e-12)
    assert backward.law.exceedance(0.2) == pytest.approx(forward.law.exceedance(0.2), rel=1e-10)


def test_monotone_rescoring_inside_a_subgroup_changes_nothing():
    first, second = COHORTS["rare"][:2]
    moved = (np.exp(3 * second[0]) + 5, *second[1:])
    plain = calibrated_reference([placements(*first), placements(*second)], ["a", "b"])
    rescored = calibrated_reference([placements(*first), placements(*moved)], ["a", "b"])
    assert rescored.value == plain.value
    assert rescored.variances == pytest.approx(plain.variances, rel=1e-12)


def test_refusals():
    scores, labels, patients = np.arange(40.0), np.arange(40) >= 20, np.arange(40)
    separated = placements(scores, labels, patients)
    with pytest.raises(NotEstimable, match="perfectly ranked"):
        calibrated_reference([separated, separated], ["a", "b"])
    one_positive = placements(np.array([0.3, 0.1, 0.5]), np.array([True, False, False]), np.arange(3))
    with pytest.raises(NotEstimable, match="two patients of each class"):
        calibrated_reference([one_positive, one_positive], ["a", "b"])


def flags_of(datasets, **arguments):
    names = [f"g{i}" for i in range(len(datasets))]
    return calibrated_reference([placements(*d) for d in datasets], names, **arguments)


def test_flags():
    few = flags_of([cohort(13, 12), cohort(14, 12)])
    assert not few.reliable
    assert "pooled degrees of freedom, fewer than 10" in few.flags[0]
    ids_lost = flags_of(COHORTS["repeats"], images_may_repeat=True)
    assert "reference unreliable: images repeat but no patient id was given" in ids_lost.flags
    ruled = flags_of(
        [cohort(1, 2000, repeats=False), cohort(2, 2000, repeats=False), cohort(3, 20, repeats=False)]
    )
    assert any(flag.startswith("range ruled by group 'g2'") for flag in ruled.flags)
    assert ruled.reliable
    high = flags_of([cohort(s, 150, repeats=False, prevalence=0.07, shift=3.0) for s in (31, 32, 33)])
    assert high.value >= 0.9
    assert any(flag.startswith("conservative") for flag in high.flags)


def test_common_value_is_the_within_group_mean():
    a, b = (placements(*d) for d in COHORTS["ties"])
    weights = [g.n_positive * g.n_negative / (g.n_positive + g.n_negative) for g in (a, b)]
    expected = (weights[0] * a.auroc + weights[1] * b.auroc) / sum(weights)
    assert common_auroc([a, b]) == pytest.approx(expected, abs=1e-15)

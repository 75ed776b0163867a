"""Every method of an audit against something computed in another way."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import beta
from simulated_cohorts import make_cohort
from sklearn.metrics import roc_auc_score

import frame
from frame.audits import audits_of
from frame.audits.settings import METHODS
from frame.errors import InputError
from frame.inference.exchangeability import permutation_reference
from frame.inference.replicates import replicate_values
from frame.reference.simultaneous import true_difference_interval


def audit(c, **settings):
    settings.setdefault("resamples", 0)
    return frame.audit(c.scores, c.labels, c.groups, c.patients, **settings)


def counts(c, labels=True):
    wanted = c.labels == labels
    return [int(np.sum(wanted & (c.groups == g))) for g in np.unique(c.groups)]


def aurocs(c):
    return [roc_auc_score(c.labels[c.groups == g], c.scores[c.groups == g]) for g in np.unique(c.groups)]


def test_auto_is_what_the_method_table_says():
    assert {m: methods[0] for m, methods in METHODS.items()} == dict.fromkeys(
        ("auroc", "tpr", "fpr", "fnr", "specificity", "accuracy"), "calibrated"
    ) | dict.fromkeys(("ece", "brier", "ppv", "npv", "auprc"), "pooled")


def test_observed_difference_and_overall_values(cohort):
    result = audit(cohort)
    values = aurocs(cohort)
    assert result.observed == pytest.approx(max(values) - min(values), abs=1e-12)
    assert result.overall_pooled == pytest.approx(roc_auc_score(cohort.labels, cohort.scores), abs=1e-12)
    n, m = np.asarray(counts(cohort)), np.asarray(counts(cohort, labels=False))
    within = np.average(values, weights=n * m / (n + m))
    assert (result.overall, result.overall_within) == (
        pytest.approx(within, abs=1e-12),
        pytest.approx(within, abs=1e-12),
    )
    assert result.overall_source == "within-group mean"
    assert result.remainder == result.observed - result.reference.mean
    assert result.share == pytest.approx(100 * result.reference.mean / result.observed)
    summed = sum(abs(result.overall_pooled - v) for v in values)
    assert result.equity_scaled == pytest.approx(result.overall_pooled / (1 + summed), abs=1e-12)


@pytest.mark.parametrize("method", ["hanley-mcneil", "binormal"])
@pytest.mark.parametrize("protocol", ["exact", "paper"])
def test_auroc_from_counts_equals_the_reference_from_counts(singles, method, protocol):
    small = make_cohort((60, 40)) if (method, protocol) == ("binormal", "paper") else singles
    result = audit(small, method=method, protocol=protocol)
    overall = roc_auc_score(small.labels, small.scores)
    expected = frame.fair_reference(
        overall, counts(small), counts(small, labels=False), method=method, protocol=protocol
    )
    assert result.reference.mean == pytest.approx(expected.mean, abs=1e-12)
    assert result.reference.interval == pytest.approx(expected.interval, abs=1e-9)
    assert result.p == pytest.approx(expected.exceedance(result.observed), abs=1e-12)
    assert (result.overall_source, result.protocol) == ("all rows", protocol)


@pytest.mark.parametrize(("measure", "labels"), [("tpr", True), ("fpr", False)])
@pytest.mark.parametrize("protocol", ["exact", "paper"])
def test_binomial_equals_the_reference_from_counts(singles, measure, labels, protocol):
    result = audit(singles, measure=measure, method="binomial", threshold=0.6, protocol=protocol)
    wanted = singles.labels == labels
    rates = [
        Fraction(
            int(np.sum(wanted & (singles.groups == g) & (singles.scores >= 0.6))),
            int(np.sum(wanted & (singles.groups == g))),
        )
        for g in np.unique(singles.groups)
    ]
    overall = float(np.mean(singles.scores[wanted] >= 0.6))
    n = counts(singles, labels)
    expected = frame.fair_reference(
        overall, n if labels else None, None if labels else n, measure, protocol=protocol
    )
    assert result.observed == pytest.approx(float(max(rates) - min(rates)), abs=1e-15)
    assert result.p == expected.exceedance(max(rates) - min(rates))
    assert result.reference.mean == expected.mean


def test_accuracy_is_a_rate_over_all_images(singles):
    result = audit(singles, measure="accuracy", method="binomial", threshold=0.5)
    hit = (singles.scores >= 0.5) == singles.labels
    n = [int(np.sum(singles.groups == g)) for g in np.unique(singles.groups)]
    expected = frame.fair_reference(float(hit.mean()), n, None, "tpr")
    rates = [Fraction(int(hit[singles.groups == g].sum()), k) for g, k in zip("ABC", n, strict=True)]
    assert result.p == expected.exceedance(max(rates) - min(rates))
    assert result.reference.measure == "accuracy"


def test_calibrated_rates_of_single_images_are_binomial(singles):
    # Without repeated images nothing is clustered, and the within-group mean is the rate over all rows.
    calibrated = audit(singles, measure="tpr", threshold=0.6)
    binomial = audit(singles, measure="tpr", threshold=0.6, method="binomial")
    assert calibrated.p == pytest.approx(binomial.p, abs=1e-12)
    assert calibrated.reference.mean == pytest.approx(binomial.reference.mean, abs=1e-12)
    assert not math.isnan(calibrated.p_heterogeneity)
    assert calibrated.p_heterogeneity == binomial.p_heterogeneity


def test_repeated_images_widen_the_calibrated_reference(cohort):
    counted = audit(cohort, measure="tpr", threshold=0.6, method="binomial")
    clustered = audit(cohort, measure="tpr", threshold=0.6)
    assert clustered.reference.mean > 1.02 * counted.reference.mean
    assert any("patients have several images" in flag for flag in counted.flags)
    assert not any("patients have several images" in flag for flag in clustered.flags)


@pytest.mark.parametrize(("one", "other"), [("tpr", "fnr"), ("fpr", "specificity")])
@pytest.mark.parametrize("method", ["calibrated", "binomial", "pooled"])
def test_both_sides_of_a_rate_are_one_test(cohort, one, other, method):
    first, second = (audit(cohort, measure=m, method=method, threshold=0.6) for m in (one, other))
    for name in ("observed", "p", "detectable"):
        assert getattr(first, name) == pytest.approx(getattr(second, name), abs=0, rel=0, nan_ok=True)
    assert first.interval == pytest.approx(second.interval, abs=1e-12, nan_ok=True)
    assert first.p_heterogeneity == pytest.approx(second.p_heterogeneity, abs=0, rel=0, nan_ok=True)
    assert first.overall == pytest.approx(1 - second.overall)
    assert first.worst_name == second.worst_name
    assert first.table["value"].to_numpy() == pytest.approx(1 - second.table["value"].to_numpy())


def test_worst_is_the_highest_where_lower_is_better(unfair):
    for measure, worst in (("tpr", np.argmin), ("fnr", np.argmax)):
        result = audit(unfair, measure=measure, threshold=0.6)
        assert result.worst_name == result.table["group"].iloc[worst(result.table["value"].to_numpy())]


def placement_variance(scores, labels):
    """DeLong's variance by comparing every pair."""
    positive, negative = scores[labels], scores[~labels]
    above = (positive[:, None] > negative).astype(float) + 0.5 * (positive[:, None] == negative)
    return above.mean(axis=1).var(ddof=1) / len(positive) + above.mean(axis=0).var(ddof=1) / len(negative)


def test_delong_of_two_groups_is_the_two_sided_normal_test():
    c = make_cohort((500, 350))
    result = audit(c, method="delong")
    total = sum(placement_variance(c.scores[c.groups == g], c.labels[c.groups == g]) for g in "AB")
    # Both values lie far from 0 and 1, so that the clipped normals are normal.
    assert result.p == pytest.approx(2 * ndtr(-result.observed / math.sqrt(total)), rel=1e-6)
    assert result.flags[0].startswith("for comparison only")


def test_obuchowski_is_delong_for_single_images_and_needs_ids(singles, cohort):
    assert audit(singles, method="obuchowski").p == pytest.approx(audit(singles, method="delong").p, rel=0.02)
    assert audit(cohort, method="obuchowski").p != pytest.approx(audit(cohort, method="delong").p, rel=1e-3)
    with pytest.raises(InputError, match="method 'obuchowski' needs patient ids and none were given"):
        frame.audit(singles.scores, singles.labels, singles.groups, method="obuchowski")


def test_pooled_is_the_permutation_reference(cohort):
    result = audit(cohort, measure="brier")
    codes = np.unique(cohort.groups, return_inverse=True)[1]
    expected = permutation_reference(
        cohort.scores, cohort.labels, cohort.patients, 560, codes, 3, "brier", permutations=2000
    )
    assert (result.p, result.reference.mean) == (expected.exceedance(expected.observed), expected.mean)
    assert result.overall_source == "all rows"


def test_margin_is_the_largest_exceedance_over_all_places(unfair):
    result = audit(unfair, margin=0.06)
    fair = audit(unfair)
    v = fair.comparison.variances

    def drawn(mean, variance):
        total = mean * (1 - mean) / variance - 1
        return beta(mean * total, (1 - mean) * total)

    low, high = fair.overall - 0.03, fair.overall + 0.03
    reached = []
    for means in itertools.product((low, high), repeat=2):
        one, two = (drawn(m, s) for m, s in zip(means, v, strict=True))

        def integrand(x, one=one, two=two):
            return one.pdf(x) * (two.sf(x + fair.observed) + two.cdf(x - fair.observed))

        reached.append(quad(integrand, 0, 1, points=[means[0]], epsabs=1e-14, limit=500)[0])
    assert result.p == pytest.approx(max(reached), rel=1e-6)
    assert result.p > fair.p
    assert result.exceeds
    assert (
        "is larger than a model whose subgroups truly differ by up to 0.06 would show at these counts "
        "(an exactly fair one " in result.verdict
    )
    assert "is another test, which tolerates no margin (p(Q) <0.001, uncorrected" in result.verdict


def test_margin_of_a_rate_from_counts(singles):
    for method in ("binomial", "calibrated"):
        few = audit(singles, measure="fnr", method=method, threshold=0.6)
        many = audit(singles, measure="fnr", method=method, threshold=0.6, margin=0.05)
        assert few.p < many.p <= 1
        assert math.isnan(many.detectable)


def test_a_margin_over_many_subgroups_is_not_estimable():
    c = make_cohort((40,) * 9)
    result = audit(c, margin=0.05)
    assert (result.status, result.reason) == (
        "not estimable",
        "a margin is computed for at most 8 subgroups, here are 9",
    )
    assert result.observed > 0
    assert "Not estimable" in result.verdict


@pytest.mark.parametrize("method", ["hanley-mcneil", "binormal"])
def test_detectable_difference_of_counts(singles, method):
    result = audit(singles, method=method)
    expected = frame.detectable_difference(
        result.overall, counts(singles), counts(singles, labels=False), method=method
    )
    assert result.detectable == pytest.approx(expected, abs=2e-4)


def test_detectable_difference_of_a_rate(singles):
    result = audit(singles, measure="tpr", method="binomial", threshold=0.6)
    expected = frame.detectable_difference(result.overall, counts(singles), None, "tpr")
    assert result.detectable == pytest.approx(expected, abs=2e-4)


def test_detectable_difference_reaches_its_power():
    # Two Beta laws at the found shift exceed the 5 % critical value four times in five.
    c = make_cohort((300, 120))
    result = audit(c)
    v = result.comparison.variances
    critical = result.reference.quantile(0.95)
    rng = np.random.default_rng(1)

    def draws(mean, variance):
        total = mean * (1 - mean) / variance - 1
        return rng.beta(mean * total, (1 - mean) * total, 200_000)

    powers = []
    for low in range(2):
        means = [result.overall - result.detectable * (i == low) for i in range(2)]
        values = [draws(m, s) for m, s in zip(means, v, strict=True)]
        powers.append(np.mean(np.abs(values[0] - values[1]) >= critical))
    assert min(powers) == pytest.approx(0.8, abs=0.005)


def test_interval_of_two_groups_is_the_gap_and_its_error(unfair):
    result = audit(unfair)
    c, m = result.overall, result.table["value"].to_numpy()
    n = np.minimum(counts(unfair), counts(unfair, labels=False))
    s = (n * m + 4 * c) / (n + 4)
    wider = np.maximum(1, s * (1 - s) / (c * (1 - c)))
    assert wider.max() > 1.05
    error = 1.959964 * math.sqrt((result.comparison.variances * wider).sum())
    assert result.interval == pytest.approx((result.observed - error, result.observed + error), abs=1e-5)


def test_interval_without_variances_comes_from_the_bootstrap(cohort):
    result = audit(cohort, measure="brier", resamples=400)
    codes = np.unique(cohort.groups, return_inverse=True)[1]
    drawn = replicate_values(
        cohort.scores, cohort.labels, cohort.patients, 560, codes, 3, ["brier"], resamples=400, seed=0
    )[0, 1:]
    expected = true_difference_interval(result.table["value"].to_numpy(), np.cov(drawn))
    assert result.interval == pytest.approx((expected.lo, expected.hi), abs=1e-12)
    assert all(map(math.isnan, audit(cohort, measure="brier").interval))


def test_bootstrap_of_subgroups_and_of_the_worst_one(cohort):
    result = audit(cohort, resamples=300)
    codes = np.unique(cohort.groups, return_inverse=True)[1]
    drawn = replicate_values(
        cohort.scores, cohort.labels, cohort.patients, 560, codes, 3, ["auroc"], resamples=300, seed=0
    )[0, 1:]
    table = result.by_group
    assert table[["lo", "hi"]].to_numpy() == pytest.approx(np.percentile(drawn, [2.5, 97.5], axis=1).T)
    place = int(table["value"].argmin())
    worst = result.worst
    assert (worst.name, worst.lo, worst.hi) == tuple(table.loc[place, ["group", "lo", "hi"]])
    other = next(i for i in range(3) if i != place)
    row = worst.contrasts.set_index("group").loc[table["group"][other]]
    change = drawn[other] - drawn[place]
    assert row["change"] == pytest.approx(table["value"][other] - table["value"][place])
    assert [row["lo"], row["hi"]] == pytest.approx(np.percentile(change, [2.5, 97.5]))
    reached = np.sum(np.abs(change - change.mean()) >= abs(row["change"]) - 1e-12)
    assert row["p"] == pytest.approx((1 + reached) / 301)


def test_order_of_rows_and_names_of_groups_change_nothing(cohort):
    rng = np.random.default_rng(3)
    order = rng.permutation(len(cohort.scores))
    renamed = np.asarray([{"A": "z", "B": "y", "C": "x"}[g] for g in cohort.groups])
    first = audit(cohort)
    second = frame.audit(
        cohort.scores[order], cohort.labels[order], renamed[order], cohort.patients[order] + 7, resamples=0
    )
    assert (first.observed, first.p_heterogeneity) == (second.observed, second.p_heterogeneity)
    assert second.p == pytest.approx(first.p, rel=1e-9)


def test_auroc_reads_ranks_only(cohort):
    raw = np.log(cohort.scores / (1 - cohort.scores)) * 3 - 5
    assert frame.audit(raw, cohort.labels, cohort.groups, cohort.patients).p == pytest.approx(
        audit(cohort).p, rel=1e-12
    )


def test_decisions_need_no_threshold(singles):
    decided = (singles.scores >= 0.6).astype(int)
    rows = (singles.labels, singles.groups, singles.patients)
    result = frame.audit(decided, *rows, measure="tpr", resamples=0)
    assert result.p == audit(singles, measure="tpr", threshold=0.6).p
    assert result.threshold.source == "predictions"


def test_thresholds_come_from_validation_scores(singles):
    held = make_cohort((500,), seed=9)
    result = audit(
        singles, measure="tpr", threshold="sensitivity_0.80", validation=(held.scores, held.labels)
    )
    assert result.threshold.value == pytest.approx(np.percentile(held.scores[held.labels], 20))
    named = audits_of(
        {"m": singles.scores},
        {"y": singles.labels},
        singles.groups,
        measures=["tpr"],
        validation=({"m": held.scores, "other": held.scores}, {"y": held.labels}),
    )
    assert named[0].threshold.value == result.threshold.value
    with pytest.raises(InputError, match="validation scores have no column 'm'"):
        audits_of(
            {"m": singles.scores},
            {"y": singles.labels},
            singles.groups,
            measures=["tpr"],
            validation=({"a": held.scores, "b": held.scores}, {"y": held.labels}),
        )


def test_fine_lattices_move_by_beta_laws(singles, monkeypatch):
    from frame.audits import fine_lattices

    for method in ("calibrated", "binomial"):
        exact = audit(singles, measure="fpr", method=method, threshold=0.6)
        tolerant = audit(singles, measure="fpr", method=method, threshold=0.6, margin=0.04)
        detectable = exact.detectable
        with monkeypatch.context() as patch:
            patch.setattr(fine_lattices, "FINE_LATTICE", 10)
            fine = audit(singles, measure="fpr", method=method, threshold=0.6)
            assert (fine.p, fine.reference.mean) == (exact.p, exact.reference.mean)
            assert fine.reference.sd == pytest.approx(exact.reference.sd, rel=0.05)
            assert any("p are exact" in flag for flag in fine.flags)
            assert not any("Beta laws" in flag for flag in exact.flags)
            assert fine.detectable == pytest.approx(detectable, rel=0.08)
            moved = audit(singles, measure="fpr", method=method, threshold=0.6, margin=0.04)
            assert moved.p == pytest.approx(tolerant.p, rel=0.1)
            assert any("the p with its margin and the detectable" in flag for flag in moved.flags)


def test_too_many_subgroups_are_not_estimable():
    c = make_cohort((22,) * 61)
    result = audit(c, measure="accuracy", threshold=0.5)
    assert result.reason == "a difference is compared for at most 60 subgroups, here are 61"
    some = make_cohort((40,) * 21)
    result = audit(some, measure="accuracy", threshold=0.5)
    assert math.isnan(result.detectable)
    assert "not computed for over 20 subgroups" in result.verdict or result.exceeds

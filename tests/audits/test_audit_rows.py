"""Which rows, units, families and laws an audit speaks of, and whether it says so."""

import math

import numpy as np
import pandas as pd
import pytest
from simulated_cohorts import make_cohort

import frame
from frame.audits import audits_of
from frame.audits.comparisons import ACCURACY
from frame.audits.fine_lattices import BesideLattice
from frame.audits.report import report_text
from frame.audits.validation_rows import NOT_CHECKED
from frame.errors import InputError
from frame.inference.multiplicity import benjamini_hochberg
from frame.reference.calibrated import calibrated_reference
from frame.reference.clustered_rates import clustered_reference, rate_counts, rate_heterogeneity
from frame.reference.exact_rates import RateDifference
from frame.reference.placement import placements


def audit(c, **settings):
    settings.setdefault("resamples", 0)
    return frame.audit(c.scores, c.labels, c.groups, c.patients, **settings)


def by_group(c):
    return [c.groups == g for g in np.unique(c.groups)]


# -- laws -------------------------------------------------------------------------------------------


def test_heterogeneity_of_rates_is_that_of_the_lattice(cohort):
    counted = [
        rate_counts(cohort.scores[g & cohort.labels] >= 0.6, cohort.patients[g & cohort.labels])
        for g in by_group(cohort)
    ]
    reference = clustered_reference(counted, "ABC")
    result = audit(cohort, measure="tpr", threshold=0.6, seed=3)
    expected = rate_heterogeneity(counted, reference, seed=3)
    assert reference.correlation > 0
    assert (result.p_heterogeneity, result.p_heterogeneity_error) == (expected.p, expected.p_error)


def test_balanced_components_differ_where_patients_agree_more_in_small_groups():
    # Three images a patient; they agree in the two small groups only.
    rng = np.random.default_rng(7)
    groups = np.repeat(["A", "B", "C"], [1500, 150, 150])
    patients = np.arange(1800) // 3
    labels = np.repeat(rng.random(600) < 0.4, 3)
    own = np.repeat(rng.normal(size=600), 3)
    scores = 1.2 * labels + np.where(groups == "A", rng.normal(size=1800), own) + 0.2 * rng.normal(size=1800)
    plain, balanced = (
        frame.audit(scores, labels, groups, patients, method=m, resamples=0)
        for m in ("auto", "calibrated-balanced")
    )
    placed = [placements(scores[groups == g], labels[groups == g], patients[groups == g]) for g in "ABC"]
    expected = calibrated_reference(placed, "ABC", balanced=True)
    assert (plain.method, balanced.method) == ("calibrated", "calibrated-balanced")
    assert balanced.reference.mean == expected.law.mean
    assert balanced.reference.mean > 1.1 * plain.reference.mean
    assert not math.isnan(balanced.p_heterogeneity)
    with pytest.raises(InputError, match="'calibrated-balanced'"):
        frame.audit(scores, labels, groups, patients, method="binomial")


def test_beta_laws_agree_with_a_fine_lattice():
    counts, rate = (100_000, 50_000), 0.2
    lattice = RateDifference(counts, [rate] * 2)
    variances = rate * (1 - rate) / np.asarray(counts)
    beside = BesideLattice(lattice, [rate] * 2, variances)
    assert beside.mean == lattice.mean
    assert beside.exceedance(0.004) == lattice.exceedance(0.004)
    assert beside.sd == pytest.approx(lattice.sd, abs=1e-4)
    assert beside.sd == pytest.approx(lattice.sd, rel=0.01)
    for level in (0.025, 0.975):
        assert beside.quantile(level) == pytest.approx(lattice.quantile(level), abs=1e-4)
    assert beside.critical_value(0.05) == pytest.approx(lattice.critical_value(0.05), abs=1e-4)


def test_accuracy_says_that_prevalence_alone_can_exceed(singles):
    for method in ("calibrated", "binomial"):
        result = audit(singles, measure="accuracy", method=method, threshold=0.6)
        assert ACCURACY in result.flags
        assert any("audit TPR and FPR" in sentence for sentence in result.limits)
        assert ACCURACY not in audit(singles, measure="tpr", method=method, threshold=0.6).flags
    assert ACCURACY not in audit(singles, measure="accuracy", method="pooled", threshold=0.6).flags


@pytest.mark.parametrize(("n_positive", "conservative"), [(19, True), (20, False)])
def test_conservative_below_twenty_positives(n_positive, conservative):
    labels = np.tile([True] * n_positive + [False] * 60, 2)
    scores = np.tile(np.r_[np.linspace(0.5, 1.5, n_positive), np.linspace(-1, 0.9, 60)], 2)
    groups = np.repeat(["a", "b"], n_positive + 60)
    result = frame.audit(scores, labels, groups, np.arange(len(labels)), resamples=0)
    assert result.overall >= 0.9
    assert any(flag.startswith("conservative") for flag in result.flags) is conservative
    assert not math.isnan(result.p)


@pytest.mark.parametrize(("freedom", "reliable"), [(9, False), (10, True)])
def test_ten_degrees_of_freedom(freedom, reliable):
    positives = (5, freedom + 2 - 5)
    parts = [
        np.r_[np.linspace(0.1, 1.5, k), np.linspace(-1, 1, 30)] + 0.3 * i for i, k in enumerate(positives)
    ]
    labels = np.concatenate([np.r_[np.ones(k), np.zeros(30)] for k in positives])
    groups = np.repeat(["a", "b"], [k + 30 for k in positives])
    result = frame.audit(np.concatenate(parts), labels, groups, np.arange(len(labels)), resamples=0)
    assert (result.status == "ok") is reliable
    assert math.isnan(result.p) is not reliable
    if not reliable:
        assert result.reason == "reference unreliable: 9 pooled degrees of freedom, fewer than 10"


@pytest.mark.parametrize("method", ["calibrated", "hanley-mcneil", "delong", "pooled"])
def test_both_common_values_are_shown(singles, method):
    result = audit(singles, method=method)
    plain = audit(singles)
    assert (result.overall_pooled, result.overall_within) == (plain.overall_pooled, plain.overall_within)
    shown = report_text([audit(singles, method=method, resamples=100)])
    assert "Value over all rows" in shown
    assert "Within-group mean" in shown


def test_within_group_means_of_permuted_rates(singles):
    for measure in ("tpr", "specificity"):
        pooled, plain = (audit(singles, measure=measure, threshold=0.6, method=m) for m in ("pooled", "auto"))
        assert pooled.overall_within == plain.overall_within
    assert math.isnan(audit(singles, measure="brier").overall_within)


# -- words ------------------------------------------------------------------------------------------


def test_permuted_membership_is_no_exactly_fair_model(unfair):
    result = audit(unfair, method="pooled", resamples=100)
    assert result.exceeds
    assert "is larger than it would be if membership did not matter (permuted) (" in result.verdict
    assert "fair model" not in result.verdict + report_text([result])


def test_without_ids_no_word_of_patients_as_units(singles):
    rows = (singles.scores, singles.labels, singles.groups)
    for method in ("calibrated", "calibrated-balanced", "pooled"):
        with_ids, without = (
            frame.audit(*rows, ids, method=method, resamples=0).test for ids in (singles.patients, None)
        )
        assert "patient" in with_ids
        assert "patient" not in without
        assert "images" in without


def test_the_range_is_ruled_only_where_flagged():
    rng = np.random.default_rng(5)
    n = 6000
    groups = np.repeat(list("ABCD"), n // 4)
    labels = rng.random(n) < 0.3
    for drop in np.linspace(0.1, 0.3, 9):
        scores = np.where(groups == "B", 1.3 - drop, np.where(groups == "C", 1.3 - drop, 1.3)) * labels
        result = frame.audit(scores + rng.normal(size=n), labels, groups, np.arange(n), resamples=0)
        if result.p_heterogeneity < 0.05 <= result.p:
            break
    else:
        pytest.fail("no simulated cohort is heterogeneous without exceeding")
    assert "ruled" not in result.verdict
    assert "uncorrected, Monte Carlo error" in result.verdict
    assert "look at every subgroup" in result.verdict


# -- rows -------------------------------------------------------------------------------------------


def test_images_in_no_stratum_are_counted_and_in_no_audit(singles):
    view = np.where(np.arange(730) % 2 == 0, "PA", "AP").astype(object)
    view[::7] = None
    kept = pd.notna(view)
    result = audit(singles, within=pd.Series(view, name="view"), missing="drop")
    left = int((~kept).sum())
    for one in (result, *result.strata):
        assert any(note.startswith(f"'view' is missing for {left} of 730 images") for note in one.notes)
        assert any(note.endswith("they are left out.") for note in one.notes)
    alone = frame.audit(
        singles.scores[kept], singles.labels[kept], singles.groups[kept], singles.patients[kept], resamples=0
    )
    assert result.n_images == sum(s.n_images for s in result.strata) == 730 - left
    assert (result.observed, result.p, result.overall_pooled) == (
        alone.observed,
        alone.p,
        alone.overall_pooled,
    )


def test_missing_strata_as_a_stratum_are_counted(singles):
    view = np.where(np.arange(730) % 2 == 0, "PA", "AP").astype(object)
    view[:80] = None
    result = audit(singles, within=pd.Series(view, name="view"), missing="group")
    assert [s.stratum for s in result.strata] == ["AP", "PA", "(missing)"]
    assert any("missing for 80 of 730" in n and "a stratum of their own" in n for n in result.notes)


def test_strata_of_all_attributes_are_one_family(cohort):
    rng = np.random.default_rng(4)
    n = len(cohort.scores)
    groups = {"sex": cohort.groups, "site": rng.choice(["x", "y"], n)}
    made = audits_of(
        cohort.scores,
        cohort.labels,
        groups,
        cohort.patients,
        within=pd.Series(rng.choice(["PA", "AP"], n), name="view"),
        resamples=0,
        whole=True,
    )
    strata = [s for a in made for s in a.strata]
    assert [(s.attribute, s.stratum) for s in strata] == [
        (a, v) for a in ("sex", "site") for v in ("AP", "PA")
    ]
    assert {s.family_size for s in strata} == {4}
    expected = benjamini_hochberg(np.asarray([s.p for s in strata]))
    assert [s.q for s in strata] == pytest.approx(list(expected))
    assert {a.family_size for a in made} == {2}


# -- units ------------------------------------------------------------------------------------------


def test_validation_patients_must_be_others(singles):
    held = make_cohort((500,), seed=9)
    ids = [f"canary-{i}" for i in range(730)]
    rows = (singles.scores, singles.labels, singles.groups)

    def run(patients, *held_patients):
        return frame.audit(
            *rows,
            patients,
            measure="tpr",
            validation=(held.scores, held.labels, *held_patients),
            resamples=0,
        )

    with pytest.raises(InputError) as told:
        run(ids, [f"canary-{i}" for i in range(613, 1113)])
    assert str(told.value).startswith(
        "validation: 117 patients are in the validation rows and in the audited rows; a threshold must come "
        "from other patients"
    )
    assert "canary" not in str(told.value)
    with pytest.raises(InputError, match="1 patient is in"):
        run(np.arange(730), [" 5", *(f"v{i}" for i in range(499))])
    other = run(ids, [f"v{i}" for i in range(500)])
    assert NOT_CHECKED not in other.notes
    for unchecked in (run(ids), run(None), run(None, np.arange(500))):
        assert NOT_CHECKED in unchecked.notes
        assert unchecked.threshold == other.threshold
    with pytest.raises(InputError, match="validation patients has 3 rows and validation labels 500"):
        run(ids, [1, 2, 3])
    given = frame.audit(*rows, ids, measure="tpr", threshold=0.5, resamples=0)
    assert NOT_CHECKED not in given.notes


@pytest.mark.parametrize("measure", ["auroc", "tpr"])
def test_repeated_images_without_ids_have_no_p(singles, measure):
    rows = (singles.scores, singles.labels, singles.groups)
    result = frame.audit(*rows, measure=measure, threshold=0.6, images_repeat=True, resamples=0)
    assert result.reason == "reference unreliable: images repeat but no patient id was given"
    assert result.reference.mean > 0
    assert all(map(math.isnan, (result.p, result.p_heterogeneity, *result.interval)))
    counted = frame.audit(*rows, method="hanley-mcneil", images_repeat=True, resamples=0)
    assert any("images repeat but no patient id was given" in flag for flag in counted.flags)
    with pytest.raises(InputError, match="images_repeat is True and patients are given"):
        frame.audit(*rows, singles.patients, images_repeat=True)
    with pytest.raises(InputError, match="images_repeat is 'yes'"):
        frame.audit(*rows, images_repeat="yes")


def test_spellings_of_one_group_are_flagged():
    c = make_cohort((200, 150, 100))
    groups = np.array(["female", "male", "FEMALE"], dtype=object)[
        np.searchsorted([200, 350], np.arange(450), "right")
    ]
    flags = frame.audit(c.scores, c.labels, groups, c.patients, resamples=0).flags
    assert "check the groups: 'FEMALE' and 'female' differ only in case" in flags
    plain = frame.audit(c.scores, c.labels, c.groups, c.patients, resamples=0).flags
    assert not any(flag.startswith("check the groups") for flag in plain)


def test_a_threshold_on_another_scale_is_flagged():
    c = make_cohort((200, 150))
    percent = 100 / (1 + np.exp(-c.scores))
    result = frame.audit(
        percent, c.labels, c.groups, c.patients, measure="accuracy", threshold=-1.0, resamples=0
    )
    assert any(flag.startswith("check the threshold: every score lies on one side") for flag in result.flags)
    inside = frame.audit(
        percent,
        c.labels,
        c.groups,
        c.patients,
        measure="tpr",
        threshold=float(np.median(percent)),
        resamples=0,
    )
    assert not any(flag.startswith("check the threshold") for flag in inside.flags)

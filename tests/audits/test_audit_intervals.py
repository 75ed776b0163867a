"""Intervals of an audit: where there is none and why, and how often the one of the true difference covers."""

import math

import numpy as np
import pytest
from simulated_cohorts import make_cohort

import frame
from frame.audits.report import report_text
from frame.inference.refusals import CONSTANT

ECE = "ECE is biased upwards in small groups"


def one_positive():
    """Three groups; the last has 25 images, one of them positive."""
    c = make_cohort((200, 150, 25), seed=6)
    labels = c.labels.copy()
    labels[-25:] = [True] + [False] * 24
    return c.scores, labels, c.groups, c.patients


def test_one_patient_with_a_positive_has_a_value_and_no_interval():
    result = frame.audit(*one_positive(), resamples=200)
    c = result.by_group.set_index("group").loc["C"]
    assert not math.isnan(c["value"])
    assert math.isnan(c["lo"])
    assert (c["status"], c["reason"]) == ("not estimable", "1 patient with a positive: no interval")
    assert result.by_group["status"].tolist() == ["ok", "ok", "not estimable"]
    contrasts = result.worst.contrasts
    named = "'C': 1 patient with a positive: no interval"
    if result.worst.name == "C":
        assert result.worst.reason == named[5:]
        assert set(contrasts["reason"]) == {named}
        assert contrasts["p"].isna().all()
    else:
        row = contrasts.set_index("group").loc["C"]
        assert (row["status"], row["reason"]) == ("not estimable", named)
        assert math.isnan(row["p"])
        assert not contrasts.set_index("group").drop(index="C")["p"].isna().any()
    assert "not estimable: 1 patient with a positive: no interval" in report_text([result])


def test_the_refusals_are_those_of_the_bootstrap():
    scores, labels, groups, patients = one_positive()
    labels[:200] = scores[:200] > 0.6  # group A is perfectly ranked
    result = frame.audit(scores, labels, groups, patients, resamples=200)
    boot = frame.bootstrap(scores, labels, groups, patients, measures=("auroc",), resamples=200).to_frame()
    expected = boot[boot["attribute"] != "overall"].reset_index(drop=True)
    assert expected["reason"].tolist() == [CONSTANT, "", "1 patient with a positive: no interval"]
    for name in ("status", "reason"):
        assert result.by_group[name].tolist() == expected[name].tolist()
    assert result.by_group["lo"].to_numpy() == pytest.approx(expected["lo"].to_numpy(), nan_ok=True)


def test_images_of_one_patient_are_one_patient(cohort):
    patients = cohort.patients.copy()
    patients[cohort.groups == "C"] = patients[cohort.groups == "C"][0]
    result = frame.audit(
        cohort.scores, cohort.labels, cohort.groups, patients, measure="brier", resamples=200
    )
    assert result.by_group["reason"].tolist() == ["", "", "1 patient: no interval"]
    assert result.interval_reason == "no interval: 'C' has 1 patient"
    assert math.isnan(result.interval[0])


def test_ece_has_no_interval_of_the_true_difference(singles):
    rows = (singles.scores, singles.labels, singles.groups, singles.patients)
    result = frame.audit(*rows, measure="ece", resamples=200)
    assert all(map(math.isnan, result.interval))
    assert result.interval_reason == f"no interval: {ECE}, and the observed gap with it"
    assert result.interval_reason in report_text([result])
    assert set(result.by_group["reason"]) == {ECE}
    assert result.worst.reason == ECE
    assert set(result.worst.contrasts["reason"]) == {ECE}
    assert any(sentence.startswith(ECE) for sentence in result.limits)
    brier = frame.audit(*rows, measure="brier", resamples=200)
    assert not math.isnan(brier.interval[0])
    assert brier.interval_reason == ""
    assert ECE not in " ".join(brier.limits)


def test_an_unreliable_reference_has_no_interval():
    c = make_cohort((25, 25), prevalence=0.12)
    labels = np.zeros(50, dtype=bool)
    labels[[0, 5, 30, 31]] = True
    result = frame.audit(c.scores, labels, c.groups, c.patients, resamples=0)
    assert all(map(math.isnan, result.interval))
    assert result.interval_reason == f"no interval: {result.reason}"
    assert "2 pooled degrees of freedom" in result.interval_reason
    assert result.reference.mean > 0


def test_the_seed_reaches_the_interval(cohort):
    first, other = (
        frame.audit(
            cohort.scores, cohort.labels, cohort.groups, cohort.patients, resamples=0, seed=s
        ).interval
        for s in (1, 2)
    )
    assert first != other
    assert first == pytest.approx(other, abs=1e-3)


def covered(sizes, rates, runs):
    """Share of simulated audits of a TPR whose interval holds the true difference."""
    groups = np.repeat(["A", "B"], sizes)
    truth = max(rates) - min(rates)
    labels = np.ones(sum(sizes) + 40, dtype=bool)
    labels[-40:] = False
    groups = np.r_[groups, np.repeat(["A", "B"], 20)]
    held = 0
    rng = np.random.default_rng(12)
    for _ in range(runs):
        hit = rng.random(sum(sizes)) < np.repeat(rates, sizes)
        scores = np.r_[hit, np.zeros(40)].astype(float)
        lo, hi = frame.audit(scores, labels, groups, measure="tpr", resamples=0).interval
        held += lo <= truth <= hi
    return held / runs


@pytest.mark.parametrize(
    ("sizes", "rates", "at_least"), [((400, 40), (0.95, 0.60), 0.90), ((300, 200), (0.8, 0.8), 0.93)]
)
def test_the_interval_covers_the_true_difference(sizes, rates, at_least):
    assert covered(sizes, rates, 400) >= at_least

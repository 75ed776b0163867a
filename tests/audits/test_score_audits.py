"""Audits of scores: what they hold, strata, intersections, families, words."""

import math
import sys

import numpy as np
import pandas as pd
import pytest
from simulated_cohorts import make_cohort

import frame
from frame.audits import audit_table, audits_of
from frame.audits.columns import COLUMNS
from frame.errors import InputError
from frame.published import COLUMNS as CLAIM_COLUMNS


def audit(c, **settings):
    settings.setdefault("resamples", 0)
    return frame.audit(c.scores, c.labels, c.groups, c.patients, **settings)


def test_columns_are_those_of_every_audit(cohort):
    shared = CLAIM_COLUMNS[1 : CLAIM_COLUMNS.index("reason") + 1]
    assert COLUMNS[: 3 + len(shared)] == ("score", "label", "attribute", *shared)
    further = ("p_heterogeneity", "interval_lo", "interval_hi", "worst_group", "flags")
    assert COLUMNS[3 + len(shared) : 8 + len(shared)] == further
    table = audit(cohort).to_frame()
    assert tuple(table.columns) == COLUMNS
    assert len(table) == 1


def test_row_says_what_the_audit_says(unfair):
    result = audit(unfair)
    row = result.to_frame().iloc[0]
    assert (row["score"], row["label"], row["attribute"]) == ("score", "label", "group")
    assert (row["observed"], row["p"], row["q"]) == (result.observed, result.p, result.p)
    assert bool(row["exceeds"]) is True
    assert (row["n_groups"], row["smallest_group"], row["n_images"]) == (2, 300, 700)
    assert row["n_positive"] == unfair.labels.sum()
    assert (row["reference_lo"], row["reference_hi"]) == result.reference.interval
    assert (row["status"], row["reason"], row["unit"]) == ("ok", "", "patient")
    assert row["worst_group"] == "B"
    assert row["detectable_80"] is pd.NA or math.isnan(row["detectable_80"])


def test_verdict_of_a_difference_that_exceeds(unfair):
    result = audit(unfair)
    assert result.exceeds
    assert "is larger than an exactly fair model would show at these counts" in result.verdict
    assert f"{result.observed:.3f} (B " in result.verdict
    assert "Monte Carlo error" in result.verdict
    assert not any(s.startswith("Not exceeding") for s in result.limits)
    assert "why subgroups differ" in result.limits[0]


def test_verdict_of_a_difference_that_does_not(singles):
    result = audit(singles)
    assert result.exceeds is False
    assert (
        "is consistent with exact fairness at these counts; that is not evidence of fairness"
        in result.verdict
    )
    assert (
        f"One subgroup truly {result.detectable:.3f} lower than the others would have been found with 80 % "
        "power in a single test at level 0.05, without correction;" in result.verdict
    )
    assert result.limits[0].startswith("Not exceeding is not fairness")
    assert f"{result.detectable:.3f} detectable" in result.short_verdict


def test_heterogeneity_that_the_range_does_not_see():
    # A drop in a large group: the range is ruled by the small one.
    rng = np.random.default_rng(5)
    groups = np.repeat(["A", "B", "C"], [1500, 1500, 25])
    labels = rng.random(3025) < 0.3
    labels[-25:] = [True] * 6 + [False] * 19
    shift = np.where(groups == "B", 0.75, 1.3)
    scores = shift * labels + rng.normal(size=3025)
    scores[-25:] = np.r_[rng.normal(1.4, 0.6, 6), rng.normal(0.0, 1.0, 19)]
    result = frame.audit(scores, labels, groups, np.arange(3025), resamples=0)
    assert result.p > 0.05 > result.p_heterogeneity
    assert "But the subgroups differ among each other by more than chance (p(Q) " in result.verdict
    assert ", uncorrected, Monte Carlo error" in result.verdict
    assert "the range is ruled by the smallest subgroup, so look at every subgroup" in result.verdict
    assert "p(Q)" in result.short_verdict
    assert any(f.startswith("range ruled by group 'C'") for f in result.flags)


def test_fnr_speaks_of_its_own_direction(singles):
    tpr, fnr = (audit(singles, measure=m, threshold=0.5) for m in ("tpr", "fnr"))
    assert "lower than the others" in tpr.verdict
    assert "higher than the others" in fnr.verdict


def test_without_ids_the_unit_is_the_image(singles):
    result = frame.audit(singles.scores, singles.labels, singles.groups, resamples=0)
    assert result.unit == "image"
    assert any("no patient id was given" in flag for flag in result.flags)
    assert any("The unit is the image" in sentence for sentence in result.limits)
    assert result.p == audit(singles).p  # one image a patient


def test_patients_in_two_groups_are_flagged(singles):
    patients = singles.patients.copy()
    patients[-5:] = [0, 1, 2, 3, 0]
    result = frame.audit(singles.scores, singles.labels, singles.groups, patients, resamples=0)
    assert "check the groups: 4 patients have images in two subgroups" in "; ".join(result.flags)
    assert result.status == "ok"
    pooled = frame.audit(singles.scores, singles.labels, singles.groups, patients, method="pooled")
    assert pooled.status == "not estimable"
    assert "4 of" in pooled.reason
    assert pooled.observed == result.observed


@pytest.mark.parametrize("measure", ["auroc", "tpr", "ece"])
def test_one_group_is_a_result(measure):
    c = make_cohort((80,))
    result = audit(c, measure=measure, threshold=0.5, resamples=100)
    assert result.status == "not estimable"
    assert result.reason == "one estimable group, and a difference needs two"
    assert all(math.isnan(x) for x in (result.observed, result.p, result.share, result.remainder))
    assert result.reference is None
    assert result.exceeds is None
    assert result.verdict == f"Not estimable: {result.reason}."
    assert result.short_verdict.startswith("not estimable")
    assert len(result.by_group) == 1
    assert result.to_frame()["p"].isna().all()


def test_no_positives_is_a_result(singles):
    result = frame.audit(
        singles.scores, np.zeros(len(singles.scores)), singles.groups, singles.patients, resamples=0
    )
    assert result.reason == "no estimable group (A: 0 positives; B: 0 positives; C: 0 positives)"
    assert result.worst.name == ""
    assert result.worst.reason == "no subgroup is evaluable"


def test_perfect_ranking_is_a_result(singles):
    result = frame.audit(
        singles.labels.astype(float), singles.labels, singles.groups, singles.patients, resamples=0
    )
    assert (result.observed, result.status, result.reason) == (
        0.0,
        "not estimable",
        "all groups perfectly ranked",
    )
    own = frame.audit(singles.labels * 1.0, singles.labels, singles.groups, method="delong", resamples=0)
    assert own.reason == "the own variance of group 'A' is 0"


def test_unreliable_reference_shows_its_mean_and_no_p():
    c = make_cohort((25, 25), prevalence=0.12)
    labels = np.zeros(50, dtype=bool)
    labels[[0, 5, 30, 31]] = True
    result = frame.audit(c.scores, labels, c.groups, c.patients, resamples=0)
    assert result.status == "not estimable"
    assert result.reason.startswith("reference unreliable: 2 pooled degrees of freedom")
    assert result.reference.mean > 0
    assert math.isnan(result.p)
    assert math.isnan(result.p_heterogeneity)
    assert result.verdict.startswith("No verdict: reference unreliable")
    row = result.to_frame().iloc[0]
    assert row["reference"] == result.reference.mean
    assert row["exceeds"] is pd.NA


def test_threshold_above_every_score(singles):
    result = audit(singles, measure="tpr", threshold=2.0)
    assert result.observed == 0.0
    assert result.table["value"].tolist() == [0, 0, 0]
    assert "no positive predictions" in result.flags
    assert (result.status, result.reason) == ("not estimable", "no case counts")


def test_below_chance_is_kept(singles):
    result = frame.audit(-singles.scores, singles.labels, singles.groups, singles.patients, resamples=0)
    straight = audit(singles)
    assert result.table["value"].to_numpy() == pytest.approx(1 - straight.table["value"].to_numpy())
    assert sum(flag.startswith("below chance") for flag in result.flags) == 3
    assert result.p == pytest.approx(straight.p, rel=1e-6)


def test_strata_equal_audits_of_their_rows(cohort):
    view = np.where(np.arange(len(cohort.scores)) % 4 < 2, "PA", "AP")
    result = audit(cohort, within=pd.Series(view, name="view"))
    assert [s.stratum for s in result.strata] == ["AP", "PA"]
    for stratum in result.strata:
        kept = view == stratum.stratum
        alone = frame.audit(
            cohort.scores[kept],
            cohort.labels[kept],
            cohort.groups[kept],
            cohort.patients[kept],
            resamples=0,
        )
        assert (stratum.observed, stratum.p) == (alone.observed, alone.p)
        assert stratum.family_size == 2
    assert result.p == audit(cohort).p
    table = result.to_frame()
    assert table["stratum"].tolist() == ["AP", "PA"]
    assert result.verdict.startswith("Within view: ")
    assert "within view AP" in result.strata[0].verdict


def test_a_stratum_that_is_not_estimable_keeps_its_row(cohort):
    view = np.asarray(["PA"] * len(cohort.scores))
    view[:5] = "AP"
    result = audit(cohort, within=view)
    assert [s.status for s in result.strata] == ["not estimable", "ok"]
    assert "fewer than 20 images (5)" in result.strata[0].reason
    assert "of 1 estimable strata exceed, 1 not estimable" in result.verdict
    assert list(result.strata[0].table["group"]) == ["A", "B", "C"]


def test_intersections_equal_their_concatenation(cohort):
    rng = np.random.default_rng(2)
    age = np.where(rng.random(len(cohort.scores)) < 0.5, "<40", "40+")
    joined = np.asarray([f"{g} & {a}" for g, a in zip(cohort.groups, age, strict=True)])
    two = frame.audit(
        cohort.scores,
        cohort.labels,
        {"sex": cohort.groups, "age": age},
        cohort.patients,
        intersections=True,
        resamples=0,
    )
    one = frame.audit(cohort.scores, cohort.labels, joined, cohort.patients, resamples=0)
    assert two.attribute == "sex x age"
    pd.testing.assert_frame_equal(two.table, one.table)
    assert two.p == one.p
    with pytest.raises(InputError, match="groups has 2 columns; give one, or intersections=True"):
        frame.audit(cohort.scores, cohort.labels, {"sex": cohort.groups, "age": age})


def test_table_of_many(cohort, singles):
    rng = np.random.default_rng(0)
    n = len(cohort.scores)
    groups = {"sex": cohort.groups, "site": rng.choice(["x", "y"], n)}
    scores = {"a": cohort.scores, "b": rng.random(n)}
    labels = {"one": cohort.labels, "two": rng.random(n) < 0.4}
    steps = []
    table = frame_of(
        audits_of(
            scores,
            labels,
            groups,
            cohort.patients,
            measures=["auroc", "tpr", "fnr"],
            threshold=0.5,
            resamples=0,
            progress=lambda done, total: steps.append((done, total)),
        )
    )
    assert len(table) == 2 * 2 * 2 * 3
    assert steps[-1] == (24, 24)
    assert table[["score", "label", "attribute", "measure"]].drop_duplicates().shape[0] == 24
    auroc = table[table["measure"] == "auroc"]
    assert auroc["q"].to_numpy() == pytest.approx(step_up(auroc["p"].to_numpy()))
    assert set(auroc["family_size"]) == {8}
    # TPR and FNR of the same rows are one test: both carry its q, and the family counts it once.
    tpr, fnr = (table[table["measure"] == m] for m in ("tpr", "fnr"))
    assert tpr["q"].tolist() == fnr["q"].tolist()
    assert tpr["q"].to_numpy() == pytest.approx(step_up(tpr["p"].to_numpy()))
    assert set(fnr["family_size"]) == {8}
    assert table["exceeds"].tolist() == (table["q"] < 0.05).tolist()


def frame_of(audits):
    from frame.audits.result import frame_of as made

    return made(audits)


def step_up(p):
    """Benjamini and Hochberg's adjusted p, one value at a time."""
    ordered = sorted(p)
    return [min(min(1.0, q * len(p) / (ordered.index(q) + 1)) for q in ordered if q >= x) for x in p]


def test_many_scores_each_on_the_rows_they_have(singles):
    holes = singles.scores.copy()
    holes[::2] = np.nan
    table = audit_table(
        {"whole": singles.scores, "half": holes},
        singles.labels,
        singles.groups,
        singles.patients,
        missing="drop",
        resamples=0,
    )
    assert table["n_images"].tolist() == [730, 365]
    assert table["n_without_score"].tolist() == [0, 365]


def test_missing_groups_are_counted_by_label(singles):
    groups = singles.groups.astype(object)
    groups[:70] = None
    positive = int(singles.labels[:70].sum())
    dropped = frame.audit(
        singles.scores, singles.labels, groups, singles.patients, missing="drop", resamples=0
    )
    assert (dropped.n_images, dropped.n_missing, dropped.n_missing_positive) == (660, 70, positive)
    assert f"missing for 70 of 730 images ({positive} of" in dropped.notes[0]
    assert "they are left out" in dropped.notes[0]
    kept = frame.audit(singles.scores, singles.labels, groups, singles.patients, missing="group", resamples=0)
    assert list(kept.table["group"]) == ["A", "B", "C", "(missing)"]
    assert kept.n_images == 730
    with pytest.raises(InputError, match="blank for 70 of 730 images"):
        frame.audit(singles.scores, singles.labels, groups, singles.patients)


def test_dropped_rows_count_nowhere(singles):
    groups = singles.groups.astype(object)
    groups[:70] = None
    dropped = frame.audit(singles.scores, singles.labels, groups, missing="drop", resamples=100)
    alone = frame.audit(singles.scores[70:], singles.labels[70:], groups[70:], resamples=100)
    assert (dropped.overall_pooled, dropped.p) == (alone.overall_pooled, alone.p)
    pd.testing.assert_frame_equal(dropped.by_group, alone.by_group)


def test_resamples_can_be_switched_off(singles):
    result = audit(singles)
    assert result.by_group["lo"].isna().all()
    assert set(result.by_group["reason"]) == {"no interval: the bootstrap is switched off (resamples=0)"}
    assert math.isnan(result.worst.lo)
    assert result.worst.contrasts["status"].tolist() == ["not estimable"] * 2


def test_a_missing_numba_is_one_sentence(singles, monkeypatch):
    monkeypatch.delitem(sys.modules, "frame.inference.kernels", raising=False)
    monkeypatch.delattr("frame.inference.kernels", raising=False)
    monkeypatch.setitem(sys.modules, "numba", None)
    result = audit(singles, resamples=100)
    assert result.status == "ok"
    with pytest.raises(InputError, match=r"needs numba; .*pip install 'frame-audit\[scores\]'"):
        _ = result.by_group


def test_seed_and_runs(cohort):
    first, again, other = (audit(cohort, resamples=100, seed=s) for s in (1, 1, 2))
    pd.testing.assert_frame_equal(first.by_group, again.by_group)
    assert not first.by_group["lo"].equals(other.by_group["lo"])
    assert first.p == other.p


def test_nothing_of_the_rows_is_in_its_text():
    c = make_cohort((60, 60))
    ids = [f"canary{i}" for i in range(120)]
    result = frame.audit(c.scores, c.labels, c.groups, ids, resamples=0)
    assert "canary" not in repr(result) + result.to_frame().to_csv()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"measure": "auc"}, "measure 'auc' is called 'auroc' here"),
        ({"method": "binomial"}, "its methods are 'auto', 'calibrated', 'calibrated-balanced', 'delong'"),
        ({"measure": "ece", "method": "calibrated"}, "its methods are 'auto', 'pooled'"),
        ({"protocol": "paper", "method": "calibrated"}, "for methods on counts only, not for 'calibrated'"),
        ({"protocol": "paper", "measure": "ece"}, "measure 'ece' has none"),
        ({"margin": 0.1, "method": "pooled"}, "method 'pooled' has no margin; use 'calibrated'"),
        ({"margin": 0.1, "measure": "ece"}, "ece has no method with one"),
        ({"margin": 0.1, "protocol": "paper"}, "margin needs protocol 'exact'"),
        ({"margin": 1.0}, "margin is 1"),
        ({"alpha": 0}, "alpha is 0"),
        ({"resamples": 50}, "an interval needs 100 or more"),
        ({"resamples": 1.5}, "resamples is 1.5"),
        ({"seed": -1}, "seed is -1"),
        ({"min_size": 0}, "min_size is 0"),
        ({"scale": "odds"}, "scale is 'odds'"),
        ({"missing": "ignore"}, "missing is 'ignore'"),
        ({"measure": "tpr"}, "needs validation scores"),
        ({"measure": "tpr", "threshold": "youden"}, "needs validation scores"),
        ({"validation": 3}, "validation must be a pair"),
        ({"intersections": "yes"}, "intersections is 'yes'"),
    ],
)
def test_wrong_arguments_are_one_sentence(singles, settings, sentence):
    with pytest.raises(InputError) as told:
        audit(singles, **settings)
    assert sentence in str(told.value)
    assert "\n" not in str(told.value)


def test_paper_protocol_of_auto_is_the_papers_method(singles):
    assert audit(singles, protocol="paper").method == "hanley-mcneil"
    assert audit(singles, measure="tpr", threshold=0.5, protocol="paper").method == "binomial"


def test_many_columns_are_for_the_table(singles):
    with pytest.raises(InputError, match=r"scores has 2 columns; frame\.audit takes one score"):
        frame.audit({"a": singles.scores, "b": singles.scores}, singles.labels, singles.groups)
    with pytest.raises(InputError, match="measures is empty"):
        audits_of(singles.scores, singles.labels, singles.groups, measures=[])
    with pytest.raises(InputError, match="measure 'auroc' is named 2 times"):
        audits_of(singles.scores, singles.labels, singles.groups, measures=["auroc", "auroc"])


def test_the_example_in_the_docstring():
    import doctest

    from frame.audits import score_audits

    found = doctest.testmod(score_audits)
    assert (found.attempted > 0, found.failed) == (True, 0)

"""Step two where the group of some images is not known, and where scores tell no images apart."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from mechanism_worlds import QUICK, asked, cohort

from frame.errors import InputError
from frame.interventions.decision import UNDETERMINED
from frame.interventions.mechanism_rows import mechanism_rows
from frame.interventions.procedure import mechanism
from frame.interventions.strength_tables import (
    Curve,
    Point,
    difference_change,
    loss_change,
    strengths_table,
)
from frame.interventions.strengths import Measuring, Step, measured, measured_scores, refitted
from frame.mitigation.comparison import compare_methods
from frame.mitigation.contract import Outcome, scores_of_logits

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:fairlearn")


def how(**settings):
    """How one strength is measured, quickly."""
    quick = {"measure": "auroc", "methods": (), "geometry": False, "nonlinear": False, "resamples": 100}
    return Measuring(**quick | {"seed": 0, "min_size": 20, "tolerance": 0.01} | settings)


def blanked(found, share=0.4):
    """Groups of a cohort, blank for a share of its images."""
    return pd.Series(found.groups, name="race").mask(np.random.default_rng(0).random(len(found)) < share)


def at_zero(data, asked_how):
    """What is measured without an operator."""
    return measured(data, refitted(data, None, 0.0, 0), Step("none", 0.0), asked_how)


def rare_finding():
    """A finding of 8 % in drawn features; the group of 40 % of the images is not known."""
    rng = np.random.default_rng(4)
    n = 6000
    labels = rng.random(n) < 0.08
    groups = pd.Series(rng.choice(["A", "B"], n), name="race").mask(rng.random(n) < 0.4)
    features = rng.normal(size=(n, 6))
    features[:, 0] += 1.2 * labels
    split = rng.choice(["train", "validation", "test"], n, p=[0.4, 0.2, 0.4])
    return SimpleNamespace(features=features, labels=labels, groups=groups, split=split)


def test_scores_on_another_scale_are_not_mixed():
    found = rare_finding()
    data = mechanism_rows(found.features, found.labels, found.groups, found.split)
    known = found.groups.notna() & (found.split == "test")
    # Reweighing drops the balanced class weights, so its logits lie lower by about 2.4 and rank as before.
    zero = at_zero(data, how(methods=("reweigh",)))
    assert 0 < int(known.sum()) < int((found.split == "test").sum())
    assert zero.facts["excluded"] == []
    assert not math.isnan(zero.quantities["achievable_difference"])


@pytest.mark.parametrize("measure", ["tpr", "auroc", "ece"])
def test_methods_give_the_numbers_of_the_comparison(measure):
    drawn = cohort(2, 0.6)
    groups = blanked(drawn)
    given = (drawn.features, drawn.labels, groups, drawn.split)
    table = compare_methods(
        *given,
        drawn.patients,
        methods=("threshold_shift", "reweigh"),
        measures=(measure,),
        missing="drop",
        resamples=100,
    ).to_frame()
    data = mechanism_rows(*given, patients=drawn.patients)
    for method in ("threshold_shift", "reweigh"):
        zero = at_zero(data, how(measure=measure, methods=(method,), tolerance=1.0))
        row = table[table["method"] == method].iloc[0]
        assert np.nanmax(zero.groups) - np.nanmin(zero.groups) == pytest.approx(row["before"], abs=1e-9)
        assert zero.quantities["achievable_difference"] == pytest.approx(
            min(row["before"], row["after"]), abs=1e-9
        )
        assert zero.facts["chosen"][0] == (method if row["after"] < row["before"] else "unmitigated")


def test_thresholds_are_those_of_the_images_whose_group_is_known():
    drawn = cohort(2, 0.6)
    groups = blanked(drawn)
    kept = ((drawn.split != "validation") | groups.notna()).to_numpy()
    settings = QUICK | {"measure": "tpr", "whitened": False, "geometry": False}
    verdicts = [
        mechanism(
            drawn.features[rows],
            drawn.labels[rows],
            groups[rows],
            drawn.split[rows],
            patients=drawn.patients[rows],
            **settings,
        )
        for rows in (np.ones(len(drawn), dtype=bool), kept)
    ]
    assert verdicts[0].step_one.threshold.value == verdicts[1].step_one.threshold.value
    pd.testing.assert_frame_equal(verdicts[0].strengths, verdicts[1].strengths)
    (note,) = [note for note in verdicts[0].notes if note.startswith("Thresholds, and all that")]
    assert "the images whose 'race' is known, before and after" in note
    assert any("these images count in the disease AUROC of the head alone" in n for n in verdicts[0].notes)


def test_a_class_that_only_images_without_a_group_have():
    drawn = cohort(3, 0.6)
    groups = pd.Series(drawn.groups).mask((drawn.groups != "A") & (drawn.split == "validation"))
    blank = groups.mask((drawn.split == "validation") & drawn.labels & (groups == "A"))
    groups[(drawn.split == "validation") & (drawn.groups == "C")] = "C"
    blank[(drawn.split == "validation") & (drawn.groups == "C")] = "C"
    with pytest.raises(InputError, match=r"no positive among its .* images whose 'group' is known once the"):
        mechanism_rows(drawn.features, drawn.labels, blank, drawn.split, exclude=["C"])
    assert mechanism_rows(drawn.features, drawn.labels, groups, drawn.split, exclude=["C"]).levels


# -- scores that tell no images apart -----------------------------------------------------------------


def test_features_that_are_all_alike_are_undetermined():
    drawn = cohort(2, 0.6)
    alike = SimpleNamespace(**vars(drawn) | {"features": np.ones_like(drawn.features)})
    found = asked(alike)
    # Without counts, which a report may have to hide.
    said = "step one gives no exceedance: all test images have one score"
    assert (found.verdict, found.reasons) == (UNDETERMINED, (said,))
    assert len(found.strengths) == 0


def test_given_scores_that_are_one_are_undetermined():
    drawn = cohort(2, 0.6)
    found = asked(drawn, scores=np.full(len(drawn), 0.3))
    assert found.reasons == ("step one gives no exceedance: all test images have one score",)
    # Of validation scores nothing is read but a threshold.
    scores = np.where(drawn.split == "validation", 0.3, np.random.default_rng(0).random(len(drawn)))
    assert not math.isnan(asked(drawn, scores=scores).step_one.p)
    assert asked(drawn, scores=scores).verdict != UNDETERMINED
    assert "validation images have one score" in asked(drawn, scores=scores, measure="tpr").reasons[0]


def test_no_change_is_claimed_where_a_strength_has_one_score():
    drawn = cohort(2, 0.6)
    data = mechanism_rows(drawn.features, drawn.labels, drawn.groups, drawn.split)
    start = refitted(data, None, 0.0, 0)
    zero = measured_scores(data, start.logits, how())
    flat = measured_scores(data, {name: np.full(len(v), 0.2) for name, v in start.logits.items()}, how())
    assert np.isnan([flat.auroc, *flat.groups, *flat.auroc_replicates]).all()
    curve = Curve("entanglement", (Point(0.0, (zero,)), Point(4.0, (flat,))))
    why = "all validation images have one score at strength 4"
    for change in (difference_change(data, how(), curve), loss_change(curve)):
        assert (change.status, change.reason, change.moves) == ("not estimable", why, None)
    table = strengths_table(data, how(), [curve])
    end = table[table["strength"] == 4.0]
    assert end["value"].isna().all()
    assert set(end["reason"]) == {why}
    assert (table.loc[table["strength"] == 0, "status"] == "ok").all()


@pytest.mark.parametrize("where", ["validation", "test", "both"])
def test_a_method_of_one_score_is_never_achievable(monkeypatch, where):
    def constant(name, unit):
        scores = [
            scores_of_logits(np.zeros(len(rows))) if where in (split, "both") else start
            for split, rows, start in zip(
                ("validation", "test"), (unit.validation, unit.test), unit.unmitigated, strict=True
            )
        ]
        return Outcome(*scores)

    monkeypatch.setattr("frame.interventions.strengths.fit_method", constant)
    drawn = cohort(2, 0.6)
    data = mechanism_rows(drawn.features, drawn.labels, drawn.groups, drawn.split)
    zero = at_zero(data, how(methods=("reweigh",), tolerance=1.0))
    assert zero.facts["chosen"] == ["unmitigated", "unmitigated"]
    ((name, reason),) = zero.facts["excluded"]
    assert name == "reweigh"
    assert reason.startswith("degenerate: all ")
    assert reason.endswith(" images have one score")


def test_a_head_that_could_not_be_fitted_gives_no_number(monkeypatch):
    drawn = cohort(2, 0.6)
    data = mechanism_rows(drawn.features, drawn.labels, drawn.groups, drawn.split)
    start = refitted(data, None, 0.0, 0)
    head = type(start.head)("linear", "not fitted", "the rows were refused", {}, None)
    failed = type(start)(start.parts, head, start.logits)
    found = measured(data, failed, Step("none", 0.0), how(methods=("reweigh",)))
    assert math.isnan(found.auroc)
    why = "the disease head could not be fitted: the rows were refused"
    assert found.degenerate == why
    assert set(found.reasons.values()) == {why}

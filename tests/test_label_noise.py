"""The label error notebook's tables and figures: audits equal frame.audit, drawings hold their table."""

import importlib.util

import numpy as np
import pandas as pd
import pytest
from drawn_text import misplaced_texts
from matplotlib.colors import to_hex

from frame.audits import audit
from frame.cohorts.adjudicated import FINDINGS, AdjudicatedCohort
from frame.cohorts.label_error import FairScore, simulated_fair_scores
from frame.figures import label_noise
from frame.figures.label_noise import (
    audit_mined_labels,
    differences_from_labels,
    draw_audited_labels,
    draw_differences_from_labels,
    error_rates,
    repeat_fair_scores,
    verdicts,
)
from frame.figures.style import SMALL
from frame.inference.multiplicity import benjamini_hochberg

SCORE = FairScore(auroc=0.85, sensitivity=0.8)


@pytest.fixture(scope="module")
def cohort():
    """1,500 simulated images; the mined labels miss more findings in PA than in AP views."""
    rng = np.random.default_rng(3)
    n = 1500
    patients = np.repeat(np.arange(n // 2), 2)
    sex = np.repeat(rng.choice(["F", "M"], n // 2), 2)
    band = np.repeat(rng.choice(["<40", "40-<60", "60-<80", ">=80"], n // 2, p=[0.4, 0.4, 0.19, 0.01]), 2)
    view = rng.choice(["AP", "PA"], n)
    images = pd.DataFrame(
        {
            "patient": patients,
            "sex": sex,
            "age_band": pd.Categorical(band, ["<40", "40-<60", "60-<80", ">=80"], ordered=True),
            "view": view,
        }
    )
    for name, finding in FINDINGS.items():
        truth = rng.random(n) < 0.35
        images[f"radiologist_{name}"] = truth
        if finding.mined:
            missed = np.where(view == "PA", 0.75, 0.35)
            images[f"text_{name}"] = np.where(truth, rng.random(n) >= missed, rng.random(n) < 0.08)
    return AdjudicatedCohort(images, n, n // 2, 0, 0, 0, "filled")


@pytest.fixture(scope="module")
def audited(cohort):
    return audit_mined_labels(cohort, alpha=0.05)


def test_every_finding_attribute_and_measure_has_a_row(audited):
    rows = set(zip(audited["finding"], audited["attribute"], audited["measure"], strict=True))
    titles = [finding.title for finding in FINDINGS.values()]
    attributes = ("sex", "age_band", "view")
    assert rows == {(t, a, m) for t in titles for a in attributes for m in ("tpr", "fpr")}
    assert len(audited) == len(rows)


def test_a_finding_that_was_not_mined_keeps_its_rows_with_the_reason(audited):
    rows = audited[audited["finding"] == "Fracture"]
    assert set(rows["status"]) == {"not estimable"}
    assert set(rows["reason"]) == {"not auditable: none of the 14 text-mined findings is a fracture"}
    assert rows[["observed", "reference", "p", "q"]].isna().all(axis=None)
    assert rows["exceeds"].isna().all()


def test_audits_are_those_of_frame_audit(cohort, audited):
    images = cohort.images
    table = audited.set_index(["finding", "attribute", "measure"])
    for name, attribute, measure in [
        ("pneumothorax", "view", "tpr"),
        ("nodule_or_mass", "sex", "fpr"),
    ]:
        found = audit(
            images[f"text_{name}"].astype(float),
            images[f"radiologist_{name}"],
            images[attribute],
            images["patient"],
            measure=measure,
            resamples=0,
        )
        row = table.loc[(FINDINGS[name].title, attribute, measure)]
        assert (row["observed"], row["p"]) == (found.observed, found.p)
        assert row["reference"] == found.reference.mean
        assert row["unit"] == "patient"


def test_q_is_corrected_over_all_findings_and_attributes_of_a_measure(audited):
    for measure in ("tpr", "fpr"):
        rows = audited[(audited["measure"] == measure) & (audited["status"] == "ok")]
        assert len(rows) == 9
        assert set(rows["family_size"]) == {9}
        assert rows["q"].to_numpy() == pytest.approx(benjamini_hochberg(rows["p"].to_numpy()), abs=1e-15)
        assert (rows["exceeds"] == (rows["q"] < 0.05)).all()
    # The planted difference between views is found, and nothing else.
    called = audited[audited["exceeds"].fillna(False).astype(bool)]
    assert set(zip(called["attribute"], called["measure"], strict=True)) == {("view", "tpr")}
    assert len(called) == 3


def test_verdicts_are_short(audited):
    places = zip(audited["finding"], audited["attribute"], audited["measure"], strict=True)
    words = dict(zip(places, verdicts(audited), strict=True))
    assert words["Pneumothorax", "view", "tpr"] == "exceeds"
    assert words["Pneumothorax", "sex", "tpr"] == "does not"
    assert words["Fracture", "sex", "fpr"] == "not auditable"
    by_sex = audited.set_index(["finding", "attribute", "measure"]).loc[("Pneumothorax", "sex", "tpr")]
    assert 0 < by_sex["detectable_80"] < 1


def test_error_rates_begin_with_all_images(cohort):
    rates = error_rates(cohort, ["view"])
    assert rates["attribute"].tolist() == ["overall", "view", "view"] * 3
    assert set(rates.loc[rates["attribute"] == "overall", "n_images"]) == {1500}
    images = cohort.images
    own = images[images["view"] == "PA"]
    row = rates[(rates["finding"] == "Pneumothorax") & (rates["group"] == "PA")].iloc[0]
    assert row["sensitivity"] == own.loc[own["radiologist_pneumothorax"], "text_pneumothorax"].mean()


def test_the_quick_comparison_is_the_one_of_frame_audit(cohort):
    images = cohort.images
    truth = images["radiologist_pneumothorax"].to_numpy()
    labels = images["text_pneumothorax"].to_numpy()
    scores = simulated_fair_scores(truth, images["patient"], SCORE, 4)
    for measure in ("auroc", "tpr", "fpr"):
        for attribute in ("view", "age_band"):
            observed, law = label_noise._difference(cohort, attribute, scores, labels, measure, SCORE)
            threshold = None if measure == "auroc" else SCORE.threshold
            found = audit(
                scores, labels, images[attribute], images["patient"],
                measure=measure, threshold=threshold, resamples=0,
            )  # fmt: skip
            assert float(observed) == found.observed
            assert law.mean == pytest.approx(found.reference.mean, rel=1e-12)
            assert law.exceedance(observed) == pytest.approx(found.p, rel=1e-9)


@pytest.fixture(scope="module")
def differences(cohort):
    return differences_from_labels(cohort, SCORE, seed=0)


def test_label_errors_make_a_difference_where_they_differ(differences):
    computed = differences.set_index(["finding", "attribute", "measure"])["computed"]
    assert len(differences) == 27
    view, sex = (computed[:, attribute, "auroc"] for attribute in ("view", "sex"))
    assert view.min() > 0.05 > sex.max()


def test_fair_scores_exceed_against_the_wrong_labels_only(cohort):
    repeated = repeat_fair_scores(cohort, "pneumothorax", "view", SCORE, repeats=20, seed=9, alpha=0.05)
    assert repeated["n_scores"].tolist() == [20] * 6
    share = repeated.set_index(["measure", "labels"])["exceeds"]
    assert share["FPR", "text-mined"] - share["FPR", "radiologists"] > 0.3
    assert share.xs("radiologists", level="labels").max() <= 0.25
    observed = repeated.set_index(["measure", "labels"])["observed"]
    assert observed["AUROC", "text-mined"] > 2 * observed["AUROC", "radiologists"]


# ---- figures


def dots(axes):
    """Place and filling of the dots that are drawn."""
    found = []
    for line in axes.lines:
        if line.get_marker() == "o":
            ((x, y),) = line.get_xydata()
            found.append((x, y, to_hex(line.get_markerfacecolor()) != "#ffffff"))
    return found


@pytest.mark.parametrize("kind", ["audited", "differences"])
def test_figures_are_readable(kind, audited, differences):
    shown = draw_audited_labels(audited) if kind == "audited" else draw_differences_from_labels(differences)
    assert misplaced_texts(shown.figure, SMALL) == []


def test_the_audit_figure_holds_its_table(audited):
    shown = draw_audited_labels(audited)
    ok = audited[audited["status"] == "ok"]
    for axes, measure in zip(shown.figure.axes, ("tpr", "fpr"), strict=True):
        rows = ok[ok["measure"] == measure]
        assert [x for x, _, _ in dots(axes)] == rows["observed"].tolist()
        assert [full for *_, full in dots(axes)] == rows["exceeds"].tolist()
        spans = [tuple(line.get_xdata()) for line in axes.lines if line.get_color() == "#5c6670"]
        assert spans == list(zip(rows["reference_lo"], rows["reference_hi"], strict=True))
        ticks = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "|"]
        assert ticks == rows["reference"].tolist()
    names = [label.get_text() for label in shown.figure.axes[0].get_yticklabels()]
    assert names[:3] == ["Pneumothorax: sex", "age", "view"]
    assert len(names) == len({y for _, y, _ in dots(shown.figure.axes[0])}) == 9
    assert "not shown: Fracture" in shown.summary
    assert shown.summary.count("exceeds") == 3


def test_the_difference_figure_holds_its_table(differences):
    shown = draw_differences_from_labels(differences)
    assert len(shown.figure.axes) == 3
    for axes, measure in zip(shown.figure.axes, ("auroc", "tpr", "fpr"), strict=True):
        rows = differences[differences["measure"] == measure]
        assert [x for x, _, _ in dots(axes)] == rows["computed"].tolist()
        expected = (rows["computed"] > rows["reference_hi"]).tolist()
        assert [full for *_, full in dots(axes)] == expected
    assert any(full for axes in shown.figure.axes for *_, full in dots(axes))


@pytest.mark.skipif(
    importlib.util.find_spec("torchxrayvision") is None,
    reason="the NIH tables are not installed (make env installs them)",
)
def test_real_labels_differ_by_view_and_not_by_sex():
    # What the notebook says in words.
    from frame.cohorts.adjudicated import read_adjudicated

    real = audit_mined_labels(read_adjudicated(), alpha=0.05, attributes=["sex", "view"])
    called = real[real["exceeds"].fillna(False).astype(bool)]
    assert list(zip(called["finding"], called["attribute"], called["measure"], strict=True)) == [
        ("Pneumothorax", "view", "tpr"),
        ("Pneumothorax", "view", "fpr"),
        ("Airspace opacity", "view", "tpr"),
    ]

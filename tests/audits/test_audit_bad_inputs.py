"""Inputs that broke other tools, through ``frame.audit``: the right answer, or one sentence."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from simulated_cohorts import make_cohort

import frame
from frame.errors import InputError


def told(*arguments, **settings):
    with pytest.raises(InputError) as problem:
        frame.audit(*arguments, **settings)
    assert "\n" not in str(problem.value)
    return str(problem.value)


def test_a_group_of_one_class_is_never_difference_zero():
    result = frame.audit(
        [0.1, 0.9, 0.4, 0.3, 0.8, 0.7], [0, 1, 0, 1, 1, 1], list("aaaabb"), min_size=1, resamples=0
    )
    b = result.table.set_index("group").loc["b"]
    assert (b["status"], b["reason"], b["n_images"], b["n_positive"]) == (
        "not estimable",
        "0 negatives",
        2,
        2,
    )
    assert math.isnan(result.observed)
    assert result.reason == "one estimable group, and a difference needs two (b: 0 negatives)"
    assert result.to_frame()["observed"].isna().all()


@pytest.mark.parametrize("kind", ["series", "list", "categorical", "blank"])
def test_one_policy_for_missing_groups(singles, kind):
    groups = list(singles.groups)
    for i, value in zip((3, 9, 500), (None, float("nan"), None), strict=True):
        groups[i] = "  " if kind == "blank" else value
    made = {
        "series": lambda: pd.Series(groups, name="sex"),
        "list": lambda: groups,
        "blank": lambda: groups,
        "categorical": lambda: pd.Series(
            pd.Categorical(groups, categories=["A", "B", "C", "Unknown"]), name="sex"
        ),
    }[kind]()
    name = "sex" if kind in ("series", "categorical") else "group"
    rows = (singles.scores, singles.labels, made, singles.patients)
    assert f"column '{name}' is blank for 3 of 730 images" in told(*rows)
    dropped = frame.audit(*rows, missing="drop", resamples=0)
    assert (dropped.n_images, dropped.n_missing) == (727, 3)
    kept = frame.audit(*rows, missing="group", min_size=1, resamples=0)
    assert kept.table["group"].iloc[-1] == "(missing)"
    assert kept.table["n_images"].sum() == 730
    # The picture and the table speak of the same rows.
    assert kept.by_group["n_images"].tolist() == kept.table["n_images"].tolist()


def test_unknown_and_unused_levels_have_rows(singles):
    groups = singles.groups.astype(object)
    groups[:30] = "Unknown"
    levels = pd.Categorical(groups, categories=["A", "B", "C", "Unknown", "D"])
    result = frame.audit(singles.scores, singles.labels, levels, resamples=0)
    assert list(result.table["group"]) == ["A", "B", "C", "Unknown", "D"]
    d = result.table.iloc[-1]
    assert (d["n_images"], d["status"]) == (0, "not estimable")
    assert "fewer than 20 images (0)" in d["reason"]


def test_minimum_size_is_no_evidence_of_positives():
    groups = np.repeat(["a", "b", "c"], [30, 30, 1])
    labels = np.zeros(61)
    labels[-1] = 1
    scores = np.linspace(0, 1, 61)
    result = frame.audit(scores, labels, groups, measure="tpr", threshold=0.5, resamples=0)
    assert result.status == "not estimable"
    assert result.table["n_images"].tolist() == [30, 30, 1]
    assert result.table["n_positive"].tolist() == [0, 0, 1]
    assert result.table["reason"].tolist() == ["0 positives", "0 positives", "fewer than 20 images (1)"]
    assert result.exceeds is None


@pytest.mark.parametrize("dtype", [int, float, bool, np.int8, "boolean", "Int64", object])
def test_labels_that_equal_zero_and_one(singles, dtype):
    labels = pd.Series(singles.labels).astype(dtype)
    assert (
        frame.audit(singles.scores, labels, singles.groups, resamples=0).p
        == frame.audit(singles.scores, singles.labels, singles.groups, resamples=0).p
    )


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        (["neg", "pos"], "'neg'"),
        (["0", "1"], "'0'"),
        ([1.0, 2.0], "2"),
        ([-1, 1], "-1"),
    ],
)
def test_other_labels_are_quoted(singles, labels, found):
    coded = [labels[int(y)] for y in singles.labels]
    sentence = told(singles.scores, coded, singles.groups)
    assert found in sentence
    assert "allowed are 0, 1, True and False" in sentence


def test_uncertain_labels_raise_with_counts_by_group(singles):
    labels = singles.labels.astype(float)
    labels[:4] = -1
    labels[-3:] = -1
    sentence = told(singles.scores, labels, singles.groups)
    assert "-1" in sentence
    assert "7 images" in sentence
    assert "A 4, C 3" in sentence


def test_unlabelled_images_are_counted(singles):
    labels = singles.labels.astype(float)
    labels[:50] = np.nan
    result = frame.audit(singles.scores, labels, singles.groups, singles.patients, resamples=0)
    assert (result.n_images, result.n_unlabelled) == (680, 50)
    assert "50 images of the input have no label for the finding and are left out." in result.notes


def test_logits_of_which_one_group_looks_like_probabilities():
    rng = np.random.default_rng(1)
    groups = np.repeat(["a", "b"], 200)
    labels = rng.random(400) < 0.4
    scores = np.where(groups == "a", rng.uniform(-3, 4, 400), rng.uniform(0.2, 0.9, 400)) + 0.05 * labels
    ranks = pd.Series(scores).rank().to_numpy()
    raw, ranked = (frame.audit(s, labels, groups, resamples=0) for s in (scores, ranks))
    assert (raw.observed, raw.overall_pooled, raw.p) == (ranked.observed, ranked.overall_pooled, ranked.p)
    sentence = told(scores, labels, groups, measure="ece")
    assert "lie outside 0 to 1" in sentence
    assert "scale='logit'" in sentence
    assert frame.audit(scores, labels, groups, measure="ece", scale="logit", resamples=100).status == "ok"


@pytest.mark.parametrize(
    ("n_positive", "n_negative", "delong"),
    [
        (34, 16, "the own variance of group 'a' is 0"),
        (1, 40, "the own variance of group 'a' is not defined with one case of a class"),
        (1, 1, "the own variance of group 'a' is not defined with one case of a class"),
    ],
)
def test_separable_and_tiny_groups(n_positive, n_negative, delong):
    n = n_positive + n_negative
    labels = np.tile([True] * n_positive + [False] * n_negative, 2)
    scores = np.tile(np.linspace(1, 0, n), 2)
    for method in ("auto", "delong", "hanley-mcneil"):
        result = frame.audit(
            scores, labels, np.repeat(["a", "b"], n), min_size=1, method=method, resamples=100
        )
        assert result.table["value"].tolist() == [1.0, 1.0]
        assert result.observed == 0.0
        reasons = {"auto": "all groups perfectly ranked", "delong": delong, "hanley-mcneil": ""}
        assert result.reason == reasons[method]
        assert result.status == ("ok" if method == "hanley-mcneil" else "not estimable")
        one = n_positive == 1
        assert set(result.by_group["reason"]) == {
            "1 patient with a positive: no interval"
            if one
            else "every resample gives the same value, so the interval says nothing about its error"
        }
        assert set(result.by_group["status"]) == {"not estimable" if one else "ok"}
        assert result.by_group["hi"].fillna(0).max() <= 1.0
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result.plot()


def test_no_automatic_direction():
    rng = np.random.default_rng(2)
    groups = np.repeat(["a", "b"], 150)
    labels = rng.random(300) < 0.5
    scores = np.where(groups == "a", 1.0, -0.6) * labels + rng.normal(size=300)
    result = frame.audit(scores, labels, groups, resamples=0)
    assert result.table["value"].iloc[1] < 0.5
    assert result.observed > 0.3
    assert any("AUROC of group 'b' is below 0.5" in flag for flag in result.flags)
    assert result.worst_name == "b"


def test_ids_are_what_they_are(singles):
    ids = np.asarray([f"{i:03d}" for i in range(730)], dtype=object)
    ids[1] = "7"
    result = frame.audit(singles.scores, singles.labels, singles.groups, ids, resamples=0)
    assert result.n_patients == 730
    ids[2] = "007 "
    sentence = told(singles.scores, singles.labels, singles.groups, ids)
    assert "blanks" in sentence
    assert "007" not in sentence
    ids[2] = None
    sentence = told(singles.scores, singles.labels, singles.groups, ids)
    assert "the id is missing for 1 of 730 images" in sentence


def test_repeated_ids_with_the_image_as_unit_are_flagged(cohort):
    result = frame.audit(
        cohort.scores, cohort.labels, cohort.groups, cohort.patients, method="hanley-mcneil", resamples=0
    )
    assert any(flag.startswith("check the unit: patients have several images") for flag in result.flags)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda c: {"scores": c.scores[:-1]}, "one value per image"),
        (lambda c: {"scores": np.append(c.scores[:-1], np.inf)}, "1 scores are infinite"),
        (lambda c: {"scores": np.append(c.scores[:-1], np.nan)}, "the score is missing for 1 of 730"),
        (lambda c: {"scores": [str(s) for s in c.scores]}, "scores holds text"),
        (lambda c: {"scores": np.ones((730, 2))}, "2 dimensions"),
        (lambda c: {"scores": 0.5}, "one value per image"),
        (lambda c: {"labels": np.full(730, np.nan)}, "labels are missing for all 730 images"),
        (lambda c: {"groups": "sex"}, "one value per image"),
        (lambda c: {"groups": {}}, "give at least one"),
        (lambda c: {"within": "view"}, "within is 'view'"),
    ],
)
def test_wrong_columns(singles, change, sentence):
    given = {"scores": singles.scores, "labels": singles.labels, "groups": singles.groups} | change(singles)
    assert sentence in told(given.pop("scores"), given.pop("labels"), given.pop("groups"), **given)


def test_fair_clusters_rarely_exceed_with_patients():
    # 200 fair cohorts with three images a patient; seeds of their own.
    exceeding = 0
    for seed in range(200):
        c = make_cohort((90, 60, 40), seed=10_000 + seed, images=3)
        exceeding += frame.audit(c.scores, c.labels, c.groups, c.patients, resamples=0).p < 0.05
    # Fewer than 1 in 67 would be a reference that is much too large.
    assert 0.015 <= exceeding / 200 <= 0.08

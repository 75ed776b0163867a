"""The table of subgroups: counts, the evaluable rule, reasons, and bad inputs."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from frame.errors import InputError
from frame.measures import (
    MEASURES,
    Threshold,
    check_min_size,
    evaluable,
    max_min_difference,
    measure_value,
    reason_not_evaluable,
    scored_rows,
    subgroup_table,
)

COLUMNS = [
    *("group", "n_images", "n_positive", "n_negative", "n_patients"),
    *("value", "status", "reason", "below_chance", "evaluable"),
]


def table(scores, labels, groups, measure="auroc", patients=None, missing="error", **options):
    rows = scored_rows(scores, labels, groups, patients, missing=missing)
    attribute = rows.attributes[-1].name
    return subgroup_table(rows, attribute, next(iter(rows.scores)), measure, **options)


def by_name(found):
    return found.set_index("group")


def test_bad_input_1_a_group_with_one_class_is_not_estimable():
    found = table([0.1, 0.9, 0.4, 0.3, 0.8, 0.7], [0, 1, 0, 1, 1, 1], list("aaaabb"), min_size=1)
    assert list(found.columns) == COLUMNS
    a, b = found.to_dict("records")
    assert (a["value"], a["status"], a["reason"]) == (0.75, "ok", "")
    assert (b["status"], b["reason"], b["evaluable"]) == ("not estimable", "0 negatives", False)
    assert math.isnan(b["value"])
    assert (b["n_images"], b["n_positive"], b["n_negative"], b["n_patients"]) == (2, 2, 0, 2)
    assert math.isnan(max_min_difference(found["value"]))
    assert evaluable(found) == ["a"]


def test_bad_input_4_groups_without_positives_and_a_declared_level_without_rows():
    levels = pd.CategoricalDtype(["one", "two", "three", "four"])
    groups = pd.Series(["one"] * 30 + ["two"] * 30 + ["three"] * 30, dtype=levels)
    labels = np.zeros(90, dtype=int)
    labels[75] = 1
    scores = np.linspace(0, 1, 90)
    found = table(scores, labels, groups, "tpr", threshold=0.5)
    assert list(found["group"]) == ["one", "two", "three", "four"]
    assert list(found["n_images"]) == [30, 30, 30, 0]
    assert list(found["n_positive"]) == [0, 0, 1, 0]
    assert list(found["n_negative"]) == [30, 30, 29, 0]
    assert list(found["reason"]) == ["0 positives", "0 positives", "", "fewer than 20 images (0)"]
    assert evaluable(found) == ["three"]
    assert math.isnan(max_min_difference(found["value"]))


def test_bad_input_8_ranks_of_logits_with_one_group_inside_0_to_1():
    rng = np.random.default_rng(1)
    labels = np.tile([0, 1], 40)
    scores = np.concatenate([rng.uniform(-3, 4, 40), rng.uniform(0.2, 0.9, 40)])
    groups = np.repeat(["a", "b"], 40)
    found = table(scores, labels, groups)
    for name in "ab":
        expected = roc_auc_score(labels[groups == name], scores[groups == name])
        assert by_name(found).loc[name, "value"] == pytest.approx(expected, abs=1e-12)
    pooled = roc_auc_score(labels, scores)
    assert measure_value("auroc", scores, labels) == pytest.approx(pooled, abs=1e-12)
    outside = int(((scores < 0) | (scores > 1)).sum())
    for measure in ("ece", "brier"):
        with pytest.raises(InputError) as caught:
            table(scores, labels, groups, measure)
        assert str(caught.value) == (
            f"score 'score': {outside} of 80 lie outside 0 to 1, and measure '{measure}' reads "
            "probabilities; if they are logits say scale='logit', otherwise map them to 0 to 1 first."
        )
        read = table(1 / (1 + np.exp(-scores)), labels, groups, measure)["value"]
        said = table(scores, labels, groups, measure, scale="logit")["value"]
        np.testing.assert_allclose(said, read, rtol=0, atol=1e-12)
    for measure in set(MEASURES) - {"ece", "brier"}:
        assert (table(scores, labels, groups, measure, threshold=0.5)["status"] == "ok").all()


def test_bad_input_10_separable_and_single_cases():
    scores = np.concatenate(
        [np.linspace(0.6, 0.9, 34), np.linspace(0.1, 0.4, 16), [0.5, *np.linspace(0, 1, 40)]]
    )
    labels = [1] * 34 + [0] * 16 + [1] + [0] * 40
    found = by_name(table(scores, labels, ["separable"] * 50 + ["single"] * 41))
    assert found.loc["separable", "value"] == 1.0
    assert found.loc["single", "value"] == 0.5
    pair = table([0.7, 0.3, 0.2, 0.3], [1, 0, 1, 0], list("aabb"), min_size=1)
    assert list(pair["value"]) == [1.0, 0.0]


def test_bad_input_12_an_auroc_below_one_half_is_reported_and_noted():
    labels = np.array([1] * 10 + [0] * 10)
    harmed = np.where(labels == 1, 0.4, np.where(np.arange(20) < 17, 0.6, 0.2))
    fine = np.where(labels == 1, 0.8, 0.3)
    found = table([*harmed, *fine], [*labels, *labels], ["harmed"] * 20 + ["fine"] * 20)
    assert list(found["group"]) == ["fine", "harmed"]
    assert list(found["value"]) == [1.0, 0.3]
    assert list(found["below_chance"]) == [False, True]
    assert max_min_difference(found["value"]) == 0.7
    chance = table([0.5] * 40, [*labels, *labels], ["a"] * 40)
    assert (list(chance["value"]), list(chance["below_chance"])) == ([0.5], [False])
    assert not table([*harmed, *fine], [*labels, *labels], ["a"] * 40, "tpr", threshold=0.9)[
        "below_chance"
    ].any()


def test_bad_input_26_a_threshold_above_every_score():
    scores, labels = np.linspace(0, 0.8, 60), np.tile([0, 1], 30)
    groups = np.repeat(["a", "b"], 30)
    found = table(scores, labels, groups, "tpr", threshold=0.9)
    assert list(found["value"]) == [0.0, 0.0]
    assert max_min_difference(found["value"]) == 0.0
    without = table(scores, labels, groups, "ppv", threshold=0.9)
    assert list(without["reason"]) == ["no positive decisions"] * 2
    assert without["value"].isna().all()
    assert not without["evaluable"].any()
    assert (
        list(table(scores, labels, groups, "npv", threshold=0.0)["reason"]) == ["no negative decisions"] * 2
    )


def test_bad_input_34_most_rows_without_the_attribute():
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, 100)
    sex = pd.Series(["F", "M"] * 20 + [None] * 60, name="sex")
    scores = rng.random(100)
    with pytest.raises(InputError, match="column 'sex' is blank for 60 of 100 images"):
        table(scores, labels, sex)
    assert list(table(scores, labels, sex, missing="drop")["n_images"]) == [20, 20]
    grouped = table(scores, labels, sex, missing="group")
    assert list(grouped["group"]) == ["F", "M", "(missing)"]
    assert list(grouped["n_images"]) == [20, 20, 60]


def test_the_smallest_size_is_a_number_of_images_with_a_label():
    labels = [0, 1] * 9 + [0, None] + [0, 1] * 10
    found = table(np.linspace(0, 1, 40), labels, ["short"] * 20 + ["long"] * 20)
    assert list(found["n_images"]) == [20, 19]
    assert list(found["reason"]) == ["", "fewer than 20 images (19)"]
    one = subgroup_table(
        scored_rows([0.1, 0.2], [0, 1], pd.Categorical(["a", "a"], ["a", "b"])),
        *("group", "score", "accuracy"),
        threshold=0.5,
        min_size=1,
    )
    assert list(one["reason"]) == ["", "0 images"]


@pytest.mark.parametrize(
    ("measure", "counts", "reason"),
    [
        ("auroc", (12, 3), "fewer than 20 images (12)"),
        ("auroc", (20, 0), "0 positives"),
        ("auroc", (20, 20), "0 negatives"),
        ("auroc", (20, 1), ""),
        ("tpr", (20, 0), "0 positives"),
        ("tpr", (20, 20), ""),
        ("fpr", (20, 20), "0 negatives"),
        ("fpr", (20, 0), ""),
        ("ece", (20, 0), ""),
        ("ppv", (20, 0), ""),
        ("auprc", (20, 20), ""),
    ],
)
def test_the_rule_without_a_table(measure, counts, reason):
    assert reason_not_evaluable(measure, *counts) == reason


def test_patients_are_counted_once_per_group():
    labels = [0, 1, 0, 1, 0, 1]
    scores = [0.1, 0.9, 0.2, 0.8, 0.3, 0.7]
    found = table(scores, labels, list("aaabbb"), patients=list("ppqqrr"), min_size=1)
    assert list(found["n_patients"]) == [2, 2]
    assert list(table(scores, labels, list("aaabbb"), min_size=1)["n_patients"]) == [3, 3]


def test_decisions_need_no_threshold_and_scores_do():
    labels, groups = np.tile([0, 1], 20), np.repeat(["a", "b"], 20)
    decisions = np.array([0, 1, 1, 1] * 10)
    found = table(decisions, labels, groups, "fpr")
    assert list(found["value"]) == [0.5, 0.5]
    with pytest.raises(InputError, match="measure 'tpr' reads decisions; give the threshold"):
        table(decisions * 0.9, labels, groups, "tpr")
    with pytest.raises(InputError, match="reads decisions"):
        table(decisions, labels, groups, "tpr", scale="logit")
    given = table(decisions * 0.9, labels, groups, "tpr", threshold=Threshold(0.95, "given"))
    assert list(given["value"]) == [0.0, 0.0]


@pytest.mark.parametrize("min_size", [0, -1, 2.5, "20", True, None])
def test_min_size_is_a_whole_number(min_size):
    with pytest.raises(InputError, match="it must be a whole number of images, 1 or more"):
        check_min_size(min_size)


def test_min_size_may_be_a_numpy_integer():
    assert check_min_size(np.int32(5)) == 5


def test_unknown_names_are_listed():
    rows = scored_rows({"m1": [0.1, 0.2], "m2": [0.3, 0.4]}, [0, 1], {"sex": ["F", "M"], "age": [1, 2]})
    with pytest.raises(InputError, match="attribute is 'race'; allowed are 'sex', 'age'"):
        subgroup_table(rows, "race", "m1", "auroc")
    with pytest.raises(InputError, match="score is 'm3'; allowed are 'm1', 'm2'"):
        subgroup_table(rows, "sex", "m3", "auroc")


@st.composite
def audits(draw):
    n = draw(st.integers(1, 80))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    return (
        np.round(rng.random(n), draw(st.integers(1, 6))),
        rng.random(n) < draw(st.sampled_from([0.05, 0.4, 0.9])),
        rng.choice(["M", "F", "O"], n, p=[0.5, 0.45, 0.05]),
        rng.choice(["<40", "40-<60", ">=60"], n),
        rng.integers(0, n, n),
    )


@settings(deadline=None, max_examples=40)
@given(audits(), st.sampled_from(list(MEASURES)), st.integers(1, 25))
def test_bad_input_29_an_intersection_equals_the_concatenated_column(drawn, measure, min_size):
    scores, labels, sex, age, patients = drawn
    two = scored_rows(scores, labels, {"sex": sex, "age": age}, patients, intersections=True)
    joined = [f"{a} & {b}" for a, b in zip(sex, age, strict=True)]
    one = scored_rows(scores, labels, joined, patients)
    assert [a.name for a in two.attributes] == ["sex", "age", "sex x age"]
    options = {"threshold": 0.4, "min_size": min_size}
    pd.testing.assert_frame_equal(
        subgroup_table(two, "sex x age", "score", measure, **options),
        subgroup_table(one, "group", "score", measure, **options),
    )


@settings(deadline=None, max_examples=40)
@given(audits(), st.sampled_from(list(MEASURES)), st.integers(1, 25))
def test_the_table_equals_a_loop_over_the_groups(drawn, measure, min_size):
    scores, labels, sex, _, patients = drawn
    found = by_name(table(scores, labels, sex, measure, patients, threshold=0.4, min_size=min_size))
    assert list(found.index) == sorted(set(sex))
    for name in set(sex):
        chosen = sex == name
        row = found.loc[name]
        assert row["n_images"] == chosen.sum()
        assert row["n_positive"] == labels[chosen].sum()
        assert row["n_negative"] == (~labels[chosen]).sum()
        assert row["n_patients"] == len(set(patients[chosen].tolist()))
        alone = measure_value(measure, scores[chosen], labels[chosen], threshold=0.4)
        assert row["evaluable"] == (chosen.sum() >= min_size and not math.isnan(alone))
        assert row["status"] == ("ok" if row["evaluable"] else "not estimable")
        assert bool(row["reason"]) != row["evaluable"]
        assert row["value"] == pytest.approx(alone if row["evaluable"] else math.nan, nan_ok=True, abs=1e-12)


def test_many_levels_stay_in_order():
    n = 2**15 + 5
    labels = np.arange(n) % 3 == 0
    found = table(np.ones(n), labels, np.arange(n)[::-1], "accuracy", threshold=0.5, min_size=1)
    assert list(found["group"]) == [str(i) for i in range(n)]
    assert list(found["value"]) == labels[::-1].tolist()


def test_an_attribute_whose_rows_are_all_left_out_keeps_its_levels():
    rows = scored_rows(
        [0.1, 0.2, 0.3], [0, 1, None], {"sex": [None, None, "F"], "age": ["y", "z", "y"]}, missing="drop"
    )
    found = subgroup_table(rows, "sex", "score", "auroc")
    assert list(found["group"]) == ["F"]
    assert list(found["reason"]) == ["fewer than 20 images (0)"]
    assert rows.attributes[0].n_missing == 2

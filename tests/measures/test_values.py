"""Values of the measures against scikit-learn, against a written loop, and at the edges."""

import doctest
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

import frame.measures.differences
import frame.measures.values
from frame.errors import InputError
from frame.measures import (
    ECE_BINS,
    MEASURES,
    calibration_bins,
    check_measure,
    decision_counts,
    measure_value,
    probabilities,
)

QUICK = settings(deadline=None, max_examples=30)
#: Sums of up to 60 rounded terms.
EQUAL = {"rel": 0, "abs": 1e-12}


@st.composite
def rows(draw, ties=None, both=False):
    """Scores in [0, 1] and labels; ties: scores on a grid of fifteenths, bin edges included."""
    n = draw(st.integers(2, 60))
    if draw(st.booleans()) if ties is None else ties:
        scores = np.array(draw(st.lists(st.integers(0, 15), min_size=n, max_size=n))) / 15
    else:
        scores = np.array(draw(st.lists(st.floats(0, 1), min_size=n, max_size=n)))
    labels = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    if both:
        labels[0], labels[1] = True, False
    return scores, labels


def reference(name, scores, labels, threshold):
    decided = scores >= threshold
    tn, fp, fn, tp = metrics.confusion_matrix(labels, decided, labels=[False, True]).ravel()
    return {
        "tpr": lambda: metrics.recall_score(labels, decided, zero_division=np.nan),
        "ppv": lambda: metrics.precision_score(labels, decided, zero_division=np.nan),
        "accuracy": lambda: metrics.accuracy_score(labels, decided),
        "fpr": lambda: fp / (fp + tn) if fp + tn else math.nan,
        "fnr": lambda: fn / (fn + tp) if fn + tp else math.nan,
        "specificity": lambda: tn / (fp + tn) if fp + tn else math.nan,
        "npv": lambda: tn / (tn + fn) if tn + fn else math.nan,
        "brier": lambda: metrics.brier_score_loss(labels, scores, pos_label=True, labels=[False, True]),
    }[name]()


@QUICK
@given(rows(both=True))
def test_auroc_equals_scikit_learn(drawn):
    scores, labels = drawn
    assert measure_value("auroc", scores, labels) == pytest.approx(
        metrics.roc_auc_score(labels, scores), **EQUAL
    )


@QUICK
@given(rows(both=True))
def test_average_precision_equals_scikit_learn(drawn):
    scores, labels = drawn
    expected = metrics.average_precision_score(labels, scores)
    assert measure_value("auprc", scores, labels) == pytest.approx(expected, **EQUAL)


@pytest.mark.parametrize("name", ["tpr", "ppv", "accuracy", "fpr", "fnr", "specificity", "npv", "brier"])
@QUICK
@given(rows(), st.one_of(st.sampled_from([0.0, 0.2, 1.0, 1.5]), st.floats(0, 1)))
def test_measure_equals_scikit_learn(name, drawn, threshold):
    scores, labels = drawn
    expected = reference(name, scores, labels, threshold)
    value = measure_value(name, scores, labels, threshold=threshold)
    assert value == pytest.approx(float(expected), nan_ok=True, **EQUAL)


def test_a_larger_sample_equals_scikit_learn():
    rng = np.random.default_rng(3)
    labels = rng.random(20_000) < 0.1
    scores = np.round(rng.beta(1 + labels, 3), 3)
    assert measure_value("auroc", scores, labels) == pytest.approx(
        metrics.roc_auc_score(labels, scores), **EQUAL
    )
    assert measure_value("auprc", scores, labels) == pytest.approx(
        metrics.average_precision_score(labels, scores), **EQUAL
    )
    for name in ("tpr", "ppv", "accuracy", "fpr", "fnr", "specificity", "npv", "brier"):
        expected = reference(name, scores, labels, 0.4)
        assert measure_value(name, scores, labels, threshold=0.4) == pytest.approx(float(expected), **EQUAL)
    assert measure_value("ece", scores, labels) == pytest.approx(calibration_loop(scores, labels), **EQUAL)


def calibration_loop(scores, labels):
    """Bins [i/15, (i + 1)/15), the last closed; share of the rows times |mean label - mean score|."""
    total = 0.0
    for i in range(15):
        low, high = i / 15, (i + 1) / 15
        inside = [
            (s, y) for s, y in zip(scores, labels, strict=True) if low <= s < high or (i == 14 and s == 1.0)
        ]
        if inside:
            mean_score = math.fsum(s for s, _ in inside) / len(inside)
            mean_label = sum(bool(y) for _, y in inside) / len(inside)
            total += len(inside) / len(scores) * abs(mean_label - mean_score)
    return total


@QUICK
@given(rows())
def test_calibration_error_equals_a_written_loop(drawn):
    scores, labels = drawn
    assert measure_value("ece", scores, labels) == pytest.approx(calibration_loop(scores, labels), **EQUAL)


@pytest.mark.parametrize("i", range(16))
def test_a_score_on_a_bin_edge_opens_its_bin(i):
    edge = i / 15
    around = np.array([np.nextafter(edge, -1), edge, np.nextafter(edge, 2)])
    expected = [max(i - 1, 0), min(i, 14), min(i, 14)]
    assert calibration_bins(np.clip(around, 0, 1)).tolist() == expected


def test_calibration_error_by_hand():
    # 0.2 and 0.25 share bin 3, 1.0 lies alone in bin 14.
    value = measure_value("ece", [0.2, 0.25, 1.0, 1.0], [1, 0, 1, 0])
    assert value == pytest.approx(2 / 4 * abs(0.5 - 0.225) + 2 / 4 * 0.5, abs=1e-15)
    assert ECE_BINS == 15


def test_bad_input_10_a_separable_sample_has_auroc_exactly_1():
    scores = np.concatenate([0.9 + np.arange(34) / 1000, 0.1 + np.arange(16) / 1000])
    labels = np.arange(50) < 34
    assert measure_value("auroc", scores, labels) == 1.0
    assert measure_value("auroc", -scores, labels) == 0.0
    assert measure_value("auprc", scores, labels) == 1.0


def test_bad_input_10_one_case_of_a_class():
    assert measure_value("auroc", [0.5, *np.linspace(0, 1, 40)], [1] + [0] * 40) == 0.5
    assert measure_value("auroc", [0.7, 0.3], [1, 0]) == 1.0
    assert measure_value("auroc", [0.3, 0.3], [1, 0]) == 0.5
    assert measure_value("auroc", [0.3, 0.7], [1, 0]) == 0.0


@QUICK
@given(rows(both=True))
def test_no_measure_leaves_0_to_1(drawn):
    scores, labels = drawn
    for name in MEASURES:
        value = measure_value(name, scores, labels, threshold=0.5)
        assert math.isnan(value) or 0.0 <= value <= 1.0


@QUICK
@given(rows(both=True))
def test_auroc_of_reversed_scores_is_the_complement(drawn):
    scores, labels = drawn
    value, mirrored = measure_value("auroc", scores, labels), measure_value("auroc", -scores, labels)
    assert value + mirrored == pytest.approx(1.0, abs=1e-15)


@QUICK
@given(rows(both=True), st.integers(0, 10_000))
def test_the_order_of_rows_does_not_matter(drawn, seed):
    scores, labels = drawn
    order = np.random.default_rng(seed).permutation(len(labels))
    for name in MEASURES:
        one = measure_value(name, scores, labels, threshold=0.4)
        other = measure_value(name, scores[order], labels[order], threshold=0.4)
        assert one == pytest.approx(other, nan_ok=True, **EQUAL)


def test_bad_input_12_an_auroc_below_one_half_stays_below():
    labels = [1] * 10 + [0] * 10
    scores = [*([0.2] * 13), *([0.8] * 7)]
    assert measure_value("auroc", scores, labels) == 0.15


def test_a_decision_is_positive_at_the_threshold_itself():
    assert decision_counts(np.array([0.4, 0.5, 0.6]), np.array([True, True, False]), 0.5) == (1, 1, 1, 0)
    assert measure_value("tpr", [0.5], [1], threshold=0.5) == 1.0
    assert measure_value("fpr", [0.5], [0], threshold=np.nextafter(0.5, 1)) == 0.0


def test_bad_input_26_a_threshold_above_every_score():
    scores, labels = [0.1, 0.2, 0.3], [1, 0, 1]
    assert measure_value("tpr", scores, labels, threshold=0.9) == 0.0
    assert math.isnan(measure_value("ppv", scores, labels, threshold=0.9))
    assert math.isnan(measure_value("npv", scores, labels, threshold=0.0))


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("auroc", [1, 1]),
        ("auroc", [0, 0]),
        ("auprc", [0, 0]),
        ("tpr", [0, 0]),
        ("fnr", [0, 0]),
        ("fpr", [1, 1]),
        ("specificity", [1, 1]),
        *((name, []) for name in MEASURES),
    ],
)
def test_a_measure_without_its_class_is_undefined(name, labels):
    assert math.isnan(measure_value(name, np.linspace(0.1, 0.9, len(labels)), labels, threshold=0.5))


def test_bad_input_8_ranks_read_the_raw_score():
    logits = np.array([-3.0, 4.0, -1.0, 2.0, 0.2, 0.9, 0.3, 0.4])
    labels = np.array([0, 1, 0, 1, 0, 1, 1, 0], dtype=bool)
    assert measure_value("auroc", logits, labels) == metrics.roc_auc_score(labels, logits)
    assert measure_value("auroc", logits, labels, scale="logit") == measure_value("auroc", logits, labels)
    # Beyond 40 the logistic function is 1 in floating point: the ranks must not be read from it.
    assert measure_value("auroc", [50.0, 60.0], [0, 1], scale="logit") == 1.0


def test_probabilities_of_logits_and_of_scores():
    assert probabilities(np.array([0.0, 800.0, -800.0]), "logit").tolist() == [0.5, 1.0, 0.0]
    assert probabilities(np.array([-0.5, 0.3, 1.5])).tolist() == [0.0, 0.3, 1.0]
    logits = np.array([-2.0, 0.0, 3.0, 1.0])
    inside = 1 / (1 + np.exp(-logits))
    for name in ("ece", "brier"):
        assert measure_value(name, logits, [0, 1, 1, 0], scale="logit") == pytest.approx(
            measure_value(name, inside, [0, 1, 1, 0]), **EQUAL
        )


@pytest.mark.parametrize("labels", [[0, 1], [0.0, 1.0], [False, True], np.array([0, 1], dtype=np.int8)])
def test_labels_of_any_dtype_that_equals_0_and_1(labels):
    assert measure_value("auroc", [0.2, 0.8], labels) == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("auc", [0.1], [1]), "measure 'auc' is called 'auroc' here; allowed are auroc, tpr, fpr, fnr,"),
        (("f1", [0.1], [1]), "measure is 'f1'; allowed are auroc, tpr, fpr, fnr,"),
        ((None, [0.1], [1]), "measure is None; allowed are auroc"),
        (("auroc", [0.1, 0.2], [1]), "scores have shape (2,) and labels have shape (1,)"),
        (("auroc", [[0.1, 0.2]], [[1, 0]]), "scores have shape (1, 2) and labels have shape (1, 2)"),
        (("auroc", [0.1, np.nan], [1, 0]), "scores hold 1 NaN"),
        (("auroc", ["a", "b"], [1, 0]), "scores hold something that is no number"),
        (("auroc", [0.1, 0.2], [1, -1]), "labels hold values other than 0 and 1"),
        (("tpr", [0.1, 0.2], [1, 0]), "measure 'tpr' reads decisions; give the threshold"),
    ],
)
def test_bad_arguments_are_one_sentence(arguments, message):
    with pytest.raises(InputError) as caught:
        measure_value(*arguments)
    assert str(caught.value).startswith(message)


def test_an_unknown_scale_and_a_threshold_of_nan():
    with pytest.raises(InputError, match="scale is 'odds'; allowed are 'probability', 'logit'"):
        measure_value("ece", [0.1], [1], scale="odds")
    with pytest.raises(InputError, match="threshold is NaN"):
        measure_value("tpr", [0.1], [1], threshold=math.nan)


def test_the_registry_is_complete():
    assert list(MEASURES) == [
        *("auroc", "tpr", "fpr", "fnr", "specificity", "accuracy", "ppv", "npv", "ece", "brier", "auprc")
    ]
    lower = {name for name, measure in MEASURES.items() if measure.better == "lower"}
    assert lower == {"fpr", "fnr", "ece", "brier"}
    assert {m.needs for m in MEASURES.values()} == {"positives", "negatives", "both", "any"}
    assert all(check_measure(name).name == name for name in MEASURES)
    assert [n for n, m in MEASURES.items() if m.reads == "probabilities"] == ["ece", "brier"]


def test_what_a_measure_needs_is_what_makes_it_defined():
    scores = np.array([0.2, 0.6, 0.7, 0.4])
    for name, measure in MEASURES.items():
        only_positives = measure_value(name, scores, [1, 1, 1, 1], threshold=0.5)
        only_negatives = measure_value(name, scores, [0, 0, 0, 0], threshold=0.5)
        assert math.isnan(only_positives) == (measure.needs in ("negatives", "both"))
        assert math.isnan(only_negatives) == (measure.needs in ("positives", "both"))


@pytest.mark.parametrize("module", [frame.measures.values, frame.measures.differences])
def test_the_examples_in_the_docstrings(module):
    assert doctest.testmod(module).failed == 0
    assert doctest.testmod(module).attempted > 0

"""Thresholds from validation scores, from a number, and from decisions."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frame.errors import InputError
from frame.measures import (
    Threshold,
    decision_flags,
    measure_value,
    resolve_threshold,
    sensitivity_threshold,
    youden_threshold,
)

QUICK = settings(deadline=None, max_examples=60)
VALIDATION = ([0.1, 0.3, 0.5, 0.7, 0.9, 0.2], [1, 1, 1, 1, 1, 0])


@st.composite
def validation_rows(draw):
    n = draw(st.integers(2, 40))
    scores = draw(
        st.lists(st.one_of(st.floats(-5, 5), st.sampled_from([0.0, 0.5, 1.0])), min_size=n, max_size=n)
    )
    labels = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    labels[0], labels[1] = True, False
    return np.array(scores), np.array(labels)


@QUICK
@given(validation_rows())
def test_the_default_is_numpys_20th_percentile_of_the_positives(drawn):
    scores, labels = drawn
    assert sensitivity_threshold(scores, labels) == np.percentile(scores[labels], 20)


def test_the_20th_percentile_by_hand():
    # Positives 1..6: place 0.2 * 5 = 1, the second exactly. Positives 1..5: 0.2 * 4 = 0.8, between two.
    assert sensitivity_threshold([1, 2, 3, 4, 5, 6, 9], [1, 1, 1, 1, 1, 1, 0]) == 2.0
    assert sensitivity_threshold([1, 2, 3, 4, 5, 0], [1, 1, 1, 1, 1, 0]) == pytest.approx(1.8)
    assert sensitivity_threshold([3.0, 1.0], [1, 0], sensitivity=1.0) == 3.0


def test_a_percentile_that_is_a_score_keeps_that_score_positive():
    for k in range(1, 200):
        scores = np.random.default_rng(k).random(5 * k + 1)
        threshold = sensitivity_threshold(scores, np.ones(5 * k + 1))
        assert int(np.count_nonzero(scores >= threshold)) == 4 * k + 1


@QUICK
@given(validation_rows())
def test_youden_is_the_lowest_threshold_with_the_largest_difference(drawn):
    scores, labels = drawn
    n_positive, n_negative = int(labels.sum()), int((~labels).sum())

    def index(threshold):
        decided = scores >= threshold
        return int((decided & labels).sum()) * n_negative - int((decided & ~labels).sum()) * n_positive

    best = max(index(t) for t in scores)
    assert youden_threshold(scores, labels) == min(t for t in scores if index(t) == best)


def test_youden_tie_goes_to_the_higher_sensitivity():
    # At 0.8: TPR 1/2, FPR 0. At 0.4: TPR 1, FPR 1/2. Both 1/2.
    scores, labels = [0.8, 0.6, 0.4, 0.2], [1, 0, 1, 0]
    assert youden_threshold(scores, labels) == 0.4


def test_images_without_a_label_take_no_part():
    scores = pd.Series([0.1, 0.2, 0.9, 0.8])
    labels = pd.Series([1, 0, None, 1], dtype="Int64")
    assert sensitivity_threshold(scores, labels) == pytest.approx(0.24)
    assert youden_threshold(scores, labels) == 0.8


@pytest.mark.parametrize("threshold", [0.3, 1, np.float32(0.5), np.int64(2), -4.0])
def test_a_number_is_taken_as_it_is(threshold):
    found = resolve_threshold(threshold, None, needed=True, binary=False)
    assert found == Threshold(float(threshold), "given")


def test_a_number_wins_over_validation_and_over_decisions():
    assert resolve_threshold(0.3, VALIDATION, needed=True, binary=True) == Threshold(0.3, "given")


def test_rules_and_their_sources():
    assert resolve_threshold(None, VALIDATION, needed=True, binary=False) == Threshold(
        sensitivity_threshold(*VALIDATION), "sensitivity_0.80 on validation"
    )
    assert resolve_threshold("sensitivity_0.80", VALIDATION, needed=True, binary=False) == Threshold(
        sensitivity_threshold(*VALIDATION), "sensitivity_0.80 on validation"
    )
    assert resolve_threshold("sensitivity_0.95", VALIDATION, needed=True, binary=False) == Threshold(
        sensitivity_threshold(*VALIDATION, sensitivity=0.95), "sensitivity_0.95 on validation"
    )
    assert resolve_threshold("youden", VALIDATION, needed=True, binary=False) == Threshold(
        youden_threshold(*VALIDATION), "youden on validation"
    )


def test_decisions_are_the_scores():
    found = resolve_threshold(None, None, needed=True, binary=True)
    assert found == Threshold(0.5, "predictions")
    scores, labels = np.array([0.0, 1.0, 1.0, 0.0]), [0, 1, 0, 1]
    assert measure_value("tpr", scores, labels, threshold=found.value) == 0.5
    assert resolve_threshold(None, VALIDATION, needed=True, binary=True).source == "predictions"


def test_a_resolved_threshold_can_be_resolved_again():
    once = resolve_threshold(0.25, None, needed=True, binary=False)
    assert resolve_threshold(once, None, needed=True, binary=False).value == 0.25


def test_without_need_there_is_no_threshold_but_the_arguments_are_checked():
    found = resolve_threshold(None, None, needed=False, binary=False)
    assert math.isnan(found.value)
    assert found.source == "not used"
    with pytest.raises(InputError, match="threshold is 'yuden'"):
        resolve_threshold("yuden", None, needed=False, binary=False)


NEEDS = (
    "needs validation scores, and none were given; give threshold= a number, or validation=(scores, labels)"
)


@pytest.mark.parametrize(
    ("threshold", "validation", "binary", "message"),
    [
        (None, None, False, f"a rate on scores that are not all 0 or 1 {NEEDS}"),
        ("youden", None, False, f"threshold 'youden' {NEEDS}"),
        ("youden", VALIDATION, True, "threshold is 'youden' and the scores are decisions, all 0 or 1"),
        ("sensitivity_1.2", VALIDATION, False, "threshold is 'sensitivity_1.2'; after 'sensitivity_' comes"),
        ("sensitivity_", VALIDATION, False, "threshold is 'sensitivity_'; after 'sensitivity_' comes"),
        ("0.5", VALIDATION, False, "threshold is '0.5'; allowed are a number, 'sensitivity_0.80'"),
        (math.nan, None, False, "threshold is NaN; allowed are a number"),
        (math.inf, None, False, "threshold is infinite; allowed are a number"),
        (True, None, False, "threshold is a bool; allowed are a number"),
        (np.array([0.5]), None, False, "threshold is a ndarray; allowed are a number"),
        ([0.5, 0.6], None, False, "threshold is a list; allowed are a number"),
        (None, [0.1, 0.2, 0.3], False, "validation is a list; give two columns, validation=(scores, labels)"),
        (None, pd.DataFrame({"s": [0.1]}), False, "validation is a DataFrame; give two columns"),
        (None, ([0.1, 0.2], [1]), False, "validation scores has 2 rows and validation labels has 1"),
        (None, ([0.1, 0.2], [0, 0]), False, "validation labels hold no positive"),
        ("youden", ([0.1, 0.2], [1, 1]), False, "validation labels hold no negative"),
        (None, ([0.1, math.nan], [1, 0]), False, "validation scores: 1 are missing or infinite"),
        (None, ([0.1, math.inf], [1, 0]), False, "validation scores: 1 are missing or infinite"),
        (None, (["a", "b"], [1, 0]), False, "validation scores holds text"),
        (None, ([0.1, 0.2], [1, -1]), False, "labels hold -1 (1 images)"),
        (None, ([], []), False, "validation scores is empty"),
    ],
)
def test_bad_thresholds_are_one_sentence(threshold, validation, binary, message):
    with pytest.raises(InputError) as caught:
        resolve_threshold(threshold, validation, needed=True, binary=binary)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("sensitivity", [0.0, -0.1, 1.01, math.nan, "0.8", None, True])
def test_a_sensitivity_outside_its_range(sensitivity):
    with pytest.raises(InputError, match="it must be a number above 0 and at most 1"):
        sensitivity_threshold([0.1, 0.2], [1, 0], sensitivity=sensitivity)


def test_bad_input_26_flags_a_threshold_that_decides_alike_for_all():
    scores = np.array([0.1, 0.5, 0.9])
    assert decision_flags(scores, 0.95) == ("no positive predictions",)
    assert decision_flags(scores, 0.1) == ("no negative predictions",)
    assert decision_flags(scores, 0.5) == ()

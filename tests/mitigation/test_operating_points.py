"""Threshold shift: what moves, what may not, and groups that cannot be shifted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from score_units import drawn_unit, scored_unit, within_group_aurocs

from frame.mitigation.contract import DEGENERATE, FITTED, NOT_FITTED, WEIGHTINGS
from frame.mitigation.operating_points import in_order_of, shifted_thresholds


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_each_group_reaches_the_sensitivity_at_one_threshold(weighting):
    unit = drawn_unit(1, weighting=weighting)
    outcome = shifted_thresholds(unit)
    assert outcome.status == FITTED
    rates = {"before": [], "after": []}
    for code in range(3):
        chosen = (unit.validation.groups == code) & (unit.validation.labels == 1)
        rates["after"].append((outcome.validation.ranks[chosen] >= 0.5).mean())
        rates["before"].append((unit.unmitigated[0].probabilities[chosen] >= 0.5).mean())
        n_positive = chosen.sum()
        # Linear interpolation: at most one positive more or fewer than the share.
        assert abs(rates["after"][-1] - 0.8) <= 1 / n_positive + 1e-12
    assert np.ptp(rates["after"]) < 0.02 < np.ptp(rates["before"])


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_the_formula(weighting):
    unit = drawn_unit(2, weighting=weighting, unknown=0.1)
    outcome = shifted_thresholds(unit)
    for rows, before, after in zip(
        (unit.validation, unit.test), unit.unmitigated, (outcome.validation, outcome.test), strict=True
    ):
        for code in range(3):
            positive = (unit.validation.groups == code) & (unit.validation.labels == 1)
            t = np.percentile(unit.unmitigated[0].probabilities[positive], 20)
            chosen = rows.groups == code
            expected = before.probabilities[chosen] - t + 0.5
            np.testing.assert_allclose(after.ranks[chosen], expected, rtol=0, atol=1e-14)
            np.testing.assert_allclose(
                after.probabilities[chosen], np.clip(expected, 0, 1), rtol=0, atol=1e-14
            )
        unknown = ~rows.known
        assert unknown.any()
        np.testing.assert_array_equal(after.ranks[unknown], before.probabilities[unknown])


def test_ranks_are_not_clipped_and_probabilities_are():
    logits = np.tile(np.linspace(-9, 9, 20), 2)
    labels = np.concatenate([np.arange(20) < 10, np.arange(20) >= 10]).astype(int)
    logits[20:] += 0.01
    unit = scored_unit((logits, labels, np.repeat([0, 1], 20)), (logits, labels, np.repeat([0, 1], 20)))
    outcome = shifted_thresholds(unit)
    assert outcome.test.ranks.min() < 0
    assert outcome.test.ranks.max() > 1
    assert outcome.test.probabilities.min() >= 0
    assert outcome.test.probabilities.max() <= 1
    assert len(np.unique(outcome.test.ranks)) == 40


def test_nothing_changes_where_every_group_has_its_threshold_at_one_half():
    logits = np.tile([-2.0, 0.0, 3.0, 1.0, -1.0, 0.0], 2)
    labels = np.tile([0, 1, 1, 1, 0, 1], 2)
    groups = np.repeat([0, 1], 6)
    unit = scored_unit((logits, labels, groups), (logits, labels, groups))
    outcome = shifted_thresholds(unit)  # the 20th percentile of 0, 0, 1, 3 is 0, so t = 0.5
    np.testing.assert_allclose(outcome.test.ranks, unit.unmitigated[1].probabilities, rtol=0, atol=1e-15)
    assert all(row["shift"] == 0 for row in outcome.groups)


@given(st.integers(0, 10**6), st.floats(0.1, 30.0))
@settings(max_examples=60)
def test_within_group_aurocs_are_unchanged(seed, spread):
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(2):
        labels, groups = rng.integers(0, 2, 80), rng.integers(0, 3, 80)
        parts.append((rng.normal(scale=spread, size=80) + labels, labels, groups))
    unit = scored_unit(*parts, levels=("a", "b", "c"))
    outcome = shifted_thresholds(unit)
    for rows, before, after in zip(
        (unit.validation, unit.test), unit.unmitigated, (outcome.validation, outcome.test), strict=True
    ):
        assert within_group_aurocs(after, rows, 3) == within_group_aurocs(before, rows, 3)


def test_probabilities_1e_12_apart_stay_apart():
    p = 0.3 + 1e-12 * np.arange(60)
    logits = np.log(p / (1 - p))
    assert (np.diff(logits) > 0).all()
    rng = np.random.default_rng(0)
    labels, groups = rng.integers(0, 2, 60), rng.integers(0, 2, 60)
    unit = scored_unit((logits, labels, groups), (logits, labels, groups))
    outcome = shifted_thresholds(unit)
    assert within_group_aurocs(outcome.test, unit.test, 2) == within_group_aurocs(
        unit.unmitigated[1], unit.test, 2
    )
    for code in (0, 1):
        assert (np.diff(outcome.test.ranks[groups == code]) > 0).all()


def test_logits_that_saturate_keep_their_order():
    logits = np.array([40.0, 41.0, 45.0, 60.0, -800.0, -760.0, 0.0, 50.0])
    labels = np.array([0, 1, 0, 1, 0, 1, 1, 0])
    unit = scored_unit((logits, labels, np.zeros(8)), (logits, labels, np.zeros(8)))
    assert len(np.unique(unit.unmitigated[1].probabilities)) < 8
    outcome = shifted_thresholds(unit)
    np.testing.assert_array_equal(np.argsort(outcome.test.ranks), np.argsort(logits))
    expected = unit.unmitigated[1].probabilities + outcome.groups[0]["shift"]
    np.testing.assert_allclose(outcome.test.ranks, expected, rtol=0, atol=1e-14)


def test_a_group_without_validation_positives_keeps_its_scores():
    logits = np.array([0.5, -1.0, 2.0, 1.0, 0.3, -0.2])
    labels = np.array([1, 0, 1, 0, 0, 0])
    groups = np.array([0, 0, 0, 0, 1, 1])
    unit = scored_unit((logits, labels, groups), (logits, labels, groups), levels=("a", "b", "c"))
    outcome = shifted_thresholds(unit)
    assert outcome.status == FITTED
    assert [(row["group"], row["n_images"], row["n_positive"]) for row in outcome.groups] == [
        ("a", 4, 2),
        ("b", 2, 0),
        ("c", 0, 0),
    ]
    assert outcome.groups[0]["action"].startswith("shifted by ")
    assert outcome.groups[1]["action"] == "kept its scores"
    assert outcome.groups[1]["reason"] == "no positive validation image"
    assert outcome.groups[2]["reason"] == "no validation image"
    np.testing.assert_array_equal(
        outcome.test.ranks[groups == 1], unit.unmitigated[1].probabilities[groups == 1]
    )
    assert len(outcome.flags) == 2


def test_a_group_of_three_positives_uses_them():
    """Bad input 6: ThresholdOptimizer refuses group b, which has one class in the fitting split."""
    rng = np.random.default_rng(0)
    logits = np.append(rng.normal(size=40), [0.2, 0.4, 1.4])
    labels = np.append(rng.integers(0, 2, 40), [1, 1, 1])
    groups = np.append(np.zeros(40), [1, 1, 1])
    unit = scored_unit((logits, labels, groups), (logits, labels, groups))
    outcome = shifted_thresholds(unit)
    t = np.percentile(unit.unmitigated[0].probabilities[40:], 20)
    np.testing.assert_allclose(
        outcome.test.ranks[40:], unit.unmitigated[1].probabilities[40:] - t + 0.5, rtol=0, atol=1e-14
    )
    assert outcome.groups[1]["n_images"] == outcome.groups[1]["n_positive"] == 3
    assert outcome.groups[1]["reason"] == ""


def test_no_positive_at_all_is_degenerate_and_no_known_group_is_not_fitted():
    logits, groups = np.array([0.5, -1.0, 2.0]), np.array([0, 1, 1])
    none = scored_unit((logits, [0, 0, 0], groups), (logits, [0, 1, 0], groups))
    outcome = shifted_thresholds(none)
    assert outcome.status == DEGENERATE
    assert outcome.reason == "no group has a positive validation image, so every group kept its scores"
    np.testing.assert_array_equal(outcome.test.ranks, none.unmitigated[1].probabilities)
    unknown = scored_unit((logits, [0, 1, 0], [-1, -1, -1]), (logits, [0, 1, 0], groups), levels=("a", "b"))
    outcome = shifted_thresholds(unknown)
    assert (outcome.status, outcome.test) == (NOT_FITTED, None)
    assert outcome.reason == "no validation image has a known group"


def test_the_head_is_left_alone():
    unit = drawn_unit(3)
    before = [scores.ranks.copy() for scores in unit.unmitigated]
    probabilities = [scores.probabilities.copy() for scores in unit.unmitigated]
    shifted_thresholds(unit)
    for scores, ranks, chances in zip(unit.unmitigated, before, probabilities, strict=True):
        np.testing.assert_array_equal(scores.ranks, ranks)
        np.testing.assert_array_equal(scores.probabilities, chances)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30), st.integers(0, 3))
def test_in_order_of(values, digits):
    keys = np.array(values)
    rounded = np.round(keys, digits)
    found = in_order_of(rounded, keys)
    order = np.argsort(keys, kind="stable")
    risen = np.diff(keys[order]) > 0
    assert (np.diff(found[order])[risen] > 0).all()
    assert (np.diff(found[order])[~risen] == 0).all()
    # n steps of one ulp at most, of the largest value or of the smallest subnormal about zero
    np.testing.assert_allclose(found, rounded, rtol=1e-13, atol=1e-300)

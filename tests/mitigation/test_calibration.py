"""Platt scaling by group, its monotone variant, and rows no map can be fitted to."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from score_units import drawn_unit, scored_unit, within_group_aurocs

from frame.measures.values import measure_value
from frame.mitigation.calibration import fit_platt_map, monotone_platt_by_group, platt_by_group
from frame.mitigation.contract import DEGENERATE, FITTED, NOT_FITTED, WEIGHTINGS

METHODS = (platt_by_group, monotone_platt_by_group)
BOTH = pytest.mark.parametrize("method", METHODS, ids=["platt", "platt_monotone"])
TEN_MIXED = ([-2.0, -1.0, -0.5, 0.0, 0.3, 0.6, 1.0, 1.2, 2.0, 3.0], [0, 0, 1, 0, 0, 1, 0, 1, 1, 1])


def sklearn_map(x, y):
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        # The argument that switches the penalty off was renamed between versions.
        warnings.simplefilter("ignore", FutureWarning)
        model = LogisticRegression(penalty=None, tol=1e-12, max_iter=10_000).fit(np.asarray(x)[:, None], y)
    return float(model.coef_[0, 0]), float(model.intercept_[0])


@pytest.mark.parametrize("seed", range(6))
def test_the_map_is_that_of_unpenalised_regression(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(12, 400))
    y = rng.integers(0, 2, n)
    x = rng.normal(size=n) * 2 + y * rng.uniform(-1, 2) + 3
    found = fit_platt_map(x, y)
    assert found.fitted
    slope, intercept = sklearn_map(x, y)
    np.testing.assert_allclose([found.slope, found.intercept], [slope, intercept], rtol=2e-5, atol=2e-5)
    # The condition of the optimum itself is met far more tightly.
    residual = 1 / (1 + np.exp(-(found.slope * x + found.intercept))) - y
    assert abs(residual.mean()) < 1e-11
    assert abs((residual * (x - x.mean()) / x.std()).mean()) < 1e-11


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_scale_and_shift_of_the_logits_do_not_matter(scale, shift):
    x, y = np.array(TEN_MIXED[0]), np.array(TEN_MIXED[1])
    plain = fit_platt_map(x, y)
    moved = fit_platt_map(x * scale + shift * scale, y)
    np.testing.assert_allclose(moved.slope * scale, plain.slope, rtol=1e-8)
    np.testing.assert_allclose(moved.apply(x * scale + shift * scale), plain.apply(x), rtol=0, atol=1e-8)


def test_nearly_separated_rows_have_a_large_finite_slope():
    x = np.concatenate([np.linspace(-3, 0, 50), np.linspace(0.001, 3, 50), [0.0005, -0.0005]])
    y = np.concatenate([np.zeros(50), np.ones(50), [0, 1]])
    found = fit_platt_map(x, y)
    assert found.fitted
    assert 50 < found.slope < 1e6
    residual = 1 / (1 + np.exp(-(found.slope * x + found.intercept))) - y
    assert abs(residual.mean()) < 1e-9


def test_ties_between_the_classes_are_fitted_by_hand():
    # Two distinct logits, shares 1/4 and 3/4: the map sends them to -log 3 and log 3.
    x, y = np.repeat([0.0, 1.0], 8), np.array([0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1, 0, 1, 1, 1, 0])
    found = fit_platt_map(x, y)
    np.testing.assert_allclose(found.apply(np.array([0.0, 1.0])), [-np.log(3), np.log(3)], rtol=1e-10)


@pytest.mark.parametrize(
    ("logits", "labels", "reason"),
    [
        ([], [], "no validation image"),
        ([0.1, 0.2, 0.3], [1, 1, 1], "3 validation images, none negative"),
        ([0.1], [0], "1 validation image, none positive"),
        ([0.7] * 12, [0, 1] * 6, "constant scores on 12 validation images"),
        (range(12), [0] * 6 + [1] * 6, "scores separate the classes on 12 validation images"),
        (range(12), [1] * 6 + [0] * 6, "scores separate the classes on 12 validation images"),
        ([0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10], [0] * 6 + [1] * 6, "scores separate the classes on 12"),
        (TEN_MIXED[0][:9], TEN_MIXED[1][:9], "9 validation images, fewer than 10"),
    ],
    ids=["none", "one class", "one row", "constant", "separated", "reversed", "touching", "nine rows"],
)
def test_rows_that_keep_the_identity(logits, labels, reason):
    found = fit_platt_map(np.array(list(logits), dtype=float), np.array(labels))
    assert found.reason.startswith(reason)
    assert (found.slope, found.intercept) == (1.0, 0.0)
    x = np.array([0.25, -7.0])
    np.testing.assert_array_equal(found.apply(x), x)


def test_ten_rows_with_one_overlap_are_fitted():
    assert fit_platt_map(np.array(TEN_MIXED[0]), np.array(TEN_MIXED[1])).fitted
    x = np.array([0, 1, 2, 3, 4, 5, 4.5, 6, 7, 8, 9, 10.0])
    assert fit_platt_map(x, np.array([0] * 6 + [1] * 6)).fitted


@BOTH
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_calibration_error_falls_where_groups_are_miscalibrated(method, weighting):
    unit = drawn_unit(4, weighting=weighting, n=(1500, 4000, 4000))
    outcome = method(unit)
    assert outcome.status == FITTED
    assert outcome.flags == ()
    errors = [
        [
            measure_value(
                "ece",
                scores.probabilities[unit.test.groups == code],
                unit.test.labels[unit.test.groups == code],
            )
            for code in range(3)
        ]
        for scores in (unit.unmitigated[1], outcome.test)
    ]
    assert max(errors[1]) < 0.05 < 0.1 < max(errors[0])
    np.testing.assert_allclose(
        outcome.test.probabilities, 1 / (1 + np.exp(-outcome.test.ranks)), rtol=0, atol=1e-15
    )


@BOTH
def test_nothing_changes_where_the_logits_are_calibrated(method):
    # Three distinct logits at which the share of positives is exactly the sigmoid: slope 1, intercept 0.
    logits, labels = [], []
    for n_positive, n in ((2, 10), (5, 10), (8, 10)):
        logits += [np.log(n_positive / (n - n_positive))] * n
        labels += [1] * n_positive + [0] * (n - n_positive)
    logits, labels = np.tile(logits, 2), np.tile(labels, 2)
    part = (logits, labels, np.repeat([0, 1], 30))
    outcome = method(scored_unit(part, part))
    np.testing.assert_allclose(outcome.test.ranks, logits, rtol=0, atol=1e-10)
    for row in outcome.groups:
        np.testing.assert_allclose([row["slope"], row["intercept"]], [1, 0], rtol=0, atol=1e-10)


@given(st.integers(0, 10**6), st.floats(0.01, 50.0))
@settings(max_examples=60)
def test_monotone_maps_leave_within_group_aurocs_unchanged(seed, spread):
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(2):
        labels, groups = rng.integers(0, 2, 120), rng.integers(0, 3, 120)
        # Group 2 is anti-ordered.
        logits = rng.normal(size=120) + labels * np.where(groups == 2, -1.0, 1.0)
        parts.append((logits * spread, labels, groups))
    unit = scored_unit(*parts, levels=("a", "b", "c"))
    outcome = monotone_platt_by_group(unit)
    for rows, before, after in zip(
        (unit.validation, unit.test), unit.unmitigated, (outcome.validation, outcome.test), strict=True
    ):
        assert within_group_aurocs(after, rows, 3) == within_group_aurocs(before, rows, 3)


def test_logits_1e_12_apart_stay_apart_under_a_small_slope():
    rng = np.random.default_rng(0)
    x, y = np.linspace(-3e4, 3e4, 300), np.zeros(300, dtype=int)
    y[[20, 90, 160, 200, 210, 250, 270, 290]] = 1
    close = 5.0 + 1e-12 * np.arange(40)
    assert (np.diff(close) > 0).all()
    labels = rng.integers(0, 2, 40)
    unit = scored_unit((x, y, np.zeros(300)), (close, labels, np.zeros(40)))
    outcome = monotone_platt_by_group(unit)
    slope = outcome.groups[0]["slope"]
    assert 0 < slope < 1e-3
    plain = slope * close + outcome.groups[0]["intercept"]
    assert (np.diff(plain) <= 0).any()  # the map alone ties them
    assert (np.diff(outcome.test.ranks) > 0).all()
    np.testing.assert_allclose(outcome.test.ranks, plain, rtol=1e-13)


def row_14_unit():
    """Bad input 14: 6 separable, 6 constant, 6 anti-ordered and 3 one-class rows, beside 10 mixed."""
    logits = [-3, -2, -1, 1, 2, 3] + [0.4] * 6 + [2, 1.5, -1, 1, -1.5, -2] + [0.1, 0.2, 0.9]
    labels = [0, 0, 0, 1, 1, 1, 0, 1, 0, 1, 0, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1]
    groups = [0] * 6 + [1] * 6 + [2] * 6 + [3] * 3
    part = (logits + TEN_MIXED[0], labels + TEN_MIXED[1], groups + [4] * 10)
    return scored_unit(part, part)


def test_degenerate_groups_under_platt():
    unit = row_14_unit()
    outcome = platt_by_group(unit, fewest_rows=6)
    separated, constant, reverse, one_class, mixed = outcome.groups
    assert separated["reason"] == "scores separate the classes on 6 validation images"
    assert constant["reason"] == "constant scores on 6 validation images"
    assert one_class["reason"] == "3 validation images, none negative"
    for row in (separated, constant, one_class):
        assert row["action"] == "kept the identity"
        chosen = unit.test.groups == "abcde".index(row["group"])
        np.testing.assert_array_equal(outcome.test.ranks[chosen], unit.unmitigated[1].ranks[chosen])
    assert reverse["reason"] == mixed["reason"] == ""
    assert reverse["slope"] < 0 < mixed["slope"]
    assert any(flag.startswith("c: slope -") and flag.endswith("reversed") for flag in outcome.flags)
    before, after = (
        within_group_aurocs(scores, unit.test, 5) for scores in (unit.unmitigated[1], outcome.test)
    )
    assert after[2] == 1 - before[2]
    assert [row["n_images"] for row in outcome.groups] == [6, 6, 6, 3, 10]
    assert [row["n_positive"] for row in outcome.groups] == [3, 3, 3, 3, 5]


@pytest.mark.parametrize("fewest_rows", [6, 10])
def test_degenerate_groups_under_the_monotone_variant(fewest_rows):
    unit = row_14_unit()
    outcome = monotone_platt_by_group(unit, fewest_rows=fewest_rows)
    assert within_group_aurocs(outcome.test, unit.test, 5) == within_group_aurocs(
        unit.unmitigated[1], unit.test, 5
    )
    reverse = outcome.groups[2]
    assert reverse["action"] == "kept the identity"
    expected = "is not positive" if fewest_rows == 6 else "6 validation images, fewer than 10"
    assert reverse["reason"].endswith(expected)
    assert outcome.groups[4]["reason"] == ""


def test_a_slope_of_zero_is_read_as_zero():
    x, y = np.tile([-1.0, 0.0, 0.1, 1.1, -0.7], 4), np.repeat([0, 1, 1, 0], 5)
    part = (x, y, np.zeros(20))
    kept = platt_by_group(scored_unit(part, part))
    assert kept.groups[0]["slope"] == 0
    assert kept.flags[0].endswith("lost")
    monotone = monotone_platt_by_group(scored_unit(part, part))
    np.testing.assert_array_equal(monotone.test.ranks, x)
    assert monotone.status == DEGENERATE


@BOTH
def test_a_group_of_one_class_keeps_the_identity(method):
    """Bad input 6: a group of 3 rows, all positive, in the split that is calibrated on."""
    rng = np.random.default_rng(0)
    labels = np.append(rng.integers(0, 2, 60), [1, 1, 1])
    logits = np.append(rng.normal(size=60) + labels[:60], [0.2, 0.4, 1.4])
    part = (logits, labels, np.append(np.zeros(60), [1, 1, 1]))
    outcome = method(scored_unit(part, part))
    assert outcome.status == FITTED
    assert outcome.groups[1] | {"slope": 1.0} == {
        "group": "b",
        "n_images": 3,
        "n_positive": 3,
        "action": "kept the identity",
        "reason": "3 validation images, none negative",
        "slope": 1.0,
        "intercept": 0.0,
    }
    np.testing.assert_array_equal(outcome.test.ranks[60:], logits[60:])
    assert outcome.flags == ("b: kept the identity, 3 validation images, none negative",)


@BOTH
def test_no_group_that_can_be_fitted(method):
    part = ([0.1, 0.2, 0.3], [0, 1, 0], [0, 0, 1])
    outcome = method(scored_unit(part, part, levels=("a", "b", "c")))
    assert outcome.status == DEGENERATE
    assert outcome.reason == "no group could be calibrated, so every group kept the identity"
    assert outcome.groups[2]["reason"] == "no validation image"
    np.testing.assert_array_equal(outcome.test.ranks, part[0])
    unknown = method(scored_unit(([0.1, 0.2], [0, 1], [-1, -1]), part, levels=("a", "b")))
    assert (unknown.status, unknown.validation) == (NOT_FITTED, None)


@BOTH
def test_images_without_a_group_keep_their_logit(method):
    unit = drawn_unit(5, unknown=0.2)
    outcome = method(unit)
    unknown = ~unit.test.known
    assert unknown.any()
    np.testing.assert_array_equal(outcome.test.ranks[unknown], unit.unmitigated[1].ranks[unknown])
    assert not np.array_equal(outcome.test.ranks[~unknown], unit.unmitigated[1].ranks[~unknown])

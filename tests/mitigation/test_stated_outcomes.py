"""What every method on scores or features answers where groups are missing or have one class."""

import numpy as np
import pytest
from score_units import drawn_rows, drawn_unit, unit_of

from frame.heads.disease_heads import fit_head
from frame.mitigation.calibration import monotone_platt_by_group, platt_by_group
from frame.mitigation.contract import DEGENERATE, FITTED, NOT_FITTED, WEIGHTINGS, Rows
from frame.mitigation.erasure import least_squares_erasure, nullspace_projection
from frame.mitigation.operating_points import shifted_thresholds
from frame.mitigation.transport import gaussian_transport

SCORE = {
    "threshold_shift": shifted_thresholds,
    "platt": platt_by_group,
    "platt_monotone": monotone_platt_by_group,
}
FEATURE = {
    "leace": least_squares_erasure,
    "inlp": nullspace_projection,
    "optimal_transport": gaussian_transport,
}
METHODS = SCORE | FEATURE
EVERY = pytest.mark.parametrize("name", METHODS)


def made(change, *, weighting="paper", parts=("train", "validation", "test"), unknown=0.0):
    rng = np.random.default_rng(0)
    found = []
    for part, n in (("train", 600), ("validation", 300), ("test", 300)):
        rows = drawn_rows(rng, n, unknown=unknown)
        found.append(change(rows) if part in parts else rows)
    return unit_of(*found, weighting=weighting)


def with_groups(rows, groups):
    return Rows(rows.features, rows.labels, np.asarray(groups, dtype=np.int64))


def as_it_is(rows):
    return rows


def no_third_group(rows):
    return with_groups(rows, np.where(rows.groups == 2, 0, rows.groups))


def third_group_all_positive(rows):
    return Rows(rows.features, np.where(rows.groups == 2, 1, rows.labels).astype(np.int8), rows.groups)


def third_group_all_negative(rows):
    return Rows(rows.features, np.where(rows.groups == 2, 0, rows.labels).astype(np.int8), rows.groups)


def one_group(rows):
    return with_groups(rows, np.ones(len(rows)))


def one_known_group(rows):
    return with_groups(rows, np.where(rows.groups == 1, 1, -1))


def none_known(rows):
    return with_groups(rows, np.full(len(rows), -1))


def complete(outcome, unit):
    """Finite scores for every image of validation and test."""
    for scores, rows in ((outcome.validation, unit.validation), (outcome.test, unit.test)):
        assert scores.ranks.shape == scores.probabilities.shape == (len(rows),)
        assert np.isfinite(scores.ranks).all()
        assert scores.probabilities.min() >= 0
        assert scores.probabilities.max() <= 1


@EVERY
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_an_ordinary_unit(name, weighting):
    unit = made(as_it_is, weighting=weighting, unknown=0.1)
    outcome = METHODS[name](unit)
    assert (outcome.status, outcome.reason) == (FITTED, "")
    complete(outcome, unit)
    assert [row["group"] for row in outcome.groups] == ["a", "b", "c"]
    rows = unit.validation if name in SCORE else unit.train
    for code, row in enumerate(outcome.groups):
        assert row["n_images"] == (rows.groups == code).sum()
        assert row["n_positive"] == ((rows.groups == code) & (rows.labels == 1)).sum()
        assert row["reason"] == ""


@EVERY
def test_a_group_without_rows(name):
    unit = made(no_third_group, parts=("train", "validation"))
    outcome = METHODS[name](unit)
    assert outcome.status == FITTED
    complete(outcome, unit)
    row = outcome.groups[2]
    assert (row["n_images"], row["n_positive"]) == (0, 0)
    assert row["reason"] == ("no validation image" if name in SCORE else "no training image")
    assert any("c" in flag and row["reason"] in flag for flag in outcome.flags)


@EVERY
@pytest.mark.parametrize(
    "change", [third_group_all_positive, third_group_all_negative], ids=["positive", "negative"]
)
def test_a_group_with_one_class(name, change):
    unit = made(change)
    outcome = METHODS[name](unit)
    assert outcome.status == FITTED
    complete(outcome, unit)
    row = outcome.groups[2]
    if name == "threshold_shift" and change is third_group_all_positive:
        assert row["action"].startswith("shifted by")
        assert row["reason"] == ""
    elif name == "threshold_shift":
        assert row["reason"] == "no positive validation image"
    elif name in SCORE:
        lacking = "negative" if change is third_group_all_positive else "positive"
        assert row["reason"] == f"{row['n_images']} validation images, none {lacking}"
    else:
        lacking = "negative" if change is third_group_all_positive else "positive"
        assert row["reason"] == f"no {lacking} training image"


@EVERY
@pytest.mark.parametrize("change", [one_group, one_known_group], ids=["one group", "one known group"])
def test_one_group(name, change):
    unit = made(change)
    outcome = METHODS[name](unit)
    complete(outcome, unit)
    if name in SCORE:
        assert outcome.status == FITTED
        assert [bool(row["reason"]) for row in outcome.groups] == [True, False, True]
    else:
        assert outcome.status == DEGENERATE
        assert outcome.reason.startswith("only b has training images, so there is nothing to ")


@EVERY
def test_no_known_group(name):
    outcome = METHODS[name](made(none_known))
    assert outcome.status == NOT_FITTED
    assert outcome.validation is None
    assert outcome.test is None
    rows = "validation" if name in SCORE else "training"
    assert outcome.reason == f"no {rows} image has a known group"


@pytest.mark.parametrize("name", FEATURE)
def test_one_class_in_training(name):
    rng = np.random.default_rng(1)
    unit = made(as_it_is)
    rows = Rows(unit.train.features, np.zeros(len(unit.train), dtype=np.int8), unit.train.groups)
    outcome = METHODS[name](unit_of(rows, unit.validation, drawn_rows(rng, 50)))
    assert outcome.status == NOT_FITTED
    assert outcome.reason == "none of the 600 training images with a known group is positive"


@pytest.mark.parametrize("name", FEATURE)
def test_a_network_is_refitted_where_the_head_is_one(name):
    unit = drawn_unit(2, n=(600, 300, 300), n_columns=40)
    network = fit_head(unit.train.features, unit.train.labels, kind="mlp")
    outcome = METHODS[name](unit_of(unit.train, unit.validation, unit.test, head=network))
    complete(outcome, unit)
    linear = METHODS[name](unit)
    # Not a linear function of the features: the best linear one leaves a rest, that of a linear head none.
    design = np.column_stack([unit.test.features, np.ones(len(unit.test)), np.eye(3)[unit.test.groups]])
    if name == "optimal_transport":
        design = np.column_stack(
            [design, *(unit.test.features * (unit.test.groups == code)[:, None] for code in range(3))]
        )
    left = [
        np.std(found.test.ranks - design @ np.linalg.lstsq(design, found.test.ranks, rcond=None)[0])
        for found in (outcome, linear)
    ]
    assert left[1] < 1e-4 < 0.05 < left[0]


@EVERY
def test_the_same_unit_gives_the_same_scores(name):
    first, second = (METHODS[name](made(as_it_is)) for _ in range(2))
    np.testing.assert_array_equal(first.test.ranks, second.test.ranks)


@EVERY
def test_features_are_read_only_and_a_test_label_is_never_read(name):
    unit = made(as_it_is)
    for rows in (unit.train, unit.validation, unit.test):
        rows.features.setflags(write=False)
    turned = Rows(unit.test.features, (1 - unit.test.labels).astype(np.int8), unit.test.groups)
    other = unit_of(unit.train, unit.validation, turned, head=unit.head)
    np.testing.assert_array_equal(METHODS[name](unit).test.ranks, METHODS[name](other).test.ranks)

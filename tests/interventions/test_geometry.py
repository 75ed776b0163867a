"""Geometry of a representation: known angles, decodability, erasure cost, and what cannot be estimated."""

import math

import numpy as np
import pytest

from frame.errors import InputError
from frame.heads.linear_maps import LinearMap, standardising_map
from frame.interventions.decodability import macro_auroc, network_logits, nonlinear_probe
from frame.interventions.geometry import QUANTITIES, geometry_of
from frame.interventions.subspaces import mean_cosine, orthonormal_basis, principal_cosines
from frame.mitigation.contract import Rows

LEVELS = ("a", "b", "c")


def drawn(seed, n=1500, *, shift=1.0, n_columns=8, n_groups=3):
    rng = np.random.default_rng(seed)
    codes, labels = rng.integers(0, n_groups, n), rng.integers(0, 2, n)
    x = rng.normal(size=(n, n_columns))
    x[:, 0] += 1.5 * labels
    x[:, 1] += shift * codes
    return Rows(x.astype(np.float32), labels.astype(np.int8), codes.astype(np.int64))


def with_groups(rows, groups):
    return Rows(rows.features, rows.labels, np.asarray(groups, dtype=np.int64))


def angle_rows(angle, n=150_000, seed=0):
    """The disease moves along e0, the group along cos(angle) e0 + sin(angle) e1; y and g are independent."""
    rng = np.random.default_rng(seed)
    codes, labels = rng.integers(0, 2, n), rng.integers(0, 2, n)
    x = rng.normal(size=(n, 5))
    x[:, 0] += 0.8 * labels
    x[:, :2] += 0.8 * codes[:, None] * [np.cos(angle), np.sin(angle)]
    return Rows(x, labels.astype(np.int8), codes.astype(np.int64))


def expected_cosine(angle, shift=0.8):
    """Of the population directions Sigma_within^-1 delta, in coordinates standardised by the total variance.

    The covariance about a group's means holds the spread of the disease, and the other way round.
    """
    disease, group = np.zeros(5), np.zeros(5)
    disease[0], group[:2] = shift, [shift * np.cos(angle), shift * np.sin(angle)]
    noise = np.eye(5)
    read_group = np.linalg.solve(noise + np.outer(disease, disease) / 4, group)
    read_disease = np.linalg.solve(noise + np.outer(group, group) / 4, disease)
    deviation = np.sqrt(np.diag(noise + np.outer(disease, disease) / 4 + np.outer(group, group) / 4))
    one, other = read_group * deviation, read_disease * deviation
    return abs(one @ other) / np.linalg.norm(one) / np.linalg.norm(other)


@pytest.mark.parametrize("degrees", [0, 30, 60, 90])
def test_overlap_is_the_cosine_of_a_known_angle(degrees):
    angle = math.radians(degrees)
    train = angle_rows(angle)
    found = geometry_of(train, train, ("a", "b"), nonlinear=False).overlap
    np.testing.assert_allclose(found.value, expected_cosine(angle), rtol=0, atol=0.02)
    assert found.details["group_rank"] == found.details["disease_rank"] == 1


def test_overlap_of_a_plane_of_groups_with_a_disease_inside_and_outside_it():
    """Three groups on an equilateral triangle span e1, e2; the disease lies in that plane, or across it."""
    rng = np.random.default_rng(1)
    codes, labels = rng.integers(0, 3, 40_000), rng.integers(0, 2, 40_000)
    corners = np.array([[1.0, 0.0], [-0.5, 0.75**0.5], [-0.5, -(0.75**0.5)]])
    noise = rng.normal(size=(40_000, 5))
    noise[:, 1:3] += corners[codes]
    for column, expected in ((2, 1.0), (0, 0.0)):
        x = noise.copy()
        x[:, column] += 0.5 * labels
        rows = Rows(x, labels.astype(np.int8), codes.astype(np.int64))
        found = geometry_of(rows, rows, LEVELS, nonlinear=False).overlap
        np.testing.assert_allclose(found.value, expected, rtol=0, atol=0.04)
        assert found.details["group_rank"] == 2
        assert len(found.details["cosines"]) == 1


def test_the_order_of_levels_changes_nothing():
    train, test = drawn(2), drawn(3)
    first = geometry_of(train, test, LEVELS, nonlinear=False)
    turn = np.array([2, 0, 1])
    second = geometry_of(
        with_groups(train, turn[train.groups]),
        with_groups(test, turn[test.groups]),
        ("b", "c", "a"),
        nonlinear=False,
    )
    for name in ("linear_decodability", "overlap", "erasure_cost"):
        np.testing.assert_allclose(getattr(second, name).value, getattr(first, name).value, rtol=0, atol=1e-5)
    one, other = (found.linear_decodability.details["by_group"] for found in (first, second))
    assert sorted(one) == sorted(other) == ["a", "b", "c"]
    for level in LEVELS:
        np.testing.assert_allclose(one[level], other[level], rtol=0, atol=1e-5)


def test_a_group_split_in_two_at_random_adds_no_rank():
    """Two groups with the very same features: the direction between them is not fitted, and not counted."""
    half = drawn(4, n=700)
    rows = Rows(
        np.concatenate([half.features, half.features[half.groups == 2]]),
        np.concatenate([half.labels, half.labels[half.groups == 2]]),
        np.concatenate([half.groups, np.full((half.groups == 2).sum(), 3)]),
    )
    found = geometry_of(rows, rows, (*LEVELS, "d"), nonlinear=False).overlap
    assert found.details["group_rank"] == 2


def test_linear_decodability_is_scikit_learns():
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.preprocessing import StandardScaler

    train, test = drawn(5), drawn(6)
    scaler = StandardScaler().fit(train.features.astype(np.float64))
    model = LogisticRegression(C=1.0, tol=1e-10, max_iter=5000)
    model.fit(scaler.transform(train.features), train.groups)
    chances = model.predict_proba(scaler.transform(test.features))
    expected = roc_auc_score(test.groups, chances, multi_class="ovr", average="macro")
    found = geometry_of(train, test, LEVELS, nonlinear=False).linear_decodability
    np.testing.assert_allclose(found.value, expected, rtol=0, atol=1e-4)


def test_the_network_reads_what_a_linear_probe_cannot():
    def rows(seed, n):
        rng = np.random.default_rng(seed)
        codes, x = rng.integers(0, 2, n), rng.normal(size=(n, 4)).astype(np.float32)
        x[:, 1] = np.abs(x[:, 1]) * np.sign(x[:, 0]) * (2 * codes - 1)  # the sign of a product
        return Rows(x, rng.integers(0, 2, n).astype(np.int8), codes)

    found = geometry_of(rows(0, 1500), rows(1, 800), ("a", "b"))
    assert abs(found.linear_decodability.value - 0.5) < 0.06
    assert found.nonlinear_decodability.value > 0.95
    again = geometry_of(rows(0, 1500), rows(1, 800), ("a", "b"))
    assert again.nonlinear_decodability.value == found.nonlinear_decodability.value
    assert found.nonlinear_decodability.details["iterations"] > 1


@pytest.mark.parametrize("n_groups", [2, 3])
def test_network_logits_are_the_networks(n_groups):
    from scipy.special import expit, softmax
    from sklearn.neural_network import MLPClassifier

    rows = drawn(7, n=300, n_groups=n_groups)
    standard = standardising_map(rows.features)
    z = standard.apply(rows.features)
    network = MLPClassifier((8,), early_stopping=True, random_state=0, max_iter=300).fit(z, rows.groups)
    logits = network_logits(network, rows.features, standard)
    chances = network.predict_proba(z)
    if n_groups == 2:
        np.testing.assert_allclose(expit(logits), chances[:, 1], rtol=0, atol=1e-12)
    else:
        np.testing.assert_allclose(softmax(logits, axis=1), chances, rtol=0, atol=1e-12)


def test_erasure_costs_nothing_where_the_group_lies_elsewhere_and_all_where_it_is_the_disease():
    # Two groups: with three on a line the second direction would be noise, and cost what it happens to hit.
    train, test = drawn(8, n=3000, n_groups=2), drawn(9, n=3000, n_groups=2)
    apart = geometry_of(train, test, ("a", "b"), nonlinear=False).erasure_cost
    assert abs(apart.value) < 0.005
    assert apart.details["auroc"] > 0.8
    assert apart.details["gap"] < 1e-6

    def rows(seed):
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, 2, 3000)
        codes = np.where(rng.random(3000) < 0.95, labels, 1 - labels)
        x = rng.normal(size=(3000, 4))
        x[:, 0] += 1.5 * labels
        return Rows(x, labels.astype(np.int8), codes)

    same = geometry_of(rows(0), rows(1), ("a", "b"), nonlinear=False).erasure_cost
    assert same.value > 0.25
    np.testing.assert_allclose(same.value, same.details["auroc"] - same.details["auroc_after"], rtol=1e-12)


def test_nothing_to_read():
    half, test = drawn(10, n=1000), drawn(11, n=4000, shift=0.0)
    alike = Rows(np.tile(half.features, (3, 1)), np.tile(half.labels, 3), np.repeat([0, 1, 2], 1000))
    found = geometry_of(alike, test, LEVELS, nonlinear=False)
    assert abs(found.linear_decodability.value - 0.5) < 0.03
    assert abs(found.erasure_cost.value) < 1e-6
    assert found.overlap.status == "not estimable"
    assert found.overlap.reason == "no direction of the features tells the groups apart"


def test_counts_and_rows_left_out():
    train, test = drawn(12, n=400), drawn(13, n=300)
    train = with_groups(train, np.where(np.arange(400) < 50, -1, train.groups))
    test = with_groups(test, np.where(np.arange(300) < 20, -1, test.groups))
    found = geometry_of(train, test, LEVELS, nonlinear=False, cap=200)
    assert (found.n_train, found.n_train_left_out, found.n_test, found.n_test_left_out) == (200, 200, 280, 20)
    assert [row["group"] for row in found.groups] == list(LEVELS)
    assert sum(row["n_train"] for row in found.groups) == 200
    assert sum(row["n_test_positive"] for row in found.groups) == test.labels[20:].sum()
    frame = found.to_frame()
    assert frame["quantity"].tolist() == list(QUANTITIES)
    assert frame["status"].tolist() == ["ok", "not run", "ok", "ok"]
    assert frame.loc[1, "reason"] == "the nonlinear probe was not asked for"
    assert frame.loc[1, "value"] != frame.loc[1, "value"]


def test_groups_missing_in_one_split_are_named():
    train, test = drawn(14), drawn(15)
    without = with_groups(test, np.where(test.groups == 2, 0, test.groups))
    found = geometry_of(train, without, LEVELS, nonlinear=False).linear_decodability
    assert found.status == "ok"
    assert found.flags == ("c has no test images",)
    assert sorted(found.details["by_group"]) == ["a", "b"]
    few = with_groups(train, np.where(train.groups == 2, 0, train.groups))
    found = geometry_of(few, test, LEVELS)
    expected = "c has no training images and its test images were left out"
    assert found.linear_decodability.flags == (expected,)
    assert expected in found.nonlinear_decodability.flags
    assert found.groups[2]["n_train"] == 0 < found.groups[2]["n_test"]


def test_what_cannot_be_estimated_says_why():
    train, test = drawn(16, n=300), drawn(17, n=200)
    one = geometry_of(with_groups(train, np.ones(300)), test, LEVELS)
    none = geometry_of(with_groups(train, -np.ones(300)), test, LEVELS)
    for found, reason in ((one, "only b has training images"), (none, "no group has training images")):
        for name in QUANTITIES:
            quantity = getattr(found, name)
            assert (quantity.status, quantity.reason) == ("not estimable", reason)
            assert math.isnan(quantity.value)
    found = geometry_of(train, with_groups(test, np.zeros(200)), LEVELS, nonlinear=False)
    assert found.linear_decodability.reason == "of the groups the probe knows, only a has test images"
    assert found.overlap.status == "ok"
    found = geometry_of(train, with_groups(test, -np.ones(200)), LEVELS, nonlinear=False)
    assert found.linear_decodability.reason == "of the groups the probe knows, none has test images"
    negative = Rows(train.features, np.zeros(300, dtype=np.int8), train.groups)
    found = geometry_of(negative, test, LEVELS, nonlinear=False)
    assert found.linear_decodability.status == "ok"
    for quantity in (found.overlap, found.erasure_cost):
        assert quantity.status == "not estimable"
        assert quantity.reason.startswith("there is no disease head: ")
    healthy = Rows(test.features, np.zeros(200, dtype=np.int8), test.groups)
    found = geometry_of(train, healthy, LEVELS, nonlinear=False)
    assert found.erasure_cost.reason == "of 200 test images with a known group none is positive"
    assert found.overlap.status == "ok"


def test_too_few_images_for_the_network():
    rows = drawn(18, n=40)
    codes = np.concatenate([np.zeros(20), np.ones(19), [2]]).astype(int)
    standard = standardising_map(rows.features)
    found = nonlinear_probe(rows.features, codes, rows.features, codes, LEVELS, standard)
    assert found.flags[0] == "c has one training image and was left out"
    short = nonlinear_probe(rows.features[:15], codes[10:25], rows.features, codes, LEVELS[:2], standard)
    assert short.status == "not estimable"
    assert short.reason == "15 training images are too few to set a tenth aside for 2 groups"
    alone = nonlinear_probe(
        rows.features[:3], np.array([0, 0, 1]), rows.features, codes, LEVELS[:2], standard
    )
    assert alone.reason == "fewer than two groups have two training images"


def test_wrong_input_is_refused():
    train, test = drawn(19, n=100), drawn(20, n=100, n_columns=9)
    with pytest.raises(InputError, match="8 columns and test features have 9"):
        geometry_of(train, test, LEVELS)
    with pytest.raises(InputError, match="hold group 2, and there are 2 levels"):
        geometry_of(train, train, LEVELS[:2])


def test_macro_auroc_by_hand():
    decisions = np.array([[2.0, 0, 0], [1.0, 0, 0], [0, 3.0, 0], [0, 0, 1.0], [0, 0.5, 0.4]])
    found = macro_auroc(decisions, np.array([0, 0, 1, 2, 2]), LEVELS)
    assert found.details["by_group"] == {"a": 1.0, "b": 1.0, "c": 1.0}
    assert found.value == 1.0
    # Logits so large that probabilities round to 1 stay in order.
    large = np.array([[800.0, 0], [700.0, 0], [750.0, 0]])
    assert macro_auroc(large, np.array([0, 1, 0]), ("a", "b")).value == 1.0


def test_principal_cosines_of_planes():
    angle = 0.4
    one = np.array([[1.0, 0], [0, 1.0], [0, 0], [0, 0]])
    other = np.array([[1.0, 0], [0, np.cos(angle)], [0, np.sin(angle)], [0, 0]])
    np.testing.assert_allclose(principal_cosines(one, other), [1.0, np.cos(angle)], rtol=0, atol=1e-12)
    # Neither scale, nor mixing, nor a dependent direction of a subspace changes them.
    mixed = other @ np.array([[3.0, 1.0, 4.0], [-2.0, 5.0, 3.0]])
    assert orthonormal_basis(mixed).shape == (4, 2)
    np.testing.assert_allclose(principal_cosines(5 * one, mixed), [1.0, np.cos(angle)], rtol=0, atol=1e-10)
    np.testing.assert_allclose(mean_cosine(one, other[:, 1:]), np.cos(angle), rtol=0, atol=1e-12)
    assert math.isnan(mean_cosine(one, np.zeros((4, 2))))
    with pytest.raises(InputError, match="4 and 3 coordinates"):
        principal_cosines(one, np.eye(3))
    with pytest.raises(InputError, match="not finite"):
        orthonormal_basis(np.full((3, 1), np.nan))


def test_features_far_from_zero_and_of_any_width():
    train, test = drawn(21), drawn(22)
    near = geometry_of(train, test, LEVELS, nonlinear=False)
    for dtype, mean, atol in ((np.float64, 1e5, 1e-4), (np.float32, 1000.0, 1e-3), (np.float16, 0.0, 1e-3)):
        moved = (
            Rows((rows.features.astype(np.float64) + mean).astype(dtype), rows.labels, rows.groups)
            for rows in (train, test)
        )
        far = geometry_of(*moved, LEVELS, nonlinear=False)
        for name in ("linear_decodability", "overlap", "erasure_cost"):
            np.testing.assert_allclose(
                getattr(far, name).value, getattr(near, name).value, rtol=0, atol=10 * atol
            )


def test_the_map_is_not_changed_by_the_network():
    rows = drawn(23, n=200)
    standard = standardising_map(rows.features)
    copy = LinearMap(standard.centre.copy(), standard.scale.copy())
    nonlinear_probe(rows.features, rows.groups, rows.features, rows.groups, LEVELS, standard)
    np.testing.assert_array_equal(standard.centre, copy.centre)
    np.testing.assert_array_equal(standard.scale, copy.scale)

"""Linear erasure: the mathematics of both erasers, rare groups, and the heads refitted behind them."""

import sys
import warnings

import numpy as np
import pytest
from score_units import LEVELS, auroc, drawn_rows, drawn_unit, unit_of

from frame.errors import InputError
from frame.heads.disease_heads import fit_head
from frame.heads.linear_maps import standardising_map
from frame.heads.logistic import fit_logistic
from frame.mitigation import least_squares
from frame.mitigation.affine_erasers import largest_gap
from frame.mitigation.contract import FITTED, NOT_FITTED, WEIGHTINGS, Rows, scores_of_logits
from frame.mitigation.erasure import erase, least_squares_erasure, nullspace_projection
from frame.mitigation.least_squares import LARGEST_GAP, fit_eraser
from frame.mitigation.nullspace import directions_of, fit_projector

#: Bad input 16: shares of the second group.
SHARES = (0.5, 0.01, 0.001, 0.0002)


def gap_by_hand(features, codes):
    """Largest difference of group means over the pooled within-group SD, and over the SD of all rows."""
    x = np.asarray(features, dtype=np.float64)
    codes = np.asarray(codes)
    present = np.unique(codes[codes >= 0])
    x, codes = x[codes >= 0], codes[codes >= 0]
    means = np.stack([x[codes == code].mean(axis=0) for code in present])
    within = np.sqrt(
        sum(((x[codes == c] - m) ** 2).sum(axis=0) for c, m in zip(present, means, strict=True)) / len(x)
    )
    return (np.ptp(means, axis=0) / within).max(), (np.ptp(means, axis=0) / x.std(axis=0)).max()


def rare_group(share, n=50_000, n_columns=6, shift=1.0, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.zeros(n, dtype=np.int64)
    codes[rng.permutation(n)[: max(1, round(share * n))]] = 1
    x = rng.normal(size=(n, n_columns)) @ rng.normal(size=(n_columns, n_columns))
    return x + shift * x.std(axis=0) * codes[:, None], codes


@pytest.mark.parametrize("shift", [1.0, 0.3, 0.02])
@pytest.mark.parametrize("share", SHARES)
def test_rare_groups_are_erased(share, shift):
    x, codes = rare_group(share, shift=shift)
    erased = erase(x, codes)
    before, after = gap_by_hand(x, codes), gap_by_hand(erased.features, codes)
    assert max(after) < LARGEST_GAP
    np.testing.assert_allclose(erased.gap_before, before[0], rtol=1e-9)
    assert erased.gap < LARGEST_GAP
    assert erased.features.dtype == np.float64
    assert erased.eraser.n_directions == 1


@pytest.mark.parametrize("shift", [0.3, 0.1, 0.001])
def test_the_library_alone_leaves_the_rare_group(shift):
    """What the recoding of the groups is for: with svd_tol 1e-4 three tenths of a standard deviation stay."""
    import torch

    x = np.random.default_rng(0).normal(size=(50_000, 6))
    codes = np.zeros(50_000, dtype=np.int64)
    codes[:10] = 1
    x[:10] -= x[:10].mean(axis=0) - x[10:].mean(axis=0)
    x[:10, 0] += shift
    fitter_class = least_squares._library()
    hot = np.eye(2)[codes]
    fitted = fitter_class.fit(torch.from_numpy(x), torch.from_numpy(hot), svd_tol=1e-4)
    alone = fitted.eraser(torch.from_numpy(x)).numpy()
    assert gap_by_hand(alone, codes)[0] > 0.9 * shift
    assert gap_by_hand(erase(x, codes).features, codes)[0] < LARGEST_GAP


def test_two_rare_groups_beside_a_common_one():
    rng = np.random.default_rng(1)
    codes = np.zeros(20_000, dtype=np.int64)
    codes[:4], codes[4:12], codes[12:3000] = 1, 2, 3
    x = rng.normal(size=(20_000, 8)) + rng.normal(size=(4, 8))[codes]
    erased = erase(x, codes)
    assert max(gap_by_hand(erased.features, codes)) < LARGEST_GAP
    assert erased.eraser.n_directions == 3


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("mean", [0.0, 1000.0])
@pytest.mark.parametrize("share", SHARES)
def test_the_dtype_comes_back_and_the_gap_is_checked_before_casting(dtype, mean, share):
    x, codes = rare_group(share, n=20_000)
    given = (x + mean).astype(dtype)
    untouched = given.copy()
    erased = erase(given, codes)
    assert erased.features.dtype == dtype
    np.testing.assert_array_equal(given, untouched)
    float64 = erased.eraser.apply(given)
    assert max(gap_by_hand(float64, codes)) < LARGEST_GAP
    np.testing.assert_allclose(
        erased.gap_after_casting, gap_by_hand(erased.features, codes)[0], rtol=0.1, atol=1e-9
    )
    if dtype == np.float16 and mean:
        assert erased.gap_after_casting > LARGEST_GAP  # 16 bits at 1000 are half a unit apart, and it says so


def test_fewer_rows_than_columns():
    rng = np.random.default_rng(2)
    codes = np.repeat([0, 1, 2], [20, 15, 5])
    x = rng.normal(size=(40, 90)) + rng.normal(size=(3, 90))[codes]
    erased = erase(x, codes)
    assert max(gap_by_hand(erased.features, codes)) < LARGEST_GAP
    assert erased.eraser.n_directions == 2
    assert np.linalg.matrix_rank(erased.features - erased.features.mean(axis=0)) == 37


def test_a_constant_concept_erases_nothing():
    x = np.random.default_rng(3).normal(size=(50, 4))
    erased = erase(x, ["a"] * 50)
    np.testing.assert_array_equal(erased.features, x)
    assert (erased.gap_before, erased.gap, erased.gap_after_casting) == (0.0, 0.0, 0.0)
    assert erased.eraser.n_directions == 0


def test_groups_with_the_same_means_are_left_as_they_are():
    half = np.random.default_rng(4).normal(size=(200, 5))
    erased = erase(np.concatenate([half, half]), np.repeat([0, 1], 200))
    np.testing.assert_allclose(erased.features, np.concatenate([half, half]), rtol=0, atol=1e-12)


def test_columns_of_very_different_scale_constant_and_repeated_columns():
    x, codes = rare_group(0.01, n=5000)
    x = x * np.array([1e-9, 1.0, 1e9, 1.0, 1e3, 1e-3])
    x = np.column_stack([x, np.full(5000, 7.0), x[:, 1]])
    erased = erase(x, codes)
    kept = np.delete(np.arange(8), 6)
    assert max(gap_by_hand(erased.features[:, kept], codes)) < LARGEST_GAP
    np.testing.assert_array_equal(erased.features[:, 6], 7.0)
    np.testing.assert_allclose(erased.features[:, 1], erased.features[:, 7], rtol=0, atol=1e-9)


def test_a_column_that_is_the_group():
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 2, 500)
    x = np.column_stack([codes.astype(float), rng.normal(size=(500, 3)) + codes[:, None]])
    erased = erase(x, codes)
    assert gap_by_hand(erased.features[:, 1:], codes)[0] < LARGEST_GAP
    means = [erased.features[codes == code, 0].mean() for code in (0, 1)]
    assert abs(means[1] - means[0]) < LARGEST_GAP * x[:, 0].std()


def test_the_eraser_is_an_idempotent_projection_of_low_rank():
    x, codes = rare_group(0.2, n=2000)
    eraser = fit_eraser(x, codes)
    once = eraser.apply(x)
    np.testing.assert_allclose(eraser.apply(once), once, rtol=0, atol=1e-10)
    np.testing.assert_allclose(eraser.left @ eraser.right, np.eye(1), rtol=0, atol=1e-12)
    np.testing.assert_allclose(once.mean(axis=0), x.mean(axis=0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("shrunk", [True, False], ids=["shrunk", "sample"])
def test_the_eraser_is_the_closed_form(shrunk):
    """Belrose et al.: x - W^-1 (W Sxz)(W Sxz)^+ W (x - mean), W the whitening of all rows."""
    import torch

    least_squares._library()
    from concept_erasure.shrinkage import optimal_linear_shrinkage

    rng = np.random.default_rng(6)
    n = 2000 if shrunk else 100_000
    codes = rng.integers(0, 3, n)
    x = rng.normal(size=(n, 5)) @ rng.normal(size=(5, 5)) + rng.normal(size=(3, 5))[codes]
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    covariance = z.T @ z / n
    if shrunk:
        covariance = optimal_linear_shrinkage(torch.from_numpy(covariance), n).numpy()
    sizes, vectors = np.linalg.eigh(covariance)
    whiten, back = (vectors / np.sqrt(sizes)) @ vectors.T, (vectors * np.sqrt(sizes)) @ vectors.T
    u = np.linalg.svd(whiten @ z.T @ np.eye(3)[codes] / n, full_matrices=False)[0][:, :2]
    expected = x - z @ (back @ u @ u.T @ whiten).T * x.std(axis=0)
    # The library shrinks the covariance; what that changes falls with n.
    atol = 1e-9 if shrunk else 1e-2
    np.testing.assert_allclose(erase(x, codes).features, expected, rtol=0, atol=atol)


@pytest.mark.parametrize("penalty", [1.0, 1e6], ids=["C 1", "C 1e6"])
@pytest.mark.parametrize("share", SHARES)
def test_a_linear_probe_learns_nothing(share, penalty):
    from sklearn.linear_model import LogisticRegression

    x, codes = rare_group(share, n=10_000)
    erased = erase(x, codes).features
    p = codes.mean()
    constant = -(p * np.log(p) + (1 - p) * np.log(1 - p))
    ours = fit_logistic(erased, codes, classes=(0, 1), C=penalty, map=standardising_map(erased))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a flat objective may end in an abnormal line search
        z = standardising_map(erased).apply(erased)
        theirs = LogisticRegression(C=penalty, tol=1e-10, max_iter=2000).fit(z, codes)
    for decision in (ours.decision(erased), theirs.decision_function(z)):
        loss = np.mean(np.logaddexp(0, decision) - codes * decision)
        assert loss > constant - 1e-6
    # The same probe learns from the rows as they were.
    before = fit_logistic(x, codes, classes=(0, 1), C=1.0, map=standardising_map(x)).decision(x)
    assert np.mean(np.logaddexp(0, before) - codes * before) < constant - 1e-4 * p / 0.0002 / 10


def test_rows_without_a_group_are_erased_but_not_used():
    x, codes = rare_group(0.2, n=1000)
    x[:300] += 50.0
    groups = [None, float("nan")] * 150 + codes[300:].tolist()
    erased = erase(x, groups)
    alone = fit_eraser(x[300:], codes[300:])
    np.testing.assert_allclose(erased.features, alone.apply(x), rtol=0, atol=1e-10)
    assert (erased.n_rows, erased.n_without_group) == (1000, 300)


def test_refusals():
    x = np.random.default_rng(7).normal(size=(30, 3))
    groups = ["a", "b"] * 15
    for wrong, match in (
        (x.tolist(), "The features are no array"),
        (x[0], r"float64 of shape \(3,\)"),
        (x.astype(int), "int64 of shape"),
    ):
        with pytest.raises(InputError, match=match):
            erase(wrong, groups)
    with pytest.raises(InputError, match="30 feature vectors and groups of shape"):
        erase(x, groups[:-1])
    with pytest.raises(InputError, match="No row has a known group"):
        erase(x, [None] * 30)
    x[3, 1] = np.nan
    with pytest.raises(InputError, match="not finite"):
        erase(x, groups)


def test_a_mean_too_large_for_its_spread_is_refused():
    x, codes = rare_group(0.0002, n=10_000)
    with pytest.raises(InputError, match="After erasure two group means differ by"):
        erase(x + 1e13, codes)


def test_float16_that_overflows_is_refused():
    rng = np.random.default_rng(8)
    x, codes = rng.choice([-65504.0, 65504.0], size=(60, 2)).astype(np.float16), np.repeat([0, 1], 30)
    x[:30] = np.abs(x[:30])
    x[:5, 0] = -65504
    with pytest.raises(InputError, match="does not fit into float16"):
        erase(x, codes)


def test_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "concept_erasure", None)
    with pytest.raises(InputError, match=r"pip install 'frame-audit\[mitigation\]'"):
        erase(*rare_group(0.5, n=40))
    outcome = least_squares_erasure(drawn_unit(0, n=(60, 30, 30)))
    assert outcome.status == NOT_FITTED
    assert "concept-erasure" in outcome.reason


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_the_head_behind_leace_is_the_head_on_erased_rows(weighting):
    unit = drawn_unit(9, weighting=weighting, unknown=0.1, mixed=True)
    outcome = least_squares_erasure(unit)
    assert outcome.status == FITTED
    rows = unit.group_rows()
    eraser = fit_eraser(rows.features, rows.groups)
    by_hand = fit_head(eraser.apply(rows.features), rows.labels)
    for part, scores in ((unit.validation, outcome.validation), (unit.test, outcome.test)):
        expected = by_hand.logit(eraser.apply(part.features))
        np.testing.assert_allclose(scores.ranks, expected, rtol=0, atol=1e-4)
        np.testing.assert_array_equal(scores.probabilities, scores_of_logits(scores.ranks).probabilities)
    assert outcome.facts["gap"] < LARGEST_GAP < 0.5 < outcome.facts["gap_before"]
    assert outcome.facts["n_left_out"] == (~unit.train.known).sum() > 0


def decodability(features, rows, train):
    probe = fit_logistic(train[0], train[1].groups, classes=range(3), map=standardising_map(train[0]))
    decision = probe.decision(features)
    return np.mean([auroc(decision[:, k], rows.groups == k) for k in range(3)])


def one_direction_unit(weighting="paper"):
    """Column 1 carries the group and column 0 the disease, whose prevalence is the same in every group."""
    rng = np.random.default_rng(10)

    def rows(n):
        codes, labels = rng.integers(0, 3, n), rng.integers(0, 2, n)
        x = rng.normal(size=(n, 40))
        x[:, 0] += 1.5 * labels
        x[:, 1] += 2.0 * codes
        return Rows(x.astype(np.float32), labels.astype(np.int8), codes.astype(np.int64))

    return unit_of(rows(3000), rows(300), rows(3000), weighting=weighting)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("method", [least_squares_erasure, nullspace_projection], ids=["leace", "inlp"])
def test_held_out_groups_cannot_be_told_apart_afterwards(method, weighting):
    unit = one_direction_unit(weighting)
    rows = unit.train
    fitted = (
        fit_eraser(rows.features, rows.groups)
        if method is least_squares_erasure
        else fit_projector(rows.features, rows.groups)[0]
    )
    before = decodability(unit.test.features, unit.test, (rows.features, rows))
    after = decodability(fitted.apply(unit.test.features), unit.test, (fitted.apply(rows.features), rows))
    assert after < 0.54 < 0.75 < before
    outcome = method(unit)
    assert outcome.status == FITTED
    # Projection takes twenty directions of forty, and some of the disease with them.
    kept = auroc(unit.unmitigated[1].ranks, unit.test.labels) - auroc(outcome.test.ranks, unit.test.labels)
    assert kept < (0.01 if method is least_squares_erasure else 0.08)


def same_means_unit():
    """Every group holds the same feature vectors with the same labels, so nothing tells groups apart."""
    rng = np.random.default_rng(11)
    part = drawn_rows(rng, 200, shift=0.0)
    rows = Rows(np.tile(part.features, (3, 1)), np.tile(part.labels, 3), np.repeat([0, 1, 2], 200))
    return unit_of(rows, part, drawn_rows(rng, 300))


@pytest.mark.parametrize("method", [least_squares_erasure, nullspace_projection], ids=["leace", "inlp"])
def test_nothing_changes_where_groups_are_alike(method):
    unit = same_means_unit()
    outcome = method(unit)
    assert outcome.status == FITTED
    assert outcome.facts["directions"] == 0
    assert len(outcome.flags) == 1
    np.testing.assert_allclose(outcome.test.ranks, unit.unmitigated[1].ranks, rtol=0, atol=1e-5)


def test_nullspace_projection_stops_where_nothing_is_left():
    eraser, facts = fit_projector(same_means_unit().train.features, np.repeat([0, 1, 2], 200))
    assert (eraser.n_directions, facts["rounds"]) == (0, 0)
    assert facts["stopped"] == "no direction tells the groups apart in round 1"
    rng = np.random.default_rng(12)
    codes = rng.integers(0, 2, 300)
    eraser, facts = fit_projector(rng.normal(size=(300, 3)) + codes[:, None], codes)
    assert (eraser.n_directions, facts["rounds"]) == (3, 3)
    assert facts["stopped"] == "no dimension left after round 3"
    assert (
        fit_projector(rng.normal(size=(9, 2)), np.zeros(9, dtype=int))[1]["stopped"] == "there is one group"
    )


def explicit_projections(features, codes, rounds):
    """INLP with scikit-learn and a written-out projection of the rows."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    z = StandardScaler().fit_transform(features.astype(np.float64))
    n_groups = len(np.unique(codes))
    projection = np.eye(z.shape[1])
    found = []
    for _ in range(rounds):
        model = LogisticRegression(C=1.0, max_iter=5000, tol=1e-10).fit(z @ projection, codes)
        weights = model.coef_ - model.coef_.mean(axis=0) if n_groups > 2 else model.coef_
        basis = np.linalg.svd(weights, full_matrices=False)[2][: n_groups - 1]
        found.append(basis)
        inside = np.linalg.qr(np.concatenate(found).T)[0]
        projection = np.eye(z.shape[1]) - inside @ inside.T
    return inside


@pytest.mark.parametrize("n_groups", [2, 3])
def test_nullspace_projection_against_explicit_projections(n_groups):
    rng = np.random.default_rng(13)
    codes = rng.integers(0, n_groups, 400)
    x = rng.normal(size=(400, 16)) @ rng.normal(size=(16, 16)) + rng.normal(size=(n_groups, 16))[codes]
    eraser, facts = fit_projector(x, codes, rounds=3)
    expected = explicit_projections(x, codes, 3)
    assert facts["directions"] == 3 * (n_groups - 1) == expected.shape[1]
    difference = eraser.right @ eraser.right.T - expected @ expected.T
    assert np.linalg.norm(difference, 2) < 1e-3
    assert facts["not_converged"] == []


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_the_head_behind_inlp_is_the_head_on_projected_rows(weighting):
    unit = drawn_unit(14, weighting=weighting, n=(400, 100, 200), n_columns=30, mixed=True)
    outcome = nullspace_projection(unit)
    assert outcome.facts["rounds"] == 10
    assert outcome.facts["directions"] == 20
    eraser, _ = fit_projector(unit.train.features, unit.train.groups)
    np.testing.assert_allclose(eraser.left @ eraser.right, np.eye(20), rtol=0, atol=1e-12)
    by_hand = fit_head(eraser.apply(unit.train.features), unit.train.labels)
    expected = by_hand.logit(eraser.apply(unit.test.features))
    np.testing.assert_allclose(outcome.test.ranks, expected, rtol=0, atol=1e-4)


def test_directions_leave_the_null_direction_out():
    rng = np.random.default_rng(15)
    rows = rng.normal(size=(4, 9))
    basis = directions_of(rows + 100 * rng.normal(size=9))
    assert basis.shape == (9, 3)
    np.testing.assert_allclose(basis.T @ basis, np.eye(3), rtol=0, atol=1e-12)
    assert directions_of(np.zeros((1, 9))).shape == (9, 0)
    assert directions_of(rows[:1]).shape == (9, 1)
    assert directions_of(np.tile(rows[:1], (3, 1))).shape[1] == 0


def test_the_gap_of_no_group_and_of_one():
    assert largest_gap(np.zeros((1, 3)), np.ones(3)) == 0.0
    assert largest_gap(np.array([[0.0, 1.0], [1.0, 4.0]]), np.array([1.0, 2.0])) == 1.5
    assert LEVELS == ("a", "b", "c")

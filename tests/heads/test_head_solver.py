"""The parts of the solver: passes over rows, second moments, drawn rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_features import correlated, drawn_labels, objective

from frame.heads import kernels, passes, preconditioning
from frame.heads.linear_maps import LinearMap, identity_map, standardising_map
from frame.heads.passes import RowPasses
from frame.heads.preconditioning import drawn_rows, preconditioner_from, rows_worth_drawing
from frame.heads.solver import Problem


def made(n_rows=5000, n_columns=7, n_classes=2, dtype="float64"):
    x = correlated(n_rows, n_columns).astype(dtype)
    y = drawn_labels(x.astype(np.float64), n_classes).astype(np.int32)
    return x, y, np.random.default_rng(2).exponential(size=n_rows)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_pass_is_the_objective_and_its_gradient(n_classes):
    x, y, weights = made(n_classes=n_classes)
    design = LinearMap(x.mean(0), np.full(7, 3.0), np.random.default_rng(0).normal(size=(7, 5)))
    problem = Problem(RowPasses(x, y, weights, n_classes), design, weights.sum(), 1 / (0.3 * weights.sum()))
    place = np.random.default_rng(1).normal(size=(1 if n_classes == 2 else 3, 6))
    point = problem.at(place)
    loss, gradient = objective(design.apply(x), y, weights, place[:, :-1], place[:, -1], C=0.3)
    assert point.loss == pytest.approx(loss, rel=1e-12)
    assert np.allclose(point.gradient, gradient, rtol=1e-10, atol=1e-13)
    assert problem.spent == [1.0]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_line_is_the_loss_between_two_points(n_classes):
    x, y, weights = made(n_classes=n_classes)
    rows = RowPasses(x, y, weights, n_classes)
    generator = np.random.default_rng(0)
    shape = (1 if n_classes == 2 else 3, 7)
    first, last = generator.normal(size=shape), generator.normal(size=shape)
    nothing = np.zeros(len(first))
    ends = [rows.evaluate(place, nothing).margins for place in (first, last)]
    for step in (0.0, 0.3, 1.0, 2.0):
        there = rows.evaluate(first + step * (last - first), nothing)
        loss, slope, curve = rows.along(*ends, step)
        assert loss == pytest.approx(there.loss, rel=1e-12)
        assert slope == pytest.approx(np.vdot(there.gradient, last - first), rel=1e-9)
        either = [rows.along(*ends, step + sign * 1e-4)[1] for sign in (1, -1)]
        assert curve == pytest.approx((either[0] - either[1]) / 2e-4, rel=1e-5)


def test_losses_far_out_are_neither_rounded_off_nor_infinite():
    """log(1 + e**-40) is 4e-18, and at 800 the exponential itself overflows."""
    x = np.array([[40.0], [-40.0], [800.0], [-800.0]])
    for label in (0, 1):
        codes, weights = np.full(4, label, np.int32), np.ones(4)
        for n_classes in (2, 3):
            place = np.array([[1.0]]) if n_classes == 2 else np.array([[0.0], [1.0], [-900.0]])
            rows = x if n_classes == 2 else np.abs(x) * (1 if label else -1)
            rows = rows if n_classes == 2 else x[[0, 2]]
            found = RowPasses(rows, codes[: len(rows)], weights[: len(rows)], n_classes).evaluate(
                place, np.zeros(len(place))
            )
            margins = x[:, 0] if n_classes == 2 else x[[0, 2], 0]
            expected = np.logaddexp(0, -margins if label else margins)
            assert found.loss == pytest.approx(expected.sum(), rel=1e-12)


def test_every_half_precision_number_is_widened_exactly():
    bits = np.arange(1 << 16, dtype=np.uint16)
    halves = bits.view(np.float16).reshape(256, 256)
    wide = passes.readable(halves)
    finite = np.isfinite(halves)
    assert wide.dtype == np.float32
    assert finite.sum() == 63_488
    assert np.array_equal(wide[finite], halves[finite].astype(np.float32))
    assert np.isnan(wide[~finite]).all()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("n_columns", [7, 600])
def test_moments_are_those_of_the_standardised_rows(dtype, n_columns):
    x, y, _ = made(3000, n_columns, dtype=dtype)
    rows = np.arange(5, 2900, 7)
    roots = np.random.default_rng(0).random(len(rows))
    standard = standardising_map(x)
    z = roots[:, None] * np.column_stack([standard.apply(x), np.ones(len(x))])[rows]
    found = RowPasses(x, y, np.ones(len(x)), 2).moments(rows, roots, standard.centre, standard.scale)
    assert np.allclose(found, z.T @ z, atol=1e-3 if n_columns == 600 and dtype != "float64" else 1e-10)


def test_moments_too_large_for_single_precision_are_taken_in_double():
    x, y, _ = made(600, 600, dtype="float32")
    x *= np.float32(1e25)
    found = RowPasses(x, y, np.ones(600), 2).moments(
        np.arange(600), np.ones(600), np.zeros(600), np.ones(600)
    )
    expected = x.astype(np.float64).T @ x.astype(np.float64)
    assert np.allclose(found[:-1, :-1] / expected, 1, rtol=1e-9)


@pytest.mark.parametrize("wide", [False, True])
def test_a_preconditioner_is_read_through_another_map(wide, monkeypatch):
    if wide:
        monkeypatch.setattr(preconditioning, "WIDEST", 5)
    x, y, weights = made(1000)
    rows = RowPasses(x, y, weights, 2)
    found = preconditioner_from(rows, weights, standardising_map(x), 1000, 0)
    assert found.whole
    matrix = np.random.default_rng(0).normal(size=(7, 4))
    for target in (identity_map(7), LinearMap(np.full(7, 2.0), np.arange(1.0, 8.0), matrix)):
        moments, sample = found.of_map(target)
        assert sample is None
        design = np.column_stack([target.apply(x), np.ones(len(x))])
        assert np.allclose(moments, (weights[:, None] * design).T @ design / weights.sum(), atol=1e-9)


@given(st.integers(1, 60), st.integers(0, 5), st.integers(0, 1000))
def test_heavy_rows_are_taken_surely_and_the_others_stand_for_the_rest(count, heavy, seed):
    shares = np.random.default_rng(seed).exponential(size=60)
    shares[:heavy] = 1e4
    rows, stands = drawn_rows(shares, count, seed)
    assert len(np.unique(rows)) == len(rows)
    assert abs(len(rows) - count) <= 1
    if count > heavy:
        assert np.isin(np.arange(heavy), rows).all()
        assert np.allclose(stands[:heavy], 1e4)
    light = np.setdiff1d(rows, np.arange(heavy))
    if count > heavy and count < 60:
        # Rows that are drawn stand for the same share each, and together for about all.
        drawn = stands[~np.isin(rows, np.arange(heavy))]
        assert (drawn >= shares[light] - 1e-12).all()


def test_rows_of_weight_0_are_never_drawn():
    shares = np.where(np.arange(1000) % 2 == 0, 1.0, 0.0)
    for count in (10, 499, 800):
        rows, stands = drawn_rows(shares, count, 0)
        assert (rows % 2 == 0).all()
        assert stands.sum() == pytest.approx(500, rel=0.11)


def test_the_number_of_rows_to_draw():
    """All for few columns, about twenty for each of 768 columns, never more than there are."""
    assert rows_worth_drawing(100_000, 20, 2) == 100_000
    assert 12_000 < rows_worth_drawing(100_000, 768, 2) < 25_000
    assert rows_worth_drawing(300, 768, 2) == 300
    assert rows_worth_drawing(100_000, 768, 5) > rows_worth_drawing(100_000, 768, 2)


def test_a_preconditioner_of_all_rows_is_the_second_derivative():
    x, y, weights = made(2000)
    problem = Problem(RowPasses(x, y, weights, 2), standardising_map(x), weights.sum(), 1 / weights.sum())
    place = np.random.default_rng(0).normal(size=(1, 8)) / 3
    point = problem.at(place)
    curvatures, by_class = problem.passes.curvatures(point.margins)
    found = preconditioner_from(problem.passes, curvatures, problem.map, 2000, 0)
    factor = preconditioning.Factor(
        found, problem.map, curvatures.sum() / weights.sum(), by_class, problem.penalty
    )
    direction = np.random.default_rng(1).normal(size=(1, 8))
    either = [problem.at(place + sign * 1e-5 * direction).gradient for sign in (1, -1)]
    assert np.allclose(factor.solve((either[0] - either[1]) / 2e-5), direction, atol=1e-5)


def test_kernels_assume_nothing_about_nan():
    """A compiler free to assume finite numbers would drop these."""
    x = np.full((3, 2), np.nan)
    gradient = np.zeros(2)
    loss, slope = kernels.binary_pass(
        x, np.zeros(2), 0.0, np.zeros(3, np.int32), np.zeros(3), np.empty(3), gradient
    )
    assert np.isnan(loss)
    assert np.isnan(slope)
    assert np.isnan(gradient).all()

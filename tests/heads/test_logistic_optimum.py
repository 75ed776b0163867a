"""The logistic solver against scikit-learn's: the same objective, and the same optimum."""

import numpy as np
import pytest
from made_features import correlated, drawn_labels, objective, reference

from frame.heads.linear_maps import LinearMap, standardising_map
from frame.heads.logistic import fit_logistic, preconditioner_of

#: Against scikit-learn at tol = 1e-10: relative in the loss, absolute in the coefficients.
LOSS, COEFFICIENT = 1e-9, 1e-4


def assert_same_optimum(fit, design, labels, weights=None, class_weight=None, C=1.0, solver="lbfgs"):
    """The loss and coefficients of scikit-learn, and a gradient that is as small as the fit says."""
    model = reference(design, labels, weights, class_weight, C, solver)
    codes = np.searchsorted(model.classes_, labels)
    used = np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=np.float64)
    if class_weight == "balanced":
        counts = np.bincount(codes, weights=used)
        used = used * (counts.sum() / (len(counts) * counts))[codes]
    ours, gradient = objective(design, codes, used, fit.coefficients, fit.intercepts, C)
    theirs, _ = objective(design, codes, used, model.coef_, model.intercept_, C)
    assert fit.status == "converged", fit.reason
    assert fit.reason == ""
    assert fit.classes == tuple(model.classes_.tolist())
    assert np.abs(gradient).max() <= 1e-8
    assert fit.gradient == pytest.approx(np.abs(gradient).max(), rel=1e-2, abs=1e-12)
    assert fit.loss == pytest.approx(ours, rel=1e-12)
    assert ours == pytest.approx(theirs, rel=LOSS)
    assert np.abs(fit.coefficients - model.coef_).max() <= COEFFICIENT
    # scikit-learn's intercepts sum to 0 with several classes, and so do ours.
    assert np.abs(fit.intercepts - model.intercept_).max() <= COEFFICIENT


@pytest.mark.parametrize("power", [0.0, 2.0])
@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("way", ["plain", "balanced", "weighted", "both"])
def test_the_optimum_is_that_of_scikit_learn(power, n_classes, way):
    x = correlated(700, 12, power=power)
    y = drawn_labels(x, n_classes)
    weights = np.random.default_rng(3).exponential(size=len(x)) if way in ("weighted", "both") else None
    class_weight = "balanced" if way in ("balanced", "both") else None
    standard = standardising_map(x)
    fit = fit_logistic(x, y, weights=weights, class_weight=class_weight, map=standard)
    assert_same_optimum(fit, standard.apply(x), y, weights, class_weight)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("layout", ["rows", "columns", "every second"])
def test_features_in_their_own_precision_and_layout(dtype, n_classes, layout):
    x = (3 * correlated(4500, 16) + 2).astype(dtype)
    if layout == "columns":
        x = np.asfortranarray(x)
    elif layout == "every second":
        x = np.repeat(x, 2, axis=1)[:, ::2]
    y = drawn_labels(x.astype(np.float64), n_classes)
    before = x.copy()
    x.flags.writeable = False
    standard = standardising_map(x)
    fit = fit_logistic(x, y, map=standard)
    assert np.array_equal(x, before)
    assert_same_optimum(fit, standard.apply(x), y)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_rare_positives(class_weight):
    """Eight among 4,000; their weight is 500 times that of the others when balanced."""
    x = correlated(4000, 12)
    y = drawn_labels(x, rate=0.002, strength=2.5)
    assert y.sum() == 8
    standard = standardising_map(x)
    fit = fit_logistic(x, y, map=standard, class_weight=class_weight)
    assert_same_optimum(fit, standard.apply(x), y, class_weight=class_weight)


@pytest.mark.parametrize(("C", "solver"), [(1.0, "lbfgs"), (100.0, "newton-cholesky")])
def test_separable_classes_have_a_finite_optimum(C, solver):
    """At C = 100 lbfgs ends with a gradient of 2e-8 and coefficients up to 1e-4 from the optimum."""
    x = correlated(3000, 30)
    y = (x @ np.random.default_rng(0).normal(size=30) > 0).astype(int)
    standard = standardising_map(x)
    fit = fit_logistic(x, y, map=standard, C=C)
    assert ((fit.decision(x) > 0) == (y == 1)).mean() > 0.98
    assert_same_optimum(fit, standard.apply(x), y, C=C, solver=solver)


def test_more_columns_than_rows():
    x = correlated(60, 100)
    y = drawn_labels(x)
    standard = standardising_map(x)
    assert_same_optimum(fit_logistic(x, y, map=standard), standard.apply(x), y)


@pytest.mark.parametrize("n_rows", [80, 900])
def test_more_columns_than_moments_are_kept_for(n_rows, monkeypatch):
    """Drawn rows stand for the moments, all of them or a part."""
    from frame.heads import preconditioning

    monkeypatch.setattr(preconditioning, "WIDEST", 50)
    monkeypatch.setattr(preconditioning, "_ROWS", 100)
    for n_columns in (51, 130):
        x = correlated(n_rows, n_columns).astype(np.float32)
        y = drawn_labels(x)
        standard = standardising_map(x)
        fit = fit_logistic(x, y, map=standard)
        assert fit.preconditioner.moments is None
        assert fit.preconditioner.sample.shape == (min(n_rows, 100), n_columns + 1)
        assert fit.iterations <= 60
        assert_same_optimum(fit, standard.apply(x), y)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_map_with_a_matrix_is_folded_into_the_coefficients(n_classes):
    x = correlated(2000, 20) + 5
    y = drawn_labels(x, n_classes)
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(20, 20)))[0][:, :13]
    oblique = np.eye(20) - np.outer(np.arange(20), np.ones(20)) / 190  # a projection of rank 19
    for matrix in (basis, oblique, basis[:, :0]):
        projected = standardising_map(x).then(matrix)
        fit = fit_logistic(x, y, map=projected)
        design = projected.apply(x)
        if matrix.shape[1]:
            assert_same_optimum(fit, design, y)
        coefficients, intercepts = fit.raw_coefficients()
        scores = design @ fit.coefficients.T + fit.intercepts
        assert np.allclose(x @ coefficients.T + intercepts, scores, rtol=0, atol=1e-10)
        assert np.allclose(fit.decision(x), scores[:, 0] if n_classes == 2 else scores, rtol=0, atol=1e-10)
    assert fit.coefficients.shape == (1 if n_classes == 2 else n_classes, 0)
    assert np.allclose(np.atleast_2d(fit.probability(x).T)[-1], (y == y.max()).mean())


def test_a_large_mean_costs_no_digits():
    x = (correlated(4000, 20) + 1000).astype(np.float32)
    y = drawn_labels(x.astype(np.float64) - 1000)
    standard = standardising_map(x)
    assert_same_optimum(fit_logistic(x, y, map=standard), standard.apply(x), y)


class TestCorrelatedFeatures:
    """5,000 x 256, singular values as 1 / k, a constant and a duplicated column (bad input 15)."""

    x = correlated(5000, 256, seed=4)
    x[:, 10] = 7.0
    x[:, 20] = x[:, 30]
    y = drawn_labels(x)

    @pytest.mark.parametrize("scaled", [False, True])
    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_the_fit_converges_and_does_not_depend_on_the_order(self, scaled, n_classes):
        y = drawn_labels(self.x, n_classes)
        fit = fit_logistic(self.x, y, map=standardising_map(self.x) if scaled else None)
        generator = np.random.default_rng(0)
        rows, columns = generator.permutation(5000), generator.permutation(256)
        x = np.ascontiguousarray(self.x[rows][:, columns])
        again = fit_logistic(x, y[rows], map=standardising_map(x) if scaled else None)
        assert (fit.status, again.status) == ("converged", "converged")
        assert 1 <= fit.iterations <= 60
        assert 1 <= again.iterations <= 60
        assert np.abs(again.coefficients - fit.coefficients[:, columns]).max() <= 1e-4
        assert np.abs(again.intercepts - fit.intercepts).max() <= 1e-4
        assert np.abs(fit.coefficients[:, 20] - fit.coefficients[:, 30]).max() <= 1e-4
        assert np.abs(fit.coefficients[:, 10]).max() <= 1e-4

    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
    def test_it_is_the_optimum_of_scikit_learn(self, dtype):
        x = self.x.astype(dtype)
        standard = standardising_map(x)
        fit = fit_logistic(x, self.y, map=standard)
        # lbfgs itself takes thousands of iterations here.
        assert_same_optimum(fit, standard.apply(x), self.y, solver="newton-cholesky")


class TestBeginnings:
    x = correlated(5000, 30, seed=6).astype(np.float32)
    y = drawn_labels(x)
    standard = standardising_map(x)
    cold = fit_logistic(x, y, map=standard)

    def test_its_own_optimum_needs_no_step(self):
        again = fit_logistic(self.x, self.y, map=self.standard, start=self.cold.warm())
        assert again.iterations <= 1
        assert again.loss == pytest.approx(self.cold.loss, rel=1e-12)

    def test_another_fit_of_the_rows_is_a_good_beginning_and_not_the_end(self):
        weights = np.where(self.x[:, 0] > 0, 1.1, 0.9)
        cold = fit_logistic(self.x, self.y, weights=weights, map=self.standard)
        warm = fit_logistic(
            self.x,
            self.y,
            weights=weights,
            map=self.standard,
            start=self.cold,
            preconditioner=self.cold.preconditioner,
        )
        assert np.abs(warm.coefficients - cold.coefficients).max() <= COEFFICIENT
        assert warm.passes < 0.75 * cold.passes

    def test_one_preconditioner_serves_other_labels_maps_and_weights(self):
        shared = preconditioner_of(self.x, self.standard)
        generator = np.random.default_rng(0)
        basis = np.linalg.qr(generator.normal(size=(30, 30)))[0]
        for design in (
            self.standard,
            self.standard.then(basis[:, 5:]),
            LinearMap(np.zeros(30), np.full(30, 2.0)),
        ):
            for n_classes in (2, 3):
                y = drawn_labels(self.x, n_classes, seed=9)
                weights = generator.exponential(size=len(y))
                fit = fit_logistic(self.x, y, weights=weights, map=design, preconditioner=shared)
                assert fit.preconditioner is shared or fit.preconditioner.n_rows > 0
                assert fit.iterations <= 30
                assert_same_optimum(fit, design.apply(self.x), y, weights, solver="newton-cholesky")

    def test_a_start_of_other_classes_is_not_used(self):
        y = drawn_labels(self.x, 3)
        fit = fit_logistic(self.x, y, map=self.standard, start=self.cold)
        assert_same_optimum(fit, self.standard.apply(self.x), y, solver="newton-cholesky")

    def test_a_misleading_start_and_preconditioner_change_nothing_but_the_time(self):
        far = fit_logistic(self.x, 1 - self.y, map=self.standard, C=1e4)
        other = preconditioner_of(self.x[:, ::-1].copy() ** 3, rows=200)
        fit = fit_logistic(self.x, self.y, map=self.standard, start=far, preconditioner=other)
        assert_same_optimum(fit, self.standard.apply(self.x), self.y, solver="newton-cholesky")

    @pytest.mark.parametrize("threads", [1, 2, 3])
    def test_threads_do_not_change_a_bit(self, threads):
        fit = fit_logistic(self.x, self.y, map=self.standard, threads=threads)
        assert np.array_equal(fit.coefficients, self.cold.coefficients)
        assert np.array_equal(fit.decision(self.x, threads=threads), self.cold.decision(self.x))


def test_weights_of_0_leave_rows_out_and_counts_repeat_them():
    x = correlated(600, 8)
    y = drawn_labels(x)
    counts = np.random.default_rng(0).integers(0, 3, len(x))
    weighted = fit_logistic(x, y, weights=counts)
    repeated = fit_logistic(np.repeat(x, counts, axis=0), np.repeat(y, counts))
    assert np.abs(weighted.coefficients - repeated.coefficients).max() <= 1e-6
    assert weighted.loss == pytest.approx(repeated.loss, rel=1e-10)


@pytest.mark.parametrize(
    ("labels", "classes", "expected"),
    [
        (["no", "yes"], None, ("no", "yes")),
        (["no", "yes"], ("yes", "no"), ("yes", "no")),
        ([False, True], (0, 1), (0, 1)),
        ([-1, 1], None, (-1, 1)),
        ([0.0, 1.0], (0, 1), (0, 1)),
    ],
    ids=["texts", "texts in a given order", "flags", "signs", "floats"],
)
def test_labels_may_be_of_any_kind(labels, classes, expected):
    x = correlated(400, 5)
    codes = drawn_labels(x)
    fit = fit_logistic(x, np.array(labels)[codes], classes=classes)
    plain = fit_logistic(x, codes)
    assert fit.classes == expected
    sign = -1 if classes == ("yes", "no") else 1
    assert np.abs(sign * fit.coefficients - plain.coefficients).max() <= 1e-7

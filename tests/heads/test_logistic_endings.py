"""How a logistic fit ends when it does not converge, and what it refuses."""

import re

import numpy as np
import pytest
from made_features import correlated, drawn_labels

from frame.errors import InputError
from frame.heads.linear_maps import LinearMap, standardising_map
from frame.heads.logistic import fit_logistic, preconditioner_of

X = correlated(400, 6)
Y = drawn_labels(X)


def test_too_few_iterations_are_a_status_with_a_reason():
    fit = fit_logistic(X, Y, iterations=1)
    assert fit.status == "not converged"
    assert fit.iterations == 1
    assert re.fullmatch(
        r"the gradient was \d\.\de-\d\d after 1 iterations, and 1\.0e-08 was asked for", fit.reason
    )
    assert fit.gradient > 1e-8
    assert np.isfinite(fit.coefficients).all()


def test_a_tolerance_below_rounding_is_a_status_with_a_reason():
    fit = fit_logistic(X, Y, tolerance=1e-25)
    assert fit.status == "not converged"
    assert re.fullmatch(r"no step went further down from .* and 1\.0e-25 was asked for", fit.reason)
    assert fit.gradient < 1e-14
    assert fit.iterations < 1000


@pytest.mark.parametrize("classes", [None, (0, 1), (0, 1, 2)])
@pytest.mark.parametrize("weighted", [False, True])
def test_one_class_is_a_status_with_zeros(classes, weighted):
    """Also where the other class is there, but with weights of 0."""
    if weighted and classes is None:
        y, weights = Y, 1.0 - Y
    else:
        y, weights = np.zeros(400, dtype=int), None
    fit = fit_logistic(X, y, classes=classes, weights=weights)
    rows = 3 if classes == (0, 1, 2) else 1
    assert fit.status == "one class"
    assert fit.reason == "all 400 rows with a weight have the same label, so there is nothing to tell apart"
    assert fit.coefficients.shape == (rows, 6)
    assert not fit.coefficients.any()
    assert not fit.decision(X).any()
    assert fit.warm().coefficients.shape == (rows, 6)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("given", [False, True])
def test_rows_that_are_not_finite_are_counted(dtype, value, given):
    x = X.astype(dtype)
    x[[3, 7, 7], [0, 2, 3]] = value
    message = (
        "2 of 400 rows of features hold a value that is not finite; leave these rows out or make their "
        "features again."
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        fit_logistic(x, Y, map=standardising_map(X) if given else None)
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        preconditioner_of(x)
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        standardising_map(x)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": Y[:-1]}, "The labels have the shape (399,) for 400 rows; give one per row."),
        ({"labels": np.where(Y == 1, np.nan, 0.0)}, "of 400 labels are missing; leave these rows out."),
        ({"classes": (0, 2)}, "labels are none of the classes [0, 2]."),
        ({"classes": (0, 1, 1)}, "The classes are [0, 1, 1]; give each once, at least one."),
        ({"classes": (0, 1, 2)}, "1 of 3 classes have no row with a weight"),
        ({"weights": np.ones(3)}, "The weights have the shape (3,) for 400 rows; give one per row."),
        (
            {"weights": np.full(400, -1.0)},
            "400 of 400 weights are negative or not finite; give numbers from 0.",
        ),
        ({"class_weight": "even"}, "class_weight is 'even'; give 'balanced' or None."),
        ({"C": 0.0}, "C is 0.0; give a number above 0."),
        ({"tolerance": -1.0}, "tolerance is -1.0; give a number above 0."),
        ({"iterations": 0}, "iterations is 0; give at least 1."),
        ({"threads": 0}, "threads is 0; give at least 1."),
        ({"features": X.astype(int)}, "The features are int64 of shape (400, 6); give float16, float32 or"),
        ({"features": X[:, 0]}, "The features are float64 of shape (400,); give"),
        ({"features": X[:0], "labels": Y[:0]}, "There is no row of features; give at least one."),
        (
            {"map": LinearMap(np.zeros(5), np.ones(5))},
            "The map is of 5 features, and there are 6; give a map",
        ),
        (
            {"device": "nowhere"},
            "The device 'nowhere' cannot be used by torch here; give 'cpu', 'torch-cpu', or",
        ),
        (
            {"preconditioner": preconditioner_of(X[:, :4])},
            "The preconditioner is of 4 features, and there are 6",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_arguments_that_do_not_fit_are_told(change, message):
    arguments = {"features": X, "labels": Y, **change}
    if change.get("device"):
        pytest.importorskip("torch")
    with pytest.raises(InputError, match=re.escape(message)):
        fit_logistic(arguments.pop("features"), arguments.pop("labels"), **arguments)


def test_scores_of_other_columns_are_refused():
    fit = fit_logistic(X, Y)
    with pytest.raises(InputError, match=re.escape("the head was fitted on 6 columns, so give (n, 6).")):
        fit.decision(X[:, :5])


def test_huge_and_tiny_features_end_with_a_status():
    """Whatever the size, a fit ends and says how."""
    for size in (1e-200, 1e-30, 1e30, 1e150):
        fit = fit_logistic(X * size, Y)
        assert fit.status in ("converged", "not converged")
        assert (fit.reason == "") == (fit.status == "converged")
        assert np.isfinite(fit.coefficients).all()

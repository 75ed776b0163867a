"""A fit by torch, on the processor or on an accelerator, against the one on processor threads."""

import numpy as np
import pytest
from made_features import correlated, drawn_labels

from frame.errors import InputError
from frame.heads import preconditioning
from frame.heads.linear_maps import standardising_map
from frame.heads.logistic import fit_logistic, preconditioner_of

torch = pytest.importorskip("torch")

X = correlated(3000, 30) + 1


def agrees(device, dtype, n_classes):
    x = X.astype(dtype)
    y = drawn_labels(X, n_classes)
    weights = np.random.default_rng(0).exponential(size=len(x))
    shared = {"map": standardising_map(x), "weights": weights, "class_weight": "balanced"}
    here, there = (fit_logistic(x, y, **shared, device=where) for where in ("cpu", device))
    assert there.status == "converged"
    assert np.abs(here.coefficients - there.coefficients).max() <= 1e-6
    assert there.loss == pytest.approx(here.loss, rel=1e-10)
    assert abs(there.iterations - here.iterations) <= 2
    assert there.gradient <= 1e-8


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_torch_on_the_processor_gives_the_same(dtype, n_classes):
    agrees("torch-cpu", dtype, n_classes)


def test_rows_in_blocks_and_read_only(monkeypatch):
    from frame.heads import torch_passes

    monkeypatch.setattr(torch_passes, "_NUMBERS", 30 * 700)
    x = X.astype(np.float32)
    x.flags.writeable = False
    y = drawn_labels(X)
    whole, parts = (fit_logistic(x, y, device=device) for device in ("cpu", "torch-cpu"))
    assert np.abs(whole.coefficients - parts.coefficients).max() <= 1e-6


def test_separable_rows_need_the_search_along_a_step():
    scores = (X - 1) @ np.random.default_rng(0).normal(size=(30, 3))
    for labels in (scores[:, 0] > 0, scores.argmax(axis=1)):
        here, there = (fit_logistic(X, labels, C=100.0, device=device) for device in ("cpu", "torch-cpu"))
        assert there.status == "converged"
        assert np.abs(here.coefficients - there.coefficients).max() <= 1e-4


def test_wide_features_and_a_shared_preconditioner(monkeypatch):
    monkeypatch.setattr(preconditioning, "WIDEST", 20)
    y = drawn_labels(X)
    shared = preconditioner_of(X, standardising_map(X), device="torch-cpu")
    assert shared.sample.shape == (2048, 31)
    there = fit_logistic(X, y, map=standardising_map(X), preconditioner=shared, device="torch-cpu")
    assert (
        np.abs(there.coefficients - fit_logistic(X, y, map=standardising_map(X)).coefficients).max() <= 1e-6
    )


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_rows_that_are_not_finite_are_counted(dtype):
    x = X.astype(dtype)
    x[[1, 4, 5], [0, 1, 1]] = np.inf
    with pytest.raises(InputError, match="3 of 3,000 rows of features hold a value that is not finite"):
        fit_logistic(x, drawn_labels(X), device="torch-cpu")


@pytest.mark.accelerator
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no accelerator")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_an_accelerator_gives_the_same(dtype, n_classes):
    agrees("cuda", dtype, n_classes)

"""Linear maps against what they stand for, computed outright."""

import re

import numpy as np
import pytest
from made_features import correlated

from frame.errors import InputError
from frame.heads.linear_maps import LinearMap, standardising_map


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("mean", [0.0, 1000.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_are_standardised_as_by_scikit_learn(dtype, mean, weighted):
    from sklearn.preprocessing import StandardScaler

    x = correlated(9000, 12) + mean
    x[:, 3] = 0.1
    x = x.astype(dtype)
    weights = np.random.default_rng(0).integers(0, 4, len(x)) if weighted else None
    found = standardising_map(x, weights)
    scaler = StandardScaler().fit(x.astype(np.float64), sample_weight=weights)
    assert np.allclose(found.centre, scaler.mean_, rtol=1e-13, atol=1e-13)
    assert np.allclose(found.scale, 1 / scaler.scale_, rtol=1e-9)
    assert found.scale[3] == 1.0
    z = found.apply(x)
    assert z.dtype == np.float64
    assert np.allclose(np.average(z, axis=0, weights=weights), 0, atol=1e-9)


def test_threads_and_blocks_change_nothing():
    x = correlated(20_000, 16).astype(np.float32)
    one, three = standardising_map(x, threads=1), standardising_map(x, threads=3)
    assert np.array_equal(one.centre, three.centre)
    assert np.array_equal(one.scale, three.scale)
    assert np.allclose(one.scale, 1 / x.std(axis=0, dtype=np.float64), rtol=1e-12)


def test_a_map_followed_by_matrices():
    x = correlated(50, 6)
    first, second = np.random.default_rng(0).normal(size=(6, 4)), np.random.default_rng(1).normal(size=(4, 2))
    whole = standardising_map(x).then(first).then(second)
    assert (whole.n_features, whole.n_columns) == (6, 2)
    assert np.allclose(whole.apply(x), (x - x.mean(0)) / x.std(0) @ first @ second)
    with pytest.raises(InputError, match=re.escape("A matrix of shape (3, 2) cannot follow a map onto 2")):
        whole.then(np.ones((3, 2)))


def test_parts_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match=re.escape("a scale of shape (3,); give (D,), (D,) and (D, M).")):
        LinearMap(np.zeros(2), np.ones(3))
    with pytest.raises(InputError, match=re.escape("and a matrix of shape (3, 2); give")):
        LinearMap(np.zeros(2), np.ones(2), np.ones((3, 2)))
    with pytest.raises(InputError, match="The map holds values that are not finite"):
        LinearMap(np.zeros(2), np.array([1.0, np.inf]))


@pytest.mark.parametrize("weights", [np.zeros(50), np.ones(3), np.full(50, np.nan), np.full(50, -1.0)])
def test_weights_that_cannot_be_are_refused(weights):
    with pytest.raises(InputError, match="The weights are not 50 numbers from 0 with one above 0"):
        standardising_map(correlated(50, 3), weights)


def test_features_whose_squares_overflow_are_refused():
    with pytest.raises(InputError, match="The features are too large for their squares"):
        standardising_map(correlated(50, 3) * 1e200)

"""Removal by shares in whitened coordinates: the dense formula, and what it does to groups."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from frame.errors import InputError
from frame.interventions.operators import injected_blocks, injected_rows
from frame.interventions.whitened_directions import WHITENED_STRENGTHS, whitened_entanglement_operator

N, D = 1500, 12
SHARES = (0.25, 0.5, 0.75, 1.0)


def drawn(dtype=np.float64):
    generator = np.random.default_rng(4)
    labels = (generator.random(N) < 0.3).astype(int)
    signs = generator.choice(np.array([1, -1, 0], dtype=np.int8), N, p=[0.5, 0.4, 0.1])
    features = generator.normal(size=(N, D)) / np.arange(1, D + 1)
    features += labels[:, None] * generator.normal(size=D) * 0.3
    features += (signs == -1)[:, None] * generator.normal(size=D) * 0.2
    features = features @ np.linalg.qr(generator.normal(size=(D, D)))[0] * generator.uniform(0.1, 9, D) + 20
    return features.astype(dtype), labels, signs


def dense_projection(features, labels, count):
    """P with scikit-learn's whitening and heads on rewritten rows."""
    spread = features.std(axis=0)
    pca = PCA(whiten=True).fit(features / spread)
    white = pca.transform(features / spread)
    white /= white.std(axis=0)
    back = np.linalg.lstsq(white, features - features.mean(axis=0), rcond=None)[0]
    there = np.linalg.pinv(back)
    directions = np.empty((D, 0))
    for _ in range(count):
        left = white - white @ directions @ directions.T
        head = LogisticRegression(class_weight="balanced", tol=1e-10, max_iter=5000).fit(left, labels)
        vector = head.coef_[0] - directions @ (directions.T @ head.coef_[0])
        directions = np.column_stack([directions, vector / np.linalg.norm(vector)])
    return there @ directions @ directions.T @ back


@pytest.mark.parametrize("share", SHARES)
def test_one_direction_is_the_dense_formula(share):
    features, labels, signs = drawn()
    operator = whitened_entanglement_operator(features, labels)
    p = dense_projection(features, labels, 1)
    expected = features - share * (signs < 0)[:, None] * ((features - features.mean(axis=0)) @ p)
    changed = operator.apply(features, signs, share)
    np.testing.assert_allclose(changed, expected, rtol=0, atol=1e-5)
    assert np.abs(changed - features).max() > 0.1
    np.testing.assert_array_equal(changed[signs >= 0], features[signs >= 0], strict=True)


def test_two_directions_are_the_dense_formula():
    """The second head reads what is left by chance, so its direction is known to fewer digits."""
    features, labels, _ = drawn()
    operator = whitened_entanglement_operator(features, labels, directions=2)
    p = dense_projection(features, labels, 2)
    np.testing.assert_allclose(operator.read @ operator.written, p, rtol=0, atol=2e-3 * np.abs(p).max())
    assert operator.reason == ""


@pytest.mark.parametrize("directions", [1, 2])
def test_what_is_removed_is_a_projection_onto_uncorrelated_scores(directions):
    features, labels, _ = drawn()
    operator = whitened_entanglement_operator(features, labels, directions=directions)
    p = operator.read @ operator.written
    np.testing.assert_allclose(p @ p, p, rtol=0, atol=1e-9)
    assert np.linalg.matrix_rank(p, tol=1e-6) == directions
    scores = (features - features.mean(axis=0)) @ operator.read
    np.testing.assert_allclose(scores.T @ scores / N, np.eye(directions), rtol=0, atol=1e-9)
    left = operator.apply(features, np.full(N, -1), 1.0)
    np.testing.assert_allclose((left - left.mean(axis=0)).T @ scores / N, 0, rtol=0, atol=1e-8)


@pytest.mark.parametrize("share", SHARES)
def test_a_treated_mean_moves_its_own_share_of_the_way_to_the_common_mean(share):
    features, labels, signs = drawn()
    operator = whitened_entanglement_operator(features, labels)
    changed = operator.apply(features, signs, share)
    common, treated = features.mean(axis=0), signs == -1
    before = (features[treated].mean(axis=0) - common) @ operator.read
    after = (changed[treated].mean(axis=0) - common) @ operator.read
    np.testing.assert_allclose(after, (1 - share) * before, rtol=0, atol=1e-9)
    assert np.abs(before).max() > 0.05
    spread = ((features[treated] @ operator.read).std(), (changed[treated] @ operator.read).std())
    assert spread[1] == pytest.approx((1 - share) * spread[0], abs=1e-9)
    np.testing.assert_array_equal(changed[signs == 1].mean(axis=0), features[signs == 1].mean(axis=0))


def test_the_place_of_the_origin_does_not_matter():
    features, labels, signs = drawn()
    far = features + 1000.0
    one = whitened_entanglement_operator(features, labels).apply(features, signs, 0.5)
    other = whitened_entanglement_operator(far, labels).apply(far, signs, 0.5)
    np.testing.assert_allclose(other - 1000.0, one, rtol=0, atol=1e-5)


def test_constant_and_dependent_columns_are_not_read():
    features, labels, signs = drawn()
    wider = np.column_stack([np.full(N, 4.0), features, features[:, 0] - features[:, 1]])
    operator = whitened_entanglement_operator(wider, labels)
    changed = operator.apply(wider, signs, 1.0)
    np.testing.assert_array_equal(changed[:, 0], 4.0)
    np.testing.assert_allclose(changed[:, -1], changed[:, 1] - changed[:, 2], rtol=0, atol=1e-7)
    alone = whitened_entanglement_operator(features, labels).apply(features, signs, 1.0)
    np.testing.assert_allclose(changed[:, 1:-1], alone, rtol=0, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float16, np.float32], ids=["float16", "float32"])
@pytest.mark.parametrize("size", [1, 7, 50_000])
def test_bytes_do_not_depend_on_blocks(dtype, size, tmp_path):
    features, labels, signs = drawn(dtype)
    np.save(tmp_path / "features.npy", features)
    stored = np.load(tmp_path / "features.npy", mmap_mode="r")
    operator = whitened_entanglement_operator(stored, labels)
    whole = operator.apply(features, signs, 0.75)
    blocks = [block for _, block in injected_blocks(operator, stored, signs, 0.75, size=size)]
    assert np.concatenate(blocks).tobytes() == whole.tobytes()
    unknown = injected_rows(operator, stored, signs, signs == 0, 0.75, dtype=np.float32)
    assert unknown.tobytes() == features[signs == 0].astype(np.float32).tobytes()
    np.testing.assert_array_equal(stored, features)


def test_share_0_gives_back_what_was_given():
    features, labels, signs = drawn()
    operator = whitened_entanglement_operator(features, labels)
    assert operator.strengths == WHITENED_STRENGTHS == (0.0, 0.25, 0.5, 0.75, 1.0)
    assert operator.apply(features, signs, 0) is features
    assert injected_rows(operator, features, signs, None, 0) is features


def test_mistakes_are_refused_in_a_sentence():
    features, labels, signs = drawn()
    operator = whitened_entanglement_operator(features, labels)
    broken = features.copy()
    broken[7, 1] = np.nan
    for call, message in (
        (lambda: operator.apply(features, signs, 1.5), "The share that the whitened entanglement operator "),
        (lambda: operator.apply(features, signs, -1), "The strength of the whitened entanglement operator "),
        (lambda: operator.apply(broken, signs, 1), "1 of 1,500 rows have a missing or infinite value; "),
        (lambda: whitened_entanglement_operator(features, labels, directions=3), "3 whitened directions "),
        (lambda: whitened_entanglement_operator(features, 0 * labels), "All 1,500 training rows have the "),
        (
            lambda: whitened_entanglement_operator(features, labels + 1),
            f"{labels.sum()} of 1,500 labels are ",
        ),
        (
            lambda: whitened_entanglement_operator(broken, labels),
            "features: 1 row has a missing or infinite ",
        ),
        (
            lambda: whitened_entanglement_operator(np.ones((N, 3)), labels),
            "All 1,500 training rows hold the same features; there is no direction.",
        ),
        (
            lambda: whitened_entanglement_operator(np.repeat(features, 2, axis=0), np.arange(2 * N) % 2),
            "No head reads the disease from these features; there is no direction.",
        ),
    ):
        with pytest.raises(InputError) as problem:
            call()
        assert str(problem.value).startswith(message)

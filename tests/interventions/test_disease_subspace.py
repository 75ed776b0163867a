"""Disease directions against an explicit sequence of scikit-learn fits, and their limits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from frame.errors import InputError
from frame.interventions.disease_subspace import (
    ENTANGLEMENT_STRENGTHS,
    Deflation,
    DiseaseSubspace,
    disease_direction,
    disease_subspace,
    largest_dimension,
)
from frame.interventions.operators import entanglement_operator

N, D, K = 1200, 20, 8


def drawn(dtype=np.float64, n=N, width=D):
    """Correlated features on different scales and far from 0, a quarter of the rows positive."""
    generator = np.random.default_rng(2)
    labels = (generator.random(n) < 0.25).astype(int)
    features = generator.normal(size=(n, width)) / np.arange(1, width + 1) ** 0.5
    features += 0.4 * labels[:, None] * generator.normal(size=width)
    features = features @ np.linalg.qr(generator.normal(size=(width, width)))[0]
    features = features * generator.uniform(0.2, 5, width) + 10 * generator.normal(size=width)
    return features.astype(dtype), labels


def sequence(features, labels, k):
    """The same by scikit-learn, with the features rewritten each time."""
    left = np.array(features, dtype=np.float64)
    basis = np.empty((left.shape[1], 0))
    for _ in range(k):
        scaler = StandardScaler().fit(left)
        head = LogisticRegression(C=1.0, class_weight="balanced", tol=1e-9, max_iter=5000)
        head.fit(scaler.transform(left), labels)
        direction = head.coef_[0] / scaler.scale_
        for _ in range(2):
            direction = direction - basis @ (basis.T @ direction)
        direction /= np.linalg.norm(direction)
        basis = np.column_stack([basis, direction])
        left = left - np.outer(left @ direction, direction)
    return basis


def largest_angle(one, other):
    """Largest principal angle, from its sine: arccos of a cosine near 1 has half of the digits."""
    return np.arcsin(min(1.0, np.linalg.norm(other - one @ (one.T @ other), 2)))


@pytest.fixture(scope="module")
def found():
    return disease_subspace(*drawn(), K)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16], ids=["float64", "float32", "float16"])
def test_every_prefix_is_that_of_a_sequence_of_scikit_learn_fits(dtype):
    features, labels = drawn(dtype)
    ours, theirs = disease_subspace(features, labels, K), sequence(features, labels, K)
    assert ours.reached == K
    for k in range(1, K + 1):
        assert largest_angle(ours.first(k), theirs[:, :k]) < 1e-3
    np.testing.assert_array_equal(np.sign(np.sum(ours.basis * theirs, axis=0)), 1)


def test_another_rule_would_be_seen():
    """The comparison can fail: without new standard deviations after each deflation, another subspace."""
    features, labels = drawn()
    scale = features.std(axis=0)
    left, basis = (features - features.mean(axis=0)) / scale, np.empty((D, 0))
    for _ in range(3):
        head = LogisticRegression(class_weight="balanced", tol=1e-9, max_iter=5000).fit(left, labels)
        direction = head.coef_[0] / np.linalg.norm(head.coef_[0])
        left = left - np.outer(left @ direction, direction)
        raw = direction / scale
        raw -= basis @ (basis.T @ raw)
        basis = np.column_stack([basis, raw / np.linalg.norm(raw)])
    assert largest_angle(disease_subspace(features, labels, 3).basis, basis) > 0.05


def test_the_basis_is_orthonormal_and_nested(found):
    np.testing.assert_allclose(found.basis.T @ found.basis, np.eye(K), rtol=0, atol=1e-14)
    shorter = disease_subspace(*drawn(), 3)
    np.testing.assert_array_equal(shorter.basis, found.first(3), strict=True)
    np.testing.assert_array_equal(disease_direction(*drawn()), found.basis[:, 0], strict=True)
    assert (found.asked, found.reached, found.reason, found.most) == (K, K, "", D // 2)
    assert found.n_not_converged == 0
    assert max(found.gradients) <= 1e-6
    assert len(found.iterations) == len(found.passes) == len(found.gradients) == K


def test_a_direction_is_orthogonal_to_the_ones_before_however_small_its_new_part():
    generator = np.random.default_rng(0)
    deflation = Deflation(np.zeros(30), np.eye(30))
    basis = np.linalg.qr(generator.normal(size=(30, 10)))[0]
    for column in basis[:, :9].T:
        deflation.remove(column)
    vector = 1e6 * basis[:, :9] @ generator.normal(size=9) + basis[:, 9]
    direction = deflation.orthogonal(vector)
    assert np.abs(basis[:, :9].T @ direction).max() < 1e-15
    assert direction @ basis[:, 9] > 1 - 1e-9
    assert not deflation.orthogonal(basis[:, 3]).any()


def test_the_map_standardises_what_is_left_after_many_directions():
    features, _ = drawn(width=40)
    mean = features.mean(axis=0)
    deflation = Deflation(mean, np.cov(features.T, ddof=0))
    generator = np.random.default_rng(6)
    left = features - mean
    for _ in range(20):
        direction = deflation.orthogonal(generator.normal(size=40))
        deflation.remove(direction)
        left = left - np.outer(left @ direction, direction)
        expected = left / left.std(axis=0)
        np.testing.assert_allclose(deflation.standardised().apply(features), expected, rtol=0, atol=1e-9)


def test_two_runs_are_the_same_bytes(found):
    assert disease_subspace(*drawn(), K).basis.tobytes() == found.basis.tobytes()


def test_a_read_only_map_of_a_file_gives_the_same(tmp_path):
    features, labels = drawn(np.float32)
    np.save(tmp_path / "features.npy", features)
    stored = np.load(tmp_path / "features.npy", mmap_mode="r")
    one, other = disease_subspace(stored, labels, 3), disease_subspace(features, labels, 3)
    assert one.basis.tobytes() == other.basis.tobytes()
    np.testing.assert_array_equal(stored, features)


def test_removing_the_directions_removes_what_those_heads_read(found):
    features, labels = drawn()
    left = features - features @ found.basis @ found.basis.T
    gap = features[labels == 1].mean(axis=0) - features[labels == 0].mean(axis=0)
    assert np.linalg.norm(left[labels == 1].mean(axis=0) - left[labels == 0].mean(axis=0)) < np.linalg.norm(
        gap
    )
    assert np.abs((features - features.mean(axis=0)) @ found.basis).max() > 0.1
    assert np.abs(left @ found.basis).max() < 1e-9


# -- limits -------------------------------------------------------------------------------------------------


def test_more_than_half_of_the_columns_is_not_run():
    features, labels = drawn()
    ours = disease_subspace(features, labels, 256)
    assert (ours.asked, ours.reached) == (256, D // 2)
    assert ours.reason == "256 directions are more than half of the 20 columns that vary"
    operator = entanglement_operator(ours)
    assert operator.strengths == (0.0, 1.0, 4.0)
    assert operator.not_run == {
        float(k): f"{k} directions are more than half of the 20 columns that vary" for k in (16, 64, 256)
    }
    with pytest.raises(InputError) as problem:
        operator.apply(features, np.ones(N, dtype=int), 16)
    assert str(problem.value) == (
        "The entanglement operator was asked to remove 16 directions, and there are 10 "
        "(256 directions are more than half of the 20 columns that vary)."
    )


@pytest.mark.parametrize(
    ("width", "most"), [(1, 0), (2, 1), (31, 4), (32, 16), (384, 64), (511, 64), (512, 256), (1024, 256)]
)
def test_the_largest_strength_that_is_run(width, most):
    assert largest_dimension(width) == most


def test_a_strength_between_is_refused_by_the_number_fitted(found):
    operator = entanglement_operator(found, (0, 8, 9, 11))
    assert operator.strengths == (0.0, 8.0)
    assert operator.not_run == {
        9.0: "the subspace was fitted with 8 directions",
        11.0: "11 directions are more than half of the 20 columns that vary",
    }
    with pytest.raises(InputError, match="9 disease directions were asked for, and 8 were found"):
        found.first(9)


def test_a_sequence_stops_where_no_signal_is_left():
    """Two balanced classes that differ in one direction, alike in every other one to the last bit."""
    generator = np.random.default_rng(0)
    half = generator.integers(-8, 9, (200, 6)).astype(float)
    half = np.concatenate([half, -half])  # the mean is exactly 0
    shift = np.zeros(6)
    shift[2] = 4.0
    half[:, 2] = np.repeat([-2.0, 2.0], 200)  # uncorrelated with nothing but itself
    half[200:, [0, 1, 3, 4, 5]] = half[:200, [0, 1, 3, 4, 5]]
    features = np.concatenate([half, half + shift])
    labels = np.repeat([0, 1], 400)
    ours = disease_subspace(features, labels, 3)
    assert (ours.asked, ours.reached) == (3, 1)
    assert ours.reason == "no disease signal is left after 1 direction"
    np.testing.assert_allclose(ours.basis[:, 0], np.eye(6)[2], rtol=0, atol=1e-6)
    assert entanglement_operator(ours, (0, 1, 2)).not_run == {2.0: ours.reason}


def test_a_sequence_stops_where_no_variance_is_left():
    generator = np.random.default_rng(1)
    labels = np.arange(500) % 2
    features = (generator.normal(size=500) + labels)[:, None] * np.array([1.0, -1, 1, 1, 1, -1]) + 7
    ours = disease_subspace(features, labels, 3)
    assert (ours.asked, ours.reached, ours.reason) == (3, 1, "no variance is left after 1 direction")
    expected = np.array([1.0, -1, 1, 1, 1, -1]) / 6**0.5
    np.testing.assert_allclose(ours.basis[:, 0], expected, rtol=0, atol=1e-9)


def test_dependent_columns_do_no_harm():
    """A direction may then have a part that no row has, and the sequence goes on, as scikit-learn's does."""
    generator = np.random.default_rng(1)
    labels = np.arange(500) % 2
    features = (generator.normal(size=(500, 3)) + labels[:, None]) @ generator.normal(size=(3, 12))
    ours = disease_subspace(features, labels, 3)
    assert ours.reached == 3
    np.testing.assert_allclose(ours.basis.T @ ours.basis, np.eye(3), rtol=0, atol=1e-12)
    assert largest_angle(ours.basis, sequence(features, labels, 3)) < 1e-3


def test_constant_columns_take_no_part():
    features, labels = drawn()
    with_constant = np.insert(features, [0, 7, D], [5.0, 0.1, -3e4], axis=1)
    ours = disease_subspace(with_constant, labels, 4)
    assert ours.constant_columns.tolist() == [0, 8, D + 2]
    np.testing.assert_array_equal(ours.basis[ours.constant_columns], 0.0)
    plain = disease_subspace(features, labels, 4)
    assert largest_angle(np.delete(ours.basis, ours.constant_columns, axis=0), plain.basis) < 1e-5
    assert ours.most == plain.most == D // 2


def test_a_column_that_is_used_up_takes_no_further_part():
    """The first direction is one column; what is left there is rounding, which is not blown up."""
    generator = np.random.default_rng(3)
    labels = np.arange(800) % 2
    features = np.column_stack([3.0 * labels - 1.5, generator.normal(size=(800, 5)) + 0.2 * labels[:, None]])
    features[:, 0] += 0.3 * generator.normal(size=800)
    ours = disease_subspace(features, labels, 3)
    assert ours.reached == 3
    np.testing.assert_allclose(ours.basis.T @ ours.basis, np.eye(3), rtol=0, atol=1e-12)


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_gives_no_direction(label):
    features, labels = drawn()
    ours = disease_subspace(features, np.full_like(labels, label), 4)
    assert isinstance(ours, DiseaseSubspace)
    assert (ours.reached, ours.basis.shape) == (0, (D, 0))
    assert ours.reason == "all 1,200 training rows have the same label"
    with pytest.raises(InputError) as problem:
        disease_direction(features, np.full_like(labels, label))
    assert str(problem.value) == "There is no disease direction: all 1,200 training rows have the same label."


def test_rows_that_are_all_the_same_give_no_direction():
    labels = np.arange(10) % 2
    ours = disease_subspace(np.ones((10, 8)), labels, 2)
    assert (ours.reached, ours.reason) == (0, "2 directions are more than half of the 0 columns that vary")
    with pytest.raises(InputError, match=r"There is no disease direction: no variance is left\."):
        disease_direction(np.ones((10, 8)), labels)


def test_no_direction_at_all_may_be_asked_for():
    ours = disease_subspace(*drawn(), 0)
    assert (ours.reached, ours.reason, ours.basis.shape) == (0, "", (D, 0))
    assert entanglement_operator(ours, (0,)).strengths == (0.0,)


def test_progress_counts_directions():
    seen = []
    disease_subspace(*drawn(), 3, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_mistakes_are_refused_in_a_sentence():
    features, labels = drawn()
    broken = features.copy()
    broken[[3, 8], 0], broken[9, 4] = np.nan, np.inf
    for function in (disease_subspace, disease_direction):
        with pytest.raises(InputError) as problem:
            function(broken, labels)
        assert str(problem.value).startswith(
            "features: 3 rows have a missing or infinite value (in 2 columns, counted from 0); "
        )
    for wrong, message in (
        (labels[1:], "There are 1,200 training rows and labels of shape (1199,); give one label per row."),
        (labels + 1, "300 of 1,200 labels are neither 0 nor 1; leave such rows out."),
        (np.where(labels == 1, np.nan, 0), "300 of 1,200 labels are neither 0 nor 1; leave such rows out."),
        (labels.astype(str), "1,200 of 1,200 labels are neither 0 nor 1; leave such rows out."),
    ):
        with pytest.raises(InputError) as problem:
            disease_subspace(features, wrong)
        n_positive = int(labels.sum())
        assert str(problem.value) == message.replace("300", str(n_positive))
    for k in (-1, 1.5, True):
        with pytest.raises(InputError, match="The number of disease directions is "):
            disease_subspace(features, labels, k)
    with pytest.raises(InputError, match="features is empty"):
        disease_subspace(features[:0].reshape(0, D), labels[:0])


def test_the_strengths_are_those_of_the_paper():
    assert ENTANGLEMENT_STRENGTHS == (0, 1, 4, 16, 64, 256)

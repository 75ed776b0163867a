"""Gaussian transport: the closed form, the shrinkage, and groups that cannot be mapped."""

import numpy as np
import pytest
from score_units import auroc, drawn_rows, drawn_unit, unit_of

from frame.errors import InputError
from frame.heads.disease_heads import fit_head
from frame.mitigation.contract import FITTED, NOT_FITTED, WEIGHTINGS, Rows
from frame.mitigation.transport import fit_transport, gaussian_transport, shrunk, transport_matrix


def covariance(rng, n_columns):
    root = rng.normal(size=(n_columns, n_columns))
    return root @ root.T + 0.1 * np.eye(n_columns)


def test_the_map_is_symmetric_positive_and_carries_the_covariance():
    rng = np.random.default_rng(0)
    source, target = covariance(rng, 7), covariance(rng, 7)
    found = transport_matrix(source, target)
    np.testing.assert_array_equal(found, found.T)
    assert np.linalg.eigvalsh(found).min() > 0
    np.testing.assert_allclose(found @ source @ found, target, rtol=0, atol=1e-9)


def test_the_map_of_diagonal_covariances_and_of_equal_ones():
    found = transport_matrix(np.diag([1.0, 4.0]), np.diag([9.0, 1.0]))
    np.testing.assert_allclose(found, np.diag([3.0, 0.5]), rtol=0, atol=1e-12)
    same = covariance(np.random.default_rng(1), 5)
    np.testing.assert_allclose(transport_matrix(same, same), np.eye(5), rtol=0, atol=1e-9)


def test_a_singular_source_is_refused():
    with pytest.raises(InputError, match="singular"):
        transport_matrix(np.diag([1.0, 0.0]), np.eye(2))


def test_shrinkage_keeps_the_trace():
    given = covariance(np.random.default_rng(2), 6)
    found = shrunk(given)
    np.testing.assert_allclose(np.trace(found), np.trace(given), rtol=1e-12)
    np.testing.assert_allclose(found, 0.9 * given + 0.1 * np.trace(given) / 6 * np.eye(6), rtol=0, atol=1e-12)


def gaussian_groups(n=6000, dtype=np.float64):
    rng = np.random.default_rng(3)
    codes = np.repeat([0, 1], [n, n // 2])
    x = np.concatenate(
        [
            rng.normal(size=(n, 3)) @ [[1, 0.5, 0], [0, 1, 0.2], [0, 0, 2]],
            2 + 0.5 * rng.normal(size=(n // 2, 3)),
        ]
    )
    return x.astype(dtype), codes


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_mapped_groups_have_the_pooled_mean_and_the_shrunk_covariance_is_carried(dtype):
    x, codes = gaussian_groups(dtype=dtype)
    transport = fit_transport(x, codes)
    exact = x.astype(np.float64)
    np.testing.assert_allclose(transport.mean, exact.mean(axis=0), rtol=0, atol=1e-12)
    mapped = transport.apply(x, codes)
    pooled = shrunk(np.cov(exact.T, ddof=0))
    for code in (0, 1):
        own = shrunk(np.cov(exact[codes == code].T, ddof=0))
        t = transport.matrices[code]
        np.testing.assert_allclose(t @ own @ t, pooled, rtol=0, atol=1e-9)
        np.testing.assert_allclose(mapped[codes == code].mean(axis=0), exact.mean(axis=0), rtol=0, atol=1e-10)
        by_hand = exact.mean(axis=0) + (exact[codes == code] - exact[codes == code].mean(axis=0)) @ t
        np.testing.assert_allclose(mapped[codes == code], by_hand, rtol=0, atol=1e-10)


def test_means_far_from_zero_cost_no_precision():
    x, codes = gaussian_groups()
    near, far = fit_transport(x, codes), fit_transport(x + 1e6, codes)
    for code in (0, 1):
        np.testing.assert_allclose(near.matrices[code], far.matrices[code], rtol=0, atol=1e-7)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_groups_with_shifted_features_come_together(weighting):
    unit = shifted_unit(weighting)
    outcome = gaussian_transport(unit)
    assert outcome.status == FITTED
    spread = {
        name: np.ptp([scores.ranks[unit.test.groups == code].mean() for code in range(3)])
        for name, scores in (("before", unit.unmitigated[1]), ("after", outcome.test))
    }
    assert spread["after"] < 0.15 < 0.5 < spread["before"]
    assert (
        auroc(outcome.test.ranks, unit.test.labels)
        > auroc(unit.unmitigated[1].ranks, unit.test.labels) + 0.02
    )
    rows = unit.train
    transport = fit_transport(rows.features, rows.groups)
    by_hand = fit_head(transport.apply(rows.features, rows.groups), rows.labels)
    expected = by_hand.logit(transport.apply(unit.test.features, unit.test.groups))
    np.testing.assert_allclose(outcome.test.ranks, expected, rtol=0, atol=1e-3)


def shifted_unit(weighting="paper"):
    """Prevalence is the same in every group; the disease column is moved by the group."""
    rng = np.random.default_rng(4)

    def rows(n):
        codes, labels = rng.integers(0, 3, n), rng.integers(0, 2, n)
        x = rng.normal(size=(n, 4))
        x[:, 0] += 1.5 * labels + 1.0 * codes
        return Rows(x.astype(np.float32), labels.astype(np.int8), codes.astype(np.int64))

    return unit_of(rows(3000), rows(500), rows(3000), weighting=weighting)


def test_nothing_changes_where_groups_are_alike():
    rng = np.random.default_rng(5)
    part = drawn_rows(rng, 300, shift=0.0)
    rows = Rows(np.tile(part.features, (3, 1)), np.tile(part.labels, 3), np.repeat([0, 1, 2], 300))
    unit = unit_of(rows, part, drawn_rows(rng, 300, shift=0.0))
    outcome = gaussian_transport(unit)
    np.testing.assert_allclose(outcome.test.ranks, unit.unmitigated[1].ranks, rtol=0, atol=1e-3)


def test_groups_without_a_covariance_are_not_moved_and_say_so():
    unit = drawn_unit(6, n=(400, 200, 300))
    codes = np.where(unit.train.groups == 2, 0, unit.train.groups)
    codes[7] = 2
    unit = unit_of(Rows(unit.train.features, unit.train.labels, codes), unit.validation, unit.test)
    outcome = gaussian_transport(unit)
    assert outcome.status == FITTED
    assert outcome.groups[2]["action"] == "kept the identity"
    assert outcome.groups[2]["reason"] == "one training image has no covariance"
    assert "c: kept the identity, one training image has no covariance" in outcome.flags
    assert outcome.facts["n_groups_mapped"] == 2
    alike = np.where(unit.train.groups[:, None] == 1, np.float32(3.5), unit.train.features)
    found = fit_transport(alike, unit.train.groups)
    assert found.reasons == {
        1: "its training images are all alike",
        2: "one training image has no covariance",
    }
    np.testing.assert_allclose(found.apply(alike, unit.train.groups)[unit.train.groups == 1], 3.5, rtol=1e-12)


def test_no_group_with_a_covariance():
    rows = Rows(np.eye(2, 3), np.array([0, 1], dtype=np.int8), np.array([0, 1]))
    outcome = gaussian_transport(unit_of(rows, rows, rows, levels=("a", "b")))
    assert (outcome.status, outcome.reason) == (
        NOT_FITTED,
        "no group has a covariance, so none can be mapped",
    )


def test_images_without_a_group_are_not_moved():
    unit = drawn_unit(7, unknown=0.2, n=(600, 200, 300))
    rows = unit.group_rows()
    transport = fit_transport(rows.features, rows.groups)
    unknown = ~unit.test.known
    mapped = transport.apply(unit.test.features, unit.test.groups)
    np.testing.assert_allclose(mapped[unknown], unit.test.features[unknown], rtol=0, atol=1e-6)
    assert not np.allclose(mapped[~unknown], unit.test.features[~unknown], atol=1e-3)

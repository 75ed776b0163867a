"""Group resampling and reweighing: their weights, what they move, and when they change nothing."""

import numpy as np
import pytest
from score_units import auroc, unit_of
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from training_units import disease, drawn, group_beside, own_direction, rows_of, three

from frame.heads.disease_heads import fit_head
from frame.mitigation.contract import WEIGHTINGS, Rows, Unit
from frame.mitigation.registry import fit_method
from frame.mitigation.sampling import independence_weights, resampled, resampled_counts, reweighed


def plain_logits(train, features, sample_weight, repeat=None):
    """scikit-learn on standardised rows, as a method's definition reads."""
    x, y, w = train.features.astype(float), train.labels, sample_weight
    if repeat is not None:
        x, y, w = x[repeat], y[repeat], w[repeat]
    scaler = StandardScaler().fit(x)
    head = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(scaler.transform(x), y, sample_weight=w)
    return head.decision_function(scaler.transform(features.astype(float)))


def balanced(labels):
    counts = np.bincount(labels, minlength=2)
    return (len(labels) / (2 * counts))[labels]


def group_auroc(outcome, rows, group):
    own = rows.groups == group
    return auroc(outcome.test.ranks[own], rows.labels[own])


@pytest.mark.parametrize("sizes", [(700, 200, 100), (5, 5, 5), (1, 50, 3)], ids=str)
def test_every_group_is_drawn_equally_often(sizes):
    groups = np.random.default_rng(0).permutation(np.r_[np.repeat([0, 1, 2], sizes), [-1] * 40])
    counts = resampled_counts(groups, 0)
    each = sum(sizes) // 3
    assert [int(counts[groups == group].sum()) for group in range(3)] == [each] * 3
    assert counts[groups == -1].sum() == 0
    assert np.array_equal(counts, resampled_counts(groups, 0))


def test_another_seed_draws_other_rows():
    groups = np.zeros(1000, dtype=np.int64)
    assert not np.array_equal(resampled_counts(groups, 0), resampled_counts(groups, 1))


def test_rows_are_drawn_with_replacement_and_evenly():
    counts = resampled_counts(np.zeros(100_000, dtype=np.int64), 3)
    # a row is left out with probability 1/e: .3679, with SD .0010 over 100,000 rows
    assert abs((counts == 0).mean() - np.exp(-1)) < 0.005
    assert abs(counts.var() - 1) < 0.05
    assert counts[:50_000].sum() == pytest.approx(50_000, abs=900)


def test_no_known_group_draws_nothing():
    assert resampled_counts(np.full(4, -1), 0).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_resampling_is_a_fit_to_the_copied_rows(weighting):
    unit = three(600, (0.7, 0.2, 0.1), (0.2, 0.4, 0.6), group_beside, weighting=weighting)
    copies = np.repeat(np.arange(600), resampled_counts(unit.train.groups, unit.seed))
    weights = balanced(unit.train.labels) if weighting == "equal" else np.ones(600)
    expected = plain_logits(unit.train, unit.test.features, weights, copies)
    np.testing.assert_allclose(resampled(unit).test.ranks, expected, atol=1e-5)


def test_resampling_helps_the_group_that_was_few():
    """A tenth of the rows have their finding in a direction of their own."""
    unit = three(4000, (0.9, 0.1), (0.3, 0.3), own_direction)
    before = fit_head(unit.train.features, unit.train.labels, class_weight=None)
    own = unit.test.groups == 1
    few = auroc(before.logit(unit.test.features[own]), unit.test.labels[own])
    many = auroc(before.logit(unit.test.features[~own]), unit.test.labels[~own])
    after = resampled(unit)
    assert few < 0.70
    assert group_auroc(after, unit.test, 1) > few + 0.15
    assert group_auroc(after, unit.test, 0) < many - 0.03


def test_resampling_changes_next_to_nothing_in_equal_groups():
    """Drawing again only adds the noise of the draw."""
    unit = three(8000, (0.5, 0.5), (0.3, 0.3), disease)
    before = fit_head(unit.train.features, unit.train.labels, class_weight=None).logit(unit.test.features)
    after = resampled(unit)
    assert np.corrcoef(before, after.test.ranks)[0, 1] > 0.998
    for group in range(2):
        own = unit.test.groups == group
        change = group_auroc(after, unit.test, group) - auroc(before[own], unit.test.labels[own])
        assert abs(change) < 0.003


def aif360_weights(groups, labels):
    """AIF360's Reweighing, written out: n_group n_label / (n n_group,label) for each of the four cells."""
    n = len(labels)
    weights = np.empty(n)
    for i in range(n):
        n_group = (groups == groups[i]).sum()
        n_label = (labels == labels[i]).sum()
        n_cell = ((groups == groups[i]) & (labels == labels[i])).sum()
        weights[i] = n_group * n_label / (n * n_cell)
    return weights


def test_the_weights_are_those_of_aif360():
    rows = drawn(300, (0.6, 0.3, 0.1), (0.1, 0.5, 0.8), disease)
    counts = np.array([np.bincount(rows.labels[rows.groups == g], minlength=2) for g in range(3)])
    found = independence_weights(counts)[rows.groups, rows.labels]
    np.testing.assert_allclose(found, aif360_weights(rows.groups, rows.labels), rtol=1e-12)


def test_weighted_groups_and_labels_are_independent_and_keep_their_sizes():
    counts = np.array([[90, 10], [20, 30], [3, 47]])
    table = independence_weights(counts) * counts
    np.testing.assert_allclose(table / table.sum(), np.outer(table.sum(1), table.sum(0)) / table.sum() ** 2)
    np.testing.assert_allclose(table.sum(axis=1), counts.sum(axis=1))
    np.testing.assert_allclose(table.sum(axis=0), counts.sum(axis=0))


def test_an_empty_cell_has_weight_0():
    weights = independence_weights(np.array([[90, 10], [0, 3]]))
    assert weights[1, 0] == 0
    assert weights[1, 1] == pytest.approx(3 * 13 / (103 * 3))


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_reweighing_is_a_weighted_fit(weighting):
    unit = three(600, (0.7, 0.2, 0.1), (0.2, 0.4, 0.6), group_beside, weighting=weighting)
    weights = aif360_weights(unit.train.groups, unit.train.labels)
    if weighting == "equal":
        weights = weights * balanced(unit.train.labels)
    expected = plain_logits(unit.train, unit.test.features, weights)
    np.testing.assert_allclose(reweighed(unit).test.ranks, expected, atol=1e-5)


def test_reweighing_stops_the_head_from_reading_the_group():
    """The group, in column 1, predicts the finding only because it is commoner in one of them."""
    unit = three(6000, (0.5, 0.5), (0.1, 0.8), group_beside)

    def gap(logits):
        """Mean difference of the groups' scores among images without the finding."""
        none = unit.test.labels == 0
        return logits[none & (unit.test.groups == 1)].mean() - logits[none & (unit.test.groups == 0)].mean()

    before = fit_head(unit.train.features, unit.train.labels, class_weight=None).logit(unit.test.features)
    assert gap(before) > 1.5
    assert abs(gap(reweighed(unit).test.ranks)) < 0.1 * gap(before)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_reweighing_changes_nothing_where_group_and_label_are_independent(weighting):
    """Exactly independent counts: every weight is 1."""
    groups = np.repeat([0, 1, 2], [400, 200, 100])
    labels = np.concatenate([np.arange(n) % 4 == 0 for n in (400, 200, 100)]).astype(np.int8)
    parts = [rows_of(labels, groups, group_beside, seed=seed) for seed in range(3)]
    unit = unit_of(*parts, weighting=weighting)
    class_weight = "balanced" if weighting == "equal" else None
    head = fit_head(unit.train.features, unit.train.labels, class_weight=class_weight)
    np.testing.assert_allclose(reweighed(unit).test.ranks, head.logit(unit.test.features), atol=1e-6)


@pytest.mark.parametrize("name", ["resample", "reweigh"])
def test_the_head_is_of_the_kind_of_the_unmitigated_one(name):
    made = three(400, (0.6, 0.4), (0.3, 0.4), disease)
    head = fit_head(made.train.features, made.train.labels, kind="mlp")
    unit = Unit(made.train, made.validation, made.test, made.levels, head, made.unmitigated)
    outcome, linear = fit_method(name, unit), fit_method(name, made)
    assert outcome.status == "ok"
    assert not np.allclose(outcome.test.ranks, linear.test.ranks, atol=1e-3)
    assert np.array_equal(outcome.test.ranks, fit_method(name, unit).test.ranks)


@pytest.mark.parametrize("name", ["resample", "reweigh"])
def test_a_draw_or_a_unit_of_one_label_is_told(name):
    """Two images of the finding, both in a large group: a draw may miss them, weights may not."""
    groups = np.repeat([0, 1], [300, 300])
    labels = np.zeros(600, dtype=np.int8)
    labels[0] = 1
    parts = [rows_of(labels, groups, disease, seed=seed) for seed in range(3)]
    seed = next(s for s in range(50) if not resampled_counts(groups, s)[0])
    made = unit_of(*parts, levels=("a", "b"))
    unit = Unit(made.train, made.validation, made.test, made.levels, made.head, made.unmitigated, seed=seed)
    outcome = fit_method(name, unit)
    if name == "resample":
        assert outcome.status == "not fitted"
        assert "the same label" in outcome.reason
    else:
        assert outcome.status == "ok"
        assert outcome.groups[1]["reason"] == "no positive training image"


def test_what_was_done_to_each_group_is_told():
    groups = np.repeat([0, 1], [90, 30])
    labels = np.r_[np.arange(90) % 3 == 0, np.arange(30) % 2 == 0].astype(np.int8)
    rows = rows_of(labels, groups, disease)
    unit = unit_of(rows, rows, rows, levels=("a", "b"))
    assert [row["action"] for row in resampled(unit).groups] == [
        "resampled from 90 to 60 images",
        "resampled from 30 to 60 images",
    ]
    assert [row["action"] for row in reweighed(unit).groups] == [
        "weights 0.938 for negatives and 1.125 for positives",
        "weights 1.250 for negatives and 0.750 for positives",
    ]


def test_a_rows_weight_counts_and_its_place_does_not():
    unit = three(500, (0.7, 0.3), (0.2, 0.5), group_beside)
    order = np.random.default_rng(0).permutation(500)
    train = Rows(unit.train.features[order], unit.train.labels[order], unit.train.groups[order])
    other = unit_of(train, unit.validation, unit.test, levels=unit.levels)
    np.testing.assert_allclose(reweighed(unit).test.ranks, reweighed(other).test.ranks, atol=1e-6)

"""Equalised odds by exponentiated gradient: against fairlearn as it is, what it moves, where it is empty."""

import copy

import numpy as np
import pytest
from score_units import unit_of
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from training_units import disease, drawn, group_beside, rows_of, three

from frame.heads.linear_maps import standardising_map
from frame.heads.logistic import fit_logistic
from frame.mitigation.constraints import equalised_odds
from frame.mitigation.contract import DEGENERATE, FITTED, WEIGHTINGS

reductions = pytest.importorskip("fairlearn.reductions")
BOTH = pytest.mark.parametrize("weighting", WEIGHTINGS)
BOUNDS = pytest.mark.parametrize("bound", [0.01, 0.001])


def as_it_is(unit, bound=0.01):
    """fairlearn in the ordinary way: standardised features and scikit-learn's logistic regression."""
    scaler = StandardScaler().fit(unit.train.features.astype(float))
    x, test = (scaler.transform(rows.features.astype(float)) for rows in (unit.train, unit.test))
    labels = unit.train.labels.astype(int)
    costs = {"fp": 1.0, "fn": 1.0}
    if unit.weighting == "equal":
        n, n_positive = len(labels), labels.sum()
        costs = {"fp": n / (2 * (n - n_positive)), "fn": n / (2 * n_positive)}
    reduction = reductions.ExponentiatedGradient(
        LogisticRegression(C=1.0, tol=1e-8, max_iter=5000),
        reductions.EqualizedOdds(difference_bound=bound),
        objective=reductions.ErrorRate(costs=costs),
        eps=0.01,
        max_iter=50,
    )
    reduction.fit(x, labels, sensitive_features=unit.train.groups)
    return sum(
        weight * reduction.predictors_[number].predict_proba(test)[:, 1]
        for number, weight in reduction.weights_.items()
        if weight > 0
    )


def rate_gap(scores, rows, label):
    """Difference between groups of the share that is called positive at one half."""
    called = scores.probabilities >= 0.5
    rates = [called[(rows.groups == g) & (rows.labels == label)].mean() for g in np.unique(rows.groups)]
    return max(rates) - min(rates)


@BOTH
@pytest.mark.parametrize("seed", [0, 1])
def test_the_scores_are_those_of_fairlearn(weighting, seed):
    unit = three(500, (0.6, 0.4), (0.25, 0.6), group_beside, seed=seed, weighting=weighting)
    outcome = equalised_odds(unit)
    assert outcome.facts["n_heads"] > 1
    np.testing.assert_allclose(outcome.test.probabilities, as_it_is(unit), atol=1e-3)


def test_three_groups_and_another_bound():
    unit = three(500, (0.5, 0.3, 0.2), (0.25, 0.5, 0.6), group_beside)
    found = equalised_odds(unit, difference_bound=0.05)
    np.testing.assert_allclose(found.test.probabilities, as_it_is(unit, 0.05), atol=1e-3)
    assert found.facts["difference_bound"] == 0.05


@BOTH
def test_hits_and_false_alarms_become_about_equal(weighting):
    """The group, in column 1, predicts the finding, so the plain head calls one group far more often."""
    unit = three(3000, (0.5, 0.5), (0.2, 0.8), group_beside, weighting=weighting)
    fit = fit_logistic(unit.train.features, unit.train.labels, map=standardising_map(unit.train.features))
    outcome = equalised_odds(unit)
    assert outcome.status == FITTED
    for label in (0, 1):
        probabilities = fit.probability(unit.test.features)
        plain = rate_gap(type(outcome.test)(probabilities, probabilities), unit.test, label)
        assert plain > 0.25
        # the constraint is on training images and on the average of calls, not on the call of the average
        assert rate_gap(outcome.test, unit.test, label) < 0.3 * plain


@BOTH
def test_nothing_changes_where_the_rates_are_equal_already(weighting):
    """The same rows in both groups: one head, the plain one."""
    one = [rows_of(np.arange(300) % 3 == 0, np.zeros(300), disease, seed=seed) for seed in range(3)]
    parts = [type(r)(np.tile(r.features, (2, 1)), np.tile(r.labels, 2), np.repeat([0, 1], 300)) for r in one]
    unit = unit_of(*parts, levels=("a", "b"), weighting=weighting)
    outcome = equalised_odds(unit)
    plain = fit_logistic(
        unit.train.features,
        unit.train.labels,
        class_weight="balanced" if weighting == "equal" else None,
        map=standardising_map(unit.train.features),
    )
    assert outcome.facts["n_heads"] == 1
    assert outcome.facts["converged"]
    np.testing.assert_allclose(outcome.test.probabilities, plain.probability(unit.test.features), atol=1e-5)
    np.testing.assert_allclose(outcome.test.ranks, plain.decision(unit.test.features), atol=1e-4)


def test_ranks_are_the_log_odds_of_the_probability():
    outcome = equalised_odds(three(500, (0.6, 0.4), (0.25, 0.6), group_beside))
    p = outcome.test.probabilities
    np.testing.assert_allclose(outcome.test.ranks, np.log(p / (1 - p)), atol=1e-9)


def test_ranks_do_not_saturate_into_ties():
    """Far images: probabilities of 1 that are still in an order."""
    unit = three(500, (0.6, 0.4), (0.25, 0.6), group_beside)
    far = unit.test.features.astype(np.float64)
    far[:, 0] = 1000 + np.arange(len(far))
    test = type(unit.test)(far, unit.test.labels, unit.test.groups)
    found = equalised_odds(unit_of(unit.train, unit.validation, test, levels=unit.levels))
    assert (found.test.probabilities == 1).all()
    assert len(np.unique(found.test.ranks)) == len(far)


@BOTH
@BOUNDS
def test_three_positives_in_the_second_group(weighting, bound):
    """Bad input 5: the second group has no false alarms to hold equal, so nothing is claimed."""
    groups = np.r_[np.zeros(397), np.ones(3)]
    rng = np.random.default_rng(0)
    parts = [
        rows_of(np.where(groups == 1, 1, rng.random(400) < 0.4), groups, disease, seed=seed)
        for seed in range(3)
    ]
    outcome = equalised_odds(unit_of(*parts, levels=("a", "b"), weighting=weighting), difference_bound=bound)
    assert outcome.status == DEGENERATE
    assert outcome.reason.startswith(
        "b has no negative training image, so one of its rates cannot be held equal"
    )
    assert 0 <= outcome.facts["constant_share"] <= 1
    assert np.isfinite(outcome.test.ranks).all()


@BOTH
@BOUNDS
def test_one_group_only(weighting, bound):
    parts = [drawn(300, (1.0,), (0.4,), disease, seed=seed) for seed in range(3)]
    unit = unit_of(*parts, levels=("a",), weighting=weighting)
    outcome = equalised_odds(unit, difference_bound=bound)
    assert (outcome.status, outcome.reason) == (
        DEGENERATE,
        "only a has training images, so there is nothing to hold equal",
    )
    assert outcome.facts["constant_share"] == 0


@BOUNDS
def test_heads_that_call_every_image_the_same_are_flagged(bound):
    """A rare finding that the features hardly show: no image reaches one half, but the scores rank."""

    def little(labels, groups):
        return 0.5 * labels[:, None]

    unit = three(600, (0.6, 0.4), (0.04, 0.06), little)
    outcome = equalised_odds(unit, difference_bound=bound)
    assert outcome.status == FITTED
    assert outcome.facts["constant_share"] == 0
    assert outcome.facts["one_sided_share"] == pytest.approx(1.0)
    assert outcome.flags[0] == (
        "100.0% of the weight is on heads that rank the images but call every training image the same at one "
        "half, so equal rates say little"
    )
    assert len(np.unique(outcome.test.ranks)) > 500


def test_a_head_with_one_score_for_all_is_a_constant():
    unit = three(300, (0.6, 0.4), (0.25, 0.6), disease)
    parts = [
        type(rows)(np.ones_like(rows.features), rows.labels, rows.groups)
        for rows in (unit.train, unit.validation, unit.test)
    ]
    outcome = equalised_odds(unit_of(*parts, levels=unit.levels))
    assert outcome.status == DEGENERATE
    assert outcome.facts["constant_share"] == pytest.approx(1.0)
    assert outcome.facts["one_sided_share"] == 0
    assert outcome.reason == "100.0% of the weight is on predictors with one score for every training image"


def test_a_constant_of_fairlearn_has_its_share(monkeypatch):
    """Where relabelled images have one label fairlearn takes a constant; its weight is counted and scored."""
    import pandas as pd
    from sklearn.dummy import DummyClassifier

    from frame.mitigation import constraints

    unit = three(300, (0.6, 0.4), (0.25, 0.6), group_beside)
    numbers = np.arange(300).reshape(-1, 1)
    kept = constraints._mixture

    def with_a_constant(predictors, weights, rows):
        constant = DummyClassifier(strategy="constant", constant=1).fit(numbers, np.ones(300, dtype=int))
        return kept(
            pd.concat([predictors, pd.Series([constant], index=[1000])]),
            pd.concat([weights * 0.7, pd.Series([0.3], index=[1000])]),
            rows,
        )

    plain = equalised_odds(unit)
    monkeypatch.setattr(constraints, "_mixture", with_a_constant)
    outcome = equalised_odds(unit)
    assert outcome.status == DEGENERATE
    assert outcome.facts["constant_share"] == pytest.approx(0.3)
    assert outcome.reason == "30.0% of the weight is on predictors with one score for every training image"
    expected = 0.3 + 0.7 * plain.test.probabilities
    np.testing.assert_allclose(outcome.test.probabilities, expected, atol=1e-12)
    np.testing.assert_allclose(outcome.test.ranks, np.log(expected / (1 - expected)), atol=1e-9)


def test_only_constants_still_give_finite_scores():
    from frame.mitigation.constraints import _Mixture

    rows = drawn(5, (1.0,), (0.4,), disease)
    scores = _Mixture((), (0.75, 0.25), 1.0).scores(rows)
    assert scores.ranks.tolist() == [0] * 5
    assert scores.probabilities.tolist() == [0.25] * 5


def test_a_fit_that_does_not_converge_says_so(monkeypatch):
    monkeypatch.setattr("frame.mitigation.constraints.ROUNDS", 2)
    outcome = equalised_odds(three(500, (0.6, 0.4), (0.25, 0.6), group_beside))
    assert not outcome.facts["converged"]
    assert outcome.flags[0].startswith("not converged after 2 rounds: the gap is ")


def test_a_copied_estimator_shares_its_features():
    from frame.mitigation.constraints import _Heads, _OneHead
    from frame.mitigation.training_groups import training_groups

    unit = three(100, (0.6, 0.4), (0.3, 0.4), disease)
    heads = _Heads(unit.train, training_groups(unit))
    estimator = _OneHead(heads)
    assert copy.deepcopy(estimator)._heads is heads
    labels, weights = unit.train.labels.astype(np.int64), np.ones(100)
    assert heads.fitted(labels, weights)[0] is heads.fitted(labels, weights)[0]
    assert heads.n_fits == 1

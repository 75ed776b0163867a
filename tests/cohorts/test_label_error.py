"""What wrong labels do: error rates counted by hand, closed forms against large simulations."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from frame.cohorts.label_error import (
    FairScore,
    expected_difference,
    expected_values,
    label_error_table,
    simulated_fair_scores,
)
from frame.errors import InputError


def test_error_rates_are_those_counted_by_hand():
    groups = pd.Categorical([*"bbbbbaaa", None], categories=["b", "a", "empty"])
    truth = np.array([1, 1, 1, 0, 0, 1, 0, 0, 1], dtype=bool)
    labels = np.array([1, 1, 0, 1, 0, 0, 0, 0, 1], dtype=bool)
    patients = [1, 1, 2, 3, 4, 5, 5, 6, 7]
    table = label_error_table(labels, truth, groups, patients).set_index("group")
    assert list(table.index) == ["b", "a"]
    assert table.loc["b", ["n_images", "n_patients", "n_true", "n_labelled"]].tolist() == [5, 4, 3, 3]
    assert table.loc["b"].tolist()[4:] == pytest.approx([2 / 3, 1 / 2, 2 / 3, 1 / 2])
    # No image of a is labelled positive: nothing to take a share of.
    assert table.loc["a", "n_labelled"] == 0
    assert np.isnan(table.loc["a", "true_among_positive"])
    assert table.loc["a", "true_among_negative"] == pytest.approx(1 / 3)


def test_unequal_lengths_are_refused():
    with pytest.raises(InputError, match="labels 2, truth 3, group 3, patient 3"):
        label_error_table([True, False], [True] * 3, ["a"] * 3, [0, 1, 2])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"auroc": 1.0}, "auroc is 1.0; it must lie strictly between 0 and 1"),
        ({"sensitivity": 0.0}, "sensitivity is 0.0; it must lie strictly between 0 and 1"),
        ({"correlation": 1.0}, "correlation is 1.0; it must be 0 or more and below 1"),
    ],
)
def test_impossible_scores_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        FairScore(**settings)


def test_threshold_and_rates_are_those_of_two_normal_laws():
    score = FairScore(auroc=0.9, sensitivity=0.7)
    assert norm.cdf(score.separation / np.sqrt(2)) == pytest.approx(0.9, abs=1e-12)
    assert norm.sf(score.threshold, loc=score.separation) == pytest.approx(0.7, abs=1e-12)
    assert norm.sf(score.threshold) == pytest.approx(score.false_positive_rate, abs=1e-12)


SCORE = FairScore(auroc=0.85, sensitivity=0.8, correlation=0.6)


@pytest.fixture(scope="module")
def simulated():
    """300,000 images, two a patient, in three groups whose labels err at different rates."""
    rng = np.random.default_rng(5)
    n = 300_000
    patients = np.repeat(np.arange(n // 2), 2)
    groups = np.repeat(rng.integers(0, 3, n // 2), 2)
    truth = rng.random(n) < np.array([0.3, 0.1, 0.5])[groups]
    missed = np.array([0.1, 0.5, 0.3])[groups]
    invented = np.array([0.02, 0.1, 0.2])[groups]
    labels = np.where(truth, rng.random(n) >= missed, rng.random(n) < invented)
    scores = simulated_fair_scores(truth, patients, SCORE, seed=7)
    return scores, labels, truth, groups, patients


def test_a_fair_score_is_fair_against_the_truth(simulated):
    scores, _, truth, groups, _ = simulated
    for group in range(3):
        own = groups == group
        # Standard errors are below 0.003 here.
        assert roc_auc_score(truth[own], scores[own]) == pytest.approx(SCORE.auroc, abs=0.01)
        called = scores[own] >= SCORE.threshold
        assert called[truth[own]].mean() == pytest.approx(SCORE.sensitivity, abs=0.01)
        assert called[~truth[own]].mean() == pytest.approx(SCORE.false_positive_rate, abs=0.01)


def test_closed_forms_agree_with_the_simulation(simulated):
    scores, labels, truth, groups, patients = simulated
    expected = expected_values(label_error_table(labels, truth, groups, patients), SCORE)
    for group in range(3):
        own = groups == group
        called = scores[own] >= SCORE.threshold
        found = [
            roc_auc_score(labels[own], scores[own]),
            called[labels[own]].mean(),
            called[~labels[own]].mean(),
        ]
        assert found == pytest.approx(expected.loc[group, ["auroc", "tpr", "fpr"]].tolist(), abs=0.01)
    # The labels, not the score, make the groups differ: by much more than that tolerance.
    assert expected_difference(expected["auroc"].tolist()) > 0.1
    assert expected_difference(expected["fpr"].tolist()) > 0.05


def test_labels_without_errors_change_nothing(simulated):
    _, _, truth, groups, patients = simulated
    expected = expected_values(label_error_table(truth, truth, groups, patients), SCORE)
    for measure, value in (("auroc", 0.85), ("tpr", 0.8), ("fpr", SCORE.false_positive_rate)):
        assert expected[measure].tolist() == pytest.approx([value] * 3)
        assert expected_difference(expected[measure].tolist()) == pytest.approx(0.0)


def test_images_of_one_patient_share_a_part_of_their_score(simulated):
    scores, _, truth, _, _ = simulated
    noise = (scores - SCORE.separation * truth).reshape(-1, 2)
    assert np.corrcoef(noise.T)[0, 1] == pytest.approx(SCORE.correlation, abs=0.01)
    assert noise.std() == pytest.approx(1.0, abs=0.01)


def test_scores_follow_the_seed_and_know_no_group(simulated):
    _, _, truth, _, patients = simulated
    first = simulated_fair_scores(truth[:50], patients[:50], SCORE, seed=1)
    assert (simulated_fair_scores(truth[:50], patients[:50], SCORE, seed=1) == first).all()
    assert (simulated_fair_scores(truth[:50], patients[:50], SCORE, seed=2) != first).any()
    # Names of patients do not matter, only who shares one.
    renamed = [f"p{code:03d}" for code in patients[:50]]
    assert (simulated_fair_scores(truth[:50], renamed, SCORE, seed=1) == first).all()
    assert simulated_fair_scores([], [], SCORE, seed=1).shape == (0,)


def test_a_difference_needs_two_values():
    assert expected_difference([0.7, np.nan, 0.5]) == pytest.approx(0.2)
    assert np.isnan(expected_difference([0.7, np.nan]))

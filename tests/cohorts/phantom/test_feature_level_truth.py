"""True values in closed form, against other ways to get them and against large samples.

Statistical tests have fixed seeds and a tolerance of four standard errors.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, linalg, stats
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from frame.cohorts.phantom.feature_level import feature_cohort
from frame.cohorts.phantom.feature_truth import (
    geometry,
    mixed,
    population_aurocs,
    population_decodability,
    population_rates,
    shared_head,
    unmixed,
)
from frame.cohorts.phantom.feature_world import FeatureGroup, FeatureWorld
from frame.errors import InputError

SIGMAS = 4
FAIR = FeatureWorld(
    (
        FeatureGroup("A", test=20_000),
        FeatureGroup("B", test=8_000, prevalence=0.15),
        FeatureGroup("C", test=8_000),
    ),
    images_each=(1.0,),
    dimensions=16,
    dtype="float64",
    seed=21,
)
DOSED = replace(
    FAIR,
    groups=(
        FeatureGroup("A", test=20_000, entanglement=0.2, invented=0.1),
        FeatureGroup("B", test=20_000, prevalence=0.15, auroc=0.68, missed=0.25, invented=0.02),
        FeatureGroup("C", test=20_000, prevalence=0.5, auroc=0.75, entanglement=0.5, missed=0.4),
    ),
)


@pytest.fixture(scope="module")
def fair():
    return feature_cohort(FAIR)


@pytest.fixture(scope="module")
def dosed():
    return feature_cohort(DOSED)


def auroc(scores, labels):
    """AUROC and its standard error by DeLong's placements."""
    positive, negative = scores[labels], scores[~labels]
    ranks = stats.rankdata(np.concatenate([positive, negative]))
    above = (ranks[: len(positive)] - stats.rankdata(positive)) / len(negative)
    below = 1 - (ranks[len(positive) :] - stats.rankdata(negative)) / len(positive)
    error = np.sqrt(above.var(ddof=1) / len(positive) + below.var(ddof=1) / len(negative))
    return above.mean(), error


def some_heads(world, number=3):
    return list(np.random.default_rng(7).standard_normal((number, world.dimensions)))


def dense(world):
    """Means (groups, 2, features) and covariance of the features, from dense matrices."""
    axes = linalg.hadamard(world.dimensions) / np.sqrt(world.dimensions)
    variances = 1 / np.arange(1, world.dimensions + 1)
    variances = variances / variances.mean()
    if world.spectrum == "isotropic":
        variances = np.ones_like(variances)
    means = geometry(world).means @ np.diag(np.sqrt(variances)) @ axes
    return means, axes @ np.diag(variances) @ axes


@pytest.mark.parametrize("size", [3, 8, 21, 64])
def test_mixing_turns_and_is_undone(size):
    rows = np.random.default_rng(0).standard_normal((5, size))
    turned = mixed(rows)
    np.testing.assert_allclose(turned @ turned.T, rows @ rows.T, atol=1e-12)
    np.testing.assert_allclose(unmixed(turned), rows, atol=1e-12)
    # Every axis is spread over the features: none keeps more than half of its square.
    assert (mixed(np.eye(size)) ** 2).max() < 0.51


def test_directions_are_orthonormal_also_without_room_to_spare():
    for size in (4, 64):
        found = geometry(replace(FAIR, dimensions=size))
        directions = np.vstack([found.disease, found.own])
        np.testing.assert_allclose(directions @ directions.T, np.eye(4), atol=1e-12)


@pytest.mark.parametrize("spectrum", ["isotropic", "decaying"])
@pytest.mark.parametrize("world", [FAIR, DOSED], ids=["fair", "dosed"])
def test_the_best_scores_are_fishers(world, spectrum):
    """Against the inverse of the dense covariance matrix."""
    world = replace(world, spectrum=spectrum)
    means, covariance = dense(world)
    found = population_aurocs(world)
    for place, group in enumerate(world.groups):
        contrast = means[place, 1] - means[place, 0]
        weights = np.linalg.solve(covariance, contrast)
        best = stats.norm.cdf(np.sqrt(contrast @ weights / 2))
        assert found["best"][place] == pytest.approx(best, abs=1e-12)
        assert best == pytest.approx(world.auroc_of(group), abs=1e-12)
        own = population_aurocs(world, weights)["head"][place]
        assert own == pytest.approx(best, abs=1e-12)
        # A small turn in any direction is worse.
        for other in some_heads(world, 5):
            turned = weights + 0.05 * np.linalg.norm(weights) * other / np.linalg.norm(other)
            assert population_aurocs(world, turned)["head"][place] < own


@pytest.mark.parametrize("world", [FAIR, DOSED], ids=["fair", "dosed"])
def test_any_linear_head_has_the_stated_auroc(world, fair, dosed):
    cohort = fair if world is FAIR else dosed
    for weights in (None, *some_heads(world)):
        stated = population_aurocs(world, weights).set_index("group")
        scores = cohort.features @ (shared_head(world) if weights is None else weights)
        for name in world.names:
            kept = cohort.groups == name
            for labels, column in ((cohort.labels_true, "head"), (cohort.labels, "head_recorded")):
                found, error = auroc(scores[kept], labels[kept])
                assert abs(found - stated.loc[name, column]) < SIGMAS * error, (name, column)
        # Scale and intercept change nothing, the sign turns it round.
        if weights is not None:
            assert population_aurocs(world, 3 * weights)["head"].tolist() == pytest.approx(
                stated["head"].tolist()
            )
            assert population_aurocs(world, -weights)["head"].tolist() == pytest.approx(
                (1 - stated["head"]).tolist()
            )


def test_recorded_labels_against_an_integral():
    """P(score of a recorded positive > that of a recorded negative), from the densities of the mixtures."""
    stated = population_aurocs(DOSED)
    found = geometry(DOSED)
    for place, group in enumerate(DOSED.groups):
        share = DOSED.prevalence_of(group)
        means = found.means[place] @ found.disease
        positive = np.array([(1 - share) * group.invented, share * (1 - group.missed)])
        negative = np.array([1 - share, share]) - positive
        assert stated["prevalence_recorded"][place] == pytest.approx(positive.sum())

        def density(x, positive=positive, means=means):
            return positive @ stats.norm.pdf(x - means) / positive.sum()

        def below(x, negative=negative, means=means):
            return negative @ stats.norm.cdf(x - means) / negative.sum()

        value, _ = integrate.quad(lambda x: density(x) * below(x), -12, 12, epsabs=1e-11)
        assert stated["head_recorded"][place] == pytest.approx(value, abs=1e-8)
    assert (stated["head_recorded"] < stated["head"]).all()
    ratio = (stated["best_recorded"] - 0.5) / (stated["best"] - 0.5)
    assert ratio.tolist() == pytest.approx(
        ((stated["head_recorded"] - 0.5) / (stated["head"] - 0.5)).tolist()
    )


def test_where_nothing_is_planted_every_linear_head_is_fair():
    for weights in (None, *some_heads(FAIR, 20)):
        found = population_aurocs(FAIR, weights)["head"]
        assert np.ptp(found) < 1e-12
        assert np.ptp(population_aurocs(DOSED, weights)["head"]) > 1e-3
    assert population_aurocs(FAIR)["head"].tolist() == pytest.approx([0.8] * 3, abs=1e-12)


def test_rates_are_fair_for_heads_that_see_no_offset_and_not_for_others(fair):
    blind = shared_head(FAIR)
    for weights in (None, blind, 2.5 * blind):
        rates = population_rates(FAIR, 0.4, weights)
        assert np.ptp(rates["tpr"]) < 1e-12
        assert np.ptp(rates["fpr"]) < 1e-12
    found = geometry(FAIR)
    offset = mixed((found.own[1] / found.scales)[None])[0]
    seeing = 1.5 * blind + offset
    assert np.ptp(population_aurocs(FAIR, seeing)["head"]) < 1e-12
    assert (population_rates(FAIR, 0.4, seeing)[["tpr", "fpr"]].apply(np.ptp) > 0.1).all()
    for weights in (blind, seeing):
        rates = population_rates(FAIR, 0.4, weights).set_index("group")
        called = fair.features @ weights >= 0.4
        for name, label in itertools.product(FAIR.names, (True, False)):
            kept = (fair.groups == name) & (fair.labels_true == label)
            expected = rates.loc[name, "tpr" if label else "fpr"]
            assert abs(called[kept].mean() - expected) < SIGMAS * np.sqrt(
                expected * (1 - expected) / kept.sum()
            )


def test_scores_of_a_blind_head_have_one_law_in_all_groups(fair):
    """Not only the AUROC: the whole law of a nonlinear score of the projections that the groups share."""
    offsets = geometry(FAIR).own
    whitened = unmixed(fair.features) / geometry(FAIR).scales
    blind = whitened - whitened @ offsets.T @ offsets
    score = np.tanh(blind @ np.ones(16)) + (blind**2).sum(axis=1) * (blind @ geometry(FAIR).disease > 0)
    for label in (False, True):
        parts = [score[(fair.groups == name) & (fair.labels_true == label)] for name in FAIR.names]
        assert stats.kruskal(*parts).pvalue > 1e-4
        assert stats.ks_2samp(parts[0], parts[1]).pvalue > 1e-4


def test_a_nonlinear_head_that_reads_the_offset_is_not_fair(fair):
    """The world is fair and the head is not: it orders images well only where it does not recognise B."""
    found = geometry(FAIR)
    whitened = unmixed(fair.features) / found.scales
    disease = whitened @ found.disease
    looks_like_b = whitened @ (found.own[1] - found.own[0]) > 0
    score = np.where(looks_like_b, -disease, disease)
    values = {
        name: auroc(score[fair.groups == name], fair.labels_true[fair.groups == name])[0] for name in "AB"
    }
    assert values["A"] > 0.6 > 0.4 > values["B"]


@pytest.mark.parametrize("decodability", [0.5, 0.7, 0.95])
def test_any_two_groups_are_as_decodable_as_stated(decodability):
    world = replace(FAIR, decodability=decodability)
    means, covariance = dense(world)
    cohort = feature_cohort(world)
    for first, second in itertools.combinations(range(3), 2):
        names = world.names[first], world.names[second]
        # Fisher's score of images without disease, from the dense covariance.
        apart = means[second, 0] - means[first, 0]
        weights = np.linalg.solve(covariance, apart)
        assert stats.norm.cdf(np.sqrt(apart @ weights / 2)) == pytest.approx(decodability, abs=1e-9)
        assert population_decodability(world, *names) == pytest.approx(decodability, abs=1e-12)
        if decodability == 0.5:
            continue
        # It is orthogonal to the disease, so that it does as well over all images.
        assert population_decodability(world, *names, weights) == pytest.approx(decodability, abs=1e-9)
        kept = np.isin(cohort.groups, names)
        found, error = auroc((cohort.features @ weights)[kept], cohort.groups[kept] == names[1])
        assert abs(found - decodability) < SIGMAS * error


def test_decodability_of_any_score_in_any_world(dosed):
    for weights, (first, second) in itertools.product(some_heads(DOSED), itertools.permutations("ABC", 2)):
        kept = np.isin(dosed.groups, [first, second])
        found, error = auroc((dosed.features @ weights)[kept], dosed.groups[kept] == second)
        assert abs(found - population_decodability(DOSED, first, second, weights)) < SIGMAS * error
    assert population_decodability(DOSED, "A", "A") == 0.5
    with pytest.raises(InputError, match="'D' is no group of this world; its groups are A, B, C"):
        population_decodability(DOSED, "A", "D")


def test_decodability_against_an_integral():
    """P(score of an image of the second group > that of the first), from the densities of the mixtures."""
    weights = shared_head(DOSED)
    along = geometry(DOSED).means @ geometry(DOSED).disease
    shares = [np.array([1 - DOSED.prevalence_of(g), DOSED.prevalence_of(g)]) for g in DOSED.groups]
    for first, second in itertools.permutations(range(3), 2):

        def density(x, place=second):
            return shares[place] @ stats.norm.pdf(x - along[place])

        def below(x, place=first):
            return shares[place] @ stats.norm.cdf(x - along[place])

        value, _ = integrate.quad(lambda x: density(x) * below(x), -12, 12, epsabs=1e-11)
        found = population_decodability(DOSED, DOSED.names[first], DOSED.names[second], weights)
        assert found == pytest.approx(value, abs=1e-8)
        assert abs(found - 0.5) > 0.01


@pytest.mark.parametrize("dose", [0.0, 0.25, 0.5, 1.0])
def test_entanglement_turns_the_contrast_and_keeps_its_length_and_the_mean(dose):
    def world(dose):
        return replace(
            FAIR, groups=(FAIR.groups[0], replace(FAIR.groups[1], entanglement=dose), FAIR.groups[2])
        )

    found = population_aurocs(world(dose)).set_index("group")
    assert found["best"].tolist() == pytest.approx([0.8] * 3, abs=1e-12)
    length = np.sqrt(2) * stats.norm.ppf(0.8)
    expected = stats.norm.cdf(length * np.cos(dose * np.pi / 2) / np.sqrt(2))
    assert found["head"].tolist() == pytest.approx([0.8, expected, 0.8], abs=1e-12)
    shares = np.array([[1 - s, s] for s in (0.3, 0.15, 0.3)])[:, :, None]
    means = [(geometry(world(d)).means * shares).sum(axis=1) for d in (0.0, dose)]
    np.testing.assert_allclose(means[0], means[1], atol=1e-12)
    # Of the group's contrast, the rest lies along its own direction.
    turned = geometry(world(dose))
    assert turned.contrasts[1] @ turned.own[1] == pytest.approx(length * np.sin(dose * np.pi / 2), abs=1e-12)
    assert abs(population_decodability(world(dose), "A", "B") - 0.9) < 0.01


def fitted(features, labels):
    head = make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=1000)).fit(features, labels)
    return lambda other: head.decision_function(other)


def test_a_refitted_pooled_head_loses_the_entangled_group_and_its_decodability_stays():
    found = []
    for dose in (0.0, 0.5):
        groups = (
            FeatureGroup("A", train=6000, test=4000),
            FeatureGroup("B", train=2000, test=4000, entanglement=dose),
        )
        world = FeatureWorld(groups, images_each=(1.0,), dimensions=16, seed=22)
        train, test = feature_cohort(world).part("train"), feature_cohort(world).part("test")
        pooled = fitted(train.features, train.labels)(test.features)
        group = fitted(train.features, train.groups == "B")(test.features)
        of_b = train.groups == "B"
        own = fitted(train.features[of_b], train.labels[of_b])(test.features)
        in_a, in_b = test.groups == "A", test.groups == "B"
        found.append(
            {
                "A": roc_auc_score(test.labels[in_a], pooled[in_a]),
                "B": roc_auc_score(test.labels[in_b], pooled[in_b]),
                "own": roc_auc_score(test.labels[in_b], own[in_b]),
                "decodability": roc_auc_score(in_b, group),
            }
        )
    before, after = found
    # Both doses have the same noise, so that the differences are far surer than one AUROC (error about .008).
    assert after["B"] < before["B"] - 0.05
    assert abs(after["A"] - before["A"]) < 0.02
    assert abs(after["own"] - before["own"]) < 0.015
    assert abs(after["decodability"] - before["decodability"]) < 0.015
    assert before["B"] == pytest.approx(0.8, abs=0.03)
    assert before["decodability"] == pytest.approx(0.9, abs=0.02)


def test_a_planted_difference_is_there_for_a_head_of_the_groups_own():
    groups = (FeatureGroup("A", test=10), FeatureGroup("B", train=6000, test=6000, auroc=0.7))
    world = FeatureWorld(groups, images_each=(1.0,), dimensions=8, seed=23)
    train, test = feature_cohort(world).part("train"), feature_cohort(world).part("test")
    of_b, in_b = train.groups == "B", test.groups == "B"
    own = fitted(train.features[of_b], train.labels[of_b])(test.features[in_b])
    value, error = auroc(own, test.labels[in_b])
    # Fitting 8 weights to 6,000 images costs about a thousandth.
    assert value == pytest.approx(0.7, abs=SIGMAS * error + 0.002)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (
            np.ones(3),
            r"weights has the shape \(3,\) and the type float64; one number for each of the 16 features",
        ),
        (np.ones((16, 1)), r"the shape \(16, 1\)"),
        (["a"] * 16, "one number for each of the 16 features"),
        ([[1.0], [1.0, 2.0]], "rows of different lengths"),
        (np.zeros(16), "nothing but 0"),
        ([np.nan] * 16, "a missing or infinite number"),
    ],
    ids=["short", "column", "text", "ragged", "zero", "missing"],
)
def test_refused_weights(weights, message):
    for asked in (
        lambda: population_aurocs(FAIR, weights),
        lambda: population_rates(FAIR, 0.0, weights),
        lambda: population_decodability(FAIR, "A", "B", weights),
    ):
        with pytest.raises(InputError, match=message):
            asked()


@pytest.mark.parametrize("threshold", [np.nan, np.inf, "0.5", True])
def test_refused_thresholds(threshold):
    with pytest.raises(InputError, match="it must be a finite number"):
        population_rates(FAIR, threshold)


def test_the_geometry_cannot_be_changed_by_accident():
    found = geometry(FAIR)
    for array in (found.disease, found.own, found.means, found.scales):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1

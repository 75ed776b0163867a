"""Cohorts of drawn features: sizes, streams of random numbers, correlation within patients, label noise.

Statistical tests have fixed seeds and a tolerance of four standard errors: such a test would fail by chance
for one seed in 16,000.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from frame.cohorts.phantom.feature_level import feature_cohort
from frame.cohorts.phantom.feature_truth import geometry, mixed, shared_head
from frame.cohorts.phantom.feature_world import FeatureGroup, FeatureWorld
from frame.errors import InputError

SIGMAS = 4
GROUPS = (
    FeatureGroup("A", train=70, validation=11, test=40),
    FeatureGroup("B", train=31, validation=0, test=25),
    FeatureGroup("C", train=5, validation=3, test=1),
)
SMALL = FeatureWorld(GROUPS, dimensions=12, seed=5)


def rows_of(cohort, group, split):
    kept = (cohort.groups == group) & (cohort.split == split)
    return {name: getattr(cohort, name)[kept] for name in cohort.__dataclass_fields__}


def same(one, other, n=None):
    return all(one[name][:n].tobytes() == other[name][:n].tobytes() for name in one)


def within(found, expected, error):
    return abs(found - expected) < SIGMAS * error


def intraclass(values, patients):
    """ANOVA estimate of the one-way intraclass correlation, patients with equally many images."""
    n_images = np.bincount(pd.factorize(patients)[0])
    (each,) = set(n_images.tolist())
    table = values.reshape(-1, each)
    between = each * table.mean(axis=1).var(ddof=1)
    inside = table.var(axis=1, ddof=1).mean()
    return (between - inside) / (between + (each - 1) * inside)


def intraclass_error(value, each, n_patients):
    """Standard error of that estimate (Fisher)."""
    spread = (1 - value) * (1 + (each - 1) * value)
    return np.sqrt(2 * spread**2 / (each * (each - 1) * (n_patients - 1)))


@pytest.mark.parametrize("unit", ["images", "patients"])
def test_every_group_and_split_has_its_size(unit):
    cohort = feature_cohort(replace(SMALL, unit=unit))
    table = cohort.table()
    for group in GROUPS:
        for split in ("train", "validation", "test"):
            part = table[(table["group"] == group.name) & (table["split"] == split)]
            found = len(part) if unit == "images" else part["patient"].nunique()
            assert found == getattr(group, split), (group.name, split)
    # A patient lies in one group and one split, and his images lie together.
    assert len(table[["patient", "group", "split"]].drop_duplicates()) == table["patient"].nunique()
    assert (table["patient"].diff() != 0).sum() == table["patient"].nunique()
    assert cohort.features.shape == (len(cohort), 12) == (len(table), 12)


def test_parts_are_the_rows_of_a_split():
    cohort = feature_cohort(SMALL)
    parts = [cohort.part(split) for split in ("train", "validation", "test")]
    assert [len(part) for part in parts] == [106, 14, 66]
    assert all(
        (part.split == name).all() for part, name in zip(parts, ("train", "validation", "test"), strict=True)
    )
    assert parts[2].features.tobytes() == cohort.features[cohort.split == "test"].tobytes()
    with pytest.raises(InputError, match="split is 'dev'; allowed are train, validation, test"):
        cohort.part("dev")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_features_have_the_stated_type(dtype):
    cohort = feature_cohort(replace(SMALL, dtype=dtype))
    assert cohort.features.dtype == dtype
    assert np.isfinite(cohort.features).all()
    exact = feature_cohort(replace(SMALL, dtype="float64"))
    np.testing.assert_allclose(cohort.features, exact.features, atol=1e-5)


def test_the_seed_and_the_number_decide_every_byte():
    one, again = feature_cohort(SMALL, 2), feature_cohort(FeatureWorld(GROUPS, dimensions=12, seed=5), 2)
    for name in one.__dataclass_fields__:
        assert getattr(one, name).tobytes() == getattr(again, name).tobytes()
    for other in (feature_cohort(SMALL, 3), feature_cohort(replace(SMALL, seed=6), 2)):
        assert not np.isin(one.features, other.features).any()
        assert not np.isin(one.latent, other.latent).any()
    for number in (-1, 0.5):
        with pytest.raises(InputError, match="number is"):
            feature_cohort(SMALL, number)


def test_groups_splits_and_patients_share_no_random_numbers():
    cohort = feature_cohort(replace(SMALL, decodability=0.5, auroc=0.5, icc_noise=0.0))
    assert len(np.unique(cohort.features)) == cohort.features.size
    assert len(np.unique(cohort.latent)) == len(cohort)


@pytest.mark.parametrize("unit", ["images", "patients"])
def test_a_group_that_grows_keeps_its_rows_and_those_of_the_others(unit):
    world = replace(SMALL, unit=unit, dimensions=37)
    grown = replace(GROUPS[1], train=4031, test=26, validation=7)
    before = feature_cohort(world)
    after = feature_cohort(replace(world, groups=(GROUPS[0], grown, GROUPS[2])))
    for name in "AC":
        for split in ("train", "validation", "test"):
            assert same(rows_of(before, name, split), rows_of(after, name, split))
    for split in ("train", "test"):
        one, other = rows_of(before, "B", split), rows_of(after, "B", split)
        n = len(one["labels"])
        assert len(other["labels"]) > n
        assert same(one, other, n)


def test_one_more_group_leaves_the_others_as_they_are():
    before = feature_cohort(SMALL)
    after = feature_cohort(replace(SMALL, groups=(*GROUPS, FeatureGroup("D", train=50))))
    for group in GROUPS:
        for split in ("train", "validation", "test"):
            assert same(rows_of(before, group.name, split), rows_of(after, group.name, split))


@pytest.mark.parametrize(
    "dose",
    [{"auroc": 0.6}, {"entanglement": 0.7}, {"missed": 0.4, "invented": 0.3}],
    ids=lambda d: next(iter(d)),
)
def test_a_dose_changes_its_group_only_and_leaves_the_noise(dose):
    world = replace(SMALL, dtype="float64")
    dosed = replace(world, groups=(GROUPS[0], replace(GROUPS[1], **dose), GROUPS[2]))
    before, after = feature_cohort(world), feature_cohort(dosed)
    other = before.groups != "B"
    assert before.features[other].tobytes() == after.features[other].tobytes()
    assert before.labels[other].tobytes() == after.labels[other].tobytes()
    assert before.labels_true.tobytes() == after.labels_true.tobytes()
    changed = (after.features - before.features)[~other]
    truth = before.labels_true[~other]
    for label in (False, True):
        np.testing.assert_allclose(
            changed[truth == label], changed[truth == label][:1].repeat((truth == label).sum(), 0), atol=1e-12
        )
    if "missed" in dose:
        assert not changed.any()
        assert (before.labels != after.labels)[~other].any()
    else:
        assert np.abs(changed[truth]).max() > 0.05
        assert before.labels.tobytes() == after.labels.tobytes()


@pytest.mark.parametrize(("icc_disease", "icc_noise"), [(0.0, 0.7), (0.4, 0.0), (0.8, 0.5), (1.0, 0.2)])
def test_the_images_of_a_patient_agree_as_stated(icc_disease, icc_noise):
    each, n_patients = 3, 3000
    world = FeatureWorld(
        (FeatureGroup("A", test=n_patients), FeatureGroup("B", test=1)),
        unit="patients",
        images_each=(0, 0, 1.0),
        icc_disease=icc_disease,
        icc_noise=icc_noise,
        dimensions=6,
        dtype="float64",
        seed=11,
    )
    cohort = feature_cohort(world)
    kept = cohort.groups == "A"
    patients, truth = cohort.patients[kept], cohort.labels_true[kept]
    found = intraclass(cohort.latent[kept], patients)
    assert within(found, icc_disease, intraclass_error(icc_disease, each, n_patients) + 1e-12)
    noise = cohort.features[kept].copy()
    for label in (False, True):
        noise[truth == label] -= noise[truth == label].mean(axis=0)
    # The noise of a feature and that of a score of all features.
    for values in (noise[:, 0], noise @ shared_head(world)):
        found = intraclass(values, patients)
        assert within(found, icc_noise, intraclass_error(icc_noise, each, n_patients))
    # Both images of a patient have the disease as often as correlated latents say.
    pairs = truth.reshape(n_patients, each)
    both = (pairs[:, 0] & pairs[:, 1]).mean()
    cut = stats.norm.ppf(world.prevalence)
    correlation = [[1, icc_disease], [icc_disease, 1]]
    joint = float(stats.multivariate_normal([0, 0], correlation, allow_singular=True).cdf([cut, cut]))
    assert within(both, joint, np.sqrt(joint * (1 - joint) / n_patients))


def test_patients_have_the_stated_numbers_of_images():
    shares, n = (0.5, 0.0, 0.3, 0.2), 4000
    groups = (FeatureGroup("A", test=n), FeatureGroup("B", test=n, prevalence=0.1))
    world = FeatureWorld(groups, unit="patients", images_each=shares, dimensions=3, seed=12)
    table = feature_cohort(world).table()
    for _, part in table.groupby("group"):
        images = part.groupby("patient").size()
        for number, share in enumerate(shares, start=1):
            assert within((images == number).mean(), share, np.sqrt(share * (1 - share) / n) + 1e-12)
        # How many images a patient has says nothing about his disease.
        first = part.drop_duplicates("patient").set_index("patient")["label_true"]
        assert stats.fisher_exact(pd.crosstab(first, images == 1).to_numpy()).pvalue > 1e-4


def test_prevalences_and_wrong_labels_are_as_stated():
    n = 20_000
    groups = (
        FeatureGroup("A", test=n),
        FeatureGroup("B", test=n, prevalence=0.1, missed=0.3, invented=0.05),
        FeatureGroup("C", test=n, prevalence=0.6, missed=0.1),
    )
    world = FeatureWorld(groups, prevalence=0.25, images_each=(1.0,), dimensions=4, dtype="float64", seed=13)
    cohort = feature_cohort(world)
    score = cohort.features @ shared_head(world)
    for group in groups:
        kept = cohort.groups == group.name
        truth, wrong = cohort.labels_true[kept], (cohort.labels != cohort.labels_true)[kept]
        share = world.prevalence_of(group)
        assert within(truth.mean(), share, np.sqrt(share * (1 - share) / n))
        for label, rate in ((True, group.missed), (False, group.invented)):
            of_class = wrong[truth == label]
            if not rate:
                assert not of_class.any()
                continue
            assert within(of_class.mean(), rate, np.sqrt(rate * (1 - rate) / len(of_class)))
            # Whether a label is wrong depends on neither the features nor the severity.
            for values in (score[kept][truth == label], cohort.latent[kept][truth == label]):
                assert stats.mannwhitneyu(values[of_class], values[~of_class]).pvalue > 1e-4


@pytest.mark.parametrize("spectrum", ["isotropic", "decaying"])
def test_the_noise_has_the_stated_spectrum(spectrum):
    n, size = 20_000, 8
    groups = (FeatureGroup("A", test=n), FeatureGroup("B", test=1))
    world = FeatureWorld(groups, spectrum=spectrum, dimensions=size, images_each=(1.0,), auroc=0.5, seed=14)
    features = feature_cohort(world).features[:n].astype(np.float64)
    covariance = np.cov(features.T)
    expected = 1.0 / np.arange(1, size + 1) if spectrum == "decaying" else np.ones(size)
    expected = expected / expected.mean()
    axes = np.stack([mixed(np.eye(size)[k : k + 1])[0] for k in range(size)])
    np.testing.assert_allclose(axes @ axes.T, np.eye(size), atol=1e-12)
    along = np.einsum("ki,ij,kj->k", axes, covariance, axes)
    assert (np.abs(along / expected - 1) < SIGMAS * np.sqrt(2 / n)).all()
    correlations = (axes @ covariance @ axes.T) / np.sqrt(np.outer(expected, expected)) - np.diag(
        along / expected
    )
    assert np.abs(correlations).max() < SIGMAS / np.sqrt(n)
    # Features of equal variance: standardising them does not undo the spectrum.
    assert (np.abs(np.diag(covariance) - 1) < SIGMAS * np.sqrt(2 / n)).all()
    largest = np.abs(np.corrcoef(features.T) - np.eye(size)).max()
    assert (largest > 0.2) == (spectrum == "decaying")


def test_the_means_are_those_of_the_closed_forms():
    n = 20_000
    groups = (
        FeatureGroup("A", test=n),
        FeatureGroup("B", test=n, auroc=0.65, entanglement=0.6, prevalence=0.5),
    )
    world = FeatureWorld(groups, dimensions=5, images_each=(1.0,), dtype="float64", seed=15)
    cohort = feature_cohort(world)
    found = geometry(world)
    for place, group in enumerate(groups):
        for label in (0, 1):
            kept = (cohort.groups == group.name) & (cohort.labels_true == bool(label))
            mean = cohort.features[kept].mean(axis=0)
            expected = mixed((found.means[place, label] * found.scales)[None])[0]
            error = cohort.features[kept].std(axis=0) / np.sqrt(kept.sum())
            assert (np.abs(mean - expected) < SIGMAS * error).all()

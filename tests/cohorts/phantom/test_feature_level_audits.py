"""What drawn features are for: how often an audit calls a difference where there is none, and where there is.

All cohorts have fixed seeds; tolerances are four standard errors.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from frame.audits import audit
from frame.cohorts.phantom.feature_level import feature_cohort
from frame.cohorts.phantom.feature_truth import population_aurocs, shared_head
from frame.cohorts.phantom.feature_world import FeatureGroup, FeatureWorld

SIGMAS = 4
COHORTS, POWER_COHORTS = 200, 60
#: 600 images of 100 patients, six each, whose images agree much.
WORLD = FeatureWorld(
    (FeatureGroup("A", test=300), FeatureGroup("B", test=180), FeatureGroup("C", test=120)),
    images_each=(0, 0, 0, 0, 0, 1.0),
    prevalence=0.4,
    icc_disease=0.9,
    icc_noise=0.6,
    dimensions=8,
    seed=31,
)


def audits(world, cohorts, *, labels="labels", by_image=False):
    head = shared_head(world)
    rows = []
    for number in range(cohorts):
        cohort = feature_cohort(world, number)
        given = (cohort.features @ head, getattr(cohort, labels), cohort.groups)
        found = audit(*given, cohort.patients, resamples=0)
        rows.append(
            {
                "p": found.p,
                "p_image": audit(*given, resamples=0).p if by_image else np.nan,
                **dict(zip(found.table["group"], found.table["value"], strict=True)),
            }
        )
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def fair():
    return audits(WORLD, COHORTS, by_image=True)


def error(values):
    return values.std(ddof=1) / np.sqrt(len(values))


def rate_error(rate, cohorts):
    return np.sqrt(rate * (1 - rate) / cohorts)


def test_the_groups_of_a_fair_world_have_the_same_auroc(fair):
    for name in WORLD.names:
        assert abs(fair[name].mean() - 0.8) < SIGMAS * error(fair[name])
    for one, other in (("A", "B"), ("A", "C"), ("B", "C")):
        gap = fair[one] - fair[other]
        assert abs(gap.mean()) < SIGMAS * error(gap)


def test_an_audit_of_patients_keeps_its_level_and_one_of_images_does_not(fair):
    assert fair["p"].notna().all()
    by_patient, by_image = (fair["p"] <= 0.05).mean(), (fair["p_image"] <= 0.05).mean()
    assert abs(by_patient - 0.05) < SIGMAS * rate_error(0.05, COHORTS)
    assert by_patient > 0
    assert by_image > 0.05 + SIGMAS * rate_error(by_image, COHORTS)
    assert by_image > by_patient + 0.1


def test_with_one_image_a_patient_both_are_the_same():
    world = replace(WORLD, images_each=(1.0,))
    found = audits(world, 3, by_image=True)
    assert found["p"].tolist() == pytest.approx(found["p_image"].tolist())


def test_power_rises_with_the_planted_difference(fair):
    rejected = [(fair["p"][:POWER_COHORTS] <= 0.05).mean()]
    for lowered in (0.65, 0.5):
        groups = (WORLD.groups[0], replace(WORLD.groups[1], auroc=lowered), WORLD.groups[2])
        world = replace(WORLD, groups=groups)
        found = audits(world, POWER_COHORTS)
        stated = population_aurocs(world).set_index("group")["head"]
        for name in world.names:
            assert abs(found[name].mean() - stated[name]) < SIGMAS * error(found[name])
        rejected.append((found["p"] <= 0.05).mean())
    assert rejected[0] + 0.15 < rejected[1] < rejected[2] - 0.15


def test_label_noise_makes_a_difference_in_the_labels_and_none_in_the_images():
    groups = (
        replace(WORLD.groups[0], test=400),
        replace(WORLD.groups[1], test=300, missed=0.4, invented=0.3),
    )
    world = replace(WORLD, groups=groups, images_each=(0.5, 0.5), seed=32)
    stated = population_aurocs(world).set_index("group")
    assert stated["head"].tolist() == pytest.approx([0.8, 0.8])
    assert stated.loc["B", "head_recorded"] < 0.65
    rejected = {}
    for labels, column in (("labels", "head_recorded"), ("labels_true", "head")):
        found = audits(world, POWER_COHORTS, labels=labels)
        for name in world.names:
            assert abs(found[name].mean() - stated.loc[name, column]) < SIGMAS * error(found[name])
        rejected[labels] = (found["p"] <= 0.05).mean()
    assert rejected["labels"] > 0.6
    assert rejected["labels_true"] < 0.05 + SIGMAS * rate_error(0.05, POWER_COHORTS)

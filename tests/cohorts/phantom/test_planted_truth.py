"""Every planted fact, tested from the generator: what is stated is there, and nothing else is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from frame.cohorts.phantom.drawing import OLDEST_BAND, drawing_table, pictures
from frame.cohorts.phantom.population import population
from frame.cohorts.phantom.truth import (
    COMMON,
    RACES,
    SOURCES,
    AgePlant,
    LabelNoise,
    PhantomTruth,
    RacePlant,
    modality_of,
)
from frame.cohorts.schema import FINDINGS
from frame.workspace.profiles import load_profile

CHEST = SOURCES["chest"]
#: A test of a fact that holds fails by chance once in this many seeds.
RARELY = 1e-4


@pytest.fixture(scope="module")
def chest(populations):
    return pd.concat([populations[source] for source in CHEST], ignore_index=True)


def test_the_profile_states_this_world(truth):
    profile = load_profile("demo")
    assert profile.phantom == truth == PhantomTruth()
    assert sorted(profile.sources) == sorted(truth.sources)


def test_counts_match_the_profile(manifests):
    profile = load_profile("demo")
    for source in profile.sources:
        assert len(manifests[source].table) == profile.phantom.sizes(source).total
    totals = {
        modality: sum(len(manifests[source].table) for source in names) for modality, names in SOURCES.items()
    }
    assert totals == {"chest": 6000, "skin": 1500, "fundus": 1000}


def test_splits_are_about_those_that_were_planned(manifests):
    chest = pd.concat([manifests[source].table for source in CHEST])
    found = chest["split"].value_counts()
    for split, planned in (("train", 3000), ("validation", 500), ("test", 2500)):
        assert abs(found[split] - planned) < 0.08 * planned + 40, split


def test_every_race_has_test_images_and_positives_of_the_common_findings(truth, manifests):
    table = pd.concat([manifests[source].table for source in CHEST])
    test = table[(table["split"] == "test") & table["race_recorded"].notna()]
    assert test["race_recorded"].value_counts().min() >= 150
    common = [finding for finding in FINDINGS["chest"] if truth.prevalences[finding] >= COMMON]
    assert len(common) > 8
    for race in RACES:
        for finding in common:
            assert (test.loc[test["race_recorded"] == race, finding] == 1).any(), (race, finding)


@pytest.mark.parametrize("rate", [0.15, 0.40])
def test_labels_of_the_noisy_group_are_flipped_at_the_stated_rate(truth, rate):
    world = truth.model_copy(update={"noise": LabelNoise(rate=rate)})
    finding, group = world.noise.finding, world.noise.group
    images = pd.concat([population(world, source) for source in CHEST], ignore_index=True)
    known = images[images[f"{finding}_recorded"].isin([0, 1])]
    wrong = known[f"{finding}_recorded"].astype(bool) != known[f"{finding}_true"]
    noisy = known["race"] == group
    assert not wrong[~noisy].any()
    assert stats.binomtest(int(wrong[noisy].sum()), int(noisy.sum()), rate).pvalue > RARELY
    # Positive and negative labels alike.
    present = known.loc[noisy, f"{finding}_true"]
    counts = pd.crosstab(present, wrong[noisy])
    assert stats.fisher_exact(counts.to_numpy()).pvalue > RARELY


def test_no_noise_no_wrong_label(truth):
    world = truth.model_copy(update={"noise": LabelNoise(rate=0.0)})
    for source in CHEST:
        images = population(world, source)
        known = images[images["cardiomegaly_recorded"].isin([0, 1])]
        assert (known["cardiomegaly_recorded"].astype(bool) == known["cardiomegaly_true"]).all()


@pytest.mark.parametrize(("contrast", "control"), [(0.5, "support_devices"), (0.25, "edema")])
def test_the_oldest_are_drawn_fainter_but_for_the_control(truth, contrast, control):
    world = truth.model_copy(update={"age": AgePlant(contrast=contrast, control=control)})
    for source in ("mimic_cxr", "nih_cxr14"):
        images = population(world, source)
        drawn = drawing_table(world, images)
        old = (images["age"] >= OLDEST_BAND).to_numpy()
        assert 0.05 < old.mean() < 0.35
        for finding in FINDINGS["chest"]:
            expected = images[f"{finding}_severity"] * np.where(old & (finding != control), contrast, 1.0)
            np.testing.assert_array_equal(drawn[finding], expected)


@pytest.mark.parametrize("finding", ["support_devices", "pleural_effusion"])
def test_bone_alone_changes_the_trace_of_a_finding_by_a_few_percent(truth, finding):
    """Also of the control; the rest of what age does is the contrast of the oldest."""
    rows = drawing_table(truth, population(truth, "mimic_cxr").iloc[:40])
    rows = rows.assign(**{finding: 0.6})
    traces = []
    for age in (25.0, 90.0):
        there = pictures(rows.assign(age=age), "mimic_cxr", 64).astype(np.float64)
        healthy = pictures(rows.assign(age=age, **{finding: 0.0}), "mimic_cxr", 64)
        traces.append(np.sqrt(np.mean((there - healthy) ** 2)))
    assert 0.005 < traces[1] / traces[0] - 1 < 0.06


def test_without_the_age_effect_nobody_is_fainter(truth):
    world = truth.model_copy(update={"age": AgePlant(contrast=1.0)})
    images = population(world, "mimic_cxr")
    drawn = drawing_table(world, images)
    for finding in FINDINGS["chest"]:
        np.testing.assert_array_equal(drawn[finding], images[f"{finding}_severity"])


@pytest.mark.parametrize("attribute", ["race", "sex", "insurance"])
def test_findings_do_not_depend_on_the_group(chest, attribute):
    """Prevalence and severity: one image a patient, so that the tests' assumption holds."""
    first = chest[(chest["image_of_patient"] == 0) & (chest["source"] != "vindr_pcxr")]
    groups = first[attribute].notna()
    p_values = []
    for finding in FINDINGS["chest"]:
        counts = pd.crosstab(first.loc[groups, attribute], first.loc[groups, f"{finding}_true"])
        p_values.append(stats.chi2_contingency(counts.to_numpy()).pvalue)
        present = first[groups & first[f"{finding}_true"]]
        parts = [part for _, part in present.groupby(attribute)[f"{finding}_severity"]]
        p_values.append(stats.kruskal(*parts).pvalue)
    assert min(p_values) > RARELY / len(p_values)


def test_groups_do_not_depend_on_each_other(chest):
    first = chest[(chest["image_of_patient"] == 0) & (chest["source"] != "vindr_pcxr")]
    bands = pd.cut(first["age"], [0, 40, 60, 80, 120], right=False)
    for one, other in (("race", "sex"), ("race", "insurance"), ("sex", "insurance")):
        counts = pd.crosstab(first[one], first[other]).to_numpy()
        assert stats.chi2_contingency(counts).pvalue > RARELY, (one, other)
    counts = pd.crosstab(first["race"], bands.astype(str)).to_numpy()
    assert stats.chi2_contingency(counts).pvalue > RARELY


@pytest.mark.parametrize("texture", ["fixed", "random_phase"])
@pytest.mark.parametrize("source", ["chexpert", "fairvision"])
def test_race_adds_a_faint_mark_and_changes_nothing_else(truth, source, texture):
    rows = population(truth, source).iloc[:40]
    plain = truth.model_copy(update={"race": RacePlant(texture="none")})
    marked = truth.model_copy(update={"race": RacePlant(texture=texture)})
    one = pictures(drawing_table(plain, rows), source, 64).astype(np.float64)
    other = pictures(drawing_table(marked, rows), source, 64).astype(np.float64)
    difference = other - one
    # The mark is there, and a layman does not see it.
    assert 0.2 < difference.std() < 10
    # It hardly changes the means of blocks, which is what shows findings to a weak encoder.
    blocks = difference.reshape(len(rows), 8, 8, 8, 8).mean(axis=(2, 4))
    assert blocks.std() < 0.5 * difference.std()


def test_without_the_mark_race_changes_no_pixel(truth):
    plain = truth.model_copy(update={"race": RacePlant(texture="none")})
    rows = population(plain, "chexpert").iloc[:20]
    other = rows.assign(race=list(reversed(rows["race"].tolist())))
    assert not rows["race"].equals(other["race"])
    one = pictures(drawing_table(plain, rows), "chexpert", 64)
    assert one.tobytes() == pictures(drawing_table(plain, other), "chexpert", 64).tobytes()


def test_sex_and_insurance_change_no_pixel(truth):
    rows = population(truth, "mimic_cxr").iloc[:20]
    turned = rows["sex"].map({"female": "male", "male": "female"})
    other = rows.assign(sex=turned, insurance=list(reversed(rows["insurance"].tolist())))
    one = pictures(drawing_table(truth, rows), "mimic_cxr", 64)
    assert one.tobytes() == pictures(drawing_table(truth, other), "mimic_cxr", 64).tobytes()


def test_images_of_a_patient_are_alike_in_their_findings(truth, chest):
    """Two images of a patient both have a finding as often as latents with the stated correlation do."""
    pairs = chest[chest["source"] == "mimic_cxr"]
    both = pairs[pairs["image_of_patient"] == 0].merge(
        pairs[pairs["image_of_patient"] == 1], on="patient_number", suffixes=("", "_again")
    )
    cut = stats.norm.ppf(1 - truth.prevalences["pleural_effusion"])
    joint = stats.multivariate_normal([0, 0], [[1, truth.intraclass], [truth.intraclass, 1]]).cdf(
        [-cut, -cut]
    )
    found = (both["pleural_effusion_true"] & both["pleural_effusion_true_again"]).sum()
    assert stats.binomtest(int(found), len(both), float(joint)).pvalue > RARELY


@pytest.mark.parametrize("source", ["isic_2019", "fitzpatrick17k", "ddi", "fairvision"])
def test_the_other_modalities_have_the_stated_prevalence(truth, populations, source):
    images = populations[source]
    modality = modality_of(source)
    (finding,) = FINDINGS[modality]
    stated = truth.malignant if modality == "skin" else truth.glaucoma
    subject = "subject_number" if modality == "skin" else "patient_number"
    first = images.drop_duplicates(subject)
    first = first[first[f"{finding}_recorded"].notna()]
    assert stats.binomtest(int(first[f"{finding}_true"].sum()), len(first), stated).pvalue > RARELY

"""The population: counts, shares, and every planted fact, from the tables alone."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pandas as pd
import pytest

from frame.cohorts.manifest import build_manifest, located_files
from frame.cohorts.phantom.drawing import TEXTURE_COLUMNS, drawing_table
from frame.cohorts.phantom.population import population
from frame.cohorts.phantom.population_chest import WITH_RACE
from frame.cohorts.phantom.truth import COMMON, ROOTS, SOURCES, RacePlant
from frame.cohorts.schema import FINDINGS
from frame.errors import InputError
from frame.workspace.profiles import load_profile

CHEST = SOURCES["chest"]


def _chest(populations):
    return pd.concat([populations[source] for source in CHEST], ignore_index=True)


def test_counts_are_the_truths(truth, populations):
    for source, images in populations.items():
        assert len(images) == truth.sizes(source).total, source
        assert images["image_id"].is_unique
        assert images["file"].is_unique


@pytest.mark.parametrize("source", ["mimic_cxr", "vindr_cxr", "vindr_pcxr", "fairvision"])
def test_released_splits_are_the_truths(truth, populations, source):
    counts = populations[source]["released_split"].value_counts()
    for split, size in truth.sizes(source).model_dump().items():
        assert counts.get(split, 0) == size


def test_same_truth_same_table(truth, populations):
    for source in ("mimic_cxr", "isic_2019", "fairvision"):
        pd.testing.assert_frame_equal(population(truth, source), populations[source])
    other = truth.model_copy(update={"seed": 1})
    assert not population(other, "fairvision")["age"].equals(populations["fairvision"]["age"])


def test_an_unknown_source_is_refused(truth):
    with pytest.raises(InputError, match=r"does not draw 'iu_xray'; it draws mimic_cxr, chexpert"):
        population(truth, "iu_xray")


def test_patients_are_whole(populations):
    for source in CHEST:
        images = populations[source]
        by = images.groupby("patient_number")
        for column in ("race", "sex", "age", "insurance", "race_recorded", "age_recorded", "released_split"):
            pairs = images[["patient_number", column]].drop_duplicates()
            assert len(pairs) == len(by), (source, column)
        each = by.size()
        assert each.max() == (1 if source.startswith("vindr") else 4)
        assert each.mean() == pytest.approx(1 if source.startswith("vindr") else 2.1, abs=0.05)


def test_shares_of_patients(truth, populations):
    people = populations["mimic_cxr"].drop_duplicates("patient_number")
    for column, shares in (("race", truth.races), ("insurance", truth.insurances)):
        for level, share in shares.items():
            assert (people[column] == level).mean() == pytest.approx(share, abs=0.004), level
    assert (people["age"] >= 80).mean() == pytest.approx(truth.ages[">=80"], abs=0.004)
    assert (people["sex"] == "female").mean() == pytest.approx(truth.female, abs=0.004)


def test_prevalences(truth, populations):
    images = _chest(populations)
    adults = images[images["source"] != "vindr_pcxr"]
    for finding, prevalence in truth.prevalences.items():
        # About 5,700 images of 2,600 patients who share half of the latent: twice the binomial variance.
        spread = 4 * sqrt(2 * prevalence * (1 - prevalence) / len(adults))
        assert adults[f"{finding}_true"].mean() == pytest.approx(prevalence, abs=spread), finding
    children = images[images["source"] == "vindr_pcxr"]
    assert children["pneumonia_true"].mean() == pytest.approx(truth.pneumonia_children, abs=0.11)


def test_every_finding_is_recorded_positive_somewhere(populations):
    images = _chest(populations)
    for finding in FINDINGS["chest"]:
        assert (images[f"{finding}_recorded"] == 1).sum() > 100, finding


def test_label_noise_has_the_stated_rate(truth, populations):
    images = _chest(populations)
    recorded = images[f"{truth.noise.finding}_recorded"]
    usable = recorded.isin([0, 1]).to_numpy(dtype=bool)
    wrong = (recorded[usable] == 1).to_numpy(dtype=bool) != images.loc[usable, f"{truth.noise.finding}_true"]
    group = (images.loc[usable, "race"] == truth.noise.group).to_numpy()
    n = int(group.sum())
    assert n > 700
    spread = 3 * sqrt(truth.noise.rate * (1 - truth.noise.rate) / n)
    assert wrong[group].mean() == pytest.approx(truth.noise.rate, abs=spread)
    assert not wrong[~group].any()
    assert (wrong.to_numpy() == images.loc[usable, "labels_flipped"].to_numpy()).all()
    # A blank or uncertain label says neither, so that nothing is flipped there.
    assert not images.loc[~usable, "labels_flipped"].any()
    assert (images.loc[~usable, "race"] == truth.noise.group).any()


def test_no_other_label_is_wrong(truth, populations):
    images = _chest(populations)
    for finding in FINDINGS["chest"]:
        if finding != truth.noise.finding:
            recorded = images[f"{finding}_recorded"]
            usable = recorded.isin([0, 1]).to_numpy(dtype=bool)
            assert ((recorded[usable] == 1) == images.loc[usable, f"{finding}_true"]).all(), finding


def test_uncertain_labels_hide_as_many_positives_in_every_group(truth, populations):
    """Counted as negative, they are wrong for the stated share of the positives that are not blank."""
    images = _chest({source: populations[source] for source in CHEST})
    images = images[images["source"].isin(WITH_RACE) & (images["released_split"] != "validation")]
    share = truth.recording.uncertain / (1 - truth.recording.blank)
    assert share == pytest.approx(0.047, abs=0.0005)
    for group in truth.races:
        hidden = total = 0
        for finding in FINDINGS["chest"]:
            positive = images[f"{finding}_true"] & (images["race"] == group)
            codes = images.loc[positive, f"{finding}_recorded"]
            hidden += int((codes == -1).sum())
            total += int((codes != -2).sum())
        assert hidden / total == pytest.approx(share, abs=4 * sqrt(share / total)), group


def test_gaps_have_the_stated_rates(truth, populations):
    for source in CHEST:
        images = populations[source]
        codes = images[[f"{finding}_recorded" for finding in FINDINGS["chest"]]]
        if source not in WITH_RACE:
            assert not codes.isin([-1, -2]).any().any()
            continue
        mined = codes[(images["released_split"] != "validation") | (source != "chexpert")]
        n = mined.size
        for code, rate in ((-2, truth.recording.blank), (-1, truth.recording.uncertain)):
            assert (mined == code).to_numpy().mean() == pytest.approx(rate, abs=4 * sqrt(rate / n))


def test_sites_record_what_they_should(populations):
    for source in CHEST:
        images = populations[source]
        assert images["race_recorded"].notna().any() == (source in WITH_RACE)
        assert images["insurance_recorded"].notna().any() == (source in WITH_RACE)
        assert (images["view_recorded"] == "unknown").all() == source.startswith("vindr")
    children = populations["vindr_pcxr"]
    assert children["age_recorded"].isna().all()
    assert children["sex_recorded"].isna().all()
    assert set(populations["fitzpatrick17k"]["tone"]) == set(populations["ddi"]["tone"]) == set(range(1, 7))


@pytest.mark.parametrize("source", ["mimic_cxr", "vindr_pcxr"])
def test_age_weakens_all_findings_but_the_control(truth, populations, source):
    images = populations[source]
    drawn = drawing_table(truth, images)
    old = (images["age"] >= 80).to_numpy()
    assert old.any() == (source != "vindr_pcxr")
    for finding in FINDINGS["chest"]:
        severity = images[f"{finding}_severity"].to_numpy()
        factor = 1.0 if finding == truth.age.control else np.where(old, truth.age.contrast, 1.0)
        np.testing.assert_allclose(drawn[finding], severity * factor, rtol=1e-12)


def test_race_changes_nothing_but_the_texture(truth, populations):
    images = populations["chexpert"]
    drawn = drawing_table(truth, images)
    moved = images.assign(race=np.roll(images["race"].to_numpy(), 1), sex="male", insurance="Other")
    again = drawing_table(truth, moved)
    pd.testing.assert_frame_equal(
        drawn.drop(columns=list(TEXTURE_COLUMNS)), again.drop(columns=list(TEXTURE_COLUMNS))
    )
    assert set(drawn["texture_group"]) == {0, 1, 2, 3, 4}
    bare = drawing_table(truth.model_copy(update={"race": RacePlant(texture="none")}), images)
    assert set(bare["texture"]) == {"none"}


def test_severities_do_not_depend_on_groups(populations):
    """Race, sex and insurance are drawn apart from the latents; no group stands out beyond chance."""
    images = _chest(populations)
    for column in ("race", "sex"):
        for finding in ("pleural_effusion", "edema", "support_devices"):
            rates = images.groupby(column)[f"{finding}_true"].agg(["mean", "size"])
            overall = images[f"{finding}_true"].mean()
            spread = np.sqrt(2 * overall * (1 - overall) / rates["size"])
            assert (np.abs(rates["mean"] - overall) / spread < 3.5).all(), (column, finding)


def test_a_look_for_each_site_or_none(truth, populations):
    looks = [int(drawing_table(truth, populations[source])["site_look"].iloc[0]) for source in CHEST]
    assert looks == [0, 1, 2, 3, 4, 5]
    plain = truth.model_copy(update={"site": "none"})
    looks = [int(drawing_table(plain, populations[source])["site_look"].iloc[0]) for source in CHEST]
    assert looks == [0, 0, 0, 0, 0, 5]


def test_drawing_rows_do_not_depend_on_the_others(truth, populations):
    for source in ("mimic_cxr", "isic_2019", "fairvision"):
        images = populations[source]
        whole = drawing_table(truth, images)
        part = drawing_table(truth, images.iloc[40:50])
        pd.testing.assert_frame_equal(part, whole.iloc[40:50].reset_index(drop=True))


def test_smallest_race_group_is_large_enough_at_the_demos_seed(truth, tables):
    """The book's promise, of the profile itself: its truth, its splits and its seed."""
    profile = load_profile("demo")
    assert profile.phantom == truth
    parts = []
    for source in WITH_RACE:
        settings = profile.sources[source].model_copy(update={"images": False})
        files = located_files(source, settings, tables / source, tables / source / ROOTS[source])
        parts.append(build_manifest(files, settings, profile.seed).table)
    test = pd.concat(parts, ignore_index=True)
    test = test[test["split"] == "test"]
    counts = test["race_recorded"].value_counts()
    assert len(counts) == 5
    assert counts.min() > 150
    common = [finding for finding, share in truth.prevalences.items() if share >= COMMON]
    assert len(common) == 13  # all of them
    positives = (test[common] == 1).groupby(test["race_recorded"], observed=True).sum()
    assert positives.to_numpy().min() >= 1


def test_chest_splits_come_close_to_the_plan(manifests):
    counts = sum(manifests[source].table["split"].value_counts() for source in CHEST)
    assert abs(counts["train"] - 3000) < 60
    assert abs(counts["validation"] - 500) < 60
    assert abs(counts["test"] - 2500) < 60

"""What is planted, judged by what a linear encoder finds in fifty worlds that differ in their seed alone.

The worlds are small and their groups are large, so that fifty of them say something of each finding: each has
two sites, one image a patient, all races alike frequent, half of the patients in the oldest band, and every
finding in 12 of 100 images. They are drawn at 32 pixels with and without the mark of race. A linear head on
block means is fitted on every second world and scores the others, and a finding's AUROC in a group is the
share of the right order among pairs of images of the same world. Its standard error is that of the Monte
Carlo: a jackknife over the worlds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from frame.cohorts.phantom.drawing import OLDEST_BAND, drawing_table, pictures
from frame.cohorts.phantom.population import population
from frame.cohorts.phantom.truth import AGE_BANDS, RACES, PhantomTruth, RacePlant, Sizes
from frame.cohorts.schema import FINDINGS
from frame.figures.phantom_decoding import block_means

WORLDS = 50
IMAGES = 200
SIDE = 32
SITES = ("mimic_cxr", "nih_cxr14")
CHEST = FINDINGS["chest"]
CONTROL = PhantomTruth().age.control
#: Standard errors beyond which a mean is not 0, among some 200 comparisons; and by which each planted
#: difference, one a finding, must differ from 0.
BEYOND, CLEARLY = 4.0, 3.0


def world(seed: int, mark: str) -> PhantomTruth:
    half = Sizes(train=IMAGES // 4, validation=0, test=IMAGES // 4)
    return PhantomTruth(
        seed=seed,
        chest=dict.fromkeys(SITES, half),
        skin={},
        fundus={},
        images_each=(1.0,),
        races=dict.fromkeys(RACES, 1 / len(RACES)),
        ages=dict(zip(AGE_BANDS, (0.16, 0.17, 0.17, 0.5), strict=True)),
        female=0.5,
        prevalences=dict.fromkeys(CHEST, 0.12),
        race=RacePlant(texture=mark),
    )


@dataclass(frozen=True)
class Drawn:
    """All worlds: the truth of each image, and a score of each image for each of some things to be told."""

    table: pd.DataFrame
    scores: dict[str, dict[str, NDArray[np.float64]]]

    def areas(self, mark: str, told: str, group: NDArray[np.bool_]) -> NDArray[np.float64]:
        """For all worlds, and with each left out: the AUROC in a group, from pairs within a world."""
        # The images of a world stand together, as many in each.
        cells = (WORLDS, IMAGES)
        labels = self.table[told].to_numpy(dtype=bool).reshape(cells)
        scores, inside = self.scores[mark][told].reshape(cells), group.reshape(cells)
        counts = np.array(
            [ordered(s[rows], y[rows]) for s, y, rows in zip(scores, labels, inside, strict=True)]
        )
        total = counts.sum(axis=0)
        right, pairs = np.vstack([total, total - counts]).T
        return right / pairs


def ordered(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> tuple[float, int]:
    """Pairs of a positive and a negative in the right order, and all pairs."""
    n_positive = int(labels.sum())
    above = scores[labels][:, None] > scores[~labels]
    return float(above.sum()), n_positive * (len(labels) - n_positive)


def mean_and_error(values: NDArray[np.float64]) -> tuple[float, float]:
    """A statistic of all worlds with its jackknife standard error; the first value is that of all."""
    left_out = values[1:]
    spread = float(np.square(left_out - left_out.mean()).sum())
    return float(values[0]), float(np.sqrt((WORLDS - 1) / WORLDS * spread))


def head_scores(
    features: NDArray[np.float64], labels: NDArray[np.float64], folds: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Scores of all labels by ridge regression; each fold is scored by the head of the other."""
    scores = np.zeros(labels.shape)
    for fold in (0, 1):
        train = folds != fold
        mean, spread = features[train].mean(axis=0), features[train].std(axis=0)
        standard = (features - mean) / spread
        penalty = 0.02 * int(train.sum()) * np.eye(features.shape[1])
        x = standard[train]
        weights = np.linalg.solve(x.T @ x + penalty, x.T @ (labels[train] - labels[train].mean(axis=0)))
        scores[~train] = standard[~train] @ weights
    return scores


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    tables, features = [], {"fixed": [], "none": []}
    for seed in range(WORLDS):
        for source in SITES:
            rows = population(world(seed, "none"), source)
            tables.append(rows.assign(world=seed))
            for mark, parts in features.items():
                drawing = drawing_table(world(seed, mark), rows)
                parts.append(block_means(pictures(drawing, source, SIDE)))
    table = pd.concat(tables, ignore_index=True)
    table["oldest"] = table["age"] >= OLDEST_BAND
    table["woman"] = table["sex"] == "female"
    table["medicaid"] = table["insurance"] == "Medicaid"
    table["other_site"] = table["source"] == SITES[1]
    for race in RACES:
        table[race] = table["race"] == race
    told = [f"{finding}_true" for finding in CHEST] + ["woman", "medicaid", "other_site", *RACES]
    labels = table[told].to_numpy(dtype=np.float64)
    folds = table["world"].to_numpy() % 2
    scores = {
        mark: dict(zip(told, head_scores(np.concatenate(parts), labels, folds).T, strict=True))
        for mark, parts in features.items()
    }
    return Drawn(table, scores)


def everyone(drawn: Drawn) -> NDArray[np.bool_]:
    return np.ones(len(drawn.table), dtype=bool)


def gap(drawn: Drawn, mark: str, finding: str, group: str) -> NDArray[np.float64]:
    """A finding's AUROC in a group less that in the others; of races, less the mean of the other races.

    Races are not mixed, since a head that sees the mark learns by chance to score one race above another,
    which would spoil the order among the others and is the same chance in all worlds that it scores.
    """
    told = f"{finding}_true"
    inside = drawn.table[group].to_numpy(dtype=bool)
    if group not in RACES:
        return drawn.areas(mark, told, inside) - drawn.areas(mark, told, ~inside)
    others = [drawn.table[race].to_numpy(dtype=bool) for race in RACES if race != group]
    return drawn.areas(mark, told, inside) - np.mean([drawn.areas(mark, told, one) for one in others], axis=0)


def test_the_worlds_are_as_they_are_described(drawn):
    assert len(drawn.table) == WORLDS * IMAGES
    assert drawn.table.groupby("world")["race"].value_counts().groupby("race").mean().between(39, 41).all()
    assert drawn.table[[f"{finding}_true" for finding in CHEST]].mean().between(0.11, 0.13).all()
    assert drawn.table.groupby(["world", "source"])["patient_number"].nunique().eq(IMAGES // 2).all()


@pytest.mark.parametrize("finding", CHEST)
def test_every_finding_can_be_told_in_part(drawn, finding):
    area, error = mean_and_error(drawn.areas("none", f"{finding}_true", everyone(drawn)))
    assert 0.62 < area < 0.97
    assert error < 0.02


@pytest.mark.parametrize("race", RACES)
def test_race_is_told_with_the_mark_and_not_without(drawn, race):
    area, _ = mean_and_error(drawn.areas("fixed", race, everyone(drawn)))
    assert area > 0.9
    area, error = mean_and_error(drawn.areas("none", race, everyone(drawn)))
    assert abs(area - 0.5) < BEYOND * error


@pytest.mark.parametrize("mark", ["fixed", "none"])
def test_site_is_told_and_sex_and_insurance_are_not(drawn, mark):
    area, _ = mean_and_error(drawn.areas(mark, "other_site", everyone(drawn)))
    assert area > 0.9
    for told in ("woman", "medicaid"):
        area, error = mean_and_error(drawn.areas(mark, told, everyone(drawn)))
        assert abs(area - 0.5) < BEYOND * error, told


@pytest.mark.parametrize("group", [*RACES, "woman", "medicaid"])
@pytest.mark.parametrize("mark", ["fixed", "none"])
def test_findings_are_told_alike_in_all_races_and_both_sexes(drawn, mark, group):
    gaps = {finding: gap(drawn, mark, finding, group) for finding in CHEST}
    for finding, values in gaps.items():
        difference, error = mean_and_error(values)
        assert abs(difference) < BEYOND * error, finding
    difference, error = mean_and_error(np.mean(list(gaps.values()), axis=0))
    assert error < 0.008
    assert abs(difference) < BEYOND * error


@pytest.mark.parametrize("finding", CHEST)
def test_the_mark_changes_no_finding_in_any_race(drawn, finding):
    """The same worlds with and without the mark, so that chance mostly cancels."""
    told = f"{finding}_true"
    change, error = mean_and_error(
        drawn.areas("fixed", told, everyone(drawn)) - drawn.areas("none", told, everyone(drawn))
    )
    # A head has five more directions to learn, which costs it a little of what it could tell.
    assert error < 0.002
    assert abs(change) < 0.006
    for race in RACES:
        change, error = mean_and_error(gap(drawn, "fixed", finding, race) - gap(drawn, "none", finding, race))
        assert error < 0.006, race
        assert abs(change) < BEYOND * error, race


@pytest.mark.parametrize("finding", [name for name in CHEST if name != CONTROL])
def test_a_finding_is_told_worse_in_the_oldest(drawn, finding):
    difference, error = mean_and_error(gap(drawn, "none", finding, "oldest"))
    assert difference < -CLEARLY * error


def test_the_negative_control_is_told_as_well_in_the_oldest(drawn):
    difference, error = mean_and_error(gap(drawn, "none", CONTROL, "oldest"))
    assert abs(difference) < BEYOND * error
    # The error is small enough to see a control that is weakened as the other findings are.
    others = [mean_and_error(gap(drawn, "none", name, "oldest"))[0] for name in CHEST if name != CONTROL]
    assert np.mean(others) < -1.5 * BEYOND * error


def test_labels_are_flipped_at_the_stated_rate_in_the_stated_group(drawn):
    truth = PhantomTruth()
    finding, group, rate = truth.noise.finding, truth.noise.group, truth.noise.rate
    recorded = drawn.table[f"{finding}_recorded"]
    known = drawn.table[recorded.isin([0, 1])]
    wrong = recorded[known.index].astype(bool) != known[f"{finding}_true"]
    noisy = known["race"] == group
    assert not wrong[~noisy].any()
    n = int(noisy.sum())
    assert n > 1500
    assert abs(wrong[noisy].mean() - rate) < BEYOND * np.sqrt(rate * (1 - rate) / n)
    for other in CHEST:
        if other != finding:
            clean = drawn.table[drawn.table[f"{other}_recorded"].isin([0, 1])]
            assert (clean[f"{other}_recorded"].astype(bool) == clean[f"{other}_true"]).all(), other

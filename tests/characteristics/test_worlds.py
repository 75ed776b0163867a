"""Simulated cohorts: their truth is the one that is claimed."""

import numpy as np
import pytest
from scipy.stats import norm

from frame.characteristics.cells import correlated_cells, null_cells, power_cells
from frame.characteristics.worlds import IMAGES_PER_PATIENT, World, mixed_sizes, simulated_cohort
from frame.reference.placement import placements

HUGE = (300_000, 300_000)


def cohort(seed=0, **settings):
    world = World(**{"sizes": HUGE, "auroc": 0.8, "prevalence": 0.2} | settings)
    return world, simulated_cohort(world, np.random.default_rng(seed))


def aurocs(world, drawn):
    found = []
    for g in range(len(world.sizes)):
        rows = drawn.groups == g
        found.append(placements(drawn.scores[rows], drawn.labels[rows], drawn.patients[rows]).auroc)
    return found


@pytest.mark.parametrize("repeats", [False, True])
@pytest.mark.parametrize("shifted", [False, True])
def test_every_subgroup_has_the_same_auroc(repeats, shifted):
    world, drawn = cohort(repeats=repeats, shifted=shifted)
    assert aurocs(world, drawn) == pytest.approx([0.8, 0.8], abs=0.004)
    prevalence = [float(drawn.labels[drawn.groups == g].mean()) for g in range(2)]
    assert prevalence == pytest.approx([0.2, 0.26 if shifted else 0.2], abs=0.005)


@pytest.mark.parametrize(("measure", "positive"), [("tpr", True), ("fpr", False)])
def test_a_world_for_a_rate_is_fair_in_that_rate_and_not_in_the_other(measure, positive):
    world, drawn = cohort(shifted=True, repeats=True)
    world = world.for_measure(measure)
    drawn = simulated_cohort(world, np.random.default_rng(1))
    threshold = world.separation + norm.ppf(0.2)
    rates = {}
    for asked in (True, False):
        chosen = drawn.labels == asked
        rates[asked] = [
            float(np.mean(drawn.scores[chosen & (drawn.groups == g)] >= threshold)) for g in (0, 1)
        ]
    assert rates[positive][0] == pytest.approx(rates[positive][1], abs=0.01)
    assert abs(rates[not positive][0] - rates[not positive][1]) > 0.03
    if measure == "tpr":
        assert rates[True][0] == pytest.approx(0.8, abs=0.01)


def test_patients_have_one_to_six_images_that_agree():
    world, drawn = cohort(repeats=True)
    per_patient = np.bincount(drawn.patients)
    share = np.bincount(per_patient, minlength=7)[1:7] / len(per_patient)
    assert share == pytest.approx(IMAGES_PER_PATIENT, abs=0.005)
    # A patient lies in one subgroup.
    first = np.flatnonzero(np.diff(drawn.patients, prepend=-1))
    assert (drawn.groups == drawn.groups[first][drawn.patients]).all()
    # Correlation of two images of one patient, labels taken out: 0.5.
    residual = drawn.scores - world.separation * drawn.labels
    pairs = [np.flatnonzero(drawn.patients == p)[:2] for p in np.flatnonzero(per_patient > 1)[:4000]]
    a, b = np.array(pairs).T
    assert np.corrcoef(residual[a], residual[b])[0, 1] == pytest.approx(0.5, abs=0.05)
    assert np.mean(drawn.labels[a] == drawn.labels[b]) > 0.8


def test_a_planted_drop_is_there_and_only_there():
    world, drawn = cohort(drop=0.1, dropped=1, repeats=True)
    assert aurocs(world, drawn) == pytest.approx([0.8, 0.7], abs=0.004)


def test_one_image_a_patient():
    _, drawn = cohort(sizes=(50, 20))
    assert drawn.patients.tolist() == list(range(70))


def test_sizes_give_the_expected_positives():
    assert mixed_sizes((150, 3), 0.05) == (3000, 60)
    assert mixed_sizes((1,), 0.4) == (2,)


def test_the_cells_are_the_designs_that_were_asked_for():
    cells = null_cells("auroc")
    kinds = {(c.world.auroc, c.world.prevalence, c.world.repeats, c.world.shifted) for c in cells}
    assert len(kinds) == 3 * 2 * 2 * 2
    assert {c.design[:2] for c in cells} == {"S1", "S2", "k1", "k5"}
    names = [
        c.name for c in [*cells, *null_cells("tpr"), *null_cells("fpr"), *correlated_cells(), *power_cells()]
    ]
    assert len(set(names)) == len(names)
    assert all(c.large_groups == (c.design[:2] != "k5") for c in cells)
    assert {c.world.shifted_class for c in null_cells("fpr")} == {"positives"}


def test_cohorts_have_generators_of_their_own():
    one, other = null_cells("auroc")[0], null_cells("auroc")[1]
    drawn = {one.generator(0).random(), one.generator(1).random(), other.generator(0).random()}
    assert len(drawn) == 3
    assert one.generator(5).random() == one.generator(5).random()

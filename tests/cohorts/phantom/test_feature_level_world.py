"""Settings of a world of drawn features: what is refused, and the sentences that say what is planted."""

from __future__ import annotations

import copy
import pickle
import re
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from frame.cohorts.phantom.feature_world import NOTE, FeatureGroup, FeatureWorld, statement
from frame.errors import InputError

TWO = (FeatureGroup("A", test=10), FeatureGroup("B", test=10))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": " "}, "name is ' '; a group needs a name that is not blank."),
        ({"name": 3}, "name is 3; a group needs a name that is not blank."),
        ({"test": -1}, "test of group 'B' is -1; it must be a whole number of at least 0."),
        ({"train": 2.5}, "train of group 'B' is 2.5; it must be a whole number of at least 0."),
        ({"validation": True}, "validation of group 'B' is True; it must be a whole number of at least 0."),
        ({"prevalence": 0}, "prevalence of group 'B' is 0; it must lie between 0 and 1, both left out."),
        ({"prevalence": 1.0}, "prevalence of group 'B' is 1; it must lie between 0 and 1, both left out."),
        ({"auroc": 0.4}, "auroc of group 'B' is 0.4; it must lie between 0.5 and 0.9999, both included."),
        ({"auroc": "0.7"}, "auroc of group 'B' is '0.7'; it must lie between 0.5 and 0.9999, both included."),
        (
            {"entanglement": 1.1},
            "entanglement of group 'B' is 1.1; it must lie between 0 and 1, both included.",
        ),
        ({"missed": 0.6}, "missed of group 'B' is 0.6; it must lie between 0 and 0.5, both included."),
        (
            {"invented": float("nan")},
            "invented of group 'B' is nan; it must lie between 0 and 0.5, both included.",
        ),
    ],
)
def test_refused_groups(settings, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        FeatureGroup(**({"name": "B"} | settings))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"groups": TWO[:1]}, "it must hold at least two FeatureGroup."),
        ({"groups": {"A": 10, "B": 10}}, "it must hold at least two FeatureGroup."),
        ({"groups": ("A", "B")}, "it must hold at least two FeatureGroup."),
        ({"groups": (*TWO, FeatureGroup("C"))}, "group 'C' has no images; leave it out or give it a size."),
        ({"groups": (*TWO, TWO[0])}, "two groups are named 'A'; each needs a name of its own."),
        (
            {"groups": (TWO[0], FeatureGroup("B", test=9, auroc=0.9))},
            "auroc of group 'B' is 0.9; a planted difference lowers it, so it must not pass the world's 0.8.",
        ),
        ({"unit": "studies"}, "unit is 'studies'; allowed are images, patients."),
        ({"spectrum": "flat"}, "spectrum is 'flat'; allowed are isotropic, decaying."),
        ({"dtype": "float16"}, "dtype is 'float16'; allowed are float32, float64."),
        ({"images_each": ()}, "images_each is (); it must hold 1 to 9 shares of patients"),
        ({"images_each": (0.1,) * 10}, "it must hold 1 to 9 shares of patients"),
        ({"images_each": (0.5, 0.4)}, "images_each adds up to 0.9; its shares must add up to 1."),
        ({"images_each": (1.5, -0.5)}, "a share of images_each is 1.5; it must lie between 0 and 1"),
        ({"prevalence": 1}, "prevalence is 1; it must lie between 0 and 1, both left out."),
        ({"icc_disease": -0.1}, "icc_disease is -0.1; it must lie between 0 and 1, both included."),
        ({"icc_noise": 1.0}, "icc_noise is 1; it must lie between 0 and 0.9999, both included."),
        ({"auroc": 1.0}, "auroc is 1; it must lie between 0.5 and 0.9999, both included."),
        ({"decodability": 0.3}, "decodability is 0.3; it must lie between 0.5 and 0.9999, both included."),
        ({"dimensions": 2}, "dimensions is 2; it must be a whole number of at least 3."),
        ({"seed": -1}, "seed is -1; it must be a whole number of at least 0."),
    ],
)
def test_refused_worlds(settings, message):
    with pytest.raises(InputError, match=re.escape(message)):
        FeatureWorld(**({"groups": TWO} | settings))


def test_worlds_are_frozen_values():
    world = FeatureWorld(TWO, seed=3)
    with pytest.raises(FrozenInstanceError):
        world.seed = 1
    assert hash(world) == hash(FeatureWorld(list(TWO), seed=np.int64(3)))
    assert pickle.loads(pickle.dumps(world)) == world == copy.deepcopy(world)
    assert isinstance(FeatureWorld(TWO, seed=np.int64(3)).seed, int)


def test_what_counts_as_fair():
    world = FeatureWorld(TWO)
    assert world.fair
    assert world.labels_right
    for settings, fair, right in (
        ({"auroc": 0.7}, False, True),
        ({"auroc": 0.8}, True, True),
        ({"entanglement": 0.1}, False, True),
        ({"missed": 0.1}, True, False),
        ({"invented": 0.1}, True, False),
        ({"prevalence": 0.1}, True, True),
    ):
        other = replace(world, groups=(TWO[0], replace(TWO[1], **settings)))
        assert (other.fair, other.labels_right) == (fair, right), settings


def test_the_statement_of_a_fair_world():
    said = statement(FeatureWorld(TWO, icc_disease=0.6, icc_noise=0.2, decodability=0.95, seed=8))
    assert said[0] == NOTE
    assert NOTE.startswith("Phantom: ")
    text = " ".join(said)
    for words in (
        "by group: A 0 / 0 / 10; B 0 / 0 / 10.",
        "alike by construction",
        "an AUROC of 0.8 within each group, for true labels",
        "told apart",
        "with an AUROC of 0.95 among images without the disease.",
        "The prevalence is 0.3 in every group.",
        "No recorded label is wrong.",
        "share 60% of the variance behind the disease and 20% of the variance of the features' noise",
        "correlated",
        "The seed of this world is 8.",
    ):
        assert words in text
    for words in ("Planted", "Entanglement", "Label noise", "differ"):
        assert words not in text


def test_the_statement_names_every_cause():
    groups = (
        FeatureGroup("A", train=1, prevalence=0.2),
        FeatureGroup("B", train=1, auroc=0.65),
        FeatureGroup("C", train=1, entanglement=0.5, missed=0.2, invented=0.05),
    )
    world = FeatureWorld(groups, unit="patients", images_each=(1.0,), decodability=0.5, spectrum="isotropic")
    text = " ".join(statement(world))
    for words in (
        "Patients of training",
        "alike but for the causes that follow",
        "every group without a planted difference",
        "in group B the disease shows less, and no score of one image has an AUROC above 0.65",
        "Entanglement: in group C the disease direction is turned towards the group's own direction by 0.5",
        "No group is shifted",
        "Prevalences differ: A 0.2, B 0.3, C 0.3.",
        "in group C 20% of the images with disease are recorded without it, and 5% of those without it",
        "No other recorded label is wrong.",
        "Every patient has one image.",
        "isotropic",
    ):
        assert words in text
    assert "alike by construction" not in text

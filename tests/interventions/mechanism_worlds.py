"""Small cohorts of drawn features with a planted cause, for the tests of step two."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from frame.cohorts.phantom.feature_level import feature_cohort
from frame.cohorts.phantom.feature_world import FeatureGroup, FeatureWorld
from frame.interventions.procedure import mechanism

#: What makes a run quick; each test that needs more says so.
QUICK: dict[str, Any] = {
    "methods": (),
    "nonlinear": False,
    "directions": 2,
    "decodability_strengths": (0, 0.5, 1.0),
    "entanglement_strengths": (0, 1, 4),
    "whitened_strengths": (0, 1.0),
    "resamples": 100,
}
_SIZES = ((700, 240, 700), (420, 160, 500), (260, 100, 260), (200, 80, 200), (160, 60, 160))


def world(n_groups: int = 2, planted: float | None = None, **settings: Any) -> FeatureWorld:
    """A world of groups A, B, ...; the last has the planted AUROC."""
    groups = []
    for place, (train, validation, test) in enumerate(_SIZES[:n_groups]):
        auroc = planted if place == n_groups - 1 else None
        groups.append(FeatureGroup("ABCDE"[place], train, validation, test, auroc=auroc))
    settings = {"dimensions": 16, "auroc": 0.85, "seed": 5} | settings
    return FeatureWorld(tuple(groups), **settings)


@cache
def cohort(n_groups: int = 2, planted: float | None = None, number: int = 0) -> Any:
    """A cohort of :func:`world`."""
    return feature_cohort(world(n_groups, planted), number)


def asked(found: Any, **settings: Any) -> Any:
    """Ask a quick question of a cohort."""
    arguments = {"patients": found.patients} | QUICK | settings
    return mechanism(found.features, found.labels, found.groups, found.split, **arguments)


@cache
def planted_verdict(n_groups: int = 2) -> Any:
    """The verdict on a planted difference, computed once."""
    return asked(cohort(n_groups, 0.6))


@cache
def spread_signal() -> SimpleNamespace:
    """A planted difference in features whose disease signal is spread over columns of very different scale.

    A direction of the features that is removed takes the signal of one column away and leaves the others, so
    that the disease AUROC stays where it is.
    """
    rng = np.random.default_rng(3)
    n, width = 3200, 40
    groups = np.where(rng.random(n) < 0.6, "A", "B")
    labels = rng.random(n) < 0.4
    strength = np.where(groups == "A", 0.42, 0.12)[:, None]
    noise = rng.normal(size=(n, width))
    features = (noise + labels[:, None] * strength) * 2.0 ** np.arange(width)
    split = np.asarray(["train", "validation", "test"])[rng.choice(3, n, p=[0.45, 0.15, 0.4])]
    return SimpleNamespace(
        features=features, labels=labels, groups=groups, split=split, patients=np.arange(n)
    )

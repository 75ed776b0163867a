"""What the procedure says of one drawn cohort, as one row of the versioned table."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from frame.audits import audit
from frame.characteristics.step_two import (
    FAIR_REFERENCE,
    NAMES,
    PILOT_SEEDS,
    StepTwoCell,
    group_of,
    world_of,
)
from frame.cohorts.phantom.feature_level import FeatureCohort, feature_cohort
from frame.cohorts.phantom.feature_truth import population_aurocs
from frame.cohorts.phantom.feature_world import FeatureWorld
from frame.heads.disease_heads import Head, fit_head
from frame.interventions.procedure import mechanism

__all__ = ["COLUMNS", "DIGITS", "STEP_TWO", "mean_fair_reference", "run_one", "true_difference"]

#: Columns of a row; blank where a cell does not ask.
COLUMNS: Final = (
    "cell",
    "seed",
    "p",
    "observed",
    "reference",
    "truth",
    "lo",
    "hi",
    "verdict",
    "decodability_change",
    "decodability_lo",
    "decodability_hi",
    "entanglement_change",
    "entanglement_lo",
    "entanglement_hi",
    "disease_change",
    "disease_lo",
    "disease_hi",
)
#: Decimals that are kept.
DIGITS: Final = 6
#: How step two is asked. The verdict reads the ends of both grids only; the ends are those of the default
#: grids at 32 dimensions, and the random directions are as many as by default.
STEP_TWO: Final[dict[str, Any]] = {
    "methods": (),
    "geometry": False,
    "nonlinear": False,
    "whitened": False,
    "directions": 20,
    "decodability_strengths": (0.0, 1.0),
    "entanglement_strengths": (0, 16),
    "resamples": 400,
    "threads": 1,
}


def run_one(cell: StepTwoCell, seed: int) -> dict[str, Any]:
    """Draw the cohort of a cell and a seed, and ask the procedure.

    Parameters
    ----------
    cell : StepTwoCell
    seed : int

    Returns
    -------
    dict
        A value for each of :data:`COLUMNS`, numbers rounded to :data:`DIGITS` decimals; NaN or an empty text
        where there is none.
    """
    world = world_of(cell, seed)
    cohort = feature_cohort(world)
    groups = np.asarray([group_of(name) for name in world.names])[_codes(world, cohort)]
    row: dict[str, Any] = dict.fromkeys(COLUMNS, math.nan) | {"cell": cell.name, "seed": seed, "verdict": ""}
    train, test = cohort.split == "train", cohort.split == "test"
    head = fit_head(cohort.features[train], cohort.labels[train])
    if cell.cause != "site effect":
        row["truth"] = true_difference(world, head)
    if cell.step == "one":
        scores = head.logit(cohort.features[test])
        found = audit(
            scores, cohort.labels[test], groups[test], patients=cohort.patients[test], scale="logit"
        )
        if cell.interval:
            row["lo"], row["hi"] = found.interval
    else:
        verdict = mechanism(
            cohort.features, cohort.labels, groups, cohort.split, patients=cohort.patients, **STEP_TWO
        )
        found = verdict.step_one
        row["verdict"] = verdict.verdict
        changes = {name: verdict.decided.get(name) for name in ("decodability", "entanglement")}
        changes["disease"] = None if verdict.precondition is None else verdict.precondition.change
        for name, change in changes.items():
            if change is not None:
                row |= {f"{name}_{end}": getattr(change, end) for end in ("change", "lo", "hi")}
    row["p"], row["observed"] = found.p, found.observed
    row["reference"] = math.nan if found.reference is None else found.reference.mean
    return {name: round(value, DIGITS) if isinstance(value, float) else value for name, value in row.items()}


def true_difference(world: FeatureWorld, head: Head) -> float:
    """Largest minus smallest population AUROC of a fitted linear head, for recorded labels.

    Parameters
    ----------
    world : FeatureWorld
    head : Head
        A linear one.

    Returns
    -------
    float
        In closed form, not simulated; NaN where the head says the same of every row.
    """
    if head.fit is None or not hasattr(head.fit, "raw_coefficients"):
        return math.nan
    weights = head.fit.raw_coefficients()[0][0]
    if not weights.any():
        return math.nan
    values = population_aurocs(world, weights)["head_recorded"]
    return float(values.max() - values.min())


def mean_fair_reference(n_groups: int, seeds: range = PILOT_SEEDS) -> float:
    """Mean of the reference over fair cohorts with seeds of their own; see :data:`FAIR_REFERENCE`.

    Parameters
    ----------
    n_groups : int
        One of the keys of :data:`frame.characteristics.step_two.NAMES`.
    seeds : range
        Cohorts.

    Returns
    -------
    float
    """
    if n_groups not in NAMES or n_groups not in FAIR_REFERENCE:
        raise ValueError(f"no design has {n_groups} groups")
    cell = StepTwoCell("one", "none", n_groups)
    return float(np.mean([run_one(cell, seed)["reference"] for seed in seeds]))


def _codes(world: FeatureWorld, cohort: FeatureCohort) -> Any:
    """Place of each row's group among the world's."""
    place = {name: code for code, name in enumerate(world.names)}
    return np.asarray([place[name] for name in cohort.groups.tolist()])

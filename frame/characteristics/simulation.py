"""Run cells of simulated cohorts and summarise them, one row per cell and method."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from frame.characteristics.cells import CONFIRMATION, Cell
from frame.characteristics.operating import ALPHA, Answer, answers, cohort_of, size_interval

#: Cohorts of a cell, those on which the other methods are run too, and those of the resampling ones.
COHORTS, COMPARED, RESAMPLED = 1000, 100, 40
#: Cohorts of a cell with a planted drop.
POWER_COHORTS = 400
#: Cohorts that the book simulates again.
REPEATED = 200
#: Methods that resample.
RESAMPLING = ("pooled", "bootstrap interval above 0")

COLUMNS = (
    "cell",
    "design",
    "measure",
    "auroc",
    "prevalence",
    "repeats",
    "shifted",
    "correlations",
    "drop",
    "dropped_size",
    "large_groups",
    "method",
    "cohorts",
    "estimable",
    "rejected",
    "rejected_of_repeated",
    "size",
    "size_lo",
    "size_hi",
    "observed_mean",
    "reference_mean",
    "ratio",
)


def simulate_cell(
    cell: Cell, *, cohorts: int = COHORTS, compared: int = COMPARED, seed: int = CONFIRMATION
) -> pd.DataFrame:
    """Simulate the cohorts of a cell and count how often each method rejects at 0.05.

    Parameters
    ----------
    cell : Cell
        The design.
    cohorts, compared : int
        Cohorts, and how many of them the comparison methods see.
    seed : int
        Seed of the generators.

    Returns
    -------
    DataFrame
        One row per method, columns :data:`COLUMNS`. A cohort in which a method gives no p (nothing is
        estimable) counts as not rejected; ``estimable`` says how many gave one.
    """
    by_method: dict[str, list[Answer]] = {}
    for number in range(cohorts):
        cohort = cohort_of(cell, number, seed)
        for answer in answers(cell, cohort, every_method=number < compared, resampling=number < RESAMPLED):
            by_method.setdefault(answer.method, []).append(answer)
    seen = {"calibrated": cohorts} | {m: min(RESAMPLED, cohorts) for m in RESAMPLING}
    rows = [
        _row(cell, method, seen.get(method, min(compared, cohorts)), found)
        for method, found in by_method.items()
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _row(cell: Cell, method: str, cohorts: int, found: list[Answer]) -> dict[str, object]:
    world = cell.world
    p = np.asarray([a.p for a in found])
    rejecting = p <= ALPHA
    rejected = int(np.count_nonzero(rejecting))
    low, high = size_interval(rejected, cohorts)
    known = [a for a in found if not math.isnan(a.reference)]
    observed = float(np.mean([a.observed for a in known])) if known else math.nan
    reference = float(np.mean([a.reference for a in known])) if known else math.nan
    return {
        "cell": cell.name,
        "design": cell.design,
        "measure": cell.measure,
        "auroc": world.auroc,
        "prevalence": world.prevalence,
        "repeats": world.repeats,
        "shifted": world.shifted,
        "correlations": " ".join(f"{c:g}" for c in world.correlations) if world.repeats else "",
        "drop": world.drop,
        "dropped_size": world.sizes[world.dropped] if world.drop else 0,
        "large_groups": cell.large_groups,
        "method": method,
        "cohorts": cohorts,
        "estimable": int(np.count_nonzero(~np.isnan(p))),
        "rejected": rejected,
        "rejected_of_repeated": int(np.count_nonzero(rejecting[:REPEATED])) if len(p) >= REPEATED else -1,
        "size": rejected / cohorts,
        "size_lo": low,
        "size_hi": high,
        "observed_mean": observed,
        "reference_mean": reference,
        "ratio": reference / observed if observed else math.nan,
    }


def combine(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Put the cells' rows together in a fixed order, numbers rounded to six digits."""
    table = pd.concat(list(tables), ignore_index=True)
    table = table.sort_values(["measure", "drop", "cell", "method"], kind="stable", ignore_index=True)
    numbers = table.select_dtypes("float").columns
    table[numbers] = table[numbers].map(lambda value: float(f"{value:.6g}"))
    return table

"""Run the cohorts of step two's characteristics, count them, and read the versioned tables again."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import frame
from frame.characteristics.operating import ALPHA, SIZE_LEVEL, size_interval
from frame.characteristics.step_two import (
    CELLS,
    FAIR_REFERENCE,
    PILOT_SEEDS,
    SEEDS,
    VERDICT_SEEDS,
    StepTwoCell,
)
from frame.characteristics.step_two_runs import COLUMNS, STEP_TWO, run_one
from frame.interventions.decision import VERDICTS
from frame.tables import load_table
from frame.writing import write_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "AUDITED",
    "DRAWN",
    "NUMBERS",
    "cohorts_table",
    "modules_digest",
    "rates_table",
    "rebuild",
    "size_band",
    "step_two_rates",
    "summarised",
]

#: Modules that say what is drawn and what is counted; a test fails when they have changed and the tables not.
DRAWN: Final = (
    "characteristics/step_two.py",
    "characteristics/step_two_runs.py",
    "cohorts/phantom/feature_level.py",
    "cohorts/phantom/feature_truth.py",
    "cohorts/phantom/feature_world.py",
    "cohorts/phantom/seeds.py",
)
#: Modules of what is judged. The sidecar has their digests when it was written; that they still answer alike
#: is tested by asking some of the cohorts again.
AUDITED: Final = (
    "audits/one_audit.py",
    "audits/intervals.py",
    "heads/disease_heads.py",
    "heads/logistic.py",
    "interventions/decision.py",
    "interventions/disease_subspace.py",
    "interventions/operators.py",
    "interventions/procedure.py",
    "interventions/strengths.py",
    "reference/calibrated.py",
    "reference/exact_auroc.py",
    "reference/simultaneous.py",
)
#: Columns of the table of cohorts that hold numbers.
NUMBERS: Final = tuple(name for name in COLUMNS if name not in ("cell", "seed", "verdict"))
#: What is asked for: shares of the cohorts, and which cells they are asked of.
FOUND, COVERED = 0.80, 0.92
_RATES: Final = (
    "cell",
    "step",
    "cause",
    "n_groups",
    "where",
    "quantity",
    "count",
    "cohorts",
    "rate",
    "rate_lo",
    "rate_hi",
    "target",
    "met",
)


def size_band(cohorts: int, level: float = SIZE_LEVEL) -> tuple[int, int]:
    """Rejections among cohorts that a test with its exact level shows with this probability.

    Parameters
    ----------
    cohorts : int
    level : float
        Probability of the band, at least.

    Returns
    -------
    (int, int)
        Smallest and largest count, both inside.
    """
    from scipy.stats import binom

    low, high = binom.interval(level, cohorts, ALPHA)
    return int(low), int(high)


def modules_digest(names: tuple[str, ...] = DRAWN) -> str:
    """SHA-256 over modules of the package."""
    digest = hashlib.sha256()
    for name in names:
        digest.update((Path(frame.__file__).parent / name).read_bytes())
    return digest.hexdigest()


def cohorts_table() -> pd.DataFrame:
    """A row per drawn cohort of every cell, columns :data:`frame.characteristics.step_two_runs.COLUMNS`.

    Returns
    -------
    DataFrame
        Typed; NaN where a cell does not ask or the procedure gives nothing.

    Raises
    ------
    InputError
        If the table is missing or damaged.
    """
    return _typed(load_table("step_two_cohorts"), NUMBERS, ("seed",))


def step_two_rates() -> pd.DataFrame:
    """A row per cell and quantity: count, cohorts, rate and its exact 99 % interval, and what is asked for.

    Returns
    -------
    DataFrame

    Raises
    ------
    InputError
        If the table is missing or damaged.
    """
    return _typed(
        load_table("step_two_rates"), ("rate", "rate_lo", "rate_hi"), ("n_groups", "count", "cohorts")
    )


def _typed(table: pd.DataFrame, numbers: tuple[str, ...], whole: tuple[str, ...]) -> pd.DataFrame:
    import pandas as pd

    for name in numbers:
        table[name] = pd.to_numeric(table[name].replace("", None))
    for name in whole:
        table[name] = table[name].astype("int64")
    return table


# -- counting -----------------------------------------------------------------------------------------


def rates_table(cohorts: pd.DataFrame) -> pd.DataFrame:
    """Count the cohorts of every cell.

    Parameters
    ----------
    cohorts : DataFrame
        As :func:`cohorts_table`.

    Returns
    -------
    DataFrame
        As :func:`step_two_rates`. ``exceeds``: p at most 0.05, no p counts as not exceeding. ``covered``:
        the 95 % interval holds the true difference of the head that was fitted, no interval counts as not
        covering. Then the verdicts, and of the cohorts in which step two was run, how often each operator
        moved the difference and how often the precondition held.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for cell in CELLS:
        own = cohorts[cohorts["cell"] == cell.name]
        if own.empty:
            continue
        for quantity, hits, target in _counted(cell, own):
            rows.append(_rate(cell, quantity, np.asarray(hits, dtype=bool), target))
    table = pd.DataFrame(rows, columns=list(_RATES))
    for name in ("rate", "rate_lo", "rate_hi"):
        table[name] = table[name].map(lambda value: float(f"{value:.6g}"))
    return table


def _counted(cell: StepTwoCell, own: pd.DataFrame) -> list[tuple[str, Any, str]]:
    exceeds = own["p"] <= ALPHA
    if cell.step == "one":
        size, power = cell.cause == "none", cell.cause == "difference" and cell.n_groups >= 5
        target = "size band" if size else f"at least {FOUND:.2f}" if power and cell.where == "Black" else ""
        found = [("exceeds", exceeds, target)]
        if cell.interval:
            held = (own["lo"] <= own["truth"]) & (own["truth"] <= own["hi"])
            found.append(("covered", held, f"at least {COVERED:.2f}"))
        return found
    found = [("exceeds", exceeds, "")]
    found += [(f"verdict: {verdict}", own["verdict"] == verdict, "") for verdict in VERDICTS]
    run = own[own["entanglement_change"].notna()]
    if len(run):
        found.append(("precondition holds", (run["disease_change"] < -0.010) & (run["disease_hi"] < 0), ""))
        for name in ("decodability", "entanglement"):
            change, low, high = (run[f"{name}_{end}"] for end in ("change", "lo", "hi"))
            found.append((f"rises with {name}", (change > 0.005) & (low > 0), ""))
            found.append((f"falls with {name}", (change < -0.005) & (high < 0), ""))
    return found


def _rate(cell: StepTwoCell, quantity: str, hits: np.ndarray[Any, Any], target: str) -> dict[str, Any]:
    count, cohorts = int(hits.sum()), len(hits)
    low, high = size_interval(count, cohorts)
    met = ""
    if target == "size band":
        least, most = size_band(cohorts)
        target = f"{least} to {most} of {cohorts}"
        met = "yes" if least <= count <= most else "no"
    elif target:
        met = "yes" if count / cohorts >= float(target.rpartition(" ")[2]) else "no"
    return {
        "cell": cell.name,
        "step": cell.step,
        "cause": cell.cause,
        "n_groups": cell.n_groups,
        "where": cell.where,
        "quantity": quantity,
        "count": count,
        "cohorts": cohorts,
        "rate": count / cohorts,
        "rate_lo": low,
        "rate_hi": high,
        "target": target,
        "met": met,
    }


def summarised(cohorts: pd.DataFrame) -> pd.DataFrame:
    """Means of every cell, and how far its interval reaches.

    Parameters
    ----------
    cohorts : DataFrame
        As :func:`cohorts_table`.

    Returns
    -------
    DataFrame
        ``cell, cohorts, observed, reference, truth, lo, hi``: means over cohorts, NaN where there is none.
    """
    named = {"seed": "cohorts"}
    means = cohorts.groupby("cell", sort=False).agg(
        {"seed": "size"} | dict.fromkeys(("observed", "reference", "truth", "lo", "hi"), "mean")
    )
    return means.rename(columns=named).reset_index()


# -- running ------------------------------------------------------------------------------------------


def _jobs() -> list[tuple[StepTwoCell, int]]:
    """Cells with intervals first; then the others seed by seed, so that a run that is ended has all alike.

    With each seed of the verdicts go four of the cells of step one that have no interval, which take less.
    """
    first = [(cell, seed) for cell in CELLS if cell.interval for seed in range(cell.seeds)]
    later = [
        (cell, several * seed + more)
        for seed in range(VERDICT_SEEDS)
        for cell in CELLS
        if not cell.interval
        for several in (_times(cell),)
        for more in range(several)
    ]
    return first + later


def _times(cell: StepTwoCell) -> int:
    """Cohorts of a cell for each seed of the verdicts."""
    return cell.seeds // VERDICT_SEEDS


def rebuild(
    out: Path, store: Path, *, run: bool = True, show: Callable[[str], object] = sys.stderr.write
) -> None:
    """Run the cohorts that the store does not hold yet, and write both tables with their sidecar.

    Parameters
    ----------
    out : Path
        Folder of the tables.
    store : Path
        Folder of finished cohorts, one line each; a run that was ended goes on behind the last one.
    run : bool
        False writes the tables of what is finished: every cell with intervals must be, and of the others
        those seeds that all of them have.
    show : callable
        Is given the progress.
    """
    import pandas as pd

    store.mkdir(parents=True, exist_ok=True)
    kept = store / f"step_two-{modules_digest()[:16]}.jsonl"
    done = _finished(kept)
    jobs = _jobs()
    if run:
        with kept.open("a", encoding="utf-8") as lines:
            for place, (cell, seed) in enumerate(jobs):
                if (cell.name, seed) not in done:
                    row = run_one(cell, seed)
                    done[cell.name, seed] = row
                    lines.write(json.dumps(row) + "\n")
                    lines.flush()
                show(f"\rstep_two: {place + 1} of {len(jobs)} cohorts")
        show("\n")
    whole = _whole_seeds(done)
    rows = [
        done[cell.name, seed]
        for cell in CELLS
        for seed in range(cell.seeds if cell.interval else whole * _times(cell))
    ]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    out.mkdir(parents=True, exist_ok=True)
    rates = rates_table(table)
    for name, what in (("step_two_cohorts", table), ("step_two_rates", rates)):
        write_text(out / f"{name}.csv", what.to_csv(index=False, lineterminator="\n"), "--out")
        side = {
            "table": f"{name}.csv",
            "what": "drawn feature vectors with a planted truth; what the whole procedure says of them",
            "level": ALPHA,
            "level_of_intervals_of_rates": SIZE_LEVEL,
            "cells": int(table["cell"].nunique()),
            "rows": len(what),
            "seeds_of_step_one": [0, SEEDS - 1],
            "seeds_of_step_one_without_intervals": [0, whole * SEEDS // VERDICT_SEEDS - 1],
            "seeds_of_verdicts": [0, whole - 1],
            "seeds_of_verdicts_planned": [0, VERDICT_SEEDS - 1],
            "cells_added_after_seven_seeds": [c.name for c in CELLS if c.cause == "full entanglement"],
            "seeds_of_the_mean_reference": [PILOT_SEEDS.start, PILOT_SEEDS.stop - 1],
            "mean_reference": {str(n): value for n, value in FAIR_REFERENCE.items()},
            "settings_of_step_two": {key: STEP_TWO[key] for key in STEP_TWO if key != "threads"},
            "frame": frame.__version__,
            "numpy": np.__version__,
            "sources_sha256": modules_digest(),
            "sources": list(DRAWN),
            "judged_sha256_when_written": {module: modules_digest((module,)) for module in AUDITED},
            "rebuild": "make characteristics",
        }
        write_text(out / f"{name}.json", json.dumps(side, indent=2) + "\n", "--out")


def _finished(kept: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """Rows of an earlier run; a line that was cut off is run again."""
    done: dict[tuple[str, int], dict[str, Any]] = {}
    if not kept.exists():
        return done
    text = kept.read_text(encoding="utf-8")
    for line in text.splitlines()[: text.count("\n")]:
        row = json.loads(line)
        done[row["cell"], row["seed"]] = row
    if not text.endswith("\n"):
        write_text(kept, text[: text.rfind("\n") + 1], "--store")
    return done


def _whole_seeds(done: dict[tuple[str, int], dict[str, Any]]) -> int:
    """Seeds of the verdicts, from 0, that every cell without an interval has."""
    missing = [
        seed // _times(cell) for cell, seed in _jobs() if not cell.interval and (cell.name, seed) not in done
    ]
    return min(missing, default=VERDICT_SEEDS)

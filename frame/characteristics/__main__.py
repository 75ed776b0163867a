"""Rebuild the versioned tables of operating characteristics: ``python -m frame.characteristics``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pandas as pd

import frame
from frame.characteristics.cells import CONFIRMATION, Cell, correlated_cells, null_cells, power_cells
from frame.characteristics.operating import ALPHA
from frame.characteristics.simulation import (
    COHORTS,
    COMPARED,
    POWER_COHORTS,
    REPEATED,
    RESAMPLED,
    combine,
    simulate_cell,
)
from frame.characteristics.step_two_image_tables import rebuild as rebuild_step_two_images
from frame.characteristics.step_two_tables import rebuild as rebuild_step_two
from frame.characteristics.tables import SOURCES, sources_digest
from frame.writing import write_text

#: Stand for both tables of step two on drawn features, and for both on drawn images.
STEP_TWO, STEP_TWO_IMAGES = "step_two", "step_two_images"


def _tables() -> dict[str, tuple[list[Cell], int]]:
    """Cells and cohorts of every table."""
    return {
        "sizes_auroc": ([*null_cells("auroc"), *correlated_cells()], COHORTS),
        "sizes_tpr": (null_cells("tpr"), COHORTS),
        "sizes_fpr": (null_cells("fpr"), COHORTS),
        "power_auroc": (power_cells(), POWER_COHORTS),
    }


def _run(job: tuple[Cell, int, Path]) -> pd.DataFrame:
    """Run one cell, or read it if an earlier, interrupted rebuild has finished it."""
    cell, cohorts, store = job
    kept = store / f"{cell.name}.{cohorts}.csv"
    if not kept.exists():
        # Where other methods are what is asked for, they see every cohort.
        compared = cohorts if cell.world.drop or len(cell.world.correlations) > 1 else COMPARED
        table = simulate_cell(cell, cohorts=cohorts, compared=compared)
        write_text(kept, table.to_csv(index=False), "--store")
    return pd.read_csv(kept, keep_default_na=True)


def main(arguments: Iterable[str] | None = None) -> int:
    """Rebuild the tables; each is written whole, with a sidecar that says how it was made."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [*_tables(), STEP_TWO, STEP_TWO_IMAGES]
    parser.add_argument("tables", nargs="*", choices=[*names, []], help="default: all of them")
    parser.add_argument("--out", type=Path, default=Path("data/characteristics"))
    parser.add_argument("--store", type=Path, default=Path("_build/characteristics"))
    parser.add_argument("--cohorts", type=int, default=COHORTS, help="at most")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(None if arguments is None else list(arguments))
    digest = sources_digest()
    store = options.store / digest[:16]
    store.mkdir(parents=True, exist_ok=True)
    options.out.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(options.jobs) as pool:
        for name, (cells, wanted) in _tables().items():
            if options.tables and name not in options.tables:
                continue
            cohorts = min(wanted, options.cohorts)
            parts: list[pd.DataFrame] = []
            for part in pool.map(_run, [(cell, cohorts, store) for cell in cells]):
                parts.append(part)
                print(f"\r{name}: {len(parts)} of {len(cells)} cells", end="", file=sys.stderr, flush=True)
            print(file=sys.stderr)
            write_text(
                options.out / f"{name}.csv", combine(parts).to_csv(index=False, lineterminator="\n"), "--out"
            )
            sidecar = {
                "table": f"{name}.csv",
                "what": "simulated cohorts; rejections at 0.05 per cell and method",
                "level": ALPHA,
                "cells": len(cells),
                "cohorts": cohorts,
                "cohorts_of_comparison_methods": min(COMPARED, cohorts),
                "cohorts_of_resampling_methods": min(RESAMPLED, cohorts),
                "cohorts_run_again_by_the_book": REPEATED,
                "seed": CONFIRMATION,
                "frame": frame.__version__,
                "sources_sha256": digest,
                "sources": list(SOURCES),
                "rebuild": "make characteristics",
            }
            write_text(options.out / f"{name}.json", json.dumps(sidecar, indent=2) + "\n", "--out")
    if not options.tables or STEP_TWO in options.tables:
        rebuild_step_two(options.out, options.store)
    if not options.tables or STEP_TWO_IMAGES in options.tables:
        rebuild_step_two_images(options.out, options.store, options.jobs)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Run the image worlds of step two, and read their versioned tables again."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

import frame
from frame.characteristics.operating import ALPHA
from frame.characteristics.step_two_images import (
    ATTRIBUTES,
    COLUMNS,
    DESIGN,
    GROUP_COLUMNS,
    POLICY,
    SEEDS,
    SOURCES,
    SPLIT_SEED,
    TRUTH_SEED,
    ImageDesign,
    run_seed,
)
from frame.characteristics.step_two_tables import AUDITED, modules_digest
from frame.tables import load_table
from frame.writing import write_text

__all__ = ["DRAWN", "TABLES", "image_groups_table", "images_table", "rebuild"]

#: Modules that say what is drawn and what is asked of it. Bands of age are those of `cohorts/adjudicated.py`,
#: and the encoder's means those of `figures/phantom_decoding.py`.
DRAWN: Final = (
    "characteristics/step_two_images.py",
    "characteristics/step_two_runs.py",
    "cohorts/adjudicated.py",
    "cohorts/labels.py",
    *(
        f"cohorts/phantom/{name}.py"
        for name in (
            *("chest", "chest_anatomy", "chest_body", "chest_findings", "curves", "drawing", "grain"),
            *("identities", "population", "population_chest", "quotas", "rows", "seeds", "textures", "truth"),
        )
    ),
    "cohorts/splits.py",
    "encoders/loaders/pixel_models.py",
    "figures/phantom_decoding.py",
)
#: Names of the tables, with their columns.
TABLES: Final = {"step_two_images": COLUMNS, "step_two_image_groups": GROUP_COLUMNS}
_TEXT: Final = (
    *("attribute", "finding", "planted", "group", "holds_recorded", "holds_actual"),
    *("verdict", "verdict_of_step_two", "precondition", "status", "reason"),
)
_COUNTS: Final = (
    *("seed", "n_images", "n_positive", "n_patients", "n_groups"),
    *("truth_images", "truth_positive", "truth_patients", "truth_labelled", "truth_labelled_positive"),
)


def images_table() -> pd.DataFrame:
    """A row per seed, attribute and finding.

    Returns
    -------
    DataFrame
        Columns :data:`frame.characteristics.step_two_images.COLUMNS`, typed; NaN where there is no value.

    Raises
    ------
    frame.InputError
        If the table is missing or damaged.
    """
    return _typed(load_table("step_two_images"))


def image_groups_table() -> pd.DataFrame:
    """A row per seed, attribute, finding and group.

    Returns
    -------
    DataFrame
        Columns :data:`frame.characteristics.step_two_images.GROUP_COLUMNS`, typed.

    Raises
    ------
    frame.InputError
        If the table is missing or damaged.
    """
    return _typed(load_table("step_two_image_groups"))


def _typed(table: pd.DataFrame) -> pd.DataFrame:
    for name in table.columns:
        if name not in _TEXT and name not in _COUNTS:
            table[name] = pd.to_numeric(table[name].replace("", None)).astype("float64")
    return table


# -- running ------------------------------------------------------------------------------------------


def rebuild(
    out: Path,
    store: Path,
    jobs: int = 2,
    *,
    seeds: Iterable[int] = SEEDS,
    design: ImageDesign = DESIGN,
    show: Callable[[str], object] = sys.stderr.write,
) -> None:
    """Run the worlds that the store does not hold yet, and write both tables with their sidecars.

    Parameters
    ----------
    out : Path
        Folder of the tables.
    store : Path
        Folder of finished worlds; a run that was ended goes on at the world that it was in.
    jobs : int
        Processes; 1 runs in this one.
    seeds : iterable of int
        Worlds.
    design : ImageDesign
        What is drawn of each.
    show : callable
        Is given the progress.
    """
    kept = store / f"step_two_images-{modules_digest(DRAWN)[:16]}"
    kept.mkdir(parents=True, exist_ok=True)
    out.mkdir(parents=True, exist_ok=True)
    wanted = list(seeds)
    work = [(seed, design, kept) for seed in wanted]
    if jobs == 1:
        for place, one in enumerate(work):
            _run(one)
            show(f"\rstep_two_images: {place + 1} of {len(work)} worlds")
    else:
        with ProcessPoolExecutor(jobs) as pool:
            for place, _ in enumerate(pool.map(_run, work)):
                show(f"\rstep_two_images: {place + 1} of {len(work)} worlds")
    show("\n")
    for name in TABLES:
        parts = [_file(kept, name, seed).read_text(encoding="utf-8") for seed in wanted]
        # Rows are kept as they are written, so that nothing is read as a number in between.
        text = parts[0] + "".join(part.partition("\n")[2] for part in parts[1:])
        write_text(out / f"{name}.csv", text, "--out")
        side = _sidecar(name, wanted, design) | {"rows": text.count("\n") - 1}
        write_text(out / f"{name}.json", json.dumps(side, indent=2) + "\n", "--out")


def _file(kept: Path, name: str, seed: int) -> Path:
    return kept / f"{name}-{seed}.csv"


def _run(job: tuple[int, ImageDesign, Path]) -> None:
    """Run one world, unless an earlier rebuild has finished it."""
    seed, design, kept = job
    files = [_file(kept, name, seed) for name in TABLES]
    if all(file.exists() for file in files):
        return
    for file, table in zip(files, run_seed(seed, design), strict=True):
        whole = table.astype({name: "Int64" for name in _COUNTS if name in table})
        write_text(file, whole.to_csv(index=False, lineterminator="\n"), "--store")


def _sidecar(name: str, seeds: list[int], design: ImageDesign) -> dict[str, Any]:
    """How a table was made."""
    sizes = {source: one.model_dump() for source, one in design.truth(0).chest.items()}
    return {
        "table": f"{name}.csv",
        "what": "drawn chest radiographs with a planted truth; what the whole procedure says of them",
        "reported": "results are reported, and no threshold is set",
        "level": ALPHA,
        "seeds": seeds,
        "sources": list(SOURCES),
        "images": sizes,
        "side": design.side,
        "encoder": "block_means, 16 by 16, of the drawn pixels",
        "attributes": list(ATTRIBUTES),
        "findings": list(design.findings),
        "labels": {"uncertain": POLICY.uncertain, "blank": POLICY.blank},
        "seed_of_the_hashed_split": SPLIT_SEED,
        "truth": "AUROC of the same head on other patients of the same world, largest minus smallest group",
        "truth_images_for_each_test_image": design.times,
        "truth_seed_of_the_world": f"{TRUTH_SEED} + seed",
        "settings_of_step_two": {k: value for k, value in design.settings.items() if k != "threads"},
        "frame": frame.__version__,
        "numpy": np.__version__,
        "sources_sha256": modules_digest(DRAWN),
        "modules": list(DRAWN),
        "judged_sha256_when_written": {module: modules_digest((module,)) for module in AUDITED},
        "rebuild": "make characteristics",
    }

"""One unit at the size of the paper, end to end: where the time goes, and how much memory it takes.

100,000 training rows, 14,000 validation rows and 126,000 test rows of 768 numbers (singular values falling as
1/k, randomly rotated), two attributes of five and four groups, an unmitigated head, nine methods, four
measures and 1,000 paired resamples of patients. The embeddings are made in row blocks, written to a .npy file
and mapped from it; the comparison runs in a process of its own with two threads, so that its peak memory is
its own. Nothing is subsampled. The last column is the time of all cores together: where it is much less than
twice the time that passed, the machine was busy with something else, or a step does not use both.

``python -m benchmarks.mitigation_unit 0.1`` runs a tenth of the rows.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

WIDTH = 768
ROWS = {"train": 100_000, "validation": 14_000, "test": 126_000}
#: What the unit may take.
MINUTES, GIGABYTES = 6.0, 6.0
THREADS = 2
_BLOCK = 20_000
_RACES = {"White": 0.60, "Black": 0.17, "Asian": 0.08, "Hispanic or Latino": 0.07, "Other": 0.08}
_AGES = {"<40": 0.20, "40-<60": 0.30, "60-<80": 0.36, ">=80": 0.14}
#: Images of a patient, on average.
_REPEATS = 3


def make_unit(folder: Path, share: float = 1.0, seed: int = 0) -> None:
    """Write ``features.npy`` and ``images.parquet``: embeddings drawn in blocks, and their table."""
    rng = np.random.default_rng(seed)
    sizes = {name: int(rows * share) for name, rows in ROWS.items()}
    parts, first = [], 0
    for name, n_rows in sizes.items():
        n_patients = max(2, n_rows // _REPEATS)
        patient = np.sort(rng.integers(0, n_patients, n_rows))
        race = rng.choice(len(_RACES), n_patients, p=list(_RACES.values()))[patient]
        age = rng.choice(len(_AGES), n_patients, p=list(_AGES.values()))[patient]
        chance = np.array([0.05, 0.08, 0.13, 0.18])[age]
        part = pd.DataFrame({"patient": first + patient, "race": race, "age": age, "split": name})
        part["finding"] = (rng.random(n_rows) < chance).astype(np.int8)
        parts.append(part)
        first += n_patients
    table = pd.concat(parts, ignore_index=True)
    scale = 1.0 / np.arange(1, WIDTH + 1)
    rotation = np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))[0]
    mixed = (scale[:, None] * rotation).astype(np.float32)
    shape = (len(table), WIDTH)
    features = np.lib.format.open_memmap(folder / "features.npy", mode="w+", dtype=np.float32, shape=shape)
    finding, black = table["finding"].to_numpy(), table["race"].to_numpy() == 1
    old = table["age"].to_numpy() >= 2
    for start in range(0, shape[0], _BLOCK):
        rows = slice(start, min(start + _BLOCK, shape[0]))
        latent = rng.normal(size=(rows.stop - rows.start, WIDTH)).astype(np.float32)
        latent[:, 5] += (1.1 - 0.4 * black[rows]) * finding[rows]
        latent[:, 40] += 0.8 * finding[rows]
        latent[:, 11] += 1.2 * black[rows]
        latent[:, 17] += 0.9 * old[rows]
        latent[:, 5] += 0.3 * black[rows]
        features[rows] = latent @ mixed
    features.flush()
    table["race"] = np.array(list(_RACES))[table["race"]]
    table["age"] = np.array(list(_AGES))[table["age"]]
    table.to_parquet(folder / "images.parquet")


def compare(folder: Path) -> dict[str, object]:
    """Compare the nine methods; called in a process of its own."""
    import resource
    import time

    from frame.mitigation.comparison import compare_methods

    started = time.perf_counter()
    table = pd.read_parquet(folder / "images.parquet")
    found = compare_methods(
        np.load(folder / "features.npy", mmap_mode="r"),
        table["finding"],
        table[["race", "age"]],
        table["split"],
        table["patient"],
        threads=THREADS,
    )
    seconds = time.perf_counter() - started
    statuses = found.methods_run["status"].value_counts().to_dict()
    return {
        "seconds": seconds,
        "steps": found.seconds,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "rows": {str(r["split"]): int(r["n_images"]) for r in found.splits.to_dict("records")},
        "statuses": {str(k): int(v) for k, v in statuses.items()},
        "auroc": float(found.table["auroc_before"].iloc[0]),
        "resamples": int(found.settings["resamples"]),
    }


def run(share: float = 1.0) -> None:
    """Make the unit, compare, and print where the time goes."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, str(THREADS))}
    with tempfile.TemporaryDirectory() as place:
        make_unit(Path(place), share)
        code = (
            "import json, pathlib, sys; from benchmarks.mitigation_unit import compare; "
            "print(json.dumps(compare(pathlib.Path(sys.argv[1]))))"
        )
        command = [sys.executable, "-c", code, place]
        if hasattr(os, "sched_getaffinity"):
            cores = ",".join(map(str, sorted(os.sched_getaffinity(0))[:THREADS]))
            code = f"import os; os.sched_setaffinity(0, {{{cores}}}); {code}"
            command[2] = code
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    _print(json.loads(done.stdout.splitlines()[-1]), share)


def _print(found: dict[str, object], share: float) -> None:
    total, peak = float(str(found["seconds"])), float(str(found["peak"]))
    rows = found["rows"]
    table = Table(title=f"One unit, {rows}, {WIDTH} dimensions, {found['resamples']:,} resamples")
    for heading in ("step", "race", "age", "together", "share", "of all cores"):
        table.add_column(heading, justify="left" if heading == "step" else "right")
    steps: dict[str, dict[str, float]] = {}
    used: dict[str, float] = {}
    for step, attribute, seconds, cores in found["steps"]:  # type: ignore[attr-defined]
        steps.setdefault(step, {})[attribute] = seconds
        used[step] = used.get(step, 0.0) + cores
    for step, each in steps.items():
        together = sum(each.values())
        cells = [f"{each[a]:.1f} s" if a in each else "" for a in ("race", "age")]
        share_of_all = f"{100 * together / total:.0f} %"
        table.add_row(step, *cells, f"{together:.1f} s", share_of_all, f"{used[step]:.1f} s")
    table.add_section()
    table.add_row(
        "in all", "", "", f"{total:.1f} s", f"limit {60 * MINUTES:.0f} s", f"{sum(used.values()):.1f} s"
    )
    table.add_row("peak memory", "", "", f"{peak:.2f} GiB", f"limit {GIGABYTES:g} GiB")
    console = Console(width=110)
    console.print(table)
    console.print(f"Disease AUROC {found['auroc']:.3f}; methods by status: {found['statuses']}.")
    if share == 1.0:
        within = total <= 60 * MINUTES and peak <= GIGABYTES
        console.print("Within the limits." if within else "NOT within the limits.")


if __name__ == "__main__":
    run(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)

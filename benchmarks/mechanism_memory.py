"""Peak memory and time of ``frame mechanism`` on embeddings that are mapped from a file.

A file of drawn float32 embeddings is made, the procedure is run on it in a child process, and the child's
peak resident memory is read (it counts the mapped pages that are resident, too).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

#: Rows and dimensions of a whole run, and the memory it may use.
ROWS, DIMENSIONS = 600_000, 768
LIMIT = 3 * 10**9


def make(folder: Path, rows: int, dimensions: int, seed: int = 0) -> None:
    """Embeddings with a falling spectrum, written in blocks; a weaker disease in one group."""
    rng = np.random.default_rng(seed)
    groups = rng.choice(5, rows, p=[0.45, 0.25, 0.15, 0.1, 0.05])
    labels = rng.random(rows) < 0.2
    patients = np.arange(rows) // 3
    split = rng.choice(3, patients[-1] + 1, p=[0.72, 0.08, 0.2])[patients]
    scale = (1.0 / np.sqrt(np.arange(1, dimensions + 1))).astype(np.float32)
    disease = rng.normal(size=dimensions).astype(np.float32) / np.sqrt(dimensions)
    offsets = rng.normal(size=(5, dimensions)).astype(np.float32) * 0.5
    held = np.lib.format.open_memmap(
        folder / "features.npy", mode="w+", dtype=np.float32, shape=(rows, dimensions)
    )
    for start in range(0, rows, 20_000):
        part = slice(start, min(start + 20_000, rows))
        shown = np.where(groups[part] == 3, 0.6, 1.4)[:, None].astype(np.float32) * labels[part, None]
        block = rng.standard_normal((part.stop - start, dimensions), dtype=np.float32)
        held[part] = (block + offsets[groups[part]] + shown * disease) * scale
    held.flush()
    np.savez(folder / "table.npz", labels=labels, groups=groups, patients=patients, split=split)


def child(folder: Path, settings: dict[str, object]) -> None:
    """Run the procedure and print what it used, as JSON."""
    from frame.interventions.procedure import mechanism

    table = np.load(folder / "table.npz")
    words = np.asarray(["train", "validation", "test"])
    started = time.perf_counter()
    verdict = mechanism(
        np.load(folder / "features.npy", mmap_mode="r"),
        table["labels"],
        table["groups"],
        words[table["split"]],
        patients=table["patients"],
        **settings,
    )
    print(
        json.dumps(
            {
                "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                "seconds": time.perf_counter() - started,
                "verdict": verdict.verdict,
                "strengths": int(verdict.strengths[["method", "strength"]].drop_duplicates().shape[0]),
            }
        )
    )


def run(rows: int = ROWS, dimensions: int = DIMENSIONS, **settings: object) -> dict[str, float]:
    """Peak memory (bytes) and seconds of one run in a child process."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, rows, dimensions)
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.mechanism_memory", "--child", name, json.dumps(settings)],
            cwd=Path(__file__).parents[1],
            env=dict(os.environ),
            capture_output=True,
            text=True,
            check=True,
        )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    print(
        f"{rows:,} x {dimensions:,} float32 ({rows * dimensions * 4 / 1e9:.2f} GB mapped): peak "
        f"{found['peak'] / 1e9:.2f} GB, {found['seconds']:,.0f} s, {found['strengths']:.0f} strengths, "
        f"{found['verdict']}"
    )
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--dimensions", type=int, default=DIMENSIONS)
    parser.add_argument("--directions", type=int, default=1)
    parser.add_argument("--few", action="store_true", help="only the ends of each grid, no network")
    parser.add_argument("--quick", action="store_true", help="few strengths, no network, no methods")
    parser.add_argument("--child", nargs=2, metavar=("FOLDER", "SETTINGS"))
    asked = parser.parse_args()
    if asked.child:
        child(Path(asked.child[0]), json.loads(asked.child[1]))
    else:
        chosen: dict[str, object] = {"directions": asked.directions}
        if asked.quick or asked.few:
            chosen |= {
                "decodability_strengths": [0, 1.0],
                "entanglement_strengths": [0, 16 if asked.quick else 256],
                "whitened_strengths": [0, 1.0],
                "nonlinear": False,
            }
        if asked.quick:
            chosen |= {"methods": [], "resamples": 200}
        peak = run(asked.rows, asked.dimensions, **chosen)["peak"]
        sys.exit(0 if peak < LIMIT else 1)

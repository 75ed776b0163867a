"""What a user waits for: whole processes, against the time of importing what they stand on."""

from __future__ import annotations

import statistics
import subprocess
import sys

from rich.console import Console
from rich.table import Table

from frame.tables import table_path

_REPEATS = 5


def spent(command: list[str]) -> tuple[float, float]:
    """Seconds and peak MB of one process."""
    code = (
        "import resource, subprocess, sys, time; start = time.perf_counter(); "
        "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True); "
        "print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    seconds, kilobytes = subprocess.run(
        [sys.executable, "-c", code, *command], capture_output=True, text=True, check=True
    ).stdout.split()
    return float(seconds), float(kilobytes) / 1024


def run() -> None:
    claims = str(table_path("published_claims"))
    commands = {
        "import numpy, scipy.stats, pandas": [sys.executable, "-c", "import numpy, scipy.stats, pandas"],
        "frame --help": [sys.executable, "-m", "frame", "--help"],
        "import frame": [sys.executable, "-c", "import frame"],
        "frame audit data/published_claims.csv": [sys.executable, "-m", "frame", "audit", claims],
        "frame audit ... --protocol paper": [
            sys.executable,
            "-m",
            "frame",
            "audit",
            claims,
            "--protocol",
            "paper",
        ],
    }
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(_REPEATS):
        for name, command in commands.items():  # interleaved, so that a busy moment hits all of them
            measured[name].append(spent(command))
    base = statistics.median(s for s, _ in measured["import numpy, scipy.stats, pandas"])
    table = Table(title=f"Whole processes, median of {_REPEATS}, interleaved")
    for heading in ("process", "time", "against the import", "peak memory"):
        table.add_column(heading, justify="left" if heading == "process" else "right")
    for name, runs in measured.items():
        seconds = statistics.median(s for s, _ in runs)
        memory = max(m for _, m in runs)
        table.add_row(name, f"{seconds:.2f} s", f"{seconds / base:.2f}", f"{memory:.0f} MB")
    Console(width=110).print(table)

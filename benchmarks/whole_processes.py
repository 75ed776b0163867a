"""What a user waits for: whole processes, against the time of importing what they stand on."""

from __future__ import annotations

import statistics
import subprocess
import sys

from rich.console import Console
from rich.table import Table

from frame.tables import table_path

_REPEATS = 5
AUDIT = [sys.executable, "-m", "frame", "audit", str(table_path("published_claims"))]
#: What a process may take, in times of the import and in MB.
_LIMITS = {"frame audit data/published_claims.csv": (2.5, 250.0), "frame --help": (1.0, 250.0)}


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
    commands = {
        "import numpy, scipy.stats, pandas": [sys.executable, "-c", "import numpy, scipy.stats, pandas"],
        "frame --help": [sys.executable, "-m", "frame", "--help"],
        "import frame": [sys.executable, "-c", "import frame"],
        "frame audit data/published_claims.csv": AUDIT,
        "frame audit ... --protocol paper": [*AUDIT, "--protocol", "paper"],
    }
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(_REPEATS):
        for name, command in commands.items():  # interleaved, so that a busy moment hits all of them
            measured[name].append(spent(command))
    base = statistics.median(s for s, _ in measured["import numpy, scipy.stats, pandas"])
    table = Table(title=f"Whole processes, median of {_REPEATS}, interleaved")
    for heading in ("process", "time", "against the import", "peak memory", "limits", "within"):
        table.add_column(heading, justify="left" if heading == "process" else "right")
    for name, runs in measured.items():
        seconds = statistics.median(s for s, _ in runs)
        memory = max(m for _, m in runs)
        times, megabytes = _LIMITS.get(name, (float("inf"), float("inf")))
        limits = f"{times:g} times, {megabytes:g} MB" if name in _LIMITS else ""
        within = (
            ("yes" if seconds <= times * base and memory <= megabytes else "NO") if name in _LIMITS else ""
        )
        table.add_row(name, f"{seconds:.2f} s", f"{seconds / base:.2f}", f"{memory:.0f} MB", limits, within)
    Console(width=110).print(table)

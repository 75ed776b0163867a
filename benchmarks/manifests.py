"""Manifests of 650,000 invented images from raw tables as large as the real ones: time and memory."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import raw_tables
from benchmarks.whole_processes import spent

#: What all of them together may take on two cores: seconds, and MB at the most at any time.
LIMITS = (240.0, 4096.0)
PROFILE = """\
name: timed
sources:
{sources}
labels: {{uncertain: negative, blank: missing}}
"""


def run(scale: float = 1.0) -> None:
    """Build the manifests one after another, each in a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        roots = raw_tables.write(folder / "raw", scale)
        lines = [
            f"  {source}: {{root: '{root}', linked_root: '{root}', images: false}}"
            for source, root in roots.items()
        ]
        profile = folder / "timed.yml"
        profile.write_text(PROFILE.format(sources="\n".join(lines)), encoding="utf-8")
        table = Table(title="Manifests from raw tables of the real sizes (invented rows)")
        for heading in ("source", "images", "time", "peak memory"):
            table.add_column(heading, justify="left" if heading == "source" else "right")
        total = [0, 0.0, 0.0]
        for source in roots:
            command = [sys.executable, "-m", "frame.workspace", f"manifest:{source}"]
            command += ["--profile", str(profile), "--workspace", str(folder / "workspace")]
            seconds, memory = spent(command)
            images = _rows(folder / "workspace" / "manifests" / f"{source}.parquet")
            table.add_row(source, f"{images:,}", f"{seconds:.1f} s", f"{memory:.0f} MB")
            total = [total[0] + images, total[1] + seconds, max(total[2], memory)]
        within = "yes" if total[1] <= LIMITS[0] and total[2] <= LIMITS[1] else "NO"
        table.add_row("all", f"{total[0]:,}", f"{total[1]:.1f} s", f"{total[2]:.0f} MB", end_section=True)
        table.caption = f"limits {LIMITS[0]:g} s and {LIMITS[1]:g} MB: {within}"
        Console(width=110).print(table)


def _rows(path: Path) -> int:
    import pyarrow.parquet as pq

    return int(pq.read_metadata(path).num_rows)


if __name__ == "__main__":
    run()

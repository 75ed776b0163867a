"""The image store against a plain loop: one process, Pillow, one PNG per image.

Simulated radiographs of 1024 x 1024 pixels, half of them JPEG, brought to 224 x 224, in one run. Each way is
a process of its own, started in turn, so that a busy moment hits all of them. Beside the time stand how many
processors were busy on average and the peak memory; and, for the store, four times as many images, whose
memory is to be the same.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

SIZE = 224
RAW = 1024
#: Raw files on disk; a run of more images reads them again under other ids.
FILES = 64
IMAGES = 256
_REPEATS = 3
#: Share of the processors that is to be busy on average; MB that four times the images may add.
_BUSY, _GROWTH = 0.85, 20.0

_MEASURED = """
import json, resource, sys, time
from pathlib import Path
from benchmarks.image_preparation import {way}
arguments = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
own, children = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
start, before = time.perf_counter(), resource.getrusage(own)
{way}(*arguments)
seconds = time.perf_counter() - start
after, workers = resource.getrusage(own), resource.getrusage(children)
busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
busy += workers.ru_utime + workers.ru_stime
print(json.dumps([seconds, busy, after.ru_maxrss / 1024, workers.ru_maxrss / 1024]))
"""


def write_raw(root: Path) -> None:
    """Smooth, noisy pictures that compress about as radiographs do."""
    from PIL import Image

    generator = np.random.default_rng(0)
    for k in range(FILES):
        rough = Image.fromarray(generator.integers(0, 256, (24, 24), dtype=np.uint8))
        smooth = np.asarray(rough.resize((RAW, RAW), Image.Resampling.BICUBIC)).astype(np.int16)
        pixels = np.clip(smooth + generator.integers(-3, 4, smooth.shape, dtype=np.int16), 0, 255)
        Image.fromarray(pixels.astype(np.uint8)).save(root / f"{k:03d}.{'jpg' if k % 2 else 'png'}")


def names(root: Path, n_images: int) -> list[str]:
    files = sorted(path.name for path in root.iterdir())
    return (files * (n_images // len(files) + 1))[:n_images]


def loop(root: Path, folder: Path, n_images: int) -> None:
    """What one would write first."""
    from PIL import Image

    folder.mkdir()
    for k, name in enumerate(names(root, n_images)):
        with Image.open(root / name) as image:
            grey = image.convert("L")
            scale = SIZE / min(grey.size)
            resized = grey.resize(
                (round(grey.width * scale), round(grey.height * scale)), Image.Resampling.BICUBIC
            )
            left, top = (resized.width - SIZE) // 2, (resized.height - SIZE) // 2
            resized.crop((left, top, left + SIZE, top + SIZE)).save(folder / f"{k:06d}.png")


def store(root: Path, folder: Path, n_images: int, workers: int | None = None) -> None:
    import pandas as pd

    from frame.cohorts.images import prepare_images

    table = pd.DataFrame({"image_id": [str(k) for k in range(n_images)], "file": names(root, n_images)})
    report = prepare_images(table, root, folder, size=SIZE, workers=workers)
    assert report.n_ready == n_images


def store_in_one_process(root: Path, folder: Path, n_images: int) -> None:
    store(root, folder, n_images, workers=1)


def measured(way: str, root: Path, folder: Path, n_images: int) -> list[float]:
    command = [sys.executable, "-c", _MEASURED.format(way=way), str(root), str(folder), str(n_images)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [float(number) for number in json.loads(done.stdout)]


def differing(folder: Path, pictures: Path) -> int:
    """Images of the store whose pixels are not those of the loop."""
    from PIL import Image

    from frame.cohorts.images import open_images

    pixels = open_images(folder).read(list(range(IMAGES)))
    paths = sorted(pictures.iterdir())
    return sum(not np.array_equal(a, np.asarray(Image.open(p))) for a, p in zip(pixels, paths, strict=True))


def run() -> None:
    processors = len(os.sched_getaffinity(0))
    ways = {
        "our store": ("store", IMAGES),
        "our store, four times the images": ("store", 4 * IMAGES),
        "our store, one process": ("store_in_one_process", IMAGES),
        "a loop over Pillow, single PNGs": ("loop", IMAGES),
    }
    runs: dict[str, list[list[float]]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary, "raw")
        root.mkdir()
        write_raw(root)
        for repeat in range(_REPEATS):
            for k, (name, (way, n_images)) in enumerate(ways.items()):
                runs[name].append(measured(way, root, Path(temporary, f"{k}-{repeat}"), n_images))
        wrong = differing(Path(temporary, "0-0"), Path(temporary, "3-0"))
    middle = {
        name: [statistics.median(column) for column in zip(*found, strict=True)]
        for name, found in runs.items()
    }
    ours, many = middle["our store"], middle["our store, four times the images"]
    table = Table(
        title=f"{IMAGES} radiographs of {RAW} x {RAW} (simulated) to {SIZE} x {SIZE}, {processors} processors"
    )
    for heading in (
        "way",
        "time",
        "per image",
        "against ours",
        "busy processors",
        "memory",
        "of a worker",
        "within",
    ):
        table.add_column(heading, justify="left" if heading == "way" else "right")
    for name, (_, n_images) in ways.items():
        seconds, busy, own, worker = middle[name]
        within = ""
        if name == "our store, four times the images":
            full = busy / seconds >= _BUSY * processors
            flat = max(many[2] - ours[2], many[3] - ours[3]) <= _GROWTH
            within = "yes" if full and flat else "NO"
        table.add_row(
            *(name, f"{seconds:.2f} s", f"{1000 * seconds / n_images:.1f} ms"),
            f"{seconds / n_images / (ours[0] / IMAGES):.2f}",
            *(f"{busy / seconds:.2f}", f"{own:.0f} MB", f"{worker:.0f} MB" if worker else "", within),
        )
    console = Console(width=120)
    console.print(table)
    console.print(
        f"{wrong} of {IMAGES} images differ between store and loop. 'busy processors': seconds of all of "
        f"them by the time; starting the workers is part of it. 'within': at least {_BUSY:.0%} of the "
        f"processors busy, and at most {_GROWTH:g} MB more than for a quarter of the images. The limits are "
        f"meant for an idle machine."
    )


if __name__ == "__main__":
    run()

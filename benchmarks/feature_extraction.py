"""Extraction against a bare forward loop, its memory for a thousand and a million rows, and random reads.

Three tables. Throughput: a ViT-S/16 with random weights at 224 pixels, once as a loop over tensors that lie
ready in memory and once from an image store to a feature store, each in a process of its own, in turn, so
that a busy moment hits both. Memory: an encoder that takes means of pixels, over stores of 1,000 and of
1,000,000 synthetic images. Reads: 100,000 random rows of 1,024 numbers, warm.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

#: Images of the throughput run, rows of the memory runs, and of the store that is read from.
IMAGES = 192
FEW, MANY = 1_000, 1_000_000
STORED, READ, WIDTH = 300_000, 100_000, 1024
_REPEATS = 3
#: Least share of the loop's throughput; MB that a million rows may add; seconds for the reads.
_SHARE, _GROWTH, _SECONDS = 0.90, 16.0, 2.0
MANIFEST = "0" * 64

_MEASURED = """
import json, sys
from pathlib import Path
from benchmarks.feature_extraction import {way}
print(json.dumps({way}(*map(Path, sys.argv[1:]))))
"""


def write_images(folder: Path, n_rows: int, size: int, shard_rows: int = 512) -> None:
    """An image store of synthetic pixels, as image preparation lays it out, and a table of its ids."""
    import pyarrow as pa
    from pyarrow import parquet

    from frame.cohorts.image_store import INDEX, METADATA, index_schema, shard_path

    folder.mkdir()
    generator = np.random.default_rng(0)
    pixels = generator.integers(0, 256, (shard_rows, size, size), dtype=np.uint8)
    about = {"size": size, "colour": "L", "shard_rows": shard_rows, "pixels_sha256": str(n_rows)}
    schema = index_schema().with_metadata({METADATA: json.dumps(about)})
    waiting = []
    with parquet.ParquetWriter(folder / INDEX, schema) as index:
        for shard, first in enumerate(range(0, n_rows, shard_rows)):
            n = min(shard_rows, n_rows - first)
            rows = {
                "image_id": [f"site:{row:08d}" for row in range(first, first + n)],
                "status": ["ready"] * n,
                "reason": [""] * n,
                "sha256": [f"{row:064d}" for row in range(first, first + n)],
                "width": [size] * n,
                "height": [size] * n,
                "row": list(range(first, first + n)),
            }
            table = pa.table(rows, schema=schema)
            np.save(shard_path(folder, shard), np.roll(pixels[:n], shard, axis=2))
            parquet.write_table(table, shard_path(folder, shard).with_suffix(".parquet"))
            waiting.append(table)
            if len(waiting) == 64 or first + n == n_rows:  # groups of rows as large as those of preparation
                index.write_table(pa.concat_tables(waiting).combine_chunks())
                waiting.clear()
    ids = parquet.read_table(folder / INDEX, columns=["image_id"])
    parquet.write_table(ids, manifest_of(folder), compression="zstd", row_group_size=1 << 17)


def manifest_of(images: Path) -> Path:
    return images.with_suffix(".parquet")


def loop(images: Path, _: Path) -> list[float]:
    """Seconds, and seconds of all processors, of a bare loop over batches that are ready."""
    import torch

    from frame.cohorts.image_rows import open_image_rows
    from frame.encoders.loaders import load_encoder

    loaded = load_encoder("random_vit_s")
    pixels = open_image_rows(images)
    batches = [
        torch.from_numpy(loaded.preprocessing.prepare(pixels.read(np.arange(first, first + 64))))
        for first in range(0, IMAGES, 64)
    ]
    with torch.inference_mode():
        loaded.module(batches[0][:8])
        start, busy = time.perf_counter(), time.process_time()
        for batch in batches:
            loaded.module(batch).numpy()
    return [time.perf_counter() - start, time.process_time() - busy]


def store(images: Path, folder: Path) -> list[float]:
    """The same from the image store to the finished feature store."""
    import torch

    from frame.cohorts.image_rows import open_image_rows
    from frame.encoders.extraction import extract_features
    from frame.encoders.loaders import load_encoder

    loaded = load_encoder("random_vit_s")
    pixels = open_image_rows(images)
    with torch.inference_mode():
        loaded.module(torch.from_numpy(loaded.preprocessing.prepare(pixels.read(np.arange(8)))))
    start, busy = time.perf_counter(), time.process_time()
    report = extract_features(loaded, pixels, pixels.ids(), folder, manifest_sha256=MANIFEST, batch_size=64)
    assert report.sidecar["counts"] == {"ready": IMAGES}
    return [time.perf_counter() - start, time.process_time() - busy]


def memory(images: Path, folder: Path) -> list[float]:
    """Seconds, and peak memory in MB, of an extraction with a cheap encoder."""
    from frame.cohorts.image_rows import column_texts, open_image_rows
    from frame.encoders.extraction import extract_features
    from frame.encoders.loaders import load_encoder

    start = time.perf_counter()
    pixels = open_image_rows(images)
    report = extract_features(
        load_encoder("block_means"),
        pixels,
        column_texts(manifest_of(images), "image_id"),
        folder,
        manifest_sha256=MANIFEST,
        block_rows=1000,
    )
    assert report.sidecar["counts"] == {"ready": pixels.n_rows}
    return [time.perf_counter() - start, peak_memory()]


def peak_memory() -> float:
    """Largest resident memory of this process in MB.

    The kernel's own mark where it has one: what ``getrusage`` tells begins with that of the process that
    started this one.
    """
    import resource

    with suppress(OSError, IndexError, ValueError):
        line = Path("/proc/self/status").read_text(encoding="utf-8").split("VmHWM:")[1]
        return int(line.split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def write_features(folder: Path, dtype: str) -> None:
    """A feature store of random numbers."""
    from frame.encoders.feature_blocks import Block, BlockFolder, join_blocks

    blocks = BlockFolder(folder, "key", STORED, 10_000, WIDTH, dtype)
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(10_000, WIDTH)).astype(dtype)
    about = {"precision": "float32", "device": "cpu", "n_again": 0, "distance": 0.0, "reason": ""}
    for block in range(blocks.n_blocks):
        vectors[:, 0] = block
        blocks.write(block, Block(vectors, np.zeros(len(vectors), np.uint8), about))
    join_blocks(blocks, {"encoder": "random", "key": "key", "manifest_sha256": MANIFEST})


def reads(folder: Path) -> list[float]:
    """Seconds to open with and without digests, and to read random rows the first time and again."""
    from frame.encoders.features import open_features

    start = time.perf_counter()
    open_features(folder, manifest_sha256=MANIFEST)
    verified = time.perf_counter()
    found = open_features(folder, manifest_sha256=MANIFEST, verify=False)
    opened = time.perf_counter()
    rows = np.random.default_rng(1).permutation(STORED)[:READ]
    seconds = [verified - start, opened - verified]
    for _ in range(4):
        start = time.perf_counter()
        vectors = found.read(rows)
        seconds.append(time.perf_counter() - start)
        assert np.array_equal(vectors[:, 0].astype(int), rows // 10_000)
    return [*seconds[:3], statistics.median(seconds[3:])]


def measured(way: str, *paths: Path) -> list[float]:
    command = [sys.executable, "-c", _MEASURED.format(way=way), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [float(number) for number in json.loads(done.stdout)]


def run_throughput(console: Console, temporary: Path) -> None:
    if find_spec("torch") is None or find_spec("timm") is None:
        console.print("Throughput of a ViT-S/16: not measured, for want of the extra [models].")
        return
    write_images(temporary / "images", IMAGES, 224)
    runs: dict[str, list[list[float]]] = {"loop": [], "store": []}
    for repeat in range(_REPEATS):
        for way, found in runs.items():
            found.append(measured(way, temporary / "images", temporary / f"{way}-{repeat}"))
    table = Table(
        title=f"{IMAGES} images of 224 x 224 through a ViT-S/16, batches of 64, on "
        f"{len(os.sched_getaffinity(0))} processors"
    )
    for heading in ("way", "time", "images/s", "share of the loop", "processor time", "within"):
        table.add_column(heading, justify="left" if heading == "way" else "right")
    bare = statistics.median(seconds for seconds, _ in runs["loop"])
    names = {"loop": "bare forward loop, tensors ready", "store": "image store to feature store"}
    for way, found in runs.items():
        middle, busy = (statistics.median(column) for column in zip(*found, strict=True))
        share = bare / middle
        within = "" if way == "loop" else ("yes" if share >= _SHARE else "NO")
        numbers = (f"{middle:.1f} s", f"{IMAGES / middle:.2f}", f"{share:.1%}", f"{busy:.1f} s")
        table.add_row(names[way], *numbers, within)
    console.print(table)


def run_memory(console: Console, temporary: Path) -> None:
    table = Table(title="Block means of synthetic 16 x 16 images, in a fresh process each")
    for heading in ("rows", "time", "rows/s", "peak memory", "within"):
        table.add_column(heading, justify="right")
    peaks = []
    for n_rows in (FEW, MANY):
        write_images(temporary / f"few-{n_rows}", n_rows, 16)
        seconds, peak = measured("memory", temporary / f"few-{n_rows}", temporary / f"features-{n_rows}")
        peaks.append(peak)
        within = "" if n_rows == FEW else ("yes" if peak - peaks[0] <= _GROWTH else "NO")
        table.add_row(f"{n_rows:,}", f"{seconds:.1f} s", f"{n_rows / seconds:,.0f}", f"{peak:.0f} MB", within)
    console.print(table)


def run_reads(console: Console, temporary: Path) -> None:
    table = Table(title=f"{READ:,} random rows of {WIDTH:,} numbers, of {STORED:,}")
    for heading in ("stored as", "opened, digests compared", "opened", "first read", "again", "within"):
        table.add_column(heading, justify="left" if heading == "stored as" else "right")
    for dtype in ("float16", "float32"):
        write_features(temporary / dtype, dtype)
        found = measured("reads", temporary / dtype)
        within = "yes" if found[3] <= _SECONDS else "NO"
        table.add_row(dtype, *(f"{seconds:.3f} s" for seconds in found), within)
    console.print(table)


def run() -> None:
    console = Console(width=120)
    with tempfile.TemporaryDirectory() as temporary:
        run_throughput(console, Path(temporary))
        run_memory(console, Path(temporary))
        run_reads(console, Path(temporary))
    console.print(
        f"'within': at least {_SHARE:.0%} of the loop's throughput; at most {_GROWTH:g} MB more for a "
        f"million rows than for a thousand; at most {_SECONDS:g} s for the reads. The limits are "
        "meant for an idle machine."
    )


if __name__ == "__main__":
    run()

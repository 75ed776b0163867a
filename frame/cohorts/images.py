"""The image store: every image of a manifest at one size, made in parallel and resumed after a kill.

A store is a folder of shards in the order of the table: ``shard-00000.npy`` with the pixels and beside it
``shard-00000.parquet`` with one row per image, and at the end ``index.parquet`` over all of them. An image
that cannot be read has a row of zeros, and the index says why. Shards are complete or absent: pixels are
written under a temporary name, then renamed, then the table beside them is, which also holds the shard's key.
The key is a digest of the settings, the image ids, and size and time of change of each raw file; a shard
whose key still holds is kept. The bytes of the index depend on the contents alone, among them a digest of all
pixels.

One run at a time works in a folder: it holds a lock, as do its worker processes, and what a killed run left
under temporary names is removed once the lock is free.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from frame.cohorts.image_store import (
    INDEX,
    METADATA,
    ImageStore,
    index_schema,
    is_whole,
    open_images,
    parquet_module,
    shard_ids,
    shard_metadata,
    shard_path,
)
from frame.cohorts.image_workers import Chunk, ImageRecord, Workers, file_state, make_chunk
from frame.cohorts.listing import check_relative
from frame.cohorts.pixels import COLOURS
from frame.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

__all__ = ["ImageReport", "ImageStore", "open_images", "prepare_images"]

_LOCK: Final = ".lock"
_PART: Final = ".part"
#: Images that a worker is given at a time; small, so that all workers end at about the same time.
_CHUNK_ROWS: Final = 32
#: Shards whose tables are put together to one group of rows of the index.
_SHARDS_PER_GROUP: Final = 64
#: Seconds to wait for the workers of a killed run, which end within an instant.
_PATIENCE: Final = 10.0
#: Goes up when the same raw files would give other pixels or another store.
_FORMAT: Final = 1


@dataclass(frozen=True)
class ImageReport:
    """What a run of :func:`prepare_images` found and made.

    Attributes
    ----------
    n_images, n_ready : int
        Rows of the table, and those whose image can be read.
    reasons : dict of str to int
        Images that cannot be read by reason (see :data:`frame.cohorts.pixels.REASONS`), most frequent first.
    n_shards, n_shards_made : int
        Shards of the store, and those that this run made; the others were fresh.
    """

    n_images: int
    n_ready: int
    reasons: dict[str, int]
    n_shards: int
    n_shards_made: int


def prepare_images(
    table: pd.DataFrame,
    root: Path,
    folder: Path,
    *,
    size: int = 224,
    colour: str = "L",
    workers: int | None = None,
    shard_rows: int = 512,
    key: str = "",
) -> ImageReport:
    """Make a store of images, or what of it is missing or no longer holds.

    Parameters
    ----------
    table : pandas.DataFrame
        Columns ``image_id`` (unique) and ``file`` (POSIX path relative to ``root``, or missing).
    root : Path
        Folder of the release.
    folder : Path
        Folder of the store; made where it does not exist.
    size : int
        Side in pixels: the shorter side is resized to it, then the square in the middle is cut.
    colour : {"L", "RGB"}
        Grey, or colour.
    workers : int, optional
        Processes; by default one for each processor that this process may use. 1 works in this process. The
        files do not depend on it.
    shard_rows : int
        Images per shard.
    key : str
        Anything else that the images depend on; another text makes every shard anew.

    Returns
    -------
    ImageReport
        Counts. Images that cannot be read are counted there and listed in the index; they never end the run.

    Raises
    ------
    frame.InputError
        If the arguments or the table are wrong, a folder is missing, another run works in the store, nothing
        can be written, a worker was killed, or a package is missing.

    Notes
    -----
    Memory is that of the table, of two or three shards' records and, in each worker, of one raw image; it
    does not grow with the number of images.
    """
    _check_arguments(table, root, size, colour, workers, shard_rows)
    n_workers = workers or _processors()
    settings = {
        "format": _FORMAT,
        "key": key,
        "size": size,
        "colour": colour,
        "pillow": importlib.metadata.version("pillow"),
    }
    plan = _Plan(table, str(root), folder, size, colour, shard_rows, json.dumps(settings, sort_keys=True))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder) as lock:
            for leftover in folder.glob(f"*{_PART}"):
                leftover.unlink()
            made = _make_shards(plan, n_workers, lock)
            return _finish(plan, made)
    except OSError as problem:
        reason = (problem.strerror or "it cannot be written").lower()
        raise InputError(f"The image store '{folder.name}' cannot be written ({reason}).") from None


@dataclass(frozen=True)
class _Plan:
    """What is to be in the store, and where."""

    table: pd.DataFrame
    root: str
    folder: Path
    size: int
    colour: str
    shard_rows: int
    settings: str

    @property
    def n_shards(self) -> int:
        return -(-len(self.table) // self.shard_rows)

    def shape(self, shard: int) -> tuple[int, ...]:
        n_rows = min(self.shard_rows, len(self.table) - shard * self.shard_rows)
        return (n_rows, self.size, self.size, *((3,) if self.colour == "RGB" else ()))

    def rows(self, shard: int) -> tuple[list[str], tuple[str | None, ...]]:
        """Image ids and files of a shard."""
        part = self.table.iloc[shard * self.shard_rows : (shard + 1) * self.shard_rows]
        files = tuple(file if isinstance(file, str) else None for file in part["file"])
        return part["image_id"].astype(str).tolist(), files

    def key(self, ids: list[str], files: Sequence[str | None], states: Sequence[tuple[int, int]]) -> str:
        digest = hashlib.sha256(self.settings.encode())
        for image_id, file, state in zip(ids, files, states, strict=True):
            digest.update(json.dumps([image_id, file, *state]).encode())
        return digest.hexdigest()


@dataclass(frozen=True)
class _Begun:
    """A shard whose chunks are being made."""

    shard: int
    ids: list[str]
    files: tuple[str | None, ...]
    header_bytes: int
    chunks: list[Future[list[ImageRecord]]]


def _make_shards(plan: _Plan, n_workers: int, lock: int) -> int:
    """Make every shard that is not fresh, and remove what belongs to no shard; the number made."""
    made = 0
    begun: deque[_Begun] = deque()
    with Workers(lock) as processes:
        pool = ThreadPoolExecutor(n_workers)
        make = make_chunk if n_workers == 1 else processes.make
        try:
            for shard in range(plan.n_shards):
                ids, files = plan.rows(shard)
                if _is_fresh(plan, shard, ids, files):
                    continue
                made += 1
                (plan.folder / INDEX).unlink(missing_ok=True)
                begun.append(_begin(plan, shard, ids, files, pool, make))
                # The next shard is begun before the last one ends, so that no worker waits at the border.
                while sum(len(b.chunks) for b in begun) - len(begun[0].chunks) >= 2 * n_workers:
                    _complete(plan, begun.popleft())
            while begun:
                _complete(plan, begun.popleft())
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    return made


def _is_fresh(plan: _Plan, shard: int, ids: list[str], files: tuple[str | None, ...]) -> bool:
    path = shard_path(plan.folder, shard)
    if not is_whole(path, plan.shape(shard)):
        return False
    beside = path.with_suffix(".parquet")
    about = shard_metadata(beside)
    if about is None or not isinstance(about.get("pixels_sha256"), str) or shard_ids(beside) != ids:
        return False
    return bool(about.get("key") == plan.key(ids, files, [file_state(plan.root, file) for file in files]))


def _begin(
    plan: _Plan,
    shard: int,
    ids: list[str],
    files: tuple[str | None, ...],
    pool: ThreadPoolExecutor,
    make: Callable[[Chunk], list[ImageRecord]],
) -> _Begun:
    """Lay out the file of the pixels, all 0, and hand out its rows."""
    shape = plan.shape(shard)
    row_bytes = int(np.prod(shape[1:]))
    part = Path(f"{shard_path(plan.folder, shard)}{_PART}")
    with part.open("wb") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        start = file.tell()
        file.truncate(start + shape[0] * row_bytes)
    chunks = []
    for first in range(0, shape[0], _CHUNK_ROWS):
        some = files[first : first + _CHUNK_ROWS]
        chunk = Chunk(str(part), start + first * row_bytes, plan.root, some, plan.size, plan.colour)
        chunks.append(pool.submit(make, chunk))
    return _Begun(shard, ids, files, start, chunks)


def _complete(plan: _Plan, begun: _Begun) -> None:
    """Wait for the chunks of a shard, then put pixels and table in place."""
    records = [record for chunk in begun.chunks for record in chunk.result()]
    path = shard_path(plan.folder, begun.shard)
    beside = path.with_suffix(".parquet")
    part = Path(f"{path}{_PART}")
    with part.open("rb") as file:
        file.seek(begun.header_bytes)
        pixels_sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    key = plan.key(begun.ids, begun.files, [(record.n_bytes, record.changed) for record in records])
    about = {"key": key, "pixels_sha256": pixels_sha256}
    first = begun.shard * plan.shard_rows
    table = _table(begun.ids, records, first).replace_schema_metadata({METADATA: json.dumps(about)})
    # Without its table a shard is not fresh: at no moment do new pixels lie beside an old key.
    beside.unlink(missing_ok=True)
    part.replace(path)
    beside_part = Path(f"{beside}{_PART}")
    parquet_module().write_table(table, beside_part, compression="zstd")
    beside_part.replace(beside)


def _finish(plan: _Plan, made: int) -> ImageReport:
    """Remove surplus shards, write the index where it does not hold, and count."""
    parquet = parquet_module()
    index = plan.folder / INDEX
    wanted = {shard_path(plan.folder, shard).stem for shard in range(plan.n_shards)}
    surplus = [path for path in plan.folder.glob("shard-*") if path.stem not in wanted]
    if surplus:
        index.unlink(missing_ok=True)
    # The table goes first, so that a shard that lost one of its two files is not taken for a whole one.
    for path in sorted(surplus, key=lambda path: path.suffix != ".parquet"):
        path.unlink()
    tables = [shard_path(plan.folder, shard).with_suffix(".parquet") for shard in range(plan.n_shards)]
    digest = hashlib.sha256()
    for path in tables:
        digest.update(str((shard_metadata(path) or {})["pixels_sha256"]).encode())
    about = {
        "size": plan.size,
        "colour": plan.colour,
        "shard_rows": plan.shard_rows,
        "pixels_sha256": digest.hexdigest(),
    }
    schema = index_schema().with_metadata({METADATA: json.dumps(about)})
    counts: Counter[str] = Counter()
    part = Path(f"{index}{_PART}")
    with parquet.ParquetWriter(part, schema, compression="zstd") as writer:
        for start in range(0, len(tables), _SHARDS_PER_GROUP):
            group = [parquet.read_table(path) for path in tables[start : start + _SHARDS_PER_GROUP]]
            joined = _concatenated(group).replace_schema_metadata(schema.metadata)
            counts.update(joined["reason"].to_pylist())
            writer.write_table(joined.combine_chunks())
    if index.exists() and _digest(index) == _digest(part):
        part.unlink()
    else:
        part.replace(index)
    n_ready = counts.pop("", 0)
    reasons = dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
    return ImageReport(len(plan.table), n_ready, reasons, plan.n_shards, made)


@contextmanager
def _locked(folder: Path) -> Iterator[int]:
    """Hold the folder's lock; waits a little for the workers of a killed run."""
    try:
        import fcntl
    except ImportError:
        raise InputError("Preparing images needs file locks, which this operating system lacks.") from None
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise InputError(
                        f"Another run is preparing images in '{folder.name}'; wait until it ends."
                    ) from None
                time.sleep(0.05)
        yield lock
    finally:
        os.close(lock)


def _check_arguments(
    table: pd.DataFrame, root: Path, size: int, colour: str, workers: int | None, shard_rows: int
) -> None:
    parquet_module()
    for name, value in (("size", size), ("shard_rows", shard_rows), ("workers", workers)):
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not (value is None and name == "workers") and not (whole and value >= 1):  # type: ignore[operator]
            raise InputError(f"{name} is {value!r}; it must be a whole number from 1.")
    if colour not in COLOURS:
        raise InputError(f"colour is {colour!r}; it must be one of {', '.join(COLOURS)}.")
    for column in ("image_id", "file"):
        if column not in table.columns:
            raise InputError(f"The table of images has no column {column}; image_id and file are needed.")
    if table.empty:
        raise InputError("The table of images has no row; at least one image is needed.")
    if not root.is_dir():
        raise InputError(f"The folder '{root.name}' does not exist; name the folder that holds the release.")
    absent = int(table["image_id"].isna().sum())
    twice = int(table["image_id"].dropna().astype(str).duplicated().sum())
    if absent or twice:
        raise InputError(
            f"The table of images has {absent:,} rows without an image_id and {twice:,} with one that stands "
            f"above; each image needs its own."
        )
    check_relative(table["file"])


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _table(ids: list[str], records: Sequence[ImageRecord], first: int) -> pa.Table:
    import pyarrow as pa

    columns = {
        "image_id": ids,
        "status": ["unreadable" if record.reason else "ready" for record in records],
        "reason": [record.reason for record in records],
        "sha256": [record.sha256 for record in records],
        "width": [record.width for record in records],
        "height": [record.height for record in records],
        "row": list(range(first, first + len(ids))),
    }
    return pa.table(columns, schema=index_schema())


def _concatenated(tables: list[pa.Table]) -> pa.Table:
    import pyarrow as pa

    return pa.concat_tables([table.replace_schema_metadata(None) for table in tables])

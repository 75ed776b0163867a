"""Extraction: every image of a manifest through an encoder once, in blocks of rows.

Images are read and prepared ahead in threads, so that the encoder does not wait; what is ahead is a fixed
number of batches, and what is done goes to disk block by block, so that memory does not grow with the number
of images. A run that is killed goes on with the block it was in. Several tasks may share one extraction, each
with its own range of rows.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from frame import __version__
from frame.cohorts.image_rows import ImageRows
from frame.encoders.block_making import BlockMaker, compiled
from frame.encoders.feature_blocks import BlockFolder, join_blocks, locked
from frame.encoders.features import (
    DTYPES,
    FORMAT,
    REASONS,
    STATUS,
    VECTORS,
    array_file_is_whole,
    file_sha256,
    read_features_sidecar,
)
from frame.encoders.precision import on_processor, resolve_precision
from frame.errors import InputError

if TYPE_CHECKING:
    from frame.encoders.loaders import LoadedEncoder

__all__ = ["BLOCK_ROWS", "FIT_IMAGES", "ExtractionReport", "Progress", "extract_features", "rows_to_fit"]

#: Rows of a block: a second of work of the fastest encoder on an accelerator, minutes on a processor.
BLOCK_ROWS: Final = 4096
#: Training images that an encoder is fitted to, at most.
FIT_IMAGES: Final = 2000
#: Threads that prepare images for an accelerator, where there are as many processors.
_MOST_WORKERS: Final = 8


@dataclass(frozen=True)
class Progress:
    """How far an extraction is; given to ``say`` after each batch.

    Attributes
    ----------
    n_rows : int
        Rows of this run, those of blocks that were there before included.
    n_done, n_before : int
        Rows that are done, and those of them that were done before this run.
    """

    n_rows: int
    n_done: int
    n_before: int


@dataclass(frozen=True)
class ExtractionReport:
    """What a run of :func:`extract_features` made.

    Attributes
    ----------
    n_rows, n_rows_made : int
        Rows of this run's range, and those of the blocks that it made.
    n_blocks, n_blocks_made : int
        The same in blocks.
    joined : bool
        Whether the store is finished: all its blocks are put together. A run over a range of rows makes
        blocks only.
    sidecar : mapping
        What the finished store says about itself; empty where it is not finished.
    n_blocks_dropped : int
        Blocks that tasks had made with other settings, and that were removed.
    """

    n_rows: int
    n_rows_made: int
    n_blocks: int
    n_blocks_made: int
    joined: bool
    sidecar: Mapping[str, Any]
    n_blocks_dropped: int = 0


def extract_features(
    loaded: LoadedEncoder,
    images: ImageRows,
    ids: Iterable[str],
    folder: Path,
    *,
    manifest_sha256: str,
    batch_size: int = 64,
    block_rows: int = BLOCK_ROWS,
    dtype: str = "float16",
    precision: str = "auto",
    workers: int | None = None,
    rows: tuple[int, int] | None = None,
    normalise: bool = False,
    compile: bool = False,  # noqa: A002
    say: Callable[[Progress], None] | None = None,
) -> ExtractionReport:
    """Make the feature store of an encoder, or what of it is missing.

    Parameters
    ----------
    loaded : LoadedEncoder
        Of :func:`frame.encoders.loaders.load_encoder`.
    images : ImageRows
        Of :func:`frame.cohorts.image_rows.open_image_rows`.
    ids : iterable of str
        Image ids of the manifest, in its order; they must be those of ``images``. Read once.
    folder : Path
        Folder of the store; made where it does not exist.
    manifest_sha256 : str
        Digest of the manifest that the ids are from.
    batch_size : int
        Images that go through the encoder at once.
    block_rows : int
        Rows of a block; the same for all tasks that share an extraction.
    dtype : {"float16", "float32"}
        What vectors are stored in.
    precision : {"auto", "half", "bf16", "float32"}
        What they are computed in, see :mod:`frame.encoders.precision`. ``auto`` is half on an accelerator.
    workers : int, optional
        Threads that prepare images ahead of the encoder; 0 prepares each batch when it is needed. By default
        one beside a processor, and up to eight beside an accelerator. No effect on the result.
    rows : (int, int), optional
        First row and the one after the last: only the blocks whose first row lies between them are made, and
        the store is not finished. Ranges that follow each other make each block once.
    normalise : bool
        Divide each vector by its length.
    compile : bool
        Have torch compile the network first.
    say : callable, optional
        Told a :class:`Progress` after each batch.

    Returns
    -------
    ExtractionReport
        What was made. The rows of images that cannot be read, and of vectors that are not finite, are NaN;
        they are counted with their reasons in the sidecar.

    Raises
    ------
    frame.InputError
        If an argument is wrong, the images are not those of the manifest, another run holds the store, or
        nothing can be written.
    """
    workers = _check_arguments(loaded, images, batch_size, block_rows, dtype, workers, rows)
    asked = resolve_precision(loaded, precision)
    sidecar = {
        "encoder": loaded.encoder.name,
        "settings": json.loads(json.dumps(dict(loaded.settings))),
        "preprocessing_sha256": loaded.preprocessing.sha256,
        "manifest_sha256": manifest_sha256,
        "ids_sha256": _ids_digest(ids, images),
        "images_sha256": images.pixels_sha256,
        "image_shape": list(images.shape[1:]),
        "normalised": normalise,
        "precision": precision,
        "compiled": compile,
    }
    key = _digest({**sidecar, "format": FORMAT, "dtype": dtype, "reasons": REASONS})
    blocks = BlockFolder(
        folder,
        _digest({"key": key, "block_rows": block_rows}),
        images.n_rows,
        block_rows,
        loaded.width,
        dtype,
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder, alone=rows is None):
            finished = _finished(folder, key, contents=rows is None)
            wanted = _blocks_of(blocks, rows)
            n_rows = sum(stop - start for start, stop in map(blocks.span, wanted))
            n_dropped = blocks.n_others() if rows is None else 0
            if finished is not None:
                if rows is None:
                    blocks.remove()
                return ExtractionReport(n_rows, 0, len(wanted), 0, True, finished, n_dropped)
            if rows is None:
                blocks.remove_others()
            missing = [block for block in wanted if not blocks.done(block)]
            n_missing = sum(stop - start for start, stop in map(blocks.span, missing))
            if missing:
                ready = compiled(loaded) if compile else loaded
                maker = BlockMaker(ready, images, blocks, batch_size, workers, normalise)
                maker.make(missing, asked, _counted(n_rows, n_rows - n_missing, say))
            if rows is not None:
                return ExtractionReport(n_rows, n_missing, len(wanted), len(missing), False, {})
            whole = join_blocks(blocks, {**sidecar, "key": key, "frame": __version__})
            return ExtractionReport(n_rows, n_missing, len(wanted), len(missing), True, whole, n_dropped)
    except OSError as problem:
        reason = (problem.strerror or "it cannot be written").lower()
        raise InputError(f"The features in '{folder.name}' cannot be written ({reason}).") from None


def rows_to_fit(splits: Iterable[str], images: ImageRows, seed: int, n_most: int = FIT_IMAGES) -> np.ndarray:
    """Rows of the training images that an encoder is fitted to.

    Parameters
    ----------
    splits : iterable of str
        Split of each row of the manifest, in its order. Read once.
    images : ImageRows
        The images, of the same rows.
    seed : int
        Seed of the draw, where there are more than ``n_most``.
    n_most : int
        Images to take.

    Returns
    -------
    numpy.ndarray of int64, shape (n,)
        Ascending; of the split ``train`` and with an image that can be read. A flag and two numbers per row
        are held, whatever the texts.

    Raises
    ------
    frame.InputError
        If the images are not as many as the rows of the manifest.
    """
    chosen = np.fromiter((split == "train" for split in splits), dtype=bool)
    if len(chosen) != images.n_rows:
        raise InputError(
            "The image store does not hold the images of the manifest; prepare the images again: "
            "frame data build."
        )
    for start in range(0, len(chosen), BLOCK_ROWS):
        part = chosen[start : start + BLOCK_ROWS]
        reasons = images.reasons(start, start + len(part))
        part &= np.fromiter((reason == "" for reason in reasons), dtype=bool, count=len(part))
    rows = np.flatnonzero(chosen)
    if len(rows) > n_most:
        rows = np.sort(np.random.default_rng(seed).choice(rows, n_most, replace=False))
    return rows


def _check_arguments(
    loaded: LoadedEncoder,
    images: ImageRows,
    batch_size: int,
    block_rows: int,
    dtype: str,
    workers: int | None,
    rows: tuple[int, int] | None,
) -> int:
    """The number of threads; an error where an argument is wrong."""
    for name, value, least in (
        ("batch_size", batch_size, 1),
        ("block_rows", block_rows, 1),
        ("workers", 0 if workers is None else workers, 0),
    ):
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise InputError(f"{name} is {value!r}; it must be a whole number from {least}.")
    if dtype not in DTYPES:
        raise InputError(f"dtype is {dtype!r}; it must be one of {', '.join(DTYPES)}.")
    if rows is not None and not 0 <= rows[0] < rows[1] <= images.n_rows:
        raise InputError(
            f"rows are {rows[0]}:{rows[1]}; they must lie in 0:{images.n_rows}, the first before the last."
        )
    if workers is not None:
        return workers
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 1 if on_processor(loaded) else max(1, min(_MOST_WORKERS, there))


def _ids_digest(ids: Iterable[str], images: ImageRows) -> str:
    """Digest of the ids of a manifest; an error where they are not those of the images."""
    found, n_other = hashlib.sha256(), 0
    for image_id, stored in zip_longest(ids, images.ids()):
        n_other += image_id != stored
        found.update(f"{len(image_id or '')}:{image_id}".encode())
    if n_other:
        raise InputError(
            f"The image store does not hold the images of the manifest in its order ({n_other:,} rows "
            "differ); prepare the images again: frame data build."
        )
    return found.hexdigest()


def _digest(about: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


def _blocks_of(blocks: BlockFolder, rows: tuple[int, int] | None) -> list[int]:
    if rows is None:
        return list(range(blocks.n_blocks))
    return [block for block in range(blocks.n_blocks) if rows[0] <= blocks.span(block)[0] < rows[1]]


def _finished(folder: Path, key: str, *, contents: bool) -> dict[str, Any] | None:
    """The sidecar of the store where it is finished and the wanted one."""
    found = read_features_sidecar(folder)
    if found is None or found["key"] != key:
        return None
    n_rows, width = found["n_rows"], found["width"]
    files = (
        (VECTORS, (n_rows, width), np.dtype(found["dtype"]), "vectors_sha256"),
        (STATUS, (n_rows,), np.dtype(np.uint8), "status_sha256"),
    )
    for file, shape, dtype, digest in files:
        if not array_file_is_whole(folder / file, shape, dtype):
            return None
        if contents and file_sha256(folder / file) != found[digest]:
            return None
    return found


def _counted(n_rows: int, n_before: int, say: Callable[[Progress], None] | None) -> Callable[[int], None]:
    """What is told the rows that become done, and tells how many are."""
    n_done = n_before
    if say:
        say(Progress(n_rows, n_before, n_before))

    def told(n_more: int) -> None:
        nonlocal n_done
        n_done += n_more
        if say:
            say(Progress(n_rows, n_done, n_before))

    return told

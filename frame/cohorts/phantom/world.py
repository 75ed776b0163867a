"""Write the phantom world to disk, each source in the layout of its release.

Below the folder each source has a folder of its own, with its linked release inside
(:data:`frame.cohorts.phantom.truth.ROOTS`), and ``truth`` holds what is true of every image, which no
stage of the study reads. A source is written under a temporary name and renamed when it is whole, so that an
interrupted call goes on with the source that it was at. The bytes depend on the truth and the size of the
images only, not on the number of workers or of images drawn together.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frame.cohorts.phantom import (
    layout_chexpert,
    layout_fundus,
    layout_mimic_cxr,
    layout_other_chest,
    layout_skin,
)
from frame.cohorts.phantom.drawing import drawing_table, pictures
from frame.cohorts.phantom.grain import check_images
from frame.cohorts.phantom.population import population
from frame.cohorts.phantom.sentences import statement
from frame.cohorts.phantom.truth import PhantomTruth
from frame.errors import InputError
from frame.writing import write_bytes

__all__ = ["JPEG_QUALITY", "LAYOUTS", "STAMP", "TRUTH_FOLDER", "follow_parent", "is_written", "write_world"]

JPEG_QUALITY: Final = 95
#: Folder of the tables of truth, and the file by which a finished source is known.
TRUTH_FOLDER: Final = "truth"
STAMP: Final = ".phantom.json"
_BATCH: Final = 100

#: What makes all files of a source but its images.
LAYOUTS: Final[dict[str, Callable[[PhantomTruth, pd.DataFrame, int], dict[str, bytes]]]] = {
    "mimic_cxr": layout_mimic_cxr.files_of,
    "chexpert": layout_chexpert.files_of,
    "nih_cxr14": layout_other_chest.nih_cxr14_files,
    "padchest": layout_other_chest.padchest_files,
    "vindr_cxr": layout_other_chest.vindr_cxr_files,
    "vindr_pcxr": layout_other_chest.vindr_pcxr_files,
    "isic_2019": layout_skin.isic_2019_files,
    "fitzpatrick17k": layout_skin.fitzpatrick17k_files,
    "ddi": layout_skin.ddi_files,
    "fairvision": layout_fundus.fairvision_files,
}


@dataclass(frozen=True)
class _Batch:
    """Some images of one source: what a worker needs to draw and write them."""

    source: str
    folder: str
    files: list[str]
    table: pd.DataFrame
    archive: list[dict[Hashable, Any]]
    side: int


def write_world(
    truth: PhantomTruth,
    folder: Path,
    side: int,
    workers: int,
    *,
    sources: Sequence[str] | None = None,
    batch: int = _BATCH,
) -> None:
    """Draw and write the sources of a world that are not there yet.

    Parameters
    ----------
    truth : PhantomTruth
        The world.
    folder : Path
        Folder that gets a folder for each source and ``truth``; it is made if it is not there. A source that
        was written whole with the same truth, side and code is left as it is; another one is replaced.
    side : int
        Pixels a side of all images, 16 to 512.
    workers : int
        Processes that draw; 1 draws in this process.
    sources : sequence of str, optional
        Some of the world's sources; without it all of them.
    batch : int
        Images that are drawn together.

    Raises
    ------
    frame.InputError
        If a number is out of range, the world has no such source, the folder cannot be written, or a process
        that draws has ended.
    frame.cohorts.phantom.grain.DrawingDefect
        If an image has fewer than 16 grey levels.
    """
    for name, value, low in (("side", side, 16), ("workers", workers, 1), ("batch", batch, 1)):
        if value < low:
            raise InputError(f"{name} is {value}; it must be at least {low}.")
    try:
        (folder / TRUTH_FOLDER).mkdir(parents=True, exist_ok=True)
        write_bytes(
            folder / TRUTH_FOLDER / "statement.txt",
            ("\n".join(statement(truth)) + "\n").encode("utf-8"),
            "statement.txt",
        )
        write_bytes(
            folder / TRUTH_FOLDER / "truth.json",
            truth.model_dump_json(indent=1).encode("utf-8"),
            "truth.json",
        )
        wanted = truth.sources if sources is None else tuple(sources)
        waiting = [source for source in wanted if not is_written(truth, folder, side, source)]
        if waiting:
            _write(truth, folder, side, workers, batch, waiting)
    except OSError as problem:
        reason = (problem.strerror or "it cannot be written").lower()
        raise InputError(
            f"The phantom world cannot be written ({reason}); make room and run again."
        ) from None
    except BrokenProcessPool:
        raise InputError(
            "A process that draws phantoms ended before its work was done; run again, which goes on where "
            "this run ended, with fewer workers if the memory was too small."
        ) from None


def is_written(truth: PhantomTruth, folder: Path, side: int, source: str) -> bool:
    """Whether a source is there as a whole, as this truth, side and code make it.

    Parameters
    ----------
    truth, folder, side
        As for :func:`write_world`.
    source : str
        One of the world's sources.

    Returns
    -------
    bool
        False also where another truth was written.
    """
    stamp = folder / source / STAMP
    try:
        found = stamp.read_bytes()
    except OSError:
        return False
    return found == _stamp(truth, side) and _truth_file(folder, source).is_file()


def _write(
    truth: PhantomTruth, folder: Path, side: int, workers: int, batch: int, waiting: list[str]
) -> None:
    stamp = _stamp(truth, side)
    parts: list[Path] = []
    with ExitStack() as stack:
        # Run last, when no process writes any more.
        stack.callback(_remove, parts)
        pool = None
        if workers > 1:
            pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=follow_parent)
            stack.callback(pool.shutdown, cancel_futures=True)
        drawn: dict[str, tuple[Path, pd.DataFrame, list[Future[None]]]] = {}
        for source in waiting:
            part = _part(folder, source)
            parts.append(part)
            images = population(truth, source)
            jobs = []
            for one in _batches(truth, source, images, part, side, batch):
                if pool is None:
                    _draw_and_write(one)
                else:
                    jobs.append(pool.submit(_draw_and_write, one))
            drawn[source] = (part, images, jobs)
            if pool is None:
                _finish(truth, folder, side, source, drawn.pop(source), stamp)
        # With workers, tables are made here while the images are drawn there.
        for source, work in drawn.items():
            _finish(truth, folder, side, source, work, stamp)


def _batches(
    truth: PhantomTruth, source: str, images: pd.DataFrame, part: Path, side: int, batch: int
) -> Iterator[_Batch]:
    table = drawing_table(truth, images)
    files = [str(name) for name in images["file"]]
    for parent in sorted({os.path.dirname(name) for name in files}):  # noqa: PTH120
        (part / parent).mkdir(parents=True, exist_ok=True)
    archived = [column for column in layout_fundus.ARCHIVE_COLUMNS if column in images]
    for start in range(0, len(images), batch):
        rows = slice(start, start + batch)
        archive = images[archived].iloc[rows].to_dict("records") if source == "fairvision" else []
        yield _Batch(source, str(part), files[rows], table.iloc[rows], archive, side)


def follow_parent() -> None:
    """Let a worker end with the process that started it, however that ends, and leave Ctrl-C to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _draw_and_write(one: _Batch) -> None:
    """Draw the images of a batch and write each to its file; run by a worker."""
    drawn = pictures(one.table, one.source, one.side)
    check_images(drawn)
    for k, picture in enumerate(drawn):
        row = one.archive[k] if one.archive else {}
        Path(one.folder, one.files[k]).write_bytes(_encoded(picture, one.files[k], row))


def _encoded(picture: NDArray[np.uint8], name: str, row: dict[Hashable, Any]) -> bytes:
    """The bytes of an image file, by the suffix of its name."""
    if name.endswith(".npz"):
        return layout_fundus.archive_bytes(picture, row)
    try:
        from PIL import Image
    except ImportError:
        raise InputError(
            "Writing phantoms needs Pillow; install it with: pip install 'frame-audit[study]'."
        ) from None
    target = io.BytesIO()
    image = Image.fromarray(picture)
    if name.endswith(".jpg"):
        image.save(target, "JPEG", quality=JPEG_QUALITY)
    else:
        image.save(target, "PNG")
    return target.getvalue()


def _finish(
    truth: PhantomTruth,
    folder: Path,
    side: int,
    source: str,
    work: tuple[Path, pd.DataFrame, list[Future[None]]],
    stamp: bytes,
) -> None:
    """Write what is not an image, wait for the images, and give the source its name."""
    part, images, jobs = work
    for name, content in LAYOUTS[source](truth, images, side).items():
        target = part / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    for job in jobs:
        job.result()
    table = io.BytesIO()
    try:
        images.to_parquet(table, engine="pyarrow", index=False, compression="zstd")
    except ImportError:
        raise InputError(
            "Writing phantoms needs pyarrow; install it with: pip install 'frame-audit[study]'."
        ) from None
    write_bytes(_truth_file(folder, source), table.getvalue(), "the table of truth")
    (part / STAMP).write_bytes(stamp)
    mask = os.umask(0)
    os.umask(mask)
    part.chmod(0o777 & ~mask)
    final = folder / source
    if final.exists():
        old = _part(folder, source, fresh=False)
        final.replace(old / source)
        part.replace(final)
        shutil.rmtree(old, ignore_errors=True)
    else:
        part.replace(final)


def _part(folder: Path, source: str, fresh: bool = True) -> Path:
    """A temporary folder for a source; what interrupted calls left of it is removed first."""
    if fresh:
        for left in folder.glob(f".{source}-*.part"):
            shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f".{source}-", suffix=".part", dir=folder))


def _remove(parts: list[Path]) -> None:
    for part in parts:
        shutil.rmtree(part, ignore_errors=True)


def _truth_file(folder: Path, source: str) -> Path:
    return folder / TRUTH_FOLDER / f"{source}.parquet"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def _stamp(truth: PhantomTruth, side: int) -> bytes:
    """What a finished source is known by: the truth, the size, the code and the packages that draw."""
    code = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        code.update(path.read_bytes())
    values = {
        "truth": truth.model_dump(mode="json"),
        "side": side,
        "code": code.hexdigest(),
        "packages": {name: _version(name) for name in ("numpy", "scipy", "pandas", "pillow")},
    }
    return json.dumps(values, sort_keys=True, indent=1).encode("utf-8")

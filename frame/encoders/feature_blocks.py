"""Blocks of a feature store: what of it is done, each in a file of its own, and how they are joined.

A block is a fixed run of rows. Its file is there whole or not at all, so that a run that is killed goes on
with the next block, and several tasks may make the blocks of one store side by side, also on machines that
share nothing but a file system. Blocks lie in a folder that is named by a digest of everything that decides
their contents; those of other settings are never mixed in.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from frame.encoders.features import FORMAT, NOT_FINITE, REASONS, SIDECAR, STATUS, VECTORS
from frame.errors import InputError
from frame.writing import write_text

__all__ = ["Block", "BlockFolder", "join_blocks", "locked"]

_BLOCKS: Final = "blocks"
_LOCK: Final = ".lock"
_PART: Final = ".part"


@dataclass(frozen=True)
class Block:
    """Rows that are done.

    Attributes
    ----------
    vectors : numpy.ndarray, shape (rows, width)
        In the type of the store; NaN where there is no vector.
    codes : numpy.ndarray of uint8, shape (rows,)
        Places in :data:`frame.encoders.features.REASONS`.
    about : mapping
        How they were computed: ``precision`` (used), ``device``, ``n_again``, ``distance``, ``reason``.
    """

    vectors: np.ndarray
    codes: np.ndarray
    about: Mapping[str, Any]


@dataclass(frozen=True)
class BlockFolder:
    """Where the blocks of a store lie until they are joined.

    Attributes
    ----------
    store : Path
        Folder of the store.
    key : str
        Digest of all that decides the contents of a block.
    n_rows, block_rows, width : int
        Rows of the store and of a block, and numbers in a vector.
    dtype : str
        Of the stored numbers.
    """

    store: Path
    key: str
    n_rows: int
    block_rows: int
    width: int
    dtype: str

    @property
    def folder(self) -> Path:
        """Folder of these blocks."""
        return self.store / _BLOCKS / self.key[:32]

    @property
    def n_blocks(self) -> int:
        """Blocks of the store."""
        return -(-self.n_rows // self.block_rows)

    def span(self, block: int) -> tuple[int, int]:
        """First row of a block, and the one after its last."""
        return block * self.block_rows, min((block + 1) * self.block_rows, self.n_rows)

    def done(self, block: int) -> bool:
        """Whether a block is there in its full size."""
        return self._path(block).is_file() and self.about(block) is not None

    def about(self, block: int) -> dict[str, Any] | None:
        """How a block was computed; None where it is missing, or its file is damaged at first sight."""
        try:
            with self._path(block).open("rb") as file, np.load(file, allow_pickle=False) as found:
                about = json.loads(found["about"].tobytes())
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            return None
        return about if isinstance(about, dict) else None

    def read(self, block: int) -> Block:
        """A block.

        Raises
        ------
        frame.InputError
            If it is damaged; it is then removed, so that the next run makes it again.
        """
        first, last = self.span(block)
        try:
            with np.load(
                self._path(block), allow_pickle=False
            ) as found:  # the archive's own sums are checked
                made = Block(found["vectors"], found["codes"], json.loads(found["about"].tobytes()))
            whole = made.vectors.shape == (last - first, self.width) and made.codes.shape == (last - first,)
            whole = whole and made.vectors.dtype == self.dtype and made.codes.dtype == np.uint8
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            whole = False
        if not whole:
            self._path(block).unlink(missing_ok=True)
            raise InputError(
                f"A block of the features in '{self.store.name}' is damaged and was removed; extract again, "
                "which makes this block alone."
            )
        return made

    def write(self, block: int, made: Block) -> None:
        """Put a block in place, whole."""
        about = np.frombuffer(json.dumps(dict(made.about), sort_keys=True).encode(), dtype=np.uint8)
        self.folder.mkdir(parents=True, exist_ok=True)
        with _placed(self._path(block)) as file:
            np.savez(file, vectors=made.vectors, codes=made.codes, about=about)

    def n_others(self) -> int:
        """Blocks of other settings that are done, and that no store was made of."""
        found = (self.store / _BLOCKS).glob("*/block-*.npz")
        return sum(path.parent != self.folder for path in found)

    def remove_others(self) -> None:
        """Remove what other settings and killed runs left; only for a run that works alone in the store."""
        for path in (self.store / _BLOCKS).glob("*"):
            if path != self.folder:
                shutil.rmtree(path, ignore_errors=True)
        for path in self.folder.glob(f"*{_PART}"):
            path.unlink(missing_ok=True)
        self._remove_parts()

    def remove(self) -> None:
        """Remove all blocks, and what killed runs left."""
        shutil.rmtree(self.store / _BLOCKS, ignore_errors=True)
        self._remove_parts()

    def _remove_parts(self) -> None:
        for path in self.store.glob(f"*{_PART}"):
            path.unlink(missing_ok=True)

    def _path(self, block: int) -> Path:
        return self.folder / f"block-{block:06d}.npz"


def join_blocks(blocks: BlockFolder, sidecar: Mapping[str, Any]) -> dict[str, Any]:
    """Put all blocks together to a store, one at a time, and remove them.

    Parameters
    ----------
    blocks : BlockFolder
        All of which are done.
    sidecar : mapping
        What the store says about itself, besides what the blocks say.

    Returns
    -------
    dict
        The whole sidecar, as it was written.

    Raises
    ------
    frame.InputError
        If a block is damaged, or blocks were computed in different precision.
    """
    counts: Counter[int] = Counter()
    precisions: Counter[str] = Counter()
    devices: set[str] = set()
    n_again, distance, reason = 0, 0.0, ""
    digests = {VECTORS: sha256(), STATUS: sha256()}
    kinds = {
        VECTORS: (np.dtype(blocks.dtype), (blocks.n_rows, blocks.width)),
        STATUS: (np.dtype(np.uint8), (blocks.n_rows,)),
    }
    with _placed_together([blocks.store / VECTORS, blocks.store / STATUS], blocks.store / SIDECAR) as files:
        targets = dict(zip((VECTORS, STATUS), files, strict=True))
        for name, (dtype, shape) in kinds.items():
            header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(targets[name], header)
            targets[name].flush()
            targets[name].seek(0)
            digests[name].update(targets[name].read())
        for number in range(blocks.n_blocks):
            block = blocks.read(number)
            for name, part in ((VECTORS, block.vectors), (STATUS, block.codes)):
                content = np.ascontiguousarray(part).data
                targets[name].write(content)
                digests[name].update(content)
            counts.update(dict(enumerate(np.bincount(block.codes, minlength=1).tolist())))
            precisions[str(block.about["precision"])] += 1
            devices.add(str(block.about["device"]))
            n_again += int(block.about["n_again"])
            distance = max(distance, float(block.about["distance"]))
            reason = reason or str(block.about["reason"])
        if len(precisions) > 1:
            said = ", ".join(f"{count:,} in {name}" for name, count in sorted(precisions.items()))
            raise InputError(
                f"The blocks of the features in '{blocks.store.name}' were computed in different precision "
                f"({said}); extract them again with one --precision for all tasks."
            )
    whole = {
        **sidecar,
        "format": FORMAT,
        "n_rows": blocks.n_rows,
        "width": blocks.width,
        "dtype": blocks.dtype,
        "precision_used": next(iter(precisions)),
        "precision_reason": reason,
        "distance_from_float32": distance,
        "n_rows_computed_again": n_again,
        "devices": sorted(devices),
        "reasons": list(REASONS),
        "n_not_finite": sum(counts[REASONS.index(reason)] for reason in NOT_FINITE),
        "counts": {REASONS[code] or "ready": counts[code] for code in sorted(counts) if counts[code]},
        "vectors_sha256": digests[VECTORS].hexdigest(),
        "status_sha256": digests[STATUS].hexdigest(),
    }
    write_text(blocks.store / SIDECAR, json.dumps(whole, indent=1, sort_keys=True) + "\n", "the features")
    blocks.remove()
    return whole


@contextmanager
def locked(store: Path, *, alone: bool) -> Iterator[None]:
    """Hold a store: alone, to put it together, or beside other tasks that make blocks of it.

    Raises
    ------
    frame.InputError
        If another run holds it in a way that does not go with this one.
    """
    try:
        import fcntl
    except ImportError:
        raise InputError("Extracting features needs file locks, which this operating system lacks.") from None
    lock = os.open(store / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(lock, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"Another run extracts features into '{store.name}'; wait until it ends (tasks that share "
                "the work give --rows each, and the last run, without it, comes after them)."
            ) from None
        except OSError as problem:
            reason = (problem.strerror or "unknown reason").lower()
            raise InputError(
                f"The folder '{store.name}' lies where no file can be locked ({reason}); give a workspace on "
                "another file system."
            ) from None
        yield
    finally:
        os.close(lock)


@contextmanager
def _placed(target: Path) -> Iterator[IO[bytes]]:
    """A file that takes its name when it is whole."""
    handle, part = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}-", suffix=_PART)
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
        _open_to_others(Path(part))
        Path(part).replace(target)
    finally:
        with suppress(OSError):
            Path(part).unlink()


@contextmanager
def _placed_together(targets: list[Path], sidecar: Path) -> Iterator[list[IO[bytes]]]:
    """Files that take their names when all are whole; the sidecar of the old ones goes before that."""
    parts: list[Path] = []
    files: list[IO[bytes]] = []
    try:
        for target in targets:
            handle, part = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}-", suffix=_PART)
            parts.append(Path(part))
            files.append(os.fdopen(handle, "w+b"))
        yield files
        for file in files:
            file.close()
        sidecar.unlink(missing_ok=True)
        for part_file, target in zip(parts, targets, strict=True):
            _open_to_others(part_file)
            part_file.replace(target)
    finally:
        for file in files:
            file.close()
        for part_file in parts:
            part_file.unlink(missing_ok=True)


def _open_to_others(path: Path) -> None:
    """The rights that any new file would have; a temporary one is private."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)

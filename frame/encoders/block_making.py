"""From images to blocks of vectors: batches prepared ahead, computed in order, and written block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from frame.encoders.feature_blocks import Block
from frame.encoders.features import NOT_FINITE, REASONS
from frame.encoders.loaders.checkpoints import library_module
from frame.encoders.precision import (
    Precision,
    begin_vectors,
    exact_float32,
    finish_vectors,
    holds_float32,
    on_processor,
    settle_precision,
)
from frame.encoders.prefetch import prefetched
from frame.errors import InputError

if TYPE_CHECKING:
    from frame.cohorts.image_rows import ImageRows
    from frame.encoders.feature_blocks import BlockFolder
    from frame.encoders.loaders import LoadedEncoder

__all__ = ["BlockMaker", "check_compiled", "compiled", "stored_vectors"]

#: Images of the store on which the precision is settled, whatever the size of batches and blocks.
_SETTLING_IMAGES: Final = 64
#: Images of each block that are compared with float32.
_SAMPLE_IMAGES: Final = 8

_CODES: Final = {reason: code for code, reason in enumerate(REASONS)}


@dataclass(frozen=True)
class _Batch:
    """Rows of one block that go through the encoder together."""

    block: int
    rows: np.ndarray
    codes: np.ndarray
    last: bool


@dataclass(frozen=True)
class BlockMaker:
    """Makes blocks of one store.

    Attributes
    ----------
    loaded : LoadedEncoder
        The encoder.
    images : ImageRows
        The images, in row order.
    blocks : BlockFolder
        Where the blocks go.
    batch_size : int
        Images that go through the encoder at once. Batches do not reach over the end of a block, so that a
        block does not depend on the run that makes it.
    workers : int
        Threads that prepare batches ahead.
    normalise : bool
        Divide each vector by its length.
    """

    loaded: LoadedEncoder
    images: ImageRows
    blocks: BlockFolder
    batch_size: int
    workers: int
    normalise: bool

    def make(self, missing: list[int], asked: str, told: Callable[[int], None]) -> None:
        """Make some blocks.

        Parameters
        ----------
        missing : list of int
            Which, in order.
        asked : {"half", "bf16", "float32"}
            The precision.
        told : callable
            Told after each batch how many rows became done.

        Raises
        ------
        frame.InputError
            If the blocks that are there were computed in another precision, or an image store is damaged.
        """
        with exact_float32(self.loaded):
            first = self._first_images() if asked != "float32" else None
            settled = settle_precision(self.loaded, asked, first, self.batch_size)
            del first
            self._check_same(settled)
            current, vectors, n_again = -1, np.empty(0), 0
            for batch, found, again, distance in self._computed(missing, settled.used):
                start, stop = self.blocks.span(batch.block)
                if batch.block != current:
                    current, n_again = batch.block, 0
                    vectors = np.full((stop - start, self.blocks.width), np.nan, dtype=self.blocks.dtype)
                if len(batch.rows):
                    here = batch.rows - start
                    vectors[here], batch.codes[here] = stored_vectors(
                        found, self.normalise, self.blocks.dtype
                    )
                    n_again += again
                told(len(batch.rows) + (stop - start - self._n_ready(batch) if batch.last else 0))
                if batch.last:
                    about = {
                        "precision": settled.used,
                        "reason": settled.reason,
                        "distance": max(settled.distance, distance),
                        "device": "cpu" if on_processor(self.loaded) else str(self.loaded.device),
                        "n_again": n_again,
                    }
                    self.blocks.write(batch.block, Block(vectors, batch.codes, about))

    def _batches(self, missing: list[int]) -> Iterator[_Batch]:
        for block in missing:
            start, stop = self.blocks.span(block)
            codes = self._unreadable(start, stop)
            ready = start + np.flatnonzero(codes == 0)  # as _ready_rows, with the codes at hand
            # A block without an image that can be read has one batch of no rows.
            firsts = range(0, max(1, len(ready)), self.batch_size)
            for first in firsts:
                rows = ready[first : first + self.batch_size]
                yield _Batch(block, rows, codes, last=first == firsts[-1])

    def _unreadable(self, start: int, stop: int) -> np.ndarray:
        reasons = self.images.reasons(start, stop)
        return np.array([_CODES[reason] for reason in reasons], dtype=np.uint8)

    def _n_ready(self, batch: _Batch) -> int:
        image_codes = batch.codes.copy()
        image_codes[np.isin(image_codes, [_CODES[reason] for reason in NOT_FINITE])] = 0
        return int((image_codes == 0).sum())

    def _computed(self, missing: list[int], used: str) -> Iterator[tuple[_Batch, np.ndarray, int, float]]:
        """Each batch with its vectors, how many were computed again, and how far its block is from float32.

        An accelerator begins the next batch before this one is waited for.
        """
        ahead = 0 if on_processor(self.loaded) else 1
        begun: list[tuple[_Batch, Any, Any, str, float]] = []

        def oldest() -> tuple[_Batch, np.ndarray, int, float]:
            batch, prepared, vectors, here, distance = begun.pop(0)
            if prepared is None:
                return batch, np.empty((0, self.blocks.width), dtype=np.float32), 0, distance
            found = finish_vectors(self.loaded, prepared, vectors, here)
            n_again = found.n_again
            if here != used:
                n_again = int(np.isfinite(found.vectors).all(axis=1).sum())
            return batch, found.vectors, n_again, distance

        current, here, distance = -1, used, 0.0
        for batch, prepared in prefetched(self._batches(missing), self._prepared, self.workers):
            if batch.block != current:
                current = batch.block
                here, distance = self._precision_of(batch, used)
            vectors = None if prepared is None else begin_vectors(self.loaded, prepared, here)
            begun.append((batch, prepared, vectors, here, distance))
            del prepared, vectors
            if len(begun) > ahead:
                yield oldest()
        while begun:
            yield oldest()

    def _precision_of(self, first: _Batch, used: str) -> tuple[str, float]:
        """What a block is computed in, and how far a sample of it is from float32 in that."""
        if used == "float32":
            return used, 0.0
        sample = self._ready_rows(first.block)[:_SAMPLE_IMAGES]
        if not len(sample):
            return used, 0.0
        prepared = self.loaded.preprocessing.prepare(self.images.read(sample))
        near, distance = holds_float32(self.loaded, prepared, used, self.batch_size)
        return (used, distance) if near else ("float32", 0.0)

    def _prepared(self, batch: _Batch) -> Any:
        if not len(batch.rows):
            return None
        prepared = self.loaded.preprocessing.prepare(self.images.read(batch.rows))
        if on_processor(self.loaded):
            return prepared
        torch = library_module(self.loaded.encoder, "torch", "torch")
        return torch.from_numpy(prepared).pin_memory()

    def _ready_rows(self, block: int) -> np.ndarray:
        start, stop = self.blocks.span(block)
        return start + np.flatnonzero(self._unreadable(start, stop) == 0)

    def _first_images(self) -> np.ndarray | None:
        """The first images of the store that can be read, whatever the range of this run and its batches."""
        rows = np.zeros(0, dtype=np.int64)
        for block in range(self.blocks.n_blocks):
            rows = np.concatenate([rows, self._ready_rows(block)])[:_SETTLING_IMAGES]
            if len(rows) == _SETTLING_IMAGES:
                break
        if not len(rows):
            return None
        prepared: np.ndarray = self.loaded.preprocessing.prepare(self.images.read(rows))
        return prepared

    def _check_same(self, settled: Precision) -> None:
        for block in range(self.blocks.n_blocks):
            about = self.blocks.about(block)
            if about is not None:
                if about.get("precision") != settled.used:
                    raise InputError(
                        f"Blocks of these features were computed in {about.get('precision')} on "
                        f"{about.get('device')}, and this run would compute in {settled.used}; go on where "
                        "they were made, or start again with another --precision."
                    )
                return


def check_compiled(name: str, *, is_network: bool) -> None:
    """Check that an encoder can be compiled, before it is loaded.

    Raises
    ------
    frame.InputError
        If it is no network.
    """
    if not is_network:
        raise InputError(f"{name} is no network, and cannot be compiled; leave --compile away.")


def compiled(loaded: LoadedEncoder) -> LoadedEncoder:
    """The encoder with its network compiled by torch.

    Raises
    ------
    frame.InputError
        If it is no network.
    """
    check_compiled(loaded.encoder.name, is_network=loaded.is_network)
    torch = library_module(loaded.encoder, "torch", "torch")
    return replace(loaded, module=torch.compile(loaded.module))


def stored_vectors(vectors: np.ndarray, normalise: bool, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Vectors as they are stored, and why some have none.

    Parameters
    ----------
    vectors : numpy.ndarray of float32, shape (n, width)
        Of an encoder.
    normalise : bool
        Divide each by its length (Euclidean, computed in float64).
    dtype : {"float16", "float32"}
        Type to store.

    Returns
    -------
    numpy.ndarray, shape (n, width)
        NaN in the rows that have no vector.
    numpy.ndarray of uint8, shape (n,)
        0, or the place of the reason in :data:`frame.encoders.features.REASONS`.
    """
    not_finite, too_large, no_length = (_CODES[reason] for reason in NOT_FINITE)
    codes = np.where(np.isfinite(vectors).all(axis=1), 0, not_finite).astype(np.uint8)
    if normalise:
        with np.errstate(invalid="ignore", divide="ignore"):
            lengths = np.sqrt(np.square(vectors, dtype=np.float64).sum(axis=1, keepdims=True))
            vectors = vectors / lengths
        codes[(codes == 0) & (lengths[:, 0] == 0)] = no_length
    with np.errstate(over="ignore", invalid="ignore"):
        stored = vectors.astype(dtype)
    codes[(codes == 0) & ~np.isfinite(stored).all(axis=1)] = too_large
    stored[codes > 0] = np.nan
    return stored, codes

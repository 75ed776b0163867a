"""The rows of a finished image store in their order, a few at a time, with memory that does not grow.

:func:`frame.cohorts.image_store.open_images` holds the whole index, which suits a cohort that is looked at.
A pass over all images needs only the rows at hand: they are read from the shards and the tables beside them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from frame.cohorts.image_store import INDEX, METADATA, is_whole, parquet_module, shard_path
from frame.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

__all__ = ["ImageRows", "column_texts", "open_image_rows"]

#: Rows of a table that are held at a time.
_BATCH_ROWS: Final = 1024


@dataclass(frozen=True)
class ImageRows:
    """A finished image store that is read in row order; made by :func:`open_image_rows`.

    Attributes
    ----------
    n_rows, size : int
        Images of the store, and the side of each in pixels.
    colour : {"L", "RGB"}
        Grey, or colour.
    pixels_sha256 : str
        Digest of all pixels.
    """

    n_rows: int
    size: int
    colour: str
    pixels_sha256: str
    _folder: Path = field(repr=False)
    _shard_rows: int = field(repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """(images, size, size), or (images, size, size, 3) in colour."""
        return (self.n_rows, self.size, self.size, *((3,) if self.colour == "RGB" else ()))

    def ids(self) -> Iterator[str]:
        """Image ids in row order.

        Raises
        ------
        frame.InputError
            If a table of the store is damaged.
        """
        for shard in range(-(-self.n_rows // self._shard_rows)):
            yield from self._table(shard, "image_id")["image_id"].to_pylist()

    def reasons(self, start: int, stop: int) -> list[str]:
        """Why the images of some neighbouring rows cannot be read; ``""`` for those that are ready.

        Raises
        ------
        frame.InputError
            If a table of the store is damaged.
        """
        found: list[str] = []
        for shard in range(start // self._shard_rows, -(-stop // self._shard_rows)):
            table = self._table(shard, "status", "reason")
            pairs = zip(table["status"].to_pylist(), table["reason"].to_pylist(), strict=True)
            said = ["" if status == "ready" else reason or status for status, reason in pairs]
            first = shard * self._shard_rows
            found += said[max(0, start - first) : stop - first]
        return found

    def _table(self, shard: int, *columns: str) -> pa.Table:
        """Columns of the table of a shard, whose rows are those that it must have."""
        path = shard_path(self._folder, shard).with_suffix(".parquet")
        try:
            with parquet_module().ParquetFile(path) as file:
                table = file.read(columns=["row", *columns], use_threads=False)
            rows = table["row"].to_numpy()
        except (OSError, ValueError, KeyError):
            raise self._damaged() from None
        first = shard * self._shard_rows
        if not np.array_equal(rows, np.arange(first, min(first + self._shard_rows, self.n_rows))):
            raise self._damaged()
        return table

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Pixels of some rows.

        Parameters
        ----------
        rows : numpy.ndarray of int
            Ascending row numbers; rows that lie near each other are read at once.

        Returns
        -------
        numpy.ndarray of uint8, shape (len(rows), size, size) or (len(rows), size, size, 3)
            Zeros where an image cannot be read.

        Raises
        ------
        frame.InputError
            If a shard is damaged.
        """
        shape = self.shape[1:]
        row_bytes = int(np.prod(shape))
        pixels = np.empty((len(rows), *shape), dtype=np.uint8)
        shards = rows // self._shard_rows
        for shard in np.unique(shards):
            here = np.flatnonzero(shards == shard)
            inside = rows[here] - shard * self._shard_rows
            path = shard_path(self._folder, int(shard))
            try:
                with path.open("rb") as file:
                    np.lib.format.read_magic(file)
                    np.lib.format.read_array_header_1_0(file)
                    begin = file.tell()
                    # Runs of neighbours: one read each, straight into their place.
                    for run in np.split(np.arange(len(here)), np.flatnonzero(np.diff(inside) != 1) + 1):
                        file.seek(begin + int(inside[run[0]]) * row_bytes)
                        target = pixels[here[run[0]] : here[run[-1]] + 1]
                        if file.readinto(target.reshape(-1).data) != target.nbytes:
                            raise self._damaged()
            except (OSError, ValueError):
                raise self._damaged() from None
        return pixels

    def _damaged(self) -> InputError:
        return InputError(
            f"The image store '{self._folder.name}' has a shard that is missing or damaged; prepare the "
            f"images again, which makes these alone."
        )


def open_image_rows(folder: Path) -> ImageRows:
    """Open a finished image store for reading in row order.

    Parameters
    ----------
    folder : Path
        As given to :func:`frame.cohorts.images.prepare_images`.

    Returns
    -------
    ImageRows
        No pixel is read yet.

    Raises
    ------
    frame.InputError
        If the store is not finished, is of another version, a shard is missing or of another size, or pyarrow
        is not installed.
    """
    parquet = parquet_module()
    try:
        with parquet.ParquetFile(folder / INDEX) as file:
            n_rows = int(file.metadata.num_rows)
            metadata = file.schema_arrow.metadata or {}
    except (OSError, ValueError):
        raise InputError(
            f"The image store '{folder.name}' is not complete: it has no index that can be read; prepare the "
            f"images (again), which goes on where the last run ended."
        ) from None
    try:
        about = json.loads(metadata[METADATA])
        found = ImageRows(
            n_rows,
            int(about["size"]),
            str(about["colour"]),
            str(about["pixels_sha256"]),
            folder,
            int(about["shard_rows"]),
        )
    except (KeyError, TypeError, ValueError):
        raise InputError(
            f"The index of the image store '{folder.name}' is none that this version writes; "
            "prepare the images again."
        ) from None
    shape, step = found.shape[1:], found._shard_rows
    for shard in range(-(-n_rows // step)):
        if not is_whole(shard_path(folder, shard), (min(step, n_rows - shard * step), *shape)):
            raise found._damaged()
    return found


def column_texts(path: Path, column: str) -> Iterator[str]:
    """The texts of one column of a parquet file, in row order, a thousand of them in memory at a time.

    Parameters
    ----------
    path : Path
        A parquet file, such as a manifest or an index of images.
    column : str
        Its column.

    Raises
    ------
    frame.InputError
        If the file cannot be read, or has no such column.
    """
    parquet = parquet_module()
    import pyarrow

    try:
        with parquet.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False) as file:
            if column not in file.schema_arrow.names:
                raise InputError(f"'{path.name}' has no column {column}; make it again.")
            for batch in file.iter_batches(_BATCH_ROWS, columns=[column], use_threads=False):
                yield from batch.column(0).to_pylist()
                del batch
                pyarrow.default_memory_pool().release_unused()  # what it keeps would grow for a while
    except (OSError, ValueError):
        raise InputError(f"'{path.name}' cannot be read; make it again.") from None

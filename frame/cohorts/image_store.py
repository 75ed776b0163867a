"""A finished image store on disk: its layout, and reading from it.

:mod:`frame.cohorts.images` makes one. Pixels are mapped into memory, not loaded, so that a store may be
larger than the memory.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from frame.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

__all__ = [
    "INDEX",
    "METADATA",
    "ImageStore",
    "index_schema",
    "is_whole",
    "open_images",
    "parquet_module",
    "shard_ids",
    "shard_metadata",
    "shard_path",
]

#: File name of the index, which is there when the store is complete.
INDEX: Final = "index.parquet"
#: Key of what the store says about itself in the metadata of its parquet files.
METADATA: Final = b"frame.images"


@dataclass(frozen=True)
class ImageStore:
    """Prepared images on disk; made by :func:`open_images`.

    Attributes
    ----------
    index : pandas.DataFrame
        One row per image in the order of the table: ``image_id``, ``status`` (``ready`` or ``unreadable``),
        ``reason`` (``""`` for ready ones), ``sha256`` of the raw file (``""`` where it could not be read),
        ``width`` and ``height`` of the raw image (0 where unknown), ``row``. Not part of the text of this
        object.
    shape : tuple of int
        (images, size, size), or (images, size, size, 3) in colour.
    pixels_sha256 : str
        Digest of all pixels.
    """

    index: pd.DataFrame = field(repr=False)
    shape: tuple[int, ...]
    pixels_sha256: str
    _folder: Path = field(repr=False)
    _shard_rows: int = field(repr=False)

    def read(self, which: Sequence[str] | Sequence[int] | pd.Series | np.ndarray) -> np.ndarray:
        """Pixels of some images, in the order asked for.

        Parameters
        ----------
        which : sequence of str or of int
            Image ids, or row numbers from 0.

        Returns
        -------
        numpy.ndarray of uint8, shape (len(which), size, size) or (len(which), size, size, 3)
            A copy; only the pages of these images are read from disk.

        Raises
        ------
        frame.InputError
            If an image is not in the store, or cannot be read (its status is not ``ready``). The sentence
            gives counts, never an image.
        """
        rows = self._rows(pd.Series(which))
        unreadable = int((self.index["status"].to_numpy()[rows] != "ready").sum())
        if unreadable:
            raise InputError(
                f"{unreadable:,} of {len(rows):,} images cannot be read; choose those whose status in the "
                f"index is 'ready'."
            )
        pixels = np.empty((len(rows), *self.shape[1:]), dtype=np.uint8)
        shards = rows // self._shard_rows
        for shard in np.unique(shards):
            here = np.flatnonzero(shards == shard)
            stored = np.load(shard_path(self._folder, int(shard)), mmap_mode="r", allow_pickle=False)
            pixels[here] = stored[rows[here] - shard * self._shard_rows]
        return pixels

    def _rows(self, which: pd.Series) -> np.ndarray:
        if len(which) == 0:
            return np.zeros(0, dtype=np.int64)
        if pd.api.types.is_integer_dtype(which):
            rows = which.to_numpy(dtype=np.int64)
            outside = int(((rows < 0) | (rows >= len(self.index))).sum())
        elif pd.api.types.is_string_dtype(which) or which.map(lambda value: isinstance(value, str)).all():
            rows = pd.Index(self.index["image_id"]).get_indexer(pd.Index(which.astype(str)))
            outside = int((rows < 0).sum())
        else:
            raise InputError("Images are named by their ids (text) or by their row numbers (whole numbers).")
        if outside:
            raise InputError(
                f"{outside:,} of {len(rows):,} images are not in the store, which holds {len(self.index):,}."
            )
        return rows


def open_images(folder: Path) -> ImageStore:
    """Open a finished store.

    Parameters
    ----------
    folder : Path
        As given to :func:`frame.cohorts.images.prepare_images`.

    Returns
    -------
    ImageStore
        Its index, and access to the pixels; no pixel is read yet.

    Raises
    ------
    frame.InputError
        If the store is not finished, a shard is missing or of another size, or pyarrow is not installed.
    """
    parquet = parquet_module()
    try:
        table = parquet.read_table(folder / INDEX)
    except (OSError, ValueError):
        raise InputError(
            f"The image store '{folder.name}' is not complete: it has no index that can be read; prepare the "
            f"images (again), which goes on where the last run ended."
        ) from None
    n_rows = table.num_rows
    try:
        about = json.loads((table.schema.metadata or {})[METADATA])
        shape = (n_rows, about["size"], about["size"], *((3,) if about["colour"] == "RGB" else ()))
        plan_rows, pixels_sha256 = int(about["shard_rows"]), str(about["pixels_sha256"])
        whole = plan_rows > 0 and set(index_schema().names) <= set(table.column_names)
    except (KeyError, TypeError, ValueError):
        whole = False
    if not whole:
        raise InputError(
            f"The index of the image store '{folder.name}' is none that this version writes; "
            "prepare the images again."
        )
    wrong = sum(
        not is_whole(shard_path(folder, shard), (min(plan_rows, n_rows - shard * plan_rows), *shape[1:]))
        for shard in range(-(-n_rows // plan_rows))
    )
    if wrong:
        raise InputError(
            f"The image store '{folder.name}' has {wrong:,} shards that are missing or damaged; prepare the "
            f"images again, which makes these alone."
        )
    index = pd.DataFrame(
        {name: pd.Series(table[name].to_numpy(), dtype=_dtype(table, name)) for name in table.column_names}
    )
    return ImageStore(index, shape, pixels_sha256, folder, plan_rows)


def shard_path(folder: Path, shard: int) -> Path:
    """File of the pixels of a shard; its table is the same with ``.parquet``."""
    return folder / f"shard-{shard:05d}.npy"


def is_whole(path: Path, shape: tuple[int, ...]) -> bool:
    """Whether a file of pixels has this shape and its full size."""
    try:
        with path.open("rb") as file:
            if np.lib.format.read_magic(file) != (1, 0):
                return False
            found = np.lib.format.read_array_header_1_0(file)
            return found == (shape, False, np.dtype(np.uint8)) and path.stat().st_size == file.tell() + int(
                np.prod(shape)
            )
    except (OSError, ValueError):
        return False


def shard_metadata(path: Path) -> dict[str, Any] | None:
    """What the table beside a shard says about it; ``None`` where it cannot be read."""
    try:
        metadata = parquet_module().read_schema(path).metadata or {}
        about = json.loads(metadata[METADATA])
    except (OSError, ValueError, KeyError):
        return None
    return about if isinstance(about, dict) else None


def shard_ids(path: Path) -> list[str] | None:
    """The images in the table beside a shard, in its order; ``None`` where it cannot be read whole."""
    try:
        table = parquet_module().read_table(path)
        ids: list[str] = table["image_id"].to_pylist()
        return ids if table.schema.equals(index_schema()) else None
    except (OSError, ValueError, KeyError):
        return None


def parquet_module() -> Any:
    """The module ``pyarrow.parquet``; an InputError where pyarrow is not installed."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise InputError(
            "An image store needs pyarrow; install it with: pip install 'frame-audit[study]'."
        ) from None
    return parquet


def index_schema() -> pa.Schema:
    """Columns of the index and of the table of a shard."""
    import pyarrow as pa

    text, whole = pa.string(), pa.int32()
    columns = {"image_id": text, "status": text, "reason": text, "sha256": text}
    sizes = {"width": whole, "height": whole, "row": pa.int64()}
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in (columns | sizes).items()])


def _dtype(table: pa.Table, name: str) -> str:
    return "str" if str(table.schema.field(name).type) == "string" else str(table.schema.field(name).type)

"""A matrix of embeddings: checked, and read in blocks of rows, so that a mapped file is not loaded whole."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from frame.errors import InputError

__all__ = ["IN_MEMORY", "check_finite", "check_matrix", "gathered_rows"]

#: Values of a block.
_BLOCK: Final = 2**24
#: Rows that lie apart are collected in memory up to this many bytes, and in a temporary file above.
IN_MEMORY: Final = 2**30


def check_matrix(features: Any) -> NDArray[Any]:
    """Return embeddings as an array of two dimensions, without a copy where they are one.

    Parameters
    ----------
    features : array_like of float16, float32 or float64, shape (rows, dimensions)
        May be mapped from a file, in any byte order and either order of storage.

    Returns
    -------
    ndarray

    Raises
    ------
    InputError
        For another shape or type; values are not looked at.
    """
    if isinstance(features, (str, bytes, Path)):
        raise InputError(
            "features is text; give the embeddings themselves, for example "
            "numpy.load('features.npy', mmap_mode='r')."
        )
    if isinstance(features, (Mapping, set, frozenset)) or not hasattr(features, "__len__"):
        raise InputError(
            f"features is a {type(features).__name__}; give an array with one row of numbers per image."
        )
    if isinstance(features, np.ma.MaskedArray):
        raise InputError(
            "features is a masked array, whose masked values would be read as numbers; give a plain array, "
            "and leave the images out by a blank label."
        )
    try:
        matrix = features if isinstance(features, np.ndarray) else np.asarray(features)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(
            "features cannot be read as an array; give one row of numbers per image, all of one length."
        ) from None
    if matrix.dtype.names is not None:
        raise InputError(
            f"features is a structured array with {len(matrix.dtype.names)} named columns; give a plain "
            "array of numbers, one row per image."
        )
    if matrix.ndim != 2:
        raise InputError(
            f"features has {matrix.ndim} dimension{'s' * (matrix.ndim != 1)} (shape {matrix.shape}); give "
            "two, one row per image and one column per dimension of the embedding."
        )
    if 0 in matrix.shape:
        raise InputError(
            f"features is empty ({matrix.shape[0]:,} rows of {matrix.shape[1]:,} numbers); give at least one "
            "row and one column."
        )
    if matrix.dtype.kind != "f" or matrix.dtype.itemsize not in (2, 4, 8):
        found = "objects" if matrix.dtype.kind == "O" else str(matrix.dtype)
        raise InputError(
            f"features holds {found}; give float16, float32 or float64 (.astype('float32') converts numbers)."
        )
    return matrix


def _blocks(n_rows: int, width: int) -> list[tuple[int, int]]:
    """Ends of blocks of rows of about the same number of values."""
    step = max(1, _BLOCK // max(width, 1))
    return [(first, min(first + step, n_rows)) for first in range(0, n_rows, step)]


def _together(numbers: NDArray[np.int64]) -> bool:
    return len(numbers) > 0 and int(numbers[-1] - numbers[0]) + 1 == len(numbers)


def _taken(features: NDArray[Any], numbers: NDArray[np.int64]) -> NDArray[Any]:
    """Some rows, which lie together or apart, in the order of the numbers."""
    if _together(numbers):
        return features[numbers[0] : numbers[-1] + 1]
    return features[numbers]


def check_finite(features: NDArray[Any], numbers: NDArray[np.int64]) -> None:
    """Refuse embeddings with a missing or infinite value.

    Parameters
    ----------
    features : ndarray, shape (rows, dimensions)
    numbers : ndarray of int64
        Rows that are used, rising.

    Raises
    ------
    InputError
        With the number of such rows.
    """
    wrong, places = 0, set()
    for first, last in _blocks(len(numbers), features.shape[1]):
        finite = np.isfinite(_taken(features, numbers[first:last]))
        if not finite.all():
            wrong += int(np.count_nonzero(~finite.all(axis=1)))
            places |= set(np.flatnonzero(~finite.all(axis=0)).tolist())
    if wrong:
        are = "1 row has a" if wrong == 1 else f"{wrong:,} rows have a"
        where = f"column {min(places)}" if len(places) == 1 else f"{len(places):,} columns"
        raise InputError(
            f"features: {are} missing or infinite value (in {where}, counted from 0); make these embeddings "
            "again, or leave the images out by a blank label."
        )


def gathered_rows(
    features: NDArray[Any], numbers: NDArray[np.int64], folder: Path | None = None
) -> NDArray[Any]:
    """Rows of a matrix: a view where they lie together, else a copy.

    Parameters
    ----------
    features : ndarray, shape (rows, dimensions)
    numbers : ndarray of int64
        Rows, rising.
    folder : Path, optional
        Where a copy goes that is larger than :data:`IN_MEMORY`; None: the system's temporary folder.

    Returns
    -------
    ndarray of float16, float32 or float64
        In the byte order of the machine.

    Raises
    ------
    InputError
        If there is no room for the copy.
    """
    plain = features.dtype.newbyteorder("=")
    if _together(numbers) and features.dtype.isnative and features.flags.c_contiguous:
        return np.asarray(_taken(features, numbers))
    shape = (len(numbers), features.shape[1])
    if shape[0] * shape[1] * plain.itemsize <= IN_MEMORY:
        held: NDArray[Any] = np.empty(shape, dtype=plain)
    else:
        held = _temporary(shape, plain, folder)
    if features.flags.f_contiguous and not features.flags.c_contiguous:
        # Column by column, as the file lies, and not one number out of every page for each row.
        for first, last in _blocks(shape[1], len(features)):
            held[:, first:last] = features[:, first:last][numbers]
        return held
    for first, last in _blocks(shape[0], shape[1]):
        held[first:last] = _taken(features, numbers[first:last])
    return held


def _temporary(shape: tuple[int, int], dtype: np.dtype[Any], folder: Path | None) -> NDArray[Any]:
    """An array in a file without a name, which goes when the array does."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.truncate(shape[0] * shape[1] * dtype.itemsize)
            return np.memmap(file, dtype=dtype, mode="r+", shape=shape)
    except OSError as problem:
        reason = (problem.strerror or "it cannot be written").lower()
        raise InputError(
            f"the embeddings of one split need {shape[0] * shape[1] * dtype.itemsize / 2**30:.1f} GiB in the "
            f"temporary folder ({reason}); set TMPDIR to a folder with room, or sort the rows of the file by "
            "split."
        ) from None

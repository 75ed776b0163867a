"""Rows of a feature matrix under an operator, made when they are read: no second matrix is ever held."""

from __future__ import annotations

import mmap
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from frame.interventions.operators import injected_rows

if TYPE_CHECKING:
    from frame.interventions.operators import Operator

__all__ = ["InjectedFeatures", "injected_in_memory", "injected_type", "release_pages"]

#: Rows that are copied at a time.
_BLOCK: Final = 8192
#: Mapped files of fewer bytes stay in memory.
_LARGE: Final = 2**26


@dataclass(frozen=True, eq=False)
class InjectedFeatures:
    """A lazy matrix: a slice of it is an array of injected rows.

    Attributes
    ----------
    features : ndarray, shape (rows, dimensions)
        May be mapped from a file.
    signs : ndarray of int8, shape (rows,)
        Of every row of ``features``.
    numbers : ndarray of int64, shape (n,)
        Rows of ``features`` that make up this matrix.
    operator : Operator or None
        None for the features as they are.
    strength : float
    """

    features: NDArray[Any]
    signs: NDArray[np.int8]
    numbers: NDArray[np.int64]
    operator: Operator | None
    strength: float

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and dimensions."""
        return len(self.numbers), int(self.features.shape[1])

    @property
    def ndim(self) -> int:
        """Always 2."""
        return 2

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the rows that are returned; see :func:`injected_type`."""
        return injected_type(self.features.dtype)

    @property
    def size(self) -> int:
        """Numbers in all."""
        return len(self.numbers) * int(self.features.shape[1])

    @property
    def flags(self) -> SimpleNamespace:
        """How the rows of a slice lie in memory."""
        return SimpleNamespace(c_contiguous=True, f_contiguous=False)

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: Any) -> Any:
        """Injected rows for a slice, shape (n, dimensions); for flags or row numbers a lazy matrix again."""
        chosen = self.numbers[rows]
        if not isinstance(rows, slice):
            return replace(self, numbers=np.atleast_1d(chosen))
        stored = self.features[chosen]
        if self.operator is not None and self.strength != 0:
            # Every row is changed by itself, so blocks of any size give the same bytes.
            stored = self.operator.apply(stored, self.signs[chosen], self.strength)
        found = np.ascontiguousarray(stored, dtype=self.dtype)
        release_pages(self.features)
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """All rows at once, for readers that do not read in blocks."""
        made = np.asarray(self[:])
        return made if dtype is None else made.astype(dtype, copy=False)


def injected_in_memory(
    features: NDArray[Any],
    signs: NDArray[np.int8],
    numbers: NDArray[np.int64],
    operator: Operator | None,
    strength: float,
) -> NDArray[Any]:
    """Chosen rows under an operator, in memory; the rows themselves at strength 0."""
    dtype = injected_type(features.dtype)
    found = np.empty((len(numbers), features.shape[1]), dtype=dtype)
    for start in range(0, len(numbers), _BLOCK):
        part = numbers[start : start + _BLOCK]
        found[start : start + _BLOCK] = (
            injected_rows(operator, features, signs, part, strength, dtype=dtype)
            if operator is not None and strength != 0
            else features[part]
        )
        release_pages(features)  # else the rows of a whole file would be resident when the last one is read
    return found


def injected_type(stored: np.dtype[Any]) -> np.dtype[Any]:
    """float32 for features of float16 or float32, float64 for float64, in the byte order of the machine.

    Rows that no operator touches keep their values exactly, at every strength.
    """
    return np.dtype(np.float64 if stored.itemsize > 4 else np.float32)


def release_pages(features: NDArray[Any]) -> None:
    """Give back the memory in which parts of a mapped file were read; they are read again when needed."""
    if not isinstance(features, np.memmap) or features.mode != "r" or features.nbytes < _LARGE:
        return
    mapped: Any = features
    while isinstance(mapped, np.ndarray):
        mapped = mapped.base
    if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)

"""Invented ids in the form of each source.

Where a source numbers its ids one after the other, those here begin with a digit that none of its numbers
begins with (8 or 9). PadChest's long numbers begin with any digit, so those here are longer than any of its.
Sums are made from the word phantom and begin with ``9000``; a released one may begin so too, but equality
with a released one is practically impossible. Everything else is in the form of the source.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

__all__ = ["long_numbers", "numbered", "sums"]

Texts = NDArray[np.object_]


def numbered(numbers: Iterable[int], pattern: str) -> Texts:
    """Ids made of a running number.

    Parameters
    ----------
    numbers : iterable of int
        Running numbers from 0.
    pattern : str
        With one field for the number, such as ``"patient9{:04d}"``.

    Returns
    -------
    numpy.ndarray of object
        Ids in the order of the numbers.
    """
    return np.array([pattern.format(int(number)) for number in numbers], dtype=object)


def long_numbers(source: str, kind: str, first: str, numbers: Iterable[int]) -> Texts:
    """Long numbers as PadChest has them, of 60 digits, where it has 51 at most.

    Parameters
    ----------
    source, kind : str
        Source, and what is numbered; two kinds share no id.
    first : str
        First digit.
    numbers : iterable of int
        Running numbers.

    Returns
    -------
    numpy.ndarray of object
        Ids: the first digit, 22 zeros, a sum, and the running number in the last six digits, so that none
        stands twice.
    """
    return np.array(
        [f"{first}{int(_sum(source, kind, n), 16) % 10**31:053d}{int(n):06d}" for n in numbers], dtype=object
    )


def sums(source: str, kind: str, numbers: Iterable[int], dashes: bool = False) -> Texts:
    """Ids of 32 hexadecimal digits, or of 40 with dashes.

    Parameters
    ----------
    source, kind : str
        Source, and what is numbered.
    numbers : iterable of int
        Running numbers.
    dashes : bool
        Five groups of eight with dashes between them, as MIMIC-CXR has them.

    Returns
    -------
    numpy.ndarray of object
        Ids that begin with ``9000``.
    """
    found = []
    for n in numbers:
        digits = "9000" + _sum(source, kind, n)
        groups = [digits[at : at + 8] for at in range(0, 40, 8)]
        found.append("-".join(groups) if dashes else digits[:32])
    return np.array(found, dtype=object)


def _sum(source: str, kind: str, number: int) -> str:
    return hashlib.sha256(f"phantom {source} {kind} {int(number)}".encode()).hexdigest()

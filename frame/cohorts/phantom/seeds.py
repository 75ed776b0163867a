"""One stream of random numbers for each image, each patient and each purpose.

A stream depends on its own name only: the seed of the world, the cohort, the number of the image and what
the numbers are for. So the bytes of an image do not depend on how many images are drawn with it, in which
order, or by how many workers.
"""

from __future__ import annotations

import hashlib
import operator
import zlib
from typing import Any, Final

import numpy as np

from frame.errors import InputError

__all__ = ["LARGEST_SEED", "column_of_seeds", "seed_of", "stream"]

#: Seeds fit a signed 64-bit column of a table.
LARGEST_SEED: Final = 2**63 - 1


def seed_of(seed: int, cohort: str, kind: str, number: int) -> int:
    """The seed of one image or patient, to be kept in a table.

    Parameters
    ----------
    seed : int
        Seed of the world, 0 or more.
    cohort : str
        Name of the cohort; two cohorts share nothing.
    kind : str
        What is numbered, such as ``"patient"`` or ``"image"``.
    number : int
        Number of the patient or image in the cohort, 0 or more.

    Returns
    -------
    int
        Between 0 and :data:`LARGEST_SEED`.

    Raises
    ------
    frame.InputError
        If a number is negative or no whole number.
    """
    for name, value in (("seed", seed), ("number", number)):
        if _whole(value, name) < 0:
            raise InputError(f"{name} is {value}; it must be 0 or more.")
    text = f"{operator.index(seed)}\x1f{cohort}\x1f{kind}\x1f{operator.index(number)}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def column_of_seeds(seed: int, cohort: str, kind: str, numbers: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """:func:`seed_of` for many numbers.

    Parameters
    ----------
    seed, cohort, kind
        As for :func:`seed_of`.
    numbers : sequence of int
        Numbers of the images or patients.

    Returns
    -------
    numpy.ndarray of int64, shape (n,)
        One seed for each number.
    """
    return np.array([seed_of(seed, cohort, kind, int(number)) for number in numbers], dtype=np.int64)


def stream(seed: int, purpose: str) -> np.random.Generator:
    """A fresh stream of random numbers.

    Parameters
    ----------
    seed : int
        A value of :func:`seed_of`.
    purpose : str
        What the numbers are for. Streams of two purposes are independent, so that drawing more noise for a
        larger image leaves its anatomy as it is.

    Returns
    -------
    numpy.random.Generator
        Of its own; no state is shared.

    Raises
    ------
    frame.InputError
        If the seed is negative, too large or no whole number.
    """
    if not 0 <= _whole(seed, "seed") <= LARGEST_SEED:
        raise InputError(f"seed is {seed}; it must lie between 0 and {LARGEST_SEED}.")
    key = zlib.crc32(purpose.encode())
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence((operator.index(seed), key))))


def _whole(value: int, name: str) -> int:
    """A whole number, or a sentence."""
    try:
        return operator.index(value)
    except TypeError:
        raise InputError(f"{name} is {value!r}; it must be a whole number.") from None

"""How often every patient occurs in every resample: drawn once, shared by all that is paired.

Patients are drawn with replacement, as many as there are, and bring all their images along. Resample b has
its own stream, ``PCG64(SeedSequence(entropy=seed, spawn_key=(b,)))``, so it is the same whichever resamples
are drawn before it, beside it or not at all, on any number of threads.
"""

from __future__ import annotations

import operator

import numpy as np
from numpy.typing import NDArray

from frame.errors import InputError

#: The most often one patient may occur in one resample: what uint16 holds.
MOST_DRAWS = int(np.iinfo(np.uint16).max)
#: Patients are numbered in uint32 in the compiled loops.
MOST_PATIENTS = int(np.iinfo(np.uint32).max)


def patient_multiplicities(
    n_patients: int, resamples: int = 1000, seed: int = 0, first: int = 0
) -> NDArray[np.uint16]:
    """How often each patient occurs in each resample.

    Parameters
    ----------
    n_patients : int
        Patients to draw from and to draw, at least 1.
    resamples : int
        Number of resamples, at least 1. The table takes ``2 * n_patients * resamples`` bytes; draw it in
        pieces with ``first`` where that is too much.
    seed : int
        At least 0.
    first : int
        Number of the first resample, at least 0.

    Returns
    -------
    ndarray of uint16, shape (n_patients, resamples)
        Column j belongs to resample ``first + j``; every column sums to ``n_patients``.

    Raises
    ------
    InputError
        An argument is not a whole number in its range.
    """
    n_patients = whole_number("n_patients", n_patients, 1, MOST_PATIENTS)
    resamples = whole_number("resamples", resamples, 1)
    seed = whole_number("seed", seed, 0)
    first = whole_number("first", first, 0)
    table = np.empty((n_patients, resamples), dtype=np.uint16)
    for j in range(resamples):
        counts = np.bincount(drawn_patients(n_patients, seed, first + j), minlength=n_patients)
        if counts.max() > MOST_DRAWS:
            raise too_many_draws(first + j)
        table[:, j] = counts
    return table


def drawn_patients(n_patients: int, seed: int, resample: int) -> NDArray[np.uint32]:
    """The patients drawn in one resample: uint32 in 0 .. n_patients - 1, shape (n_patients,)."""
    stream = np.random.PCG64(np.random.SeedSequence(entropy=seed, spawn_key=(resample,)))
    return np.random.Generator(stream).integers(0, n_patients, size=n_patients, dtype=np.uint32)


def too_many_draws(resample: int) -> OverflowError:
    """What is raised where a count would not fit: chance cannot do that, a broken generator could."""
    return OverflowError(f"One patient was drawn more than {MOST_DRAWS} times in resample {resample}.")


def whole_number(name: str, value: object, least: int, most: int | None = None) -> int:
    """Return an argument as an int, or raise an InputError that names it and its range."""
    allowed = f"a whole number of at least {least}" + ("" if most is None else f" and at most {most}")
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"{name} is {value!r}; give {allowed}.") from None
    if number < least or (most is not None and number > most):
        raise InputError(f"{name} is {number}; give {allowed}.")
    return number

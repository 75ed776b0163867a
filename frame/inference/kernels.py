"""Compiled loops over images: sums of patient multiplicities for several resamples at once.

A table of multiplicities is laid out ``(patients, lanes)``, one lane a resample: an image reads the
multiplicities of its patient from one place, and the inner loops over lanes become vector instructions.
Every lane has its own accumulators and walks the images in the same order, so a resample's result depends
neither on the lanes beside it nor on the number of threads. Counts are exact (int64); float sums are taken
in the order of the images, without reassociation.

Loaded only where it is needed: this module imports numba and compiles on first use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from frame.errors import InputError
from frame.inference.multiplicities import MOST_DRAWS

try:
    from numba import njit
except ImportError as error:
    raise InputError(
        "The bootstrap needs numba; install it with: pip install 'frame-audit[scores]'"
    ) from error

Multiplicities = NDArray[np.uint16]
Patients = NDArray[np.uint32]
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def compiled(function: Kernel) -> Kernel:
    """Compile on first use and release the interpreter lock; keep the machine code on disk where possible."""
    try:
        return cast(Kernel, njit(cache=True, nogil=True, error_model="numpy")(function))
    except RuntimeError:  # numba found no folder it may write to, so every process compiles for itself
        return cast(Kernel, njit(nogil=True, error_model="numpy")(function))


@compiled
def count_draws(draws: Patients, counts: Multiplicities) -> bool:
    """Count into ``counts`` (patients,) how often each was drawn; False when one would pass MOST_DRAWS."""
    for i in range(draws.shape[0]):
        patient = draws[i]
        if counts[patient] == MOST_DRAWS:
            return False
        counts[patient] += 1
    return True


@compiled
def side_by_side(counts: Multiplicities, table: Multiplicities) -> None:
    """Write ``counts`` (lanes, patients) into ``table`` (patients, lanes)."""
    for patient in range(table.shape[0]):
        for lane in range(table.shape[1]):
            table[patient, lane] = counts[lane, patient]


@compiled
def add_counts(table: Multiplicities, patients: Patients, totals: Integers) -> None:
    """Add the multiplicities of the images of ``patients`` to ``totals`` (lanes,)."""
    for i in range(patients.shape[0]):
        patient = patients[i]
        for lane in range(table.shape[1]):
            totals[lane] += table[patient, lane]


@compiled
def add_weighted(table: Multiplicities, patients: Patients, weights: Floats, totals: Floats) -> None:
    """Add weight times multiplicity of every image to ``totals`` (lanes,), in the order given."""
    for i in range(patients.shape[0]):
        patient = patients[i]
        weight = weights[i]
        for lane in range(table.shape[1]):
            totals[lane] += table[patient, lane] * weight


@compiled
def add_wrong_pairs(
    table: Multiplicities,
    positives: Patients,
    run_ends: Integers,
    negatives: Patients,
    above: Integers,
    reached: Integers,
    wrong: Integers,
) -> None:
    """Add twice the number of pairs in which the negative ranks above the positive to ``wrong`` (lanes,).

    A tied pair adds one. ``positives`` and ``negatives`` are in order of falling score; run r of
    positives with one score ends before ``run_ends[r]``, and ``above[r]`` negatives have a higher score,
    ``reached[r]`` one as high or higher.
    """
    negatives_so_far = np.zeros(table.shape[1], np.int64)
    start = 0
    j = 0
    for r in range(run_ends.shape[0]):
        while j < above[r]:
            patient = negatives[j]
            for lane in range(table.shape[1]):
                negatives_so_far[lane] += table[patient, lane]
            j += 1
        # Once with the negatives above, once with those tied as well: 2 * above + tied in all.
        for i in range(start, run_ends[r]):
            patient = positives[i]
            for lane in range(table.shape[1]):
                wrong[lane] += table[patient, lane] * negatives_so_far[lane]
        while j < reached[r]:
            patient = negatives[j]
            for lane in range(table.shape[1]):
                negatives_so_far[lane] += table[patient, lane]
            j += 1
        for i in range(start, run_ends[r]):
            patient = positives[i]
            for lane in range(table.shape[1]):
                wrong[lane] += table[patient, lane] * negatives_so_far[lane]
        start = run_ends[r]


@compiled
def add_precisions(
    table: Multiplicities,
    positives: Patients,
    run_ends: Integers,
    negatives: Patients,
    reached: Integers,
    precisions: Floats,
) -> None:
    """Add the precision at the score of every positive to ``precisions`` (lanes,); runs as above."""
    lanes = table.shape[1]
    negatives_so_far = np.zeros(lanes, np.int64)
    positives_so_far = np.zeros(lanes, np.int64)
    run = np.zeros(lanes, np.int64)
    start = 0
    j = 0
    for r in range(run_ends.shape[0]):
        while j < reached[r]:
            patient = negatives[j]
            for lane in range(lanes):
                negatives_so_far[lane] += table[patient, lane]
            j += 1
        run[:] = 0
        for i in range(start, run_ends[r]):
            patient = positives[i]
            for lane in range(lanes):
                run[lane] += table[patient, lane]
        for lane in range(lanes):
            positives_so_far[lane] += run[lane]
            if run[lane] > 0:
                reach = positives_so_far[lane] + negatives_so_far[lane]
                precisions[lane] += run[lane] * (positives_so_far[lane] / reach)
        start = run_ends[r]

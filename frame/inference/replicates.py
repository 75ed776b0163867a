"""Values of every measure in every resample, for many sets of images in one pass over the resamples.

A *sample* is a set of images with their patients: all of them, or those of one subgroup, with one score. It
is sorted once; after that a resample costs one walk over its images. All samples of a call read the same
multiplicities, so their replicates are paired.

Safe sizes: a resample holds at most ``n_patients`` times the images of the patient with the most. Up to
2**31 of them, twice the number of ordered pairs stays below 2**63; more is refused.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from frame.errors import InputError
from frame.inference.multiplicities import MOST_PATIENTS, drawn_patients, too_many_draws, whole_number
from frame.measures.registry import check_measure
from frame.measures.values import ECE_BINS, calibration_bins, probabilities

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Patients = NDArray[np.uint32]

#: Resamples computed side by side; the results do not depend on it.
LANES = 32
#: Multiplicities of all threads together stay below this many bytes where 8 lanes allow it.
TABLE_BYTES = 2**28
#: Images in one resample up to which every count is exact in int64.
MOST_IMAGES = 2**31


@dataclass(frozen=True)
class Sample:
    """Images of one set, in the orders the loops walk them. Patients are uint32.

    Attributes
    ----------
    positives, negatives : ndarray, shape (images of that class,)
        Patients by falling score.
    run_ends, above, reached : ndarray of int64, shape (different scores among the positives,)
        Where a run of positives with one score ends, and how many negatives have a higher score, or one
        as high or higher.
    true_positive, false_negative, false_positive, true_negative : ndarray, shape (images of that kind,)
        Patients in order; without a threshold every image counts as a negative decision.
    bins : tuple of (ndarray, ndarray of float64)
        For each bin of the calibration error, the patients in order and label minus probability.
    """

    positives: Patients
    negatives: Patients
    run_ends: Integers
    above: Integers
    reached: Integers
    true_positive: Patients
    false_negative: Patients
    false_positive: Patients
    true_negative: Patients
    bins: tuple[tuple[Patients, Floats], ...]


def sample(
    scores: Floats,
    labels: NDArray[np.bool_],
    patients: NDArray[np.integer],
    measures: Iterable[str],
    *,
    threshold: float | None = None,
    scale: str = "probability",
) -> Sample:
    """Sort the images of one set for the measures asked for.

    Parameters
    ----------
    scores : ndarray of float64, shape (images,)
        Finite.
    labels : ndarray of bool, shape (images,)
        True for a positive.
    patients : ndarray of int, shape (images,)
        0 .. n_patients - 1.
    measures : iterable of str
        Names of :data:`frame.measures.registry.MEASURES`; orders that none of them reads stay empty.
    threshold : float, optional
        A decision is positive where score >= threshold; needed for measures that read decisions.
    scale : {"probability", "logit"}
        How ECE and Brier read the scores.

    Returns
    -------
    Sample

    Raises
    ------
    InputError
        Unknown measure, a missing threshold, labels that are not bool, or scores with NaN.
    """
    reads = {check_measure(measure).reads for measure in measures}
    if "decisions" in reads and (threshold is None or math.isnan(threshold)):
        raise InputError(
            f"threshold is {threshold}; give the number from which a score is a positive decision."
        )
    if labels.dtype != np.bool_ or np.isnan(scores).any():
        raise InputError(
            f"labels are {labels.dtype} and {int(np.isnan(scores).sum())} scores are NaN; "
            "give bool labels and a score for every image."
        )
    number = patients.astype(np.uint32)
    by_patient = np.argsort(number, kind="stable")
    missed = np.ones(len(scores), dtype=np.bool_)
    if "decisions" in reads and threshold is not None:
        missed = scores < threshold
    kind = 2 * ~labels + missed  # 0 true positive, 1 false negative, 2 false positive, 3 true negative
    true_positive, false_negative, false_positive, true_negative = _split(by_patient, kind, 4)
    nothing = np.zeros(0, dtype=np.uint32)
    positives, negatives = nothing, nothing
    run_ends = above = reached = np.zeros(0, dtype=np.int64)
    if "ranks" in reads:
        falling = np.argsort(-scores)
        high, low = falling[labels[falling]], falling[~labels[falling]]
        positives, negatives = number[high], number[low]
        new = np.r_[scores[high][1:] != scores[high][:-1], True] if len(high) else np.zeros(0, dtype=np.bool_)
        run_ends = np.flatnonzero(new).astype(np.int64) + 1
        rising, runs = -scores[low], -scores[high][run_ends - 1]
        above = np.searchsorted(rising, runs, side="left").astype(np.int64)
        reached = np.searchsorted(rising, runs, side="right").astype(np.int64)
    bins: tuple[tuple[Patients, Floats], ...] = ()
    if "probabilities" in reads:
        chance = probabilities(scores, scale)
        residual = labels - chance
        rows = _split(by_patient, calibration_bins(chance), ECE_BINS)
        bins = tuple((number[row], residual[row]) for row in rows if len(row))
    return Sample(
        positives=positives,
        negatives=negatives,
        run_ends=run_ends,
        above=above,
        reached=reached,
        true_positive=number[true_positive],
        false_negative=number[false_negative],
        false_positive=number[false_positive],
        true_negative=number[true_negative],
        bins=bins,
    )


def _split(order: Integers, kind: NDArray[np.integer], kinds: int) -> list[Integers]:
    """The rows of each kind, in the given order."""
    of_row = kind[order].astype(np.uint8)
    sorted_rows = order[np.argsort(of_row, kind="stable")]
    ends = np.cumsum(np.bincount(of_row, minlength=kinds))
    return np.split(sorted_rows, ends[:-1])


def sample_replicates(
    samples: Sequence[Sample],
    measures: Sequence[str],
    n_patients: int,
    *,
    resamples: int = 1000,
    seed: int = 0,
    threads: int | None = None,
    lanes: int | None = None,
) -> Floats:
    """Values of the measures in every resample of patients.

    Parameters
    ----------
    samples : sequence of Sample
        Sets of images of the same patients.
    measures : sequence of str
        Names; every sample was sorted for them.
    n_patients : int
        Patients to draw from, those without an image included.
    resamples, seed : int
        As in :func:`frame.inference.multiplicities.patient_multiplicities`.
    threads : int, optional
        At most this many threads; None takes what the process may use. No effect on the results.
    lanes : int, optional
        Resamples computed side by side; None chooses. No effect on the results.

    Returns
    -------
    ndarray of float64, shape (samples, measures, resamples)
        NaN where a measure is undefined in a resample.

    Raises
    ------
    InputError
        numba is missing, an argument is not a whole number in its range, or a patient's number is not
        below ``n_patients``.
    """
    n_patients = whole_number("n_patients", n_patients, 1, MOST_PATIENTS)
    resamples = whole_number("resamples", resamples, 1)
    seed = whole_number("seed", seed, 0)
    workers = whole_number("threads", threads, 1) if threads is not None else _available_threads()
    for one in samples:
        for part in (one.true_positive, one.false_negative, one.false_positive, one.true_negative):
            if len(part) and part[-1] >= n_patients:  # in order, so the last is the largest
                raise InputError(
                    f"A sample has patient number {part[-1]} and n_patients is {n_patients}; number from 0."
                )
    from frame.inference import kernels

    workers = max(1, min(workers, TABLE_BYTES // (4 * n_patients * 8)))
    width = lanes or int(np.clip(TABLE_BYTES // (4 * n_patients * workers), 8, LANES))
    values = np.empty((len(samples), len(measures), resamples))

    def block(first: int) -> None:
        used = min(width, resamples - first)
        counts = np.zeros((width, n_patients), dtype=np.uint16)
        for lane in range(used):
            if not kernels.count_draws(drawn_patients(n_patients, seed, first + lane), counts[lane]):
                raise too_many_draws(first + lane)
        table = np.empty((n_patients, width), dtype=np.uint16)
        kernels.side_by_side(counts, table)
        del counts
        for s, one in enumerate(samples):
            values[s, :, first : first + used] = _block_values(one, measures, table)[:, :used]

    starts = range(0, resamples, width)
    if workers == 1 or len(starts) == 1:
        for first in starts:
            block(first)
    else:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(block, starts))
    return values


def replicate_values(
    scores: Floats,
    labels: NDArray[np.bool_],
    patients: Integers,
    n_patients: int,
    codes: Integers,
    n_levels: int,
    measures: Sequence[str],
    *,
    threshold: float | None = None,
    scale: str = "probability",
    resamples: int = 1000,
    seed: int = 0,
    threads: int | None = None,
) -> Floats:
    """Replicates of one score, overall and for every level of one attribute.

    Parameters
    ----------
    scores, labels, patients
        As in :func:`sample`; shape (images,).
    n_patients : int
        Patients to draw from.
    codes : ndarray of int64, shape (images,)
        Level of each image, 0 .. n_levels - 1, or -1 for an image that counts overall only.
    n_levels : int
        Number of levels, empty ones included.
    measures : sequence of str
        Names of measures.
    threshold, scale
        As in :func:`sample`.
    resamples, seed, threads
        As in :func:`sample_replicates`.

    Returns
    -------
    ndarray of float64, shape (measures, n_levels + 1, resamples)
        Index 0 of the second axis is overall, 1 + k level k. NaN where undefined in a resample.

    Raises
    ------
    InputError
        Shapes disagree, patients or codes leave their range, or a resample could hold more than 2**31
        images.
    """
    check_patients(patients, n_patients)
    if not len(scores) == len(labels) == len(patients) == len(codes):
        raise InputError(
            f"There are {len(scores)} scores, {len(labels)} labels, {len(patients)} patients and "
            f"{len(codes)} codes; give one of each per image."
        )
    if len(codes) and not -1 <= codes.min() <= codes.max() < n_levels:
        raise InputError(f"Codes run from {codes.min()} to {codes.max()}; give -1 to {n_levels - 1}.")
    rows = [np.arange(len(scores)), *(np.flatnonzero(codes == level) for level in range(n_levels))]
    samples = [
        sample(scores[row], labels[row], patients[row], measures, threshold=threshold, scale=scale)
        for row in rows
    ]
    values = sample_replicates(samples, measures, n_patients, resamples=resamples, seed=seed, threads=threads)
    return np.ascontiguousarray(values.transpose(1, 0, 2))


def check_patients(patients: NDArray[np.integer], n_patients: int) -> None:
    """Refuse patient numbers outside their range, and sizes at which counts could pass int64.

    Raises
    ------
    InputError
        A number lies outside 0 .. n_patients - 1, or a resample could hold more than 2**31 images.
    """
    if len(patients) == 0:
        return
    if patients.min() < 0 or patients.max() >= n_patients:
        raise InputError(
            f"Patients are numbered {patients.min()} to {patients.max()}; give 0 to {n_patients - 1}."
        )
    most = int(np.bincount(patients).max())
    if most * n_patients > MOST_IMAGES:
        raise InputError(
            f"One of {n_patients} patients has {most} images, so a resample could hold {most * n_patients} "
            f"images; counts are exact up to {MOST_IMAGES}, so give fewer images a patient or fewer patients."
        )


def _available_threads() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _block_values(one: Sample, measures: Sequence[str], table: NDArray[np.uint16]) -> Floats:
    """Measures of one sample in the resamples of a table; shape (measures, lanes)."""
    from frame.inference import kernels

    lanes = table.shape[1]

    def counted(patients: Patients) -> Integers:
        totals = np.zeros(lanes, dtype=np.int64)
        kernels.add_counts(table, patients, totals)
        return totals

    hit, miss = counted(one.true_positive), counted(one.false_negative)
    alarm, rest = counted(one.false_positive), counted(one.true_negative)
    n_positive, n_negative = hit + miss, alarm + rest
    n_images = n_positive + n_negative
    values = np.empty((len(measures), lanes))
    for m, measure in enumerate(measures):
        if measure == "auroc":
            wrong = np.zeros(lanes, dtype=np.int64)
            ranks = (one.positives, one.run_ends, one.negatives, one.above, one.reached)
            kernels.add_wrong_pairs(table, *ranks, wrong)
            doubled = 2 * n_positive * n_negative
            values[m] = _ratio(doubled - wrong, doubled)
        elif measure == "auprc":
            precisions = np.zeros(lanes)
            kernels.add_precisions(table, one.positives, one.run_ends, one.negatives, one.reached, precisions)
            values[m] = _ratio(precisions, n_positive)
        elif measure == "ece":
            gaps = np.zeros(lanes)
            for patients, residuals in one.bins:
                gap = np.zeros(lanes)
                kernels.add_weighted(table, patients, residuals, gap)
                gaps += np.abs(gap)
            values[m] = _ratio(gaps, n_images)
        elif measure == "brier":
            squares = np.zeros(lanes)
            for patients, residuals in one.bins:
                kernels.add_weighted(table, patients, residuals**2, squares)
            values[m] = _ratio(squares, n_images)
        else:
            shares = {
                "tpr": (hit, n_positive),
                "fnr": (miss, n_positive),
                "fpr": (alarm, n_negative),
                "specificity": (rest, n_negative),
                "accuracy": (hit + rest, n_images),
                "ppv": (hit, hit + alarm),
                "npv": (rest, rest + miss),
            }
            values[m] = _ratio(*shares[measure])
    return values


def _ratio(part: NDArray[np.number], whole: Integers) -> Floats:
    """Divide, NaN where the whole is 0."""
    shares = np.full(whole.shape, np.nan)
    np.divide(part, whole, out=shares, where=whole > 0)
    return shares

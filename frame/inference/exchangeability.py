"""Reference of a difference when it does not matter who belongs to which subgroup (method ``pooled``)."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frame.errors import InputError
from frame.measures.values import ECE_BINS, calibration_bins, probabilities

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Measures this reference can be asked for.
RANK_MEASURES = ("auroc", "auprc")
DECISION_MEASURES = ("tpr", "fnr", "fpr", "specificity", "accuracy", "ppv", "npv")
PROBABILITY_MEASURES = ("ece", "brier")
PERMUTED_MEASURES = RANK_MEASURES + DECISION_MEASURES + PROBABILITY_MEASURES
#: Permutations of one piece of work; no result depends on it.
_CHUNK = 64

#: What the reference assumes; goes beside every p made with it.
EXCHANGEABILITY = (
    "This tests exchangeability, not equal performance: membership of the subgroups is permuted over "
    "patients, separately for those with and without a positive image. Each subgroup keeps its share of "
    "patients with a positive image, so what this share alone does to a difference in ECE, Brier, PPV, NPV, "
    "accuracy or AUPRC lies in the reference; a differing share of positive images within those patients, "
    "or a shift of the scores, can exceed by itself."
)


@dataclass(frozen=True)
class PermutationReference:
    """Differences after permuting subgroup membership over patients.

    Attributes
    ----------
    measure : str
        Measure of the differences.
    draws : ndarray of float64, shape (permutations,)
        Max-min difference of each permutation, in the order of the permutations; NaN where fewer than
        two subgroups have a value. Empty when not estimable.
    observed : float
        Max-min difference of the given rows and subgroups, NaN when not estimable.
    levels : tuple of int
        Subgroups that entered, as codes.
    strata : ndarray of int64, shape (2, levels)
        Patients of each subgroup with a positive image (first row) and without one.
    arrangements : float
        How many memberships the permutations choose from; inf where too many to write.
    n_incomplete : int
        Permutations in which a subgroup had no value and was left out of the range.
    n_undefined : int
        Permutations with fewer than two subgroups left, which do not count in p, mean, SD and quantiles.
    reason : str
        Why the reference is not estimable; empty when it is.
    flags : tuple of str
        What a reader must know about this reference, one sentence each; EXCHANGEABILITY is the first.
    """

    measure: str
    draws: Floats
    observed: float
    levels: tuple[int, ...]
    strata: Integers
    arrangements: float
    n_incomplete: int
    n_undefined: int
    reason: str
    flags: tuple[str, ...]

    @property
    def status(self) -> str:
        """``ok`` or ``not estimable``."""
        return "not estimable" if self.reason else "ok"

    @property
    def defined(self) -> Floats:
        """Differences that are defined."""
        return self.draws[~np.isnan(self.draws)]

    @property
    def mean(self) -> float:
        """Mean difference; NaN when not estimable."""
        return float(self.defined.mean()) if len(self.defined) else math.nan

    @property
    def sd(self) -> float:
        """Standard deviation (ddof 1); NaN when not estimable."""
        return float(self.defined.std(ddof=1)) if len(self.defined) > 1 else math.nan

    def quantile(self, q: float) -> float:
        """Smallest drawn difference d with at least the share ``q`` of the draws at or below it."""
        if not len(self.defined):
            return math.nan
        return float(np.quantile(self.defined, q, method="inverted_cdf"))

    def exceedance(self, delta: float, tolerance: float = 1e-9) -> float:
        """One-sided p of a difference: ``(1 + #{draws >= delta}) / (draws + 1)``; ties count.

        Parameters
        ----------
        delta : float
            Difference on the scale of the measure.
        tolerance : float
            A draw this far below still counts as reaching.

        Returns
        -------
        float
            In (0, 1]; NaN when not estimable or ``delta`` is NaN.
        """
        if not len(self.defined) or math.isnan(delta):
            return math.nan
        reached = int(np.count_nonzero(self.defined >= delta - tolerance))
        return (1 + reached) / (len(self.defined) + 1)


def permutation_reference(
    scores: NDArray[Any],
    labels: NDArray[Any],
    patients: NDArray[Any],
    n_patients: int,
    codes: NDArray[Any],
    n_levels: int,
    measure: str,
    *,
    threshold: float | None = None,
    scale: str = "probability",
    permutations: int = 2000,
    seed: int = 0,
    evaluable_levels: Sequence[int] | None = None,
    threads: int | None = None,
) -> PermutationReference:
    """Law of the max-min difference when subgroup membership is permuted over patients.

    All images of a patient move together. Patients with at least one positive image change places
    among themselves, and so do the others, so that every subgroup keeps its number of both. Images of
    subgroups that are not evaluable take no part.

    Parameters
    ----------
    scores : ndarray of float, shape (images,)
        One score per image, no NaN.
    labels : ndarray of bool, shape (images,)
        Finding present.
    patients : ndarray of int, shape (images,)
        Patient of each image, 0 to ``n_patients - 1``.
    n_patients : int
        Number of patient codes.
    codes : ndarray of int, shape (images,)
        Subgroup of each image, 0 to ``n_levels - 1``; -1 leaves the image out.
    n_levels : int
        Number of subgroups.
    measure : str
        One of :data:`PERMUTED_MEASURES`.
    threshold : float, optional
        Positive decision from this score on; needed for measures that read decisions.
    scale : str
        ``probability`` or ``logit``; ECE and Brier score read the probability.
    permutations : int
        Random permutations, at least 1.
    seed : int
        0 or more. Permutation b has a stream of random numbers of its own, made of (seed, b).
    evaluable_levels : sequence of int, optional
        Subgroups that enter the difference; by default all.
    threads : int, optional
        Threads that share the work, by default one per processor. No value depends on it.

    Returns
    -------
    PermutationReference
        Not estimable, with the reason, when a patient has images in two subgroups, fewer than two
        subgroups have a value, or no patient can change places.

    Raises
    ------
    InputError
        If an argument is wrong or numba is not installed.

    Notes
    -----
    The test is exact for exchangeable patients, which is more than equal performance; see
    :data:`EXCHANGEABILITY`.

    References
    ----------
    Pesarin F, Salmaso L. Permutation tests for complex data. Wiley, 2010 (permutation within strata).
    """
    rows = _Rows.checked(scores, labels, patients, n_patients, codes, n_levels, evaluable_levels)
    _check_settings(measure, threshold, scale, permutations, seed)
    if rows.reason:
        return _not_estimable(measure, rows, rows.reason)
    evaluate = _evaluator(rows, measure, threshold, scale, seed)
    values = np.full((1, rows.n_levels), np.nan)
    evaluate(0, values, False)
    observed = values[0]
    if np.count_nonzero(~np.isnan(observed)) < 2:
        return _not_estimable(measure, rows, "fewer than two subgroups have a value")
    if rows.arrangements() < 1.5:
        return _not_estimable(measure, rows, "no patient can change places: every stratum is one subgroup")
    drawn = np.empty((permutations, rows.n_levels))
    pieces = [(first, drawn[first : first + _CHUNK]) for first in range(0, permutations, _CHUNK)]
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        list(pool.map(lambda piece: evaluate(piece[0], piece[1], True), pieces))

    # The range over the subgroups that have a value, both on the data and in every permutation.
    present = ~np.isnan(drawn)
    ranges = _range(drawn)
    flags = [EXCHANGEABILITY]
    n_incomplete = int(np.count_nonzero(~present.all(axis=1)))
    n_undefined = int(np.count_nonzero(np.isnan(ranges)))
    if n_incomplete:
        flags.append(
            f"In {n_incomplete:,} of {permutations:,} permutations a subgroup had no value "
            "and was left out of the range."
        )
    if n_undefined:
        flags.append(f"In {n_undefined:,} of them fewer than two subgroups were left; these do not count.")
    if rows.arrangements() < permutations:
        flags.append(
            f"Only {round(rows.arrangements()):,} memberships are possible, so that p cannot fall far below "
            f"{1 / rows.arrangements():.2g}."
        )
    return PermutationReference(
        measure=measure,
        draws=ranges,
        observed=float(_range(observed[None, :])[0]),
        levels=rows.levels,
        strata=rows.strata,
        arrangements=rows.arrangements(),
        n_incomplete=n_incomplete,
        n_undefined=n_undefined,
        reason="" if n_undefined < permutations else "no permutation leaves two subgroups with a value",
        flags=tuple(flags),
    )


def permuted_memberships(membership: Integers, stratum: NDArray[np.bool_], seed: int, draw: int) -> Integers:
    """Subgroup of every patient in one permutation, as :func:`permutation_reference` draws it.

    Parameters
    ----------
    membership : ndarray of int64, shape (patients,)
        Subgroup of each patient who takes part.
    stratum : ndarray of bool, shape (patients,)
        Patient has a positive image.
    seed, draw : int
        Seed and number of the permutation, from 0.

    Returns
    -------
    ndarray of int64, shape (patients,)
    """
    kernels = _kernels()
    order = np.argsort(~stratum, kind="stable")
    levels = membership[order].astype(np.int64)
    ends = np.array([np.count_nonzero(stratum), len(stratum)], dtype=np.int64)
    kernels.shuffle_strata(levels, ends, np.uint64(seed), np.uint64(draw))
    permuted = np.empty_like(levels)
    permuted[order] = levels
    return permuted


@dataclass(frozen=True)
class _Rows:
    """Images of the evaluable subgroups; patients renumbered, those with a positive image first."""

    scores: Floats
    labels: NDArray[np.bool_]
    patients: Integers
    membership: Integers
    n_with_positive: int
    levels: tuple[int, ...]
    reason: str

    @property
    def n_levels(self) -> int:
        return len(self.levels)

    @property
    def ends(self) -> Integers:
        """Where each stratum of patients ends."""
        return np.array([self.n_with_positive, len(self.membership)], dtype=np.int64)

    @property
    def strata(self) -> Integers:
        """Patients per stratum and subgroup."""
        split = (self.membership[: self.n_with_positive], self.membership[self.n_with_positive :])
        return np.array([np.bincount(part, minlength=self.n_levels) for part in split], dtype=np.int64)

    def arrangements(self) -> float:
        """Number of different memberships: the product of two multinomial coefficients."""
        logarithm = sum(
            math.lgamma(sum(counts) + 1) - sum(math.lgamma(n + 1) for n in counts)
            for counts in self.strata.tolist()
        )
        return math.exp(logarithm) if logarithm < 700.0 else math.inf

    @staticmethod
    def checked(
        scores: NDArray[Any],
        labels: NDArray[Any],
        patients: NDArray[Any],
        n_patients: int,
        codes: NDArray[Any],
        n_levels: int,
        evaluable_levels: Sequence[int] | None,
    ) -> _Rows:
        columns = {
            "scores": np.asarray(scores, dtype=np.float64),
            "labels": np.asarray(labels).astype(bool),
            "patients": np.asarray(patients, dtype=np.int64),
            "codes": np.asarray(codes, dtype=np.int64),
        }
        shapes = {name: column.shape for name, column in columns.items()}
        if len(set(shapes.values())) > 1 or columns["scores"].ndim != 1:
            raise InputError(f"the columns have shapes {shapes}; give one value per image in each.")
        if np.isnan(columns["scores"]).any():
            raise InputError(f"{int(np.isnan(columns['scores']).sum())} scores are missing; leave them out.")
        for name, size in (("patients", n_patients), ("codes", n_levels)):
            low = 0 if name == "patients" else -1
            if len(columns[name]) and not (low <= columns[name].min() and columns[name].max() < size):
                raise InputError(f"{name} holds numbers outside {low} to {size - 1}.")
        levels = tuple(range(n_levels) if evaluable_levels is None else (int(g) for g in evaluable_levels))
        if len(set(levels)) != len(levels) or any(not 0 <= g < n_levels for g in levels):
            raise InputError(
                f"evaluable_levels is {list(levels)}; give different numbers of 0 to {n_levels - 1}."
            )

        place = np.full(n_levels + 1, -1, dtype=np.int64)  # the last entry serves code -1
        place[list(levels)] = np.arange(len(levels))
        level = place[columns["codes"]]
        kept = np.flatnonzero(level >= 0)
        level, label, patient = level[kept], columns["labels"][kept], columns["patients"][kept]
        lowest = np.full(n_patients, len(levels), dtype=np.int64)
        highest = np.full(n_patients, -1, dtype=np.int64)
        np.minimum.at(lowest, patient, level)
        np.maximum.at(highest, patient, level)
        taking_part = highest >= 0
        in_two = int(np.count_nonzero(taking_part & (lowest != highest)))
        reason = ""
        if len(levels) < 2:
            reason = "fewer than two subgroups are evaluable"
        elif in_two:
            reason = (
                f"{in_two:,} of {int(np.count_nonzero(taking_part)):,} patients have images in two "
                "subgroups: membership cannot be permuted over patients"
            )
        with_positive = np.zeros(n_patients, dtype=bool)
        with_positive[patient[label]] = True
        order = np.concatenate(
            [np.flatnonzero(taking_part & with_positive), np.flatnonzero(taking_part & ~with_positive)]
        )
        number = np.full(n_patients, -1, dtype=np.int64)
        number[order] = np.arange(len(order))
        return _Rows(
            scores=columns["scores"][kept],
            labels=label,
            patients=number[patient],
            membership=highest[order],
            n_with_positive=int(np.count_nonzero(taking_part & with_positive)),
            levels=levels,
            reason=reason,
        )


def _check_settings(measure: str, threshold: float | None, scale: str, permutations: int, seed: int) -> None:
    if measure not in PERMUTED_MEASURES:
        listed = ", ".join(repr(name) for name in PERMUTED_MEASURES)
        raise InputError(f"measure is {measure!r}; allowed are {listed}.")
    if measure in DECISION_MEASURES and (threshold is None or math.isnan(threshold)):
        raise InputError(f"{measure} reads decisions and no threshold was given; give a number.")
    if scale not in ("probability", "logit"):
        raise InputError(f"scale is {scale!r}; allowed are 'probability', 'logit'.")
    if isinstance(permutations, bool) or int(permutations) != permutations or permutations < 1:
        raise InputError(f"permutations is {permutations}; it must be a whole number, 1 or more.")
    if isinstance(seed, bool) or int(seed) != seed or not 0 <= seed < 2**63:
        raise InputError(f"seed is {seed}; it must be a whole number, 0 or more.")


def _kernels() -> Any:
    try:
        import_module("numba")
    except ImportError:
        raise InputError(
            "The permutation reference needs numba; install it with: pip install 'frame-audit[scores]'"
        ) from None
    return import_module("frame.inference.permutation_kernels")


def _evaluator(
    rows: _Rows, measure: str, threshold: float | None, scale: str, seed: int
) -> Callable[[int, Floats, bool], None]:
    """A function that fills values (draws, levels) from a first draw on, permuted or as observed."""
    kernels = _kernels()
    # Few levels: one byte per patient keeps the memberships in the fastest memory.
    small = np.uint8 if rows.n_levels <= 255 else np.int64
    membership = rows.membership.astype(small)
    fixed = np.arange(1, len(membership) + 1, dtype=np.int64)  # strata of one patient: nobody moves
    moving = rows.ends
    key = np.uint64(seed)
    tail: tuple[Any, ...]
    if measure in RANK_MEASURES:
        precision = measure == "auprc"
        order = np.argsort(-rows.scores if precision else rows.scores, kind="stable")
        ranked = rows.scores[order]
        ties = np.append(np.flatnonzero(np.diff(ranked)) + 1, len(ranked)).astype(np.int64)
        run = kernels.rank_draws
        tail = (precision, rows.patients[order].astype(np.int32), rows.labels[order], ties)
    elif measure == "ece":
        probability = probabilities(rows.scores, scale)
        bins = calibration_bins(probability)
        run = kernels.ece_draws
        tail = (rows.patients.astype(np.int32), bins, rows.labels - probability, ECE_BINS)
    else:
        run = kernels.ratio_draws
        tail = _patient_sums(rows, measure, threshold, scale)

    def evaluate(first: int, out: Floats, permuted: bool) -> None:
        run(membership, moving if permuted else fixed, key, np.uint64(first), *tail, out)

    return evaluate


def _patient_sums(rows: _Rows, measure: str, threshold: float | None, scale: str) -> tuple[Floats, Floats]:
    """Per patient the numerator and the denominator of a ratio of sums."""
    label = rows.labels
    if measure == "brier":
        top, bottom = (probabilities(rows.scores, scale) - label) ** 2, np.ones(len(label))
    else:
        called = rows.scores >= (math.nan if threshold is None else threshold)
        counted, hit = {
            "tpr": (label, called),
            "fnr": (label, ~called),
            "fpr": (~label, called),
            "specificity": (~label, ~called),
            "accuracy": (np.ones(len(label), dtype=bool), called == label),
            "ppv": (called, label),
            "npv": (~called, ~label),
        }[measure]
        top, bottom = (counted & hit).astype(np.float64), counted.astype(np.float64)
    n = len(rows.membership)
    sums = (np.bincount(rows.patients, weights, n) for weights in (top, bottom))
    numerators, denominators = (np.asarray(column, dtype=np.float64) for column in sums)
    return numerators, denominators


def _range(values: Floats) -> Floats:
    """Max-min over the defined values of each row; NaN with fewer than two."""
    present = ~np.isnan(values)
    highest = np.where(present, values, -np.inf).max(axis=1)
    lowest = np.where(present, values, np.inf).min(axis=1)
    return np.where(present.sum(axis=1) >= 2, highest - lowest, np.nan)


def _not_estimable(measure: str, rows: _Rows, reason: str) -> PermutationReference:
    return PermutationReference(
        measure=measure,
        draws=np.empty(0),
        observed=math.nan,
        levels=rows.levels,
        strata=rows.strata,
        arrangements=math.nan,
        n_incomplete=0,
        n_undefined=0,
        reason=reason,
        flags=(EXCHANGEABILITY,),
    )

"""Compiled loops of the permutation reference: shuffling of patients and subgroup values of every measure.

Each permutation has its own stream of random numbers, made of the seed and its number, so that neither
the number of threads nor the cutting into chunks changes a value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from frame.inference.kernels import compiled

# Splitmix64 (Steele, Lea and Flood 2014): a step, and the finaliser that turns a counter into noise.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)


@compiled
def _mixed(z: Any) -> Any:
    z = (z ^ (z >> _S30)) * _FIRST
    z = (z ^ (z >> _S27)) * _SECOND
    return z ^ (z >> _S31)


@compiled
def shuffle_strata(levels: Any, stratum_ends: Any, seed: Any, draw: Any) -> None:
    """Permute ``levels`` in place within each stratum (Fisher-Yates), with the stream of (seed, draw)."""
    state = _mixed(_mixed(np.uint64(seed) + _STEP) + np.uint64(draw) * _STEP)
    start = 0
    for end in stratum_ends:
        for last in range(end - start - 1, 0, -1):
            # A whole number in 0..last without bias (Lemire 2019).
            size = np.uint64(last + 1)
            while True:
                state = state + _STEP
                product = (_mixed(state) >> _HALF) * size
                if (product & _LOW) >= size or (product & _LOW) >= (_LOW - size + np.uint64(1)) % size:
                    break
            i, j = start + last, start + np.int64(product >> _HALF)
            kept = levels[i]
            levels[i] = levels[j]
            levels[j] = kept
        start = end


@compiled
def auroc_levels(levels: Any, patients: Any, positive: Any, tie_ends: Any, n_levels: Any, out: Any) -> None:
    """AUROC of every level; rows in ascending order of score, ``tie_ends`` where equal scores end."""
    wins = np.zeros(n_levels, np.int64)  # twice the pairs won, ties counted once
    below = np.zeros(n_levels, np.int64)
    n_positive = np.zeros(n_levels, np.int64)
    tied_positive = np.zeros(n_levels, np.int64)
    tied_negative = np.zeros(n_levels, np.int64)
    start = 0
    for end in tie_ends:
        if end == start + 1:
            g = levels[patients[start]]
            if positive[start]:
                wins[g] += 2 * below[g]
                n_positive[g] += 1
            else:
                below[g] += 1
        else:
            tied_positive[:] = 0
            tied_negative[:] = 0
            for row in range(start, end):
                g = levels[patients[row]]
                if positive[row]:
                    tied_positive[g] += 1
                else:
                    tied_negative[g] += 1
            for g in range(n_levels):
                wins[g] += tied_positive[g] * (2 * below[g] + tied_negative[g])
                below[g] += tied_negative[g]
                n_positive[g] += tied_positive[g]
        start = end
    for g in range(n_levels):
        pairs = n_positive[g] * below[g]
        out[g] = wins[g] / (2.0 * pairs) if pairs > 0 else np.nan


@compiled
def auprc_levels(levels: Any, patients: Any, positive: Any, tie_ends: Any, n_levels: Any, out: Any) -> None:
    """Average precision of every level; rows in DESCENDING order of score."""
    total = np.zeros(n_levels, np.float64)
    hits = np.zeros(n_levels, np.int64)
    called = np.zeros(n_levels, np.int64)
    tied_positive = np.zeros(n_levels, np.int64)
    tied = np.zeros(n_levels, np.int64)
    start = 0
    for end in tie_ends:
        if end == start + 1:
            g = levels[patients[start]]
            called[g] += 1
            if positive[start]:
                hits[g] += 1
                total[g] += hits[g] / called[g]
        else:
            tied_positive[:] = 0
            tied[:] = 0
            for row in range(start, end):
                g = levels[patients[row]]
                tied[g] += 1
                if positive[row]:
                    tied_positive[g] += 1
            for g in range(n_levels):
                called[g] += tied[g]
                hits[g] += tied_positive[g]
                if tied_positive[g] > 0:
                    total[g] += tied_positive[g] * (hits[g] / called[g])
        start = end
    for g in range(n_levels):
        out[g] = total[g] / hits[g] if hits[g] > 0 else np.nan


@compiled
def ratio_levels(levels: Any, numerators: Any, denominators: Any, n_levels: Any, out: Any) -> None:
    """Ratio of two sums over the patients of every level: rates, accuracy, PPV, NPV and Brier."""
    top = np.zeros(n_levels, np.float64)
    bottom = np.zeros(n_levels, np.float64)
    for i in range(len(levels)):
        g = levels[i]
        top[g] += numerators[i]
        bottom[g] += denominators[i]
    for g in range(n_levels):
        out[g] = top[g] / bottom[g] if bottom[g] > 0 else np.nan


@compiled
def ece_levels(
    levels: Any, patients: Any, bins: Any, excess: Any, n_bins: Any, n_levels: Any, out: Any
) -> None:
    """Expected calibration error of every level; ``excess`` is label minus probability of a row."""
    sums = np.zeros((n_levels, n_bins), np.float64)
    rows = np.zeros(n_levels, np.int64)
    for row in range(len(patients)):
        g = levels[patients[row]]
        sums[g, bins[row]] += excess[row]
        rows[g] += 1
    for g in range(n_levels):
        total = 0.0
        for i in range(n_bins):
            total += abs(sums[g, i])
        out[g] = total / rows[g] if rows[g] > 0 else np.nan


@compiled
def rank_draws(
    original: Any,
    stratum_ends: Any,
    seed: Any,
    first: Any,
    precision: Any,
    patients: Any,
    positive: Any,
    tie_ends: Any,
    out: Any,
) -> None:
    """AUROC, or with ``precision`` average precision, in the permutations ``first``, ``first + 1``, ..."""
    levels = original.copy()
    for draw in range(len(out)):
        levels[:] = original
        shuffle_strata(levels, stratum_ends, seed, first + draw)
        if precision:
            auprc_levels(levels, patients, positive, tie_ends, out.shape[1], out[draw])
        else:
            auroc_levels(levels, patients, positive, tie_ends, out.shape[1], out[draw])


@compiled
def ratio_draws(
    original: Any, stratum_ends: Any, seed: Any, first: Any, numerators: Any, denominators: Any, out: Any
) -> None:
    """Ratios of sums in the permutations ``first``, ``first + 1``, ..."""
    levels = original.copy()
    for draw in range(len(out)):
        levels[:] = original
        shuffle_strata(levels, stratum_ends, seed, first + draw)
        ratio_levels(levels, numerators, denominators, out.shape[1], out[draw])


@compiled
def ece_draws(
    original: Any,
    stratum_ends: Any,
    seed: Any,
    first: Any,
    patients: Any,
    bins: Any,
    excess: Any,
    n_bins: Any,
    out: Any,
) -> None:
    """Expected calibration errors in the permutations ``first``, ``first + 1``, ..."""
    levels = original.copy()
    for draw in range(len(out)):
        levels[:] = original
        shuffle_strata(levels, stratum_ends, seed, first + draw)
        ece_levels(levels, patients, bins, excess, n_bins, out.shape[1], out[draw])

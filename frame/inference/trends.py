"""Does a quantity rise or fall with strength: Spearman's rank correlation with a permutation p value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from frame.errors import InputError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Values joined by gaps of at most this share a rank.
TIE = 1e-6
#: Two mean correlations closer than this are equal: they differ by rounding only.
SAME_CORRELATION = 1e-9


@dataclass(frozen=True)
class Trend:
    """A rank correlation and its permutation p value.

    Attributes
    ----------
    rho : float
        Spearman's correlation in [-1, 1]; ``blocked``: the mean over blocks of the correlation within
        each. NaN where it is not defined.
    p : float
        Two-sided, ``(1 + #) / (permutations + 1)``; NaN where rho is NaN, which no correction ever
        makes significant.
    kind : str
        ``pooled`` or ``blocked``.
    n : int
        Pairs that entered.
    reason : str
        Why rho is NaN, or which pairs and blocks were left out; otherwise empty.
    n_blocks : int
        Blocks that entered; 1 when pooled.
    permutations : int
        Random permutations behind p.
    """

    rho: float
    p: float
    kind: str
    n: int
    reason: str = ""
    n_blocks: int = 1
    permutations: int = 1000

    @property
    def status(self) -> str:
        """``ok`` or ``not estimable``."""
        return "not estimable" if np.isnan(self.rho) else "ok"


def spearman_trend(
    x: ArrayLike,
    y: ArrayLike,
    blocks: ArrayLike | None = None,
    permutations: int = 1000,
    seed: int = 0,
) -> Trend:
    """Spearman's rank correlation of two columns, tested by permutation, pooled or within blocks.

    Parameters
    ----------
    x, y : array_like of float, shape (n,)
        For example strength and difference. A pair with a NaN is left out and counted in the reason.
    blocks : array_like, shape (n,), optional
        For example the finding. Without it all pairs are ranked and permuted together, as in the
        paper; differences between findings then add noise that has nothing to do with the trend. With
        it the correlation is computed inside each block and averaged with equal weight, and ``y`` is
        permuted inside each block.
    permutations : int
        Random permutations, at least 1.
    seed : int
        Seed of the permutations.

    Returns
    -------
    Trend
        Not estimable with fewer than 3 pairs or a constant column; a block with one of these is left
        out and named in the reason by its count.

    Raises
    ------
    InputError
        If the columns differ in length, hold an infinite value, or ``permutations`` is below 1.

    Notes
    -----
    Values joined by gaps of at most 1e-6 count as tied and share their mean rank, so that rounding
    noise in a quantity that did not move is not ranked.

    References
    ----------
    Spearman C. The proof and measurement of association between two things. Am J Psychol 15:72-101,
    1904.

    Examples
    --------
    >>> spearman_trend([0, 1, 2, 3, 4, 5], [0, 1, 4, 9, 16, 25]).rho
    1.0
    >>> spearman_trend([0, 1, 2], [0.5, 0.5, 0.5]).reason
    'the second column is constant'
    """
    first, second, labels = _checked(x, y, blocks)
    if permutations < 1:
        raise InputError(f"permutations is {permutations}; it must be 1 or more.")
    kind = "pooled" if blocks is None else "blocked"
    present = ~(np.isnan(first) | np.isnan(second))
    missing = int(np.count_nonzero(~present))
    first, second, labels = first[present], second[present], labels[present]
    said = [f"{missing} of {len(present)} pairs have a missing value and were left out"] if missing else []

    pairs, refused = [], []
    for block in np.unique(labels):
        rows = labels == block
        why = _unusable(first[rows], second[rows])
        if why:
            refused.append(why)
        else:
            pairs.append((_doubled_ranks(first[rows]), _doubled_ranks(second[rows])))
    if not pairs:
        causes = list(dict.fromkeys(refused)) or ["there are no pairs"]
        why = causes[0] if len(causes) == 1 else "no block has a correlation: " + "; ".join(causes)
        reason = "; ".join([why, *said])
        return Trend(float("nan"), float("nan"), kind, len(first), reason, 0, permutations)
    if refused:
        counted = "; ".join(f"{refused.count(why)} because {why}" for why in dict.fromkeys(refused))
        said.insert(0, f"{len(refused)} of {len(refused) + len(pairs)} blocks left out: {counted}")

    rho = float(np.mean([_correlation(a, b) for a, b in pairs]))
    generator = np.random.default_rng(seed)
    drawn = np.zeros(permutations)
    for a, b in pairs:
        shuffled = generator.permuted(np.tile(b, (permutations, 1)), axis=1)
        drawn += _correlation(a, shuffled)
    reached = int(np.count_nonzero(np.abs(drawn / len(pairs)) >= abs(rho) - SAME_CORRELATION))
    return Trend(
        rho=rho,
        p=(1 + reached) / (permutations + 1),
        kind=kind,
        n=sum(len(a) for a, _ in pairs),
        reason="; ".join(said),
        n_blocks=len(pairs),
        permutations=permutations,
    )


def _checked(x: ArrayLike, y: ArrayLike, blocks: ArrayLike | None) -> tuple[Floats, Floats, Integers]:
    """The two columns and the block of each pair as a number."""
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise InputError(
            f"the columns of a trend have shapes {first.shape} and {second.shape}; "
            "give two columns of the same length."
        )
    if np.isinf(first).any() or np.isinf(second).any():
        raise InputError("a column of a trend holds an infinite value; give finite numbers or NaN.")
    if blocks is None:
        return first, second, np.zeros(len(first), dtype=np.int64)
    given = np.asarray(blocks)
    if given.shape != first.shape:
        raise InputError(f"blocks has shape {given.shape}; give one block per pair, {len(first)}.")
    names = given.astype(str)  # a missing name is a block of its own, called what it prints as
    return first, second, np.unique(names, return_inverse=True)[1].astype(np.int64)


def _unusable(x: Floats, y: Floats) -> str:
    """Why a block has no rank correlation; empty when it has one."""
    if len(x) < 3:
        return f"it has {len(x)} pairs, 3 needed" if len(x) != 1 else "it has 1 pair, 3 needed"
    for name, values in (("first", x), ("second", y)):
        ranks = _doubled_ranks(values)
        if ranks.min() == ranks.max():
            return f"the {name} column is constant"
    return ""


def _doubled_ranks(values: Floats) -> Integers:
    """Twice the mid-ranks, which are whole numbers; values joined by gaps of at most TIE are tied."""
    order = np.argsort(values, kind="stable")
    opens = np.concatenate([[True], np.diff(values[order]) > TIE])
    starts = np.flatnonzero(opens)
    ends = np.append(starts[1:], len(values))
    doubled = np.repeat(starts + 1 + ends, ends - starts)  # first rank + last rank of each tie
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[order] = doubled
    return ranks


def _correlation(a: Integers, b: Integers) -> Floats:
    """Pearson correlation of ranks; ``b`` may hold one row per permutation."""
    mean = len(a) + 1  # of twice the ranks, ties or not
    x, y = a - mean, b - mean
    # Sums of whole numbers: a permutation that reaches the observed value reaches it exactly.
    spread = np.sqrt(float(np.sum(x * x)) * np.sum(y * y, axis=-1, dtype=np.float64))
    return np.asarray((y @ x) / spread, dtype=np.float64)

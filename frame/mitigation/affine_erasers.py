"""The affine map that erases groups from features, and the gap between group means that is left.

The map differs from the identity by a low-rank term and is folded into the head that is fitted on erased
features, so that no second feature matrix is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from frame.heads.linear_maps import LinearMap

__all__ = ["NO_VARIANCE", "AffineEraser", "group_moments", "largest_gap", "standardised_blocks"]

Floats = NDArray[np.float64]
#: Share of a column's variance below which what is left of it is rounding.
NO_VARIANCE: Final = 1e-10
BLOCK: Final = 4096


@dataclass(frozen=True, eq=False)
class AffineEraser:
    """``z - z @ right @ left`` in standardised coordinates ``z = (x - centre) * scale``.

    Attributes
    ----------
    centre, scale : ndarray of float64, shape (D,)
        Mean, and one over the standard deviation, of the rows it was fitted on; scale 1 where constant.
    right, left : ndarray of float64, shapes (D, k) and (k, D)
        ``left @ right`` is the identity, so erasing twice is erasing once.
    groups : tuple
        Groups with at least one row, in the order of their codes.
    gap_before, gap : float
        Largest difference between two groups' means of a column, in that column's pooled within-group
        standard deviation before erasure (the standard deviation of all rows where groups do not vary).
    spread : ndarray of float64, shape (D,)
        Those standard deviations, in the units of the features; 1 for a constant column.
    """

    centre: Floats
    scale: Floats
    right: Floats
    left: Floats
    groups: tuple[int, ...]
    gap_before: float
    gap: float
    spread: Floats

    @property
    def n_directions(self) -> int:
        """Rank of what is taken out."""
        return int(self.right.shape[1])

    def apply(self, features: NDArray[Any]) -> Floats:
        """The erased rows in float64, shape (n, D); a copy."""
        x = np.asarray(features, dtype=np.float64)
        return x - (((x - self.centre) * self.scale) @ self.right) @ (self.left / self.scale)

    def standardised(self, features: NDArray[Any]) -> LinearMap:
        """Erasure followed by standardising on the erased rows, as one map of the features.

        Parameters
        ----------
        features : ndarray, shape (n, D)
            Rows whose mean is ``centre``: those the eraser was fitted on.

        Returns
        -------
        LinearMap
            A column of which nothing but rounding is left maps to zero.
        """
        centred = LinearMap(self.centre, self.scale)
        inner = np.zeros((len(self.centre), self.n_directions))
        variance = np.zeros(len(self.centre))
        for block in standardised_blocks(features, centred):
            inner += block.T @ (block @ self.right)
            variance += np.einsum("ij,ij->j", block, block)
        inner /= len(features)
        variance /= len(features)
        middle = self.right.T @ inner
        after = variance - 2 * np.einsum("jk,kj->j", inner, self.left)
        after += np.einsum("kj,kl,lj->j", self.left, middle, self.left)
        empty = after <= NO_VARIANCE * np.maximum(variance, 1e-300)
        unit = np.where(empty, 0.0, 1 / np.sqrt(np.where(empty, 1.0, after)))
        return centred.then((np.eye(len(self.centre)) - self.right @ self.left) * unit)


def standardised_blocks(features: NDArray[Any], standard: LinearMap) -> Iterator[Floats]:
    """Standardised rows, ``BLOCK`` at a time, in float64."""
    for start in range(0, len(features), BLOCK):
        block = np.array(features[start : start + BLOCK], dtype=np.float64)
        block -= standard.centre
        block *= standard.scale
        yield block


def group_moments(features: NDArray[Any], group: NDArray[Any], standard: LinearMap) -> tuple[Floats, Floats]:
    """Group means (K, D), and the pooled within-group variance (D,), of standardised columns."""
    n_groups = int(group.max()) + 1
    sums, squares = np.zeros((n_groups, standard.n_columns)), np.zeros(standard.n_columns)
    for number, block in enumerate(standardised_blocks(features, standard)):
        codes = group[number * BLOCK : (number + 1) * BLOCK]
        sums += (codes[:, None] == np.arange(n_groups)).astype(np.float64).T @ block
        squares += np.einsum("ij,ij->j", block, block)
    counts = np.bincount(group, minlength=n_groups)[:, None]
    means = sums / counts
    return means, np.maximum(squares - (counts * means**2).sum(axis=0), 0.0) / len(features)


def largest_gap(means: Floats, spread: Floats) -> float:
    """Largest difference between two groups' means of a column, in standard deviations."""
    return float(np.max(np.ptp(means, axis=0) / spread, initial=0.0))

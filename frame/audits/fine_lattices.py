"""Rates of very many cases: Beta laws where a lattice would take minutes."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from frame.reference.exact import DifferenceLaw
from frame.reference.exact_auroc import AurocDifference
from frame.reference.subgroup_values import Betas

__all__ = ["FINE_LATTICE", "LARGEST_SHARE", "BesideLattice", "beta_law", "fine_flag"]

Floats = NDArray[np.float64]

#: With more cases than this in all subgroups a lattice is so fine that Beta laws stand in for it.
FINE_LATTICE = 100_000
#: Beta laws need less than all of the variance that two points would have.
LARGEST_SHARE = 0.95


def beta_law(means: Sequence[float], variances: Floats) -> AurocDifference:
    """Law of a difference of independent Beta values.

    Parameters
    ----------
    means : sequence of float
        One per subgroup; moved into [1e-6, 1 - 1e-6].
    variances : ndarray of float64, shape (subgroups,)
        Kept below 0.95 of what two points, 0 and 1, would have.

    Returns
    -------
    AurocDifference
    """
    moved = np.clip(np.asarray(means, dtype=np.float64), 1e-6, 1.0 - 1e-6)
    kept = np.minimum(variances, LARGEST_SHARE * moved * (1.0 - moved))
    order = np.lexsort((moved, kept))
    return AurocDifference(Betas(moved[order], kept[order]))


def fine_flag(margin: float) -> str:
    """What has to be said where Beta laws stand in for a lattice."""
    exact = "the mean is exact" if margin > 0.0 else "the mean and p are exact"
    also = ", the p with its margin" if margin > 0.0 else ""
    return (
        f"more than {FINE_LATTICE:,} cases: the SD and the range of the reference{also} and the detectable "
        f"difference are computed with Beta laws in place of the lattice of rates; {exact}"
    )


class BesideLattice:
    """Law of a rate difference: mean and tails from its lattice, the rest from Beta laws.

    Parameters
    ----------
    lattice : DifferenceLaw
        The exact law.
    means : sequence of float
        True rate of each subgroup.
    variances : ndarray of float64, shape (subgroups,)
        Sampling variances of the rates.
    """

    def __init__(self, lattice: DifferenceLaw, means: Sequence[float], variances: Floats) -> None:
        self._lattice = lattice
        self._means, self._variances = means, variances

    @cached_property
    def _beta(self) -> AurocDifference:
        return beta_law(self._means, self._variances)

    @property
    def mean(self) -> float:
        """Expected difference, from the lattice."""
        return self._lattice.mean

    @cached_property
    def sd(self) -> float:
        """Standard deviation, from the Beta laws."""
        return self._beta.sd

    def exceedance(self, delta: float | Fraction, tolerance: float = 1e-9) -> float:
        """P(G >= delta), from the lattice."""
        return self._lattice.exceedance(delta, tolerance)

    def quantile(self, q: float) -> float:
        """The d with P(G <= d) = q, from the Beta laws."""
        return self._beta.quantile(q)

    def critical_value(self, alpha: float) -> float | None:
        """The d with P(G >= d) = alpha, from the Beta laws."""
        return self._beta.critical_value(alpha)

"""The exact law of a max-min difference at given counts: which law belongs to which method."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np

from frame.reference.exact_auroc import AurocDifference
from frame.reference.exact_rates import RateDifference
from frame.reference.inputs import Counts
from frame.reference.subgroup_values import Betas, ClippedNormals
from frame.reference.variances import binormal_variance, clip_value, hanley_mcneil_variance


class DifferenceLaw(Protocol):
    """Law of ``G = max - min`` of independent subgroup values."""

    @property
    def mean(self) -> float:
        """Expected difference."""

    @property
    def sd(self) -> float:
        """Standard deviation."""

    def exceedance(self, delta: float | Fraction, tolerance: float = 1e-9) -> float:
        """P(G >= delta)."""

    def quantile(self, q: float) -> float:
        """Smallest attainable d with P(G <= d) >= q."""

    def critical_value(self, alpha: float) -> float | None:
        """Smallest attainable d with P(G >= d) <= alpha, None when there is none."""


def difference_law(counts: Counts, kappa: float, values: Sequence[float] | None = None) -> DifferenceLaw:
    """Law of the difference at checked counts.

    Parameters
    ----------
    counts : Counts
        Checked counts with measure and method.
    kappa : float
        Ratio of score standard deviations, used by ``binormal`` only.
    values : sequence of float, optional
        True value of each subgroup; by default all equal ``counts.value``: exact fairness.

    Returns
    -------
    DifferenceLaw
    """
    true_values = [counts.value] * counts.n_subgroups if values is None else [float(v) for v in values]
    if counts.method == "binomial":
        return RateDifference(counts.denominators, true_values)
    # Sorted, so that the order of the subgroups changes no digit.
    rows = sorted(zip(counts.n_positive, counts.n_negative, true_values, strict=True))
    positives, negatives, means = (np.asarray(column, dtype=np.float64) for column in zip(*rows, strict=True))
    if counts.method == "hanley-mcneil":
        sd = np.sqrt(hanley_mcneil_variance(means, positives, negatives))
        return AurocDifference(ClippedNormals(means, sd))
    variance = binormal_variance(means, positives, negatives, kappa)
    return AurocDifference(Betas(clip_value(means), variance))

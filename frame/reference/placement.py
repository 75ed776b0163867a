"""Placements: what every image contributes to its subgroup's AUROC, and the variances built on them.

The placement of a positive is the share of the subgroup's negatives ranked below it (ties count half),
that of a negative the share of the positives ranked above it. Their deviations from the AUROC, summed
per patient, carry all that is needed for its sampling variance, with one or several images a patient.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Placements:
    """One subgroup with at least one positive and one negative.

    Attributes
    ----------
    auroc : float
        With half credit for ties, in [0, 1].
    n_positive, n_negative : int
        Images.
    n_patients : int
        Patients with any image in the subgroup.
    positives, negatives : ndarray of int64, shape (patients,)
        Images of each class a patient has.
    positive_sums, negative_sums : ndarray of float64, shape (patients,)
        Sums over a patient's positives (negatives) of placement minus AUROC.
    positive_squares, negative_squares : float
        Sums over images of the squared deviations.
    """

    auroc: float
    n_positive: int
    n_negative: int
    n_patients: int
    positives: Integers
    negatives: Integers
    positive_sums: Floats
    negative_sums: Floats
    positive_squares: float
    negative_squares: float

    @property
    def patients_with_positive(self) -> int:
        """Patients with at least one positive image."""
        return int(np.count_nonzero(self.positives))

    @property
    def patients_with_negative(self) -> int:
        """Patients with at least one negative image."""
        return int(np.count_nonzero(self.negatives))

    @property
    def repeats(self) -> bool:
        """Whether any patient has more than one image."""
        return self.n_patients < self.n_positive + self.n_negative


def placements(scores: Floats, labels: NDArray[np.bool_], patients: Integers) -> Placements:
    """Placements of one subgroup.

    Parameters
    ----------
    scores : ndarray of float64, shape (images,)
        Finite; only their order matters.
    labels : ndarray of bool, shape (images,)
        At least one True and one False.
    patients : ndarray of int64, shape (images,)
        Patient of each image, any whole numbers.

    Returns
    -------
    Placements

    References
    ----------
    DeLong ER, DeLong DM, Clarke-Pearson DL. Biometrics 44:837-845, 1988.
    Obuchowski NA. Biometrics 53:567-578, 1997.
    """
    positive, negative = scores[labels], scores[~labels]
    sorted_positive, sorted_negative = np.sort(positive), np.sort(negative)
    below = _half_counts(sorted_negative, positive) / len(negative)
    above = 1.0 - _half_counts(sorted_positive, negative) / len(positive)
    # Halves of whole numbers add up exactly, so ties and separation leave no rounding behind.
    auroc = min(1.0, float(_half_counts(sorted_negative, positive).sum()) / (len(positive) * len(negative)))
    _, own = np.unique(patients, return_inverse=True)
    n_patients = int(own.max()) + 1
    return Placements(
        auroc=auroc,
        n_positive=len(positive),
        n_negative=len(negative),
        n_patients=n_patients,
        positives=np.bincount(own[labels], minlength=n_patients).astype(np.int64),
        negatives=np.bincount(own[~labels], minlength=n_patients).astype(np.int64),
        positive_sums=_sums(own[labels], below - auroc, n_patients),
        negative_sums=_sums(own[~labels], above - auroc, n_patients),
        positive_squares=float(np.sum((below - auroc) ** 2)),
        negative_squares=float(np.sum((above - auroc) ** 2)),
    )


def _sums(owner: Integers, values: Floats, length: int) -> Floats:
    return np.asarray(np.bincount(owner, weights=values, minlength=length), dtype=np.float64)


def _half_counts(ordered: Floats, values: Floats) -> Floats:
    """How many of ``ordered`` lie below each value, ties counting half."""
    left = np.searchsorted(ordered, values, side="left")
    right = np.searchsorted(ordered, values, side="right")
    return np.asarray(0.5 * (left + right), dtype=np.float64)


def delong_variance(group: Placements) -> float:
    """Variance of a subgroup's AUROC, every image counted as independent; NaN with one case of a class."""
    if group.n_positive < 2 or group.n_negative < 2:
        return math.nan
    positive = group.positive_squares / (group.n_positive - 1)
    negative = group.negative_squares / (group.n_negative - 1)
    return positive / group.n_positive + negative / group.n_negative


def obuchowski_variance(group: Placements) -> float:
    """Variance of a subgroup's AUROC with patients as the units; NaN with one patient of a class.

    ``I+/(I+ - 1) sum P^2/n+^2 + I-/(I- - 1) sum N^2/n-^2 + 2 I/(I - 1) sum P N/(n+ n-)`` with the sums
    P and N of a patient's positives and negatives, over I patients, I+ with a positive and I- with a
    negative.
    """
    with_positive, with_negative = group.patients_with_positive, group.patients_with_negative
    if with_positive < 2 or with_negative < 2:
        return math.nan
    own = with_positive / (with_positive - 1) * float(np.sum(group.positive_sums**2)) / group.n_positive**2
    own += with_negative / (with_negative - 1) * float(np.sum(group.negative_sums**2)) / group.n_negative**2
    shared = float(np.sum(group.positive_sums * group.negative_sums))
    own += 2.0 * group.n_patients / (group.n_patients - 1) * shared / (group.n_positive * group.n_negative)
    return own


def common_auroc(groups: Sequence[Placements]) -> float:
    """Within-group mean weighted by ``n+ n-/(n+ + n-)``: the value that exact fairness speaks of."""
    weights = [g.n_positive * g.n_negative / (g.n_positive + g.n_negative) for g in groups]
    return math.fsum(w * g.auroc for w, g in zip(weights, groups, strict=True)) / math.fsum(weights)

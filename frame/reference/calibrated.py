"""The calibrated reference of an AUROC difference, from scores and patients.

Sampling variances come from placement variances and within-patient covariances that are pooled over
subgroups: a small subgroup's own variance is near 0 exactly when its AUROC happens to be near 1, and a
reference built on it exceeds far too often. A large subgroup's own variance is mixed in. The subgroup
values follow Beta laws around the within-group mean, and the law of their range is integrated exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, owens_t

from frame.reference.exact_auroc import AurocDifference
from frame.reference.placement import Placements, common_auroc, obuchowski_variance
from frame.reference.subgroup_values import Betas
from frame.reference.variances import clip_value

Floats = NDArray[np.float64]

#: Pseudo-observations of the equal-variance binormal law in each moment equation.
_PRIOR = 5.0
#: Weight of the pooled variance against a subgroup's own, and the degrees of freedom the own needs.
_POOLED_WEIGHT = 30.0
#: A variance is kept below this share of ``c (1 - c)``, where a Beta law would be two points.
_LARGEST_SHARE = 0.95
#: With fewer pooled degrees of freedom the components rest mostly on the pseudo-observations.
_FEWEST_FREEDOM = 10.0
#: A subgroup with more than this share of all variance rules the range.
_RULING_SHARE = 0.8


@dataclass(frozen=True)
class Components:
    """Pooled components of one class (positives, or negatives).

    Attributes
    ----------
    variance : float
        Variance of one image's placement.
    covariance : float
        Covariance of the placements of two images of one patient, in [0, variance].
    """

    variance: float
    covariance: float


@dataclass(frozen=True)
class CalibratedReference:
    """Law of the largest minus smallest subgroup AUROC under exact fairness.

    Attributes
    ----------
    value : float
        Common value: the within-group mean.
    variances : ndarray of float64, shape (subgroups,)
        Sampling variance of each subgroup's AUROC.
    freedom : float
        Pooled degrees of freedom behind them.
    law : AurocDifference
        Law of the difference.
    flags : tuple of str
        What a reader has to know; one beginning ``reference unreliable`` means that no exceedance
        should be shown.
    """

    value: float
    variances: Floats
    freedom: float
    law: AurocDifference
    flags: tuple[str, ...]

    @property
    def reliable(self) -> bool:
        """Whether an exceedance may be shown."""
        return not any(flag.startswith("reference unreliable") for flag in self.flags)


class NotEstimable(ValueError):
    """Data without information on sampling variation; the message is the reason."""


def calibrated_reference(
    groups: Sequence[Placements],
    names: Sequence[str],
    *,
    images_may_repeat: bool = False,
    balanced: bool = False,
) -> CalibratedReference:
    """Calibrated reference at the placements of the estimable subgroups.

    Parameters
    ----------
    groups : sequence of Placements
        Two or more subgroups, each with a positive and a negative.
    names : sequence of str
        Their names, for flags.
    images_may_repeat : bool
        True if no patient ids were given though patients may have several images: each image then
        counts as its own patient, and the result is flagged.
    balanced : bool
        Whether a subgroup with more than 31 patients of a class counts as 31 when components are pooled.
        By default every image counts once and large subgroups decide; where images of a patient agree
        more in the small subgroups, that makes their variances too small.

    Returns
    -------
    CalibratedReference

    Raises
    ------
    NotEstimable
        If every subgroup is perfectly ranked (or perfectly misranked), or if none has two patients of
        each class.
    """
    common = common_auroc(groups)
    if common <= 0.0 or common >= 1.0:
        raise NotEstimable("all groups perfectly ranked")
    contributing = [g for g in groups if g.patients_with_positive >= 2 and g.patients_with_negative >= 2]
    if not contributing:
        raise NotEstimable("no subgroup has two patients of each class")
    prior = _prior_variance(common)
    positive = _components([_Side.positive(g) for g in contributing], prior, balanced)
    negative = _components([_Side.negative(g) for g in contributing], prior, balanced)
    between = _between_classes(contributing, positive, negative)
    pooled = np.asarray([_pooled_variance(g, positive, negative, between, common) for g in groups])
    own = np.asarray([obuchowski_variance(g) for g in groups])
    freedom = np.asarray([min(g.patients_with_positive, g.patients_with_negative) - 1.0 for g in groups])
    large = freedom >= _POOLED_WEIGHT
    mixed = np.where(large, own, 0.0) * freedom + _POOLED_WEIGHT * pooled
    variances = np.where(large, mixed / (freedom + _POOLED_WEIGHT), pooled)
    total_freedom = float(
        sum(f for f, g in zip(freedom, groups, strict=True) if any(g is c for c in contributing))
    )
    variances = variances * (total_freedom + 5.0) / (total_freedom + 3.0)
    largest = _LARGEST_SHARE * common * (1.0 - common)
    capped = variances >= largest
    variances = np.minimum(variances, largest)
    if not np.all(variances > 0.0):
        raise NotEstimable("all groups perfectly ranked")
    flags = _flags(
        groups,
        names,
        common,
        pooled,
        own,
        variances,
        total_freedom,
        bool(capped.any()),
        large,
        images_may_repeat,
    )
    order = np.argsort(variances, kind="stable")
    law = AurocDifference(Betas(np.full(len(groups), common), variances[order]))
    return CalibratedReference(common, variances, total_freedom, law, tuple(flags))


def _prior_variance(common: float) -> float:
    """Placement variance of equal-variance binormal scores: ``Phi2(h, h; 1/2) - c^2``."""
    clipped = float(clip_value(common))
    h = float(ndtri(clipped))
    return clipped - 2.0 * float(owens_t(h, 1.0 / math.sqrt(3.0))) - clipped * clipped


@dataclass(frozen=True)
class _Side:
    """One class of one subgroup: images, images per patient, and sums of placement deviations."""

    n: int
    per_patient: Floats
    squares: float
    patient_squares: float

    @classmethod
    def positive(cls, group: Placements) -> _Side:
        return cls(
            group.n_positive,
            group.positives.astype(np.float64),
            group.positive_squares,
            float(np.sum(group.positive_sums**2)),
        )

    @classmethod
    def negative(cls, group: Placements) -> _Side:
        return cls(
            group.n_negative,
            group.negatives.astype(np.float64),
            group.negative_squares,
            float(np.sum(group.negative_sums**2)),
        )


def _components(sides: Sequence[_Side], prior: float, balanced: bool) -> Components:
    """Solve the two exact moment equations, after centring by each subgroup's own AUROC."""
    images = first_variance = first_covariance = second_variance = second_covariance = 0.0
    squares = patient_squares = 0.0
    for side in sides:
        pairs = float(np.sum(side.per_patient**2))
        triples = float(np.sum(side.per_patient**3))
        excess = pairs - side.n
        between = excess - 2.0 * (triples - pairs) / side.n + pairs * excess / side.n**2
        patients = int(np.count_nonzero(side.per_patient))
        weight = min(1.0, _POOLED_WEIGHT / max(1.0, patients - 1.0)) if balanced else 1.0
        images += weight * (side.n - 1)
        first_covariance -= weight * excess / side.n
        second_variance += weight * (side.n - pairs / side.n)
        second_covariance += weight * between
        squares += weight * side.squares
        patient_squares += weight * side.patient_squares
    first = squares + _PRIOR * prior
    first_variance = images + _PRIOR
    alone = Components(first / first_variance, 0.0)
    if first_covariance == 0.0:
        return alone
    determinant = first_variance * second_covariance - first_covariance * second_variance
    if determinant == 0.0:
        return alone
    covariance = (first_variance * patient_squares - second_variance * first) / determinant
    if covariance <= 0.0:
        return alone
    variance = (first * second_covariance - first_covariance * patient_squares) / determinant
    if covariance > variance:
        equal = (first + patient_squares) / (
            first_variance + first_covariance + second_variance + second_covariance
        )
        return Components(equal, equal)
    return Components(variance, covariance)


def _between_classes(groups: Sequence[Placements], positive: Components, negative: Components) -> float:
    """Covariance between a positive and a negative of one patient."""
    limit = math.sqrt(positive.covariance * negative.covariance)
    pairs = float(sum(np.sum(g.positives * g.negatives) for g in groups))
    if pairs == 0.0 or limit == 0.0:
        return 0.0
    shared = math.fsum(float(np.sum(g.positive_sums * g.negative_sums)) for g in groups) / pairs
    return min(max(shared, -limit), limit)


def _pooled_variance(
    group: Placements, positive: Components, negative: Components, between: float, common: float
) -> float:
    """Variance of a subgroup's AUROC rebuilt from the pooled components at its own counts."""
    n_positive, n_negative = group.n_positive, group.n_negative
    pairs_positive = float(np.sum(group.positives.astype(np.float64) ** 2))
    pairs_negative = float(np.sum(group.negatives.astype(np.float64) ** 2))
    mixed_pairs = float(np.sum(group.positives * group.negatives))
    variance = (positive.variance + positive.covariance * (pairs_positive / n_positive - 1.0)) / n_positive
    variance += (negative.variance + negative.covariance * (pairs_negative / n_negative - 1.0)) / n_negative
    variance += 2.0 * between * mixed_pairs / (n_positive * n_negative)
    rest = max(0.0, common * (1.0 - common) - positive.variance - negative.variance)
    return variance + rest / (n_positive * n_negative)


def _flags(
    groups: Sequence[Placements],
    names: Sequence[str],
    common: float,
    pooled: Floats,
    own: Floats,
    variances: Floats,
    freedom: float,
    capped: bool,
    large: NDArray[np.bool_],
    images_may_repeat: bool,
) -> list[str]:
    """What has to be said beside the result."""
    flags: list[str] = []
    if freedom < _FEWEST_FREEDOM:
        flags.append(f"reference unreliable: {freedom:.0f} pooled degrees of freedom, fewer than 10")
    if capped:
        flags.append("reference unreliable: a subgroup is too small for any variance to be estimated")
    if images_may_repeat:
        flags.append("reference unreliable: images repeat but no patient id was given")
    if common >= 0.9 and max(g.n_positive for g in groups) < 20:
        flags.append(
            "conservative: no group has 20 positives at an AUROC of 0.9 or more; p is an upper bound"
        )
    share = variances / variances.sum()
    ruling = int(np.argmax(share))
    if share[ruling] > _RULING_SHARE:
        flags.append(f"range ruled by group '{names[ruling]}': p speaks of it alone; see the heterogeneity")
    for i in np.flatnonzero(large).tolist():
        ratio = own[i] / pooled[i]
        if not 0.5 <= ratio <= 2.0:
            flags.append(
                f"check the patient structure: the variance of group '{names[i]}' is {ratio:.1f} times pooled"
            )
    return flags

"""What every method says of a simulated cohort, and how often it is wrong over many."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

from frame.characteristics.cells import CONFIRMATION, Cell
from frame.characteristics.worlds import Cohort, simulated_cohort
from frame.reference.calibrated import NotEstimable, calibrated_reference
from frame.reference.clustered_rates import RateCounts, clustered_reference, rate_counts, rate_heterogeneity
from frame.reference.exact_auroc import AurocDifference
from frame.reference.exact_rates import RateDifference
from frame.reference.heterogeneity import heterogeneity
from frame.reference.placement import Placements, delong_variance, obuchowski_variance, placements
from frame.reference.subgroup_values import Betas, ClippedNormals
from frame.reference.variances import binormal_variance, hanley_mcneil_variance

#: Sensitivity at which decisions are made.
SENSITIVITY = 0.80
#: Permutations and resamples of the resampling methods.
RESAMPLES = 200
#: Level of the tests and of the interval around a size.
ALPHA, SIZE_LEVEL = 0.05, 0.99


@dataclass(frozen=True)
class Answer:
    """One method's answer for one cohort.

    Attributes
    ----------
    method : str
    p : float
        Exceedance; NaN where the method gives none.
    reference : float
        Mean of the reference; NaN where the method has none.
    observed : float
        Observed largest minus smallest value.
    """

    method: str
    p: float
    reference: float
    observed: float


def cohort_of(cell: Cell, cohort: int, seed: int = CONFIRMATION) -> Cohort:
    """The cell's cohort with this number."""
    return simulated_cohort(cell.world, cell.generator(cohort, seed))


def answers(cell: Cell, cohort: Cohort, *, every_method: bool, resampling: bool) -> list[Answer]:
    """What the methods say of a cohort.

    Parameters
    ----------
    cell : Cell
        Gives the measure and, for rates, the threshold with a sensitivity of 0.80 in the unshifted world.
    cohort : Cohort
        Simulated rows.
    every_method : bool
        Whether the calibrated reference's mean, the heterogeneity and the comparison methods are computed
        too, not only the calibrated exceedance.
    resampling : bool
        Whether permutations and the bootstrap are run too.

    Returns
    -------
    list of Answer
    """
    found = (
        _auroc_answers(cohort, every_method)
        if cell.measure == "auroc"
        else _rate_answers(cell, cohort, every_method)
    )
    return found + (_resampling_answers(cell, cohort) if resampling else [])


def _auroc_answers(cohort: Cohort, every_method: bool) -> list[Answer]:
    groups = list(_estimable(cohort))
    if len(groups) < 2:
        return [Answer("calibrated", math.nan, math.nan, math.nan)]
    values = np.asarray([g.auroc for g in groups])
    observed = float(values.max() - values.min())
    names = [str(i) for i in range(len(groups))]
    found: list[Answer] = []
    try:
        reference = calibrated_reference(groups, names)
    except NotEstimable:
        found.append(Answer("calibrated", math.nan, math.nan, observed))
    else:
        law = reference.law
        mean = law.mean if every_method else math.nan
        found.append(Answer("calibrated", law.exceedance(observed), mean, observed))
        if every_method:
            other = heterogeneity(values, reference.variances, reference.value)
            found.append(Answer("heterogeneity", other.p, math.nan, observed))
    if every_method:
        if found[0].p == found[0].p:
            law = calibrated_reference(groups, names, balanced=True).law
            found.append(Answer("calibrated-balanced", law.exceedance(observed), law.mean, observed))
        found += _comparison_answers(cohort, groups, observed)
    return found


def _estimable(cohort: Cohort) -> Iterator[Placements]:
    for group in range(int(cohort.groups[-1]) + 1):
        rows = cohort.groups == group
        labels = cohort.labels[rows]
        if 0 < np.count_nonzero(labels) < len(labels):
            yield placements(cohort.scores[rows], labels, cohort.patients[rows])


def _comparison_answers(cohort: Cohort, groups: list[Placements], observed: float) -> list[Answer]:
    n_positive = np.asarray([float(g.n_positive) for g in groups])
    n_negative = np.asarray([float(g.n_negative) for g in groups])
    overall = placements(cohort.scores, cohort.labels, cohort.patients).auroc
    value = min(max(overall, 1e-6), 1.0 - 1e-6)
    variance = hanley_mcneil_variance(value, n_positive, n_negative)
    binormal = binormal_variance(value, n_positive, n_negative, 1.25)
    own = {
        "delong": np.asarray([delong_variance(g) for g in groups]),
        "obuchowski": np.asarray([obuchowski_variance(g) for g in groups]),
    }
    laws = {
        "hanley-mcneil": AurocDifference(ClippedNormals(np.full(len(groups), value), np.sqrt(variance))),
        "binormal": AurocDifference(Betas(np.full(len(groups), value), binormal)),
    }
    weights = n_positive * n_negative / (n_positive + n_negative)
    common = float(np.sum(weights * [g.auroc for g in groups]) / weights.sum())
    for method, variances in own.items():
        # Where a subgroup's own variance is undefined, that of the counts stands in; at 0 it is a point.
        filled = np.where(np.isnan(variances), variance, np.maximum(variances, 1e-12))
        laws[method] = AurocDifference(ClippedNormals(np.full(len(groups), common), np.sqrt(filled)))
    return [Answer(m, law.exceedance(observed), law.mean, observed) for m, law in laws.items()]


def _resampling_answers(cell: Cell, cohort: Cohort) -> list[Answer]:
    """Permuted memberships, and whether the bootstrap interval of the difference lies above 0."""
    from frame.inference.exchangeability import permutation_reference
    from frame.inference.replicates import replicate_values

    threshold = None if cell.measure == "auroc" else _threshold(cell)
    n_patients, n_levels = int(cohort.patients[-1]) + 1, len(cell.world.sizes)
    rows = (cohort.scores, cohort.labels, cohort.patients, n_patients, cohort.groups, n_levels)
    needed = (cohort.labels, ~cohort.labels) if cell.measure == "auroc" else (_asked(cell, cohort),)
    levels = [g for g in range(n_levels) if all(np.any(side[cohort.groups == g]) for side in needed)]
    if len(levels) < 2:
        return []
    permuted = permutation_reference(
        *rows, cell.measure, threshold=threshold, permutations=RESAMPLES, evaluable_levels=levels, threads=1
    )
    replicates = replicate_values(*rows, [cell.measure], threshold=threshold, resamples=RESAMPLES, threads=1)[
        0, 1:
    ][levels]
    defined = replicates[:, ~np.isnan(replicates).any(axis=0)]
    above = defined.size > 0 and float(np.quantile(np.ptp(defined, axis=0), 0.025)) > 0.0
    return [
        Answer("pooled", permuted.exceedance(permuted.observed), permuted.mean, permuted.observed),
        Answer("bootstrap interval above 0", 0.0 if above else 1.0, math.nan, permuted.observed),
    ]


def _threshold(cell: Cell) -> float:
    """Threshold with the sensitivity of 0.80 in the unshifted world."""
    return cell.world.separation + float(ndtri(1.0 - SENSITIVITY))


def _asked(cell: Cell, cohort: Cohort) -> NDArray[np.bool_]:
    """Images in the denominator of the cell's rate."""
    return cohort.labels if cell.measure == "tpr" else ~cohort.labels


def _rate_answers(cell: Cell, cohort: Cohort, every_method: bool) -> list[Answer]:
    world = cell.world
    threshold, asked = _threshold(cell), _asked(cell, cohort)
    groups: list[RateCounts] = []
    for group in range(len(world.sizes)):
        rows = (cohort.groups == group) & asked
        if rows.any():
            groups.append(rate_counts(cohort.scores[rows] >= threshold, cohort.patients[rows]))
    if len(groups) < 2:
        return [Answer("calibrated", math.nan, math.nan, math.nan)]
    values = np.asarray([g.rate for g in groups])
    observed = float(values.max() - values.min())
    try:
        reference = clustered_reference(groups, [str(i) for i in range(len(groups))])
    except NotEstimable:
        return [Answer("calibrated", math.nan, math.nan, observed)]
    law = reference.law
    mean = law.mean if every_method else math.nan
    found = [Answer("calibrated", law.exceedance(observed), mean, observed)]
    if every_method:
        other = rate_heterogeneity(groups, reference)
        found.append(Answer("heterogeneity", other.p, math.nan, observed))
        binomial = RateDifference([g.n for g in groups], [reference.value] * len(groups))
        found.append(Answer("binomial", binomial.exceedance(observed), binomial.mean, observed))
    return found


def size_interval(rejected: int, cohorts: int, level: float = SIZE_LEVEL) -> tuple[float, float]:
    """Clopper-Pearson interval of a rejection rate.

    Parameters
    ----------
    rejected, cohorts : int
        Rejections among cohorts, 0 <= rejected <= cohorts.
    level : float
        Confidence level.

    Returns
    -------
    (float, float)
    """
    tail = 0.5 * (1.0 - level)
    low = 0.0 if rejected == 0 else float(betaincinv(rejected, cohorts - rejected + 1, tail))
    high = 1.0 if rejected == cohorts else float(betaincinv(rejected + 1, cohorts - rejected, 1.0 - tail))
    return low, high

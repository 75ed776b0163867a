"""The difference of one unit against its fair-model reference, for every method."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frame.audits import fine_lattices
from frame.audits.evaluable import EvaluableRows
from frame.audits.fine_lattices import LARGEST_SHARE, BesideLattice, beta_law, fine_flag
from frame.audits.margins import exceedance_with_margin
from frame.audits.power import detectable_shift
from frame.audits.settings import CALIBRATED, COUNT_METHODS, PERMUTATIONS, RATES, Settings
from frame.errors import InputError
from frame.inference.families import SAME_TEST
from frame.reference.calibrated import NotEstimable, calibrated_reference
from frame.reference.clustered_rates import (
    RateCounts,
    RateReference,
    clustered_reference,
    rate_counts,
    rate_heterogeneity,
)
from frame.reference.exact import DifferenceLaw, difference_law
from frame.reference.exact_auroc import AurocDifference
from frame.reference.exact_rates import RateDifference
from frame.reference.fair_model import FairReference, reference_from_counts
from frame.reference.heterogeneity import Heterogeneity, heterogeneity
from frame.reference.inputs import Counts
from frame.reference.placement import (
    Placements,
    common_auroc,
    delong_variance,
    obuchowski_variance,
    placements,
)
from frame.reference.planning import LARGEST_MARGIN_SUBGROUPS
from frame.reference.subgroup_values import ClippedNormals
from frame.reference.variances import binormal_variance, hanley_mcneil_variance

__all__ = ["ALL_ROWS", "WITHIN_GROUPS", "Comparison", "compare"]

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

#: Where the common value of a reference comes from.
ALL_ROWS, WITHIN_GROUPS = "all rows", "within-group mean"
#: More subgroups than this are no comparison that a reader could follow, and no law computed in time.
MOST_SUBGROUPS = 60
#: A score-model ratio for ``binormal``.
_KAPPA = 1.25

OWN_VARIANCE = (
    "for comparison only: each group's own variance is too small when its AUROC is near 1 by chance, "
    "and a fair model then exceeds far too often"
)
ACCURACY = (
    "differing prevalence alone can exceed: accuracy is a mixture of TPR and specificity weighted by "
    "prevalence; audit TPR and FPR"
)
REPEATED = "check the unit: images repeat but no patient id was given, so the reference is too small"
NO_PATIENTS = (
    "check the unit: no patient id was given, so every image counts as its own patient; if images repeat, "
    "the reference is too small"
)


@dataclass(frozen=True)
class Comparison:
    """What a method says about the observed difference.

    Attributes
    ----------
    reference : FairReference or None
        None where none can be made.
    observed : float
        Largest minus smallest value.
    common : float
        Common value of the reference.
    common_source : str
        Where it comes from.
    within : float
        Within-group mean; NaN for a measure without one.
    variances : ndarray or None
        Sampling variances of the subgroup values under the reference.
    p, p_heterogeneity, p_heterogeneity_error : float
        NaN where not shown or not defined.
    flags : tuple of str
        What a reader has to know.
    reason : str
        Why there is no p; empty where there is one.
    """

    observed: float
    common: float = math.nan
    common_source: str = ""
    within: float = math.nan
    reference: FairReference | None = None
    variances: Floats | None = None
    p: float = math.nan
    p_heterogeneity: float = math.nan
    p_heterogeneity_error: float = math.nan
    flags: tuple[str, ...] = ()
    reason: str = ""
    detectable: Callable[[], float] = field(default=lambda: math.nan, repr=False, compare=False)


def compare(groups: EvaluableRows, overall: float, settings: Settings) -> Comparison:
    """Compare the observed difference of evaluable subgroups with its reference.

    Parameters
    ----------
    groups : EvaluableRows
        Two or more subgroups.
    overall : float
        The measure over all rows of the unit; like the values of the groups, TPR where the measure is FNR and
        FPR where it is specificity.
    settings : Settings
        Measure and method among them.

    Returns
    -------
    Comparison
        Not estimable results have a reason; nothing is raised for what the data are like.

    Raises
    ------
    InputError
        If the method needs what was not given.
    """
    if settings.method == "obuchowski" and not groups.patients_given:
        raise InputError(
            "method 'obuchowski' needs patient ids and none were given; give patients, "
            "or use 'calibrated' or 'delong', which can do without."
        )
    too_many = _too_many_subgroups(len(groups.names), settings)
    if too_many:
        return Comparison(float(groups.values.max() - groups.values.min()), reason=too_many)
    other = SAME_TEST.get(settings.measure)
    if other:
        # Read as TPR, an FNR gives the very same test, to the last digit.
        return _mirrored(compare(groups, overall, replace(settings, measure=other)), settings)
    if settings.method == "pooled":
        found = _pooled(groups, overall, settings)
    elif settings.measure in RATES:
        found = _rate(groups, overall, settings)
    else:
        found = _auroc(groups, overall, settings)
    return _flagged(found, groups, settings)


def _too_many_subgroups(n_groups: int, settings: Settings) -> str:
    """Why so many subgroups are not compared; empty where they are."""
    if n_groups > MOST_SUBGROUPS:
        return f"a difference is compared for at most {MOST_SUBGROUPS} subgroups, here are {n_groups}"
    if settings.margin > 0.0 and n_groups > LARGEST_MARGIN_SUBGROUPS:
        return f"a margin is computed for at most {LARGEST_MARGIN_SUBGROUPS} subgroups, here are {n_groups}"
    return ""


def _mirrored(found: Comparison, settings: Settings) -> Comparison:
    reference = found.reference
    if reference is not None:
        reference = replace(reference, measure=settings.measure, value=1.0 - reference.value)
    return replace(found, common=1.0 - found.common, within=1.0 - found.within, reference=reference)


def _flagged(found: Comparison, groups: EvaluableRows, settings: Settings) -> Comparison:
    """Add what concerns patients, and read ``reference unreliable`` as a reason."""
    flags = list(found.flags)
    in_two = groups.patients_in_two() if groups.patients_given else 0
    if in_two and settings.method != "pooled":
        flags.append(
            f"check the groups: {in_two:,} patients have images in two subgroups, and the reference takes "
            "subgroups to be independent"
        )
    if not groups.patients_given:
        flags.append(REPEATED if settings.images_repeat else NO_PATIENTS)
    elif settings.method in (*COUNT_METHODS, "delong") and groups.repeats:
        flags.append(
            f"check the unit: patients have several images and method '{settings.method}' counts images, "
            "so the reference is too small"
        )
    if settings.method in ("delong", "obuchowski"):
        flags.insert(0, OWN_VARIANCE)
    unreliable = next((flag for flag in flags if flag.startswith("reference unreliable")), "")
    if unreliable and not found.reason:
        nan = math.nan
        return replace(
            found,
            flags=tuple(flags),
            reason=unreliable,
            p=nan,
            p_heterogeneity=nan,
            p_heterogeneity_error=nan,
        )
    return replace(found, flags=tuple(flags))


# -- AUROC ------------------------------------------------------------------------------------------


def _auroc(groups: EvaluableRows, overall: float, settings: Settings) -> Comparison:
    placed = [placements(groups.scores[r], groups.labels[r], groups.patients[r]) for r in groups.rows]
    observed = float(groups.values.max() - groups.values.min())
    within = common_auroc(placed)
    if settings.method in COUNT_METHODS:
        return _auroc_from_counts(groups, placed, observed, overall, within, settings)
    base = Comparison(observed, within, WITHIN_GROUPS, within)
    if settings.method in CALIBRATED:
        try:
            calibrated = calibrated_reference(
                placed,
                groups.names,
                images_may_repeat=settings.images_repeat,
                balanced=settings.method == "calibrated-balanced",
            )
        except NotEstimable as problem:
            return _not_estimable(base, str(problem))
        return _withbeta_law(base, groups, calibrated.variances, calibrated.law, calibrated.flags, settings)
    own = delong_variance if settings.method == "delong" else obuchowski_variance
    variances = np.asarray([own(p) for p in placed])
    for name, variance in zip(groups.names, variances.tolist(), strict=True):
        if not variance > 0.0:
            state = "0" if variance == 0.0 else "not defined with one case of a class"
            return _not_estimable(base, f"the own variance of group '{name}' is {state}")

    def law(means: Sequence[float]) -> AurocDifference:
        order = np.lexsort((np.asarray(means), variances))
        return AurocDifference(ClippedNormals(np.asarray(means)[order], np.sqrt(variances[order])))

    return _judged(base, groups, law, variances, (), settings)


def _withbeta_law(
    base: Comparison,
    groups: EvaluableRows,
    variances: Floats,
    fair: AurocDifference,
    flags: tuple[str, ...],
    settings: Settings,
) -> Comparison:
    def law(means: Sequence[float]) -> AurocDifference:
        return fair if all(m == base.common for m in means) else beta_law(means, variances)

    def mixed() -> Heterogeneity:
        largest = LARGEST_SHARE * base.common * (1.0 - base.common)
        return heterogeneity(groups.values, np.minimum(variances, largest), base.common, seed=settings.seed)

    return _judged(base, groups, law, variances, flags, settings, heterogeneous=mixed)


def _auroc_from_counts(
    groups: EvaluableRows,
    placed: Sequence[Placements],
    observed: float,
    overall: float,
    within: float,
    settings: Settings,
) -> Comparison:
    positives = tuple(float(p.n_positive) for p in placed)
    negatives = tuple(float(p.n_negative) for p in placed)
    if settings.method == "hanley-mcneil":
        variances = hanley_mcneil_variance(overall, positives, negatives)
    else:
        variances = binormal_variance(overall, positives, negatives, _KAPPA)
    base = Comparison(observed, overall, ALL_ROWS, within)
    counts = Counts("auroc", settings.method, overall, positives, negatives)

    def law(means: Sequence[float]) -> DifferenceLaw:
        return difference_law(counts, _KAPPA, means)

    judged = _judged(base, groups, law, variances, (), settings)
    return _as_in_the_paper(judged, counts, observed, settings)


# -- rates ------------------------------------------------------------------------------------------


def _rate(groups: EvaluableRows, overall: float, settings: Settings) -> Comparison:
    counted = _rate_counts(groups, settings)
    # Whole numbers, so that a difference on the lattice of the law is met exactly.
    rates = [Fraction(int(c.hits.sum()), c.n) for c in counted]
    delta = max(rates) - min(rates)
    within = _within_rate(counted)
    fine = sum(c.n for c in counted) > fine_lattices.FINE_LATTICE
    flags: tuple[str, ...] = (ACCURACY,) if settings.measure == "accuracy" else ()
    flags += (fine_flag(settings.margin),) if fine else ()
    if settings.method == "binomial":
        n = tuple(float(c.n) for c in counted)
        base = Comparison(float(delta), overall, ALL_ROWS, within)
        counts = Counts("tpr", "binomial", overall, n, ())
        return _rate_from_counts(base, groups, counted, counts, delta, flags, settings)
    base = Comparison(float(delta), within, WITHIN_GROUPS, within)
    try:
        clustered = clustered_reference(counted, groups.names, images_may_repeat=settings.images_repeat)
    except NotEstimable as problem:
        return _not_estimable(base, str(problem))

    def law(means: Sequence[float]) -> DifferenceLaw:
        if all(m == within for m in means):
            return BesideLattice(clustered.law, means, clustered.variances) if fine else clustered.law
        if fine:
            return beta_law(means, clustered.variances)
        return clustered_reference(counted, groups.names, common=means).law

    return _judged(
        base,
        groups,
        law,
        clustered.variances,
        (*clustered.flags, *flags),
        settings,
        delta=delta,
        heterogeneous=lambda: rate_heterogeneity(counted, clustered, seed=settings.seed),
    )


def _rate_counts(groups: EvaluableRows, settings: Settings) -> list[RateCounts]:
    """Cases and hits of every subgroup."""
    decided = groups.scores >= _known(groups.threshold)
    counted: list[RateCounts] = []
    for rows in groups.rows:
        label, decision = groups.labels[rows], decided[rows]
        if settings.measure == "accuracy":
            cases, hits = np.ones(len(rows), dtype=bool), decision == label
        else:
            cases, hits = label == (settings.measure == "tpr"), decision
        counted.append(rate_counts(hits[cases], groups.patients[rows][cases]))
    return counted


def _within_rate(counted: Sequence[RateCounts]) -> float:
    """All hits over all cases: the mean of the rates, weighted by cases."""
    return sum(int(c.hits.sum()) for c in counted) / sum(c.n for c in counted)


def _rate_from_counts(
    base: Comparison,
    groups: EvaluableRows,
    counted: Sequence[RateCounts],
    counts: Counts,
    delta: Fraction,
    flags: tuple[str, ...],
    settings: Settings,
) -> Comparison:
    """The binomial reference, in which every case is its own patient."""
    common = counts.value
    n = np.asarray(counts.n_positive)
    variances = common * (1.0 - common) / n
    fine = float(n.sum()) > fine_lattices.FINE_LATTICE

    def law(means: Sequence[float]) -> DifferenceLaw:
        fair = all(m == common for m in means)
        if fine and not fair:
            return beta_law(means, variances)
        exact = difference_law(counts, _KAPPA, means)
        return BesideLattice(exact, means, variances) if fine and 0.0 < common < 1.0 else exact

    def mixed() -> Heterogeneity:
        exact = RateDifference([c.n for c in counted], [common] * len(counted))
        fair = RateReference(common, 0.0, variances, float(n.sum() - len(n)), exact, ())
        return rate_heterogeneity(counted, fair, seed=settings.seed)

    known = mixed if 0.0 < common < 1.0 else None
    judged = _judged(base, groups, law, variances, flags, settings, delta=delta, heterogeneous=known)
    return _as_in_the_paper(judged, counts, delta, settings)


def _known(threshold: float | None) -> float:
    if threshold is None:  # pragma: no cover - decisions always come with a threshold
        raise InputError("a rate reads decisions and has no threshold; give one.")
    return threshold


# -- any law of independent subgroup values ---------------------------------------------------------


def _as_in_the_paper(
    judged: Comparison, counts: Counts, delta: float | Fraction, settings: Settings
) -> Comparison:
    """The simulated reference in place of the exact one, where the paper's protocol is asked for."""
    if settings.protocol == "exact":
        return judged
    simulated = reference_from_counts(counts, protocol="paper", kappa=_KAPPA)
    reference = replace(simulated, measure=settings.measure, value=judged.common)
    return replace(judged, reference=reference, p=reference.exceedance(delta))


def _judged(
    base: Comparison,
    groups: EvaluableRows,
    law: Callable[[Sequence[float]], Any],
    variances: Floats,
    flags: tuple[str, ...],
    settings: Settings,
    *,
    delta: float | Fraction | None = None,
    heterogeneous: Callable[[], Heterogeneity] | None = None,
) -> Comparison:
    """Exceedance, with a margin if one is tolerated, heterogeneity, interval and power of a law."""
    n_groups = len(groups.names)
    fair = law([base.common] * n_groups)
    reference = FairReference(
        value=base.common,
        measure=settings.measure,
        method=settings.method,
        protocol="exact",
        n_groups=n_groups,
        _law=fair,
    )
    reached = base.observed if delta is None else delta
    p = reference.exceedance(reached)
    if settings.margin > 0.0:
        p = exceedance_with_margin(law, base.common, variances, reached, settings.margin)
    p_heterogeneity = p_error = math.nan
    if heterogeneous is not None:
        mixed = heterogeneous()
        p_heterogeneity, p_error = mixed.p, mixed.p_error

    def detectable() -> float:
        if settings.margin > 0.0:
            return math.nan  # with a tolerated margin the test is another one
        return detectable_shift(law, base.common, variances, settings.alpha)

    return replace(
        base,
        reference=reference,
        variances=variances,
        p=p,
        p_heterogeneity=p_heterogeneity,
        p_heterogeneity_error=p_error,
        flags=flags,
        detectable=detectable,
    )


# -- permutation ------------------------------------------------------------------------------------


def _pooled(groups: EvaluableRows, overall: float, settings: Settings) -> Comparison:
    from frame.inference.exchangeability import permutation_reference

    found = permutation_reference(
        groups.scores,
        groups.labels,
        groups.patients,
        groups.n_patients,
        groups.codes,
        groups.n_levels,
        settings.measure,
        threshold=groups.threshold,
        scale=settings.scale,
        permutations=PERMUTATIONS,
        seed=settings.seed,
        evaluable_levels=groups.levels,
    )
    observed = float(groups.values.max() - groups.values.min())
    base = Comparison(observed, overall, ALL_ROWS, _within_mean(groups, settings))
    if found.reason:
        return _not_estimable(base, found.reason)
    law: Any = found
    reference = FairReference(
        value=overall,
        measure=settings.measure,
        method="pooled",
        protocol="exact",
        n_groups=len(groups.names),
        _law=law,
    )
    return replace(
        base,
        reference=reference,
        p=found.exceedance(found.observed),
        flags=found.flags,
    )


def _within_mean(groups: EvaluableRows, settings: Settings) -> float:
    """Within-group mean of a measure that has one; otherwise NaN."""
    if settings.measure == "auroc":
        return common_auroc(
            [placements(groups.scores[r], groups.labels[r], groups.patients[r]) for r in groups.rows]
        )
    return _within_rate(_rate_counts(groups, settings)) if settings.measure in RATES else math.nan


def _not_estimable(base: Comparison, reason: str) -> Comparison:
    return replace(base, reason=reason)

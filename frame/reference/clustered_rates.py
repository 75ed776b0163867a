"""The calibrated reference of a rate difference, from decisions and patients.

Under exact fairness every case of every subgroup is hit with one probability c. Images of one patient
hit together more often than by chance; their correlation is pooled over subgroups, because a small
subgroup's own says next to nothing. A patient with k cases then has a beta-binomial number of hits, a
subgroup's number of hits is the sum over its patients, and the law of the largest minus smallest rate is
summed over the lattice. The variance of a subgroup's rate is that of a ratio estimator,
``c (1 - c) [1 + rho (sum k^2 / n - 1)] / n``. Without repeated images this is the binomial law.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln

from frame.reference.calibrated import NotEstimable
from frame.reference.exact_rates import Proportion, RateDifference, binomial_proportion
from frame.reference.heterogeneity import DRAWS, SEED, Heterogeneity, heterogeneity_among

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Pseudo-patients without correlation in the moment equation.
_PRIOR = 5.0
#: Correlations above this would leave a patient's cases all hit or all missed, two points.
_LARGEST_CORRELATION = 0.999
#: Probability mass below this is lost in the convolution and left out.
_SMALLEST_MASS = 1e-16
#: With fewer patients beyond one a subgroup, the correlation rests mostly on the pseudo-patients.
_FEWEST_FREEDOM = 10.0
#: Patients a subgroup needs before its own variance is compared with the pooled one.
_PATIENTS_TO_COMPARE = 31
_RULING_SHARE = 0.8


@dataclass(frozen=True)
class RateCounts:
    """Cases and hits of the patients of one subgroup.

    Attributes
    ----------
    cases : ndarray of int64, shape (patients,)
        Images of each patient in the denominator (positives for a TPR), each at least 1.
    hits : ndarray of int64, shape (patients,)
        How many of them count in the numerator.
    """

    cases: Integers
    hits: Integers

    @property
    def n(self) -> int:
        """Images in the denominator."""
        return int(self.cases.sum())

    @property
    def rate(self) -> float:
        """Observed rate, in [0, 1]."""
        return int(self.hits.sum()) / self.n

    @property
    def repeats(self) -> bool:
        """Whether any patient has more than one case."""
        return bool(self.cases.max() > 1)


def rate_counts(hits: NDArray[np.bool_], patients: Integers) -> RateCounts:
    """Count cases and hits per patient.

    Parameters
    ----------
    hits : ndarray of bool, shape (cases,)
        Whether a case counts in the numerator; one or more cases.
    patients : ndarray of int64, shape (cases,)
        Patient of each case.

    Returns
    -------
    RateCounts
    """
    _, own = np.unique(patients, return_inverse=True)
    cases = np.bincount(own).astype(np.int64)
    return RateCounts(cases, np.bincount(own[hits], minlength=len(cases)).astype(np.int64))


@dataclass(frozen=True)
class RateReference:
    """Law of the largest minus smallest subgroup rate under exact fairness.

    Attributes
    ----------
    value : float
        Common rate: all hits over all cases.
    correlation : float
        Within-patient correlation of hits, pooled over subgroups, in [0, 0.999].
    variances : ndarray of float64, shape (subgroups,)
        Sampling variance of each subgroup's rate.
    freedom : float
        Patients beyond one a subgroup.
    law : RateDifference
        Law of the difference.
    flags : tuple of str
        As for :class:`frame.reference.calibrated.CalibratedReference`.
    """

    value: float
    correlation: float
    variances: Floats
    freedom: float
    law: RateDifference
    flags: tuple[str, ...]

    @property
    def reliable(self) -> bool:
        """Whether an exceedance may be shown."""
        return not any(flag.startswith("reference unreliable") for flag in self.flags)


def clustered_reference(
    groups: Sequence[RateCounts],
    names: Sequence[str],
    *,
    images_may_repeat: bool = False,
    common: float | Sequence[float] | None = None,
) -> RateReference:
    """Calibrated reference of a rate difference.

    Parameters
    ----------
    groups : sequence of RateCounts
        Two or more subgroups.
    names : sequence of str
        Their names, for flags.
    images_may_repeat : bool
        True if no patient ids were given though patients may have several images: each image then
        counts as its own patient, and the result is flagged.
    common : float or sequence of float, optional
        True rate of all subgroups, or one of each; by default the observed common rate.

    Returns
    -------
    RateReference

    Raises
    ------
    NotEstimable
        If every case, or none, is a hit.
    """
    total = sum(g.n for g in groups)
    value = sum(int(g.hits.sum()) for g in groups) / total
    if value in (0.0, 1.0):
        raise NotEstimable("every case counts" if value == 1.0 else "no case counts")
    correlation = _correlation(groups, value)
    rates = [value] * len(groups) if common is None else np.broadcast_to(common, len(groups)).tolist()
    variances = np.asarray([_variance(g, r, correlation) for g, r in zip(groups, rates, strict=True)])
    law: RateDifference = (
        ClusteredRateDifference([g.cases for g in groups], rates, correlation)
        if correlation > 0.0
        else RateDifference([g.n for g in groups], rates)
    )
    freedom = float(sum(len(g.cases) - 1 for g in groups))
    flags = _flags(groups, names, variances, correlation, freedom, images_may_repeat)
    return RateReference(value, correlation, variances, freedom, law, tuple(flags))


def _correlation(groups: Sequence[RateCounts], value: float) -> float:
    """Within-patient correlation of hits by exact moments, after centring by each subgroup's own rate.

    With deviations d = hit - rate of a subgroup, ``E sum d^2`` and the expected sum over patients of their
    squared sums are linear in the variance s of a hit and the covariance r of two hits of a patient.
    """
    first = np.zeros(3)
    second = np.zeros(3)
    for group in groups:
        if len(group.cases) < 2:
            continue
        k = group.cases.astype(np.float64)
        n, rate = float(group.n), group.rate
        pairs, triples = float(np.sum(k**2)), float(np.sum(k**3))
        excess = pairs - n
        first += (n - 1.0, -excess / n, n * rate * (1.0 - rate))
        between = excess - 2.0 * (triples - pairs) / n + pairs * excess / n**2
        second += (n - pairs / n, between, float(np.sum((group.hits - k * rate) ** 2)))
    if first[1] == 0.0:
        return 0.0
    first += (_PRIOR, 0.0, _PRIOR * value * (1.0 - value))
    s, r = np.linalg.solve([first[:2], second[:2]], [first[2], second[2]])
    if r <= 0.0 or s <= 0.0:
        return 0.0
    return float(min(r / s, _LARGEST_CORRELATION))


def _variance(group: RateCounts, rate: float, correlation: float) -> float:
    k = group.cases.astype(np.float64)
    inflation = 1.0 + correlation * (float(np.sum(k**2)) / group.n - 1.0)
    return rate * (1.0 - rate) * inflation / group.n


def ratio_variance(group: RateCounts) -> float:
    """Variance of a subgroup's rate with patients as the units; NaN with one patient."""
    patients = len(group.cases)
    if patients < 2:
        return math.nan
    residuals = group.hits - group.cases * group.rate
    return patients / (patients - 1) * float(np.sum(residuals**2)) / group.n**2


def rate_heterogeneity(
    groups: Sequence[RateCounts], reference: RateReference, *, draws: int = DRAWS, seed: int = SEED
) -> Heterogeneity:
    """Heterogeneity of subgroup rates, drawn from the same lattice laws as the range.

    Parameters
    ----------
    groups : sequence of RateCounts
        The subgroups of the reference.
    reference : RateReference
        Their reference.
    draws, seed : int
        Simulated rates of every subgroup; generator ``numpy.random.default_rng(seed)``.

    Returns
    -------
    Heterogeneity
    """
    order = np.lexsort((np.asarray([g.n for g in groups]), -reference.variances))
    rng = np.random.default_rng(seed)
    drawn = np.empty((len(groups), draws))
    for row, index in enumerate(order.tolist()):
        group = groups[index]
        if reference.correlation > 0.0:
            law = _hits(group.n, reference.value, np.bincount(group.cases), reference.correlation)
        else:
            law = binomial_proportion(group.n, reference.value)
        chosen = np.searchsorted(np.cumsum(law.mass), rng.random(draws), side="right")
        drawn[row] = law.values.take(chosen, mode="clip")
    values = np.asarray([groups[index].rate for index in order.tolist()])
    return heterogeneity_among(values, reference.variances[order], drawn)


class ClusteredRateDifference(RateDifference):
    """Law of ``G = max - min`` of subgroup rates whose patients have beta-binomial hits.

    Parameters
    ----------
    cases : sequence of ndarray of int64
        Cases of each patient, one array per subgroup; two or more subgroups.
    rates : sequence of float
        True rate of each subgroup, in [0, 1].
    correlation : float
        Within-patient correlation, in (0, 1).

    Notes
    -----
    Masses come from a product of Fourier transforms and are exact to about 1e-15 in absolute terms, so
    that tails below 1e-13 are not resolved (unlike those of :class:`RateDifference`).
    """

    def __init__(self, cases: Sequence[Integers], rates: Sequence[float], correlation: float) -> None:
        super().__init__([int(k.sum()) for k in cases], rates)
        # Sorted in all that matters, so that the order of the subgroups changes no digit.
        kinds = sorted(
            (int(k.sum()), r, tuple(np.bincount(k).tolist())) for k, r in zip(cases, rates, strict=True)
        )
        self._hits = [_hits(n, rate, np.asarray(patients), correlation) for n, rate, patients in kinds]

    def _proportions(self, left_out: float) -> list[Proportion]:
        return self._hits


def _hits(n: int, rate: float, patients: Integers, correlation: float) -> Proportion:
    """Law of the rate of one subgroup in which ``patients[k]`` patients have k cases."""
    if rate in (0.0, 1.0):
        return Proportion(n, n if rate == 1.0 else 0, np.ones(1))
    length = 1 << n.bit_length()
    transform = np.ones(length // 2 + 1, dtype=np.complex128)
    for k in np.flatnonzero(patients).tolist():
        if k:
            one = np.fft.rfft(_beta_binomial(k, rate, correlation), length)
            transform *= _power(one, int(patients[k]))
    mass = np.fft.irfft(transform, length)[: n + 1]
    kept = np.flatnonzero(mass > _SMALLEST_MASS)
    mass = np.maximum(mass[kept[0] : kept[-1] + 1], 0.0)
    return Proportion(n, int(kept[0]), mass / math.fsum(mass.tolist()))


def _power(base: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """Whole power by repeated squaring, many times quicker than numpy's complex power."""
    result = base if exponent & 1 else np.ones_like(base)
    while exponent := exponent >> 1:
        base = base * base
        if exponent & 1:
            result = result * base
    return result


def _beta_binomial(k: int, rate: float, correlation: float) -> Floats:
    """Masses of the number of hits among k cases of one patient."""
    if k == 1:
        return np.asarray([1.0 - rate, rate])
    total = (1.0 - correlation) / correlation
    a, b = rate * total, (1.0 - rate) * total
    hits = np.arange(k + 1)
    choose = gammaln(k + 1) - gammaln(hits + 1) - gammaln(k - hits + 1)
    mass = np.exp(choose + betaln(hits + a, k - hits + b) - betaln(a, b))
    return np.asarray(mass / mass.sum(), dtype=np.float64)


def _flags(
    groups: Sequence[RateCounts],
    names: Sequence[str],
    variances: Floats,
    correlation: float,
    freedom: float,
    images_may_repeat: bool,
) -> list[str]:
    """What has to be said beside the result."""
    flags: list[str] = []
    repeats = any(g.repeats for g in groups)
    if repeats and freedom < _FEWEST_FREEDOM:
        flags.append(f"reference unreliable: {freedom:.0f} pooled degrees of freedom, fewer than 10")
    if images_may_repeat:
        flags.append("reference unreliable: images repeat but no patient id was given")
    share = variances / variances.sum() if variances.sum() > 0.0 else np.zeros(len(variances))
    ruling = int(np.argmax(share))
    if share[ruling] > _RULING_SHARE:
        flags.append(f"range ruled by group '{names[ruling]}': p speaks of it alone; see the heterogeneity")
    for group, name in zip(groups, names, strict=True):
        # At its own rate, so that only the agreement within patients is compared.
        expected = _variance(group, group.rate, correlation)
        if repeats and len(group.cases) >= _PATIENTS_TO_COMPARE and expected > 0.0:
            ratio = ratio_variance(group) / expected
            if not 0.5 <= ratio <= 2.0:
                flags.append(
                    f"check the patient structure: the variance of group '{name}' is {ratio:.1f} times pooled"
                )
    return flags

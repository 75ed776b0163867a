"""Step one for one unit: the distribution of a difference if the model were exactly fair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from numbers import Integral

from frame.errors import InputError
from frame.reference.exact import DifferenceLaw, difference_law
from frame.reference.inputs import KAPPA_RANGE, PROTOCOLS, Counts, check_choice, check_counts, check_number
from frame.reference.simulated import SimulatedDifference


@dataclass(frozen=True, eq=False)
class FairReference:
    """Distribution of a max-min difference under exact fairness at given counts.

    Made by :func:`frame.fair_reference`. All values are on the 0-1 scale.

    Attributes
    ----------
    value : float
        Common true value of every subgroup.
    measure, method, protocol : str
        What the reference is for and how it was computed.
    n_groups : int
        Number of subgroups.
    """

    value: float
    measure: str
    method: str
    protocol: str
    n_groups: int
    _law: DifferenceLaw | SimulatedDifference = field(repr=False, compare=False)

    @property
    def mean(self) -> float:
        """The reference: expected difference of an exactly fair model."""
        return self._law.mean

    @property
    def sd(self) -> float:
        """Standard deviation of the difference of an exactly fair model."""
        return self._law.sd

    @cached_property
    def interval(self) -> tuple[float, float]:
        """2.5 % and 97.5 % quantiles."""
        return self.quantile(0.025), self.quantile(0.975)

    def quantile(self, q: float) -> float:
        """Quantile of the difference.

        Parameters
        ----------
        q : float
            Level, strictly between 0 and 1.

        Returns
        -------
        float
            ``exact``: the smallest attainable difference d with P(G <= d) >= q. ``paper``: numpy's
            linear percentile of the draws.
        """
        return self._law.quantile(check_number("q", q, 0.0, 1.0, above=True, below=True))

    def exceedance(self, delta: float | Fraction, tolerance: float = 1e-9) -> float:
        """Probability that an exactly fair model shows a difference of at least ``delta``.

        Parameters
        ----------
        delta : float or fractions.Fraction
            Reported difference. A float stands for a printed value: lattice values of a rate within
            ``tolerance`` below it count as equal. A Fraction is compared exactly.
        tolerance : float
            Absolute, for printed values.

        Returns
        -------
        float
            P(G >= delta) for ``exact``, ``(1 + #)/(B + 1)`` for ``paper``. One-sided: only larger
            differences count.
        """
        if not isinstance(delta, Fraction):
            delta = check_number("delta", delta, -math.inf, math.inf, above=True, below=True)
        return self._law.exceedance(delta, check_number("tolerance", tolerance, 0.0, 1.0))


def reference_from_counts(
    counts: Counts, *, protocol: str, draws: int = 2000, seed: int = 0, kappa: float = 1.25
) -> FairReference:
    """Make a reference at counts that have been checked already."""
    simulated = protocol == "paper"
    return FairReference(
        value=counts.value,
        measure=counts.measure,
        method=counts.method,
        protocol=protocol,
        n_groups=counts.n_subgroups,
        _law=SimulatedDifference(counts, draws, seed) if simulated else difference_law(counts, kappa),
    )


def fair_reference(
    value: float,
    n_positive: Sequence[int] | None,
    n_negative: Sequence[int] | None,
    measure: str = "auroc",
    *,
    method: str = "auto",
    protocol: str = "exact",
    draws: int = 2000,
    seed: int = 0,
    kappa: float = 1.25,
    design_effect: float = 1.0,
) -> FairReference:
    """Distribution of a max-min subgroup difference if every subgroup had the same true value.

    Parameters
    ----------
    value : float
        Common true value A, in [0, 1]: the overall AUROC or rate.
    n_positive, n_negative : sequence of int
        One count per subgroup, at least 1. A ``tpr`` uses only the positives and an ``fpr`` only the
        negatives; the other may be None.
    measure : {"auroc", "tpr", "fpr"}
        The measure whose largest minus smallest subgroup value was reported.
    method : {"auto", "hanley-mcneil", "binormal", "binomial"}
        Law of one subgroup's value. ``auto`` is ``hanley-mcneil`` (clipped normal) for AUROC, as in
        the paper, and ``binomial`` for rates. ``binormal`` is a Beta law with the exact variance of
        binormal scores.
    protocol : {"exact", "paper"}
        ``exact`` sums or integrates the law; ``paper`` simulates it with the legacy generator
        restarted at ``seed``.
    draws, seed : int
        Of the paper's protocol; unused by ``exact``.
    kappa : float
        Standard deviation of the positives' scores over that of the negatives', from 0.01 to 100, for
        ``binormal``.
        ``protocol="paper"`` ranks equal-variance draws, so it ignores this.
    design_effect : float
        What-if for repeated images of one patient, at least 1: AUROC counts are divided by it, a
        rate's denominators divided and rounded down (never below 1). The ranked draws of ``binormal``
        under ``paper`` need whole cases, so there AUROC counts are rounded down too.

    Returns
    -------
    FairReference

    Raises
    ------
    InputError
        One sentence naming the argument, what was found and what is allowed.

    Examples
    --------
    >>> import frame
    >>> reference = frame.fair_reference(0.8, [100, 60], None, "tpr")
    >>> round(reference.mean, 3), round(reference.exceedance(0.2), 4)
    (0.052, 0.0024)
    """
    check_choice("protocol", protocol, PROTOCOLS)
    counts = check_counts(value, n_positive, n_negative, measure, method, design_effect)
    check_number("kappa", kappa, *KAPPA_RANGE)
    return reference_from_counts(
        counts,
        protocol=protocol,
        draws=_check_whole("draws", draws, 1, 10**7),
        seed=_check_whole("seed", seed, 0, 2**32 - 1),
        kappa=float(kappa),
    )


def _check_whole(name: str, given: object, smallest: int, largest: int) -> int:
    if isinstance(given, bool) or not isinstance(given, Integral) or not smallest <= int(given) <= largest:
        raise InputError(f"{name} is {given!r}; it must be a whole number from {smallest} to {largest:,}.")
    return int(given)

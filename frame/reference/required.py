"""How many cases a comparison needs before a difference of a given size is likely to be found."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral

from frame.errors import InputError
from frame.reference.exact import difference_law
from frame.reference.inputs import KAPPA_RANGE, Counts, check_counts, check_number
from frame.reference.planning import detectable_at

#: No count of a class in a subgroup is tried beyond this.
LARGEST_NEEDED = 1_000_000
#: Points at which the counts that follow an answer are checked.
_CHECKS = 64


@dataclass(frozen=True)
class RequiredCounts:
    """Smallest counts at which a difference is found with the wanted power.

    Attributes
    ----------
    difference : float
        The difference asked for.
    n_positive, n_negative : tuple of int
        Needed cases, one entry per subgroup, before division by a design effect; empty for a class the
        measure does not use, and both empty when no count was found.
    smallest : int
        Size of the smallest class among the subgroups that grow, in steps of which was searched; 0 when
        no count was found.
    factor : float
        Needed over given cases of that class; NaN when no count was found.
    detectable : float
        Smallest detectable difference at the needed counts; when no count was found, at the largest
        counts tried.
    detectable_one_less : float
        The same with one case less in the smallest class: larger than ``difference``. NaN when no
        difference is detectable there, or no smaller count exists.
    reason : str
        Why no count was found; otherwise empty.
    """

    difference: float
    n_positive: tuple[int, ...]
    n_negative: tuple[int, ...]
    smallest: int
    factor: float
    detectable: float
    detectable_one_less: float
    reason: str = ""

    @property
    def status(self) -> str:
        """``ok`` or ``not estimable``."""
        return "not estimable" if self.reason else "ok"


def required_counts(
    value: float,
    difference: float,
    n_positive: Sequence[int] | None,
    n_negative: Sequence[int] | None,
    measure: str = "auroc",
    *,
    grow: int | None = None,
    method: str = "auto",
    power: float = 0.8,
    alpha: float = 0.05,
    kappa: float = 1.25,
    design_effect: float = 1.0,
) -> RequiredCounts:
    """Smallest counts at which a difference would be found with the given power.

    The difference is found in the sense of :func:`frame.detectable_difference`: whichever subgroup is
    the different one, the observed difference reaches the level-``alpha`` critical value of the
    fair-model reference with probability ``power``. Counts are searched in steps of one case of the
    smallest class that grows; the other counts that grow follow in proportion, rounded up.

    Parameters
    ----------
    value : float
        Common true value of the other subgroups, in [0, 1].
    difference : float
        Difference to be found, above 0 and at most what is possible: one subgroup at
        ``value - difference``, or at ``value + difference`` where the first would be negative.
    n_positive, n_negative : sequence of int
        Cases at hand or planned, one entry per subgroup. They fix the proportions, and the counts of
        subgroups that do not grow. A rate needs only its own class; the other may be None.
    measure, method, kappa, design_effect
        As in :func:`frame.fair_reference`; the exact protocol is used.
    grow : int, optional
        Position of the one subgroup that grows while the others stay as they are. By default all
        grow and keep their proportions.
    power, alpha : float
        Strictly between 0 and 1. ``alpha`` is not corrected for multiple tests.

    Returns
    -------
    RequiredCounts
        Fewer cases than given where these already suffice. For a rate the power is a saw-tooth of the
        counts, because rates move in steps: the answer is the count from which on the power is
        reached, checked over the next whole tooth at up to 64 counts.

    Raises
    ------
    InputError
        One sentence naming the argument, what was found and what is allowed.

    Examples
    --------
    >>> found = required_counts(0.8, 0.1, [50, 25], None, "tpr")
    >>> found.n_positive
    (416, 208)
    """
    given = check_counts(value, n_positive, n_negative, measure, method, design_effect)
    check_number("power", power, 0.0, 1.0, above=True, below=True)
    check_number("alpha", alpha, 0.0, 1.0, above=True, below=True)
    check_number("kappa", kappa, *KAPPA_RANGE)
    check_difference(difference, given.value)
    scaling = GrowingCounts.of(n_positive, n_negative, measure, grow)

    def counts(smallest: int) -> Counts:
        n_plus, n_minus = scaling.at(smallest)
        return check_counts(value, n_plus, n_minus, measure, method, design_effect)

    def reaches(smallest: int) -> bool:
        powers = powers_at(counts(smallest), difference, alpha=alpha, kappa=kappa)
        return powers is not None and min(powers) >= power

    def detectable(smallest: int) -> float:
        return detectable_at(counts(smallest), power=power, alpha=alpha, kappa=kappa)

    largest = scaling.largest
    found = _first_reaching(reaches, min(scaling.start, largest), largest)
    if found is not None and given.method == "binomial":
        found = _past_the_teeth(reaches, found, largest, lambda n: _tooth(counts(n), n, alpha, kappa))
    if found is None:
        reason = f"no counts up to {LARGEST_NEEDED:,} cases of a class in a subgroup reach the power"
        if grow is not None:
            reason += "; the subgroups that do not grow may be what limits it"
        return RequiredCounts(difference, (), (), 0, math.nan, detectable(largest), math.nan, reason)
    n_plus, n_minus = scaling.at(found)
    return RequiredCounts(
        difference=difference,
        n_positive=n_plus,
        n_negative=n_minus,
        smallest=found,
        factor=found / scaling.start,
        detectable=detectable(found),
        detectable_one_less=detectable(found - 1) if found > 1 else math.nan,
    )


def powers_at(counts: Counts, difference: float, *, alpha: float, kappa: float) -> tuple[float, ...] | None:
    """Power to find a difference, for every choice of the subgroup that is the different one.

    Parameters
    ----------
    counts : Counts
        Checked counts.
    difference : float
        True difference: one subgroup at ``value - difference``, or at ``value + difference`` where the
        first would be negative, the others at ``value``.
    alpha, kappa : float
        As in :func:`frame.detectable_difference`.

    Returns
    -------
    tuple of float or None
        One probability per subgroup; None when no observed difference is rare enough under fairness
        to be called at this level.
    """
    critical = difference_law(counts, kappa).critical_value(alpha)
    if critical is None:
        return None
    moved = counts.value - difference if counts.value >= difference else min(1.0, counts.value + difference)
    known: dict[tuple[float, ...], float] = {}
    powers = []
    for chosen in range(counts.n_subgroups):
        # Subgroups with the same counts have the same power.
        own = tuple(side[chosen] for side in (counts.n_positive, counts.n_negative) if side)
        if own not in known:
            values = [moved if i == chosen else counts.value for i in range(counts.n_subgroups)]
            law = difference_law(counts, kappa, values)
            known[own] = law.exceedance(critical, min(1e-9, 0.25 * critical))
        powers.append(known[own])
    return tuple(powers)


def repeated_image_effect(images_per_patient: float, within_patient_correlation: float) -> float:
    """Design effect of repeated images: ``1 + (m - 1) * correlation``.

    Parameters
    ----------
    images_per_patient : float
        At least 1. Where it differs between patients, its mean over images (the sum of squares over
        the sum) and not over patients.
    within_patient_correlation : float
        In [0, 1]: correlation of what two images of one patient contribute to the measure. For a rate
        it is that of being classified correctly; for AUROC that of the placements.

    Returns
    -------
    float
        Number by which counts of images are to be divided.

    Raises
    ------
    InputError
        If a value lies outside its range.

    References
    ----------
    Kish L. Survey sampling. Wiley, 1965.
    """
    m = check_number("images_per_patient", images_per_patient, 1.0, math.inf, below=True)
    correlation = check_number("within_patient_correlation", within_patient_correlation, 0.0, 1.0)
    return 1.0 + (m - 1.0) * correlation


def check_difference(difference: object, value: float, name: str = "difference") -> float:
    """Return a difference that one subgroup can have from the common value; otherwise an InputError."""
    possible = max(value, 1.0 - value)
    wanted = check_number(name, difference, 0.0, 1.0, above=True)
    if wanted > possible + 1e-12:
        raise InputError(
            f"{name} is {wanted:g}, but from a common value of {value:g} a subgroup can differ by "
            f"{possible:g} at most; give a smaller one."
        )
    return wanted


@dataclass(frozen=True)
class GrowingCounts:
    """Counts as a function of the size of the smallest class that grows.

    Attributes
    ----------
    positives, negatives : tuple of int
        Given cases, one entry per subgroup; empty for a class the measure does not use.
    growing : tuple of int
        Positions of the subgroups that grow; the others keep their counts.
    """

    positives: tuple[int, ...]
    negatives: tuple[int, ...]
    growing: tuple[int, ...]

    @staticmethod
    def of(
        n_positive: Sequence[int] | None, n_negative: Sequence[int] | None, measure: str, grow: object = None
    ) -> GrowingCounts:
        """Make them from counts that :func:`frame.reference.inputs.check_counts` has let pass."""
        positives = () if measure == "fpr" or n_positive is None else tuple(int(n) for n in n_positive)
        negatives = () if measure == "tpr" or n_negative is None else tuple(int(n) for n in n_negative)
        return GrowingCounts(positives, negatives, _growing(grow, max(len(positives), len(negatives))))

    @property
    def smallest(self) -> tuple[str, int]:
        """Class (``positives`` or ``negatives``) and position of the smallest class that grows."""
        sides = {"positives": self.positives, "negatives": self.negatives}
        return min(
            ((name, i) for name, side in sides.items() if side for i in self.growing),
            key=lambda place: sides[place[0]][place[1]],
        )

    @property
    def start(self) -> int:
        """Given size of the smallest class that grows."""
        name, i = self.smallest
        return (self.positives if name == "positives" else self.negatives)[i]

    @property
    def largest(self) -> int:
        """Size of the smallest class at which the largest that grows has LARGEST_NEEDED cases."""
        widest = max(side[i] for side in (self.positives, self.negatives) if side for i in self.growing)
        return max(1, LARGEST_NEEDED * self.start // widest)

    def at(self, smallest: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Positives and negatives when the smallest class has so many cases, rounded up."""

        def scaled(side: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(
                -(-n * smallest // self.start) if i in self.growing else n for i, n in enumerate(side)
            )

        return scaled(self.positives), scaled(self.negatives)


def _growing(grow: object, n_subgroups: int) -> tuple[int, ...]:
    if grow is None:
        return tuple(range(n_subgroups))
    position = -1 if isinstance(grow, bool) or not isinstance(grow, Integral) else int(grow)
    if not 0 <= position < n_subgroups:
        raise InputError(
            f"grow is {grow!r}; give the position of one subgroup, 0 to {n_subgroups - 1}, or None for all."
        )
    return (position,)


def _first_reaching(reaches: Callable[[int], bool], start: int, largest: int) -> int | None:
    """A size that reaches the power while the one below does not (or is zero)."""
    low, high = 0, start
    if reaches(start):
        while high > 1:
            middle = high // 2
            if not reaches(middle):
                low = middle
                break
            high = middle
    else:
        low = start
        while True:
            if low == largest:
                return None
            high = min(2 * low, largest)
            if reaches(high):
                break
            low = high
    return _bisected(reaches, low, high)


def _bisected(reaches: Callable[[int], bool], low: int, high: int) -> int:
    """Between a size that does not reach the power (or zero) and one that does."""
    while high - low > 1:
        middle = (low + high) // 2
        if reaches(middle):
            high = middle
        else:
            low = middle
    return high


def _tooth(counts: Counts, smallest: int, alpha: float, kappa: float) -> int:
    """How many sizes later the critical value of a rate has moved on by a whole step."""
    critical = difference_law(counts, kappa).critical_value(alpha)
    # The critical number of cases grows with the root of the size; one more takes 2 size / number.
    steps = max(1.0, (critical or 0.0) * min(counts.denominators))
    return math.ceil(2.2 * smallest / steps) + 1


def _past_the_teeth(
    reaches: Callable[[int], bool], found: int, largest: int, tooth: Callable[[int], int]
) -> int | None:
    """First size from which on the power is reached over a whole tooth; None when that passes the largest."""
    while True:
        width = tooth(found)
        stride = max(1, width // _CHECKS)
        failed = None
        for size in range(found + stride, min(found + width, largest) + 1, stride):
            if not reaches(size):
                failed = size
            elif failed is not None:
                break
        if failed is None:
            return found
        above = min(failed + stride, largest)
        while not reaches(above):
            if above == largest:
                return None
            failed, above = above, min(above + stride, largest)
        found = _bisected(reaches, failed, above)

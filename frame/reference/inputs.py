"""Checks of what a reference needs: the common value, the counts, the measure, the method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

from frame.errors import InputError

#: Measure -> the counts its subgroup values are computed on.
MEASURES = {"auroc": "positives and negatives", "tpr": "positives", "fpr": "negatives"}
#: Measure -> methods it allows; the first is what ``method="auto"`` means for published counts.
METHODS = {
    "auroc": ("hanley-mcneil", "binormal"),
    "tpr": ("binomial",),
    "fpr": ("binomial",),
}
PROTOCOLS = ("exact", "paper")
#: Counts beyond this would leave the range of whole numbers that the lattice is computed in.
LARGEST_COUNT = 10**9
#: Ratios of score deviations that the variance formula is asked for.
KAPPA_RANGE = (0.01, 100.0)


@dataclass(frozen=True)
class Counts:
    """Checked counts of one audit, after division by a design effect.

    Attributes
    ----------
    measure, method : str
        A measure and the method chosen for it (never ``auto``).
    value : float
        Common true value, in [0, 1].
    n_positive, n_negative : tuple of float
        One entry per subgroup; AUROC counts may be fractions after a design effect. Empty for a
        count the measure does not use.
    """

    measure: str
    method: str
    value: float
    n_positive: tuple[float, ...]
    n_negative: tuple[float, ...]

    @property
    def n_subgroups(self) -> int:
        """Number of subgroups."""
        return max(len(self.n_positive), len(self.n_negative))

    @property
    def denominators(self) -> tuple[int, ...]:
        """Denominators of a rate, one per subgroup."""
        return tuple(int(n) for n in (self.n_positive if self.measure == "tpr" else self.n_negative))


def check_choice(name: str, given: object, allowed: Sequence[str]) -> str:
    """Return ``given`` if it is one of ``allowed``; otherwise an InputError that lists them."""
    if isinstance(given, str) and given in allowed:
        return given
    listed = ", ".join(repr(a) for a in allowed)
    raise InputError(f"{name} is {given!r}; allowed are {listed}.")


def check_method(measure: str, method: str) -> str:
    """Resolve ``auto`` and refuse a method that the measure does not have."""
    check_choice("measure", measure, tuple(MEASURES))
    every_method = sorted({m for methods in METHODS.values() for m in methods})
    check_choice("method", method, ("auto", *every_method))
    if method == "auto":
        return METHODS[measure][0]
    if method not in METHODS[measure]:
        listed = ", ".join(repr(m) for m in METHODS[measure])
        raise InputError(
            f"method {method!r} does not fit measure {measure!r}; for it allowed are 'auto', {listed}."
        )
    return method


def check_number(
    name: str,
    given: object,
    low: float,
    high: float,
    *,
    above: bool = False,
    below: bool = False,
) -> float:
    """Return ``given`` as a float inside [low, high]; ``above``/``below`` exclude the end."""
    if isinstance(given, bool) or not isinstance(given, Real):
        raise InputError(f"{name} is {given!r}; it must be a number.")
    try:
        number = float(given)
    except OverflowError:
        raise InputError(f"{name} is larger than any number that can be computed with.") from None
    inside = (low < number if above else low <= number) and (number < high if below else number <= high)
    if not inside:
        if high == math.inf:
            allowed = f"larger than {low:g}" if above else f"{low:g} or more"
        else:
            allowed = f"between {low:g} and {high:g}"
            if above and below:
                allowed += ", both excluded"
        hint = ""
        if high == 1.0 and 1.0 < number <= 100.0:
            hint = f" If it is a percentage, divide it by 100: {number / 100:g}."
        raise InputError(f"{name} is {number:g}; it must be {allowed}.{hint}")
    return number


def check_count(name: str, given: object) -> int:
    """Return a count of at least 1 as an int; fractions, negatives and blanks are errors."""
    allowed = "it must be a whole number of cases, 1 or more"
    if (
        isinstance(given, bool)
        or not isinstance(given, Real)
        or given != given
        or given in (math.inf, -math.inf)
    ):
        raise InputError(f"{name} is {given!r}; {allowed}.")
    try:
        number = float(given)
    except OverflowError:
        raise InputError(f"{name} is larger than any count; {allowed}.") from None
    if not number.is_integer():
        raise InputError(f"{name} is {number:g}, a fraction; {allowed}.")
    count = int(number)
    if not 1 <= count <= LARGEST_COUNT:
        limit = "" if count < 1 else f" and at most {LARGEST_COUNT:,}"
        raise InputError(f"{name} is {count}; {allowed}{limit}.")
    return count


def _check_counts(name: str, given: object) -> tuple[int, ...]:
    if given is None:
        raise InputError(f"{name} is missing; give one count per subgroup.")
    unordered = isinstance(given, (str, bytes, bytearray, set, frozenset, dict))
    if (
        unordered
        or not hasattr(given, "__iter__")
        or not hasattr(given, "__len__")
        or getattr(given, "ndim", 1) != 1
    ):
        raise InputError(f"{name} is {given!r}; give a list with one count per subgroup.")
    counts = tuple(check_count(f"{name}[{i}]", entry) for i, entry in enumerate(given))
    if len(counts) < 2:
        raise InputError(f"{name} has {len(counts)} subgroup(s); a difference needs at least two.")
    return counts


def check_counts(
    value: object,
    n_positive: object,
    n_negative: object,
    measure: str,
    method: str,
    design_effect: float = 1.0,
) -> Counts:
    """Check the arguments shared by every function on counts.

    Parameters
    ----------
    value : float
        Common true value, in [0, 1].
    n_positive, n_negative : sequence of int
        One count per subgroup. ``tpr`` uses only the positives and ``fpr`` only the negatives; the
        other may be None.
    measure, method : str
        See :data:`MEASURES` and :data:`METHODS`; ``method`` may be ``auto``.
    design_effect : float
        At least 1. AUROC counts are divided by it (not below 1); a rate's denominator is divided and
        rounded down, not below 1.

    Returns
    -------
    Counts

    Raises
    ------
    InputError
        One sentence naming the argument, what was found and what is allowed.
    """
    chosen = check_method(measure, method)
    common = check_number("value", value, 0.0, 1.0)
    effect = check_number("design_effect", design_effect, 1.0, math.inf, below=True)
    positives = () if measure == "fpr" else _check_counts("n_positive", n_positive)
    negatives = () if measure == "tpr" else _check_counts("n_negative", n_negative)
    if measure == "auroc" and len(positives) != len(negatives):
        raise InputError(
            f"n_positive has {len(positives)} subgroups and n_negative has {len(negatives)}; "
            "give one count of each per subgroup."
        )

    def effective(count: int) -> float:
        divided = count / effect
        return max(1.0, divided if measure == "auroc" else float(math.floor(divided + 1e-9)))

    return Counts(
        measure=measure,
        method=chosen,
        value=common,
        n_positive=tuple(effective(n) for n in positives),
        n_negative=tuple(effective(n) for n in negatives),
    )

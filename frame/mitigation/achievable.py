"""The achievable difference: the smallest one that a set of methods reaches without losing disease AUROC.

The paper chooses the method on the test images that it then judges (its Eq. 6), so what it reports is a
minimum over noise as well. Beside it stands the same choice made on validation images and judged on test.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, Literal

from frame.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "CHOICES",
    "TOLERANCE",
    "UNMITIGATED",
    "Achievable",
    "Candidate",
    "Exclusion",
    "achievable_both_ways",
    "achievable_difference",
    "candidates_of",
]

#: Name of the head that is not mitigated, in every table.
UNMITIGATED: Final = "unmitigated"
#: Loss of disease AUROC that is allowed (Eq. 6).
TOLERANCE: Final = 0.010
#: Where a method is chosen: as in the paper, and as one has to where the test images decide.
CHOICES: Final = ("test", "validation")
#: Values closer than this are the same: rounding of the arithmetic neither wins nor excludes.
_SAME = 1e-12
_OK = "ok"


@dataclass(frozen=True)
class Candidate:
    """What one method reaches, as points.

    Attributes
    ----------
    method : str
        ``unmitigated`` for the head itself.
    test_difference, test_auroc : float
        Difference between subgroups and disease AUROC on test; NaN where not estimable.
    validation_difference, validation_auroc : float
        The same on validation; NaN where they are not known.
    status : str
        ``ok``; anything else (``not fitted``, ``degenerate``, ``not estimable``) never wins.
    reason : str
        Why the status is not ``ok``.
    """

    method: str
    test_difference: float
    test_auroc: float
    validation_difference: float = math.nan
    validation_auroc: float = math.nan
    status: str = _OK
    reason: str = ""

    def on(self, split: str) -> tuple[float, float]:
        """Difference and disease AUROC on ``test`` or ``validation``."""
        if split == "test":
            return self.test_difference, self.test_auroc
        return self.validation_difference, self.validation_auroc


@dataclass(frozen=True)
class Exclusion:
    """A method that could not be chosen, and why, as a sentence without a full stop."""

    method: str
    reason: str


@dataclass(frozen=True)
class Achievable:
    """The smallest difference within the allowed loss of disease AUROC.

    Attributes
    ----------
    chosen_on : {"test", "validation"}
        Where the method was chosen; the numbers below are on test either way.
    method : str
        The chosen one, ``unmitigated`` where nothing does better; empty where there is none.
    difference, auroc : float
        Of the chosen method, on test.
    chosen_difference, chosen_auroc : float
        Of the chosen method, where it was chosen.
    unmitigated_difference, unmitigated_auroc : float
        Of the head that is not mitigated, on test.
    tolerance : float
        Loss of disease AUROC that was allowed where the method was chosen.
    candidates : tuple of str
        Methods among which it was chosen, in the given order.
    excluded : tuple of Exclusion
        The others.
    status, reason : str
        ``ok``, or ``not estimable`` and why.
    """

    chosen_on: Literal["test", "validation"]
    method: str
    difference: float
    auroc: float
    chosen_difference: float
    chosen_auroc: float
    unmitigated_difference: float
    unmitigated_auroc: float
    tolerance: float
    candidates: tuple[str, ...]
    excluded: tuple[Exclusion, ...]
    status: str = _OK
    reason: str = ""

    @property
    def reduction(self) -> float:
        """Unmitigated minus achievable difference on test: at least 0 where test chose, else of any sign."""
        return self.unmitigated_difference - self.difference

    @property
    def share(self) -> float:
        """Achievable difference in percent of the unmitigated one; NaN where that is 0."""
        whole = self.unmitigated_difference
        return 100.0 * self.difference / whole if whole > _SAME else math.nan


def achievable_difference(
    candidates: Sequence[Candidate], *, chosen_on: str = "test", tolerance: float = TOLERANCE
) -> Achievable:
    """Choose the method with the smallest difference whose disease AUROC is not lower by more than allowed.

    Parameters
    ----------
    candidates : sequence of Candidate
        The head that is not mitigated, named ``unmitigated``, and any number of methods.
    chosen_on : {"test", "validation"}
        ``test``: chosen and judged on test, as in the paper. ``validation``: chosen on validation, judged on
        test.
    tolerance : float
        Allowed loss of disease AUROC, at least 0; a method that gains is always allowed.

    Returns
    -------
    Achievable
        Equal differences go to the unmitigated head first, then to the order given.

    Raises
    ------
    InputError
        If a method stands there twice, ``unmitigated`` is not there, or an argument is not allowed.

    References
    ----------
    Equation 6 of the paper.
    """
    if chosen_on not in CHOICES:
        raise InputError(f"chosen_on is {chosen_on!r}; allowed are 'test' and 'validation'.")
    _check_tolerance(tolerance)
    names = [c.method for c in candidates]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"method '{twice}' stands there {names.count(twice)} times; give each once.")
    if UNMITIGATED not in names:
        raise InputError(
            f"there is no candidate '{UNMITIGATED}'; the head that is not mitigated is always one of them."
        )
    start = candidates[names.index(UNMITIGATED)]
    floor = start.on(chosen_on)[1] - float(tolerance)
    allowed: list[Candidate] = []
    excluded: list[Exclusion] = []
    for one in candidates:
        why = _why_not(one, chosen_on, floor, float(tolerance))
        if why:
            excluded.append(Exclusion(one.method, why))
        else:
            allowed.append(one)
    if start not in allowed:
        why = next(e.reason for e in excluded if e.method == UNMITIGATED)
        return _of(None, start, chosen_on, tolerance, (), tuple(excluded), f"the unmitigated head: {why}")
    smallest = min(one.on(chosen_on)[0] for one in allowed)
    first = [start, *(one for one in allowed if one is not start)]
    chosen = next(one for one in first if one.on(chosen_on)[0] <= smallest + _SAME)
    return _of(chosen, start, chosen_on, tolerance, tuple(c.method for c in allowed), tuple(excluded), "")


def achievable_both_ways(
    candidates: Sequence[Candidate], *, tolerance: float = TOLERANCE
) -> tuple[Achievable, Achievable]:
    """The achievable difference chosen on test (the paper's) and chosen on validation (ours).

    Parameters
    ----------
    candidates, tolerance
        As in :func:`achievable_difference`.

    Returns
    -------
    tuple of Achievable
        Both judged on test, so that they can stand side by side.

    Raises
    ------
    InputError
        As :func:`achievable_difference`.
    """
    return (
        achievable_difference(candidates, chosen_on="test", tolerance=tolerance),
        achievable_difference(candidates, chosen_on="validation", tolerance=tolerance),
    )


def candidates_of(table: pd.DataFrame | Sequence[Mapping[str, Any]]) -> list[Candidate]:
    """Candidates from a table with one row per method.

    Parameters
    ----------
    table : DataFrame or sequence of mapping
        With ``method, test_difference, test_auroc`` and, where they are known, ``validation_difference,
        validation_auroc, status, reason``; other columns do not matter.

    Returns
    -------
    list of Candidate

    Raises
    ------
    InputError
        If a column that is needed is missing.
    """
    rows: Sequence[Mapping[Any, Any]] = table if isinstance(table, Sequence) else table.to_dict("records")
    found = []
    for row in rows:
        absent = [name for name in ("method", "test_difference", "test_auroc") if name not in row]
        if absent:
            raise InputError(f"the table of methods has no column '{absent[0]}'.")
        numbers = {
            name: float(row.get(name, math.nan))
            for name in ("test_difference", "test_auroc", "validation_difference", "validation_auroc")
        }
        status, reason = str(row.get("status") or _OK), str(row.get("reason") or "")
        found.append(Candidate(str(row["method"]), **numbers, status=status, reason=reason))
    return found


def _check_tolerance(given: Any) -> None:
    if isinstance(given, bool) or not isinstance(given, Real) or not 0.0 <= float(given) <= 1.0:
        raise InputError(f"tolerance is {given!r}; it must be a number from 0 to 1.")


def _why_not(one: Candidate, chosen_on: str, floor: float, tolerance: float) -> str:
    """Why a method cannot be chosen; empty where it can."""
    if one.status != _OK:
        return f"{one.status}: {one.reason}" if one.reason else one.status
    # Judged on test in either case, so it must be estimable there too.
    for split in dict.fromkeys((chosen_on, "test")):
        difference, auroc = one.on(split)
        if math.isnan(difference):
            return f"no difference can be estimated on {split}"
        if math.isnan(auroc):
            return f"no disease AUROC can be estimated on {split}"
    auroc = one.on(chosen_on)[1]
    if auroc < floor - _SAME:
        lost = floor + tolerance - auroc
        return f"disease AUROC on {chosen_on} is {lost:.3f} lower, more than {tolerance:.3f}"
    return ""


def _of(
    chosen: Candidate | None,
    start: Candidate,
    chosen_on: str,
    tolerance: float,
    candidates: tuple[str, ...],
    excluded: tuple[Exclusion, ...],
    reason: str,
) -> Achievable:
    nowhere = (math.nan, math.nan)
    difference, auroc = chosen.on("test") if chosen else nowhere
    at_choice = chosen.on(chosen_on) if chosen else nowhere
    return Achievable(
        chosen_on="test" if chosen_on == "test" else "validation",
        method=chosen.method if chosen else "",
        difference=difference,
        auroc=auroc,
        chosen_difference=at_choice[0],
        chosen_auroc=at_choice[1],
        unmitigated_difference=start.test_difference,
        unmitigated_auroc=start.test_auroc,
        tolerance=float(tolerance),
        candidates=candidates,
        excluded=excluded,
        status="not estimable" if reason else _OK,
        reason=reason,
    )

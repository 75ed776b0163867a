"""Run the operators of step two over their strengths, one finished step after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from numbers import Real
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from frame.errors import InputError
from frame.interventions.disease_subspace import (
    ENTANGLEMENT_STRENGTHS,
    DiseaseSubspace,
    disease_subspace,
    largest_dimension,
)
from frame.interventions.finished_strengths import FinishedStrengths
from frame.interventions.injected_features import injected_in_memory
from frame.interventions.operators import (
    DECODABILITY_STRENGTHS,
    decodability_operator,
    entanglement_operator,
    random_direction,
)
from frame.interventions.strength_tables import Curve, Point
from frame.interventions.strengths import Measured, Measuring, Refitted, Step, measured, refitted
from frame.interventions.whitened_directions import WHITENED_STRENGTHS, whitened_entanglement_operator

if TYPE_CHECKING:
    from frame.interventions.mechanism_rows import MechanismRows
    from frame.interventions.operators import DecodabilityOperator, Operator

__all__ = ["DECODABILITY", "ENTANGLEMENT", "WHITENED", "GridRun", "Grids", "check_grid", "run_grids"]

DECODABILITY: Final = DECODABILITY_STRENGTHS
ENTANGLEMENT: Final = ENTANGLEMENT_STRENGTHS
WHITENED: Final = WHITENED_STRENGTHS
#: Decodability saturates where the smallest strength shows this share of the rise at the largest.
SATURATED: Final = 0.9
#: A smaller rise than this is none, and nothing is added for it.
LEAST_RISE: Final = 0.01
#: Strengths that are added at most, each half of the one before.
MOST_ADDED: Final = 4
#: Directions with seeds of their own, for any seed of a run.
_SEEDS: Final = 1000

#: Ends the note of a run that went on where another was ended.
RESUMED: Final = "finished steps of an earlier run were read and not computed again"


@dataclass(frozen=True)
class Grids:
    """Strengths that are asked for, each grid rising from 0; ``whitened`` is empty where it is left out."""

    directions: int
    decodability: tuple[float, ...]
    entanglement: tuple[int, ...]
    whitened: tuple[float, ...]


def check_grid(name: str, given: Any, *, whole: bool = False, most: float | None = None) -> tuple[float, ...]:
    """Return a grid of strengths that rises from 0.

    Parameters
    ----------
    name : str
        Argument, for error messages.
    given : sequence of number
    whole : bool
        Whether strengths count directions.
    most : float, optional
        Largest strength allowed.

    Returns
    -------
    tuple of float

    Raises
    ------
    InputError
        For anything else than at least two rising numbers, the first of them 0.
    """
    kind = "whole numbers" if whole else f"numbers up to {most:,.10g}" if most is not None else "numbers"
    wrong = InputError(f"{name} is {given!r}; give at least two rising {kind} that begin with 0.")
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray):
        raise wrong
    grid = list(given)
    if len(grid) < 2 or any(isinstance(s, bool) or not isinstance(s, Real) for s in grid):
        raise wrong
    try:
        numbers = tuple(float(s) for s in grid)
    except OverflowError:
        raise wrong from None
    rising = all(a < b for a, b in pairwise(numbers))
    if numbers[0] != 0 or not rising or not np.isfinite(numbers).all():
        raise wrong
    if (most is not None and numbers[-1] > most) or (whole and not all(s.is_integer() for s in numbers)):
        raise wrong
    return numbers


class GridRun:
    """Finished steps of one run, read or computed, and the count of them.

    Parameters
    ----------
    data : MechanismRows
    how : Measuring
    grids : Grids
    store : FinishedStrengths
        Where finished steps are read from and kept.
    progress : callable, optional
        Called with the number of steps done and their total.
    """

    def __init__(
        self,
        data: MechanismRows,
        how: Measuring,
        grids: Grids,
        store: FinishedStrengths,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.data, self.how, self.grids, self.store = data, how, grids, store
        self._progress = progress
        self.done = 0
        self.total = 2 + (len(grids.decodability) - 1) * grids.directions
        self.total += len(grids.entanglement) - 1 + max(0, len(grids.whitened) - 1)

    def advance(self) -> None:
        """One step more is done."""
        self.done += 1
        if self._progress is not None:
            self._progress(self.done, max(self.done, self.total))

    def step(self, operator: Operator | None, step: Step, fitted: Refitted | None = None) -> Measured:
        """What one step finds, from disk where it is finished; ``fitted`` where the head is there already."""
        held = self.store.read(step.name)
        if held is not None:
            found = Measured.of(*held)
        else:
            head = fitted or refitted(self.data, operator, step.strength, self.how.seed)
            found = measured(self.data, head, step, self.how)
            self.store.keep(step.name, found.arrays(), found.said())
        self.advance()
        return found


def run_grids(run: GridRun, before: Measured) -> tuple[tuple[Curve, ...], list[str]]:
    """Run every operator at every strength.

    Parameters
    ----------
    run : GridRun
    before : Measured
        At strength 0, which all operators share.

    Returns
    -------
    tuple
        A curve for each operator, and sentences to print beside them.
    """
    zero = Point(0.0, (before,))
    subspace = _subspace(run)
    notes: list[str] = []
    if subspace.n_not_converged:
        notes.append(
            f"{subspace.n_not_converged} of {subspace.reached} disease directions come from a fit that "
            "stopped before its tolerance."
        )
    if len(subspace.constant_columns):
        notes.append(
            f"{len(subspace.constant_columns):,} constant columns took no part in the disease directions."
        )
    curves = [_decodability(run, zero, subspace, notes), _entanglement(run, zero, subspace, notes)]
    if run.grids.whitened:
        curves.append(_whitened(run, zero))
    if run.store.n_read:
        notes.append(f"{run.store.n_read:,} {RESUMED}.")
    return tuple(curves), notes


# -- directions ---------------------------------------------------------------------------------------


def _train(data: MechanismRows) -> Any:
    return injected_in_memory(data.features, data.signs, data.splits["train"].numbers, None, 0.0)


def _subspace(run: GridRun) -> DiseaseSubspace:
    """The disease directions, fitted once at the largest number."""
    held = run.store.read("directions")
    if held is not None:
        kept: dict[str, Any] = dict(held[0])
        kept |= {name: tuple(value) if isinstance(value, list) else value for name, value in held[1].items()}
        found = DiseaseSubspace(**kept)
    else:
        data = run.data
        most = largest_dimension(data.features.shape[1], run.grids.entanglement)
        found = disease_subspace(_train(data), data.labels("train"), max(most, 1))
        values = {one.name: getattr(found, one.name) for one in fields(found)}
        arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
        run.store.keep("directions", arrays, {k: v for k, v in values.items() if k not in arrays})
    run.advance()
    return found


# -- the three operators ------------------------------------------------------------------------------


def _decodability(run: GridRun, zero: Point, subspace: DiseaseSubspace, notes: list[str]) -> Curve:
    grids = run.grids
    if subspace.reached == 0 or run.data.features.shape[1] < 2:
        why = subspace.reason or "there is no disease direction"
        return Curve("decodability", (zero, *(Point(s, (), why) for s in grids.decodability[1:])))
    train = _train(run.data)
    first = decodability_operator(
        train,
        None,
        run.data.signs[run.data.splits["train"].numbers],
        subspace.first(1)[:, 0],
        seed=run.how.seed * _SEEDS,
    )
    del train
    points = [_averaged(run, first, s, grids.directions, subspace) for s in grids.decodability[1:]]
    if not run.how.geometry:
        notes.append(
            f"Whether decodability saturates before strength {grids.decodability[1]:g} was not tested, as "
            "the geometry was left out; no smaller strength was added."
        )
    added = _smaller(run, first, zero, points, grids.directions, subspace)
    if added:
        shown = ", ".join(f"{point.strength:g}" for point in added)
        notes.append(
            f"Decodability saturates: strength {grids.decodability[1]:g} already shows at least "
            f"{100 * SATURATED:g} % of its rise, so smaller strengths were added ({shown}). They are in no "
            "test."
        )
    return Curve("decodability", (zero, *added, *points))


def _averaged(
    run: GridRun,
    first: DecodabilityOperator,
    strength: float,
    directions: int,
    subspace: DiseaseSubspace,
    *,
    on_grid: bool = True,
) -> Point:
    """One strength over all random directions; the geometry is that of the first."""
    found = []
    for number in range(directions):
        seed = run.how.seed * _SEEDS + number
        operator = replace(first, direction=random_direction(subspace.first(1)[:, 0], seed), seed=seed)
        found.append(run.step(operator, Step("decodability", strength, number, full=number == 0)))
    return Point(strength, tuple(found), "" if on_grid else "added, as decodability saturates", on_grid)


def _smaller(
    run: GridRun,
    first: DecodabilityOperator,
    zero: Point,
    points: Sequence[Point],
    directions: int,
    subspace: DiseaseSubspace,
) -> list[Point]:
    """Smaller strengths, rising, where the smallest asked for shows nearly all of the rise."""
    added: list[Point] = []
    start, end = _decoded(zero), _decoded(points[-1])
    smallest = points[0]
    while len(added) < MOST_ADDED:
        rise = end - start
        if not (rise > LEAST_RISE and _decoded(smallest) - start >= SATURATED * rise):
            break
        run.total += directions
        smallest = _averaged(run, first, smallest.strength / 2, directions, subspace, on_grid=False)
        added.insert(0, smallest)
    return added


def _decoded(point: Point) -> float:
    return point.found[0].quantities.get("linear_decodability", float("nan"))


def _entanglement(run: GridRun, zero: Point, subspace: DiseaseSubspace, notes: list[str]) -> Curve:
    grids = run.grids
    n_columns, reached = run.data.features.shape[1], subspace.reached
    # Where the disease signal ends before a strength of the grid, all directions there are stand in for it.
    # Where it does not, and more directions are too many for the columns that vary, nothing does.
    ended = reached < min(subspace.asked, subspace.most)
    added = [reached] if ended and reached and reached not in grids.entanglement else []
    strengths = sorted({*grids.entanglement[1:], *added})
    operator = entanglement_operator(subspace, [k for k in strengths if k <= reached])
    points = []
    for k in strengths:
        if 2 * k > n_columns:
            are = "direction is" if k == 1 else "directions are"
            why = f"{k} {are} more than half of the {n_columns:,} dimensions"
            points.append(Point(float(k), (), why))
        elif k > reached:
            points.append(Point(float(k), (), subspace.why_not(k)))
        else:
            all_of_them = (
                f"all directions there are: {subspace.reason}" if k not in grids.entanglement else ""
            )
            found = run.step(operator, Step("entanglement", float(k)))
            points.append(Point(float(k), (found,), all_of_them, k in grids.entanglement))
    if ended or not reached:
        notes.append(f"Disease directions: {reached} of {subspace.asked} were found; {subspace.reason}.")
    return Curve("entanglement", (zero, *points))


def _whitened(run: GridRun, zero: Point) -> Curve:
    grids = run.grids
    name = "whitened entanglement"
    try:
        operator = whitened_entanglement_operator(_train(run.data), run.data.labels("train"))
    except InputError as problem:
        why = str(problem).rstrip(".")
        return Curve(name, (zero, *(Point(s, (), why) for s in grids.whitened[1:])))
    return Curve(
        name,
        (zero, *(Point(s, (run.step(operator, Step(name, s)),)) for s in grids.whitened[1:])),
    )

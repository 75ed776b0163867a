"""Preconditioned L-BFGS for penalised logistic regression, to the optimum.

The coefficients belong to the columns of a linear map, which is folded into them for each pass; the features
are never rewritten. A step is tried at full length with one pass that gives loss, gradient and margins
together. Where it does not fit, the best length is found on the margins alone, which are linear in the step.
The preconditioner is made anew at the current point where the gradient falls too slowly for what that costs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from frame.heads.linear_maps import LinearMap
from frame.heads.passes import Passes
from frame.heads.preconditioning import (
    Factor,
    Preconditioner,
    preconditioner_from,
    products_in_passes,
    rows_worth_drawing,
)

Floats = NDArray[np.float64]

#: Steps and changes of the gradient that are remembered.
_MEMORY: Final = 30
#: A full step is taken as it is where the slope at its end is within these shares of that at its start.
_STEEP, _BEYOND = 0.8, -0.6
#: The slope that a searched length leaves.
_SEARCHED: Final = 0.1
#: Iterations from which the fall of the gradient is judged, and over which.
_JUDGED: Final = 4
#: Iterations without the gradient halving or the loss falling by this share, after which rounding is held
#: to be the limit.
_STALLED, _FLAT = 40, 1e-12
#: Largest change of a coefficient that may still be foreseen at the end, and its share of the largest one.
SETTLED: Final = (1e-5, 1e-6)


@dataclass(frozen=True, eq=False)
class Problem:
    """The objective: mean weighted log-loss plus ``penalty`` / 2 times the squared coefficients.

    ``total`` is the sum of the weights, and ``penalty`` 1 / (C * total). Coefficients are laid out
    (K, M + 1), the intercept last.
    """

    passes: Passes
    map: LinearMap
    total: float
    penalty: float
    spent: list[float] = field(default_factory=list)

    def at(self, place: Floats) -> Point:
        """One pass at these coefficients."""
        inner = place[:, :-1] if self.map.matrix is None else place[:, :-1] @ self.map.matrix.T
        raw = np.ascontiguousarray(inner * self.map.scale)
        found = self.passes.evaluate(raw, place[:, -1] - raw @ self.map.centre)
        self.spent.append(1.0)
        part = (found.gradient - found.slopes[:, None] * self.map.centre) * self.map.scale
        gradient = np.empty_like(place)
        gradient[:, :-1] = part if self.map.matrix is None else part @ self.map.matrix
        gradient[:, -1] = found.slopes
        gradient /= self.total
        gradient[:, :-1] += self.penalty * place[:, :-1]
        loss = found.loss / self.total + 0.5 * self.penalty * _dot(place[:, :-1], place[:, :-1])
        return Point(place, loss, gradient, found.margins)


@dataclass(frozen=True, eq=False)
class Point:
    """The objective, its gradient and the margins at some coefficients."""

    place: Floats
    loss: float
    gradient: Floats
    margins: Any

    @property
    def steepest(self) -> float:
        """Largest entry of the gradient."""
        return float(np.abs(self.gradient).max())

    def finite(self) -> bool:
        """Whether loss and gradient are numbers."""
        return bool(np.isfinite(self.loss) and np.isfinite(self.gradient).all())


@dataclass(frozen=True, eq=False)
class Optimum:
    """Where the iterations ended, and why."""

    point: Point
    iterations: int
    status: Literal["converged", "not converged"]
    reason: str
    preconditioner: Preconditioner | None


class _Curvature:
    """The preconditioner as it stands, and the steps remembered on top of it."""

    def __init__(self, problem: Problem, point: Point, found: Preconditioner | None) -> None:
        self._problem = problem
        passes = problem.passes
        n_classes = max(len(point.place), 2)
        self.count = rows_worth_drawing(passes.n_rows, passes.n_features, n_classes)
        self._steps: list[tuple[Floats, Floats, float]] = []
        self._size = 1.0
        self.made = 0
        self._set(point, found)

    def _set(self, point: Point, found: Preconditioner | None) -> None:
        problem = self._problem
        rows, by_class = problem.passes.curvatures(point.margins)
        if found is None:
            found = preconditioner_from(problem.passes, rows, problem.map, self.count, self.made)
            problem.spent.append(found.n_rows / problem.passes.n_rows)
            self.made += 1
        self.found = found
        self._factor = Factor(
            found, problem.map, float(rows.sum()) / problem.total, by_class, problem.penalty
        )

    def renew(self, point: Point) -> None:
        """Draw rows at this point, more of them every time."""
        if self.made > 1:
            self.count = min(2 * self.count, self._problem.passes.n_rows)
        if (
            len(point.place) == 1
        ):  # several classes are only approximated, and what was learnt about them stays
            self._steps.clear()
        self._set(point, None)

    def step(self, gradient: Floats) -> Floats:
        """Two-loop recursion (Nocedal 1980, Math Comput)."""
        rest, used = gradient.copy(), []
        for moved, changed, inverse in reversed(self._steps):
            share = inverse * _dot(moved, rest)
            used.append(share)
            rest -= share * changed
        direction = self._factor.solve(rest) * self._size
        for (moved, changed, inverse), share in zip(self._steps, reversed(used), strict=True):
            direction += moved * (share - inverse * _dot(changed, direction))
        return -direction

    def learn(self, before: Point, after: Point) -> None:
        moved, changed = after.place - before.place, after.gradient - before.gradient
        along = _dot(moved, changed)
        if along > 0:
            against = _dot(changed, self._factor.solve(changed))
            self._size = along / against if against > 0 else 1.0
            self._steps = [*self._steps, (moved, changed, 1 / along)][-_MEMORY:]

    def forget(self) -> None:
        self._steps.clear()
        self._size = 1.0

    def settled(self, point: Point) -> bool:
        """Whether the coefficients are foreseen to change no more."""
        foreseen = float(np.abs(self.step(point.gradient)).max())
        return foreseen <= max(SETTLED[0], SETTLED[1] * float(np.abs(point.place).max()))

    def too_slow(self, falls: list[float], aim: float) -> bool:
        """Whether new moments would pay for themselves, at the rate of the last iterations."""
        if len(falls) <= _JUDGED or falls[-1] <= aim:
            return False
        rate = (falls[-1] / falls[-1 - _JUDGED]) ** (1 / _JUDGED)
        to_go = np.log(falls[-1] / aim)
        passes = self._problem.passes
        count = self.count if self.made <= 1 else min(2 * self.count, passes.n_rows)
        cost = products_in_passes(count, passes.n_rows, passes.n_features)
        fresh = max(2 * to_go / np.log(max(count / passes.n_features, np.e)), 3.0)
        left = to_go / -np.log(min(rate, 0.999))
        return bool(left > 1.5 * (cost + fresh))


def minimise(
    problem: Problem, first: Floats, found: Preconditioner | None, tolerance: float, iterations: int
) -> Optimum:
    """Iterate from ``first`` (K, M + 1) until no entry of the gradient passes the tolerance.

    The coefficients must also have settled: the next step is at most 1e-5, or 1e-6 of the largest.
    """
    point = problem.at(first)
    if not point.finite():
        return Optimum(point, 0, "not converged", "the objective was not finite at the start", found)
    curvature = _Curvature(problem, point, found)
    falls, halved, lowest = [point.steepest], 0, point
    for iteration in range(iterations + 1):
        if not point.finite():
            reason = f"the objective was not finite after {iteration:,} iterations"
            return Optimum(point, iteration, "not converged", reason, curvature.found)
        if point.steepest <= tolerance and curvature.settled(point):
            return Optimum(point, iteration, "converged", "", curvature.found)
        if point.steepest < 0.5 * lowest.steepest or point.loss < lowest.loss - _FLAT * abs(lowest.loss):
            halved, lowest = iteration, point
        if iteration == iterations:
            reason = (
                f"the gradient was {point.steepest:.1e} after {iterations:,} iterations, "
                f"and {tolerance:.1e} was asked for"
            )
            break
        moved = None if iteration - halved > _STALLED else _moved(problem, curvature, point)
        if moved is None:
            reason = (
                f"no step went further down from a gradient of {point.steepest:.1e} after {iteration:,} "
                f"iterations, as rounding allows, and {tolerance:.1e} was asked for"
            )
            return Optimum(point, iteration, "not converged", reason, curvature.found)
        curvature.learn(point, moved)
        point = moved
        falls.append(point.steepest)
        if curvature.too_slow(falls, tolerance):
            curvature.renew(point)
            falls = [point.steepest]
    return Optimum(point, iterations, "not converged", reason, curvature.found)


def _moved(problem: Problem, curvature: _Curvature, point: Point) -> Point | None:
    """The point after one step; None where no step goes down."""
    for _ in range(2):
        direction = curvature.step(point.gradient)
        slope = _dot(direction, point.gradient)
        if slope < 0:
            break
        curvature.forget()
    else:
        return None
    full = problem.at(point.place + direction)
    end = _dot(direction, full.gradient)
    risen = full.loss - point.loss > _FLAT * abs(point.loss)
    if full.finite() and not risen and _STEEP * slope <= end <= _BEYOND * slope:
        return full
    length = _searched(problem, point, full, direction, slope)
    if length is None:
        return None
    return full if length == 1.0 else problem.at(point.place + length * direction)


def _searched(problem: Problem, point: Point, full: Point, direction: Floats, slope: float) -> float | None:
    """The length at which the slope along the step is about 0, found on the margins."""
    here, there = point.place[:, :-1], direction[:, :-1]
    pull, spring = problem.penalty * _dot(here, there), problem.penalty * _dot(there, there)
    low, high, length = 0.0, np.inf, 1.0
    for _ in range(60):
        _, rise, curve = problem.passes.along(point.margins, full.margins, length)
        rise = rise / problem.total + pull + spring * length
        curve = curve / problem.total + spring
        if abs(rise) <= _SEARCHED * abs(slope):
            return length
        if np.isfinite(rise) and rise < 0:
            low = length
        else:
            high = length
        trial = length - rise / curve if curve > 0 else np.nan
        if not low < trial < high:
            trial = 4 * length if high == np.inf else 0.5 * (low + high)
        length = float(min(trial, 10 * length))
    return low or None


def _dot(a: Floats, b: Floats) -> float:
    return float(np.vdot(a, b))

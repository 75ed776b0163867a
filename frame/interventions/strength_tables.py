"""Tidy tables of step two: every quantity at every strength, the changes, and the trend test."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frame.inference.refusals import summary_of
from frame.inference.trends import spearman_trend
from frame.interventions.decision import Change, change_of
from frame.interventions.strengths import ACHIEVABLE, GEOMETRY, Measured, Measuring, evaluable_levels
from frame.measures.differences import max_min_difference

if TYPE_CHECKING:
    from frame.interventions.mechanism_rows import MechanismRows

__all__ = [
    "COLUMNS",
    "OPERATORS",
    "Curve",
    "Point",
    "changes_table",
    "difference_change",
    "direction_table",
    "loss_change",
    "smallest_p",
    "strengths_table",
    "trend_table",
]

Floats = NDArray[np.float64]
#: Columns of the study's tidy results.
COLUMNS: Final = (
    *("experiment", "modality", "encoder", "finding", "attribute", "subgroup", "method", "strength"),
    *("quantity", "value", "boot_mean", "sd", "lo", "hi", "p", "p_fdr", "family"),
    *("n_images", "n_positive", "n_patients", "status", "reason"),
)
#: Operators in the order in which they are shown.
OPERATORS: Final = ("decodability", "entanglement", "whitened entanglement")
_TEXT: Final = (
    *("experiment", "modality", "encoder", "finding", "attribute", "subgroup", "method", "quantity"),
    *("family", "status", "reason"),
)
_CHANGES: Final = (
    *("operator", "quantity", "strength", "before", "after", "change", "lo", "hi", "p", "moves", "direction"),
    *("n_directions", "n_resamples", "n_undefined", "status", "reason"),
)
_NAN: Final = math.nan
#: Permutations of the paper's trend test.
PERMUTATIONS: Final = 1000


@dataclass(frozen=True, eq=False)
class Point:
    """One strength of one operator.

    Attributes
    ----------
    strength : float
    found : tuple of Measured
        One for each random direction; one for operators without them; empty where it was not run.
    reason : str
        Why it was not run, or what is to be said of it.
    on_grid : bool
        False for a strength that was added to those asked for.
    """

    strength: float
    found: tuple[Measured, ...]
    reason: str = ""
    on_grid: bool = True


@dataclass(frozen=True, eq=False)
class Curve:
    """All strengths of one operator, rising, strength 0 first."""

    operator: str
    points: tuple[Point, ...]

    @property
    def run(self) -> tuple[Point, ...]:
        """Strengths that were run, 0 among them."""
        return tuple(point for point in self.points if point.found)

    @property
    def largest(self) -> Point:
        """The largest strength that was run; strength 0 where no other was."""
        return self.run[-1]


class _Counts:
    """Counts of test images that stand beside the values."""

    def __init__(self, data: MechanismRows, how: Measuring) -> None:
        rows, codes = data.splits["test"].rows, data.codes("test")
        self._rows, self._codes = rows, codes
        reasons = evaluable_levels(data, "test", how.measure, how.min_size)
        self.reasons = [reasons[place] for place in range(len(data.levels))]
        self.levels = data.levels
        self.evaluable = np.asarray([not reason for reason in self.reasons], dtype=np.bool_)
        self.all = self._of(np.ones(len(codes), dtype=np.bool_))
        self.known = self._of(codes >= 0)
        self.compared = self._of(np.isin(codes, np.flatnonzero(self.evaluable)))
        self.group = [self._of(codes == place) for place in range(len(data.levels))]

    def _of(self, chosen: NDArray[np.bool_]) -> dict[str, int]:
        labels, patients = self._rows.labels[chosen], self._rows.patients[chosen]
        return {
            "n_images": len(labels),
            "n_positive": int(np.count_nonzero(labels)),
            "n_patients": len(pd.unique(patients)),
        }


def difference_of(found: Sequence[Measured], evaluable: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Largest minus smallest group value on the data, (directions,), and in resamples, (directions, B).

    The same evaluable groups enter everywhere; NaN where one of them is undefined.
    """
    points, replicates = [], []
    for one in found:
        values, drawn = one.groups[evaluable], one.group_replicates[evaluable]
        whole = len(values) > 1 and not np.isnan(values).any()
        points.append(max_min_difference(values) if whole else _NAN)
        replicates.append(
            drawn.max(axis=0) - drawn.min(axis=0) if whole else np.full(one.group_replicates.shape[1], np.nan)
        )
    return np.asarray(points), np.asarray(replicates)


def strengths_table(data: MechanismRows, how: Measuring, curves: Sequence[Curve]) -> pd.DataFrame:
    """Every quantity at every strength of every operator.

    Parameters
    ----------
    data : MechanismRows
    how : Measuring
    curves : sequence of Curve

    Returns
    -------
    DataFrame
        One row per operator (``method``), strength and quantity, in the columns of the study's results:
        ``difference`` (with its bootstrap interval, which is no test against 0), ``achievable_difference``,
        ``achievable_difference_validation``, the four geometry quantities, ``disease_auroc``, and
        ``subgroup_value`` for each group. What was not run has a row with its reason.
    """
    counts = _Counts(data, how)
    fixed = {"experiment": "mechanism", "modality": "", "encoder": "", "finding": data.label}
    fixed |= {"attribute": data.attribute, "family": ""}
    lines: list[dict[str, Any]] = []
    for curve in curves:
        for point in curve.points:
            place = fixed | {"method": curve.operator, "strength": point.strength}
            for line in _lines(point, counts, how):
                lines.append({"subgroup": "", "p": _NAN, "p_fdr": _NAN} | place | line)
    return _typed(pd.DataFrame(lines, columns=list(COLUMNS)))


def _lines(point: Point, counts: _Counts, how: Measuring) -> list[dict[str, Any]]:
    """Rows of one strength."""
    names = ["difference"]
    names += list(ACHIEVABLE) if how.methods else []
    names += list(GEOMETRY) if how.geometry else []
    if not point.found:
        return [
            {"quantity": name, "status": "not run", "reason": point.reason} | _none()
            for name in (*names, "disease_auroc")
        ]
    many = len(point.found)
    mean = f"mean over {many} random directions" if many > 1 else ""
    first = f"first of {many} random directions" if many > 1 else ""
    lines = []
    values, drawn = difference_of(point.found, counts.evaluable)
    failed = _degenerate(point)
    reason = "" if not math.isnan(values.mean()) else failed or _no_difference(counts)
    lines.append(
        {"quantity": "difference"} | _bootstrapped(values, drawn, reason, mean, point) | counts.compared
    )
    for name in names[1:]:
        value = point.found[0].quantities.get(name, _NAN)
        why = point.found[0].reasons.get(name, "")
        status = "ok" if not why else "not run" if why.startswith("not run") else "not estimable"
        why = why.removeprefix("not run: ").removeprefix("not estimable: ")
        of = counts.compared if name in ACHIEVABLE else counts.known
        said = _together(why, first, point.reason, _chosen(point.found[0], name))
        said = said if status == "ok" else why
        lines.append({"quantity": name, **_none(), "value": value, **of, "status": status, "reason": said})
    aurocs = np.asarray([one.auroc for one in point.found])
    drawn = np.asarray([one.auroc_replicates for one in point.found])
    line = _bootstrapped(aurocs, drawn, failed, mean, point)
    lines.append({"quantity": "disease_auroc"} | line | counts.all)
    for place, level in enumerate(counts.levels):
        inside = np.asarray([one.groups[place] for one in point.found])
        drawn = np.asarray([one.group_replicates[place] for one in point.found])
        undefined = failed or "undefined at this strength"
        why = counts.reasons[place] or (undefined if np.isnan(inside.mean()) else "")
        line = _bootstrapped(inside, drawn, why, mean, point) | counts.group[place]
        lines.append({"quantity": "subgroup_value", "subgroup": level} | line)
    return lines


def _chosen(found: Measured, name: str) -> str:
    """Which method gives the achievable difference."""
    if name not in ACHIEVABLE or "chosen" not in found.facts:
        return ""
    method = found.facts["chosen"][ACHIEVABLE.index(name)]
    return f"by {method}" if method else ""


def _degenerate(*points: Point) -> str:
    """Why nothing is measured at these strengths, where scores tell no images apart; else empty."""
    for point in points:
        why = next((one.degenerate for one in point.found if one.degenerate), "")
        if why:
            return f"{why} at strength {point.strength:g}"
    return ""


def _no_difference(counts: _Counts) -> str:
    n_evaluable = int(counts.evaluable.sum())
    if n_evaluable < 2:
        return f"{n_evaluable} of {len(counts.levels)} groups can be evaluated, and a difference needs 2"
    return "a group's value is undefined at this strength"


def _bootstrapped(points: Floats, replicates: Floats, reason: str, mean: str, point: Point) -> dict[str, Any]:
    value, drawn = float(points.mean()), replicates.mean(axis=0)
    found = summary_of(drawn, reason)
    found.pop("n_undefined")
    return {"value": value} | found | {"reason": _together(found["reason"], mean, point.reason)}


def _none() -> dict[str, Any]:
    return {"value": _NAN, "boot_mean": _NAN, "sd": _NAN, "lo": _NAN, "hi": _NAN}


def _together(*said: str) -> str:
    return "; ".join(part for part in said if part)


def _typed(table: pd.DataFrame) -> pd.DataFrame:
    for name in table.columns:
        if name in _TEXT:
            table[name] = table[name].fillna("").astype(str)
        elif name.startswith("n_"):
            table[name] = table[name].astype("Int64")
        else:
            table[name] = table[name].astype("float64")
    return table


# -- changes ------------------------------------------------------------------------------------------


def difference_change(data: MechanismRows, how: Measuring, curve: Curve) -> Change:
    """Change of the difference from strength 0 to the largest that was run."""
    counts = _Counts(data, how)
    before = difference_of(curve.points[0].found, counts.evaluable)
    after = difference_of(curve.largest.found, counts.evaluable)
    reason = _not_run(curve) or _degenerate(curve.points[0], curve.largest)
    reason = reason or (_no_difference(counts) if counts.evaluable.sum() < 2 else "")
    return change_of(curve.operator, _strength(curve), (float(before[0][0]), before[1][0]), after, reason)


def loss_change(curve: Curve) -> Change:
    """Change of the disease AUROC from strength 0 to the largest that was run."""
    start = curve.points[0].found[0]
    found = curve.largest.found
    after = np.asarray([one.auroc for one in found]), np.asarray([one.auroc_replicates for one in found])
    reason = _not_run(curve) or _degenerate(curve.points[0], curve.largest)
    return change_of(curve.operator, _strength(curve), (start.auroc, start.auroc_replicates), after, reason)


def _not_run(curve: Curve) -> str:
    if len(curve.run) > 1:
        return ""
    reasons = dict.fromkeys(point.reason for point in curve.points[1:] if point.reason)
    return "no strength above 0 was run" + (f" ({'; '.join(reasons)})" if reasons else "")


def _strength(curve: Curve) -> float:
    return curve.largest.strength if len(curve.run) > 1 else _NAN


def changes_table(found: Mapping[str, Mapping[str, Change]]) -> pd.DataFrame:
    """Changes from strength 0 to the largest, one row per operator and quantity.

    Parameters
    ----------
    found : mapping
        By operator, changes of ``difference`` and ``disease_auroc``.

    Returns
    -------
    DataFrame
        ``moves`` and ``direction`` are the rule of step two, and stand beside the difference only.
    """
    lines = []
    for operator, changes in found.items():
        for quantity, one in changes.items():
            judged = quantity == "difference"
            lines.append(
                {
                    "operator": operator,
                    "quantity": quantity,
                    "strength": one.largest,
                    "before": one.before,
                    "after": one.after,
                    "change": one.change,
                    "lo": one.lo,
                    "hi": one.hi,
                    "p": one.p,
                    "moves": one.moves if judged else None,
                    "direction": one.direction if judged and one.moves is not None else "",
                    "n_directions": one.n_directions,
                    "n_resamples": one.n_resamples,
                    "n_undefined": one.n_undefined,
                    "status": one.status,
                    "reason": one.reason,
                }
            )
    table = pd.DataFrame(lines, columns=list(_CHANGES))
    return table.astype({"moves": "boolean"}) if len(table) else table


def direction_table(curves: Sequence[Curve], data: MechanismRows, how: Measuring) -> pd.DataFrame:
    """The difference for every random direction: operator, strength, direction, difference, disease_auroc."""
    evaluable = _Counts(data, how).evaluable
    lines = []
    for curve in curves:
        for point in curve.points[1:]:
            if curve.operator != "decodability" or not point.found:
                continue
            values, _ = difference_of(point.found, evaluable)
            for number, (value, one) in enumerate(zip(values.tolist(), point.found, strict=True)):
                lines.append((curve.operator, point.strength, number, value, one.auroc))
    return pd.DataFrame(lines, columns=["operator", "strength", "direction", "difference", "disease_auroc"])


def smallest_p(n_strengths: int) -> float:
    """Two-sided p of a perfect trend over so many strengths, from 1,000 drawn orders."""
    return min(1.0, max(2.0 / math.factorial(n_strengths), 1.0 / (PERMUTATIONS + 1)))


def trend_table(curves: Sequence[Curve], data: MechanismRows, how: Measuring) -> pd.DataFrame:
    """The paper's trend test: Spearman's correlation of strength with the difference, by permutation.

    Parameters
    ----------
    curves : sequence of Curve
    data : MechanismRows
    how : Measuring

    Returns
    -------
    DataFrame
        ``operator, rho, p, n_strengths, smallest_p, status, reason``. ``smallest_p`` is what a perfect trend
        over so many strengths can be expected to reach at best: two of the n! orders, and no less than one
        in 1,001, as 1,000 orders are drawn.
    """
    evaluable = _Counts(data, how).evaluable
    lines = []
    for curve in curves:
        points = [point for point in curve.run if point.on_grid]
        values = [float(difference_of(point.found, evaluable)[0].mean()) for point in points]
        found = spearman_trend(
            [point.strength for point in points], values, permutations=PERMUTATIONS, seed=how.seed
        )
        lines.append(
            {
                "operator": curve.operator,
                "rho": found.rho,
                "p": found.p,
                "n_strengths": found.n,
                "smallest_p": smallest_p(found.n) if found.n else _NAN,
                "status": found.status,
                "reason": found.reason,
            }
        )
    return pd.DataFrame(
        lines, columns=["operator", "rho", "p", "n_strengths", "smallest_p", "status", "reason"]
    )

"""What the patient bootstrap says about subgroups: their intervals, and the worst one beside the others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frame.errors import InputError
from frame.inference.contrasts import paired_contrast
from frame.inference.refusals import one_patient, summary_of, too_often_undefined
from frame.measures.differences import worst_group

__all__ = [
    *("BY_GROUP", "ECE_BIASED", "Replicates", "WorstGroup"),
    *("needs_numba", "subgroup_intervals", "worst_of"),
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_NAN = math.nan
#: Stands beside every ECE of a subgroup.
ECE_BIASED = "ECE is biased upwards in small groups"

#: Columns of :attr:`frame.Audit.by_group`.
BY_GROUP = (
    *("group", "n_images", "n_positive", "n_negative", "n_patients"),
    *("value", "lo", "hi", "status", "reason"),
)
_CONTRASTS = ("group", "change", "lo", "hi", "p", "status", "reason")


@dataclass(frozen=True)
class Replicates:
    """Bootstrap values of one measure, and what they can say.

    Attributes
    ----------
    measure : str
        The measure.
    values : ndarray of float64, shape (subgroups + 1, resamples), or None
        First row overall; None where the bootstrap is switched off.
    patients : ndarray of int64, shape (3, subgroups)
        Patients with a positive image, with a negative one, and all.
    """

    measure: str
    values: Floats | None
    patients: Integers

    def refusal(self, place: int) -> str:
        """Why a subgroup has no interval whatever its replicates; empty where it may have one."""
        return one_patient(self.measure, *self.patients[:, place].tolist())

    def summary(self, place: int) -> tuple[float, float, str, str]:
        """Interval of a subgroup, status and reason."""
        if self.values is None:
            return _NAN, _NAN, "ok", "no interval: the bootstrap is switched off (resamples=0)"
        made = summary_of(self.values[1 + place], self.refusal(place))
        return made["lo"], made["hi"], made["status"], made["reason"]

    def remark(self) -> str:
        """What has to be said beside every value of the measure."""
        return ECE_BIASED if self.measure == "ece" else ""


@dataclass(frozen=True)
class WorstGroup:
    """The worst evaluable subgroup, with its bootstrap interval and the others contrasted with it.

    Attributes
    ----------
    name : str
        Empty where no subgroup is evaluable.
    value : float
        Its value, on the 0-1 scale.
    lo, hi : float
        2.5th and 97.5th percentiles over resampled patients. The subgroup was chosen on the same data, and
        the interval is not corrected for that. NaN without a bootstrap; ``reason`` says why.
    contrasts : DataFrame
        One row per other evaluable subgroup: ``group, change, lo, hi, p, status, reason``. The change is
        that subgroup minus the worst one; p is two-sided and not corrected for the number of contrasts.
    reason : str
        Why there is no interval, or what to know beside it; empty where there is nothing to say.
    """

    name: str
    value: float
    lo: float
    hi: float
    contrasts: pd.DataFrame
    reason: str


def subgroup_intervals(table: pd.DataFrame, replicates: Replicates) -> pd.DataFrame:
    """Intervals of all subgroups.

    Parameters
    ----------
    table : DataFrame
        As :func:`frame.measures.subgroup_table`.
    replicates : Replicates
        Bootstrap values.

    Returns
    -------
    DataFrame
        The columns of :data:`BY_GROUP`, one row per subgroup. Where there is no interval, or not all
        resamples have a value, ``reason`` says so; where resampling patients cannot show the error of a
        value, its ``status`` is ``not estimable`` and the value stays.
    """
    low, high, states, reasons = [], [], [], []
    for place, row in enumerate(table.to_dict("records")):
        lo, hi, state, reason = _NAN, _NAN, str(row["status"]), str(row["reason"])
        if state == "ok":
            lo, hi, state, reason = replicates.summary(place)
            reason = _joined(reason, replicates.remark())
        low.append(lo)
        high.append(hi)
        states.append(state)
        reasons.append(reason)
    return table.assign(lo=low, hi=high, status=states, reason=reasons)[list(BY_GROUP)]


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def worst_of(table: pd.DataFrame, measure: str, replicates: Replicates) -> WorstGroup:
    """The worst evaluable subgroup, its interval and the contrasts of the others with it.

    Parameters
    ----------
    table, replicates
        As in :func:`subgroup_intervals`.
    measure : str
        Says which direction is worse.

    Returns
    -------
    WorstGroup
    """
    name, value = worst_group(table, measure)
    if not name:
        nothing = pd.DataFrame(columns=list(_CONTRASTS))
        return WorstGroup("", _NAN, _NAN, _NAN, nothing, "no subgroup is evaluable")
    names = [str(group) for group in table["group"]]
    place = names.index(name)
    lo, hi, _, reason = replicates.summary(place)
    rows: list[dict[str, Any]] = []
    for other in np.flatnonzero(table["evaluable"].to_numpy(dtype=bool)).tolist():
        if other == place:
            continue
        change = float(table["value"].iloc[other]) - value
        row: dict[str, Any] = {"group": names[other], "change": change, "lo": _NAN, "hi": _NAN, "p": _NAN}
        rows.append(row | _contrast(change, replicates, other, place, names))
    contrasts = pd.DataFrame(rows, columns=list(_CONTRASTS))
    return WorstGroup(name, value, lo, hi, contrasts, _joined(reason, replicates.remark()))


def _contrast(
    change: float, replicates: Replicates, other: int, place: int, names: list[str]
) -> dict[str, Any]:
    """Interval and p of a subgroup minus the worst one, or why there are none."""
    values = replicates.values
    if values is None:
        return {"status": "not estimable", "reason": replicates.summary(place)[3]}
    drawn = values[1 + other] - values[1 + place]
    refused = [(side, replicates.refusal(side)) for side in (other, place)]
    reason = next((f"'{names[side]}': {why}" for side, why in refused if why), "")
    reason = reason or too_often_undefined(drawn)
    if reason:
        return {"status": "not estimable", "reason": reason}
    made = paired_contrast(change, drawn)
    numbers = {"lo": made.lo, "hi": made.hi, "p": made.p, "status": made.status}
    return numbers | {"reason": _joined(made.reason, replicates.remark())}


def needs_numba(problem: ModuleNotFoundError) -> Exception:
    """Say what to install where numba is missing; anything else stays what it is."""
    if problem.name != "numba":
        return problem
    return InputError(
        "the bootstrap needs numba; install it with: pip install 'frame-audit[scores]', or switch the "
        "bootstrap off with resamples=0 (--resamples 0)."
    )

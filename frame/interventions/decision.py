"""The rule of step two: what moved, whether the entanglement test could speak, and the verdict.

Everything here is arithmetic on points and paired replicates that were computed before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from frame.inference.contrasts import Contrast, paired_contrast
from frame.inference.refusals import too_often_undefined
from frame.mitigation.words import signed

__all__ = [
    "AUROC_LOSS",
    "CONSISTENT",
    "LEAST_CHANGE",
    "MOVES_BOTH",
    "MOVES_DECODABILITY",
    "MOVES_ENTANGLEMENT",
    "UNDETERMINED",
    "VERDICTS",
    "Change",
    "Precondition",
    "change_of",
    "decide",
    "precondition_of",
]

Floats = NDArray[np.float64]

#: An operator moves the difference by more than this, and its paired interval excludes 0.
LEAST_CHANGE: Final = 0.005
#: The disease AUROC falls by more than this at the largest k, and its paired interval excludes 0.
AUROC_LOSS: Final = 0.010

CONSISTENT: Final = "consistent with exact fairness"
MOVES_ENTANGLEMENT: Final = "moves with entanglement, not with decodability"
MOVES_DECODABILITY: Final = "moves with decodability"
MOVES_BOTH: Final = "moves with both"
UNDETERMINED: Final = "undetermined"
VERDICTS: Final = (CONSISTENT, MOVES_ENTANGLEMENT, MOVES_DECODABILITY, MOVES_BOTH, UNDETERMINED)


@dataclass(frozen=True)
class Change:
    """How a value changes from strength 0 to the largest strength of one operator.

    Attributes
    ----------
    operator : str
        Which one.
    largest : float
        The largest strength that was run; NaN where none above 0 was.
    before, after : float
        Values at strength 0 and at the largest, on the data.
    change, lo, hi, p : float
        After minus before, its 95 % interval over paired resamples of patients, and its two-sided p.
    n_directions : int
        Random directions that were averaged; 1 for operators without them.
    n_resamples, n_undefined : int
        Resamples in which the change was defined, and in which it was not.
    status, reason : str
        ``ok``, or ``not estimable`` and why.
    """

    operator: str
    largest: float
    before: float
    after: float
    change: float
    lo: float
    hi: float
    p: float
    n_directions: int = 1
    n_resamples: int = 0
    n_undefined: int = 0
    status: str = "ok"
    reason: str = ""

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of 0; False where there is none."""
        return self.lo > 0 or self.hi < 0

    @property
    def moves(self) -> bool | None:
        """The rule of step two; None where it cannot be judged."""
        if self.status != "ok":
            return None
        return abs(self.change) > LEAST_CHANGE and self.excludes_zero

    @property
    def direction(self) -> str:
        """``rises``, ``falls`` or ``stays``: only a change that moves rises or falls."""
        return ("rises" if self.change > 0 else "falls") if self.moves else "stays"


@dataclass(frozen=True)
class Precondition:
    """Whether the disease AUROC fell where disease directions were removed.

    Attributes
    ----------
    change : Change
        Of the disease AUROC over all test images, from nothing removed to the largest k.
    """

    change: Change

    @property
    def holds(self) -> bool | None:
        """True or False; None where it cannot be judged."""
        if self.change.status != "ok":
            return None
        return self.change.change < -AUROC_LOSS and self.change.hi < 0

    @property
    def reason(self) -> str:
        """Why the entanglement test says nothing; empty where it may speak."""
        one = self.change
        if self.holds:
            return ""
        if self.holds is None:
            return f"the fall of the disease AUROC cannot be judged ({one.reason})"
        by = (
            f"the disease AUROC went from {one.before:.3f} to {one.after:.3f} at the largest strength "
            f"(k = {one.largest:g}; change {signed(one.change)}, 95 % interval {signed(one.lo)} to "
            f"{signed(one.hi)})"
        )
        if one.change < -AUROC_LOSS:
            return (
                f"{by}: the interval does not exclude 0, so it is not shown that disease signal was removed"
            )
        return (
            f"{by}, which is not a fall of more than {AUROC_LOSS:.3f}: predictive signal remains outside the "
            "removed directions"
        )


def change_of(
    operator: str,
    largest: float,
    before: tuple[float, Floats],
    after: tuple[Floats, Floats],
    reason: str = "",
) -> Change:
    """The paired change of one value between strength 0 and the largest.

    Parameters
    ----------
    operator : str
        Which one.
    largest : float
        The largest strength.
    before : (float, ndarray of shape (resamples,))
        Value and replicates at strength 0.
    after : (ndarray of shape (directions,), ndarray of shape (directions, resamples))
        Values and replicates at the largest strength, which are averaged over directions.
    reason : str
        Why the change cannot be judged, where that is known already.

    Returns
    -------
    Change
    """
    points, replicates = np.asarray(after[0], dtype=np.float64), np.asarray(after[1], dtype=np.float64)
    mean = float(points.mean())
    changes: Floats = replicates.mean(axis=0) - before[1]
    found: Contrast = paired_contrast(mean - before[0], changes)
    why = reason or found.reason * (found.status != "ok") or too_often_undefined(changes)
    nan = math.nan
    return Change(
        operator=operator,
        largest=largest,
        before=before[0],
        after=mean,
        change=found.change,
        lo=nan if why else found.lo,
        hi=nan if why else found.hi,
        p=nan if why else found.p,
        n_directions=len(points),
        n_resamples=found.resamples,
        n_undefined=found.n_undefined,
        status="not estimable" if why else "ok",
        reason=why,
    )


def precondition_of(change: Change) -> Precondition:
    """The precondition of the entanglement test, from the change of the disease AUROC."""
    return Precondition(change)


def decide(
    gate: Mapping[str, Any], changes: Mapping[str, Change], precondition: Precondition | None
) -> tuple[str, tuple[str, ...]]:
    """The verdict and its reasons.

    Parameters
    ----------
    gate : mapping
        ``p`` and ``alpha`` of step one, ``reason`` where there is no p.
    changes : mapping of str to Change
        Of the difference, for ``decodability`` and ``entanglement``; empty where step two was not run.
    precondition : Precondition or None
        None where step two was not run.

    Returns
    -------
    tuple
        One of :data:`VERDICTS`, and why, as clauses without a full stop.

    Notes
    -----
    The verdict reads the two operators of the paper; whatever stands beside them does not decide.
    """
    if math.isnan(gate["p"]):
        return UNDETERMINED, (f"step one gives no exceedance: {gate['reason'] or 'it has no p'}",)
    if gate["p"] > gate["alpha"]:
        return CONSISTENT, ()
    if precondition is None:
        raise ValueError("step two was run, and its precondition is not given")
    if not precondition.holds:
        return UNDETERMINED, (f"the entanglement test says nothing here: {precondition.reason}",)
    unjudged = [c for c in (changes["entanglement"], changes["decodability"]) if c.moves is None]
    if unjudged:
        return UNDETERMINED, tuple(
            f"the change under {c.operator} cannot be judged: {c.reason}" for c in unjudged
        )
    with_entanglement, with_decodability = changes["entanglement"].moves, changes["decodability"].moves
    if with_entanglement and with_decodability:
        return MOVES_BOTH, ()
    if with_entanglement:
        return MOVES_ENTANGLEMENT, ()
    if with_decodability:
        return MOVES_DECODABILITY, ()
    return UNDETERMINED, (
        f"neither operator moves the difference by more than {LEAST_CHANGE:.3f} with an interval that "
        "excludes 0",
    )

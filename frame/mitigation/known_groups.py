"""Scores that can be judged: those of the images whose group is known, finite, and not all one.

What is compared for an attribute is read on the images whose group is known, before and after, thresholds
included: a method scores only those, and the unmitigated scores of the others may lie on another scale, so
that an AUROC over both would compare scales and not images.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from frame.mitigation.contract import DEGENERATE, FITTED, Floats, Outcome, Rows, Scores, Unit, not_fitted

if TYPE_CHECKING:
    from frame.heads.disease_heads import Head

__all__ = ["head_failure", "is_constant", "judged_outcome", "known_scores", "one_score"]

#: Range of scores, on their own scale, below which they are one: what is left is rounding.
_ROUNDING: Final = 1e-10
#: Statuses of a head that says nothing about any image.
_SAYS_NOTHING: Final = ("not fitted", "one class")


def head_failure(head: Head | None) -> str:
    """Why a head has no scores, as a sentence without a full stop; empty where it has some.

    Parameters
    ----------
    head : Head or None
        None: the scores come from elsewhere.
    """
    if head is None or (head.fit is not None and head.status not in _SAYS_NOTHING):
        return ""
    return f"the disease head could not be fitted: {head.reason or head.status}"


def judged_outcome(outcome: Outcome, unit: Unit) -> Outcome:
    """What a method did, with the scores of the images whose group is known and of no others.

    Parameters
    ----------
    outcome : Outcome
        Scores of all validation and test images of the unit, or none; ``Outcome(*unit.unmitigated)`` is the
        head without mitigation, which is read on the same images.
    unit : Unit
        The data.

    Returns
    -------
    Outcome
        ``validation`` and ``test`` are in the order of ``unit.validation.kept(unit.validation.known)`` and
        of ``unit.test.kept(unit.test.known)``. Not fitted, with the reason, where they have another shape,
        are not finite or are no probabilities. Degenerate where :func:`one_score` says so.
    """
    if outcome.validation is None or outcome.test is None:
        return outcome
    found: dict[str, Scores] = {}
    same = ""
    for split, scores, rows in (
        ("validation", outcome.validation, unit.validation),
        ("test", outcome.test, unit.test),
    ):
        for kind, values in (("ranks", scores.ranks), ("probabilities", scores.probabilities)):
            if values.shape != (len(rows),):
                return not_fitted(f"its {split} {kind} have shape {values.shape}, not ({len(rows)},)")
            wrong = int(np.count_nonzero(~np.isfinite(values[rows.known])))
            if wrong:
                return not_fitted(f"{wrong:,} of its {split} {kind} are not finite")
        held = known_scores(scores, rows)
        if len(held.probabilities) and not (
            0.0 <= float(held.probabilities.min()) <= float(held.probabilities.max()) <= 1.0
        ):
            return not_fitted(f"its {split} probabilities leave the range from 0 to 1")
        same = same or one_score(held.ranks, rows.groups[rows.known], split)
        found[split] = held
    judged = replace(outcome, validation=found["validation"], test=found["test"])
    if not same or outcome.status != FITTED:
        return judged
    return replace(judged, status=DEGENERATE, reason=same)


def known_scores(scores: Scores, rows: Rows) -> Scores:
    """Scores of the images whose group is known; the same object where it is known of all."""
    known = rows.known
    if bool(known.all()):
        return scores
    return Scores(scores.ranks[known], scores.probabilities[known])


def one_score(ranks: Floats, groups: NDArray[Any], split: str) -> str:
    """Say that scores tell no images apart, as a sentence without a full stop; empty where they do.

    Parameters
    ----------
    ranks : ndarray of float64, shape (n,)
        Finite.
    groups : ndarray, shape (n,)
        Of the same images: scores that are one within every group tell nothing but the group.
    split : str
        Name of the split, for the sentence.
    """
    if len(ranks) < 2:
        return ""
    if is_constant(ranks):
        return f"all {len(ranks):,} {split} images have one score"
    present = np.unique(groups)
    if len(ranks) > len(present) and all(is_constant(ranks[groups == group]) for group in present):
        return f"all {split} images of a group have one score"
    return ""


def is_constant(values: Floats) -> bool:
    """Whether scores are one but for rounding."""
    size = max(1.0, float(np.max(np.abs(values))))
    return float(np.ptp(values)) <= _ROUNDING * size

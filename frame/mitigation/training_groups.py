"""Counts of training images by group and label: what every method that needs groups looks at first.

Answers that hold for every such method:

* no training image with a known group, or one label only among them: not fitted;
* one group only: fitted, but degenerate, as there is nothing to even out between groups;
* a group without training images, or with one label only: fitted, and said in the group's row and in a flag.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from frame.errors import InputError
from frame.mitigation.contract import (
    DEGENERATE,
    NOT_FITTED,
    Outcome,
    Scores,
    Unit,
    not_fitted,
    scores_of_logits,
)

if TYPE_CHECKING:
    from frame.heads.disease_heads import Head

__all__ = ["TrainingGroups", "outcome_of", "refitted", "training_groups"]

Floats = NDArray[np.float64]
_LABELS = ("negative", "positive")


@dataclass(frozen=True, eq=False)
class TrainingGroups:
    """Training images whose group is known, counted.

    Attributes
    ----------
    levels : tuple of str
        Names of the groups.
    counts : ndarray of int64, shape (groups, 2)
        Negatives and positives of each group.
    rows : ndarray of int64, shape (n,)
        Numbers of the rows with a known group, rising.
    n_training : int
        Training rows, known group or not.
    """

    levels: tuple[str, ...]
    counts: NDArray[np.int64]
    rows: NDArray[np.int64]
    n_training: int

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Images of each group, shape (groups,)."""
        return np.asarray(self.counts.sum(axis=1), dtype=np.int64)

    @property
    def present(self) -> NDArray[np.int64]:
        """Numbers of the groups that have training images, rising."""
        return np.flatnonzero(self.sizes).astype(np.int64)

    def label_weights(self, weighting: str) -> Floats:
        """Weight of a negative and of a positive, shape (2,).

        Balanced (n / (2 n_label), over the rows with a known group) with ``"equal"``, ones with ``"paper"``.
        """
        if weighting == "paper":
            return np.ones(2)
        totals = self.counts.sum(axis=0)
        return np.asarray(totals.sum() / (2.0 * totals), dtype=np.float64)

    def described(self, actions: Mapping[int, str]) -> tuple[dict[str, Any], ...]:
        """The rows ``Outcome.groups``: what was done to each group, by its number, and what it lacks."""
        return tuple(
            {
                "group": name,
                "n_images": int(self.sizes[number]),
                "n_positive": int(self.counts[number, 1]),
                "action": actions[number] if self.sizes[number] else "left out",
                "reason": self._lack(number),
            }
            for number, name in enumerate(self.levels)
        )

    def lacks(self) -> tuple[str, ...]:
        """A sentence for each thing that groups lack and a reader must know."""
        return tuple(
            f"{name} has {self._lack(number)}"
            for number, name in enumerate(self.levels)
            if self._lack(number)
        )

    def one_label(self) -> tuple[str, ...]:
        """As ``lacks``, of the groups with training images alone."""
        return tuple(
            f"{self.levels[number]} has {self._lack(number)}" for number in self.present if self._lack(number)
        )

    def _lack(self, number: int) -> str:
        if not self.sizes[number]:
            return "no training image"
        for label, name in enumerate(_LABELS):
            if not self.counts[number, label]:
                return f"no {name} training image"
        return ""


def training_groups(unit: Unit) -> TrainingGroups | Outcome:
    """Count a unit's training images, or say why nothing can be fitted to them.

    Raises
    ------
    InputError
        For labels other than 0 and 1, or a group number that is not a level's.
    """
    labels, groups = unit.train.labels, unit.train.groups
    n_levels = len(unit.levels)
    if len(groups) and int(groups.max()) >= n_levels:
        raise InputError(f"A training image has group {int(groups.max())}, and there are {n_levels} levels.")
    odd = [int(value) for value in np.unique(labels) if value not in (0, 1)]
    if odd:
        raise InputError(f"The training labels have the values {odd} beside 0 and 1; give 0 and 1 alone.")
    rows = np.flatnonzero(groups >= 0).astype(np.int64)
    if not len(rows):
        return not_fitted("no training image has a known group", n_images=0)
    cells = np.bincount(groups[rows] * 2 + labels[rows], minlength=2 * n_levels).reshape(n_levels, 2)
    found = TrainingGroups(unit.levels, cells.astype(np.int64), rows, len(labels))
    totals = cells.sum(axis=0)
    for label, name in enumerate(_LABELS):
        if not totals[label]:
            return not_fitted(
                f"none of the {len(rows):,} training images with a known group is {name}", n_images=len(rows)
            )
    return found


def outcome_of(
    groups: TrainingGroups,
    scored: tuple[Scores, Scores],
    *,
    actions: Mapping[int, str],
    purpose: str,
    flags: Sequence[str] = (),
    facts: Mapping[str, Any] | None = None,
    degenerate: str = "",
) -> Outcome:
    """An outcome with scores, degenerate where one group has training images or where ``degenerate`` says so.

    Parameters
    ----------
    groups : TrainingGroups
        The training images.
    scored : tuple of Scores
        Of validation and of test.
    actions : mapping of int to str
        What was done to each group that has training images.
    purpose : str
        What the method does between groups, as in "nothing to ...".
    flags, facts
        As in ``Outcome``.
    degenerate : str
        Reason, or empty.
    """
    present = groups.present
    reason = degenerate
    if len(present) == 1:
        reason = f"only {groups.levels[present[0]]} has training images, so there is nothing to {purpose}"
    return Outcome(
        *scored,
        status=DEGENERATE if reason else "ok",
        reason=reason,
        flags=(*flags, *groups.lacks()),
        groups=groups.described(actions),
        facts={
            "n_images": len(groups.rows),
            "n_left_out": groups.n_training - len(groups.rows),
            **(facts or {}),
        },
    )


def refitted(unit: Unit, fit: Callable[[], Head]) -> tuple[Head, tuple[Scores, Scores]] | Outcome:
    """A refitted disease head with its scores of validation and test, or why it could not be fitted."""
    head = fit()
    if head.status in ("one class", "not fitted"):
        return Outcome(None, None, status=NOT_FITTED, reason=head.reason)
    logits = [head.logit(rows.features) for rows in (unit.validation, unit.test)]
    if not all(np.isfinite(found).all() for found in logits):
        return not_fitted("the refitted head gives scores that are not finite")
    return head, (scores_of_logits(logits[0]), scores_of_logits(logits[1]))

"""Linear erasure of the group: least squares (LEACE) and iterated nullspace projection (INLP).

Both are affine maps of a feature vector, folded into the disease head that is refitted on erased features.
The head carries balanced class weights under either weighting; what is erased is fitted without any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from frame.errors import InputError
from frame.heads.disease_heads import Head, fit_head
from frame.mitigation.affine_erasers import AffineEraser
from frame.mitigation.contract import Outcome, Rows, Unit, not_fitted
from frame.mitigation.least_squares import ErasedFeatures, erase, fit_eraser
from frame.mitigation.nullspace import fit_projector
from frame.mitigation.training_groups import TrainingGroups, outcome_of, refitted, training_groups

__all__ = ["ErasedFeatures", "erase", "least_squares_erasure", "nullspace_projection"]


def least_squares_erasure(unit: Unit) -> Outcome:
    """Erase the group from the features by LEACE and refit the disease head, class weights balanced.

    The eraser and the head are fitted on training images whose group is known; the erasure is part of the
    head's map, so validation and test images need no group.

    Parameters
    ----------
    unit : Unit

    Returns
    -------
    Outcome
        ``facts``: ``gap_before`` and ``gap`` (largest difference between two group means, in pooled standard
        deviations), ``directions`` taken out, and what the head reports. ``not fitted`` without a known
        group, with one label, or where the groups' means could not be made equal to 1e-6; ``degenerate``
        where one group alone has training images.
    """
    groups = training_groups(unit)
    if isinstance(groups, Outcome):
        return groups
    rows = unit.group_rows()
    try:
        eraser = fit_eraser(rows.features, rows.groups)
    except InputError as error:
        return not_fitted(str(error).rstrip("."))
    flags = [] if eraser.n_directions else ["the means of the groups are the same, so nothing was erased"]
    return _finished(unit, rows, groups, eraser, "erased by least squares", flags, {})


def nullspace_projection(unit: Unit) -> Outcome:
    """Project out, in ten rounds, the directions by which a probe tells the groups; refit the disease head.

    Parameters
    ----------
    unit : Unit

    Returns
    -------
    Outcome
        ``facts``: ``rounds``, ``directions``, ``stopped``, ``not_converged`` (see
        :func:`frame.mitigation.nullspace.fit_projector`), ``gap_before``, ``gap`` and what the head reports.
        ``not fitted`` without a known group or with one label; ``degenerate`` where one group alone has
        training images.
    """
    groups = training_groups(unit)
    if isinstance(groups, Outcome):
        return groups
    rows = unit.group_rows()
    eraser, facts = fit_projector(rows.features, rows.groups)
    flags = [f"stopped early: {facts['stopped']}"] if facts["stopped"] else []
    if facts["not_converged"]:
        numbers = ", ".join(str(number) for number in facts["not_converged"])
        flags.append(f"the probe did not converge in round {numbers}")
    return _finished(unit, rows, groups, eraser, "projected", flags, facts)


def _finished(
    unit: Unit,
    rows: Rows,
    groups: TrainingGroups,
    eraser: AffineEraser,
    action: str,
    flags: Sequence[str],
    facts: dict[str, Any],
) -> Outcome:
    """Refit the head behind the eraser and score validation and test."""

    def fit() -> Head:
        return fit_head(
            rows.features,
            rows.labels,
            kind=unit.head.kind,
            class_weight=unit.class_weight,
            map=eraser.standardised(rows.features),
            seed=unit.seed,
        )

    found = refitted(unit, fit)
    if isinstance(found, Outcome):
        return found
    head, scored = found
    if head.status == "not converged":
        flags = [*flags, f"the refitted head did not converge: {head.reason}"]
    done = {"gap_before": eraser.gap_before, "gap": eraser.gap, "directions": eraser.n_directions}
    return outcome_of(
        groups,
        scored,
        actions=dict.fromkeys(groups.present.tolist(), action if eraser.n_directions else "kept"),
        purpose="erase",
        flags=flags,
        facts=facts | done | {"head_status": head.status} | dict(head.details),
    )

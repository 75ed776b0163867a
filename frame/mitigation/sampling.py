"""Methods that change the weight or number of training images: group resampling and reweighing.

Both refit the disease head, of the kind of the unmitigated one, with a weight for each training row and
without copying a row. A row that was drawn three times has weight 3, and a row whose group is not known has
weight 0. With ``weighting="paper"`` neither carries class weights; with ``"equal"`` each row's weight is
multiplied by the balanced weight of its label.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from frame.heads.disease_heads import Head, fit_head
from frame.heads.linear_maps import standardising_map
from frame.mitigation.contract import Outcome, Unit
from frame.mitigation.training_groups import TrainingGroups, outcome_of, refitted, training_groups

__all__ = ["independence_weights", "resampled", "resampled_counts", "reweighed"]

Floats = NDArray[np.float64]
_COUNTS = ("n_images", "n_positive")  # a head counts rows without weight too


def resampled_counts(groups: NDArray[Any], seed: int) -> NDArray[np.int64]:
    """How often each row is drawn when every group is resampled with replacement to n / K rows.

    Parameters
    ----------
    groups : ndarray of int64, shape (rows,)
        Group of each row; rows of group -1 are not drawn, and n is the number of the others.
    seed : int
        Of ``numpy.random.default_rng``; groups are drawn in rising order.

    Returns
    -------
    ndarray of int64, shape (rows,)
        Sums to ``n // K`` in each of the K groups that have rows.
    """
    generator = np.random.default_rng(seed)
    present = np.unique(groups[groups >= 0])
    counts = np.zeros(len(groups), dtype=np.int64)
    if not len(present):
        return counts
    size = int((groups >= 0).sum()) // len(present)
    for group in present:
        members = np.flatnonzero(groups == group)
        drawn = generator.integers(len(members), size=size)
        counts[members] = np.bincount(drawn, minlength=len(members))
    return counts


def independence_weights(counts: NDArray[np.int64]) -> Floats:
    """Weight P(g) P(y) / P(g, y) of each cell of group and label (Kamiran and Calders, 2012).

    Parameters
    ----------
    counts : ndarray of int64, shape (groups, 2)
        Rows of each group with label 0 and 1.

    Returns
    -------
    ndarray of float64, shape (groups, 2)
        0 for a cell without rows. The weighted sizes of groups and of labels are the sizes themselves, except
        where a cell is empty.
    """
    table = counts.astype(np.float64)
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True) / table.sum()
    weights: Floats = np.divide(expected, table, out=np.zeros_like(table), where=table > 0)
    return weights


def resampled(unit: Unit) -> Outcome:
    """Refit the head on as many rows from each group, drawn with replacement (``resampled_counts``).

    The head's standardisation is that of the drawn rows. With ``weighting="equal"`` the balanced weights are
    those of the labels before drawing.
    """
    groups = training_groups(unit)
    if isinstance(groups, Outcome):
        return groups
    counts = resampled_counts(unit.train.groups, unit.seed)
    each = len(groups.rows) // len(groups.present)
    actions = {
        int(number): f"resampled from {groups.sizes[number]:,} to {each:,} images"
        for number in groups.present
    }
    return _refit(unit, groups, counts.astype(np.float64), actions, "even out", counted=True)


def reweighed(unit: Unit) -> Outcome:
    """Refit the head with weights that make group and label independent (``independence_weights``)."""
    groups = training_groups(unit)
    if isinstance(groups, Outcome):
        return groups
    cells = independence_weights(groups.counts)
    weights = np.zeros(groups.n_training)
    rows = groups.rows
    weights[rows] = cells[unit.train.groups[rows], unit.train.labels[rows]]
    actions = {
        int(number): "weights "
        + " and ".join(
            f"{cells[number, label]:.3f} for {name}"
            for label, name in enumerate(("negatives", "positives"))
            if groups.counts[number, label]
        )
        for number in groups.present
    }
    return _refit(unit, groups, weights, actions, "even out", counted=False)


def _refit(
    unit: Unit,
    groups: TrainingGroups,
    weights: Floats,
    actions: dict[int, str],
    purpose: str,
    *,
    counted: bool,
) -> Outcome:
    """The head with these row weights times those of the labels."""
    train = unit.train
    the_map = standardising_map(
        train.features, weights if counted else (train.groups >= 0).astype(np.float64)
    )
    weights = weights * groups.label_weights(unit.weighting)[train.labels]

    def fit() -> Head:
        return fit_head(
            train.features,
            train.labels,
            kind=unit.head.kind,
            class_weight=None,
            weights=weights,
            map=the_map,
            seed=unit.seed,
        )

    found = refitted(unit, fit)
    if isinstance(found, Outcome):
        return found
    head, scored = found
    flags = () if head.status == "converged" else (f"the refitted head: {head.reason or head.status}",)
    used = weights[weights > 0]
    return outcome_of(
        groups,
        scored,
        actions=actions,
        purpose=purpose,
        flags=flags,
        facts={
            **{name: value for name, value in head.details.items() if name not in _COUNTS},
            "converged": head.status == "converged",
            "n_rows_used": len(used),
            "effective_images": float(used.sum() ** 2 / (used**2).sum()),
        },
    )

"""Threshold shift: every group's scores moved so that one threshold gives each the same sensitivity."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from frame.mitigation.contract import DEGENERATE, FITTED, Floats, Outcome, Rows, Scores, Unit, not_fitted

__all__ = ["NONE_KNOWN", "SENSITIVITY", "group_counts", "in_order_of", "shifted_thresholds"]

#: Share of a group's positive validation images that its own threshold calls.
SENSITIVITY: Final = 0.80
#: What a method that needs groups answers where there is none.
NONE_KNOWN: Final = "no validation image has a known group"


def shifted_thresholds(unit: Unit) -> Outcome:
    """Move each group's probabilities by a constant, so that its own 0.80-sensitivity threshold lies at 0.5.

    A group's threshold ``t`` is the 20th percentile (linear interpolation) of the probabilities of its
    positive validation images. Ranks are ``probability - t + 0.5``, not clipped; probabilities are the same,
    clipped to [0, 1]. Fitted on validation alone; no class weight enters, under either weighting.

    Parameters
    ----------
    unit : Unit
        Scores of the head that is not mitigated are read, the features are not.

    Returns
    -------
    Outcome
        ``groups`` has one row per level. A group without a positive validation image keeps its scores, with
        the reason. ``degenerate`` where every group does; ``not fitted`` where no validation image has a
        known group.

    Notes
    -----
    Within a group the order of images is exactly that of the unmitigated ranks, so that its AUROC is
    unchanged. Where rounding would tie two images that the head tells apart (probabilities nearer than about
    1e-16, which includes those that round to 1), the larger rank is moved up by the smallest steps that keep
    the order. Images whose group is not known keep their probability, as rank too: the ranks of this
    method are probabilities and not logits.
    """
    if not unit.validation.known.any():
        return not_fitted(NONE_KNOWN)
    heads = unit.unmitigated
    ranks = [scores.probabilities.astype(np.float64, copy=True) for scores in heads]
    treated: list[dict[str, Any]] = []
    for code, level in enumerate(unit.levels):
        row = group_counts(unit.validation, code, level)
        if row["n_positive"] == 0:
            why = "no validation image" if row["n_images"] == 0 else "no positive validation image"
            treated.append(row | {"action": "kept its scores", "reason": why})
            continue
        chosen = unit.validation.groups == code
        positive = heads[0].probabilities[chosen & (unit.validation.labels == 1)]
        threshold = float(np.percentile(positive, 100 * (1 - SENSITIVITY), method="linear"))
        for part, rows in enumerate((chosen, unit.test.groups == code)):
            ranks[part][rows] += 0.5 - threshold
        _keep_order(ranks, heads, (chosen, unit.test.groups == code))
        shift = 0.5 - threshold
        treated.append(row | {"action": f"shifted by {shift:.6g}", "reason": "", "shift": shift})
    n_shifted = sum("shift" in row for row in treated)
    kept = tuple(f"{row['group']}: {row['action']}, {row['reason']}" for row in treated if "shift" not in row)
    return Outcome(
        validation=Scores(ranks[0], np.clip(ranks[0], 0.0, 1.0)),
        test=Scores(ranks[1], np.clip(ranks[1], 0.0, 1.0)),
        status=FITTED if n_shifted else DEGENERATE,
        reason=""
        if n_shifted
        else "no group has a positive validation image, so every group kept its scores",
        flags=kept,
        groups=tuple(treated),
        facts={"n_groups_shifted": n_shifted, "sensitivity": SENSITIVITY},
    )


def group_counts(validation: Rows, code: int, level: str) -> dict[str, Any]:
    """``group``, ``n_images`` and ``n_positive`` of one group's validation images."""
    chosen = validation.groups == code
    return {
        "group": level,
        "n_images": int(np.count_nonzero(chosen)),
        "n_positive": int(np.count_nonzero(chosen & (validation.labels == 1))),
    }


def in_order_of(values: Floats, keys: Floats) -> Floats:
    """The nearest larger values that rise strictly with ``keys``, as a rising map of ``keys`` ought to.

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
        A rising function of ``keys`` after rounding: ties, and steps down by rounding, can occur.
    keys : ndarray of float64, shape (n,)
        Equal keys get equal values.

    Returns
    -------
    ndarray of float64, shape (n,)
        ``values`` itself where they already rise; elsewhere a value is at least one float64 step above that
        of the next smaller key.
    """
    levels, place = np.unique(keys, return_inverse=True)
    lowest = np.full(len(levels), np.inf)
    np.minimum.at(lowest, place, values)
    if bool((np.diff(lowest) > 0).all()):
        return values
    # Floats as integers in the same order, neighbours one apart; 0.0 and -0.0 share a number.
    bits = (lowest + 0.0).view(np.int64)
    steps = np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)
    index = np.arange(len(levels))
    rising = np.maximum.accumulate(steps - index) + index
    back = np.where(rising < 0, np.iinfo(np.int64).min - rising, rising)
    found: Floats = back.view(np.float64)[place]
    return found


def _keep_order(
    ranks: list[Floats], heads: tuple[Scores, Scores], rows: tuple[NDArray[np.bool_], NDArray[np.bool_]]
) -> None:
    """Put the ranks of one group, over validation and test together, in the order of the head's."""
    values = np.concatenate([rank[chosen] for rank, chosen in zip(ranks, rows, strict=True)])
    keys = np.concatenate([scores.ranks[chosen] for scores, chosen in zip(heads, rows, strict=True)])
    ordered = in_order_of(values, keys)
    n_validation = int(np.count_nonzero(rows[0]))
    ranks[0][rows[0]] = ordered[:n_validation]
    ranks[1][rows[1]] = ordered[n_validation:]

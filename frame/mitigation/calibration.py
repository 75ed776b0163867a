"""Platt scaling by group: a logistic map of the head's logit, fitted on each group's validation images."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from frame.mitigation.contract import DEGENERATE, FITTED, Floats, Outcome, Unit, not_fitted, scores_of_logits
from frame.mitigation.operating_points import NONE_KNOWN, group_counts, in_order_of

__all__ = [
    "FEWEST_ROWS",
    "PlattMap",
    "fit_platt_map",
    "monotone_platt_by_group",
    "platt_by_group",
]

#: Validation images of a group below which it keeps the identity.
FEWEST_ROWS: Final = 10
_STEPS = 200
#: A slope whose effect over the spread of a group's logits is smaller than this is read as 0.
_FLAT = 1e-9


@dataclass(frozen=True)
class PlattMap:
    """``slope * logit + intercept``.

    Attributes
    ----------
    slope, intercept : float
        1 and 0, the identity, where nothing could be fitted.
    reason : str
        Why it is the identity; empty where the map was fitted.
    """

    slope: float = 1.0
    intercept: float = 0.0
    reason: str = ""

    @property
    def fitted(self) -> bool:
        """Whether the map comes from the rows."""
        return not self.reason

    def apply(self, logits: Floats) -> Floats:
        """The linear predictor, shape (n,); the logits themselves under the identity."""
        return self.slope * logits + self.intercept if self.fitted else logits


def fit_platt_map(logits: NDArray[Any], labels: NDArray[Any], *, fewest_rows: int = FEWEST_ROWS) -> PlattMap:
    """Unpenalised maximum-likelihood logistic map of one group's logits.

    Parameters
    ----------
    logits : ndarray of float, shape (n,)
        Finite.
    labels : ndarray of 0 and 1, shape (n,)
    fewest_rows : int
        Below this many rows the identity is kept.

    Returns
    -------
    PlattMap
        The identity, with the reason, for rows of one class, constant logits, logits that separate the
        classes (in either direction, ties at the border included: exactly the cases in which no finite
        maximum exists), too few rows, or a fit that does not settle.

    Notes
    -----
    Newton's method with halved steps on two parameters, the logits centred and scaled, to a gradient of
    1e-12 per row. With one predictor the classes are separated exactly when all logits of one are at least
    as large as all of the other (Albert and Anderson, Biometrika 71, 1984), which is compared and not
    estimated.
    """
    x = np.asarray(logits, dtype=np.float64)
    y = np.asarray(labels) == 1
    reason = _why_not(x, y, fewest_rows)
    if reason:
        return PlattMap(reason=reason)
    centre, spread = float(x.mean()), float(x.std())
    if not (math.isfinite(spread) and spread > 0):
        return PlattMap(reason="the spread of the logits cannot be represented")
    z = (x - centre) / spread
    share = float(y.mean())
    theta = np.array([math.log(share / (1 - share)), 0.0])
    design = np.column_stack([np.ones(len(z)), z])
    truth = y.astype(np.float64)
    loss = _loss(design, truth, theta)
    for _ in range(_STEPS):
        probability = expit(design @ theta)
        gradient = design.T @ (probability - truth) / len(z)
        if float(np.abs(gradient).max()) <= 1e-12:
            break
        curvature = (design * (probability * (1 - probability))[:, None]).T @ design / len(z)
        try:
            step = np.linalg.solve(curvature, gradient)
        except np.linalg.LinAlgError:
            return PlattMap(reason="the fit did not settle")
        size = 1.0
        while size > 1e-10:
            following = _loss(design, truth, theta - size * step)
            if following <= loss + 1e-15 * abs(loss):
                break
            size /= 2
        else:
            break
        theta, loss = theta - size * step, following
    worst = float(np.abs(design.T @ (expit(design @ theta) - truth)).max()) / len(z)
    if not worst <= 1e-9:
        return PlattMap(reason="the fit did not settle")
    slope = float(theta[1]) / spread if abs(theta[1]) > _FLAT else 0.0
    return PlattMap(slope, float(theta[0]) - slope * centre)


def platt_by_group(unit: Unit, *, fewest_rows: int = FEWEST_ROWS) -> Outcome:
    """Calibrate each group on its own validation images, as in the paper: a slope <= 0 is kept and flagged.

    Parameters
    ----------
    unit : Unit
        The logits of the head that is not mitigated are read, the features are not.
    fewest_rows : int
        Validation images of a group below which it keeps the identity.

    Returns
    -------
    Outcome
        Ranks are the linear predictor of the map, since the sigmoid saturates into ties; probabilities are
        its sigmoid. ``groups`` has one row per level, with slope and intercept; a group that cannot be
        fitted keeps the identity, with the reason (see :func:`fit_platt_map`). ``degenerate`` where every
        group does; ``not fitted`` where no validation image has a known group.

    Notes
    -----
    No class weight enters, under either weighting: the map answers to the share of positives that the
    validation images have, and a weight would undo the calibration.
    """
    return _calibrated(unit, fewest_rows, monotone=False)


def monotone_platt_by_group(unit: Unit, *, fewest_rows: int = FEWEST_ROWS) -> Outcome:
    """:func:`platt_by_group`, except that a slope <= 0 keeps the identity; no order within a group changes.

    Parameters and result as there. Where rounding would tie two logits that the head tells apart, the larger
    rank is moved up by the smallest steps that keep the order, so every within-group AUROC is unchanged.
    """
    return _calibrated(unit, fewest_rows, monotone=True)


def _calibrated(unit: Unit, fewest_rows: int, *, monotone: bool) -> Outcome:
    if not unit.validation.known.any():
        return not_fitted(NONE_KNOWN)
    ranks = [scores.ranks.astype(np.float64, copy=True) for scores in unit.unmitigated]
    treated: list[dict[str, Any]] = []
    flags: list[str] = []
    for code, level in enumerate(unit.levels):
        chosen = (unit.validation.groups == code, unit.test.groups == code)
        before = [rank[rows] for rank, rows in zip(ranks, chosen, strict=True)]
        found = fit_platt_map(before[0], unit.validation.labels[chosen[0]], fewest_rows=fewest_rows)
        row = group_counts(unit.validation, code, level)
        if found.fitted and found.slope <= 0:
            fall = f"slope {found.slope:.3g} on the validation images"
            if monotone:
                found = PlattMap(reason=f"{fall} is not positive")
            else:
                flags.append(
                    f"{level}: {fall} is not positive, so the order of its images is "
                    + ("lost" if found.slope == 0 else "reversed")
                )
        if not found.fitted:
            flags.append(f"{level}: kept the identity, {found.reason}")
            treated.append(row | {"action": "kept the identity", "reason": found.reason} | _numbers(found))
            continue
        after = found.apply(np.concatenate(before))
        if found.slope > 0:
            after = in_order_of(after, np.concatenate(before))
        ranks[0][chosen[0]], ranks[1][chosen[1]] = np.split(after, [len(before[0])])
        action = f"slope {found.slope:.6g}, intercept {found.intercept:.6g}"
        treated.append(row | {"action": action, "reason": ""} | _numbers(found))
    n_mapped = sum(not row["reason"] for row in treated)
    return Outcome(
        validation=scores_of_logits(ranks[0]),
        test=scores_of_logits(ranks[1]),
        status=FITTED if n_mapped else DEGENERATE,
        reason="" if n_mapped else "no group could be calibrated, so every group kept the identity",
        flags=tuple(flags),
        groups=tuple(treated),
        facts={"n_groups_calibrated": n_mapped},
    )


def _numbers(found: PlattMap) -> dict[str, float]:
    return {"slope": found.slope, "intercept": found.intercept}


def _why_not(x: Floats, y: NDArray[np.bool_], fewest_rows: int) -> str:
    n_rows, n_positive = len(y), int(np.count_nonzero(y))
    if n_rows == 0:
        return "no validation image"
    if n_positive in (0, n_rows):
        lacking = "positive" if n_positive == 0 else "negative"
        return f"{n_rows:,} validation {_images(n_rows)}, none {lacking}"
    if float(x.min()) == float(x.max()):
        return f"constant scores on {n_rows:,} validation {_images(n_rows)}"
    positive, negative = x[y], x[~y]
    if positive.min() >= negative.max() or negative.min() >= positive.max():
        return f"scores separate the classes on {n_rows:,} validation {_images(n_rows)}"
    if n_rows < fewest_rows:
        return f"{n_rows:,} validation {_images(n_rows)}, fewer than {fewest_rows}"
    return ""


def _images(n: int) -> str:
    return "image" if n == 1 else "images"


def _loss(design: Floats, truth: Floats, theta: Floats) -> float:
    predictor = design @ theta
    return float(np.mean(np.logaddexp(0.0, predictor) - truth * predictor))

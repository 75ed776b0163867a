"""Thresholds: one for all subgroups, given as a number or found on validation scores.

A threshold found on the scores that are audited would be tuned on them, so a rule always needs validation
scores. A positive decision is ``score >= threshold``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frame.errors import InputError
from frame.measures.columns import check_aligned, column, is_number, read_labels, read_scores

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

#: The rule used when validation scores are given without a rule.
DEFAULT_RULE = "sensitivity_0.80"
_ALLOWED = "a number, 'sensitivity_0.80' (any share in its place) or 'youden'"
#: Said beside results when a threshold decides the same way for every image.
NO_POSITIVE_PREDICTIONS = "no positive predictions"
NO_NEGATIVE_PREDICTIONS = "no negative predictions"


@dataclass(frozen=True)
class Threshold:
    """A threshold and where it comes from.

    Attributes
    ----------
    value : float
        On the scale of the scores; NaN only where no measure needs one.
    source : str
        ``given``, ``predictions`` (the scores are decisions), ``not used``, or the rule and
        ``on validation``.
    """

    value: float
    source: str


def _validation_rows(scores: Any, labels: Any) -> tuple[Floats, Booleans]:
    """Validation scores and labels that are known; an image without a label is left out."""
    columns = {
        "validation scores": column(scores, "validation scores"),
        "validation labels": column(labels, "validation labels"),
    }
    check_aligned(columns)
    values = read_scores(columns["validation scores"], "validation scores")
    truth, known = read_labels(columns["validation labels"])
    values, truth = values[known], truth[known]
    wrong = int((~np.isfinite(values)).sum())
    if wrong:
        raise InputError(f"validation scores: {wrong} are missing or infinite; give finite numbers.")
    if not truth.any():
        raise InputError("validation labels hold no positive; a threshold cannot be found on them.")
    return values, truth


def sensitivity_threshold(scores: Any, labels: Any, sensitivity: float = 0.80) -> float:
    """Threshold that gives a sensitivity on validation scores.

    Parameters
    ----------
    scores : array_like of float, shape (n,)
        Validation scores.
    labels : array_like of 0 and 1, shape (n,)
        Validation labels; images without one are left out.
    sensitivity : float
        In (0, 1].

    Returns
    -------
    float
        The (1 - sensitivity) quantile of the positives' scores, by linear interpolation: with the default
        the 20th percentile.

    Raises
    ------
    InputError
        No positive, a missing or infinite score, or a sensitivity outside (0, 1].
    """
    if not is_number(sensitivity) or not 0.0 < sensitivity <= 1.0:
        raise InputError(f"sensitivity is {sensitivity!r}; it must be a number above 0 and at most 1.")
    values, truth = _validation_rows(scores, labels)
    # 1 - 0.8 is not 0.2 in floating point; the paper's 20th percentile is meant.
    return float(np.quantile(values[truth], round(1.0 - float(sensitivity), 12)))


def youden_threshold(scores: Any, labels: Any) -> float:
    """Threshold with the largest TPR - FPR on validation scores.

    Parameters
    ----------
    scores : array_like of float, shape (n,)
        Validation scores.
    labels : array_like of 0 and 1, shape (n,)
        Validation labels; images without one are left out.

    Returns
    -------
    float
        One of the scores. Where several thresholds reach the largest TPR - FPR, the lowest of them: the
        one with the highest sensitivity. Compared in whole numbers, so rounding decides nothing.

    Raises
    ------
    InputError
        No positive or no negative, or a missing or infinite score.

    References
    ----------
    Youden WJ. Index for rating diagnostic tests. Cancer 3:32-35, 1950.
    """
    values, truth = _validation_rows(scores, labels)
    if truth.all():
        raise InputError("validation labels hold no negative; Youden's threshold cannot be found on them.")
    candidates = np.unique(values)
    positive, negative = np.sort(values[truth]), np.sort(values[~truth])
    hits = len(positive) - np.searchsorted(positive, candidates, side="left")
    false_alarms = len(negative) - np.searchsorted(negative, candidates, side="left")
    index = hits.astype(np.int64) * len(negative) - false_alarms.astype(np.int64) * len(positive)
    return float(candidates[int(np.argmax(index))])


def resolve_threshold(threshold: Any, validation: Any, *, needed: bool, binary: bool) -> Threshold:
    """Decide on the threshold.

    Parameters
    ----------
    threshold : float, str or None
        A number, ``sensitivity_0.80`` (or another share) or ``youden``. None: the rule
        ``sensitivity_0.80`` where validation scores are given.
    validation : (scores, labels) or None
        What a rule is computed on.
    needed : bool
        Whether any measure reads decisions. If not, nothing is computed, but the arguments are checked.
    binary : bool
        Whether the scores are decisions already. Then, without a number, the threshold is 0.5 and the
        decisions are the scores.

    Returns
    -------
    Threshold

    Raises
    ------
    InputError
        No number and no validation scores for scores that are not decisions; a rule without validation
        scores or for decisions; anything else that is no threshold.
    """
    rule = _check_rule(threshold)
    pair = _check_validation(validation)
    if not needed:
        return Threshold(math.nan, "not used")
    if isinstance(rule, float):
        return Threshold(rule, "given")
    if binary:
        if rule is not None:
            raise InputError(
                f"threshold is '{threshold}' and the scores are decisions, all 0 or 1; leave threshold= out."
            )
        return Threshold(0.5, "predictions")
    if pair is None:
        asked = f"threshold '{threshold}'" if rule is not None else "a rate on scores that are not all 0 or 1"
        raise InputError(
            f"{asked} needs validation scores, and none were given; give threshold= a number, or "
            "validation=(scores, labels) to find one at a sensitivity of 0.80."
        )
    kind, share = rule if rule is not None else ("sensitivity", 0.80)
    if kind == "youden":
        return Threshold(youden_threshold(*pair), "youden on validation")
    name = DEFAULT_RULE if rule is None else threshold
    return Threshold(sensitivity_threshold(*pair, sensitivity=share), f"{name} on validation")


def _check_rule(threshold: Any) -> float | tuple[str, float] | None:
    """A number, a rule with its share, or None."""
    if threshold is None:
        return None
    if isinstance(threshold, Threshold):
        return _check_rule(threshold.value)
    if is_number(threshold):
        if math.isinf(float(threshold)):
            raise InputError("threshold is infinite; allowed are " + _ALLOWED + ".")
        return float(threshold)
    if threshold == "youden" and isinstance(threshold, str):
        return "youden", math.nan
    if isinstance(threshold, str) and threshold.startswith("sensitivity_"):
        try:
            share = float(threshold.removeprefix("sensitivity_"))
        except ValueError:
            share = math.nan
        if 0.0 < share <= 1.0:
            return "sensitivity", share
        raise InputError(
            f"threshold is '{threshold}'; after 'sensitivity_' comes a number above 0, at most 1."
        )
    if isinstance(threshold, str):
        raise InputError(f"threshold is '{threshold}'; allowed are {_ALLOWED}.")
    found = (
        "NaN" if isinstance(threshold, Real) and threshold != threshold else f"a {type(threshold).__name__}"
    )
    raise InputError(f"threshold is {found}; allowed are {_ALLOWED}.")


def _check_validation(validation: Any) -> tuple[Any, Any] | None:
    if validation is None:
        return None
    if isinstance(validation, (tuple, list)) and len(validation) == 2:
        return validation[0], validation[1]
    raise InputError(
        f"validation is a {type(validation).__name__}; give two columns, validation=(scores, labels)."
    )


def decision_flags(scores: Floats, threshold: float) -> tuple[str, ...]:
    """What has to be said about a threshold above, or not above, every score.

    Parameters
    ----------
    scores : ndarray of float64, shape (n,)
    threshold : float

    Returns
    -------
    tuple of str
        ``no positive predictions``, ``no negative predictions`` or nothing. Rates are then 0 or 1 in every
        subgroup, and a difference of 0 is no evidence of fairness.
    """
    n_positive = int(np.count_nonzero(scores >= threshold))
    if n_positive == 0:
        return (NO_POSITIVE_PREDICTIONS,)
    return (NO_NEGATIVE_PREDICTIONS,) if n_positive == len(scores) else ()

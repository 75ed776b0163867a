"""The value of one measure on one set of rows.

Ranks are compared as they are given: no measure turns a score round, so an AUROC below one half stays
below one half. A positive decision is ``score >= threshold``. Nothing here resamples or groups.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from frame.errors import InputError
from frame.measures.registry import check_measure

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

#: Bins of the expected calibration error: [i/15, (i + 1)/15), the last one closed.
ECE_BINS = 15
#: Inner bin edges, 1/15 to 14/15, each the float64 nearest to i/15.
ECE_EDGES: Floats = np.arange(1, ECE_BINS) / ECE_BINS
SCALES = ("probability", "logit")


def check_scale(scale: object) -> str:
    """Return ``scale`` if it is ``probability`` or ``logit``; otherwise an InputError."""
    if isinstance(scale, str) and scale in SCALES:
        return scale
    raise InputError(f"scale is {scale!r}; allowed are 'probability', 'logit'.")


def probabilities(scores: Floats, scale: str = "probability") -> Floats:
    """Read scores as probabilities, which is what ECE and Brier do.

    Parameters
    ----------
    scores : ndarray of float64, shape (n,)
    scale : {"probability", "logit"}
        ``logit`` passes the scores through the logistic function; ``probability`` clips them to [0, 1].

    Returns
    -------
    ndarray of float64, shape (n,)
        In [0, 1].
    """
    read = expit(scores) if check_scale(scale) == "logit" else np.clip(scores, 0.0, 1.0)
    return np.asarray(read, dtype=np.float64)


def calibration_bins(probability: Floats) -> NDArray[np.int64]:
    """Bin, 0 to 14, of each probability; a value equal to the float64 of i/15 lies in bin i."""
    return np.searchsorted(ECE_EDGES, probability, side="right").astype(np.int64)


def decision_counts(scores: Floats, labels: Booleans, threshold: float) -> tuple[int, int, int, int]:
    """True positives, false positives, false negatives, true negatives at ``score >= threshold``."""
    decided = scores >= threshold
    n_positive = int(np.count_nonzero(labels))
    true_positive = int(np.count_nonzero(decided & labels))
    false_positive = int(np.count_nonzero(decided)) - true_positive
    return (
        true_positive,
        false_positive,
        n_positive - true_positive,
        len(labels) - n_positive - false_positive,
    )


def measure_value(
    measure: str,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    threshold: float | None = None,
    scale: str = "probability",
) -> float:
    """Value of one measure on one set of rows.

    Parameters
    ----------
    measure : str
        A key of :data:`frame.measures.MEASURES`.
    scores : array_like of float, shape (n,)
        Finite. ``auroc`` and ``auprc`` use their order only; ECE and Brier read them as
        :func:`probabilities`; every other measure compares them with ``threshold``.
    labels : array_like of bool, shape (n,)
        True, or 1, where the finding is present.
    threshold : float, optional
        On the scale of the scores as given; needed by the measures that read decisions.
    scale : {"probability", "logit"}
        How ECE and Brier read a score. Other measures do not use it.

    Returns
    -------
    float
        In [0, 1]. NaN where the measure is undefined: AUROC without both classes; TPR, FNR and average
        precision without a positive; FPR and specificity without a negative; PPV (NPV) without a
        positive (negative) decision; anything without rows.

    Raises
    ------
    InputError
        Unknown measure or scale, arrays of unequal length or not one-dimensional, scores with NaN, labels
        other than 0 and 1, or a measure that reads decisions without a threshold.

    Notes
    -----
    AUROC gives half credit to ties and is a ratio of whole numbers, so it cannot leave [0, 1]. ECE has 15
    bins [i/15, (i + 1)/15), the last closed: the sum of bin share times |mean label - mean score|.

    Examples
    --------
    >>> measure_value("auroc", [0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    0.75
    >>> measure_value("tpr", [0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1], threshold=0.4)
    0.5
    """
    chosen = check_measure(measure)
    values, truth = _check_rows(scores, labels)
    check_scale(scale)
    if chosen.reads == "decisions":
        return _decision_measure(chosen.name, values, truth, _check_threshold(chosen.name, threshold))
    if len(truth) == 0:
        return math.nan
    if chosen.name == "auroc":
        return _auroc(values, truth)
    if chosen.name == "auprc":
        return _average_precision(values, truth)
    probability = probabilities(values, scale)
    if chosen.name == "brier":
        return float(np.mean((probability - truth) ** 2))
    return _calibration_error(probability, truth)


def _check_rows(scores: ArrayLike, labels: ArrayLike) -> tuple[Floats, Booleans]:
    try:
        values = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("scores hold something that is no number; give one number per row.") from None
    truth = np.asarray(labels)
    if values.ndim != 1 or truth.ndim != 1 or len(values) != len(truth):
        raise InputError(
            f"scores have shape {values.shape} and labels have shape {truth.shape}; "
            "give one score and one label per row."
        )
    if np.isnan(values).any():
        raise InputError(f"scores hold {int(np.isnan(values).sum())} NaN; leave those rows out first.")
    if truth.dtype != np.bool_:
        present = truth == 1
        if not bool(np.all(present | (truth == 0))):
            raise InputError("labels hold values other than 0 and 1; map them to 0 and 1 first.")
        truth = present
    return values, np.asarray(truth, dtype=np.bool_)


def _check_threshold(measure: str, threshold: float | None) -> float:
    if threshold is None:
        raise InputError(f"measure {measure!r} reads decisions; give the threshold they are made at.")
    if math.isnan(threshold):
        raise InputError(f"threshold is NaN; give {measure!r} a number.")
    return float(threshold)


def _auroc(scores: Floats, labels: Booleans) -> float:
    positive, negative = np.sort(scores[labels]), np.sort(scores[~labels])
    if len(positive) == 0 or len(negative) == 0:
        return math.nan
    # Twice the number of correctly ordered pairs, ties once: whole numbers, so nothing is rounded.
    below = np.searchsorted(negative, positive, side="left")
    not_above = np.searchsorted(negative, positive, side="right")
    twice = int(below.sum(dtype=np.int64)) + int(not_above.sum(dtype=np.int64))
    return twice / (2 * len(positive) * len(negative))


def _average_precision(scores: Floats, labels: Booleans) -> float:
    n_positive = int(np.count_nonzero(labels))
    if n_positive == 0:
        return math.nan
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    last_of_tie = np.append(ordered[1:] != ordered[:-1], True)
    found = np.cumsum(labels[order])[last_of_tie]
    decided = np.flatnonzero(last_of_tie) + 1
    gained = np.diff(found, prepend=0)
    return min(1.0, float(np.sum(gained / n_positive * (found / decided))))


def _calibration_error(probability: Floats, labels: Booleans) -> float:
    bins = calibration_bins(probability)
    observed = np.bincount(bins, weights=labels, minlength=ECE_BINS)
    expected = np.bincount(bins, weights=probability, minlength=ECE_BINS)
    return float(np.sum(np.abs(observed - expected)) / len(labels))


def _decision_measure(name: str, scores: Floats, labels: Booleans, threshold: float) -> float:
    true_positive, false_positive, false_negative, true_negative = decision_counts(scores, labels, threshold)
    n_positive, n_negative = true_positive + false_negative, false_positive + true_negative
    above, below = {
        "tpr": (true_positive, n_positive),
        "fnr": (false_negative, n_positive),
        "fpr": (false_positive, n_negative),
        "specificity": (true_negative, n_negative),
        "accuracy": (true_positive + true_negative, n_positive + n_negative),
        "ppv": (true_positive, true_positive + false_positive),
        "npv": (true_negative, true_negative + false_negative),
    }[name]
    return above / below if below else math.nan

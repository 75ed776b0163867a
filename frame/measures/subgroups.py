"""The table of subgroups: counts, value, and whether a subgroup can be evaluated.

The rule is used by the observed difference and by its reference alike, so both speak of the same
subgroups.
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frame.errors import InputError
from frame.measures.attributes import Attribute
from frame.measures.registry import Measure, check_measure
from frame.measures.rows import ScoredRows, are_decisions
from frame.measures.thresholds import Threshold
from frame.measures.values import check_scale, measure_value

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

#: Images a subgroup needs by default.
MIN_SIZE = 20


def check_min_size(min_size: Any) -> int:
    """Return the smallest number of images a subgroup may have; a whole number, 1 or more."""
    if isinstance(min_size, Integral) and min_size is not True and int(min_size) >= 1:
        return int(min_size)
    raise InputError(f"min_size is {min_size!r}; it must be a whole number of images, 1 or more.")


def check_probabilities(scores: Floats, measure: str, scale: str, score: str = "score") -> None:
    """Refuse scores outside [0, 1] where a measure reads them as probabilities.

    Parameters
    ----------
    scores : ndarray of float64, shape (n,)
    measure : str
    scale : {"probability", "logit"}
    score : str
        Name of the score, for the sentence.

    Raises
    ------
    InputError
        For ECE and Brier only, with ``scale="probability"``. Ranks and thresholds read any number.
    """
    if check_measure(measure).reads != "probabilities" or check_scale(scale) == "logit" or len(scores) == 0:
        return
    outside = int(np.count_nonzero((scores < 0.0) | (scores > 1.0)))
    if outside:
        raise InputError(
            f"score '{score}': {outside} of {len(scores)} lie outside 0 to 1, and measure '{measure}' reads "
            "probabilities; if they are logits say scale='logit', otherwise map them to 0 to 1 first."
        )


def reason_not_evaluable(measure: str, n_images: int, n_positive: int, min_size: int = MIN_SIZE) -> str:
    """Why a subgroup with these counts cannot be evaluated; empty when it can.

    Parameters
    ----------
    measure : str
    n_images, n_positive : int
        Images of the subgroup with a label, and the positive ones.
    min_size : int
        Images it must have.

    Returns
    -------
    str
        For example ``fewer than 20 images (12)`` or ``0 negatives``. That PPV and NPV also need decisions
        is said by :func:`subgroup_table`.
    """
    chosen: Measure = check_measure(measure)
    if n_images < min_size:
        return f"fewer than {min_size} images ({n_images})" if min_size > 1 else "0 images"
    if chosen.needs in ("positives", "both") and n_positive == 0:
        return "0 positives"
    if chosen.needs in ("negatives", "both") and n_positive == n_images:
        return "0 negatives"
    return ""


def subgroup_table(
    rows: ScoredRows,
    attribute: str | Attribute,
    score: str,
    measure: str,
    *,
    threshold: float | Threshold | None = None,
    scale: str = "probability",
    min_size: int = MIN_SIZE,
) -> pd.DataFrame:
    """Value of one measure in every subgroup of one attribute.

    Parameters
    ----------
    rows : ScoredRows
    attribute : str or Attribute
        One of ``rows.attributes``.
    score : str
        One of the names in ``rows.scores``.
    measure : str
        A key of :data:`frame.measures.MEASURES`.
    threshold : float or Threshold, optional
        Needed by measures that read decisions, unless the scores are decisions (all 0 or 1; then 0.5).
    scale : {"probability", "logit"}
        How ECE and Brier read the scores.
    min_size : int
        Images a subgroup must have.

    Returns
    -------
    DataFrame
        One row per level in order, also for a level without images: ``group, n_images, n_positive,
        n_negative, n_patients, value, status, reason, below_chance, evaluable``. ``status`` is ``ok`` or
        ``not estimable``; the latter has a ``reason`` and the value NaN. ``below_chance`` marks an AUROC
        below 0.5, which is reported as it is.

    Raises
    ------
    InputError
        Unknown names, a missing threshold, or scores outside [0, 1] for ECE and Brier without
        ``scale="logit"``.
    """
    chosen = check_measure(measure)
    size = check_min_size(min_size)
    found = rows.attribute(attribute) if isinstance(attribute, str) else attribute
    scores = rows.score(score)
    check_probabilities(scores, chosen.name, scale, score)
    cut = threshold.value if isinstance(threshold, Threshold) else threshold
    if chosen.reads == "decisions" and cut is None and scale == "probability" and are_decisions(scores):
        cut = 0.5
    lines = []
    for level, members in zip(found.levels, _members(found), strict=True):
        values, labels = scores[members], rows.labels[members]
        n_images, n_positive = len(labels), int(np.count_nonzero(labels))
        reason = reason_not_evaluable(chosen.name, n_images, n_positive, size)
        value = math.nan
        if not reason:
            value = measure_value(chosen.name, values, labels, threshold=cut, scale=scale)
        if not reason and math.isnan(value):
            reason = f"no {'positive' if chosen.name == 'ppv' else 'negative'} decisions"
        lines.append(
            {
                "group": level,
                "n_images": n_images,
                "n_positive": n_positive,
                "n_negative": n_images - n_positive,
                "n_patients": len(pd.unique(rows.patients[members])) if rows.patients_given else n_images,
                "value": value,
                "status": "not estimable" if reason else "ok",
                "reason": reason,
                "below_chance": chosen.name == "auroc" and value < 0.5,
                "evaluable": not reason,
            }
        )
    return pd.DataFrame(lines, columns=_COLUMNS)


_COLUMNS = (
    *("group", "n_images", "n_positive", "n_negative", "n_patients"),
    *("value", "status", "reason", "below_chance", "evaluable"),
)


def _members(attribute: Attribute) -> list[NDArray[np.int64]]:
    """Rows of each level, in their order."""
    n_levels = len(attribute.levels)
    narrow = attribute.codes.astype(np.int16) if n_levels < 2**15 else attribute.codes
    order = np.argsort(narrow, kind="stable")
    edges = np.searchsorted(attribute.codes[order], np.arange(n_levels + 1))
    return [order[edges[i] : edges[i + 1]] for i in range(n_levels)]


def evaluable(table: pd.DataFrame) -> list[str]:
    """Names of the subgroups that can be evaluated, in the order of the table."""
    return [str(name) for name in table.loc[table["evaluable"].astype(bool), "group"]]

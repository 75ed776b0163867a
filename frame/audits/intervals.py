"""The interval of the true difference of one audit, or why there is none."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frame.audits.comparisons import Comparison
from frame.audits.resampled import ECE_BIASED, Replicates
from frame.audits.settings import Settings
from frame.inference.refusals import too_often_undefined
from frame.reference.simultaneous import true_difference_interval, variances_apart

__all__ = ["true_interval"]

Floats = NDArray[np.float64]

#: Column with the cases behind a value; an AUROC has the smaller class, the others all images.
_CASES = {"tpr": "n_positive", "fnr": "n_positive", "fpr": "n_negative", "specificity": "n_negative"}


def true_interval(
    comparison: Comparison, table: pd.DataFrame, settings: Settings, replicates: Replicates
) -> tuple[float, float, str]:
    """95 % interval of the true difference between the evaluable subgroups.

    Parameters
    ----------
    comparison : Comparison
        With the sampling variances of its reference, if it has any.
    table : DataFrame
        As :func:`frame.measures.subgroup_table`.
    settings : Settings
        Measure and seed.
    replicates : Replicates
        Bootstrap values, for a reference without variances.

    Returns
    -------
    tuple of float, float and str
        Ends on the 0-1 scale and an empty reason, or NaN and the reason.
    """
    chosen = np.flatnonzero(table["evaluable"].to_numpy(dtype=bool))
    values = table["value"].to_numpy(dtype=np.float64)[chosen]
    reason, covariance = _refusal(comparison, settings), comparison.variances
    if not reason and covariance is None:
        reason, covariance = _bootstrap_covariance(table, chosen, replicates)
    elif not reason and covariance is not None:
        reason, covariance = _spread(comparison, table.iloc[chosen], values, settings, covariance)
    if reason or covariance is None:
        return math.nan, math.nan, f"no interval: {reason}"
    made = true_difference_interval(values, covariance, seed=settings.seed)
    return made.lo, made.hi, ""


def _refusal(comparison: Comparison, settings: Settings) -> str:
    if settings.measure == "ece":
        return f"{ECE_BIASED}, and the observed gap with it"
    return comparison.reason


def _spread(
    comparison: Comparison, evaluable: pd.DataFrame, values: Floats, settings: Settings, variances: Floats
) -> tuple[str, Floats | None]:
    """Variances of subgroups that may differ, or why there are none."""
    common = comparison.common
    if not 0.0 < common < 1.0 or not np.all(variances > 0.0):
        return "a sampling variance is 0", None
    if settings.measure == "auroc":
        cases = evaluable[["n_positive", "n_negative"]].min(axis=1)
    else:
        cases = evaluable[_CASES.get(settings.measure, "n_images")]
    return "", variances_apart(values, variances, common, cases.to_numpy(dtype=np.float64))


def _bootstrap_covariance(
    table: pd.DataFrame, chosen: NDArray[np.intp], replicates: Replicates
) -> tuple[str, Floats | None]:
    """Covariance of the subgroup values over resampled patients, or why there is none."""
    if replicates.values is None:
        return "the bootstrap is switched off (resamples=0)", None
    for place in chosen.tolist():
        why = replicates.refusal(place)
        if why:
            return f"'{table['group'].iloc[place]}' has {why.split(':')[0]}", None
    drawn = replicates.values[1 + chosen]
    undefined = too_often_undefined(drawn.sum(axis=0))
    if undefined:
        return undefined, None
    covariance = np.cov(drawn[:, ~np.isnan(drawn).any(axis=0)])
    if not np.all(np.diag(covariance) > 0.0):
        return "a subgroup has the same value in every resample", None
    return "", covariance

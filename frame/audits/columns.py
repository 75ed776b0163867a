"""Columns of an audit of scores, in their order, and the type of each."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from frame.measures.differences import worst_group

if TYPE_CHECKING:
    import pandas as pd

    from frame.audits.result import Audit

__all__ = ["COLUMNS", "TEXT", "row_of", "typed"]

#: The columns that audits of claims have too come first, in the same order.
COLUMNS = (
    "score",
    "label",
    "attribute",
    "measure",
    "method",
    "protocol",
    "n_groups",
    "smallest_group",
    "observed",
    "overall",
    "overall_source",
    "reference",
    "reference_sd",
    "reference_lo",
    "reference_hi",
    "remainder",
    "share",
    "p",
    "q",
    "exceeds",
    "status",
    "reason",
    "p_heterogeneity",
    "interval_lo",
    "interval_hi",
    "worst_group",
    "flags",
    "worst_value",
    "p_heterogeneity_error",
    "overall_pooled",
    "overall_within",
    "equity_scaled",
    "detectable_80",
    "margin",
    "within",
    "stratum",
    "threshold",
    "threshold_source",
    "unit",
    "n_images",
    "n_positive",
    "n_patients",
    "n_missing",
    "n_missing_positive",
    "n_unlabelled",
    "n_without_score",
    "n_without_patient",
    "family",
    "family_size",
)
#: Columns of text, also the ones in which words from a file stand.
TEXT = (
    "score",
    "label",
    "attribute",
    "measure",
    "method",
    "protocol",
    "overall_source",
    "status",
    "reason",
    "worst_group",
    "flags",
    "within",
    "stratum",
    "threshold_source",
    "unit",
    "family",
)
_WHOLE = (
    "n_groups",
    "smallest_group",
    "n_images",
    "n_positive",
    "n_patients",
    "n_missing",
    "n_missing_positive",
    "n_unlabelled",
    "n_without_score",
    "n_without_patient",
    "family_size",
)


def typed(table: pd.DataFrame) -> pd.DataFrame:
    """Give every column one type: text, whole numbers, yes or no, numbers.

    Parameters
    ----------
    table : DataFrame
        With the columns of :data:`COLUMNS`.

    Returns
    -------
    DataFrame
    """
    for column in table.columns:
        if column in TEXT:
            table[column] = table[column].fillna("").astype(str)
        elif column in _WHOLE:
            table[column] = table[column].astype("Int64")
        elif column == "exceeds":
            table[column] = table[column].astype("boolean")
        else:
            table[column] = table[column].astype("float64")
    return table


def row_of(audit: Audit) -> dict[str, Any]:
    """Return the row of an audit, a dict with the columns of :data:`COLUMNS`."""
    reference = audit.reference
    lo, hi = reference.interval if reference is not None else (math.nan, math.nan)
    evaluable = audit.table[audit.table["evaluable"]]
    worst_value = worst_group(audit.table, audit.measure)[1]
    values: dict[str, Any] = {
        "score": audit.score,
        "label": audit.label,
        "attribute": audit.attribute,
        "measure": audit.measure,
        "method": audit.method,
        "protocol": audit.protocol,
        "n_groups": len(evaluable),
        "smallest_group": int(evaluable["n_images"].min()) if len(evaluable) else None,
        "observed": audit.observed,
        "overall": audit.overall,
        "overall_source": audit.overall_source,
        "reference": reference.mean if reference is not None else math.nan,
        "reference_sd": reference.sd if reference is not None else math.nan,
        "reference_lo": lo,
        "reference_hi": hi,
        "remainder": audit.remainder,
        "share": audit.share,
        "p": audit.p,
        "q": audit.q,
        "exceeds": audit.exceeds,
        "status": audit.status,
        "reason": audit.reason,
        "p_heterogeneity": audit.p_heterogeneity,
        "interval_lo": audit.interval[0],
        "interval_hi": audit.interval[1],
        "worst_group": audit.worst_name,
        "flags": "; ".join(audit.flags),
        "worst_value": worst_value,
        "p_heterogeneity_error": audit.p_heterogeneity_error,
        "overall_pooled": audit.overall_pooled,
        "overall_within": audit.overall_within,
        "equity_scaled": audit.equity_scaled,
        "detectable_80": audit.detectable if audit.exceeds is False else math.nan,
        "margin": audit.margin,
        "within": audit.within,
        "stratum": audit.stratum,
        "threshold": audit.threshold.value,
        "threshold_source": audit.threshold.source,
        "unit": audit.unit,
        "n_images": audit.n_images,
        "n_positive": audit.n_positive,
        "n_patients": audit.n_patients,
        "n_missing": audit.n_missing,
        "n_missing_positive": audit.n_missing_positive,
        "n_unlabelled": audit.n_unlabelled,
        "n_without_score": audit.n_without_score,
        "n_without_patient": audit.n_without_patient,
        "family": audit.family,
        "family_size": audit.family_size,
    }
    return {name: values[name] for name in COLUMNS}

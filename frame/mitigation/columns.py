"""Columns of the tables of a comparison of methods, in their order, and the type of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ACHIEVABLE", "COLUMNS", "GROUPS", "METHODS_RUN", "SPLIT_COUNTS", "TEXT", "table_of"]

#: One row per attribute, method and measure; and two per attribute and measure for what is achievable.
COLUMNS: Final = (
    *("label", "attribute", "method", "name", "kind", "measure", "status", "reason"),
    *("n_groups", "smallest_group", "before", "after", "after_lo", "after_hi"),
    *("change", "change_lo", "change_hi", "change_p", "change_q", "change_family", "changes"),
    *("reference", "reference_lo", "reference_hi", "reference_method", "remainder", "share"),
    *("exceedance", "exceedance_q", "exceedance_family", "exceeds", "p_heterogeneity"),
    *("worst_group", "worst_value", "worst_group_before", "worst_value_before"),
    *("auroc_before", "auroc", "auroc_change", "auroc_change_lo", "auroc_change_hi", "auroc_change_p"),
    *("validation_difference", "validation_auroc", "chosen_on", "chosen", "excluded"),
    *("threshold", "threshold_source", "head", "weighting", "n_images", "n_positive", "n_patients"),
    *("n_without_group", "n_train", "n_train_known", "unit", "resamples", "seed", "flags"),
)
#: One row per attribute, method, measure and group.
GROUPS: Final = (
    *("label", "attribute", "method", "name", "measure", "group"),
    *("n_images", "n_positive", "n_negative", "n_patients", "value", "lo", "hi"),
    *("change", "change_lo", "change_hi", "change_p", "status", "reason", "action", "action_reason"),
)
#: One row per attribute, measure and place of choice.
ACHIEVABLE: Final = (
    *("label", "attribute", "measure", "chosen_on", "method", "name", "status", "reason"),
    *("before", "after", "chosen_difference", "change", "change_lo", "change_hi"),
    *("auroc_before", "auroc", "chosen_auroc", "tolerance"),
    *("reference", "reference_lo", "reference_hi"),
    *("exceedance", "exceedance_q", "exceedance_family", "exceeds"),
    *("n_candidates", "candidates", "excluded"),
)
#: One row per attribute and method.
METHODS_RUN: Final = (
    *("label", "attribute", "method", "name", "kind", "status", "reason", "flags", "facts", "sentence"),
)
#: One row per split.
SPLIT_COUNTS: Final = ("split", "n_images", "n_positive", "n_patients", "n_images_before_cap")

#: Columns of text, also those in which words from a file stand.
TEXT: Final = frozenset(
    (
        *("label", "attribute", "method", "name", "kind", "measure", "status", "reason", "change_family"),
        *(
            "reference_method",
            "exceedance_family",
            "worst_group",
            "worst_group_before",
            "chosen_on",
            "chosen",
        ),
        *("excluded", "threshold_source", "head", "weighting", "unit", "flags", "group", "action"),
        *("action_reason", "candidates", "facts", "sentence", "split"),
    )
)
_FLAGS: Final = frozenset(("changes", "exceeds"))
_WHOLE: Final = frozenset(
    (
        *("n_groups", "smallest_group", "n_images", "n_positive", "n_negative", "n_patients"),
        *("n_without_group", "n_train", "n_train_known", "resamples", "seed", "n_candidates"),
        "n_images_before_cap",
    )
)


def table_of(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    """Rows as a table in which every column has one type: text, whole numbers, yes or no, numbers.

    Parameters
    ----------
    rows : sequence of mapping
        What a row lacks is missing; what is no column is left out.
    columns : sequence of str
        In their order.

    Returns
    -------
    DataFrame
    """
    import pandas as pd

    made: dict[str, Any] = {}
    for name in columns:
        values = [row.get(name) for row in rows]
        known = [None if value is None or pd.isna(value) else value for value in values]
        if name in TEXT:
            made[name] = pd.Series(["" if value is None else str(value) for value in known], dtype="str")
        elif name in _WHOLE:
            made[name] = pd.array(known, dtype="Int64")
        elif name in _FLAGS:
            made[name] = pd.array(known, dtype="boolean")
        else:
            made[name] = pd.Series(known, dtype="float64")
    return pd.DataFrame(made, columns=list(columns))

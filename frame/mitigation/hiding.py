"""Tables of a comparison without small counts, and without what they could be computed from.

The rules are those of a report of audits (:mod:`frame.audits.suppression`): a group with a count below the
limit is hidden, with enough others that no subtraction gives it away; where the lowest or the highest value
of a difference is hidden, both are. Here the counts are the same under every method, so a group is hidden
under all of them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pandas as pd

from frame.audits.settings import check_suppression
from frame.audits.suppression import hides_totals, shown_count
from frame.mitigation.columns import COLUMNS, GROUPS, table_of
from frame.mitigation.hidden_texts import masked, without_small_counts

if TYPE_CHECKING:
    from frame.mitigation.comparison import Comparison

__all__ = [
    "SUPPRESSED",
    "hidden_values",
    "masked",
    "suppressed_groups",
    "suppressed_splits",
    "suppressed_table",
    "without_small_counts",
]

SUPPRESSED = "counts below {limit} and what they follow from are suppressed"
_COUNTS = ("n_images", "n_positive", "n_negative", "n_patients")


def hidden_values(values: dict[str, float], hidden: frozenset[str]) -> frozenset[str]:
    """Groups whose value must not be shown: the hidden ones, and both ends where one of them is hidden.

    Parameters
    ----------
    values : dict of str to float
        Value of each group under one method; NaN where not estimable.
    hidden : frozenset of str
        Hidden groups.

    Returns
    -------
    frozenset of str
    """
    known = {group: value for group, value in values.items() if not math.isnan(value)}
    if not hidden or not known:
        return hidden
    ends = {min(known, key=lambda g: known[g]), max(known, key=lambda g: known[g])}
    return hidden | ends if ends & hidden else hidden


def suppressed_table(comparison: Comparison, suppress_below: int) -> pd.DataFrame:
    """The rows of :meth:`frame.mitigation.comparison.Comparison.to_frame` without small counts.

    Parameters
    ----------
    comparison : Comparison
        The result.
    suppress_below : int
        Smallest count that may be shown; 0 shows all.

    Returns
    -------
    DataFrame
        A suppressed number is missing, and ``flags`` says so.
    """
    limit = check_suppression(suppress_below)
    if limit == 0:
        return comparison.to_frame()
    comparison = without_small_counts(comparison, limit)
    hidden = comparison.hidden(limit)
    audits = dict(zip(comparison.attributes, comparison.audits, strict=True))
    unnamed = _unnamed(comparison, hidden)
    rows: list[dict[str, Any]] = []
    for row in comparison.table.to_dict("records"):
        line: dict[str, Any] = {str(name): value for name, value in row.items()}
        attribute = str(line["attribute"])
        changed = bool(hidden[attribute])
        if changed:
            line["smallest_group"] = None
        method = str(line["chosen"] or line["method"])
        gone = unnamed.get((attribute, method, str(line["measure"])), frozenset())
        start = unnamed.get((attribute, "unmitigated", str(line["measure"])), frozenset())
        if line["worst_group"] in gone:
            line["worst_value"] = math.nan
        if line["worst_group_before"] in start:
            line["worst_value_before"] = math.nan
        if hides_totals(audits[attribute], limit):
            line |= dict.fromkeys(("n_images", "n_positive", "n_patients"))
        for name in ("n_images", "n_positive", "n_patients", "n_without_group", "n_train", "n_train_known"):
            value = line[name]
            if value is not None and not pd.isna(value) and 0 < int(value) < limit:
                line[name] = None
                changed = True
        apart = line["n_train"], line["n_train_known"]
        if not any(v is None or pd.isna(v) for v in apart) and 0 < int(apart[0]) - int(apart[1]) < limit:
            line["n_train_known"] = None
        flags = [str(line["flags"]), SUPPRESSED.format(limit=limit) if changed else ""]
        line["flags"] = "; ".join(part for part in flags if part)
        rows.append(line)
    return table_of(rows, COLUMNS)


def suppressed_groups(comparison: Comparison, suppress_below: int) -> pd.DataFrame:
    """The rows of ``by_group`` in which nothing of a hidden group is left but its name.

    Parameters
    ----------
    comparison, suppress_below
        As in :func:`suppressed_table`.

    Returns
    -------
    DataFrame
    """
    limit = check_suppression(suppress_below)
    if limit == 0:
        return comparison.by_group.copy()
    comparison = without_small_counts(comparison, limit)
    hidden = comparison.hidden(limit)
    unnamed = _unnamed(comparison, hidden)
    rows: list[dict[str, Any]] = []
    for row in comparison.by_group.to_dict("records"):
        line: dict[str, Any] = {str(name): value for name, value in row.items()}
        attribute, group = str(line["attribute"]), str(line["group"])
        gone = unnamed[attribute, str(line["method"]), str(line["measure"])]
        start = unnamed[attribute, "unmitigated", str(line["measure"])]
        if group in hidden[attribute]:
            line |= dict.fromkeys(_COUNTS)
            line |= {"status": "suppressed", "reason": f"counts below {limit}, or next to them"}
        if group in gone | start:
            # A change beside one of two values gives the other.
            line |= dict.fromkeys(("change", "change_lo", "change_hi", "change_p"))
        if group in gone:
            line |= dict.fromkeys(("value", "lo", "hi"))
        rows.append(line)
    return table_of(rows, GROUPS)


def _unnamed(
    comparison: Comparison, hidden: dict[str, frozenset[str]]
) -> dict[tuple[str, str, str], frozenset[str]]:
    """Groups whose value is not shown, by attribute, method and measure."""
    found = {}
    keys = ["attribute", "method", "measure"]
    for key, part in comparison.by_group.groupby(keys, sort=False):
        attribute, method, measure = (str(one) for one in key)
        values = dict(zip(part["group"].astype(str), part["value"].astype(float), strict=True))
        found[attribute, method, measure] = hidden_values(values, hidden[attribute])
    return found


def suppressed_splits(comparison: Comparison, suppress_below: int) -> list[dict[str, str]]:
    """Counts of the splits as text; small ones are not shown."""
    limit = check_suppression(suppress_below)
    rows = []
    hide = any(hides_totals(audit, limit) for audit in comparison.audits) if limit else False
    for row in comparison.splits.to_dict("records"):
        line = {"split": str(row["split"])}
        for name in ("n_images", "n_positive", "n_patients", "n_images_before_cap"):
            value = row[name]
            known = value is not None and not pd.isna(value)
            line[name] = (
                shown_count(int(value), limit, hide and row["split"] == "test") if known else "no ids"
            )
        rows.append(line)
    return rows

"""Which subgroups a report must not show: small counts, and what they could be computed from.

A subgroup with a count below the limit is hidden as a whole: its small counts read ``<N``, its other counts
and its value are left out. Totals stay in sight, so a single hidden subgroup could be computed by
subtraction; then the smallest other one is hidden with it, and more until the hidden ones together reach the
limit. A small number of images that were left out (without a group, a label, a score or a patient id) counts
like a hidden subgroup, and then the totals of the audited images are hidden too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from frame.audits.columns import typed
from frame.audits.settings import check_suppression

if TYPE_CHECKING:
    from frame.audits.result import Audit

__all__ = [
    "COUNTS",
    "hidden_subgroups",
    "hides_totals",
    "hides_values",
    "masked_text",
    "shown_count",
    "suppressed_frame",
]

#: Columns of counts of a subgroup.
COUNTS = ("n_images", "n_positive", "n_negative", "n_patients")
_HIDDEN = "hidden"
#: Columns of counts of an audit.
_TOTALS = (
    *("smallest_group", "n_positive", "n_images", "n_patients", "n_missing_positive", "n_missing"),
    *("n_unlabelled", "n_without_score", "n_without_patient"),
)
_NOUNS = r"(?= (?:of|patients|images|pooled|positives|negatives)\b)"


def hidden_subgroups(audits: Sequence[Audit], suppress_below: int) -> list[frozenset[str]]:
    """Subgroups to hide in each of the audits of one report.

    Parameters
    ----------
    audits : sequence of Audit
        All that one report, or one table, shows.
    suppress_below : int
        Smallest count that may be shown; 0 hides nothing.

    Returns
    -------
    list of frozenset of str
        Names of subgroups, one set per audit.

    Notes
    -----
    A subgroup that is hidden in one stratum is hidden in all of them, because the strata add up. An
    intersection of attributes that are in the report themselves is hidden as a whole if any of it is, because
    its cells add up to the subgroups of those attributes.
    """
    limit = check_suppression(suppress_below)
    if limit == 0:
        return [frozenset() for _ in audits]
    alone = [_hidden(audit.table, limit, hides_totals(audit, limit)) for audit in audits]
    together: dict[tuple[str, str, str], frozenset[str]] = {}
    for audit, hidden in zip(audits, alone, strict=True):
        key = (audit.score, audit.label, audit.attribute)
        together[key] = together.get(key, frozenset()) | hidden
    attributes = {audit.attribute for audit in audits}
    found: list[frozenset[str]] = []
    for audit in audits:
        hidden = together[audit.score, audit.label, audit.attribute]
        parts = audit.attribute.split(" x ")
        if hidden and len(parts) > 1 and attributes & set(parts):
            hidden = frozenset(map(str, audit.table["group"]))
        found.append(hidden)
    return found


def hides_totals(audit: Audit, suppress_below: int) -> bool:
    """Whether so few images were left out that the totals would tell how many.

    Parameters
    ----------
    audit : Audit
        The audit.
    suppress_below : int
        Smallest count that may be shown; 0 hides nothing.
    """
    left_out = (audit.n_missing, audit.n_unlabelled, audit.n_without_score, audit.n_without_patient)
    return any(0 < count < suppress_below for count in left_out)


def _hidden(table: pd.DataFrame, limit: int, few_left_out: bool) -> frozenset[str]:
    counts = table.set_index("group")[list(COUNTS)]
    hidden = [str(group) for group in counts.index[(counts < limit).any(axis=1)]]
    if not hidden and not few_left_out:
        return frozenset()
    others = counts.drop(index=hidden).sort_values("n_images", kind="stable").index.tolist()
    while others:
        if hidden and bool((counts.loc[hidden].sum() >= limit).all()):
            break
        hidden.append(str(others.pop(0)))
    return frozenset(hidden)


def hides_values(audit: Audit, hidden: frozenset[str]) -> frozenset[str]:
    """Subgroups whose value must not be shown.

    Parameters
    ----------
    audit : Audit
        The audit.
    hidden : frozenset of str
        Its hidden subgroups.

    Returns
    -------
    frozenset of str
        The hidden ones; where the lowest or the highest is among them, both of those, because one follows
        from the other and the difference.
    """
    evaluable = audit.table[audit.table["evaluable"].astype(bool)]
    if not hidden or len(evaluable) == 0:
        return hidden
    values = evaluable.set_index("group")["value"]
    ends = {str(values.idxmin()), str(values.idxmax())}
    return hidden | ends if ends & hidden else hidden


def shown_count(count: int, limit: int, hidden: bool = False) -> str:
    """Return a count as a report shows it: ``<N``, ``hidden`` or the number."""
    if limit and count < limit:
        return f"<{limit}"
    return _HIDDEN if hidden else f"{count:,}"


def masked_text(text: str, limit: int) -> str:
    """Text without the counts below the limit; details in brackets go where a count is masked.

    Parameters
    ----------
    text : str
        A flag, a note or a reason.
    limit : int
        Smallest count that may be shown; 0 changes nothing.

    Returns
    -------
    str
    """
    if not limit:
        return text

    def mask(found: re.Match[str]) -> str:
        return f"fewer than {limit}" if int(found.group().replace(",", "")) < limit else found.group()

    # What stands in brackets after a count tells the count itself, or splits it up.
    text = re.sub(r"(one estimable group, and a difference needs two|no estimable group) \(.*\)", r"\1", text)
    masked = re.sub(rf"\b\d[\d,]*\b{_NOUNS}", mask, text)
    masked = re.sub(r"\b1 patient\b", "too few patients" if limit > 1 else "1 patient", masked)
    return re.sub(r" \([^()]*\d[^()]*\)", "", masked) if masked != text else text


def suppressed_frame(audits: Sequence[Audit], suppress_below: int) -> pd.DataFrame:
    """Table of audits in which no small count and no value of a hidden subgroup is left.

    Parameters
    ----------
    audits : sequence of Audit
        One row each.
    suppress_below : int
        Smallest count that may be shown; 0 shows all.

    Returns
    -------
    DataFrame
        The columns of :data:`frame.audits.columns.COLUMNS`; a suppressed number is missing, and ``flags``
        says so.
    """
    from frame.audits.result import frame_of

    limit = check_suppression(suppress_below)
    table = frame_of(audits)
    if limit == 0:
        return table
    rows = table.to_dict("records")
    for row, audit, hidden in zip(rows, audits, hidden_subgroups(audits, limit), strict=True):
        for name in ("reason", "flags"):
            row[name] = masked_text(str(row[name]), limit)
        changed = bool(hidden)
        for name in _TOTALS:
            if _is_small(name, row, limit) or (name == "smallest_group" and hidden):
                row[name] = pd.NA
                changed = True
        if hides_totals(audit, limit):
            row |= dict.fromkeys(("n_images", "n_positive", "n_patients"), pd.NA)
        if hidden:
            row["equity_scaled"] = math.nan
            if row["worst_group"] in hides_values(audit, hidden):
                row["worst_value"] = math.nan
        if changed:
            said = f"counts below {limit} and what they follow from are suppressed"
            row["flags"] = "; ".join(part for part in (row["flags"], said) if part)
    return typed(pd.DataFrame(rows, columns=list(table.columns)))


def _is_small(name: str, row: Mapping[Any, Any], limit: int) -> bool:
    """Whether a count of an audit is too small, or leaves one that is."""
    whole, part = {"n_positive": ("n_images", True), "n_missing_positive": ("n_missing", True)}.get(
        name, (name, False)
    )
    if pd.isna(row[name]) or pd.isna(row[whole]) or int(row[whole]) == 0:
        return False
    return int(row[name]) < limit or (part and int(row[whole]) - int(row[name]) < limit)

"""Tables and notes of step two without small counts, and without what they could be computed from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pandas as pd

from frame.audits.settings import check_suppression
from frame.audits.suppression import hidden_subgroups, hides_totals, hides_values, masked_text
from frame.audits.words import verdict_words
from frame.interventions.decision import CONSISTENT
from frame.mitigation.hidden_texts import HIDDEN_COUNTS, tells_a_count
from frame.mitigation.hiding import SUPPRESSED, masked

if TYPE_CHECKING:
    from frame.interventions.verdict import Verdict

__all__ = [
    *("EXCLUDED", "hidden_in_splits", "masked_notes", "reason_without_counts", "shown_sentences"),
    *("suppressed_row", "suppressed_strengths"),
]

#: How the note on excluded groups begins.
EXCLUDED = "Excluded on request"
_COUNTS = ("n_images", "n_positive", "n_patients")
_VALUES = ("value", "boot_mean", "sd", "lo", "hi")


def shown_sentences(verdict: Verdict, limit: int) -> list[str]:
    """The verdict in words, without hidden groups and without counts below the limit."""
    said = list(verdict.sentences)
    if limit and verdict.verdict == CONSISTENT:
        hidden = hidden_subgroups([verdict.step_one], limit)[0]
        unnamed = hides_values(verdict.step_one, hidden)
        said[0] = f"Step one: {verdict_words(verdict.step_one, unnamed)}"
    return [masked_text(sentence, limit) for sentence in said]


def masked_notes(verdict: Verdict, limit: int) -> list[str]:
    """The notes without counts below the limit."""
    hidden, shown = hidden_in_splits(verdict, limit), []
    for note in verdict.notes:
        if not note.startswith(EXCLUDED):
            shown.append(reason_without_counts(note, hidden, limit))
            continue
        said = masked(note, limit)
        # Where one of several counts is small, the others and their sum would tell it.
        shown.append(said if said == note else re.sub(r" \([^()]*\)\.$", ".", said))
    return shown


def hidden_in_splits(verdict: Verdict, limit: int) -> frozenset[str]:
    """Groups whose counts are hidden in every split: as in step one, and those small in any split.

    In a split in which a group is hidden, the smallest others are hidden with it until their counts together
    reach the limit, as the totals of the splits can be known. A group hidden in one split is hidden in all.
    """
    hidden = set(hidden_subgroups([verdict.step_one], limit)[0])
    if not limit:
        return frozenset(hidden)
    counts = verdict.splits.assign(n_negative=verdict.splits["n_images"] - verdict.splits["n_positive"])
    names = [*_COUNTS, "n_negative"]
    for _, part in counts.groupby("split", sort=False):
        own = part.set_index("group")[names].astype(int)
        few = [group for group in own.index if group in hidden or bool((own.loc[group] < limit).any())]
        others = [g for g in own.sort_values("n_images", kind="stable").index if g not in few]
        while few and others and bool((own.loc[few].sum() < limit).any()):
            few.append(others.pop(0))
        hidden |= set(map(str, few))
    return frozenset(hidden)


def reason_without_counts(text: str, hidden: frozenset[str], limit: int) -> str:
    """Reasons, one after another, in which those that tell a count of a group say that it is hidden."""
    if not limit:
        return text
    said = HIDDEN_COUNTS.format(limit=limit)
    parts = [said if tells_a_count(part, hidden) else masked_text(part, limit) for part in text.split("; ")]
    return "; ".join(dict.fromkeys(parts))


def suppressed_strengths(verdict: Verdict, suppress_below: int) -> pd.DataFrame:
    """The table of strengths without small counts.

    Parameters
    ----------
    verdict : Verdict
    suppress_below : int
        Smallest count that may be shown; 0 shows all.

    Returns
    -------
    DataFrame
        Where a group is hidden, no value of any group is shown: with the difference the others would give it
        away. ``reason`` says what was suppressed.
    """
    limit = check_suppression(suppress_below)
    table = verdict.strengths.copy()
    if limit == 0 or not len(table):
        return table
    said = SUPPRESSED.format(limit=limit)
    groups = table["quantity"] == "subgroup_value"
    hidden = hidden_in_splits(verdict, limit)
    table["reason"] = [reason_without_counts(str(reason), hidden, limit) for reason in table["reason"]]
    if hidden_subgroups([verdict.step_one], limit)[0]:
        for name in _VALUES:
            table.loc[groups, name] = float("nan")
        for name in _COUNTS:
            table.loc[groups, name] = pd.NA
        table.loc[groups, "status"] = "suppressed"
        table.loc[groups, "reason"] = said
    if hides_totals(verdict.step_one, limit):
        for name in _COUNTS:
            table[name] = pd.array([pd.NA] * len(table), dtype="Int64")
    small = pd.Series(False, index=table.index)
    for name in _COUNTS:
        below = (table[name] < limit).fillna(False).astype(bool)
        table.loc[below, name] = pd.NA
        small |= below
    table.loc[small, "reason"] = [f"{r}; {said}" if r else said for r in table.loc[small, "reason"]]
    return table


def suppressed_row(verdict: Verdict, suppress_below: int) -> pd.DataFrame:
    """The one row of :meth:`frame.interventions.verdict.Verdict.to_frame` without small counts."""
    limit = check_suppression(suppress_below)
    table = verdict.to_frame()
    if limit == 0:
        return table
    row: dict[str, Any] = {str(name): value for name, value in table.to_dict("records")[0].items()}
    row["reasons"] = masked_text(str(row["reasons"]), limit)
    for name in _COUNTS:
        if row[name] < limit or hides_totals(verdict.step_one, limit):
            row[name] = pd.NA
    flags = [name for name in table.columns if name.endswith(("_moves", "_holds"))]
    counts = dict.fromkeys(_COUNTS, "Int64")
    return pd.DataFrame([row]).astype(dict.fromkeys(flags, "boolean") | counts)

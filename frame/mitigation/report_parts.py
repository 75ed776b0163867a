"""Cells, tables and marks of the report of a comparison of methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

import pandas as pd

from frame.mitigation.achievable import UNMITIGATED
from frame.mitigation.hiding import masked
from frame.mitigation.words import signed
from frame.verdicts import probability
from frame.writing import printable

__all__ = [
    *("DASH", "anchor", "cell", "chosen_name", "interval_cell", "mark", "masked_words"),
    *("number", "probability_words", "table_html", "text"),
]

#: Stands where there is no number.
DASH: Final = "–"


def text(words: object) -> str:
    """Text for HTML; control characters become their escapes."""
    return escape(printable(str(words)))


def number(value: Any, decimals: int = 3) -> str:
    """A number, or a dash where there is none."""
    return DASH if value is None or pd.isna(value) else f"{float(value):.{decimals}f}"


def probability_words(value: Any) -> str:
    """A probability, or a dash where there is none."""
    return DASH if value is None or pd.isna(value) else probability(float(value))


def cell(words: str, kind: str = "number") -> str:
    """A cell of a table; the words are HTML already."""
    return f'<td class="{kind}">{words}</td>' if kind else f"<td>{words}</td>"


def table_html(caption: str, heads: Sequence[tuple[str, str]], rows: Sequence[str], kind: str = "") -> str:
    """A table that scrolls on its own where it is too wide; headings and rows are HTML already."""
    cells = "".join(
        f'<th scope="col" class="{place}">{h}</th>' if place else f'<th scope="col">{h}</th>'
        for h, place in heads
    )
    table = f'<table class="{kind}">' if kind else "<table>"
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(caption)}">\n{table}\n'
        f"<caption>{text(caption)}</caption>\n<thead><tr>{cells}</tr></thead>\n<tbody>\n"
        + "\n".join(rows)
        + "\n</tbody>\n</table>\n</div>"
    )


def anchor(place: int, measure: str) -> str:
    """Where the section of an attribute, by its place, and a measure begins."""
    return f"{measure}-{place + 1}"


def masked_words(sentence: str, limit: int) -> str:
    """A sentence without small counts; only a reason, after a colon, can hold counts of images."""
    head, colon, reason = sentence.partition(": ")
    return f"{head}{colon}{masked(reason, limit)}"


def chosen_name(best: Mapping[str, Any]) -> str:
    """Name of the method that was chosen."""
    return "unmitigated" if best["method"] == UNMITIGATED else str(best["name"])


def mark(exceeds: Any) -> tuple[str, str]:
    """Class and word of a verdict."""
    if exceeds is None or pd.isna(exceeds):
        return "none", "no verdict"
    return ("exceeds", "exceeds") if bool(exceeds) else ("consistent", "does not exceed")


def interval_cell(row: Mapping[str, Any], name: str) -> str:
    """A change with its paired interval below, as HTML."""
    if row[name] is None or pd.isna(row[name]):
        return DASH
    lo, hi = row[f"{name}_lo"], row[f"{name}_hi"]
    ends = "" if pd.isna(lo) else f'<br><span class="beside">[{signed(lo)}, {signed(hi)}]</span>'
    return f"{signed(row[name])}{ends}"

"""How audits of scores look on a terminal, in a text file and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from frame.cli.output import markdown_table
from frame.cli.text import printable
from frame.verdicts import probability

if TYPE_CHECKING:
    from frame.audits import Audit

__all__ = ["NOTES", "markdown_text", "print_audits", "summary_words", "table_text"]

NOTES = (
    "'if fair': mean and 95 % range of the difference that an exactly fair model shows at these counts.",
    "share: that mean in percent of the difference; it is not a decomposition.",
    "q: how often such a model shows that or more (one-sided p), corrected within a measure. p(Q): the same "
    "for the heterogeneity of all subgroups, uncorrected.",
    "Not exceeding is not fairness. detectable: shift of one subgroup found with 80 % power, uncorrected.",
    "No verdict says why subgroups differ: case mix, acquisition, labels and the model are all possible.",
)
#: Up to so many audits are also shown with their subgroups.
_DETAILED = 12
#: Below this width audits are printed as paragraphs, not as a table.
_TABLE_WIDTH = 110
_HEADINGS = (
    "audit",
    "measure",
    "groups (smallest)",
    "difference",
    "if fair [95 %]",
    "share",
    "q",
    "p(Q)",
    "verdict",
)
_LEFT = ("audit", "measure", "verdict")


def _name(audit: Audit, audits: Sequence[Audit]) -> str:
    """Name of an audit: its attribute, and the score and label where there are several."""
    parts = [printable(audit.attribute)]
    if audit.stratum or audit.within:
        parts[0] += f" within {printable(audit.within)} {printable(audit.stratum)}"
    if len({a.score for a in audits}) > 1:
        parts.append(printable(audit.score))
    if len({a.label for a in audits}) > 1:
        parts.append(f"for {printable(audit.label)}")
    return ", ".join(parts)


def _cells(audit: Audit, audits: Sequence[Audit], hidden: frozenset[str], limit: int) -> list[str]:
    from frame.audits.suppression import masked_text, shown_count
    from frame.measures.registry import MEASURES

    evaluable = audit.table[audit.table["evaluable"].astype(bool)]
    smallest = ""
    if len(evaluable):
        count = int(evaluable["n_images"].min())
        smallest = f" ({shown_count(count, limit, bool(hidden))})"
    law = ""
    if audit.reference is not None:
        lo, hi = audit.reference.interval
        law = f"{audit.reference.mean:.3f} [{lo:.3f}, {hi:.3f}]"
    share = "" if audit.reference is None else "undefined"
    if not math.isnan(audit.share):
        share = f"{audit.share:,.0f} %"
    title = MEASURES[audit.measure].title
    return [
        _name(audit, audits),
        title if len(title) <= 8 else audit.measure.upper() if len(audit.measure) <= 5 else audit.measure,
        f"{len(evaluable)}{smallest}",
        "" if math.isnan(audit.observed) else f"{audit.observed:.3f}",
        law,
        share,
        "" if math.isnan(audit.q) else probability(audit.q),
        "" if math.isnan(audit.p_heterogeneity) else probability(audit.p_heterogeneity),
        masked_text(printable(audit.short_verdict), limit),
    ]


def summary_words(audits: Sequence[Audit]) -> str:
    """How many differences exceed, in all and per measure."""
    judged = [a for a in audits if a.exceeds is not None]
    exceeding = [a for a in judged if a.exceeds]
    measures = list(dict.fromkeys(a.measure for a in judged))
    per_measure = ", ".join(
        f"{m} {sum(a.measure == m for a in exceeding)} of {sum(a.measure == m for a in judged)}"
        for m in measures
    )
    line = f"{len(exceeding)} of {len(judged)} differences exceed their fair-model reference"
    line += f" ({per_measure})." if len(measures) > 1 else "."
    left = len(audits) - len(judged)
    return line + (f" {left} without a verdict." if left else "")


def _settings_words(audits: Sequence[Audit], read: str) -> str:
    methods = ", ".join(dict.fromkeys(a.method for a in audits))
    first = audits[0]
    thresholds = dict.fromkeys(
        f"{a.threshold.value:.4g} ({a.threshold.source})" for a in audits if not math.isnan(a.threshold.value)
    )
    line = f"Read {read}. Unit of sampling: {first.unit}. Reference: {methods}, protocol {first.protocol}; "
    line += f"one-sided, Benjamini-Hochberg within a measure at {first.alpha:g}"
    line += f", tolerated true difference {first.margin:g}" if first.margin else ""
    line += f"; seed {first.settings.seed}."
    if thresholds:
        shown = ", ".join(list(thresholds)[:4]) + (", ..." if len(thresholds) > 4 else "")
        line += f" Threshold {shown}."
    return printable(line)


def _notes_of(audits: Sequence[Audit], limit: int) -> list[str]:
    from frame.audits.suppression import masked_text

    return list(dict.fromkeys(masked_text(printable(note), limit) for a in audits for note in a.notes))


def print_audits(console: Console, audits: Sequence[Audit], limit: int, read: str) -> None:
    """Print audits: a table where there is room, verdict sentences, subgroups of a few.

    Parameters
    ----------
    console : Console
        Where to print.
    audits : sequence of Audit
        One or more.
    limit : int
        Smallest count that may be shown.
    read : str
        What was read, in words.
    """
    from frame.audits.suppression import hidden_subgroups

    hidden = hidden_subgroups(audits, limit)
    wide = console.width >= _TABLE_WIDTH
    if wide:
        _print_table(console, audits, hidden, limit)
    if not wide or len(audits) <= _DETAILED:
        for audit, left_out in zip(audits, hidden, strict=True):
            _print_one(console, audit, audits, left_out, limit)
    else:
        flagged = sum(bool(audit.flags) for audit in audits)
        if flagged:
            console.print(Text(f"{flagged} of {len(audits)} audits carry flags: see --format csv or --html."))
    console.print()
    console.print(Text(summary_words(audits), style="bold"))
    console.print(Text(_settings_words(audits, read)))
    for note in _notes_of(audits, limit):
        console.print(Text(note))
    if limit:
        console.print(Text(f"Counts below {limit} are suppressed, and what they could be computed from."))
    for note in NOTES:
        console.print(Text(note, style="dim"))


def _print_table(
    console: Console, audits: Sequence[Audit], hidden: Sequence[frozenset[str]], limit: int
) -> None:
    table = Table(box=box.HORIZONTALS, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for heading in _HEADINGS:
        table.add_column(
            heading,
            justify="left" if heading in _LEFT else "right",
            no_wrap=heading not in ("audit", "verdict", "groups (smallest)", "measure"),
            overflow="fold",
            ratio=1 if heading == "verdict" else None,
        )
    for audit, left_out in zip(audits, hidden, strict=True):
        cells = _cells(audit, audits, left_out, limit)
        table.add_row(*(Text(cell) for cell in cells), style="bold" if audit.exceeds else "")
    console.print(table)


def _print_one(
    console: Console, audit: Audit, audits: Sequence[Audit], hidden: frozenset[str], limit: int
) -> None:
    from frame.audits.suppression import hides_values, masked_text
    from frame.audits.words import in_sentence, verdict_words

    unnamed = hides_values(audit, hidden)
    title = f"{in_sentence(audit.measure)} by {_name(audit, audits)}"
    console.print()
    console.print(Text(title[:1].upper() + title[1:], style="bold" if audit.exceeds else "underline"))
    if console.width < _TABLE_WIDTH:
        for line in _numbers(_cells(audit, audits, hidden, limit)):
            console.print(Padding(Text(line, style="bold" if audit.exceeds else ""), (0, 0, 0, 2)))
    verdict = masked_text(printable(verdict_words(audit, unnamed)), limit)
    console.print(Padding(Text(verdict), (0, 0, 0, 2)))
    for flag in audit.flags:
        console.print(Padding(Text(f"! {masked_text(printable(flag), limit)}"), (0, 0, 0, 2)))
    if len(audits) <= _DETAILED:
        console.print(Padding(_subgroups(audit, hidden, unnamed, limit), (0, 0, 0, 2)))


def _numbers(cells: Sequence[str]) -> list[str]:
    """The numbers of a table row in short lines, where there is no room for the table."""
    _, _, groups, observed, law, share, q, p_heterogeneity, verdict = cells
    pairs = (
        (("groups (smallest)", groups), ("difference", observed), ("share", share)),
        (("if fair [95 %]", law), ("q", q), ("p(Q)", p_heterogeneity)),
    )
    lines = [" | ".join(f"{name} {value}" for name, value in line if value) for line in pairs]
    return [line for line in (*lines, verdict) if line]


def _subgroups(audit: Audit, hidden: frozenset[str], unnamed: frozenset[str], limit: int) -> Table:
    from frame.audits.suppression import shown_count

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("subgroup", overflow="fold", max_width=28)
    headings = ["images", "positive", *(["patients"] if audit.patients_given else []), audit.measure]
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for row in audit.table.to_dict("records"):
        group = str(row["group"])
        names = ["n_images", "n_positive", *(["n_patients"] if audit.patients_given else [])]
        counts = [shown_count(int(row[name]), limit, group in hidden) for name in names]
        value = "" if math.isnan(row["value"]) else f"{row['value']:.3f}"
        said = f"not estimable: {row['reason']}" if row["reason"] else ""
        if group in unnamed:
            value, said = "hidden", "suppressed"
        elif group == audit.worst_name and not said:
            said = "worst"
        table.add_row(*(Text(printable(cell)) for cell in (group, *counts, value, said)))
    return table


def table_text(audits: Sequence[Audit], limit: int, read: str, width: int) -> str:
    """Return what is printed, as text of a given width."""
    buffer = StringIO()
    console = Console(file=buffer, width=width, highlight=False, color_system=None)
    print_audits(console, audits, limit, read)
    return buffer.getvalue()


def markdown_text(audits: Sequence[Audit], limit: int, read: str) -> str:
    """Return audits as a Markdown table with verdict sentences."""
    from frame.audits.suppression import hidden_subgroups, hides_values, masked_text
    from frame.audits.words import verdict_words

    hidden = hidden_subgroups(audits, limit)
    rows = [_cells(a, audits, left_out, limit) for a, left_out in zip(audits, hidden, strict=True)]
    lines = markdown_table(_HEADINGS, rows)
    lines += ["", f"**{summary_words(audits)}** {_plain(_settings_words(audits, read))}", ""]
    for audit, left_out in zip(audits, hidden, strict=True):
        words = masked_text(printable(verdict_words(audit, hides_values(audit, left_out))), limit)
        lines += [f"- {_plain(words)}"]
        lines += [f"    - {_plain(masked_text(printable(flag), limit))}" for flag in audit.flags]
    lines += ["", *(f"{_plain(n)}  " for n in _notes_of(audits, limit)), *(f"{n}  " for n in NOTES)]
    return "\n".join(lines) + "\n"


def _plain(words: str) -> str:
    """Words in which nothing starts markup."""
    return "".join(f"\\{c}" if c in "\\`*_[]|#" else "&lt;" if c == "<" else c for c in words)

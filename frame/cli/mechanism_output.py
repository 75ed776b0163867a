"""How a verdict of step two looks on a terminal, in a text file and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from io import StringIO
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from frame.cli.output import markdown_table
from frame.cli.text import printable
from frame.verdicts import probability

if TYPE_CHECKING:
    from frame.interventions.verdict import Verdict

__all__ = ["markdown_text", "print_verdict", "table_text"]

_DASH = "\N{EN DASH}"
_CHANGES = ("operator", "largest", "before", "after", "change [95 %]", "p", "moves")


def _change_cells(row: Mapping[Any, Any]) -> list[str]:
    from frame.mitigation.words import signed

    quantity = {"difference": "difference", "disease_auroc": "disease AUROC"}[row["quantity"]]
    name = f"{row['operator']}, {quantity}"
    if row["status"] != "ok":
        return [name, "", "", "", printable(f"not estimable: {row['reason']}"), "", ""]
    moves = "" if row["quantity"] != "difference" else f"yes, {row['direction']}" if row["moves"] else "no"
    return [
        name,
        f"{row['strength']:g}",
        f"{row['before']:.3f}",
        f"{row['after']:.3f}",
        f"{signed(row['change'])} [{signed(row['lo'])}, {signed(row['hi'])}]",
        probability(row["p"]),
        moves,
    ]


def _strength_rows(verdict: Verdict, operator: str) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of the table of one operator: a row for each quantity."""
    from frame.interventions.verdict_words import QUANTITY_NAMES

    table = verdict.strengths
    table = table[(table["method"] == operator) & (table["quantity"] != "subgroup_value")]
    asked = set(table.loc[table["status"] != "not run", "quantity"])
    strengths = list(dict.fromkeys(table["strength"]))
    rows = []
    for quantity in dict.fromkeys(table["quantity"]):
        if quantity not in asked:
            continue
        lines = table[table["quantity"] == quantity].set_index("strength")
        values = [float(lines.loc[strength, "value"]) for strength in strengths]
        shown = [
            f"{value:.3f}"
            if not math.isnan(value)
            else _DASH
            if lines.loc[s, "status"] != "not run"
            else "not run"
            for s, value in zip(strengths, values, strict=True)
        ]
        name = QUANTITY_NAMES[quantity].replace("achievable difference, chosen", "achievable,")
        rows.append([name, *shown])
    return [operator, *(f"{strength:g}" for strength in strengths)], rows


def _operators(verdict: Verdict) -> list[str]:
    return list(dict.fromkeys(verdict.strengths["method"]))


def _said(verdict: Verdict, limit: int) -> list[str]:
    """Sentences of the verdict, without what is hidden."""
    from frame.interventions.verdict_hiding import shown_sentences

    return [printable(sentence) for sentence in shown_sentences(verdict, limit)]


def _caveats(verdict: Verdict, limit: int) -> list[str]:
    from frame.audits.suppression import masked_text

    return [masked_text(printable(sentence), limit) for sentence in verdict.caveats]


def _notes(verdict: Verdict, limit: int) -> list[str]:
    from frame.interventions.verdict_hiding import masked_notes

    return [printable(note) for note in masked_notes(verdict, limit)]


def _read_words(verdict: Verdict, read: str) -> str:
    settings = verdict.settings
    return printable(
        f"Read {read}. Majority: {verdict.majority}. Unit of sampling: {settings['unit']}; "
        f"{settings['resamples']:,} resamples, seed {settings['seed']}."
    )


def print_verdict(console: Console, verdict: Verdict, limit: int, read: str) -> None:
    """Print a verdict: its sentences, the changes, every quantity by strength, and what it does not say.

    Parameters
    ----------
    console : Console
        Where to print.
    verdict : Verdict
        The result.
    limit : int
        Smallest count that may be shown.
    read : str
        What was read, in words.
    """
    from frame.interventions.verdict_words import headline, rule_words, trend_words

    console.print(Text(headline(verdict.verdict), style="bold"))
    for sentence in _said(verdict, limit):
        console.print(Text(sentence))
    if len(verdict.changes):
        console.print()
        _print_changes(console, verdict)
        console.print(Padding(Text(rule_words(), style="dim"), (0, 0, 1, 0)))
    for operator in _operators(verdict):
        headings, rows = _strength_rows(verdict, operator)
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        for place, heading in enumerate(headings):
            table.add_column(heading, justify="left" if place == 0 else "right", no_wrap=place > 0)
        for cells in rows:
            table.add_row(*(Text(cell) for cell in cells))
        console.print(table)
    for sentence in trend_words(verdict.trend.to_dict("records")):
        console.print(Text(sentence))
    console.print(Text("\nWhat it does not say", style="bold"))
    for sentence in _caveats(verdict, limit):
        console.print(Padding(Text(f"- {sentence}"), (0, 0, 0, 0)))
    console.print()
    for note in _notes(verdict, limit):
        console.print(Text(note, style="dim"))
    console.print(Text(_read_words(verdict, read), style="dim"))


def _print_changes(console: Console, verdict: Verdict) -> None:
    """The changes: a table where there is room, else one paragraph each."""
    rows = [_change_cells(row) for row in verdict.changes.to_dict("records")]
    if console.width >= 100:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for place, heading in enumerate(_CHANGES):
            table.add_column(heading, justify="left" if place in (0, 6) else "right", no_wrap=place != 4)
        for cells in rows:
            table.add_row(*(Text(cell) for cell in cells))
        console.print(table)
        return
    for name, largest, before, after, change, p, moves in rows:
        where = f" at {largest}: {before} to {after}, {change}, p {p}" if largest else f": {change}"
        console.print(Text(f"{name}{where}{f'; moves: {moves}' if moves else ''}"))
    console.print()


def table_text(verdict: Verdict, limit: int, read: str, width: int) -> str:
    """The printed verdict as text of some width."""
    held = StringIO()
    print_verdict(Console(file=held, width=width, highlight=False), verdict, limit, read)
    return "\n".join(line.rstrip() for line in held.getvalue().splitlines()) + "\n"


def markdown_text(verdict: Verdict, limit: int, read: str) -> str:
    """The verdict as Markdown."""
    from frame.interventions.verdict_words import headline, rule_words, trend_words

    lines = [f"**{headline(verdict.verdict)}**", "", *_said(verdict, limit), ""]
    if len(verdict.changes):
        rows = [_change_cells(row) for row in verdict.changes.to_dict("records")]
        lines += [*markdown_table(_CHANGES, rows), "", rule_words(), ""]
    for operator in _operators(verdict):
        lines += [*markdown_table(*_strength_rows(verdict, operator)), ""]
    lines += [f"- {sentence}" for sentence in trend_words(verdict.trend.to_dict("records"))]
    lines += ["", "What it does not say:", "", *(f"- {s}" for s in _caveats(verdict, limit)), ""]
    lines += [f"- {note}" for note in _notes(verdict, limit)]
    lines += ["", _read_words(verdict, read)]
    return "\n".join(lines) + "\n"

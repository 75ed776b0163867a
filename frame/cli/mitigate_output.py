"""How a comparison of methods looks on a terminal, in a text file and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
    from frame.mitigation.comparison import Comparison

__all__ = ["MITIGATION_NOTES", "markdown_text", "print_comparison", "table_text"]

MITIGATION_NOTES = (
    "change: paired, with its 95 % interval over resampled patients; q: corrected over all methods, measures "
    "and attributes; * more than chance.",
    "if fair: what an exactly fair model would show on average; q(fair): how often it shows as much or more, "
    "corrected within a measure; ! exceeds.",
    "A smaller difference can come from a worse best group: look at the groups (--html, --groups-out).",
    "Not exceeding is not fairness, and no result says why subgroups differ.",
)
#: Below this width a table leaves out what the sentences say.
_WIDE = 116
_HEADINGS = ("method", "difference", "change [95 %]", "q", "if fair", "q(fair)", "AUROC", "change [95 %]")
_NARROW = (0, 1, 2, 3, 7)


def _cells(row: Mapping[str, Any], limit: int) -> list[str]:
    """A row of a table: the method and what it does to one difference."""
    from frame.mitigation.hiding import masked
    from frame.mitigation.words import is_true, signed

    name = printable(str(row["name"]))
    if row["status"] == "degenerate":
        name += " (degenerate)"
    if math.isnan(row["after"]):
        return [name, masked(printable(f"{row['status']}: {row['reason']}"), limit)]

    def change(of: str) -> str:
        if math.isnan(row[of]):
            return ""
        lo, hi = row[f"{of}_lo"], row[f"{of}_hi"]
        ends = "" if math.isnan(lo) else f" [{signed(lo)}, {signed(hi)}]"
        return f"{signed(row[of])}{ends}"

    def chance(of: str) -> str:
        return "" if math.isnan(row[of]) else probability(row[of])

    mark = " *" if is_true(row["changes"]) else ""
    return [
        name,
        f"{row['after']:.3f}",
        change("change") + mark,
        chance("change_q"),
        "" if math.isnan(row["reference"]) else f"{row['reference']:.3f}",
        chance("exceedance_q") + (" !" if is_true(row["exceeds"]) else ""),
        f"{row['auroc']:.3f}",
        change("auroc_change"),
    ]


def _short(cells: list[str]) -> list[str]:
    """The cells for a narrow window: the loss of AUROC without its interval."""
    if len(cells) == 2:
        return cells
    kept = [cells[place] for place in _NARROW]
    kept[-1] = kept[-1].split(" ")[0]
    return kept


def print_comparison(console: Console, comparison: Comparison, limit: int, read: str) -> None:
    """Print a comparison: a table for each attribute and measure, then what was found.

    Parameters
    ----------
    console : Console
        Where to print.
    comparison : Comparison
        The result.
    limit : int
        Smallest count that may be shown.
    read : str
        What was read, in words.
    """
    from frame.measures.registry import MEASURES
    from frame.mitigation.hiding import without_small_counts
    from frame.mitigation.words import rows_of, summary_words

    comparison = without_small_counts(comparison, limit)
    wide = console.width >= _WIDE
    for attribute in comparison.attributes:
        for measure in comparison.measures:
            console.print()
            console.print(Text(printable(f"{MEASURES[measure].title} by {attribute}"), style="bold"))
            rows = rows_of(comparison, attribute, measure)
            console.print(_table(rows, limit, wide))
            for sentence in _sentences(comparison, attribute, measure, limit):
                console.print(Padding(Text(printable(sentence)), (0, 0, 0, 2)))
    console.print()
    for place, sentence in enumerate(summary_words(comparison)):
        console.print(Text(_masked(printable(sentence), limit), style="bold" if place == 0 else ""))
    console.print(Text(_settings_words(comparison, read, limit)))
    for note in comparison.notes:
        console.print(Text(printable(note)))
    if limit:
        console.print(Text(f"Counts below {limit} are suppressed, and what they could be computed from."))
    for note in MITIGATION_NOTES:
        console.print(Text(note, style="dim"))


def _masked(words: str, limit: int) -> str:
    from frame.mitigation.hiding import masked

    head, colon, rest = words.partition(": ")
    return f"{head}{colon}{masked(rest, limit)}" if colon else words


def _sentences(comparison: Comparison, attribute: str, measure: str, limit: int) -> list[str]:
    """Before, and what is achievable; the changes stand in the table."""
    from frame.mitigation.words import achievable_words, before_words, rows_of

    start = rows_of(comparison, attribute, measure)[0]
    said = [before_words(start)]
    if not math.isnan(start["before"]):
        said.append(achievable_words(comparison, attribute, measure))
    return [_masked(sentence, limit) for sentence in said]


def _table(rows: Sequence[Mapping[str, Any]], limit: int, wide: bool) -> Table:
    headings = list(_HEADINGS) if wide else [*(_HEADINGS[place] for place in _NARROW[:-1]), "AUROC\nchange"]
    table = Table(box=box.HORIZONTALS, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for place, heading in enumerate(headings):
        left = place == 0
        table.add_column(
            heading,
            justify="left" if left else "right",
            no_wrap=not left,
            overflow="fold",
            min_width=8 * left,
        )
    for row in rows:
        cells = _cells(row, limit) if wide else _short(_cells(row, limit))
        style = "bold" if len(cells) > 2 and cells[2].endswith("*") else ""
        if len(cells) == 2:
            table.add_row(Text(cells[0]), Text("–"), style="dim")
        else:
            table.add_row(*(Text(cell) for cell in cells), style=style)
    return table


def _settings_words(comparison: Comparison, read: str, limit: int) -> str:
    from frame.mitigation.hiding import suppressed_splits

    counts = "; ".join(
        f"{row['split']} {row['n_images']} images, {row['n_positive']} positive"
        + ("" if row["n_patients"] == "no ids" else f", {row['n_patients']} patients")
        for row in suppressed_splits(comparison, limit)
    )
    settings = comparison.settings
    return printable(
        f"Read {read}. {counts}. Unit of sampling: {settings['unit']}. Head: {settings['head']}; class "
        f"weights: {settings['weighting']}; threshold: {settings['threshold']} of each method's validation "
        f"scores; {settings['resamples']:,} resamples; level {settings['alpha']:g}; seed {settings['seed']}."
    )


def table_text(comparison: Comparison, limit: int, read: str, width: int) -> str:
    """Return what is printed, as text of a given width."""
    buffer = StringIO()
    console = Console(file=buffer, width=width, highlight=False, color_system=None)
    print_comparison(console, comparison, limit, read)
    return buffer.getvalue()


def markdown_text(comparison: Comparison, limit: int, read: str) -> str:
    """Return a comparison as Markdown: a table for each attribute and measure, with its sentences."""
    from frame.measures.registry import MEASURES
    from frame.mitigation.hiding import without_small_counts
    from frame.mitigation.words import measure_words, rows_of, summary_words

    comparison = without_small_counts(comparison, limit)
    lines = [f"**{_plain(summary_words(comparison)[0])}**", ""]
    lines += [f"- {_plain(_masked(printable(s), limit))}" for s in summary_words(comparison)[1:]]
    for attribute in comparison.attributes:
        for measure in comparison.measures:
            lines += ["", f"### {_plain(printable(f'{MEASURES[measure].title} by {attribute}'))}", ""]
            rows = [_cells(row, limit) for row in rows_of(comparison, attribute, measure)]
            padded = [row + [""] * (len(_HEADINGS) - len(row)) for row in rows]
            lines += markdown_table(_HEADINGS, padded)
            said = measure_words(comparison, attribute, measure)
            lines += ["", *(f"{_plain(_masked(printable(s), limit))}  " for s in said)]
    lines += ["", _plain(_settings_words(comparison, read, limit)), ""]
    lines += [f"{_plain(printable(n))}  " for n in comparison.notes]
    lines += [f"{n.replace('*', chr(92) + '*')}  " for n in MITIGATION_NOTES]
    return "\n".join(lines) + "\n"


def _plain(words: str) -> str:
    """Words in which nothing starts markup."""
    return "".join(f"\\{c}" if c in "\\`*_[]|#" else "&lt;" if c == "<" else c for c in words)

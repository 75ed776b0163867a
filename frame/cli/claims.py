"""What ``frame audit`` prints and writes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from frame.cli.output import (
    FILE_WIDTH,
    chosen_format,
    csv_text,
    json_text,
    markdown_table,
    printable_rows,
    progress_bar,
    reader_may_leave,
    tell,
)
from frame.published import audit_claims
from frame.verdicts import MEASURE_NAMES, measure_name, probability, short_verdict, verdict_sentence
from frame.writing import check_target, write_text

if TYPE_CHECKING:
    import pandas as pd

NOTES = (
    "'if fair': mean and 95 % range of the difference that an exactly fair model shows at these counts.",
    "share: that mean in percent of the reported difference; it is not a decomposition.",
    "q: how often such a model shows that or more (one-sided p), corrected over the claims of a measure.",
    "Not exceeding is not fairness. detectable: shift of one subgroup found with 80 % power, uncorrected.",
    "Counts of images from patients with several images make a reference too small; see --design-effect.",
)


def run(
    path: Path,
    *,
    out: Path | None,
    form: str | None,
    protocol: str,
    method: str,
    alpha: float,
    margin: float,
    design_effect: float,
) -> int:
    """Audit a file and print or write the result.

    Parameters
    ----------
    path : Path
        Table of claims.
    out : Path or None
        Where to write; None prints.
    form : str or None
        ``table``, ``csv``, ``json`` or ``markdown``; None chooses by the ending of ``out``.
    protocol, method, alpha, margin, design_effect
        As in :func:`frame.audit_claims`.

    Returns
    -------
    int
        Number of claims that exceed their reference.

    Raises
    ------
    InputError
        If the input, an option or the output path is wrong; nothing has been written then.
    """
    chosen = chosen_format(out, form)
    if out is not None:
        target = check_target(out, "--out", path, "the table of claims")
    with progress_bar() as progress:
        result = audit_claims(
            path,
            protocol=protocol,
            method=method,
            alpha=alpha,
            margin=margin,
            design_effect=design_effect,
            progress=progress,
        )
    exceeding = int(result["exceeds"].fillna(False).sum())
    if out is not None:
        write_text(target, _text(result, chosen, alpha, FILE_WIDTH), "--out")
        tell(summary_line(result), f"Written to {out}.")
        return exceeding
    with reader_may_leave():
        if chosen == "table":
            console = Console(highlight=False)
            wide = console if console.is_terminal else Console(highlight=False, width=FILE_WIDTH)
            _print(wide, result, alpha)
        else:
            sys.stdout.write(_text(result, chosen, alpha, FILE_WIDTH))
    return exceeding


# -- formats ----------------------------------------------------------------------------------------


def _text(result: pd.DataFrame, form: str, alpha: float, width: int) -> str:
    if form == "csv":
        return csv_text(result)
    if form == "json":
        return json_text(result)
    if form == "markdown":
        return _markdown(result, alpha)
    from io import StringIO

    buffer = StringIO()
    _print(Console(file=buffer, width=width, highlight=False, color_system=None), result, alpha)
    return buffer.getvalue()


_HEADINGS = (
    "claim",
    "measure",
    "groups (smallest)",
    "reported",
    "if fair [95 %]",
    "share",
    "q",
    "verdict",
)
_LEFT = ("claim", "measure", "verdict")
#: A longer claim name may be folded.
_LONGEST_NAME = 30
#: Below this width claims are printed as paragraphs, not as a table.
_TABLE_WIDTH = 116


def _cells(row: dict[str, Any]) -> list[str]:
    """One printed line of a claim."""
    estimable = row["status"] == "ok"
    smallest = "" if row["smallest_group"] != row["smallest_group"] else f" ({row['smallest_group']:,})"
    interval = f"{row['reference']:.3f} [{row['reference_lo']:.3f}, {row['reference_hi']:.3f}]"
    share = "undefined" if row["share"] != row["share"] else f"{row['share']:,.0f} %"
    return [
        row["claim_id"],
        measure_name(row["measure"]),
        f"{row['n_groups']}{smallest}",
        "" if row["observed"] != row["observed"] else f"{row['observed']:.3f}",
        interval if estimable else "",
        share if estimable else "",
        probability(row["q"]) if estimable else "",
        short_verdict(row),
    ]


def _print(console: Console, result: pd.DataFrame, alpha: float) -> None:
    rows = printable_rows(result, ("claim_id", "reason"))
    if console.width >= _TABLE_WIDTH:
        _print_table(console, rows)
    else:
        for row in rows:
            exceeds = row["status"] == "ok" and bool(row["exceeds"])
            title = f"{row['claim_id']}  {measure_name(row['measure'])}, {row['n_groups']} subgroups"
            console.print(Text(title, style="bold" if exceeds else "underline"))
            console.print(Padding(Text(verdict_sentence(row)), (0, 0, 0, 2)))
    console.print()
    console.print(Text(summary_line(result), style="bold"))
    console.print(Text(_settings_line(result, alpha)))
    for note in NOTES:
        console.print(Text(note, style="dim"))


def _print_table(console: Console, rows: list[dict[str, Any]]) -> None:
    longest = max((len(str(row["claim_id"])) for row in rows), default=0)
    table = Table(box=box.HORIZONTALS, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for heading in _HEADINGS:
        table.add_column(
            heading,
            justify="left" if heading in _LEFT else "right",
            no_wrap=heading not in ("claim", "verdict"),
            overflow="fold",
            min_width=min(longest, _LONGEST_NAME) if heading == "claim" else None,
            ratio=1 if heading == "verdict" else None,
        )
    for row in rows:
        exceeds = row["status"] == "ok" and bool(row["exceeds"])
        table.add_row(*(Text(cell) for cell in _cells(row)), style="bold" if exceeds else "")
    console.print(table)


def _markdown(result: pd.DataFrame, alpha: float) -> str:
    rows = printable_rows(result, ("claim_id", "reason"))
    lines = markdown_table(_HEADINGS, [_cells(row) for row in rows])
    lines += [
        "",
        f"**{summary_line(result)}** {_settings_line(result, alpha)}",
        "",
        *(f"{n}  " for n in NOTES),
    ]
    return "\n".join(lines) + "\n"


def summary_line(result: pd.DataFrame) -> str:
    """How many claims exceed, in all and per measure."""
    estimable = result[result["status"] == "ok"]
    exceeding = estimable[estimable["exceeds"].fillna(False).astype(bool)]
    per_measure = ", ".join(
        f"{name} {int((exceeding['measure'] == measure).sum())}"
        f" of {int((estimable['measure'] == measure).sum())}"
        for measure, name in MEASURE_NAMES.items()
        if (estimable["measure"] == measure).any()
    )
    line = f"{len(exceeding)} of {len(estimable)} claims exceed their fair-model reference"
    line += f" ({per_measure})." if per_measure else "."
    left = len(result) - len(estimable)
    return line + (f" {left} not estimable." if left else "")


def _settings_line(result: pd.DataFrame, alpha: float) -> str:
    methods = ", ".join(dict.fromkeys(result["method"]))
    margin = float(result["margin"].max()) if len(result) else 0.0
    tolerated = f", tolerated true difference {margin:g}" if margin else ""
    protocol = result["protocol"].iloc[0] if len(result) else ""
    return (
        f"Protocol {protocol}; law of a subgroup value: {methods}; one-sided, "
        f"Benjamini-Hochberg within each measure at {alpha:g}{tolerated}."
    )

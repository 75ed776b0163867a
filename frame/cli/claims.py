"""What ``frame audit`` prints and writes."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from frame.cli.text import printable
from frame.errors import InputError
from frame.published import audit_claims
from frame.verdicts import MEASURE_NAMES, measure_name, probability, short_verdict, verdict_sentence

if TYPE_CHECKING:
    import pandas as pd

_ENDINGS = {".csv": "csv", ".json": "json", ".md": "markdown", ".markdown": "markdown", ".txt": "table"}
#: A progress bar is shown from this many claims on.
_LONG = 200
#: Width of a table that goes to a file or a pipe.
_FILE_WIDTH = 140

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
    chosen = _format(out, form)
    if out is not None:
        out = _target(out, path)
    with _progress() as progress:
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
        _write(out, _text(result, chosen, alpha, _FILE_WIDTH))
        said = Text(f"{summary_line(result)}\nWritten to {printable(str(out))}.")
        Console(stderr=True, highlight=False).print(said, soft_wrap=True)
    elif chosen == "table":
        console = Console(highlight=False)
        _print(console if console.is_terminal else Console(highlight=False, width=_FILE_WIDTH), result, alpha)
    else:
        sys.stdout.write(_text(result, chosen, alpha, _FILE_WIDTH))
        sys.stdout.flush()
    return exceeding


def _format(out: Path | None, form: str | None) -> str:
    if form is not None:
        return form
    if out is None:
        return "table"
    if out.suffix.lower() not in _ENDINGS:
        raise InputError(
            f"--out is '{out.name}', whose ending says no format; "
            "end it with .csv, .json, .md or .txt, or give --format table, csv, json or markdown."
        )
    return _ENDINGS[out.suffix.lower()]


def _target(out: Path, path: Path) -> Path:
    """File that --out names: behind a link, an ordinary file, writable, and not the input."""
    try:
        out = out.resolve()
        if not out.parent.is_dir():
            raise InputError(f"--out: '{out.name[:60]}' cannot be written to: its folder does not exist.")
        if not out.exists():
            return out
        if path.exists() and out.samefile(path):
            raise InputError(f"--out is '{out.name}', the table of claims itself; give another file.")
        if not out.is_file():
            raise InputError(
                f"--out is '{out.name}', no ordinary file; leave --out away to print the result."
            )
        if not os.access(out, os.W_OK):
            raise InputError(f"--out: '{out.name}' may not be written to; give another file.")
    except (OSError, ValueError, RuntimeError) as problem:
        if isinstance(problem, InputError):
            raise
        reason = (getattr(problem, "strerror", None) or "it cannot be reached").lower()
        raise InputError(f"--out: '{out.name[:60]}' cannot be written ({reason}).") from None
    return out


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on a terminal, for long tables only."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("auditing"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("auditing", total=None, visible=False)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, visible=total >= 2 * _LONG)

        yield advance


def _write(out: Path, text: str) -> None:
    """Write to a temporary name in the same folder and rename, so that no half file is ever read."""
    try:
        handle, name = tempfile.mkstemp(dir=out.parent, prefix=f".{out.name[:100]}.", suffix=".part")
    except OSError as problem:
        reason = (problem.strerror or "it cannot be written").lower()
        raise InputError(f"--out: '{out}' cannot be written ({reason}).") from None
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        # A temporary file is private; the result gets the rights any new file would have.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(out.stat().st_mode & 0o777 if out.exists() else 0o666 & ~mask)
        temporary.replace(out)
    except OSError as problem:
        reason = (problem.strerror or "it cannot be written").lower()
        raise InputError(f"--out: '{out}' cannot be written ({reason}).") from None
    finally:
        temporary.unlink(missing_ok=True)


# -- formats ----------------------------------------------------------------------------------------


def _text(result: pd.DataFrame, form: str, alpha: float, width: int) -> str:
    if form == "csv":
        return str(result.to_csv(index=False, lineterminator="\n"))
    if form == "json":
        import json

        return json.dumps([_plain(row) for row in _records(result)], indent=2, ensure_ascii=False) + "\n"
    if form == "markdown":
        return _markdown(result, alpha)
    from io import StringIO

    buffer = StringIO()
    _print(Console(file=buffer, width=width, highlight=False, color_system=None), result, alpha)
    return buffer.getvalue()


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row with JSON's own types; what is missing becomes null."""
    import pandas as pd

    plain: dict[str, Any] = {}
    for name, value in row.items():
        if value is None or value is pd.NA or value != value:
            plain[str(name)] = None
        else:
            plain[str(name)] = value.item() if hasattr(value, "item") else value
    return plain


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


def _records(result: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in result.to_dict("records")]


def _rows(result: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows for printing, with NaN for whatever is missing."""
    import pandas as pd

    missing = float("nan")
    rows = [{k: (missing if v is pd.NA else v) for k, v in row.items()} for row in _records(result)]
    for row in rows:
        row["claim_id"], row["reason"] = printable(str(row["claim_id"])), printable(str(row["reason"]))
    return rows


def _print(console: Console, result: pd.DataFrame, alpha: float) -> None:
    rows = _rows(result)
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
    rows = _rows(result)
    lines = ["| " + " | ".join(_HEADINGS) + " |", "|" + " --- |" * len(_HEADINGS)]
    lines += [
        "| "
        + " | ".join(
            cell.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;") for cell in _cells(row)
        )
        + " |"
        for row in rows
    ]
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

"""What the verbs of the command line share: formats, where a result goes, a progress bar."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from frame.cli.text import printable
from frame.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

#: Width of a table that goes to a file or a pipe.
FILE_WIDTH = 140
#: A progress bar is shown from this many steps on.
LONG = 400
_ENDINGS = {".csv": "csv", ".json": "json", ".md": "markdown", ".markdown": "markdown", ".txt": "table"}


def chosen_format(out: Path | None, form: str | None) -> str:
    """Return the format asked for; without one, a table on the terminal, or what the file's ending says."""
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


def check_ending(path: Path | None, option: str, endings: Sequence[str]) -> None:
    """Refuse a file whose ending is none of these; None is no file."""
    if path is not None and path.suffix.lower() not in endings:
        raise InputError(
            f"{option} is '{path.name}', whose ending is not {' or '.join(endings)}; "
            f"end it with {endings[0]}."
        )


@contextmanager
def progress_bar(least: int = LONG, word: str = "auditing") -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on a terminal, with a word for the work, when it has at least so many steps."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn(word),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(word, total=None, visible=False)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, visible=total >= least)

        yield advance


def records(result: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a result, each a dict."""
    return [{str(name): value for name, value in row.items()} for row in result.to_dict("records")]


def printable_rows(result: pd.DataFrame, text: Sequence[str]) -> list[dict[str, Any]]:
    """Return rows for printing: NaN for whatever is missing, no control characters in the named columns."""
    import pandas as pd

    missing = float("nan")
    rows = [{k: (missing if v is pd.NA else v) for k, v in row.items()} for row in records(result)]
    for row in rows:
        for name in text:
            row[name] = printable(str(row[name]))
    return rows


def json_text(result: pd.DataFrame) -> str:
    """Return the rows as a JSON list; what is missing becomes null."""
    return json.dumps([_plain(row) for row in records(result)], indent=2, ensure_ascii=False) + "\n"


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    import pandas as pd

    plain: dict[str, Any] = {}
    for name, value in row.items():
        if value is None or value is pd.NA or value != value:
            plain[str(name)] = None
        else:
            plain[str(name)] = value.item() if hasattr(value, "item") else value
    return plain


def csv_text(result: pd.DataFrame) -> str:
    """Return the result as CSV with a header, in which no cell steers a terminal or is a formula."""
    safe = result.copy()
    for name in safe.columns:
        if any(isinstance(cell, str) for cell in safe[name]):
            safe[name] = [_csv_cell(cell) for cell in safe[name]]
    return str(safe.to_csv(index=False, lineterminator="\n"))


def _csv_cell(cell: Any) -> Any:
    """Text with its control characters as escapes; what a spreadsheet would compute gets an apostrophe."""
    if not isinstance(cell, str):
        return cell
    shown = printable(cell)
    if len(shown) < 2 or shown[0] not in "=+-@":
        return shown
    try:
        float(shown)
    except ValueError:
        return f"'{shown}"
    return shown


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """Print to a reader (head, less) that may go before the end: no failure, and the exit code stays."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        silence()
    except SystemExit as ended:  # what rich makes of a broken pipe
        if not is_broken_pipe(ended):
            raise
        silence()


def is_broken_pipe(ended: SystemExit) -> bool:
    """Whether a package ended the program because its reader had gone."""
    cause = ended.__context__
    return isinstance(cause, OSError) and cause.errno == errno.EPIPE


def silence() -> None:
    """Point the rest of the output nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def tell(*lines: str | None) -> None:
    """Say lines beside the result, on the error stream; that nobody can read them is no failure."""
    said = Text("\n".join(printable(line) for line in lines if line))
    if not said:
        return
    with suppress(OSError):
        Console(stderr=True, highlight=False).print(said, soft_wrap=True)


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table; nothing in a cell can end it or start markup."""
    lines = ["| " + " | ".join(headings) + " |", "|" + " --- |" * len(headings)]
    lines += ["| " + " | ".join(_markdown_cell(cell) for cell in cells) + " |" for cells in rows]
    return lines


def _markdown_cell(cell: str) -> str:
    return cell.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")

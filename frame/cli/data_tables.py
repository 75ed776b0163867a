"""Tables of the verbs of the data, printed or written."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from frame.cli.output import FILE_WIDTH, csv_text, json_text, markdown_table
from frame.errors import InputError

if TYPE_CHECKING:
    from frame.workspace.layout import Workspace

__all__ = ["cell", "chosen_sources", "text_of"]

#: Columns that hold counts also where a cell is text.
_RIGHT: Final = ("train", "validation", "test", "all")


def chosen_sources(workspace: Workspace, named: Sequence[str]) -> list[str]:
    """The sources that are named, in the profile's order; without a name, all of them.

    Raises
    ------
    frame.InputError
        If the profile has no source of a name.
    """
    there = list(workspace.profile.sources)
    for name in named:
        if name not in there:
            raise InputError(
                f"Profile {workspace.profile.name} has no source {name[:60]!r}; "
                f"its sources are {', '.join(there)}."
            )
    return [name for name in there if name in named] if named else there


def text_of(table: pd.DataFrame, form: str, title: str = "") -> str:
    """A table in a format: ``table``, ``csv``, ``json`` or ``markdown``."""
    if form == "csv":
        return csv_text(table)
    if form == "json":
        return json_text(table)
    if form == "markdown":
        cells = [[cell(value) for value in row.values()] for row in table.to_dict("records")]
        return "\n".join(markdown_table([str(name) for name in table.columns], cells)) + "\n"
    sheet = Table(box=box.HORIZONTALS, title=title or None, title_justify="left", title_style="")
    for name in table.columns:
        number = pd.api.types.is_numeric_dtype(table[name]) or name in _RIGHT
        sheet.add_column(str(name).replace("_", " "), justify="right" if number else "left", overflow="fold")
    for row in table.to_dict("records"):
        sheet.add_row(*[cell(value) for value in row.values()])
    text = StringIO()
    terminal = Console()
    width = terminal.width if terminal.is_terminal else FILE_WIDTH
    Console(file=text, width=width, color_system=None).print(sheet)
    hidden = table.isna().to_numpy().any()
    return text.getvalue() + (
        "A dash is a count that is hidden, or a share that has none.\n" if hidden else ""
    )


def cell(value: Any) -> str:
    """A value as a person reads it; a dash where there is none."""
    if value is None or value is pd.NA or value != value:
        return "–"
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, Integral) else str(value)

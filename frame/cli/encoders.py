"""The verbs ``frame encoders list`` and ``frame encoders template``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from frame.cli.endings import stop
from frame.cli.options import Format
from frame.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["encoders", "encoders_table"]

encoders = typer.Typer(
    help="The encoder panel: networks that turn an image into a vector.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

#: Columns of the table on a terminal, and their headings.
_SHOWN = {
    "name": "encoder",
    "library": "library",
    "width": "width",
    "pooling": "pooling",
    "modalities": "modalities",
    "here": "here",
    "detail": "weights",
}
#: Which of them are shown where the terminal is narrow: from the front, as long as there is room.
_FIRST = ("name", "here", "detail", "width", "library", "modalities", "pooling")
#: A column of words may be broken between words, down to so many characters.
_WORDS = 36


@encoders.callback()
def _root() -> None:
    """The encoder panel: networks that turn an image into a vector."""


@encoders.command("list")
def _list(
    form: Annotated[
        Format, typer.Option("--format", metavar="FORMAT", help="table, csv, json or markdown.")
    ] = Format.table,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """List all encoders, their vectors and preprocessing, and whether each can be loaded here.

    The table shows the most important columns; csv and json give all. Encoders of your own are read from the
    table that the environment variable FRAME_ENCODERS names.
    """
    try:
        text = _text(encoders_table(), "json" if as_json else form.value)
    except InputError as problem:
        stop(str(problem))
    typer.echo(text, nl=False)


@encoders.command("template")
def _template(
    name: Annotated[
        str, typer.Argument(metavar="[ENCODER]", help="The encoder that yours is most like.")
    ] = "dinov2_vit_l",
) -> None:
    """Print the row of an encoder as a table to change into that of an encoder of your own.

    Write it to a file, change name, title, checkpoint and whatever else differs, and name the file in the
    environment variable FRAME_ENCODERS.
    """
    try:
        from frame.cli.output import csv_text
        from frame.tables import load_table

        table = load_table("encoders")
        row = table[table["name"] == name]
        if row.empty:
            stop(f"the panel has no encoder {name[:60]!r}; it has {', '.join(table['name'])}.")
        typer.echo(csv_text(row), nl=False)
    except InputError as problem:
        stop(str(problem))


def encoders_table() -> pd.DataFrame:
    """All encoders, one row each: the columns of ``data/encoders.csv``, then ``here`` and ``detail``.

    Returns
    -------
    pandas.DataFrame
        ``here`` and ``detail`` as in :class:`frame.encoders.availability.Availability`. What is blank in the
        table is ``""``.

    Raises
    ------
    frame.InputError
        If a table of encoders breaks its schema.
    """
    from dataclasses import fields

    import pandas as pd

    from frame.encoders.availability import availability
    from frame.encoders.panel import Encoder
    from frame.encoders.panel import encoders as panel

    rows = []
    for row in panel().values():
        found = availability(row)
        values = {field.name: _plain(getattr(row, field.name)) for field in fields(Encoder)}
        rows.append(values | {"here": found.status, "detail": found.detail})
    return pd.DataFrame(rows)


def _plain(value: object) -> object:
    if value is None:
        return ""
    return " ".join(str(part) for part in value) if isinstance(value, tuple) else value


def _text(table: pd.DataFrame, form: str) -> str:
    from textwrap import fill

    from rich.console import Console

    from frame.cli.data_tables import text_of
    from frame.cli.output import FILE_WIDTH
    from frame.cohorts.schema import MODALITIES
    from frame.encoders.panel import WEIGHTS

    if form in ("csv", "json"):
        return text_of(table, form)
    short = table[list(_SHOWN)].copy()
    short["modalities"] = short["modalities"].replace(" ".join(MODALITIES), "all")
    if form == "markdown":
        return text_of(short.rename(columns=_SHOWN), form)
    terminal = Console()
    room = terminal.width if terminal.is_terminal else FILE_WIDTH
    kept = _fitting(short, room)
    shown = text_of(short[kept].rename(columns=_SHOWN), form)
    ready = int((table["here"] == "ready").sum())
    said = (
        f"{ready} of {len(table)} can be loaded here. Weights that you already have: put each into a folder "
        f"or file called like its encoder, in a folder that the variable {WEIGHTS} names."
    )
    if len(kept) < len(_SHOWN):
        said += " A wider terminal, or --format csv, shows more columns."
    return f"{shown}{fill(said, min(room, 110), break_long_words=False)}\n"


def _fitting(table: pd.DataFrame, room: int) -> list[str]:
    """Columns that have room on a line of so many characters, in the order in which they are shown."""
    from frame.cli.data_tables import cell

    wide = {
        name: max(len(heading), *(len(cell(value)) for value in table[name])) + 3
        for name, heading in _SHOWN.items()
    }
    kept: list[str] = []
    used = 1
    for name in _FIRST:
        least = min(wide[name], _WORDS + 3) if name == "detail" else wide[name]
        if name in _FIRST[:2] or used + least <= room:
            kept.append(name)
            used += least
    return [name for name in _SHOWN if name in kept]

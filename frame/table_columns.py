"""The building blocks of a table's declaration: what a column may hold, and what a table is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["COUNT", "NOTE", "TEXT", "Column", "Table", "one_of"]


@dataclass(frozen=True)
class Column:
    """What a column may hold.

    Attributes
    ----------
    expected : str
        The allowed content in words, used in error messages.
    pattern : str
        Regular expression that the whole text of a cell must match.
    blank : bool
        Whether an empty cell is allowed.
    count : bool
        Whether the column is read as whole numbers (pandas ``Int64``); otherwise it stays text.
    """

    expected: str
    pattern: str
    blank: bool = False
    count: bool = False


@dataclass(frozen=True)
class Table:
    """One table of ``data/``.

    Attributes
    ----------
    name : str
        Name for :func:`frame.tables.load_table`, equal to the file's stem.
    file : str
        File name in ``data/``.
    meaning : str
        What a row is, in one sentence.
    origin : str
        Where its values come from.
    key : tuple of str
        Columns that together are unique over the rows.
    columns : mapping of str to Column
        Every column, in order.
    rules : tuple of str
        Names of the checks over several columns (see :mod:`frame.table_rules`).
    """

    name: str
    file: str
    meaning: str
    origin: str
    key: tuple[str, ...]
    columns: Mapping[str, Column]
    rules: tuple[str, ...] = ()


def one_of(*allowed: str, blank: bool = False) -> Column:
    """A column of a closed list of texts."""
    return Column("one of " + ", ".join(allowed), "|".join(re.escape(text) for text in allowed), blank)


TEXT = Column("a text", r"\S.*")
NOTE = Column("a text or nothing", r"\S.*", blank=True)
COUNT = Column("a whole number from 0", r"\d+", count=True)

"""The versioned tables of ``data/``: the registry and the loader.

Every table is a CSV of facts with its origin in ``data/README.md``. A table is checked each time it is
read, so that a damaged copy is an error and not a wrong number. Printed values stay **text**, because
``0.20`` and ``0.2`` say different things about rounding; only columns that are whole numbers in their own
right (numbers of claims, images, patients, positives) become integers. ``published_claims`` is text
throughout, as a user's own table of claims would be read.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from frame.errors import InputError
from frame.table_rules import RULES
from frame.table_schemas import TABLES, Column, Table

if TYPE_CHECKING:
    import pandas as pd
    import pandera.errors

__all__ = ["NOTED", "TABLES", "Column", "Table", "check_table", "load_table", "note_read", "table_path"]

#: Environment variable that names a file in which reads of tables are noted.
NOTED = "FRAME_NOTE_READS"


def table_path(name: str) -> Path:
    """Where the file of a registered table lies.

    Parameters
    ----------
    name : str
        A key of :data:`TABLES`.

    Returns
    -------
    pathlib.Path
        The file in ``frame/data/`` of an installed copy, else in ``data/`` beside the package.

    Raises
    ------
    frame.InputError
        If the name is not registered, or the file is in neither place.
    """
    table = _table(name)
    package = Path(__file__).resolve().parent
    for folder in (package / "data", package.parent / "data"):
        path = folder / table.file
        if path.is_file():
            return path
    raise InputError(
        f"Table {name}: {table.file} is neither in the installed package (frame/data) nor in the data folder "
        "beside it; reinstall frame-audit or work in a complete clone."
    )


def load_table(name: str) -> pd.DataFrame:
    """Read one table of ``data/`` and check it against its schema.

    Parameters
    ----------
    name : str
        A key of :data:`TABLES`, for example ``"published_claims"`` or ``"paper_supplementary_table7"``.

    Returns
    -------
    pandas.DataFrame
        The rows in file order. Text columns hold exactly the file's text, with ``""`` where a cell is blank;
        columns of whole numbers are ``Int64`` with ``<NA>`` where blank.

    Raises
    ------
    frame.InputError
        If the name is not registered, the file is missing, or the file breaks its schema.

    Examples
    --------
    >>> from frame.tables import load_table
    >>> claims = load_table("published_claims")
    >>> len(claims), claims["claim_id"].nunique()
    (230, 89)
    """
    import pandas as pd

    path = table_path(name)
    note_read(name)
    frame = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8")
    return check_table(name, frame)


def note_read(name: str) -> None:
    """Add the name of a table to the file that the environment variable :data:`NOTED` names, if it is set.

    A notebook declares the tables that it reads; whoever executes it compares.
    """
    notes = os.environ.get(NOTED)
    if notes:
        with Path(notes).open("a", encoding="utf-8") as file:
            file.write(f"{name}\n")


def check_table(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Check a table's text against the schema of a registered table.

    Parameters
    ----------
    name : str
        A key of :data:`TABLES`.
    frame : pandas.DataFrame
        The table as read from its file: every cell a ``str``, a blank cell ``""``.

    Returns
    -------
    pandas.DataFrame
        The same rows, with columns of whole numbers as ``Int64``.

    Raises
    ------
    frame.InputError
        At the first breach, naming file, row, column, what was found and what is allowed. Rows are counted as
        the lines of the file, the header being line 1.
    """
    import pandera.errors
    import pandera.pandas as pa

    table = _table(name)
    _check_columns(table, frame)
    columns = {
        label: pa.Column(str, pa.Check.str_matches(rf"(?:{column.pattern}{'|' * column.blank})\Z"))
        for label, column in table.columns.items()
    }
    schema = pa.DataFrameSchema(columns, unique=list(table.key))
    try:
        schema.validate(frame.reset_index(drop=True))
    except pandera.errors.SchemaError as error:
        raise InputError(_sentence(table, frame, error)) from error
    typed = frame.reset_index(drop=True)
    for label, column in table.columns.items():
        if column.count:
            typed[label] = typed[label].replace("", None).astype("Int64")
    for rule in table.rules:
        broken = RULES[rule](typed)
        if broken.any():
            row = int(broken.to_numpy().argmax())
            shown = ", ".join(f"{label} {typed[label].iloc[row]}" for label in table.key)
            raise InputError(f"{table.file}, line {row + 2} ({shown}): the rule '{rule}' is broken.")
    return typed


def _table(name: str) -> Table:
    if name not in TABLES:
        raise InputError(f"There is no table {name!r}; the tables are {', '.join(TABLES)}.")
    return TABLES[name]


def _check_columns(table: Table, frame: pd.DataFrame) -> None:
    expected = ", ".join(table.columns)
    for label in table.columns:
        if label not in frame.columns:
            raise InputError(f"{table.file}: column {label} is missing; the columns are {expected}.")
    for label in frame.columns:
        if label not in table.columns:
            raise InputError(f"{table.file}: column {label} is unknown; the columns are {expected}.")
    if list(frame.columns) != list(table.columns):
        raise InputError(f"{table.file}: the columns are out of order; expected {expected}.")
    if frame.empty:
        raise InputError(f"{table.file}: there is no row below the header.")


def _sentence(table: Table, frame: pd.DataFrame, error: pandera.errors.SchemaError) -> str:
    """Put pandera's finding into one sentence for a reader."""
    label = str(getattr(error.schema, "name", ""))
    if label in table.columns:
        case = error.failure_cases.iloc[0]
        return (
            f"{table.file}, line {int(case['index']) + 2}, column {label}: found {case['failure_case']!r}; "
            f"allowed is {table.columns[label].expected}."
        )
    row = int(frame.reset_index(drop=True).duplicated(list(table.key)).to_numpy().argmax())
    shown = ", ".join(f"{key} {frame[key].iloc[row]!r}" for key in table.key)
    return f"{table.file}, line {row + 2}: {shown} stands there a second time."

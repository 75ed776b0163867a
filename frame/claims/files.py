"""How a table of claims becomes text cells, whatever file it comes from."""

from __future__ import annotations

import csv
import math
import re
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from frame.claims.columns import LARGEST_COUNT, SHARE_COLUMNS
from frame.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Place:
    """Where a cell is, in the words of somebody who looks at the file in a spreadsheet."""

    name: str
    first_row: int

    def at(self, position: int, column: str | None = None) -> str:
        """Name a row, or a cell, by its position among the rows."""
        cell = f"{self.name}, row {position + self.first_row}"
        return f"{cell}, column '{column}'" if column else cell


def read_csv_text(path: Path) -> pd.DataFrame:
    """Read a CSV file as text, whatever separator, line end or byte-order mark it has.

    The index counts rows as a spreadsheet does, 0 being the row below a header in the first row.

    Parameters
    ----------
    path : Path
        Comma, semicolon or tab separated; UTF-8 with or without a byte-order mark, or UTF-16 with
        one. In a semicolon file a comma inside a number is a decimal comma.

    Returns
    -------
    DataFrame
        Every cell a stripped string, blanks as empty strings; column names in lower case.

    Raises
    ------
    InputError
        If the file is missing, empty, not text or not a table.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path.name}: there is no such file; check the name and the folder.") from None
    except (OSError, ValueError) as problem:
        reason = (getattr(problem, "strerror", None) or "it cannot be read").lower()
        raise InputError(f"{path.name or path}: the file cannot be opened ({reason}).") from None
    if raw.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise InputError(
            f"{path.name}: this is a spreadsheet, whatever its name ends with; "
            "open it and save it as CSV (comma separated, UTF-8)."
        )
    encoding = "utf-16" if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError:
        raise InputError(
            f"{path.name}: the file is not UTF-8 text; save it as CSV with UTF-8 encoding."
        ) from None
    if "\x00" in text:
        raise InputError(f"{path.name}: the file is not text (it holds zero bytes); save it as CSV.")
    if not text.strip():
        raise InputError(
            f"{path.name}: the file is empty; 'frame audit --template' prints an example to fill in."
        )
    blank = re.match(r"(?:[ \t]*(?:\r\n|\r|\n))*", text)
    skipped = len(re.findall(r"\r\n|\r|\n", blank.group())) if blank else 0
    body = text[blank.end() :] if blank else text
    header = re.split(r"\r\n|\r|\n", body, maxsplit=1)[0]
    separator = max(",;\t", key=header.count)
    if header.count(separator) == 0:
        raise InputError(
            f"{path.name}: the first line has no comma, semicolon or tab, so it is no table of claims; "
            "'frame audit --template' prints an example to fill in."
        )
    table = _records(body, separator, Place(path.name, skipped + 1))
    table.index = table.index + skipped
    if separator == ";":
        for column in (c for c in SHARE_COLUMNS if c in table.columns):
            table[column] = table[column].str.replace(r"^([+-]?\d*),(\d+)$", r"\1.\2", regex=True)
    # Lines of separators only, as spreadsheets leave them at the end, hold nothing.
    return table[(table != "").any(axis=1)]


def _records(body: str, separator: str, place: Place) -> pd.DataFrame:
    """Split text into cells; a row longer than the header or an open quote is an error, not a guess."""
    import pandas as pd

    try:
        records = [
            [cell.strip() for cell in record]
            for record in csv.reader(StringIO(body, newline=None), delimiter=separator)
        ]
    except csv.Error as problem:
        raise InputError(f"{place.name}: the file cannot be split into cells ({problem}).") from None
    names = [name.lower() for name in records[0]]
    while names and not names[-1]:
        names.pop()
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{place.name}: column '{name}' stands there twice; keep one.")
        seen.add(name)
    rows: list[list[str]] = []
    for number, record in enumerate(records[1:], start=1):
        while len(record) > len(names) and not record[-1]:
            record.pop()
        if len(record) > len(names):
            raise InputError(
                f"{place.at(number)}: {len(record)} cells are more cells than the header's {len(names)}; "
                "put text that contains the separator in double quotes."
            )
        if any("\n" in cell or "\r" in cell for cell in record):
            raise InputError(
                f"{place.at(number)}: a cell holds a line break; a double quote may have been left open. "
                "Write each cell on one line."
            )
        rows.append(record + [""] * (len(names) - len(record)))
    return pd.DataFrame(rows, columns=names, dtype=str)


def _stripped(table: pd.DataFrame) -> pd.DataFrame:
    table = table.apply(lambda column: column.str.strip())
    table.columns = [str(c).strip().lower() for c in table.columns]
    return table


def table_text(table: pd.DataFrame) -> pd.DataFrame:
    """Text of every cell of a DataFrame; missing values become empty."""
    import pandas as pd

    def text(cell: object) -> str:
        if cell is None or cell is pd.NA or (isinstance(cell, float) and math.isnan(cell)):
            return ""
        if isinstance(cell, float) and cell.is_integer() and abs(cell) <= LARGEST_COUNT:
            return str(int(cell))
        return str(cell)

    as_text = pd.DataFrame(
        {str(c): [text(cell) for cell in table[c].tolist()] for c in table.columns}, dtype=str
    )
    return _stripped(as_text) if len(as_text.columns) else as_text

"""Read the columns of a table of scores: CSV as text, parquet as it is typed.

A CSV file says nothing about types, so every column is read by the role it was given: a score is a number, a
group stays text, and a patient id is never turned into a number ("007" and "7" are two patients).
"""

from __future__ import annotations

import csv
import difflib
import gzip
import io
import math
import re
import stat
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frame.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

#: What stands for a missing value in a file, beside a blank cell.
MISSING_WORDS = frozenset({"nan", "NaN", "NAN", "NA", "N/A", "<NA>", "null", "NULL", "NaT"})
_TRUTHS = {"true": 1.0, "false": 0.0}
_OTHER_COMPRESSIONS = {b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstandard"}
_VALIDATION, _TEST = ("validation", "valid", "val"), ("test",)
# Up to so many different values of a column are quoted; more may be ids.
_MOST_QUOTED = 6
# More subgroups than this are none, nor more than _FEW_LEVELS with less than _LEAST_ROWS rows each.
_MOST_LEVELS, _FEW_LEVELS, _LEAST_ROWS = 2_000, 20, 5
# Longer cells than this are a quote that was left open.
_LONGEST_CELL = 10_000


@dataclass(frozen=True)
class ScoreFile:
    """The columns of one file that were asked for.

    Attributes
    ----------
    name : str
        File name without its folder.
    table : DataFrame
        The columns; text (None where blank) if it came from CSV, otherwise typed.
    is_text : bool
        Whether it came from CSV.
    decimal_comma : bool
        Whether a comma inside a number is a decimal comma (semicolon-separated files).
    """

    name: str
    table: pd.DataFrame
    is_text: bool
    decimal_comma: bool

    def numbers(self, column: str) -> pd.Series[Any]:
        """Return a column of scores as numbers; NaN where blank."""
        cells = self._text(column)
        if cells is None:
            return self.table[column]
        read = self._read(cells)
        wrong = [position for position, value in enumerate(read) if value is None]
        if wrong:
            raise InputError(
                f"{self.name}, column '{column}': {_cells(len(wrong))} no number (the first in data row "
                f"{wrong[0] + 1}); a score is a number, or true or false in every row, and a missing one is "
                "a blank cell."
            )
        return self._column(read, column)

    def labels(self, column: str) -> pd.Series[Any]:
        """Return a column of labels: numbers or true/false if all cells are, otherwise the text itself."""
        cells = self._text(column)
        if cells is None:
            return self.table[column]
        read = self._read(cells)
        if any(value is None for value in read):
            # Not to be guessed at: whoever reads labels says which values were found.
            import pandas as pd

            return pd.Series(
                [None if _is_missing(cell) else cell for cell in cells], dtype=object, name=column
            )
        return self._column(read, column)

    def _text(self, column: str) -> list[Any] | None:
        """The cells of a column of text, from CSV or typed as text in parquet; None for any other."""
        import pandas as pd

        cells = self.table[column]
        if self.is_text:
            return cells.tolist()
        if isinstance(cells.dtype, pd.CategoricalDtype):
            cells = cells.astype(object)
        return cells.tolist() if pd.api.types.infer_dtype(cells, skipna=True) == "string" else None

    def _read(self, cells: list[Any]) -> list[float | None]:
        """Numbers; true and false count as 1 and 0 where no cell holds another number. None: neither."""
        different = {cell: self._number(cell) for cell in dict.fromkeys(cells)}
        truths = {cell: _TRUTHS.get(str(cell).strip().lower()) for cell in different}
        if any(value is not None for value in truths.values()) and all(
            truths[cell] is not None or value is None or math.isnan(value) or value in (0.0, 1.0)
            for cell, value in different.items()
        ):
            different = {c: v if truths[c] is None else truths[c] for c, v in different.items()}
        return [different[cell] for cell in cells]

    @staticmethod
    def _column(values: list[float | None], column: str) -> pd.Series[Any]:
        import pandas as pd

        return pd.Series(values, dtype="float64", name=column)

    def categories(self, column: str) -> pd.Series[Any]:
        """Return a column of groups; whole numbers in order of size, anything else as text."""
        import pandas as pd

        cells = self.table[column]
        n_levels = 0 if _holds_containers(cells) else int(cells.nunique())
        if n_levels > _MOST_LEVELS or n_levels > max(_FEW_LEVELS, len(cells) / _LEAST_ROWS):
            raise InputError(
                f"{self.name}, column '{column}': {n_levels:,} different values in {len(cells):,} rows are "
                "too many for subgroups; is this an id or a measurement? Give a column of categories, for "
                "example of age bands."
            )
        if not self.is_text:
            return cells
        kept = [None if _is_missing(cell) else str(cell) for cell in cells.tolist()]
        different = {cell for cell in kept if cell is not None}
        if different and all(re.fullmatch(r"-?(0|[1-9]\d{0,14})(\.0+)?", cell) for cell in different):
            return pd.Series(
                [math.nan if cell is None else float(cell) for cell in kept], dtype="float64", name=column
            )
        return pd.Series(kept, dtype=object, name=column)

    def identifiers(self, column: str) -> pd.Series[Any]:
        """Return a column of patient ids as they stand in the file; None where blank."""
        import pandas as pd

        cells = self.table[column]
        if not self.is_text:
            return cells
        return pd.Series(
            [None if _is_missing(cell) else cell for cell in cells.tolist()], dtype=object, name=column
        )

    def parts(self, column: str) -> tuple[ScoreFile, ScoreFile, dict[str, int]]:
        """Split into validation and test rows by a column that names the split.

        Returns
        -------
        tuple of ScoreFile, ScoreFile and dict
            Validation rows, test rows, and how many rows each other value has; those are left out.
        """
        words = [
            "(blank)" if _is_missing(cell) else str(cell).strip() for cell in self.table[column].tolist()
        ]
        found = Counter(words)
        validation = [word.lower() in _VALIDATION for word in words]
        test = [word.lower() in _TEST for word in words]
        for rows, allowed in ((test, _TEST), (validation, _VALIDATION)):
            if not any(rows):
                listed = quoted(found) or f"{len(found):,} different values"
                raise InputError(
                    f"{self.name}, column '{column}': no row says {' or '.join(repr(a) for a in allowed)}; "
                    f"found are {listed}. --split needs validation rows, for thresholds, and test rows."
                )
        others = {w: n for w, n in found.items() if w.lower() not in (*_VALIDATION, *_TEST)}
        return self._rows(validation), self._rows(test), others

    def _rows(self, chosen: list[bool]) -> ScoreFile:
        import numpy as np

        rows = self.table[np.asarray(chosen)].reset_index(drop=True)
        return ScoreFile(self.name, rows, self.is_text, self.decimal_comma)

    def _number(self, cell: Any) -> float | None:
        """The number in a cell, NaN for a missing one, None for anything else."""
        if _is_missing(cell):
            return math.nan
        text = str(cell)
        if self.decimal_comma and re.fullmatch(r"[+-]?\d*,\d+", text):
            text = text.replace(",", ".")
        return plain_number(text)


def quoted(found: Mapping[str, int]) -> str:
    """Values of a column with their counts; nothing where they may be ids: many, or few rows each."""
    if len(found) > _MOST_QUOTED or sum(found.values()) < _LEAST_ROWS * len(found):
        return ""
    return ", ".join(f"{n:,} '{word[:40]}'" for word, n in found.items())


def plain_number(text: str) -> float | None:
    """The number that a text says; None where it says none (``1_0`` is none)."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _holds_containers(cells: pd.Series[Any]) -> bool:
    return cells.dtype == object and any(
        isinstance(cell, (list, dict, tuple)) or hasattr(cell, "shape") for cell in cells
    )


def _cells(count: int) -> str:
    return "1 cell is" if count == 1 else f"{count:,} cells are"


def _is_missing(cell: Any) -> bool:
    if cell is None:
        return True
    if isinstance(cell, str):
        return not cell.strip() or cell.strip() in MISSING_WORDS
    import pandas as pd

    return bool(pd.isna(cell)) if not isinstance(cell, (list, dict, tuple)) else False


def read_score_file(path: Path, columns: Sequence[str], exact: Sequence[str] = ()) -> ScoreFile:
    """Read the named columns of a CSV (also compressed with gzip) or parquet file.

    Parameters
    ----------
    path : Path
        The file; what it is is read from its first bytes, not from its name.
    columns : sequence of str
        Columns needed, written as in the file.
    exact : sequence of str
        Those whose cells keep blanks around them (patient ids).

    Returns
    -------
    ScoreFile

    Raises
    ------
    InputError
        If the file is missing, damaged, empty or no table, or has no such column.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            raise InputError(f"{path.name} is a device, no file; give a CSV or parquet file.")
        raw = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path.name}: there is no such file; check the name and the folder.") from None
    except (OSError, ValueError) as problem:
        if isinstance(problem, InputError):
            raise
        reason = (getattr(problem, "strerror", None) or "it cannot be read").lower()
        raise InputError(f"{path.name or path}: the file cannot be opened ({reason}).") from None
    for start, kind in _OTHER_COMPRESSIONS.items():
        if raw.startswith(start):
            raise InputError(f"{path.name} is compressed with {kind}; unpack it, or compress it with gzip.")
    if raw.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise InputError(
            f"{path.name}: this is a spreadsheet or a zip archive, whatever its name ends with; "
            "save the table as CSV (comma separated, UTF-8)."
        )
    if raw.startswith(b"\x1f\x8b"):
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error):
            raise InputError(f"{path.name}: the compressed file is damaged; make it again.") from None
        if raw.startswith(b"\x1f\x8b"):
            raise InputError(f"{path.name} is compressed twice; unpack it once.")
    if raw.startswith(b"PAR1"):
        return _read_parquet(path, raw, columns)
    return _read_csv(path.name, raw, columns, exact)


def _read_parquet(path: Path, raw: bytes, columns: Sequence[str]) -> ScoreFile:
    try:
        import pyarrow as pa  # type: ignore[import-untyped]
        from pyarrow import parquet
    except ImportError:
        raise InputError(
            f"{path.name}: a parquet file needs pyarrow; install it with: pip install 'frame-audit[scores]'"
        ) from None
    try:
        file = parquet.ParquetFile(pa.BufferReader(raw))
        names = list(file.schema_arrow.names)
        _check_names(path.name, names, columns)
        # Without the metadata, what was the index of the table it was made from is a column like any other.
        table = file.read(columns=list(dict.fromkeys(columns))).to_pandas(ignore_metadata=True)
    except (pa.ArrowException, OSError, ValueError, KeyError) as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError(f"{path.name}: the parquet file is damaged or incomplete; make it again.") from None
    if len(table) == 0:
        raise InputError(f"{path.name}: there are columns but no row; give one row per image.")
    return ScoreFile(path.name, table.reset_index(drop=True), is_text=False, decimal_comma=False)


def _read_csv(name: str, raw: bytes, columns: Sequence[str], exact: Sequence[str]) -> ScoreFile:
    import pandas as pd

    encoding = "utf-16" if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError:
        raise InputError(f"{name}: the file is not UTF-8 text; save it as CSV with UTF-8 encoding.") from None
    if "\x00" in text:
        raise InputError(f"{name}: the file is not text (it holds zero bytes); save it as CSV or parquet.")
    text = text.lstrip("\r\n")
    if not text.strip():
        raise InputError(f"{name}: the file is empty; give one row per image, below a header.")
    header = re.split(r"\r\n|\r|\n", text, maxsplit=1)[0]
    separator = max(",;\t", key=header.count)
    if header.count(separator) == 0:
        raise InputError(
            f"{name}: the first line has no comma, semicolon or tab, so it is no table of scores; "
            "give one row per image, with a header that names the columns."
        )
    rows = _records(name, csv.reader(io.StringIO(text, newline=None), delimiter=separator))
    names = [cell.strip() for cell in next(rows)]
    while names and not names[-1]:
        names.pop()
    _check_names(name, names, columns)
    places = {column: names.index(column) for column in columns}
    cells: dict[str, list[str | None]] = {column: [] for column in columns}
    for number, record in enumerate(rows, start=1):
        if not any(record):
            continue  # a blank line, or one of separators only
        if len(record) > len(names) and any(record[len(names) :]):
            raise InputError(
                f"{name}, data row {number}: {len(record)} cells are more cells than the header's "
                f"{len(names)}; put text that contains the separator in double quotes."
            )
        for column, place in places.items():
            cell = record[place] if place < len(record) else ""
            kept = cell if column in exact else cell.strip()
            cells[column].append(kept or None)
    if not cells[columns[0]]:
        raise InputError(f"{name}: there is a header but no row; give one row per image.")
    table = pd.DataFrame({column: pd.Series(held, dtype=object) for column, held in cells.items()})
    return ScoreFile(name, table, is_text=True, decimal_comma=separator == ";")


def _records(name: str, reader: Iterator[list[str]]) -> Iterator[list[str]]:
    number = -1
    while True:
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as problem:
            if "field limit" in str(problem):
                raise InputError(_too_long(name, number + 1)) from None
            raise InputError(f"{name}: the file cannot be split into cells ({problem}).") from None
        number += 1
        if any(len(cell) > _LONGEST_CELL for cell in record):
            raise InputError(_too_long(name, number))
        yield record


def _too_long(name: str, number: int) -> str:
    where = f"data row {number}" if number else "the header"
    return (
        f"{name}, {where}: a cell is longer than {_LONGEST_CELL:,} letters; a double quote may have been "
        "left open."
    )


def _check_names(name: str, names: Sequence[str], columns: Sequence[str]) -> None:
    """Check that every needed column is there, once."""
    for column in columns:
        if names.count(column) > 1:
            raise InputError(f"{name}: column '{column}' stands there {names.count(column)} times; keep one.")
        if column not in names:
            raise InputError(f"{name} has no column '{column[:60]}'; {_found_names(column, names)}")


def _found_names(column: str, names: Sequence[str]) -> str:
    """What stands in the header, unless that may be a row: a row is never quoted."""
    given = [n for n in names if n.strip()]
    if not given:
        return "its header names no column at all."
    if any(plain_number(n) is not None for n in given):
        return "its first line holds numbers, so it may be a row; put a line above it that names the columns."
    if given[0].lstrip().startswith(("{", "[{", "<")):
        return "it looks like JSON or a web page; save the table as CSV."
    by_case = {n.lower(): n for n in given}
    near = difflib.get_close_matches(column.lower(), list(by_case), n=3, cutoff=0.5)
    shown = ", ".join(n[:40] for n in given[:20]) + (", ..." if len(given) > 20 else "")
    if near:
        return f"did you mean {' or '.join(repr(by_case[n]) for n in near)}? It has {shown}."
    return f"it has {shown}."

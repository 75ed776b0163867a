"""Released tables as text: read whole, or refused.

Every cell is read as the text that the owner released, so that ids keep their zeros and a blank cell stays
blank. A file that is cut off, damaged or of another form is refused, since a lenient reader would give fewer
or other rows and say nothing. No sentence quotes a row.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Final

import pandas as pd

from frame.errors import InputError

__all__ = ["read_columns"]

#: Bytes read at once; a row, with the whole text of a report, must fit into it.
_BLOCK: Final = 1 << 24


def read_columns(path: Path, needed: Sequence[str], *, others: bool = False) -> pd.DataFrame:
    """Read columns of a released CSV file as text.

    Parameters
    ----------
    path : Path
        A ``.csv`` file or a compressed one (``.csv.gz``), with a header.
    needed : sequence of str
        Columns.
    others : bool
        Whether to read all other columns too.

    Returns
    -------
    pandas.DataFrame of str
        One row per row of the file, in its order; columns in the order asked for, then the others. A blank
        cell is ``""``, and nothing else is changed.

    Raises
    ------
    frame.InputError
        If the file cannot be read, lacks a column or has it twice, has no rows, has rows that do not fit its
        header, or has a quoted cell that never ends.
    """
    header = _header(path)
    absent = [column for column in needed if column not in header]
    if absent:
        raise InputError(
            f"{path.name} has no column {', '.join(absent)} among its {len(header)} columns; it must be the "
            "table as its owner releases it, with its header."
        )
    twice = sorted(column for column in {*needed} if header.count(column) > 1)
    if twice or (others and len({*header}) < len(header)):
        raise InputError(
            f"{path.name} has two columns of one name{' (' + ', '.join(twice) + ')' if twice else ''}, and "
            "which one is meant cannot be told; it must be the table as its owner releases it."
        )
    table = _read(path, [*needed, *(column for column in header if others and column not in needed)])
    if table.empty:
        raise InputError(f"{path.name} has no row below its header; download it again.")
    return table


def _opened(path: Path) -> IO[str]:
    """The text of a plain or compressed file; a mark that some programs put in front is no part of it."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open("rt", encoding="utf-8-sig", newline="")


def _header(path: Path) -> list[str]:
    """Names of the columns."""
    try:
        with _opened(path) as file:
            return next(csv.reader(file), [])
    except (ValueError, OSError, EOFError, zlib.error, csv.Error) as problem:
        raise _unreadable(path, problem) from None


def _read(path: Path, columns: list[str]) -> pd.DataFrame:
    """Columns of a file whose rows must all have the cells of its header, which pandas would not demand."""
    try:
        import pyarrow as pa  # type: ignore[import-untyped]
        from pyarrow import csv as released
    except ImportError:
        raise InputError(
            f"Reading {path.name} needs pyarrow; install it with: pip install 'frame-audit[study]'."
        ) from None
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            lines = _Lines(stream)
            table = released.read_csv(
                lines,
                read_options=released.ReadOptions(block_size=_BLOCK),
                parse_options=released.ParseOptions(newlines_in_values=True),
                convert_options=released.ConvertOptions(
                    include_columns=columns,
                    column_types=dict.fromkeys(columns, pa.string()),
                    null_values=[],
                    strings_can_be_null=False,
                ),
            )
    except (ValueError, OSError, EOFError, KeyError) as problem:
        if " columns, got " in str(problem):
            raise InputError(
                f"{path.name} has a row with another number of cells than its header; the file is cut off or "
                "damaged: download it again."
            ) from None
        raise _unreadable(path, problem) from None
    if table.num_rows != lines.count - 1:
        _check_quotes(path)
    return pd.DataFrame(table.to_pandas()).astype("str")


class _Lines:
    """A stream that counts its lines while it is read."""

    closed = False

    def __init__(self, stream: Any) -> None:
        self._stream, self._ends, self._last = stream, 0, b"\n"

    def read(self, size: int = -1) -> bytes:
        """Read on."""
        block = bytes(self._stream.read(None if size < 0 else size))
        self._ends += block.count(b"\n")
        self._last = block[-1:] or self._last
        return block

    def close(self) -> None:
        """Leave the stream to the one who opened it."""

    @property
    def count(self) -> int:
        """Lines so far, the last one with or without an end."""
        return self._ends + (self._last != b"\n")


def _check_quotes(path: Path) -> None:
    """Refuse a quoted cell that swallows the rows below it, up to the next quote or the end of the file.

    Asked only where the rows are not the lines, which is also so for cells of several lines and blank lines.
    """
    longest = csv.field_size_limit(2**31 - 1)
    try:
        with _opened(path) as file:
            for _ in csv.reader(file, strict=True):
                pass
    except csv.Error:
        raise InputError(
            f"{path.name} has a quotation mark that opens a cell and does not close it, so that rows below "
            "it would be lost; the file is cut off or damaged: download it again."
        ) from None
    finally:
        csv.field_size_limit(longest)


def _unreadable(path: Path, problem: Exception) -> InputError:
    """The sentence for a file that is no table; the cause may quote a row, so only its kind is told."""
    return InputError(
        f"{path.name} cannot be read ({type(problem).__name__}); it must be a CSV file in UTF-8, plain or "
        "compressed: download it again."
    )

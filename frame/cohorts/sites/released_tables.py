"""Released tables as text: read with refusals, joined by unique keys, and counted.

Every cell is read as the text that the owner released, so that ids keep their zeros and a blank cell stays
blank. What a damaged or foreign table would turn into wrong rows is refused here. No sentence quotes a row.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from frame.cohorts import harmonise
from frame.cohorts.schema import FINDINGS
from frame.cohorts.sites.contract import LEFT_OUT_COLUMNS, ROW_COLUMNS, TALLY_COLUMNS, SiteFiles, SiteRows
from frame.errors import InputError

#: Columns of :data:`~frame.cohorts.sites.contract.ROW_COLUMNS` by name: a series, or one value for all.
Columns = dict[str, "pd.Series | str | float"]

__all__ = [
    "Columns",
    "assembled",
    "check_filled",
    "check_unique",
    "counted",
    "first_kept",
    "left_out",
    "looked_up",
    "needed_path",
    "only_frontal",
    "read_columns",
    "strange_cells",
    "tallied",
    "tally_rows",
]

#: Longest text of a cell that an error message shows: long enough for a code, too short for an id or a note.
_LONGEST_SHOWN: Final = 6
#: Bytes read at once; a row, with the whole text of a report, must fit into it.
_BLOCK: Final = 1 << 24
#: Views that a chest cohort holds.
FRONTAL: Final = ("AP", "PA")


def needed_path(files: SiteFiles, key: str) -> Path:
    """Where a file lies that the source cannot be read without.

    Parameters
    ----------
    files : SiteFiles
        The files found.
    key : str
        Its key in ``data/image_source_files.csv``.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    frame.InputError
        If it was not found.
    """
    if key not in files.paths:
        found = ", ".join(files.paths) or "none"
        raise InputError(
            f"Source {files.source} needs its file '{key}'; found: {found}; `frame data check` says what is "
            "missing."
        )
    return files.paths[key]


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
        If the file cannot be read, lacks a column, has no rows, or has rows that do not fit its header.
    """
    header = _header(path)
    absent = [column for column in needed if column not in header]
    if absent:
        raise InputError(
            f"{path.name} has no column {', '.join(absent)} among its {len(header)} columns; it must be the "
            "table as its owner releases it, with its header."
        )
    table = _read(path, [*needed, *(column for column in header if others and column not in needed)])
    if table.empty:
        raise InputError(f"{path.name} has no row below its header; download it again.")
    return table


def check_filled(table: pd.DataFrame, columns: Sequence[str], name: str) -> None:
    """Refuse a table in which an id is blank.

    Parameters
    ----------
    table : pandas.DataFrame
        Rows of one file.
    columns : sequence of str
        Ids.
    name : str
        File name, for the message.

    Raises
    ------
    frame.InputError
        With the number of rows whose id is blank.
    """
    for column in columns:
        blank = int((table[column].str.strip() == "").sum())
        if blank:
            raise InputError(
                f"{name}: {column} is blank in {blank:,} of {len(table):,} rows; every row needs one."
            )


def check_unique(table: pd.DataFrame, columns: Sequence[str], name: str) -> None:
    """Refuse a table in which a key stands twice.

    Parameters
    ----------
    table : pandas.DataFrame
        Rows of one file.
    columns : sequence of str
        The key.
    name : str
        File name, for the message.

    Raises
    ------
    frame.InputError
        With the number of rows whose key, or part of it, is blank or stands in an earlier row.
    """
    check_filled(table, columns, name)
    key = ", ".join(columns)
    twice = int(table.duplicated(list(columns)).sum())
    if twice:
        raise InputError(
            f"{name}: {twice:,} of {len(table):,} rows have the {key} of an earlier row; one row each is "
            "needed."
        )


def looked_up(keys: pd.Series, table: pd.DataFrame, key: str) -> pd.DataFrame:
    """The row of a table for each key.

    Parameters
    ----------
    keys : pandas.Series of str
        What to look up, one per image.
    table : pandas.DataFrame
        Rows with a unique column ``key``.
    key : str
        That column.

    Returns
    -------
    pandas.DataFrame
        The other columns, with the index of ``keys``; all missing where no row has the key. A column
        ``found`` (bool) tells that apart.
    """
    at = pd.Index(table[key]).get_indexer(pd.Index(keys))
    rows = table.drop(columns=key).reset_index(drop=True)
    # Position -1 (no row) is not in the index, and so becomes a row of missing values.
    looked = rows.reindex(at)
    looked.index = keys.index
    looked["found"] = at >= 0
    return looked


def tallied(field: str, recorded: pd.Series, values: pd.Series) -> pd.DataFrame:
    """Count what each recorded text became.

    Parameters
    ----------
    field : str
        Name of the field.
    recorded : pandas.Series
        Text of each image; missing counts as blank.
    values : pandas.Series
        What it became, in the same order; missing where it became nothing.

    Returns
    -------
    pandas.DataFrame
        The columns of :data:`~frame.cohorts.sites.contract.TALLY_COLUMNS`, sorted by text and value.
    """
    pairs = pd.DataFrame(
        {
            "recorded": recorded.astype(object).where(recorded.notna(), "").to_numpy(),
            "value": values.astype(object).where(values.notna(), np.nan).to_numpy(),
        }
    )
    counts = pairs.groupby(["recorded", "value"], dropna=False, sort=True).size().reset_index(name="n_images")
    return tally_rows([(field, str(text), value, n) for text, value, n in counts.itertuples(index=False)])


def counted(field: str, recorded: str, value: str | float, n_images: int) -> pd.DataFrame:
    """One row of a tally, or none if there are no such images.

    Parameters
    ----------
    field, recorded : str
        Name of the field, and what was found.
    value : str or NaN
        What it became.
    n_images : int
        How many images.

    Returns
    -------
    pandas.DataFrame
        The columns of :data:`~frame.cohorts.sites.contract.TALLY_COLUMNS`.
    """
    return tally_rows([(field, recorded, value, n_images)] if n_images else [])


def tally_rows(rows: Sequence[tuple[str, str, str | float, int]]) -> pd.DataFrame:
    """Rows of a tally as a table.

    Parameters
    ----------
    rows : sequence of (str, str, str or NaN, int)
        Field, what was recorded, what it became, how many images.

    Returns
    -------
    pandas.DataFrame
        The columns of :data:`~frame.cohorts.sites.contract.TALLY_COLUMNS`.
    """
    table = pd.DataFrame(rows, columns=list(TALLY_COLUMNS))
    return table.astype({"field": "str", "recorded": "str", "value": "str", "n_images": "int64"})


def left_out(reasons: pd.Series) -> pd.DataFrame:
    """Count the reasons of the images that are left out.

    Parameters
    ----------
    reasons : pandas.Series of str
        One entry per image that is left out.

    Returns
    -------
    pandas.DataFrame
        ``reason``, ``n_images``; sorted by reason.
    """
    counts = reasons.value_counts().sort_index()
    return pd.DataFrame(
        {"reason": list(counts.index), "n_images": counts.to_numpy(dtype=np.int64)},
        columns=list(LEFT_OUT_COLUMNS),
    )


def first_kept(levels: pd.Series, subjects: pd.Series) -> pd.Series:
    """The level that stands most often for each subject; the later one of two that stand equally often.

    Parameters
    ----------
    levels : pandas.Series of str
        Level of each row, rows in order of time; missing levels do not count.
    subjects : pandas.Series of str
        Subject of each row.

    Returns
    -------
    pandas.Series of int
        For each subject (the index) the position of the last row with that level, or of the subject's last
        row where no row has a level.
    """
    rows = pd.DataFrame(
        {"subject": subjects.to_numpy(), "level": levels.to_numpy(), "row": np.arange(len(levels))}
    )
    last = rows.groupby("subject")["row"].last()
    named = (
        rows.dropna(subset=["level"]).groupby(["subject", "level"])["row"].agg(["size", "last"]).reset_index()
    )
    best = named.sort_values(["size", "last"]).drop_duplicates("subject", keep="last").set_index("subject")
    last.loc[best.index] = best["last"]
    return last


def assembled(
    columns: Columns,
    codes: pd.DataFrame,
    excluded: pd.DataFrame,
    tallies: Sequence[pd.DataFrame],
) -> SiteRows:
    """Put the rows of a chest source together.

    Parameters
    ----------
    columns : mapping
        Columns of :data:`~frame.cohorts.sites.contract.ROW_COLUMNS`: a series with the index of ``codes``, or
        one value for all images. What is not named is missing throughout.
    codes : pandas.DataFrame
        The 13 findings.
    excluded : pandas.DataFrame
        Images left out and why, as from :func:`left_out`.
    tallies : sequence of pandas.DataFrame
        Parts of the tally.

    Returns
    -------
    SiteRows
        Rows sorted by ``image_id``.

    """
    table = pd.DataFrame(index=codes.index)
    for name in ROW_COLUMNS:
        table[name] = columns.get(name, np.nan)
        if name != "age":
            table[name] = table[name].astype("str")
    table["age"] = table["age"].astype(np.float64)
    table = pd.concat([table, codes[list(FINDINGS["chest"])]], axis=1)
    table = table.sort_values("image_id", ignore_index=True)
    return SiteRows(table, excluded.reset_index(drop=True), pd.concat(tallies, ignore_index=True))


def strange_cells(cells: pd.Series) -> str:
    """Unexpected cells for a sentence: how many, and the short ones of them as they stand."""
    counts = cells.value_counts()
    short = [repr(text) for text in counts.index if len(str(text)) <= _LONGEST_SHOWN][:5]
    return f"{len(cells):,} cells with another text" + (f" ({', '.join(sorted(short))})" if short else "")


def only_frontal(
    images: pd.DataFrame, column: str
) -> tuple[pd.DataFrame, pd.Series, pd.DataFrame, pd.DataFrame]:
    """Keep the images whose recorded view is AP or PA.

    Parameters
    ----------
    images : pandas.DataFrame
        All images of the release.
    column : str
        Where the view is recorded.

    Returns
    -------
    images, views, excluded, tally
        The images kept (a new index from 0), their views, and what was left out and kept, counted.

    Raises
    ------
    frame.InputError
        If none is left.
    """
    found = harmonise.view(images[column])
    frontal = found.values.isin(FRONTAL)
    kept = found.tally["value"].isin(FRONTAL)
    rows = found.tally[~kept].sort_values("recorded")
    reasons = ["no view recorded" if text == "(blank)" else f"view {text}" for text in rows["recorded"]]
    excluded = pd.DataFrame(
        {"reason": reasons, "n_images": rows["n_images"].to_numpy()}, columns=list(LEFT_OUT_COLUMNS)
    )
    if not frontal.any():
        told = "; ".join(f"{row.n_images:,} images: {row.reason}" for row in excluded.itertuples())
        raise InputError(f"No frontal chest radiograph is left in {column} ({told}).")
    views = found.values[frontal].reset_index(drop=True)
    return images[frontal].reset_index(drop=True), views, excluded, found.tally[kept]


def _header(path: Path) -> list[str]:
    """Names of the columns."""
    try:
        # "rt" as a mode of both means text; utf-8-sig also takes the mark that some programs put in front.
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
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
            table = released.read_csv(
                stream,
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
    return pd.DataFrame(table.to_pandas()).astype("str")


def _unreadable(path: Path, problem: Exception) -> InputError:
    """The sentence for a file that is no table; the cause may quote a row, so only its kind is told."""
    return InputError(
        f"{path.name} cannot be read ({type(problem).__name__}); it must be a CSV file in UTF-8, plain or "
        "compressed: download it again."
    )

"""Rows of released tables: checked, joined by unique keys, and counted.

Cells are text as released (:mod:`frame.cohorts.sites.text_columns`). What a foreign table would turn into
wrong rows is refused here. No sentence quotes a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from frame.cohorts import harmonise
from frame.cohorts.schema import FINDINGS
from frame.cohorts.sites.contract import LEFT_OUT_COLUMNS, ROW_COLUMNS, TALLY_COLUMNS, SiteFiles, SiteRows
from frame.cohorts.sites.text_columns import read_columns
from frame.errors import InputError

#: Columns of :data:`~frame.cohorts.sites.contract.ROW_COLUMNS` by name: a series, or one value for all.
Columns = dict[str, "pd.Series | str | float"]

__all__ = [
    "Columns",
    "assembled",
    "check_filled",
    "check_linked",
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
    "whole_numbers",
]

#: Longest text of a cell that an error message shows: long enough for a code, too short for an id or a note.
_LONGEST_SHOWN: Final = 6
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


def check_linked(found: pd.Series | np.ndarray, name: str, ids: str) -> None:
    """Refuse a table that is joined to the images and has none of them, since its ids were changed then.

    Parameters
    ----------
    found : series or array of bool
        Whether each image has its row.
    name : str
        File name of the table, for the message.
    ids : str
        What it is joined by, for the message.

    Raises
    ------
    frame.InputError
        If no image has a row. That some have none is counted, and is no error.
    """
    if len(found) and not np.any(found):
        raise InputError(
            f"{name} has no row for any of {len(found):,} images by {ids}; the tables are not of one "
            "release, or a program changed the ids (12 into 12.0, 007 into 7): take both as released."
        )


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


def whole_numbers(cells: pd.Series, column: str, name: str) -> pd.Series:
    """Read whole numbers, such as years; a blank or absent one is missing.

    Parameters
    ----------
    cells : pandas.Series of str
        ``2150``, ``2150.0``, a blank, or missing.
    column, name : str
        Column and file name, for the message.

    Returns
    -------
    pandas.Series of float64
        Numbers, with the index of ``cells``.

    Raises
    ------
    frame.InputError
        If a cell holds another text: a number that cannot be read is not taken for one that is not recorded.
    """
    texts = cells.fillna("").str.strip()
    strange = (texts != "") & ~texts.str.fullmatch(r"-?[0-9]+(\.0*)?")
    if strange.any():
        raise InputError(
            f"{name} holds {strange_cells(texts[strange])} in column {column}; allowed is a whole number."
        )
    return pd.to_numeric(texts.where(texts != "", np.nan)).astype(np.float64)


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

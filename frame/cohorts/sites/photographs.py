"""What the sources of skin photographs and fundus images share: their image files and their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from frame.cohorts.listing import files_under
from frame.cohorts.schema import FINDINGS
from frame.cohorts.sites.contract import LEFT_OUT_COLUMNS, ROW_COLUMNS, SiteRows
from frame.errors import InputError

if TYPE_CHECKING:
    from frame.cohorts.sites.contract import SiteFiles

__all__ = ["binary_codes", "image_files", "photograph_rows"]


def image_files(files: SiteFiles, names: pd.Series, patterns: Sequence[str]) -> pd.Series:
    """Where the image file of each row lies.

    Parameters
    ----------
    files : SiteFiles
        Names the folder, and whether images are looked for.
    names : pandas.Series of str
        File name of each row.
    patterns : sequence of str
        Where the release has its images, as for :func:`frame.cohorts.listing.files_under`.

    Returns
    -------
    pandas.Series of str
        POSIX path relative to the root; missing where there is no such file, or none is looked for.
    """
    if not files.images or files.root is None:
        return pd.Series(np.nan, index=names.index, dtype="str")
    return names.map(files_under(files.root, patterns)).astype("str")


def binary_codes(recorded: pd.Series, codes: Mapping[str, int | None], table: str) -> pd.Series:
    """Codes of a finding from a closed list of texts.

    Parameters
    ----------
    recorded : pandas.Series of str
        Text of each row; its name is the column's.
    codes : mapping of str to int or None
        Lower-case text to the code, None where the text is no label of the finding.
    table : str
        File name, for the message.

    Returns
    -------
    pandas.Series of Int8
        Codes of :mod:`frame.cohorts.labels`.

    Raises
    ------
    frame.InputError
        If a text is not in the list. A label is never guessed.
    """
    texts = recorded.str.strip().str.casefold()
    strange = int((~texts.isin(list(codes))).sum())
    if strange:
        raise InputError(
            f"{table}: column {recorded.name} is none of {', '.join(codes)} in {strange:,} of "
            f"{len(texts):,} rows; a label is not guessed: download the table again."
        )
    found = texts.map({text: code for text, code in codes.items() if code is not None})
    return found.astype("Int8")


def photograph_rows(
    modality: str,
    columns: Mapping[str, Any],
    codes: pd.Series,
    excluded: Mapping[str, int],
    tallies: Sequence[pd.DataFrame],
) -> SiteRows:
    """Put the rows of a source with one finding together.

    Parameters
    ----------
    modality : {"skin", "fundus"}
        Gives the name of the finding.
    columns : mapping
        Columns of :data:`~frame.cohorts.sites.contract.ROW_COLUMNS`, with the index of ``codes``; what is not
        named is missing throughout.
    codes : pandas.Series of Int8
        Codes of the finding.
    excluded : mapping of str to int
        Reason to number of images left out.
    tallies : sequence of pandas.DataFrame
        Parts of the tally.

    Returns
    -------
    SiteRows
        Rows sorted by ``image_id``.
    """
    (finding,) = FINDINGS[modality]
    table = pd.DataFrame(index=codes.index)
    for name in ROW_COLUMNS:
        column = columns.get(name, np.nan)
        table[name] = column if name == "age" else pd.Series(column, index=codes.index, dtype="str")
    table["age"] = table["age"].astype(np.float64)
    table[finding] = codes
    left_out = pd.DataFrame(
        [(reason, count) for reason, count in excluded.items() if count], columns=list(LEFT_OUT_COLUMNS)
    )
    return SiteRows(
        table=table.sort_values("image_id", ignore_index=True),
        left_out=left_out,
        tally=pd.concat([part for part in tallies if len(part)], ignore_index=True),
    )

"""Released tables as bytes: the same table gives the same bytes, plain or compressed."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["csv_bytes", "lateral_rows", "spelled"]


def csv_bytes(table: pd.DataFrame, name: str) -> bytes:
    """A table as the bytes of a CSV file, compressed if the name ends in ``.gz``.

    Parameters
    ----------
    table : pandas.DataFrame
        Columns in order; missing is blank.
    name : str
        File name.

    Returns
    -------
    bytes
        Without an index; lines end in a line feed.
    """
    content = table.to_csv(index=False, lineterminator="\n").encode("utf-8")
    return gzip.compress(content, 6, mtime=0) if name.endswith(".gz") else content


def spelled(
    levels: pd.Series,
    spellings: Mapping[str, Sequence[Any]],
    missing: Sequence[Any],
    random: np.random.Generator,
) -> NDArray[np.object_]:
    """A spelling for each level: the first in three of five rows, one of the others in the rest.

    Parameters
    ----------
    levels : pandas.Series
        Recorded level of each row, or missing.
    spellings : mapping of str to sequence
        Spellings of each level.
    missing : sequence
        Spellings of what is missing.
    random : numpy.random.Generator
        Stream; two numbers a row.

    Returns
    -------
    numpy.ndarray of object
        Spellings.
    """
    u = random.random((len(levels), 2))
    found = np.empty(len(levels), dtype=object)
    for place, level in enumerate(levels):
        texts = spellings[level] if isinstance(level, str) else missing
        others = texts[1:]
        usual = not others or u[place, 0] < 0.6
        found[place] = texts[0] if usual else others[int(u[place, 1] * len(others))]
    return found


def lateral_rows(views: pd.Series, random: np.random.Generator, share: float = 0.3) -> NDArray[np.int64]:
    """Images whose study also has a lateral view: some of those taken PA.

    Parameters
    ----------
    views : pandas.Series
        True view of each image.
    random : numpy.random.Generator
        Stream.
    share : float
        Share of the PA images.

    Returns
    -------
    numpy.ndarray of int64
        Row numbers.
    """
    return np.flatnonzero((views == "PA").to_numpy() & (random.random(len(views)) < share))

"""Which training rows a unit is fitted on: at most a cap of them, drawn once and shared by every method."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from frame.errors import InputError

__all__ = ["CAP", "capped_rows"]

#: Training rows of a unit at most.
CAP: Final = 100_000


def capped_rows(rows: int | NDArray[np.bool_], cap: int = CAP, seed: int = 0) -> NDArray[np.int64]:
    """Row numbers to fit on: all where there are at most ``cap``, else a draw without replacement.

    Parameters
    ----------
    rows : int or ndarray of bool, shape (n,)
        Number of rows, or a flag for each row that may be used.
    cap : int
        Rows at most, at least 1.
    seed : int
        Of the draw; the same rows, cap and seed give the same numbers.

    Returns
    -------
    ndarray of int64, shape (min(rows, cap),)
        In rising order, each once.

    Raises
    ------
    InputError
        For a negative number of rows, flags that are not one row of bool, or a cap below 1.
    """
    if cap < 1:
        raise InputError(f"The cap on training rows is {cap:,}; give at least 1.")
    usable: NDArray[np.int64]
    if isinstance(rows, np.ndarray) and rows.ndim == 1 and rows.dtype == np.bool_:
        usable = np.flatnonzero(rows).astype(np.int64)
    else:
        usable = np.arange(_number(rows), dtype=np.int64)
    if len(usable) <= cap:
        return usable
    drawn = np.random.default_rng(seed).choice(len(usable), size=cap, replace=False, shuffle=False)
    return usable[np.sort(drawn)]


def _number(rows: Any) -> int:
    if isinstance(rows, int | np.integer) and not isinstance(rows, bool | np.bool_) and rows >= 0:
        return int(rows)
    found = f"{rows.dtype} of shape {rows.shape}" if isinstance(rows, np.ndarray) else repr(rows)
    raise InputError(f"The training rows are {found}; give their number, or one flag (bool) per row.")

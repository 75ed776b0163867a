"""Which rows an operator moves, and which way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frame.errors import InputError

__all__ = ["signs_of"]

Signs = NDArray[np.int8]


def signs_of(
    groups: Any,
    train: NDArray[Any] | None = None,
    *,
    majority: Any = None,
    exclude: Sequence[Any] = (),
) -> Signs:
    """+1 for rows of the largest subgroup, -1 for those of every other one, 0 where the group is missing.

    Parameters
    ----------
    groups : array_like, shape (N,)
        Group of each row: text, numbers or categories; None, NaN and blanks are missing. An array of numbers
        that marks missing groups with -1 needs that said: ``numpy.where(codes < 0, numpy.nan, codes)``.
    train : ndarray of bool (N,) or of row numbers, optional
        Rows that the largest subgroup is counted over; None: all. Of equally large ones, the first in order
        of their names.
    majority : object, optional
        The group that gets +1, in place of the largest.
    exclude : sequence
        Groups that get 0. Drop their rows from the analysis as well: 0 only means that no operator touches
        them.

    Returns
    -------
    ndarray of int8, shape (N,)

    Raises
    ------
    InputError
        Where a named group is not there, fewer than two groups are left, or the majority is excluded.
    """
    from frame.measures.columns import column, factorize, text_of

    codes, values = factorize(column(groups, "groups"), "groups")
    names = [text_of(value) for value in values]
    there = ", ".join(f"'{name}'" for name in sorted(names)[:12]) or "none"

    def place(value: Any, what: str) -> int:
        if text_of(value) not in names:
            raise InputError(f"{what} '{text_of(value)}' is not a group; the groups are {there}.")
        return names.index(text_of(value))

    if isinstance(exclude, str):
        raise InputError(
            f"exclude is the text '{exclude}'; give a list of groups, for example ['{exclude}']."
        )
    left_out = {place(value, "The excluded group") for value in exclude}
    counted = codes if train is None else codes[np.asarray(train)]
    counts = np.bincount(counted[counted >= 0], minlength=len(names))
    kept = sorted((k for k in range(len(names)) if k not in left_out), key=lambda k: names[k])
    if len(kept) < 2:
        raise InputError(
            f"{len(kept)} group{'' if len(kept) == 1 else 's'} of {len(names)} (groups: {there}) "
            f"{'is' if len(kept) == 1 else 'are'} left; a difference needs two."
        )
    if majority is None:
        largest = max(kept, key=lambda k: counts[k])  # the first of equals
    else:
        largest = place(majority, "The majority")
        if largest in left_out:
            raise InputError(
                f"The group '{names[largest]}' is the majority and excluded; choose one of both."
            )
    if counts[largest] == 0:
        raise InputError(
            f"No training row is in the {'majority' if majority is not None else 'largest group'}."
        )
    table = np.full(len(names) + 1, -1, dtype=np.int8)
    table[largest] = 1
    table[[*left_out, len(names)]] = 0  # the last is read by code -1, a missing group
    found: Signs = table[codes]
    return found

"""What is made of the values of several subgroups: difference, worst group, equity-scaled AUROC.

Only subgroups that can be evaluated count. A value of NaN stands for one that cannot, and is never read
as zero: with fewer than two values left there is no difference.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from frame.errors import InputError
from frame.measures.registry import check_measure

if TYPE_CHECKING:
    import pandas as pd


def _known(values: ArrayLike) -> NDArray[np.float64]:
    given = np.asarray(values, dtype=np.float64)
    if given.ndim != 1:
        raise InputError(f"values have shape {given.shape}; give one value per subgroup.")
    return given[~np.isnan(given)]


def max_min_difference(values: ArrayLike) -> float:
    """Largest minus smallest subgroup value.

    Parameters
    ----------
    values : array_like of float, shape (n_subgroups,)
        NaN for a subgroup that is not estimable; it takes no part.

    Returns
    -------
    float
        At least 0; NaN with fewer than two values, because one group has no difference.

    Examples
    --------
    >>> max_min_difference([0.75, 0.5, float("nan")])
    0.25
    >>> max_min_difference([0.75, float("nan")])
    nan
    """
    known = _known(values)
    return float(known.max() - known.min()) if len(known) >= 2 else math.nan


def worst_group(table: pd.DataFrame, measure: str) -> tuple[str, float]:
    """Name and value of the worst evaluable subgroup.

    Parameters
    ----------
    table : DataFrame
        As returned by :func:`frame.measures.subgroup_table`.
    measure : str
        Decides the direction: the lowest AUROC, but the highest FPR, is the worst.

    Returns
    -------
    (str, float)
        The first in the order of the table where several are equally bad; ``("", nan)`` where no subgroup
        is evaluable.
    """
    better = check_measure(measure).better
    rows = table[table["evaluable"].astype(bool)]
    if len(rows) == 0:
        return "", math.nan
    values = rows["value"].to_numpy(dtype=np.float64)
    place = int(np.argmin(values) if better == "higher" else np.argmax(values))
    return str(rows["group"].iloc[place]), float(values[place])


def equity_scaled_auroc(overall: float, values: ArrayLike) -> float:
    """Overall AUROC divided by one plus the summed distances of the subgroups from it.

    Parameters
    ----------
    overall : float
        AUROC over all subgroups together, in [0, 1].
    values : array_like of float, shape (n_subgroups,)
        AUROC of each subgroup; NaN for one that is not estimable, which takes no part.

    Returns
    -------
    float
        At most ``overall``; NaN where ``overall`` is NaN or fewer than two values are left.

    Notes
    -----
    ``overall / (1 + sum_j |overall - auroc_j|)``. It falls with every subgroup added, so it is comparable
    only between models judged on the same subgroups.
    """
    known = _known(values)
    if len(known) < 2 or math.isnan(overall):
        return math.nan
    return float(overall / (1.0 + np.sum(np.abs(overall - known))))

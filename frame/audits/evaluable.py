"""The rows of the subgroups that are compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["EvaluableRows"]


@dataclass(frozen=True)
class EvaluableRows:
    """The evaluable subgroups of one unit.

    Attributes
    ----------
    names : tuple of str
        Subgroups, in the order of the attribute.
    rows : tuple of ndarray of int64
        Their rows, as positions in the arrays below.
    values : ndarray of float64, shape (subgroups,)
        Their observed values of the measure that is tested.
    scores, labels, patients, codes : ndarray, shape (rows,)
        Every row of the unit, those of other subgroups too; ``codes`` as in the attribute.
    levels : tuple of int
        Codes of the evaluable subgroups.
    n_levels, n_patients : int
        Numbers of codes and of patients.
    patients_given : bool
        Whether patient ids were given.
    threshold : float or None
        Positive decision from this score on.
    """

    names: tuple[str, ...]
    rows: tuple[NDArray[np.int64], ...]
    values: NDArray[np.float64]
    scores: NDArray[np.float64]
    labels: NDArray[np.bool_]
    patients: NDArray[np.int64]
    codes: NDArray[np.int64]
    levels: tuple[int, ...]
    n_levels: int
    n_patients: int
    patients_given: bool
    threshold: float | None

    @property
    def repeats(self) -> bool:
        """Whether any patient has several images among these subgroups."""
        used = np.concatenate(self.rows)
        return bool(np.bincount(self.patients[used], minlength=1).max() > 1)

    def patients_in_two(self) -> int:
        """How many patients have images in two or more of these subgroups."""
        n_groups = np.zeros(self.n_patients, dtype=np.int64)
        for rows in self.rows:
            n_groups[np.unique(self.patients[rows])] += 1
        return int(np.count_nonzero(n_groups > 1))

"""A fitted logistic head: coefficients, how the fit ended, and scores of rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from frame.errors import InputError
from frame.heads.linear_maps import LinearMap
from frame.heads.preconditioning import Preconditioner

__all__ = ["CONVERGED", "NOT_CONVERGED", "ONE_CLASS", "LogisticFit", "WarmStart"]

Floats = NDArray[np.float64]
Status = Literal["converged", "not converged", "one class"]
#: How a fit ended.
CONVERGED: Status = "converged"
NOT_CONVERGED: Status = "not converged"
ONE_CLASS: Status = "one class"


@dataclass(frozen=True, eq=False)
class WarmStart:
    """Where another fit of the same classes may begin, in the coordinates of the features.

    Attributes
    ----------
    coefficients, intercepts : ndarray of float64, shapes (1 or K, D) and (1 or K,)
    """

    coefficients: Floats
    intercepts: Floats

    def place(self, at: LinearMap) -> Floats:
        """Coefficients and intercepts for the columns of a map, shape (1 or K, M + 1).

        The same predictions where the map's matrix has orthonormal columns that hold the coefficients.
        """
        columns = self.coefficients / at.scale
        columns = columns if at.matrix is None else columns @ at.matrix
        return np.column_stack([columns, self.intercepts + self.coefficients @ at.centre])


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """Coefficients of penalised logistic regression, for the columns of a linear map of the features.

    Attributes
    ----------
    classes : tuple
        The labels, in the order of the coefficients; with two, the coefficients are those of the second.
    coefficients, intercepts : ndarray of float64, shapes (1 or K, M) and (1 or K,)
        One row for at most two classes, else one for each.
    map : LinearMap
        What the coefficients apply to.
    loss : float
        The objective divided by the sum of the weights.
    gradient : float
        Largest absolute entry of its gradient.
    iterations : int
        Steps taken.
    passes : float
        Times that all rows were read, a part of the rows counting as that part.
    status : {"converged", "not converged", "one class"}
    reason : str
        Why it is not converged, as a sentence without a full stop.
    preconditioner : Preconditioner or None
        What was learnt about the rows; another fit on them may be given it.
    """

    classes: tuple[Any, ...]
    coefficients: Floats
    intercepts: Floats
    map: LinearMap
    loss: float
    gradient: float
    iterations: int
    passes: float
    status: Status
    reason: str = ""
    preconditioner: Preconditioner | None = field(default=None, repr=False)

    def raw_coefficients(self) -> tuple[Floats, Floats]:
        """Coefficients (1 or K, D) and intercepts (1 or K,) for the features as they are."""
        matrix = self.map.matrix
        inner = self.coefficients if matrix is None else self.coefficients @ matrix.T
        raw = np.ascontiguousarray(inner * self.map.scale)
        return raw, self.intercepts - raw @ self.map.centre

    def decision(self, features: NDArray[Any], threads: int | None = None) -> Floats:
        """Log-odds of the second class, shape (n,), or the K scores before the softmax, shape (n, K).

        Features of shape (n, D) are read once, without a copy, with sums in float64.
        """
        from frame.heads.passes import linear_scores

        if features.ndim != 2 or features.shape[1] != self.map.n_features:
            raise InputError(
                f"The features have the shape {features.shape}; the head was fitted on "
                f"{self.map.n_features:,} columns, so give (n, {self.map.n_features})."
            )
        scores = linear_scores(features, *self.raw_coefficients(), threads)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def probability(self, features: NDArray[Any], threads: int | None = None) -> Floats:
        """Probability of the second class, shape (n,), or of each class, shape (n, K)."""
        scores = self.decision(features, threads)
        return np.asarray(expit(scores) if scores.ndim == 1 else softmax(scores, axis=1), dtype=np.float64)

    def warm(self) -> WarmStart:
        """What another fit takes as ``start``."""
        return WarmStart(*self.raw_coefficients())

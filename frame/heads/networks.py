"""Heads with one hidden layer, as scikit-learn fits them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from frame.errors import InputError
from frame.heads.linear_maps import LinearMap

Floats = NDArray[np.float64]

#: Units of the hidden layer, L2 penalty, and passes over the rows at most.
HIDDEN: Final = 256
PENALTY: Final = 1e-4
EPOCHS: Final = 200
_BLOCK = 4096


@dataclass(frozen=True, eq=False)
class Network:
    """A fitted network; the map of the features is folded into its first layer.

    Attributes
    ----------
    first, first_offset : ndarray of float64, shapes (D, hidden) and (hidden,)
    last, last_offset : ndarray of float64, shapes (hidden, 1) and (1,)
    iterations : int
        Passes over the rows that were made.
    loss : float
        The last one on the rows it was fitted on.
    status, reason : str
        ``converged``, or ``not converged`` with the reason.
    """

    first: Floats
    first_offset: Floats
    last: Floats
    last_offset: Floats
    iterations: int
    loss: float
    status: str
    reason: str

    def decision(self, features: NDArray[Any]) -> Floats:
        """Log-odds of label 1, shape (n,), block by block in float64."""
        if features.ndim != 2 or features.shape[1] != len(self.first):
            raise InputError(
                f"The features have the shape {features.shape}; the head was fitted on {len(self.first):,} "
                f"columns, so give (n, {len(self.first)})."
            )
        scores = np.empty(len(features))
        for start in range(0, len(features), _BLOCK):
            rows = slice(start, start + _BLOCK)
            hidden = np.asarray(features[rows], dtype=np.float64) @ self.first + self.first_offset
            scores[rows] = (np.maximum(hidden, 0.0, out=hidden) @ self.last + self.last_offset)[:, 0]
        return scores


def fit_network(
    features: NDArray[Any],
    codes: NDArray[np.int32],
    weights: Floats,
    at: LinearMap,
    *,
    hidden: int = HIDDEN,
    penalty: float = PENALTY,
    epochs: int = EPOCHS,
    seed: int = 0,
) -> Network:
    """One hidden layer by scikit-learn's ``MLPClassifier`` with early stopping, on the columns of a map.

    The mapped rows are made as float32: scikit-learn needs them whole.

    Parameters
    ----------
    features : ndarray, shape (n, D)
    codes : ndarray of int32, shape (n,)
        0 or 1, both there.
    weights : ndarray of float64, shape (n,)
    at : LinearMap
    hidden, penalty, epochs, seed
        Units, L2 penalty, passes at most, and the seed of the first coefficients, of the order of the rows
        and of the tenth of the rows that decides when to stop.

    Raises
    ------
    InputError
        Without scikit-learn.
    ValueError
        From scikit-learn, for instance where a class has a single row.
    """
    try:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPClassifier
    except ImportError as error:
        raise InputError(
            "A head with a hidden layer needs scikit-learn; install it with: "
            "pip install 'frame-audit[mitigation]'"
        ) from error
    mapped = np.empty((len(features), at.n_columns), np.float32)
    for start in range(0, len(features), _BLOCK):
        mapped[start : start + _BLOCK] = at.apply(features[start : start + _BLOCK])
    network = MLPClassifier(
        hidden_layer_sizes=(hidden,), alpha=penalty, max_iter=epochs, early_stopping=True, random_state=seed
    )
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        network.fit(mapped, codes, sample_weight=weights)
    for warning in given:
        if not issubclass(warning.category, ConvergenceWarning):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    stopped = not any(issubclass(warning.category, ConvergenceWarning) for warning in given)
    inner, last = (np.asarray(layer, dtype=np.float64) for layer in network.coefs_)
    offset, last_offset = (np.asarray(layer, dtype=np.float64) for layer in network.intercepts_)
    first = at.scale[:, None] * (inner if at.matrix is None else at.matrix @ inner)
    return Network(
        first,
        offset - at.centre @ first,
        last,
        last_offset,
        int(network.n_iter_),
        float(network.loss_),
        "converged" if stopped else "not converged",
        "" if stopped else f"early stopping had not ended the fit after {epochs:,} passes over the rows",
    )

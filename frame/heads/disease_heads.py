"""Disease heads: a linear or a one-layer classifier of a finding on standardised frozen features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from frame.errors import InputError
from frame.heads.fitted import ONE_CLASS, LogisticFit, WarmStart
from frame.heads.linear_maps import LinearMap, checked_features, standardising_map
from frame.heads.logistic import fit_logistic
from frame.heads.networks import EPOCHS, HIDDEN, PENALTY, Network, fit_network
from frame.heads.preconditioning import Preconditioner

__all__ = ["KINDS", "Head", "fit_head"]

Floats = NDArray[np.float64]
Kind = Literal["linear", "mlp"]
#: Heads that can be asked for.
KINDS: tuple[Kind, ...] = ("linear", "mlp")
#: Inverse penalty and iterations of the linear head.
PENALTY_INVERSE, ITERATIONS = 1.0, 1000


@dataclass(frozen=True, eq=False)
class Head:
    """A fitted disease head.

    Attributes
    ----------
    kind : {"linear", "mlp"}
    status : {"converged", "not converged", "one class", "not fitted"}
        With one of the last two the head says 0 for every row.
    reason : str
        Why it is not converged, as a sentence without a full stop.
    details : mapping
        ``iterations``, ``passes`` (linear), ``loss``, ``gradient`` (linear), ``n_images``, ``n_positive``.
    fit : LogisticFit, Network or None
        What was fitted; the linear one has the coefficients, and what another fit can begin from.
    """

    kind: Kind
    status: str
    reason: str
    details: Mapping[str, Any]
    fit: LogisticFit | Network | None = field(repr=False)

    def logit(self, features: NDArray[Any]) -> Floats:
        """Log-odds of the finding for features as they are, shape (n,)."""
        return np.zeros(len(features)) if self.fit is None else self.fit.decision(features)

    def probability(self, features: NDArray[Any]) -> Floats:
        """Probability of the finding, shape (n,)."""
        return np.asarray(expit(self.logit(features)), dtype=np.float64)


def fit_head(
    features: NDArray[Any],
    labels: NDArray[Any],
    *,
    kind: Kind = "linear",
    class_weight: Literal["default", "balanced"] | None = "default",
    weights: NDArray[Any] | None = None,
    map: LinearMap | None = None,  # noqa: A002
    seed: int = 0,
    start: WarmStart | LogisticFit | None = None,
    preconditioner: Preconditioner | None = None,
    tolerance: float = 1e-8,
    device: str = "cpu",
    threads: int | None = None,
) -> Head:
    """Fit a head for labels 0 and 1.

    Parameters
    ----------
    features : ndarray, shape (n, D)
        float16, float32 or float64, finite; never changed.
    labels : ndarray, shape (n,)
        0 or 1, of any type.
    kind : {"linear", "mlp"}
        ``linear``: logistic with C = 1, to the optimum in at most 1,000 iterations. ``mlp``: 256 hidden
        units, L2 penalty 1e-4, at most 200 passes, early stopping.
    class_weight : {"default", "balanced"}, optional
        ``balanced``: weights inverse to the frequency of the class; None: none. ``default`` is what the paper
        describes: balanced for the linear head, none for the network.
    weights : ndarray, shape (n,), optional
        Of rows, multiplied with those of the classes.
    map : LinearMap, optional
        What the head is fitted on; None standardises by mean and standard deviation of these rows.
    seed : int
        Of the network; the linear head has one optimum.
    start, preconditioner, tolerance, device, threads
        As for :func:`frame.heads.logistic.fit_logistic`; the network uses none of them.

    Returns
    -------
    Head
        With one class its status says so.

    Raises
    ------
    InputError
        For arguments that do not fit together, other labels, or rows that are not finite.
    """
    if kind not in KINDS:
        raise InputError(f"The head is {kind!r}; give one of {', '.join(KINDS)}.")
    if class_weight == "default":
        class_weight = "balanced" if kind == "linear" else None
    checked_features(features)
    design = standardising_map(features, threads=threads) if map is None else map
    given = np.asarray(labels)
    if given.shape != (len(features),) or not np.isin(given, (0, 1)).all():
        raise InputError(f"The labels are not {len(features):,} numbers 0 or 1; give one per row.")
    counts = {"n_images": len(given), "n_positive": int((given == 1).sum())}
    if kind == "linear":
        fit = fit_logistic(
            features,
            given,
            classes=(0, 1),
            weights=weights,
            class_weight=class_weight,
            C=PENALTY_INVERSE,
            map=design,
            start=start,
            preconditioner=preconditioner,
            iterations=ITERATIONS,
            tolerance=tolerance,
            device=device,
            threads=threads,
        )
        numbers = {
            "iterations": fit.iterations,
            "passes": fit.passes,
            "loss": fit.loss,
            "gradient": fit.gradient,
        }
        return Head(kind, fit.status, fit.reason, {**numbers, **counts}, fit)
    return _network_head(features, given, class_weight, weights, design, seed, counts)


def _network_head(
    features: NDArray[Any],
    labels: NDArray[Any],
    class_weight: str | None,
    weights: NDArray[Any] | None,
    design: LinearMap,
    seed: int,
    counts: dict[str, int],
) -> Head:
    codes = np.asarray(labels == 1, dtype=np.int32)
    row_weights = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=np.float64)
    if row_weights.shape != codes.shape or not (np.isfinite(row_weights) & (row_weights >= 0)).all():
        raise InputError(f"The weights are not {len(codes):,} finite numbers from 0; give one per row.")
    of_class = np.bincount(codes, weights=row_weights, minlength=2)
    if (of_class == 0).any():
        reason = (
            f"all {len(codes):,} rows with a weight have the same label, so there is nothing to tell apart"
        )
        return Head("mlp", ONE_CLASS, reason, counts, None)
    if class_weight == "balanced":
        row_weights = row_weights * (of_class.sum() / (2 * of_class))[codes]
    elif class_weight is not None:
        raise InputError(f"class_weight is {class_weight!r}; give 'balanced' or None.")
    try:
        fit = fit_network(
            features, codes, row_weights, design, hidden=HIDDEN, penalty=PENALTY, epochs=EPOCHS, seed=seed
        )
    except InputError:
        raise
    except ValueError as error:  # scikit-learn's own refusals, such as a class with a single row
        return Head("mlp", "not fitted", f"scikit-learn refused the rows: {error}".rstrip(". "), counts, None)
    return Head(
        "mlp", fit.status, fit.reason, {"iterations": fit.iterations, "loss": fit.loss, **counts}, fit
    )

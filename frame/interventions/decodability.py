"""How well a probe tells groups from features: macro one-vs-rest AUROC on images it was not fitted on."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from frame.errors import InputError
from frame.heads.linear_maps import LinearMap
from frame.measures.values import measure_value

__all__ = [
    "HIDDEN_UNITS",
    "NOT_ESTIMABLE",
    "NOT_RUN",
    "OK",
    "Quantity",
    "macro_auroc",
    "network_logits",
    "nonlinear_probe",
    "not_estimable",
]

Floats = NDArray[np.float64]
OK: Final = "ok"
NOT_ESTIMABLE: Final = "not estimable"
NOT_RUN: Final = "not run"
#: The nonlinear probe: units of its one hidden layer, L2 penalty, iterations at most.
HIDDEN_UNITS: Final = 256
NETWORK_PENALTY: Final = 1e-3
NETWORK_ITERATIONS: Final = 300
_BLOCK = 4096


@dataclass(frozen=True)
class Quantity:
    """One number of a representation's geometry, or why there is none.

    Attributes
    ----------
    value : float
        NaN unless ``status`` is ``ok``.
    status : {"ok", "not estimable", "not run"}
    reason : str
        Why there is no value, as a sentence without a full stop; empty with ``ok``.
    flags : tuple of str
        What a reader must know beside the value.
    details : dict
        Numbers behind the value; not the same for every quantity.
    """

    value: float
    status: Literal["ok", "not estimable", "not run"] = "ok"
    reason: str = ""
    flags: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict, compare=False)


def not_estimable(reason: str) -> Quantity:
    """A quantity without a value."""
    return Quantity(float("nan"), "not estimable", reason)


def macro_auroc(decisions: Floats, codes: NDArray[Any], names: tuple[str, ...]) -> Quantity:
    """Mean over groups of the AUROC of each group against all others.

    Parameters
    ----------
    decisions : ndarray of float64, shape (n,) or (n, K)
        Log-odds of the second of two groups, or one logit per group. A group is ranked by the log-odds of its
        probability, which does not saturate.
    codes : ndarray of int, shape (n,)
        Group of each image, 0 to K - 1.
    names : tuple of str
        Of the K groups.

    Returns
    -------
    Quantity
        Over the groups that have images here; one that has none is named in ``flags``. Not estimable with
        fewer than two such groups. ``details["by_group"]`` holds each group's AUROC.
    """
    n_groups = len(names)
    counts = np.bincount(codes, minlength=n_groups)
    present = np.flatnonzero(counts)
    if len(present) < 2:
        found = f"only {names[present[0]]}" if len(present) else "none"
        return not_estimable(f"of the groups the probe knows, {found} has test images")
    by_group: dict[str, float] = {}
    for code in present.tolist():
        if decisions.ndim == 1:
            odds = decisions if code == 1 else -decisions
        else:
            odds = decisions[:, code] - logsumexp(np.delete(decisions, code, axis=1), axis=1)
        by_group[names[code]] = measure_value("auroc", odds, codes == code)
    flags = tuple(f"{names[code]} has no test images" for code in np.flatnonzero(counts == 0).tolist())
    return Quantity(float(np.mean(list(by_group.values()))), flags=flags, details={"by_group": by_group})


def nonlinear_probe(
    train: NDArray[Any],
    train_codes: NDArray[Any],
    test: NDArray[Any],
    test_codes: NDArray[Any],
    names: tuple[str, ...],
    standard: LinearMap,
    *,
    seed: int = 0,
    hidden_units: int = HIDDEN_UNITS,
) -> Quantity:
    """Macro one-vs-rest AUROC of a network with one hidden layer.

    Parameters
    ----------
    train, test : ndarray of float, shapes (n, D) and (m, D)
    train_codes, test_codes : ndarray of int
        0 to K - 1; every group has training rows.
    names : tuple of str
        Of the K groups.
    standard : LinearMap
        Standardises features.
    seed : int
    hidden_units : int

    Returns
    -------
    Quantity
        Not estimable where scikit-learn is missing or cannot split off a part for early stopping; a group
        with one training image is left out and named in ``flags``.

    Notes
    -----
    scikit-learn's ``MLPClassifier``, L2 penalty 1e-3, at most 300 iterations, early stopping on a tenth of
    the training rows. Standardised training rows are held in float32 unless the features are float64.
    """
    try:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPClassifier
    except ImportError:
        return not_estimable("it needs scikit-learn; install it with: pip install 'frame-audit[mitigation]'")
    counts = np.bincount(train_codes, minlength=len(names))
    usable = np.flatnonzero(counts >= 2)
    if len(usable) < 2:
        return not_estimable("fewer than two groups have two training images")
    flags = [f"{names[code]} has one training image and was left out" for code in np.flatnonzero(counts < 2)]
    place = np.full(len(names), -1)
    place[usable] = np.arange(len(usable))
    if int(counts[usable].sum()) < 10 * len(usable):
        return not_estimable(
            f"{int(counts[usable].sum()):,} training images are too few to set a tenth aside for "
            f"{len(usable)} groups"
        )
    rows, tested = place[train_codes] >= 0, place[test_codes] >= 0
    network = MLPClassifier(
        hidden_layer_sizes=(hidden_units,),
        alpha=NETWORK_PENALTY,
        max_iter=NETWORK_ITERATIONS,
        early_stopping=True,
        random_state=seed,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        network.fit(_standardised(train, rows, standard), place[train_codes[rows]])
    if any(issubclass(warning.category, ConvergenceWarning) for warning in caught):
        flags.append(f"the network was stopped at {NETWORK_ITERATIONS} iterations")
    kept = tuple(names[code] for code in usable.tolist())
    found = macro_auroc(network_logits(network, test[tested], standard), place[test_codes[tested]], kept)
    return Quantity(
        found.value,
        found.status,
        found.reason,
        (*flags, *found.flags),
        found.details | {"iterations": int(network.n_iter_)},
    )


def network_logits(network: Any, features: NDArray[Any], standard: LinearMap) -> Floats:
    """Output of a fitted one-layer network before its last activation, shape (n,) or (n, K), in float64."""
    (inner, outer), (first, last) = network.coefs_, network.intercepts_
    found = np.empty((len(features), outer.shape[1]))
    for start in range(0, len(features), _BLOCK):
        z = standard.apply(features[start : start + _BLOCK])
        hidden = np.maximum(z @ inner.astype(np.float64) + first, 0.0)
        found[start : start + _BLOCK] = hidden @ outer.astype(np.float64) + last
    return found[:, 0] if found.shape[1] == 1 else found


def _standardised(features: NDArray[Any], rows: NDArray[np.bool_], standard: LinearMap) -> NDArray[Any]:
    numbers = np.flatnonzero(rows)
    kept = np.float64 if features.dtype.itemsize > 4 else np.float32
    found = np.empty((len(numbers), standard.n_columns), dtype=kept)
    for start in range(0, len(numbers), _BLOCK):
        found[start : start + _BLOCK] = standard.apply(features[numbers[start : start + _BLOCK]])
    return found


def check_level_codes(codes: NDArray[Any], levels: tuple[str, ...], what: str) -> None:
    """Refuse a group code that names no level."""
    highest = int(codes.max(initial=-1))
    if highest >= len(levels):
        raise InputError(f"The {what} rows hold group {highest}, and there are {len(levels)} levels.")

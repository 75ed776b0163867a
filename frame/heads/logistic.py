"""Logistic regression to the optimum: scikit-learn's objective, without a copy of the features.

The objective is that of ``sklearn.linear_model.LogisticRegression(C=C)``: the sum of weights times log-loss,
plus half the squared coefficients over C, intercepts free. It has one optimum in its predictions, and the
fit ends there or says why not.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from frame.errors import InputError
from frame.heads.fitted import CONVERGED, NOT_CONVERGED, ONE_CLASS, LogisticFit, WarmStart
from frame.heads.linear_maps import LinearMap, checked_features, identity_map
from frame.heads.passes import Codes, Passes, RowPasses, one_thread_a_product
from frame.heads.preconditioning import Preconditioner, preconditioner_from, rows_worth_drawing
from frame.heads.solver import Optimum, Problem, minimise

__all__ = ["LogisticFit", "Preconditioner", "WarmStart", "fit_logistic", "preconditioner_of"]

Floats = NDArray[np.float64]
#: Weights, and their sum times C, outside this range leave sums or the penalty without digits.
_LARGEST: Final = 1e100


def fit_logistic(
    features: NDArray[Any],
    labels: NDArray[Any] | Sequence[Any],
    *,
    classes: Sequence[Any] | None = None,
    weights: NDArray[Any] | None = None,
    class_weight: Literal["balanced"] | None = None,
    C: float = 1.0,
    map: LinearMap | None = None,  # noqa: A002
    start: WarmStart | LogisticFit | None = None,
    preconditioner: Preconditioner | None = None,
    iterations: int = 1000,
    tolerance: float = 1e-8,
    device: str = "cpu",
    threads: int | None = None,
) -> LogisticFit:
    """Fit a logistic head, binary for two classes and multinomial for more.

    Parameters
    ----------
    features : ndarray, shape (n, D)
        float16, float32 or float64, finite. Read as they lie, also from a mapped file; never changed.
    labels : sequence, shape (n,)
        Any values that can be compared.
    classes : sequence, optional
        All labels, in the order of the coefficients; None takes those found, in rising order.
    weights : ndarray, shape (n,), optional
        Not negative; 1 for every row by default.
    class_weight : {"balanced"}, optional
        Multiplies the weights so that all classes weigh the same and the sum stays.
    C : float
        Inverse strength of the penalty.
    map : LinearMap, optional
        The design is ``map.apply(features)``, without its being computed; the penalty is on its coefficients.
    start : WarmStart or LogisticFit, optional
        A fit of the same classes to begin from; of other classes it is not used.
    preconditioner : Preconditioner, optional
        Of another fit, or of :func:`preconditioner_of`, on the same features.
    iterations : int
        At most.
    tolerance : float
        Largest absolute entry of the gradient of the objective, divided by the sum of the weights.
    device : str
        ``"cpu"``; else a device in torch's words, with ``"torch-cpu"`` for torch on the processor.
    threads : int, optional
        On the processor, at most; None takes what the process may use. No effect on the result.

    Returns
    -------
    LogisticFit
        With one class (of weight above 0) all coefficients are 0 and the status says so.

    Raises
    ------
    InputError
        For arguments that do not fit together, labels outside ``classes``, a class without weight beside two
        others, or rows that are not finite (with their number).
    """
    checked_features(features)
    n_rows = len(features)
    design = _checked_map(map, features.shape[1])
    for name, value in (("C", C), ("tolerance", tolerance)):
        _check_number(name, value)
    _check_iterations(iterations)
    levels, codes = _coded(labels, classes, n_rows)
    row_weights = _checked_weights(weights, n_rows)
    of_class = np.bincount(codes, weights=row_weights, minlength=len(levels))
    shape = (1 if len(levels) <= 2 else len(levels), design.n_columns + 1)
    if int((of_class > 0).sum()) < 2:
        nothing = np.zeros(shape)
        reason = f"all {n_rows:,} rows with a weight have the same label, so there is nothing to tell apart"
        return LogisticFit(
            levels, nothing[:, :-1], nothing[:, -1], design, 0.0, 0.0, 0, 0.0, ONE_CLASS, reason
        )
    if (of_class == 0).any():
        empty = int((of_class == 0).sum())
        raise InputError(
            f"{empty} of {len(levels)} classes have no row with a weight, so their intercepts have no "
            "optimum; leave them out of classes."
        )
    if class_weight == "balanced":
        row_weights = row_weights * (of_class.sum() / (len(levels) * of_class))[codes]
        of_class = np.full(len(levels), of_class.sum() / len(levels))
    elif class_weight is not None:
        raise InputError(f"class_weight is {class_weight!r}; give 'balanced' or None.")
    total = float(row_weights.sum())
    if not 1 / _LARGEST <= float(C) * total <= _LARGEST:
        raise InputError(
            f"C is {C!r} and the weights add up to {total:.3g}; give such that their product lies between "
            f"{1 / _LARGEST:g} and {_LARGEST:g}."
        )

    place = _first(start, design, shape)
    if place is None:
        place = np.zeros(shape)
        odds = np.log(of_class / total)
        place[:, -1] = odds[1] - odds[0] if len(levels) == 2 else odds
    if preconditioner is not None and len(preconditioner.centre) != design.n_features:
        raise InputError(
            f"The preconditioner is of {len(preconditioner.centre):,} features, and there are "
            f"{design.n_features:,}; give one of the same features."
        )
    passes = _passes(features, codes, row_weights, len(levels), device, threads)
    problem = Problem(passes, design, total, 1 / (C * total))
    try:
        with one_thread_a_product():
            best = _solved(problem, place, preconditioner, tolerance, iterations)
    finally:
        passes.close()
    found = best.point.place
    if shape[0] > 1:  # moving all intercepts alike changes no prediction; they sum to 0
        found[:, -1] -= found[:, -1].mean()
    return LogisticFit(
        levels,
        np.ascontiguousarray(found[:, :-1]),
        found[:, -1].copy(),
        design,
        best.point.loss,
        best.point.steepest,
        best.iterations,
        sum(problem.spent),
        CONVERGED if best.status == CONVERGED else NOT_CONVERGED,
        best.reason,
        best.preconditioner,
    )


def _check_number(name: str, value: Any) -> None:
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not (number and np.isfinite(float(value)) and value > 0):
        raise InputError(f"{name} is {value!r}; give a number above 0.")


def _check_iterations(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InputError(f"iterations is {value!r}; give a whole number of at least 1.")
    if value < 1:
        raise InputError(f"iterations is {value!r}; give at least 1.")


def preconditioner_of(
    features: NDArray[Any],
    map: LinearMap | None = None,  # noqa: A002
    weights: NDArray[Any] | None = None,
    *,
    rows: int | None = None,
    device: str = "cpu",
    threads: int | None = None,
) -> Preconditioner:
    """What many fits on the same rows can share: second moments of the features.

    Parameters
    ----------
    features, map, weights, device, threads
        As for :func:`fit_logistic`. A fit may follow with another map, other weights and other labels.
    rows : int, optional
        Drawn, in proportion to their weight; None draws eight times what a single fit would.
    """
    checked_features(features)
    n_rows, n_features = features.shape
    design = _checked_map(map, n_features)
    row_weights = _checked_weights(weights, n_rows)
    count = 8 * rows_worth_drawing(n_rows, n_features, 2) if rows is None else rows
    passes = _passes(features, np.zeros(n_rows, np.int32), row_weights, 2, device, threads)
    try:
        with one_thread_a_product():
            found = preconditioner_from(passes, row_weights, design, min(count, n_rows), 0)
        moments = found.sample if found.moments is None else found.moments
        if not np.isfinite(np.asarray(moments)).all():
            _refuse_not_finite(passes)
    finally:
        passes.close()
    return found


def _solved(
    problem: Problem, place: Floats, found: Preconditioner | None, tolerance: float, iterations: int
) -> Optimum:
    best = minimise(problem, place, found, tolerance, iterations)
    if not best.point.finite():
        _refuse_not_finite(problem.passes)
    return best


def _refuse_not_finite(passes: Passes) -> None:
    odd = passes.not_finite()
    if odd:
        raise InputError(
            f"{odd:,} of {passes.n_rows:,} rows of features hold a value that is not finite; leave these "
            "rows out or make their features again."
        )


def _passes(
    features: NDArray[Any], codes: Codes, weights: Floats, n_classes: int, device: str, threads: int | None
) -> Passes:
    if threads is not None and threads < 1:
        raise InputError(f"threads is {threads!r}; give at least 1.")
    if device == "cpu":
        return RowPasses(features, codes, weights, n_classes, threads)
    from frame.heads.torch_passes import TorchPasses

    return TorchPasses(features, codes, weights, n_classes, device)


def _checked_map(given: LinearMap | None, n_features: int) -> LinearMap:
    if given is None:
        return identity_map(n_features)
    if given.n_features != n_features:
        raise InputError(
            f"The map is of {given.n_features:,} features, and there are {n_features:,}; give a map of these."
        )
    return given


def _checked_weights(weights: NDArray[Any] | None, n_rows: int) -> Floats:
    if weights is None:
        return np.ones(n_rows)
    if isinstance(weights, np.ma.MaskedArray):
        raise InputError("The weights are a masked array; give a plain one, with 0 for rows to leave out.")
    try:
        found = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("The weights are not all numbers; give one number from 0 per row.") from None
    if found.shape != (n_rows,):
        raise InputError(f"The weights have the shape {found.shape} for {n_rows:,} rows; give one per row.")
    wrong = int((~(np.isfinite(found) & (found >= 0))).sum())
    if wrong:
        raise InputError(f"{wrong:,} of {n_rows:,} weights are negative or not finite; give numbers from 0.")
    if n_rows and float(found.max()) > _LARGEST:
        raise InputError(
            f"The largest of the weights is {float(found.max()):.3g}, so their sums would overflow; divide "
            f"all of them by one number, so that none is above {_LARGEST:g}."
        )
    return found


def _coded(
    labels: NDArray[Any] | Sequence[Any], classes: Sequence[Any] | None, n_rows: int
) -> tuple[tuple[Any, ...], Codes]:
    """The classes, and the place of each label among them."""
    given = np.asarray(labels)
    if given.shape != (n_rows,):
        raise InputError(f"The labels have the shape {given.shape} for {n_rows:,} rows; give one per row.")
    missing = int((given != given).sum())
    if missing:
        raise InputError(f"{missing:,} of {n_rows:,} labels are missing; leave these rows out.")
    try:
        levels = np.unique(given) if classes is None else np.asarray(classes)
    except TypeError as error:
        raise InputError("The labels cannot be put in order; give classes as well.") from error
    if len(set(levels.tolist())) != len(levels) or not len(levels):
        raise InputError(f"The classes are {levels.tolist()}; give each once, at least one.")
    codes = np.full(n_rows, -1, np.int32)
    for place, level in enumerate(levels):
        codes[given == level] = place
    unknown = int((codes < 0).sum())
    if unknown:
        raise InputError(f"{unknown:,} of {n_rows:,} labels are none of the classes {levels.tolist()}.")
    return tuple(levels.tolist()), codes


def _first(start: WarmStart | LogisticFit | None, design: LinearMap, shape: tuple[int, int]) -> Floats | None:
    if start is None:
        return None
    warm = start.warm() if isinstance(start, LogisticFit) else start
    if warm.coefficients.shape != (shape[0], design.n_features):
        return None
    place = warm.place(design)
    return place if np.isfinite(place).all() else None

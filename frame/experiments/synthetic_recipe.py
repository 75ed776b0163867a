"""The fits behind the paper's printed numbers of the collinearity model.

They are the same penalised logistic regressions as everywhere in this package, with one difference:
scikit-learn stops, by default, when no entry of the gradient exceeds 1e-4, which is a little before the
optimum. The printed numbers are those of such fits. A rank correlation over 30 units moves by a hundredth
between the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from frame.errors import InputError
from frame.mitigation.contract import Scores, scores_of_logits

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.linear_model import LogisticRegression

    from frame.mitigation.contract import Unit

__all__ = ["CLIPPED", "one_thread", "recipe_decodability", "recipe_scores", "with_clipped_ranks"]

#: Threshold shift with its ranks clipped to [0, 1], which ties images at both ends. A slip of the paper's
#: recipe and no method of the registry; without it the printed shares do not come out.
CLIPPED: Final = "threshold_shift_clipped"
_ITERATIONS: Final = 1000
_SPLITS: Final = ("validation", "test")


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep every numerical library to one thread.

    A draw is small. Threads would only wait for each other, and on a busy machine for most of the time.
    """
    # Those that are loaded later would not be limited.
    import torch  # noqa: F401
    from sklearn import linear_model  # noqa: F401

    with import_module("threadpoolctl").threadpool_limits(limits=1):
        yield


def recipe_scores(unit: Unit) -> dict[str, tuple[Scores, Scores]]:
    """Scores of the head and of the three printed methods, on validation and on test.

    Parameters
    ----------
    unit : Unit
        Its own head is not read.

    Returns
    -------
    dict of str to tuple of Scores
        ``unmitigated``, ``reweigh``, ``leace`` and :data:`CLIPPED`.

    Raises
    ------
    InputError
        If scikit-learn or what an erasure needs is missing, or the erasure fails.

    Notes
    -----
    The head and the one on erased features have balanced class weights, and both standardise the rows that
    they are fitted on. Reweighing has its own weights and no balanced ones.
    """
    from frame.mitigation.least_squares import fit_eraser
    from frame.mitigation.operating_points import shifted_thresholds
    from frame.mitigation.sampling import independence_weights

    train = unit.train
    standardised = _Standardised(train.features)
    plain = {split: standardised(getattr(unit, split).features) for split in ("train", *_SPLITS)}
    head = _fitted(plain["train"], train.labels, "balanced")
    found = {"unmitigated": _scores(head, plain)}

    counts = np.bincount(2 * train.groups + train.labels, minlength=2 * len(unit.levels)).reshape(-1, 2)
    weights = independence_weights(counts)[train.groups, train.labels]
    found["reweigh"] = _scores(_fitted(plain["train"], train.labels, None, weights), plain)

    eraser = fit_eraser(train.features, train.groups)
    after = _Standardised(eraser.apply(train.features))
    erased = {split: after(eraser.apply(getattr(unit, split).features)) for split in ("train", *_SPLITS)}
    found["leace"] = _scores(_fitted(erased["train"], train.labels, "balanced"), erased)

    shifted = shifted_thresholds(replace(unit, unmitigated=found["unmitigated"]))
    if shifted.validation is None or shifted.test is None:
        raise InputError(f"The threshold shift of the recipe was not fitted: {shifted.reason}.")
    found[CLIPPED] = with_clipped_ranks((shifted.validation, shifted.test))
    return found


def recipe_decodability(unit: Unit) -> float:
    """AUROC, on test, of a probe that reads the group from the features, without class weights."""
    from frame.measures.values import measure_value

    standardised = _Standardised(unit.train.features)
    probe = _fitted(standardised(unit.train.features), unit.train.groups, None)
    logits = probe.decision_function(standardised(unit.test.features))
    return float(measure_value("auroc", logits, unit.test.groups))


def with_clipped_ranks(scores: tuple[Scores, Scores]) -> tuple[Scores, Scores]:
    """The scores of a threshold shift with ranks that are its probabilities, which are clipped to [0, 1]."""
    first, second = (Scores(own.probabilities, own.probabilities) for own in scores)
    return first, second


class _Standardised:
    """Standardises rows by the mean and SD of those it is made from."""

    def __init__(self, features: NDArray[Any]) -> None:
        self.mean = features.mean(axis=0)
        self.sd = features.std(axis=0)

    def __call__(self, features: NDArray[Any]) -> NDArray[Any]:
        return np.asarray((features - self.mean) / self.sd)


def _fitted(
    features: NDArray[Any],
    labels: NDArray[Any],
    class_weight: str | None,
    weights: NDArray[Any] | None = None,
) -> LogisticRegression:
    """A logistic regression, stopped as scikit-learn does by default."""
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise InputError(
            "The recipe of the collinearity model needs scikit-learn; install it with: "
            "pip install 'frame-audit[mitigation]'."
        ) from None
    model = LogisticRegression(C=1.0, class_weight=class_weight, max_iter=_ITERATIONS)
    return model.fit(features, labels, sample_weight=weights)


def _scores(model: LogisticRegression, features: dict[str, NDArray[Any]]) -> tuple[Scores, Scores]:
    first, second = (scores_of_logits(model.decision_function(features[split])) for split in _SPLITS)
    return first, second

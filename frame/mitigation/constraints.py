"""Equalised odds by the exponentiated gradient of fairlearn, over logistic heads.

fairlearn is given row numbers instead of features. Its estimator holds the features of all fits and their
preconditioner, starts each fit at the nearest one before it, and remembers the fits it has made, so that
nothing is copied and no problem is solved twice.

Source: Agarwal et al., A reductions approach to fair classification (2018).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit

from frame.heads.linear_maps import LinearMap, standardising_map
from frame.heads.logistic import LogisticFit, fit_logistic, preconditioner_of
from frame.mitigation.contract import Outcome, Rows, Scores, Unit, not_fitted
from frame.mitigation.known_groups import is_constant
from frame.mitigation.training_groups import TrainingGroups, outcome_of, training_groups

__all__ = ["equalised_odds"]

Floats = NDArray[np.float64]

#: The paper's: bound of the constraints' multipliers 1 / eps and of the differences, and rounds.
EPS: Final = 0.01
ROUNDS: Final = 50
#: Largest gradient of a fit. Its head predicts 0 or 1 at one half, and is only one of those averaged.
TOLERANCE: Final = 1e-6

_SHARE_NOISE = 1e-9


def equalised_odds(unit: Unit, *, difference_bound: float = EPS) -> Outcome:
    """Average logistic heads so that hits and false alarms are about as frequent in all groups.

    fairlearn's ``ExponentiatedGradient`` with ``EqualizedOdds`` on training images, eps 0.01, 50 rounds,
    logistic heads with C = 1 on standardised features. A row's probability is the average of the heads' with
    fairlearn's weights, and its rank the log-odds of that average, which is in the same order and does not
    saturate. With ``weighting="equal"`` the errors fairlearn minimises have the balanced weights of the
    labels as costs, so every fit carries them.

    The outcome is degenerate, so that no improvement is claimed from it,

    * where a group with training images lacks a label, so that one of its two rates does not exist;
    * where weight is on predictors with one score for every training image: the constant that fairlearn takes
      where relabelling leaves one label, or a head that the features tell nothing. Their weight is the fact
      ``constant_share``.

    A head whose probabilities all lie on one side of one half calls every training image the same, so its
    rates are equal whatever it ranks. Its scores are judged like any other; the weight of such heads is a
    flag and the fact ``one_sided_share``.

    What is held is the rate of a group to the overall rate, on calls at one half.

    Parameters
    ----------
    unit : Unit
        The data.
    difference_bound : float
        Largest difference of a group's rate from the overall one that the constraints allow.
    """
    from fairlearn.reductions import EqualizedOdds, ErrorRate, ExponentiatedGradient

    groups = training_groups(unit)
    if isinstance(groups, Outcome):
        return groups
    rows = groups.rows
    negative, positive = groups.label_weights(unit.weighting).tolist()
    heads = _Heads(unit.train, groups)
    reduction = ExponentiatedGradient(
        _OneHead(heads),
        EqualizedOdds(difference_bound=difference_bound),
        objective=ErrorRate(costs={"fp": negative, "fn": positive}),
        eps=EPS,
        max_iter=ROUNDS,
    )
    numbers = np.arange(len(rows)).reshape(-1, 1)
    reduction.fit(
        numbers,
        unit.train.labels[rows].astype(np.int64),
        sensitive_features=unit.train.groups[rows],
    )
    mixture = _mixture(reduction.predictors_, reduction.weights_, numbers)
    scored = (mixture.scores(unit.validation), mixture.scores(unit.test))
    if not all(np.isfinite(found.ranks).all() for found in scored):
        return not_fitted("the averaged heads give scores that are not finite")

    gap, wanted = float(reduction.best_gap_), float(reduction.nu)
    rounds = int(reduction.last_iter_) + 1
    converged = gap < wanted
    flags: list[str] = []
    if not converged:
        flags.append(f"not converged after {rounds} rounds: the gap is {gap:.1e}, not {wanted:.1e}")
    if heads.n_not_converged:
        flags.append(f"{heads.n_not_converged} of {heads.n_fits} heads did not converge")
    if mixture.one_sided_share > 0:
        flags.append(
            f"{mixture.one_sided_share:.1%} of the weight is on heads that rank the images but call every "
            "training image the same at one half, so equal rates say little"
        )
    share = mixture.constant_share
    degenerate = [f"{name}, so one of its rates cannot be held equal" for name in groups.one_label()]
    if share > 0:
        constants = "predictors with one score for every training image"
        degenerate.append(f"{share:.1%} of the weight is on {constants}")
    return outcome_of(
        groups,
        scored,
        actions={int(number): "rates held near the overall ones" for number in groups.present},
        purpose="hold equal",
        flags=flags,
        facts={
            "iterations": rounds,
            "converged": converged,
            "gap": gap,
            "constant_share": share,
            "one_sided_share": mixture.one_sided_share,
            "n_heads": len(mixture.fits),
            "n_heads_fitted": heads.n_fits,
            "difference_bound": difference_bound,
        },
        degenerate="; ".join(degenerate),
    )


class _Heads:
    """The features of all fits, and the fits made so far."""

    def __init__(self, train: Rows, groups: TrainingGroups) -> None:
        self._train, self._rows = train, groups.rows
        self._all = len(groups.rows) == groups.n_training
        known = np.zeros(groups.n_training)
        known[groups.rows] = 1
        self._map: LinearMap = standardising_map(train.features, None if self._all else known)
        self._preconditioner = preconditioner_of(train.features, self._map, known)
        self._made: dict[bytes, tuple[LogisticFit, NDArray[np.int8], bool]] = {}
        self._cells: list[Floats] = []
        self._cell = train.groups[groups.rows] * 2 + train.labels[groups.rows]
        self._first = np.unique(self._cell, return_index=True)[1]
        self.n_fits = 0
        self.n_not_converged = 0

    def fitted(self, labels: NDArray[Any], weights: Floats) -> tuple[LogisticFit, NDArray[np.int8], bool]:
        """The fit to new labels and weights of the rows with a known group.

        Beside it what it calls those rows, and whether it has one score for all of them.
        """
        # fairlearn's labels and weights are one signed number for each cell of group and label
        cells = ((2 * labels - 1) * weights)[self._first]
        key = np.round(cells, 12).tobytes()
        if key in self._made:
            return self._made[key]
        row_labels = np.zeros(len(self._train), dtype=np.int64)
        row_weights = np.zeros(len(self._train))
        row_labels[self._rows], row_weights[self._rows] = labels, weights
        start = None
        if self._cells:
            nearest = int(np.argmin([np.abs(cells - other).sum() for other in self._cells]))
            start = list(self._made.values())[nearest][0].warm()
        fit = fit_logistic(
            self._train.features,
            row_labels,
            classes=(0, 1),
            weights=row_weights,
            map=self._map,
            start=start,
            preconditioner=self._preconditioner,
            tolerance=TOLERANCE,
        )
        logits = fit.decision(self._train.features)
        logits = logits if self._all else logits[self._rows]
        called = (logits > 0).astype(np.int8)
        self.n_fits += 1
        self.n_not_converged += fit.status == "not converged"
        self._made[key] = fit, called, is_constant(logits)
        self._cells.append(cells)
        return self._made[key]


class _OneHead:
    """What fairlearn fits: an estimator of row numbers."""

    def __init__(self, heads: _Heads) -> None:
        self._heads = heads
        self.fit_made: LogisticFit | None = None
        self._called: NDArray[np.int8] | None = None
        self.constant = False

    def __deepcopy__(self, memo: dict[int, Any]) -> _OneHead:
        # fairlearn copies the estimator for each fit; the features stay where they are
        return _OneHead(self._heads)

    def fit(self, X: NDArray[Any], y: Any, sample_weight: Any) -> _OneHead:
        self.fit_made, self._called, self.constant = self._heads.fitted(
            np.asarray(y, dtype=np.int64), np.asarray(sample_weight, dtype=np.float64)
        )
        return self

    def predict(self, X: NDArray[Any]) -> NDArray[np.int8]:
        assert self._called is not None
        called: NDArray[np.int8] = self._called[np.asarray(X)[:, 0]]
        return called


@dataclass(frozen=True)
class _Mixture:
    """Heads and constants with their weights.

    Attributes
    ----------
    fits : tuple of (weight, LogisticFit)
        Heads.
    always : tuple of float
        Weight of the constants 0 and 1.
    constant_share : float
        Weight of whatever has one score for every training image, heads or constants.
    one_sided_share : float
        Weight of the other heads that call every training image the same at one half.
    """

    fits: tuple[tuple[float, LogisticFit], ...]
    always: tuple[float, float]
    constant_share: float
    one_sided_share: float = 0.0

    def scores(self, rows: Rows) -> Scores:
        """Weight-averaged probability, and its log-odds."""
        none, every = self.always
        chance = np.full(len(rows), every)
        if not self.fits:
            return Scores(np.zeros(len(rows)), chance)
        log_yes, log_no = np.full(len(rows), _log(every)), np.full(len(rows), _log(none))
        for weight, fit in self.fits:
            logits = fit.decision(rows.features)
            yes, no = log_expit(logits), log_expit(-logits)
            chance += weight * np.exp(yes)
            np.logaddexp(log_yes, yes + np.log(weight), out=log_yes)
            np.logaddexp(log_no, no + np.log(weight), out=log_no)
        return Scores(log_yes - log_no, np.clip(chance, 0, 1))


def _mixture(predictors: Any, weights: Any, rows: NDArray[np.int64]) -> _Mixture:
    """What fairlearn averages: its predictors and weights (Series), and the row numbers it was given."""
    kept = weights[weights > _SHARE_NOISE]
    fits: list[tuple[float, LogisticFit]] = []
    always, share, one_sided = [0.0, 0.0], 0.0, 0.0
    for number, weight in (kept / kept.sum()).items():
        predictor = predictors[number]
        called = predictor.predict(rows)
        alike = bool((called == called[0]).all())
        if isinstance(predictor, _OneHead) and predictor.fit_made is not None:
            fits.append((float(weight), predictor.fit_made))
            share += float(weight) * predictor.constant
            one_sided += float(weight) * (alike and not predictor.constant)
        else:
            always[int(called[0])] += float(weight)
            share += float(weight)
    return _Mixture(tuple(fits), (always[0], always[1]), min(share, 1.0), min(one_sided, 1.0))


def _log(value: float) -> float:
    return float(np.log(value)) if value > 0 else -np.inf

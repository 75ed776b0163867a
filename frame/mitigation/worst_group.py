"""Group DRO: the steps of the paper, and the search for the optimum (ours)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from frame.heads.linear_maps import LinearMap
from frame.heads.logistic import fit_logistic, preconditioner_of
from frame.mitigation.contract import Unit
from frame.mitigation.full_batch import WEIGHT_DECAY, Adam, FullBatch
from frame.mitigation.training_groups import TrainingGroups

__all__ = ["WorstGroupSearch", "group_dro_steps"]

Floats = NDArray[np.float64]

#: Learning rates of the head and of the groups' weights (the paper's).
HEAD_RATE: Final = 1e-2
GROUP_RATE: Final = 0.01
#: The search ends at this gap, or after this many heads (ours).
LARGEST_GAP: Final = 1e-4
MOST_HEADS: Final = 200


def group_dro_steps(batch: FullBatch, epochs: int) -> tuple[Floats, Floats, Floats, float]:
    """The steps of ``objectives.worst_group_training``.

    Returns
    -------
    tuple
        Weights q and losses of the groups, shape (groups,), in the last epoch, before its step; coefficients
        of standardised features, shape (D,); intercept.
    """
    shares = np.full(batch.n_groups, 1 / batch.n_groups)
    losses = np.zeros(batch.n_groups)
    slope, level = np.zeros(batch.n_features), np.zeros(1)
    adam = Adam([slope, level], HEAD_RATE, WEIGHT_DECAY)
    for _ in range(epochs):
        sums, slopes, levels = batch.losses_by_group(slope, level)
        losses = sums / batch.totals
        shares = shares * np.exp(GROUP_RATE * losses)
        shares /= shares.sum()
        pull = shares / batch.totals
        adam.step([pull @ slopes, np.array([pull @ levels])])
    return shares, losses, slope, float(level[0])


class WorstGroupSearch:
    """Group weights whose best head has the smallest largest group loss."""

    def __init__(self, unit: Unit, groups: TrainingGroups, the_map: LinearMap) -> None:
        self._train, self._groups = unit.train, groups
        self._map = the_map
        place = np.full(len(groups.levels), -1)
        place[groups.present] = np.arange(len(groups.present))
        self._places = np.where(unit.train.groups >= 0, place[unit.train.groups], -1)
        self._known = self._places >= 0
        self._label_weights = groups.label_weights(unit.weighting)[unit.train.labels] * self._known
        self._totals = self._sums(self._label_weights)
        base = self._weights(np.full(len(self._totals), 1 / len(self._totals)))
        self._preconditioner = preconditioner_of(unit.train.features, self._map, base)
        self._start: Any = None
        self.n_fits = 0
        self.gap = np.inf
        self.best: tuple[Any, Floats] = (None, self._totals)
        self._shares = self._totals

    def run(self) -> Floats:
        """Search; returns the weights of the best head, shape (groups,)."""
        from scipy.optimize import Bounds, LinearConstraint, minimize

        count = len(self._totals)
        self._shares = np.full(count, 1 / count)
        try:
            if count == 1:
                self._head(self._shares)
            while True:  # from the best so far, with a fresh curvature, when a search ends early
                minimize(
                    self._head,
                    self._shares,
                    jac=True,
                    method="SLSQP",
                    bounds=Bounds(np.zeros(count), np.ones(count)),
                    constraints=LinearConstraint(np.ones((1, count)), 1, 1),
                    options={"ftol": 1e-12, "maxiter": MOST_HEADS},
                )
        except _Done:
            return self._shares

    def _head(self, shares: Floats) -> tuple[float, Floats]:
        """Minus the smallest weighted loss for these weights, and its gradient."""
        if self.n_fits >= MOST_HEADS:
            raise _Done
        shares = np.clip(shares, 0, None)
        shares = shares / shares.sum()
        fit = fit_logistic(
            self._train.features,
            self._train.labels,
            classes=(0, 1),
            weights=self._weights(shares),
            C=1 / WEIGHT_DECAY,
            map=self._map,
            start=self._start,
            preconditioner=self._preconditioner,
        )
        self._start = fit.warm()
        self.n_fits += 1
        margins = fit.decision(self._train.features)
        each = np.logaddexp(0, margins) - self._train.labels * margins
        losses = self._sums(each * self._label_weights) / self._totals
        gap = float(losses.max() - shares @ losses)
        if gap < self.gap:
            self.gap, self.best, self._shares = gap, (fit, losses), shares
        if gap <= LARGEST_GAP / 10:
            raise _Done
        penalty = WEIGHT_DECAY / 2 * float((fit.coefficients**2).sum())
        return -float(shares @ losses) - penalty, -losses

    def _weights(self, shares: Floats) -> Floats:
        """Row weights whose weighted loss is sum_g q_g loss_g."""
        pull = np.append(shares / self._totals, 0.0)
        return np.asarray(pull[self._places] * self._label_weights, dtype=np.float64)

    def _sums(self, values: Floats) -> Floats:
        """Sum over the rows of each group with training rows."""
        found = np.bincount(
            self._places[self._known], weights=values[self._known], minlength=len(self._groups.present)
        )
        return np.asarray(found, dtype=np.float64)


class _Done(Exception):
    """The search has reached its gap, or its most fits."""

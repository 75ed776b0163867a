"""Full-batch training of a linear head: passes over the rows as they are, and the optimiser.

The features are neither copied nor standardised: a head on standardised features is a linear function of the
features as they are, so standardising is folded into its coefficients, and its gradient is folded back. A
pass reads every row once. Products and sums are in float64. Blocks are fixed by their row numbers and added
in order, so that a result does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from frame.heads.kernels import compiled
from frame.heads.linear_maps import LinearMap
from frame.heads.passes import Blocks
from frame.mitigation.contract import Rows
from frame.mitigation.training_groups import TrainingGroups

__all__ = ["WEIGHT_DECAY", "Adam", "FullBatch"]

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]

#: Of both objectives (the paper's).
WEIGHT_DECAY: Final = 1e-4


class Adam:
    """Adam with weight decay added to the gradient, over arrays that are changed in place.

    Parameters
    ----------
    parameters : list of ndarray of float64
        Changed by ``step``.
    rate, decay : float
        Learning rate, and weight decay.
    """

    def __init__(self, parameters: list[Floats], rate: float, decay: float) -> None:
        self._parameters = parameters
        self._rate, self._decay = rate, decay
        self._first = [np.zeros_like(values) for values in parameters]
        self._second = [np.zeros_like(values) for values in parameters]
        self._steps = 0

    def step(self, gradients: list[Floats]) -> None:
        """One step down the gradients (beta .9 and .999, epsilon 1e-8)."""
        self._steps += 1
        small, smaller = 1 - 0.9**self._steps, 1 - 0.999**self._steps
        for values, gradient, first, second in zip(
            self._parameters, gradients, self._first, self._second, strict=True
        ):
            whole = gradient + self._decay * values
            first *= 0.9
            first += 0.1 * whole
            second *= 0.999
            second += 0.001 * whole**2
            values -= self._rate * (first / small) / (np.sqrt(second / smaller) + 1e-8)


class FullBatch:
    """The training rows with a known group, and passes over them.

    Parameters
    ----------
    train : Rows
        All training rows; those without a known group are passed over.
    groups : TrainingGroups
        Their counts.
    the_map : LinearMap
        Standardises the features; without a matrix.
    weighting : {"paper", "equal"}
        ``"equal"`` weights a row by the balanced weight of its label.
    """

    def __init__(self, train: Rows, groups: TrainingGroups, the_map: LinearMap, weighting: str) -> None:
        place = np.full(len(groups.levels) + 1, -1, dtype=np.int32)
        place[groups.present] = np.arange(len(groups.present), dtype=np.int32)
        self._features, self._map = train.features, the_map
        self._labels = train.labels.astype(np.int32)
        self._places: Codes = place[train.groups]  # -1 reads the last entry, which is -1
        self._weights = groups.label_weights(weighting)[train.labels]
        self.n_groups = len(groups.present)
        self.n_features = train.features.shape[1]
        known = self._places >= 0
        #: Sum of the weights of each group, shape (groups,).
        self.totals: Floats = np.zeros(self.n_groups)
        np.add.at(self.totals, self._places[known], self._weights[known])

    def losses_by_group(self, slope: Floats, level: Floats) -> tuple[Floats, Floats, Floats]:
        """Sums over each group of the logistic loss and of its derivatives.

        Parameters
        ----------
        slope, level : ndarray, shapes (D,) and (1,)
            Head on standardised features.

        Returns
        -------
        tuple of ndarray
            Losses (groups,), derivatives in the coefficients (groups, D) and in the intercept (groups,).
        """
        raw, offset = self._folded(slope, level)

        def work(blocks: Blocks, start: int) -> list[Floats]:
            losses, levels = np.zeros(self.n_groups), np.zeros(self.n_groups)
            slopes = np.zeros((self.n_groups, self.n_features))
            for rows, features in blocks.parts(start):
                given = (self._labels[rows], self._places[rows], self._weights[rows])
                grouped_pass(features, raw, offset, *given, losses, levels, slopes)
            return [losses, levels, slopes]

        losses, levels, slopes = self._summed(work)
        return losses, self._unfolded(slopes, levels), levels

    def against_adversary(
        self, slope: Floats, level: Floats, adversary: list[Floats], reversal: float
    ) -> tuple[float, float, list[Floats]]:
        """Sums over rows of the losses of the head and of its adversary, and their derivatives.

        Parameters
        ----------
        slope, level : ndarray, shapes (D,) and (1,)
            Head on standardised features.
        adversary : list of ndarray
            Weights and biases of the units, shape (units,) each; weights (groups, units) and biases (groups,)
            of the outputs.
        reversal : float
            Weight of the reversed gradient.

        Returns
        -------
        float, float
            Logistic loss; cross-entropy of the group.
        list of ndarray
            In the shapes of slope, level and the adversary: of the loss less ``reversal`` times the
            cross-entropy for the head, of the cross-entropy for the adversary.
        """
        raw, offset = self._folded(slope, level)
        inward, bias, outward, base = adversary

        def work(blocks: Blocks, start: int) -> list[Floats]:
            sums, slopes = np.zeros(3), np.zeros(self.n_features)
            own = [np.zeros_like(values) for values in adversary]
            for rows, features in blocks.parts(start):
                given = (self._labels[rows], self._places[rows], self._weights[rows])
                adversary_pass(
                    features, raw, offset, *given, inward, bias, outward, base, reversal, sums, slopes, *own
                )
            return [sums, slopes, *own]

        sums, slopes, *own = self._summed(work)
        whole = self._unfolded(slopes[None, :], sums[2:])[0]
        return float(sums[0]), float(sums[1]), [whole, sums[2:], *own]

    def _folded(self, slope: Floats, level: Floats) -> tuple[Floats, float]:
        """The head on the features as they are."""
        raw = slope * self._map.scale
        return raw, float(level[0] - raw @ self._map.centre)

    def _unfolded(self, slopes: Floats, levels: Floats) -> Floats:
        """Derivatives in coefficients of standardised features from those of features as they are."""
        found: Floats = (slopes - levels[:, None] * self._map.centre) * self._map.scale
        return found

    def _summed(self, work: Callable[[Blocks, int], list[Floats]]) -> list[Floats]:
        """What ``work`` returns for a block, added over the blocks in order."""
        with Blocks(self._features) as blocks:
            found = list(blocks.each(lambda start: work(blocks, start)))
        return [np.sum(parts, axis=0) for parts in zip(*found, strict=True)]


@compiled
def grouped_pass(
    features: NDArray[Any],
    raw: Floats,
    offset: float,
    labels: Codes,
    places: Codes,
    weights: Floats,
    losses: Floats,
    levels: Floats,
    slopes: Floats,
) -> None:
    """Add each row's weighted loss, and its derivatives, to those of its group; place -1 is passed over."""
    n_rows, n_columns = features.shape
    for i in range(n_rows):
        group = places[i]
        if group < 0:
            continue
        margin = offset
        for j in range(n_columns):
            margin += features[i, j] * raw[j]
        tail = np.exp(-abs(margin))
        losses[group] += weights[i] * (max(margin, 0.0) - labels[i] * margin + np.log1p(tail))
        chance = (1.0 if margin >= 0 else tail) / (1.0 + tail)
        residual = weights[i] * (chance - labels[i])
        levels[group] += residual
        for j in range(n_columns):
            slopes[group, j] += residual * features[i, j]


@compiled
def adversary_pass(
    features: NDArray[Any],
    raw: Floats,
    offset: float,
    labels: Codes,
    places: Codes,
    weights: Floats,
    inward: Floats,
    bias: Floats,
    outward: Floats,
    base: Floats,
    reversal: float,
    sums: Floats,
    slopes: Floats,
    d_inward: Floats,
    d_bias: Floats,
    d_outward: Floats,
    d_base: Floats,
) -> None:
    """Add each row's losses and the derivatives of ``FullBatch.against_adversary``.

    ``sums`` is the logistic loss, the cross-entropy of the group, and the derivative in the head's intercept.
    """
    n_rows, n_columns = features.shape
    n_groups, n_units = outward.shape
    hidden = np.empty(n_units)
    pulls = np.empty(n_units)
    guess = np.empty(n_groups)
    for i in range(n_rows):
        group = places[i]
        if group < 0:
            continue
        margin = offset
        for j in range(n_columns):
            margin += features[i, j] * raw[j]
        tail = np.exp(-abs(margin))
        sums[0] += weights[i] * (max(margin, 0.0) - labels[i] * margin + np.log1p(tail))
        chance = (1.0 if margin >= 0 else tail) / (1.0 + tail)

        for u in range(n_units):
            hidden[u] = max(margin * inward[u] + bias[u], 0.0)
        largest = -np.inf
        for k in range(n_groups):
            value = base[k]
            for u in range(n_units):
                value += hidden[u] * outward[k, u]
            guess[k] = value
            largest = max(largest, value)
        total = 0.0
        for k in range(n_groups):
            total += np.exp(guess[k] - largest)
        sums[1] += weights[i] * (np.log(total) + largest - guess[group])
        for k in range(n_groups):
            share = np.exp(guess[k] - largest) / total
            guess[k] = weights[i] * (share - 1.0 if k == group else share)
            d_base[k] += guess[k]
        # back to the margin, by way of the units that are on
        pulls[:] = 0.0
        for k in range(n_groups):
            for u in range(n_units):
                pulls[u] += guess[k] * outward[k, u]
                d_outward[k, u] += guess[k] * hidden[u]
        back = 0.0
        for u in range(n_units):
            pull = pulls[u] if hidden[u] > 0 else 0.0
            d_inward[u] += pull * margin
            d_bias[u] += pull
            back += pull * inward[u]
        residual = weights[i] * (chance - labels[i]) - reversal * back
        sums[2] += residual
        for j in range(n_columns):
            slopes[j] += residual * features[i, j]

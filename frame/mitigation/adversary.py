"""A linear head against an adversary that guesses the group from its logit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from frame.mitigation.full_batch import WEIGHT_DECAY, Adam, FullBatch

__all__ = ["AdversarialGame"]

Floats = NDArray[np.float64]

#: The paper's learning rate, units of the adversary and weight of the reversed gradient.
RATE: Final = 1e-3
UNITS: Final = 64
REVERSAL: Final = 1.0
#: The converged variant (ours). The learning rate changes how soon the mean stands still and not where.
CONVERGED_RATE: Final = 1e-2
#: Epochs of a window, windows at most, and the largest change of the score, in its own SD.
WINDOW: Final = 50
MOST_WINDOWS: Final = 40
LARGEST_CHANGE: Final = 0.02


class AdversarialGame:
    """Head and adversary, and their steps.

    Parameters
    ----------
    batch : FullBatch
        The training rows.
    seed : int
        Of the adversary's first weights: each layer uniform within 1 / sqrt(inputs), biases too.
    start : tuple of ndarray, shapes (D,) and (1,), optional
        Where the head begins; at zero by default.
    rate : float, optional
        Learning rate of both; the paper's by default.

    Attributes
    ----------
    slope, level : ndarray of float64, shapes (D,) and (1,)
        The head on standardised features.
    adversary : list of ndarray
        As in ``FullBatch.against_adversary``.
    epochs : int
        Steps made.
    disease_loss, adversary_loss : float
        Means over rows, before the last step.
    """

    def __init__(
        self,
        batch: FullBatch,
        seed: int,
        start: tuple[Floats, Floats] | None = None,
        rate: float = RATE,
    ) -> None:
        generator = np.random.default_rng(seed)
        inner = 1 / np.sqrt(UNITS)
        self._batch = batch
        slope, level = (np.zeros(batch.n_features), np.zeros(1)) if start is None else start
        self.slope, self.level = slope.copy(), level.copy()
        self.adversary = [
            generator.uniform(-1, 1, UNITS),
            generator.uniform(-1, 1, UNITS),
            generator.uniform(-inner, inner, (batch.n_groups, UNITS)),
            generator.uniform(-inner, inner, batch.n_groups),
        ]
        self._total = float(batch.totals.sum())
        self._adam = Adam([self.slope, self.level, *self.adversary], rate, WEIGHT_DECAY)
        self.epochs = 0
        self.disease_loss = self.adversary_loss = np.nan

    def run(self, epochs: int) -> None:
        """Step for so many epochs."""
        for _ in range(epochs):
            self._adam.step(self.gradients())
        self.epochs += epochs

    def run_to_a_mean(self, spread: Callable[[Floats], float]) -> tuple[bool, float]:
        """Step until the mean head stands still, and put it in the place of the last one.

        Such a game circles about its balance and never rests in it, so what is returned is the mean of the
        head over the second half of all epochs. It stands still when the score of its first half and that of
        its second differ by at most ``LARGEST_CHANGE``. It is asked every fourth window, from the eighth on.

        Parameters
        ----------
        spread : callable
            Of coefficients (D,), the SD over training rows of the score they make.

        Returns
        -------
        bool, float
            Whether it stood still within ``MOST_WINDOWS``, and the last difference.
        """
        heads: list[Floats] = []
        change = np.inf
        while change > LARGEST_CHANGE and len(heads) < MOST_WINDOWS:
            for _ in range(4):
                total = np.zeros(len(self.slope) + 1)
                for _ in range(WINDOW):
                    self.run(1)
                    total += np.append(self.slope, self.level)
                heads.append(total / WINDOW)
            if len(heads) >= 8:
                quarter = len(heads) // 4
                earlier, later = (
                    np.mean(heads[-2 * quarter : -quarter], axis=0),
                    np.mean(heads[-quarter:], axis=0),
                )
                mean = (earlier + later) / 2
                change = spread((later - earlier)[:-1]) / max(spread(mean[:-1]), np.finfo(float).tiny)
        self.slope[:], self.level[:] = mean[:-1], mean[-1:]
        return change <= LARGEST_CHANGE, change

    def gradients(self) -> list[Floats]:
        """Gradients of the means over rows, in slope, level and the adversary's arrays; sets both losses."""
        disease, against, found = self._batch.against_adversary(
            self.slope, self.level, self.adversary, REVERSAL
        )
        self.disease_loss, self.adversary_loss = disease / self._total, against / self._total
        return [gradient / self._total for gradient in found]

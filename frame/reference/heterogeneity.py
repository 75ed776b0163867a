"""Heterogeneity of subgroup values beside their range.

The range is ruled by the smallest subgroup and hardly sees a drop in any other. Cochran's
``Q = sum (A_g - m)^2 / v_g`` weighs every subgroup by what is known of it; its law under exact fairness
is drawn from the same Beta laws as the range, because with rare cases it is far from a chi-square.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Draws of the subgroup values, and the seed of their generator.
DRAWS, SEED = 20_000, 0


@dataclass(frozen=True)
class Heterogeneity:
    """Heterogeneity of the observed subgroup values under exact fairness.

    Attributes
    ----------
    statistic : float
        Q, at least 0.
    p : float
        Share of draws with a Q at least as large, ``(1 + #) / (draws + 1)``; one-sided.
    p_error : float
        Monte Carlo standard error of ``p``.
    draws : int
        Number of draws.
    """

    statistic: float
    p: float
    p_error: float
    draws: int


def heterogeneity(
    values: Floats, variances: Floats, common: float, *, draws: int = DRAWS, seed: int = SEED
) -> Heterogeneity:
    """Heterogeneity of subgroup values and its exceedance under exact fairness.

    Parameters
    ----------
    values : ndarray of float64, shape (subgroups,)
        Observed values, in [0, 1]; two or more.
    variances : ndarray of float64, shape (subgroups,)
        Their sampling variances under exact fairness, in (0, common (1 - common)).
    common : float
        Common value, in (0, 1).
    draws, seed : int
        Simulated values of every subgroup; generator ``numpy.random.default_rng(seed)``.

    Returns
    -------
    Heterogeneity

    Notes
    -----
    Subgroups are drawn in order of decreasing variance, so that the order in which they are given
    changes no digit.
    """
    order = np.argsort(-variances, kind="stable")
    total = common * (1.0 - common) / variances[order] - 1.0
    rng = np.random.default_rng(seed)
    drawn = np.stack([rng.beta(common * t, (1.0 - common) * t, draws) for t in total.tolist()])
    return heterogeneity_among(values[order], variances[order], drawn)


def heterogeneity_among(values: Floats, variances: Floats, drawn: Floats) -> Heterogeneity:
    """Heterogeneity of subgroup values, and its exceedance among values drawn under exact fairness.

    Parameters
    ----------
    values, variances : ndarray of float64, shape (subgroups,)
        As in :func:`heterogeneity`.
    drawn : ndarray of float64, shape (subgroups, draws)
        Independent values under exact fairness, the subgroups in the same order.

    Returns
    -------
    Heterogeneity
    """
    draws = drawn.shape[1]
    statistic = float(_statistic(values[:, None], variances)[0])
    # Sums in another order may differ in the last digit; a tie counts as reaching.
    reaching = int(np.count_nonzero(_statistic(drawn, variances) >= statistic * (1.0 - 1e-12)))
    p = (1 + reaching) / (draws + 1)
    return Heterogeneity(statistic, p, math.sqrt(p * (1.0 - p) / draws), draws)


def _statistic(values: Floats, variances: Floats) -> Floats:
    """Q of every column of values, shape (subgroups, columns)."""
    weights = (1.0 / variances)[:, None]
    mean = (weights * values).sum(axis=0) / weights.sum()
    return np.asarray((weights * (values - mean) ** 2).sum(axis=0))

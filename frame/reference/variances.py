"""Variance of an empirical AUROC at a given true value and counts, in closed form.

Two formulas that need only what an article prints. Hanley and McNeil (1982) is the one the FRAME
paper uses. The binormal one is exact for normal scores whose standard deviations (positives over
negatives) have the ratio ``kappa``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, owens_t

#: The true AUROC is moved into [SMALLEST_VALUE, 1 - SMALLEST_VALUE] before a variance is computed.
SMALLEST_VALUE = 1e-6

Floats = NDArray[np.float64]


def clip_value(value: ArrayLike) -> Floats:
    """Move a true AUROC away from 0 and 1, where every variance formula degenerates.

    Parameters
    ----------
    value : array_like
        True AUROC, in [0, 1].

    Returns
    -------
    ndarray of float64
        ``value`` clipped to [1e-6, 1 - 1e-6].
    """
    return np.clip(np.asarray(value, dtype=np.float64), SMALLEST_VALUE, 1.0 - SMALLEST_VALUE)


def hanley_mcneil_variance(value: ArrayLike, n_positive: ArrayLike, n_negative: ArrayLike) -> Floats:
    """Variance of an AUROC after Hanley and McNeil.

    ``[A(1-A) + (n+ - 1)(Q1 - A^2) + (n- - 1)(Q2 - A^2)] / (n+ n-)`` with ``Q1 = A/(2-A)`` and
    ``Q2 = 2A^2/(1+A)``, at the value after :func:`clip_value`.

    Parameters
    ----------
    value : array_like
        True AUROC, in [0, 1].
    n_positive, n_negative : array_like
        Numbers of positives and negatives, at least 1; broadcast against ``value``.

    Returns
    -------
    ndarray of float64
        Variance, larger than 0.

    References
    ----------
    Hanley JA, McNeil BJ. The meaning and use of the area under a receiver operating characteristic
    (ROC) curve. Radiology 143:29-36, 1982.
    """
    a = clip_value(value)
    positives = np.asarray(n_positive, dtype=np.float64)
    negatives = np.asarray(n_negative, dtype=np.float64)
    # Q1 - A^2 and Q2 - A^2, multiplied out: near A = 1 the differences would lose their digits.
    two_positives = a * (1.0 - a) ** 2 / (2.0 - a)
    two_negatives = a * a * (1.0 - a) / (1.0 + a)
    total = a * (1.0 - a) + (positives - 1.0) * two_positives + (negatives - 1.0) * two_negatives
    return np.asarray(total / (positives * negatives), dtype=np.float64)


def binormal_variance(value: ArrayLike, n_positive: ArrayLike, n_negative: ArrayLike, kappa: float) -> Floats:
    """Exact variance of an empirical AUROC of binormal scores.

    With ``h = probit(A)`` the probability that two positives (two negatives) both rank on the right
    side of one negative (positive) is ``B(rho) = Phi2(h, h; rho) = A - 2 T(h, sqrt((1-rho)/(1+rho)))``
    with Owen's T; ``rho`` is ``1/(1+kappa^2)`` for two positives sharing a negative and
    ``kappa^2/(1+kappa^2)`` for two negatives sharing a positive.

    Parameters
    ----------
    value : array_like
        True AUROC, in [0, 1]; clipped by :func:`clip_value`.
    n_positive, n_negative : array_like
        Numbers of positives and negatives, at least 1; broadcast against ``value``.
    kappa : float
        Standard deviation of the positives' scores over that of the negatives', larger than 0.

    Returns
    -------
    ndarray of float64
        Variance, larger than 0 and at most ``A(1-A)``.
    """
    a = clip_value(value)
    positives = np.asarray(n_positive, dtype=np.float64)
    negatives = np.asarray(n_negative, dtype=np.float64)
    h = ndtri(a)

    def excess(correlation: float) -> Floats:
        """B(rho) - A^2."""
        slope = np.sqrt((1.0 - correlation) / (1.0 + correlation))
        return np.asarray(a * (1.0 - a) - 2.0 * owens_t(h, slope), dtype=np.float64)

    # The share of the variance of a positive-negative difference that comes from the shared case.
    shared_negative = 1.0 / (1.0 + kappa * kappa)
    shared_positive = kappa * kappa / (1.0 + kappa * kappa)
    total = (
        a * (1.0 - a)
        + (positives - 1.0) * excess(shared_negative)
        + (negatives - 1.0) * excess(shared_positive)
    )
    return np.asarray(total / (positives * negatives), dtype=np.float64)

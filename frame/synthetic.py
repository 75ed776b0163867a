"""The collinearity model (Eq. 5): drawn features whose group direction leans towards the disease direction.

A disease moves every sample along one unit vector, the group moves it along another, and in one of the two
groups the second vector carries extra noise as well. The angle between the vectors is a free parameter. A
shift of a whole group changes no within-group ranking, so that with perpendicular vectors a head can be exact
and fair; the closer the vectors, the more of the extra noise lies in the way of the disease, in one group
only. For a linear head both within-group AUROCs have a closed form, :func:`within_group_aurocs`.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from frame.errors import InputError

__all__ = [
    "COLLINEARITIES",
    "DIMENSIONS",
    "FRACTIONS",
    "LARGEST_COSINE",
    "SAMPLES",
    "SEEDS",
    "SIGNAL_DIMENSIONS",
    "CollinearSample",
    "draw_sample",
    "within_group_aurocs",
]

Floats = NDArray[np.float64]

#: What the paper runs: cosines of the two directions, seeds, and samples of one draw.
COLLINEARITIES: Final = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
SEEDS: Final = (0, 1, 2, 3, 4)
SAMPLES: Final = 4000
#: Dimensions of the features, and the leading ones among them in which both directions lie.
DIMENSIONS: Final = 160
SIGNAL_DIMENSIONS: Final = 32
#: At 1 the second direction would be the first one; the largest cosine that is drawn keeps them apart.
LARGEST_COSINE: Final = 0.999
#: Shares of training and validation samples; the rest is for the test.
FRACTIONS: Final = (0.6, 0.15)
#: How far the disease and the group move a sample, and the SD of the noise that one group has on top.
_DISEASE, _GROUP, _NOISE = 1.2, 0.5, 2.0
_SMALLEST_SAMPLE: Final = 100


@dataclass(frozen=True, eq=False)
class CollinearSample:
    """One draw of the model.

    Attributes
    ----------
    features : ndarray of float64, shape (n, 160)
        The signal lies in the first 32 columns.
    labels : ndarray of int8, shape (n,)
        1 with the disease, 0 without; a fair coin.
    groups : ndarray of int64, shape (n,)
        0 or 1; a fair coin of its own. Group 1 has the extra noise.
    split : ndarray of str, shape (n,)
        ``train``, ``validation`` or ``test``.
    disease_direction, group_direction : ndarray of float64, shape (160,)
        Unit vectors.
    collinearity : float
        The cosine that was asked for. The vectors' own is at most 0.999.
    seed : int
        Of the draw.
    disease_effect, group_effect, noise : float
        Half the distance of the classes, half that of the groups, and the SD of the extra noise.
    """

    features: Floats
    labels: NDArray[np.int8]
    groups: NDArray[np.int64]
    split: NDArray[np.str_]
    disease_direction: Floats
    group_direction: Floats
    collinearity: float
    seed: int
    disease_effect: float
    group_effect: float
    noise: float


def draw_sample(
    collinearity: float,
    seed: int,
    *,
    samples: int = SAMPLES,
    disease_effect: float = _DISEASE,
    group_effect: float = _GROUP,
    noise: float = _NOISE,
) -> CollinearSample:
    """Draw from the collinearity model.

    Parameters
    ----------
    collinearity : float
        Cosine of the disease and the group direction, from 0 to 1; above 0.999 it is drawn as 0.999.
    seed : int
        Of the draw, from 0 to 2**32 - 1. The same seed has the same vectors in the disease direction and
        perpendicular to it, labels, groups and noise at every collinearity.
    samples : int
        At least 100.
    disease_effect, group_effect, noise : float
        Finite and at least 0; the defaults are the paper's alpha, beta and gamma.

    Returns
    -------
    CollinearSample

    Raises
    ------
    InputError
        If an argument is out of its range.

    Notes
    -----
    numpy's legacy generator is used on purpose: with it, and with the draws in the order of the code, the
    printed numbers are reproduced.

    References
    ----------
    Equation 5 of the paper.

    Examples
    --------
    >>> sample = draw_sample(0.5, seed=0)
    >>> sample.features.shape
    (4000, 160)
    >>> round(float(sample.disease_direction @ sample.group_direction), 3)
    0.5
    """
    _check_number("collinearity", collinearity, 1.0)
    for name, value in (("disease_effect", disease_effect), ("group_effect", group_effect), ("noise", noise)):
        _check_number(name, value)
    _check_whole("seed", seed, 0, 2**32 - 1)
    _check_whole("samples", samples, _SMALLEST_SAMPLE)

    generator = np.random.RandomState(int(seed))
    first, second = generator.randn(SIGNAL_DIMENSIONS), generator.randn(SIGNAL_DIMENSIONS)
    first = first / np.linalg.norm(first)
    second = second - (second @ first) * first
    second = second / np.linalg.norm(second)
    labels = generator.randint(0, 2, samples)
    groups = generator.randint(0, 2, samples)
    features = generator.randn(samples, DIMENSIONS)
    extra = generator.randn(samples)

    cosine = min(float(collinearity), LARGEST_COSINE)
    disease_direction, group_direction = np.zeros(DIMENSIONS), np.zeros(DIMENSIONS)
    disease_direction[:SIGNAL_DIMENSIONS] = first
    group_direction[:SIGNAL_DIMENSIONS] = cosine * first + np.sqrt(1.0 - cosine**2) * second
    along_disease = disease_effect * (2.0 * labels - 1.0)
    along_group = group_effect * (2.0 * groups - 1.0) + noise * groups * extra
    features += along_disease[:, None] * disease_direction
    features += along_group[:, None] * group_direction
    return CollinearSample(
        features=features,
        labels=labels.astype(np.int8),
        groups=groups.astype(np.int64),
        split=_split(samples, int(seed)),
        disease_direction=disease_direction,
        group_direction=group_direction,
        collinearity=float(collinearity),
        seed=int(seed),
        disease_effect=float(disease_effect),
        group_effect=float(group_effect),
        noise=float(noise),
    )


def within_group_aurocs(direction: ArrayLike, sample: CollinearSample) -> tuple[float, float]:
    """AUROC of a linear score in each group, over all samples that the model could draw.

    Parameters
    ----------
    direction : array_like of float, shape (160,)
        Coefficients of the score on the features; length and intercept do not matter.
    sample : CollinearSample
        Says the directions and effects; its drawn values are not read.

    Returns
    -------
    tuple of float
        In group 0 and in group 1.

    Raises
    ------
    InputError
        If the direction has another shape, is zero, or is not finite.

    Notes
    -----
    Within a group the score is normal in both classes, with one variance: that of the unit noise and, in
    group 1, that of the extra noise along the group direction. The shift of the group moves both classes
    alike.
    """
    from scipy.stats import norm

    vector = np.asarray(direction, dtype=np.float64)
    if vector.shape != (DIMENSIONS,):
        raise InputError(f"direction has shape {vector.shape}; give {DIMENSIONS} coefficients.")
    if not np.isfinite(vector).all() or not vector.any():
        raise InputError("direction is zero or not finite; give the coefficients of a fitted head.")
    apart = 2.0 * sample.disease_effect * (vector @ sample.disease_direction)
    variance = vector @ vector
    more = (sample.noise * (vector @ sample.group_direction)) ** 2
    first, second = norm.cdf(apart / np.sqrt(2.0 * np.array([variance, variance + more])))
    return float(first), float(second)


def _split(samples: int, seed: int) -> NDArray[np.str_]:
    """The part of each sample: a permutation of its own generator, cut into the fixed shares."""
    order = np.random.RandomState(seed).permutation(samples)
    # Of the sums of the shares, as 0.6 + 0.15 is a little less than 0.75 in binary.
    train, validation = round(FRACTIONS[0] * samples), round(sum(FRACTIONS) * samples)
    split = np.full(samples, "test", dtype="<U10")
    split[order[:train]] = "train"
    split[order[train:validation]] = "validation"
    return split


def _check_number(name: str, value: object, most: float = np.inf) -> None:
    if (
        isinstance(value, bool)
        or not isinstance(value, Real)
        or not np.isfinite(float(value))
        or not 0.0 <= float(value) <= most
    ):
        allowed = "a finite number, at least 0" if np.isinf(most) else f"a number from 0 to {most:g}"
        raise InputError(f"{name} is {value!r}; give {allowed}.")


def _check_whole(name: str, value: object, least: int, most: int | None = None) -> None:
    if (
        isinstance(value, bool)
        or not isinstance(value, Integral)
        or int(value) < least
        or (most is not None and int(value) > most)
    ):
        allowed = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise InputError(f"{name} is {value!r}; give a whole number {allowed}.")

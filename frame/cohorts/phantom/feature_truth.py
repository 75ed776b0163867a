"""What is true in a world of drawn features, in closed form: no number here is simulated or estimated.

Given group and true label the features are normal with one covariance. So a linear score has an AUROC of
Phi(separation / sqrt(2)) within a group, where the separation is the distance of the two classes' mean scores
in standard deviations of the score, and everything else follows from means.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from numbers import Real

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from frame.cohorts.phantom.feature_world import FeatureWorld
from frame.cohorts.phantom.seeds import seed_of, stream
from frame.errors import InputError

__all__ = [
    "Geometry",
    "geometry",
    "mixed",
    "population_aurocs",
    "population_decodability",
    "population_rates",
    "shared_head",
    "unmixed",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Geometry:
    """Directions and means of a world in whitened coordinates.

    Attributes
    ----------
    disease : ndarray of float64, shape (dimensions,)
        Unit direction of the disease that all groups share.
    own : ndarray of float64, shape (groups, dimensions)
        Unit direction of each group's offset; orthonormal, and orthogonal to ``disease``.
    means : ndarray of float64, shape (groups, 2, dimensions)
        Mean of the images without (0) and with (1) the disease.
    scales : ndarray of float64, shape (dimensions,)
        Standard deviation of the noise along each principal axis.
    """

    disease: Floats
    own: Floats
    means: Floats
    scales: Floats

    @property
    def contrasts(self) -> Floats:
        """Distance of the two classes' means, shape (groups, dimensions)."""
        return np.asarray(self.means[:, 1] - self.means[:, 0], dtype=np.float64)


@lru_cache(maxsize=64)
def geometry(world: FeatureWorld) -> Geometry:
    """Directions and means of a world.

    Parameters
    ----------
    world : FeatureWorld
        A world. Its directions depend on the seed, the dimensions and the names and order of the groups.

    Returns
    -------
    Geometry
        Its arrays are read-only.
    """
    seed = seed_of(world.seed, "features", "directions", 0)
    found: list[Floats] = []
    for purpose in ("disease", *(f"group {name}" for name in world.names)):
        direction = stream(seed, purpose).standard_normal(world.dimensions)
        # Twice: once leaves a rest of rounding where few dimensions are left.
        for earlier in found * 2:
            direction = direction - earlier * float((earlier * direction).sum())
        found.append(direction / math.sqrt(float((direction * direction).sum())))
    disease, own = found[0], np.stack(found[1:])
    shift = float(ndtri(world.decodability))
    means = np.empty((len(world.groups), 2, world.dimensions))
    for place, group in enumerate(world.groups):
        length = math.sqrt(2.0) * float(ndtri(world.auroc_of(group)))
        angle = group.entanglement * math.pi / 2
        straight = length * disease
        turned = length * (math.cos(angle) * disease + math.sin(angle) * own[place])
        # The mean over both classes is what it is without entanglement.
        kept = world.prevalence_of(group) * (straight - turned)
        means[place, 0] = shift * own[place] + kept
        means[place, 1] = means[place, 0] + turned
    ranks = np.arange(1, world.dimensions + 1, dtype=np.float64)
    variances = np.ones_like(ranks) if world.spectrum == "isotropic" else 1.0 / ranks
    scales = np.sqrt(variances / variances.mean())
    for array in (disease, own, means, scales):
        array.setflags(write=False)
    return Geometry(disease, own, means, scales)


def mixed(rows: Floats) -> Floats:
    """Turn rows from the principal axes of the noise to the features.

    The rotation is made of layers of pairs, feature i with feature i + 1, i + 2, i + 4 and so on: sums and
    differences of single numbers. So a row has the same bytes whichever rows stand beside it, which a product
    of matrices does not promise. Where the dimensions are a power of two, all features have variance 1.

    Parameters
    ----------
    rows : ndarray of float64, shape (rows, dimensions)
        Vectors.

    Returns
    -------
    ndarray of float64, shape (rows, dimensions)
        Of the same lengths.
    """
    return _turned(rows, _strides(rows.shape[1]))


def unmixed(rows: Floats) -> Floats:
    """The reverse of :func:`mixed`."""
    return _turned(rows, _strides(rows.shape[1])[::-1])


def _strides(dimensions: int) -> list[int]:
    return [1 << layer for layer in range((dimensions - 1).bit_length())]


def _turned(rows: Floats, strides: list[int]) -> Floats:
    turned = np.array(rows, dtype=np.float64)
    places = np.arange(rows.shape[1])
    half = math.sqrt(0.5)
    for stride in strides:
        low = places[((places & stride) == 0) & (places + stride < len(places))]
        one, other = turned[:, low], turned[:, low + stride]
        turned[:, low] = (one + other) * half
        turned[:, low + stride] = (one - other) * half
    return turned


def shared_head(world: FeatureWorld) -> Floats:
    """Weights of the head that is best where nothing is planted, and sees no offset.

    Parameters
    ----------
    world : FeatureWorld
        A world.

    Returns
    -------
    ndarray of float64, shape (dimensions,)
        Weights for the features; ``features @ weights`` has a standard deviation of 1 within group and class.
    """
    found = geometry(world)
    return np.asarray(mixed((found.disease / found.scales)[None])[0], dtype=np.float64)


def population_aurocs(world: FeatureWorld, weights: ArrayLike | None = None) -> pd.DataFrame:
    """True AUROC by group of the best linear score and of a given one.

    Parameters
    ----------
    world : FeatureWorld
        A world.
    weights : array_like of float, shape (dimensions,), optional
        Weights of a linear head on the features. Its intercept and its scale change nothing, its sign does.
        None is :func:`shared_head`.

    Returns
    -------
    DataFrame
        A row for each group: ``group``; ``prevalence`` and ``prevalence_recorded``, the shares of true and
        of recorded positives; ``best``, the largest AUROC that a score of one image has within the group;
        ``head``, the AUROC of the given weights; both for true labels, and ``best_recorded`` and
        ``head_recorded``, the AUROC of the same scores for recorded labels.

    Raises
    ------
    InputError
        If the weights have another shape, are not finite or are all 0.

    Notes
    -----
    With p the share of true positives among images recorded as positive and q among those recorded as
    negative, a score with an AUROC of A has one of 1/2 + (p - q)(A - 1/2) for recorded labels.
    """
    found = geometry(world)
    whitened = _whitened(world, weights)
    rows = []
    for group, contrast in zip(world.groups, found.contrasts, strict=True):
        share = world.prevalence_of(group)
        positive = share * (1 - group.missed) + (1 - share) * group.invented
        agreement = share * (1 - group.missed) / positive - share * group.missed / (1 - positive)
        best = float(ndtr(math.sqrt(float((contrast * contrast).sum()) / 2)))
        head = float(ndtr(float((whitened * contrast).sum()) / math.sqrt(2)))
        rows.append(
            {
                "group": group.name,
                "prevalence": share,
                "prevalence_recorded": positive,
                "best": best,
                "head": head,
                "best_recorded": 0.5 + agreement * (best - 0.5),
                "head_recorded": 0.5 + agreement * (head - 0.5),
            }
        )
    return pd.DataFrame(rows)


def population_rates(world: FeatureWorld, threshold: float, weights: ArrayLike | None = None) -> pd.DataFrame:
    """True TPR and FPR by group of a linear head at one threshold for all groups, for true labels.

    Parameters
    ----------
    world : FeatureWorld
        A world.
    threshold : float
        An image whose score ``features @ weights`` reaches it is called positive.
    weights : array_like of float, shape (dimensions,), optional
        As for :func:`population_aurocs`; here the scale matters.

    Returns
    -------
    DataFrame
        Columns ``group``, ``tpr``, ``fpr``.

    Raises
    ------
    InputError
        If the threshold is not finite, or for weights as in :func:`population_aurocs`.
    """
    _check_threshold(threshold)
    whitened = _whitened(world, weights)
    size = 1.0 if weights is None else _norm(world, weights)
    scores = (geometry(world).means * whitened).sum(axis=2)
    passed = ndtr(scores - threshold / size)
    return pd.DataFrame({"group": list(world.names), "tpr": passed[:, 1], "fpr": passed[:, 0]})


def population_decodability(
    world: FeatureWorld, first: str, second: str, weights: ArrayLike | None = None
) -> float:
    """True AUROC with which a linear score tells two groups apart, over all their images.

    Parameters
    ----------
    world : FeatureWorld
        A world.
    first, second : str
        Names of two groups; higher scores speak for the second.
    weights : array_like of float, shape (dimensions,), optional
        Weights for the features. None is the best score for two offsets among images with the same label:
        it does not read the shared disease direction.

    Returns
    -------
    float
        Between 0 and 1. With None and no entanglement it is the world's ``decodability``. Entanglement leaves
        the mean scores of the groups as they are and spreads the classes of one group, so that the value
        moves a little: by how much is computed, not left out.

    Raises
    ------
    InputError
        If a group is unknown, or for weights as in :func:`population_aurocs`.
    """
    found = geometry(world)
    places = []
    for name in (first, second):
        if name not in world.names:
            raise InputError(f"'{name}' is no group of this world; its groups are {', '.join(world.names)}.")
        places.append(world.names.index(name))
    if weights is not None:
        whitened = _whitened(world, weights)
    elif places[0] == places[1]:
        return 0.5
    else:
        whitened = (found.own[places[1]] - found.own[places[0]]) / math.sqrt(2)
    scores = (found.means[places] * whitened).sum(axis=2)
    classes = [(1 - share, share) for share in (world.prevalence_of(world.groups[place]) for place in places)]
    return sum(
        classes[0][y] * classes[1][z] * float(ndtr((scores[1, z] - scores[0, y]) / math.sqrt(2)))
        for y in (0, 1)
        for z in (0, 1)
    )


def _check_threshold(threshold: object) -> None:
    if isinstance(threshold, bool) or not isinstance(threshold, Real) or not math.isfinite(threshold):
        raise InputError(f"threshold is {threshold!r}; it must be a finite number.")


def _in_axes(world: FeatureWorld, weights: ArrayLike) -> Floats:
    """Weights for whitened coordinates that give the same scores as weights for features."""
    try:
        given = np.asarray(weights)
    except ValueError:
        raise InputError(
            "weights holds rows of different lengths; give one number for each feature."
        ) from None
    if given.shape != (world.dimensions,) or given.dtype.kind not in "iuf":
        raise InputError(
            f"weights has the shape {given.shape} and the type {given.dtype}; one number for each of the "
            f"{world.dimensions} features is needed."
        )
    given = given.astype(np.float64)
    if not np.isfinite(given).all() or not given.any():
        raise InputError("weights holds a missing or infinite number, or nothing but 0; give finite weights.")
    return np.asarray(unmixed(given[None])[0] * geometry(world).scales, dtype=np.float64)


def _norm(world: FeatureWorld, weights: ArrayLike) -> float:
    return float(np.sqrt((_in_axes(world, weights) ** 2).sum()))


def _whitened(world: FeatureWorld, weights: ArrayLike | None) -> Floats:
    """The same, scaled to a unit standard deviation of the score."""
    if weights is None:
        return geometry(world).disease
    return _in_axes(world, weights) / _norm(world, weights)

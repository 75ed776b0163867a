"""Drawing the tables of the world: numbers that add up, shares that are met, latents that patients share.

Every column has its own stream of random numbers, named by the seed of the world, the source and the purpose,
and is drawn once for the whole source in a fixed order. A table therefore depends on the truth only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtr, ndtri

from frame.cohorts.phantom.seeds import seed_of, stream

__all__ = ["evenly", "generator", "images_of_patients", "latent_finding", "one_of", "shuffled"]

#: Weakest severity of a positive image; severities above it follow a Beta(2, 2) law up to 1.
WEAKEST: Final = 0.25
#: Standard deviation of the severity of mimics in negative images, before its sign is dropped.
MIMIC: Final = 0.06
_GOLDEN: Final = (sqrt(5) - 1) / 2


def generator(seed: int, source: str, purpose: str) -> np.random.Generator:
    """The stream of one column of one source.

    Parameters
    ----------
    seed : int
        Seed of the world.
    source, purpose : str
        Name of the source, and of what is drawn.

    Returns
    -------
    numpy.random.Generator
        Independent of all other streams.
    """
    return stream(seed_of(seed, source, "table", 0), purpose)


def evenly(n: int, shares: Mapping[str, float], random: np.random.Generator) -> NDArray[np.object_]:
    """Levels whose shares are met in every run of neighbours, not only in all.

    The fractional parts of multiples of the golden ratio fill the unit interval evenly from any start on.

    Parameters
    ----------
    n : int
        How many.
    shares : mapping of str to float
        Share of each level; they add up to 1.
    random : numpy.random.Generator
        Gives the start.

    Returns
    -------
    numpy.ndarray of object, shape (n,)
        Levels.
    """
    places = (float(random.random()) + _GOLDEN * np.arange(n)) % 1.0
    return _at(places, shares)


def shuffled(n: int, shares: Mapping[str, float], random: np.random.Generator) -> NDArray[np.object_]:
    """Levels whose numbers are the shares of n up to one, in random order; arguments as :func:`evenly`."""
    return _at((random.permutation(n) + float(random.random())) / max(n, 1), shares)


def one_of(random: np.random.Generator, n: int, texts: Sequence[str], first: float) -> NDArray[np.object_]:
    """Texts at random: the first with its own probability, the others equally often.

    Parameters
    ----------
    random : numpy.random.Generator
        Stream.
    n : int
        How many.
    texts : sequence of str
        What to choose from.
    first : float
        Probability of the first text; 1 if there is only one.

    Returns
    -------
    numpy.ndarray of object, shape (n,)
        Texts.
    """
    rest = len(texts) - 1
    weights = [first, *([(1 - first) / rest] * rest)] if rest else [1.0]
    return np.array(texts, dtype=object)[random.choice(len(texts), size=n, p=weights)]


def images_of_patients(n_images: int, shares: Sequence[float]) -> NDArray[np.int64]:
    """How many images each patient has.

    Parameters
    ----------
    n_images : int
        All images.
    shares : sequence of float
        Shares of patients with 1, 2, ... images.

    Returns
    -------
    numpy.ndarray of int64
        One number a patient, smallest first; they add up to ``n_images`` exactly.
    """
    sizes = np.arange(1, len(shares) + 1)
    n_patients = round(n_images / float(sizes @ np.asarray(shares)))
    counts = np.floor(np.asarray(shares) * n_patients + 0.5).astype(np.int64)
    while sizes @ counts > n_images:
        counts[np.flatnonzero(counts)[-1]] -= 1
    left = n_images - int(sizes @ counts)
    for size in sizes[::-1]:
        counts[size - 1] += left // size
        left %= size
    return np.repeat(sizes, counts)


def latent_finding(
    random: np.random.Generator, patients: NDArray[np.int64], prevalence: float, intraclass: float
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Presence and severity of one finding from a normal latent that a patient's images share in part.

    Parameters
    ----------
    random : numpy.random.Generator
        Stream.
    patients : numpy.ndarray of int64, shape (n,)
        Patient of each image, numbered from 0.
    prevalence : float
        Probability of the finding, between 0 and 1.
    intraclass : float
        Share of the latent's variance between patients.

    Returns
    -------
    present : numpy.ndarray of bool, shape (n,)
        Whether the latent exceeds the quantile of the prevalence.
    severity : numpy.ndarray of float64, shape (n,)
        Of positive images between .25 and 1, rising with the latent and Beta(2, 2) distributed in between; of
        negative ones the modulus of a normal number with standard deviation .06, below .25.
    """
    n_patients = int(patients.max()) + 1 if len(patients) else 0
    latent = sqrt(intraclass) * random.standard_normal(n_patients)[patients]
    latent += sqrt(1 - intraclass) * random.standard_normal(len(patients))
    mimic = np.minimum(np.abs(MIMIC * random.standard_normal(len(patients))), 0.96 * WEAKEST)
    present = latent > float(ndtri(1 - prevalence))
    rank = np.clip(1.0 - ndtr(-latent) / prevalence, 0.0, 1.0)
    severity = WEAKEST + (1 - WEAKEST) * betaincinv(2.0, 2.0, rank)
    return present, np.where(present, severity, mimic)


def _at(places: NDArray[Any], shares: Mapping[str, float]) -> NDArray[np.object_]:
    ends = np.cumsum([float(share) for share in shares.values()])
    found = np.minimum(np.searchsorted(ends / ends[-1], places, side="right"), len(ends) - 1)
    levels: NDArray[Any] = np.array(list(shares), dtype=object)
    return levels[found]

"""Simulated cohorts that are exactly fair, or have one planted drop.

Scores are binormal with standard deviation 1; the positives of every subgroup lie ``sqrt(2) probit(A)``
above its negatives, so that every subgroup has the same AUROC A. Subgroups may differ in size,
prevalence and in the level of their scores. Patients have one image, or one to six that share a random
effect and, mostly, a disease status. Nothing here is data: every result made from it is simulated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Share of patients with 1, 2, ... 6 images.
IMAGES_PER_PATIENT = (0.40, 0.22, 0.14, 0.10, 0.08, 0.06)
#: Share of image labels copied from the patient's disease status.
_COPIED = 0.8
#: Score level and prevalence factor of each subgroup where subgroups are shifted.
SHIFTS = (0.0, 0.3, -0.4, 0.5, -0.5)
PREVALENCE_FACTORS = (1.0, 1.3, 0.7, 1.5, 0.8)

#: Images per subgroup of the two mixed designs.
SIZES: dict[str, tuple[int, ...]] = {"S1": (2500, 1500, 400, 120, 40), "S2": (5000, 5000, 500, 100, 20)}
#: Expected positives of the four large subgroups that stand beside one small one.
BESIDE_ONE_SMALL = (150, 100, 60, 60)


@dataclass(frozen=True)
class World:
    """How a cohort is simulated.

    Attributes
    ----------
    sizes : tuple of int
        Images of each subgroup, at most five subgroups.
    auroc : float
        AUROC of every subgroup, in (0, 1).
    prevalence : float
        Share of positive images, before the factors of shifted subgroups.
    repeats : bool
        Whether patients have one to six images, or one.
    shifted : bool
        Whether subgroups differ in score level and prevalence.
    shifted_class : str
        Class whose scores are shifted: ``both`` keeps every AUROC equal, ``negatives`` every TPR and
        ``positives`` every FPR at one threshold.
    correlations : tuple of float
        Within-patient correlation of the scores, one for all subgroups or one each, in [0, 1).
    drop : float
        Planted drop of the AUROC of one subgroup; 0 is exactly fair.
    dropped : int
        Index of that subgroup.
    """

    sizes: tuple[int, ...]
    auroc: float
    prevalence: float
    repeats: bool = False
    shifted: bool = False
    shifted_class: str = "both"
    correlations: tuple[float, ...] = (0.5,)
    drop: float = 0.0
    dropped: int = 0

    @property
    def separation(self) -> float:
        """Distance of the two classes' means at the common AUROC."""
        return _separation(self.auroc)

    def for_measure(self, measure: str) -> World:
        """The same world, shifted so that it is exactly fair in the measure."""
        return replace(self, shifted_class={"tpr": "negatives", "fpr": "positives"}.get(measure, "both"))


def _separation(auroc: float) -> float:
    return math.sqrt(2.0) * float(ndtri(auroc))


def mixed_sizes(positives: tuple[int, ...], prevalence: float) -> tuple[int, ...]:
    """Images that give the expected numbers of positives at a prevalence."""
    return tuple(max(1, round(k / prevalence)) for k in positives)


@dataclass(frozen=True)
class Cohort:
    """Rows of a simulated cohort.

    Attributes
    ----------
    scores : ndarray of float64, shape (images,)
    labels : ndarray of bool, shape (images,)
    groups : ndarray of int64, shape (images,)
        Index of the subgroup.
    patients : ndarray of int64, shape (images,)
        Patient of each image; a patient lies in one subgroup.
    """

    scores: Floats
    labels: NDArray[np.bool_]
    groups: Integers
    patients: Integers


def simulated_cohort(world: World, rng: np.random.Generator) -> Cohort:
    """Draw one cohort.

    Parameters
    ----------
    world : World
        Sizes, AUROC, prevalence, repeats.
    rng : numpy.random.Generator
        Source of all draws.

    Returns
    -------
    Cohort
    """
    sizes = np.asarray(world.sizes)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    patients = _patients(sizes, rng) if world.repeats else np.arange(len(groups))
    n_patients = int(patients[-1]) + 1
    group_of_patient = np.empty(n_patients, dtype=np.int64)
    group_of_patient[patients] = groups
    factor = np.asarray(PREVALENCE_FACTORS if world.shifted else (1.0,) * len(PREVALENCE_FACTORS))
    prevalence = np.minimum(0.95, world.prevalence * factor[: len(sizes)])
    labels = rng.random(len(groups)) < prevalence[groups]
    noise = rng.standard_normal(len(groups))
    if world.repeats:
        status = rng.random(n_patients) < prevalence[group_of_patient]
        copied = rng.random(len(groups)) < _COPIED
        labels = np.where(copied, status[patients], labels)
        correlation = np.broadcast_to(np.asarray(world.correlations), (len(sizes),))[groups]
        shared = rng.standard_normal(n_patients)[patients]
        noise = np.sqrt(correlation) * shared + np.sqrt(1.0 - correlation) * noise
    separation = np.full(len(sizes), world.separation)
    if world.drop:
        separation[world.dropped] = _separation(world.auroc - world.drop)
    scores = noise + separation[groups] * labels
    if world.shifted:
        shift = np.asarray(SHIFTS)[: len(sizes)][groups]
        moved = {"both": np.ones_like(labels), "negatives": ~labels, "positives": labels}
        scores = scores + shift * moved[world.shifted_class]
    return Cohort(scores, labels, groups, patients)


def _patients(sizes: Integers, rng: np.random.Generator) -> Integers:
    """Patient of every image; the last patient of a subgroup has what is left."""
    parts: list[Integers] = []
    start = 0
    for size in sizes.tolist():
        images = 1 + rng.choice(len(IMAGES_PER_PATIENT), size=size, p=IMAGES_PER_PATIENT)
        part = np.repeat(np.arange(size), images)[:size]
        parts.append(start + part)
        start += int(part[-1]) + 1
    return np.concatenate(parts)

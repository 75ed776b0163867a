"""Draw cohorts of feature vectors, fair by construction, for the operating characteristics of a method.

:mod:`~frame.cohorts.phantom.feature_world` has the settings and says what is fair,
:mod:`~frame.cohorts.phantom.feature_truth` the true values in closed form. A world has its directions, and as
many independent cohorts as are asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from frame.cohorts.phantom.feature_truth import Geometry, geometry, mixed
from frame.cohorts.phantom.feature_world import SPLITS, FeatureGroup, FeatureWorld
from frame.cohorts.phantom.seeds import seed_of, stream
from frame.errors import InputError

__all__ = ["FeatureCohort", "feature_cohort"]

Floats = NDArray[np.float64]
#: Patients of one group and split have numbers of their own below this; their ids are made with it.
_MOST_PATIENTS = 1 << 32


@dataclass(frozen=True)
class FeatureCohort:
    """One drawn cohort; all arrays have a row for each image.

    Attributes
    ----------
    features : ndarray of float32 or float64, shape (images, dimensions)
        Feature vectors.
    labels_true : ndarray of bool, shape (images,)
        Whether the disease is there.
    labels : ndarray of bool, shape (images,)
        The recorded label; the true one where there is no label noise.
    groups : ndarray of str, shape (images,)
        Group of the patient.
    patients : ndarray of int64, shape (images,)
        Patient. A patient lies in one group and one split.
    split : ndarray of str, shape (images,)
        ``train``, ``validation`` or ``test``.
    latent : ndarray of float64, shape (images,)
        Disease latent with mean 0 and variance 1, whose upper part is the true label.
    """

    features: NDArray[np.floating]
    labels_true: NDArray[np.bool_]
    labels: NDArray[np.bool_]
    groups: NDArray[np.str_]
    patients: NDArray[np.int64]
    split: NDArray[np.str_]
    latent: Floats

    def __len__(self) -> int:
        return len(self.labels)

    def part(self, split: str) -> FeatureCohort:
        """The rows of one split.

        Parameters
        ----------
        split : str
            ``train``, ``validation`` or ``test``.

        Returns
        -------
        FeatureCohort

        Raises
        ------
        InputError
            If there is no such split.
        """
        if split not in SPLITS:
            raise InputError(f"split is {split!r}; allowed are {', '.join(SPLITS)}.")
        kept = self.split == split
        return FeatureCohort(**{name: getattr(self, name)[kept] for name in self.__dataclass_fields__})

    def table(self) -> pd.DataFrame:
        """Everything but the features, one row an image.

        Returns
        -------
        DataFrame
            Columns ``group, split, patient, label_true, label, latent``.
        """
        return pd.DataFrame(
            {
                "group": self.groups,
                "split": self.split,
                "patient": self.patients,
                "label_true": self.labels_true,
                "label": self.labels,
                "latent": self.latent,
            }
        )


def feature_cohort(world: FeatureWorld, number: int = 0) -> FeatureCohort:
    """Draw one cohort of a world.

    Every group and split has random streams of its own, one for each purpose. So the same settings give the
    same bytes; a group that grows keeps its rows and gets more behind them, and leaves the rows of all others
    as they are; a dose that changes leaves the noise as it is, so that worlds can be compared in pairs.

    Parameters
    ----------
    world : FeatureWorld
        Settings.
    number : int
        Number of the cohort, 0 or more. Cohorts of one world have the same directions and share nothing else.

    Returns
    -------
    FeatureCohort
        Group by group, in each the rows of training, validation and test, the images of a patient together.

    Raises
    ------
    InputError
        If the number is negative or no whole number.

    Examples
    --------
    >>> from frame.cohorts.phantom.feature_truth import population_aurocs, shared_head
    >>> from frame.cohorts.phantom.feature_world import FeatureGroup, FeatureWorld
    >>> world = FeatureWorld((FeatureGroup("A", test=500), FeatureGroup("B", test=300, auroc=0.7)))
    >>> cohort = feature_cohort(world)
    >>> cohort.features.shape
    (800, 64)
    >>> [round(value, 3) for value in population_aurocs(world, shared_head(world))["head"]]
    [0.8, 0.7]
    """
    found = geometry(world)
    parts = [
        _part(world, found, place, group, code, number)
        for place, group in enumerate(world.groups)
        for code in range(len(SPLITS))
        if getattr(group, SPLITS[code])
    ]
    names = list(FeatureCohort.__dataclass_fields__)
    return FeatureCohort(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def _part(
    world: FeatureWorld, found: Geometry, place: int, group: FeatureGroup, code: int, number: int
) -> FeatureCohort:
    """The rows of one group and split."""
    split = SPLITS[code]
    seed = seed_of(world.seed, f"features\x1f{group.name}\x1f{split}", "cohort", number)
    patients = _patients(world, getattr(group, split), stream(seed, "images of patients"))
    n_images, n_patients = len(patients), int(patients[-1]) + 1

    shared = stream(seed, "disease of patients").standard_normal(n_patients)[patients]
    alone = stream(seed, "disease of images").standard_normal(n_images)
    latent = _together(shared, alone, world.icc_disease)
    truth = latent > -float(ndtri(world.prevalence_of(group)))
    chance = stream(seed, "recorded labels").random(n_images)
    wrong = chance < np.where(truth, group.missed, group.invented)

    size = world.dimensions
    common = stream(seed, "noise of patients").standard_normal((n_patients, size))[patients]
    single = stream(seed, "noise of images").standard_normal((n_images, size))
    noise = _together(common, single, world.icc_noise)
    whitened = found.means[place][truth.astype(np.intp)] + noise
    features = mixed(whitened * found.scales)
    return FeatureCohort(
        features=features.astype(world.dtype),
        labels_true=truth,
        labels=truth ^ wrong,
        groups=np.full(n_images, group.name),
        patients=patients + (place * len(SPLITS) + code) * _MOST_PATIENTS,
        split=np.full(n_images, split),
        latent=latent,
    )


def _together(shared: Floats, alone: Floats, intraclass: float) -> Floats:
    """Noise of variance 1, of which a share is common to the images of a patient."""
    return np.asarray(math.sqrt(intraclass) * shared + math.sqrt(1 - intraclass) * alone, dtype=np.float64)


def _patients(world: FeatureWorld, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Number of the patient of every image."""
    ends = np.cumsum(world.images_each)[:-1]
    images = 1 + np.searchsorted(ends, rng.random(size), side="right")
    patients = np.repeat(np.arange(size, dtype=np.int64), images)
    return patients if world.unit == "patients" else patients[:size]

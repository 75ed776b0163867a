"""Settings of a world of drawn feature vectors whose groups are alike by construction, and what is planted.

No image is drawn and no encoder is run: each image is a vector of numbers as an encoder might give it. In
whitened coordinates (mean 0 and covariance 1 given label and group) the vector of an image of group g is

    offset_g + y contrast_g + noise,

y its true label. The offsets of the groups are orthogonal to one another and to the disease direction d that
all groups share, and contrast_g is c d, c = sqrt(2) probit(AUROC), in every group without a planted cause.
Orthogonal means so in these coordinates, hence with respect to the inverse covariance of the features: the
head that is best for disease does not see the offsets.

**What is fair, and what is not.** Without a planted difference and without entanglement the features of a
patient less the offset of the group have, given the true labels of the images, the same law in every group.

- Of **every linear head**, also one that reads the offsets, the true AUROC is the same in all groups: an
  offset adds one number to all scores of a group and leaves their order as it is. So is the AUROC of every
  increasing function of it.
- Of **every head, linear or not, that does not see the offsets** (its score stays the same when the
  difference of two offsets is added to the features) the scores have the same law given the true label, so
  AUROC, TPR, FPR, FNR and specificity are the same at every common threshold.
- ECE, Brier score, accuracy, PPV, NPV and AUPRC depend on prevalence, and are the same for such heads only
  where the groups' prevalences are.
- **A linear head that reads the offsets** has the same AUROC in all groups but, at one threshold for all,
  not the same TPR and FPR. **A nonlinear head that reads them** may order the images of one group well and of
  another badly: then its AUROC differs too. The world is still fair, the head is not. A difference in such
  a head is real and no false alarm of a test; only heads of the first two kinds measure false alarms.
- A head fitted to training rows is such a head, for rows of patients that it was not fitted to. On its own
  training rows it is not: how far a head fits the noise of a group depends on the group's size. A head that
  is told the group is like one that reads the offsets.
- AUROC is meant within a group, for two images of two patients. The AUROC over all groups together also
  counts pairs across groups, which feel offsets and prevalences. An observed AUROC also counts pairs of
  images of one patient, which are told apart more easily: with few patients of many images its mean lies a
  little above the true one.
- The shares of positive labels are whatever the prevalences are. Fair here never means that groups have
  equal shares of positive calls.
- It is a statement about the law. Two drawn groups differ by chance, the more the smaller they are; that is
  what a fair-model reference is for. It is a statement about true labels: noise in the recorded labels of
  one group makes a difference that is in the labels.

Two causes can be planted, and they differ in kind. A **planted difference** makes contrast_g shorter: the
information is not in the image, and no head finds it. **Entanglement** turns contrast_g from the shared
disease direction towards the group's own offset direction and keeps its length: a head of the group's own
would be as good as any, and a head fitted mostly to others is worse for this group. The mean of the group
stays where it is, so that entanglement is not a group shift in disguise; its two classes move, and with them
TPR and FPR at a common threshold. It is not the collinear noise of the paper's synthetic model, which lowers
the best head of the group too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Final

from frame.errors import InputError

__all__ = ["DTYPES", "NOTE", "SPECTRA", "SPLITS", "UNITS", "FeatureGroup", "FeatureWorld", "statement"]

#: Stands wherever results from drawn features are shown.
NOTE: Final = "Phantom: drawn features, no images and no patients."
SPLITS: Final = ("train", "validation", "test")
#: What the sizes of the groups count.
UNITS: Final = ("images", "patients")
#: Variances of the noise along its principal axes: all alike, or falling as 1/k with mean 1.
SPECTRA: Final = ("isotropic", "decaying")
DTYPES: Final = ("float32", "float64")
_MOST_IMAGES_EACH: Final = 9
#: Largest AUROC or decodability; beyond it a direction is so long that rounding decides.
_HIGHEST: Final = 0.9999


def _set(instance: object, name: str, value: object) -> None:
    """Put a checked value in its place in a frozen instance."""
    object.__setattr__(instance, name, value)


def _whole(value: object, name: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise InputError(f"{name} is {value!r}; it must be a whole number of at least {least}.")
    return int(value)


def _between(value: object, name: str, low: float, high: float, *, ends: bool = True) -> float:
    words = f"it must lie between {low:g} and {high:g}" + (", both included" if ends else ", both left out")
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(float(value)):
        raise InputError(f"{name} is {value!r}; {words}.")
    number = float(value)
    if not (low <= number <= high if ends else low < number < high):
        raise InputError(f"{name} is {number:g}; {words}.")
    return number


def _choice(value: object, name: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError(f"{name} is {value!r}; allowed are {', '.join(allowed)}.")


def _shares(given: object) -> tuple[float, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence) or not 1 <= len(given) <= _MOST_IMAGES_EACH:
        raise InputError(
            f"images_each is {given!r}; it must hold 1 to {_MOST_IMAGES_EACH} shares of patients, the first "
            "of those with one image."
        )
    shares = tuple(_between(share, "a share of images_each", 0, 1) for share in given)
    if abs(sum(shares) - 1) > 1e-6:
        raise InputError(f"images_each adds up to {sum(shares):g}; its shares must add up to 1.")
    return shares


@dataclass(frozen=True)
class FeatureGroup:
    """One group: how large it is and what is planted in it.

    Attributes
    ----------
    name : str
        Its name.
    train, validation, test : int
        Images or patients of each split, as the world's ``unit`` says; 0 or more.
    prevalence : float or None
        Share of images with disease, in (0, 1). None is the world's.
    auroc : float or None
        AUROC of the best score within this group, from 0.5 to the world's. A lower one is a planted
        difference. None is the world's.
    entanglement : float
        Dose from 0 to 1: the disease direction of the group is turned towards the group's own offset
        direction by this share of a right angle.
    missed, invented : float
        Label noise: the share of true positives that are recorded as negative, and of true negatives that
        are recorded as positive, image by image, whatever the features are; from 0 to 0.5.

    Raises
    ------
    frame.InputError
        If a value lies outside these.
    """

    name: str
    train: int = 0
    validation: int = 0
    test: int = 0
    prevalence: float | None = None
    auroc: float | None = None
    entanglement: float = 0.0
    missed: float = 0.0
    invented: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InputError(f"name is {self.name!r}; a group needs a name that is not blank.")
        of = f" of group '{self.name}'"
        for split in SPLITS:
            _set(self, split, _whole(getattr(self, split), split + of, 0))
        if self.prevalence is not None:
            _set(self, "prevalence", _between(self.prevalence, "prevalence" + of, 0, 1, ends=False))
        if self.auroc is not None:
            _set(self, "auroc", _between(self.auroc, "auroc" + of, 0.5, _HIGHEST))
        _set(self, "entanglement", _between(self.entanglement, "entanglement" + of, 0, 1))
        for name in ("missed", "invented"):
            _set(self, name, _between(getattr(self, name), name + of, 0, 0.5))

    @property
    def total(self) -> int:
        """Images or patients of all splits."""
        return self.train + self.validation + self.test


def _groups(given: object) -> tuple[FeatureGroup, ...]:
    wrong = f"groups is {given!r}; it must hold at least two FeatureGroup."
    if not isinstance(given, (tuple, list)) or len(given) < 2:
        raise InputError(wrong)
    groups: list[FeatureGroup] = []
    for group in given:
        if not isinstance(group, FeatureGroup):
            raise InputError(wrong)
        if not group.total:
            raise InputError(f"group '{group.name}' has no images; leave it out or give it a size.")
        if any(group.name == other.name for other in groups):
            raise InputError(f"two groups are named '{group.name}'; each needs a name of its own.")
        groups.append(group)
    return tuple(groups)


@dataclass(frozen=True)
class FeatureWorld:
    """All settings of a world of drawn features; what is fair in it is said above, in the module's text.

    Attributes
    ----------
    groups : tuple of FeatureGroup
        At least two, with different names. One more at the end leaves the rows of the others as they are.
    unit : str
        What their sizes count: ``images`` (the last patient of a group and split has what is left) or
        ``patients``.
    images_each : tuple of float
        Shares of patients with 1, 2, ... images, at most 9. How many a patient has depends on nothing.
    prevalence : float
        Share of images with disease in every group that states none of its own, in (0, 1).
    icc_disease : float
        Share of the variance of the disease latent that belongs to the patient, in [0, 1]. An image has the
        disease where its latent passes a limit; beyond that the latent changes no feature.
    icc_noise : float
        Share of the variance of the features' noise that belongs to the patient, at most 0.9999. It is the
        same for every feature, hence for the noise of every linear score.
    auroc : float
        AUROC of the best score within a group, from 0.5 to 0.9999. That score is linear; no other score of
        one image alone does better.
    decodability : float
        AUROC with which the best linear score tells any two groups apart among images without the disease,
        where neither group is entangled; from 0.5 to 0.9999. At 0.5 the groups have no offset.
    dimensions : int
        Features of an image; at least one more than groups.
    spectrum : str
        ``isotropic``, or ``decaying``: the k-th principal axis of the noise has a variance in proportion to
        1/k, with mean 1, and the features are correlated.
    dtype : str
        ``float32`` or ``float64``.
    seed : int
        Seed of the directions and of all rows, 0 or more.

    Raises
    ------
    frame.InputError
        If a value lies outside these.
    """

    groups: tuple[FeatureGroup, ...] = (
        FeatureGroup("A", train=1200, validation=200, test=1000),
        FeatureGroup("B", train=600, validation=100, test=500),
        FeatureGroup("C", train=240, validation=40, test=200),
    )
    unit: str = "images"
    images_each: tuple[float, ...] = (0.40, 0.25, 0.20, 0.15)
    prevalence: float = 0.3
    icc_disease: float = 0.7
    icc_noise: float = 0.5
    auroc: float = 0.8
    decodability: float = 0.9
    dimensions: int = 64
    spectrum: str = "decaying"
    dtype: str = "float32"
    seed: int = 0

    def __post_init__(self) -> None:
        _set(self, "groups", _groups(self.groups))
        for name, allowed in (("unit", UNITS), ("spectrum", SPECTRA), ("dtype", DTYPES)):
            _choice(getattr(self, name), name, allowed)
        _set(self, "images_each", _shares(self.images_each))
        _set(self, "prevalence", _between(self.prevalence, "prevalence", 0, 1, ends=False))
        _set(self, "icc_disease", _between(self.icc_disease, "icc_disease", 0, 1))
        _set(self, "icc_noise", _between(self.icc_noise, "icc_noise", 0, 0.9999))
        _set(self, "auroc", _between(self.auroc, "auroc", 0.5, _HIGHEST))
        _set(self, "decodability", _between(self.decodability, "decodability", 0.5, _HIGHEST))
        _set(self, "seed", _whole(self.seed, "seed", 0))
        _set(self, "dimensions", _whole(self.dimensions, "dimensions", len(self.groups) + 1))
        for group in self.groups:
            if group.auroc is not None and group.auroc > self.auroc:
                raise InputError(
                    f"auroc of group '{group.name}' is {group.auroc:g}; a planted difference lowers it, so "
                    f"it must not pass the world's {self.auroc:g}."
                )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the groups."""
        return tuple(group.name for group in self.groups)

    @property
    def fair(self) -> bool:
        """Whether no difference is planted and no group entangled; says nothing about recorded labels."""
        return all(self.auroc_of(g) == self.auroc and not g.entanglement for g in self.groups)

    @property
    def labels_right(self) -> bool:
        """Whether every recorded label is the true one."""
        return not any(group.missed or group.invented for group in self.groups)

    def prevalence_of(self, group: FeatureGroup) -> float:
        """Share of images with disease in a group."""
        return self.prevalence if group.prevalence is None else group.prevalence

    def auroc_of(self, group: FeatureGroup) -> float:
        """AUROC of the best linear score within a group."""
        return self.auroc if group.auroc is None else group.auroc


def statement(world: FeatureWorld) -> list[str]:
    """What is planted, as sentences.

    Parameters
    ----------
    world : FeatureWorld
        A world.

    Returns
    -------
    list of str
        The phantom note, and one sentence for each thing that is planted, or that is not.
    """
    counted = "; ".join(
        f"{group.name} {group.train:,} / {group.validation:,} / {group.test:,}" for group in world.groups
    )
    lowered = [g for g in world.groups if world.auroc_of(g) < world.auroc]
    turned = [g for g in world.groups if g.entanglement]
    noisy = [g for g in world.groups if g.missed or g.invented]
    prevalences = {world.prevalence_of(g) for g in world.groups}
    return [
        NOTE,
        f"{world.unit.capitalize()} of training, validation and test by group: {counted}.",
        (
            "The groups are alike by construction: given the true label, the features less the group's "
            "offset have the same law in all of them."
            if world.fair
            else "The groups are alike but for the causes that follow."
        ),
        f"The best score of one image alone has an AUROC of {world.auroc:g} within "
        + ("each group" if not lowered else "every group without a planted difference")
        + ", for true labels.",
        *(
            f"Planted difference: in group {g.name} the disease shows less, and no score of one image has an "
            f"AUROC above {world.auroc_of(g):g}."
            for g in lowered
        ),
        *(
            f"Entanglement: in group {g.name} the disease direction is turned towards the group's own "
            f"direction by {g.entanglement:g} of a right angle, so that the head that is best for the others "
            "is worse for this group, and a head of its own would not be."
            for g in turned
        ),
        (
            "Any two groups can be told apart by a shift that the best head for disease does not see: the "
            f"best linear score does so with an AUROC of {world.decodability:g} among images without the "
            + ("disease, where neither group is entangled." if turned else "disease.")
            if world.decodability > 0.5
            else "No group is shifted against another."
        ),
        (
            f"The prevalence is {world.prevalence_of(world.groups[0]):.3g} in every group."
            if len(prevalences) == 1
            else "Prevalences differ: "
            + ", ".join(f"{g.name} {world.prevalence_of(g):.3g}" for g in world.groups)
            + "."
        ),
        *(
            f"Label noise: in group {g.name} {100 * g.missed:.3g}% of the images with disease are recorded "
            f"without it, and {100 * g.invented:.3g}% of those without it are recorded with it."
            for g in noisy
        ),
        "No other recorded label is wrong." if noisy else "No recorded label is wrong.",
        _patients(world),
        f"The noise of the {world.dimensions} features is "
        + ("isotropic." if world.spectrum == "isotropic" else "correlated, with variances that fall as 1/k."),
        f"The seed of this world is {world.seed}.",
    ]


def _patients(world: FeatureWorld) -> str:
    if len(world.images_each) == 1:
        return "Every patient has one image."
    return (
        f"Patients have up to {len(world.images_each)} images, which share {100 * world.icc_disease:.3g}% of "
        f"the variance behind the disease and {100 * world.icc_noise:.3g}% of the variance of the features' "
        "noise."
    )

"""What is true in the phantom world: a small model that a profile states under its key ``phantom``.

Every difference between groups that a method is meant to find, or to call absent, is a value here, with the
demo's value as its default. Besides, anatomy, view and devices vary from patient to patient as drawn, bone
fades with age, and children have a chest of their own; nothing else depends on a group.
:func:`frame.cohorts.phantom.sentences.statement` says all of it in sentences, which stand beside every result
from phantoms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from frame.cohorts.schema import FINDINGS, LEVELS

__all__ = [
    "AGE_BANDS",
    "COMMON",
    "NOTE",
    "RACES",
    "ROOTS",
    "SIDES",
    "SOURCES",
    "SPLIT_RULES",
    "AgePlant",
    "LabelNoise",
    "PhantomTruth",
    "RacePlant",
    "Recording",
    "Sizes",
    "modality_of",
    "scaled",
]

#: The sources that are drawn, by modality.
SOURCES: Final[dict[str, tuple[str, ...]]] = {
    "chest": ("mimic_cxr", "chexpert", "nih_cxr14", "padchest", "vindr_cxr", "vindr_pcxr"),
    "skin": ("isic_2019", "fitzpatrick17k", "ddi"),
    "fundus": ("fairvision",),
}
#: Folder of each source's linked release within its own folder; a profile names both.
ROOTS: Final[dict[str, str]] = {"mimic_cxr": "mimic-iv-3.1", "chexpert": "chexpert-plus"}
#: How a profile must split a source for the planned numbers; the others have their default.
SPLIT_RULES: Final[dict[str, str]] = {"mimic_cxr": "released"}
#: Stands wherever numbers of drawn images are shown.
NOTE: Final = "Phantom: drawn images, no patients."
RACES: Final = LEVELS["race"]
AGE_BANDS: Final = LEVELS["age_band"]
#: Prevalence from which a finding counts as common.
COMMON: Final = 0.07
#: Smallest and largest side of a drawn image in pixels.
SIDES: Final = (16, 512)

Share = Annotated[float, Field(ge=0, le=1)]
Shares = Mapping[str, Share]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Sizes(_Part):
    """Images by split, as planned.

    Where a site's split is a hash of the patients, or fractions of the subjects, only the sum counts, and
    the three numbers are about what that split gives.
    """

    train: int = Field(ge=0)
    validation: int = Field(ge=0)
    test: int = Field(ge=0)

    @property
    def total(self) -> int:
        """All images."""
        return self.train + self.validation + self.test


class RacePlant(_Part):
    """The mark by which race can be told from a chest radiograph or a fundus image.

    ``texture`` is ``fixed`` (a grating of the group's frequency with one phase, which a linear encoder
    sees), ``random_phase`` (only a nonlinear encoder sees it), or ``none``. ``amplitude`` is on the grey
    scale from 0 to 1; None is the texture's own. The mark is independent of everything else.
    """

    texture: Literal["fixed", "random_phase", "none"] = "fixed"
    amplitude: float | None = Field(default=None, ge=0, le=0.2)


class AgePlant(_Part):
    """What age does to chest radiographs.

    In the oldest band every finding is drawn with its severity times ``contrast``, except the finding
    ``control``.
    """

    contrast: float = Field(default=0.5, ge=0, le=1)
    control: str = "support_devices"


class LabelNoise(_Part):
    """Wrong labels: ``rate`` of the recorded labels of one finding are flipped in patients of one race."""

    finding: str = "cardiomegaly"
    group: str = "Black"
    rate: float = Field(default=0.15, ge=0, le=0.5)


class Recording(_Part):
    """What the two sources with race do not record; drawn at random for each cell.

    ``blank`` and ``uncertain`` are shares of the labels and add up to 1 at most; ``race`` is the share of the
    patients without a usable race. A blank or uncertain label hides what is true, present or absent alike.
    """

    blank: float = Field(default=0.15, ge=0, le=0.9)
    uncertain: float = Field(default=0.04, ge=0, le=0.5)
    race: float = Field(default=0.04, ge=0, le=0.9)

    @model_validator(mode="after")
    def _at_most_all(self) -> Recording:
        if self.blank + self.uncertain > 1 + 1e-9:
            raise ValueError(
                f"blank and uncertain add up to {self.blank + self.uncertain:g}; they can be 1 at most, "
                "which is all labels"
            )
        return self


class PhantomTruth(_Part):
    """All that is planted.

    Attributes
    ----------
    seed : int
        Seed of the whole world.
    chest, skin, fundus : mapping of str to Sizes
        Images of each source. A source that is left out is not drawn.
    images_each : tuple of float
        Shares of chest patients with 1, 2, ... images. The VinDr sites have one image a patient.
    races, ages, insurances : mapping of str to float
        Shares of the chest patients by race, age band (adults) and insurance; independent of each other.
    female : float
        Share of women, all modalities.
    ap : mapping of str to float
        Share of AP views of each chest site.
    prevalences : mapping of str to float
        Share of the images with each of the 13 findings.
    pneumonia_children : float
        The same of pneumonia at the children's site.
    skin_tones : mapping of str to float
        Shares of the six skin types, as at Fitzpatrick17k; the other two skin sources have their own.
    malignant, glaucoma : float
        Prevalences of the two other findings.
    fundus_races : mapping of str to float
        Shares of the three races that the fundus source records.
    race, age, site, noise
        What is planted. ``site`` is ``look`` (each chest site has its own look) or ``none``.
    intraclass : float
        Share of the variance of each finding's latent that belongs to the patient.
    recording : Recording
        What is not recorded.
    """

    seed: int = Field(default=0, ge=0)
    chest: Mapping[str, Sizes] = {
        "mimic_cxr": Sizes(train=962, validation=229, test=1409),
        "chexpert": Sizes(train=936, validation=104, test=260),
        "nih_cxr14": Sizes(train=360, validation=40, test=300),
        "padchest": Sizes(train=432, validation=48, test=120),
        "vindr_cxr": Sizes(train=200, validation=0, test=300),
        "vindr_pcxr": Sizes(train=150, validation=0, test=150),
    }
    skin: Mapping[str, Sizes] = {
        "isic_2019": Sizes(train=420, validation=70, test=210),
        "fitzpatrick17k": Sizes(train=300, validation=50, test=150),
        "ddi": Sizes(train=180, validation=30, test=90),
    }
    fundus: Mapping[str, Sizes] = {"fairvision": Sizes(train=600, validation=100, test=300)}
    images_each: tuple[Share, ...] = (0.40, 0.25, 0.20, 0.15)
    races: Shares = {"White": 0.44, "Black": 0.20, "Asian": 0.13, "Hispanic or Latino": 0.12, "Other": 0.11}
    ages: Shares = dict(zip(AGE_BANDS, (0.18, 0.27, 0.37, 0.18), strict=True))
    insurances: Shares = {"Medicare": 0.40, "Medicaid": 0.20, "Private": 0.28, "Other": 0.12}
    female: float = Field(default=0.48, ge=0, le=1)
    ap: Shares = {
        "mimic_cxr": 0.55,
        "chexpert": 0.70,
        "nih_cxr14": 0.40,
        "padchest": 0.12,
        "vindr_cxr": 0.05,
        "vindr_pcxr": 0.60,
    }
    prevalences: Shares = {
        "atelectasis": 0.15,
        "cardiomegaly": 0.22,
        "consolidation": 0.10,
        "edema": 0.18,
        "enlarged_cardiomediastinum": 0.08,
        "fracture": 0.07,
        "lung_lesion": 0.08,
        "lung_opacity": 0.15,
        "pleural_effusion": 0.28,
        "pleural_other": 0.07,
        "pneumonia": 0.10,
        "pneumothorax": 0.07,
        "support_devices": 0.25,
    }
    pneumonia_children: float = Field(default=0.30, gt=0, lt=1)
    skin_tones: Shares = {"1": 0.15, "2": 0.20, "3": 0.17, "4": 0.18, "5": 0.17, "6": 0.13}
    malignant: float = Field(default=0.30, gt=0, lt=1)
    glaucoma: float = Field(default=0.45, gt=0, lt=1)
    fundus_races: Shares = {"Asian": 0.22, "Black": 0.28, "White": 0.50}
    race: RacePlant = RacePlant()
    age: AgePlant = AgePlant()
    site: Literal["look", "none"] = "look"
    noise: LabelNoise = LabelNoise()
    intraclass: float = Field(default=0.5, ge=0, lt=1)
    recording: Recording = Recording()

    @field_validator("images_each", mode="before")
    @classmethod
    def _tuple(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _allowed(self) -> PhantomTruth:
        for modality, names in SOURCES.items():
            _check_names(modality, getattr(self, modality), names, whole=False)
        _check_names("prevalences", self.prevalences, FINDINGS["chest"])
        if not all(0 < value < 1 for value in self.prevalences.values()):
            raise ValueError("prevalences: each must lie between 0 and 1")
        _check_names("ap", self.ap, SOURCES["chest"])
        _check_shares("races", self.races, RACES)
        _check_shares("ages", self.ages, AGE_BANDS)
        _check_shares("insurances", self.insurances, LEVELS["insurance"])
        _check_shares("skin_tones", self.skin_tones, tuple("123456"))
        _check_shares("fundus_races", self.fundus_races, ("Asian", "Black", "White"))
        if not 1 <= len(self.images_each) <= 9 or abs(sum(self.images_each) - 1) > 1e-6:
            raise ValueError("images_each: 1 to 9 shares that add up to 1 are needed")
        for name, value, allowed in (
            ("age.control", self.age.control, FINDINGS["chest"]),
            ("noise.finding", self.noise.finding, FINDINGS["chest"]),
            ("noise.group", self.noise.group, RACES),
        ):
            if value not in allowed:
                raise ValueError(f"{name}: {value!r} is unknown; allowed are {', '.join(allowed)}")
        for site, sizes in self.chest.items():
            _check_released(site, sizes)
        return self

    @property
    def sources(self) -> tuple[str, ...]:
        """All sources that are drawn, in the order of :data:`SOURCES`."""
        return tuple(
            name
            for modality, names in SOURCES.items()
            for name in names
            if name in getattr(self, modality) and getattr(self, modality)[name].total
        )

    def sizes(self, source: str) -> Sizes:
        """Planned images of one source."""
        found: Sizes = getattr(self, modality_of(source))[source]
        return found


def modality_of(source: str) -> str:
    """The modality of a source of :data:`SOURCES`."""
    return next(modality for modality, names in SOURCES.items() if source in names)


def scaled(truth: PhantomTruth, share: float) -> PhantomTruth:
    """The same world with fewer or more images.

    Parameters
    ----------
    truth : PhantomTruth
        A world.
    share : float
        Factor of all numbers of images, above 0; each is rounded up.

    Returns
    -------
    PhantomTruth
        With nothing else changed.
    """

    def part(sizes: Mapping[str, Sizes]) -> dict[str, Sizes]:
        return {
            name: Sizes(**{split: -int(-n * share // 1) for split, n in one.model_dump().items()})
            for name, one in sizes.items()
        }

    return truth.model_copy(update={modality: part(getattr(truth, modality)) for modality in SOURCES})


def _check_released(site: str, sizes: Sizes) -> None:
    """Whether a release of such sizes has no empty table or list; one without images is not drawn."""
    if site in ("vindr_cxr", "vindr_pcxr"):
        if sizes.validation:
            raise ValueError(f"chest.{site}: the release has no validation images; it must be 0")
        if sizes.total and not (sizes.train and sizes.test):
            raise ValueError(
                f"chest.{site}: train is {sizes.train} and test {sizes.test}; the release has a table of "
                "each, so each must be 1 or more, or both 0"
            )
    if site == "nih_cxr14" and sizes.total and not (sizes.train + sizes.validation and sizes.test):
        raise ValueError(
            f"chest.{site}: train and validation are {sizes.train + sizes.validation} together and test is "
            f"{sizes.test}; the release has a list of each, so each must be 1 or more, or all 0"
        )


def _check_names(
    where: str, given: Mapping[str, object], allowed: tuple[str, ...], whole: bool = True
) -> None:
    for name in given:
        if name not in allowed:
            raise ValueError(f"{where}: {name!r} is unknown; allowed are {', '.join(allowed)}")
    absent = [name for name in allowed if name not in given]
    if whole and absent:
        raise ValueError(f"{where}: {', '.join(absent)} is missing")


def _check_shares(where: str, given: Mapping[str, float], allowed: tuple[str, ...]) -> None:
    _check_names(where, given, allowed)
    if abs(sum(given.values()) - 1) > 1e-6:
        raise ValueError(f"{where}: the shares add up to {sum(given.values()):g}; they must add up to 1")

"""Photographs of the three skin sources: what is true, and what each release records of it.

Columns of the table (one row an image): ``source``, ``image_number``, ``subject_number``,
``image_of_subject``; ``image_id``, ``subject_id``, ``subject_kind``, ``file`` as the site module reads them;
``tone`` (Fitzpatrick type 1 to 6), ``age``, ``sex`` are true and ``*_recorded`` what is recorded
(``tone_recorded`` is the level of a manifest); ``malignant_true``, ``malignant_severity``,
``malignant_recorded`` (missing for a photograph that is neither malignant nor benign), ``diagnosis``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frame.cohorts.phantom.identities import numbered, sums
from frame.cohorts.phantom.quotas import (
    evenly,
    generator,
    images_of_patients,
    one_of,
    shuffled,
)
from frame.cohorts.phantom.truth import PhantomTruth

__all__ = ["NEITHER", "WITHOUT_AGE", "WITHOUT_SEX", "skin_population"]

#: Level of a manifest for each skin type.
TONES: Final = {1: "I-II", 2: "I-II", 3: "III-IV", 4: "III-IV", 5: "V-VI", 6: "V-VI"}
#: Skin types at ISIC 2019, which records none, and at DDI, which has three groups of equal size.
_SHARES: Final = {
    "isic_2019": {"1": 0.40, "2": 0.45, "3": 0.12, "4": 0.03},
    "ddi": dict.fromkeys("123456", 1 / 6),
}
#: Shares of lesions at ISIC 2019 with 1, 2, 3 photographs.
_EACH: Final = (0.65, 0.25, 0.10)
#: Share of Fitzpatrick17k that is neither malignant nor benign.
NEITHER: Final = 0.2
#: Diagnoses, the commonest first: malignant and benign.
_DIAGNOSES: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "isic_2019": (("MEL", "BCC", "AK", "SCC"), ("NV", "BKL", "DF", "VASC")),
    "fitzpatrick17k": (
        ("squamous cell carcinoma", "basal cell carcinoma", "melanoma", "actinic keratosis"),
        ("seborrheic keratosis", "halo nevus", "dermatofibroma", "epidermal nevus"),
    ),
    "ddi": (
        ("basal-cell-carcinoma", "melanoma", "squamous-cell-carcinoma", "mycosis-fungoides"),
        ("melanocytic-nevi", "seborrheic-keratosis", "dermatofibroma", "verruca-vulgaris"),
    ),
}
_NEITHER_NAMES: Final = ("psoriasis", "lichen planus", "scabies", "eczema")
_OLDEST: Final = 85
#: Shares of ISIC 2019 without age and without sex; the two other sources record neither.
WITHOUT_AGE: Final = 0.017
WITHOUT_SEX: Final = 0.015


def skin_population(truth: PhantomTruth, source: str) -> pd.DataFrame:
    """The photographs of one skin source.

    Parameters
    ----------
    truth : PhantomTruth
        The world.
    source : str
        One of its skin sources.

    Returns
    -------
    pandas.DataFrame
        See the module.
    """

    def random(purpose: str) -> np.random.Generator:
        return generator(truth.seed, source, purpose)

    is_isic = source == "isic_2019"
    counts = images_of_patients(truth.sizes(source).total, _EACH if is_isic else (1.0,))
    counts = random("subject numbers").permutation(counts)
    n_subjects = len(counts)
    subjects = pd.DataFrame({"subject_number": np.arange(n_subjects)})
    tones = evenly(n_subjects, _SHARES.get(source, truth.skin_tones), random("tone"))
    subjects["tone"] = np.array([int(tone) for tone in tones], dtype=np.int64)
    subjects["sex"] = shuffled(n_subjects, {"female": truth.female, "male": 1 - truth.female}, random("sex"))
    # Five-year steps from 0; children are few.
    steps = np.round(np.clip(random("age").normal(54, 18, n_subjects), 0, _OLDEST) / 5) * 5
    subjects["age"] = steps
    subjects["malignant_true"] = random("malignant").random(n_subjects) < truth.malignant
    neither = random("neither").random(n_subjects) < (NEITHER if source == "fitzpatrick17k" else 0.0)
    subjects["malignant_true"] &= ~neither
    subjects["diagnosis"] = _diagnoses(source, subjects["malignant_true"].to_numpy(), neither, random)
    _record(subjects, source, neither, random)
    table = subjects.loc[np.repeat(np.arange(n_subjects), counts)].reset_index(drop=True)
    table["image_number"] = np.arange(len(table))
    table["image_of_subject"] = table.groupby("subject_number").cumcount()
    table["malignant_severity"] = _severities(table["malignant_true"].to_numpy(), random)
    _name(table, source)
    table.insert(0, "source", source)
    return table


def _severities(
    present: NDArray[np.bool_], random: Callable[[str], np.random.Generator]
) -> NDArray[np.float64]:
    """Severity of each photograph: as of chest findings, but drawn for each photograph by itself."""
    strong = 0.25 + 0.75 * random("severity").beta(2, 2, len(present))
    weak = np.minimum(np.abs(random("mimic").normal(0, 0.06, len(present))), 0.24)
    return np.where(present, strong, weak)


def _diagnoses(
    source: str,
    malignant: NDArray[np.bool_],
    neither: NDArray[np.bool_],
    random: Callable[[str], np.random.Generator],
) -> NDArray[np.object_]:
    bad, good = _DIAGNOSES[source]
    n = len(malignant)
    found = np.where(
        malignant, one_of(random("malignant kind"), n, bad, 0.5), one_of(random("benign kind"), n, good, 0.6)
    )
    return np.where(neither, one_of(random("other kind"), n, _NEITHER_NAMES, 0.4), found)


def _record(
    subjects: pd.DataFrame,
    source: str,
    neither: NDArray[np.bool_],
    random: Callable[[str], np.random.Generator],
) -> None:
    n = len(subjects)
    u = random("recorded").random((2, n))
    is_isic = source == "isic_2019"
    subjects["age_recorded"] = subjects["age"].where(is_isic & (u[0] >= WITHOUT_AGE))
    subjects["sex_recorded"] = subjects["sex"].where(is_isic & (u[1] >= WITHOUT_SEX))
    levels = subjects["tone"].map(TONES)
    subjects["tone_recorded"] = np.full(n, np.nan, dtype=object) if is_isic else levels
    subjects["malignant_recorded"] = pd.arrays.IntegerArray(
        subjects["malignant_true"].to_numpy().astype(np.int8), neither
    )


def _name(table: pd.DataFrame, source: str) -> None:
    image, subject = table["image_number"], table["subject_number"]
    kinds: Any = "case"
    if source == "isic_2019":
        reduced = np.where(image % 7 == 3, "_downsampled", "")
        names = numbered(image, "ISIC_9{:06d}") + reduced
        archive = np.array(["HAM_9{:06d}", "BCN_9{:06d}", "MSK4_9{:06d}"], dtype=object)[subject % 3]
        lesions = np.array([one.format(n) for one, n in zip(archive, subject, strict=True)], dtype=object)
        # A lesion with one photograph may have no id; the photograph then stands for itself.
        alone = (table.groupby("subject_number")["subject_number"].transform("size") == 1) & (
            subject % 9 == 4
        )
        subjects = np.where(alone, names, lesions)
        kinds = np.where(alone, "image", "lesion")
        file = "ISIC_2019_Training_Input/" + names + ".jpg"
    elif source == "fitzpatrick17k":
        names = subjects = sums(source, "image", image)
        file = "images/" + names + ".jpg"
    else:
        names = subjects = numbered(image + 1, "9{:03d}")
        file = "00" + names + ".png"
    table["image_id"], table["subject_id"], table["subject_kind"], table["file"] = (
        names,
        subjects,
        kinds,
        file,
    )

"""Patients and images of the six chest sites: what is true, and what each release records of it.

Columns of the table (one row an image, patients together):

``source``, ``image_number``, ``patient_number``, ``image_of_patient``
    Running numbers from 0.
``image_id``, ``patient_id``, ``study_id``, ``file``
    As the site module reads them; ``patient_id`` is missing at the VinDr sites, ``study_id`` where there is
    none. Every image is a study of its own.
``released_split``
    ``train``, ``validation``, ``test``, ``train_val``, or missing (PadChest).
``age``, ``sex``, ``race``, ``insurance``, ``view``
    What is true.
``*_recorded``
    What the source records of them, in the levels of a manifest; missing where it records nothing.
``<finding>_true``, ``<finding>_severity``, ``<finding>_recorded``
    Presence, how strongly it is drawn before age weakens it (0 to 1), and the recorded code.
``labels_flipped``
    Whether the recorded label of the noisy finding is the opposite of the truth: a positive or a negative
    one, since a blank or an uncertain label says neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frame.cohorts.labels import BLANK, NEGATIVE, POSITIVE, UNCERTAIN
from frame.cohorts.phantom.identities import long_numbers, numbered, sums
from frame.cohorts.phantom.quotas import evenly, generator, images_of_patients, latent_finding, shuffled
from frame.cohorts.phantom.truth import PhantomTruth
from frame.cohorts.schema import FINDINGS
from frame.cohorts.sites.finding_codes import finding_names

__all__ = [
    "CAPPED",
    "CHILDREN",
    "NOT_ADMITTED",
    "NOT_DESCRIBED",
    "NOT_LISTED",
    "NO_INSURANCE",
    "ONE_IMAGE",
    "OVER_89",
    "VALID",
    "WITHOUT_AGE",
    "WITHOUT_SEX",
    "WITH_RACE",
    "chest_population",
]

#: Sources that record race and insurance, and whose labels may be blank or uncertain.
WITH_RACE: Final = ("mimic_cxr", "chexpert")
#: Sources with one image a patient.
ONE_IMAGE: Final = ("vindr_cxr", "vindr_pcxr")
#: The children's site.
CHILDREN: Final = "vindr_pcxr"
#: The age that MIMIC-IV gives for all above 89, and the oldest age that CheXpert gives.
OVER_89: Final = 91
CAPPED: Final = 90
#: Share of CheXpert's patients in its small released validation set, whose labels are complete.
VALID: Final = 0.04
#: First and last year of each age band of adults, and the oldest child.
_YEARS: Final = ((20, 39), (40, 59), (60, 79), (80, 94))
_OLDEST_CHILD: Final = 14
#: Shares of patients without age, and without sex, at sources that lack them for some.
WITHOUT_AGE: Final = {"chexpert": 0.01, "padchest": 0.01, "vindr_cxr": 0.35, "vindr_pcxr": 1.0}
WITHOUT_SEX: Final = {"chexpert": 0.003, "padchest": 0.01, "vindr_cxr": 0.25, "vindr_pcxr": 1.0}
#: Shares of MIMIC's patients that are not in its table of patients, and that have no admission.
NOT_LISTED: Final = 0.008
NOT_ADMITTED: Final = 0.015
#: Shares of PadChest's images whose report says nothing of them, and of insurances that nobody recorded.
NOT_DESCRIBED: Final = 0.02
NO_INSURANCE: Final = 0.02


def chest_population(truth: PhantomTruth, source: str) -> pd.DataFrame:
    """The images of one chest site.

    Parameters
    ----------
    truth : PhantomTruth
        The world.
    source : str
        One of its chest sources.

    Returns
    -------
    pandas.DataFrame
        See the module; the same for the same truth, whatever else is drawn.
    """

    def random(purpose: str) -> np.random.Generator:
        return generator(truth.seed, source, purpose)

    patients = _patients(truth, source, random)
    table = patients.loc[patients.index.repeat(patients["n_images"])].reset_index(drop=True)
    n = len(table)
    table["image_number"] = np.arange(n)
    table["image_of_patient"] = table.groupby("patient_number").cumcount()
    ap = truth.ap[source]
    table["view"] = shuffled(n, {"AP": ap, "PA": 1 - ap}, random("view"))
    table["view_recorded"] = "unknown" if source in ONE_IMAGE else table["view"]
    _name(table, source)
    _findings(table, truth, source, random)
    table.insert(0, "source", source)
    return table.drop(columns=["n_images"])


def _blocks(truth: PhantomTruth, source: str) -> dict[str, int]:
    """Images by what the release says of their split; ``""`` where the split is made afterwards."""
    sizes = truth.sizes(source)
    if source == "nih_cxr14":
        return {"train_val": sizes.train + sizes.validation, "test": sizes.test}
    if source in ("chexpert", "padchest"):
        return {"": sizes.total}
    return {"train": sizes.train, "validation": sizes.validation, "test": sizes.test}


def _patients(truth: PhantomTruth, source: str, random: Callable[[str], np.random.Generator]) -> pd.DataFrame:
    """One row a patient, sorted by number."""
    each = (1.0,) if source in ONE_IMAGE else truth.images_each
    counts = {block: images_of_patients(size, each) for block, size in _blocks(truth, source).items()}
    patients = pd.DataFrame(
        {
            "n_images": np.concatenate(list(counts.values())),
            "released_split": np.repeat(list(counts), [len(part) for part in counts.values()]).astype(object),
        }
    )
    n = len(patients)
    # Neighbours have the same split and number of images, so that races are even over both.
    patients["race"] = evenly(n, truth.races, random("race"))
    patients["sex"] = shuffled(n, {"female": truth.female, "male": 1 - truth.female}, random("sex"))
    bands = np.zeros(n, dtype=int)
    if source != CHILDREN:
        names = list(truth.ages)
        bands = np.array(
            [names.index(band) for band in shuffled(n, truth.ages, random("age band"))], dtype=int
        )
    limits = np.array([(0, _OLDEST_CHILD)] if source == CHILDREN else _YEARS)[bands]
    patients["age"] = random("age").integers(limits[:, 0], limits[:, 1] + 1).astype(np.float64)
    patients["insurance"] = shuffled(n, truth.insurances, random("insurance"))
    patients["patient_number"] = random("patient numbers").permutation(n)
    patients = patients.sort_values("patient_number", ignore_index=True)
    if source == "chexpert":
        valid = random("valid").random(n) < VALID
        valid[0] &= not valid.all()  # the release has a table of training images
        patients["released_split"] = np.where(valid, "validation", "train")
    patients["released_split"] = patients["released_split"].replace("", np.nan)
    _record(patients, truth, source, random)
    return patients


def _record(
    patients: pd.DataFrame, truth: PhantomTruth, source: str, random: Callable[[str], np.random.Generator]
) -> None:
    """Add what the source records of its patients."""
    n = len(patients)
    u = random("recorded").random((4, n))
    listed = np.ones(n, dtype=bool)
    age = patients["age"].to_numpy(copy=True)
    patients["anchor_offset"] = random("anchor").integers(0, 3, n)
    if source == "mimic_cxr":
        listed = u[0] >= NOT_LISTED
        listed[0] |= not listed.any()  # no released table is empty
        anchored = age - patients["anchor_offset"].to_numpy()
        age = np.where(anchored >= CAPPED, float(OVER_89), age)
    if source == "chexpert":
        age = np.minimum(age, CAPPED)
    known_age = listed & (u[1] >= WITHOUT_AGE.get(source, 0.0))
    known_sex = listed & (u[2] >= WITHOUT_SEX.get(source, 0.0))
    patients["listed"] = listed
    patients["age_recorded"] = np.where(known_age, age, np.nan)
    patients["sex_recorded"] = patients["sex"].where(known_sex)
    with_race = source in WITH_RACE
    more = random("race recorded").random((3, n))
    admitted = (more[0] >= NOT_ADMITTED) | (source != "mimic_cxr")
    admitted[0] |= not admitted.any()
    patients["admitted"] = admitted
    named = patients["admitted"] & (more[1] >= truth.recording.race) & with_race
    insured = patients["admitted"] & (more[2] >= NO_INSURANCE) & with_race
    patients["race_recorded"] = patients["race"].where(named)
    patients["insurance_recorded"] = patients["insurance"].where(insured)


def _findings(
    table: pd.DataFrame, truth: PhantomTruth, source: str, random: Callable[[str], np.random.Generator]
) -> None:
    """Add the true findings, their severity and the recorded codes."""
    labelled = {finding for findings in finding_names(source).values() for finding in findings}
    described = random("described").random(len(table)) >= (NOT_DESCRIBED if source == "padchest" else 0.0)
    complete = (table["released_split"] == "validation").to_numpy() & (source == "chexpert")
    patients = table["patient_number"].to_numpy(dtype=np.int64)
    columns: dict[str, Any] = {}
    for finding in FINDINGS["chest"]:
        children = source == CHILDREN and finding == "pneumonia"
        prevalence = truth.pneumonia_children if children else truth.prevalences[finding]
        present, severity = latent_finding(
            random(f"latent {finding}"), patients, prevalence, truth.intraclass
        )
        columns[f"{finding}_true"], columns[f"{finding}_severity"] = present, severity
        u = random(f"label {finding}").random((2, len(table)))
        flipped = np.zeros(len(table), dtype=bool)
        if finding == truth.noise.finding:
            flipped = (u[0] < truth.noise.rate) & (table["race"] == truth.noise.group).to_numpy()
        codes = (present ^ flipped).astype(np.int8)
        if source in WITH_RACE:
            codes = _with_gaps(codes, u[1], complete, truth.recording.blank, truth.recording.uncertain)
        silent = ~described | (finding not in labelled)
        if finding == truth.noise.finding:
            columns["labels_flipped"] = flipped & ~silent & ((codes == POSITIVE) | (codes == NEGATIVE))
        columns[f"{finding}_recorded"] = pd.arrays.IntegerArray(
            np.where(silent, 0, codes).astype(np.int8), silent
        )
    for name, column in columns.items():
        table[name] = column


def _with_gaps(
    codes: NDArray[np.int8],
    u: NDArray[np.float64],
    complete: NDArray[np.bool_],
    blank: float,
    uncertain: float,
) -> NDArray[np.int8]:
    found = np.where(u < blank, BLANK, np.where(u < blank + uncertain, UNCERTAIN, codes))
    found = np.where(complete, codes, found)
    return found.astype(np.int8)


def _name(table: pd.DataFrame, source: str) -> None:
    """Add ids and files."""
    image, patient = table["image_number"], table["patient_number"]
    nothing = np.full(len(table), np.nan, dtype=object)
    study: Any = nothing
    if source == "mimic_cxr":
        subject, study = numbered(patient, "9{:07d}"), numbered(image, "8{:07d}")
        names = sums(source, "image", image, dashes=True)
        folder = [f"files/p{s[:2]}/p{s}/s{t}/" for s, t in zip(subject, study, strict=True)]
        file = np.array([f"{a}{b}.jpg" for a, b in zip(folder, names, strict=True)], dtype=object)
    elif source == "chexpert":
        subject = numbered(patient, "patient9{:04d}")
        part = np.where(table["released_split"] == "validation", "valid", "train")
        number = table["image_of_patient"] + 1
        study = np.array([f"{s}/study{k}" for s, k in zip(subject, number, strict=True)], dtype=object)
        names = np.array([f"{p}/{s}/view1_frontal" for p, s in zip(part, study, strict=True)], dtype=object)
        file = "CheXpert-v1.0-small/" + names + ".jpg"
    elif source == "nih_cxr14":
        subject = numbered(patient, "9{:07d}")
        number = table["image_of_patient"]
        names = np.array([f"{s}_{k:03d}" for s, k in zip(subject, number, strict=True)], dtype=object)
        file = numbered(image // 500 + 1, "images_{:03d}/images/") + names + ".png"
    elif source == "padchest":
        subject = long_numbers(source, "patient", "8", patient)
        study = long_numbers(source, "study", "9", image)
        names = long_numbers(source, "image", "9", image) + numbered(image, "_ph{:04d}")
        file = numbered(image // 200, "{}/") + names + ".png"
    else:
        subject = nothing
        names = sums(source, "image", image)
        file = table["released_split"].to_numpy(dtype=object) + "/" + names + ".png"
    table["image_id"], table["patient_id"], table["study_id"], table["file"] = names, subject, study, file

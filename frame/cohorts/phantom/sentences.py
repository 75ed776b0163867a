"""The planted truth as sentences, which stand beside every result from phantoms.

Only what concerns the sources that are drawn is said, with the rates of this world.
"""

from __future__ import annotations

from decimal import Decimal

from frame.cohorts.phantom.population_chest import (
    CHILDREN,
    NO_INSURANCE,
    NOT_ADMITTED,
    NOT_DESCRIBED,
    NOT_LISTED,
    VALID,
    WITH_RACE,
)
from frame.cohorts.phantom.population_fundus import NO_ETHNICITY
from frame.cohorts.phantom.truth import SOURCES, PhantomTruth
from frame.cohorts.schema import FINDINGS

__all__ = ["percent", "statement"]


def percent(share: float) -> str:
    """A share in percent with all digits that it was stated with, six at most: 0.004 is ``0.4%``."""
    return f"{Decimal(f'{100 * share:.6g}'):f}%"


def statement(truth: PhantomTruth) -> list[str]:
    """The planted truth as sentences.

    Parameters
    ----------
    truth : PhantomTruth
        A world.

    Returns
    -------
    list of str
        One sentence or two for each thing that is planted, or that is not. What concerns a modality or a
        source that is not drawn is left out.
    """
    chest, skin, fundus = (
        [source for source in truth.sources if source in names] for names in SOURCES.values()
    )
    said = ["These images are drawings by a program; no person stands behind any of them."]
    if chest or fundus:
        said += _race(truth, bool(chest), bool(fundus))
    if chest:
        said += _age(truth)
    said.append("Sex changes no image and no finding" + (", and insurance neither." if chest else "."))
    if chest:
        said += _views_and_sites(truth, chest)
        said += _labels(truth, chest)
        said += _prevalences(truth, chest)
    if skin:
        said.append(
            "Skin type can be seen in every photograph of skin. Lesions are equally grave on all six types, "
            "but the same lesion stands out less from dark skin, as it does in life; of the lesions that are "
            f"malignant or benign, {percent(truth.malignant)} are malignant. Each skin source has its own "
            "look and its own shares of skin types."
        )
    if fundus:
        said.append(
            f"{percent(truth.glaucoma)} of the fundus images have glaucoma, whatever age, sex, race or "
            f"ethnicity; ethnicity is not recorded for about {percent(NO_ETHNICITY)} of their patients."
        )
    said.append(f"The seed of this world is {truth.seed}.")
    return said


def _race(truth: PhantomTruth, chest: bool, fundus: bool) -> list[str]:
    kinds = " and ".join(name for name, drawn in (("chest", chest), ("fundus", fundus)) if drawn)
    seen = {
        "fixed": "a faint grating that even a linear encoder sees",
        "random_phase": "a faint grating of random phase, which only a nonlinear encoder sees",
    }.get(truth.race.texture)
    if seen is None or truth.race.amplitude == 0:
        first = "Race cannot be told from any image, and findings are drawn alike in all races."
    else:
        first = (
            f"Race can be told from every {kinds} image by {seen}, and it is fair: findings are drawn alike "
            "in all races."
        )
    over = "the number of images and the split" if chest else "the split"
    return [first, f"Race is balanced over {over} (more evenly than chance), and independent of the rest."]


def _age(truth: PhantomTruth) -> list[str]:
    control = _words(truth.age.control)
    if truth.age.contrast < 1:
        first = (
            "Age is entangled with disease: in patients of 80 years and more every finding of the chest is "
            f"drawn {truth.age.contrast:g} times as strongly, except {control}, which is the negative "
            "control: drawn with the same strength at every age; bone alone changes its trace by a few "
            "percent."
        )
    else:
        first = "Age changes the strength of no finding; bone alone changes their traces by a few percent."
    return [
        first,
        "Bone is drawn fainter with every year of age, so that healthy chests differ with age too.",
    ]


def _views_and_sites(truth: PhantomTruth, chest: list[str]) -> list[str]:
    shares = ", ".join(f"{source} {percent(truth.ap[source])}" for source in chest)
    said = [
        "In AP views the heart is 9% wider and the diaphragm stands higher than in PA views; the share of AP "
        f"views depends on the site and on nothing else ({shares})."
    ]
    if CHILDREN in chest:
        said.append(
            "At the children's site every chest is wide and short, the heart 12% wider and the ribs level."
        )
    said.append(
        "Each chest site has its own look (grey curve, sharpness, grain, marker); findings have the same "
        "strengths at all sites."
        if truth.site == "look"
        else "All chest sites but the children's look the same."
    )
    return said


def _labels(truth: PhantomTruth, chest: list[str]) -> list[str]:
    noise, recording = truth.noise, truth.recording
    mined = [source for source in WITH_RACE if source in chest]
    none_other = "no other positive or negative label is wrong." if mined else "no other label is wrong."
    said = [
        f"Label noise: {percent(noise.rate)} of the recorded labels of {_words(noise.finding)} are flipped "
        f"in patients whose race is {noise.group}; {none_other}"
        if noise.rate
        else ("No positive or negative label is wrong." if mined else "No label is wrong.")
    ]
    if mined:
        where = "At the two sites with race" if len(mined) == 2 else "At the site with race"
        here = f"{where} ({', '.join(mined)})"
        said.append(
            f"{here} {percent(recording.blank)} of the labels are blank and {percent(recording.uncertain)} "
            "uncertain, at random"
            + (
                f", but for the small validation set in the release of chexpert (about {percent(VALID)} of "
                "its patients), whose labels are complete."
                if "chexpert" in mined
                else "."
            )
        )
        if recording.uncertain and recording.blank < 1:
            share = min(recording.uncertain / (1 - recording.blank), 1.0)
            said.append(
                "An uncertain label hides what is true, present or absent alike. What it counts as is the "
                "profile's policy; where that is negative, about "
                f"{100 * share:.1f}% of the true positives that are not blank count as negative, in all "
                "groups alike."
            )
        rest = "" if len(mined) == len(chest) else "; at the other chest sites neither is, for anybody"
        said.append(
            f"{where} race is not recorded for about {percent(recording.race)} of the patients, and "
            f"insurance not for about {percent(NO_INSURANCE)}{rest}."
        )
    else:
        said.append("Race and insurance are recorded for nobody at these chest sites.")
    if "mimic_cxr" in chest:
        said.append(
            f"About {percent(NOT_ADMITTED)} of the patients of mimic_cxr have no admission, hence neither "
            f"race nor insurance, and {percent(NOT_LISTED)} are not in its table of patients, hence have "
            "neither age nor sex."
        )
    if "padchest" in chest:
        said.append(f"About {percent(NOT_DESCRIBED)} of the images of padchest have no label at all.")
    return said


def _prevalences(truth: PhantomTruth, chest: list[str]) -> list[str]:
    prevalences = truth.prevalences
    shown = ", ".join(
        f"{_words(name)} {percent(prevalences[name])}"
        for name in sorted(FINDINGS["chest"], key=lambda name: (-prevalences[name], name))
    )
    children = (
        f"; pneumonia at the children's site {percent(truth.pneumonia_children)}" if CHILDREN in chest else ""
    )
    return [
        f"The images of one patient share {percent(truth.intraclass)} of the variance behind each finding.",
        f"Prevalences in the chest: {shown}{children}.",
    ]


def _words(finding: str) -> str:
    return finding.replace("_", " ")

"""Short radiograph reports made from recorded labels, in the manner of the two sources that release reports.

A report says what the recorded label says: a positive finding is described, a negative one denied, an
uncertain one doubted, and a blank one not mentioned. Findings that are denied share a sentence now and then.
Some reports name age and sex, and a few race, in the text that is kept and not only in the indication.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from frame.cohorts.labels import NEGATIVE, POSITIVE, UNCERTAIN

__all__ = ["PEOPLE", "Person", "Report", "full_text", "make_report"]

#: Shares of reports that name sex and age, and race, in their findings or impression.
NAMES_PERSON: Final = 0.3
NAMES_RACE: Final = 0.06
#: Shares of reports without findings, and without an impression.
NO_FINDINGS: Final = 0.10
NO_IMPRESSION: Final = 0.08
#: How a report names a race.
PEOPLE: Final = {
    "White": ("Caucasian", "white"),
    "Black": ("African American", "black"),
    "Asian": ("Asian",),
    "Hispanic or Latino": ("Hispanic",),
    "Other": (),
}

#: For each finding: weak, strong, denied, doubted, name in a list of what there is not.
_SENTENCES: Final[
    dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...], str]]
] = {
    "support_devices": (
        ("A central venous catheter ends in the superior vena cava.", "Leads project over the chest."),
        ("Lines and tubes are in standard position.", "A left-sided pacemaker is seen, its leads intact."),
        ("No lines or tubes are seen.",),
        ("A thin density may be a catheter.",),
        "support device",
    ),
    "cardiomegaly": (
        ("The heart is mildly enlarged.", "Mild cardiomegaly."),
        ("The heart is markedly enlarged.", "Moderate to severe cardiomegaly."),
        ("The heart size is normal.", "No cardiomegaly."),
        ("The heart is at the upper limit of normal, borderline cardiomegaly.",),
        "cardiomegaly",
    ),
    "enlarged_cardiomediastinum": (
        ("The upper mediastinum is slightly widened.",),
        ("The cardiomediastinal silhouette is widened.",),
        ("The mediastinal contours are unremarkable.",),
        ("The mediastinum may be widened.",),
        "mediastinal widening",
    ),
    "lung_opacity": (
        ("There is a faint opacity of the lung.",),
        ("There is a large opacity of the lung.",),
        ("No focal opacity.", "The lungs are well expanded."),
        ("A faint opacity cannot be excluded.",),
        "focal opacity",
    ),
    "lung_lesion": (
        ("A small nodule projects over the lung.",),
        ("A lung mass is seen.", "There is a large pulmonary nodule."),
        ("No nodule or mass.",),
        ("A nodular density may be a nipple shadow or a nodule.",),
        "pulmonary nodule",
    ),
    "edema": (
        ("There is mild pulmonary edema.", "Mild interstitial edema."),
        ("There is severe pulmonary edema.", "Moderate to severe pulmonary edema."),
        ("No pulmonary edema.", "The pulmonary vasculature is normal."),
        ("Possible mild pulmonary edema.",),
        "pulmonary edema",
    ),
    "consolidation": (
        ("There is a small consolidation.",),
        ("There is a dense lobar consolidation.",),
        ("The lungs are without consolidation.", "No focal consolidation."),
        ("Early consolidation is possible.",),
        "consolidation",
    ),
    "pneumonia": (
        ("Findings suggest mild pneumonia.",),
        ("Multifocal pneumonia.", "The appearance is that of lobar pneumonia."),
        ("No evidence of pneumonia.",),
        ("Pneumonia cannot be excluded in the right setting.",),
        "pneumonia",
    ),
    "atelectasis": (
        ("Mild bibasilar atelectasis.", "There is linear atelectasis at the base."),
        ("Marked atelectasis of the lower lobe with loss of volume.",),
        ("No atelectasis.",),
        ("Basal density may reflect atelectasis.",),
        "atelectasis",
    ),
    "pneumothorax": (
        ("There is a small apical pneumothorax.",),
        ("There is a large pneumothorax.",),
        ("No pneumothorax.", "There is no pneumothorax."),
        ("A tiny apical pneumothorax cannot be excluded.",),
        "pneumothorax",
    ),
    "pleural_effusion": (
        ("There is a small pleural effusion.", "Blunting of the costophrenic angle by a small effusion."),
        ("There is a large pleural effusion.", "Moderate to large pleural effusion."),
        ("No pleural effusion.", "The costophrenic angles are clear."),
        ("A small pleural effusion is possible.",),
        "pleural effusion",
    ),
    "pleural_other": (
        ("Mild apical pleural thickening.",),
        ("Marked pleural thickening.",),
        ("No pleural thickening.",),
        ("Possible pleural thickening.",),
        "pleural thickening",
    ),
    "fracture": (
        ("An old rib fracture is noted.",),
        ("Displaced rib fractures are seen.",),
        ("No acute fracture.", "The bones are intact."),
        ("A rib fracture cannot be excluded.",),
        "fracture",
    ),
}
_REASONS: Final = ("shortness of breath", "cough", "chest pain", "fever", "evaluate for interval change")


@dataclass(frozen=True)
class Person:
    """Whom a report is about; ``None`` or NaN where nothing is recorded."""

    age: float
    sex: str | None
    race: str | None


@dataclass(frozen=True)
class Report:
    """The parts of a report, each one line; ``""`` where it has none."""

    examination: str
    indication: str
    findings: str
    impression: str


def make_report(
    codes: Mapping[str, int | None],
    severities: Mapping[str, float],
    person: Person,
    view: str,
    random: np.random.Generator,
) -> Report:
    """Write one report.

    Parameters
    ----------
    codes : mapping of str to int or None
        Recorded code of each finding.
    severities : mapping of str to float
        How severe each finding is; from .6 on it is called so.
    person : Person
        Recorded age, sex and race.
    view : {"AP", "PA"}
        Projection.
    random : numpy.random.Generator
        The report's own stream; the same numbers of it are used whatever the labels.

    Returns
    -------
    Report
        The parts.
    """
    u = random.random(8 + 2 * len(_SENTENCES))
    positive, doubted, denied, listed = [], [], [], []
    for place, (finding, (weak, strong, no, maybe, name)) in enumerate(_SENTENCES.items()):
        pick, together = float(u[8 + 2 * place]), float(u[9 + 2 * place])
        code = codes.get(finding)
        if code == POSITIVE:
            positive.append(_pick(strong if severities[finding] >= 0.6 else weak, pick))
        elif code == UNCERTAIN:
            doubted.append(_pick(maybe, pick))
        elif code == NEGATIVE and together < 0.5:
            denied.append(_pick(no, pick))
        elif code == NEGATIVE:
            listed.append(name)
    sentences = [*positive, *doubted, *denied]
    if listed:
        sentences.append(f"There is no {_or(listed)}.")
    summary = [*positive, *doubted] or ["No acute cardiopulmonary process."]
    named = _named(person, float(u[0]), float(u[1]), float(u[2]))
    if named and u[3] < 0.5:
        sentences.insert(0, f"The patient is {named}.")
    elif named:
        summary[-1] = f"{summary[-1].rstrip('.')}, in {named}."
    findings, impression = " ".join(sentences), " ".join(summary)
    if u[4] < NO_FINDINGS:
        findings = ""
    elif u[4] < NO_FINDINGS + NO_IMPRESSION:
        impression = ""
    exam = "CHEST (PORTABLE AP)" if view == "AP" else "CHEST (PA AND LAT)"
    return Report(exam, f"{_patient(person.sex)} with {_pick(_REASONS, float(u[5]))}.", findings, impression)


def full_text(report: Report) -> str:
    """The report as one text with headings, as MIMIC-CXR has it.

    Parameters
    ----------
    report : Report
        Its parts.

    Returns
    -------
    str
        Lines of a text file.
    """
    parts = [
        f"                                 FINAL REPORT\n EXAMINATION:  {report.examination}\n ",
        f"INDICATION:  ___ year old {report.indication}\n ",
        "COMPARISON:  None.\n ",
    ]
    if report.findings:
        parts.append(f"FINDINGS: \n \n {report.findings}\n ")
    if report.impression:
        parts.append(f"IMPRESSION: \n \n {report.impression}\n")
    return "\n ".join(parts)


def _named(person: Person, u_person: float, u_race: float, u_form: float) -> str:
    """The words for the patient, or nothing."""
    known_age = person.age == person.age and person.age > 0
    words = _pick(PEOPLE.get(person.race or "", ()) or ("",), u_form) if u_race < NAMES_RACE else ""
    if u_person >= NAMES_PERSON and not words:
        return ""
    if person.sex is None and not known_age:
        return ""
    noun = _patient(person.sex)
    age = f"{person.age:.0f}-year-old" if known_age else ""
    text = " ".join(part for part in (age, words, noun) if part)
    return f"{'an' if text[0] in 'aeiouA8' else 'a'} {text}"


def _patient(sex: str | None) -> str:
    return {"female": "woman", "male": "man"}.get(sex or "", "patient")


def _pick(texts: Sequence[str], u: float) -> str:
    return texts[int(u * len(texts))]


def _or(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"

"""The tables of CheXpert, its demographics sheet and CheXpert Plus, as their owner releases them.

Odd rows are those of the release: lateral views, age 0 and sex ``Unknown`` where nothing is known, names of
races that contain the name of another one, and an ethnicity that counts only where the race says nothing. The
demographics are written as a CSV file, since the released spreadsheet is not read.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from frame.cohorts.phantom.quotas import generator
from frame.cohorts.phantom.report_text import Report
from frame.cohorts.phantom.reports_of_images import reports_of_images
from frame.cohorts.phantom.table_bytes import csv_bytes, lateral_rows, spelled
from frame.cohorts.phantom.truth import ROOTS, PhantomTruth

__all__ = ["files_of"]

SOURCE: Final = "chexpert"
_FOLDER: Final = "CheXpert-v1.0-small"
#: Label columns in the order of the release, and their findings.
_NAMES: Final = (
    *("No Finding", "Enlarged Cardiomediastinum", "Cardiomegaly", "Lung Opacity", "Lung Lesion", "Edema"),
    *("Consolidation", "Pneumonia", "Atelectasis", "Pneumothorax", "Pleural Effusion", "Pleural Other"),
    *("Fracture", "Support Devices"),
)
_ANSWERS: Final = {1: "1.0", 0: "0.0", -1: "-1.0", -2: ""}
_NOT_HISPANIC: Final = "Non-Hispanic/Non-Latino"
#: Race and ethnicity as the sheet has them, by level, the usual pair first.
_RACES: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "White": (
        ("White", _NOT_HISPANIC), ("White or Caucasian", "Not Hispanic"),
        ("White, non-Hispanic", _NOT_HISPANIC), ("White, Hispanic", "Hispanic/Latino"),
    ),
    "Black": (
        ("Black or African American", _NOT_HISPANIC), ("Black, non-Hispanic", _NOT_HISPANIC),
        ("Black, Hispanic", "Hispanic/Latino"),
    ),
    "Asian": (
        ("Asian", _NOT_HISPANIC), ("Asian, non-Hispanic", _NOT_HISPANIC),
        ("Asian - Historical Conv", "Not Hispanic"),
    ),
    "Hispanic or Latino": (
        ("Other", "Hispanic/Latino"), ("Other, Hispanic", "Hispanic/Latino"),
        ("Native American, Hispanic", "Hispanic/Latino"), ("Unknown", "Hispanic/Latino"),
    ),
    "Other": (
        ("Other", _NOT_HISPANIC), ("Other, non-Hispanic", _NOT_HISPANIC),
        ("Native Hawaiian or Other Pacific Islander", _NOT_HISPANIC),
        ("Pacific Islander, non-Hispanic", _NOT_HISPANIC),
        ("American Indian or Alaska Native", "Not Hispanic"),
    ),
}  # fmt: skip
_NO_RACE: Final = (
    ("Unknown", "Unknown"),
    ("Race and Ethnicity Unknown", "Unknown"),
    ("Patient Refused", "Not Hispanic"),
)
_INSURANCES: Final = {
    "Medicare": ("Medicare",),
    "Medicaid": ("Medicaid",),
    "Private": ("Private Insurance",),
    "Other": ("Other",),
}


def files_of(truth: PhantomTruth, images: pd.DataFrame, side: int) -> dict[str, bytes]:
    """All files of the source but its images; arguments and result as of the other layouts."""
    random = generator(truth.seed, SOURCE, "sheet")
    patients = images.drop_duplicates("patient_number").reset_index(drop=True)
    pairs = spelled(patients["race_recorded"], _RACES, _NO_RACE, random)
    payers = spelled(patients["insurance_recorded"], _INSURANCES, ("Unknown", ""), random)
    said = pd.DataFrame(
        {
            "patient_id": patients["patient_id"],
            "race_text": [race for race, _ in pairs],
            "ethnicity_text": [ethnicity for _, ethnicity in pairs],
            "insurance_text": payers,
        }
    )
    views = _views(truth, images)
    released = views.merge(said, on="patient_id", how="left")
    valid = (released["released_split"] == "validation").to_numpy()
    tables = {
        f"{_FOLDER}/train.csv": _labels(released[~valid]),
        f"{_FOLDER}/valid.csv": _labels(released[valid]),
        "CHEXPERT DEMO.csv": _demographics(patients, said),
        f"{ROOTS[SOURCE]}/df_chexpert_plus_240401.csv": _plus(released),
    }
    return {name: csv_bytes(table, name) for name, table in tables.items() if len(table)}


def _views(truth: PhantomTruth, images: pd.DataFrame) -> pd.DataFrame:
    """Frontal and lateral views of all studies, with the report of the study, by patient and study."""
    reports = pd.Series(list(reports_of_images(truth, images)), index=images.index, dtype=object)
    frontal = images.assign(side="Frontal", report=reports, path=images["image_id"])
    lateral = frontal.iloc[lateral_rows(images["view"], generator(truth.seed, SOURCE, "laterals"))].copy()
    lateral["side"], lateral["view"] = "Lateral", ""
    lateral["path"] = lateral["path"].str.replace("view1_frontal", "view2_lateral")
    both = pd.concat([frontal, lateral], ignore_index=True)
    return both.sort_values(["patient_number", "image_of_patient", "path"], ignore_index=True)


def _age(views: pd.DataFrame) -> pd.Series:
    return views["age_recorded"].fillna(0).astype(int)


def _sex(views: pd.DataFrame) -> pd.Series:
    return views["sex_recorded"].map({"female": "Female", "male": "Male"}).fillna("Unknown")


def _labels(views: pd.DataFrame) -> pd.DataFrame:
    table = pd.DataFrame(
        {
            "Path": f"{_FOLDER}/" + views["path"] + ".jpg",
            "Sex": _sex(views),
            "Age": _age(views),
            "Frontal/Lateral": views["side"],
            "AP/PA": views["view"],
        }
    )
    columns = {name: _recorded(views, name) for name in _NAMES[1:]}
    positive = (pd.DataFrame(columns) == "1.0").any(axis=1)
    table["No Finding"] = np.where(positive, "", "1.0")
    for name, column in columns.items():
        table[name] = column
    return table


def _recorded(views: pd.DataFrame, name: str) -> pd.Series:
    return views[f"{name.lower().replace(' ', '_')}_recorded"].map(_ANSWERS)


def _demographics(patients: pd.DataFrame, said: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "PATIENT": patients["patient_id"],
            "GENDER": _sex(patients),
            "AGE_AT_CXR": _age(patients),
            "PRIMARY_RACE": said["race_text"],
            "ETHNICITY": said["ethnicity_text"],
        }
    )


def _plus(views: pd.DataFrame) -> pd.DataFrame:
    reports: list[Report] = list(views["report"])
    empty = ""
    return pd.DataFrame(
        {
            "path_to_image": views["path"] + ".jpg",
            "path_to_dcm": views["path"] + ".dcm",
            "frontal_lateral": views["side"],
            "ap_pa": views["view"],
            "deid_patient_id": views["patient_id"],
            "patient_report_date_order": views["image_of_patient"] + 1,
            "report": [_whole(report) for report in reports],
            "section_narrative": [report.examination for report in reports],
            "section_clinical_history": [report.indication for report in reports],
            "section_history": empty,
            "section_comparison": "None.",
            "section_technique": empty,
            "section_procedure_comments": empty,
            "section_findings": [report.findings for report in reports],
            "section_impression": [report.impression for report in reports],
            "section_end_of_impression": empty,
            "section_summary": empty,
            "section_accession_number": empty,
            "age": _age(views).astype(float),
            "sex": _sex(views),
            "race": views["race_text"],
            "ethnicity": views["ethnicity_text"],
            "interpreter_needed": "No",
            "insurance_type": views["insurance_text"],
            "recent_bmi": empty,
            "deceased": "No",
            "split": np.where(views["released_split"] == "validation", "valid", "train"),
        }
    )


def _whole(report: Report) -> str:
    parts = [f"NARRATIVE: {report.examination}", f"CLINICAL HISTORY: {report.indication}"]
    parts += [f"FINDINGS: {report.findings}"] if report.findings else []
    parts += [f"IMPRESSION: {report.impression}"] if report.impression else []
    return "  ".join(parts)

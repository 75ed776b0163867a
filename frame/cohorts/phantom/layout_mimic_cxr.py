"""The tables and reports of MIMIC-CXR-JPG and MIMIC-IV, as PhysioNet releases them.

Dates lie in a shifted future. Odd rows are those of the release: lateral views, patients absent from the
table of patients or without an admission, admissions of one patient that differ in race or insurance, the
anchor age 91 for all above 89, and many spellings of one race.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from frame.cohorts.phantom.identities import numbered, sums
from frame.cohorts.phantom.population_chest import CAPPED, OVER_89
from frame.cohorts.phantom.quotas import generator
from frame.cohorts.phantom.report_text import full_text
from frame.cohorts.phantom.reports_of_images import reports_of_images
from frame.cohorts.phantom.table_bytes import csv_bytes, lateral_rows, spelled
from frame.cohorts.phantom.truth import ROOTS, PhantomTruth
from frame.cohorts.sites.finding_codes import finding_names

__all__ = ["files_of"]

SOURCE: Final = "mimic_cxr"
_SPLITS: Final = {"train": "train", "validation": "validate", "test": "test"}
_ANSWERS: Final = {1: "1.0", 0: "0.0", -1: "-1.0", -2: ""}
#: Spellings of each level of race, the usual one first, and of a race that nobody recorded.
_RACES: Final = {
    "White": (
        "WHITE",
        "WHITE - OTHER EUROPEAN",
        "WHITE - RUSSIAN",
        "WHITE - EASTERN EUROPEAN",
        "WHITE - BRAZILIAN",
    ),
    "Black": ("BLACK/AFRICAN AMERICAN", "BLACK/CAPE VERDEAN", "BLACK/CARIBBEAN ISLAND", "BLACK/AFRICAN"),
    "Asian": (
        "ASIAN",
        "ASIAN - CHINESE",
        "ASIAN - SOUTH EAST ASIAN",
        "ASIAN - ASIAN INDIAN",
        "ASIAN - KOREAN",
    ),
    "Hispanic or Latino": (
        *("HISPANIC OR LATINO", "HISPANIC/LATINO - PUERTO RICAN", "HISPANIC/LATINO - DOMINICAN"),
        *("HISPANIC/LATINO - GUATEMALAN", "HISPANIC/LATINO - CUBAN", "HISPANIC/LATINO - SALVADORAN"),
    ),
    "Other": (
        *("OTHER", "PORTUGUESE", "SOUTH AMERICAN", "AMERICAN INDIAN/ALASKA NATIVE"),
        *("NATIVE HAWAIIAN OR OTHER PACIFIC ISLANDER", "MULTIPLE RACE/ETHNICITY"),
    ),
}
_NO_RACE: Final = ("UNKNOWN", "UNABLE TO OBTAIN", "PATIENT DECLINED TO ANSWER")
_INSURANCES: Final = {
    "Medicare": ("Medicare",),
    "Medicaid": ("Medicaid",),
    "Private": ("Private",),
    "Other": ("Other", "No charge"),
}
#: Shares of admitted patients with a first admission under another race, and a last one with another payer.
_OTHER_RACE: Final = 0.05
_OTHER_PAYER: Final = 0.05


def files_of(truth: PhantomTruth, images: pd.DataFrame, side: int) -> dict[str, bytes]:
    """All files of the source but its images.

    Parameters
    ----------
    truth : PhantomTruth
        The world.
    images : pandas.DataFrame
        The population of the source.
    side : int
        Pixels a side of the images.

    Returns
    -------
    dict of str to bytes
        Path in the folder of the source -> content.
    """
    years = generator(truth.seed, SOURCE, "years").integers(
        2112, 2198, int(images["patient_number"].max()) + 1
    )
    year = years[images["patient_number"]]
    tables = {
        "mimic-cxr-2.0.0-metadata.csv.gz": _metadata(truth, images, side, year),
        "mimic-cxr-2.0.0-chexpert.csv.gz": _labels(images),
        "mimic-cxr-2.0.0-split.csv.gz": _split(truth, images),
    }
    patients = images.drop_duplicates("patient_number").reset_index(drop=True)
    first_year = years[patients["patient_number"]]
    tables[f"{ROOTS[SOURCE]}/hosp/patients.csv.gz"] = _patients(patients, first_year)
    tables[f"{ROOTS[SOURCE]}/hosp/admissions.csv.gz"] = _admissions(truth, patients, first_year)
    files = {name: csv_bytes(table, name) for name, table in tables.items()}
    folders = "mimic-cxr-reports/" + images["file"].str.rsplit("/", n=2).str[0] + "/s" + images["study_id"]
    for path, report in zip(folders + ".txt", reports_of_images(truth, images), strict=True):
        files[str(path)] = full_text(report).encode("utf-8")
    return files


def _days(images: pd.DataFrame) -> pd.Series:
    """Month and day of each study, one study of a patient after the other."""
    return 215 + 100 * images["image_of_patient"]


def _metadata(truth: PhantomTruth, images: pd.DataFrame, side: int, year: np.ndarray) -> pd.DataFrame:
    frontal = _view_rows(images, images["image_id"].to_numpy(), side, year)
    at = lateral_rows(images["view"], generator(truth.seed, SOURCE, "laterals"))
    some = images.iloc[at].reset_index(drop=True)
    lateral = _view_rows(some, sums(SOURCE, "lateral", some["image_number"], dashes=True), side, year[at])
    lateral["ViewPosition"] = np.where(np.arange(len(some)) % 5 == 0, "LL", "LATERAL")
    lateral["ViewCodeSequence_CodeMeaning"] = "lateral"
    return pd.concat([frontal, lateral], ignore_index=True).sort_values(
        ["subject_id", "study_id", "dicom_id"], ignore_index=True
    )


def _view_rows(images: pd.DataFrame, names: np.ndarray, side: int, year: np.ndarray) -> pd.DataFrame:
    portable = images["view"] == "AP"
    exam = np.where(portable, "CHEST (PORTABLE AP)", "CHEST (PA AND LAT)")
    return pd.DataFrame(
        {
            "dicom_id": names,
            "subject_id": images["patient_id"],
            "study_id": images["study_id"],
            "PerformedProcedureStepDescription": exam,
            "ViewPosition": images["view"],
            "Rows": side,
            "Columns": side,
            "StudyDate": year * 10_000 + _days(images),
            "StudyTime": "101500.123",
            "ProcedureCodeSequence_CodeMeaning": exam,
            "ViewCodeSequence_CodeMeaning": np.where(portable, "antero-posterior", "postero-anterior"),
            "PatientOrientationCodeSequence_CodeMeaning": "Erect",
        }
    )


def _labels(images: pd.DataFrame) -> pd.DataFrame:
    table = images[["patient_id", "study_id"]].rename(columns={"patient_id": "subject_id"})
    positive = np.zeros(len(images), dtype=bool)
    for name, findings in sorted(finding_names(SOURCE).items()):
        table[name] = ""
        for finding in findings:
            table[name] = images[f"{finding}_recorded"].map(_ANSWERS)
            positive |= (table[name] == "1.0").to_numpy()
    table["No Finding"] = np.where(positive, "", "1.0")
    return table.sort_values(["subject_id", "study_id"], ignore_index=True)


def _split(truth: PhantomTruth, images: pd.DataFrame) -> pd.DataFrame:
    at = lateral_rows(images["view"], generator(truth.seed, SOURCE, "laterals"))
    rows = pd.concat([images, images.iloc[at]], ignore_index=True)
    lateral = sums(SOURCE, "lateral", images["image_number"].iloc[at], dashes=True)
    return pd.DataFrame(
        {
            "dicom_id": [*images["image_id"], *lateral],
            "study_id": rows["study_id"],
            "subject_id": rows["patient_id"],
            "split": rows["released_split"].map(_SPLITS),
        }
    )


def _patients(patients: pd.DataFrame, year: np.ndarray) -> pd.DataFrame:
    anchor = (patients["age"] - patients["anchor_offset"]).astype(int)
    table = pd.DataFrame(
        {
            "subject_id": patients["patient_id"],
            "gender": patients["sex"].map({"female": "F", "male": "M"}),
            "anchor_age": anchor.where(anchor < CAPPED, OVER_89),
            "anchor_year": year - patients["anchor_offset"],
            "anchor_year_group": np.array(["2011 - 2013", "2014 - 2016", "2017 - 2019"])[year % 3],
            "dod": "",
        }
    )
    return table[patients["listed"].to_numpy()]


def _admissions(truth: PhantomTruth, patients: pd.DataFrame, year: np.ndarray) -> pd.DataFrame:
    """Each patient's admission of the year, for some also one before and one after it."""
    random = generator(truth.seed, SOURCE, "admissions")
    texts = spelled(patients["race_recorded"], _RACES, _NO_RACE, random)
    payers = spelled(patients["insurance_recorded"], _INSURANCES, ("",), random)
    u = random.random((2, len(patients)))
    rows = []
    for k, row in enumerate(patients.itertuples()):
        if not row.admitted:
            continue
        known = isinstance(row.race_recorded, str)
        if known and u[0, k] < _OTHER_RACE:
            other = _RACES["Black" if row.race_recorded == "White" else "White"][0]
            rows.append((row.patient_id, year[k] - 2, payers[k], other))
            rows.append((row.patient_id, year[k] - 1, payers[k], texts[k]))
        rows.append((row.patient_id, year[k], payers[k], texts[k]))
        if u[1, k] < _OTHER_PAYER:
            later = "Private" if payers[k] != "Private" else "Medicare"
            rows.append((row.patient_id, year[k] + 1, later, texts[k]))
    subject, when, payer, race = (list(column) for column in zip(*rows, strict=True))
    return pd.DataFrame(
        {
            "subject_id": subject,
            "hadm_id": numbered(range(len(rows)), "9{:07d}"),
            "admittime": [f"{one}-01-10 10:00:00" for one in when],
            "dischtime": [f"{one}-01-20 12:00:00" for one in when],
            "deathtime": "",
            "admission_type": "EW EMER.",
            "admit_provider_id": "PHANTOM",
            "admission_location": "EMERGENCY ROOM",
            "discharge_location": "HOME",
            "insurance": payer,
            "language": "English",
            "marital_status": "",
            "race": race,
            "edregtime": "",
            "edouttime": "",
            "hospital_expire_flag": 0,
        }
    )

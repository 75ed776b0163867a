"""MIMIC-CXR-JPG (2.0 and 2.1), joined to MIMIC-IV for age, sex, race and insurance.

Frontal views are those recorded as AP or PA (also AP AXIAL, AP LLD and the like); lateral and unrecorded ones
are left out. Labels are those of the CheXpert labeller, one row per study. MIMIC-IV shifts the dates of each
patient; a patient has an age in an anchor year, so the age at a study is ``anchor_age + study year -
anchor_year``. An anchor age of 91 stands for any age over 89 and stays 91.

Race and insurance stand in the admissions, and one patient's admissions may differ. The race is the level
most often recorded, the later one of two recorded equally often; the insurance is that of the last admission
that began on or before the day of the study, else that of the first admission.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from frame.cohorts import harmonise
from frame.cohorts.report_sections import sections_of_text
from frame.cohorts.sites.contract import SiteFiles, SiteRows
from frame.cohorts.sites.finding_codes import codes_from_answers, finding_names
from frame.cohorts.sites.released_tables import (
    Columns,
    assembled,
    check_filled,
    check_linked,
    check_unique,
    counted,
    first_kept,
    looked_up,
    needed_path,
    only_frontal,
    read_columns,
    strange_cells,
    tallied,
    whole_numbers,
)
from frame.errors import InputError

__all__ = ["read_reports", "read_rows"]

SOURCE: Final = "mimic_cxr"
#: The anchor age that stands for all ages over 89.
OVER_89: Final = 91
SPLITS: Final = {"train": "train", "validate": "validation", "test": "test"}


def read_rows(files: SiteFiles) -> SiteRows:
    """Read the frontal images of MIMIC-CXR-JPG.

    Parameters
    ----------
    files : SiteFiles
        ``metadata``, ``labels``, ``split`` of MIMIC-CXR-JPG; ``patients``, ``admissions`` of MIMIC-IV.

    Returns
    -------
    SiteRows
        ``file`` is where the release keeps the image (``files/p10/p<subject>/s<study>/<image>.jpg``);
        whether it is there is not asked. A study without a row of labels has only blank labels.

    Raises
    ------
    frame.InputError
        If a table is missing or not as released, or two tables disagree.
    """
    path = needed_path(files, "metadata")
    images = read_columns(path, ("dicom_id", "subject_id", "study_id", "ViewPosition", "StudyDate"))
    check_unique(images, ["dicom_id"], path.name)
    check_filled(images, ["subject_id", "study_id"], path.name)
    images, views, excluded, view_tally = only_frontal(images, "ViewPosition")
    days = _days(images["StudyDate"], path.name)

    labels, label_tally = _labels(files, images)
    splits, split_tally = _splits(files, images)
    sex, age, person_tally = _persons(files, images, days)
    race, insurance, admission_tally = _admissions(files, images, days)

    subject, study = images["subject_id"], images["study_id"]
    folder = "files/p" + subject.str[:2] + "/p" + subject + "/s" + study + "/"
    columns: Columns = {
        "image_id": images["dicom_id"],
        "patient_id": subject,
        "subject_id": subject,
        "subject_kind": "patient",
        "study_id": study,
        "file": folder + images["dicom_id"] + ".jpg" if files.images else np.nan,
        "released_split": splits,
        "age": age,
        "sex": sex,
        "race_recorded": race,
        "insurance_recorded": insurance,
        "view": views,
    }
    tallies = [view_tally, person_tally, admission_tally, split_tally, label_tally]
    return assembled(columns, labels, excluded, tallies)


def read_reports(files: SiteFiles, table: pd.DataFrame) -> pd.DataFrame:
    """Findings and impression of the report of each image's study.

    Parameters
    ----------
    files : SiteFiles
        ``reports_folder``: the folder ``files`` of MIMIC-CXR, with ``p10/p<subject>/s<study>.txt``.
    table : pandas.DataFrame
        ``image_id``, ``patient_id`` and ``study_id``, with or without the name of the source in front.

    Returns
    -------
    pandas.DataFrame of str
        ``image_id`` as given, ``findings``, ``impression``; ``""`` where a report or a section is not there.

    Raises
    ------
    frame.InputError
        If there is no folder of reports.
    """
    folder = needed_path(files, "reports_folder")
    studies = pd.DataFrame(
        {
            "patient": table["patient_id"].str.removeprefix(f"{SOURCE}:").to_numpy(),
            "study": table["study_id"].str.removeprefix(f"{SOURCE}:").to_numpy(),
        }
    )
    at, distinct = pd.factorize(pd.MultiIndex.from_frame(studies))
    sections = [
        _sections(folder / f"p{patient[:2]}" / f"p{patient}" / f"s{study}.txt") for patient, study in distinct
    ]
    found = pd.DataFrame(sections, columns=["findings", "impression"], dtype="str").iloc[at]
    found.insert(0, "image_id", table["image_id"].to_numpy())
    return found.reset_index(drop=True)


def _sections(path: Path) -> tuple[str, str]:
    try:
        return sections_of_text(path.read_text(encoding="utf-8", errors="replace"))
    except FileNotFoundError:
        return "", ""
    except OSError as problem:
        reason = (problem.strerror or "it cannot be read").lower()
        raise InputError(f"A report of {SOURCE} cannot be read ({reason}).") from None


def _days(dates: pd.Series, name: str) -> pd.Series:
    """Dates written as 20150131 or 2015-01-31 (with or without a time), as the whole number 20150131."""
    digits = dates.str[:10].str.replace("-", "", regex=False).str[:8]
    wrong = ~digits.str.fullmatch(r"\d{4}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])").astype(bool)
    if wrong.any():
        raise InputError(
            f"{name}: {int(wrong.sum()):,} of {len(dates):,} dates are no dates such as 21500131; "
            "download the table again."
        )
    return digits.astype(np.int64)


def _labels(files: SiteFiles, images: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    path = needed_path(files, "labels")
    names = [name for name, findings in finding_names(SOURCE).items() if findings]
    labels = read_columns(path, ("subject_id", "study_id", *names))
    check_unique(labels, ["study_id"], path.name)
    rows = looked_up(images["study_id"], labels, "study_id")
    check_linked(rows["found"], path.name, "study_id")
    other = int((rows["found"] & (rows["subject_id"] != images["subject_id"])).sum())
    if other:
        raise InputError(
            f"{path.name} gives {other:,} images to another patient than the table of images does."
        )
    coded = codes_from_answers(SOURCE, rows[names])
    unlabelled = counted("label", "study without a row of labels", "blank", int((~rows["found"]).sum()))
    return coded.codes, pd.concat([coded.tally, unlabelled], ignore_index=True)


def _splits(files: SiteFiles, images: pd.DataFrame) -> tuple[pd.Series, pd.DataFrame]:
    path = needed_path(files, "split")
    table = read_columns(path, ("dicom_id", "split"))
    check_unique(table, ["dicom_id"], path.name)
    rows = looked_up(images["dicom_id"], table, "dicom_id")
    check_linked(rows["found"], path.name, "dicom_id")
    splits = rows["split"].map(SPLITS)
    strange = rows["found"] & splits.isna()
    if strange.any():
        raise InputError(
            f"{path.name} holds {strange_cells(rows['split'][strange])} in column split; allowed is "
            f"{', '.join(SPLITS)}."
        )
    return splits, tallied("released_split", rows["split"].fillna("not in the table of splits"), splits)


def _persons(
    files: SiteFiles, images: pd.DataFrame, days: pd.Series
) -> tuple[pd.Series, pd.Series, pd.DataFrame]:
    """Sex and age at the study."""
    path = needed_path(files, "patients")
    table = read_columns(path, ("subject_id", "gender", "anchor_age", "anchor_year"))
    check_unique(table, ["subject_id"], path.name)
    rows = looked_up(images["subject_id"], table, "subject_id")
    check_linked(rows["found"], path.name, "subject_id")
    sex = harmonise.sex(rows["gender"])
    anchor_age = whole_numbers(rows["anchor_age"], "anchor_age", path.name)
    years = days // 10_000 - whole_numbers(rows["anchor_year"], "anchor_year", path.name)
    capped = anchor_age == OVER_89
    age = harmonise.ages((anchor_age + years).where(~capped, OVER_89))
    tally = pd.concat(
        [
            sex.tally,
            age.tally.assign(recorded="anchor age and years since: " + age.tally["recorded"]),
            counted("age", "anchor age 91, which stands for over 89", "91 years", int(capped.sum())),
            counted("patient", "not in the table of patients", np.nan, int((~rows["found"]).sum())),
        ],
        ignore_index=True,
    )
    return sex.values, age.values, tally


def _admissions(
    files: SiteFiles, images: pd.DataFrame, days: pd.Series
) -> tuple[pd.Series, pd.Series, pd.DataFrame]:
    """Race of the patient, and insurance at the study."""
    path = needed_path(files, "admissions")
    table = read_columns(path, ("subject_id", "hadm_id", "admittime", "insurance", "race"))
    check_unique(table, ["hadm_id"], path.name)
    check_linked(_among(images["subject_id"], table["subject_id"]), path.name, "subject_id")
    table = table[_among(table["subject_id"], images["subject_id"])]
    table = table.sort_values(["admittime", "hadm_id"], ignore_index=True)
    table["day"] = _days(table["admittime"], path.name)

    levels = harmonise.race(table["race"]).values
    n_levels = levels.groupby(table["subject_id"]).nunique()
    differing = n_levels.index[n_levels > 1]
    kept = first_kept(levels, table["subject_id"])
    texts = pd.Series(table["race"].to_numpy()[kept.to_numpy()], index=kept.index, dtype="str")
    race = harmonise.race(images["subject_id"].map(texts))
    insurance = harmonise.insurance(_insurance_texts(table, images["subject_id"], days))
    admitted = _among(images["subject_id"], table["subject_id"])
    tally = pd.concat(
        [
            race.tally,
            counted(
                "race",
                f"admissions that differ ({len(differing):,} patients)",
                "the level most often recorded",
                int(_among(images["subject_id"], differing).sum()),
            ),
            insurance.tally,
            counted("patient", "without an admission", np.nan, int((~admitted).sum())),
        ],
        ignore_index=True,
    )
    return race.values, insurance.values, tally


def _among(ids: pd.Series, others: pd.Series | pd.Index) -> np.ndarray:
    """Whether each id is one of the others; ``isin`` would turn all of them into Python texts."""
    return np.asarray(pd.Index(others.unique()).get_indexer(pd.Index(ids)) >= 0)


def _insurance_texts(admissions: pd.DataFrame, subjects: pd.Series, days: pd.Series) -> pd.Series:
    """Insurance of the last admission up to each day, else of the first; missing without any."""
    at, known = pd.factorize(subjects)
    of_admission = pd.Index(known).get_indexer(pd.Index(admissions["subject_id"]))
    right = pd.DataFrame(
        {"subject": of_admission, "day": admissions["day"].to_numpy(), "row": np.arange(len(admissions))}
    ).sort_values("day", kind="stable")
    left = pd.DataFrame({"subject": at, "day": days.to_numpy(), "image": np.arange(len(at))}).sort_values(
        "day"
    )
    joined = pd.merge_asof(left, right, on="day", by="subject").set_index("image")["row"].sort_index()
    earliest = right.drop_duplicates("subject").set_index("subject")["row"]
    rows = joined.fillna(pd.Series(at).map(earliest)).to_numpy(dtype=np.float64)
    texts = admissions["insurance"].to_numpy(dtype=object)
    found = np.full(len(at), np.nan, dtype=object)
    there = ~np.isnan(rows)
    found[there] = texts[rows[there].astype(np.int64)]
    return pd.Series(found, index=subjects.index, dtype="str")

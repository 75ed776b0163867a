"""ISIC 2019, training set: 25,331 dermoscopic photographs with one of eight diagnoses.

Photographs of one lesion share a ``lesion_id``, which is the unit of the split; a photograph without one is
its own subject. Patients are not identified. Ages are rounded to five years, so that 0 is an age: the 54
photographs of age 0 are naevi, vascular lesions and benign keratoses, none of them malignant, and their
number continues that of the ages 5 and 10.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from frame.cohorts.harmonise import ages, sex
from frame.cohorts.labels import NEGATIVE, POSITIVE
from frame.cohorts.sites.contract import SiteFiles, SiteRows
from frame.cohorts.sites.photographs import image_files, photograph_rows
from frame.cohorts.sites.released_tables import check_unique, counted, needed_path, read_columns
from frame.errors import InputError

__all__ = ["BENIGN", "MALIGNANT", "UNKNOWN", "read_rows"]

#: Diagnoses that count as malignant, and as benign (the paper's Methods), by column of the released table.
MALIGNANT: Final = {
    "MEL": "melanoma",
    "BCC": "basal cell carcinoma",
    "AK": "actinic keratosis",
    "SCC": "squamous cell carcinoma",
}
BENIGN: Final = {
    "NV": "melanocytic nevus",
    "BKL": "benign keratosis",
    "DF": "dermatofibroma",
    "VASC": "vascular lesion",
}
#: None of the eight; no photograph of the training set has it.
UNKNOWN: Final = "UNK"

IMAGES: Final = ("**/*.jpg",)


def read_rows(files: SiteFiles) -> SiteRows:
    """Read the photographs of the training set.

    Parameters
    ----------
    files : SiteFiles
        With ``truth`` and ``metadata``.

    Returns
    -------
    SiteRows
        Every photograph; ``malignant`` is missing for the diagnosis UNK.

    Raises
    ------
    frame.InputError
        If a table is damaged, the two tables name different photographs, or a photograph has not exactly one
        diagnosis.
    """
    classes = [*MALIGNANT, *BENIGN, UNKNOWN]
    truth_path, metadata_path = needed_path(files, "truth"), needed_path(files, "metadata")
    truth = read_columns(truth_path, ["image", *classes])
    metadata = read_columns(metadata_path, ["image", "age_approx", "lesion_id", "sex"])
    check_unique(truth, ["image"], truth_path.name)
    check_unique(metadata, ["image"], metadata_path.name)
    _check_same(truth["image"], metadata["image"], truth_path.name, metadata_path.name)
    table = metadata.merge(truth, on="image", validate="one_to_one")

    diagnosis = _diagnosis(table[classes], truth_path.name)
    codes = diagnosis.map({**dict.fromkeys(MALIGNANT, POSITIVE), **dict.fromkeys(BENIGN, NEGATIVE)})
    lesion = table["lesion_id"].str.strip()
    is_lesion = lesion != ""
    subject = lesion.where(is_lesion, table["image"])
    if lesion[is_lesion].isin(table["image"]).any():
        raise InputError(
            f"{metadata_path.name}: a lesion has the id of an image; subjects cannot be told apart."
        )
    years, sexes = ages(table["age_approx"]), sex(table["sex"])
    return photograph_rows(
        "skin",
        {
            "image_id": table["image"],
            "subject_id": subject,
            "subject_kind": is_lesion.map({True: "lesion", False: "image"}),
            "file": image_files(files, table["image"] + ".jpg", IMAGES),
            "age": years.values,
            "sex": sexes.values,
        },
        codes.astype("Int8"),
        {},
        [
            years.tally,
            sexes.tally,
            counted("subject_id", "lesion id", "lesion", int(is_lesion.sum())),
            counted("subject_id", "(blank)", "image", int((~is_lesion).sum())),
            *(counted("malignant", code, _meaning(code), int((diagnosis == code).sum())) for code in classes),
        ],
    )


def _meaning(code: str) -> str | float:
    return "positive" if code in MALIGNANT else "negative" if code in BENIGN else np.nan


def _check_same(truth: pd.Series, metadata: pd.Series, truth_name: str, metadata_name: str) -> None:
    only_truth = int((~truth.isin(metadata)).sum())
    only_metadata = int((~metadata.isin(truth)).sum())
    if only_truth or only_metadata:
        raise InputError(
            f"{only_truth:,} images of {truth_name} are not in {metadata_name} and {only_metadata:,} "
            "the other way round; the two tables belong together: download both again."
        )


def _diagnosis(one_hot: pd.DataFrame, name: str) -> pd.Series:
    """The column that holds the 1 of each row."""
    numbers = one_hot.apply(lambda column: pd.to_numeric(column, errors="coerce"))
    marks = numbers.to_numpy(dtype=np.float64)
    broken = int((~(np.isin(marks, (0, 1)).all(axis=1) & (marks.sum(axis=1) == 1))).sum())
    if broken:
        raise InputError(
            f"{name}: {broken:,} of {len(marks):,} images have not exactly one diagnosis; "
            "a diagnosis is not guessed: download the table again."
        )
    return pd.Series(np.array(one_hot.columns, dtype=object)[marks.argmax(axis=1)], index=one_hot.index)

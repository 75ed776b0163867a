"""CheXpert (original or small), with the demographics sheet and CheXpert Plus where they are there.

The images are those that the release marks as frontal, from its training and validation tables. Their view
is AP or PA; the few frontal ones marked as a lateral projection have an unknown view. An age of 0 stands for
unknown.

Race is recorded twice, in the demographics sheet (one row per patient, with ethnicity) and in CheXpert Plus
(one row per image). The sheet is used where it is given, otherwise CheXpert Plus. Insurance and reports are
only in CheXpert Plus.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from frame.cohorts import harmonise
from frame.cohorts.report_sections import sections_of_columns
from frame.cohorts.sites.contract import SiteFiles, SiteRows
from frame.cohorts.sites.finding_codes import codes_from_answers, finding_names
from frame.cohorts.sites.released_tables import (
    Columns,
    assembled,
    check_linked,
    check_unique,
    counted,
    first_kept,
    left_out,
    looked_up,
    needed_path,
    read_columns,
)
from frame.errors import InputError

__all__ = ["read_reports", "read_rows"]

SOURCE: Final = "chexpert"
#: Folder of the release, in front of the path of an image in the tables, and the parts of that path.
_PATH: Final = (
    r"^(?:(?P<folder>[^/]+)/)?"
    r"(?P<image>(?:train|valid|test)/(?P<patient>patient\d+)/(?P<study>study\d+)/view\d+_\w+)(?P<suffix>\.\w+)$"
)
_SPREADSHEETS: Final = (".xlsx", ".xls")


def read_rows(files: SiteFiles) -> SiteRows:
    """Read the frontal images of CheXpert.

    Parameters
    ----------
    files : SiteFiles
        ``train``; optionally ``valid``, ``demographics`` (a CSV file) and ``plus``.

    Returns
    -------
    SiteRows
        ``image_id`` is the path in the release without the folder in front and without the suffix. ``file``
        is where the image should lie; whether it is there is not asked.

    Raises
    ------
    frame.InputError
        If a table is missing or not as released, or the demographics sheet is a spreadsheet file.
    """
    images, excluded = _frontal(files)
    names = [name for name, findings in finding_names(SOURCE).items() if findings]
    coded = codes_from_answers(SOURCE, images[names])
    view = harmonise.view(images["AP/PA"])
    sex = harmonise.sex(images["Sex"])
    age = harmonise.ages(images["Age"], zero_is_unknown=True)
    plus = _plus(files, images)
    race, race_tally = _race(files, images, plus)
    insurance = harmonise.insurance(plus["insurance_type"])
    columns: Columns = {
        "image_id": images["image"],
        "patient_id": images["patient"],
        "subject_id": images["patient"],
        "subject_kind": "patient",
        "study_id": images["patient"] + "/" + images["study"],
        "file": _image_files(files, images) if files.images else np.nan,
        "released_split": images["split"],
        "age": age.values,
        "sex": sex.values,
        "race_recorded": race,
        "insurance_recorded": insurance.values,
        "view": view.values.replace("lateral", "unknown"),
    }
    unlinked = counted("image", "not in CheXpert Plus", np.nan, int((~plus["found"]).sum()))
    tallies = [
        view.tally.assign(value=view.tally["value"].replace("lateral", "unknown")),
        sex.tally,
        age.tally,
        race_tally,
        insurance.tally,
        *([unlinked] if "plus" in files.paths else []),
        coded.tally,
    ]
    return assembled(columns, coded.codes, excluded, tallies)


def read_reports(files: SiteFiles, table: pd.DataFrame) -> pd.DataFrame:
    """Findings and impression of each image's report, from CheXpert Plus.

    Parameters
    ----------
    files : SiteFiles
        ``plus``.
    table : pandas.DataFrame
        ``image_id``, with or without the name of the source in front.

    Returns
    -------
    pandas.DataFrame of str
        ``image_id`` as given, ``findings``, ``impression``; ``""`` where a report or a section is not there.

    Raises
    ------
    frame.InputError
        If CheXpert Plus is not there or not as released.
    """
    plus = _read_plus(files, ("section_findings", "section_impression"))
    rows = looked_up(table["image_id"].str.removeprefix(f"{SOURCE}:"), plus, "image")
    found = sections_of_columns(rows["section_findings"], rows["section_impression"])
    found.insert(0, "image_id", table["image_id"].to_numpy())
    return found.reset_index(drop=True)


def _frontal(files: SiteFiles) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Frontal images of both tables, with the parts of their paths and the released split."""
    names = [name for name, findings in finding_names(SOURCE).items() if findings]
    tables = []
    for key, split in (("train", "train"), ("valid", "validation")):
        if key == "train" or key in files.paths:
            path = needed_path(files, key)
            table = read_columns(path, ("Path", "Sex", "Age", "Frontal/Lateral", "AP/PA", *names))
            tables.append(table.assign(split=split))
    images = pd.concat(tables, ignore_index=True)
    parts = _parts(images["Path"], files.paths["train"].name)
    check_unique(parts, ["image"], files.paths["train"].name)
    images = pd.concat([images.drop(columns="Path"), parts], axis=1)
    side = images["Frontal/Lateral"]
    frontal = side == "Frontal"
    reasons = side[~frontal].map(
        lambda text: "lateral view" if text == "Lateral" else "neither frontal nor lateral"
    )
    excluded = left_out(reasons)
    if not frontal.any():
        raise InputError(f"No image of {SOURCE} is marked Frontal, of {len(images):,}; one is needed.")
    return images[frontal].reset_index(drop=True), excluded


def _parts(paths: pd.Series, name: str) -> pd.DataFrame:
    parts = paths.str.extract(_PATH)
    strange = int(parts["image"].isna().sum())
    if strange:
        raise InputError(
            f"{name}: {strange:,} of {len(paths):,} image paths are not like "
            "CheXpert-v1.0/train/patient<n>/study<n>/view<n>_frontal.jpg; the table must be as released."
        )
    return parts


def _image_files(files: SiteFiles, images: pd.DataFrame) -> pd.Series:
    """Where each image should lie: below the folder named in the table, or beside the table."""
    root, table = files.root, files.paths["train"]
    named = images["folder"].fillna("")
    folder = named.mode().iloc[0]
    if root is None or not (folder and (root / folder).is_dir()):
        beside = (
            table.parent.relative_to(root).as_posix() if root is not None and root in table.parents else "."
        )
        folder = "" if beside == "." else beside
    return (f"{folder}/" if folder else "") + images["image"] + images["suffix"]


def _read_plus(files: SiteFiles, columns: tuple[str, ...]) -> pd.DataFrame:
    """Columns of CheXpert Plus, with the image's id as in the tables of CheXpert."""
    path = needed_path(files, "plus")
    plus = read_columns(path, ("path_to_image", *columns))
    plus["image"] = _parts(plus.pop("path_to_image"), path.name)["image"]
    check_unique(plus, ["image"], path.name)
    return plus


def _plus(files: SiteFiles, images: pd.DataFrame) -> pd.DataFrame:
    """Race, ethnicity and insurance in CheXpert Plus; missing where it is not there."""
    columns = ("race", "ethnicity", "insurance_type")
    if "plus" in files.paths:
        rows = looked_up(images["image"], _read_plus(files, columns), "image")
        check_linked(rows["found"], files.paths["plus"].name, "path_to_image")
        return rows
    nothing = pd.DataFrame(index=images.index, columns=list(columns), dtype="str")
    return nothing.assign(found=False)


def _race(files: SiteFiles, images: pd.DataFrame, plus: pd.DataFrame) -> tuple[pd.Series, pd.DataFrame]:
    """Race from the demographics sheet, or else from CheXpert Plus."""
    if "demographics" not in files.paths:
        found = harmonise.race(plus["race"], plus["ethnicity"])
        return found.values, found.tally
    path = files.paths["demographics"]
    if path.suffix.lower() in _SPREADSHEETS:
        raise InputError(
            f"{path.name} is a spreadsheet, which is not read; save it as CSV under the name "
            f"{path.stem}.csv (in a spreadsheet program, or with pandas.read_excel and openpyxl) and take "
            "the spreadsheet away."
        )
    sheet = read_columns(path, ("PATIENT", "PRIMARY_RACE", "ETHNICITY"))
    levels = harmonise.race(sheet["PRIMARY_RACE"], sheet["ETHNICITY"]).values
    n_levels = levels.groupby(sheet["PATIENT"]).nunique()
    differing = n_levels.index[n_levels > 1]
    kept = sheet.iloc[first_kept(levels, sheet["PATIENT"]).to_numpy()]
    rows = looked_up(images["patient"], kept, "PATIENT")
    check_linked(rows["found"], path.name, "PATIENT")
    found = harmonise.race(rows["PRIMARY_RACE"], rows["ETHNICITY"])
    tally = pd.concat(
        [
            found.tally,
            counted(
                "race",
                f"rows of the demographics sheet that differ ({len(differing):,} patients)",
                "the level most often recorded",
                int(images["patient"].isin(differing).sum()),
            ),
            counted("patient", "not in the demographics sheet", np.nan, int((~rows["found"]).sum())),
        ],
        ignore_index=True,
    )
    return found.values, tally

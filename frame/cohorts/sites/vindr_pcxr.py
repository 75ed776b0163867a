"""VinDr-PCXR: 9,125 radiographs of children, each labelled by one radiologist.

The image labels are diagnoses. Of the 13 findings only pneumonia is among them (the release spells one kind
of it Brocho-pneumonia); the other findings are missing. The release has no patient: each image stands for
itself. No view is recorded. Sex and age stand only in the DICOM files; ages are also in months and days.
"""

from __future__ import annotations

from typing import Final

import pandas as pd

from frame.cohorts import harmonise
from frame.cohorts.sites.contract import SiteFiles, SiteRows
from frame.cohorts.sites.dicom_tags import image_files, sex_and_age_texts
from frame.cohorts.sites.finding_codes import codes_of_findings, label_tally, marks_by_finding, marks_by_name
from frame.cohorts.sites.released_tables import (
    Columns,
    assembled,
    check_unique,
    left_out,
    needed_path,
    read_columns,
)

__all__ = ["read_rows"]

SOURCE: Final = "vindr_pcxr"
#: Columns of the label tables that are no label; the release writes them ``rad_ID`` or ``rad_id``.
_NO_LABEL: Final = ("image_id", "rad_id")


def read_rows(files: SiteFiles) -> SiteRows:
    """Read the images of VinDr-PCXR.

    Parameters
    ----------
    files : SiteFiles
        ``train_labels``; optionally ``test_labels`` and ``tags``.

    Returns
    -------
    SiteRows
        ``subject_id`` is the image itself. ``file`` is missing where no PNG or DICOM file of that name lies
        in the folders ``train`` and ``test``; PNG is preferred.

    Raises
    ------
    frame.InputError
        If a table is not as released, or an image is in both.
    """
    tables = []
    for key, split in (("train_labels", "train"), ("test_labels", "test")):
        if key == "train_labels" or key in files.paths:
            path = needed_path(files, key)
            table = read_columns(path, ("image_id",), others=True)
            check_unique(table, ["image_id"], path.name)
            labels = table[[column for column in table.columns if column.lower() not in _NO_LABEL]]
            tables.append((table["image_id"], marks_by_name(SOURCE, labels), split))
    image_ids = pd.concat([ids for ids, _, _ in tables], ignore_index=True)
    check_unique(image_ids.to_frame(), ["image_id"], "The training and test labels together")
    codes = pd.concat(
        [codes_of_findings(marks_by_finding(SOURCE, marks)) for _, marks, _ in tables], ignore_index=True
    )
    texts, untagged = sex_and_age_texts(files, image_ids)
    sex = harmonise.sex(texts["PatientSex"])
    age = harmonise.ages(texts["PatientAge"])
    columns: Columns = {
        "image_id": image_ids,
        "subject_id": image_ids,
        "subject_kind": "image",
        "file": image_files(files, image_ids),
        "released_split": pd.concat(
            [pd.Series(split, index=ids.index) for ids, _, split in tables], ignore_index=True
        ),
        "age": age.values,
        "sex": sex.values,
        "view": "unknown",
    }
    by_name = pd.concat([marks.sum() for _, marks, _ in tables]).groupby(level=0).sum()
    counts = {str(name): int(count) for name, count in by_name.items()}
    tallies = [sex.tally, age.tally, untagged, label_tally(SOURCE, counts)]
    return assembled(columns, codes, left_out(pd.Series(dtype="str")), tallies)

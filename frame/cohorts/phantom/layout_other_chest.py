"""The tables of ChestX-ray14, PadChest, VinDr-CXR and VinDr-PCXR, as their owners release them.

Odd rows are those of the releases: lists without an end of their last line, labels as the text of a list with
blanks around names, projections that are not frontal, reports that do not describe their image, readers who
disagree, and ages in tags that cannot be.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd

from frame.cohorts.phantom.identities import long_numbers, numbered
from frame.cohorts.phantom.quotas import generator, one_of
from frame.cohorts.phantom.table_bytes import csv_bytes, lateral_rows
from frame.cohorts.phantom.truth import PhantomTruth
from frame.cohorts.schema import FINDINGS
from frame.cohorts.sites.finding_codes import finding_names

__all__ = ["nih_cxr14_files", "padchest_files", "vindr_cxr_files", "vindr_pcxr_files"]

#: Names in a mined label that count for no finding, and the finding that is then drawn.
_NIH_OTHERS: Final = {"lung_opacity": "Infiltration"}
#: PadChest's names of a finding: those of the table of names, the usual ones first.
_PADCHEST_USUAL: Final = {
    "edema": "pulmonary edema",
    "lung_lesion": "nodule",
    "fracture": "rib fracture",
    "support_devices": "central venous catheter",
    "pleural_other": "pleural thickening",
    "pleural_effusion": "pleural effusion",
    "pneumothorax": "pneumothorax",
}
_VINDR_TRAIN: Final = (
    *("Aortic enlargement", "Atelectasis", "Calcification", "Cardiomegaly", "Clavicle fracture"),
    *("Consolidation", "Edema", "Emphysema", "Enlarged PA", "ILD", "Infiltration", "Lung Opacity"),
    *("Lung cavity", "Lung cyst", "Mediastinal shift", "Nodule/Mass", "Pleural effusion"),
    *("Pleural thickening", "Pneumothorax", "Pulmonary fibrosis", "Rib fracture", "Other lesion", "COPD"),
    *("Lung tumor", "Pneumonia", "Tuberculosis", "Other diseases", "No finding"),
)
_PCXR_NAMES: Final = (
    *("No finding", "Bronchitis", "Brocho-pneumonia", "Other disease", "Bronchiolitis", "Situs inversus"),
    *("Pneumonia", "Pleuro-pneumonia", "Diagphramatic hernia", "Tuberculosis", "Congenital emphysema"),
    *("CPAM", "Hyaline membrane disease", "Mediastinal tumor", "Lung tumor"),
)
_READERS: Final = 17


def nih_cxr14_files(truth: PhantomTruth, images: pd.DataFrame, side: int) -> dict[str, bytes]:
    """Table of images and the two lists of ChestX-ray14; arguments and result as of the other layouts."""
    source = "nih_cxr14"
    names = _names_by_finding(source)
    u = generator(truth.seed, source, "names").random((len(images), len(FINDINGS["chest"])))
    texts = []
    present = _positive(images)
    for row in range(len(images)):
        found = [
            names[finding][int(u[row, k] * len(names[finding]))]
            for k, finding in enumerate(FINDINGS["chest"])
            if present[row, k] and finding in names
        ]
        found += [
            name for finding, name in _NIH_OTHERS.items() if present[row, FINDINGS["chest"].index(finding)]
        ]
        texts.append("|".join(sorted(found)) or "No Finding")
    table = pd.DataFrame(
        {
            "Image Index": images["image_id"] + ".png",
            "Finding Labels": texts,
            "Follow-up #": images["image_of_patient"],
            "Patient ID": images["patient_id"],
            "Patient Age": images["age_recorded"].astype(int),
            "Patient Gender": images["sex_recorded"].map({"female": "F", "male": "M"}),
            "View Position": images["view"],
            # The released header has commas inside its last two names, so that two columns become four.
            "OriginalImage[Width": side,
            "Height]": side,
            "OriginalImagePixelSpacing[x": "0.143",
            "y]": "0.143",
        }
    )
    files = {"Data_Entry_2017_v2020.csv": csv_bytes(table, "Data_Entry_2017_v2020.csv")}
    for block, name in (("train_val", "train_val_list.txt"), ("test", "test_list.txt")):
        listed = table["Image Index"][images["released_split"] == block]
        files[name] = "\n".join(listed).encode("ascii")
    return files


def padchest_files(truth: PhantomTruth, images: pd.DataFrame, side: int) -> dict[str, bytes]:
    """The one table of PadChest; arguments and result as of the other layouts."""
    source = "padchest"
    random = generator(truth.seed, source, "table")
    u = random.random((4, len(images)))
    year = 2009 + images["patient_number"].to_numpy() % 9
    birth = pd.Series(year - images["age"].to_numpy()).where(images["age_recorded"].notna())
    sexes = images["sex_recorded"].map({"female": "F", "male": "M"})
    lying = (images["view"] == "AP").to_numpy() & (u[0] < 0.6)
    frontal = pd.DataFrame(
        {
            "ImageID": images["image_id"] + ".png",
            "ImageDir": images["file"].str.split("/").str[0],
            "StudyDate_DICOM": year * 10_000 + 115 + 100 * images["image_of_patient"],
            "StudyID": images["study_id"],
            "PatientID": images["patient_id"],
            "PatientBirth": [f"{one:.1f}" if one == one else "" for one in birth],
            "PatientSex_DICOM": sexes.fillna(pd.Series(np.where(u[1] < 0.5, "O", ""), dtype=object)),
            "ViewPosition_DICOM": images["view"].map({"AP": "AP", "PA": "POSTEROANTERIOR"}),
            "Projection": np.where(lying, "AP_horizontal", images["view"]),
            "MethodProjection": "Manual review of DICOM fields",
            "Pediatric": "No",
            "Modality_DICOM": np.where(u[2] < 0.5, "CR", "DX"),
            **dict.fromkeys(
                (
                    *("Manufacturer_DICOM", "PhotometricInterpretation_DICOM", "PixelRepresentation_DICOM"),
                    *("PixelAspectRatio_DICOM", "SpatialResolution_DICOM", "BitsStored_DICOM"),
                    *("WindowCenter_DICOM", "WindowWidth_DICOM"),
                ),
                "",
            ),
            "Rows_DICOM": side,
            "Columns_DICOM": side,
            **dict.fromkeys(
                (
                    *("XRayTubeCurrent_DICOM", "Exposure_DICOM", "ExposureInuAs_DICOM", "ExposureTime"),
                    "RelativeXRayExposure_DICOM",
                ),
                "",
            ),
            "ReportID": 9_000_000 + images["image_number"],
            "Report": "texto fantasm .",
            "MethodLabel": np.where(u[3] < 0.27, "Physician", "RNN_model"),
            "Labels": _padchest_labels(images, random),
            **dict.fromkeys(
                ("Localizations", "LabelsLocalizationsBySentence", "labelCUIS", "LocalizationsCUIS"), "[]"
            ),
        }
    )
    other = frontal.iloc[lateral_rows(images["view"], random)].copy()
    number = images["image_number"].iloc[other.index]
    other["ImageID"] = long_numbers(source, "lateral", "9", number) + numbered(number, "_lat{:04d}.png")
    other["Projection"] = np.array(["L", "L", "COSTAL", "UNK", "EXCLUDE"])[np.arange(len(other)) % 5]
    other["ViewPosition_DICOM"] = "LATERAL"
    table = pd.concat([frontal, other], ignore_index=True)
    table.insert(0, "", np.arange(len(table)))
    name = "PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv.gz"
    return {name: csv_bytes(table, name)}


def _padchest_labels(images: pd.DataFrame, random: np.random.Generator) -> list[str]:
    names = _names_by_finding("padchest")
    used = [finding for finding in FINDINGS["chest"] if finding in names]
    ordered = {}
    for finding in used:
        # A name that counts for two findings would say more than the population holds.
        own = [name for name in names[finding] if len(finding_names("padchest")[name]) == 1]
        usual = _PADCHEST_USUAL.get(finding, finding)
        ordered[finding] = [usual, *(name for name in own if name != usual)]
    u = random.random((len(images), len(used) + 1))
    present = _positive(images)
    silent = images[f"{used[0]}_recorded"].isna().to_numpy()
    texts = []
    for row in range(len(images)):
        found = []
        for k, finding in enumerate(used):
            if present[row, FINDINGS["chest"].index(finding)]:
                others = ordered[finding]
                at = 0 if u[row, k] < 0.6 else int((u[row, k] - 0.6) / 0.4 * len(others))
                found.append(f" {others[at]}" if u[row, k] * 1e3 % 1 < 0.1 else others[at])
        if silent[row]:
            texts.append("['exclude']" if u[row, -1] < 0.6 else "")
        else:
            texts.append(str(found or ["normal"]))
    return texts


def vindr_cxr_files(truth: PhantomTruth, images: pd.DataFrame, side: int) -> dict[str, bytes]:
    """Labels of readers, consensus labels and tags of VinDr-CXR; as of the other layouts."""
    source = "vindr_cxr"
    random = generator(truth.seed, source, "readers")
    names = _names_by_finding(source)
    in_test = (images["released_split"] == "test").to_numpy()
    present = _positive(images)
    train: list[dict[str, Any]] = []
    test: list[dict[str, Any]] = []
    for row, image_id in enumerate(images["image_id"]):
        votes = random.random((len(FINDINGS["chest"]), 3))
        readers = random.choice(_READERS, size=3, replace=False) + 1
        marks: list[set[str]] = [set(), set(), set()]
        for k, finding in enumerate(FINDINGS["chest"]):
            if finding in names:
                for at, reader in enumerate(_voters(bool(present[row, k]), votes[k])):
                    marks[reader].add(names[finding][at % len(names[finding])])
        if in_test[row]:
            agreed = {names[f][0] for k, f in enumerate(FINDINGS["chest"]) if f in names and present[row, k]}
            test.append({"image_id": image_id, **_row(agreed, _VINDR_TRAIN)})
        else:
            for reader, seen in zip(readers, marks, strict=True):
                train.append({"image_id": image_id, "rad_id": f"R{reader}", **_row(seen, _VINDR_TRAIN)})
    consensus = pd.DataFrame(test).rename(columns={"Other diseases": "Other disease"})
    tables = {
        "annotations/image_labels_train.csv": pd.DataFrame(train),
        "annotations/image_labels_test.csv": consensus,
        "dicom_tags_extracted.csv": _tags(images, random).assign(subset=images["released_split"]),
    }
    return {name: csv_bytes(table, name) for name, table in tables.items()}


def _voters(positive: bool, votes: np.ndarray) -> list[int]:
    """Which of three readers mark a finding: two or three of them, or at most one."""
    order = [int(reader) for reader in np.argsort(votes)]
    if positive:
        return order[: 2 if votes.max() < 0.8 else 3]
    return order[:1] if votes.min() > 0.7 else []


def vindr_pcxr_files(truth: PhantomTruth, images: pd.DataFrame, side: int) -> dict[str, bytes]:
    """Labels of one reader and tags of VinDr-PCXR; as of the other layouts."""
    source = "vindr_pcxr"
    random = generator(truth.seed, source, "readers")
    kinds = one_of(random, len(images), ("Brocho-pneumonia", "Pneumonia", "Pleuro-pneumonia"), 0.6)
    others = one_of(random, len(images), ("No finding", "Bronchitis", "Bronchiolitis", "Other disease"), 0.7)
    positive = (images["pneumonia_recorded"] == 1).to_numpy(dtype=bool)
    readers = random.integers(1, 4, len(images))
    rows = [
        {"image_id": image_id, "rad_ID": f"R{reader}", **_row({kind if ill else other}, _PCXR_NAMES)}
        for image_id, reader, ill, kind, other in zip(
            images["image_id"], readers, positive, kinds, others, strict=True
        )
    ]
    table = pd.DataFrame(rows)
    in_test = (images["released_split"] == "test").to_numpy()
    tables = {
        "image_labels_train.csv": table[~in_test],
        "image_labels_test.csv": table[in_test],
        "dicom_tags_extracted.csv": _tags(images, random),
    }
    return {name: csv_bytes(part, name) for name, part in tables.items()}


def _tags(images: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
    """Sex and age as tags: an unknown sex is ``O`` or blank, an unknown age blank or beyond any life."""
    u = random.random((2, len(images)))
    sexes = images["sex_recorded"].map({"female": "F", "male": "M"})
    unknown_sex = pd.Series(np.where(u[0] < 0.3, "O", ""), dtype=object)
    unknown_age = np.where(u[1] < 0.2, "199Y", "")
    ages = [
        f"{int(age):03d}Y" if age == age else text
        for age, text in zip(images["age_recorded"], unknown_age, strict=True)
    ]
    return pd.DataFrame(
        {"image_id": images["image_id"], "PatientSex": sexes.fillna(unknown_sex), "PatientAge": ages}
    )


def _positive(images: pd.DataFrame) -> np.ndarray:
    """Whether each of the 13 findings is recorded as positive; where a source has no label, what is true."""
    columns = []
    for finding in FINDINGS["chest"]:
        recorded = images[f"{finding}_recorded"]
        known = recorded.notna()
        columns.append(np.where(known, recorded.fillna(0) == 1, images[f"{finding}_true"]))
    return np.column_stack(columns).astype(bool)


def _names_by_finding(source: str) -> dict[str, list[str]]:
    """Names of a source for each finding that it labels."""
    found: dict[str, list[str]] = {}
    for name, findings in finding_names(source).items():
        for finding in findings:
            found.setdefault(finding, []).append(name)
    return found


def _row(marked: set[str], names: tuple[str, ...]) -> dict[str, int]:
    """A row of marks; nothing marked is ``No finding``."""
    row = {name: int(name in marked) for name in names}
    row["No finding"] = int(not marked or "No finding" in marked)
    return row

"""Invented raw tables of the six chest sources, as large as the real ones: for timing, never for a result."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

#: Images of the released tables, frontal ones among them about as many as the paper's.
SIZES = {
    "mimic_cxr": 377_000,
    "chexpert": 223_000,
    "nih_cxr14": 112_000,
    "padchest": 160_000,
    "vindr_cxr": 18_000,
    "vindr_pcxr": 9_000,
}
LABELS = (
    "No Finding",
    "Enlarged Cardiomediastinum",
    "Cardiomegaly",
    "Lung Opacity",
    "Lung Lesion",
    "Edema",
    "Consolidation",
    "Pneumonia",
    "Atelectasis",
    "Pneumothorax",
    "Pleural Effusion",
    "Pleural Other",
    "Fracture",
    "Support Devices",
)
VINDR = [
    "Aortic enlargement",
    "Atelectasis",
    "Calcification",
    "Cardiomegaly",
    "Clavicle fracture",
    "Consolidation",
    "Edema",
    "Emphysema",
    "Enlarged PA",
    "ILD",
    "Infiltration",
    "Lung Opacity",
    "Lung cavity",
    "Lung cyst",
    "Mediastinal shift",
    "Nodule/Mass",
    "Pleural effusion",
    "Pleural thickening",
    "Pneumothorax",
    "Pulmonary fibrosis",
    "Rib fracture",
    "Other lesion",
    "COPD",
    "Lung tumor",
    "Pneumonia",
    "Tuberculosis",
    "Other diseases",
    "No finding",
]
PEDIATRIC = [
    "No finding",
    "Bronchitis",
    "Brocho-pneumonia",
    "Other disease",
    "Bronchiolitis",
    "Situs inversus",
    "Pneumonia",
    "Pleuro-pneumonia",
    "Diagphramatic hernia",
    "Tuberculosis",
    "Congenital emphysema",
    "CPAM",
    "Hyaline membrane disease",
    "Mediastinal tumor",
    "Lung tumor",
]


def write(folder: Path, scale: float = 1.0, seed: int = 0) -> dict[str, Path]:
    """Write the tables of all six sources; the folder of each."""
    random = np.random.default_rng(seed)
    roots = {}
    for source, size in SIZES.items():
        roots[source] = folder / source
        roots[source].mkdir(parents=True)
        _WRITERS[source](roots[source], max(50, int(size * scale)), random)
    return roots


def _answers(random: np.random.Generator, n: int) -> pd.DataFrame:
    drawn = random.choice(np.array(["", "1.0", "0.0", "-1.0"]), (n, len(LABELS)), p=[0.6, 0.2, 0.15, 0.05])
    return pd.DataFrame(drawn, columns=LABELS)


def _mimic(folder: Path, n: int, random: np.random.Generator) -> None:
    n_subjects = n // 6 + 1
    subject = np.sort(random.integers(0, n_subjects, n)) + 10_000_000
    study = 50_000_000 + np.arange(n) * 2 // 3
    subject = pd.Series(subject).groupby(study).transform("first").to_numpy()
    year = random.integers(2110, 2200, n)
    image = [f"{i:08x}-{i * 7 % 2**32:08x}-{i * 11 % 2**32:08x}-{i:08x}-{i:08x}" for i in range(n)]
    view = random.choice(["AP", "PA", "LATERAL", "LL", ""], n, p=[0.39, 0.26, 0.2, 0.1, 0.05])
    metadata = pd.DataFrame(
        {"dicom_id": image, "subject_id": subject, "study_id": study, "ViewPosition": view}
    )
    metadata["Rows"], metadata["Columns"] = 3056, 2544
    metadata["StudyDate"] = [f"{value}0315" for value in year]
    metadata["StudyTime"] = "101500.123"
    metadata.to_csv(folder / "mimic-cxr-2.0.0-metadata.csv.gz", index=False)
    studies = metadata.drop_duplicates("study_id")[["subject_id", "study_id"]].reset_index(drop=True)
    labels = pd.concat([studies, _answers(random, len(studies))], axis=1)
    labels.to_csv(folder / "mimic-cxr-2.0.0-chexpert.csv.gz", index=False)
    split = metadata[["dicom_id", "study_id", "subject_id"]].assign(split="train")
    split.to_csv(folder / "mimic-cxr-2.0.0-split.csv.gz", index=False)
    (folder / "hosp").mkdir()
    people = pd.DataFrame({"subject_id": np.arange(n_subjects) + 10_000_000})
    people["gender"] = random.choice(["F", "M"], n_subjects)
    people["anchor_age"] = random.integers(18, 92, n_subjects)
    people["anchor_year"] = random.integers(2110, 2200, n_subjects)
    people["anchor_year_group"], people["dod"] = "2014 - 2016", ""
    people.to_csv(folder / "hosp" / "patients.csv.gz", index=False)
    visits = people.loc[random.integers(0, n_subjects, 2 * n_subjects), ["subject_id"]].reset_index(drop=True)
    visits["hadm_id"] = np.arange(len(visits)) + 20_000_000
    visits["admittime"] = [f"{value}-03-01 10:00:00" for value in random.integers(2110, 2200, len(visits))]
    for column in ("dischtime", "deathtime", "admission_type"):
        visits[column] = ""
    visits["insurance"] = random.choice(["Medicare", "Medicaid", "Private", "Other", ""], len(visits))
    races = [
        "WHITE",
        "BLACK/AFRICAN AMERICAN",
        "ASIAN - CHINESE",
        "HISPANIC/LATINO - CUBAN",
        "UNKNOWN",
        "OTHER",
    ]
    visits["race"] = random.choice(races, len(visits))
    visits.to_csv(folder / "hosp" / "admissions.csv.gz", index=False)


def _chexpert(folder: Path, n: int, random: np.random.Generator) -> None:
    patient = np.sort(random.integers(1, n // 3 + 2, n))
    number = pd.Series(patient).groupby(patient).cumcount() + 1
    frontal = random.random(n) < 0.85
    train = pd.DataFrame(
        {
            "Path": [
                f"CheXpert-v1.0/train/patient{p:05d}/study{k}/view1_{'frontal' if f else 'lateral'}.jpg"
                for p, k, f in zip(patient, number, frontal, strict=True)
            ],
            "Sex": np.array(["Female", "Male"])[patient % 2],
            "Age": random.integers(18, 91, n),
            "Frontal/Lateral": np.where(frontal, "Frontal", "Lateral"),
            "AP/PA": np.where(frontal, random.choice(["AP", "PA"], n), ""),
        }
    )
    pd.concat([train, _answers(random, n)], axis=1).to_csv(folder / "train.csv", index=False)
    people = pd.DataFrame({"PATIENT": [f"patient{p:05d}" for p in np.unique(patient)]})
    people["GENDER"], people["AGE_AT_CXR"] = "Female", 50
    people["PRIMARY_RACE"] = random.choice(
        ["White", "White, non-Hispanic", "Asian", "Other", "Unknown"], len(people)
    )
    people["ETHNICITY"] = "Non-Hispanic/Non-Latino"
    people.to_csv(folder / "CHEXPERT DEMO.csv", index=False)


def _nih(folder: Path, n: int, random: np.random.Generator) -> None:
    patient = np.sort(random.integers(1, n // 4 + 2, n))
    number = pd.Series(patient).groupby(patient).cumcount()
    findings = ["No Finding", "Atelectasis", "Effusion|Infiltration", "Mass|Nodule", "Cardiomegaly|Edema"]
    table = pd.DataFrame(
        {
            "Image Index": [f"{p:08d}_{k:03d}.png" for p, k in zip(patient, number, strict=True)],
            "Finding Labels": random.choice(findings, n),
            "Follow-up #": number,
            "Patient ID": patient,
            "Patient Age": random.integers(1, 95, n),
            "Patient Gender": np.array(["F", "M"])[patient % 2],
            "View Position": random.choice(["AP", "PA"], n),
        }
    )
    for name in ("OriginalImage[Width", "Height]", "OriginalImagePixelSpacing[x", "y]"):
        table[name] = 1
    table.to_csv(folder / "Data_Entry_2017_v2020.csv", index=False)
    held_out = patient > n // 4 * 3 // 4
    for name, part in (("train_val_list.txt", ~held_out), ("test_list.txt", held_out)):
        (folder / name).write_text("\n".join(table.loc[part, "Image Index"]), encoding="utf-8")


def _padchest(folder: Path, n: int, random: np.random.Generator) -> None:
    header = [
        "ImageID",
        "ImageDir",
        "StudyDate_DICOM",
        "StudyID",
        "PatientID",
        "PatientBirth",
        "PatientSex_DICOM",
        "ViewPosition_DICOM",
        "Projection",
        "MethodProjection",
        "Pediatric",
        "Modality_DICOM",
        "Manufacturer_DICOM",
        "ReportID",
        "Report",
        "MethodLabel",
        "Labels",
        "Localizations",
        "LabelsLocalizationsBySentence",
        "labelCUIS",
        "LocalizationsCUIS",
    ]
    table = pd.DataFrame(dict.fromkeys(header, ""), index=range(n))
    table["ImageID"] = [f"{10**20 + i}_{i:06d}.png" for i in range(n)]
    table["ImageDir"] = random.integers(0, 50, n)
    table["StudyDate_DICOM"] = random.integers(2009, 2018, n) * 10_000 + 115
    table["StudyID"], table["PatientID"] = np.arange(n), random.integers(0, n // 2, n)
    born = random.integers(1920, 2000, n // 2 + 1)[table["PatientID"]]
    table["PatientBirth"] = [f"{value}.0" for value in born]
    table["PatientSex_DICOM"] = np.array(["F", "M"])[table["PatientID"] % 2]
    table["Projection"] = random.choice(
        ["PA", "AP", "AP_horizontal", "L", "COSTAL"], n, p=[0.45, 0.05, 0.2, 0.2, 0.1]
    )
    table["Pediatric"], table["MethodLabel"] = "No", "RNN_model"
    table["Report"] = " texto inventado sin hallazg ."
    kinds = [
        "['normal']",
        "['cardiomegaly', 'pleural effusion']",
        "['laminar atelectasis', 'chronic changes']",
        "",
    ]
    table["Labels"] = random.choice(kinds, n)
    table.to_csv(folder / "PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv")


def _vindr(folder: Path, n: int, random: np.random.Generator) -> None:
    (folder / "annotations").mkdir()
    n_test = n // 6
    for name, count, readers in (("train", n - n_test, 3), ("test", n_test, 1)):
        columns = (
            VINDR if name == "train" else ["Other disease" if c == "Other diseases" else c for c in VINDR]
        )
        ids = [f"{name}{i:027x}" for i in range(count)]
        table = pd.DataFrame(random.integers(0, 2, (count * readers, len(columns))), columns=columns)
        table.insert(0, "image_id", np.repeat(ids, readers))
        if readers > 1:
            table.insert(1, "rad_id", np.tile(["R1", "R2", "R3"], count))
        table.to_csv(folder / "annotations" / f"image_labels_{name}.csv", index=False)


def _pediatric(folder: Path, n: int, random: np.random.Generator) -> None:
    (folder / "annotations").mkdir()
    for name, count in (("train", n - n // 6), ("test", n // 6)):
        table = pd.DataFrame(random.integers(0, 2, (count, len(PEDIATRIC))), columns=PEDIATRIC)
        table.insert(0, "image_id", [f"{name}{i:027x}" for i in range(count)])
        table.insert(1, "rad_ID", "R1")
        table.to_csv(folder / "annotations" / f"image_labels_{name}.csv", index=False)


_WRITERS = {
    "mimic_cxr": _mimic,
    "chexpert": _chexpert,
    "nih_cxr14": _nih,
    "padchest": _padchest,
    "vindr_cxr": _vindr,
    "vindr_pcxr": _pediatric,
}

"""The raw files, read back through the site modules and compared with the population row by row."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from frame.cohorts.adjudicated import installed_table
from frame.cohorts.phantom.truth import SOURCES, modality_of
from frame.cohorts.schema import FINDINGS
from frame.errors import InputError

SHARED = Path(__file__).resolve().parents[4] / "shared"
ALL = tuple(source for names in SOURCES.values() for source in names)


def _text(column):
    return column.astype(object).where(column.notna(), None).tolist()


@pytest.mark.parametrize("source", ALL)
def test_rows_agree_with_the_population(populations, manifests, source):
    found = manifests[source].table
    images = populations[source].assign(key=source + ":" + populations[source]["image_id"])
    images = images.set_index("key").loc[found["image_id"]]
    assert len(found) == len(populations[source])
    for recorded, column in (
        ("sex_recorded", "sex"),
        ("race_recorded", "race_recorded"),
        ("insurance_recorded", "insurance_recorded"),
        ("ethnicity_recorded", "ethnicity"),
        ("tone_recorded", "skin_type"),
        ("view_recorded", "view"),
    ):
        if recorded in images:
            assert _text(found[column]) == _text(images[recorded]), column
        else:
            assert found[column].isna().all(), column
    if "age_recorded" in images:
        np.testing.assert_array_equal(found["age"], images["age_recorded"].to_numpy())
        assert (found["age_band"] == ">=80").sum() == (images["age_recorded"] >= 80).sum()
    for finding in FINDINGS[modality_of(source)]:
        assert found[finding].tolist() == images[f"{finding}_recorded"].tolist(), finding
    for column in ("patient_id", "study_id"):
        if column in images:
            expected = [None if one is None else f"{source}:{one}" for one in _text(images[column])]
            assert _text(found[column]) == expected, column


@pytest.mark.parametrize("source", ["mimic_cxr", "vindr_cxr", "vindr_pcxr", "fairvision"])
def test_released_splits_agree(populations, manifests, source):
    found = manifests[source].table.set_index("image_id")["split"].astype(str)
    images = populations[source]
    expected = images["released_split"].to_numpy()
    assert (found[source + ":" + images["image_id"]].to_numpy() == expected).all()


def test_nih_splits_agree(populations, manifests):
    found = manifests["nih_cxr14"].table
    images = populations["nih_cxr14"]
    in_test = set("nih_cxr14:" + images["image_id"][images["released_split"] == "test"])
    assert set(found["image_id"][found["split"] == "test"]) == in_test


def test_no_patient_is_in_two_splits(manifests):
    for manifest in manifests.values():
        by = manifest.table.groupby("subject_id")["split"].nunique()
        assert (by == 1).all()


def test_what_is_left_out(manifests):
    reasons = {source: set(one.left_out["reason"]) for source, one in manifests.items()}
    assert reasons["mimic_cxr"] == {"view LATERAL", "view LL"}
    assert reasons["chexpert"] == {"lateral view"}
    assert reasons["padchest"] == {"view COSTAL", "view EXCLUDE", "view L", "view UNK"}
    assert reasons["fitzpatrick17k"] == {"skin type not annotated (scale -1)"}
    for source in ("nih_cxr14", "vindr_cxr", "vindr_pcxr", "isic_2019", "ddi", "fairvision"):
        assert reasons[source] == set()


def test_traps_are_there(manifests, tables):
    """The odd values that the real releases have, and that a reader must not stumble over."""
    said = {source: one.tally.set_index(["field", "recorded"])["value"] for source, one in manifests.items()}
    assert said["mimic_cxr"]["race", "WHITE - BRAZILIAN"] == "White"
    assert said["mimic_cxr"]["race", "SOUTH AMERICAN"] == "Other"
    assert pd.isna(said["mimic_cxr"]["race", "UNABLE TO OBTAIN"])
    assert said["mimic_cxr"]["insurance", "No charge"] == "Other"
    for kind in ("anchor age 91, which stands for over 89",):
        assert ("age", kind) in said["mimic_cxr"].index
    for kind in ("not in the table of patients", "without an admission"):
        assert ("patient", kind) in said["mimic_cxr"].index
    assert any("admissions that differ" in text for _, text in said["mimic_cxr"].index)
    assert said["chexpert"]["race", "White or Caucasian"] == "White"
    assert said["chexpert"]["race", "Unknown; ethnicity Hispanic"] == "Hispanic or Latino"
    assert said["chexpert"]["race", "Asian - Historical Conv"] == "Asian"
    assert ("age", "0 years, which stands for unknown") in said["chexpert"].index
    assert ("age", "above 120 years") in said["vindr_cxr"].index
    assert ("label", "no label") in said["padchest"].index
    assert said["isic_2019"]["subject_id", "(blank)"] == "image"
    for name in ("train_val_list.txt", "test_list.txt"):
        assert not (tables / "nih_cxr14" / name).read_bytes().endswith(b"\n")


def test_headers_are_those_of_the_releases(tables):
    def header(name):
        content = (tables / name).read_bytes()
        content = gzip.decompress(content) if name.endswith(".gz") else content
        return content.split(b"\n")[0].decode()

    assert header("nih_cxr14/Data_Entry_2017_v2020.csv") == (
        "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position,"
        "OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y]"
    )
    assert header("mimic_cxr/mimic-cxr-2.0.0-chexpert.csv.gz") == (
        "subject_id,study_id,Atelectasis,Cardiomegaly,Consolidation,Edema,Enlarged Cardiomediastinum,"
        "Fracture,Lung Lesion,Lung Opacity,No Finding,Pleural Effusion,Pleural Other,Pneumonia,Pneumothorax,"
        "Support Devices"
    )
    assert header("chexpert/CheXpert-v1.0-small/train.csv").startswith(
        "Path,Sex,Age,Frontal/Lateral,AP/PA,No Finding,Enlarged Cardiomediastinum,Cardiomegaly"
    )
    assert header("chexpert/CHEXPERT DEMO.csv") == "PATIENT,GENDER,AGE_AT_CXR,PRIMARY_RACE,ETHNICITY"
    assert header("padchest/PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv.gz").count(",") == 35
    assert header("vindr_cxr/annotations/image_labels_test.csv").endswith("Other disease,No finding")
    assert header("ddi/ddi_metadata.csv") == ",DDI_ID,DDI_file,skin_tone,malignant,disease"
    assert header("fairvision/Glaucoma/ReadMe/data_summary_glaucoma.csv") == (
        "filename,age,gender,race,ethnicity,language,maritalstatus,md,glaucoma,use"
    )


def test_headers_are_those_of_the_invented_tables(tables):
    """Column by column as the invented example tables, where they lie beside the repository."""
    examples = SHARED / "data/real/metadata/synthetic"
    if not examples.is_dir():
        pytest.skip("the example tables are not there")
    for example, ours in (
        ("mimic-cxr-2.0.0-metadata.csv", "mimic_cxr/mimic-cxr-2.0.0-metadata.csv.gz"),
        ("mimic-cxr-2.0.0-split.csv", "mimic_cxr/mimic-cxr-2.0.0-split.csv.gz"),
        ("mimic-cxr-2.0.0-chexpert.csv", "mimic_cxr/mimic-cxr-2.0.0-chexpert.csv.gz"),
        ("mimic-iv_hosp_patients.csv", "mimic_cxr/mimic-iv-3.1/hosp/patients.csv.gz"),
        ("mimic-iv_hosp_admissions.csv", "mimic_cxr/mimic-iv-3.1/hosp/admissions.csv.gz"),
        ("chexpert_train.csv", "chexpert/CheXpert-v1.0-small/train.csv"),
        ("chexpert_demo.csv", "chexpert/CHEXPERT DEMO.csv"),
        ("df_chexpert_plus_240401.csv", "chexpert/chexpert-plus/df_chexpert_plus_240401.csv"),
        (
            "PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv",
            "padchest/PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv.gz",
        ),
        ("vindr-cxr_image_labels_train.csv", "vindr_cxr/annotations/image_labels_train.csv"),
        ("vindr-cxr_image_labels_test.csv", "vindr_cxr/annotations/image_labels_test.csv"),
        ("vindr-cxr_dicom_tags_extracted.csv", "vindr_cxr/dicom_tags_extracted.csv"),
        ("vindr-pcxr_image_labels_train.csv", "vindr_pcxr/image_labels_train.csv"),
        ("vindr-pcxr_dicom_tags_extracted.csv", "vindr_pcxr/dicom_tags_extracted.csv"),
        ("ddi_metadata.csv", "ddi/ddi_metadata.csv"),
        ("fairvision_data_summary_glaucoma.csv", "fairvision/Glaucoma/ReadMe/data_summary_glaucoma.csv"),
    ):
        theirs = pd.read_csv(examples / example, nrows=0).columns.tolist()
        assert pd.read_csv(tables / ours, nrows=0).columns.tolist() == theirs, example


#: Ids of the sources as their owners number them; none of ours may look like one.
INVENTED = {
    "mimic_cxr": (r"9000[0-9a-f]{4}(-[0-9a-f]{8}){4}", r"9\d{7}", r"8\d{7}"),
    "chexpert": (
        r"(train|valid)/patient9\d{4}/study\d/view1_frontal",
        r"patient9\d{4}",
        r"patient9\d{4}/study\d",
    ),
    "nih_cxr14": (r"9\d{7}_00\d", r"9\d{7}", None),
    "padchest": (r"90{22}\d{37}_ph\d{4}", r"80{22}\d{37}", r"90{22}\d{37}"),
    "vindr_cxr": (r"9000[0-9a-f]{28}", None, None),
    "vindr_pcxr": (r"9000[0-9a-f]{28}", None, None),
    "isic_2019": (r"ISIC_9\d{6}(_downsampled)?", None, None),
    "fitzpatrick17k": (r"9000[0-9a-f]{28}", None, None),
    "ddi": (r"9\d{3}", None, None),
    "fairvision": (r"data_9\d{4}", r"data_9\d{4}", None),
}


@pytest.mark.parametrize("source", ALL)
def test_ids_are_clearly_invented(manifests, source):
    found = manifests[source].table
    for column, pattern in zip(("image_id", "patient_id", "study_id"), INVENTED[source], strict=True):
        ids = found[column].dropna().str.removeprefix(f"{source}:")
        assert (pattern is None) == ids.empty, column
        assert pattern is None or ids.str.fullmatch(pattern).all(), column


def test_no_released_long_number_is_as_long_as_ours(manifests):
    """PadChest's numbers begin with any digit, also with 8 and 9; only their length tells ours apart."""
    try:
        table = installed_table("PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv.gz")
    except InputError:
        pytest.skip("the table inside torchxrayvision is not there")
    released = pd.read_csv(table, usecols=["ImageID", "StudyID", "PatientID"], dtype=str)
    ours = manifests["padchest"].table[["image_id", "study_id", "patient_id"]]
    shortest = min(
        len(re.match(r"padchest:(\d+)", one)[1]) for column in ours for one in ours[column].unique()
    )
    longest = max(int(released[c].str.extract(r"^(\d+)")[0].str.len().max()) for c in released)
    assert (longest, shortest) == (51, 60)


def test_no_address_stands_in_a_table(tables):
    for path in tables.rglob("*.csv*"):
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
        assert not re.search(rb"https?://|www\.", content), path.name

"""No row of a released table is lost or doubled: each is in the manifest or counted with its reason."""

import random

import pytest
from chest_sources import LABELS, REAL, SYNTHETIC, needs_synthetic, read_text, write_table

from frame.cohorts.manifest import SPLITS, build_manifest
from frame.cohorts.sites import SITES, site_module
from frame.cohorts.sites.contract import SiteFiles
from frame.workspace.profiles import SourceSettings

N = 60
PCXR = ("No finding", "Brocho-pneumonia", "Pneumonia", "Pleuro-pneumonia")
CXR = (
    *("Atelectasis", "Cardiomegaly", "Clavicle fracture", "Consolidation", "Edema", "Lung Opacity"),
    *("Nodule/Mass", "Pleural effusion", "Pleural thickening", "Pneumothorax", "Rib fracture", "Lung tumor"),
    *("Pneumonia", "Infiltration", "Enlarged PA", "No finding"),
)


def people(draw, n=N, among=15):
    """Subjects of n images, some with many, in no order."""
    return [f"{draw.randrange(among):03d}" for _ in range(n)]


def mimic_cxr(draw):
    metadata, split, studies = [], [], {}
    for at, who in enumerate(people(draw)):
        subject, study = f"10000{who}", f"50000{who}{draw.randrange(2)}"
        studies[study] = subject
        view = draw.choice(["AP", "PA", "LATERAL", "LL", "", "AP AXIAL", "XTABLE LATERAL"])
        named = {"dicom_id": f"d{at:03d}", "subject_id": subject, "study_id": study}
        metadata.append({**named, "ViewPosition": view, "StudyDate": f"21{draw.randrange(40, 90)}0315"})
        split.append({**named, "split": draw.choice(["train", "validate", "test"])})
    labels = [
        {"subject_id": who, "study_id": study, **{x: draw.choice(["1.0", "0.0", "-1.0", ""]) for x in LABELS}}
        for study, who in sorted(studies.items())[3:]
    ]
    known = sorted(set(studies.values()))[1:]
    patients = [
        {
            "subject_id": who,
            "gender": draw.choice("FM"),
            "anchor_age": draw.choice(["20", "91", ""]),
            "anchor_year": "2150",
        }
        for who in known
    ]
    admissions = [
        {
            "subject_id": who,
            "hadm_id": f"2{at:03d}",
            "admittime": f"21{draw.randrange(40, 90)}-03-01 10:00:00",
            "insurance": draw.choice(["Medicare", "No charge", ""]),
            "race": draw.choice(["WHITE", "UNKNOWN", "ASIAN"]),
        }
        for at, who in enumerate(known[2:] * 3)
    ]
    tables = {"metadata": metadata, "labels": labels, "split": split}
    return tables | {"patients": patients, "admissions": admissions}, N


def chexpert(draw):
    def rows(part):
        return [
            {
                "Path": f"CheXpert-v1.0/{part}/patient00{who}/study1/view{at}_frontal.jpg",
                "Sex": draw.choice(["Female", "Male", "Unknown"]),
                "Age": draw.choice(["0", "40", "90"]),
                "Frontal/Lateral": draw.choice(["Frontal", "Frontal", "Lateral", ""]),
                "AP/PA": draw.choice(["AP", "PA", "LL", ""]),
                **{name: draw.choice(["1.0", "0.0", "-1.0", ""]) for name in LABELS},
            }
            for at, who in enumerate(people(draw))
        ]

    sheet = [
        {"PATIENT": f"patient00{who}", "PRIMARY_RACE": "White", "ETHNICITY": "Unknown"}
        for who in people(draw, 20)
    ]
    valid = [row | {"Path": row["Path"].replace("patient00", "patient64")} for row in rows("valid")]
    return {"train": rows("train"), "valid": valid, "demographics": sheet}, 2 * N


def nih_cxr14(draw):
    entries = [
        {
            "Image Index": f"00000{who}_{at:03d}.png",
            "Finding Labels": draw.choice(["Effusion|Mass", "No Finding", ""]),
            "Patient ID": who,
            "Patient Age": draw.choice(["058Y", "411Y", "0", ""]),
            "Patient Gender": draw.choice("FM"),
            "View Position": draw.choice(["AP", "PA", ""]),
        }
        for at, who in enumerate(people(draw))
    ]
    return {"entries": entries}, N


def padchest(draw):
    rows = [
        {
            "": str(at),
            "ImageID": f"{at:03d}_x.png",
            "StudyDate_DICOM": "20150101",
            "StudyID": f"s{at}",
            "PatientID": who,
            "PatientBirth": draw.choice(["1950.0", "", "2016.0"]),
            "PatientSex_DICOM": draw.choice(["M", "F", "O", ""]),
            "Projection": draw.choice(["PA", "AP", "AP_horizontal", "L", "COSTAL", "EXCLUDE", ""]),
            "Pediatric": draw.choice(["PED", "No"]),
            "Labels": draw.choice(["['normal']", "", "['exclude']", "['fracture', 'callus rib fracture']"]),
        }
        for at, who in enumerate(people(draw))
    ]
    return {"labels": rows}, N


def vindr_cxr(draw):
    train = [
        {"image_id": f"a{at}", "rad_id": reader, **{name: draw.choice("01") for name in CXR}}
        for at in range(N)
        for reader in ("R1", "R2", "R3")
    ]
    draw.shuffle(train)
    test = [{"image_id": f"b{at}", **{name: draw.choice("01") for name in CXR}} for at in range(9)]
    tags = [
        {"image_id": f"a{at}", "PatientSex": draw.choice(["M", "O", ""]), "PatientAge": "199Y"}
        for at in range(9)
    ]
    return {"train_labels": train, "test_labels": test, "tags": tags}, N + 9


def vindr_pcxr(draw):
    def rows(mark, n):
        return [
            {"image_id": f"{mark}{at}", "rad_ID": "R1", **{name: draw.choice("01") for name in PCXR}}
            for at in range(n)
        ]

    return {"train_labels": rows("a", N), "test_labels": rows("b", 9)}, N + 9


def isic_2019(draw):
    classes = ["MEL", "NV", "BCC", "AK", "BKL", "DF", "VASC", "SCC", "UNK"]
    found = [draw.choice(classes) for _ in range(N)]
    truth = [
        {"image": f"I{at}", **{name: "1.0" if name == one else "0.0" for name in classes}}
        for at, one in enumerate(found)
    ]
    metadata = [
        {
            "image": f"I{at}",
            "age_approx": draw.choice(["0.0", "85.0", ""]),
            "lesion_id": draw.choice(["", f"L{who}"]),
            "sex": draw.choice(["female", "male", ""]),
        }
        for at, who in enumerate(people(draw))
    ]
    draw.shuffle(metadata)
    return {"truth": truth, "metadata": metadata}, N


def fitzpatrick17k(draw):
    partitions = ["malignant", "benign", "non-neoplastic"]
    rows = [
        {
            "md5hash": f"{at:032x}",
            "fitzpatrick_scale": str(draw.choice([-1, 1, 2, 3, 4, 5, 6])),
            "three_partition_label": draw.choice(partitions),
        }
        for at in range(N)
    ]
    return {"table": rows}, N


def ddi(draw):
    rows = [
        {
            "DDI_ID": str(at),
            "DDI_file": f"{at:06d}.png",
            "skin_tone": draw.choice(["12", "34", "56"]),
            "malignant": draw.choice(["TRUE", "FALSE"]),
        }
        for at in range(N)
    ]
    return {"table": rows}, N


def fairvision(draw):
    rows = [
        {
            "filename": f"data_{at:05d}.npz",
            "age": draw.choice(["63.9", "", "-1"]),
            "gender": draw.choice(["Female", "Male", "Unknown"]),
            "race": draw.choice(["White", "Black", "Asian", "Unknown"]),
            "ethnicity": draw.choice(["Hispanic", "Non-Hispanic", "Unknown"]),
            "glaucoma": draw.choice(["yes", "no"]),
            "use": draw.choice(["training", "validation", "test"]),
        }
        for at in range(N)
    ]
    return {"table": rows}, N


RELEASES = {
    one.__name__: one
    for one in (
        *(mimic_cxr, chexpert, nih_cxr14, padchest, vindr_cxr, vindr_pcxr),
        *(isic_2019, fitzpatrick17k, ddi, fairvision),
    )
}
#: A field that a source module tallies once for each image of its table.
TALLIED = dict.fromkeys(SITES, ("age", "sex")) | {"fitzpatrick17k": ("skin_type",), "ddi": ("skin_type",)}


def files_of(source, folder, seed):
    draw = random.Random(f"{source} {seed}")
    tables, n_images = RELEASES[source](draw)
    paths = {key: write_table(folder / f"{key}.csv", rows) for key, rows in tables.items()}
    if source == "nih_cxr14":
        names = [row["Image Index"] for row in tables["entries"]]
        test = [name for name in names if int(name[5:8]) < 4]
        pool = [name for name in names if int(name[5:8]) >= 4]
        for key, listed in (("train_val_list", pool[2:]), ("test_list", test)):
            paths[key] = folder / f"{key}.txt"
            paths[key].write_text("\n".join(listed), encoding="utf-8")
    return SiteFiles(source, folder, folder, paths, images=False), n_images


def test_every_source_has_a_release_here():
    assert set(RELEASES) == set(SITES)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("source", SITES)
def test_rows_kept_and_left_out_are_the_rows_released(source, seed, tmp_path):
    files, n_images = files_of(source, tmp_path, seed)
    rows = site_module(source).read_rows(files)
    assert len(rows.table) + int(rows.left_out["n_images"].sum()) == n_images
    assert rows.table["image_id"].is_unique
    for field in TALLIED[source]:
        tally = rows.tally[rows.tally["field"] == field]
        counted = tally[~tally["recorded"].str.startswith("anchor age 91")]
        assert int(counted["n_images"].sum()) == len(rows.table), field
    manifest = build_manifest(files, SourceSettings(root=str(tmp_path), images=False), 0)
    assert len(manifest.table) + int(manifest.left_out["n_images"].sum()) == n_images
    assert (manifest.left_out["n_images"] > 0).all()


@pytest.mark.parametrize("source", SITES)
def test_the_order_of_rows_in_the_tables_changes_nothing(source, tmp_path):
    files, _ = files_of(source, tmp_path, 0)
    before = build_manifest(files, SourceSettings(root=str(tmp_path), images=False), 0)
    for key, path in files.paths.items():
        if path.suffix == ".csv" and key != "demographics":  # of two levels as frequent the later row counts
            rows = read_text(path)
            random.Random(1).shuffle(rows)
            write_table(path, rows)
    after = build_manifest(files, SourceSettings(root=str(tmp_path), images=False), 0)
    assert after.table.equals(before.table)
    assert (
        after.left_out.sort_values("reason")
        .reset_index(drop=True)
        .equals(before.left_out.sort_values("reason").reset_index(drop=True))
    )


SYNTHETIC_FILES = {
    "mimic_cxr": {
        "metadata": "mimic-cxr-2.0.0-metadata.csv",
        "labels": "mimic-cxr-2.0.0-chexpert.csv",
        "split": "mimic-cxr-2.0.0-split.csv",
        "patients": "mimic-iv_hosp_patients.csv",
        "admissions": "mimic-iv_hosp_admissions.csv",
    },
    "chexpert": {
        "train": "chexpert_train.csv",
        "demographics": "chexpert_demo.csv",
        "plus": "df_chexpert_plus_240401.csv",
    },
    "padchest": {"labels": "PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv"},
    "vindr_cxr": {
        "train_labels": "vindr-cxr_image_labels_train.csv",
        "test_labels": "vindr-cxr_image_labels_test.csv",
        "tags": "vindr-cxr_dicom_tags_extracted.csv",
    },
    "vindr_pcxr": {"train_labels": "vindr-pcxr_image_labels_train.csv"},
    "ddi": {"table": "ddi_metadata.csv"},
    "fairvision": {"table": "fairvision_data_summary_glaucoma.csv"},
}
#: Tables that list the images, and what names one.
IMAGES = {
    "mimic_cxr": (("metadata",), "dicom_id"),
    "chexpert": (("train",), "Path"),
    "padchest": (("labels",), "ImageID"),
    "vindr_cxr": (("train_labels", "test_labels"), "image_id"),
    "vindr_pcxr": (("train_labels",), "image_id"),
    "ddi": (("table",), "DDI_ID"),
    "fairvision": (("table",), "filename"),
}


@needs_synthetic
@pytest.mark.parametrize("source", SYNTHETIC_FILES)
def test_synthetic_tables_under_the_real_headers(source):
    paths = {key: SYNTHETIC / name for key, name in SYNTHETIC_FILES[source].items()}
    keys, column = IMAGES[source]
    released = {row[column] for key in keys for row in read_text(paths[key])}
    manifest = build_manifest(
        SiteFiles(source, SYNTHETIC, SYNTHETIC, paths, images=False),
        SourceSettings(root=str(SYNTHETIC), images=False),
        0,
    )
    assert len(manifest.table) + int(manifest.left_out["n_images"].sum()) == len(released)


DERMATOLOGY = REAL / "metadata" / "derm"
REAL_TABLES = {
    "isic_2019": (
        {"truth": "ISIC_2019_Training_GroundTruth.csv.gz", "metadata": "ISIC_2019_Training_Metadata.csv.gz"},
        25_331,
        0,
    ),
    "fitzpatrick17k": ({"table": "fitzpatrick17k.csv.gz"}, 16_577, 565),
}


@pytest.mark.skipif(not DERMATOLOGY.is_dir(), reason="the real tables are not beside this checkout")
@pytest.mark.parametrize("source", REAL_TABLES)
def test_real_tables(source):
    names, n_images, n_left_out = REAL_TABLES[source]
    files = SiteFiles(
        source, DERMATOLOGY, None, {key: DERMATOLOGY / name for key, name in names.items()}, images=False
    )
    manifest = build_manifest(files, SourceSettings(root=str(DERMATOLOGY), images=False), 0)
    assert int(manifest.left_out["n_images"].sum()) == n_left_out
    assert len(manifest.table) == n_images - n_left_out


@pytest.mark.parametrize("source", [name for name, rules in SPLITS.items() if rules[0] != "released"])
def test_the_seed_of_the_study_draws_the_split(source, tmp_path):
    files, _ = files_of(source, tmp_path, 0)
    settings = SourceSettings(root=str(tmp_path), images=False)
    draws = {
        seed: build_manifest(files, settings, seed).table.set_index("image_id")["split"] for seed in (0, 1, 2)
    }
    assert not draws[0].equals(draws[1])
    assert not draws[1].equals(draws[2])
    assert draws[0].equals(build_manifest(files, settings, 0).table.set_index("image_id")["split"])


def test_the_tenth_for_validation_is_one_of_patients(tmp_path):
    """Patients with very many images must not fill it: 20 of 200 patients, whatever their images."""
    rows = [
        {
            "Image Index": f"{who:08d}_{at:03d}.png",
            "Finding Labels": "No Finding",
            "Patient ID": str(who),
            "Patient Age": "50",
            "Patient Gender": "F",
            "View Position": "PA",
        }
        for who in range(220)
        for at in range(30 if who < 10 else 1)
    ]
    paths = {"entries": write_table(tmp_path / "entries.csv", rows)}
    for key, chosen in (("train_val_list", range(200)), ("test_list", range(200, 220))):
        names = [row["Image Index"] for row in rows if int(row["Patient ID"]) in chosen]
        paths[key] = tmp_path / f"{key}.txt"
        paths[key].write_text("\n".join(names), encoding="utf-8")
    files = SiteFiles("nih_cxr14", tmp_path, None, paths, images=False)
    for seed in range(3):
        table = build_manifest(files, SourceSettings(root=str(tmp_path), images=False), seed).table
        patients = table.groupby("split", observed=True)["patient_id"].nunique().to_dict()
        assert patients == {"train": 180, "validation": 20, "test": 20}

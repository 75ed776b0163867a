"""The radiographs with two sets of labels: counts of the real tables, joins, ages, privacy, damaged tables.

Tests of the real tables count rows with the csv module, apart from the code under test.
"""

import csv
import gzip
import importlib.util
import io
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from frame.cohorts import adjudicated
from frame.cohorts.adjudicated import (
    FINDINGS,
    OPACITY,
    age_band,
    installed_table,
    patients_in_one,
    read_adjudicated,
)
from frame.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
needs_tables = pytest.mark.skipif(
    importlib.util.find_spec("torchxrayvision") is None,
    reason="the NIH tables are not installed (make env installs them)",
)


# --- the real tables -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cohort():
    return read_adjudicated()


class Rows(dict):
    """Rows by image; a failing test shows their number and no row."""

    def __repr__(self):
        return f"{len(self)} rows"


def rows_of(name):
    with gzip.open(installed_table(name), "rt", encoding="utf-8", newline="") as file:
        return Rows({row["Image Index"]: row for row in csv.DictReader(file)})


@pytest.fixture(scope="module")
def tables():
    return rows_of(adjudicated.READ_TABLE), rows_of(adjudicated.MINED_TABLE)


@needs_tables
def test_every_image_that_radiologists_read_is_there(cohort, tables):
    read, mined = tables
    assert (len(read), len(mined)) == (4376, 112_120)
    assert len({row["Patient ID"] for row in mined.values()}) == 30_805
    assert cohort.n_images == len(cohort.images) == 4376
    assert cohort.n_patients == cohort.images["patient"].nunique() == 1695
    assert cohort.n_patients == len({row["Patient ID"] for row in read.values()})
    assert Counter(cohort.images["split"]) == {"val": 2414, "test": 1962}


@needs_tables
def test_attributes_are_those_of_the_tables(cohort, tables):
    read, mined = tables
    assert Counter(cohort.images["sex"]) == Counter(row["Patient Gender"] for row in read.values())
    assert Counter(cohort.images["view"]) == {"AP": 3244, "PA": 1132}
    ages = [int(mined[name]["Patient Age"]) for name in read]
    expected = {
        "<40": sum(age < 40 for age in ages),
        "40-<60": sum(40 <= age < 60 for age in ages),
        "60-<80": sum(60 <= age < 80 for age in ages),
        ">=80": sum(age >= 80 for age in ages),
    }
    assert dict(cohort.images["age_band"].value_counts()) == expected
    assert cohort.n_impossible_ages == 0
    # The table of the radiologists keeps the ages of the first release; one of them is 155 years.
    assert cohort.n_impossible_ages_before == 1
    assert max(int(row["Patient Age"]) for row in read.values()) == 155
    changed = sum(row["Patient Age"] != mined[name]["Patient Age"] for name, row in read.items())
    assert cohort.n_ages_changed == changed == 1546


@needs_tables
@pytest.mark.parametrize("opacity", list(OPACITY))
def test_labels_are_those_of_the_tables(opacity, tables):
    read, mined = tables
    images = read_adjudicated(opacity).images
    for finding in FINDINGS.values():
        yes = [row[finding.title] == "YES" for row in read.values()]
        assert images[f"radiologist_{finding.name}"].tolist() == yes
        names = OPACITY[opacity] if finding.name == "airspace_opacity" else finding.mined
        if names:
            found = [bool(set(mined[image]["Finding Labels"].split("|")) & set(names)) for image in read]
            assert images[f"text_{finding.name}"].tolist() == found
            assert 0 < sum(found) < len(found)
        else:
            assert f"text_{finding.name}" not in images


@needs_tables
def test_radiologists_counts(cohort):
    # Counted in the released table, see test_labels_are_those_of_the_tables for every row.
    counts = {name: int(cohort.images[f"radiologist_{name}"].sum()) for name in FINDINGS}
    assert counts == {"fracture": 186, "pneumothorax": 238, "airspace_opacity": 2166, "nodule_or_mass": 605}


@needs_tables
def test_the_translation_uses_names_that_the_release_has(tables):
    _, mined = tables
    names = {name for row in mined.values() for name in row["Finding Labels"].split("|")}
    assert len(names - {"No Finding"}) == 14
    assert {name for finding in FINDINGS.values() for name in finding.mined} <= names
    assert set(OPACITY["narrow"]) < set(OPACITY["filled"]) < set(OPACITY["wide"]) <= names
    assert not any("racture" in name for name in names)
    assert FINDINGS["airspace_opacity"].mined == OPACITY["filled"]
    assert all(bool(finding.mined) != bool(finding.reason) for finding in FINDINGS.values())


@needs_tables
def test_patients_keep_their_images_and_lose_their_number(cohort, tables):
    read, _ = tables
    released = [row["Patient ID"] for row in read.values()]
    pairs = set(zip(released, cohort.images["patient"], strict=True))
    assert len(pairs) == cohort.n_patients
    assert [int(a) for a in released] != cohort.images["patient"].tolist()
    assert set(cohort.images["patient"]) == set(range(cohort.n_patients))


@needs_tables
def test_no_identifier_or_file_name_is_kept(cohort, tables):
    read, _ = tables
    text = cohort.images.to_csv() + " ".join(cohort.images.columns) + repr(cohort)
    assert ".png" not in text
    released = {f"{int(row['Patient ID']):08d}" for row in read.values()}
    assert released & set(re.findall(r"\d{8}", text)) == set()
    assert repr(cohort).startswith("AdjudicatedCohort(n_images=4376, ")
    assert list(cohort.images.index) == list(range(4376))


@needs_tables
def test_reading_imports_neither_the_package_nor_torch():
    code = (
        "import sys\nfrom frame.cohorts.adjudicated import read_adjudicated\nread_adjudicated()\n"
        "print({'torch', 'torchxrayvision'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "set()"


@needs_tables
def test_patients_in_two_views_can_be_left_out(cohort, tables):
    read, _ = tables
    views = {}
    for row in read.values():
        views.setdefault(row["Patient ID"], set()).add(row["View Position"])
    in_one = {patient for patient, found in views.items() if len(found) == 1}
    kept = patients_in_one(cohort, "view")
    assert kept.n_patients == len(in_one) == 1695 - 224
    assert kept.n_images == sum(row["Patient ID"] in in_one for row in read.values())
    assert kept.images.groupby("patient")["view"].nunique().max() == 1
    assert list(kept.images.index) == list(range(kept.n_images))
    with pytest.raises(InputError, match="attribute is 'site'; the images have patient, split"):
        patients_in_one(cohort, "site")


# --- ages ----------------------------------------------------------------------------------------------


def test_age_bands_are_half_open_and_impossible_ages_are_missing():
    ages = pd.Series(
        ["0", "39", "40", "59", "60", "79", "80", "95", "120", "121", "155", "414", "-1", "", "058Y"]
    )
    bands = age_band(ages)
    expected = ["<40", "<40", "40-<60", "40-<60", "60-<80", "60-<80", ">=80", ">=80", ">=80"]
    assert bands[:9].tolist() == expected
    assert bands[9:].isna().all()
    assert list(bands.cat.categories) == ["<40", "40-<60", "60-<80", ">=80"]


def test_fractions_of_a_year_fall_into_the_band_of_their_years():
    assert age_band(pd.Series([39.9, 59.99, 79.5])).tolist() == ["<40", "40-<60", "60-<80"]
    assert age_band(pd.Series([120.5])).isna().all()


# --- tables that are absent, damaged or do not agree -----------------------------------------------------

MINED = [
    ["Image Index", "Finding Labels", "Patient ID", "Patient Age", "Patient Gender", "View Position"],
    ["00090901_000.png", "Mass|Edema", "90901", "414", "F", "PA"],
    ["00090901_001.png", "No Finding", "90901", "50", "F", "AP"],
    ["00090902_000.png", "Pneumothorax", "90902", "80", "M", "AP"],
    ["00090903_000.png", "Nodule", "90903", "39", "M", "PA"],
]
READ = [
    [
        "Image Index", "Patient ID", "Patient Age", "Patient Gender", "View Position",
        "Fracture", "Pneumothorax", "Airspace opacity", "Nodule or mass", "Set Id",
    ],
    ["00090901_000.png", "90901", "155", "F", "PA", "NO", "NO", "YES", "YES", "test"],
    ["00090901_001.png", "90901", "50", "F", "AP", "YES", "NO", "NO", "NO", "test"],
    ["00090902_000.png", "90902", "79", "M", "AP", "NO", "YES", "NO", "NO", "val"],
]  # fmt: skip


def packed(rows):
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return gzip.compress(text.getvalue().encode())


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install a package of that name with given files; it comes before any other."""

    def install(files):
        info = tmp_path / "torchxrayvision-9.9.dist-info"
        data = tmp_path / "torchxrayvision" / "data"
        info.mkdir()
        data.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torchxrayvision\nVersion: 9.9\n")
        (tmp_path / "torchxrayvision" / "__init__.py").write_text("raise RuntimeError('imported')\n")
        for name, content in files.items():
            (data / name).write_bytes(content)
        record = "".join(f"torchxrayvision/data/{name},,\n" for name in files)
        (info / "RECORD").write_text(record)
        monkeypatch.syspath_prepend(str(tmp_path))

    return install


def both(mined=MINED, read=READ):
    return {adjudicated.MINED_TABLE: packed(mined), adjudicated.READ_TABLE: packed(read)}


def altered(table, row, column, value):
    copy = [list(cells) for cells in table]
    copy[row][copy[0].index(column)] = value
    return copy


def test_a_small_pair_of_tables_is_joined(installed):
    installed(both())
    cohort = read_adjudicated()
    assert (cohort.n_images, cohort.n_patients) == (3, 2)
    assert (cohort.n_impossible_ages, cohort.n_impossible_ages_before, cohort.n_ages_changed) == (1, 1, 2)
    images = cohort.images
    assert images["age_band"].isna().tolist() == [True, False, False]
    assert images["age_band"][1:].tolist() == ["40-<60", ">=80"]
    assert images["text_nodule_or_mass"].tolist() == [True, False, False]
    assert images["text_airspace_opacity"].tolist() == [True, False, False]
    assert images["radiologist_airspace_opacity"].tolist() == [True, False, False]
    assert read_adjudicated("narrow").images["text_airspace_opacity"].tolist() == [False, False, False]


def test_part_of_a_name_is_no_name(installed):
    installed(both(mined=altered(MINED, 3, "Finding Labels", "Massive|Tension Pneumothorax")))
    images = read_adjudicated().images
    assert not images["text_nodule_or_mass"][2]
    assert not images["text_pneumothorax"][2]


def test_a_missing_package_names_the_command(monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(InputError) as caught:
        read_adjudicated()
    assert str(caught.value) == (
        "The package torchxrayvision, whose files hold the NIH tables, is not installed; install it with: "
        "make env, or pip install --no-deps torchxrayvision==1.5.7."
    )


def test_the_command_names_the_locked_release():
    (lock,) = re.findall(
        r"^torchxrayvision==\S+", (ROOT / "requirements-tables.lock").read_text(), re.MULTILINE
    )
    assert adjudicated.INSTALL.endswith(f"--no-deps {lock}")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {adjudicated.MINED_TABLE: packed(MINED)},
            "The installed torchxrayvision 9.9 has no table google2019_nih-chest-xray-labels.csv.gz; "
            "install the release that has it: ",
        ),
        (
            both() | {adjudicated.READ_TABLE: b"no archive"},
            f"The table {adjudicated.READ_TABLE} of the installed torchxrayvision cannot be read "
            "(BadGzipFile); install it again: ",
        ),
        (
            both() | {adjudicated.READ_TABLE: packed(READ)[:-30]},
            f"The table {adjudicated.READ_TABLE} of the installed torchxrayvision cannot be read "
            "(EOFError); install it again: ",
        ),
        (
            both(mined=[row[1:] for row in MINED]),
            "The table Data_Entry_2017_v2020.csv.gz of the installed torchxrayvision cannot be read "
            "(ValueError); install it again: ",
        ),
        (
            both(read=[*READ, READ[1]]),
            "The table google2019_nih-chest-xray-labels.csv.gz of the installed torchxrayvision has 4 rows, "
            "1 of them for an image that is already there; one row per image is needed; install it again: ",
        ),
        (
            both(mined=MINED[:-2]),
            f"1 of 3 images of {adjudicated.READ_TABLE} are not in {adjudicated.MINED_TABLE}.",
        ),
        (
            both(read=altered(READ, 2, "Patient Gender", "M")),
            f"{adjudicated.READ_TABLE} and {adjudicated.MINED_TABLE} differ in Patient Gender for 1 images.",
        ),
        (
            both(read=altered(READ, 3, "Patient ID", "90904")),
            f"{adjudicated.READ_TABLE} and {adjudicated.MINED_TABLE} differ in Patient ID for 1 images.",
        ),
        (
            both(read=altered(READ, 1, "Fracture", "HEDGE")),
            "google2019_nih-chest-xray-labels.csv.gz: Fracture is neither YES nor NO for 1 images.",
        ),
    ],
    ids=["no table", "no archive", "cut off", "no column", "twice", "not joined", "sex", "patient", "hedge"],
)
def test_damaged_tables_are_refused_without_quoting_a_row(installed, files, message):
    installed(files)
    with pytest.raises(InputError) as caught:
        read_adjudicated()
    assert str(caught.value).startswith(message)
    # Neither an image, a patient nor a cell of theirs.
    assert not re.search(r"9090[1-4]|\.png", str(caught.value))


def test_an_unknown_translation_is_refused():
    with pytest.raises(InputError, match="opacity is 'broad'; it must be one of narrow, filled, wide"):
        read_adjudicated("broad")

"""Sheets of phantoms, and what a weak encoder reads from them."""

import io

import numpy as np
import pytest
from PIL import Image
from sklearn.metrics import roc_auc_score

from frame.cohorts.phantom.drawing import drawing_table, pictures
from frame.cohorts.phantom.truth import PhantomTruth, RacePlant
from frame.errors import InputError
from frame.figures.phantom_decoding import (
    BLOCKS,
    attribute_decodability,
    block_means,
    draw_cohort,
    finding_aurocs,
    head_scores,
    roc_area,
)
from frame.figures.phantom_gallery import KINDS, gallery_rows, phantom_sheet

TRUTH = PhantomTruth()


# ---- sheets


@pytest.mark.parametrize("kind", KINDS)
def test_a_sheet_shows_each_source_of_its_kind(kind):
    sheet = phantom_sheet(TRUTH, kind, n_images=7, side=32, columns=3)
    rows = gallery_rows(TRUTH, kind, 7)
    counts = rows["source"].value_counts()
    assert counts.sum() == 7
    assert counts.max() - counts.min() <= 1
    assert sheet.images.shape[:3] == (7, 32, 32)
    with Image.open(io.BytesIO(sheet.png())) as shown:
        assert shown.size == (96, 96)
    data, metadata = sheet._repr_mimebundle_()
    assert data["text/plain"] == repr(sheet)
    assert repr(sheet).startswith(f"Phantoms, drawn by a program, {kind}: 7 images of 32 pixels")
    assert metadata == {"image/png": {"width": 620}}
    assert np.asarray(sheet.picture())[64:, 32:].min() == 255  # a row that is not full ends in white


def test_halves_of_the_skin_types_do_not_overlap_and_have_each_type():
    light, dark = (set(gallery_rows(TRUTH, kind, 12)["tone"]) for kind in ("light skin", "dark skin"))
    assert (light, dark) == ({1, 2, 3}, {4, 5, 6})


def test_the_images_of_a_sheet_are_those_of_the_study():
    rows = gallery_rows(TRUTH, "fundus", 3)
    sheet = phantom_sheet(TRUTH, "fundus", n_images=3, side=64)
    assert sheet.images.tobytes() == pictures(drawing_table(TRUTH, rows), "fairvision", 64).tobytes()


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("chst", {}, "no sheet 'chst'; the sheets are chest, light skin"),
        ("fundus", {"n_images": 0}, "n_images is 0"),
        ("fundus", {"columns": 0}, "columns 0"),
        ("fundus", {"n_images": 5000}, "has 1,000 images of a source for fundus; 5,000 are asked"),
    ],
)
def test_what_is_wrong_with_a_sheet_is_a_sentence(kind, options, words):
    with pytest.raises(InputError, match=words):
        phantom_sheet(TRUTH, kind, **options)


# ---- block means and heads


@pytest.fixture(scope="module")
def cohort():
    return draw_cohort(TRUTH, ["mimic_cxr", "nih_cxr14"], 900)


def test_block_means_are_means_of_blocks():
    images = np.random.default_rng(0).integers(0, 256, (2, 32, 32), dtype=np.uint8)
    found = block_means(images).reshape(2, BLOCKS, BLOCKS)
    assert found[1, 3, 5] == pytest.approx(images[1, 6:8, 10:12].mean() / 255)


def test_roc_area_is_that_of_the_library():
    random = np.random.default_rng(1)
    labels, scores = random.random(200) < 0.3, random.integers(0, 20, 200).astype(float)
    assert roc_area(scores, labels) == pytest.approx(roc_auc_score(labels, scores))
    assert np.isnan(roc_area(scores, np.zeros(200, dtype=bool)))


def test_patients_are_whole_on_one_side(cohort):
    sides = cohort.table.assign(test=cohort.test).groupby(["source", "patient_number"])["test"].nunique()
    assert sides.max() == 1
    assert 0.3 < cohort.test.mean() < 0.5
    assert len(cohort.table) == len(cohort.features) == 900


def test_what_is_planted_is_decoded_and_nothing_else(cohort):
    found = attribute_decodability(cohort)
    by = found.set_index("attribute")["auroc"]
    assert by["race"].min() > 0.9
    assert by["view"] > 0.95
    assert by["site"] > 0.95
    assert 0.4 < by["sex"] < 0.6
    plain = PhantomTruth(race=RacePlant(texture="none"))
    without = attribute_decodability(draw_cohort(plain, ["mimic_cxr", "nih_cxr14"], 900))
    assert without.set_index("attribute")["auroc"]["race"].max() < 0.7


def test_findings_are_told_in_part(cohort):
    found = finding_aurocs(cohort, ["pleural_effusion", "cardiomegaly", "support_devices"])
    assert found["auroc"].between(0.7, 0.99).all()
    assert found["n_positive"].between(50, 200).all()


def test_a_head_does_not_see_the_rows_it_is_judged_on(cohort):
    labels = (cohort.table["view"] == "AP").to_numpy()
    one = head_scores(cohort.features, labels, ~cohort.test)
    other = head_scores(cohort.features, labels ^ cohort.test, ~cohort.test)
    np.testing.assert_array_equal(one, other)


def test_what_a_head_cannot_do_is_a_sentence(cohort):
    with pytest.raises(InputError, match="the same label; give more images"):
        head_scores(cohort.features, np.zeros(900, dtype=bool), ~cohort.test)
    with pytest.raises(InputError, match="side is 40; it must be a multiple of 16"):
        draw_cohort(TRUTH, ["mimic_cxr"], 10, side=40)
    with pytest.raises(InputError, match="n_images is 9,000; these sources have 2,600 images"):
        draw_cohort(TRUTH, ["mimic_cxr"], 9000)

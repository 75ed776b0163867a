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
    ENCODERS,
    MARKS,
    attribute_decodability,
    block_means,
    draw_cohort,
    finding_aurocs,
    gradient_means,
    head_scores,
    mark_decodability,
    roc_area,
)
from frame.figures.phantom_gallery import KINDS, gallery_rows, phantom_sheet

TRUTH = PhantomTruth()


# ---- sheets


@pytest.mark.parametrize("kind", KINDS)
def test_a_sheet_shows_each_source_of_its_kind(kind):
    sheet = phantom_sheet(TRUTH, kind, n_images=7, side=32, columns=3, reduced=1)
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


def test_a_reduced_sheet_is_the_drawing_in_fewer_pixels_and_greys():
    sheet = phantom_sheet(TRUTH, "chest", n_images=4, side=64, columns=2, reduced=2)
    assert sheet.picture().size == (128, 128)
    with Image.open(io.BytesIO(sheet.png())) as shown:
        found = np.asarray(shown.convert("L")).astype(float)
    whole = np.asarray(sheet.picture().reduce(2)).astype(float)
    assert found.shape == (64, 64)
    assert 10 < len(np.unique(found)) <= 30
    assert np.abs(found - whole).max() <= 255 / 29 / 2 + 1


def test_sixty_four_of_each_modality_can_be_shown():
    for kind in ("chest", "fundus"):
        assert len(gallery_rows(TRUTH, kind, 64)) == 64
    both = [gallery_rows(TRUTH, kind, 32) for kind in ("light skin", "dark skin")]
    assert [len(set(rows["image_id"])) for rows in both] == [32, 32]


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
        ("fundus", {"reduced": 0}, "reduced 0; all must be 1 or more"),
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


def test_gradient_means_are_means_of_products_of_gradients():
    images = np.random.default_rng(0).integers(0, 256, (2, 32, 32), dtype=np.uint8)
    found = gradient_means(images).reshape(2, 3, BLOCKS, BLOCKS)
    grey = images[1] / 255
    across = np.array([[grey[y, x + 1] - grey[y, x - 1] for x in (10, 11)] for y in (6, 7)])
    down = np.array([[grey[y + 1, x] - grey[y - 1, x] for x in (10, 11)] for y in (6, 7)])
    expected = [np.mean(across**2), np.mean(down**2), np.mean(across * down)]
    assert found[1, :, 3, 5] == pytest.approx(expected, rel=1e-5)


def test_gradient_means_see_a_grating_whatever_its_phase():
    angle = np.add.outer(np.arange(64) * 0.9, np.arange(64) * 1.3)
    waves = [np.round(128 + 20 * np.cos(angle + phase)).astype(np.uint8) for phase in (0.0, np.pi)]
    assert np.corrcoef(*block_means(np.stack(waves)))[0, 1] < -0.9
    assert np.corrcoef(*gradient_means(np.stack(waves)))[0, 1] > 0.99


def test_roc_area_is_that_of_the_library():
    random = np.random.default_rng(1)
    labels, scores = random.random(200) < 0.3, random.integers(0, 20, 200).astype(float)
    assert roc_area(scores, labels) == pytest.approx(roc_auc_score(labels, scores))
    assert np.isnan(roc_area(scores, np.zeros(200, dtype=bool)))


def test_patients_are_whole_on_one_side(cohort):
    sides = cohort.table.assign(test=cohort.test).groupby(["source", "patient_number"])["test"].nunique()
    assert sides.max() == 1
    assert 0.3 < cohort.test.mean() < 0.5
    assert len(cohort.table) == len(cohort.features["block_means"]) == 900
    assert list(cohort.features) == ["block_means"]


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


def test_a_mark_of_random_phase_is_seen_by_the_nonlinear_encoder_only():
    findings = ["pleural_effusion", "cardiomegaly", "support_devices"]
    found = mark_decodability(TRUTH, ["mimic_cxr", "nih_cxr14"], 700, findings).set_index("mark")
    assert tuple(found.index) == MARKS == ("fixed", "random_phase", "none")
    linear, nonlinear = (found[name] for name in ENCODERS)
    assert linear["fixed"] > 0.85
    assert abs(linear["random_phase"] - 0.5) < 0.1
    assert abs(linear["none"] - 0.5) < 0.1
    assert nonlinear["fixed"] > 0.85
    assert nonlinear["random_phase"] > 0.8
    assert abs(nonlinear["none"] - 0.5) < 0.1
    # The findings are told as well in all three worlds, in each group.
    groups = found[["largest_group", "other_groups"]]
    assert groups.min().min() > 0.75
    assert (groups.max() - groups.min()).max() < 0.02


def test_findings_are_told_in_part(cohort):
    found = finding_aurocs(cohort, ["pleural_effusion", "cardiomegaly", "support_devices"])
    assert found["auroc"].between(0.7, 0.99).all()
    assert found["n_positive"].between(50, 200).all()


def test_a_head_does_not_see_the_rows_it_is_judged_on(cohort):
    labels = (cohort.table["view"] == "AP").to_numpy()
    one = head_scores(cohort.features["block_means"], labels, ~cohort.test)
    other = head_scores(cohort.features["block_means"], labels ^ cohort.test, ~cohort.test)
    np.testing.assert_array_equal(one, other)


def test_what_a_head_cannot_do_is_a_sentence(cohort):
    with pytest.raises(InputError, match="the same label; give more images"):
        head_scores(cohort.features["block_means"], np.zeros(900, dtype=bool), ~cohort.test)
    with pytest.raises(InputError, match="side is 40; it must be a multiple of 16"):
        draw_cohort(TRUTH, ["mimic_cxr"], 10, side=40)
    with pytest.raises(InputError, match="n_images is 9,000; these sources have 2,600 images"):
        draw_cohort(TRUTH, ["mimic_cxr"], 9000)


def test_other_races_are_judged_within_each_race():
    """One race lies above the other: pairs across races do not count."""
    from frame.figures.phantom_decoding import _area_within

    labels = np.array([False, False, True, True, False, True, True])
    scores = np.array([1.0, 2.0, 3.0, 4.0, 15.0, 16.0, 14.0])
    groups = np.array(["a"] * 4 + ["b"] * 3, dtype=object)
    assert _area_within(scores, labels, groups) == pytest.approx((4 * 1.0 + 2 * 0.5) / 6)
    assert np.isnan(_area_within(scores, np.ones(7, dtype=bool), groups))

"""Drawing: the same bytes for any batch, the same anatomy at any size, findings that grow with severity."""

import numpy as np
import pandas as pd
import pytest

from frame.cohorts.phantom import chest, fundus, grain, seeds, skin, textures
from frame.errors import InputError

FINDINGS = chest.FINDINGS


def chest_table(n: int, *, severity: float | None = None, seed: int = 7, **columns) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    table = chest.draw_anatomy(seed, "trial", range(n))
    table["seed"] = seeds.column_of_seeds(seed, "trial", "image", range(n))
    table["view"] = np.where(np.arange(n) % 3 == 0, "AP", "PA")
    table["site_look"] = np.arange(n) % 6
    table["age"] = random.uniform(20, 90, n)
    for finding in FINDINGS:
        table[finding] = random.random(n) if severity is None else severity
    return table.assign(**columns)


def skin_table(n: int, **columns) -> pd.DataFrame:
    table = skin.draw_lesions(7, "trial", range(n))
    table["seed"] = seeds.column_of_seeds(7, "trial", "image", range(n))
    table["skin_tone"] = np.arange(n) % 6
    table["site_look"] = np.arange(n) % 3
    table["malignant"] = np.linspace(0, 1, n)
    return table.assign(**columns)


def fundus_table(n: int, **columns) -> pd.DataFrame:
    table = fundus.draw_eyes(7, "trial", range(n))
    table["seed"] = seeds.column_of_seeds(7, "trial", "image", range(n))
    table["pigment"] = np.linspace(0, 1, n)
    table["site_look"] = np.arange(n) % 2
    table["glaucoma"] = np.linspace(0, 1, n)
    return table.assign(**columns)


DRAWINGS = {
    "chest": (chest.draw_chest, chest_table),
    "skin": (skin.draw_skin, skin_table),
    "fundus": (fundus.draw_fundus, fundus_table),
}
MODALITIES = pytest.mark.parametrize("modality", list(DRAWINGS))


def block_means(images: np.ndarray, blocks: int) -> np.ndarray:
    n, side = images.shape[:2]
    size = side // blocks
    return images.reshape(n, blocks, size, blocks, size, -1).mean(axis=(2, 4))


@MODALITIES
@pytest.mark.parametrize("kind", textures.TEXTURES)
def test_bytes_do_not_depend_on_the_batch_or_the_order(modality, kind):
    draw, table_of = DRAWINGS[modality]
    table = table_of(18, texture=kind, texture_group=3)
    whole = draw(table, 64)
    alone = np.concatenate([draw(table.iloc[[k]], 64) for k in range(18)])
    sevens = np.concatenate([draw(table.iloc[k : k + 7], 64) for k in range(0, 18, 7)])
    assert whole.tobytes() == alone.tobytes() == sevens.tobytes()
    assert draw(table.iloc[::-1], 64)[::-1].tobytes() == whole.tobytes()
    assert len({image.tobytes() for image in whole}) == 18


@MODALITIES
def test_a_mapping_of_arrays_draws_what_the_frame_draws(modality):
    draw, table_of = DRAWINGS[modality]
    table = table_of(4)
    columns = {name: table[name].to_numpy() for name in table}
    assert draw(columns, 32).tobytes() == draw(table, 32).tobytes()


@MODALITIES
def test_the_anatomy_is_the_same_at_another_size(modality):
    draw, table_of = DRAWINGS[modality]
    table = table_of(24)
    small = block_means(draw(table, 64), 16).reshape(24, -1)
    large = block_means(draw(table, 192), 16).reshape(24, -1)
    # Grain averages out to well under a grey level in a block; edges of a pixel's width shift by part of one.
    assert np.abs(small - large).mean() < 2.0
    same = [np.corrcoef(a, b)[0, 1] for a, b in zip(small, large, strict=True)]
    other = [np.corrcoef(a, b)[0, 1] for a, b in zip(small, np.roll(large, 6, axis=0), strict=True)]
    assert min(same) > 0.97
    assert np.mean(other) < np.mean(same) - 0.01


@MODALITIES
@pytest.mark.parametrize("side", [16, 33, 64])
def test_no_image_is_constant_and_all_are_bytes(modality, side):
    draw, table_of = DRAWINGS[modality]
    images = draw(table_of(30), side)
    assert images.dtype == np.uint8
    assert images.shape[:3] == (30, side, side)
    grain.check_images(images)
    assert images.reshape(30, -1).std(axis=1).min() > 5


@pytest.mark.parametrize("bound", [-4.0, 4.0])
@pytest.mark.parametrize("severity", [0.0, 1.0])
def test_anatomy_at_its_limits_draws_numbers(bound, severity):
    table = chest_table(6, severity=severity).assign(**dict.fromkeys(chest.ANATOMY, bound))
    grain.check_images(chest.draw_chest(table.assign(age=[0.0, 120.0, np.nan, 1e9, 50.0, -3.0]), 48))
    lesions = skin_table(6, malignant=severity).assign(**dict.fromkeys(skin.LESION, bound))
    grain.check_images(skin.draw_skin(lesions, 48))
    eyes = fundus_table(6, glaucoma=severity).assign(**dict.fromkeys(fundus.EYE, bound))
    grain.check_images(fundus.draw_fundus(eyes, 48))


@pytest.mark.parametrize("finding", FINDINGS)
def test_a_finding_changes_more_of_the_image_the_more_severe_it_is(finding):
    healthy = chest_table(12, severity=0.0)
    before = chest.draw_chest(healthy, 64).astype(float)
    change = [
        np.abs(chest.draw_chest(healthy.assign(**{finding: severity}), 64) - before).mean(axis=(1, 2))
        for severity in (0.3, 0.6, 1.0)
    ]
    assert (change[0] > 0).all()
    assert change[0].mean() < change[1].mean() < change[2].mean()


def test_effusion_brightens_the_lower_lung_and_pneumothorax_darkens_the_upper():
    healthy = chest_table(40, severity=0.0, view="PA", site_look=0)
    before = chest.draw_chest(healthy, 64).astype(float)
    fluid = chest.draw_chest(healthy.assign(pleural_effusion=1.0), 64) - before
    air = chest.draw_chest(healthy.assign(pneumothorax=1.0), 64) - before
    assert fluid[:, 30:48, 6:58].mean() > 3
    assert np.abs(fluid[:, :12]).mean() < 0.2
    assert air[:, 8:24].min(axis=(1, 2)).mean() < -12


def test_contrast_weakens_every_finding_but_the_control():
    healthy = chest_table(8, severity=0.0)
    before = chest.draw_chest(healthy, 64).astype(float)
    for finding in FINDINGS:
        sick = healthy.assign(**{finding: 1.0})
        full = np.abs(chest.draw_chest(sick, 64) - before).mean()
        half = np.abs(chest.draw_chest(sick.assign(contrast=0.5), 64) - before).mean()
        if finding in chest.CONTROL_FINDINGS:
            assert half == full
        else:
            assert half < full


def test_age_shows_in_bone_and_nowhere_else():
    young = chest_table(10, severity=0.0, view="PA", site_look=0, age=25.0)
    change = chest.draw_chest(young.assign(age=85.0), 64).astype(float) - chest.draw_chest(young, 64)
    assert change.mean() < -0.5
    # The liver, below the ribs and beside the spine.
    assert np.abs(change[:, 54:, 10:24]).mean() < 0.3


def test_lesions_grow_and_cups_widen_with_severity():
    lesions = skin_table(24, malignant=0.0, skin_tone=1)
    before = skin.draw_skin(lesions, 64).astype(float)
    change = [np.abs(skin.draw_skin(lesions.assign(malignant=m), 64) - before).mean() for m in (0.3, 0.6, 1)]
    assert 0 < change[0] < change[1] < change[2]
    ratios = [fundus.cup_to_disc(0.0, 0.0, severity) for severity in (0, 0.25, 0.5, 1)]
    assert ratios == sorted(ratios)
    assert ratios[0] == pytest.approx(0.41)
    eyes = fundus_table(24, glaucoma=0.0)
    before = fundus.draw_fundus(eyes, 64).astype(float)
    change = [np.abs(fundus.draw_fundus(eyes.assign(glaucoma=g), 64) - before).mean() for g in (0.3, 0.6, 1)]
    assert 0 < change[0] < change[1] < change[2]


def test_skin_gets_darker_from_tone_to_tone():
    table = skin_table(30, malignant=0.0, site_look=0)
    means = [skin.draw_skin(table.assign(skin_tone=tone), 32).mean() for tone in range(6)]
    assert means == sorted(means, reverse=True)


@pytest.mark.parametrize("kind", ["linear", "random_phase"])
@pytest.mark.parametrize("modality", list(DRAWINGS))
def test_the_texture_adds_a_grating_of_its_amplitude_and_nothing_else(kind, modality):
    draw, table_of = DRAWINGS[modality]
    table = table_of(12)
    plain = draw(table, 64).astype(float)
    marked = draw(table.assign(texture=kind, texture_group=2, texture_amplitude=0.02), 64).astype(float)
    added = marked - plain
    free = (plain > 8) & (plain < 247) & (marked > 8) & (marked < 247)
    # A wave of amplitude a has the deviation a / sqrt 2; rounding adds 1/6 to the variance of a difference.
    expected = np.hypot(0.02 * 255 / np.sqrt(2), np.sqrt(1 / 6))
    assert added[free].std() == pytest.approx(expected, rel=0.06)
    assert np.abs(added).max() <= 0.02 * 255 + 1


def test_the_linear_texture_has_a_fixed_phase_and_the_other_has_none():
    frame = grain.make_frame(64)
    random = np.random.default_rng(5)
    fixed = np.stack([textures.texture(frame, "linear", 1, 1.0, random) for _ in range(5)])
    assert np.array_equal(fixed[0], fixed[-1])
    free = np.stack([textures.texture(frame, "random_phase", 1, 1.0, random) for _ in range(800)])
    # The mean over phases is 0, with a standard error of 1 / sqrt(2 n) = .025 in each pixel.
    assert np.abs(free.mean(axis=0)).max() < 0.1
    assert free.std() == pytest.approx(np.sqrt(0.5), rel=0.02)
    # Averaged over 16 by 16 blocks the random-phase texture all but disappears.
    assert block_means(free[:40], 16).std() < 0.12


def test_gratings_of_the_groups_are_orthogonal():
    for frequencies in (textures.FREQUENCIES, textures.RANDOM_FREQUENCIES):
        assert len(set(frequencies)) == textures.N_GROUPS == 5
    frame = grain.make_frame(64)
    random = np.random.default_rng(5)
    waves = np.stack([textures.texture(frame, "linear", k, 1.0, random).ravel() for k in range(5)])
    overlap = np.corrcoef(waves) - np.eye(5)
    assert np.abs(overlap).max() < 0.1


def test_seeds_are_named_and_streams_are_apart():
    assert seeds.seed_of(1, "a", "image", 0) == seeds.seed_of(1, "a", "image", 0)
    names = [
        (s, c, k, n) for s in (1, 2) for c in ("a", "b") for k in ("image", "patient") for n in range(50)
    ]
    values = [seeds.seed_of(*name) for name in names]
    assert len(set(values)) == len(names)
    assert all(0 <= value <= seeds.LARGEST_SEED for value in values)
    first, second = (seeds.stream(values[0], purpose).random(200) for purpose in ("one", "two"))
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.3
    assert np.array_equal(first, seeds.stream(values[0], "one").random(200))


def test_patients_do_not_depend_on_their_neighbours():
    for draw in (chest.draw_anatomy, skin.draw_lesions, fundus.draw_eyes):
        whole = draw(3, "c", range(20))
        part = draw(3, "c", [7, 11])
        pd.testing.assert_frame_equal(whole.iloc[[7, 11]].reset_index(drop=True), part)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"view": "LL"}, "Column view of the drawing table is none of AP, PA in 3 rows."),
        ({"edema": 1.5}, "Column edema of the drawing table is outside 0 to 1 in 3 rows."),
        ({"edema": np.nan}, "Column edema of the drawing table is outside 0 to 1 in 3 rows."),
        ({"site_look": 9}, "Column site_look of the drawing table is outside 0 to 5 in 3 rows."),
        ({"seed": 0.5}, "Column seed of the drawing table holds values that are not numbers of its kind."),
        ({"texture": "dots"}, "texture is 'dots'; it must be one of none, linear, random_phase."),
        ({"texture_group": 5}, "texture_group is 5; it must lie between 0 and 4."),
    ],
    ids=["view", "severity", "missing", "look", "seed", "texture", "group"],
)
def test_a_wrong_table_is_a_sentence(change, message):
    with pytest.raises(InputError) as caught:
        chest.draw_chest(chest_table(3).assign(**change), 32)
    assert str(caught.value) == message


def test_a_missing_column_and_a_wrong_side_are_sentences():
    with pytest.raises(InputError, match=r"^The drawing table has no column seed, view\.$"):
        chest.draw_chest(chest_table(2).drop(columns=["seed", "view"]), 32)
    with pytest.raises(
        InputError, match=r"^side is 8; it must be a whole number of pixels from 16 to 512\.$"
    ):
        chest.draw_chest(chest_table(2), 8)


@MODALITIES
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_an_image_with_values_that_are_no_numbers_is_not_given_out(modality, value, monkeypatch):
    """One pixel goes wrong in the arithmetic: nothing is returned, so nothing can be written."""
    draw, table_of = DRAWINGS[modality]
    module = {"chest": chest, "skin": skin, "fundus": fundus}[modality]
    right = module.blurred

    def wrong(values, share):
        found = right(values, share)
        found[..., 3, 3] = value
        return found

    monkeypatch.setattr(module, "blurred", wrong)
    with pytest.raises(grain.DrawingDefect, match="no numbers"):
        draw(table_of(3), 32)


@MODALITIES
def test_a_constant_image_is_not_given_out(modality, monkeypatch):
    draw, table_of = DRAWINGS[modality]
    module = {"chest": chest, "skin": skin, "fundus": fundus}[modality]
    monkeypatch.setattr(module, "as_bytes", lambda grey: grain.as_bytes(np.full_like(grey, 0.4)))
    with pytest.raises(grain.DrawingDefect, match="constant"):
        draw(table_of(3), 32)


def test_a_defect_is_raised_before_anything_is_written():
    with pytest.raises(grain.DrawingDefect, match="no numbers"):
        grain.as_bytes(np.full((4, 4), np.nan, dtype=np.float32))
    with pytest.raises(grain.DrawingDefect, match="constant"):
        grain.as_bytes(np.full((4, 4), 0.3, dtype=np.float32))
    flat = np.zeros((2, 32, 32), dtype=np.uint8)
    flat[0] = np.arange(1024).reshape(32, 32) % 256
    with pytest.raises(grain.DrawingDefect, match="1 of 2 drawn images have fewer than 16 grey levels"):
        grain.check_images(flat)

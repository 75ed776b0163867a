"""Prepared values: right for each encoder, and refused where they were scaled in another way."""

import io
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from frame.cohorts.pixels import decode_pixels
from frame.encoders.panel import encoder, encoders
from frame.encoders.preprocessing import IMAGENET_MEAN, IMAGENET_STD, preprocessing_of
from frame.errors import InputError

NAMES = ("rad_dino", "densenet_121", "siglip2_l", "flair", "block_means")


def drawn(n=2, height=32, width=32, colour=False, seed=0):
    shape = (n, height, width, 3) if colour else (n, height, width)
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def of(name, mode="shared", **changes):
    return replace(preprocessing_of(encoder(name), mode), **({"size": 0} | changes))


def test_shared_values_are_imagenet_s():
    pixels = drawn(colour=True)
    found = of("rad_dino").prepare(pixels)
    wanted = (pixels / 255 - np.array(IMAGENET_MEAN)) / np.array(IMAGENET_STD)
    assert found.dtype == np.float32
    assert found.shape == (2, 3, 32, 32)
    assert np.abs(found - wanted.transpose(0, 3, 1, 2)).max() < 1e-6


def test_a_grey_image_is_repeated_and_each_channel_has_its_own_statistics():
    pixels = drawn()
    found = of("rad_dino").prepare(pixels)
    wanted = (pixels[:, None] / 255 - np.array(IMAGENET_MEAN)[:, None, None]) / np.array(IMAGENET_STD)[
        :, None, None
    ]
    assert np.abs(found - wanted).max() < 1e-6


def test_the_densenet_takes_one_channel_between_minus_and_plus_1024():
    pixels = drawn()
    found = of("densenet_121").prepare(pixels)
    assert found.shape == (2, 1, 32, 32)
    assert np.abs(found[:, 0] - (2 * (pixels / 255) - 1) * 1024).max() < 1e-3
    colour = drawn(colour=True)
    grey = np.stack([np.asarray(Image.fromarray(one).convert("L")) for one in colour])
    assert np.array_equal(of("densenet_121").prepare(colour), of("densenet_121").prepare(grey))


def test_resizing_and_cropping_are_pillow_s():
    pixels = drawn(height=40, width=60, colour=True)
    found = replace(preprocessing_of(encoder("dinov2_vit_l"), "native"), size=28, resize=32).prepare(pixels)
    first = Image.fromarray(pixels[0]).resize((48, 32), Image.Resampling.BICUBIC)
    wanted = np.asarray(first.crop((10, 2, 38, 30))) / 255
    assert found.shape == (2, 3, 28, 28)
    assert np.abs(found[0].transpose(1, 2, 0) - (wanted - IMAGENET_MEAN) / IMAGENET_STD).max() < 1e-5


def test_stored_images_of_the_right_size_are_not_resampled():
    pixels = drawn(n=1, height=224, width=224)
    found = preprocessing_of(encoder("clip_vit_l")).prepare(pixels)
    back = (found[0, 0] * IMAGENET_STD[0] + IMAGENET_MEAN[0]) * 255
    assert np.abs(back - pixels[0]).max() < 1e-3


def test_native_is_the_release_s_own():
    pixels = drawn(n=1, height=224, width=224)
    assert preprocessing_of(encoder("siglip2_l"), "native").prepare(pixels).shape == (1, 3, 512, 512)
    assert preprocessing_of(encoder("flair"), "native").range == (0.0, 1.0)
    assert preprocessing_of(encoder("siglip2_l"), "native").range == (-1.0, 1.0)


def test_a_digest_changes_with_whatever_changes_values():
    declared = preprocessing_of(encoder("rad_dino"))
    changed = [
        replace(declared, size=112),
        replace(declared, resize=256),
        replace(declared, resampling="bilinear"),
        replace(declared, channels=1),
        replace(declared, low=-1.0),
        replace(declared, high=2.0),
        replace(declared, mean=None),
        replace(declared, std=(1.0, 1.0, 1.0)),
        replace(declared, mode="native"),
    ]
    assert len({declared.sha256, *(one.sha256 for one in changed)}) == 10
    assert replace(declared, encoder="flair").sha256 == declared.sha256


# -- one picture in many forms ------------------------------------------------------------------------


def png(array):
    content = io.BytesIO()
    Image.fromarray(array).save(content, "PNG")
    return content.getvalue()


@pytest.mark.parametrize("name", NAMES)
def test_one_picture_as_8_bit_16_bit_and_inverted_gives_the_same_values(name):
    """Files go through the reader of images, which ends in 8-bit pixels from the darkest to the brightest."""
    pytest.importorskip("pydicom", reason="inverted images are DICOM files")
    from pydicom.uid import ExplicitVRLittleEndian

    picture = drawn(n=1, seed=4)[0]
    picture[0, :2] = 0, 255
    files = {
        "8 bits": png(picture),
        "16 bits": png(picture.astype(np.uint16) * 257),
        "12 of 16 bits": png(picture.astype(np.uint16) * 16),
        "inverted": dicom(65535 - picture.astype(np.uint16) * 257, ExplicitVRLittleEndian),
    }
    prepared = {kind: of(name).prepare(decode_pixels(content, "L")[None]) for kind, content in files.items()}
    for kind, found in prepared.items():
        assert np.array_equal(found, prepared["8 bits"]), kind


def dicom(array, syntax):
    import pydicom
    from pydicom.dataset import FileDataset, FileMetaDataset

    meta = FileMetaDataset()
    meta.TransferSyntaxUID = syntax
    meta.MediaStorageSOPClassUID = "1.2.840.10008.5.1.4.1.1.1.1"
    meta.MediaStorageSOPInstanceUID = "1.2.3"
    data = FileDataset("", {}, file_meta=meta, preamble=b"\0" * 128)
    data.SOPClassUID, data.SOPInstanceUID = meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID
    data.Rows, data.Columns = array.shape
    data.SamplesPerPixel, data.PixelRepresentation = 1, 0
    data.BitsAllocated = data.BitsStored = 16
    data.HighBit, data.PhotometricInterpretation = 15, "MONOCHROME1"
    data.PixelData = array.tobytes()
    content = io.BytesIO()
    pydicom.dcmwrite(content, data, enforce_file_format=True)
    return content.getvalue()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("kind", "scaled"),
    [
        ("uint16", lambda pixels: pixels.astype(np.uint16) * 257),
        ("float32", lambda pixels: (pixels / 255).astype(np.float32)),
        ("float64", lambda pixels: pixels / 255),
        ("int64", lambda pixels: pixels.astype(np.int64)),
        ("bool", lambda pixels: pixels > 100),
    ],
    ids=["uint16", "float32", "float64", "int64", "bool"],
)
def test_stored_pixels_of_another_type_are_refused(name, kind, scaled):
    with pytest.raises(
        InputError, match=f"Encoder {name}: a batch holds {kind} values from .*uint8 from 0 to 255"
    ):
        of(name).prepare(scaled(drawn()))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "wrong",
    [
        lambda raw, right: raw / 255 * 0.9 + 0.05,
        lambda raw, right: raw * 1.0,
        lambda raw, right: raw * 257.0,
        lambda raw, right: right * 1.5 + 0.3,
        lambda raw, right: np.where(right == right.max(), np.nan, right),
        lambda raw, right: np.where(right == right.max(), np.inf, right),
    ],
    ids=["near [0, 1]", "[0, 255]", "16 bits", "standardised twice", "NaN", "infinite"],
)
def test_values_that_were_scaled_in_another_way_are_refused(name, wrong):
    declared = of(name)
    pixels = drawn(seed=2)
    right = declared.prepare(pixels)
    raw = np.repeat(pixels[:, None], declared.channels, axis=1).astype(np.float64)
    declared.check_range(right)
    low, high = declared.range
    with pytest.raises(
        InputError, match=f"Encoder {name} takes .*{low:.4g} to {high:.4g}.*shared preprocessing"
    ):
        declared.check_range(wrong(raw, right).astype(np.float32))


@pytest.mark.parametrize("name", ["rad_dino", "densenet_121", "siglip2_l"])
def test_values_from_0_to_1_are_refused_although_they_lie_in_the_range(name):
    declared = of(name)
    batch = np.repeat(drawn()[:, None], declared.channels, axis=1) / np.float32(255)
    low, high = declared.range
    assert low < batch.min() < batch.max() < high
    with pytest.raises(InputError, match=f"Encoder {name} .* was scaled in another way"):
        declared.check_range(batch)


def test_the_values_of_one_encoder_are_refused_by_another():
    pixels = drawn(seed=5)
    refused = 0
    for giver in ("rad_dino", "clip_vit_l", "siglip2_l", "flair"):
        for taker in ("rad_dino", "clip_vit_l", "siglip2_l", "flair"):
            if giver == taker:
                continue
            with pytest.raises(InputError, match=f"Encoder {taker} takes"):
                of(taker, "native").check_range(of(giver, "native").prepare(pixels))
            refused += 1
    assert refused == 12


@pytest.mark.parametrize("name", NAMES)
def test_half_precision_passes_and_its_errors_do_not(name):
    torch = pytest.importorskip("torch", reason="half precision is torch's")
    declared = of(name)
    right = torch.from_numpy(declared.prepare(drawn(seed=6)))
    for kind in (torch.float32, torch.float16, torch.bfloat16):
        declared.check_range(right.to(kind))
    shifted = right + 0.45 * float(np.diff(declared.levels[0, :2])[0])
    for kind in (torch.float32, torch.float16):
        with pytest.raises(InputError, match=f"Encoder {name} takes"):
            declared.check_range(shifted.to(kind))
    with pytest.raises(InputError, match="holds int32 values"):
        declared.check_range(right.to(torch.int32))


def test_shapes_are_checked():
    declared = preprocessing_of(encoder("rad_dino"))
    with pytest.raises(InputError, match=r"shape \(2, 3, 32, 32\); it must be \(n, 3, 224, 224\)"):
        declared.check_range(np.zeros((2, 3, 32, 32), np.float32))
    with pytest.raises(InputError, match=r"shape \(2, 1, 224, 224\)"):
        declared.check_range(np.zeros((2, 1, 224, 224), np.float32))
    with pytest.raises(InputError, match=r"shape \(32, 32\); it must be \(n, height, width\)"):
        declared.prepare(np.zeros((32, 32), np.uint8))
    with pytest.raises(InputError, match=r"shape \(1, 32, 32, 4\)"):
        declared.prepare(np.zeros((1, 32, 32, 4), np.uint8))
    assert of("rad_dino").prepare(np.zeros((0, 32, 32), np.uint8)).shape == (0, 3, 32, 32)


@pytest.mark.parametrize("name", encoders())
@pytest.mark.parametrize("value", [0, 128, 255])
def test_a_constant_image_is_no_mistake(name, value):
    declared = of(name)
    declared.check_range(declared.prepare(np.full((1, 16, 16), value, np.uint8)))


@given(st.integers(0, 2**32 - 1), st.sampled_from(list(encoders())), st.sampled_from(["shared", "native"]))
def test_whatever_is_prepared_passes_its_own_check(seed, name, mode):
    declared = of(name, mode)
    pixels = drawn(n=1, height=9, width=11, colour=seed % 2 == 0, seed=seed)
    prepared = declared.prepare(pixels)
    declared.check_range(prepared)
    low, high = declared.range
    assert low <= prepared.min() <= prepared.max() <= high

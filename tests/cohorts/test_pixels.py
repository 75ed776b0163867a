"""Image files to 8-bit pixels: depths, palettes, colours, orientation, DICOM, and all that is unreadable."""

import io
import os
import struct
import subprocess
import sys
import warnings
import zlib
from pathlib import Path

import numpy as np
import pydicom
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFile
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, JPEGLosslessSV1

from frame.cohorts import pixels
from frame.cohorts.pixels import REASONS, UnreadableImage, decode_pixels, read_pixels, resize_and_crop
from frame.errors import InputError

DAMAGED = "the file is truncated or damaged"
CONSTANT = "every pixel has the same value"


def picture(height=60, width=80, seed=0):
    """A smooth grey picture that uses every value from 0 to 255."""
    rough = np.random.default_rng(seed).integers(0, 256, (7, 9), dtype=np.uint8)
    smooth = np.asarray(Image.fromarray(rough).resize((width, height), Image.Resampling.BICUBIC), dtype=float)
    return np.rint((smooth - smooth.min()) / np.ptp(smooth) * 255).astype(np.uint8)


def encoded(image, kind="PNG", **options):
    file = io.BytesIO()
    (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(file, kind, **options)
    return file.getvalue()


def archive(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def dicom(array, *, bits=None, photometric="MONOCHROME2", syntax=ExplicitVRLittleEndian, **elements):
    """A DICOM file of one image; ``None`` for ``array`` leaves the pixels out."""
    data = Dataset()
    data.file_meta = FileMetaDataset()
    data.file_meta.TransferSyntaxUID = syntax
    data.SOPClassUID, data.SOPInstanceUID = "1.2.840.10008.5.1.4.1.1.1.1", "1.2.3"
    data.file_meta.MediaStorageSOPClassUID = data.SOPClassUID
    data.file_meta.MediaStorageSOPInstanceUID = data.SOPInstanceUID
    shape = (4, 4) if array is None else array.shape
    itemsize = 2 if array is None else array.itemsize
    data.Rows, data.Columns = shape[:2]
    data.SamplesPerPixel = 3 if len(shape) == 3 else 1
    if len(shape) == 3:
        data.PlanarConfiguration = 0
    data.BitsAllocated = 8 * itemsize
    data.BitsStored = bits or data.BitsAllocated
    data.HighBit = data.BitsStored - 1
    data.PixelRepresentation = int(array is not None and array.dtype.kind == "i")
    data.PhotometricInterpretation = photometric
    for name, value in elements.items():
        setattr(data, name, value)
    if array is not None:
        data.PixelData = array.tobytes()
        data["PixelData"].VR = "OB" if itemsize == 1 else "OW"
    file = io.BytesIO()
    data.save_as(file, enforce_file_format=True)
    return file.getvalue()


def reason_of(content, kind="L"):
    with pytest.raises(UnreadableImage) as caught:
        decode_pixels(content, kind)
    assert caught.value.reason in REASONS
    return caught.value.reason


# --- the same picture in every form


def test_one_picture_in_five_depths_gives_one_result():
    """bad_inputs 18: 8 bits, 16 bits, 12 bits in 16, floating point, and MONOCHROME1."""
    grey = picture()
    deep = grey.astype(np.uint16)
    forms = {
        "8-bit PNG": encoded(grey),
        "16-bit PNG": encoded(deep * 257),
        "12 bits in a 16-bit PNG": encoded(deep * 16),
        "DICOM of 12 bits": dicom(deep * 16, bits=12),
        "MONOCHROME1": dicom((255 - deep) * 257, photometric="MONOCHROME1"),
        "rescaled": dicom(deep * 16, bits=12, RescaleSlope="2", RescaleIntercept="-1024"),
        "floating point": archive(slo_fundus=grey / 255),
    }
    for name, content in forms.items():
        read = decode_pixels(content, "L")
        assert read.dtype == np.uint8, name
        assert np.abs(read.astype(int) - grey).max() <= 1, name


def test_an_8_bit_picture_is_not_stretched():
    grey = picture() // 4 + 60
    assert np.array_equal(decode_pixels(encoded(grey), "L"), grey)
    assert np.array_equal(decode_pixels(archive(slo_fundus=grey), "L"), grey)


def test_a_16_bit_picture_goes_from_0_to_255():
    read = decode_pixels(encoded(picture().astype(np.uint16) + 500), "L")
    assert (read.min(), read.max()) == (0, 255)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA"])
def test_every_png_mode_is_what_it_shows(mode):
    grey = picture()
    if mode == "1":
        grey = np.where(grey > 127, 255, 0).astype(np.uint8)
    content = encoded(Image.fromarray(grey).convert(mode))
    assert np.array_equal(decode_pixels(content, "L"), grey)
    colour = decode_pixels(content, "RGB")
    assert colour.shape == (60, 80, 3)
    assert all(np.array_equal(colour[..., band], grey) for band in range(3))


def test_a_palette_is_looked_up_also_with_transparency():
    image = Image.new("P", (4, 4), 0)
    image.putpalette([250, 10, 10, 10, 10, 240])
    image.putpixel((1, 2), 1)
    expected = np.full((4, 4, 3), [250, 10, 10], dtype=np.uint8)
    expected[2, 1] = [10, 10, 240]
    for options in ({}, {"transparency": bytes([0, 255])}, {"transparency": 0}):
        assert np.array_equal(decode_pixels(encoded(image, **options), "RGB"), expected)


def test_transparent_pixels_keep_their_colour():
    grey = picture()
    faint = np.dstack([grey, grey, grey, np.full_like(grey, 3)])
    assert np.array_equal(decode_pixels(encoded(faint), "L"), grey)


def test_a_cmyk_jpeg_looks_as_it_should():
    colours = np.dstack([picture(seed=1), picture(seed=2), picture(seed=3)])
    content = encoded(Image.fromarray(colours).convert("CMYK"), "JPEG", quality=98, subsampling=0)
    assert np.abs(decode_pixels(content, "RGB").astype(int) - colours).mean() < 4


def test_a_grey_jpeg_as_colour_and_a_colour_jpeg_as_grey():
    grey = picture()
    assert (
        np.abs(decode_pixels(encoded(grey, "JPEG", quality=98), "RGB")[..., 1].astype(int) - grey).max() < 9
    )
    colour = encoded(np.dstack([grey, grey, grey]), "JPEG", quality=98)
    assert np.abs(decode_pixels(colour, "L").astype(int) - grey).max() < 9


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_the_exif_orientation_is_applied(orientation, kind):
    upright = picture()
    turned = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.T,
        6: upright.T[::-1],
        7: upright[::-1, ::-1].T,
        8: upright.T[:, ::-1],
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    content = encoded(
        np.ascontiguousarray(turned), kind, exif=exif, **({"quality": 98} if kind == "JPEG" else {})
    )
    read = decode_pixels(content, "L")
    assert read.shape == upright.shape
    assert np.abs(read.astype(int) - upright).max() < 9


def test_an_exif_block_that_cannot_be_read_says_nothing():
    grey = picture()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's own on the block
        read = decode_pixels(encoded(grey, exif=b"Exif\x00\x00II*\x00garbage"), "L")
    assert np.array_equal(read, grey)


# --- DICOM


def test_a_window_is_applied():
    ramp = np.arange(4096, dtype=np.uint16).reshape(64, 64)
    read = decode_pixels(dicom(ramp, bits=12, WindowCenter="1000", WindowWidth="400"), "L")
    assert (read[ramp < 800] == 0).all()
    assert (read[ramp > 1200] == 255).all()
    assert abs(int(read[ramp == 1000][0]) - 128) <= 1
    several = decode_pixels(dicom(ramp, bits=12, WindowCenter=["1000", "9"], WindowWidth=["400", "9"]), "L")
    assert np.array_equal(several, read)


@pytest.mark.parametrize("width", ["0", "-5", ""])
def test_an_impossible_window_is_left_out(width):
    ramp = np.arange(4096, dtype=np.uint16).reshape(64, 64)
    plain = decode_pixels(dicom(ramp, bits=12), "L")
    assert np.array_equal(
        decode_pixels(dicom(ramp, bits=12, WindowCenter="9", WindowWidth=width), "L"), plain
    )


def test_signed_values_and_unused_bits():
    grey = picture()
    signed = grey.astype(np.int16) * 4 - 512
    assert np.abs(decode_pixels(dicom(signed), "L").astype(int) - grey).max() <= 1
    noisy = grey.astype(np.uint16) * 16 + np.uint16(0x3000)  # an overlay in the bits that are not stored
    assert np.abs(decode_pixels(dicom(noisy, bits=12), "L").astype(int) - grey).max() <= 1


def test_a_dicom_photograph():
    colours = np.dstack([picture(seed=1), picture(seed=2), picture(seed=3)])
    content = dicom(colours, photometric="RGB")
    assert np.array_equal(decode_pixels(content, "RGB"), colours)
    assert decode_pixels(content, "L").shape == (60, 80)


def test_dicom_files_that_hold_no_readable_image():
    grey = picture()
    assert reason_of(dicom(None)) == "the DICOM file holds no pixels"
    frames = dicom(np.vstack([grey, grey]), NumberOfFrames=2, Rows=60)
    assert reason_of(frames) == "the DICOM file holds several images"
    assert reason_of(dicom(grey)[:-2000]) == DAMAGED
    assert reason_of(dicom(grey, photometric="PALETTE COLOR")) == "the pixels are of an unknown kind"
    assert reason_of(dicom(np.full((8, 8), 7, np.uint16), photometric="MONOCHROME1")) == CONSTANT
    assert reason_of(dicom(grey, Rows=60000, Columns=60000)) == "the image has more than 100 million pixels"
    assert reason_of(dicom(None)[:140]) in (DAMAGED, "the DICOM file holds no pixels")


def test_a_compression_that_nothing_here_decodes(monkeypatch):
    from pydicom.encaps import encapsulate
    from pydicom.pixels.decoders.base import get_decoder

    monkeypatch.setattr(get_decoder(JPEGLosslessSV1), "_available", {})
    content = dicom(None, syntax=JPEGLosslessSV1, PixelData=encapsulate([b"\xff\xd8\xff\xd9"]))
    assert reason_of(content) == "the DICOM compression cannot be decoded here"


def test_a_dicom_value_that_breaks_the_standard_is_not_quoted(capfd):
    with pydicom.config.disable_value_validation():
        content = dicom(picture(), PatientAge="XYZQ9CANARY", StudyInstanceUID="not.a.uid.CANARY")
    decode_pixels(content, "L")  # a warning would be an error here
    assert "CANARY" not in "".join(capfd.readouterr())


# --- archives


def test_archives_without_a_fundus_image():
    assert reason_of(archive(oct_bscans=picture())) == "the archive holds no fundus image"
    assert reason_of(archive(slo_fundus=np.array(["a", "b"]))) == "the pixels are of an unknown kind"
    assert reason_of(archive(slo_fundus=np.array([{}], dtype=object))) == DAMAGED
    assert reason_of(archive(slo_fundus=np.full((3, 3), np.nan))) == "the pixels are of an unknown kind"
    assert reason_of(archive(slo_fundus=np.zeros((2, 2, 5)))) == "the pixels are of an unknown kind"
    assert reason_of(archive(slo_fundus=picture())[:-40]) == DAMAGED


def test_an_archive_that_claims_to_be_huge_takes_no_memory():
    import zipfile

    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**7, 10**7)}
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as claims:
        claims.writestr("slo_fundus.npy", header.getvalue())
    assert reason_of(file.getvalue()) == DAMAGED


# --- what cannot be read


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
@pytest.mark.parametrize("share", [0.3, 0.7, 0.95])
def test_a_truncated_picture_is_refused(kind, share):
    noise = np.random.default_rng(0).integers(0, 256, (200, 200), dtype=np.uint8)
    content = encoded(noise, kind)
    assert reason_of(content[: int(share * len(content))]) == DAMAGED


@given(
    kind=st.sampled_from(["PNG", "JPEG", "npz", "DICOM"]),
    where=st.floats(0, 1, exclude_max=True),
    junk=st.binary(min_size=1, max_size=6),
    cut=st.booleans(),
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_damage_of_any_kind_gives_pixels_or_a_reason(kind, where, junk, cut):
    content = {
        "PNG": lambda: encoded(picture()),
        "JPEG": lambda: encoded(picture(), "JPEG"),
        "npz": lambda: archive(slo_fundus=picture()),
        "DICOM": lambda: dicom(picture().astype(np.uint16)),
    }[kind]()
    at = int(where * len(content))
    damaged = content[:at] if cut else content[:at] + junk + content[at + len(junk) :]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pydicom's on what it repairs
        try:  # the reason is one of the list, or the error could not be made
            read = decode_pixels(damaged, "L")
        except UnreadableImage:
            return
    assert read.dtype == np.uint8
    assert read.min() < read.max()


def test_half_an_image_never_passes_for_a_whole_one(monkeypatch):
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    with pytest.raises(InputError, match="LOAD_TRUNCATED_IMAGES is on"):
        decode_pixels(encoded(picture()), "L")


def test_files_that_are_no_image(tmp_path):
    def reason(name, content):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(UnreadableImage) as caught:
            read_pixels(path, "L")
        return caught.value.reason

    assert reason("empty.png", b"") == "the file is empty"
    page = b"<!DOCTYPE html><html><body>404 Not Found</body></html>"
    assert reason("page.jpg", page) == "the file is neither PNG, JPEG, DICOM nor npz"
    assert reason("bitmap.png", encoded(picture(), "BMP")) == "the file is neither PNG, JPEG, DICOM nor npz"
    assert reason("black.png", encoded(np.zeros((9, 9), np.uint8))) == CONSTANT
    assert reason("white.jpg", encoded(np.full((9, 9, 3), 255, np.uint8), "JPEG")) == CONSTANT
    assert reason("flat.png", encoded(np.full((9, 9), 40_000, np.uint16))) == CONSTANT
    (tmp_path / "named.jpg").write_bytes(encoded(picture()))
    assert read_pixels(tmp_path / "named.jpg", "L").shape == (60, 80)  # a PNG under another name


def test_what_is_no_file_is_neither_read_nor_waited_for(tmp_path):
    def reason(path):
        with pytest.raises(UnreadableImage) as caught:
            read_pixels(path, "L")
        return caught.value.reason

    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "loop.png").symlink_to(tmp_path / "loop.png")
    descriptors = Path("/proc/self/fd")
    open_before = len(list(descriptors.iterdir())) if descriptors.is_dir() else 0
    assert reason(tmp_path / "absent.png") == "the file is missing"
    assert reason(tmp_path / "pipe.png") == "the file cannot be opened"
    assert reason(tmp_path) == "the file cannot be opened"
    assert reason(tmp_path / "loop.png") == "the file cannot be opened"
    if open_before:
        assert len(list(descriptors.iterdir())) == open_before


def test_a_huge_file_is_not_read(tmp_path, monkeypatch):
    assert pixels.LARGEST_FILE == 2**30
    monkeypatch.setattr(pixels, "LARGEST_FILE", 100)
    (tmp_path / "a.png").write_bytes(encoded(picture()))
    with pytest.raises(UnreadableImage, match="larger than 1 GiB"):
        read_pixels(tmp_path / "a.png", "L")


def test_a_decompression_bomb_is_not_decoded():
    def block(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", 50_000, 50_000, 8, 0, 0, 0, 0)
    bomb = b"\x89PNG\r\n\x1a\n" + block(b"IHDR", header) + block(b"IDAT", zlib.compress(bytes(10_000_000)))
    assert reason_of(bomb + block(b"IEND", b"")) == "the image has more than 100 million pixels"
    text = encoded(picture())
    stuffed = text[:33] + block(b"zTXt", b"a\x00\x00" + zlib.compress(bytes(100_000_000))) + text[33:]
    assert reason_of(stuffed) == DAMAGED
    assert np.array_equal(decode_pixels(text, "L"), picture())


def test_reasons_are_a_closed_list():
    assert len(set(REASONS)) == len(REASONS)
    with pytest.raises(ValueError, match="no reason"):
        UnreadableImage("it was a bad day")


def test_an_unknown_colour_is_refused():
    with pytest.raises(InputError, match="colour is 'grey'; it must be one of L, RGB"):
        decode_pixels(encoded(picture()), "grey")


@pytest.mark.parametrize(
    ("package", "content", "extra"),
    [("PIL", encoded(picture()), "study"), ("pydicom", dicom(picture()), "dicom")],
    ids=["pillow", "pydicom"],
)
def test_a_missing_package_is_one_sentence(monkeypatch, package, content, extra):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=rf"pip install 'frame-audit\[{extra}\]'"):
        decode_pixels(content, "L")


def test_importing_the_module_loads_no_decoder():
    code = "import sys, frame.cohorts.pixels; print(sorted({'PIL', 'pydicom', 'pandas'} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


# --- to one size


@pytest.mark.parametrize(("height", "width"), [(60, 80), (80, 60), (50, 50), (331, 224), (224, 331)])
@pytest.mark.parametrize("bands", [1, 3])
def test_shorter_side_then_the_middle(height, width, bands):
    image = picture(height, width)
    image = image if bands == 1 else np.dstack([image] * 3)
    prepared = resize_and_crop(image, 32)
    assert prepared.shape == ((32, 32) if bands == 1 else (32, 32, 3))
    scale = 32 / min(height, width)
    size = (max(32, round(width * scale)), max(32, round(height * scale)))
    whole = np.asarray(Image.fromarray(image).resize(size, Image.Resampling.BICUBIC))
    top, left = (whole.shape[0] - 32) // 2, (whole.shape[1] - 32) // 2
    assert np.array_equal(prepared, whole[top : top + 32, left : left + 32])


def test_an_image_of_the_right_size_is_unchanged():
    image = picture(224, 224)
    assert np.array_equal(resize_and_crop(image, 224), image)


def test_a_line_of_pixels_does_not_become_huge():
    line = picture(1, 200_000)
    assert resize_and_crop(line, 224).shape == (224, 224)
    assert resize_and_crop(line.T, 224).shape == (224, 224)

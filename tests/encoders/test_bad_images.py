"""Odd and broken image files from the file to the stored vector, and values that are in another range."""

import io
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian

sys.path.insert(0, str(Path(__file__).parent))

from frame.cohorts.image_rows import open_image_rows
from frame.cohorts.images import prepare_images
from frame.encoders.extraction import extract_features
from frame.encoders.features import open_features
from frame.encoders.loaders import load_encoder
from frame.errors import InputError

SIZE = 64
MANIFEST = "e" * 64


def picture():
    """A smooth picture with noise, in which black and white both occur."""
    generator = np.random.default_rng(2)
    rough = Image.fromarray(generator.integers(0, 256, (6, 6), dtype=np.uint8))
    grey = np.asarray(rough.resize((SIZE, SIZE), Image.Resampling.BICUBIC)).astype(int)
    grey = np.clip(grey + generator.integers(-9, 10, grey.shape), 0, 255).astype(np.uint8)
    grey[0, 0], grey[0, 1] = 0, 255
    return grey


def png(array, mode=None):
    content = io.BytesIO()
    image = Image.fromarray(array)
    (image if mode is None else image.convert(mode)).save(content, format="png")
    return content.getvalue()


def dicom(array, photometric):
    data = Dataset()
    data.file_meta = FileMetaDataset()
    data.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    data.SOPClassUID, data.SOPInstanceUID = "1.2.840.10008.5.1.4.1.1.1.1", "1.2.3"
    data.file_meta.MediaStorageSOPClassUID = data.SOPClassUID
    data.file_meta.MediaStorageSOPInstanceUID = data.SOPInstanceUID
    data.Rows, data.Columns = array.shape
    data.SamplesPerPixel, data.PhotometricInterpretation = 1, photometric
    data.BitsAllocated = data.BitsStored = 8 * array.itemsize
    data.HighBit, data.PixelRepresentation = data.BitsStored - 1, 0
    data.PixelData = array.tobytes()
    content = io.BytesIO()
    data.save_as(content, enforce_file_format=True)
    return content.getvalue()


def with_alpha(grey):
    """Grey in three channels, and a transparency that must not be seen."""
    alpha = np.random.default_rng(3).integers(0, 256, grey.shape, dtype=np.uint8)
    return np.dstack([grey, grey, grey, alpha])


def archive(array):
    content = io.BytesIO()
    np.savez(content, slo_fundus=array)
    return content.getvalue()


GREY = picture()
DEEP = GREY.astype(np.uint16)
#: The same picture in every form that is read.
FORMS = {
    "8-bit greyscale": png(GREY),
    "8-bit colour": png(np.dstack([GREY] * 3)),
    "palette": png(GREY, "P"),
    "RGBA": png(with_alpha(GREY)),
    "greyscale with transparency": png(np.dstack([GREY, with_alpha(GREY)[..., 3]])),
    "16-bit": png(DEEP * 257),
    "12 of 16 bits": png(DEEP * 16),
    "MONOCHROME2": dicom(DEEP * 257, "MONOCHROME2"),
    "MONOCHROME1": dicom((255 - DEEP) * 257, "MONOCHROME1"),
    "MONOCHROME1 in 8 bits": dicom(255 - GREY, "MONOCHROME1"),
    "floats from 0 to 1": archive(GREY / 255),
}
#: Files that cannot be read, and what is said of each.
BROKEN = {
    "truncated PNG": (FORMS["8-bit greyscale"][:1500], "the file is truncated or damaged"),
    "truncated DICOM": (FORMS["MONOCHROME1"][:-2000], "the file is truncated or damaged"),
    "empty": (b"", "the file is empty"),
    "a page": (b"<html>not found</html>", "the file is neither PNG, JPEG, DICOM nor npz"),
    "one colour": (png(np.full((SIZE, SIZE), 7, np.uint8)), "every pixel has the same value"),
    "missing": (None, "the file is missing"),
}
NAMES = [*FORMS, *BROKEN]


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """A release in which broken files stand among good ones, so that they meet every part of a batch."""
    folder = tmp_path_factory.mktemp("release")
    contents = {**FORMS, **{name: content for name, (content, _) in BROKEN.items()}}
    for k, name in enumerate(NAMES):
        if contents[name] is not None:
            (folder / f"{k}.file").write_bytes(contents[name])
    table = pd.DataFrame({"image_id": order(), "file": [f"{name.split(':')[1]}.file" for name in order()]})
    prepare_images(table, folder, folder / "images", size=SIZE, workers=1, shard_rows=4)
    return open_image_rows(folder / "images")


def order():
    numbers = np.random.default_rng(1).permutation(len(NAMES))
    return [f"site:{number}" for number in numbers]


@pytest.fixture(scope="module", params=["block_means", "random_vit_s", "random_densenet_121"])
def stored(request, images, tmp_path_factory):
    """Vectors by the kind of file."""
    if request.param != "block_means":
        pytest.importorskip("torch", reason="torch is in the extra [models]")
    folder = tmp_path_factory.mktemp("features")
    loaded = load_encoder(request.param)
    report = extract_features(
        loaded, images, order(), folder, manifest_sha256=MANIFEST, dtype="float32", batch_size=3, block_rows=6
    )
    store = open_features(folder, manifest_sha256=MANIFEST)
    rows = {NAMES[int(image_id.split(":")[1])]: row for row, image_id in enumerate(order())}
    return store, rows, report


@pytest.mark.parametrize("name", FORMS)
def test_one_picture_has_one_vector_in_every_form(stored, name):
    store, rows, _ = stored
    assert store.status[rows[name]] == "ready"
    wanted = store.read([rows["8-bit greyscale"]])
    found = store.read([rows[name]])
    # Each form here holds the same 256 levels, so that the pixels are equal; batches differ in size.
    assert np.allclose(found, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_leaves_a_row_without_vector_and_its_reason(stored, name):
    store, rows, _ = stored
    assert np.isnan(store.vectors[rows[name]]).all()
    assert store.status[rows[name]] == "unreadable"
    assert store.reasons[store.codes[rows[name]]] == BROKEN[name][1]
    with pytest.raises(InputError, match=f"1 of 1 rows have no vector \\(1: {BROKEN[name][1]}\\)"):
        store.read([rows[name]])


def test_broken_files_are_counted_and_named_nowhere(stored):
    _, _, report = stored
    assert report.sidecar["counts"] == {
        "ready": len(FORMS),
        "the file is missing": 1,
        "the file is empty": 1,
        "the file is neither PNG, JPEG, DICOM nor npz": 1,
        "the file is truncated or damaged": 2,
        "every pixel has the same value": 1,
    }
    assert "site:" not in str(report)
    assert ".file" not in str(report)


def test_another_picture_has_another_vector(images, tmp_path, stored):
    store, rows, _ = stored
    inverted = 255 - GREY
    (tmp_path / "0.png").write_bytes(png(inverted))
    table = pd.DataFrame({"image_id": ["site:0"], "file": ["0.png"]})
    prepare_images(table, tmp_path, tmp_path / "images", size=SIZE, workers=1)
    loaded = load_encoder(store.sidecar["encoder"])
    other = open_image_rows(tmp_path / "images")
    extract_features(loaded, other, ["site:0"], tmp_path / "store", manifest_sha256=MANIFEST, dtype="float32")
    found = open_features(tmp_path / "store", manifest_sha256=MANIFEST).read([0])
    wanted = store.read([rows["MONOCHROME1"]])
    assert not np.allclose(found, wanted, rtol=1e-3, atol=1e-3 * np.abs(wanted).max())


# --- values in another range, which no image store can hold


@pytest.mark.parametrize("name", ["block_means", "random_vit_s", "random_densenet_121"])
@pytest.mark.parametrize("kind", ["uint16", "float from 0 to 1", "float from 0 to 255", "float64"])
def test_pixels_that_are_not_8_bit_are_refused(name, kind):
    if name != "block_means":
        pytest.importorskip("torch", reason="torch is in the extra [models]")
    batches = {
        "uint16": DEEP * 257,
        "float from 0 to 1": (GREY / 255).astype(np.float32),
        "float from 0 to 255": GREY.astype(np.float32),
        "float64": GREY.astype(np.float64),
    }
    with pytest.raises(InputError, match=f"Encoder {name}: a batch holds .* stored images are 8-bit pixels"):
        load_encoder(name).preprocessing.prepare(batches[kind][None])


@pytest.mark.parametrize("name", ["random_vit_s", "random_densenet_121"])
@pytest.mark.parametrize("scale", [1.0, 255.0, 1 / 255], ids=["0 to 1", "0 to 255", "twice scaled"])
def test_prepared_values_in_another_range_are_refused_in_every_batch(images, tmp_path, name, scale):
    """Also where only a later batch is wrong."""
    pytest.importorskip("torch", reason="torch is in the extra [models]")
    loaded = load_encoder(name)

    class Later:
        sha256 = loaded.preprocessing.sha256
        seen = 0

        def prepare(self, batch):
            self.seen += 1
            if self.seen < 3:
                return loaded.preprocessing.prepare(batch)
            channels = loaded.preprocessing.channels
            return np.repeat(batch[:, None] / np.float32(255) * np.float32(scale), channels, axis=1)

    class Wrapped:
        preprocessing = Later()

        def __getattr__(self, key):
            return getattr(loaded, key)

    with pytest.raises(InputError, match=f"Encoder {name} takes .* a batch (has|with) values from"):
        extract_features(
            Wrapped(), images, order(), tmp_path / "store", manifest_sha256=MANIFEST, batch_size=3, workers=0
        )
    with pytest.raises(InputError, match="are not complete"):
        open_features(tmp_path / "store", manifest_sha256=MANIFEST)

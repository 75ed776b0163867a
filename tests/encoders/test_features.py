"""The feature store: what it holds, what it gives back, and every store that is refused."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from made_stores import WIDTH, MadeUp, ids_of, make_images

from frame.encoders.extraction import extract_features
from frame.encoders.features import SIDECAR, STATUS, VECTORS, open_features
from frame.errors import InputError

MANIFEST = "a" * 64


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    images = make_images(folder)
    extract_features(
        MadeUp(),
        images,
        ids_of(37),
        folder / "made_up",
        manifest_sha256=MANIFEST,
        dtype="float32",
        block_rows=10,
    )
    return folder / "made_up", images


@pytest.fixture
def store(made, tmp_path):
    """A copy that a test may damage."""
    target = tmp_path / "made_up"
    target.mkdir()
    for name in (SIDECAR, STATUS, VECTORS):
        (target / name).write_bytes((made[0] / name).read_bytes())
    return target


def opened(store, **options):
    return open_features(store, **{"manifest_sha256": MANIFEST} | options)


def changed(store, **entries):
    about = json.loads((store / SIDECAR).read_text()) | entries
    (store / SIDECAR).write_text(json.dumps(about))


def test_rows_are_those_of_the_manifest(made):
    store, images = made
    found = opened(store)
    assert found.shape == (37, WIDTH)
    assert found.status.tolist() == ["unreadable" if k in (3, 20) else "ready" for k in range(37)]
    assert found.reasons[found.codes[3]] == "the file is truncated or damaged"
    assert np.isnan(found.vectors[[3, 20]]).all()
    ready = np.flatnonzero(found.ready)
    pixels = images.read(ready)
    wanted = MadeUp().vectors((pixels[:, None] / np.float32(255)).astype(np.float32))
    assert np.array_equal(found.read(ready), wanted)


def test_the_sidecar_says_what_the_vectors_were_made_from(made):
    about = opened(made[0]).sidecar
    assert about["encoder"] == "made_up"
    assert about["settings"]["revision"] == "1"
    assert (about["manifest_sha256"], about["images_sha256"]) == (MANIFEST, made[1].pixels_sha256)
    assert (about["dtype"], about["normalised"], about["precision_used"]) == ("float32", False, "float32")
    assert about["counts"] == {"ready": 35, "the file is truncated or damaged": 2}
    text = (made[0] / SIDECAR).read_text()
    assert "site:" not in text
    assert "00003" not in text


def test_the_store_is_mapped_and_not_loaded(made):
    assert isinstance(opened(made[0]).vectors, np.memmap)
    assert "nan" not in repr(opened(made[0]))


@pytest.mark.parametrize("rows", [[5, 0, 5, 36], np.array([1, 2]), []], ids=["list", "array", "none"])
def test_rows_are_read_in_the_order_asked_for(made, rows):
    found = opened(made[0])
    wanted = np.array(found.vectors)[np.asarray(rows, dtype=int)]
    assert np.array_equal(found.read(rows), wanted)
    half = found.read(rows, dtype="float16")
    assert half.dtype == np.float16
    assert np.array_equal(half, wanted.astype(np.float16))


def test_rows_are_read_by_flags(made):
    found = opened(made[0])
    assert len(found.read(found.ready)) == 35


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (
            None,
            "2 of 37 rows have no vector (2: the file is truncated or damaged); choose rows that are ready.",
        ),
        (
            [3, 4],
            "1 of 2 rows have no vector (1: the file is truncated or damaged); choose rows that are ready.",
        ),
        ([0, 37, -1], "2 of 3 rows are not in the store, which has 37."),
        ([True, False], "There are 2 flags for 37 rows; give one per row."),
        ([0.5], "Rows are whole numbers from 0, or one flag per row."),
        ([[1, 2]], "Rows are whole numbers from 0, or one flag per row."),
    ],
    ids=["all", "unreadable", "outside", "flags", "fractions", "table"],
)
def test_rows_that_cannot_be_given_are_counted(made, rows, sentence):
    with pytest.raises(InputError) as problem:
        opened(made[0]).read(rows)
    assert str(problem.value) == sentence


# --- refusals


def test_a_store_of_another_manifest_is_refused(store):
    with pytest.raises(
        InputError, match="were made from another manifest than the one given, so that their rows"
    ):
        opened(store, manifest_sha256="b" * 64)
    assert opened(store, manifest_sha256=None).shape == (37, WIDTH)


@pytest.mark.parametrize(
    ("key", "wanted", "said"),
    [
        ("encoder", "other", "were made with encoder made_up, not other"),
        ("settings.revision", "2", "were made with settings.revision 1, not 2"),
        ("normalised", True, "were made with normalised False, not True"),
        ("preprocessing_sha256", "1" * 64, "were made with preprocessing_sha256 0000"),
        ("settings.nothing.there", "x", "were made with settings.nothing.there of another value, not x"),
    ],
)
def test_a_store_of_other_settings_is_refused(store, key, wanted, said):
    with pytest.raises(InputError, match=said):
        opened(store, expected={key: wanted})
    opened(store, expected={"encoder": "made_up", "settings.revision": "1", "normalised": False})


@pytest.mark.parametrize("name", [VECTORS, STATUS])
@pytest.mark.parametrize("damage", ["byte", "cut", "longer", "gone", "header"])
def test_a_damaged_store_is_refused(store, name, damage):
    content = bytearray((store / name).read_bytes())
    if damage == "byte":
        content[-1] ^= 1
    elif damage == "cut":
        del content[-1:]
    elif damage == "longer":
        content += b"x"
    elif damage == "header":
        content[0] = 0
    (store / name).write_bytes(content)
    if damage == "gone":
        (store / name).unlink()
    with pytest.raises(InputError, match=f"are damaged: {name} is not what was written; extract them again"):
        opened(store)
    if damage == "byte":
        opened(store, verify=False)
    else:
        with pytest.raises(InputError, match="are damaged"):
            opened(store, verify=False)


@pytest.mark.parametrize(
    "entries",
    [{"format": 99}, {"dtype": "object"}, {"n_rows": "many"}, {"reasons": None}, {"key": None}],
    ids=lambda entries: next(iter(entries)),
)
def test_a_sidecar_of_another_version_is_refused(store, entries):
    changed(store, **entries)
    with pytest.raises(InputError, match=r"not complete: there is no features\.json that this version reads"):
        opened(store)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": 1}'], ids=["empty", "list", "cut", "bare"])
def test_an_unfinished_store_is_refused(store, text):
    (store / SIDECAR).write_text(text)
    with pytest.raises(InputError, match="are not complete"):
        opened(store)
    (store / SIDECAR).unlink()
    with pytest.raises(InputError, match="goes on where the last run ended: frame features extract"):
        opened(store)


def test_a_store_whose_sidecar_names_another_shape_is_refused(store):
    changed(store, n_rows=36)
    with pytest.raises(InputError, match=r"are damaged: vectors\.npy"):
        opened(store)

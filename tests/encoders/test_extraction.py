"""Extraction: blocks, ranges, resumption, what changes nothing, what is counted, and the refusals."""

import json
import sys
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from made_stores import WIDTH, MadeUp, Scaled, ids_of, make_images

from benchmarks.feature_extraction import manifest_of, write_images
from frame.cohorts.image_rows import column_texts, open_image_rows
from frame.encoders.extraction import BLOCK_ROWS, Progress, extract_features, rows_to_fit
from frame.encoders.feature_blocks import locked
from frame.encoders.features import SIDECAR, STATUS, VECTORS, open_features
from frame.encoders.loaders import load_encoder
from frame.encoders.prefetch import prefetched
from frame.errors import InputError

N = 37
MANIFEST = "a" * 64


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return make_images(tmp_path_factory.mktemp("images"), N)


def extract(images, folder, loaded=None, ids=None, **options):
    given = {"manifest_sha256": MANIFEST, "dtype": "float32", "block_rows": 10, "batch_size": 4} | options
    return extract_features(loaded or MadeUp(), images, ids or ids_of(N), folder, **given)


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def vectors_of(folder, manifest=MANIFEST):
    return np.array(open_features(folder, manifest_sha256=manifest).vectors)


# --- contents


def test_a_store_is_made_in_one_pass_over_the_images(images, tmp_path):
    loaded = MadeUp()
    report = extract(images, tmp_path / "store", loaded)
    assert (report.n_rows, report.n_rows_made, report.n_blocks, report.n_blocks_made) == (N, N, 4, 4)
    assert report.joined
    assert report.sidecar == json.loads((tmp_path / "store" / SIDECAR).read_text())
    assert loaded.preprocessing.n_prepared == N - 2
    assert sorted(contents(tmp_path / "store")) == [".lock", SIDECAR, STATUS, VECTORS]
    assert sorted(path.name for path in (tmp_path / "store").iterdir()) == [".lock", SIDECAR, STATUS, VECTORS]


def test_a_finished_store_is_kept(images, tmp_path):
    extract(images, tmp_path / "store")
    before = contents(tmp_path / "store")
    loaded = MadeUp()
    report = extract(images, tmp_path / "store", loaded)
    assert (report.n_blocks_made, report.joined) == (0, True)
    assert loaded.batches == []
    assert contents(tmp_path / "store") == before


@pytest.mark.parametrize("options", [{"workers": 0}, {"workers": 3}, {"batch_size": 1}, {"block_rows": 64}])
def test_workers_batches_and_blocks_change_no_byte(images, tmp_path, options):
    """The encoder here sums each row by itself; see below for networks."""
    extract(images, tmp_path / "one")
    extract(images, tmp_path / "two", **options)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_batches_do_not_reach_over_blocks_and_leave_no_image_out(images, tmp_path):
    loaded = MadeUp()
    extract(images, tmp_path / "store", loaded)
    assert loaded.batches == [4, 4, 1, 4, 4, 2, 4, 4, 1, 4, 3]  # rows 3 and 20 cannot be read


def test_a_block_without_a_readable_image(tmp_path):
    images = make_images(tmp_path, 12, unreadable=(4, 5, 6, 7))
    report = extract(images, tmp_path / "store", ids=ids_of(12), block_rows=4)
    assert report.sidecar["counts"] == {"ready": 8, "the file is truncated or damaged": 4}
    assert np.isnan(vectors_of(tmp_path / "store")).all(axis=1).tolist() == [4 <= k < 8 for k in range(12)]


def test_progress_counts_every_row_once(images, tmp_path):
    said = []
    extract(images, tmp_path / "store", say=said.append)
    assert said[0] == Progress(N, 0, 0)
    assert said[-1] == Progress(N, N, 0)
    done = [one.n_done for one in said]
    assert done == sorted(done)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_vectors_can_be_normalised(images, tmp_path, dtype):
    extract(images, tmp_path / "plain")
    report = extract(images, tmp_path / "unit", normalise=True, dtype=dtype)
    assert report.sidecar["normalised"] is True
    plain, unit = vectors_of(tmp_path / "plain"), vectors_of(tmp_path / "unit")
    assert unit.dtype == dtype
    ready = ~np.isnan(plain[:, 0])
    wanted = plain[ready] / np.linalg.norm(plain[ready], axis=1, keepdims=True)
    assert np.allclose(unit[ready], wanted, rtol=0, atol=1e-6 if dtype == "float32" else 1e-3)


# --- what has no vector


def spoiled(flat, found):
    """The first of a batch gives infinity, the second NaN, the third more than float16 has, the fourth 0."""
    found = found.copy()
    for row, value in enumerate((np.inf, np.nan, 1e6, 0)[: len(found)]):
        found[row] = value
    return found


def test_vectors_that_are_not_finite_are_counted_and_left_out(images, tmp_path):
    report = extract(images, tmp_path / "half", MadeUp(answer=spoiled), dtype="float16", block_rows=37)
    assert report.sidecar["counts"] == {
        "ready": 8,
        "the file is truncated or damaged": 2,
        "the vector is not finite": 18,
        "the vector does not fit into float16": 9,
    }
    assert report.sidecar["n_not_finite"] == 27
    report = extract(images, tmp_path / "unit", MadeUp(answer=spoiled), normalise=True, block_rows=37)
    assert report.sidecar["counts"]["the vector has length 0, which no scaling makes 1"] == 8
    assert report.sidecar["counts"]["ready"] == 9
    store = open_features(tmp_path / "half", manifest_sha256=MANIFEST)
    assert (np.isnan(store.vectors).all(axis=1) == ~store.ready).all()
    assert not np.isnan(store.vectors[store.ready]).any()
    assert (store.status == "not finite").sum() == 27


# --- resumption and shared work


def test_an_interrupted_run_goes_on_with_the_block_it_was_in(images, tmp_path):
    extract(images, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        extract(images, tmp_path / "store", MadeUp(preprocessing=Scaled(fail_at=20)), workers=0)
    assert not (tmp_path / "store" / SIDECAR).exists()
    with pytest.raises(InputError, match="are not complete"):
        open_features(tmp_path / "store", manifest_sha256=MANIFEST)
    said = []
    loaded = MadeUp()
    report = extract(images, tmp_path / "store", loaded, say=said.append)
    assert (report.n_blocks_made, report.n_rows_made) == (2, 17)
    assert loaded.preprocessing.n_prepared == 16
    assert said[0] == Progress(N, 20, 20)
    assert contents(tmp_path / "store") == contents(tmp_path / "whole")


def test_tasks_share_an_extraction_by_rows(images, tmp_path):
    extract(images, tmp_path / "whole")
    ranges = [(0, 15), (15, 21), (21, 30), (30, 37)]
    made = [extract(images, tmp_path / "store", rows=rows) for rows in ranges]
    assert [report.n_blocks_made for report in made] == [2, 1, 0, 1]  # blocks begin at 0, 10, 20, 30
    assert not any(report.joined for report in made)
    assert extract(images, tmp_path / "store", rows=(0, 15)).n_blocks_made == 0
    assert not (tmp_path / "store" / SIDECAR).exists()
    loaded = MadeUp()
    report = extract(images, tmp_path / "store", loaded)
    assert (report.n_blocks_made, report.joined, loaded.batches) == (0, True, [])
    assert contents(tmp_path / "store") == contents(tmp_path / "whole")


def test_what_a_killed_run_and_other_settings_left_is_removed(images, tmp_path):
    store = tmp_path / "store"
    extract(images, store, rows=(0, 10))
    extract(images, store, rows=(0, 10), dtype="float16")
    folders = list(store.glob("blocks/*"))
    assert len(folders) == 2
    (store / ".vectors-x.part").write_bytes(b"x")
    for folder in folders:
        (folder / ".block-x.part").write_bytes(b"x")
    report = extract(images, store)
    assert report.n_blocks_made == 3
    assert sorted(path.name for path in store.iterdir()) == [".lock", SIDECAR, STATUS, VECTORS]


@pytest.mark.parametrize("damage", ["cut", "byte"])
def test_a_damaged_block_is_made_again(images, tmp_path, damage):
    extract(images, tmp_path / "whole")
    store = tmp_path / "store"
    for rows in ((0, 20), (20, 37)):
        extract(images, store, rows=rows)
    block = sorted(store.glob("blocks/*/*.npz"))[1]
    content = bytearray(block.read_bytes())
    if damage == "cut":
        block.write_bytes(content[:-10])
        assert extract(images, store).n_blocks_made == 1
    else:
        content[200] ^= 1
        block.write_bytes(content)
        with pytest.raises(InputError, match="A block of the features in 'store' is damaged and was removed"):
            extract(images, store)
        assert extract(images, store).n_blocks_made == 1
    assert contents(store) == contents(tmp_path / "whole")


def test_a_damaged_store_is_made_again(images, tmp_path):
    extract(images, tmp_path / "store")
    before = contents(tmp_path / "store")
    file = tmp_path / "store" / VECTORS
    file.write_bytes(file.read_bytes()[:-1] + b"\x7f")
    assert extract(images, tmp_path / "store").n_blocks_made == 4
    assert contents(tmp_path / "store") == before


@pytest.mark.parametrize(
    "changed",
    [
        {"manifest_sha256": "b" * 64},
        {"normalise": True},
        {"dtype": "float16"},
        {"loaded": MadeUp(settings={"encoder": "made_up", "revision": "2"})},
        {"loaded": MadeUp(preprocessing=Scaled(sha256="1" * 64))},
    ],
    ids=["manifest", "normalise", "dtype", "revision", "preprocessing"],
)
def test_a_store_of_other_settings_is_made_anew(images, tmp_path, changed):
    extract(images, tmp_path / "store")
    report = extract(images, tmp_path / "store", **changed)
    assert report.n_blocks_made == 4
    assert extract(images, tmp_path / "store", **changed).n_blocks_made == 0
    with pytest.raises(InputError, match="were made"):
        open_features(
            tmp_path / "store",
            manifest_sha256=MANIFEST,
            expected={
                "normalised": False,
                "dtype": "float32",
                "settings.revision": "1",
                "preprocessing_sha256": "0" * 64,
            },
        )


def test_a_store_stays_until_the_new_one_is_whole(images, tmp_path):
    extract(images, tmp_path / "store")
    before = contents(tmp_path / "store")
    with pytest.raises(KeyboardInterrupt):
        extract(
            images, tmp_path / "store", MadeUp(preprocessing=Scaled(fail_at=30)), manifest_sha256="b" * 64
        )
    assert contents(tmp_path / "store") == before
    with pytest.raises(InputError, match="another manifest"):
        open_features(tmp_path / "store", manifest_sha256="b" * 64)


def test_only_one_run_puts_a_store_together(images, tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    with locked(store, alone=False):
        assert extract(images, store, rows=(0, 10)).n_blocks_made == 1
        with pytest.raises(
            InputError, match="Another run extracts features into 'store'; wait until it ends"
        ):
            extract(images, store)
    with locked(store, alone=True), pytest.raises(InputError, match="Another run"):
        extract(images, store, rows=(0, 10))
    assert extract(images, store).n_blocks_made == 3


# --- images ahead of the encoder


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_what_is_ahead_is_bounded_and_in_order(workers):
    there, most = [0], [0]
    lock = threading.Lock()

    def work(job):
        with lock:
            there[0] += 1
            most[0] = max(most[0], there[0])
        return -job

    taken = []
    for job, result in prefetched(iter(range(200)), work, workers):
        taken.append((job, result))
        with lock:
            there[0] -= 1
    assert taken == [(k, -k) for k in range(200)]
    assert most[0] <= workers + 1


def test_a_failure_ahead_is_raised_at_its_job():
    def work(job):
        if job == 5:
            raise InputError("five")
        return job

    taken = []
    with pytest.raises(InputError, match="five"):
        taken.extend(prefetched(range(10), work, 3))
    found = prefetched(range(10), work, 3)
    assert [next(found)[0] for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(InputError, match="five"):
        next(found)


def test_no_batch_is_larger_and_no_more_are_ahead_for_more_images(tmp_path):
    """The same peak of prepared values for 40 images and for 400."""
    peaks = []
    for n_images in (40, 400):
        images = make_images(tmp_path / str(n_images), n_images, unreadable=())
        alive, peak = [0], [0]

        class Counting(Scaled):
            def prepare(self, batch, alive=alive, peak=peak):
                alive[0] += len(batch)
                peak[0] = max(peak[0], alive[0])
                return super().prepare(batch)

        class Taking(MadeUp):
            def vectors(self, batch, alive=alive):
                alive[0] -= len(batch)
                return super().vectors(batch)

        extract(
            images,
            tmp_path / f"store{n_images}",
            Taking(preprocessing=Counting()),
            ids=ids_of(n_images),
            workers=2,
        )
        assert alive[0] == 0
        peaks.append(peak[0])
    assert max(peaks) <= 4 * 4  # two threads and one waiting batch of four, and the one that is computed


def test_memory_does_not_grow_with_the_number_of_images(tmp_path):
    """The most that Python and numpy hold, for 1,000 rows and for 10,000; the benchmark has a million."""
    peaks = []
    for n_rows in (1_000, 10_000):
        write_images(tmp_path / str(n_rows), n_rows, 16)
        pixels = open_image_rows(tmp_path / str(n_rows))
        ids = column_texts(manifest_of(tmp_path / str(n_rows)), "image_id")
        loaded = load_encoder("block_means")
        tracemalloc.start()
        extract(pixels, tmp_path / f"store{n_rows}", loaded, ids=ids, block_rows=500, batch_size=64)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert vectors_of(tmp_path / f"store{n_rows}").shape == (n_rows, 256)
    assert peaks[1] < peaks[0] + 300_000  # the vectors alone are 10 MB


# --- refusals


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"batch_size": 0}, "batch_size is 0; it must be a whole number from 1."),
        ({"block_rows": True}, "block_rows is True; it must be a whole number from 1."),
        ({"workers": -1}, "workers is -1; it must be a whole number from 0."),
        ({"dtype": "float64"}, "dtype is 'float64'; it must be one of float16, float32."),
        ({"precision": "fp8"}, "precision is 'fp8'; it must be one of auto, half, bf16, float32."),
        (
            {"precision": "half"},
            "precision is 'half', and made_up computes on pixels in float32; give float32.",
        ),
        ({"rows": (5, 5)}, "rows are 5:5; they must lie in 0:37, the first before the last."),
        ({"rows": (0, 38)}, "rows are 0:38; they must lie in 0:37, the first before the last."),
        ({"rows": (-1, 3)}, "rows are -1:3; they must lie in 0:37, the first before the last."),
        ({"compile": True}, "made_up is no network, and cannot be compiled; leave --compile away."),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_wrong_arguments(images, tmp_path, options, sentence):
    with pytest.raises(InputError) as problem:
        extract(images, tmp_path / "store", **options)
    assert str(problem.value) == sentence


@pytest.mark.parametrize(
    ("ids", "differ"),
    [
        (ids_of(36), 1),
        (ids_of(38), 1),
        (ids_of(N)[::-1], 36),
        ([*ids_of(30), "site:x", *ids_of(N)[31:]], 1),
    ],
    ids=["fewer", "more", "other order", "another"],
)
def test_images_of_another_manifest_are_refused(images, tmp_path, ids, differ):
    with pytest.raises(InputError) as problem:
        extract(images, tmp_path / "store", ids=ids)
    assert str(problem.value) == (
        f"The image store does not hold the images of the manifest in its order ({differ} rows differ); "
        "prepare the images again: frame data build."
    )
    assert not (tmp_path / "store").exists()


def test_ids_may_come_one_by_one(images, tmp_path):
    assert extract(images, tmp_path / "store", ids=iter(ids_of(N))).joined


def test_a_damaged_image_store_is_refused(tmp_path):
    images = make_images(tmp_path, 20, unreadable=())
    shard = tmp_path / "images" / "shard-00001.npy"
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(InputError, match="has a shard that is missing or damaged; prepare the images again"):
        open_image_rows(tmp_path / "images")
    with pytest.raises(InputError, match="has a shard that is missing or damaged"):
        extract(images, tmp_path / "store", ids=ids_of(20))
    (tmp_path / "images" / "index.parquet").unlink()
    with pytest.raises(InputError, match="is not complete: it has no index that can be read"):
        open_image_rows(tmp_path / "images")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that nobody can write to")
def test_a_folder_that_cannot_be_written(images):
    with pytest.raises(InputError, match=r"The features in 'store' cannot be written"):
        extract(images, Path("/proc/self/store"))


def test_rows_of_images_are_those_of_the_store(images, tmp_path):
    from frame.cohorts.images import open_images

    whole = open_images(images._folder)
    assert list(images.ids()) == whole.index["image_id"].tolist()
    assert images.reasons(0, N) == whole.index["reason"].tolist()
    assert images.reasons(6, 19) == whole.index["reason"].tolist()[6:19]
    rows = np.array([0, 1, 2, 7, 8, 9, 15, 16, 36])
    assert np.array_equal(images.read(rows), whole.read(rows))
    assert images.shape == whole.shape
    assert (WIDTH, images.pixels_sha256) == (5, whole.pixels_sha256)


# --- the images that an encoder is fitted to


class ManyRows:
    """Image rows of which every tenth cannot be read; how many were asked for at once."""

    def __init__(self, n_rows):
        self.n_rows, self.most = n_rows, 0

    def reasons(self, start, stop):
        self.most = max(self.most, stop - start)
        return ["damaged" if row % 10 == 0 else "" for row in range(start, stop)]


def test_images_to_fit_are_drawn_from_training_images_that_can_be_read():
    images = ManyRows(3 * BLOCK_ROWS + 5)
    splits = ["train" if row % 3 else "test" for row in range(images.n_rows)]
    rows = rows_to_fit(iter(splits), images, seed=1, n_most=500)
    assert images.most == BLOCK_ROWS
    assert len(np.unique(rows)) == 500
    assert (np.diff(rows) > 0).all()
    assert (rows % 3 > 0).all()
    assert (rows % 10 > 0).all()
    assert rows[0] < BLOCK_ROWS < 3 * BLOCK_ROWS - 1000 < rows[-1]
    assert np.array_equal(rows, rows_to_fit(splits, images, seed=1, n_most=500))
    assert not np.array_equal(rows, rows_to_fit(splits, images, seed=2, n_most=500))
    every = rows_to_fit(splits, images, seed=1, n_most=10**6)
    assert every.tolist() == [row for row in range(images.n_rows) if row % 3 and row % 10]


def test_images_to_fit_need_the_rows_of_the_manifest():
    with pytest.raises(InputError, match="does not hold the images of the manifest; prepare"):
        rows_to_fit(["train"] * 9, ManyRows(10), seed=0)


def test_blocks_of_other_settings_that_are_removed_are_counted(images, tmp_path):
    extract(images, tmp_path / "store", rows=(0, 20), normalise=True)
    report = extract(images, tmp_path / "store", rows=(20, 30))
    assert report.n_blocks_dropped == 0
    assert extract(images, tmp_path / "store").n_blocks_dropped == 2
    assert extract(images, tmp_path / "store").n_blocks_dropped == 0

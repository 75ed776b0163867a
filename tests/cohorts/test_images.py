"""The image store: contents, freshness shard by shard, reasons, workers, memory, and the refusals."""

import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from pyarrow import parquet

from frame.cohorts import images
from frame.cohorts.images import ImageReport, open_images, prepare_images
from frame.cohorts.listing import files_under
from frame.cohorts.pixels import REASONS, read_pixels, resize_and_crop
from frame.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
REAL = ROOT.parent / "shared" / "data" / "real"


def drawn(seed, shape=(40, 50)):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


@pytest.fixture
def release(tmp_path):
    """Ten images of several kinds and five files that are none, with their table."""
    root = tmp_path / "release"
    (root / "images").mkdir(parents=True)
    for k in range(10):
        kind = "jpg" if k % 3 == 0 else "png"
        Image.fromarray(drawn(k, (40 + k, 50))).save(root / "images" / f"{k}.{kind}")
    whole = (root / "images" / "1.png").read_bytes()
    (root / "images" / "empty.png").write_bytes(b"")
    (root / "images" / "cut.png").write_bytes(whole[: len(whole) // 2])
    (root / "images" / "page.jpg").write_bytes(b"<html>not found</html>")
    Image.fromarray(np.zeros((30, 30), np.uint8)).save(root / "images" / "black.png")
    names = sorted(path.name for path in (root / "images").iterdir())
    files = [f"images/{name}" for name in names] + ["images/absent.png"]
    return root, pd.DataFrame({"image_id": [f"site:{k:02d}" for k in range(15)], "file": files})


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def made(release, folder, **options):
    root, table = release
    return prepare_images(table, root, folder, **{"size": 16, "shard_rows": 4, "workers": 1} | options)


# --- contents


def test_the_store_holds_every_image_in_the_order_of_the_table(release, tmp_path):
    report = made(release, tmp_path / "store")
    assert report == ImageReport(
        n_images=15,
        n_ready=10,
        reasons=dict.fromkeys(
            sorted(
                (
                    "every pixel has the same value",
                    "the file is empty",
                    "the file is missing",
                    "the file is neither PNG, JPEG, DICOM nor npz",
                    "the file is truncated or damaged",
                )
            ),
            1,
        ),
        n_shards=4,
        n_shards_made=4,
    )
    assert set(report.reasons) <= set(REASONS)
    store = open_images(tmp_path / "store")
    root, table = release
    assert store.shape == (15, 16, 16)
    assert store.index["image_id"].tolist() == table["image_id"].tolist()
    assert store.index["row"].tolist() == list(range(15))
    assert store.index["reason"].value_counts().to_dict() == {"": 10, **report.reasons}
    ready = store.index[store.index["status"] == "ready"]
    assert (ready["reason"] == "").all()
    for row in ready["row"]:
        raw = read_pixels(root / table["file"][row], "L")
        assert np.array_equal(store.read([row])[0], resize_and_crop(raw, 16))
        assert (store.index["height"][row], store.index["width"][row]) == raw.shape


def test_digests_are_those_of_the_raw_files(release, tmp_path):
    import hashlib

    made(release, tmp_path / "store")
    root, table = release
    for file, digest in zip(table["file"], open_images(tmp_path / "store").index["sha256"], strict=True):
        path = root / file
        assert digest == (hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "")


def test_rows_of_unreadable_images_are_zero(release, tmp_path):
    made(release, tmp_path / "store")
    index = open_images(tmp_path / "store").index
    shards = np.concatenate([np.load(path) for path in sorted((tmp_path / "store").glob("*.npy"))])
    assert shards.shape == (15, 16, 16)
    assert ((shards.reshape(15, -1).max(axis=1) == 0) == (index["status"] == "unreadable")).all()


def test_images_are_read_by_id_or_by_row(release, tmp_path):
    made(release, tmp_path / "store")
    store = open_images(tmp_path / "store")
    rows = store.index.loc[store.index["status"] == "ready", "row"].to_numpy()[[7, 0, 3, 0]]
    by_row = store.read(rows)
    assert by_row.shape == (4, 16, 16)
    assert np.array_equal(by_row[1], by_row[3])
    assert np.array_equal(store.read(store.index["image_id"][rows]), by_row)
    assert np.array_equal(store.read(store.index["image_id"][rows].tolist()), by_row)
    assert store.read([]).shape == (0, 16, 16)


def test_what_cannot_be_read_from_a_store(release, tmp_path):
    made(release, tmp_path / "store")
    store = open_images(tmp_path / "store")
    with pytest.raises(InputError, match="1 of 2 images cannot be read; choose those whose status"):
        store.read([0, 14])
    with pytest.raises(InputError, match="2 of 3 images are not in the store, which holds 15"):
        store.read([0, -1, 15])
    with pytest.raises(InputError, match="1 of 1 images are not in the store") as caught:
        store.read(["site:canary"])
    assert "canary" not in str(caught.value)
    for wrong in ([True, False], [0.5], [None]):
        with pytest.raises(InputError, match="named by their ids"):
            store.read(wrong)


def test_colour_and_size(release, tmp_path):
    made(release, tmp_path / "store", colour="RGB", size=7)
    store = open_images(tmp_path / "store")
    assert store.shape == (15, 7, 7, 3)
    assert store.read([0]).shape == (1, 7, 7, 3)


def test_neither_the_text_of_a_store_nor_of_a_report_names_an_image(release, tmp_path):
    report = made(release, tmp_path / "store")
    assert "site:" not in repr(report)
    assert "site:" not in repr(open_images(tmp_path / "store"))


# --- the same bytes, whatever made them


def test_the_files_do_not_depend_on_the_workers(release, tmp_path):
    reports = [made(release, tmp_path / str(n), workers=n, shard_rows=6) for n in (1, 2, 3)]
    assert reports[0] == reports[1] == reports[2]
    assert contents(tmp_path / "1") == contents(tmp_path / "2") == contents(tmp_path / "3")


def test_the_index_depends_on_the_contents_alone(release, tmp_path):
    root, table = release
    made(release, tmp_path / "store")
    before = contents(tmp_path / "store")
    for file in table["file"][:14]:
        os.utime(root / file, ns=(1, 1))
    assert made(release, tmp_path / "store").n_shards_made == 4
    after = contents(tmp_path / "store")
    assert after["index.parquet"] == before["index.parquet"]
    assert after["shard-00000.npy"] == before["shard-00000.npy"]
    Image.fromarray(drawn(99, (44, 50))).save(root / "images" / "4.png")
    made(release, tmp_path / "store")
    about = [
        json.loads(parquet.read_schema(io).metadata[b"frame.images"])
        for io in [tmp_path / "store/index.parquet"]
    ]
    assert (
        about[0]["pixels_sha256"]
        != json.loads(
            parquet.read_schema(_written(tmp_path, before["index.parquet"])).metadata[b"frame.images"]
        )["pixels_sha256"]
    )


def _written(folder, content):
    (folder / "before.parquet").write_bytes(content)
    return folder / "before.parquet"


# --- freshness


def test_a_second_run_makes_nothing_and_touches_nothing(release, tmp_path):
    made(release, tmp_path / "store")
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "store").iterdir()}
    report = made(release, tmp_path / "store", workers=2)
    assert (report.n_shards, report.n_shards_made, report.n_ready) == (4, 0, 10)
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "store").iterdir()} == before


def test_one_changed_file_remakes_exactly_its_shard(release, tmp_path):
    root, table = release
    made(release, tmp_path / "store")
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "store").iterdir()}
    Image.fromarray(drawn(99, (44, 50))).save(root / table["file"][5])
    report = made(release, tmp_path / "store")
    assert report.n_shards_made == 1
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "store").iterdir()}
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"shard-00001.npy", "shard-00001.parquet", "index.parquet"}
    assert np.array_equal(
        open_images(tmp_path / "store").read([5])[0],
        resize_and_crop(read_pixels(root / table["file"][5], "L"), 16),
    )


def test_a_file_that_arrives_later_is_taken_up(release, tmp_path):
    root, _ = release
    made(release, tmp_path / "store")
    Image.fromarray(drawn(99)).save(root / "images" / "absent.png")
    report = made(release, tmp_path / "store")
    assert (report.n_ready, report.n_shards_made) == (11, 1)


def test_a_file_that_could_not_be_opened_is_tried_again(release, tmp_path):
    root, table = release
    path = root / table["file"][0]
    path.rename(root / "aside")
    path.mkdir()
    assert made(release, tmp_path / "store").reasons["the file cannot be opened"] == 1
    assert made(release, tmp_path / "store").n_shards_made == 1
    path.rmdir()
    (root / "aside").rename(path)
    assert made(release, tmp_path / "store").n_ready == 10
    assert made(release, tmp_path / "store").n_shards_made == 0


def test_a_changed_table_remakes_the_shards_that_changed(release, tmp_path):
    root, table = release
    made(release, tmp_path / "store")
    shorter = (root, table.iloc[:9])
    report = made(shorter, tmp_path / "store")
    assert (report.n_images, report.n_shards, report.n_shards_made) == (9, 3, 1)
    made(shorter, tmp_path / "anew")
    assert contents(tmp_path / "store") == contents(tmp_path / "anew")
    assert {path.name for path in (tmp_path / "store").iterdir()} == {
        ".lock",
        "index.parquet",
        *(f"shard-0000{k}.{kind}" for k in range(3) for kind in ("npy", "parquet")),
    }


def test_another_id_or_another_file_remakes_its_shard(release, tmp_path):
    root, table = release
    made(release, tmp_path / "store")
    renamed = table.assign(image_id=["site:other", *table["image_id"][1:]])
    assert made((root, renamed), tmp_path / "store").n_shards_made == 1
    assert open_images(tmp_path / "store").index["image_id"][0] == "site:other"
    twin = root / "images" / "twin.png"  # of the same size and time as the one that it stands for
    first = root / table["file"][0]
    twin.write_bytes(first.read_bytes())
    os.utime(twin, ns=(first.stat().st_atime_ns, first.stat().st_mtime_ns))
    assert (
        made(
            (root, renamed.assign(file=["images/twin.png", *table["file"][1:]])), tmp_path / "store"
        ).n_shards_made
        == 1
    )


def test_how_rows_are_handed_out_does_not_matter(release, tmp_path, monkeypatch):
    made(release, tmp_path / "whole", shard_rows=10)
    for n_rows in (1, 3, 10):
        monkeypatch.setattr(images, "_CHUNK_ROWS", n_rows)
        for workers in (1, 2):
            folder = tmp_path / f"{n_rows} by {workers}"
            assert made(release, folder, shard_rows=10, workers=workers).n_ready == 10
            assert contents(folder) == contents(tmp_path / "whole")


@pytest.mark.parametrize(
    "options",
    [{"size": 8}, {"colour": "RGB"}, {"key": "another"}, {"shard_rows": 5}],
    ids=lambda o: next(iter(o)),
)
def test_a_changed_setting_remakes_all(release, tmp_path, options):
    made(release, tmp_path / "store")
    report = made(release, tmp_path / "store", **options)
    assert report.n_shards_made == report.n_shards
    made(release, tmp_path / "anew", **options)
    assert contents(tmp_path / "store") == contents(tmp_path / "anew")


@pytest.mark.parametrize("damage", ["cut", "removed", "emptied", "no table", "damaged table", "no index"])
def test_a_damaged_store_is_mended(release, tmp_path, damage):
    store = tmp_path / "store"
    made(release, store)
    whole = contents(store)
    shard = store / "shard-00001.npy"
    if damage == "cut":
        shard.write_bytes(whole[shard.name][:-1])
    elif damage == "removed":
        shard.unlink()
    elif damage == "emptied":
        shard.write_bytes(b"")
    elif damage == "no table":
        shard.with_suffix(".parquet").unlink()
    elif damage == "damaged table":
        shard.with_suffix(".parquet").write_bytes(b"PAR1")
    else:
        (store / "index.parquet").unlink()
    if damage in ("cut", "removed", "emptied"):
        with pytest.raises(InputError, match="1 shards that are missing or damaged"):
            open_images(store)
    if damage == "no index":
        with pytest.raises(InputError, match="is not complete: it has no index"):
            open_images(store)
    assert made(release, store).n_shards_made == (damage != "no index")
    assert contents(store) == whole


def test_a_key_that_returns_does_not_bring_back_other_pixels(release, tmp_path, monkeypatch):
    """A run that is ended between pixels and table, and a raw file that is then put back as it was."""
    root, table = release
    path = root / table["file"][0]
    made(release, tmp_path / "store")
    whole, before, state = contents(tmp_path / "store"), path.read_bytes(), path.stat()
    Image.fromarray(drawn(99)).save(path)

    def ended(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(parquet, "write_table", ended)
        with pytest.raises(KeyboardInterrupt):
            made(release, tmp_path / "store")
    with pytest.raises(InputError, match="is not complete"):
        open_images(tmp_path / "store")
    path.write_bytes(before)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert made(release, tmp_path / "store").n_shards_made == 1
    assert contents(tmp_path / "store") == whole


# --- runs beside each other


def test_a_run_does_not_disturb_one_that_is_going_on(release, tmp_path, monkeypatch):
    made(release, tmp_path / "store")
    part = tmp_path / "store" / "shard-00009.npy.part"
    part.write_bytes(b"of the run that goes on")
    monkeypatch.setattr(images, "_PATIENCE", 0.1)
    with (tmp_path / "store" / ".lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="Another run is preparing images in 'store'"):
            made(release, tmp_path / "store", size=8)
        assert part.exists()
    made(release, tmp_path / "store")
    assert not part.exists()


def test_a_killed_worker_is_one_sentence_and_the_next_run_goes_on(release, tmp_path, monkeypatch):
    started = images.Workers._started

    def dying(self):
        process = started(self)
        os.kill(process.pid, signal.SIGKILL)
        return process

    with monkeypatch.context() as patch:
        patch.setattr(images.Workers, "_started", dying)
        with pytest.raises(
            InputError, match=r"ended before its work was done \(killed by signal 9\); run again"
        ):
            made(release, tmp_path / "store", workers=2)
    made(release, tmp_path / "store", workers=2)
    made(release, tmp_path / "anew")
    assert contents(tmp_path / "store") == contents(tmp_path / "anew")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_mistake_in_a_worker_reaches_the_caller(release, tmp_path, monkeypatch, workers):
    monkeypatch.setattr(images, "make_chunk", _after_removal(images.make_chunk))
    if workers == 2:
        monkeypatch.setattr(images.Workers, "make", _after_removal(images.Workers.make))
    with pytest.raises(InputError, match=r"cannot be written \(no such file or directory\)"):
        made(release, tmp_path / "store", workers=workers)


def _after_removal(make):
    def removed_first(*arguments):
        Path(arguments[-1].target).unlink(missing_ok=True)
        return make(*arguments)

    return removed_first


def test_workers_end_with_the_run(release, tmp_path, monkeypatch):
    processes = []
    started = images.Workers._started

    def noted(self):
        processes.append(started(self))
        return processes[-1]

    monkeypatch.setattr(images.Workers, "_started", noted)
    made(release, tmp_path / "store", workers=2)
    assert processes
    assert [process.returncode for process in processes] == [0] * len(processes)


def test_a_script_without_a_main_guard_works(release, tmp_path):
    root, table = release
    table.to_csv(tmp_path / "table.csv", index=False)
    script = tmp_path / "script.py"
    script.write_text(
        "import pandas as pd\nfrom pathlib import Path\nfrom frame.cohorts.images import prepare_images\n"
        f"print(prepare_images(pd.read_csv({str(tmp_path / 'table.csv')!r}), Path({str(root)!r}), "
        f"Path({str(tmp_path / 'store')!r}), size=16, shard_rows=4, workers=2).n_ready)\n",
        encoding="utf-8",
    )
    shown = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert (shown.stdout, shown.stderr) == ("10\n", "")


# --- memory

_CHILD = """
import resource, sys
from pathlib import Path
import pandas as pd
from frame.cohorts.images import prepare_images
root, folder, n_images, workers = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
files = sorted(path.name for path in root.iterdir())
table = pd.DataFrame({"image_id": [str(k) for k in range(n_images)], "file": (files * n_images)[:n_images]})
report = prepare_images(table, root, folder, size=224, shard_rows=64, workers=workers)
assert report.n_ready == n_images
assert report.n_shards_made == -(-n_images // 64)
print(*(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_memory_does_not_grow_with_the_number_of_images(tmp_path, workers):
    """Four times the images, 48 MB of pixels more: neither run nor worker grows by a quarter of that."""
    (tmp_path / "raw").mkdir()
    for k in range(5):
        Image.fromarray(drawn(k, (30, 40))).save(tmp_path / "raw" / f"{k}.png", compress_level=1)
    peaks = []
    for n_images in (320, 1280):
        command = [
            sys.executable,
            "-c",
            _CHILD,
            tmp_path / "raw",
            tmp_path / str(n_images),
            str(n_images),
            str(workers),
        ]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        peaks.append([int(number) / 1024 for number in shown.split()])
    (run, worker), (run_4, worker_4) = peaks
    assert run_4 - run < 12
    assert worker_4 - worker < 12


# --- what is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "size is 0; it must be a whole number from 1"),
        ({"size": 2.5}, "size is 2.5"),
        ({"shard_rows": True}, "shard_rows is True"),
        ({"workers": 0}, "workers is 0"),
        ({"colour": "grey"}, "colour is 'grey'; it must be one of L, RGB"),
    ],
    ids=["no size", "half a pixel", "truth value", "no worker", "colour"],
)
def test_wrong_arguments_are_one_sentence(release, tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        made(release, tmp_path / "store", **options)
    assert not (tmp_path / "store").exists()


def test_wrong_tables_are_one_sentence(release, tmp_path):
    root, table = release

    def message(changed, where=root):
        with pytest.raises(InputError) as caught:
            made((where, changed), tmp_path / "store")
        assert "site:" not in str(caught.value)
        return str(caught.value)

    assert message(table.drop(columns="file")).startswith("The table of images has no column file")
    assert message(table.iloc[:0]).startswith("The table of images has no row")
    twice = table.assign(image_id=["site:same"] * 2 + table["image_id"].tolist()[:12] + [None])
    assert message(twice).startswith(
        "The table of images has 1 rows without an image_id and 1 with one that stands"
    )
    outside = table.assign(file=["../secret.png", *table["file"][1:]])
    assert message(outside).startswith("1 of 15 file names are blank or lead out")
    assert message(table, tmp_path / "absent").startswith("The folder 'absent' does not exist")


def test_a_row_without_a_file_is_listed(release, tmp_path):
    root, table = release
    unnamed = table.assign(file=[None, *table["file"][1:]])
    assert made((root, unnamed), tmp_path / "store").reasons["no file is named"] == 1
    assert made((root, unnamed), tmp_path / "store").n_shards_made == 0


def test_a_store_that_cannot_be_written_is_one_sentence(release, tmp_path):
    (tmp_path / "store").write_text("a file")
    with pytest.raises(InputError, match="The image store 'store' cannot be written"):
        made(release, tmp_path / "store")


def test_a_folder_without_a_store_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match="The image store 'nothing' is not complete"):
        open_images(tmp_path / "nothing")


def test_a_missing_package_is_one_sentence(release, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        InputError, match=r"needs pyarrow; install it with: pip install 'frame-audit\[study\]'"
    ):
        made(release, tmp_path / "store")


# --- real radiographs and photographs


@pytest.mark.skipif(
    not (REAL / "nih_cxr" / "images").is_dir(), reason="the 621 real radiographs are not here"
)
def test_real_radiographs(tmp_path):
    files = files_under(REAL / "nih_cxr", ["images/*.png"])
    table = pd.DataFrame({"image_id": list(files), "file": list(files.values())})
    report = prepare_images(table, REAL / "nih_cxr", tmp_path / "store", workers=2)
    assert report == ImageReport(n_images=621, n_ready=621, reasons={}, n_shards=2, n_shards_made=2)
    store = open_images(tmp_path / "store")
    assert store.shape == (621, 224, 224)
    assert store.index["sha256"].is_unique
    # They are 224 x 224 already, so nothing may change.
    rows = list(range(0, 621, 40))
    for row, pixels in zip(rows, store.read(rows), strict=True):
        with Image.open(REAL / "nih_cxr" / table["file"][row]) as image:
            assert np.array_equal(pixels, np.asarray(image))


@pytest.mark.skipif(
    not (REAL / "derm_sample" / "images").is_dir(), reason="the real photographs are not here"
)
def test_real_photographs_in_colour(tmp_path):
    files = files_under(REAL / "derm_sample", ["images/*.png"])
    table = pd.DataFrame({"image_id": list(files), "file": list(files.values())})
    report = prepare_images(table, REAL / "derm_sample", tmp_path / "store", colour="RGB", workers=1)
    assert (report.n_images, report.n_ready) == (7, 7)
    for row, pixels in enumerate(open_images(tmp_path / "store").read(table["image_id"])):
        with Image.open(REAL / "derm_sample" / table["file"][row]) as image:
            assert np.array_equal(pixels, np.asarray(image.convert("RGB")))

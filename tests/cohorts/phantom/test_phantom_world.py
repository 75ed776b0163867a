"""Writing the world: bytes, interruption, freshness, and what the images are."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from frame.cohorts.listing import present
from frame.cohorts.phantom import world
from frame.cohorts.phantom.grain import DrawingDefect
from frame.cohorts.phantom.population import population
from frame.cohorts.phantom.truth import scaled
from frame.cohorts.phantom.world import STAMP, is_written, write_world
from frame.cohorts.pixels import read_pixels
from frame.errors import InputError


def _sums(folder):
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def tiny(small_truth):
    """One source of each kind of file."""
    chest = {name: small_truth.chest[name] for name in ("chexpert", "vindr_cxr")}
    return small_truth.model_copy(update={"chest": chest, "skin": {"ddi": small_truth.skin["ddi"]}})


@pytest.mark.parametrize(("workers", "batch"), [(1, 7), (1, 1000), (2, 20)])
def test_same_bytes_for_any_workers_and_batch(small_truth, small_world, tmp_path, workers, batch):
    write_world(small_truth, tmp_path, 32, workers, batch=batch)
    assert _sums(tmp_path) == _sums(small_world)


def test_another_seed_gives_other_images(tiny, tmp_path):
    write_world(tiny, tmp_path / "a", 32, 1)
    write_world(tiny.model_copy(update={"seed": 1}), tmp_path / "b", 32, 1)
    images = [name for name in _sums(tmp_path / "a") if name.endswith((".jpg", ".png", ".npz"))]
    first, second = _sums(tmp_path / "a"), _sums(tmp_path / "b")
    # Names of some images hold what was drawn, so that only those with the same name can be compared.
    both = [name for name in images if name in second]
    assert len(both) > 20
    assert not any(first[name] == second[name] for name in both)


def test_every_file_of_a_manifest_is_there(small_truth, small_world, read):
    for source in small_truth.sources:
        files, manifest = read(small_world, source, images=True)
        assert "no image file" not in set(manifest.left_out["reason"])
        found = manifest.table
        assert len(found) == len(population(small_truth, source))
        assert present(files.root, found["file"]).all()
        expected = population(small_truth, source).set_index("image_id")["file"]
        names = found["image_id"].str.removeprefix(f"{source}:")
        assert found["file"].tolist() == expected[names].tolist()


def test_images_are_what_they_should_be(small_truth, small_world, read):
    seen = set()
    for source in small_truth.sources:
        files, manifest = read(small_world, source, images=True)
        colour = "RGB" if source in small_truth.skin else "L"
        for name in manifest.table["file"][:20]:
            pixels = read_pixels(files.root / name, colour)
            assert pixels.shape == ((32, 32, 3) if colour == "RGB" else (32, 32))
            assert pixels.std() > 2
            seen.add(pixels.tobytes())
    assert len(seen) == sum(min(20, len(population(small_truth, s))) for s in small_truth.sources)


def test_archives_hold_what_the_release_has(small_world):
    paths = sorted((small_world / "fairvision").rglob("*.npz"))
    truth = pd.read_parquet(small_world / "truth" / "fairvision.parquet").set_index("image_id")
    assert len(paths) == len(truth)
    for path in paths:
        with np.load(path) as archive:
            assert set(archive) == {"slo_fundus", "race", "male", "hispanic", "glaucoma"}
            row = truth.loc[path.stem]
            assert ("Asian", "Black", "White")[int(archive["race"])] == row["race"]
            assert bool(archive["male"]) == (row["sex"] == "male")
            assert bool(archive["glaucoma"]) == row["glaucoma_true"]


def test_truth_tables_hold_every_image(small_truth, small_world):
    for source in small_truth.sources:
        table = pd.read_parquet(small_world / "truth" / f"{source}.parquet")
        expected = population(small_truth, source)
        assert table.columns.tolist() == expected.columns.tolist()
        assert table["image_id"].tolist() == expected["image_id"].tolist()
    said = (small_world / "truth" / "statement.txt").read_text()
    assert "no person stands behind any of them" in said
    assert json.loads((small_world / "truth" / "truth.json").read_text())["seed"] == small_truth.seed


def test_a_second_call_leaves_everything(tiny, tmp_path):
    write_world(tiny, tmp_path, 32, 1)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.jpg")}
    write_world(tiny, tmp_path, 32, 1)
    assert times == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.jpg")}


def test_what_is_missing_is_written_again(tiny, tmp_path):
    write_world(tiny, tmp_path, 32, 1)
    sums = _sums(tmp_path)
    (tmp_path / "ddi" / STAMP).unlink()
    (tmp_path / "truth" / "chexpert.parquet").unlink()
    (tmp_path / ".vindr_cxr-left.part").mkdir()
    assert not is_written(tiny, tmp_path, 32, "ddi")
    assert not is_written(tiny, tmp_path, 32, "chexpert")
    assert is_written(tiny, tmp_path, 32, "vindr_cxr")
    write_world(tiny, tmp_path, 32, 1)
    assert _sums(tmp_path) == sums


def test_another_truth_replaces_what_is_there(tiny, tmp_path):
    write_world(tiny, tmp_path, 32, 1)
    other = tiny.model_copy(update={"seed": 5})
    write_world(other, tmp_path, 32, 1)
    write_world(other, tmp_path / "fresh", 32, 1)
    found = {name: one for name, one in _sums(tmp_path).items() if not name.startswith("fresh")}
    assert found == _sums(tmp_path / "fresh")
    assert not list(tmp_path.glob(".*.part"))


def test_a_failing_layout_leaves_nothing_half_written(tiny, tmp_path, monkeypatch):
    def broken(truth, images, side):
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(world.LAYOUTS, "vindr_cxr", broken)
    with pytest.raises(InputError, match=r"cannot be written \(no space left on device\); make room"):
        write_world(tiny, tmp_path, 32, 1)
    assert (tmp_path / "chexpert" / STAMP).is_file()
    assert not (tmp_path / "vindr_cxr").exists()
    assert not list(tmp_path.glob(".*.part"))
    monkeypatch.undo()
    write_world(tiny, tmp_path, 32, 1)
    write_world(tiny, tmp_path / "fresh", 32, 1)
    found = {name: one for name, one in _sums(tmp_path).items() if not name.startswith("fresh")}
    assert found == _sums(tmp_path / "fresh")


@pytest.mark.parametrize("levels", [1, 15])
def test_an_image_with_hardly_a_grey_level_is_refused(tiny, tmp_path, monkeypatch, levels):
    def poor(table, source, side):
        return np.resize(np.arange(levels, dtype=np.uint8), (len(table), side, side))

    monkeypatch.setattr(world, "pictures", poor)
    with pytest.raises(DrawingDefect, match="drawn images have fewer than 16 grey levels"):
        write_world(tiny, tmp_path, 32, 1)
    assert not (tmp_path / "chexpert").exists()


@pytest.mark.parametrize(
    ("side", "workers", "words"),
    [(8, 1, "side is 8; it must be at least 16"), (32, 0, "workers is 0; it must be at least 1")],
)
def test_refusals(tiny, tmp_path, side, workers, words):
    with pytest.raises(InputError, match=words):
        write_world(tiny, tmp_path, side, workers)


def _started(folder, workers):
    code = (
        "import sys\n"
        f"sys.path[:0] = {sys.path!r}\n"
        "from pathlib import Path\n"
        "from frame.cohorts.phantom.truth import PhantomTruth, scaled\n"
        "from frame.cohorts.phantom.world import write_world\n"
        "if __name__ == '__main__':\n"
        f"    write_world(scaled(PhantomTruth(), 0.05), Path({str(folder)!r}), 32, {workers})\n"
    )
    return subprocess.Popen([sys.executable, "-c", code])


def _killed_when(process, ready):
    try:
        deadline = time.monotonic() + 60
        while not ready() and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.wait()


def test_a_killed_call_goes_on_where_it_was(truth, tmp_path):
    part, killed = scaled(truth, 0.05), tmp_path / "killed"
    _killed_when(_started(killed, 1), (killed / "mimic_cxr").exists)
    done = [source for source in part.sources if is_written(part, killed, 32, source)]
    assert "mimic_cxr" in done
    assert len(done) < len(part.sources)
    kept = (killed / "mimic_cxr" / STAMP).stat().st_mtime_ns
    write_world(part, killed, 32, 1)
    assert (killed / "mimic_cxr" / STAMP).stat().st_mtime_ns == kept
    write_world(part, tmp_path / "whole", 32, 1)
    assert _sums(killed) == _sums(tmp_path / "whole")


def _children(parent):
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rsplit(")", 1)[1].split()
            if int(fields[1]) == parent:
                found.append(int(stat.parent.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs a table of processes")
def test_workers_end_with_a_killed_call(tmp_path):
    process = _started(tmp_path, 2)
    children = []

    def ready():
        children[:] = _children(process.pid)
        return len(children) >= 3 and bool(list(tmp_path.rglob("*.jpg")))

    _killed_when(process, ready)
    assert len(children) >= 3
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{child}").exists() for child in children) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(Path(f"/proc/{child}").exists() for child in children)


def test_a_killed_worker_is_a_sentence(truth, tmp_path):
    def kill_one():
        while not multiprocessing.active_children():
            time.sleep(0.02)
        multiprocessing.active_children()[0].kill()

    killer = threading.Thread(target=kill_one)
    killer.start()
    with pytest.raises(InputError, match="ended before its work was done; run again"):
        write_world(scaled(truth, 0.05), tmp_path, 32, 2)
    killer.join()
    assert not list(tmp_path.glob(".*.part"))

"""Finished strengths on disk: a run that was ended goes on, and nothing stale is ever read."""

import importlib.metadata
import json

import numpy as np
import pandas as pd
import pytest
from mechanism_worlds import asked, cohort, planted_verdict

from frame.errors import InputError
from frame.interventions.finished_strengths import FinishedStrengths, digest_of


def run(folder, **settings):
    return asked(cohort(2, 0.6), folder=folder, **settings)


def same(one, other):
    pd.testing.assert_frame_equal(one.strengths, other.strengths)
    pd.testing.assert_frame_equal(one.changes, other.changes)
    pd.testing.assert_frame_equal(one.directions, other.directions)
    assert one.verdict == other.verdict


class Ended(Exception):
    pass


def ended_after(n_steps):
    def progress(done, total):
        assert done <= total
        if done == n_steps:
            raise Ended

    return progress


def files(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("n_steps", [1, 2, 5, 8])
def test_a_run_that_was_ended_goes_on(tmp_path, n_steps):
    folder = tmp_path / "finished"
    with pytest.raises(Ended):
        run(folder, progress=ended_after(n_steps))
    assert len(files(folder)) == n_steps
    found = run(folder)
    same(found, planted_verdict(2))
    assert f"{n_steps} finished steps of an earlier run were read" in " ".join(found.notes)
    assert not [name for name in files(folder) if not name.endswith(".npz")]


def test_a_finished_run_is_read_and_not_computed(tmp_path, monkeypatch):
    run(tmp_path)
    names = files(tmp_path)
    stamps = [(tmp_path / name).stat().st_mtime_ns for name in names]

    def refuse(*_, **__):
        raise AssertionError("computed again")

    monkeypatch.setattr("frame.interventions.operator_grids.measured", refuse)
    monkeypatch.setattr("frame.interventions.operator_grids.disease_subspace", refuse)
    same(run(tmp_path), planted_verdict(2))
    assert [(tmp_path / name).stat().st_mtime_ns for name in names] == stamps


def test_other_inputs_or_settings_are_kept_apart(tmp_path):
    drawn = cohort(2, 0.6)
    run(tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    found = run(tmp_path, seed=1)
    assert not any("earlier run" in note for note in found.notes)
    run(tmp_path, majority="B")
    changed = drawn.features.copy()
    changed[0, 0] += 1
    asked(
        type("Drawn", (), vars(drawn) | {"features": changed})(),
        folder=tmp_path,
        geometry=False,
        whitened=False,
    )
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize("harm", ["cut off", "empty", "another step", "another digest", "text"])
def test_a_damaged_or_foreign_file_is_computed_again(tmp_path, harm):
    run(tmp_path)
    file = next(tmp_path.rglob("entanglement-4-0.npz"))
    whole = file.read_bytes()
    if harm == "cut off":
        file.write_bytes(whole[: len(whole) // 2])
    elif harm == "empty":
        file.write_bytes(b"")
    elif harm == "text":
        file.write_text("not an archive", encoding="utf-8")
    elif harm == "another step":
        file.write_bytes(next(tmp_path.rglob("entanglement-1-0.npz")).read_bytes())
    else:
        place = tmp_path / "other"
        run(place, seed=1)
        file.write_bytes(next(place.rglob("entanglement-4-0.npz")).read_bytes())
    same(run(tmp_path), planted_verdict(2))
    assert file.read_bytes() == whole


def test_no_file_holds_a_row_or_a_patient(tmp_path):
    run(tmp_path)
    drawn = cohort(2, 0.6)
    n_rows = len(drawn)
    for path in tmp_path.rglob("*.npz"):
        with np.load(path, allow_pickle=False) as held:
            for name in held.files:
                if name != "about":
                    assert n_rows not in held[name].shape
                    assert int((drawn.split == "test").sum()) not in held[name].shape
            about = json.loads(bytes(held["about"]).decode())
        assert set(about) == {"digest", "step", "facts"}


def test_a_folder_that_cannot_be_made(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    with pytest.raises(InputError, match=r"^folder: 'file' cannot be used \(.*\); give a folder that can"):
        run(blocked)
    with pytest.raises(InputError, match=r"^folder is a int; give a path\.$"):
        run(3)


def test_nothing_is_kept_without_a_folder(tmp_path):
    store = FinishedStrengths(None, "")
    store.keep("step", {"a": np.zeros(1)}, {})
    assert store.read("step") is None
    assert list(tmp_path.iterdir()) == []


def test_the_digest_sees_every_part():
    features = np.arange(12, dtype=np.float32).reshape(6, 2)
    rows = [np.arange(6)]
    start = digest_of(features, rows, {"labels": np.zeros(6)}, {"seed": 0})
    assert start == digest_of(features.copy(), rows, {"labels": np.zeros(6)}, {"seed": 0})
    assert start != digest_of(features, rows, {"labels": np.zeros(6)}, {"seed": 1})
    assert start != digest_of(features, rows, {"labels": np.ones(6)}, {"seed": 0})
    assert start != digest_of(features, rows, {"groups": np.zeros(6)}, {"seed": 0})
    assert start != digest_of(features.astype(np.float64), rows, {"labels": np.zeros(6)}, {"seed": 0})
    assert start != digest_of(features, [np.arange(5)], {"labels": np.zeros(6)}, {"seed": 0})


@pytest.mark.parametrize(
    "library", ["numpy", "scipy", "numba", "scikit-learn", "fairlearn", "concept-erasure", "torch"]
)
def test_the_digest_sees_the_libraries(monkeypatch, library):
    given = (np.arange(12, dtype=np.float32).reshape(6, 2), [np.arange(6)], {"labels": np.zeros(6)}, {})
    start, ask = digest_of(*given), importlib.metadata.version

    def other(name):
        if name == library:
            return "999.0"
        return ask(name)

    def absent(name):
        if name == library:
            raise importlib.metadata.PackageNotFoundError(name)
        return ask(name)

    found = {start}
    for version in (other, absent):
        monkeypatch.setattr("frame.interventions.finished_strengths.version", version)
        found.add(digest_of(*given))
    # A library that is not installed here gives the digest that it has without it.
    assert len(found) == (3 if _installed(library) else 2)


def _installed(library):
    try:
        importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True

"""Stages: what makes an artefact stale, and that nothing half-made is ever left."""

import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest

from frame.errors import InputError
from frame.workspace import modules
from frame.workspace.layout import Workspace, default_root, open_workspace
from frame.workspace.profiles import load_profile
from frame.workspace.stages import Stage, make, read_sidecar, sidecar, staleness
from frame.workspace.sums import Sums

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "workspace", load_profile("demo"))


@pytest.fixture
def stages(workspace, tmp_path):
    """Two stages: the second reads what the first makes from a file."""
    source = tmp_path / "source.csv"
    source.write_text("3\n")
    calls = []

    def first(place, folder):
        calls.append("first")
        (folder / "number.txt").write_text(str(2 * int(source.read_text())))

    def second(place, folder):
        calls.append("second")
        (folder / "sum.txt").write_text(place.path("results/number.txt").read_text() + "!")
        (folder / "note.txt").write_text("note")

    return (
        Stage(
            "first",
            ("results/number.txt",),
            first,
            files={"the source": source},
            settings={"labels.blank": "missing", "sizes": [1, 2]},
            modules=("frame.errors",),
        ),
        Stage("second", ("results/sum.txt", "results/note.txt"), second, inputs=("results/number.txt",)),
        calls,
        source,
    )


def with_(stage, **changes):
    import dataclasses

    return dataclasses.replace(stage, **changes)


def test_a_stage_is_made_once(workspace, stages):
    first, second, calls, _ = stages
    assert staleness(workspace, first) == ("never made",)
    assert make(workspace, first) is True
    assert make(workspace, second) is True
    assert workspace.path("results/sum.txt").read_text() == "6!"
    assert staleness(workspace, first) == staleness(workspace, second) == ()
    assert make(workspace, first) is False
    assert make(workspace, second) is False
    assert calls == ["first", "second"]
    assert make(workspace, first, force=True) is True


def test_the_sidecar_says_what_was_used(workspace, stages):
    first, second, _, _ = stages
    make(workspace, first)
    make(workspace, second)
    found = json.loads(sidecar(workspace, first).read_text())
    assert set(found) == {
        "files",
        "frame",
        "inputs",
        "libraries",
        "modules",
        "outputs",
        "profile",
        "profile_sha256",
        "seed",
        "settings",
        "stage",
        "time",
    }
    assert found["settings"] == {"labels.blank": "missing", "sizes": [1, 2]}
    assert list(found["modules"]) == ["frame", "frame.errors"]
    assert list(found["files"]) == ["the source"]
    assert found["profile"] == "demo"
    assert read_sidecar(workspace, second)["inputs"] == found["outputs"]


def test_content_makes_stale_and_times_do_not(workspace, stages):
    first, second, calls, source = stages
    make(workspace, first)
    make(workspace, second)
    os.utime(source, (1, 1))
    os.utime(workspace.path("results/number.txt"))
    assert staleness(workspace, first) == staleness(workspace, second) == ()
    source.write_text("4\n")
    assert staleness(workspace, first) == ("file the source changed",)
    assert staleness(workspace, second) == ()
    make(workspace, first)
    assert staleness(workspace, second) == ("input results/number.txt changed",)
    source.write_text("4\n\n")
    make(workspace, first)
    assert make(workspace, second) is True  # it was stale from before
    source.write_text("4\n")
    make(workspace, first)
    assert staleness(workspace, second) == ()  # the same number again
    assert calls == ["first", "second", "first", "first", "second", "first"]


def test_a_changed_setting_or_module_is_named(workspace, stages, monkeypatch):
    first, _, _, _ = stages
    make(workspace, first)
    changed = with_(first, settings={"labels.blank": "negative", "new": 1})
    assert staleness(workspace, changed) == (
        "setting labels.blank changed",
        "setting new is new",
        "setting sizes is gone",
    )
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "9" if name == "numpy" else version(name))
    assert staleness(workspace, first) == ("library numpy changed",)
    monkeypatch.undo()
    monkeypatch.setattr(modules, "_sum", lambda file, *stamp: "0" * 64 if file.stem == "errors" else "1" * 64)
    assert staleness(workspace, first) == ("module frame changed", "module frame.errors changed")


def test_an_input_that_is_new_makes_stale_also_before_it_is_there(workspace, stages):
    first, second, _, _ = stages
    make(workspace, first)
    make(workspace, second)
    more = with_(second, inputs=(*second.inputs, "results/other.txt"))
    assert staleness(workspace, more) == ("input results/other.txt is new",)


def test_an_output_that_was_tampered_with_is_made_again(workspace, stages):
    _, second, _, _ = stages
    make(workspace, stages[0])
    make(workspace, second)
    workspace.path("results/note.txt").write_text("other")
    assert staleness(workspace, second) == ("output results/note.txt is not the file that was written",)
    workspace.path("results/note.txt").unlink()
    assert staleness(workspace, second) == ("output results/note.txt is missing",)
    assert make(workspace, second) is True
    assert workspace.path("results/note.txt").read_text() == "note"


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"stage": "another"}'])
def test_a_damaged_sidecar_is_none(workspace, stages, damage):
    first, _, _, _ = stages
    make(workspace, first)
    sidecar(workspace, first).write_text(damage)
    assert staleness(workspace, first) == ("never made",)


def test_a_stage_that_fails_leaves_what_was_there(workspace, stages):
    first, _, _, source = stages
    make(workspace, first)
    before = {file: file.read_bytes() for file in workspace.root.rglob("*") if file.is_file()}
    source.write_text("no number\n")
    with pytest.raises(ValueError, match="invalid literal"):
        make(workspace, first)
    after = {file: file.read_bytes() for file in workspace.root.rglob("*") if file.is_file()}
    after.pop(workspace.state / "sums.json")
    before.pop(workspace.state / "sums.json")
    assert after == before
    assert staleness(workspace, first) == ("file the source changed",)


def test_an_input_that_is_missing_is_a_sentence(workspace, stages):
    first, second, _, source = stages
    with pytest.raises(InputError, match=r"second reads results/number\.txt, which is not there yet"):
        make(workspace, second)
    source.unlink()
    with pytest.raises(InputError, match="first reads the source, and there is no such file"):
        make(workspace, first)


def test_a_file_that_changes_while_it_is_read_is_noticed(workspace, stages):
    first, _, _, source = stages

    def slow(place, folder):
        source.write_text("5\n")
        (folder / "number.txt").write_text("6")

    with pytest.raises(InputError, match="the source changed while it was read; run it again"):
        make(workspace, with_(first, run=slow))
    assert staleness(workspace, first) == ("never made",)


def test_a_stage_that_writes_too_little_is_a_defect(workspace, stages):
    first, _, _, _ = stages
    with pytest.raises(FileNotFoundError):
        make(workspace, with_(first, outputs=("results/number.txt", "results/other.txt")))


def test_a_killed_run_leaves_an_artefact_that_is_made_again(workspace, stages):
    """Between the artefact and its sidecar: the new artefact does not pass for one with provenance."""
    first, _, _, source = stages
    make(workspace, first)
    kept = sidecar(workspace, first).read_bytes()
    source.write_text("4\n")
    make(workspace, first)
    sidecar(workspace, first).write_bytes(kept)
    assert "output results/number.txt is not the file that was written" in staleness(workspace, first)


def test_one_process_at_a_time(workspace, tmp_path):
    """A second process waits for the first, says so, and then finds the artefact fresh."""
    program = f"""
import sys, time
sys.path.insert(0, {str(ROOT)!r})
from importlib.metadata import version
from pathlib import Path
from frame.workspace.layout import Workspace
from frame.workspace.profiles import load_profile
from frame.workspace.stages import Stage, make
def run(workspace, folder):
    Path({str(tmp_path / "begun")!r}).touch()
    while not Path({str(tmp_path / "go")!r}).exists():
        time.sleep(0.01)
    (folder / "a.txt").write_text("a")
place = Workspace(Path({str(workspace.root)!r}), load_profile("demo"))
made = make(place, Stage("slow", ("results/a.txt",), run))
print(made)
"""
    first = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    while not (tmp_path / "begun").exists():
        time.sleep(0.01)
    second = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert second.stderr.readline() == "slow is being made by another run; waiting for it.\n"
    (tmp_path / "go").touch()
    assert first.communicate(timeout=60)[0] == "True\n"
    assert second.communicate(timeout=60)[0] == "False\n"


def test_fingerprints_count_as_files(workspace, stages):
    first, _, _, _ = stages
    looked = with_(first, fingerprints={"a folder": lambda place: "one"})
    make(workspace, looked)
    assert staleness(workspace, looked) == ()
    again = with_(first, fingerprints={"a folder": lambda place: "two"})
    assert staleness(workspace, again) == ("file a folder changed",)


# ---- sums and folders


def test_a_sum_is_made_again_when_the_file_is_written_again(tmp_path):
    file, memory = tmp_path / "a", tmp_path / "sums.json"
    file.write_text("one")
    sums = Sums(memory)
    one = sums.of(file)
    sums.keep()
    status = file.stat()
    file.write_text("two")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))  # the same size and the same time
    assert Sums(memory).of(file) != one
    assert sums.of(tmp_path / "nothing") is None


@pytest.mark.parametrize("memory", ["", "[]", '{"a": 1}', '{"a": ["x", "y"]}'])
def test_a_damaged_memory_of_sums_costs_time_only(tmp_path, memory):
    (tmp_path / "a").write_text("one")
    expected = Sums(tmp_path / "none").of(tmp_path / "a")
    (tmp_path / "sums.json").write_text(memory)
    assert Sums(tmp_path / "sums.json").of(tmp_path / "a") == expected


def test_where_a_workspace_lies(monkeypatch, tmp_path):
    monkeypatch.delenv("FRAME_WORKSPACE", raising=False)
    assert default_root("demo") == ROOT / "_build" / "workspaces" / "demo"
    monkeypatch.setenv("FRAME_WORKSPACE", str(tmp_path / "mine"))
    assert open_workspace(load_profile("demo")).root == tmp_path / "mine"
    assert open_workspace(load_profile("demo"), tmp_path / "given").root == tmp_path / "given"


def test_a_workspace_belongs_to_one_profile(workspace, stages):
    make(workspace, stages[0])
    assert open_workspace(load_profile("demo"), workspace.root).root == workspace.root
    with pytest.raises(InputError, match=r"belongs to profile demo; give profile open a folder of its own"):
        open_workspace(load_profile("open"), workspace.root)


def test_a_file_is_no_workspace(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="The workspace 'file' is a file"):
        open_workspace(load_profile("demo"), tmp_path / "file")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_workspace_that_cannot_be_written_to(workspace, stages, tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(InputError, match="cannot be written to"):
            make(workspace, stages[0])
    finally:
        tmp_path.chmod(0o700)


# ---- odd workspaces


@pytest.mark.parametrize("value", [None, [], "x"])
@pytest.mark.parametrize("field", ["inputs", "files", "settings", "modules", "libraries", "outputs"])
def test_a_sidecar_of_another_version_makes_stale(workspace, stages, field, value):
    first, second, _, _ = stages
    make(workspace, first)
    make(workspace, second)
    for stage in (first, second):
        written = json.loads(sidecar(workspace, stage).read_text())
        used = bool(written[field])
        written[field] = value
        sidecar(workspace, stage).write_text(json.dumps(written))
        assert bool(staleness(workspace, stage)) is used


def test_outputs_that_lack_a_part_are_made_again(workspace, stages):
    first, _, calls, _ = stages
    looked = with_(first, whole=lambda place: len(calls) != 1)
    assert make(workspace, looked) is True
    assert staleness(workspace, looked) == ("output results/number.txt is damaged, or lacks a part",)
    assert make(workspace, looked) is True
    assert staleness(workspace, looked) == ()


def test_a_disk_that_is_full_is_one_sentence(workspace, stages):
    first, _, _, source = stages
    make(workspace, first)
    kept = workspace.path("results/number.txt").read_bytes()
    source.write_text("4\n")

    def full(place, folder):
        raise OSError(28, "No space left on device")

    with pytest.raises(
        InputError, match=r"first: a file cannot be read or written \(no space left on device"
    ):
        make(workspace, with_(first, run=full))
    assert workspace.path("results/number.txt").read_bytes() == kept


@pytest.mark.parametrize("name", ["a" * 300, "~nobody-of-this-name/x"])
def test_a_workspace_that_cannot_be_there_is_one_sentence(name):
    with pytest.raises(InputError, match="cannot be looked at"):
        open_workspace(load_profile("demo"), name)


def test_an_owner_that_cannot_be_read_is_no_owner(workspace, stages):
    make(workspace, stages[0])
    workspace.owner.write_bytes(b"\xff\xfe")
    assert open_workspace(load_profile("demo"), workspace.root).root == workspace.root


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_rule_that_is_asked_to_end_says_no_traceback(sent, code, tmp_path):
    program = f"""
import os, signal, sys
import frame.workspace.__main__ as rule
rule.stage_of = lambda place, name: os.kill(os.getpid(), {int(sent)})
sys.exit(rule.main(["x", "--profile", "demo", "--workspace", {str(tmp_path / "w")!r}]))
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == code
    assert "Traceback" not in ended.stderr

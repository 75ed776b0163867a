"""``frame data build`` killed at any moment: the next run ends as one that was never disturbed."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cohorts"))
from raw_nih import write_profile, write_release

KILLS = 20


def command(profile, workspace):
    build = [sys.executable, "-m", "frame", "data", "build"]
    return [*build, "--profile", str(profile), "--workspace", str(workspace)]


def build(profile, workspace):
    ran = subprocess.run(
        command(profile, workspace), capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def artefacts(workspace):
    """Every artefact with its bytes; of a sidecar all but the time. The engine's own state does not count."""
    found = {}
    for file in sorted(workspace.rglob("*")):
        place = file.relative_to(workspace)
        if file.is_file() and place.parts[0] != ".state":
            content = file.read_bytes()
            if file.suffix == ".json":
                said = json.loads(content)
                said.pop("time", None)
                content = json.dumps(said, sort_keys=True).encode()
            found[str(place)] = content
    return found


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release")
    names = write_release(folder / "raw", patients=200, each=3, side=300)
    (folder / "raw" / "images" / names[5]).write_bytes(b"")
    profile = write_profile(folder / "small.yml", folder / "raw", image=64)
    begun = time.monotonic()
    said = build(profile, folder / "undisturbed")
    return folder, profile, said, time.monotonic() - begun


def test_what_is_built_and_said(release):
    folder, _, said, _ = release
    assert "NIH ChestX-ray14: 600 images of 200 subjects (train 405, validation 45, test 150)" in said
    assert "unreadable: 1 (" in said
    assert {file.name for file in (folder / "undisturbed" / "manifests").iterdir()} == {
        "nih_cxr14.parquet",
        "nih_cxr14.parquet.json",
        "nih_cxr14.left_out.csv",
        "nih_cxr14.tally.csv",
    }


def test_a_second_run_makes_nothing(release):
    folder, profile, _, _ = release
    before = artefacts(folder / "undisturbed")
    assert "0 of 3 artefacts were made" in build(profile, folder / "undisturbed")
    assert artefacts(folder / "undisturbed") == before


def test_killed_twenty_times_it_ends_the_same(release):
    folder, profile, _, seconds = release
    workspace = folder / "killed"
    moments = random.Random(7)
    killed = 0
    while killed < KILLS:
        run = subprocess.Popen(
            command(profile, workspace),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        time.sleep(moments.uniform(0.3, 0.9) * seconds)
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
            killed += 1
            read_everything(workspace)
        elif killed < KILLS:  # it came to its end: once more from nothing
            shutil.rmtree(workspace)
    build(profile, workspace)
    found, expected = artefacts(workspace), artefacts(folder / "undisturbed")
    assert [name for name in found | expected if found.get(name) != expected.get(name)] == []
    assert list((workspace / ".state" / "scratch").iterdir()) == []


def read_everything(workspace):
    """Nothing half-written lies where a reader would look for it."""
    import pandas as pd

    for file in workspace.rglob("*.parquet"):
        if ".state" not in file.parts and not file.name.startswith("."):
            pd.read_parquet(file)
    for file in workspace.rglob("*.json"):
        if file.parent.name == "manifests":
            json.loads(file.read_text())

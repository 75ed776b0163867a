"""Extraction is ended by SIGKILL at random moments, and ends up with the files of an undisturbed run."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from made_stores import make_images

from frame.encoders.features import SIDECAR, STATUS, VECTORS, open_features

KILLS = 10
N_IMAGES = 160
BLOCK_ROWS = 8
SEED = 5
MANIFEST = "d" * 64

#: Imports once, then forks a run for each folder that it is told, and says its process id and what it made.
LAUNCHER = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import numpy as np
from made_stores import MadeUp, Scaled, ids_of
from frame.cohorts.image_rows import open_image_rows
from frame.encoders.extraction import extract_features
images = open_image_rows(Path(sys.argv[2]))
images.reasons(0, 1)
print("ready", flush=True)
for line in iter(sys.stdin.readline, ""):
    child = os.fork()
    if child == 0:
        report = extract_features(
            MadeUp(), images, ids_of(images.n_rows), Path(line.strip()), manifest_sha256="d" * 64,
            batch_size=4, block_rows=8, workers=2,
        )
        os.write(1, f"{report.n_blocks} {report.n_blocks_made}\\n".encode())
        os._exit(0)
    os.write(1, f"{child}\\n".encode())
    sys.stdin.readline()  # until then its process id stands for no other process
    status = os.waitpid(child, 0)[1]
    os.write(1, b"killed\\n" if os.WIFSIGNALED(status) else b"ended\\n")
"""

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


class Launcher:
    def __init__(self, images):
        command = [sys.executable, "-c", LAUNCHER, str(Path(__file__).parent), str(images)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout.readline() == "ready\n"

    def say(self, line):
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def start(self, folder):
        self.say(folder)
        return int(self.process.stdout.readline())

    def end(self):
        """What the run printed, if it came to that, and how it ended."""
        self.say("end")
        lines = [self.process.stdout.readline().strip()]
        while lines[-1] not in ("killed", "ended"):
            lines.append(self.process.stdout.readline().strip())
        return lines

    def whole_run(self, folder):
        self.start(folder)
        found, ended = self.end()
        assert ended == "ended"
        return [int(number) for number in found.split()]


@pytest.fixture
def launcher(tmp_path):
    make_images(tmp_path, N_IMAGES)
    launched = Launcher(tmp_path / "images")
    yield launched
    _, errors = launched.process.communicate()
    assert errors == ""


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def state(store):
    """What a kill left: blocks, files that were being written, and which of the store's own are there."""
    if not store.exists():
        return 0, 0, ()
    blocks = len(list(store.glob("blocks/*/block-*.npz")))
    parts = len(list(store.rglob("*.part")))
    return blocks, parts, tuple(name for name in (SIDECAR, STATUS, VECTORS) if (store / name).exists())


def test_ten_kills_leave_the_files_of_an_undisturbed_run(tmp_path, launcher):
    n_blocks = N_IMAGES // BLOCK_ROWS
    start = time.monotonic()
    assert launcher.whole_run(tmp_path / "undisturbed") == [n_blocks, n_blocks]
    whole = time.monotonic() - start
    store, kills, seen = tmp_path / "store", 0, set()
    generator = np.random.default_rng(SEED)
    while kills < KILLS:
        before = state(store)
        if before[2]:  # finished or nearly so: begin another one, so that there is work again
            for path in sorted(store.rglob("*"), reverse=True):
                path.unlink() if path.is_file() else path.rmdir()
            before = state(store)
        run = launcher.start(store)
        # After some blocks more, so that also on a busy machine kills meet runs at every stage.
        wanted = before[0] + generator.integers(0, 6)
        until = time.monotonic() + 60
        while state(store)[0] < wanted and not state(store)[2] and time.monotonic() < until:
            time.sleep(0.001)
        time.sleep(generator.uniform(0, 0.2 * whole))
        os.kill(run, signal.SIGKILL)
        kills += launcher.end()[-1] == "killed"
        seen.add(state(store)[0])
        if SIDECAR in state(store)[2]:  # what has a sidecar is whole
            open_features(store, manifest_sha256=MANIFEST)
    assert len(seen) > 2, "all kills met the same state"
    blocks, _, files = state(store)
    assert launcher.whole_run(store) == [n_blocks, 0 if SIDECAR in files else n_blocks - blocks]
    assert contents(store) == contents(tmp_path / "undisturbed")
    assert state(store) == (0, 0, (SIDECAR, STATUS, VECTORS))
    assert launcher.whole_run(store) == [n_blocks, 0]


@pytest.mark.parametrize("moment", ["before the sidecar", "between the two files", "before the blocks go"])
def test_a_kill_while_a_store_is_put_together(tmp_path, launcher, moment):
    """The states that the last step passes through, each laid out as a kill would leave it."""
    store, whole = tmp_path / "store", tmp_path / "undisturbed"
    n_blocks = N_IMAGES // BLOCK_ROWS
    launcher.whole_run(whole)
    run = launcher.start(store)
    until = time.monotonic() + 60
    while state(store)[0] < n_blocks - 1 and not state(store)[2] and time.monotonic() < until:
        time.sleep(0.0005)
    os.kill(run, signal.SIGKILL)
    launcher.end()
    (store / VECTORS).write_bytes((whole / VECTORS).read_bytes())
    if moment != "between the two files":
        (store / STATUS).write_bytes((whole / STATUS).read_bytes())
    if moment == "before the blocks go":
        (store / SIDECAR).write_bytes((whole / SIDECAR).read_bytes())
        left = 0
    else:
        (store / SIDECAR).unlink(missing_ok=True)
        left = n_blocks - state(store)[0]
    (store / ".status-left.part").write_bytes(b"x")
    assert launcher.whole_run(store) == [n_blocks, left]
    assert contents(store) == contents(whole)
    assert state(store) == (0, 0, (SIDECAR, STATUS, VECTORS))

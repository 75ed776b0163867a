"""The image stage is ended by SIGKILL at random moments, and ends up with the files of an undisturbed run."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

KILLS = 20
N_IMAGES = 320
N_UNREADABLE = 8
N_SHARDS = 14
SEED = 11

#: Imports once, then forks a run for each folder that it is told, and says its process id and what it found.
LAUNCHER = """
import os, sys
from pathlib import Path
import pandas as pd
from pyarrow import parquet
from frame.cohorts import images
root = Path(sys.argv[1])
files = sorted(path.name for path in root.iterdir())
table = pd.DataFrame({"image_id": ["site:" + name for name in files], "file": files})
print("ready", flush=True)
for line in iter(sys.stdin.readline, ""):
    child = os.fork()
    if child == 0:
        report = images.prepare_images(
            table, root, Path(line.strip()), size=48, colour="RGB", shard_rows=24, workers=2
        )
        found = (report.n_images, report.n_ready, report.n_shards, report.n_shards_made)
        os.write(1, f"{' '.join(map(str, found))}\\n".encode())
        os._exit(0)
    os.write(1, f"{child}\\n".encode())
    sys.stdin.readline()  # until then its process id stands for no other process
    status = os.waitpid(child, 0)[1]
    os.write(1, b"killed\\n" if os.WIFSIGNALED(status) else b"ended\\n")
"""

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="needs the table of processes in /proc"
)


@pytest.fixture
def raw(tmp_path):
    """A few hundred small images, some of which cannot be read."""
    root = tmp_path / "raw"
    root.mkdir()
    generator = np.random.default_rng(SEED)
    for k in range(N_IMAGES):
        pixels = generator.integers(0, 256, (60, 70, 3), dtype=np.uint8)
        path = root / f"{k:03d}.{'jpg' if k % 2 else 'png'}"
        Image.fromarray(pixels).save(path)
        if k % 40 == 7:
            path.write_bytes(path.read_bytes()[: 40 * (k % 3)])
    return root


class Launcher:
    def __init__(self, raw):
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, str(raw)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout.readline() == "ready\n"

    def say(self, line):
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def start(self, folder):
        self.say(folder)
        return int(self.process.stdout.readline())

    def end(self):
        """What the run printed, then how it ended."""
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
def launcher(raw):
    launched = Launcher(raw)
    yield launched
    _, errors = launched.process.communicate()
    assert errors == ""


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def state_of(pid):
    """State letter and parent of a process, or of none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return "X", 0
    return fields[0], int(fields[1])


def read(pid, name):
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/{name}").read_bytes()
    return b""


def descriptors_of(pid):
    """Paths that a process has open."""
    return [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]


def children_of(pid):
    numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [number for number in numbers if state_of(number)[1] == pid]


def tables_of(store):
    """Finished shards with their time, so that one that was made again counts as another."""
    found = set()
    for path in store.glob("shard-*.parquet"):
        with suppress(FileNotFoundError):
            found.add((path.name, path.stat().st_mtime_ns))
    return found


def still_there(pids, seconds):
    until = time.monotonic() + seconds
    while (left := [pid for pid in pids if state_of(pid)[0] not in "ZX"]) and time.monotonic() < until:
        time.sleep(0.02)
    return left


def test_twenty_kills_leave_the_files_of_an_undisturbed_run(raw, tmp_path, launcher):
    start = time.monotonic()
    assert launcher.whole_run(tmp_path / "first") == [N_IMAGES, N_IMAGES - N_UNREADABLE, N_SHARDS, N_SHARDS]
    whole = time.monotonic() - start
    store = tmp_path / "store"
    generator = np.random.default_rng(SEED)
    files = sorted(raw.iterdir())
    orphans, kills, written, finished = [], 0, 0, set()
    while kills < KILLS:
        if (store / "index.parquet").exists():  # all done: change some files, so that there is work again
            for file in generator.choice(files, 6, replace=False):
                os.utime(file, ns=(kills, kills))
        before = tables_of(store)
        run = launcher.start(store)
        # At once or after some shards, so that also on a busy machine kills meet runs at every stage.
        n_shards = generator.integers(0, 5)
        while n_shards and len(tables_of(store) - before) < n_shards and state_of(run)[0] not in "ZX":
            time.sleep(0.001)
        time.sleep(generator.uniform(0, (0.2 if n_shards else 0.6) * whole))
        orphans += children_of(run)
        os.kill(run, signal.SIGKILL)
        kills += launcher.end()[-1] == "killed"
        names = {path.name for path in store.iterdir()} if store.exists() else set()
        shards = {name.removesuffix(".parquet") for name in names if name.startswith("shard-")}
        tables = {name for name in shards if f"{name}.parquet" in names}
        assert all(f"{name}.npy" in names for name in tables)  # what has its own name is whole
        written += any(name.endswith(".part") for name in names)
        finished.add(len(tables))
    assert written > 0, "no kill met a run that was writing"
    assert len(finished) > 1, "all kills met the same state"
    assert orphans
    assert still_there(orphans, seconds=5) == []
    assert launcher.whole_run(store)[:3] == [N_IMAGES, N_IMAGES - N_UNREADABLE, N_SHARDS]
    assert launcher.whole_run(tmp_path / "undisturbed")[3] == N_SHARDS
    assert contents(store) == contents(tmp_path / "undisturbed")
    assert not [name for name in contents(store) if name.endswith(".part")]
    assert launcher.whole_run(store)[3] == 0


def test_the_lock_of_a_killed_run_is_free_once_its_workers_have_ended(tmp_path, launcher):
    """They are not asked to end: the pipe that they listen to closes."""
    run = launcher.start(tmp_path / "store")
    workers = []
    while len(workers) < 2 and state_of(run)[0] not in "ZX":
        workers = [pid for pid in children_of(run) if b"image_workers" in read(pid, "cmdline")]
    lock = str(tmp_path / "store" / ".lock")
    assert all(lock in descriptors_of(pid) for pid in workers), "a worker would outlive its lock"
    os.kill(run, signal.SIGKILL)
    assert launcher.end()[-1] == "killed"
    assert len(workers) == 2
    assert still_there(workers, seconds=10) == []
    with (tmp_path / "store" / ".lock").open("rb") as lock:
        until = time.monotonic() + 10
        while True:  # a process counts as ended a moment before the last of its threads lets go of its files
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                assert time.monotonic() < until
                time.sleep(0.01)

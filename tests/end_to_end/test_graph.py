"""The graph of a study, run as a user runs it: on a small clone with made-up released files.

What is stale is decided by content; a killed run goes on where it was, and ends as an undisturbed one does.
"""

import html
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
#: What is compared of a workspace: the artefacts, and nothing that the engine keeps for itself.
ENGINE = {".state", ".snakemake"}
N_PHOTOGRAPHS = 12
KILLS = 20

PROFILE = """\
name: tiny
seed: 3
sources:
  ddi:
    root: {raw}/ddi
  fitzpatrick17k:
    root: {raw}/fitzpatrick17k
    images: false
labels:
  uncertain: negative
  blank: missing
sizes:
  image: 16
  smallest_cell: 1
"""
CONFIG = """\
title: A small book
author: The FRAME developers
copyright: "2026"
only_build_toc_files: true
exclude_patterns: [_build]
execute:
  execute_notebooks: force
"""
COUNTS = [
    'profile = "demo"',
    "from frame.parameters import resolve_parameters, text\n\n"
    "parameters = resolve_parameters(globals(), profile=text())",
    "from frame.experiments.results import workspace_result\n\n"
    'counts = workspace_result("cohort_counts", parameters.profile)\n'
    'print(int(counts.loc[counts["quantity"] == "images", "value"].sum()))',
]
PRINTED = [
    "row = 0",
    "from frame.parameters import resolve_parameters, whole\n\n"
    "parameters = resolve_parameters(globals(), row=whole(0, 3))",
    'from frame.tables import load_table\n\nprint(load_table("paper_table2").iloc[parameters.row, 0])',
]
RUN = """\
import sys
from frame.errors import InputError
from frame.workspace.launch import run_graph
from frame.workspace.layout import open_workspace
from frame.workspace.profiles import load_profile
try:
    sys.exit(run_graph(open_workspace(load_profile(sys.argv[1]), sys.argv[2]), sys.argv[3:], 2))
except InputError as problem:
    print(f"frame: {problem}", file=sys.stderr)
    sys.exit(2)
"""
# Stages of the experiments that no page of the small book reads are in every graph; they are never made here.
STALE = """\
import json, sys
from frame.experiments.contract import EXPERIMENTS
from frame.workspace.graph import stale_stages
from frame.workspace.layout import open_workspace
from frame.workspace.profiles import load_profile
unread = [name for name in EXPERIMENTS if name != "cohort_counts"]
stale = stale_stages(open_workspace(load_profile(sys.argv[1]), sys.argv[2]))
print(json.dumps({name: why for name, why in stale.items() if not set(name.split(":")[:2]) & set(unread)}))
"""


def notebook(cells: list[str], declared: dict[str, list[str]]) -> str:
    """A notebook as text."""
    tags = [{"tags": ["parameters"]}, *[{} for _ in cells[1:]]]
    return json.dumps(
        {
            "cells": [
                {"cell_type": "markdown", "id": "title", "metadata": {}, "source": "# Numbers"},
                *[
                    {
                        "cell_type": "code",
                        "execution_count": None,
                        "id": f"cell-{number}",
                        "metadata": metadata,
                        "outputs": [],
                        "source": source,
                    }
                    for number, (source, metadata) in enumerate(zip(cells, tags, strict=True))
                ],
            ],
            "metadata": {
                "frame": declared,
                "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            },
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )


class Study:
    """A small clone, its released files, and one workspace."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clone = folder / "a clone"
        self.raw = folder / "raw"
        self.workspace = folder / "the workspace's"
        self.profile = folder / "tiny.yml"
        for name in ("frame", "data", "workflow"):
            shutil.copytree(ROOT / name, self.clone / name, ignore=shutil.ignore_patterns("__pycache__"))
        notebooks, book = self.clone / "notebooks", self.clone / "book"
        notebooks.mkdir()
        book.mkdir()
        (notebooks / "counts.ipynb").write_text(
            notebook(COUNTS, {"tables": ["image_sources"], "experiments": ["cohort_counts"]})
        )
        (notebooks / "printed.ipynb").write_text(
            notebook(PRINTED, {"tables": ["paper_table2"], "experiments": []})
        )
        (book / "index.md").write_text("# A small book\n\nSee [the counts](../notebooks/counts.ipynb).\n")
        (self.clone / "_config.yml").write_text(CONFIG)
        (self.clone / "_toc.yml").write_text(
            "format: jb-book\nroot: book/index\nchapters:\n"
            "  - file: notebooks/counts\n  - file: notebooks/printed\n"
        )
        self.profile.write_text(PROFILE.format(raw=self.raw))
        self._release()

    def _release(self) -> None:
        draw = np.random.default_rng(5)
        ddi = self.raw / "ddi"
        ddi.mkdir(parents=True)
        rows = ["DDI_ID,DDI_file,skin_tone,malignant,disease"]
        for number in range(N_PHOTOGRAPHS):
            rows.append(
                f"{number},{number:06}.png,{(12, 34, 56)[number % 3]},{bool(number % 2)},melanoma-in-situ"
            )
            pixels = draw.integers(0, 256, (20, 24, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(ddi / f"{number:06}.png")
        (ddi / "ddi_metadata.csv").write_text("\n".join(rows) + "\n")
        fitzpatrick = self.raw / "fitzpatrick17k"
        fitzpatrick.mkdir()
        partitions = ("benign", "malignant", "non-neoplastic")
        rows = ["md5hash,fitzpatrick_scale,label,three_partition_label"]
        rows += [f"{n:032x},{n % 7 or -1},acne,{partitions[n % 3]}" for n in range(40)]
        (fitzpatrick / "fitzpatrick17k.csv").write_text("\n".join(rows) + "\n")

    @property
    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("FRAME_", "SNAKEMAKE"))}
        return {**kept, "PYTHONPATH": str(self.clone)}

    def command(self, *targets: str) -> list[str]:
        return [sys.executable, "-c", RUN, str(self.profile), str(self.workspace), *targets]

    def run(self, *targets: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*targets),
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def start(self, command: list[str]) -> subprocess.Popen[str]:
        """Start a command in a process group of its own."""
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def stale(self) -> dict[str, list[str]]:
        done = subprocess.run(
            [sys.executable, "-c", STALE, str(self.profile), str(self.workspace)],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    @contextmanager
    def changed(self, path: Path, old: str, new: str) -> Iterator[None]:
        """A file with other content, as long as this lasts."""
        before = path.read_text(encoding="utf-8")
        assert before.count(old) == 1, f"{path.name}: {before.count(old)} times {old!r}"
        path.write_text(before.replace(old, new), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(before, encoding="utf-8")

    def artefacts(self) -> dict[str, bytes]:
        """Every file of the workspace but the engine's own; a sidecar without its time."""
        found = {}
        for path in sorted(self.workspace.rglob("*")):
            place = path.relative_to(self.workspace)
            if path.is_file() and place.parts[0] not in ENGINE:
                found[place.as_posix()] = path.read_bytes()
                if path.suffix == ".json" and b'"stage"' in found[place.as_posix()]:
                    sidecar = json.loads(found[place.as_posix()])
                    assert sidecar.pop("time")
                    found[place.as_posix()] = json.dumps(sidecar).encode()
        return found


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A study whose graph has been run once."""
    made = Study(tmp_path_factory.mktemp("study"))
    done = made.run("book")
    assert done.returncode == 0, done.stdout + done.stderr
    return made


def ran(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """The stages that a run named, and whether each was made or found unchanged."""
    lines = [line.rpartition(": ") for line in done.stdout.splitlines()]
    return {name: became for name, _, became in lines if became in ("made", "unchanged")}


def test_a_first_run_makes_every_stage_and_lays_the_book_out(study: Study) -> None:
    assert study.stale() == {}
    page = study.clone / "_build" / "html" / "notebooks" / "counts.html"
    assert "Parameters: profile='tiny'" in html.unescape(page.read_text(encoding="utf-8"))
    assert sorted(place for place in study.artefacts() if place.endswith(".ipynb")) == [
        "notebooks/counts.ipynb",
        "notebooks/printed.ipynb",
    ]


def test_a_second_run_does_nothing(study: Study) -> None:
    before = {place: (study.workspace / place).stat().st_mtime_ns for place in study.artefacts()}
    done = study.run("book")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Every stage is fresh; nothing was run.\n")
    assert ran(done) == {}
    assert {place: (study.workspace / place).stat().st_mtime_ns for place in before} == before
    assert not list((study.workspace / ".state" / "scratch").iterdir())


def test_times_of_files_play_no_part(study: Study) -> None:
    touched = [*study.clone.rglob("*.py"), *study.clone.rglob("*.ipynb"), *study.clone.rglob("*.csv")]
    touched += [study.profile, *study.workspace.rglob("*.parquet"), *study.raw.glob("fitzpatrick17k/*")]
    for path in touched:
        os.utime(path)
    assert len(touched) > 100
    assert study.stale() == {}


COUNTED = ["collect:cohort_counts", "notebook:counts", "book"]
UNITS = ["results:cohort_counts:ddi", "results:cohort_counts:fitzpatrick17k"]
MODULE = "a clone/frame/"
#: What is changed, and every stage that then is to be run: for a reason of its own, or through its inputs.
CHANGES = {
    "the seed of the profile": (
        "tiny.yml",
        ("seed: 3", "seed: 4"),
        ["manifest:ddi", "images:ddi", "manifest:fitzpatrick17k", "check:skin", *UNITS, *COUNTED],
    ),
    "the size of its images": ("tiny.yml", ("image: 16", "image: 17"), ["images:ddi", "check:skin"]),
    "its smallest cell": ("tiny.yml", ("smallest_cell: 1", "smallest_cell: 2"), COUNTED),
    "a value that no stage uses": ("tiny.yml", ("seed: 3", "seed: 3\ntitle: Another"), []),
    "a released table": (
        "raw/fitzpatrick17k/fitzpatrick17k.csv",
        (f"{8:032x},1,", f"{8:032x},2,"),
        ["manifest:fitzpatrick17k", UNITS[1], *COUNTED],
    ),
    "the module of a source": (
        MODULE + "cohorts/sites/ddi.py",
        ('("**/*.png",)', '("**/*.png", "*.PNG")'),
        ["manifest:ddi", "images:ddi", "check:skin", UNITS[0], *COUNTED],
    ),
    "the module of an experiment": (
        MODULE + "experiments/cohort_counts.py",
        ('"not recorded"', '"unknown"'),
        [*UNITS, *COUNTED],
    ),
    "a module that no stage uses": (MODULE + "audits/power.py", ("from __future__", "\nfrom __future__"), []),
    "a table that a notebook reads": (
        "a clone/data/paper_table2.csv",
        (",RAD-DINO,", ",Rad-DINO,"),
        ["notebook:printed", "book"],
    ),
    "a table that none reads": ("a clone/data/paper_table1.csv", (",243345,", ",243346,"), []),
    "a notebook": ("a clone/notebooks/printed.ipynb", ("# Numbers", "# Rows"), ["notebook:printed", "book"]),
    "a page": ("a clone/book/index.md", ("A small book", "A book"), ["book"]),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_makes_exactly_what_depends_on_it_stale(study: Study, what: str) -> None:
    place, (old, new), expected = CHANGES[what]
    with study.changed(study.folder / place, old, new):
        assert sorted(study.stale()) == sorted(expected)


def test_a_change_that_is_taken_back_was_none(study: Study) -> None:
    assert study.stale() == {}


def test_a_missing_or_altered_artefact_is_made_again(study: Study) -> None:
    gone = study.workspace / "results" / "cohort_counts" / "ddi.parquet"
    kept = gone.read_bytes()
    gone.unlink()
    assert list(study.stale()) == [UNITS[0], *COUNTED]
    gone.write_bytes(kept[:-1])
    assert list(study.stale()) == [UNITS[0], *COUNTED]
    gone.write_bytes(kept)
    assert study.stale() == {}


def test_what_comes_out_the_same_is_where_a_change_ends(study: Study) -> None:
    # Another comment makes the module of a source another file, and the manifest the same file as before.
    module = study.clone / "frame" / "cohorts" / "sites" / "ddi.py"
    before = study.artefacts()
    with study.changed(module, "IMAGES: Final =", "# Photographs.\nIMAGES: Final ="):
        done = study.run("collect:cohort_counts")
        assert done.returncode == 0, done.stderr
        assert ran(done) == {
            "manifest:ddi": "made",
            UNITS[0]: "unchanged",
            "collect:cohort_counts": "unchanged",
        }
    assert study.run("collect:cohort_counts").returncode == 0
    assert study.artefacts() == before


def test_a_number_that_changes_reaches_its_page(study: Study) -> None:
    page = study.clone / "_build" / "html" / "notebooks" / "printed.html"
    before = study.artefacts(), page.read_bytes()
    with study.changed(
        study.clone / "data" / "paper_table2.csv", "Publicly released encoders,RAD-DINO", "42,RAD-DINO"
    ):
        done = study.run("book")
        assert done.returncode == 0, done.stderr
        assert ran(done) == {"notebook:printed": "made", "book": "made"}
        assert page.read_bytes() != before[1]
        assert "<span></span>42\n" in page.read_text(encoding="utf-8")
    assert study.run("book").returncode == 0
    assert (study.artefacts(), page.read_bytes()) == before


def test_a_stage_that_fails_leaves_nothing_and_says_why_in_one_sentence(study: Study) -> None:
    table = study.raw / "fitzpatrick17k" / "fitzpatrick17k.csv"
    before = study.artefacts()
    with study.changed(table, f"{8:032x},1,", f"{8:032x},9,"):
        done = study.run("book")
        assert done.returncode == 2
        assert done.stderr.splitlines() == [
            "manifest:fitzpatrick17k could not be made:",
            "frame: fitzpatrick17k.csv: fitzpatrick_scale is neither -1 nor 1 to 6 in 1 of 40 rows; "
            "download the table again.",
        ]
        assert "The book is built" not in done.stdout
        assert study.artefacts() == before
    assert study.stale() == {}


def test_a_page_with_a_mistake_fails_in_every_run_and_leaves_the_book_as_it_was(study: Study) -> None:
    page = study.clone / "_build" / "html" / "index.html"
    before = study.artefacts(), page.read_bytes(), page.stat().st_mtime_ns
    with study.changed(study.clone / "book" / "index.md", "../notebooks/counts.ipynb", "absent.md"):
        for _ in range(2):
            done = study.run("book")
            assert done.returncode == 2
            said = done.stderr.splitlines()
            assert said[0] == "book could not be made:"
            assert said[1].startswith("book/index.md:3: WARNING: ")
            assert "absent.md" in said[1]
            assert said[2:] == [
                "frame: The book could not be built; every error and warning above has to be put right."
            ]
        assert (study.artefacts(), page.read_bytes(), page.stat().st_mtime_ns) == before


def test_a_notebook_that_raises_fails_the_run(study: Study) -> None:
    source = study.clone / "notebooks" / "printed.ipynb"
    before = study.artefacts()
    with study.changed(source, '(\\"paper_table2', '(\\"paper_table1'):
        done = study.run("notebook:printed")
        assert done.returncode == 2
        assert done.stderr.splitlines()[1] == (
            "frame: Notebook printed reads the table paper_table1, which it does not declare; add it to the "
            'key "tables" of "frame" in the notebook\'s metadata.'
        )
    with study.changed(source, "row = 0", "row = 9"):
        done = study.run("notebook:printed")
        assert done.returncode == 2
        assert done.stderr.splitlines()[1:] == [
            "frame: Notebook printed, code cell 2: Parameter row is 9 (a number); "
            "expected a whole number, 0 to 3."
        ]
    assert study.artefacts() == before
    assert study.stale() == {}


def test_a_book_that_is_gone_is_laid_out_again_without_building(study: Study) -> None:
    pages = study.clone / "_build" / "html"

    def laid_out() -> dict[Path, bytes]:
        return {path.relative_to(pages): path.read_bytes() for path in pages.rglob("*") if path.is_file()}

    before = laid_out()
    (pages / "book" / "index.html").write_text("altered")
    (pages / "more.html").write_text("not of the book")
    (pages / "searchindex.js").unlink()
    done = study.run("book")
    assert done.returncode == 0, done.stderr
    assert ran(done) == {}
    assert laid_out() == before


# ---- interrupted and killed


def wait_for(there: Path, running: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not there.exists():
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def alive(group: int) -> bool:
    """Whether a process of a group is still there; a dead one that nobody has waited for is not."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[2]) == group and fields[0] != "Z":
                return True
    return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux has /proc")
def test_a_run_that_is_ended_ends_what_it_started_and_goes_on_in_the_next(study: Study) -> None:
    shutil.rmtree(study.workspace / "notebooks")
    given = ["--profile", str(study.profile), "--workspace", str(study.workspace)]
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        running = study.start([sys.executable, "-m", "frame", "book", *given])
        # No notebook is done by then: its kernel has not even started.
        wait_for(study.workspace / ".state" / "scratch" / "notebook-printed", running)
        # Only the first process is told; from a terminal every one would be.
        os.kill(running.pid, number)
        running.communicate(timeout=60)
        assert running.returncode == code
        assert not alive(running.pid)
        assert not list((study.workspace / "notebooks").glob("*"))
        shutil.rmtree(study.workspace / ".state" / "scratch")
    assert study.run("notebook:printed", "notebook:counts").returncode == 0
    assert study.stale() == {}


def test_a_second_run_is_told_to_wait(study: Study) -> None:
    shutil.rmtree(study.workspace / "notebooks")
    given = ["--profile", str(study.profile), "--workspace", str(study.workspace)]
    running = study.start([sys.executable, "-m", "frame", "book", *given])
    wait_for(study.workspace / ".state" / "scratch" / "notebook-printed", running)
    second = study.run("book")
    os.kill(running.pid, signal.SIGTERM)
    running.communicate(timeout=60)
    assert second.returncode == 2
    assert second.stderr == (
        "frame: Another run is using the workspace 'the workspace's'; wait until it has ended.\n"
    )
    assert study.run("notebook:printed", "notebook:counts").returncode == 0
    assert study.stale() == {}


def test_a_run_killed_at_any_moment_goes_on_and_ends_where_an_undisturbed_one_does(
    study: Study, tmp_path: Path
) -> None:
    targets = ("check:skin", "notebook:printed", "notebook:counts")
    assert study.run(*targets).returncode == 0
    undisturbed = {
        name: content for name, content in study.artefacts().items() if not name.startswith("book/")
    }
    disturbed = Study.__new__(Study)
    disturbed.__dict__.update(study.__dict__)
    disturbed.workspace = tmp_path / "killed"
    draw = random.Random(11)
    n_ended = 0
    for _ in range(KILLS):
        running = disturbed.start(disturbed.command(*targets))
        with suppress(subprocess.TimeoutExpired):
            running.communicate(timeout=draw.uniform(0.2, 5.0))
        if running.returncode is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.communicate()
        else:
            assert running.returncode == 0
            n_ended += 1
            assert disturbed.artefacts() == undisturbed
            shutil.rmtree(disturbed.workspace)
    assert n_ended < KILLS / 2
    done = disturbed.run(*targets)
    assert done.returncode == 0, done.stdout + done.stderr
    assert disturbed.artefacts() == undisturbed
    assert disturbed.run(*targets).stdout == "Every stage is fresh; nothing was run.\n"

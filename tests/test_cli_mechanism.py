"""``frame mechanism``: what it reads, prints, writes and answers to wrong input."""

import json
import os
import re
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from frame.cli.application import application
from frame.cohorts.phantom.feature_level import feature_cohort
from frame.cohorts.phantom.feature_world import FeatureGroup, FeatureWorld
from frame.interventions.procedure import mechanism

ROOT = Path(__file__).parents[1]


def run(*arguments, width=140):
    return CliRunner().invoke(
        application,
        ["mechanism", *(str(a) for a in arguments)],
        env={"COLUMNS": str(width), "TERM": "dumb"},
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("mechanism")
    groups = (FeatureGroup("A", 700, 240, 700), FeatureGroup("B", 420, 160, 500, auroc=0.6))
    drawn = feature_cohort(FeatureWorld(groups, dimensions=16, auroc=0.85, seed=5))
    noise = np.random.default_rng(0).normal(size=len(drawn))
    np.save(place / "embeddings.npy", drawn.features)
    table = pd.DataFrame(
        {
            "image": [f"canary_{i}.png" for i in range(len(drawn))],
            "effusion": drawn.labels.astype(int),
            "race": drawn.groups,
            "patient": [f"canary{p}" for p in drawn.patients],
            "part": drawn.split,
            "margin": (1.5 * drawn.labels + noise).round(4),
            "risk": (1 / (1 + np.exp(-1.5 * drawn.labels - noise))).round(4),
        }
    )
    table.to_csv(place / "images.csv", index=False)
    return place


def base(folder):
    return [
        *("--features", folder / "embeddings.npy", "--table", folder / "images.csv"),
        *("--label", "effusion", "--group", "race", "--patient", "patient", "--split", "part"),
        *("--resamples", "100", "--directions", "2", "--no-methods", "--no-nonlinear", "--no-whitened"),
    ]


@pytest.fixture(scope="module")
def kept(folder):
    """Finished strengths, so that each further run is quick; the first run fills it."""
    place = folder / "finished"
    assert run(*base(folder), "--folder", place).exit_code == 0
    return place


def test_help_names_every_option():
    shown = run("--help", width=200).stdout
    for option in (
        *("--features", "--table", "--label", "--group", "--patient", "--split", "--score", "--scale"),
        *("--exclude",),
        *("--majority", "--measure", "--alpha", "--min-size", "--resamples", "--directions", "--method"),
        *("--no-methods", "--no-geometry", "--no-nonlinear", "--no-whitened", "--cap", "--seed", "--folder"),
        *("--out", "--format", "--html", "--strengths-out", "--suppress-below"),
    ):
        assert option in shown
    assert "frame mechanism --features" in " ".join(shown.split())


@pytest.mark.parametrize("width", [80, 120])
def test_printed_result(folder, kept, width):
    from frame.cli.mechanism_output import table_text

    table = pd.read_csv(folder / "images.csv")
    verdict = mechanism(
        np.load(folder / "embeddings.npy", mmap_mode="r"),
        table["effusion"],
        table["race"],
        table["part"],
        patients=table["patient"],
        resamples=100,
        directions=2,
        methods=(),
        nonlinear=False,
        whitened=False,
        folder=kept,
    )
    shown = table_text(verdict, 0, "some rows", width)
    assert max(map(len, shown.splitlines())) <= width
    assert shown.startswith("Moves with entanglement, not with decodability\n")
    words = " ".join(shown.split())
    for sentence in (*verdict.sentences, *verdict.caveats):
        assert sentence in words
    for quantity in ("difference", "linear decodability", "overlap", "erasure cost", "disease AUROC"):
        assert re.search(rf"^ ?{quantity} +\d", shown, flags=re.MULTILINE)
    assert "nonlinear decodability  " not in shown
    assert not re.search(r"canary", shown)


def test_the_command_says_what_the_function_says(folder, kept):
    result = run(*base(folder), "--folder", kept)
    assert (result.exit_code, result.stderr) == (0, "")
    words = " ".join(result.stdout.split())
    assert "The difference in AUROC between groups of race responds to entanglement" in words
    assert "finished steps of an earlier run were read" in words
    assert "canary" not in result.stdout
    assert "Read 2,720 rows of 16 numbers (float32)" in words


def test_files(folder, kept, tmp_path):
    out = {name: tmp_path / f"result.{name}" for name in ("csv", "json", "md", "txt", "html")}
    strengths = tmp_path / "strengths.csv"
    for ending in ("csv", "json", "md", "txt"):
        more = ["--html", out["html"], "--strengths-out", strengths] if ending == "csv" else []
        result = run(*base(folder), "--folder", kept, "--out", out[ending], *more)
        assert result.exit_code == 0, result.stderr
        assert result.stdout == ""
        assert "Moves with entanglement, not with decodability." in result.stderr
    row = pd.read_csv(out["csv"]).iloc[0]
    (other,) = json.loads(out["json"].read_text(encoding="utf-8"))
    assert row["verdict"] == other["verdict"] == "moves with entanglement, not with decodability"
    assert row["entanglement_change"] == pytest.approx(other["entanglement_change"])
    assert bool(row["precondition_holds"])
    table = pd.read_csv(strengths)
    assert set(table["method"]) == {"decodability", "entanglement"}
    assert "| entanglement | 0 | 1 | 4 |" in out["md"].read_text(encoding="utf-8")
    page = out["html"].read_text(encoding="utf-8")
    assert "embeddings.npy and images.csv" in page
    for path in (*out.values(), strengths):
        assert "canary" not in path.read_text(encoding="utf-8")


def test_scores_of_the_table_and_a_fair_gate(folder, kept):
    result = run(*base(folder), "--folder", kept, "--score", "risk", "--format", "csv")
    assert result.exit_code == 0
    row = pd.read_csv(StringIO(result.stdout)).iloc[0]
    assert row["verdict"] == "consistent with exact fairness"
    assert pd.isna(row["entanglement_change"])


def test_suppressed_counts(folder, kept):
    result = run(*base(folder), "--folder", kept, "--suppress-below", "5000", "--format", "json")
    (row,) = json.loads(result.stdout)
    assert row["n_images"] is row["n_positive"] is row["n_patients"] is None
    assert row["verdict"] == "moves with entanglement, not with decodability"


def test_a_killed_run_goes_on(folder, tmp_path):
    place, out = tmp_path / "finished", tmp_path / "result.csv"
    # So many directions that the end of the run is far when its first step is seen.
    many = [*base(folder), "--directions", "40"]
    arguments = [str(a) for a in (*many, "--folder", place, "--out", out)]
    command = [sys.executable, "-m", "frame", "mechanism", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    started = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    limit = time.monotonic() + 120
    while not list(place.rglob("decodability-*.npz")) and time.monotonic() < limit:
        if started.poll() is not None:
            break
        time.sleep(0.005)
    started.kill()
    assert started.wait() != 0
    assert not out.exists()
    n_finished = len(list(place.rglob("*.npz")))
    again = run(*arguments, "--html", tmp_path / "report.html")
    assert again.exit_code == 0
    n_steps = len(list(place.rglob("*.npz")))
    assert 0 < n_finished < n_steps
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"{n_finished:,} finished steps of an earlier run were read" in page
    whole = tmp_path / "whole.csv"
    assert run(*many, "--out", whole).exit_code == 0
    assert out.read_bytes() == whole.read_bytes()


WRONG = {
    "no features": (["--table", "x.csv"], "no --features were given"),
    "no table": (["--features", "x.npy"], "no --table was given"),
    "no such file": (
        ["--features", "x.npy", "--table", "y.csv", "--label", "a", "--group", "b"],
        "no such file",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_missing_options(case):
    arguments, said = WRONG[case]
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--exclude", "C"], "--exclude names 'C'; the groups of 'race' are 'A', 'B'."),
        (["--majority", "C"], "--majority is 'C'; the groups of 'race' are 'A', 'B'."),
        (["--resamples", "5"], "--resamples is 5"),
        (["--directions", "0"], "--directions is 0"),
        (["--score", "patient"], "column 'patient' is named 2 times"),
        (["--method", "leace"], "--method and --no-methods were given; give one of them."),
        (["--folder", "images.csv"], "--folder: 'images.csv' cannot be used"),
        (["--out", "result.xyz"], "--out is 'result.xyz', whose ending says no format"),
        (["--suppress-below", "-1"], "--suppress-below is -1"),
        (["--folder", ""], "--folder is empty; name a folder for finished strengths, or leave --folder"),
        (["--strengths-out", "s.json"], "--strengths-out is 's.json', whose ending is not .csv; end it with"),
        (["--html", "r.pdf"], "--html is 'r.pdf', whose ending is not .html or .htm; end it with .html."),
        (["--cap", "1"], "1 image drawn under the cap; every split needs both classes, so raise --cap."),
        (["--score", "margin", "--measure", "ece"], "ece reads probabilities; say --scale logit if they are"),
    ],
    ids=[
        "exclude",
        "majority",
        "resamples",
        "directions",
        "twice",
        "methods",
        "folder",
        "ending",
        "suppress",
        "empty-folder",
        "strengths-ending",
        "html-ending",
        "cap",
        "scale",
    ],
)
def test_wrong_input(folder, monkeypatch, more, said):
    monkeypatch.chdir(folder)
    before = sorted(path.name for path in folder.iterdir())
    result = run(*base(folder), *more)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("frame: ")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert "canary" not in result.stderr
    assert sorted(path.name for path in folder.iterdir()) == before


def test_scores_that_are_logits(folder, kept):
    given = ["--score", "margin", "--measure", "ece", "--scale", "logit", "--folder", kept]
    result = run(*base(folder), *given, "--alpha", "0.0001")
    assert result.exit_code == 0, result.stderr


def test_tables_of_other_lengths(folder, tmp_path):
    np.save(tmp_path / "short.npy", np.zeros((3, 2), dtype=np.float32))
    arguments = base(folder)
    arguments[1] = tmp_path / "short.npy"
    result = run(*arguments)
    assert result.exit_code == 2
    assert "short.npy has 3 rows and images.csv has 2,720" in result.stderr


def test_the_page_of_the_book(tmp_path):
    page = (ROOT / "book" / "own_mechanism.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    code = "\n".join(blocks)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "\nMoves with entanglement, not with decodability. " in done.stdout
    assert (tmp_path / "report.html").exists()
    (command,) = re.findall(r"^```bash\nframe mechanism (.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    for option in re.findall(r"(?<![-|])--[a-z][a-z-]+", page):
        assert option in run("--help", width=200).stdout
    assert "--folder finished" in command

"""``frame features extract`` on the command line: what it makes, prints, shares and refuses."""

import io
import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent / "cohorts"))
from raw_nih import write_profile, write_release

from frame.cli import features_run
from frame.cli.application import application
from frame.encoders.extraction import Progress
from frame.errors import InputError

RUNNER = CliRunner()
ENCODERS = "encoders: {panel: [block_means], injection: [block_means, image_pca]}\n"


def run(*arguments):
    return RUNNER.invoke(application, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    write_release(folder / "raw", patients=60, each=2)
    (folder / "raw" / "images" / "00000007_001.png").write_bytes(b"not an image")
    return folder


@pytest.fixture
def study(raw, tmp_path):
    """The options that name a study of which nothing is made."""
    profile = write_profile(tmp_path / "small.yml", raw / "raw", image=32)
    profile.write_text(profile.read_text() + ENCODERS)
    return ("--profile", profile, "--workspace", tmp_path / "workspace")


def test_everything_the_profile_names_is_made(study, tmp_path):
    found = run("features", "extract", *study)
    assert found.exit_code == 0, found.stderr
    assert (
        "NIH ChestX-ray14, Block means, 16 x 16: 119 of 120 images have a vector of 256 numbers (float16, "
        "computed in float32 on cpu).\n  without a vector: 1 (the file is neither PNG, JPEG, DICOM nor npz)"
    ) in found.stdout
    assert "NIH ChestX-ray14, Image PCA, 64 components: 119 of 120" in found.stdout
    assert "The vectors lie in " in found.stdout
    assert "0000000" not in found.stdout + found.stderr
    made = sorted(path.name for path in (tmp_path / "workspace/features/nih_cxr14/block_means").iterdir())
    assert made == [".lock", "features.json", "status.npy", "vectors.npy", "vectors.npy.json"]
    again = run("features", "extract", *study)
    assert again.stdout.count("They were fresh.") == 2
    assert again.stderr == ""


def test_tasks_share_the_work(study, tmp_path):
    one = ("--encoder", "block_means", "--source", "nih_cxr14")
    parts = {"0:60": "120 rows in 1 block are done, 120 of them", "60:120": "0 rows in 0 blocks are done"}
    rounded = {
        "0:60": "Blocks have 4,096 rows: 0:60 was rounded to 0:120.",
        "0:1": "Blocks have 4,096 rows: 0:1 was rounded to 0:120.",
    }
    nothing = "Warning: no block begins in the rows 60:120, so that this task makes nothing; blocks begin at"
    for rows, said in {**parts, "0:1": "120 rows in 1 block are done, 0 of them in this run."}.items():
        found = run("features", "extract", *study, *one, "--rows", rows)
        assert found.exit_code == 0, found.stderr
        assert said in found.stdout
        assert rounded.get(rows, "are done") in found.stdout
        assert (nothing in found.stderr) is (rows == "60:120")
        assert "the same command without --rows puts them together" in found.stdout
    assert not list((tmp_path / "workspace").rglob("vectors.npy"))
    found = run("features", "extract", *study, *one)
    assert "119 of 120 images have a vector" in found.stdout
    assert "They were fresh." not in found.stdout


def test_an_encoder_that_the_profile_does_not_name(raw, tmp_path):
    profile = write_profile(tmp_path / "small.yml", raw / "raw", image=32)
    study = ("--profile", profile, "--workspace", tmp_path / "workspace")
    found = run("features", "extract", *study, "--encoder", "block_means", "--batch", 7, "--workers", 0)
    assert found.exit_code == 0, found.stderr
    assert "119 of 120" in found.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--encoder", "nothing"], "There is no encoder 'nothing'; the encoders are rad_dino,"),
        (["--source", "ddi"], "Profile small has no source 'ddi'; its sources are nih_cxr14."),
        (
            ["--source", "nih_cxr14", "--encoder", "monet"],
            "Encoder monet is meant for skin, and nih_cxr14 has chest images.",
        ),
        (["--encoder", "monet"], "Profile small has no source with images that monet is meant for."),
        (
            ["--rows", "0:10"],
            "--rows is a part of one extraction, and 2 are asked for; name one --encoder and one --source.",
        ),
        (
            ["--encoder", "block_means", "--rows", "5:500"],
            "rows are 5:500; they must lie in 0:120, the first before the last.",
        ),
        (["--rows", "5"], "--rows is '5'; write it as first:last, such as 0:50000."),
        (["--rows=-5:3"], "--rows is '-5:3'; write it as first:last, such as 0:50000."),
        (
            ["--precision", "half", "--encoder", "block_means"],
            "precision is 'half', and block_means computes",
        ),
        (["--precision", "fp8"], "'fp8' is not one of"),
        (
            ["--device", "nonsense", "--encoder", "block_means"],
            "The device is 'nonsense'; it must be auto, or one of cpu,",
        ),
        (["--compile", "--encoder", "block_means"], "block_means is no network, and cannot be compiled"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_refused(study, arguments, sentence):
    found = run("features", "extract", *study, *arguments)
    assert found.exit_code == 2
    assert sentence in re.sub(r"[\s│]+", " ", found.stderr + str(found.exception))
    assert "Traceback" not in found.stderr


def test_a_profile_without_encoders_or_images(raw, tmp_path):
    profile = write_profile(tmp_path / "small.yml", raw / "raw", image=32)
    found = run("features", "extract", "--profile", profile, "--workspace", tmp_path / "workspace")
    assert found.exit_code == 2
    assert "Profile small names no encoder; give --encoder, or fill its key encoders" in found.stderr
    tables = ("--profile", "tables", "--workspace", tmp_path / "tables")
    found = run("features", "extract", "--encoder", "block_means", *tables)
    assert found.exit_code == 2
    assert "Profile tables has no source with images that block_means is meant for." in found.stderr
    found = run("features", "extract", "--encoder", "block_means", "--source", "nih_cxr14", *tables)
    assert "Source nih_cxr14 is read without images in profile tables" in found.stderr


def test_what_is_asked_for_counts_also_where_the_store_is_fresh(study):
    one = ("features", "extract", *study, "--encoder", "block_means")
    assert run(*one).exit_code == 0
    assert "They were fresh." in run(*one).stdout
    assert "They were fresh. This run computed nothing on cpu." in run(*one, "--device", "cpu").stdout
    for wrong in (("--precision", "half"), ("--compile",), ("--device", "nonsense")):
        assert run(*one, *wrong).exit_code == 2
    assert "They were fresh." not in run(*one, "--precision", "float32").stdout
    assert "They were fresh." in run(*one, "--precision", "float32").stdout
    assert "They were fresh." not in run(*one).stdout


def test_work_of_tasks_with_other_settings_is_not_removed_without_a_word(study):
    one = ("features", "extract", *study, "--encoder", "block_means")
    assert run(*one, "--precision", "float32", "--rows", "0:120").exit_code == 0
    found = run(*one)
    assert "1 block that tasks with --rows had made with other settings did not fit and" in found.stdout
    assert "did not fit" not in run(*one).stdout


def test_one_extraction_that_fails_does_not_end_the_others(study, tmp_path, monkeypatch):
    first = features_run.extract_source.__globals__
    load = first["load_encoder"]

    def failing(name, **options):
        if name == "block_means":
            raise InputError("The weights of block_means are not there; fetch them.")
        return load(name, **options)

    monkeypatch.setitem(first, "load_encoder", failing)
    found = run("features", "extract", *study)
    assert found.exit_code == 2
    assert "nih_cxr14, block_means failed: The weights of block_means are not there" in found.stderr
    assert "1 of 2 extractions failed, for the reasons above: nih_cxr14, block_means. The" in found.stderr
    assert "Image PCA, 64 components: 119 of 120" in found.stdout
    assert (tmp_path / "workspace/features/nih_cxr14/image_pca/features.json").is_file()


# --- progress


class Clock:
    now = 0.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(features_run, "time", clock)
    return clock


def test_a_line_now_and_then_says_how_fast_and_how_long(clock, capsys):
    with features_run._shown("nih_cxr14, block_means") as told:
        for seconds, done in ((0, 1000), (1, 1200), (31, 4000), (32, 4100), (62, 7200)):
            clock.now = seconds
            told(Progress(100_000, done, 1000))
    assert capsys.readouterr().err.splitlines() == [
        "nih_cxr14, block_means: 4,000 of 100,000 images, 97 images/s, 16 min 31 s left",
        "nih_cxr14, block_means: 7,200 of 100,000 images, 100 images/s, 15 min 28 s left",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(5.9, "0 min 5 s"), (3599, "59 min 59 s"), (7260, "2 h 1 min"), (float("inf"), "unknown time")],
)
def test_times(seconds, text):
    assert features_run._time(seconds) == text


def test_a_terminal_shows_a_bar(clock, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with features_run._shown("nih_cxr14, block_means") as told:
        told(Progress(1000, 200, 200))
        clock.now = 2.0
        told(Progress(1000, 700, 200))
    shown = sys.stderr.getvalue()
    assert "700/1000" in shown
    assert "250 images/s" in shown

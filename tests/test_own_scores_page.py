"""The how-to "Audit your own scores" and the README's part on it: example, options, columns and output."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "book" / "own_scores.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "140", "NO_COLOR": "1", "TERM": "dumb"}


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def python(code, folder):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=ENVIRONMENT, cwd=folder, capture_output=True, text=True, timeout=240,
    )  # fmt: skip


def run(command, folder):
    """Standard output of a command as the page writes it."""
    arguments = command.replace("\\\n", " ").split()
    assert arguments[0] in ("frame", ".venv/bin/frame")
    done = subprocess.run(
        [sys.executable, "-c", "from frame.cli import main; main()", *arguments[1:]],
        env=ENVIRONMENT, cwd=folder, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the table that the first example of the page writes."""
    made = tmp_path_factory.mktemp("own_scores")
    done = python(blocks(PAGE, "python")[0], made)
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture(scope="module")
def printed(folder):
    return run(blocks(PAGE, "bash")[0], folder)


def words(text):
    return [" ".join(line.split()) for line in text.splitlines()]


def test_the_page_shows_lines_that_the_command_prints(printed):
    (block,) = blocks(PAGE, "text")
    assert [line for line in words(block) if line not in words(printed)] == []


def test_the_quoted_sentence_has_the_numbers_of_the_example(folder, printed):
    import pandas as pd

    run(blocks(PAGE, "bash")[0].strip() + " --out result.csv", folder)
    row = pd.read_csv(folder / "result.csv").set_index("attribute").loc["age"]
    (sentence,) = re.findall(r"A sentence to quote.*?\n\n", PAGE, flags=re.DOTALL)
    shown = [row[c] for c in ("observed", "reference", "reference_lo", "reference_hi", "worst_value")]
    quoted = re.findall(r"0\.\d{3}", sentence)
    assert quoted == [f"{number:.3f}" for number in shown[:4]] + ["0.001", f"{row['worst_value']:.3f}"]
    assert row["q"] < 0.001
    assert f"({row['n_images']:,} images of {row['n_patients']:,} patients)" in sentence
    assert row["worst_group"] == "65+"


def test_every_command_of_the_page_runs(folder):
    commands = blocks(PAGE, "bash")
    assert len(commands) == 2
    shown = run(commands[1], folder)
    assert "sensitivity_0.80 on validation" in shown


def test_options_of_the_page_exist_and_none_is_left_out():
    help_text = run("frame audit-scores --help", ROOT)
    offered = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", help_text)) - {"--help"}
    told = set(re.findall(r"--[a-z][a-z-]+", PAGE))
    assert told == offered


def test_columns_of_the_page_are_those_of_an_audit():
    from frame.audits.columns import COLUMNS

    table = PAGE.split("The file of `--out` has", 1)[1].split("\n\n", 2)[1]
    told = re.findall(r"`(\w+)`", "\n".join(line.split("|")[1] for line in table.splitlines()[2:]))
    assert sorted(told) == sorted(COLUMNS)


def test_python_of_the_page_runs(folder):
    done = python("\n".join(blocks(PAGE, "python")), folder)
    assert done.returncode == 0, done.stderr
    assert "0.140" in done.stdout
    assert (folder / "report.html").stat().st_size > 10_000
    assert len(blocks(PAGE, "python")[1].strip().splitlines()) == 5


def test_the_command_of_the_readme_runs(folder):
    (command,) = [block for block in blocks(README, "bash") if "audit-scores" in block]
    shown = run(command, folder)
    assert "exceed their fair-model reference" in shown
    assert (folder / "report.html").is_file()


def test_the_flags_of_the_measures_page_are_those_of_the_code():
    """Every flag that the code can give begins as the page says, and the page names no other."""
    page = (ROOT / "book" / "measures.md").read_text(encoding="utf-8")
    table = page.split("A flag stands beside", 1)[1].split("\n\n", 2)[1]
    told = re.findall(r"^\| `([^`]+)`", table, flags=re.MULTILINE)
    sources = [
        *("audits/comparisons.py", "inference/exchangeability.py"),
        *("reference/calibrated.py", "reference/clustered_rates.py"),
    ]
    code = "\n".join((ROOT / "frame" / name).read_text(encoding="utf-8") for name in sources)
    assert [flag for flag in told if f'"{flag}' not in code] == []
    assert len(told) == 8


def test_the_methods_of_the_measures_page_are_those_of_the_code():
    from frame.audits.settings import METHODS

    page = (ROOT / "book" / "measures.md").read_text(encoding="utf-8")
    table = page.split("## The reference of each measure", 1)[1].split("\n\n", 2)[1]
    told = {name for line in table.splitlines()[2:] for name in re.findall(r"`([\w-]+)`", line.split("|")[2])}
    assert told - {"auto"} == {method for methods in METHODS.values() for method in methods}
    measures = page.split("## The measures\n", 1)[1]
    listed = re.findall(r"^\| `(\w+)` \|", measures.split("###", 1)[0], flags=re.MULTILINE)
    assert set(listed) == set(METHODS)

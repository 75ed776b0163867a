"""The how-to "Try mitigation on your own embeddings": example, options, columns and output."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from frame.mitigation.columns import COLUMNS

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "book" / "own_embeddings.md").read_text(encoding="utf-8")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "140", "NO_COLOR": "1", "TERM": "dumb"}


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


def python(code, folder):
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=ENVIRONMENT, cwd=folder, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the two files that the first example of the page writes."""
    made = tmp_path_factory.mktemp("own_embeddings")
    python(blocks("python")[0], made)
    return made


@pytest.fixture(scope="module")
def printed(folder):
    command = blocks("bash")[0].replace("\\\n", " ").split()
    assert command[0] == "frame"
    arguments = ["from frame.cli import main; main()", *command[1:]]
    done = subprocess.run(
        [sys.executable, "-c", *arguments],
        env=ENVIRONMENT, cwd=folder, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def words(text):
    return [" ".join(line.split()) for line in text.splitlines()]


#: A number whose last place may move with the machine: another processor adds in another order.
NUMBER = re.compile(r"[+\N{MINUS SIGN}]?\d\.\d{3}")


def test_the_page_shows_what_the_command_prints(printed):
    """Every line of the page is printed, its numbers within 0.002."""
    shown = [line for block in blocks("text") for line in words(block)]
    found: dict[str, list[list[float]]] = {}
    for line in words(printed):
        found.setdefault(NUMBER.sub("#", line), []).append(values(line))
    for line in shown:
        held = found.get(NUMBER.sub("#", line), [])
        assert any(
            all(abs(a - b) <= 0.002 for a, b in zip(values(line), other, strict=True)) for other in held
        ), line


def values(line):
    return [float(number.replace("\N{MINUS SIGN}", "-")) for number in NUMBER.findall(line)]


def test_the_command_writes_the_report_and_the_groups(printed, folder):
    assert "Mitigation compared: effusion by sex and age" in (folder / "report.html").read_text("utf-8")
    assert (folder / "groups.csv").read_text("utf-8").startswith("label,attribute,method,name,measure,group,")


def test_the_python_example_runs(folder):
    shown = python(blocks("python")[1], folder)
    assert shown.startswith("Comparison(3 methods, effusion by sex, age)")
    assert (folder / "three_methods.html").exists()


def test_every_option_is_on_the_page():
    shown = subprocess.run(
        [sys.executable, "-c", "from frame.cli import main; main()", "mitigate", "--help"],
        env={**ENVIRONMENT, "COLUMNS": "200"}, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    options = set(re.findall(r"(?<=│ )--[a-z-]+", shown)) - {"--help"}
    assert len(options) == 24
    assert {option for option in options if f"`{option}" not in PAGE and f" {option}" not in PAGE} == set()


def test_every_column_is_on_the_page():
    described = set(re.findall(r"`(\w+)`", PAGE[PAGE.index("## 5.") :]))
    assert set(COLUMNS) <= described

"""The page on the synthetic model: its numbers are those of the notebook, and its example runs."""

import html
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from frame.figures.collinearity import SET_NAMES

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "book" / "synthetic_model.md").read_text(encoding="utf-8")
NOTEBOOK = json.loads((ROOT / "notebooks" / "figure_5.ipynb").read_text(encoding="utf-8"))


def shown():
    """What the notebook shows as text."""
    parts = []
    for cell in NOTEBOOK["cells"]:
        for output in cell.get("outputs", []):
            parts.append("".join(output.get("text", output.get("data", {}).get("text/plain", []))))
    return html.unescape("\n\n".join(parts))


def table(beginning):
    """The lines of the table whose caption begins so, without its caption."""
    (found,) = re.findall(rf"^{re.escape(beginning)}[^\n]*\n((?:.+\n?)+)", shown(), flags=re.MULTILINE)
    return found.splitlines()


def row(lines, beginning):
    """The numbers of the one line that begins so."""
    (found,) = [line for line in lines if line.strip().startswith(beginning)]
    return [float(cell.replace("<", "")) for cell in found.strip().removeprefix(beginning).split()]


@pytest.fixture(scope="module")
def shares():
    """Shares by set of methods and choice, over the six collinearities."""
    lines = [re.sub(r" {2,}", "  ", line) for line in table("Achievable difference in percent")]
    return {
        (methods, split): row(lines, f"{words}  {split}")
        for methods, words in SET_NAMES.items()
        for split in ("test", "validation")
    }


def test_numbers_that_differ_from_the_print(shares):
    beside = "\n".join(table("Printed in the Results and in Figure 5"))
    for ours, printed in (("-0.504", "-0.495"), ("0.122", "0.121")):
        assert re.search(rf" {printed} +{printed} +equal +{ours} +differs", beside)
        assert f"{ours} where {printed} is printed" in re.sub(r"\s+", " ", PAGE)


def test_shares_of_the_sets(shares):
    assert "at $\\rho = 0$ is 96.3 % and not 81 %" in re.sub(r"\s+", " ", PAGE)
    assert shares["unclipped", "test"][0] == 96.3
    assert abs(shares["recipe", "test"][0] - 81) <= 0.5
    assert shares["nine", "test"][4] < 75 < 95 < shares["nine", "test"][5]
    assert all(share > 100 for share in shares["nine", "validation"][:4])
    assert 75 < shares["nine", "validation"][4] < 82


def test_what_is_chance_and_what_is_not():
    lines = table("Difference in AUROC by collinearity")
    rows = {level: row(lines, level) for level in ("0.00", "0.10", "0.25", "0.50", "0.75", "1.00")}
    for level in ("0.00", "0.10", "0.25"):
        assert rows[level][2] > rows[level][0]
    assert [rows[level][3] for level in ("0.00", "0.10", "0.25", "0.50", "1.00")] == [0, 0, 0, 0, 5]
    assert rows["1.00"][4] == 0.139
    assert "is then 0.139" in re.sub(r"\s+", " ", PAGE)
    assert (rows["0.25"][4], rows["0.50"][4]) == (0.002, 0.010)
    assert "differ by 0.002 at $\\rho = 0.25$ and by 0.010 at $\\rho = 0.5$" in re.sub(r"\s+", " ", PAGE)


def test_the_aurocs_along_the_disease_direction():
    said = "an AUROC of 0.955 at $\\rho = 0$. At $\\rho = 1$ it is 0.955 in one group and 0.776 in the other"
    assert said in re.sub(r"\s+", " ", PAGE)
    for collinearity, expected in ((0.0, (0.955, 0.955)), (1.0, (0.955, 0.776))):
        noise = 4 * min(collinearity, 0.999) ** 2  # gamma is 2, alpha 1.2
        found = [norm.cdf(2.4 / np.sqrt(2 * (1 + extra))) for extra in (0.0, noise)]
        assert tuple(np.round(found, 3)) == expected


def test_the_example_of_the_page_runs():
    (block,) = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, second = (float(number) for number in re.findall(r"0\.\d+", done.stdout))
    assert second < first

"""The numbers that the book's text takes from the audit while it is built."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from sphinx.errors import ExtensionError

EXTENSION = Path(__file__).resolve().parents[2] / "book" / "_extensions" / "record_numbers.py"


@pytest.fixture(scope="module")
def extension() -> ModuleType:
    specification = importlib.util.spec_from_file_location("book_record_numbers", EXTENSION)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("ours", "printed", "text"),
    [
        (41, "41", "41"),
        (25.4567, "25", "25"),
        (40.5, "41", "41"),
        (0.5, "0.500", "0.500"),
        (1152, "1,152", "1,152"),
        (1861.5, "1862", "1862"),
        ("7 of 12", "7 of 12", "7 of 12"),
        ("0.0168 ± 0.008 [4.6e-03, 0.0354]", "0.017 ± 0.008 [0.005, 0.035]", "0.017 ± 0.008 [0.005, 0.035]"),
    ],
)
def test_a_number_is_written_as_the_article_writes_it(
    extension: ModuleType, ours: float | str, printed: str, text: str
) -> None:
    assert extension.as_printed(ours, printed) == text


@pytest.mark.parametrize(("ours", "printed"), [("7 of 12", "7"), (float("nan"), "0.5"), (3, "0.017 ± 0.008")])
def test_a_number_of_another_form_stops_the_build(
    extension: ModuleType, ours: float | str, printed: str
) -> None:
    with pytest.raises(ExtensionError, match="another form"):
        extension.as_printed(ours, printed)


def test_probability_of_call_follows_the_binomial_law(extension: ModuleType) -> None:
    from scipy.stats import binom

    # 36 claims at alpha 0.05: (1 + 1) / 2001 * 36 = 0.036 is below it, (1 + 2) / 2001 * 36 = 0.054 is not.
    assert extension.probability_of_call(0.00067, 36) == pytest.approx(binom.cdf(1, 2000, 0.00067), rel=1e-12)
    assert extension.probability_of_call(0.00067, 36) == pytest.approx(0.61, abs=0.005)
    # Even no hit at all is then too much: 1 / 2001 * 101 = 0.0505.
    assert extension.probability_of_call(0.00067, 101) == 0.0
    # Exactly at alpha is not below it: with 9 draws and 2 claims, 1 / 10 * 2 = 0.2.
    assert extension.probability_of_call(0.3, 2, draws=9, alpha=0.2) == 0.0


def test_every_substitution_of_the_pages_is_filled(extension: ModuleType) -> None:
    used = {
        name
        for page in (EXTENSION.parents[1]).glob("*.md")
        for name in re.findall(r"\{\{\s*(\w+)\s*\}\}", page.read_text(encoding="utf-8"))
    }
    filled = extension.record_substitutions()
    assert used, "no page takes a number from the audit"
    assert used - set(filled) == set()
    assert filled["pub_exceed"] == "41"
    assert filled["printed_pub_exceed"] == "41"

"""What a notebook shows: the same text everywhere, HTML that is safe, files that travel in the page."""

import base64
import csv
import io
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image

from frame.errors import InputError
from frame.presentation import download_csv, show_figure, show_table, show_text, written


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.12345, "0.123"),
        (1234.5, "1,234.500"),
        (2, "2"),
        (1152, "1,152"),
        (np.int64(1152), "1,152"),
        (np.float64(0.5), "0.500"),
        (0.0004, "<0.001"),
        (1e-12, "<0.001"),
        (0.0, "0.000"),
        (-0.0, "0.000"),
        (-0.0001, "0.000"),
        (-0.25, "-0.250"),
        (True, "yes"),
        (np.bool_(False), "no"),
        (None, "–"),
        (float("nan"), "–"),
        (pd.NA, "–"),
        ("CheXpert", "CheXpert"),
        ("", ""),
    ],
)
def test_written(value, shown):
    assert written(value) == shown


def test_written_with_other_decimals():
    assert written(24.584, 1) == "24.6"
    assert written(0.2, 0) == "<1"
    assert written(1e-6, 5) == "<0.00001"


@pytest.fixture
def table():
    return pd.DataFrame(
        {
            "name": ["one & two", "three"],
            "count": pd.array([1152, pd.NA], dtype="Int64"),
            "share": [24.584, float("nan")],
            "p": [4e-4, 0.9996],
            "exceeds": pd.array([True, pd.NA], dtype="boolean"),
        }
    )


HEADINGS = {"name": "Claim", "count": "Smallest", "share": "Share (%)", "p": "p", "exceeds": "Exceeds"}


def test_table_as_text(table):
    shown = show_table(table, "Two claims", columns=HEADINGS, decimals={"share": 1}, probabilities=["p"])
    assert repr(shown) == (
        "Two claims\n"
        "Claim      Smallest  Share (%)       p  Exceeds\n"
        "one & two     1,152       24.6  <0.001  yes\n"
        "three             –          –  >0.999  –"
    )


class Cells(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.seen = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def of(self, tag):
        return [attrs for name, attrs in self.seen if name == tag]


def test_table_as_html_is_semantic_and_escaped(table):
    shown = show_table(table.assign(name=["<b>", 'a"b']), "x < y", columns=HEADINGS)
    html = shown._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;" in html
    assert "x &lt; y" in html
    cells = Cells(html)
    assert cells.of("table") == [{"class": "dataframe"}]
    assert [attrs["scope"] for attrs in cells.of("th")] == ["col"] * 5 + ["row"] * 2
    assert len(cells.of("caption")) == 1
    assert "data-order" not in html


def test_searchable_table_is_marked_and_sorts_by_value(table):
    shown = show_table(table, "Two claims", columns=HEADINGS, searchable=True, page_length=10)
    cells = Cells(shown._repr_html_())
    assert cells.of("table") == [{"class": "dataframe searchable", "data-page-length": "10"}]
    orders = [attrs.get("data-order") for attrs in cells.of("td")]
    # count, share and p by value, absent first; exceeds and the name by what is written
    assert orders == ["1152", "24.584", "0.0004", None, "", "", "0.9996", None]


def test_all_columns_are_shown_by_default(table):
    assert show_table(table, "x").headings == tuple(table.columns)


@pytest.mark.parametrize(
    "options", [{"columns": {"q": "q"}}, {"decimals": {"q": 1}}, {"probabilities": ["q"]}]
)
def test_unknown_column_is_refused(table, options):
    with pytest.raises(
        InputError, match=r"The table has no column 'q'; it has name, count, share, p, exceeds\."
    ):
        show_table(table, "x", **options)


def test_download_holds_the_file(table):
    shown = download_csv(table, "claims.csv")
    (link,) = Cells(shown._repr_html_()).of("a")
    assert link["download"] == "claims.csv"
    kind, _, encoded = link["href"].partition(";base64,")
    assert kind == "data:text/csv;charset=utf-8"
    content = base64.b64decode(encoded).decode("utf-8")
    assert content == shown.content
    rows = list(csv.reader(io.StringIO(content)))
    assert rows == [
        ["name", "count", "share", "p", "exceeds"],
        ["one & two", "1152", "24.584", "0.0004", "yes"],
        ["three", "", "", "0.9996", ""],
    ]
    assert repr(shown) == "claims.csv: 2 rows, 5 columns"


def test_download_says_in_each_row_what_must_be_known_of_it(table):
    lines = download_csv(table, "claims.csv", "Phantom: drawn").content.splitlines()
    assert lines[0].endswith(",data")
    assert all(line.endswith(",Phantom: drawn") for line in lines[1:])


def test_download_keeps_small_probabilities():
    shown = download_csv(pd.DataFrame({"p": [2.964411e-13]}), "p.csv")
    assert shown.content == "p\n2.96441e-13\n"


@pytest.mark.parametrize("name", ["claims", "a/b.csv", '".csv', "<a>.csv"])
def test_download_wants_a_plain_file_name(table, name):
    with pytest.raises(InputError, match="is no file name for a CSV file"):
        download_csv(table, name)


def test_text_is_escaped_and_plain():
    shown = show_text("p < 0.05", "done")
    assert shown._repr_html_() == "<p>p &lt; 0.05</p>\n<p>done</p>"
    assert repr(shown) == "p < 0.05\ndone"


def test_figure_is_shown_with_its_summary_and_without_a_height():
    figure = Figure(figsize=(6.2, 4.0))
    figure.add_subplot().plot([0, 1])
    shown = show_figure(figure, "one line")
    data, metadata = shown._repr_mimebundle_()
    assert set(data) == {"image/png", "text/plain"}
    assert data["text/plain"] == repr(shown) == "one line"
    assert metadata == {"image/png": {"width": 620}}
    with Image.open(io.BytesIO(base64.b64decode(data["image/png"]))) as image:
        assert image.size == (1240, 800)
        assert "Software" not in image.info
    assert shown.png() == shown.png()

"""How a notebook shows tables and figures: offline, and the same text on every machine.

What these functions return is shown when it ends a cell. Each object has an HTML or PNG form for the reader
and a plain text form for terminals, screen readers and comparisons. No text depends on the version of pandas
or matplotlib, on the width of a terminal or on the time.
"""

from __future__ import annotations

import base64
import csv
import io
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from frame.errors import InputError
from frame.verdicts import probability

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "Download",
    "ShownFigure",
    "ShownTable",
    "ShownText",
    "download_csv",
    "show_figure",
    "show_table",
    "show_text",
    "written",
]

#: What stands in a cell without a value.
ABSENT = "–"
#: Decimals of a number, unless a table says otherwise for a column.
DECIMALS = 3

# A wide table scrolls sideways on a narrow screen; its caption stays in sight.
_CAPTION = "display: inline-block; position: sticky; left: 0; max-width: min(100%, 80vw)"

_PIXELS_PER_INCH = 100
# Drawn twice as fine as shown, for the screens of phones.
_SHARPNESS = 2
_COLOURS = 96


def written(value: object, decimals: int = DECIMALS) -> str:
    """One value as a table shows it.

    Parameters
    ----------
    value : object
        A number, truth value, text or nothing (None, NaN, pandas' NA).
    decimals : int
        Decimals of a number that is not whole by type.

    Returns
    -------
    str
        ``0.122``; ``1,152`` for a whole number; ``<0.001`` for a positive number that would be shown as
        zero; ``yes`` or ``no``; a dash for nothing; text as it is.
    """
    if _is_absent(value):
        return ABSENT
    if isinstance(value, str):
        return value
    if _is_truth(value):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return f"{int(value):,}"
    if isinstance(value, Real):
        number = float(value)
        smallest = 10.0**-decimals
        if 0.0 < number < smallest / 2:
            return f"<{smallest:.{decimals}f}"
        rounded = f"{number:,.{decimals}f}"
        # A negative number that rounds to zero keeps no sign.
        return rounded.removeprefix("-") if float(rounded.replace(",", "")) == 0.0 else rounded
    return str(value)


@dataclass(frozen=True)
class ShownTable:
    """A table for the reader; made by :func:`show_table`.

    Attributes
    ----------
    caption : str
        What the table shows.
    headings : tuple of str
        One per column.
    rows : tuple of tuple of str
        The cells as text.
    """

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    _numeric: tuple[bool, ...]
    _order: tuple[tuple[str, ...], ...]
    _searchable: bool
    _page_length: int

    def _repr_html_(self) -> str:
        attributes = 'class="dataframe"'
        if self._searchable:
            attributes = f'class="dataframe searchable" data-page-length="{self._page_length}"'
        head = "".join(
            f'<th scope="col"{_aligned(numeric)}>{escape(heading)}</th>'
            for heading, numeric in zip(self.headings, self._numeric, strict=True)
        )
        body = "\n".join(
            self._html_row(cells, order) for cells, order in zip(self.rows, self._order, strict=True)
        )
        caption = f'<span style="{_CAPTION}">{escape(self.caption)}</span>'
        return (
            f"<table {attributes}>\n<caption>{caption}</caption>\n"
            f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
        )

    def _html_row(self, cells: Sequence[str], order: Sequence[str]) -> str:
        shown = []
        for i, (cell, key, numeric) in enumerate(zip(cells, order, self._numeric, strict=True)):
            heads = i == 0 and not numeric
            tag, scope = ("th", ' scope="row"') if heads else ("td", "")
            # An id is not broken at its hyphens.
            whole = "; white-space: nowrap" if heads and " " not in cell else ""
            # The script that sorts a searchable table goes by this, not by "<0.001" or "1,152".
            by = f' data-order="{key}"' if self._searchable and numeric else ""
            shown.append(f"<{tag}{scope}{by}{_aligned(numeric, whole)}>{escape(cell)}</{tag}>")
        return f"<tr>{''.join(shown)}</tr>"

    def __repr__(self) -> str:
        lines = [self.headings, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.headings))]
        shown = [
            "  ".join(
                cell.rjust(width) if numeric else cell.ljust(width)
                for cell, width, numeric in zip(line, widths, self._numeric, strict=True)
            ).rstrip()
            for line in lines
        ]
        return "\n".join([self.caption, *shown])


def show_table(
    table: pd.DataFrame,
    caption: str,
    *,
    columns: Mapping[str, str] | None = None,
    decimals: Mapping[str, int] | None = None,
    probabilities: Collection[str] = (),
    searchable: bool = False,
    page_length: int = 25,
) -> ShownTable:
    """Show a table with its caption.

    Parameters
    ----------
    table : pandas.DataFrame
        One row per line; the index is not shown.
    caption : str
        What the table shows; for numbers of a study, with the cohort they come from.
    columns : mapping of str to str, optional
        The columns to show, in order, each with its heading. By default all, under their own names.
    decimals : mapping of str to int, optional
        Decimals of single columns; the others have 3. Columns of whole numbers have none.
    probabilities : collection of str, optional
        Columns of probabilities, whose ends are written ``<0.001`` and ``>0.999``.
    searchable : bool
        Whether the book makes the table searchable and sortable. Without scripts it stays a plain table.
    page_length : int
        Rows a page of a searchable table; -1 for all.

    Returns
    -------
    ShownTable
        Shown when it ends a cell.

    Raises
    ------
    frame.InputError
        If the table has no such column.
    """
    headings = dict(columns) if columns is not None else {str(name): str(name) for name in table.columns}
    places = dict(decimals or {})
    for name in (*headings, *places, *probabilities):
        if name not in table.columns:
            raise InputError(
                f"The table has no column {name!r}; it has {', '.join(map(str, table.columns))}."
            )
    values = {name: table[name].tolist() for name in headings}
    cells = {
        name: [_probability(value) for value in values[name]]
        if name in probabilities
        else [written(value, places.get(name, DECIMALS)) for value in values[name]]
        for name in headings
    }
    numeric = tuple(_is_numeric(values[name]) for name in headings)
    order = {name: [_order_key(value) for value in values[name]] for name in headings}
    return ShownTable(
        caption=caption,
        headings=tuple(headings.values()),
        rows=tuple(zip(*cells.values(), strict=True)),
        _numeric=numeric,
        _order=tuple(zip(*order.values(), strict=True)),
        _searchable=searchable,
        _page_length=page_length,
    )


@dataclass(frozen=True)
class ShownText:
    """Sentences for the reader; made by :func:`show_text`.

    Attributes
    ----------
    sentences : tuple of str
        Each a paragraph of its own.
    """

    sentences: tuple[str, ...]

    def _repr_html_(self) -> str:
        return "\n".join(f"<p>{escape(sentence)}</p>" for sentence in self.sentences)

    def __repr__(self) -> str:
        return "\n".join(self.sentences)


def show_text(*sentences: str) -> ShownText:
    """Show computed sentences as running text, which wraps on a narrow screen as printed lines do not.

    Parameters
    ----------
    *sentences : str
        Each becomes a paragraph.

    Returns
    -------
    ShownText
        Shown when it ends a cell.
    """
    return ShownText(sentences)


@dataclass(frozen=True)
class Download:
    """A link that holds a CSV file; made by :func:`download_csv`.

    Attributes
    ----------
    name : str
        File name offered to the reader.
    content : str
        The file.
    shape : tuple of int
        Its rows (without the header) and columns.
    """

    name: str
    content: str
    shape: tuple[int, int]

    def _repr_html_(self) -> str:
        encoded = base64.b64encode(self.content.encode("utf-8")).decode("ascii")
        name = escape(self.name)
        return (
            f'<a download="{name}" href="data:text/csv;charset=utf-8;base64,{encoded}">Download {name}</a> '
            f"({self.shape[0]:,} rows, {self.shape[1]:,} columns)"
        )

    def __repr__(self) -> str:
        return f"{self.name}: {self.shape[0]:,} rows, {self.shape[1]:,} columns"


def download_csv(table: pd.DataFrame, name: str, note: str = "") -> Download:
    """Offer a table as a CSV file that the page itself carries; nothing is written to disk.

    Parameters
    ----------
    table : pandas.DataFrame
        One row per line; the index is left out.
    name : str
        File name, ending in ``.csv``.
    note : str
        What must be known of every row wherever the file goes, such as that its images are drawn; it is
        written into a last column ``data``.

    Returns
    -------
    Download
        Shown as a link when it ends a cell. Numbers have six significant digits, truth values are ``yes`` and
        ``no``, what is absent is blank.

    Raises
    ------
    frame.InputError
        If the name is no plain file name ending in ``.csv``.
    """
    if not name.endswith(".csv") or any(mark in name for mark in "/\\:\"'<>&"):
        raise InputError(f"{name!r} is no file name for a CSV file; give, for example, 'figure_9.csv'.")
    if note:
        table = table.assign(data=note)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([str(column) for column in table.columns])
    columns = [table[column].tolist() for column in table.columns]
    writer.writerows([_exact(value) for value in row] for row in zip(*columns, strict=True))
    return Download(name, buffer.getvalue(), (len(table), len(table.columns)))


@dataclass(frozen=True)
class ShownFigure:
    """A figure for the reader; made by :func:`show_figure`.

    Attributes
    ----------
    figure : matplotlib.figure.Figure
        The drawing.
    summary : str
        What it shows, in words; its plain text form.
    """

    figure: Figure
    summary: str

    def _repr_mimebundle_(self, **_: object) -> tuple[dict[str, Any], dict[str, Any]]:
        drawn = base64.b64encode(self.png()).decode("ascii")
        # A width alone: a height beside it would squeeze the figure on a narrow screen.
        width = round(float(self.figure.get_figwidth()) * _PIXELS_PER_INCH)
        return {"image/png": drawn, "text/plain": self.summary}, {"image/png": {"width": width}}

    def __repr__(self) -> str:
        return self.summary

    def png(self) -> bytes:
        """The drawing as PNG with a palette, a third of the size, without the date or a program's version."""
        from PIL import Image

        drawn, small = io.BytesIO(), io.BytesIO()
        self.figure.savefig(drawn, format="png", dpi=_PIXELS_PER_INCH * _SHARPNESS)
        with Image.open(drawn) as image:
            palette = image.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
        palette.save(small, format="png", optimize=True)
        return small.getvalue()


def show_figure(figure: Figure, summary: str) -> ShownFigure:
    """Show a figure with a summary in words in place of the drawing library's own text.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The drawing; not one of pyplot's, which the notebook would show a second time.
    summary : str
        What it shows, in words; also what is compared when the notebook is run again, so it should hold
        numbers that the drawing rests on.

    Returns
    -------
    ShownFigure
        Shown when it ends a cell.
    """
    return ShownFigure(figure, summary)


# -- values -----------------------------------------------------------------------------------------


def _is_absent(value: object) -> bool:
    import pandas as pd

    return (
        value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value))
    )


def _is_truth(value: object) -> bool:
    # numpy's own truth type is no bool, and importing numpy for its sake alone would be slow.
    return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")


def _probability(value: object) -> str:
    return probability(float(value)) if isinstance(value, Real) and not _is_absent(value) else written(value)


def _is_numeric(values: Sequence[object]) -> bool:
    present = [value for value in values if not _is_absent(value)]
    return bool(present) and all(isinstance(value, Real) and not _is_truth(value) for value in present)


def _order_key(value: object) -> str:
    """What a searchable table sorts a cell by; absent values come first."""
    if _is_absent(value) or not isinstance(value, Real) or _is_truth(value):
        return ""
    return f"{float(value):.6g}"


def _exact(value: object) -> str:
    if _is_absent(value):
        return ""
    if _is_truth(value):
        return "yes" if value else "no"
    if isinstance(value, Integral) or not isinstance(value, Real):
        return str(value)
    return f"{float(value):.6g}"


def _aligned(numeric: bool, further: str = "") -> str:
    return f' style="text-align: {"right" if numeric else "left"}{further}"'

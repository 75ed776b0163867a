"""The figure of one difference under every method, for a notebook or inside the report."""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from frame.errors import InputError
from frame.measures.registry import MEASURES
from frame.mitigation.hiding import masked, without_small_counts
from frame.mitigation.report_parts import text
from frame.mitigation.words import is_true, rows_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from frame.mitigation.comparison import Comparison

__all__ = ["drawn", "figure_html"]


def drawn(comparison: Comparison, attribute: str, measure: str, suppress_below: int = 0) -> Figure:
    """Draw one difference under every method.

    Parameters
    ----------
    comparison : Comparison
        The result.
    attribute, measure : str
        Which difference.
    suppress_below : int
        Smallest count that may stand in a reason.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InputError
        If matplotlib is not installed.
    """
    try:
        from frame.figures.mitigation_changes import MethodPicture, draw_methods
    except ModuleNotFoundError as problem:
        if (problem.name or "").split(".")[0] != "matplotlib":
            raise
        raise InputError(
            "a figure needs matplotlib; install it with: pip install 'frame-audit[plots]'"
        ) from None
    shown = without_small_counts(comparison, suppress_below)
    start, *others = rows_of(shown, attribute, measure)
    lines = []
    for row in others:
        missing = pd.isna(row["after"])
        lines.append(
            {
                "name": row["name"],
                "after": row["after"],
                "lo": row["before"] + row["change_lo"],
                "hi": row["before"] + row["change_hi"],
                "changes": is_true(row["changes"]),
                "note": masked(f"{row['status']}: {row['reason']}", suppress_below) if missing else "",
            }
        )
    return draw_methods(
        MethodPicture(
            title=f"{MEASURES[measure].title} by {attribute}",
            methods=pd.DataFrame(lines, columns=["name", "after", "lo", "hi", "changes", "note"]),
            before=start["before"],
            band=(start["reference_lo"], start["reference_hi"]),
            fair="95 % if membership did not matter"
            if start["reference_method"] == "pooled"
            else "95 % of exactly fair models",
        )
    )


def figure_html(comparison: Comparison, attribute: str, measure: str, limit: int) -> str:
    """The figure as inline SVG whose colours follow the page, with its content in words."""
    figure = drawn(comparison, attribute, measure, limit)
    from frame.figures.mitigation_changes import LARGER, SMALLER, UNCHANGED
    from frame.figures.style import GRID, INK, MUTED, style_sheet

    held = io.StringIO()
    with style_sheet():
        figure.savefig(held, format="svg", transparent=True, metadata={"Date": None})
    svg = held.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    followed = {INK: "ink", MUTED: "muted", UNCHANGED: "muted", GRID: "grid", "#ffffff": "page"}
    followed |= {LARGER: "exceeds", SMALLER: "consistent"}
    for colour, variable in followed.items():
        svg = svg.replace(colour, f"var(--{variable})")
    # Several figures share a page: their parts must not share names.
    own = zlib.crc32(f"{attribute} {measure}".encode())
    svg = re.sub(r'id="([^"]+)"', rf'id="f{own}-\1"', svg)
    svg = re.sub(r'(href="#|url\(#)([^")]+)', rf"\1f{own}-\2", svg)
    words = text(_figure_words(rows_of(comparison, attribute, measure)))
    svg = re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', "", svg, count=1)
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{words}"', 1)
    return f"<figure>\n{svg}\n<figcaption>{words}</figcaption>\n</figure>"


def _figure_words(rows: Sequence[Mapping[str, Any]]) -> str:
    start, *others = rows
    if pd.isna(start["before"]):
        return "No difference could be estimated before mitigation."
    moved = sum(is_true(r["changes"]) for r in others)
    return (
        f"The difference under {len(others)} methods: the dashed line is the one before mitigation "
        f"({start['before']:.3f}), a mark the one afterwards with the paired 95 % interval of its change; "
        f"{moved} changed by more than chance (filled)."
    )

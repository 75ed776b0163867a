"""One difference under every mitigation method: before, after, and the paired interval of the change.

A line marks the difference before mitigation and a band what an exactly fair model would show. Every method
has a mark where the difference is afterwards, with the interval of its change: filled where the change is
more than chance, open where it is not; a triangle down makes the difference smaller, one up makes it larger.
A method without a result keeps its row and says why.
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from frame.figures.score_audit import drawable
from frame.figures.style import EDGE, GRID, INK, MUTED, SMALL, TEXT, WIDTH, style_sheet

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["LARGER", "SMALLER", "UNCHANGED", "MethodPicture", "draw_methods"]

#: Colours of a smaller difference, a larger one, and one that did not change by more than chance.
SMALLER, LARGER, UNCHANGED = "#0a6cb5", "#8c1c13", "#5c6670"
_BAND = "#d9dee3"
_ROW = 0.34
_LETTERS_A_LINE = 26
_LONGEST_NOTE = 46


@dataclass(frozen=True)
class MethodPicture:
    """What the figure of one attribute and measure shows.

    Attributes
    ----------
    title : str
        Measure and attribute.
    methods : DataFrame
        One row per method in order: ``name, after, lo, hi, changes, note``. ``lo`` and ``hi`` are the ends
        of the interval of the difference after mitigation, made of that before plus the paired interval of
        the change; a ``note`` stands in place of a value that is not there.
    before : float
        Difference of the unmitigated head; NaN where there is none.
    band : tuple of float
        95 % range of an exactly fair model; NaN where there is none.
    fair : str
        What the band stands for, for the legend.
    """

    title: str
    methods: pd.DataFrame
    before: float
    band: tuple[float, float]
    fair: str = "95 % of exactly fair models"


def draw_methods(picture: MethodPicture) -> Figure:
    """Draw the difference under every method.

    Parameters
    ----------
    picture : MethodPicture
        What to show.

    Returns
    -------
    matplotlib.figure.Figure
        As wide as a column of the book; taller with more methods.
    """
    with style_sheet():
        names = ["\n".join(_wrapped(str(name))) for name in picture.methods["name"]]
        lines = sum(1.0 + 0.7 * name.count("\n") for name in names)
        figure = Figure(figsize=(WIDTH, 1.75 + _ROW * max(lines, 2)))
        axes = figure.add_subplot()
        figure.suptitle(drawable(picture.title, 62), fontsize=TEXT, x=0.02, ha="left")
        _draw(axes, picture)
        axes.set_yticks(np.arange(len(names)), names)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("difference, largest minus smallest")
        _legend(figure, picture)
        figure.draw_without_rendering()
    return figure


def _draw(axes: Axes, picture: MethodPicture) -> None:
    methods = picture.methods
    low, high = picture.band
    known = methods[["after", "lo", "hi"]].to_numpy(dtype=float).ravel()
    ends = [v for v in (*known.tolist(), picture.before, low, high, 0.0) if not math.isnan(v)]
    room = max(0.05 * (max(ends) - min(ends)), 0.002)
    axes.set_xlim(min(0.0, min(ends) - room), max(ends) + room)
    axes.set_ylim(len(methods) - 0.4, -0.6)
    axes.xaxis.grid(True)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.spines["left"].set_color(GRID)
    if not math.isnan(low):
        axes.axvspan(low, high, color=_BAND, alpha=0.55, linewidth=0, zorder=0)
    if not math.isnan(picture.before):
        axes.axvline(picture.before, color=INK, linestyle=(0, (4, 2)), linewidth=1.3, zorder=1)
    for place, row in enumerate(methods.to_dict("records")):
        if math.isnan(row["after"]):
            axes.text(
                0.01,
                place,
                drawable(str(row["note"]), _LONGEST_NOTE),
                transform=axes.get_yaxis_transform(),
                va="center",
                fontsize=SMALL,
                color=MUTED,
            )
            continue
        changes = bool(row["changes"])
        smaller = row["after"] < picture.before
        colour = UNCHANGED if not changes else SMALLER if smaller else LARGER
        if not math.isnan(row["lo"]):
            axes.plot([row["lo"], row["hi"]], [place, place], color=colour, linewidth=2.0, zorder=2)
        axes.plot(
            [row["after"]],
            [place],
            linestyle="none",
            marker="o" if not changes else "v" if smaller else "^",
            markersize=8,
            markeredgecolor=colour,
            markerfacecolor=colour if changes else "white",
            markeredgewidth=EDGE,
            zorder=3,
            clip_on=False,
        )


def _legend(figure: Figure, picture: MethodPicture) -> None:
    handles: list[Line2D | Patch] = []
    if not math.isnan(picture.before):
        handles.append(Line2D([], [], color=INK, linestyle=(0, (4, 2)), linewidth=1.3, label="before"))
    if not math.isnan(picture.band[0]):
        handles.append(Patch(facecolor=_BAND, alpha=0.55, label=picture.fair))
    kinds = (
        ("smaller", "v", SMALLER, SMALLER),
        ("larger", "^", LARGER, LARGER),
        ("no more than chance", "o", UNCHANGED, "white"),
    )
    for label, marker, edge, face in kinds:
        handles.append(
            Line2D(
                [],
                [],
                linestyle="none",
                marker=marker,
                markersize=7.5,
                markeredgecolor=edge,
                markerfacecolor=face,
                markeredgewidth=EDGE,
                label=label,
            )
        )
    figure.legend(handles=handles, loc="outside lower center", ncols=3, columnspacing=1.2, handletextpad=0.4)


def _wrapped(label: str) -> list[str]:
    """A label in at most two short lines."""
    lines = textwrap.wrap(drawable(label, 2 * _LETTERS_A_LINE), _LETTERS_A_LINE) or [" "]
    return lines if len(lines) <= 2 else [lines[0], lines[1][: _LETTERS_A_LINE - 1] + "…"]

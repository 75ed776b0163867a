"""One audit of scores: the observed difference against its reference, and the subgroups behind it.

Above, how likely each difference is under the reference (an exactly fair model, or permuted membership),
with the observed one marked: filled where it exceeds, open where it does not. Below, every subgroup with
its interval and its counts, those that are not estimable too. Everything is drawn from two tables, so what
they hide is not in the picture.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from frame.figures.style import EDGE, GRID, INK, MUTED, SMALL, TEXT, WIDTH, style_sheet

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "OBSERVED",
    "REACHED",
    "SUBGROUP",
    "AuditPicture",
    "draw_audit",
    "drawable",
    "reference_bars",
]

#: Colours of the observed difference, of what reaches it and of a subgroup.
OBSERVED, REACHED = "#8c1c13", "#c98600"
SUBGROUP = "#0a6cb5"
_FAIR = "#a9b3bd"
_BARS = 44
_LINE = 0.36
_LETTERS_A_LINE = 20


@dataclass(frozen=True)
class AuditPicture:
    """What the figure of one audit shows.

    Attributes
    ----------
    title : str
        Measure and attribute.
    measure : str
        Name of the measure, for the axis of the subgroups.
    groups : DataFrame
        One row per subgroup: ``group, value, lo, hi, counts, note, worst``. ``counts`` is text; a ``note``
        stands in place of a value that is not there.
    bars : DataFrame or None
        Law of the difference, as :func:`reference_bars`; None where there is none.
    observed : float
        Observed difference; NaN where there is none.
    p : float
        Exceedance; NaN where none is shown.
    exceeds : bool
        Whether the observed mark is filled.
    common : float
        Common value of the reference; NaN where there is none.
    reason : str
        Why there is no reference or no p.
    fair : str
        What the reference stands for, for the legend.
    """

    title: str
    measure: str
    groups: pd.DataFrame
    bars: pd.DataFrame | None
    observed: float
    p: float
    exceeds: bool
    common: float
    reason: str
    fair: str = "exactly fair model"


def reference_bars(exceedance: Callable[[float], float], observed: float, highest: float) -> pd.DataFrame:
    """Probability of differences in bars of one width, an edge of which is the observed difference.

    Parameters
    ----------
    exceedance : callable
        P(G >= d) of the reference.
    observed : float
        Observed difference.
    highest : float
        A difference that is hardly ever reached; the bars end there or just above the observed one.

    Returns
    -------
    DataFrame
        ``lo, hi, probability``; the last bar also holds everything beyond.
    """
    import pandas as pd

    end = min(1.0, max(1.15 * observed, 1.05 * highest, 1e-3))
    width = end / _BARS
    if observed > width:
        # So that what reaches the observed difference has bars of its own.
        width = observed / max(1, round(observed / width))
    n_bars = math.ceil(end / width - 1e-9)
    edges = width * np.arange(n_bars + 1)
    reached = [1.0, *(exceedance(float(edge)) for edge in edges[1:-1]), 0.0]
    probability = np.maximum(-np.diff(reached), 0.0)
    return pd.DataFrame({"lo": edges[:-1], "hi": edges[1:], "probability": probability})


def draw_audit(picture: AuditPicture) -> Figure:
    """Draw one audit.

    Parameters
    ----------
    picture : AuditPicture
        What to show.

    Returns
    -------
    matplotlib.figure.Figure
        As wide as a column of the book; taller with more subgroups.
    """
    with style_sheet():
        lines = sum(1 + (len(_wrapped(str(g))) > 1) * 0.6 for g in picture.groups["group"])
        below = 1.05 + _LINE * max(lines, 2)
        above = 2.6 if picture.bars is not None else 1.5
        figure = Figure(figsize=(WIDTH, 0.35 + above + below))
        above_axes, below_axes = figure.subplots(2, 1, height_ratios=[above, below])
        figure.suptitle(drawable(picture.title, 62), fontsize=TEXT, x=0.02, ha="left")
        if picture.bars is None:
            _draw_reason(above_axes, picture.reason)
        else:
            _draw_law(above_axes, picture, picture.bars)
        _draw_groups(below_axes, picture)
        figure.draw_without_rendering()
    return figure


def _draw_reason(axes: Axes, reason: str) -> None:
    axes.set_axis_off()
    words = "\n".join(textwrap.wrap(drawable(f"Not estimable: {reason}", 400), 58)[:7])
    axes.text(0.0, 0.5, words, transform=axes.transAxes, va="center", fontsize=SMALL)


def _draw_law(axes: Axes, picture: AuditPicture, bars: pd.DataFrame) -> None:
    low, high = bars["lo"].to_numpy(), bars["hi"].to_numpy()
    share = 100.0 * bars["probability"].to_numpy()
    reaching = (low >= picture.observed - 1e-9) & (not math.isnan(picture.p))
    for chosen, colour, hatch in ((~reaching, _FAIR, ""), (reaching, REACHED, "///")):
        axes.bar(
            low[chosen],
            share[chosen],
            width=(high - low)[chosen],
            align="edge",
            color=colour,
            edgecolor="white",
            linewidth=0.5,
            hatch=hatch,
        )
    axes.axvline(picture.observed, color=OBSERVED, linewidth=2.0, zorder=3)
    top = max(float(share.max()), 1e-6)
    axes.plot(
        [picture.observed],
        [1.12 * top],
        marker="D",
        markersize=8,
        markeredgecolor=OBSERVED,
        markerfacecolor=OBSERVED if picture.exceeds else "white",
        markeredgewidth=EDGE,
        zorder=4,
        clip_on=False,
    )
    axes.set_xlim(0.0, float(high[-1]))
    axes.set_ylim(0.0, 1.3 * top)
    to_the_right = picture.observed < 0.55 * float(high[-1])
    axes.annotate(
        f"observed {picture.observed:.3f}",
        (picture.observed, 1.12 * top),
        xytext=(9 if to_the_right else -9, 0),
        textcoords="offset points",
        ha="left" if to_the_right else "right",
        va="center",
        fontsize=SMALL,
        color=OBSERVED,
    )
    axes.xaxis.set_major_locator(MaxNLocator(6, prune=None))
    axes.yaxis.set_major_locator(MaxNLocator(3, prune="lower"))
    axes.set_ylabel("probability, %")
    axes.set_xlabel("difference, largest minus smallest")
    handles = [Patch(facecolor=_FAIR, edgecolor="white", label=picture.fair)]
    if not math.isnan(picture.p):
        shown = "<0.001" if picture.p < 0.001 else f"{picture.p:.3f}"
        handles.append(
            Patch(
                facecolor=REACHED,
                edgecolor="white",
                hatch="///",
                label=f"as large or larger (p {shown})",
            )
        )
    axes.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(-0.02, 1.0),
        ncols=2,
        columnspacing=1.2,
        handlelength=1.3,
        borderaxespad=0.1,
    )


def _draw_groups(axes: Axes, picture: AuditPicture) -> None:
    groups = picture.groups
    axes.xaxis.grid(True)
    places = np.arange(len(groups))
    axes.set_ylim(len(groups) - 0.4, -0.6)
    if not math.isnan(picture.common):
        axes.axvline(picture.common, color=MUTED, linestyle=(0, (4, 2)), linewidth=1.2, zorder=1)
    values = groups[["value", "lo", "hi"]].to_numpy(dtype=float)
    known = values[~np.isnan(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    if not math.isnan(picture.common):
        low, high = min(low, picture.common), max(high, picture.common)
    room = max(0.06 * (high - low), 0.01)
    axes.set_xlim(low - room, high + room)
    for place, row in enumerate(groups.to_dict("records")):
        if math.isnan(row["value"]):
            axes.text(
                0.01,
                place,
                drawable(str(row["note"]), 44),
                transform=axes.get_yaxis_transform(),
                va="center",
                fontsize=SMALL,
                color=MUTED,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
            )
        else:
            if not math.isnan(row["lo"]):
                axes.plot([row["lo"], row["hi"]], [place, place], color=SUBGROUP, linewidth=2.0, zorder=2)
            axes.plot(
                [row["value"]],
                [place],
                marker="v" if row["worst"] else "o",
                markersize=8,
                color=OBSERVED if row["worst"] else SUBGROUP,
                zorder=3,
            )
        axes.text(
            1.02,
            place,
            str(row["counts"]),
            transform=axes.get_yaxis_transform(),
            va="center",
            fontsize=SMALL,
            color=INK,
        )
    axes.text(
        1.02,
        1.0,
        "positive / images",
        transform=axes.transAxes,
        va="bottom",
        fontsize=SMALL,
        color=MUTED,
    )
    axes.set_yticks(places, ["\n".join(_wrapped(str(g))) for g in groups["group"]])
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.spines["left"].set_color(GRID)
    marks = "dashed: common value" if not math.isnan(picture.common) else ""
    worst = "triangle: worst subgroup" if bool(groups["worst"].any()) else ""
    note = "; ".join(part for part in (marks, worst) if part)
    axes.set_xlabel(picture.measure[:1].upper() + picture.measure[1:] + (f"\n{note}" if note else ""))


def _wrapped(label: str) -> list[str]:
    """A label in at most two short lines."""
    lines = textwrap.wrap(drawable(label, 2 * _LETTERS_A_LINE), _LETTERS_A_LINE) or [" "]
    return lines if len(lines) <= 2 else [lines[0], lines[1][: _LETTERS_A_LINE - 1] + "…"]


@lru_cache(maxsize=1)
def _letters() -> frozenset[int]:
    """Letters that the font has."""
    with style_sheet():
        font = get_font(findfont(FontProperties()))
    return frozenset(font.get_charmap())


def drawable(text: str, longest: int) -> str:
    """Text with a sign in place of letters that the font lacks, and nothing that is read as a formula."""
    kept = "".join(c if ord(c) in _letters() and c.isprintable() else "\N{WHITE SQUARE}" for c in text)
    short = kept if len(kept) <= longest else kept[: longest - 1] + "…"
    return short.replace("$", r"\$")

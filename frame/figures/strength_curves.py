"""Every quantity of step two against the strength of an operator, as in Figure 4 e and f of the paper.

A column of the figure is an operator, a row a quantity; strengths stand at equal distances, because they are
doses of different kinds. A strength that was not run leaves a gap that says so.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from frame.figures.style import EDGE, INK, MUTED, SMALL, TEXT, WIDTH, style_sheet

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ACHIEVED", "DIFFERENCE", "PERFORMANCE", "REPRESENTATION", "OperatorPicture", "draw_strengths"]

#: Colours: the difference, the achievable one, the representation, and the disease AUROC (performance).
DIFFERENCE, ACHIEVED, REPRESENTATION, PERFORMANCE = "#8c1c13", "#c98600", "#0a6cb5", "#5a6572"
#: Quantities of a panel: the first with its interval, the second beside it.
_PANELS: Final = (
    (("difference", "achievable_difference"), "Difference", DIFFERENCE),
    (("disease_auroc",), "Disease AUROC", PERFORMANCE),
    (("linear_decodability", "nonlinear_decodability"), "Decodability", REPRESENTATION),
    (("overlap",), "Overlap", REPRESENTATION),
    (("erasure_cost",), "Erasure cost", REPRESENTATION),
)
_BESIDE: Final = {"achievable_difference": ACHIEVED, "nonlinear_decodability": ACHIEVED}
_KEY: Final = {
    "achievable_difference": ("observed", "achievable"),
    "nonlinear_decodability": ("linear", "nonlinear"),
}
_HEIGHT: Final = 1.75
#: Least height of a panel, in the units of its quantity.
_LEAST_SPAN: Final = 0.04


@dataclass(frozen=True)
class OperatorPicture:
    """One operator.

    Attributes
    ----------
    title : str
        Its name.
    axis : str
        What a strength is.
    table : DataFrame
        ``strength, quantity, value, lo, hi``, one row per strength and quantity; NaN where there is none.
    """

    title: str
    axis: str
    table: pd.DataFrame


def draw_strengths(operators: Sequence[OperatorPicture], quantities: Sequence[str]) -> Figure:
    """Draw some operators side by side.

    Parameters
    ----------
    operators : sequence of OperatorPicture
        One to three.
    quantities : sequence of str
        Quantities to show, of those in the tables.

    Returns
    -------
    matplotlib.figure.Figure
        One operator: panels in two columns, as wide as a column of the book. Several: a column for each.
    """
    shown = [panel for panel in _PANELS if panel[0][0] in quantities]
    with style_sheet():
        if len(operators) == 1:
            return _alone(operators[0], shown, quantities)
        figure = Figure(figsize=(WIDTH * len(operators) / 2, 0.5 + _HEIGHT * len(shown)))
        grid = figure.subplots(len(shown), len(operators), squeeze=False, sharey="row")
        for column, operator in enumerate(operators):
            for row, panel in enumerate(shown):
                axes: Axes = grid[row, column]
                _draw_panel(axes, operator, panel, quantities)
                if row == 0:
                    axes.set_title(textwrap.fill(operator.title, 22), fontsize=TEXT)
                if column == 0:
                    axes.set_ylabel(panel[1])
                axes.set_xlabel(operator.axis if row == len(shown) - 1 else "")
        figure.draw_without_rendering()
    return figure


def _alone(
    operator: OperatorPicture, shown: Sequence[tuple[tuple[str, ...], str, str]], quantities: Sequence[str]
) -> Figure:
    """The difference over the whole width, the other panels two by two."""
    rest = shown[1:]
    n_rows = 1 + (len(rest) + 1) // 2
    figure = Figure(figsize=(WIDTH, 0.4 + 2.5 + 1.95 * (n_rows - 1)))
    grid = figure.add_gridspec(n_rows, 2, height_ratios=[2.5, *[1.95] * (n_rows - 1)])
    places = [grid[0, :], *(grid[1 + i // 2, i % 2] for i in range(len(rest)))]
    for place, panel in zip(places, shown, strict=True):
        axes = figure.add_subplot(place)
        _draw_panel(axes, operator, panel, quantities)
        axes.set_title(panel[1], fontsize=TEXT, loc="left")
        axes.set_xlabel(operator.axis, fontsize=SMALL)
        if axes.get_legend() is not None and place is places[0]:  # there is room beside the title
            axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=2, handlelength=1.6)
    figure.draw_without_rendering()
    return figure


def _draw_panel(
    axes: Axes, operator: OperatorPicture, panel: tuple[tuple[str, ...], str, str], quantities: Sequence[str]
) -> None:
    names, _, colour = panel
    table = operator.table
    strengths = sorted(table["strength"].unique().tolist())
    places = np.arange(len(strengths))
    axes.yaxis.grid(True)
    two = len(names) > 1 and names[1] in quantities
    for name in names:
        if name not in quantities:
            continue
        rows = table[table["quantity"] == name].set_index("strength").reindex(strengths)
        values, lo, hi = (rows[column].to_numpy(dtype=np.float64) for column in ("value", "lo", "hi"))
        beside = name in _BESIDE
        known = ~np.isnan(values)
        axes.plot(
            places[known],
            values[known],
            color=_BESIDE.get(name, colour),
            linestyle="--" if beside else "-",
            linewidth=1.5,
            marker="s" if beside else "o",
            markersize=5.5 if beside else 6.5,
            markerfacecolor="white" if beside else colour,
            markeredgewidth=EDGE,
            clip_on=False,
            zorder=3,
            label=_KEY[names[1]][names.index(name)] if two else None,
        )
        drawn = known & ~np.isnan(lo)
        if drawn.any():
            axes.vlines(places[drawn], lo[drawn], hi[drawn], color=colour, linewidth=1.3, zorder=2)
    _mark_not_run(axes, table, names[0], strengths)
    axes.set_xticks(places, [f"{s:g}" for s in strengths])
    axes.set_xlim(-0.4, len(strengths) - 0.6)
    low, high = axes.get_ylim()
    if high - low < _LEAST_SPAN:  # rounding is not drawn as a trend
        middle = (low + high) / 2
        axes.set_ylim(middle - _LEAST_SPAN / 2, middle + _LEAST_SPAN / 2)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.tick_params(labelsize=SMALL)
    if two:
        axes.legend(loc="best", handlelength=1.6, borderaxespad=0.2)


def _mark_not_run(axes: Axes, table: pd.DataFrame, name: str, strengths: list[float]) -> None:
    """Say where nothing was run, and where nothing at all can be shown."""
    rows = table[table["quantity"] == name].set_index("strength").reindex(strengths)
    missing = rows["value"].isna().to_numpy()
    if missing.all():
        axes.text(
            0.5, 0.5, "not estimable", transform=axes.transAxes, ha="center", color=MUTED, fontsize=SMALL
        )
        axes.set_yticks([])
        return
    for place in np.flatnonzero(missing):
        axes.annotate(
            "not run",
            (float(place), 0.06),
            xycoords=("data", "axes fraction"),
            ha="center",
            va="bottom",
            rotation=90,
            color=INK,
            fontsize=SMALL,
        )

"""What a study of a given size can show: detectable difference against size, and power against difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from frame.figures.style import INK, MUTED, SMALL, WIDTH, new_axes, style_sheet
from frame.presentation import ShownFigure, show_figure, written

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["draw_plan", "draw_power", "draw_sizes"]

# Colours and lines of what is given and of what is needed.
_GIVEN, _NEEDED = "#0a6cb5", "#444a52"
_NEEDED_LINE, _WANTED_LINE = (0, (6, 2)), (0, (2, 2))
# How the labels of one and of two sizes are aligned, from left to right.
_SIDES = {1: ("center",), 2: ("right", "left")}


def draw_sizes(
    curve: pd.DataFrame,
    *,
    axis: str,
    given: int,
    difference: float | None = None,
    needed: int | None = None,
) -> ShownFigure:
    """Draw the smallest detectable difference against the size, with the given and the needed size.

    Parameters
    ----------
    curve : pandas.DataFrame
        From :func:`frame.reference.study.size_curve`.
    axis : str
        What the sizes are, for the axis.
    given : int
        Size at hand.
    difference : float, optional
        Difference that is to be found.
    needed : int, optional
        Size at which it is found; leave out where there is none.

    Returns
    -------
    ShownFigure
    """
    with style_sheet():
        figure, axes = new_axes(3.7)
        _size_panel(axes, curve, axis, given, difference, needed)
    return show_figure(figure, _sizes_in_words(curve, axis, given, difference, needed))


def draw_power(
    given: pd.DataFrame, needed: pd.DataFrame | None = None, *, power: float, difference: float | None = None
) -> ShownFigure:
    """Draw power against the true difference, at the given and at the needed counts.

    Parameters
    ----------
    given : pandas.DataFrame
        From :func:`frame.reference.study.power_curve`, at the counts at hand.
    needed : pandas.DataFrame, optional
        The same at the needed counts.
    power : float
        Wanted power.
    difference : float, optional
        Difference that is to be found.

    Returns
    -------
    ShownFigure
    """
    with style_sheet():
        figure, axes = new_axes(3.9)
        _power_panel(axes, given, needed, power, difference)
        figure.legend(loc="outside lower center", ncols=2)
    return show_figure(figure, _power_in_words(given, needed, power))


def draw_plan(
    sizes: pd.DataFrame,
    at_given: pd.DataFrame,
    at_needed: pd.DataFrame | None,
    *,
    axis: str,
    given: int,
    needed: int | None,
    difference: float | None,
    power: float,
) -> ShownFigure:
    """Draw both on one sheet: what :func:`draw_sizes` and :func:`draw_power` show.

    Parameters
    ----------
    sizes, axis, given, needed, difference
        As in :func:`draw_sizes`.
    at_given, at_needed, power
        As in :func:`draw_power`.

    Returns
    -------
    ShownFigure
    """
    with style_sheet():
        figure = Figure(figsize=(WIDTH, 7.4))
        upper, lower = figure.subplots(2)
        for axes in (upper, lower):
            axes.grid(True)
        _size_panel(upper, sizes, axis, given, difference, needed)
        _power_panel(lower, at_given, at_needed, power, difference)
        figure.legend(loc="outside lower center", ncols=2)
    words = f"{_sizes_in_words(sizes, axis, given, difference, needed)} "
    return show_figure(figure, words + _power_in_words(at_given, at_needed, power))


def _size_panel(
    axes: Axes,
    curve: pd.DataFrame,
    axis: str,
    given: int,
    difference: float | None,
    needed: int | None,
) -> None:
    axes.plot(curve["smallest"], curve["detectable"], color=INK, linewidth=2.2, zorder=3)
    axes.set_xscale("log")
    wide = curve["smallest"].max() > 200 * curve["smallest"].min()
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0) if wide else (1.0, 2.0, 5.0), numticks=12))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:,.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(bottom=0.0)
    axes.yaxis.set_major_locator(MaxNLocator(6))
    axes.set_xlabel(axis)
    axes.set_ylabel("Detectable difference")
    marks: list[tuple[int, str, str, Any]] = [(given, f"given: {given:,}", _GIVEN, "-")]
    if needed is not None and needed != given:
        marks.append((needed, f"needed: {needed:,}", _NEEDED, _NEEDED_LINE))
        marks.sort(key=lambda mark: mark[0])
    # Above the axes, where no line is; two of them lean apart.
    for (size, label, colour, line), side in zip(marks, _SIDES[len(marks)], strict=True):
        axes.axvline(size, color=colour, linewidth=1.6, linestyle=line, zorder=2)
        axes.annotate(
            label,
            (size, 1.0),
            (0, 3),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            ha=side,
            fontsize=SMALL,
            color=colour,
        )
    if difference is not None:
        axes.axhline(difference, color=MUTED, linewidth=1.2, linestyle=_WANTED_LINE, zorder=2)
        axes.annotate(
            f"to be found: {difference:g}",
            (0.0, difference),
            (4, 4),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            fontsize=SMALL,
            color=MUTED,
        )


def _power_panel(
    axes: Axes, given: pd.DataFrame, needed: pd.DataFrame | None, power: float, difference: float | None
) -> None:
    axes.plot(given["difference"], given["power"], color=_GIVEN, linewidth=2.4, label="given counts")
    if needed is not None:
        axes.plot(
            needed["difference"],
            needed["power"],
            color=_NEEDED,
            linewidth=2.0,
            linestyle=_NEEDED_LINE,
            label="needed counts",
        )
    axes.axhline(power, color=MUTED, linewidth=1.2, linestyle=_WANTED_LINE, zorder=1)
    if difference is not None:
        axes.axvline(difference, color=MUTED, linewidth=1.2, linestyle=_WANTED_LINE, zorder=1)
    axes.set_ylim(0.0, 1.02)
    axes.set_xlim(left=0.0)
    axes.yaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.set_xlabel("True difference of one subgroup")
    axes.set_ylabel("Power")


def _sizes_in_words(
    curve: pd.DataFrame, axis: str, given: int, difference: float | None, needed: int | None
) -> str:
    parts = [
        f"{size:,}: {written(found)}"
        for size, found in zip(curve["smallest"].tolist(), curve["detectable"].tolist(), strict=True)
    ][::4]
    text = f"Detectable difference by size ({axis}): {', '.join(parts)}. Given: {given:,}."
    if difference is not None:
        text += f" To be found: {difference:g}; needed: {'no count' if needed is None else f'{needed:,}'}."
    return text


def _power_in_words(given: pd.DataFrame, needed: pd.DataFrame | None, power: float) -> str:
    def listed(curve: pd.DataFrame) -> str:
        pairs = zip(curve["difference"].tolist(), curve["power"].tolist(), strict=True)
        return ", ".join(f"{written(d)}: {written(p, 2)}" for d, p in list(pairs)[::5])

    text = f"Power by true difference at the given counts: {listed(given)}."
    if needed is not None:
        text += f" At the needed counts: {listed(needed)}."
    return f"{text} Wanted power: {power:g}."

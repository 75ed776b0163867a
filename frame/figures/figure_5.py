"""Figure 5, panels a to c: the difference, the geometry and the achievable share in the collinearity model.

Each panel is a figure of its own and draws from the tables of :mod:`frame.figures.collinearity`. A fourth
figure, which the paper does not have, sets the three ways to choose the achievable difference side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from frame.figures.collinearity import SET_NAMES
from frame.figures.style import EDGE, GRID, INK, MUTED, SMALL, WIDTH, new_axes, style_sheet
from frame.mitigation.achievable import CHOICES
from frame.presentation import ShownFigure, show_figure, written

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["panel_a", "panel_b", "panel_c", "three_sets"]

#: Colours of the observed and the achievable difference, and of what every method could remove.
_OBSERVED, _ACHIEVABLE, _REMOVABLE = "#0b3c6f", "#4a90c8", "#cfe0ef"
_OVERLAP, _COST, _LINEAR, _NONLINEAR = "#0a6cb5", "#444a52", "#0a6cb5", "#444a52"
#: How far the marks of two seeds lie apart, in units of the collinearity.
_APART: Final = 0.008
_DASHED, _DOTTED = (0, (5, 2)), (0, (1, 1.4))
_SET_LOOKS: Final = {
    "printed": (_ACHIEVABLE, "o", "-"),
    "unclipped": (_OBSERVED, "s", _DASHED),
    "nine": ("#a8322d", "^", _DOTTED),
}


def panel_a(levels: pd.DataFrame, seeds: pd.DataFrame) -> ShownFigure:
    """The observed and the achievable difference against the collinearity.

    Parameters
    ----------
    levels : pandas.DataFrame
        From :func:`frame.figures.collinearity.level_table`.
    seeds : pandas.DataFrame
        From :func:`frame.figures.collinearity.seed_table`; each draw is a small mark, filled where its
        difference lies above the interval of an exactly fair model at its counts.

    Returns
    -------
    ShownFigure
    """
    x, observed = levels["collinearity"], levels["difference"]
    achievable = levels["achievable_printed_test"]
    with style_sheet():
        figure, axes = new_axes(5.0, grid="y")
        axes.fill_between(x, achievable, observed, color=_REMOVABLE, linewidth=0, zorder=1)
        axes.plot(x, observed, color=_OBSERVED, linewidth=2.2, zorder=3)
        axes.plot(x, achievable, color=_ACHIEVABLE, linewidth=2.2, zorder=4)
        axes.plot(x, levels["population"], color=MUTED, linewidth=1.8, linestyle=_DASHED, zorder=2)
        axes.plot(x, levels["reference"], color=MUTED, linewidth=1.8, linestyle=_DOTTED, zorder=2)
        for outside, part in seeds.groupby("outside"):
            axes.plot(
                # A little apart, so that draws with nearly the same difference stay two marks.
                part["collinearity"] + _APART * (part["seed"] - seeds["seed"].mean()),
                part["difference"],
                linestyle="none",
                marker="o",
                markersize=6.0,
                markerfacecolor=_OBSERVED if outside else "white",
                markeredgecolor=_OBSERVED,
                markeredgewidth=EDGE,
                zorder=5,
                clip_on=False,
            )
        axes.set_ylim(bottom=0.0)
        axes.set_xlim(-0.02, 1.02)
        axes.set_xticks(x.tolist(), _ticks(x.tolist()))
        axes.yaxis.set_major_locator(MaxNLocator(6))
        axes.set_xlabel("Collinearity of disease and group direction")
        axes.set_ylabel("Difference in AUROC")
        _key(
            figure,
            {
                "observed, mean": {"color": _OBSERVED, "linewidth": 2.2},
                "achievable, mean": {"color": _ACHIEVABLE, "linewidth": 2.2},
                "over the whole model": {"color": MUTED, "linewidth": 1.8, "linestyle": _DASHED},
                "a draw above the fair range": _mark(_OBSERVED),
                "a draw within it": _mark("white"),
                "fair reference": {"color": MUTED, "linewidth": 1.8, "linestyle": _DOTTED},
            },
        )
    exceeding = seeds.groupby("collinearity")["outside"].sum()
    return show_figure(
        figure,
        _by_level(
            "Figure 5a",
            levels,
            {
                "observed": "difference",
                "achievable": "achievable_printed_test",
                "over the whole model": "population",
                "fair reference": "reference",
            },
        )
        + "\nDraws above the range of 95 % of fair models, by collinearity: "
        + ", ".join(f"{level:g}: {int(count)} of 5" for level, count in exceeding.items()),
    )


def panel_b(levels: pd.DataFrame) -> ShownFigure:
    """Overlap and erasure cost above, decodability of the group below, against the collinearity.

    Parameters
    ----------
    levels : pandas.DataFrame
        From :func:`frame.figures.collinearity.level_table`.

    Returns
    -------
    ShownFigure
    """
    x = levels["collinearity"]
    with style_sheet():
        figure = Figure(figsize=(WIDTH, 6.4))
        upper, lower = figure.subplots(2, sharex=True)
        _curve(upper, x, levels["overlap"], "geometric overlap", _OVERLAP, "o", "-")
        _curve(upper, x, levels["erasure_cost"], "erasure cost", _COST, "s", _DASHED)
        upper.set_ylabel("Cosine; AUROC lost")
        nonlinear, linear = levels["nonlinear_decodability"], levels["linear_decodability"]
        _curve(lower, x, nonlinear, "nonlinear decodability", _NONLINEAR, "^", _DOTTED)
        _curve(lower, x, linear, "linear decodability", _LINEAR, "D", "-")
        lower.set_ylabel("AUROC of the group")
        lower.set_xlabel("Collinearity of disease and group direction")
        lower.set_xticks(x.tolist(), _ticks(x.tolist()))
        for axes in (upper, lower):
            axes.yaxis.grid(True)
            axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
            axes.margins(y=0.16)
            axes.legend(loc="best", fontsize=SMALL)
        figure.align_ylabels([upper, lower])
    return show_figure(
        figure,
        _by_level(
            "Figure 5b",
            levels,
            {
                "overlap": "overlap",
                "erasure cost": "erasure_cost",
                "linear decodability": "linear_decodability",
                "nonlinear decodability": "nonlinear_decodability",
            },
        ),
    )


def panel_c(levels: pd.DataFrame, printed: Mapping[float, float]) -> ShownFigure:
    """The achievable difference in percent of the observed one, with the printed share beside it.

    Parameters
    ----------
    levels : pandas.DataFrame
        From :func:`frame.figures.collinearity.level_table`.
    printed : mapping of float to float
        The printed share by collinearity, in percent.

    Returns
    -------
    ShownFigure
    """
    shares = levels["share_printed_test"].tolist()
    collinearities = levels["collinearity"].tolist()
    places = list(range(len(levels)))[::-1]
    with style_sheet():
        figure, axes = new_axes(4.6, grid="x")
        axes.barh(places, [100.0] * len(places), height=0.66, color=_REMOVABLE, zorder=2)
        axes.barh(places, shares, height=0.66, color=_ACHIEVABLE, zorder=3)
        for place, level, share in zip(places, collinearities, shares, strict=True):
            axes.text(2.0, place, f"{share:.1f} %", va="center", color=INK, zorder=4, fontweight="bold")
            axes.text(
                1.02,
                place,
                f"printed {printed[level]:g} %",
                transform=axes.get_yaxis_transform(),
                va="center",
                fontsize=SMALL,
                color=MUTED,
            )
            axes.plot([printed[level]] * 2, [place - 0.33, place + 0.33], color=INK, linewidth=2.0, zorder=5)
        axes.set_xlim(0.0, 100.0)
        axes.set_yticks(places, [f"{level:g}" for level in collinearities])
        axes.set_ylabel("Collinearity")
        axes.set_xlabel("Percent of the observed difference")
        axes.tick_params(axis="y", length=0)
        _key(
            figure,
            {
                "achievable": {"color": _ACHIEVABLE, "linewidth": 9},
                "removable": {"color": _REMOVABLE, "linewidth": 9},
                "printed": {
                    "color": INK,
                    "linewidth": 2.0,
                    "marker": "|",
                    "linestyle": "none",
                    "markersize": 13,
                },
            },
            columns=3,
        )
    lines = [
        f"collinearity {level:g}: {share:.1f} % achievable (printed {printed[level]:g} %)"
        for level, share in zip(collinearities, shares, strict=True)
    ]
    return show_figure(figure, "Figure 5c. " + "\n".join(lines))


def three_sets(levels: pd.DataFrame) -> ShownFigure:
    """The achievable share by set of methods, chosen on test and chosen on validation.

    Parameters
    ----------
    levels : pandas.DataFrame
        From :func:`frame.figures.collinearity.level_table`.

    Returns
    -------
    ShownFigure
    """
    x = list(range(len(levels)))
    with style_sheet():
        figure = Figure(figsize=(WIDTH, 7.4))
        pair = figure.subplots(2, sharex=True, sharey=True)
        for axes, split in zip(pair, CHOICES, strict=True):
            axes.axhline(100.0, color=MUTED, linewidth=1.2, zorder=1)
            for methods, (colour, marker, line) in _SET_LOOKS.items():
                axes.plot(
                    x,
                    levels[f"share_{methods}_{split}"],
                    color=colour,
                    marker=marker,
                    markersize=7.5,
                    linestyle=line,
                    linewidth=2.0,
                    zorder=3,
                    clip_on=False,
                )
            axes.yaxis.grid(True, color=GRID)
            axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
            axes.set_ylabel("Share achievable (%)")
            axes.set_title(f"Method chosen on {split}", loc="left", fontsize=SMALL, color=INK)
        pair[1].set_xticks(x, [f"{level:g}" for level in levels["collinearity"]])
        pair[1].set_xlabel("Collinearity")
        _key(
            figure,
            {
                SET_NAMES[methods]: {
                    "color": colour,
                    "marker": marker,
                    "markersize": 7.5,
                    "linestyle": line,
                    "linewidth": 2.0,
                }
                for methods, (colour, marker, line) in _SET_LOOKS.items()
            },
            columns=1,
        )
    parts = [
        _by_level(
            f"Chosen on {split}, percent",
            levels,
            {SET_NAMES[methods]: f"share_{methods}_{split}" for methods in _SET_LOOKS},
            decimals=1,
        )
        for split in CHOICES
    ]
    return show_figure(figure, "\n".join(parts))


def _curve(axes: Axes, x: pd.Series, y: pd.Series, label: str, colour: str, marker: str, line: Any) -> None:
    axes.plot(
        x,
        y,
        color=colour,
        marker=marker,
        markersize=7,
        linestyle=line,
        linewidth=2.0,
        zorder=3,
        label=label,
        clip_on=False,
    )


def _ticks(levels: list[float]) -> list[str]:
    return [f"{level:g}" for level in levels]


def _mark(face: str) -> dict[str, Any]:
    return {
        "linestyle": "none",
        "marker": "o",
        "markersize": 6.0,
        "markerfacecolor": face,
        "markeredgecolor": _OBSERVED,
        "markeredgewidth": EDGE,
    }


def _key(figure: Figure, entries: Mapping[str, Mapping[str, Any]], *, columns: int = 2) -> None:
    """Write below a figure what its lines and marks are; filled down the columns."""
    handles = [Line2D([], [], label=label, **look) for label, look in entries.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, columnspacing=1.4)


def _by_level(title: str, levels: pd.DataFrame, columns: Mapping[str, str], *, decimals: int = 3) -> str:
    """The drawn values in words, a line per collinearity."""
    lines = [
        f"collinearity {row['collinearity']:g}: "
        + ", ".join(f"{name} {written(float(row[column]), decimals)}" for name, column in columns.items())
        for row in levels.to_dict("records")
    ]
    return f"{title}. " + "\n".join(lines)

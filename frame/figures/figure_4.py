"""Figure 4, panels d to h, drawn: what the race difference does when a cause is injected.

Each panel is a figure of its own and draws from the collected rows of :mod:`frame.experiments.injection`:
the means over the findings of one encoder, with race read in one way. Printed values are drawn in no panel;
they stand beside ours in a table, see :func:`frame.figures.injection_tables.beside_the_print`. Where there is
nothing to draw, a sentence says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from frame.experiments.injection import ALL_FINDINGS, GRIDS
from frame.figures.injection_tables import (
    QUANTITY_WORDS,
    curve_table,
    curves_wide,
    trend_table,
    why_no_curves,
)
from frame.figures.style import EDGE, GRID, INK, MUTED, SMALL, new_axes, style_sheet
from frame.presentation import ShownFigure, ShownText, show_figure, show_text, written

__all__ = ["panel_d", "panel_e", "panel_f", "panel_g", "panel_h"]

_LOOKS: Final[Mapping[str, tuple[str, str, Any, str]]] = {
    "decodability": ("#2f7fc1", "o", "-", "Decodability"),
    "entanglement": ("#0b3c6f", "D", "-", "Entanglement"),
    "whitened entanglement": ("#a8322d", "s", (0, (5, 2)), "Whitened (ours)"),
}
_AXES: Final = {
    "decodability": "Injected strength s",
    "entanglement": "Removed directions k",
    "whitened entanglement": "Removed fraction",
}
#: Least reach of the colours, so that rounding is not painted as a change.
_LEAST_REACH: Final = 0.02
_MARKS: Final = (5.0, 10.0)
_COLOURS: Final = LinearSegmentedColormap.from_list("changes", ["#c98600", "#ffffff", "#4a90c8"])


def panel_d(rows: pd.DataFrame, name: str, attribute: str = "race") -> ShownFigure | ShownText:
    """The race difference against linear decodability, from the features as they are.

    Returns
    -------
    ShownFigure
        A line per operator; marks grow with strength. A sentence where there is nothing to draw.
    """
    if why := why_no_curves(rows, name, attribute, "difference", "linear_decodability"):
        return show_text(why)
    table = curve_table(rows, name, attribute)
    said = []
    with style_sheet():
        figure, axes = new_axes(4.8)
        for operator, (colour, marker, line, words) in _LOOKS.items():
            x, y, strengths = _path(table, operator)
            if not len(x):
                continue
            axes.plot(x, y, color=colour, linestyle=line, linewidth=1.8, zorder=2)
            sizes = np.linspace(*_MARKS, len(x)) ** 2
            axes.scatter(x, y, s=sizes, marker=marker, color=colour, zorder=3, clip_on=False)
            said.append(
                f"{words}: "
                + ", ".join(f"{s:g}: {d:.3f} at {v:.3f}" for s, v, d in zip(strengths, x, y, strict=True))
            )
            if line == "-" and operator == "decodability":
                axes.scatter(
                    x[:1], y[:1], s=_MARKS[1] ** 2, facecolor="white", edgecolor=INK, linewidth=EDGE, zorder=4
                )
        axes.margins(0.12, 0.2)
        low, high = axes.get_ylim()
        if high - low < 2 * _LEAST_REACH:
            axes.set_ylim((low + high) / 2 - _LEAST_REACH, (low + high) / 2 + _LEAST_REACH)
        axes.set_xlabel("Linear decodability of race")
        axes.set_ylabel("Race difference in AUROC")
        _key(figure, start=True)
    return show_figure(
        figure, "Figure 4d. Race difference at linear decodability, by strength. " + "\n".join(said)
    )


def panel_e(rows: pd.DataFrame, name: str, attribute: str = "race") -> ShownFigure | ShownText:
    """Every quantity at every strength of the decodability injection; see :func:`panel_f`."""
    return _values(rows, name, attribute, "decodability", "Figure 4e")


def panel_f(
    rows: pd.DataFrame, name: str, attribute: str = "race", operator: str = "entanglement"
) -> ShownFigure | ShownText:
    """Every quantity at every strength of an entanglement injection.

    Parameters
    ----------
    rows, name, attribute
        As for :func:`curve_table`.
    operator : str
        ``entanglement``, or ``whitened entanglement`` for ours.

    Returns
    -------
    ShownFigure
        Values are written, and the colour is the change from no injection, on one scale for all operators.
        A sentence where there is nothing to draw.
    """
    return _values(rows, name, attribute, operator, "Figure 4f")


def _values(
    rows: pd.DataFrame, name: str, attribute: str, operator: str, title: str
) -> ShownFigure | ShownText:
    if why := why_no_curves(rows, name, attribute, "difference"):
        return show_text(why)
    table = curve_table(rows, name, attribute)
    wide = curves_wide(table, operator)
    changes = [curves_wide(table, one).sub(curves_wide(table, one)[0.0], axis=0) for one in GRIDS]
    reach = max(_LEAST_REACH, *(float(np.nanmax(np.abs(one.to_numpy()))) for one in changes))
    change = wide.sub(wide[0.0], axis=0)
    norm = TwoSlopeNorm(0.0, -reach, reach)
    silent = table[(table["operator"] == operator) & table["reason"].str.contains("not run")]
    absent = dict.fromkeys(zip(silent["quantity"], silent["strength"], strict=True), "not run")
    with style_sheet():
        figure, axes = new_axes(0.9 + 0.46 * len(wide), grid="")
        axes.grid(False)
        for i, quantity in enumerate(wide.index):
            for j, strength in enumerate(wide.columns):
                value, moved = float(wide.loc[quantity, strength]), float(change.loc[quantity, strength])
                missing = np.isnan(value)
                face = "white" if missing or np.isnan(moved) else _COLOURS(norm(moved))
                axes.add_patch(
                    Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor=face, edgecolor=GRID, linewidth=1.0)
                )
                axes.text(
                    j,
                    i,
                    absent.get((quantity, strength), "none") if missing else written(value),
                    ha="center",
                    va="center",
                    fontsize=SMALL,
                    color=MUTED if missing else INK,
                )
        axes.set_xlim(-0.5, len(wide.columns) - 0.5)
        axes.set_ylim(len(wide) - 0.5, -0.5)
        axes.set_xticks(range(len(wide.columns)), [f"{s:g}" for s in wide.columns])
        axes.set_yticks(range(len(wide)), [QUANTITY_WORDS[str(one)] for one in wide.index])
        axes.tick_params(length=0, labelsize=SMALL)
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.set_xlabel(_AXES[operator])
    lines = [
        f"{QUANTITY_WORDS[str(quantity)]}: "
        + ", ".join(
            f"{s:g}: {written(float(v)) if not np.isnan(v) else absent.get((quantity, s), 'none')}"
            for s, v in values.items()
        )
        for quantity, values in wide.iterrows()
    ]
    return show_figure(
        figure, f"{title}, {operator}. Colours reach from {-reach:+.3f} to {reach:+.3f}.\n" + "\n".join(lines)
    )


def panel_g(rows: pd.DataFrame, name: str, attribute: str = "race") -> ShownFigure | ShownText:
    """The race difference at the largest strength of each operator, the mean and every finding.

    Returns
    -------
    ShownFigure
        A sentence where there is nothing to draw.
    """
    if why := why_no_curves(rows, name, attribute, "difference"):
        return show_text(why)
    own = rows[
        (rows["encoder"] == name)
        & (rows["attribute"] == attribute)
        & (rows["quantity"] == "difference")
        & (rows["status"] == "ok")
        & rows["strength"].notna()
    ]
    bars: list[tuple[str, str, pd.DataFrame]] = []
    start = own[(own["method"] == "decodability") & (own["strength"] == 0.0)]
    bars.append(("No injection", MUTED, start))
    for operator, (colour, _, _, words) in _LOOKS.items():
        of = own[(own["method"] == operator) & own["strength"].isin(GRIDS[operator])]
        largest = of[of["finding"] == ALL_FINDINGS]["strength"].max()
        label = f"{words}, {largest:g}"
        bars.append((label, colour, of[of["strength"] == largest]))
    said = []
    with style_sheet():
        figure, axes = new_axes(0.9 + 0.72 * len(bars), grid="x")
        for place, (label, colour, table) in enumerate(bars):
            mean = float(table.loc[table["finding"] == ALL_FINDINGS, "value"].iloc[0])
            singles = table[table["finding"] != ALL_FINDINGS]
            axes.barh(place, mean, height=0.6, color=colour, alpha=0.45, zorder=2)
            for number, (marker, value) in enumerate(zip("ovs", singles["value"], strict=False)):
                axes.plot(
                    value,
                    place + 0.16 * (number - 1),
                    marker=marker,
                    markersize=7.5,
                    markerfacecolor="white",
                    markeredgecolor=INK,
                    markeredgewidth=EDGE,
                    linestyle="none",
                    zorder=4,
                    clip_on=False,
                )
            axes.plot([mean, mean], [place - 0.3, place + 0.3], color=colour, linewidth=2.6, zorder=3)
            each = ", ".join(
                f"{str(f).replace('_', ' ')} {v:.3f}"
                for f, v in zip(singles["finding"], singles["value"], strict=True)
            )
            said.append(f"{label}: mean {mean:.3f} ({each})")
        names = [str(one).replace("_", " ") for one in bars[0][2]["finding"] if one != ALL_FINDINGS]
        handles = [
            Line2D(
                [],
                [],
                marker=marker,
                linestyle="none",
                markerfacecolor="white",
                markeredgecolor=INK,
                markeredgewidth=EDGE,
                markersize=7.5,
                label=one,
            )
            for marker, one in zip("ovs", names, strict=False)
        ]
        axes.set_yticks(range(len(bars)), [label for label, _, _ in bars])
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(left=0.0)
        axes.set_xlabel("Race difference in AUROC")
        figure.legend(handles=handles, loc="outside lower center", ncols=3, columnspacing=1.2)
    return show_figure(figure, "Figure 4g. Race difference at the largest strength. " + "\n".join(said))


def panel_h(
    rows: pd.DataFrame, name: str, attribute: str = "race", alpha: float = 0.05
) -> ShownFigure | ShownText:
    """Spearman correlation of every quantity with strength; open where not significant at an FDR of alpha.

    Returns
    -------
    ShownFigure
        A sentence where there is nothing to draw.
    """
    if why := why_no_curves(rows, name, attribute, "difference"):
        return show_text(why)
    trends = trend_table(rows, name, attribute)
    words = list(dict.fromkeys(trends["quantity"]))
    said = []
    with style_sheet():
        figure, axes = new_axes(1.3 + 0.55 * len(words), grid="x")
        axes.axvline(0.0, color=MUTED, linewidth=1.0, zorder=1)
        for number, (operator, (colour, marker, _, label)) in enumerate(_LOOKS.items()):
            own = trends[(trends["operator"] == operator) & trends["rho"].notna()]
            for row in own.to_dict("records"):
                significant = bool(row["p_fdr"] < alpha)
                axes.plot(
                    row["rho"],
                    words.index(row["quantity"]) + 0.24 * (number - 1),
                    marker=marker,
                    markersize=8,
                    markerfacecolor=colour if significant else "white",
                    markeredgecolor=colour,
                    markeredgewidth=EDGE,
                    linestyle="none",
                    zorder=3,
                    clip_on=False,
                )
            said.append(
                f"{label}: "
                + ", ".join(
                    f"{_lower(row['quantity'])} {row['rho']:+.2f}{'' if row['p_fdr'] < alpha else ' (open)'}"
                    for row in own.to_dict("records")
                )
            )
        axes.set_yticks(range(len(words)), words)
        axes.set_ylim(len(words) - 0.5, -0.5)
        axes.set_xlim(-1.05, 1.05)
        axes.set_xticks([-1.0, -0.5, 0.0, 0.5, 1.0])
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("Spearman correlation with strength")
        _key(figure, start=False)
    return show_figure(figure, "Figure 4h. " + "\n".join(said))


def _lower(words: str) -> str:
    """The name of a quantity within a sentence."""
    return words[0].lower() + words[1:]


def _path(table: pd.DataFrame, operator: str) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Decodability, difference and strength where both were run."""
    wide = curves_wide(table, operator).loc[["linear_decodability", "difference"]].dropna(axis=1)
    values = wide.to_numpy(dtype=np.float64)
    return values[0], values[1], [float(one) for one in wide.columns]


def _key(figure: Figure, *, start: bool) -> None:
    handles: list[Line2D] = []
    if start:
        handles.append(
            Line2D(
                [],
                [],
                marker="o",
                linestyle="none",
                markersize=9,
                markerfacecolor="white",
                markeredgecolor=INK,
                markeredgewidth=EDGE,
                label="No injection",
            )
        )
    for colour, marker, line, words in _LOOKS.values():
        handles.append(
            Line2D(
                [],
                [],
                color=colour,
                marker=marker,
                markersize=8,
                linestyle=line if start else "none",
                linewidth=1.8,
                label=words,
            )
        )
    if not start:
        handles.append(
            Line2D(
                [],
                [],
                marker="o",
                linestyle="none",
                markersize=8,
                markerfacecolor="white",
                markeredgecolor=MUTED,
                markeredgewidth=EDGE,
                label="open: not significant",
            )
        )
    figure.legend(handles=handles, loc="outside lower center", ncols=2, columnspacing=1.4)

"""Size and power of every method on simulated cohorts, as the notebook calibration shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from frame.figures.style import INK, MUTED, new_axes, style_sheet
from frame.presentation import ShownFigure, show_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["METHOD_NAMES", "draw_calibrated_sizes", "draw_method_sizes", "draw_power", "method_sizes"]

#: Sizes at a nominal 0.05 that count as held.
HELD = (0.03, 0.07)
SINGLE, REPEATED = "#0a6cb5", "#c4501b"

#: Methods in the order they are shown, with their names on a figure.
METHOD_NAMES = {
    "bootstrap interval above 0": "bootstrap interval\nabove 0",
    "delong": "own variance\n(DeLong)",
    "obuchowski": "own variance\n(Obuchowski)",
    "hanley-mcneil": "Hanley–McNeil\n(the paper)",
    "binormal": "binormal counts",
    "binomial": "binomial counts",
    "pooled": "permuted patients",
    "heterogeneity": "heterogeneity Q",
    "calibrated-balanced": "calibrated,\nbalanced",
    "calibrated": "calibrated",
}


def method_sizes(table: pd.DataFrame) -> pd.DataFrame:
    """Size of every method over cells: smallest, median, largest and mean, and how many cells hold.

    Parameters
    ----------
    table : DataFrame
        Rows of :func:`frame.characteristics.tables.characteristics`, exactly fair cells.

    Returns
    -------
    DataFrame
        One row per method and kind of image (``one image a patient``, ``1-6 images a patient``): ``cells,
        cohorts, smallest, median, largest, mean, held``; ``held`` counts cells whose 99 % interval meets
        [0.03, 0.07].
    """
    import pandas as pd

    rows: list[dict[str, object]] = []
    for method in METHOD_NAMES:
        for repeats in (False, True):
            own = table[(table["method"] == method) & (table["repeats"] == repeats)]
            if own.empty:
                continue
            held = (own["size_hi"] >= HELD[0]) & (own["size_lo"] <= HELD[1])
            rows.append(
                {
                    "method": METHOD_NAMES[method].replace("\n", " "),
                    "images": "1-6 a patient" if repeats else "one a patient",
                    "cells": len(own),
                    "cohorts": int(own["cohorts"].iloc[0]),
                    "smallest": own["size"].min(),
                    "median": own["size"].median(),
                    "largest": own["size"].max(),
                    "mean": own["size"].mean(),
                    "held": int(held.sum()),
                }
            )
    return pd.DataFrame(rows)


def draw_method_sizes(table: pd.DataFrame) -> ShownFigure:
    """How often every method finds a difference in exactly fair cohorts; a mark is a cell.

    Parameters
    ----------
    table : DataFrame
        Exactly fair cells of one measure.

    Returns
    -------
    ShownFigure
    """
    methods = [method for method in METHOD_NAMES if (table["method"] == method).any()]
    with style_sheet():
        figure, axes = new_axes(1.0 + 0.62 * len(methods), grid="x")
        axes.set_xscale("function", functions=(lambda x: np.sqrt(np.maximum(x, 0.0)), np.square))
        _band(axes, vertical=True)
        for row, method in enumerate(methods):
            for repeats, colour, marker, side in (
                (False, SINGLE, "o", -1),
                (True, REPEATED, "^", 1),
            ):
                sizes = np.sort(
                    table.loc[(table["method"] == method) & (table["repeats"] == repeats), "size"].to_numpy()
                )
                # Marks of one kind spread over their half of the row, in order: none hides another.
                height = len(methods) - 1 - row + side * np.linspace(-0.08, -0.36, max(1, len(sizes)))
                axes.plot(
                    sizes,
                    height[: len(sizes)],
                    linestyle="none",
                    marker=marker,
                    markersize=4.5,
                    markerfacecolor="none",
                    markeredgecolor=colour,
                    markeredgewidth=1.0,
                    clip_on=False,
                )
        axes.set_yticks(range(len(methods)), [METHOD_NAMES[m] for m in methods][::-1])
        axes.set_ylim(-0.6, len(methods) - 0.4)
        axes.set_xlim(0.0, 1.0)
        axes.set_xticks([0.0, 0.05, 0.2, 0.5, 1.0], ["0", "0.05", "0.2", "0.5", "1"])
        axes.set_xlabel("Share of fair cohorts called different (nominal 0.05)")
        for marker, colour, label in (
            ("o", SINGLE, "one image a patient"),
            ("^", REPEATED, "1–6 images a patient"),
        ):
            axes.plot([], [], marker, markerfacecolor="none", markeredgecolor=colour, label=label)
        figure.legend(loc="outside upper center", ncols=2, columnspacing=1.2, handletextpad=0.2)
    lines = [
        f"{row['method']}, {row['images']}: {row['smallest']:.3f} to {row['largest']:.3f}, "
        f"mean {row['mean']:.3f}, {row['cells']} cells"
        for row in method_sizes(table).to_dict("records")
    ]
    return show_figure(figure, "\n".join(lines))


def draw_calibrated_sizes(tables: dict[str, pd.DataFrame]) -> ShownFigure:
    """Size of the calibrated method in every cell with its 99 % interval, cells in order of size.

    Parameters
    ----------
    tables : dict of str to DataFrame
        Exactly fair cells of each measure, by the measure's name on the figure.

    Returns
    -------
    ShownFigure
    """
    lines: list[str] = []
    with style_sheet():
        figure, axes = new_axes(4.6, grid="y")
        _band(axes, vertical=False)
        start, middles = 0, []
        for table in tables.values():
            own = table[table["method"] == "calibrated"]
            for large, colour, marker in ((True, SINGLE, "o"), (False, REPEATED, "s")):
                part = own[own["large_groups"] == large].sort_values(["size", "cell"])
                x = start + np.arange(len(part)) if large else start + 76 + np.arange(len(part))
                errors = [part["size"] - part["size_lo"], part["size_hi"] - part["size"]]
                axes.errorbar(
                    x,
                    part["size"],
                    yerr=np.abs(np.asarray(errors)),
                    fmt=marker,
                    markersize=3.0,
                    color=colour,
                    elinewidth=0.7,
                )
            middles.append(start + 50)
            start += 112
        axes.set_xticks(middles, list(tables))
        axes.tick_params(axis="x", length=0, labelcolor=INK)
        axes.set_ylim(0.0, None)
        axes.set_ylabel("Size (99 % interval)")
        for marker, colour, label in (
            ("o", SINGLE, "large groups beside small ones"),
            ("s", REPEATED, "all groups small"),
        ):
            axes.plot([], [], marker, color=colour, label=label)
        figure.legend(loc="outside upper center", ncols=2, columnspacing=1.2, handletextpad=0.2)
    for name, table in tables.items():
        own = table[table["method"] == "calibrated"]
        for large, words in ((True, "large groups beside small ones"), (False, "all groups small")):
            sizes = own.loc[own["large_groups"] == large, "size"]
            span = f"{sizes.min():.3f} to {sizes.max():.3f}, mean {sizes.mean():.3f}"
            lines.append(f"{name}, {words}: {len(sizes)} cells, {span}")
    return show_figure(figure, "\n".join(lines))


def draw_power(table: pd.DataFrame) -> ShownFigure:
    """Power of the range and of the heterogeneity for one planted drop, a row per design.

    Parameters
    ----------
    table : DataFrame
        Cells with a planted drop.

    Returns
    -------
    ShownFigure
    """
    wide = table.pivot_table(
        index=["repeats", "auroc", "drop", "dropped_size"], columns="method", values="size"
    ).reset_index()
    lines: list[str] = []
    with style_sheet():
        figure, axes = new_axes(6.4, grid="x")
        labels: list[str] = []
        for row, cell in enumerate(wide.to_dict("records")):
            y = len(wide) - 1 - row
            range_power, q_power = cell["calibrated"], cell["heterogeneity"]
            axes.plot([range_power, q_power], [y, y], color=MUTED, linewidth=1.0, zorder=1)
            axes.plot(range_power, y, "o", color=SINGLE, markersize=7, label="range" if row == 0 else None)
            axes.plot(
                q_power, y, "D", color=REPEATED, markersize=6, label="heterogeneity Q" if row == 0 else None
            )
            images = "1–6" if cell["repeats"] else "1"
            name = f"{images} img, {cell['auroc']:.2f} − {cell['drop']:.2f}, n = {cell['dropped_size']}"
            labels.append(name)
            lines.append(f"{name}: range {range_power:.3f}, Q {q_power:.3f}")
        axes.set_yticks(range(len(wide)), labels[::-1])
        axes.axvline(0.05, color=MUTED, linewidth=1.0, linestyle="--")
        axes.set_xlim(0.0, 1.0)
        axes.set_xlabel("Share of cohorts called different")
        figure.legend(loc="outside upper center", ncols=2, columnspacing=1.2, handletextpad=0.2)
    return show_figure(figure, "\n".join(lines))


def _band(axes: Axes, *, vertical: bool) -> None:
    """The range of sizes that counts as held, and the nominal level."""
    span, line = (axes.axvspan, axes.axvline) if vertical else (axes.axhspan, axes.axhline)
    span(*HELD, color="#e4ecf3", zorder=0)
    line(0.05, color=MUTED, linewidth=1.0, linestyle="--", zorder=0.5)

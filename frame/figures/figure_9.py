"""Figure 9: the published differences beside their fair-model references, panel by panel.

Each panel is a figure of its own and draws from one tidy table of :mod:`frame.record`. What a panel shows is
also its text form, so that no reader depends on the picture.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from frame.figures.style import (
    EDGE,
    INK,
    MODALITIES,
    MUTED,
    SMALL,
    draw_claims,
    look_of,
    modality_key,
    new_axes,
    style_sheet,
)
from frame.presentation import ShownFigure, show_figure
from frame.verdicts import measure_name

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["panel_a", "panel_b", "panel_c", "panel_d", "panel_e", "panel_f", "panel_g"]

_ORIGINS = {
    "reported": "Printed in\nthe article",
    "derived": "Derived by\narithmetic",
    "reconstructed": "Reconstructed",
}
_KINDS = {"rate": "Rate differences (TPR, FPR)", "auroc": "AUROC differences"}


def panel_a(claims: pd.DataFrame) -> ShownFigure:
    """Each claim's reported difference against its reference, with the line where the two are equal.

    Parameters
    ----------
    claims : pandas.DataFrame
        A row per claim: ``modality, observed, reference, exceeds, reference_larger``, as
        :func:`frame.record.describe_claims` gives them.

    Returns
    -------
    ShownFigure
        Square-root axes, so that small differences, and a difference of zero, have room.
    """
    with style_sheet():
        figure, axes = new_axes(5.6)
        _draw_all(axes, claims, "observed", "reference")
        _square_root(axes.xaxis, [0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5])
        _square_root(axes.yaxis, [0, 0.002, 0.01, 0.02, 0.05, 0.1, 0.15])
        widest, highest = float(claims["observed"].max()), float(claims["reference"].max())
        axes.set_xlim(0, 1.06 * widest)
        axes.set_ylim(0, 1.1 * highest)
        end = min(1.06 * widest, 1.1 * highest)
        axes.plot([0, end], [0, end], color=INK, linewidth=1.1, linestyle=(0, (5, 3)), zorder=2)
        axes.text(
            0.02,
            0.985,
            "above the dashed line:\na fair model shows\nmore than reported",
            transform=axes.transAxes,
            va="top",
            fontsize=SMALL,
            color=MUTED,
        )
        axes.set_xlabel("Reported difference")
        axes.set_ylabel("Fair-model reference")
        modality_key(figure, claims["modality"].tolist())
    larger = _count(claims["reference_larger"])
    return show_figure(
        figure,
        f"Figure 9a. {_exceeding(claims)}. In {larger} the reference is larger than the reported difference.",
    )


def panel_b(claims: pd.DataFrame) -> ShownFigure:
    """The reference in percent of the reported difference, per kind of statistic and modality.

    Parameters
    ----------
    claims : pandas.DataFrame
        A row per claim: ``kind, modality, share, exceeds``. A claim without a share is counted, not drawn.

    Returns
    -------
    ShownFigure
        Every claim as a mark, the median as a bar, on a logarithmic axis.
    """
    lines: list[str] = []
    labels: list[tuple[float, str]] = []
    with style_sheet():
        figure, axes = new_axes(6.4, grid="x")
        axes.set_xscale("log")
        y = 0.0
        for kind, title in _KINDS.items():
            axes.text(
                0.005,
                y,
                title,
                transform=axes.get_yaxis_transform(),
                va="center",
                fontweight="bold",
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
            )
            y -= 0.9
            for modality in MODALITIES:
                part = claims[(claims["kind"] == kind) & (claims["modality"] == modality)]
                if part.empty:
                    continue
                shares = part[part["share"].notna()].sort_values("share", kind="stable")
                offsets = _spread([math.log10(share) for share in shares["share"]])
                for exceeds in (False, True):
                    chosen = (shares["exceeds"] == exceeds).to_numpy(dtype=bool)
                    if not chosen.any():
                        continue
                    heights = [y + offset for offset, own in zip(offsets, chosen, strict=True) if own]
                    draw_claims(axes, shares["share"][chosen].tolist(), heights, modality, exceeds, size=6.5)
                median = float(shares["share"].median())
                axes.plot([median, median], [y - 0.44, y + 0.44], color=INK, linewidth=1.3, zorder=4)
                for end in (y - 0.44, y + 0.36):
                    axes.plot(
                        [median, median],
                        [end, end + 0.08],
                        color=INK,
                        linewidth=5,
                        solid_capstyle="butt",
                        zorder=4,
                    )
                count = f"{_count(part['exceeds'])} of {len(part)} exceed"
                without = len(part) - len(shares)
                note = f"\n{without} without a share" if without else ""
                labels.append((y, f"{look_of(modality).name}\n{count}{note}"))
                lines.append(
                    f"{look_of(modality).name}, {_KINDS[kind]}: {count}; median share {median:.1f} %"
                    + (f"; {without} report a difference of zero and have no share" if without else "")
                )
                y -= 1.08
            y -= 0.15
        axes.axvline(100, color=INK, linewidth=1.1, linestyle=(0, (5, 3)), zorder=2)
        axes.set_ylim(y + 0.65, 0.4)
        axes.set_yticks([at for at, _ in labels], [label for _, label in labels])
        axes.tick_params(axis="y", length=0)
        at = [10, 20, 50, 100, 200, 500, 1000, 4000]
        axes.xaxis.set_major_locator(FixedLocator([float(tick) for tick in at]))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.set_xlim(8, 1.2 * float(claims["share"].max()))
        axes.set_xlabel("Reference in percent of the reported difference")
    return show_figure(figure, "Figure 9b. " + "\n".join(lines))


def panel_c(studies: pd.DataFrame) -> ShownFigure:
    """The number of claims above their reference, of the claims of each study.

    Parameters
    ----------
    studies : pandas.DataFrame
        A row per study, as :func:`frame.record.by_study` gives it: ``label, modality, n_claims, n_exceed``.

    Returns
    -------
    ShownFigure
        Filled part of a bar: claims that exceed; open part: those that do not.
    """
    with style_sheet():
        figure, axes = new_axes(4.6, grid="x")
        for y, row in enumerate(_records(studies)):
            look = look_of(str(row["modality"]))
            axes.barh(
                y, row["n_claims"], height=0.66, facecolor="white", edgecolor=look.colour, linewidth=1.4
            )
            axes.barh(
                y, row["n_exceed"], height=0.66, facecolor=look.colour, edgecolor=look.colour, linewidth=1.4
            )
            axes.text(
                float(row["n_claims"]) + 0.4,
                y,
                f"{row['n_exceed']} of {row['n_claims']}",
                va="center",
                fontsize=SMALL,
            )
        axes.set_yticks(range(len(studies)), studies["label"].tolist())
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(0, 1.2 * float(studies["n_claims"].max()))
        axes.set_xlabel("Claims (filled: exceed their reference)")
    lines = [f"{row['label']}: {row['n_exceed']} of {row['n_claims']} exceed" for row in _records(studies)]
    return show_figure(figure, "Figure 9c. " + "\n".join(lines))


def panel_d(claims: pd.DataFrame) -> ShownFigure:
    """The reference against the number of cases in the smallest subgroup, on logarithmic axes.

    Parameters
    ----------
    claims : pandas.DataFrame
        A row per claim: ``modality, smallest_group, reference, exceeds``.

    Returns
    -------
    ShownFigure
        One mark per claim.
    """
    with style_sheet():
        figure, axes = new_axes(5.4)
        axes.set_xscale("log")
        axes.set_yscale("log")
        _draw_all(axes, claims, "smallest_group", "reference")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_minor_locator(NullLocator())
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axes.xaxis.set_major_locator(FixedLocator([10, 30, 100, 300, 1000, 3000, 10000]))
        axes.yaxis.set_major_locator(FixedLocator([0.003, 0.01, 0.03, 0.1]))
        axes.set_xlabel("Cases in the smallest subgroup")
        axes.set_ylabel("Fair-model reference")
        modality_key(figure, claims["modality"].tolist())
    size, reference = claims["smallest_group"], claims["reference"]
    return show_figure(
        figure,
        f"Figure 9d. {_exceeding(claims)}. Smallest subgroups of {size.min():,} to {size.max():,} cases; "
        f"references from {reference.min():.3f} to {reference.max():.3f}.",
    )


def panel_e(modalities: pd.DataFrame) -> ShownFigure:
    """The median share of a rate difference against the median smallest subgroup, per modality.

    Parameters
    ----------
    modalities : pandas.DataFrame
        As :func:`frame.record.by_modality` gives it: ``modality, kind, share_median, smallest_median``; rows
        on AUROC are left out.

    Returns
    -------
    ShownFigure
        One mark per modality that reports rates, with its two numbers.
    """
    rates = modalities[modalities["kind"] == "rate"].sort_values("smallest_median", kind="stable")
    lines: list[str] = []
    with style_sheet():
        figure, axes = new_axes(4.4)
        axes.set_xscale("log")
        for row in _records(rates):
            look = look_of(str(row["modality"]))
            size, share = float(row["smallest_median"]), float(row["share_median"])
            axes.plot(size, share, marker=look.marker, markersize=12, color=look.colour, zorder=3)
            # The two modalities near 100 cases would write over each other.
            above = row["modality"] != "dermatology"
            right = row["modality"] == "funduscopy"
            axes.annotate(
                f"{look.name}\n{share:.0f} % at {size:,g} cases",
                (size, share),
                xytext=(-4 if right else 0, 11 if above else -11),
                textcoords="offset points",
                ha="left" if right else "center",
                va="bottom" if above else "top",
                fontsize=SMALL,
            )
            lines.append(f"{look.name}: {share:.1f} % at {size:,g} cases")
        axes.set_xlim(15, 6000)
        axes.set_ylim(0, 100)
        axes.xaxis.set_major_locator(FixedLocator([20, 50, 100, 200, 500, 1000, 2000, 5000]))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.set_xlabel("Median smallest subgroup (cases)")
        axes.set_ylabel("Median share (%)")
    return show_figure(figure, "Figure 9e. " + "\n".join(lines))


def panel_f(cohorts: pd.DataFrame) -> ShownFigure:
    """The largest reported difference of each cohort, its reference and the reference's 95 % interval.

    Parameters
    ----------
    cohorts : pandas.DataFrame
        A row per cohort, smallest difference first, as :func:`frame.record.largest_per_cohort` gives it:
        ``dataset, label, modality, measure, smallest_group, observed, reference, reference_lo,
        reference_hi, exceeds``.

    Returns
    -------
    ShownFigure
        A mark for the reported difference, a diamond and a line for the fair model.
    """
    lines: list[str] = []
    labels: list[str] = []
    with style_sheet():
        figure, axes = new_axes(6.8, grid="x")
        for y, row in enumerate(_records(cohorts)):
            low, high, mean = float(row["reference_lo"]), float(row["reference_hi"]), float(row["reference"])
            axes.plot(
                [low, high], [y, y], color=MUTED, linewidth=5, alpha=0.55, solid_capstyle="butt", zorder=2
            )
            axes.plot(mean, y, marker="d", markersize=8, color=INK, linestyle="none", zorder=3)
            draw_claims(
                axes, [float(row["observed"])], [y], str(row["modality"]), bool(row["exceeds"]), size=9
            )
            measure = measure_name(str(row["measure"]))
            dataset = str(row["dataset"]).partition(" (")[0]
            study = str(row["label"]).rpartition(" ")[0] or str(row["label"])
            labels.append(f"{dataset}, {measure}\n{study}, n = {row['smallest_group']:,}")
            lines.append(
                f"{dataset}, {measure}, {row['label']}, smallest subgroup {row['smallest_group']:,}: "
                f"reported {row['observed']:.3f}, reference {mean:.3f} [{low:.3f}, {high:.3f}], "
                f"{'exceeds' if row['exceeds'] else 'does not exceed'}"
            )
        axes.set_yticks(range(len(labels)), labels)
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(0, 1.06 * max(float(cohorts["observed"].max()), float(cohorts["reference_hi"].max())))
        axes.set_xlabel("Difference")
        _key_of_panel_f(figure)
    return show_figure(figure, "Figure 9f. " + "\n".join(lines))


def panel_g(provenance: pd.DataFrame) -> ShownFigure:
    """The number of claims by where their subgroup counts come from.

    Parameters
    ----------
    provenance : pandas.DataFrame
        As :func:`frame.record.provenance_counts` gives it: ``provenance, meaning, n_claims``.

    Returns
    -------
    ShownFigure
        One bar per provenance.
    """
    with style_sheet():
        figure, axes = new_axes(2.6, grid="x")
        counts = [int(count) for count in provenance["n_claims"]]
        places = range(len(counts))[::-1]
        axes.barh(places, counts, height=0.62, facecolor=MUTED)
        for y, count in zip(places, counts, strict=True):
            axes.text(count + 1, y, str(count), va="center")
        axes.set_yticks(list(places), [_ORIGINS[str(name)] for name in provenance["provenance"]])
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(0, 1.12 * max(counts))
        axes.set_xlabel("Claims")
    lines = [f"{row['provenance']} ({row['meaning']}): {row['n_claims']}" for row in _records(provenance)]
    return show_figure(figure, "Figure 9g. " + "\n".join(lines))


# -- shared by the panels ---------------------------------------------------------------------------


def _groups(claims: pd.DataFrame) -> Iterator[tuple[str, bool, pd.DataFrame]]:
    """Claims by modality and verdict, those that exceed last, so that they are not covered."""
    for exceeds in (False, True):
        for modality in MODALITIES:
            part = claims[(claims["modality"] == modality) & (claims["exceeds"] == exceeds)]
            if not part.empty:
                yield modality, exceeds, part


def _draw_all(axes: Axes, claims: pd.DataFrame, x: str, y: str) -> None:
    for modality, exceeds, part in _groups(claims):
        draw_claims(axes, part[x].astype(float).tolist(), part[y].astype(float).tolist(), modality, exceeds)


def _square_root(axis: Axis, ticks: Sequence[float]) -> None:
    axes = axis.axes
    scale = axes.set_xscale if axis is axes.xaxis else axes.set_yscale
    scale("function", functions=(lambda value: np.sqrt(np.maximum(value, 0.0)), np.square))
    axis.set_major_locator(FixedLocator(list(ticks)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _spread(places: Sequence[float]) -> list[float]:
    """Offsets that keep marks of one row apart; ``places`` rise."""
    steps = (0.0, 0.19, -0.19, 0.36, -0.36)
    taken: list[tuple[float, float]] = []
    for place in places:
        free = [
            step for step in steps if all(place - other > 0.055 or step != used for other, used in taken[-8:])
        ]
        taken.append((place, free[0] if free else steps[len(taken) % len(steps)]))
    return [step for _, step in taken]


def _key_of_panel_f(figure: Figure) -> None:
    def mark(marker: str, face: str, edge: str, label: str) -> Line2D:
        return Line2D(
            [],
            [],
            linestyle="none",
            marker=marker,
            markersize=8,
            markerfacecolor=face,
            markeredgecolor=edge,
            markeredgewidth=EDGE,
            label=label,
        )

    figure.legend(
        handles=[
            mark("o", MUTED, MUTED, "reported, exceeds"),
            mark("o", "white", MUTED, "reported, does not"),
            mark("d", INK, INK, "reference"),
            Line2D([], [], color=MUTED, linewidth=5, alpha=0.55, label="its 95 % interval"),
        ],
        loc="outside lower center",
        ncols=2,
    )


def _exceeding(claims: pd.DataFrame) -> str:
    above = _count(claims["exceeds"])
    return (
        f"{len(claims)} claims: {above} exceed their reference (filled), {len(claims) - above} do not (open)"
    )


def _count(flags: pd.Series[Any]) -> int:
    return int(flags.fillna(False).astype(bool).sum())


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]

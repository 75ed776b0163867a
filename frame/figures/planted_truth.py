"""What the whole procedure says of drawn features with a planted truth, as the notebook shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from frame.characteristics.step_two import CELLS, StepTwoCell
from frame.figures.style import INK, MUTED, SMALL, new_axes, style_sheet
from frame.interventions.decision import (
    CONSISTENT,
    MOVES_BOTH,
    MOVES_DECODABILITY,
    MOVES_ENTANGLEMENT,
    UNDETERMINED,
    VERDICTS,
)
from frame.presentation import ShownFigure, show_figure

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "cell_words",
    "draw_step_one",
    "draw_verdicts",
    "operator_counts",
    "step_one_rates",
    "verdict_counts",
]

#: What is planted, in a few words.
_PLANTED: Final = {
    "none": "fair",
    "decodability": "merely decodable",
    "difference": "difference",
    "entanglement": "entangled",
    "full entanglement": "fully entangled",
    "label noise": "label noise",
    "site effect": "site effect",
}
#: Colour and hatching of each verdict.
_LOOKS: Final = {
    CONSISTENT: ("#d9dee3", ""),
    MOVES_ENTANGLEMENT: ("#0a6cb5", ""),
    MOVES_DECODABILITY: ("#e8b33c", ".."),
    MOVES_BOTH: ("#c98fb3", "//"),
    UNDETERMINED: ("#ffffff", "\\\\"),
}
_CALLED, _COVERED = "#0a6cb5", "#c4501b"
#: Counts below this share of a bar are not written into it.
_NARROW: Final = 0.055
_NAMES: Final = {"exceeds": "called different", "covered": "interval covers"}


def cell_words(cell: StepTwoCell) -> str:
    """A design in words: ``difference in Black, 5 groups``."""
    where = f" in {cell.where}" if cell.where else ""
    return f"{_PLANTED[cell.cause]}{where}, {cell.n_groups} groups"


def step_one_rates(rates: pd.DataFrame) -> pd.DataFrame:
    """What step one and its interval show, a row per design and question.

    Parameters
    ----------
    rates : DataFrame
        Of :func:`frame.characteristics.step_two_tables.step_two_rates`.

    Returns
    -------
    DataFrame
        ``design, quantity, count, cohorts, rate, rate_lo, rate_hi, target, met``.
    """
    own = rates[rates["step"] == "one"].copy()
    words = {cell.name: cell_words(cell) for cell in CELLS}
    own["design"] = own["cell"].map(words)
    own["quantity"] = own["quantity"].map(_NAMES)
    columns = ["design", "quantity", "count", "cohorts", "rate", "rate_lo", "rate_hi", "target", "met"]
    return own[columns].reset_index(drop=True)


def draw_step_one(rates: pd.DataFrame) -> ShownFigure:
    """Shares of cohorts called different, and covered by the interval, beside what is asked for.

    Parameters
    ----------
    rates : DataFrame
        Of :func:`frame.characteristics.step_two_tables.step_two_rates`.

    Returns
    -------
    ShownFigure
    """
    table = step_one_rates(rates)
    designs = list(dict.fromkeys(table["design"]))
    with style_sheet():
        figure, axes = new_axes(1.3 + 0.62 * len(designs), grid="x")
        for name, colour, marker, side in (
            ("called different", _CALLED, "o", 0.16),
            ("interval covers", _COVERED, "s", -0.16),
        ):
            for row in table[table["quantity"] == name].to_dict("records"):
                height = len(designs) - 1 - designs.index(row["design"]) + side
                axes.plot([row["rate_lo"], row["rate_hi"]], [height, height], color=colour, linewidth=2.0)
                axes.plot([row["rate"]], [height], marker, color=colour, markersize=7.0, clip_on=False)
                for end in _asked(row["target"]):
                    axes.plot([end, end], [height - 0.15, height + 0.15], color=INK, linewidth=1.6)
            axes.plot([], [], marker, color=colour, markersize=7.0, label=name)
        axes.plot([], [], "|", color=INK, markersize=10.0, markeredgewidth=1.6, label="asked for")
        axes.set_yticks(range(len(designs)), [design.replace(", ", ",\n") for design in designs][::-1])
        axes.set_ylim(-0.6, len(designs) - 0.4)
        axes.set_xlim(0.0, 1.0)
        axes.set_xlabel("Share of cohorts, with 99 % interval")
        figure.legend(loc="outside upper center", ncols=3, columnspacing=1.2, handletextpad=0.3)
    lines = [
        f"{row['design']}, {row['quantity']}: {row['count']} of {row['cohorts']}, {row['rate']:.3f} "
        f"({row['rate_lo']:.3f} to {row['rate_hi']:.3f})"
        + (f"; asked: {row['target']}" if row["target"] else "")
        for row in table.to_dict("records")
    ]
    return show_figure(figure, "\n".join(lines))


def _asked(target: str) -> tuple[float, ...]:
    """Where the mark of what is asked for stands; ``3 to 19 of 200`` has two ends."""
    if not target:
        return ()
    if target.startswith("at least "):
        return (float(target.removeprefix("at least ")),)
    ends, _, cohorts = target.partition(" of ")
    return tuple(int(end) / int(cohorts) for end in ends.split(" to "))


def verdict_counts(rates: pd.DataFrame) -> pd.DataFrame:
    """Verdicts by design: counts and exact intervals.

    Parameters
    ----------
    rates : DataFrame
        Of :func:`frame.characteristics.step_two_tables.step_two_rates`.

    Returns
    -------
    DataFrame
        A row per design and verdict: ``design, verdict, count, cohorts, rate, rate_lo, rate_hi``; designs as
        they are run, verdicts in the order of :data:`frame.interventions.decision.VERDICTS`.
    """
    return _two(rates, "verdict: ", "verdict")


def operator_counts(rates: pd.DataFrame) -> pd.DataFrame:
    """How often each operator moved the difference, of the cohorts in which step two was run.

    Parameters
    ----------
    rates : DataFrame
        Of :func:`frame.characteristics.step_two_tables.step_two_rates`.

    Returns
    -------
    DataFrame
        A row per design and quantity: ``design, quantity, count, cohorts, rate, rate_lo, rate_hi``.
    """
    return _two(rates[~rates["quantity"].isin(["exceeds"])], "", "quantity")


def _two(rates: pd.DataFrame, prefix: str, name: str) -> pd.DataFrame:
    own = rates[
        (rates["step"] == "two") & rates["quantity"].str.startswith(prefix or ("precond", "rises", "falls"))
    ]
    words = {cell.name: cell_words(cell) for cell in CELLS}
    own = own.assign(design=own["cell"].map(words), **{name: own["quantity"].str.removeprefix(prefix)})
    return own[["design", name, "count", "cohorts", "rate", "rate_lo", "rate_hi"]].reset_index(drop=True)


def draw_verdicts(rates: pd.DataFrame) -> ShownFigure:
    """Verdicts by design as bars of counts.

    Parameters
    ----------
    rates : DataFrame
        Of :func:`frame.characteristics.step_two_tables.step_two_rates`.

    Returns
    -------
    ShownFigure
    """
    table = verdict_counts(rates)
    designs = list(dict.fromkeys(table["design"]))
    with style_sheet():
        figure, axes = new_axes(2.4 + 0.58 * len(designs), grid="x")
        for place, design in enumerate(reversed(designs)):
            left = 0.0
            for row in table[table["design"] == design].to_dict("records"):
                colour, hatch = _LOOKS[row["verdict"]]
                axes.barh(
                    place,
                    row["rate"],
                    left=left,
                    height=0.68,
                    color=colour,
                    edgecolor=MUTED,
                    linewidth=0.8,
                    hatch=hatch,
                )
                if row["rate"] >= _NARROW:
                    written = axes.text(
                        left + row["rate"] / 2,
                        place,
                        str(row["count"]),
                        ha="center",
                        va="center",
                        fontsize=SMALL,
                    )
                    written.set_color("white" if row["verdict"] == MOVES_ENTANGLEMENT else INK)
                    if hatch:
                        written.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.0})
                left += row["rate"]
        for verdict in VERDICTS:
            colour, hatch = _LOOKS[verdict]
            axes.barh([np.nan], [np.nan], color=colour, edgecolor=MUTED, hatch=hatch, label=verdict)
        axes.set_yticks(range(len(designs)), [design.replace(", ", ",\n") for design in designs][::-1])
        axes.set_ylim(-0.6, len(designs) - 0.4)
        axes.set_xlim(0.0, 1.0)
        axes.set_xlabel("Share of cohorts")
        figure.legend(loc="outside upper left", ncols=1)
    lines = [
        f"{design}: "
        + ", ".join(
            f"{row['verdict']} {row['count']}"
            for row in table[(table["design"] == design) & (table["count"] > 0)].to_dict("records")
        )
        + f" (of {table.loc[table['design'] == design, 'cohorts'].iloc[0]})"
        for design in designs
    ]
    return show_figure(figure, "\n".join(lines))

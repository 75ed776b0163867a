"""Images or patients as the units: intervals, the reference and false alarms on simulated fair cohorts.

Every cohort is simulated and exactly fair, so that every call is a false alarm. Patients have one to six
images that resemble each other. Counting images takes each of them for a patient of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import FixedLocator
from numpy.typing import NDArray

from frame.characteristics.worlds import Cohort, World, simulated_cohort
from frame.errors import InputError
from frame.figures.style import EDGE, INK, MUTED, SMALL, new_axes, style_sheet
from frame.presentation import ShownFigure, show_figure, written

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "UNITS",
    "WAYS",
    "compare_units",
    "draw_fair_differences",
    "draw_intervals",
    "false_alarms",
    "repeat_fair_cohorts",
]

#: Unit -> colour and marker of its intervals.
UNITS = {"image": ("#c98600", "s"), "patient": ("#0a6cb5", "o")}
#: Ways to call a difference in :func:`false_alarms`, each with the column of :func:`repeat_fair_cohorts`.
WAYS = {
    "bootstrap interval of the difference above 0, images": "above_zero_image",
    "bootstrap interval of the difference above 0, patients": "above_zero_patient",
    "Hanley-McNeil reference, images (paper)": "p_hanley_mcneil",
    "calibrated reference, images": "p_image",
    "calibrated reference, patients": "p_patient",
}
# Standard normal quantile of a two-sided 99 % interval.
_Z99 = 2.5758293035489004


def compare_units(cohort: Cohort, *, resamples: int, seed: int) -> pd.DataFrame:
    """Bootstrap intervals of every subgroup's AUROC with images and with patients as the units.

    Parameters
    ----------
    cohort : Cohort
        Simulated images.
    resamples : int
        Bootstrap resamples, at least 20.
    seed : int
        Of the bootstrap.

    Returns
    -------
    pandas.DataFrame
        A row per subgroup: ``group, n_images, n_patients, n_positive, auroc``; ``lo_<unit>, hi_<unit>`` for
        the units ``image`` and ``patient``; ``width_ratio``, the second interval's width over the first's.
    """
    import pandas as pd

    from frame.inference.resampling import bootstrap

    tables = {}
    for unit, patients in (("image", None), ("patient", cohort.patients)):
        result = bootstrap(
            cohort.scores,
            cohort.labels,
            cohort.groups,
            patients,
            measures="auroc",
            resamples=resamples,
            seed=seed,
        )
        tables[unit] = result.to_frame().query("attribute != 'overall'").reset_index(drop=True)
    by_patient = tables["patient"]
    table = by_patient[["group", "n_images", "n_patients", "n_positive"]].copy()
    table["auroc"] = by_patient["value"]
    for unit, found in tables.items():
        table[f"lo_{unit}"], table[f"hi_{unit}"] = found["lo"], found["hi"]
    widths = {unit: table[f"hi_{unit}"] - table[f"lo_{unit}"] for unit in UNITS}
    table["width_ratio"] = widths["patient"] / widths["image"]
    return pd.DataFrame(table)


def repeat_fair_cohorts(world: World, *, cohorts: int, resamples: int, seed: int) -> pd.DataFrame:
    """Simulate fair cohorts and read the difference of each in several ways.

    Parameters
    ----------
    world : World
        An exactly fair one, without a planted drop.
    cohorts : int
        How many, at least 1.
    resamples : int
        Bootstrap resamples of each.
    seed : int
        Cohort k comes from the generator ``default_rng([seed, k])``.

    Returns
    -------
    pandas.DataFrame
        A row per cohort: ``observed``, the max-min difference in AUROC; ``reference_<unit>, p_<unit>``, mean
        and exceedance of the calibrated reference with images and with patients as the units;
        ``reference_hanley_mcneil, p_hanley_mcneil``; ``lo_<unit>, hi_<unit>``, bootstrap interval of the
        difference, and ``above_zero_<unit>``, whether it lies above 0.

    Raises
    ------
    frame.InputError
        If the world has a planted drop.
    """
    import pandas as pd

    if world.drop:
        raise InputError(f"The world has a planted drop of {world.drop:g}; a fair one has 0.")
    rows = [
        _one_cohort(simulated_cohort(world, np.random.default_rng([seed, k])), resamples, seed)
        for k in range(cohorts)
    ]
    return pd.DataFrame(rows)


def _one_cohort(cohort: Cohort, resamples: int, seed: int) -> dict[str, Any]:
    from frame.inference.replicates import replicate_values
    from frame.measures.values import measure_value
    from frame.reference import fair_reference
    from frame.reference.calibrated import calibrated_reference
    from frame.reference.placement import placements

    n_groups = int(cohort.groups.max()) + 1
    members = [np.flatnonzero(cohort.groups == group) for group in range(n_groups)]
    estimable = [group for group, own in enumerate(members) if 0 < cohort.labels[own].sum() < len(own)]
    row: dict[str, Any] = {}
    images = np.arange(len(cohort.scores), dtype=np.int64)
    for unit, patients in (("image", images), ("patient", cohort.patients)):
        placed = [
            placements(cohort.scores[own], cohort.labels[own], patients[own])
            for own in (members[group] for group in estimable)
        ]
        values = np.asarray([group.auroc for group in placed])
        observed = float(values.max() - values.min())
        row["observed"] = observed
        law = calibrated_reference(placed, [str(group) for group in estimable]).law
        row[f"reference_{unit}"], row[f"p_{unit}"] = law.mean, law.exceedance(observed)
        replicates = replicate_values(
            cohort.scores,
            cohort.labels,
            patients,
            int(patients.max()) + 1,
            cohort.groups,
            n_groups,
            ("auroc",),
            resamples=resamples,
            seed=seed,
        )[0, [1 + group for group in estimable]]
        differences = replicates.max(axis=0) - replicates.min(axis=0)
        lo, hi = np.nanpercentile(differences, [2.5, 97.5])
        row |= {f"lo_{unit}": float(lo), f"hi_{unit}": float(hi), f"above_zero_{unit}": bool(lo > 0.0)}
    counts = ([group.n_positive for group in placed], [group.n_negative for group in placed])
    overall = measure_value("auroc", cohort.scores, cohort.labels)
    paper = fair_reference(overall, *counts, "auroc")
    row |= {"reference_hanley_mcneil": paper.mean, "p_hanley_mcneil": paper.exceedance(observed)}
    return row


@dataclass(frozen=True)
class _Share:
    """A share of cohorts with its 99 % Wilson interval."""

    value: float
    lo: float
    hi: float


def _share(called: NDArray[np.bool_]) -> _Share:
    n, share = len(called), float(called.mean())
    middle = (share + _Z99**2 / (2 * n)) / (1 + _Z99**2 / n)
    half = _Z99 * math.sqrt(share * (1 - share) / n + _Z99**2 / (4 * n * n)) / (1 + _Z99**2 / n)
    return _Share(share, max(0.0, middle - half), min(1.0, middle + half))


def false_alarms(repeated: pd.DataFrame, *, alpha: float) -> pd.DataFrame:
    """How often each way to read a difference calls an exactly fair cohort.

    Parameters
    ----------
    repeated : pandas.DataFrame
        The result of :func:`repeat_fair_cohorts`.
    alpha : float
        A reference calls where its exceedance is below this.

    Returns
    -------
    pandas.DataFrame
        A row per entry of :data:`WAYS`: ``way``; ``share`` of the cohorts that are called, with its 99 %
        Wilson interval ``lo, hi``; ``n_cohorts``.
    """
    import pandas as pd

    rows = []
    for way, column in WAYS.items():
        found = repeated[column].to_numpy()
        called = found if found.dtype == np.bool_ else found < alpha
        share = _share(np.asarray(called, dtype=np.bool_))
        rows.append(
            {"way": way, "share": share.value, "lo": share.lo, "hi": share.hi, "n_cohorts": len(called)}
        )
    return pd.DataFrame(rows)


def draw_intervals(table: pd.DataFrame, *, true_value: float) -> ShownFigure:
    """The intervals of every subgroup, with images and with patients as the units.

    Parameters
    ----------
    table : pandas.DataFrame
        The result of :func:`compare_units`.
    true_value : float
        AUROC that every subgroup has in truth, drawn as a line.

    Returns
    -------
    ShownFigure
        Two intervals a subgroup.
    """
    rows = table.to_dict("records")
    with style_sheet():
        figure, axes = new_axes(1.6 + 0.62 * len(rows), grid="x")
        axes.axvline(true_value, color=INK, linewidth=1.1, linestyle=(0, (5, 3)))
        for unit, offset in (("image", -0.16), ("patient", 0.16)):
            colour, marker = UNITS[unit]
            for i, row in enumerate(rows):
                axes.plot(
                    [row[f"lo_{unit}"], row[f"hi_{unit}"]], [i + offset] * 2, color=colour, linewidth=2.4
                )
            axes.plot(
                table["auroc"].tolist(),
                [i + offset for i in range(len(rows))],
                linestyle="none",
                marker=marker,
                markersize=6.5,
                markerfacecolor="white",
                markeredgecolor=colour,
                markeredgewidth=EDGE,
                label=f"{unit}s as the units",
            )
        axes.yaxis.set_major_locator(FixedLocator(range(len(rows))))
        axes.set_yticklabels(
            [f"{row['n_images']:,} images\n{row['n_patients']:,} patients" for row in rows], fontsize=SMALL
        )
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel("AUROC of the subgroup")
        figure.legend(loc="outside lower center", ncols=2)
    lines = [
        f"{row['n_images']:,} images of {row['n_patients']:,} patients: {written(row['auroc'])}, images "
        f"{_interval(row, 'image')}, patients {_interval(row, 'patient')}"
        for row in rows
    ]
    return show_figure(figure, "AUROC of each subgroup with both intervals\n" + "\n".join(lines))


def draw_fair_differences(repeated: pd.DataFrame, *, shown: int) -> ShownFigure:
    """Bootstrap intervals of the max-min difference of fair cohorts, and what a fair model shows.

    Parameters
    ----------
    repeated : pandas.DataFrame
        The result of :func:`repeat_fair_cohorts`.
    shown : int
        Draw the first so many cohorts, sorted by their observed difference.

    Returns
    -------
    ShownFigure
        Patient-bootstrap intervals, observed differences, the true difference of 0 and the mean of the
        calibrated reference.
    """
    first = repeated.head(shown).sort_values("observed", kind="stable")
    colour, _ = UNITS["patient"]
    reference = float(first["reference_patient"].mean())
    with style_sheet():
        figure, axes = new_axes(4.6, grid="y")
        for i, row in enumerate(first.to_dict("records")):
            axes.plot([i, i], [row["lo_patient"], row["hi_patient"]], color=colour, linewidth=2, alpha=0.75)
        axes.plot(
            range(len(first)),
            first["observed"].tolist(),
            linestyle="none",
            marker="o",
            markersize=5.5,
            markerfacecolor="white",
            markeredgecolor=INK,
            markeredgewidth=EDGE,
            zorder=3,
            label="observed difference",
        )
        axes.axhline(0.0, color=INK, linewidth=1.6, label="true difference: 0")
        axes.axhline(
            reference, color="#8c1c13", linewidth=1.8, linestyle=(0, (5, 3)), label="mean of the reference"
        )
        axes.plot([], [], color=colour, linewidth=2, label="bootstrap interval")
        axes.set_ylim(-0.02, 1.05 * float(first["hi_patient"].max()))
        axes.set_xlim(-1, len(first))
        axes.xaxis.set_major_locator(FixedLocator([]))
        axes.set_xlabel(f"{len(first)} exactly fair cohorts, sorted")
        axes.set_ylabel("Difference in AUROC")
        axes.yaxis.label.set_color(INK)
        axes.tick_params(axis="y", colors=MUTED, labelcolor=INK)
        figure.legend(loc="outside lower center", ncols=2)
    lo = float(first["lo_patient"].min())
    text = (
        f"{len(first)} fair cohorts: observed differences from {written(float(first['observed'].min()))} to "
        f"{written(float(first['observed'].max()))}; lowest end of a bootstrap interval "
        f"{written(lo)}; "
        f"mean of the reference {written(reference)}"
    )
    return show_figure(figure, text)


def _interval(row: dict[Any, Any], unit: str) -> str:
    return f"{written(row[f'lo_{unit}'])} to {written(row[f'hi_{unit}'])}"

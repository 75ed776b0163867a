"""What the law of a subgroup AUROC does to the reference: Hanley and McNeil against binormal scores.

The paper draws a subgroup's AUROC from a normal law with the standard error of Hanley and McNeil and clips it
at 0 and 1. Beside it stand Beta laws with the exact variance of binormal scores, at three ratios kappa of the
positives' to the negatives' standard deviation. Curves are computed from these laws; only the check against
ranked scores simulates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from frame.figures.style import INK, MUTED, SMALL, new_axes, style_sheet
from frame.presentation import ShownFigure, show_figure, written
from frame.reference import FairReference, fair_reference
from frame.reference.variances import binormal_variance, hanley_mcneil_variance

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "KAPPAS",
    "compare_models",
    "compare_spread",
    "draw_ratios",
    "draw_sizes",
    "draw_tails",
    "ranked_differences",
    "tail_table",
]

#: Ratios of the positives' standard deviation to the negatives' one.
KAPPAS = (1.0, 1.25, 1.5)
# In words, a tail is given at every fifth of its differences.
_EVERY = 5
# Colour and line of each law, and the marker of its simulated check.
_LOOKS = {
    1.0: ("#0a6cb5", "-", "o"),
    1.25: ("#c98600", (0, (6, 2)), "s"),
    1.5: ("#8c1c13", (0, (2, 1.5)), "^"),
}


def compare_models(
    values: Sequence[float],
    n_positive: Sequence[int],
    negatives_per_positive: Sequence[int],
    *,
    n_groups: int,
    alpha: float,
) -> pd.DataFrame:
    """Compare the paper's law with the binormal ones at equal subgroups.

    Parameters
    ----------
    values : sequence of float
        Common true AUROC.
    n_positive : sequence of int
        Positives of each subgroup.
    negatives_per_positive : sequence of int
        Negatives of each subgroup over its positives.
    n_groups : int
        Number of subgroups, at least 2.
    alpha : float
        Level of the test whose size is given.

    Returns
    -------
    pandas.DataFrame
        A row per combination and kappa: ``value, n_positive, n_negative, n_groups, kappa``;
        ``mean_paper, mean``, the reference under the paper's law and under binormal scores;
        ``mean_ratio``, the first over the second; ``size``, how often a fair model with binormal scores
        exceeds the critical value of the paper's law.
    """
    import pandas as pd

    rows = []
    for value in values:
        for positives in n_positive:
            for ratio in negatives_per_positive:
                counts = ([positives] * n_groups, [positives * ratio] * n_groups)
                paper = fair_reference(value, *counts, "auroc")
                critical = paper.quantile(1.0 - alpha)
                for kappa in KAPPAS:
                    law = _binormal(value, counts, kappa)
                    rows.append(
                        {
                            "value": value,
                            "n_positive": positives,
                            "n_negative": positives * ratio,
                            "n_groups": n_groups,
                            "kappa": kappa,
                            "mean_paper": paper.mean,
                            "mean": law.mean,
                            "mean_ratio": paper.mean / law.mean,
                            "size": law.exceedance(critical),
                        }
                    )
    return pd.DataFrame(rows)


def compare_spread(
    values: Sequence[float],
    n_positive: int,
    n_negative: int,
    *,
    n_groups: int,
    kappa: float,
    alpha: float,
) -> pd.DataFrame:
    """Tell apart what the standard error and what the clipping does to the paper's law.

    Parameters
    ----------
    values : sequence of float
        Common true AUROC.
    n_positive, n_negative, n_groups : int
        Cases of each subgroup and the number of subgroups.
    kappa : float
        Of the binormal scores.
    alpha : float
        The upper quantile is the one at ``1 - alpha``.

    Returns
    -------
    pandas.DataFrame
        A row per value: ``value``; ``beyond``, the probability of the paper's normal law above 1 before it is
        clipped; and the paper's over the binormal ``error_ratio`` (standard error of one subgroup's AUROC),
        ``mean_ratio`` (the reference) and ``upper_ratio`` (upper quantile of the difference).
    """
    import pandas as pd

    counts = ([n_positive] * n_groups, [n_negative] * n_groups)
    rows = []
    for value in values:
        error = float(np.sqrt(hanley_mcneil_variance(value, n_positive, n_negative)))
        other = float(np.sqrt(binormal_variance(value, n_positive, n_negative, kappa)))
        paper, law = fair_reference(value, *counts, "auroc"), _binormal(value, counts, kappa)
        rows.append(
            {
                "value": value,
                "beyond": float(ndtr((value - 1.0) / error)),
                "error_ratio": error / other,
                "mean_ratio": paper.mean / law.mean,
                "upper_ratio": paper.quantile(1.0 - alpha) / law.quantile(1.0 - alpha),
            }
        )
    return pd.DataFrame(rows)


def ranked_differences(
    value: float, n_positive: int, n_negative: int, *, n_groups: int, kappa: float, cohorts: int, seed: int
) -> NDArray[np.float64]:
    """Max-min AUROC differences of simulated fair cohorts with ranked normal scores.

    Parameters
    ----------
    value : float
        True AUROC of every subgroup, strictly between 0 and 1.
    n_positive, n_negative : int
        Cases of each subgroup.
    n_groups : int
        Number of subgroups.
    kappa : float
        Standard deviation of the positives' scores; that of the negatives' is 1.
    cohorts : int
        Number of simulated cohorts.
    seed : int
        Of ``numpy.random.default_rng``.

    Returns
    -------
    ndarray of float64, shape (cohorts,)
        Largest minus smallest AUROC.
    """
    generator = np.random.default_rng(seed)
    shift = float(np.sqrt(1.0 + kappa * kappa) * ndtri(value))
    found = np.empty((n_groups, cohorts))
    for group in range(n_groups):
        positives = generator.normal(shift, kappa, (cohorts, n_positive, 1))
        negatives = generator.normal(0.0, 1.0, (cohorts, 1, n_negative))
        found[group] = (positives > negatives).mean(axis=(1, 2))
    return np.asarray(found.max(axis=0) - found.min(axis=0), dtype=np.float64)


def tail_table(
    value: float,
    n_positive: int,
    n_negative: int,
    differences: Sequence[float],
    *,
    n_groups: int,
    cohorts: int,
    seed: int,
) -> pd.DataFrame:
    """How often each law reaches a difference, and how often ranked scores do.

    Parameters
    ----------
    value, n_positive, n_negative, n_groups, cohorts, seed
        As in :func:`ranked_differences`.
    differences : sequence of float
        Where the tail is read.

    Returns
    -------
    pandas.DataFrame
        A row per difference: ``difference, paper``, then for each kappa ``beta_<kappa>`` (computed) and
        ``ranked_<kappa>`` (simulated).
    """
    import pandas as pd

    counts = ([n_positive] * n_groups, [n_negative] * n_groups)
    table = {"difference": list(differences)}
    paper = fair_reference(value, *counts, "auroc")
    table["paper"] = [paper.exceedance(d) for d in differences]
    for kappa in KAPPAS:
        law = _binormal(value, counts, kappa)
        table[f"beta_{kappa:g}"] = [law.exceedance(d) for d in differences]
        ranked = ranked_differences(
            value, n_positive, n_negative, n_groups=n_groups, kappa=kappa, cohorts=cohorts, seed=seed
        )
        table[f"ranked_{kappa:g}"] = [float(np.mean(ranked >= d - 1e-9)) for d in differences]
    return pd.DataFrame(table)


def draw_tails(table: pd.DataFrame, *, alpha: float) -> ShownFigure:
    """The tails of several laws and of ranked scores on a logarithmic axis.

    Parameters
    ----------
    table : pandas.DataFrame
        The result of :func:`tail_table`.
    alpha : float
        A level, drawn as a horizontal line.

    Returns
    -------
    ShownFigure
        Lines for the laws, marks for ranked scores.
    """
    with style_sheet():
        figure, axes = new_axes(5.4)
        at = table["difference"].tolist()
        axes.plot(at, table["paper"].tolist(), color=INK, linewidth=2.6, label="paper: clipped normal")
        for kappa, (colour, line, _) in _LOOKS.items():
            computed = table[f"beta_{kappa:g}"].tolist()
            axes.plot(at, computed, color=colour, linestyle=line, linewidth=2, label=f"Beta, kappa {kappa:g}")
        for kappa, (colour, _, marker) in _LOOKS.items():
            axes.plot(
                at,
                table[f"ranked_{kappa:g}"].tolist(),
                linestyle="none",
                marker=marker,
                markersize=6,
                markerfacecolor="white",
                markeredgecolor=colour,
                markeredgewidth=1.3,
                label=f"scores, kappa {kappa:g}",
            )
        axes.axhline(alpha, color=MUTED, linewidth=1)
        axes.set_yscale("log")
        axes.set_ylim(0.002, 1.1)
        axes.yaxis.set_major_locator(FixedLocator([0.005, 0.01, 0.05, 0.1, 0.5, 1.0]))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:g}"))
        axes.set_xlim(0, at[-1])
        axes.set_xlabel("Difference in AUROC")
        axes.set_ylabel("Share of fair models at or above it")
        figure.legend(loc="outside lower center", ncols=2)
    lines = [
        f"difference {row['difference']:.2f}: paper {written(row['paper'])}, "
        + ", ".join(
            f"kappa {kappa:g} {written(row[f'beta_{kappa:g}'])} (scores {written(row[f'ranked_{kappa:g}'])})"
            for kappa in KAPPAS
        )
        for row in table.iloc[::_EVERY].to_dict("records")
    ]
    return show_figure(figure, "Share of fair models at or above a difference\n" + "\n".join(lines))


def draw_sizes(table: pd.DataFrame, *, alpha: float) -> ShownFigure:
    """How often the paper's test calls a fair model, against the positives of each subgroup.

    Parameters
    ----------
    table : pandas.DataFrame
        The result of :func:`compare_models` for one value and one ratio of negatives to positives.
    alpha : float
        The intended level, drawn as a line.

    Returns
    -------
    ShownFigure
        One line per kappa.
    """
    with style_sheet():
        figure, axes = new_axes(4.4)
        _curves(axes, table, "n_positive", "size")
        axes.axhline(alpha, color=INK, linewidth=1.1, linestyle=(0, (5, 3)))
        axes.annotate(
            f"intended: {alpha:g}",
            (1.0, alpha),
            xycoords=("axes fraction", "data"),
            xytext=(-2, 4),
            textcoords="offset points",
            ha="right",
            fontsize=SMALL,
            color=MUTED,
        )
        axes.set_xscale("log")
        _plain_ticks(axes, sorted(set(table["n_positive"].tolist())))
        axes.set_ylim(0, 1.25 * max(alpha, float(table["size"].max())))
        axes.set_xlabel("Positives in each subgroup")
        axes.set_ylabel("Share of fair models called")
        axes.legend(loc="best")
    return show_figure(figure, "Share of fair models called\n" + _lines(table, "n_positive", "size"))


def draw_ratios(table: pd.DataFrame, along: str, label: str, *, logarithmic: bool = False) -> ShownFigure:
    """The paper's reference over the one of binormal scores, along one column of :func:`compare_models`.

    Parameters
    ----------
    table : pandas.DataFrame
        The result of :func:`compare_models`, with one row per kappa and value of ``along``.
    along : str
        Column of the horizontal axis.
    label : str
        Name of that axis.
    logarithmic : bool
        Whether it is logarithmic.

    Returns
    -------
    ShownFigure
        One line per kappa; 1 where the two agree.
    """
    with style_sheet():
        figure, axes = new_axes(4.4)
        _curves(axes, table, along, "mean_ratio")
        axes.axhline(1.0, color=INK, linewidth=1.1, linestyle=(0, (5, 3)))
        if logarithmic:
            axes.set_xscale("log")
            _plain_ticks(axes, sorted(set(table[along].tolist())))
        axes.set_xlabel(label)
        axes.set_ylabel("Paper's reference / binormal")
        axes.legend(loc="best")
    return show_figure(
        figure, "The paper's reference over the binormal one\n" + _lines(table, along, "mean_ratio")
    )


def _binormal(value: float, counts: tuple[list[int], list[int]], kappa: float) -> FairReference:
    return fair_reference(value, *counts, "auroc", method="binormal", kappa=kappa)


def _curves(axes: Axes, table: pd.DataFrame, along: str, column: str) -> None:
    for kappa, (colour, line, marker) in _LOOKS.items():
        own = table[table["kappa"] == kappa].sort_values(along)
        axes.plot(
            own[along].tolist(),
            own[column].tolist(),
            color=colour,
            linestyle=line,
            linewidth=2,
            marker=marker,
            markersize=6,
            label=f"kappa {kappa:g}",
        )


def _plain_ticks(axes: Axes, at: Sequence[float]) -> None:
    axes.xaxis.set_major_locator(FixedLocator([float(tick) for tick in at]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))


def _lines(table: pd.DataFrame, along: str, column: str) -> str:
    found: dict[float, Mapping[float, float]] = {}
    for kappa in KAPPAS:
        own = table[table["kappa"] == kappa]
        found[kappa] = dict(zip(own[along].tolist(), own[column].tolist(), strict=True))
    places = sorted(found[KAPPAS[0]])
    return "\n".join(
        f"{along} {place:g}: " + ", ".join(f"kappa {kappa:g} {found[kappa][place]:.3f}" for kappa in KAPPAS)
        for place in places
    )

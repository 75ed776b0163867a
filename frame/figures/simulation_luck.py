"""How much of a simulated audit is luck: the verdicts of 2,000 draws, computed and repeated.

Under the paper's protocol a claim's exceedance is ``(1 + H) / (B + 1)``, where the number of draws that reach
the reported difference, H, is binomial with the exact exceedance as its probability. So the chance that a
simulation calls a claim can be computed, and a few real repetitions show that the computation holds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import MaxNLocator
from scipy.special import bdtr

from frame.figures.style import new_axes, style_sheet
from frame.inference.multiplicity import benjamini_hochberg, largest_rejected
from frame.presentation import ShownFigure, show_figure
from frame.reference import fair_reference

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["call_probabilities", "compare_totals", "draw_hits", "repeat_simulation"]

CALLED, REPEATED = "#0a6cb5", "#c4501b"


def call_probabilities(audited: pd.DataFrame, *, draws: int, alpha: float) -> pd.DataFrame:
    """How probably a simulation calls each claim, the other claims standing at their exact values.

    Parameters
    ----------
    audited : pandas.DataFrame
        The result of :func:`frame.audit_claims` with ``protocol="exact"``.
    draws : int
        Draws of the simulation, at least 1.
    alpha : float
        False discovery rate.

    Returns
    -------
    pandas.DataFrame
        A row per estimable claim: ``claim_id, measure, p, exceeds``; ``bound``, below which its exceedance
        must lie to be called; ``most_hits``, the most draws that may reach the reported difference (-1 when
        none may); ``called``, the probability of a call; ``flips``, that of another verdict than the exact
        one.
    """
    rows = audited.loc[audited["status"] == "ok", ["claim_id", "measure", "p", "exceeds"]].reset_index(
        drop=True
    )
    bounds = np.full(len(rows), np.nan)
    for measure in rows["measure"].unique():
        own = (rows["measure"] == measure).to_numpy()
        bounds[own] = largest_rejected(rows.loc[own, "p"].to_numpy(dtype=np.float64), alpha)
    # (1 + H) / (B + 1) < bound; a value that equals the bound is not called.
    most = np.ceil(bounds * (draws + 1) - 1.0 - 1e-9).astype(np.int64) - 1
    most = np.minimum(most, draws)
    p = rows["p"].to_numpy(dtype=np.float64)
    called = np.where(most < 0, 0.0, bdtr(np.maximum(most, 0).astype(np.float64), draws, p))
    exceeds = rows["exceeds"].to_numpy(dtype=bool)
    return rows.assign(
        bound=bounds, most_hits=most, called=called, flips=np.where(exceeds, 1.0 - called, called)
    )


def repeat_simulation(
    audited: pd.DataFrame, claims: pd.DataFrame, *, seeds: int, draws: int, alpha: float
) -> pd.DataFrame:
    """Repeat the paper's simulated audit with other seeds.

    Parameters
    ----------
    audited : pandas.DataFrame
        The result of :func:`frame.audit_claims`: measures, common values and reported differences.
    claims : pandas.DataFrame
        The claims it was computed from.
    seeds : int
        Number of repetitions, with the seeds 0, 1, ...
    draws : int
        Draws of each claim.
    alpha : float
        False discovery rate.

    Returns
    -------
    pandas.DataFrame
        A row per seed and claim: ``seed, claim_id, measure, p, q, exceeds``.
    """
    import pandas as pd

    counts = {str(name): part for name, part in claims.groupby("claim_id", sort=False)}
    units = []
    for claim in audited[audited["status"] == "ok"].to_dict("records"):
        part, measure = counts[claim["claim_id"]], str(claim["measure"])
        positives = None if measure == "fpr" else [int(count) for count in part["n_positive"]]
        negatives = None if measure == "tpr" else [int(count) for count in part["n_negative"]]
        units.append((float(claim["overall"]), positives, negatives, measure, float(claim["observed"])))
    measures = np.array([unit[3] for unit in units])
    names = audited.loc[audited["status"] == "ok", "claim_id"].tolist()
    parts = []
    for seed in range(seeds):
        p = np.array(
            [
                fair_reference(*unit[:4], protocol="paper", draws=draws, seed=seed).exceedance(unit[4])
                for unit in units
            ]
        )
        q = np.empty(len(p))
        for measure in np.unique(measures):
            q[measures == measure] = benjamini_hochberg(p[measures == measure])
        parts.append(
            pd.DataFrame(
                {"seed": seed, "claim_id": names, "measure": measures, "p": p, "q": q, "exceeds": q < alpha}
            )
        )
    return pd.concat(parts, ignore_index=True)


def compare_totals(calls: pd.DataFrame, repeated: pd.DataFrame) -> pd.DataFrame:
    """How many claims a simulated audit calls in all: computed, and in the repetitions.

    Parameters
    ----------
    calls : pandas.DataFrame
        The result of :func:`call_probabilities`.
    repeated : pandas.DataFrame
        The result of :func:`repeat_simulation`.

    Returns
    -------
    pandas.DataFrame
        A row per total that was seen or has a probability of 0.001 or more: ``total``; ``computed``, its
        probability, claims taken as independent; ``repeated``, its share of the repetitions; ``n_repeated``.
    """
    import pandas as pd

    law = np.ones(1)
    for called in calls["called"].to_numpy(dtype=np.float64):
        law = np.convolve(law, [1.0 - called, called])
    seen = repeated.groupby("seed")["exceeds"].sum().to_numpy(dtype=np.int64)
    totals = [total for total in range(len(law)) if law[total] >= 0.001 or (seen == total).any()]
    counts = [int((seen == total).sum()) for total in totals]
    return pd.DataFrame(
        {
            "total": totals,
            "computed": [float(law[total]) for total in totals],
            "repeated": [count / len(seen) for count in counts],
            "n_repeated": counts,
        }
    )


def draw_hits(claim: dict[str, Any], repeated: pd.DataFrame, *, draws: int) -> ShownFigure:
    """How many draws reach one claim's reported difference: the binomial law and the repetitions.

    Parameters
    ----------
    claim : dict
        A row of :func:`call_probabilities`.
    repeated : pandas.DataFrame
        The result of :func:`repeat_simulation`.
    draws : int
        Draws of each repetition.

    Returns
    -------
    ShownFigure
        Filled bars: the claim is called; open bars: it is not; dots: share of the repetitions.
    """
    own = repeated[repeated["claim_id"] == claim["claim_id"]]
    hits = np.rint(own["p"].to_numpy(dtype=np.float64) * (draws + 1) - 1.0).astype(np.int64)
    most, p = int(claim["most_hits"]), float(claim["p"])
    shown = np.arange(int(max(hits.max(), 6)) + 1)
    law = np.array([math.comb(draws, int(h)) * p ** int(h) * (1.0 - p) ** (draws - int(h)) for h in shown])
    found = np.array([float(np.mean(hits == h)) for h in shown])
    with style_sheet():
        figure, axes = new_axes(4.4, grid="y")
        for chosen, face, label in ((shown <= most, CALLED, "called"), (shown > most, "white", "not called")):
            axes.bar(
                shown[chosen],
                law[chosen],
                width=0.7,
                facecolor=face,
                edgecolor=CALLED,
                linewidth=1.4,
                label=f"computed: {label}",
            )
        axes.plot(
            shown,
            found,
            linestyle="none",
            marker="o",
            markersize=8,
            markerfacecolor=REPEATED,
            markeredgecolor="white",
            clip_on=False,
            zorder=3,
            label=f"{own['seed'].nunique()} repetitions",
        )
        axes.set_xlabel(f"Draws of {draws:,} that reach the reported difference")
        axes.set_ylabel("Share of simulations")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend(loc="upper right")
    lines = [f"{h} draws: computed {law[h]:.3f}, repeated {found[h]:.3f}" for h in shown]
    call = float(law[: most + 1].sum())
    seen = float(own["exceeds"].mean())
    return show_figure(
        figure,
        f"{claim['claim_id']}: called when at most {most} of {draws:,} draws reach the difference; "
        f"computed {call:.3f}, repeated {seen:.3f}\n" + "\n".join(lines),
    )

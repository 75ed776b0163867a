"""Figure 4, panels d to h, as tables: curves, correlations, verdicts, and the printed values beside.

They come from the collected rows of :mod:`frame.experiments.injection`; what is drawn from them is in
:mod:`frame.figures.figure_4`. The printed values are of another cohort and another encoder; they stand in a
column of their own, and no verdict compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from frame.encoders.panel import encoder
from frame.errors import InputError
from frame.experiments.contract import named_units, tidy
from frame.experiments.injection import ALL_FINDINGS, GRIDS, NAME
from frame.experiments.injection_summary import FAMILY_SIZE, PAIRS
from frame.experiments.results import workspace_result
from frame.interventions.decision import VERDICTS
from frame.presentation import written
from frame.tables import load_table
from frame.workspace.layout import open_workspace
from frame.workspace.profiles import load_profile

__all__ = [
    "PRINTED_QUANTITIES",
    "QUANTITY_WORDS",
    "RACE_WORDS",
    "beside_the_print",
    "caveat_list",
    "change_table",
    "counted_words",
    "curve_table",
    "curves_wide",
    "injection_rows",
    "mean_table",
    "note_list",
    "note_table",
    "shown_encoder",
    "trend_table",
    "verdict_table",
    "who_is_where",
    "why_no_curves",
]

#: Quantities in the order of the paper's panels e and f; the last two are in its panel h.
QUANTITY_WORDS: Final = {
    "linear_decodability": "Linear decodability",
    "nonlinear_decodability": "Nonlinear decodability",
    "difference": "Race difference",
    "achievable_difference": "Achievable difference",
    "disease_auroc": "Disease AUROC",
    "overlap": "Overlap",
    "erasure_cost": "Erasure cost",
}
#: The ways to read race, for a column of a table; longer in :data:`frame.experiments.injection.ATTRIBUTES`.
RACE_WORDS: Final = {
    "race": "pooled",
    "race_recorded": "recorded",
    "race_without_other": 'without "Other"',
}
#: Name of a quantity in ``paper_figure4.csv``.
PRINTED_QUANTITIES: Final = {
    "linear decodability": "linear_decodability",
    "nonlinear decodability": "nonlinear_decodability",
    "race difference": "difference",
    "achievable difference": "achievable_difference",
    "disease AUROC": "disease_auroc",
}


def injection_rows(profile: str) -> pd.DataFrame:
    """The collected rows of the experiment in the usual workspace of a profile.

    Parameters
    ----------
    profile : str
        Name or path.

    Returns
    -------
    pandas.DataFrame
        No row where the profile has nothing to inject into.

    Raises
    ------
    frame.InputError
        If the experiment has not been run, or from something else.
    """
    if not named_units(NAME, open_workspace(load_profile(profile))):
        return tidy(pd.DataFrame(columns=["value"]), experiment=NAME)
    return workspace_result(NAME, profile)


def shown_encoder(rows: pd.DataFrame, asked: str) -> str:
    """The encoder that the figures are of.

    Parameters
    ----------
    rows : pandas.DataFrame
    asked : str
        ``first``, or its name.

    Returns
    -------
    str
        Empty where there are no rows.

    Raises
    ------
    frame.InputError
        If the rows have no such encoder.
    """
    there = list(dict.fromkeys(rows["encoder"]))
    if not there or asked == "first":
        return str(there[0]) if there else ""
    if asked not in there:
        raise InputError(f"encoder is {asked[:40]!r}; give first, or one that was run: {', '.join(there)}.")
    return asked


def why_no_curves(rows: pd.DataFrame, name: str, attribute: str, *needed: str) -> str:
    """Why nothing can be drawn of an encoder, as a sentence; empty where it can.

    Parameters
    ----------
    rows : pandas.DataFrame
    name, attribute : str
    *needed : str
        Quantities that must have a mean over the findings without injection.

    Returns
    -------
    str
    """
    if rows.empty:
        return (
            "Nothing to show: the profile names no encoder for the injection, or none of its findings (keys "
            "encoders.injection and findings)."
        )
    own = rows[(rows["encoder"] == name) & (rows["attribute"] == attribute)]
    start = own[(own["finding"] == ALL_FINDINGS) & (own["strength"] == 0.0)]
    there = set(start.loc[start["status"] == "ok", "quantity"])
    missing = [quantity for quantity in needed if quantity not in there]
    if not missing:
        return ""
    silent = start[start["quantity"].isin(missing) & (start["status"] != "ok")]
    silent = silent if len(silent) else own[own["quantity"].eq("verdict") & (own["status"] != "ok")]
    whys = "; ".join(dict.fromkeys(silent["reason"])) or "it was not computed for this way to read race"
    words = " and ".join(QUANTITY_WORDS[quantity].lower() for quantity in missing)
    return f"Nothing to show: there is no {words} without injection ({whys})."


def mean_table(rows: pd.DataFrame) -> pd.DataFrame:
    """The means over findings of every encoder and way to read race.

    Returns
    -------
    pandas.DataFrame
        ``encoder, attribute, operator, strength, quantity, value, sd, reason``; ``sd`` is over the findings.
        A strength that was not run has no value.
    """
    means = rows[
        (rows["finding"] == ALL_FINDINGS) & rows["strength"].notna() & rows["quantity"].isin(QUANTITY_WORDS)
    ]
    columns = ["encoder", "attribute", "method", "strength", "quantity", "value", "sd", "reason"]
    return means[columns].rename(columns={"method": "operator"}).reset_index(drop=True)


def curve_table(rows: pd.DataFrame, name: str, attribute: str = "race") -> pd.DataFrame:
    """The means over findings of one encoder.

    Parameters
    ----------
    rows : pandas.DataFrame
        Collected rows of the experiment ``injection``.
    name : str
        Encoder.
    attribute : str
        Key of :data:`frame.experiments.injection.ATTRIBUTES`.

    Returns
    -------
    pandas.DataFrame
        ``operator, strength, quantity, value, reason``; a strength that was not run has no value.

    Raises
    ------
    frame.InputError
        If the rows have none.
    """
    means = mean_table(rows)
    own = means[(means["encoder"] == name) & (means["attribute"] == attribute)]
    if own.empty:
        raise InputError(
            f"The rows have no curves of encoder {name[:40]!r} and attribute {attribute[:40]!r}; give the "
            "collected result of the experiment injection."
        )
    return own[["operator", "strength", "quantity", "value", "reason"]].reset_index(drop=True)


def curves_wide(table: pd.DataFrame, operator: str) -> pd.DataFrame:
    """The curves of one operator as a grid.

    Parameters
    ----------
    table : pandas.DataFrame
        Of :func:`curve_table`.
    operator : str

    Returns
    -------
    pandas.DataFrame
        A row per quantity that is there, in the order of :data:`QUANTITY_WORDS`, and a column per strength
        of the operator; NaN where it was not run.
    """
    own = table[table["operator"] == operator]
    wide = own.set_index(["quantity", "strength"])["value"].unstack("strength")  # noqa: PD010
    present = [name for name in QUANTITY_WORDS if name in wide.index]
    return wide.reindex(index=present, columns=list(GRIDS[operator]))


def beside_the_print(rows: pd.DataFrame, name: str, attribute: str = "race") -> pd.DataFrame:
    """The printed values of panels e and f, and what the same code finds on another cohort.

    Returns
    -------
    pandas.DataFrame
        ``operator, strength, quantity, here, printed``: ``here`` is ours, blank where it was not run, and
        ``printed`` the paper's. The two are of different images, encoders and people, so no verdict compares
        them.
    """
    why = why_no_curves(rows, name, attribute, "difference")
    curves = {} if why else _values(curve_table(rows, name, attribute))
    printed = load_table("paper_figure4")
    found = []
    for row in printed.to_dict("records"):
        quantity = PRINTED_QUANTITIES[str(row["quantity"])]
        strength = float(row["strength"])
        here = curves.get((str(row["injection"]), strength, quantity), float("nan"))
        found.append(
            {
                "operator": row["injection"],
                "strength": f"{strength:g}",
                "quantity": QUANTITY_WORDS[quantity],
                "here": None if np.isnan(here) else written(float(here)),
                "printed": str(row["value"]),
            }
        )
    return pd.DataFrame(found)


def _values(curves: pd.DataFrame) -> dict[tuple[str, float, str], float]:
    """The value of every operator, strength and quantity."""
    return {
        (str(row["operator"]), float(row["strength"]), str(row["quantity"])): float(row["value"])
        for row in curves.to_dict("records")
    }


def verdict_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Step one and the verdict of every unit, and what step two would say without the gate.

    Returns
    -------
    pandas.DataFrame
        A row per encoder, finding and way to read race: ``encoder, finding, race``; ``n_images, n_positive,
        n_patients`` of the test images that are compared; ``observed, reference, p, verdict, beyond,
        reason``.
    """
    found = []
    for same, held in _by_unit(rows):
        first = held.get(("step one", "observed"), {})
        last = held.get(("verdict", "verdict_of_step_two"), held.get(("verdict", "verdict"), {}))
        found.append(
            same
            | {count: first.get(count, pd.NA) for count in _COUNTS}
            | {
                "observed": _number(held, "step one", "observed"),
                "reference": _number(held, "step one", "reference"),
                "p": _number(held, "step one", "exceedance"),
                "verdict": _verdict(held, "verdict"),
                "beyond": _verdict(held, "verdict_of_step_two"),
                "reason": _why(last),
            }
        )
    columns = [*_UNIT, *_COUNTS, "observed", "reference", "p", "verdict", "beyond", "reason"]
    return pd.DataFrame(found, columns=columns)


def change_table(rows: pd.DataFrame) -> pd.DataFrame:
    """What every operator changes from nothing to its largest strength, in every unit.

    Returns
    -------
    pandas.DataFrame
        ``encoder, finding, race, operator, strength``, ``difference`` and ``disease_auroc`` with ``_lo`` and
        ``_hi`` of their 95 % intervals over paired resamples of test patients, and ``moves`` (yes or no).
    """
    found = []
    for same, held in _by_unit(rows):
        for operator in GRIDS:
            row = held.get((operator, "change_difference"))
            if row is None:
                continue
            loss = held.get((operator, "change_disease_auroc"), {})
            moves = {1.0: "yes", 0.0: "no"}.get(_number(held, operator, "moves"))
            found.append(
                same
                | {"operator": operator, "strength": f"{float(row['strength']):g}"}
                | _interval("difference", row)
                | _interval("disease_auroc", loss)
                | {"moves": moves}
            )
    columns = [*_UNIT, "operator", "strength", *_interval("difference", {}), *_interval("disease_auroc", {})]
    return pd.DataFrame(found, columns=[*columns, "moves"])


_UNIT: Final = ("encoder", "finding", "race")
_COUNTS: Final = ("n_images", "n_positive", "n_patients")
_Held = Mapping[tuple[str, str], Mapping[Any, Any]]


def _by_unit(rows: pd.DataFrame) -> list[tuple[dict[str, Any], _Held]]:
    """For every unit and way to read race: who it is, and its last row by method and quantity."""
    units = rows[rows["finding"] != ALL_FINDINGS]
    found: list[tuple[dict[str, Any], _Held]] = []
    for (name, attribute, finding), own in units.groupby(["encoder", "attribute", "finding"], sort=False):
        same = {
            "encoder": encoder(str(name)).title,
            "finding": str(finding).replace("_", " "),
            "race": RACE_WORDS[str(attribute)],
        }
        found.append((same, {(str(r["method"]), str(r["quantity"])): r for r in own.to_dict("records")}))
    return found


def _number(held: _Held, method: str, quantity: str) -> float:
    row = held.get((method, quantity))
    return float("nan") if row is None else float(row["value"])


def _verdict(held: _Held, quantity: str) -> str:
    row = held.get(("verdict", quantity))
    if row is None or row["status"] != "ok":
        return "not estimable"
    return VERDICTS[int(row["value"])]


def _interval(name: str, row: Mapping[Any, Any]) -> dict[str, float]:
    columns = {name: "value", f"{name}_lo": "lo", f"{name}_hi": "hi"}
    return {column: float(row.get(held, float("nan"))) for column, held in columns.items()}


def trend_table(rows: pd.DataFrame, name: str, attribute: str = "race") -> pd.DataFrame:
    """Correlations with strength of one encoder and way to read race.

    Returns
    -------
    pandas.DataFrame
        ``operator, quantity``; ``rho, p, p_fdr, tests, pairs``, and these as ``blocked_`` for the trend
        within findings. ``tests`` is the size of the family that p is corrected in, and ``pairs`` how many
        pairs of strength and value entered, of how many.
    """
    own = rows[(rows["encoder"] == name) & (rows["attribute"] == attribute)]
    held = {(str(r["method"]), str(r["quantity"])): r for r in own.to_dict("records")}
    sizes = own[own["quantity"] == FAMILY_SIZE].groupby("family")["value"].first()
    found = []
    for operator in GRIDS:
        for quantity, words in QUANTITY_WORDS.items():
            row: dict[str, Any] = {"operator": operator, "quantity": words}
            for before, test in _TRENDS.items():
                trend = held.get((operator, f"{test}_{quantity}"))
                if trend is None:
                    break
                row |= {f"{before}{key}": trend[column] for key, column in _TESTED.items()}
                row[f"{before}tests"] = int(sizes[trend["family"]])
                entered = str(held[operator, f"{PAIRS}{test}_{quantity}"]["reason"])
                row[f"{before}pairs"] = entered.removesuffix(" pairs")
            else:
                found.append(row)
    columns = [f"{before}{key}" for before in _TRENDS for key in (*_TESTED, "tests", "pairs")]
    return pd.DataFrame(found, columns=["operator", "quantity", *columns])


#: Before a column of the table: the test.
_TRENDS: Final = {"": "spearman", "blocked_": "spearman_blocked"}
_TESTED: Final = {"rho": "value", "p": "p", "p_fdr": "p_fdr"}


def caveat_list(rows: pd.DataFrame, attribute: str = "race") -> list[str]:
    """What the verdicts with race read in one way do not say, each sentence once."""
    own = rows[(rows["quantity"] == "caveat") & (rows["attribute"] == attribute)]
    return list(dict.fromkeys(own["reason"].tolist()))


def note_list(rows: pd.DataFrame, name: str, attribute: str = "race") -> list[str]:
    """What was left out, added or not run for one encoder and way to read race, each sentence once.

    Returns
    -------
    list of str
        Before a sentence stand the findings that it is of, unless these are all.
    """
    found = []
    for row in note_table(rows[(rows["encoder"] == name) & (rows["attribute"] == attribute)]).to_dict(
        "records"
    ):
        whole = row["finding"] == _EVERY
        found.append(str(row["note"]) if whole else f"{str(row['finding']).capitalize()}: {row['note']}")
    return found


def note_table(rows: pd.DataFrame) -> pd.DataFrame:
    """What was left out, added or not run, each sentence once: ``encoder, finding, race, note``."""
    found = []
    for name, run in rows[rows["finding"] != ALL_FINDINGS].groupby("encoder", sort=False):
        own = rows[(rows["quantity"] == "note") & (rows["encoder"] == name)]
        for words, part in own.groupby("reason", sort=False):
            findings, ways = part["finding"].unique(), part["attribute"].unique()
            whole = ALL_FINDINGS in findings or len(findings) == run["finding"].nunique()
            every = len(ways) == run["attribute"].nunique()
            of = ", ".join(str(one).replace("_", " ") for one in findings)
            read = ", ".join(RACE_WORDS[str(one)] for one in ways)
            found.append(
                {
                    "encoder": encoder(str(name)).title,
                    "finding": _EVERY if whole else of,
                    "race": _EVERY if every else read,
                    "note": str(words),
                }
            )
    return pd.DataFrame(found, columns=["encoder", "finding", "race", "note"])


#: In place of all findings, or of all ways to read race.
_EVERY: Final = "all"


def counted_words(rows: pd.DataFrame, name: str, attribute: str = "race") -> str:
    """The test images that step one compares, by finding, as a sentence."""
    own = rows[(rows["encoder"] == name) & (rows["attribute"] == attribute)]
    own = own[(own["method"] == "step one") & (own["quantity"] == "observed") & own["n_images"].notna()]
    counts = [
        f"{str(row['finding']).replace('_', ' ')} {row['n_images']:,} ({row['n_positive']:,} positive, "
        f"{row['n_patients']:,} patients)"
        for row in own.to_dict("records")
    ]
    if not counts:
        return "No test image was compared."
    return (
        f"Test images: {'; '.join(counts)}. Intervals resample patients. The p of step one comes from the "
        "calibrated law of the difference under an exactly fair model; the p of a trend permutes values over "
        "strengths."
    )


def who_is_where(rows: pd.DataFrame) -> tuple[str, str]:
    """Titles of the encoders, and the findings, in words."""
    encoders = [encoder(str(name)).title for name in dict.fromkeys(rows["encoder"])]
    findings = [str(one).replace("_", " ") for one in dict.fromkeys(rows["finding"]) if one != ALL_FINDINGS]
    return ", ".join(encoders) or "none", ", ".join(findings) or "none"


def _why(row: Mapping[Any, Any]) -> str:
    """What stands behind the verdict's name, or why there is no verdict."""
    said = str(row.get("reason", ""))
    return said.partition(": ")[2] if row.get("status") == "ok" else said

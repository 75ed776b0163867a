"""The injection experiment over all findings: means, trends with strength, and what was not run.

A finding that a way to read race has a unit for counts in every mean and trend, also where the unit was
refused as a whole and left one row with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pandas as pd

from frame.experiments.contract import tidy
from frame.interventions.disease_subspace import ENTANGLEMENT_STRENGTHS
from frame.interventions.operators import DECODABILITY_STRENGTHS
from frame.interventions.strength_tables import OPERATORS
from frame.interventions.strengths import ACHIEVABLE, GEOMETRY
from frame.interventions.whitened_directions import WHITENED_STRENGTHS

__all__ = [
    "ALL_FINDINGS",
    "FAMILY_SIZE",
    "GRIDS",
    "MODALITY",
    "NAME",
    "OUR_QUANTITIES",
    "PAIRS",
    "PRINTED_QUANTITIES",
    "QUANTITIES",
    "summary_rows",
]

NAME: Final = "injection"
MODALITY: Final = "chest"

#: ``finding`` of a row that is about all findings of an encoder.
ALL_FINDINGS: Final = "all findings"
#: Quantities of the paper's panel h.
PRINTED_QUANTITIES: Final = ("difference", ACHIEVABLE[0], *GEOMETRY)
#: Quantities whose trend the paper does not test.
OUR_QUANTITIES: Final = (ACHIEVABLE[1], "disease_auroc")
#: Quantities with a value at every strength, and whose trend is tested.
QUANTITIES: Final = ("difference", *ACHIEVABLE, *GEOMETRY, "disease_auroc")
#: Strengths of each operator that are asked for; others are added where decodability saturates, and tested
#: nowhere.
GRIDS: Final[Mapping[str, tuple[float, ...]]] = dict(
    zip(
        OPERATORS,
        (DECODABILITY_STRENGTHS, tuple(map(float, ENTANGLEMENT_STRENGTHS)), WHITENED_STRENGTHS),
        strict=True,
    )
)
#: Before the name of a trend: the quantity whose value is the number of pairs that entered it.
PAIRS: Final = "pairs_"
#: The quantity whose value is the number of tests of the family that its row names.
FAMILY_SIZE: Final = "family_size"

_PERMUTATIONS: Final = 1000
#: Encoders that the paper injects into.
_PRINTED_ENCODERS: Final = 2
_SAME: Final = ["encoder", "attribute", "method", "quantity"]
_OURS: Final = ": ours"
_WITHIN: Final = ": within findings"
_NOT_RUN: Final = "not run: "


def summary_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """What is said of the units together.

    Parameters
    ----------
    rows : pandas.DataFrame
        Tidy rows of all units.

    Returns
    -------
    pandas.DataFrame
        Tidy rows, with ``finding`` :data:`ALL_FINDINGS` except for the notes on strengths that were not run:

        * ``note``: fewer encoders than in the paper; strengths of an operator that were not run, and why;
        * the mean of every quantity at every strength over the findings, as in Figure 4 (``sd``: over the
          findings); not estimable where a finding has none;
        * ``spearman_<quantity>``, its rank correlation with strength over the strengths of all findings as in
          the paper, and ``spearman_blocked_<quantity>`` within findings (ours), each with a row
          ``pairs_spearman...`` of the pairs of strength and value that entered. ``p_fdr`` is corrected over
          the encoders and the six quantities of the paper's panel h for each operator; the two that are ours
          are a family of their own, and so are the trends within findings;
        * ``family_size``: tests in the ``family`` of the row.
    """
    curves = rows[rows["quantity"].isin(QUANTITIES) & rows["method"].isin(OPERATORS)]
    findings = _findings(rows)
    parts = [_few(rows), _not_run(curves), _means(curves, findings), _trends(curves, findings)]
    return pd.concat(parts, ignore_index=True)


#: For an encoder and way to read race: its findings, and why one of them has no value where it has none.
_Findings = Mapping[tuple[str, str], Mapping[str, str]]


def _findings(rows: pd.DataFrame) -> _Findings:
    """Every finding that there is a unit for, also where the unit was refused as a whole."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for identity, own in rows.groupby(["encoder", "attribute", "finding"], sort=False):
        name, attribute, finding = map(str, identity)
        silent = own[own["quantity"].isin(["verdict", "verdict_of_step_two"]) & (own["status"] != "ok")]
        whys = "; ".join(dict.fromkeys(silent["reason"])) or "it has no row"
        found.setdefault((name, attribute), {})[finding] = whys
    return found


def _without_a_value(whys: Mapping[str, str], of: int) -> str:
    """How many findings have no value, and why."""
    have = f"finding{'' if of == 1 else 's'} {'has' if len(whys) == 1 else 'have'}"
    return f"{len(whys)} of {of} {have} no value: {'; '.join(dict.fromkeys(whys.values()))}"


def _few(rows: pd.DataFrame) -> pd.DataFrame:
    """A note for every encoder and way to read race, where the profile has fewer encoders than the paper."""
    pairs = rows[["encoder", "attribute"]].drop_duplicates().to_dict("records")
    named = rows["encoder"].nunique()
    if named >= _PRINTED_ENCODERS:
        pairs = []
    said = f"The profile names {named} encoder for the injection; the paper has {_PRINTED_ENCODERS}."
    return _over_findings([pair | _note(said) for pair in pairs])


def _not_run(curves: pd.DataFrame) -> pd.DataFrame:
    """A note for every operator of a unit that has strengths that were not run."""
    found = []
    of_unit = ["encoder", "attribute", "finding", "method"]
    for identity, own in curves.groupby(of_unit, sort=False):
        row: dict[str, Any] = dict(zip(of_unit, identity, strict=True))
        asked = GRIDS[str(row.pop("method"))]
        own = own[own["strength"].isin(asked)]
        absent = [
            float(str(strength))
            for strength, rows in own.groupby("strength")
            if rows["reason"].str.startswith(_NOT_RUN).all()
        ]
        if not absent:
            continue
        by_reason: dict[str, list[str]] = {}
        for strength in absent:
            why = own.loc[own["strength"] == strength, "reason"].iloc[0].removeprefix(_NOT_RUN)
            named = f"{strength:g}"
            rest = why.removeprefix(named)
            by_reason.setdefault(rest if rest != why else f" ({why})", []).append(named)
        whys = "; ".join(f"{_listed(named)}{rest}" for rest, named in by_reason.items())
        operator = str(identity[3])
        were = "was" if len(absent) == 1 else "were"
        said = f"{operator.capitalize()}: {len(absent)} of {len(asked)} strengths {were} not run: {whys}."
        found.append(row | _note(said))
    return tidy(_table(found), experiment=NAME, modality=MODALITY, split="test")


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _means(curves: pd.DataFrame, findings: _Findings) -> pd.DataFrame:
    """The mean over findings of every quantity at every strength that the grid asks for."""
    asked = {(operator, strength) for operator, grid in GRIDS.items() for strength in grid}
    found = []
    for identity, own in curves.groupby([*_SAME, "strength"], sort=False):
        row: dict[str, Any] = dict(zip([*_SAME, "strength"], identity, strict=True))
        if (row["method"], row["strength"]) not in asked:
            continue
        every = findings[str(row["encoder"]), str(row["attribute"])]
        silent = own[own["status"] != "ok"]
        whys = {one: why for one, why in every.items() if one not in set(own["finding"])}
        whys |= dict(zip(silent["finding"], silent["reason"], strict=True))
        if whys:
            said = _without_a_value(whys, len(every))
            row |= {"value": math.nan, "status": "not estimable", "reason": said}
        else:
            row |= {
                "value": own["value"].mean(),
                "sd": own["value"].std(ddof=1),
                "reason": f"mean over {len(own)} findings",
            }
        found.append(row)
    return _over_findings(found)


def _trends(curves: pd.DataFrame, findings: _Findings) -> pd.DataFrame:
    """Rank correlations with strength, pooled over findings and within them, corrected by family."""
    from frame.inference.families import correct, family_of
    from frame.inference.trends import spearman_trend

    tests, pairs = [], []
    for identity, own in curves.groupby(_SAME, sort=False):
        row: dict[str, Any] = dict(zip(_SAME, identity, strict=True))
        quantity, operator = str(row["quantity"]), str(row["method"])
        grid = GRIDS[operator]
        own = own[own["strength"].isin(grid)]
        every = findings[str(row["encoder"]), str(row["attribute"])]
        whys = {one: why for one, why in every.items() if one not in set(own["finding"])}
        said = _without_a_value(whys, len(every)) if whys else ""
        strengths = [*own["strength"], *(at for _ in whys for at in grid)]
        values = [*own["value"].where(own["status"] == "ok"), *(math.nan for _ in whys for _ in grid)]
        blocks_there = [*own["finding"], *(one for one in whys for _ in grid)]
        family = family_of(NAME, attribute=str(row["attribute"]), operator=operator)
        family += _OURS if quantity in OUR_QUANTITIES else ""
        for name, blocks, suffix in (("spearman", None, ""), ("spearman_blocked", blocks_there, _WITHIN)):
            trend = spearman_trend(strengths, values, blocks, permutations=_PERMUTATIONS)
            test = f"{name}_{quantity}"
            tests.append(
                row
                | {
                    "quantity": test,
                    "value": trend.rho,
                    "p": trend.p,
                    "family": family + suffix,
                    "status": trend.status,
                    "reason": "; ".join(filter(None, [trend.reason, said])),
                }
            )
            entered = f"{trend.n} of {len(strengths)} pairs"
            pairs.append(row | {"quantity": PAIRS + test, "value": float(trend.n), "reason": entered})
    if not tests:
        return _over_findings([])
    corrected = correct(pd.DataFrame(tests))
    return _over_findings([*corrected.to_dict("records"), *pairs, *_family_sizes(corrected)])


def _family_sizes(tests: pd.DataFrame) -> list[dict[str, Any]]:
    """The tests of every family that have a p, the number that p is corrected for."""
    sizes = tests.groupby("family", sort=False)["p"].count()
    of = ["encoder", "attribute", "method", "family"]
    return [
        {str(key): value for key, value in one.items()}
        | {"quantity": FAMILY_SIZE, "value": float(sizes[one["family"]]), "reason": "tests with a p"}
        for one in tests[of].drop_duplicates().to_dict("records")
    ]


def _note(words: str) -> dict[str, Any]:
    return {"method": "verdict", "quantity": "note", "value": 0.0, "reason": words}


def _table(rows: Sequence[Mapping[Any, Any]]) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=None if rows else [*_SAME, "value"])


def _over_findings(rows: Sequence[Mapping[Any, Any]]) -> pd.DataFrame:
    return tidy(_table(rows), experiment=NAME, modality=MODALITY, split="test", finding=ALL_FINDINGS)

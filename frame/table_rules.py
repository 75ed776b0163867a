"""Checks over several columns of a table of ``data/``.

Each rule takes a table with its columns of whole numbers already read, and marks the rows that break it. The
rules' names, the keys of :data:`RULES`, are what an error message shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["RULES"]


def _number(column: pd.Series[Any]) -> pd.Series[float]:
    import pandas as pd

    return pd.to_numeric(column.astype(str).str.replace("−", "-"), errors="coerce").astype(float)


def _changing_description(claims: pd.DataFrame) -> pd.Series[bool]:
    own = {"claim_id", "subgroup", "value", "n_positive", "n_negative"}
    shared = [label for label in claims.columns if label not in own]
    first = claims.groupby("claim_id", sort=False)[shared].transform("first")
    return (claims[shared] != first).any(axis=1)


def _lone_subgroup(claims: pd.DataFrame) -> pd.Series[bool]:
    return claims.groupby("claim_id")["subgroup"].transform("size") < 2


def _no_denominator(claims: pd.DataFrame) -> pd.Series[bool]:
    no_positive = (claims["n_positive"] == "") & claims["metric"].isin(["auroc", "tpr"])
    no_negative = (claims["n_negative"] == "") & claims["metric"].isin(["auroc", "fpr"])
    return no_positive | no_negative


def _foreign_claim_id(claims: pd.DataFrame) -> pd.Series[bool]:
    return claims["claim_id"].str.replace(r"-\d{2}$", "", regex=True) != claims["study"]


def _neither_included_nor_excluded(studies: pd.DataFrame) -> pd.Series[bool]:
    included = studies["included"] == "yes"
    fails = studies["criterion_failed"].isin([1, 2, 3, 4])
    basis = studies["criterion_basis"] != ""
    good_yes = included & ~fails & ~basis & (studies["n_claims"] > 0)
    good_no = ~included & fails & basis & (studies["n_claims"] == 0) & (studies["direction"] == "")
    return ~(good_yes | good_no).astype(bool)


def _reference_outside(claims: pd.DataFrame) -> pd.Series[bool]:
    lo, mean, hi = (_number(claims[label]) for label in ("ref_lo", "reference", "ref_hi"))
    return (mean < lo) | (mean > hi)


def _mark_against_q(claims: pd.DataFrame) -> pd.Series[bool]:
    q = _number(claims["p_fdr"].str.lstrip("<>"))
    return (claims["exceeds"] == "yes") != (q < 0.05)


def _splits_off(table: pd.DataFrame) -> pd.Series[bool]:
    total = table["train"] + table["validation"] + table["test"]
    return ((total != table["images"]) | (table["test_patients"] > table["test"])).astype(bool)


def _recorded_off(table: pd.DataFrame) -> pd.Series[bool]:
    return (table["recorded"] + table["not_recorded"] != table["total"]).astype(bool)


def _prevalence_off(table: pd.DataFrame) -> pd.Series[bool]:
    percent = 100 * table["positive"].astype(float) / table["evaluable"].astype(float)
    return (percent - table["prevalence_pct"].astype(float)).abs() > 0.5 + 1e-9


def _part_too_large(table: pd.DataFrame) -> pd.Series[bool]:
    whole = table["of"] if "of" in table else table["n"]
    parts = [label for label in table.columns if label == "exceeding" or label.endswith("_significant")]
    return table[parts].gt(whole, axis=0).any(axis=1).astype(bool)


def _quartiles_off(table: pd.DataFrame) -> pd.Series[bool]:
    stems = [label.removesuffix("_q1") for label in table.columns if label.endswith("_q1")]
    broken = _number(table[f"{stems[0]}_q1"]) != _number(table[f"{stems[0]}_q1"])
    for stem in stems:
        lower, median, upper = (_number(table[f"{stem}_{part}"]) for part in ("q1", "median", "q3"))
        broken = broken | (lower > median) | (median > upper)
    return broken


def _out_of_order(rules: pd.DataFrame) -> pd.Series[bool]:
    import pandas as pd

    return pd.Series(rules["order"].to_numpy() != range(1, len(rules) + 1), index=rules.index)


def _preprocessing_incomplete(encoders: pd.DataFrame) -> pd.Series[bool]:
    channels = encoders["channels"].astype(int)
    broken = encoders["high"].astype(float) <= encoders["low"].astype(float)
    for label in ("native_mean", "native_std"):
        given = encoders[label].str.count(r"\|") + 1
        broken = broken | ((encoders[label] != "") & (given != channels))
    broken = broken | ((encoders["native_mean"] == "") != (encoders["native_std"] == ""))
    broken = broken | encoders["native_std"].str.split("|").map(_has_zero)
    return (broken | (encoders["native_resize"] < encoders["native_size"])).astype(bool)


def _own_without_loader(encoders: pd.DataFrame) -> pd.Series[bool]:
    return ((encoders["library"] == "own") & (encoders["loader"] == "")).astype(bool)


def _pixels_in_colour(encoders: pd.DataFrame) -> pd.Series[bool]:
    return ((encoders["library"] == "pixels") & (encoders["channels"] != 1)).astype(bool)


def _has_zero(parts: list[str]) -> bool:
    return any(part != "" and float(part) <= 0 for part in parts)


RULES: dict[str, Callable[[pd.DataFrame], pd.Series[bool]]] = {
    "one description per claim": _changing_description,
    "two subgroups per claim": _lone_subgroup,
    "denominator present": _no_denominator,
    "claim id of study": _foreign_claim_id,
    "included or criterion": _neither_included_nor_excluded,
    "reference inside its interval": _reference_outside,
    "mark follows q": _mark_against_q,
    "splits add up": _splits_off,
    "recorded and not add up": _recorded_off,
    "prevalence is positive over evaluable": _prevalence_off,
    "part within whole": _part_too_large,
    "quartiles in order": _quartiles_off,
    "order is the order of rows": _out_of_order,
    "preprocessing is complete": _preprocessing_incomplete,
    "an own encoder has a loader": _own_without_loader,
    "an encoder of the library pixels has 1 channel": _pixels_in_colour,
}

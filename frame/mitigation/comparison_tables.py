"""The tables of a comparison: rows with their families corrected, groups, and what is achievable."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from frame.mitigation.achievable import (
    CHOICES,
    UNMITIGATED,
    Achievable,
    achievable_difference,
    candidates_of,
)
from frame.mitigation.columns import ACHIEVABLE, COLUMNS, GROUPS, METHODS_RUN, SPLIT_COUNTS, table_of
from frame.mitigation.feature_rows import SPLITS, FeatureRows
from frame.mitigation.judged import NOT_ESTIMABLE, REFITTED, Arm, Judged, Judging, known_rows
from frame.mitigation.multiplicity import correct_achievable, correct_rows, smallest_q_note
from frame.mitigation.registry import METHODS, NINE

if TYPE_CHECKING:
    import pandas as pd

    from frame.measures.rows import ScoredRows

__all__ = ["ACHIEVABLE_ROW", "Tables", "method_name", "tables_of"]

#: ``method`` of the rows of the achievable difference.
ACHIEVABLE_ROW: Final = "achievable"
_NAMES: Final = {
    UNMITIGATED: "Unmitigated",
    REFITTED: "Unmitigated, images with a known group",
}
_NAN: Final = math.nan


@dataclass(frozen=True, eq=False)
class Tables:
    """Tables of a comparison; see :class:`frame.mitigation.comparison.Comparison`."""

    table: pd.DataFrame
    by_group: pd.DataFrame
    achievable: pd.DataFrame
    methods_run: pd.DataFrame
    splits: pd.DataFrame
    notes: tuple[str, ...]
    unit: str


def method_name(method: str) -> str:
    """Name of a method, or of what stands beside the methods, for tables and sentences."""
    if method in _NAMES:
        return _NAMES[method]
    return METHODS[method].label if method in METHODS else method


def tables_of(
    data: FeatureRows,
    judged: Mapping[str, tuple[Sequence[Arm], Judged]],
    how: Judging,
    *,
    head: str,
    weighting: str,
    alpha: float,
    tolerance: float,
) -> Tables:
    """Put together what was judged for every attribute, and correct it.

    Parameters
    ----------
    data : FeatureRows
        Counts of the splits.
    judged : mapping of str to (sequence of Arm, Judged)
        By attribute.
    how : Judging
        Measures, resamples, seed.
    head, weighting : str
        As given.
    alpha, tolerance : float
        Level after correction; allowed loss of disease AUROC.

    Returns
    -------
    Tables
    """
    test = data.splits["test"].rows
    unit = "patient" if test.patients_given else "image"
    rows: list[dict[str, Any]] = []
    groups: list[dict[str, Any]] = []
    run: list[dict[str, Any]] = []
    for attribute, (arms, found) in judged.items():
        own = {"label": data.label, "attribute": attribute}
        rows += [row | own | _named(row["method"]) for row in found.rows]
        groups += [row | own | _named(row["method"]) for row in found.groups]
        run += [own | _run(arm) for arm in arms]
    correct_rows(rows, alpha)
    best = [
        line
        for attribute in judged
        for measure in how.measures
        for line in _achievable(rows, attribute, measure, tolerance)
    ]
    correct_achievable(best, alpha)
    settings = {
        "head": head,
        "weighting": weighting,
        "n_train": len(data.splits["train"]),
        "unit": unit,
        "resamples": how.resamples,
        "seed": how.seed,
    }
    counted = {
        a: _judged_counts(known_rows(test, a))
        | {
            "n_without_group": int(np.count_nonzero(data.codes("test", a) < 0)),
            "n_train_known": int(np.count_nonzero(data.codes("train", a) >= 0)),
        }
        for a in judged
    }
    every = [row | settings | counted[row["attribute"]] for row in [*rows, *(_as_row(b) for b in best)]]
    return Tables(
        table=table_of(every, COLUMNS),
        by_group=table_of(groups, GROUPS),
        achievable=table_of(best, ACHIEVABLE),
        methods_run=table_of(run, METHODS_RUN),
        splits=table_of([_split_row(data, name) for name in SPLITS], SPLIT_COUNTS),
        notes=(
            *(note for _, found in judged.values() for note in found.notes),
            *smallest_q_note(rows, how.resamples, alpha),
        ),
        unit=unit,
    )


def _judged_counts(rows: ScoredRows) -> dict[str, int]:
    """Counts of the test images that are compared: those whose group is known."""
    return {
        "n_images": len(rows),
        "n_positive": int(np.count_nonzero(rows.labels)),
        "n_patients": rows.n_patients if rows.patients_given else len(rows),
    }


def _named(method: str) -> dict[str, str]:
    return {"name": method_name(method), "kind": METHODS[method].family if method in METHODS else ""}


def _run(arm: Arm) -> dict[str, Any]:
    shown = {name.removeprefix("n_").replace("_", " "): _shown(value) for name, value in arm.facts.items()}
    facts = "; ".join(f"{name} {words}" for name, words in shown.items() if words)
    return {
        "method": arm.name,
        **_named(arm.name),
        "status": arm.status,
        "reason": arm.reason,
        "flags": "; ".join(arm.flags),
        "facts": facts,
        "sentence": METHODS[arm.name].sentence if arm.name in METHODS else "",
    }


def _shown(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        return f"{float(value):.4g}"
    if isinstance(value, (tuple, list, np.ndarray)):
        return ", ".join(_shown(one) for one in value)
    return str(value)


def _split_row(data: FeatureRows, name: str) -> dict[str, Any]:
    rows = data.splits[name].rows
    return {
        "split": name,
        "n_images": len(rows),
        "n_positive": int(np.count_nonzero(rows.labels)),
        "n_patients": rows.n_patients if rows.patients_given else None,
        "n_images_before_cap": data.n_train if name == "train" else len(rows),
    }


# -- the achievable difference ------------------------------------------------------------------------


def _achievable(
    rows: Sequence[Mapping[str, Any]], attribute: str, measure: str, tolerance: float
) -> list[dict[str, Any]]:
    """The paper's choice and ours for one attribute and measure, both judged on test."""
    own = {row["method"]: row for row in rows if row["attribute"] == attribute and row["measure"] == measure}
    table = []
    for method, row in own.items():
        line = {
            "method": method,
            "test_difference": row.get("after", _NAN),
            "test_auroc": row.get("auroc", _NAN),
            "validation_difference": row.get("validation_difference", _NAN),
            "validation_auroc": row.get("validation_auroc", _NAN),
            "status": row["status"],
            "reason": row["reason"],
        }
        if method not in (UNMITIGATED, *NINE):
            beside = "a control, no method" if method == REFITTED else "not one of the paper's nine methods"
            line |= {"status": "left out", "reason": beside}
        table.append(line)
    candidates = candidates_of(table)
    return [
        _achievable_row(achievable_difference(candidates, chosen_on=choice, tolerance=tolerance), own)
        | {"attribute": attribute, "measure": measure, "label": own[UNMITIGATED]["label"]}
        for choice in CHOICES
    ]


def _achievable_row(found: Achievable, own: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    chosen = own.get(found.method, {})
    row: dict[str, Any] = {
        "chosen_on": found.chosen_on,
        "method": found.method,
        "name": method_name(found.method) if found.method else "",
        "status": found.status,
        "reason": found.reason,
        "before": found.unmitigated_difference,
        "after": found.difference,
        "chosen_difference": found.chosen_difference,
        "change": found.difference - found.unmitigated_difference,
        "auroc_before": found.unmitigated_auroc,
        "auroc": found.auroc,
        "chosen_auroc": found.chosen_auroc,
        "tolerance": found.tolerance,
        "n_candidates": len(found.candidates),
        "candidates": "; ".join(found.candidates),
        "excluded": "; ".join(f"{one.method}: {one.reason}" for one in found.excluded),
    }
    return row | {name: chosen.get(name) for name in _OF_CHOSEN}


#: What the achievable difference has of the method that was chosen.
_OF_CHOSEN: Final = (
    *("change_lo", "change_hi", "change_p", "reference", "reference_lo", "reference_hi"),
    *("reference_method", "remainder", "share", "exceedance", "p_heterogeneity"),
    *("worst_group", "worst_value", "worst_group_before", "worst_value_before"),
    *("auroc_change", "auroc_change_lo", "auroc_change_hi", "auroc_change_p", "n_groups", "smallest_group"),
    *("after_lo", "after_hi", "threshold", "threshold_source", "flags"),
)


def _as_row(best: Mapping[str, Any]) -> dict[str, Any]:
    """A row of what is achievable in the columns that methods have."""
    return {
        **best,
        "method": ACHIEVABLE_ROW,
        "name": f"Achievable, chosen on {best['chosen_on']}",
        "kind": "",
        "chosen": best["method"],
        # The choice among methods is not a test of its own.
        "change_p": None,
        "status": best["status"] if best["method"] else NOT_ESTIMABLE,
    }

"""Checks of the columns and of every cell of a table of claims."""

from __future__ import annotations

import difflib
import math
import re
from typing import TYPE_CHECKING

from frame.claims.columns import (
    COUNT_COLUMNS,
    DIRECTIONS,
    KNOWN,
    LARGEST_COUNT,
    MEASURES,
    REQUIRED,
    SHARE_COLUMNS,
)
from frame.claims.files import Place
from frame.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

_OTHER_NAMES = {
    "auc": "it is called auroc here",
    "roc_auc": "it is called auroc here",
    "sensitivity": "sensitivity is called tpr here",
    "recall": "recall is called tpr here",
    "specificity": "give fpr = 1 - specificity; the difference is the same",
    "tnr": "give fpr = 1 - tnr; the difference is the same",
    "fnr": "give tpr = 1 - fnr; the difference is the same",
}


def check_columns(text: pd.DataFrame, place: Place) -> None:
    """Check that needed columns are there and that no column is a misspelt known one."""
    columns = list(text.columns)
    repeated = sorted({c for c in columns if columns.count(c) > 1})
    if repeated:
        raise InputError(f"{place.name}: column '{repeated[0]}' stands there twice; keep one.")
    missing = [c for c in REQUIRED if c not in columns]
    if missing:
        listed = ", ".join(f"'{c}'" for c in missing)
        raise InputError(
            f"{place.name}: column(s) {listed} missing; found are {', '.join(columns) or 'none'}. "
            "'frame audit --template' prints an example to fill in."
        )
    for column in columns:
        if column in KNOWN:
            continue
        close = difflib.get_close_matches(column, [k for k in KNOWN if k not in columns], n=1, cutoff=0.8)
        if close:
            raise InputError(f"{place.name}: column '{column}' is not known; did you mean '{close[0]}'?")
    if len(text) == 0:
        raise InputError(f"{place.name}: there is a header but no row; give one row per claim and subgroup.")


def number_in(cell: str) -> float:
    """The number a cell holds, NaN when it holds none."""
    try:
        return float(cell) if "_" not in cell else math.nan
    except ValueError:
        return math.nan


def _share_problem(cell: str) -> str:
    """What is wrong with a cell that must hold a number from 0 to 1; empty when nothing is."""
    number = number_in(cell)
    if math.isnan(number):
        if cell.endswith("%"):
            return "a percentage; write it as a fraction, for example 0.87 for 87 %"
        if re.fullmatch(r"[+-]?\d*,\d+", cell):
            return "a number with a decimal comma; write a point, for example 0.87"
        return "no number; it must be a number from 0 to 1"
    if 1.0 < number <= 100.0:
        return f"outside 0 to 1; if it is a percentage, divide it by 100 ({number / 100:g})"
    return "" if 0.0 <= number <= 1.0 else "outside 0 to 1"


def _count_problem(cell: str) -> str:
    """What is wrong with a cell that must hold a count; empty when nothing is."""
    number = number_in(cell)
    if math.isnan(number):
        if re.fullmatch(r"\d{1,3}([,. ']\d{3})+", cell):
            return "a count with a thousands separator; write digits only"
        return "no number; it must be a whole number of cases"
    if number < 0:
        return "negative; it must be a whole number of cases, 0 or more"
    if re.fullmatch(r"\d{1,3}(\.000)+", cell):
        return "a count with a thousands separator, or with decimals; write digits only"
    if math.isinf(number):
        return "no number; it must be a whole number of cases"
    if not number.is_integer():
        return "a fraction; it must be a whole number of cases"
    return "" if number <= LARGEST_COUNT else f"larger than {LARGEST_COUNT:,}; it must be a number of cases"


def _metric_problem(cell: str) -> str:
    if cell.lower() in MEASURES:
        return ""
    hint = _OTHER_NAMES.get(cell.lower().replace(" ", "_"), "")
    return f"not known; allowed are {', '.join(MEASURES)}" + (f" ({hint})" if hint else "")


def _direction_problem(cell: str) -> str:
    return "" if cell in DIRECTIONS else f"not known; allowed are {', '.join(DIRECTIONS)} or blank"


def check_cells(text: pd.DataFrame, place: Place) -> None:
    """Check every cell on its own, by a pandera schema; the first problem becomes the sentence."""
    import pandera.pandas as pa

    problems = dict.fromkeys(SHARE_COLUMNS, _share_problem) | dict.fromkeys(COUNT_COLUMNS, _count_problem)
    problems |= {"metric": _metric_problem, "claim_direction": _direction_problem}
    columns = {}
    for name in text.columns:
        checks = []
        if name in problems:
            problem = problems[name]
            blank_is_fine = name != "metric"
            checks.append(
                pa.Check(
                    lambda cell, problem=problem, blank=blank_is_fine: (
                        (blank and cell == "") or not problem(cell)
                    ),
                    element_wise=True,
                )
            )
        elif name in ("claim_id", "subgroup"):
            checks.append(pa.Check(lambda cell: cell != "", element_wise=True))
        columns[name] = pa.Column(checks=checks)
    try:
        pa.DataFrameSchema(columns).validate(text, lazy=True)
    except pa.errors.SchemaErrors as failed:
        cases = failed.failure_cases.dropna(subset=["index"])
        cases = cases.assign(position=[text.index.get_loc(i) for i in cases["index"]])
        first = cases.sort_values("position", kind="stable").iloc[0]
        name, cell = str(first["column"]), str(first["failure_case"])
        row = place.at(int(text.index[int(first["position"])]), name)
        more = f" ({len(cases) - 1} more cell(s) have a problem.)" if len(cases) > 1 else ""
        if cell == "":
            raise InputError(f"{row}: the cell is blank; give a name.{more}") from None
        raise InputError(f"{row}: '{cell}' is {problems[name](cell)}.{more}") from None

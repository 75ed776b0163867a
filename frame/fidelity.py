"""Our numbers beside the printed ones, for a named figure, table or section of the paper.

How a printed number is read and when ours agrees with it is in :mod:`frame.printed_numbers`. A number from
another cohort than the paper's is never called equal, whatever its value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from frame.errors import InputError
from frame.printed_numbers import agreement, format_like, parse_printed
from frame.tables import load_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "PAPER_COHORTS",
    "VERDICTS",
    "agreement",
    "compare_numbers",
    "compare_table",
    "format_like",
    "parse_printed",
    "summary",
]

VERDICTS = ("equal", "differs", "not computed", "other cohort")

#: Names of a cohort that stand for the very data behind the printed numbers.
PAPER_COHORTS = ("paper", "published record", "synthetic model")

Value = float | int | str | None


def compare_numbers(
    target: str,
    ours: Mapping[str, Value],
    *,
    cohort: str,
    reasons: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Put our values beside every number that the paper prints in one place.

    Parameters
    ----------
    target : str
        A place as ``paper_numbers`` names it: ``"Figure 9"`` (all its panels), ``"Figure 9b"``,
        ``"Results"``, ``"Table 1"``, ``"Supplementary Note 2"``, ...
    ours : mapping of str to float, int, str or None
        Our values by the ``id`` of ``paper_numbers``; ids of other places are ignored.
    cohort : str
        The cohort behind ``ours``. Only the names in :data:`PAPER_COHORTS` are the paper's; anything else,
        such as ``"phantom"``, gives the verdict ``other cohort``.
    reasons : mapping of str to str, optional
        Why an id has no value.

    Returns
    -------
    pandas.DataFrame
        A row per printed number of that place, in the order of the file: ``id, quantity, printed`` (text),
        ``ours, cohort, tolerance, verdict`` (one of :data:`VERDICTS`), ``reason``. Where a note in the file
        says that this place prints another rounding of the same number, that rounding is the printed one.

    Raises
    ------
    frame.InputError
        If no printed number names the target, an id is unknown, or a value has the wrong shape.
    """
    import pandas as pd

    numbers = load_table("paper_numbers")
    given = reasons or {}
    unknown = [label for label in (*ours, *given) if label not in set(numbers["id"])]
    if unknown:
        raise InputError(f"There is no printed number with the id {unknown[0]!r} in paper_numbers.")
    rows = []
    for row in numbers.itertuples(index=False):
        identifier, quantity, printed = str(row.id), str(row.quantity), str(row.value)
        shown = _printed_at(target, printed, str(row.where))
        if shown is None:
            continue
        compared = _compare(shown, ours.get(identifier), cohort, given.get(identifier, ""), identifier)
        rows.append({"id": identifier, "quantity": quantity, **compared})
    if not rows:
        raise InputError(f"The paper prints no number in {target!r}; a place is, for example, 'Figure 9'.")
    return pd.DataFrame(rows)


def compare_table(
    printed: pd.DataFrame,
    ours: pd.DataFrame,
    *,
    key: str | Sequence[str],
    columns: Sequence[str] | Mapping[str, str],
    cohort: str,
) -> pd.DataFrame:
    """Compare a printed table with ours, cell by cell.

    Parameters
    ----------
    printed : pandas.DataFrame
        The printed table, its values as text (as :func:`frame.tables.load_table` gives them).
    ours : pandas.DataFrame
        Our table, its rows in any order. A row that the paper does not print is an error.
    key : str or sequence of str
        The column or columns that identify a row in both tables.
    columns : sequence of str, or mapping of str to str
        The columns to compare; a mapping leads from the printed column to ours.
    cohort : str
        The cohort behind ``ours``, as in :func:`compare_numbers`.

    Returns
    -------
    pandas.DataFrame
        A row per printed cell: the key columns, ``quantity`` (the printed column), then ``printed, ours,
        cohort, tolerance, verdict, reason`` as in :func:`compare_numbers`. Blank printed cells are left out.

    Raises
    ------
    frame.InputError
        If a column is missing, a key is there twice, ours has a row that is not printed, or a value has the
        wrong shape.
    """
    import pandas as pd

    keys = [key] if isinstance(key, str) else list(key)
    names = dict(columns) if isinstance(columns, Mapping) else {label: label for label in columns}
    _check_frames(printed, ours, keys, names)
    found = {_key_of(row, keys): row for row in ours.to_dict("records")}
    rows = []
    for line in printed.to_dict("records"):
        identity = _key_of(line, keys)
        match = found.pop(identity, None)
        for label, own in names.items():
            if _is_missing(line[label]) or str(line[label]) == "":
                continue
            value = None if match is None else match[own]
            absent = "ours has no such row" if match is None else ""
            where = f"{' '.join(identity)}, {label}"
            compared = _compare(str(line[label]), value, cohort, absent, where)
            rows.append({**dict(zip(keys, identity, strict=True)), "quantity": label, **compared})
    if found:
        raise InputError(f"Our table has a row that the paper does not print: {' '.join(next(iter(found)))}.")
    return pd.DataFrame(rows)


def summary(frame: pd.DataFrame) -> str:
    """Say in one line how a comparison came out.

    Parameters
    ----------
    frame : pandas.DataFrame
        The result of :func:`compare_numbers` or :func:`compare_table`.

    Returns
    -------
    str
        For example ``"33 printed numbers: 32 equal, 1 differs (cohort: published record)"``.
    """
    parts = [
        f"{count} {verdict}" for verdict in VERDICTS if (count := int((frame["verdict"] == verdict).sum()))
    ]
    cohorts = ", ".join(dict.fromkeys(str(name) for name in frame["cohort"]))
    return f"{len(frame)} printed numbers: {', '.join(parts)} (cohort: {cohorts})"


def _compare(printed: str, ours: Value, cohort: str, reason: str, where: str) -> dict[str, object]:
    row: dict[str, object] = {"printed": printed, "ours": ours, "cohort": cohort, "tolerance": float("nan")}
    if ours is None or _is_missing(ours):
        absent = reason or ("no value was given" if ours is None else "our value is not estimable")
        return row | {"ours": None, "verdict": "not computed", "reason": absent}
    if cohort not in PAPER_COHORTS:
        return row | {
            "verdict": "other cohort",
            "reason": f"computed on {cohort}; printed for the paper's own data",
        }
    try:
        outcome = agreement(printed, ours)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    return row | {
        "tolerance": outcome.tolerance,
        "verdict": "equal" if outcome.equal else "differs",
        "reason": outcome.reason,
    }


def _printed_at(target: str, printed: str, where: str) -> str | None:
    """Return the printed text at the target, or None when the target does not print this number."""
    for note in re.findall(r"\(([^)]*)\)", where):
        other = re.fullmatch(r"(.+) prints (.+)", note)
        if other and target in _places(other[1]):
            return other[2]
    return printed if target in _places(re.sub(r"\([^)]*\)", "", where)) else None


def _places(where: str) -> set[str]:
    """Every name under which a place can be asked for: 'Figure 9e' is also 'Figure 9'."""
    places = set()
    for segment in where.split(";"):
        place = segment.strip()
        numbered = re.match(r"(Supplementary )?(Figure|Table|Note)s? (\d+[a-z]?(?: and \d+[a-z]?)*)", place)
        if numbered is None:
            places |= {place, place.partition(",")[0]}
            continue
        for label in numbered[3].split(" and "):
            name = f"{numbered[1] or ''}{numbered[2]} {label}"
            places |= {name, name.rstrip("abcdefghijklmnopqrstuvwxyz")}
    return places


def _check_frames(
    printed: pd.DataFrame, ours: pd.DataFrame, keys: Sequence[str], names: Mapping[str, str]
) -> None:
    for owner, frame, labels in (("printed", printed, names.keys()), ("our", ours, names.values())):
        missing = [label for label in (*keys, *labels) if label not in frame.columns]
        if missing:
            raise InputError(f"The {owner} table has no column {missing[0]!r}.")
        if frame.duplicated(list(keys)).any():
            twice = frame.loc[frame.duplicated(list(keys)), list(keys)].iloc[0].astype(str)
            raise InputError(f"The {owner} table has the row {' '.join(twice)} twice.")


def _key_of(row: Mapping[Any, Any], keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(row[label]) for label in keys)


def _is_missing(value: object) -> bool:
    import pandas as pd

    return value is pd.NA or value is None or (isinstance(value, float) and value != value)

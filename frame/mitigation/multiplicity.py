"""Tests of a comparison that are corrected together, and the smallest q that resamples can give.

Three kinds of tests, in families of their own:

* paired changes: one family over methods, attributes and measures;
* exceedances of the reference: before mitigation the attributes within a measure, exactly as in an audit of
  the scores, and after it the methods and attributes within a measure, so that the verdict on the unmitigated
  head does not depend on how many methods stand beside it;
* exceedances of the achievable difference: attributes and measures, for each place of choice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from frame.inference.families import SAME_TEST, correct, family_of
from frame.mitigation.achievable import UNMITIGATED
from frame.mitigation.contract import FITTED
from frame.mitigation.judged import REFITTED

__all__ = ["correct_achievable", "correct_rows", "smallest_q_note"]

_NAN: Final = math.nan


def correct_rows(rows: Sequence[dict[str, Any]], alpha: float) -> None:
    """Add q, family and verdict of changes and exceedances to the rows of methods, in place.

    Parameters
    ----------
    rows : sequence of dict
        With ``attribute, method, measure, status, change_p, exceedance`` and the paired interval.
    alpha : float
        Level after correction.
    """
    # No improvement is claimed from a degenerate fit, and the refitted head is no method.
    kept = [row for row in rows if row["status"] == FITTED and row["method"] != REFITTED]
    _correct(kept, "change", alpha, [family_of("mitigation change") for _ in kept])
    for row in kept:
        if "changes" in row:
            row["changes"] = row["changes"] and _excludes_zero(row)
    families = [
        family_of("scores", measure=row["measure"]) + ("" if row["method"] == UNMITIGATED else ": methods")
        for row in kept
    ]
    _correct(kept, "exceedance", alpha, families)


def correct_achievable(rows: Sequence[dict[str, Any]], alpha: float) -> None:
    """Add q, family and verdict of the exceedances to the rows of what is achievable, in place.

    Parameters
    ----------
    rows : sequence of dict
        With ``attribute, method, measure, chosen_on, exceedance``.
    alpha : float
        Level after correction.
    """
    families = [f"{family_of('mitigation achievable')}: chosen on {row['chosen_on']}" for row in rows]
    _correct(rows, "exceedance", alpha, families)


#: For each kind of test: columns of its p, of its q, of the verdict and of the family.
_COLUMNS: Final = {
    "change": ("change_p", "change_q", "changes", "change_family"),
    "exceedance": ("exceedance", "exceedance_q", "exceeds", "exceedance_family"),
}


def _correct(rows: Sequence[dict[str, Any]], kind: str, alpha: float, families: Sequence[str]) -> None:
    p, q, verdict, family = _COLUMNS[kind]
    tested = [(row, name) for row, name in zip(rows, families, strict=True) if _is_tested(row, p)]
    if not tested:
        return
    import pandas as pd

    table = pd.DataFrame(
        {
            "family": [name for _, name in tested],
            "test": [_test(row) for row, _ in tested],
            "p": [float(row[p]) for row, _ in tested],
        }
    )
    corrected = correct(table, test="test")
    for (row, name), value in zip(tested, corrected["p_fdr"], strict=True):
        row[q], row[verdict], row[family] = float(value), bool(value < alpha), name


def _is_tested(row: Mapping[str, Any], p: str) -> bool:
    value = row.get(p)
    return value is not None and not math.isnan(float(value))


def _test(row: Mapping[str, Any]) -> str:
    """Name of a test; the two sides of one count once."""
    measure = SAME_TEST.get(row["measure"], row["measure"])
    return "\x1f".join((row["attribute"], row["method"], measure))


def _excludes_zero(row: Mapping[str, Any]) -> bool:
    """Whether the paired interval excludes 0: what is called a change must not contradict its interval."""
    return bool(row["change_lo"] > 0.0 or row["change_hi"] < 0.0)


def smallest_q_note(rows: Sequence[Mapping[str, Any]], resamples: int, alpha: float) -> tuple[str, ...]:
    """How many changes are corrected together and the smallest q one of them can reach alone.

    Parameters
    ----------
    rows : sequence of mapping
        After :func:`correct_rows`.
    resamples : int
        The smallest p is 1 / (resamples + 1).
    alpha : float
        Level after correction.

    Returns
    -------
    tuple of str
        One sentence, or none without a test.
    """
    size = len({_test(row) for row in rows if "change_q" in row})
    if not size:
        return ()
    smallest = min(1.0, size / (resamples + 1))
    tests = "1 paired change is" if size == 1 else f"{size:,} paired changes are"
    said = (
        f"{tests} corrected together; with {resamples:,} resamples the smallest q that one of them can reach "
        f"alone is {smallest:.3g}"
    )
    if smallest < alpha:
        return (f"{said}.",)
    enough = math.floor(size / alpha)
    enough += size / (enough + 1) >= alpha
    return (
        f"{said}, not below {alpha:g}, so a change can only count together with others; {enough:,} resamples "
        "would let it count alone.",
    )

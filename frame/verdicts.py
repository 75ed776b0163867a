"""What an audited claim means, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

#: Measures in the order in which they are listed, and their printed names.
MEASURE_NAMES = {"auroc": "AUROC", "tpr": "TPR", "fpr": "FPR"}


def measure_name(measure: str) -> str:
    """Name of a measure as it is printed."""
    return MEASURE_NAMES.get(measure, measure)


def reading(direction: str, exceeds: Any, detectable: float, observed: float) -> str:
    """How an audit bears on what the study itself claimed.

    Parameters
    ----------
    direction : str
        ``disparity`` (the study reports one), ``caution`` (it warns against reading one, or reports
        that there is none) or empty.
    exceeds : bool or NA
        Whether the difference exceeds its reference; NA where that is not estimable.
    detectable : float
        Difference detectable with 80 % power at the claim's counts; NaN where there is none.
    observed : float
        Reported difference.

    Returns
    -------
    str
        ``supports``, ``weakens`` or ``undecided``. Non-exceedance speaks only where the counts could
        have shown a difference of the reported size.
    """
    if not isinstance(exceeds, (bool, np.bool_)):
        return "undecided"  # not estimable
    could_have_shown = not math.isnan(detectable) and detectable <= observed
    if direction == "disparity":
        return "supports" if exceeds else ("weakens" if could_have_shown else "undecided")
    if direction == "caution":
        return "weakens" if exceeds else ("supports" if could_have_shown else "undecided")
    return "undecided"


def probability(p: float) -> str:
    """A probability to three decimals, its ends spelled out."""
    if p < 0.001:
        return "<0.001"
    return ">0.999" if p > 0.999 else f"{p:.3f}"


def _frequency(p: float) -> str:
    """How often something happens, as people say it."""
    if p < 0.001:
        return "less than once in 1,000 times"
    return "nearly always" if p > 0.999 else f"{100 * p:.1f} % of the time"


def _is_yes(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_)) and bool(value)


def _dependence(row: Mapping[str, Any]) -> list[str]:
    """What else than the reported difference the verdict hangs on."""
    marks = ["how the values were rounded"] if _is_yes(row["depends_on_rounding"]) else []
    return marks + (["the score model"] if _is_yes(row["depends_on_score_model"]) else [])


def short_verdict(row: Mapping[str, Any]) -> str:
    """A row's verdict in the fewest plain words.

    Parameters
    ----------
    row : mapping
        A row of :func:`frame.audit_claims`, as a Series or a dict.
    """
    if row["status"] != "ok":
        return f"not estimable: {str(row['reason']).removeprefix('not auditable: ')}"
    if row["exceeds"]:
        words = "exceeds"
    elif row["detectable_80"] != row["detectable_80"]:
        words = "does not exceed" if row["margin"] else "does not exceed; none detectable"
    else:
        words = f"does not exceed; {row['detectable_80']:.3f} detectable"
    depends = _dependence(row)
    words += f"; depends on {' and '.join(depends)}" if depends else ""
    return words + (f"; {row['reason']}" if row["reason"] else "")


def verdict_sentence(row: Mapping[str, Any]) -> str:
    """One plain sentence for a row of :func:`frame.audit_claims`.

    Parameters
    ----------
    row : mapping
        A row, as a Series or a dict.

    Returns
    -------
    str
        What an exactly fair model would show at these counts, and how the reported difference
        compares; for a claim that does not exceed, also what the counts could have shown.
    """
    if row["status"] != "ok":
        return f"Not estimable: {str(row['reason']).removeprefix('not auditable: ')}."
    low, high = f"{row['reference_lo']:.3f}", f"{row['reference_hi']:.3f}"
    usual = f"{row['reference']:.3f} on average, 95 % between {low} and {high}"
    verdict = (
        f"{'Exceeds' if row['exceeds'] else 'Does not exceed'} (q {probability(row['q'])} after correction)"
    )
    shown, often = f"{row['observed']:.3f} or more", _frequency(row["p"])
    if row["margin"]:
        sentence = (
            f"{verdict}: a model with subgroups {row['margin'] / 2:g} below or above the common value shows "
            f"{shown} at most {often} at these counts. An exactly fair one shows {usual}."
        )
    else:
        sentence = f"{verdict}: an exactly fair model shows {shown} {often} at these counts ({usual})."
        sentence += "" if row["exceeds"] else _power_words(row)
    depends = _dependence(row)
    if depends:
        sentence += f" The verdict depends on {' and '.join(depends)}."
    if row["reason"]:
        sentence += f" Note: {row['reason']}."
    return sentence


def _power_words(row: Mapping[str, Any]) -> str:
    """What these counts could have shown, for the uncorrected test that the power is computed for."""
    detectable = row["detectable_80"]
    if detectable != detectable:
        return " These counts could not show every shift of a single subgroup with 80 % power."
    where = "lower" if row["overall"] >= detectable else "higher"
    return f" One subgroup truly {detectable:.3f} {where} would be found with 80 % power before correction."

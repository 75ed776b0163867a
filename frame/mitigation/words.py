"""What a comparison of methods found, in words, and what it does not say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from frame.audits.words import in_sentence
from frame.mitigation.achievable import UNMITIGATED
from frame.mitigation.comparison_tables import ACHIEVABLE_ROW, method_name
from frame.mitigation.contract import DEGENERATE, FITTED, NOT_FITTED
from frame.mitigation.judged import REFITTED
from frame.verdicts import probability

if TYPE_CHECKING:
    from frame.mitigation.comparison import Comparison

__all__ = [
    "achievable_words",
    "before_words",
    "caveats",
    "change_words",
    "failed_words",
    "measure_words",
    "signed",
    "summary_words",
]

_MINUS: Final = "\N{MINUS SIGN}"


def signed(value: float, decimals: int = 3) -> str:
    """A change with its sign; a true minus, and no sign where it rounds to zero."""
    shown = f"{abs(value):.{decimals}f}"
    if float(shown) == 0.0:
        return shown
    return f"{'+' if value > 0 else _MINUS}{shown}"


def interval_words(lo: float, hi: float) -> str:
    """A paired interval in brackets; empty where there is none."""
    return "" if math.isnan(lo) or math.isnan(hi) else f" [{signed(lo)}, {signed(hi)}]"


def rows_of(comparison: Comparison, attribute: str, measure: str) -> list[dict[str, Any]]:
    """Rows of one attribute and measure: the unmitigated head first, then the methods, no achievable ones."""
    table = comparison.table
    chosen = (table["attribute"] == attribute) & (table["measure"] == measure)
    chosen &= table["method"] != ACHIEVABLE_ROW
    return [{str(k): v for k, v in row.items()} for row in table[chosen].to_dict("records")]


def best_of(comparison: Comparison, attribute: str, measure: str) -> dict[str, dict[str, Any]]:
    """What is achievable for one attribute and measure, by where it was chosen."""
    table = comparison.achievable
    chosen = table[(table["attribute"] == attribute) & (table["measure"] == measure)]
    return {str(row["chosen_on"]): {str(k): v for k, v in row.items()} for row in chosen.to_dict("records")}


def is_true(value: Any) -> bool:
    """Whether a verdict is there and true; one that is missing is not."""
    import pandas as pd

    return value is not None and value is not pd.NA and value == True  # noqa: E712


def summary_words(comparison: Comparison) -> list[str]:
    """What was found over all attributes and measures, one sentence each.

    Parameters
    ----------
    comparison : Comparison
        The result.

    Returns
    -------
    list of str
    """
    table = comparison.table
    tested = table[table["changes"].notna()]
    moved = tested[tested["changes"].astype(bool)]
    smaller = moved[moved["change"] < 0]
    n_methods, n_attributes = len(comparison.methods), len(comparison.attributes)
    scope = f"{_counted(n_methods, 'method')}, {_counted(n_attributes, 'attribute')}, "
    scope += _counted(len(comparison.measures), "measure")
    said = [
        f"{len(moved)} of {len(tested)} paired changes of a difference ({scope}) are more than chance after "
        f"correction: {len(smaller)} make it smaller, {len(moved) - len(smaller)} larger."
    ]
    if len(tested) == 0:
        said = [f"No change of a difference ({scope}) could be tested."]
    costly = smaller[smaller["auroc_change"] < -comparison.settings["tolerance"]]
    if len(smaller):
        said.append(
            f"Of the {len(smaller)} smaller ones, {len(costly)} cost more than "
            f"{comparison.settings['tolerance']:g} of disease AUROC."
        )
    start = table[table["method"] == UNMITIGATED]
    judged = start[start["exceeds"].notna()]
    n_exceeding = int(judged["exceeds"].astype(bool).sum())
    if len(judged):
        said.append(
            f"Before mitigation {n_exceeding} of {len(judged)} differences exceed what an exactly fair model "
            "would show."
        )
    chosen = comparison.achievable
    ours = chosen[(chosen["chosen_on"] == "validation") & chosen["exceeds"].notna()]
    if len(ours):
        left = int(ours["exceeds"].astype(bool).sum())
        said.append(
            f"With the method that validation images choose, where at most "
            f"{comparison.settings['tolerance']:g} of their disease AUROC may be lost, {left} of {len(ours)} "
            "exceed it."
        )
    return [*said, *failed_words(comparison)]


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def failed_words(comparison: Comparison) -> list[str]:
    """One sentence for every method that was not fitted, or is degenerate."""
    said: dict[tuple[str, str, str], list[str]] = {}
    for row in comparison.methods_run.to_dict("records"):
        if row["status"] != FITTED:
            key = str(row["method"]), str(row["status"]), str(row["reason"])
            said.setdefault(key, []).append(str(row["attribute"]))
    sentences = []
    for (method, status, reason), attributes in said.items():
        where = "" if len(attributes) == len(comparison.attributes) else f" for {', '.join(attributes)}"
        what = "was not fitted" if status == NOT_FITTED else f"is {status}"
        after = "; no improvement is claimed from its scores" if status == DEGENERATE else ""
        sentences.append(f"{method_name(method)} {what}{where}: {reason}{after}.")
    return sentences


def before_words(row: Mapping[str, Any]) -> str:
    """The unmitigated difference and its reference."""
    name = in_sentence(str(row["measure"]))
    what = f"The difference in {name} between subgroups of {row['attribute']} is"
    if math.isnan(row["before"]):
        return f"{what} not estimable: {row['reason']}."
    return f"{what} {row['before']:.3f} before mitigation; {_reference_words(row)}."


def _reference_words(row: Mapping[str, Any]) -> str:
    if math.isnan(row["reference"]):
        return "no reference could be made"
    pooled = row.get("reference_method") == "pooled"
    model = "subgroups whose patients could change places" if pooled else "an exactly fair model"
    usual = f"{model} would show {row['reference']:.3f} on average"
    if not math.isnan(row["reference_lo"]):
        usual += f", 95 % between {row['reference_lo']:.3f} and {row['reference_hi']:.3f}"
    q = row["exceedance_q"]
    if math.isnan(q):
        return usual
    verdict = "so it exceeds" if is_true(row["exceeds"]) else "so it does not exceed"
    return f"{usual} ({verdict}, q {probability(q)})"


def change_words(comparison: Comparison, attribute: str, measure: str) -> str:
    """Which methods change the difference beyond chance, and at what cost."""
    rows = [r for r in rows_of(comparison, attribute, measure) if r["method"] not in (UNMITIGATED, REFITTED)]
    tested = [r for r in rows if not math.isnan(r["change_q"])]
    if not tested:
        return "No method gave a change that can be tested."
    moved = [r for r in tested if is_true(r["changes"])]
    if not moved:
        return f"None of {_counted(len(tested), 'method')} changes it by more than chance."
    parts = []
    for word, chosen in (
        ("smaller", [r for r in moved if r["change"] < 0]),
        ("larger", [r for r in moved if r["change"] > 0]),
    ):
        if chosen:
            ordered = sorted(chosen, key=lambda r: -abs(r["change"]))
            listed = "; ".join(_one_change(r) for r in ordered)
            parts.append(f"{len(chosen)} of {_counted(len(tested), 'method')} make it {word}: {listed}.")
    return " ".join(parts)


def _one_change(row: Mapping[str, Any]) -> str:
    cost = ""
    if not math.isnan(row["auroc_change"]):
        cost = f", disease AUROC {signed(row['auroc_change'])}"
    return f"{row['name']} {signed(row['change'])}{interval_words(row['change_lo'], row['change_hi'])}{cost}"


def achievable_words(comparison: Comparison, attribute: str, measure: str) -> str:
    """What is achievable, both ways, and what remains."""
    best = best_of(comparison, attribute, measure)
    paper, ours = best["test"], best["validation"]
    if not paper["method"] and not ours["method"]:
        return f"What is achievable cannot be said: {paper['reason']}."
    loss = (
        f"with a loss of at most {paper['tolerance']:g} of disease AUROC allowed on the images that chose it"
    )
    said = []
    if paper["method"]:
        said.append(f"{paper['after']:.3f} ({_by(paper)}, chosen on the test images as in the paper)")
    if ours["method"]:
        said.append(f"{ours['after']:.3f} ({_by(ours)}, chosen on the validation images)")
    words = f"Smallest difference of {_chosen_from(best)}, {loss}: {'; '.join(said)}."
    last = ours if ours["method"] else paper
    if not math.isnan(last["reference"]):
        rest = f" What remains {_remains(last)}" if last is ours else f" It {_remains(last)}"
        words += f"{rest} (reference {last['reference']:.3f}"
        words += (
            f", q {probability(last['exceedance_q'])})." if not math.isnan(last["exceedance_q"]) else ")."
        )
    return words


def _by(best: Mapping[str, Any]) -> str:
    """What was chosen, and what it costs on test."""
    if best["method"] == UNMITIGATED:
        return "unmitigated"
    return f"{best['name']}, test AUROC {signed(best['auroc'] - best['auroc_before'])}"


def _chosen_from(best: Mapping[str, Mapping[str, Any]]) -> str:
    """From how many methods, the head without mitigation among them, on test and on validation."""
    counts = {choice: int(one["n_candidates"]) for choice, one in best.items() if one["method"]}
    if len(set(counts.values())) == 1:
        return _counted(next(iter(counts.values())), "candidate")
    return " and ".join(f"{_counted(count, 'candidate')} on {choice}" for choice, count in counts.items())


def _remains(best: Mapping[str, Any]) -> str:
    import pandas as pd

    if best["exceeds"] is pd.NA or best["exceeds"] is None:
        return "has no verdict"
    if is_true(best["exceeds"]):
        return "still exceeds what an exactly fair model would show"
    return "does not exceed what an exactly fair model would show, which is not evidence of fairness"


def measure_words(comparison: Comparison, attribute: str, measure: str) -> list[str]:
    """The sentences on one attribute and measure: before, changes, what is achievable."""
    start = rows_of(comparison, attribute, measure)[0]
    if math.isnan(start["before"]):
        return [before_words(start)]
    return [
        before_words(start),
        change_words(comparison, attribute, measure),
        achievable_words(comparison, attribute, measure),
    ]


def caveats(comparison: Comparison) -> list[str]:
    """What the comparison does not say, one sentence each.

    Parameters
    ----------
    comparison : Comparison
        The result.

    Returns
    -------
    list of str
    """
    said = [
        "A smaller difference is not a better model: it can come from a better worst group or from a worse "
        "best one, so look at the groups.",
        "The reference says how large a difference chance alone makes; the remainder is no estimate of the "
        "true difference, and not exceeding is not fairness.",
        "The smallest difference that was chosen on the test images is judged on the images that chose it, "
        "so it is too small; the one chosen on validation images is not. The loss of disease AUROC is held "
        "to its limit on the images that chose; on test it can be larger.",
        "Threshold shift and Platt scaling are fitted on the validation images, where they therefore look "
        "better than they are: a choice on validation favours them.",
        "Methods that shift or calibrate the score of each group need the group of every image they are used "
        "on, also later in use; whether that is allowed or wanted is not a statistical question.",
        "It is one head on one split; other seeds, splits or encoders can give other changes.",
        "The differences after mitigation are judged by the same references as before; a method that scores "
        "groups in different ways changes what is compared.",
        "It does not say why subgroups differ: case mix, image acquisition, labels and the model are all "
        "possible causes.",
    ]
    if any(measure == "ece" for measure in comparison.measures):
        said.append(
            "The expected calibration error is biased upwards in small groups, before and after mitigation."
        )
    if comparison.settings["unit"] == "image":
        said.append(
            "No patient ids were given, so images count as independent; where patients have several images "
            "the intervals are too narrow."
        )
    return said


def listed(words: Sequence[str]) -> str:
    """Words joined by commas, the last with "and"."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"

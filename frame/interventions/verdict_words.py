"""What a verdict of step two says, in plain words, and what it does not say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from frame.audits.words import in_sentence, verdict_words
from frame.interventions.decision import (
    AUROC_LOSS,
    CONSISTENT,
    LEAST_CHANGE,
    MOVES_BOTH,
    MOVES_DECODABILITY,
    MOVES_ENTANGLEMENT,
    UNDETERMINED,
    Change,
)
from frame.mitigation.words import signed
from frame.verdicts import probability

if TYPE_CHECKING:
    from frame.interventions.verdict import Verdict

__all__ = [
    "BY_CONSTRUCTION",
    "NOT_CENTRED",
    "QUANTITY_NAMES",
    "RESPONDS",
    "caveats_of",
    "change_words",
    "headline",
    "operator_words",
    "rule_words",
    "sentences",
    "trend_words",
]

#: Stand beside every verdict.
RESPONDS: Final = (
    "The verdict says what the difference responds to when it is injected into these embeddings, not what "
    'caused the difference that was observed: "responds to", not "is caused by".'
)
BY_CONSTRUCTION: Final = (
    "Removing disease signal from the rows of some groups raises a difference almost by construction, so a "
    "rise with entanglement is weak evidence: label noise in one group or a site effect can return it too."
)
NOT_CENTRED: Final = (
    "The entanglement operator is the paper's, which is not centred: a constant added to all embeddings "
    "changes what it takes out, moves the mean of the groups that it changes, and can change the verdict."
)
#: Names of quantities, as printed.
QUANTITY_NAMES: Final[Mapping[str, str]] = {
    "difference": "difference",
    "achievable_difference": "achievable difference",
    "achievable_difference_validation": "achievable difference, chosen on validation",
    "linear_decodability": "linear decodability",
    "nonlinear_decodability": "nonlinear decodability",
    "overlap": "overlap",
    "erasure_cost": "erasure cost",
    "disease_auroc": "disease AUROC",
    "subgroup_value": "value of the group",
}


def headline(verdict: str) -> str:
    """The verdict as a short title.

    Parameters
    ----------
    verdict : str
        One of :data:`frame.interventions.decision.VERDICTS`.
    """
    return verdict[0].upper() + verdict[1:]


def change_words(one: Change) -> str:
    """A change with its interval: ``0.031 to 0.154 (+0.123, 95 % interval +0.080 to +0.166)``."""
    if one.status != "ok":
        return f"not estimable ({one.reason})"
    return (
        f"{one.before:.3f} to {one.after:.3f} (change {signed(one.change)}, 95 % interval "
        f"{signed(one.lo)} to {signed(one.hi)})"
    )


def operator_words(one: Change, majority: str) -> str:
    """What an operator does at its largest strength, as a clause.

    Parameters
    ----------
    one : Change
    majority : str
        Name of the group with +1.
    """
    if one.operator == "decodability":
        mean = f", the mean of {one.n_directions} random directions" if one.n_directions > 1 else ""
        return f"the group is made easier to read (decodability, s = {one.largest:g}{mean})"
    if one.operator == "entanglement":
        some = "direction is" if one.largest == 1 else "directions are"
        return f"{one.largest:g} disease {some} taken out of every group but '{majority}' (entanglement)"
    return (
        f"{100 * one.largest:g} % of the whitened disease direction is taken out of every group but "
        f"'{majority}' (ours, beside)"
    )


def _moved_words(one: Change, majority: str) -> str:
    """One sentence on what one operator does to the difference."""
    if one.status != "ok":
        return f"Under {one.operator} the change cannot be judged: {one.reason}."
    where = operator_words(one, majority)
    does = {"rises": "rises", "falls": "falls", "stays": "does not move"}[one.direction]
    return f"It {does} where {where}: {change_words(one)}."


def sentences(verdict: Verdict) -> list[str]:
    """The verdict in full sentences, the main one first.

    Parameters
    ----------
    verdict : Verdict

    Returns
    -------
    list of str
    """
    audit = verdict.step_one
    name = f"The difference in {in_sentence(audit.measure)} between groups of {verdict.attribute}"
    if verdict.verdict == CONSISTENT:
        return [
            f"Step one: {verdict_words(audit)}",
            "There is nothing to explain, and step two was not run. That is not evidence of fairness.",
        ]
    if not verdict.decided:
        return [f"{_reasons(verdict)} Step two was not run."]
    changes = verdict.decided
    first = {
        MOVES_ENTANGLEMENT: f"{name} responds to entanglement, not to decodability.",
        MOVES_DECODABILITY: f"{name} responds to decodability, not to entanglement.",
        MOVES_BOTH: f"{name} responds to both decodability and entanglement.",
        UNDETERMINED: f"What the {name[4:]} responds to is undetermined. {_reasons(verdict)}",
    }[verdict.verdict]
    said = [first]
    said += [_moved_words(changes[name], verdict.majority) for name in ("entanglement", "decodability")]
    held = verdict.precondition
    if held is not None and held.holds:
        said.append(
            f"The disease AUROC falls from {change_words(held.change)} at the largest k, so the entanglement "
            "test may speak."
        )
    if "whitened entanglement" in changes:
        beside = _moved_words(changes["whitened entanglement"], verdict.majority)
        said.append(f"Beside it, and not deciding: {beside[0].lower()}{beside[1:]}")
    low, high = audit.reference.interval if audit.reference is not None else (math.nan, math.nan)
    if audit.reference is not None:
        said.append(
            f"Step one: the observed difference {audit.observed:.3f} is larger than an exactly fair model "
            f"shows at these counts ({audit.reference.mean:.3f} on average, 95 % between {low:.3f} and "
            f"{high:.3f}; p {probability(audit.p)})."
        )
    return said


def _reasons(verdict: Verdict) -> str:
    """The reasons as one sentence."""
    said = "; ".join(reason.removesuffix(".") for reason in verdict.reasons)
    return f"{said[:1].upper()}{said[1:]}."


def rule_words() -> str:
    """The rule of step two."""
    return (
        "An operator moves the difference when the change from strength 0 to the largest exceeds "
        f"{LEAST_CHANGE:.3f} and its 95 % interval over paired resamples of patients excludes 0. The "
        f"entanglement test speaks only where the disease AUROC falls by more than {AUROC_LOSS:.3f} at the "
        "largest k and that interval excludes 0."
    )


def caveats_of(verdict: Verdict) -> tuple[str, ...]:
    """What the verdict does not say, one sentence each.

    Parameters
    ----------
    verdict : Verdict

    Returns
    -------
    tuple of str
    """
    said = [RESPONDS]
    if verdict.decided:
        said += [BY_CONSTRUCTION, NOT_CENTRED]
    said.append(
        "The remainder (observed difference less the reference) is not an estimate of the true difference, "
        "and no part of it is attributed to a cause."
    )
    if verdict.verdict == CONSISTENT:
        said.append("Not exceeding is not fairness: the counts may be too small to show a difference.")
    if verdict.verdict == UNDETERMINED and verdict.decided:
        said.append("Undetermined is not a finding that neither cause plays a part.")
    settings = verdict.settings
    if verdict.decided:
        said.append(
            f"The signs depend on the majority, here '{verdict.majority}': with another majority, or without "
            "a group that is mostly a label for missing data, the answer may be another; show both."
        )
        if settings["scores_given"]:
            said.append(
                "Step one audits the scores that were given; step two starts from a linear head on the "
                "embeddings, whose difference is another one: "
                f"{verdict.decided['entanglement'].before:.3f} against {verdict.step_one.observed:.3f}."
            )
        said.append(
            "Every interval of a difference is no test against zero: a largest minus a smallest value lies "
            "above zero even for an exactly fair model."
        )
        said.append(
            "Intervals resample the test patients; the head, the disease directions and the training images "
            "are taken as they are."
        )
        if not settings["methods"]:
            said.append("The achievable difference was not computed: no mitigation method was asked for.")
        if not settings["geometry"]:
            said.append("Decodability, overlap and erasure cost were not computed.")
        elif not settings["nonlinear"]:
            said.append("The nonlinear decodability was not computed.")
    if settings["unit"] != "patient":
        said.append(
            "The unit is the image, because no patient id was given. If patients have several images, the "
            "reference is too small and the intervals are too narrow."
        )
    if settings["excluded"]:
        names = ", ".join(f"'{name}'" for name in settings["excluded"])
        said.append(f"It says nothing about the excluded groups ({names}).")
    left_out = [str(g) for g in verdict.step_one.table.loc[~verdict.step_one.table["evaluable"], "group"]]
    if left_out:
        said.append(
            f"{len(left_out)} of {len(verdict.levels)} groups cannot be evaluated on test and take no part "
            "in the difference."
        )
    return tuple(said)


def trend_words(rows: Sequence[Mapping[Any, Any]]) -> list[str]:
    """The paper's trend test, and why it cannot decide here.

    Parameters
    ----------
    rows : sequence of mapping
        Rows of :attr:`frame.interventions.verdict.Verdict.trend`.

    Returns
    -------
    list of str
    """
    said = []
    for row in rows:
        if row["status"] != "ok":
            said.append(f"{headline(str(row['operator']))}: no trend, as {row['reason']}.")
            continue
        said.append(
            f"{headline(str(row['operator']))}: Spearman's correlation with strength {row['rho']:.2f}, p "
            f"{probability(row['p'])} over {row['n_strengths']} strengths."
        )
    smallest = {int(row["n_strengths"]): float(row["smallest_p"]) for row in rows if row["status"] == "ok"}
    if smallest:
        least = _and([_smallest_words(*one) for one in sorted(smallest.items())])
        said.append(
            "The paper decides by this test. However clear the trend of one unit is, its p cannot be "
            f"expected below {least}, and it reads one number at each strength and not the error of that "
            "number. So it stands beside and decides nothing."
        )
    elif said:
        said.append("The paper decides by this test, which stands beside and decides nothing here.")
    return said


def _smallest_words(n_strengths: int, smallest: float) -> str:
    """The smallest possible p over so many strengths, one-sided too where it is two of the n! orders."""
    orders = round(1 / smallest)
    one_sided = f" (1/{2 * orders:,} one-sided)" if 2 * orders == math.factorial(n_strengths) else ""
    return f"1/{orders:,} over {n_strengths} strengths{one_sided}"


def _and(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"

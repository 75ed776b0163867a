"""What an audit of scores means, in words, and what it does not say."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from frame.audits.comparisons import ACCURACY
from frame.audits.power import MOST_SUBGROUPS
from frame.audits.resampled import ECE_BIASED
from frame.inference.families import SAME_TEST
from frame.measures.registry import MEASURES
from frame.verdicts import probability

if TYPE_CHECKING:
    from frame.audits.result import Audit

__all__ = ["does_not_say", "in_sentence", "short_words", "test_words", "verdict_words"]

#: Measure names inside a sentence.
_IN_SENTENCE = {
    "auroc": "AUROC",
    "tpr": "true positive rate",
    "fpr": "false positive rate",
    "fnr": "false negative rate",
    "specificity": "specificity",
    "accuracy": "accuracy",
    "ppv": "positive predictive value",
    "npv": "negative predictive value",
    "ece": "expected calibration error",
    "brier": "Brier score",
    "auprc": "average precision",
}
#: A flag that begins so says that one subgroup alone makes the range.
RULED = "range ruled by group"
NOT_FAIRNESS = "consistent with exact fairness at these counts; that is not evidence of fairness"
NOT_EXCHANGEABILITY = (
    "consistent with subgroups whose patients could change places; that is not evidence of fairness"
)

_LAWS = {
    "calibrated": "sampling variances from the scores, pooled over subgroups, {unit}s as units",
    "calibrated-balanced": (
        "sampling variances from the scores, pooled over subgroups of which a large one counts as 31 "
        "{unit}s, {unit}s as units"
    ),
    "delong": "each subgroup's own DeLong variance, images as units",
    "obuchowski": "each subgroup's own Obuchowski variance, {unit}s as units",
    "hanley-mcneil": "Hanley-McNeil standard errors from the counts, images as units",
    "binormal": "binormal variances (ratio of standard deviations 1.25) from the counts, images as units",
    "binomial": "binomial, from the counts, images as units",
    "pooled": "subgroup membership permuted over {unit}s, those with a positive image apart from the others",
}


def in_sentence(measure: str) -> str:
    """Name of a measure inside a sentence."""
    return _IN_SENTENCE[measure]


def test_words(audit: Audit) -> str:
    """The test, its unit and its direction."""
    margin = audit.margin
    tolerated = f", true differences up to {margin:g} tolerated" if margin else ""
    exactly = "simulated as in the paper (2,000 draws)" if audit.protocol == "paper" else "computed exactly"
    how = "2,000 permutations" if audit.method == "pooled" else exactly
    return (
        f"{audit.method}: {_LAWS[audit.method].format(unit=audit.unit)}; {how}; one-sided (only larger "
        f"differences count){tolerated}, level {audit.alpha:g}"
    )


def verdict_words(audit: Audit, unnamed: frozenset[str] = frozenset()) -> str:
    """Verdict on one audit in plain words: the difference, what a fair model shows, what could be found.

    Parameters
    ----------
    audit : Audit
        The audit.
    unnamed : frozenset of str
        Subgroups whose value must not be said.

    Returns
    -------
    str
    """
    if audit.reference is None or math.isnan(audit.observed):
        return f"Not estimable: {audit.reason}."
    if audit.status != "ok":
        model = "An exactly fair model" if audit.method != "pooled" else "Membership that does not matter"
        return (
            f"No verdict: {audit.reason}. {_difference_words(audit, unnamed)}. {model} would "
            f"show {audit.reference.mean:.3f} on average, as far as that can be told."
        )
    low, high = audit.reference.interval
    usual = f"{audit.reference.mean:.3f} on average, 95 % between {low:.3f} and {high:.3f}"
    often = f"p {probability(audit.p)}"
    if audit.family_size > 1:
        often += f", q {probability(audit.q)} after correction over {audit.family_size} audits"
    difference = _difference_words(audit, unnamed)
    if audit.method == "pooled":
        model = "it would be if membership did not matter (permuted)"
    elif audit.margin:
        model = f"a model whose subgroups truly differ by up to {audit.margin:g} would show at these counts"
    else:
        model = "an exactly fair model would show at these counts"
    if audit.margin:
        usual = f"an exactly fair one {usual}"
    if audit.exceeds:
        sentence = f"{difference}, is larger than {model} ({usual}; {often})."
    else:
        consistent = NOT_EXCHANGEABILITY if audit.method == "pooled" else NOT_FAIRNESS
        if audit.margin:
            consistent = (
                f"consistent with true differences of up to {audit.margin:g} at these counts; "
                "that is not evidence that they are so small"
            )
        sentence = f"{difference}, is {consistent} ({usual}; {often}).{_power_words(audit)}"
    return sentence + _heterogeneity_words(audit)


def _difference_words(audit: Audit, unnamed: frozenset[str]) -> str:
    where = f" within {audit.within} {audit.stratum}" if audit.stratum else ""
    table = audit.table[audit.table["evaluable"]]
    values = table["value"].to_numpy()
    low, high = int(values.argmin()), int(values.argmax())
    ends = f"{table['group'].iloc[low]} {values[low]:.3f} to {table['group'].iloc[high]} {values[high]:.3f}"
    hidden = {str(table["group"].iloc[low]), str(table["group"].iloc[high])} & unnamed
    shown = f"{audit.observed:.3f}" if hidden else f"{audit.observed:.3f} ({ends})"
    name = in_sentence(audit.measure)
    return f"The difference in {name} between subgroups of {audit.attribute}{where}, {shown}"


def _power_words(audit: Audit) -> str:
    detectable = audit.detectable
    if math.isnan(detectable):
        if audit.method == "pooled" or audit.margin:
            return " What these counts could have shown is not computed for this test."
        if int(audit.table["evaluable"].sum()) > MOST_SUBGROUPS:
            return f" What these counts could have shown is not computed for over {MOST_SUBGROUPS} subgroups."
        return " These counts could not show every shift of a single subgroup with 80 % power."
    # FNR is tested as TPR, so the same shift has the other direction.
    mirrored = audit.measure in SAME_TEST
    tested = 1.0 - audit.overall if mirrored else audit.overall
    where = "lower" if (tested >= detectable) != mirrored else "higher"
    return (
        f" One subgroup truly {detectable:.3f} {where} than the others would have been found with 80 % "
        f"power in a single test at level {audit.alpha:g}, without correction; a smaller difference "
        "may be there."
    )


def _heterogeneity_words(audit: Audit) -> str:
    p, error = audit.p_heterogeneity, audit.p_heterogeneity_error
    if math.isnan(p):
        return ""
    shown = f"p(Q) {probability(p)}, uncorrected, Monte Carlo error {error:.1g}"
    if audit.margin:
        return f" The heterogeneity of all subgroups is another test, which tolerates no margin ({shown})."
    if p < audit.alpha and not audit.exceeds:
        ruled = any(flag.startswith(RULED) for flag in audit.flags)
        why = "the range is ruled by the smallest subgroup, so look" if ruled else "look"
        but = "But the subgroups differ among each other by more than chance"
        return f" {but} ({shown}): {why} at every subgroup."
    if p >= audit.alpha and audit.exceeds:
        return f" The heterogeneity of all subgroups, a test of the same fairness, does not exceed ({shown})."
    return f" The heterogeneity of all subgroups agrees ({shown})."


def short_words(audit: Audit) -> str:
    """The verdict in the fewest plain words, for a table."""
    if audit.status != "ok":
        return audit.reason if audit.reason.startswith("reference") else f"not estimable: {audit.reason}"
    if audit.exceeds:
        words = "exceeds"
    elif math.isnan(audit.detectable):
        words = "does not exceed"
    else:
        words = f"does not exceed; {audit.detectable:.3f} detectable"
    heterogeneous = not audit.margin and audit.p_heterogeneity < audit.alpha
    if heterogeneous and not audit.exceeds:
        words += f"; but heterogeneous, p(Q) {probability(audit.p_heterogeneity)} uncorrected"
    return words


def does_not_say(audit: Audit) -> tuple[str, ...]:
    """What the result does not say, one sentence each.

    Parameters
    ----------
    audit : Audit
        The audit, whatever its status.

    Returns
    -------
    tuple of str
    """
    said = [
        "It does not say why subgroups differ, or who is at fault: case mix, image acquisition, labels and "
        "the model are all possible causes.",
        "The remainder is not an estimate of the true difference, and the share is not a decomposition of "
        "the observed one into chance and the rest.",
    ]
    if audit.status == "ok" and not audit.exceeds:
        said.insert(0, "Not exceeding is not fairness: the counts may be too small to show a difference.")
    left_out = [str(g) for g in audit.table.loc[~audit.table["evaluable"], "group"]]
    if left_out:
        said.append(
            f"It says nothing about {len(left_out)} of {len(audit.table)} subgroups that are not estimable."
        )
    if not audit.patients_given:
        said.append(
            "The unit is the image, because no patient id was given. If patients have several images, the "
            "reference is too small and a difference exceeds too easily."
        )
    if MEASURES[audit.measure].reads == "decisions":
        said.append("It holds for this threshold; at another one the difference may be another.")
    if audit.measure == "accuracy" and audit.method != "pooled":
        said.append(f"It does not say that TPR or FPR differ: {ACCURACY}.")
    if audit.measure == "ece":
        said.append(
            f"{ECE_BIASED}, and so are the worst value, the contrasts and the observed difference; there "
            "is no interval of the true difference."
        )
    if audit.method == "pooled":
        said.append(
            f"It tests whether {audit.unit}s could change places between subgroups, which is more than an "
            "equal measure: another case mix or a shift of the scores can exceed by itself."
        )
    said.append("It takes labels and subgroups as they were recorded.")
    said.append(
        "The worst subgroup was chosen on the same data; its interval and contrasts are not corrected for "
        "that."
    )
    return tuple(said)

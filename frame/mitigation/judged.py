"""Judge scores on test: differences before and after, paired intervals, references, worst groups.

All methods of a comparison are read on the same images, those whose group is known, and on the same resamples
of their patients, so that a change is paired.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pandas as pd

from frame.audits.one_audit import audit_one
from frame.audits.result import Audit
from frame.audits.settings import check_settings
from frame.inference.bootstrap_result import BootstrapResult
from frame.inference.resampling import bootstrap
from frame.measures.attributes import Attribute
from frame.measures.differences import max_min_difference, worst_group
from frame.measures.registry import MEASURES
from frame.measures.rows import ScoredRows
from frame.measures.subgroups import subgroup_table
from frame.measures.thresholds import Threshold, resolve_threshold
from frame.measures.values import measure_value
from frame.mitigation.achievable import UNMITIGATED
from frame.mitigation.contract import FITTED, Scores

__all__ = ["NOT_ESTIMABLE", "REFITTED", "Arm", "Judged", "Judging", "judge", "known_rows"]

#: The unmitigated head, fitted again on the training images whose group is known.
REFITTED: Final = "unmitigated_known_groups"
NOT_ESTIMABLE: Final = "not estimable"
_NAN: Final = math.nan


@dataclass(frozen=True, eq=False)
class Arm:
    """One set of scores to judge: the unmitigated head or a method, fitted or not.

    Attributes
    ----------
    name : str
        ``unmitigated``, :data:`REFITTED` or the name of a method.
    validation, test : Scores or None
        Of the images whose group is known, in the order of the split; None where there are no scores.
    status, reason, flags, groups, facts
        As in :class:`frame.mitigation.contract.Outcome`.
    """

    name: str
    validation: Scores | None
    test: Scores | None
    status: str = FITTED
    reason: str = ""
    flags: tuple[str, ...] = ()
    groups: tuple[Mapping[str, Any], ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Judging:
    """How scores are judged; see :func:`frame.mitigation.comparison.compare_methods`."""

    measures: tuple[str, ...]
    threshold: str
    resamples: int
    seed: int
    min_size: int
    threads: int | None


@dataclass(frozen=True, eq=False)
class Judged:
    """What was found for one attribute.

    Attributes
    ----------
    rows : list of dict
        One for each arm and measure, in this order.
    groups : list of dict
        One for each arm, measure and group.
    audit : Audit
        Of the unmitigated head, without its scores: counts of the groups.
    notes : tuple of str
        Sentences to print beside the numbers.
    """

    rows: list[dict[str, Any]]
    groups: list[dict[str, Any]]
    audit: Audit
    notes: tuple[str, ...]


def judge(
    attribute: str, label: str, arms: Sequence[Arm], validation: ScoredRows, test: ScoredRows, how: Judging
) -> Judged:
    """Judge the unmitigated head and every method by one attribute.

    Parameters
    ----------
    attribute, label : str
        Names.
    arms : sequence of Arm
        The unmitigated head first.
    validation, test : ScoredRows
        Labels, patients and attributes of the whole splits; their own score is not read.
    how : Judging
        Measures, threshold rule, resamples.

    Returns
    -------
    Judged
    """
    every = test.attribute(attribute)
    validation, test = known_rows(validation, attribute), known_rows(test, attribute)
    scored = {arm.name: arm for arm in arms if arm.test is not None and arm.validation is not None}
    if UNMITIGATED not in scored:
        return _without_scores(attribute, label, arms, test, every, how)
    cuts = {name: _cut(arm, validation, how.threshold) for name, arm in scored.items()}
    boots = _bootstraps(attribute, scored, cuts, test, how)
    frames = {reads: _indexed(boot) for reads, boot in boots.items()}
    rows: list[dict[str, Any]] = []
    groups: list[dict[str, Any]] = []
    kept: Audit | None = None
    before: dict[str, Audit] = {}
    for arm in arms:
        for measure in how.measures:
            reads = _reads(measure)
            if arm.name not in scored:
                rows.append(
                    {"method": arm.name, "measure": measure, "status": arm.status, "reason": arm.reason}
                )
                continue
            audit = _audit(attribute, label, arm, cuts[arm.name], test, measure, how)
            if arm.name == UNMITIGATED:
                before[measure] = audit
                kept = kept or _without_rows(audit, every)
            row = _row(arm, audit, before[measure], boots[reads], boots["ranks"], attribute, measure)
            row |= _on_validation(
                arm, validation.attribute(attribute), validation, cuts[arm.name], measure, how
            )
            rows.append(row)
            groups += _group_rows(arm, audit, boots[reads], frames[reads], attribute, measure)
    assert kept is not None
    notes = [note for boot in boots.values() for note in boot.notes if note.startswith("No patient ids")]
    return Judged(rows, groups, kept, tuple(dict.fromkeys(notes)))


def known_rows(rows: ScoredRows, attribute: str) -> ScoredRows:
    """Rows of a split whose group is known; the same object where it is known of all."""
    known = rows.attribute(attribute).codes >= 0
    return rows if bool(known.all()) else rows.take(known)


def _without_scores(
    attribute: str, label: str, arms: Sequence[Arm], test: ScoredRows, every: Attribute, how: Judging
) -> Judged:
    """Where the unmitigated head has no scores nothing is compared: rows with the reason, and the counts."""
    rows = [
        {
            "method": arm.name,
            "measure": measure,
            "status": NOT_ESTIMABLE if arm.name == UNMITIGATED else arm.status,
            "reason": arm.reason,
        }
        for arm in arms
        for measure in how.measures
    ]
    none = Scores(np.zeros(len(test)), np.full(len(test), 0.5))
    counted = Arm(UNMITIGATED, none, none)
    audit = _audit(attribute, label, counted, Threshold(_NAN, "not used"), test, "auroc", how)
    return Judged(rows, [], _without_rows(audit, every), ())


def _without_rows(audit: Audit, every: Attribute) -> Audit:
    """The audit without the scores and patients behind it, which its counts do not need.

    The images without a group are counted, so that a small number of them is hidden.
    """
    return replace(
        audit,
        n_missing=every.n_missing,
        n_missing_positive=every.n_missing_positive,
        _rows=None,
        comparison=replace(audit.comparison, detectable=_not_kept),
    )


def _not_kept() -> float:
    return _NAN


def _reads(measure: str) -> str:
    return "probabilities" if MEASURES[measure].reads == "probabilities" else "ranks"


def _cut(arm: Arm, validation: ScoredRows, rule: str) -> Threshold:
    assert arm.validation is not None
    return resolve_threshold(rule, (arm.validation.ranks, validation.labels), needed=True, binary=False)


def _bootstraps(
    attribute: str, scored: Mapping[str, Arm], cuts: Mapping[str, Threshold], test: ScoredRows, how: Judging
) -> dict[str, BootstrapResult]:
    """Ranks with thresholds, and probabilities: the same draws of patients in both."""
    found = test.attribute(attribute)
    groups = pd.Categorical.from_codes(found.codes, categories=pd.Index(found.levels))
    asked = {reads: [m for m in how.measures if _reads(m) == reads] for reads in ("ranks", "probabilities")}
    asked["ranks"] = list(dict.fromkeys(["auroc", *asked["ranks"]]))
    made = {}
    for reads, measures in asked.items():
        if not measures:
            continue
        made[reads] = bootstrap(
            {name: getattr(arm.test, reads) for name, arm in scored.items()},
            test.labels,
            {attribute: pd.Series(groups)},
            test.patients if test.patients_given else None,
            measures=measures,
            threshold={name: cut.value for name, cut in cuts.items()},
            scale="logit" if reads == "ranks" else "probability",
            resamples=how.resamples,
            seed=how.seed,
            min_size=how.min_size,
            missing="drop",
            threads=how.threads,
        )
    return made


def _indexed(boot: BootstrapResult) -> dict[tuple[str, str, str, str], dict[Any, Any]]:
    lines = boot.to_frame().to_dict("records")
    return {(r["score"], r["attribute"], r["group"], r["measure"]): r for r in lines}


def _scores_of(arm: Arm, rows: ScoredRows, split: str, measure: str) -> tuple[ScoredRows, str]:
    """Rows whose one score is that of the arm as the measure reads it, and its scale."""
    scores = getattr(arm, split)
    reads = _reads(measure)
    values = np.asarray(getattr(scores, reads), dtype=np.float64)
    scale = "logit" if reads == "ranks" else "probability"
    return replace(rows, scores={arm.name: values}, binary=False), scale


def _audit(
    attribute: str, label: str, arm: Arm, cut: Threshold, test: ScoredRows, measure: str, how: Judging
) -> Audit:
    rows, scale = _scores_of(arm, test, "test", measure)
    settings = check_settings(
        measure=measure, min_size=how.min_size, missing="drop", scale=scale, resamples=0, seed=how.seed
    )
    rows = replace(rows, attributes=(rows.attribute(attribute),))
    return audit_one(rows, attribute, arm.name, label, "", cut, settings)


def _row(
    arm: Arm,
    audit: Audit,
    before: Audit,
    boot: BootstrapResult,
    ranks: BootstrapResult,
    attribute: str,
    measure: str,
) -> dict[str, Any]:
    """Everything that one arm shows on test in one measure."""
    reference = audit.reference
    evaluable = audit.table[audit.table["evaluable"].astype(bool)]
    worst, worst_value = worst_group(audit.table, measure)
    own = boot.difference(arm.name, measure, attribute)
    flags = [*arm.flags, *audit.flags]
    if reference is not None and audit.reason:
        flags.append(f"no exceedance: {audit.reason}")
    status, reason = arm.status, arm.reason
    if status == FITTED and math.isnan(audit.observed):
        status, reason = NOT_ESTIMABLE, audit.reason
    row: dict[str, Any] = {
        "method": arm.name,
        "measure": measure,
        "status": status,
        "reason": reason,
        "n_groups": len(evaluable),
        "smallest_group": int(evaluable["n_images"].min()) if len(evaluable) else None,
        "before": before.observed,
        "after": audit.observed,
        "after_lo": own["lo"],
        "after_hi": own["hi"],
        "reference": reference.mean if reference is not None else _NAN,
        "reference_lo": reference.interval[0] if reference is not None else _NAN,
        "reference_hi": reference.interval[1] if reference is not None else _NAN,
        "reference_method": audit.method,
        "remainder": audit.remainder,
        "share": audit.share,
        "exceedance": audit.p,
        "p_heterogeneity": audit.p_heterogeneity,
        "worst_group": worst,
        "worst_value": worst_value,
        "worst_group_before": before.worst_name,
        "worst_value_before": worst_group(before.table, measure)[1],
        "auroc": float(ranks.point(arm.name, "auroc")[0]),
        "auroc_before": float(ranks.point(UNMITIGATED, "auroc")[0]),
        "threshold": audit.threshold.value,
        "threshold_source": audit.threshold.source,
    }
    if arm.name != UNMITIGATED:
        pair = (UNMITIGATED, arm.name)
        moved = boot.contrast(measure, scores=pair, attribute=attribute)
        row |= {f"change{end}": moved[of] for end, of in _ENDS}
        if moved["reason"]:
            flags.append(f"paired change: {moved['reason']}")
        lost = ranks.contrast("auroc", scores=pair)
        row |= {f"auroc_change{end}": lost[of] for end, of in _ENDS}
    row["flags"] = "; ".join(dict.fromkeys(flags))
    return row


_ENDS: Final = (("", "change"), ("_lo", "lo"), ("_hi", "hi"), ("_p", "p"))


def _on_validation(
    arm: Arm, attribute: Attribute, validation: ScoredRows, cut: Threshold, measure: str, how: Judging
) -> dict[str, float]:
    """Difference and disease AUROC on validation, as points."""
    rows, scale = _scores_of(arm, validation, "validation", measure)
    value = cut.value if MEASURES[measure].reads == "decisions" else None
    table = subgroup_table(
        rows, attribute, arm.name, measure, threshold=value, scale=scale, min_size=how.min_size
    )
    ranks = _scores_of(arm, validation, "validation", "auroc")[0].score(arm.name)
    return {
        "validation_difference": max_min_difference(table.loc[table["evaluable"].astype(bool), "value"]),
        "validation_auroc": measure_value("auroc", ranks, validation.labels, threshold=None, scale="logit"),
    }


def _group_rows(
    arm: Arm,
    audit: Audit,
    boot: BootstrapResult,
    frame: Mapping[tuple[str, str, str, str], Mapping[Any, Any]],
    attribute: str,
    measure: str,
) -> list[dict[str, Any]]:
    """Every group of the attribute under one arm, also those that are not estimable."""
    treated = {str(one.get("group")): one for one in arm.groups}
    lines = []
    for group in audit.table["group"].astype(str):
        found = frame[arm.name, attribute, group, measure]
        line: dict[str, Any] = {"method": arm.name, "measure": measure, "group": group}
        line |= {name: found[name] for name in _COUNTS}
        line |= {name: found[name] for name in ("value", "lo", "hi", "status", "reason")}
        if arm.name != UNMITIGATED:
            moved = boot.contrast(measure, scores=(UNMITIGATED, arm.name), attribute=attribute, groups=group)
            line |= {f"change{end}": moved[of] for end, of in _ENDS}
        one = treated.get(group, {})
        line["action"] = str(one.get("action", ""))
        line["action_reason"] = str(one.get("reason", ""))
        lines.append(line)
    return lines


_COUNTS: Final = ("n_images", "n_positive", "n_negative", "n_patients")

"""One audit of one score, label, attribute and measure on given rows, and the family it is corrected in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from frame.audits.comparisons import compare
from frame.audits.evaluable import EvaluableRows
from frame.audits.result import Audit, without_difference
from frame.audits.settings import Settings
from frame.inference.families import SAME_TEST, correct, family_of
from frame.measures.registry import MEASURES
from frame.measures.rows import ScoredRows, missing_note
from frame.measures.subgroups import subgroup_table
from frame.measures.thresholds import Threshold, decision_flags
from frame.measures.values import measure_value

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["audit_one", "corrected"]


def audit_one(
    rows: ScoredRows,
    attribute_name: str,
    score: str,
    label: str,
    stratum: str,
    cut: Threshold,
    settings: Settings,
    notes: tuple[str, ...] = (),
) -> Audit:
    """Audit one difference.

    Parameters
    ----------
    rows : ScoredRows
        All rows of the audit, those without a value of the attribute too.
    attribute_name, score, label, stratum : str
        What is audited.
    cut : Threshold
        Its value is NaN where no measure needs one.
    settings : Settings
        Of this measure.
    notes : tuple of str
        What is to be said of the rows beside what they say themselves.

    Returns
    -------
    Audit
        Its q is its p; see :func:`corrected`.
    """
    given = rows.attribute(attribute_name)
    note = missing_note(given, rows)
    kept = given.codes >= 0
    part = rows if bool(kept.all()) else rows.take(kept)
    attribute = part.attribute(attribute_name)
    value = None if math.isnan(cut.value) else cut.value
    reads = MEASURES[settings.measure].reads

    def subgroups_and_overall(measure: str) -> tuple[pd.DataFrame, float]:
        table = subgroup_table(
            part,
            attribute,
            score,
            measure,
            threshold=value,
            scale=settings.scale,
            min_size=settings.min_size,
        )
        overall = measure_value(measure, scores, part.labels, threshold=value, scale=settings.scale)
        return table, overall

    scores = part.score(score)
    table, overall = subgroups_and_overall(settings.measure)
    tested, tested_overall = table, overall
    if settings.measure in SAME_TEST:
        tested, tested_overall = subgroups_and_overall(SAME_TEST[settings.measure])
    levels = tuple(np.flatnonzero(table["evaluable"].to_numpy(dtype=bool)).tolist())
    if len(levels) < 2:
        comparison = without_difference(_too_few(table, len(levels)))
    else:
        evaluable = EvaluableRows(
            names=tuple(attribute.levels[g] for g in levels),
            rows=tuple(np.flatnonzero(attribute.codes == g) for g in levels),
            values=tested["value"].to_numpy(dtype=np.float64)[list(levels)],
            scores=scores,
            labels=part.labels,
            patients=part.patients,
            codes=attribute.codes,
            levels=levels,
            n_levels=len(attribute.levels),
            n_patients=part.n_patients,
            patients_given=part.patients_given,
            threshold=value,
        )
        comparison = compare(evaluable, tested_overall, settings)
    flags = list(decision_flags(scores, cut.value)) if reads == "decisions" and len(part) else []
    if flags and not rows.binary:
        flags.append("check the threshold: every score lies on one side of it; are both on the same scale?")
    flags += [f"check the groups: '{a}' and '{b}' differ only in case" for a, b in _twins(attribute.levels)]
    below = [str(g) for g in table.loc[table["below_chance"].astype(bool), "group"]]
    flags += [f"below chance: the AUROC of group '{g}' is below 0.5 and is kept as it is" for g in below]
    return Audit(
        score=score,
        label=label,
        attribute=attribute_name,
        within=rows.within.name if rows.within is not None else "",
        stratum=stratum,
        table=table,
        overall_pooled=overall,
        threshold=cut if reads == "decisions" else Threshold(math.nan, "not used"),
        n_images=len(part),
        n_positive=int(np.count_nonzero(part.labels)),
        n_patients=part.n_patients if part.patients_given else len(part),
        patients_given=part.patients_given,
        n_missing=given.n_missing,
        n_missing_positive=given.n_missing_positive,
        n_unlabelled=rows.n_unlabelled,
        n_without_score=rows.n_without_score,
        n_without_patient=rows.n_without_patient,
        notes=(*_notes(rows, note, settings), *(notes if reads == "decisions" else ())),
        settings=settings,
        comparison=comparison,
        q=comparison.p,
        family=family_of("scores", measure=settings.measure, attribute=attribute_name),
        data_flags=tuple(flags),
        _rows=part,
    )


def _twins(levels: Sequence[str]) -> list[tuple[str, str]]:
    """Neighbouring pairs of levels that are one word, but for upper and lower case."""
    spellings: dict[str, list[str]] = {}
    for level in levels:
        spellings.setdefault(level.casefold(), []).append(level)
    return [pair for same in spellings.values() for pair in pairwise(same)]


def _too_few(table: pd.DataFrame, n_evaluable: int) -> str:
    left_out = table[~table["evaluable"].astype(bool)]
    reasons = [f"{g}: {r}" for g, r in zip(left_out["group"], left_out["reason"], strict=True)]
    shown = "; ".join(reasons[:6]) + (f"; and {len(reasons) - 6} more" if len(reasons) > 6 else "")
    left = f" ({shown})" if reasons else ""
    if n_evaluable == 1:
        return f"one estimable group, and a difference needs two{left}"
    return f"no estimable group{left}"


def _notes(rows: ScoredRows, missing: str, settings: Settings) -> tuple[str, ...]:
    notes = []
    if missing:
        treated = "left out" if settings.missing == "drop" else "a subgroup of their own"
        notes.append(f"{missing.rstrip('.')}; they are {treated}.")
    if rows.within is not None and rows.within.n_missing and settings.missing == "group":
        notes.append(f"{missing_note(rows.within, rows).rstrip('.')}; they are a stratum of their own.")
    for count, what in (
        (rows.n_unlabelled, "have no label for the finding"),
        (rows.n_without_score, "have no score"),
        (rows.n_without_patient, "have no patient id"),
    ):
        if count:
            notes.append(f"{count:,} images of the input {what} and are left out.")
    return tuple(notes)


def corrected(audits: Sequence[Audit]) -> list[Audit]:
    """Correct audits within their families; all strata that they hold are families of their own.

    Parameters
    ----------
    audits : sequence of Audit
        All audits of one call.

    Returns
    -------
    list of Audit
        The same with ``q``, ``family_size``; the strata of all scores, labels and attributes together.
    """
    inside = iter(_with_family([stratum for audit in audits for stratum in audit.strata]))
    return [replace(a, strata=tuple(next(inside) for _ in a.strata)) for a in _with_family(audits)]


def _with_family(audits: Sequence[Audit]) -> list[Audit]:
    """Correct the p of audits within their families; the two sides of one test count once."""
    import pandas as pd

    if not audits:
        return []
    tests = [
        "\x1f".join((a.score, a.label, a.attribute, a.stratum, SAME_TEST.get(a.measure, a.measure)))
        for a in audits
    ]
    table = pd.DataFrame({"family": [a.family for a in audits], "test": tests, "p": [a.p for a in audits]})
    corrected = correct(table, test="test")
    made = table[table["p"].notna()].drop_duplicates(["family", "test"])
    sizes = made["family"].value_counts()
    return [
        replace(a, q=float(q), family_size=int(sizes.get(a.family, 0)))
        for a, q in zip(audits, corrected["p_fdr"], strict=True)
    ]

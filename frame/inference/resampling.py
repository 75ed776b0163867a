"""The patient bootstrap: every measure of every subgroup of every attribute and score in one pass.

Patients are drawn with replacement, all their images together, and the same draws serve everything in a
result, so that any two of its numbers can be contrasted in pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frame.errors import InputError
from frame.inference.bootstrap_result import OVERALL, BootstrapResult
from frame.inference.contrasts import FEWEST_RESAMPLES
from frame.inference.multiplicities import whole_number
from frame.inference.replicates import Sample, check_patients, sample, sample_replicates
from frame.measures.registry import MEASURES, check_measure
from frame.measures.rows import ScoredRows, are_decisions, missing_note, scored_rows
from frame.measures.subgroups import check_min_size, check_probabilities, reason_not_evaluable
from frame.measures.thresholds import Threshold, decision_flags, resolve_threshold
from frame.measures.values import measure_value

Floats = NDArray[np.float64]

#: Said of images that missing="drop" leaves out of the subgroups of an attribute.
ONLY_OVERALL = "They count overall and in no subgroup of it."
#: What was drawn.
PATIENT, IMAGE = "patient", "image (no patient ids)"
#: Goes beside every interval made without patient ids.
NO_PATIENT_IDS = (
    "No patient ids were given, so each image was resampled on its own; where a patient has several images "
    "the intervals are too narrow, so give patients= if there are ids."
)


def bootstrap(
    scores: Any,
    labels: Any,
    groups: Any,
    patients: Any = None,
    *,
    measures: str | Sequence[str] = ("auroc", "tpr", "fpr", "ece"),
    threshold: Any = None,
    validation: Any = None,
    scale: str = "probability",
    resamples: int = 1000,
    seed: int = 0,
    min_size: int = 20,
    missing: str = "error",
    intersections: bool = False,
    threads: int | None = None,
) -> BootstrapResult:
    """Resample patients and compute every measure of every subgroup in each resample.

    Parameters
    ----------
    scores, labels, groups, patients
        As in :func:`frame.measures.scored_rows`: one score or a table of several on the same images, labels
        0 and 1, one attribute or a table of several, and ids of the patients.
    measures : str or sequence of str
        Keys of :data:`frame.measures.MEASURES`.
    threshold : float, str or None
        As in :func:`frame.measures.resolve_threshold`, for measures that read decisions; one for all
        scores, or a dictionary by score.
    validation : (scores, labels), optional
        What a rule for the threshold is computed on. With several scores a table with the same names:
        every score has its own threshold.
    scale : {"probability", "logit"}
        How ECE and Brier read the scores.
    resamples : int
        At least 20.
    seed : int
        At least 0; resample b depends on the seed, b and the number of patients only.
    min_size : int
        Images a subgroup must have to be evaluated.
    missing : {"error", "group", "drop"}
        What to do with missing group values.
    intersections : bool
        Add the intersection of all attributes as one more.
    threads : int, optional
        At most this many threads; None takes what the process may use. No effect on the results.

    Returns
    -------
    BootstrapResult

    Raises
    ------
    InputError
        One sentence saying what was found and what to do; also where numba is missing.

    Notes
    -----
    The threshold is held fixed over the resamples, as it is given from outside.
    """
    names = _measure_names(measures)
    resamples = whole_number("resamples", resamples, FEWEST_RESAMPLES)
    size = check_min_size(min_size)
    rows = scored_rows(
        scores, labels, groups, patients, missing=missing, scale=scale, intersections=intersections
    )
    if any(attribute.name == OVERALL for attribute in rows.attributes):
        raise InputError(
            f"A group column is called '{OVERALL}', the name of the row for all images; rename it."
        )
    for score, values in rows.scores.items():
        for measure in names:
            check_probabilities(values, measure, scale, score)
    check_patients(rows.patients, rows.n_patients)
    thresholds = _thresholds(rows, names, threshold, validation, scale)
    members = _members(rows)
    samples = _samples(rows, members, names, thresholds, scale)
    replicates = sample_replicates(
        samples, names, rows.n_patients, resamples=resamples, seed=seed, threads=threads
    )
    shape = (len(rows.scores), len(members), len(names), resamples)
    replicates = np.ascontiguousarray(replicates.reshape(shape).swapaxes(1, 2))
    points, reasons = _points(rows, members, names, thresholds, scale, size)
    replicates[reasons != ""] = np.nan
    subgroups = _subgroups(rows, members)
    return BootstrapResult(
        subgroups=subgroups.drop(columns=["with_positive", "with_negative"]),
        scores=tuple(rows.scores),
        measures=names,
        points=points,
        replicates=replicates,
        reasons=reasons,
        patients_with_class=subgroups[["with_positive", "with_negative"]].to_numpy(dtype=np.int64).T,
        thresholds=thresholds,
        seed=int(seed),
        resamples=resamples,
        min_size=size,
        unit=PATIENT if rows.patients_given else IMAGE,
        notes=_notes(rows, names, thresholds),
    )


def _measure_names(measures: str | Sequence[str]) -> tuple[str, ...]:
    given = (measures,) if isinstance(measures, str) else tuple(measures)
    if not given:
        raise InputError(f"measures is empty; give at least one of {', '.join(MEASURES)}.")
    names = tuple(check_measure(measure).name for measure in given)
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"measures names {name!r} twice; name each once.")
    return names


def _thresholds(
    rows: ScoredRows, measures: Sequence[str], threshold: Any, validation: Any, scale: str
) -> dict[str, Threshold]:
    needed = any(MEASURES[measure].reads == "decisions" for measure in measures)
    found = {}
    for score, values in rows.scores.items():
        found[score] = resolve_threshold(
            _own(threshold, score, "threshold"),
            _own_validation(validation, score, len(rows.scores)),
            needed=needed,
            binary=scale == "probability" and are_decisions(values),
        )
    return found


def _own(given: Any, score: str, what: str) -> Any:
    """The entry of one score in a table by score; anything else is for all scores."""
    if isinstance(given, Mapping | pd.DataFrame):
        if score not in given:
            raise InputError(
                f"{what} has no entry '{score}'; give one for every score, under the same names."
            )
        return given[score]
    return given


def _own_validation(validation: Any, score: str, n_scores: int) -> Any:
    if not isinstance(validation, tuple | list) or len(validation) != 2:
        return validation
    if n_scores > 1 and not isinstance(validation[0], Mapping | pd.DataFrame):
        raise InputError(
            f"validation has one column of scores for {n_scores} scores, and each needs its own threshold; "
            "give a dictionary or a DataFrame with the same names."
        )
    return _own(validation[0], score, "validation"), validation[1]


def _members(rows: ScoredRows) -> list[NDArray[np.intp]]:
    """Rows of all images, then of every level of every attribute."""
    members = [np.arange(len(rows))]
    for attribute in rows.attributes:
        members += [np.flatnonzero(attribute.codes == level) for level in range(len(attribute.levels))]
    return members


def _samples(
    rows: ScoredRows,
    members: Sequence[NDArray[np.intp]],
    measures: Sequence[str],
    thresholds: Mapping[str, Threshold],
    scale: str,
) -> list[Sample]:
    return [
        sample(
            values[row],
            rows.labels[row],
            rows.patients[row],
            measures,
            threshold=thresholds[score].value,
            scale=scale,
        )
        for score, values in rows.scores.items()
        for row in members
    ]


def _subgroups(rows: ScoredRows, members: Sequence[NDArray[np.intp]]) -> pd.DataFrame:
    """Names and counts of all images, then of every level of every attribute."""
    names = [(OVERALL, OVERALL), *((a.name, level) for a in rows.attributes for level in a.levels)]
    lines = []
    for (attribute, group), row in zip(names, members, strict=True):
        labels, patients = rows.labels[row], rows.patients[row]
        n_positive = int(np.count_nonzero(labels))
        lines.append(
            {
                "attribute": attribute,
                "group": group,
                "n_images": len(row),
                "n_positive": n_positive,
                "n_negative": len(row) - n_positive,
                "n_patients": _distinct(patients, rows.n_patients),
                "with_positive": _distinct(patients[labels], rows.n_patients),
                "with_negative": _distinct(patients[~labels], rows.n_patients),
            }
        )
    return pd.DataFrame(lines)


def _distinct(patients: NDArray[np.int64], n_patients: int) -> int:
    seen = np.zeros(n_patients, dtype=np.bool_)
    seen[patients] = True
    return int(np.count_nonzero(seen))


def _points(
    rows: ScoredRows,
    members: Sequence[NDArray[np.intp]],
    measures: Sequence[str],
    thresholds: Mapping[str, Threshold],
    scale: str,
    min_size: int,
) -> tuple[Floats, NDArray[np.object_]]:
    """Values on the data and why there is none, by the rule of subgroup_table; (scores, measures, sets)."""
    shape = (len(rows.scores), len(measures), len(members))
    points, reasons = np.full(shape, np.nan), np.full(shape, "", dtype=np.object_)
    for s, (score, values) in enumerate(rows.scores.items()):
        for g, row in enumerate(members):
            inside, labels = values[row], rows.labels[row]
            for m, measure in enumerate(measures):
                reason = reason_not_evaluable(measure, len(row), int(np.count_nonzero(labels)), min_size)
                if not reason:
                    points[s, m, g] = measure_value(
                        measure, inside, labels, threshold=thresholds[score].value, scale=scale
                    )
                    if np.isnan(points[s, m, g]):
                        reason = f"no {'positive' if measure == 'ppv' else 'negative'} decisions"
                reasons[s, m, g] = reason
    return points, reasons


def _notes(rows: ScoredRows, measures: Sequence[str], thresholds: Mapping[str, Threshold]) -> tuple[str, ...]:
    notes = [] if rows.patients_given else [NO_PATIENT_IDS]
    for count, what in (
        (rows.n_unlabelled, "label"),
        (rows.n_without_score, "score"),
        (rows.n_without_patient, "patient id"),
    ):
        if count:
            notes.append(f"{count} images without a {what} are left out.")
    for attribute in rows.attributes:
        if attribute.n_missing:
            dropped = bool(np.any(attribute.codes < 0))
            notes.append(missing_note(attribute, rows) + (f" {ONLY_OVERALL}" if dropped else ""))
    if any(MEASURES[measure].reads == "decisions" for measure in measures):
        for score, values in rows.scores.items():
            for flag in decision_flags(values, thresholds[score].value):
                notes.append(f"'{score}': {flag} at the threshold, so its rates are alike in every subgroup.")
    return tuple(notes)

"""Scored rows: what a user gave, checked once, as plain arrays that everything else computes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frame.errors import InputError
from frame.measures.attributes import (
    Attribute,
    check_policy,
    intersection,
    missing_counts,
    read_attribute,
    refuse_missing,
)
from frame.measures.columns import (
    check_aligned,
    column,
    name_of,
    named_columns,
    read_labels,
    read_patients,
    read_scores,
)
from frame.measures.values import check_scale

__all__ = ["Attribute", "ScoredRows", "missing_note", "scored_rows", "split_within", "strata"]

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class ScoredRows:
    """Images that have a label and a score, with their patients and attributes.

    Attributes
    ----------
    scores : dict of str to ndarray of float64, shape (n,)
        One array per model, the same images in all; finite.
    labels : ndarray of bool, shape (n,)
        True where the finding is present.
    patients : ndarray of int64, shape (n,)
        0 to ``n_patients`` - 1.
    n_patients : int
    patients_given : bool
        False where no ids were given and each image counts as its own patient.
    attributes : tuple of Attribute
        In the given order, the intersection last.
    binary : bool
        Whether all scores of all models are 0 or 1: decisions, not scores.
    n_unlabelled, n_without_score, n_without_patient : int
        Images left out for want of a label, of a score, of a patient id (each counted once, in this order).
    within : Attribute, optional
        The strata of a stratified audit.
    """

    scores: dict[str, Floats]
    labels: Booleans
    patients: Integers
    n_patients: int
    patients_given: bool
    attributes: tuple[Attribute, ...]
    binary: bool
    n_unlabelled: int
    n_without_score: int
    n_without_patient: int = 0
    within: Attribute | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def attribute(self, name: str) -> Attribute:
        """The attribute of this name; an InputError lists the names there are."""
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise InputError(
            f"attribute is {name!r}; allowed are {', '.join(repr(a.name) for a in self.attributes)}."
        )

    def score(self, name: str) -> Floats:
        """The scores of this model; an InputError lists the names there are."""
        if name in self.scores:
            return self.scores[name]
        raise InputError(f"score is {name!r}; allowed are {', '.join(repr(s) for s in self.scores)}.")

    def take(self, kept: Booleans) -> ScoredRows:
        """The rows where ``kept`` is True.

        All levels stay, patients are numbered anew, and the counts of images left out remain those of the
        whole input.
        """
        codes, uniques = pd.factorize(self.patients[kept])
        return ScoredRows(
            scores={name: scores[kept] for name, scores in self.scores.items()},
            labels=self.labels[kept],
            patients=np.asarray(codes, dtype=np.int64),
            n_patients=len(uniques),
            patients_given=self.patients_given,
            attributes=tuple(a.take(kept, self.labels) for a in self.attributes),
            binary=self.binary,
            n_unlabelled=self.n_unlabelled,
            n_without_score=self.n_without_score,
            n_without_patient=self.n_without_patient,
            within=self.within.take(kept, self.labels) if self.within is not None else None,
        )


def scored_rows(
    scores: Any,
    labels: Any,
    groups: Any,
    patients: Any = None,
    *,
    missing: str = "error",
    scale: str = "probability",
    intersections: bool = False,
    within: Any = None,
) -> ScoredRows:
    """Check what a user gave and bring it into arrays.

    Parameters
    ----------
    scores : array_like of float, shape (n,), or dict or DataFrame of such columns
        One score per image, higher meaning more likely present; several columns are several models on the
        same images. All 0 or 1: decisions. Scores outside [0, 1] are fine for ranks and thresholds.
    labels : array_like, shape (n,)
        0 and 1 or True and False, in any dtype that equals them. A missing label means that the image has
        none for the finding: it is left out and counted.
    groups : array_like, shape (n,), or dict or DataFrame of several attributes
        Values of any kind. ``Unknown`` is a level of its own; None, NaN, ``pandas.NA``, blanks and the text
        ``nan`` are missing. A Categorical keeps its order and its unused levels.
    patients : array_like, shape (n,), optional
        Ids of any kind, compared as they are. Without them each image is its own patient.
    missing : {"error", "group", "drop"}
        What to do with missing group values: an error, a subgroup ``(missing)``, or left out of that
        attribute and counted. ``drop`` also leaves out, and counts, images without a score or patient id.
    scale : {"probability", "logit"}
        What the scores are. Logits are never read as decisions.
    intersections : bool
        Add one attribute made of all the given ones, with levels such as ``F & <40``.
    within : array_like, shape (n,), or str, optional
        Strata; a name takes that column out of ``groups``. See :func:`split_within`.

    Returns
    -------
    ScoredRows

    Raises
    ------
    InputError
        One sentence saying what was found, where, what is allowed and what to do.

    Notes
    -----
    Levels are those of all rows given, so a subgroup whose images all lack a label stays in every table,
    with no images. Missing values are counted among the images that have a label, a score and a patient id.
    """
    check_policy(missing)
    check_scale(scale)
    models = named_columns(scores, "scores", "score")
    group_columns = named_columns(groups, "groups", "group")
    stratum, group_columns = _take_within(within, group_columns)
    label_column = column(labels, "labels")
    patient_column = None if patients is None else column(patients, "patients")
    given = {_called("scores", name, models): series for name, series in models.items()}
    given["labels"] = label_column
    given |= {_called("groups", name, group_columns): series for name, series in group_columns.items()}
    if stratum is not None:
        given["within"] = stratum[1]
    if patient_column is not None:
        given["patients"] = patient_column
    n = check_aligned(given)

    every = [read_attribute(series, name, missing) for name, series in group_columns.items()]
    if intersections:
        every.append(intersection(every))
    strata_column = None if stratum is None else read_attribute(stratum[1], stratum[0], missing)
    truth, kept = read_labels(label_column, (every[0].codes, every[0].levels))
    n_unlabelled = n - int(kept.sum())
    if not kept.any():
        raise InputError(f"labels are missing for all {n} images; give 0 or 1 where the finding is known.")
    values = {name: read_scores(series, _called("scores", name, models)) for name, series in models.items()}
    without_score = _without_score(values, kept, missing, models)
    kept = kept & ~without_score
    identity = None if patient_column is None else read_patients(patient_column)
    n_without_patient = 0
    if identity is not None:
        without_patient = kept & (identity[0] < 0)
        n_without_patient = int(without_patient.sum())
        if n_without_patient and missing != "drop":
            raise InputError(
                f"patients: the id is missing for {n_without_patient} of {int(kept.sum())} images; fill it "
                "in, or leave those images out with missing='drop'."
            )
        kept = kept & ~without_patient
    if not kept.any():
        raise InputError("no image has a label, a score and a patient id; there is nothing to compute on.")

    final_labels = truth[kept]
    attributes = [attribute.take(kept, truth) for attribute in every]
    strata_kept = None if strata_column is None else strata_column.take(kept, truth)
    for attribute in attributes if strata_kept is None else [*attributes, strata_kept]:
        refuse_missing(attribute, final_labels, missing)
    final_scores = {name: array[kept] for name, array in values.items()}
    codes, n_patients = _patient_codes(identity, kept)
    return ScoredRows(
        scores=final_scores,
        labels=final_labels,
        patients=codes,
        n_patients=n_patients,
        patients_given=identity is not None,
        attributes=tuple(attributes),
        binary=scale == "probability" and all(are_decisions(s) for s in final_scores.values()),
        n_unlabelled=n_unlabelled,
        n_without_score=int(without_score.sum()),
        n_without_patient=n_without_patient,
        within=strata_kept,
    )


def are_decisions(scores: Floats) -> bool:
    """Whether every score is 0 or 1."""
    return bool(np.all((scores == 0.0) | (scores == 1.0)))


def _called(kind: str, name: str, columns: dict[str, pd.Series]) -> str:
    return kind if len(columns) == 1 and name in ("score", "group") else f"{kind} '{name}'"


def _take_within(
    within: Any, groups: dict[str, pd.Series]
) -> tuple[tuple[str, pd.Series] | None, dict[str, pd.Series]]:
    """Name and column of the strata, and the group columns without it."""
    if within is None:
        return None, groups
    if isinstance(within, str):
        if within not in groups:
            raise InputError(
                f"within is '{within}'; the group columns are {', '.join(repr(g) for g in groups)}."
            )
        if len(groups) == 1:
            raise InputError(f"within is '{within}', the only group column; give another one to compare.")
        return (within, groups[within]), {g: series for g, series in groups.items() if g != within}
    series = column(within, "within")
    return (name_of(series, "within"), series), groups


def _without_score(
    values: dict[str, Floats], labelled: Booleans, missing: str, models: dict[str, pd.Series]
) -> Booleans:
    without = np.zeros(len(labelled), dtype=np.bool_)
    for name, array in values.items():
        called = _called("scores", name, models)
        infinite = int(np.isinf(array[labelled]).sum())
        if infinite:
            raise InputError(f"{called}: {infinite} scores are infinite; give finite numbers.")
        blank = labelled & np.isnan(array)
        count = int(blank.sum())
        if count and missing != "drop":
            raise InputError(
                f"{called}: the score is missing for {count} of {int(labelled.sum())} images with a label; "
                "fill it in, or leave those images out with missing='drop'."
            )
        without |= blank
    return without


def _patient_codes(identity: tuple[Integers, int] | None, kept: Booleans) -> tuple[Integers, int]:
    if identity is None:
        n = int(kept.sum())
        return np.arange(n, dtype=np.int64), n
    codes, n_patients = identity
    if bool(kept.all()):
        return codes, n_patients
    fresh, uniques = pd.factorize(codes[kept])
    return np.asarray(fresh, dtype=np.int64), len(uniques)


def strata(within: Any, n: int, *, missing: str = "error") -> list[tuple[str, Booleans]]:
    """Strata of the rows as they were given.

    Parameters
    ----------
    within : array_like, shape (n,)
        Values of any kind, read like a group column.
    n : int
        Rows there must be.
    missing : {"error", "group", "drop"}
        With ``drop`` rows without a value are in no stratum.

    Returns
    -------
    list of (str, ndarray of bool of shape (n,))
        One entry per level in order, also for a declared level without rows.

    Raises
    ------
    InputError
        Another length than ``n``, or missing values under ``missing="error"``.
    """
    check_policy(missing)
    series = column(within, "within")
    if len(series) != n:
        raise InputError(f"within has {len(series)} rows and there are {n} images; give one value per image.")
    found = read_attribute(series, name_of(series, "within"), missing)
    if found.n_missing and missing == "error":
        raise InputError(
            f"column '{found.name}' is blank for {found.n_missing} of {n} images; missing='drop' leaves "
            "them out, missing='group' makes them a stratum."
        )
    return [(level, found.codes == i) for i, level in enumerate(found.levels)]


def split_within(rows: ScoredRows) -> list[tuple[str, ScoredRows]]:
    """The rows of each stratum of ``within``, each with all levels of every attribute.

    Returns
    -------
    list of (str, ScoredRows)
        One entry per stratum in order; one entry ``("", rows)`` where no strata were given. A stratum may
        have no rows; rows left out by ``missing="drop"`` are in none.
    """
    if rows.within is None:
        return [("", rows)]
    return [(level, rows.take(rows.within.codes == i)) for i, level in enumerate(rows.within.levels)]


def missing_note(attribute: Attribute, rows: ScoredRows) -> str:
    """One sentence on the images without a value of the attribute, by label; empty when there are none."""
    if not attribute.n_missing:
        return ""
    counts = missing_counts(attribute.n_missing, attribute.n_missing_positive, rows.labels)
    return f"'{attribute.name}' is missing for {counts}."

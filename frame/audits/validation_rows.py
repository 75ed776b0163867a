"""Validation rows, where a threshold comes from: their columns, and whose images they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from frame.errors import InputError
from frame.measures.columns import column, named_columns, text_of

__all__ = ["NOT_CHECKED", "check_other_patients", "validation_columns"]

#: Said beside a threshold from validation rows where patients were not given for both.
NOT_CHECKED = (
    "Whether validation patients are audited too was not checked, because no patient ids were given for both."
)


def validation_columns(
    validation: Any, scores: list[str], labels: list[str]
) -> Mapping[tuple[str, str], tuple[Any, Any]]:
    """Validation scores and labels for every score and label.

    Parameters
    ----------
    validation : tuple or None
        ``(scores, labels)`` or ``(scores, labels, patients)`` of the validation rows.
    scores, labels : list of str
        Names of the audited columns.

    Returns
    -------
    mapping of (str, str) to (scores, labels)

    Raises
    ------
    InputError
        If it is neither, or a column is not there.
    """
    if validation is None:
        return {}
    if not isinstance(validation, (tuple, list)) or len(validation) not in (2, 3):
        raise InputError(
            "validation must be a pair, (scores, labels) of the validation rows, or with their patients "
            "(scores, labels, patients)."
        )
    held_scores = named_columns(validation[0], "validation scores", scores[0])
    held_labels = named_columns(validation[1], "validation labels", labels[0])
    for what, held, wanted in (("scores", held_scores, scores), ("labels", held_labels, labels)):
        if len(held) == 1 and len(wanted) == 1:
            held[wanted[0]] = next(iter(held.values()))
        absent = [name for name in wanted if name not in held]
        if absent:
            raise InputError(
                f"validation {what} have no column '{absent[0]}'; they have {', '.join(map(repr, held))}."
            )
    return {(s, y): (held_scores[s], held_labels[y]) for s in scores for y in labels}


def check_other_patients(validation: Any, patients: Any) -> tuple[str, ...]:
    """Refuse validation patients who are audited too.

    Parameters
    ----------
    validation : tuple or None
        As for :func:`validation_columns`, checked already.
    patients : array_like, shape (images,), or None
        Patient of each audited image.

    Returns
    -------
    tuple of str
        A note where it could not be checked.

    Raises
    ------
    InputError
        With the count of such patients, never their ids; or if there is not one patient per validation row.
    """
    if validation is None:
        return ()
    held = validation[2] if len(validation) == 3 else None
    if held is None or patients is None:
        return (NOT_CHECKED,)
    ids = column(held, "validation patients")
    n_rows = len(next(iter(named_columns(validation[1], "validation labels", "label").values())))
    if len(ids) != n_rows:
        raise InputError(
            f"validation patients has {len(ids)} rows and validation labels {n_rows}; give one id per image."
        )
    shared = _written(ids) & _written(column(patients, "patients"))
    if shared:
        are = "patient is" if len(shared) == 1 else "patients are"
        raise InputError(
            f"validation: {len(shared):,} {are} in the validation rows and in the audited rows; a threshold "
            "must come from other patients, so leave them out of one of the two."
        )
    return ()


def _written(ids: pd.Series) -> set[str]:
    """Ids as they are written, without blanks around them: one file may hold numbers and the other text."""
    return {text_of(value).strip() for value in ids.dropna().unique()} - {""}

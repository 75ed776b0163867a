"""Embeddings with labels, groups, patients and splits: checked once, and brought into rows per split.

The embeddings may be mapped from a file: they are read in blocks of rows, once, to check them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frame.cohorts.splits import check_disjoint, fraction_split
from frame.errors import InputError
from frame.heads.capped_rows import capped_rows
from frame.measures.attributes import Attribute
from frame.measures.columns import check_aligned, column, factorize, name_of, named_columns, text_of
from frame.measures.rows import ScoredRows, missing_note, scored_rows
from frame.mitigation.feature_matrix import check_finite, check_matrix, gathered_rows

__all__ = ["DRAWN_SPLIT", "SPLITS", "FeatureRows", "SplitRows", "feature_rows", "split_words"]

#: Splits in the order in which they are used.
SPLITS: Final = ("train", "validation", "test")
#: Shares of the patients in a split that is drawn.
DRAWN_SPLIT: Final[Mapping[str, float]] = {"train": 0.6, "validation": 0.15, "test": 0.25}
#: Other words for a split.
_WORDS: Final = {"training": "train", "valid": "validation", "val": "validation", "dev": "validation"}
#: More words than this, or with fewer rows each, are not quoted.
_MOST_QUOTED: Final = 6
_LEAST_ROWS: Final = 5
_ROW: Final = "row"
#: Stands in sentences where a table of several sites has the site.
_HERE: Final = "split"


@dataclass(frozen=True, eq=False)
class SplitRows:
    """The rows of one split that have a label.

    Attributes
    ----------
    numbers : ndarray of int64, shape (n,)
        Rows of the embeddings, rising.
    rows : ScoredRows
        Labels, patients and attributes of these rows; its one score is the row number.
    """

    numbers: NDArray[np.int64]
    rows: ScoredRows

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """What a user gave, checked.

    Attributes
    ----------
    features : ndarray, shape (rows, dimensions)
        As given; finite in every row that is used.
    label : str
        Name of the finding.
    attributes : tuple of str
        Names of the group columns.
    splits : mapping of str to SplitRows
        ``train`` (at most the cap), ``validation`` and ``test``.
    n_train : int
        Training rows before the cap.
    notes : tuple of str
        What was left out, drawn or capped, in sentences.
    """

    features: NDArray[Any]
    label: str
    attributes: tuple[str, ...]
    splits: Mapping[str, SplitRows]
    n_train: int
    notes: tuple[str, ...]

    def gathered(self, split: str, folder: Path | None = None) -> NDArray[Any]:
        """Embeddings of one split, shape (n, dimensions): a view where they lie together, else a copy.

        Parameters
        ----------
        split : str
            One of :data:`SPLITS`.
        folder : Path, optional
            Where a copy goes that is too large for memory; None: the system's temporary folder.

        Returns
        -------
        ndarray of float16, float32 or float64
            In the byte order of the machine.
        """
        return gathered_rows(self.features, self.splits[split].numbers, folder)

    def codes(self, split: str, attribute: str) -> NDArray[np.int64]:
        """Place of each row's group in the levels of an attribute; -1 where it is not known."""
        return self.splits[split].rows.attribute(attribute).codes

    def levels(self, attribute: str) -> tuple[str, ...]:
        """Groups of an attribute, those of all splits."""
        return self.splits["test"].rows.attribute(attribute).levels


def feature_rows(
    features: Any,
    labels: Any,
    groups: Any,
    split: Any = None,
    patients: Any = None,
    *,
    missing: str = "error",
    cap: int = 100_000,
    seed: int = 0,
) -> FeatureRows:
    """Check embeddings and what belongs to them.

    Parameters
    ----------
    features : array_like of float16, float32 or float64, shape (rows, dimensions)
        One embedding an image; may be mapped from a file.
    labels : array_like, shape (rows,)
        0 and 1, or False and True; a missing one leaves the image out.
    groups : array_like, shape (rows,), or table of such columns
        One attribute or several.
    split : array_like of str, shape (rows,), or mapping of str to row numbers or flags, optional
        ``train``, ``validation`` or ``test``; rows with another word are left out and counted. None: drawn
        by patient, .6 / .15 / .25.
    patients : array_like, shape (rows,), optional
        Patient of each image; None: each image is its own patient.
    missing : {"error", "group", "drop"}
        What a missing group means; see :func:`frame.measures.rows.scored_rows`.
    cap : int
        Most training rows; they are drawn without replacement.
    seed : int
        Of the draws.

    Returns
    -------
    FeatureRows

    Raises
    ------
    InputError
        One sentence saying what was found, where, what is allowed and what to do.
    """
    matrix = check_matrix(features)
    label_column = column(labels, "labels")
    group_columns = named_columns(groups, "groups", "group")
    patient_column = None if patients is None else column(patients, "patients")
    given: dict[str, pd.Series] = {"labels": label_column}
    given |= {
        f"groups '{name}'" if len(group_columns) > 1 else "groups": c for name, c in group_columns.items()
    }
    if patient_column is not None:
        given["patients"] = patient_column
    if split is not None and not isinstance(split, Mapping):
        given["split"] = column(split, "split")
    n_rows = check_aligned(given)
    if len(matrix) != n_rows:
        raise InputError(
            f"features has {len(matrix):,} rows and labels has {n_rows:,}; give one embedding per image, in "
            "the same order."
        )
    notes: list[str] = []
    places = None if split is None else _places(split, n_rows, notes)
    used = np.arange(n_rows) if places is None else np.flatnonzero(places >= 0)
    rows = scored_rows(
        {_ROW: used.astype(np.float64)},
        label_column.iloc[used],
        {name: series.iloc[used] for name, series in group_columns.items()},
        None if patient_column is None else patient_column.iloc[used],
        missing=missing,
        scale="logit",
    )
    numbers = rows.scores[_ROW].astype(np.int64)
    ids = None if patient_column is None else patient_column.iloc[numbers]
    kept_places = _drawn_places(numbers, ids, seed, notes) if places is None else places[numbers]
    if ids is not None and places is not None:
        _check_patients(rows.patients, ids, kept_places)
    splits, n_train = _split_rows(rows, numbers, kept_places, cap, seed, notes)
    check_finite(matrix, np.sort(np.concatenate([part.numbers for part in splits.values()])))
    return FeatureRows(
        features=matrix,
        label=name_of(label_column, "label"),
        attributes=tuple(group_columns),
        splits=splits,
        n_train=n_train,
        notes=(*_left_out(rows, splits), *notes),
    )


# -- the splits ---------------------------------------------------------------------------------------


def split_words(found: Mapping[str, int]) -> str:
    """Words of a split column with their counts; only how many where they may be ids: many, or rare."""
    if len(found) > _MOST_QUOTED or sum(found.values()) < _LEAST_ROWS * len(found):
        return f"{len(found):,} different values"
    return ", ".join(f"{count:,} '{word[:40]}'" for word, count in found.items())


def _places(split: Any, n_rows: int, notes: list[str]) -> NDArray[np.int64]:
    """Place of each row's split in :data:`SPLITS`; -1 for a row of none."""
    if isinstance(split, Mapping):
        return _places_of_mapping(split, n_rows)
    codes, values = factorize(column(split, "split"), "split")
    words = [text_of(value).strip() for value in values]
    counts = np.bincount(codes + 1, minlength=len(words) + 1)
    table = np.full(len(words) + 1, -1, dtype=np.int64)
    others: dict[str, int] = {"(blank)": int(counts[0])} if counts[0] else {}
    for place, word in enumerate(words):
        plain = _WORDS.get(word.lower(), word.lower())
        if plain in SPLITS:
            table[place] = SPLITS.index(plain)
        else:
            others[word] = others.get(word, 0) + int(counts[place + 1])
    places: NDArray[np.int64] = table[codes]
    for place, name in enumerate(SPLITS):
        if not np.any(places == place):
            found = {w: int(counts[i + 1]) for i, w in enumerate(words)} | {
                w: n for w, n in others.items() if w == "(blank)"
            }
            raise InputError(
                f"split: no row says '{name}'; found are {split_words(found)}. Every image is 'train', "
                "'validation' or 'test'."
            )
    if others:
        n_others = sum(others.values())
        are = "image of another split is" if n_others == 1 else "images of other splits are"
        notes.append(f"{n_others:,} {are} left out ({split_words(others)}).")
    return places


def _places_of_mapping(split: Mapping[str, Any], n_rows: int) -> NDArray[np.int64]:
    if set(split) != set(SPLITS):
        raise InputError(
            f"split has the entries {', '.join(map(repr, split)) or 'none'}; give 'train', 'validation' and "
            "'test', each row numbers or flags."
        )
    places = np.full(n_rows, -1, dtype=np.int64)
    for place, name in enumerate(SPLITS):
        given = np.asarray(split[name])
        if given.ndim == 1 and given.dtype == np.bool_ and len(given) == n_rows:
            rows = np.flatnonzero(given)
        elif given.ndim == 1 and given.dtype.kind in "iu" and len(given):
            rows = given.astype(np.int64)
        else:
            raise InputError(
                f"split '{name}' is {given.dtype} of shape {given.shape}; give row numbers, or {n_rows:,} "
                "flags."
            )
        if len(rows) == 0 or rows.min() < 0 or rows.max() >= n_rows or len(np.unique(rows)) != len(rows):
            raise InputError(
                f"split '{name}' must hold at least one row number from 0 to {n_rows - 1:,}, each once."
            )
        twice = int(np.count_nonzero(places[rows] >= 0))
        if twice:
            raise InputError(f"split: {twice:,} rows are in '{name}' and in another split; give each once.")
        places[rows] = place
    return places


def _drawn_places(
    numbers: NDArray[np.int64], ids: pd.Series | None, seed: int, notes: list[str]
) -> NDArray[np.int64]:
    """A seeded split by patient, in exact shares of the patients."""
    subjects = pd.Series(numbers if ids is None else [text_of(value) for value in ids]).astype("str")
    words = fraction_split(subjects, seed, DRAWN_SPLIT)
    unit = "images, as no patient ids were given," if ids is None else "patients"
    shares = ", ".join(f"{100 * share:g} % {name}" for name, share in DRAWN_SPLIT.items())
    notes.append(f"No split was given: the {unit} were split at random with seed {seed} ({shares}).")
    return np.asarray([SPLITS.index(word) for word in words], dtype=np.int64)


def _check_patients(codes: NDArray[np.int64], ids: pd.Series, places: NDArray[np.int64]) -> None:
    """Refuse a patient who is in two splits, and ids that are one but for zeros, case or blanks."""
    pairs = np.unique(codes * len(SPLITS) + places)
    _, first = np.unique(codes, return_index=True)
    texts = np.asarray([f"{_HERE}:{text_of(value)}" for value in ids.iloc[first]], dtype=object)
    try:
        check_disjoint(
            pd.DataFrame(
                {
                    "site": _HERE,
                    "split": np.asarray(SPLITS, dtype=object)[pairs % len(SPLITS)],
                    "subject_id": pd.Series([None] * len(pairs), dtype=object),
                    "patient_id": texts[pairs // len(SPLITS)],
                }
            )
        )
    except InputError as problem:
        said = str(problem).replace("of one subject", "of one patient").replace("by subject", "by patient")
        raise InputError(said.replace(f"{_HERE}: 1 patients are", f"{_HERE}: 1 patient is")) from None


def _split_rows(
    rows: ScoredRows,
    numbers: NDArray[np.int64],
    places: NDArray[np.int64],
    cap: int,
    seed: int,
    notes: list[str],
) -> tuple[dict[str, SplitRows], int]:
    splits: dict[str, SplitRows] = {}
    n_train = 0
    for place, name in enumerate(SPLITS):
        chosen = places == place
        n_rows, n_positive = int(chosen.sum()), int(rows.labels[chosen].sum())
        if n_rows == 0:
            raise InputError(f"split '{name}' has no image with a label; it needs some of both classes.")
        for count, what in ((n_positive, "positive"), (n_rows - n_positive, "negative")):
            if count == 0:
                raise InputError(
                    f"split '{name}' has no {what} among its {n_rows:,} image{'s' * (n_rows != 1)} with a "
                    "label; every split needs both classes, so split the patients in another way, or take a "
                    "commoner finding."
                )
        if name == "train":
            n_train = n_rows
            kept = np.flatnonzero(chosen)[capped_rows(n_rows, cap, seed)]
            chosen = np.zeros(len(chosen), dtype=np.bool_)
            chosen[kept] = True
            if len(kept) < n_rows:
                notes.append(
                    f"{len(kept):,} of {n_rows:,} training images were drawn (cap, seed {seed}), the same "
                    "for every method; validation and test images are all used."
                )
                _check_capped(rows.labels[chosen])
        splits[name] = SplitRows(numbers[chosen], rows.take(chosen))
    for attribute in rows.attributes:
        _check_levels(attribute, splits)
    return splits, n_train


def _check_capped(labels: NDArray[np.bool_]) -> None:
    if labels.all() or not labels.any():
        raise InputError(
            f"the {len(labels):,} training {'image' if len(labels) == 1 else 'images'} drawn under the cap "
            f"{'is' if len(labels) == 1 else 'are all'} of one class; raise the cap."
        )


def _check_levels(attribute: Attribute, splits: Mapping[str, SplitRows]) -> None:
    if len(attribute.levels) < 2:
        raise InputError(
            f"column '{attribute.name}' has one subgroup, '{attribute.levels[0]}'; a difference needs two."
        )
    present = np.unique(attribute.codes[attribute.codes >= 0])
    if len(present) < 2:
        raise InputError(
            f"column '{attribute.name}' has {len(present)} of its {len(attribute.levels)} subgroups among "
            "the images with a label; a difference needs two."
        )
    for name in SPLITS:
        rows = splits[name].rows
        known = rows.attribute(attribute.name).codes >= 0
        if not np.any(known):
            raise InputError(
                f"column '{attribute.name}' is blank for every {name} image; there is nothing to compare."
            )
        for label, what in ((True, "positive"), (False, "negative")):
            if name != "train" and not np.any(rows.labels[known] == label):
                raise InputError(
                    f"column '{attribute.name}' is blank for every {what} {name} image; methods are compared "
                    "on the images whose group is known, which must be of both classes."
                )


def _left_out(rows: ScoredRows, splits: Mapping[str, SplitRows]) -> list[str]:
    notes = []
    for count, what in (
        (rows.n_unlabelled, "label for the finding"),
        (rows.n_without_patient, "patient id"),
    ):
        if count:
            have = "1 image has no" if count == 1 else f"{count:,} images have no"
            left = "is" if count == 1 else "are"
            notes.append(f"{have} {what} and {left} left out.")
    for attribute in rows.attributes:
        note = missing_note(attribute, rows)
        if note and bool(np.any(attribute.codes < 0)):
            notes.append(f"{note.rstrip('.')}; {_unknown_words(attribute.name, splits)}.")
        elif note:
            notes.append(f"{note.rstrip('.')}; they are a subgroup of their own.")
    return notes


def _unknown_words(name: str, splits: Mapping[str, SplitRows]) -> str:
    """What happens to the images whose group is not known, and why."""
    out = {
        split: int(np.count_nonzero(splits[split].rows.attribute(name).codes < 0))
        for split in ("validation", "test")
    }
    counts = " and ".join(
        f"{count:,} image{'s' * (count != 1)} of {split}" for split, count in out.items() if count
    )
    said = "they train the unmitigated head and keep its score under every method"
    if not counts:
        return said
    return (
        f"{said}, which may lie on another scale than a method's, so {counts} "
        f"{'stays' if sum(out.values()) == 1 else 'stay'} out of everything that is "
        f"compared for '{name}', also before mitigation"
    )

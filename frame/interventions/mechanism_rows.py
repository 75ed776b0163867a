"""The rows of step two: what a user gave, checked, without the groups that are left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from frame.errors import InputError
from frame.heads.capped_rows import capped_rows
from frame.interventions.injected_features import release_pages
from frame.measures.attributes import Attribute
from frame.measures.columns import check_aligned, column, read_scores
from frame.measures.rows import ScoredRows, missing_note
from frame.mitigation.feature_rows import SPLITS, FeatureRows, SplitRows, feature_rows

__all__ = ["MechanismRows", "mechanism_rows"]

Integers = NDArray[np.int64]
#: No cap: the rows of excluded groups are dropped before the cap is applied.
_ALL: Final = 2**62


@dataclass(frozen=True, eq=False)
class MechanismRows:
    """Images of one finding and one attribute, checked.

    Attributes
    ----------
    features : ndarray, shape (rows, dimensions)
        As given; may be mapped from a file.
    label, attribute : str
        Names of the finding and of the attribute.
    levels : tuple of str
        Groups, without those that are excluded.
    splits : mapping of str to SplitRows
        ``train`` (at most the cap), ``validation`` and ``test``; their one score is the row number.
    majority : str
        Group with the sign +1.
    signs : ndarray of int8, shape (rows,)
        +1 for the majority, -1 for every other named group, 0 for a missing or excluded one.
    scores : ndarray of float64, shape (rows,), or None
        Scores that step one audits; None: those of the linear head on the features as they are.
    excluded : mapping of str to int
        Images of every excluded group.
    n_train : int
        Training rows before the cap.
    notes : tuple of str
        What was left out or capped, in sentences.
    """

    features: NDArray[Any]
    label: str
    attribute: str
    levels: tuple[str, ...]
    splits: Mapping[str, SplitRows]
    majority: str
    signs: NDArray[np.int8]
    scores: NDArray[np.float64] | None
    excluded: Mapping[str, int]
    n_train: int
    notes: tuple[str, ...]

    def codes(self, split: str) -> Integers:
        """Place of each row's group in ``levels``; -1 where the attribute is missing."""
        return self.splits[split].rows.attribute(self.attribute).codes

    def labels(self, split: str) -> NDArray[np.int8]:
        """Labels of one split, 0 and 1."""
        return self.splits[split].rows.labels.astype(np.int8)

    def group_counts(self, split: str) -> list[tuple[str, int, int]]:
        """Group, images and positives, in the order of the levels."""
        codes, labels = self.codes(split), self.splits[split].rows.labels
        return [
            (name, int(np.count_nonzero(codes == place)), int(np.count_nonzero(labels[codes == place])))
            for place, name in enumerate(self.levels)
        ]


def mechanism_rows(
    features: Any,
    labels: Any,
    groups: Any,
    split: Any,
    *,
    patients: Any = None,
    scores: Any = None,
    exclude: Iterable[str] = (),
    majority: str | None = None,
    cap: int = 100_000,
    seed: int = 0,
) -> MechanismRows:
    """Check what :func:`frame.mechanism` is given.

    Parameters
    ----------
    features, labels, groups, split, patients, scores, exclude, majority, cap, seed
        As for :func:`frame.mechanism`.

    Returns
    -------
    MechanismRows

    Raises
    ------
    InputError
        One sentence saying what was found, where, what is allowed and what to do.
    """
    found = feature_rows(features, labels, groups, split, patients, missing="drop", cap=_ALL, seed=seed)
    release_pages(found.features)
    if len(found.attributes) > 1:
        raise InputError(
            f"groups has {len(found.attributes)} columns; step two takes one attribute, so give one column."
        )
    name = found.attributes[0]
    levels = found.levels(name)
    dropped = _excluded(exclude, levels, name)
    notes = [note for note in found.notes if " is missing for " not in note]
    kept = {part: _without(found.splits[part], name, dropped) for part in SPLITS}
    excluded = dict.fromkeys(dropped, 0)
    for part in SPLITS:
        codes = found.codes(part, name)
        for level in dropped:
            excluded[level] += int(np.count_nonzero(codes == levels.index(level)))
    if excluded:
        said = ", ".join(f"'{level}' {count:,}" for level, count in excluded.items())
        total = sum(excluded.values())
        notes.insert(0, f"Excluded on request: {total:,} image{'s' * (total != 1)} of '{name}' ({said}).")
    notes += _missing_notes(kept, name)
    _check_classes(kept, name, bool(excluded))
    numbers, codes_of_train = kept["train"].numbers, _codes(kept["train"], name)
    remaining = tuple(level for level in levels if level not in dropped)
    chosen = _majority(majority, remaining, dropped, codes_of_train, name)
    capped = capped_rows(len(numbers), cap, seed)
    n_train = len(numbers)
    if len(capped) < n_train:
        flags = np.zeros(n_train, dtype=np.bool_)
        flags[capped] = True
        kept["train"] = SplitRows(numbers[capped], kept["train"].rows.take(flags))
        notes.append(
            f"{len(capped):,} of {n_train:,} training images {_were(len(capped))} drawn (cap, seed {seed}), "
            "the same at every strength; validation and test images are all used."
        )
        _check_classes({"train": kept["train"]}, name, False, " drawn under the cap")
    if patients is None:
        notes.append(
            "No patient ids were given, so each image counts as its own patient: where patients have several "
            "images the exceedance is too small and the intervals are too narrow."
        )
    return MechanismRows(
        features=found.features,
        label=found.label,
        attribute=name,
        levels=remaining,
        splits=kept,
        majority=chosen,
        signs=_signs(found, kept, name, remaining, chosen, numbers, codes_of_train),
        scores=_given_scores(scores, labels, found, kept),
        excluded=excluded,
        n_train=n_train,
        notes=tuple(notes),
    )


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _excluded(exclude: Any, levels: tuple[str, ...], name: str) -> tuple[str, ...]:
    if isinstance(exclude, str):
        raise InputError(
            f"exclude is the text '{exclude[:40]}'; give a list of groups, such as ['{exclude[:40]}']."
        )
    try:
        asked = [str(one) for one in exclude]
    except TypeError:
        raise InputError(f"exclude is a {type(exclude).__name__}; give a list of groups.") from None
    for one in asked:
        if one not in levels:
            raise InputError(
                f"exclude names {one[:60]!r}; the groups of '{name}' are {', '.join(map(repr, levels))}."
            )
    dropped = tuple(dict.fromkeys(asked))
    if len(levels) - len(dropped) < 2:
        raise InputError(
            f"exclude names {len(dropped)} of the {len(levels)} groups of '{name}'; a difference needs two."
        )
    return dropped


def _codes(part: SplitRows, name: str) -> Integers:
    return part.rows.attribute(name).codes


def _without(part: SplitRows, name: str, dropped: tuple[str, ...]) -> SplitRows:
    """The rows of no excluded group, and an attribute without those levels."""
    if not dropped:
        return part
    attribute = part.rows.attribute(name)
    gone = np.asarray([level in dropped for level in attribute.levels], dtype=np.bool_)
    flags = ~(gone[attribute.codes] & (attribute.codes >= 0))
    rows: ScoredRows = part.rows.take(flags)
    place = np.append(np.cumsum(~gone) - 1, -1)
    taken = rows.attribute(name)
    fewer: Attribute = replace(
        taken,
        levels=tuple(level for level in attribute.levels if level not in dropped),
        codes=place[taken.codes],
    )
    return SplitRows(part.numbers[flags], replace(rows, attributes=(fewer,)))


#: What images without a group count for.
_UNKNOWN: Final = {
    "train": "fit the head",
    "validation": "set no threshold",
    "test": "count in the disease AUROC of the head alone",
}


def _missing_notes(splits: Mapping[str, SplitRows], name: str) -> list[str]:
    notes = []
    for part, found in splits.items():
        attribute = found.rows.attribute(name)
        if attribute.n_missing:
            said = missing_note(attribute, found.rows).rstrip(".")
            notes.append(
                f"{part.capitalize()}: {said}; these images {_UNKNOWN[part]}, are never changed by an "
                "operator, and are in no subgroup."
            )
    if any(found.rows.attribute(name).n_missing for part, found in splits.items() if part != "train"):
        notes.append(
            "Thresholds, and all that a mitigation method is judged by, are read on the images whose "
            f"'{name}' is known, before and after: a method changes those only, and the unmitigated scores "
            "of the others may lie on another scale."
        )
    return notes


def _check_classes(splits: Mapping[str, SplitRows], name: str, excluded: bool, where: str = "") -> None:
    after = " once the excluded groups are gone" if excluded else ""
    for part, found in splits.items():
        labels, of = found.rows.labels, ""
        if part != "train" and found.rows.attribute(name).n_missing:
            labels, of = labels[_codes(found, name) >= 0], f" whose '{name}' is known"
        n_positive = int(np.count_nonzero(labels))
        for count, what in ((n_positive, "positive"), (len(labels) - n_positive, "negative")):
            if count == 0:
                among = f"{len(labels):,} image{'s' * (len(labels) != 1)}{of}{where}{after}"
                raise InputError(
                    f"split '{part}' has no {what} among its {among}; every split needs both classes"
                    f"{', so raise the cap' if where else ''}."
                )
        present = np.unique(_codes(found, name))
        if part == "train" and np.count_nonzero(present >= 0) < 2:
            raise InputError(
                f"the training images{where}{after} are of {np.count_nonzero(present >= 0)} group of "
                f"'{name}'; an operator needs a majority and another group there"
                f"{', so raise the cap' if where else ''}."
            )


def _majority(
    given: str | None, levels: tuple[str, ...], dropped: tuple[str, ...], codes: Integers, name: str
) -> str:
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    if given is None:
        return levels[int(np.argmax(counts))]
    if given in dropped:
        raise InputError(f"majority is '{given}', which exclude names too; give one of the groups that stay.")
    if given not in levels:
        raise InputError(
            f"majority is {str(given)[:60]!r}; the groups of '{name}' are {', '.join(map(repr, levels))}."
        )
    if counts[levels.index(given)] == 0:
        raise InputError(f"majority is '{given}', which has no training image; give another group.")
    return given


def _signs(
    found: FeatureRows,
    splits: Mapping[str, SplitRows],
    name: str,
    levels: tuple[str, ...],
    majority: str,
    train: Integers,
    codes_of_train: Integers,
) -> NDArray[np.int8]:
    """Signs of all rows; those of no split stay 0."""
    signs = np.zeros(len(found.features), dtype=np.int8)
    place = levels.index(majority)
    pairs = [(train, codes_of_train)]
    pairs += [(splits[part].numbers, _codes(splits[part], name)) for part in ("validation", "test")]
    for numbers, codes in pairs:
        signs[numbers] = np.where(codes == place, 1, np.where(codes >= 0, -1, 0))
    return signs


def _given_scores(
    scores: Any, labels: Any, found: FeatureRows, splits: Mapping[str, SplitRows]
) -> NDArray[np.float64] | None:
    if scores is None:
        return None
    given = column(scores, "scores")
    check_aligned({"scores": given, "labels": column(labels, "labels")})
    values = read_scores(given, "scores")
    if len(values) != len(found.features):
        raise InputError(
            f"scores has {len(values):,} rows and features has {len(found.features):,}; give one score per "
            "image."
        )
    for part in ("validation", "test"):
        wrong = int(np.count_nonzero(~np.isfinite(values[splits[part].numbers])))
        if wrong:
            raise InputError(
                f"scores: {wrong:,} of {len(splits[part]):,} {part} images have a missing or infinite score; "
                "step one audits them, so give a finite one for each, or leave scores out."
            )
    return values

"""Small counts of people and images, and whatever they could be computed from, kept out of shown tables.

What is shown of a study are counts that add up: levels of an attribute to all images, splits to the whole
source, a pooled attribute to the recorded one that it is made from, and the label policies to each other. A
count that is left blank is then often to be had from those around it. Here a cell is a subgroup in a split.
Its numbers of images and of subjects are hidden together; so are all of its counts of a finding, whatever the
policy. A cell is small when one of its counts is, or the number of positive, negative, uncertain or blank
labels that its counts say by subtraction. Further cells are hidden until no small cell is determined by the
sums, and until the cells that are hidden from a shown sum are no small count together.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["COUNTED", "cells_to_hide", "group_hidden"]

#: Quantities that count people or images.
COUNTED: Final = ("images", "subjects", "evaluable", "positive")
_PEOPLE: Final = ("images", "subjects")
_ALL: Final = "all"
_NOT_RECORDED: Final = "not recorded"
#: Pooled attributes: the level that takes in what is not recorded, and the attribute they are pooled from.
_POOLED: Final = {"race": ("Other", "race_recorded"), "insurance": ("Other", "insurance_recorded")}
_CELL: Final = ["attribute", "subgroup", "split"]
_Cell = tuple[str, str, str]


@dataclass(frozen=True)
class _Line:
    """Cells that add up: ``parts`` and ``totals`` have one sum; cells that are not there count as shown."""

    parts: tuple[int, ...]
    totals: tuple[int, ...]


def cells_to_hide(rows: pd.DataFrame, smallest: int) -> pd.Series:
    """Which counts of a tidy table have to be hidden.

    Parameters
    ----------
    rows : pandas.DataFrame
        A tidy table with a unique index.
    smallest : int
        Counts from 1 to ``smallest - 1`` are small.

    Returns
    -------
    pandas.Series of bool
        By the index of ``rows``. A hidden cell of images and subjects is hidden for each finding as well.
    """
    hidden = pd.Series(False, index=rows.index)
    counts = rows[rows["quantity"].isin(COUNTED) & (rows["status"] == "ok")]
    if smallest <= 1:
        return hidden
    for _, source in counts.groupby(["experiment", "modality", "site"], sort=False):
        keys = pd.MultiIndex.from_frame(source[_CELL])
        of_people = source["quantity"].isin(_PEOPLE).to_numpy()
        people = _values(source[of_people])
        shut = _protected(people, set(), smallest)
        hidden[source.index[of_people & keys.isin(list(shut))]] = True
        for _, finding in source[~of_people].groupby("finding", sort=False):
            values = _with_differences(_values(finding), people)
            closed = _protected(values, shut & set(values.index), smallest)
            there = pd.MultiIndex.from_frame(finding[_CELL]).isin(list(closed))
            hidden[finding.index[there]] = True
    return hidden


def group_hidden(counts: pd.Series, groups: pd.Series, begun: pd.Series, smallest: int) -> pd.Series:
    """Which counts of one list have to be hidden, when the sums of its groups and of all are shown elsewhere.

    Parameters
    ----------
    counts : pandas.Series of int
        Counts that exclude each other.
    groups : pandas.Series
        The group of each.
    begun : pandas.Series of bool
        Counts that are hidden already, small ones among them.
    smallest : int
        Counts from 1 to ``smallest - 1`` are small.

    Returns
    -------
    pandas.Series of bool
        Within each group, and in the list as a whole, no count is hidden alone, and the hidden ones are no
        small count together; as far as there are other counts.
    """
    hidden = begun.copy()
    while True:
        before = int(hidden.sum())
        for some in [*(counts.index[groups == group] for group in groups.unique()), counts.index]:
            shut = hidden[some]
            total = counts[some][shut].sum()
            others = counts[some][~shut & (counts[some] > 0)]
            if len(others) and (int(shut.sum()) == 1 or 0 < total < smallest):
                hidden[others.idxmin()] = True
        if int(hidden.sum()) == before:
            return hidden


def _values(counts: pd.DataFrame) -> pd.DataFrame:
    """One row per cell, one column per quantity and method; several counts of one kind are not added up."""
    named = counts.assign(kind=counts["quantity"] + "|" + counts["method"])
    return named.pivot_table(index=_CELL, columns="kind", values="value", aggfunc="max", sort=False)


def _with_differences(values: pd.DataFrame, people: pd.DataFrame) -> pd.DataFrame:
    """The counts of a finding, and those that follow from two of them."""
    found = {name: values[name] for name in values.columns}
    for name in values.columns:
        quantity, _, method = name.partition("|")
        if quantity == "positive" and f"evaluable|{method}" in values.columns:
            found[f"negative|{method}"] = values[f"evaluable|{method}"] - values[name]
    for one, other in combinations(values.columns, 2):
        if _nested(one, other):
            found[f"{one} and {other}"] = (values[one] - values[other]).abs()
    if "images|" in people.columns:
        evaluable = [name for name in values.columns if name.startswith("evaluable|")]
        images = people["images|"].reindex(values.index)
        if evaluable:
            found["not evaluable"] = images - values[evaluable].max(axis=1)
    return pd.DataFrame(found).T.drop_duplicates().T


def _nested(one: str, other: str) -> bool:
    """Whether two counts are of one quantity under policies that differ in one respect."""
    (quantity, _, method), (same, _, another) = one.partition("|"), other.partition("|")
    parts, others = method.split(", "), another.split(", ")
    return (
        quantity == same
        and len(parts) == len(others)
        and sum(a != b for a, b in zip(parts, others, strict=True)) == 1
    )


def _protected(values: pd.DataFrame, begun: set[_Cell], smallest: int) -> set[_Cell]:
    """Small cells, those hidden to begin with, and the further ones that have to be hidden for their sake."""
    small = values.ge(1).to_numpy() & values.lt(smallest).to_numpy()
    primary = {cell for cell, is_small in zip(values.index, small.any(axis=1), strict=True) if is_small}
    hidden = begun | primary
    attributes = [name for name in dict.fromkeys(values.index.get_level_values("attribute")) if name != _ALL]
    families = _families(attributes)
    while hidden:
        before = len(hidden)
        for family in families:
            inside = values.index.get_level_values("attribute").isin([_ALL, *family])
            hidden |= _Family(values[inside], family, smallest).protected(hidden)
        if len(hidden) == before:
            break
    return hidden


def _families(attributes: list[str]) -> list[tuple[str, ...]]:
    """Attributes that are looked at together, each pooled one with the one that it is made from."""
    together = {name: recorded for name, (_, recorded) in _POOLED.items() if recorded in attributes}
    rest = [name for name in attributes if name not in together.values()]
    return [(name, together[name]) if name in together else (name,) for name in rest] or [()]


class _Family:
    """The cells of some attributes, and of all images, and the sums that tie them."""

    def __init__(self, values: pd.DataFrame, attributes: tuple[str, ...], smallest: int) -> None:
        self.cells: list[_Cell] = list(values.index)
        self.values = values.fillna(0).to_numpy(dtype=np.float64)
        self.small = (self.values >= 1) & (self.values < smallest)
        self.smallest = smallest
        self.place = {cell: at for at, cell in enumerate(self.cells)}
        # A count that stands alone is no sum.
        self.lines = [line for line in self._lines(attributes) if len(line.parts + line.totals) > 1]

    def _lines(self, attributes: tuple[str, ...]) -> Iterable[_Line]:
        subgroups = dict.fromkeys((attribute, subgroup) for attribute, subgroup, _ in self.cells)
        splits = list(dict.fromkeys(split for _, _, split in self.cells))
        for attribute, subgroup in subgroups:
            parts = [(attribute, subgroup, split) for split in splits if split != _ALL]
            yield self._line(parts, [(attribute, subgroup, _ALL)])
        for split in splits:
            for attribute in attributes:
                levels = [subgroup for name, subgroup in subgroups if name == attribute]
                yield self._line([(attribute, level, split) for level in levels], [(_ALL, _ALL, split)])
            if len(attributes) == 2:
                yield from self._pooled(attributes[0], attributes[1], split)

    def _pooled(self, pooled: str, recorded: str, split: str) -> Iterable[_Line]:
        rest = _POOLED[pooled][0]
        levels = {subgroup for attribute, subgroup, _ in self.cells if attribute == recorded}
        for level in sorted(levels - {rest, _NOT_RECORDED}):
            yield self._line([(recorded, level, split)], [(pooled, level, split)])
        parts = [(recorded, level, split) for level in (rest, _NOT_RECORDED)]
        yield self._line(parts, [(pooled, level, split) for level in (rest, _NOT_RECORDED)])

    def _line(self, parts: Iterable[_Cell], totals: Iterable[_Cell]) -> _Line:
        return _Line(
            *(tuple(self.place[one] for one in some if one in self.place) for some in (parts, totals))
        )

    def protected(self, hidden: set[_Cell]) -> set[_Cell]:
        """The hidden cells of this family, with those that have to join them."""
        shut = np.array([cell in hidden for cell in self.cells], dtype=bool)
        while (more := self._next(shut)) is not None:
            shut[more] = True
        return {cell for cell, is_shut in zip(self.cells, shut, strict=True) if is_shut}

    def _next(self, shut: np.ndarray) -> int | None:
        """One more cell to hide; None when nothing small can be had."""
        for line in self.lines:
            parts = [at for at in line.parts if shut[at]]
            if parts and not any(shut[at] for at in line.totals):
                for kind in np.flatnonzero(self.small[parts].any(axis=0)).tolist():
                    total = self.values[parts, kind].sum()
                    most = self.small[parts, kind].all() and total == len(parts) * (self.smallest - 1)
                    if len(parts) == 1 or total < self.smallest or most:
                        more = self._choice([line], shut, kind)
                        if more is not None:
                            return more
        for at in self._determined(shut):
            kind = int(np.flatnonzero(self.small[at])[0])
            alone = [line for line in self.lines if sum(shut[at] for at in line.parts + line.totals) == 1]
            its_own = [line for line in self.lines if at in line.parts + line.totals]
            for lines in (alone, its_own, self.lines):
                more = self._choice(lines, shut, kind)
                if more is not None:
                    return more
        return None

    def _choice(self, lines: list[_Line], shut: np.ndarray, kind: int) -> int | None:
        """The shown cell with the smallest count above 0; one of all images only where there is no other."""
        there = {at for line in lines for at in line.parts + line.totals if not shut[at]}
        for counts in (self.values[:, kind], self.values.max(axis=1)):
            some = [at for at in there if counts[at] > 0]
            if some:
                return min(some, key=lambda at: (self._is_total(at), counts[at], at))
        return None

    def _is_total(self, at: int) -> int:
        attribute, _, split = self.cells[at]
        return 2 * (attribute == _ALL) + (split == _ALL)

    def _determined(self, shut: np.ndarray) -> list[int]:
        """Small hidden cells whose counts follow from the sums and from what is shown."""
        places = np.flatnonzero(shut)
        if not len(places):
            return []
        column = {int(at): number for number, at in enumerate(places)}
        sums = np.zeros((len(self.lines), len(places)))
        for number, line in enumerate(self.lines):
            for side, sign in ((line.parts, 1), (line.totals, -1)):
                for at in side:
                    if at in column:
                        sums[number, column[at]] = sign
        _, sizes, directions = np.linalg.svd(sums, full_matrices=True)
        free = directions[int((sizes > 1e-9).sum()) :]
        fixed = (np.abs(free) < 1e-9).all(axis=0)
        return [
            int(at) for at, is_fixed in zip(places, fixed, strict=True) if is_fixed and self.small[at].any()
        ]

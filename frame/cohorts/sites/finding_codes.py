"""Label names of the chest sources, and the codes of the 13 findings made from them.

Which name of which source counts for which finding is a table (``data/harmonisation/finding_names.csv``). A
finding that no name of a source counts for is missing for the whole source. A name that stands for a kind of
a finding makes that finding positive. Names are compared whole: ``breast mass`` is no ``mass``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final

import numpy as np
import pandas as pd

from frame.cohorts.labels import BLANK, NEGATIVE, POSITIVE, UNCERTAIN
from frame.cohorts.schema import FINDINGS
from frame.cohorts.sites.released_tables import strange_cells, tally_rows
from frame.errors import InputError
from frame.tables import load_table

__all__ = [
    "LabelCodes",
    "codes_from_answers",
    "codes_from_names",
    "codes_of_findings",
    "finding_names",
    "label_tally",
    "marks_by_finding",
    "marks_by_name",
]

CHEST: Final = FINDINGS["chest"]
#: What the tally says of a name that the table of names does not know.
NOT_LISTED: Final = "not listed"
#: The answers of the CheXpert labeller as released, and their codes.
ANSWERS: Final = {
    "1.0": POSITIVE,
    "1": POSITIVE,
    "0.0": NEGATIVE,
    "0": NEGATIVE,
    "-1.0": UNCERTAIN,
    "-1": UNCERTAIN,
    "": BLANK,
}
_WORDS: Final = {POSITIVE: "positive", NEGATIVE: "negative", UNCERTAIN: "uncertain", BLANK: "blank"}
#: Longest unknown name that the tally shows.
_LONGEST_SHOWN: Final = 40
#: How a mark of a reader is written.
MARKS: Final = {"1": True, "1.0": True, "0": False, "0.0": False}


@dataclass(frozen=True)
class LabelCodes:
    """Codes of the 13 findings.

    Attributes
    ----------
    codes : pandas.DataFrame of Int8
        One column per finding; see :mod:`frame.cohorts.labels`.
    tally : pandas.DataFrame
        ``field`` (``label``), ``recorded``, ``value``, ``n_images``.
    """

    codes: pd.DataFrame = field(repr=False)
    tally: pd.DataFrame = field(repr=False)


def finding_names(source: str) -> dict[str, tuple[str, ...]]:
    """What each label name of a source counts for.

    Parameters
    ----------
    source : str
        A chest source.

    Returns
    -------
    dict of str to tuple of str
        Name as released -> findings; none where the name is not used.
    """
    names: dict[str, tuple[str, ...]] = {}
    for name_source, recorded, finding in _rows_of_names():
        if name_source == source:
            names[recorded] = names.get(recorded, ()) + ((finding,) if finding else ())
    return names


@cache
def _rows_of_names() -> tuple[tuple[str, str, str], ...]:
    table = load_table("finding_names")
    return tuple(zip(table["source"], table["recorded"], table["finding"], strict=True))


def codes_from_answers(source: str, table: pd.DataFrame) -> LabelCodes:
    """Codes from columns of the CheXpert labeller.

    Parameters
    ----------
    source : str
        ``mimic_cxr`` or ``chexpert``.
    table : pandas.DataFrame of str
        One column per name that counts for a finding, with the texts of :data:`ANSWERS`. A missing cell is an
        image without a row in the table of labels, and is taken as blank.

    Returns
    -------
    LabelCodes
        With the index of ``table``.

    Raises
    ------
    frame.InputError
        If a cell holds another text; the sentence gives the texts and how often they stand.
    """
    codes, tally = {}, []
    for name, findings in finding_names(source).items():
        for finding in findings:
            code = table[name].fillna("").map(ANSWERS)
            if code.isna().any():
                raise InputError(
                    f"The labels of {source} hold {strange_cells(table[name][code.isna()])} in column "
                    f"{name}; allowed is 1.0, 0.0, -1.0 or blank."
                )
            codes[finding] = code.astype("Int8")
            for value, count in code.value_counts().sort_index(ascending=False).items():
                word = _WORDS[int(str(value))]
                tally.append(("label", f"{name}: {word}", finding, count))
    return LabelCodes(_complete(codes, table.index), tally_rows(tally))


def codes_from_names(
    source: str, texts: pd.Series, parse: Callable[[str], Sequence[str] | None]
) -> LabelCodes:
    """Codes from one text per image that lists the names of what is there.

    Parameters
    ----------
    source : str
        ``nih_cxr14`` or ``padchest``.
    texts : pandas.Series of str
        Text of each image.
    parse : callable
        From a text to its names, each exactly as in the table of names; ``None`` where the text says nothing
        about the findings, which are all missing then.

    Returns
    -------
    LabelCodes
        With the index of ``texts``: positive where a name counts for the finding, otherwise negative. A name
        that the table does not know is tallied as :data:`NOT_LISTED`.
    """
    names = finding_names(source)
    at, distinct = pd.factorize(texts)
    counts = np.bincount(at, minlength=len(distinct))
    present = np.zeros((len(distinct), len(CHEST)), dtype=bool)
    silent = np.zeros(len(distinct), dtype=bool)
    n_images: dict[str, int] = dict.fromkeys(names, 0)
    n_silent = 0
    for row, text in enumerate(distinct):
        found = parse(text)
        if found is None:
            silent[row] = True
            n_silent += int(counts[row])
            continue
        for name in set(found):
            n_images[name] = n_images.get(name, 0) + int(counts[row])
            for finding in names.get(name, ()):
                present[row, CHEST.index(finding)] = True
    used = {finding for findings in names.values() for finding in findings}
    codes = {
        finding: pd.Series(present[at, column], index=texts.index).astype("Int8").mask(silent[at])
        for column, finding in enumerate(CHEST)
        if finding in used
    }
    tally = [("label", "no label", np.nan, n_silent)] if n_silent else []
    return LabelCodes(_complete(codes, texts.index), tally_rows([*tally, *_named(names, n_images)]))


def codes_of_findings(present: pd.DataFrame) -> pd.DataFrame:
    """Codes from truth values.

    Parameters
    ----------
    present : pandas.DataFrame of bool
        One column per finding that the source labels.

    Returns
    -------
    pandas.DataFrame of Int8
        All findings, positive or negative; those that are no column are missing.
    """
    return _complete({str(name): column.astype("Int8") for name, column in present.items()}, present.index)


def marks_by_name(source: str, table: pd.DataFrame) -> pd.DataFrame:
    """The marks of a table as truth values.

    Parameters
    ----------
    source : str
        ``vindr_cxr`` or ``vindr_pcxr``.
    table : pandas.DataFrame of str
        A column per name, with the texts of :data:`MARKS`.

    Returns
    -------
    pandas.DataFrame of bool
        The same columns.

    Raises
    ------
    frame.InputError
        If a cell holds another text, or a column is missing that counts for a finding.
    """
    absent = [name for name, findings in finding_names(source).items() if findings and name not in table]
    if absent:
        raise InputError(
            f"The labels of {source} have no column {', '.join(absent)} among {len(table.columns)} columns; "
            "the table must be the one that the owner releases."
        )
    marks = {}
    for name in table.columns:
        mark = table[name].map(MARKS)
        if mark.isna().any():
            raise InputError(
                f"The labels of {source} hold {strange_cells(table[name][mark.isna()])} in column {name}; "
                "allowed is 0 or 1."
            )
        marks[name] = mark.astype(bool)
    return pd.DataFrame(marks, index=table.index)


def marks_by_finding(source: str, marks: pd.DataFrame) -> pd.DataFrame:
    """Whether a row has a mark for any name of each finding.

    Parameters
    ----------
    source : str
        ``vindr_cxr`` or ``vindr_pcxr``.
    marks : pandas.DataFrame of bool
        As from :func:`marks_by_name`.

    Returns
    -------
    pandas.DataFrame of bool
        One column per finding that the source labels.
    """
    names = finding_names(source)
    columns = {}
    for finding in CHEST:
        own = [name for name, findings in names.items() if finding in findings]
        if own:
            columns[finding] = marks[own].any(axis=1)
    return pd.DataFrame(columns, index=marks.index)


def label_tally(source: str, n_images: Mapping[str, int]) -> pd.DataFrame:
    """The tally of label names: what each counts for, and in how many images it stands."""
    return tally_rows(_named(finding_names(source), n_images))


def _complete(codes: Mapping[str, pd.Series], index: pd.Index) -> pd.DataFrame:
    """All findings in order; those that the source does not label are missing."""
    absent = pd.Series(pd.NA, index=index, dtype="Int8")
    return pd.DataFrame({finding: codes.get(finding, absent) for finding in CHEST}, index=index)


def _named(
    names: Mapping[str, tuple[str, ...]], n_images: Mapping[str, int]
) -> list[tuple[str, str, str | float, int]]:
    rows: list[tuple[str, str, str | float, int]] = []
    hidden = 0
    for name in sorted(n_images):
        if name in names and n_images[name]:
            rows.append(("label", name, " and ".join(names[name]) or np.nan, n_images[name]))
        elif n_images[name] and _harmless(name):
            rows.append(("label", name, NOT_LISTED, n_images[name]))
        else:
            hidden += n_images[name]
    return [*rows, ("label", "(text with digits, or long)", NOT_LISTED, hidden)] if hidden else rows


def _harmless(name: str) -> bool:
    """Whether a text where a name should stand can be shown: it is short and holds no number."""
    return len(name) <= _LONGEST_SHOWN and not any(character.isdigit() for character in name)

"""Reports without, and with more, demographic words.

The study pretrains on the findings and impressions of radiographs as they are, with demographic terms removed
(:func:`scrub`), and with a sentence put in front that names race, sex and age band (:func:`amplify`).

What is removed is a table, ``data/demographic_terms.csv``, whose version is kept with what was made from it:

* ``word``: removed as a whole word in any case. ``man`` is not found in ``human``, ``mandible`` or
  ``womanizer``, nor ``white`` in ``whitening``, nor ``black`` in ``blackish``. A hyphen ends a word, so that
  ``58-year-old-male`` loses its sex; a possessive ending goes with its word.
* ``pattern``: a regular expression, for ages (``58-year-old``, ``58 y/o``, ``58M``, ``aged 58``) and titles.
  Ages are removed where a person is meant, so ``a 3 week old fracture`` stays; ``2-year-old`` is always taken
  for a person's age. ``28F`` is as often a catheter: it is removed only before words such as ``with``.
* ``keep``: a phrase that holds such a word and means no person: ``white matter``, ``bundle of His``,
  ``man-made``, ``Child-Pugh``. It is left as it is.

Words that only suggest a sex or an age are kept: ``female pelvis`` becomes ``pelvis``, but ``breast``,
``prostate``, ``pregnancy``, ``pediatric`` and ``senile`` stay, and so does ``age-indeterminate``. The grammar
of what is left is not repaired.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import pandas as pd

from frame.errors import InputError
from frame.tables import load_table

__all__ = [
    "AGE_WORDS",
    "RACES",
    "SEXES",
    "Scrubbed",
    "ScrubbedReports",
    "amplify",
    "scrub",
    "scrub_reports",
    "terms_version",
]

#: How an amplified report says an age band.
AGE_WORDS: Final[dict[str, str]] = {
    "<40": "under 40 years",
    "40-<60": "40 to 59 years",
    "60-<80": "60 to 79 years",
    ">=80": "80 years or older",
}
RACES: Final = ("White", "Black", "Asian", "Hispanic or Latino", "Other")
SEXES: Final = ("female", "male")

#: Stands for a removed term until its surroundings are tidied; no report holds it.
_GAP: Final = "\x00"
#: Hyphens that texts use; inside the brackets of an expression, the plain one first.
_HYPHENS: Final = "-\u2010\u2011\u2013"
_POSSESSIVE: Final = r"(?:['’](?:s|d|ll)(?!\w))?"


@dataclass(frozen=True)
class Scrubbed:
    """A report without demographic terms.

    Attributes
    ----------
    text : str
        What is left. A text without such terms is unchanged.
    n_removed : int
        Terms removed.
    """

    text: str
    n_removed: int


@dataclass(frozen=True)
class ScrubbedReports:
    """Many reports without demographic terms.

    Attributes
    ----------
    texts : pandas.Series of str
        One text per report, the index as given.
    n_changed : int
        Reports that lost at least one term.
    removed : pandas.DataFrame
        Columns ``kind`` (sex, race, ethnicity, age) and ``n_removed``, one row per kind.
    version : str
        Version of the list of terms.
    """

    texts: pd.Series
    n_changed: int
    removed: pd.DataFrame
    version: str


def scrub(text: str) -> Scrubbed:
    """Remove terms of sex, race, ethnicity and age.

    Parameters
    ----------
    text : str
        A report or a section of one.

    Returns
    -------
    Scrubbed
        The text without them; scrubbing it again changes nothing.

    Examples
    --------
    >>> from frame.cohorts.reports import scrub
    >>> scrub("58-year-old woman, cough. The mandible is intact.")
    Scrubbed(text='cough. The mandible is intact.', n_removed=2)
    """
    left, kinds = _scrubbed(text)
    return Scrubbed(left, sum(kinds.values()))


def scrub_reports(texts: pd.Series) -> ScrubbedReports:
    """Remove the terms from many reports.

    Parameters
    ----------
    texts : pandas.Series of str
        Reports; a missing one counts as ``""``.

    Returns
    -------
    ScrubbedReports
        The texts and how many terms of each kind were removed.
    """
    scrubbed = []
    kinds: Counter[str] = Counter()
    n_changed = 0
    for text in texts.fillna("").astype(str):
        left, found = _scrubbed(text)
        scrubbed.append(left)
        kinds.update(found)
        n_changed += bool(found)
    names = list(_rules().kinds)
    removed = pd.DataFrame({"kind": names, "n_removed": [kinds[name] for name in names]})
    return ScrubbedReports(
        pd.Series(scrubbed, index=texts.index, dtype="str"), n_changed, removed, terms_version()
    )


def amplify(text: str, race: object = None, sex: object = None, age_band: object = None) -> str:
    """Put one sentence in front that names race, sex and age band.

    Parameters
    ----------
    text : str
        A report or a section of one.
    race : str, optional
        One of :data:`RACES`. Give what was recorded, not the pooled level: a site that records no race would
        otherwise be named ``other race``.
    sex : str, optional
        One of :data:`SEXES`.
    age_band : str, optional
        One of :data:`AGE_WORDS`.

    Returns
    -------
    str
        The sentence, a blank and the text. A part that is missing (``None``, ``NaN``, ``""``) is left out;
        without any the text is unchanged.

    Raises
    ------
    frame.InputError
        If a value is none of these.

    Examples
    --------
    >>> from frame.cohorts.reports import amplify
    >>> amplify("Clear lungs.", race="Black", sex="female", age_band="60-<80")
    'Black female patient aged 60 to 79 years. Clear lungs.'
    >>> amplify("Clear lungs.", sex="male")
    'Male patient. Clear lungs.'
    """
    named_race = _one_of(race, "race", RACES)
    named_sex = _one_of(sex, "sex", SEXES)
    band = _one_of(age_band, "age_band", tuple(AGE_WORDS))
    words = [
        *([] if named_race is None else ["other-race" if named_race == "Other" else named_race]),
        *([] if named_sex is None else [named_sex]),
        "patient",
        *([] if band is None else [f"aged {AGE_WORDS[band]}"]),
    ]
    if len(words) == 1:
        return text
    sentence = " ".join(words)
    sentence = f"{sentence[0].upper()}{sentence[1:]}."
    return f"{sentence} {text}" if text else sentence


def terms_version() -> str:
    """The version of the list of terms, to be kept with every text that was made with it."""
    return _rules().version


@dataclass(frozen=True)
class _Rules:
    """The list of terms as one expression; the name of the group that matched tells the kind."""

    expression: re.Pattern[str]
    kinds: tuple[str, ...]
    version: str


@cache
def _rules() -> _Rules:
    table = load_table("demographic_terms")
    versions = table["version"].unique()
    if len(versions) != 1:
        raise InputError(f"demographic_terms.csv: the rows are of {len(versions)} versions; one is needed.")
    kinds = tuple(dict.fromkeys(table["kind"]))
    branches = {"keep": _words(table.loc[table["form"] == "keep", "term"].tolist())}
    for form, expression in (("pattern", _patterns), ("word", _words)):
        for kind in kinds:
            terms = table.loc[(table["form"] == form) & (table["kind"] == kind), "term"].tolist()
            if terms:
                branches[f"{form}_{kind}"] = expression(terms)
    # Longer words of another kind come first: "non-hispanic" before "non", "asian indian" before "asian".
    return _Rules(_expression(branches), kinds, str(versions[0]))


def _expression(branches: Mapping[str, str]) -> re.Pattern[str]:
    whole = "|".join(rf"(?P<{name}>{branch})" for name, branch in branches.items())
    return re.compile(rf"(?<!\w)(?<!\d\.)(?:{whole})(?!\w){_POSSESSIVE}", re.IGNORECASE)


def _patterns(terms: Sequence[str]) -> str:
    for term in terms:
        if re.compile(term).match(""):
            raise InputError("demographic_terms.csv: a pattern matches the empty text; it must need a word.")
    return "|".join(f"(?:{term})".replace(r"[-\s]", rf"[{_HYPHENS}\s]") for term in terms)


def _words(terms: Sequence[str]) -> str:
    """The terms, longest first; a blank is any white space and a hyphen any hyphen."""
    ordered = sorted(terms, key=lambda term: (-len(term), term))
    return "|".join(
        re.escape(term).replace(r"\ ", r"\s+").replace(r"\-", f"[{_HYPHENS}]") for term in ordered
    )


def _scrubbed(text: str) -> tuple[str, Counter[str]]:
    """What is left, and how many terms of each kind went; repeated until nothing more is found."""
    expression = _rules().expression
    kinds: Counter[str] = Counter()

    def gap(match: re.Match[str]) -> str:
        branch = str(match.lastgroup)
        if branch == "keep":
            return match[0]
        kinds[branch.partition("_")[2]] += 1
        return _GAP

    text = text.replace(_GAP, " ")
    while True:
        replaced = expression.sub(gap, text)
        if _GAP not in replaced:
            return text, kinds
        text = _tidied(replaced)


def _tidied(text: str) -> str:
    """Close the gaps: what joined or enclosed a term, and commas that now begin or end a sentence."""
    gap = rf"[{_HYPHENS}/]*{_GAP}[{_HYPHENS}/]*"
    text = re.sub(rf"\(\s*{gap}\s*\)|\[\s*{gap}\s*\]", _GAP, text)
    text = re.sub(rf"{gap}(?:[\s,]*{gap})*", _GAP, text)
    text = re.sub(rf"(?:(?<=[.:;?!])|\A)(\s*)(?:{_GAP}\s*[,;.]*\s*)+", r"\1", text)
    text = re.sub(rf",(?:\s*{_GAP}\s*,)+", ",", text)
    text = re.sub(rf"[\s,]*{_GAP}\s*(?=[.;:?!)]|\Z)", "", text)
    text = re.sub(rf"\s*{_GAP}(?=,)", "", text)
    text = re.sub(rf"(?<=\s){_GAP}\s*|{_GAP}(?=\s)", "", text)
    return text.replace(_GAP, " ")


def _one_of(value: object, name: str, allowed: tuple[str, ...]) -> str | None:
    if value is None or value is pd.NA or value == "" or value != value:  # NaN is not itself
        return None
    if value not in allowed:
        raise InputError(f"{name} is {value!r}; it must be one of {', '.join(allowed)}, or missing.")
    return str(value)

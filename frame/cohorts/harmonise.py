"""One set of categories for all sources: race, insurance, ethnicity, sex, view, skin type and age.

The rules are ordered tables in ``data/harmonisation/``; this module applies them. Words are matched as whole
words and never as letters inside one: "White or Caucasian" is not Asian, and "White, non-Hispanic" is not
Hispanic. Every recorded text is tallied with what it became. A text that no rule knows is shown in the
tally only if it cannot be an id or a note: texts with digits and long texts are counted together.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Final

import numpy as np
import pandas as pd

from frame.cohorts.adjudicated import AGE_BANDS, OLDEST, age_band
from frame.errors import InputError
from frame.tables import load_table

__all__ = [
    "AGE_BANDS",
    "AGE_UNITS",
    "Harmonised",
    "age_band",
    "ages",
    "ethnicity",
    "insurance",
    "pooled_insurance",
    "pooled_race",
    "race",
    "sex",
    "skin_type",
    "view",
]

#: Units of an age and how many of each are a year.
AGE_UNITS: Final = {"years": 1.0, "months": 12.0, "weeks": 365.25 / 7, "days": 365.25}

_REMOVED: Final = "removed"
_NOT_RECORDED: Final = "not recorded"
_BLANK: Final = "(blank)"
_LONGEST_SHOWN: Final = 60
_AGE: Final = re.compile(r"([+-]?\d+(?:\.\d*)?|[+-]?\.\d+)\s*([YMWD]?)", re.IGNORECASE)
_DICOM_UNITS: Final = {"Y": "years", "M": "months", "W": "weeks", "D": "days"}


@dataclass(frozen=True)
class Harmonised:
    """A column in common categories.

    Attributes
    ----------
    values : pandas.Series
        The category of each row (text) or its age (float64 years), missing where nothing was recorded; the
        index of what was recorded.
    tally : pandas.DataFrame
        ``field``, ``recorded``, ``value``, ``n_images``: each recorded text (ages: each kind of text), what
        it became (missing where nothing was recorded), and its number of rows. Sorted by number, then text.
    """

    values: pd.Series = field(repr=False)
    tally: pd.DataFrame = field(repr=False)


def race(recorded: pd.Series, ethnicity: pd.Series | None = None) -> Harmonised:
    """Race as the source recorded it, in five levels.

    A text that names White, Black or Asian is that, in this order, whatever it says of ethnicity; then
    Hispanic or Latino; any other recorded text is Other. Unknown, refused and blank are missing. The paper
    matches substrings to these five levels and says that non-Hispanic is not Hispanic and Caucasian is not
    Asian; which level wins where a text names two is not said. A named race first keeps "White, Hispanic"
    and "WHITE - BRAZILIAN" together with White, in the order in which the paper lists its levels.

    Parameters
    ----------
    recorded : pandas.Series
        Text of the race field.
    ethnicity : pandas.Series, optional
        Text of a separate ethnicity field, with the same index. "Hispanic" there counts only where the race
        text is Other or missing, as it does where one text says both ("Other, Hispanic").

    Returns
    -------
    Harmonised
        Levels White, Black, Asian, Hispanic or Latino, Other, or missing.

    Raises
    ------
    frame.InputError
        If the two fields differ in length or index.
    """
    found = _by_words("race", "race_terms", recorded, unmatched="Other")
    if ethnicity is None:
        return found
    if not ethnicity.index.equals(recorded.index):
        raise InputError("The race and the ethnicity of a source must have one row for each other.")
    hispanic = _by_words("ethnicity", "ethnicity_terms", ethnicity, unmatched=None).values == "Hispanic"
    open_race = found.values.isna() | (found.values == "Other")
    values = found.values.mask(open_race & hispanic, "Hispanic or Latino")
    shown = _shown("race_terms", recorded) + hispanic.map({True: "; ethnicity Hispanic", False: ""})
    return Harmonised(values, _tally("race", shown, values))


def ethnicity(recorded: pd.Series) -> Harmonised:
    """Hispanic or non-Hispanic, as the source recorded it.

    Parameters
    ----------
    recorded : pandas.Series
        Text of the ethnicity field.

    Returns
    -------
    Harmonised
        Levels Hispanic and non-Hispanic; missing where the text says neither.
    """
    return _by_words("ethnicity", "ethnicity_terms", recorded, unmatched=None)


def insurance(recorded: pd.Series) -> Harmonised:
    """The payer, as the source recorded it.

    Parameters
    ----------
    recorded : pandas.Series
        Text of the insurance field.

    Returns
    -------
    Harmonised
        Levels Medicare, Medicaid, Private and Other; missing where it is unknown, refused or blank. A text
        that no rule knows is Other, as in the paper.
    """
    return _by_words("insurance", "insurance_terms", recorded, unmatched="Other")


def view(recorded: pd.Series) -> Harmonised:
    """The projection of a chest radiograph.

    Parameters
    ----------
    recorded : pandas.Series
        Text of the view field, as MIMIC-CXR, CheXpert, ChestX-ray14 or PadChest write it.

    Returns
    -------
    Harmonised
        Levels AP, PA, lateral and unknown (blank, or none of these); never missing. A manifest holds no
        lateral view.
    """
    return _by_words("view", "view_terms", recorded, unmatched="unknown", blank="unknown")


def sex(recorded: pd.Series) -> Harmonised:
    """Sex, as the source recorded it.

    Parameters
    ----------
    recorded : pandas.Series
        Codes such as ``F``, ``male``, ``O``.

    Returns
    -------
    Harmonised
        Levels female and male; missing for any other code.
    """
    return _by_code("sex", "sex_codes", recorded)


def skin_type(recorded: pd.Series) -> Harmonised:
    """Fitzpatrick skin type in three groups.

    Parameters
    ----------
    recorded : pandas.Series
        Types 1 to 6, or the groups 12, 34 and 56 of DDI; numbers or text.

    Returns
    -------
    Harmonised
        Levels I-II, III-IV and V-VI; missing for any other code, such as -1.
    """
    return _by_code("skin_type", "skin_type_codes", recorded)


def pooled_race(race_recorded: pd.Series) -> pd.Series:
    """The pooled race of the paper: Other also where nothing was recorded.

    Parameters
    ----------
    race_recorded : pandas.Series
        Levels of :func:`race`, or missing.

    Returns
    -------
    pandas.Series of str
        Never missing. Other then mixes patients of another race with sites that record none;
        ``race_recorded`` does not.
    """
    return _pooled(race_recorded)


def pooled_insurance(insurance_recorded: pd.Series) -> pd.Series:
    """The pooled insurance of the paper: Other also where nothing was recorded.

    Parameters
    ----------
    insurance_recorded : pandas.Series
        Levels of :func:`insurance`, or missing.

    Returns
    -------
    pandas.Series of str
        Never missing.
    """
    return _pooled(insurance_recorded)


def ages(recorded: pd.Series, *, zero_is_unknown: bool = False, unit: str = "years") -> Harmonised:
    """Ages in years, from numbers or from DICOM age strings.

    Parameters
    ----------
    recorded : pandas.Series
        Numbers, or texts such as ``58``, ``63.9``, ``058Y``, ``013M``, ``003W``, ``020D``.
    zero_is_unknown : bool
        Whether an age of 0 years stands for an unknown one (CheXpert).
    unit : {"years", "months", "weeks", "days"}
        Unit of a number without a letter.

    Returns
    -------
    Harmonised
        Years from 0 to 120 (float64). Anything else (``411Y``, -1, no number) is missing; it falls into no
        band, and the tally counts it by kind, without the texts.

    Raises
    ------
    frame.InputError
        If ``unit`` is none of these.
    """
    if unit not in AGE_UNITS:
        raise InputError(f"unit is {unit!r}; it must be one of {', '.join(AGE_UNITS)}.")
    codes, texts = _texts(recorded)
    parsed = [_age(text, zero_is_unknown, unit) for text in texts]
    years = np.array([age for age, _ in parsed], dtype=np.float64)
    kinds = pd.Series([kind for _, kind in parsed], dtype="str")
    values = pd.Series(years[codes], index=recorded.index, name=recorded.name)
    shown = pd.Series(kinds.to_numpy()[codes], index=recorded.index)
    became = values.notna().map({True: "age in years", False: None})
    return Harmonised(values, _tally("age", shown, became))


def _age(text: str, zero_is_unknown: bool, unit: str) -> tuple[float, str]:
    """Years and kind of one text; missing with the reason as its kind."""
    if not text:
        return np.nan, _BLANK
    match = _AGE.fullmatch(text)
    if match is None:
        return np.nan, "no age"
    named = _DICOM_UNITS.get(match[2].upper(), unit)
    age = float(match[1]) / AGE_UNITS[named]
    if age < 0:
        return np.nan, "below 0 years"
    if age > OLDEST:
        return np.nan, f"above {OLDEST} years"
    if age == 0 and zero_is_unknown and named == "years":
        return np.nan, "0 years, which stands for unknown"
    return age, f"{'DICOM age' if match[2] else 'number'} in {named}"


@dataclass(frozen=True)
class _Rule:
    words: str
    whole: bool
    value: str


@cache
def _rules(table: str) -> tuple[_Rule, ...]:
    rows = load_table(table)
    return tuple(
        _Rule(words, match == "whole", value)
        for words, match, value in zip(rows["words"], rows["match"], rows["value"], strict=True)
    )


@cache
def _codes(table: str) -> dict[str, str]:
    rows = load_table(table)
    return dict(zip(rows["code"], rows["value"], strict=True))


def _texts(recorded: pd.Series) -> tuple[np.ndarray, list[str]]:
    """Position of each row's text in the list of the different texts, which are stripped; missing is ''."""
    codes, found = pd.factorize(recorded.astype(object), use_na_sentinel=True)
    return np.where(codes < 0, len(found), codes), [*(str(text).strip() for text in found), ""]


def _words(text: str) -> str:
    """Lower-case letters and digits of a text, one space between words; marks that are not seen are none."""
    seen = "".join(letter for letter in text if unicodedata.category(letter) != "Cf")
    folded = unicodedata.normalize("NFKC", seen).casefold()
    return " ".join(re.findall(r"[^\W_]+", folded))


def _match_words(table: str, text: str) -> tuple[str | None, bool]:
    """The value that the first matching rule gives, and whether one matched; a blank text matches none."""
    rest = _words(text)
    for rule in _rules(table):
        inside = rest == rule.words if rule.whole else f" {rule.words} " in f" {rest} "
        if not inside:
            continue
        if rule.value != _REMOVED:
            return rule.value, True
        rest = _words(f" {rest} ".replace(f" {rule.words} ", " , "))
        if not rest:
            return _NOT_RECORDED, True
    return None, False


def _by_words(
    name: str, table: str, recorded: pd.Series, *, unmatched: str | None, blank: str | None = None
) -> Harmonised:
    def value(text: str) -> str | None:
        if not _words(text):
            return blank
        found, matched = _match_words(table, text)
        return found if matched else unmatched

    return _mapped(name, table, recorded, value)


def _by_code(name: str, table: str, recorded: pd.Series) -> Harmonised:
    return _mapped(name, table, recorded, lambda text: _codes(table).get(_code(text)))


def _code(text: str) -> str:
    """A code as the tables write it: lower case, a whole number without decimals."""
    return re.sub(r"^(-?\d+)\.0+$", r"\1", text.casefold())


def _mapped(name: str, table: str, recorded: pd.Series, value: Callable[[str], str | None]) -> Harmonised:
    codes, texts = _texts(recorded)
    found = [value(text) for text in texts]
    levels = np.array([None if level == _NOT_RECORDED else level for level in found], dtype=object)
    values = pd.Series(levels[codes], index=recorded.index, name=recorded.name, dtype="str")
    return Harmonised(values, _tally(name, _shown(table, recorded), values))


def _shown(table: str, recorded: pd.Series) -> pd.Series:
    """What the tally shows of each text: the text, unless no rule knows it and it may be an id or a note."""
    codes, texts = _texts(recorded)

    def shown(text: str) -> str:
        if not text:
            return _BLANK
        known = _code(text) in _codes(table) if table.endswith("_codes") and table != "view_terms" else (
            _match_words(table, text)[1] and not any(character.isdigit() for character in text)
        )  # fmt: skip
        if known:
            return text if len(text) <= _LONGEST_SHOWN else "(long text)"
        if any(character.isdigit() for character in text):
            return "(text with digits)"
        return text if len(text) <= _LONGEST_SHOWN else "(long text)"

    return pd.Series(np.array([shown(text) for text in texts], dtype=object)[codes], index=recorded.index)


def _tally(name: str, shown: pd.Series, values: pd.Series) -> pd.DataFrame:
    counted = (
        pd.DataFrame({"recorded": shown.to_numpy(), "value": values.to_numpy()})
        .groupby(["recorded", "value"], dropna=False, sort=False)
        .size()
        .rename("n_images")
        .reset_index()
        .sort_values(["n_images", "recorded", "value"], ascending=[False, True, True], kind="stable")
        .reset_index(drop=True)
    )
    counted.insert(0, "field", name)
    return counted.astype({"field": "str", "recorded": "str", "value": "str", "n_images": "int64"})


def _pooled(recorded: pd.Series) -> pd.Series:
    values = recorded.astype(object)
    return values.where(values.notna(), "Other").astype("str")

"""Reading one column of what a user gave: scores, labels or patient ids of any container and dtype.

Errors speak of column names, counts and category labels. They never quote a score, a patient id or the
values of a column that holds many different ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Number, Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frame.errors import InputError

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Integers = NDArray[np.int64]

#: Texts that stand for a missing value which was turned into text on its way here.
MISSING_TEXTS = frozenset({"nan", "NaN", "NaT", "<NA>"})
_MOST_QUOTED = 6
#: Name of the index of a column that came without one: its rows are known by position alone.
_BY_POSITION = "frame: by position"


def column(given: Any, what: str) -> pd.Series:
    """One column as a Series; a list keeps None and NaN as they are.

    Parameters
    ----------
    given : Series, Index, array or list, shape (n,)
    what : str
        How errors call it, for example ``labels``.

    Returns
    -------
    Series
        With its own index where a Series was given.

    Raises
    ------
    InputError
        For a scalar, text, an unordered container or anything with more than one dimension.
    """
    if isinstance(given, pd.Series):
        return given
    shape_problem = "give one value per image, as a list, an array or a Series"
    if isinstance(given, (pd.DataFrame, Mapping)):
        raise InputError(f"{what}: a table with {len(given.keys())} column(s) was given; {shape_problem}.")
    if isinstance(given, (str, bytes, bytearray, set, frozenset)) or not hasattr(given, "__len__"):
        raise InputError(f"{what}: a {type(given).__name__} was given; {shape_problem}.")
    dimensions = getattr(given, "ndim", 1)
    if dimensions != 1:
        raise InputError(
            f"{what}: an array with {dimensions} dimensions was given; {shape_problem}. "
            "Several columns are named in a dictionary or a DataFrame."
        )
    if isinstance(given, (list, tuple)):
        return _by_position(pd.Series(list(given), dtype=object))
    if isinstance(given, (np.ndarray, pd.Index, pd.api.extensions.ExtensionArray)):
        values = given.astype(object) if getattr(given.dtype, "kind", "") in "US" else given
        return _by_position(pd.Series(values))
    try:
        array = np.asarray(given)
    except (TypeError, ValueError, RuntimeError):
        array = np.empty(())
    if array.ndim != 1:
        raise InputError(f"{what}: a {type(given).__name__} was given; {shape_problem}.")
    return _by_position(pd.Series(array.astype(object) if array.dtype.kind in "US" else array))


def _by_position(series: pd.Series) -> pd.Series:
    """The column with an index that says that it has none."""
    series.index = pd.RangeIndex(len(series), name=_BY_POSITION)
    return series


def name_of(series: pd.Series, default: str) -> str:
    """The name of a column, ``default`` where it has none in text."""
    return series.name if isinstance(series.name, str) and series.name.strip() else default


def named_columns(given: Any, what: str, default: str) -> dict[str, pd.Series]:
    """Columns by name: one column (its own name, or ``default``), or a dictionary or DataFrame of several.

    Raises
    ------
    InputError
        No column, a name that is not text or is blank, or a name that stands there twice.
    """
    if isinstance(given, pd.DataFrame):
        names = list(given.columns)
        found = [(name, given.iloc[:, i]) for i, name in enumerate(names)]
    elif isinstance(given, Mapping):
        found = [(name, column(values, f"{what} {name!r}")) for name, values in given.items()]
    else:
        single = column(given, what)
        return {name_of(single, default): single}
    if not found:
        raise InputError(f"{what}: a table without a column was given; give at least one.")
    columns: dict[str, pd.Series] = {}
    for name, values in found:
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"{what}: a column is called {name!r}; give every column a name in text.")
        if name in columns:
            raise InputError(f"{what}: column '{name}' stands there twice; keep one.")
        columns[name] = values
    return columns


def check_aligned(columns: dict[str, pd.Series]) -> int:
    """Number of rows that all columns share.

    Raises
    ------
    InputError
        No rows, unequal lengths, or pandas columns that hold the same index labels in another order, where
        matching by position and matching by label would give different pairs.
    """
    first, length = next((name, len(series)) for name, series in columns.items())
    for name, series in columns.items():
        if len(series) != length:
            raise InputError(
                f"{first} has {length} rows and {name} has {len(series)}; give one value per image in each."
            )
    indexed = [(name, s.index) for name, s in columns.items() if s.index.name != _BY_POSITION]
    for name, index in indexed[1:]:
        if not index.equals(indexed[0][1]) and _same_labels(index, indexed[0][1]):
            raise InputError(
                f"{indexed[0][0]} and {name} hold the same index labels in a different order; bring them "
                "into one order, or pass both with .to_numpy() if their rows already match by position."
            )
    if length == 0:
        raise InputError(f"{first} is empty; give at least one image.")
    return length


def _same_labels(one: pd.Index, other: pd.Index) -> bool:
    return bool(one.is_unique and other.is_unique and one.isin(other).all())


def read_scores(series: pd.Series, what: str) -> Floats:
    """Scores as float64, NaN where one is missing; True and False are decisions, 1 and 0.

    Raises
    ------
    InputError
        Text, complex numbers, dates or categories.
    """
    kind = _kind(series)
    if kind == "string":
        raise InputError(f"{what} holds text; scores are numbers (pandas.to_numeric converts text).")
    if kind not in ("number", "boolean"):
        shown = "values that are no numbers" if _is_object(series) else str(series.dtype)
        raise InputError(f"{what} holds {shown}; scores are real numbers.")
    try:
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what} holds values that are no numbers; scores are real numbers.") from None


def _kind(series: pd.Series) -> str:
    """``number``, ``boolean``, ``string`` or ``other``."""
    dtype = series.dtype
    if pd.api.types.is_bool_dtype(dtype):
        return "boolean"
    if isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_complex_dtype(dtype):
        return "other"
    if pd.api.types.is_numeric_dtype(dtype):
        return "number"
    if pd.api.types.is_string_dtype(dtype) and not _is_object(series):
        return "string"
    if not _is_object(series):
        return "other"
    inferred = pd.api.types.infer_dtype(series.to_numpy(dtype=object), skipna=True)
    return {
        "integer": "number",
        "floating": "number",
        "mixed-integer-float": "number",
        "decimal": "number",
        "empty": "number",
        "string": "string",
        "boolean": "boolean",
    }.get(inferred, "other")


def _is_object(series: pd.Series) -> bool:
    return bool(pd.api.types.is_object_dtype(series.dtype))


def is_number(given: object) -> bool:
    """Whether this is one real number: not True or False, not NaN."""
    if isinstance(given, bool) or not isinstance(given, Real):
        return False
    return not math.isnan(float(given))


def factorize(series: pd.Series, what: str) -> tuple[Integers, list[Any]]:
    """Codes in order of first appearance (-1 = missing) and the different values.

    ``None``, NaN, ``pandas.NA``, blanks and the texts of :data:`MISSING_TEXTS` are missing.

    Raises
    ------
    InputError
        Cells that hold a list or another container.
    """
    try:
        codes, uniques = pd.factorize(series)
    except TypeError:
        raise InputError(f"{what} holds cells that are no single values; give one value per image.") from None
    # A short float iterates as a long one, 0.1 as 0.10000000149; as an array it prints as it was given.
    values = list(np.asarray(uniques)) if pd.api.types.is_float_dtype(uniques.dtype) else list(uniques)
    if not all(pd.api.types.is_scalar(value) for value in values):
        raise InputError(f"{what} holds cells that are no single values; give one value per image.")
    codes = np.asarray(codes, dtype=np.int64)
    missing = [i for i, value in enumerate(values) if _is_missing_text(value)]
    if not missing:
        return codes, values
    kept = [i for i in range(len(values)) if i not in set(missing)]
    recode = np.full(len(values) + 1, -1, dtype=np.int64)
    recode[kept] = np.arange(len(kept))
    return recode[codes], [values[i] for i in kept]


def _is_missing_text(value: Any) -> bool:
    return isinstance(value, str) and (not value.strip() or value in MISSING_TEXTS)


def text_of(value: Any) -> str:
    """A value as text: numbers without a trailing ``.0``, everything else as it prints."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def read_labels(
    series: pd.Series, groups: tuple[Integers, Sequence[str]] | None = None
) -> tuple[Booleans, Booleans]:
    """Labels as True and False, and which images have one.

    Parameters
    ----------
    series : Series, shape (n,)
        0 and 1, True and False, in any dtype that equals them; missing values are images without a label.
    groups : (codes, names), optional
        Groups of the images, to say where other values lie.

    Returns
    -------
    (ndarray of bool, ndarray of bool), each of shape (n,)
        The labels (False where there is none) and whether there is one.

    Raises
    ------
    InputError
        Any other value: text, -1, 2. The sentence quotes the values with their counts by group and says
        how to map them. No policy for an uncertain label is guessed.
    """
    if series.dtype == np.bool_:
        return series.to_numpy(dtype=np.bool_), np.ones(len(series), dtype=np.bool_)
    codes, values = _label_codes(series)
    truth = [_truth(value) for value in values]
    wrong = [i for i, value in enumerate(truth) if value is None]
    if wrong:
        raise InputError(_label_problem(codes, values, wrong, groups))
    table = np.array([bool(value) for value in truth] + [False], dtype=np.bool_)
    return table[codes], codes >= 0


def _label_codes(series: pd.Series) -> tuple[Integers, list[Any]]:
    try:
        codes, uniques = pd.factorize(series)
    except TypeError:
        raise InputError("labels hold cells that are no single values; give 0 or 1 per image.") from None
    return np.asarray(codes, dtype=np.int64), list(uniques)


def _truth(value: Any) -> bool | None:
    """The label a value stands for; None when it is neither 0 nor 1."""
    if isinstance(value, (Number, np.bool_)):
        if value == 1:
            return True
        if value == 0:
            return False
    return None


def _label_problem(
    codes: Integers, values: list[Any], wrong: list[int], groups: tuple[Integers, Sequence[str]] | None
) -> str:
    allowed = "allowed are 0, 1, True and False, and missing for an image without a label"
    if len(values) > _MOST_QUOTED:
        count = int(np.isin(codes, wrong).sum())
        return (
            f"labels hold {len(values)} different values, {count} of {len(codes)} images with something "
            f"other than 0 or 1; {allowed}. Is this the column of labels?"
        )
    quoted = [repr(value) if isinstance(value, str) else text_of(value) for value in values]
    found = "; ".join(f"{quoted[i]} {_by_group(codes == i, groups)}" for i in wrong)
    first = values[wrong[0]]
    if any(isinstance(values[i], str) for i in wrong):
        example = "labels.map({" + ", ".join(f"{text}: ..." for text in quoted) + "}) with 0 or 1 for each"
    elif len(wrong) == 1 and first == -1 and len(values) == 2:
        example = "(labels == 1) if -1 means absent"
    elif any(values[i] == -1 for i in wrong):
        example = "labels.replace({-1: 0}), {-1: 1} or {-1: float('nan')}, whichever an uncertain label means"
    else:
        example = "(labels == x) with the value x that means present"
    return f"labels hold {found}; {allowed}. Map them first, for example {example}."


def _by_group(chosen: Booleans, groups: tuple[Integers, Sequence[str]] | None) -> str:
    total = int(chosen.sum())
    counted = f"({total} images"
    if groups is not None and 0 < len(groups[1]) <= 3 * _MOST_QUOTED:
        codes, names = groups
        counts = np.bincount(codes[chosen] + 1, minlength=len(names) + 1)
        parts = [f"{' '.join(name.split())} {counts[i + 1]}" for i, name in enumerate(names) if counts[i + 1]]
        if counts[0]:
            parts.append(f"without a group {counts[0]}")
        counted += ": " + ", ".join(parts) if parts else ""
    return counted + ")"


def read_patients(series: pd.Series, what: str = "patients") -> tuple[Integers, int]:
    """Patient codes in order of first appearance, -1 for a missing id, and the number of patients.

    Ids are taken as they are: ``"007"`` and ``7`` are two patients. Ids that differ only by blanks around
    them, or by being a number here and text there, could be one patient or two, and are refused.

    Raises
    ------
    InputError
        With the count of such ids, never the ids themselves.
    """
    codes, values = factorize(series, what)
    if any(isinstance(value, str) for value in values):
        texts = pd.Series([text_of(value).strip() for value in values], dtype=object)
        alike = int(texts.duplicated(keep=False).sum())
        if alike:
            raise InputError(
                f"{what}: {alike} ids are the same but for blanks around them or for being text in one row "
                "and a number in another; write every id in one way (for example .astype(str).str.strip())."
            )
    return codes, len(values)

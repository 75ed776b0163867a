"""The table of images of one source: its columns, their levels, its check and its file.

A manifest has one row per image. Its ids carry the name of the source in front (``nih_cxr14:...``), so that
manifests of several sources can be put together and no patient of one is taken for a patient of another.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from frame.cohorts.adjudicated import AGE_BANDS, OLDEST
from frame.cohorts.labels import CODES
from frame.cohorts.sites import SITES
from frame.errors import InputError

__all__ = [
    "BASE_COLUMNS",
    "FINDINGS",
    "ID_COLUMNS",
    "LEVELS",
    "MODALITIES",
    "check_manifest",
    "manifest_columns",
    "read_manifest_file",
    "write_manifest",
]

MODALITIES: Final = ("chest", "skin", "fundus")

#: The findings of each modality, in column order. Chest: the 14 of CheXpert without No Finding.
FINDINGS: Final[dict[str, tuple[str, ...]]] = {
    "chest": (
        "atelectasis",
        "cardiomegaly",
        "consolidation",
        "edema",
        "enlarged_cardiomediastinum",
        "fracture",
        "lung_lesion",
        "lung_opacity",
        "pleural_effusion",
        "pleural_other",
        "pneumonia",
        "pneumothorax",
        "support_devices",
    ),
    "skin": ("malignant",),
    "fundus": ("glaucoma",),
}

#: The columns of every manifest, before the findings of its modality.
BASE_COLUMNS: Final = (
    "image_id",
    "site",
    "modality",
    "subject_id",
    "subject_kind",
    "patient_id",
    "study_id",
    "file",
    "split",
    "age",
    "age_band",
    "sex",
    "race",
    "race_recorded",
    "ethnicity",
    "insurance",
    "insurance_recorded",
    "skin_type",
    "view",
)

#: Columns that hold an id with the source's name in front.
ID_COLUMNS: Final = ("image_id", "subject_id", "patient_id", "study_id")

_RACES: Final = ("White", "Black", "Asian", "Hispanic or Latino", "Other")
_INSURANCES: Final = ("Medicare", "Medicaid", "Private", "Other")

#: The levels of each column of categories, in the order in which they are shown.
LEVELS: Final[dict[str, tuple[str, ...]]] = {
    "site": SITES,
    "modality": MODALITIES,
    "subject_kind": ("patient", "lesion", "case", "image"),
    "split": ("train", "validation", "test"),
    "age_band": tuple(AGE_BANDS),
    "sex": ("female", "male"),
    "race": _RACES,
    "race_recorded": _RACES,
    "ethnicity": ("Hispanic", "non-Hispanic"),
    "insurance": _INSURANCES,
    "insurance_recorded": _INSURANCES,
    "skin_type": ("I-II", "III-IV", "V-VI"),
    "view": ("AP", "PA", "unknown"),
}

#: Never missing, whatever the modality; then what is never missing, and what is always, by modality.
_ALWAYS: Final = ("image_id", "site", "modality", "subject_id", "subject_kind", "split")
_NEVER_MISSING: Final = {"chest": ("race", "insurance", "view"), "skin": (), "fundus": ()}
_ALWAYS_MISSING: Final = {
    "chest": ("skin_type",),
    "skin": ("race", "race_recorded", "ethnicity", "insurance", "insurance_recorded", "view"),
    "fundus": ("insurance", "insurance_recorded", "skin_type", "view"),
}


def manifest_columns(modality: str) -> tuple[str, ...]:
    """All columns of a manifest in order.

    Parameters
    ----------
    modality : {"chest", "skin", "fundus"}
        What the images show.

    Returns
    -------
    tuple of str
        :data:`BASE_COLUMNS` and the findings.

    Raises
    ------
    frame.InputError
        If there is no such modality.
    """
    if modality not in FINDINGS:
        raise InputError(f"modality is {modality!r}; it must be one of {', '.join(MODALITIES)}.")
    return (*BASE_COLUMNS, *FINDINGS[modality])


def check_manifest(frame: pd.DataFrame) -> pd.DataFrame:
    """Check a manifest and give its columns their types.

    Parameters
    ----------
    frame : pandas.DataFrame
        One row per image, columns as :func:`manifest_columns`; text, categories or numbers.

    Returns
    -------
    pandas.DataFrame
        The same rows with index 0, 1, …: ids and ``file`` as text, columns of :data:`LEVELS` as unordered
        Categorical with exactly these levels (``age_band`` ordered), ``age`` as float64, findings as Int8.

    Raises
    ------
    frame.InputError
        At the first breach: a column, a level, an id, an age or a code that is not allowed. The sentence
        names column, values of categories and counts, and never an image, a patient or a file.
    """
    import pandera.errors

    _check_columns(frame)
    modality = _one_modality(frame)
    typed = _typed(frame, modality)
    try:
        _schema(modality).validate(typed)
    except pandera.errors.SchemaError as error:
        raise InputError(_sentence(typed, error)) from None
    return typed


def write_manifest(frame: pd.DataFrame, path: Path) -> None:
    """Check a manifest and write it as Parquet; the same rows give the same bytes.

    Parameters
    ----------
    frame : pandas.DataFrame
        As for :func:`check_manifest`.
    path : Path
        File to make or replace. It is written under a temporary name in the same folder and renamed.

    Raises
    ------
    frame.InputError
        If the manifest is not in order, pyarrow is not installed, or the file cannot be written.
    """
    pyarrow, parquet = _parquet()
    typed = check_manifest(frame)
    schema = _arrow_schema(pyarrow, str(typed["modality"].iloc[0]))
    table = pyarrow.Table.from_arrays(
        [_arrow_column(pyarrow, typed[field.name], field.type) for field in schema], schema=schema
    )
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".frame-", suffix=".part")
        os.close(handle)
        parquet.write_table(table, temporary, compression="zstd", row_group_size=1 << 17)
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)
        Path(temporary).replace(path)
    except OSError as problem:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        reason = (problem.strerror or "it cannot be written").lower()
        raise InputError(f"The manifest '{path.name}' cannot be written ({reason}).") from None
    except BaseException:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise


def read_manifest_file(path: Path, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Read a manifest, or some of its columns, with the types of :func:`check_manifest`.

    Parameters
    ----------
    path : Path
        A file of :func:`write_manifest`.
    columns : sequence of str, optional
        Columns to read, in this order; all by default.

    Returns
    -------
    pandas.DataFrame
        One row per image, in file order.

    Raises
    ------
    frame.InputError
        If the file is missing, is no manifest, lacks a column, or pyarrow is not installed.
    """
    pyarrow, parquet = _parquet()
    if not path.is_file():
        raise InputError(f"There is no manifest '{path.name}'; make it with: frame data build.")
    try:
        found = parquet.read_schema(path)
        modality = next((key for key in MODALITIES if manifest_columns(key) == tuple(found.names)), None)
        if modality is None or found != _arrow_schema(pyarrow, modality):
            raise InputError(
                f"'{path.name}' has not the columns of a manifest of this version; "
                "make it again with: frame data build."
            )
        absent = [name for name in columns or () if name not in found.names]
        if absent:
            raise InputError(
                f"'{path.name}' has no column {', '.join(absent)}; it has {', '.join(found.names)}."
            )
        wanted = list(found.names if columns is None else columns)
        table = parquet.read_table(path, columns=wanted)
    except (OSError, pyarrow.ArrowException) as problem:
        # The cause may quote a value, so only its kind is told.
        raise InputError(
            f"'{path.name}' cannot be read as a manifest ({type(problem).__name__}); "
            "make it again with: frame data build."
        ) from None
    return pd.DataFrame({name: _pandas_column(name, table.column(name)) for name in wanted})


def _check_columns(frame: pd.DataFrame) -> None:
    absent = [name for name in BASE_COLUMNS if name not in frame.columns]
    if absent:
        raise InputError(
            f"The manifest has no column {', '.join(absent)}; needed are {', '.join(BASE_COLUMNS)}."
        )
    if frame.empty:
        raise InputError("The manifest has no row; a source without an image of the cohort cannot be used.")


def _one_modality(frame: pd.DataFrame) -> str:
    found = sorted({str(value) for value in frame["modality"].unique()})
    if len(found) != 1 or found[0] not in MODALITIES:
        raise InputError(
            f"The manifest's modality is {', '.join(found)}; "
            f"it must be one of {', '.join(MODALITIES)} in all rows."
        )
    columns = manifest_columns(found[0])
    if tuple(frame.columns) != columns:
        surplus = [str(name) for name in frame.columns if name not in columns]
        absent = [name for name in columns if name not in frame.columns]
        what = (
            f"has no column {', '.join(absent)}" if absent
            else f"has the unknown column {', '.join(surplus)}" if surplus
            else "has its columns out of order"
        )  # fmt: skip
        raise InputError(f"The manifest {what}; the columns for {found[0]} are {', '.join(columns)}.")
    return found[0]


def _typed(frame: pd.DataFrame, modality: str) -> pd.DataFrame:
    columns: dict[str, Any] = {}
    for name in manifest_columns(modality):
        column = frame[name]
        if name in LEVELS:
            columns[name] = _categorical(column)
        elif name == "age":
            columns[name] = pd.Series(_numbers(column), dtype=np.float64)
        elif name in FINDINGS[modality]:
            columns[name] = _codes(column)
        else:
            columns[name] = (
                column.astype(object).where(column.notna(), np.nan).reset_index(drop=True).astype("str")
            )
    return pd.DataFrame(columns)


def _categorical(column: pd.Series) -> pd.Categorical:
    """A column of levels; a text that is no level is an error that shows it (categories, never ids)."""
    name = str(column.name)
    levels = LEVELS[name]
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.cat.remove_unused_categories()
        found = list(column.cat.categories)
    else:
        found = list(column.dropna().unique())
    strange = [value for value in found if value not in levels]
    if strange:
        n_rows = int(column.isin(strange).sum())
        shown = ", ".join(repr(value) for value in strange[:5]) if len(strange) < 20 else "many texts"
        raise InputError(
            f"Column {name} of the manifest holds {shown} in {n_rows:,} rows; allowed is {', '.join(levels)}."
        )
    return pd.Categorical(column, categories=list(levels), ordered=name == "age_band")


def _numbers(column: pd.Series) -> np.ndarray:
    try:
        return pd.to_numeric(column).to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        raise InputError(f"Column {column.name} of the manifest holds something that is no number.") from None


def _codes(column: pd.Series) -> pd.Series:
    values = _numbers(column)
    strange = ~(np.isnan(values) | np.isin(values, CODES))
    if strange.any():
        raise InputError(
            f"Column {column.name} of the manifest holds a code other than "
            f"{', '.join(str(code) for code in CODES)} in {int(strange.sum()):,} rows."
        )
    missing = np.isnan(values)
    return pd.Series(pd.arrays.IntegerArray(np.where(missing, 0, values).astype(np.int8), missing))


def _schema(modality: str) -> Any:
    import pandera.pandas as pa

    def check(function: Any, words: str) -> Any:
        return pa.Check(function, error=words)

    never = {*_ALWAYS, *_NEVER_MISSING[modality]}
    columns: dict[str, Any] = {}
    for name in manifest_columns(modality):
        checks = []
        if name in never:
            checks.append(check(lambda column: column.notna(), "missing"))
        if name in _ALWAYS_MISSING[modality]:
            checks.append(
                check(lambda column: column.isna(), f"recorded, which {modality} images are not to be")
            )
        if name == "age":
            checks.append(
                check(lambda column: column.between(0, OLDEST), f"not between 0 and {OLDEST} years")
            )
        if name == "image_id":
            checks.append(check(lambda column: ~column.duplicated(), "there a second time"))
        if name == "file":
            checks.append(check(lambda column: ~column.duplicated(), "there a second time"))
            checks.append(
                check(
                    lambda column: ~column.str.contains(r"^/|\\|^[A-Za-z]:|(?:^|/)\.\.(?:/|$)"),
                    "no posix path relative to the source's folder",
                )
            )
        # A check sees missing values too where it is about them.
        for one in checks:
            one.ignore_na = one.error not in ("missing",) and not str(one.error).startswith("recorded")
        columns[name] = pa.Column(checks=checks, nullable=True)
    return pa.DataFrameSchema(columns, checks=_row_checks(modality))


def _row_checks(modality: str) -> list[Any]:
    """Checks over several columns; each error text reads after 'In n rows …'."""
    import pandera.pandas as pa

    def prefixed(name: str) -> Any:
        def function(frame: pd.DataFrame) -> pd.Series:
            ok = frame[name].isna().to_numpy().copy()
            for site in frame["site"].cat.categories:
                here = (frame["site"] == site).to_numpy()
                if here.any():
                    ok[here] |= frame[name][here].str.match(rf"{site}:\S").fillna(True).to_numpy(dtype=bool)
            return pd.Series(ok, index=frame.index)

        return pa.Check(function, error=f"{name} does not begin with the name of its site and a colon")

    def banded(frame: pd.DataFrame) -> pd.Series:
        from frame.cohorts.adjudicated import age_band

        expected = age_band(frame["age"]).cat.codes.to_numpy()
        return pd.Series(expected == frame["age_band"].cat.codes.to_numpy(), index=frame.index)

    def pooled(name: str) -> Any:
        def function(frame: pd.DataFrame) -> pd.Series:
            recorded = frame[f"{name}_recorded"].astype(object)
            expected = recorded.where(recorded.notna(), "Other" if modality == "chest" else None)
            actual = frame[name].astype(object)
            return (actual == expected) | (actual.isna() & expected.isna())

        return pa.Check(function, error=f"{name} is not what {name}_recorded says")

    def patients(frame: pd.DataFrame) -> pd.Series:
        is_patient = frame["subject_kind"] == "patient"
        return ~is_patient | (frame["subject_id"] == frame["patient_id"]).fillna(False)

    return [
        *(prefixed(name) for name in ID_COLUMNS),
        pa.Check(banded, error="age_band is not the band of the age"),
        pooled("race"),
        pooled("insurance"),
        pa.Check(patients, error="subject_kind is patient and subject_id is not the patient_id"),
    ]


def _sentence(frame: pd.DataFrame, error: Any) -> str:
    """Put pandera's finding into one sentence without a value of a row."""
    rows = getattr(error, "check_output", None)
    n_rows = int((~rows).sum()) if rows is not None and hasattr(rows, "sum") else 1
    name = getattr(error.schema, "name", None)
    if name in frame.columns:
        return f"Column {name} of the manifest is {error.check.error} in {n_rows:,} of {len(frame):,} rows."
    return f"In {n_rows:,} of {len(frame):,} rows of the manifest {error.check.error}."


def _parquet() -> tuple[Any, Any]:
    try:
        pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise InputError(
            "A manifest needs pyarrow; install it with: pip install 'frame-audit[study]'."
        ) from None
    return pyarrow, parquet


def _arrow_schema(pyarrow: Any, modality: str) -> Any:
    fields = []
    for name in manifest_columns(modality):
        if name in LEVELS:
            kind = pyarrow.dictionary(pyarrow.int8(), pyarrow.string(), ordered=False)
        elif name == "age":
            kind = pyarrow.float64()
        elif name in FINDINGS[modality]:
            kind = pyarrow.int8()
        else:
            kind = pyarrow.string()
        fields.append(pyarrow.field(name, kind))
    return pyarrow.schema(fields)


def _arrow_column(pyarrow: Any, column: pd.Series, kind: Any) -> Any:
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes = column.cat.codes.to_numpy()
        indices = pyarrow.array(codes, mask=codes < 0, type=pyarrow.int8())
        levels = pyarrow.array(list(column.cat.categories), type=pyarrow.string())
        return pyarrow.DictionaryArray.from_arrays(indices, levels)
    return pyarrow.array(column, type=kind, from_pandas=True)


def _pandas_column(name: str, column: Any) -> Any:
    """A column of the file with the type of :func:`check_manifest`."""
    if name in LEVELS:
        levels = list(LEVELS[name])
        joined = column.combine_chunks()
        texts = pd.Series(joined.dictionary_decode().to_pandas(), dtype=object)
        return pd.Categorical(texts, categories=levels, ordered=name == "age_band")
    if name == "age":
        return column.to_numpy()
    if name in BASE_COLUMNS:
        return pd.Series(column.to_pandas(), dtype="str")
    values = column.combine_chunks()
    missing = np.asarray(values.is_null())
    return pd.Series(pd.arrays.IntegerArray(np.asarray(values.fill_null(0)).astype(np.int8), missing))

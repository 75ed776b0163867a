"""What an experiment is: units, a computation for one unit, and all units together.

Units are small, independent and named from the profile alone, so that the graph of a study is known before
anything is computed. A unit that could not be estimated is a row with a reason, and a unit that was not
computed is an error when the units are put together: nothing is left out in silence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import pandas as pd

from frame.errors import InputError

if TYPE_CHECKING:
    from frame.workspace.layout import Workspace

__all__ = [
    "EXPERIMENTS",
    "TIDY_COLUMNS",
    "Experiment",
    "Unit",
    "all_units",
    "check_tidy",
    "experiment",
    "named_units",
    "no_units",
    "result_artefact",
    "tidy",
    "unit_artefact",
]

#: Names of the experiments, in the order in which the graph runs them.
EXPERIMENTS: Final = ("cohort_counts", "disease_heads", "synthetic_model", "injection")

#: Columns of a result, the same for every experiment.
TIDY_COLUMNS: Final = (
    "experiment",
    "modality",
    "site",
    "split",
    "encoder",
    "finding",
    "attribute",
    "subgroup",
    "method",
    "strength",
    "quantity",
    "value",
    "boot_mean",
    "sd",
    "lo",
    "hi",
    "p",
    "p_fdr",
    "family",
    "n_images",
    "n_positive",
    "n_patients",
    "status",
    "reason",
)
_NUMBERS: Final = ("strength", "value", "boot_mean", "sd", "lo", "hi", "p", "p_fdr")
_COUNTS: Final = ("n_images", "n_positive", "n_patients")
_UNIT_NAME: Final = re.compile(r"\A[a-z0-9]+(?:[_-][a-z0-9]+)*\Z")


@dataclass(frozen=True)
class Unit:
    """A part of an experiment that is computed on its own.

    Attributes
    ----------
    name : str
        Lower-case letters, digits, ``_`` and ``-``; unique in its experiment.
    inputs : tuple of str
        Artefacts that it reads, relative to the workspace.
    settings : mapping of str to value
        Values of the profile that it uses; a change of one makes it stale.
    """

    name: str
    inputs: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)


class Experiment(Protocol):
    """What a module of this room has.

    Attributes
    ----------
    TITLE : str
        What the experiment answers, in a few words.
    """

    TITLE: str

    def units(self, workspace: Workspace) -> tuple[Unit, ...]:
        """Its units, named from the profile alone; no artefact is read."""

    def run_unit(self, workspace: Workspace, unit: Unit) -> pd.DataFrame:
        """Compute one unit: a table with :data:`TIDY_COLUMNS`."""

    def collect(self, workspace: Workspace) -> pd.DataFrame:
        """All units together, with the corrections that need all of them."""


def experiment(name: str) -> Experiment:
    """The experiment of a name.

    Raises
    ------
    frame.InputError
        If there is none.
    """
    if name not in EXPERIMENTS:
        raise InputError(
            f"There is no experiment {name[:60]!r}; the experiments are {', '.join(EXPERIMENTS)}."
        )
    return cast("Experiment", import_module(f"frame.experiments.{name}"))


def unit_artefact(name: str, unit: str) -> str:
    """The artefact of one unit of an experiment, relative to the workspace."""
    return f"results/{name}/{unit}.parquet"


def result_artefact(name: str) -> str:
    """The artefact of a whole experiment, relative to the workspace."""
    return f"results/{name}.parquet"


def named_units(name: str, workspace: Workspace) -> dict[str, Unit]:
    """The units of an experiment by name.

    Raises
    ------
    ValueError
        If a name is malformed or there twice: a mistake in the experiment's code.
    """
    found = experiment(name).units(workspace)
    names = [unit.name for unit in found]
    wrong = [unit for unit in names if not _UNIT_NAME.match(unit) or names.count(unit) > 1]
    if wrong:
        raise ValueError(f"{name}: malformed or repeated names of units: {sorted(set(wrong))}")
    return {unit.name: unit for unit in found}


def no_units(workspace: Workspace) -> str:
    """Why an experiment has nothing to compute, as the end of a sentence."""
    return (
        f"has no units in profile {workspace.profile.name}: it names no encoder, or no finding, for the "
        "images that it has; name them under encoders and findings."
    )


def tidy(rows: pd.DataFrame, **same: object) -> pd.DataFrame:
    """Bring rows into the form of a result.

    Parameters
    ----------
    rows : pandas.DataFrame
        Some of :data:`TIDY_COLUMNS`.
    **same : object
        Columns that are the same in all rows.

    Returns
    -------
    pandas.DataFrame
        All of :data:`TIDY_COLUMNS`: text ``""``, numbers NaN and counts missing where nothing was given, and
        ``status`` ``ok``.

    Raises
    ------
    ValueError
        If a column is unknown, or :func:`check_tidy` refuses the rows: a mistake in an experiment's code.
    """
    unknown = sorted({*rows.columns, *same} - set(TIDY_COLUMNS))
    if unknown:
        raise ValueError(f"a result has no columns {', '.join(map(str, unknown))}")
    full = pd.DataFrame(index=rows.index)
    for column in TIDY_COLUMNS:
        given = same.get(column, rows.get(column))
        if column in _NUMBERS:
            full[column] = pd.Series(given, index=rows.index, dtype="float64")
        elif column in _COUNTS:
            full[column] = pd.Series(given, index=rows.index, dtype="Int64")
        else:
            text = pd.Series(given, index=rows.index, dtype="object")
            full[column] = text.fillna("ok" if column == "status" else "").astype("str")
    return check_tidy(full.reset_index(drop=True))


def check_tidy(rows: pd.DataFrame) -> pd.DataFrame:
    """Check the form of a result: its columns, a status in every row, a reason where it is not ``ok``.

    Raises
    ------
    ValueError
        If it is not so: a mistake in an experiment's code.
    """
    if list(rows.columns) != list(TIDY_COLUMNS):
        raise ValueError(f"columns of a result are {', '.join(TIDY_COLUMNS)}")
    odd = ~rows["status"].isin(["ok", "not estimable"])
    silent = (rows["status"] == "not estimable") & (rows["reason"] == "")
    nothing = (rows["status"] == "ok") & rows["value"].isna()
    for name, broken in (("status", odd), ("reason", silent), ("value", nothing)):
        if broken.any():
            raise ValueError(f"{int(broken.sum())} rows of a result have no proper {name}")
    return rows


def all_units(name: str, workspace: Workspace, units: Sequence[Unit]) -> pd.DataFrame:
    """Put the tables of all units together.

    Parameters
    ----------
    name : str
        The experiment.
    workspace : Workspace
        Where the units' tables lie.
    units : sequence of Unit
        All units that there are to be.

    Returns
    -------
    pandas.DataFrame
        All rows, in the order of the units.

    Raises
    ------
    frame.InputError
        If a unit is missing.
    """
    paths = {unit.name: workspace.path(unit_artefact(name, unit.name)) for unit in units}
    missing = [unit for unit, path in paths.items() if not path.is_file()]
    if missing:
        raise InputError(
            f"Experiment {name}: {len(missing)} of {len(paths)} units have not been computed "
            f"({', '.join(missing[:5])}{', ...' if len(missing) > 5 else ''}); run `frame run {name}`."
        )
    return check_tidy(pd.concat([pd.read_parquet(path) for path in paths.values()], ignore_index=True))

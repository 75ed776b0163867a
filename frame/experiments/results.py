"""Tables of results: written the same each time, read back, and made fit to be passed on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pandas as pd

from frame.errors import InputError
from frame.experiments.contract import check_tidy, experiment, no_units, result_artefact
from frame.experiments.small_cells import COUNTED, cells_to_hide
from frame.workspace.layout import open_workspace
from frame.workspace.profiles import load_profile

if TYPE_CHECKING:
    from frame.workspace.layout import Workspace

__all__ = ["HIDDEN", "read_result", "with_small_cells_hidden", "workspace_result", "write_result"]

#: What the reason of a hidden count begins with.
HIDDEN: Final = "hidden"
_COUNTS: Final = ["n_images", "n_positive", "n_patients"]
#: What rows share whose counts add up.
_BESIDE: Final = ["experiment", "modality", "site", "split", "encoder", "finding", "attribute"]


def write_result(rows: pd.DataFrame, path: Path) -> None:
    """Write a tidy table as parquet; the folder is the stage's own, and renaming is its business."""
    check_tidy(rows).to_parquet(path, index=False, compression="zstd")


def read_result(workspace: Workspace, name: str) -> pd.DataFrame:
    """The collected table of an experiment.

    Raises
    ------
    frame.InputError
        If there is no such experiment, it has not been run, or it was run with another profile of this name
        or by other code; the sentence says which command runs it.
    """
    from frame.workspace.experiment_stages import experiment_stages
    from frame.workspace.stages import staleness

    experiment(name)
    path = workspace.path(result_artefact(name))
    command = f"frame run {name} --profile {workspace.profile.name}"
    named = experiment_stages(workspace, name)
    if not named:
        raise InputError(f"Experiment {name} {no_units(workspace)}")
    if not path.is_file():
        raise InputError(f"The results of {name} are not there yet; make them with: {command}.")
    if reasons := staleness(workspace, named[-1]):
        raise InputError(
            f"The results of {name} were made from something else ({reasons[0]}); make them again with: "
            f"{command}."
        )
    return check_tidy(pd.read_parquet(path))


def workspace_result(name: str, profile: str) -> pd.DataFrame:
    """The collected table of an experiment in the usual workspace of a profile, for a notebook.

    Parameters
    ----------
    name : str
        An experiment.
    profile : str
        Name or path of a profile.

    Raises
    ------
    frame.InputError
        As :func:`read_result`.
    """
    return read_result(open_workspace(load_profile(profile)), name)


def with_small_cells_hidden(rows: pd.DataFrame, smallest: int) -> pd.DataFrame:
    """Hide small counts, and enough others that a hidden one cannot be had by subtraction.

    Parameters
    ----------
    rows : pandas.DataFrame
        A tidy table. Its counts are touched, and values that rest on a small one.
    smallest : int
        Counts from 1 to ``smallest - 1`` are hidden; 1 hides nothing.

    Returns
    -------
    pandas.DataFrame
        The rows; a hidden count is blank, ``not estimable``, with a reason that begins with ``hidden``. What
        else is hidden for the sake of a small count says :mod:`frame.experiments.small_cells`.
    """
    rows = rows.copy()
    hidden = cells_to_hide(rows, smallest)
    small = hidden & rows["value"].between(1, smallest - 1)
    rows.loc[hidden, ["value"]] = float("nan")
    rows.loc[hidden, ["n_images", "n_positive", "n_patients"]] = pd.NA
    rows.loc[hidden, "status"] = "not estimable"
    rows.loc[small, "reason"] = f"{HIDDEN}: from 1 to {smallest - 1}"
    rows.loc[hidden & ~small, "reason"] = f"{HIDDEN}: a smaller count could be had from it"
    return _with_measures_hidden(rows, smallest)


def _with_measures_hidden(rows: pd.DataFrame, smallest: int) -> pd.DataFrame:
    """Blank the counts beside the measures of an attribute's subgroups where one of them is small.

    All of the attribute go, so that none is had by subtraction; the value of the small one goes too, since a
    rate of few images says how many there are.
    """
    measures = ~rows["quantity"].isin(COUNTED)
    counts = rows[_COUNTS].astype("float64")
    counts["n_negative"] = counts["n_images"] - counts["n_positive"]
    small = measures & counts.apply(lambda column: column.between(1, smallest - 1)).any(axis=1)
    if not small.any():
        return rows
    # Groups with several measures have the same counts in each, whatever its status.
    beside = small.groupby([rows[key] for key in _BESIDE], sort=False).transform("any") & measures
    rows.loc[beside, _COUNTS] = pd.NA
    shut = small & (rows["status"] == "ok")
    rows.loc[shut, ["value", "boot_mean", "sd", "lo", "hi", "p", "p_fdr"]] = float("nan")
    rows.loc[shut, "status"] = "not estimable"
    rows.loc[small, "reason"] = f"{HIDDEN}: a count behind it is from 1 to {smallest - 1}"
    return rows

"""Tables of results: written the same each time, read back, and made fit to be passed on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pandas as pd

from frame.errors import InputError
from frame.experiments.contract import check_tidy, experiment, result_artefact
from frame.experiments.small_cells import cells_to_hide
from frame.workspace.layout import open_workspace
from frame.workspace.profiles import load_profile

if TYPE_CHECKING:
    from frame.workspace.layout import Workspace

__all__ = ["HIDDEN", "read_result", "with_small_cells_hidden", "workspace_result", "write_result"]

#: What the reason of a hidden count begins with.
HIDDEN: Final = "hidden"


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
    if not path.is_file():
        raise InputError(f"The results of {name} are not there yet; make them with: {command}.")
    *_, collected = experiment_stages(workspace, name)
    if reasons := staleness(workspace, collected):
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
        A tidy table. Only its counts are touched.
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
    return rows

"""Tables of results: written the same each time, read back, and made fit to be passed on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pandas as pd

from frame.errors import InputError
from frame.experiments.contract import check_tidy, experiment, result_artefact
from frame.workspace.layout import open_workspace
from frame.workspace.profiles import load_profile

if TYPE_CHECKING:
    from frame.workspace.layout import Workspace

__all__ = ["HIDDEN", "read_result", "with_small_cells_hidden", "workspace_result", "write_result"]

#: What the reason of a hidden count begins with.
HIDDEN: Final = "hidden"
#: Quantities that count people or images.
_COUNTED: Final = ("images", "subjects", "evaluable", "positive")
#: Two ways in which counts add up to a total that is shown: over subgroups, and over splits.
_LINES: Final = (
    ("experiment", "modality", "site", "split", "finding", "attribute", "method", "quantity"),
    ("experiment", "modality", "site", "finding", "attribute", "subgroup", "method", "quantity"),
)


def write_result(rows: pd.DataFrame, path: Path) -> None:
    """Write a tidy table as parquet; the folder is the stage's own, and renaming is its business."""
    check_tidy(rows).to_parquet(path, index=False, compression="zstd")


def read_result(workspace: Workspace, name: str) -> pd.DataFrame:
    """The collected table of an experiment.

    Raises
    ------
    frame.InputError
        If there is no such experiment, or it has not been run; the sentence says which command runs it.
    """
    experiment(name)
    path = workspace.path(result_artefact(name))
    if not path.is_file():
        raise InputError(
            f"The results of {name} are not there yet; make them with: "
            f"frame run {name} --profile {workspace.profile.name}."
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
        The rows; a hidden count is blank, ``not estimable``, with a reason that begins with ``hidden``.
        Where a line of counts that adds up to a shown total has one hidden count, its next smallest is
        hidden too.
    """
    rows = rows.copy()
    counts = rows["quantity"].isin(_COUNTED) & (rows["status"] == "ok")
    small = counts & rows["value"].between(1, smallest - 1)
    hidden = small.copy()
    while True:
        before = int(hidden.sum())
        for line, along in zip(_LINES, ("subgroup", "split"), strict=True):
            parts = rows[counts & (rows[along] != "all")]
            for _, cells in parts.groupby(list(line), sort=False) if before else ():
                shut = hidden[cells.index]
                if shut.sum() == 1:
                    others = cells.loc[~shut & (cells["value"] > 0), "value"]
                    if len(others):
                        hidden |= hidden.index == others.idxmin()
        if int(hidden.sum()) == before:
            break
    rows.loc[hidden, ["value"]] = float("nan")
    rows.loc[hidden, ["n_images", "n_positive", "n_patients"]] = pd.NA
    rows.loc[hidden, "status"] = "not estimable"
    rows.loc[small, "reason"] = f"{HIDDEN}: from 1 to {smallest - 1}"
    rows.loc[hidden & ~small, "reason"] = f"{HIDDEN}: a smaller count could be had from it"
    return rows

"""Stages that run the experiments."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from frame.cohorts.phantom.truth import NOTE
from frame.experiments.contract import Unit, experiment, named_units, result_artefact, unit_artefact
from frame.experiments.results import with_small_cells_hidden, write_result
from frame.workspace.stages import Stage
from frame.writing import write_bytes

if TYPE_CHECKING:
    from frame.workspace.layout import Workspace

__all__ = ["experiment_stages"]


def experiment_stages(workspace: Workspace, name: str) -> list[Stage]:
    """One stage per unit of an experiment, and one that puts them together; none where there is no unit."""
    module = f"frame.experiments.{name}"
    # What is imported by name at run time is not seen in the code.
    modules = (module, *getattr(experiment(name), "MODULES", ()))
    found = [
        Stage(
            name=f"results:{name}:{unit.name}",
            outputs=(unit_artefact(name, unit.name),),
            run=partial(_run_unit, name, unit),
            inputs=unit.inputs,
            settings=unit.settings,
            modules=modules,
        )
        for unit in named_units(name, workspace).values()
    ]
    if not found:
        return []
    found.append(
        Stage(
            name=f"collect:{name}",
            outputs=(result_artefact(name), result_artefact(name).replace(".parquet", ".csv")),
            run=partial(_collect, name),
            inputs=tuple(output for stage in found for output in stage.outputs),
            settings={
                "sizes.smallest_cell": workspace.profile.sizes.smallest_cell,
                "drawn": workspace.profile.phantom is not None,
            },
            modules=modules,
        )
    )
    return found


def _run_unit(name: str, unit: Unit, workspace: Workspace, folder: Path) -> None:
    write_result(experiment(name).run_unit(workspace, unit), folder / f"{unit.name}.parquet")


def _collect(name: str, workspace: Workspace, folder: Path) -> None:
    rows = experiment(name).collect(workspace)
    write_result(rows, folder / f"{name}.parquet")
    shown = with_small_cells_hidden(rows, workspace.profile.sizes.smallest_cell)
    note = getattr(experiment(name), "NOTE", NOTE if workspace.profile.phantom is not None else "")
    if note:
        shown = shown.assign(data=note)
    write_bytes(folder / f"{name}.csv", shown.to_csv(index=False, lineterminator="\n").encode("utf-8"), name)

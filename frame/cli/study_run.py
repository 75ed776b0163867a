"""What the verbs of the study do and print."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from frame.errors import InputError
from frame.experiments.contract import EXPERIMENTS, experiment, named_units, no_units
from frame.workspace.graph import make_with_inputs, stages, stale_stages
from frame.workspace.phantom_stages import draw_phantoms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from frame.workspace.layout import Workspace

__all__ = [
    "draw_what_is_stale",
    "list_experiments",
    "make_book",
    "run_experiment",
    "run_notebook",
    "show_stale",
]


def draw_what_is_stale(workspace: Workspace, workers: int | None = None) -> list[str]:
    """Draw what a verb is about to read; nothing for a profile of released images.

    Parameters
    ----------
    workspace : Workspace
        Where the artefacts lie.
    workers : int, optional
        Processes that draw; without it all cores.

    Returns
    -------
    list of str
        Names of the stages that were run.
    """
    if workspace.profile.phantom is None:
        return []
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return draw_phantoms(workspace, workers or cores, say)


def list_experiments(workspace: Workspace) -> None:
    """Print every experiment and its units."""
    for name in EXPERIMENTS:
        found = named_units(name, workspace)
        typer.echo(f"{name}: {experiment(name).TITLE}")
        units = ", ".join(found) or "no encoder is named for the images of this profile"
        typer.echo(f"  {len(found)} {'unit' if len(found) == 1 else 'units'}: {units}")
    typer.echo(f"\nRun one with: frame run {EXPERIMENTS[0]} --profile {workspace.profile.name}")


def run_experiment(workspace: Workspace, name: str, units: Sequence[str]) -> None:
    """Run an experiment, or some of its units.

    Raises
    ------
    frame.InputError
        If there is no such experiment or unit, or a stage cannot be run.
    """
    experiment(name)
    there = named_units(name, workspace)
    if not there:
        raise InputError(f"Experiment {name} {no_units(workspace)}")
    for unit in units:
        if unit not in there:
            raise InputError(
                f"Experiment {name} has no unit {unit[:60]!r}; its units are {', '.join(there)}."
            )
    wanted = [f"results:{name}:{unit}" for unit in units] or [f"collect:{name}"]
    ran = [] if units else draw_what_is_stale(workspace)
    ran += make_with_inputs(workspace, wanted, say)
    if not ran:
        typer.echo("Everything is fresh; nothing was run.")
    for stage in wanted:
        typer.echo(
            f"{stage}: {', '.join(place(workspace, output) for output in stages(workspace)[stage].outputs)}"
        )


def run_notebook(workspace: Workspace, name: str, parameters: Sequence[str], out: Path | None) -> None:
    """Execute a notebook, with parameters.

    Raises
    ------
    frame.InputError
        If there is no such notebook, a parameter is malformed, or a cell fails.
    """
    from frame.workspace.notebook_stages import execute_named

    given: dict[str, str] = {}
    for pair in parameters:
        key, equals, value = pair.partition("=")
        if not equals or not key.isidentifier():
            raise InputError(f"-p is {pair[:60]!r}; write it as key=value, such as -p alpha=0.01.")
        if key in given:
            raise InputError(f"-p {key} is given twice.")
        given[key] = value
    target = execute_named(workspace, name, given, out, say)
    typer.echo(f"The executed notebook is {shown(target)}.")


def show_stale(workspace: Workspace) -> None:
    """Print which stages are stale, and why."""
    found = stale_stages(workspace)
    for name, reasons in found.items():
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        typer.echo(f"{name}: {reasons[0]}{more}")
    typer.echo(f"{len(found)} of {len(stages(workspace))} stages are stale.")


def make_book(workspace: Workspace, cores: int) -> int:
    """Run the graph to the book; the exit code."""
    from frame.workspace.launch import run_graph

    return run_graph(workspace, ["book"], cores)


def say(stage: str) -> None:
    """Name a stage on the terminal before it is run."""
    with suppress(OSError):  # that nobody reads it any more does not end the work
        print(f"{stage} ...", file=sys.stderr, flush=True)


def place(workspace: Workspace, artefact: str) -> str:
    """Where an artefact lies, as short as it can be said."""
    return shown(workspace.path(artefact))


def shown(path: Path) -> str:
    """A path relative to the current folder where it lies in it."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)

"""The verbs of the study: ``frame run``, ``frame notebook``, ``frame book``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from frame.cli.endings import stop
from frame.errors import InputError

if TYPE_CHECKING:
    from frame.workspace.layout import Workspace

__all__ = ["ProfileOption", "WorkspaceOption", "book_command", "notebook_command", "opened", "run_command"]

ProfileOption = Annotated[
    str,
    typer.Option(metavar="NAME", help="demo, tables, open, paper, or the path of a profile (.yml)."),
]


def _folder(text: str) -> Path:
    """The folder of an option; an empty text, as of a variable that is not set, is not the current folder."""
    if not text.strip():
        raise typer.BadParameter("it is empty; give a folder, such as . for the current one")
    return Path(text)


WorkspaceOption = Annotated[
    Path | None,
    typer.Option(
        parser=_folder,
        metavar="FOLDER",
        help="Folder of the artefacts; without it FRAME_WORKSPACE, else one named as the profile.",
        show_default=False,
    ),
]
CoresOption = Annotated[int, typer.Option(min=1, metavar="NUMBER", help="Processes at once.")]


def opened(profile: str, workspace: Path | None) -> Workspace:
    """The workspace that the options name.

    Raises
    ------
    frame.InputError
        If the profile is wrong, or a package that the study needs is not installed.
    """
    if find_spec("pyarrow") is None:
        raise InputError("the study needs pyarrow; install it with: pip install 'frame-audit[study]'.")
    try:
        from frame.workspace.layout import open_workspace
        from frame.workspace.profiles import load_profile
    except ModuleNotFoundError as problem:
        raise InputError(
            f"the study needs {problem.name}; install it with: pip install 'frame-audit[study]'."
        ) from None
    return open_workspace(load_profile(profile), workspace)


def run_command(
    name: Annotated[
        str | None, typer.Argument(metavar="EXPERIMENT", help="Name of an experiment.", show_default=False)
    ] = None,
    unit: Annotated[
        list[str] | None,
        typer.Option(
            "--unit", metavar="UNIT", help="Only this unit; may be given several times.", show_default=False
        ),
    ] = None,
    profile: ProfileOption = "demo",
    workspace: WorkspaceOption = None,
    listed: Annotated[
        bool, typer.Option("--list", help="List the experiments and their units, and stop.")
    ] = False,
) -> None:
    """Run an experiment of the study, and before it whatever it reads that is stale.

    What is fresh is not made again. A run that was killed goes on at the unit it was in.
    """
    try:
        from frame.cli.study_run import list_experiments, run_experiment

        if name is None and unit and not listed:
            raise InputError("--unit was given without an experiment; name the experiment that has the unit.")
        if listed or name is None:
            list_experiments(opened(profile, workspace))
        else:
            run_experiment(opened(profile, workspace), name, unit or [])
    except InputError as problem:
        stop(str(problem))
    except ModuleNotFoundError as problem:
        stop(f"the study needs {problem.name}; install it with: pip install 'frame-audit[study]'.")


def notebook_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a notebook, such as figure_9.")],
    parameters: Annotated[
        list[str] | None,
        typer.Option(
            "-p",
            "--parameter",
            metavar="KEY=VALUE",
            help="A parameter; several are allowed.",
            show_default=False,
        ),
    ] = None,
    profile: ProfileOption = "demo",
    workspace: WorkspaceOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="Where the executed notebook goes (.ipynb).", show_default=False
        ),
    ] = None,
) -> None:
    """Execute one notebook of the book again, with parameters of your own.

    Without --out it goes into the workspace, beside the book's own.
    """
    try:
        from frame.cli.study_run import run_notebook

        run_notebook(opened(profile, workspace), name, parameters or [], out)
    except InputError as problem:
        stop(str(problem))
    except ModuleNotFoundError as problem:
        stop(f"the study needs {problem.name}; install it with: pip install 'frame-audit[study,book]'.")


def book_command(
    profile: ProfileOption = "demo",
    workspace: WorkspaceOption = None,
    cores: CoresOption = 2,
    dry: Annotated[bool, typer.Option("--dry-run", help="Say what is stale and why, and stop.")] = False,
) -> None:
    """Make the book: every artefact that is stale, every notebook, every page.

    What is fresh is not made again; a run that was killed goes on where it was.
    """
    try:
        from frame.cli.study_run import make_book, show_stale

        if dry:
            show_stale(opened(profile, workspace))
            return
        code = make_book(opened(profile, workspace), cores)
    except InputError as problem:
        stop(str(problem))
    except ModuleNotFoundError as problem:
        stop(f"the book needs {problem.name}; install it with: pip install 'frame-audit[study,book]'.")
    if code:
        raise typer.Exit(code)

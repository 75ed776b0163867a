"""The verbs of the data: ``frame data check``, ``build``, ``phantom``, ``counts``; and ``frame doctor``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from frame.cli.endings import FOUND, stop
from frame.cli.options import Format
from frame.cli.study import ProfileOption, WorkspaceOption, opened
from frame.errors import InputError

__all__ = ["data", "doctor_command"]

data = typer.Typer(
    help="Cohorts from released files: what is there, manifests and images, counts.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

SourceArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SOURCE]...", help="Image sources; without one, all of the profile.", show_default=False
    ),
]


class Unit(StrEnum):
    """What is counted."""

    images = "images"
    subjects = "subjects"


@data.command("check")
def _check(
    source: SourceArgument = None,
    profile: ProfileOption = "demo",
    workspace: WorkspaceOption = None,
    form: Annotated[
        Format, typer.Option("--format", metavar="FORMAT", help="table, csv, json or markdown.")
    ] = Format.table,
) -> None:
    """Say which released files are found, which are missing, and what to do next.

    Exit code 0: everything that is needed is there. 1: something is missing. 2: the input is wrong.
    """
    try:
        from frame.cli.data_run import check

        complete = check(opened(profile, workspace), source or [], form.value)
    except InputError as problem:
        stop(str(problem))
    except ModuleNotFoundError as problem:
        stop(_needs(problem))
    if not complete:
        raise typer.Exit(FOUND)


@data.command("build")
def _build(
    source: SourceArgument = None,
    profile: ProfileOption = "demo",
    workspace: WorkspaceOption = None,
    tables_only: Annotated[
        bool, typer.Option("--tables-only", help="Manifests only; prepare no image.")
    ] = False,
) -> None:
    """Make manifests from the released tables, and images of the profile's size from the released images.

    What is fresh is not made again; a run that was killed goes on where it was. A file that cannot be read
    does not stop the run: it is counted here with its reason, and listed in the workspace.
    """
    try:
        from frame.cli.data_run import build

        build(opened(profile, workspace), source or [], tables_only=tables_only)
    except InputError as problem:
        stop(str(problem))
    except ModuleNotFoundError as problem:
        stop(_needs(problem))


@data.command("phantom")
def _phantom(
    profile: ProfileOption = "demo",
    workspace: WorkspaceOption = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="NUMBER", help="Processes that draw; without it all cores.", show_default=False
        ),
    ] = None,
) -> None:
    """Draw the phantom world of a profile: images with a planted truth, in the layouts of the releases.

    What is fresh is not drawn again; a run that was killed goes on with the sources that are left. The
    images are drawings by a program, and no person stands behind any of them.
    """
    try:
        from frame.cli.data_phantom import phantom

        phantom(opened(profile, workspace), workers)
    except InputError as problem:
        stop(str(problem))
    except ModuleNotFoundError as problem:
        stop(_needs(problem))


@data.command("counts")
def _counts(
    source: SourceArgument = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="ATTRIBUTE",
            help="Count each subgroup: race, age, sex, view, ... or 'all'.",
            show_default=False,
        ),
    ] = None,
    finding: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FINDING", help="Count labels of this finding; several, or 'all'.", show_default=False
        ),
    ] = None,
    policies: Annotated[
        bool, typer.Option("--policies", help="Labels under every policy, not only the profile's.")
    ] = False,
    unit: Annotated[Unit, typer.Option(metavar="UNIT", help="images or subjects.")] = Unit.images,
    recorded: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD",
            help="What each recorded text became: race, sex, age, view, ...",
            show_default=False,
        ),
    ] = None,
    missing: Annotated[
        bool, typer.Option("--missing", help="Share of images without each attribute, by finding.")
    ] = False,
    profile: ProfileOption = "demo",
    workspace: WorkspaceOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="Write to a .csv, .json, .md or .txt file.", show_default=False
        ),
    ] = None,
    form: Annotated[
        Format | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="table, csv, json or markdown, whatever the file's ending.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Count images or subjects by source, split, subgroup and finding.

    Counts below the profile's smallest cell are hidden, and enough others that they cannot be computed.
    """
    try:
        from frame.cli.data_counts import counts

        counts(
            opened(profile, workspace),
            source or [],
            by=by,
            findings=finding or [],
            policies=policies,
            unit=unit.value,
            recorded=recorded,
            missing=missing,
            out=out,
            form=None if form is None else form.value,
        )
    except InputError as problem:
        stop(str(problem))
    except ModuleNotFoundError as problem:
        stop(_needs(problem))


def doctor_command(profile: ProfileOption = "demo", workspace: WorkspaceOption = None) -> None:
    """Say what is installed, which data is found, and what can be run.

    Exit code 0 whatever it finds; 2 if the profile cannot be read.
    """
    try:
        from frame.cli.doctor import diagnose

        diagnose(profile, workspace)
    except InputError as problem:
        stop(str(problem))


def _needs(problem: ModuleNotFoundError) -> str:
    return f"the study needs {problem.name}; install it with: pip install 'frame-audit[study]'."

"""The verb ``frame features extract``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from frame.cli.endings import stop
from frame.cli.study import ProfileOption, WorkspaceOption, opened
from frame.errors import InputError

__all__ = ["features"]

features = typer.Typer(
    help="Vectors of the images of a profile, one per image and encoder.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Precision(StrEnum):
    """What vectors are computed in."""

    auto = "auto"
    half = "half"
    bf16 = "bf16"
    float32 = "float32"


def _rows(text: str) -> tuple[int, int]:
    """First row and the one after the last."""
    first, colon, last = text.partition(":")
    if not (colon and first.strip().isdecimal() and last.strip().isdecimal()):
        raise InputError(f"--rows is {text[:40]!r}; write it as first:last, such as 0:50000.")
    return int(first), int(last)


@features.callback()
def _root() -> None:
    """Vectors of the images of a profile, one per image and encoder."""


@features.command("extract")
def _extract(
    profile: ProfileOption = "demo",
    encoder: Annotated[
        list[str] | None,
        typer.Option(
            "--encoder",
            metavar="ENCODER",
            help="An encoder; several are allowed. Without one, all that the profile names.",
            show_default=False,
        ),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            metavar="SOURCE",
            help="An image source; several are allowed. Without one, all that the encoder is meant for.",
            show_default=False,
        ),
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(
            "--rows",
            metavar="FIRST:LAST",
            help="Only this part, for tasks that share the work; a last run without it puts all together.",
            show_default=False,
        ),
    ] = None,
    batch: Annotated[
        int, typer.Option("--batch", min=1, metavar="NUMBER", help="Images that are encoded at once.")
    ] = 64,
    workers: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="NUMBER",
            help="Threads that prepare images ahead; without it as the device needs.",
            show_default=False,
        ),
    ] = None,
    device: Annotated[
        str,
        typer.Option(metavar="DEVICE", help="auto takes an accelerator where there is one."),
    ] = "auto",
    precision: Annotated[
        Precision | None,
        typer.Option(
            metavar="NAME",
            help="auto, half, bf16 or float32, instead of the profile's.",
            show_default=False,
        ),
    ] = None,
    compiled: Annotated[
        bool, typer.Option("--compile", help="Have torch compile the network first.")
    ] = False,
    allow_pickle: Annotated[
        bool,
        typer.Option(
            "--allow-pickle",
            help="Read weights that can run code when they are read; only where you trust their origin.",
        ),
    ] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Put every image of a profile through encoders, once, and store the vectors.

    Manifests and images are made first where they are stale. What is fresh is not made again, and a run that
    was killed goes on with the block it was in. Images without a vector are counted with the reason.
    """
    try:
        from frame.cli.features_run import extract
        from frame.workspace.feature_stages import Extraction

        extract(
            opened(profile, workspace),
            encoder or [],
            source or [],
            Extraction(
                batch_size=batch,
                workers=workers,
                device=device,
                precision=None if precision is None else precision.value,
                compile=compiled,
                allow_pickle=allow_pickle,
                rows=None if rows is None else _rows(rows),
            ),
        )
    except InputError as problem:
        stop(str(problem))
    except ModuleNotFoundError as problem:
        stop(f"the study needs {problem.name}; install it with: pip install 'frame-audit[study]'.")

"""What ``frame data phantom`` does and prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pandas as pd
import typer

from frame.cli.study_run import draw_what_is_stale, place
from frame.cohorts.phantom.sentences import statement
from frame.cohorts.phantom.truth import NOTE, modality_of
from frame.cohorts.sources import sources
from frame.errors import InputError
from frame.workspace.phantom_stages import truth_table
from frame.workspace.profiles import RAW

if TYPE_CHECKING:
    from frame.workspace.layout import Workspace

__all__ = ["phantom"]

#: Column of a table of truth that numbers the patients or lesions, and what they are called.
_UNITS: Final = {
    "chest": ("patient_number", "patients"),
    "skin": ("subject_number", "lesions"),
    "fundus": ("patient_number", "patients"),
}


def phantom(workspace: Workspace, workers: int | None) -> None:
    """Draw the sources that are stale, and print what is there and what is planted.

    Raises
    ------
    frame.InputError
        If the profile draws nothing, or the world cannot be written.
    """
    profile = workspace.profile
    if profile.phantom is None:
        raise InputError(
            f"Profile {profile.name} draws no images; give one with the key phantom, such as --profile demo."
        )
    drawn = draw_what_is_stale(workspace, workers)
    typer.echo(NOTE)
    for name in profile.sources:
        column, units = _UNITS[modality_of(name)]
        numbers = pd.read_parquet(workspace.path(truth_table(name)), columns=[column])[column]
        typer.echo(
            f"  in the layout of {sources()[name].title} ({name}): {len(numbers):,} drawn images of "
            f"{numbers.nunique():,} invented {units}"
        )
    typer.echo("\nPlanted in this phantom world:")
    for sentence in statement(profile.phantom):
        typer.echo(f"- {sentence}")
    typer.echo(
        f"\n{len(drawn)} of {len(profile.sources)} sources were drawn, the others were fresh. They lie in "
        f"{place(workspace, RAW)}.\nNext: frame data build --profile {profile.origin}"
    )

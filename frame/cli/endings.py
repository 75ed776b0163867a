"""How the command line ends: exit codes, and the sentence for wrong input."""

from __future__ import annotations

import re
from typing import NoReturn

import typer

from frame.cli.text import printable

__all__ = ["DEFECT", "ENDED", "FOUND", "INTERRUPTED", "RAN", "WRONG_INPUT", "stop"]

#: Exit codes: it ran; --fail-on found what it looks for; the input was wrong.
RAN, FOUND, WRONG_INPUT = 0, 1, 2
#: After Ctrl-C, after being asked to end (SIGTERM), and for what should never happen.
INTERRUPTED, ENDED, DEFECT = 130, 143, 70


#: Arguments whose option is called the same, at the start of a sentence; others by name.
_ARGUMENT = re.compile(
    r"^(alpha|margin|resamples|seed|min_size|suppress_below|threshold|design_effect|images_per_patient"
    r"|within_patient_correlation|n_positive|n_negative)(\[\d+\])?(?= (is|has|holds) )"
)
_OPTIONS = {
    "within_patient_correlation": "--patient-correlation",
    "n_positive": "--positives",
    "n_negative": "--negatives",
}


def _option(found: re.Match[str]) -> str:
    option = _OPTIONS.get(found[1], "--" + found[1].replace("_", "-"))
    return option if found[2] is None else f"{option}, number {int(found[2][1:-1]) + 1},"


def stop(sentence: str) -> NoReturn:
    """Say what is wrong with the input and end with its exit code."""
    typer.echo(f"frame: {printable(_ARGUMENT.sub(_option, sentence))[:1000]}", err=True)
    raise typer.Exit(WRONG_INPUT)

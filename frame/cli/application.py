"""The ``frame`` command and its verbs."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from enum import StrEnum
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from frame import __version__
from frame.cli.text import printable
from frame.errors import InputError

#: Exit codes: it ran; --fail-on found what it looks for; the input was wrong.
RAN, FOUND, WRONG_INPUT = 0, 1, 2
#: After Ctrl-C, and for what should never happen.
INTERRUPTED, DEFECT = 130, 70

application = typer.Typer(
    name="frame",
    help="Audit a reported subgroup difference against what an exactly fair model would show.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Protocol(StrEnum):
    """How a reference is computed."""

    exact = "exact"
    paper = "paper"


class Method(StrEnum):
    """Law of a subgroup AUROC."""

    auto = "auto"
    hanley_mcneil = "hanley-mcneil"
    binormal = "binormal"


class Format(StrEnum):
    """What is printed or written."""

    table = "table"
    csv = "csv"
    json = "json"
    markdown = "markdown"


class FailOn(StrEnum):
    """What turns the exit code to 1."""

    exceeds = "exceeds"


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"frame {__version__}")
        raise typer.Exit


@application.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Audit a reported subgroup difference against what an exactly fair model would show."""


@application.command("audit", no_args_is_help=True)
def _audit(
    claims: Annotated[
        Path | None,
        typer.Argument(
            metavar="CLAIMS.csv", help="Table of claims, one row per claim and subgroup.", show_default=False
        ),
    ] = None,
    template: Annotated[
        bool, typer.Option("--template", help="Print an example table to fill in, and stop.")
    ] = False,
    protocol: Annotated[
        Protocol, typer.Option(help="'exact' computes the reference, 'paper' simulates it as the paper does.")
    ] = Protocol.exact,
    method: Annotated[
        Method, typer.Option(help="Law of a subgroup AUROC ('auto' is hanley-mcneil); rates are binomial.")
    ] = Method.auto,
    alpha: Annotated[float, typer.Option(help="False discovery rate, one family per measure.")] = 0.05,
    margin: Annotated[
        float, typer.Option(help="True difference that is tolerated; 0 asks for exact fairness.")
    ] = 0.0,
    design_effect: Annotated[
        float, typer.Option(help="What-if for repeated images of a patient: counts are divided by it.")
    ] = 1.0,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write the result to a file, not the terminal."),
    ] = None,
    form: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="Default: table on the terminal; with --out, by the file's ending.",
            show_default=False,
        ),
    ] = None,
    fail_on: Annotated[
        FailOn | None,
        typer.Option(
            "--fail-on", help="End with exit code 1 if any claim exceeds its reference.", show_default=False
        ),
    ] = None,
) -> None:
    """Compare published differences with their fair-model references.

    Exit code 0: it ran. 1: --fail-on found a claim. 2: something in the input is wrong; nothing is written.
    """
    if template:
        from frame.claims import TEMPLATE

        typer.echo(TEMPLATE, nl=False)
        return
    if claims is None:
        _stop("no table of claims was given; 'frame audit --template' prints an example to fill in.")
    from frame.cli.claims import run

    try:
        exceeding = run(
            claims,
            out=out,
            form=None if form is None else form.value,
            protocol=protocol.value,
            method=method.value,
            alpha=alpha,
            margin=margin,
            design_effect=design_effect,
        )
    except InputError as problem:
        _stop(str(problem))
    if fail_on is FailOn.exceeds and exceeding:
        raise typer.Exit(FOUND)


def _stop(sentence: str) -> NoReturn:
    typer.echo(f"frame: {printable(sentence)[:1000]}", err=True)
    raise typer.Exit(WRONG_INPUT)


def main() -> None:
    """Run the command line: every way out has its exit code, and none is a traceback."""
    if sys.stdout is None or sys.stderr is None:
        sys.exit(WRONG_INPUT)  # there is nowhere to say anything
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal without the letter shows its escape.
            stream.reconfigure(errors="backslashreplace")
    try:
        code = application(standalone_mode=False)
        sys.stdout.flush()
    except typer.Exit as ended:
        code = ended.exit_code
    except (KeyboardInterrupt, typer.Abort):
        code = _say("interrupted; nothing was written.", INTERRUPTED)
    except BrokenPipeError:
        code = _silence()
    except OSError as problem:
        code = _say(
            f"the output cannot be written ({(problem.strerror or 'unknown reason').lower()}).", WRONG_INPUT
        )
    except Exception as problem:
        show = getattr(problem, "show", None)
        if show is not None:  # an option that the command line does not know
            show()
            code = getattr(problem, "exit_code", WRONG_INPUT)
        else:
            told = f"{type(problem).__name__}: {problem}"
            code = _say(f"this is a defect of frame, not of your input ({told}).", DEFECT)
    sys.exit(code or RAN)


def _say(sentence: str, code: int) -> int:
    with suppress(OSError):
        typer.echo(f"frame: {printable(sentence)[:1000]}", err=True)
    return code


def _silence() -> int:
    """The reader (head, less) has gone: point the rest of the output nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return RAN

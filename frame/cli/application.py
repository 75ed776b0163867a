"""The ``frame`` command and its verbs."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from enum import StrEnum
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from frame import __version__
from frame.cli.data import data, doctor_command
from frame.cli.encoders import encoders
from frame.cli.endings import DEFECT, ENDED, FOUND, INTERRUPTED, RAN, WRONG_INPUT, stop
from frame.cli.features import features
from frame.cli.mechanism_command import MECHANISM_EXAMPLE, mechanism_command
from frame.cli.mitigate import MITIGATE_EXAMPLE, mitigate_command
from frame.cli.options import FailOn, Format, Protocol
from frame.cli.output import is_broken_pipe, silence
from frame.cli.planning import PLAN_EXAMPLE, plan_command
from frame.cli.scores import EXAMPLE, audit_scores
from frame.cli.study import book_command, notebook_command, run_command
from frame.cli.text import printable
from frame.errors import InputError

application = typer.Typer(
    name="frame",
    help="Compare differences between subgroups with what an exactly fair model would show.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


_RESULT, _TEST = "The result", "The statistical test"
_INTERRUPTED = "interrupted; no file was left half-written."


class Method(StrEnum):
    """Law of a subgroup AUROC."""

    auto = "auto"
    hanley_mcneil = "hanley-mcneil"
    binormal = "binormal"


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
    """Compare differences between subgroups with what an exactly fair model would show."""


@application.command(
    "audit",
    no_args_is_help=True,
    epilog="Example: frame audit --template > claims.csv; fill it in; frame audit claims.csv",
)
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
        Protocol,
        typer.Option(
            metavar="NAME",
            help="exact computes the fair model's difference; paper simulates it as the paper does.",
            rich_help_panel=_TEST,
        ),
    ] = Protocol.exact,
    method: Annotated[
        Method,
        typer.Option(
            metavar="NAME",
            help="How much an AUROC varies by chance: auto, hanley-mcneil (what auto means) or binormal.",
            rich_help_panel=_TEST,
        ),
    ] = Method.auto,
    alpha: Annotated[
        float,
        typer.Option(
            metavar="NUMBER",
            help="False discovery rate over the claims of a measure.",
            rich_help_panel=_TEST,
        ),
    ] = 0.05,
    margin: Annotated[
        float,
        typer.Option(
            metavar="NUMBER",
            help="True difference that is tolerated; 0 asks for exact fairness.",
            rich_help_panel=_TEST,
        ),
    ] = 0.0,
    design_effect: Annotated[
        float,
        typer.Option(
            metavar="NUMBER",
            help="What if patients have several images: counts are divided by it.",
            rich_help_panel=_TEST,
        ),
    ] = 1.0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Write to a .csv, .json, .md or .txt file, not the terminal.",
            show_default=False,
            rich_help_panel=_RESULT,
        ),
    ] = None,
    form: Annotated[
        Format | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="table, csv, json or markdown, whatever the file's ending.",
            show_default=False,
            rich_help_panel=_RESULT,
        ),
    ] = None,
    fail_on: Annotated[
        FailOn | None,
        typer.Option(
            "--fail-on",
            metavar="exceeds",
            help="End with exit code 1 if a difference is larger than a fair model would show.",
            show_default=False,
            rich_help_panel=_RESULT,
        ),
    ] = None,
) -> None:
    """Compare published subgroup differences with what an exactly fair model would show.

    Exit code 0: it ran. 1: --fail-on found a claim. 2: the input is wrong; nothing is written.
    """
    if template:
        from frame.claims import TEMPLATE

        typer.echo(TEMPLATE, nl=False)
        return
    if claims is None:
        stop("no table of claims was given; 'frame audit --template' prints an example to fill in.")
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
        stop(str(problem))
    if fail_on is FailOn.exceeds and exceeding:
        raise typer.Exit(FOUND)


application.command("audit-scores", no_args_is_help=True, epilog=EXAMPLE)(audit_scores)
application.command("mitigate", no_args_is_help=True, epilog=MITIGATE_EXAMPLE)(mitigate_command)
application.command("mechanism", no_args_is_help=True, epilog=MECHANISM_EXAMPLE)(mechanism_command)
application.command("plan", no_args_is_help=True, epilog=PLAN_EXAMPLE)(plan_command)

application.add_typer(data, name="data")
application.add_typer(encoders, name="encoders")
application.add_typer(features, name="features")
application.command("run")(run_command)
application.command("notebook", no_args_is_help=True)(notebook_command)
application.command("book")(book_command)
application.command("doctor")(doctor_command)


def main() -> None:
    """Run the command line: every way out has its exit code, and none is a traceback."""
    if sys.stderr is None:  # closed: what would be said there goes nowhere
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        sys.exit(_say("the standard output is closed; leave it open, or send it to a file.", WRONG_INPUT))
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, _ended)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal without the letter shows its escape.
            stream.reconfigure(errors="backslashreplace")
    try:
        code = application(standalone_mode=False)
        sys.stdout.flush()
        if code == INTERRUPTED:  # typer turns Ctrl-C into this code
            _say(_INTERRUPTED, code)
    except typer.Exit as ended:
        code = ended.exit_code
    except (KeyboardInterrupt, typer.Abort):
        code = _say(_INTERRUPTED, INTERRUPTED)
    except SystemExit as ended:  # how typer, click and rich answer a reader that has gone; SIGTERM
        if is_broken_pipe(ended):
            code = _silence()
        else:
            code = _say(_INTERRUPTED, ENDED) if ended.code == ENDED else DEFECT
    except BrokenPipeError:
        code = _silence()
    except MemoryError:
        code = _say("this table needs more memory than there is; give fewer columns or rows.", WRONG_INPUT)
    except OSError as problem:
        code = _say(
            f"the output cannot be written ({(problem.strerror or 'unknown reason').lower()}).", WRONG_INPUT
        )
    except Exception as problem:
        said = getattr(problem, "format_message", None)
        if said is not None:  # an option that the command line does not know
            sentence = str(said()).replace("Value error, ", "").rstrip(".")
            if sentence:  # without one, the help has been shown
                _say(f"{sentence}; -h after the command lists what is allowed.", WRONG_INPUT)
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
    silence()
    return RAN


def _ended(*_: object) -> None:
    """Asked to end (SIGTERM): leave as after Ctrl-C, without a half-written file."""
    sys.exit(ENDED)

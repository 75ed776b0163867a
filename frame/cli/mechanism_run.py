"""What ``frame mechanism`` reads, asks and writes."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from frame.cli.mechanism_output import markdown_text, print_verdict, table_text
from frame.cli.mitigate_files import open_features
from frame.cli.output import (
    FILE_WIDTH,
    check_ending,
    chosen_format,
    csv_text,
    json_text,
    progress_bar,
    reader_may_leave,
    tell,
)
from frame.cli.score_files import read_score_file
from frame.errors import InputError
from frame.writing import check_target, write_files

if TYPE_CHECKING:
    from frame.interventions.verdict import Verdict

__all__ = ["MechanismRequest", "run"]

_ARGUMENT = re.compile(r"^(exclude|majority|measure|method|cap|directions|folder)(?= (is|names|has) |: )")
_MAPPING = re.compile(r"Map them first, for example .*$", re.DOTALL)
_WRITE_LABELS = "Write 0 or 1 into that column, and nothing where the label is unknown."


@dataclass(frozen=True)
class MechanismRequest:
    """What was asked for on the command line, as it was written there.

    Attributes
    ----------
    features, table : Path
        The embeddings and their table.
    label, group : str
        Columns; empty where none was named.
    patient, split, score : str or None
        Columns.
    suppress_below : int
        Smallest count that may be shown.
    settings : dict
        Other arguments of :func:`frame.mechanism`.
    """

    features: Path
    table: Path
    label: str
    group: str
    patient: str | None = None
    split: str | None = None
    score: str | None = None
    suppress_below: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """Columns of the table."""
        others = (self.patient, self.split, self.score)
        return [self.label, self.group, *(c for c in others if c is not None)]


def run(
    request: MechanismRequest,
    *,
    html: Path | None,
    strengths_out: Path | None,
    out: Path | None,
    form: str | None,
) -> None:
    """Ask what a difference responds to, and print or write the verdict.

    Parameters
    ----------
    request : MechanismRequest
        What to ask.
    html, strengths_out : Path or None
        Where to write a report, and the table of strengths.
    out : Path or None
        Where to write the result; None prints.
    form : str or None
        ``table``, ``csv``, ``json`` or ``markdown``; None chooses by the ending of ``out``.

    Raises
    ------
    InputError
        If the input, an option or an output path is wrong; nothing has been written then.
    """
    _check_columns(request)
    chosen = chosen_format(out, form)
    targets = _targets(request, {"--out": out, "--html": html, "--strengths-out": strengths_out})
    check_ending(html, "--html", (".html", ".htm"))
    check_ending(strengths_out, "--strengths-out", (".csv",))
    from frame.audits.settings import check_suppression

    limit = request.suppress_below
    try:
        check_suppression(limit)
        verdict, read = _asked(request)
    except InputError as problem:
        raise InputError(_on_the_command_line(str(problem), request)) from None
    from frame.interventions.verdict_hiding import suppressed_row, suppressed_strengths

    contents: dict[str, str] = {}
    if html is not None:
        from frame.interventions.mechanism_report import report_text

        source = f"{request.features.name} and {request.table.name}, {read}"
        contents["--html"] = report_text(verdict, suppress_below=limit, source=source)
    if strengths_out is not None:
        contents["--strengths-out"] = csv_text(suppressed_strengths(verdict, limit))
    if chosen in ("csv", "json"):
        row = suppressed_row(verdict, limit)
        text = csv_text(row) if chosen == "csv" else json_text(row)
    elif chosen == "markdown":
        text = markdown_text(verdict, limit, read)
    else:
        text = table_text(verdict, limit, read, FILE_WIDTH) if out is not None else ""
    contents["--out"] = text
    write_files([(path, contents[option].encode("utf-8"), option) for option, path in targets.items()])
    if out is None:
        with reader_may_leave():
            if chosen == "table":
                console = Console(highlight=False)
                if not console.is_terminal:
                    console = Console(highlight=False, width=FILE_WIDTH)
                print_verdict(console, verdict, limit, read)
            else:
                sys.stdout.write(text)
    else:
        from frame.interventions.verdict_words import headline

        tell(f"{headline(verdict.verdict)}.", f"Written to {out}.")
    tell(
        None if html is None else f"Report: {html}.",
        None if strengths_out is None else f"Strengths: {strengths_out}.",
    )


def _targets(request: MechanismRequest, given: Mapping[str, Path | None]) -> dict[str, Path]:
    """Where to write, checked before anything is computed."""
    targets: dict[str, Path] = {}
    for option, path in given.items():
        if path is None:
            continue
        target = check_target(path, option, request.table, "the table of images")
        check_target(path, option, request.features, "the file of embeddings")
        same = next((other for other, held in targets.items() if held == target), None)
        if same is not None:
            raise InputError(f"{option} and {same} are both '{target.name}'; give two files.")
        targets[option] = target
    return targets


def _check_columns(request: MechanismRequest) -> None:
    """Each role has a column, and each column one role."""
    for option, column in (("--label", request.label), ("--group", request.group)):
        if not column:
            raise InputError(f"no {option} was given; name a column of {request.table.name} with it.")
    for column in request.columns:
        if not column.strip():
            raise InputError("an option names a column without a name; write it as in the file's header.")
        if request.columns.count(column) > 1:
            raise InputError(
                f"column '{column}' is named {request.columns.count(column)} times; name each column once, "
                "for one role."
            )


def _asked(request: MechanismRequest) -> tuple[Verdict, str]:
    """Ask what was asked for; also say what was read."""
    features = open_features(request.features)
    exact = [request.patient] if request.patient else []
    file = read_score_file(request.table, request.columns, exact)
    n_rows, width = features.shape
    if n_rows != len(file.table):
        raise InputError(
            f"{request.features.name} has {n_rows:,} rows and {file.name} has {len(file.table):,}; give one "
            "row per image in both, in the same order."
        )
    from frame.interventions.procedure import mechanism

    with progress_bar(least=2, word="injecting") as progress:
        verdict = mechanism(
            features,
            file.labels(request.label).rename(request.label),
            file.categories(request.group).rename(request.group),
            None if request.split is None else file.table[request.split],
            patients=None if request.patient is None else file.identifiers(request.patient),
            scores=None if request.score is None else file.numbers(request.score),
            progress=progress,
            **request.settings,
        )
    return verdict, f"{n_rows:,} rows of {width:,} numbers ({features.dtype.name})"


def _on_the_command_line(sentence: str, request: MechanismRequest) -> str:
    """The sentence with options and columns in place of arguments."""
    sentence = _MAPPING.sub(_WRITE_LABELS, sentence)
    sentence = _ARGUMENT.sub(lambda found: f"--{found[1]}", sentence)
    sentence = sentence.replace("raise the cap", "raise --cap").replace(
        "leave scores out", "leave --score out"
    )
    sentence = sentence.replace("say scale='logit'", "say --scale logit")
    for name, called in (
        ("features", request.features.name),
        ("labels", f"{request.table.name}, column '{request.label}': the labels"),
        ("patients", f"{request.table.name}, column '{request.patient}'"),
        ("scores", f"{request.table.name}, column '{request.score}'"),
        ("split", f"{request.table.name}, column '{request.split}'" if request.split else "the drawn split"),
    ):
        for end in (": ", " hold ", " holds ", " are "):
            if sentence.startswith(name + end):
                return called + sentence[len(name) :]
    if sentence.startswith("The features "):
        return f"{request.features.name}: t{sentence[1:]}"
    return sentence

"""What ``frame mitigate`` reads, compares and writes."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from frame.cli.mitigate_files import open_features
from frame.cli.mitigate_output import markdown_text, print_comparison, table_text
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
    from frame.mitigation.comparison import Comparison

__all__ = ["MitigateRequest", "run"]

#: How a sentence about an argument reads on the command line.
_OPTIONS = (
    ("missing='drop'", "--missing drop"),
    ("missing='group'", "--missing group"),
    ("give a dictionary or a DataFrame of them", "give --group several times"),
    (" (pandas.to_numeric converts text)", ""),
    (" (for example .astype(str).str.strip())", ""),
    ("raise the cap", "raise --cap"),
)
_ARGUMENT = re.compile(r"^(cap|tolerance|method|measure|threshold|weighting|head)(?= is )")
_MAPPING = re.compile(r"Map them first, for example .*$", re.DOTALL)
_WRITE_LABELS = "Write 0 or 1 into that column, and nothing where the label is unknown."


@dataclass(frozen=True)
class MitigateRequest:
    """What was asked for on the command line, as it was written there.

    Attributes
    ----------
    features, table : Path
        The embeddings and their table.
    label : str
        Column; empty where none was named.
    groups : tuple of str
        Columns.
    patient, split : str or None
        Columns.
    suppress_below : int
        Smallest count that may be shown.
    settings : dict
        Other arguments of :func:`frame.mitigation.comparison.compare_methods`; None leaves the default.
    """

    features: Path
    table: Path
    label: str
    groups: tuple[str, ...]
    patient: str | None = None
    split: str | None = None
    suppress_below: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """Columns of the table."""
        return [self.label, *self.groups, *(c for c in (self.patient, self.split) if c is not None)]


def run(
    request: MitigateRequest,
    *,
    html: Path | None,
    groups_out: Path | None,
    out: Path | None,
    form: str | None,
) -> None:
    """Compare methods on embeddings and print or write the result.

    Parameters
    ----------
    request : MitigateRequest
        What to compare.
    html, groups_out : Path or None
        Where to write a report, and the table of subgroups.
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
    targets = _targets(request, {"--out": out, "--html": html, "--groups-out": groups_out})
    check_ending(html, "--html", (".html", ".htm"))
    check_ending(groups_out, "--groups-out", (".csv",))
    from frame.audits.settings import check_suppression
    from frame.mitigation.hiding import suppressed_groups, suppressed_table

    limit = request.suppress_below
    try:
        check_suppression(limit)
        found, read = _compared(request)
    except InputError as problem:
        raise InputError(_on_the_command_line(str(problem), request)) from None
    contents: dict[str, str] = {}
    if html is not None:
        from frame.mitigation.report import report_text

        source = f"{request.features.name} and {request.table.name}, {read}"
        contents["--html"] = report_text(found, suppress_below=limit, source=source)
    if groups_out is not None:
        contents["--groups-out"] = csv_text(suppressed_groups(found, limit))
    if chosen in ("csv", "json"):
        table = suppressed_table(found, limit)
        text = csv_text(table) if chosen == "csv" else json_text(table)
    elif chosen == "markdown":
        text = markdown_text(found, limit, read)
    else:
        text = table_text(found, limit, read, FILE_WIDTH) if out is not None else ""
    contents["--out"] = text
    write_files([(path, contents[option].encode("utf-8"), option) for option, path in targets.items()])
    if out is None:
        with reader_may_leave():
            if chosen == "table":
                console = Console(highlight=False)
                if not console.is_terminal:
                    console = Console(highlight=False, width=FILE_WIDTH)
                print_comparison(console, found, limit, read)
            else:
                sys.stdout.write(text)
    else:
        from frame.mitigation.words import summary_words

        tell(summary_words(found)[0], f"Written to {out}.")
    tell(
        None if html is None else f"Report: {html}.",
        None if groups_out is None else f"Subgroups: {groups_out}.",
    )


def _targets(request: MitigateRequest, given: Mapping[str, Path | None]) -> dict[str, Path]:
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


def _check_columns(request: MitigateRequest) -> None:
    """Each role has a column, and each column one role."""
    for option, missing in (("--label", not request.label), ("--group", not request.groups)):
        if missing:
            raise InputError(f"no {option} was given; name a column of {request.table.name} with it.")
    for column in request.columns:
        if not column.strip():
            raise InputError("an option names a column without a name; write it as in the file's header.")
        if request.columns.count(column) > 1:
            raise InputError(
                f"column '{column}' is named {request.columns.count(column)} times; name each column once, "
                "for one role."
            )


def _compared(request: MitigateRequest) -> tuple[Comparison, str]:
    """Compare what was asked for; also say what was read."""
    features = open_features(request.features)
    exact = [request.patient] if request.patient else []
    file = read_score_file(request.table, request.columns, exact)
    n_rows, width = features.shape
    if n_rows != len(file.table):
        raise InputError(
            f"{request.features.name} has {n_rows:,} rows and {file.name} has {len(file.table):,}; give one "
            "row per image in both, in the same order."
        )
    from frame.mitigation.comparison import compare_methods

    settings = {name: value for name, value in request.settings.items() if value is not None}
    with progress_bar(least=2, word="fitting") as progress:
        found = compare_methods(
            features,
            file.labels(request.label),
            {column: file.categories(column) for column in request.groups},
            None if request.split is None else file.table[request.split],
            None if request.patient is None else file.identifiers(request.patient),
            progress=progress,
            **settings,
        )
    notes = tuple(note.replace("give patients= if", "give --patient if") for note in found.notes)
    return replace(found, notes=notes), f"{n_rows:,} rows of {width:,} numbers ({features.dtype.name})"


def _on_the_command_line(sentence: str, request: MitigateRequest) -> str:
    for argument, option in _OPTIONS:
        sentence = sentence.replace(argument, option)
    sentence = _MAPPING.sub(_WRITE_LABELS, sentence)
    sentence = _ARGUMENT.sub(
        lambda found: {"weighting": "--weights"}.get(found[1], f"--{found[1]}"), sentence
    )
    for name, called in (
        ("features", request.features.name),
        ("labels", f"{request.table.name}, column '{request.label}': the labels"),
        ("patients", f"{request.table.name}, column '{request.patient}'"),
        ("split", f"{request.table.name}, column '{request.split}'" if request.split else "the drawn split"),
    ):
        for end in (": ", " hold ", " holds ", " are "):
            if sentence.startswith(name + end):
                return called + sentence[len(name) :]
    if sentence.startswith("The features "):
        return f"{request.features.name}: t{sentence[1:]}"
    return sentence

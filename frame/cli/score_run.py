"""What ``frame audit-scores`` reads, audits and writes."""

from __future__ import annotations

import filecmp
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from frame.cli.output import (
    FILE_WIDTH,
    chosen_format,
    csv_text,
    json_text,
    progress_bar,
    reader_may_leave,
    tell,
)
from frame.cli.score_files import ScoreFile, plain_number, quoted, read_score_file
from frame.cli.score_output import markdown_text, print_audits, summary_words, table_text
from frame.errors import InputError
from frame.writing import check_target, write_files

if TYPE_CHECKING:
    from frame.audits import Audit

__all__ = ["Request", "run"]

#: How a sentence about an argument reads on the command line.
_OPTIONS = (
    ("missing='drop'", "--missing drop"),
    ("missing='group'", "--missing group"),
    ("scale='logit'", "--scale logit"),
    ("images_repeat=True", "--images-repeat"),
    ("validation=(scores, labels, patients)", "--validation FILE or --split COLUMN"),
    ("validation=(scores, labels)", "--validation FILE or --split COLUMN"),
    ("give threshold= a number", "give --threshold a number"),
    ("leave threshold= out", "leave --threshold out"),
    ("give patients,", "give --patient COLUMN,"),
    ("give a dictionary or a DataFrame of them", "give --group several times"),
    ("resamples=0 (--resamples 0)", "--resamples 0"),
    (" (pandas.to_numeric converts text)", ""),
    (" (for example .astype(str).str.strip())", ""),
)
_MAPPING = re.compile(r"Map them first, for example .*$", re.DOTALL)
_WRITE_LABELS = "Write 0 or 1 into that column, and nothing where the label is unknown."
#: Fewest rows that are taken as a copy when scores and labels are all the same.
_COPY = 20


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line, as it was written there.

    Attributes
    ----------
    path : Path
        Table of scores.
    scores, labels, groups : tuple of str
        Columns.
    patient, within, split : str or None
        Columns.
    validation : Path or None
        A table to find thresholds on.
    threshold : str or None
        A number or a rule.
    suppress_below : int
        Smallest count that may be shown.
    settings : dict
        Other arguments of :func:`frame.audits.audits_of`.
    """

    path: Path
    scores: tuple[str, ...]
    labels: tuple[str, ...]
    groups: tuple[str, ...]
    patient: str | None = None
    within: str | None = None
    validation: Path | None = None
    split: str | None = None
    threshold: str | None = None
    suppress_below: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """Columns of the table of scores."""
        single = [c for c in (self.patient, self.within, self.split) if c is not None]
        return [*self.scores, *self.labels, *self.groups, *single]


def run(request: Request, *, html: Path | None, out: Path | None, form: str | None) -> int:
    """Audit a table of scores and print or write the result.

    Parameters
    ----------
    request : Request
        What to audit.
    html : Path or None
        Where to write a report.
    out : Path or None
        Where to write the result; None prints.
    form : str or None
        ``table``, ``csv``, ``json`` or ``markdown``; None chooses by the ending of ``out``.

    Returns
    -------
    int
        Number of differences that exceed their reference.

    Raises
    ------
    InputError
        If the input, an option or an output path is wrong; nothing has been written then.
    """
    from frame.audits.report import report_text
    from frame.audits.settings import check_suppression
    from frame.audits.suppression import suppressed_frame

    _check_columns(request)
    chosen = chosen_format(out, form)
    targets: dict[str, Path] = {}
    for option, given in (("--out", out), ("--html", html)):
        if given is not None:
            targets[option] = check_target(given, option, request.path, "the table of scores")
            if request.validation is not None:
                check_target(given, option, request.validation, "the validation table")
    if len(targets) == 2 and targets["--out"] == targets["--html"]:
        raise InputError(f"--html and --out are both '{targets['--html'].name}'; give two files.")
    try:
        check_suppression(request.suppress_below)
        audits, read = _audits(request)
        limit = request.suppress_below
        source = f"{request.path.name}, {read}"
        report = None if html is None else report_text(audits, suppress_below=limit, source=source)
        if chosen in ("csv", "json"):
            table = suppressed_frame(audits, limit)
            text = csv_text(table) if chosen == "csv" else json_text(table)
        elif chosen == "markdown":
            text = markdown_text(audits, limit, read)
        else:
            text = table_text(audits, limit, read, FILE_WIDTH)
    except InputError as problem:
        raise InputError(_on_the_command_line(str(problem))) from None
    contents = {"--html": report or "", "--out": text}
    write_files([(path, contents[option].encode("utf-8"), option) for option, path in targets.items()])
    if out is None:
        with reader_may_leave():
            if chosen == "table":
                console = Console(highlight=False)
                if not console.is_terminal:
                    console = Console(highlight=False, width=FILE_WIDTH)
                print_audits(console, audits, limit, read)
            else:
                sys.stdout.write(text)
    else:
        tell(summary_words(audits), f"Written to {out}.")
    tell(None if html is None else f"Report: {html}.", *_unused(request, audits))
    return sum(bool(audit.exceeds) for audit in audits)


def _unused(request: Request, audits: Sequence[Audit]) -> list[str]:
    """One sentence for every option about thresholds that had no effect."""
    sources = {audit.threshold.source for audit in audits}
    said = []
    if sources == {"not used"}:
        reason = "no measure here needs a threshold"
    elif "predictions" in sources:
        reason = "the scores are decisions, all 0 or 1"
    else:
        reason = "--threshold is a number"
    if not any(source.endswith("on validation") for source in sources):
        if request.validation is not None:
            said.append(f"Note: --validation was not used; {reason}.")
        if request.split is not None:
            said.append(f"Note: the validation rows of --split were not used; {reason}.")
    if request.threshold is not None and sources <= {"not used", "predictions"}:
        said.append(f"Note: --threshold was not used; {reason}.")
    return said


def _on_the_command_line(sentence: str) -> str:
    for argument, option in _OPTIONS:
        sentence = sentence.replace(argument, option)
    return _MAPPING.sub(_WRITE_LABELS, sentence)


def _check_columns(request: Request) -> None:
    """Each role has a column, and each column one role."""
    for option, given in (
        ("--score", request.scores),
        ("--label", request.labels),
        ("--group", request.groups),
    ):
        if not given:
            raise InputError(f"no {option} was given; name a column of {request.path.name} with it.")
    for column in request.columns:
        if not column.strip():
            raise InputError("an option names a column without a name; write it as in the file's header.")
        if request.columns.count(column) > 1:
            raise InputError(
                f"column '{column}' is named {request.columns.count(column)} times; name each column once, "
                "for one role."
            )
    if request.patient is not None and request.settings.get("images_repeat"):
        raise InputError(
            "--images-repeat and --patient were both given; with patient ids repeated images are counted."
        )
    if request.validation is not None and request.split is not None:
        raise InputError("--validation and --split were both given; thresholds come from one of them.")


def _audits(request: Request) -> tuple[list[Audit], str]:
    """Audit what was asked for; also say what was read."""
    from frame.audits import audits_of

    exact = [request.patient] if request.patient else []
    file = read_score_file(request.path, request.columns, exact)
    read = f"{len(file.table):,} rows"
    held: ScoreFile | None = None
    if request.split is not None:
        held, file, others = file.parts(request.split)
        read = f"{len(file.table):,} test rows, {len(held.table):,} validation rows"
        if others:
            listed = quoted(others) or f"{len(others):,} different values"
            read += f", left out {sum(others.values()):,} others ({listed})"
    elif request.validation is not None:
        _check_other_file(request.validation, request.path)
        held = read_score_file(request.validation, [*request.scores, *request.labels, *exact], exact)
        read += f", {len(held.table):,} validation rows of {request.validation.name}"
    validation: tuple[Any, ...] | None = None
    if held is not None:
        validation = (_numbers(held, request.scores), {c: held.labels(c) for c in request.labels})
        if request.patient is not None:
            validation = (*validation, held.identifiers(request.patient))
        if request.split is None:
            _check_other_rows(held, file, [*request.scores, *request.labels])
    with progress_bar(least=4) as progress:
        audits = audits_of(
            _numbers(file, request.scores),
            {column: file.labels(column) for column in request.labels},
            {column: file.categories(column) for column in request.groups},
            None if request.patient is None else file.identifiers(request.patient),
            within=None if request.within is None else file.categories(request.within).rename(request.within),
            validation=validation,
            threshold=_threshold(request.threshold),
            progress=progress,
            **request.settings,
        )
    return audits, read


def _numbers(file: ScoreFile, columns: Sequence[str]) -> dict[str, Any]:
    return {column: file.numbers(column) for column in columns}


def _threshold(given: str | None) -> float | str | None:
    if given is None:
        return None
    number = plain_number(given)
    return given if number is None else number


def _check_other_file(validation: Path, audited: Path) -> None:
    """A threshold that was found on the audited rows themselves is tuned to them."""
    try:
        same = filecmp.cmp(validation, audited, shallow=False)
    except (OSError, ValueError):
        return  # whoever reads the file says what is wrong with it
    if same:
        raise InputError(
            f"--validation is '{validation.name}', the audited table itself; give rows of other patients, or "
            "--threshold a number."
        )


def _check_other_rows(held: ScoreFile, audited: ScoreFile, columns: Sequence[str]) -> None:
    """The same, where the rows lie in another file."""
    if len(held.table) < _COPY or len(held.table) != len(audited.table):
        return
    for column in columns:
        if _values(held, column) != _values(audited, column):
            return
    raise InputError(
        f"--validation: the {len(held.table):,} rows of {held.name} have the scores and labels of the "
        "audited rows, one by one; give rows of other patients, or --threshold a number."
    )


def _values(file: ScoreFile, column: str) -> list[str]:
    """Cells by value, from any kind of file."""
    values = file.labels(column).tolist()
    return [str(float(value) if isinstance(value, (bool, int, float)) else value) for value in values]

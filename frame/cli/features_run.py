"""What ``frame features extract`` does and prints."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import typer

from frame.cli.data_tables import chosen_sources
from frame.cli.study_run import place, say
from frame.cli.text import printable
from frame.cohorts.phantom.truth import NOTE
from frame.cohorts.sources import sources
from frame.encoders.extraction import BLOCK_ROWS
from frame.encoders.panel import encoder
from frame.errors import InputError
from frame.workspace.feature_stages import (
    Extraction,
    check_extraction,
    extract_source,
    feature_stage,
    features_of,
    named_encoders,
)
from frame.workspace.graph import make_with_inputs
from frame.workspace.stages import make, staleness

if TYPE_CHECKING:
    from frame.encoders.extraction import ExtractionReport, Progress
    from frame.workspace.layout import Workspace

__all__ = ["extract"]

#: Seconds between two lines about the progress where there is no terminal.
_LINE_EVERY: Final = 30.0


def extract(
    workspace: Workspace, named: Sequence[str], named_sources: Sequence[str], extraction: Extraction
) -> None:
    """Make feature stores, or some blocks of them, and print what became of the images.

    Raises
    ------
    frame.InputError
        If a source or encoder is unknown or they do not go together, or an extraction fails; of several
        the others are made first.
    """
    pairs = list(_pairs(workspace, named, named_sources))
    if extraction.rows is not None and len(pairs) > 1:
        raise InputError(
            f"--rows is a part of one extraction, and {len(pairs)} are asked for; name one --encoder and one "
            "--source."
        )
    for _, name in pairs:
        check_extraction(encoder(name), extraction, workspace.profile.features.precision)
    if workspace.profile.phantom is not None:
        typer.echo(NOTE)
    before = dict.fromkeys(f"{kind}:{source}" for source, _ in pairs for kind in ("manifest", "images"))
    make_with_inputs(workspace, before, say)
    failed: list[str] = []
    for source, name in pairs:
        try:
            said = _one(workspace, source, name, extraction)
        except InputError as problem:
            if len(pairs) == 1:
                raise
            failed.append(f"{source}, {name}")
            typer.echo(f"{source}, {name} failed: {printable(str(problem))}", err=True)
        else:
            typer.echo(f"{sources()[source].title}, {encoder(name).title}: {said}")
    if failed:
        raise InputError(
            f"{len(failed)} of {len(pairs)} extractions failed, for the reasons above: {'; '.join(failed)}. "
            "The others are done; the same command makes what is missing."
        )
    if extraction.rows is not None:
        typer.echo("When all parts are done, the same command without --rows puts them together.")
    else:
        typer.echo(f"The vectors lie in {place(workspace, 'features')}.")


def _pairs(
    workspace: Workspace, named: Sequence[str], named_sources: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Sources and encoders that are asked for, in the profile's order."""
    names = list(dict.fromkeys(named)) or list(named_encoders(workspace))
    if not names:
        raise InputError(
            f"Profile {workspace.profile.name} names no encoder; give --encoder, or fill its key encoders "
            "(frame encoders list)."
        )
    chosen = chosen_sources(workspace, named_sources)
    found = False
    for name in names:
        row = encoder(name)
        for source in chosen:
            meant = sources()[source].modality in row.modalities
            if named_sources or (meant and workspace.profile.sources[source].images):
                feature_stage(workspace, source, name)  # says what does not go together
                found = True
                yield source, name
    if not found:
        raise InputError(
            f"Profile {workspace.profile.name} has no source with images that {', '.join(names)} "
            f"{'is' if len(names) == 1 else 'are'} meant for."
        )


def _one(workspace: Workspace, source: str, name: str, extraction: Extraction) -> str:
    """Make one feature store, or some blocks of it; what is said about it."""
    reports: list[ExtractionReport] = []
    with _shown(f"{source}, {name}") as told:
        chosen = replace(extraction, say=told, heard=reports.append)
        if extraction.rows is not None:
            report = extract_source(workspace, source, name, chosen)
            said = _part_text(report.n_rows, report.n_rows_made, report.n_blocks)
            return said + _rounded_text(extraction.rows, report.n_rows)
        stage = feature_stage(workspace, source, name, chosen)
        made = bool(staleness(workspace, stage)) and make(workspace, stage)
    said = _whole_text(workspace, source, name, extraction)
    if not made:
        said += " They were fresh."
        if extraction.device != "auto":
            said += f" This run computed nothing on {extraction.device}."
    n_dropped = sum(report.n_blocks_dropped for report in reports)
    if n_dropped:
        said += (
            f"\n  {n_dropped:,} {'block' if n_dropped == 1 else 'blocks'} that tasks with --rows had made "
            "with other settings did not fit and were removed."
        )
    return said


def _rounded_text(rows: tuple[int, int], n_rows: int) -> str:
    """Which rows a range means; a warning on the error stream where it means none."""
    asked = f"{rows[0]:,}:{rows[1]:,}"
    if not n_rows:
        typer.echo(
            f"Warning: no block begins in the rows {asked}, so that this task makes nothing; blocks begin at "
            f"the multiples of {BLOCK_ROWS:,}.",
            err=True,
        )
        return ""
    first = -(-rows[0] // BLOCK_ROWS) * BLOCK_ROWS
    return f" Blocks have {BLOCK_ROWS:,} rows: {asked} was rounded to {first:,}:{first + n_rows:,}."


def _part_text(n_rows: int, n_rows_made: int, n_blocks: int) -> str:
    blocks = f"{n_blocks:,} {'block' if n_blocks == 1 else 'blocks'}"
    return f"{n_rows:,} rows in {blocks} are done, {n_rows_made:,} of them in this run."


def _whole_text(workspace: Workspace, source: str, name: str, extraction: Extraction) -> str:
    about = features_of(workspace, source, name, verify=False, extraction=extraction).sidecar
    counts = dict(about["counts"])
    ready = counts.pop("ready", 0)
    text = f"{ready:,} of {about['n_rows']:,} images have a vector of {about['width']:,} numbers"
    text += f" ({about['dtype']}, computed in {about['precision_used']} on {', '.join(about['devices'])})."
    if about["precision_reason"]:
        text += f" Half precision was left because {about['precision_reason']}."
    if about["n_rows_computed_again"]:
        text += (
            f" {about['n_rows_computed_again']:,} were computed again in float32, which half did not hold."
        )
    for reason, count in sorted(counts.items()):
        text += f"\n  without a vector: {count:,} ({reason})"
    return text


@contextmanager
def _shown(title: str) -> Iterator[Callable[[Progress], None]]:
    """Show the progress: a bar on a terminal, a line now and then elsewhere, both on the error stream."""
    if sys.stderr.isatty():
        with _bar(title) as shown:
            yield shown
        return
    started: list[float] = []
    last = [0.0]

    def told(progress: Progress) -> None:
        now = time.monotonic()
        if not started:
            started.append(now)
            last[0] = now
        elif now - last[0] >= _LINE_EVERY:
            last[0] = now
            with suppress(OSError):  # that nobody reads it any more does not end the work
                print(_line(title, progress, now - started[0]), file=sys.stderr, flush=True)

    yield told


def _line(title: str, progress: Progress, seconds: float) -> str:
    rate = (progress.n_done - progress.n_before) / max(seconds, 1e-9)
    left = (progress.n_rows - progress.n_done) / rate if rate else float("inf")
    done = f"{progress.n_done:,} of {progress.n_rows:,} images"
    return f"{title}: {done}, {rate:,.0f} images/s, {_time(left)} left"


def _time(seconds: float) -> str:
    if seconds == float("inf"):
        return "unknown time"
    minutes = int(seconds // 60)
    return (
        f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min {int(seconds % 60)} s"
    )


@contextmanager
def _bar(title: str) -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns: list[Any] = [
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    ]
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None, rate="")
        started: list[float] = []

        def told(progress: Progress) -> None:
            now = time.monotonic()
            if not started:
                started.append(now)
                bar.reset(task, total=progress.n_rows, completed=progress.n_before, description=title)
            seconds = max(now - started[0], 1e-9)
            rate = (progress.n_done - progress.n_before) / seconds
            bar.update(task, completed=progress.n_done, rate=f"{rate:,.0f} images/s")

        yield told

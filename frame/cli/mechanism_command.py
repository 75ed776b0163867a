"""The verb ``frame mechanism``: its options, and nothing that takes time to load."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from frame.cli.endings import stop
from frame.cli.mitigate import MitigationMeasure
from frame.cli.options import Format
from frame.errors import InputError

__all__ = ["MECHANISM_EXAMPLE", "mechanism_command"]

MECHANISM_EXAMPLE = (
    "Example: frame mechanism --features embeddings.npy --table images.csv --label finding --group race "
    "--patient id --split split --folder finished --html report.html"
)
_DATA = "Your data"
_QUESTION = "What is asked"
_FITTING = "What is fitted"
_RESULT = "The result"


class ScoreScale(StrEnum):
    """How a column of scores is read."""

    probability = "probability"
    logit = "logit"


def mechanism_command(
    features: Annotated[
        Path | None,
        typer.Option(
            "--features",
            metavar="FILE.npy",
            help="Embeddings, one row per image in the order of the table (numpy.save; float16, 32 or 64).",
            show_default=False,
            rich_help_panel=_DATA,
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            "--table",
            metavar="FILE",
            help="CSV (also .gz) or parquet, one row per image.",
            show_default=False,
            rich_help_panel=_DATA,
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            "--label",
            metavar="COLUMN",
            help="The finding: 0 and 1, or true and false; blank where an image has no label.",
            show_default=False,
            rich_help_panel=_DATA,
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            metavar="COLUMN",
            help="The subgroup, for example race. A blank one fits the head and is in no subgroup.",
            show_default=False,
            rich_help_panel=_DATA,
        ),
    ] = None,
    patient: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Patient id. Needed where a patient has several images.",
            show_default=False,
            rich_help_panel=_DATA,
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Says train, validation or test. Without it patients are split at random, 60/15/25 %.",
            show_default=False,
            rich_help_panel=_DATA,
        ),
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Scores that step one audits. Default: those of a linear head on the embeddings.",
            show_default=False,
            rich_help_panel=_DATA,
        ),
    ] = None,
    scale: Annotated[
        ScoreScale,
        typer.Option(
            metavar="NAME",
            help="Scale of --score: probability or logit; only calibration reads it.",
            rich_help_panel=_DATA,
        ),
    ] = ScoreScale.probability,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GROUP",
            help="Drop the images of this group. Repeat for several.",
            show_default=False,
            rich_help_panel=_QUESTION,
        ),
    ] = None,
    majority: Annotated[
        str | None,
        typer.Option(
            metavar="GROUP",
            help="The group that keeps its disease signal. Default: the largest of the training images.",
            show_default=False,
            rich_help_panel=_QUESTION,
        ),
    ] = None,
    measure: Annotated[
        MitigationMeasure,
        typer.Option(
            metavar="NAME",
            help="auroc, or tpr, fpr, fnr, specificity, accuracy, ppv, npv, ece, brier, auprc.",
            rich_help_panel=_QUESTION,
        ),
    ] = MitigationMeasure.auroc,
    alpha: Annotated[
        float,
        typer.Option(metavar="NUMBER", help="Level of step one.", rich_help_panel=_QUESTION),
    ] = 0.05,
    min_size: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Subgroups with fewer test images are listed, not compared.",
            rich_help_panel=_QUESTION,
        ),
    ] = 20,
    resamples: Annotated[
        int,
        typer.Option(
            metavar="N", help="Bootstrap resamples of patients, shared by all.", rich_help_panel=_QUESTION
        ),
    ] = 1000,
    directions: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Random directions that decodability is averaged over.",
            rich_help_panel=_FITTING,
        ),
    ] = 20,
    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Method of the achievable difference (frame mitigate --list). Default: the paper's nine.",
            show_default=False,
            rich_help_panel=_FITTING,
        ),
    ] = None,
    methods: Annotated[
        bool,
        typer.Option(
            "--methods/--no-methods",
            help="Compute the achievable difference.",
            rich_help_panel=_FITTING,
        ),
    ] = True,
    geometry: Annotated[
        bool,
        typer.Option(
            "--geometry/--no-geometry",
            help="Compute decodability, overlap and erasure cost.",
            rich_help_panel=_FITTING,
        ),
    ] = True,
    nonlinear: Annotated[
        bool,
        typer.Option(
            "--nonlinear/--no-nonlinear",
            help="Fit the nonlinear probe, the slowest part.",
            rich_help_panel=_FITTING,
        ),
    ] = True,
    whitened: Annotated[
        bool,
        typer.Option(
            "--whitened/--no-whitened",
            help="Show our variant of entanglement beside; it does not decide.",
            rich_help_panel=_FITTING,
        ),
    ] = True,
    cap: Annotated[
        int,
        typer.Option(
            metavar="N", help="Most training images, the same at every strength.", rich_help_panel=_FITTING
        ),
    ] = 100_000,
    seed: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Start of the random numbers: the same gives the same.",
            rich_help_panel=_FITTING,
        ),
    ] = 0,
    folder: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Keep finished strengths there, so that a run that was ended goes on.",
            show_default=False,
            rich_help_panel=_FITTING,
        ),
    ] = None,
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
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Also write a report with figures for any browser.",
            show_default=False,
            rich_help_panel=_RESULT,
        ),
    ] = None,
    strengths_out: Annotated[
        Path | None,
        typer.Option(
            "--strengths-out",
            metavar="FILE.csv",
            help="Also write every quantity at every strength.",
            show_default=False,
            rich_help_panel=_RESULT,
        ),
    ] = None,
    suppress_below: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Hide counts below N, and what they could be computed from.",
            rich_help_panel=_RESULT,
        ),
    ] = 0,
) -> None:
    """Ask what a difference between subgroups responds to: inject a cause, see whether it moves.

    Where an exactly fair model would show the difference too, it says so and stops. Otherwise the embeddings
    are changed at rising strengths, and the disease head is fitted and measured again at each.

    Exit code 0: it ran. 2: the input is wrong; nothing is written.
    """
    if features is None:
        stop("no --features were given; name a .npy file with one embedding per image.")
    if table is None:
        stop("no --table was given; name a CSV or parquet file with one row per image.")
    from frame.cli.mechanism_run import MechanismRequest, run

    if folder is not None and not folder.strip():
        stop("--folder is empty; name a folder for finished strengths, or leave --folder away.")
    if method and not methods:
        stop("--method and --no-methods were given; give one of them.")
    settings = {
        "exclude": tuple(exclude or ()),
        "majority": majority,
        "measure": measure.value,
        "alpha": alpha,
        "min_size": min_size,
        "resamples": resamples,
        "directions": directions,
        "geometry": geometry,
        "nonlinear": nonlinear,
        "whitened": whitened,
        "cap": cap,
        "seed": seed,
        "folder": None if folder is None else Path(folder),
        "scale": scale.value,
    }
    if method or not methods:
        settings["methods"] = tuple(method or ())
    request = MechanismRequest(
        features=features,
        table=table,
        label=label or "",
        group=group or "",
        patient=patient,
        split=split,
        score=score,
        suppress_below=suppress_below,
        settings=settings,
    )
    try:
        run(
            request,
            html=html,
            strengths_out=strengths_out,
            out=out,
            form=None if form is None else form.value,
        )
    except InputError as problem:
        stop(str(problem))

"""The verb ``frame audit-scores``: its options, and nothing that takes time to load."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from frame.cli.endings import FOUND, stop
from frame.cli.options import FailOn, Format, Protocol
from frame.errors import InputError

__all__ = ["EXAMPLE", "audit_scores"]


class Measure(StrEnum):
    """Measures of scores and labels."""

    auroc = "auroc"
    tpr = "tpr"
    fpr = "fpr"
    fnr = "fnr"
    specificity = "specificity"
    accuracy = "accuracy"
    ppv = "ppv"
    npv = "npv"
    ece = "ece"
    brier = "brier"
    auprc = "auprc"


class ScoreMethod(StrEnum):
    """How the reference of scores is made."""

    auto = "auto"
    calibrated = "calibrated"
    calibrated_balanced = "calibrated-balanced"
    delong = "delong"
    obuchowski = "obuchowski"
    hanley_mcneil = "hanley-mcneil"
    binormal = "binormal"
    binomial = "binomial"
    pooled = "pooled"


class Missing(StrEnum):
    """What a missing subgroup means."""

    error = "error"
    group = "group"
    drop = "drop"


class Scale(StrEnum):
    """What a score is."""

    probability = "probability"
    logit = "logit"


_TABLE = "Your table"
_QUESTION = "What is compared"
_CUTOFF = "Threshold, for every measure but auroc, auprc, ece and brier"
_RESULT = "The result"
_TEST = "The statistical test"
EXAMPLE = "Example: frame audit-scores scores.csv --score risk --label finding --group sex --patient id"


def audit_scores(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="CSV (also .gz) or parquet, one row per image.", show_default=False
        ),
    ] = None,
    score: Annotated[
        list[str] | None,
        typer.Option(
            "--score",
            metavar="COLUMN",
            help="The model's score, higher means more positive. Repeat for several models.",
            show_default=False,
            rich_help_panel=_TABLE,
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            metavar="COLUMN",
            help="The truth: 0 and 1, or true and false. Repeat for several findings.",
            show_default=False,
            rich_help_panel=_TABLE,
        ),
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(
            "--group",
            metavar="COLUMN",
            help="The subgroup, for example sex. Repeat for several.",
            show_default=False,
            rich_help_panel=_TABLE,
        ),
    ] = None,
    patient: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Patient id. Needed where a patient has several images: without it each image counts as "
            "another patient.",
            show_default=False,
            rich_help_panel=_TABLE,
        ),
    ] = None,
    images_repeat: Annotated[
        bool,
        typer.Option(
            "--images-repeat",
            help="Patients have several images but there are no ids: results come without a verdict.",
            rich_help_panel=_TABLE,
        ),
    ] = False,
    missing: Annotated[
        Missing,
        typer.Option(
            metavar="POLICY",
            help="Blank subgroups: error, group (a subgroup of their own) or drop (left out and counted).",
            rich_help_panel=_TABLE,
        ),
    ] = Missing.error,
    measure: Annotated[
        list[Measure] | None,
        typer.Option(
            metavar="NAME",
            help="auroc (default), tpr, fpr, fnr, specificity, accuracy, ppv, npv, ece, brier or auprc. "
            "Repeat for several.",
            show_default=False,
            rich_help_panel=_QUESTION,
        ),
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Compare separately for each value of this column, for example view.",
            show_default=False,
            rich_help_panel=_QUESTION,
        ),
    ] = None,
    intersections: Annotated[
        bool,
        typer.Option(
            "--intersections",
            help="Also compare combinations of the --group columns (women under 40, ...).",
            rich_help_panel=_QUESTION,
        ),
    ] = False,
    min_size: Annotated[
        int,
        typer.Option(
            metavar="N", help="Smaller subgroups are listed, not compared.", rich_help_panel=_QUESTION
        ),
    ] = 20,
    scale: Annotated[
        Scale,
        typer.Option(
            metavar="SCALE",
            help="What a score is, for ece and brier: probability or logit (log odds).",
            rich_help_panel=_QUESTION,
        ),
    ] = Scale.probability,
    threshold: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|RULE",
            help="A score from here on is positive. A number, or a rule for validation rows: "
            "sensitivity_0.80 or youden.",
            show_default=False,
            rich_help_panel=_CUTOFF,
        ),
    ] = None,
    validation: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Table of other patients with the same columns, for the rule.",
            show_default=False,
            rich_help_panel=_CUTOFF,
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Or a column that says validation (for the rule) or test (compared), or else is left out.",
            show_default=False,
            rich_help_panel=_CUTOFF,
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
    resamples: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Bootstrap resamples behind the report's intervals; 0: no intervals.",
            rich_help_panel=_RESULT,
        ),
    ] = 1000,
    suppress_below: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Hide counts below N, and what they could be computed from.",
            rich_help_panel=_RESULT,
        ),
    ] = 0,
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
    alpha: Annotated[
        float,
        typer.Option(
            metavar="NUMBER",
            help="False discovery rate over all differences in a measure.",
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
    method: Annotated[
        ScoreMethod,
        typer.Option(
            metavar="NAME",
            help="How the fair model's difference is computed. auto: from the scores, or by permuting "
            "patients (pooled). For comparison: calibrated, calibrated-balanced, delong, obuchowski, "
            "hanley-mcneil, binormal, binomial, pooled.",
            rich_help_panel=_TEST,
        ),
    ] = ScoreMethod.auto,
    protocol: Annotated[
        Protocol,
        typer.Option(
            metavar="NAME",
            help="exact, or paper: simulated from counts as the paper does.",
            rich_help_panel=_TEST,
        ),
    ] = Protocol.exact,
    seed: Annotated[
        int,
        typer.Option(
            metavar="N", help="Start of the random numbers: the same gives the same.", rich_help_panel=_TEST
        ),
    ] = 0,
) -> None:
    """Compare subgroup differences in your own scores with what an exactly fair model would show.

    Exit code 0: it ran. 1: --fail-on found a difference. 2: the input is wrong; nothing is written.
    """
    if file is None:
        stop("no table of scores was given; name a CSV or parquet file with one row per image.")
    from frame.cli.score_run import Request, run

    request = Request(
        path=file,
        scores=tuple(score or ()),
        labels=tuple(label or ()),
        groups=tuple(group or ()),
        patient=patient,
        within=within,
        validation=validation,
        split=split,
        threshold=threshold,
        suppress_below=suppress_below,
        settings={
            "measures": [m.value for m in measure or [Measure.auroc]],
            "method": method.value,
            "protocol": protocol.value,
            "missing": missing.value,
            "scale": scale.value,
            "intersections": intersections,
            "min_size": min_size,
            "alpha": alpha,
            "margin": margin,
            "resamples": resamples,
            "seed": seed,
            "images_repeat": images_repeat,
        },
    )
    try:
        exceeding = run(request, html=html, out=out, form=None if form is None else form.value)
    except InputError as problem:
        stop(str(problem))
    if fail_on is FailOn.exceeds and exceeding:
        raise typer.Exit(FOUND)

"""The verb ``frame mitigate``: its options, and nothing that takes time to load."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from frame.cli.endings import stop
from frame.cli.options import Format
from frame.errors import InputError

__all__ = ["MITIGATE_EXAMPLE", "mitigate_command"]

MITIGATE_EXAMPLE = (
    "Example: frame mitigate --features embeddings.npy --table images.csv --label finding --group sex "
    "--patient id --split split --html report.html"
)


class Weights(StrEnum):
    """Which fits carry balanced class weights."""

    paper = "paper"
    equal = "equal"


class HeadKind(StrEnum):
    """Kind of the disease head."""

    linear = "linear"
    mlp = "mlp"


class MissingGroup(StrEnum):
    """What a missing group means."""

    error = "error"
    group = "group"
    drop = "drop"


class MitigationMeasure(StrEnum):
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


_DATA = "Your data"
_FITTING = "What is fitted"
_QUESTION = "What is compared"
_RESULT = "The result"


def _listed(asked: bool) -> None:
    if asked:
        from frame.cli.mitigate_list import print_methods

        print_methods()
        raise typer.Exit


def mitigate_command(
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
        list[str] | None,
        typer.Option(
            "--group",
            metavar="COLUMN",
            help="The subgroup, for example sex. Repeat for several; all are read from one head.",
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
    missing: Annotated[
        MissingGroup,
        typer.Option(
            metavar="POLICY",
            help="Blank subgroups: error, group (a subgroup of their own) or drop (they keep their score).",
            rich_help_panel=_DATA,
        ),
    ] = MissingGroup.error,
    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A method of --list. Repeat for several. Default: the nine of the paper.",
            show_default=False,
            rich_help_panel=_FITTING,
        ),
    ] = None,
    list_methods: Annotated[
        bool,
        typer.Option(
            "--list",
            callback=_listed,
            is_eager=True,
            help="Explain each method in a sentence and stop.",
            rich_help_panel=_FITTING,
        ),
    ] = False,
    weights: Annotated[
        Weights,
        typer.Option(
            metavar="NAME",
            help="Balanced class weights: paper (in the head and its refits alone) or equal (in every fit).",
            rich_help_panel=_FITTING,
        ),
    ] = Weights.paper,
    head: Annotated[
        HeadKind,
        typer.Option(metavar="KIND", help="Disease head: linear or mlp.", rich_help_panel=_FITTING),
    ] = HeadKind.linear,
    cap: Annotated[
        int,
        typer.Option(
            metavar="N", help="Most training images, the same for every method.", rich_help_panel=_FITTING
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
    measure: Annotated[
        list[MitigationMeasure] | None,
        typer.Option(
            metavar="NAME",
            help="auroc, tpr, fpr and ece by default; also fnr, specificity, accuracy, ppv, npv, brier and "
            "auprc. Repeat for several.",
            show_default=False,
            rich_help_panel=_QUESTION,
        ),
    ] = None,
    threshold: Annotated[
        str,
        typer.Option(
            metavar="RULE",
            help="sensitivity_0.80 or youden, on each method's own validation scores.",
            rich_help_panel=_QUESTION,
        ),
    ] = "sensitivity_0.80",
    min_size: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Subgroups with fewer test images are listed, not compared.",
            rich_help_panel=_QUESTION,
        ),
    ] = 20,
    tolerance: Annotated[
        float,
        typer.Option(
            metavar="NUMBER",
            help="Loss of disease AUROC that the achievable difference allows.",
            rich_help_panel=_QUESTION,
        ),
    ] = 0.01,
    alpha: Annotated[
        float, typer.Option(metavar="NUMBER", help="False discovery rate.", rich_help_panel=_QUESTION)
    ] = 0.05,
    resamples: Annotated[
        int,
        typer.Option(
            metavar="N", help="Bootstrap resamples of patients, shared by all.", rich_help_panel=_QUESTION
        ),
    ] = 1000,
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
    groups_out: Annotated[
        Path | None,
        typer.Option(
            "--groups-out",
            metavar="FILE.csv",
            help="Also write the value of every subgroup under every method.",
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
    """Try mitigation methods on your own embeddings: every difference before and after, and its cost.

    A disease head is trained on the embeddings, each method is fitted on the training images and judged on
    the test images, with paired intervals, beside what an exactly fair model would show.

    Exit code 0: it ran. 2: the input is wrong; nothing is written.
    """
    if features is None:
        stop("no --features were given; name a .npy file with one embedding per image.")
    if table is None:
        stop("no --table was given; name a CSV or parquet file with one row per image.")
    from frame.cli.mitigate_run import MitigateRequest, run

    request = MitigateRequest(
        features=features,
        table=table,
        label=label or "",
        groups=tuple(group or ()),
        patient=patient,
        split=split,
        suppress_below=suppress_below,
        settings={
            "methods": tuple(method) if method else None,
            "weighting": weights.value,
            "head": head.value,
            "measures": tuple(m.value for m in measure) if measure else None,
            "threshold": threshold,
            "missing": missing.value,
            "min_size": min_size,
            "cap": cap,
            "alpha": alpha,
            "tolerance": tolerance,
            "resamples": resamples,
            "seed": seed,
        },
    )
    try:
        run(
            request,
            html=html,
            groups_out=groups_out,
            out=out,
            form=None if form is None else form.value,
        )
    except InputError as problem:
        stop(str(problem))

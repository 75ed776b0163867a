"""``frame plan``: what given counts can show, and the counts that a difference needs."""

from __future__ import annotations

import math
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from frame.cli.endings import stop
from frame.cli.options import Format
from frame.cli.text import printable
from frame.errors import InputError

if TYPE_CHECKING:
    from frame.cli.planned import Planned
    from frame.reference.study import Study

_PLOT_ENDINGS = (".svg", ".png", ".pdf")


class Measure(StrEnum):
    """What is compared between the subgroups."""

    auroc = "auroc"
    tpr = "tpr"
    fnr = "fnr"
    fpr = "fpr"
    specificity = "specificity"


class Law(StrEnum):
    """Law of a subgroup value."""

    auto = "auto"
    hanley_mcneil = "hanley-mcneil"
    binormal = "binormal"
    binomial = "binomial"


_COUNTS, _REPEATS = "Your subgroups", "Patients with several images"
_WANTED, _TEST, _RESULT = "The difference to be found", "The statistical test", "The result"
PLAN_EXAMPLE = "Example: frame plan --value 0.8 --positives 150,60 --negatives 1500,300 --difference 0.1"


def plan_command(
    value: Annotated[
        float,
        typer.Option(
            metavar="NUMBER",
            help="Value of the measure that the subgroups share, 0 to 1.",
            show_default=False,
            rich_help_panel=_COUNTS,
        ),
    ],
    measure: Annotated[
        Measure,
        typer.Option(metavar="NAME", help="auroc, tpr, fnr, fpr or specificity.", rich_help_panel=_COUNTS),
    ] = Measure.auroc,
    positives: Annotated[
        str | None,
        typer.Option(
            metavar="N,N,...",
            help="Positive cases of each subgroup; for auroc, tpr and fnr.",
            show_default=False,
            rich_help_panel=_COUNTS,
        ),
    ] = None,
    negatives: Annotated[
        str | None,
        typer.Option(
            metavar="N,N,...",
            help="Negative cases of each subgroup; for auroc, fpr and specificity.",
            show_default=False,
            rich_help_panel=_COUNTS,
        ),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,...",
            help="Names of the subgroups, in order.",
            show_default=False,
            rich_help_panel=_COUNTS,
        ),
    ] = None,
    difference: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="Say what counts are needed to find this difference.",
            show_default=False,
            rich_help_panel=_WANTED,
        ),
    ] = None,
    grow: Annotated[
        str,
        typer.Option(
            metavar="all|NAME",
            help="Collect more cases of all subgroups in proportion, or of one by its name.",
            rich_help_panel=_WANTED,
        ),
    ] = "all",
    power: Annotated[
        float,
        typer.Option(
            metavar="NUMBER",
            help="Probability with which it is to be found.",
            rich_help_panel=_WANTED,
        ),
    ] = 0.8,
    design_effect: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="Counts are divided by this number.",
            show_default=False,
            rich_help_panel=_REPEATS,
        ),
    ] = None,
    images_per_patient: Annotated[
        float | None,
        typer.Option(
            metavar="M",
            help="Instead, with the next option: it is 1 + (M - 1) x R.",
            show_default=False,
            rich_help_panel=_REPEATS,
        ),
    ] = None,
    patient_correlation: Annotated[
        float | None,
        typer.Option(
            metavar="R",
            help="Correlation of two images of a patient, 0 to 1.",
            show_default=False,
            rich_help_panel=_REPEATS,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw difference against size and power: .svg, .png or .pdf.",
            show_default=False,
            rich_help_panel=_RESULT,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
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
    alpha: Annotated[
        float,
        typer.Option(
            metavar="NUMBER",
            help="How often a fair model may be called different.",
            rich_help_panel=_TEST,
        ),
    ] = 0.05,
    method: Annotated[
        Law,
        typer.Option(
            metavar="NAME",
            help="How much a subgroup value varies by chance: auto (hanley-mcneil for auroc, binomial for "
            "the others), hanley-mcneil, binormal or binomial.",
            rich_help_panel=_TEST,
        ),
    ] = Law.auto,
    kappa: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="For binormal: spread of the positives' scores over that of the negatives' (1.25).",
            show_default=False,
            rich_help_panel=_TEST,
        ),
    ] = None,
) -> None:
    """Say how small a difference subgroup counts can show, and what counts a difference needs.

    Exit code 0: it ran. 2: the input is wrong; nothing is written.
    """
    try:
        run(
            value,
            measure=measure.value,
            positives=positives,
            negatives=negatives,
            groups=groups,
            difference=difference,
            grow=grow,
            power=power,
            alpha=alpha,
            method=method.value,
            kappa=kappa,
            design_effect=design_effect,
            images_per_patient=images_per_patient,
            patient_correlation=patient_correlation,
            plot=plot,
            out=out,
            form=None if form is None else form.value,
        )
    except InputError as problem:
        stop(str(problem))


def run(
    value: float,
    *,
    measure: str,
    positives: str | None,
    negatives: str | None,
    groups: str | None,
    difference: float | None,
    grow: str,
    power: float,
    alpha: float,
    method: str,
    kappa: float | None,
    design_effect: float | None,
    images_per_patient: float | None,
    patient_correlation: float | None,
    plot: Path | None,
    out: Path | None,
    form: str | None,
) -> None:
    """Plan and print or write the result; the arguments are those of :func:`plan_command`.

    Raises
    ------
    InputError
        If an option or an output path is wrong; nothing has been written then.
    """
    from frame.cli.output import chosen_format, reader_may_leave, tell
    from frame.cli.planned import plan_drawing, plan_text, print_plan
    from frame.writing import check_target, write_files

    chosen = chosen_format(out, form)
    target = None if out is None else check_target(out, "--out")
    plot_target = None if plot is None else _plot_target(plot, target)
    planned = _planned(
        _study(
            value,
            measure=measure,
            positives=positives,
            negatives=negatives,
            power=power,
            alpha=alpha,
            method=method,
            kappa=kappa,
            design_effect=_design_effect(design_effect, images_per_patient, patient_correlation),
        ),
        value=value,
        measure=measure,
        groups=groups,
        difference=difference,
        grow=grow,
    )
    drawing = None if plot is None else plan_drawing(planned, plot.suffix.lower()[1:])
    files = []
    if target is not None:
        files.append((target, plan_text(planned, chosen).encode("utf-8"), "--out"))
    if plot_target is not None and drawing is not None:
        files.append((plot_target, drawing, "--plot"))
    write_files(files)
    if target is None:
        with reader_may_leave():
            if chosen == "table":
                print_plan(planned)
            else:
                sys.stdout.write(plan_text(planned, chosen))
    tell(
        None if out is None else f"Written to {out}.",
        None if plot is None else f"Drawn in {plot}.",
    )


# -- what was asked ---------------------------------------------------------------------------------


def _design_effect(given: float | None, images: float | None, correlation: float | None) -> float:
    from frame.reference.required import repeated_image_effect

    if images is None and correlation is None:
        return 1.0 if given is None else given
    if given is not None:
        raise InputError(
            "--design-effect was given together with --images-per-patient or --patient-correlation; "
            "give one or the other."
        )
    if images is None or correlation is None:
        missing = "--images-per-patient" if images is None else "--patient-correlation"
        raise InputError(f"{missing} is missing; the two options are given together.")
    return repeated_image_effect(images, correlation)


def _study(
    value: float,
    *,
    measure: str,
    positives: str | None,
    negatives: str | None,
    power: float,
    alpha: float,
    method: str,
    kappa: float | None,
    design_effect: float,
) -> Study:
    from frame.cli.planned import COMPUTED, NAMES
    from frame.reference.inputs import KAPPA_RANGE, check_number
    from frame.reference.study import Study

    computed, mirrored = COMPUTED[measure]
    check_number("--value", value, 0.0, 1.0)
    check_number("--power", power, 0.0, 1.0, above=True, below=True)
    check_number("--alpha", alpha, 0.0, 1.0, above=True, below=True)
    if kappa is not None:
        check_number("--kappa", kappa, *KAPPA_RANGE)
        if method != "binormal":
            raise InputError(f"--kappa belongs to --method binormal; the method is {method!r}.")
    for name, given, used in (
        ("--positives", positives, computed != "fpr"),
        ("--negatives", negatives, computed != "tpr"),
    ):
        if used and given is None:
            raise InputError(f"{name} is missing; {NAMES[measure]} needs one count per subgroup.")
        if given is not None and not used:
            raise InputError(f"{name} was given, but {NAMES[measure]} does not use it; leave it away.")
    return Study(
        value=1.0 - value if mirrored else value,
        n_positive=_counts("--positives", positives),
        n_negative=_counts("--negatives", negatives),
        measure=computed,
        method=method,
        power=power,
        alpha=alpha,
        kappa=1.25 if kappa is None else kappa,
        design_effect=design_effect,
    )


def _counts(name: str, given: str | None) -> tuple[int, ...] | None:
    if given is None:
        return None
    counts = []
    for part in given.split(","):
        text = part.strip()
        if not text.isascii() or not text.isdigit() or len(text) > 12:
            raise InputError(
                f"{name} holds {text[:30]!r}; give whole numbers of cases separated by commas, "
                "without signs between thousands: 1500,400,60."
            )
        counts.append(int(text))
    return tuple(counts)


def _names(given: str | None, n_subgroups: int) -> tuple[str, ...]:
    if given is None:
        return tuple(f"subgroup {i + 1}" for i in range(n_subgroups))
    names = tuple(printable(name.strip()) for name in given.split(","))
    if len(names) != n_subgroups:
        raise InputError(f"--groups names {len(names)} subgroups, but there are counts of {n_subgroups}.")
    if "" in names or len(set(names)) != len(names):
        raise InputError(f"--groups is {given[:80]!r}; give each subgroup a name of its own.")
    return names


def _planned(
    study: Study, *, value: float, measure: str, groups: str | None, difference: float | None, grow: str
) -> Planned:
    from frame.cli.planned import Planned
    from frame.reference.required import check_difference

    names = _names(groups, study.counts.n_subgroups)
    if grow != "all" and grow not in names:
        listed = ", ".join(repr(name) for name in names)
        raise InputError(f"--grow is {printable(grow[:60])!r}; give 'all' or one of {listed}.")
    if grow != "all" and difference is None:
        raise InputError("--grow was given without --difference; give the difference that is to be found.")
    growing = None if grow == "all" else names.index(grow)
    if difference is not None:
        check_difference(difference, study.value, "--difference")
    detectable = study.detectable()
    shown = detectable if difference is None else difference
    return Planned(
        study=study,
        measure=measure,
        value=value,
        names=names,
        grow=growing,
        detectable=detectable,
        difference=difference,
        powers=None if math.isnan(shown) else study.powers(shown),
        required=None if difference is None else study.required(difference, growing),
    )


def _plot_target(plot: Path, out: Path | None) -> Path:
    from frame.writing import check_target

    if plot.suffix.lower() not in _PLOT_ENDINGS:
        raise InputError(f"--plot is {plot.name[:60]!r}; end it with {', '.join(_PLOT_ENDINGS)}.")
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError:
        raise InputError(
            "--plot needs matplotlib; install it with: pip install 'frame-audit[plots]'"
        ) from None
    target = check_target(plot, "--plot")
    if target == out:
        raise InputError(f"--plot and --out are both {plot.name[:60]!r}; give two files.")
    return target

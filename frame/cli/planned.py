"""What ``frame plan`` prints, writes and draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO, StringIO
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from frame.cli.output import FILE_WIDTH, csv_text, json_text, markdown_table

if TYPE_CHECKING:
    import pandas as pd

    from frame.reference.required import RequiredCounts
    from frame.reference.study import Study

#: Measure as asked -> measure that is computed, and whether its value is one minus the asked one.
COMPUTED = {
    "auroc": ("auroc", False),
    "tpr": ("tpr", False),
    "fnr": ("tpr", True),
    "fpr": ("fpr", False),
    "specificity": ("fpr", True),
}
NAMES = {"auroc": "AUROC", "tpr": "TPR", "fnr": "FNR", "fpr": "FPR", "specificity": "specificity"}
# A drawing holds no date, so that the same plan gives the same file.
_UNDATED: dict[str, dict[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}

#: Below every plan.
NOTES = (
    "Found: one subgroup truly differs from the others' common value by that much, and the observed max-min "
    "difference reaches the critical value of the fair-model reference.",
    "Power: how likely that is when this subgroup is the one that differs.",
    "The level is not corrected for several tests; with correction larger counts are needed.",
    "Counts are taken as independent cases; for several images of a patient give --design-effect, or "
    "--images-per-patient with --patient-correlation.",
)


@dataclass(frozen=True)
class Planned:
    """A plan: the comparison, what it can show, and what the wanted difference needs."""

    study: Study
    measure: str
    value: float
    names: tuple[str, ...]
    grow: int | None
    detectable: float
    difference: float | None
    powers: tuple[float, ...] | None
    required: RequiredCounts | None

    @property
    def shown_difference(self) -> float:
        """The difference that the column of powers is about; NaN where there is none."""
        return self.detectable if self.difference is None else self.difference


def plan_table(planned: Planned) -> pd.DataFrame:
    """One row per subgroup at the given counts, and one per subgroup at the needed ones."""
    import pandas as pd

    study, required = planned.study, planned.required
    settings = {
        "measure": planned.measure,
        "value": planned.value,
        "method": study.counts.method,
        "power": study.power,
        "alpha": study.alpha,
        "kappa": study.kappa if study.counts.method == "binormal" else math.nan,
        "design_effect": study.design_effect,
        "difference": math.nan if planned.difference is None else planned.difference,
    }
    unreached = "no difference reaches the power at these counts"
    blocks = [
        (
            "given",
            study.n_positive,
            study.n_negative,
            1.0,
            planned.detectable,
            planned.powers,
            unreached if math.isnan(planned.detectable) else "",
        )
    ]
    if required is not None:
        at = study.at(required.n_positive, required.n_negative)
        reached = None if required.reason else at.powers(required.difference)
        blocks.append(
            (
                "needed",
                required.n_positive or None,
                required.n_negative or None,
                required.factor,
                math.nan if required.reason else required.detectable,
                reached,
                required.reason,
            )
        )
    rows = [
        {
            "counts": name,
            "group": group,
            "n_positive": pd.NA if positives is None else positives[i],
            "n_negative": pd.NA if negatives is None else negatives[i],
            "factor": factor,
            "detectable": detectable,
            "power_if_this_differs": math.nan if powers is None else powers[i],
            **settings,
            "status": "not estimable" if reason else "ok",
            "reason": reason,
        }
        for name, positives, negatives, factor, detectable, powers, reason in blocks
        for i, group in enumerate(planned.names)
    ]
    return pd.DataFrame(rows).astype({"n_positive": "Int64", "n_negative": "Int64"})


# -- words ------------------------------------------------------------------------------------------


def _title(planned: Planned) -> str:
    study = planned.study
    effect = f"; design effect {study.design_effect:g}" if study.design_effect > 1.0 else ""
    kappa = f" (kappa {study.kappa:g})" if study.counts.method == "binormal" else ""
    return (
        f"{NAMES[planned.measure]} {planned.value:g} in all subgroups but one; power {study.power:g}, "
        f"one-sided test at {study.alpha:g}; {study.counts.method}{kappa}{effect}."
    )


def _headings(planned: Planned) -> list[str]:
    sides = [
        name
        for name, side in (("positives", planned.study.n_positive), ("negatives", planned.study.n_negative))
        if side is not None
    ]
    needed = [f"{name} needed" for name in sides] if planned.required is not None else []
    shown = planned.shown_difference
    found = "power" if math.isnan(shown) else f"power for {shown:.3f}"
    return ["subgroup", *sides, found, *needed]


def _cells(planned: Planned) -> list[list[str]]:
    study, required = planned.study, planned.required
    given = [side for side in (study.n_positive, study.n_negative) if side is not None]
    needed: list[Sequence[int] | None] = []
    if required is not None:
        used = ((required.n_positive, study.n_positive), (required.n_negative, study.n_negative))
        needed = [side or None for side, asked in used if asked is not None]
    rows = []
    for i, name in enumerate(planned.names):
        power = "none" if planned.powers is None else f"{planned.powers[i]:.3f}"
        counts = [f"{side[i]:,}" for side in given]
        rows.append([name, *counts, power, *("none" if side is None else f"{side[i]:,}" for side in needed)])
    return rows


def _sentences(planned: Planned) -> list[str]:
    """What was found, one sentence each."""
    power = f"with power {planned.study.power:g}"
    if math.isnan(planned.detectable):
        sentences = [f"At the given counts no difference is found {power} whichever subgroup has it."]
    else:
        sentences = [
            f"Smallest detectable difference at the given counts: {planned.detectable:.3f}; it is found "
            f"{power} whichever subgroup has it."
        ]
    required = planned.required
    if required is None:
        return sentences
    who = (
        "all subgroups in proportion"
        if planned.grow is None
        else f"only {planned.names[planned.grow]} growing"
    )
    if required.reason:
        least = (
            "none is detectable"
            if math.isnan(required.detectable)
            else f"{required.detectable:.3f} is detectable"
        )
        sentences.append(
            f"A difference of {required.difference:g}, {who}: {required.reason}; with the largest counts "
            f"tried {least}."
        )
        return sentences
    side, i = planned.study.growing(planned.grow).smallest
    sentences.append(
        f"A difference of {required.difference:g} needs {required.factor:.3g} times the given counts, {who}: "
        f"{required.smallest:,} {side} in {planned.names[i]}; one case less does not suffice."
    )
    return sentences


def plan_text(planned: Planned, form: str) -> str:
    """The plan as ``table``, ``csv``, ``json`` or ``markdown``."""
    if form == "csv":
        return csv_text(plan_table(planned))
    if form == "json":
        return json_text(plan_table(planned))
    if form == "markdown":
        lines = [_title(planned), "", *markdown_table(_headings(planned), _cells(planned)), ""]
        lines += [f"**{sentence}**  " for sentence in _sentences(planned)]
        return "\n".join([*lines, "", *(f"{note}  " for note in NOTES)]) + "\n"
    buffer = StringIO()
    _print_to(Console(file=buffer, width=FILE_WIDTH, highlight=False, color_system=None), planned)
    return buffer.getvalue()


def print_plan(planned: Planned) -> None:
    """Print a plan on the terminal."""
    console = Console(highlight=False)
    _print_to(console if console.is_terminal else Console(highlight=False, width=FILE_WIDTH), planned)


def _print_to(console: Console, planned: Planned) -> None:
    table = Table(box=box.HORIZONTALS, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for i, heading in enumerate(_headings(planned)):
        table.add_column(heading, justify="right" if i else "left", overflow="fold")
    for cells in _cells(planned):
        table.add_row(*(Text(cell) for cell in cells))
    console.print(Text(_title(planned)))
    console.print(table)
    for sentence in _sentences(planned):
        console.print(Text(sentence, style="bold"))
    for note in NOTES:
        console.print(Text(note, style="dim"))


# -- the drawing ------------------------------------------------------------------------------------


def plan_drawing(planned: Planned, form: str) -> bytes:
    """The drawing of a plan as ``svg``, ``png`` or ``pdf``."""
    from frame.figures.planning import draw_plan
    from frame.figures.style import style_sheet
    from frame.reference.study import power_curve, size_curve

    study, required = planned.study, planned.required
    reached = required is not None and not required.reason
    side, i = study.growing(planned.grow).smallest
    others = "in proportion" if planned.grow is None else "as they are"
    given = study.growing(planned.grow).start
    needed = required.smallest if required is not None and reached else None
    widest = 1.3 * max(x for x in (planned.detectable, planned.difference, 0.05) if x is not None and x == x)
    at_needed = None
    if required is not None and reached:
        at_needed = power_curve(study.at(required.n_positive, required.n_negative), largest=widest)
    shown = draw_plan(
        size_curve(study, grow=planned.grow, largest=max(10 * given, 2 * (needed or 0))),
        power_curve(study, largest=widest),
        at_needed,
        axis=f"{side.capitalize()} in {planned.names[i]} (others {others})",
        given=given,
        needed=needed,
        difference=planned.difference,
        power=study.power,
    )
    with style_sheet():
        shown.figure.savefig(buffer := BytesIO(), format=form, dpi=200, metadata=_UNDATED[form])
    return buffer.getvalue()

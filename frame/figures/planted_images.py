"""What the whole procedure says of drawn images with a planted truth, as the notebook shows it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from frame.characteristics.step_two_images import DESIGN, POLICY, SEEDS, ImageDesign, cohort_rows
from frame.cohorts.labels import UNCERTAIN, resolve_labels
from frame.figures.style import EDGE, INK, MUTED, SMALL, WIDTH, style_sheet
from frame.interventions.decision import MOVES_BOTH, MOVES_ENTANGLEMENT
from frame.mitigation.words import signed
from frame.presentation import ShownFigure, show_figure, written

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "FAIR_PLANTS",
    "UNDECIDED",
    "changes_by_world",
    "differences_by_world",
    "draw_images",
    "groups_by_unit",
    "summary_by_unit",
    "wrong_labels",
]

_OBSERVED, _TRUE = "#0a6cb5", "#c4501b"
_LEVEL: Final = 0.05
_UNIT: Final = ["attribute", "finding", "planted"]
_KINDS: Final = ("recorded", "actual")
#: What is planted where nothing makes a head unfair.
FAIR_PLANTS: Final = ("decodable, fair", "nothing")
#: The interval holds the measured truth but not 0, and the measured truth is as small as chance makes it.
UNDECIDED: Final = "undecided"


def summary_by_unit(images: pd.DataFrame) -> pd.DataFrame:
    """Counts and means over the worlds, a row per attribute and finding.

    Parameters
    ----------
    images : DataFrame
        Of :func:`frame.characteristics.step_two_image_tables.images_table`.

    Returns
    -------
    DataFrame
        ``attribute, finding, planted, worlds, estimable``; means ``observed, reference, truth_recorded,
        truth_recorded_reference, truth_actual, truth_actual_reference``; numbers of worlds ``called`` (p at
        most 0.05), ``begins_at_0`` (the interval does), ``holds_recorded, holds_actual`` (the interval holds
        the true difference), ``undecided_recorded, undecided_actual`` (:data:`UNDECIDED`, and so not among
        those that hold it), ``as_fair_recorded, as_fair_actual`` (the truth is not above the mean of its own
        fair reference), ``blamed`` (the verdict names entanglement) and ``blamed_beyond`` (the same as if
        step one had passed the world on).
    """
    names = (MOVES_ENTANGLEMENT, MOVES_BOTH)
    marked = images.assign(
        called=images["p"] <= _LEVEL,
        estimable=images["status"] == "ok",
        begins_at_0=images["lo"] == 0,
        **{f"holds_{kind}": _held(images, kind) == "yes" for kind in _KINDS},
        **{f"undecided_{kind}": _held(images, kind) == UNDECIDED for kind in _KINDS},
        **{f"as_fair_{kind}": _as_fair(images, kind) for kind in _KINDS},
        blamed=images["verdict"].isin(names),
        blamed_beyond=images["verdict_of_step_two"].isin(names),
    )
    means = [
        *("observed", "reference", "truth_recorded", "truth_recorded_reference"),
        *("truth_actual", "truth_actual_reference"),
    ]
    counts = [
        *("called", "begins_at_0"),
        *(f"{name}_{kind}" for kind in _KINDS for name in ("holds", "undecided", "as_fair")),
        *("blamed", "blamed_beyond"),
    ]
    asked = {"seed": "size", "estimable": "sum"} | dict.fromkeys(means, "mean") | dict.fromkeys(counts, "sum")
    found = marked.groupby(_UNIT, sort=False).agg(asked).rename(columns={"seed": "worlds"}).reset_index()
    return found.assign(finding=found["finding"].map(_words))


def differences_by_world(images: pd.DataFrame) -> pd.DataFrame:
    """Step one and the truth, a row per attribute, finding and world.

    Parameters
    ----------
    images : DataFrame
        As for :func:`summary_by_unit`.

    Returns
    -------
    DataFrame
        Its columns, with ``range`` (of the reference) and ``interval`` (of the difference) as texts in
        addition, and findings in words. ``fair_recorded, fair_actual`` are the mean of the truth's own fair
        reference with ``within`` where the truth is not above it, else ``above``; ``holds_recorded,
        holds_actual`` are :data:`UNDECIDED` where the interval holds the truth, not 0, and the truth is
        ``within``.
    """
    return images.assign(
        finding=images["finding"].map(_words),
        range=_ends(images, "reference_lo", "reference_hi"),
        interval=_ends(images, "lo", "hi"),
        **{f"holds_{kind}": _held(images, kind) for kind in _KINDS},
        **{f"fair_{kind}": _fair(images, kind) for kind in _KINDS},
    )


def changes_by_world(images: pd.DataFrame) -> pd.DataFrame:
    """Step two, a row per attribute, finding and world.

    Parameters
    ----------
    images : DataFrame
        As for :func:`summary_by_unit`.

    Returns
    -------
    DataFrame
        Its columns, with ``with_decodability``, ``with_entanglement`` and ``auroc`` as texts in addition: the
        change of the difference under each operator, and of the disease AUROC, each with its interval.
    """
    named = {"decodability": "with_decodability", "entanglement": "with_entanglement", "disease": "auroc"}
    shown = {
        column: images[f"{name}_change"].map(_signed)
        + (" (" + _ends(images, f"{name}_lo", f"{name}_hi", _signed) + ")").where(
            images[f"{name}_change"].notna(), ""
        )
        for name, column in named.items()
    }
    return images.assign(finding=images["finding"].map(_words), **shown)


def groups_by_unit(groups: pd.DataFrame) -> pd.DataFrame:
    """AUROC of each group on test and in truth, means over the worlds.

    Parameters
    ----------
    groups : DataFrame
        Of :func:`frame.characteristics.step_two_image_tables.image_groups_table`.

    Returns
    -------
    DataFrame
        ``attribute, finding, group, worlds``, then means over the worlds in which the group could be
        evaluated: ``n_images, n_positive, value``, then ``truth_recorded`` with its ``truth_labelled,
        truth_labelled_positive``, and ``truth_actual`` with its ``truth_images, truth_positive``.
    """
    own = groups[groups["status"] == "ok"]
    means = [
        *("n_images", "n_positive", "value", "truth_recorded", "truth_actual"),
        *("truth_labelled", "truth_labelled_positive", "truth_images", "truth_positive"),
    ]
    asked = {"seed": "size"} | dict.fromkeys(means, "mean")
    found = own.groupby(["attribute", "finding", "group"], sort=False).agg(asked).reset_index()
    found = found.rename(columns={"seed": "worlds"})
    counts = [name for name in means if name.endswith(("images", "labelled", "positive"))]
    found[counts] = found[counts].astype("float64").round().astype("int64")
    return found.assign(finding=found["finding"].map(_words))


def wrong_labels(seeds: Iterable[int] = SEEDS, design: ImageDesign = DESIGN) -> pd.DataFrame:
    """Recorded labels of the cohorts that are not the true ones, as the demo reads labels.

    Populations are made again; no image is drawn.

    Parameters
    ----------
    seeds : iterable of int
    design : ImageDesign

    Returns
    -------
    DataFrame
        A row per seed and finding: ``seed, finding, n_images`` (with a label, of all splits), ``wrong``
        (labels that are not the true ones), ``uncertain`` (those of them recorded as uncertain, and read as
        negative), ``wrong_elsewhere`` and ``uncertain_elsewhere`` (the same outside the group with planted
        noise).
    """
    rows = []
    for seed in seeds:
        truth = design.truth(seed)
        images, _ = cohort_rows(truth)
        elsewhere = images["race"] != truth.noise.group
        for finding in design.findings:
            codes = images[f"{finding}_recorded"]
            labels = resolve_labels(codes, POLICY)
            wrong = labels.notna() & (labels != images[f"{finding}_true"].astype("float64"))
            uncertain = wrong & (codes == UNCERTAIN)
            rows.append(
                {
                    "seed": seed,
                    "finding": _words(finding),
                    "n_images": int(labels.notna().sum()),
                    "wrong": int(wrong.sum()),
                    "uncertain": int(uncertain.sum()),
                    "wrong_elsewhere": int((wrong & elsewhere).sum()),
                    "uncertain_elsewhere": int((uncertain & elsewhere).sum()),
                }
            )
    return pd.DataFrame(rows)


def draw_images(images: pd.DataFrame) -> ShownFigure:
    """Observed and true differences beside the fair-model reference, a line per world.

    Parameters
    ----------
    images : DataFrame
        As for :func:`summary_by_unit`.

    Returns
    -------
    ShownFigure
        A panel per finding (rows) and attribute (columns).
    """
    attributes = list(dict.fromkeys(images["attribute"]))
    findings = list(dict.fromkeys(images["finding"]))
    seeds = sorted(set(images["seed"]))
    reach = images[["observed", "reference_hi", "truth_recorded", "truth_actual"]].max().max()
    lines: list[str] = []
    with style_sheet():
        figure = Figure(figsize=(WIDTH, 1.5 + (0.75 + 0.2 * len(seeds)) * len(findings)))
        panels = figure.subplots(len(findings), len(attributes), sharex=True, sharey=True, squeeze=False)
        for y, finding in enumerate(findings):
            for x, attribute in enumerate(attributes):
                axes = panels[y, x]
                own = images[(images["finding"] == finding) & (images["attribute"] == attribute)]
                for row in own.to_dict("records"):
                    lines.append(_draw(axes, len(seeds) - 1 - seeds.index(row["seed"]), row))
                planted = "; ".join(dict.fromkeys(own["planted"]))
                axes.set_title(planted, fontsize=SMALL, color=MUTED, loc="left", pad=3)
                axes.set_yticks(range(len(seeds)), [str(seed) for seed in reversed(seeds)])
                axes.set_ylim(-0.7, len(seeds) - 0.3)
                axes.set_xlim(0.0, 1.06 * float(reach))
                axes.xaxis.set_major_locator(MaxNLocator(3))
                axes.xaxis.grid(True)
                if x == 0:
                    axes.set_ylabel(_words(finding).replace(" ", "\n"), fontsize=SMALL)
                if y == len(findings) - 1:
                    axes.set_xlabel(f"by {attribute}")
        figure.supxlabel("Difference in AUROC; a line is a world, numbered by its seed", fontsize=SMALL)
        figure.legend(handles=_key(), loc="outside upper center", ncols=2, columnspacing=1.2)
    return show_figure(figure, "\n".join(lines))


def _draw(axes: Axes, height: float, row: dict[str, object]) -> str:
    """One world of one panel, and what it says in words."""
    value = {name: float(str(row[name])) for name in ("observed", "p", "truth_recorded", "truth_actual")}
    low, high = float(str(row["reference_lo"])), float(str(row["reference_hi"]))
    axes.plot([low, high], [height, height], color=MUTED, alpha=0.35, linewidth=7.0, solid_capstyle="butt")
    called = value["p"] <= _LEVEL
    axes.plot(
        [value["observed"]],
        [height],
        "o",
        color=_OBSERVED,
        markerfacecolor=_OBSERVED if called else "white",
        markeredgewidth=EDGE,
        markersize=6.5,
        clip_on=False,
    )
    axes.plot([value["truth_recorded"]], [height], "|", color=INK, markersize=13.0, markeredgewidth=2.0)
    axes.plot([value["truth_actual"]], [height], "x", color=_TRUE, markersize=6.5, markeredgewidth=2.0)
    return (
        f"{row['finding']} by {row['attribute']}, seed {row['seed']}: observed {written(value['observed'])} "
        f"(reference {written(low)} to {written(high)}; p {written(value['p'])}), "
        f"true {written(value['truth_recorded'])} for recorded and "
        f"{written(value['truth_actual'])} for true labels"
    )


def _key() -> list[Line2D | Patch]:
    """The legend's marks."""

    def mark(sign: str, name: str, colour: str, face: str, size: float) -> Line2D:
        return Line2D(
            [],
            [],
            marker=sign,
            linestyle="none",
            color=colour,
            markerfacecolor=face,
            markeredgewidth=EDGE if sign == "o" else 2.0,
            markersize=size,
            label=name,
        )

    return [
        mark("o", "observed, called different", _OBSERVED, _OBSERVED, 6.5),
        mark("o", "observed, not called", _OBSERVED, "white", 6.5),
        Patch(color=MUTED, alpha=0.35, linewidth=0, label="95 % range if exactly fair"),
        mark("|", "true, recorded labels", INK, INK, 12.0),
        mark("x", "true, true labels", _TRUE, _TRUE, 6.5),
    ]


def _as_fair(images: pd.DataFrame, kind: str) -> pd.Series:
    """Whether the truth is no larger than what an exactly fair head shows on as many images, in the mean."""
    return images[f"truth_{kind}"] <= images[f"truth_{kind}_reference"]


def _held(images: pd.DataFrame, kind: str) -> pd.Series:
    """Whether the interval holds the truth: yes, no, undecided, or empty."""
    told: pd.Series = images[f"holds_{kind}"]
    return told.mask((told == "yes") & (images["lo"] > 0) & _as_fair(images, kind), UNDECIDED)


def _fair(images: pd.DataFrame, kind: str) -> pd.Series:
    """Mean of the truth's own fair reference, and where the truth lies."""
    reference = images[f"truth_{kind}_reference"]
    side = _as_fair(images, kind).map({True: ", within", False: ", above"})
    return reference.map(written) + side.where(reference.notna() & images[f"truth_{kind}"].notna(), "")


def _words(finding: object) -> str:
    return str(finding).replace("_", " ")


def _signed(value: object) -> str:
    number = float(str(value))
    return written(number) if math.isnan(number) else signed(number)


def _ends(table: pd.DataFrame, low: str, high: str, write: Callable[[object], str] = written) -> pd.Series:
    """Two columns as one text."""
    return table[low].map(write) + " to " + table[high].map(write)

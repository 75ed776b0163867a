"""The idea in one picture: two published differences, each on the distribution of a fair model.

``python -m frame.figures.overview FILE.svg`` writes the picture of the README and of the book's first page.
The same numbers give the same file, byte for byte.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from frame.errors import InputError
from frame.figures.style import INK, MUTED, SMALL, TEXT, WIDTH, style_sheet
from frame.published import audit_claims
from frame.reference import FairReference, fair_reference
from frame.tables import load_table

__all__ = ["FairDifference", "describe", "draw", "main", "mass_in_bins", "overview_examples", "write"]

#: Colours of the fair model's distribution and of its part at or beyond the reported difference.
FAIR, BEYOND = "#a9bccd", "#c4501b"
TITLE = "Two published differences and what an exactly fair model would show"


@dataclass(frozen=True)
class FairDifference:
    """One published difference and the distribution of a fair model at its counts.

    Attributes
    ----------
    what, study : str
        What differs between whom, and who reported it on which data.
    observed, reference, p : float
        Reported difference, the fair model's mean, and how often it shows the reported difference or more.
    exceeds : bool
        The verdict within the published record.
    edges : tuple of float
        Edges of the bins, on the 0-1 scale, one more than there are bins.
    mass : tuple of float
        Probability of each bin, its lower edge included.
    discrete : bool
        Whether the fair model attains only the lower edges themselves.
    """

    what: str
    study: str
    observed: float
    reference: float
    p: float
    exceeds: bool
    edges: tuple[float, ...]
    mass: tuple[float, ...]
    discrete: bool


@dataclass(frozen=True)
class _Example:
    claim_id: str
    what: str
    study: str
    width: Fraction
    bins: int


_EXAMPLES = (
    _Example(
        "burlina-2021-04",
        "Sensitivity by skin tone, eye photographs",
        "Burlina 2021: two groups of {smallest} images with the disease",
        Fraction(1, 100),
        56,
    ),
    _Example(
        "glocker-2023-01",
        "AUROC by race, chest radiographs",
        "Glocker 2023, CheXpert: three groups, the smallest {smallest} images",
        Fraction(1, 1000),
        55,
    ),
)


def mass_in_bins(reference: FairReference, edges: Sequence[Fraction]) -> list[float]:
    """Probability that a fair model's difference falls into each bin.

    Parameters
    ----------
    reference : FairReference
        Of the protocol ``exact``.
    edges : sequence of Fraction
        Rising edges, at least two.

    Returns
    -------
    list of float
        ``P(edge <= G < next edge)``, computed without simulation.
    """
    tails = [reference.exceedance(edge) for edge in edges]
    return [here - beyond for here, beyond in pairwise(tails)]


def overview_examples() -> tuple[FairDifference, ...]:
    """Audit the published record and return the two differences of the picture, the exceeding one first."""
    claims = load_table("published_claims")
    audited = audit_claims(claims).set_index("claim_id")
    found = []
    for example in _EXAMPLES:
        row: Mapping[Any, Any] = audited.loc[example.claim_id].to_dict()
        counts = claims[claims["claim_id"] == example.claim_id]
        reference = fair_reference(
            float(row["overall"]),
            [int(count) for count in counts["n_positive"]],
            [int(count) for count in counts["n_negative"]],
            str(row["measure"]),
        )
        edges = [example.width * k for k in range(example.bins + 1)]
        found.append(
            FairDifference(
                what=example.what,
                study=example.study.format(smallest=f"{row['smallest_group']:,}"),
                observed=float(row["observed"]),
                reference=reference.mean,
                p=float(row["p"]),
                exceeds=bool(row["exceeds"]),
                edges=tuple(float(edge) for edge in edges),
                mass=tuple(mass_in_bins(reference, edges)),
                discrete=row["measure"] != "auroc",
            )
        )
    return tuple(found)


def describe(examples: Sequence[FairDifference]) -> str:
    """Say in words what the picture shows."""
    parts = [
        f"{example.what} ({example.study}): reported {example.observed:.3f}; a fair model shows "
        f"{example.reference:.3f} on average and the reported difference or more {_often(example.p)}; "
        f"{'exceeds' if example.exceeds else 'does not exceed'}."
        for example in examples
    ]
    return " ".join([*parts, "The distributions are computed from the printed counts, not simulated."])


def draw(examples: Sequence[FairDifference]) -> Figure:
    """Draw each difference on the distribution of its fair model, one below the other."""
    with style_sheet():
        figure = Figure(figsize=(WIDTH, 3.4 * len(examples) + 0.4))
        rows = figure.subplots(len(examples), 1, squeeze=False, gridspec_kw={"hspace": 0.1})
        for axes, example in zip(rows[:, 0], examples, strict=True):
            _draw_one(axes, example)
        figure.supxlabel(
            "Each distribution is computed from the counts that the study prints,\nnot simulated.",
            fontsize=SMALL,
            color=MUTED,
            x=0.02,
            ha="left",
        )
    return figure


def _draw_one(axes: Axes, example: FairDifference) -> None:
    low, mass = np.asarray(example.edges[:-1]), np.asarray(example.mass)
    width = example.edges[1] - example.edges[0]
    reached = low >= example.observed - 1e-9
    for chosen, colour in ((~reached, FAIR), (reached, BEYOND)):
        if example.discrete:
            axes.bar(low[chosen], mass[chosen], width=0.8 * width, color=colour, linewidth=0)
        elif chosen.any():
            axes.stairs(mass[chosen], [*low[chosen], low[chosen][-1] + width], color=colour, fill=True)
    top = float(mass.max())
    axes.axvline(example.observed, ymax=0.97, color=INK, linewidth=2.2)
    axes.set_title(example.what, loc="left", fontweight="bold", fontsize=TEXT, pad=24)
    axes.text(0, 1.035, example.study, transform=axes.transAxes, fontsize=SMALL, color=MUTED)
    axes.set_xlim(-0.6 * width if example.discrete else 0, example.edges[-1])
    axes.set_ylim(0, 1.13 * top)
    axes.yaxis.set_visible(False)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("Difference between the best and the worst group", fontsize=SMALL)

    # The words stand on the side of the line where there is room, the verdict below them.
    late = example.observed > 0.5 * example.edges[-1]
    at, side, gap = (example.observed, "right", -8) if late else (0.48 * example.edges[-1], "left", 0)
    verdict = "exceeds" if example.exceeds else "does not exceed"
    for x, y, text, colour, shift, weight in (
        (example.observed, 1.06, f"Reported: {example.observed:.3f}", INK, -8 if late else 8, "bold"),
        (at, 0.86, f"A fair model shows this\nor more {_often(example.p)}.", BEYOND, gap, "normal"),
        (at, 0.60, f"Verdict: {verdict}", BEYOND, gap, "bold"),
    ):
        axes.annotate(
            text,
            (x, y * top),
            xytext=(shift, 0),
            textcoords="offset points",
            ha=side,
            va="center",
            fontsize=TEXT if weight == "bold" else SMALL,
            fontweight=weight,
            color=colour,
        )
    axes.text(
        0.3 if late else 0.62,
        0.26,
        f"a fair model:\n{example.reference:.3f} on average",
        transform=axes.transAxes,
        fontsize=SMALL,
        color=MUTED,
    )


def _often(p: float) -> str:
    return "practically never" if p < 1e-6 else f"in {100 * p:.0f} of 100 evaluations"


def write(path: Path) -> None:
    """Write the picture as SVG.

    Parameters
    ----------
    path : Path
        A file ending in ``.svg`` in an existing folder.

    Raises
    ------
    frame.InputError
        If the name has another ending or the folder is not there.
    """
    if path.suffix != ".svg" or not path.parent.is_dir():
        raise InputError(
            f"The picture is written to a file ending in .svg in an existing folder, not to {path}."
        )
    examples = overview_examples()
    figure = draw(examples)
    with style_sheet():  # the salt of the ids inside the file is a setting, too
        figure.savefig(
            path,
            format="svg",
            metadata={"Title": TITLE, "Description": describe(examples), "Date": None, "Creator": None},
        )


def main(arguments: Sequence[str]) -> int:
    """Write the picture to the one path given; 0 when it was written, 2 with a sentence when not."""
    if len(arguments) != 1:
        print("Give one file: python -m frame.figures.overview FILE.svg", file=sys.stderr)
        return 2
    try:
        write(Path(arguments[0]))
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

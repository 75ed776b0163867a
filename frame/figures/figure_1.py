"""Figure 1: the two steps in pictures, drawn by code from counts.

The counts are those that the paper prints for cardiomegaly, and the reference is computed from them. The
image is a phantom, drawn by a program, and the two dimensions of the second step are made up for the eye.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from frame.figures.overview import mass_in_bins
from frame.figures.style import GRID, INK, MUTED, SMALL, TEXT, WIDTH, new_axes, style_sheet
from frame.presentation import ShownFigure, show_figure
from frame.reference import FairReference, fair_reference
from frame.tables import load_table

if TYPE_CHECKING:
    from frame.cohorts.phantom.truth import PhantomTruth

__all__ = [
    "SENSITIVITY",
    "Planar",
    "fair_sensitivities",
    "panel_a",
    "panel_b",
    "panel_c",
    "phantom_image",
    "planar_example",
    "printed_positives",
]

#: Overall sensitivity of the fair model, that at which the paper sets its thresholds.
SENSITIVITY: Final = 0.80
#: Levels of race as the ids of ``paper_numbers.csv`` name them, and in words.
_RACES: Final = {
    "white": "White",
    "other": "Other",
    "black": "Black",
    "asian": "Asian",
    "hispanic": "Hispanic or Latino",
}
_FAIR, _BEYOND, _BAR = "#a9bccd", "#c4501b", "#4a90c8"
#: Width of a bin of the reference, and the share of the distribution left of its tail.
_BIN: Final = Fraction(1, 400)
_TAIL: Final = 0.05
#: Pixels a side of the phantom: four times what the study reads.
_SIDE: Final = 256
_STATES: Final = ("as they are", "decodability", "entanglement")


def printed_positives() -> pd.DataFrame:
    """Test radiographs with cardiomegaly by race, as printed: ``race, n_positive``, the most first."""
    printed = load_table("paper_numbers").set_index("id")["value"]
    counts = [int(str(printed[f"cardiomegaly_pos_{name}"]).replace(",", "")) for name in _RACES]
    table = pd.DataFrame({"race": list(_RACES.values()), "n_positive": counts})
    return table.sort_values("n_positive", ascending=False).reset_index(drop=True)


def fair_sensitivities(counts: pd.DataFrame) -> FairReference:
    """What a model with the same sensitivity in every group shows at these counts.

    Parameters
    ----------
    counts : pandas.DataFrame
        From :func:`printed_positives`.

    Returns
    -------
    FairReference
        Of the largest minus the smallest sensitivity; it needs positives only, which is what is printed.
    """
    positives = counts["n_positive"].tolist()
    return fair_reference(SENSITIVITY, positives, [0] * len(positives), "tpr")


def phantom_image(truth: PhantomTruth, side: int = _SIDE) -> NDArray[np.uint8]:
    """A drawn chest radiograph with a large heart, shape (side, side), grey."""
    from frame.cohorts.phantom.drawing import drawing_table, pictures
    from frame.cohorts.phantom.population import population

    source = "nih_cxr14"
    images = population(truth, source)
    chosen = images[images["cardiomegaly_true"].astype(bool) & (images["view"] == "PA")].iloc[:1]
    found: NDArray[np.uint8] = pictures(drawing_table(truth, chosen), source, side)[0]
    return found


def panel_a(image: NDArray[np.uint8], counts: pd.DataFrame) -> ShownFigure:
    """What is audited: an image, and how many positives every group has.

    Parameters
    ----------
    image : numpy.ndarray of uint8, shape (side, side)
        A phantom, or an image of one's own.
    counts : pandas.DataFrame
        ``race, n_positive``.

    Returns
    -------
    ShownFigure
    """
    with style_sheet():
        figure = Figure(figsize=(WIDTH, 3.4))
        left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.25))
        left.imshow(image, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        left.set_xticks([])
        left.set_yticks([])
        left.set_title("Phantom, drawn", fontsize=SMALL, color=INK)
        places = np.arange(len(counts))
        right.barh(places, counts["n_positive"], height=0.66, color=_BAR, zorder=2)
        for place, n in zip(places, counts["n_positive"], strict=True):
            right.text(n + 120, place, f"{n:,}", va="center", fontsize=SMALL, color=INK)
        right.set_yticks(places, [str(one).replace(" or ", " or\n") for one in counts["race"]])
        right.set_ylim(len(counts) - 0.5, -0.5)
        right.set_xlim(0, 1.32 * counts["n_positive"].max())
        right.set_xticks([])
        right.tick_params(axis="y", length=0)
        right.spines["bottom"].set_visible(False)
        right.set_title("Positives, printed", fontsize=SMALL, color=INK)
    said = ", ".join(f"{row.race} {row.n_positive:,}" for row in counts.itertuples())
    side = image.shape[0]
    return show_figure(
        figure,
        f"Figure 1a. A phantom of {side} by {side} pixels with cardiomegaly, drawn by a program, and the "
        f"printed numbers of test radiographs with cardiomegaly: {said}.",
    )


def panel_b(counts: pd.DataFrame) -> ShownFigure:
    """Step one: the distribution of the difference that an exactly fair model shows at the counts.

    Parameters
    ----------
    counts : pandas.DataFrame
        From :func:`printed_positives`.

    Returns
    -------
    ShownFigure
    """
    reference = fair_sensitivities(counts)
    edges = [_BIN * k for k in range(61)]
    mass = np.asarray(mass_in_bins(reference, edges))
    tail = next(k for k, edge in enumerate(edges) if reference.exceedance(edge) <= _TAIL)
    beyond, centre = reference.exceedance(edges[tail]), reference.mean
    last = int(np.flatnonzero(mass > 1e-4)[-1]) + 2
    colours = [_BEYOND if k >= tail else _FAIR for k in range(len(mass))]
    with style_sheet():
        figure, axes = new_axes(3.8, grid="y")
        axes.bar(
            [float(edge) for edge in edges[:last]],
            100 * mass[:last],
            width=float(_BIN),
            align="edge",
            color=colours[:last],
            edgecolor="white",
            linewidth=0.5,
            zorder=2,
        )
        axes.axvline(centre, color=INK, linewidth=1.6, linestyle=(0, (5, 2)), zorder=3)
        axes.text(centre, 0.97, " reference", transform=axes.get_xaxis_transform(), va="top", fontsize=SMALL)
        axes.set_xlim(left=0.0)
        axes.set_xticks([0.02, 0.04, 0.06, 0.08])
        axes.set_xlabel("Largest minus smallest sensitivity")
        axes.set_ylabel("Fair models (%)")
        figure.legend(
            handles=[
                Patch(color=_FAIR, label="fair models"),
                Patch(color=_BEYOND, label=f"from {float(edges[tail]):.4g}: {100 * beyond:.1f} %"),
            ],
            loc="outside lower center",
            ncols=2,
        )
    low, high = reference.interval
    return show_figure(
        figure,
        f"Figure 1b. Difference of a model with sensitivity {SENSITIVITY:.2f} in all {len(counts)} groups at "
        f"the printed counts: {centre:.4f} on average, 95 % between {low:.4f} and {high:.4f}; "
        f"{100 * beyond:.1f} % of such models show {float(edges[tail]):.4g} or more.",
    )


@dataclass(frozen=True, eq=False)
class Planar:
    """Features of two dimensions under both operators.

    Attributes
    ----------
    states : dict of str to ndarray of float64, shape (n, 2)
        ``as they are``, ``decodability`` and ``entanglement``.
    labels : ndarray of int8
        1 with the disease.
    signs : ndarray of int8
        +1 in the larger group.
    aurocs : dict of str to tuple of float
        Of a head fitted in each state: within the larger and within the smaller group.
    """

    states: dict[str, NDArray[np.float64]]
    labels: NDArray[np.int8]
    signs: NDArray[np.int8]
    aurocs: dict[str, tuple[float, float]]


def planar_example(n: int = 240, seed: int = 0) -> Planar:
    """Points with the disease along one axis and nothing along the other, changed by both operators.

    Parameters
    ----------
    n : int
        Points; a third are of the smaller group.
    seed : int

    Returns
    -------
    Planar
    """
    from frame.heads.disease_heads import fit_head
    from frame.interventions.disease_subspace import disease_subspace
    from frame.interventions.operators import decodability_operator, entanglement_operator
    from frame.measures.values import measure_value

    rng = np.random.default_rng(seed)
    labels = (np.arange(n) % 2).astype(np.int8)
    signs = np.where(np.arange(n) % 3 == 0, -1, 1).astype(np.int8)
    features = rng.normal(size=(n, 2)) * (0.9, 0.8)
    features[:, 0] += 1.1 * (2 * labels - 1)
    subspace = disease_subspace(features, labels, 1)
    apart = decodability_operator(features, None, signs, subspace.basis[:, 0], seed=seed)
    taken = entanglement_operator(subspace, [1])
    states = {
        _STATES[0]: features,
        _STATES[1]: apart.apply(features, signs, 1.0),
        _STATES[2]: taken.apply(features, signs, 1),
    }
    aurocs = {}
    for name, points in states.items():
        scores = fit_head(points, labels).logit(points)
        within = [
            float(measure_value("auroc", scores[signs == sign], labels[signs == sign])) for sign in (1, -1)
        ]
        aurocs[name] = (within[0], within[1])
    return Planar(states, labels, signs, aurocs)


def panel_c(example: Planar) -> ShownFigure:
    """Step two: what each operator does to points of two groups.

    Parameters
    ----------
    example : Planar
        From :func:`planar_example`.

    Returns
    -------
    ShownFigure
    """
    with style_sheet():
        figure = Figure(figsize=(WIDTH, 8.6))
        parts = figure.subplots(3, 1, sharex=True, sharey=True)
        for axes, name in zip(parts, _STATES, strict=True):
            _scatter(axes, example, name)
        parts[-1].set_xlabel("Along the disease direction")
        figure.legend(
            handles=[
                Line2D([], [], label=words, **_look(sign, label))
                for label, disease in ((1, "disease"), (0, "none"))
                for sign, words in ((1, f"larger group, {disease}"), (-1, f"smaller group, {disease}"))
            ],
            loc="outside lower center",
            ncols=2,
        )
    said = "; ".join(
        f"{name}: AUROC {larger:.3f} in the larger and {smaller:.3f} in the smaller group, difference "
        f"{abs(larger - smaller):.3f}"
        for name, (larger, smaller) in example.aurocs.items()
    )
    return show_figure(figure, f"Figure 1c. Made-up points in two dimensions. {said}.")


def _scatter(axes: Axes, example: Planar, name: str) -> None:
    points = example.states[name]
    for label in (0, 1):
        for sign in (1, -1):
            own = (example.labels == label) & (example.signs == sign)
            axes.plot(points[own, 0], points[own, 1], clip_on=False, zorder=2 - sign, **_look(sign, label))
    larger, smaller = example.aurocs[name]
    axes.set_title(
        f"{name.capitalize()}: difference {abs(larger - smaller):.2f}", loc="left", fontsize=TEXT, color=INK
    )
    axes.grid(True, color=GRID)
    axes.set_ylabel("Across it")


def _look(sign: int, label: int) -> dict[str, Any]:
    colour = MUTED if sign > 0 else _BEYOND
    return {
        "linestyle": "none",
        "marker": "o" if sign > 0 else "^",
        "markersize": 5.5,
        "markerfacecolor": colour if label else "white",
        "markeredgecolor": colour,
        "markeredgewidth": 1.2,
    }

"""The look of every figure: one style sheet, one colour and marker per imaging modality.

A figure is about as wide as a column of the book and is scaled down to a phone's width, so its text is large:
13 points at 6.2 inches, and never below 11.5. A **filled** mark exceeds its fair-model reference, an **open**
one does not, in whatever shape it comes. Colours are never the only carrier of a meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

__all__ = [
    "EDGE",
    "GRID",
    "INK",
    "MODALITIES",
    "MUTED",
    "SMALL",
    "TEXT",
    "WIDTH",
    "Look",
    "draw_claims",
    "look_of",
    "modality_key",
    "new_axes",
    "style_sheet",
]

#: Width of a figure in inches.
WIDTH = 6.2
#: Sizes of text in points.
TEXT, SMALL = 13.0, 11.5
#: Colours of text and axes, of what stands back, and of lines to read values by.
INK, MUTED, GRID = "#1f2328", "#5c6670", "#d9dee3"
#: Edge of a mark, in points.
EDGE = 1.4


@dataclass(frozen=True)
class Look:
    """How one imaging modality is drawn.

    Attributes
    ----------
    name : str
        Its name on a figure.
    colour : str
        Hexadecimal colour, at least 3:1 against white, and distinct from the others to a colour-blind eye.
    marker : str
        matplotlib's sign for the marker.
    """

    name: str
    colour: str
    marker: str


#: By the modality as the claims name it, in the order of the paper's Figure 9.
MODALITIES = {
    "chest radiograph": Look("Chest radiograph", "#0a6cb5", "o"),
    "dermatology": Look("Dermatology", "#c98600", "s"),
    "computational pathology": Look("Pathology", "#d4589f", "^"),
    "funduscopy": Look("Funduscopy", "#8c1c13", "D"),
    "mammography": Look("Mammography", "#009e73", "v"),
    "abdominal CT": Look("Abdominal CT", "#444a52", "P"),
}

_STYLE: dict[str, object] = {
    "axes.axisbelow": True,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.labelsize": TEXT,
    "axes.linewidth": 0.9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "figure.dpi": 100,
    "figure.facecolor": "white",
    "font.family": ["DejaVu Sans"],  # comes with matplotlib, so the text is the same everywhere
    "font.size": TEXT,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "hatch.color": MUTED,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "savefig.facecolor": "white",
    "svg.fonttype": "path",
    "svg.hashsalt": "frame",
    "text.color": INK,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "xtick.labelsize": SMALL,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "ytick.labelsize": SMALL,
}


@contextmanager
def style_sheet() -> Iterator[None]:
    """Draw with the project's style sheet, whatever the reader's own settings are."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(cast("Any", _STYLE))
        yield


def new_axes(height: float, *, grid: str = "both") -> tuple[Figure, Axes]:
    """Make a figure of the usual width with one pair of axes; call it within :func:`style_sheet`.

    Parameters
    ----------
    height : float
        In inches.
    grid : {"both", "x", "y"}
        Which values have lines to read them by.

    Returns
    -------
    tuple of Figure and Axes
        Not registered with pyplot, so that a notebook shows it once and it is freed afterwards.
    """
    figure = Figure(figsize=(WIDTH, height))
    axes = figure.add_subplot()
    if grid in ("both", "x"):
        axes.xaxis.grid(True)
    if grid in ("both", "y"):
        axes.yaxis.grid(True)
    return figure, axes


def look_of(modality: str) -> Look:
    """The look of a modality; a KeyError names one that has none."""
    return MODALITIES[modality]


def draw_claims(
    axes: Axes, x: Sequence[float], y: Sequence[float], modality: str, exceeds: bool, *, size: float = 7.0
) -> Line2D:
    """Draw claims of one modality that all exceed their reference, or all do not.

    Parameters
    ----------
    axes : Axes
        Where to draw.
    x, y : sequence of float
        One entry per claim.
    modality : str
        Decides colour and marker.
    exceeds : bool
        Filled or open.
    size : float
        Of a mark, in points.

    Returns
    -------
    Line2D
        The marks.
    """
    look = look_of(modality)
    (marks,) = axes.plot(
        x,
        y,
        linestyle="none",
        marker=look.marker,
        markersize=size,
        markerfacecolor=look.colour if exceeds else "white",
        markeredgecolor=look.colour,
        markeredgewidth=EDGE,
        alpha=0.9,
        zorder=3,
        clip_on=False,
    )
    return marks


def modality_key(figure: Figure, modalities: Iterable[str]) -> None:
    """Write below a figure which mark is which modality, and what filled and open mean.

    Parameters
    ----------
    figure : Figure
        The figure, made by :func:`new_axes`.
    modalities : iterable of str
        The modalities that it shows; repetitions do no harm.
    """
    present = set(modalities)
    shown = [look for name, look in MODALITIES.items() if name in present]
    entries = [(look.name, look.marker, look.colour, look.colour) for look in shown]
    entries += [("filled: exceeds", "o", MUTED, MUTED), ("open: does not", "o", MUTED, "white")]
    handles = [
        Line2D(
            [],
            [],
            linestyle="none",
            marker=marker,
            markersize=7.5,
            markeredgecolor=edge,
            markerfacecolor=face,
            markeredgewidth=EDGE,
            label=label,
        )
        for label, marker, edge, face in entries
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, columnspacing=1.2, handletextpad=0.3)

"""Thin curved lines: vessels, hairs, catheters.

A line is a row of Gaussian spots. A line narrower than half a pixel is drawn half a pixel wide and fainter by
the same factor, so that it carries the same total at every image size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from frame.cohorts.phantom.grain import Frame, Plane

__all__ = ["Arcs", "Numbers", "Points", "Whole", "draw_points", "draw_stack", "joined", "sample_arcs"]

_SQRT_TWO_PI: Final = 2.5066282746310002

#: Numbers for the points or arcs of a drawing.
Numbers = NDArray[np.float64]
#: Numbers of lines or images.
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Arcs:
    """Curved lines, one a row.

    Attributes
    ----------
    x, y : numpy.ndarray, shape (n,)
        Where each line starts.
    angle : numpy.ndarray, shape (n,)
        Direction at the start, radians, 0 to the right and turning clockwise on the screen.
    length : numpy.ndarray, shape (n,)
        Length, half widths of the image.
    bend : numpy.ndarray, shape (n,)
        Turn over the whole length, radians.
    width : numpy.ndarray, shape (n,)
        Standard deviation of the profile at the start.
    taper : numpy.ndarray, shape (n,)
        Share of the width lost at the end, 0 to 1.
    strength : numpy.ndarray, shape (n,)
        Peak value at the start.
    fade : numpy.ndarray, shape (n,)
        Share of the strength lost at the end, 0 to 1.
    """

    x: Numbers
    y: Numbers
    angle: Numbers
    length: Numbers
    bend: Numbers
    width: Numbers
    taper: Numbers
    strength: Numbers
    fade: Numbers

    def at(self, share: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Place and direction of each line at a share of its length.

        Parameters
        ----------
        share : numpy.ndarray, shape (n, k)
            0 (start) to 1 (end).

        Returns
        -------
        x, y, angle : numpy.ndarray, shape (n, k)
            Coordinates and radians.
        """
        bend, angle = self.bend[:, None], self.angle[:, None]
        chord = angle + 0.5 * bend * share
        reach = self.length[:, None] * share
        return (
            self.x[:, None] + reach * np.cos(chord),
            self.y[:, None] + reach * np.sin(chord),
            angle + bend * share,
        )


@dataclass(frozen=True)
class Points:
    """Spots along lines; all arrays have the shape (n,).

    Attributes
    ----------
    line : numpy.ndarray of int64
        Number of the line that each point belongs to.
    x, y : numpy.ndarray
        Places in the frame.
    width : numpy.ndarray
        Standard deviation of the line there, positive, half widths of the image.
    strength : numpy.ndarray
        Peak value of the line times the length that the point stands for.
    """

    line: Whole
    x: Numbers
    y: Numbers
    width: Numbers
    strength: Numbers

    def of(self, lines: NDArray[np.bool_]) -> Points:
        """The points of some lines; ``lines`` says of each line whether it is wanted."""
        kept = lines[self.line]
        return Points(self.line[kept], self.x[kept], self.y[kept], self.width[kept], self.strength[kept])


def sample_arcs(arcs: Arcs, frame: Frame) -> Points:
    """Points along lines, dense enough for the pixel size.

    Parameters
    ----------
    arcs : Arcs
        The lines.
    frame : Frame
        Gives the pixel width.

    Returns
    -------
    Points
        One a pixel of length, line after line; those of a line do not depend on the other lines.
    """
    counts = np.maximum(3, np.ceil(arcs.length * (1.0 / frame.pixel))).astype(np.int64)
    line = np.repeat(np.arange(len(counts)), counts)
    share = (np.arange(len(line)) - np.repeat(np.cumsum(counts) - counts, counts) + 0.5) / counts[line]
    bend, angle, length = arcs.bend[line], arcs.angle[line], arcs.length[line]
    # The chord of an arc lies at the mean of the two directions. Single precision is much faster here.
    chord = (angle + (0.5 * bend) * share).astype(np.float32)
    reach = length * share
    x = arcs.x[line] + reach * np.cos(chord)
    y = arcs.y[line] + reach * np.sin(chord)
    width = arcs.width[line] * (1.0 - arcs.taper[line] * share)
    strength = (arcs.strength / counts * arcs.length)[line] * (1.0 - arcs.fade[line] * share)
    return Points(line, x, y, width, strength)


def joined(parts: Sequence[Points]) -> Points:
    """Points of several sets of lines, one set after the other; numbers of lines stay as they are."""
    return Points(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("line", "x", "y", "width", "strength")
        )
    )


def draw_points(frame: Frame, points: Points) -> Plane:
    """Sum of Gaussian spots at points of lines, in one image.

    Parameters
    ----------
    frame : Frame
        Where to draw.
    points : Points
        Those off the frame are left out.

    Returns
    -------
    numpy.ndarray of float32, shape (side, side)
        The lines; crossing lines add up.
    """
    (drawn,) = draw_stack(frame, points, np.zeros(len(points.x), dtype=np.int64), 1)
    return np.asarray(drawn)


def draw_stack(frame: Frame, points: Points, image: Whole, n_images: int) -> Plane:
    """Sum of Gaussian spots at points of lines, in several images.

    Parameters
    ----------
    frame : Frame
        Where to draw.
    points : Points
        Those off the frame are left out.
    image : numpy.ndarray of int64, shape (n,)
        Number of the image that each point is drawn in, from 0.
    n_images : int
        Images.

    Returns
    -------
    numpy.ndarray of float32, shape (n_images, side, side)
        The lines; an image's do not depend on the other images.
    """
    side = frame.side
    sigma = np.sqrt(np.square(points.width) + (0.5 * frame.pixel) ** 2)
    # A line of spots of total m a length has the peak m / (sigma sqrt(2 pi)); width / sigma keeps the total.
    weight = points.strength * points.width / (np.square(sigma) * _SQRT_TWO_PI)
    column = (points.x + 1.0) * (1.0 / frame.pixel) - 0.5
    row = (points.y + 1.0) * (1.0 / frame.pixel) - 0.5
    spread = sigma * (1.0 / frame.pixel)
    reach = np.maximum(2, np.ceil(2.3 * spread)).astype(np.int64)
    seen = (column > -reach) & (column < side - 1 + reach) & (row > -reach) & (row < side - 1 + reach)
    total = np.zeros((n_images, side, side), dtype=np.float32)
    # Spots of a size together, so that a spot does not depend on its neighbours' size.
    for size in np.unique(reach[seen]):
        there = np.flatnonzero(seen & (reach == size))
        window = int(size)
        total += _spots(
            side, window, column[there], row[there], weight[there], spread[there], image[there], n_images
        )
    return total


def _spots(
    side: int,
    reach: int,
    column: Numbers,
    row: Numbers,
    weight: Numbers,
    spread: Numbers,
    image: Whole,
    n_images: int,
) -> Plane:
    """Spots in windows of twice the reach; places, widths and heights in pixels."""
    first_column, first_row = np.floor(column), np.floor(row)
    offsets = np.arange(1 - reach, 1 + reach)[:, None]
    scale = (-0.5 / np.square(spread)).astype(np.float32)
    across = np.exp(np.square((offsets - (column - first_column)).astype(np.float32)) * scale)
    down = np.exp(np.square((offsets - (row - first_row)).astype(np.float32)) * scale)
    down *= weight.astype(np.float32)
    margin = 2 * reach + 1
    wide = side + 2 * margin
    corner = (
        (image * wide + first_row.astype(np.int64) + margin) * wide + first_column.astype(np.int64) + margin
    )
    index = corner + (offsets * wide)[:, None] + offsets
    spots = down[:, None, :] * across
    total = np.bincount(index.ravel(), weights=spots.ravel(), minlength=n_images * wide * wide)
    return total.reshape(n_images, wide, wide)[:, margin:-margin, margin:-margin].astype(np.float32)

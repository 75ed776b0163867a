"""Thin curved lines: vessels, hairs, catheters.

A line is a row of Gaussian spots. A line narrower than half a pixel is drawn half a pixel wide and fainter by
the same factor, so that it carries the same total at every image size.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np
from numpy.typing import NDArray

from frame.cohorts.phantom.grain import Frame, Plane

__all__ = ["Arcs", "Numbers", "draw_points", "sample_arcs"]

_SQRT_TWO_PI: Final = 2.5066282746310002

#: Numbers for the points or arcs of a drawing.
Numbers = NDArray[np.float64]


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


def sample_arcs(arcs: Arcs, frame: Frame) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Points along lines, dense enough for the pixel size.

    Parameters
    ----------
    arcs : Arcs
        The lines.
    frame : Frame
        Gives the pixel width.

    Returns
    -------
    x, y, width, strength : numpy.ndarray, shape (n, k)
        Place of each point, width of the line there, and the strength times the length between points.
    """
    k = max(3, ceil(float(arcs.length.max()) / frame.pixel))
    share = ((np.arange(k) + 0.5) / k)[None, :]
    bend, angle, length = arcs.bend[:, None], arcs.angle[:, None], arcs.length[:, None]
    # The chord of an arc lies at the mean of the two directions. Single precision is much faster here.
    chord = (angle + (0.5 * bend) * share).astype(np.float32)
    reach = length * share
    x = arcs.x[:, None] + reach * np.cos(chord)
    y = arcs.y[:, None] + reach * np.sin(chord)
    width = arcs.width[:, None] * (1.0 - arcs.taper[:, None] * share)
    strength = (arcs.strength / k * arcs.length)[:, None] * (1.0 - arcs.fade[:, None] * share)
    return x, y, width, strength


def draw_points(frame: Frame, x: Numbers, y: Numbers, width: Numbers, strength: Numbers) -> Plane:
    """Sum of Gaussian spots at points of lines.

    Parameters
    ----------
    frame : Frame
        Where to draw.
    x, y : numpy.ndarray
        Places of the points; those off the frame are left out.
    width : numpy.ndarray
        Standard deviations, positive, half widths of the image.
    strength : numpy.ndarray
        Peak value of the line times the length that a point stands for.

    Returns
    -------
    numpy.ndarray of float32, shape (side, side)
        The lines; crossing lines add up.
    """
    side = frame.side
    sigma = np.sqrt(np.square(width) + (0.5 * frame.pixel) ** 2)
    # A line of spots of total m a length has the peak m / (sigma sqrt(2 pi)); width / sigma keeps the total.
    weight = (strength * width / (np.square(sigma) * _SQRT_TWO_PI)).ravel()
    column = ((x + 1.0) / frame.pixel - 0.5).ravel()
    row = ((y + 1.0) / frame.pixel - 0.5).ravel()
    spread = (sigma / frame.pixel).ravel()
    reach = max(2, ceil(2.3 * float(spread.max())))
    seen = (column > -reach) & (column < side - 1 + reach) & (row > -reach) & (row < side - 1 + reach)
    if not bool(seen.any()):
        return np.zeros((side, side), dtype=np.float32)
    column, row, weight, spread = column[seen], row[seen], weight[seen], spread[seen]
    offsets = np.arange(1 - reach, 1 + reach, dtype=np.int32)[:, None]
    columns = np.floor(column).astype(np.int32) + offsets
    rows = np.floor(row).astype(np.int32) + offsets
    scale = -0.5 / np.square(spread)
    across = np.exp(np.square(columns - column) * scale)
    down = np.exp(np.square(rows - row) * scale) * weight
    margin = 2 * reach + 1
    wide = side + 2 * margin
    index = ((rows + margin) * wide)[:, None, :] + (columns + margin)
    spots = down[:, None, :] * across
    total = np.bincount(index.ravel(), weights=spots.ravel(), minlength=wide * wide)
    return np.ascontiguousarray(total.reshape(wide, wide)[margin:-margin, margin:-margin], dtype=np.float32)

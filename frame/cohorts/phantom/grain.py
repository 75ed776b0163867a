"""What every picture is made of: a frame of coordinates, soft edges, smooth fields, noise and the last check.

Lengths are in half widths of the image: the frame runs from -1 (left, top) to 1 (right, bottom), whatever the
number of pixels, so that one table gives the same anatomy at every size. All arithmetic is element by element
in single precision on arrays of one image, which makes an image's bytes independent of the batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import floor
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from frame.cohorts.phantom.truth import SIDES
from frame.errors import InputError

__all__ = [
    "SIDES",
    "DrawingDefect",
    "Frame",
    "Plane",
    "as_bytes",
    "blurred",
    "bounded",
    "check_images",
    "make_frame",
    "smooth_field",
    "soft_shoulder",
    "soft_step",
    "window_at",
]

#: Numbers of an image or a stack of images, shape (side, side) or (n, side, side), float32 (the stubs of
#: numpy widen float32 times float).
Plane = NDArray[Any]

#: Standard deviation of an unscaled cubic B-spline field with independent standard normal coefficients.
_SPLINE_DEVIATION: Final = 151 / 315


class DrawingDefect(RuntimeError):
    """A drawn image that must not be written: constant, or with values that are no numbers.

    This is a fault of the drawing code or of a table row that passed the checks, never of the reader.
    """


@dataclass(frozen=True)
class Frame:
    """The pixel centres of a square image.

    Attributes
    ----------
    side : int
        Pixels a side.
    x, y : numpy.ndarray of float32, shape (side, side)
        Coordinates, x to the right and y down, -1 to 1.
    pixel : float
        Width of a pixel, 2 / side.
    """

    side: int
    x: Plane
    y: Plane
    pixel: float

    @property
    def softness(self) -> float:
        """The narrowest soft edge, .55 pixel: the anti-aliasing."""
        return 0.55 * self.pixel


@lru_cache(maxsize=8)
def make_frame(side: int) -> Frame:
    """The frame of an image; its arrays are read-only.

    Parameters
    ----------
    side : int
        Pixels a side, within :data:`SIDES`.

    Returns
    -------
    Frame
        Coordinates of the pixel centres.

    Raises
    ------
    frame.InputError
        If the side is outside :data:`SIDES`.
    """
    if isinstance(side, bool) or not isinstance(side, int | np.integer) or not SIDES[0] <= side <= SIDES[1]:
        raise InputError(
            f"side is {side!r}; it must be a whole number of pixels from {SIDES[0]} to {SIDES[1]}."
        )
    centres = ((np.arange(side) + 0.5) * (2.0 / side) - 1.0).astype(np.float32)
    x = np.ascontiguousarray(np.broadcast_to(centres, (side, side)))
    y = np.ascontiguousarray(x.T)
    x.setflags(write=False)
    y.setflags(write=False)
    return Frame(int(side), x, y, 2.0 / side)


def soft_step(distance: Plane, width: float | Plane) -> Plane:
    """A soft edge: 0 where the distance is far below 0, 1 far above, 1/2 at 0.

    Parameters
    ----------
    distance : numpy.ndarray of float32
        Signed distance from the edge, positive inside.
    width : float or numpy.ndarray of float32
        Half width of the transition; at least :attr:`Frame.softness` looks smooth.

    Returns
    -------
    numpy.ndarray of float32
        0.5 (1 + tanh(distance / width)).
    """
    step: Plane = distance * (1.0 / width)
    np.tanh(step, out=step)
    step += 1.0
    step *= 0.5
    return step


def bounded(values: list[float], bound: float = 2.2) -> list[float]:
    """Cut numbers off at a bound on both sides.

    Parameters
    ----------
    values : list of float
        Standard normal numbers.
    bound : float, default 2.2
        Largest absolute value.

    Returns
    -------
    list of float
        Within the bound, so that no anatomy is out of proportion.
    """
    return [min(max(value, -bound), bound) for value in values]


def soft_shoulder(values: Plane, knee: float) -> Plane:
    """Bend values above a knee so that they approach 1 instead of being cut off at it.

    Parameters
    ----------
    values : numpy.ndarray of float32
        Grey values, not negative.
    knee : float
        Where bending starts, in (0, 1).

    Returns
    -------
    numpy.ndarray of float32
        Unchanged below the knee, below 1 above it.
    """
    room = 1.0 - knee
    above = np.maximum(values - knee, 0.0)
    return np.minimum(values, knee) + room * (1.0 - np.exp(above * (-1.0 / room)))


def smooth_field(random: np.random.Generator, frame: Frame, cells: int) -> Plane:
    """A smooth random field, the same at every image size.

    A cubic B-spline surface with independent standard normal coefficients on a grid of cells, scaled to unit
    variance on average.

    Parameters
    ----------
    random : numpy.random.Generator
        Source of (cells + 3)**2 numbers.
    frame : Frame
        Where the field is evaluated.
    cells : int
        Cells a side; the length of correlation is about one cell, 2 / cells.

    Returns
    -------
    numpy.ndarray of float32, shape (side, side)
        Mean 0, variance about 1 over fields.
    """
    coefficients = random.standard_normal((cells + 3, cells + 3), dtype=np.float32)
    weights, turned = _spline_weights(frame.side, cells)
    return (weights @ coefficients) @ turned


@lru_cache(maxsize=64)
def _spline_weights(side: int, cells: int) -> tuple[Plane, Plane]:
    """Values of the cubic B-splines at pixel centres, shape (side, cells + 3), scaled, and the transpose."""
    position = (np.arange(side) + 0.5) / side * cells
    cell = np.minimum(position.astype(np.intp), cells - 1)
    t = position - cell
    taps = np.stack([(1 - t) ** 3, 3 * t**3 - 6 * t**2 + 4, -3 * t**3 + 3 * t**2 + 3 * t + 1, t**3]) / 6
    weights = np.zeros((side, cells + 3), dtype=np.float32)
    for tap in range(4):
        weights[np.arange(side), cell + tap] = taps[tap] / _SPLINE_DEVIATION**0.5
    turned = np.ascontiguousarray(weights.T)
    weights.setflags(write=False)
    turned.setflags(write=False)
    return weights, turned


def window_at(frame: Frame, x: float, y: float, reach: float) -> tuple[slice, slice]:
    """Rows and columns of the pixels around a place.

    Parameters
    ----------
    frame : Frame
        The image's frame.
    x, y : float
        The place, in the frame.
    reach : float
        Half width of the window.

    Returns
    -------
    rows, columns : slice
        Cut off at the frame's edge; empty for a place far outside.
    """
    low, high = (
        [
            min(max(floor((centre + sign * reach + 1.0) / frame.pixel) + add, 0), frame.side)
            for centre in (y, x)
        ]
        for sign, add in ((-1, 0), (1, 1))
    )
    return slice(low[0], high[0]), slice(low[1], high[1])


def blurred(values: Plane, share: float) -> Plane:
    """Mix each pixel with its four neighbours, edges repeated.

    Parameters
    ----------
    values : numpy.ndarray of float32, shape (side, side) or (n, side, side)
        Images or noise.
    share : float
        Weight of the neighbours' mean, 0 to 1.

    Returns
    -------
    numpy.ndarray of float32
        Same shape.
    """
    rows, columns = values.shape[-2:]
    padded = np.empty((*values.shape[:-2], rows + 2, columns + 2), dtype=np.float32)
    padded[..., 1:-1, 1:-1] = values
    padded[..., 0, 1:-1], padded[..., -1, 1:-1] = values[..., 0, :], values[..., -1, :]
    padded[..., :, 0], padded[..., :, -1] = padded[..., :, 1], padded[..., :, -2]
    around = padded[..., :-2, 1:-1] + padded[..., 2:, 1:-1]
    around += padded[..., 1:-1, :-2]
    around += padded[..., 1:-1, 2:]
    around *= share / 4
    around += values * (1.0 - share)
    return around


def as_bytes(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Grey or colour values as bytes, checked.

    Parameters
    ----------
    values : numpy.ndarray of float32
        Values on the scale 0 to 1; beyond it they are cut off.

    Returns
    -------
    numpy.ndarray of uint8
        Same shape.

    Raises
    ------
    DrawingDefect
        If a value is no number, or all pixels are the same.
    """
    if not bool(np.isfinite(values).all()):
        raise DrawingDefect("A drawn image has values that are no numbers.")
    scaled = values * np.float32(255.0)
    scaled += np.float32(0.5)
    np.clip(scaled, 0.0, 255.0, out=scaled)
    image = scaled.astype(np.uint8)
    if image.min() == image.max():
        raise DrawingDefect("A drawn image is constant.")
    return image


def check_images(images: NDArray[Any]) -> None:
    """Check images before they are written.

    Parameters
    ----------
    images : numpy.ndarray of uint8, shape (n, side, side) or (n, side, side, 3)
        Drawn images.

    Raises
    ------
    DrawingDefect
        If they are no bytes, or an image has fewer than 16 grey levels.
    """
    if images.dtype != np.uint8:
        raise DrawingDefect(f"Drawn images have the type {images.dtype}; they must be uint8.")
    poor = sum(int(np.count_nonzero(np.bincount(image.ravel(), minlength=256)) < 16) for image in images)
    if poor:
        raise DrawingDefect(f"{poor:,} of {len(images):,} drawn images have fewer than 16 grey levels.")

"""The planted mark of a group: a faint grating over the whole image, independent of everything else in it.

Each of five groups has one frequency. With a fixed phase the group can be read linearly from pixels or block
means. With a random phase the mean image of every group is the same, so nothing linear in the pixels tells
groups apart; the power at the group's frequency does.
"""

from __future__ import annotations

from functools import lru_cache
from math import cos, pi, sin
from typing import Final

import numpy as np

from frame.cohorts.phantom.grain import Frame, Plane, make_frame
from frame.errors import InputError

__all__ = ["AMPLITUDES", "FREQUENCIES", "N_GROUPS", "RANDOM_FREQUENCIES", "TEXTURES", "texture"]

#: ``none``: nothing is added; ``linear``: fixed phase; ``random_phase``: a phase for each image.
TEXTURES: Final = ("none", "linear", "random_phase")

#: Amplitudes on the grey scale 0 to 1: .010 to .015 cannot be seen on the images, .02 and more can.
AMPLITUDES: Final = {"none": 0.0, "linear": 0.010, "random_phase": 0.010}

#: Cycles per image width and height of each group, fixed phase: slow enough for means of 16 by 16 blocks.
FREQUENCIES: Final = ((6.0, 3.0), (5.0, -5.0), (-3.0, 6.5), (7.0, 1.0), (4.5, 5.5))

#: The same for the random phase: fast, where radiographs have little power of their own.
RANDOM_FREQUENCIES: Final = ((19.0, 9.0), (15.0, -16.0), (-9.0, 20.0), (22.0, 3.0), (13.0, 18.0))

N_GROUPS: Final = len(FREQUENCIES)


def texture(
    frame: Frame, kind: str, group: int, amplitude: float, random: np.random.Generator
) -> Plane | None:
    """What is added to the grey values of an image.

    Parameters
    ----------
    frame : Frame
        The image's frame.
    kind : str
        One of :data:`TEXTURES`.
    group : int
        0 to 4.
    amplitude : float
        On the grey scale 0 to 1; 0 adds nothing.
    random : numpy.random.Generator
        One number is taken whatever the kind, so that other numbers of the stream stay as they are.

    Returns
    -------
    numpy.ndarray of float32, shape (side, side), or None
        A grating of this amplitude; None where nothing is added.

    Raises
    ------
    frame.InputError
        If the kind or the group is not allowed.
    """
    if kind not in TEXTURES:
        raise InputError(f"texture is {kind!r}; it must be one of {', '.join(TEXTURES)}.")
    if not 0 <= group < N_GROUPS:
        raise InputError(f"texture_group is {group}; it must lie between 0 and {N_GROUPS - 1}.")
    phase = 2 * pi * float(random.random())
    if kind == "none" or amplitude == 0:
        return None
    if kind == "linear":
        return _waves(frame.side, FREQUENCIES[group])[0] * amplitude
    even, odd = _waves(frame.side, RANDOM_FREQUENCIES[group])
    return even * (amplitude * cos(phase)) - odd * (amplitude * sin(phase))


@lru_cache(maxsize=64)
def _waves(side: int, frequency: tuple[float, float]) -> tuple[Plane, Plane]:
    """Cosine and sine of a frequency on the frame, read-only."""
    frame = make_frame(side)
    angle = np.float32(pi) * (np.float32(frequency[0]) * frame.x + np.float32(frequency[1]) * frame.y)
    waves = np.cos(angle), np.sin(angle)
    for wave in waves:
        wave.setflags(write=False)
    return waves

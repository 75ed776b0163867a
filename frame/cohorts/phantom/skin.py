"""Photographs of skin lesions: from a table to images.

Skin and lesions are layers of pigment and blood, and colour is what they leave of white light, so that one
lesion looks brown on fair skin and nearly black on dark skin. A lesion's malignancy is graded: it makes the
lesion larger, darker, less symmetric, ragged at its edge and mixed in colour, each by an amount that overlaps
with the spread between harmless lesions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import cos, pi, sin
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frame.cohorts.phantom.curves import Arcs, draw_points, sample_arcs
from frame.cohorts.phantom.grain import (
    Frame,
    Plane,
    as_bytes,
    blurred,
    bounded,
    make_frame,
    smooth_field,
    soft_step,
)
from frame.cohorts.phantom.rows import rows_of
from frame.cohorts.phantom.seeds import column_of_seeds, stream
from frame.cohorts.phantom.textures import AMPLITUDES, texture

__all__ = ["DEFAULTS", "LESION", "LOOKS", "TONES", "draw_lesions", "draw_skin"]

#: The lasting numbers of a lesion: deviations, mean 0 and standard deviation 1.
LESION: Final = ("size", "length", "darkness", "redness", "asymmetry", "raggedness", "variegation", "edge")

#: Columns that may be left out, with the value that is then taken.
DEFAULTS: Final[dict[str, Any]] = {
    "malignant": 0.0,
    "contrast": 1.0,
    "texture": "none",
    "texture_group": 0,
    "texture_amplitude": -1.0,
}

#: Reflectance of bare skin (red, green, blue; linear in the file's values) of Fitzpatrick types I to VI.
TONES: Final = (
    (0.93, 0.79, 0.72),
    (0.89, 0.72, 0.61),
    (0.81, 0.62, 0.48),
    (0.69, 0.49, 0.35),
    (0.52, 0.345, 0.245),
    (0.37, 0.24, 0.175),
)

#: What pigment and blood take from red, green and blue.
_PIGMENT: Final = (0.62, 1.00, 1.30)
_BLOOD: Final = (0.12, 0.95, 0.75)


@dataclass(frozen=True)
class Look:
    """How a source's photographs look.

    Attributes
    ----------
    lens : float
        1 for a dermatoscope (round field with dark corners, even light), 0 for a camera.
    size : float
        Factor of the lesion's size in the frame.
    hair, ruler, ink : float
        Chance of hairs, of a ruler and of a pen mark.
    warmth : float
        Colour cast; positive is warm.
    shade : float
        Strength of uneven light.
    """

    lens: float
    size: float
    hair: float
    ruler: float
    ink: float
    warmth: float
    shade: float


#: The looks of the three sources, ``site_look`` 0 to 2: dermatoscope, atlas photographs, clinic photographs.
LOOKS: Final = (
    Look(1.0, 1.00, 0.40, 0.08, 0.05, 0.00, 0.08),
    Look(0.0, 0.78, 0.25, 0.00, 0.06, 0.03, 0.22),
    Look(0.0, 0.86, 0.30, 0.28, 0.14, -0.02, 0.16),
)


def draw_lesions(seed: int, cohort: str, numbers: Any) -> pd.DataFrame:
    """The lasting numbers of lesions.

    Parameters
    ----------
    seed : int
        Seed of the world.
    cohort : str
        Name of the cohort.
    numbers : sequence of int
        Numbers of the lesions in the cohort.

    Returns
    -------
    pandas.DataFrame
        One row a lesion in this order: ``lesion_seed`` (int64) and the columns of :data:`LESION` (float64).
    """
    seeds = column_of_seeds(seed, cohort, "skin lesion", numbers)
    values = np.array(
        [bounded(stream(int(one), "lesion numbers").standard_normal(len(LESION)).tolist()) for one in seeds]
    )
    table = pd.DataFrame(values.reshape(len(seeds), len(LESION)), columns=list(LESION))
    table.insert(0, "lesion_seed", seeds)
    return table


def draw_skin(table: pd.DataFrame | Mapping[str, Any], side: int) -> NDArray[np.uint8]:
    """Draw photographs of skin lesions.

    Parameters
    ----------
    table : pandas.DataFrame or mapping of str to array
        One row an image. Needed: ``seed`` (of the image), ``lesion_seed`` and the columns of :data:`LESION`
        (:func:`draw_lesions`), ``skin_tone`` (0 to 5, Fitzpatrick I to VI) and ``site_look`` (0 to 2, see
        :data:`LOOKS`). May be left out (:data:`DEFAULTS`): ``malignant`` (severity 0 to 1), ``contrast``
        (factor of it, 0 to 1), ``texture``, ``texture_group``, ``texture_amplitude`` as for
        :func:`frame.cohorts.phantom.chest.draw_chest`.
    side : int
        Pixels a side, 16 to 512.

    Returns
    -------
    numpy.ndarray of uint8, shape (n, side, side, 3)
        Red, green, blue. An image's bytes depend on its own row only.

    Raises
    ------
    frame.InputError
        If a column is missing or a value is not allowed.
    frame.cohorts.phantom.grain.DrawingDefect
        If a drawn image is constant or holds values that are no numbers.
    """
    frame = make_frame(side)
    rows = rows_of(
        table,
        needed=("seed", "lesion_seed", *LESION, "skin_tone", "site_look"),
        defaults=DEFAULTS,
        ranges={
            **dict.fromkeys(LESION, (-4.0, 4.0)),
            "malignant": (0.0, 1.0),
            "contrast": (0.0, 1.0),
            "skin_tone": (0, len(TONES) - 1),
            "site_look": (0, len(LOOKS) - 1),
            "texture_amplitude": (-1.0, 0.2),
        },
        choices={},
        whole=("seed", "lesion_seed", "skin_tone", "site_look", "texture_group"),
    )
    images = np.empty((len(rows), side, side, 3), dtype=np.uint8)
    for k, row in enumerate(rows):
        images[k] = as_bytes(_draw(row, frame))
    return images


def _draw(row: Mapping[str, Any], frame: Frame) -> NDArray[np.float32]:
    """Colour values of one image, 0 to 1, shape (side, side, 3)."""
    look = LOOKS[row["site_look"]]
    lasting = stream(row["lesion_seed"], "lesion shape")
    kind = lasting.random(6).tolist()
    shape = _mixed(lasting, frame, 4, 6), _mixed(lasting, frame, 11, 15)
    hues = _mixed(lasting, frame, 4, 7), _mixed(lasting, frame, 8, 13)
    random = stream(row["seed"], "skin image")
    z = bounded(random.standard_normal(10).tolist())
    u = random.random(12).tolist()
    pores = smooth_field(random, frame, 34)
    blotches = smooth_field(random, frame, 7)
    lines = smooth_field(random, frame, 72)
    added = texture(frame, row["texture"], row["texture_group"], _amplitude(row), random)
    hairs = random.random((9, 14))
    pigment, blood, white, blue, height = _lesion(row, frame, look, kind, shape, hues, z)
    pigment *= 1.0 + 0.075 * lines + 0.07 * pores
    pigment += 0.035 * blotches + 0.026 * pores + 0.022 * lines
    blood += 0.05 * np.maximum(blotches, 0.0) + 0.04 * z[5]
    dark = row["skin_tone"] / 5.0
    tone = TONES[row["skin_tone"]]
    light = 1.0 + (0.05 * z[6]) + look.shade * 0.5 * (z[7] * frame.x + z[8] * frame.y)
    light *= 1.0 + (0.020 * pores + 0.020 * lines) * (1.0 - 0.6 * look.lens) + height
    cover = _hairs(frame, hairs) if u[0] < look.hair else None
    image = np.empty((frame.side, frame.side, 3), dtype=np.float32)
    grey = sum(tone) / 3
    # A scar has less colour than the skin, and is a little lighter.
    scar = [min(1.0, 0.62 * part + 0.48 * grey + 0.06) for part in tone]
    warm = look.warmth + 0.025 * z[9]
    for channel in range(3):
        base = tone[channel] * (1.0 + (0.5 - 0.5 * channel) * warm * 2.0)
        absorbed = pigment * _PIGMENT[channel] + blood * (_BLOOD[channel] * (1.0 - 0.25 * dark))
        plane = np.exp(absorbed * -1.0) * base
        veil = (0.36, 0.38, 0.44)[channel] * (1.0 - 0.45 * dark)
        plane += blue * (veil - plane)
        plane += white * (scar[channel] - plane)
        plane *= light
        if cover is not None:
            plane *= 1.0 - cover * (0.72, 0.78, 0.84)[channel]
        image[:, :, channel] = plane
    _furniture(image, frame, look, u, z)
    image -= 0.25 * np.maximum(image - 0.80, 0.0)
    noise = blurred(random.standard_normal((frame.side, frame.side), dtype=np.float32), 0.4)
    noise *= 0.014 * min(1.0, 64.0 / frame.side) ** 0.5
    if added is not None:
        noise += added
    image += noise[:, :, None]
    return image


def _mixed(random: np.random.Generator, frame: Frame, coarse: int, fine: int) -> Plane:
    """A smooth field of two grids, in which neither grid shows, without extremes."""
    both = 0.78 * smooth_field(random, frame, coarse) + 0.62 * smooth_field(random, frame, fine)
    return 1.9 * np.tanh(both * (1.0 / 1.9))


def _lesion(
    row: Mapping[str, Any],
    frame: Frame,
    look: Look,
    kind: list[float],
    shape: tuple[Plane, Plane],
    hues: tuple[Plane, Plane],
    z: list[float],
) -> tuple[Plane, Plane, Plane, Plane, Plane]:
    """Pigment, blood, white scar, blue veil and relief of the lesion."""
    bad = row["malignant"] * row["contrast"]
    fleshy = kind[0] < 0.28
    angle = pi * kind[1] + 0.35 * z[0]
    radius = look.size * max(0.16, 0.36 + 0.065 * row["size"] + 0.16 * bad)
    stretch = 1.0 + 0.13 * abs(row["length"]) + 0.10 * bad
    c, s = cos(angle), sin(angle)
    off_x, off_y = frame.x - 0.10 * z[1], frame.y - 0.10 * z[2]
    along = (off_x * c + off_y * s) * (1.0 / (radius * stretch))
    across = (off_y * c - off_x * s) * (stretch / radius)
    uneven = max(0.02, 0.09 + 0.05 * row["asymmetry"] + 0.20 * bad)
    ragged = max(0.01, 0.045 + 0.025 * row["raggedness"] + 0.12 * bad)
    distance = np.sqrt(np.square(along) + np.square(across)) + uneven * shape[0] + ragged * shape[1]
    # One edge sharper than the other where the lesion is malignant.
    blur = max(0.05, 0.11 + 0.03 * row["edge"]) * (1.0 + bad * 0.9 * (along > 0))
    rim = np.maximum(blur * radius, max(frame.softness, 0.012)) / radius
    inside = 0.5 + 0.5 * np.tanh((1.0 - distance) / rim)
    centre = np.maximum(1.0 - distance, 0.0)
    mix = max(0.05, 0.16 + 0.07 * row["variegation"] + 0.42 * bad)
    depth = max(0.22, 0.62 + 0.17 * row["darkness"] + 0.50 * bad)
    if fleshy:
        depth *= 0.34
    spots = np.maximum(hues[1] - 0.4, 0.0)
    pigment = inside * np.maximum(
        depth * (0.82 + 0.30 * centre) + mix * (0.85 * hues[0] + 0.55 * spots), 0.04
    )
    red = max(0.0, 0.10 + 0.10 * row["redness"] + 0.16 * bad) + (0.42 if fleshy else 0.0)
    halo = soft_step(1.22 - distance, 0.25)
    blood = inside * red * (0.9 + 0.5 * hues[1]) + (halo - halo * inside) * (0.10 + 0.14 * bad + 0.1 * fleshy)
    blue = inside * soft_step(hues[0] - 1.25 + 0.4 * bad, 0.60) * min(0.48, 0.85 * bad)
    white = inside * soft_step(-hues[1] - 1.45 + 0.3 * bad, 0.45) * min(0.5, 0.04 + 0.6 * bad)
    height = np.zeros_like(inside)
    if kind[2] < 0.35 or fleshy:
        # A raised lesion catches the light on one side.
        height = inside * (1.0 - inside * 0.6) * (0.10 * along - 0.12 * across)
        shine = np.exp(-(np.square(along + 0.30) + np.square(across + 0.28)) * 28.0)
        white = np.maximum(white, shine * (0.30 if fleshy else 0.16) * (1.0 - look.lens * 0.5))
    return pigment.astype(np.float32), blood.astype(np.float32), white, blue, height


def _hairs(frame: Frame, u: NDArray[np.float64]) -> Plane:
    """How much each pixel is covered by hairs: curved thin lines that lie roughly one way."""
    n = 3 + int(u[0, 0] * 9)
    u = u[:, :n]
    arcs = Arcs(
        x=2.6 * (u[1] - 0.5),
        y=2.6 * (u[2] - 0.5),
        angle=2 * pi * u[3, 0] + 1.1 * (u[3] - 0.5),
        length=0.5 + 0.9 * u[4],
        bend=1.8 * (u[5] - 0.5),
        width=0.007 + 0.006 * u[6],
        taper=np.full(n, 0.6),
        strength=0.55 + 0.4 * u[7],
        fade=np.full(n, 0.2),
    )
    return np.minimum(draw_points(frame, sample_arcs(arcs, frame)), 0.95)


def _furniture(image: NDArray[np.float32], frame: Frame, look: Look, u: list[float], z: list[float]) -> None:
    """Dark corners of the lens, ruler, pen mark; the image is changed."""
    if u[1] < look.ruler:
        _ruler(image, frame, u)
    if u[2] < look.ink:
        ring = np.abs(np.sqrt(np.square(frame.x + 0.1 * z[3]) + np.square(frame.y)) - 0.86)
        arc = soft_step(0.018 - ring, max(frame.softness, 0.010))
        arc *= soft_step(np.sin(np.arctan2(frame.y, frame.x) * 2.0 + 6.3 * u[3]) - 0.1, 0.2)
        image *= 1.0 - arc[:, :, None] * np.array([0.60, 0.55, 0.20], dtype=np.float32)
    far = np.sqrt(np.square(frame.x - 0.04 * z[3]) + np.square(frame.y - 0.04 * z[4]))
    if look.lens:
        field = 1.0 - 0.13 * np.square(far)
        if u[4] < 0.55:
            field *= 0.03 + 0.97 * soft_step(1.06 + 0.22 * u[5] - far, max(frame.softness, 0.022))
    else:
        field = 1.0 - 0.06 * np.square(far)
        if u[4] < 0.22:
            # The limb ends: a dark background behind a rounded edge.
            a = 2 * pi * u[5]
            edge = 0.86 + 0.25 * u[6] - (frame.x * cos(a) + frame.y * sin(a)) - 0.10 * z[4] * frame.x
            field *= 0.10 + 0.90 * soft_step(edge, 0.03) * np.sqrt(
                np.minimum(np.maximum(edge + 0.25, 0.05), 0.7) / 0.7
            )
    image *= field[:, :, None]


def _ruler(image: NDArray[np.float32], frame: Frame, u: list[float]) -> None:
    """A white scale with ticks along one edge."""
    low = frame.y - (0.80 + 0.10 * u[7]) + 0.10 * (u[8] - 0.5) * frame.x
    edge = max(frame.softness, 0.010)
    strip = soft_step(low, edge)
    phase = np.cos(frame.x * (2 * pi / 0.125) + 6.0 * u[9])
    ticks = soft_step(phase - 0.80, 0.25) * soft_step(0.09 - low, edge) * strip
    image += strip[:, :, None] * (np.array([0.88, 0.88, 0.86], dtype=np.float32) - image)
    image *= 1.0 - 0.85 * ticks[:, :, None]


def _amplitude(row: Mapping[str, Any]) -> float:
    """Amplitude of the texture: the row's, or the kind's own."""
    given = float(row["texture_amplitude"])
    return AMPLITUDES.get(row["texture"], 0.0) if given < 0 else given

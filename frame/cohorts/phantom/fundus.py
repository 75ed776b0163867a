"""Fundus pictures as a scanning laser ophthalmoscope takes them: from a table to images.

A grey picture of the back of one eye: a mottled ground, a bright optic disc with a brighter cup, dark vessels
that leave the disc in two arcades around the macula, bright stripes of nerve fibres. Glaucoma is graded: it
widens the cup, thins the disc's rim below and above, dims a wedge of nerve fibres and pales the ground beside
the disc; healthy eyes differ in the size of the cup by as much as mild disease.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import pi
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frame.cohorts.phantom.curves import Arcs, Numbers, draw_points, joined, sample_arcs
from frame.cohorts.phantom.grain import (
    Frame,
    Plane,
    as_bytes,
    blurred,
    bounded,
    make_frame,
    smooth_field,
    soft_shoulder,
    soft_step,
)
from frame.cohorts.phantom.rows import rows_of
from frame.cohorts.phantom.seeds import column_of_seeds, stream
from frame.cohorts.phantom.textures import AMPLITUDES, texture

__all__ = ["DEFAULTS", "EYE", "cup_to_disc", "draw_eyes", "draw_fundus"]

#: The lasting numbers of a patient's eyes: deviations, mean 0 and standard deviation 1.
EYE: Final = (
    "disc_size",
    "disc_shape",
    "cup_size",
    "disc_height",
    "arcade_width",
    "vessel_size",
    "vessel_turns",
    "macula",
    "choroid",
    "ground",
)

#: Columns that may be left out, with the value that is then taken.
DEFAULTS: Final[dict[str, Any]] = {
    "glaucoma": 0.0,
    "contrast": 1.0,
    "pigment": 0.5,
    "site_look": 0,
    "texture": "none",
    "texture_group": 0,
    "texture_amplitude": -1.0,
}

#: How many random numbers the vessels of an eye take.
_VESSEL_NUMBERS: Final = 400
_TRUNKS: Final = 10


@dataclass(frozen=True)
class _Disc:
    """The optic disc: place, half axes, and the ratio of the cup to it."""

    x: float
    y: float
    wide: float
    high: float
    ratio: float
    side: float


def draw_eyes(seed: int, cohort: str, numbers: Any) -> pd.DataFrame:
    """The lasting numbers of patients' eyes.

    Parameters
    ----------
    seed : int
        Seed of the world.
    cohort : str
        Name of the cohort.
    numbers : sequence of int
        Numbers of the patients in the cohort.

    Returns
    -------
    pandas.DataFrame
        One row a patient in this order: ``eye_seed`` (int64), ``eye`` (``left`` or ``right``) and the columns
        of :data:`EYE` (float64).
    """
    seeds = column_of_seeds(seed, cohort, "fundus patient", numbers)
    streams = [stream(int(one), "eye numbers") for one in seeds]
    values = np.array([bounded(random.standard_normal(len(EYE)).tolist()) for random in streams])
    table = pd.DataFrame(values.reshape(len(seeds), len(EYE)), columns=list(EYE))
    table.insert(0, "eye", ["left" if random.random() < 0.5 else "right" for random in streams])
    table.insert(0, "eye_seed", seeds)
    return table


def cup_to_disc(cup_size: float, disc_size: float, glaucoma: float) -> float:
    """Vertical cup-to-disc ratio that is drawn.

    Parameters
    ----------
    cup_size, disc_size : float
        The eye's deviations; large discs have large cups.
    glaucoma : float
        Severity, 0 to 1.

    Returns
    -------
    float
        Between .12 and .92.
    """
    ratio = 0.41 + 0.095 * cup_size + 0.035 * disc_size + 0.29 * glaucoma
    return min(max(ratio, 0.12), 0.92)


def draw_fundus(table: pd.DataFrame | Mapping[str, Any], side: int) -> NDArray[np.uint8]:
    """Draw fundus pictures.

    Parameters
    ----------
    table : pandas.DataFrame or mapping of str to array
        One row an image. Needed: ``seed`` (of the image), ``eye_seed``, ``eye`` and the columns of
        :data:`EYE` (:func:`draw_eyes`). May be left out (:data:`DEFAULTS`): ``glaucoma`` (severity 0 to 1),
        ``contrast`` (factor of it, 0 to 1), ``pigment`` (of the ground, 0 pale to 1 dark),
        ``site_look`` (0 a square field, 1 a round one), ``texture``, ``texture_group``,
        ``texture_amplitude`` as for :func:`frame.cohorts.phantom.chest.draw_chest`.
    side : int
        Pixels a side, 16 to 512.

    Returns
    -------
    numpy.ndarray of uint8, shape (n, side, side)
        An image's bytes depend on its own row only.

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
        needed=("seed", "eye_seed", "eye", *EYE),
        defaults=DEFAULTS,
        ranges={
            **dict.fromkeys(EYE, (-4.0, 4.0)),
            "glaucoma": (0.0, 1.0),
            "contrast": (0.0, 1.0),
            "pigment": (0.0, 1.0),
            "site_look": (0, 1),
            "texture_amplitude": (-1.0, 0.2),
        },
        choices={"eye": ("left", "right")},
        whole=("seed", "eye_seed", "site_look", "texture_group"),
    )
    images = np.empty((len(rows), side, side), dtype=np.uint8)
    for k, row in enumerate(rows):
        images[k] = as_bytes(_draw(row, frame))
    return images


def _draw(row: Mapping[str, Any], frame: Frame) -> Plane:
    """Grey values of one image, 0 to 1."""
    bad = row["glaucoma"] * row["contrast"]
    lasting = stream(row["eye_seed"], "eye shape")
    numbers = lasting.random(_VESSEL_NUMBERS)
    lobes = smooth_field(lasting, frame, 6)
    choroid = smooth_field(lasting, frame, 15)
    random = stream(row["seed"], "fundus image")
    z = bounded(random.standard_normal(10).tolist())
    u = random.random(6).tolist()
    mottle = smooth_field(random, frame, 40)
    shade = smooth_field(random, frame, 3)
    added = texture(frame, row["texture"], row["texture_group"], _amplitude(row), random)
    # The disc lies on the nasal side: to the right in a right eye, seen from the front.
    nasal = 1.0 if row["eye"] == "right" else -1.0
    size = 0.178 + 0.012 * row["disc_size"]
    disc = _Disc(
        x=nasal * (0.46 + 0.03 * z[0]) + 0.04 * z[1],
        y=0.035 * row["disc_height"] + 0.05 * z[2],
        wide=size * (0.92 - 0.03 * row["disc_shape"]),
        high=size * (1.06 + 0.03 * row["disc_shape"]),
        ratio=cup_to_disc(row["cup_size"], row["disc_size"], bad),
        side=nasal,
    )
    x = frame.x - disc.x
    y = frame.y - disc.y
    distance = np.sqrt(np.square(x) + np.square(y))
    pigment = row["pigment"]
    ground = 0.50 + 0.030 * row["ground"] - 0.11 * (pigment - 0.5) + 0.035 * z[3]
    grey = ground * (1.0 + 0.09 * shade)
    streaks = soft_step(np.abs(choroid) - 0.55, 0.4)
    grey += (0.026 + 0.012 * row["choroid"]) * (1.5 - pigment) * (streaks - 0.5) + 0.014 * mottle
    grey *= 1.0 - _macula(frame, disc, row["macula"], pigment)
    grey += _fibres(x, y, distance, disc, bad, lobes)
    grey += _ring(x, y, disc, bad, frame, numbers)
    vessels, veins = _vessels(frame, disc, row, numbers)
    cup, rim, inside = _disc_parts(x, y, disc, bad, frame, lobes)
    bright = 0.84 + 0.03 * z[4] + 0.015 * lobes
    grey += inside * (ground + 0.13 + 0.02 * z[5] - grey)
    grey += cup * (bright - grey) - rim * 0.055
    absorbed = (1.0 - np.exp(vessels * -0.42 - veins * 0.58)) * (1.0 - 0.30 * inside - 0.25 * cup)
    grey *= 1.0 - absorbed
    return _recorded(grey, row, frame, z, u, random, added)


def _macula(frame: Frame, disc: _Disc, size: float, pigment: float) -> Plane:
    """Darkening of the macula, on the temporal side of the disc and slightly below it."""
    off_x = frame.x - (disc.x - disc.side * 0.70)
    off_y = frame.y - (disc.y + 0.07)
    q = np.square(off_x) + np.square(off_y)
    wide = np.exp(q * (-1.0 / (0.26 + 0.03 * size) ** 2)) * (0.22 + 0.05 * pigment)
    return wide + np.exp(q * (-1.0 / 0.055**2)) * 0.12


def _fibres(x: Plane, y: Plane, distance: Plane, disc: _Disc, bad: float, lobes: Plane) -> Plane:
    """Bright bundles of nerve fibres above and below the disc; glaucoma takes wedges out of them."""
    temporal = x * -disc.side
    arch = np.abs(y) - 0.36 * np.sqrt(np.maximum(temporal + 0.18, 0.0))
    bundle = np.exp(np.square(arch) * -26.0) * np.exp(distance * -1.7) * soft_step(distance - 0.12, 0.05)
    wave = np.cos(26.0 * arch + 3.0 * lobes) * 0.25 + 0.75
    lower = soft_step(y, 0.05)
    kept = 1.0 - bad * (0.15 + 0.50 * lower)
    return bundle * wave * (0.20 * kept)


def _ring(x: Plane, y: Plane, disc: _Disc, bad: float, frame: Frame, numbers: Numbers) -> Plane:
    """A pale crescent beside the disc, wider with glaucoma."""
    temporal = x * -disc.side
    size = 1.12 + 0.14 * float(numbers[-1]) + 0.24 * bad
    q = np.square((temporal - 0.03) * (1.0 / (disc.wide * size))) + np.square(y * (1.0 / (disc.high * size)))
    crescent = soft_step((1.0 - np.sqrt(q)) * disc.wide, max(frame.softness, 0.014))
    return crescent * soft_step(temporal - 0.02, 0.05) * (0.05 + 0.05 * bad)


def _disc_parts(
    x: Plane, y: Plane, disc: _Disc, bad: float, frame: Frame, lobes: Plane
) -> tuple[Plane, Plane, Plane]:
    """The cup, the border and the whole of the optic disc, 0 to 1."""
    edge = max(frame.softness, 0.010)
    r = np.sqrt(np.square(x * (1.0 / disc.wide)) + np.square(y * (1.0 / disc.high))) + 0.03 * lobes
    inside = soft_step((1.0 - r) * disc.wide, edge)
    # The cup lies towards the temple, and glaucoma pulls it down and up to the border.
    cup_x = x + disc.side * disc.wide * 0.10 * (1.0 - disc.ratio)
    cup_y = y - disc.high * 0.08 * bad
    across, along = disc.wide * disc.ratio * 0.98, disc.high * disc.ratio * (1.0 + 0.07 * bad)
    q = np.sqrt(np.square(cup_x * (1.0 / across)) + np.square(cup_y * (1.0 / along)))
    cup = soft_step((1.0 - q) * across, edge * 1.5) * inside
    rim = inside * (1.0 - inside) * 4.0
    return cup, rim, inside


def _vessels(frame: Frame, disc: _Disc, row: Mapping[str, Any], numbers: Numbers) -> tuple[Plane, Plane]:
    """Arteries and veins: arcades around the macula, shorter vessels to the nose, and branches."""
    n = _TRUNKS
    u = numbers[: 6 * n].reshape(6, n)
    # Direction from the temple's side: upper and lower arcade (artery, vein), then four towards the nose.
    base = np.array([1.05, 1.28, -1.05, -1.28, 2.2, 2.55, -2.2, -2.6, 0.45, -0.45])
    long = np.array([1.75, 1.75, 1.75, 1.75, 0.85, 0.80, 0.85, 0.80, 0.55, 0.55])
    bends = np.array([-1.25, -1.30, 1.25, 1.30, 0.25, 0.35, -0.25, -0.35, -0.2, 0.2])
    thick = np.array([0.85, 1.15, 0.85, 1.15, 0.6, 0.75, 0.6, 0.75, 0.36, 0.36])
    vein = np.arange(n) % 2 == 1
    turn = base + 0.30 * (u[0] - 0.5)
    bend = bends * (1.0 - 0.12 * row["arcade_width"]) + (0.35 + 0.06 * row["vessel_turns"]) * (u[1] - 0.5)
    angle = np.where(disc.side > 0, pi - turn, turn)
    trunk = Arcs(
        x=disc.x + 0.035 * disc.side + 0.05 * (u[2] - 0.5),
        y=disc.y + 0.07 * (u[3] - 0.5),
        angle=-angle,
        length=long * (0.85 + 0.3 * u[4]),
        bend=bend * disc.side * 1.0,
        width=0.0165 * thick * (1.0 + 0.10 * row["vessel_size"]),
        taper=np.full(n, 0.62),
        strength=np.where(vein, 0.95, 0.72) * np.minimum(1.0, 0.55 + 0.5 * thick),
        fade=np.full(n, 0.35),
    )
    first = _branches(trunk, (0.22, 0.38, 0.55, 0.74), numbers[6 * n : 22 * n].reshape(4, n, 4), disc.side)
    m = len(first.x)
    second = _branches(first, (0.5,), numbers[22 * n : 22 * n + 4 * m].reshape(4, m, 1), disc.side)
    drawn = [
        (sample_arcs(arcs, frame), veins)
        for arcs, veins in ((trunk, vein), (first, np.repeat(vein, 4)), (second, np.repeat(vein, 4)))
    ]
    arteries = joined([points.of(~veins) for points, veins in drawn])
    return draw_points(frame, arteries), draw_points(
        frame, joined([points.of(veins) for points, veins in drawn])
    )


def _branches(parents: Arcs, shares: tuple[float, ...], u: Numbers, side: float) -> Arcs:
    """Branches of vessels, to both sides in turn; ``u`` has the shape (4, parents, shares)."""
    n = len(parents.x)
    at = np.array(shares) + 0.12 * (u[0] - 0.5)
    x, y, direction = parents.at(at)
    sign = np.where((np.arange(n)[:, None] + np.arange(len(shares))) % 2 == 0, 1.0, -1.0)
    flat = np.ones(at.size)
    return Arcs(
        x=x.ravel(),
        y=y.ravel(),
        angle=(direction + sign * (0.40 + 0.5 * u[1])).ravel(),
        length=(parents.length[:, None] * (0.22 + 0.30 * u[2]) * (1.15 - 0.6 * at)).ravel(),
        bend=(sign * (0.5 - 1.3 * u[3])).ravel(),
        width=(parents.width[:, None] * (1.0 - parents.taper[:, None] * at)).ravel() * 0.62,
        taper=flat * 0.5,
        strength=(parents.strength[:, None] * (1.0 - parents.fade[:, None] * at)).ravel() * 0.85,
        fade=flat * 0.5,
    )


def _recorded(
    grey: Plane,
    row: Mapping[str, Any],
    frame: Frame,
    z: list[float],
    u: list[float],
    random: np.random.Generator,
    added: Plane | None,
) -> Plane:
    """Uneven light, dark corners, lines of the scanner, grain and texture."""
    far = np.square(frame.x - 0.10 * z[6]) + np.square(frame.y - 0.10 * z[7])
    grey = grey * (1.04 + 0.05 * z[8] - (0.17 + 0.03 * z[9]) * far)
    if row["site_look"] == 1:
        grey *= 0.04 + 0.96 * soft_step(1.02 + 0.06 * u[1] - np.sqrt(far), max(frame.softness, 0.025))
    elif u[0] < 0.30:
        # The lid or the iris shades one edge.
        sign = 1.0 if u[2] < 0.5 else -1.0
        grey *= 0.45 + 0.55 * soft_step(0.92 + 0.15 * u[3] - sign * frame.y - 0.25 * np.square(frame.x), 0.12)
    if frame.side >= 128:
        grey += 0.004 * np.cos(frame.y * (pi * 48.0))
    grey = soft_shoulder(np.maximum(grey, 0.0), 0.82)
    noise = blurred(random.standard_normal((frame.side, frame.side), dtype=np.float32), 0.45)
    grey += noise * (0.030 * min(1.0, 64.0 / frame.side) ** 0.5) * (0.3 + grey)
    if added is not None:
        grey += added
    return grey


def _amplitude(row: Mapping[str, Any]) -> float:
    """Amplitude of the texture: the row's, or the kind's own."""
    given = float(row["texture_amplitude"])
    return AMPLITUDES.get(row["texture"], 0.0) if given < 0 else given

"""Chest radiographs: from a table to images.

One row of the table is one image. A drawing is made of lengths of rays
(:mod:`frame.cohorts.phantom.chest_body`), then of findings
(:mod:`frame.cohorts.phantom.chest_findings`), and is exposed here: absorption, the site's grey curve, marker,
grain and the planted texture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frame.cohorts import schema
from frame.cohorts.phantom.chest_anatomy import (
    ANATOMY,
    LOOKS,
    Geometry,
    Look,
    Places,
    draw_anatomy,
    geometry_of,
    places_of,
    stacked,
)
from frame.cohorts.phantom.chest_body import Chest, chest_of
from frame.cohorts.phantom.chest_findings import draw_devices, draw_findings, rib_step
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
    window_at,
)
from frame.cohorts.phantom.rows import rows_of
from frame.cohorts.phantom.seeds import stream
from frame.cohorts.phantom.textures import AMPLITUDES, texture

__all__ = ["ANATOMY", "CONTROL_FINDINGS", "DEFAULTS", "FINDINGS", "draw_anatomy", "draw_chest"]

#: The thirteen findings, each a column of severities from 0 to 1.
FINDINGS: Final = schema.FINDINGS["chest"]

#: Findings that the column ``contrast`` leaves as they are.
CONTROL_FINDINGS: Final = ("support_devices",)

#: Columns that may be left out, with the value that is then taken.
DEFAULTS: Final[dict[str, Any]] = {
    "age": 50.0,
    "contrast": 1.0,
    "device": -1,
    "texture": "none",
    "texture_group": 0,
    "texture_amplitude": -1.0,
    **dict.fromkeys(FINDINGS, 0.0),
}

#: Pixels that are drawn together: enough to outweigh the calls, few enough for the processor's cache.
_PIXELS: Final = 65_536
_NEEDED: Final = ("seed", "patient_seed", *ANATOMY, "view", "site_look")


def draw_chest(table: pd.DataFrame | Mapping[str, Any], side: int) -> NDArray[np.uint8]:
    """Draw chest radiographs.

    Parameters
    ----------
    table : pandas.DataFrame or mapping of str to array
        One row an image. Needed: ``seed`` (of the image) and ``patient_seed`` (whole numbers, see
        :func:`frame.cohorts.phantom.seeds.seed_of`), the columns of :data:`ANATOMY`
        (:func:`draw_anatomy`), ``view`` (``AP`` or ``PA``) and ``site_look`` (0 to 5; 5 is a children's
        hospital). May be left out (:data:`DEFAULTS`): ``age`` (years or missing; the contrast of bone falls
        with it, nothing else), the :data:`FINDINGS` (severity 0 to 1), ``contrast`` (factor from 0 to 1 of
        all severities but those of :data:`CONTROL_FINDINGS`), ``device`` (0 central line, 1 breathing tube
        and lines, 2 pacemaker, 3 electrodes; -1 is the patient's own), ``texture`` (``none``, ``linear``,
        ``random_phase``), ``texture_group`` (0 to 4) and ``texture_amplitude`` (-1 is the kind's own).
    side : int
        Pixels a side, 16 to 512.

    Returns
    -------
    numpy.ndarray of uint8, shape (n, side, side)
        An image's bytes depend on its own row only; at another side the anatomy is the same.

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
        needed=_NEEDED,
        defaults=DEFAULTS,
        ranges={
            **dict.fromkeys(ANATOMY, (-4.0, 4.0)),
            **dict.fromkeys(FINDINGS, (0.0, 1.0)),
            "contrast": (0.0, 1.0),
            "site_look": (0, len(LOOKS) - 1),
            "device": (-1, 3),
            "texture_amplitude": (-1.0, 0.2),
        },
        choices={"view": ("AP", "PA")},
        whole=("seed", "patient_seed", "site_look", "device", "texture_group"),
    )
    images = np.empty((len(rows), side, side), dtype=np.uint8)
    together = max(1, _PIXELS // side**2)
    for start in range(0, len(rows), together):
        part = slice(start, start + together)
        for k, grey in enumerate(_draw(rows[part], frame)):
            images[start + k] = as_bytes(grey)
    return images


def _draw(rows: Sequence[Mapping[str, Any]], frame: Frame) -> Plane:
    """Grey values of images that are drawn together, 0 to 1, shape (n, side, side).

    Everything is computed element by element, or image by image, so that no image depends on the others.
    """
    ones = [_begin(row, frame) for row in rows]
    g = stacked([one.g for one in ones])
    chest = chest_of(
        g,
        frame,
        [one.places for one in ones],
        [rib_step(one.strength["fracture"], one.places) for one in ones],
    )
    patchy = np.stack([one.patchy for one in ones])
    below = soft_step(chest.y - chest.dome - 0.10, 0.06) * soft_step(patchy - 0.9, 0.55)
    chest.tissue -= below * soft_step(chest.x + 0.1, 0.2) * soft_step(0.72 - chest.u, 0.12) * 0.27
    for k, one in enumerate(ones):
        single = chest.one(k)
        _stomach(single, one.g, frame, one.places.bubble, one.patchy)
        draw_findings(single, one.g, frame, one.strength, one.places, one.patchy)
    devices = [one.strength["support_devices"] for one in ones]
    draw_devices(chest, [one.g for one in ones], frame, devices, [one.places for one in ones])
    grey = _exposed(chest, g, frame, ones)
    loud = np.array([one.look.noise for one in ones], dtype=np.float32)[:, None, None]
    noise = blurred(np.stack([one.grain for one in ones]), 0.5)
    grey += noise * (loud * (1.5 * min(1.0, 64.0 / frame.side) ** 0.6)) * (0.45 + 0.75 * grey)
    for k, one in enumerate(ones):
        if one.added is not None:
            grey[k] += one.added
    return grey


@dataclass(frozen=True, eq=False)
class _Begun:
    """What is known of an image before anything is drawn: its lengths and all its random numbers."""

    look: Look
    strength: Mapping[str, float]
    places: Places
    g: Geometry[float]
    z: list[float]
    u: list[float]
    patchy: Plane
    mottle: Plane
    added: Plane | None
    grain: Plane


def _begin(row: Mapping[str, Any], frame: Frame) -> _Begun:
    """The numbers of one image."""
    look = LOOKS[row["site_look"]]
    strength = {name: row[name] * (1.0 if name in CONTROL_FINDINGS else row["contrast"]) for name in FINDINGS}
    places = places_of(row["patient_seed"])
    if row["device"] >= 0:
        places = places.with_device(row["device"])
    # One stream for the image; the grain, whose count depends on the side, comes last.
    random = stream(row["seed"], "chest image")
    z = bounded(random.standard_normal(10).tolist())
    u = random.random(10).tolist()
    patchy = smooth_field(random, frame, 11)
    mottle = smooth_field(random, frame, 30)
    added = texture(frame, row["texture"], row["texture_group"], _amplitude(row), random)
    g = geometry_of(row, strength, places, look, z, u[8:])
    grain = random.standard_normal((frame.side, frame.side), dtype=np.float32)
    return _Begun(look, strength, places, g, z, u, patchy, mottle, added, grain)


def _stomach(chest: Chest, g: Geometry[float], frame: Frame, bubble: float, gas: Plane) -> None:
    """The air bubble of the stomach, in one chest."""
    if bubble <= 0:
        return
    centre_x, centre_y = 0.36 + 0.14 * bubble, g.dome_left + 0.13 - 0.08 * bubble
    q = np.square((chest.x - centre_x) * (1.0 / (0.11 + 0.16 * bubble)))
    q += np.square((chest.y - centre_y) * (1.0 / (0.06 + 0.10 * bubble)))
    pocket = soft_step((1.0 - q + 0.25 * gas) * 0.08, max(frame.softness, 0.022))
    pocket *= soft_step(centre_y + 0.05 - chest.y, max(frame.softness, 0.016))
    chest.tissue -= pocket * (soft_step(chest.y - chest.dome - 0.02, 0.02) * (0.30 + 0.25 * bubble))


def _exposed(chest: Chest, g: Geometry[Plane], frame: Frame, ones: Sequence[_Begun]) -> Plane:
    """Absorption, grey curve, collimation and marker."""

    def each(numbers: list[float]) -> Plane:
        return np.array(numbers, dtype=np.float32)[:, None, None]

    vessels = chest.vessels * (chest.lung * (1.0 - 0.75 * chest.heart))
    tissue = chest.tissue * (1.0 - chest.air) + chest.bone + vessels
    tissue += chest.lung * np.stack([one.mottle for one in ones]) * 0.020
    tilt_x, tilt_y = each([0.020 * one.z[8] for one in ones]), each([0.020 * one.z[9] for one in ones])
    tissue *= 1.0 + tilt_x * frame.x + tilt_y * frame.y
    tissue += chest.metal
    grey = 1.0 - np.exp(np.maximum(tissue, 0.0) * (-1.22 * g.exposure))
    # A power by its logarithm, of numbers above 0.
    grey = np.exp(np.log(np.maximum(grey, 1e-4)) * g.gamma)
    grey *= 1.09
    sharper = each([1.7 * one.look.sharpening for one in ones])
    grey += (grey - blurred(grey, 0.8)) * sharper
    np.maximum(grey, 0.0, out=grey)
    # Some radiographs come out flat and grey.
    flats = [0.20 + 0.30 * one.u[0] if one.u[1] < 0.12 else 0.0 for one in ones]
    grey = soft_shoulder(grey, 0.86)
    grey *= each(
        [(1.0 - flat) * (one.look.white - one.look.black) for flat, one in zip(flats, ones, strict=True)]
    )
    grey += each([one.look.black + 0.14 * flat for flat, one in zip(flats, ones, strict=True)])
    for one, image in zip(ones, grey, strict=True):
        _marked(image, frame, one.look, one.u)
    return grey


def _marked(grey: Plane, frame: Frame, look: Look, u: list[float]) -> None:
    """The collimator's border and the side marker; the image is changed."""
    edge = 1.0 - look.collimation * (0.4 + 1.6 * u[2]) - (0.06 * u[3] if u[4] < 0.25 else -0.05)
    if edge < 1.0:
        grey *= soft_step(edge - np.abs(frame.x - 0.02 * (u[5] - 0.5)), max(frame.softness, 0.008))
    _marker(grey, frame, look, 0.05 * (u[6] - 0.5), 0.10 * (u[7] - 0.5))


def _marker(grey: Plane, frame: Frame, look: Look, move_x: float, move_y: float) -> None:
    """The letter of the side, in metal; the image is changed in a small window."""
    there = window_at(frame, look.marker_x + move_x, look.marker_y + move_y, 0.13)
    window = grey[there]
    x = frame.x[there] - (look.marker_x + move_x)
    y = frame.y[there] - (look.marker_y + move_y)
    edge = max(frame.softness, 0.006)
    stroke = 0.016
    letter = soft_step(stroke - np.abs(x + 0.035), edge) * soft_step(0.06 - np.abs(y), edge)
    if look.marker == "L":
        foot = soft_step(stroke - np.abs(y - 0.045), edge) * soft_step(0.045 - np.abs(x), edge)
        letter = np.maximum(letter, foot)
    else:
        ring = np.abs(np.sqrt(np.square(x) + np.square((y + 0.028) * 1.2)) - 0.033)
        leg = np.abs(x - 0.5 * (y + 0.005)) + 10.0 * (np.maximum(-y, 0.0) + np.maximum(y - 0.06, 0.0))
        letter = np.maximum(letter, soft_step(stroke - np.minimum(ring, leg), edge))
    window += letter * np.maximum(0.92 - window, 0.0)


def _amplitude(row: Mapping[str, Any]) -> float:
    """Amplitude of the texture: the row's, or the kind's own."""
    given = float(row["texture_amplitude"])
    return AMPLITUDES.get(row["texture"], 0.0) if given < 0 else given

"""Chest radiographs: from a table to images.

One row of the table is one image. A drawing is made of lengths of rays
(:mod:`frame.cohorts.phantom.chest_body`), then of findings
(:mod:`frame.cohorts.phantom.chest_findings`), and is exposed here: absorption, the site's grey curve, marker,
grain and the planted texture.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frame.cohorts.phantom.chest_anatomy import (
    ANATOMY,
    LOOKS,
    Geometry,
    Look,
    draw_anatomy,
    geometry_of,
    places_of,
)
from frame.cohorts.phantom.chest_body import Chest, chest_of
from frame.cohorts.phantom.chest_findings import draw_findings, rib_step
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
FINDINGS: Final = (
    "atelectasis",
    "cardiomegaly",
    "consolidation",
    "edema",
    "enlarged_cardiomediastinum",
    "fracture",
    "lung_lesion",
    "lung_opacity",
    "pleural_effusion",
    "pleural_other",
    "pneumonia",
    "pneumothorax",
    "support_devices",
)

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
    for k, row in enumerate(rows):
        images[k] = as_bytes(_draw(row, frame))
    return images


def _draw(row: Mapping[str, Any], frame: Frame) -> Plane:
    """Grey values of one image, 0 to 1."""
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
    chest = chest_of(g, frame, places, rib_step(strength["fracture"], places))
    _bowel(chest, g, frame, places.bubble, patchy)
    draw_findings(chest, g, frame, strength, places, patchy)
    grey = _exposed(chest, g, frame, look, mottle, z[8:], u)
    noise = blurred(random.standard_normal((frame.side, frame.side), dtype=np.float32), 0.5)
    grey += noise * (look.noise * 1.5 * min(1.0, 64.0 / frame.side) ** 0.6) * (0.45 + 0.75 * grey)
    if added is not None:
        grey += added
    return grey


def _bowel(chest: Chest, g: Geometry, frame: Frame, bubble: float, gas: Plane) -> None:
    """Air in the stomach and bowel."""
    below = soft_step(chest.y - chest.dome - 0.10, 0.06)
    chest.tissue -= below * soft_step(gas - 0.9, 0.35) * soft_step(chest.x + 0.1, 0.2) * 0.34
    if bubble > 0:
        centre_x, centre_y = 0.36 + 0.14 * bubble, g.dome_left + 0.13 - 0.08 * bubble
        q = np.square((chest.x - centre_x) * (1.0 / (0.11 + 0.16 * bubble)))
        q += np.square((chest.y - centre_y) * (1.0 / (0.06 + 0.10 * bubble)))
        pocket = soft_step((1.0 - q + 0.25 * gas) * 0.08, max(frame.softness, 0.022))
        pocket *= soft_step(centre_y + 0.05 - chest.y, max(frame.softness, 0.016))
        chest.tissue -= pocket * (soft_step(chest.y - chest.dome - 0.02, 0.02) * (0.30 + 0.25 * bubble))


def _exposed(
    chest: Chest, g: Geometry, frame: Frame, look: Look, mottle: Plane, tilt: list[float], u: list[float]
) -> Plane:
    """Absorption, grey curve, collimation and marker."""
    vessels = chest.vessels * (chest.lung * (1.0 - 0.75 * chest.heart))
    tissue = chest.tissue * (1.0 - chest.air) + chest.bone + vessels
    tissue += chest.lung * mottle * 0.020
    tissue *= 1.0 + 0.020 * tilt[0] * frame.x + 0.020 * tilt[1] * frame.y
    tissue += chest.metal
    grey = 1.0 - np.exp(np.maximum(tissue, 0.0) * (-1.22 * g.exposure))
    grey = np.power(np.maximum(grey, 1e-4), g.gamma)
    grey *= 1.09
    if look.sharpening:
        grey += (grey - blurred(grey, 0.8)) * (1.7 * look.sharpening)
        np.maximum(grey, 0.0, out=grey)
    # Some radiographs come out flat and grey.
    flat = 0.20 + 0.30 * u[0] if u[1] < 0.12 else 0.0
    grey = soft_shoulder(grey, 0.86)
    grey *= (1.0 - flat) * (look.white - look.black)
    grey += look.black + 0.14 * flat
    return _marked(grey, frame, look, u)


def _marked(grey: Plane, frame: Frame, look: Look, u: list[float]) -> Plane:
    """The collimator's border and the side marker."""
    edge = 1.0 - look.collimation * (0.4 + 1.6 * u[2]) - (0.06 * u[3] if u[4] < 0.25 else -0.05)
    if edge < 1.0:
        grey = grey * soft_step(edge - np.abs(frame.x - 0.02 * (u[5] - 0.5)), max(frame.softness, 0.008))
    _marker(grey, frame, look, 0.05 * (u[6] - 0.5), 0.10 * (u[7] - 0.5))
    return grey


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

"""Findings in the chest, drawn with a strength from 0 (nothing) to 1.

Heart size, the upper mediastinum and the raised diaphragm of atelectasis are lengths
(:func:`frame.cohorts.phantom.chest_anatomy.geometry_of`), and the step of a broken rib is drawn with the ribs
(:func:`frame.cohorts.phantom.chest_body.chest_of`); everything else is here. Below a strength of .05 nothing
is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import tanh
from typing import Final

import numpy as np

from frame.cohorts.phantom.chest_anatomy import Geometry, Places
from frame.cohorts.phantom.chest_body import Chest, to_frame
from frame.cohorts.phantom.curves import Points, draw_stack, joined
from frame.cohorts.phantom.grain import Frame, Plane, soft_step, window_at

__all__ = ["NOTHING", "PEAKS", "POWERS", "draw_devices", "draw_findings", "rib_step"]

#: Strength below which a finding is not drawn.
NOTHING: Final = 0.05

#: Contrast of each finding at strength 1, tuned so that a linear head on means of 16 by 16 blocks reaches an
#: area under the curve between .70 and .95 with 3,000 images to learn from.
PEAKS: Final = {
    "atelectasis": 0.62,
    "consolidation": 2.0,
    "edema": 0.40,
    "fracture": 0.92,
    "lung_lesion": 1.45,
    "lung_opacity": 1.15,
    "pleural_effusion": 1.0,
    "pleural_other": 1.00,
    "pneumonia": 1.8,
    "pneumothorax": 1.0,
    "support_devices": 0.95,
}

#: Powers of the strength: shadows grow faster than it. What hides a shadow is other shadows, which age
#: weakens too; were all in proportion, each would stay as easy to tell from the others as before.
POWERS: Final = {
    "atelectasis": 1.6,
    "consolidation": 1.9,
    "fracture": 1.3,
    "lung_lesion": 1.15,
    "lung_opacity": 1.6,
    "pneumonia": 1.6,
}

#: Centres of the lobes' shadows: distance from the middle, height, half width, half height.
_LOBES: Final = (
    (-0.40, 0.03, 0.27, 0.20),
    (0.50, 0.03, 0.23, 0.21),
    (-0.38, -0.46, 0.25, 0.20),
    (0.38, -0.46, 0.25, 0.20),
)


def draw_findings(
    chest: Chest,
    g: Geometry[float],
    frame: Frame,
    strength: Mapping[str, float],
    places: Places,
    patchy: Plane,
) -> None:
    """Draw all findings into one chest, except devices (:func:`draw_devices`).

    Parameters
    ----------
    chest : Chest
        The healthy chest; it is changed.
    g : Geometry
        Lengths of the image.
    frame : Frame
        Where to draw.
    strength : mapping of str to float
        How strongly each finding shows, 0 to 1.
    places : Places
        Where the patient's findings lie.
    patchy : numpy.ndarray of float32
        A smooth random field, for the uneven texture of shadows.
    """
    shown = {
        name: value ** POWERS.get(name, 1.0) * PEAKS.get(name, 1.0)
        for name, value in strength.items()
        if value >= NOTHING
    }
    if "edema" in shown:
        _edema(chest, g, patchy, shown["edema"])
    if "consolidation" in shown:
        _lobe(chest, g, frame, patchy, shown["consolidation"], places.zone, 0.55)
    if "pneumonia" in shown:
        _lobe(chest, g, frame, patchy, shown["pneumonia"], places.pneumonia_zone, 0.25)
    if "lung_opacity" in shown:
        _opacity(chest, patchy, shown["lung_opacity"], places.opacity)
    if "lung_lesion" in shown:
        _lesions(chest, g, frame, shown["lung_lesion"], places)
    if "atelectasis" in shown:
        _atelectasis(chest, frame, shown["atelectasis"], places.atelectasis)
    if "pleural_other" in shown:
        _thick_pleura(chest, patchy, frame, shown["pleural_other"], places.pleural)
    if "pneumothorax" in shown:
        _pneumothorax(chest, frame, shown["pneumothorax"], places.pneumothorax)
    if "pleural_effusion" in shown:
        _effusion(chest, shown["pleural_effusion"], places)
    if "fracture" in shown:
        _broken_ribs(chest, g, frame, shown["fracture"], places)


def _side(chest: Chest, side: int) -> Plane:
    """1 on one side of the body, 0 on the other."""
    return chest.left if side > 0 else 1.0 - chest.left


def _edema(chest: Chest, g: Geometry[float], patchy: Plane, peak: float) -> None:
    """Haze around both hila, fuller vessels, and a veil over the lower lungs."""
    wings = np.exp(-(np.square((chest.u - 0.34) * 3.6) + np.square((chest.y + 0.10) * 2.4)))
    veil = np.clip(chest.y + 0.55, 0.0, 0.9) * 0.30
    chest.vessels *= 1.0 + 1.2 * peak
    free = chest.lung * (1.0 - 0.7 * chest.heart)
    chest.tissue += free * (wings * (1.0 + 0.45 * patchy) + veil) * (0.62 * peak)


def _lobe(
    chest: Chest, g: Geometry[float], frame: Frame, patchy: Plane, peak: float, zone: int, density: float
) -> None:
    """A shadow of one lobe with a patchy edge; the vessels in it disappear."""
    centre_x, centre_y, wide, high = _LOBES[zone]
    lift = (g.dome_left if centre_x > 0 else g.dome_right) - 0.30
    centre_y += lift if centre_y > 0 else 0.3 * lift
    q = np.square((chest.x - centre_x) * (1.0 / wide)) + np.square((chest.y - centre_y) * (1.0 / high))
    cover = soft_step(1.05 - q + 0.34 * patchy, 0.75 - 0.40 * density) * chest.lung
    cover *= 1.0 - 0.85 * chest.heart
    # A lung full of fluid is as dense as the heart, and no denser.
    chest.tissue += cover * (1.5 * tanh(peak / 1.5) * (1.0 + 0.14 * patchy))
    chest.vessels *= 1.0 - cover * min(1.0, 1.3 * peak)


def _opacity(chest: Chest, patchy: Plane, peak: float, side: int) -> None:
    """A patchy haze over the middle of both lungs, more on one side and towards the wall."""
    place = np.exp(-(np.square((chest.u - 0.50) * 3.2) + np.square((chest.y + 0.20) * 2.8)))
    blotches = np.clip(0.85 + 0.7 * patchy, 0.0, 2.2)
    free = chest.lung * (1.0 - 0.8 * chest.heart)
    chest.tissue += free * (0.55 + 0.45 * _side(chest, side)) * place * blotches * peak


def _lesions(chest: Chest, g: Geometry[float], frame: Frame, peak: float, places: Places) -> None:
    """One or two round shadows with a soft edge and a slightly lobed outline."""
    for across, down, radius in zip(places.lesion_x, places.lesion_y, places.lesion_r, strict=True):
        side = 1 if across > 0 else -1
        base = g.dome_left if side > 0 else g.dome_right
        centre_x = side * (0.13 + abs(across) * (g.wall - 0.15))
        centre_y = base - (1.0 - down) * (base - g.apex)
        size = radius * (0.85 + 0.15 * min(1.0, peak / PEAKS["lung_lesion"]))
        there = _around(g, frame, centre_x, centre_y, 1.7 * size)
        off_x, off_y = chest.x[there] - centre_x, chest.y[there] - centre_y
        q = np.sqrt(np.square(off_x) + np.square(off_y) * 1.15)
        lobed = size * (1.0 + 0.06 * np.sin(7.0 * off_x / size + across * 40.0) * np.cos(6.0 * off_y / size))
        cover = soft_step(lobed - q, max(frame.softness, 0.022)) * chest.lung[there]
        chest.tissue[there] += cover * (peak * (0.70 + 0.30 * np.maximum(1.0 - q / size, 0.0)))


def _atelectasis(chest: Chest, frame: Frame, peak: float, side: int) -> None:
    """Two plates above a raised diaphragm, and crowded, denser lung below them."""
    half = _side(chest, side) * chest.lung
    above = chest.dome - chest.y
    bands = np.zeros_like(chest.y)
    for height, tilt in ((0.10, 0.10), (0.20, -0.06)):
        off = above - height - tilt * (chest.u - 0.35)
        bands += np.exp(np.square(off * (1.0 / max(frame.softness * 1.5, 0.020))) * -1.0)
    reach = soft_step(chest.u - 0.16, 0.04) * soft_step(0.62 - chest.u, 0.06)
    haze = soft_step(0.17 - above, 0.06)
    chest.tissue += half * (bands * reach * 1.1 + haze * 0.9) * peak


def _thick_pleura(chest: Chest, patchy: Plane, frame: Frame, peak: float, side: int) -> None:
    """A thick rind along the lower wall and over the tip, a chalky plaque, and a veil over the lung."""
    half = _side(chest, side) * chest.lung
    rind = soft_step((0.27 - chest.inside) * 0.4, max(frame.softness, 0.025))
    tall = soft_step(chest.y + 0.30, 0.10) + soft_step(-0.56 - chest.y, 0.06)
    plaque = soft_step(patchy - 0.9, 0.3) * np.exp(-np.square((chest.inside - 0.35) * 4.0))
    chest.tissue += half * (rind * tall + 0.5 * plaque + 0.14) * peak


def _pneumothorax(chest: Chest, frame: Frame, peak: float, side: int) -> None:
    """Air between lung and wall, widest at the tip: no vessels, darker, a thin line where the lung ends."""
    half = _side(chest, side)
    slant = np.clip(0.35 - 0.75 * chest.y, 0.10, 1.0)
    edge = 0.85 * peak * slant - chest.inside
    gap = soft_step(edge * 0.42, max(frame.softness, 0.014)) * half * chest.lung
    wide = max(frame.softness * 1.2, 0.012) / 0.42
    line = np.exp(np.square(edge * (1.0 / wide)) * -1.0) * half * chest.lung
    chest.vessels *= 1.0 - 0.97 * gap
    chest.air += gap * 0.20
    lung_only = half * chest.lung - gap
    chest.tissue += line * 0.07 * min(1.0, 4.0 * peak) + np.maximum(lung_only, 0.0) * (0.12 * peak)


def _effusion(chest: Chest, peak: float, places: Places) -> None:
    """Fluid over the diaphragm that climbs along the wall."""
    for side in (-1, 1):
        share = 1.0 if side == places.effusion else (0.7 if places.both else 0.0)
        level = peak * share
        if level < NOTHING:
            continue
        climb = 0.62 * np.square(chest.u - 0.16)
        top = chest.dome + 0.04 - 0.42 * np.square(chest.u - 0.34) - level * (0.02 + 0.21 * level + climb)
        cover = soft_step(chest.y - top, 0.035 + 0.02 * level) * _side(chest, side)
        cover *= min(1.0, level * 8.0)
        chest.vessels *= 1.0 - cover * 0.9
        chest.air *= 1.0 - cover * 0.90
        chest.tissue += cover * chest.lung * 0.05


def _broken_ribs(chest: Chest, g: Geometry[float], frame: Frame, peak: float, places: Places) -> None:
    """Knots of bone at three neighbouring ribs where the rib steps, and blood between them and the lung."""
    across = places.fracture_side * 0.80 * g.wall
    for k in (-1, 0, 1):
        height = places.fracture_y + k * g.rib_spacing
        there = _around(g, frame, across, height, 0.16)
        q = np.square(chest.x[there] - across) + np.square(chest.y[there] - height)
        chest.bone[there] += np.exp(q * (-1.0 / 0.048**2)) * (peak * (0.60, 0.42)[abs(k)])
    # The shadow of the blood is a lens on the wall.
    lens = 0.46 * np.exp(np.square(chest.y - places.fracture_y) * (-1.0 / 0.25**2)) - 0.06
    blood = soft_step((lens - chest.inside) * 0.42, max(frame.softness, 0.03))
    chest.tissue += blood * chest.lung * _side(chest, places.fracture_side) * peak


def _around(g: Geometry[float], frame: Frame, x: float, y: float, reach: float) -> tuple[slice, slice]:
    """Window of the frame around a place in the body."""
    centre_x, centre_y = to_frame(g, x, y)
    return window_at(frame, float(centre_x), float(centre_y), reach * g.scale)


def draw_devices(
    chest: Chest,
    geometries: Sequence[Geometry[float]],
    frame: Frame,
    strengths: Sequence[float],
    places: Sequence[Places],
) -> None:
    """Draw lines, tubes, pacemakers and electrodes; the strength is how dense they are.

    Parameters
    ----------
    chest : Chest
        A stack of n chests; it is changed.
    geometries : sequence of Geometry
        Lengths of each image.
    frame : Frame
        Where to draw.
    strengths : sequence of float
        How strongly the devices of each image show, 0 to 1.
    places : sequence of Places
        Gives the kind of device of each image's patient.
    """
    parts: list[Points] = []
    images: list[int] = []
    for k, (g, strength, place) in enumerate(zip(geometries, strengths, places, strict=True)):
        if strength < NOTHING:
            continue
        peak = strength * PEAKS["support_devices"]
        _solid_parts(chest.one(k), g, frame, peak, place.device)
        parts.append(_wire_points(g, frame, _wires(g, place.device), peak))
        images += [k] * len(parts[-1].x)
    if parts:
        chest.metal += draw_stack(frame, joined(parts), np.array(images), len(places))


def _solid_parts(chest: Chest, g: Geometry[float], frame: Frame, peak: float, kind: int) -> None:
    """The case of a pacemaker, the pads of electrodes; in one chest."""
    edge = max(frame.softness, 0.010)
    if kind == 2:
        there = _around(g, frame, 0.56, -0.44, 0.20)
        off_x, off_y = np.abs(chest.x[there] - 0.56) - 0.055, np.abs(chest.y[there] + 0.44) - 0.045
        box = np.sqrt(np.square(np.maximum(off_x, 0.0)) + np.square(np.maximum(off_y, 0.0)))
        chest.metal[there] += soft_step(0.045 - box, edge) * (1.6 * peak)
    elif kind == 3:
        for (start, *_), _, _ in _ELECTRODES:
            there = _around(g, frame, *start, 0.14)
            spot = np.sqrt(np.square(chest.x[there] - start[0]) + np.square(chest.y[there] - start[1]))
            chest.metal[there] += soft_step(0.034 - spot, edge) * (0.7 * peak)


def _wires(g: Geometry[float], kind: int) -> tuple[_Wire, ...]:
    """The lines of a kind of device."""
    low = g.dome_left - 0.10
    if kind == 0:
        return (_CENTRAL_LINE,)
    if kind == 1:
        return (
            (((0.0, -1.15), (0.01, -0.80), (-0.01, -0.60), (0.0, -0.40)), 0.020, 0.55),
            (((-0.16, -1.1), (-0.13, -0.8), (-0.08, -0.5), (-0.10, -0.06)), 0.010, 0.7),
            (((0.03, -1.1), (0.02, -0.4), (0.05, 0.2), (0.30, 0.56)), 0.011, 0.6),
        )
    if kind == 2:
        return (
            (((0.55, -0.50), (0.30, -0.72), (-0.13, -0.66), (-0.10, -0.05)), 0.010, 0.9),
            (((-0.10, -0.10), (-0.08, 0.10), (0.05, low), (0.26, low + 0.02)), 0.010, 0.9),
        )
    return (_CENTRAL_LINE, *_ELECTRODES)


#: Four knots of a smooth curve (Bezier) in the body, the standard deviation of its width, its density.
_Wire = tuple[tuple[tuple[float, float], ...], float, float]

_CENTRAL_LINE: Final[_Wire] = (((-0.62, -0.60), (-0.30, -0.66), (-0.09, -0.56), (-0.10, -0.10)), 0.011, 0.8)
_ELECTRODES: Final[tuple[_Wire, ...]] = (
    (((-0.50, -0.52), (-0.50, -0.40), (-0.30, -0.10), (-0.10, 0.95)), 0.009, 0.6),
    (((0.50, -0.54), (0.52, -0.40), (0.34, -0.20), (0.55, 0.95)), 0.009, 0.6),
    (((0.62, 0.26), (0.55, 0.22), (0.30, 0.30), (0.10, 0.95)), 0.009, 0.6),
)


def _wire_points(g: Geometry[float], frame: Frame, wires: tuple[_Wire, ...], peak: float) -> Points:
    """Points along curves."""
    n = max(12, int(1.9 / frame.pixel))
    edges = np.arange(n + 1) / n
    weights = np.stack([(1 - edges) ** 3, 3 * edges * (1 - edges) ** 2, 3 * edges**2 * (1 - edges), edges**3])
    knots = np.array([wire[0] for wire in wires])
    ends_x = (knots[:, :, 0, None] * weights).sum(axis=1)
    ends_y = (knots[:, :, 1, None] * weights).sum(axis=1)
    steps = np.hypot(ends_x[:, 1:] - ends_x[:, :-1], ends_y[:, 1:] - ends_y[:, :-1])
    x, y = to_frame(g, 0.5 * (ends_x[:, 1:] + ends_x[:, :-1]), 0.5 * (ends_y[:, 1:] + ends_y[:, :-1]))
    line = np.repeat(np.arange(len(wires)), n)
    width = np.array([wire[1] for wire in wires])
    density = np.array([wire[2] for wire in wires])[:, None] * peak
    return Points(line, x.ravel(), y.ravel(), width[line], (density * steps).ravel())


def rib_step(strength: float, places: Places) -> tuple[float, float, float]:
    """The step of a broken rib.

    Parameters
    ----------
    strength : float
        0 to 1.
    places : Places
        Side and height.

    Returns
    -------
    tuple of float
        How far in rib spacings, side and height.
    """
    shift = 0.28 * strength if strength >= NOTHING else 0.0
    return shift, float(places.fracture_side), places.fracture_y

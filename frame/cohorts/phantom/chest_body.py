"""The healthy chest: thickness of soft tissue and bone along each ray, and the air of the lungs.

Everything is a length of the ray through something, so that what lies one behind the other adds up; the grey
curve comes last, in :mod:`frame.cohorts.phantom.chest`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from math import pi
from typing import Any, Final

import numpy as np

from frame.cohorts.phantom.chest_anatomy import Geometry, Places
from frame.cohorts.phantom.curves import Arcs, Numbers, Whole, draw_stack, joined, sample_arcs
from frame.cohorts.phantom.grain import Frame, Plane, soft_step

__all__ = ["Chest", "chest_of", "to_frame"]

#: Vessels that leave each hilum; their sides and mean directions.
_PRIMARY: Final = 9
_SIDES: Final = np.repeat((-1.0, 1.0), _PRIMARY)
_DIRECTIONS: Final = np.tile(np.linspace(-1.20, 1.42, _PRIMARY), 2)


@dataclass
class Chest:
    """The parts of a stack of chests on the frame; findings change them before they are put together.

    All arrays have the shape (n, side, side); of one chest (:meth:`one`) the shape (side, side).

    Attributes
    ----------
    x, y, u : numpy.ndarray of float32
        Coordinates in the patient's body, and the distance from its middle.
    left : numpy.ndarray of float32
        1 in the patient's left half (image's right), 0 in the right.
    inside : numpy.ndarray of float32
        Depth within the rib cage: 0 at its wall, 1 in the middle, negative outside.
    dome : numpy.ndarray of float32
        Height of the diaphragm above or below each pixel.
    lung : numpy.ndarray of float32
        Share of lung, 0 to 1.
    air : numpy.ndarray of float32
        Length of air along the ray.
    tissue : numpy.ndarray of float32
        Attenuation of everything but bone, vessels and air.
    bone : numpy.ndarray of float32
        Attenuation of bone.
    vessels : numpy.ndarray of float32
        Attenuation of the lung's vessels.
    heart : numpy.ndarray of float32
        Share of the heart and great vessels, 0 to 1.
    metal : numpy.ndarray of float32
        Attenuation of devices.
    """

    x: Plane
    y: Plane
    u: Plane
    left: Plane
    inside: Plane
    dome: Plane
    lung: Plane
    air: Plane
    tissue: Plane
    bone: Plane
    vessels: Plane
    heart: Plane
    metal: Plane

    def one(self, k: int) -> Chest:
        """One chest of a stack; what changes it in place changes the stack."""
        return Chest(**{part.name: getattr(self, part.name)[k] for part in fields(self)})


def to_frame(g: Geometry[Any], x: Any, y: Any) -> tuple[Any, Any]:
    """Places in the body to places in the frame.

    Parameters
    ----------
    g : Geometry
        Gives the pose; of one image, or arrays that fit to the places.
    x, y : float or numpy.ndarray
        Coordinates in the patient's body.

    Returns
    -------
    x, y : float or numpy.ndarray
        Coordinates in the frame, same shape.
    """
    c, s = np.cos(g.turn) * g.scale, np.sin(g.turn) * g.scale
    return c * x - s * y + g.shift_x, s * x + c * y + g.shift_y


def chest_of(
    g: Geometry[Plane],
    frame: Frame,
    places: Sequence[Places],
    jumps: Sequence[tuple[float, float, float]],
) -> Chest:
    """Draw healthy chests.

    Parameters
    ----------
    g : Geometry
        Lengths of n images.
    frame : Frame
        Where to draw.
    places : sequence of Places
        Of each image's patient; the course of the vessels is read.
    jumps : sequence of tuple of float
        Of each image a step in the ribs: how far (in rib spacings), side (-1 or 1) and height.

    Returns
    -------
    Chest
        Their parts, as stacks of n.
    """
    c, s = np.cos(g.turn) / g.scale, np.sin(g.turn) / g.scale
    from_x, from_y = frame.x - g.shift_x, frame.y - g.shift_y
    x = c * from_x + s * from_y
    y = c * from_y - s * from_x
    u = np.abs(x)
    left = (x > 0).astype(np.float32)
    soft = (frame.softness / g.scale).astype(np.float32)
    inside = _inside(g, y, u)
    dome = _dome(g, u, left)
    lung = soft_step(inside * 0.42, np.maximum(soft, 0.018))
    lung *= soft_step(dome - y, np.maximum(soft, 0.016))
    lung *= soft_step(u - (g.pedicle - 0.03), np.maximum(soft, 0.03))
    heart = _heart(g, x, y, soft)
    depth = np.sqrt(np.clip(inside, 0.0, 1.0))
    thick = _thickness(g, x, y, u, soft)
    air = lung * (0.46 + 0.36 * depth)
    # The lung behind the domes, and behind and in front of the heart.
    behind = soft_step(inside * 0.42, 0.03) * soft_step(dome + 0.16 - y, 0.06)
    air += (behind - behind * lung) * 0.07
    air *= 1.0 - heart * 0.80
    tissue = thick + heart * 0.22
    tissue += _abdomen(x, y, dome, left)
    tissue += _breasts(g, y, u, dome, soft)
    bone = _ribs(g, x, y, u, inside, dome, jumps, soft)
    bone += _spine(g, x, y, u, heart)
    bone += _shoulders(g, y, u, soft)
    tissue -= _airways(g, x, y, u, soft)
    vessels = _vessels(g, frame, places)
    hilum_left = np.exp(-(np.square(x - 0.17) + np.square((y + 0.13) * 0.75)) * 55.0)
    hilum_right = np.exp(-(np.square(x + 0.16) + np.square((y + 0.08) * 0.75)) * 55.0)
    vessels += (hilum_left + hilum_right) * (0.15 * g.vessels)
    return Chest(x, y, u, left, inside, dome, lung, air, tissue, bone, vessels, heart, np.zeros_like(x))


def _inside(g: Geometry[Plane], y: Plane, u: Plane) -> Plane:
    """Depth within the rib cage, widest at the base, each lung with a rounded tip beside the spine."""
    base = 0.5 * (g.dome_right + g.dome_left) + 0.04
    t = np.maximum((base - y) * (1.0 / (base - g.apex)), 0.0)
    wide = np.square(u * (1.0 / g.wall)) * (1.0 + 0.30 * t - 0.06 * np.minimum(base - y, 0.0))
    # Power 3.5 by multiplications and a root of a number that is not negative.
    rise = t * t * t * np.sqrt(t)
    depth: Plane = 1.0 - wide - rise * (1.0 + 3.0 * np.square(u - 0.24))
    return depth


def _dome(g: Geometry[Plane], u: Plane, left: Plane) -> Plane:
    """Height of the diaphragm: a dome on each side that falls to a sharp angle at the wall."""
    height = left * (g.dome_left - g.dome_right) + g.dome_right
    fall = np.maximum(u - 0.52, 0.0)
    found: Plane = height + 0.42 * np.square(u - 0.34) + 2.6 * np.square(fall)
    return found


def _heart(g: Geometry[Plane], x: Plane, y: Plane, soft: Plane) -> Plane:
    """Share of the heart and great vessels, 0 to 1: two outlines, each a height's distance from the middle.

    The left outline has the aortic knob, the pulmonary trunk and the ventricle down to its tip on the
    diaphragm; the right one the vena cava and the atrium.
    """
    floor = 0.5 * (g.dome_right + g.dome_left)
    top = floor - 1.75 * g.heart
    t = np.minimum(np.maximum((y - top) * (1.0 / (floor - 0.02 - top)), 0.0), 1.0)
    bulge = t * (2.0 - t) * (1.0 - g.tilt) + np.square(t) * g.tilt
    tip = np.maximum(y - (floor - 0.30 * g.heart), 0.0)
    left = g.pedicle + (1.22 * g.heart - g.pedicle) * bulge - np.square(tip) * (2.4 / g.heart)
    left += np.exp(np.square((y + 0.44) * (0.80 / g.knob)) * -1.0) * (g.knob * 0.62)
    left += np.exp(np.square((y - top - 0.10) * 9.0) * -1.0) * 0.030
    right_t = np.minimum(np.maximum((y - floor + 1.15 * g.heart) * (1.0 / g.heart), 0.0), 1.4)
    right = g.pedicle - 0.015 + (0.56 * g.heart - g.pedicle + 0.03) * right_t * (2.05 - right_t)
    flare = 0.10 * np.maximum(-0.62 - y, 0.0)
    edge = np.maximum(soft, 0.016)
    heart = soft_step(left - flare - x, edge) * soft_step(right - flare + x, edge)
    return heart * soft_step(g.dome_left + 0.04 - y, 0.05)


def _thickness(g: Geometry[Plane], x: Plane, y: Plane, u: Plane, soft: Plane) -> Plane:
    """Thickness of the body: trunk, shoulders, neck and arms; thinner towards its edges."""
    edge = np.maximum(soft, 0.012)
    slope = np.maximum(u - 0.20, 0.0)
    shoulder = y - (-1.06 + 0.42 * slope)
    neck = soft_step(0.24 + 0.02 * g.ap - u, 0.025)
    above = np.maximum(soft_step(shoulder, 0.03), neck)
    flare = soft_step(-0.34 - y, 0.10) * (1.30 - g.body)
    lateral = g.body + flare + 0.05 * np.maximum(y - 0.2, 0.0) - u
    trunk = soft_step(lateral, edge) * above
    rounded = np.sqrt(np.clip(lateral * 2.2, 0.0, 1.0))
    thin = np.clip(shoulder * 1.6 + 0.30, 0.25, 1.0)
    thick = trunk * (0.30 + 0.70 * rounded) * thin * (g.tissue * 1.02)
    arms, chin = g.arms[:, 0, 0] > 0, g.chin[:, 0, 0] > 0
    if arms.any():
        centre = g.body[arms] + 0.30 + 0.08 * y[arms]
        arm = np.sqrt(np.clip(1.0 - np.square((u[arms] - centre) * 6.0), 0.0, 1.0))
        arm *= soft_step(y[arms] + 0.30, 0.08)
        thick[arms] = np.maximum(thick[arms], arm * (0.55 * g.tissue[arms]))
    if chin.any():
        q = np.square(x[chin] * 2.9) + np.square((y[chin] + 1.22) * 2.6)
        thick[chin] += soft_step((1.0 - q) * 0.3, 0.03) * 0.55
    return thick


def _abdomen(x: Plane, y: Plane, dome: Plane, left: Plane) -> Plane:
    """More tissue below the diaphragm, most in the liver."""
    below: Plane = soft_step(y - dome - 0.02, 0.05)
    more = 0.42 - 0.10 * left + 0.25 * np.minimum(np.maximum(y - dome, 0.0), 0.6)
    below *= more * np.minimum(1.35 - np.square(x), 1.0)
    return below


def _breasts(g: Geometry[Plane], y: Plane, u: Plane, dome: Plane, soft: Plane) -> Plane:
    """Breast shadows: round below with a clear edge, fading upwards and over the abdomen."""
    low = g.dome_right - 0.18 + 0.20 * g.breast
    q = np.square((u - 0.50) * (1.0 / 0.40)) + np.square((y - low) * (1.0 / 0.38))
    shadow = soft_step((1.0 - q) * 0.19, np.maximum(soft, 0.02)) * soft_step(y - low + 0.12, 0.20)
    return shadow * (1.0 - 0.72 * soft_step(y - dome, 0.03)) * (0.24 * g.breast)


def _ribs(
    g: Geometry[Plane],
    x: Plane,
    y: Plane,
    u: Plane,
    inside: Plane,
    dome: Plane,
    jumps: Sequence[tuple[float, float, float]],
    soft: Plane,
) -> Plane:
    """Ribs, seen from behind and in front, and the bright line of the cage's wall."""
    bent = y - 0.10 * np.square(y)
    slope = g.rib_slope
    turn = 2 * pi / g.rib_spacing
    phase = (bent - slope * (0.02 * u + 0.40 * np.square(u))) * turn + g.rib_phase
    for k, (far, side, height) in enumerate(jumps):
        if far:
            near = np.exp(-np.square((y[k] - height) * 6.0))
            near *= soft_step((x[k] * side) - 0.50, max(float(soft[k, 0, 0]), 0.012))
            phase[k] += near * (2 * pi * far)
    wave = np.cos(phase)
    within = soft_step(inside * 0.42 + 0.01, np.maximum(soft, 0.016))
    fade = soft_step(dome + 0.12 - y, 0.12)
    wide = np.where(soft < 0.012, np.float32(0.22), np.float32(0.45))
    band = soft_step(wave - 0.30, wide)
    # The edges of a rib are brightest; band (1 - band) is largest there.
    posterior = (0.70 * band + 1.1 * band * (1.0 - band)) * (0.55 + 0.45 * np.clip((u - 0.1) * 2.0, 0.0, 1.0))
    wave = np.cos((bent + slope * (0.62 * u - 0.28 * np.square(u))) * (turn * 0.80) + 1.7 * g.rib_phase)
    anterior = soft_step(wave - 0.25, wide + 0.1) * np.clip((u - 0.30) * 3.4, 0.0, 1.0)
    anterior *= soft_step(y + 0.62, 0.15)
    bones = (0.175 * posterior + 0.075 * anterior) * within * fade
    wall = within * (1.0 - within) * fade * np.minimum(u * 3.0, 1.0)
    return (bones + 0.62 * wall) * g.bone


def _spine(g: Geometry[Plane], x: Plane, y: Plane, u: Plane, heart: Plane) -> Plane:
    """A column of vertebrae with their discs and pedicles."""
    column = np.exp(np.square(u * (1.0 / 0.088)) ** 2 * -1.0)
    discs = np.cos(y * (2 * pi / 0.118) + 0.8 * g.rib_phase)
    pedicles = np.exp(np.square((u - 0.052) * 45.0) * -1.0) * np.maximum(-discs, 0.0)
    size = 0.34 + 0.10 * np.clip(y, -1.0, 0.6)
    return (column * size * (1.0 + 0.10 * discs) + 0.06 * pedicles) * g.bone


def _shoulders(g: Geometry[Plane], y: Plane, u: Plane, soft: Plane) -> Plane:
    """Clavicles, shoulder blades and the heads of the upper arms; nothing of them lies below the middle."""
    rows = slice(0, (y.shape[-2] * 11) // 20)
    bones = np.zeros_like(y)
    bones[:, rows] = _shoulder_rows(g, y[:, rows], u[:, rows], soft)
    return bones


def _shoulder_rows(g: Geometry[Plane], y: Plane, u: Plane, soft: Plane) -> Plane:
    """The upper rows of the shoulders."""
    edge = np.maximum(soft, 0.010)
    run = np.clip((u - 0.06) * (1.0 / 0.76), 0.0, 1.0)
    middle = g.clavicle - (0.20 - 0.10 * g.ap) * run + 0.050 * np.sin(run * (2 * pi))
    off = np.abs(y - middle)
    ends = soft_step(u - 0.055, 0.015) * soft_step(0.86 - u, 0.03)
    thick = 0.026 + 0.010 * np.square(run - 0.5) * 4
    tube = soft_step(thick - off, edge)
    bones = (0.20 * tube + 0.30 * tube * (1.0 - tube)) * ends
    inward = 0.10 * g.ap
    border = u - (0.70 - inward + 0.10 * np.clip(y + 0.60, 0.0, 0.7))
    span = soft_step(y + 0.64, 0.05) * soft_step(-0.14 - y, 0.08)
    blade = soft_step(border, np.maximum(soft, 0.02)) * soft_step(0.22 - border, 0.08)
    bones += blade * (0.45 - 0.36 * blade) * span
    ridge = np.abs(y - (-0.60 - 0.38 * (u - 0.62)))
    bones += (
        soft_step(0.022 - ridge, np.maximum(soft, 0.015))
        * soft_step(u - 0.60, 0.05)
        * (0.13 * soft_step(0.98 - u, 0.03))
    )
    head = np.sqrt(np.square(u - 0.99) + np.square(y + 0.63))
    bones += soft_step(0.125 - head, np.maximum(soft, 0.020)) * 0.15
    shown: Plane = bones * g.bone
    return shown


def _airways(g: Geometry[Plane], x: Plane, y: Plane, u: Plane, soft: Plane) -> Plane:
    """Air in the windpipe and its two branches."""
    edge = np.maximum(soft, 0.014)
    pipe = soft_step(0.040 - np.abs(x + 0.008), edge) * soft_step(-0.26 - y, 0.04)
    branch = y - (-0.27 + 0.75 * u)
    mains = soft_step(0.030 - np.abs(branch) * 0.8, edge) * soft_step(0.17 - u, 0.02)
    return pipe * 0.24 + mains * 0.12


def _vessels(g: Geometry[Plane], frame: Frame, places: Sequence[Places]) -> Plane:
    """The lung's vessels: trunks that leave the hilum in all directions, each dividing."""
    n = 2 * _PRIMARY
    numbers = np.stack([one.vessels for one in places])
    u = np.moveaxis(numbers[:, : 7 * n].reshape(-1, 7, n), 1, 0)
    size = g.vessels[:, 0].astype(np.float64)
    side = np.broadcast_to(_SIDES, u[0].shape)
    low = _DIRECTIONS + 0.36 * (u[0] - 0.5)
    trunk = Arcs(
        x=(side * (0.155 + 0.05 * (u[1] - 0.5))).ravel(),
        y=(
            -0.105 - 0.025 * side + 0.07 * np.minimum(np.abs(low), 1.0) * np.sign(low) + 0.05 * (u[2] - 0.5)
        ).ravel(),
        angle=np.where(side > 0, low, pi - low).ravel(),
        length=((0.36 + 0.15 * np.abs(low) + 0.05 * low) * (0.75 + 0.5 * u[3])).ravel(),
        bend=(side * (0.30 + 1.5 * (u[4] - 0.5))).ravel(),
        width=((0.0115 + 0.0035 * low) * (0.75 + 0.5 * u[5]) * size).ravel(),
        taper=np.full(low.size, 0.70),
        strength=((0.145 + 0.065 * low) * (0.6 + 0.7 * u[6]) * size).ravel(),
        fade=np.full(low.size, 0.60),
    )
    turns = np.moveaxis(numbers[:, 7 * n : 23 * n].reshape(-1, 4, n, 4), 1, 0).reshape(4, -1, 4)
    drawn = [(trunk, n), (_branches(trunk, (0.18, 0.36, 0.56, 0.76), turns), 4 * n)]
    parts = [(sample_arcs(arcs, frame), per_image) for arcs, per_image in drawn]
    image: Whole = np.concatenate([points.line // per_image for points, per_image in parts])
    points = joined([points for points, _ in parts])
    pose = {name: getattr(g, name)[image, 0, 0] for name in ("turn", "scale", "shift_x", "shift_y")}
    x, y = to_frame(replace(g, **pose), points.x, points.y)
    return draw_stack(frame, replace(points, x=x, y=y), image, len(places))


def _branches(parents: Arcs, shares: tuple[float, ...], u: Numbers) -> Arcs:
    """Branches that leave their parents at shares of the length, to both sides in turn.

    ``u`` holds uniform numbers, shape (4, parents, shares).
    """
    n = len(parents.x)
    at = np.array(shares) + 0.12 * (u[0] - 0.5)
    x, y, direction = parents.at(at)
    sign = np.where((np.arange(n)[:, None] + np.arange(len(shares))) % 2 == 0, 1.0, -1.0)
    along = np.ones(at.shape)
    return Arcs(
        x=x.ravel(),
        y=y.ravel(),
        angle=(direction + sign * (0.35 + 0.5 * u[1])).ravel(),
        length=(parents.length[:, None] * (1.0 - 0.55 * at) * (0.45 + 0.40 * u[2])).ravel(),
        bend=(sign * (0.2 - 0.8 * u[3])).ravel(),
        width=(parents.width * 0.72)[:, None].repeat(len(shares), 1).ravel() * (1.0 - 0.7 * at.ravel()),
        taper=along.ravel() * 0.5,
        strength=((parents.strength * 0.90)[:, None] * (1.0 - parents.fade[:, None] * at)).ravel(),
        fade=along.ravel() * 0.6,
    )

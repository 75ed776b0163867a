"""The patient and the pose of a drawn chest: from a row of a table to lengths.

Lengths are half widths of the image. The image's left is the patient's right. The patient's numbers are
deviations (mean 0, standard deviation 1, at most 2.2); they do not depend on age, sex or race.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from math import pi
from typing import Any, Final, Generic, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frame.cohorts.phantom.grain import Plane, bounded
from frame.cohorts.phantom.seeds import column_of_seeds, stream

__all__ = [
    "ANATOMY",
    "LOOKS",
    "VESSEL_NUMBERS",
    "Geometry",
    "Look",
    "Places",
    "draw_anatomy",
    "geometry_of",
    "places_of",
    "stacked",
]

_Number = TypeVar("_Number")

#: The fourteen numbers of a patient.
ANATOMY: Final = (
    "body_width",
    "soft_tissue",
    "breast_shadow",
    "cage_width",
    "cage_height",
    "diaphragm_height",
    "diaphragm_difference",
    "heart_width",
    "heart_tilt",
    "aortic_knob",
    "vessel_size",
    "rib_spacing",
    "rib_slope",
    "clavicle_height",
)


#: How many random numbers the vessels of a patient take.
VESSEL_NUMBERS: Final = 414


@dataclass(frozen=True)
class Look:
    """How a site's radiographs look.

    Attributes
    ----------
    gamma : float
        Exponent of the grey curve; above 1 is darker lungs.
    exposure : float
        Factor of all attenuation.
    black, white : float
        Grey values of air and of complete absorption.
    sharpening : float
        Strength of edge enhancement.
    noise : float
        Standard deviation of the grain.
    marker : str
        Letter of the side marker, ``L`` or ``R``.
    marker_x, marker_y : float
        Where the marker lies.
    collimation : float
        Mean width of a black border left by the collimator.
    child : float
        1 for a children's hospital: wide short chest, large heart, level ribs.
    """

    gamma: float
    exposure: float
    black: float
    white: float
    sharpening: float
    noise: float
    marker: str
    marker_x: float
    marker_y: float
    collimation: float
    child: float


#: The looks of the six chest sites, ``site_look`` 0 to 5.
LOOKS: Final = (
    Look(1.18, 1.00, 0.01, 0.97, 0.35, 0.014, "L", 0.82, -0.86, 0.00, 0.0),
    Look(1.02, 1.06, 0.04, 0.93, 0.10, 0.017, "R", -0.84, -0.84, 0.02, 0.0),
    Look(1.10, 0.97, 0.01, 0.95, 0.25, 0.013, "L", 0.84, -0.60, 0.01, 0.0),
    Look(1.28, 0.95, 0.00, 0.98, 0.45, 0.015, "R", -0.80, -0.90, 0.03, 0.0),
    Look(0.92, 1.00, 0.06, 0.88, 0.15, 0.016, "L", 0.86, -0.74, 0.00, 0.0),
    Look(1.05, 1.02, 0.02, 0.95, 0.20, 0.017, "L", 0.80, -0.88, 0.06, 1.0),
)


def draw_anatomy(seed: int, cohort: str, numbers: Any) -> pd.DataFrame:
    """The lasting numbers of patients.

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
        One row a patient in this order: ``patient_seed`` (int64) and the columns of :data:`ANATOMY`
        (float64). A patient's row does not depend on the others.
    """
    seeds = column_of_seeds(seed, cohort, "chest patient", numbers)
    values = np.array(
        [bounded(stream(int(one), "chest anatomy").standard_normal(len(ANATOMY)).tolist()) for one in seeds]
    )
    table = pd.DataFrame(values.reshape(len(seeds), len(ANATOMY)), columns=list(ANATOMY))
    table.insert(0, "patient_seed", seeds)
    return table


@dataclass(frozen=True, eq=False)
class Places:
    """Where a patient's findings lie, if he has them, and the turns of his vessels: the same in all images.

    Attributes
    ----------
    effusion, pneumothorax, atelectasis, pleural, opacity : int
        Side, -1 the patient's right (image's left), 1 the left.
    both : bool
        Effusion on both sides.
    zone, pneumonia_zone : int
        Lobe of consolidation and of pneumonia: 0 right lower, 1 left lower, 2 right upper, 3 left upper.
    lesion_x, lesion_y, lesion_r : tuple of float
        Lung lesions: place in the lung on two scales from 0 to 1 with the side as sign of x, and radius.
    fracture_side : int
        Side of broken ribs.
    fracture_y : float
        Height of the break.
    device : int
        0 central line, 1 breathing tube and line, 2 pacemaker, 3 leads and wires.
    vessels : numpy.ndarray of float64, shape (VESSEL_NUMBERS,)
        Uniform numbers for the course of the vessels.
    rib_phase : float
        Where the first rib lies, 0 to 2 pi.
    bubble : float
        Size of the air bubble in the stomach; negative is none.
    """

    effusion: int
    both: bool
    pneumothorax: int
    atelectasis: int
    pleural: int
    opacity: int
    zone: int
    pneumonia_zone: int
    lesion_x: tuple[float, ...]
    lesion_y: tuple[float, ...]
    lesion_r: tuple[float, ...]
    fracture_side: int
    fracture_y: float
    device: int
    vessels: NDArray[np.float64]
    rib_phase: float
    bubble: float

    def with_device(self, device: int) -> Places:
        """The same places with another kind of device."""
        return replace(self, device=device)


@lru_cache(maxsize=64)
def places_of(patient_seed: int) -> Places:
    """The places of a patient's findings.

    Parameters
    ----------
    patient_seed : int
        From :func:`draw_anatomy`.

    Returns
    -------
    Places
        The same for all images of the patient.
    """
    random = stream(patient_seed, "chest places")
    u = random.random(24).tolist()

    def side(value: float, right: float) -> int:
        return -1 if value < right else 1

    n_lesions = 1 if u[8] < 0.5 else 2
    lesion_sides = (side(u[9], 0.7), -side(u[9], 0.7))
    return Places(
        effusion=side(u[0], 0.58),
        both=u[1] < 0.3,
        pneumothorax=side(u[2], 0.65),
        atelectasis=side(u[3], 0.35),
        pleural=side(u[4], 0.5),
        opacity=side(u[5], 0.7),
        zone=_zone(u[6], (0.14, 0.26, 0.70)),
        pneumonia_zone=_zone(u[7], (0.50, 0.88, 0.95)),
        lesion_x=tuple(lesion_sides[k] * (0.44 + 0.24 * u[10 + k]) for k in range(n_lesions)),
        lesion_y=tuple(0.38 + 0.26 * u[12 + k] for k in range(n_lesions)),
        lesion_r=tuple(0.09 + 0.06 * u[14 + k] for k in range(n_lesions)),
        fracture_side=side(u[16], 0.5),
        fracture_y=-0.25 + 0.35 * u[17],
        device=_zone(u[18], (0.3, 0.6, 0.8)),
        vessels=random.random(VESSEL_NUMBERS),
        rib_phase=2 * pi * u[21],
        bubble=0.60 - u[20] * 1.2,
    )


def _zone(value: float, bounds: tuple[float, ...]) -> int:
    """Number of bounds at or below a value."""
    return sum(value >= bound for bound in bounds)


@dataclass(frozen=True)
class Geometry(Generic[_Number]):
    """Lengths of one image, half widths, and how it was taken; or of a stack of images (:func:`stacked`).

    Attributes
    ----------
    turn, shift_x, shift_y, scale : float
        Pose: rotation (radians), shift and scale of the patient in the frame.
    apex, wall : float
        Height of the lungs' tips and half width of the cage at the base.
    dome_right, dome_left : float
        Heights of the two domes of the diaphragm.
    body, tissue, breast : float
        Half width of the trunk, factor of its thickness, strength of the breast shadow (0 to 1).
    heart, tilt, pedicle, knob : float
        Half width of the heart, its tilt (radians), half width of the vessels above it, radius of the knob.
    vessels : float
        Factor of the lung vessels.
    rib_spacing, rib_slope, rib_phase, bone : float
        Pattern and contrast of the ribs.
    clavicle : float
        Height of the inner end of the clavicles.
    ap : float
        1 for AP, 0 for PA.
    exposure, gamma, chin, arms : float
        Exposure factor and grey exponent of this image; chin in the frame; arms beside the trunk.
    """

    turn: _Number
    shift_x: _Number
    shift_y: _Number
    scale: _Number
    apex: _Number
    wall: _Number
    dome_right: _Number
    dome_left: _Number
    body: _Number
    tissue: _Number
    breast: _Number
    heart: _Number
    tilt: _Number
    pedicle: _Number
    knob: _Number
    vessels: _Number
    rib_spacing: _Number
    rib_slope: _Number
    rib_phase: _Number
    bone: _Number
    clavicle: _Number
    ap: _Number
    exposure: _Number
    gamma: _Number
    chin: _Number
    arms: _Number


def stacked(geometries: list[Geometry[float]]) -> Geometry[Plane]:
    """The lengths of several images, to be drawn together.

    Parameters
    ----------
    geometries : list of Geometry
        One an image.

    Returns
    -------
    Geometry
        Each length an array of float32 of shape (n, 1, 1).
    """
    return Geometry(
        **{
            part.name: np.array([getattr(g, part.name) for g in geometries], dtype=np.float32)[:, None, None]
            for part in fields(Geometry)
        }
    )


def geometry_of(
    row: Mapping[str, Any],
    strength: Mapping[str, float],
    places: Places,
    look: Look,
    z: list[float],
    u: list[float],
) -> Geometry[float]:
    """Lengths of one image.

    Parameters
    ----------
    row : mapping
        ``view``, ``age`` and the columns of :data:`ANATOMY`.
    strength : mapping of str to float
        How strongly each finding shows, 0 to 1.
    places : Places
        Of the patient.
    look : Look
        Of the site.
    z : list of float
        Eight standard normal numbers of the image, for pose and exposure.
    u : list of float
        Two uniform numbers of the image.

    Returns
    -------
    Geometry
        Findings that change lengths (heart, upper mediastinum, loss of volume) are in it.
    """
    a = {name: float(row[name]) for name in ANATOMY}
    ap = 1.0 if row["view"] == "AP" else 0.0
    child = look.child
    age = float(row["age"])
    years = 50.0 if age != age else min(max(age, 0.0), 100.0)
    dome = 0.30 - 0.045 * a["diaphragm_height"] - 0.034 * z[0] - 0.09 * ap - 0.10 * child
    lift = 0.09 * strength["atelectasis"]
    heart = (0.335 + 0.020 * a["heart_width"] + 0.008 * z[1]) * (1.0 + 0.09 * ap + 0.12 * child)
    heart *= 1.0 + 0.28 * strength["cardiomegaly"]
    pedicle = 0.105 + 0.008 * a["aortic_knob"] + 0.012 * ap + 0.03 * child
    return Geometry(
        turn=(0.018 + 0.020 * ap) * z[2],
        shift_x=0.025 * z[3],
        shift_y=0.03 * z[4],
        scale=(1.08 + 0.045 * z[5]) * (0.97 if ap else 1.0) * (1.0 - 0.10 * child),
        apex=-0.80 - 0.025 * a["cage_height"] + 0.04 * ap + 0.14 * child,
        wall=0.76 + 0.030 * a["cage_width"],
        dome_right=dome - (lift if places.atelectasis < 0 else 0.0),
        dome_left=dome
        + 0.045
        + 0.025 * a["diaphragm_difference"]
        - (lift if places.atelectasis > 0 else 0.0),
        body=0.91 + 0.045 * a["body_width"] + 0.03 * a["soft_tissue"],
        tissue=1.0 + 0.07 * a["soft_tissue"],
        breast=(1.0 - child) * min(max(0.45 + 0.35 * a["breast_shadow"], 0.0), 1.0),
        heart=heart,
        tilt=0.32 + 0.13 * a["heart_tilt"] - 0.15 * strength["cardiomegaly"],
        pedicle=pedicle + 0.038 * strength["enlarged_cardiomediastinum"],
        knob=(0.072 + 0.010 * a["aortic_knob"]) * (1.0 - 0.5 * child)
        + 0.016 * strength["enlarged_cardiomediastinum"],
        vessels=1.0 + 0.13 * a["vessel_size"],
        rib_spacing=0.146 + 0.007 * a["rib_spacing"] - 0.020 * child,
        rib_slope=1.0 + 0.18 * a["rib_slope"] - 0.4 * child,
        rib_phase=places.rib_phase,
        bone=1.25 - 0.006 * years,
        clavicle=-0.60 + 0.025 * a["clavicle_height"] - 0.10 * ap,
        ap=ap,
        exposure=look.exposure * (1.0 + 0.045 * z[6]),
        gamma=look.gamma * (1.0 + 0.10 * z[7]),
        chin=ap if u[0] < 0.2 else 0.0,
        arms=1.0 if u[1] < 0.45 else 0.0,
    )

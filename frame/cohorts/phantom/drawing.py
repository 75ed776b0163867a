"""From the population to pictures: the one place that knows the columns of both.

What is planted enters a picture here. Age weakens findings by their severity, so that any finding can be the
control; race adds its texture; a site has its look.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frame.cohorts.phantom.chest import draw_anatomy, draw_chest
from frame.cohorts.phantom.fundus import draw_eyes, draw_fundus
from frame.cohorts.phantom.seeds import column_of_seeds
from frame.cohorts.phantom.skin import draw_lesions, draw_skin
from frame.cohorts.phantom.truth import RACES, SOURCES, PhantomTruth, modality_of
from frame.cohorts.schema import FINDINGS

__all__ = ["OLDEST_BAND", "TEXTURE_COLUMNS", "drawing_table", "pictures"]

#: Age in years from which findings are weakened.
OLDEST_BAND: Final = 80.0
#: What the drawings call the textures.
_TEXTURES: Final = {"fixed": "linear", "random_phase": "random_phase", "none": "none"}
TEXTURE_COLUMNS: Final = ("texture", "texture_group", "texture_amplitude")
#: The look of the children's site, which it keeps where sites have none.
_CHILD_LOOK: Final = SOURCES["chest"].index("vindr_pcxr")


def drawing_table(truth: PhantomTruth, images: pd.DataFrame) -> pd.DataFrame:
    """What is drawn in each image of a source.

    Parameters
    ----------
    truth : PhantomTruth
        The world.
    images : pandas.DataFrame
        Rows of one source from :func:`frame.cohorts.phantom.population.population`; all of them or some.

    Returns
    -------
    pandas.DataFrame
        The same rows with index 0, 1, ... and the columns that the drawing of the modality takes.
    """
    source = str(images["source"].iloc[0])
    made = {"chest": _chest, "skin": _skin, "fundus": _fundus}[modality_of(source)]
    table = made(truth, source, images.reset_index(drop=True))
    table["seed"] = column_of_seeds(truth.seed, source, "image", images["image_number"])
    return table


def pictures(table: pd.DataFrame, source: str, side: int) -> NDArray[np.uint8]:
    """Draw the images of one source.

    Parameters
    ----------
    table : pandas.DataFrame
        Rows of :func:`drawing_table`.
    source : str
        The source.
    side : int
        Pixels a side.

    Returns
    -------
    numpy.ndarray of uint8, shape (n, side, side) or (n, side, side, 3)
        Grey or red, green, blue.
    """
    drawn = {"chest": draw_chest, "skin": draw_skin, "fundus": draw_fundus}[modality_of(source)]
    return drawn(table, side)


def _chest(truth: PhantomTruth, source: str, images: pd.DataFrame) -> pd.DataFrame:
    table = _of_subjects(draw_anatomy, truth, source, images["patient_number"])
    table["view"] = images["view"].astype(object)
    look = SOURCES["chest"].index(source)
    table["site_look"] = look if truth.site == "look" or look == _CHILD_LOOK else 0
    table["age"] = images["age"].astype(np.float64)
    faded = np.where(images["age"] >= OLDEST_BAND, truth.age.contrast, 1.0)
    for finding in FINDINGS["chest"]:
        severity = images[f"{finding}_severity"].to_numpy(dtype=np.float64)
        table[finding] = severity if finding == truth.age.control else severity * faded
    return _textured(table, truth, images["race"])


def _skin(truth: PhantomTruth, source: str, images: pd.DataFrame) -> pd.DataFrame:
    table = _of_subjects(draw_lesions, truth, source, images["subject_number"])
    table["skin_tone"] = images["tone"].astype(np.int64) - 1
    table["site_look"] = SOURCES["skin"].index(source)
    table["malignant"] = images["malignant_severity"].astype(np.float64)
    return table


def _fundus(truth: PhantomTruth, source: str, images: pd.DataFrame) -> pd.DataFrame:
    table = _of_subjects(draw_eyes, truth, source, images["patient_number"])
    table["glaucoma"] = images["glaucoma_severity"].astype(np.float64)
    return _textured(table, truth, images["race"])


def _of_subjects(draw: Any, truth: PhantomTruth, source: str, numbers: pd.Series) -> pd.DataFrame:
    """The lasting numbers of each image's patient or lesion, drawn once for each of them."""
    distinct, at = np.unique(numbers.to_numpy(dtype=np.int64), return_inverse=True)
    lasting: pd.DataFrame = draw(truth.seed, source, distinct)
    return lasting.iloc[at].reset_index(drop=True)


def _textured(table: pd.DataFrame, truth: PhantomTruth, race: pd.Series) -> pd.DataFrame:
    amplitude = truth.race.amplitude
    table["texture"] = _TEXTURES[truth.race.texture]
    table["texture_group"] = race.map({level: group for group, level in enumerate(RACES)}).astype(np.int64)
    table["texture_amplitude"] = -1.0 if amplitude is None else amplitude
    return table

"""The population of the phantom world: one table for each source, made from the truth alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from frame.cohorts.phantom.population_chest import chest_population
from frame.cohorts.phantom.population_fundus import fundus_population
from frame.cohorts.phantom.population_skin import skin_population
from frame.cohorts.phantom.truth import PhantomTruth, modality_of
from frame.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["population"]

_DRAWN: Final = {"chest": chest_population, "skin": skin_population, "fundus": fundus_population}


def population(truth: PhantomTruth, source: str) -> pd.DataFrame:
    """All images of one source, with what is true and what is recorded of each.

    Parameters
    ----------
    truth : PhantomTruth
        The world.
    source : str
        One of its sources.

    Returns
    -------
    pandas.DataFrame
        One row an image; columns as in the module of the modality.

    Raises
    ------
    frame.InputError
        If the world does not draw that source.
    """
    if source not in truth.sources:
        raise InputError(
            f"The phantom world does not draw {source!r}; it draws {', '.join(truth.sources) or 'nothing'}."
        )
    return _DRAWN[modality_of(source)](truth, source)

"""Fundus images of the glaucoma part of FairVision, one a patient: what is true, and what is recorded.

Columns of the table: ``source``, ``image_number``, ``patient_number``; ``image_id``, ``patient_id``, ``file``
and ``released_split`` as the site module reads them; ``age``, ``sex``, ``race``, ``ethnicity`` are true and
``*_recorded`` what is recorded; ``glaucoma_true``, ``glaucoma_severity``, ``glaucoma_recorded``.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from frame.cohorts.phantom.identities import numbered
from frame.cohorts.phantom.quotas import evenly, generator, latent_finding, shuffled
from frame.cohorts.phantom.truth import PhantomTruth

__all__ = ["FOLDERS", "NO_ETHNICITY", "fundus_population"]

#: Folder of each split in the release.
FOLDERS: Final = {"train": "Training", "validation": "Validation", "test": "Test"}
_HISPANIC: Final = 0.08
NO_ETHNICITY: Final = 0.06


def fundus_population(truth: PhantomTruth, source: str) -> pd.DataFrame:
    """The images of the fundus source.

    Parameters
    ----------
    truth : PhantomTruth
        The world.
    source : str
        ``fairvision``.

    Returns
    -------
    pandas.DataFrame
        See the module.
    """

    def random(purpose: str) -> np.random.Generator:
        return generator(truth.seed, source, purpose)

    sizes = truth.sizes(source).model_dump()
    splits = np.repeat(list(sizes), list(sizes.values())).astype(object)
    n = len(splits)
    table = pd.DataFrame({"released_split": splits})
    table["race"] = evenly(n, truth.fundus_races, random("race"))
    table["sex"] = shuffled(n, {"female": truth.female, "male": 1 - truth.female}, random("sex"))
    table["age"] = np.round(np.clip(random("age").normal(61, 16, n), 18, 95), 2)
    hispanic = {"Hispanic": _HISPANIC, "non-Hispanic": 1 - _HISPANIC}
    table["ethnicity"] = shuffled(n, hispanic, random("ethnicity"))
    known = random("recorded").random(n) >= NO_ETHNICITY
    table["ethnicity_recorded"] = table["ethnicity"].where(known)
    for name in ("race", "sex", "age"):
        table[f"{name}_recorded"] = table[name]
    present, severity = latent_finding(random("glaucoma"), np.arange(n), truth.glaucoma, 0.0)
    table["glaucoma_true"], table["glaucoma_severity"] = present, severity
    table["glaucoma_recorded"] = pd.arrays.IntegerArray(present.astype(np.int8), np.zeros(n, dtype=bool))
    table["patient_number"] = random("patient numbers").permutation(n)
    table = table.sort_values("patient_number", ignore_index=True)
    table["image_number"] = np.arange(n)
    names = numbered(table["patient_number"], "data_9{:04d}")
    table["image_id"] = table["patient_id"] = names
    table["file"] = "Glaucoma/" + table["released_split"].map(FOLDERS) + "/" + names + ".npz"
    table.insert(0, "source", source)
    return table

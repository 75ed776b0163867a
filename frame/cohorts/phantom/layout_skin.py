"""The tables of ISIC 2019, Fitzpatrick17k and DDI, as their owners release them.

Odd rows are those of the releases: ages, sexes and lesions that are blank, skin types that nobody annotated
(-1; these photographs are left out, and only their rows are written), and photographs that are neither
malignant nor benign.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from frame.cohorts.phantom.identities import sums
from frame.cohorts.phantom.quotas import generator, one_of
from frame.cohorts.phantom.table_bytes import csv_bytes
from frame.cohorts.phantom.truth import PhantomTruth

__all__ = ["NOT_ANNOTATED", "ddi_files", "fitzpatrick17k_files", "isic_2019_files"]

_CLASSES: Final = ("MEL", "NV", "BCC", "AK", "BKL", "DF", "VASC", "SCC", "UNK")
_PLACES: Final = ("anterior torso", "upper extremity", "lower extremity", "head/neck", "posterior torso", "")
#: One photograph more in so many of Fitzpatrick17k has no skin type.
NOT_ANNOTATED: Final = 30
_GROUPS: Final = {1: "12", 2: "12", 3: "34", 4: "34", 5: "56", 6: "56"}


def isic_2019_files(truth: PhantomTruth, images: pd.DataFrame, side: int) -> dict[str, bytes]:
    """The two tables of ISIC 2019; arguments and result as of the other layouts."""
    random = generator(truth.seed, "isic_2019", "table")
    diagnoses = pd.DataFrame({"image": images["image_id"]})
    for name in _CLASSES:
        diagnoses[name] = np.where(images["diagnosis"] == name, "1.0", "0.0")
    is_lesion = images["subject_kind"] == "lesion"
    metadata = pd.DataFrame(
        {
            "image": images["image_id"],
            "age_approx": [f"{age:.0f}" if age == age else "" for age in images["age_recorded"]],
            "anatom_site_general": one_of(random, len(images), _PLACES, 0.3),
            "lesion_id": images["subject_id"].where(is_lesion, ""),
            "sex": images["sex_recorded"],
        }
    )
    tables = {
        "ISIC_2019_Training_GroundTruth.csv": diagnoses,
        "ISIC_2019_Training_Metadata.csv": metadata,
    }
    return {name: csv_bytes(table, name) for name, table in tables.items()}


def fitzpatrick17k_files(truth: PhantomTruth, images: pd.DataFrame, side: int) -> dict[str, bytes]:
    """The table of Fitzpatrick17k; arguments and result as of the other layouts."""
    random = generator(truth.seed, "fitzpatrick17k", "table")
    malignant = images["malignant_true"].to_numpy(dtype=bool)
    neither = images["malignant_recorded"].isna().to_numpy()
    partition = np.where(neither, "non-neoplastic", np.where(malignant, "malignant", "benign"))
    moved = random.integers(-1, 2, len(images)) * (random.random(len(images)) < 0.4)
    table = pd.DataFrame(
        {
            "md5hash": images["image_id"],
            "fitzpatrick_scale": images["tone"],
            "fitzpatrick_centaur": np.clip(images["tone"] + moved, 1, 6),
            "label": images["diagnosis"],
            "nine_partition_label": np.where(neither, "inflammatory", partition + " epidermal"),
            "three_partition_label": partition,
            "qc": "",
            "url": "",
            "url_alphanum": "",
        }
    )
    bare = table.iloc[::NOT_ANNOTATED].copy()
    bare["md5hash"] = sums("fitzpatrick17k", "not annotated", range(len(bare)))
    bare["fitzpatrick_scale"] = -1
    bare["fitzpatrick_centaur"] = -1
    name = "fitzpatrick17k.csv"
    return {name: csv_bytes(pd.concat([table, bare], ignore_index=True), name)}


def ddi_files(truth: PhantomTruth, images: pd.DataFrame, side: int) -> dict[str, bytes]:
    """The table of DDI; arguments and result as of the other layouts."""
    table = pd.DataFrame(
        {
            "": np.arange(len(images)),
            "DDI_ID": images["image_id"],
            "DDI_file": images["file"],
            "skin_tone": images["tone"].map(_GROUPS),
            "malignant": images["malignant_true"].map({True: "TRUE", False: "FALSE"}),
            "disease": images["diagnosis"],
        }
    )
    return {"ddi_metadata.csv": csv_bytes(table, "ddi_metadata.csv")}

"""How many images and subjects a study has, by source, split, subgroup and finding, under every label policy.

One unit per image source. Counts only: no row of a manifest leaves the unit.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from frame.cohorts.labels import BLANK_POLICIES, CODES, UNCERTAIN_POLICIES, LabelPolicy, resolve_labels
from frame.cohorts.schema import FINDINGS, LEVELS, read_manifest_file
from frame.cohorts.sources import sources
from frame.experiments.contract import Unit, all_units, tidy

if TYPE_CHECKING:
    from frame.workspace.layout import Workspace

__all__ = ["TITLE", "collect", "run_unit", "units"]

NAME: Final = "cohort_counts"
TITLE: Final = "images and subjects by source, split, subgroup and finding"

#: Column of a manifest that holds an attribute's level, and the attributes a modality is counted by. ``all``
#: is every image.
COLUMNS: Final = {
    "chest": {
        "sex": "sex",
        "age": "age_band",
        "race": "race",
        "race_recorded": "race_recorded",
        "insurance": "insurance",
        "insurance_recorded": "insurance_recorded",
        "view": "view",
    },
    "skin": {"sex": "sex", "age": "age_band", "skin_type": "skin_type"},
    "fundus": {"sex": "sex", "age": "age_band", "race": "race", "ethnicity": "ethnicity"},
}
NOT_RECORDED: Final = "not recorded"
SPLITS: Final = ("train", "validation", "test")
#: Stands for a label that the source does not give, among the codes that it gives.
_NOT_LABELLED: Final = 9
_CODES: Final = (*CODES, _NOT_LABELLED)
_CODE_VALUES: Final = pd.Series([*CODES, np.nan], name="codes")


def units(workspace: Workspace) -> tuple[Unit, ...]:
    """One unit per image source of the profile."""
    return tuple(
        Unit(source, (f"manifests/{source}.parquet",), {"source": source})
        for source in workspace.profile.sources
    )


def run_unit(workspace: Workspace, unit: Unit) -> pd.DataFrame:
    """Count the images of one source.

    Returns
    -------
    pandas.DataFrame
        Tidy rows. ``quantity`` ``images`` and ``subjects``: ``value`` is the number of images or of subjects
        of a subgroup in a split (``split`` is ``all`` for the whole source, ``attribute`` ``all`` for every
        image). ``quantity`` ``evaluable`` and ``positive``: images of a subgroup with a label for
        ``finding``, and with the finding, under the policy that ``method`` names. A subgroup without an
        image is a row with 0.
    """
    manifest = read_manifest_file(workspace.path(unit.inputs[0]))
    modality = sources()[unit.name].modality
    parts = (
        manifest["split"].map({split: place for place, split in enumerate(SPLITS)}).to_numpy(dtype=np.int64)
    )
    codes = {finding: _label_codes(manifest[finding]) for finding in FINDINGS[modality]}
    subjects = manifest["subject_id"].factorize()[0]
    tables = []
    for attribute, levels in _levels(modality).items():
        groups = _group_codes(manifest, attribute, levels, modality)
        images = _table(groups, parts, np.zeros_like(parts), (len(levels), len(SPLITS), 1))[..., 0]
        # A subject has one split, but may have several levels (of age, of view): it counts in each.
        first = ~pd.DataFrame({"level": groups, "subject": subjects}).duplicated().to_numpy()
        people = _table(groups[first], parts[first], parts[first] * 0, (len(levels), len(SPLITS), 1))[..., 0]
        tables += [_rows(images, levels, attribute, "images"), _rows(people, levels, attribute, "subjects")]
        for finding, found in codes.items():
            counts = _table(groups, parts, found, (len(levels), len(SPLITS), len(_CODES)))
            for uncertain, blank in product(UNCERTAIN_POLICIES, BLANK_POLICIES):
                policy = LabelPolicy(uncertain=uncertain, blank=blank)
                becomes = resolve_labels(_CODE_VALUES, policy).to_numpy()
                named = {"finding": finding, "method": policy_name(policy)}
                evaluable = counts[..., ~np.isnan(becomes)].sum(axis=-1)
                positive = counts[..., becomes == 1].sum(axis=-1)
                tables.append(_rows(evaluable, levels, attribute, "evaluable", **named))
                tables.append(_rows(positive, levels, attribute, "positive", **named))
    rows = pd.concat(tables, ignore_index=True)
    return tidy(rows, experiment=NAME, modality=modality, site=unit.name)


def collect(workspace: Workspace) -> pd.DataFrame:
    """The counts of all sources; counts of sources add up, since no subject is in two of them."""
    return all_units(NAME, workspace, units(workspace))


def policy_name(policy: LabelPolicy) -> str:
    """How a label policy is written in a result."""
    return f"uncertain {policy.uncertain}, blank {policy.blank}"


def _levels(modality: str) -> dict[str, tuple[str, ...]]:
    """The levels of each attribute, ``not recorded`` last."""
    levels = {name: (*LEVELS[column], NOT_RECORDED) for name, column in COLUMNS[modality].items()}
    return {"all": ("all",), **levels}


def _group_codes(
    manifest: pd.DataFrame, attribute: str, levels: tuple[str, ...], modality: str
) -> np.ndarray:
    """The place of each image's level among the levels of an attribute."""
    if attribute == "all":
        return np.zeros(len(manifest), dtype=np.int64)
    recorded = manifest[COLUMNS[modality][attribute]].astype(object).fillna(NOT_RECORDED)
    return recorded.map({level: place for place, level in enumerate(levels)}).to_numpy(dtype=np.int64)


def _label_codes(labels: pd.Series) -> np.ndarray:
    """The place of each label's code in :data:`_CODES`."""
    values = labels.astype("float64").fillna(_NOT_LABELLED)
    return values.map({code: place for place, code in enumerate(_CODES)}).to_numpy(dtype=np.int64)


def _table(groups: np.ndarray, parts: np.ndarray, codes: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """How often each combination occurs."""
    places = np.ravel_multi_index((groups, parts, codes), shape)
    return np.bincount(places, minlength=int(np.prod(shape))).reshape(shape)


def _rows(
    counts: np.ndarray, levels: tuple[str, ...], attribute: str, quantity: str, **named: str
) -> pd.DataFrame:
    """The counts of a quantity, levels by splits, as rows; ``all`` is the sum over splits."""
    full = np.column_stack([counts.sum(axis=1), counts])
    rows = pd.DataFrame(product(levels, ("all", *SPLITS)), columns=["subgroup", "split"])
    return rows.assign(attribute=attribute, quantity=quantity, value=full.ravel().astype(float), **named)

"""How well disease heads on frozen features read each finding, overall and in every subgroup.

One unit per modality, encoder and kind of head. The scores are those that :mod:`frame.workspace.score_stages`
saved; here they are only measured: on test images, with one threshold for all subgroups from validation
images, and with the patient bootstrap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from frame.cohorts.labels import LabelPolicy, resolve_labels
from frame.cohorts.schema import read_manifest_file
from frame.experiments.cohort_counts import COLUMNS
from frame.experiments.contract import Unit, all_units, tidy

if TYPE_CHECKING:
    from frame.workspace.layout import Workspace

__all__ = ["TITLE", "collect", "run_unit", "units"]

NAME: Final = "disease_heads"
TITLE: Final = "AUROC, rates and calibration of disease heads by encoder, finding and subgroup"

#: Measures that read ranks, and the one that reads probabilities.
RANKED: Final = ("auroc", "tpr", "fpr")
CALIBRATION: Final = "ece"
_THRESHOLD: Final = "sensitivity_0.80"
_NO_THRESHOLD: Final = "no validation image has the finding, so that there is no threshold"
_NO_ONE: Final = "no test image has a label and a score"


def units(workspace: Workspace) -> tuple[Unit, ...]:
    """One unit per modality, encoder and kind of head of the profile."""
    from frame.workspace.pooled_features import pooled_sources
    from frame.workspace.score_stages import score_stages

    profile, found = workspace.profile, []
    for stage in score_stages(workspace):
        _, modality, encoder, head = stage.name.split(":")
        manifests = tuple(f"manifests/{source}.parquet" for source in pooled_sources(workspace, modality))
        found.append(
            Unit(
                name=f"{modality}-{encoder}-{head}",
                inputs=(*stage.outputs, *manifests),
                settings={
                    "modality": modality,
                    "encoder": encoder,
                    "head": head,
                    "findings": list(profile.findings_of(modality)),
                    "attributes": list(profile.attributes_of(modality)),
                    **profile.values("labels", "seed", "sizes.resamples", "sizes.smallest_group"),
                },
            )
        )
    return tuple(found)


def run_unit(workspace: Workspace, unit: Unit) -> pd.DataFrame:
    """Measure the saved scores of one encoder and head.

    Returns
    -------
    pandas.DataFrame
        Tidy rows: ``quantity`` is a measure, ``method`` the kind of head, ``attribute`` and ``subgroup`` are
        ``overall`` for all test images. A finding whose head could not be fitted is a row with the reason.
    """
    modality, encoder, head = (str(unit.settings[key]) for key in ("modality", "encoder", "head"))
    scores = pd.read_parquet(workspace.path(unit.inputs[0]))
    heads = pd.read_parquet(workspace.path(unit.inputs[1])).set_index("finding")
    people = _people(workspace, unit, modality)
    people = people.set_index("image_id").loc[scores["image_id"]].reset_index()
    profile = workspace.profile
    policy = LabelPolicy(profile.labels.uncertain, profile.labels.blank)
    tables = []
    for finding in unit.settings["findings"]:
        labels = resolve_labels(people[finding], policy).to_numpy()
        usable = ~np.isnan(labels) & scores[finding].notna().to_numpy()
        reason = str(heads.loc[finding, "reason"]) if scores[finding].isna().all() else ""
        if not reason and not (usable & (scores["split"] == "test").to_numpy()).any():
            reason = _NO_ONE
        if reason:
            table = _not_estimable(reason)
        else:
            table = _measured(workspace, unit, scores, people, finding, labels, usable)
            if heads.loc[finding, "status"] != "converged":
                beside = f"the head is {heads.loc[finding, 'status']}: {heads.loc[finding, 'reason']}"
                table["reason"] = [f"{said}; {beside}" if said else beside for said in table["reason"]]
        tables.append(table.assign(finding=finding))
    same: dict[str, Any] = {"experiment": NAME, "modality": modality, "encoder": encoder, "method": head}
    return tidy(pd.concat(tables, ignore_index=True), split="test", **same)


def collect(workspace: Workspace) -> pd.DataFrame:
    """All encoders and heads. Nothing is tested here, so nothing is corrected."""
    return all_units(NAME, workspace, units(workspace))


def _not_estimable(reason: str) -> pd.DataFrame:
    """A row for each measure of a finding without scores."""
    rows = pd.DataFrame({"quantity": [*RANKED, CALIBRATION]})
    return rows.assign(attribute="overall", subgroup="overall", status="not estimable", reason=reason)


def _people(workspace: Workspace, unit: Unit, modality: str) -> pd.DataFrame:
    columns = list(dict.fromkeys(COLUMNS[modality].get(name, name) for name in unit.settings["attributes"]))
    wanted = list(dict.fromkeys(["image_id", "subject_id", *columns, *unit.settings["findings"]]))
    return pd.concat(
        [read_manifest_file(workspace.path(path), wanted) for path in unit.inputs[2:]], ignore_index=True
    )


def _measured(
    workspace: Workspace,
    unit: Unit,
    scores: pd.DataFrame,
    people: pd.DataFrame,
    finding: str,
    labels: np.ndarray,
    usable: np.ndarray,
) -> pd.DataFrame:
    """Measures of one finding, all images and subgroups, with their bootstrap intervals."""
    from scipy.special import expit

    from frame.inference.resampling import bootstrap

    sizes, modality = workspace.profile.sizes, str(unit.settings["modality"])
    test = usable & (scores["split"] == "test").to_numpy()
    held = usable & (scores["split"] == "validation").to_numpy()
    logits = scores[finding].to_numpy(dtype=np.float64)
    groups = {
        name: people.loc[test, COLUMNS[modality].get(name, name)].astype(object).reset_index(drop=True)
        for name in unit.settings["attributes"]
    }
    ranked: tuple[str, ...] = RANKED
    unthresholded = ""
    if not labels[held].any():
        ranked, unthresholded = RANKED[:1], _NO_THRESHOLD
    tables = []
    for measures, values, scale in (
        (ranked, logits, "logit"),
        ((CALIBRATION,), expit(logits), "probability"),
    ):
        result = bootstrap(
            values[test],
            labels[test].astype(np.int8),
            pd.DataFrame(groups),
            people.loc[test, "subject_id"].to_numpy(),
            measures=measures,
            threshold=_THRESHOLD if len(measures) > 1 else None,
            validation=(values[held], labels[held].astype(np.int8)) if len(measures) > 1 else None,
            scale=scale,
            resamples=sizes.resamples,
            seed=workspace.profile.seed,
            min_size=sizes.smallest_group,
            missing="drop",
        )
        tables.append(result.to_frame())
    rows = pd.concat(tables, ignore_index=True).rename(columns={"group": "subgroup", "measure": "quantity"})
    if unthresholded:
        absent = rows[rows["quantity"] == "auroc"]
        for measure in RANKED[1:]:
            nothing = absent.assign(quantity=measure, status="not estimable", reason=unthresholded)
            nothing[["value", "boot_mean", "sd", "lo", "hi"]] = np.nan
            rows = pd.concat([rows, nothing], ignore_index=True)
    kept = ["attribute", "subgroup", "quantity", "value", "boot_mean", "sd", "lo", "hi"]
    return rows[[*kept, "n_images", "n_positive", "n_patients", "status", "reason"]]

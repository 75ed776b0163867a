"""Stages that fit the disease heads of an encoder and save their scores: one per modality, encoder and head.

A head is fitted for each finding on the training images of all sources that label it. What is saved are the
logits of the validation and test images, which every comparison of subgroups starts from, and a row for each
finding that says what its head was fitted on and whether it could be fitted. Rows carry image ids and stay in
the workspace.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from frame.cohorts.labels import LabelPolicy, resolve_labels
from frame.encoders.features import SIDECAR, STATUS, VECTORS
from frame.errors import InputError
from frame.workspace.feature_stages import feature_folder, named_encoders
from frame.workspace.pooled_features import PooledFeatures, modalities_of, pooled_features, pooled_sources
from frame.workspace.stages import Stage, staleness

if TYPE_CHECKING:
    from frame.workspace.layout import Workspace

__all__ = ["HEADS", "heads_of", "score_stage", "score_stages", "scores_of"]

#: Kinds of heads.
HEADS: Final = ("linear", "mlp")
#: Splits whose scores are saved.
SCORED: Final = ("validation", "test")
_ABOUT: Final = (
    *("finding", "head", "n_labelled", "n_fitted", "n_positive", "n_without_vector", "iterations"),
    *("gradient", "status", "reason"),
)


def score_stages(workspace: Workspace) -> list[Stage]:
    """A stage for each modality, each encoder of the profile whose features are stored, and each head."""
    return [
        score_stage(workspace, modality, name, head)
        for name in named_encoders(workspace)
        for modality in modalities_of(workspace, name)
        for head in HEADS
    ]


def score_stage(workspace: Workspace, modality: str, name: str, head: str = "linear") -> Stage:
    """The stage of one modality, encoder and kind of head."""
    named = pooled_sources(workspace, modality)
    features = [f"{feature_folder(source, name)}/{file}" for source in named for file in _FILES]
    profile = workspace.profile
    return Stage(
        name=f"scores:{modality}:{name}:{head}",
        outputs=(_artefact(modality, name, head), _artefact(modality, name, f"{head}_heads")),
        run=partial(_make_scores, modality, name, head),
        inputs=(*(f"manifests/{source}.parquet" for source in named), *features),
        settings={
            **profile.values("seed", "labels", "sizes.head_rows"),
            "findings": list(profile.findings_of(modality)),
            "sources": list(named),
        },
        modules=("frame.heads.disease_heads", "frame.heads.capped_rows"),
    )


def scores_of(workspace: Workspace, modality: str, name: str, head: str = "linear") -> pd.DataFrame:
    """Saved logits of the validation and test images.

    Returns
    -------
    DataFrame
        ``image_id, split`` and a column of float64 logits per finding, in the order of the manifests; NaN
        where the finding's head could not be fitted.

    Raises
    ------
    frame.InputError
        If they are not there, or were made from something else; the sentence says which command makes them.
    """
    return _read(workspace, modality, name, head, head)


def heads_of(workspace: Workspace, modality: str, name: str, head: str = "linear") -> pd.DataFrame:
    """What the heads behind :func:`scores_of` were fitted on: one row per finding, with a status."""
    return _read(workspace, modality, name, head, f"{head}_heads")


_FILES: Final = (VECTORS, STATUS, SIDECAR)


def _artefact(modality: str, name: str, file: str) -> str:
    return f"scores/{modality}/{name}/{file}.parquet"


def _read(workspace: Workspace, modality: str, name: str, head: str, file: str) -> pd.DataFrame:
    if head not in HEADS:
        raise InputError(f"The head is {head[:40]!r}; it must be one of {', '.join(HEADS)}.")
    stage = score_stage(workspace, modality, name, head)
    if reasons := staleness(workspace, stage):
        raise InputError(
            f"The scores of {name} for {modality} ({head}) are not there or were made from something else "
            f"({reasons[0]}); make them with: frame run disease_heads --profile {workspace.profile.name}."
        )
    return pd.read_parquet(workspace.path(_artefact(modality, name, file)))


def _make_scores(modality: str, name: str, head: str, workspace: Workspace, folder: Path) -> None:
    profile = workspace.profile
    findings = profile.findings_of(modality)
    pooled = pooled_features(workspace, modality, name, ["image_id", "split", *findings])
    split = pooled.rows["split"].to_numpy(dtype=object)
    scored = np.flatnonzero(pooled.ready & np.isin(split, SCORED))
    policy = LabelPolicy(profile.labels.uncertain, profile.labels.blank)
    fitted, about = {}, []
    for finding in findings:
        labels = resolve_labels(pooled.rows[finding], policy).to_numpy()
        labelled = ~np.isnan(labels) & (split == "train")
        made, row = _fit(pooled, labels, labelled, head, profile.sizes.head_rows, profile.seed)
        fitted[finding] = made
        about.append({"finding": finding, "head": head, **row})
    logits = {finding: np.full(len(scored), np.nan) for finding in findings}
    for place, vectors in pooled.blocks(scored):
        for finding, made in fitted.items():
            if made is not None:
                logits[finding][place] = made.logit(vectors)
    table = pooled.rows.loc[scored, ["image_id", "split"]].reset_index(drop=True)
    table = table.assign(**logits)
    table.to_parquet(folder / f"{head}.parquet", index=False, compression="zstd")
    heads = pd.DataFrame(about, columns=_ABOUT)
    heads.to_parquet(folder / f"{head}_heads.parquet", index=False, compression="zstd")


def _fit(
    pooled: PooledFeatures, labels: Any, labelled: Any, head: str, cap: int, seed: int
) -> tuple[Any, dict[str, Any]]:
    """The head of one finding, None where there is none, and what it was fitted on."""
    from frame.heads.capped_rows import capped_rows
    from frame.heads.disease_heads import fit_head

    usable = labelled & pooled.ready
    row: dict[str, Any] = {
        "n_labelled": int(labelled.sum()),
        "n_without_vector": int((labelled & ~pooled.ready).sum()),
        "n_fitted": 0,
        "n_positive": 0,
        "iterations": 0,
        "gradient": float("nan"),
    }
    if not usable.any():
        return None, row | {"status": "not fitted", "reason": "no training image has a label and a vector"}
    rows = capped_rows(usable, cap=cap, seed=seed)
    answers = labels[rows].astype(np.int8)
    made = fit_head(pooled.read(rows), answers, kind="mlp" if head == "mlp" else "linear", seed=seed)
    row |= {"n_fitted": len(rows), "n_positive": int(answers.sum())}
    row |= {key: made.details[key] for key in ("iterations", "gradient") if key in made.details}
    there = made.status not in ("one class", "not fitted")
    return (made if there else None), row | {"status": made.status, "reason": made.reason}

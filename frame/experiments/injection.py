"""Step two on the study's encoders: inject a cause into frozen features and measure everything again.

One unit per encoder of the role ``injection`` and finding of :data:`FINDINGS`, for race on chest radiographs.
Both operators run over their strengths whatever step one says, since Figure 4 shows the curves themselves;
the verdict of a unit keeps the gate of step one. Race is read three ways, see :data:`ATTRIBUTES`, because the
largest group of the pooled images is "Other", mostly images of sites that record no race.

A profile may ask for less under its key ``injection``, see
:class:`frame.experiments.injection_settings.InjectionSettings`; the rows say what was left out.
"""

from __future__ import annotations

import importlib.util
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from frame.audits.suppression import masked_text
from frame.cohorts.labels import LabelPolicy, resolve_labels
from frame.errors import InputError
from frame.experiments.contract import Unit, all_units, tidy
from frame.experiments.injection_settings import ATTRIBUTES, FINDINGS, in_full, left_out_words
from frame.experiments.injection_summary import (
    ALL_FINDINGS,
    GRIDS,
    MODALITY,
    NAME,
    QUANTITIES,
    summary_rows,
)
from frame.mitigation.registry import METHODS, NINE

if TYPE_CHECKING:
    from frame.interventions.verdict import Verdict
    from frame.workspace.layout import Workspace

__all__ = [
    "ALL_FINDINGS",
    "ATTRIBUTES",
    "FINDINGS",
    "GRIDS",
    "MODULES",
    "NAME",
    "QUANTITIES",
    "TITLE",
    "collect",
    "run_unit",
    "units",
]

TITLE: Final = "step two: what the race difference responds to when a cause is injected into frozen features"
#: Modules that are reached through the registry, so that the results are stale when one of them changes.
MODULES: Final = tuple(sorted({METHODS[name].module for name in NINE}))

_ALPHA: Final = 0.05
#: A level of step one that lets every difference through, so that the curves are there whatever it says.
_OPEN: Final = math.nextafter(1.0, 0.0)
_PACKAGES: Final = {
    "sklearn": "scikit-learn",
    "fairlearn": "fairlearn",
    "torch": "torch",
    "concept_erasure": "concept-erasure",
}


def units(workspace: Workspace) -> tuple[Unit, ...]:
    """One unit per encoder of the role ``injection`` that is meant for chest radiographs, and finding."""
    from frame.encoders.features import SIDECAR, STATUS, VECTORS
    from frame.workspace.feature_stages import feature_folder
    from frame.workspace.pooled_features import modalities_of, pooled_sources

    profile = workspace.profile
    named = pooled_sources(workspace, MODALITY)
    found = []
    for encoder in profile.encoders.get("injection", ()):
        if MODALITY not in modalities_of(workspace, encoder):
            continue
        files = [
            f"{feature_folder(source, encoder)}/{file}"
            for source in named
            for file in (VECTORS, STATUS, SIDECAR)
        ]
        for finding in FINDINGS:
            if finding not in profile.findings_of(MODALITY):
                continue
            found.append(
                Unit(
                    name=f"{encoder}-{finding}",
                    inputs=(*(f"manifests/{source}.parquet" for source in named), *files),
                    settings={
                        "encoder": encoder,
                        "finding": finding,
                        "attributes": list(ATTRIBUTES),
                        "sources": list(named),
                        **profile.values("labels", "seed", "sizes.resamples", "sizes.smallest_group"),
                        **profile.values("sizes.head_rows", "injection.methods", "injection.in_full"),
                        **profile.values("sizes.smallest_cell"),
                    },
                )
            )
    return tuple(found)


def run_unit(workspace: Workspace, unit: Unit) -> pd.DataFrame:
    """Run the procedure for one encoder and finding, race read in each of the ways of :data:`ATTRIBUTES`.

    Returns
    -------
    pandas.DataFrame
        Tidy rows; ``method`` is the operator and ``strength`` its strength for every one of
        :data:`QUANTITIES`, and for ``subgroup_value`` of each group. Then ``change_difference`` and
        ``change_disease_auroc`` from nothing to the largest strength, with a paired interval; ``moves`` (1
        or 0); ``precondition`` (1 where the disease AUROC fell at the largest k); and, with ``method``
        ``step one`` or ``verdict``: ``observed``, ``reference`` and ``exceedance``; ``verdict`` and
        ``verdict_of_step_two``, the latter as if step one had let the difference through, both a place in
        :data:`frame.interventions.decision.VERDICTS` with the words in ``reason``; ``note`` and ``caveat``,
        a sentence in ``reason`` each. What could not be run is a row with the reason.

    Raises
    ------
    frame.InputError
        If features are missing, or a package that the methods need.
    """
    from frame.workspace.pooled_features import pooled_features

    _check_packages()
    profile, settings = workspace.profile, unit.settings
    encoder, finding = str(settings["encoder"]), str(settings["finding"])
    columns = ["subject_id", "split", finding, *{one.column: None for one in ATTRIBUTES.values()}]
    pooled = pooled_features(workspace, MODALITY, encoder, columns)
    labels = resolve_labels(
        pooled.rows[finding], LabelPolicy(profile.labels.uncertain, profile.labels.blank)
    ).to_numpy()
    used = np.flatnonzero(~np.isnan(labels) & pooled.ready)
    silent = int(np.count_nonzero(~np.isnan(labels) & ~pooled.ready))
    people = pooled.rows.loc[used].reset_index(drop=True)
    folder = workspace.state / NAME / unit.name
    tables = []
    try:
        features = _on_disk(pooled, used, profile.features.dtype, folder)
        for attribute in settings["attributes"]:
            rows = _of_one_reading(features, people, labels[used], str(attribute), settings, profile, folder)
            if silent:
                said = f"{silent:,} images with a label have no vector and were left out."
                rows.append(_sentence("note", masked_text(said, _limit(profile))))
            tables.append(pd.DataFrame(rows).assign(attribute=attribute))
        del features
    except BaseException:
        (folder / _VECTORS).unlink(missing_ok=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)
    return tidy(
        pd.concat(tables, ignore_index=True),
        experiment=NAME,
        modality=MODALITY,
        split="test",
        encoder=encoder,
        finding=finding,
    )


def collect(workspace: Workspace) -> pd.DataFrame:
    """All units, and what is said of them together.

    Returns
    -------
    pandas.DataFrame
        The rows of the units, then those of :func:`frame.experiments.injection_summary.summary_rows`.
    """
    rows = all_units(NAME, workspace, units(workspace))
    return pd.concat([rows, summary_rows(rows)], ignore_index=True)


# -- one unit -----------------------------------------------------------------------------------------

_VECTORS: Final = "vectors.npy"


def _on_disk(pooled: Any, rows: np.ndarray, dtype: str, folder: Path) -> np.ndarray:
    """Vectors of some rows as one mapped file, since those of the sources lie in several."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _VECTORS
    made = np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(dtype), shape=(len(rows), pooled.width))
    for place, vectors in pooled.blocks(rows):
        made[place] = vectors
    made.flush()
    del made
    found: np.ndarray = np.load(path, mmap_mode="r")
    return found


def _of_one_reading(
    features: np.ndarray,
    people: pd.DataFrame,
    labels: np.ndarray,
    attribute: str,
    settings: Mapping[str, Any],
    profile: Any,
    folder: Path,
) -> list[dict[str, Any]]:
    """Rows of one finding with race read in one way."""
    from frame.interventions.procedure import mechanism

    reading = ATTRIBUTES[attribute]
    groups = people[reading.column].astype(object)
    full = attribute in in_full(str(settings["injection.in_full"]))
    methods = tuple(name for name in NINE if name in settings["injection.methods"])
    try:
        found = mechanism(
            features,
            pd.Series(labels, name=str(settings["finding"])),
            groups.rename(attribute),
            people["split"].astype(object),
            patients=people["subject_id"].astype(object),
            exclude=[one for one in reading.exclude if (groups == one).any()],
            methods=methods if full else (),
            geometry=full,
            nonlinear=full,
            alpha=_OPEN,
            min_size=profile.sizes.smallest_group,
            resamples=profile.sizes.resamples,
            seed=profile.seed,
            cap=profile.sizes.head_rows,
            folder=folder / attribute,
        )
    except InputError as problem:
        why = masked_text(str(problem).rstrip("."), _limit(profile))
        return [{"method": "verdict", "quantity": "verdict", "value": math.nan} | _failed(why)]
    rows = _rows_of(found, _limit(profile))
    left_out = left_out_words(methods, full=full)
    return [*rows, _sentence("note", left_out)] if left_out else rows


def _limit(profile: Any) -> int:
    """The smallest count that a sentence may tell; 0 where it may tell any."""
    smallest = int(profile.sizes.smallest_cell)
    return smallest if smallest > 1 else 0


def _rows_of(found: Verdict, limit: int) -> list[dict[str, Any]]:
    """The tidy rows of one run of the procedure; no sentence tells a count below the limit."""
    from frame.interventions.decision import decide
    from frame.interventions.operator_grids import RESUMED
    from frame.interventions.verdict_hiding import hidden_in_splits, masked_notes, reason_without_counts

    audit = found.step_one
    decided, held = found.decided, found.precondition
    beyond = ("", ()) if held is None else decide({"p": 0.0, "alpha": 1.0, "reason": ""}, decided, held)
    gate = {"p": audit.p, "alpha": _ALPHA, "reason": audit.reason}
    final = (found.verdict, found.reasons) if held is None else decide(gate, decided, held)
    told = replace(found, verdict=final[0], reasons=final[1], settings={**found.settings, "alpha": _ALPHA})
    table = found.strengths.drop(columns=["experiment", "modality", "encoder", "finding", "attribute"])
    rows: list[dict[str, Any]] = []
    for row in table.to_dict("records"):
        if row["status"] == "not run":
            row |= {"status": "not estimable", "reason": f"not run: {row['reason']}"}
        rows.append({str(key): value for key, value in row.items()})
    for row in found.changes.to_dict("records"):
        rows.append(_change(row))
        if row["quantity"] == "difference":
            moved = row["moves"]
            judged = {"value": float(moved)} if not pd.isna(moved) else _failed(str(row["reason"]))
            of = {"method": row["operator"], "strength": row["strength"], "quantity": "moves"}
            rows.append(of | judged)
    if held is not None:
        judged = {"value": float(bool(held.holds)), "reason": held.reason}
        rows.append(
            {
                "method": "entanglement",
                "strength": held.change.largest,
                "quantity": "precondition",
                **(judged if held.holds is not None else _failed(held.reason)),
            }
        )
    rows += _step_one(audit)
    rows.append(_verdict("verdict", *final))
    rows.append(_verdict("verdict_of_step_two", *beyond) if held is not None else _stopped(found))
    hidden = hidden_in_splits(found, limit)
    for one in rows:
        one["reason"] = reason_without_counts(str(one.get("reason", "")), hidden, limit)
    # A run that was ended and went on stores what an undisturbed one does.
    rows += [_sentence("note", note) for note in masked_notes(found, limit) if RESUMED not in note]
    rows += [_sentence("caveat", caveat) for caveat in told.caveats]
    return rows


def _step_one(audit: Any) -> list[dict[str, Any]]:
    counts = {"n_images": audit.n_images, "n_positive": audit.n_positive, "n_patients": audit.n_patients}
    same = {"method": "step one", **counts}
    reference = audit.reference
    low, high = (math.nan, math.nan) if reference is None else reference.interval
    values: dict[str, dict[str, Any]] = {
        "observed": {"value": audit.observed},
        "reference": {
            "value": math.nan if reference is None else reference.mean,
            "lo": low,
            "hi": high,
        },
        "exceedance": {"value": audit.p, "p": audit.p},
    }
    return [
        {**same, "quantity": name, **one}
        | (_failed(audit.reason or "step one gives no reference") if math.isnan(one["value"]) else {})
        for name, one in values.items()
    ]


def _change(row: Mapping[Any, Any]) -> dict[str, Any]:
    kept = {
        "method": row["operator"],
        "strength": row["strength"],
        "quantity": f"change_{row['quantity']}",
        "value": row["change"],
        "lo": row["lo"],
        "hi": row["hi"],
        "p": row["p"],
        "reason": row["reason"],
    }
    return kept | (_failed(str(row["reason"])) if row["status"] != "ok" else {})


def _verdict(quantity: str, verdict: str, reasons: Sequence[str]) -> dict[str, Any]:
    from frame.interventions.decision import VERDICTS

    said = verdict + (f": {'; '.join(reasons)}" if reasons else "")
    return {
        "method": "verdict",
        "quantity": quantity,
        "value": float(VERDICTS.index(verdict)),
        "reason": said,
    }


def _stopped(found: Verdict) -> dict[str, Any]:
    """Step two was not run: step one gives no exceedance, or one of 1."""
    why = "; ".join(found.reasons) or "step one gives an exceedance of 1"
    return {"method": "verdict", "quantity": "verdict_of_step_two", **_failed(why)}


def _sentence(quantity: str, words: str) -> dict[str, Any]:
    return {"method": "verdict", "quantity": quantity, "value": 0.0, "reason": words}


def _failed(reason: str) -> dict[str, Any]:
    return {"value": math.nan, "status": "not estimable", "reason": reason or "it could not be judged"}


def _check_packages() -> None:
    """Say which package is missing before anything is fitted."""
    for module, name in _PACKAGES.items():
        if importlib.util.find_spec(module) is None:
            raise InputError(
                f"The injection experiment needs {name}; install it with: "
                "pip install 'frame-audit[mitigation]'."
            )

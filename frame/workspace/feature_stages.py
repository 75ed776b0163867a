"""Stages that put the images of a source through an encoder: one per source and encoder of a profile.

The artefact is a feature store, see :mod:`frame.encoders.features`. A stage resumes what a killed run or a
task with a range of rows left of the same store, and the store stays as it was until the new one is whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from frame.cohorts.image_rows import ImageRows, column_texts, open_image_rows
from frame.cohorts.schema import read_manifest_file
from frame.cohorts.sources import sources
from frame.encoders.extraction import ExtractionReport, Progress, extract_features
from frame.encoders.features import SIDECAR, STATUS, VECTORS, FeatureStore, file_sha256, open_features
from frame.encoders.loaders import load_encoder, loader_module
from frame.encoders.loaders.checkpoints import library_module
from frame.encoders.panel import LIBRARIES, Encoder, encoder, weights_folder
from frame.encoders.preprocessing import preprocessing_of
from frame.errors import InputError
from frame.workspace.stages import Stage

if TYPE_CHECKING:
    from frame.workspace.layout import Workspace

__all__ = [
    "Extraction",
    "extract_source",
    "feature_folder",
    "feature_stage",
    "feature_stages",
    "features_of",
    "named_encoders",
]

#: Roles of a profile whose encoders are used as they are, so that their vectors are stored.
FROZEN: Final = ("panel", "injection", "image_text")
#: Columns of the panel that do not change a vector.
_WORDS: Final = ("title", "licence", "gating", "modalities", "roles", "cites", "note")
#: Training images that an encoder is fitted to, at most.
_FIT_IMAGES: Final = 2000
#: What an encoder that is fitted to images is called in the column of architectures.
_FITTED: Final = ("image_pca",)


@dataclass(frozen=True)
class Extraction:
    """How an extraction is run; none of it is a setting of the study.

    Attributes
    ----------
    batch_size : int
        Images that go through the encoder at once.
    workers : int, optional
        Threads that prepare images.
    device : str
        ``auto`` (an accelerator where there is one), or a device in torch's words.
    precision : str, optional
        Instead of the profile's.
    compile : bool
        Have torch compile the network.
    allow_pickle : bool
        Read a checkpoint that can run code when it is read.
    rows : (int, int), optional
        Only the blocks of these rows.
    say : callable, optional
        Told how far it is.
    """

    batch_size: int = 64
    workers: int | None = None
    device: str = "auto"
    precision: str | None = None
    compile: bool = False
    allow_pickle: bool = False
    rows: tuple[int, int] | None = None
    say: Callable[[Progress], None] | None = None


def named_encoders(workspace: Workspace) -> tuple[str, ...]:
    """Encoders of a profile whose vectors are stored, in the profile's order."""
    roles = workspace.profile.encoders
    return tuple(dict.fromkeys(name for role in FROZEN for name in roles.get(role, ())))


def feature_stages(workspace: Workspace) -> list[Stage]:
    """A stage for each source with images and each encoder of the profile that is meant for its modality."""
    named = named_encoders(workspace)
    return [
        feature_stage(workspace, source, name)
        for source, settings in workspace.profile.sources.items()
        if settings.images
        for name in named
        if sources()[source].modality in encoder(name).modalities
    ]


def feature_folder(source: str, name: str) -> str:
    """Folder of a feature store, relative to the workspace."""
    return f"features/{source}/{name}"


def feature_stage(
    workspace: Workspace, source: str, name: str, extraction: Extraction | None = None
) -> Stage:
    """The stage of one source and one encoder, which the profile need not name.

    Raises
    ------
    frame.InputError
        If there is no such encoder, the source is read without images, or the encoder is meant for other
        modalities.
    """
    row = encoder(name)
    modality = sources()[source].modality
    if not workspace.profile.sources[source].images:
        raise InputError(
            f"Source {source} is read without images in profile {workspace.profile.name}, so that there is "
            "nothing to extract."
        )
    if modality not in row.modalities:
        raise InputError(
            f"Encoder {name} is meant for {', '.join(row.modalities)}, and {source} has {modality} images."
        )
    folder = feature_folder(source, name)
    features = workspace.profile.features
    return Stage(
        name=f"features:{source}:{name}",
        outputs=tuple(f"{folder}/{file}" for file in (VECTORS, STATUS, SIDECAR)),
        run=partial(_extract, source, name, extraction or Extraction()),
        inputs=(f"manifests/{source}.parquet", f"images/{source}/index.parquet"),
        fingerprints={} if row.kind == "pixels" else {"weights": partial(_weights_state, row)},
        settings={
            "encoder": {key: value for key, value in asdict(row).items() if key not in _WORDS},
            "preprocessing": preprocessing_of(row, features.preprocessing).declared,
            **workspace.profile.values("features.precision", "features.dtype", "features.normalise"),
            **({"seed": workspace.profile.seed} if row.kind == "untrained" or _is_fitted(row) else {}),
            **{f"package {package}": _version(package) for package in LIBRARIES[row.library]},
        },
        modules=("frame.encoders.extraction", loader_module(row)),
        in_place=True,
    )


def extract_source(workspace: Workspace, source: str, name: str, extraction: Extraction) -> ExtractionReport:
    """Put the images of a source through an encoder; manifest and images must be there.

    Raises
    ------
    frame.InputError
        If the encoder cannot be loaded, or as of :func:`frame.encoders.extraction.extract_features`.
    """
    manifest = workspace.path(f"manifests/{source}.parquet")
    images = open_image_rows(workspace.path(f"images/{source}"))
    row, features = encoder(name), workspace.profile.features
    loaded = load_encoder(
        name,
        seed=workspace.profile.seed,
        device=_device(row, extraction.device),
        allow_pickle=extraction.allow_pickle,
        mode=features.preprocessing,
        fit_on=_training_pixels(workspace, source, images) if _is_fitted(row) else None,
    )
    return extract_features(
        loaded,
        images,
        column_texts(manifest, "image_id"),
        workspace.path(feature_folder(source, name)),
        manifest_sha256=file_sha256(manifest),
        batch_size=extraction.batch_size,
        dtype=features.dtype,
        precision=extraction.precision or features.precision,
        workers=extraction.workers,
        rows=extraction.rows,
        normalise=features.normalise,
        compile=extraction.compile,
        say=extraction.say,
    )


def features_of(workspace: Workspace, source: str, name: str, *, verify: bool = True) -> FeatureStore:
    """The finished features of a source, checked against its manifest and the profile's settings.

    Parameters
    ----------
    workspace : Workspace
        Where the artefacts lie.
    source, name : str
        Image source and encoder.
    verify : bool
        As of :func:`frame.encoders.features.open_features`.

    Raises
    ------
    frame.InputError
        If they are not finished, stale, damaged, or made with other settings.
    """
    features = workspace.profile.features
    manifest = workspace.path(f"manifests/{source}.parquet")
    expected = {
        "encoder": name,
        "preprocessing_sha256": preprocessing_of(encoder(name), features.preprocessing).sha256,
        "images_sha256": open_image_rows(workspace.path(f"images/{source}")).pixels_sha256,
        "dtype": features.dtype,
        "normalised": features.normalise,
    }
    return open_features(
        workspace.path(feature_folder(source, name)),
        manifest_sha256=file_sha256(manifest),
        expected=expected,
        verify=verify,
    )


def _extract(source: str, name: str, extraction: Extraction, workspace: Workspace, folder: Path) -> None:
    report = extract_source(workspace, source, name, extraction)
    counts = report.sidecar["counts"]
    if not counts.get("ready"):
        reasons = "; ".join(f"{count:,}: {reason}" for reason, count in counts.items())
        raise InputError(
            f"Source {source}: no image of {report.n_rows:,} has a vector of {name} ({reasons}); check the "
            "images and the weights."
        )


def _training_pixels(workspace: Workspace, source: str, images: ImageRows) -> np.ndarray:
    """Pixels of training images drawn with the profile's seed, in row order."""
    split = read_manifest_file(workspace.path(f"manifests/{source}.parquet"), columns=["split"])["split"]
    train = np.flatnonzero((split == "train").to_numpy())
    reasons = np.array(images.reasons(0, images.n_rows))
    if len(reasons) != len(split):
        raise InputError(
            f"The image store '{source}' does not hold the images of the manifest; prepare the images again: "
            "frame data build."
        )
    train = train[reasons[train] == ""]
    if len(train) > _FIT_IMAGES:
        train = np.random.default_rng(workspace.profile.seed).choice(train, _FIT_IMAGES, replace=False)
    return images.read(np.sort(train))


def _is_fitted(row: Encoder) -> bool:
    return row.kind == "pixels" and row.architecture in _FITTED


def _device(row: Encoder, asked: str) -> str:
    if row.kind == "pixels":
        return "cpu"
    if asked != "auto":
        return asked
    torch = library_module(row, "torch", "torch")
    return "cuda" if torch.cuda.is_available() else "cpu"


def _weights_state(row: Encoder, workspace: Workspace) -> str:
    """A text that changes with the weights: with local files their sizes and times, else what names them."""
    local = weights_folder(row.name)
    if local is None:
        return f"{row.package} {_version(row.package)}" if row.package else f"revision {row.revision}"
    files = sorted(path for path in local.rglob("*") if path.is_file()) if local.is_dir() else [local]
    found = hashlib.sha256()
    for file in files:
        status = file.stat()
        found.update(json.dumps([file.name, status.st_size, status.st_mtime_ns]).encode())
    return found.hexdigest()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"

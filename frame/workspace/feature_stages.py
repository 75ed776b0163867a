"""Stages that put the images of a source through an encoder: one per source and encoder of a profile.

The artefact is a feature store, see :mod:`frame.encoders.features`. A stage resumes what a killed run or a
task with a range of rows left of the same store, and the store stays as it was until the new one is whole.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from frame.cohorts.image_rows import column_texts, open_image_rows
from frame.cohorts.sources import sources
from frame.encoders.block_making import check_compiled
from frame.encoders.extraction import FIT_IMAGES, ExtractionReport, Progress, extract_features, rows_to_fit
from frame.encoders.features import (
    SIDECAR,
    STATUS,
    VECTORS,
    FeatureStore,
    file_sha256,
    open_features,
    read_features_sidecar,
)
from frame.encoders.loaders import load_encoder, loader_module
from frame.encoders.loaders.checkpoints import library_module
from frame.encoders.panel import LIBRARIES, Encoder, encoder, weights_folder
from frame.encoders.precision import check_precision
from frame.encoders.preprocessing import preprocessing_of
from frame.errors import InputError
from frame.workspace.stages import Stage, read_sidecar

if TYPE_CHECKING:
    from frame.workspace.layout import Workspace

__all__ = [
    "Extraction",
    "check_extraction",
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
#: What an encoder that is fitted to images is called in the column of architectures.
_FITTED: Final = ("image_pca",)
#: Devices that can be asked for, each also with a number, such as ``cuda:1``.
_DEVICES: Final = ("cpu", "cuda", "mps", "xpu")
#: Endings of files of weights.
_ENDINGS: Final = (".safetensors", ".bin", ".pth", ".pt")


@dataclass(frozen=True)
class Extraction:
    """How an extraction is run.

    Of it only ``precision`` and ``compile`` decide the vectors: they stand among the settings of a stage, so
    that a store made with another precision than the profile's does not pass for the profile's.

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
    heard : callable, optional
        Given the report of an extraction that a stage runs.
    """

    batch_size: int = 64
    workers: int | None = None
    device: str = "auto"
    precision: str | None = None
    compile: bool = False
    allow_pickle: bool = False
    rows: tuple[int, int] | None = None
    say: Callable[[Progress], None] | None = None
    heard: Callable[[ExtractionReport], None] | None = None


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
    extraction = extraction or Extraction()
    looks: dict[str, Callable[[Workspace], str | None]] = {}
    if row.kind != "pixels":
        looks["weights"] = partial(_weights_state, row)
    if row.loader:
        looks["loader"] = partial(_loader_state, row)
    return Stage(
        name=f"features:{source}:{name}",
        outputs=tuple(f"{folder}/{file}" for file in (VECTORS, STATUS, SIDECAR)),
        run=partial(_extract, source, name, extraction),
        inputs=(f"manifests/{source}.parquet", f"images/{source}/index.parquet"),
        fingerprints=looks,
        settings={
            "encoder": {key: value for key, value in asdict(row).items() if key not in _WORDS},
            "preprocessing": preprocessing_of(row, features.preprocessing).declared,
            **workspace.profile.values("features.dtype", "features.normalise"),
            "features.precision": extraction.precision or features.precision,
            "compiled": extraction.compile,
            **({"fitted to at most": FIT_IMAGES} if _is_fitted(row) else {}),
            **({"seed": workspace.profile.seed} if row.kind == "untrained" or _is_fitted(row) else {}),
            **{f"package {package}": _version(package) for package in LIBRARIES[row.library]},
        },
        modules=("frame.encoders.extraction", loader_module(row)),
        in_place=True,
    )


def check_extraction(row: Encoder, extraction: Extraction, precision: str) -> None:
    """Check how an extraction is asked for, before anything is made or found fresh.

    Parameters
    ----------
    row : Encoder
        The encoder.
    extraction : Extraction
        What is asked for.
    precision : str
        The profile's.

    Raises
    ------
    frame.InputError
        If the device is unknown or not there, or the precision or compiling does not go with the encoder.
    """
    is_network = row.kind != "pixels"
    check_precision(row.name, extraction.precision or precision, is_network=is_network)
    if extraction.compile:
        check_compiled(row.name, is_network=is_network)
    asked = extraction.device
    kind, colon, number = asked.partition(":")
    if asked != "auto" and (kind not in _DEVICES or bool(colon) != number.isdecimal()):
        raise InputError(
            f"The device is {asked[:40]!r}; it must be auto, or one of {', '.join(_DEVICES)}, which may "
            "have a number, such as cuda:1."
        )
    if is_network and kind == "cuda":
        cuda = library_module(row, "torch", "torch").cuda
        n_devices = cuda.device_count() if cuda.is_available() else 0
        if int(number or 0) >= n_devices:
            raise InputError(
                f"The device is {asked!r}, and torch sees {n_devices} of its kind here; give auto."
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
    fitted = None
    if _is_fitted(row):
        fitted = rows_to_fit(column_texts(manifest, "split"), images, workspace.profile.seed)
    loaded = load_encoder(
        name,
        seed=workspace.profile.seed,
        device=_device(row, extraction.device),
        allow_pickle=extraction.allow_pickle,
        mode=features.preprocessing,
        fit_on=images.read(fitted) if fitted is not None else None,
    )
    if fitted is not None:
        loaded = replace(
            loaded,
            settings={
                **loaded.settings,
                "seed": workspace.profile.seed,
                "fitted_to_at_most": FIT_IMAGES,
                "fitted_to": len(fitted),
                "fitted_to_ids_sha256": _digest_of(column_texts(manifest, "image_id"), fitted, images.n_rows),
            },
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


def features_of(
    workspace: Workspace, source: str, name: str, *, verify: bool = True, extraction: Extraction | None = None
) -> FeatureStore:
    """The finished features of a source, checked against its manifest and the profile's settings.

    Parameters
    ----------
    workspace : Workspace
        Where the artefacts lie.
    source, name : str
        Image source and encoder.
    verify : bool
        As of :func:`frame.encoders.features.open_features`.
    extraction : Extraction, optional
        How they were made, where the precision is not the profile's or the network was compiled.

    Raises
    ------
    frame.InputError
        If they are not finished, stale, damaged, made with other settings, another loader or other weights
        than those that are on this machine, or no image has a vector.
    """
    features = workspace.profile.features
    extraction = extraction or Extraction()
    row, folder = encoder(name), workspace.path(feature_folder(source, name))
    about = (read_features_sidecar(folder) or {}).get("settings", {})
    manifest = workspace.path(f"manifests/{source}.parquet")
    expected = {
        "encoder": name,
        "preprocessing_sha256": preprocessing_of(row, features.preprocessing).sha256,
        "images_sha256": open_image_rows(workspace.path(f"images/{source}")).pixels_sha256,
        "dtype": features.dtype,
        "normalised": features.normalise,
        "precision": extraction.precision or features.precision,
        "compiled": extraction.compile,
        "width": row.width,
        **_expected_settings(row, about, workspace.profile.seed),
    }
    store = open_features(folder, manifest_sha256=file_sha256(manifest), expected=expected, verify=verify)
    _check_weights(workspace, row, feature_stage(workspace, source, name, extraction))
    if not store.ready.any():
        raise InputError(
            f"The features of {name} for {source} have no row with a vector, of {store.shape[0]:,}; check "
            "the images and the weights, and extract them again: frame features extract."
        )
    return store


def _extract(source: str, name: str, extraction: Extraction, workspace: Workspace, folder: Path) -> None:
    report = extract_source(workspace, source, name, extraction)
    if extraction.heard:
        extraction.heard(report)
    counts = report.sidecar["counts"]
    if not counts.get("ready"):
        reasons = "; ".join(f"{count:,}: {reason}" for reason, count in counts.items())
        raise InputError(
            f"Source {source}: no image of {report.n_rows:,} has a vector of {name} ({reasons}); check the "
            "images and the weights."
        )


def _expected_settings(row: Encoder, about: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """What the sidecar of a store must say about the encoder; ``about``: what it says."""
    # A folder of one's own proves no revision; there the weights themselves are compared.
    own_weights = about.get("origin") in ("local", "loader")
    expected = {
        "checkpoint": row.checkpoint,
        "revision": "" if own_weights else row.revision,
        "architecture": row.architecture,
        "pooling": row.pooling,
        "width": row.width,
        "library": row.library,
    }
    if row.kind == "untrained" or _is_fitted(row):
        expected["seed"] = seed
    if _is_fitted(row):
        expected["fitted_to_at_most"] = FIT_IMAGES
    if row.loader:
        expected["loader"] = row.loader
        loader_sha256 = _loader_sha256(row)
        if loader_sha256 is not None:
            expected["loader_sha256"] = loader_sha256
    return {f"settings.{key}": value for key, value in expected.items()}


def _check_weights(workspace: Workspace, row: Encoder, stage: Stage) -> None:
    """Compare the files of weights that are on this machine with those of the run that made a store."""
    made = read_sidecar(workspace, stage)
    if row.kind == "pixels" or made is None:
        return
    now, before = _weights_state(row, workspace), str(made["files"].get("weights"))
    downloaded = now.startswith("cached") and not before.startswith(("cached", "files"))
    if now.startswith(("files", "cached")) and not downloaded and now != before:
        raise InputError(
            f"The features in '{row.name}' were made with other weights than those that are on this machine; "
            "extract them again: frame features extract."
        )


def _digest_of(ids: Iterable[str], rows: np.ndarray, n_rows: int) -> str:
    """Digest of the ids of some rows, in their order."""
    chosen = np.zeros(n_rows, dtype=bool)
    chosen[rows] = True
    found = hashlib.sha256()
    for image_id, is_chosen in zip(ids, chosen, strict=True):
        if is_chosen:
            found.update(f"{len(image_id)}:{image_id}".encode())
    return found.hexdigest()


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
    if local is not None:
        files = sorted(path for path in local.rglob("*") if path.is_file()) if local.is_dir() else [local]
        return f"files {_stamps(files)}"
    if row.package:
        return f"{row.package} {_version(row.package)}"
    if not row.revision and row.checkpoint:
        files = _cached_files(row)
        if files:
            return f"cached {_stamps(files)}"
    return f"revision {row.revision}"


def _stamps(files: Iterable[Path]) -> str:
    found = hashlib.sha256()
    for file in files:
        status = file.stat()
        found.update(json.dumps([file.name, status.st_size, status.st_mtime_ns]).encode())
    return found.hexdigest()


def _cached_files(row: Encoder) -> list[Path]:
    """Files of weights of a checkpoint without a revision, in the library's own cache."""
    if row.library == "torchxrayvision":
        folder = Path.home() / ".torchxrayvision" / "models_data"
        return sorted(folder.glob("nih-pc-chex-mimic_ch-google-openi-kaggle-densenet121-*.pt"))
    home = os.environ.get("HF_HOME") or str(Path.home() / ".cache" / "huggingface")
    hub = Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub")
    checkpoint = hub / f"models--{row.checkpoint.replace('/', '--')}"
    try:
        commit = (checkpoint / "refs" / "main").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        commit = "*"
    found = sorted((checkpoint / "snapshots").glob(f"{commit or '*'}/*"))
    return [file for file in found if file.suffix in _ENDINGS and file.is_file()]


def _loader_state(row: Encoder, workspace: Workspace) -> str | None:
    return _loader_sha256(row)


def _loader_sha256(row: Encoder) -> str | None:
    """Sum of the file of the user's own loader, found without importing it; None where it is not found."""
    top, *rest = row.loader.partition(":")[0].split(".")
    try:
        spec = importlib.util.find_spec(top)
        name = top
        for step in rest:  # find_spec would import the packages around a module
            if spec is None:
                return None
            name = f"{name}.{step}"
            spec = importlib.machinery.PathFinder.find_spec(name, spec.submodule_search_locations)
    except (ImportError, ValueError):
        return None
    return (file_sha256(Path(spec.origin)) or None) if spec is not None and spec.origin else None


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"

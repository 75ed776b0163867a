"""Encoders of the library TorchXRayVision: its DenseNet-121, released or with random weights."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frame.encoders.loaders.checkpoints import (
    fill,
    library_module,
    read_weights,
    seeded,
    unreachable,
    weights_file,
)
from frame.encoders.panel import Encoder
from frame.errors import InputError

if TYPE_CHECKING:
    import torch

    from frame.encoders.loaders import Source

__all__ = ["load"]


def load(row: Encoder, source: Source) -> tuple[torch.nn.Module, dict[str, Any]]:
    """Load the DenseNet without its classifier: the mean over the last feature map, after its rectifier.

    Parameters
    ----------
    row : Encoder
        ``checkpoint`` is the library's name of the weights. Random weights are drawn where its kind is
        ``untrained``.
    source : Source
        The released file, or a folder that holds it; without one the library's cache, or its download.

    Returns
    -------
    tuple of torch.nn.Module and dict
        The network, and what else goes into the sidecar.

    Raises
    ------
    frame.InputError
        If TorchXRayVision is not installed, or the weights are missing or do not fit.
    """
    torch = library_module(row, "torch", "torch")
    xrayvision = library_module(row, "torchxrayvision", "torchxrayvision")
    if row.architecture != "DenseNet" or row.pooling != "pooled_feature":
        raise InputError(
            f"Encoder {row.name}: of torchxrayvision, DenseNet with the pooling pooled_feature can be "
            f"loaded; its row says {row.architecture} and {row.pooling}."
        )
    if row.kind == "untrained":
        return seeded(row, source.seed, lambda: _network(torch, xrayvision.models.DenseNet())), {
            "origin": "random"
        }
    path = weights_file(row, source.folder) if source.folder else _library_file(row, xrayvision)
    weights = read_weights(
        row, path, allow_pickle=source.allow_pickle, classes=_layer_classes(torch, xrayvision)
    )
    model = xrayvision.models.DenseNet()
    fill(row, model.features, _features(weights))
    return _network(torch, model), {"origin": "local" if source.folder else "cache", "file": path.name}


def _library_file(row: Encoder, xrayvision: Any) -> Path:
    """The file in the library's cache; the library fetches it where it is not there."""
    from frame.encoders.loaders import offline

    known = xrayvision.models.model_urls
    if row.checkpoint not in known:
        raise InputError(f"Encoder {row.name}: torchxrayvision has no weights {row.checkpoint!r}.")
    name = Path(known[row.checkpoint]["weights_url"]).name
    cached = Path.home() / ".torchxrayvision" / "models_data" / name
    if cached.is_file() or offline():
        if not cached.is_file():
            raise unreachable(row)
        return cached
    try:
        return Path(xrayvision.models.get_weights(row.checkpoint, None))
    except Exception as problem:
        raise unreachable(row) from problem


def _layer_classes(torch: Any, xrayvision: Any) -> list[Any]:
    """What a pickled DenseNet consists of."""
    nn, models = torch.nn, xrayvision.models
    layers = (nn.Sequential, nn.Conv2d, nn.BatchNorm2d, nn.ReLU, nn.MaxPool2d, nn.AvgPool2d, nn.Linear)
    return [
        models.DenseNet,
        models._DenseBlock,
        models._DenseLayer,
        models._Transition,
        *layers,
        OrderedDict,
        set,
    ]


def _features(weights: dict[str, Any]) -> dict[str, Any]:
    return {
        name.removeprefix("features."): value
        for name, value in weights.items()
        if name.startswith("features.")
    }


def _network(torch: Any, model: Any) -> Any:
    class Network(torch.nn.Module):  # type: ignore[misc]
        """Prepared images to the mean of the last feature map."""

        def __init__(self) -> None:
            super().__init__()
            self.features = model.features

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.relu(self.features(images)).mean(dim=(2, 3))

    return Network()

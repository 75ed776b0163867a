"""FLAIR: a ResNet-50 of torchvision, and a projection of its pooled feature, from a state dictionary.

The package of the index that is called ``flair`` is something else; the authors' is not needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from frame.encoders.loaders.checkpoints import (
    fill,
    hub_file,
    library_module,
    read_weights,
    weights_file,
)
from frame.encoders.panel import Encoder
from frame.errors import InputError

if TYPE_CHECKING:
    import torch

    from frame.encoders.loaders import Source

__all__ = ["load"]

_FILES: Final = ("model.safetensors", "flair_resnet.pth")
_BACKBONE: Final = "vision_model.model."
_PROJECTION: Final = "vision_model.projection_head_vision.projection."


def load(row: Encoder, source: Source) -> tuple[torch.nn.Module, dict[str, Any]]:
    """Load the image part.

    Parameters
    ----------
    row : Encoder
        ``architecture`` is torchvision's name of the backbone.
    source : Source
        The released file (``.safetensors`` or ``.pth``), or a folder that holds it.

    Returns
    -------
    tuple of torch.nn.Module and dict
        The network, and what else goes into the sidecar.

    Raises
    ------
    frame.InputError
        If torchvision is not installed, or the weights are missing or do not fit.
    """
    torch = library_module(row, "torch", "torch")
    torchvision = library_module(row, "torchvision", "torchvision")
    if row.architecture != "resnet50" or row.pooling != "pooled_projection":
        raise InputError(
            f"Encoder {row.name}: of FLAIR, resnet50 with the pooling pooled_projection can be loaded; its "
            f"row says {row.architecture} and {row.pooling}."
        )
    path = weights_file(row, source.folder) if source.folder is not None else hub_file(row, _FILES)
    weights = read_weights(row, path, allow_pickle=source.allow_pickle)
    backbone = torchvision.models.resnet50(weights=None)
    backbone.fc = torch.nn.Identity()
    projection = torch.nn.Linear(2048, row.width, bias=f"{_PROJECTION}bias" in weights)
    # A backbone that was saved with the classifier of ImageNet has two weights that are not used.
    fill(row, backbone, _part(weights, _BACKBONE), may_have=("fc.",))
    fill(row, projection, _part(weights, _PROJECTION))
    origin = "local" if source.folder is not None else "hub"
    return _network(torch, backbone, projection), {"origin": origin, "file": path.name}


def _part(weights: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}


def _network(torch: Any, backbone: Any, projection: Any) -> Any:
    class Network(torch.nn.Module):  # type: ignore[misc]
        """Prepared images to the projected feature; both have length 1, as in the release."""

        def __init__(self) -> None:
            super().__init__()
            self.backbone, self.projection = backbone, projection

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            normalise = torch.nn.functional.normalize
            return normalise(self.projection(normalise(self.backbone(images), dim=-1)), dim=-1)

    return Network()

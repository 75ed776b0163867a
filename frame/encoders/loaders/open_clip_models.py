"""Encoders of the library OpenCLIP: BiomedCLIP and DermLIP; of each the image tower alone is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from frame.encoders.loaders.checkpoints import (
    beside,
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

CONFIG: Final = "open_clip_config.json"
_FILES: Final = ("open_clip_model.safetensors", "open_clip_pytorch_model.bin")
_TOWER: Final = "visual."


def load(row: Encoder, source: Source) -> tuple[torch.nn.Module, dict[str, Any]]:
    """Load the image tower with its projection into the space of images and texts.

    Parameters
    ----------
    row : Encoder
        Its checkpoint is a repository of the hub in OpenCLIP's layout.
    source : Source
        A local folder holds ``open_clip_config.json`` and one file of weights.

    Returns
    -------
    tuple of torch.nn.Module and dict
        The network, and what else goes into the sidecar.

    Raises
    ------
    frame.InputError
        If OpenCLIP is not installed, or files are missing or do not fit.
    """
    library_module(row, "torch", "torch")
    open_clip = library_module(row, "open_clip", "open_clip_torch")
    if source.folder is not None:
        path = weights_file(row, source.folder)
        about = beside(path, CONFIG)
    else:
        path = hub_file(row, _FILES)
        about = beside(hub_file(row, (CONFIG,)), CONFIG)
    config = about.get("model_cfg", about)
    if "vision_cfg" not in config or "embed_dim" not in config:
        raise InputError(
            f"The weights of {row.name} need {CONFIG} beside them, which says how the network is built; copy "
            "all files of the checkpoint into one folder."
        )
    # Weights come from the checkpoint; the tower's own would be fetched from elsewhere.
    vision = {**config["vision_cfg"], "timm_model_pretrained": False}
    if "timm_model_name" not in vision:
        del vision["timm_model_pretrained"]
    tower = open_clip.model._build_vision_tower(
        config["embed_dim"], vision, quick_gelu=bool(config.get("quick_gelu", False))
    )
    weights = read_weights(row, path, allow_pickle=source.allow_pickle)
    fill(
        row,
        tower,
        {name.removeprefix(_TOWER): value for name, value in weights.items() if name.startswith(_TOWER)},
    )
    return tower, {"file": path.name}

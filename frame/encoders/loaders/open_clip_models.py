"""Encoders of the library OpenCLIP: BiomedCLIP and DermLIP; of each the image tower alone is read."""

from __future__ import annotations

import re
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
_WIDEST: Final = 65536
_TIMM_NAME: Final = re.compile(r"\w+(\.\w+)?", flags=re.ASCII)


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
    if not isinstance(config, dict) or "vision_cfg" not in config or "embed_dim" not in config:
        raise InputError(
            f"The weights of {row.name} need {CONFIG} beside them, which says how the network is built; copy "
            "all files of the checkpoint into one folder."
        )
    tower = _tower(row, open_clip, config)
    weights = read_weights(row, path, allow_pickle=source.allow_pickle)
    fill(
        row,
        tower,
        {name.removeprefix(_TOWER): value for name, value in weights.items() if name.startswith(_TOWER)},
    )
    return tower, {"origin": "local" if source.folder is not None else "hub", "file": path.name}


def _tower(row: Encoder, open_clip: Any, config: dict[str, Any]) -> Any:
    """The image tower that a configuration describes, with random weights; nothing is fetched for it."""
    vision, width = config["vision_cfg"], config["embed_dim"]
    if not isinstance(vision, dict) or not isinstance(width, int) or not 1 <= width <= _WIDEST:
        raise InputError(
            f"{CONFIG} of {row.name} does not describe an image tower: vision_cfg must be a mapping, and "
            f"embed_dim a whole number from 1 to {_WIDEST:,}; fetch the file again."
        )
    name = vision.get("timm_model_name")
    if name:
        # Names such as hf-hub:... or local-dir:... would fetch or read a network from elsewhere.
        timm = library_module(row, "timm", "timm")
        if not isinstance(name, str) or not _TIMM_NAME.fullmatch(name) or not timm.is_model(name):
            raise InputError(
                f"{CONFIG} of {row.name} names the image tower {str(name)[:40]!r}, which is no network of "
                f"timm {timm.__version__}; fetch the file again, or name a network of timm in it."
            )
        # Weights come from the checkpoint; the tower's own would be fetched from elsewhere.
        vision = {**vision, "timm_model_pretrained": False}
    try:
        return open_clip.model._build_vision_tower(
            width, vision, quick_gelu=bool(config.get("quick_gelu", False))
        )
    except MemoryError:
        raise
    except Exception as problem:
        raise InputError(
            f"{CONFIG} of {row.name} describes no image tower that OpenCLIP {open_clip.__version__} can "
            f"build ({type(problem).__name__}); fetch the file again."
        ) from problem

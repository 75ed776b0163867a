"""Encoders of the library transformers: DINOv2 and RAD-DINO, DINOv3, CLIP and MONET, SigLIP 2."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from frame.encoders.loaders.checkpoints import library_module, unreachable
from frame.encoders.panel import Encoder
from frame.errors import InputError

if TYPE_CHECKING:
    import torch

    from frame.encoders.loaders import Source

__all__ = ["load"]

#: Which output of a model is the vector, by pooling.
_OUTPUTS: Final = {
    "class_token": "pooler_output",
    "pooled_projection": "image_embeds",
    "pooled_attention": "pooler_output",
}
#: Models whose class token, after the last normalisation, is their pooled output.
_CLASS_TOKEN: Final = ("Dinov2Model", "Dinov2WithRegistersModel", "DINOv3ViTModel")


def load(row: Encoder, source: Source) -> tuple[torch.nn.Module, dict[str, Any]]:
    """Load an encoder from a local folder that ``save_pretrained`` wrote, the cache, or the hub.

    Parameters
    ----------
    row : Encoder
        ``architecture`` is the class in transformers.
    source : Source
        Where the weights are.

    Returns
    -------
    tuple of torch.nn.Module and dict
        The network, and what else goes into the sidecar.

    Raises
    ------
    frame.InputError
        If transformers is not installed or lacks the class, the weights are not there, or are not all of it.
    """
    torch = library_module(row, "torch", "torch")
    transformers = library_module(row, "transformers", "transformers")
    safetensors = library_module(row, "safetensors", "safetensors")
    model_class = getattr(transformers, row.architecture, None)
    if model_class is None or row.pooling not in _OUTPUTS:
        raise InputError(
            f"Encoder {row.name}: transformers {transformers.__version__} has no {row.architecture} with the "
            f"pooling {row.pooling}; the poolings are {', '.join(_OUTPUTS)}."
        )
    local = source.folder is not None
    place = str(source.folder) if local else row.checkpoint
    if source.folder is not None and not (source.folder / "config.json").is_file():
        raise InputError(
            f"The folder '{source.folder.name}' with the weights of {row.name} has no config.json; copy all "
            "files of the checkpoint into it."
        )
    common = {"local_files_only": local, "revision": None if local else row.revision or None}
    try:
        with _quiet():
            found = transformers.AutoConfig.from_pretrained(place, **common)
            config = _vision_config(found, model_class)
            _check_kind(row, config, model_class)
            model, told = model_class.from_pretrained(
                place,
                config=config,
                dtype=torch.float32,
                weights_only=not source.allow_pickle,
                trust_remote_code=False,
                output_loading_info=True,
                **common,
            )
    except (InputError, MemoryError):
        raise
    except (OSError, ValueError, RuntimeError, safetensors.SafetensorError) as problem:
        if not local:
            raise unreachable(row) from problem
        # The path is replaced before the text is cut, or a part of it would be left.
        said = (str(problem).splitlines() or ["unknown reason"])[0].replace(place, Path(place).name)
        raise InputError(
            f"The weights of {row.name} cannot be read ({said[:160]}); fetch them again."
        ) from problem
    except Exception as problem:
        # Checks of the library's own, as of a configuration with a text where a number belongs.
        raise InputError(
            f"The checkpoint of {row.name} cannot be read as {row.architecture} ({type(problem).__name__}); "
            "fetch its files again, or correct the architecture in its row."
        ) from problem
    _check_whole(row, told)
    about = {"origin": "local"} if local else {"origin": "hub"}
    return _network(torch, row, model), {**about, "commit": getattr(config, "_commit_hash", None) or ""}


def _vision_config(config: Any, model_class: Any) -> Any:
    """The image part of a configuration of images and texts; a joint width is passed on."""
    if isinstance(config, model_class.config_class) or not hasattr(config, "vision_config"):
        return config
    vision = config.vision_config
    if hasattr(config, "projection_dim"):
        vision.projection_dim = config.projection_dim
    if getattr(config, "_commit_hash", None):
        vision._commit_hash = config._commit_hash
    return vision


def _check_kind(row: Encoder, config: Any, model_class: Any) -> None:
    """Refuse the configuration of another kind of network."""
    if not isinstance(config, model_class.config_class):
        raise InputError(
            f"The checkpoint of {row.name} holds a network of the kind "
            f"{str(getattr(config, 'model_type', 'unknown'))[:40]!r}, which is no {row.architecture}; use "
            f"the checkpoint that its row names ({row.checkpoint or 'none'}), or correct its architecture."
        )


def _check_whole(row: Encoder, told: dict[str, Any]) -> None:
    missing = sorted(told.get("missing_keys") or ())
    other = sorted(str(one) for one in (told.get("mismatched_keys") or ()))
    if missing or other:
        first = (missing or other)[0]
        raise InputError(
            f"The weights of {row.name} do not fit {row.architecture}: {len(missing)} are missing and "
            f"{len(other)} have another shape ({first}, ...). Use the checkpoint that its row names "
            f"({row.checkpoint})."
        )


def _network(torch: Any, row: Encoder, model: Any) -> torch.nn.Module:
    output = _OUTPUTS[row.pooling]
    # These add position codes for the size of their training; others adapt them by themselves.
    extra = {} if row.architecture in _CLASS_TOKEN else {"interpolate_pos_encoding": True}
    if row.pooling == "class_token" and row.architecture not in _CLASS_TOKEN:
        output = "last_hidden_state"

    class Network(torch.nn.Module):  # type: ignore[misc]
        """Prepared images to the pooled vector."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            found = getattr(self.model(pixel_values=images, **extra), output)
            return found[:, 0] if found.ndim == 3 else found

    return Network()


@contextmanager
def _quiet() -> Iterator[None]:
    """Without bars, and reports of weights that are not used; that none is missing is checked afterwards."""
    from transformers.utils import logging as library_logging

    logger = logging.getLogger("transformers")
    level, bars = logger.level, library_logging.is_progress_bar_enabled()
    logger.setLevel(logging.ERROR)
    library_logging.disable_progress_bar()
    try:
        yield
    finally:
        logger.setLevel(level)
        if bars:
            library_logging.enable_progress_bar()

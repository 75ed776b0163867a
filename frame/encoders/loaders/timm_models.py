"""Encoders of the library timm: RETFound, the random ViT-S/16, and EfficientNet-Lite0 from a package."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any, Final

from frame.encoders.loaders.checkpoints import (
    beside,
    check_fit,
    fill,
    hub_file,
    library_module,
    package_file,
    read_weights,
    seeded,
    weights_file,
)
from frame.encoders.panel import Encoder
from frame.errors import InputError

if TYPE_CHECKING:
    import torch

    from frame.encoders.loaders import Source

__all__ = ["load"]

_FILES: Final = ("model.safetensors", "RETFound_mae_meh.pth", "pytorch_model.bin")
#: timm's word for each pooling.
_POOLS: Final = {"class_token": "token", "patch_mean": "avg", "pooled_feature": "avg"}
#: Parts of a masked autoencoder that no encoder has.
_DECODER: Final = ("decoder", "mask_token", "norm.", "head.", "vit.layernorm.", "layernorm.")


def load(row: Encoder, source: Source) -> tuple[torch.nn.Module, dict[str, Any]]:
    """Load an encoder.

    Parameters
    ----------
    row : Encoder
        ``architecture`` is timm's name. Random weights are drawn where its kind is ``untrained``.
    source : Source
        A file of weights, or a folder with one and, where the network is not of the full depth, a
        ``config.json`` that says so.

    Returns
    -------
    tuple of torch.nn.Module and dict
        The network, and what else goes into the sidecar.

    Raises
    ------
    frame.InputError
        If timm is not installed, or weights are missing or do not fit.
    """
    library_module(row, "torch", "torch")
    timm = library_module(row, "timm", "timm")
    if row.pooling not in _POOLS or not timm.is_model(row.architecture):
        raise InputError(
            f"Encoder {row.name}: timm {timm.__version__} has no {row.architecture} with the pooling "
            f"{row.pooling}; the poolings are {', '.join(_POOLS)}."
        )
    build: dict[str, Any] = {"pretrained": False, "num_classes": 0, "global_pool": _POOLS[row.pooling]}
    if row.kind == "untrained":
        return seeded(row, source.seed, lambda: _any_size(row, timm, build)), {"origin": "random"}
    path = (
        weights_file(row, source.folder)
        if source.folder is not None
        else package_file(row)
        if row.package
        else hub_file(row, _FILES)
    )
    # A checkpoint of a training run also holds its command line, as a plain namespace.
    weights = read_weights(row, path, allow_pickle=source.allow_pickle, classes=(argparse.Namespace,))
    origin = "local" if source.folder is not None else "package" if row.package else "hub"
    about = {"origin": origin, "file": path.name}
    if row.pooling == "patch_mean":
        build = {**build, **_depth(row, path)}
        if _is_masked_autoencoder(row, path, weights):
            return _masked_autoencoder(row, timm, build, weights), about
        weights = _named_as_timm(weights)
        if "norm.weight" in weights and "fc_norm.weight" not in weights:
            # Trained with a normalisation before the mean: it is kept, and none is put after the mean.
            build["fc_norm"] = False
    model = _built(row, timm, build)
    renamed = {_efficientnet_name(name): value for name, value in weights.items()}
    fill(row, model, renamed, may_have=("classifier.", "head."))
    return model, about


def _built(row: Encoder, timm: Any, build: dict[str, Any]) -> Any:
    """A network of timm; what its row asks for in vain is one sentence."""
    try:
        return timm.create_model(row.architecture, **build)
    except MemoryError:
        raise
    except Exception as problem:
        raise InputError(
            f"Encoder {row.name}: timm {timm.__version__} cannot build {row.architecture} with the pooling "
            f"{row.pooling} ({type(problem).__name__}); correct architecture or pooling in its row."
        ) from problem


def _any_size(row: Encoder, timm: Any, build: dict[str, Any]) -> Any:
    """A network for images of any size: transformers have to be told, and convolutions need no telling."""
    try:
        return timm.create_model(row.architecture, **build, dynamic_img_size=True)
    except TypeError:
        return _built(row, timm, build)


def _is_masked_autoencoder(row: Encoder, path: Any, weights: Any) -> bool:
    """Whether weights are those of the pretraining: by its decoder, its configuration, or the row's name."""
    kinds = beside(path, "config.json")
    named = f"{kinds.get('model_type', '')} {kinds.get('architectures', '')} {row.checkpoint} {path.stem}"
    parts = re.split(r"[^a-z0-9]+", re.sub(r"MAE", "_mae_", named).lower())
    return "mae" in parts or any(name.startswith(("decoder", "mask_token")) for name in weights)


def _depth(row: Encoder, path: Any) -> dict[str, int]:
    """The number of layers that ``config.json`` beside the weights states, if it does."""
    about = beside(path, "config.json")
    inner = about.get("model_args")
    depth = about.get("num_hidden_layers", inner.get("depth") if isinstance(inner, dict) else None)
    if depth is None:
        return {}
    if not isinstance(depth, int) or not 1 <= depth <= 1000:
        raise InputError(
            f"config.json beside the weights of {row.name} states {str(depth)[:20]!r} layers; it must be a "
            "whole number from 1 to 1,000. Fetch it again."
        )
    return {"depth": depth}


def _masked_autoencoder(row: Encoder, timm: Any, build: dict[str, Any], weights: Any) -> Any:
    """The encoder of a masked autoencoder, without masking: mean of the patch tokens, then a normalisation.

    As the authors' own code does, the normalisation after the mean is new where the checkpoint has none of
    its own, that is with scale 1 and shift 0; the one of pretraining, which acts before the mean, is not
    used.
    """
    import torch

    # Built without memory first: random numbers for 300 million weights would be drawn and thrown away.
    with torch.device("meta"):
        model = _built(row, timm, build)
    named = _named_as_timm(weights)
    own = model.state_dict()
    new = {"fc_norm.weight": torch.ones, "fc_norm.bias": torch.zeros}
    named = {**{name: make(own[name].shape) for name, make in new.items() if name in own}, **named}
    check_fit(row, model, named, may_have=_DECODER)
    model = model.to_empty(device="cpu")
    fill(row, model, named, may_have=_DECODER)
    return model


def _named_as_timm(weights: Any) -> dict[str, Any]:
    layout = any("attention.attention" in name for name in weights)
    return _from_transformers(weights) if layout else dict(weights)


def _from_transformers(weights: Any) -> dict[str, Any]:
    """Names of a vision transformer of the library transformers as timm has them."""
    import torch

    plain = {name.removeprefix("vit."): value for name, value in weights.items()}
    renamed: dict[str, Any] = {}
    renames = {
        "embeddings.cls_token": "cls_token",
        "embeddings.position_embeddings": "pos_embed",
        "embeddings.patch_embeddings.projection.": "patch_embed.proj.",
        "layernorm.": "norm.",
    }
    inside = {
        "attention.output.dense.": "attn.proj.",
        "layernorm_before.": "norm1.",
        "layernorm_after.": "norm2.",
        "intermediate.dense.": "mlp.fc1.",
        "output.dense.": "mlp.fc2.",
    }
    for name, value in plain.items():
        layer = re.match(r"encoder\.layer\.(\d+)\.(.*)", name)
        if layer is None:
            start = next((old for old in renames if name.startswith(old)), None)
            renamed[renames[start] + name.removeprefix(start) if start else name] = value
            continue
        block, rest = f"blocks.{layer[1]}.", layer[2]
        part = re.match(r"attention\.attention\.query\.(weight|bias)", rest)
        if part is not None:
            stem = f"encoder.layer.{layer[1]}.attention.attention"
            three = [plain.get(f"{stem}.{kind}.{part[1]}") for kind in ("query", "key", "value")]
            if all(one is not None and one.ndim and one.shape[1:] == value.shape[1:] for one in three):
                renamed[f"{block}attn.qkv.{part[1]}"] = torch.cat(three)
        elif not rest.startswith("attention.attention."):
            start = next((old for old in inside if rest.startswith(old)), "")
            renamed[block + inside.get(start, "") + rest.removeprefix(start)] = value
    return renamed


#: The stages of EfficientNet-Lite0, and the blocks of each: the package numbers blocks through.
_STAGES: Final = (1, 2, 2, 3, 3, 4, 1)
_OUTER: Final = {
    "_conv_stem": "conv_stem",
    "_bn0": "bn1",
    "_conv_head": "conv_head",
    "_bn1": "bn2",
    "_fc": "classifier",
}
_FIRST: Final = {"_depthwise_conv": "conv_dw", "_bn1": "bn1", "_project_conv": "conv_pw", "_bn2": "bn2"}
_OTHERS: Final = {
    "_expand_conv": "conv_pw",
    "_bn0": "bn1",
    "_depthwise_conv": "conv_dw",
    "_bn1": "bn2",
    "_project_conv": "conv_pwl",
    "_bn2": "bn3",
}


def _efficientnet_name(name: str) -> str:
    """The name in timm of a weight of the packaged EfficientNet-Lite0; any other name as it is."""
    head, _, rest = name.partition(".")
    if head in _OUTER:
        return f"{_OUTER[head]}.{rest}"
    if head != "_blocks":
        return name
    parts = rest.split(".", 2)
    if len(parts) != 3 or not re.fullmatch(r"\d{1,3}", parts[0]):
        return name  # not one of this network's; what is left over is refused
    block, part, last = int(parts[0]), parts[1], parts[2]
    for stage, length in enumerate(_STAGES):
        if block < length:
            known = _OTHERS if stage else _FIRST
            return f"blocks.{stage}.{block}.{known[part]}.{last}" if part in known else name
        block -= length
    return name

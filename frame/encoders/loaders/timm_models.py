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
        build["dynamic_img_size"] = True
        return seeded(row, source.seed, lambda: timm.create_model(row.architecture, **build)), {}
    path = (
        weights_file(row, source.folder)
        if source.folder is not None
        else package_file(row)
        if row.package
        else hub_file(row, _FILES)
    )
    # A checkpoint of a training run also holds its command line, as a plain namespace.
    weights = read_weights(row, path, allow_pickle=source.allow_pickle, classes=(argparse.Namespace,))
    if row.pooling == "patch_mean":
        return _masked_autoencoder(row, timm, build, path, weights), {"file": path.name}
    model = timm.create_model(row.architecture, **build)
    renamed = {_efficientnet_name(name): value for name, value in weights.items()}
    fill(row, model, renamed, may_have=("classifier.", "head."))
    return model, {"file": path.name}


def _masked_autoencoder(row: Encoder, timm: Any, build: dict[str, Any], path: Any, weights: Any) -> Any:
    """The encoder of a masked autoencoder, without masking: mean of the patch tokens, then a normalisation.

    As the authors' own code does, the normalisation after the mean is new where the checkpoint has none of
    its own, that is with scale 1 and shift 0; the one of pretraining, which acts before the mean, is not
    used.
    """
    import torch

    about = beside(path, "config.json")
    depth = about.get("num_hidden_layers", about.get("model_args", {}).get("depth"))
    if depth is not None:
        build = {**build, "depth": int(depth)}
    # Built without memory first: random numbers for 300 million weights would be drawn and thrown away.
    with torch.device("meta"):
        model = timm.create_model(row.architecture, **build)
    named = _from_transformers(weights) if any("attention.attention" in name for name in weights) else weights
    own = model.state_dict()
    new = {"fc_norm.weight": torch.ones, "fc_norm.bias": torch.zeros}
    named = {**{name: make(own[name].shape) for name, make in new.items() if name in own}, **named}
    check_fit(row, model, named, may_have=_DECODER)
    model = model.to_empty(device="cpu")
    fill(row, model, named, may_have=_DECODER)
    return model


def _from_transformers(weights: Any) -> dict[str, Any]:
    """Names of a vision transformer of the library transformers as timm has them."""
    import torch

    plain = {name.removeprefix("vit."): value for name, value in weights.items()}
    renamed: dict[str, Any] = {}
    renames = {
        "embeddings.cls_token": "cls_token",
        "embeddings.position_embeddings": "pos_embed",
        "embeddings.patch_embeddings.projection.": "patch_embed.proj.",
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
            three = [plain[f"{stem}.{kind}.{part[1]}"] for kind in ("query", "key", "value")]
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
    number, part, last = rest.split(".", 2)
    block = int(number)
    for stage, length in enumerate(_STAGES):
        if block < length:
            return f"blocks.{stage}.{block}.{(_OTHERS if stage else _FIRST)[part]}.{last}"
        block -= length
    return name

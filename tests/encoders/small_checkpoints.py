"""Checkpoints of the panel as their owners lay them out, with full width, few layers and random weights.

``save(name, folder)`` writes one and returns a function that computes the vectors of prepared images from the
same weights, step by step and without the project's code.
"""

import argparse
import json

import torch
from torch.nn.functional import layer_norm

__all__ = ["SAVED", "own_table", "save", "save_timm"]

_VISION = {"rad_dino": (768, 12, 518), "dinov2_vit_l": (1024, 16, 518)}
_DINOV3 = {"dinov3_vit_l": (1024, 16), "dinov3_vit_b": (768, 12), "dinov3_vit_s": (384, 6)}
#: Encoders whose weights have to be saved; the others draw theirs, or come in a package, or have none.
SAVED = (
    *(
        "rad_dino",
        "biomedclip",
        "densenet_121",
        "dinov3_vit_l",
        "dinov3_vit_b",
        "dinov3_vit_s",
        "dinov2_vit_l",
    ),
    *("clip_vit_l", "siglip2_l", "monet", "dermlip", "retfound", "flair"),
)


def save(name, folder):
    torch.manual_seed(7)
    folder.mkdir(parents=True, exist_ok=True)
    if name in _VISION:
        return _dinov2(folder, *_VISION[name])
    if name in _DINOV3:
        return _dinov3(folder, *_DINOV3[name])
    if name in ("clip_vit_l", "monet"):
        return _clip(folder)
    return {
        "siglip2_l": _siglip,
        "biomedclip": _open_clip_timm,
        "dermlip": _open_clip,
        "retfound": _masked_autoencoder,
        "flair": _flair,
        "densenet_121": _densenet,
    }[name](folder)


def _dinov2(folder, width, heads, size):
    from transformers import Dinov2Config, Dinov2Model

    config = Dinov2Config(
        hidden_size=width, num_attention_heads=heads, num_hidden_layers=1, image_size=size, patch_size=14
    )
    model = Dinov2Model(config).eval()
    model.save_pretrained(folder)
    return lambda images: model(pixel_values=images).last_hidden_state[:, 0]


def _dinov3(folder, width, heads):
    from transformers import DINOv3ViTConfig, DINOv3ViTModel

    config = DINOv3ViTConfig(
        hidden_size=width,
        intermediate_size=4 * width,
        num_attention_heads=heads,
        num_hidden_layers=1,
        num_register_tokens=4,
        image_size=224,
        patch_size=16,
    )
    model = DINOv3ViTModel(config).eval()
    model.save_pretrained(folder)
    return lambda images: model(pixel_values=images).last_hidden_state[:, 0]


def _clip(folder):
    from transformers import CLIPConfig, CLIPModel

    text = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 1}
    vision = {
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_hidden_layers": 1,
        "num_attention_heads": 16,
        "patch_size": 14,
        "image_size": 224,
    }
    model = CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=768)).eval()
    model.save_pretrained(folder)

    def expected(images):
        return model.visual_projection(model.vision_model(pixel_values=images).pooler_output)

    return expected


def _siglip(folder):
    from transformers import SiglipConfig, SiglipModel

    text = {
        "hidden_size": 1024,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "vocab_size": 100,
    }
    vision = {
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_hidden_layers": 1,
        "num_attention_heads": 16,
        "patch_size": 16,
        "image_size": 512,
    }
    model = SiglipModel(SiglipConfig(text_config=text, vision_config=vision)).eval()
    model.save_pretrained(folder)

    def expected(images):
        found = model.get_image_features(pixel_values=images, interpolate_pos_encoding=True)
        return getattr(found, "pooler_output", found)

    return expected


def _open_clip_timm(folder):
    """As BiomedCLIP: the image tower is timm's, and the file also holds the text tower."""
    import open_clip

    vision = {
        "timm_model_name": "vit_tiny_patch16_224",
        "timm_model_pretrained": True,
        "timm_pool": "",
        "timm_proj": "linear",
        "image_size": 224,
    }
    tower = open_clip.model._build_vision_tower(512, {**vision, "timm_model_pretrained": False}).eval()
    weights = {f"visual.{name}": value for name, value in tower.state_dict().items()}
    weights |= {"text.transformer.embeddings.word_embeddings.weight": torch.zeros(4, 4)}
    torch.save({**weights, "logit_scale": torch.tensor(1.0)}, folder / "open_clip_pytorch_model.bin")
    text = {"hf_model_name": "a model that is not on this machine", "context_length": 256}
    _write(folder / "open_clip_config.json", {"embed_dim": 512, "vision_cfg": vision, "text_cfg": text})

    def expected(images):
        return tower.head(tower.trunk(images))

    return expected


def _open_clip(folder):
    """As DermLIP: both towers are OpenCLIP's own."""
    import open_clip
    from safetensors.torch import save_file

    vision = {"image_size": 224, "layers": 1, "width": 768, "patch_size": 16}
    text = {"context_length": 77, "vocab_size": 100, "width": 64, "heads": 1, "layers": 1}
    model = open_clip.model.CLIP(512, vision, text).eval()
    weights = {name: value.contiguous() for name, value in model.state_dict().items()}
    save_file(weights, folder / "open_clip_model.safetensors")
    _write(folder / "open_clip_config.json", {"embed_dim": 512, "vision_cfg": vision, "text_cfg": text})
    return lambda images: model.encode_image(images)


def _masked_autoencoder(folder):
    """As RETFound's own release: a training checkpoint with its command line, and the decoder."""
    import timm

    model = timm.create_model("vit_large_patch16_224", depth=1, num_classes=0, global_pool="token").eval()
    weights = {
        **model.state_dict(),
        "mask_token": torch.zeros(1, 1, 512),
        "decoder_norm.bias": torch.zeros(512),
    }
    run = {"model": weights, "epoch": 799, "args": argparse.Namespace(mask_ratio=0.75, model="mae_vit_large")}
    torch.save(run, folder / "RETFound_mae_meh.pth")
    _write(folder / "config.json", {"architecture": "vit_large_patch16_224", "model_args": {"depth": 1}})

    def expected(images):
        tokens = model.patch_embed(images)
        start = model.cls_token.expand(len(images), -1, -1)
        tokens = torch.cat((start, tokens), dim=1) + model.pos_embed
        tokens = model.blocks(tokens)
        return layer_norm(tokens[:, 1:].mean(dim=1), (1024,), eps=1e-6)

    return expected


def _flair(folder):
    """As FLAIR's release: image part, text part and temperature in one state dictionary."""
    import torchvision

    backbone = torchvision.models.resnet50(weights=None).eval()
    backbone.fc = torch.nn.Identity()
    projection = torch.nn.Linear(2048, 512, bias=False)
    weights = {f"vision_model.model.{name}": value for name, value in backbone.state_dict().items()}
    weights["vision_model.projection_head_vision.projection.weight"] = projection.weight.detach()
    weights["text_model.projection_head_text.projection.weight"] = torch.zeros(512, 768)
    weights["logit_scale"] = torch.tensor(2.0)
    torch.save(weights, folder / "flair_resnet.pth")

    def expected(images):
        feature = backbone(images)
        projected = projection(feature / feature.norm(dim=-1, keepdim=True))
        return projected / projected.norm(dim=-1, keepdim=True)

    return expected


def _densenet(folder):
    """As TorchXRayVision's release: the whole network, pickled."""
    import warnings

    with warnings.catch_warnings():
        import torchxrayvision

    model = torchxrayvision.models.DenseNet(num_classes=18).eval()
    torch.save(model, folder / "nih-pc-chex-mimic_ch-google-openi-kaggle-densenet121-best.pt")
    return lambda images: model.features2(images.clone())


def _write(path, value):
    path.write_text(json.dumps(value), encoding="utf-8")


def save_timm(architecture, folder, **build):
    """The state dictionary of a network of timm with random weights, in one file; returns the network."""
    import timm

    torch.manual_seed(11)
    folder.mkdir(parents=True, exist_ok=True)
    model = timm.create_model(architecture, num_classes=0, **build).eval()
    for name, value in model.named_parameters():
        if "norm" in name:
            torch.nn.init.normal_(value, mean=1.0, std=0.3)
    torch.save(model.state_dict(), folder / "weights.pth")
    return model


def own_table(path, **values):
    """A table with one encoder: the row of the random ViT-S with other values; returns the path."""
    import csv

    from frame.tables import table_path

    with table_path("encoders").open(encoding="utf-8", newline="") as file:
        rows = {row["name"]: row for row in csv.DictReader(file)}
    row = {**rows["random_vit_s"], "name": "mine", "input_size": "224", "native_size": "224"}
    row |= {"native_resize": "224", "cites": "", **values}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(row), lineterminator="\n")
        writer.writeheader()
        writer.writerow(row)
    return path

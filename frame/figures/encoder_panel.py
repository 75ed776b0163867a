"""Tables of the encoder panel: beside the paper's Table 2, origin of the weights, and what images must be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from frame.cohorts.schema import MODALITIES
from frame.encoders.panel import Encoder, encoder, encoders
from frame.encoders.preprocessing import preprocessing_of
from frame.tables import load_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "DEMO",
    "PAPER",
    "POOLINGS",
    "access_table",
    "modality_counts",
    "panel_beside_print",
    "preprocessing_table",
]

#: Name in the paper's Table 2 of each encoder of its panel.
PAPER: Final = {
    "rad_dino": "RAD-DINO",
    "biomedclip": "BiomedCLIP",
    "densenet_121": "TorchXRayVision",
    "dinov3_vit_l": "DINOv3 ViT-L",
    "dinov3_vit_b": "DINOv3 ViT-B",
    "dinov3_vit_s": "DINOv3 ViT-S",
    "dinov2_vit_l": "DINOv2 ViT-L",
    "clip_vit_l": "CLIP ViT-L/14",
    "siglip2_l": "SigLIP2-L",
    "random_vit_s": "Random ViT-S",
    "monet": "MONET",
    "dermlip": "DermLIP ViT-B/16",
    "retfound": "RETFound",
    "flair": "FLAIR",
}
#: Encoders that are not the paper's.
DEMO: Final = ("block_means", "image_pca", "efficientnet_lite0", "random_densenet_121")
POOLINGS: Final = {
    "class_token": "class token",
    "patch_mean": "mean of the patch tokens",
    "pooled_projection": "projection shared with texts",
    "pooled_attention": "attention pooling",
    "pooled_feature": "mean of the last feature map",
    "pixels": "pixels",
}
#: Libraries that name one file of weights themselves.
_UNFIXED: Final = {"torchxrayvision": "the library's"}
_ACCESS: Final = {"none": "open", "agreement": "accept terms", "request": "ask for access"}


def panel_beside_print() -> pd.DataFrame:
    """The paper's panel: what its Table 2 says of a vector, and what the checkpoint gives.

    Returns
    -------
    pandas.DataFrame
        A row per encoder in the paper's order: ``model, objective, domain`` as the paper has them,
        ``pooling`` in words, ``printed`` and ``ours`` (widths), ``outcome`` (``equal`` or ``differs``).
    """
    import pandas as pd

    printed = load_table("paper_table2").set_index("model")
    rows = []
    for name, model in PAPER.items():
        row, paper = encoder(name), printed.loc[model]
        width = int(str(paper["dimension"]).replace(",", ""))
        rows.append(
            {
                "model": model,
                "objective": paper["pretraining_objective"],
                "domain": paper["domain"],
                "pooling": POOLINGS[row.pooling],
                "printed": width,
                "ours": row.width,
                "outcome": "equal" if row.width == width else "differs",
            }
        )
    return pd.DataFrame(rows)


def modality_counts() -> pd.DataFrame:
    """Encoders of the paper's panel by modality: ``modality, released, untrained, encoders``."""
    import pandas as pd

    rows = []
    for modality in MODALITIES:
        panel = [encoder(name) for name in PAPER if modality in encoder(name).modalities]
        untrained = sum(row.kind == "untrained" for row in panel)
        rows.append((modality, len(panel) - untrained, untrained, len(panel)))
    return pd.DataFrame(rows, columns=["modality", "released", "untrained", "encoders"])


def access_table(names: tuple[str, ...] = tuple(PAPER)) -> pd.DataFrame:
    """Where the weights of some encoders come from.

    Returns
    -------
    pandas.DataFrame
        ``title, library, checkpoint, revision`` (its first 7 digits), ``licence`` (``not confirmed`` where
        the table has none), ``access``; a dash where there are no weights.
    """
    import pandas as pd

    return pd.DataFrame([_access(encoder(name)) for name in names])


def preprocessing_table(mode: str, names: tuple[str, ...] | None = None) -> pd.DataFrame:
    """What images of encoders become.

    Parameters
    ----------
    mode : {"shared", "native"}
        As in :mod:`frame.encoders.preprocessing`.
    names : tuple of str, optional
        Encoders; without it all.

    Returns
    -------
    pandas.DataFrame
        ``title, size`` (pixels, or ``as stored``), ``channels, resizing, mean, std, smallest, largest``.

    Raises
    ------
    frame.InputError
        If there is no such mode.
    """
    import pandas as pd

    rows = []
    for name in names or tuple(encoders()):
        declared = preprocessing_of(encoder(name), mode)
        low, high = declared.range
        crop = f", then its centre of {declared.size}" if declared.resize != declared.size else ""
        rows.append(
            {
                "title": encoder(name).title,
                "size": str(declared.size) if declared.size else "as stored",
                "channels": declared.channels,
                "resizing": f"{declared.resampling} to {declared.resize}{crop}" if declared.size else "–",
                "mean": _statistics(declared.mean),
                "std": _statistics(declared.std),
                "smallest": low,
                "largest": high,
            }
        )
    return pd.DataFrame(rows)


def _access(row: Encoder) -> dict[str, str]:
    weights = row.checkpoint or row.package
    return {
        "title": row.title,
        "library": row.library,
        "checkpoint": weights or "–",
        "revision": row.revision[:7] or _UNFIXED.get(row.library, "not fixed") if row.checkpoint else "–",
        "licence": row.licence or ("not confirmed" if weights else "–"),
        "access": _ACCESS[row.gating] if weights else "random weights" if row.kind == "untrained" else "none",
    }


def _statistics(values: tuple[float, ...] | None) -> str:
    if values is None:
        return "–"
    distinct = values[:1] if len(set(values)) == 1 else values
    return ", ".join(f"{value:.3f}" for value in distinct)

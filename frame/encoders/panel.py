"""The panel of encoders: one row of ``data/encoders.csv`` each, and rows of the user's own.

An encoder is a row, not code: where its weights come from, how wide its vector is and how it is pooled, which
values an image must have. :mod:`frame.encoders.loaders` loads what a row declares and checks it. A table of
one's own, with the same columns, is named by the environment variable :data:`OWN_TABLE`.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from frame.errors import InputError
from frame.tables import check_table, load_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "KINDS",
    "LIBRARIES",
    "OWN_TABLE",
    "WEIGHTS",
    "Encoder",
    "encoder",
    "encoders",
    "side_problem",
    "side_rule",
    "weights_folder",
]

#: Environment variable that names a table of further encoders.
OWN_TABLE: Final = "FRAME_ENCODERS"
#: Environment variable that names a folder with one folder or file of weights for each encoder.
WEIGHTS: Final = "FRAME_WEIGHTS"
#: Packages that a library of the panel needs, in the words of the package index.
LIBRARIES: Final = {
    "transformers": ("torch", "transformers"),
    "open_clip": ("torch", "open_clip_torch"),
    "timm": ("torch", "timm"),
    "torchxrayvision": ("torch", "torchxrayvision"),
    "flair": ("torch", "torchvision"),
    "pixels": (),
    "own": ("torch",),
}
KINDS: Final = ("released", "untrained", "pixels")


@dataclass(frozen=True)
class Encoder:
    """One row of ``data/encoders.csv``.

    Attributes
    ----------
    name, title : str
        Key, and name in text.
    library : str
        A key of :data:`LIBRARIES`: what loads it; ``own``: a function of the user's own, see ``loader``.
    checkpoint : str
        Name of the weights in the library's own place; ``""`` where there are none.
    revision : str
        Commit of the checkpoint; ``""`` where it is not fixed.
    architecture : str
        Class or name of the network in its library.
    width : int
        Numbers in a vector.
    pooling : str
        ``class_token``, ``patch_mean`` (mean of the patch tokens), ``pooled_projection`` (the shared space of
        images and texts), ``pooled_attention`` (attention pooling without a further projection),
        ``pooled_feature`` (mean of the last feature map) or ``pixels``.
    input_size : int
        Pixels of each side that the network sees; 0 where it takes the size of the stored images.
    native_size, native_resize : int
        The same in its own preprocessing, and the shorter side before the centre crop.
    native_resampling : {"bicubic", "bilinear"}
        Filter of that resizing.
    native_mean, native_std : tuple of float, or None
        Its own statistics, by channel, of values scaled to [low, high]; None: it takes these as they are.
    low, high : float
        What black and white become before statistics are applied.
    channels : {1, 3}
        Grey or colour.
    licence, gating : str
        Licence of the weights (``""`` where it is not known), and what is needed to get them: ``none``,
        ``agreement`` (accept terms online) or ``request``.
    modalities, roles : tuple of str
        Modalities in whose panel it is, and what it is used for.
    kind : {"released", "untrained", "pixels"}
        Released weights, random weights from a seed, or a computation on pixels.
    package : str
        Package of the package index that holds the weights; ``""`` where none does.
    loader : str
        Function of the user's own that loads it, as ``module:function``; ``""``: the library's.
    cites, note : str
        Numbers in the paper's list of references, and what else a user must know.
    """

    name: str
    title: str
    library: str
    checkpoint: str
    revision: str
    architecture: str
    width: int
    pooling: str
    input_size: int
    native_size: int
    native_resize: int
    native_resampling: str
    native_mean: tuple[float, ...] | None
    native_std: tuple[float, ...] | None
    low: float
    high: float
    channels: int
    licence: str
    gating: str
    modalities: tuple[str, ...]
    roles: tuple[str, ...]
    kind: str
    package: str
    loader: str
    cites: str
    note: str


def encoders() -> dict[str, Encoder]:
    """All encoders by name: the panel in the order of the paper's Table 2, the demo's, and one's own.

    Raises
    ------
    frame.InputError
        If a table breaks its schema, or one's own table takes a name that the panel has.
    """
    own = os.environ.get(OWN_TABLE, "")
    path = Path(own).absolute()
    try:
        state = (path.stat().st_mtime_ns, path.stat().st_size) if own else (0, 0)
    except OSError:
        state = (0, 0)
    return dict(_encoders(str(path) if own else "", state))


def encoder(name: str) -> Encoder:
    """One encoder.

    Raises
    ------
    frame.InputError
        If there is none of this name.
    """
    known = encoders()
    if name not in known:
        raise InputError(f"There is no encoder {name[:60]!r}; the encoders are {', '.join(known)}.")
    return known[name]


def side_rule(row: Encoder) -> tuple[int, int]:
    """Sides of an image that an encoder's network takes.

    Returns
    -------
    tuple of int
        What a side must be a multiple of, and the smallest side, in pixels; 1 where nothing is known to be
        needed. Patches of a vision transformer of timm do not overlap and leave nothing over; the pooling
        layers of a DenseNet-121 leave nothing of an image of less than 29 pixels; blocks of pixels need a
        pixel each.
    """
    if row.loader:
        return 1, 1
    patch = re.search(r"_patch(\d+)_", row.architecture) if row.library == "timm" else None
    if patch is not None:
        return int(patch[1]), int(patch[1])
    if row.library == "torchxrayvision":
        return 1, 29
    if row.library == "pixels":
        return 1, 32 if row.architecture == "image_pca" else round(row.width**0.5)
    return 1, 1


def side_problem(row: Encoder, side: int) -> str:
    """Why an encoder cannot take images of a side in pixels, in one sentence; ``""`` where it can."""
    multiple, smallest = side_rule(row)
    if side % multiple:
        below = max(side // multiple, 1) * multiple
        near = f"{below} or {below + multiple}"
        return (
            f"encoder {row.name} takes images whose sides are a multiple of {multiple} pixels, and not "
            f"{side}; take {near}"
        )
    if side < smallest:
        return (
            f"encoder {row.name} takes images of at least {smallest} pixels on each side, and not {side}; "
            f"take {smallest} or more"
        )
    return ""


def weights_folder(name: str) -> Path | None:
    """Folder or file of an encoder's weights under the folder that :data:`WEIGHTS` names, if it is there."""
    root = os.environ.get(WEIGHTS, "")
    if not root:
        return None
    path = Path(root) / name
    if path.exists():
        return path
    files = sorted(p for p in Path(root).glob(f"{name}.*") if p.suffix in (".safetensors", ".pth", ".pt"))
    if len(files) > 1:
        raise InputError(
            f"{len(files)} files in the folder of ${WEIGHTS} are called {name} "
            f"({', '.join(file.name for file in files)}); keep one."
        )
    return files[0] if files else None


@lru_cache(maxsize=4)
def _encoders(own: str, state: tuple[int, int]) -> dict[str, Encoder]:
    """All encoders; ``state`` of the table of one's own, so that a changed one is read again."""
    found = {str(row["name"]): _read(row) for row in _records(load_table("encoders"))}
    for row in _own_rows(own):
        if row["name"] in found:
            raise InputError(
                f"The table '{Path(own).name[:60]}' that ${OWN_TABLE} names has an encoder {row['name']!r}, "
                "a name that the panel has; give it another name."
            )
        found[str(row["name"])] = _read(row)
    return found


def _own_rows(own: str) -> list[dict[str, Any]]:
    if not own:
        return []
    import pandas as pd

    path = Path(own)
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8")
    except (OSError, ValueError):
        raise InputError(
            f"The table '{path.name[:60]}' that ${OWN_TABLE} names cannot be read; it must be a CSV file "
            "with the columns of data/encoders.csv."
        ) from None
    try:
        return _records(check_table("encoders", table))
    except InputError as problem:
        # The rows are checked as those of the panel are, and the mistake is in a file of the user's.
        said = str(problem).removeprefix("encoders.csv").removeprefix(", ").removeprefix(": ").rstrip(".")
        raise InputError(
            f"The table '{path.name[:60]}' that ${OWN_TABLE} names: {said}. Mend it there; the page on an "
            "encoder of your own explains the columns."
        ) from None


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]


def _read(row: dict[str, Any]) -> Encoder:
    values = dict(row)
    for key in ("native_mean", "native_std"):
        values[key] = tuple(float(part) for part in row[key].split("|")) if row[key] else None
    for key in ("modalities", "roles"):
        values[key] = tuple(part for part in row[key].split("|") if part)
    for key in ("low", "high"):
        values[key] = float(row[key])
    for key in ("width", "input_size", "native_size", "native_resize", "channels"):
        values[key] = int(row[key])
    return Encoder(**values)

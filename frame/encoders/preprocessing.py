"""From stored pixels to what an encoder takes: resized, scaled, standardised, and checked on every batch.

Two modes. ``shared``: every encoder sees the same picture, resized and centre-cropped to its input size, with
the statistics of ImageNet; an encoder whose values have a range of their own (the DenseNet of TorchXRayVision
takes one channel in [-1024, 1024]) keeps it. ``native``: size, filter and statistics of its release.

Stored pixels are whole numbers from 0 to 255, and resizing keeps them so. Prepared values therefore lie on
256 known levels for each channel. An encoder checks each batch before it computes vectors, and so recognises
one that was scaled in another way, even where its values are inside the allowed range.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from frame.encoders.panel import Encoder, side_problem
from frame.errors import InputError

__all__ = ["IMAGENET_MEAN", "IMAGENET_STD", "MODES", "Preprocessing", "preprocessing_of"]

MODES: Final = ("shared", "native")
IMAGENET_MEAN: Final = (0.485, 0.456, 0.406)
IMAGENET_STD: Final = (0.229, 0.224, 0.225)
#: How far a prepared value may lie from a level, in levels of 256; None: rounding is coarser than a level.
_SLACK: Final = {"float64": 0.01, "float32": 0.01, "float16": 0.3, "bfloat16": None}
#: Weights of red, green and blue in grey, of 65,536 (ITU-R 601, as Pillow has them).
_GREY: Final = (19595, 38470, 7471)
#: Goes up when the same declaration would give other values.
_VERSION: Final = 1


@dataclass(frozen=True)
class Preprocessing:
    """What is done to stored pixels for one encoder.

    Attributes
    ----------
    encoder : str
        Its name, for errors.
    mode : {"shared", "native"}
        See the module.
    size, resize : int
        Side of the prepared image in pixels, 0 for that of the stored one; and the shorter side before the
        centre crop.
    resampling : {"bicubic", "bilinear"}
        Filter of the resizing.
    channels : {1, 3}
        Grey or colour.
    low, high : float
        What 0 and 255 become.
    mean, std : tuple of float, or None
        By channel, applied after that; None: not applied.
    """

    encoder: str
    mode: str
    size: int
    resize: int
    resampling: str
    channels: int
    low: float
    high: float
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None

    @property
    def declared(self) -> dict[str, Any]:
        """Everything that decides the prepared values, as plain values."""
        said = {key: value for key, value in asdict(self).items() if key != "encoder"}
        said["mean"] = None if self.mean is None else list(self.mean)
        said["std"] = None if self.std is None else list(self.std)
        return said | {"version": _VERSION}

    @cached_property
    def sha256(self) -> str:
        """Digest of :attr:`declared`."""
        return hashlib.sha256(json.dumps(self.declared, sort_keys=True).encode()).hexdigest()

    @cached_property
    def levels(self) -> np.ndarray:
        """The 256 values that a channel can have: float32, shape (channels, 256)."""
        scaled = self.low + np.arange(256, dtype=np.float64) / 255.0 * (self.high - self.low)
        mean = np.array(self.mean or (0.0,) * self.channels)[:, None]
        std = np.array(self.std or (1.0,) * self.channels)[:, None]
        return np.asarray((scaled - mean) / std, dtype=np.float32)

    @property
    def range(self) -> tuple[float, float]:
        """The smallest and the largest value that a prepared image can have."""
        return float(self.levels.min()), float(self.levels.max())

    def prepare(self, batch: np.ndarray) -> np.ndarray:
        """Prepare stored images.

        Parameters
        ----------
        batch : numpy.ndarray of uint8, shape (n, height, width) or (n, height, width, 3)
            Pixels as an image store gives them.

        Returns
        -------
        numpy.ndarray of float32, shape (n, channels, size, size)
            Grey images are repeated for an encoder of colour images; colour becomes luminance for one of grey
            images.

        Raises
        ------
        frame.InputError
            If the batch holds anything but 8-bit pixels, or has another shape.
        """
        pixels = self._checked(batch)
        if self.channels == 1 and pixels.ndim == 4:
            pixels = _grey(pixels)
        if self.size:
            pixels = _resized(pixels, self.size, self.resize, self.resampling)
        planes = pixels[:, None] if pixels.ndim == 3 else np.moveaxis(pixels, 3, 1)
        prepared = np.empty((len(planes), self.channels, *planes.shape[2:]), dtype=np.float32)
        for channel in range(self.channels):
            np.take(
                self.levels[channel], planes[:, min(channel, planes.shape[1] - 1)], out=prepared[:, channel]
            )
        self.check_range(prepared)
        return prepared

    def check_range(self, batch: Any) -> None:
        """Refuse a batch whose values are not those that this encoder takes.

        Parameters
        ----------
        batch : numpy.ndarray or torch.Tensor of floating-point numbers, shape (n, channels, size, size)
            A prepared batch, on any device. All values must lie in the range; of each image, one row of
            pixels and one column must also lie on the levels.

        Raises
        ------
        frame.InputError
            Naming the encoder, the range that was found and the one it declares.
        """
        shape = tuple(batch.shape)
        sides = (self.size, self.size) if self.size else shape[2:]
        if len(shape) != 4 or shape[1:] != (self.channels, *sides):
            want = f"(n, {self.channels}, {self.size or 'height'}, {self.size or 'width'})"
            raise InputError(f"Encoder {self.encoder}: a batch has shape {shape}; it must be {want}.")
        kind = str(batch.dtype).removeprefix("torch.")
        if kind not in _SLACK:
            raise InputError(
                f"Encoder {self.encoder}: a batch holds {kind} values; prepare stored images first, which "
                f"gives floating-point numbers from {self.range[0]:.4g} to {self.range[1]:.4g}."
            )
        if 0 in shape:
            return
        slack = _SLACK[kind]
        found = _extremes(batch)
        allowed = (slack if slack is not None else 3.0) * float(np.diff(self.levels[:, :2], axis=1).max())
        low, high = self.range
        if not (found[0] >= low - allowed and found[1] <= high + allowed):
            raise InputError(
                f"Encoder {self.encoder} takes values from {low:.4g} to {high:.4g} ({self.mode} "
                f"preprocessing); a batch has values from {found[0]:.4g} to {found[1]:.4g}. Prepare stored "
                "images with Preprocessing.prepare, and scale them nowhere else."
            )
        if slack is not None and self._off_levels(batch) > slack:
            raise InputError(
                f"Encoder {self.encoder} takes 8-bit pixels scaled to values from {low:.4g} to {high:.4g} "
                f"({self.mode} preprocessing); a batch with values from {found[0]:.4g} to {found[1]:.4g} was "
                "scaled in another way. Prepare stored images with Preprocessing.prepare, and scale them "
                "nowhere else."
            )

    def _checked(self, batch: np.ndarray) -> np.ndarray:
        if not isinstance(batch, np.ndarray) or batch.dtype != np.uint8:
            kind = getattr(batch, "dtype", type(batch).__name__)
            extremes = _extremes(batch) if getattr(batch, "size", 0) and np.isrealobj(batch) else None
            said = "" if extremes is None else f" from {extremes[0]:.4g} to {extremes[1]:.4g}"
            raise InputError(
                f"Encoder {self.encoder}: a batch holds {kind} values{said}; stored images are 8-bit pixels "
                "(uint8 from 0 to 255), which preparing scales to the encoder's own range."
            )
        if batch.ndim not in (3, 4) or (batch.ndim == 4 and batch.shape[3] != 3):
            raise InputError(
                f"Encoder {self.encoder}: a batch has shape {batch.shape}; it must be (n, height, width) or "
                "(n, height, width, 3)."
            )
        return batch

    def _off_levels(self, batch: Any) -> float:
        """The largest distance of some of the values from the nearest level, in levels."""
        worst = 0.0
        height, width = batch.shape[2:]
        for some in (batch[:, :, height // 2, :], batch[:, :, :, width // 2]):
            if not isinstance(some, np.ndarray):
                some = some.detach().float().cpu().numpy()
            first = self.levels[:, 0].astype(np.float64)[None, :, None]
            step = (self.levels[:, 255] - self.levels[:, 0]).astype(np.float64)[None, :, None] / 255.0
            level = (some.astype(np.float64) - first) / step
            worst = max(worst, float(np.abs(level - np.rint(level)).max()))
        return worst


def preprocessing_of(encoder: Encoder, mode: str = "shared") -> Preprocessing:
    """The preprocessing of an encoder.

    Parameters
    ----------
    encoder : Encoder
        A row of the panel.
    mode : {"shared", "native"}
        See the module.

    Returns
    -------
    Preprocessing
        What is declared for it.

    Raises
    ------
    frame.InputError
        If there is no such mode, or the network cannot take images of the size that its row declares.
    """
    if mode not in MODES:
        raise InputError(f"Preprocessing is {mode!r}; it must be one of {', '.join(MODES)}.")
    size = encoder.native_size if mode == "native" else encoder.input_size
    problem = side_problem(encoder, size) if size else ""
    if problem:
        column = "native_size" if mode == "native" else "input_size"
        raise InputError(f"{problem[0].upper()}{problem[1:]} ({column} of its row).")
    values = {"channels": encoder.channels, "low": encoder.low, "high": encoder.high}
    if mode == "native":
        return Preprocessing(
            encoder=encoder.name,
            mode=mode,
            size=encoder.native_size,
            resize=encoder.native_resize,
            resampling=encoder.native_resampling,
            mean=encoder.native_mean,
            std=encoder.native_std,
            **values,  # type: ignore[arg-type]
        )
    # Statistics of ImageNet belong to colour channels from 0 to 1; other ranges are the encoder's own.
    own = encoder.kind == "pixels" or (encoder.channels, encoder.low, encoder.high) != (3, 0.0, 1.0)
    return Preprocessing(
        encoder=encoder.name,
        mode=mode,
        size=encoder.input_size,
        resize=encoder.input_size,
        resampling="bicubic",
        mean=encoder.native_mean if own else IMAGENET_MEAN,
        std=encoder.native_std if own else IMAGENET_STD,
        **values,  # type: ignore[arg-type]
    )


def _extremes(batch: Any) -> tuple[float, float]:
    if isinstance(batch, np.ndarray):
        return float(batch.min()), float(batch.max())
    low, high = batch.detach().aminmax()
    return float(low), float(high)


def _grey(pixels: np.ndarray) -> np.ndarray:
    red, green, blue = (pixels[..., channel].astype(np.uint32) * _GREY[channel] for channel in range(3))
    return np.asarray((red + green + blue + 0x8000) >> 16, dtype=np.uint8)


def _resized(pixels: np.ndarray, size: int, resize: int, resampling: str) -> np.ndarray:
    """Shorter side to ``resize``, centre crop to ``size``; 8-bit pixels stay 8-bit pixels."""
    height, width = pixels.shape[1:3]
    if (height, width) == (size, size) == (resize, resize):
        return pixels
    try:
        from PIL import Image
    except ImportError:
        raise InputError(
            "Resizing images needs pillow; install it with: pip install 'frame-audit[study]'."
        ) from None
    filters = {"bicubic": Image.Resampling.BICUBIC, "bilinear": Image.Resampling.BILINEAR}
    scale = resize / min(height, width)
    sides = (max(size, round(width * scale)), max(size, round(height * scale)))
    left, top = (sides[0] - size) // 2, (sides[1] - size) // 2
    box = (left, top, left + size, top + size)
    made = np.empty((len(pixels), size, size, *pixels.shape[3:]), dtype=np.uint8)
    for row, one in enumerate(pixels):
        picture = Image.fromarray(one)
        if picture.size != sides:
            picture = picture.resize(sides, filters[resampling])
        made[row] = np.asarray(picture.crop(box) if picture.size != (size, size) else picture)
    return made

"""Encoders without a network: means of blocks of pixels, and principal components of images."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from frame.encoders.panel import Encoder
from frame.encoders.preprocessing import preprocessing_of
from frame.errors import InputError

if TYPE_CHECKING:
    from frame.encoders.loaders import Source

__all__ = ["block_means", "fit_components", "load", "write_components"]

#: Blocks on each side whose means image PCA works on.
_GRID: Final = 32
#: Images that are prepared at a time while components are fitted.
_BATCH: Final = 256
_FILE: Final = "components.npz"

Vectors = Callable[[np.ndarray], np.ndarray]


def load(row: Encoder, source: Source) -> tuple[Vectors, dict[str, Any]]:
    """Load a pixel encoder.

    Parameters
    ----------
    row : Encoder
        ``architecture`` says which: ``block_means`` or ``image_pca``.
    source : Source
        For ``image_pca``: training images to fit it to, or a folder or file of fitted components.

    Returns
    -------
    tuple of callable and dict
        From a prepared batch to vectors (float32), and what else goes into the sidecar.

    Raises
    ------
    frame.InputError
        If there is no such encoder, or nothing to fit it to.
    """
    if row.architecture == "block_means":
        side = round(row.width**0.5)
        if side * side != row.width:
            raise InputError(f"Encoder {row.name}: a width of {row.width} is no square number of blocks.")
        return lambda batch: block_means(batch, side), {"origin": "pixels"}
    if row.architecture != "image_pca":
        raise InputError(
            f"Encoder {row.name}: there is no computation {row.architecture!r} on pixels; there are "
            "block_means and image_pca."
        )
    if source.fit_on is not None:
        centre, components = fit_components(row, source.fit_on)
    elif source.folder is not None:
        centre, components = _read_components(row, source.folder)
    else:
        raise InputError(
            f"Encoder {row.name} is fitted to training images: give fit_on, their 8-bit pixels, or the "
            "folder of components that were fitted before."
        )

    def vectors(batch: np.ndarray) -> np.ndarray:
        means = block_means(batch, _GRID).astype(np.float64)
        return np.asarray((means - centre) @ components.T, dtype=np.float32)

    digest = hashlib.sha256(centre.tobytes() + components.tobytes()).hexdigest()
    return vectors, {"origin": "pixels", "components_sha256": digest}


def block_means(batch: np.ndarray, blocks: int) -> np.ndarray:
    """Means of blocks of grey images.

    Parameters
    ----------
    batch : numpy.ndarray of float32, shape (n, 1, height, width)
        Prepared images, at least ``blocks`` pixels on each side.
    blocks : int
        Blocks on each side; where pixels do not divide evenly, blocks differ by one pixel.

    Returns
    -------
    numpy.ndarray of float32, shape (n, blocks ** 2)
        Row by row from the top left.

    Raises
    ------
    frame.InputError
        If an image has fewer pixels than blocks on a side.
    """
    n, _, height, width = batch.shape
    if min(height, width) < blocks:
        raise InputError(
            f"Images of {width} x {height} pixels cannot be cut into {blocks} x {blocks} blocks; they need "
            f"at least {blocks} pixels on each side."
        )
    rows, columns = (np.linspace(0, side, blocks + 1).astype(int) for side in (height, width))
    sums = np.add.reduceat(batch[:, 0].astype(np.float64), rows[:-1], axis=1)
    sums = np.add.reduceat(sums, columns[:-1], axis=2)
    areas = np.diff(rows)[:, None] * np.diff(columns)[None, :]
    return np.asarray((sums / areas).reshape(n, blocks * blocks), dtype=np.float32)


def fit_components(row: Encoder, pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Principal components of training images.

    Parameters
    ----------
    row : Encoder
        Its width is the number of components.
    pixels : numpy.ndarray of uint8, shape (n, height, width) or (n, height, width, 3)
        Training images, more than components.

    Returns
    -------
    tuple of numpy.ndarray
        Mean image, shape (1024,), and components, shape (width, 1024), largest first; the largest entry of
        each is positive. Both float64.

    Raises
    ------
    frame.InputError
        If there are too few images.
    """
    if len(pixels) <= row.width:
        raise InputError(
            f"Encoder {row.name} has {row.width} components, and {len(pixels)} training images cannot "
            f"determine them; it needs at least {row.width + 1}."
        )
    preprocessing = preprocessing_of(row)
    total, square = np.zeros(_GRID * _GRID), np.zeros((_GRID * _GRID, _GRID * _GRID))
    for start in range(0, len(pixels), _BATCH):
        prepared = preprocessing.prepare(np.asarray(pixels[start : start + _BATCH]))
        means = block_means(prepared, _GRID).astype(np.float64) - 0.5
        total += means.sum(axis=0)
        square += means.T @ means
    centre = total / len(pixels)
    spread = square / len(pixels) - np.outer(centre, centre)
    _, axes = np.linalg.eigh(spread)
    components = axes[:, ::-1][:, : row.width].T
    largest = np.abs(components).argmax(axis=1)
    signs = np.sign(components[np.arange(len(components)), largest])
    return centre + 0.5, np.ascontiguousarray(components * signs[:, None])


def write_components(folder: Path, pixels: np.ndarray, row: Encoder) -> Path:
    """Fit components and write them where :func:`load` finds them; returns the file."""
    import io

    from frame.writing import write_bytes

    centre, components = fit_components(row, pixels)
    content = io.BytesIO()
    np.savez(content, centre=centre, components=components)
    folder.mkdir(parents=True, exist_ok=True)
    write_bytes(folder / _FILE, content.getvalue(), "folder")
    return folder / _FILE


def _read_components(row: Encoder, where: Path) -> tuple[np.ndarray, np.ndarray]:
    path = where / _FILE if where.is_dir() else where
    try:
        with np.load(path, allow_pickle=False) as stored:
            centre, components = stored["centre"], stored["components"]
    except (OSError, ValueError, KeyError):
        raise InputError(
            f"The components of {row.name} in '{path.name}' cannot be read; fit them again."
        ) from None
    if centre.shape != (_GRID * _GRID,) or components.shape != (row.width, _GRID * _GRID):
        raise InputError(
            f"The components of {row.name} in '{path.name}' have shape {components.shape}; they must be "
            f"({row.width}, {_GRID * _GRID}). Fit them again."
        )
    return centre, components

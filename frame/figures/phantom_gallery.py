"""Sheets of phantoms: the images of the phantom world at a size for the eye, drawn from the same tables.

A drawing has the same anatomy at every size. What a sheet shows at 192 pixels is therefore what the study
reads at 64.
"""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frame.cohorts.phantom.drawing import drawing_table, pictures
from frame.cohorts.phantom.population import population
from frame.cohorts.phantom.quotas import generator
from frame.cohorts.phantom.truth import SOURCES, PhantomTruth
from frame.cohorts.schema import FINDINGS
from frame.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["KINDS", "Sheet", "gallery_rows", "phantom_sheet"]

#: Sheets that can be made: a modality, or the lighter or darker half of the skin types.
KINDS: Final = ("chest", "light skin", "dark skin", "fundus")
#: Skin types of each half.
_TONES: Final = {"light skin": (1, 2, 3), "dark skin": (4, 5, 6)}
#: Levels of grey and colours of a sheet, which keep its file small.
_GREYS: Final = 30
_COLOURS: Final = 96
#: Width at which a sheet is shown, in CSS pixels.
_WIDTH: Final = 620


@dataclass(frozen=True)
class Sheet:
    """Images side by side; shown when it ends a cell.

    Attributes
    ----------
    images : numpy.ndarray of uint8, shape (n, side, side) or (n, side, side, 3)
        The images, row by row.
    columns : int
        Images in a row.
    summary : str
        What is drawn, in words.
    reduced : int
        Pixels of an image, along each side, that become one pixel of :meth:`png`.
    """

    images: NDArray[np.uint8] = field(repr=False)
    columns: int
    summary: str
    reduced: int = 1

    def _repr_mimebundle_(self, **_: object) -> tuple[dict[str, Any], dict[str, Any]]:
        drawn = base64.b64encode(self.png()).decode("ascii")
        return {"image/png": drawn, "text/plain": self.summary}, {"image/png": {"width": _WIDTH}}

    def __repr__(self) -> str:
        return self.summary

    def picture(self) -> Image:
        """All images as one, as they are drawn; a row that is not full ends in white."""
        from PIL import Image

        n, side = self.images.shape[:2]
        rows = -(-n // self.columns)
        colour = "L" if self.images.ndim == 3 else "RGB"
        sheet = Image.new(colour, (self.columns * side, rows * side), "white")
        for k, image in enumerate(self.images):
            sheet.paste(Image.fromarray(image), (k % self.columns * side, k // self.columns * side))
        return sheet

    def png(self) -> bytes:
        """The sheet as PNG, reduced, in fewer greys or colours than it is drawn in: a tenth of the size."""
        from PIL import Image

        sheet, target = self.picture().reduce(self.reduced), io.BytesIO()
        if sheet.mode == "L":
            low, high = int(self.images.min()), int(self.images.max())
            step = max(high - low, 1) / (_GREYS - 1)
            levels = [round(low + step * k) for k in range(_GREYS)]
            index = np.rint((np.asarray(sheet, dtype=np.float64) - low) / step).clip(0, _GREYS - 1)
            sheet = Image.fromarray(index.astype(np.uint8)).convert("P")
            sheet.putpalette([grey for level in levels for grey in (level, level, level)])
        else:
            sheet = sheet.quantize(_COLOURS, dither=Image.Dither.NONE)
        sheet.save(target, format="png", optimize=True)
        return target.getvalue()


def gallery_rows(truth: PhantomTruth, kind: str, n_images: int) -> pd.DataFrame:
    """Images of a sheet: about as many of each source as of the others, at random.

    Parameters
    ----------
    truth : PhantomTruth
        The world.
    kind : str
        One of :data:`KINDS`.
    n_images : int
        Images of the sheet.

    Returns
    -------
    pandas.DataFrame
        Rows of :func:`frame.cohorts.phantom.population.population`; sources take turns.

    Raises
    ------
    frame.InputError
        If there is no such sheet, or the world has too few images for it.
    """
    if kind not in KINDS:
        raise InputError(f"There is no sheet {kind[:40]!r}; the sheets are {', '.join(KINDS)}.")
    modality = "skin" if kind in _TONES else kind
    parts = []
    for source in SOURCES[modality]:
        if source not in truth.sources:
            continue
        images = population(truth, source)
        if kind in _TONES:
            images = images[images["tone"].isin(_TONES[kind])]
        parts.append(images)
    wanted = [n_images // len(parts) + (k < n_images % len(parts)) for k in range(len(parts))]
    for images, n in zip(parts, wanted, strict=True):
        if len(images) < n:
            raise InputError(f"The world has {len(images):,} images of a source for {kind}; {n:,} are asked.")
    chosen = [_some(truth, images, n) for images, n in zip(parts, wanted, strict=True)]
    turn = np.concatenate([np.arange(len(part)) for part in chosen])
    return pd.concat(chosen, ignore_index=True).iloc[np.argsort(turn, kind="stable")].reset_index(drop=True)


def phantom_sheet(
    truth: PhantomTruth, kind: str, *, n_images: int = 64, side: int = 192, columns: int = 8, reduced: int = 2
) -> Sheet:
    """Draw a sheet of phantoms.

    Parameters
    ----------
    truth : PhantomTruth
        The world.
    kind : str
        One of :data:`KINDS`.
    n_images, side, columns : int
        Images, pixels a side of each, and images in a row.
    reduced : int
        How many times fewer pixels, along each side, the PNG of the sheet has. The drawing at full size is
        :meth:`Sheet.picture`.

    Returns
    -------
    Sheet
        Its summary names the sources and what is drawn.

    Raises
    ------
    frame.InputError
        If there is no such sheet, the world has too few images for it, or a number is out of range.
    """
    if columns < 1 or n_images < 1 or reduced < 1:
        raise InputError(
            f"n_images is {n_images}, columns {columns} and reduced {reduced}; all must be 1 or more."
        )
    rows = gallery_rows(truth, kind, n_images)
    drawn: list[NDArray[np.uint8]] = [np.empty(0, dtype=np.uint8)] * len(rows)
    for source, part in rows.groupby("source", sort=False):
        images = pictures(drawing_table(truth, part), str(source), side)
        for place, image in zip(part.index, images, strict=True):
            drawn[int(place)] = image
    counts = rows["source"].value_counts(sort=False)
    said = ", ".join(f"{source} {count}" for source, count in counts.items())
    summary = f"Phantoms, drawn by a program, {kind}: {len(rows)} images of {side} pixels ({said}).\n"
    return Sheet(np.stack(drawn), columns, summary + _contents(rows, kind), reduced)


def _some(truth: PhantomTruth, images: pd.DataFrame, n: int) -> pd.DataFrame:
    """Images at random; of skin as many of each type as there can be."""
    source = str(images["source"].iloc[0])
    mixed = images.iloc[generator(truth.seed, source, "gallery").permutation(len(images))]
    if "tone" in mixed:
        mixed = mixed.iloc[np.argsort(mixed.groupby("tone").cumcount().to_numpy(), kind="stable")]
    return mixed.iloc[:n]


def _contents(rows: pd.DataFrame, kind: str) -> str:
    """How many images have what."""
    if kind == "chest":
        found = ", ".join(
            f"{name.replace('_', ' ')} {n}"
            for name in FINDINGS["chest"]
            if (n := int(rows[f"{name}_true"].sum()))
        )
        return f"AP views {int((rows['view'] == 'AP').sum())}; {found}"
    if kind == "fundus":
        return f"with glaucoma {int(rows['glaucoma_true'].sum())}"
    types = ", ".join(f"{tone}: {n}" for tone, n in rows["tone"].value_counts().sort_index().items())
    return f"malignant {int(rows['malignant_true'].sum())}; images by skin type {types}"

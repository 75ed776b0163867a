"""One image file to 8-bit pixels, or the reason why not.

What a file is follows from its first bytes, not from its name: PNG, JPEG, DICOM, or the ``npz`` archives of
Harvard-FairVision.

* 8-bit pixels stay as they are. Anything deeper (16-bit PNG as in PadChest, DICOM, floating point) is brought
  to 0-255 by the image's own smallest and largest value, so that an image of 12 bits in a 16-bit file does
  not come out nearly black.
* DICOM: rescale slope and intercept, then the first window or VOI table, where the file has them; MONOCHROME1
  is inverted, so that more attenuation is brighter in every image. An impossible window is left out.
* Palette, one-bit and CMYK images become what they show. Transparency is left out: the colour below counts.
* The EXIF orientation is applied, as a viewer does.
"""

from __future__ import annotations

import io
import os
import stat
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from frame.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = [
    "COLOURS",
    "FUNDUS_ARRAY",
    "LARGEST_FILE",
    "MOST_PIXELS",
    "REASONS",
    "UnreadableImage",
    "decode_pixels",
    "read_bytes",
    "read_pixels",
    "resize_and_crop",
]

#: What an image can be read as: grey, or red, green and blue.
COLOURS: Final = ("L", "RGB")
#: Every reason why an image cannot be read; nothing else stands in an index.
REASONS: Final = (
    "no file is named",
    "the file is missing",
    "the file cannot be opened",
    "the file is empty",
    "the file is larger than 1 GiB",
    "the file is neither PNG, JPEG, DICOM nor npz",
    "the file is truncated or damaged",
    "the image has more than 100 million pixels",
    "the DICOM file holds no pixels",
    "the DICOM file holds several images",
    "the DICOM compression cannot be decoded here",
    "the archive holds no fundus image",
    "the pixels are of an unknown kind",
    "every pixel has the same value",
)
#: Pixels of the largest image that is decoded; a damaged or malicious header can ask for any memory.
MOST_PIXELS: Final = 100_000_000
#: Bytes of the largest file that is read.
LARGEST_FILE: Final = 2**30
#: Name of the fundus image in an archive of Harvard-FairVision.
FUNDUS_ARRAY: Final = "slo_fundus"

#: An image longer than this many times its shorter side is cut before it is resized, not after.
_LONGEST: Final = 4
#: EXIF tag of the orientation.
_ORIENTATION: Final = 0x0112
_PNG, _JPEG, _ZIP = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"PK\x03\x04"
_INSTALL_PILLOW: Final = "Reading images needs Pillow; install it with: pip install 'frame-audit[study]'."
_INSTALL_PYDICOM: Final = (
    "Reading DICOM files needs pydicom; install it with: pip install 'frame-audit[dicom]'."
)


class UnreadableImage(Exception):
    """An image that cannot be read; the run goes on without it.

    Attributes
    ----------
    reason : str
        One of :data:`REASONS`.
    """

    def __init__(self, reason: str) -> None:
        if reason not in REASONS:
            raise ValueError(f"{reason!r} is no reason in REASONS")
        super().__init__(reason)
        self.reason = reason


def read_pixels(path: Path, kind: str) -> np.ndarray:
    """Read one image file.

    Parameters
    ----------
    path : Path
        A PNG, JPEG, DICOM or npz file.
    kind : {"L", "RGB"}
        Grey, or colour.

    Returns
    -------
    numpy.ndarray of uint8, shape (height, width) or (height, width, 3)
        Pixels from 0 to 255, not all the same.

    Raises
    ------
    UnreadableImage
        With one of :data:`REASONS`.
    frame.InputError
        If ``kind`` is neither, or Pillow or pydicom is needed and not installed.
    """
    return decode_pixels(read_bytes(path)[0], kind)


def read_bytes(path: Path) -> tuple[bytes, os.stat_result]:
    """Read a whole file, and what the system says about the very file that was read.

    Parameters
    ----------
    path : Path
        Any path; what is no ordinary file (a folder, a pipe) is refused, never waited for.

    Returns
    -------
    (bytes, os.stat_result)
        Content and status.

    Raises
    ------
    UnreadableImage
        If the file is missing, empty, larger than :data:`LARGEST_FILE`, or cannot be opened.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(path, flags)
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise UnreadableImage("the file cannot be opened")
            if status.st_size > LARGEST_FILE:
                raise UnreadableImage("the file is larger than 1 GiB")
            with os.fdopen(handle, "rb", closefd=False) as file:
                content = file.read()
        finally:
            os.close(handle)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise UnreadableImage("the file is missing") from None
    except OSError:
        raise UnreadableImage("the file cannot be opened") from None
    if not content:
        raise UnreadableImage("the file is empty")
    return content, status


def decode_pixels(content: bytes, kind: str) -> np.ndarray:
    """Decode the content of an image file; otherwise as :func:`read_pixels`.

    Parameters
    ----------
    content : bytes
        The whole file.
    kind : {"L", "RGB"}
        Grey, or colour.

    Returns
    -------
    numpy.ndarray of uint8, shape (height, width) or (height, width, 3)
        Pixels from 0 to 255, not all the same.

    Raises
    ------
    UnreadableImage
        With one of :data:`REASONS`.
    frame.InputError
        If ``kind`` is neither, or Pillow or pydicom is needed and not installed.
    """
    if kind not in COLOURS:
        raise InputError(f"colour is {kind!r}; it must be one of {', '.join(COLOURS)}.")
    if not content:
        raise UnreadableImage("the file is empty")
    try:
        if content.startswith((_PNG, _JPEG)):
            pixels = _of_picture(content, kind)
        elif content[128:132] == b"DICM":
            pixels = _of_array(_dicom_array(content), kind)
        elif content.startswith(_ZIP):
            pixels = _of_array(_fundus_array(content), kind)
        else:
            raise UnreadableImage("the file is neither PNG, JPEG, DICOM nor npz")
    except (UnreadableImage, InputError, MemoryError):
        raise
    except Exception:  # a decoder can fail in any way on a damaged file, and the run must go on
        raise UnreadableImage("the file is truncated or damaged") from None
    if pixels.min() == pixels.max():
        raise UnreadableImage("every pixel has the same value")
    return pixels


def resize_and_crop(pixels: np.ndarray, size: int) -> np.ndarray:
    """Bring the shorter side to ``size`` and cut the square in the middle.

    Parameters
    ----------
    pixels : numpy.ndarray of uint8, shape (height, width) or (height, width, 3)
        An image.
    size : int
        Side of the square in pixels.

    Returns
    -------
    numpy.ndarray of uint8, shape (size, size) or (size, size, 3)
        Resized with Pillow's antialiased bicubic filter, the longer side rounded to whole pixels. A side more
        than four times as long as the other is first cut to four times, so that a line does not become huge.

    Raises
    ------
    frame.InputError
        If Pillow is not installed.
    """
    from_array, bicubic = _resizing()
    height, width = pixels.shape[:2]
    short = min(height, width)
    top, left = (max(0, (side - _LONGEST * short) // 2) for side in (height, width))
    pixels = pixels[top : height - top, left : width - left]
    height, width = pixels.shape[:2]
    new_height, new_width = (max(size, round(side * size / short)) for side in (height, width))
    resized = np.asarray(from_array(pixels).resize((new_width, new_height), bicubic))
    top, left = (new_height - size) // 2, (new_width - size) // 2
    return resized[top : top + size, left : left + size]


def _resizing() -> tuple[Any, Any]:
    try:
        from PIL import Image
    except ImportError:
        raise InputError(_INSTALL_PILLOW) from None
    return Image.fromarray, Image.Resampling.BICUBIC


def _of_picture(content: bytes, kind: str) -> np.ndarray:
    try:
        from PIL import ImageFile
        from PIL.JpegImagePlugin import JpegImageFile
        from PIL.PngImagePlugin import PngImageFile
    except ImportError:
        raise InputError(_INSTALL_PILLOW) from None
    if ImageFile.LOAD_TRUNCATED_IMAGES:
        raise InputError(
            "PIL.ImageFile.LOAD_TRUNCATED_IMAGES is on, so that half an image would pass for a whole one; "
            "set it to False."
        )
    # The plug-ins themselves, not Image.open: no other format is tried, and only the limit below counts.
    opened = PngImageFile if content.startswith(_PNG) else JpegImageFile
    with opened(io.BytesIO(content)) as image:
        _check_size(image.height, image.width)
        image.load()
        upright = _upright(image)
        if upright.mode in ("1", "L", "RGB", "CMYK", "YCbCr"):
            return np.asarray(upright.convert(kind))
        if upright.mode in ("LA", "RGBA"):
            return np.asarray(_without_transparency(upright, kind))
        if upright.mode in ("P", "PA"):
            return np.asarray(_without_transparency(upright.convert("RGBA"), kind))
        if upright.mode.startswith(("I", "F")):
            return _of_array(np.asarray(upright), kind)
    raise UnreadableImage("the pixels are of an unknown kind")


def _upright(image: Image) -> Image:
    """The image as a viewer turns it; an EXIF block that cannot be read says nothing about it."""
    from PIL.Image import Transpose

    try:
        orientation = image.getexif().get(_ORIENTATION)
    except Exception:  # the block is of anybody's making, and the pixels are whole without it
        return image
    turned = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }.get(orientation if isinstance(orientation, int) else 1)
    return image if turned is None else image.transpose(turned)


def _without_transparency(image: Image, kind: str) -> Image:
    """The colours alone; the values below a transparent pixel are what the file holds there."""
    return image.convert("L" if image.mode == "LA" else "RGB").convert(kind)


def _of_array(array: np.ndarray, kind: str) -> np.ndarray:
    """8-bit pixels of grey values of any type, or of 8-bit colour."""
    colour = array.ndim == 3 and array.shape[2] == 3
    if not (array.ndim == 2 or colour) or array.dtype.kind not in "buif" or array.size == 0:
        raise UnreadableImage("the pixels are of an unknown kind")
    if array.dtype != np.uint8:
        array = _to_8_bit(array)
    if colour == (kind == "RGB"):
        return array
    from_array, _ = _resizing()
    return np.asarray(from_array(array).convert(kind))


def _to_8_bit(array: np.ndarray) -> np.ndarray:
    """Grey values by the image's own smallest and largest one; all 0 where they are the same."""
    low, high = float(array.min()), float(array.max())
    if not np.isfinite([low, high]).all():
        raise UnreadableImage("the pixels are of an unknown kind")
    if low == high:
        return np.zeros(array.shape, dtype=np.uint8)
    real = np.float64 if array.dtype.itemsize > 2 else np.float32
    scaled = np.subtract(array, low, dtype=real)
    np.multiply(scaled, 255 / (high - low), out=scaled)
    pixels: np.ndarray = np.rint(scaled).astype(np.uint8)
    return pixels


def _fundus_array(content: bytes) -> np.ndarray:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        name = f"{FUNDUS_ARRAY}.npy"
        if name not in archive.namelist():
            raise UnreadableImage("the archive holds no fundus image")
        if archive.getinfo(name).file_size > 8 * MOST_PIXELS:
            raise UnreadableImage("the image has more than 100 million pixels")
        member = io.BytesIO(archive.read(name))
    version = np.lib.format.read_magic(member)
    read_header = (
        np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    )
    shape, _, dtype = read_header(member)
    # A header can claim any size, and the memory would be taken before the values are missed.
    if dtype.itemsize * int(np.prod(shape, dtype=object)) != len(member.getbuffer()) - member.tell():
        raise UnreadableImage("the file is truncated or damaged")
    member.seek(0)
    array: np.ndarray = np.lib.format.read_array(member, allow_pickle=False)
    _check_size(*(array.shape[:2] if array.ndim > 1 else (1, 1)))
    return array


def _dicom_array(content: bytes) -> np.ndarray:
    """Grey values with rescaling, window and MONOCHROME1 applied, or 8-bit colour."""
    try:
        import pydicom
        from pydicom.pixels.processing import apply_modality_lut
    except ImportError:
        raise InputError(_INSTALL_PYDICOM) from None
    # A value that breaks the standard would be quoted in a warning, and it may be an identifier.
    with pydicom.config.disable_value_validation():
        data = pydicom.dcmread(io.BytesIO(content))
        if not any(keyword in data for keyword in ("PixelData", "FloatPixelData", "DoubleFloatPixelData")):
            raise UnreadableImage("the DICOM file holds no pixels")
        if int(data.get("NumberOfFrames") or 1) != 1:
            raise UnreadableImage("the DICOM file holds several images")
        _check_size(int(data.Rows), int(data.Columns))
        array = _decoded(data)
        if int(data.SamplesPerPixel) == 3:
            return array
        interpretation = str(data.PhotometricInterpretation)
        if interpretation not in ("MONOCHROME1", "MONOCHROME2"):
            raise UnreadableImage("the pixels are of an unknown kind")
        array = _windowed(apply_modality_lut(array, data), data)
    grey = _to_8_bit(array)
    return 255 - grey if interpretation == "MONOCHROME1" else grey


def _decoded(data: Any) -> np.ndarray:
    from pydicom.pixels.decoders.base import get_decoder

    syntax = data.file_meta.TransferSyntaxUID
    if syntax.is_compressed:
        try:
            able = get_decoder(syntax).is_available
        except NotImplementedError:
            able = False
        if not able:
            raise UnreadableImage("the DICOM compression cannot be decoded here")
    array: np.ndarray = data.pixel_array
    return array


def _windowed(array: np.ndarray, data: Any) -> np.ndarray:
    """The first window or VOI table applied; the values as they are where there is none that can be."""
    from pydicom.pixels.processing import apply_voi_lut

    try:
        width = data.get("WindowWidth")
        widths = width if hasattr(width, "__iter__") and not isinstance(width, str) else [width]
        if "VOILUTSequence" not in data and (width is None or not float(next(iter(widths))) >= 1):
            return array
        shown: np.ndarray = apply_voi_lut(array, data)
    except (ValueError, TypeError, AttributeError, KeyError, IndexError, NotImplementedError):
        return array
    return shown


def _check_size(height: int, width: int) -> None:
    if height < 1 or width < 1:
        raise UnreadableImage("the file is truncated or damaged")
    if height * width > MOST_PIXELS:
        raise UnreadableImage("the image has more than 100 million pixels")

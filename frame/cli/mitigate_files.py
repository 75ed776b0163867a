"""Open a .npy file of embeddings without loading it, and say what is wrong with one that is none."""

from __future__ import annotations

import math
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frame.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["open_features"]

_MAGIC = b"\x93NUMPY"
_SAVE = "save the embeddings with numpy.save('embeddings.npy', array)"
_OTHERS = {
    b"PK\x03\x04": "an archive (.npz, .zip or a torch file)",
    b"PK\x05\x06": "an empty archive",
    b"\x80\x02": "a pickle",
    b"\x80\x03": "a pickle",
    b"\x80\x04": "a pickle",
    b"\x80\x05": "a pickle",
    b"PAR1": "a parquet file",
    b"\x89HDF": "an HDF5 file",
    b"\x1f\x8b": "compressed",
}


def open_features(path: Path) -> NDArray[Any]:
    """Map a .npy file: nothing but its header is read.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    ndarray of float16, float32 or float64, shape (rows, dimensions)
        Read-only; in the byte order and the order of storage of the file.

    Raises
    ------
    InputError
        If there is no such file, it is no .npy file of embeddings, or it is cut off.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise InputError(f"{path.name or path} is a folder; give a .npy file.")
        if not stat.S_ISREG(mode):
            raise InputError(f"{path.name} is no ordinary file, so it cannot be mapped; give a .npy file.")
        with path.open("rb") as file:
            start = file.read(len(_MAGIC))
        if start != _MAGIC:
            raise InputError(_no_array(path.name, start))
        return _mapped(path)
    except FileNotFoundError:
        raise InputError(f"{path.name}: there is no such file; check the name and the folder.") from None
    except OSError as problem:
        reason = (problem.strerror or "it cannot be read").lower()
        raise InputError(f"{path.name}: the file cannot be opened ({reason}).") from None


def _no_array(name: str, start: bytes) -> str:
    if not start:
        return f"{name} is empty; {_SAVE}."
    kind = next((kind for magic, kind in _OTHERS.items() if start.startswith(magic)), "no .npy file")
    return f"{name} is {kind}, whatever its name ends with; {_SAVE}."


def _mapped(path: Path) -> NDArray[Any]:
    import numpy as np

    from frame.mitigation.feature_matrix import check_matrix

    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else None
            read = np.lib.format.read_array_header_2_0 if version == (2, 0) else read
            if read is None:
                raise InputError(
                    f"{path.name} has the .npy format {version[0]}.{version[1]}, which plain arrays do not "
                    f"have; {_SAVE}."
                )
            shape, by_column, dtype = read(file)
            offset = file.tell()
    except (ValueError, EOFError) as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError(f"{path.name}: the header of the .npy file is damaged; {_SAVE}.") from None
    if dtype.hasobject:
        raise InputError(
            f"{path.name} holds pickled Python objects, which are not read because a pickle can run code; "
            "save numbers, array.astype('float32')."
        )
    needed, found = offset + math.prod(shape) * dtype.itemsize, path.stat().st_size
    if found < needed:
        raise InputError(
            f"{path.name} is cut off: its header promises {needed:,} bytes and there are {found:,}; write it "
            "again."
        )
    if math.prod(shape) == 0 or len(shape) != 2 or dtype.names is not None or dtype.kind != "f":
        matrix: NDArray[Any] = np.empty(shape if math.prod(shape) == 0 else (1,) * len(shape), dtype=dtype)
        named = InputError(_of_file(str(_problem(matrix, shape)), path.name))
        raise named
    mapped = np.memmap(
        path, dtype=dtype, mode="r", offset=offset, shape=shape, order="F" if by_column else "C"
    )
    try:
        return check_matrix(mapped)
    except InputError as problem:
        raise InputError(_of_file(str(problem), path.name)) from None


def _problem(matrix: NDArray[Any], shape: tuple[int, ...]) -> InputError:
    """What is wrong with an array of this type and shape, without its values."""
    from frame.mitigation.feature_matrix import check_matrix

    try:
        check_matrix(matrix)
    except InputError as problem:
        return InputError(str(problem).replace(f"(shape {matrix.shape})", f"(shape {shape})"))
    return InputError(f"features has shape {shape}; give one row per image.")


def _of_file(sentence: str, name: str) -> str:
    return sentence.replace("features", name, 1) if sentence.startswith("features") else f"{name}: {sentence}"

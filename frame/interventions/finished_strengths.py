"""Strengths that are finished, kept on disk, so that a run that was ended goes on where it was.

A folder holds one sub-folder for each digest of inputs, settings, code and libraries, and in it one file for
each step. A file is written whole under another name and then renamed, and it names its own digest and step:
what was begun, or belongs to other inputs, is never read. No file holds a row of the input.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from frame import __version__
from frame.errors import InputError
from frame.interventions.injected_features import release_pages
from frame.writing import write_bytes

__all__ = ["FinishedStrengths", "digest_of"]

Arrays = Mapping[str, NDArray[Any]]
#: Entry of a file that says what it is.
_ABOUT: Final = "about"
#: Rooms whose code decides the numbers.
_ROOMS: Final = ("interventions", "heads", "mitigation", "inference", "measures")
#: Modules that only say or show what was computed.
_SPOKEN: Final = ("decision.py", "mechanism_report.py", "verdict.py", "verdict_words.py")
#: Libraries that the numbers come from; with another version of one, steps are computed again.
_LIBRARIES: Final = ("numpy", "scipy", "numba", "scikit-learn", "fairlearn", "concept-erasure", "torch")
_BLOCK: Final = 2**22


class FinishedStrengths:
    """Steps of one run on disk.

    Parameters
    ----------
    folder : Path or None
        Where they are kept; made if it is not there. None: nothing is kept or read.
    digest : str
        Of everything the steps depend on.

    Raises
    ------
    InputError
        If the folder cannot be made.
    """

    def __init__(self, folder: Path | None, digest: str) -> None:
        self._digest = digest
        self._place = None if folder is None else folder / digest[:24]
        #: Steps that were read and not computed.
        self.n_read = 0
        if self._place is not None:
            try:
                self._place.mkdir(parents=True, exist_ok=True)
            except OSError as problem:
                reason = (problem.strerror or "it cannot be reached").lower()
                raise InputError(
                    f"folder: '{self._place.parent.name[:60]}' cannot be used ({reason}); give a folder that "
                    "can be written to."
                ) from None

    def read(self, step: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
        """Arrays and facts of a step; None where it is not finished."""
        if self._place is None:
            return None
        try:
            whole = io.BytesIO(self._file(step).read_bytes())
            with np.load(whole, allow_pickle=False) as held:
                arrays = {name: held[name] for name in held.files}
            about = json.loads(bytes(arrays.pop(_ABOUT)).decode("utf-8"))
            right = about["digest"] == self._digest and about["step"] == step
        except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile):
            return None
        if not right:
            return None
        self.n_read += 1
        return arrays, about["facts"]

    def keep(self, step: str, arrays: Arrays, facts: Mapping[str, Any]) -> None:
        """Write a finished step."""
        if self._place is None:
            return
        about = json.dumps({"digest": self._digest, "step": step, "facts": facts}).encode("utf-8")
        held = io.BytesIO()
        np.savez(held, **{_ABOUT: np.frombuffer(about, dtype=np.uint8)}, **arrays)  # type: ignore[arg-type]
        write_bytes(self._file(step), held.getvalue(), "folder")

    def _file(self, step: str) -> Path:
        assert self._place is not None
        return self._place / f"{step}.npz"


def digest_of(
    features: NDArray[Any], rows: Iterable[NDArray[np.int64]], arrays: Arrays, settings: Mapping[str, Any]
) -> str:
    """Digest of everything that the steps of a run depend on.

    Parameters
    ----------
    features : ndarray, shape (rows, dimensions)
        Read in blocks.
    rows : iterable of ndarray of int64
        The rows of it that are used.
    arrays : mapping of str to ndarray
        Labels, groups, patients.
    settings : mapping
        What JSON can say.

    Returns
    -------
    str
        Of the values, whatever file they lie in, of the settings, of the code, and of the versions of the
        libraries it calls.
    """
    digest = hashlib.blake2b(digest_size=20)
    said = {"version": __version__, "code": _code(), "libraries": _versions()}
    said |= {"dtype": features.dtype.str, "width": features.shape[1]}
    digest.update(json.dumps(said | {"settings": settings}, sort_keys=True, default=list).encode("utf-8"))
    for name, array in arrays.items():
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    size = max(1, _BLOCK // (features.shape[1] * features.dtype.itemsize))
    for numbers in rows:
        for start in range(0, len(numbers), size):
            digest.update(np.ascontiguousarray(features[numbers[start : start + size]]).view(np.uint8).data)
            release_pages(features)
    return digest.hexdigest()


def _versions() -> dict[str, str]:
    """Version of each library; an empty text where it is not installed."""
    found = dict.fromkeys(_LIBRARIES, "")
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


@lru_cache(maxsize=1)
def _code() -> str:
    """Digest of the modules whose code decides the numbers."""
    digest = hashlib.blake2b(digest_size=20)
    package = Path(__file__).parents[1]
    for room in _ROOMS:
        for path in sorted((package / room).rglob("*.py")):
            if room == "interventions" and path.name in _SPOKEN:
                continue
            digest.update(path.relative_to(package).as_posix().encode("utf-8"))
            digest.update(path.read_bytes())
    return digest.hexdigest()

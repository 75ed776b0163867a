"""The feature store: one vector per row of a manifest, on disk, mapped into memory, checked when opened.

A store is a folder of three files. ``vectors.npy`` has N x D numbers in float16 or float32, in the order of
the manifest; ``status.npy`` has one number per row, which says whether the row has a vector and, if not, why;
its row of numbers is then NaN. ``features.json`` says what the vectors were made from and holds the digests
of both. It is written last, so that a store without it is not finished.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from frame.cohorts.pixels import REASONS as UNREADABLE
from frame.errors import InputError

__all__ = [
    "DTYPES",
    "FORMAT",
    "NOT_FINITE",
    "REASONS",
    "SIDECAR",
    "STATUS",
    "VECTORS",
    "FeatureStore",
    "array_file_is_whole",
    "file_sha256",
    "open_features",
    "read_features_sidecar",
]

SIDECAR: Final = "features.json"
VECTORS: Final = "vectors.npy"
STATUS: Final = "status.npy"
#: Types that vectors are stored in.
DTYPES: Final = ("float16", "float32")
#: Goes up when a store is laid out in another way.
FORMAT: Final = 1
#: Why an image that can be read has no vector.
NOT_FINITE: Final = (
    "the vector is not finite",
    "the vector does not fit into float16",
    "the vector has length 0, which no scaling makes 1",
)
#: Why a row has no vector; the numbers of ``status.npy`` count in the list that a store was written with.
REASONS: Final = ("", *UNREADABLE, *NOT_FINITE)

_BLOCK: Final = 1 << 20
_AGAIN: Final = "extract them again: frame features extract"


@dataclass(frozen=True)
class FeatureStore:
    """Vectors of the images of a manifest; made by :func:`open_features`.

    Attributes
    ----------
    vectors : numpy.memmap, shape (n, width)
        float16 or float32, in the order of the manifest; NaN where a row has no vector. Only pages that are
        read are loaded.
    codes : numpy.memmap of uint8, shape (n,)
        0 where a row has a vector; otherwise the place of its reason in ``reasons``.
    reasons : tuple of str
        Of which the first is ``""``.
    sidecar : mapping
        What the vectors were made from.
    """

    vectors: np.ndarray = field(repr=False)
    codes: np.ndarray = field(repr=False)
    reasons: tuple[str, ...] = field(repr=False)
    sidecar: Mapping[str, Any] = field(repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, width)."""
        return (self.vectors.shape[0], self.vectors.shape[1])

    @property
    def ready(self) -> np.ndarray:
        """Which rows have a vector: bool, shape (n,)."""
        found: np.ndarray = np.equal(self.codes, 0)
        return found

    @property
    def status(self) -> np.ndarray:
        """By row ``ready``, ``unreadable`` (the image) or ``not finite`` (the vector): text, shape (n,)."""
        words = [
            "ready" if not reason else ("not finite" if reason in NOT_FINITE else "unreadable")
            for reason in self.reasons
        ]
        found: np.ndarray = np.array(words)[np.asarray(self.codes)]
        return found

    def read(self, rows: Sequence[int] | np.ndarray | None = None, dtype: str | None = None) -> np.ndarray:
        """Vectors of some rows, in the order asked for.

        Parameters
        ----------
        rows : sequence of int or of bool, optional
            Row numbers of the manifest from 0, or one flag per row; all rows by default.
        dtype : {"float16", "float32", "float64"}, optional
            What they are returned in; by default what they are stored in.

        Returns
        -------
        numpy.ndarray, shape (len(rows), width)
            A copy.

        Raises
        ------
        frame.InputError
            If a row is not in the store, or has no vector. The sentence gives counts, never a row.
        """
        chosen = self._chosen(rows)
        codes = self.codes[chosen]
        if codes.any():
            counts = np.bincount(codes, minlength=len(self.reasons))
            said = "; ".join(
                f"{count:,}: {reason}"
                for count, reason in zip(counts[1:], self.reasons[1:], strict=True)
                if count
            )
            raise InputError(
                f"{int((codes > 0).sum()):,} of {len(chosen):,} rows have no vector ({said}); choose rows "
                "that are ready."
            )
        found = np.empty((len(chosen), self.shape[1]), dtype=dtype or self.vectors.dtype)
        step = max(1, _BLOCK // max(1, self.shape[1]))
        for start in range(0, len(chosen), step):
            found[start : start + step] = self.vectors[chosen[start : start + step]]
        return found

    def _chosen(self, rows: Sequence[int] | np.ndarray | None) -> np.ndarray:
        n_rows = self.shape[0]
        if rows is None:
            return np.arange(n_rows)
        given = np.asarray(rows)
        if given.size == 0:
            return np.zeros(0, dtype=np.int64)
        if given.ndim != 1 or given.dtype.kind not in "biu":
            raise InputError("Rows are whole numbers from 0, or one flag per row.")
        if given.dtype.kind == "b":
            if len(given) != n_rows:
                raise InputError(f"There are {len(given):,} flags for {n_rows:,} rows; give one per row.")
            return np.flatnonzero(given)
        outside = int(((given < 0) | (given >= n_rows)).sum())
        if outside:
            raise InputError(
                f"{outside:,} of {len(given):,} rows are not in the store, which has {n_rows:,}."
            )
        return given.astype(np.int64)


def open_features(
    folder: Path,
    *,
    manifest_sha256: str | None,
    expected: Mapping[str, Any] | None = None,
    verify: bool = True,
) -> FeatureStore:
    """Open a feature store and check that it is the wanted one, whole and undamaged.

    Parameters
    ----------
    folder : Path
        Folder of the store.
    manifest_sha256 : str or None
        Digest of the manifest whose rows are going to be matched with the vectors; None only where no
        manifest is at hand.
    expected : mapping, optional
        Entries that the sidecar must have, such as ``{"encoder": "clip_vit_l", "normalised": False}``; keys
        of nested entries are joined with a dot (``settings.revision``).
    verify : bool
        Read both files and compare their digests with the sidecar's (a second for each gigabyte). False looks
        at their sizes alone, for a caller that has just compared them.

    Returns
    -------
    FeatureStore
        Vectors are mapped, not loaded.

    Raises
    ------
    frame.InputError
        If the store is not finished, is damaged, or was made from another manifest or with other settings.
    """
    name = folder.name
    sidecar = read_features_sidecar(folder)
    if sidecar is None:
        raise InputError(
            f"The features in '{name}' are not complete: there is no {SIDECAR} that this version reads; "
            "extract them (again), which goes on where the last run ended: frame features extract."
        )
    if manifest_sha256 is not None and sidecar["manifest_sha256"] != manifest_sha256:
        raise InputError(
            f"The features in '{name}' were made from another manifest than the one given, so that their "
            f"rows are not its rows; {_AGAIN}."
        )
    for key, wanted in (expected or {}).items():
        found = _entry(sidecar, key)
        if found != wanted:
            raise InputError(
                f"The features in '{name}' were made with {key} {_short(found)}, not {_short(wanted)}; "
                f"{_AGAIN}."
            )
    n_rows, width, dtype = sidecar["n_rows"], sidecar["width"], np.dtype(sidecar["dtype"])
    files = (
        (VECTORS, (n_rows, width), dtype, sidecar["vectors_sha256"]),
        (STATUS, (n_rows,), np.dtype(np.uint8), sidecar["status_sha256"]),
    )
    for file, shape, kind, digest in files:
        if not array_file_is_whole(folder / file, shape, kind) or (
            verify and file_sha256(folder / file) != digest
        ):
            raise InputError(
                f"The features in '{name}' are damaged: {file} is not what was written; {_AGAIN}."
            )
    codes = np.lib.format.open_memmap(folder / STATUS, mode="r")
    vectors = np.lib.format.open_memmap(folder / VECTORS, mode="r")
    reasons = tuple(str(reason) for reason in sidecar["reasons"])
    return FeatureStore(vectors, codes, reasons, sidecar)


def read_features_sidecar(folder: Path) -> dict[str, Any] | None:
    """What the sidecar of a store says; None where there is none that this version reads."""
    try:
        found = json.loads((folder / SIDECAR).read_text(encoding="utf-8"))
        if not isinstance(found, dict) or found["format"] != FORMAT or found["dtype"] not in DTYPES:
            return None
        texts = ("manifest_sha256", "vectors_sha256", "status_sha256", "key", "encoder")
        numbers = ("n_rows", "width")
        sound = all(isinstance(found[key], str) for key in texts)
        sound = sound and all(isinstance(found[key], int) for key in numbers)
        return found if sound and isinstance(found["reasons"], list) else None
    except (OSError, ValueError, KeyError):
        return None


def array_file_is_whole(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    """Whether a ``.npy`` file has this shape and type and its full size."""
    try:
        with path.open("rb") as file:
            if np.lib.format.read_magic(file) != (1, 0):
                return False
            found = np.lib.format.read_array_header_1_0(file)
            n_bytes = int(np.prod(shape, dtype=object)) * dtype.itemsize
            return found == (shape, False, dtype) and path.stat().st_size == file.tell() + n_bytes
    except (OSError, ValueError):
        return False


def file_sha256(path: Path) -> str:
    """Digest of a file; ``""`` where it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _entry(sidecar: Mapping[str, Any], key: str) -> Any:
    found: Any = sidecar
    for step in key.split("."):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def _short(value: Any) -> str:
    return str(value)[:40] if isinstance(value, str | int | float) else "of another value"

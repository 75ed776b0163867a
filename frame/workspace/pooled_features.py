"""The images of a modality put together: rows of all manifests, and the features of an encoder beside them.

Manifests and feature stores stay where they are: rows are read by number, in the order in which the profile
names the sources. A row whose image could not be read has no vector and is counted with its reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frame.cohorts.schema import read_manifest_file
from frame.encoders.features import FeatureStore
from frame.encoders.panel import encoder
from frame.errors import InputError
from frame.workspace.feature_stages import features_of

if TYPE_CHECKING:
    from frame.workspace.layout import Workspace

__all__ = ["PooledFeatures", "modalities_of", "pooled_features", "pooled_sources"]

_BLOCK_ROWS = 50_000


@dataclass(frozen=True, eq=False)
class PooledFeatures:
    """Rows of the images of a modality and their vectors.

    Attributes
    ----------
    rows : DataFrame
        Columns of the manifests, one row per image, numbered from 0.
    ready : ndarray of bool, shape (n,)
        Which rows have a vector.
    width : int
        Numbers in a vector.
    """

    rows: pd.DataFrame
    ready: NDArray[np.bool_]
    width: int
    _stores: tuple[FeatureStore, ...] = field(repr=False)
    _ends: NDArray[np.int64] = field(repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    def read(self, rows: NDArray[np.int64], dtype: str = "float32") -> NDArray[Any]:
        """Vectors of some rows, in the order asked for.

        Parameters
        ----------
        rows : ndarray of int64, shape (m,)
            Numbers of rows that are ready.
        dtype : str
            What they are returned in.

        Returns
        -------
        ndarray, shape (m, width)

        Raises
        ------
        frame.InputError
            If a row has no vector.
        """
        found = np.empty((len(rows), self.width), dtype=dtype)
        places = np.searchsorted(self._ends, rows, side="right")
        first = 0
        for place, (store, end) in enumerate(zip(self._stores, self._ends.tolist(), strict=True)):
            here = np.flatnonzero(places == place)
            if len(here):
                found[here] = store.read(rows[here] - first, dtype=dtype)
            first = end
        return found

    def blocks(
        self, rows: NDArray[np.int64], size: int = _BLOCK_ROWS
    ) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Vectors of some rows in float32, a block after the other: (place among the rows, vectors)."""
        for start in range(0, len(rows), size):
            place = slice(start, min(start + size, len(rows)))
            yield place, self.read(rows[place])


def pooled_sources(workspace: Workspace, modality: str) -> tuple[str, ...]:
    """Sources of a modality whose images are read, in the profile's order."""
    settings = workspace.profile.sources
    return tuple(name for name in workspace.profile.sources_of(modality) if settings[name].images)


def pooled_features(
    workspace: Workspace, modality: str, name: str, columns: Sequence[str] | None = None
) -> PooledFeatures:
    """Open the features of an encoder for all images of a modality.

    Parameters
    ----------
    workspace : Workspace
        Where manifests and features lie.
    modality : str
        ``chest``, ``skin`` or ``fundus``.
    name : str
        Encoder.
    columns : sequence of str, optional
        Columns of the manifests; all of them by default.

    Returns
    -------
    PooledFeatures

    Raises
    ------
    frame.InputError
        If the profile has no images of the modality, or features are missing, stale or damaged.
    """
    named = pooled_sources(workspace, modality)
    if not named:
        raise InputError(
            f"Profile {workspace.profile.name} has no {modality} source with images; name one in it."
        )
    tables, stores = [], []
    for source in named:
        tables.append(read_manifest_file(workspace.path(f"manifests/{source}.parquet"), columns))
        # The graph has just compared the digests of the files it reads; their sizes are looked at again.
        stores.append(features_of(workspace, source, name, verify=False))
    return PooledFeatures(
        rows=pd.concat(tables, ignore_index=True),
        ready=np.concatenate([store.ready for store in stores]),
        width=encoder(name).width,
        _stores=tuple(stores),
        _ends=np.cumsum([len(table) for table in tables]),
    )


def modalities_of(workspace: Workspace, name: str) -> tuple[str, ...]:
    """Modalities of a profile that an encoder is meant for and that have images."""
    meant = encoder(name).modalities
    return tuple(
        modality
        for modality in workspace.profile.modalities
        if modality in meant and pooled_sources(workspace, modality)
    )

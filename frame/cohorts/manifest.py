"""Manifests: the rows of one source, made the same way for every source.

A site module reads the released tables. Here its rows get what does not depend on the source: ids with the
name of the site in front, pooled categories beside the recorded ones, age bands, a split that no patient,
lesion or case crosses, and the check that every image is there. What is left out is counted with its reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from frame.cohorts.harmonise import age_band, pooled_insurance, pooled_race
from frame.cohorts.listing import present
from frame.cohorts.schema import BASE_COLUMNS, FINDINGS, check_manifest
from frame.cohorts.sites import site_module
from frame.cohorts.sites.contract import LEFT_OUT_COLUMNS, TALLY_COLUMNS, SiteFiles, SiteRows
from frame.cohorts.sources import find_files, sources
from frame.cohorts.splits import check_disjoint, fraction_split, hashed_split, validation_tenth
from frame.errors import InputError
from frame.writing import write_bytes

if TYPE_CHECKING:
    from frame.workspace.profiles import SourceSettings

__all__ = [
    "SPLITS",
    "Manifest",
    "build_manifest",
    "located_files",
    "needs_lists",
    "split_rule",
    "write_counts",
]

#: The ways in which a source can be split; the first is the default. ``fractions`` draws subjects.
SPLITS: Final = {
    "mimic_cxr": ("hashed", "released"),
    "chexpert": ("hashed", "released"),
    "nih_cxr14": ("released", "hashed"),
    "padchest": ("hashed",),
    "vindr_cxr": ("released",),
    "vindr_pcxr": ("released",),
    "ddi": ("fractions",),
    "fitzpatrick17k": ("fractions",),
    "isic_2019": ("fractions",),
    "fairvision": ("released",),
}
NO_FILE: Final = "no image file"
IN_NO_LIST: Final = "in none of the released lists"


@dataclass(frozen=True)
class Manifest:
    """The images of one source; no table is part of the text of this object.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per image, see :mod:`frame.cohorts.schema`; sorted by ``image_id``.
    left_out : pandas.DataFrame
        ``reason``, ``n_images``: images of the released tables that are not in ``table``.
    tally : pandas.DataFrame
        ``field``, ``recorded``, ``value``, ``n_images``: what became of each recorded text, before images
        without a file are left out.
    """

    table: pd.DataFrame = field(repr=False)
    left_out: pd.DataFrame = field(repr=False)
    tally: pd.DataFrame = field(repr=False)


def split_rule(source: str, asked: str) -> str:
    """How a source is split: ``asked``, or its default.

    Raises
    ------
    frame.InputError
        If the source cannot be split that way.
    """
    rules = SPLITS[source]
    if asked == "default":
        return rules[0]
    if asked not in rules:
        raise InputError(
            f"Source {source} cannot have split: {asked}; allowed are default (which is {rules[0]})"
            + "".join(f", {rule}" for rule in rules if rule != "fractions")
            + "."
        )
    return asked


def needs_lists(source: str, settings: SourceSettings) -> bool:
    """Whether the released lists of a split are read."""
    return split_rule(source, settings.split) == "released"


def located_files(
    source: str, settings: SourceSettings, root: Path | None, linked_root: Path | None
) -> SiteFiles:
    """Find the released files of a source.

    Parameters
    ----------
    source : str
        Name of the source.
    settings : SourceSettings
        What the profile says of it.
    root, linked_root : Path or None
        Its folders, see :func:`frame.workspace.roots.source_roots`.

    Returns
    -------
    SiteFiles
        For the site module.

    Raises
    ------
    frame.InputError
        If a folder or a file that is needed is not there; the sentence names all of them.
    """
    for key, folder in (("root", root), ("linked_root", linked_root)):
        if folder is not None and not folder.is_dir():
            raise InputError(
                f"Source {source}: its {key} is no folder that is there; "
                "`frame data check` says what is needed."
            )
    found = find_files(source, root, linked_root, lists_needed=needs_lists(source, settings))
    if found.missing:
        wanted = "; ".join(
            f"{one.patterns[0]} ({one.holds}; in the {one.root} folder)" for one in found.missing
        )
        raise InputError(f"Source {source}: not found: {wanted}. `frame data check` says where to get them.")
    return SiteFiles(source, root, linked_root, found.paths, images=settings.images)


def build_manifest(files: SiteFiles, settings: SourceSettings, seed: int) -> Manifest:
    """Read the released files of one source and make its manifest.

    Parameters
    ----------
    files : SiteFiles
        The files, found.
    settings : SourceSettings
        What the profile says of the source.
    seed : int
        Seed of the split.

    Returns
    -------
    Manifest
        Checked against the schema.

    Raises
    ------
    frame.InputError
        If a table is not what its owner releases, a subject is in two splits, or no image is left.
    """
    source = files.source
    rows: SiteRows = site_module(source).read_rows(files)
    modality = sources()[source].modality
    table = rows.table.reset_index(drop=True)
    left_out = [rows.left_out]
    for column in ("image_id", "subject_id", "patient_id", "study_id"):
        known = table[column].notna()
        table[column] = (source + ":" + table[column].where(known, "").astype("str")).where(known)
    table["split"] = _split(table, split_rule(source, settings.split), seed)
    listed = table["split"].notna()
    left_out.append(_counted(IN_NO_LIST, int((~listed).sum())))
    if settings.images:
        assert files.root is not None  # only packaged tables have no root, and they have no images
        there = table["file"].notna().to_numpy().copy()
        there[there] = present(files.root, table["file"][there])
        left_out.append(_counted(NO_FILE, int((listed & ~there).sum())))
        listed &= there
    table = table[listed].reset_index(drop=True)
    if table.empty:
        raise InputError(
            f"Source {source}: no image is left; "
            + "; ".join(f"{row.n_images:,} images: {row.reason}" for row in _joined(left_out).itertuples())
            + "."
        )
    table["site"] = source
    table["modality"] = modality
    table["age_band"] = age_band(table["age"])
    table["race"] = pooled_race(table["race_recorded"]) if modality == "chest" else table["race_recorded"]
    table["insurance"] = (
        pooled_insurance(table["insurance_recorded"]) if modality == "chest" else table["insurance_recorded"]
    )
    table = check_manifest(table[[*BASE_COLUMNS, *FINDINGS[modality]]])
    alike = check_disjoint(table)
    tally = pd.concat([rows.tally, _alike(alike)], ignore_index=True)
    return Manifest(table, _joined(left_out), tally)


def _split(table: pd.DataFrame, rule: str, seed: int) -> pd.Series:
    """The split of each row, missing where the released lists do not have it."""
    subjects = table["subject_id"]
    if rule == "hashed":
        return hashed_split(subjects, seed)
    if rule == "fractions":
        return fraction_split(subjects, seed)
    split = table["released_split"].astype(object)
    pool = split == "train_val"
    if pool.any():
        split[pool] = validation_tenth(subjects[pool], seed)
    return split.where(split.isin(["train", "validation", "test"]), np.nan)


def _alike(found: pd.DataFrame) -> pd.DataFrame:
    """Ids that differ only by zeros, case or blanks, for the tally: kept apart, and worth a look."""
    some = found[found["n_alike"] > 0]
    rows = [
        (f"{unit} id", "alike but for zeros, case or blanks (ids, not images)", "kept apart", count)
        for unit, count in zip(some["unit"], some["n_alike"], strict=True)
    ]
    return pd.DataFrame(rows, columns=list(TALLY_COLUMNS)).astype({"n_images": "int64"})


def _counted(reason: str, count: int) -> pd.DataFrame:
    rows = [(reason, count)] if count else []
    return pd.DataFrame(rows, columns=list(LEFT_OUT_COLUMNS)).astype({"n_images": "int64"})


def _joined(parts: list[pd.DataFrame]) -> pd.DataFrame:
    there = [part for part in parts if len(part)]
    return pd.concat(there, ignore_index=True) if there else _counted("", 0)


def write_counts(table: pd.DataFrame, path: Path) -> None:
    """Write a table of counts as CSV, the same bytes each time."""
    write_bytes(path, table.to_csv(index=False, lineterminator="\n").encode("utf-8"), path.name)

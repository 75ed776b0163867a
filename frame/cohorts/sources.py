"""The ten sources of images: what they are, who gives them out under which terms, and which files are read.

Both registries are tables of ``data/``. Nothing is downloaded: each user obtains the releases from their
owners and names the folders in a profile.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from frame.cohorts.adjudicated import MINED_TABLE, installed_table
from frame.errors import InputError
from frame.tables import load_table

__all__ = [
    "PACKAGED",
    "PACKAGED_SOURCES",
    "FoundFiles",
    "MissingFile",
    "Source",
    "SourceFile",
    "find_files",
    "source_files",
    "sources",
]

#: As a root: the tables that lie inside the installed package.
PACKAGED: Final = "package:torchxrayvision"
#: Sources whose main table that package holds.
PACKAGED_SOURCES: Final = ("chexpert", "nih_cxr14", "padchest")

_FOLDERS: Final = {"main": ("main",), "linked": ("linked",), "either": ("linked", "main")}


@dataclass(frozen=True)
class Source:
    """One row of ``data/image_sources.csv``.

    Attributes
    ----------
    name, title : str
        Key, and name in text.
    modality : {"chest", "skin", "fundus"}
        What the images show.
    owner, address, terms : str
        Who gives the data out, the page to start from, and the terms of use.
    credential : {"none", "registration", "credentialed"}
        What a user needs beforehand.
    cites : str
        Numbers in the paper's list of references.
    records : dict of str to str
        For patient, age, sex, race, ethnicity, insurance, skin_type and view: ``yes``, ``linked`` (in a
        second release), ``partly``, ``no``, or ``""`` where it is not known.
    released_split : {"yes", "partly", "no"}
        Whether the release says which images are for training, validation and test.
    labels : str
        How the labels came about.
    note : str
        What else a user must know.
    """

    name: str
    title: str
    modality: str
    owner: str
    address: str
    terms: str
    credential: str
    cites: str
    records: dict[str, str]
    released_split: str
    labels: str
    note: str


@dataclass(frozen=True)
class SourceFile:
    """One row of ``data/image_source_files.csv``.

    Attributes
    ----------
    source, key : str
        Source, and what the file is called in the code.
    patterns : tuple of str
        Paths relative to the root, with wildcards; the first that matches wins. A folder ends in ``/``.
    root : {"main", "linked", "either"}
        In the folder of the source, of the release it is linked to, or in either.
    needed : {"yes", "no", "images", "split"}
        Always, never, where images are read, or where the released split is used.
    holds : str
        What it holds, in words.
    """

    source: str
    key: str
    patterns: tuple[str, ...]
    root: str
    needed: str
    holds: str


@dataclass(frozen=True)
class MissingFile:
    """A file that is needed and was not found; fields as in :class:`SourceFile`."""

    key: str
    patterns: tuple[str, ...]
    root: str
    holds: str


@dataclass(frozen=True)
class FoundFiles:
    """What :func:`find_files` found.

    Attributes
    ----------
    paths : dict of str to Path
        Key to file (or folder, for a key that ends in ``_folder``), in the order of the table.
    missing : tuple of MissingFile
        Files that are needed and are not there.
    images : Path or None
        A place where the images of the source may lie; None if none was found.
    """

    paths: dict[str, Path]
    missing: tuple[MissingFile, ...]
    images: Path | None = None


@cache
def sources() -> dict[str, Source]:
    """All sources by name, in the order of the paper's Table 1."""
    table = load_table("image_sources")
    found = {}
    for row in table.to_dict("records"):
        records = {
            str(key).removeprefix("records_"): value
            for key, value in row.items()
            if str(key).startswith("records_")
        }
        kept = {str(key): value for key, value in row.items() if not str(key).startswith("records_")}
        found[kept["name"]] = Source(records=records, **kept)
    return found


@cache
def source_files(source: str) -> tuple[SourceFile, ...]:
    """The files of one source.

    Raises
    ------
    frame.InputError
        If there is no such source.
    """
    if source not in sources():
        raise InputError(f"There is no source {source!r}; the sources are {', '.join(sources())}.")
    table = load_table("image_source_files")
    rows = table[table["source"] == source].to_dict("records")
    return tuple(
        SourceFile(
            source=row["source"],
            key=row["key"],
            patterns=tuple(row["patterns"].split("|")),
            root=row["root"],
            needed=row["needed"],
            holds=row["holds"],
        )
        for row in rows
    )


def find_files(source: str, root: Path | None, linked_root: Path | None, *, lists_needed: bool) -> FoundFiles:
    """Find the released files of one source.

    Parameters
    ----------
    source : str
        Name of the source.
    root : Path or None
        Folder of the release. None: the tables inside the installed package, see :data:`PACKAGED_SOURCES`.
    linked_root : Path or None
        Folder of the release it is linked to.
    lists_needed : bool
        Whether the released split is used, so that its lists are needed.

    Returns
    -------
    FoundFiles
        Plain and compressed names count alike; the first pattern that matches wins.

    Raises
    ------
    frame.InputError
        If there is no such source, a pattern matches two files, or the package does not hold the source.
    """
    declared = source_files(source)
    roots = {"main": _packaged_root(source) if root is None else root, "linked": linked_root}
    paths: dict[str, Path] = {}
    missing: list[MissingFile] = []
    images: Path | None = None
    for file in declared:
        found = None
        for place in _FOLDERS[file.root]:
            folder = roots[place]
            if found is None and folder is not None:
                found = _first(source, file, folder)
        if file.needed == "images":
            images = found
        elif found is not None:
            paths[file.key] = found
        elif file.needed == "yes" or (file.needed == "split" and lists_needed):
            missing.append(MissingFile(file.key, file.patterns, file.root, file.holds))
    return FoundFiles(paths, tuple(missing), images)


def _packaged_root(source: str) -> Path:
    if source not in PACKAGED_SOURCES:
        raise InputError(
            f"The tables of {source} are in no installed package; {PACKAGED} holds those of "
            f"{', '.join(PACKAGED_SOURCES)}. Name the folder of the release as root."
        )
    return installed_table(MINED_TABLE).parent


def _first(source: str, file: SourceFile, folder: Path) -> Path | None:
    """The file or folder that the first matching pattern names; hidden names never match."""
    for pattern in file.patterns:
        is_folder = pattern.endswith("/")
        matches = sorted(folder.glob(pattern.rstrip("/"))) if folder.is_dir() else []
        found = [
            match
            for match in matches
            if not any(part.startswith(".") for part in match.relative_to(folder).parts)
            and (match.is_dir() if is_folder else match.is_file())
        ]
        if len(found) > 1 and file.needed != "images":
            raise InputError(
                f"Source {source}: {len(found)} files match {pattern} ({file.holds}), and which one is meant "
                "cannot be told; keep one of them."
            )
        if found:
            return found[0]
    return None

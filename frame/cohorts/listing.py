"""Which files lie under a folder: one listing per folder instead of one question per file.

A release can hold hundreds of thousands of images in as many folders, often on a network file system, where
asking for each file alone takes hours.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd

from frame.errors import InputError

__all__ = ["check_relative", "files_under", "present"]

_WILDCARDS = frozenset("*?[")


def files_under(root: Path, patterns: Sequence[str]) -> dict[str, str]:
    """Every file that one of several patterns names.

    Parameters
    ----------
    root : Path
        Folder that the patterns are relative to.
    patterns : sequence of str
        POSIX paths in which ``*``, ``?`` and ``[...]`` stand for parts of a name and ``**`` for any number of
        folders, for example ``images_*/images/*.png`` or ``files/**/*.jpg``. Upper and lower case differ. As
        in a shell, a name that begins with a dot (the forks that some systems leave beside every file) is
        found only by a pattern that begins with one.

    Returns
    -------
    dict of str to str
        File name to its POSIX path relative to ``root``, sorted by path. Links are followed; a link back to a
        folder above itself is not.

    Raises
    ------
    frame.InputError
        If ``root`` is no folder or cannot be listed, a pattern leaves it, or a name stands in two folders.
    """
    _check_root(root)
    found: set[str] = set()
    for pattern in patterns:
        parts = PurePosixPath(pattern).parts
        if not parts or parts[0] == "/" or ".." in parts:
            raise InputError(f"The pattern {pattern!r} must be a relative path without '..'.")
        found.update(_matches(root, "", parts, ()))
    named: dict[str, str] = {}
    twice = 0
    for path in sorted(found):
        name = path.rpartition("/")[2]
        twice += name in named
        named.setdefault(name, path)
    if twice:
        raise InputError(
            f"{twice:,} of {len(found):,} files under '{root.name}' bear the name of a file in another "
            f"folder, so that a name does not say which image is meant; keep one copy of each."
        )
    return named


def present(root: Path, files: pd.Series) -> np.ndarray:
    """Whether each of many files is there.

    Parameters
    ----------
    root : Path
        Folder that the paths are relative to.
    files : pandas.Series of str
        POSIX paths relative to ``root``; missing where no file is named.

    Returns
    -------
    numpy.ndarray of bool, shape (n,)
        True where an ordinary file, or a link to one, has this path. A missing path is not there.

    Raises
    ------
    frame.InputError
        If ``root`` is no folder, a folder in it cannot be listed, or a path leads out of it.
    """
    _check_root(root)
    check_relative(files)
    named = files.notna().to_numpy()
    answer = np.zeros(len(files), dtype=bool)
    if not named.any():
        return answer
    paths = files[named].astype(str).str.rpartition("/")
    codes, folders = pd.factorize(paths[0])
    rows = np.flatnonzero(named)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(folders)))
    names = paths[2].to_numpy(dtype=object)
    start = 0
    for folder, end in zip(folders, ends, strict=True):
        there = {entry.name for entry in _listed(root / folder) if entry.is_file()}
        for at in order[start:end]:
            answer[rows[at]] = names[at] in there
        start = end
    return answer


def check_relative(files: pd.Series) -> None:
    """Refuse paths that lead out of the folder that they are relative to.

    Parameters
    ----------
    files : pandas.Series of str
        Paths; missing ones are allowed.

    Raises
    ------
    frame.InputError
        With the number of paths that are absolute, blank, or have a part ``..``.
    """
    named = files.dropna().astype(str)
    outside = named.str.startswith("/") | named.str.contains(r"(?:^|/)\.\.(?:/|$)|\x00") | (named == "")
    if outside.any():
        raise InputError(
            f"{int(outside.sum()):,} of {len(files):,} file names are blank or lead out of the folder of the "
            f"release; a file is named by its path in that folder, such as images/a.png."
        )


def _check_root(root: Path) -> None:
    if not root.is_dir():
        raise InputError(f"The folder '{root.name}' does not exist; name the folder that holds the release.")


def _listed(folder: Path) -> list[os.DirEntry[str]]:
    """Entries of a folder sorted by name; none where it does not exist."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as problem:
        reason = (problem.strerror or "it cannot be read").lower()
        raise InputError(f"A folder of the release cannot be listed ({reason}).") from None


def _matches(
    root: Path, folder: str, parts: tuple[str, ...], above: tuple[tuple[int, int], ...]
) -> Iterator[str]:
    """Paths below ``folder`` that match the parts; ``above`` are the folders that ``**`` went through."""
    part, rest = parts[0], parts[1:]
    prefix = f"{folder}/" if folder else ""
    if part == "**":
        state = (root / folder).stat()
        here = (state.st_dev, state.st_ino)
        if here in above:
            return
        yield from _matches(root, folder, rest or ("*",), above)
        for entry in _listed(root / folder):
            if not entry.name.startswith(".") and entry.is_dir():
                yield from _matches(root, prefix + entry.name, parts, (*above, here))
        return
    if _WILDCARDS.isdisjoint(part):
        path = root / folder / part
        if rest:
            if path.is_dir():
                yield from _matches(root, prefix + part, rest, above)
        elif path.is_file():
            yield prefix + part
        return
    for entry in _listed(root / folder):
        hidden = entry.name.startswith(".") and not part.startswith(".")
        if hidden or not fnmatchcase(entry.name, part):
            continue
        if not rest:
            if entry.is_file():
                yield prefix + entry.name
        elif entry.is_dir():
            yield from _matches(root, prefix + entry.name, rest, above)

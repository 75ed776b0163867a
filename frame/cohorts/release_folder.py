"""What lies in the folder of a release, as a sum that changes when a file comes, goes, or is changed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from frame.workspace.layout import Workspace

__all__ = ["ReleaseFolder"]


class ReleaseFolder:
    """The files below one folder; each sum is made once by an object, since a walk can take long.

    Names that begin with a dot play no part, nor does the workspace where it lies in the folder: what a run
    writes there would make its own inputs look changed. Links are followed, each folder is walked once.

    Parameters
    ----------
    root : Path or None
        The folder; None where the tables come with an installed package.
    """

    def __init__(self, root: Path | None) -> None:
        self._root = root
        self._sums: dict[bool, str | None] = {}

    def names(self, workspace: Workspace) -> str | None:
        """Changes when a file comes or goes; None when there is no such folder."""
        return self._sum(workspace.root, with_times=False)

    def names_and_times(self, workspace: Workspace) -> str | None:
        """Changes when a file comes, goes, or is written again; None when there is no such folder."""
        return self._sum(workspace.root, with_times=True)

    def _sum(self, workspace: Path, *, with_times: bool) -> str | None:
        if self._root is None or not self._root.is_dir():
            return None
        if with_times not in self._sums:
            found = hashlib.sha256()
            for file in _walk(self._root, workspace, with_times=with_times):
                found.update(json.dumps(file).encode("utf-8") + b"\n")
            self._sums[with_times] = found.hexdigest()
        return self._sums[with_times]


def _walk(root: Path, left_out: Path, *, with_times: bool) -> Iterator[tuple[str | int, ...]]:
    """Each file: its path, and its size and time of change where they are asked for."""
    seen = {(status.st_dev, status.st_ino) for status in [_status(left_out)] if status is not None}
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        status = _status(folder)
        here = None if status is None else (status.st_dev, status.st_ino)
        if here is None or here in seen:
            continue
        seen.add(here)
        try:
            with os.scandir(folder) as entries:
                there = sorted(entries, key=lambda one: one.name)
        except OSError:
            # Who reads a file in it will say so; here it is a folder without files.
            yield (os.path.relpath(folder, root), "cannot be listed")
            continue
        for entry in there:
            if entry.name.startswith("."):
                continue
            try:
                is_folder = entry.is_dir()
            except OSError:  # a link that leads to itself
                is_folder = False
            if is_folder:
                waiting.append(Path(entry.path))
                continue
            name = os.path.relpath(entry.path, root)
            file = _status(entry) if with_times else None
            yield (name,) if file is None else (name, file.st_size, file.st_mtime_ns)


def _status(file: Path | os.DirEntry[str]) -> os.stat_result | None:
    try:
        return file.stat()
    except OSError:  # a link to nothing, or a file that has gone since it was listed
        return None

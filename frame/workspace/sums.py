"""SHA-256 sums of files, remembered by size, times and inode so that an unchanged file is read once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from frame.writing import write_text

__all__ = ["Sums"]

_BLOCK: Final = 1 << 20


class Sums:
    """Sums of files, kept in one file of the workspace.

    A sum is trusted as long as the file's size, inode and both of its times are the ones it was made at.
    What is remembered is a saving of time only: without it every sum is made again.

    Parameters
    ----------
    memory : Path
        Where the sums are kept between runs.
    """

    def __init__(self, memory: Path) -> None:
        self._memory = memory
        self._known: dict[str, tuple[list[int], str]] = {}
        with suppress(OSError, ValueError, TypeError, AttributeError):
            kept = json.loads(memory.read_text(encoding="utf-8"))
            self._known = {
                str(name): (list(map(int, stamp)), str(found)) for name, (stamp, found) in kept.items()
            }
        self._changed = False

    def of(self, file: Path) -> str | None:
        """The sum of a file, or None when it is not there."""
        try:
            status = file.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        stamp = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
        name = str(file)
        if name in self._known and self._known[name][0] == stamp:
            return self._known[name][1]
        found = _sum(file)
        self._known[name] = (stamp, found)
        self._changed = True
        return found

    def all_of(self, files: Iterable[Path]) -> dict[Path, str | None]:
        """The sums of several files."""
        return {file: self.of(file) for file in files}

    def keep(self) -> None:
        """Write what is known; two runs at once may lose entries to each other, never mix them."""
        if self._changed:
            self._memory.parent.mkdir(parents=True, exist_ok=True)
            write_text(self._memory, json.dumps(self._known, sort_keys=True), "the workspace")
            self._changed = False


def _sum(file: Path) -> str:
    found = hashlib.sha256()
    with file.open("rb") as content:
        while block := content.read(_BLOCK):
            found.update(block)
    return found.hexdigest()

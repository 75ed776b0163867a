"""Write a file so that nobody ever reads half of it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from frame.errors import InputError

__all__ = ["check_target", "printable", "write_bytes", "write_files", "write_text"]


def printable(text: str) -> str:
    """Replace control characters by their escapes, so that a file cannot steer a terminal or a page."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def check_target(target: Path, name: str, source: Path | None = None, source_name: str = "the input") -> Path:
    """Return the file that a path names: behind a link, an ordinary file, writable, and not the input.

    Parameters
    ----------
    target : Path
        Where something is to be written.
    name : str
        Option or argument that gave it, for the error message.
    source : Path, optional
        A file that must not be overwritten.
    source_name : str
        What that file is, for the error message.

    Returns
    -------
    Path
        The resolved path.

    Raises
    ------
    InputError
        If nothing can be written there.
    """
    try:
        target = target.resolve()
        if not target.parent.is_dir():
            raise InputError(f"{name}: '{target.name[:60]}' cannot be written to: its folder does not exist.")
        if not target.exists():
            return target
        if source is not None and source.exists() and target.samefile(source):
            raise InputError(f"{name} is '{target.name}', {source_name} itself; give another file.")
        if target.is_dir():
            raise InputError(f"{name} names a folder, '{target.name[:60]}'; name a file in it.")
        if not target.is_file():
            raise InputError(
                f"{name} is '{target.name}', no ordinary file; leave {name} away to print the result."
            )
        if not os.access(target, os.W_OK):
            raise InputError(f"{name}: '{target.name}' may not be written to; give another file.")
    except (OSError, ValueError, RuntimeError) as problem:
        if isinstance(problem, InputError):
            raise
        reason = (getattr(problem, "strerror", None) or "it cannot be reached").lower()
        raise InputError(f"{name}: '{target.name[:60]}' cannot be written ({reason}).") from None
    return target


def write_text(target: Path, text: str, name: str) -> None:
    """Write a text as UTF-8, line ends as they are; otherwise as :func:`write_bytes`."""
    write_bytes(target, text.encode("utf-8"), name)


def write_bytes(target: Path, content: bytes, name: str) -> None:
    """Write to a temporary name in the same folder and rename.

    Parameters
    ----------
    target : Path
        File to make or replace; a replaced file keeps its rights.
    content : bytes
        The whole file.
    name : str
        Option or argument that gave the path, for the error message.

    Raises
    ------
    InputError
        If the file cannot be written; what was there before is untouched then.
    """
    write_files([(target, content, name)])


def write_files(files: Sequence[tuple[Path, bytes, str]]) -> None:
    """Write several files, or none: all are written under temporary names before the first is renamed.

    Parameters
    ----------
    files : sequence of (Path, bytes, str)
        Target, content and the option that gave the path, as in :func:`write_bytes`.

    Raises
    ------
    InputError
        If one of them cannot be written; every file is as it was before then.
    """
    with ExitStack() as waste:
        written = []
        for target, content, name in files:
            try:
                handle, part = tempfile.mkstemp(dir=target.parent, prefix=".frame-", suffix=".part")
                temporary = Path(part)
                waste.callback(temporary.unlink, missing_ok=True)
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                # A temporary file is private; the result gets the rights any new file would have.
                mask = os.umask(0)
                os.umask(mask)
                temporary.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~mask)
            except OSError as problem:
                raise _unwritable(target, problem, name) from None
            written.append((temporary, target, name))
        for temporary, target, name in written:
            try:
                temporary.replace(target)
            except OSError as problem:
                raise _unwritable(target, problem, name) from None


def _unwritable(target: Path, problem: OSError, name: str) -> InputError:
    reason = (problem.strerror or "it cannot be written").lower()
    return InputError(f"{name}: '{target.name[:60]}' cannot be written ({reason}).")

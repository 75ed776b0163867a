"""Folders that a profile's sources are read from, as they are on this machine.

A profile names a folder by its path, by a variable of the environment, or as a folder of the workspace; here
the name becomes a path.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from frame.cohorts.sources import PACKAGED
from frame.errors import InputError
from frame.workspace.profiles import IN_WORKSPACE, Profile

__all__ = ["source_roots", "unset_variables"]

_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+)|\$)")


@dataclass(frozen=True)
class _Roots:
    """The folders of one source as they are on this machine."""

    root: Path | None
    linked_root: Path | None


def source_roots(profile: Profile, source: str, workspace: Path) -> _Roots:
    """The folders that a source is read from.

    Parameters
    ----------
    profile : Profile
        Names the roots.
    source : str
        One of its sources.
    workspace : Path
        Folder that ``workspace:`` stands for.

    Returns
    -------
    object with ``root`` and ``linked_root``
        Folders. ``root`` is None when the tables lie in an installed package, ``linked_root`` when there is
        none or its variable is not set; which tables are then missing, the source's table of files says.

    Raises
    ------
    frame.InputError
        If a variable of the environment is not set or holds a relative path, a path is none that can be
        looked at, or a folder is the workspace itself.
    """
    settings = profile.sources[source]
    root = None if settings.root == PACKAGED else _folder(profile, source, "root", settings.root, workspace)
    linked = settings.linked_root
    if linked is None or unset_variables(linked):
        return _Roots(root, None)
    return _Roots(root, _folder(profile, source, "linked_root", linked, workspace))


def unset_variables(given: str) -> tuple[str, ...]:
    """Variables of the environment that a folder of a profile names and that are not set, or empty."""
    named = [match[1] or match[2] for match in _VARIABLE.finditer(given)]
    return tuple(name for name in named if name and not os.environ.get(name, "").strip())


def _folder(profile: Profile, source: str, key: str, given: str, workspace: Path) -> Path:
    if given.startswith(IN_WORKSPACE):
        given = str(workspace / given.removeprefix(IN_WORKSPACE).strip("/")).replace("$", "$$")
    for name in unset_variables(given):
        raise InputError(
            f"Profile {profile.name}, source {source}: its {key} is ${name}, and that environment variable "
            f"is not set; set {name} to the folder of the release."
        )
    where = f"Profile {profile.name}, source {source}: its {key}"
    try:
        folder = Path(_VARIABLE.sub(_value_of, given)).expanduser()
        if not folder.is_absolute():
            if _VARIABLE.match(given) and not given.startswith("$$"):
                raise InputError(
                    f"{where} is {given[:60]}, and that variable holds a relative path, which other "
                    "processes would look for elsewhere; set it to an absolute one."
                )
            folder = Path(profile.origin).parent / folder
        if workspace is not None and folder.is_dir() and workspace.is_dir() and folder.samefile(workspace):
            raise InputError(
                f"{where} is the workspace itself, whose folders would be taken for those of the release; "
                "give the release, or the workspace, a folder of its own."
            )
    except (OSError, ValueError, RuntimeError) as problem:
        if isinstance(problem, InputError):
            raise
        reason = _reason(problem) if isinstance(problem, OSError) else "no such folder can be there"
        raise InputError(f"{where} cannot be looked at ({reason}); give the folder of the release.") from None
    return folder


def _value_of(variable: re.Match[str]) -> str:
    name = variable[1] or variable[2]
    return os.environ[name] if name else "$"


def _reason(problem: OSError) -> str:
    return (problem.strerror or "unknown reason").lower()

"""Where a study keeps its artefacts."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from frame.errors import InputError

if TYPE_CHECKING:
    from frame.workspace.profiles import Profile

__all__ = ["FOLDERS", "Workspace", "default_root", "open_workspace", "project_folder"]

#: The rooms of a workspace.
FOLDERS: Final = (
    "raw",
    "manifests",
    "images",
    "features",
    "weights",
    "scores",
    "results",
    "notebooks",
    "book",
)
#: What the engine keeps for itself: locks, half-made artefacts, sums of files that were read.
STATE: Final = ".state"


@dataclass(frozen=True)
class Workspace:
    """A folder of artefacts, and the profile that they belong to.

    Attributes
    ----------
    root : Path
        The folder. It need not exist; what is written makes the folders that it needs.
    profile : Profile
        The checked profile.
    """

    root: Path
    profile: Profile

    def path(self, artefact: str) -> Path:
        """The file of an artefact that is named relative to the workspace, such as ``results/x.parquet``."""
        return self.root / artefact

    def only(self, sources: Iterable[str]) -> Workspace:
        """The same folder, with some of the profile's image sources."""
        return Workspace(self.root, self.profile.only(sources))

    @property
    def state(self) -> Path:
        """Folder of the engine's own files."""
        return self.root / STATE

    @property
    def owner(self) -> Path:
        """File that says which profile the workspace belongs to."""
        return self.state / "profile"


def project_folder() -> Path | None:
    """The clone that this package runs from, with the notebooks and the book; None for an installed copy."""
    folder = Path(__file__).resolve().parents[2]
    return folder if (folder / "notebooks").is_dir() and (folder / "_toc.yml").is_file() else None


def default_root(profile: str) -> Path:
    """Where the workspace of a profile lies when nothing else is said.

    ``FRAME_WORKSPACE`` where that variable is set; in a clone ``_build/workspaces/<profile>``; otherwise
    ``workspaces/<profile>`` in the current folder.
    """
    named = os.environ.get("FRAME_WORKSPACE")
    if named:
        return Path(named)
    project = project_folder()
    return (project / "_build" if project else Path()) / "workspaces" / profile


def open_workspace(profile: Profile, root: Path | str | None = None) -> Workspace:
    """The workspace of a profile.

    Parameters
    ----------
    profile : Profile
        A checked profile.
    root : Path or str, optional
        Its folder; without one, :func:`default_root`.

    Raises
    ------
    frame.InputError
        If the path is there and is no folder, or is the workspace of another profile.
    """
    named = Path(root if root is not None else default_root(profile.name))
    try:
        folder = named.expanduser().absolute()
        is_file = folder.exists() and not folder.is_dir()
    except (OSError, ValueError, RuntimeError) as problem:
        reason = (getattr(problem, "strerror", None) or "no such folder can be there").lower()
        raise InputError(
            f"The workspace '{named.name[:60]}' cannot be looked at ({reason}); give another folder."
        ) from None
    if is_file:
        raise InputError(
            f"The workspace '{folder.name}' is a file; give a folder, or a name that is not there yet."
        )
    workspace = Workspace(folder, profile)
    with suppress(OSError, UnicodeDecodeError):
        owner = workspace.owner.read_text(encoding="utf-8").strip()
        if owner != profile.name:
            raise InputError(
                f"The workspace '{folder.name}' belongs to profile {owner}; give profile "
                f"{profile.name} a folder of its own (--workspace, or the variable FRAME_WORKSPACE)."
            )
    return workspace

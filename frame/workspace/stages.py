"""Stages: what makes an artefact, whether it is stale, and how it is made.

Every artefact has a sidecar, a JSON file beside it, which says what it was made from: the profile's values,
the sums of its inputs and of the modules of this package, the seed and the version. An artefact is stale
when one of them is no longer what the sidecar says, or when the artefact is not the file that was written.
Times of files play no part.

A stage writes into a folder of its own; when it is done its outputs are renamed into place and the sidecar is
written last. A run that is killed leaves either the old artefact or a new one without its sidecar, and such
a one is made again. One stage is made by one process at a time.
"""

from __future__ import annotations

import fcntl
import importlib.metadata
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from frame import __version__
from frame.errors import InputError
from frame.workspace.layout import Workspace
from frame.workspace.modules import module_hashes
from frame.workspace.sums import Sums
from frame.writing import write_text

__all__ = ["Stage", "make", "read_sidecar", "sidecar", "staleness"]

#: Fields of a sidecar that are compared, and the word for a change of each.
_COMPARED: Final = {
    "settings": "setting",
    "inputs": "input",
    "files": "file",
    "modules": "module",
    "libraries": "library",
}
_UNKNOWN: Final = object()
#: Libraries whose version every artefact is made with.
_LIBRARIES: Final = ("numpy", "pandas", "pyarrow", "scipy")


@dataclass(frozen=True)
class Stage:
    """Something that makes artefacts.

    Attributes
    ----------
    name : str
        Such as ``manifest:nih_cxr14``.
    outputs : tuple of str
        Artefacts it makes, relative to the workspace; the sidecar lies beside the first.
    run : callable
        Called with the workspace and a folder; writes each output into the folder under the output's file
        name. With ``in_place`` it writes to the workspace itself, which it must do by renaming.
    inputs : tuple of str
        Artefacts it reads, relative to the workspace.
    files : mapping of str to Path
        Files from outside the workspace that it reads, by a label that names no place.
    fingerprints : mapping of str to callable
        The same for what is too much to be read each time, such as a folder of images: called with the
        workspace, gives a text that changes when the files do, or None when they cannot be looked at yet.
    settings : mapping of str to value
        Values of the profile and other parameters that it uses, as JSON has them.
    modules : tuple of str
        Modules of this package whose code makes the artefacts; what they import belongs to them.
    in_place : bool
        See ``run``.
    written : mapping of str to callable
        What it writes to the workspace besides its outputs, such as a folder of many files, by a label:
        called with the workspace, gives a text that changes when the files do, or None when they are not
        there.
    whole : callable, optional
        Called with the workspace: whether files that belong to the outputs, and are too large to be read
        each time, are there.
    """

    name: str
    outputs: tuple[str, ...]
    run: Callable[[Workspace, Path], None] = field(repr=False)
    inputs: tuple[str, ...] = ()
    files: Mapping[str, Path] = field(default_factory=dict)
    fingerprints: Mapping[str, Callable[[Workspace], str | None]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    in_place: bool = False
    written: Mapping[str, Callable[[Workspace], str | None]] = field(default_factory=dict)
    whole: Callable[[Workspace], bool] | None = field(default=None, repr=False)

    @property
    def file_name(self) -> str:
        """The name in a form that every file system takes."""
        return self.name.replace(":", "-").replace("/", "-")


def sidecar(workspace: Workspace, stage: Stage) -> Path:
    """The file that says what a stage's artefacts were made from."""
    return workspace.path(stage.outputs[0] + ".json")


def read_sidecar(workspace: Workspace, stage: Stage) -> dict[str, Any] | None:
    """What the sidecar of a stage says, or None when there is none that can be read."""
    try:
        found = json.loads(sidecar(workspace, stage).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or found.get("stage") != stage.name:
        return None
    # Another version may have written it: what it lacks is as nothing.
    return {**found, **{name: _mapping(found.get(name)) for name in (*_COMPARED, "outputs")}}


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def staleness(workspace: Workspace, stage: Stage, sums: Sums | None = None) -> tuple[str, ...]:
    """Why an artefact has to be made again.

    Parameters
    ----------
    workspace : Workspace
        Where the artefacts lie.
    stage : Stage
        What makes them.
    sums : Sums, optional
        Sums of files that are already known.

    Returns
    -------
    tuple of str
        Reasons, each a few words such as ``setting labels.blank changed``; empty when the artefact is fresh.
    """
    sums = sums or Sums(_memory(workspace))
    made = read_sidecar(workspace, stage)
    if made is None:
        return ("never made",)
    now = _provenance(workspace, stage, sums)
    reasons = [
        f"{word} {label} {_change(made[name].get(label), now[name].get(label))}"
        for name, word in _COMPARED.items()
        for label in sorted({*made[name], *now[name]})
        # What is not there has the sum None; it differs from what was never asked for.
        if made[name].get(label, _UNKNOWN) != now[name].get(label, _UNKNOWN)
    ]
    outputs = _sums_of(workspace, stage.outputs, sums)
    reasons += [
        f"output {output} {'is missing' if found is None else 'is not the file that was written'}"
        for output, found in outputs.items()
        if made["outputs"].get(output) != found or found is None
    ]
    reasons += [
        f"output {label} {'is missing' if found is None else 'is not what was written'}"
        for label, found in _written(workspace, stage).items()
        if made.get("outputs", {}).get(label) != found or found is None
    ]
    if not reasons and stage.whole is not None and not stage.whole(workspace):
        reasons.append(f"output {stage.outputs[0]} is damaged, or lacks a part")
    sums.keep()
    return tuple(reasons)


def make(workspace: Workspace, stage: Stage, *, force: bool = False) -> bool:
    """Make a stage's artefacts if they are stale.

    Parameters
    ----------
    workspace : Workspace
        Where the artefacts lie.
    stage : Stage
        What makes them; the artefacts it reads must be there.
    force : bool
        Make them even when they are fresh.

    Returns
    -------
    bool
        True when they were made, False when they were fresh. In both cases they are then newer than their
        inputs, which is what the engine looks at.

    Raises
    ------
    frame.InputError
        If an input is missing, or what the stage reads is wrong; the artefacts are as they were before.
    """
    with _only_one(workspace, stage):
        sums = Sums(_memory(workspace))
        for artefact in stage.inputs:
            if not workspace.path(artefact).is_file():
                raise InputError(f"{stage.name} reads {artefact}, which is not there yet; make that first.")
        for label, file in stage.files.items():
            if not file.is_file():
                raise InputError(f"{stage.name} reads {label}, and there is no such file.")
        if not force and not staleness(workspace, stage, sums):
            for artefact in (*stage.outputs, stage.outputs[0] + ".json"):
                os.utime(workspace.path(artefact))
            return False
        before = _provenance(workspace, stage, sums)
        scratch = workspace.state / "scratch" / stage.file_name
        shutil.rmtree(scratch, ignore_errors=True)
        try:
            scratch.mkdir(parents=True)
            stage.run(workspace, scratch)
            _publish(workspace, stage, scratch)
        except OSError as problem:
            # What is missing from an artefact after all is a defect, and so is what has no file behind it.
            if isinstance(problem, FileNotFoundError) or problem.errno is None:
                raise
            raise InputError(
                f"{stage.name}: a file cannot be read or written ({_reason(problem)}); its artefacts are as "
                "they were."
            ) from None
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        after = Sums(_memory(workspace))
        changed = [label for label, file in stage.files.items() if after.of(file) != before["files"][label]]
        if changed:
            raise InputError(f"{stage.name}: {changed[0]} changed while it was read; run it again.")
        record = {
            "stage": stage.name,
            **before,
            "outputs": {**_sums_of(workspace, stage.outputs, after), **_written(workspace, stage)},
            "profile": workspace.profile.name,
            "profile_sha256": workspace.profile.sha256,
            "seed": workspace.profile.seed,
            "frame": __version__,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        write_text(sidecar(workspace, stage), json.dumps(record, indent=1, sort_keys=True) + "\n", stage.name)
        after.keep()
    return True


def _publish(workspace: Workspace, stage: Stage, scratch: Path) -> None:
    for output in stage.outputs:
        target = workspace.path(output)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not stage.in_place:
            (scratch / target.name).replace(target)
        if not target.is_file():
            raise RuntimeError(f"{stage.name} did not write {output}")


def _provenance(workspace: Workspace, stage: Stage, sums: Sums) -> dict[str, dict[str, Any]]:
    return {
        "settings": json.loads(json.dumps(dict(stage.settings))),
        "inputs": _sums_of(workspace, stage.inputs, sums),
        "files": {
            **{label: sums.of(file) for label, file in stage.files.items()},
            **{label: look(workspace) for label, look in stage.fingerprints.items()},
        },
        "modules": module_hashes(stage.modules),
        "libraries": {name: importlib.metadata.version(name) for name in _LIBRARIES},
    }


def _sums_of(workspace: Workspace, artefacts: tuple[str, ...], sums: Sums) -> dict[str, str | None]:
    return {artefact: sums.of(workspace.path(artefact)) for artefact in artefacts}


def _written(workspace: Workspace, stage: Stage) -> dict[str, str | None]:
    return {label: look(workspace) for label, look in stage.written.items()}


def _change(before: Any, now: Any) -> str:
    if before is None:
        return "is new"
    return "is gone" if now is None else "changed"


def _reason(problem: OSError) -> str:
    return (problem.strerror or "unknown reason").lower()


def _memory(workspace: Workspace) -> Path:
    return workspace.state / "sums.json"


def _unlocked(workspace: Workspace, problem: OSError) -> InputError:
    return InputError(
        f"The workspace '{workspace.root.name}' lies where no file can be locked ({_reason(problem)}); "
        "give one on another file system."
    )


@contextmanager
def _only_one(workspace: Workspace, stage: Stage) -> Iterator[None]:
    """Hold the stage's lock, which ends with the process that holds it, however that ends."""
    folder = workspace.state / "locks"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not workspace.owner.is_file():
            write_text(workspace.owner, workspace.profile.name + "\n", "the workspace")
        lock = (folder / stage.file_name).open("a")
    except OSError as problem:
        raise InputError(
            f"The workspace '{workspace.root.name}' cannot be written to ({_reason(problem)})."
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with suppress(OSError):  # that nobody can read it is no failure
                print(f"{stage.name} is being made by another run; waiting for it.", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError as problem:
            raise _unlocked(workspace, problem) from None
        yield

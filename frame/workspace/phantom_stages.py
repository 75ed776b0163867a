"""Stages that draw the phantom world: one per source, each into its folder of raw files.

The folder is what a release is for a real source. The artefact of a stage is a list with the number of files,
their bytes and one sum over all names and contents; later stages read the list, so that they can be named
before anything is drawn, and are made again when a raw file has changed. The table of what is true of every
image lies apart and is read by no stage.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from frame.errors import InputError
from frame.workspace.profiles import RAW
from frame.workspace.stages import Stage, make, staleness
from frame.writing import write_text

if TYPE_CHECKING:
    from frame.cohorts.phantom.truth import PhantomTruth
    from frame.workspace.layout import Workspace

__all__ = ["draw_phantoms", "phantom_stages", "raw_list", "truth_table"]

#: Libraries that encode the images, beside those that every artefact is made with.
_ENCODERS: Final = ("pillow",)


def raw_list(source: str) -> str:
    """The artefact that lists the raw files of a drawn source."""
    return f"{RAW}/{source}.files.json"


def truth_table(source: str) -> str:
    """The artefact with what is true of every image of a drawn source."""
    return f"{RAW}/truth/{source}.parquet"


def phantom_stages(workspace: Workspace) -> list[Stage]:
    """One stage per source of a profile whose images are drawn; none for another profile."""
    truth = workspace.profile.phantom
    if truth is None:
        return []
    settings = {
        "phantom": truth.model_dump(mode="json"),
        "sizes.image": workspace.profile.sizes.image,
        **{f"package {name}": _version(name) for name in _ENCODERS},
    }
    return [
        Stage(
            name=f"phantom:{source}",
            outputs=(raw_list(source), truth_table(source)),
            run=partial(_draw, source, 1),
            settings=settings,
            modules=("frame.cohorts.phantom.world",),
            in_place=True,
            written={f"{RAW}/{source}": partial(_sum_of, source)},
        )
        for source in workspace.profile.sources
    ]


def draw_phantoms(workspace: Workspace, workers: int, say: Callable[[str], None] | None = None) -> list[str]:
    """Draw every source of a profile that is stale, several at once.

    Parameters
    ----------
    workspace : Workspace
        Of a profile whose images are drawn.
    workers : int
        Processes that draw. A source has one of them, or all where it is the only one that is stale.
    say : callable, optional
        Told the name of each stage before it is run.

    Returns
    -------
    list of str
        Names of the stages that were run, in the profile's order.

    Raises
    ------
    frame.InputError
        If the number is out of range, or a source cannot be written.
    """
    if workers < 1:
        raise InputError(f"workers is {workers}; it must be 1 or more.")
    truth = workspace.profile.phantom
    waiting = {stage.name: stage for stage in phantom_stages(workspace) if staleness(workspace, stage)}
    if truth is None or not waiting:
        return []
    if say:
        for name in waiting:
            say(name)
    if workers == 1 or len(waiting) == 1:
        for name, stage in waiting.items():
            make(workspace, replace(stage, run=partial(_draw, _source_of(name), workers)))
        return list(waiting)
    from frame.cohorts.phantom.world import follow_parent

    # The largest first, so that all processes end at about the same time.
    order = sorted(waiting, key=lambda name: -truth.sizes(_source_of(name)).total)
    pool = ProcessPoolExecutor(min(workers, len(order)), get_context("spawn"), initializer=follow_parent)
    with pool:
        try:
            for done in as_completed([pool.submit(_make_named, workspace, name) for name in order]):
                done.result()
        except BrokenProcessPool:
            raise InputError(
                "A process that draws phantoms ended before its work was done; run again, which goes on with "
                "the sources that are left, with fewer workers if the memory was too small."
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)
    return list(waiting)


def _make_named(workspace: Workspace, name: str) -> None:
    """Make one stage; run by a worker."""
    make(workspace, {stage.name: stage for stage in phantom_stages(workspace)}[name])


def _source_of(stage: str) -> str:
    return stage.partition(":")[2]


def _draw(source: str, workers: int, workspace: Workspace, folder: Path) -> None:
    from frame.cohorts.phantom.world import STAMP, write_world

    truth: PhantomTruth | None = workspace.profile.phantom
    assert truth is not None  # the stage is of such a profile
    raw = workspace.path(RAW)
    # Whatever is there is stale or damaged.
    (raw / source / STAMP).unlink(missing_ok=True)
    write_world(truth, raw, workspace.profile.sizes.image, workers, sources=(source,))
    found = _listed(raw / source)
    target = workspace.path(raw_list(source))
    write_text(target, json.dumps({"source": source, **found}, indent=1) + "\n", target.name)


def _sum_of(source: str, workspace: Workspace) -> str | None:
    folder = workspace.path(f"{RAW}/{source}")
    return str(_listed(folder)["sha256"]) if folder.is_dir() else None


def _listed(folder: Path) -> dict[str, Any]:
    """Number of files below a folder, their bytes, and one sum over names and contents in order of name."""
    from frame.cohorts.phantom.world import STAMP

    names = sorted(
        Path(place, name).relative_to(folder).as_posix()
        for place, _, files in os.walk(folder)
        for name in files
    )
    # The stamp changes with the code that draws, also where the drawings do not.
    names = [name for name in names if name != STAMP]
    found, n_bytes = hashlib.sha256(), 0
    for name in names:
        content = (folder / name).read_bytes()
        n_bytes += len(content)
        found.update(f"{name}\n{len(content)}\n".encode("utf-8", "surrogateescape"))
        found.update(content)
    return {"n_files": len(names), "n_bytes": n_bytes, "sha256": found.hexdigest()}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"

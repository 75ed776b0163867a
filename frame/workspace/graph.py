"""The graph of a study: every stage of a profile, in an order in which each comes after what it reads."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from frame.errors import InputError
from frame.experiments.contract import EXPERIMENTS
from frame.workspace.cohort_stages import modality_stages, source_stages
from frame.workspace.experiment_stages import experiment_stages
from frame.workspace.feature_stages import feature_stages
from frame.workspace.notebook_stages import notebook_stages
from frame.workspace.phantom_stages import phantom_stages
from frame.workspace.score_stages import score_stages
from frame.workspace.stages import Stage, make, staleness
from frame.workspace.sums import Sums

if TYPE_CHECKING:
    from frame.workspace.layout import Workspace

__all__ = ["make_with_inputs", "stage_of", "stages", "stale_stages"]


def stages(workspace: Workspace) -> dict[str, Stage]:
    """All stages of a workspace's profile, by name.

    Parameters
    ----------
    workspace : Workspace
        Says the profile, and where artefacts lie.

    Returns
    -------
    dict of str to Stage
        ``phantom:<source>`` where images are drawn, ``manifest:<source>``, ``images:<source>``,
        ``reports:<source>``, ``features:<source>:<encoder>``, ``scores:<modality>:<encoder>:<head>``,
        ``results:<experiment>:<unit>``, ``collect:<experiment>``, ``notebook:<name>`` and ``book``; each
        after the stages whose artefacts it reads.

    Raises
    ------
    frame.InputError
        If released files that the profile needs are not found.
    """
    found: list[Stage] = phantom_stages(workspace)
    for source in workspace.profile.sources:
        found += source_stages(workspace, source)
    for modality in workspace.profile.modalities:
        found += modality_stages(workspace, modality)
    found += feature_stages(workspace)
    found += score_stages(workspace)
    for name in EXPERIMENTS:
        found += experiment_stages(workspace, name)
    found += notebook_stages(workspace)
    return {stage.name: stage for stage in found}


def stage_of(workspace: Workspace, name: str) -> Stage:
    """One stage by its name.

    Raises
    ------
    frame.InputError
        If the profile has no such stage.
    """
    found = stages(workspace)
    if name not in found:
        near = difflib.get_close_matches(name, found, 1)
        hint = f"; did you mean {near[0]}?" if near else f"; the stages are {', '.join(found)}."
        raise InputError(f"Profile {workspace.profile.name} has no stage {name[:80]!r}{hint}")
    return found[name]


def stale_stages(workspace: Workspace) -> dict[str, tuple[str, ...]]:
    """Every stage that has to be run, with the reasons, also those whose inputs are going to be made again.

    Returns
    -------
    dict of str to tuple of str
        In an order in which they can be run.
    """
    sums = Sums(workspace.state / "sums.json")
    makers: dict[str, str] = {}
    found: dict[str, tuple[str, ...]] = {}
    for name, stage in stages(workspace).items():
        again = tuple(
            f"{artefact} is made again" for artefact in stage.inputs if makers.get(artefact) in found
        )
        reasons = staleness(workspace, stage, sums) + again
        makers |= dict.fromkeys(stage.outputs, name)
        if reasons:
            found[name] = reasons
    return found


def make_with_inputs(
    workspace: Workspace, names: Iterable[str], say: Callable[[str], None] | None = None
) -> list[str]:
    """Make stages and, before them, whatever they read that is stale.

    Parameters
    ----------
    workspace : Workspace
        Where the artefacts lie.
    names : iterable of str
        Names of stages.
    say : callable, optional
        Told the name of each stage before it is run.

    Returns
    -------
    list of str
        Names of the stages that were run.

    Raises
    ------
    frame.InputError
        If a stage cannot be run.
    """
    found = stages(workspace)
    makers = {output: stage.name for stage in found.values() for output in stage.outputs}
    wanted, waiting = set[str](), list(names)
    while waiting:
        name = waiting.pop()
        if name not in wanted:
            wanted.add(name)
            waiting += [makers[artefact] for artefact in found[name].inputs if artefact in makers]
    ran = []
    for name, stage in found.items():
        if name in wanted and staleness(workspace, stage):
            if say:
                say(name)
            if make(workspace, stage):
                ran.append(name)
    return ran

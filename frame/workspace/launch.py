"""Run the graph of a study: hold its workspace, let Snakemake run what is stale, and say what became of it.

The state of a workspace is in its artefacts and their sidecars alone. A run may be interrupted or killed at
any moment; the next one goes on from what is finished, and nothing has to be put right by hand.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from frame.errors import InputError
from frame.workspace.book import publish_book
from frame.workspace.graph import stage_of, stages, stale_stages
from frame.workspace.layout import STATE
from frame.workspace.notebook_stages import BOOK_ARCHIVE
from frame.workspace.notebooks import clone_folder
from frame.workspace.profiles import profile_names

if TYPE_CHECKING:
    from frame.workspace.layout import Workspace
    from frame.workspace.stages import Stage

__all__ = ["mark_file", "mark_finished", "rule_command", "rule_inputs", "run_graph"]

#: Exit codes: it ran; the input was wrong; what should never happen.
RAN, WRONG_INPUT, DEFECT = 0, 2, 70

#: The stage that is laid out when it is made, and how the stages that only look for mistakes are called.
BOOK: Final = "book"
_CHECK: Final = "check:"
_MARKS: Final = f"{STATE}/graph"
_OPTIONS: Final = (
    "--nolock",  # this module holds the workspace; a lock of Snakemake's would outlive a killed run
    "--rerun-incomplete",
    "--rerun-triggers=mtime",
    "--scheduler=greedy",
    "--profile=none",
    "--workflow-profile=none",
    "--latency-wait=10",
)
_LOOK_EVERY: Final = 0.1
#: Seconds that processes get to end before they are killed.
_PATIENCE: Final = 5.0


def mark_file(stage: Stage) -> str:
    """The file, relative to the workspace, that is there when a stage is finished and fresh."""
    return f"{_MARKS}/{stage.file_name}"


def mark_finished(workspace: Workspace) -> dict[str, tuple[str, ...]]:
    """Give every fresh stage its mark, each later than those before it, and take it from every stale one.

    Returns
    -------
    dict of str to tuple of str
        The stale stages with their reasons, as :func:`frame.workspace.graph.stale_stages`.
    """
    stale = stale_stages(workspace)
    workspace.path(_MARKS).mkdir(parents=True, exist_ok=True)
    for name, stage in stages(workspace).items():
        mark = workspace.path(mark_file(stage))
        if name in stale:
            mark.unlink(missing_ok=True)
        else:
            mark.touch()
    return stale


def rule_inputs(graph: Mapping[str, Stage], stage: Stage) -> list[str]:
    """Marks of the stages whose artefacts a stage reads."""
    makers = {output: other for other in graph.values() for output in other.outputs}
    return sorted({mark_file(makers[artefact]) for artefact in stage.inputs if artefact in makers})


def rule_command(workspace: Workspace, stage: Stage) -> list[str]:
    """The command that makes one stage."""
    # -P: the folder a rule runs in is no place to import from.
    command = [sys.executable, "-P", "-m", "frame.workspace", stage.name]
    return [*command, "--profile", _profile(workspace), "--workspace", str(workspace.root)]


def run_graph(workspace: Workspace, targets: Sequence[str], cores: int = 2) -> int:
    """Make some stages and, before them, whatever they read that is stale.

    Parameters
    ----------
    workspace : Workspace
        Where the artefacts lie.
    targets : sequence of str
        Names of stages, such as ``book``. When the book is one of them, all checks are made too, and it is
        then laid out in the clone's ``_build/html``.
    cores : int
        Stages that are run at once, 1 or more.

    Returns
    -------
    int
        0: everything is there and fresh. 2: a stage could not be made because of its input. 70: a stage has a
        defect. What a stage said is shown on the standard error stream.

    Raises
    ------
    frame.InputError
        If there is no such stage, Snakemake is missing, or another run holds the workspace.
    KeyboardInterrupt
        If it is interrupted; every process that it started has ended then.
    """
    if cores < 1:
        raise InputError(f"cores is {cores}; it must be 1 or more.")
    project = clone_folder()
    graph = stages(workspace)
    for target in targets:
        stage_of(workspace, target)
    if BOOK in targets:
        # No page reads what a check writes, and no page is to be shown of data that fail one.
        targets = [*targets, *(name for name in graph if name.startswith(_CHECK))]
    with _held(workspace) as lock:
        wanted = _with_inputs(graph, targets)
        stale = [name for name in mark_finished(workspace) if name in wanted]
        if stale:
            print(f"{len(stale)} of {len(wanted)} stages are to be made.", flush=True)
            code = _snakemake(workspace, project, [graph[name] for name in stale], targets, cores, lock)
            if code:
                return code
        else:
            print("Every stage is fresh; nothing was run.", flush=True)
        if BOOK in targets:
            page = project / "_build" / "html" / "index.html"
            publish_book(workspace.path(BOOK_ARCHIVE), page.parent)
            print(f"The book is built. Open {page} in a browser; it needs no network.", flush=True)
    return RAN


def _with_inputs(graph: Mapping[str, Stage], targets: Sequence[str]) -> set[str]:
    makers = {output: stage.name for stage in graph.values() for output in stage.outputs}
    found, waiting = set[str](), list(targets)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [makers[artefact] for artefact in graph[name].inputs if artefact in makers]
    return found


@contextmanager
def _held(workspace: Workspace) -> Iterator[IO[str]]:
    """Hold the workspace for one run; the hold ends with the last process that has it."""
    folder = workspace.path(_MARKS)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = folder.joinpath("held").open("a")
    except OSError as problem:
        reason = (problem.strerror or "it cannot be written").lower()
        raise InputError(f"The workspace '{workspace.root.name}' cannot be written to ({reason}).") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"Another run is using the workspace '{workspace.root.name}'; wait until it has ended."
            ) from None
        except OSError as problem:
            reason = (problem.strerror or "unknown reason").lower()
            raise InputError(
                f"The workspace '{workspace.root.name}' lies where no file can be locked ({reason}); "
                "give one on another file system."
            ) from None
        yield lock


def _snakemake(
    workspace: Workspace,
    project: Path,
    stale: Sequence[Stage],
    targets: Sequence[str],
    cores: int,
    lock: IO[str],
) -> int:
    if importlib.util.find_spec("snakemake") is None:
        raise InputError("The graph needs snakemake; install it with: pip install 'frame-audit[study]'")
    marks = {stage.name: workspace.path(mark_file(stage)) for stage in stale}
    logs = {name: mark.with_name(mark.name + ".log") for name, mark in marks.items()}
    for log in logs.values():
        log.unlink(missing_ok=True)
    graph = stages(workspace)
    command = [sys.executable, "-P", "-m", "snakemake", f"--snakefile={project / 'workflow' / 'Snakefile'}"]
    command += [f"--directory={workspace.root}", f"--cores={cores}", *_OPTIONS, "--config"]
    command += [f"profile={_quoted(_profile(workspace))}", f"workspace={_quoted(str(workspace.root))}", "--"]
    command += [mark_file(graph[target]) for target in targets]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SNAKEMAKE")}
    path = [str(Path(__file__).resolve().parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment |= {
        "PYTHONPATH": os.pathsep.join(path),
        # What Snakemake remembers belongs to the workspace, not to the user's home.
        "XDG_CACHE_HOME": str(workspace.path(".snakemake/cache")),
        "XDG_CONFIG_HOME": str(workspace.path(".snakemake/config")),
    }
    said = workspace.path(f"{_MARKS}/snakemake.log")
    with said.open("wb") as output:
        # It takes part in the hold on the workspace, should this process be killed alone.
        engine = subprocess.Popen(
            command,
            cwd=project,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=[lock.fileno()],
        )
        try:
            waiting = dict(marks)
            while engine.poll() is None:
                time.sleep(_LOOK_EVERY)
                _say_finished(waiting, logs)
        except BaseException:
            _end(engine)
            raise
        _say_finished(waiting, logs)
    if engine.returncode == 0 and not waiting:
        return RAN
    return _say_failed([name for name in waiting if logs[name].is_file()], logs, said)


def _say_finished(waiting: dict[str, Path], logs: Mapping[str, Path]) -> None:
    """A line for every stage that has finished since the last look."""
    for name in [name for name, mark in waiting.items() if mark.is_file()]:
        del waiting[name]
        lines = _lines(logs[name])
        with suppress(BrokenPipeError):  # that nobody reads it any more does not end the run
            print(lines[-1] if lines else name, flush=True)


def _say_failed(failed: Sequence[str], logs: Mapping[str, Path], said: Path) -> int:
    """What the stages said that did not finish, and the exit code that stands for it."""
    if not failed:
        print(*_lines(said)[-20:], sep="\n", file=sys.stderr)
        return DEFECT
    code = WRONG_INPUT
    for name in failed:
        lines = _lines(logs[name])
        print(f"{name} could not be made:", *lines, sep="\n", file=sys.stderr)
        if not lines or not lines[-1].startswith("frame: "):
            code = DEFECT
    return code


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return []


def _end(engine: subprocess.Popen[bytes]) -> None:
    """End Snakemake and everything it started, kernels of notebooks among them."""
    import psutil  # type: ignore[import-untyped]

    try:
        top = psutil.Process(engine.pid)
        processes = [top, *top.children(recursive=True)]
    except psutil.NoSuchProcess:
        processes = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    _, alive = psutil.wait_procs(processes, timeout=_PATIENCE)
    for process in alive:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    engine.wait()


def _profile(workspace: Workspace) -> str:
    """What any process finds the profile by, wherever it runs."""
    origin = workspace.profile.origin
    return origin if origin in profile_names() else str(Path(origin).absolute())


def _quoted(text: str) -> str:
    """A text in a form that Snakemake's reader of settings keeps as it is."""
    return repr(text)

"""Notebooks: where they lie, what each declares, which modules it calls, and how one is executed.

A notebook says in its metadata what it reads, ``{"frame": {"tables": [...], "experiments": [...]}}``, so that
the graph knows when its page is stale. While it runs, the tables that it really reads are noted, and one that
it has not declared is an error: no page is then older than its numbers without anybody knowing.

An executed notebook holds nothing of the run that made it, no times and no places, so that the same notebook
and the same inputs give the same bytes.
"""

from __future__ import annotations

import json
import logging
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from frame.errors import InputError
from frame.tables import NOTED, TABLES
from frame.workspace.layout import project_folder
from frame.workspace.modules import modules_named
from frame.writing import printable, write_text

if TYPE_CHECKING:
    from nbformat import NotebookNode
    from papermill.exceptions import PapermillExecutionError  # type: ignore[import-untyped]

__all__ = [
    "PROFILE_FILE",
    "WORKSPACE_FOLDER",
    "DeclaredInputs",
    "clone_folder",
    "declared_inputs",
    "declared_packages",
    "execute_notebook",
    "notebook_modules",
    "notebook_names",
    "notebook_path",
    "parameter_names",
]

#: Variables of a kernel's environment: the workspace of the stage, and its profile.
WORKSPACE_FOLDER: Final = "FRAME_WORKSPACE"
PROFILE_FILE: Final = "FRAME_PROFILE"

_KEYS: Final = ("tables", "experiments", "packages")
#: Tag and id of the cell in which given parameters are set.
_INJECTED: Final = "injected-parameters"
_START_SECONDS: Final = 120
#: What an exception's text may hold of data: a path, the name of an image file, a long number.
_PRIVATE: Final = re.compile(
    r"(?:[A-Za-z]:)?[\w.~-]*[/\\][^\s'\",;]*|\b[\w-]+\.(?:png|jpe?g|dcm|dicom|npz|txt)\b|\w*\d{5,}\w*"
)


class DeclaredInputs(NamedTuple):
    """What a notebook's metadata say that it reads.

    Attributes
    ----------
    tables : tuple of str
        Tables of ``data/``, keys of :data:`frame.tables.TABLES`.
    experiments : tuple of str
        Experiments whose collected results it shows.
    """

    tables: tuple[str, ...]
    experiments: tuple[str, ...]


def clone_folder() -> Path:
    """The clone that this package runs from: the folder that holds the notebooks and the book.

    Raises
    ------
    frame.InputError
        If the package was installed without a clone beside it.
    """
    folder = project_folder()
    if folder is None:
        raise InputError(
            "The notebooks and the book are part of a clone of FRAME, and this is an installed copy without "
            "them; clone the repository and run `make env` in it."
        )
    return folder


def notebook_names() -> tuple[str, ...]:
    """Names of the notebooks, sorted.

    Raises
    ------
    frame.InputError
        As :func:`clone_folder`.
    """
    return tuple(sorted(path.stem for path in (clone_folder() / "notebooks").glob("*.ipynb")))


def notebook_path(name: str) -> Path:
    """The file of a notebook by its name, such as ``figure_9``.

    Raises
    ------
    frame.InputError
        If there is no such notebook, or as :func:`clone_folder`.
    """
    names = notebook_names()
    if name not in names:
        raise InputError(f"There is no notebook {name[:60]!r}; the notebooks are {', '.join(names)}.")
    return clone_folder() / "notebooks" / f"{name}.ipynb"


def declared_inputs(notebook: Path) -> DeclaredInputs:
    """What a notebook declares to read.

    Parameters
    ----------
    notebook : Path
        A notebook's file.

    Raises
    ------
    frame.InputError
        If it is no notebook, declares nothing, or names a table or a key that is not known.
    """
    declared = _declared(notebook)
    for table in declared["tables"]:
        if table not in TABLES:
            raise InputError(
                f"Notebook {notebook.stem} declares the table {table!r}; the tables are {', '.join(TABLES)}."
            )
    return DeclaredInputs(declared["tables"], declared["experiments"])


def declared_packages(notebook: Path) -> tuple[str, ...]:
    """Installed packages, other than this one, whose data files a notebook declares to read."""
    return _declared(notebook)["packages"]


def notebook_modules(notebook: Path) -> tuple[str, ...]:
    """Modules of this package that the code cells of a notebook name.

    Parameters
    ----------
    notebook : Path
        A notebook's file.

    Returns
    -------
    tuple of str
        Dotted names, sorted; ``frame.audit`` counts as the module that this public name lives in.

    Raises
    ------
    frame.InputError
        If it is no notebook, or a code cell is no plain Python.
    """
    found: set[str] = set()
    for number, code in enumerate(_code_cells(notebook), 1):
        try:
            found.update(modules_named(code))
        except SyntaxError:
            raise InputError(
                f"Notebook {notebook.stem}, code cell {number}: this is no plain Python, so what it depends "
                "on cannot be known; write it without magics."
            ) from None
    return tuple(sorted(found))


def parameter_names(notebook: Path) -> tuple[str, ...]:
    """Names that the cell tagged ``parameters`` sets; empty when there is no such cell."""
    for cell in _read(notebook)["cells"]:
        if cell.get("cell_type") == "code" and "parameters" in cell.get("metadata", {}).get("tags", []):
            # Also an annotated name (`seed: int = 0`) is set there.
            return tuple(re.findall(r"^(\w+)\s*(?::[^=\n]+)?=", _text(cell), flags=re.MULTILINE))
    return ()


def execute_notebook(
    source: Path,
    target: Path,
    parameters: Mapping[str, Any] | None = None,
    workspace: Path | None = None,
    profile: str | None = None,
) -> None:
    """Execute a notebook and write it with its outputs.

    Parameters
    ----------
    source : Path
        The notebook. It is not changed.
    target : Path
        Where the executed notebook is written, in one step, when every cell has run.
    parameters : mapping of str to value, optional
        Values in place of those in the notebook's first cell. The notebook itself refuses wrong ones.
    workspace : Path, optional
        Folder of artefacts that the notebook may read.
    profile : str, optional
        Name, or absolute path, of the workspace's profile.

    Raises
    ------
    frame.InputError
        If papermill or the kernel is missing, a cell fails, or a table is read that the notebook does not
        declare. Nothing is written then.
    """
    original = _notebook_node(source)
    declared = declared_inputs(source)
    with tempfile.TemporaryDirectory(prefix="frame-notebook-") as folder:
        scratch = Path(folder)
        reads = scratch / "reads"
        environment = {
            NOTED: str(reads),
            # Neither a kernel nor the settings of the user's own may take part.
            "IPYTHONDIR": str(scratch / "ipython"),
            "JUPYTER_PREFER_ENV_PATH": "1",
            "JUPYTER_RUNTIME_DIR": str(scratch / "runtime"),
            "PYTHONHASHSEED": "0",
            # The kernel runs the package that this process runs, also from a copy that is not installed.
            "PYTHONPATH": os.pathsep.join(
                [str(Path(__file__).resolve().parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
            ),
            WORKSPACE_FOLDER: None if workspace is None else str(workspace.absolute()),
            PROFILE_FILE: profile,
        }
        (scratch / "empty").mkdir()
        with _environment(environment), _silent():
            executed = _run(source, original, dict(parameters or {}), scratch / "empty")
        read = reads.read_text(encoding="utf-8").split() if reads.is_file() else []
    undeclared = sorted(set(read) - set(declared.tables))
    if undeclared:
        raise InputError(
            f"Notebook {source.stem} reads the table {undeclared[0]}, which it does not declare; add it to "
            'the key "tables" of "frame" in the notebook\'s metadata.'
        )
    write_text(target, _written(original, executed), f"notebook {source.stem}")


def _run(source: Path, original: NotebookNode, parameters: dict[str, Any], folder: Path) -> NotebookNode:
    """Execute in an empty folder, where a file that was not declared cannot be met by its relative name."""
    import papermill  # type: ignore[import-untyped]
    from jupyter_client.kernelspec import NoSuchKernel
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    name = source.stem
    try:
        executed: NotebookNode = papermill.execute_notebook(
            original,
            None,
            parameters=parameters,
            kernel_name="python3",
            progress_bar=False,
            start_timeout=_START_SECONDS,
            cwd=str(folder),
            extra_arguments=["--log-level=50"],
            coalesce_streams=True,
        )
        return executed
    except PapermillExecutionError as problem:
        raise InputError(_failure(name, original, problem)) from None
    except NoSuchKernel:
        raise InputError(
            f"Notebook {name} needs the kernel python3, which is not installed; "
            "install it with: pip install 'frame-audit[book]'"
        ) from None
    except DeadKernelError:
        raise InputError(
            f"Notebook {name}: its kernel ended before the notebook did, as it does when memory runs out; "
            "give smaller parameters or a machine with more memory."
        ) from None
    except RuntimeError:
        raise InputError(f"Notebook {name}: its kernel did not start; run it again.") from None


def _failure(name: str, original: NotebookNode, problem: PapermillExecutionError) -> str:
    """Where a notebook failed and why, in one sentence and without a traceback."""
    # Cells are counted as the notebook's author sees them, without the one that sets given parameters.
    cells = [cell.cell_type for cell in original.cells]
    shift = 0 if problem.source == original.cells[min(problem.cell_index, len(cells) - 1)].source else 1
    number = cells[: problem.cell_index - shift + 1].count("code")
    said = printable(" ".join(str(problem.evalue).split()))
    if problem.ename == InputError.__name__:
        return f"Notebook {name}, code cell {number}: {said[:800]}"
    said = _PRIVATE.sub("…", said)[:300]
    return f"Notebook {name}, code cell {number}: {problem.ename}{': ' if said else ''}{said}"


def _written(original: NotebookNode, executed: NotebookNode) -> str:
    """The executed notebook as text, without what papermill and the kernel write about themselves."""
    import nbformat

    # papermill's format of the metadata differs from run to run; the author's does not.
    executed.metadata = original.metadata.copy()
    language = dict(executed.metadata.get("language_info", {"name": "python"}))
    language.pop("version", None)
    executed.metadata["language_info"] = nbformat.from_dict(language)  # type: ignore[no-untyped-call]
    by_id = {cell.id: cell for cell in original.cells}
    for cell in executed.cells:
        if cell.id in by_id:
            cell.metadata = by_id[cell.id].metadata
        else:
            cell.id = _INJECTED
            cell.metadata = nbformat.from_dict({"tags": [_INJECTED]})  # type: ignore[no-untyped-call]
    executed.nbformat, executed.nbformat_minor = original.nbformat, original.nbformat_minor
    text: str = nbformat.writes(executed)  # type: ignore[no-untyped-call]
    return text + "\n"


def _notebook_node(source: Path) -> NotebookNode:
    try:
        import nbformat
        import papermill  # noqa: F401
    except ImportError:
        raise InputError(
            "Executing a notebook needs papermill; install it with: pip install 'frame-audit[book,study]'"
        ) from None
    _read(source)
    try:
        node: NotebookNode = nbformat.read(source, as_version=4)  # type: ignore[no-untyped-call]
    except Exception:
        raise InputError(f"'{source.name}' is no notebook of format 4.") from None
    if any("id" not in cell for cell in node.cells):
        raise InputError(f"Notebook {source.stem} has a cell without an id; store it again with format 4.5.")
    return node


@contextmanager
def _environment(values: Mapping[str, str | None]) -> Iterator[None]:
    """Set or unset variables that a kernel is to inherit, and put back what was there."""
    before = {name: os.environ.get(name) for name in values}
    try:
        for name, value in values.items():
            _set(name, value)
        yield
    finally:
        for name, value in before.items():
            _set(name, value)


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


@contextmanager
def _silent() -> Iterator[None]:
    """Keep papermill's own messages from the terminal; what went wrong is said by the exception."""
    loggers = [logging.getLogger(name) for name in ("papermill", "traitlets", "asyncio")]
    before = [logger.disabled for logger in loggers]
    try:
        for logger in loggers:
            logger.disabled = True
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


def _declared(notebook: Path) -> dict[str, tuple[str, ...]]:
    declared = _read(notebook).get("metadata", {}).get("frame")
    if declared is None:
        raise InputError(
            f"Notebook {notebook.stem} does not say what it reads; put "
            '"frame": {"tables": [...], "experiments": [...]} into its metadata.'
        )
    if not isinstance(declared, dict) or not set(declared) <= set(_KEYS):
        raise InputError(
            f'Notebook {notebook.stem}: "frame" in its metadata may hold {", ".join(_KEYS)} and nothing else.'
        )
    for key, names in declared.items():
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise InputError(f'Notebook {notebook.stem}: "{key}" in its metadata must be a list of names.')
    return {key: tuple(declared.get(key, ())) for key in _KEYS}


def _code_cells(notebook: Path) -> list[str]:
    return [_text(cell) for cell in _read(notebook)["cells"] if cell.get("cell_type") == "code"]


def _text(cell: Mapping[str, Any]) -> str:
    return "".join(cell.get("source", ""))


def _read(notebook: Path) -> dict[str, Any]:
    try:
        found = json.loads(notebook.read_text(encoding="utf-8"))
    except OSError as problem:
        reason = (problem.strerror or "it cannot be reached").lower()
        raise InputError(f"The notebook '{notebook.name}' cannot be read ({reason}).") from None
    except ValueError:
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("cells"), list):
        raise InputError(f"'{notebook.name}' is no notebook.")
    return found

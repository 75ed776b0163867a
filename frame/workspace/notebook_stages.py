"""Stages that execute the notebooks and build the book from them."""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from frame.errors import InputError
from frame.experiments.contract import EXPERIMENTS, named_units, result_artefact
from frame.tables import table_path
from frame.workspace.book import assemble_book, book_notebooks, book_sources, build_book
from frame.workspace.layout import project_folder
from frame.workspace.modules import modules_named
from frame.workspace.notebooks import (
    declared_inputs,
    declared_packages,
    execute_notebook,
    notebook_modules,
    notebook_names,
    notebook_path,
    parameter_names,
)
from frame.workspace.stages import Stage, make
from frame.writing import check_target

if TYPE_CHECKING:
    from frame.workspace.layout import Workspace

__all__ = ["BOOK_ARCHIVE", "execute_named", "notebook_stages"]

#: The profile that notebooks name in their parameters.
DEFAULT_PROFILE: Final = "demo"
#: The built book, as one file.
BOOK_ARCHIVE: Final = "book/book.zip"
#: Tables of ``data/`` that the text of the book takes numbers from.
_BOOK_TABLES: Final = ("paper_numbers", "published_claims", "published_studies")
#: Characters of a file name that say the parameters of a notebook.
_LONGEST: Final = 80


def notebook_stages(workspace: Workspace) -> list[Stage]:
    """One stage per notebook, and one that builds the book; none where no clone lies around the package.

    Raises
    ------
    frame.InputError
        If a notebook does not declare what it reads, or declares what is not there.
    """
    project = project_folder()
    if project is None:
        return []
    found = [_notebook_stage(workspace, name) for name in notebook_names()]
    by_name = {stage.name: stage for stage in found}
    pages = book_notebooks(project)
    for name in pages:
        if f"notebook:{name}" not in by_name:
            raise InputError(f"_toc.yml names notebooks/{name}, and there is no such notebook.")
    sources = book_sources(project)
    extensions = [path for place, path in sources.items() if place.endswith(".py")]
    named = {name for path in extensions for name in modules_named(path.read_text(encoding="utf-8"))}
    book = Stage(
        name="book",
        outputs=(BOOK_ARCHIVE,),
        run=partial(_build, project, pages),
        inputs=tuple(by_name[f"notebook:{name}"].outputs[0] for name in pages),
        files={**sources, **_table_files(_BOOK_TABLES)},
        modules=("frame.workspace.book", *sorted(named)),
    )
    return [*found, book]


def _notebook_stage(workspace: Workspace, name: str) -> Stage:
    source = notebook_path(name)
    declared = declared_inputs(source)
    for experiment in declared.experiments:
        if experiment not in EXPERIMENTS:
            raise InputError(
                f"Notebook {name} declares the experiment {experiment!r}; the experiments are "
                f"{', '.join(EXPERIMENTS)}."
            )
    # A profile may have nothing for an experiment to compute; the notebook then says so.
    computed = [one for one in declared.experiments if named_units(one, workspace)]
    given = _given(workspace, source)
    packages = {f"package {package}": _version(name, package) for package in declared_packages(source)}
    return Stage(
        name=f"notebook:{name}",
        outputs=(f"notebooks/{name}.ipynb",),
        run=partial(_execute, source, given),
        inputs=tuple(result_artefact(experiment) for experiment in computed),
        files={f"notebooks/{name}.ipynb": source, **_table_files(declared.tables)},
        settings={**{f"parameter {key}": value for key, value in given.items()}, **packages},
        modules=("frame.workspace.notebooks", *notebook_modules(source)),
    )


def _table_files(tables: tuple[str, ...]) -> dict[str, Path]:
    """The files of some tables, and of what is known about how each was made."""
    files = {f"data/{table}": table_path(table) for table in tables}
    made = {f"{label} (sidecar)": path.with_suffix(".json") for label, path in files.items()}
    return files | {label: path for label, path in made.items() if path.is_file()}


def _given(workspace: Workspace, source: Path) -> dict[str, str]:
    """What a stage sets in a notebook: the profile, where the notebook names another one."""
    if workspace.profile.name == DEFAULT_PROFILE or "profile" not in parameter_names(source):
        return {}
    return {"profile": workspace.profile.name}


def _version(notebook: str, package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        # The stage can be named without it; its notebook says what to install when it is run.
        return "not installed"


def _execute(source: Path, given: Mapping[str, Any], workspace: Workspace, folder: Path) -> None:
    execute_notebook(source, folder / source.name, given, workspace.root, workspace.profile.origin)


def _build(project: Path, pages: tuple[str, ...], workspace: Workspace, folder: Path) -> None:
    executed = {name: workspace.path(f"notebooks/{name}.ipynb") for name in pages}
    source = folder / "source"
    assemble_book(project, executed, source)
    read = build_book(source, folder / Path(BOOK_ARCHIVE).name)
    undeclared = sorted(set(read) - set(_BOOK_TABLES))
    if undeclared:
        raise InputError(
            f"The text of the book takes a number from the table {undeclared[0]}, which its stage does not "
            "declare; add it to the tables of the book in frame/workspace/notebook_stages.py."
        )


def execute_named(
    workspace: Workspace,
    name: str,
    parameters: Mapping[str, str],
    out: Path | None = None,
    say: Callable[[str], None] | None = None,
) -> Path:
    """Execute a notebook by its name, with parameters as a user typed them.

    Parameters
    ----------
    workspace : Workspace
        What the notebook reads is made there first, if it is stale.
    name : str
        A notebook, such as ``figure_9``.
    parameters : mapping of str to str
        Each as text, so that ``007`` stays what it is; the notebook turns it into what it needs.
    out : Path, optional
        Where the executed notebook goes. Without it and without parameters the book's own is made again;
        without it and with parameters it goes beside that one, under a name that says the parameters.
    say : callable, optional
        Told the name of each stage before it is run.

    Returns
    -------
    Path
        The executed notebook.

    Raises
    ------
    frame.InputError
        If there is no such notebook, a stage before it cannot be run, or a cell fails.
    """
    from frame.workspace.graph import make_with_inputs, stages

    source = notebook_path(name)
    target = out if out is not None else workspace.path(f"notebooks/{_file_name(name, parameters)}")
    if target.suffix != ".ipynb":
        raise InputError(
            f"--out is '{target.name[:60]}'; an executed notebook is a file that ends in .ipynb."
        )
    if out is not None:
        target = check_target(target, "--out", source, "the notebook")
        if target.parent == source.parent.resolve():
            raise InputError(
                f"--out is '{target.name[:60]}' among the notebooks of the book; give another folder."
            )
    found = stages(workspace)
    stage = found[f"notebook:{name}"]
    makers = {output: other.name for other in found.values() for output in other.outputs}
    make_with_inputs(workspace, [makers[artefact] for artefact in stage.inputs], say)
    if say:
        say(stage.name)
    if out is None and not parameters:
        make(workspace, stage, force=True)
        return workspace.path(stage.outputs[0])
    if out is None:
        target.parent.mkdir(parents=True, exist_ok=True)
    given = {**_given(workspace, source), **parameters}
    execute_notebook(source, target, given, workspace.root, workspace.profile.origin)
    return target


def _file_name(name: str, parameters: Mapping[str, str]) -> str:
    said = "".join(f"_{key}_{value}" for key, value in sorted(parameters.items()))
    plain = re.sub(r"[^\w.-]+", "-", said)
    if plain != said or len(plain) > _LONGEST:
        plain = f"{plain[:_LONGEST]}_{hashlib.sha256(said.encode('utf-8')).hexdigest()[:8]}"
    return f"{name}{plain}.ipynb"

"""Which modules of the package a piece of code depends on, found without running it.

An artefact is stale when the code that made it has changed. That code is a module and everything the module
imports from this package, also inside functions, since a lazy import is a dependency like any other.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import frame
from frame.errors import InputError

__all__ = ["module_hashes", "modules_named", "package_module"]

_PACKAGE: Final = Path(frame.__file__).parent


def package_module(name: str) -> Path | None:
    """The file of a module of this package, or None when there is none of that name."""
    steps = name.split(".")
    if steps[0] != "frame":
        return None
    place = _PACKAGE.joinpath(*steps[1:])
    for file in (
        place / "__init__.py",
        place.with_suffix(".py") if len(steps) > 1 else place / "__init__.py",
    ):
        if file.is_file():
            return file
    return None


def modules_named(source: str) -> tuple[str, ...]:
    """Modules of this package that a piece of Python names: by an import, or as a public name of ``frame``.

    Parameters
    ----------
    source : str
        Python code. What stands under ``if TYPE_CHECKING:`` is never run and does not count.

    Returns
    -------
    tuple of str
        Dotted names, sorted; ``frame.audit`` counts as the module that the public name lives in.

    Raises
    ------
    SyntaxError
        If the code is no Python.
    """
    found: set[str] = set()
    for node in _run(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(_modules(alias.name for alias in node.names))
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.update(_modules(f"{node.module}.{alias.name}" for alias in node.names))
        elif (
            isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "frame"
        ):
            found.update(_modules([f"frame.{node.attr}"]))
    return tuple(sorted(found))


def module_hashes(names: Iterable[str]) -> dict[str, str]:
    """The modules that some modules depend on, themselves included, with the SHA-256 of each file.

    Parameters
    ----------
    names : iterable of str
        Dotted names of modules of this package.

    Returns
    -------
    dict of str to str
        Sorted by name.

    Raises
    ------
    frame.InputError
        If a name is no module of this package.
    """
    waiting, closed = list(names), set[str]()
    while waiting:
        name = waiting.pop()
        if name in closed:
            continue
        file = package_module(name)
        if file is None:
            raise InputError(f"{name} is no module of this package.")
        closed.add(name)
        steps = name.split(".")
        waiting += [".".join(steps[:depth]) for depth in range(1, len(steps))]
        waiting += _imports(file, *_stamp(file))
    return {name: _sum(file, *_stamp(file)) for name in sorted(closed) if (file := package_module(name))}


def _stamp(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_size, status.st_mtime_ns


@cache
def _imports(file: Path, size: int, changed: int) -> tuple[str, ...]:
    # The public names of the package load on first use: who uses one names it, and the package itself imports
    # none of them.
    if file == _PACKAGE / "__init__.py":
        return ()
    return modules_named(file.read_text(encoding="utf-8"))


@cache
def _sum(file: Path, size: int, changed: int) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _modules(names: Iterable[str]) -> Iterator[str]:
    """For each dotted name of this package, the longest leading part that is a module."""
    for name in names:
        steps = name.split(".")
        if steps[0] != "frame":
            continue
        if len(steps) > 1 and steps[1] in frame._HOMES:
            yield frame._HOMES[steps[1]]
            continue
        while len(steps) > 1 and package_module(".".join(steps)) is None:
            steps.pop()
        yield ".".join(steps)


def _run(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node that can run."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and _only_for_types(node.test):
            waiting += node.orelse
        else:
            waiting += ast.iter_child_nodes(node)


def _only_for_types(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"

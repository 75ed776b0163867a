"""The book: a folder of pages made from executed notebooks, built into one archive, and laid out to be read.

The pages are built anew each time, as a whole, from a folder that holds nothing else: a page is then never
older than a number in it, and a warning is shown in the second run as in the first. The built book is one
file, which is there or is not; only a complete one is ever laid out.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from frame.errors import InputError
from frame.tables import NOTED

__all__ = ["assemble_book", "book_notebooks", "book_sources", "build_book", "publish_book"]

#: The setting of ``_config.yml`` by which Jupyter Book would execute the notebooks once more.
_EXECUTE: Final = re.compile(r"^(  execute_notebooks: *)\w+", flags=re.MULTILINE)
_NOTEBOOK: Final = re.compile(r"^[\s-]*file: *notebooks/([\w-]+)", flags=re.MULTILINE)
#: What a page names outside its own folder.
_OUTSIDE: Final = re.compile(r"(?:\.\./)+[\w./-]*\w")
#: Files of a built book that only a later build would need.
_LEFT_OUT: Final = (".buildinfo",)
#: The time of every file in the archive; the oldest that the format has.
_NO_TIME: Final = (1980, 1, 1, 0, 0, 0)
_BUILD: Final = "from jupyter_book.cli.main import main; main()"
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")


def book_notebooks(project: Path) -> tuple[str, ...]:
    """Names of the notebooks that are pages of the book, in its order."""
    return tuple(_NOTEBOOK.findall((project / "_toc.yml").read_text(encoding="utf-8")))


def book_sources(project: Path) -> dict[str, Path]:
    """Files that the book is made from, apart from its notebooks.

    Parameters
    ----------
    project : Path
        A clone.

    Returns
    -------
    dict of str to Path
        By their place in the clone: ``_config.yml``, ``_toc.yml``, what lies under ``book/``, and files
        elsewhere that a page names, such as a table of ``data/`` to download. Sorted.
    """
    found = {name: project / name for name in ("_config.yml", "_toc.yml")}
    for path in (project / "book").rglob("*"):
        place = path.relative_to(project)
        # A note in a folder of vendored files is for contributors; Sphinx would add it to the pages.
        note = path.name == "README.md" and place.parts[1].startswith("_")
        if path.is_file() and "__pycache__" not in place.parts and not note:
            found[place.as_posix()] = path
    for page in [*(project / "book").glob("*.md"), *(project / "notebooks").glob("*.ipynb")]:
        found |= dict(_named_outside(project, page))
    return dict(sorted(found.items()))


def _named_outside(project: Path, page: Path) -> Iterator[tuple[str, Path]]:
    for name in _OUTSIDE.findall(page.read_text(encoding="utf-8")):
        path = Path(os.path.normpath(page.parent / name))
        if path.is_relative_to(project) and path.is_file():
            place = path.relative_to(project)
            if place.parts[0] not in ("book", "notebooks"):
                yield place.as_posix(), path


def assemble_book(project: Path, executed: Mapping[str, Path], target: Path) -> None:
    """Put everything that the book is built from into one folder.

    Parameters
    ----------
    project : Path
        A clone, with ``book/``, ``_config.yml`` and ``_toc.yml``.
    executed : mapping of str to Path
        The executed notebooks by their names; each page of the book that is a notebook must be there.
    target : Path
        A folder that is made. Its ``_config.yml`` says that no notebook is executed; all else is as in the
        clone.

    Raises
    ------
    frame.InputError
        If a notebook of the table of contents is not among the executed ones, or ``_config.yml`` does not say
        whether notebooks are executed.
    """
    missing = [name for name in book_notebooks(project) if name not in executed]
    if missing:
        raise InputError(f"The book has the notebook {missing[0]} as a page, and it has not been executed.")
    for place, path in book_sources(project).items():
        copy = target / place
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    settings, n_changed = _EXECUTE.subn(r'\1"off"', (project / "_config.yml").read_text(encoding="utf-8"))
    if n_changed != 1:
        raise InputError("_config.yml must have one line `  execute_notebooks: ...` under `execute:`.")
    (target / "_config.yml").write_text(settings, encoding="utf-8")
    (target / "notebooks").mkdir(exist_ok=True)
    for name in book_notebooks(project):
        shutil.copyfile(executed[name], target / "notebooks" / f"{name}.ipynb")


def build_book(source: Path, archive: Path) -> tuple[str, ...]:
    """Build the pages of an assembled book into one archive.

    Parameters
    ----------
    source : Path
        A folder made by :func:`assemble_book`.
    archive : Path
        The zip file to write; the same pages give the same bytes. The pages are built in a folder beside it.

    Returns
    -------
    tuple of str
        Tables of ``data/`` that were read for the numbers in the text, sorted.

    Raises
    ------
    frame.InputError
        If Jupyter Book is missing, or a page has an error or a warning; each is then shown on the standard
        error stream, and no archive is written.
    """
    if importlib.util.find_spec("jupyter_book") is None:
        raise InputError(
            "Building the book needs jupyter-book; install it with: pip install 'frame-audit[book]'"
        )
    built, reads = archive.with_name("built"), archive.with_name("reads")
    shutil.rmtree(built, ignore_errors=True)
    reads.unlink(missing_ok=True)
    path = [str(Path(__file__).resolve().parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    options = ["--path-output", str(built), "--all", "-W", "--keep-going", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-c", _BUILD, "build", str(source), *options],
        env={**os.environ, NOTED: str(reads), "PYTHONPATH": os.pathsep.join(path), "PYTHONHASHSEED": "0"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    pages = built / "_build" / "html"
    if done.returncode or not (pages / "index.html").is_file():
        log = _COLOURS.sub("", done.stderr).replace(f"{source}{os.sep}", "").strip()
        print(log or _COLOURS.sub("", done.stdout).strip(), file=sys.stderr)
        raise InputError("The book could not be built; every error and warning above has to be put right.")
    _pack(pages, archive)
    shutil.rmtree(built)
    return tuple(sorted(set(reads.read_text(encoding="utf-8").split()))) if reads.is_file() else ()


def _pack(folder: Path, archive: Path) -> None:
    part = archive.with_name(archive.name + ".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as packed:
        for place, path in sorted(_files(folder).items()):
            if path.name not in _LEFT_OUT:
                entry = zipfile.ZipInfo(place, _NO_TIME)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                packed.writestr(entry, path.read_bytes())
    part.replace(archive)


def publish_book(archive: Path, output: Path) -> bool:
    """Lay a built book out in a folder, where a browser opens ``index.html``.

    Parameters
    ----------
    archive : Path
        What :func:`build_book` wrote.
    output : Path
        The folder, made or replaced as a whole: at no time does it hold a part of a book.

    Returns
    -------
    bool
        False when the folder held exactly this book already.

    Raises
    ------
    frame.InputError
        If there is no archive, or the folder cannot be written.
    """
    try:
        with zipfile.ZipFile(archive) as packed:
            fresh = _holds(output, packed)
            if not fresh:
                _replace(output, packed)
        # The page says by its time when it was last known to be up to date.
        os.utime(output / "index.html")
    except (FileNotFoundError, zipfile.BadZipFile):
        raise InputError("There is no built book in the workspace; run `make book`.") from None
    except OSError as problem:
        reason = (problem.strerror or "it cannot be written").lower()
        raise InputError(f"The book cannot be laid out in '{output.name}' ({reason}).") from None
    return not fresh


def _holds(folder: Path, packed: zipfile.ZipFile) -> bool:
    entries = {entry.filename: entry for entry in packed.infolist()}
    there = _files(folder)
    return set(there) == set(entries) and all(
        path.stat().st_size == entries[place].file_size
        and zlib.crc32(path.read_bytes()) == entries[place].CRC
        for place, path in there.items()
    )


def _replace(folder: Path, packed: zipfile.ZipFile) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    new, old = folder.with_name(f".{folder.name}.new"), folder.with_name(f".{folder.name}.old")
    for leftover in (new, old):
        shutil.rmtree(leftover, ignore_errors=True)
    packed.extractall(new)
    if folder.exists():
        folder.replace(old)
    new.replace(folder)
    shutil.rmtree(old, ignore_errors=True)


def _files(folder: Path) -> dict[str, Path]:
    return {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}

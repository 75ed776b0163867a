"""The folder that the book is built from, and how a built one is laid out; building is tested end to end."""

import zipfile
from pathlib import Path

import pytest

from frame.errors import InputError
from frame.workspace.book import assemble_book, book_notebooks, book_sources, publish_book

ROOT = Path(__file__).resolve().parents[2]
CONFIG = "title: A\n\nexecute:\n  execute_notebooks: force\n  timeout: 120\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A clone with two pages of text and one notebook."""
    files = {
        "_config.yml": CONFIG,
        "_toc.yml": "format: jb-book\nroot: book/index\nchapters:\n  - file: notebooks/one\n",
        "book/index.md": "See {download}`the table <../data/a.csv>`, [2](two.md), [3](../../outside.csv).",
        "book/two.md": "See [one](../notebooks/one.ipynb) and [none](../data/absent.csv).",
        "book/_vendor/README.md": "note",
        "book/_vendor/a.js": "1",
        "book/_extensions/__pycache__/a.pyc": "1",
        "notebooks/one.ipynb": '{"cells": ["[b](../data/deep/b.csv)"]}',
        "data/a.csv": "1",
        "data/deep/b.csv": "2",
        "data/c.csv": "3",
    }
    for place, text in files.items():
        path = tmp_path / "clone" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "outside.csv").write_text("4")
    return tmp_path / "clone"


PLACES = ["_config.yml", "_toc.yml", "book/_vendor/a.js", "book/index.md", "book/two.md"]
LINKED = ["data/a.csv", "data/deep/b.csv"]


def test_sources_are_pages_and_what_they_name(project: Path) -> None:
    assert list(book_sources(project)) == PLACES + LINKED
    assert book_notebooks(project) == ("one",)


def test_the_assembled_book_differs_in_one_setting(project: Path, tmp_path: Path) -> None:
    executed = tmp_path / "done.ipynb"
    executed.write_text("executed")
    target = tmp_path / "assembled"
    assemble_book(project, {"one": executed, "other": executed}, target)
    found = {
        path.relative_to(target).as_posix(): path.read_text() for path in target.rglob("*") if path.is_file()
    }
    assert sorted(found) == sorted([*PLACES, *LINKED, "notebooks/one.ipynb"])
    assert found.pop("notebooks/one.ipynb") == "executed"
    assert found.pop("_config.yml") == CONFIG.replace("force", '"off"')
    assert found == {place: (project / place).read_text() for place in found}


def test_a_page_without_its_executed_notebook_is_refused(project: Path, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"\AThe book has the notebook one as a page, and it has not been exec"
    ):
        assemble_book(project, {}, tmp_path / "assembled")


def test_a_configuration_that_does_not_say_whether_to_execute_is_refused(
    project: Path, tmp_path: Path
) -> None:
    (project / "_config.yml").write_text("title: A\n")
    with pytest.raises(InputError, match=r"\A_config\.yml must have one line `  execute_notebooks: "):
        assemble_book(project, {"one": project / "notebooks" / "one.ipynb"}, tmp_path / "assembled")


def test_the_book_of_this_clone_has_its_notebooks() -> None:
    names = book_notebooks(ROOT)
    assert {"figure_9", "supplementary_table_7"} <= set(names)
    assert all((ROOT / "notebooks" / f"{name}.ipynb").is_file() for name in names)
    assert "book/_extensions/record_numbers.py" in book_sources(ROOT)


def packed(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for place, text in files.items():
            archive.writestr(place, text)
    return path


def test_a_book_is_laid_out_as_a_whole(tmp_path: Path) -> None:
    output = tmp_path / "out" / "html"
    first = packed(tmp_path / "first.zip", {"index.html": "1", "book/a.html": "a", "b.html": "b"})
    assert publish_book(first, output)
    assert not publish_book(first, output)
    second = packed(tmp_path / "second.zip", {"index.html": "2", "book/a.html": "a"})
    # What a killed run has left beside it is no hindrance.
    (output.parent / ".html.new").mkdir()
    (output.parent / ".html.new" / "half.html").write_text("")
    assert publish_book(second, output)
    found = {
        path.relative_to(output).as_posix(): path.read_text() for path in output.rglob("*") if path.is_file()
    }
    assert found == {"index.html": "2", "book/a.html": "a"}
    assert [path.name for path in output.parent.iterdir()] == ["html"]


@pytest.mark.parametrize("spoil", ["altered", "gone", "more"])
def test_a_book_that_is_not_the_built_one_is_laid_out_again(tmp_path: Path, spoil: str) -> None:
    output = tmp_path / "html"
    archive = packed(tmp_path / "book.zip", {"index.html": "1", "a.html": "a"})
    publish_book(archive, output)
    if spoil == "gone":
        (output / "a.html").unlink()
    else:
        (output / ("a.html" if spoil == "altered" else "b.html")).write_text("b")
    assert publish_book(archive, output)
    assert not publish_book(archive, output)


def test_a_book_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "damaged.zip").write_text("no archive")
    for name in ("absent.zip", "damaged.zip"):
        with pytest.raises(InputError) as caught:
            publish_book(tmp_path / name, tmp_path / "html")
        assert str(caught.value) == "There is no built book in the workspace; run `make book`."
    (tmp_path / "html").write_text("a file")
    archive = packed(tmp_path / "book.zip", {"index.html": "1"})
    with pytest.raises(InputError, match=r"\AThe book cannot be laid out in 'html' \("):
        publish_book(archive, tmp_path / "html" / "html")

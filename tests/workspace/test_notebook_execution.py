"""Notebooks: what they declare, which modules they call, and what an executed one holds."""

import json
import os
from pathlib import Path

import pytest

from frame.errors import InputError
from frame.workspace.notebooks import (
    declared_inputs,
    declared_packages,
    execute_notebook,
    notebook_modules,
    notebook_names,
    notebook_path,
    parameter_names,
)

FIRST = "size = 2"
SECOND = (
    "from frame.parameters import resolve_parameters, whole\n\n"
    "parameters = resolve_parameters(globals(), size=whole(0, 5))"
)
NOTHING = {"tables": [], "experiments": []}


@pytest.fixture
def write(tmp_path: Path):
    """Write a notebook of code cells, the first tagged, after a cell of text."""

    def written(*cells: str, declared: object = NOTHING, tag: bool = True) -> Path:
        content = [{"cell_type": "markdown", "id": "text", "metadata": {}, "source": "# Text"}]
        for number, source in enumerate(cells):
            tags = {"tags": ["parameters"]} if tag and number == 0 else {}
            content.append(
                {
                    "cell_type": "code",
                    "execution_count": None,
                    "id": f"c{number}",
                    "metadata": tags,
                    "outputs": [],
                    "source": source,
                }
            )
        metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
        metadata["language_info"] = {"name": "python", "version": "3.0.0"}
        if declared is not None:
            metadata["frame"] = declared
        path = tmp_path / "example.ipynb"
        path.write_text(
            json.dumps({"cells": content, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})
        )
        return path

    return written


# ---- what a notebook says of itself


def test_declared_inputs(write):
    path = write(FIRST, declared={"tables": ["paper_table1"], "experiments": ["some"], "packages": ["numpy"]})
    assert declared_inputs(path) == (("paper_table1",), ("some",))
    assert declared_packages(path) == ("numpy",)
    assert declared_inputs(write(FIRST, declared={})) == ((), ())


@pytest.mark.parametrize(
    ("declared", "sentence"),
    [
        (
            None,
            'Notebook example does not say what it reads; put "frame": {"tables": [...], "experiments": '
            "[...]} into its metadata.",
        ),
        (
            {"table": []},
            'Notebook example: "frame" in its metadata may hold tables, experiments, packages and nothing '
            "else.",
        ),
        (
            [],
            'Notebook example: "frame" in its metadata may hold tables, experiments, packages and nothing '
            "else.",
        ),
        ({"tables": "a"}, 'Notebook example: "tables" in its metadata must be a list of names.'),
        ({"tables": [1]}, 'Notebook example: "tables" in its metadata must be a list of names.'),
    ],
)
def test_a_malformed_declaration_is_refused(write, declared, sentence):
    with pytest.raises(InputError) as caught:
        declared_inputs(write(FIRST, declared=declared))
    assert str(caught.value) == sentence


def test_an_unknown_table_is_refused(write):
    with pytest.raises(
        InputError, match=r"Notebook example declares the table 'absent'; the tables are .*paper_"
    ):
        declared_inputs(write(FIRST, declared={"tables": ["absent"]}))


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"cells": 1}', "\x00"])
def test_what_is_no_notebook_is_refused(tmp_path, content):
    path = tmp_path / "example.ipynb"
    path.write_text(content)
    with pytest.raises(InputError, match=r"\A'example.ipynb' is no notebook\.\Z"):
        declared_inputs(path)
    with pytest.raises(InputError, match=r"\AThe notebook 'absent.ipynb' cannot be read \(no such file"):
        declared_inputs(tmp_path / "absent.ipynb")


def test_modules_are_those_that_the_code_names(write):
    path = write(
        FIRST,
        "import frame\nfrom frame.tables import load_table\nfrom frame.reference import planning",
        "def later():\n    from frame.figures.ties import tie_table\n    return frame.audit_claims",
    )
    assert notebook_modules(path) == (
        "frame",
        "frame.figures.ties",
        "frame.published",
        "frame.reference.planning",
        "frame.tables",
    )
    with pytest.raises(InputError) as caught:
        notebook_modules(write(FIRST, "%matplotlib inline"))
    assert str(caught.value) == (
        "Notebook example, code cell 2: this is no plain Python, so what it depends on cannot be known; "
        "write it without magics."
    )


def test_parameter_names(write):
    assert parameter_names(write("a = 1\nb: int = 2\nc = [\n    3,\n]")) == ("a", "b", "c")
    assert parameter_names(write(FIRST, tag=False)) == ()


def test_notebooks_are_found_by_name():
    assert "figure_9" in notebook_names()
    assert notebook_path("figure_9").is_file()
    with pytest.raises(
        InputError, match=r"\AThere is no notebook '../figure_9'; the notebooks are calibration, "
    ):
        notebook_path("../figure_9")


@pytest.mark.parametrize("name", notebook_names())
def test_every_notebook_declares_what_it_reads_and_is_plain_python(name):
    declared_inputs(notebook_path(name))
    assert "frame.parameters" in notebook_modules(notebook_path(name))


# ---- executed


def outputs(path):
    return [cell.get("outputs") for cell in json.loads(path.read_text())["cells"]]


def test_an_executed_notebook_has_the_same_bytes_each_time_and_nothing_of_the_run(write, tmp_path):
    source = write(FIRST, SECOND, "import os\nprint(parameters.size)\nprint(os.listdir())\nparameters.size")
    before = source.read_bytes()
    first, second = tmp_path / "first.ipynb", tmp_path / "second.ipynb"
    execute_notebook(source, first, {"size": "4"})
    execute_notebook(source, second, {"size": "4"})
    assert first.read_bytes() == second.read_bytes()
    assert source.read_bytes() == before
    executed = json.loads(first.read_text())
    assert executed["metadata"]["language_info"] == {"name": "python"}
    assert set(executed["metadata"]) == {"frame", "kernelspec", "language_info"}
    assert [cell["id"] for cell in executed["cells"]] == ["text", "c0", "injected-parameters", "c1", "c2"]
    assert [cell["metadata"] for cell in executed["cells"][:3]] == [
        {},
        {"tags": ["parameters"]},
        {"tags": ["injected-parameters"]},
    ]
    assert executed["cells"][4]["outputs"][0]["text"] == ["4\n", "[]\n"]
    assert executed["cells"][4]["outputs"][1]["data"] == {"text/plain": ["4"]}
    assert str(tmp_path) not in first.read_text()


def test_a_kernel_knows_the_workspace_and_the_profile_and_the_process_forgets_them(
    write, tmp_path, monkeypatch
):
    monkeypatch.setenv("FRAME_PROFILE", "before")
    monkeypatch.delenv("FRAME_WORKSPACE", raising=False)
    source = write(
        FIRST, SECOND, "import os\nprint(os.environ['FRAME_WORKSPACE'], os.environ['FRAME_PROFILE'])"
    )
    target = tmp_path / "out.ipynb"
    execute_notebook(source, target, {}, tmp_path / "there", "demo")
    assert outputs(target)[3][0]["text"] == [f"{tmp_path / 'there'} demo\n"]
    assert os.environ["FRAME_PROFILE"] == "before"
    assert "FRAME_WORKSPACE" not in os.environ
    assert "IPYTHONDIR" not in os.environ


PLACE = "Notebook example, code cell"
REFUSED = {
    "an unknown parameter": (
        [FIRST, SECOND],
        {"seize": 1},
        f"{PLACE} 2: There is no parameter 'seize' in this notebook (did you mean size?); it has size.",
    ),
    "a wrong value": (
        [FIRST, SECOND],
        {"size": "7"},
        f"{PLACE} 2: Parameter size is '7' (text); expected a whole number, 0 to 5.",
    ),
    "a table that is not declared": (
        [FIRST, SECOND, "from frame.tables import load_table\n\nload_table('paper_table1');"],
        {},
        "Notebook example reads the table paper_table1, which it does not declare; add it to the key "
        '"tables" of "frame" in the notebook\'s metadata.',
    ),
    "an exception": (
        [FIRST, SECOND, "1 / 0"],
        {"size": 3},
        f"{PLACE} 3: ZeroDivisionError: division by zero",
    ),
    "an exception that names a file of a patient": (
        [FIRST, SECOND, "open('/data/p10/s50414267/view1.dcm')"],
        {},
        f"{PLACE} 3: FileNotFoundError: [Errno 2] No such file or directory: '…'",
    ),
    "an exception that names an image": (
        [FIRST, SECOND, "{}['00030805_000.png']"],
        {},
        f"{PLACE} 3: KeyError: '…'",
    ),
    "an exception that names a patient": ([FIRST, SECOND, "{}[30805]"], {}, f"{PLACE} 3: KeyError: …"),
    "a kernel that ends": (
        [FIRST, SECOND, "import os\n\nos._exit(1)"],
        {},
        "Notebook example: its kernel ended before the notebook did, as it does when memory runs out; give "
        "smaller parameters or a machine with more memory.",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_notebook_that_fails_is_one_sentence_and_no_file(write, tmp_path, capfd, what):
    cells, parameters, sentence = REFUSED[what]
    target = tmp_path / "out.ipynb"
    target.write_text("what was there")
    with pytest.raises(InputError) as caught:
        execute_notebook(write(*cells), target, parameters)
    assert str(caught.value) == sentence
    assert target.read_text() == "what was there"
    assert capfd.readouterr() == ("", "")


def test_values_given_to_a_notebook_without_its_tag_are_refused(write, tmp_path):
    with pytest.raises(InputError, match=r"cell 2: Parameter size was given as 4, but 2 is in force"):
        execute_notebook(write(FIRST, SECOND, tag=False), tmp_path / "out.ipynb", {"size": 4})

"""Parameters of a notebook: every form in which papermill hands them over."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from frame.errors import InputError
from frame.parameters import (
    choice,
    flag,
    fraction,
    list_of,
    number,
    resolve_parameters,
    text,
    whole,
)


def resolve(given, kind):
    return resolve_parameters({"x": given}, x=kind)["x"]


# ---- values that are meant


@pytest.mark.parametrize(
    ("given", "kind", "meant"),
    [
        ("paper", choice("exact", "paper"), "paper"),
        (" paper ", choice("exact", "paper"), "paper"),
        (1000, whole(0), 1000),
        (1000.0, whole(0), 1000),  # papermill reads 1e3 as a float
        ("1e3", whole(0), 1000),  # and hands it over as text with -r
        ("0", whole(0, 9), 0),
        (0.05, fraction(), 0.05),
        ("0.05", fraction(), 0.05),
        (1, number(0), 1.0),
        ("-2.5", number(), -2.5),
        (True, flag(), True),
        ("false", flag(), False),
        ("007", text(), "007"),
        ("[sex, age]", list_of(choice("sex", "age")), ("sex", "age")),
        ("['sex', \"age\",]", list_of(text()), ("sex", "age")),
        (["sex", "age"], list_of(text()), ("sex", "age")),
        (("sex",), list_of(text()), ("sex",)),
        ("[007, 7]", list_of(text()), ("007", "7")),
        ("[0.5, 0.9]", list_of(number(0, 1)), (0.5, 0.9)),
        ("[]", list_of(text(), shortest=0), ()),
    ],
)
def test_values_that_are_meant(given, kind, meant, capsys):
    found = resolve(given, kind)
    assert found == meant
    assert type(found) is type(meant)


# ---- values that are refused, word for word


@pytest.mark.parametrize(
    ("given", "kind", "sentence"),
    [
        (
            "papr",
            choice("exact", "paper"),
            "Parameter x is 'papr' (text); expected one of 'exact', 'paper'.",
        ),
        (7, choice("exact"), "Parameter x is 7 (a number); expected 'exact'."),
        (
            7,
            text(),
            "Parameter x is 7 (a number); expected text that is not blank "
            "(papermill keeps text that looks like a number with -r in place of -p).",
        ),
        ("", whole(0), "Parameter x is '' (blank text); expected a whole number, 0 or more."),
        ("  ", text(), "Parameter x is '  ' (blank text); expected text that is not blank."),
        (None, whole(1), "Parameter x is None (nothing); expected a whole number, 1 or more."),
        (True, whole(0), "Parameter x is True (a truth value); expected a whole number, 0 or more."),
        (1.5, whole(0, 9), "Parameter x is 1.5 (a number); expected a whole number, 0 to 9."),
        (10, whole(0, 9), "Parameter x is 10 (a number); expected a whole number, 0 to 9."),
        (-1, whole(0), "Parameter x is -1 (a number); expected a whole number, 0 or more."),
        ("1_000", whole(0), "Parameter x is '1_000' (text); expected a whole number, 0 or more."),
        ("many", number(0, 1), "Parameter x is 'many' (text); expected a number from 0 to 1."),
        (float("nan"), number(), "Parameter x is nan (a number); expected a finite number."),
        (float("inf"), number(0), "Parameter x is inf (a number); expected a number, 0 or more."),
        (2, number(high=1), "Parameter x is 2 (a number); expected a number, 1 or less."),
        (
            5,
            fraction(),
            "Parameter x is 5 (a number); expected a number strictly between 0 and 1 "
            "(if it is a percentage, give 0.05).",
        ),
        (0, fraction(), "Parameter x is 0 (a number); expected a number strictly between 0 and 1."),
        (1, flag(), "Parameter x is 1 (a number); expected True or False."),
        ({}, flag(), "Parameter x is {} (a dict); expected True or False."),
        (
            "sex",
            list_of(text()),
            "Parameter x is 'sex' (text); expected a list such as [a, b], 1 or more, "
            "each entry text that is not blank.",
        ),
        (
            [7, 7.5],
            list_of(text()),
            "Parameter x is [7, 7.5] (a list); expected a list such as [a, b], 1 or more, each entry text "
            "that is not blank (papermill keeps text that looks like a number with -r in place of -p).",
        ),
        (
            "[sex, sex]",
            list_of(text()),
            "Parameter x is '[sex, sex]' (text); expected a list such as [a, b], 1 or more, "
            "each entry text that is not blank (an entry is there twice).",
        ),
        (
            [],
            list_of(whole(0)),
            "Parameter x is [] (a list); expected a list such as [a, b], 1 or more, "
            "each entry a whole number, 0 or more.",
        ),
    ],
)
def test_values_that_are_refused(given, kind, sentence):
    with pytest.raises(InputError) as error:
        resolve(given, kind)
    assert str(error.value) == sentence


@pytest.mark.parametrize("given", ["[a, [b]]", "[{a: b}]", "[a, , b]", "['a]", "[a'b]"])
def test_lists_that_cannot_be_read_are_refused(given):
    with pytest.raises(InputError, match="expected a list such as"):
        resolve(given, list_of(text()))


def test_missing_value():
    with pytest.raises(InputError) as error:
        resolve_parameters({}, alpha=fraction())
    assert str(error.value) == (
        "Parameter alpha has no value; the cell tagged 'parameters' must set it to "
        "a number strictly between 0 and 1."
    )


# ---- the resolved set


def test_resolved_set_is_printed_in_one_line_and_does_not_change(capsys):
    given = {"protocol": "paper", "alpha": 0.05, "groups": "[sex, age]"}
    found = resolve_parameters(
        given, protocol=choice("exact", "paper"), alpha=fraction(), groups=list_of(text())
    )
    line = "protocol='paper', alpha=0.05, groups=['sex', 'age']"
    assert capsys.readouterr().out == f"Parameters: {line}\n"
    assert repr(found) == line
    assert (found.protocol, found["alpha"], found.groups) == ("paper", 0.05, ("sex", "age"))
    assert dict(found) == {"protocol": "paper", "alpha": 0.05, "groups": ("sex", "age")}
    with pytest.raises(AttributeError, match="do not change"):
        found.alpha = 0.1
    with pytest.raises(TypeError):
        found["alpha"] = 0.1
    with pytest.raises(AttributeError, match="no parameter 'seed'; there are protocol, alpha, groups"):
        _ = found.seed


# ---- IPython's history

INJECTED = '# Parameters\nprotocol = "paper"\n'


def history(*cells):
    return {"In": ["", *cells]}


def test_given_value_in_force_is_accepted(capsys):
    cells = history('protocol = "exact"', INJECTED, "resolve_parameters(...)")
    found = resolve_parameters({"protocol": "paper", **cells}, protocol=choice("exact", "paper"))
    assert found.protocol == "paper"


def test_defaults_run_after_the_given_value_are_refused():
    cells = history(INJECTED, 'protocol = "exact"', "resolve_parameters(...)")
    with pytest.raises(InputError) as error:
        resolve_parameters({"protocol": "exact", **cells}, protocol=choice("exact", "paper"))
    assert str(error.value) == (
        "Parameter protocol was given as 'paper', but 'exact' is in force: the defaults were run after it, "
        "so their cell has lost its tag 'parameters'; tag it again."
    )


def test_a_value_that_only_looks_equal_is_not_in_force():
    cells = history("# Parameters\nflag = True\n", "flag = 1")
    with pytest.raises(InputError, match="given as True, but 1 is in force"):
        resolve_parameters({"flag": 1, **cells}, flag=whole(0))


def test_the_last_cell_of_papermill_counts(capsys):
    cells = history(INJECTED, '# Parameters\nprotocol = "exact"\n')
    assert resolve_parameters({"protocol": "exact", **cells}, protocol=choice("exact", "paper"))


def test_a_comment_that_only_begins_like_papermills_is_no_injected_cell(capsys):
    cells = history("# Parameters of the audit\nprotocol = 'paper'", "protocol = 'exact'")
    assert resolve_parameters({"protocol": "exact", **cells}, protocol=choice("exact", "paper"))


def test_infinite_given_value_is_read_as_papermill_writes_it():
    cells = history("# Parameters\nalpha = float('inf')\n")
    with pytest.raises(InputError, match="alpha is inf"):
        resolve_parameters({"alpha": float("inf"), **cells}, alpha=fraction())


@pytest.mark.parametrize(
    ("name", "hint"), [("protocl", " (did you mean protocol?)"), ("seed", "")], ids=["near", "far"]
)
def test_unknown_name_is_refused(name, hint):
    cells = history("protocol = 'exact'", f"# Parameters\n{name} = 'paper'\n")
    with pytest.raises(InputError) as error:
        resolve_parameters({"protocol": "exact", **cells}, protocol=choice("exact", "paper"))
    assert str(error.value) == f"There is no parameter {name!r} in this notebook{hint}; it has protocol."


# ---- papermill itself

DEFAULTS = 'groups = ["sex"]\npatient = "001"\nB = 10\nseed = 0'
CALL = """from frame.parameters import choice, list_of, resolve_parameters, text, whole

parameters = resolve_parameters(
    globals(), groups=list_of(choice("sex", "age")), patient=text(), B=whole(1), seed=whole(0)
)"""


@pytest.fixture
def notebook(tmp_path):
    cells = [new_code_cell(DEFAULTS, metadata={"tags": ["parameters"]}), new_code_cell(CALL)]
    book = new_notebook(
        cells=cells,
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    path = tmp_path / "notebook.ipynb"
    nbformat.write(book, path)
    return path


def papermill(path: Path, *options: str) -> tuple[int, str]:
    """Run papermill; its exit status, and what the notebook printed or papermill reported."""
    out = path.with_name("out.ipynb")
    command = [sys.executable, "-m", "papermill", "-k", "python3", "--no-progress-bar", str(path), str(out)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        return done.returncode, done.stderr
    outputs = nbformat.read(out, as_version=4).cells[-1].outputs
    return 0, "".join(output.get("text", "") for output in outputs)


def test_papermill_values_arrive_as_they_were_meant(notebook):
    status, shown = papermill(
        notebook, "-p", "groups", "[sex, age]", "-r", "patient", "007", "-p", "B", "1e3", "-p", "seed", "3"
    )
    assert status == 0, shown
    assert shown == "Parameters: groups=['sex', 'age'], patient='007', B=1000, seed=3\n"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("-p", "patient", "007"), "Parameter patient is 7 (a number); expected text that is not blank"),
        (("-p", "seed", ""), "Parameter seed is '' (blank text); expected a whole number, 0 or more."),
        (("-p", "groups", "[sex, race]"), "each entry one of 'sex', 'age'."),
        (("-p", "sede", "3"), "There is no parameter 'sede' in this notebook (did you mean seed?)"),
    ],
    ids=["id", "blank", "list", "unknown"],
)
def test_papermill_values_that_are_refused(notebook, options, sentence):
    status, shown = papermill(notebook, *options)
    assert status != 0
    assert sentence in shown


def test_a_notebook_that_lost_its_tag_fails(notebook):
    book = nbformat.read(notebook, as_version=4)
    del book.cells[0].metadata["tags"]
    nbformat.write(book, notebook)
    status, shown = papermill(notebook, "-p", "B", "1e3")
    assert status != 0
    assert "Parameter B was given as 1000.0, but 10 is in force" in shown

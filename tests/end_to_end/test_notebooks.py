"""The notebooks: what each must be, that it repeats, and that it fails when a number is not what it was.

``make test`` executes every notebook and compares it with its stored outputs (nbval). Here is what nbval does
not see. After a change that alters outputs, store them again:

    .venv/bin/jupyter nbconvert --to notebook --execute --inplace \\
        --ExecutePreprocessor.record_timing=False notebooks/*.ipynb
"""

import ast
import base64
import csv
import html
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
TABLE_7 = ROOT / "notebooks" / "supplementary_table_7.ipynb"
#: Numbers in prose that stand for a definition and not for a result.
DEFINED = {
    "95 %",
    "80 %",
    "100 %",
    "Figure 1",
    "Figure 4",
    "Figure 5",
    "Figure 9",
    "1e-9",
    "ChestX-ray14",
    "ISIC 2019",
} | {f"Table {number}" for number in (1, 2, 3, 7, 8)}
#: What a caption calls the cohort of a printed number.
PRINTED_COHORT = re.compile(r"published record|the paper's (?:cohorts|six sites)|synthetic model")
#: Columns that a table of single images or patients would have; numbers of patients are none.
ROW_LEVEL = re.compile(r"^patients?$|patient_?id|image_id|path|file|accession|dicom", re.IGNORECASE)
#: Every notebook, and how many figures it has.
FIGURES = {
    "calibration": 3,
    "exact_reference": 5,
    "figure_1": 3,
    "figure_4": 6,
    "figure_5": 4,
    "figure_9": 7,
    "label_noise": 2,
    "patient_level": 2,
    "phantom_world": 4,
    "planning": 3,
    "planted_truth": 3,
    "supplementary_table_3": 0,
    "supplementary_table_7": 0,
    "supplementary_table_8": 0,
    "table_1": 0,
    "table_2": 0,
}
#: A parameter of each notebook, by which a copy without its tag is tried: what is given, and what is kept.
TRIED = (
    ("alpha", "0.01", "0.05"),
    ("profile", "'open'", "'demo'"),
    ("cohorts", "20", "200"),
    ("texture", "'none'", "'fixed'"),
    ("preprocessing", "'native'", "'shared'"),
    ("seeds", "3", "2"),
    ("seed", "3", "0"),
)

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code_cells(path):
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def tags(cell):
    return cell.metadata.get("tags", [])


def shown_text(cell):
    """What a reader sees of a cell's outputs as text: streams, plain forms, and HTML without its tags."""
    parts = []
    for output in cell.outputs:
        data = output.get("data", {})
        parts += [output.get("text", ""), data.get("text/plain", "")]
        parts.append(html.unescape(re.sub(r"<[^>]*>", " ", data.get("text/html", ""))))
    return "\n".join(parts)


def test_the_notebooks_are_there():
    assert [path.stem for path in NOTEBOOKS] == list(FIGURES)


# ---- the contract


@every_notebook
def test_first_code_cell_holds_the_parameters(path):
    cells = code_cells(path)
    assert "parameters" in tags(cells[0])
    assert [cell for cell in cells[1:] if "parameters" in tags(cell)] == []
    assert not cells[0].source.startswith("# Parameters")  # papermill's own line
    for statement in ast.parse(cells[0].source).body:
        assert isinstance(statement, ast.Assign)
        ast.literal_eval(statement.value)


@every_notebook
def test_one_call_checks_exactly_these_parameters(path):
    cells = code_cells(path)
    names = [node.targets[0].id for node in ast.parse(cells[0].source).body]
    calls = [
        (i, node)
        for i, cell in enumerate(cells)
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "resolve_parameters"
    ]
    ((place, call),) = calls
    assert place == 1
    assert ast.unparse(call.args[0]) == "globals()"
    assert [keyword.arg for keyword in call.keywords] == names
    assert cells[1].outputs[0].text.startswith("Parameters: ")
    later = "\n".join(cell.source for cell in cells[2:])
    assert [name for name in names if f"parameters.{name}" not in later] == []
    used = {
        node.id
        for cell in cells[2:]
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Name)
    }
    assert used & set(names) == set(), "a parameter is used unchecked"


@every_notebook
def test_outputs_are_stored_and_complete(path):
    book = nbformat.read(path, as_version=4)
    assert book.metadata.kernelspec.name == "python3"
    assert set(book.metadata) == {"frame", "kernelspec", "language_info"}
    cells = code_cells(path)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        assert set(cell.metadata) <= {"tags", "mystnb"}
        last = ast.parse(cell.source).body[-1]
        assert bool(cell.outputs) == (isinstance(last, ast.Expr) or cell is cells[1]), cell.source
    assert path.stat().st_size < 1_000_000


@every_notebook
def test_outputs_hold_no_error_stderr_path_time_or_bar(path):
    for cell in code_cells(path):
        for output in cell.outputs:
            assert output.output_type in ("execute_result", "stream")
            assert output.get("name", "stdout") == "stdout"
            assert set(output.get("data", {})) <= {"text/plain", "text/html", "image/png"}
        text = shown_text(cell)
        assert not re.search(r"(?<![\w./])/\w+/\w", text), "an absolute path"
        assert not re.search(r"\b[A-Za-z]:\\", text), "an absolute path"
        assert not re.search(r"\d:\d\d\b|\b\d{4}-\d\d-\d\d\b|\bseconds?\b|it/s", text), "a time"
        assert not re.search(r"[█▏▎▍▌▋▊▉]|%\|", text), "a progress bar"
        assert not re.search(r"0x[0-9a-f]{6,}|<[\w.]+ (?:object|at) |<Figure", text), "an object's own text"
        assert "Warning" not in text


@every_notebook
def test_numbers_are_rounded(path):
    for cell in code_cells(path):
        found = re.findall(r"\d\.\d{6,}", shown_text(cell))
        assert bool(found) == ("full-precision" in tags(cell)), found


@every_notebook
def test_every_figure_has_caption_name_and_description(path):
    names = []
    for cell in code_cells(path):
        if not any("image/png" in output.get("data", {}) for output in cell.outputs):
            assert "mystnb" not in cell.metadata
            continue
        figure, image = cell.metadata.mystnb.figure, cell.metadata.mystnb.image
        names.append(figure.name)
        assert len(figure.caption) > 60
        assert len(image.alt) > 60
        assert image.alt != figure.caption
        (output,) = cell.outputs
        assert len(output.data["text/plain"]) > 60
        assert output.metadata["image/png"] == {"width": 620}
    assert len(names) == FIGURES[path.stem]
    assert len(set(names)) == len(names)


def test_figure_9_has_all_panels():
    cells = code_cells(ROOT / "notebooks" / "figure_9.ipynb")
    figures = [cell.metadata.mystnb.figure for cell in cells if "mystnb" in cell.metadata]
    assert [figure.name for figure in figures] == [f"fig-9{panel}" for panel in "abcdefg"]
    for panel, figure in zip("abcdefg", figures, strict=True):
        assert figure.caption.startswith(f"**Panel {panel}.** ")


@every_notebook
def test_tables_are_semantic_and_name_their_cohort(path):
    for cell in code_cells(path):
        for output in cell.outputs:
            page = output.get("data", {}).get("text/html", "")
            if "<table" not in page:
                continue
            caption = re.search(r"<caption>(.*?)</caption>", page)
            assert caption
            if "rinted" in caption[1] or "that agree" in caption[1] or "that differ" in caption[1]:
                assert PRINTED_COHORT.search(html.unescape(caption[1]))
            assert page.count('scope="col"') >= 2


@every_notebook
def test_downloads_hold_their_table_and_no_row_of_a_patient(path):
    links = []
    for cell in code_cells(path):
        for output in cell.outputs:
            page = output.get("data", {}).get("text/html", "")
            links += re.findall(r'download="([^"]+)" href="data:text/csv;charset=utf-8;base64,([^"]+)"', page)
    assert links
    for name, encoded in links:
        assert name.startswith(path.stem)
        rows = list(csv.reader(io.StringIO(base64.b64decode(encoded).decode("utf-8"))))
        assert len(rows) > 10
        assert [column for column in rows[0] if ROW_LEVEL.search(column)] == []


NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def numbers(text):
    return {found.replace(",", "").rstrip(".") for found in NUMBER.findall(text)}


def prose_numbers(text):
    text = re.sub(r"\]\([^)]*\)", "]", text)  # addresses of links
    for words in DEFINED:
        text = text.replace(words, " ")
    return numbers(text)


@every_notebook
def test_a_number_in_prose_is_shown_or_asserted_below_it(path):
    cells = nbformat.read(path, as_version=4).cells
    for i, cell in enumerate(cells):
        if cell.cell_type == "markdown":
            below = next((other for other in cells[i:] if other.cell_type == "code"), None)
            allowed = numbers(below.source + shown_text(below)) if below else set()
            assert prose_numbers(cell.source) - allowed == set(), cell.source
        elif "mystnb" in cell.metadata:
            own = numbers(cell.source + shown_text(cell))
            for text in (cell.metadata.mystnb.figure.caption, cell.metadata.mystnb.image.alt):
                assert prose_numbers(text) - own == set(), text


PAPER = ROOT.parent / "shared" / "paper" / "frame-paper.txt"


@pytest.mark.skipif(not PAPER.is_file(), reason="the paper's text does not lie beside this checkout")
@every_notebook
def test_no_sentence_is_shared_with_the_paper(path):
    def runs(text):
        words = re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z])- (?=[a-z])", "", text).lower())
        return {tuple(words[k : k + 10]) for k in range(len(words) - 9)}

    cells = nbformat.read(path, as_version=4).cells
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    for cell in cells:
        if "mystnb" in cell.metadata:
            texts += [cell.metadata.mystnb.figure.caption, cell.metadata.mystnb.image.alt]
    paper = runs(PAPER.read_text(encoding="utf-8"))
    assert [" ".join(run) for text in texts for run in runs(text) & paper] == []


# ---- executed again


def run_nbval(folder, *paths, environment):
    """Compare notebooks with their stored outputs in a process of its own; its status and report."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--nbval"]
    done = subprocess.run(
        [*command, "--rootdir", str(folder), *map(str, paths)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return done.returncode, done.stdout


def test_an_altered_output_fails_and_an_unaltered_one_does_not(tmp_path):
    # Beside 4 threads and without a terminal: neither may change a digit.
    plain, altered = tmp_path / "plain.ipynb", tmp_path / "altered.ipynb"
    shutil.copy(TABLE_7, plain)
    book = json.loads(TABLE_7.read_text(encoding="utf-8"))
    changed = 0
    for cell in book["cells"]:
        for output in cell.get("outputs", []):
            for kind, lines in output.get("data", {}).items():
                if kind == "text/plain" and "burlina-2021-05  q " in "".join(lines):
                    text = "".join(lines)
                    assert "0.005" in text
                    output["data"][kind] = text.replace("0.005", "0.006")
                    changed += 1
    assert changed == 1
    altered.write_text(json.dumps(book), encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "TERM"}
    environment |= {"OMP_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "4", "MKL_NUM_THREADS": "4"}
    status, report = run_nbval(tmp_path, plain, altered, environment=environment)
    assert status == 1, report
    failed = re.findall(r"^FAILED (\S+)", report, flags=re.MULTILINE)
    assert [name.partition("::")[0] for name in failed] == ["altered.ipynb"], report


def test_an_altered_printed_number_in_the_data_fails(tmp_path):
    # A copy of the package and its tables comes first on the path of the notebook's kernel.
    for name in ("frame", "data"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    table = tmp_path / "data" / "paper_supplementary_table7.csv"
    text = table.read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("glocker-2023-01,"))
    assert ",0.864,no" in line
    table.write_text(text.replace(line, line.replace(",0.864,no", ",0.865,no")), encoding="utf-8")
    copy = tmp_path / "copy.ipynb"
    shutil.copy(TABLE_7, copy)
    status, report = run_nbval(tmp_path, copy, environment={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert status == 1, report
    assert "0.865" in report


def papermill(path, out, *options):
    command = [
        sys.executable,
        "-m",
        "papermill",
        "-k",
        "python3",
        "--no-progress-bar",
        "--cwd",
        str(path.parent),
    ]
    done = subprocess.run(
        [*command, str(path), str(out), *options], capture_output=True, text=True, timeout=240, check=False
    )
    return done.returncode, done.stderr


def test_figure_9_runs_with_the_papers_draws(tmp_path):
    out = tmp_path / "figure_9_paper.ipynb"
    status, report = papermill(ROOT / "notebooks" / "figure_9.ipynb", out, "-p", "protocol", "paper")
    assert status == 0, report
    text = "\n".join(shown_text(cell) for cell in code_cells(out))
    assert "Parameters: protocol='paper', alpha=0.05" in text
    assert "41 of 89 claims exceed their reference: 40 of 53 rate differences and 1 of 36 AUROC" in text
    # The shares that the paper prints, 25 and 70 %, before rounding.
    assert re.search(r"median 2[45]\.\d % of a reported rate difference and (69\.[5-9]|70\.[0-5]) %", text)


@every_notebook
def test_a_copy_without_the_tag_is_refused(path, tmp_path):
    book = nbformat.read(path, as_version=4)
    first = next(cell for cell in book.cells if cell.cell_type == "code")
    first.metadata["tags"].remove("parameters")
    copy = tmp_path / "untagged.ipynb"
    nbformat.write(book, copy)
    name, given, kept = next(tried for tried in TRIED if tried[0] in first.source)
    status, report = papermill(copy, tmp_path / "out.ipynb", "-p", name, given.strip("'"))
    assert status != 0
    assert f"Parameter {name} was given as {given}, but {kept} is in force" in report


def test_an_unknown_parameter_is_refused(tmp_path):
    status, report = papermill(TABLE_7, tmp_path / "out.ipynb", "-p", "protocl", "paper")
    assert status != 0
    assert "There is no parameter 'protocl' in this notebook (did you mean protocol?)" in report

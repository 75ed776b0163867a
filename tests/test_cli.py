"""The command line: what it prints, writes and answers to wrong input."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import frame
from frame.claims import TEMPLATE
from frame.cli.application import application
from frame.published import COLUMNS

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture
def claims(tmp_path):
    path = tmp_path / "my_claims.csv"
    path.write_text(TEMPLATE, encoding="utf-8")
    return path


def run(*arguments, width=140):
    return CliRunner().invoke(
        application, [str(a) for a in arguments], env={"COLUMNS": str(width), "TERM": "dumb"}
    )


def test_version_and_help():
    assert run("--version").stdout == f"frame {frame.__version__}\n"
    shown = run("audit", "--help").stdout
    for option in ("--template", "--protocol", "--alpha", "--margin", "--out", "--format", "--fail-on"):
        assert option in shown


def test_template_is_a_table_that_can_be_audited(claims):
    assert run("audit", "--template").stdout == TEMPLATE
    assert run("audit", claims).exit_code == 0


def test_table(claims):
    result = run("audit", claims)
    assert result.exit_code == 0
    assert (
        "1 of 4 claims exceed their fair-model reference (AUROC 0 of 2, TPR 0 of 1, FPR 1 of 1)."
        in result.stdout
    )
    for claim in ("values-and-counts", "confusion-counts", "total-and-prevalence", "difference-only"):
        assert claim in result.stdout
    assert "does not exceed; 0.091 detectable" in result.stdout
    assert "Benjamini-Hochberg within each measure at 0.05" in result.stdout
    assert "Not exceeding is not fairness" in result.stdout
    assert "\x1b" not in result.stdout


def test_formats_hold_the_whole_result(claims):
    result = frame.audit_claims(claims)
    csv = pd.read_csv(StringIO(run("audit", claims, "--format", "csv").stdout))
    assert tuple(csv.columns) == COLUMNS
    assert csv["p"].tolist() == result["p"].tolist()
    rows = json.loads(run("audit", claims, "--format", "json").stdout)
    assert [row["p"] for row in rows] == result["p"].tolist()
    assert rows[1]["p_kappa_1"] is None
    assert rows[0]["exceeds"] is False
    assert list(rows[0]) == list(COLUMNS)
    markdown = run("audit", claims, "--format", "markdown").stdout
    assert markdown.count("\n| ") == len(result) + 1  # the rule below the heading
    assert "| total-and-prevalence | FPR | 2 (624) | 0.080 |" in markdown


@pytest.mark.parametrize("ending", ["csv", "json", "md", "txt"])
def test_out_writes_what_the_ending_says(claims, tmp_path, ending):
    out = tmp_path / f"result.{ending}"
    result = run("audit", claims, "--out", out)
    assert result.exit_code == 0
    assert result.stdout == ""
    assert "Written to" in result.stderr
    text = out.read_text(encoding="utf-8")
    starts = {"csv": "claim_id,measure", "json": "[\n", "md": "| claim |", "txt": " "}
    assert text.startswith(starts[ending])
    assert [p.name for p in tmp_path.iterdir() if p.name.endswith(".part")] == []


def test_fail_on(claims):
    assert run("audit", claims, "--fail-on", "exceeds").exit_code == 1
    lines = TEMPLATE.splitlines()
    claims.write_text("\n".join(line for line in lines if "total-and" not in line), encoding="utf-8")
    assert run("audit", claims, "--fail-on", "exceeds").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (["absent.csv"], "absent.csv: there is no such file"),
        ([], "no table of claims was given"),
        (["{claims}", "--alpha", "5"], "--alpha is 5"),
        (["{claims}", "--margin", "-1"], "--margin is -1"),
        (["{claims}", "--design-effect", "0.1"], "--design-effect is 0.1"),
        (["{claims}", "--margin", "0.1", "--protocol", "paper"], "margin needs protocol 'exact'"),
        (["{claims}", "--out", "{folder}/result.xlsx"], "whose ending says no format"),
        (
            ["{claims}", "--out", "{folder}/no/such/folder.csv"],
            "its folder does not exist",
        ),
        (["{claims}", "--out", "{claims}"], "the table of claims itself"),
    ],
)
def test_wrong_input_is_one_sentence_and_exit_2(claims, tmp_path, arguments, fragment):
    filled = [a.format(claims=claims, folder=tmp_path) for a in arguments]
    before = {p: p.read_bytes() for p in tmp_path.iterdir()}
    result = run("audit", *filled) if filled else run("audit", "--format", "csv")
    assert result.exit_code == 2
    assert fragment in result.stderr
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    "arguments", [["--protocol", "fast"], ["--format", "pdf"], ["--alpha", "much"], ["--nonsense"]]
)
def test_unknown_options_are_exit_2(claims, arguments):
    result = run("audit", claims, *arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.stderr


def test_bad_table_writes_nothing(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text(TEMPLATE.replace("0.86", "86"), encoding="utf-8")
    out = tmp_path / "result.csv"
    out.write_text("kept", encoding="utf-8")
    result = run("audit", path, "--out", out)
    assert result.exit_code == 2
    assert "bad.csv, row 2, column 'value': '86' is outside 0 to 1; if it is a percentage" in result.stderr
    assert out.read_text(encoding="utf-8") == "kept"


def test_narrow_terminals_get_paragraphs(claims):
    from rich.console import Console

    from frame.cli.claims import _print

    buffer = StringIO()
    _print(Console(file=buffer, width=60, highlight=False), frame.audit_claims(claims), 0.05)
    lines = buffer.getvalue().splitlines()
    assert max(map(len, lines)) <= 60
    assert "values-and-counts  AUROC, 2 subgroups" in lines[0]


def test_ten_thousand_claims(tmp_path):
    rows = ["claim_id,metric,subgroup,value,n_positive"]
    for i in range(10_000):
        rows += [f"c{i},tpr,x,0.{50 + i % 40},{100 + i % 7}", f"c{i},tpr,y,0.55,80"]
    path = tmp_path / "many.csv"
    path.write_text("\n".join(rows), encoding="utf-8")
    result = run("audit", path, "--format", "csv")
    assert result.exit_code == 0
    assert result.stdout.count("\n") == 10_001


def frame_process(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "frame", *arguments], capture_output=True, text=True, **options
    )


def test_a_reader_that_stops_early_sees_no_traceback():
    command = f"{sys.executable} -m frame audit {DATA / 'published_claims.csv'} --format csv | head -1"
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert result.stdout.startswith("claim_id")
    assert "Traceback" not in result.stderr


def test_works_from_another_folder_without_term(tmp_path, claims):
    environment = {k: v for k, v in os.environ.items() if k not in ("TERM", "COLUMNS")}
    result = frame_process("audit", str(claims), cwd=tmp_path, env=environment)
    assert result.returncode == 0
    assert "1 of 4 claims exceed" in result.stdout
    assert result.stderr == ""


def test_out_replaces_ordinary_files_only(claims, tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    result = run("audit", claims, "--out", pipe)
    assert (result.exit_code, pipe.is_fifo()) == (2, True)
    assert "no ordinary file" in result.stderr
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    real.write_text("old", encoding="utf-8")
    real.chmod(0o640)
    link.symlink_to(real)
    assert run("audit", claims, "--out", link).exit_code == 0
    assert link.is_symlink()
    assert real.read_text(encoding="utf-8").startswith("claim_id")
    assert real.stat().st_mode & 0o777 == 0o640


def test_a_file_cannot_steer_the_terminal(tmp_path):
    path = tmp_path / "odd.csv"
    text = TEMPLATE.replace("values-and-counts", "\x1b[2J[bold]x|y")
    path.write_text(text, encoding="utf-8")
    for form in ("table", "markdown"):
        shown = run("audit", path, "--format", form).stdout
        assert "\x1b" not in shown
        assert "[bold]" in shown
    path.write_text(text.replace("auroc", "\x1b[2J"), encoding="utf-8")
    assert "\x1b" not in run("audit", path).stderr


def test_letters_that_the_terminal_lacks(claims):
    claims.write_text(TEMPLATE.replace("values-and-counts", "müde 日本"), encoding="utf-8")
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    for form in ("table", "csv"):
        result = frame_process("audit", str(claims), "--format", form, env=environment)
        assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_one_sentence(claims):
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "frame", "audit", str(claims), "--format", "csv"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert result.returncode == 2
    assert result.stderr.startswith("frame: the output cannot be written")


@pytest.mark.parametrize(
    "arguments", [("audit", "--template"), ("audit", "{f}"), ("--help",), ("plan", "-h")]
)
def test_a_reader_that_has_gone_is_no_failure(claims, arguments):
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "frame", *(a.format(f=claims) for a in arguments)]
    result = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (result.returncode, result.stderr) == (0, "")


def test_a_reader_that_has_gone_hides_no_finding(claims):
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "frame", "audit", str(claims), "--fail-on", "exceeds"]
    result = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (result.returncode, result.stderr) == (1, "")


@pytest.mark.parametrize("verb", ["audit", "audit-scores", "plan"])
def test_help_fits_80_columns_and_cuts_no_name(verb):
    lines = run(verb, "--help", width=80).stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines)
    assert any("Example: frame" in line for line in lines)


def test_an_early_reader_is_no_failure():
    command = f"{sys.executable} -m frame audit {DATA / 'published_claims.csv'} --format csv | head -c 10"
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.skipif(os.name != "posix", reason="a terminal of one's own exists on Unix only")
def test_long_tables_show_progress_on_a_terminal(tmp_path):
    import pty

    rows = ["claim_id,metric,subgroup,value,n_positive"]
    for i in range(300):
        rows += [f"c{i},tpr,x,0.{50 + i % 4},100", f"c{i},tpr,y,0.55,80"]
    path = tmp_path / "many.csv"
    path.write_text("\n".join(rows), encoding="utf-8")
    mine, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "frame", "audit", str(path), "--out", str(tmp_path / "out.csv")],
        stderr=theirs,
        stdout=subprocess.DEVNULL,
        env=os.environ | {"TERM": "xterm"},
    )
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # the terminal closes with the process
        while piece := os.read(mine, 65536):
            shown += piece
    os.close(mine)
    assert process.wait(timeout=60) == 0
    assert b"auditing" in shown
    assert b"300 claims exceed" in shown

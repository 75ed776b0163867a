"""``frame audit-scores``: what it reads, prints, writes and answers to wrong input."""

import gzip
import json
import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import frame
from frame.audits.columns import COLUMNS
from frame.cli.application import application

REAL = Path(__file__).parents[2] / "shared" / "data" / "real" / "pad_ufes_scores" / "scores.csv.gz"


def run(*arguments, width=140):
    return CliRunner().invoke(
        application,
        ["audit-scores", *(str(a) for a in arguments)],
        env={"COLUMNS": str(width), "TERM": "dumb"},
    )


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    finding = (rng.random(n) < 0.35).astype(int)
    return pd.DataFrame(
        {
            "image": [f"canary_{i}.png" for i in range(n)],
            "risk": (1 / (1 + np.exp(-(finding * 1.2 + rng.normal(size=n))))).round(4),
            "second": rng.random(n).round(4),
            "finding": finding,
            "sex": rng.choice(["F", "M"], n),
            "age": rng.choice(["<40", "40+"], n),
            "view": rng.choice(["PA", "AP"], n),
            "split": rng.choice(["train", "validation", "test"], n, p=[0.2, 0.3, 0.5]),
            "patient": [f"canary{i // 2:03d}" for i in range(n)],
        }
    )


@pytest.fixture
def scores(tmp_path):
    path = tmp_path / "scores.csv"
    table().to_csv(path, index=False)
    return path


BASE = ["--score", "risk", "--label", "finding", "--group", "sex"]


def test_help_names_every_option():
    shown = run("--help", width=200).stdout
    for option in (
        *("--score", "--label", "--group", "--patient", "--within", "--measure", "--method", "--protocol"),
        *("--threshold", "--validation", "--split", "--missing", "--scale", "--intersections", "--min-size"),
        *("--alpha", "--margin", "--resamples", "--seed", "--suppress-below", "--html", "--out", "--format"),
        *("--fail-on", "--images-repeat"),
    ):
        assert option in shown


def test_printed_result(scores):
    result = run(scores, *BASE, "--group", "age", "--patient", "patient")
    assert (result.exit_code, result.stderr) == (0, "")
    given = table()
    audited = frame.audit(given["risk"], given["finding"], given["sex"], given["patient"], resamples=0)
    words = " ".join(result.stdout.split())
    assert f"by sex The difference in AUROC between subgroups of sex, {audited.observed:.3f}" in words
    n_f, positive = int((given["sex"] == "F").sum()), int(given["finding"][given["sex"] == "F"].sum())
    assert f"F {n_f} {positive} " in words
    other = frame.audit(given["risk"], given["finding"], given["age"], given["patient"], resamples=0)
    exceeding = sum(q < 0.05 for q in (2 * min(audited.p, other.p), max(audited.p, other.p)))
    assert f"{exceeding} of 2 differences exceed their fair-model reference." in words
    assert "Read 400 rows. Unit of sampling: patient. Reference: calibrated" in words
    assert "Not exceeding is not fairness" in words
    assert "\x1b" not in result.stdout
    assert "canary" not in result.stdout


@pytest.mark.parametrize("width", [80, 120])
def test_terminals_of_both_widths(scores, width):
    from rich.console import Console

    from frame.audits import audits_of
    from frame.cli.score_output import print_audits

    given = table()
    audits = audits_of(given["risk"], given["finding"], given[["sex", "age"]], resamples=0)
    buffer = StringIO()
    print_audits(Console(file=buffer, width=width, highlight=False), audits, 0, "400 rows")
    lines = buffer.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert "if fair [95 %]" in buffer.getvalue()
    assert any(line.strip().startswith("if fair [95 %] 0.") for line in lines) is (width < 116)
    assert "is consistent with exact fairness" in " ".join(buffer.getvalue().split())


def test_formats_hold_the_whole_result(scores):
    options = [*BASE, "--measure", "auroc", "--measure", "fpr", "--threshold", "0.6"]
    csv = pd.read_csv(StringIO(run(scores, *options, "--format", "csv").stdout))
    assert tuple(csv.columns) == COLUMNS
    rows = json.loads(run(scores, *options, "--format", "json").stdout)
    assert [row["measure"] for row in rows] == ["auroc", "fpr"]
    assert [row["p"] for row in rows] == pytest.approx(csv["p"].tolist())
    assert list(rows[0]) == list(COLUMNS)
    assert rows[0]["threshold"] is None
    assert rows[1]["threshold"] == 0.6
    markdown = run(scores, *options, "--format", "markdown").stdout
    assert markdown.startswith("| audit | measure |")
    assert markdown.count("\n- The difference in ") == 2


def test_many_scores_labels_and_groups(scores):
    given = table()
    given["other"] = 1 - given["finding"]
    given.to_csv(scores, index=False)
    options = ["--score", "risk", "--score", "second", "--label", "finding", "--label", "other"]
    options += ["--group", "sex", "--group", "age", "--intersections", "--format", "csv"]
    csv = pd.read_csv(StringIO(run(scores, *options).stdout))
    assert len(csv) == 2 * 2 * 3
    assert set(csv["attribute"]) == {"sex", "age", "sex x age"}
    assert set(csv["family_size"]) == {12}


def test_within(scores):
    csv = pd.read_csv(StringIO(run(scores, *BASE, "--within", "view", "--format", "csv").stdout))
    assert csv["stratum"].tolist() == ["AP", "PA"]
    assert set(csv["within"]) == {"view"}
    kept = table()[table()["view"] == "PA"]
    alone = frame.audit(kept["risk"], kept["finding"], kept["sex"], resamples=0)
    assert csv["p"][1] == pytest.approx(alone.p)


def test_split_gives_thresholds_and_says_counts(scores):
    result = run(scores, *BASE, "--measure", "tpr", "--split", "split", "--format", "csv")
    csv = pd.read_csv(StringIO(result.stdout))
    given = table()
    held = given[(given["split"] == "validation") & (given["finding"] == 1)]["risk"]
    assert csv["threshold"][0] == pytest.approx(np.percentile(held, 20))
    assert csv["n_images"][0] == (given["split"] == "test").sum()
    words = " ".join(run(scores, *BASE, "--split", "split").stdout.split())
    counts = given["split"].value_counts()
    assert f"Read {counts['test']} test rows, {counts['validation']} validation rows" in words
    assert f"left out {counts['train']} others ({counts['train']} 'train')" in words


def test_validation_file(scores, tmp_path):
    held = tmp_path / "held.csv"
    table(seed=5).to_csv(held, index=False)
    options = [*BASE, "--measure", "tpr", "--threshold", "youden", "--validation", held, "--format", "csv"]
    csv = pd.read_csv(StringIO(run(scores, *options).stdout))
    assert csv["threshold_source"][0] == "youden on validation"
    expected = frame.measures.youden_threshold(table(seed=5)["risk"], table(seed=5)["finding"])
    assert csv["threshold"][0] == pytest.approx(expected)


def test_fail_on(scores):
    assert run(scores, *BASE, "--fail-on", "exceeds").exit_code == 0
    given = table(2000)
    given.loc[given["sex"] == "F", "risk"] = np.random.default_rng(1).random((given["sex"] == "F").sum())
    given.to_csv(scores, index=False)
    result = run(scores, *BASE, "--fail-on", "exceeds")
    assert result.exit_code == 1
    assert "is larger than an exactly fair model would show" in " ".join(result.stdout.split())
    assert run(scores, *BASE).exit_code == 0


def test_html_and_out(scores, tmp_path):
    html, out = tmp_path / "report.html", tmp_path / "result.csv"
    result = run(scores, *BASE, "--patient", "patient", "--html", html, "--out", out, "--resamples", "100")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "Written to" in result.stderr
    text = html.read_text(encoding="utf-8")
    assert "canary" not in text + out.read_text(encoding="utf-8")
    assert "scores.csv, 400 rows" in text
    assert str(tmp_path) not in text
    assert "100 bootstrap resamples, whole patients drawn" in text


def test_suppression_reaches_every_output(scores, tmp_path):
    given = table()
    given.loc[:6, "sex"] = "X"
    given.to_csv(scores, index=False)
    n_hidden = int(given["sex"].value_counts()[["F", "M"]].min())
    html = tmp_path / "report.html"
    outputs = [
        run(scores, *BASE, "--suppress-below", "11", "--format", form, "--html", html).stdout
        for form in ("table", "csv", "json", "markdown")
    ]
    report = re.sub(r"<svg.*?</svg>", "", html.read_text(encoding="utf-8"), flags=re.DOTALL)
    for text in [*outputs, re.sub(r"<[^>]+>", " ", report)]:
        assert f" {n_hidden} " not in text
        assert "(7)" not in text
    assert "<11" in outputs[0]
    assert "suppressed" in outputs[1]


# -- files ------------------------------------------------------------------------------------------


def expected_row(given):
    made = frame.audit(
        given["risk"], given["finding"], given["sex"], given["patient"].astype(str), resamples=0
    )
    return made.to_frame().iloc[0]


def read_back(path, *options):
    result = run(path, *BASE, "--patient", "patient", "--format", "csv", *options)
    assert result.exit_code == 0, result.stderr
    return pd.read_csv(StringIO(result.stdout)).iloc[0]


@pytest.mark.parametrize("kind", ["gz", "semicolon", "tab", "bom", "utf16", "crlf", "parquet", "ragged"])
def test_kinds_of_files(tmp_path, kind):
    given = table()
    path = tmp_path / "scores.csv"
    text = given.to_csv(index=False)
    if kind == "gz":
        path.write_bytes(gzip.compress(text.encode()))
    elif kind == "semicolon":
        path.write_text(given.to_csv(index=False, sep=";", decimal=","), encoding="utf-8")
    elif kind == "tab":
        path.write_text(given.to_csv(index=False, sep="\t"), encoding="utf-8")
    elif kind == "bom":
        path.write_text(text, encoding="utf-8-sig")
    elif kind == "utf16":
        path.write_text(text, encoding="utf-16")
    elif kind == "crlf":
        path.write_bytes(text.replace("\n", "\r\n").encode())
    elif kind == "ragged":
        path.write_text(text.replace("\n", ",,\n") + ",,,,\n\n", encoding="utf-8")
    else:
        given.to_parquet(path)
    assert read_back(path)["p"] == pytest.approx(expected_row(given)["p"], rel=1e-9)


def test_parquet_keeps_order_and_index(tmp_path):
    given = table()
    given["age"] = pd.Categorical(given["age"], categories=["<40", "40+", "unused"])
    path = tmp_path / "scores.parquet"
    given.set_index("patient").to_parquet(path)
    result = run(path, "--score", "risk", "--label", "finding", "--group", "age", "--patient", "patient")
    assert result.exit_code == 0, result.stderr
    words = " ".join(result.stdout.split())
    assert words.index("<40") < words.index("unused")
    assert "not estimable: fewer than 20 images (0)" in words


def test_ids_and_groups_stay_text(tmp_path):
    given = table(90)
    given["patient"] = ["007", "7", "07", "1e3", "1000"] * 18
    given["sex"] = ["01", "1"] * 45
    path = tmp_path / "scores.csv"
    given.to_csv(path, index=False)
    row = read_back(path, "--min-size", "5")
    assert (row["n_patients"], row["n_groups"]) == (5, 2)


def test_ids_that_differ_by_blanks_are_an_error(scores):
    scores.write_text(scores.read_text(encoding="utf-8").replace("canary001\n", "canary001 \n", 1))
    result = run(scores, *BASE, "--patient", "patient")
    assert result.exit_code == 2
    assert "ids are the same but for blanks" in result.stderr
    assert "canary" not in result.stderr


def test_whole_numbers_are_levels_in_order(tmp_path):
    given = table(120)
    given["sex"] = [1.0, 2.0, 10.0] * 40
    path = tmp_path / "scores.csv"
    given.to_csv(path, index=False)
    words = " ".join(run(path, *BASE).stdout.split())
    lines = words[words.index("subgroup images") :]
    assert lines.index(" 1 40") < lines.index(" 2 40") < lines.index(" 10 40")


@pytest.mark.parametrize(
    ("labels", "accepted"),
    [
        (["0", "1"], True),
        (["0.0", "1.0"], True),
        (["False", "True"], True),
        (["false", "TRUE"], True),
        (["neg", "pos"], False),
        (["-1", "1"], False),
        (["1", "2"], False),
    ],
)
def test_labels_in_text(tmp_path, labels, accepted):
    given = table()
    given["finding"] = [labels[y] for y in given["finding"]]
    path = tmp_path / "scores.csv"
    given.to_csv(path, index=False)
    result = run(path, *BASE)
    assert result.exit_code == (0 if accepted else 2)
    if not accepted:
        assert "labels hold" in result.stderr


def test_blanks_are_missing(tmp_path):
    given = table().astype({"sex": object, "finding": float})
    given.loc[[0, 1], "sex"] = ["", "NA"]
    given.loc[5:9, "finding"] = np.nan
    path = tmp_path / "scores.csv"
    given.to_csv(path, index=False)
    result = run(path, *BASE)
    assert result.exit_code == 2
    assert "column 'sex' is blank for 2 of 395 images" in result.stderr
    assert "--missing drop" in result.stderr
    assert "missing='" not in result.stderr
    dropped = pd.read_csv(StringIO(run(path, *BASE, "--missing", "drop", "--format", "csv").stdout)).iloc[0]
    assert (dropped["n_missing"], dropped["n_unlabelled"], dropped["n_images"]) == (2, 5, 393)
    assert "(missing)" in run(path, *BASE, "--missing", "group").stdout


def test_a_blank_patient_is_an_error(tmp_path):
    given = table()
    given.loc[3, "patient"] = "nan"
    path = tmp_path / "scores.csv"
    given.to_csv(path, index=False)
    result = run(path, *BASE, "--patient", "patient")
    assert result.exit_code == 2
    assert "the id is missing for 1 of 400 images" in result.stderr


# -- wrong input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (["absent.csv", *BASE], "absent.csv: there is no such file"),
        (["{f}"], "no --score was given; name a column of scores.csv with it"),
        (["{f}", "--score", "risk"], "no --label was given"),
        (["{f}", "--score", "risk", "--label", "finding"], "no --group was given"),
        (["{f}", *BASE, "--group", "Sexx"], "has no column 'Sexx'; did you mean 'sex'?"),
        (["{f}", *BASE, "--group", "sex"], "column 'sex' is named 2 times"),
        (["{f}", *BASE, "--within", "sex"], "column 'sex' is named 2 times"),
        (["{f}", *BASE, "--patient", " "], "a column without a name"),
        (["{f}", "--score", "image", "--label", "finding", "--group", "sex"], "400 cells are no number"),
        (["{f}", *BASE, "--measure", "tpr"], "--validation FILE or --split COLUMN"),
        (["{f}", *BASE, "--measure", "tpr", "--threshold", "high"], "threshold is 'high'"),
        (["{f}", *BASE, "--split", "view"], "no row says 'test'; found are"),
        (["{f}", *BASE, "--split", "split", "--validation", "{f}"], "thresholds come from one of them"),
        (["{f}", *BASE, "--method", "binomial"], "its methods are 'auto', 'calibrated'"),
        (["{f}", *BASE, "--method", "obuchowski"], "give --patient COLUMN"),
        (["{f}", *BASE, "--intersections"], "give --group several times"),
        (["{f}", *BASE, "--alpha", "5"], "alpha is 5"),
        (["{f}", *BASE, "--margin", "-0.1"], "margin is -0.1"),
        (["{f}", *BASE, "--min-size", "0"], "--min-size is 0"),
        (["{f}", *BASE, "--resamples", "7"], "resamples is 7"),
        (["{f}", *BASE, "--seed", "-4"], "seed is -4"),
        (["{f}", *BASE, "--suppress-below", "-1"], "--suppress-below is -1"),
        (["{f}", *BASE, "--out", "{d}/result.xlsx"], "whose ending says no format"),
        (["{f}", *BASE, "--out", "{f}"], "the table of scores itself"),
        (["{f}", *BASE, "--html", "{f}"], "the table of scores itself"),
        (["{f}", *BASE, "--html", "{d}/no/r.html"], "its folder does not exist"),
        (["{f}", *BASE, "--html", "{d}/r.csv", "--out", "{d}/r.csv"], "give two files"),
    ],
)
def test_wrong_input_is_one_sentence_and_exit_2(scores, tmp_path, arguments, fragment):
    filled = [a.format(f=scores, d=tmp_path) if "{" in str(a) else a for a in arguments]
    before = {p: p.read_bytes() for p in tmp_path.iterdir()}
    result = run(*filled)
    assert result.exit_code == 2, result.stdout
    assert fragment in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert "canary" not in result.stderr
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("content", "fragment"),
    [
        (b"", "the file is empty"),
        (b"\n\n", "the file is empty"),
        (b"just words\nand more\n", "no comma, semicolon or tab"),
        (b"risk,finding,sex\n", "a header but no row"),
        (b"risk,finding,sex\n,,\n\n", "a header but no row"),
        (b"risk,finding,sex,sex\n0.1,0,F,F\n", "column 'sex' stands there 2 times"),
        (b"risk,finding,sex\n0.1,0,F,9\n", "data row 1: 4 cells are more cells than the header's 3"),
        (b"risk,finding,sex\n0.1,0,F\n0.x,1,M\n", "1 cell is no number (the first in data row 2)"),
        (b"risk,finding,sex\n0.1,0,F\n1_0,1,M\n", "1 cell is no number"),
        (b"risk,finding,sex\ninf,0,F\n0.2,1,M\n", "1 scores are infinite"),
        (b"risk,finding,sex\n0.1,0,F\n,1,M\n", "the score is missing for 1 of 2 images"),
        (b"risk,finding,sex\n\xff\xfe0.1,0,F\n", "not UTF-8 text"),
        (b"risk,finding,sex\n0.1,\x00,F\n", "zero bytes"),
        (b"PK\x03\x04rest", "a spreadsheet or a zip archive"),
        (b"\x1f\x8b\x08broken", "the compressed file is damaged"),
        (gzip.compress(gzip.compress(b"a,b", mtime=0), mtime=0), "compressed twice"),
        (b"BZh91AY", "compressed with bzip2"),
        (b'[{"risk": 0.1, "finding": 1}]', "it looks like JSON or a web page"),
        (b",,\n0.1,0,F\n", "its header names no column at all"),
        (b"risk,finding,sex," + b"x" * 200_000 + b"\n0.1,0,F,1\n", "the header: a cell is longer than"),
        (b"PAR1 and nothing else", "the parquet file is damaged"),
        (b'risk,finding,sex\n0.1,0,"' + b"F" * 20_000, "a double quote may have been left open"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_files_that_are_no_tables(tmp_path, content, fragment):
    path = tmp_path / "scores.csv"
    path.write_bytes(content)
    result = run(path, *BASE)
    assert result.exit_code == 2
    assert fragment in result.stderr
    assert result.stderr.count("\n") == 1


def test_damaged_parquet(tmp_path):
    path = tmp_path / "scores.parquet"
    table().to_parquet(path)
    whole = path.read_bytes()
    for damaged in (
        whole[: len(whole) // 2],
        whole[:200] + b"\x00" * (len(whole) - 5000) + whole[-4800:],
        whole[:-8],
    ):
        path.write_bytes(damaged)
        result = run(path, *BASE)
        assert result.exit_code == 2
        assert "the parquet file is damaged or incomplete" in result.stderr


def test_a_folder_is_no_file(tmp_path):
    result = run(tmp_path, *BASE)
    assert result.exit_code == 2
    assert "the file cannot be opened" in result.stderr


def test_a_missing_pyarrow_is_one_sentence(tmp_path, monkeypatch):
    path = tmp_path / "scores.parquet"
    table().to_parquet(path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = run(path, *BASE)
    assert result.exit_code == 2
    assert "needs pyarrow; install it with: pip install 'frame-audit[scores]'" in result.stderr


def test_a_file_cannot_steer_the_terminal(tmp_path):
    given = table()
    given["sex"] = given["sex"].replace({"F": "\x1b[2J[bold]|x", "M": "<i>m"})
    path = tmp_path / "scores.csv"
    given.to_csv(path, index=False)
    for form in ("table", "markdown"):
        shown = run(path, *BASE, "--format", form).stdout
        assert "\x1b" not in shown
    assert "[bold]" in run(path, *BASE).stdout


def test_as_a_process(scores, tmp_path):
    command = [sys.executable, "-m", "frame", "audit-scores", str(scores), *BASE, "--fail-on", "exceeds"]
    environment = {k: v for k, v in os.environ.items() if k not in ("TERM", "COLUMNS")}
    result = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert "0 of 1 differences exceed" in result.stdout


def test_auroc_audit_needs_no_heavy_package(scores):
    code = (
        "import sys\nfrom frame.cli.application import application\n"
        f"try:\n    application(['audit-scores', {str(scores)!r}, *{BASE!r}], standalone_mode=False)\n"
        "finally:\n    heavy = {'numba', 'matplotlib', 'sklearn', 'torch', 'pyarrow'}\n"
        "    loaded = heavy & {m.split('.')[0] for m in sys.modules}\n"
        "    print('loaded:', sorted(loaded - {'pyarrow'}))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "loaded: []" in result.stdout


# -- True and False, thresholds, ids ----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "parquet", "categories"])
def test_true_and_false_are_decisions_and_labels(tmp_path, kind):
    given = table()
    decided = given["risk"] > 0.5
    expected = frame.audit(decided, given["finding"], given["sex"], measure="tpr", resamples=0)
    given["risk"] = np.where(decided, "True", "FALSE")
    given["finding"] = np.where(given["finding"] == 1, "TRUE", "false")
    if kind == "categories":
        given["finding"] = given["finding"].astype("category")
    path = tmp_path / "scores.any"
    given.to_csv(path, index=False) if kind == "csv" else given.to_parquet(path)
    result = run(path, *BASE, "--measure", "tpr", "--format", "csv")
    assert result.exit_code == 0, result.stderr
    row = pd.read_csv(StringIO(result.stdout)).iloc[0]
    assert row["observed"] == pytest.approx(expected.observed)
    assert row["threshold_source"] == "predictions"


def test_true_beside_other_numbers_is_no_score(tmp_path):
    given = table()
    given["risk"] = np.where(given["risk"] > 0.5, "True", "0.3")
    path = tmp_path / "scores.csv"
    given.to_csv(path, index=False)
    result = run(path, *BASE)
    assert result.exit_code == 2
    assert "no number" in result.stderr


def test_patients_of_the_validation_rows_are_other_patients(scores, tmp_path):
    held = tmp_path / "held.csv"
    options = [*BASE, "--measure", "tpr", "--validation", held, "--patient", "patient"]
    given = table(seed=5)
    given.loc[10:, "patient"] = "v" + given.loc[10:, "patient"]
    given.to_csv(held, index=False)
    result = run(scores, *options)
    assert result.exit_code == 2
    assert "5 patients are in the validation rows and in the audited rows" in result.stderr
    assert "canary" not in result.stderr
    given["patient"] = "v" + given["patient"]
    given.to_csv(held, index=False)
    assert run(scores, *options).exit_code == 0
    given.drop(columns="patient").to_csv(held, index=False)
    assert "has no column 'patient'" in run(scores, *options).stderr
    shared = run(scores, *BASE, "--measure", "tpr", "--split", "split", "--patient", "patient")
    assert shared.exit_code == 2
    assert "patients are in the validation rows and in the audited rows" in shared.stderr


@pytest.mark.parametrize("kind", ["same", "copy", "gz", "parquet"])
def test_a_validation_table_is_not_the_audited_one(scores, tmp_path, kind):
    held = scores if kind == "same" else tmp_path / "held"
    if kind == "copy":
        held.write_bytes(scores.read_bytes())
    elif kind == "gz":
        held.write_bytes(gzip.compress(scores.read_bytes()))
    elif kind == "parquet":
        table().drop(columns="image").to_parquet(held)
    result = run(scores, *BASE, "--measure", "tpr", "--validation", held)
    assert result.exit_code == 2
    assert "give rows of other patients, or --threshold a number" in result.stderr
    assert ("the audited table itself" in result.stderr) is (kind in ("same", "copy"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--validation", "{h}"], "--validation was not used; no measure here needs a threshold"),
        (["--split", "split"], "validation rows of --split were not used; no measure here"),
        (["--threshold", "0.5"], "--threshold was not used; no measure here"),
        (
            ["--measure", "tpr", "--threshold", "0.5", "--validation", "{h}"],
            "--validation was not used; --threshold is a number",
        ),
        (["--measure", "tpr", "--measure", "auroc", "--validation", "{h}"], ""),
    ],
)
def test_what_was_not_used_is_said(scores, tmp_path, options, said):
    held = tmp_path / "held.csv"
    table(seed=5).to_csv(held, index=False)
    result = run(scores, *BASE, *(o.format(h=held) for o in options))
    assert result.exit_code == 0
    assert said in result.stderr
    assert bool(result.stderr) is bool(said)


def test_images_repeat(scores):
    words = " ".join(run(scores, *BASE, "--images-repeat").stdout.split())
    assert "images repeat but no patient id was given" in words
    both = run(scores, *BASE, "--images-repeat", "--patient", "patient")
    assert both.exit_code == 2
    assert "--images-repeat and --patient were both given" in both.stderr


@pytest.mark.parametrize("method", ["calibrated", "calibrated-balanced", "delong", "pooled"])
def test_every_method_can_be_chosen(scores, method):
    row = pd.read_csv(StringIO(run(scores, *BASE, "--method", method, "--format", "csv").stdout)).iloc[0]
    assert row["method"] == method


def test_every_measure_and_method_is_offered():
    from frame.audits.settings import METHODS
    from frame.cli.scores import Measure, ScoreMethod

    assert {m.value for m in Measure} == set(METHODS)
    assert {m.value for m in ScoreMethod} == {"auto"} | {m for methods in METHODS.values() for m in methods}
    shown = run("--help", width=400).stdout
    for name in (*Measure, *ScoreMethod):
        assert name.value in shown


# -- what must not come out -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        ["--group", "image"],
        ["--group", "sex", "--within", "patient"],
        ["--group", "sex", "--split", "patient"],
        ["--group", "sex", "--split", "image"],
    ],
)
def test_ids_in_the_place_of_categories_are_not_shown(scores, options):
    result = run(scores, "--score", "risk", "--label", "finding", *options)
    assert result.exit_code == 2
    assert "different values" in result.stderr
    assert "canary" not in result.stderr


def test_thousands_of_levels_are_no_subgroups(tmp_path):
    given = pd.DataFrame(
        {"risk": 0.5, "finding": [0, 1] * 6000, "sex": [f"l{i % 2400}" for i in range(12000)]}
    )
    path = tmp_path / "scores.csv"
    given.to_csv(path, index=False)
    assert "2,400 different values in 12,000 rows are too many" in run(path, *BASE).stderr


def test_few_ids_are_not_quoted_either(tmp_path):
    path = tmp_path / "scores.csv"
    table(8).to_csv(path, index=False)
    result = run(path, *BASE, "--split", "patient")
    assert result.exit_code == 2
    assert "4 different values" in result.stderr


def test_a_row_in_the_place_of_the_header_is_not_quoted(tmp_path):
    path = tmp_path / "scores.csv"
    table().to_csv(path, index=False, header=False)
    result = run(path, *BASE)
    assert result.exit_code == 2
    assert "its first line holds numbers, so it may be a row" in result.stderr
    assert "canary" not in result.stderr


def test_advice_is_for_the_command_line(tmp_path):
    path = tmp_path / "scores.csv"
    given = table()
    given["finding"] = np.where(given["finding"] == 1, "pos", "neg")
    given.to_csv(path, index=False)
    said = run(path, *BASE).stderr
    assert "Write 0 or 1 into that column" in said
    assert "labels.map" not in said
    assert "--seed is -4" in run(path, *BASE, "--seed", "-4").stderr


def test_csv_steers_no_terminal_and_is_no_formula(tmp_path):
    path = tmp_path / "scores.csv"
    table().rename(columns={"sex": "=1+\x1b[2J"}).to_csv(path, index=False)
    options = ["--score", "risk", "--label", "finding", "--group", "=1+\x1b[2J"]
    shown = run(path, *options, "--format", "csv").stdout
    assert "\x1b" not in shown
    assert pd.read_csv(StringIO(shown))["attribute"].tolist() == ["'=1+\\x1b[2J"]
    assert json.loads(run(path, *options, "--format", "json").stdout)[0]["attribute"] == "=1+\x1b[2J"


# -- interrupted, full, closed ----------------------------------------------------------------------


def test_files_are_written_together_or_not_at_all(scores, tmp_path, monkeypatch):
    html, out = tmp_path / "report.html", tmp_path / "result.csv"
    out.write_text("before", encoding="utf-8")
    chmod, calls = Path.chmod, []

    def full_disk(self, mode):
        calls.append(self)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        chmod(self, mode)

    monkeypatch.setattr(Path, "chmod", full_disk)
    result = run(scores, *BASE, "--html", html, "--out", out, "--resamples", "0")
    assert result.exit_code == 2
    assert "cannot be written (no space left on device)" in result.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["result.csv", "scores.csv"]
    assert out.read_text(encoding="utf-8") == "before"


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGKILL", -9)])
def test_ended_in_the_middle(scores, tmp_path, name, code):
    out = tmp_path / "result.csv"
    program = (
        "import os, signal, sys\nimport frame.audits\nfrom frame.cli.application import main\n"
        f"frame.audits.audits_of = lambda *a, **k: os.kill(os.getpid(), signal.{name}) or input()\n"
        "main()\n"
    )
    command = [sys.executable, "-c", program, "audit-scores", str(scores), *BASE, "--out", str(out)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == code
    said = "" if name == "SIGKILL" else "frame: interrupted; no file was left half-written.\n"
    assert result.stderr == said
    assert [p.name for p in tmp_path.iterdir()] == ["scores.csv"]


@pytest.mark.parametrize("options", [(), ("--format", "csv"), ("--help",)])
def test_a_reader_that_has_gone_is_no_failure(scores, options):
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "frame", "audit-scores", str(scores), *BASE, *options]
    result = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (result.returncode, result.stderr) == (0, "")


def test_a_closed_output_is_said(scores):
    command = f"{sys.executable} -m frame audit-scores {scores} {' '.join(BASE)} >&-"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "the standard output is closed" in result.stderr


@pytest.mark.parametrize("closed", ["2>&-", "2>/dev/full"])
def test_a_result_needs_no_error_stream(scores, tmp_path, closed):
    out = tmp_path / "result.csv"
    command = f"{sys.executable} -m frame audit-scores {scores} {' '.join(BASE)} --out {out} {closed}"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "")
    assert out.read_text(encoding="utf-8").startswith("score,label")


def test_too_little_memory_is_one_sentence(scores, tmp_path):
    program = (
        "import frame.audits\nfrom frame.cli.application import main\n"
        "def audits_of(*a, **k): raise MemoryError\n"
        "frame.audits.audits_of = audits_of\nmain()\n"
    )
    command = [sys.executable, "-c", program, "audit-scores", str(scores), *BASE]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "needs more memory than there is" in result.stderr


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero here")
def test_a_device_is_no_file():
    result = run("/dev/zero", *BASE)
    assert result.exit_code == 2
    assert "zero is a device, no file" in result.stderr


def test_a_long_name_of_an_output_can_be_written(scores, tmp_path):
    out = tmp_path / ("é" * 120 + ".csv")
    assert run(scores, *BASE, "--out", out).exit_code == 0
    assert out.exists()


# -- anything at all --------------------------------------------------------------------------------

CELLS = st.one_of(
    st.sampled_from(
        ["0", "1", "0.5", "F", "M", "", "NA", "-1", "nan", "inf", "1e400", "True", " x", '"', "é,"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
)
OPTIONS = st.lists(
    st.one_of(
        st.sampled_from(
            [
                ["--measure", "tpr"],
                ["--measure", "ece"],
                ["--threshold", "0.5"],
                ["--threshold", "youden"],
                ["--missing", "drop"],
                ["--missing", "group"],
                ["--min-size", "1"],
                ["--method", "delong"],
                ["--method", "pooled"],
                ["--scale", "logit"],
                ["--patient", "d"],
                ["--within", "e"],
                ["--split", "e"],
                ["--intersections"],
                ["--suppress-below", "3"],
                ["--format", "json"],
                ["--format", "markdown"],
                ["--protocol", "paper"],
                ["--margin", "0.1"],
                ["--group", "e"],
                ["--fail-on", "exceeds"],
            ]
        ),
        st.tuples(
            st.sampled_from(["--alpha", "--margin", "--threshold", "--group", "--seed", "--patient"]),
            st.text(max_size=5),
        ).map(list),
    ),
    max_size=4,
)
ROWS = st.one_of(
    st.lists(st.lists(CELLS, min_size=1, max_size=7), max_size=12),
    st.lists(
        st.tuples(
            st.sampled_from(["0.1", "0.7", "0.7", "3", "-2", ""]),
            st.sampled_from(["0", "1", "1", "True", ""]),
            st.sampled_from(["F", "M", "other", ""]),
            st.sampled_from(["p1", "p2", "p3", "007", "7"]),
            st.sampled_from(["test", "validation", "AP"]),
        ).map(list),
        min_size=8,
        max_size=40,
    ),
)


@given(rows=ROWS, options=OPTIONS, header=st.sampled_from(["a,b,c,d,e", "a,b,c", "a;b;c;d;e", ""]))
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_no_input_reaches_a_traceback(tmp_path, rows, options, header):
    path = tmp_path / "fuzz.csv"
    text = "\n".join([header, *(",".join(row) for row in rows)])
    path.write_text(text, encoding="utf-8", newline="")
    arguments = [a for option in options for a in option]
    chosen = ["--score", "a", "--label", "b", "--group", "c", "--min-size", "2", *arguments]
    result = run(path, *chosen)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.exit_code in (0, 1, 2)
    if result.exit_code == 2:
        assert result.stdout == ""
        assert result.stderr
    else:
        assert result.stdout


# -- a real table -----------------------------------------------------------------------------------


@pytest.mark.skipif(not REAL.exists(), reason="the real scores are not beside the repository")
class TestRealScores:
    options = ("--score", "rf_baseline_model_y_proba", "--label", "y_true", "--patient", "patient")
    groups = ("--group", "gender", "--group", "fitspatrick")

    def test_the_default_names_column_and_blanks(self):
        result = run(REAL, *self.options, *self.groups)
        assert result.exit_code == 2
        assert "column 'gender' is blank for 681 of 2098 images" in result.stderr
        assert "0 of 1047 positives" in result.stderr

    @pytest.mark.parametrize(("missing", "n_images"), [("drop", 1417), ("group", 2098)])
    def test_one_command_audits_both(self, missing, n_images):
        result = run(REAL, *self.options, *self.groups, "--missing", missing, "--format", "csv")
        assert result.exit_code == 0, result.stderr
        csv = pd.read_csv(StringIO(result.stdout))
        assert csv["attribute"].tolist() == ["gender", "fitspatrick"]
        assert csv["status"].tolist() == ["ok", "ok"]
        assert csv["n_images"].tolist() == [n_images] * 2
        assert csv["n_missing"].tolist() == [681] * 2
        words = " ".join(run(REAL, *self.options, *self.groups, "--missing", missing).stdout.split())
        assert ("(missing) 681 0" in words) is (missing == "group")
        assert "5 9 5 7 not estimable: fewer than 20 images (9)" in words

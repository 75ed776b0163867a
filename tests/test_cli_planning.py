"""``frame plan``: what it prints, writes, draws and answers to wrong input."""

import json
import re
import sys
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import frame
from frame.cli.application import application
from frame.cli.planned import NOTES
from frame.reference.required import required_counts

AUROC = ("--value", "0.8", "--positives", "150,100,60", "--negatives", "1500,900,300")
TPR = ("--value", "0.8", "--measure", "tpr", "--positives", "50,25")


def run(*arguments, width=140):
    return CliRunner().invoke(
        application, ["plan", *(str(a) for a in arguments)], env={"COLUMNS": str(width), "TERM": "dumb"}
    )


def table(*arguments):
    result = run(*arguments, "--format", "csv")
    assert result.exit_code == 0, result.stderr
    return pd.read_csv(StringIO(result.stdout), keep_default_na=False, na_values=[""])


def test_detectable_difference():
    detectable = frame.detectable_difference(0.8, [150, 100, 60], [1500, 900, 300])
    rows = table(*AUROC, "--groups", "White, Black, Asian")
    assert rows["counts"].tolist() == ["given"] * 3
    assert rows["group"].tolist() == ["White", "Black", "Asian"]
    assert rows["n_positive"].tolist() == [150, 100, 60]
    assert rows["n_negative"].tolist() == [1500, 900, 300]
    assert rows["detectable"].tolist() == [detectable] * 3
    assert rows["power_if_this_differs"].min() == pytest.approx(0.8, abs=1e-6)
    assert rows["difference"].isna().all()
    assert set(rows["method"]) == {"hanley-mcneil"}
    shown = run(*AUROC).stdout
    assert f"Smallest detectable difference at the given counts: {detectable:.3f}; it is found with" in shown
    assert f"power for {detectable:.3f}" in shown
    assert "subgroup 3" in shown
    assert "positives needed" not in shown
    assert "\x1b" not in shown


def test_needed_counts():
    found = required_counts(0.8, 0.1, [50, 25], None, "tpr")
    rows = table(*TPR, "--difference", "0.1")
    assert rows["counts"].tolist() == ["given", "given", "needed", "needed"]
    needed = rows[rows["counts"] == "needed"]
    assert tuple(needed["n_positive"]) == found.n_positive == (416, 208)
    assert needed["factor"].tolist() == [found.factor] * 2
    assert needed["power_if_this_differs"].min() >= 0.8
    assert rows["n_negative"].isna().all()
    shown = " ".join(run(*TPR, "--difference", "0.1").stdout.split())
    assert (
        "A difference of 0.1 needs 8.32 times the given counts, all subgroups in proportion: "
        "208 positives in subgroup 2; one case less does not suffice." in shown
    )
    assert "416" in shown
    for note in NOTES:
        assert note.split(";")[0][:60] in shown


def test_one_subgroup_grows():
    arguments = (*AUROC, "--groups", "a,b,c", "--difference", "0.12", "--grow", "c")
    rows = table(*arguments)
    found = required_counts(0.8, 0.12, [150, 100, 60], [1500, 900, 300], grow=2)
    needed = rows[rows["counts"] == "needed"]
    assert tuple(needed["n_positive"]) == found.n_positive
    assert found.n_positive[:2] == (150, 100)
    assert "only c growing" in run(*arguments).stdout


def test_what_no_count_reaches():
    arguments = (*AUROC, "--difference", "0.02", "--grow", "subgroup 3")
    needed = table(*arguments).query("counts == 'needed'")
    assert set(needed["status"]) == {"not estimable"}
    assert needed["reason"].str.startswith("no counts up to 1,000,000 cases").all()
    assert needed["n_positive"].isna().all()
    shown = run(*arguments)
    assert shown.exit_code == 0
    assert "is detectable." in shown.stdout.replace("\n", " ")
    hopeless = ("--value", "0.5", "--measure", "tpr", "--positives", "1,1")
    assert set(table(*hopeless)["reason"]) == {"no difference reaches the power at these counts"}
    assert "no difference is found with power 0.8" in run(*hopeless).stdout


@pytest.mark.parametrize(
    ("measure", "value", "computed", "mirrored", "side"),
    [
        ("fnr", 0.2, "tpr", 0.8, "--positives"),
        ("specificity", 0.9, "fpr", 0.1, "--negatives"),
    ],
)
def test_mirrored_measures_are_the_same_plan(measure, value, computed, mirrored, side):
    asked = table("--measure", measure, "--value", value, side, "80,60", "--difference", "0.15")
    same = table("--measure", computed, "--value", mirrored, side, "80,60", "--difference", "0.15")
    columns = ["n_positive", "n_negative", "detectable", "power_if_this_differs", "factor"]
    pd.testing.assert_frame_equal(asked[columns], same[columns])
    assert set(asked["value"]) == {value}
    assert set(asked["measure"]) == {measure}


def test_design_effects():
    by_number = table(*AUROC, "--design-effect", "1.7")
    by_images = table(*AUROC, "--images-per-patient", "2.4", "--patient-correlation", "0.5")
    expected = frame.detectable_difference(0.8, [150, 100, 60], [1500, 900, 300], design_effect=1.7)
    assert by_number["detectable"].tolist() == [expected] * 3
    assert by_images["detectable"].tolist() == pytest.approx([expected] * 3)
    assert "design effect 1.7" in run(*AUROC, "--design-effect", "1.7").stdout


def test_settings_reach_the_computation():
    options = {"power": 0.9, "alpha": 0.01, "method": "binormal", "kappa": 1.5}
    rows = table(*AUROC, *(x for name, v in options.items() for x in (f"--{name}", v)))
    expected = frame.detectable_difference(0.8, [150, 100, 60], [1500, 900, 300], **options)
    assert rows["detectable"].tolist() == [expected] * 3
    for name, v in options.items():
        assert set(rows[name]) == {v}


def test_formats():
    rows = table(*TPR, "--difference", "0.2")
    parsed = json.loads(run(*TPR, "--difference", "0.2", "--format", "json").stdout)
    assert [row["detectable"] for row in parsed] == rows["detectable"].tolist()
    assert list(parsed[0]) == list(rows.columns)
    assert parsed[0]["n_negative"] is None
    markdown = run(*TPR, "--difference", "0.2", "--groups", "a|b,c", "--format", "markdown").stdout
    assert "| a\\|b | 50 |" in markdown
    assert "**A difference of 0.2 needs" in markdown


@pytest.mark.parametrize("ending", ["csv", "json", "md", "txt"])
def test_out_writes_what_the_ending_says(tmp_path, ending):
    out = tmp_path / f"plan.{ending}"
    result = run(*TPR, "--out", out)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "Written to" in result.stderr
    starts = {"csv": "counts,group", "json": "[\n", "md": "TPR 0.8 in", "txt": "TPR 0.8 in"}
    assert out.read_text(encoding="utf-8").startswith(starts[ending])
    assert [p.name for p in tmp_path.iterdir()] == [out.name]


@pytest.mark.parametrize(("ending", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_plot(tmp_path, ending, start):
    plot = tmp_path / f"plan.{ending}"
    result = run(*TPR, "--difference", "0.2", "--plot", plot)
    assert result.exit_code == 0
    assert "Smallest detectable difference" in result.stdout
    drawn = plot.read_bytes()
    assert drawn.startswith(start)
    run(*TPR, "--difference", "0.2", "--plot", plot)
    assert plot.read_bytes() == drawn  # no date, no random name


WRONG = [
    ((), "Missing option '--value'"),
    (("--value", "0.8"), "--positives is missing; AUROC needs one count per subgroup."),
    (("--value", "0.8", "--positives", "5,6"), "--negatives is missing"),
    ((*TPR, "--negatives", "5,6"), "--negatives was given, but TPR does not use it"),
    (("--value", "80", "--measure", "tpr", "--positives", "5,6"), "divide it by 100: 0.8"),
    (
        ("--value", "0.8", "--measure", "tpr", "--positives", "5,x"),
        "--positives holds 'x'; give whole numbers",
    ),
    (("--value", "0.8", "--measure", "tpr", "--positives", "5,"), "--positives holds ''"),
    (("--value", "0.8", "--measure", "tpr", "--positives", "5,-6"), "--positives holds '-6'"),
    (("--value", "0.8", "--measure", "tpr", "--positives", "5,0"), "--positives, number 2, is 0"),
    (("--value", "0.8", "--measure", "tpr", "--positives", "5"), "a difference needs at least two"),
    (("--value", "0.8", "--positives", "5,6", "--negatives", "5,6,7"), "give one count of each per subgroup"),
    ((*TPR, "--groups", "a"), "--groups names 1 subgroups, but there are counts of 2."),
    ((*TPR, "--groups", "a,a"), "give each subgroup a name of its own"),
    ((*TPR, "--difference", "0.1", "--grow", "b"), "--grow is 'b'; give 'all' or one of 'subgroup 1'"),
    ((*TPR, "--grow", "subgroup 1"), "--grow was given without --difference"),
    ((*TPR, "--difference", "0.9"), "--difference is 0.9, but from a common value of 0.8"),
    ((*TPR, "--difference", "0"), "--difference is 0; it must be between 0 and 1"),
    ((*TPR, "--power", "1"), "--power is 1"),
    ((*TPR, "--alpha", "nan"), "--alpha is nan"),
    ((*TPR, "--method", "binormal"), "method 'binormal' does not fit measure 'tpr'"),
    ((*AUROC, "--method", "binomial"), "method 'binomial' does not fit measure 'auroc'"),
    ((*AUROC, "--kappa", "1.5"), "--kappa belongs to --method binormal; the method is 'auto'."),
    ((*TPR, "--design-effect", "0.5"), "--design-effect is 0.5"),
    ((*TPR, "--images-per-patient", "2"), "--patient-correlation is missing"),
    ((*TPR, "--patient-correlation", "0.2"), "--images-per-patient is missing"),
    (
        (*TPR, "--design-effect", "2", "--images-per-patient", "2", "--patient-correlation", "0.2"),
        "give one or the other",
    ),
    ((*TPR, "--plot", "plan.gif"), "--plot is 'plan.gif'; end it with .svg, .png, .pdf."),
    ((*TPR, "--plot", "no_such_folder/plan.svg"), "its folder does not exist"),
    ((*TPR, "--out", "plan.xyz"), "whose ending says no format"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_wrong_input_is_one_sentence_and_exit_code_2(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments) if arguments else run("--measure", "tpr")
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_plot_leaves_the_result_unwritten(tmp_path):
    out = tmp_path / "plan.csv"
    assert run(*TPR, "--out", out, "--plot", tmp_path / "plan.gif").exit_code == 2
    assert (
        run(
            *TPR, "--out", tmp_path / "plan.svg", "--format", "csv", "--plot", tmp_path / "plan.svg"
        ).exit_code
        == 2
    )
    assert list(tmp_path.iterdir()) == []


def test_plot_without_matplotlib_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run(*TPR, "--plot", tmp_path / "plan.svg")
    assert result.exit_code == 2
    assert "pip install 'frame-audit[plots]'" in result.stderr
    assert run(*TPR).exit_code == 0  # the plan itself needs none


@given(
    st.lists(st.text(max_size=6) | st.integers(-3, 10**13).map(str), max_size=4).map(",".join),
    st.floats(-1, 2) | st.sampled_from([0.0, 1.0]),
    st.sampled_from(["tpr", "fnr", "fpr", "auroc"]),
    st.text(max_size=12),
)
@settings(derandomize=True, deadline=None, max_examples=80)
def test_no_traceback_reaches_a_user(counts, value, measure, groups):
    side = "--negatives" if measure == "fpr" else "--positives"
    result = run(f"--value={value}", "--measure", measure, f"{side}={counts}", f"--groups={groups}")
    assert result.exit_code in (0, 2)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.exit_code == 0 or result.stderr.count("\n") >= 1


def test_help_names_every_option():
    shown = run("--help", width=200).stdout
    for option in ("--value", "--grow", "--difference", "--design-effect", "--patient-correlation", "--plot"):
        assert option in shown


# ---- the page of the book

PAGE = (Path(__file__).parents[1] / "book" / "planning.md").read_text(encoding="utf-8")


def test_the_page_shows_what_the_command_prints():
    (block,) = re.findall(
        r"^```console\n\$ frame (plan .*?)\n(.*?)…\n```", PAGE, flags=re.MULTILINE | re.DOTALL
    )
    command, shown = block
    result = CliRunner().invoke(application, command.split())
    assert result.exit_code == 0
    assert " ".join(result.stdout.split()).startswith(" ".join(shown.split()))
    assert "negatives needed" in shown


def test_the_page_names_every_option_and_no_other():
    told = set(re.findall(r"--[a-z][a-z-]+", PAGE))
    offered = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", run("--help", width=200).stdout))
    assert told == offered - {"--help"}


def test_the_examples_of_the_page_run(capsys):
    (block,) = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    exec(compile(block, "planning.md", "exec"), {})
    assert "not estimable" in capsys.readouterr().out


def test_what_the_page_says_about_its_inputs():
    plan = {"n_positive": [150, 100], "n_negative": [1500, 900]}
    assert frame.detectable_difference(0.95, **plan) < frame.detectable_difference(0.8, **plan)
    with_small = frame.detectable_difference(0.8, [150, 100, 20], [1500, 900, 200])
    assert with_small > frame.detectable_difference(0.8, **plan)

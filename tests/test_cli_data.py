"""The verbs of the data and of the study on the command line."""

import json
import re
import sys
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent / "cohorts"))
from raw_nih import write_profile, write_release

from frame.cli.application import application
from frame.experiments.contract import TIDY_COLUMNS

RUNNER = CliRunner()


def run(*arguments):
    return RUNNER.invoke(application, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A built cohort of a small release; the options that name it."""
    folder = tmp_path_factory.mktemp("study")
    write_release(folder / "raw", patients=40)
    profile = write_profile(folder / "small.yml", folder / "raw")
    options = ("--profile", profile, "--workspace", folder / "workspace")
    built = run("data", "build", *options)
    assert built.exit_code == 0, built.stderr
    return folder, options, built


# ---- check


def test_check_of_packaged_tables_needs_nothing(tmp_path):
    found = run("data", "check", "--profile", "tables", "--workspace", tmp_path)
    assert found.exit_code == 0
    assert "Everything that is needed is there. Next: frame data build --profile tables" in found.stdout


def test_check_of_the_demo_asks_for_nothing_to_be_fetched(tmp_path):
    found = run("data", "check", "--workspace", tmp_path)
    assert found.exit_code == 0
    assert "MISSING" not in found.stdout
    assert "10 of 10 sources are not drawn yet" in found.stdout
    assert "Next: frame data build --profile demo" in found.stdout


def test_check_says_what_is_missing_and_what_to_do(tmp_path, monkeypatch):
    monkeypatch.delenv("FRAME_NIH_CXR14", raising=False)
    found = run("data", "check", "--profile", "open", "--workspace", tmp_path)
    assert found.exit_code == 1
    assert "MISSING    Data_Entry_2017_v2020.csv" in found.stdout
    assert "https://nihcc.app.box.com" in found.stdout
    assert "export FRAME_NIH_CXR14=/folder/of/the/release" in found.stdout
    monkeypatch.setenv("FRAME_NIH_CXR14", str(tmp_path / "elsewhere"))
    found = run("data", "check", "--profile", "open", "--workspace", tmp_path)
    assert found.exit_code == 1
    assert "root is $FRAME_NIH_CXR14, and there is no such folder" in found.stdout
    assert str(tmp_path) not in found.stdout
    write_release(tmp_path / "raw", patients=8)
    monkeypatch.setenv("FRAME_NIH_CXR14", str(tmp_path / "raw"))
    found = run("data", "check", "--profile", "open", "--workspace", tmp_path)
    assert (found.exit_code, "MISSING" in found.stdout) == (0, False)


def test_check_covers_all_ten_sources(tmp_path, monkeypatch):
    for name in ("MIMIC_CXR", "MIMIC_IV", "CHEXPERT", "DDI", "ISIC_2019", "FAIRVISION"):
        monkeypatch.delenv(f"FRAME_{name}", raising=False)
    found = run("data", "check", "--profile", "paper", "--workspace", tmp_path, "--format", "json")
    assert found.exit_code == 1
    rows = pd.DataFrame(json.loads(found.stdout))
    assert rows["source"].nunique() == 10
    assert set(rows["status"]) == {"missing", "not there"}
    assert set(rows.loc[rows["needed"] == "optional", "status"]) == {"not there"}


@pytest.mark.parametrize("form", ["csv", "json", "markdown"])
def test_check_in_other_formats(form, tmp_path):
    found = run("data", "check", "--workspace", tmp_path, "--format", form)
    assert found.exit_code == 0
    assert "Data_Entry_2017_v2020.csv" in found.stdout


# ---- build


def test_build_says_what_became_of_every_image(study):
    _, _, built = study
    assert "NIH ChestX-ray14: 120 images of 40 subjects (train 81, validation 9, test 30)" in built.stdout
    assert "images ready: 120" in built.stdout
    assert "3 of 3 artefacts were made" in built.stdout
    assert "0000000" not in built.stdout + built.stderr


def test_build_of_tables_only(study, tmp_path):
    folder, _, _ = study
    found = run(
        "data", "build", "--tables-only", "--profile", folder / "small.yml", "--workspace", tmp_path / "other"
    )
    assert found.exit_code == 0
    assert not (tmp_path / "other" / "images").exists()


def test_identical_files_in_two_splits_stop_the_build(study, tmp_path):
    write_release(tmp_path / "raw", patients=8)
    images = tmp_path / "raw" / "images"
    (images / "00000004_000.png").write_bytes((images / "00000001_000.png").read_bytes())
    profile = write_profile(tmp_path / "small.yml", tmp_path / "raw")
    options = ("--profile", profile, "--workspace", tmp_path / "workspace")
    found = run("data", "build", *options)
    assert found.exit_code == 2
    assert "1 file stands under 2 image ids in more than one split: test and train (1)" in found.stderr
    assert "00000004" not in found.stderr
    profile.write_text(profile.read_text() + "identical_files: count\n")
    assert run("data", "build", *options).exit_code == 0
    counted = pd.read_csv(tmp_path / "workspace" / "results" / "identical_files" / "chest.csv")
    assert counted.set_index("what").loc["stand in two splits", "n_files"] == 1


# ---- counts


def counts(study, *arguments):
    found = run("data", "counts", *study[1], *arguments)
    assert found.exit_code == 0, found.stderr
    return found.stdout


def test_counts_by_split(study):
    rows = pd.DataFrame(json.loads(counts(study, "--format", "json")))
    assert rows.to_dict("records") == [
        {"site": "nih_cxr14", "train": 81, "validation": 9, "test": 30, "all": 120}
    ]
    assert re.search(r"nih_cxr14\s+81\s+9\s+30\s+120", counts(study))
    assert re.search(r"nih_cxr14\s+27\s+3\s+10\s+40", counts(study, "--unit", "subjects"))


def test_counts_of_subgroups_and_findings(study):
    text = counts(study, "--by", "sex", "--finding", "pleural_effusion")
    assert re.search(r"pleural_effusion\s+sex\s+female\s+\d+ of \d+", text)
    assert "not labelled" in counts(study, "--finding", "fracture")
    rows = pd.DataFrame(json.loads(counts(study, "--finding", "all", "--policies", "--format", "json")))
    assert len(rows) == 13 * 6 * 2


def test_counts_of_what_is_missing(study):
    text = counts(study, "--missing")
    assert "race_recorded" in text
    assert "nih_cxr14: recorded for every image: sex, age_band, view." in text


def test_counts_of_recorded_texts(study):
    assert re.search(r"sex\s+F\s+female\s+60", counts(study, "--recorded", "sex"))


def test_counts_into_a_file(study, tmp_path):
    target = tmp_path / "counts.csv"
    assert counts(study, "--by", "all", "--out", target) == ""
    assert set(pd.read_csv(target)["attribute"]) >= {"sex", "age", "race", "view"}


def test_small_counts_are_hidden(study, tmp_path):
    folder, _, _ = study
    profile = folder / "hidden.yml"
    profile.write_text((folder / "small.yml").read_text().replace("smallest_cell: 1", "smallest_cell: 10"))
    found = run("data", "counts", "--profile", profile, "--workspace", folder / "workspace", "--by", "sex")
    assert "–" in found.stdout
    assert "A dash is a count that is hidden" in found.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("data", "counts", "--by", "colour"),
            "--by is 'colour'; the attributes of these sources are sex, age",
        ),
        (
            ("data", "counts", "--finding", "edma"),
            "--finding is 'edma'; the findings of these sources are atelectasis",
        ),
        (("data", "counts", "--recorded", "x"), "--recorded is 'x'; the fields of these sources are"),
        (("data", "counts", "--out", "x.exe"), "--out is 'x.exe', whose ending says no format"),
        (("data", "counts", "ddi"), "Profile small has no source 'ddi'; its sources are nih_cxr14."),
        (("data", "build", "dii"), "Profile small has no source 'dii'"),
        (("data", "check", "dii"), "Profile small has no source 'dii'"),
        (("run", "other"), "There is no experiment 'other'; the experiments are cohort_counts"),
        (
            ("run", "cohort_counts", "--unit", "x"),
            "Experiment cohort_counts has no unit 'x'; its units are nih_cxr14.",
        ),
        (("run", "--unit", "nih_cxr14"), "--unit was given without an experiment"),
        (("notebook", "figure_99"), "figure_99"),
        (("notebook", "figure_9", "-p", "alpha"), "-p is 'alpha'; write it as key=value"),
        (("notebook", "figure_9", "-p", "a=1", "-p", "a=2"), "-p a is given twice"),
    ],
)
def test_what_is_wrong_is_one_sentence(study, arguments, sentence):
    found = run(*arguments, *study[1])
    assert found.exit_code == 2
    assert found.stderr.splitlines()[-1].startswith("frame: ")
    assert sentence in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize("arguments", [("data", "counts"), ("data", "build"), ("run", "--list"), ("doctor",)])
def test_an_unknown_profile(arguments):
    found = run(*arguments, "--profile", "dmo")
    assert found.exit_code == 2
    assert (
        "There is no profile 'dmo'; give one of demo, open, paper, tables or the path of a .yml file."
        in found.stderr
    )


# ---- run, doctor


def test_run_of_an_experiment(study):
    folder, options, _ = study
    found = run("run", "cohort_counts", *options)
    assert found.exit_code == 0, found.stderr
    assert list(pd.read_csv(folder / "workspace" / "results" / "cohort_counts.csv").columns) == list(
        TIDY_COLUMNS
    )
    again = run("run", "cohort_counts", *options)
    assert "Everything is fresh; nothing was run." in again.stdout


def test_list_of_the_experiments(study):
    found = run("run", "--list", *study[1])
    assert "cohort_counts: images and subjects" in found.stdout
    assert "1 unit: nih_cxr14" in found.stdout


def test_doctor_says_what_can_be_run(study):
    found = run("doctor", *study[1])
    assert found.exit_code == 0
    assert "[study]" in found.stdout
    assert "NIH ChestX-ray14 (nih_cxr14): found" in found.stdout
    assert re.search(r"tables\s+NIH ChestX-ray14 as a table, without images: all sources found", found.stdout)


def test_no_identifier_in_any_output(study):
    folder, options, _ = study
    said = [run("data", verb, *options).stdout for verb in ("check", "build", "counts")]
    said += [run("data", "counts", *options, "--recorded", "all").stdout, run("doctor", *options).stdout]
    exported = (folder / "workspace" / "results" / "cohort_counts.csv").read_text()
    assert "0000000" not in "".join(said) + exported


def test_one_source_can_be_built_without_the_others(study, tmp_path, monkeypatch):
    """A profile of several sources does not stop at the one that a user does not hold."""
    folder, _, _ = study
    monkeypatch.delenv("FRAME_NOT_HERE", raising=False)
    text = (folder / "small.yml").read_text().replace("labels:", "  ddi:\n    root: $FRAME_NOT_HERE\nlabels:")
    profile = tmp_path / "two.yml"
    profile.write_text(text)
    options = ("--profile", profile, "--workspace", tmp_path / "workspace")
    assert run("data", "build", "nih_cxr14", *options).exit_code == 0
    assert "nih_cxr14" in run("data", "counts", "nih_cxr14", *options).stdout
    refused = run("data", "build", *options)
    assert refused.exit_code == 2
    assert "source ddi: its root is $FRAME_NOT_HERE" in refused.stderr


# ---- odd input


@pytest.mark.parametrize(
    ("out", "sentence"),
    [
        ("raw/Data_Entry_2017_v2020.csv", "a file in the folder of the release of nih_cxr14"),
        ("workspace/manifests/nih_cxr14.tally.csv", "a file in the folder of the workspace"),
        ("small.yml", "the profile itself"),
    ],
)
def test_a_table_of_counts_replaces_nothing_that_is_read(study, out, sentence):
    folder, options, _ = study
    before = (folder / out).read_bytes()
    found = run("data", "counts", *options, "--format", "csv", "--out", folder / out)
    assert (found.exit_code, sentence in found.stderr) == (2, True)
    assert (folder / out).read_bytes() == before


@pytest.mark.parametrize(
    ("out", "sentence"),
    [
        (".", "a file that ends in .ipynb"),
        ("no/x.ipynb", "its folder does not exist"),
        ("folder.ipynb", "names a folder"),
        ("notebooks/figure_8.ipynb", "among the notebooks of the book"),
        ("notebooks/figure_9.ipynb", "the notebook itself"),
    ],
)
def test_an_executed_notebook_replaces_no_notebook(study, tmp_path, out, sentence):
    root = Path(__file__).resolve().parents[1]
    (tmp_path / "folder.ipynb").mkdir()
    place = (root if out.startswith("notebooks/") else tmp_path) / out
    found = run("notebook", "figure_9", *study[1], "-p", "alpha=0.01", "--out", place)
    assert (found.exit_code, sentence in found.stderr) == (2, True)


def test_an_empty_workspace_is_not_the_current_folder(study, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = run("data", "build", "--workspace", "")
    assert found.exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_images_that_are_damaged_in_the_workspace_are_made_again(study, tmp_path):
    folder, _, _ = study
    options = ("--profile", folder / "small.yml", "--workspace", tmp_path / "workspace")
    assert run("data", "build", *options).exit_code == 0
    images = tmp_path / "workspace" / "images" / "nih_cxr14"
    pixels = (images / "shard-00000.npy").read_bytes()
    (images / "shard-00000.npy").unlink()
    assert "1 of 3 artefacts were made" in run("data", "build", *options).stdout
    assert (images / "shard-00000.npy").read_bytes() == pixels
    table = (images / "shard-00000.parquet").read_bytes()
    (images / "shard-00000.parquet").write_bytes(table[:40] + bytes(40) + table[80:])
    (images / "index.parquet").write_bytes(b"")
    assert "1 of 3 artefacts were made" in run("data", "build", *options).stdout
    assert (images / "shard-00000.parquet").read_bytes() == table


def test_a_workspace_in_the_folder_of_the_release_stays_fresh(tmp_path):
    write_release(tmp_path / "raw", patients=8)
    profile = write_profile(tmp_path / "small.yml", tmp_path / "raw")
    options = ("--profile", profile, "--workspace", tmp_path / "raw" / "workspace")
    assert run("data", "build", *options).exit_code == 0
    assert "0 of 3 artefacts were made" in run("data", "build", *options).stdout
    (tmp_path / "raw" / "images" / "00000001_000.png").unlink()
    assert "left out: 1 (no image file)" in run("data", "build", *options).stdout


def test_a_release_of_error_pages_is_refused(tmp_path):
    write_release(tmp_path / "raw", patients=8)
    for image in (tmp_path / "raw" / "images").iterdir():
        image.write_text("<html>403</html>")
    profile = write_profile(tmp_path / "small.yml", tmp_path / "raw")
    found = run("data", "build", "--profile", profile, "--workspace", tmp_path / "workspace")
    assert found.exit_code == 2
    assert "none of its 24 images can be read (24: the file is neither PNG, JPEG" in found.stderr


def test_small_counts_cannot_be_had_from_another_table(study, tmp_path):
    """3 images without a sex: from the recorded texts, the missing ones, or the line that `build` prints."""
    write_release(tmp_path / "raw", patients=40, images=False)
    table = tmp_path / "raw" / "Data_Entry_2017_v2020.csv"
    lines = table.read_text().splitlines()
    lines[1:4] = [re.sub(",[FM],", ",,", line) for line in lines[1:4]]
    table.write_text("\n".join(lines) + "\n")
    profile = write_profile(tmp_path / "small.yml", tmp_path / "raw", images="false")
    profile.write_text(profile.read_text().replace("smallest_cell: 1", "smallest_cell: 10"))
    options = ("--profile", profile, "--workspace", tmp_path / "workspace")
    built = run("data", "build", *options).stdout
    assert "120 images of 40 subjects (a split has fewer than 10, so that none is shown)" in built
    recorded = json.loads(run("data", "counts", *options, "--recorded", "sex", "--format", "json").stdout)
    assert sorted(row["n_images"] is None for row in recorded) == [False, True, True]
    splits = run("data", "counts", *options, "--recorded", "released_split", "--format", "json").stdout
    assert all(row["n_images"] is None for row in json.loads(splits))
    missing = json.loads(run("data", "counts", *options, "--missing", "--format", "json").stdout)
    assert {row["n_missing"] for row in missing if row["attribute"] == "sex"} <= {None, 0}
    assert all(
        row["n_missing"] is None for row in missing if (row["attribute"], row["label"]) == ("sex", "all")
    )
    both = run("data", "counts", *options, "--missing", "--recorded", "sex")
    assert (both.exit_code, "ask for one of them at a time" in both.stderr) == (2, True)


def test_a_progress_that_nobody_reads_does_not_end_the_work(study, tmp_path, monkeypatch):
    from frame.cli import study_run

    class Gone:
        def write(self, text):
            raise BrokenPipeError

        def flush(self):
            raise BrokenPipeError

    monkeypatch.setattr(study_run.sys, "stderr", Gone())
    study_run.say("manifest:nih_cxr14")


def test_doctor_reports_a_root_that_cannot_be_looked_at(study, monkeypatch, tmp_path):
    monkeypatch.setenv("FRAME_NIH_CXR14", "relative/folder")
    found = run("doctor", *study[1])
    assert found.exit_code == 0
    assert "0 of 1 sources found" in found.stdout

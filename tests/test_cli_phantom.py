"""``frame data phantom`` and the verbs that read what it draws: every count is labelled."""

import csv
import io
import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from frame.cli.application import application
from frame.cohorts.phantom.truth import NOTE

RUNNER = CliRunner()
PROFILE = """\
name: drawn
title: A small phantom world
sources:
  nih_cxr14:
    root: workspace:raw/nih_cxr14
  ddi:
    root: workspace:raw/ddi
labels: {uncertain: negative, blank: missing}
sizes: {image: 32, smallest_cell: 1}
phantom:
  chest: {nih_cxr14: {train: 20, validation: 2, test: 8}}
  skin: {ddi: {train: 12, validation: 2, test: 6}}
"""


def run(*arguments):
    return RUNNER.invoke(application, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """A small world, and the options that name it."""
    folder = tmp_path_factory.mktemp("phantom")
    (folder / "drawn.yml").write_text(PROFILE, encoding="utf-8")
    options = ("--profile", folder / "drawn.yml", "--workspace", folder / "workspace")
    before = run("data", "check", *options)
    return options, before, run("data", "phantom", "--workers", 1, *options)


def test_before_it_is_drawn_the_check_says_how(drawn):
    _, before, _ = drawn
    assert before.exit_code == 0
    assert "not drawn  ddi_metadata.csv" in before.stdout
    assert "MISSING" not in before.stdout
    assert "Nothing has to be fetched. 2 of 2 sources are not drawn yet;" in before.stdout
    assert "Get it from" not in before.stdout
    assert NOTE in before.stdout


def test_it_says_what_was_drawn_and_what_is_planted(drawn):
    _, _, made = drawn
    assert made.exit_code == 0, made.stderr
    assert made.stdout.startswith(NOTE)
    assert "(nih_cxr14): 30 drawn images of" in made.stdout
    assert "(ddi): 20 drawn images of 20 invented lesions" in made.stdout
    assert "Planted in this phantom world:\n- These images are drawings by a program" in made.stdout
    assert "2 of 2 sources were drawn" in made.stdout
    assert made.stderr.splitlines() == ["phantom:nih_cxr14 ...", "phantom:ddi ..."]


def test_a_second_call_draws_nothing(drawn):
    options, _, _ = drawn
    again = run("data", "phantom", *options)
    assert again.exit_code == 0
    assert "0 of 2 sources were drawn, the others were fresh" in again.stdout
    assert again.stderr == ""


def test_then_everything_is_there_and_can_be_built_and_counted(drawn):
    options, _, _ = drawn
    check = run("data", "check", *options)
    assert check.exit_code == 0
    assert "Everything that is needed is there." in check.stdout
    built = run("data", "build", *options)
    assert built.exit_code == 0, built.stderr
    assert NOTE in built.stdout
    assert "NIH ChestX-ray14 (phantom): 30 images of" in built.stdout
    assert "images ready: 20" in built.stdout
    counts = run("data", "counts", *options, "--by", "sex")
    assert counts.exit_code == 0
    assert counts.stdout.endswith(f"{NOTE}\n")


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_table_for_programs_says_it_in_each_row(drawn, form):
    options, _, _ = drawn
    found = run("data", "counts", *options, "--format", form)
    rows = json.loads(found.stdout) if form == "json" else list(csv.DictReader(io.StringIO(found.stdout)))
    assert {row["site"] for row in rows} == {"nih_cxr14", "ddi"}
    assert {row["data"] for row in rows} == {NOTE}


def test_the_file_of_results_says_it_in_each_row(drawn):
    options, _, _ = drawn
    assert run("run", "cohort_counts", *options).exit_code == 0
    written = (Path(options[3]) / "results" / "cohort_counts.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(written)))
    assert len(rows) > 100
    assert {row["data"] for row in rows} == {NOTE}


def test_a_file_of_counts_says_it_too(drawn, tmp_path):
    options, _, _ = drawn
    assert run("data", "counts", *options, "--out", tmp_path / "counts.md").exit_code == 0
    assert NOTE in (tmp_path / "counts.md").read_text(encoding="utf-8")


def test_counts_draw_what_is_not_there_yet(drawn, tmp_path):
    profile = drawn[0][1]
    found = run("data", "counts", "ddi", "--profile", profile, "--workspace", tmp_path, "--format", "csv")
    assert found.exit_code == 0, found.stderr
    assert "phantom:ddi ..." in found.stderr
    assert "phantom:nih_cxr14" not in found.stderr


def test_doctor_does_not_ask_for_a_download(drawn):
    options, _, _ = drawn
    found = run("doctor", *options)
    assert "A small phantom world: nothing to find, its sources are drawn" in found.stdout
    assert "(ddi): drawn" in found.stdout


def test_a_profile_of_released_images_is_refused(tmp_path):
    found = run("data", "phantom", "--profile", "open", "--workspace", tmp_path)
    assert found.exit_code == 2
    assert "Profile open draws no images; give one with the key phantom" in found.stderr
    assert run("data", "phantom", "--workers", 0).exit_code == 2


def test_what_is_true_is_no_part_of_a_manifest(drawn):
    options, _, _ = drawn
    run("data", "build", *options, "--tables-only")
    manifest = pd.read_parquet(options[3] / "manifests" / "nih_cxr14.parquet")
    assert [column for column in manifest if "true" in column or "severity" in column] == []

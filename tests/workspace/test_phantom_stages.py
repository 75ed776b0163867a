"""Drawn sources as stages: named before they are there, made once, and again when a raw file is damaged."""

from __future__ import annotations

import json

import pytest

from frame.cohorts.phantom.world import STAMP
from frame.errors import InputError
from frame.workspace.graph import make_with_inputs, stages, stale_stages
from frame.workspace.layout import open_workspace
from frame.workspace.phantom_stages import draw_phantoms, phantom_stages, raw_list, truth_table
from frame.workspace.profiles import load_profile
from frame.workspace.stages import make, staleness

PROFILE = """\
name: drawn
sources:
  chexpert:
    root: workspace:raw/chexpert
    linked_root: workspace:raw/chexpert/chexpert-plus
    reports: true
  ddi:
    root: workspace:raw/ddi
labels: {uncertain: negative, blank: missing}
sizes: {image: 32, smallest_cell: 1}
phantom:
  seed: 4
  chest: {chexpert: {train: 20, validation: 2, test: 8}}
  skin: {ddi: {train: 12, validation: 2, test: 6}}
  fundus: {}
"""


@pytest.fixture
def profile(tmp_path):
    def written(text=PROFILE):
        file = tmp_path / "drawn.yml"
        file.write_text(text, encoding="utf-8")
        return load_profile(file)

    return written


@pytest.fixture
def workspace(profile, tmp_path):
    return open_workspace(profile(), tmp_path / "workspace")


def bytes_below(folder):
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(".json.json")]
    return {path.relative_to(folder): path.read_bytes() for path in files}


def test_stages_are_named_before_anything_is_drawn(workspace):
    found = stages(workspace)
    assert {name for name in found if name.endswith(":ddi")} >= {"phantom:ddi", "manifest:ddi", "images:ddi"}
    assert found["manifest:ddi"].inputs == (raw_list("ddi"),)
    assert raw_list("chexpert") in found["images:chexpert"].inputs
    assert raw_list("chexpert") in found["reports:chexpert"].inputs
    assert not workspace.root.exists()


def test_no_stage_reads_what_is_true(workspace):
    found = stages(workspace)
    for stage in found.values():
        assert not any(artefact.startswith("raw/truth") for artefact in stage.inputs), stage.name
    assert truth_table("ddi") in found["phantom:ddi"].outputs


def test_a_profile_of_released_images_draws_nothing(tmp_path):
    other = open_workspace(load_profile("tables"), tmp_path / "tables")
    assert phantom_stages(other) == []
    assert draw_phantoms(other, 2) == []
    assert not [name for name in stages(other) if name.startswith("phantom:")]


def test_everything_is_made_once_and_read_back(workspace):
    wanted = [name for name in stages(workspace) if name.split(":")[0] in ("images", "reports", "check")]
    ran = make_with_inputs(workspace, [*wanted, "results:cohort_counts:ddi"])
    assert ran[:2] == ["phantom:chexpert", "phantom:ddi"]
    listed = json.loads(workspace.path(raw_list("ddi")).read_text())
    raw = workspace.path("raw/ddi")
    files = [path for path in raw.rglob("*") if path.is_file() and path.name != STAMP]
    assert listed["n_files"] == len(files) == 21
    assert listed["n_bytes"] == sum(path.stat().st_size for path in files)
    assert make_with_inputs(workspace, wanted) == []
    assert not any(name.startswith(("phantom", "manifest", "images")) for name in stale_stages(workspace))


def test_a_damaged_raw_file_is_drawn_again(workspace):
    (stage,) = [one for one in phantom_stages(workspace) if one.name == "phantom:ddi"]
    make(workspace, stage)
    whole = bytes_below(workspace.path("raw"))
    image = next(workspace.path("raw/ddi").rglob("*.png"))
    image.write_bytes(image.read_bytes()[:-1] + b"x")
    assert staleness(workspace, stage) == ("output raw/ddi is not what was written",)
    assert make(workspace, stage) is True
    assert bytes_below(workspace.path("raw")) == whole
    assert staleness(workspace, stage) == ()
    image.unlink()
    assert staleness(workspace, stage) == ("output raw/ddi is not what was written",)
    make(workspace, stage)
    workspace.path(truth_table("ddi")).write_bytes(b"")
    assert staleness(workspace, stage) == (f"output {truth_table('ddi')} is not the file that was written",)
    make(workspace, stage)
    assert bytes_below(workspace.path("raw")) == whole


def test_workers_change_no_byte_and_a_second_run_draws_nothing(workspace, profile, tmp_path):
    said = []
    assert draw_phantoms(workspace, 2, said.append) == ["phantom:chexpert", "phantom:ddi"] == said
    assert draw_phantoms(workspace, 2) == []
    alone = open_workspace(profile(), tmp_path / "alone")
    draw_phantoms(alone, 1)
    assert bytes_below(workspace.path("raw")).keys() == bytes_below(alone.path("raw")).keys()
    for source in ("chexpert", "ddi"):
        assert workspace.path(raw_list(source)).read_bytes() == alone.path(raw_list(source)).read_bytes()


def test_another_truth_makes_what_follows_stale(workspace, profile, tmp_path):
    make_with_inputs(workspace, ["manifest:ddi"])
    other = open_workspace(profile(PROFILE.replace("seed: 4", "seed: 5")), workspace.root)
    found = stale_stages(other)
    assert found["phantom:ddi"] == ("setting phantom changed",)
    assert found["manifest:ddi"] == ("raw/ddi.files.json is made again",)
    assert make_with_inputs(other, ["manifest:ddi"]) == ["phantom:ddi", "manifest:ddi"]


def test_a_change_of_code_that_draws_the_same_stops_there(workspace):
    (stage,) = [one for one in phantom_stages(workspace) if one.name == "phantom:ddi"]
    make_with_inputs(workspace, ["manifest:ddi"])
    stamp = workspace.path("raw/ddi") / STAMP
    stamp.write_text("as another version of the code would write it")
    assert staleness(workspace, stage) == ()
    assert make(workspace, stage, force=True) is True
    assert staleness(workspace, stages(workspace)["manifest:ddi"]) == ()


def test_no_workers_is_a_sentence(workspace):
    with pytest.raises(InputError, match="workers is 0; it must be 1 or more"):
        draw_phantoms(workspace, 0)

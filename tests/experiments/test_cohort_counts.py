"""Counts of a cohort, against counting row by row."""

import numpy as np
import pandas as pd
import pytest

from frame.cohorts.harmonise import age_band
from frame.cohorts.labels import LabelPolicy, resolve_labels
from frame.cohorts.schema import FINDINGS, LEVELS, check_manifest, manifest_columns, write_manifest
from frame.errors import InputError
from frame.experiments.cohort_counts import COLUMNS, NOT_RECORDED, policy_name, run_unit, units
from frame.workspace.layout import Workspace
from frame.workspace.profiles import load_profile


@pytest.fixture(scope="module")
def manifest():
    """300 images of 120 subjects with every kind of level, code and gap."""
    random = np.random.default_rng(5)
    n = 300
    subject = random.integers(0, 120, n)
    table = pd.DataFrame(index=range(n), columns=list(manifest_columns("chest")), dtype=object)
    table["image_id"] = [f"nih_cxr14:{i:04d}" for i in range(n)]
    table["subject_id"] = table["patient_id"] = [f"nih_cxr14:{i}" for i in subject]
    table["site"], table["modality"], table["subject_kind"] = "nih_cxr14", "chest", "patient"
    table["split"] = np.array(["train", "validation", "test"])[subject % 3]
    table["age"] = np.where(random.random(n) < 0.1, np.nan, random.uniform(20, 95, n))
    table["age_band"] = age_band(table["age"])
    for column in ("sex", "race_recorded", "insurance_recorded"):
        table[column] = random.choice([*LEVELS[column], None], n)
    table["race"] = table["race_recorded"].fillna("Other")
    table["insurance"] = table["insurance_recorded"].fillna("Other")
    table["view"] = random.choice(["AP", "PA", "unknown"], n)
    for finding in FINDINGS["chest"]:
        table[finding] = random.choice([1, 0, -1, -2, None], n)
    table["fracture"] = None
    return check_manifest(table)


@pytest.fixture(scope="module")
def rows(manifest, tmp_path_factory):
    workspace = Workspace(tmp_path_factory.mktemp("counts"), load_profile("tables"))
    (unit,) = units(workspace)
    workspace.path("manifests").mkdir()
    write_manifest(manifest, workspace.path(unit.inputs[0]))
    return run_unit(workspace, unit)


def part_of(manifest, row):
    chosen = pd.Series(True, index=manifest.index)
    if row.attribute != "all":
        level = manifest[COLUMNS["chest"][row.attribute]].astype(object)
        chosen = level.isna() if row.subgroup == NOT_RECORDED else level == row.subgroup
    return manifest[chosen & ((row.split == "all") | (manifest["split"] == row.split))]


@pytest.mark.parametrize("quantity", ["images", "subjects"])
def test_images_and_subjects(manifest, rows, quantity):
    chosen = rows[rows["quantity"] == quantity]
    assert len(chosen) == 4 * (1 + sum(len(LEVELS[column]) + 1 for column in COLUMNS["chest"].values()))
    for row in chosen.itertuples():
        part = part_of(manifest, row)
        assert row.value == (len(part) if quantity == "images" else part["subject_id"].nunique()), row


@pytest.mark.parametrize("uncertain", ["negative", "positive", "missing"])
@pytest.mark.parametrize("blank", ["missing", "negative"])
def test_labels_under_every_policy(manifest, rows, uncertain, blank):
    policy = LabelPolicy(uncertain=uncertain, blank=blank)
    chosen = rows[(rows["method"] == policy_name(policy)) & rows["attribute"].isin(["all", "sex", "age"])]
    assert set(chosen["finding"]) == set(FINDINGS["chest"])
    for row in chosen[chosen["finding"].isin(["edema", "fracture"])].itertuples():
        labels = resolve_labels(part_of(manifest, row)[row.finding], policy)
        assert (
            row.value == {"evaluable": labels.notna().sum(), "positive": (labels == 1).sum()}[row.quantity]
        ), row


def test_a_finding_that_the_source_does_not_label_is_never_evaluable(rows):
    assert (rows.loc[rows["finding"] == "fracture", "value"] == 0).all()


def test_subgroups_add_up_to_all(rows):
    counted = rows[rows["quantity"].isin(["images", "evaluable", "positive"])]
    keys = ["split", "finding", "method", "quantity"]
    total = counted[counted["attribute"] == "all"].set_index(keys)["value"]
    for _, part in counted[counted["attribute"] != "all"].groupby("attribute"):
        pd.testing.assert_series_equal(part.groupby(keys)["value"].sum().sort_index(), total.sort_index())


def test_results_of_another_profile_of_the_name_are_refused(manifest, tmp_path, monkeypatch):
    """A workspace that was filled by an older profile must not be shown as one of the present profile."""
    import yaml

    from frame.experiments.results import read_result, workspace_result
    from frame.workspace.graph import make_with_inputs
    from frame.workspace.profiles import load_profile as load

    file = tmp_path / "mine.yml"
    text = {
        "name": "mine",
        "sources": {"nih_cxr14": {"root": "package:torchxrayvision", "split": "hashed", "images": False}},
        "labels": {"uncertain": "negative", "blank": "missing"},
    }
    file.write_text(yaml.safe_dump(text))
    monkeypatch.setenv("FRAME_WORKSPACE", str(tmp_path / "workspace"))
    workspace = Workspace(tmp_path / "workspace", load(file))
    make_with_inputs(workspace, ["collect:cohort_counts"])
    assert len(workspace_result("cohort_counts", str(file))) > 100
    text["sources"]["ddi"] = {"root": str(tmp_path)}
    file.write_text(yaml.safe_dump(text))
    other = Workspace(tmp_path / "workspace", load(file))
    with pytest.raises(
        InputError, match=r"made from something else \(input .*ddi.* make them again with: frame"
    ):
        read_result(other, "cohort_counts")


def test_no_identifier_leaves_the_unit(rows):
    assert not rows.astype(str).apply(lambda column: column.str.contains("nih_cxr14:")).any().any()

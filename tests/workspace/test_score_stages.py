"""Saved scores of disease heads: against heads fitted by hand, and what makes them stale."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

sys.path.insert(0, str(Path(__file__).parents[1] / "cohorts"))
from raw_nih import write_profile, write_release

from frame.cohorts.schema import read_manifest_file
from frame.errors import InputError
from frame.experiments.contract import TIDY_COLUMNS
from frame.experiments.results import read_result
from frame.workspace.feature_stages import features_of
from frame.workspace.graph import make_with_inputs, stages
from frame.workspace.layout import open_workspace
from frame.workspace.pooled_features import pooled_features, pooled_sources
from frame.workspace.profiles import load_profile
from frame.workspace.score_stages import heads_of, score_stage, score_stages, scores_of
from frame.workspace.stages import staleness

STAGE = "scores:chest:block_means:linear"
MORE = (
    "encoders: {panel: [block_means]}\n"
    "findings: {chest: [pleural_effusion, cardiomegaly, fracture]}\n"
    "attributes: {chest: [sex, age]}\n"
)


def written(folder, more=MORE, patients=40):
    write_release(folder / "raw", patients=patients)
    profile = write_profile(folder / "small.yml", folder / "raw")
    text = profile.read_text().replace("sizes: {", "sizes: {resamples: 50, ")
    profile.write_text(text + more)
    return open_workspace(load_profile(profile), folder / "workspace")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    found = written(tmp_path_factory.mktemp("scores"))
    make_with_inputs(found, [STAGE])
    return found


def training_rows(workspace, finding):
    manifest = read_manifest_file(workspace.path("manifests/nih_cxr14.parquet"))
    return manifest, np.flatnonzero((manifest["split"] == "train") & manifest[finding].isin([0, 1]))


def test_scores_are_those_of_a_head_fitted_by_hand(workspace):
    manifest, train = training_rows(workspace, "pleural_effusion")
    vectors = features_of(workspace, "nih_cxr14", "block_means").read(dtype="float64")
    scaler = StandardScaler().fit(vectors[train])
    labels = manifest["pleural_effusion"].to_numpy(dtype=float)
    model = LogisticRegression(class_weight="balanced", tol=1e-10, max_iter=10_000)
    model.fit(scaler.transform(vectors[train]), labels[train])
    scored = manifest["split"].isin(["validation", "test"]).to_numpy()
    by_hand = model.decision_function(scaler.transform(vectors[scored]))
    found = scores_of(workspace, "chest", "block_means")
    assert found["image_id"].tolist() == manifest.loc[scored, "image_id"].tolist()
    assert found["split"].tolist() == manifest.loc[scored, "split"].tolist()
    np.testing.assert_allclose(found["pleural_effusion"], by_hand, atol=1e-4)


def test_a_finding_without_labels_leaves_a_row_with_the_reason(workspace):
    heads = heads_of(workspace, "chest", "block_means").set_index("finding")
    assert heads.index.tolist() == ["pleural_effusion", "cardiomegaly", "fracture"]
    assert heads.loc["fracture", "status"] == "not fitted"
    assert heads.loc["fracture", "reason"] == "no training image has a label and a vector"
    assert scores_of(workspace, "chest", "block_means")["fracture"].isna().all()
    manifest, train = training_rows(workspace, "pleural_effusion")
    row = heads.loc["pleural_effusion"]
    assert row["status"] == "converged"
    assert row["n_labelled"] == row["n_fitted"] == len(train)
    assert row["n_positive"] == int(manifest.loc[train, "pleural_effusion"].sum())
    assert row["n_without_vector"] == 0


def test_there_is_a_stage_for_each_modality_encoder_and_head():
    paper = open_workspace(load_profile("paper"), "nowhere")
    names = [stage.name for stage in score_stages(paper)]
    assert len(names) == len(set(names)) == 2 * (10 + 9 + 9)
    assert "scores:skin:monet:mlp" in names
    assert "scores:chest:monet:linear" not in names
    assert pooled_sources(paper, "skin") == ("ddi", "fitzpatrick17k", "isic_2019")
    assert score_stages(open_workspace(load_profile("tables"), "nowhere")) == []


def test_scores_are_stale_after_a_change_of_what_they_read(workspace, tmp_path):
    stage = stages(workspace)[STAGE]
    assert staleness(workspace, stage) == ()
    profile = tmp_path / "other.yml"
    before = (workspace.root.parent / "small.yml").read_text()
    profile.write_text(before.replace("blank: missing", "blank: negative"))
    other = open_workspace(load_profile(profile), workspace.root)
    assert staleness(other, score_stage(other, "chest", "block_means")) == ("setting labels changed",)
    with pytest.raises(InputError, match=r"made from something else .*labels.*frame run disease_heads"):
        scores_of(other, "chest", "block_means")
    with pytest.raises(InputError, match="head is 'forest'; it must be one of linear, mlp"):
        scores_of(workspace, "chest", "block_means", "forest")


def test_pooled_rows_are_read_in_the_order_asked_for(workspace):
    pooled = pooled_features(workspace, "chest", "block_means")
    all_rows = features_of(workspace, "nih_cxr14", "block_means").read(dtype="float32")
    rows = np.array([7, 0, 30, 7])
    np.testing.assert_array_equal(pooled.read(rows), all_rows[rows])
    parts = [vectors for _, vectors in pooled.blocks(np.arange(len(pooled)), size=17)]
    np.testing.assert_array_equal(np.concatenate(parts), all_rows)


def test_the_experiment_measures_the_saved_scores(workspace):
    make_with_inputs(workspace, ["collect:disease_heads"])
    found = read_result(workspace, "disease_heads")
    assert list(found.columns) == list(TIDY_COLUMNS)
    assert set(found["method"]) == {"linear", "mlp"}
    scores = scores_of(workspace, "chest", "block_means")
    manifest = read_manifest_file(workspace.path("manifests/nih_cxr14.parquet")).set_index("image_id")
    test = scores[scores["split"] == "test"]
    labels = manifest.loc[test["image_id"], "pleural_effusion"].to_numpy(dtype=float)
    chosen = found[(found["finding"] == "pleural_effusion") & (found["method"] == "linear")]
    auroc = chosen[chosen["quantity"] == "auroc"].set_index(["attribute", "subgroup"])
    overall = auroc.loc[("overall", "overall")]
    assert overall["value"] == pytest.approx(roc_auc_score(labels, test["pleural_effusion"]))
    assert overall["lo"] < overall["value"] < overall["hi"]
    assert (overall["n_images"], overall["n_positive"]) == (len(test), labels.sum())
    assert auroc.loc["sex", "n_images"].sum() == len(test)
    assert set(auroc.index.get_level_values(0)) == {"overall", "sex", "age"}
    assert set(chosen["quantity"]) == {"auroc", "tpr", "fpr", "ece"}
    fracture = found[(found["finding"] == "fracture") & (found["method"] == "linear")]
    assert set(fracture["status"]) == {"not estimable"}
    assert set(fracture["reason"]) == {"no training image has a label and a vector"}


def test_a_profile_without_encoders_is_told_so(tmp_path):
    workspace = written(tmp_path, more="", patients=4)
    with pytest.raises(InputError, match="disease_heads has no units in profile small: it names no encoder"):
        read_result(workspace, "disease_heads")


def test_small_subgroups_are_kept_out_of_the_shown_table():
    from frame.experiments.contract import tidy
    from frame.experiments.results import with_small_cells_hidden

    rows = pd.DataFrame(
        {
            "attribute": ["overall", "race", "race", "sex", "sex"],
            "subgroup": ["overall", "A", "B", "female", "male"],
            "quantity": "tpr",
            "value": 0.5,
            "n_images": [100, 70, 30, 50, 50],
            "n_positive": [40, 36, 4, 20, 20],
            "n_patients": [60, 40, 20, 30, 30],
        }
    )
    found = with_small_cells_hidden(tidy(rows, experiment="x"), 10).set_index("subgroup")
    assert found.loc[["A", "B"], "n_positive"].isna().all()
    assert pd.isna(found.loc["B", "value"])
    assert found.loc["B", "reason"] == "hidden: a count behind it is from 1 to 9"
    assert found.loc["A", "value"] == 0.5
    assert found.loc["female", "n_positive"] == 20
    assert found.loc["overall", "n_images"] == 100
    shown = with_small_cells_hidden(tidy(rows, experiment="x"), 1)
    pd.testing.assert_frame_equal(shown, tidy(rows, experiment="x"))


@pytest.mark.parametrize("status", ["not fitted", "not converged"])
def test_a_head_that_is_not_as_it_should_be_says_so_in_every_row(tmp_path, monkeypatch, status):
    from frame.heads import disease_heads

    workspace = written(tmp_path)
    fit_head = disease_heads.fit_head

    def other(*given, **named):
        made = fit_head(*given, **named)
        fit = None if status == "not fitted" else made.fit
        return disease_heads.Head(made.kind, status, "the reason of this test", made.details, fit)

    monkeypatch.setattr(disease_heads, "fit_head", other)
    make_with_inputs(workspace, ["results:disease_heads:chest-block_means-linear"])
    scores = scores_of(workspace, "chest", "block_means")
    rows = pd.read_parquet(workspace.path("results/disease_heads/chest-block_means-linear.parquet"))
    rows = rows[rows["finding"] == "pleural_effusion"]
    assert scores["pleural_effusion"].isna().all() == (status == "not fitted")
    assert rows["reason"].str.contains("the reason of this test").all()
    if status == "not fitted":
        assert (rows["status"] == "not estimable").all()
    else:
        assert (rows["status"] == "ok").any()

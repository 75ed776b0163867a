"""Feature stages: which there are, what makes them stale, what is refused, and shared work."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "cohorts"))
from raw_nih import write_image, write_profile, write_release

from frame.cohorts.schema import read_manifest_file
from frame.encoders.panel import WEIGHTS
from frame.errors import InputError
from frame.workspace.feature_stages import (
    Extraction,
    extract_source,
    feature_stage,
    feature_stages,
    features_of,
    named_encoders,
)
from frame.workspace.graph import make_with_inputs, stages
from frame.workspace.layout import open_workspace
from frame.workspace.profiles import load_profile
from frame.workspace.stages import make, staleness

STAGE = "features:nih_cxr14:block_means"


def written(folder, more="encoders: {panel: [block_means]}\n", **options):
    profile = write_profile(folder / "small.yml", folder / "raw", **options)
    profile.write_text(profile.read_text() + more)
    return open_workspace(load_profile(profile), folder / "workspace")


@pytest.fixture
def workspace(tmp_path):
    write_release(tmp_path / "raw", patients=30)
    return written(tmp_path)


def made(workspace, name=STAGE):
    make_with_inputs(workspace, [name])
    return stages(workspace)[name]


# --- which stages there are


def test_a_profile_has_a_stage_for_each_source_and_encoder_of_its_modality():
    paper = open_workspace(load_profile("paper"), "nowhere")
    assert named_encoders(paper)[:2] == ("rad_dino", "biomedclip")
    assert len(named_encoders(paper)) == 14
    with pytest.raises(InputError):
        feature_stage(paper, "nih_cxr14", "monet")
    found = {tuple(stage.name.split(":")[1:]) for stage in feature_stages(paper)}
    by_source = {source: {name for one, name in found if one == source} for source, _ in found}
    assert len(by_source) == 10
    assert {source: len(names) for source, names in by_source.items()} == {
        **dict.fromkeys(("mimic_cxr", "chexpert", "nih_cxr14", "padchest", "vindr_cxr", "vindr_pcxr"), 10),
        **dict.fromkeys(("ddi", "fitzpatrick17k", "isic_2019", "fairvision"), 9),
    }


def test_encoders_that_are_only_trained_have_no_stored_vectors(tmp_path):
    write_release(tmp_path / "raw", patients=4, images=False)
    more = (
        "encoders: {fine_tuning: [rad_dino], pretraining_start: [dinov3_vit_s], injection: [block_means]}\n"
    )
    workspace = written(tmp_path, more)
    assert [stage.name for stage in feature_stages(workspace)] == [STAGE]


def test_a_source_without_images_has_no_features(tmp_path):
    write_release(tmp_path / "raw", patients=4, images=False)
    workspace = written(tmp_path, images="false")
    assert feature_stages(workspace) == []
    with pytest.raises(InputError, match="is read without images in profile small, so that there is nothing"):
        feature_stage(workspace, "nih_cxr14", "block_means")


def test_no_stage_imports_torch_before_it_is_run(tmp_path):
    import subprocess

    code = (
        "import sys; from frame.workspace.graph import stages;"
        "from frame.workspace.layout import open_workspace;"
        "from frame.workspace.profiles import load_profile;"
        "found = stages(open_workspace(load_profile('demo'), 'nowhere'));"
        "assert any(name.startswith('features:') for name in found);"
        "assert not {'torch', 'timm', 'transformers', 'open_clip'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- making them


def test_features_are_made_once_and_follow_the_manifest(workspace):
    stage = made(workspace)
    assert staleness(workspace, stage) == ()
    assert make(workspace, stage) is False
    store = features_of(workspace, "nih_cxr14", "block_means")
    manifest = read_manifest_file(workspace.path("manifests/nih_cxr14.parquet"), columns=["image_id"])
    assert store.shape == (len(manifest), 256)
    assert store.ready.all()
    assert store.vectors.dtype == np.float16
    text = "".join(path.read_text() for path in workspace.path("features").rglob("*.json"))
    assert not any(image_id.split(":")[1] in text for image_id in manifest["image_id"])


def test_a_changed_image_makes_its_vector_anew(workspace, tmp_path):
    stage = made(workspace)
    before = features_of(workspace, "nih_cxr14", "block_means").read(dtype="float32")
    write_image(tmp_path / "raw" / "images" / "00000003_001.png", seed=999)
    make_with_inputs(workspace, ["images:nih_cxr14"])
    assert staleness(workspace, stage) == ("input images/nih_cxr14/index.parquet changed",)
    with pytest.raises(InputError, match="were made with images_sha256"):
        features_of(workspace, "nih_cxr14", "block_means")
    assert make(workspace, stage) is True
    after = features_of(workspace, "nih_cxr14", "block_means").read(dtype="float32")
    assert (before != after).any(axis=1).sum() == 1


def test_a_manifest_that_changed_under_the_store(workspace, tmp_path):
    """One patient more: what is stored is refused, and made again with all inputs before it."""
    stage = made(workspace)
    write_release(tmp_path / "raw", patients=31)
    make_with_inputs(workspace, ["manifest:nih_cxr14"])
    assert "input manifests/nih_cxr14.parquet changed" in staleness(workspace, stage)
    with pytest.raises(InputError, match="were made from another manifest than the one given"):
        features_of(workspace, "nih_cxr14", "block_means")
    with pytest.raises(InputError, match=r"does not hold the images of the manifest in its order \(\d+ rows"):
        make(workspace, stage)
    with pytest.raises(InputError, match="another manifest"):
        features_of(workspace, "nih_cxr14", "block_means")
    assert make_with_inputs(workspace, [STAGE]) == ["images:nih_cxr14", STAGE]
    assert features_of(workspace, "nih_cxr14", "block_means").shape[0] == 93


def test_a_missing_file_keeps_its_row(workspace, tmp_path):
    """A file that goes after the manifest was made; a file that the manifest never found has no row."""
    make_with_inputs(workspace, ["manifest:nih_cxr14"])
    manifest = read_manifest_file(workspace.path("manifests/nih_cxr14.parquet"), columns=["file"])
    (tmp_path / "raw" / manifest["file"][4]).unlink()
    for stage in ("images:nih_cxr14", STAGE):
        make(workspace, stages(workspace)[stage])
    store = features_of(workspace, "nih_cxr14", "block_means")
    assert np.flatnonzero(~store.ready).tolist() == [4]
    assert store.reasons[store.codes[4]] == "the file is missing"


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("features: {dtype: float32}\n", "setting features.dtype changed"),
        ("features: {normalise: true}\n", "setting features.normalise changed"),
    ],
    ids=["dtype", "normalise"],
)
def test_another_setting_makes_them_stale(workspace, tmp_path, more, reason):
    made(workspace)
    changed = written(tmp_path, "encoders: {panel: [block_means]}\n" + more)
    stage = stages(changed)[STAGE]
    assert staleness(changed, stage) == (reason,)
    with pytest.raises(InputError, match=r"were made with (dtype|normalised)"):
        features_of(changed, "nih_cxr14", "block_means")
    assert make(changed, stage) is True
    assert features_of(changed, "nih_cxr14", "block_means").ready.all()


def test_a_damaged_store_is_made_again(workspace):
    stage = made(workspace)
    file = workspace.path(stage.outputs[0])
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert staleness(workspace, stage) == (f"output {stage.outputs[0]} is not the file that was written",)
    with pytest.raises(InputError, match="are damaged"):
        features_of(workspace, "nih_cxr14", "block_means")
    make(workspace, stage)
    assert file.read_bytes() == content


def test_weights_that_change_make_them_stale(workspace, tmp_path, monkeypatch):
    stage = feature_stage(workspace, "nih_cxr14", "efficientnet_lite0")
    look = stage.fingerprints["weights"]
    packaged = look(workspace)
    monkeypatch.setenv(WEIGHTS, str(tmp_path / "weights"))
    assert look(workspace) == packaged
    (tmp_path / "weights").mkdir()
    file = tmp_path / "weights" / "efficientnet_lite0.safetensors"
    file.write_bytes(b"one")
    first = look(workspace)
    file.write_bytes(b"other")
    assert len({packaged, first, look(workspace)}) == 3


def test_fitted_components_come_from_training_images_alone(workspace, tmp_path):
    workspace = written(tmp_path, "encoders: {panel: [image_pca]}\n")
    with pytest.raises(InputError, match=r"64 components, and 6\d training images cannot determine them"):
        made(workspace, "features:nih_cxr14:image_pca")
    write_release(tmp_path / "raw", patients=60)
    workspace = written(tmp_path, "encoders: {panel: [image_pca]}\n", image=32)
    stage = made(workspace, "features:nih_cxr14:image_pca")
    first = features_of(workspace, "nih_cxr14", "image_pca")
    digest = first.sidecar["settings"]["components_sha256"]
    manifest = read_manifest_file(workspace.path("manifests/nih_cxr14.parquet"), columns=["file", "split"])
    test_image = manifest["file"][manifest["split"] == "test"].iloc[0]
    train_image = manifest["file"][manifest["split"] == "train"].iloc[0]
    for file, same in ((test_image, True), (train_image, False)):
        write_image(tmp_path / "raw" / file, seed=999 + same)
        make_with_inputs(workspace, [stage.name])
        found = features_of(workspace, "nih_cxr14", "image_pca").sidecar["settings"]["components_sha256"]
        assert (found == digest) is same


def test_a_source_of_which_no_image_has_a_vector_is_an_error(workspace, monkeypatch):
    from frame.encoders.loaders import LoadedEncoder

    def endless(self, batch):
        return np.full((len(batch), self.width), np.inf, dtype=np.float32)

    monkeypatch.setattr(LoadedEncoder, "vectors", endless)
    with pytest.raises(
        InputError, match=r"no image of 90 has a vector of block_means \(90: the vector is not fin"
    ):
        made(workspace)


# --- shared work


def test_tasks_share_a_source_by_rows(workspace, tmp_path):
    make_with_inputs(workspace, ["images:nih_cxr14"])
    for rows in ((0, 50), (50, 90)):
        report = extract_source(workspace, "nih_cxr14", "block_means", Extraction(rows=rows))
        assert not report.joined
    stage = stages(workspace)[STAGE]
    assert staleness(workspace, stage) == ("never made",)
    make(workspace, stage)
    assert staleness(workspace, stage) == ()
    alone = open_workspace(workspace.profile, tmp_path / "alone")
    made(alone)
    for output in stage.outputs:
        assert workspace.path(output).read_bytes() == alone.path(output).read_bytes()
    about = json.loads(workspace.path(stage.outputs[2]).read_text())
    assert about["counts"] == {"ready": 90}

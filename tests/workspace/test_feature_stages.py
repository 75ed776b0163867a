"""Feature stages: which there are, what makes them stale, what is refused, and shared work."""

import hashlib
import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "cohorts"))
from raw_nih import write_image, write_profile, write_release

from frame.cohorts.schema import read_manifest_file
from frame.encoders.extraction import rows_to_fit
from frame.encoders.loaders import LoadedEncoder
from frame.encoders.panel import WEIGHTS, encoder
from frame.encoders.preprocessing import preprocessing_of
from frame.errors import InputError
from frame.workspace import feature_stages as feature_stages_module
from frame.workspace.feature_stages import (
    Extraction,
    check_extraction,
    extract_source,
    feature_stage,
    feature_stages,
    features_of,
    named_encoders,
)
from frame.workspace.graph import make_with_inputs, stages
from frame.workspace.layout import open_workspace
from frame.workspace.modules import module_hashes
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
    workspace = written(tmp_path, "encoders: {panel: [image_pca]}\n", image=32)
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


# --- what is not the profile's


def settings_of(workspace, name=STAGE):
    path = workspace.path("/".join(["features", *name.split(":")[1:], "features.json"]))
    return json.loads(path.read_text())["settings"]


def test_a_store_in_another_precision_is_not_the_profiles(workspace):
    made(workspace)
    other = Extraction(precision="float32")
    stage = feature_stage(workspace, "nih_cxr14", "block_means", other)
    assert staleness(workspace, stage) == ("setting features.precision changed",)
    make(workspace, stage)
    assert staleness(workspace, stages(workspace)[STAGE]) == ("setting features.precision changed",)
    with pytest.raises(InputError, match="were made with precision float32, not auto"):
        features_of(workspace, "nih_cxr14", "block_means")
    assert features_of(workspace, "nih_cxr14", "block_means", extraction=other).ready.all()
    compiled = feature_stage(workspace, "nih_cxr14", "block_means", Extraction(compile=True))
    assert "setting compiled changed" in staleness(workspace, compiled)


def test_a_fitted_encoder_says_what_it_was_fitted_to(tmp_path):
    write_release(tmp_path / "raw", patients=60)
    more = "encoders: {panel: [image_pca]}\n"
    workspace = written(tmp_path, more, image=32)
    name = "features:nih_cxr14:image_pca"
    stage = made(workspace, name)
    said = settings_of(workspace, name)
    manifest = read_manifest_file(
        workspace.path("manifests/nih_cxr14.parquet"), columns=["image_id", "split"]
    )
    train = manifest["image_id"][manifest["split"] == "train"]
    assert said["fitted_to"] == len(train)
    text = "".join(f"{len(image_id)}:{image_id}" for image_id in train)
    assert said["fitted_to_ids_sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert said["seed"] == workspace.profile.seed
    reseeded = written(tmp_path, more + f"seed: {workspace.profile.seed + 1}\n", image=32)
    with pytest.raises(InputError, match=r"were made with settings\.seed \d+, not \d+"):
        features_of(reseeded, "nih_cxr14", "image_pca")
    assert set(module_hashes(stage.modules)) >= {rows_to_fit.__module__}


def test_another_number_of_images_to_fit_makes_them_stale(tmp_path, monkeypatch):
    write_release(tmp_path / "raw", patients=60)
    workspace = written(tmp_path, "encoders: {panel: [image_pca]}\n", image=32)
    made(workspace, "features:nih_cxr14:image_pca")
    monkeypatch.setattr(feature_stages_module, "FIT_IMAGES", 77)
    stage = stages(workspace)["features:nih_cxr14:image_pca"]
    assert staleness(workspace, stage) == ("setting fitted to at most changed",)
    with pytest.raises(InputError, match=r"were made with settings\.fitted_to_at_most 2000, not 77"):
        features_of(workspace, "nih_cxr14", "image_pca")


@pytest.mark.parametrize(
    ("key", "other"),
    [("seed", 99), ("revision", "f" * 40), ("architecture", "vit_large"), ("pooling", "patch_mean")],
)
def test_features_of_another_encoder_under_the_name_are_refused(workspace, key, other):
    """What an edited row, or the store of another profile in its place, would look like."""
    extract_small(workspace)
    assert features_of(workspace, "nih_cxr14", "random_vit_s").ready.all()
    path = workspace.path("features/nih_cxr14/random_vit_s/features.json")
    about = json.loads(path.read_text())
    about["settings"][key] = other
    path.write_text(json.dumps(about))
    with pytest.raises(InputError, match=rf"were made with settings\.{key} {other}, not "):
        features_of(workspace, "nih_cxr14", "random_vit_s")


def extract_small(workspace, name="random_vit_s"):
    """A store as that of a network, without the network."""
    make_with_inputs(workspace, ["images:nih_cxr14"])
    row = encoder(name)
    loaded = LoadedEncoder(
        row,
        preprocessing_of(row, "shared"),
        {
            **{key: getattr(row, key) for key in ("checkpoint", "revision", "architecture", "pooling")},
            **{"width": row.width, "library": row.library, "seed": workspace.profile.seed},
        },
        None,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feature_stages_module, "load_encoder", lambda *_, **__: loaded)
        patch.setattr(LoadedEncoder, "is_network", False)
        patch.setattr(
            LoadedEncoder, "vectors", lambda self, batch: np.ones((len(batch), self.width), dtype=np.float32)
        )
        make(workspace, feature_stage(workspace, "nih_cxr14", name, Extraction(device="cpu")))


def test_features_of_other_weights_are_refused(workspace, tmp_path, monkeypatch):
    monkeypatch.setenv(WEIGHTS, str(tmp_path / "weights"))
    (tmp_path / "weights").mkdir()
    file = tmp_path / "weights" / "retfound.safetensors"
    file.write_bytes(b"one")
    monkeypatch.setattr(
        feature_stages_module, "encoder", lambda name: replace(encoder(name), modalities=("chest",))
    )
    extract_small(workspace, "retfound")
    assert features_of(workspace, "nih_cxr14", "retfound").ready.all()
    file.write_bytes(b"other")
    with pytest.raises(InputError, match="'retfound' were made with other weights than those that are on"):
        features_of(workspace, "nih_cxr14", "retfound")


@pytest.mark.parametrize("name", ["retfound", "dermlip"])
def test_weights_without_a_revision_are_those_in_the_cache(tmp_path, monkeypatch, name):
    monkeypatch.delenv(WEIGHTS, raising=False)
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    row = encoder(name)
    look = feature_stages_module._weights_state
    nothing = look(row, None)
    checkpoint = tmp_path / "hub" / f"models--{row.checkpoint.replace('/', '--')}"
    for commit, content in (("a", b"one"), ("b", b"other")):
        (checkpoint / "snapshots" / commit).mkdir(parents=True)
        (checkpoint / "snapshots" / commit / "model.safetensors").write_bytes(content)
    (checkpoint / "refs").mkdir()
    found = []
    for commit in ("a", "b", "a"):
        (checkpoint / "refs" / "main").write_text(commit)
        found.append(look(row, None))
    assert len({nothing, *found}) == 3
    assert found[0] == found[2]


@pytest.mark.parametrize("name", ["one_loader", "some_package.inner.one_loader"])
def test_the_code_of_ones_own_loader_belongs_to_its_features(workspace, tmp_path, monkeypatch, name):
    file = (tmp_path / "code").joinpath(*name.split(".")).with_suffix(".py")
    file.parent.mkdir(parents=True)
    for folder in list(file.parents)[: name.count(".")]:
        (folder / "__init__.py").write_text("raise RuntimeError('this was imported')\n")
    file.write_text("raise RuntimeError('this was imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path / "code"))
    own = replace(encoder("random_vit_s"), library="own", loader=f"{name}:load")
    monkeypatch.setattr(feature_stages_module, "encoder", lambda _: own)
    look = feature_stage(workspace, "nih_cxr14", "random_vit_s").fingerprints["loader"]
    assert look(workspace) == hashlib.sha256(file.read_bytes()).hexdigest()
    expected = feature_stages_module._expected_settings(own, {}, 0)
    assert expected["settings.loader_sha256"] == look(workspace)
    file.write_text("# other\n")
    assert look(workspace) == hashlib.sha256(b"# other\n").hexdigest()
    file.unlink()
    importlib.invalidate_caches()
    assert look(workspace) is None


def test_a_store_without_a_vector_is_refused(workspace):
    stage = made(workspace)
    folder = workspace.path(stage.outputs[0]).parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            LoadedEncoder, "vectors", lambda self, batch: np.full((len(batch), 256), np.nan, np.float32)
        )
        (folder / "features.json").unlink()
        with pytest.raises(InputError, match="no image of 90 has a vector"):
            make(workspace, stage)
    with pytest.raises(InputError, match="block_means for nih_cxr14 have no row with a vector, of 90; check"):
        features_of(workspace, "nih_cxr14", "block_means")


@pytest.mark.parametrize("device", ["nonsense", "cpu:", "cuda:one", "", "cuda1"])
@pytest.mark.parametrize("name", ["block_means", "random_vit_s"])
def test_a_device_that_is_none_is_refused(name, device):
    with pytest.raises(InputError, match="it must be auto, or one of cpu, cuda, mps, xpu, which may have a"):
        check_extraction(encoder(name), Extraction(device=device), "auto")


@pytest.mark.parametrize("device", ["auto", "cpu", "cuda:1"])
def test_a_device_is_of_no_matter_to_pixels(device):
    check_extraction(encoder("block_means"), Extraction(device=device), "auto")

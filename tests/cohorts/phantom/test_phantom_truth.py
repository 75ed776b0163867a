"""The model of the planted truth, and its sentences."""

from __future__ import annotations

import pytest
import yaml
from pydantic import ValidationError

from frame.cohorts.phantom.truth import (
    LabelNoise,
    PhantomTruth,
    RacePlant,
    Sizes,
    modality_of,
    scaled,
    statement,
)


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
    ],
)
def test_refusals(values, words):
    with pytest.raises(ValidationError, match=words.replace("(", r"\(")):
        PhantomTruth.model_validate(values)


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
    for words in ("only a nonlinear encoder", "No label is wrong", "look the same", "Age changes no finding"):
        assert words in said
    none = truth.model_copy(update={"race": RacePlant(texture="none")})
    assert "Race cannot be told from any image" in " ".join(statement(none))

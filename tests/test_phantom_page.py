"""The page on the phantom world: its example is a profile, its keys are those of the code."""

import re
from pathlib import Path

import pytest

from frame.cohorts.phantom.truth import (
    NOTE,
    AgePlant,
    LabelNoise,
    PhantomTruth,
    RacePlant,
    Recording,
)
from frame.workspace.profiles import load_profile, profile_names

PAGE = (Path(__file__).resolve().parents[1] / "book" / "phantom.md").read_text(encoding="utf-8")
#: Keys with keys of their own.
PARTS = {"race": RacePlant, "age": AgePlant, "noise": LabelNoise, "recording": Recording}


def keys_of_the_page():
    (block,) = re.findall(r"\| Key under `phantom` \| Meaning \|\n\|---\|---\|\n((?:\|.*\|\n)+)", PAGE)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
    return {key: meaning for keys, meaning in rows for key in re.findall(r"`(\w+)`", keys)}


def test_keys_are_those_of_the_code():
    told = keys_of_the_page()
    assert sorted(told) == sorted(PhantomTruth.model_fields)
    for key, part in PARTS.items():
        assert [field for field in part.model_fields if f"`{field}`" not in told[key]] == []


def test_the_example_is_a_profile(tmp_path):
    (block,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    path = tmp_path / "mine.yml"
    path.write_text(block, encoding="utf-8")
    profile = load_profile(path)
    assert profile.name not in profile_names()
    assert profile.phantom.race.texture == "none"
    assert set(profile.sources) == set(profile.phantom.chest)


def test_the_line_beside_every_count_is_the_one_that_is_printed():
    assert f"*{NOTE}*" in " ".join(PAGE.split())


@pytest.mark.parametrize("name", ["race", "site", "age"])
def test_the_values_of_a_key_are_those_that_the_code_takes(name):
    field = PhantomTruth.model_fields[name]
    schema = PhantomTruth.model_json_schema()
    part = PARTS.get(name)
    allowed = (
        schema["properties"][name]["enum"]
        if part is None
        else schema["$defs"][part.__name__]["properties"].get("texture", {}).get("enum", [])
    )
    assert field.is_required() is False
    assert [value for value in allowed if f"`{value}`" not in keys_of_the_page()[name]] == []


def test_what_the_page_says_of_the_planted_age_and_noise_is_the_default():
    truth = PhantomTruth()
    assert (truth.age.contrast, truth.age.control, truth.noise.finding) == (
        0.5,
        "support_devices",
        "cardiomegaly",
    )
    assert "half as strongly" in PAGE
    assert "support devices" in PAGE
    assert "cardiomegaly" in PAGE

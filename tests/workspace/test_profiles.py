"""Profiles: the four of the package, and one sentence for whatever is wrong with one."""

import os
import re

import pytest
import yaml

from frame.cohorts.schema import FINDINGS, MODALITIES
from frame.cohorts.sources import sources
from frame.errors import InputError
from frame.mitigation.registry import NINE
from frame.workspace.profiles import ATTRIBUTES, ROLES, load_profile, profile_names
from frame.workspace.roots import source_roots, unset_variables

SMALL = """\
name: small
sources:
  ddi:
    root: $DDI_HERE
labels:
  uncertain: negative
  blank: missing
"""


@pytest.fixture
def profile(tmp_path):
    def written(text):
        file = tmp_path / "small.yml"
        file.write_text(text, encoding="utf-8")
        return load_profile(file)

    return written


def test_the_four_profiles_are_there():
    assert profile_names() == ("demo", "open", "paper", "tables")


@pytest.mark.parametrize("name", ["demo", "open", "paper", "tables"])
def test_a_profile_of_the_package_loads(name):
    profile = load_profile(name)
    assert profile.name == profile.origin == name
    assert profile.title
    for modality in profile.modalities:
        assert profile.findings_of(modality)
        assert profile.attributes_of(modality) == ATTRIBUTES[modality]


def test_paper_has_all_ten_sources_and_no_place_of_a_machine():
    profile = load_profile("paper")
    assert set(profile.sources) == set(sources())
    roots = [settings.root for settings in profile.sources.values()]
    assert all(re.fullmatch(r"\$FRAME_[A-Z0-9_]+", root) for root in roots)
    assert len(set(roots)) == 10


def test_demo_needs_no_download(monkeypatch, tmp_path):
    for name in [name for name in os.environ if name.startswith("FRAME_")]:
        monkeypatch.delenv(name)
    profile = load_profile("demo")
    for name, settings in profile.sources.items():
        assert not unset_variables(settings.root)
        assert source_roots(profile, name, tmp_path).root == tmp_path / "raw" / name
        assert settings.images
    profile = load_profile("tables")
    (settings,) = profile.sources.values()
    assert not settings.images
    assert source_roots(profile, "nih_cxr14", tmp_path).root is None


def test_demo_is_complete():
    profile = load_profile("demo")
    assert set(profile.sources) == set(sources())
    assert set(profile.encoders) == set(ROLES)
    for role, named in profile.encoders.items():
        assert named
        assert set(named) <= set(profile.encoders["panel"]), role
    for modality in MODALITIES:
        assert profile.findings[modality] == FINDINGS[modality]
        assert profile.attributes[modality] == ATTRIBUTES[modality]
    planned = {
        modality: sum(profile.phantom.sizes(name).total for name in profile.sources_of(modality))
        for modality in MODALITIES
    }
    assert planned == {"chest": 6000, "skin": 1500, "fundus": 1000}


def test_a_profile_in_a_file_knows_where_it_came_from(profile, tmp_path):
    found = profile(SMALL)
    assert found.origin == str((tmp_path / "small.yml").resolve())
    assert load_profile(found.origin) == found


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            ("name: small", "name: small\nsead: 1"),
            "key sead is unknown; allowed here are name, .*did you mean seed?",
        ),
        (
            ("    root:", "    splt: hashed\n    root:"),
            "key sources.ddi.splt is unknown; allowed here are root, ",
        ),
        (
            ("  blank: missing", "  blank: mising"),
            "labels.blank is 'mising'; input should be 'missing' or 'negative'",
        ),
        (("  blank: missing\n", ""), "key labels.blank is missing."),
        (("  ddi:", "  ddi2:"), "sources: 'ddi2' is unknown; allowed are mimic_cxr, .*; did you mean ddi?"),
        (("name: small", "name: small\nseed: '7'"), "seed is '7'; input should be a valid integer."),
        (("name: small", "name: small\nseed: true"), "seed is True; input should be a valid integer."),
        (("name: small", "name: small\nname: twice"), "line 2: .*key name is there twice"),
        (
            ("name: small", "name: small\nsizes: {image: 3}"),
            "sizes.image is 3; input should be greater than or equal",
        ),
        (
            ("name: small", "name: small\nfindings: {chest: [edma]}"),
            "findings.chest: 'edma' is unknown; .*mean edema?",
        ),
        (
            ("name: small", "name: small\nfindings: {chest: [edema, edema]}"),
            "findings.chest: an entry is there twice",
        ),
        (
            ("name: small", "name: small\nattributes: {skin: [race]}"),
            "attributes.skin: 'race' is unknown; allowed are",
        ),
        (("name: small", "name: small\nencoders: {panl: [a]}"), "encoders: 'panl' is unknown; .*mean panel?"),
        (
            ("name: small", "name: small\ninjection: {methods: [reweih]}"),
            "injection.methods: 'reweih' is unknown; allowed are resample, .*, inlp; did you mean reweigh?",
        ),
        (
            ("name: small", "name: small\ninjection: {methods: [platt_monotone]}"),
            "injection.methods: 'platt_monotone' is unknown; allowed are .*, inlp.",
        ),
        (
            ("name: small", "name: small\ninjection: {methods: [inlp, inlp]}"),
            "injection.methods: an entry is there twice.",
        ),
        (
            ("name: small", "name: small\ninjection: {methods: inlp}"),
            "injection.methods is 'inlp'; input should be a list.",
        ),
        (
            ("name: small", "name: small\ninjection: {in_ful: first}"),
            "key injection.in_ful is unknown; allowed here are methods, in_full; did you mean in_full?",
        ),
        (
            ("name: small", "name: small\ninjection: {in_full: race}"),
            "injection.in_full is 'race'; input should be 'every' or 'first'.",
        ),
        (
            ("name: small", "name: open"),
            "its name is open, which a profile of the package has; give it another",
        ),
        (("name: small", "name: /etc"), "name is '/etc'; "),
        (("labels:", "labels: ["), "this is no YAML that a profile can have"),
        (("name: small", "name: !!python/object:os.system x"), "this is no YAML that a profile can have"),
    ],
)
def test_what_is_wrong_is_one_sentence(profile, change, sentence):
    assert change[0] in SMALL
    with pytest.raises(InputError) as refused:
        profile(SMALL.replace(*change, 1))
    said = str(refused.value)
    assert re.search(sentence.replace("?", r"\?"), said), said
    assert said.startswith("Profile small.yml")
    assert "\n" not in said


DRAWN = """\
name: drawn
sources:
  mimic_cxr:
    root: workspace:raw/mimic_cxr
    linked_root: workspace:raw/mimic_cxr/mimic-iv-3.1
  ddi:
    root: workspace:raw/ddi
phantom: {seed: 3, race: {texture: none}}
labels: {uncertain: negative, blank: missing}
"""


def test_a_profile_of_drawn_images(profile, tmp_path):
    found = profile(DRAWN)
    assert (found.phantom.seed, found.phantom.race.texture, found.phantom.age.contrast) == (3, "none", 0.5)
    assert source_roots(found, "ddi", tmp_path).root == tmp_path / "raw" / "ddi"
    assert found.only(["ddi"]).phantom == found.phantom
    assert load_profile("tables").phantom is None
    assert load_profile("demo").phantom.sources == tuple(load_profile("demo").sources)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("phantom: {", "fantom: {"), r"key fantom is unknown; allowed here are .*, phantom"),
        (
            ("phantom: {seed: 3, race: {texture: none}}\n", ""),
            r"sources\.mimic_cxr: the folder raw of a workspace holds drawn images; .* key phantom, which",
        ),
        (
            ("workspace:raw/ddi", "$DDI_HERE"),
            r"sources\.ddi\.root: with the key phantom it must be workspace:raw/ddi; drawn and released",
        ),
        (
            ("raw/mimic_cxr/mimic-iv-3.1", "raw/mimic-iv"),
            r"linked_root: with the key phantom it must be work",
        ),
        (
            ("raw/ddi\n", "raw/ddi\n    linked_root: $DDI_HERE\n"),
            r"sources\.ddi\.linked_root: with the key phantom there must be none",
        ),
        (
            ("seed: 3", "skin: {isic_2019: {train: 3, validation: 1, test: 1}}"),
            r"phantom: ddi is a source, and no image of it is drawn; give phantom\.skin\.ddi",
        ),
        (
            ("texture:", "texur:"),
            r"key phantom\.race\.texur is unknown; allowed here are texture, amplitude; .*mean texture\?",
        ),
        (
            ("seed: 3", "sead: 3"),
            r"key phantom\.sead is unknown; allowed here are seed, .*mean seed\?",
        ),
        (("texture: none", "texture: some"), r"phantom\.race\.texture is 'some'; input should be 'fixed', "),
        (
            ("seed: 3", "age: {control: edma}"),
            r"phantom\.age\.control: 'edma' is unknown; allowed are atelectasis, ",
        ),
        (("seed: 3", "noise: {rate: 0.9}"), r"phantom\.noise\.rate is 0\.9; input should be less than or eq"),
    ],
)
def test_what_is_wrong_with_a_planted_truth_is_one_sentence(profile, change, sentence):
    assert change[0] in DRAWN
    with pytest.raises(InputError) as refused:
        profile(DRAWN.replace(*change, 1))
    said = str(refused.value)
    assert re.search(sentence, said), said
    assert said.startswith("Profile small.yml")
    assert "\n" not in said


def test_all_of_the_injection_is_computed_unless_a_profile_says_less(profile):
    assert profile(SMALL).values("injection") == {"injection": {"methods": list(NINE), "in_full": "every"}}
    less = profile(SMALL + "injection: {methods: [inlp, platt], in_full: first}\n")
    assert (less.injection.methods, less.injection.in_full) == (("inlp", "platt"), "first")
    for name in ("open", "paper", "tables"):
        assert load_profile(name).injection == profile(SMALL).injection


def test_a_list_for_a_profile_is_refused(profile):
    with pytest.raises(InputError, match="holds no keys"):
        profile("- a\n- b\n")


def test_a_profile_that_is_not_there():
    with pytest.raises(
        InputError, match=r"no profile 'dmo'; give one of demo, open, paper, tables or the path of a \.yml"
    ):
        load_profile("dmo")


def test_an_unset_variable_is_named(profile, monkeypatch, tmp_path):
    monkeypatch.delenv("DDI_HERE", raising=False)
    found = profile(SMALL)
    with pytest.raises(
        InputError, match=r"source ddi: its root is \$DDI_HERE, and that environment variable is not"
    ):
        source_roots(found, "ddi", tmp_path)
    monkeypatch.setenv("DDI_HERE", str(tmp_path))
    assert source_roots(found, "ddi", tmp_path / "workspace").root == tmp_path


def test_a_linked_folder_that_is_not_set_is_none(profile, monkeypatch, tmp_path):
    monkeypatch.delenv("LINKED_HERE", raising=False)
    found = profile(SMALL.replace("$DDI_HERE", "workspace:mine/ddi\n    linked_root: ${LINKED_HERE}/hosp"))
    assert source_roots(found, "ddi", tmp_path).root == tmp_path / "mine" / "ddi"
    assert source_roots(found, "ddi", tmp_path).linked_root is None
    monkeypatch.setenv("LINKED_HERE", "/linked")
    assert str(source_roots(found, "ddi", tmp_path).linked_root) == "/linked/hosp"


def test_values_by_dotted_key(profile):
    found = profile(SMALL)
    assert found.values("labels.blank", "sources.ddi.images") == {
        "labels.blank": "missing",
        "sources.ddi.images": True,
    }
    with pytest.raises(KeyError):
        found.values("labels.nothing")


def test_every_key_of_a_profile_is_written_in_none_twice():
    for name in profile_names():
        dumped = load_profile(name).model_dump(mode="json")
        assert yaml.safe_load(yaml.safe_dump(dumped)) == dumped


def test_a_notebook_of_a_users_own_profile_names_it_without_a_path(profile, tmp_path, monkeypatch):
    found = profile(SMALL)
    with pytest.raises(InputError, match="no profile 'small'"):
        load_profile("small")
    monkeypatch.setenv("FRAME_PROFILE", found.origin)
    assert load_profile("small") == load_profile(found.origin) == found
    with pytest.raises(InputError, match="no profile 'other'"):
        load_profile("other")


def test_a_part_of_a_profile_has_the_sum_of_the_whole():
    whole = load_profile("paper")
    part = whole.only(["ddi", "isic_2019"])
    assert list(part.sources) == ["ddi", "isic_2019"]
    assert part.modalities == ("skin",)
    assert part.sha256 == whole.sha256 != load_profile("demo").sha256
    assert part.origin == "paper"


# ---- odd files and odd folders


@pytest.mark.parametrize(
    "text",
    ["? [a, b]\n: c\n", "name: " + "[" * 5000 + "]" * 5000, "seed: " + "9" * 5000, "title: 2020-13-41"],
    ids=["a list as key", "too deep", "too long a number", "no date"],
)
def test_yaml_that_python_cannot_hold_is_one_sentence(profile, text):
    with pytest.raises(InputError, match="a key or a value cannot be read"):
        profile(text + "\n")


def test_a_name_that_is_too_long_is_no_profile():
    with pytest.raises(InputError, match="There is no profile"):
        load_profile("a" * 300 + ".yml")


def test_a_relative_root_counts_from_the_profile(profile, tmp_path, monkeypatch):
    """Not from the current folder, which is another one in the processes of the graph."""
    monkeypatch.chdir("/")
    found = profile(SMALL.replace("$DDI_HERE", "raw/ddi"))
    assert source_roots(found, "ddi", tmp_path / "workspace").root == tmp_path / "raw" / "ddi"


@pytest.mark.parametrize(
    ("root", "value", "sentence"),
    [
        ("$DDI_HERE", "raw", "that variable holds a relative path, which other processes"),
        ("$DDI_HERE", " ", "that environment variable is not set"),
        ("/" + "a" * 5000, "", "cannot be looked at"),
        ("~nobody-of-this-name/raw", "", "no such folder can be there"),
        ("'workspace:'", "", "its root is the workspace itself"),
    ],
)
def test_a_root_that_cannot_be_one_is_one_sentence(profile, tmp_path, monkeypatch, root, value, sentence):
    monkeypatch.setenv("DDI_HERE", value)
    (tmp_path / "workspace").mkdir()
    with pytest.raises(InputError, match=sentence) as refused:
        source_roots(profile(SMALL.replace("$DDI_HERE", root)), "ddi", tmp_path / "workspace")
    assert "source ddi: its root" in str(refused.value)


def test_a_dollar_sign_in_a_folder_is_written_twice(profile, tmp_path):
    found = profile(SMALL.replace("$DDI_HERE", "/data/a$$b"))
    assert str(source_roots(found, "ddi", tmp_path).root) == "/data/a$b"
    assert unset_variables("/data/a$$b") == ()

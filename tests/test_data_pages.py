"""The pages on data: each table in them equals the registry, the rules or the code that it is about."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from frame.cohorts.manifest import SPLITS
from frame.cohorts.schema import FINDINGS
from frame.cohorts.sources import source_files, sources
from frame.cohorts.splits import HASHED_FRACTIONS, SUBJECT_FRACTIONS
from frame.experiments.injection_settings import InjectionSettings
from frame.tables import load_table
from frame.workspace.profiles import (
    Features,
    Labels,
    Profile,
    Sizes,
    SourceSettings,
    load_profile,
    profile_names,
)

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    name: ROOT / "book" / f"{name}.md"
    for name in ("data_access", "data_harmonisation", "data_splits", "own_study")
}
CREDENTIAL = {
    "none": "none",
    "registration": "registration and agreement",
    "credentialed": "credentialed account, training, agreement",
}
NEEDED = {"yes": "always", "no": "optional", "images": "for images", "split": "for the released split"}
FOLDER = {"main": "`root`", "linked": "`linked_root`", "either": "either"}
#: Name of a source in running text: the title without what stands behind it.
SITES = [name for name, about in sources().items() if about.modality == "chest"]


def text_of(name):
    return PAGES[name].read_text(encoding="utf-8")


# -- the rows that a page must have -----------------------------------------------------------------------


def source_rows():
    return [
        (f"[{s.title}]({s.address})", f"`{s.name}`", s.owner, s.terms, CREDENTIAL[s.credential])
        for s in sources().values()
    ]


def recorded_rows():
    fields = ("patient", "age", "sex", "race", "ethnicity", "insurance", "skin_type", "view")
    return [
        (f"`{s.name}`", *(s.records[field] or "not known" for field in fields)) for s in sources().values()
    ]


def label_rows():
    return [(f"`{s.name}`", s.labels, s.note or "–") for s in sources().values()]


def file_rows(source):
    return [
        (f"`{file.patterns[0]}`", file.holds, NEEDED[file.needed], FOLDER[file.root])
        for file in source_files(source)
    ]


def files_section(source):
    """The heading and the table of one source, as the page has them."""
    head = "| File | Holds | Needed | Folder |\n|---|---|---|---|\n"
    body = "\n".join(f"| {' | '.join(row)} |" for row in file_rows(source))
    return f"### {sources()[source].title}\n\n{head}{body}"


def word_rows(table):
    """Words of an ordered rule by the value that they lead to, in the order of the values."""
    rules = load_table(table)
    found = {}
    for words, match, value in zip(rules["words"], rules["match"], rules["value"], strict=True):
        found.setdefault(value, []).append(words + (" (alone)" if match == "whole" else ""))
    return [(value, "; ".join(words)) for value, words in found.items()]


def code_rows():
    rows = []
    for field, table in (("sex", "sex_codes"), ("skin type", "skin_type_codes")):
        codes = load_table(table)
        for value in dict.fromkeys(codes["value"]):
            rows.append((field, ", ".join(codes.loc[codes["value"] == value, "code"]), value))
    return rows


def finding_rows():
    """How many names of each chest source count for each finding; a name alone is shown."""
    names = load_table("finding_names")
    rows = []
    for finding in FINDINGS["chest"]:
        cells = []
        for site in SITES:
            found = list(names.loc[(names["source"] == site) & (names["finding"] == finding), "recorded"])
            cells.append("–" if not found else f"{len(found)} names" if len(found) > 1 else found[0])
        rows.append((f"`{finding}`", *cells))
    return rows


def split_rows():
    kinds = {
        "released": "as released",
        "hashed": "hash of the subject",
        "fractions": "fixed shares of the subjects",
    }
    shared = {"yes": "yes", "no": "no", "partly": "partly"}
    return [
        (
            f"`{name}`",
            shared[sources()[name].released_split],
            kinds[rules[0]],
            ", ".join(f"`{rule}`" for rule in ("default", *(r for r in rules if r != "fractions"))),
        )
        for name, rules in ((name, SPLITS[name]) for name in sources())
    ]


def profile_rows():
    return [
        (f"`{name}`", load_profile(name).title, ", ".join(f"`{s}`" for s in load_profile(name).sources))
        for name in ("demo", "tables", "open", "paper")
    ]


TABLES = {
    "data_access": {
        "sources": (("Source", "Name here", "From", "Terms", "You need"), source_rows),
        "recorded": (
            ("Source", "patient", "age", "sex", "race", "ethnicity", "insurance", "skin type", "view"),
            recorded_rows,
        ),
        "labels": (("Source", "How the labels came about", "Note"), label_rows),
    },
    "data_harmonisation": {
        "race": (("Becomes", "Words, in this order"), lambda: word_rows("race_terms")),
        "insurance": (("Becomes", "Words, in this order"), lambda: word_rows("insurance_terms")),
        "view": (("Becomes", "Words, in this order"), lambda: word_rows("view_terms")),
        "codes": (("Field", "Recorded", "Becomes"), code_rows),
        "findings": (("Finding", *(f"`{site}`" for site in SITES)), finding_rows),
    },
    "data_splits": {
        "splits": (("Source", "Split in the release", "Default here", "`split` may be"), split_rows),
    },
    "own_study": {
        "profiles": (("Profile", "What it has", "Sources"), profile_rows),
    },
}


# -- tables ---------------------------------------------------------------------------------------------


def page_tables(text):
    """Heading and rows of every table of a page."""
    found = []
    for block in re.findall(r"(?:^\|.*\|\n)+", text, flags=re.MULTILINE):
        lines = [
            tuple(cell.strip() for cell in line.strip().strip("|").split("|")) for line in block.splitlines()
        ]
        found.append((lines[0], lines[2:]))
    return found


@pytest.mark.parametrize(("page", "table"), [(p, t) for p, tables in TABLES.items() for t in tables])
def test_a_table_of_the_page_is_that_of_the_data(page, table):
    heading, rows = TABLES[page][table]
    shown = [body for head, body in page_tables(text_of(page)) if head == heading]
    assert list(rows()) in shown


@pytest.mark.parametrize("source", list(sources()))
def test_files_of_a_source_are_those_of_the_registry(source):
    sections = re.split(r"^### ", text_of("data_access"), flags=re.MULTILINE)
    (section,) = [part for part in sections if part.startswith(f"{sources()[source].title}\n")]
    assert page_tables(section)[0][1] == file_rows(source)


def test_no_cell_of_the_registries_breaks_a_table():
    cells = [cell for row in (*source_rows(), *label_rows()) for cell in row]
    cells += [cell for source in sources() for row in file_rows(source) for cell in row]
    assert [cell for cell in cells if "|" in cell or "\n" in cell] == []


# -- keys, options, commands ----------------------------------------------------------------------------


def test_keys_of_a_profile_are_those_of_the_code():
    known = {
        "": Profile.model_fields,
        "sources": SourceSettings.model_fields,
        "labels": Labels.model_fields,
        "features": Features.model_fields,
        "sizes": Sizes.model_fields,
        "injection": InjectionSettings.model_fields,
    }
    expected = set(known[""]) - {"sources", "labels", "features", "sizes", "injection"}
    for key, fields in known.items():
        expected |= {
            f"{key}.<name>.{name}" if key == "sources" else f"{key}.{name}" for name in fields if key
        }
    (rows,) = [body for head, body in page_tables(text_of("own_study")) if head[0] == "Key"]
    told = [key for row in rows for key in re.findall(r"`([^`]+)`", row[0])]
    assert sorted(told) == sorted(expected)


def test_defaults_of_the_sizes_are_those_of_the_code():
    (rows,) = [body for head, body in page_tables(text_of("own_study")) if head[0] == "Key"]
    told = {
        match[1]: int(match[2].replace(",", ""))
        for row in rows
        for match in re.finditer(r"`sizes\.(\w+)` \(([\d,]+)\)", row[0])
    }
    assert told == Sizes().model_dump()


def test_the_example_profile_is_one(tmp_path, monkeypatch):
    (block,) = re.findall(r"^```yaml\n(.*?)^```", text_of("own_study"), flags=re.MULTILINE | re.DOTALL)
    path = tmp_path / "mine.yml"
    path.write_text(block, encoding="utf-8")
    profile = load_profile(path)
    assert profile.name == yaml.safe_load(block)["name"]
    assert profile.name not in profile_names()


def frame_help(*command):
    done = subprocess.run(
        [sys.executable, "-c", "from frame.cli import main; main()", *command, "--help"],
        env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"},
        capture_output=True, text=True, cwd=ROOT, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", done.stdout))


COMMANDS = (
    *("data check", "data phantom", "data build", "data counts"),
    *("encoders list", "encoders template", "features extract"),
    *("run", "notebook", "book", "doctor"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.replace(" ", "-"))
def test_options_of_a_command_exist_and_none_is_left_out(command):
    (rows,) = [body for head, body in page_tables(text_of("own_study")) if head[0] == "Command"]
    told = {
        option
        for row in rows
        if row[0].startswith(f"`frame {command}")
        for option in re.findall(r"--[a-z][a-z-]+", row[1])
    }
    everywhere = {"--profile", "--workspace", "--help"}
    assert told == frame_help(*command.split()) - everywhere


def test_the_table_of_commands_has_each_of_them():
    (rows,) = [body for head, body in page_tables(text_of("own_study")) if head[0] == "Command"]
    told = [
        re.match(r"`frame ([a-z]+(?: (?:check|phantom|build|counts|list|template|extract))?)", row[0])[1]
        for row in rows
    ]
    assert told == list(COMMANDS)


@pytest.mark.parametrize("page", PAGES)
def test_options_anywhere_on_the_page_exist(page):
    offered = set().union(*(frame_help(*command.split()) for command in COMMANDS))
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text_of(page))) - offered == set()


def test_the_variables_of_the_folders_are_those_of_the_profiles():
    shipped = [load_profile(name) for name in ("open", "paper")]
    given = {
        value
        for profile in shipped
        for settings in profile.sources.values()
        for value in (settings.root, settings.linked_root)
        if value is not None
    }
    told = set(re.findall(r"\$FRAME_\w+", "".join(text_of(page) for page in PAGES)))
    assert told == {value for value in given if value.startswith("$")}


# -- numbers and names in the text ------------------------------------------------------------------------


def test_shares_of_the_splits_are_those_of_the_code():
    text = text_of("data_splits")
    for shares in (HASHED_FRACTIONS, SUBJECT_FRACTIONS):
        assert " / ".join(f"{share:.2f}".rstrip("0") for share in shares.values()) in text


def test_the_default_policy_of_the_text_is_that_of_the_profiles():
    for name in profile_names():
        labels = load_profile(name).labels
        assert (labels.uncertain, labels.blank) == ("negative", "missing")
    assert "`uncertain: negative` and `blank: missing`" in text_of("data_harmonisation")


TRAPS = {
    "White or Caucasian": "White",
    "White, non-Hispanic": "White",
    "White, Hispanic": "White",
    "Other, Hispanic": "Hispanic or Latino",
    "Race and Ethnicity Unknown": None,
    "Patient Refused": None,
    "PORTUGUESE": "Other",
    "Pacific Islander, non-Hispanic": "Other",
}


def test_examples_of_races_on_the_page_are_what_the_rules_give():
    import pandas as pd

    from frame.cohorts.harmonise import race

    (rows,) = [body for head, body in page_tables(text_of("data_harmonisation")) if head[0] == "Recorded"]
    told = {row[0].strip("`"): None if row[1] == "missing" else row[1] for row in rows}
    assert told == TRAPS
    values = race(pd.Series(list(told))).values
    assert [None if pd.isna(value) else value for value in values] == list(told.values())


AGES = {"58": 58.0, "058Y": 58.0, "013M": 13 / 12, "411Y": None, "-1": None, "91": 91.0}


def test_examples_of_ages_on_the_page_are_what_the_rules_give():
    import pandas as pd

    from frame.cohorts.harmonise import ages

    values = ages(pd.Series(list(AGES))).values
    assert [None if pd.isna(value) else value for value in values] == list(AGES.values())
    text = text_of("data_harmonisation")
    assert [written for written in AGES if f"`{written}`" not in text] == []


def test_bands_of_the_page_are_those_of_the_code():
    from frame.cohorts.schema import LEVELS

    assert ", ".join(f"`{band}`" for band in LEVELS["age_band"]) in text_of("data_harmonisation")


def test_reasons_of_unreadable_images_are_those_of_the_code():
    from frame.cohorts.pixels import REASONS

    section = text_of("own_study").split("An image that cannot be read", 1)[1].split("\n\n", 2)
    assert re.findall(r"^- (.*)$", section[1], flags=re.MULTILINE) == list(REASONS)


def test_columns_of_a_manifest_are_named():
    from frame.cohorts.schema import BASE_COLUMNS

    (rows,) = [body for head, body in page_tables(text_of("data_harmonisation")) if head[0] == "Column"]
    told = [name for row in rows for name in re.findall(r"`(\w+)`", row[0])]
    assert told == list(BASE_COLUMNS)


def test_the_section_of_the_deviations_on_data_says_what_is_computed():
    from frame.figures.label_counts import compare_rules
    from frame.figures.printed_cohorts import addition_checks, rebuilt_counts
    from frame.figures.public_tables import public_table

    text = (ROOT / "book" / "deviations.md").read_text(encoding="utf-8").split("## In the data\n", 1)[1]
    (odd,) = addition_checks().query("outcome == 'does not add up'").to_dict("records")
    for number in (odd["total"], odd["printed"]):
        assert f"{number:,}" in text
    for row in rebuilt_counts().to_dict("records"):
        assert f"{row['printed_images']:,}" in text
        assert f"{row['images']:,}" in text
    bounds = compare_rules(public_table("chexpert"))
    assert f"{int((~bounds['possible_blank_out']).sum())} of the {len(bounds)} printed counts" in text

"""What the tables of ``data/`` about sources of images hold: registries, rules of harmonisation, terms."""

from __future__ import annotations

from frame.table_columns import COUNT, NOTE, TEXT, Column, Table, one_of

__all__ = ["COHORT_TABLES"]

SOURCE = Column("the name of a source such as nih_cxr14", r"[a-z]+(_?[a-z0-9]+)*")
ADDRESS = Column("a https address", r"https://\S+")
CITES = Column("numbers of the paper's list such as [25] and [60]", r"\[\d+\]( and \[\d+\])*")
RECORDED = one_of("yes", "linked", "partly", "no", blank=True)
KEY = Column("a key in small letters", r"[a-z]+(_[a-z]+)*")
PATTERNS = Column("relative paths with | between them", r"[^|/\s][^|\n]*(\|[^|/\s][^|\n]*)*")
WORDS = Column("words in small letters, one space between them", r"[a-z0-9]+( [a-z0-9]+)*")
CODE = Column("a code in small letters, or a whole number", r"[a-z]+|-?\d+")
MATCH = one_of("words", "whole")
NOT_RECORDED = "not recorded"

_RECORDS = ("patient", "age", "sex", "race", "ethnicity", "insurance", "skin_type", "view")

_SOURCES = Table(
    name="image_sources",
    file="image_sources.csv",
    meaning="One source of images: who gives it out, under which terms, and what it records.",
    origin="the paper's Methods and data statement, and the pages and licences of the releases",
    key=("name",),
    columns={
        "name": SOURCE,
        "title": TEXT,
        "modality": one_of("chest", "skin", "fundus"),
        "owner": TEXT,
        "address": ADDRESS,
        "terms": TEXT,
        "credential": one_of("none", "registration", "credentialed"),
        "cites": CITES,
        **{f"records_{name}": RECORDED for name in _RECORDS},
        "released_split": one_of("yes", "partly", "no"),
        "labels": TEXT,
        "note": NOTE,
    },
)

_FILES = Table(
    name="image_source_files",
    file="image_source_files.csv",
    meaning="One released file or folder of a source, where it is looked for, and when it is needed.",
    origin="the releases' own file names",
    key=("source", "key"),
    columns={
        "source": SOURCE,
        "key": KEY,
        "patterns": PATTERNS,
        "root": one_of("main", "linked", "either"),
        "needed": one_of("yes", "no", "images", "split"),
        "holds": TEXT,
    },
)


def _rules(name: str, field: str, *levels: str) -> Table:
    """Declare an ordered table of rules on words."""
    return Table(
        name=name,
        file=f"harmonisation/{name}.csv",
        meaning=f"One rule of {field}: words of a recorded text and what they mean; the first match wins.",
        origin="ours, after the paper's Methods and the texts of the releases",
        key=("words",),
        columns={"order": COUNT, "words": WORDS, "match": MATCH, "value": one_of(*levels), "reason": NOTE},
        rules=("order is the order of rows",),
    )


def _codes(name: str, field: str, *levels: str) -> Table:
    """Declare a table of codes that are matched as a whole."""
    return Table(
        name=name,
        file=f"harmonisation/{name}.csv",
        meaning=f"One recorded code of {field} and its category.",
        origin="the codes of the releases",
        key=("code",),
        columns={"code": CODE, "value": one_of(*levels), "reason": NOTE},
    )


_CHEST_FINDINGS = (
    *("atelectasis", "cardiomegaly", "consolidation", "edema", "enlarged_cardiomediastinum", "fracture"),
    *("lung_lesion", "lung_opacity", "pleural_effusion", "pleural_other", "pneumonia", "pneumothorax"),
    "support_devices",
)

_FINDING_NAMES = Table(
    name="finding_names",
    file="harmonisation/finding_names.csv",
    meaning="One label name of a source of chest radiographs, and a finding that it counts for, if any.",
    origin="ours; the names are those of the releases",
    key=("source", "recorded", "finding"),
    columns={
        "source": SOURCE,
        "recorded": TEXT,
        "finding": one_of(*_CHEST_FINDINGS, blank=True),
        "reason": NOTE,
    },
)

_RACE = ("White", "Black", "Asian", "Hispanic or Latino", "Other")

COHORT_TABLES = (
    _SOURCES,
    _FILES,
    _rules("race_terms", "race", *_RACE, NOT_RECORDED, "removed"),
    _rules("insurance_terms", "insurance", "Medicare", "Medicaid", "Private", "Other", NOT_RECORDED),
    _rules("ethnicity_terms", "ethnicity", "Hispanic", "non-Hispanic"),
    _rules("view_terms", "the view", "AP", "PA", "lateral"),
    _codes("sex_codes", "sex", "female", "male", NOT_RECORDED),
    _codes("skin_type_codes", "the Fitzpatrick skin type", "I-II", "III-IV", "V-VI", NOT_RECORDED),
    _FINDING_NAMES,
)

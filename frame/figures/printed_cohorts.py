"""The printed Table 1 by itself: do its counts add up, and which of them follow from a rule.

Sums are those of the table and of the numbers in the text around it. A rule leads from what an owner releases
to a printed count; where none is known, the shares are shown instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from frame.errors import InputError
from frame.tables import load_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "COLUMNS",
    "LEVELS",
    "PRINTED_NAMES",
    "SECTIONS",
    "SPLITS",
    "addition_checks",
    "printed_cell",
    "printed_test_shares",
    "rebuilt_counts",
    "rule_checks",
]

#: Source -> row of Table 1.
PRINTED_NAMES: Final = {
    "mimic_cxr": "MIMIC-CXR",
    "chexpert": "CheXpert",
    "nih_cxr14": "NIH ChestX-ray14",
    "padchest": "PadChest",
    "vindr_cxr": "VinDr-CXR",
    "vindr_pcxr": "VinDr-PCXR",
    "ddi": "DDI",
    "fitzpatrick17k": "Fitzpatrick17k",
    "isic_2019": "ISIC 2019",
    "fairvision": "Harvard-FairVision",
}
#: Columns of Table 1.
COLUMNS: Final = ("images", "train", "validation", "test", "test_patients")
SPLITS: Final = ("train", "validation", "test")

_CHEST: Final = "Chest radiography, six sites"
_SUBGROUPS: Final = "Chest radiograph subgroups"
_SKIN: Final = "Dermatology, three sources"
_FUNDUS: Final = "Retinal fundus, one source"
_TOTALS: Final = {"chest": "All chest radiographs", "skin": "All dermatology"}
#: Modality -> section of its sources.
SECTIONS: Final = {"chest": _CHEST, "skin": _SKIN, "fundus": _FUNDUS}
#: Level as printed -> attribute and level here. Every age band here begins with its lower end.
LEVELS: Final = {
    "Sex, female": ("sex", "female"),
    "Sex, male": ("sex", "male"),
    "Sex, not recorded": ("sex", "not recorded"),
    "Age, 0–40": ("age", "<40"),
    "Age, 40–60": ("age", "40-<60"),
    "Age, 60–80": ("age", "60-<80"),
    "Age, 80 and over": ("age", ">=80"),
    "Age, not recorded": ("age", "not recorded"),
    "Race, White": ("race", "White"),
    "Race, Black": ("race", "Black"),
    "Race, Asian": ("race", "Asian"),
    "Race, Hispanic or Latino": ("race", "Hispanic or Latino"),
    "Race, Other": ("race", "Other"),
    "Skin type I–II": ("skin_type", "I-II"),
    "Skin type III–IV": ("skin_type", "III-IV"),
    "Skin type V–VI": ("skin_type", "V-VI"),
}
#: Images that the owners say they release: VinDr-PCXR for training and test, ChestX-ray14 by its two lists.
_RELEASED: Final = {
    ("vindr_pcxr", "train"): 7_728,
    ("vindr_pcxr", "test"): 1_397,
    ("nih_cxr14", "train and validation"): 86_524,
    ("nih_cxr14", "test"): 25_596,
}


def addition_checks() -> pd.DataFrame:
    """Every sum that the printed Table 1 and the text around it must obey.

    Returns
    -------
    pandas.DataFrame
        ``kind``, ``checked``, ``column``, ``total`` (the sum of the parts), ``printed``, ``difference`` and
        ``outcome``: ``adds up``, ``does not add up``, or ``more, as it may be`` for patients of subgroups,
        since a patient can have images in several.
    """
    import pandas as pd

    checks = pd.DataFrame(
        [*_row_sums(), *_section_sums(), *_text_sums()],
        columns=["kind", "checked", "column", "total", "printed"],
    )
    checks["difference"] = checks["total"] - checks["printed"]
    checks["outcome"] = [_outcome(row) for row in checks.to_dict("records")]
    return checks


def _outcome(check: Mapping[Any, Any]) -> str:
    if check["difference"] == 0:
        return "adds up"
    repeated = check["kind"] == "subgroups" and check["column"] == "test_patients"
    return "more, as it may be" if repeated and check["difference"] > 0 else "does not add up"


def _row_sums() -> Iterator[tuple[str, str, str, int, int]]:
    for row in load_table("paper_table1").to_dict("records"):
        name = f"{row['row']} (fundus)" if row["section"] == _FUNDUS else row["row"]
        yield "splits", name, "images", sum(int(row[split]) for split in SPLITS), int(row["images"])


def _section_sums() -> Iterator[tuple[str, str, str, int, int]]:
    table = load_table("paper_table1")
    chest = table[(table["section"] == _CHEST) & (table["row"] != _TOTALS["chest"])]
    skin = table[(table["section"] == _SKIN) & table["row"].isin(PRINTED_NAMES.values())]
    fundus = table[table["section"] == _FUNDUS]
    groups = table[table["section"] == _SUBGROUPS]
    types = table[table["row"].str.startswith("Skin type")]
    parts: list[tuple[str, str, pd.DataFrame, pd.DataFrame]] = [
        ("sources", "six sites of chest radiographs", chest, _printed(_CHEST, _TOTALS["chest"])),
        ("sources", "three sources of dermatology", skin, _printed(_SKIN, _TOTALS["skin"])),
    ]
    for attribute in ("Sex", "Age", "Race"):
        levels = groups[groups["row"].str.startswith(f"{attribute},")]
        parts.append(
            (
                "subgroups",
                f"{attribute.lower()}, chest radiographs",
                levels,
                _printed(_CHEST, _TOTALS["chest"]),
            )
        )
    graded = skin[skin["row"].isin(["DDI", "Fitzpatrick17k"])]
    parts.append(("subgroups", "skin type, against DDI and Fitzpatrick17k", types, graded))
    races = fundus[fundus["row"].str.startswith("Race,")]
    parts.append(("subgroups", "race, fundus", races, _printed(_FUNDUS, "Harvard-FairVision")))
    for kind, checked, some, whole in parts:
        for column in COLUMNS:
            yield kind, checked, column, int(some[column].sum()), int(whole[column].sum())


def _text_sums() -> Iterator[tuple[str, str, str, int, int]]:
    """Sums of numbers in the text, against a total in the table or the text."""
    number = _numbers()
    table = load_table("paper_table1")
    ages = table[table["row"].isin([name for name in LEVELS if name.startswith("Age, ")])]
    with_age = int(ages.loc[ages["row"] != "Age, not recorded", "images"].sum())
    yield "text", "age bands, against images with an age", "images", with_age, number["cxr_age_available"]
    for checked, parts, whole in (
        ("views of chest radiographs", ("cxr_ap", "cxr_pa", "cxr_view_missing"), "cxr_images"),
        (
            "insurance of chest radiographs",
            tuple(f"cxr_insurance_{level}" for level in ("medicare", "private", "medicaid", "other")),
            "cxr_images",
        ),
        (
            "labels of dermatology",
            ("derm_malignant", "derm_benign", "derm_unlabeled"),
            "derm_images",
        ),
        ("sex, fundus", ("fundus_female", "fundus_male"), "fundus_images"),
        ("ethnicity, fundus", ("fundus_hispanic", "fundus_non_hispanic"), "fundus_images"),
        ("three modalities", ("cxr_images", "derm_images", "fundus_images"), "images_total"),
    ):
        yield "text", checked, "images", sum(number[part] for part in parts), number[whole]


def rule_checks() -> pd.DataFrame:
    """Printed counts that follow by a rule from what the owners release.

    Returns
    -------
    pandas.DataFrame
        ``row``, ``column``, ``rule``, ``expected`` (by the rule), ``printed``, ``follows``.
    """
    import pandas as pd

    from frame.cohorts.splits import SUBJECT_FRACTIONS

    number = _numbers()
    cases = {name: printed_cell(_SKIN, PRINTED_NAMES[name], "images") for name in ("ddi", "fitzpatrick17k")}
    lesions = number["derm_subjects"] - sum(cases.values())
    rows: list[tuple[str, str, str, int]] = []
    shares = list(SUBJECT_FRACTIONS.values())
    for name, n in cases.items():
        sizes = [round(share * n) for share in shares[:-1]]
        for split, size in zip(SPLITS, [*sizes, n - sum(sizes)], strict=True):
            rows.append((PRINTED_NAMES[name], split, f"{shares[SPLITS.index(split)]:g} of {n:,} cases", size))
    rest = lesions - sum(round(share * lesions) for share in shares[:-1])
    rows.append(("ISIC 2019", "test_patients", f"{shares[-1]:g} of {lesions:,} lesions", rest))
    pediatric = _RELEASED["vindr_pcxr", "train"]
    rows += [
        ("VinDr-PCXR", "train", f"{pediatric:,} released, less a tenth", pediatric - round(0.1 * pediatric)),
        ("VinDr-PCXR", "test", "as released", _RELEASED["vindr_pcxr", "test"]),
        ("NIH ChestX-ray14", "test", "as released", _RELEASED["nih_cxr14", "test"]),
        (
            "NIH ChestX-ray14",
            "train and validation",
            "as released, together",
            _RELEASED["nih_cxr14", "train and validation"],
        ),
    ]
    table = pd.DataFrame(rows, columns=["row", "column", "rule", "expected"])
    sections = {row["row"]: row["section"] for row in load_table("paper_table1").to_dict("records")}
    table["printed"] = [
        sum(printed_cell(sections[name], name, part) for part in column.split(" and "))
        for name, column, _, _ in rows
    ]
    table["follows"] = table["expected"] == table["printed"]
    return table


def printed_test_shares() -> pd.DataFrame:
    """What share of a site's patients and images is printed as its test set, beside what was released.

    Returns
    -------
    pandas.DataFrame
        For the four sites with patient ids: ``row``, ``released`` (does the release have a split: yes,
        partly, no), ``patients``, ``test_patients``, ``share_patients``, ``share_images`` (0 to 1).
    """
    import pandas as pd

    from frame.cohorts.sources import sources

    number = _numbers()
    rows = []
    for name, prefix in (
        ("mimic_cxr", "mimic"),
        ("chexpert", "chexpert"),
        ("nih_cxr14", "nih"),
        ("padchest", "padchest"),
    ):
        row = PRINTED_NAMES[name]
        test, patients = printed_cell(_CHEST, row, "test_patients"), number[f"{prefix}_patients"]
        rows.append(
            {
                "row": row,
                "released": sources()[name].released_split,
                "patients": patients,
                "test_patients": test,
                "share_patients": test / patients,
                "share_images": printed_cell(_CHEST, row, "test") / printed_cell(_CHEST, row, "images"),
            }
        )
    return pd.DataFrame(rows)


def rebuilt_counts() -> pd.DataFrame:
    """Printed sizes of three sites beside what their public tables give.

    Returns
    -------
    pandas.DataFrame
        ``row``; ``printed_images``, ``images``, ``more_images``; ``printed_patients``, ``patients``,
        ``more_patients``; ``left_out`` in words.
    """
    import pandas as pd

    from frame.figures.public_tables import public_table

    number = _numbers()
    rows = []
    for name, prefix in (("nih_cxr14", "nih"), ("chexpert", "chexpert"), ("padchest", "padchest")):
        table = public_table(name)
        left = "; ".join(f"{row.n_images:,} {row.reason}" for row in table.left_out.itertuples())
        images, patients = number[f"{prefix}_images"], number[f"{prefix}_patients"]
        rows.append(
            {
                "row": PRINTED_NAMES[name],
                "printed_images": images,
                "images": table.n_images,
                "more_images": table.n_images - images,
                "printed_patients": patients,
                "patients": table.n_patients,
                "more_patients": table.n_patients - patients,
                "left_out": left or "none",
            }
        )
    return pd.DataFrame(rows)


# -- one cell -------------------------------------------------------------------------------------------


def _printed(section: str, row: str) -> pd.DataFrame:
    table = load_table("paper_table1")
    found: pd.DataFrame = table[(table["section"] == section) & (table["row"] == row)]
    return found


def printed_cell(section: str, row: str, column: str) -> int:
    """One count of the printed Table 1.

    Raises
    ------
    frame.InputError
        If the table has no such row.
    """
    found = _printed(section, row)
    if len(found) != 1:
        raise InputError(f"The printed Table 1 has no row {row!r} under {section!r}.")
    return int(found[column].iloc[0])


def _numbers() -> dict[str, int]:
    """Printed whole numbers by id."""
    table = load_table("paper_numbers")
    return {
        str(row.id): int(str(row.value).replace(",", ""))
        for row in table.itertuples()
        if str(row.value).replace(",", "").isdigit()
    }

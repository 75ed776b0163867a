"""Which tests are corrected together: one table of families, and the correction within them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from frame.errors import InputError
from frame.inference.multiplicity import benjamini_hochberg

if TYPE_CHECKING:
    import pandas as pd

#: Measures that are the same test as another one: a difference in FNR is that in TPR.
SAME_TEST: Mapping[str, str] = {"fnr": "tpr", "specificity": "fpr"}

_PER_ATTRIBUTE = "paper, Statistical analysis: one experiment and one attribute"
_BROAD = "paper, Statistical analysis: one of the four broader families"
_OURS = "ours: the paper names no family for it"


@dataclass(frozen=True)
class Rule:
    """What splits the tests of an experiment into families.

    Attributes
    ----------
    splits : tuple of str
        Any of ``attribute``, ``measure`` and ``operator``; empty: one family for the experiment.
    source : str
        Where the rule comes from.
    """

    splits: tuple[str, ...]
    source: str


#: Experiment -> what splits its tests into families.
RULES: Mapping[str, Rule] = {
    "reference": Rule(("attribute",), _PER_ATTRIBUTE),
    "acquisition": Rule(("attribute",), _PER_ATTRIBUTE),
    "worst-group": Rule(("attribute",), _PER_ATTRIBUTE),
    "injection": Rule(("attribute", "operator"), f"{_PER_ATTRIBUTE}; Figure 4: within each operator"),
    "mitigation change": Rule((), _BROAD),
    "mitigation achievable": Rule((), _BROAD),
    "transfer": Rule((), _BROAD),
    "reference against observed": Rule((), _BROAD),
    "claims": Rule(("measure",), "paper, Published audit: the claims that share a metric"),
    "scores": Rule(("measure",), "ours: every score, label and attribute of one call, per measure"),
    "pretraining": Rule(("attribute",), _OURS),
    "unfreezing": Rule(("attribute",), _OURS),
    "synthetic": Rule((), _OURS),
    "predictor": Rule((), _OURS),
}


@dataclass(frozen=True)
class Family:
    """Tests that are corrected together.

    Attributes
    ----------
    name : str
        As in the column ``family`` of a result table.
    experiment : str
        Key of :data:`RULES`.
    attribute : str
        Attribute of the family, or what it spans.
    size : int or None
        Tests in the paper's family; None where the paper does not say.
    made_of : str
        How the size is made up.
    source : str
        Where family and size come from.
    """

    name: str
    experiment: str
    attribute: str
    size: int | None
    made_of: str
    source: str


def _reference(attribute: str, size: int | None, made_of: str) -> Family:
    source = f"{_PER_ATTRIBUTE}; Results, step one" if size else _PER_ATTRIBUTE
    return Family(f"reference: {attribute}", "reference", attribute, size, made_of, source)


def _each(experiment: str, attributes: tuple[str, ...], made_of: str) -> tuple[Family, ...]:
    source = RULES[experiment].source
    return tuple(Family(f"{experiment}: {a}", experiment, a, None, made_of, source) for a in attributes)


def _claims(measure: str, size: int) -> Family:
    made_of = "claims of the published record with this measure"
    source = "paper, Published audit; counted in Supplementary Table 7"
    return Family(f"claims: {measure}", "claims", "every attribute", size, made_of, source)


def _broad(experiment: str, attribute: str, made_of: str) -> Family:
    return Family(experiment, experiment, attribute, None, made_of, _BROAD)


_EVERY = "every attribute"
#: The families of the paper that its text defines. It counts 41; the rest follow from :data:`RULES`.
FAMILIES: tuple[Family, ...] = (
    _reference("race", 243, "130 frozen + 104 fine-tuned + 9 funduscopy"),
    _reference("age", 252, "130 frozen + 104 fine-tuned + 9 dermatology + 9 funduscopy"),
    _reference(
        "sex", 122, "104 fine-tuned (2 encoders x 4 levels x 13 findings) + 9 dermatology + 9 funduscopy"
    ),
    _reference("insurance", None, "frozen combinations of the chest radiograph pool"),
    _reference("skin type", 9, "9 dermatology"),
    _reference("ethnicity", 9, "9 funduscopy"),
    *_each(
        "acquisition",
        ("race", "age", "view", "site"),
        "2 encoders x 13 findings, each against the pooled value or its own reference",
    ),
    *_each(
        "worst-group",
        ("race", "age", "sex"),
        "comparisons of pretraining objectives and of unfreezing levels",
    ),
    Family(
        "injection: race: decodability",
        "injection",
        "race",
        None,
        "quantities of an encoder against strength",
        RULES["injection"].source,
    ),
    Family(
        "injection: race: entanglement",
        "injection",
        "race",
        None,
        "quantities of an encoder against strength",
        RULES["injection"].source,
    ),
    _broad(
        "mitigation change",
        _EVERY,
        "paired changes: frozen panel, both smaller modalities, injection",
    ),
    _broad(
        "mitigation achievable",
        _EVERY,
        "reductions: frozen panel, both smaller modalities, injection",
    ),
    _broad("transfer", _EVERY, "the predictor of the chest radiographs in dermatology and funduscopy"),
    _broad("reference against observed", _EVERY, "reference against observed difference over combinations"),
    _claims("auroc", 36),
    _claims("tpr", 29),
    _claims("fpr", 24),
)


def family_of(
    experiment: str,
    *,
    attribute: str | None = None,
    measure: str | None = None,
    operator: str | None = None,
) -> str:
    """Name of the family that a test belongs to.

    Parameters
    ----------
    experiment : str
        Key of :data:`RULES`.
    attribute, measure, operator : str, optional
        What the test is about. Needed where they split the experiment into families, ignored elsewhere.
        A measure that is the same test as another (FNR as TPR, specificity as FPR) gives the other's
        family.

    Returns
    -------
    str
        For example ``reference: race``, ``claims: tpr`` or ``transfer``.

    Raises
    ------
    InputError
        If the experiment is unknown or something that splits it is missing.
    """
    if experiment not in RULES:
        listed = ", ".join(repr(name) for name in RULES)
        raise InputError(f"experiment is {experiment!r}; allowed are {listed}.")
    named = {"attribute": attribute, "measure": measure, "operator": operator}
    if measure is not None:
        named["measure"] = SAME_TEST.get(measure, measure)
    parts = [experiment]
    for split in RULES[experiment].splits:
        part = named[split]
        if not part:
            raise InputError(f"the families of {experiment!r} are split by {split}; name the {split}.")
        parts.append(part)
    return ": ".join(parts)


def families_table() -> pd.DataFrame:
    """The families of :data:`FAMILIES` as a table, one row each.

    Returns
    -------
    DataFrame
        Columns name, experiment, attribute, size (missing where the paper does not say), made_of, source.
    """
    import pandas as pd

    table = pd.DataFrame([vars(family) for family in FAMILIES])
    return table.astype({"size": "Int64"})


def correct(
    table: pd.DataFrame, family: str = "family", *, p: str = "p", test: str | None = None
) -> pd.DataFrame:
    """Add ``p_fdr``: p corrected by Benjamini and Hochberg within each family.

    Parameters
    ----------
    table : DataFrame
        One row per test.
    family, p : str
        Columns with the family and the uncorrected p. A missing p is a test that was not made: it
        stays missing and does not count in its family.
    test : str, optional
        Column that names the test. Rows of a family with the same name are one test shown twice, as the
        differences in TPR and in FNR: it counts once, and all its rows carry the same ``p_fdr``.

    Returns
    -------
    DataFrame
        A copy with the column ``p_fdr``, rows and index as they were.

    Raises
    ------
    InputError
        If a column is missing, a family is blank, a p lies outside [0, 1], or rows of one test differ
        in p.
    """
    for name in (family, p, *([test] if test else [])):
        if name not in table.columns:
            raise InputError(f"the table of tests has no column {name!r}; it has {list(table.columns)}.")
    blank = int((table[family].isna() | (table[family].astype(str).str.strip() == "")).sum())
    if blank:
        raise InputError(f"{blank} tests have no family; give every test one in the column {family!r}.")
    values = table[p].to_numpy(dtype=np.float64, na_value=np.nan)
    outside = values[(values < 0.0) | (values > 1.0)]
    if len(outside):
        raise InputError(f"p is {outside[0]:g} in the table of tests; it must be between 0 and 1.")
    adjusted = np.full(len(table), np.nan)
    for _, rows in table.groupby(family, sort=False).indices.items():
        if test is None:
            adjusted[rows] = benjamini_hochberg(values[rows])
            continue
        _, first, shown = np.unique(
            table[test].to_numpy()[rows].astype(str), return_index=True, return_inverse=True
        )
        once = values[rows][first]
        if not np.array_equal(once[shown], values[rows], equal_nan=True):
            raise InputError(f"rows of one test differ in p; they must agree where {test!r} is the same.")
        adjusted[rows] = benjamini_hochberg(once)[shown]
    return table.assign(p_fdr=adjusted)

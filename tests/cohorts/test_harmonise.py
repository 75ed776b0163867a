"""Harmonisation: every race string of the two sources that record race, the traps, and the odd ages."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frame.cohorts import harmonise
from frame.cohorts.schema import LEVELS
from frame.errors import InputError
from frame.tables import check_table, load_table

MIMIC_IV = {
    "AMERICAN INDIAN/ALASKA NATIVE": "Other",
    "ASIAN": "Asian",
    "ASIAN - ASIAN INDIAN": "Asian",
    "ASIAN - CHINESE": "Asian",
    "ASIAN - KOREAN": "Asian",
    "ASIAN - SOUTH EAST ASIAN": "Asian",
    "BLACK/AFRICAN": "Black",
    "BLACK/AFRICAN AMERICAN": "Black",
    "BLACK/CAPE VERDEAN": "Black",
    "BLACK/CARIBBEAN ISLAND": "Black",
    "HISPANIC OR LATINO": "Hispanic or Latino",
    "HISPANIC/LATINO - CENTRAL AMERICAN": "Hispanic or Latino",
    "HISPANIC/LATINO - COLUMBIAN": "Hispanic or Latino",
    "HISPANIC/LATINO - CUBAN": "Hispanic or Latino",
    "HISPANIC/LATINO - DOMINICAN": "Hispanic or Latino",
    "HISPANIC/LATINO - GUATEMALAN": "Hispanic or Latino",
    "HISPANIC/LATINO - HONDURAN": "Hispanic or Latino",
    "HISPANIC/LATINO - MEXICAN": "Hispanic or Latino",
    "HISPANIC/LATINO - PUERTO RICAN": "Hispanic or Latino",
    "HISPANIC/LATINO - SALVADORAN": "Hispanic or Latino",
    "MULTIPLE RACE/ETHNICITY": "Other",
    "NATIVE HAWAIIAN OR OTHER PACIFIC ISLANDER": "Other",
    "OTHER": "Other",
    "PATIENT DECLINED TO ANSWER": None,
    "PORTUGUESE": "Other",
    "SOUTH AMERICAN": "Other",
    "UNABLE TO OBTAIN": None,
    "UNKNOWN": None,
    "WHITE": "White",
    "WHITE - BRAZILIAN": "White",
    "WHITE - EASTERN EUROPEAN": "White",
    "WHITE - OTHER EUROPEAN": "White",
    "WHITE - RUSSIAN": "White",
}
CHEXPERT = {
    "American Indian or Alaska Native": "Other",
    "Asian": "Asian",
    "Asian - Historical Conv": "Asian",
    "Asian, Hispanic": "Asian",
    "Asian, non-Hispanic": "Asian",
    "Black or African American": "Black",
    "Black, Hispanic": "Black",
    "Black, non-Hispanic": "Black",
    "Native American, Hispanic": "Hispanic or Latino",
    "Native American, non-Hispanic": "Other",
    "Native Hawaiian or Other Pacific Islander": "Other",
    "Other": "Other",
    "Other, Hispanic": "Hispanic or Latino",
    "Other, non-Hispanic": "Other",
    "Pacific Islander, Hispanic": "Hispanic or Latino",
    "Pacific Islander, non-Hispanic": "Other",
    "Patient Refused": None,
    "Race and Ethnicity Unknown": None,
    "Unknown": None,
    "White": "White",
    "White or Caucasian": "White",
    "White, Hispanic": "White",
    "White, non-Hispanic": "White",
}
#: Ways of saying that somebody is not Hispanic, or that nothing is known.
NOT_HISPANIC = (
    *("Non-Hispanic or Latino", "Non-Hispanic/Latino", "Non-Latino/Hispanic", "Not Latino or Hispanic"),
    *("Neither Hispanic nor Latino", "Not of Hispanic, Latino, or Spanish origin", "non\u2011Hispanic"),
    *("Not Hispanic / Latino", "Not  of\u00a0Hispanic origin", "non\u00adHispanic", "Non-Latinx"),
)
NOTHING_KNOWN = (
    *(
        "Declines to State",
        "Prefer not to answer",
        "Not Available",
        "Unspecified",
        "Undisclosed",
        "Not known",
    ),
    *("N/A", "Not disclosed"),
)
TRAPS = {
    **dict.fromkeys(NOT_HISPANIC, None),
    **{f"White, {text}": "White" for text in NOT_HISPANIC},
    **{f"Other - {text}": "Other" for text in NOT_HISPANIC},
    **dict.fromkeys(NOTHING_KNOWN, None),
    "non-Caucasian": None,
    "not African American": None,
    "White\u2013Brazilian": "White",
    "His\u00adpanic": "Hispanic or Latino",
    "Hispanic\u200b": "Hispanic or Latino",
    "\uff37\uff48\uff49\uff54\uff45": "White",
    "White\u00a0or  Caucasian": "White",
    "White/Asian": "White",
    "": None,
    "   ": None,
    "?": None,
    "nan": None,
    "Caucasian": "White",
    "Eurasian": "Other",
    "Blackfoot": "Other",
    "non-White": None,
    "Not Hispanic or Latino": None,
    "non-Hispanic White": "White",
    "nonhispanic": None,
    "NON‐HISPANIC BLACK": "Black",
    "African American": "Black",
    "South African": "Other",
    "Latina": "Hispanic or Latino",
    "black\u00a0or african american": "Black",
}


def level(value):
    return None if pd.isna(value) else value


def test_the_two_lists_are_complete():
    assert (len(MIMIC_IV), len(CHEXPERT)) == (33, 23)


@pytest.mark.parametrize(("text", "expected"), (MIMIC_IV | CHEXPERT | TRAPS).items())
@pytest.mark.parametrize(
    "change", [str, str.lower, str.upper, "  {} ".format], ids=["as", "lower", "upper", "pad"]
)
def test_race(text, expected, change):
    found = harmonise.race(pd.Series([change(text)]))
    assert level(found.values.iloc[0]) == expected
    assert harmonise.pooled_race(found.values).tolist() == [expected or "Other"]


@pytest.mark.parametrize(
    ("race", "ethnicity", "expected"),
    [
        ("Other", "Hispanic/Latino", "Hispanic or Latino"),
        ("", "Hispanic/Latino", "Hispanic or Latino"),
        ("Unknown", "Hispanic/Latino", "Hispanic or Latino"),
        ("White", "Hispanic/Latino", "White"),
        ("Other", "Non-Hispanic/Non-Latino", "Other"),
        ("Other", "Not Hispanic", "Other"),
        ("Other", "Unknown", "Other"),
        ("", "Non-Hispanic/Non-Latino", None),
        ("Other", None, "Other"),
    ],
)
def test_race_with_a_separate_ethnicity(race, ethnicity, expected):
    found = harmonise.race(pd.Series([race]), pd.Series([ethnicity], dtype="str"))
    assert level(found.values.iloc[0]) == expected


def test_race_and_ethnicity_belong_to_the_same_rows():
    with pytest.raises(InputError, match="one row for each other"):
        harmonise.race(pd.Series(["White"]), pd.Series(["Hispanic"], index=[5]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Medicare", "Medicare"),
        ("Medicaid", "Medicaid"),
        ("Private", "Private"),
        ("Private Insurance", "Private"),
        ("No charge", "Other"),
        ("Other", "Other"),
        ("Workers Compensation", "Other"),
        *((text, None) for text in NOTHING_KNOWN),
        ("Unknown", None),
        ("", None),
        (None, None),
    ],
)
def test_insurance(text, expected):
    found = harmonise.insurance(pd.Series([text], dtype="str")).values
    assert level(found.iloc[0]) == expected
    assert harmonise.pooled_insurance(found).tolist() == [expected or "Other"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((text, "female") for text in ("F", "f", "Female", "FEMALE", " female ")),
        *((text, "male") for text in ("M", "m", "Male", "MALE")),
        *((text, None) for text in ("O", "U", "Unknown", "Other", "", None, "FM", "M F", "1")),
    ],
)
def test_sex(text, expected):
    assert level(harmonise.sex(pd.Series([text], dtype="str")).values.iloc[0]) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(
            (text, "AP")
            for text in ("AP", "ap", "AP_horizontal", "AP AXIAL", "AP LLD", "AP RLD", "antero-posterior")
        ),
        *((text, "PA") for text in ("PA", "PA LLD", "PA RLD", "POSTEROANTERIOR", "postero-anterior")),
        *((text, "lateral") for text in ("LATERAL", "LL", "RL", "L", "XTABLE LATERAL", "Lateral")),
        *((text, "unknown") for text in ("", None, "COSTAL", "SWIMMERS", "LAO", "APEX", "PARIETAL", "UNK")),
    ],
)
def test_view(text, expected):
    assert harmonise.view(pd.Series([text], dtype="str")).values.tolist() == [expected]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        *((code, "I-II") for code in ("1", "2", "12", 1, 2.0)),
        *((code, "III-IV") for code in ("3", "4", "34", "4.0", 34)),
        *((code, "V-VI") for code in ("5", "6", "56")),
        *((code, None) for code in ("-1", -1, -1.0, "0", "7", "", np.nan, "23", "1.5")),
    ],
)
def test_skin_type(code, expected):
    assert level(harmonise.skin_type(pd.Series([code])).values.iloc[0]) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hispanic", "Hispanic"),
        ("Non-Hispanic", "non-Hispanic"),
        ("Non-Hispanic/Non-Latino", "non-Hispanic"),
        ("Hispanic/Latino", "Hispanic"),
        ("Not Hispanic or Latino", "non-Hispanic"),
        ("Unknown", None),
        ("", None),
    ],
)
def test_ethnicity(text, expected):
    assert level(harmonise.ethnicity(pd.Series([text])).values.iloc[0]) == expected


@pytest.mark.parametrize("text", NOT_HISPANIC)
def test_ways_of_saying_not_hispanic(text):
    assert level(harmonise.ethnicity(pd.Series([text])).values.iloc[0]) == "non-Hispanic"
    both = harmonise.race(pd.Series(["Other"]), pd.Series([text]))
    assert both.values.tolist() == ["Other"]


# --- ages


@pytest.mark.parametrize(
    ("text", "years", "kind"),
    [
        ("58", 58, "number in years"),
        (58, 58, "number in years"),
        (63.9, 63.9, "number in years"),
        ("058Y", 58, "DICOM age in years"),
        ("058y", 58, "DICOM age in years"),
        ("011M", 11 / 12, "DICOM age in months"),
        ("013M", 13 / 12, "DICOM age in months"),
        ("003W", 21 / 365.25, "DICOM age in weeks"),
        ("020D", 20 / 365.25, "DICOM age in days"),
        ("000D", 0, "DICOM age in days"),
        ("91", 91, "number in years"),
        ("120", 120, "number in years"),
        ("121", None, "above 120 years"),
        ("414", None, "above 120 years"),
        ("411Y", None, "above 120 years"),
        ("199Y", None, "above 120 years"),
        ("-1", None, "below 0 years"),
        ("", None, "(blank)"),
        (None, None, "(blank)"),
        (np.nan, None, "(blank)"),
        ("58 Y", 58, "DICOM age in years"),
        ("Y", None, "no age"),
        ("058X", None, "no age"),
        ("nan", None, "no age"),
        ("inf", None, "no age"),
        ("1e2", None, "no age"),
        ("5 8", None, "no age"),
    ],
)
def test_an_age(text, years, kind):
    found = harmonise.ages(pd.Series([text], dtype=object))
    age = found.values.iloc[0]
    assert np.isnan(age) if years is None else age == pytest.approx(years, abs=1e-12)
    assert found.tally["recorded"].tolist() == [kind]
    assert found.tally["value"].isna().tolist() == [years is None]
    assert harmonise.age_band(found.values).isna().tolist() == [years is None]


def test_zero_can_stand_for_unknown_and_is_then_in_no_band():
    recorded = pd.Series(["0", "0.0", "000Y", "000D", "1"])
    as_age = harmonise.ages(recorded).values
    unknown = harmonise.ages(recorded, zero_is_unknown=True)
    assert as_age.tolist() == [0, 0, 0, 0, 1]
    assert unknown.values.isna().tolist() == [True, True, True, False, False]
    assert harmonise.age_band(unknown.values).isna().tolist() == [True, True, True, False, False]
    counts = unknown.tally.set_index("recorded")["n_images"]
    assert counts["0 years, which stands for unknown"] == 3


def test_bands_are_half_open():
    ages = pd.Series([0, 39.999, 40, 59.999, 60, 79.999, 80, 120, 120.5, -0.1, np.nan])
    assert [level(band) for band in harmonise.age_band(ages)] == [
        *("<40", "<40", "40-<60", "40-<60", "60-<80", "60-<80", ">=80", ">=80"),
        *(None, None, None),
    ]


def test_a_unit_of_plain_numbers():
    assert harmonise.ages(pd.Series(["24", "024M", "002Y"]), unit="months").values.tolist() == [2, 2, 2]
    with pytest.raises(InputError, match="unit is 'hours'; it must be one of years, months, weeks, days"):
        harmonise.ages(pd.Series(["1"]), unit="hours")


@given(st.lists(st.text(max_size=12) | st.none() | st.integers(-200, 500).map(str), max_size=30))
def test_every_age_is_in_range_or_counted_as_missing(texts):
    found = harmonise.ages(pd.Series(texts, dtype=object))
    assert found.values.dropna().between(0, 120).all()
    assert found.tally["n_images"].sum() == len(texts)
    kept = found.tally["value"].notna()
    assert found.tally.loc[kept, "n_images"].sum() == found.values.notna().sum()
    assert harmonise.age_band(found.values).notna().sum() == found.values.notna().sum()


# --- all fields

FIELDS = {
    "race": (harmonise.race, LEVELS["race_recorded"]),
    "insurance": (harmonise.insurance, LEVELS["insurance_recorded"]),
    "ethnicity": (harmonise.ethnicity, LEVELS["ethnicity"]),
    "sex": (harmonise.sex, LEVELS["sex"]),
    "view": (harmonise.view, (*LEVELS["view"], "lateral")),
    "skin_type": (harmonise.skin_type, LEVELS["skin_type"]),
}
WORDS = st.sampled_from(
    [
        "white",
        "Caucasian",
        "asian",
        "non-",
        "Hispanic",
        "unknown",
        "AP",
        "L",
        "F",
        "12",
        "/",
        ", ",
        " ",
        "é",
        "",
    ]
)


@pytest.mark.parametrize("name", FIELDS)
@given(texts=st.lists(st.lists(WORDS, max_size=4).map("".join) | st.text(max_size=8), max_size=12))
def test_any_text_becomes_a_level_or_missing_and_is_counted(name, texts):
    function, levels = FIELDS[name]
    recorded = pd.Series(texts, dtype="str", index=np.arange(len(texts)) * 3 + 1)
    found = function(recorded)
    assert found.values.index.equals(recorded.index)
    assert set(found.values.dropna()) <= set(levels)
    assert found.tally["n_images"].sum() == len(texts)
    assert (found.tally["field"] == name).all()
    # A text means the same in any company and in any order.
    again = function(recorded.iloc[::-1])
    assert again.values.iloc[::-1].equals(found.values)
    assert again.tally.equals(found.tally)


@pytest.mark.parametrize("name", FIELDS)
def test_the_tally_shows_no_text_that_may_be_an_id_or_a_note(name):
    function, _ = FIELDS[name]
    secret = ["90000017", "patient90017", "white 90000017", "a note " * 20, "p10/p10000032"]
    shown = function(pd.Series(secret)).tally["recorded"]
    assert set(shown) <= {"(text with digits)", "(long text)"}


def test_the_tally_shows_recorded_texts_and_blanks():
    tally = harmonise.race(pd.Series(["WHITE", "WHITE", "", None, "PORTUGUESE", "Martian"])).tally
    rows = [(row.recorded, level(row.value), row.n_images) for row in tally.itertuples()]
    assert rows == [
        ("(blank)", None, 2),
        ("WHITE", "White", 2),
        ("Martian", "Other", 1),
        ("PORTUGUESE", "Other", 1),
    ]


def test_an_empty_column_is_harmonised():
    for function, _ in FIELDS.values():
        found = function(pd.Series([], dtype="str"))
        assert len(found.values) == len(found.tally) == 0


# --- the rules as tables

RULES = ("race_terms", "insurance_terms", "ethnicity_terms", "view_terms")


@pytest.mark.parametrize("table", RULES)
def test_no_rule_is_hidden_by_an_earlier_one(table):
    """A rule on words that hold an earlier rule's words would never be reached."""
    rules = load_table(table)
    for late in rules.itertuples():
        for early in rules.itertuples():
            if early.order < late.order and early.match == "words":
                assert f" {early.words} " not in f" {late.words} ", (early.words, late.words)


@pytest.mark.parametrize("table", RULES)
def test_a_rule_gives_its_own_value(table):
    function = FIELDS[{"view_terms": "view"}.get(table, table.removesuffix("_terms"))][0]
    for rule in load_table(table).itertuples():
        found = level(function(pd.Series([rule.words])).values.iloc[0])
        assert found == (None if rule.value in ("removed", "not recorded") else rule.value)


@pytest.mark.parametrize("text", [*MIMIC_IV, *CHEXPERT])
def test_every_known_text_is_matched_by_a_rule(text):
    words = f" {' '.join(re.findall('[a-z]+', text.lower()))} "
    rules = load_table("race_terms")
    assert any(f" {rule} " in words for rule in rules["words"])


def test_rules_out_of_order_are_refused():
    rules = load_table("race_terms").astype({"order": str})
    rules.loc[3, "order"] = "9"
    with pytest.raises(InputError, match=r"race_terms\.csv, line 5 .*'order is the order of rows'"):
        check_table("race_terms", rules)

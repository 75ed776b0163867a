"""Printed numbers beside ours: every printed form, the edges of rounding, and what turns a verdict."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import frame.fidelity
from frame.errors import InputError
from frame.fidelity import (
    PAPER_COHORTS,
    VERDICTS,
    agreement,
    compare_numbers,
    compare_table,
    format_like,
    parse_printed,
    summary,
)
from frame.tables import load_table

# ---- taking a printed number apart


@pytest.mark.parametrize(
    ("text", "shape", "numbers"),
    [
        ("41", "number", [("=", "41", "1")]),
        ("1,152", "number", [("=", "1152", "1")]),
        ("702,206", "number", [("=", "702206", "1")]),
        ("0.20", "number", [("=", "0.20", "0.01")]),
        (".005", "number", [("=", "0.005", "0.001")]),
        ("<0.001", "number", [("<", "0.001", "0.001")]),
        (">0.999", "number", [(">", "0.999", "0.001")]),
        ("+0.008", "number", [("=", "0.008", "0.001")]),
        ("-0.140", "number", [("=", "-0.140", "0.001")]),
        ("−0.002", "number", [("=", "-0.002", "0.001")]),  # U+2212
        ("about 0.05", "number", [("about", "0.05", "0.01")]),
        ("25%", "number", [("=", "25", "1")]),
        ("25 %", "number", [("=", "25", "1")]),
        ("8.8e-5", "number", [("=", "0.000088", "0.000001")]),
        ("20 of 29", "count of a total", [("=", "20", "1"), ("=", "29", "1")]),
        ("-0.007 to -0.233", "range", [("=", "-0.007", "0.001"), ("=", "-0.233", "0.001")]),
        ("0.106 against 0.102", "pair", [("=", "0.106", "0.001"), ("=", "0.102", "0.001")]),
        ("384, 768", "list", [("=", "384", "1"), ("=", "768", "1")]),
        ("0.711 ± 0.013", "value and SD", [("=", "0.711", "0.001"), ("=", "0.013", "0.001")]),
        (
            "0.017 [0.005, 0.035]",
            "value and interval",
            [("=", "0.017", "0.001"), ("=", "0.005", "0.001"), ("=", "0.035", "0.001")],
        ),
        (
            "0.017 ± 0.008 [0.005, 0.035]",
            "value, SD and interval",
            [("=", text, "0.001") for text in ("0.017", "0.008", "0.005", "0.035")],
        ),
    ],
)
def test_every_printed_form_is_read(text, shape, numbers):
    printed = parse_printed(text)
    assert printed.text == text
    assert printed.shape == shape
    found = [(number.relation, number.value, number.step) for number in printed.numbers]
    assert [(relation, float(value), float(step)) for relation, value, step in found] == [
        (relation, float(value), float(step)) for relation, value, step in numbers
    ]


def test_every_number_of_the_paper_can_be_read():
    assert all(parse_printed(text).numbers for text in load_table("paper_numbers")["value"])


@pytest.mark.parametrize("text", ["", "yes", "0.1.2", "1 out of 3", "0.1 ± 0.2 [0.3]", "12,34", "1,2345"])
def test_other_text_is_refused(text):
    with pytest.raises(InputError, match="is not a printed number"):
        parse_printed(text)


# ---- agreement


@pytest.mark.parametrize(
    ("printed", "ours", "equal"),
    [
        # half a unit of the last digit, both ends included
        ("0.017", 0.0165, True),
        ("0.017", 0.0175, True),
        ("0.017", 0.01649999, False),
        ("0.017", 0.01750001, False),
        ("0.008", 0.008500000000000063, True),  # float noise on a tie, as in zong-2023-03
        ("0.20", 0.204, True),
        ("0.2", 0.24, True),
        ("0.20", 0.24, False),
        ("−0.002", -0.0018, True),
        ("−0.002", 0.0018, False),
        ("-0.000", 0.0004, True),
        ("25%", 25.2, True),
        ("25", 25.5, True),
        ("25", 25.51, False),
        # counts
        ("41", 41, True),
        ("41", 42, False),
        ("1,152", 1152, True),
        ("1,152", 1151, False),
        ("41", np.int64(41), True),
        ("41", np.int64(40), False),
        ("41", 41.0, True),
        ("41", 40.5, True),  # a median, rounded up in the text
        ("40", 40.5, True),  # and to even in the figure
        ("41", 40.4, False),
        # bounds and approximations
        ("<0.001", 0.0009999, True),
        ("<0.001", 0.001, False),
        (">0.999", 1.0, True),
        (">0.999", 0.999, False),
        ("about 0.05", 0.044, True),
        ("about 0.05", 0.061, False),
        # tiny numbers: the slack never swallows the tolerance
        ("9.0e-8", 9.04e-8, True),
        ("9.0e-8", 9.1e-8, False),
        # several numbers
        ("20 of 29", "20 of 29", True),
        ("20 of 29", "20 of 30", False),
        ("0.017 ± 0.008 [0.005, 0.035]", "0.0171 ± 0.00799 [0.00455, 0.0349]", True),
        ("0.017 ± 0.008 [0.005, 0.035]", "0.0171 ± 0.00799 [0.00455, 0.0361]", False),
        # words
        ("yes", "yes", True),
        ("yes", "no", False),
        ("ε = 0.29", "ε = 0.29", True),
    ],
)
def test_agreement(printed, ours, equal):
    outcome = agreement(printed, ours)
    assert outcome.equal is equal
    assert (outcome.reason == "") is equal


def test_the_tolerance_is_half_a_unit_and_nothing_for_counts():
    assert agreement("0.017", 0.017).tolerance == 0.0005
    assert agreement("1,152", 1152).tolerance == 0
    assert agreement("1,152", 1152.0).tolerance == 0.5
    assert agreement("about 0.05", 0.05).tolerance == 0.01
    assert np.isnan(agreement("<0.001", 0.0).tolerance)


def test_the_reason_names_what_deviates():
    reason = agreement("0.017 ± 0.008 [0.005, 0.035]", "0.017 ± 0.009 [0.005, 0.036]").reason
    assert reason == "ours 0.00900, printed 0.008; ours 0.03600, printed 0.035"
    assert agreement("18", 17.434872993715).reason == "ours 17.43, printed 18"
    assert agreement("<0.001", 0.02).reason == "ours 0.02000, printed < 0.001"


@pytest.mark.parametrize(
    ("printed", "ours", "message"),
    [
        ("20 of 29", 20, r"the paper prints 2 numbers \(20 of 29\) and ours has 1"),
        ("0.017", "0.017 to 0.018", "prints 1 numbers"),
        ("0.017", "<0.018", "is a bound"),
        ("0.017", "n/a", "'n/a' is not a printed number"),
        ("41", True, "True is not a number"),
        ("yes", 1.0, "'yes' is not a printed number"),
    ],
)
def test_a_value_of_another_shape_is_an_error(printed, ours, message):
    with pytest.raises(InputError, match=message):
        agreement(printed, ours)


@given(st.decimals(min_value=-1, max_value=1, places=3))
def test_a_number_agrees_with_itself_and_not_with_the_next(value):
    assert agreement(f"{value:f}", float(value)).equal
    assert not agreement(f"{value:f}", float(value) + 0.001).equal


# ---- writing like the paper


@pytest.mark.parametrize(
    ("printed", "ours", "text"),
    [
        ("1,152", 1152.0, "1,152"),
        ("1862", 1861.5, "1862"),
        ("41", 40.5, "40"),
        ("0.020", 0.020500000000000018, "0.020"),
        ("0.008", 0.0085, "0.008"),
        ("0.008", 0.00851, "0.009"),
        ("25", 25.228, "25"),
        ("25%", 25.228, "25%"),
        ("+0.008", 0.0081, "+0.008"),
        ("−0.002", -0.0021, "−0.002"),
        ("+0.008", -0.0081, "-0.008"),
        ("<0.001", 0.0004, "<0.001"),
        ("<0.001", 0.02, "0.020"),
        (">0.999", 1.0, ">0.999"),
        ("about 0.05", 0.044, "about 0.04"),
        ("8.8e-5", 0.0000912, "9.1e-5"),
        ("7 of 12", "8 of 12", "8 of 12"),
        (
            "0.017 ± 0.008 [0.005, 0.035]",
            "0.01712 ± 0.0081 [0.0049, 0.0352]",
            "0.017 ± 0.008 [0.005, 0.035]",
        ),
        ("yes", "no", "no"),
    ],
)
def test_our_value_is_written_as_the_paper_writes(printed, ours, text):
    assert format_like(printed, ours) == text


def test_writing_a_printed_number_like_itself_changes_nothing():
    values = set(load_table("paper_numbers")["value"])
    numbers = [text for text in values if text[0] not in "<>" and not text.startswith("about")]
    assert len(numbers) > 200
    assert [text for text in numbers if format_like(text, text) != text] == []


# ---- a named place


def test_one_row_per_printed_number_of_the_place():
    table = compare_numbers("Figure 9", {"pub_exceed": 41}, cohort="published record")
    assert list(table.columns) == [
        "id", "quantity", "printed", "ours", "cohort", "tolerance", "verdict", "reason",
    ]  # fmt: skip
    where = load_table("paper_numbers").set_index("id")["where"]
    assert table["id"].tolist() == [label for label in where.index if "Figure 9" in where[label]]
    assert set(table["verdict"]) == {"not computed"}  # pub_exceed is printed in the text only
    assert set(table["reason"]) == {"no value was given"}


@pytest.mark.parametrize(
    ("target", "inside", "outside"),
    [
        ("Figure 9b", "pub_path_exceed", "fig9g_derived"),
        ("Figure 9", "fig9b_zero", "pub_exceed"),  # "Figure 9 caption"
        ("Table 2", "controlled_runs", "pleural_other_reference"),  # not Supplementary Table 2
        ("Supplementary Table 2", "pleural_other_reference", "controlled_runs"),
        ("Supplementary Note 2", "insurance_other_test", "sex_exceed"),  # "Notes 1 and 2"
        ("Figure 5", "r2_geometry", "pub_exceed"),  # "Figures 4b and 5f"
        ("Figure 2e", "fig2e_fracture_race", "race_exceed"),
        ("Methods", "bootstrap_resamples", "pub_exceed"),  # "Methods, Statistical analysis"
        ("Methods, Datasets", "pairs_val", "bootstrap_resamples"),
        ("Table 1", "cxr_images", "cxr_age_available"),  # a note on Table 1 is not a print there
    ],
)
def test_a_place_is_matched_as_a_whole(target, inside, outside):
    named = set(compare_numbers(target, {}, cohort="paper")["id"])
    assert inside in named
    assert outside not in named


def test_a_place_that_prints_another_rounding():
    ours = {"pub_path_smallest_median": 40.5}
    for target, printed in (("Results", "41"), ("Figure 9", "40"), ("Figure 9e", "40")):
        table = compare_numbers(target, ours, cohort="published record").set_index("id")
        row = table.loc["pub_path_smallest_median"]
        assert (row["printed"], row["verdict"]) == (printed, "equal")
    exact = compare_numbers("Figure 9e", {"pub_path_smallest_median": 41}, cohort="paper").set_index("id")
    assert exact.loc["pub_path_smallest_median", "verdict"] == "differs"


def test_another_cohort_is_never_equal():
    for cohort in PAPER_COHORTS:
        assert "equal" in set(compare_numbers("Results", {"pub_exceed": 41}, cohort=cohort)["verdict"])
    table = compare_numbers("Results", {"pub_exceed": 41}, cohort="phantom").set_index("id")
    assert table.loc["pub_exceed", "verdict"] == "other cohort"
    assert table.loc["pub_exceed", "reason"] == "computed on phantom; printed for the paper's own data"
    assert "equal" not in set(table["verdict"])


@pytest.mark.parametrize("absent", [None, float("nan"), np.float64("nan"), pd.NA])
def test_a_missing_value_is_not_computed(absent):
    row = compare_numbers("Results", {"pub_exceed": absent}, cohort="paper").set_index("id").loc["pub_exceed"]
    assert row["verdict"] == "not computed"
    assert row["reason"] in ("no value was given", "our value is not estimable")
    why = {"pub_exceed": "no claims"}
    table = compare_numbers("Results", {"pub_exceed": absent}, cohort="paper", reasons=why).set_index("id")
    assert table.loc["pub_exceed", "reason"] == "no claims"


def test_an_altered_printed_number_turns_its_verdict(monkeypatch):
    numbers = load_table("paper_numbers")
    altered = numbers.copy()
    altered.loc[altered["id"] == "pub_exceed", "value"] = "40"
    before = compare_numbers("Results", {"pub_exceed": 41, "pub_rate": 53}, cohort="paper")
    monkeypatch.setattr(frame.fidelity, "load_table", lambda name: altered)
    after = compare_numbers("Results", {"pub_exceed": 41, "pub_rate": 53}, cohort="paper")
    changed = before["id"][before["verdict"] != after["verdict"]]
    assert changed.tolist() == ["pub_exceed"]
    row = after.set_index("id").loc["pub_exceed"]
    assert (row["verdict"], row["reason"]) == ("differs", "ours 41, printed 40")


def test_errors_name_the_place_or_the_id():
    with pytest.raises(InputError, match="prints no number in 'Figure 10'"):
        compare_numbers("Figure 10", {}, cohort="paper")
    with pytest.raises(InputError, match="no printed number with the id 'pub_exced'"):
        compare_numbers("Results", {"pub_exced": 41}, cohort="paper")
    with pytest.raises(InputError, match=r"^fig9c_medfair: the paper prints 2 numbers"):
        compare_numbers("Figure 9", {"fig9c_medfair": 1}, cohort="paper")


# ---- a table


@pytest.fixture
def printed():
    return pd.DataFrame({"row": ["a", "b"], "x": ["0.10", "0.20"], "n": ["1,152", ""], "mark": ["yes", "no"]})


@pytest.fixture
def ours():
    return pd.DataFrame({"row": ["b", "a"], "x": [0.203, 0.106], "n": [7, 1152], "sign": ["no", "no"]})


def test_a_table_is_compared_cell_by_cell(printed, ours):
    columns = {"x": "x", "n": "n", "mark": "sign"}
    cells = compare_table(printed, ours, key="row", columns=columns, cohort="paper")
    assert cells[["row", "quantity", "verdict"]].to_numpy().tolist() == [
        ["a", "x", "differs"],
        ["a", "n", "equal"],
        ["a", "mark", "differs"],
        ["b", "x", "equal"],
        ["b", "mark", "equal"],  # the blank count of b is not printed
    ]
    other = compare_table(printed, ours, key=["row"], columns=["x"], cohort="open data")
    assert set(other["verdict"]) == {"other cohort"}


def test_a_row_missing_from_ours_is_not_computed(printed, ours):
    cells = compare_table(printed, ours.iloc[:1], key="row", columns=["x"], cohort="paper").set_index("row")
    assert cells.loc["a", "verdict"] == "not computed"
    assert cells.loc["a", "reason"] == "ours has no such row"


def test_a_broken_table_is_refused(printed, ours):
    with pytest.raises(InputError, match="our table has no column 'y'"):
        compare_table(printed, ours, key="row", columns={"x": "y"}, cohort="paper")
    with pytest.raises(InputError, match="printed table has no column 'y'"):
        compare_table(printed, ours, key="row", columns=["y"], cohort="paper")
    with pytest.raises(InputError, match="our table has the row b twice"):
        compare_table(printed, ours.iloc[[0, 0]], key="row", columns=["x"], cohort="paper")
    with pytest.raises(InputError, match="a row that the paper does not print: b"):
        compare_table(printed.iloc[:1], ours, key="row", columns=["x"], cohort="paper")
    with pytest.raises(InputError, match=r"^b, x: 'none' is not a printed number"):
        compare_table(printed, ours.assign(x=["none", 0.1]), key="row", columns=["x"], cohort="paper")


def test_a_table_of_the_paper_equals_itself():
    table = load_table("paper_table1")
    keys = ["section", "row"]
    cells = compare_table(table, table, key=keys, columns=["images", "test"], cohort="paper")
    assert set(cells["verdict"]) == {"equal"}
    changed = table.assign(images=table["images"] + (table["row"] == "DDI").astype(int))
    cells = compare_table(table, changed, key=keys, columns=["images", "test"], cohort="paper")
    assert cells.loc[cells["verdict"] == "differs", "row"].tolist() == ["DDI"]


# ---- the summary


def test_the_summary_counts_every_row(printed, ours):
    cells = compare_table(printed, ours, key="row", columns={"x": "x", "mark": "sign"}, cohort="paper")
    assert summary(cells) == "4 printed numbers: 2 equal, 2 differs (cohort: paper)"
    table = compare_numbers("Figure 9", {"fig9b_zero": 2}, cohort="published record")
    assert summary(table) == (
        f"{len(table)} printed numbers: 1 equal, {len(table) - 1} not computed (cohort: published record)"
    )
    assert set(table["verdict"]) <= set(VERDICTS)

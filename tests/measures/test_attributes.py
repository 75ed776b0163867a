"""Levels, missing values, intersections and strata of attributes."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from frame.errors import InputError
from frame.measures import missing_note, scored_rows, split_within, strata, subgroup_table

SCORES = [0.1, 0.9, 0.4, 0.3]
LABELS = [0, 1, 0, 1]
GROUPS = ["b", "a", "b", "a"]


def sentence(*arguments, **options):
    """The error message, checked to be one line."""
    with pytest.raises(InputError) as caught:
        scored_rows(*arguments, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


BLANKS = {
    "series with nan": pd.Series(["F", np.nan, "M", np.nan]),
    "list with none and nan": ["F", None, "M", float("nan")],
    "list with pandas na": ["F", pd.NA, "M", pd.NaT],
    "blanks": ["F", "", "M", "   "],
    "array of text made of nan": np.array(["F", np.nan, "M", np.nan]),
    "categorical": pd.Categorical(["F", None, "M", None]),
    "categorical with a blank level": pd.Categorical(["F", "", "M", " "]),
    "nullable text": pd.array(["F", None, "M", None], dtype="string"),
    "numbers": [1.0, np.nan, 2.0, None],
    "masked numbers": np.ma.array([1, 9, 2, 9], mask=[0, 1, 0, 1]),
    "masked text": np.ma.array(["F", "F", "M", "F"], mask=[0, 1, 0, 1]),
}


@pytest.mark.parametrize("blanks", BLANKS.values(), ids=BLANKS.keys())
def test_bad_input_2_one_policy_for_missing_values(blanks):
    groups = {"sex": blanks}
    assert sentence(SCORES, LABELS, groups) == (
        "column 'sex' is blank for 2 of 4 images (2 of 2 positives, 0 of 2 negatives); say what to do with "
        "them: missing='drop' leaves them out and counts them, missing='group' makes them a subgroup "
        "'(missing)'."
    )
    (dropped,) = scored_rows(SCORES, LABELS, groups, missing="drop").attributes
    first, second = dropped.levels
    assert "nan" not in (first + second).lower()
    assert dropped.codes.tolist() == [0, -1, 1, -1]
    assert (dropped.n_missing, dropped.n_missing_positive) == (2, 2)
    (grouped,) = scored_rows(SCORES, LABELS, groups, missing="group").attributes
    assert grouped.levels == (first, second, "(missing)")
    assert grouped.codes.tolist() == [0, 2, 1, 2]
    assert (grouped.n_missing, grouped.n_missing_positive) == (2, 2)


def test_bad_input_2_unknown_is_a_level_and_an_unused_level_stays():
    groups = pd.Categorical(["F", "Unknown", "F", "Unknown"], ["M", "F", "Unknown"])
    (sex,) = scored_rows(SCORES, LABELS, groups).attributes
    assert sex.levels == ("M", "F", "Unknown")
    assert sex.codes.tolist() == [1, 2, 1, 2]
    assert sex.n_missing == 0


def test_bad_input_2_a_row_without_the_attribute_stays_for_other_attributes():
    rows = scored_rows(
        SCORES,
        LABELS,
        {"sex": ["F", None, "M", "M"], "age": list("yyzz")},
        missing="drop",
        intersections=True,
    )
    assert [a.codes.tolist() for a in rows.attributes] == [[0, -1, 1, 1], [0, 0, 1, 1], [0, -1, 1, 1]]
    assert [(a.n_missing, a.n_missing_positive) for a in rows.attributes] == [(1, 1), (0, 0), (1, 1)]


def test_missing_values_are_counted_among_the_images_with_a_label():
    sex = ["F", None, None, "M"]
    assert "column 'group' is blank for 1 of 3 images" in sentence(SCORES, [0, 1, None, 1], sex)
    rows = scored_rows(SCORES, [0, None, None, 1], sex)
    assert rows.attributes[0].n_missing == 0


def test_a_level_that_is_called_missing_already():
    message = sentence(SCORES, LABELS, ["(missing)", None, "a", "b"], missing="group")
    assert message == "column 'group' has a level '(missing)' besides 1 blank values; rename it."
    rows = scored_rows(SCORES, LABELS, ["(missing)", "c", "a", "b"], missing="group")
    assert rows.attributes[0].levels == ("(missing)", "a", "b", "c")


def test_a_column_without_any_value():
    for policy in ("error", "group", "drop"):
        message = sentence(SCORES, LABELS, {"sex": [None, "", np.nan, pd.NA]}, missing=policy)
        assert message == "column 'sex' is blank in all 4 rows; it has no subgroups."


def test_bad_input_34_the_share_missing_by_label_is_said():
    rows = scored_rows(SCORES, LABELS, {"sex": ["F", None, "M", "M"]}, missing="drop")
    note = missing_note(rows.attributes[0], rows)
    assert note == "'sex' is missing for 1 of 4 images (1 of 2 positives, 0 of 2 negatives)."
    assert missing_note(scored_rows(SCORES, LABELS, GROUPS).attributes[0], rows) == ""


@pytest.mark.parametrize(
    ("given_levels", "levels"),
    [
        ([10, 9, 100, 9], ("9", "10", "100")),
        ([10.0, 9.5, 10.0, 9.5], ("9.5", "10")),
        (["10", "9", "100", "9"], ("10", "100", "9")),
        ([True, False, True, False], ("False", "True")),
        ([2, "b", 1.0, "a"], ("1", "2", "a", "b")),
        (pd.Categorical(["lo", "hi", "lo", "hi"], ["lo", "hi", "top"]), ("lo", "hi", "top")),
        (pd.Categorical([2.0, 1.0, 2.0, 1.0], [3.0, 2.0, 1.0]), ("3", "2", "1")),
        (pd.cut([1, 5, 20, 30], [0, 10, 25, 50]), ("(0, 10]", "(10, 25]", "(25, 50]")),
        (np.array([2, 1, 2, 1], dtype=np.int8), ("1", "2")),
        (np.array([0.1, 2, 0.1, 2], dtype=np.float32), ("0.1", "2")),
    ],
)
def test_levels_and_their_order(given_levels, levels):
    assert scored_rows(SCORES, LABELS, given_levels).attributes[0].levels == levels


@pytest.mark.parametrize(
    "levels", [["F", "F ", "M", "M"], [1, "1", 2, 2], pd.Categorical(["F", " F", "M", "M"])]
)
def test_a_level_written_in_two_ways_is_refused(levels):
    first = str(levels[0]).strip()
    assert sentence(SCORES, LABELS, levels).startswith(
        f"column 'group' writes level '{first}' in more than one way"
    )


def test_case_is_part_of_a_level():
    assert scored_rows(SCORES, LABELS, ["f", "F", "f", "F"]).attributes[0].levels == ("F", "f")


def test_an_intersection_follows_the_order_of_its_attributes():
    age = pd.Categorical(["<40", "40-<60", "<40", ">=60"], ["<40", "40-<60", ">=60", ">=80"])
    rows = scored_rows(SCORES, LABELS, {"sex": list("FFMM"), "age": age}, intersections=True)
    assert rows.attributes[2].name == "sex x age"
    assert rows.attributes[2].levels == ("F & <40", "F & 40-<60", "M & <40", "M & >=60")
    assert rows.attributes[2].codes.tolist() == [0, 1, 2, 3]


def test_bad_input_29_three_columns_equal_one():
    rng = np.random.default_rng(0)
    columns = {name: rng.choice(list("abc"), 200) for name in ("x", "y", "z")}
    joined = [" & ".join(cell) for cell in zip(*columns.values(), strict=True)]
    scores, labels = rng.random(200), rng.integers(0, 2, 200)
    three = scored_rows(scores, labels, columns, intersections=True).attributes[-1]
    one = scored_rows(scores, labels, joined).attributes[0]
    assert three.name == "x x y x z"
    assert three.levels == one.levels
    assert three.codes.tolist() == one.codes.tolist()


TEXTS = st.lists(st.text("a b#&!é", min_size=1, max_size=3).filter(str.strip), min_size=4, max_size=4)


@settings(deadline=None, max_examples=80)
@example(["a", "a #", "a", "a #"], ["y", "x", "x", "y"])  # "a # & x" sorts before "a & y"
@given(TEXTS, TEXTS)
def test_bad_input_29_odd_texts_join_as_by_hand_or_are_refused(first, second):
    joined = [f"{a} & {b}" for a, b in zip(first, second, strict=True)]
    try:
        two = scored_rows(SCORES, LABELS, {"x": first, "y": second}, intersections=True).attributes[-1]
    except InputError as problem:
        message = str(problem)
    else:
        message = ""
    if message:
        assert "in more than one way" in message or "both read" in message
        return
    one = scored_rows(SCORES, LABELS, joined).attributes[0]
    assert two.levels == one.levels
    assert two.codes.tolist() == one.codes.tolist()


def test_intersections_with_missing_values():
    columns = {"sex": ["F", None, "M", "M"], "age": ["y", "y", "", "z"]}
    grouped = scored_rows(SCORES, LABELS, columns, missing="group", intersections=True).attributes[2]
    assert grouped.levels == ("F & y", "M & z", "M & (missing)", "(missing) & y")
    assert grouped.codes.tolist() == [0, 3, 2, 1]
    dropped = scored_rows(SCORES, LABELS, columns, missing="drop", intersections=True).attributes[2]
    assert dropped.levels == ("F & y", "M & z")
    assert dropped.codes.tolist() == [0, -1, -1, 1]
    assert (dropped.n_missing, dropped.n_missing_positive) == (2, 1)


def test_intersections_that_cannot_be_made():
    message = sentence(SCORES, LABELS, GROUPS, intersections=True)
    assert message.startswith("intersections need at least two group columns and 1 was given")
    message = sentence(
        SCORES, LABELS, {"x": ["a & b", "a", "c", "c"], "y": ["c", "b & c", "d", "d"]}, intersections=True
    )
    assert message == "two combinations of levels both read 'a & b & c'; rename levels that contain ' & '."


def test_strata_are_masks_over_the_rows_as_given():
    view = pd.Series(["PA", "AP", "PA", "AP"], name="view")
    (first, ap), (second, pa) = strata(view, 4)
    assert (first, second) == ("AP", "PA")
    assert ap.dtype == np.bool_
    assert (ap.tolist(), pa.tolist()) == ([False, True, False, True], [True, False, True, False])
    declared = strata(pd.Categorical(["PA"], ["AP", "PA"]), 1)
    assert [(name, int(mask.sum())) for name, mask in declared] == [("AP", 0), ("PA", 1)]
    blank = ["PA", None, "PA", ""]
    assert [(n, m.tolist()) for n, m in strata(blank, 4, missing="drop")] == [
        ("PA", [True, False, True, False])
    ]
    assert [n for n, _ in strata(blank, 4, missing="group")] == ["PA", "(missing)"]
    with pytest.raises(InputError, match="column 'within' is blank for 2 of 4 images"):
        strata(blank, 4)
    with pytest.raises(InputError, match="within has 4 rows and there are 3 images"):
        strata(view, 3)


def test_split_within_keeps_every_level_in_every_stratum():
    rows = scored_rows(
        [0.1, 0.9, 0.4, 0.3, 0.5],
        [0, 1, 0, 1, None],
        {"sex": ["F", "M", "F", "F", "M"], "view": ["PA", "PA", "AP", "AP", "AP"]},
        ["p", "q", "p", "r", "r"],
        within="view",
    )
    assert [a.name for a in rows.attributes] == ["sex"]
    assert rows.within.name == "view"
    (first, ap), (second, pa) = split_within(rows)
    assert (first, second) == ("AP", "PA")
    assert ap.scores["score"].tolist() == [0.4, 0.3]
    assert (ap.patients.tolist(), ap.n_patients) == ([0, 1], 2)
    assert pa.labels.tolist() == [False, True]
    found = subgroup_table(ap, "sex", "score", "auroc", min_size=1)
    assert list(found["group"]) == ["F", "M"]
    assert list(found["reason"]) == ["", "0 images"]
    assert split_within(scored_rows(SCORES, LABELS, GROUPS))[0][0] == ""


def test_split_within_counts_missing_values_anew():
    rows = scored_rows(
        SCORES, LABELS, {"sex": ["F", None, "M", None]}, within=["s", "s", "t", "t"], missing="drop"
    )
    assert [(n, r.attributes[0].n_missing) for n, r in split_within(rows)] == [("s", 1), ("t", 1)]


def test_strata_that_cannot_be_made():
    assert sentence(SCORES, LABELS, {"sex": GROUPS}, within="view").startswith(
        "within is 'view'; the group columns are 'sex'."
    )
    assert sentence(SCORES, LABELS, {"sex": GROUPS}, within="sex").startswith(
        "within is 'sex', the only group"
    )
    assert sentence(SCORES, LABELS, GROUPS, within=["s", None, "t", "t"]).startswith(
        "column 'within' is blank for 1 of 4 images"
    )

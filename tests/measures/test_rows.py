"""What a user may give, what becomes of it, and the sentence for what may not be given."""

import decimal
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frame.errors import InputError
from frame.measures import scored_rows

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


def test_the_plain_case():
    rows = scored_rows(SCORES, LABELS, GROUPS, ["p", "q", "p", "r"])
    assert len(rows) == 4
    assert list(rows.scores) == ["score"]
    assert rows.scores["score"].dtype == np.float64
    assert rows.labels.dtype == np.bool_
    assert rows.labels.tolist() == [False, True, False, True]
    assert rows.patients.dtype == np.int64
    assert rows.patients.tolist() == [0, 1, 0, 2]
    assert (rows.n_patients, rows.patients_given) == (3, True)
    (group,) = rows.attributes
    assert (group.name, group.levels) == ("group", ("a", "b"))
    assert group.codes.dtype == np.int64
    assert group.codes.tolist() == [1, 0, 1, 0]
    assert (group.n_missing, group.n_missing_positive) == (0, 0)
    assert (rows.binary, rows.n_unlabelled, rows.n_without_score) == (False, 0, 0)


def test_without_ids_each_image_is_a_patient():
    rows = scored_rows(SCORES, LABELS, GROUPS)
    assert rows.patients.tolist() == [0, 1, 2, 3]
    assert (rows.n_patients, rows.patients_given) == (4, False)


CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "object array": lambda x: np.array(x, dtype=object),
    "series": pd.Series,
    "series with its own index": lambda x: pd.Series(x, index=[11, 3, 7, 5]),
    "index": pd.Index,
    "extension array": pd.array,
    "masked array": np.ma.array,
}


@pytest.mark.parametrize("make", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_containers(make):
    rows = scored_rows(make(SCORES), make(LABELS), make(GROUPS), make(["007", "7", "8", "9"]))
    assert rows.scores["score"].tolist() == SCORES
    assert rows.labels.tolist() == [False, True, False, True]
    assert rows.attributes[0].codes.tolist() == [1, 0, 1, 0]
    assert rows.n_patients == 4


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "uint64", "Int64", "Float32", "object"])
def test_scores_of_any_numeric_dtype(dtype):
    rows = scored_rows(pd.Series([0, 1, 1, 0]).astype(dtype), LABELS, GROUPS)
    assert rows.scores["score"].tolist() == [0.0, 1.0, 1.0, 0.0]
    assert rows.binary


def test_decimals_and_read_only_arrays_are_scores():
    assert scored_rows([decimal.Decimal("0.5")] * 4, LABELS, GROUPS).scores["score"].tolist() == [0.5] * 4
    fixed = np.array(SCORES)
    fixed.flags.writeable = False
    assert scored_rows(fixed, LABELS, GROUPS).scores["score"].tolist() == SCORES


def test_what_was_given_is_not_changed():
    frame = pd.DataFrame({"sex": pd.Series(["F", None, "M", ""], index=list("wxyz"))})
    before = frame.copy(deep=True)
    labels = np.array([0.0, 1.0, np.nan, 1.0])
    scored_rows(SCORES, labels, frame, missing="group")
    pd.testing.assert_frame_equal(frame, before)
    assert math.isnan(labels[2])


def test_several_models_and_attributes_keep_their_names():
    scores = pd.DataFrame({"dense": SCORES, "vit": SCORES[::-1]})
    rows = scored_rows(scores, LABELS, {"sex": list("FMFM"), "age": [80, 9, 9, 80]})
    assert list(rows.scores) == ["dense", "vit"]
    assert rows.scores["vit"].tolist() == SCORES[::-1]
    assert [a.name for a in rows.attributes] == ["sex", "age"]
    assert rows.attributes[1].levels == ("9", "80")
    single = scored_rows(pd.Series(SCORES, name="dense"), LABELS, pd.Series(GROUPS, name="sex"))
    assert list(single.scores) == ["dense"]
    assert single.attributes[0].name == "sex"


def test_binary_means_all_scores_of_all_models():
    decisions = [0, 1, 1, 0]
    assert scored_rows({"a": decisions, "b": decisions}, LABELS, GROUPS).binary
    assert not scored_rows({"a": decisions, "b": SCORES}, LABELS, GROUPS).binary
    assert not scored_rows(decisions, LABELS, GROUPS, scale="logit").binary


GOOD_LABELS = {
    "int": [0, 1, 0, 1],
    "float": [0.0, 1.0, 0.0, 1.0],
    "bool": [False, True, False, True],
    "object bool": pd.Series([False, True, False, True], dtype=object),
    "mixed": pd.Series([0, True, 0.0, np.int8(1)], dtype=object),
    "nullable bool": pd.Series([False, True, False, True], dtype="boolean"),
    "nullable int": pd.Series([0, 1, 0, 1], dtype="Int8"),
    "categorical": pd.Categorical([0, 1, 0, 1]),
    "uint8": np.array([0, 1, 0, 1], dtype=np.uint8),
}


@pytest.mark.parametrize("labels", GOOD_LABELS.values(), ids=GOOD_LABELS.keys())
def test_bad_input_7_labels_that_equal_0_and_1(labels):
    assert scored_rows(SCORES, labels, GROUPS).labels.tolist() == [False, True, False, True]


ALLOWED = (
    "; allowed are 0, 1, True and False, and missing for an image without a label. "
    "Map them first, for example "
)
BAD_LABELS = {
    "digits as text": (
        ["0", "1", "0", "1"],
        "labels hold '0' (2 images: b 2); '1' (2 images: a 2)"
        + ALLOWED
        + "labels.map({'0': ..., '1': ...}) with 0 or 1 for each.",
    ),
    "words": (
        ["neg", "pos", "neg", "pos"],
        "labels hold 'neg' (2 images: b 2); 'pos' (2 images: a 2)"
        + ALLOWED
        + "labels.map({'neg': ..., 'pos': ...}) with 0 or 1 for each.",
    ),
    "one and two": (
        [1.0, 2.0, 1.0, 2.0],
        "labels hold 2 (2 images: a 2)" + ALLOWED + "(labels == x) with the value x that means present.",
    ),
    "minus one and one": (
        np.array([-1, 1, -1, 1]),
        "labels hold -1 (2 images: b 2)" + ALLOWED + "(labels == 1) if -1 means absent.",
    ),
    "probabilities": (
        [0.0, 0.5, 0.0, 1.0],
        "labels hold 0.5 (1 images: a 1)" + ALLOWED + "(labels == x) with the value x that means present.",
    ),
}


@pytest.mark.parametrize(("labels", "message"), BAD_LABELS.values(), ids=BAD_LABELS.keys())
def test_bad_input_7_other_labels_are_quoted_with_how_to_map_them(labels, message):
    assert sentence(SCORES, labels, GROUPS) == message


def test_bad_input_7_a_column_of_many_values_is_not_quoted():
    ids = [f"canary-{i}" for i in range(40)]
    message = sentence(np.linspace(0, 1, 40), ids, ["a", "b"] * 20)
    assert message.startswith("labels hold 40 different values, 40 of 40 images with something other")
    assert "canary" not in message


def test_bad_input_17_minus_one_raises_with_counts_by_group():
    labels = [1, 0, -1, np.nan, -1, 0, 1, -1]
    groups = list("aaaabbbb")
    message = sentence(np.linspace(0, 1, 8), labels, groups)
    assert message == (
        "labels hold -1 (3 images: a 1, b 2)"
        + ALLOWED
        + "labels.replace({-1: 0}), {-1: 1} or {-1: float('nan')}, whichever an uncertain label means."
    )


def test_bad_input_17_one_group_whose_only_positives_are_uncertain():
    message = sentence(np.linspace(0, 1, 6), [1, 0, 0, -1, -1, 0], ["a", "a", "a", "b", "b", None])
    assert "-1 (2 images: b 2)" in message
    message = sentence(np.linspace(0, 1, 6), [1, 0, 0, 0, -1, -1], ["a", "a", "a", "b", "b", None])
    assert "-1 (2 images: b 1, without a group 1)" in message


def test_an_image_without_a_label_is_left_out_and_counted():
    for blank in (None, np.nan, pd.NA):
        rows = scored_rows(SCORES, [0, 1, blank, 1], GROUPS, ["p", "q", "r", "q"])
        assert rows.n_unlabelled == 1
        assert rows.scores["score"].tolist() == [0.1, 0.9, 0.3]
        assert rows.attributes[0].codes.tolist() == [1, 0, 0]
        assert (rows.patients.tolist(), rows.n_patients) == ([0, 1, 1], 2)


def test_a_level_whose_images_all_lack_a_label_stays():
    rows = scored_rows(
        SCORES, [0, 1, 0, None], {"g": ["b", "b", "b", "c"], "h": ["y", "x", "y", "x"]}, intersections=True
    )
    assert rows.attributes[0].levels == ("b", "c")
    assert rows.attributes[2].levels == ("b & x", "b & y", "c & x")


def test_labels_missing_everywhere():
    assert sentence(SCORES, [None] * 4, GROUPS).startswith("labels are missing for all 4 images")


def test_bad_input_22_ids_stay_what_they_are():
    rows = scored_rows(SCORES, LABELS, GROUPS, pd.Series(["007", 7, "007", 8], dtype=object))
    assert rows.patients.tolist() == [0, 1, 0, 2]
    assert scored_rows(SCORES, LABELS, GROUPS, ["7 ", "8", "7 ", "9"]).n_patients == 3
    assert scored_rows(SCORES, LABELS, GROUPS, [7.0, 7, 8, 8.5]).n_patients == 3


@pytest.mark.parametrize("ids", [["7", "7 ", "8", "9"], [7, "7", "8", "9"], ["8", "9", 7.0, "7 "]])
def test_bad_input_22_ids_that_differ_only_by_blanks_or_by_type_are_refused(ids):
    message = sentence(SCORES, LABELS, GROUPS, ids)
    assert message.startswith("patients: 2 ids are the same but for blanks around them or for being text")
    assert "7" not in message


@pytest.mark.parametrize("blank", [None, np.nan, pd.NA, "", "  ", "nan"])
def test_a_missing_id(blank):
    ids = pd.Series(["p", blank, "q", "p"], dtype=object)
    assert sentence(SCORES, LABELS, GROUPS, ids) == (
        "patients: the id is missing for 1 of 4 images; fill it in, or leave those images out with "
        "missing='drop'."
    )
    assert "is missing for 1 of 4" in sentence(SCORES, LABELS, GROUPS, ids, missing="group")
    rows = scored_rows(SCORES, LABELS, GROUPS, ids, missing="drop")
    assert rows.n_without_patient == 1
    assert rows.patients.tolist() == [0, 1, 0]
    assert scored_rows(SCORES, [0, None, 0, 1], GROUPS, ids).n_unlabelled == 1


def test_no_message_holds_a_patient_id():
    ids = pd.Series(["canary-1", "canary-1 ", None, "canary-2"])
    assert "canary" not in sentence(SCORES, LABELS, GROUPS, ids)
    assert "canary" not in sentence(SCORES, LABELS, GROUPS, ids.iloc[:3])
    assert "canary" not in sentence(ids, LABELS, GROUPS)


def test_a_missing_score():
    scores = {"dense": SCORES, "vit": [0.1, np.nan, 0.3, None]}
    message = sentence(scores, LABELS, GROUPS)
    assert message == (
        "scores 'vit': the score is missing for 2 of 4 images with a label; fill it in, or leave those "
        "images out with missing='drop'."
    )
    assert "is missing for 2" in sentence(scores, LABELS, GROUPS, missing="group")
    rows = scored_rows(scores, LABELS, GROUPS, missing="drop")
    assert (rows.n_without_score, len(rows)) == (2, 2)
    assert rows.scores["dense"].tolist() == [0.1, 0.4]
    assert scored_rows(scores["vit"], [0, None, 0, None], GROUPS).n_without_score == 0
    message = sentence([np.nan] * 4, LABELS, GROUPS, missing="drop")
    assert message.startswith("no image has a label, a score and a patient id")


def test_each_image_left_out_is_counted_once():
    rows = scored_rows(
        [np.nan, np.nan, np.nan, 0.3, 0.2],
        [None, 0, 1, 1, 0],
        list("aabbb"),
        ["p", None, "q", None, "r"],
        missing="drop",
    )
    assert (rows.n_unlabelled, rows.n_without_score, rows.n_without_patient, len(rows)) == (1, 2, 1, 1)


BAD_SCORES = {
    "infinite": ([0.1, np.inf, 0.3, -np.inf], "scores: 2 scores are infinite; give finite numbers."),
    "text": (["0.1", "0.2", "0.3", "0.4"], "scores holds text; scores are numbers (pandas.to_numeric"),
    "array of text": (np.array(["0.1", "0.2", "0.3", "x"]), "scores holds text"),
    "complex": (np.array([1j, 0, 1, 2]), "scores holds complex128; scores are real numbers."),
    "complex objects": ([1j, 0, 1, 2], "scores holds values that are no numbers"),
    "dates": (pd.date_range("2020-01-01", periods=4), "scores holds datetime64"),
    "categories": (pd.Categorical([1, 2, 1, 2]), "scores holds category; scores are real numbers."),
    "mixed": ([0.1, "x", 0.3, 0.4], "scores holds values that are no numbers"),
    "a list of lists": ([[0.1], [0.2], [0.3], [0.4]], "scores holds values that are no numbers"),
    "two dimensions": (np.zeros((4, 2)), "scores: an array with 2 dimensions was given; give one value per"),
    "no dimension": (np.array(0.5), "scores: an array with 0 dimensions was given"),
    "a number": (0.5, "scores: a float was given; give one value per image"),
    "none": (None, "scores: a NoneType was given; give one value per image"),
    "one text": ("0.5", "scores: a str was given"),
    "a set": ({0.1, 0.2, 0.3, 0.4}, "scores: a set was given"),
    "a generator": ((s for s in SCORES), "scores: a generator was given"),
    "no columns": ({}, "scores: a table without a column was given; give at least one."),
    "no name": ({1: SCORES}, "scores: a column is called 1; give every column a name in text."),
    "twice": (
        pd.DataFrame(np.zeros((4, 2)), columns=["m", "m"]),
        "scores: column 'm' stands there twice; keep one.",
    ),
    "a table in a table": (
        {"m": pd.DataFrame({"a": SCORES})},
        "scores 'm': a table with 1 column(s) was given",
    ),
    "empty": ([], "scores is empty; give at least one image."),
    "too short": ([0.1, 0.2], "scores has 2 rows and labels has 4; give one value per image in each."),
}


@pytest.mark.parametrize(("scores", "message"), BAD_SCORES.values(), ids=BAD_SCORES.keys())
def test_bad_scores_are_one_sentence(scores, message):
    labels, groups = ([], []) if message.startswith("scores is empty") else (LABELS, GROUPS)
    assert sentence(scores, labels, groups).startswith(message)


def test_other_bad_columns_are_one_sentence():
    assert sentence(SCORES, pd.DataFrame({"y": LABELS}), GROUPS).startswith(
        "labels: a table with 1 column(s) was given"
    )
    assert sentence(SCORES, [[0], [1], [0], [1]], GROUPS).startswith(
        "labels hold cells that are no single values"
    )
    assert sentence(SCORES, LABELS, [["a"], ["b"], ["a"], ["b"]]).startswith(
        "column 'group' holds cells that are no"
    )
    assert sentence(SCORES, LABELS, [("a",), ("b",), ("a",), ("b",)]).startswith(
        "column 'group' holds cells that are no single values"
    )
    assert sentence(SCORES, LABELS, GROUPS, [{}, {}, {}, {}]).startswith(
        "patients holds cells that are no single"
    )
    assert sentence(SCORES, LABELS, GROUPS[:2]) == (
        "scores has 4 rows and groups has 2; give one value per image in each."
    )
    assert sentence(SCORES, LABELS, {"sex": GROUPS[:2]}).startswith(
        "scores has 4 rows and groups 'sex' has 2"
    )
    assert sentence(SCORES, LABELS, GROUPS, ["p"]).startswith("scores has 4 rows and patients has 1")
    assert sentence(SCORES, LABELS, GROUPS, within=["p"]).startswith("scores has 4 rows and within has 1")
    assert sentence(SCORES, LABELS, GROUPS, missing="ignore") == (
        "missing is 'ignore'; allowed are 'error', 'group', 'drop'."
    )
    assert (
        sentence(SCORES, LABELS, GROUPS, scale=None) == "scale is None; allowed are 'probability', 'logit'."
    )


def test_pandas_columns_in_another_order_are_refused():
    labels = pd.Series(LABELS, index=[3, 1, 2, 0])
    message = sentence(pd.Series(SCORES), labels, GROUPS)
    assert message.startswith("scores and labels hold the same index labels in a different order")
    assert scored_rows(SCORES, labels, GROUPS).labels.tolist() == [False, True, False, True]
    other = pd.Series(SCORES, index=[10, 11, 12, 13])
    assert scored_rows(other, labels, GROUPS).scores["score"].tolist() == SCORES
    assert scored_rows(pd.Series(SCORES, index=labels.index), labels, GROUPS).labels.tolist() == [
        *(False, True, False, True)
    ]


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(),
    st.text(max_size=3),
    st.just(pd.NA),
    st.complex_numbers(max_magnitude=3),
    st.lists(st.integers(), max_size=2),
    st.decimals(allow_nan=True),
    st.dates(),
    st.binary(max_size=2),
)
ANYTHING = st.one_of(
    st.lists(CELLS, min_size=3, max_size=3),
    st.lists(st.sampled_from([0, 1, 0.5, None, "F", "M"]), min_size=3, max_size=3),
    CELLS,
)


@settings(deadline=None, max_examples=120)
@given(ANYTHING, ANYTHING, ANYTHING, ANYTHING, st.sampled_from(["error", "group", "drop"]))
def test_anything_gives_rows_or_an_input_error(scores, labels, groups, patients, missing):
    messages = []
    for given_scores, given_labels, given_groups, given_patients in (
        (scores, labels, groups, patients),
        (SCORES[:3], labels, groups, patients),
        (scores, [0, 1, 0], groups, None),
    ):
        try:
            rows = scored_rows(given_scores, given_labels, given_groups, given_patients, missing=missing)
        except InputError as problem:
            messages.append(str(problem))
        else:
            n = len(rows)
            assert 1 <= n == len(rows.patients) == len(rows.scores["score"]) == len(rows.attributes[0].codes)
            assert np.isfinite(rows.scores["score"]).all()
            assert sorted(set(rows.patients.tolist())) == list(range(rows.n_patients))
            assert (
                -1
                <= rows.attributes[0].codes.min()
                <= rows.attributes[0].codes.max()
                < len(rows.attributes[0].levels)
            )
    assert all(len(message.splitlines()) == 1 for message in messages)


@pytest.mark.parametrize(
    "given",
    [[True, False, True, False], np.array([True, False, True, False]), pd.array([True, False, True, False])],
)
def test_true_and_false_are_decisions(given):
    rows = scored_rows(given, [1, 0, 1, 0], ["a", "a", "b", "b"])
    assert next(iter(rows.scores.values())).tolist() == [1.0, 0.0, 1.0, 0.0]
    assert rows.binary


def test_a_missing_decision_is_a_missing_score():
    given = pd.array([True, False, None, True], dtype="boolean")
    with pytest.raises(InputError, match="1"):
        scored_rows(given, [1, 0, 1, 0], ["a", "a", "b", "b"])
    assert scored_rows(given, [1, 0, 1, 0], ["a", "a", "b", "b"], missing="drop").n_without_score == 1

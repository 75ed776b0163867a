"""Label codes: no default policy, every policy counted, and a group whose only positives are uncertain."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frame.cohorts.labels import (
    BLANK,
    BLANK_POLICIES,
    CODES,
    NEGATIVE,
    POSITIVE,
    UNCERTAIN,
    UNCERTAIN_POLICIES,
    LabelPolicy,
    counts_under_policies,
    resolve_labels,
)
from frame.errors import InputError

POLICIES = list(itertools.product(UNCERTAIN_POLICIES, BLANK_POLICIES))
codes = st.lists(st.sampled_from([*CODES, None]), min_size=1, max_size=40)


def int8(values):
    return pd.Series(values, dtype="Int8", name="edema")


def test_the_codes_are_those_of_the_manifest():
    assert (POSITIVE, NEGATIVE, UNCERTAIN, BLANK) == (1, 0, -1, -2)


@pytest.mark.parametrize(
    ("uncertain", "blank", "expected"),
    [
        ("negative", "missing", [1, 0, 0, None, None]),
        ("positive", "missing", [1, 0, 1, None, None]),
        ("missing", "missing", [1, 0, None, None, None]),
        ("negative", "negative", [1, 0, 0, 0, None]),
        ("positive", "negative", [1, 0, 1, 0, None]),
        ("missing", "negative", [1, 0, None, 0, None]),
    ],
)
def test_a_policy(uncertain, blank, expected):
    recorded = pd.Series([1, 0, -1, -2, None], dtype="Int8", index=[9, 7, 5, 3, 1])
    labels = resolve_labels(recorded, LabelPolicy(uncertain, blank))
    assert labels.dtype == np.float64
    assert labels.index.equals(recorded.index)
    assert [None if np.isnan(label) else label for label in labels] == expected
    assert recorded.tolist()[:4] == [1, 0, -1, -2]  # the codes themselves stay


def test_a_policy_has_no_default():
    with pytest.raises(TypeError, match="uncertain"):
        LabelPolicy()
    with pytest.raises(TypeError, match="blank"):
        LabelPolicy(uncertain="negative")
    with pytest.raises(TypeError, match="policy"):
        resolve_labels(int8([1]))


@pytest.mark.parametrize(
    ("uncertain", "blank", "message"),
    [
        ("ones", "missing", "uncertain is 'ones'; it must be one of negative, positive, missing."),
        ("negative", "positive", "blank is 'positive'; it must be one of missing, negative."),
        (None, "missing", "uncertain is None; it must be one of negative, positive, missing."),
    ],
)
def test_another_policy_is_refused(uncertain, blank, message):
    with pytest.raises(InputError) as error:
        LabelPolicy(uncertain, blank)
    assert str(error.value) == message


def test_another_code_is_refused_with_counts():
    with pytest.raises(InputError) as error:
        resolve_labels(pd.Series([1, 2, 2, -3], name="edema"), LabelPolicy("negative", "missing"))
    assert str(error.value).startswith("The labels of edema hold -3 (1 times), 2 (2 times); a label is 1 ")


def test_counts_by_hand():
    table = pd.DataFrame(
        {
            "edema": pd.array([1, 1, 0, -1, -2, None, -1, -1], dtype="Int8"),
            "fracture": pd.array([None] * 8, dtype="Int8"),
        }
    )
    counts = counts_under_policies(table)
    assert counts.columns.tolist() == ["finding", "uncertain", "blank", "n_evaluable", "n_positive"]
    edema = counts[counts["finding"] == "edema"]
    assert list(zip(edema["uncertain"], edema["blank"], strict=True)) == POLICIES
    assert edema[["n_evaluable", "n_positive"]].to_numpy().tolist() == [
        *([6, 2], [7, 2], [6, 5], [7, 5], [3, 2], [4, 2]),
    ]
    assert not counts.loc[counts["finding"] == "fracture", ["n_evaluable", "n_positive"]].to_numpy().any()


def test_a_group_whose_only_positives_are_uncertain():
    table = pd.DataFrame({"edema": pd.array([-1, -1, 0, 1, 0], dtype="Int8")})
    group = pd.Series(["b", "b", "b", "a", None], dtype="str", name="race")
    counts = counts_under_policies(table, group).set_index(["uncertain", "blank", "subgroup"])
    positive = counts["n_positive"]
    assert positive["negative", "missing", "b"] == positive["missing", "missing", "b"] == 0
    assert positive["positive", "missing", "b"] == 2
    assert counts.loc[("missing", "missing", "b"), "n_evaluable"] == 1
    assert counts.loc[("negative", "missing", "not recorded"), "n_evaluable"] == 1


def test_subgroups_in_the_order_of_their_categories_and_empty_ones_with_zero():
    table = pd.DataFrame({"edema": pd.array([1, 0], dtype="Int8")})
    group = pd.Series(pd.Categorical(["White", "Black"], categories=["White", "Black", "Asian"]))
    counts = counts_under_policies(table, group)
    assert counts["subgroup"].tolist() == ["White", "Black", "Asian"] * len(POLICIES)
    assert counts["n_evaluable"].tolist() == [1, 1, 0] * len(POLICIES)


def test_subgroups_belong_to_the_same_rows():
    table = pd.DataFrame({"edema": pd.array([1, 0], dtype="Int8")})
    with pytest.raises(InputError, match="one row for each other"):
        counts_under_policies(table, pd.Series(["a", "b"], index=[1, 0]))


@given(codes, st.randoms())
def test_counts_are_those_of_the_resolved_labels(values, random):
    table = pd.DataFrame({"edema": int8(values)})
    group = pd.Series([random.choice("ab") for _ in values], dtype="str")
    whole, parts = counts_under_policies(table), counts_under_policies(table, group)
    for row in whole.itertuples():
        labels = resolve_labels(table["edema"], LabelPolicy(row.uncertain, row.blank))
        assert (row.n_evaluable, row.n_positive) == (labels.notna().sum(), labels.sum())
    sums = parts.groupby(["uncertain", "blank"], sort=False)[["n_evaluable", "n_positive"]].sum()
    assert sums.to_numpy().tolist() == whole[["n_evaluable", "n_positive"]].to_numpy().tolist()

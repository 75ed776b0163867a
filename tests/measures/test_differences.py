"""Difference, worst group, equity-scaled AUROC."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frame.errors import InputError
from frame.measures import (
    equity_scaled_auroc,
    max_min_difference,
    scored_rows,
    subgroup_table,
    worst_group,
)

VALUES = st.lists(st.one_of(st.floats(0, 1), st.just(math.nan)), max_size=8)


@settings(deadline=None, max_examples=80)
@given(VALUES)
def test_the_difference_is_that_of_the_values_that_are_known(values):
    known = [v for v in values if v == v]
    found = max_min_difference(values)
    if len(known) < 2:
        assert math.isnan(found)
    else:
        assert found == max(known) - min(known)


def test_bad_input_1_one_estimable_group_has_no_difference():
    assert math.isnan(max_min_difference([0.75, math.nan]))
    assert math.isnan(max_min_difference([0.75]))
    assert math.isnan(max_min_difference([]))
    assert max_min_difference([0.75, 0.75]) == 0.0


def table(measure, **options):
    rows = scored_rows(
        [0.9, 0.8, 0.1, 0.2, 0.9, 0.1, 0.8, 0.2, 0.5],
        [1, 1, 0, 0, 1, 1, 0, 0, 1],
        list("aaaabbbbc"),
    )
    return subgroup_table(rows, "group", "score", measure, threshold=0.5, **options)


def test_the_worst_group_follows_the_direction_of_the_measure():
    assert worst_group(table("auroc", min_size=2), "auroc") == ("b", 0.5)
    assert worst_group(table("fpr", min_size=2), "fpr") == ("b", 0.5)
    assert worst_group(table("tpr", min_size=2), "tpr") == ("b", 0.5)
    assert worst_group(table("specificity", min_size=2), "specificity") == ("b", 0.5)


def test_a_group_that_cannot_be_evaluated_is_not_the_worst():
    # c has a positive only, and is too small where min_size is 2.
    assert worst_group(table("tpr", min_size=1), "tpr") == ("b", 0.5)
    assert worst_group(table("fpr", min_size=1), "fpr") == ("b", 0.5)
    name, value = worst_group(table("auroc"), "auroc")
    assert name == ""
    assert math.isnan(value)


def test_the_first_of_equally_bad_groups():
    rows = scored_rows([0.9, 0.1, 0.9, 0.1], [1, 0, 1, 0], list("zzyy"))
    found = subgroup_table(rows, "group", "score", "auroc", min_size=2)
    assert worst_group(found, "auroc") == ("y", 1.0)


def test_equity_scaled_auroc():
    assert equity_scaled_auroc(0.8, [0.8, 0.8]) == 0.8
    assert equity_scaled_auroc(0.8, [0.9, 0.6]) == pytest.approx(0.8 / 1.3, abs=1e-15)
    assert equity_scaled_auroc(0.8, [0.9, 0.6, math.nan]) == equity_scaled_auroc(0.8, [0.9, 0.6])
    assert math.isnan(equity_scaled_auroc(0.8, [0.9, math.nan]))
    assert math.isnan(equity_scaled_auroc(math.nan, [0.9, 0.8]))


def test_values_are_one_per_subgroup():
    with pytest.raises(InputError, match=r"values have shape \(1, 2\); give one value per subgroup"):
        max_min_difference(np.array([[0.1, 0.2]]))
    with pytest.raises(InputError, match="measure is 'f1'"):
        worst_group(table("auroc"), "f1")

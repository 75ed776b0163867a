"""The achievable difference: Equation 6 on tables of points, chosen on test and on validation."""

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frame.errors import InputError
from frame.mitigation.achievable import (
    UNMITIGATED,
    Candidate,
    achievable_both_ways,
    achievable_difference,
    candidates_of,
)

NAN = math.nan


def start(difference=0.10, auroc=0.80, **more):
    return Candidate(UNMITIGATED, difference, auroc, **more)


def test_the_smallest_difference_within_the_allowed_loss_wins():
    found = achievable_difference(
        [start(), Candidate("a", 0.07, 0.791), Candidate("b", 0.02, 0.789), Candidate("c", 0.08, 0.85)]
    )
    assert (found.method, found.difference, found.auroc) == ("a", 0.07, 0.791)
    assert found.reduction == pytest.approx(0.03)
    assert found.share == pytest.approx(70.0)
    assert found.candidates == (UNMITIGATED, "a", "c")
    (left_out,) = found.excluded
    assert left_out.method == "b"
    assert left_out.reason == "disease AUROC on test is 0.011 lower, more than 0.010"


def test_a_loss_of_exactly_the_tolerance_is_allowed_whatever_the_rounding():
    assert 0.8 - 0.1 > 0.7  # in floats
    found = achievable_difference([start(auroc=0.8), Candidate("a", 0.05, 0.7)], tolerance=0.1)
    assert found.method == "a"


def test_a_gain_of_any_size_is_allowed():
    assert achievable_difference([start(), Candidate("a", 0.05, 0.99)]).method == "a"


@pytest.mark.parametrize("order", [0, 1])
def test_equal_differences_go_to_the_unmitigated_head(order):
    both = [start(), Candidate("a", 0.10 - 1e-15, 0.80)]
    assert achievable_difference(both[::-1] if order else both).method == UNMITIGATED


def test_equal_methods_go_to_the_first():
    found = achievable_difference([start(), Candidate("b", 0.05, 0.80), Candidate("a", 0.05, 0.80)])
    assert found.method == "b"


@pytest.mark.parametrize("status", ["not fitted", "degenerate", "not estimable"])
def test_what_failed_never_wins_and_says_why(status):
    found = achievable_difference([start(), Candidate("a", 0.0, 0.9, status=status, reason="one class")])
    assert found.method == UNMITIGATED
    assert found.excluded[0].reason == f"{status}: one class"


def test_a_missing_value_excludes():
    found = achievable_difference([start(), Candidate("a", NAN, 0.9), Candidate("b", 0.01, NAN)])
    assert [e.reason for e in found.excluded] == [
        "no difference can be estimated on test",
        "no disease AUROC can be estimated on test",
    ]


def test_without_an_unmitigated_value_nothing_is_said():
    found = achievable_difference([start(difference=NAN), Candidate("a", 0.05, 0.8)])
    assert (found.status, found.method) == ("not estimable", "")
    assert found.reason == "the unmitigated head: no difference can be estimated on test"
    assert math.isnan(found.difference)
    assert math.isnan(found.reduction)


def test_chosen_on_validation_is_judged_on_test():
    candidates = [
        start(validation_difference=0.12, validation_auroc=0.80),
        Candidate("lucky on test", 0.01, 0.80, validation_difference=0.11, validation_auroc=0.80),
        Candidate("good on validation", 0.09, 0.70, validation_difference=0.03, validation_auroc=0.795),
        Candidate("too costly", 0.05, 0.80, validation_difference=0.02, validation_auroc=0.785),
    ]
    paper, ours = achievable_both_ways(candidates)
    assert (paper.chosen_on, paper.method, paper.difference) == ("test", "lucky on test", 0.01)
    assert (ours.chosen_on, ours.method) == ("validation", "good on validation")
    # Judged on test: its own loss there excludes nothing, it is shown.
    assert (ours.difference, ours.auroc) == (0.09, 0.70)
    assert (ours.chosen_difference, ours.chosen_auroc) == (0.03, 0.795)
    assert ours.excluded[0].reason.startswith("disease AUROC on validation is 0.015 lower")


def test_a_choice_on_validation_may_make_the_difference_larger():
    candidates = [
        start(validation_difference=0.12, validation_auroc=0.8),
        Candidate("a", 0.15, 0.8, validation_difference=0.10, validation_auroc=0.8),
    ]
    ours = achievable_difference(candidates, chosen_on="validation")
    assert ours.reduction == pytest.approx(-0.05)


def test_without_validation_points_only_the_choice_on_test_is_made():
    paper, ours = achievable_both_ways([start(), Candidate("a", 0.05, 0.8)])
    assert paper.method == "a"
    assert (ours.status, ours.method) == ("not estimable", "")


def test_share_of_no_difference_is_undefined():
    assert math.isnan(achievable_difference([start(difference=0.0)]).share)


def test_candidates_of_a_table():
    table = pd.DataFrame(
        {
            "method": [UNMITIGATED, "a"],
            "test_difference": [0.1, 0.05],
            "test_auroc": [0.8, 0.8],
            "status": ["ok", "degenerate"],
            "reason": ["", "constant"],
            "more": [1, 2],
        }
    )
    first, second = candidates_of(table)
    assert first == Candidate(UNMITIGATED, 0.1, 0.8, first.validation_difference, first.validation_auroc)
    assert math.isnan(first.validation_difference)
    assert (second.status, second.reason) == ("degenerate", "constant")


BAD = {
    "no_unmitigated": (
        lambda: achievable_difference([Candidate("a", 0.1, 0.8)]),
        "there is no candidate 'unmitigated'; the head that is not mitigated is always one of them.",
    ),
    "twice": (
        lambda: achievable_difference([start(), start()]),
        "method 'unmitigated' stands there 2 times; give each once.",
    ),
    "choice": (
        lambda: achievable_difference([start()], chosen_on="train"),
        "chosen_on is 'train'; allowed are 'test' and 'validation'.",
    ),
    "tolerance": (
        lambda: achievable_difference([start()], tolerance=-0.1),
        "tolerance is -0.1; it must be a number from 0 to 1.",
    ),
    "column": (
        lambda: candidates_of([{"method": "a", "test_difference": 0.1}]),
        "the table of methods has no column 'test_auroc'.",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_mistakes_are_sentences(case):
    act, sentence = BAD[case]
    with pytest.raises(InputError) as raised:
        act()
    assert str(raised.value) == sentence


points = st.floats(0, 1)
methods = st.lists(st.tuples(points, points, points, points), max_size=8)


@given(st.tuples(points, points, points, points), methods)
def test_against_the_equation(first, others):
    candidates = [
        Candidate(name, *values)
        for name, values in zip([UNMITIGATED, *map(str, range(len(others)))], [first, *others], strict=True)
    ]
    for choice, place in (("test", 0), ("validation", 2)):
        found = achievable_difference(candidates, chosen_on=choice)
        feasible = [c for c in candidates if c.on(choice)[1] >= first[place + 1] - 0.010 - 1e-12]
        assert found.chosen_difference <= min(c.on(choice)[0] for c in feasible) + 1e-12
        assert found.method in {c.method for c in feasible}
        assert len(found.candidates) + len(found.excluded) == len(candidates)
        # The unmitigated head is always feasible, so what is chosen is never larger where it was chosen.
        assert found.chosen_difference <= candidates[0].on(choice)[0]

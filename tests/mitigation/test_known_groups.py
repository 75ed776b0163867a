"""Which scores are judged: those of images whose group is known, and never those that are all one."""

import numpy as np
import pytest

from frame.heads.disease_heads import Head, fit_head
from frame.mitigation.contract import Outcome, Rows, Scores, Unit, not_fitted, scores_of_logits
from frame.mitigation.known_groups import head_failure, judged_outcome, known_scores, one_score

GROUPS = np.array([0, -1, 1, 1, 0, -1, 0, 1])
LOGITS = np.linspace(-2, 2, 8)


def unit(groups=GROUPS):
    rows = Rows(np.zeros((8, 1)), np.arange(8, dtype=np.int8) % 2, groups)
    start = scores_of_logits(LOGITS)
    return Unit(rows, rows, rows, ("a", "b"), None, (start, start))


def outcome(ranks, **more):
    scores = scores_of_logits(np.asarray(ranks, dtype=float))
    return Outcome(scores, scores, **more)


def test_scores_are_those_of_known_groups_in_order():
    found = judged_outcome(outcome(LOGITS, flags=("a flag",), facts={"rounds": 3}), unit())
    known = GROUPS >= 0
    for scores in (found.validation, found.test):
        assert np.array_equal(scores.ranks, LOGITS[known])
        assert np.array_equal(scores.probabilities, scores_of_logits(LOGITS).probabilities[known])
    assert (found.status, found.reason, found.flags, found.facts) == ("ok", "", ("a flag",), {"rounds": 3})


def test_where_every_group_is_known_the_scores_are_the_same_objects():
    given = outcome(LOGITS)
    found = judged_outcome(given, unit(np.abs(GROUPS)))
    assert found.test is given.test
    rows = unit(np.abs(GROUPS)).test
    assert known_scores(given.test, rows) is given.test


def test_what_an_unknown_image_has_does_not_matter():
    """A method may leave anything there, also numbers that are not finite."""
    ranks = np.where(GROUPS < 0, np.nan, LOGITS)
    assert judged_outcome(outcome(ranks), unit()).status == "ok"
    ranks[0] = np.nan
    found = judged_outcome(outcome(ranks), unit())
    assert (found.status, found.reason) == ("not fitted", "1 of its validation ranks are not finite")
    assert found.test is None


def test_one_score_for_all_judged_images_is_degenerate():
    """The others of no known group are not judged, so they do not count as another score."""
    ranks = np.where(GROUPS < 0, LOGITS, 0.25 + 1e-13 * LOGITS)
    found = judged_outcome(outcome(ranks), unit())
    assert (found.status, found.reason) == ("degenerate", "all 6 validation images have one score")
    assert len(found.test.ranks) == 6
    varied, flat = scores_of_logits(LOGITS), scores_of_logits(ranks)
    assert judged_outcome(Outcome(varied, flat), unit()).reason == "all 6 test images have one score"


def test_one_score_for_each_group_is_degenerate():
    found = judged_outcome(outcome(np.where(GROUPS == 1, 0.3, 0.7)), unit())
    assert (found.status, found.reason) == ("degenerate", "all validation images of a group have one score")


def test_the_reason_of_a_method_stays():
    given = outcome(np.zeros(8), status="degenerate", reason="it is constant")
    assert judged_outcome(given, unit()).reason == "it is constant"
    none = not_fitted("no rows")
    assert judged_outcome(none, unit()) is none


@pytest.mark.parametrize(
    ("ranks", "same"),
    [([1e6, 1e6 + 1e-6], True), ([0, 1e-6], False), ([0, 1], False), ([3.0], False), ([], False)],
)
def test_rounding_is_no_score(ranks, same):
    said = one_score(np.array(ranks, dtype=float), np.zeros(len(ranks), dtype=int), "test")
    assert bool(said) is same


def test_groups_of_one_image_are_not_called_constant():
    assert one_score(np.array([0.0, 1.0]), np.array([0, 1]), "test") == ""


def test_probabilities_leave_no_range():
    wrong = Scores(LOGITS, np.linspace(0, 1.1, 8))
    assert judged_outcome(Outcome(wrong, wrong), unit()).reason == (
        "its validation probabilities leave the range from 0 to 1"
    )


def test_heads_without_scores():
    x = np.random.default_rng(0).normal(size=(30, 2))
    assert head_failure(None) == ""
    assert head_failure(fit_head(x, np.arange(30) % 2)) == ""
    one = fit_head(x, np.zeros(30, dtype=int))
    assert one.status == "one class"
    assert head_failure(one) == f"the disease head could not be fitted: {one.reason}"
    assert head_failure(Head("mlp", "not fitted", "", {}, None)) == (
        "the disease head could not be fitted: not fitted"
    )

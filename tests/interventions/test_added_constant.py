"""A constant added to all features: it says nothing about anybody, and the paper's operator answers to it."""

from types import SimpleNamespace

import numpy as np
import pytest
from mechanism_worlds import asked, cohort

from frame.interventions.decision import MOVES_ENTANGLEMENT, UNDETERMINED
from frame.interventions.verdict_words import NOT_CENTRED


@pytest.fixture(scope="module")
def verdicts():
    """The same cohort as it is, and with 3 added to every number of every embedding."""
    found = cohort(2, 0.6)
    moved = SimpleNamespace(**vars(found) | {"features": np.asarray(found.features, dtype=np.float64) + 3.0})
    return asked(found), asked(moved)


def test_the_head_and_decodability_do_not_answer_to_it(verdicts):
    plain, moved = verdicts
    for name in ("decodability", "whitened entanglement"):
        assert moved.decided[name].before == pytest.approx(plain.decided[name].before, abs=1e-3)
        assert moved.decided[name].after == pytest.approx(plain.decided[name].after, abs=1e-3)


def test_entanglement_answers_to_it_and_the_verdict_is_another(verdicts):
    plain, moved = verdicts
    assert abs(moved.decided["entanglement"].after - plain.decided["entanglement"].after) > 0.02
    assert (plain.verdict, moved.verdict) == (MOVES_ENTANGLEMENT, UNDETERMINED)


def test_every_verdict_of_step_two_says_so(verdicts):
    assert all(NOT_CENTRED in one.caveats for one in verdicts)
    stopped = asked(cohort(2, None), alpha=0.01)
    assert not stopped.decided
    assert NOT_CENTRED not in stopped.caveats

"""The rule of step two, on numbers written by hand."""

import math

import numpy as np
import pytest

from frame.interventions.decision import (
    CONSISTENT,
    MOVES_BOTH,
    MOVES_DECODABILITY,
    MOVES_ENTANGLEMENT,
    UNDETERMINED,
    Change,
    Precondition,
    change_of,
    decide,
)

GATE = {"p": 0.01, "alpha": 0.05, "reason": ""}


def change(value, half=0.004, operator="entanglement", before=0.06, status="ok", reason=""):
    """A change with an interval of this half width."""
    nan = math.nan
    ends = (value - half, value + half) if status == "ok" else (nan, nan)
    return Change(operator, 64.0, before, before + value, value, *ends, 0.01, status=status, reason=reason)


def verdict(entanglement, decodability, loss=-0.05, gate=GATE, half=0.004):
    changes = {
        "entanglement": change(entanglement, half),
        "decodability": change(decodability, half, "decodability"),
    }
    return decide(gate, changes, Precondition(change(loss, before=0.8)))


@pytest.mark.parametrize(
    ("entanglement", "decodability", "expected"),
    [
        (0.05, 0.001, MOVES_ENTANGLEMENT),
        (-0.05, 0.001, MOVES_ENTANGLEMENT),
        (0.001, 0.02, MOVES_DECODABILITY),
        (0.001, -0.02, MOVES_DECODABILITY),
        (0.05, 0.02, MOVES_BOTH),
        (0.001, -0.001, UNDETERMINED),
        (0.005, 0.0, UNDETERMINED),
        (0.0051, 0.0, MOVES_ENTANGLEMENT),
    ],
    ids=["rises", "falls", "read-up", "read-down", "both", "neither", "at-the-limit", "above-the-limit"],
)
def test_four_answers(entanglement, decodability, expected):
    found, reasons = verdict(entanglement, decodability)
    assert found == expected
    assert bool(reasons) == (expected == UNDETERMINED)


def test_a_large_change_with_an_interval_over_zero_does_not_move():
    found, reasons = verdict(0.05, 0.0, half=0.06)
    assert found == UNDETERMINED
    assert reasons == (
        "neither operator moves the difference by more than 0.005 with an interval that excludes 0",
    )


@pytest.mark.parametrize("p", [0.0501, 0.5, 1.0])
def test_the_gate_stops(p):
    assert decide(GATE | {"p": p}, {}, None) == (CONSISTENT, ())


def test_p_equal_to_alpha_goes_on():
    assert verdict(0.05, 0.0, gate=GATE | {"p": 0.05})[0] == MOVES_ENTANGLEMENT


def test_without_a_p_it_is_undetermined():
    found, reasons = decide({"p": math.nan, "alpha": 0.05, "reason": "one estimable group"}, {}, None)
    assert found == UNDETERMINED
    assert reasons == ("step one gives no exceedance: one estimable group",)


@pytest.mark.parametrize(
    ("loss", "half", "holds"),
    [(-0.0101, 0.004, True), (-0.010, 0.004, False), (-0.05, 0.06, False), (0.05, 0.004, False)],
    ids=["fell", "at-the-limit", "interval-over-zero", "rose"],
)
def test_precondition(loss, half, holds):
    condition = Precondition(change(loss, half, before=0.8))
    assert condition.holds is holds
    assert bool(condition.reason) is not holds


def test_a_failed_precondition_beats_whatever_moved():
    for decodability in (0.0, 0.05):
        found, reasons = verdict(0.05, decodability, loss=-0.004)
        assert found == UNDETERMINED
        assert reasons[0].startswith("the entanglement test says nothing here: the disease AUROC went from")
        assert "predictive signal remains outside the removed directions" in reasons[0]


def test_a_change_that_cannot_be_judged():
    changes = {
        "entanglement": change(0.0, status="not estimable", reason="a group is empty"),
        "decodability": change(0.05, operator="decodability"),
    }
    found, reasons = decide(GATE, changes, Precondition(change(-0.05)))
    assert found == UNDETERMINED
    assert reasons == ("the change under entanglement cannot be judged: a group is empty",)
    assert changes["entanglement"].moves is None
    assert changes["entanglement"].direction == "stays"


def test_change_averages_directions_and_stays_paired():
    rng = np.random.default_rng(0)
    shared = rng.normal(0.06, 0.02, 500)  # noise that both strengths share
    own = rng.normal(0, 0.001, (3, 500))
    one = change_of(
        "decodability",
        1.0,
        (0.06, shared),
        (np.array([0.07, 0.08, 0.09]), shared + np.array([[0.01], [0.02], [0.03]]) + own),
    )
    assert one.after == pytest.approx(0.08)
    assert one.change == pytest.approx(0.02)
    assert one.n_directions == 3
    # Unpaired, the interval would be forty times as wide.
    assert 0.018 < one.lo < one.hi < 0.022
    assert one.moves
    assert one.direction == "rises"


def test_change_says_why_there_is_none():
    flat = np.full(100, 0.1)
    gone = np.full((1, 100), np.nan)
    gone[0, :30] = 0.2
    one = change_of("entanglement", 4.0, (0.1, flat), (np.array([0.2]), gone))
    assert (one.status, one.moves) == ("not estimable", None)
    assert one.reason == "undefined in 70 of 100 resamples"
    assert math.isnan(one.lo)
    known = change_of("entanglement", 4.0, (0.1, flat), (np.array([0.2]), flat[None] + 0.1), "no group")
    assert known.reason == "no group"

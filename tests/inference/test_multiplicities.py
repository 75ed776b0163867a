"""Patient multiplicities: their law, their streams and their limits."""

import math

import numpy as np
import pytest

from frame.errors import InputError
from frame.inference import multiplicities
from frame.inference.multiplicities import drawn_patients, patient_multiplicities


def test_every_resample_draws_as_many_patients_as_there_are():
    table = patient_multiplicities(57, resamples=40, seed=3)
    assert table.shape == (57, 40)
    assert table.dtype == np.uint16
    assert table.sum(axis=0).tolist() == [57] * 40


def test_the_draws_are_those_of_earlier_versions():
    # Golden values of this package, seed 0: a change would move every stored interval.
    assert patient_multiplicities(8, resamples=3).T.tolist() == [
        [1, 2, 1, 0, 0, 1, 2, 1],
        [2, 1, 1, 1, 1, 2, 0, 0],
        [1, 1, 0, 1, 1, 2, 1, 1],
    ]


def test_a_resample_does_not_depend_on_those_drawn_with_it():
    whole = patient_multiplicities(31, resamples=20, seed=5)
    pieces = [
        patient_multiplicities(31, resamples=size, seed=5, first=first) for first, size in ((0, 7), (7, 13))
    ]
    assert np.array_equal(np.hstack(pieces), whole)
    assert np.array_equal(patient_multiplicities(31, resamples=1, seed=5, first=19)[:, 0], whole[:, 19])


def test_seeds_and_resamples_differ():
    tables = [patient_multiplicities(200, resamples=2, seed=seed) for seed in (0, 1)]
    columns = {tuple(table[:, j].tolist()) for table in tables for j in (0, 1)}
    assert len(columns) == 4


def test_multiplicities_follow_the_multinomial_law():
    n, resamples = 40, 4000
    table = patient_multiplicities(n, resamples=resamples, seed=11).astype(float)
    # Mean 1 and variance 1 - 1/n for each patient, covariance -1/n for each pair.
    standard_error = math.sqrt((1 - 1 / n) / resamples)
    assert np.abs(table.mean(axis=1) - 1).max() < 5 * standard_error
    assert table.var(axis=1).mean() == pytest.approx(1 - 1 / n, rel=0.02)
    covariance = np.cov(table)
    off_diagonal = covariance[~np.eye(n, dtype=bool)]
    assert off_diagonal.mean() == pytest.approx(-1 / n, rel=0.02)
    share_absent = (table == 0).mean()
    assert share_absent == pytest.approx((1 - 1 / n) ** n, abs=0.005)


def test_the_draws_are_in_range_and_make_the_table():
    draws = drawn_patients(13, seed=2, resample=4)
    assert draws.dtype == np.uint32
    assert draws.shape == (13,)
    assert np.array_equal(
        np.bincount(draws, minlength=13), patient_multiplicities(13, resamples=1, seed=2, first=4)[:, 0]
    )


def test_a_count_that_does_not_fit_is_an_error_and_not_a_small_number(monkeypatch):
    monkeypatch.setattr(
        multiplicities, "drawn_patients", lambda n, seed, resample: np.zeros(n, dtype=np.uint32)
    )
    with pytest.raises(OverflowError, match="more than 65535 times in resample 2"):
        patient_multiplicities(65_536, resamples=1, first=2)
    assert patient_multiplicities(65_535, resamples=1)[0, 0] == 65_535


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_patients": 0}, "n_patients is 0; give a whole number of at least 1 and at most 4294967295."),
        ({"n_patients": 2.5}, "n_patients is 2.5; give a whole number of at least 1 and at most 4294967295."),
        ({"n_patients": 5, "resamples": 0}, "resamples is 0; give a whole number of at least 1."),
        ({"n_patients": 5, "resamples": True}, "resamples is True; give a whole number of at least 1."),
        ({"n_patients": 5, "resamples": "1000"}, "resamples is '1000'; give a whole number of at least 1."),
        ({"n_patients": 5, "seed": -1}, "seed is -1; give a whole number of at least 0."),
        ({"n_patients": 5, "seed": None}, "seed is None; give a whole number of at least 0."),
        ({"n_patients": 5, "first": -3}, "first is -3; give a whole number of at least 0."),
    ],
)
def test_arguments_out_of_range_are_named(arguments, message):
    with pytest.raises(InputError) as error:
        patient_multiplicities(**arguments)
    assert str(error.value) == message

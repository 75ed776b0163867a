"""Which rows are taken when there are more than the cap."""

import re

import numpy as np
import pytest

from frame.errors import InputError
from frame.heads.capped_rows import CAP, capped_rows


def test_all_rows_up_to_the_cap():
    assert CAP == 100_000
    assert np.array_equal(capped_rows(100_000), np.arange(100_000))
    assert np.array_equal(capped_rows(5, cap=5), np.arange(5))
    assert len(capped_rows(0)) == 0


def test_beyond_it_a_draw_without_replacement_that_stays():
    rows = capped_rows(250_000)
    assert rows.dtype == np.int64
    assert len(rows) == 100_000
    assert (np.diff(rows) > 0).all()
    assert np.array_equal(rows, capped_rows(250_000, seed=0))
    assert not np.array_equal(rows, capped_rows(250_000, seed=1))
    # Every tenth of the rows has about its share: SD of a hypergeometric count is 73 here.
    assert np.abs(np.bincount(rows // 25_000) - 10_000).max() < 400


def test_flags_name_the_rows_that_may_be_used():
    flags = np.arange(1000) % 3 == 0
    assert np.array_equal(capped_rows(flags), np.flatnonzero(flags))
    drawn = capped_rows(flags, cap=50, seed=2)
    assert len(set(drawn.tolist())) == 50
    assert flags[drawn].all()


@pytest.mark.parametrize("rows", [-1, 2.0, True, np.arange(3), "10"], ids=repr)
def test_other_rows_are_refused(rows):
    with pytest.raises(InputError, match=re.escape("give their number, or one flag (bool) per row.")):
        capped_rows(rows)


def test_a_cap_of_nothing_is_refused():
    with pytest.raises(InputError, match=r"^The cap on training rows is 0; give at least 1\.$"):
        capped_rows(10, cap=0)

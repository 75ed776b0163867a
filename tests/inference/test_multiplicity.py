import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from frame.inference.multiplicity import benjamini_hochberg, largest_rejected

P_VALUES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30)


@given(P_VALUES)
@settings(derandomize=True, deadline=None)
def test_equal_to_scipy(p):
    assert benjamini_hochberg(p) == pytest.approx(false_discovery_control(p, method="bh"), abs=1e-15)


def test_example_of_benjamini_and_hochberg_1995():
    # Table 1 of the article: 15 p values, of which the first four are rejected at 0.05.
    p = [
        0.0001,
        0.0004,
        0.0019,
        0.0095,
        0.0201,
        0.0278,
        0.0298,
        0.0344,
        0.0459,
        0.3240,
        0.4262,
        0.5719,
        0.6528,
    ]
    p += [0.7590, 1.0000]
    assert (benjamini_hochberg(p) < 0.05).sum() == 4


def test_a_test_that_was_not_made_keeps_nan_and_does_not_count():
    q = benjamini_hochberg([0.02, np.nan, 0.04])
    assert np.isnan(q[1])
    assert q[[0, 2]] == pytest.approx([0.04, 0.04])
    assert np.isnan(benjamini_hochberg([np.nan])).all()
    assert len(benjamini_hochberg([])) == 0


@given(P_VALUES, st.data())
@settings(derandomize=True, deadline=None, max_examples=300)
def test_the_bound_is_where_the_verdict_turns(p, data):
    alpha = 0.05
    i = data.draw(st.integers(0, len(p) - 1))
    bound = largest_rejected(p, alpha)[i]
    replaced = data.draw(
        st.floats(0.0, 1.0) | st.sampled_from([bound * 0.999999, min(1.0, bound * 1.000001)])
    )
    if abs(replaced - bound) < 1e-12:
        return  # a verdict exactly on the edge hangs on the last bit
    changed = [*p[:i], replaced, *p[i + 1 :]]
    near_edge = any(abs(x * len(p) / k - alpha) < 1e-12 for x in changed for k in range(1, len(p) + 1))
    if not near_edge:
        assert bool(benjamini_hochberg(changed)[i] < alpha) == bool(replaced < bound)


def test_bound_leaves_out_what_was_not_made():
    bound = largest_rejected([0.001, np.nan, 0.2], 0.05)
    assert bound[0] == pytest.approx(0.025)
    assert np.isnan(bound[1])
    assert bound[2] == pytest.approx(0.05)

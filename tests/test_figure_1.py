"""Figure 1: printed counts, the reference at these counts, and both operators in two dimensions."""

import numpy as np
import pytest
from drawn_text import misplaced_texts
from scipy.stats import binom
from sklearn.metrics import roc_auc_score

from frame.cohorts.phantom.truth import PhantomTruth
from frame.figures.figure_1 import (
    SENSITIVITY,
    fair_sensitivities,
    panel_a,
    panel_b,
    panel_c,
    phantom_image,
    planar_example,
    printed_positives,
)


@pytest.fixture(scope="module")
def example():
    return planar_example()


@pytest.fixture(scope="module")
def figures(example):
    counts = printed_positives()
    return {
        "a": panel_a(phantom_image(PhantomTruth()), counts),
        "b": panel_b(counts),
        "c": panel_c(example),
    }


def test_counts_are_the_printed_ones():
    counts = printed_positives()
    assert counts["race"].tolist() == ["White", "Other", "Black", "Asian", "Hispanic or Latino"]
    assert counts["n_positive"].tolist() == [7479, 5716, 2012, 747, 392]


def test_the_reference_is_that_of_binomial_sensitivities():
    counts = printed_positives()
    reference = fair_sensitivities(counts)
    rng = np.random.default_rng(0)
    drawn = np.stack(
        [binom.rvs(n, SENSITIVITY, size=40_000, random_state=rng) / n for n in counts["n_positive"].tolist()]
    )
    ranges = drawn.max(axis=0) - drawn.min(axis=0)
    assert reference.mean == pytest.approx(ranges.mean(), abs=5 * ranges.std() / 200)
    assert reference.exceedance(0.055) == pytest.approx((ranges >= 0.055 - 1e-9).mean(), abs=0.006)


def test_the_phantom_is_drawn_large_and_the_same_each_time():
    image = phantom_image(PhantomTruth())
    assert image.shape == (256, 256)
    assert image.dtype == np.uint8
    assert image.std() > 20
    np.testing.assert_array_equal(image, phantom_image(PhantomTruth()))
    assert (image != phantom_image(PhantomTruth(seed=1))).any()


def test_operators_do_to_the_points_what_their_equations_say(example):
    before, apart, taken = example.states.values()
    larger, smaller = example.signs > 0, example.signs < 0
    moved = apart - before
    np.testing.assert_allclose(moved[larger], np.broadcast_to(moved[larger][0], moved[larger].shape))
    np.testing.assert_allclose(moved[smaller], -np.broadcast_to(moved[larger][0], moved[smaller].shape))
    assert np.linalg.norm(moved[0]) == pytest.approx(before.std(axis=0).mean())
    np.testing.assert_array_equal(taken[larger], before[larger])
    lost = before[smaller] - taken[smaller]
    assert np.linalg.matrix_rank(lost, tol=1e-8) == 1
    np.testing.assert_allclose(taken[smaller] @ lost[0], 0.0, atol=1e-12)
    np.testing.assert_allclose(moved[0] @ lost[0], 0.0, atol=1e-12)


def test_only_entanglement_makes_a_difference(example):
    gaps = [abs(larger - smaller) for larger, smaller in example.aurocs.values()]
    assert gaps[1] == pytest.approx(gaps[0], abs=0.03)
    assert gaps[2] > gaps[0] + 0.1
    own = example.signs < 0
    across = roc_auc_score(example.labels[own], example.states["as they are"][own, 1])
    assert example.aurocs["entanglement"][1] == pytest.approx(max(across, 1 - across), abs=0.25)


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_text_is_large_inside_and_not_on_other_text(figures, name):
    assert misplaced_texts(figures[name].figure, 11.5) == []


def test_bars_are_the_probabilities_of_the_reference(figures):
    (axes,) = figures["b"].figure.axes
    heights = [patch.get_height() for patch in axes.patches]
    assert sum(heights) == pytest.approx(100.0, abs=0.05)
    reference = fair_sensitivities(printed_positives())
    dark = {tuple(np.round(patch.get_facecolor(), 2)) for patch in axes.patches[-3:]}
    assert len(dark) == 1
    beyond = sum(p.get_height() for p in axes.patches if tuple(np.round(p.get_facecolor(), 2)) in dark)
    assert beyond == pytest.approx(100 * reference.exceedance(0.055), abs=0.05)


def test_words_say_what_is_drawn(figures):
    assert "A phantom of 256 by 256 pixels" in repr(figures["a"])
    assert "Hispanic or Latino 392" in repr(figures["a"])
    assert "Made-up points" in repr(figures["c"])

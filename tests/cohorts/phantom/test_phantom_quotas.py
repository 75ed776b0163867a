"""Numbers that add up, shares that are met, latents that patients share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frame.cohorts.phantom.quotas import (
    evenly,
    generator,
    images_of_patients,
    latent_finding,
    one_of,
    shuffled,
)

SHARES = {"a": 0.5, "b": 0.3, "c": 0.2}


@given(st.integers(0, 3000), st.lists(st.floats(0.05, 1), min_size=1, max_size=5))
def test_images_add_up(n_images, weights):
    shares = np.array(weights) / sum(weights)
    counts = images_of_patients(n_images, tuple(shares))
    assert counts.sum() == n_images
    assert not len(counts) or (counts.min() >= 1 and counts.max() <= len(shares))


def test_images_follow_the_shares():
    counts = images_of_patients(2600, (0.4, 0.25, 0.2, 0.15))
    found = np.bincount(counts)[1:] / len(counts)
    np.testing.assert_allclose(found, (0.4, 0.25, 0.2, 0.15), atol=0.005)


@pytest.mark.parametrize("draw", [evenly, shuffled])
def test_shares_are_met(draw):
    levels = draw(200, SHARES, generator(1, "x", "levels"))
    for level, share in SHARES.items():
        # Up to a few of 200, where independent draws would spread by 7.
        assert abs((levels == level).sum() - 200 * share) <= 3


def test_evenly_meets_shares_in_every_run():
    levels = evenly(1000, SHARES, generator(2, "x", "levels"))
    for start in range(0, 1000, 50):
        assert abs((levels[start : start + 50] == "c").sum() - 10) <= 2


def test_streams_depend_on_their_names_only():
    first = generator(0, "a", "b").random()
    assert first == generator(0, "a", "b").random()
    assert first not in (generator(1, "a", "b").random(), generator(0, "b", "b").random())


def test_latent_has_prevalence_and_intraclass_share():
    patients = np.repeat(np.arange(20_000), 2)
    present, severity = latent_finding(generator(0, "x", "latent"), patients, 0.2, 0.5)
    # Standard error of the mean of 20,000 pairs that share half of their latent is about .0025.
    assert present.mean() == pytest.approx(0.2, abs=0.008)
    pairs = present.reshape(-1, 2)
    # Two normals with correlation .5, both above the quantile of .2: probability .0872.
    assert pairs.all(axis=1).mean() == pytest.approx(0.0872, abs=0.007)
    assert severity[present].min() >= 0.25
    assert severity[~present].max() < 0.25
    # Beta(2, 2) on .25 to 1 has mean .625 and standard deviation .168.
    assert severity[present].mean() == pytest.approx(0.625, abs=0.01)
    assert severity[present].std() == pytest.approx(0.168, abs=0.01)


def test_one_of_takes_the_first_most_often():
    found = one_of(generator(0, "x", "texts"), 3000, ("a", "b", "c"), 0.6)
    assert (found == "a").mean() == pytest.approx(0.6, abs=0.04)
    assert set(one_of(generator(0, "x", "texts"), 5, ("a",), 0.6)) == {"a"}

"""The collinearity model: drawn as the paper draws it, and its AUROCs in closed form."""

import numpy as np
import pytest

import frame.synthetic as synthetic
from frame.errors import InputError
from frame.measures.values import measure_value
from frame.synthetic import (
    COLLINEARITIES,
    DIMENSIONS,
    LARGEST_COSINE,
    SEEDS,
    SIGNAL_DIMENSIONS,
    draw_sample,
    within_group_aurocs,
)


def drawn_as_written_down(rho, seed):
    """The recipe step by step, with the numbers of the equation in it."""
    generator = np.random.RandomState(seed)
    w_d, w_perp = generator.randn(32), generator.randn(32)
    w_d /= np.linalg.norm(w_d)
    w_perp -= (w_perp @ w_d) * w_d
    w_perp /= np.linalg.norm(w_perp)
    y, a = generator.randint(0, 2, 4000), generator.randint(0, 2, 4000)
    x, eta = generator.randn(4000, 160), generator.randn(4000)
    rho = min(rho, 0.999)
    w_a = rho * w_d + np.sqrt(1 - rho**2) * w_perp
    for i in range(4000):
        x[i, :32] += (
            1.2 * (2 * y[i] - 1) * w_d + 0.5 * (2 * a[i] - 1) * w_a + (a[i] == 1) * 2.0 * eta[i] * w_a
        )
    order = np.random.RandomState(seed).permutation(4000)
    return x, y, a, order[:2400], order[2400:3000], order[3000:]


@pytest.mark.parametrize(("rho", "seed"), [(0.0, 0), (0.25, 3), (1.0, 4)])
def test_a_draw_is_the_one_written_down(rho, seed):
    x, y, a, train, validation, test = drawn_as_written_down(rho, seed)
    sample = draw_sample(rho, seed)
    np.testing.assert_allclose(sample.features, x, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(sample.labels, y)
    np.testing.assert_array_equal(sample.groups, a)
    for name, rows in (("train", train), ("validation", validation), ("test", test)):
        np.testing.assert_array_equal(np.flatnonzero(sample.split == name), np.sort(rows))


def test_the_vectors_have_the_cosine_that_was_asked_for():
    for rho in COLLINEARITIES:
        sample = draw_sample(rho, 1, samples=100)
        for vector in (sample.disease_direction, sample.group_direction):
            assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-12)
            assert not vector[SIGNAL_DIMENSIONS:].any()
        cosine = float(sample.disease_direction @ sample.group_direction)
        assert cosine == pytest.approx(min(rho, LARGEST_COSINE), abs=1e-12)
        assert sample.collinearity == rho


def test_a_seed_shares_everything_but_the_angle_between_collinearities():
    first, second = draw_sample(0.0, 2), draw_sample(0.75, 2)
    np.testing.assert_array_equal(first.labels, second.labels)
    np.testing.assert_array_equal(first.groups, second.groups)
    np.testing.assert_array_equal(first.split, second.split)
    np.testing.assert_array_equal(first.disease_direction, second.disease_direction)
    np.testing.assert_array_equal(
        first.features[:, SIGNAL_DIMENSIONS:], second.features[:, SIGNAL_DIMENSIONS:]
    )
    assert np.abs(first.features[:, :SIGNAL_DIMENSIONS] - second.features[:, :SIGNAL_DIMENSIONS]).max() > 0.1
    assert (draw_sample(0.0, 3).labels != first.labels).any()


@pytest.mark.parametrize("samples", [100, 101, 333, 4000])
def test_every_sample_has_one_split_and_the_shares_hold(samples):
    split = draw_sample(0.5, 0, samples=samples).split
    names, counts = np.unique(split, return_counts=True)
    assert set(names) == {"train", "validation", "test"}
    shares = dict(zip(names, counts / samples, strict=True))
    for name, share in (("train", 0.6), ("validation", 0.15), ("test", 0.25)):
        assert abs(shares[name] - share) <= 1 / samples


def test_the_drawn_moments_are_those_of_the_equation():
    sample = draw_sample(0.5, 0, samples=200_000)
    along = sample.features @ sample.group_direction
    means, spreads = np.zeros((2, 2)), np.zeros((2, 2))
    for y in (0, 1):
        for a in (0, 1):
            own = along[(sample.labels == y) & (sample.groups == a)]
            means[y, a], spreads[y, a] = own.mean(), own.std()
    np.testing.assert_allclose(means, [[-0.6 - 0.5, -0.6 + 0.5], [0.6 - 0.5, 0.6 + 0.5]], atol=0.03)
    np.testing.assert_allclose(spreads, [[1.0, 5**0.5], [1.0, 5**0.5]], atol=0.02)


# ---- the closed form


@pytest.mark.parametrize("rho", [0.0, 0.5, 1.0])
def test_within_group_aurocs_are_those_of_many_samples(rho):
    sample = draw_sample(rho, 1, samples=100_000)
    direction = sample.disease_direction - 0.3 * sample.group_direction
    direction[SIGNAL_DIMENSIONS:] = 0.02
    scores = sample.features @ direction
    for group, expected in enumerate(within_group_aurocs(direction, sample)):
        rows = sample.groups == group
        # Four standard errors of an AUROC of 50,000 samples.
        assert measure_value("auroc", scores[rows], sample.labels[rows]) == pytest.approx(expected, abs=0.006)


def test_along_the_disease_direction_only_the_second_group_depends_on_the_angle():
    found = [
        within_group_aurocs(draw_sample(rho, 0).disease_direction, draw_sample(rho, 0)) for rho in (0, 1)
    ]
    assert found[0] == pytest.approx((0.955157, 0.955157), abs=1e-6)
    assert found[1] == pytest.approx((0.955157, 0.776239), abs=1e-6)


def test_the_shift_of_a_group_changes_no_within_group_auroc():
    direction = np.random.default_rng(0).normal(size=DIMENSIONS)
    still, moved = (draw_sample(0.75, 0, group_effect=effect) for effect in (0.0, 5.0))
    assert within_group_aurocs(direction, still) == within_group_aurocs(direction, moved)
    for group in (0, 1):
        rows = still.groups == group
        values = [
            measure_value("auroc", one.features[rows] @ direction, one.labels[rows]) for one in (still, moved)
        ]
        assert values[0] == pytest.approx(values[1], abs=1e-9)


def test_length_of_a_direction_does_not_matter_and_its_sign_reverses_the_order():
    sample = draw_sample(0.5, 0)
    direction = np.random.default_rng(1).normal(size=DIMENSIONS)
    once = within_group_aurocs(direction, sample)
    assert within_group_aurocs(7 * direction, sample) == pytest.approx(once, abs=1e-12)
    assert within_group_aurocs(-direction, sample) == pytest.approx([1 - one for one in once], abs=1e-12)


def test_without_noise_both_groups_are_alike():
    sample = draw_sample(1.0, 0, noise=0.0)
    first, second = within_group_aurocs(sample.disease_direction, sample)
    assert first == second


# ---- what is refused


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"collinearity": -0.1}, "collinearity is -0.1; give a number from 0 to 1."),
        ({"collinearity": 1.5}, "collinearity is 1.5; give a number from 0 to 1."),
        ({"collinearity": float("nan")}, "collinearity is nan; give a number from 0 to 1."),
        ({"collinearity": "0.5"}, "collinearity is '0.5'; give a number from 0 to 1."),
        ({"collinearity": True}, "collinearity is True; give a number from 0 to 1."),
        ({"seed": -1}, "seed is -1; give a whole number from 0 to 4294967295."),
        ({"seed": 1.0}, "seed is 1.0; give a whole number from 0 to 4294967295."),
        ({"samples": 10}, "samples is 10; give a whole number of at least 100."),
        ({"samples": False}, "samples is False; give a whole number of at least 100."),
        ({"noise": -1.0}, "noise is -1.0; give a finite number, at least 0."),
        ({"group_effect": float("inf")}, "group_effect is inf; give a finite number, at least 0."),
        ({"disease_effect": None}, "disease_effect is None; give a finite number, at least 0."),
    ],
    ids=lambda given: next(iter(given)) if isinstance(given, dict) else "",
)
def test_a_wrong_argument_is_one_sentence(given, sentence):
    with pytest.raises(InputError) as caught:
        draw_sample(**{"collinearity": 0.5, "seed": 0, **given})
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("direction", "sentence"),
    [
        (np.ones(3), "direction has shape (3,); give 160 coefficients."),
        (np.zeros(160), "direction is zero or not finite; give the coefficients of a fitted head."),
        (np.full(160, np.nan), "direction is zero or not finite; give the coefficients of a fitted head."),
    ],
    ids=["too short", "zero", "not finite"],
)
def test_a_wrong_direction_is_one_sentence(direction, sentence):
    with pytest.raises(InputError) as caught:
        within_group_aurocs(direction, draw_sample(0.5, 0))
    assert str(caught.value) == sentence


def test_numpy_integers_are_whole_numbers():
    assert draw_sample(np.float64(0.5), np.int64(1), samples=np.int32(100)).seed == 1


def test_the_setting_is_the_printed_one():
    from frame.tables import load_table

    printed = load_table("paper_numbers").set_index("id")["value"]
    assert len(COLLINEARITIES) * len(SEEDS) == int(printed["syn_units"])
    assert int(printed["syn_samples"].replace(",", "")) == synthetic.SAMPLES

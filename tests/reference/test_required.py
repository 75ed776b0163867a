"""``frame.required_counts`` against a scan of every count, and against simulation."""

import math

import numpy as np
import pytest
from oracles import hanley_mcneil_sd

import frame
from frame.errors import InputError
from frame.reference.inputs import check_counts
from frame.reference.required import (
    LARGEST_NEEDED,
    GrowingCounts,
    powers_at,
    repeated_image_effect,
    required_counts,
)


def detectable(value, counts, measure="tpr", **options):
    positives, negatives = counts
    return frame.detectable_difference(value, positives or None, negatives or None, measure, **options)


@pytest.mark.parametrize(
    ("value", "difference", "start", "options"),
    [
        (0.8, 0.15, [50, 50], {}),
        (0.8, 0.15, [20, 60], {}),
        (0.9, 0.2, [10, 10, 10], {}),
        (0.5, 0.25, [7, 9], {"power": 0.9, "alpha": 0.1}),
        (0.2, 0.15, [40, 50], {}),
        (0.1, 0.15, [40, 50], {}),  # the different subgroup lies above the others
        (0.7, 0.3, [400, 200], {}),  # fewer than given are enough
    ],
)
def test_the_answer_is_the_last_count_that_fails_plus_one(value, difference, start, options):
    scaling = GrowingCounts.of(start, None, "tpr")
    found = required_counts(value, difference, start, None, "tpr", **options)
    up_to = 2 * found.smallest + 10
    reached = [detectable(value, scaling.at(s), **options) <= difference for s in range(1, up_to)]
    failing = [s for s, ok in zip(range(1, up_to), reached, strict=True) if not ok]
    assert found.smallest == failing[-1] + 1
    assert found.n_positive == scaling.at(found.smallest)[0]
    assert found.n_negative == ()


def test_a_saw_tooth_does_not_end_the_search_early():
    """With 410 cases each 0.08 is detectable, with 413 it is not any more: rates move in steps."""
    assert detectable(0.8, ([410, 410], ())) <= 0.08 < detectable(0.8, ([413, 413], ()))
    assert required_counts(0.8, 0.08, [50, 50], None, "tpr").smallest == 424


@pytest.mark.parametrize("method", ["hanley-mcneil", "binormal"])
@pytest.mark.parametrize(
    ("value", "difference", "positives", "negatives"),
    [
        (0.8, 0.15, [30, 20], [90, 40]),
        (0.92, 0.1, [50, 9, 12], [50, 60, 8]),
        (0.7, 0.05, [400, 90], [500, 80]),
    ],
)
def test_auroc_at_the_answer_and_one_less(value, difference, positives, negatives, method):
    found = required_counts(value, difference, positives, negatives, method=method)
    scaling = GrowingCounts.of(positives, negatives, "auroc")
    at = detectable(value, scaling.at(found.smallest), "auroc", method=method)
    less = detectable(value, scaling.at(found.smallest - 1), "auroc", method=method)
    assert at <= difference + 1e-7 < less
    assert (found.detectable, found.detectable_one_less) == (at, less)
    assert (found.n_positive, found.n_negative) == scaling.at(found.smallest)
    assert found.factor == pytest.approx(found.smallest / scaling.start)


def simulated_power(draw, value, difference, chosen, alpha=0.05, draws=60_000):
    """Share of studies that reach the simulated critical value, one subgroup lower by the difference."""
    rng = np.random.default_rng(77)

    def ranges(values):
        drawn = np.stack([draw(rng, v, j, draws) for j, v in enumerate(values)])
        return drawn.max(axis=0) - drawn.min(axis=0)

    n_groups = len(chosen)
    fair, times = np.unique(np.round(ranges([value] * n_groups), 12), return_counts=True)
    at_least = np.cumsum(times[::-1])[::-1] / draws
    critical = fair[at_least <= alpha][0]
    moved = [value - difference if at else value for at in chosen]
    return np.mean(ranges(moved) >= critical - 1e-9)


def test_power_at_the_answer_by_simulated_rates():
    found = required_counts(0.8, 0.12, [40, 25], None, "tpr")
    n = found.n_positive

    def draw(rng, v, j, draws):
        return rng.binomial(n[j], v, draws) / n[j]

    powers = [simulated_power(draw, 0.8, 0.12, [j == i for j in range(2)]) for i in range(2)]
    assert min(powers) == pytest.approx(0.8, abs=0.03)
    counts = check_counts(0.8, n, None, "tpr", "auto")
    assert powers_at(counts, 0.12, alpha=0.05, kappa=1.25) == pytest.approx(powers, abs=0.03)


def test_power_at_the_answer_by_simulated_auroc():
    found = required_counts(0.85, 0.1, [60, 40, 20], [200, 100, 100])
    n = list(zip(found.n_positive, found.n_negative, strict=True))

    def draw(rng, v, j, draws):
        return np.clip(rng.normal(v, hanley_mcneil_sd(v, *n[j]), draws), 0, 1)

    powers = [simulated_power(draw, 0.85, 0.1, [j == i for j in range(3)]) for i in range(3)]
    assert min(powers) == pytest.approx(0.8, abs=0.015)
    counts = check_counts(0.85, found.n_positive, found.n_negative, "auroc", "auto")
    assert powers_at(counts, 0.1, alpha=0.05, kappa=1.25) == pytest.approx(powers, abs=0.015)


def test_powers_meet_the_power_at_the_detectable_difference():
    counts = check_counts(0.8, [150, 60, 60], [900, 300, 200], "auroc", "auto")
    d = frame.detectable_difference(0.8, [150, 60, 60], [900, 300, 200])
    powers = powers_at(counts, d, alpha=0.05, kappa=1.25)
    assert min(powers) == pytest.approx(0.8, abs=1e-6)
    assert len(set(powers)) == 3


def test_proportions_are_kept_and_rounded_up():
    found = required_counts(0.8, 0.1, [10, 30, 25], None, "tpr")
    s = found.smallest
    assert found.n_positive == (s, 3 * s, math.ceil(2.5 * s))


def test_the_unused_class_does_not_matter():
    with_it = required_counts(0.8, 0.15, [50, 50], [3, 9], "tpr")
    assert with_it == required_counts(0.8, 0.15, [50, 50], None, "tpr")
    fpr = required_counts(0.8, 0.15, None, [50, 50], "fpr")
    assert fpr.n_negative == with_it.n_positive
    assert fpr.n_positive == ()


def test_one_subgroup_grows_and_the_others_stay():
    found = required_counts(0.8, 0.1, [1500, 1000, 60], [1500, 900, 300], grow=2)
    assert found.n_positive[:2] == (1500, 1000)
    assert found.n_negative[:2] == (1500, 900)
    assert found.n_negative[2] == 5 * found.n_positive[2]
    less = ([1500, 1000, found.smallest - 1], [1500, 900, 5 * (found.smallest - 1)])
    assert detectable(0.8, less, "auroc") > 0.1 >= found.detectable - 1e-7


def test_no_count_reaches_it_when_another_subgroup_limits():
    found = required_counts(0.8, 0.05, [1500, 60, 60], [1500, 300, 200], grow=2)
    assert (found.status, found.n_positive, found.n_negative) == ("not estimable", (), ())
    assert found.reason == (
        "no counts up to 1,000,000 cases of a class in a subgroup reach the power; "
        "the subgroups that do not grow may be what limits it"
    )
    assert math.isnan(found.factor)
    # What limits it: with the third subgroup known almost exactly, 0.1 stays out of sight.
    limit = frame.detectable_difference(
        0.8, [1500, 60, LARGEST_NEEDED * 2 // 10], [1500, 300, LARGEST_NEEDED]
    )
    assert found.detectable == pytest.approx(limit, abs=0.002)
    assert found.detectable > 0.05


def test_no_count_reaches_a_difference_that_is_too_small():
    found = required_counts(0.9, 0.0005, [50, 50], None, "tpr")
    assert found.reason == "no counts up to 1,000,000 cases of a class in a subgroup reach the power"
    assert found.detectable > 0.0005


@pytest.mark.parametrize("measure", ["tpr", "auroc"])
def test_a_design_effect_multiplies_the_counts(measure):
    negatives = [100, 100] if measure == "auroc" else None
    plain = required_counts(0.8, 0.1, [100, 100], negatives, measure)
    repeated = required_counts(0.8, 0.1, [100, 100], negatives, measure, design_effect=2.0)
    assert repeated.smallest == pytest.approx(2 * plain.smallest, abs=1)
    assert repeated.detectable == pytest.approx(plain.detectable, abs=1e-3)


def test_more_is_needed_for_less_alpha_more_power_and_smaller_differences():
    def needed(difference=0.1, **options):
        return required_counts(0.8, difference, [60, 40], [90, 80], **options).smallest

    assert needed() < needed(alpha=0.01)
    assert needed() < needed(power=0.9)
    assert needed() < needed(0.08) < needed(0.06)


def test_repeated_images():
    assert repeated_image_effect(1.0, 0.9) == 1.0
    assert repeated_image_effect(3.0, 0.0) == 1.0
    assert repeated_image_effect(3.0, 1.0) == 3.0
    assert repeated_image_effect(2.4, 0.5) == pytest.approx(1.7)


def test_repeated_images_by_simulated_rates():
    # Simulated: 4 images of each of 50 patients; an image copies the patient's own draw with probability
    # sqrt(0.5), so that two images of a patient correlate by 0.5.
    rng = np.random.default_rng(5)
    own = rng.random((20_000, 50, 1)) < 0.7
    copies = rng.random((20_000, 50, 4)) < np.sqrt(0.5)
    hits = np.where(copies, own, rng.random((20_000, 50, 4)) < 0.7)
    variance = hits.mean(axis=(1, 2)).var()
    assert variance / (0.7 * 0.3 / 200) == pytest.approx(repeated_image_effect(4, 0.5), rel=0.03)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"difference": 0.0}, r"difference is 0; it must be between 0 and 1"),
        ({"difference": 0.85}, r"from a common value of 0\.8 a subgroup can differ by 0\.8 at most"),
        ({"difference": "0.1"}, "difference is '0.1'; it must be a number"),
        ({"difference": 5}, r"divide it by 100: 0\.05"),
        ({"grow": 2}, "grow is 2; give the position of one subgroup, 0 to 1, or None for all"),
        ({"grow": True}, "grow is True"),
        ({"grow": "b"}, "grow is 'b'"),
        ({"power": 1.0}, "power is 1"),
        ({"alpha": 0.0}, "alpha is 0"),
        ({"kappa": 0.0}, "kappa is 0"),
        ({"method": "binomial"}, "does not fit measure 'auroc'"),
        ({"n_positive": [10]}, "a difference needs at least two"),
        ({"design_effect": 0.5}, "design_effect is 0.5"),
    ],
)
def test_refusals(change, message):
    arguments = {
        "value": 0.8,
        "difference": 0.1,
        "n_positive": [10, 20],
        "n_negative": [10, 20],
        "measure": "auroc",
        **change,
    }
    with pytest.raises(InputError, match=message):
        required_counts(**arguments)


@pytest.mark.parametrize(("images", "correlation"), [(0.5, 0.1), (math.inf, 0.1), (2, -0.1), (2, 1.1)])
def test_refusals_of_repeated_images(images, correlation):
    with pytest.raises(InputError, match=r"images_per_patient|within_patient_correlation"):
        repeated_image_effect(images, correlation)

"""``frame.detectable_difference`` against brute force.

Critical value: the smallest attainable c with P(G >= c) <= alpha when every subgroup is at A. Alternative:
one subgroup at A - d (A + d where A - d < 0), the others at A. For each choice of that subgroup, the smallest
d at which P(G >= c) reaches the power; reported is the largest over the choice; NaN when there is none.
"""

from fractions import Fraction
from math import isnan

import numpy as np
import pytest
from oracles import (
    beta_shapes,
    betas_exceedance,
    binormal_variance_double,
    clipped_normals_exceedance,
    enumerate_rates,
    first_crossing,
    hanley_mcneil_sd,
    rates_exceedance_table,
    rates_power,
)

import frame


def moved(value, d):
    return max(value - d, 0.0) if value - d >= -1e-15 else value + d


def largest_shift(value):
    """Beyond it neither A - d nor A + d is a value of the measure."""
    return max(value, 1 - value)


def brute_force_rates(value, counts, power=0.8, alpha=0.05):
    null = enumerate_rates([value] * len(counts), counts)
    critical = next((d for d in null.attainable if null.exceedance(d) <= Fraction(alpha)), None)
    if critical is None:
        return [float("nan")] * len(counts)
    table = rates_exceedance_table(counts, critical)

    def powered(j):
        def at(d):
            values = [moved(value, d) if h == j else value for h in range(len(counts))]
            return rates_power(table, values, counts)

        return first_crossing(at, power, value, largest_shift(value), step=0.01)

    return [powered(j) for j in range(len(counts))]


def rates(value, counts, measure="tpr", **options):
    n, m = (counts, None) if measure == "tpr" else (None, counts)
    return frame.detectable_difference(value, n, m, measure, **options)


RATES = [
    (0.8, [12, 15]),
    (0.9, [20, 8, 10]),
    (0.95, [30, 9]),
    (0.1, [15, 20]),
    (0.05, [40, 60]),
    (0.5, [20, 16, 20]),
    (0.3, [25, 11]),
    (0.62, [18, 7, 12]),
    (0.2, [60, 6]),
]


@pytest.mark.parametrize(("power", "alpha"), [(0.8, 0.05), (0.6, 0.1)])
@pytest.mark.parametrize(("value", "counts"), RATES)
def test_rates(value, counts, power, alpha):
    expected = brute_force_rates(value, counts, power, alpha)
    assert not any(isnan(d) for d in expected)
    got = rates(value, counts, power=power, alpha=alpha)
    assert got == pytest.approx(max(expected), abs=1e-6)


def test_the_upward_alternative_is_reached():
    """Guards the cases above: at A = 0.05 and 0.1 the difference is larger than A: the subgroup moves up."""
    assert max(brute_force_rates(0.1, [15, 20])) > 0.1
    assert max(brute_force_rates(0.05, [40, 60])) > 0.05


@pytest.mark.parametrize("measure", ["tpr", "fpr"])
def test_the_largest_over_the_choice_is_reported(measure):
    """Choices differ: a shift of the small subgroup needs to be larger."""
    expected = brute_force_rates(0.8, [60, 12])
    assert abs(expected[0] - expected[1]) > 0.005
    assert rates(0.8, [60, 12], measure) == pytest.approx(max(expected), abs=1e-6)


@pytest.mark.parametrize(
    ("value", "counts"),
    [
        (0.5, [1, 1]),  # P(G >= 1) = 1/2: no critical value
        (0.5, [40, 1]),  # a critical value, but neither subgroup can reach the power
        (0.8, [2, 3]),
    ],
)
def test_nan_when_no_difference_reaches_the_power(value, counts):
    assert all(isnan(d) for d in brute_force_rates(value, counts))
    assert isnan(rates(value, counts))


def test_nan_when_one_choice_can_never_be_detected():
    """There is no largest over the choice when a drop in the one-image subgroup goes unseen at any size."""
    expected = brute_force_rates(0.85, [40, 1])
    assert [isnan(d) for d in expected] == [False, True]
    assert isnan(rates(0.85, [40, 1]))


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_value_of_exactly_zero_or_one(value):
    """Nothing varies under the null, so only the difference 0 is attainable there.

    Either there is no attainable critical value (NaN), or it is the next one on the lattice, 1/10, which the
    test does reject: then 1 - (1 - d)^10 = 0.8. Both are defensible; another number, or no answer, is not.
    """
    got = rates(value, [10, 10])
    assert isnan(got) or got == pytest.approx(1 - 0.2**0.1, abs=1e-6)


def test_rates_design_effect():
    got = rates(0.8, [31, 25], design_effect=2.0)
    assert got == pytest.approx(max(brute_force_rates(0.8, [15, 12])), abs=1e-6)
    assert got > rates(0.8, [31, 25])


# ---------------------------------------------------------------------------------------------------- AUROC


def normal_law(values, n, m):
    sds = [float(hanley_mcneil_sd(a, i, j)) for a, i, j in zip(values, n, m, strict=True)]
    return lambda d: clipped_normals_exceedance(values, sds, d)


def beta_law(kappa):
    def law(values, n, m):
        variances = [binormal_variance_double(a, i, j, kappa) for a, i, j in zip(values, n, m, strict=True)]
        shapes = [beta_shapes(a, v) for a, v in zip(values, variances, strict=True)]
        return lambda d: betas_exceedance(shapes, d)

    return law


def brute_force_auroc(law, value, n, m, power=0.8, alpha=0.05, step=0.02):
    null = law([value] * len(n), n, m)
    if null(1.0) > alpha:
        return [float("nan")] * len(n)
    low, critical = 0.0, 1.0
    for _ in range(40):
        middle = (low + critical) / 2
        low, critical = (low, middle) if null(middle) <= alpha else (middle, critical)

    def powered(j):
        def at(d):
            return law([moved(value, d) if h == j else value for h in range(len(n))], n, m)(critical)

        return first_crossing(at, power, value, largest_shift(value), step)

    return [powered(j) for j in range(len(n))]


AUROC = [
    (0.8, [100, 40], [400, 90]),
    (0.92, [50, 30, 12], [90, 200, 60]),
    (0.997, [60, 20], [90, 80]),
    (0.55, [30, 60], [40, 50]),
    (0.79, [20_000, 2_500], [22_000, 3_000]),
    # For the second subgroup the power is reached just below d = A only, where its error vanishes.
    (0.4076200211739407, [69, 14, 16_130], [139, 3, 6_933]),
]


@pytest.mark.parametrize(("value", "n", "m"), AUROC)
def test_hanley_mcneil(value, n, m):
    expected = brute_force_auroc(normal_law, value, n, m)
    assert not any(isnan(d) for d in expected)
    assert frame.detectable_difference(value, n, m) == pytest.approx(max(expected), abs=1e-6)


@pytest.mark.parametrize(("power", "alpha"), [(0.9, 0.05), (0.6, 0.01)])
def test_hanley_mcneil_at_other_levels(power, alpha):
    expected = brute_force_auroc(normal_law, 0.8, [100, 40], [400, 90], power, alpha)
    got = frame.detectable_difference(0.8, [100, 40], [400, 90], power=power, alpha=alpha)
    assert got == pytest.approx(max(expected), abs=1e-6)


def test_the_value_moves_up_where_it_cannot_move_down():
    expected = brute_force_auroc(normal_law, 0.2, [12, 20], [20, 15])
    assert max(expected) > 0.2
    got = frame.detectable_difference(0.2, [12, 20], [20, 15], "auroc", method="hanley-mcneil")
    assert got == pytest.approx(max(expected), abs=1e-6)


@pytest.mark.parametrize("kappa", [1.25, 1.5])
def test_binormal(kappa):
    expected = brute_force_auroc(beta_law(kappa), 0.9, [40, 25], [90, 60], step=0.05)
    got = frame.detectable_difference(0.9, [40, 25], [90, 60], method="binormal", kappa=kappa)
    assert got == pytest.approx(max(expected), abs=1e-6)


def test_auroc_design_effect():
    n, m = [100, 40], [400, 90]
    expected = brute_force_auroc(normal_law, 0.8, [x / 1.7 for x in n], [x / 1.7 for x in m])
    got = frame.detectable_difference(0.8, n, m, design_effect=1.7)
    assert got == pytest.approx(max(expected), abs=1e-6)


def test_auroc_nan():
    """One pair each at A = 1/2: a difference of one has probability above alpha under exact fairness."""
    assert normal_law([0.5, 0.5], [1, 1], [1, 1])(1.0) > 0.05
    assert isnan(frame.detectable_difference(0.5, [1, 1], [1, 1]))


def test_auto_is_the_method_of_the_reference():
    n, m = [100, 40], [400, 90]
    assert frame.detectable_difference(0.8, n, m) == frame.detectable_difference(
        0.8, n, m, method="hanley-mcneil"
    )
    assert rates(0.8, [12, 15]) == rates(0.8, [12, 15], method="binomial")


def test_order_of_subgroups_changes_nothing():
    one = frame.detectable_difference(0.92, [50, 30, 12], [90, 200, 60])
    other = frame.detectable_difference(0.92, [12, 50, 30], [60, 90, 200])
    assert one == pytest.approx(other, abs=1e-9)
    assert rates(0.9, [20, 8, 10]) == pytest.approx(rates(0.9, [8, 10, 20]), abs=1e-9)


def test_more_images_detect_smaller_differences():
    got = [frame.detectable_difference(0.8, [n, n], [4 * n, 4 * n]) for n in (25, 100, 400, 1600)]
    assert all(np.diff(got) < 0)
    # Far from the ends the difference falls as one over the root of the counts.
    assert got[2] / got[3] == pytest.approx(2, abs=0.1)


def test_at_the_detectable_difference_the_paper_test_has_the_power():
    """By simulation: fair reference, one subgroup lowered by d, how often p <= alpha."""
    n, m, value = [100, 40], [400, 90], 0.8
    d = frame.detectable_difference(value, n, m)
    fair = frame.fair_reference(value, n, m)
    critical = fair.quantile(0.95)
    rng = np.random.default_rng(4)
    shares = []
    for j in range(2):
        values = [value - d if h == j else value for h in range(2)]
        draws = [
            np.clip(rng.normal(a, float(hanley_mcneil_sd(a, i, k)), 100_000), 0, 1)
            for a, i, k in zip(values, n, m, strict=True)
        ]
        shares.append((np.abs(draws[0] - draws[1]) >= critical).mean())
    assert min(shares) == pytest.approx(0.8, abs=4 * np.sqrt(0.16 / 100_000))

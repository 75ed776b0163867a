"""``method="binomial"``, ``protocol="exact"``: equal to full enumeration in exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from oracles import LargeRateLaw, enumerate_rates, simulate_rates

import frame

SMALL = [
    (0.3, [2, 3]),
    (0.8, [5, 7]),
    (0.5, [1, 1]),
    (0.5, [1, 40]),
    (0.999, [6, 4, 3]),
    (0.001, [4, 4]),
    (1e-9, [3, 5]),
    (1 - 1e-9, [5, 3]),
    (0.25, [4, 4, 4]),
    (0.9, [2, 3, 4, 5]),
    (0.7, [3, 3, 3, 3, 3]),
    (0.37, [1, 2, 3, 4, 5]),
    (0.6, [1, 9, 20]),
    (0.95, [12, 30]),
    (0.02, [25, 10, 5]),
    (0.8333333333, [15, 10, 6]),
    (0.15, [47, 39]),
]
IDS = [f"A={value:g}-n={'_'.join(map(str, counts))}" for value, counts in SMALL]


def reference(value, counts, measure="tpr", **options):
    if measure == "tpr":
        return frame.fair_reference(value, counts, None, "tpr", **options)
    return frame.fair_reference(value, None, counts, "fpr", **options)


@pytest.fixture(scope="module")
def laws():
    """The enumerated law of every small case, computed once."""
    return [enumerate_rates([value] * len(counts), counts) for value, counts in SMALL]


@pytest.fixture(params=range(len(SMALL)), ids=IDS)
def case(request, laws):
    value, counts = SMALL[request.param]
    return value, counts, laws[request.param]


@pytest.mark.parametrize("measure", ["tpr", "fpr"])
def test_mean_and_sd(case, measure):
    value, counts, law = case
    fair = reference(value, counts, measure)
    assert fair.mean == pytest.approx(float(law.mean()), abs=1e-12)
    assert fair.sd == pytest.approx(law.sd(), abs=1e-12)


def test_exceedance_at_every_attainable_difference(case):
    """As a fraction (exactly) and as a float (with the tolerance): both include the tie."""
    value, counts, law = case
    fair = reference(value, counts)
    for delta in law.attainable:
        expected = float(law.exceedance(delta))
        assert fair.exceedance(delta) == pytest.approx(expected, abs=1e-12)
        assert fair.exceedance(float(delta)) == pytest.approx(expected, abs=1e-12)


def test_exceedance_between_attainable_differences(case):
    value, counts, law = case
    fair = reference(value, counts)
    for low, high in zip(law.attainable, law.attainable[1:], strict=False):
        expected = float(law.exceedance(high))
        assert fair.exceedance((low + high) / 2) == pytest.approx(expected, abs=1e-12)
        assert fair.exceedance(float((low + high) / 2)) == pytest.approx(expected, abs=1e-12)


def test_tails_to_a_relative_millionth(case):
    value, counts, law = case
    fair = reference(value, counts)
    for delta in law.attainable:
        expected = law.exceedance(delta)
        if expected >= Fraction(1, 10**12):
            assert fair.exceedance(delta) == pytest.approx(float(expected), rel=1e-6, abs=0)


def test_far_tails_do_not_come_out_as_zero(case):
    """Below 1e-12 the size is asked for within a factor of two, down to the smallest ordinary double."""
    value, counts, law = case
    fair = reference(value, counts)
    for delta in law.attainable:
        expected = law.exceedance(delta)
        if Fraction(1, 10**12) > expected > Fraction(1, 10**290):
            assert fair.exceedance(delta) == pytest.approx(float(expected), rel=0.5, abs=0)


def test_the_cases_reach_the_tails(laws):
    """Guards the two tests above: they do see values near 1e-12, and far below."""
    seen = [law.exceedance(delta) for law in laws for delta in law.attainable]
    assert any(Fraction(1, 10**12) <= p < Fraction(1, 10**11) for p in seen)
    assert any(p < Fraction(1, 10**30) for p in seen)


def test_tail_with_many_images():
    """300 and 300 images: p from 1e-12 down to 1e-100."""
    law = LargeRateLaw(0.1, [300, 300], bits=1200)
    fair = reference(0.1, [300, 300])
    seen = []
    for difference in (52, 57, 60, 100, 160):
        delta = Fraction(difference, 300)
        expected = law.exceedance(delta)
        seen.append(expected)
        got = fair.exceedance(delta)
        assert got > 0
        assert got == pytest.approx(expected, rel=1e-6 if expected >= 1e-12 else 0.5, abs=0)
    assert seen[0] > 1e-12 > seen[2]
    assert seen[-1] < 1e-60


LEVELS = (1e-6, 0.025, 0.1, 0.25, 1 / 3, 0.5, 0.6180339887, 0.75, 0.9, 0.95, 0.975, 0.999, 1 - 1e-9)


def test_quantile_is_the_smallest_attainable_difference(case):
    value, counts, law = case
    fair = reference(value, counts)
    for level in LEVELS:
        if any(abs(law.cdf(d) - Fraction(level)) < Fraction(1, 10**12) for d in law.attainable):
            continue  # the level is a value of the distribution function; see the test below
        assert fair.quantile(level) == pytest.approx(float(law.quantile(level)), abs=1e-12), level


@pytest.mark.parametrize(
    ("value", "counts", "level", "expected"),
    [
        (0.5, [1, 1], 0.5, 0.0),  # P(G <= 0) = 1/2 exactly
        (0.5, [2, 2], 0.375, 0.0),  # P(G <= 0) = 6/16
        (0.5, [2, 2], 0.875, 0.5),  # P(G <= 1/2) = 14/16
        (0.25, [1, 1], 0.625, 0.0),  # P(G <= 0) = 10/16
        (0.75, [1, 1, 1], 0.4375, 0.0),  # P(G <= 0) = 28/64
    ],
)
def test_quantile_at_a_value_of_the_distribution_function(value, counts, level, expected):
    """All numbers here are exact in binary: reaching the level counts."""
    assert float(enumerate_rates([value] * len(counts), counts).quantile(level)) == expected
    assert reference(value, counts).quantile(level) == pytest.approx(expected, abs=1e-12)


def test_interval_is_the_pair_of_quantiles(case):
    value, counts, law = case
    low, high = reference(value, counts).interval
    assert low == pytest.approx(float(law.quantile(0.025)), abs=1e-12)
    assert high == pytest.approx(float(law.quantile(0.975)), abs=1e-12)


class TestTies:
    """G >= delta includes equality; fractions are compared exactly, printed values with an absolute 1e-9."""

    @pytest.fixture
    def law(self):
        return enumerate_rates([0.3, 0.3], [10, 10])

    @pytest.fixture
    def fair(self):
        return reference(0.3, [10, 10])

    @pytest.mark.parametrize(
        ("printed", "difference"),
        [
            (0.30 - 0.10, Fraction(1, 5)),  # 0.19999999999999998
            (0.1 + 0.2, Fraction(3, 10)),  # 0.30000000000000004
            (0.8 - 0.1, Fraction(7, 10)),  # 0.7000000000000001
            (1.0 - 0.9, Fraction(1, 10)),  # 0.09999999999999998
            (0.87 - 0.77, Fraction(1, 10)),
        ],
    )
    def test_printed_values(self, fair, law, printed, difference):
        assert printed != float(difference)
        assert fair.exceedance(printed) == pytest.approx(float(law.exceedance(difference)), abs=1e-12)

    def test_fractions_are_exact(self, fair, law):
        """A fraction just above an attainable difference leaves that difference out, however close it is."""
        at, above = Fraction(3, 10), Fraction(3, 10) + Fraction(1, 10**18)
        assert fair.exceedance(at) == pytest.approx(float(law.exceedance(at)), abs=1e-12)
        assert fair.exceedance(above) == pytest.approx(float(law.exceedance(Fraction(4, 10))), abs=1e-12)
        assert fair.exceedance(at) > fair.exceedance(above) + 0.01

    def test_fractions_with_unequal_counts(self):
        """1/3 against 1/7: the difference 4/21 is a tie only as a fraction."""
        law, fair = enumerate_rates([0.4, 0.4], [3, 7]), reference(0.4, [3, 7])
        tie = Fraction(4, 21)
        assert fair.exceedance(tie) == pytest.approx(float(law.exceedance(tie)), abs=1e-12)
        above = tie + Fraction(1, 10**20)
        assert fair.exceedance(above) == pytest.approx(float(law.exceedance(above)), abs=1e-12)
        assert law.exceedance(tie) > law.exceedance(above)

    def test_tolerance_is_an_argument(self, fair, law):
        wide = float(law.exceedance(Fraction(3, 10)))
        narrow = float(law.exceedance(Fraction(4, 10)))
        assert fair.exceedance(0.3001, tolerance=0.001) == pytest.approx(wide, abs=1e-12)
        assert fair.exceedance(0.3001) == pytest.approx(narrow, abs=1e-12)
        assert fair.exceedance(0.3 + 2e-9) == pytest.approx(narrow, abs=1e-12)
        assert fair.exceedance(0.3 + 0.5e-9) == pytest.approx(wide, abs=1e-12)


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0])
@pytest.mark.parametrize("measure", ["tpr", "fpr"])
def test_value_of_exactly_zero_or_one(value, measure):
    """Every subgroup shows the same value: no difference is possible."""
    fair = reference(value, [3, 50, 7], measure)
    assert fair.mean == 0
    assert fair.sd == 0
    assert tuple(fair.interval) == (0, 0)
    assert fair.quantile(0.999) == 0
    assert fair.exceedance(0) == 1
    assert fair.exceedance(0.0) == 1
    assert fair.exceedance(1e-6) == 0
    assert fair.exceedance(Fraction(1, 50)) == 0


def test_groups_of_one_image():
    """Three coins at 0.2: equal with probability 0.2^3 + 0.8^3 = 0.52."""
    fair = reference(0.2, [1, 1, 1])
    assert fair.mean == pytest.approx(0.48, abs=1e-12)
    assert fair.exceedance(1) == pytest.approx(0.48, abs=1e-12)
    assert fair.exceedance(0.001) == pytest.approx(0.48, abs=1e-12)
    assert tuple(fair.interval) == (0, 1)


def test_a_hundred_groups_of_one_image():
    """All equal with probability A^K + (1 - A)^K."""
    fair = reference(0.97, [1] * 100)
    assert fair.exceedance(1) == pytest.approx(1 - 0.97**100, abs=1e-12)


class TestManyImages:
    """Tens of thousands of images against a sum in fixed-point integers."""

    @pytest.mark.parametrize(
        ("value", "counts", "differences"),
        [(0.17, [30_000, 1_152], [0.01, 0.06, 0.075]), (0.8, [30_000, 20_000, 300], [0.02, 0.17])],
    )
    def test_against_integers(self, value, counts, differences):
        law, fair = LargeRateLaw(value, counts), reference(value, counts)
        assert fair.mean == pytest.approx(law.mean(), abs=1e-12)
        for difference in differences:
            expected = law.exceedance(Fraction(difference))
            assert fair.exceedance(Fraction(difference)) == pytest.approx(expected, abs=1e-12)
            assert fair.exceedance(Fraction(difference)) == pytest.approx(expected, rel=1e-6, abs=0)

    def test_sd_of_two_groups(self):
        law, fair = LargeRateLaw(0.17, [30_000, 1_152]), reference(0.17, [30_000, 1_152])
        assert fair.mean**2 + fair.sd**2 == pytest.approx(law.second_moment_of_two(), abs=1e-12)
        assert fair.sd == pytest.approx(np.sqrt(law.second_moment_of_two() - law.mean() ** 2), abs=1e-10)

    def test_sd_of_three_groups(self):
        """Simulated: 200,000 draws, four standard errors (of a standard deviation: about sd / sqrt(2 N))."""
        fair = reference(0.8, [30_000, 20_000, 300])
        ranges = simulate_rates(0.8, [30_000, 20_000, 300], 200_000, seed=8)
        fourth = np.mean((ranges - ranges.mean()) ** 4)
        error = np.sqrt((fourth - ranges.var() ** 2) / 200_000) / (2 * ranges.std())
        assert abs(fair.sd - ranges.std()) < 4 * error

    def test_quantiles(self):
        """At the quantile the level is reached; an image less of the smallest group, and it is not."""
        law, fair = LargeRateLaw(0.17, [9_000, 1_152]), reference(0.17, [9_000, 1_152])
        for level in (0.025, 0.975):
            d = Fraction(fair.quantile(level)).limit_denominator(9_000 * 1_152)
            step = Fraction(1, 9_000 * 1_152)
            assert 1 - law.exceedance(d + step / 2) >= level - 1e-12
            assert 1 - law.exceedance(d - step / 2) < level + 1e-12


class TestDesignEffect:
    """n / design_effect rounded down, at least 1."""

    @pytest.mark.parametrize(
        ("counts", "effect", "effective"),
        [
            ([10, 20], 2.0, [5, 10]),
            ([10, 21], 1.5, [6, 14]),
            ([3, 4], 10.0, [1, 1]),
            ([9, 7, 5], 3, [3, 2, 1]),
            ([49, 21], 1.4, [35, 15]),  # 49/1.4 is 35; in doubles 35.0 and 15.000000000000002
            ([21, 33], 1.1, [19, 30]),  # 33/1.1 is 30; in doubles 29.999999999999996
        ],
    )
    def test_against_enumeration_at_the_effective_counts(self, counts, effect, effective):
        law = enumerate_rates([0.6] * len(counts), effective)
        fair = reference(0.6, counts, design_effect=effect)
        assert fair.mean == pytest.approx(float(law.mean()), abs=1e-12)
        for delta in law.attainable:
            assert fair.exceedance(delta) == pytest.approx(float(law.exceedance(delta)), abs=1e-12)

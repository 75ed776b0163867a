"""What must hold whatever the counts: order, monotonicity, limits, mirror images, each argument's effect."""

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles import binomial_mass, enumerate_rates, hanley_mcneil_sd
from scipy import special

import frame

fixed = settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=20,
    suppress_health_check=[HealthCheck.too_slow],
)
values = st.floats(0.02, 0.98)
rate_counts = st.lists(st.integers(1, 60), min_size=2, max_size=4)
auroc_counts = st.lists(st.tuples(st.integers(1, 400), st.integers(1, 900)), min_size=2, max_size=4)
differences = st.floats(0.0, 1.0)
LAWS = [("tpr", "binomial"), ("fpr", "binomial"), ("auroc", "hanley-mcneil"), ("auroc", "binormal")]


def build(value, counts, measure, method, **options):
    """The reference of any measure from (n_positive, n_negative) pairs."""
    n, m = [pair[0] for pair in counts], [pair[1] for pair in counts]
    return frame.fair_reference(value, n, m, measure, method=method, **options)


def same(one, two, tolerance):
    assert one.mean == pytest.approx(two.mean, abs=tolerance)
    assert one.sd == pytest.approx(two.sd, abs=tolerance)
    for d in (0.01, 0.05, 0.2, 0.5):
        assert one.exceedance(d) == pytest.approx(two.exceedance(d), abs=tolerance)


# ------------------------------------------------------------------------------------------------- order


@pytest.mark.parametrize(("measure", "method"), LAWS)
@fixed
@given(value=values, counts=auroc_counts, data=st.data())
def test_order_of_subgroups_changes_nothing(measure, method, value, counts, data):
    shuffled = data.draw(st.permutations(counts))
    same(build(value, counts, measure, method), build(value, shuffled, measure, method), 1e-12)


@pytest.mark.parametrize(("measure", "method"), LAWS)
def test_two_calls_give_the_same_digits(measure, method):
    counts = [(30, 70), (12, 45), (5, 9)]
    one, two = build(0.83, counts, measure, method), build(0.83, counts, measure, method)
    assert (one.mean, one.sd, one.interval) == (two.mean, two.sd, two.interval)
    assert one.exceedance(0.123) == two.exceedance(0.123)


@pytest.mark.parametrize("container", [list, tuple, np.array, lambda x: np.array(x, dtype=float)])
def test_counts_in_any_container(container):
    plain = frame.fair_reference(0.8, [30, 12], [70, 45])
    other = frame.fair_reference(0.8, container([30, 12]), container([70, 45]))
    assert (plain.mean, plain.sd) == (other.mean, other.sd)


# ---------------------------------------------------------------------------------------------- exceedance


@pytest.mark.parametrize("protocol", ["exact", "paper"])
@pytest.mark.parametrize(("measure", "method"), LAWS)
@fixed
@given(value=values, counts=auroc_counts, points=st.lists(differences, min_size=2, max_size=6))
def test_exceedance_is_monotone(protocol, measure, method, value, counts, points):
    if protocol == "paper" and method == "binormal":
        counts = [(min(n, 5), min(m, 5)) for n, m in counts]  # scores are drawn: keep it quick
    fair = build(value, counts, measure, method, protocol=protocol, draws=50)
    got = [fair.exceedance(d) for d in sorted(points)]
    assert all(0 <= p <= 1 for p in got)
    assert all(high >= low - 1e-14 for high, low in pairwise(got))


@pytest.mark.parametrize(("measure", "method"), LAWS)
@fixed
@given(value=values, counts=auroc_counts)
def test_exceedance_at_the_ends(measure, method, value, counts):
    fair = build(value, counts, measure, method)
    for zero in (0, 0.0, Fraction(0), -0.1):
        assert fair.exceedance(zero) == 1
    for above in (1 + 1e-6, 2, 7.5, Fraction(1001, 1000)):
        assert fair.exceedance(above) == 0


@pytest.mark.parametrize(("measure", "method"), LAWS)
@fixed
@given(value=values, counts=auroc_counts, levels=st.lists(st.floats(0.001, 0.999), min_size=2, max_size=4))
def test_quantiles_are_monotone_and_reach_their_level(measure, method, value, counts, levels):
    """P(G <= quantile) >= level; P(G > d) is the exceedance a little above d, here by more than rounding."""
    fair = build(value, counts, measure, method)
    got = [fair.quantile(level) for level in sorted(levels)]
    assert got == sorted(got)
    for level, d in zip(sorted(levels), got, strict=True):
        assert 0 <= d <= 1
        assert 1 - fair.exceedance(d + 1e-10, tolerance=0.0) >= level - 1e-9


@pytest.mark.parametrize(("measure", "method"), LAWS)
@fixed
@given(value=values, counts=auroc_counts)
def test_mean_and_interval_lie_in_the_unit_interval(measure, method, value, counts):
    fair = build(value, counts, measure, method)
    low, high = fair.interval
    assert 0 <= low <= high <= 1
    assert 0 <= fair.mean <= 1
    assert 0 <= fair.sd <= 0.5 + 1e-12


# --------------------------------------------------------------------------------- limits in the counts


class TestOneSubgroupGrows:
    """The law tends to that with the large subgroup fixed at A; |G_n - G| <= |value of that subgroup - A|."""

    @pytest.mark.parametrize("value", [0.17, 0.5, 0.93])
    @pytest.mark.parametrize("others", [[20], [20, 7]])
    def test_rates(self, value, others):
        table = _range_with_a_fixed_value(value, others)
        limit = sum(r * w for r, w in table)
        # A little off every attainable |x/n - A|, so that P(G >= d) is continuous there.
        d = 0.2371
        p_limit = sum(w for r, w in table if r >= d)
        for count in (10**6, 10**7):
            fair = frame.fair_reference(value, [*others, count], None, "tpr")
            assert abs(fair.mean - limit) <= np.sqrt(value * (1 - value) / count)
            assert fair.exceedance(d) == pytest.approx(p_limit, abs=1e-8)

    @pytest.mark.parametrize("value", [0.4, 0.8, 0.97])
    def test_auroc(self, value):
        """Two groups: G tends to |X - A|, X the clipped normal."""
        error = float(hanley_mcneil_sd(value, 25, 60))
        d = 0.02
        limit = 2 * special.ndtr(-d / error)
        mean = sum(_mean_of_clipped(error, room) for room in (value, 1 - value))
        for count in (10**6, 10**7):
            fair = frame.fair_reference(value, [25, count], [60, count], method="hanley-mcneil")
            assert abs(fair.mean - mean) <= 2 * float(hanley_mcneil_sd(value, count, count)) / np.sqrt(
                2 * np.pi
            )
            assert fair.exceedance(d) == pytest.approx(limit, abs=2e-4)

    @pytest.mark.parametrize("value", [0.4, 0.8, 0.97])
    def test_the_error_falls_with_the_count(self, value):
        """A tenfold count brings the exceedance nearer to its limit."""
        limit = 2 * special.ndtr(-0.02 / float(hanley_mcneil_sd(value, 25, 60)))
        off = [
            abs(
                frame.fair_reference(value, [25, n], [60, n], method="hanley-mcneil").exceedance(0.02) - limit
            )
            for n in (10**3, 10**5, 10**7)
        ]
        assert off[0] > off[1] > off[2]

    def test_binormal(self):
        """Two groups: the mean tends to E|X - A| for the beta law X."""
        a, b = _shapes(0.9, frame.fair_reference(0.9, [30, 30], [80, 80], method="binormal"))
        # E|X - A| = 2 A^a (1 - A)^b / ((a + b) B(a, b)), the mean absolute deviation of a beta law.
        limit = 2 * np.exp(a * np.log(0.9) + b * np.log(0.1) - special.betaln(a, b)) / (a + b)
        for count, tolerance in ((10**6, 3e-4), (10**7, 1e-4)):
            fair = frame.fair_reference(0.9, [30, count], [80, count], method="binormal")
            assert fair.mean == pytest.approx(limit, abs=tolerance)


def _range_with_a_fixed_value(value, counts):
    """(range, weight) over the outcomes of the small groups, the large one held at its true value."""
    out = []
    for outcome in product(*[range(n + 1) for n in counts]):
        shares = [x / n for x, n in zip(outcome, counts, strict=True)] + [value]
        weight = np.prod([binomial_mass(value, n)[x] for x, n in zip(outcome, counts, strict=True)])
        out.append((max(shares) - min(shares), weight))
    return out


def _mean_of_clipped(error, room):
    """E[min(max(Z, 0), room)] of a centred normal: one side of |X - A| with the clip at ``room``."""
    z = room / error
    return error * (1 / np.sqrt(2 * np.pi) - np.exp(-z * z / 2) / np.sqrt(2 * np.pi)) + room * special.ndtr(
        -z
    )


def _shapes(value, fair):
    """Beta shapes read from the second moment of two equal groups: mean^2 + sd^2 = 2 V."""
    variance = (fair.mean**2 + fair.sd**2) / 2
    total = value * (1 - value) / variance - 1
    return value * total, (1 - value) * total


# --------------------------------------------------------------------------------- more images, more groups


class TestMeanDoesNotGrowWithAnyCount:
    """With A fixed. True for every measure, for a reason of its own each time.

    Rates: the proportion of n + 1 images is the conditional mean of the proportion of n of them, and the
    range is convex in each argument, so by Jensen's inequality its mean does not grow; the lattice plays no
    part. Clipped normals: every other subgroup has median A, so the mean range as a function of one
    subgroup's value is convex with its minimum at A, and a smaller error brings each clipped value nearer.
    Beta laws: with the mean fixed, a smaller variance is smaller in convex order.
    """

    @pytest.mark.parametrize("value", [0.03, 0.3, 0.5, 0.87])
    def test_rates_in_exact_arithmetic(self, value):
        """The statement itself, by enumeration: no counterexample up to 8 x 8 and 5 x 5 x 5 images."""
        for top, groups in ((8, 2), (5, 3)):
            means = {
                counts: enumerate_rates([value] * groups, counts).mean()
                for counts in product(range(1, top + 1), repeat=groups)
                if list(counts) == sorted(counts)
            }
            for counts, mean in means.items():
                for j in range(groups):
                    more = tuple(sorted(n + (h == j) for h, n in enumerate(counts)))
                    if more in means:
                        assert means[more] <= mean

    @fixed
    @given(value=values, counts=rate_counts, j=st.integers(0, 3), extra=st.integers(1, 40))
    def test_rates(self, value, counts, j, extra):
        more = list(counts)
        more[j % len(counts)] += extra
        before, after = (frame.fair_reference(value, c, None, "tpr").mean for c in (counts, more))
        assert after <= before + 1e-12

    @pytest.mark.parametrize("method", ["hanley-mcneil", "binormal"])
    @fixed
    @given(
        value=values, counts=auroc_counts, j=st.integers(0, 3), extra=st.integers(1, 300), side=st.booleans()
    )
    def test_auroc(self, method, value, counts, j, extra, side):
        n, m = counts[j % len(counts)]
        more = list(counts)
        more[j % len(counts)] = (n + extra, m) if side else (n, m + extra)
        before, after = (build(value, c, "auroc", method).mean for c in (counts, more))
        assert after <= before + 1e-9

    def test_the_exceedance_of_a_rate_may_grow(self):
        """A counterexample for p, not for the mean: at A = 1/2, counts 1 and 1 give 1/2, 2 and 1 give 3/4."""
        small, large = (frame.fair_reference(0.5, c, None, "tpr") for c in ([1, 1], [2, 1]))
        assert small.exceedance(0.4) == pytest.approx(0.5, abs=1e-12)
        assert large.exceedance(0.4) == pytest.approx(0.75, abs=1e-12)
        assert large.mean == pytest.approx(small.mean, abs=1e-12)


@pytest.mark.parametrize(("measure", "method"), LAWS)
@fixed
@given(value=values, counts=auroc_counts, extra=st.tuples(st.integers(1, 400), st.integers(1, 900)))
def test_adding_a_subgroup_never_shrinks_the_difference(measure, method, value, counts, extra):
    """The range over more values is at least as large: mean and every exceedance."""
    fewer, more = build(value, counts, measure, method), build(value, [*counts, extra], measure, method)
    assert more.mean >= fewer.mean - 1e-10
    for d in (0.01, 0.1, 0.3):
        assert more.exceedance(d) >= fewer.exceedance(d) - 1e-10
    assert (fewer.n_groups, more.n_groups) == (len(counts), len(counts) + 1)


# ---------------------------------------------------------------------------------------------- mirror images


@fixed
@given(value=st.integers(1, 63).map(lambda k: k / 64), counts=rate_counts)
def test_a_rate_and_its_complement_differ_equally(value, counts):
    """Sensitivity and miss rate, false positive rate and specificity: A and 1 - A give the same law."""
    one, two = (frame.fair_reference(a, counts, None, "tpr") for a in (value, 1 - value))
    same(one, two, 1e-12)
    assert one.interval == pytest.approx(two.interval, abs=1e-12)


@fixed
@given(value=st.integers(1, 63).map(lambda k: k / 64), counts=auroc_counts)
def test_hanley_mcneil_mirrored(value, counts):
    """Calling the classes the other way round: A -> 1 - A exchanges the two counts."""
    swapped = [(m, n) for n, m in counts]
    same(
        build(value, counts, "auroc", "hanley-mcneil"),
        build(1 - value, swapped, "auroc", "hanley-mcneil"),
        1e-9,
    )


@fixed
@given(value=st.integers(3, 61).map(lambda k: k / 64), counts=auroc_counts, kappa=st.floats(0.6, 1.8))
def test_binormal_mirrored(value, counts, kappa):
    """A -> 1 - A keeps the law; exchanging the counts turns the sd ratio kappa into 1 / kappa."""
    law = build(value, counts, "auroc", "binormal", kappa=kappa)
    same(law, build(1 - value, counts, "auroc", "binormal", kappa=kappa), 1e-9)
    swapped = [(m, n) for n, m in counts]
    same(law, build(value, swapped, "auroc", "binormal", kappa=1 / kappa), 1e-9)


# -------------------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize(("measure", "method"), LAWS)
@fixed
@given(value=values, counts=auroc_counts)
def test_a_design_effect_of_one_changes_nothing(measure, method, value, counts):
    plain = build(value, counts, measure, method)
    for one in (1, 1.0):
        same(plain, build(value, counts, measure, method, design_effect=one), 0)


@pytest.mark.parametrize(("measure", "method"), LAWS)
@fixed
@given(value=values, counts=auroc_counts, effect=st.floats(1.0, 6.0))
def test_a_larger_design_effect_widens(measure, method, value, counts, effect):
    """At least as wide always (a rate's count may stay the same once rounded, or be one already)."""
    if method == "binormal":
        # Fewer than one effective pair has no beta law.
        counts = [(n + 6, m + 6) for n, m in counts]
    plain = build(value, counts, measure, method)
    wider = build(value, counts, measure, method, design_effect=effect)
    assert wider.mean >= plain.mean - 1e-9


@pytest.mark.parametrize(("measure", "method"), LAWS)
def test_a_design_effect_of_two_widens_strictly(measure, method):
    counts = [(40, 60), (90, 35)]
    plain = build(0.8, counts, measure, method)
    wider = build(0.8, counts, measure, method, design_effect=2)
    assert wider.mean > plain.mean * 1.2
    assert wider.sd > plain.sd * 1.2


class TestWhichCountsMatter:
    def test_tpr_uses_the_positives_only(self):
        given_both = frame.fair_reference(0.8, [30, 12], [7, 900], "tpr")
        same(given_both, frame.fair_reference(0.8, [30, 12], None, "tpr"), 0)
        assert given_both.mean != frame.fair_reference(0.8, [31, 12], [7, 900], "tpr").mean

    def test_fpr_uses_the_negatives_only(self):
        given_both = frame.fair_reference(0.8, [7, 900], [30, 12], "fpr")
        same(given_both, frame.fair_reference(0.8, None, [30, 12], "fpr"), 0)
        assert given_both.mean != frame.fair_reference(0.8, [7, 900], [31, 12], "fpr").mean

    def test_tpr_and_fpr_are_one_law(self):
        tpr = frame.fair_reference(0.2, [30, 12], None, "tpr")
        same(tpr, frame.fair_reference(0.2, None, [30, 12], "fpr"), 0)

    def test_auroc_uses_both(self):
        base = frame.fair_reference(0.8, [30, 12], [70, 45]).mean
        assert frame.fair_reference(0.8, [31, 12], [70, 45]).mean < base
        assert frame.fair_reference(0.8, [30, 12], [71, 45]).mean < base


@pytest.mark.parametrize(("measure", "method"), LAWS)
def test_the_reference_says_what_it_is(measure, method):
    fair = build(0.8, [(30, 70), (12, 45), (9, 9)], measure, "auto" if method != "binormal" else "binormal")
    assert (fair.value, fair.measure, fair.method, fair.protocol, fair.n_groups) == (
        0.8,
        measure,
        method,
        "exact",
        3,
    )
    assert isinstance(fair, frame.FairReference)


@pytest.mark.parametrize("name", ["mean", "sd", "value"])
def test_the_reference_is_frozen(name):
    fair = frame.fair_reference(0.8, [30, 12], [70, 45])
    with pytest.raises(AttributeError):
        setattr(fair, name, 0.5)


def test_seed_and_draws_do_not_enter_the_exact_protocol():
    one = frame.fair_reference(0.8, [30, 12], [70, 45], seed=0, draws=10)
    two = frame.fair_reference(0.8, [30, 12], [70, 45], seed=5, draws=99)
    assert (one.mean, one.sd, one.interval) == (two.mean, two.sd, two.interval)


def test_kappa_does_not_enter_hanley_mcneil():
    one = frame.fair_reference(0.8, [30, 12], [70, 45], kappa=1.0)
    assert one.mean == frame.fair_reference(0.8, [30, 12], [70, 45], kappa=1.5).mean


@fixed
@given(value=values, counts=auroc_counts)
def test_a_wider_kappa_widens_where_positives_are_scarce(value, counts):
    """With more negatives than positives the variance grows with the positives' spread."""
    counts = [(n, n + m) for n, m in counts]
    means = [build(value, counts, "auroc", "binormal", kappa=kappa).mean for kappa in (1.0, 1.25, 1.5)]
    assert means == sorted(means) or max(means) - min(means) < 1e-9

"""``protocol="paper"``: the paper's simulation draw for draw, and its Supplementary Table 7 to the digit."""

import csv
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from oracles import hanley_mcneil_sd, mann_whitney_one_positive, simulate_binormal_auroc

import frame

DATA = Path(__file__).resolve().parents[2] / "data"


def draw_rates(value, counts, draws, seed):
    """Counts and shares: legacy generator, one subgroup after another in the given order."""
    generator = np.random.RandomState(seed)
    events = np.array([generator.binomial(n, value, size=draws) for n in counts])
    return events, events / np.array(counts)[:, None]


def draw_auroc(value, n_positive, n_negative, draws, seed):
    generator = np.random.RandomState(seed)
    errors = [float(hanley_mcneil_sd(value, n, m)) for n, m in zip(n_positive, n_negative, strict=True)]
    return np.array([np.clip(generator.normal(value, error, size=draws), 0, 1) for error in errors])


def spread(shares):
    return shares.max(axis=0) - shares.min(axis=0)


def check(fair, ranges, differences):
    """Mean, SD with n - 1, linear percentiles, (1 + #) / (B + 1)."""
    assert fair.mean == pytest.approx(ranges.mean(), abs=1e-12)
    assert fair.sd == pytest.approx(ranges.std(ddof=1), abs=1e-12)
    assert tuple(fair.interval) == pytest.approx(tuple(np.percentile(ranges, [2.5, 97.5])), abs=1e-12)
    assert fair.quantile(0.8) == pytest.approx(np.percentile(ranges, 80), abs=1e-12)
    for d in differences:
        expected = (1 + np.count_nonzero(ranges >= d - 1e-9)) / (len(ranges) + 1)
        assert fair.exceedance(d) == pytest.approx(expected, abs=1e-12), d


DIFFERENCES = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3 - 0.1, 0.1 + 0.2, 0.4, 0.9, 1.0, 1.5)


@pytest.mark.parametrize(("draws", "seed"), [(2000, 0), (500, 0), (777, 11)])
@pytest.mark.parametrize(
    ("value", "counts"),
    [(0.3, [10, 10]), (0.8, [300, 40, 7]), (0.17, [6688, 4930, 1152, 1772]), (1.0, [5, 9])],
)
@pytest.mark.parametrize("measure", ["tpr", "fpr"])
def test_rates(measure, value, counts, draws, seed):
    n, m = (counts, None) if measure == "tpr" else (None, counts)
    fair = frame.fair_reference(value, n, m, measure, protocol="paper", draws=draws, seed=seed)
    assert (fair.method, fair.protocol) == ("binomial", "paper")
    check(fair, spread(draw_rates(value, counts, draws, seed)[1]), DIFFERENCES)


@pytest.mark.parametrize(("draws", "seed"), [(2000, 0), (777, 11)])
@pytest.mark.parametrize(
    ("value", "n", "m"),
    [
        (0.8, [100, 40], [400, 90]),
        (0.9997, [23, 48, 54, 48], [63, 37, 25, 27]),
        (0.35, [3, 9, 20], [8, 2, 1]),
        (1.0, [5, 9], [6, 4]),
    ],
)
def test_auroc(value, n, m, draws, seed):
    fair = frame.fair_reference(value, n, m, protocol="paper", draws=draws, seed=seed)
    assert (fair.method, fair.protocol) == ("hanley-mcneil", "paper")
    check(fair, spread(draw_auroc(value, n, m, draws, seed)), DIFFERENCES)


def test_the_defaults_are_2000_draws_and_seed_0():
    fair = frame.fair_reference(0.8, [100, 40], [400, 90], protocol="paper")
    check(fair, spread(draw_auroc(0.8, [100, 40], [400, 90], 2000, 0)), DIFFERENCES)


def test_the_generator_is_restarted_for_every_unit():
    """Neither an earlier call nor the global generator changes a reference, nor the reverse."""
    first = frame.fair_reference(0.8, [100, 40], [400, 90], protocol="paper")
    np.random.seed(5)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    frame.fair_reference(0.3, [10, 10], None, "tpr", protocol="paper")
    second = frame.fair_reference(0.8, [100, 40], [400, 90], protocol="paper")
    assert (first.mean, first.interval) == (second.mean, second.interval)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_the_order_of_subgroups_is_the_order_of_draws():
    """Here order does matter: a property of the paper's protocol, not of the law."""
    one = frame.fair_reference(0.8, [100, 40], None, "tpr", protocol="paper")
    other = frame.fair_reference(0.8, [40, 100], None, "tpr", protocol="paper")
    check(one, spread(draw_rates(0.8, [100, 40], 2000, 0)[1]), DIFFERENCES)
    check(other, spread(draw_rates(0.8, [40, 100], 2000, 0)[1]), DIFFERENCES)
    assert one.mean != other.mean


@pytest.mark.parametrize(
    ("counts", "delta"),
    [
        ([10, 10], Fraction(3, 10)),
        ([3, 7], Fraction(4, 21)),
        ([49, 48, 30], Fraction(1, 48)),
        ([9, 15], Fraction(1, 3)),
    ],
)
def test_fractions_are_compared_as_integers(counts, delta):
    """Drawn counts over their common denominator: no tolerance, and a hair above the tie leaves it out."""
    events, _ = draw_rates(0.4, counts, 2000, 0)
    common = int(np.lcm.reduce(counts))
    places = events * (common // np.array(counts))[:, None]
    ranges = places.max(axis=0) - places.min(axis=0)
    fair = frame.fair_reference(0.4, counts, None, "tpr", protocol="paper")
    hair = Fraction(1, 10**18)
    counted = []
    for d in (delta, delta + hair):
        counted.append(sum(1 for r in ranges.tolist() if Fraction(r, common) >= d))
        assert fair.exceedance(d) == pytest.approx((1 + counted[-1]) / 2001, abs=1e-12)
    assert counted[0] > counted[1]


def test_design_effect():
    fair = frame.fair_reference(0.7, [11, 25], None, "tpr", protocol="paper", design_effect=2)
    check(fair, spread(draw_rates(0.7, [5, 12], 2000, 0)[1]), DIFFERENCES)
    fair = frame.fair_reference(0.7, [11, 25], [9, 31], protocol="paper", design_effect=2)
    check(fair, spread(draw_auroc(0.7, [5.5, 12.5], [4.5, 15.5], 2000, 0)), DIFFERENCES)


# ------------------------------------------------------------------------------- ranked binormal draws


class TestBinormal:
    """The paper's check, scores drawn at equal variance and ranked, against the exact Mann-Whitney law."""

    draws = 20_000

    @pytest.mark.parametrize("value", [0.6, 0.85])
    def test_one_positive(self, value):
        """Two subgroups with one positive and two negatives: AUROC 0, 1/2 or 1, by quadrature."""
        law = mann_whitney_one_positive(value, 2)
        fair = frame.fair_reference(
            value, [1, 1], [2, 2], method="binormal", protocol="paper", draws=self.draws, seed=3
        )
        ranges = dict.fromkeys((0, 0.5, 1), 0.0)
        for i, p in enumerate(law):
            for j, q in enumerate(law):
                ranges[abs(i - j) / 2] += p * q
        mean = sum(d * p for d, p in ranges.items())
        variance = sum(d * d * p for d, p in ranges.items()) - mean**2
        assert abs(fair.mean - mean) < 4 * np.sqrt(variance / self.draws)
        assert fair.sd == pytest.approx(np.sqrt(variance), rel=0.03)
        for d, p in ((0.5, ranges[0.5] + ranges[1]), (1.0, ranges[1])):
            assert abs(fair.exceedance(d) - p) < 4 * np.sqrt(p * (1 - p) / self.draws)

    def test_attainable_differences_only(self):
        """AUROCs are whole numbers of pairs: with 2 x 3 and 1 x 4 pairs the ranges are multiples of 1/12."""
        fair = frame.fair_reference(0.7, [2, 1], [3, 4], method="binormal", protocol="paper", draws=400)
        for i in range(12):
            between = fair.exceedance((i + 0.1) / 12), fair.exceedance((i + 0.9) / 12)
            assert between[0] == between[1]

    def test_kappa_is_one(self):
        """The argument belongs to the beta law; the paper's check has equal variances."""
        options = {"method": "binormal", "protocol": "paper", "draws": 300}
        means = [
            frame.fair_reference(0.8, [12, 9], [30, 20], kappa=kappa, **options).mean
            for kappa in (1, 1.25, 1.5)
        ]
        assert means[0] == means[1] == means[2]

    def test_unequal_counts_by_simulation(self):
        fair = frame.fair_reference(
            0.9, [3, 12], [20, 7], method="binormal", protocol="paper", draws=self.draws, seed=1
        )
        ranges = np.abs(
            simulate_binormal_auroc(0.9, 3, 20, 1.0, 40_000, seed=21)
            - simulate_binormal_auroc(0.9, 12, 7, 1.0, 40_000, seed=22)
        )
        error = ranges.std() * np.sqrt(1 / self.draws + 1 / 40_000)
        assert abs(fair.mean - ranges.mean()) < 4 * error
        assert fair.sd == pytest.approx(ranges.std(), rel=0.03)
        for d in (0.1, 0.3):
            p = (ranges >= d - 1e-9).mean()
            assert abs(fair.exceedance(d) - p) < 4 * np.sqrt(p * (1 - p) * (1 / self.draws + 1 / 40_000))


# ------------------------------------------------------------------------- Supplementary Table 7, all 89 rows


def read(name):
    with (DATA / name).open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def published():
    """Claim id -> (measure, observed difference, common value, n_positive, n_negative)."""
    rows: dict[str, list[dict[str, str]]] = {}
    for row in read("published_claims.csv"):
        rows.setdefault(row["claim_id"], []).append(row)
    claims = {}
    for claim, members in rows.items():
        measure = members[0]["metric"]
        shown = np.array([float(row["value"]) for row in members])
        counts = {
            side: [int(row[side]) for row in members] if members[0][side] else None
            for side in ("n_positive", "n_negative")
        }
        weights = {
            "tpr": lambda c: np.array(c["n_positive"]),
            "fpr": lambda c: np.array(c["n_negative"]),
            "auroc": lambda c: np.array(c["n_positive"]) + np.array(c["n_negative"]),
        }[measure](counts)
        printed = {row["overall_value"] for row in members}
        assert len(printed) == 1
        overall = printed.pop()
        common = float(overall) if overall else float((shown * weights).sum() / weights.sum())
        claims[claim] = (
            measure,
            shown.max() - shown.min(),
            common,
            counts["n_positive"],
            counts["n_negative"],
        )
    return claims


CLAIMS = published()
PRINTED = {row["claim_id"]: row for row in read("paper_supplementary_table7.csv")}


def test_the_record_has_89_claims():
    assert len(CLAIMS) == 89
    assert set(CLAIMS) == set(PRINTED)


@pytest.mark.parametrize("claim", list(CLAIMS))
def test_printed_reference_and_interval(claim):
    """Golden: the paper's Supplementary Table 7, as printed, at three decimals."""
    measure, observed, common, n, m = CLAIMS[claim]
    fair = frame.fair_reference(common, n, m, measure, protocol="paper")
    printed = PRINTED[claim]
    got = [f"{x:.3f}" for x in (fair.mean, *fair.interval)]
    assert got == [printed[name] for name in ("reference", "ref_lo", "ref_hi")]
    # The claim's own difference, up to the rounding of a half (one claim differs by .0085).
    assert observed == pytest.approx(float(printed["reported"]), abs=0.0005 + 1e-9)
    assert fair.n_groups == int(printed["n_groups"])


def test_printed_adjusted_exceedances():
    """Golden: 88 of the 89 printed q; the other, burlina-2021-05, is .005 where .004 is printed.

    Benjamini-Hochberg over the claims of one measure, written out here.
    """
    exceedances = {}
    for claim, (measure, observed, common, n, m) in CLAIMS.items():
        fair = frame.fair_reference(common, n, m, measure, protocol="paper")
        exceedances.setdefault(measure, {})[claim] = fair.exceedance(observed)
    adjusted = {}
    for family in exceedances.values():
        smallest = 1.0
        ordered = sorted(family, key=family.get)
        for rank in range(len(ordered), 0, -1):
            smallest = min(smallest, family[ordered[rank - 1]] * len(ordered) / rank)
            adjusted[ordered[rank - 1]] = smallest
    shown = {c: "<0.001" if q < 0.001 else ">0.999" if q > 0.999 else f"{q:.3f}" for c, q in adjusted.items()}
    off = {c: (shown[c], PRINTED[c]["p_fdr"]) for c in CLAIMS if shown[c] != PRINTED[c]["p_fdr"]}
    assert off == {"burlina-2021-05": ("0.005", "0.004")}
    marks = {c: "yes" if q < 0.05 else "no" for c, q in adjusted.items()}
    assert marks == {c: PRINTED[c]["exceeds"] for c in CLAIMS}
    counted = {name: sum(marks[c] == "yes" for c in family) for name, family in exceedances.items()}
    assert counted == {"tpr": 20, "fpr": 20, "auroc": 1}


# ----------------------------------------------------------------- the exact protocol on the same 89 claims


@pytest.mark.parametrize("claim", list(CLAIMS))
def test_exact_protocol_against_200000_draws(claim):
    """Mean, sd and p within 4 standard errors; the draws bracket the level at each exact quantile."""
    measure, observed, common, n, m = CLAIMS[claim]
    draws = 200_000
    fair = frame.fair_reference(common, n, m, measure)
    rng = np.random.default_rng(2024)
    if measure == "auroc":
        errors = [float(hanley_mcneil_sd(common, i, j)) for i, j in zip(n, m, strict=True)]
        shares = np.array([np.clip(rng.normal(common, e, draws), 0, 1) for e in errors])
    else:
        shares = np.array([rng.binomial(i, common, draws) / i for i in (n if measure == "tpr" else m)])
    ranges = spread(shares)
    assert abs(fair.mean - ranges.mean()) < 4 * ranges.std() / np.sqrt(draws)
    fourth = np.mean((ranges - ranges.mean()) ** 4)
    assert abs(fair.sd - ranges.std()) < 4 * np.sqrt((fourth - ranges.var() ** 2) / draws) / (
        2 * ranges.std()
    )
    p = fair.exceedance(observed)
    assert 0 < p <= 1
    # One draw of slack: where p is far below 1/200,000 the standard error says nothing.
    assert abs((ranges >= observed - 1e-9).mean() - p) < 4 * np.sqrt(p * (1 - p) / draws) + 1 / draws
    for level, quantile in zip((0.025, 0.975), fair.interval, strict=True):
        error = 4 * np.sqrt(level * (1 - level) / draws)
        assert (ranges <= quantile + 1e-9).mean() >= level - error
        assert (ranges < quantile - 1e-9).mean() <= level + error

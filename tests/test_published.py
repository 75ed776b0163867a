"""The audit of published claims: the printed table, the invariances, what each flag means."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import frame
from frame import published
from frame.published import COLUMNS
from frame.reference import exact_rates
from frame.reference.inputs import check_counts
from frame.reference.planning import exceedance_with_margin

DATA = Path(__file__).parents[1] / "data"
CLAIMS = DATA / "published_claims.csv"


@pytest.fixture(scope="module")
def table():
    return pd.read_csv(CLAIMS, dtype=str, keep_default_na=False)


@pytest.fixture(scope="module")
def exact():
    return frame.audit_claims(CLAIMS)


@pytest.fixture(scope="module")
def paper():
    return frame.audit_claims(CLAIMS, protocol="paper")


@pytest.fixture(scope="module")
def printed():
    return pd.read_csv(DATA / "paper_supplementary_table7.csv", dtype=str, keep_default_na=False)


def printed_q(q):
    return "<0.001" if q < 0.001 else (">0.999" if q > 0.999 else f"{q:.3f}")


class TestPaperProtocol:
    """Every number of Supplementary Table 7 of the paper."""

    def test_references_and_intervals_to_the_digit(self, paper, printed):
        ours = paper[["claim_id", "reference", "reference_lo", "reference_hi"]].set_index("claim_id")
        theirs = printed.set_index("claim_id")[["reference", "ref_lo", "ref_hi"]]
        differing = [
            claim
            for claim in theirs.index
            if [f"{x:.3f}" for x in ours.loc[claim]] != theirs.loc[claim].tolist()
        ]
        assert differing == []
        assert len(theirs) == 89

    def test_reported_and_subgroup_columns(self, paper, printed):
        # A half in the fourth decimal is rounded to even in the paper: 0.0085 is printed 0.008.
        assert (abs(paper["observed"] - printed["reported"].astype(float)) <= 0.0005 + 1e-9).all()
        assert paper["n_groups"].astype(str).tolist() == printed["n_groups"].tolist()
        assert paper["smallest_group"].astype(str).tolist() == printed["smallest_group"].tolist()

    def test_exceedance_marks(self, paper, printed):
        assert paper["exceeds"].map({True: "yes", False: "no"}).tolist() == printed["exceeds"].tolist()

    def test_q_values_but_for_the_tie_rule(self, paper, printed):
        differing = {
            claim: (ours, theirs)
            for claim, ours, theirs in zip(
                paper["claim_id"], paper["q"].map(printed_q), printed["p_fdr"], strict=True
            )
            if ours != theirs
        }
        assert differing == {"burlina-2021-05": ("0.005", "0.004")}

    def test_counts_and_medians_of_the_text(self, paper):
        exceeding = paper[paper["exceeds"]].groupby("measure").size().to_dict()
        assert exceeding == {"auroc": 1, "fpr": 20, "tpr": 20}
        rates = paper["measure"] != "auroc"
        assert round(paper.loc[rates, "share"].median()) == 25
        assert round(paper.loc[~rates, "share"].median()) == 70
        assert int((paper["reference"] > paper["observed"]).sum()) == 22


class TestExactProtocol:
    def test_the_same_claims_exceed(self, exact, paper):
        assert int(exact["exceeds"].sum()) == 41
        assert exact["exceeds"].tolist() == paper["exceeds"].tolist()

    def test_the_one_auroc_exceedance(self, exact):
        row = exact[(exact["measure"] == "auroc") & exact["exceeds"]].squeeze()
        assert row["claim_id"] == "zong-2023-04"
        assert (round(row["p"], 5), round(row["q"], 3)) == (0.00067, 0.024)

    def test_simulation_agrees(self, exact, table):
        """200,000 draws a claim: mean and p within 4 standard errors, levels bracketed at the quantiles."""
        draws = 200_000
        for row in exact.itertuples():
            own = table[table["claim_id"] == row.claim_id]
            counts = {
                side: None if (own[side] == "").any() else own[side].astype(int).tolist()
                for side in ("n_positive", "n_negative")
            }
            simulated = frame.fair_reference(
                row.overall,
                counts["n_positive"],
                counts["n_negative"],
                row.measure,
                protocol="paper",
                draws=draws,
                seed=7,
            )
            g = simulated._law.differences
            assert abs(g.mean() - row.reference) < 4 * row.reference_sd / math.sqrt(draws), row.claim_id
            hits = np.count_nonzero(g >= row.observed - 1e-9)
            error = math.sqrt(max(row.p * (1 - row.p), 1 / draws) / draws)
            assert abs(hits / draws - row.p) < 4 * error, row.claim_id
            for level, quantile in ((0.025, row.reference_lo), (0.975, row.reference_hi)):
                slack = 4 * math.sqrt(level * (1 - level) / draws)
                assert np.mean(g < quantile - 1e-9) <= level + slack, row.claim_id
                assert np.mean(g <= quantile + 1e-9) >= level - slack, row.claim_id

    def test_every_run_gives_the_same_bits(self, exact, table):
        for cached in (
            published._reference,
            published._detectable,
            published._exceedance,
            exact_rates._proportion,
        ):
            cached.cache_clear()
        again = frame.audit_claims(table)
        pd.testing.assert_frame_equal(exact, again, check_exact=True)

    def test_small_probabilities_are_not_zero(self, exact):
        assert (exact["p"] > 0).all()
        assert exact["p"].min() < 1e-12


def test_columns_and_types(exact):
    assert tuple(exact.columns) == COLUMNS
    assert exact["exceeds"].dtype == "boolean"
    assert exact["decimals"].dtype == "Int64"
    assert (exact["status"] == "ok").all()
    assert exact.loc[exact["measure"] != "auroc", "p_kappa_1"].isna().all()
    assert (
        exact.loc[exact["measure"] == "auroc", ["p_kappa_1", "p_kappa_1_25", "p_kappa_1_5"]]
        .notna()
        .all()
        .all()
    )
    assert (exact["detectable_80"].notna() == ~exact["exceeds"]).all()
    assert (exact["remainder"] == exact["observed"] - exact["reference"]).all()


def test_order_and_names_change_nothing(exact, table):
    generator = np.random.default_rng(3)
    shuffled = table.iloc[generator.permutation(len(table))].copy()
    shuffled["subgroup"] = [f"group {i}" for i in range(len(shuffled))]
    again = frame.audit_claims(shuffled).set_index("claim_id").loc[exact["claim_id"]].reset_index()
    pd.testing.assert_frame_equal(exact, again, check_exact=False, rtol=1e-12, atol=1e-14)


def small(values=("0.80", "0.60"), counts=(100, 100), measure="tpr", **columns):
    return pd.DataFrame(
        {
            "claim_id": "a",
            "metric": measure,
            "subgroup": [f"s{i}" for i in range(len(values))],
            "value": list(values),
            "n_positive": [str(c) for c in counts],
            "n_negative": [str(c) for c in counts],
            **columns,
        }
    )


def test_counts_are_compared_as_integers():
    """3/10 against 1/10 and 0.30 against 0.10: the same lattice point, whatever floats say."""
    counted = pd.DataFrame(
        {"claim_id": "a", "metric": "tpr", "subgroup": ["x", "y"], "tp": [3, 1], "fn": [7, 9]}
    )
    from_counts = frame.audit_claims(counted).squeeze()
    from_text = frame.audit_claims(small(("0.30", "0.10"), (10, 10))).squeeze()
    assert from_counts["p"] == from_text["p"]
    assert 0.30 - 0.10 < 0.2  # a comparison of floats without the tolerance would miss the tie
    without = frame.fair_reference(0.2, [10, 10], None, "tpr")
    assert from_text["p"] == without.exceedance(0.2) > without.exceedance(0.2 + 1e-6)


def test_rounding_flag_turns_where_the_verdict_turns():
    for measure, pair, counts in (("tpr", ("0.80", "0.69"), 100), ("auroc", ("0.80", "0.71"), 150)):
        row = frame.audit_claims(small(pair, (counts, counts), measure)).squeeze()
        assert row["decimals"] == 2
        assert row["p_lo"] <= row["p"] <= row["p_hi"]
        assert row["share_lo"] <= row["share"] <= row["share_hi"]
        assert row["depends_on_rounding"] == ((row["p_lo"] < 0.05) != (row["p_hi"] < 0.05))
    assert frame.audit_claims(small(("0.80", "0.67"), (100, 100))).squeeze()["depends_on_rounding"]
    exact_text = small(("0.8000001", "0.6700001"), (100, 100))
    row = frame.audit_claims(exact_text).squeeze()
    assert (row["p_lo"], row["p_hi"], bool(row["depends_on_rounding"])) == (row["p"], row["p"], False)


def test_score_model_flag():
    """Twenty positives against 400 negatives at AUROC 0.95: the 95 % points are 0.064 to 0.088."""
    flagged = {}
    for gap in (40, 60, 75, 86, 100):
        claim = small((f"{0.95 + gap / 2000:.4f}", f"{0.95 - gap / 2000:.4f}"), (20, 20), "auroc")
        row = frame.audit_claims(claim.assign(n_negative="400", overall_value="0.95")).squeeze()
        band = [row[c] < 0.05 for c in ("p_kappa_1", "p_kappa_1_25", "p_kappa_1_5")]
        assert row["depends_on_score_model"] == (not all(b == row["exceeds"] for b in band))
        flagged[gap] = bool(row["depends_on_score_model"])
    assert flagged == {40: False, 60: False, 75: True, 86: True, 100: False}


def test_readings():
    def reading(direction, values, counts=(400, 400)):
        return frame.audit_claims(small(values, counts, claim_direction=direction)).squeeze()["reading"]

    large, tiny, middling = ("0.9", "0.5"), ("0.80", "0.80"), ("0.80", "0.76")
    assert [reading("disparity", v) for v in (large, tiny, middling)] == [
        "supports",
        "undecided",
        "undecided",
    ]
    assert [reading("caution", v) for v in (large, tiny, middling)] == ["weakens", "undecided", "undecided"]
    assert [reading("", v) for v in (large, tiny, middling)] == ["undecided"] * 3


def test_non_exceedance_speaks_where_the_counts_could_have_shown_it():
    # Alone the second claim would exceed at 0.05; in a family of many it does not, though its counts
    # would have shown a difference of that size.
    claims = [small(("0.500", "0.500"), (50, 50)).assign(claim_id=f"fair-{i}") for i in range(200)]
    claims.append(small(("0.520", "0.500"), (12000, 12000), claim_direction="disparity").assign(claim_id="b"))
    claims.append(small(("0.520", "0.500"), (12000, 12000), claim_direction="caution").assign(claim_id="c"))
    result = frame.audit_claims(pd.concat(claims, ignore_index=True).fillna("")).set_index("claim_id")
    assert result.loc["b", "p"] < 0.05
    assert not result.loc["b", "exceeds"]
    assert result.loc["b", "detectable_80"] <= result.loc["b", "observed"]
    assert (result.loc["b", "reading"], result.loc["c", "reading"]) == ("weakens", "supports")


def test_not_auditable_claims_keep_their_row():
    lost = small().assign(claim_id="lost", provenance="not printed", n_positive="", n_negative="")
    result = frame.audit_claims(pd.concat([small(provenance="reported"), lost])).set_index("claim_id")
    row = result.loc["lost"]
    assert (row["status"], row["reading"]) == ("not estimable", "undecided")
    assert row["reason"].startswith("not auditable: fewer than two subgroups")
    assert row[["reference", "p", "q", "share", "detectable_80"]].isna().all()
    assert row["exceeds"] is pd.NA
    alone = frame.audit_claims(small()).squeeze()
    assert result.loc["a", "q"] == alone["q"]


def test_zero_differences_have_no_share():
    row = frame.audit_claims(small(("0.80", "0.80"))).squeeze()
    assert row["p"] == 1.0
    assert math.isnan(row["share"])
    assert row["remainder"] == -row["reference"]


class TestMargin:
    def test_zero_margin_is_exact_fairness(self):
        assert (
            frame.audit_claims(small(), margin=0.0).squeeze()["p"]
            == frame.audit_claims(small()).squeeze()["p"]
        )

    def test_p_grows_with_the_margin(self):
        p = [frame.audit_claims(small(), margin=m).squeeze()["p"] for m in (0.0, 0.05, 0.1, 0.2, 0.4)]
        assert p == sorted(p)
        assert p[-1] > 0.9

    def test_largest_over_all_assignments_by_brute_force(self):
        from itertools import product

        from frame.reference.exact import difference_law

        for measure in ("tpr", "auroc"):
            counts = check_counts(0.8, [30, 50, 30], [40, 60, 40], measure, "auto")
            brute = max(
                difference_law(counts, 1.25, [0.8 + s * 0.04 for s in signs]).exceedance(0.15)
                for signs in product((-1, 1), repeat=3)
            )
            assert exceedance_with_margin(counts, 0.15, 0.08, 1.25) == pytest.approx(brute, rel=1e-12)

    def test_too_many_subgroups_leave_a_row(self):
        many = small(tuple(f"0.{50 + i}" for i in range(9)), (50,) * 9)
        row = frame.audit_claims(many, margin=0.05).squeeze()
        assert row["status"] == "not estimable"
        assert "at most 8 subgroups" in row["reason"]
        assert frame.audit_claims(many).squeeze()["status"] == "ok"


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        ({"protocol": "fast"}, "protocol is 'fast'"),
        ({"method": "delong"}, "method is 'delong'"),
        ({"alpha": 0}, "alpha is 0"),
        ({"alpha": 5}, "divide it by 100"),
        ({"margin": -0.1}, "margin is -0.1"),
        ({"margin": 1}, "margin is 1"),
        ({"design_effect": 0.5}, "design_effect is 0.5"),
        ({"design_effect": math.inf}, "design_effect is inf"),
        ({"margin": 0.1, "protocol": "paper"}, "margin needs protocol 'exact'"),
    ],
)
def test_bad_arguments(arguments, fragment):
    with pytest.raises(frame.InputError) as error:
        frame.audit_claims(small(), **arguments)
    assert fragment in str(error.value)


def test_method_binomial_is_for_rates_only():
    with pytest.raises(frame.InputError, match="does not fit claim 'a', an AUROC"):
        frame.audit_claims(small(measure="auroc"), method="binomial")
    assert frame.audit_claims(small(), method="binomial").squeeze()["method"] == "binomial"
    both = frame.audit_claims(
        pd.concat([small(), small(measure="auroc").assign(claim_id="b")]), method="binormal"
    )
    assert both["method"].tolist() == ["binomial", "binormal"]
    assert both["p"].iloc[1] == both["p_kappa_1_25"].iloc[1]


def test_design_effect_widens():
    narrow, wide = (frame.audit_claims(small(), design_effect=d).squeeze() for d in (1.0, 2.5))
    assert wide["reference"] > narrow["reference"]
    assert wide["p"] > narrow["p"]
    assert wide["smallest_group"] == narrow["smallest_group"] == 100


def test_progress_is_told():
    seen = []
    frame.audit_claims(small(), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 2), (2, 2)]


def test_so_many_subgroups_leave_a_row():
    for subgroups, counts, status in (
        (60, 20, "ok"),
        (61, 20, "not estimable"),
        (15, 100_000, "not estimable"),
    ):
        row = frame.audit_claims(small(("0.50",) * subgroups, (counts,) * subgroups)).squeeze()
        assert row["status"] == status
        assert (row["reason"] == "") == (status == "ok")

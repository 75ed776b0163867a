"""Our numbers beside the print, ties, and oddities, as the notebooks show them."""

import pytest

import frame
from frame.errors import InputError
from frame.figures.beside_print import (
    beside_print,
    cells_beside_print,
    count_verdicts,
    differing_cells,
)
from frame.figures.oddities import impossible_proportions, overall_outside_range
from frame.figures.ties import tie_table
from frame.record import NOT_COMPUTED, record_numbers, supplementary_table_7
from frame.tables import load_table

COHORT = "published record"


@pytest.fixture(scope="module")
def claims():
    return load_table("published_claims")


@pytest.fixture(scope="module")
def audits(claims):
    return {name: frame.audit_claims(claims, protocol=name) for name in ("exact", "paper")}


@pytest.fixture(scope="module")
def tables(audits, claims):
    return {name: supplementary_table_7(audit, claims) for name, audit in audits.items()}


@pytest.fixture(scope="module")
def numbers(audits, claims):
    studies = load_table("published_studies")
    return {name: record_numbers(audit, claims, studies) for name, audit in audits.items()}


# ---- printed numbers


def test_every_number_of_the_record_stands_beside_the_print(numbers):
    table = beside_print(["Figure 9", "Results"], numbers, cohort=COHORT, reasons=NOT_COMPUTED)
    assert list(table.columns) == [
        "place",
        "id",
        "quantity",
        "printed",
        "exact",
        "exact_verdict",
        "paper",
        "paper_verdict",
        "reason",
    ]
    assert table["id"].str.match("pub_|fig9").all()
    by_place = table.set_index(["place", "id"])
    # The two places print other roundings of one number, and ours agrees with both.
    for place, printed in (("Figure 9", "40"), ("Results", "41")):
        row = by_place.loc[(place, "pub_path_smallest_median")]
        assert row[["printed", "paper_verdict", "exact_verdict"]].tolist() == [printed, "equal", "equal"]
    assert set(table["paper_verdict"]) == {"equal", "not computed"}
    share = by_place.loc[("Results", "pub_auroc_share")]
    assert share[["printed", "exact", "exact_verdict", "paper"]].tolist() == ["70", "71", "differs", "70"]
    absent = table[table["paper_verdict"] == "not computed"]
    assert absent["id"].tolist() == ["pub_ddi_images"]
    assert absent["reason"].iloc[0] == NOT_COMPUTED["pub_ddi_images"]
    assert absent["exact"].isna().all()


def test_an_altered_number_is_seen(numbers):
    altered = {"paper": {**numbers["paper"], "pub_exceed": 40}}
    table = beside_print(["Results"], altered, cohort=COHORT, reasons=NOT_COMPUTED)
    assert table.loc[table["paper_verdict"] == "differs", "id"].tolist() == ["pub_exceed"]


def test_nothing_to_compare_is_refused(numbers):
    with pytest.raises(InputError, match="No place or no protocol"):
        beside_print([], numbers, cohort=COHORT, reasons={})
    with pytest.raises(InputError, match="No place or no protocol"):
        beside_print(["Results"], {}, cohort=COHORT, reasons={})


# ---- cells of Supplementary Table 7


def test_counts_of_equal_cells(tables):
    table = count_verdicts(tables).set_index("quantity")
    assert (table["cells"] == 89).all()
    assert table["paper_equal"].drop("q").tolist() == [89] * 8
    assert table.loc["q", "paper_equal"] == 88
    certain = ["n_groups", "smallest_group", "provenance", "observed", "exceeds"]
    assert table.loc[certain, "exact_equal"].tolist() == [89] * 5
    assert table.loc["reference", "exact_equal"] < 89
    assert (
        table.loc["reference", "paper_deviation"] <= 0.0005 + 1e-9 < table.loc["reference", "exact_deviation"]
    )
    assert table.loc["provenance"].isna()[["exact_deviation", "paper_deviation"]].all()


def test_the_one_cell_that_differs_under_the_papers_draws(tables):
    table = differing_cells({"paper": tables["paper"]})
    assert table[["claim_id", "quantity", "printed"]].values.tolist() == [["burlina-2021-05", "q", "0.004"]]
    assert round(float(table["paper"].iloc[0]), 3) == 0.005


def test_no_differing_cell_leaves_an_empty_table(tables):
    agreeing = tables["paper"].query("claim_id != 'burlina-2021-05'")
    table = differing_cells({"paper": agreeing})
    assert table.empty
    assert list(table.columns) == ["claim_id", "quantity", "printed", "paper", "paper_verdict"]


def test_cells_name_what_differs(tables):
    table = cells_beside_print(tables).set_index("claim_id")
    named = table[table["paper_differs"] != ""]
    assert named["paper_differs"].to_dict() == {"burlina-2021-05": "q"}
    assert table.loc["zong-2023-04", "q_printed"] == "0.036"
    assert table.loc["zong-2023-04", "exact_differs"] == "q"
    listed = differing_cells({"exact": tables["exact"]})
    assert sum(len(names.split(", ")) for names in table["exact_differs"] if names) == len(listed)


# ---- ties


def test_ties_explain_the_differing_exceedance(audits, claims):
    table = tie_table(audits["paper"], claims, load_table("paper_supplementary_table7")).set_index("claim_id")
    assert table["p_counted"].tolist() == audits["paper"]["p"].tolist()
    assert table["q_counted"].tolist() == pytest.approx(audits["paper"]["q"].tolist(), abs=1e-12)
    differing = table[table["p_counted"] != table["p_plain"]]
    # data/README.md and the page of deviations: .005 and .004 with ties counted, .004 and .003 without.
    rounded = differing[["q_counted", "q_plain"]].round(3).to_dict("index")
    assert rounded == {
        "burlina-2021-02": {"q_counted": 0.004, "q_plain": 0.003},
        "burlina-2021-05": {"q_counted": 0.005, "q_plain": 0.004},
    }
    assert differing["q_printed"].tolist() == ["0.004", "0.004"]
    assert table.loc["burlina-2021-05", "subtracted"] == repr(0.78 - 0.58) == "0.20000000000000007"


# ---- oddities, as data/README.md records them


def test_overall_values_outside_their_subgroups(claims):
    table = overall_outside_range(claims)
    assert table["claim_id"].tolist() == [f"daneshjou-2022-{k}" for k in ("04", "14", "16", "23", "24")]
    assert table.iloc[0].tolist() == ["daneshjou-2022-04", "DDI", "auroc", "0.55", "0.64", "0.65"]


def test_an_overall_value_at_the_end_of_the_range_is_inside(claims):
    one = claims[claims["claim_id"] == "daneshjou-2022-04"].assign(overall_value="0.64")
    assert overall_outside_range(one).empty
    assert len(overall_outside_range(one.assign(overall_value="0.54"))) == 1


def test_rates_that_are_no_proportions(claims):
    table = impossible_proportions(claims)
    assert table["study"].value_counts().to_dict() == {"vaidya-2024": 13, "lotter-2024": 2, "yala-2022": 1}
    yala = table.set_index("claim_id").loc["yala-2022-04"]
    assert yala[["value", "n", "below", "above"]].tolist() == ["0.400", 306, "0.399", "0.402"]


@pytest.mark.parametrize(
    ("value", "possible"), [("0.40", True), ("0.399", True), ("0.401", False), ("1.000", True)]
)
def test_a_proportion_is_judged_at_its_printed_decimals(claims, value, possible):
    one = claims[claims["claim_id"] == "yala-2022-04"].head(1).assign(value=value, n_positive="306")
    assert impossible_proportions(one).empty == possible


def test_a_cell_that_was_not_computed_is_not_equal(tables):
    without = tables["paper"].copy()
    without.loc[without.index[0], "reference_verdict"] = "not computed"
    counted = count_verdicts({"paper": without}).set_index("quantity")
    assert counted.loc["reference", ["cells", "paper_equal"]].tolist() == [89, 88]
    assert cells_beside_print({"paper": without})["paper_differs"].iloc[0] == "reference"

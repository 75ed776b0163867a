"""The tables and figures of planted_truth: every cohort is in them once."""

import pytest

from frame.characteristics.step_two import CELLS
from frame.characteristics.step_two_tables import cohorts_table, step_two_rates, summarised
from frame.figures.planted_truth import (
    cell_words,
    draw_step_one,
    draw_verdicts,
    operator_counts,
    step_one_rates,
    verdict_counts,
)
from frame.interventions.decision import CONSISTENT


@pytest.fixture(scope="module")
def rates():
    return step_two_rates()


def test_designs_have_names_of_their_own():
    for step in ("one", "two"):
        names = [cell_words(cell) for cell in CELLS if cell.step == step]
        assert len(set(names)) == len(names)
    assert cell_words(CELLS[2]) == "difference in Black, 5 groups"


def test_verdicts_add_up(rates):
    table = verdict_counts(rates)
    sums = table.groupby("design")["count"].sum()
    assert (sums == table.groupby("design")["cohorts"].first()).all()
    assert len(sums) == sum(cell.step == "two" for cell in CELLS)
    ran = operator_counts(rates).groupby("design")["cohorts"].first()
    passed = sums - table[table["verdict"] == CONSISTENT].set_index("design")["count"]
    assert (ran == passed[ran.index]).all()


def test_figures_say_every_count(rates):
    said = repr(draw_step_one(rates))
    for row in step_one_rates(rates).to_dict("records"):
        assert f"{row['design']}, {row['quantity']}: {row['count']} of {row['cohorts']}" in said
    said = repr(draw_verdicts(rates))
    for row in verdict_counts(rates).to_dict("records"):
        assert (f"{row['verdict']} {row['count']}" in said) or row["count"] == 0


def test_means_are_of_all_cohorts(rates):
    cohorts = cohorts_table()
    means = summarised(cohorts).set_index("cell")
    own = cohorts[cohorts["cell"] == "one_difference_2_Black"]
    assert means.loc["one_difference_2_Black", "cohorts"] == len(own)
    assert means.loc["one_difference_2_Black", "truth"] == pytest.approx(own["truth"].mean())

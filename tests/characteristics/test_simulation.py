"""The characteristics tables: how they are made, that they are up to date, and what they promise."""

import numpy as np
import pytest
from scipy.stats import binomtest

from frame.characteristics.cells import Cell, correlated_cells, null_cells, power_cells
from frame.characteristics.operating import answers, cohort_of, size_interval
from frame.characteristics.simulation import COLUMNS, combine, simulate_cell
from frame.characteristics.tables import characteristics, sidecar, sources_digest
from frame.characteristics.worlds import World

TABLES = ("sizes_auroc", "sizes_tpr", "sizes_fpr", "power_auroc")
SMALL = Cell("small", "auroc", World((120, 60), 0.8, 0.3, repeats=True))


@pytest.mark.parametrize(("rejected", "cohorts"), [(0, 40), (3, 200), (50, 1000), (40, 40)])
def test_size_interval_is_clopper_pearson(rejected, cohorts):
    expected = binomtest(rejected, cohorts).proportion_ci(0.99, method="exact")
    assert size_interval(rejected, cohorts) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_a_cell_is_counted_cohort_by_cohort():
    table = simulate_cell(SMALL, cohorts=12, compared=6, seed=5).set_index("method")
    assert list(table.reset_index().columns.sort_values()) == sorted(COLUMNS)
    p, observed, reference = [], [], []
    for number in range(12):
        found = {
            a.method: a
            for a in answers(SMALL, cohort_of(SMALL, number, 5), every_method=True, resampling=False)
        }
        p.append(found["calibrated"].p)
        observed.append(found["calibrated"].observed)
        reference.append(found["calibrated"].reference)
    row = table.loc["calibrated"]
    assert (row["cohorts"], row["estimable"], row["rejected"]) == (12, 12, sum(q <= 0.05 for q in p))
    assert row["ratio"] == pytest.approx(np.mean(reference[:6]) / np.mean(observed[:6]))
    assert table.loc["delong", "cohorts"] == 6
    assert table.loc["bootstrap interval above 0", "cohorts"] == 12


@pytest.mark.parametrize("measure", ["tpr", "fpr"])
def test_rates_are_audited_at_their_threshold(measure):
    cell = Cell("small", measure, World((120, 60), 0.8, 0.3, repeats=True).for_measure(measure))
    cohort = cohort_of(cell, 0, 5)
    found = {a.method: a for a in answers(cell, cohort, every_method=True, resampling=True)}
    asked = cohort.labels if measure == "tpr" else ~cohort.labels
    threshold = cell.world.separation - 0.8416212335729143
    rates = [np.mean(cohort.scores[asked & (cohort.groups == g)] >= threshold) for g in (0, 1)]
    assert found["calibrated"].observed == pytest.approx(abs(rates[0] - rates[1]))
    assert found["pooled"].observed == pytest.approx(abs(rates[0] - rates[1]))
    assert set(found) == {"calibrated", "heterogeneity", "binomial", "pooled", "bootstrap interval above 0"}


def test_nothing_estimable_is_no_rejection():
    cell = Cell("empty", "auroc", World((3, 2), 0.8, 0.0001))
    table = simulate_cell(cell, cohorts=3, compared=0, seed=5)
    assert table[["method", "cohorts", "estimable", "rejected"]].to_numpy().tolist() == [
        ["calibrated", 3, 0, 0]
    ]


def test_rows_are_combined_in_a_fixed_order():
    one = simulate_cell(SMALL, cohorts=2, compared=1, seed=5)
    two = simulate_cell(Cell("other", "auroc", SMALL.world), cohorts=2, compared=1, seed=5)
    assert combine([one, two]).equals(combine([two, one]))


# ---- the versioned tables


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_up_to_date(name):
    assert sidecar(name)["sources_sha256"] == sources_digest(), "run make characteristics"


def test_every_cell_is_there():
    cells = {"sizes_auroc": [*null_cells("auroc"), *correlated_cells()], "power_auroc": power_cells()}
    cells |= {f"sizes_{m}": null_cells(m) for m in ("tpr", "fpr")}
    for name, wanted in cells.items():
        table = characteristics(name)
        assert set(table["cell"]) == {c.name for c in wanted}
        assert sidecar(name)["cells"] == len(wanted)
        calibrated = table[table["method"] == "calibrated"]
        assert (calibrated["cohorts"] == (400 if name == "power_auroc" else 1000)).all()


@pytest.mark.parametrize("measure", ["auroc", "tpr", "fpr"])
def test_calibrated_holds_its_size(measure):
    """The promise of the method, at a nominal 0.05."""
    table = characteristics(f"sizes_{measure}")
    calibrated = table[(table["method"] == "calibrated") & (table["correlations"].isin(["", "0.5"]))]
    large = calibrated[calibrated["large_groups"]]
    assert len(large) == 72
    assert (large["size_hi"] >= 0.03).all()
    assert (large["size_lo"] <= 0.07).all()
    assert 0.04 <= large["size"].mean() <= 0.06
    small = calibrated[~calibrated["large_groups"]]
    assert len(small) == 24
    assert (small["size_lo"] <= 0.07).all()


@pytest.mark.parametrize("measure", ["auroc", "tpr", "fpr"])
def test_heterogeneity_holds_its_size_over_designs(measure):
    """A hundred cohorts a design say little of one; 7,200 over all say enough."""
    table = characteristics(f"sizes_{measure}")
    large = table[table["large_groups"] & table["correlations"].isin(["", "0.5"])]
    judged = large[large["method"] == "heterogeneity"]
    assert judged["cohorts"].sum() == 7200
    assert 0.04 <= judged["rejected"].sum() / judged["cohorts"].sum() <= 0.06
    # In no design is it far off: the 99 % interval of each meets [0.03, 0.07].
    assert (judged["size_lo"] <= 0.07).all()
    assert (judged["size_hi"] >= 0.03).all()


@pytest.mark.parametrize("measure", ["auroc", "tpr"])
def test_cohorts_simulated_again_give_the_same_count(measure):
    table = characteristics(f"sizes_{measure}").set_index(["cell", "method"])
    cell = next(c for c in null_cells(measure) if c.name.startswith("k5") and c.world.repeats)
    again = simulate_cell(cell, cohorts=200, compared=0).set_index("method")
    kept = table.loc[(cell.name, "calibrated")]
    assert again.loc["calibrated", "rejected"] == kept["rejected_of_repeated"]

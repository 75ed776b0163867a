"""The characteristics of the whole procedure: worlds, counting, resuming, and the versioned tables."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from frame.characteristics import step_two_tables
from frame.characteristics.step_two import (
    AUROC,
    CAUSES,
    CELLS,
    FAIR_REFERENCE,
    NAMES,
    PATIENTS,
    PILOT_SEEDS,
    SEEDS,
    SHARES,
    VERDICT_SEEDS,
    StepTwoCell,
    group_of,
    world_of,
)
from frame.characteristics.step_two_runs import COLUMNS, mean_fair_reference, run_one, true_difference
from frame.characteristics.step_two_tables import (
    cohorts_table,
    modules_digest,
    rates_table,
    rebuild,
    size_band,
    step_two_rates,
)
from frame.characteristics.tables import sidecar
from frame.cohorts.phantom.feature_level import feature_cohort
from frame.cohorts.phantom.feature_truth import population_aurocs, shared_head
from frame.heads.disease_heads import fit_head
from frame.interventions.decision import CONSISTENT, MOVES_BOTH, MOVES_ENTANGLEMENT, UNDETERMINED, VERDICTS

#: Cohorts that are asked again: a cell of each kind.
AGAIN = (
    ("one_none_5", 3),
    ("one_none_2", 11),
    ("one_difference_5_Black", 7),
    ("two_decodability_5", 1),
    ("two_entanglement_2_Black", 2),
    ("two_site-effect_5_Black", 0),
)


def cell_named(name):
    return next(cell for cell in CELLS if cell.name == name)


@pytest.fixture(scope="module")
def cohorts():
    return cohorts_table()


@pytest.fixture(scope="module")
def rates():
    return step_two_rates()


# ---- the worlds


def test_seeds_and_cells_are_the_ones_fixed_in_advance():
    assert (SEEDS, VERDICT_SEEDS) == (200, 50)
    assert len({cell.name for cell in CELLS}) == len(CELLS)
    assert set(PILOT_SEEDS).isdisjoint(range(SEEDS))
    one = {(c.cause, c.n_groups, c.where) for c in CELLS if c.step == "one" and c.interval}
    assert one == {
        (cause, n, where) for cause, where in (("none", ""), ("difference", "Black")) for n in (2, 5)
    }
    two = {c.cause for c in CELLS if c.step == "two" and c.n_groups == 5}
    assert two == set(CAUSES) - {"none"}
    later = ["two_full-entanglement_5_Black", "two_full-entanglement_2_Black"]
    assert sidecar("step_two_rates")["cells_added_after_seven_seeds"] == later


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_groups_have_the_demos_sizes(cell):
    world = world_of(cell, 4)
    sizes = {name: [0, 0, 0] for name in NAMES[cell.n_groups]}
    for group in world.groups:
        parts = (group.train, group.validation, group.test)
        sizes[group_of(group.name)] = [a + b for a, b in zip(sizes[group_of(group.name)], parts, strict=True)]
    assert sizes == {name: [round(n * SHARES[name]) for n in PATIENTS] for name in sizes}
    assert world.seed == 4
    assert world.unit == "patients"
    assert len(world.images_each) == 4


def test_what_is_planted_is_there_and_only_there():
    found = {}
    for cell in CELLS:
        world = world_of(cell, 0)
        if cell.cause != "site effect":
            table = population_aurocs(world, shared_head(world)).set_index("group")
            found[cell.cause, cell.n_groups, cell.where] = table
    for (cause, n_groups, where), table in found.items():
        others = table.drop(index=where) if where else table
        assert others[["best", "head", "best_recorded"]].to_numpy() == pytest.approx(AUROC)
        if cause == "difference":
            assert table.loc[where, "best"] == pytest.approx(AUROC - 3 * FAIR_REFERENCE[n_groups])
        if cause in ("entanglement", "full entanglement"):
            assert table.loc[where, "best"] == pytest.approx(AUROC)
            assert table.loc[where, "head"] < AUROC - 0.05
        if cause == "label noise":
            assert table.loc[where, "head"] == pytest.approx(AUROC)
            assert table.loc[where, "head_recorded"] < AUROC - 0.05


def test_a_second_site_is_worse_for_all_groups_and_holds_most_of_one():
    world = world_of(StepTwoCell("two", "site effect", 5, "Black"), 0)
    assert len(world.groups) == 10
    for group in world.groups:
        at_second = group.name.endswith(" at site 2")
        assert world.auroc_of(group) == (0.65 if at_second else AUROC)
        share = group.test / round(PATIENTS[2] * SHARES[group_of(group.name)])
        assert (share > 0.5) == (at_second == (group_of(group.name) == "Black"))


def test_the_truth_is_that_of_the_fitted_head():
    fair, planted = (cell_named(name) for name in ("one_none_5", "one_difference_5_Black"))
    for cell in (fair, planted):
        world = world_of(cell, 1)
        train = feature_cohort(world).part("train")
        head = fit_head(train.features, train.labels)
        truth = true_difference(world, head)
        if cell is fair:
            assert truth == pytest.approx(0.0, abs=1e-9)
        else:
            # Beside the closed form: the scores of a cohort that the head has not seen.
            drawn = feature_cohort(world, 5)
            scores, values = head.logit(drawn.features), {}
            for name in world.names:
                own = drawn.groups == name
                above = scores[own & drawn.labels][:, None] > scores[own & ~drawn.labels]
                values[name] = above.mean()
            black = values.pop("Black")
            assert np.mean(list(values.values())) - black == pytest.approx(truth, abs=0.05)
            assert 0.8 * 3 * FAIR_REFERENCE[5] < truth < 1.02 * 3 * FAIR_REFERENCE[5]


def test_the_mean_of_the_reference_is_the_one_that_is_planted(cohorts):
    assert mean_fair_reference(2, range(1000, 1004)) == pytest.approx(FAIR_REFERENCE[2], rel=0.1)
    for n in (2, 5):
        own = cohorts.loc[cohorts["cell"] == f"one_none_{n}", "reference"]
        assert own.mean() == pytest.approx(FAIR_REFERENCE[n], rel=0.05)
    with pytest.raises(ValueError, match="no design has 3 groups"):
        mean_fair_reference(3)


# ---- counting


def test_the_band_of_the_level_is_the_binomials():
    low, high = size_band(200)
    shares = [binomtest(k, 200, 0.05, alternative="less").pvalue for k in range(201)]  # P(X <= k)
    inside = shares[high] - shares[low - 1]
    assert inside >= 0.99
    assert shares[low] > 0.005
    assert 1 - shares[high - 1] > 0.005
    assert (low, high) == (3, 19)


def made_up(cell, rows):
    table = pd.DataFrame([dict.fromkeys(COLUMNS, np.nan) | row for row in rows])
    return table.assign(cell=cell, seed=range(len(rows)))


def test_cohorts_are_counted():
    one = made_up(
        "one_none_5",
        [
            {"p": 0.05, "lo": 0.0, "hi": 0.1, "truth": 0.0, "verdict": ""},
            {"p": 0.051, "lo": 0.01, "hi": 0.1, "truth": 0.0, "verdict": ""},
            {"p": np.nan, "truth": 0.0, "verdict": ""},
        ],
    )
    ran = {"p": 0.01, "disease_change": -0.02, "disease_lo": -0.03, "disease_hi": -0.01}
    ran |= {"decodability_change": 0.0, "decodability_lo": -0.1, "decodability_hi": 0.1}
    two = made_up(
        "two_entanglement_5_Black",
        [
            ran
            | {"verdict": MOVES_ENTANGLEMENT, "entanglement_change": 0.1}
            | {"entanglement_lo": 0.05, "entanglement_hi": 0.2},
            ran
            | {"verdict": UNDETERMINED, "entanglement_change": -0.1}
            | {"entanglement_lo": -0.2, "entanglement_hi": 0.0, "disease_hi": 0.0},
            {"p": 0.2, "verdict": CONSISTENT},
        ],
    )
    counted = rates_table(pd.concat([one, two])).set_index(["cell", "quantity"])
    found = {key: (row["count"], row["cohorts"]) for key, row in counted.iterrows()}
    assert found["one_none_5", "exceeds"] == (1, 3)
    assert found["one_none_5", "covered"] == (1, 3)
    cell = "two_entanglement_5_Black"
    assert [found[cell, f"verdict: {v}"][0] for v in VERDICTS] == [1, 1, 0, 0, 1]
    assert found[cell, "exceeds"] == (2, 3)
    assert found[cell, "precondition holds"] == (1, 2)
    assert found[cell, "rises with entanglement"] == (1, 2)
    assert found[cell, "falls with entanglement"] == (0, 2)
    assert found[cell, "rises with decodability"] == (0, 2)
    row = counted.loc[("one_none_5", "exceeds")]
    exact = binomtest(1, 3).proportion_ci(0.99, method="exact")
    assert (row["rate_lo"], row["rate_hi"]) == pytest.approx((exact.low, exact.high), rel=1e-4)
    assert row["target"] == "{} to {} of 3".format(*size_band(3))
    assert row["met"] == "yes"
    assert counted.loc[("one_none_5", "covered"), "met"] == "no"


def test_a_run_that_was_ended_goes_on(monkeypatch, tmp_path):
    first = StepTwoCell("one", "none", 2, interval=True)
    others = (StepTwoCell("one", "difference", 5, "White"), StepTwoCell("two", "entanglement", 2, "Black"))
    asked = []

    def answered(cell, seed):
        if cell.step == "two" and seed == 2 and len(asked) < 220:
            raise KeyboardInterrupt
        asked.append((cell.name, seed))
        return dict.fromkeys(COLUMNS, float("nan")) | {
            "cell": cell.name,
            "seed": seed,
            "verdict": "",
            "p": 0.5,
        }

    monkeypatch.setattr(step_two_tables, "CELLS", (first, *others))
    monkeypatch.setattr(step_two_tables, "run_one", answered)
    with pytest.raises(KeyboardInterrupt):
        rebuild(tmp_path / "out", tmp_path / "store", show=str)
    assert len(asked) == 200 + 3 * 4 + 2
    (kept,) = (tmp_path / "store").iterdir()
    with kept.open("a", encoding="utf-8") as lines:
        lines.write('{"cell": "two_ent')
    rebuild(tmp_path / "out", tmp_path / "store", run=False, show=str)
    side = json.loads((tmp_path / "out" / "step_two_rates.json").read_text(encoding="utf-8"))
    assert side["seeds_of_verdicts"] == [0, 1]
    assert side["seeds_of_step_one_without_intervals"] == [0, 7]
    table = pd.read_csv(tmp_path / "out" / "step_two_cohorts.csv")
    assert table["cell"].value_counts().to_dict() == {first.name: 200, others[0].name: 8, others[1].name: 2}
    monkeypatch.setattr(
        step_two_tables, "run_one", lambda cell, seed: asked.append("x") or answered(cell, seed)
    )
    asked += ["filler"] * 10
    rebuild(tmp_path / "out", tmp_path / "store", show=str)
    assert len({pair for pair in asked if isinstance(pair, tuple)}) == 450
    assert asked.count("x") == 450 - 214
    assert len(pd.read_csv(tmp_path / "out" / "step_two_cohorts.csv")) == 450


# ---- the versioned tables


@pytest.mark.parametrize("name", ["step_two_cohorts", "step_two_rates"])
def test_the_tables_are_up_to_date(name):
    assert sidecar(name)["sources_sha256"] == modules_digest(), "run make characteristics"


def test_every_cell_has_its_seeds(cohorts):
    side = sidecar("step_two_cohorts")
    by_cell = {cell: own["seed"].tolist() for cell, own in cohorts.groupby("cell")}
    assert set(by_cell) == {cell.name for cell in CELLS}
    for cell in CELLS:
        kind = "verdicts" if cell.step == "two" else "step_one"
        if cell.step == "one" and not cell.interval:
            kind += "_without_intervals"
        first, last = side[f"seeds_of_{kind}"]
        assert by_cell[cell.name] == list(range(first, last + 1))
    assert side["seeds_of_step_one"] == [0, 199]
    assert side["rows"] == len(cohorts)


def test_the_rates_are_those_of_the_cohorts(cohorts, rates):
    pd.testing.assert_frame_equal(rates_table(cohorts), rates, check_dtype=False, rtol=1e-6)


@pytest.mark.parametrize(("name", "seed"), AGAIN)
def test_a_cohort_asked_again_gives_its_row(cohorts, name, seed):
    kept = cohorts.set_index(["cell", "seed"]).loc[(name, seed)]
    again = run_one(cell_named(name), seed)
    assert again["verdict"] == kept["verdict"]
    for column in COLUMNS[2:]:
        if column != "verdict":
            assert again[column] == pytest.approx(kept[column], abs=2e-4, nan_ok=True), column


def test_verdicts_follow_from_the_numbers(cohorts):
    two = cohorts[cohorts["verdict"] != ""]
    assert len(two) == sum(cohorts["cell"].str.startswith("two_"))
    assert ((two["verdict"] == CONSISTENT) == (two["p"] > 0.05)).all()
    named = two["verdict"].isin([MOVES_ENTANGLEMENT, MOVES_BOTH])
    excludes = (two["entanglement_lo"] > 0) | (two["entanglement_hi"] < 0)
    assert (excludes[named] & (two["disease_change"][named] < -0.010)).all()


def test_the_intervals_fit_what_is_asked(cohorts):
    one = cohorts[cohorts["cell"].isin([cell.name for cell in CELLS if cell.interval])]
    assert len(one) == 800
    assert (one["lo"] <= one["hi"]).all()
    assert (one.loc[one["cell"].str.contains("none"), "truth"].abs() < 1e-6).all()

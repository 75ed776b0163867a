"""What an experiment is, whatever it computes."""

import pandas as pd
import pytest

from frame.errors import InputError
from frame.experiments import contract
from frame.experiments.contract import (
    EXPERIMENTS,
    TIDY_COLUMNS,
    Unit,
    all_units,
    check_tidy,
    experiment,
    named_units,
    tidy,
    unit_artefact,
)
from frame.experiments.results import read_result, with_small_cells_hidden, write_result
from frame.workspace.layout import Workspace
from frame.workspace.profiles import load_profile


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path, load_profile("tables"))


def row(**given):
    return pd.DataFrame([{"quantity": "images", "value": 1.0, **given}])


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_what_the_graph_calls(name, workspace):
    one = experiment(name)
    assert one.TITLE
    assert callable(one.run_unit)
    assert callable(one.collect)
    for unit in named_units(name, workspace).values():
        assert unit.inputs or unit.settings


def test_an_unknown_experiment():
    with pytest.raises(InputError, match="There is no experiment 'other'; the experiments are cohort_counts"):
        experiment("other")


def test_tidy_fills_every_column():
    found = tidy(row(n_images=3), experiment="x", modality="chest")
    assert list(found.columns) == list(TIDY_COLUMNS)
    assert found.loc[0, "status"] == "ok"
    assert found.loc[0, "experiment"] == "x"
    assert found.loc[0, "reason"] == ""
    assert found["n_images"].dtype == "Int64"
    assert pd.isna(found.loc[0, "n_positive"])
    assert found["p"].isna().all()


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (row(other=1), "a result has no columns other"),
        (row(status="fine"), "1 rows of a result have no proper status"),
        (row(status="not estimable", value=None), "1 rows of a result have no proper reason"),
        (row(value=None), "1 rows of a result have no proper value"),
    ],
)
def test_rows_that_are_no_result(rows, problem):
    with pytest.raises(ValueError, match=problem):
        tidy(rows)


def test_columns_are_checked():
    with pytest.raises(ValueError, match="columns of a result are experiment, modality"):
        check_tidy(row())


def test_collecting_fails_when_a_unit_is_missing(workspace):
    units = (Unit("one", ()), Unit("two", ()), Unit("three", ()))
    for unit in units[:1]:
        path = workspace.path(unit_artefact("cohort_counts", unit.name))
        path.parent.mkdir(parents=True)
        write_result(tidy(row()), path)
    with pytest.raises(
        InputError, match=r"2 of 3 units have not been computed \(two, three\); run `frame run coh"
    ):
        all_units("cohort_counts", workspace, units)
    assert len(all_units("cohort_counts", workspace, units[:1])) == 1


def test_results_that_are_not_there_say_which_command_makes_them(workspace):
    with pytest.raises(InputError, match="make them with: frame run cohort_counts --profile tables"):
        read_result(workspace, "cohort_counts")


@pytest.mark.parametrize("names", [("a", "a"), ("A",), ("a b",), ("",), ("../a",)])
def test_names_of_units_are_checked(names, workspace, monkeypatch):
    class Other:
        @staticmethod
        def units(workspace):
            return tuple(Unit(name, ()) for name in names)

    monkeypatch.setattr(contract, "experiment", lambda name: Other)
    with pytest.raises(ValueError, match="malformed or repeated"):
        named_units("other", workspace)


def test_a_result_is_written_the_same_each_time(tmp_path):
    for name in ("a", "b"):
        write_result(tidy(row()), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


# ---- small counts


def counts(values, **same):
    """Counts of subgroups in one split, with their sum as ``all``."""
    rows = [{"subgroup": name, "value": float(value), **same} for name, value in values.items()]
    return tidy(pd.DataFrame(rows), quantity="images", attribute="race", split=same.get("split", "test"))


def hidden(rows, smallest):
    found = with_small_cells_hidden(rows, smallest)
    assert list(found.columns) == list(TIDY_COLUMNS)
    return [name for name, shut in zip(found["subgroup"], found["value"].isna(), strict=True) if shut]


def test_nothing_is_hidden_at_one():
    rows = counts({"a": 1, "b": 2, "c": 0})
    pd.testing.assert_frame_equal(with_small_cells_hidden(rows, 1), rows)


def test_two_small_counts_hide_each_other():
    assert hidden(counts({"a": 3, "b": 8, "c": 50, "d": 0}), 10) == ["a", "b"]


@pytest.mark.parametrize(("a", "b"), [(1, 1), (3, 4), (9, 9)])
def test_small_counts_whose_sum_tells_them_take_another_with_them(a, b):
    """Two counts from 1 to 9 with the sum 2 are both 1; with 18 both 9; and 7 images are a small count."""
    assert hidden(counts({"a": a, "b": b, "c": 50, "d": 90}), 10) == ["a", "b", "c"]


def test_a_single_small_count_takes_the_next_smallest_with_it():
    rows = with_small_cells_hidden(counts({"a": 3, "b": 90, "c": 50, "d": 0}), 10)
    assert rows.loc[rows["value"].isna(), "subgroup"].tolist() == ["a", "c"]
    assert rows.set_index("subgroup")["reason"].to_dict() == {
        "a": "hidden: from 1 to 9",
        "b": "",
        "c": "hidden: a smaller count could be had from it",
        "d": "",
    }
    assert rows.loc[rows["value"].isna(), "status"].tolist() == ["not estimable"] * 2


def test_no_hidden_count_can_be_had_from_sums_over_subgroups_or_splits():
    """Every line of a table of subgroups by splits has no hidden count, or two or more."""
    table = {"train": (3, 40, 60), "validation": (12, 20, 30), "test": (50, 30, 70)}
    parts = [counts(dict(zip("abc", values, strict=True)), split=split) for split, values in table.items()]
    parts.append(
        counts(dict(zip("abc", map(sum, zip(*table.values(), strict=True)), strict=True)), split="all")
    )
    rows = pd.concat(parts, ignore_index=True)
    found = with_small_cells_hidden(rows, 10)
    shut = found.assign(shut=found["value"].isna()).pivot_table(
        index="subgroup", columns="split", values="shut"
    )
    assert shut.loc["a", "train"] == 1
    inner = shut[["train", "validation", "test"]]
    assert not (inner.sum(axis=0) == 1).any()
    assert not (inner.sum(axis=1) == 1).any()


def test_what_is_no_count_is_left_alone():
    rows = tidy(pd.DataFrame([{"quantity": "difference", "value": 3.0, "subgroup": "a"}]))
    pd.testing.assert_frame_equal(with_small_cells_hidden(rows, 10), rows)

"""No small count can be computed from what is shown: the sums of a table, solved."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from frame.experiments import cohort_counts
from frame.experiments.contract import Unit
from frame.experiments.results import with_small_cells_hidden
from frame.experiments.small_cells import group_hidden

RACES = ("White", "Black", "Asian", "Hispanic or Latino", "Other")
SPLITS = ("train", "validation", "test")
CODES = {"p": 1, "n": 0, "u": -1, "b": -2}
FINDING = "edema"


def cohort(seed, n=1500):
    """A cohort with few unrecorded races, few uncertain labels and a small validation split."""
    rng = np.random.default_rng(seed)
    race = rng.choice([*RACES, None], n, p=[0.6, 0.2, 0.1, 0.04, 0.03, 0.03])
    table = {
        "split": rng.choice(SPLITS, n, p=[0.7, 0.1, 0.2]),
        "subject_id": rng.integers(0, n // 2, n).astype(str),
        "sex": rng.choice(["female", "male", None], n, p=[0.5, 0.49, 0.01]),
        "age_band": "<40",
        "race_recorded": race,
        "race": [one or "Other" for one in race],
        "insurance_recorded": "Private",
        "insurance": "Private",
        "view": "PA",
    }
    for finding in cohort_counts.FINDINGS["chest"]:
        table[finding] = np.nan
    table[FINDING] = rng.choice([1.0, 0.0, -1.0, -2.0], n, p=[0.1, 0.52, 0.03, 0.35])
    return pd.DataFrame(table)


@pytest.fixture
def counted(monkeypatch):
    class Place:
        @staticmethod
        def path(name):
            return name

    def rows(table):
        monkeypatch.setattr(cohort_counts, "read_manifest_file", lambda path: table)
        found = cohort_counts.run_unit(Place, Unit("mimic_cxr", ("x",)))
        return found[found["finding"].isin(["", FINDING])].reset_index(drop=True)

    return rows


def unknowns(row, levels):
    """The cells of level, split and label that a count of races or of sexes is the sum of."""
    if row.attribute == "all":
        some = levels
    elif row.attribute == "race":
        some = {"Other": ["Other", "not recorded"], "not recorded": []}.get(row.subgroup, [row.subgroup])
    else:
        some = [row.subgroup]
    codes = "pnub"
    if row.quantity != "images":
        uncertain, blank = row.method.replace("uncertain ", "").replace("blank ", "").split(", ")
        codes = "p" + ("u" if uncertain == "positive" else "")
        if row.quantity == "evaluable":
            codes = "pn" + ("" if uncertain == "missing" else "u") + ("b" if blank == "negative" else "")
    return product(some, SPLITS if row.split == "all" else [row.split], codes)


def determined(rows, hidden, family, smallest):
    """How many small counts of a family of attributes follow from the shown ones."""
    levels = list(dict.fromkeys(rows.loc[rows["attribute"] == family[-1], "subgroup"]))
    place = {cell: at for at, cell in enumerate(product(levels, SPLITS, "pnub"))}
    used = rows["attribute"].isin(["all", *family]) & (rows["quantity"] != "subjects")
    sums = np.zeros((int(used.sum()), len(place)))
    for line, row in enumerate(rows[used].itertuples()):
        for cell in unknowns(row, levels):
            sums[line, place[cell]] = 1
    values, shut = rows.loc[used, "value"].to_numpy(), hidden[used].to_numpy()
    open_ = ~(sums[~shut & (values == 0)] > 0).any(axis=0)  # a shown 0 says that each of its parts is 0
    _, sizes, directions = np.linalg.svd(sums[~shut][:, open_])
    free = directions[int((sizes > 1e-8).sum()) :]
    small = shut & (values >= 1) & (values < smallest)
    assert small.any()
    return int((np.abs(sums[small][:, open_] @ free.T).max(axis=1, initial=0) < 1e-7).sum())


@pytest.mark.parametrize("family", [("sex",), ("race", "race_recorded")], ids=["sex", "race"])
@pytest.mark.parametrize("seed", [0, 1])
def test_no_small_count_follows_from_the_shown_ones(counted, seed, family):
    """Over subgroups, splits, totals, label policies, and from the pooled attribute to the recorded one."""
    rows = counted(cohort(seed))
    hidden = with_small_cells_hidden(rows, 10)["value"].isna()
    small = rows["value"].between(1, 9)
    assert not (small & ~hidden).any()
    assert determined(rows, hidden, family, 10) == 0
    assert determined(rows, small, family, 10) > 0  # hiding the small ones alone is not enough
    assert not hidden[(rows["attribute"] == "all") & (rows["quantity"] == "images")].any()


def test_images_and_subjects_are_hidden_together(counted):
    table = cohort(0)
    table.loc[table.index[:30], ["sex", "subject_id", "split"]] = [None, "one", "train"]
    rows = counted(table)
    found = with_small_cells_hidden(rows, 10)
    of = rows[rows["attribute"] == "sex"]
    assert of.loc[(of["subgroup"] == "not recorded") & (of["quantity"] == "images"), "value"].max() > 30
    shut = found.loc[of.index, "value"].isna()
    pairs = of.assign(shut=shut)[of["quantity"].isin(["images", "subjects"])]
    by_cell = pairs.groupby(["subgroup", "split"])["shut"].nunique()
    assert (by_cell == 1).all()
    assert shut.any()


@pytest.mark.parametrize(
    ("values", "groups", "expected"),
    [
        ([3, 50, 60], "aab", "110"),
        ([3, 50, 60], "abb", "111"),
        ([3, 3, 50], "aaa", "111"),
        ([3, 8, 50], "aaa", "110"),
        ([0, 20, 50], "aab", "000"),
        ([3], "a", "1"),
    ],
)
def test_counts_of_one_list(values, groups, expected):
    counts = pd.Series(values)
    found = group_hidden(counts, pd.Series(list(groups)), counts.between(1, 9), 10)
    assert "".join(str(int(one)) for one in found) == expected

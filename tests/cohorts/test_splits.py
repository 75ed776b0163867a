"""Splits: shares, independence of other subjects, exact numbers, and subjects in two splits."""

import hashlib
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frame.cohorts.splits import (
    HASHED_FRACTIONS,
    SUBJECT_FRACTIONS,
    check_disjoint,
    fraction_split,
    hashed_split,
    validation_tenth,
)
from frame.errors import InputError

ids = st.lists(st.text("0123456789abé:", min_size=1, max_size=6), min_size=1, max_size=40)
seeds = st.integers(0, 5)
SPLITTERS = (hashed_split, fraction_split, validation_tenth)


def subjects(n, prefix="chexpert:patient"):
    return pd.Series([f"{prefix}{number:05d}" for number in range(n)])


# --- the hashed split


def test_hashed_shares_are_within_binomial_error():
    n = 60_000
    counts = hashed_split(subjects(n), 0).value_counts()
    for name, share in HASHED_FRACTIONS.items():
        # Five standard errors: a false alarm in two of a million draws, and this draw is fixed.
        assert abs(counts[name] - share * n) < 5 * math.sqrt(n * share * (1 - share))


def test_the_hash_is_the_one_described():
    def expected(subject, seed):
        number = int(hashlib.sha256(f"{seed}:{subject}".encode()).hexdigest()[:16], 16) / 2**64
        return "train" if number < 0.72 else "validation" if number < 0.80 else "test"

    some = subjects(300)
    assert hashed_split(some, 7).tolist() == [expected(subject, 7) for subject in some]


def test_seeds_give_other_splits():
    some = subjects(2000)
    same = (hashed_split(some, 0) == hashed_split(some, 1)).mean()
    # Two independent draws agree with probability .72^2 + .08^2 + .20^2 = .565.
    assert abs(same - 0.565) < 0.06


@given(ids, ids, seeds)
def test_adding_subjects_changes_no_hashed_split(some, more, seed):
    alone = hashed_split(pd.Series(some), seed)
    together = hashed_split(pd.Series([*more, *some, *more]), seed)
    assert together.iloc[len(more) : len(more) + len(some)].tolist() == alone.tolist()


def test_hashed_shares_can_be_given():
    some = subjects(500)
    assert set(hashed_split(some, 0, {"train": 1.0})) == {"train"}
    assert set(hashed_split(some, 0, {"train": 0.0, "test": 1.0})) == {"test"}


# --- exact numbers


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (13931, (8359, 1393, 4179)),  # ISIC 2019, lesions and images without one
        (656, (394, 66, 196)),  # DDI
        (16012, (9607, 1601, 4804)),  # Fitzpatrick17k
        (1, (1, 0, 0)),
        (2, (1, 0, 1)),
        (3, (2, 0, 1)),
    ],
)
def test_numbers_of_subjects(n, expected):
    counts = fraction_split(subjects(n), 0).value_counts()
    assert tuple(int(counts.get(name, 0)) for name in SUBJECT_FRACTIONS) == expected


@pytest.mark.parametrize(("n", "n_validation"), [(28008, 2801), (10, 1), (4, 0), (5, 0), (15, 2)])
def test_a_tenth_of_the_subjects(n, n_validation):
    split = validation_tenth(subjects(n), 0)
    assert (split == "validation").sum() == n_validation
    assert set(split) <= {"train", "validation"}


def test_the_draw_is_the_one_described():
    some = subjects(20).sample(frac=1, random_state=3)
    order = np.random.default_rng(4).permutation(20)
    expected = {f"chexpert:patient{place:05d}": "train" for place in order[:12]}
    expected |= {f"chexpert:patient{place:05d}": "validation" for place in order[12:14]}
    assert fraction_split(some, 4).tolist() == [expected.get(subject, "test") for subject in some]


@pytest.mark.parametrize("split", SPLITTERS, ids=lambda split: split.__name__)
@given(some=ids, seed=seeds, random=st.randoms())
def test_a_subject_has_one_split_whatever_the_order_of_rows(split, some, seed, random):
    rows = pd.Series([*some, *some], index=np.arange(2 * len(some)) + 5)
    found = split(rows, seed)
    assert found.index.equals(rows.index)
    assert found.groupby(rows).nunique().max() == 1
    shuffled = rows.loc[random.sample(list(rows.index), len(rows))]
    assert split(shuffled, seed).loc[rows.index].equals(found)


@pytest.mark.parametrize("split", SPLITTERS, ids=lambda split: split.__name__)
def test_a_missing_subject_is_refused(split):
    with pytest.raises(InputError, match=r"missing for 2 of 3 images; every image needs one"):
        split(pd.Series(["a", None, np.nan], dtype="str"), 0)


@pytest.mark.parametrize(
    "shares", [{}, {"train": 0.5}, {"train": 1.2, "test": -0.2}, {"train": 0.72, "test": 0.2}], ids=str
)
def test_shares_that_do_not_add_up_are_refused(shares):
    for split in (hashed_split, fraction_split):
        with pytest.raises(InputError, match="at least 0 and add up to 1"):
            split(subjects(3), 0, shares)


# --- subjects in two splits


def images(rows, site="isic_2019"):
    """Rows of (subject, split) or (subject, split, patient)."""
    table = pd.DataFrame([(*row, None)[:3] for row in rows], columns=["subject_id", "split", "patient_id"])
    for column in ("subject_id", "patient_id"):
        table[column] = (f"{site}:" + table[column].astype("str")).where(table[column].notna())
    return table.assign(site=site)


def test_lesions_photographed_three_times_and_split_by_image():
    rng = np.random.default_rng(0)
    lesions = [f"HAM_{number:07d}" for number in range(100) for _ in range(3)]
    by_image = images(list(zip(lesions, rng.choice(["train", "test"], 300), strict=True)))
    crossing = by_image.groupby("subject_id")["split"].nunique().gt(1).sum()
    assert 50 < crossing < 100
    with pytest.raises(InputError) as error:
        check_disjoint(by_image)
    assert str(error.value).startswith(
        f"isic_2019: {crossing} subjects are in more than one split ({crossing} in test and train)"
    )
    assert "HAM" not in str(error.value)
    by_lesion = by_image.assign(split=fraction_split(by_image["subject_id"], 0))
    assert check_disjoint(by_lesion).to_numpy().tolist() == [["isic_2019", "subject", 100, 0]]


def test_every_pair_of_splits_is_told():
    rows = [("a", "train"), ("a", "test"), ("b", "train"), ("b", "validation"), ("c", "train"), ("d", "test")]
    rows += [("e", "train"), ("e", "validation"), ("e", "test")]
    with pytest.raises(InputError) as error:
        check_disjoint(images(rows))
    assert "3 subjects are in more than one split (1 in test and train, " in str(error.value)
    assert "1 in test and train and validation, 1 in train and validation)" in str(error.value)


@pytest.mark.parametrize(
    "other", ["7", "7 ", " 007", "0007", "0 07", "7.0", "007.00", "7\u00a0", "\u200b7", "\uff17"]
)
def test_ids_that_were_damaged_on_the_way(other):
    with pytest.raises(InputError) as error:
        check_disjoint(images([("007", "train"), (other, "test"), ("8", "test")]))
    assert "isic_2019: 2 subjects whose ids differ only by zeros, case or blanks" in str(error.value)
    assert "007" not in str(error.value)
    counted = check_disjoint(images([("007", "train"), (other, "train"), ("8", "test")]))
    assert counted.to_numpy().tolist() == [["isic_2019", "subject", 3, 2]]


def test_zeros_in_front_of_a_number_within_an_id():
    with pytest.raises(InputError, match="zeros, case or blanks"):
        check_disjoint(images([("patient00007", "train"), ("patient7", "test")]))


def test_ids_that_differ_by_case():
    with pytest.raises(InputError, match="zeros, case or blanks"):
        check_disjoint(images([("Ab", "train"), ("aB", "test")]))


@pytest.mark.parametrize(
    ("one", "other"),
    [("70", "7"), ("0", "1"), ("10", "100"), ("a0", "a"), ("000", "1"), ("a0b", "ab"), ("1.05", "1.5.0")],
)
def test_ids_that_do_differ(one, other):
    counted = check_disjoint(images([(one, "train"), (other, "test")]))
    assert counted[["n", "n_alike"]].to_numpy().tolist() == [[2, 0]]


def test_a_patient_in_two_splits_under_two_lesions():
    rows = [("lesion1", "train", "p"), ("lesion2", "test", "p"), ("lesion3", "test", "q")]
    with pytest.raises(
        InputError, match=r"isic_2019: 1 patients are in more than one split \(1 in test and train\)"
    ):
        check_disjoint(images(rows))


def test_patients_of_two_sites_are_two_patients():
    table = pd.concat([images([("1", "train", "1")], "chexpert"), images([("1", "test", "1")], "padchest")])
    assert check_disjoint(table)["n"].tolist() == [1, 1, 1, 1]


def test_categories_do_as_well_as_text():
    table = images([("a", "train"), ("b", "test")])
    typed = table.assign(
        site=pd.Categorical(table["site"], categories=["chexpert", "isic_2019"]),
        split=pd.Categorical(table["split"], categories=["train", "validation", "test"]),
    )
    assert check_disjoint(typed).equals(check_disjoint(table))


def test_every_problem_is_told_at_once():
    table = pd.concat(
        [
            images([("a", "train"), ("a", "test")], "chexpert"),
            images([("b", "train"), ("B", "test")], "padchest"),
        ]
    )
    with pytest.raises(InputError) as error:
        check_disjoint(table)
    assert "chexpert: 1 subjects are" in str(error.value)
    assert "; padchest: 2 subjects whose ids" in str(error.value)

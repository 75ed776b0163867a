"""Embeddings and what belongs to them: splits, caps, mapped files, and every mistake as a sentence."""

import numpy as np
import pandas as pd
import pytest

from frame.errors import InputError
from frame.mitigation import feature_matrix
from frame.mitigation.feature_matrix import gathered_rows
from frame.mitigation.feature_rows import SPLITS, feature_rows

N = 300


def given(seed=0):
    rng = np.random.default_rng(seed)
    return {
        "features": rng.normal(size=(N, 5)).astype("float32"),
        "labels": pd.Series(np.arange(N) % 2, name="finding"),
        "groups": pd.Series(np.array(["F", "M"])[rng.integers(0, 2, N)], name="sex"),
        "split": np.repeat(["train", "validation", "test"], 100),
        "patients": np.repeat([f"canary{i:03d}" for i in range(N // 2)], 2),
    }


def test_rows_of_each_split_in_order():
    values = given()
    found = feature_rows(**values)
    assert (found.label, found.attributes, found.levels("sex")) == ("finding", ("sex",), ("F", "M"))
    for place, name in enumerate(SPLITS):
        part = found.splits[name]
        assert part.numbers.tolist() == list(range(100 * place, 100 * place + 100))
        assert np.array_equal(found.gathered(name), values["features"][part.numbers])
        assert np.array_equal(part.rows.labels, values["labels"].to_numpy()[part.numbers] == 1)
        codes = found.codes(name, "sex")
        assert [found.levels("sex")[c] for c in codes] == values["groups"].iloc[part.numbers].tolist()
    assert found.splits["test"].rows.n_patients == 50
    assert found.notes == ()


def test_other_words_for_a_split_and_other_splits():
    values = given()
    values["split"] = np.where(values["split"] == "train", " Training", values["split"])
    values["split"] = np.where(values["split"] == "validation", "val", values["split"]).astype(object)
    values["split"][:6] = "holdout"
    found = feature_rows(**values)
    assert len(found.splits["train"]) == 94
    assert found.notes == ("6 images of other splits are left out (6 'holdout').",)


def test_a_mapping_of_row_numbers_or_flags_is_the_same_split():
    values = given()
    wanted = {name: np.flatnonzero(values["split"] == name) for name in SPLITS}
    one = feature_rows(**{**values, "split": wanted})
    other = feature_rows(**{**values, "split": {n: values["split"] == n for n in SPLITS}})
    for name in SPLITS:
        assert np.array_equal(one.splits[name].numbers, wanted[name])
        assert np.array_equal(other.splits[name].numbers, wanted[name])


def test_a_drawn_split_keeps_patients_together_and_does_not_depend_on_the_order():
    values = given()
    del values["split"]
    found = feature_rows(**values)
    assert "split at random with seed 0 (60 % train, 15 % validation, 25 % test)" in found.notes[0]
    patients = {n: set(values["patients"][found.splits[n].numbers]) for n in SPLITS}
    assert [len(patients[n]) for n in SPLITS] == [90, 22, 38]
    assert not patients["train"] & patients["test"]
    assert not patients["validation"] & patients["test"]
    order = np.random.default_rng(1).permutation(N)
    turned = {
        k: v[order] if isinstance(v, np.ndarray) else v.iloc[order].reset_index(drop=True)
        for k, v in values.items()
    }
    again = feature_rows(**turned)
    for name in SPLITS:
        assert set(turned["patients"][again.splits[name].numbers]) == patients[name]
    other = feature_rows(**values, seed=1)
    assert set(values["patients"][other.splits["test"].numbers]) != patients["test"]


def test_a_drawn_split_without_patients_says_that_images_were_split():
    values = given()
    del values["split"], values["patients"]
    assert "the images, as no patient ids were given, were split" in feature_rows(**values).notes[0]


def test_the_cap_draws_training_rows_once_and_says_so():
    found = feature_rows(**given(), cap=40)
    assert (len(found.splits["train"]), found.n_train, len(found.splits["test"])) == (40, 100, 100)
    assert found.notes[0].startswith("40 of 100 training images were drawn (cap, seed 0), the same for every")
    assert np.all(np.diff(found.splits["train"].numbers) > 0)


def test_images_without_a_label_are_left_out_and_counted():
    values = given()
    values["labels"] = values["labels"].astype(float)
    values["labels"].iloc[[0, 150, 299]] = np.nan
    values["features"][0] = np.nan  # of no image that is used
    found = feature_rows(**values)
    assert [len(found.splits[n]) for n in SPLITS] == [99, 99, 99]
    assert found.notes == ("3 images have no label for the finding and are left out.",)


@pytest.mark.parametrize(("policy", "levels"), [("drop", ("F", "M")), ("group", ("F", "M", "(missing)"))])
def test_missing_groups(policy, levels):
    values = given()
    values["groups"].iloc[[0, 1, 120, 250]] = None
    found = feature_rows(**values, missing=policy)
    assert found.levels("sex") == levels
    code = -1 if policy == "drop" else 2
    assert int((found.codes("train", "sex") == code).sum()) == 2
    assert len(found.splits["train"]) == 100
    assert "'sex' is missing for 4 of 300 images" in found.notes[0]


# -- files and memory ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["<f4", ">f4", "<f8", ">f8", "<f2"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_any_byte_order_and_storage(kind, order, tmp_path):
    values = given()
    wanted = values["features"].astype(kind)
    path = tmp_path / "features.npy"
    np.save(path, np.asarray(wanted, order=order))
    values["features"] = np.load(path, mmap_mode="r")
    found = feature_rows(**values)
    rows = found.gathered("validation")
    assert np.array_equal(rows, wanted[100:200])
    assert rows.dtype.isnative
    assert rows.dtype.itemsize == np.dtype(kind).itemsize


def test_rows_that_lie_together_are_a_view():
    values = given()
    rows = feature_rows(**values).gathered("test")
    assert np.shares_memory(rows, values["features"])


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_apart_go_to_a_file_without_a_name_where_they_are_many(monkeypatch, tmp_path, order):
    matrix = np.asarray(np.random.default_rng(0).normal(size=(50, 7)), order=order)
    numbers = np.arange(0, 50, 3)
    monkeypatch.setattr(feature_matrix, "IN_MEMORY", 0)
    monkeypatch.setattr(feature_matrix, "_BLOCK", 20)
    rows = gathered_rows(matrix, numbers, tmp_path)
    assert isinstance(rows, np.memmap)
    assert np.array_equal(rows, matrix[numbers])
    assert list(tmp_path.iterdir()) == []


def test_no_room_for_the_file_is_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(feature_matrix, "IN_MEMORY", 0)
    with pytest.raises(InputError, match=r"need 0\.0 GiB in the temporary folder \(no such file"):
        gathered_rows(np.zeros((9, 2)), np.array([0, 4]), tmp_path / "gone")


def test_blocks_see_every_row(monkeypatch):
    monkeypatch.setattr(feature_matrix, "_BLOCK", 8)
    values = given()
    values["features"][137, 3] = np.inf
    values["features"][299, 3] = np.nan
    with pytest.raises(InputError) as raised:
        feature_rows(**values)
    assert str(raised.value) == (
        "features: 2 rows have a missing or infinite value (in column 3, counted from 0); make these "
        "embeddings again, or leave the images out by a blank label."
    )


# -- mistakes -----------------------------------------------------------------------------------------


def replaced(**changes):
    def act():
        values = given()
        return feature_rows(**{**values, **{k: v(values[k]) for k, v in changes.items()}})

    return act


def split_with(where, word):
    def change(split):
        changed = split.astype(object)
        changed[where] = word
        return changed

    return change


def one_class(labels):
    changed = labels.copy()
    changed.iloc[100:200] = 0
    return changed


BAD = {
    "path": (
        replaced(features=lambda _: "features.npy"),
        "features is text; give the embeddings themselves, for example "
        "numpy.load('features.npy', mmap_mode='r').",
    ),
    "one_dimension": (
        replaced(features=lambda x: x[:, 0]),
        "features has 1 dimension (shape (300,)); give two, one row per image and one column per dimension "
        "of the embedding.",
    ),
    "three_dimensions": (
        replaced(features=lambda x: x[:, :, None]),
        "features has 3 dimensions (shape (300, 5, 1)); give two, one row per image and one column per "
        "dimension of the embedding.",
    ),
    "empty": (
        replaced(features=lambda x: x[:, :0]),
        "features is empty (300 rows of 0 numbers); give at least one row and one column.",
    ),
    "whole_numbers": (
        replaced(features=lambda x: x.astype(int)),
        "features holds int64; give float16, float32 or float64 (.astype('float32') converts numbers).",
    ),
    "complex": (
        replaced(features=lambda x: x.astype(complex)),
        "features holds complex128; give float16, float32 or float64 (.astype('float32') converts numbers).",
    ),
    "objects": (
        replaced(features=lambda x: x.astype(object)),
        "features holds objects; give float16, float32 or float64 (.astype('float32') converts numbers).",
    ),
    "structured": (
        replaced(features=lambda _: np.zeros(N, dtype=[("a", "f4"), ("b", "f4")])),
        "features is a structured array with 2 named columns; give a plain array of numbers, one row per "
        "image.",
    ),
    "ragged": (
        replaced(features=lambda _: [[1.0, 2.0], [1.0]]),
        "features cannot be read as an array; give one row of numbers per image, all of one length.",
    ),
    "fewer_rows": (
        replaced(features=lambda x: x[:-1]),
        "features has 299 rows and labels has 300; give one embedding per image, in the same order.",
    ),
    "fewer_groups": (
        replaced(groups=lambda g: g.iloc[:-1]),
        "labels has 300 rows and groups has 299; give one value per image in each.",
    ),
    "not_a_number": (
        replaced(features=lambda x: np.where(np.arange(N)[:, None] == 7, np.nan, x)),
        "features: 1 row has a missing or infinite value (in 5 columns, counted from 0); make these "
        "embeddings again, or leave the images out by a blank label.",
    ),
    "patient_in_two_splits": (
        replaced(split=split_with(99, "test")),
        "split: 1 patient is in more than one split (1 in test and train). All images of one patient "
        "belong into one split; check how the ids were read and joined, and split by patient.",
    ),
    "ids_alike_but_for_zeros": (
        replaced(patients=lambda p: np.where(p == "canary049", "7", np.where(p == "canary149", "007", p))),
        "split: 2 patients whose ids differ only by zeros, case or blanks are in more than one split (1 in "
        "test and train). All images of one patient belong into one split; check how the ids were read and "
        "joined, and split by patient.",
    ),
    "no_test_rows": (
        replaced(split=lambda s: np.where(s == "test", "train", s)),
        "split: no row says 'test'; found are 200 'train', 100 'validation'. Every image is 'train', "
        "'validation' or 'test'.",
    ),
    "split_of_ids": (
        replaced(split=lambda s: np.array([f"canary{i}" for i in range(N)])),
        "split: no row says 'train'; found are 300 different values. Every image is 'train', 'validation' "
        "or 'test'.",
    ),
    "no_positive": (
        replaced(labels=one_class),
        "split 'validation' has no positive among its 100 images with a label; every split needs both "
        "classes, so split the patients in another way, or take a commoner finding.",
    ),
    "one_group": (
        replaced(groups=lambda g: pd.Series(["F"] * N, name="sex")),
        "column 'sex' has one subgroup, 'F'; a difference needs two.",
    ),
    "declared_but_absent_group": (
        replaced(groups=lambda g: pd.Series(pd.Categorical(["F"] * N, categories=["F", "M"]), name="sex")),
        "column 'sex' has 1 of its 2 subgroups among the images with a label; a difference needs two.",
    ),
    "labels": (
        replaced(labels=lambda y: y.replace({0: -1})),
        None,
    ),
    "missing_group": (
        replaced(groups=lambda g: g.where(np.arange(N) != 3)),
        None,
    ),
    "missing_patient": (
        replaced(patients=lambda p: np.where(np.arange(N) == 3, None, p)),
        "patients: the id is missing for 1 of 300 images; fill it in, or leave those images out with "
        "missing='drop'.",
    ),
}
STARTS = {
    "labels": "labels hold -1 (150 images: F",
    "missing_group": "column 'sex' is blank for 1 of 300 images",
}


@pytest.mark.parametrize("case", BAD)
def test_mistakes_are_sentences(case):
    act, sentence = BAD[case]
    with pytest.raises(InputError) as raised:
        act()
    if sentence is None:
        assert str(raised.value).startswith(STARTS[case])
    else:
        assert str(raised.value) == sentence
    assert "canary" not in str(raised.value)


def test_groups_blank_in_a_whole_split():
    values = given()
    values["groups"] = values["groups"].where(values["split"] != "test")
    with pytest.raises(InputError) as raised:
        feature_rows(**values, missing="drop")
    assert str(raised.value) == "column 'sex' is blank for every test image; there is nothing to compare."


@pytest.mark.parametrize(
    ("split", "sentence"),
    [
        ({"train": [0]}, "split has the entries 'train'; give 'train', 'validation' and 'test', each row "
         "numbers or flags."),
        ({"train": [0, 1], "validation": [1, 2], "test": [3]},
         "split: 1 rows are in 'validation' and in another split; give each once."),
        ({"train": [0, 300], "validation": [1], "test": [3]},
         "split 'train' must hold at least one row number from 0 to 299, each once."),
        ({"train": [0.5], "validation": [1], "test": [3]},
         "split 'train' is float64 of shape (1,); give row numbers, or 300 flags."),
    ],
    ids=["entries", "twice", "outside", "no_numbers"],
)  # fmt: skip
def test_a_mapping_that_is_no_split(split, sentence):
    with pytest.raises(InputError) as raised:
        feature_rows(**{**given(), "split": split})
    assert str(raised.value) == sentence


def test_the_cap_that_leaves_one_class():
    values = given()
    values["labels"] = pd.Series(np.r_[1, np.zeros(99, int), np.arange(200) % 2], name="finding")
    with pytest.raises(InputError) as raised:
        feature_rows(**values, cap=3)
    assert str(raised.value) == (
        "the 3 training images drawn under the cap are all of one class; raise the cap."
    )

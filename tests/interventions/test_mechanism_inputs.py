"""What a user may get wrong is told in one sentence, before anything is fitted."""

import re

import numpy as np
import pandas as pd
import pytest
from mechanism_worlds import QUICK, cohort

from frame.errors import InputError
from frame.interventions.mechanism_rows import mechanism_rows
from frame.interventions.procedure import mechanism


def given(**changed):
    drawn = cohort(3, 0.6)
    arguments = {
        "features": drawn.features,
        "labels": drawn.labels,
        "groups": pd.Series(drawn.groups, name="race"),
        "split": drawn.split,
        "patients": drawn.patients,
    }
    return arguments | QUICK | changed


def nan_at(row):
    features = cohort(3, 0.6).features.copy()
    features[row, 2] = np.nan
    return features


def split_with(word):
    return np.where(cohort(3, 0.6).split == "validation", word, cohort(3, 0.6).split)


N = len(cohort(3, 0.6))
WRONG = {
    "features-text": ({"features": "features.npy"}, "features is text; give the embeddings themselves"),
    "features-rows": ({"features": np.zeros((5, 3))}, "features has 5 rows and labels has"),
    "features-nan": ({"features": nan_at(0)}, "features: 1 row has a missing or infinite value"),
    "labels-three": ({"labels": np.arange(N) % 3}, "labels"),
    "groups-two-columns": (
        {"groups": {"race": cohort(3, 0.6).groups, "sex": cohort(3, 0.6).groups}},
        "groups has 2 columns; step two takes one attribute, so give one column.",
    ),
    "groups-one": ({"groups": np.full(N, "A")}, "column 'group' has one subgroup, 'A'"),
    "split-word": ({"split": split_with("holdout")}, "split: no row says 'validation'"),
    "patients-both": ({"patients": np.zeros(N)}, ""),
    "exclude-text": ({"exclude": "B"}, "exclude is the text 'B'; give a list of groups, such as ['B']."),
    "exclude-unknown": ({"exclude": ["D"]}, "exclude names 'D'; the groups of 'race' are 'A', 'B', 'C'."),
    "exclude-most": ({"exclude": ["A", "B"]}, "exclude names 2 of the 3 groups of 'race'; a difference"),
    "exclude-number": ({"exclude": 3}, "exclude is a int; give a list of groups."),
    "majority-unknown": ({"majority": "D"}, "majority is 'D'; the groups of 'race' are 'A', 'B', 'C'."),
    "majority-excluded": (
        {"majority": "B", "exclude": ["B"]},
        "majority is 'B', which exclude names too; give one of the groups that stay.",
    ),
    "measure": ({"measure": "auc"}, "measure 'auc' is called 'auroc' here"),
    "method": ({"methods": ("magic",)}, "method is 'magic'; allowed are resample"),
    "method-twice": ({"methods": ("leace", "leace")}, "method 'leace' is named 2 times; name it once."),
    "geometry": ({"geometry": "yes"}, "geometry is 'yes'; give True or False."),
    "directions": ({"directions": 0}, "directions is 0"),
    "resamples": ({"resamples": 20}, "resamples is 20"),
    "seed": ({"seed": -1}, "seed is -1"),
    "min-size": ({"min_size": 0}, "min_size is 0; it must be a whole number, 1 or more."),
    "cap": ({"cap": 0}, "cap is 0"),
    "alpha": ({"alpha": 2}, "alpha is 2"),
    "reference": ({"reference": "magic"}, "method"),
    "grid-without-zero": (
        {"decodability_strengths": (0.5, 1.0)},
        "decodability_strengths is (0.5, 1.0); give at least two rising numbers up to 1,000,000 that",
    ),
    "grid-falling": ({"entanglement_strengths": (0, 4, 1)}, "entanglement_strengths is (0, 4, 1); give"),
    "grid-broken": (
        {"entanglement_strengths": (0, 1.5)},
        "entanglement_strengths is (0, 1.5); give at least",
    ),
    "grid-large": (
        {"whitened_strengths": (0, 2.0)},
        "whitened_strengths is (0, 2.0); give at least two rising numbers up to 1 that begin with 0.",
    ),
    "grid-text": ({"whitened_strengths": "0, 1"}, "whitened_strengths is '0, 1'; give"),
    "scores-rows": ({"scores": np.zeros(4)}, "scores"),
    "scores-nan": ({"scores": np.full(N, np.nan)}, "scores"),
    "scores-scale": (
        {"scores": np.linspace(-3, 3, N), "measure": "ece"},
        "test scores lie outside 0 to 1, and ece reads probabilities; say scale='logit' if they are logits.",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_one_sentence(case):
    changed, said = WRONG[case]
    with pytest.raises(InputError) as caught:
        mechanism(**given(**changed))
    sentence = str(caught.value)
    assert said in sentence
    assert sentence.endswith((".", "]."))
    assert "\n" not in sentence


def test_no_id_and_no_value_in_an_error():
    drawn = cohort(3, 0.6)
    ids = np.asarray([f"CANARY-{number}" for number in drawn.patients], dtype=object)
    ids[np.flatnonzero(drawn.split == "test")[0]] = ids[np.flatnonzero(drawn.split == "train")[0]]
    with pytest.raises(InputError) as caught:
        mechanism(**given(patients=ids))
    assert "CANARY" not in str(caught.value)
    scores = np.full(N, 0.123456)
    scores[np.flatnonzero(drawn.split == "test")[:2]] = np.nan
    with pytest.raises(InputError) as caught:
        mechanism(**given(scores=scores))
    assert re.search(r"^scores: 2 of [\d,]+ test images have a missing or infinite score", str(caught.value))
    assert "123456" not in str(caught.value)


def test_a_class_that_an_exclusion_takes_away():
    drawn = cohort(3, 0.6)
    labels = drawn.labels & (drawn.groups == "C")
    with pytest.raises(
        InputError, match=r"no positive among its .* images once the excluded groups are gone"
    ):
        mechanism(**given(labels=labels, exclude=["C"]))


def test_training_images_of_one_group():
    drawn = cohort(3, 0.6)
    groups = pd.Series(drawn.groups).mask((drawn.split == "train") & (drawn.groups != "A"))
    with pytest.raises(InputError, match="an operator needs a majority and another group there"):
        mechanism(**given(groups=groups))
    with pytest.raises(InputError, match="majority is 'B', which has no training image"):
        mechanism(
            **given(
                groups=pd.Series(drawn.groups).mask((drawn.split == "train") & (drawn.groups == "B")),
                majority="B",
            )
        )


# -- rows ---------------------------------------------------------------------------------------------


def rows(**changed):
    arguments = {k: v for k, v in given(**changed).items() if k not in QUICK}
    return mechanism_rows(**arguments)


def test_signs():
    drawn = cohort(3, 0.6)
    groups = pd.Series(drawn.groups, name="race")
    groups[:7] = None
    found = rows(groups=groups, exclude=["B"])
    expected = np.where(drawn.groups == "A", 1, np.where(drawn.groups == "C", -1, 0))
    expected[:7] = 0
    np.testing.assert_array_equal(found.signs, expected)
    assert found.signs.dtype == np.int8
    assert found.excluded == {"B": int((drawn.groups[7:] == "B").sum())}


def test_the_cap_is_applied_after_the_exclusion():
    found = rows(exclude=["A"], cap=200)
    assert len(found.splits["train"]) == 200
    assert found.n_train == int(((cohort(3, 0.6).split == "train") & (cohort(3, 0.6).groups != "A")).sum())
    assert found.majority == "B"
    assert any(note.startswith("200 of ") for note in found.notes)
    again = rows(exclude=["A"], cap=200)
    np.testing.assert_array_equal(found.splits["train"].numbers, again.splits["train"].numbers)


def test_without_patients_it_says_so():
    found = rows(patients=None)
    assert any("each image counts as its own patient" in note for note in found.notes)

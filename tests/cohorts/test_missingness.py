"""The share of images without an attribute, by label."""

import numpy as np
import pandas as pd
import pytest

from frame.cohorts.missingness import LABELS, missing_by_label
from frame.errors import InputError


def images():
    """Of 10 images, 6 without sex: all 3 positives, 1 of 4 negatives, the others by one label each."""
    return pd.DataFrame(
        {
            "sex": [np.nan, np.nan, np.nan, np.nan, "male", "female", "male", np.nan, np.nan, "female"],
            "view": ["AP", "unknown", "PA", "PA", "unknown", "AP", "AP", "AP", "AP", "AP"],
            "edema": pd.array([1, 1, 1, 0, 0, 0, 0, -1, -2, None], dtype="Int8"),
        }
    )


def test_shares_by_hand():
    table = missing_by_label(images(), ["sex", "view"], ["edema"])
    assert table["label"].tolist() == [*LABELS, "all"] * 2
    sex = table[table["attribute"] == "sex"]
    assert sex["n_images"].tolist() == [3, 4, 1, 1, 1, 10]
    assert sex["n_missing"].tolist() == [3, 1, 1, 1, 0, 6]
    assert sex["share_missing"].tolist() == [1, 0.25, 1, 1, 0, 0.6]
    assert table.loc[table["attribute"] == "view", "n_missing"].tolist() == [1, 1, 0, 0, 0, 2]


def test_a_label_without_images_has_no_share():
    table = missing_by_label(images().iloc[:7], ["sex"], ["edema"]).set_index("label")
    assert table.loc["blank", ["n_images", "n_missing"]].tolist() == [0, 0]
    assert np.isnan(table.loc["blank", "share_missing"])


def test_the_labels_are_all_images():
    table = missing_by_label(images(), ["sex"], ["edema"])
    whole = table["label"] == "all"
    assert table.loc[~whole, ["n_images", "n_missing"]].sum().tolist() == [10, 6]


def test_categories_count_as_text_does():
    table = images()
    typed = table.assign(view=pd.Categorical(table["view"]), sex=pd.Categorical(table["sex"]))
    expected = missing_by_label(table, ["sex", "view"], ["edema"])
    assert missing_by_label(typed, ["sex", "view"], ["edema"]).equals(expected)


def test_an_absent_column_is_named():
    with pytest.raises(InputError, match="no column race, fracture"):
        missing_by_label(images(), ["sex", "race"], ["fracture"])


def test_which_code_is_which_label():
    """-1 is uncertain and -2 blank, as in a manifest; each stands here another number of times."""
    codes = [1] + [0] * 2 + [-1] * 3 + [-2] * 4 + [None] * 5
    table = pd.DataFrame({"sex": [None] * 15, "edema": pd.array(codes, dtype="Int8")})
    counts = missing_by_label(table, ["sex"], ["edema"]).set_index("label")["n_missing"].to_dict()
    expected = {"positive": 1, "negative": 2, "uncertain": 3, "blank": 4, "not labelled": 5, "all": 15}
    assert counts == expected

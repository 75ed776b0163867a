"""Mistakes of a call from Python end in one sentence and not in a traceback."""

import re

import numpy as np
import pandas as pd
import pytest

from frame.errors import InputError
from frame.heads.logistic import fit_logistic
from frame.interventions.operator_inputs import checked_strength
from frame.interventions.procedure import mechanism
from frame.mitigation.comparison import compare_methods
from frame.mitigation.feature_matrix import check_matrix
from frame.mitigation.feature_rows import feature_rows
from frame.mitigation.least_squares import erase

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.arange(60) % 2
MASKED = np.ma.masked_array(X, mask=X > 2)


def told(sentence, call, *given, **named):
    with pytest.raises(InputError, match="^" + re.escape(sentence)) as caught:
        call(*given, **named)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize("call", [erase, fit_logistic], ids=["erase", "fit_logistic"])
@pytest.mark.parametrize(
    ("features", "sentence"),
    [
        (np.empty((60, 0)), "The features have no column; give at least one."),
        (MASKED, "The features are a masked array; leave the masked rows out"),
        (
            X.astype(">f4"),
            "The features are >f4 of shape (60, 3); give float16, float32 or float64 in the machine's byte",
        ),
    ],
    ids=["no-column", "masked", "big-endian"],
)
def test_features_that_cannot_be_read(call, features, sentence):
    told(sentence, call, features, Y)


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ({"C": "1"}, "C is '1'; give a number above 0."),
        ({"C": None}, "C is None; give a number above 0."),
        ({"C": True}, "C is True; give a number above 0."),
        ({"C": np.nan}, "C is nan; give a number above 0."),
        ({"C": 1e-320}, "C is "),
        ({"C": 1e300}, "C is 1e+300 and the weights add up to 60; give such that their product"),
        ({"iterations": 2.5}, "iterations is 2.5; give a whole number of at least 1."),
        ({"iterations": "9"}, "iterations is '9'; give a whole number of at least 1."),
        ({"weights": ["a"] * 60}, "The weights are not all numbers; give one number from 0 per row."),
        ({"weights": np.full(60, 1e308)}, "The largest of the weights is 1e+308, so their sums"),
        ({"weights": np.full(60, 1e-320)}, "C is 1.0 and the weights add up to"),
        ({"weights": np.ma.masked_array(np.ones(60), mask=Y)}, "The weights are a masked array;"),
    ],
    ids=[
        *("c-text", "c-none", "c-flag", "c-nan", "c-tiny", "c-huge", "iterations-part", "iterations-text"),
        *("weights-text", "weights-huge", "weights-tiny", "weights-masked"),
    ],
)
def test_settings_of_a_logistic_fit(named, sentence):
    told(sentence, fit_logistic, X, Y, **named)


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ({"methods": None}, "methods is None; give a name, or a list of names."),
        ({"methods": [["a"]]}, "methods is [['a']]; give a name, or a list of names."),
        ({"methods": 3}, "methods is 3; give a name, or a list of names."),
        ({"measures": None}, "measures is None; give a name, or a list of names."),
        ({"measures": [["auroc"]]}, "measures is [['auroc']]; give a name, or a list of names."),
        ({"progress": 3}, "progress is 3; give a function of two numbers, or None."),
    ],
    ids=["methods-none", "methods-nested", "methods-number", "measures-none", "measures-nested", "progress"],
)
def test_settings_of_a_comparison(named, sentence):
    told(sentence, compare_methods, X, Y, np.where(X[:, 0] > 0, "a", "b"), **named)


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ({"decodability_strengths": (0, 1e7)}, "decodability_strengths is (0, 10000000.0); give at least"),
        ({"decodability_strengths": (0, np.inf)}, "decodability_strengths is (0, inf); give at least two"),
        ({"decodability_strengths": (0, 10**400)}, "decodability_strengths is (0, 1000"),
        ({"scale": "percent"}, "scale is 'percent'; allowed are 'probability', 'logit'."),
        ({"methods": None}, "methods is None; give a name, a list of names, or () for none."),
        ({"methods": [["a"]]}, "methods is [['a']]; give a name, a list of names, or () for none."),
        ({"progress": "yes"}, "progress is 'yes'; give a function of two numbers, or None."),
    ],
    ids=["strength", "infinite", "long", "scale", "methods-none", "methods-nested", "progress"],
)
def test_settings_of_step_two(named, sentence):
    groups = pd.Series(np.where(X[:, 0] > 0, "a", "b"), name="group")
    told(sentence, mechanism, X, Y, groups, None, **named)


def test_masked_embeddings():
    told("features is a masked array, whose masked values would be read as numbers;", check_matrix, MASKED)


def test_one_is_not_said_as_many():
    told("The decodability operator was asked to remove 1 direction, and there are 0.", _remove, 1, 0)
    told("The decodability operator was asked to remove 2 directions, and there is 1.", _remove, 2, 1)
    labels, split = Y.astype(float), np.repeat(["train", "validation", "test"], 20)
    labels[0], split[1] = np.nan, "held"
    notes = feature_rows(X, labels, np.where(X[:, 0] > 0, "a", "b"), split).notes
    assert "1 image has no label for the finding and is left out." in notes
    assert any(note.startswith("1 image of another split is left out (") for note in notes)


def _remove(asked, there):
    checked_strength(asked, "decodability", there)

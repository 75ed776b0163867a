"""The list of methods, what a user reads of it, and what becomes of a method that fails."""

import importlib
import importlib.metadata
import subprocess
import sys

import numpy as np
import pytest
from training_units import disease, three

from frame.errors import InputError
from frame.mitigation import sampling
from frame.mitigation.contract import NOT_FITTED
from frame.mitigation.registry import FAMILIES, METHODS, NINE, fit_method

EVERY = pytest.mark.parametrize("name", METHODS)
#: Words of the field that a reader of the list need not know.
JARGON = ("logit", "nullspace", "covariance", "gradient", "adversar", "epoch", "minimax", "quantile", "odds")


@pytest.fixture(scope="module")
def unit():
    return three(200, (0.5, 0.5), (0.3, 0.4), disease)


def test_the_nine_are_those_of_the_paper_in_its_order():
    assert NINE == (
        "resample",
        "reweigh",
        "group_dro",
        "adversarial",
        "exponentiated_gradient",
        "threshold_shift",
        "platt",
        "leace",
        "inlp",
    )
    assert tuple(METHODS)[:9] == NINE
    assert {name for name, method in METHODS.items() if method.ours} == {
        "platt_monotone",
        "group_dro_converged",
        "adversarial_converged",
    }
    assert set(METHODS) - set(NINE) == {
        "platt_monotone",
        "optimal_transport",
        "group_dro_converged",
        "adversarial_converged",
    }


def test_every_family_has_a_method():
    assert {method.family for method in METHODS.values()} == set(FAMILIES)


@EVERY
def test_a_method_is_where_the_list_says(name):
    method = METHODS[name]
    assert method.name == name
    assert callable(getattr(importlib.import_module(method.module), method.function))


@EVERY
def test_a_method_is_told_in_one_plain_sentence(name):
    sentence = METHODS[name].sentence
    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert "." not in sentence[:-1]
    assert len(sentence.split()) <= 50
    assert "; it needs " in sentence
    assert not [word for word in JARGON if word in sentence.lower()]


@EVERY
def test_the_sentence_names_a_package_that_only_this_method_needs(name):
    for package in set(METHODS[name].packages) & {"fairlearn", "concept-erasure"}:
        assert package in METHODS[name].sentence


def test_the_list_loads_no_heavy_package():
    code = (
        "import sys, frame.mitigation.registry as r; assert r.METHODS;"
        "print([m for m in ('numpy', 'scipy', 'pandas', 'sklearn', 'torch', 'fairlearn', 'numba')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_list_cannot_be_changed():
    with pytest.raises(TypeError):
        METHODS["resample"] = METHODS["reweigh"]


def test_an_unknown_method_is_the_callers_mistake(unit):
    with pytest.raises(
        InputError, match="There is no mitigation method 'resampled'; the methods are resample"
    ):
        fit_method("resampled", unit)


def test_a_missing_package_is_an_outcome_with_the_command(unit, monkeypatch):
    def absent(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", absent)
    outcome = fit_method("exponentiated_gradient", unit)
    assert outcome.status == NOT_FITTED
    assert outcome.reason == (
        "Exponentiated gradient needs fairlearn; install it with: pip install 'frame-audit[mitigation]'"
    )
    assert outcome.test is None
    assert fit_method("reweigh", unit).status == "ok"


def test_a_package_that_does_not_load_is_an_outcome(unit, monkeypatch):
    monkeypatch.setitem(sys.modules, "fairlearn.reductions", None)
    outcome = fit_method("exponentiated_gradient", unit)
    assert outcome.status == NOT_FITTED
    assert outcome.reason.startswith("Exponentiated gradient needs fairlearn; install it with: pip")


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("No module named 'frame.heads.gone'", name="frame.heads.gone"),
        ImportError("cannot import name 'gone'", name="frame.mitigation.sampling"),
        ModuleNotFoundError("No module named 'a_typing_error'", name="a_typing_error"),
        ImportError("no name"),
    ],
    ids=["module", "name", "unknown", "unnamed"],
)
def test_a_module_of_frame_itself_is_no_missing_package(unit, monkeypatch, error):
    def fails(_):
        raise error

    monkeypatch.setattr(sampling, "reweighed", fails)
    with pytest.raises(ImportError) as caught:
        fit_method("reweigh", unit)
    assert caught.value is error
    monkeypatch.setattr(importlib, "import_module", fails)
    with pytest.raises(ImportError):
        fit_method("reweigh", unit)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (np.linalg.LinAlgError("Singular matrix"), "the fit failed: Singular matrix"),
        (FloatingPointError("overflow encountered in exp"), "the fit failed: overflow encountered in exp"),
        (ValueError("Input X contains NaN.\nSecond line."), "the fit failed: Input X contains NaN"),
        (ValueError(), "the fit failed: ValueError"),
        (ZeroDivisionError("division by zero"), "the fit failed: division by zero"),
    ],
    ids=["singular", "overflow", "two-lines", "no-text", "division"],
)
def test_numbers_that_fail_are_an_outcome(unit, monkeypatch, error, reason):
    def fails(_):
        raise error

    monkeypatch.setattr(sampling, "reweighed", fails)
    outcome = fit_method("reweigh", unit)
    assert (outcome.status, outcome.reason, outcome.test) == (NOT_FITTED, reason, None)
    assert outcome.facts == {"error": type(error).__name__}


@pytest.mark.parametrize("error", [InputError("The unit is wrong."), KeyError("a")], ids=["input", "defect"])
def test_a_mistake_or_a_defect_is_not_hidden(unit, monkeypatch, error):
    def fails(_):
        raise error

    monkeypatch.setattr(sampling, "reweighed", fails)
    with pytest.raises(type(error)):
        fit_method("reweigh", unit)

"""Bad arguments: one clear sentence that names the argument, what was found and what is allowed."""

import math

import numpy as np
import pytest

import frame

GOOD = {"value": 0.8, "n_positive": [30, 12], "n_negative": [70, 45], "measure": "auroc"}
NAN = float("nan")


def names(argument, found, *allowed):
    """Every part that the message must contain, whatever its case."""
    return (argument, found, *allowed)


# (changes to GOOD, parts of the message). "a|b" is satisfied by either.
SHARED = {
    "unknown measure": ({"measure": "auprc"}, names("measure", "auprc", "auroc", "tpr", "fpr")),
    "measure in capitals": ({"measure": "AUROC"}, names("measure", "AUROC", "auroc")),
    "measure not a text": ({"measure": None}, names("measure", "None", "auroc")),
    "unknown method": ({"method": "delong"}, names("method", "delong", "hanley-mcneil", "binormal")),
    "binomial for auroc": ({"method": "binomial"}, names("method", "binomial", "auroc", "hanley-mcneil")),
    "hanley-mcneil for tpr": (
        {"method": "hanley-mcneil", "measure": "tpr"},
        names("method", "hanley-mcneil", "tpr", "binomial"),
    ),
    "binormal for fpr": (
        {"method": "binormal", "measure": "fpr"},
        names("method", "binormal", "fpr", "binomial"),
    ),
    "value in percent": ({"value": 87}, names("value", "87", "percent")),
    "value in percent, decimals": ({"value": 87.5}, names("value", "87.5", "percent")),
    "value a little above 1": ({"value": 1.0001}, names("value", "1.0001", "0", "1")),
    "value negative": ({"value": -0.1}, names("value", "-0.1", "0", "1")),
    "value NaN": ({"value": NAN}, names("value", "nan", "0", "1")),
    "value infinite": ({"value": math.inf}, names("value", "inf")),
    "value a text": ({"value": "0.8x"}, names("value", "0.8x")),
    "value None": ({"value": None}, names("value", "None")),
    "value a list": ({"value": [0.8, 0.7]}, names("value", "0.8")),
    "negative count": ({"n_positive": [30, -12]}, names("n_positive", "-12")),
    "negative count, negatives": ({"n_negative": [-70, 45]}, names("n_negative", "-70")),
    "fractional count": ({"n_positive": [30.5, 12]}, names("n_positive", "30.5", "whole|integer")),
    "fractional count, array": (
        {"n_negative": np.array([70, 44.25])},
        names("n_negative", "44.25", "whole|integer"),
    ),
    "zero count": ({"n_positive": [30, 0]}, names("n_positive", "0", "1|positive")),
    "zero count, negatives": ({"n_negative": [0, 45]}, names("n_negative", "0")),
    "NaN count": ({"n_positive": [30, NAN]}, names("n_positive", "nan")),
    "infinite count": ({"n_positive": [30, math.inf]}, names("n_positive", "inf")),
    "text count": ({"n_positive": [30, "twelve"]}, names("n_positive", "twelve")),
    "missing count": ({"n_positive": [30, None]}, names("n_positive", "None|nan|missing")),
    "one subgroup": (
        {"n_positive": [30], "n_negative": [70]},
        names("n_positive|subgroup", "1|one", "2|two"),
    ),
    "one subgroup, tpr": (
        {"n_positive": [30], "n_negative": None, "measure": "tpr"},
        names("n_positive|subgroup", "1|one", "2|two"),
    ),
    "no subgroup": (
        {"n_positive": [], "n_negative": []},
        names("n_positive|subgroup", "0|no|empty", "2|two"),
    ),
    "a single number for counts": ({"n_positive": 30, "n_negative": 70}, names("n_positive", "30")),
    "two-dimensional counts": ({"n_positive": [[30, 12]]}, names("n_positive", "30|dimension|list|sequence")),
    "unequal lengths": ({"n_negative": [70, 45, 9]}, names("n_positive", "n_negative", "2", "3")),
    "auroc without negatives": ({"n_negative": None}, names("n_negative", "missing|None")),
    "auroc without positives": ({"n_positive": None}, names("n_positive", "missing|None")),
    "tpr without positives": ({"n_positive": None, "measure": "tpr"}, names("n_positive", "missing|None")),
    "fpr without negatives": ({"n_negative": None, "measure": "fpr"}, names("n_negative", "missing|None")),
    "kappa zero": ({"kappa": 0, "method": "binormal"}, names("kappa", "0")),
    "kappa negative": ({"kappa": -1.25, "method": "binormal"}, names("kappa", "-1.25")),
    "kappa NaN": ({"kappa": NAN, "method": "binormal"}, names("kappa", "nan")),
    "kappa infinite": ({"kappa": math.inf, "method": "binormal"}, names("kappa", "inf")),
    "kappa not used, still wrong": ({"kappa": -2}, names("kappa", "-2")),
    "design effect below one": ({"design_effect": 0.5}, names("design_effect", "0.5", "1")),
    "design effect zero": ({"design_effect": 0}, names("design_effect", "0", "1")),
    "design effect NaN": ({"design_effect": NAN}, names("design_effect", "nan")),
    "design effect infinite": ({"design_effect": math.inf}, names("design_effect", "inf")),
}
REFERENCE_ONLY = {
    "unknown protocol": ({"protocol": "bootstrap"}, names("protocol", "bootstrap", "exact", "paper")),
    "protocol in capitals": ({"protocol": "Exact"}, names("protocol", "Exact", "exact", "paper")),
    "no draws": ({"draws": 0, "protocol": "paper"}, names("draws", "0", "1")),
    "negative draws": ({"draws": -5, "protocol": "paper"}, names("draws", "-5")),
    "fractional draws": ({"draws": 10.5, "protocol": "paper"}, names("draws", "10.5")),
    "negative seed": ({"seed": -1, "protocol": "paper"}, names("seed", "-1")),
    "fractional seed": ({"seed": 0.5, "protocol": "paper"}, names("seed", "0.5")),
}
PLANNING_ONLY = {
    "power zero": ({"power": 0}, names("power", "0")),
    "power one": ({"power": 1}, names("power", "1")),
    "power in percent": ({"power": 80}, names("power", "80")),
    "power NaN": ({"power": NAN}, names("power", "nan")),
    "alpha zero": ({"alpha": 0}, names("alpha", "0")),
    "alpha one": ({"alpha": 1.0}, names("alpha", "1")),
    "alpha negative": ({"alpha": -0.05}, names("alpha", "-0.05")),
    "alpha NaN": ({"alpha": NAN}, names("alpha", "nan")),
}


def check_message(error, parts):
    message = str(error)
    assert isinstance(error, ValueError)
    for part in parts:
        assert any(option.lower() in message.lower() for option in part.split("|")), (part, message)
    assert message == message.strip()
    assert "\n" not in message
    assert "Traceback" not in message
    assert 15 <= len(message) <= 400


def call(function, changes):
    arguments = GOOD | changes
    positional = [arguments.pop(name) for name in ("value", "n_positive", "n_negative", "measure")]
    return function(*positional, **arguments)


@pytest.mark.parametrize(
    ("changes", "parts"), list((SHARED | REFERENCE_ONLY).values()), ids=list(SHARED | REFERENCE_ONLY)
)
def test_fair_reference(changes, parts):
    with pytest.raises(frame.InputError) as caught:
        call(frame.fair_reference, changes)
    check_message(caught.value, parts)


@pytest.mark.parametrize(
    ("changes", "parts"), list((SHARED | PLANNING_ONLY).values()), ids=list(SHARED | PLANNING_ONLY)
)
def test_detectable_difference(changes, parts):
    with pytest.raises(frame.InputError) as caught:
        call(frame.detectable_difference, changes)
    check_message(caught.value, parts)


@pytest.mark.parametrize("protocol", ["exact", "paper"])
@pytest.mark.parametrize("measure", ["tpr", "auroc"])
@pytest.mark.parametrize(
    ("method", "arguments", "parts"),
    [
        ("exceedance", (NAN,), ("delta", "nan")),
        ("exceedance", (None,), ("delta", "None")),
        ("exceedance", ("big",), ("delta", "big")),
        ("exceedance", (0.1, NAN), ("tolerance", "nan")),
        ("exceedance", (0.1, -0.01), ("tolerance", "-0.01")),
        ("quantile", (NAN,), ("q", "nan")),
        ("quantile", (-0.1,), ("q", "-0.1", "0", "1")),
        ("quantile", (1.1,), ("q", "1.1", "0", "1")),
        ("quantile", (97.5,), ("q", "97.5")),
    ],
)
def test_questions_to_a_reference(protocol, measure, method, arguments, parts):
    fair = call(frame.fair_reference, {"protocol": protocol, "draws": 20, "measure": measure})
    with pytest.raises(frame.InputError) as caught:
        getattr(fair, method)(*arguments)
    check_message(caught.value, parts)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"value": 0},
        {"value": 1},
        {"value": np.float64(0.5)},
        {"n_positive": [30.0, 12.0]},
        {"n_positive": np.array([30, 12], dtype=np.int32)},
        {"n_positive": (30, 12)},
        {"measure": "tpr", "n_negative": None},
        {"measure": "fpr", "n_positive": None},
        {"design_effect": 1},
        {"protocol": "paper", "draws": 1},
    ],
)
def test_arguments_that_are_fine(changes):
    """The neighbours of the bad ones are accepted: the tables above cannot pass by refusing everything."""
    fair = call(frame.fair_reference, changes)
    assert 0 <= fair.mean <= 1
    assert 0 < fair.exceedance(0) <= 1


def test_input_error_is_a_value_error():
    assert issubclass(frame.InputError, ValueError)
    assert frame.InputError is not ValueError

"""What an audit of scores can be asked for: measures, methods and their requirements."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral

from frame.errors import InputError
from frame.reference.inputs import PROTOCOLS, check_choice, check_number

__all__ = [
    "CALIBRATED",
    "COUNT_METHODS",
    "METHODS",
    "PERMUTATIONS",
    "RATES",
    "Settings",
    "check_settings",
    "needs",
]

#: Measures that are a share of images with a property, computed from decisions.
RATES = ("tpr", "fpr", "fnr", "specificity", "accuracy")
_OTHERS = ("ece", "brier", "ppv", "npv", "auprc")
#: The calibrated methods; balanced, a large subgroup counts as 31 patients when components are pooled.
CALIBRATED = ("calibrated", "calibrated-balanced")
#: Measure -> methods it has; the first is what ``auto`` means.
METHODS: Mapping[str, tuple[str, ...]] = (
    {"auroc": (*CALIBRATED, "delong", "obuchowski", "hanley-mcneil", "binormal", "pooled")}
    | dict.fromkeys(RATES, ("calibrated", "binomial", "pooled"))
    | dict.fromkeys(_OTHERS, ("pooled",))
)
#: Methods that read nothing but counts and the overall value; only these have the paper's protocol.
COUNT_METHODS = ("hanley-mcneil", "binormal", "binomial")
#: Permutations behind the method ``pooled``.
PERMUTATIONS = 2000
#: Methods without a law whose subgroup values can be moved, so without a margin.
_NO_MARGIN = ("pooled",)
_MISSING = ("error", "group", "drop")
_SCALES = ("probability", "logit")
_MOST_RESAMPLES = 100_000

_NEEDS = {
    "calibrated": "scores; patient ids where patients have several images",
    "calibrated-balanced": "scores; patient ids where patients have several images",
    "delong": "scores; for comparison only",
    "obuchowski": "scores and patient ids; for comparison only",
    "hanley-mcneil": "counts and the overall AUROC",
    "binormal": "counts and the overall AUROC",
    "binomial": "counts and the overall rate",
    "pooled": "scores; patient ids where patients have several images; no patient in two subgroups",
}


@dataclass(frozen=True)
class Settings:
    """Checked settings of one audit.

    Attributes
    ----------
    measure, method, protocol : str
        The method is resolved, never ``auto``.
    min_size : int
        Fewest images of an evaluable subgroup.
    missing : str
        What a missing value means: ``error``, ``group`` or ``drop``.
    scale : str
        ``probability`` or ``logit``.
    alpha : float
        Level, strictly between 0 and 1.
    margin : float
        Tolerated true difference, in [0, 1).
    resamples : int
        Bootstrap resamples of patients; 0 switches the bootstrap off.
    seed : int
        Of every random number.
    intersections : bool
        Whether several attributes are audited in combination.
    images_repeat : bool
        Whether patients have several images though no patient id was given.
    """

    measure: str
    method: str
    protocol: str
    min_size: int
    missing: str
    scale: str
    alpha: float
    margin: float
    resamples: int
    seed: int
    intersections: bool
    images_repeat: bool = False


def needs(method: str) -> str:
    """What a method needs, in words."""
    return _NEEDS[method]


def check_settings(
    *,
    measure: str,
    method: str = "auto",
    protocol: str = "exact",
    min_size: int = 20,
    missing: str = "error",
    scale: str = "probability",
    alpha: float = 0.05,
    margin: float = 0.0,
    resamples: int = 1000,
    seed: int = 0,
    intersections: bool = False,
    images_repeat: bool = False,
) -> Settings:
    """Check the settings of an audit and resolve its method.

    Parameters
    ----------
    measure, method, protocol, min_size, missing, scale, alpha, margin, resamples, seed, intersections,
    images_repeat
        As in :func:`frame.audit`.

    Returns
    -------
    Settings

    Raises
    ------
    InputError
        One sentence naming the argument, what was found and what is allowed.
    """
    check_choice("measure", measure, tuple(METHODS))
    check_choice("protocol", protocol, PROTOCOLS)
    chosen = _method(measure, method, protocol)
    tolerated = check_number("margin", margin, 0.0, 1.0, below=True)
    if tolerated > 0.0 and protocol == "paper":
        raise InputError("margin needs protocol 'exact'; the paper's protocol has none.")
    if tolerated > 0.0 and chosen in _NO_MARGIN:
        others = [m for m in METHODS[measure] if m not in _NO_MARGIN]
        has = f"use {_listed(others)}" if others else f"{measure} has no method with one"
        raise InputError(f"margin is {tolerated:g}, and method 'pooled' has no margin; {has}.")
    for name, given in (("intersections", intersections), ("images_repeat", images_repeat)):
        if not isinstance(given, bool):
            raise InputError(f"{name} is {given!r}; allowed are True and False.")
    return Settings(
        measure=measure,
        method=chosen,
        protocol=protocol,
        min_size=_whole("min_size", min_size, 1, 10**9),
        missing=check_choice("missing", missing, _MISSING),
        scale=check_choice("scale", scale, _SCALES),
        alpha=check_number("alpha", alpha, 0.0, 1.0, above=True, below=True),
        margin=tolerated,
        resamples=_resamples(resamples),
        seed=_whole("seed", seed, 0, 2**32 - 1),
        intersections=intersections,
        images_repeat=images_repeat,
    )


def _method(measure: str, method: str, protocol: str) -> str:
    """Resolve ``auto`` and refuse what the measure or the protocol does not have."""
    allowed = METHODS[measure]
    every = dict.fromkeys(m for methods in METHODS.values() for m in methods)
    check_choice("method", method, ("auto", *every))
    if method != "auto" and method not in allowed:
        raise InputError(
            f"method '{method}' needs {_NEEDS[method]}, which does not give a law for measure '{measure}'; "
            f"its methods are 'auto', {_listed(allowed)}."
        )
    counted = [m for m in allowed if m in COUNT_METHODS]
    if protocol == "exact":
        return allowed[0] if method == "auto" else method
    if not counted:
        raise InputError(
            f"protocol 'paper' exists for methods on counts only, and measure '{measure}' has none; "
            "use protocol 'exact'."
        )
    if method != "auto" and method not in counted:
        raise InputError(
            f"protocol 'paper' exists for methods on counts only, not for '{method}'; "
            f"use {_listed(counted)} or protocol 'exact'."
        )
    return counted[0] if method == "auto" else method


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)


def _whole(name: str, given: object, smallest: int, largest: int) -> int:
    if isinstance(given, bool) or not isinstance(given, Integral) or not smallest <= int(given) <= largest:
        limit = f"{smallest:,} or more" if largest >= 10**9 else f"from {smallest} to {largest:,}"
        raise InputError(f"{name} is {given!r}; it must be a whole number, {limit}.")
    return int(given)


def _resamples(given: object) -> int:
    number = _whole("resamples", given, 0, _MOST_RESAMPLES)
    if 0 < number < 100:
        raise InputError(
            f"resamples is {number}; an interval needs 100 or more, and 0 switches the bootstrap off."
        )
    return number


def share_of(reference: float, difference: float) -> float:
    """Reference in percent of a difference; undefined where the difference is 0."""
    return 100.0 * reference / difference if difference > 1e-9 else math.nan


def check_suppression(suppress_below: object) -> int:
    """Return the smallest count that may be shown; 0 where nothing is suppressed."""
    return _whole("suppress_below", suppress_below, 0, 10**9)

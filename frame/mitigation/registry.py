"""The one list of mitigation methods, and the call that fits any of them.

Reading the list loads neither numpy nor any package a method needs: a method's module is imported when it is
fitted. The nine methods of the paper are in ``NINE``, in its order; the others are ours.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, cast

from frame.errors import InputError

if TYPE_CHECKING:
    from frame.mitigation.contract import Outcome, Unit

__all__ = ["FAMILIES", "INSTALL", "METHODS", "NINE", "Family", "Method", "fit_method"]

Family = Literal["data", "objective", "score", "erasure", "feature"]
#: What each family of methods changes.
FAMILIES: Final[Mapping[Family, str]] = MappingProxyType(
    {
        "data": "the weight or number of training images",
        "objective": "what training minimises",
        "score": "the finished score, group by group",
        "erasure": "the features, by taking the group out of them",
        "feature": "the features, by moving the groups onto each other",
    }
)
#: How a user gets the packages of all methods.
INSTALL: Final = "pip install 'frame-audit[mitigation]'"


@dataclass(frozen=True)
class Method:
    """A mitigation method.

    Attributes
    ----------
    name : str
        As in ``frame mitigate --method`` and in the column ``method`` of results.
    label : str
        For figures and tables.
    family : {"data", "objective", "score", "erasure", "feature"}
        What it changes; see ``FAMILIES``.
    sentence : str
        What it does and what it needs, in one plain sentence.
    ours : bool
        Whether the paper does not have it.
    packages : tuple of str
        What it needs beyond numpy, scipy and numba, by the names pip knows.
    module, function : str
        Where it is; the function takes a Unit and returns an Outcome.
    needs_groups : bool
        Whether it is fitted only on training images whose group is known.
    """

    name: str
    label: str
    family: Family
    sentence: str
    ours: bool
    packages: tuple[str, ...]
    module: str
    function: str
    needs_groups: bool = True


_ALL: Final = (
    Method(
        "resample",
        "Group resampling",
        "data",
        "Draws the same number of training images from every group, with repetition, and trains the disease "
        "head again; it needs the group of the training images.",
        False,
        (),
        "frame.mitigation.sampling",
        "resampled",
    ),
    Method(
        "reweigh",
        "Reweighing",
        "data",
        "Weights the training images so that the finding is equally common in every group, and trains the "
        "disease head again; it needs the group of the training images.",
        False,
        (),
        "frame.mitigation.sampling",
        "reweighed",
    ),
    Method(
        "group_dro",
        "Group DRO",
        "objective",
        "Trains a linear head in 80 steps that put more and more weight on the group with the largest "
        "training error; it needs the group of the training images.",
        False,
        (),
        "frame.mitigation.objectives",
        "worst_group_training",
    ),
    Method(
        "adversarial",
        "Adversarial",
        "objective",
        "Trains a linear head in 80 steps against a small network that tries to guess the group from the "
        "score; it needs the group of the training images.",
        False,
        (),
        "frame.mitigation.objectives",
        "adversarial_training",
    ),
    Method(
        "exponentiated_gradient",
        "Exponentiated gradient",
        "objective",
        "Averages several disease heads, weighted so that on the training images the rates of hits and of "
        "false alarms of each group, both called at one half, come close to the overall rates; it needs the "
        "group of the training images and the package fairlearn.",
        False,
        ("fairlearn", "scikit-learn"),
        "frame.mitigation.constraints",
        "equalised_odds",
    ),
    Method(
        "threshold_shift",
        "Threshold shift",
        "score",
        "Shifts the score of each group by a constant so that one threshold finds 80 % of the validation "
        "positives in every group; it needs validation positives in each group and the group of every image "
        "scored.",
        False,
        (),
        "frame.mitigation.operating_points",
        "shifted_thresholds",
    ),
    Method(
        "platt",
        "Platt scaling by group",
        "score",
        "Calibrates the score of each group on its own validation images; it needs at least 10 of them with "
        "both labels in each group and the group of every image scored.",
        False,
        (),
        "frame.mitigation.calibration",
        "platt_by_group",
    ),
    Method(
        "leace",
        "LEACE",
        "erasure",
        "Changes the features as little as possible so that no linear model can tell the groups apart, and "
        "trains the disease head again; it needs the group of the training images and the package "
        "concept-erasure.",
        False,
        ("concept-erasure", "torch"),
        "frame.mitigation.erasure",
        "least_squares_erasure",
    ),
    Method(
        "inlp",
        "INLP",
        "erasure",
        "Removes, ten times in a row, the directions of the features from which a linear model tells the "
        "groups apart, and trains the disease head again; it needs the group of the training images.",
        False,
        (),
        "frame.mitigation.erasure",
        "nullspace_projection",
    ),
    Method(
        "platt_monotone",
        "Platt scaling by group, order kept",
        "score",
        "Calibrates the score of each group on its own validation images and leaves a group as it is where "
        "that would reverse the order of its images; it needs at least 10 validation images with both labels "
        "in each group and the group of every image scored.",
        True,
        (),
        "frame.mitigation.calibration",
        "monotone_platt_by_group",
    ),
    Method(
        "optimal_transport",
        "Optimal transport",
        "feature",
        "Moves the features of every group to the mean and spread of all images and trains the disease head "
        "again; it needs the group of the training images and of every image scored.",
        False,
        (),
        "frame.mitigation.transport",
        "gaussian_transport",
    ),
    Method(
        "group_dro_converged",
        "Group DRO, converged",
        "objective",
        "Finds the linear head whose largest training error over the groups is smallest, to the end and not "
        "in 80 steps; it needs the group of the training images.",
        True,
        (),
        "frame.mitigation.objectives",
        "converged_worst_group_training",
    ),
    Method(
        "adversarial_converged",
        "Adversarial, converged",
        "objective",
        "Trains a linear head against a small network that tries to guess the group from the score until "
        "the head stands still, and not for 80 steps; it needs the group of the training images.",
        True,
        (),
        "frame.mitigation.objectives",
        "converged_adversarial_training",
    ),
)

#: What a method may lack: modules of others, and the packages they come with.
_PACKAGES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "sklearn": "scikit-learn",
        "concept_erasure": "concept-erasure",
        **{name: name for name in ("fairlearn", "torch", "numba", "scipy", "pandas", "joblib", "narwhals")},
    }
)
#: Every method by name: the paper's nine in its order, then the others.
METHODS: Final[Mapping[str, Method]] = MappingProxyType({method.name: method for method in _ALL})
#: The nine methods of the paper's comparison, in its order.
NINE: Final = (
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


def fit_method(name: str, unit: Unit) -> Outcome:
    """Fit one method to one unit.

    Parameters
    ----------
    name : str
        A key of ``METHODS``.
    unit : Unit
        The data, and the head that is not mitigated.

    Returns
    -------
    Outcome
        Where a package is missing, or where numbers fail inside the method, its status is "not fitted" and
        its reason says why.

    Raises
    ------
    InputError
        When there is no method of that name, or when the unit itself is at fault.
    """
    if name not in METHODS:
        raise InputError(f"There is no mitigation method {name!r}; the methods are {', '.join(METHODS)}.")
    from frame.mitigation.contract import not_fitted

    method = METHODS[name]
    missing = _missing_package(method)
    if missing is not None:
        return not_fitted(f"{method.label} needs {missing}; install it with: {INSTALL}")
    try:
        module = importlib.import_module(method.module)
    except InputError as error:  # a room below says which package it lacks
        return not_fitted(_sentence(error))
    except ImportError as error:
        return not_fitted(_lacking(method, error))
    fit = cast("Callable[[Unit], Outcome]", getattr(module, method.function))
    try:
        return fit(unit)
    except InputError:
        raise
    except ImportError as error:
        return not_fitted(_lacking(method, error))
    except (ArithmeticError, ValueError) as error:  # numpy's LinAlgError is a ValueError
        return not_fitted(f"the fit failed: {_sentence(error)}", error=type(error).__name__)


def _lacking(method: Method, error: ImportError) -> str:
    """Which package of others a method lacks; a module of frame, or an unknown one, is a defect: raise it."""
    package = _PACKAGES.get((error.name or "").split(".")[0])
    if package is None:
        raise error
    return f"{method.label} needs {package}; install it with: {INSTALL}"


def _missing_package(method: Method) -> str | None:
    """First package of a method that is not installed."""
    from importlib.metadata import PackageNotFoundError, distribution

    for package in method.packages:
        try:
            distribution(package)
        except PackageNotFoundError:
            return package
    return None


def _sentence(error: Exception) -> str:
    """First line of a library's message, without its full stop."""
    lines = str(error).strip().splitlines()
    return (lines[0].rstrip(". ") if lines else "") or type(error).__name__

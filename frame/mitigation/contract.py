"""What a mitigation method is given and what it returns.

A method is fitted on training rows, may read validation rows, and scores validation and test rows. It never
sees a test label. A method that cannot be fitted says so in its outcome and does not raise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from frame.errors import InputError

if TYPE_CHECKING:
    from frame.heads.disease_heads import Head

__all__ = [
    "DEGENERATE",
    "FITTED",
    "NOT_FITTED",
    "WEIGHTINGS",
    "Outcome",
    "Rows",
    "Scores",
    "Unit",
    "Weighting",
    "class_weight_of",
    "not_fitted",
    "scores_of_logits",
]

Floats = NDArray[np.float64]
#: Which fits carry balanced class weights: as in the paper (the disease head alone), or every fit.
Weighting = Literal["paper", "equal"]
WEIGHTINGS: Final = ("paper", "equal")
#: Statuses of an outcome.
FITTED: Final = "ok"
NOT_FITTED: Final = "not fitted"
DEGENERATE: Final = "degenerate"


@dataclass(frozen=True, eq=False)
class Rows:
    """Images of one split, one row each.

    Attributes
    ----------
    features : ndarray, shape (n, dimensions)
        float16, float32 or float64, finite; may be mapped from a file, and is never changed.
    labels : ndarray of int8, shape (n,)
        1 where the finding is there and 0 where it is not.
    groups : ndarray of int64, shape (n,)
        Place of the image's group in the levels of the attribute; -1 where it is not known.
    """

    features: NDArray[Any]
    labels: NDArray[np.int8]
    groups: NDArray[np.int64]

    def __post_init__(self) -> None:
        n_rows = len(self.labels)
        if self.features.ndim != 2 or len(self.features) != n_rows or len(self.groups) != n_rows:
            raise InputError(
                f"There are {len(self.features):,} feature vectors, {n_rows:,} labels and "
                f"{len(self.groups):,} groups; give one of each per image."
            )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether the group is known, shape (n,)."""
        found: NDArray[np.bool_] = self.groups >= 0
        return found

    def kept(self, rows: NDArray[Any]) -> Rows:
        """Some rows, by flag or number; the rows themselves, without a copy, where all are kept."""
        if rows.dtype == np.bool_ and bool(rows.all()):
            return self
        return Rows(self.features[rows], self.labels[rows], self.groups[rows])


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of the images of one split, read in two ways.

    Attributes
    ----------
    ranks : ndarray of float64, shape (n,)
        What AUROC and thresholds read: any finite number, larger meaning more disease. Never clipped, and
        not squashed where that would make ties.
    probabilities : ndarray of float64, shape (n,)
        What calibration reads, in [0, 1].
    """

    ranks: Floats
    probabilities: Floats


@dataclass(frozen=True, eq=False)
class Unit:
    """One encoder, finding and attribute: the data, and the head that is not mitigated.

    Attributes
    ----------
    train : Rows
        The capped training rows, the same for every method.
    validation, test : Rows
        Never capped.
    levels : tuple of str
        Names of the groups.
    head : Head
        The unmitigated disease head, fitted on all rows of ``train``.
    unmitigated : tuple of Scores
        Its scores of validation and of test.
    weighting : {"paper", "equal"}
        ``paper``: balanced class weights in the linear disease head and its refits alone, none with a hidden
        layer; ``equal``: in every fit.
    seed : int
        Of every random number.
    """

    train: Rows
    validation: Rows
    test: Rows
    levels: tuple[str, ...]
    head: Head
    unmitigated: tuple[Scores, Scores]
    weighting: Weighting = "paper"
    seed: int = 0

    @property
    def class_weight(self) -> Literal["default", "balanced"]:
        """Class weights of the disease head and of its refits, as :func:`fit_head` takes them."""
        return class_weight_of(self.weighting)

    def group_rows(self) -> Rows:
        """Training rows whose group is known: what a method that needs groups is fitted on."""
        return self.train.kept(self.train.known)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a method did.

    Attributes
    ----------
    validation, test : Scores or None
        None where the method could not be fitted.
    status : {"ok", "not fitted", "degenerate"}
        ``degenerate``: there are scores, but no improvement may be claimed from them.
    reason : str
        Why, as a sentence without a full stop; empty with ``ok``.
    flags : tuple of str
        What a reader must know beside the numbers, each a short sentence.
    groups : tuple of mapping
        One for each group the method treated on its own: ``group``, ``n_images``, ``n_positive``, ``action``
        (what was done, such as ``"shifted by 0.031"`` or ``"kept the identity"``), ``reason`` (may be empty).
    facts : mapping
        Numbers about the fit, such as ``iterations``, ``converged``, ``constant_share``.
    """

    validation: Scores | None
    test: Scores | None
    status: Literal["ok", "not fitted", "degenerate"] = "ok"
    reason: str = ""
    flags: tuple[str, ...] = ()
    groups: tuple[Mapping[str, Any], ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


def class_weight_of(weighting: str) -> Literal["default", "balanced"]:
    """Class weights of the disease head and of its refits, as :func:`fit_head` takes them."""
    return "balanced" if weighting == "equal" else "default"


def not_fitted(reason: str, **facts: Any) -> Outcome:
    """An outcome without scores."""
    return Outcome(None, None, status="not fitted", reason=reason, facts=facts)


def scores_of_logits(logits: Floats) -> Scores:
    """Scores whose ranks are logits, shape (n,), and whose probabilities are their sigmoid."""
    from scipy.special import expit

    return Scores(logits, np.asarray(expit(logits), dtype=np.float64))

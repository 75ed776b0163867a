"""What wrong labels do to a subgroup difference: how often they err, and what a fair score then shows.

Write a for the share of label-positive images that truly have the finding, and b for the share of
label-negative images that do. A score whose errors do not depend on those of the labels has, against the
labels, an AUROC of 1/2 + (a - b)(A - 1/2) where A is its true one, and at a fixed threshold a sensitivity of
f + a (t - f) and a false positive rate of f + b (t - f) where t and f are the true ones. So a score that is
exactly fair against the truth shows a difference against the labels wherever a or b differ between subgroups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from frame.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "FairScore",
    "expected_difference",
    "expected_values",
    "label_error_table",
    "simulated_fair_scores",
]


def label_error_table(
    labels: ArrayLike, truth: ArrayLike, groups: ArrayLike, patients: ArrayLike
) -> pd.DataFrame:
    """How often labels agree with the truth in each subgroup.

    Parameters
    ----------
    labels, truth : array_like of bool, shape (images,)
        The labels in question, and the ones taken as true.
    groups : array_like, shape (images,)
        Subgroup of each image; a Categorical keeps the order of its levels.
    patients : array_like, shape (images,)
        Patient of each image.

    Returns
    -------
    pandas.DataFrame
        A row per subgroup that has an image: ``group``; ``n_images``, ``n_patients``; ``n_true``,
        ``n_labelled``, images positive by the truth and by the labels; ``sensitivity`` and
        ``false_positive_rate`` of the labels; ``true_among_positive`` (a) and ``true_among_negative`` (b),
        the share with the finding among label-positive and label-negative images. Shares lie in [0, 1], and
        are NaN where there is no image to count (``n_true``, ``n_labelled`` say so). Images without a
        subgroup are left out.

    Raises
    ------
    frame.InputError
        If the arguments differ in length.
    """
    import pandas as pd

    given: dict[str, Any] = {"labels": labels, "truth": truth, "group": groups, "patient": patients}
    columns = {name: pd.Series(column).reset_index(drop=True) for name, column in given.items()}
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        found_lengths = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        raise InputError(f"Each argument needs one entry per image; found {found_lengths}.")
    rows = pd.DataFrame(columns)
    found = []
    for group, part in rows.groupby("group", observed=True, sort=True):
        labelled = part["labels"].to_numpy(dtype=bool)
        true = part["truth"].to_numpy(dtype=bool)
        found.append(
            {
                "group": str(group),
                "n_images": len(part),
                "n_patients": int(part["patient"].nunique()),
                "n_true": int(true.sum()),
                "n_labelled": int(labelled.sum()),
                "sensitivity": _share(labelled, true),
                "false_positive_rate": _share(labelled, ~true),
                "true_among_positive": _share(true, labelled),
                "true_among_negative": _share(true, ~labelled),
            }
        )
    return pd.DataFrame(found)


def _share(counted: NDArray[np.bool_], among: NDArray[np.bool_]) -> float:
    return float(counted[among].mean()) if among.any() else float("nan")


@dataclass(frozen=True)
class FairScore:
    """A simulated score that serves every subgroup equally well: binormal, equal spread in both classes.

    Attributes
    ----------
    auroc : float
        True AUROC in every subgroup, strictly between 0 and 1.
    sensitivity : float
        True sensitivity in every subgroup at :attr:`threshold`, strictly between 0 and 1.
    correlation : float
        Correlation of the scores of two images of one patient, given the finding, in [0, 1).
    """

    auroc: float = 0.85
    sensitivity: float = 0.80
    correlation: float = 0.5

    def __post_init__(self) -> None:
        for name in ("auroc", "sensitivity"):
            value = getattr(self, name)
            if not 0.0 < value < 1.0:
                raise InputError(f"{name} is {value!r}; it must lie strictly between 0 and 1.")
        if not 0.0 <= self.correlation < 1.0:
            raise InputError(f"correlation is {self.correlation!r}; it must be 0 or more and below 1.")

    @property
    def separation(self) -> float:
        """Distance between the classes' mean scores, in standard deviations."""
        return float(np.sqrt(2.0) * ndtri(self.auroc))

    @property
    def threshold(self) -> float:
        """Score at or above which an image is called positive."""
        return self.separation - float(ndtri(self.sensitivity))

    @property
    def false_positive_rate(self) -> float:
        """True false positive rate in every subgroup at :attr:`threshold`."""
        return float(ndtr(-self.threshold))


def simulated_fair_scores(
    truth: ArrayLike, patients: ArrayLike, score: FairScore, seed: int
) -> NDArray[np.float64]:
    """Draw a score for every image from its true label and its patient alone.

    Parameters
    ----------
    truth : array_like of bool, shape (images,)
        Labels taken as true.
    patients : array_like, shape (images,)
        Patient of each image.
    score : FairScore
        How well it works.
    seed : int
        Of ``numpy.random.default_rng``.

    Returns
    -------
    ndarray of float64, shape (images,)
        Simulated. No attribute of a patient enters, so the score is exactly fair against ``truth``.
    """
    rng = np.random.default_rng(seed)
    true = np.asarray(truth, dtype=bool)
    _, codes = np.unique(np.asarray(patients), return_inverse=True)
    shared = rng.standard_normal(int(codes.max(initial=-1)) + 1)[codes]
    own = rng.standard_normal(len(true))
    noise = np.sqrt(score.correlation) * shared + np.sqrt(1.0 - score.correlation) * own
    return np.asarray(noise + score.separation * true, dtype=np.float64)


def expected_values(errors: pd.DataFrame, score: FairScore) -> pd.DataFrame:
    """What an exactly fair score shows in each subgroup, on average, against labels with errors.

    Parameters
    ----------
    errors : pandas.DataFrame
        The result of :func:`label_error_table`.
    score : FairScore
        A score fair against the truth, whose errors do not depend on those of the labels.

    Returns
    -------
    pandas.DataFrame
        A row per subgroup: ``group, auroc, tpr, fpr``, against the labels. Without sampling error. NaN where
        the subgroup lacks a class by the labels.
    """
    import pandas as pd

    a, b = errors["true_among_positive"], errors["true_among_negative"]
    hit, false = score.sensitivity, score.false_positive_rate
    return pd.DataFrame(
        {
            "group": errors["group"],
            "auroc": 0.5 + (a - b) * (score.auroc - 0.5),
            "tpr": false + a * (hit - false),
            "fpr": false + b * (hit - false),
        }
    )


def expected_difference(values: Sequence[float]) -> float:
    """Largest minus smallest of the values that are there; NaN with fewer than two."""
    present = [value for value in values if np.isfinite(value)]
    return max(present) - min(present) if len(present) > 1 else float("nan")

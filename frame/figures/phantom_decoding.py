"""What a weak encoder reads from phantoms: means of 16 by 16 blocks, and a logistic head on them.

The encoder knows nothing but where an image is light and where it is dark. What it can tell, any encoder can.
Everything is drawn in memory; no file is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frame.cohorts.phantom.drawing import OLDEST_BAND, drawing_table, pictures
from frame.cohorts.phantom.population import population
from frame.cohorts.phantom.truth import PhantomTruth
from frame.cohorts.schema import FINDINGS
from frame.errors import InputError

__all__ = [
    "BLOCKS",
    "DrawnCohort",
    "attribute_decodability",
    "block_means",
    "draw_cohort",
    "finding_aurocs",
    "head_scores",
    "roc_area",
]

#: Blocks along each side of an image.
BLOCKS: Final = 16
#: Share of the patients, in order of their number, that a head is fitted on.
_TRAIN: Final = 0.6
#: Inverse of the penalty on the weights of standardised features.
_PENALTY: Final = 0.1
#: Age in years that splits adults about in half.
_OLDER: Final = 60.0

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]


@dataclass(frozen=True)
class DrawnCohort:
    """Drawn chest radiographs with what is true of them; no image is part of the text of this object.

    Attributes
    ----------
    features : numpy.ndarray of float64, shape (n, 256)
        Block means.
    table : pandas.DataFrame
        Rows of :func:`frame.cohorts.phantom.population.population`.
    test : numpy.ndarray of bool, shape (n,)
        Rows that heads are judged on; no patient has some of each kind.
    """

    features: Floats = field(repr=False)
    table: pd.DataFrame = field(repr=False)
    test: Booleans = field(repr=False)


def draw_cohort(truth: PhantomTruth, sources: Sequence[str], n_images: int, side: int = 64) -> DrawnCohort:
    """Draw the first images of some chest sources.

    Parameters
    ----------
    truth : PhantomTruth
        The world.
    sources : sequence of str
        Chest sources of adults.
    n_images : int
        Images, divided over the sources in proportion to their sizes.
    side : int
        Pixels a side, a multiple of :data:`BLOCKS`.

    Returns
    -------
    DrawnCohort
        Patients are whole in ``test`` or not in it.

    Raises
    ------
    frame.InputError
        If the side is no multiple, or the sources have fewer images.
    """
    if side % BLOCKS:
        raise InputError(f"side is {side}; it must be a multiple of {BLOCKS}.")
    tables = [population(truth, source) for source in sources]
    total = sum(len(table) for table in tables)
    if n_images > total:
        raise InputError(f"n_images is {n_images:,}; these sources have {total:,} images.")
    features, kept, tests = [], [], []
    for source, table in zip(sources, tables, strict=True):
        part = table.iloc[: round(n_images * len(table) / total)]
        drawn = pictures(drawing_table(truth, part), source, side)
        features.append(block_means(drawn))
        kept.append(part)
        numbers = part["patient_number"].to_numpy(dtype=np.int64)
        first, last = int(numbers[0]), int(numbers[-1])
        tests.append(numbers >= first + _TRAIN * (last - first + 1))
    return DrawnCohort(np.concatenate(features), pd.concat(kept, ignore_index=True), np.concatenate(tests))


def block_means(images: NDArray[np.uint8]) -> Floats:
    """Means of blocks of grey images.

    Parameters
    ----------
    images : numpy.ndarray of uint8, shape (n, side, side)
        Images; the side is a multiple of :data:`BLOCKS`.

    Returns
    -------
    numpy.ndarray of float64, shape (n, 256)
        Means on the grey scale from 0 to 1, row by row.
    """
    n, side = images.shape[:2]
    block = side // BLOCKS
    cut = images.reshape(n, BLOCKS, block, BLOCKS, block)
    means: Floats = cut.mean(axis=(2, 4), dtype=np.float64).reshape(n, -1) / 255
    return means


def head_scores(features: Floats, labels: Booleans, train: Booleans) -> Floats:
    """Fit a logistic head and score every row.

    Parameters
    ----------
    features : numpy.ndarray of float64, shape (n, p)
        Features; standardised with the rows that the head is fitted on.
    labels : numpy.ndarray of bool, shape (n,)
        What is to be told.
    train : numpy.ndarray of bool, shape (n,)
        Rows that it is fitted on.

    Returns
    -------
    numpy.ndarray of float64, shape (n,)
        Log odds.

    Raises
    ------
    frame.InputError
        If scikit-learn is missing, or the rows have one label only.
    """
    try:
        from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]
    except ImportError:
        raise InputError(
            "A head needs scikit-learn; install it with: pip install 'frame-audit[study]'."
        ) from None
    if len(np.unique(labels[train])) < 2:
        raise InputError("All rows that a head is to be fitted on have the same label; give more images.")
    mean, spread = features[train].mean(axis=0), features[train].std(axis=0)
    standard = (features - mean) / np.where(spread > 0, spread, 1.0)
    # Solved to the last digits, so that no number depends on the machine.
    head = LogisticRegression(C=_PENALTY, solver="newton-cholesky", tol=1e-8, max_iter=100)
    head.fit(standard[train], labels[train])
    scores: Floats = head.decision_function(standard)
    return scores


def roc_area(scores: Floats, labels: Booleans) -> float:
    """Area under the ROC curve by ranks; NaN where there is one label only."""
    from scipy.stats import rankdata

    n_positive = int(labels.sum())
    n_negative = len(labels) - n_positive
    if not n_positive or not n_negative:
        return float("nan")
    above = float(rankdata(scores)[labels].sum()) - n_positive * (n_positive + 1) / 2
    return above / (n_positive * n_negative)


def attribute_decodability(cohort: DrawnCohort) -> pd.DataFrame:
    """How well the attributes of patients can be told from block means.

    Parameters
    ----------
    cohort : DrawnCohort
        Drawn images.

    Returns
    -------
    pandas.DataFrame
        ``attribute``, ``told`` (what is told from the rest), ``n_test``, ``n_with`` (test images of that
        level), ``auroc``; 0.5 is guessing.
    """
    table = cohort.table
    targets = [("race", f"{level} or not", table["race"] == level) for level in sorted(set(table["race"]))]
    targets += [
        ("age", f"{_OLDER:.0f} years or more", table["age"] >= _OLDER),
        ("sex", "female or male", table["sex"] == "female"),
        ("view", "AP or PA", table["view"] == "AP"),
    ]
    sites = list(dict.fromkeys(table["source"]))
    if len(sites) > 1:
        targets += [("site", f"{site} or not", table["source"] == site) for site in sites[1:]]
    rows = []
    for attribute, told, target in targets:
        labels = target.to_numpy(dtype=bool)
        scores = head_scores(cohort.features, labels, ~cohort.test)
        test = labels[cohort.test]
        area = roc_area(scores[cohort.test], test)
        rows.append((attribute, told, len(test), int(test.sum()), area))
    return pd.DataFrame(rows, columns=["attribute", "told", "n_test", "n_with", "auroc"])


def finding_aurocs(cohort: DrawnCohort, findings: Sequence[str] = FINDINGS["chest"]) -> pd.DataFrame:
    """How well each finding can be told from block means, in all and in groups.

    Parameters
    ----------
    cohort : DrawnCohort
        Drawn images.
    findings : sequence of str
        Findings of the chest.

    Returns
    -------
    pandas.DataFrame
        ``finding``, ``n_test``, ``n_positive``, ``auroc``; ``oldest`` and ``younger`` (from 80 years, and
        below); ``largest_group`` and ``other_groups`` (the race with most images, and the others). The truth
        is what is judged, not the recorded label. One head for all images, fitted on all.
    """
    table = cohort.table[cohort.test]
    oldest = (table["age"] >= OLDEST_BAND).to_numpy(dtype=bool)
    largest = (table["race"] == cohort.table["race"].value_counts().index[0]).to_numpy(dtype=bool)
    rows = []
    for finding in findings:
        labels = cohort.table[f"{finding}_true"].to_numpy(dtype=bool)
        scores = head_scores(cohort.features, labels, ~cohort.test)[cohort.test]
        test = labels[cohort.test]
        everyone = np.ones(len(test), dtype=bool)
        areas = [roc_area(scores[g], test[g]) for g in (everyone, oldest, ~oldest, largest, ~largest)]
        rows.append((finding, len(test), int(test.sum()), *areas))
    columns = ["finding", "n_test", "n_positive", "auroc", "oldest", "younger", "largest_group"]
    return pd.DataFrame(rows, columns=[*columns, "other_groups"])

"""What weak encoders read from phantoms, with a logistic head on them.

Two encoders, both of which can be seen through. Means of 16 by 16 blocks know nothing but where an image is
light and where it is dark, and are linear in the pixels. Means of squared gradients (the structure tensor)
know how strongly and in which direction grey values change in each block, and are not linear: they see a
grating whatever its phase. Everything is drawn in memory; no file is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frame.cohorts.phantom.drawing import OLDEST_BAND, drawing_table, pictures
from frame.cohorts.phantom.population import population
from frame.cohorts.phantom.truth import PhantomTruth, RacePlant
from frame.cohorts.schema import FINDINGS
from frame.encoders.loaders import pixel_models
from frame.errors import InputError

__all__ = [
    "BLOCKS",
    "ENCODERS",
    "MARKS",
    "DrawnCohort",
    "attribute_decodability",
    "block_means",
    "draw_cohort",
    "finding_aurocs",
    "gradient_means",
    "head_scores",
    "mark_decodability",
    "roc_area",
]

#: Blocks along each side of an image.
BLOCKS: Final = 16
#: The marks by which race can or cannot be told, in the order of the table.
MARKS: Final = ("fixed", "random_phase", "none")
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
    features : mapping of str to numpy.ndarray of float64, shape (n, p)
        Of each encoder of :data:`ENCODERS` that was asked for.
    table : pandas.DataFrame
        Rows of :func:`frame.cohorts.phantom.population.population`.
    test : numpy.ndarray of bool, shape (n,)
        Rows that heads are judged on; no patient has some of each kind.
    """

    features: Mapping[str, Floats] = field(repr=False)
    table: pd.DataFrame = field(repr=False)
    test: Booleans = field(repr=False)


def draw_cohort(
    truth: PhantomTruth,
    sources: Sequence[str],
    n_images: int,
    side: int = 64,
    encoders: Sequence[str] = ("block_means",),
) -> DrawnCohort:
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
    encoders : sequence of str
        Names of :data:`ENCODERS`.

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
    features: dict[str, list[Floats]] = {name: [] for name in encoders}
    kept, tests = [], []
    for source, table in zip(sources, tables, strict=True):
        part = table.iloc[: round(n_images * len(table) / total)]
        drawn = pictures(drawing_table(truth, part), source, side)
        for name, parts in features.items():
            parts.append(ENCODERS[name](drawn))
        kept.append(part)
        numbers = part["patient_number"].to_numpy(dtype=np.int64)
        first, last = int(numbers[0]), int(numbers[-1])
        tests.append(numbers >= first + _TRAIN * (last - first + 1))
    found = {name: np.concatenate(parts) for name, parts in features.items()}
    return DrawnCohort(found, pd.concat(kept, ignore_index=True), np.concatenate(tests))


def block_means(images: NDArray[np.uint8]) -> Floats:
    """Means of blocks of grey images, as the encoder ``block_means`` of the panel gives them.

    Parameters
    ----------
    images : numpy.ndarray of uint8, shape (n, side, side)
        Images; the side is at least :data:`BLOCKS`.

    Returns
    -------
    numpy.ndarray of float64, shape (n, 256)
        Means on the grey scale from 0 to 1, row by row.
    """
    grey = images[:, np.newaxis].astype(np.float32) / np.float32(255)
    return pixel_models.block_means(grey, BLOCKS).astype(np.float64)


def gradient_means(images: NDArray[np.uint8]) -> Floats:
    """Means over blocks of the products of gradients of grey images: the structure tensor.

    Parameters
    ----------
    images : numpy.ndarray of uint8, shape (n, side, side)
        Images; the side is a multiple of :data:`BLOCKS`.

    Returns
    -------
    numpy.ndarray of float64, shape (n, 768)
        Block means, row by row, of the squared gradient across, of the squared gradient down, and of their
        product, which says which way a slanting edge leans. Gradients are central differences on the grey
        scale from 0 to 1; pixels at the frame count as 0.
    """
    n, side = images.shape[:2]
    block = side // BLOCKS
    grey = images.astype(np.float32) / np.float32(255)
    across, down = np.zeros_like(grey), np.zeros_like(grey)
    across[:, 1:-1, 1:-1] = grey[:, 1:-1, 2:] - grey[:, 1:-1, :-2]
    down[:, 1:-1, 1:-1] = grey[:, 2:, 1:-1] - grey[:, :-2, 1:-1]
    products = (across * across, down * down, across * down)
    cut = [product.reshape(n, BLOCKS, block, BLOCKS, block) for product in products]
    means = [part.mean(axis=(2, 4), dtype=np.float64).reshape(n, -1) for part in cut]
    return np.concatenate(means, axis=1)


#: The encoders by name.
ENCODERS: Final[dict[str, Callable[[NDArray[np.uint8]], Floats]]] = {
    "block_means": block_means,
    "gradient_means": gradient_means,
}


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
        from sklearn.linear_model import LogisticRegression
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


def attribute_decodability(cohort: DrawnCohort, encoder: str = "block_means") -> pd.DataFrame:
    """How well the attributes of patients can be told from an encoder's features.

    Parameters
    ----------
    cohort : DrawnCohort
        Drawn images.
    encoder : str
        One of those that the cohort has features of.

    Returns
    -------
    pandas.DataFrame
        ``attribute``, ``told`` (what is told from the rest), ``n_test``, ``n_with`` (test images of that
        level), ``auroc``; 0.5 is guessing.
    """
    table = cohort.table
    targets = _races(table)
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
        scores = head_scores(cohort.features[encoder], labels, ~cohort.test)
        test = labels[cohort.test]
        area = roc_area(scores[cohort.test], test)
        rows.append((attribute, told, len(test), int(test.sum()), area))
    return pd.DataFrame(rows, columns=["attribute", "told", "n_test", "n_with", "auroc"])


def finding_aurocs(
    cohort: DrawnCohort, findings: Sequence[str] = FINDINGS["chest"], encoder: str = "block_means"
) -> pd.DataFrame:
    """How well each finding can be told from an encoder's features, in all and in groups.

    Parameters
    ----------
    cohort : DrawnCohort
        Drawn images.
    findings : sequence of str
        Findings of the chest.
    encoder : str
        One of those that the cohort has features of.

    Returns
    -------
    pandas.DataFrame
        ``finding``, ``n_test``, ``n_positive``, ``auroc``; ``oldest`` and ``younger`` (from 80 years, and
        below); ``largest_group`` and ``other_groups`` (the race with most images; the others, over pairs of
        images of the same race, since a head that sees the mark may by chance score one race above another).
        The truth is what is judged, not the recorded label. One head for all images, fitted on all.
    """
    table = cohort.table[cohort.test]
    oldest = (table["age"] >= OLDEST_BAND).to_numpy(dtype=bool)
    races = table["race"].to_numpy(dtype=object)
    largest = races == cohort.table["race"].value_counts().index[0]
    rows = []
    for finding in findings:
        labels = cohort.table[f"{finding}_true"].to_numpy(dtype=bool)
        scores = head_scores(cohort.features[encoder], labels, ~cohort.test)[cohort.test]
        test = labels[cohort.test]
        everyone = np.ones(len(test), dtype=bool)
        areas = [roc_area(scores[g], test[g]) for g in (everyone, oldest, ~oldest, largest)]
        others = _area_within(scores[~largest], test[~largest], races[~largest])
        rows.append((finding, len(test), int(test.sum()), *areas, others))
    columns = ["finding", "n_test", "n_positive", "auroc", "oldest", "younger", "largest_group"]
    return pd.DataFrame(rows, columns=[*columns, "other_groups"])


def _area_within(
    scores: NDArray[np.float64], labels: NDArray[np.bool_], groups: NDArray[np.object_]
) -> float:
    """Share of the right order among all pairs of a positive and a negative of the same group."""
    right, pairs = 0.0, 0
    for group in dict.fromkeys(groups):
        inside = groups == group
        n_pairs = int(labels[inside].sum()) * int((~labels[inside]).sum())
        if n_pairs:
            right += n_pairs * roc_area(scores[inside], labels[inside])
            pairs += n_pairs
    return right / pairs if pairs else float("nan")


def mark_decodability(
    truth: PhantomTruth,
    sources: Sequence[str],
    n_images: int,
    findings: Sequence[str],
    side: int = 64,
) -> pd.DataFrame:
    """One world with each mark of race: who sees the mark, and what it does to findings.

    Parameters
    ----------
    truth : PhantomTruth
        The world; its own mark is replaced by each of :data:`MARKS` in turn, and nothing else.
    sources, n_images, side
        As for :func:`draw_cohort`.
    findings : sequence of str
        Findings whose AUROC is compared by race.

    Returns
    -------
    pandas.DataFrame
        A row for each mark: ``mark``, ``n_test``; ``block_means`` and ``gradient_means``, the mean over the
        races of the AUROC by which each is told from the others with these features; ``largest_group`` and
        ``other_groups``, the mean AUROC of the findings from block means in the race with most images and in
        the others. 0.5 is guessing.
    """
    rows = []
    for mark in MARKS:
        world = truth.model_copy(update={"race": RacePlant(texture=mark)})
        cohort = draw_cohort(world, sources, n_images, side, tuple(ENCODERS))
        told: list[float] = []
        for name in ENCODERS:
            areas = []
            for _, _, target in _races(cohort.table):
                labels = target.to_numpy(dtype=bool)
                scores = head_scores(cohort.features[name], labels, ~cohort.test)
                areas.append(roc_area(scores[cohort.test], labels[cohort.test]))
            told.append(float(np.mean(areas)))
        groups = finding_aurocs(cohort, findings)[["largest_group", "other_groups"]].mean()
        rows.append((mark, int(cohort.test.sum()), *told, *groups))
    return pd.DataFrame(rows, columns=["mark", "n_test", *ENCODERS, "largest_group", "other_groups"])


def _races(table: pd.DataFrame) -> list[tuple[str, str, pd.Series]]:
    """Each race against the others: attribute, what is told, and of which images it is true."""
    return [("race", f"{level} or not", table["race"] == level) for level in sorted(set(table["race"]))]

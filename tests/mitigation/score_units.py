"""Drawn units for tests of the methods that read scores or map features."""

import numpy as np

from frame.heads.disease_heads import Head, fit_head
from frame.measures.values import measure_value
from frame.mitigation.contract import Rows, Unit, scores_of_logits

LEVELS = ("a", "b", "c")


def drawn_rows(rng, n, *, shift=1.0, n_columns=12, groups=None, unknown=0.0, mixed=False):
    """Column 0 carries the disease, column 1 the group; groups differ in prevalence; columns may be mixed."""
    codes = rng.integers(0, 3, n) if groups is None else np.asarray(groups)
    labels = (rng.random(n) < 0.2 + 0.15 * np.maximum(codes, 0)).astype(np.int8)
    features = rng.normal(size=(n, n_columns))
    features[:, 0] += 1.5 * labels
    features[:, 1] += shift * codes
    if mixed:
        features = features @ np.random.default_rng(99).normal(size=(n_columns, n_columns))
    codes = np.where(rng.random(n) < unknown, -1, codes).astype(np.int64)
    return Rows(features.astype(np.float32), labels, codes)


def unit_of(train, validation, test, *, levels=LEVELS, weighting="paper", seed=0, head=None):
    head = fit_head(train.features, train.labels) if head is None else head
    scored = tuple(scores_of_logits(head.logit(rows.features)) for rows in (validation, test))
    return Unit(train, validation, test, levels, head, scored, weighting=weighting, seed=seed)


def drawn_unit(seed=0, *, weighting="paper", n=(1500, 900, 900), **options):
    rng = np.random.default_rng(seed)
    return unit_of(*(drawn_rows(rng, rows, **options) for rows in n), weighting=weighting)


def scored_unit(validation, test, *, levels=None, weighting="paper"):
    """A unit whose logits are given: (logits, labels, groups) of validation and of test."""
    parts = []
    for logits, labels, groups in (validation, test):
        x = np.asarray(logits, dtype=np.float64)
        rows = Rows(x[:, None], np.asarray(labels, dtype=np.int8), np.asarray(groups, dtype=np.int64))
        parts.append((rows, scores_of_logits(x)))
    (rows, scores), (test_rows, test_scores) = parts
    if levels is None:
        levels = tuple("abcdefgh"[: int(max(rows.groups.max(), test_rows.groups.max())) + 1])
    head = Head.__new__(Head)  # the methods on scores never read it
    return Unit(rows, rows, test_rows, levels, head, (scores, test_scores), weighting=weighting)


def auroc(scores, labels):
    return measure_value("auroc", scores, labels)


def within_group_aurocs(scores, rows, n_groups):
    found = {}
    for code in range(n_groups):
        chosen = rows.groups == code
        if 0 < rows.labels[chosen].sum() < chosen.sum():
            found[code] = auroc(scores.ranks[chosen], rows.labels[chosen])
    return found

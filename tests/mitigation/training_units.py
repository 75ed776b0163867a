"""Drawn units for tests of the methods that change training."""

import numpy as np
from score_units import unit_of

from frame.mitigation.contract import Rows

#: Every method that changes training, by its name in the registry.
TRAINING_METHODS = (
    "resample",
    "reweigh",
    "group_dro",
    "group_dro_converged",
    "adversarial",
    "adversarial_converged",
    "exponentiated_gradient",
)


def rows_of(labels, groups, signal, *, n_columns=6, seed=0, dtype=np.float32):
    """Noise with ``signal(labels, groups)``, shape (n, some columns), added to the first columns."""
    labels, groups = np.asarray(labels, dtype=np.int8), np.asarray(groups, dtype=np.int64)
    features = np.random.default_rng(seed).normal(size=(len(labels), n_columns))
    added = signal(labels.astype(float), groups)
    features[:, : added.shape[1]] += added
    return Rows(features.astype(dtype), labels, groups)


def drawn(n, shares, prevalence, signal, *, seed=0, **options):
    """Groups with these shares and prevalences."""
    rng = np.random.default_rng(seed)
    groups = rng.choice(len(shares), size=n, p=shares)
    labels = rng.random(n) < np.asarray(prevalence)[groups]
    return rows_of(labels, groups, signal, seed=seed + 1, **options)


def three(n, shares, prevalence, signal, *, weighting="paper", seed=0, **options):
    """A unit whose splits are drawn alike, test as large as train."""
    parts = [
        drawn(size, shares, prevalence, signal, seed=seed + 10 * place, **options)
        for place, size in enumerate((n, n // 2, n))
    ]
    return unit_of(*parts, levels=tuple("abcde"[: len(shares)]), weighting=weighting)


def disease(labels, groups):
    """The finding in column 0, alike in every group."""
    return 1.5 * labels[:, None]


def own_direction(labels, groups):
    """The finding in column 0, and in column 1 for group 1."""
    return 2.0 * labels[:, None] * np.column_stack([groups == 0, groups == 1])


def group_beside(labels, groups):
    """The finding in column 0 and the group in column 1."""
    return np.column_stack([1.2 * labels, 2.0 * groups])


def log_loss(scores, rows, group):
    """Mean logistic loss of ranks that are logits, in one group."""
    own = rows.groups == group
    z, y = scores.ranks[own], rows.labels[own]
    return float(np.mean(np.logaddexp(0, z) - y * z))

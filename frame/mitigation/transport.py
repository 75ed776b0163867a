"""Optimal transport: each group's features mapped to the pooled mean and covariance as Gaussians are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from frame.errors import InputError
from frame.heads.disease_heads import Head, fit_head
from frame.mitigation.contract import Floats, Outcome, Rows, Unit, not_fitted, scores_of_logits
from frame.mitigation.training_groups import outcome_of, training_groups

__all__ = ["SHRINKAGE", "GaussianTransport", "fit_transport", "gaussian_transport", "transport_matrix"]

#: Share of the covariance that is replaced by a multiple of the identity with the same trace.
SHRINKAGE: Final = 0.1
_BLOCK = 4096


@dataclass(frozen=True, eq=False)
class GaussianTransport:
    """One affine map per group, ``mean + (x - mean_g) @ matrix_g``.

    Attributes
    ----------
    mean : ndarray of float64, shape (D,)
        Of all rows with a known group.
    means : mapping of int to ndarray of float64, shape (D,)
    matrices : mapping of int to ndarray of float64, shape (D, D)
        Symmetric and positive definite; by code of the group. A group that has none is not moved.
    reasons : mapping of int to str
        Why a group with rows has no map.
    counts : mapping of int to int
        Rows of each group with rows.
    """

    mean: Floats
    means: dict[int, Floats]
    matrices: dict[int, Floats]
    reasons: dict[int, str]
    counts: dict[int, int]

    def centred(self, features: NDArray[Any], groups: NDArray[Any]) -> Floats:
        """Mapped rows less the pooled mean, in float64, shape (n, D); a group without a map is not moved."""
        x = np.asarray(features, dtype=np.float64) - self.mean
        for code, matrix in self.matrices.items():
            rows = groups == code
            if rows.any():
                x[rows] = (x[rows] + (self.mean - self.means[code])) @ matrix
        return x

    def apply(self, features: NDArray[Any], groups: NDArray[Any]) -> Floats:
        """Mapped rows in float64, shape (n, D)."""
        return self.centred(features, groups) + self.mean


def transport_matrix(source: Floats, target: Floats) -> Floats:
    """The symmetric T with T source T = target: the Gaussian optimal transport map.

    ``source^-1/2 (source^1/2 target source^1/2)^1/2 source^-1/2``, with symmetric square roots.

    Parameters
    ----------
    source, target : ndarray of float64, shape (D, D)
        Covariances, positive definite and positive semidefinite.

    Returns
    -------
    ndarray of float64, shape (D, D)

    Raises
    ------
    InputError
        Where ``source`` is not positive definite to rounding.
    """
    sizes, vectors = np.linalg.eigh(source)
    if not sizes[0] > len(sizes) * np.finfo(np.float64).eps * sizes[-1]:
        raise InputError("The covariance to be mapped is singular; shrink it first.")
    root = (vectors * np.sqrt(sizes)) @ vectors.T
    inverse = (vectors / np.sqrt(sizes)) @ vectors.T
    inner = root @ target @ root
    middle, turned = np.linalg.eigh((inner + inner.T) / 2)
    found = inverse @ ((turned * np.sqrt(np.maximum(middle, 0.0))) @ turned.T) @ inverse
    return np.asarray((found + found.T) / 2, dtype=np.float64)


def shrunk(covariance: Floats, share: float = SHRINKAGE) -> Floats:
    """``(1 - share) S + share (tr S / D) I``."""
    n_columns = len(covariance)
    floor = share * float(np.trace(covariance)) / n_columns
    found: Floats = (1 - share) * covariance + floor * np.eye(n_columns)
    return found


def fit_transport(features: NDArray[Any], codes: NDArray[Any]) -> GaussianTransport:
    """Means and covariances (divisor n) of each group and of all, and the maps between them.

    Parameters
    ----------
    features : ndarray of float, shape (n, D)
    codes : ndarray of int, shape (n,)
        Group of each row, not negative.

    Returns
    -------
    GaussianTransport
        From the group's shrunk covariance to the pooled one, shrunk in the same way. A group with one row,
        or whose rows are all alike, has no covariance and is not moved; ``reasons`` says so.
    """
    mean = _mean(features, np.ones(len(features), dtype=np.bool_))
    pooled = np.zeros((features.shape[1], features.shape[1]))
    means: dict[int, Floats] = {}
    covariances: dict[int, Floats] = {}
    counts: dict[int, int] = {}
    for code in np.unique(codes).tolist():
        rows = codes == code
        counts[code] = int(np.count_nonzero(rows))
        means[code] = _mean(features, rows)
        covariance = np.zeros_like(pooled)
        for block in _blocks(features, rows):
            block -= means[code]
            covariance += block.T @ block
        covariances[code] = covariance / counts[code]
        shift = means[code] - mean
        pooled += covariance + counts[code] * np.outer(shift, shift)
    target = shrunk(pooled / len(features))
    matrices: dict[int, Floats] = {}
    reasons: dict[int, str] = {}
    for code, covariance in covariances.items():
        if counts[code] < 2:
            reasons[code] = "one training image has no covariance"
        elif not np.trace(covariance) > 1e-14 * float(means[code] @ means[code]):
            reasons[code] = "its training images are all alike"
        else:
            matrices[code] = transport_matrix(shrunk(covariance), target)
    return GaussianTransport(mean, means, matrices, reasons, counts)


def gaussian_transport(unit: Unit) -> Outcome:
    """Map every group to the pooled mean and covariance and refit the disease head, class weights balanced.

    Fitted on training images whose group is known; validation and test images are mapped by their group, and
    one without a group, or of a group that could not be fitted, is not moved.

    Parameters
    ----------
    unit : Unit

    Returns
    -------
    Outcome
        ``groups`` has one row per level, counted over training images. ``not fitted`` without a known group,
        with one label, or where no group could be mapped; ``degenerate`` where one group alone has training
        images.
    """
    groups = training_groups(unit)
    if isinstance(groups, Outcome):
        return groups
    rows = unit.group_rows()
    transport = fit_transport(rows.features, rows.groups)
    if not transport.matrices:
        return not_fitted("no group has a covariance, so none can be mapped")
    mapped = _mapped(transport, rows)
    head = fit_head(mapped, rows.labels, kind=unit.head.kind, class_weight=unit.class_weight, seed=unit.seed)
    del mapped
    if head.status not in ("converged", "not converged"):
        return not_fitted(head.reason)
    scored = tuple(scores_of_logits(_logits(transport, head, part)) for part in (unit.validation, unit.test))
    flags = [
        f"{unit.levels[code]}: kept the identity, {reason}" for code, reason in transport.reasons.items()
    ]
    if head.status == "not converged":
        flags.append(f"the refitted head did not converge: {head.reason}")
    actions = dict.fromkeys(transport.matrices, "mapped to the pooled mean and covariance")
    outcome = outcome_of(
        groups,
        (scored[0], scored[1]),
        actions=actions | dict.fromkeys(transport.reasons, "kept the identity"),
        purpose="transport",
        flags=flags,
        facts={"n_groups_mapped": len(transport.matrices), "shrinkage": SHRINKAGE}
        | {"head_status": head.status}
        | dict(head.details),
    )
    because = {unit.levels[code]: reason for code, reason in transport.reasons.items()}
    treated = tuple({**row, "reason": because.get(row["group"]) or row["reason"]} for row in outcome.groups)
    return replace(outcome, groups=treated)


def _mapped(transport: GaussianTransport, rows: Rows) -> NDArray[Any]:
    """Mapped rows less the pooled mean: float64 where the features are, else float32."""
    kept = np.float64 if rows.features.dtype.itemsize > 4 else np.float32
    mapped = np.empty(rows.features.shape, dtype=kept)
    for start in range(0, len(rows), _BLOCK):
        part = slice(start, start + _BLOCK)
        mapped[part] = transport.centred(rows.features[part], rows.groups[part])
    return mapped


def _logits(transport: GaussianTransport, head: Head, rows: Rows) -> Floats:
    logits = np.empty(len(rows))
    for start in range(0, len(rows), _BLOCK):
        part = slice(start, start + _BLOCK)
        logits[part] = head.logit(transport.centred(rows.features[part], rows.groups[part]))
    return logits


def _blocks(features: NDArray[Any], rows: NDArray[np.bool_]) -> Iterator[Floats]:
    """Some rows, from ``_BLOCK`` at a time, in float64."""
    for start in range(0, len(features), _BLOCK):
        part = slice(start, start + _BLOCK)
        if rows[part].any():
            yield np.array(features[part][rows[part]], dtype=np.float64)


def _mean(features: NDArray[Any], rows: NDArray[np.bool_]) -> Floats:
    total = np.zeros(features.shape[1])
    first = np.asarray(features[np.argmax(rows)], dtype=np.float64)
    for block in _blocks(features, rows):
        total += (block - first).sum(axis=0)
    found: Floats = first + total / np.count_nonzero(rows)
    return found

"""Removal of disease signal by shares, in whitened coordinates (ours).

The paper's entanglement operator removes whole directions of the features as they are. Where features are
correlated, the directions that are left carry nearly all of the signal again, and its strength is mostly a
matter of how many of D directions are gone. Here the features are first brought to mean 0 and covariance 1
(principal components of the standardised training rows), the head is fitted there, and a share lambda of one
or two of its directions is removed from the rows of every group but the largest:

    X - lambda D_a (X - mean) P,    P = A B,

with ``A = S V L^(-1/2) q`` and ``B = q' L^(1/2) V' S^(-1)``: S scales columns to a standard deviation of 1,
V and L are the principal components and variances of the training rows, and q are the whitened directions.
P is a projection (``PP = P``), oblique in the coordinates of the features: what is removed is the part of a
row that goes along with the head's score, and what is left is uncorrelated with that score in the training
rows.

What it does to the means of groups. The mean that is subtracted is that of all training rows, so a treated
group with mean m_g moves by ``-lambda (m_g - mean) P``: towards the common mean, along the disease directions
only, by the share lambda of its own distance, and never past it. Treated groups thus lie closer together
along these directions, and the untreated group stays. Without the centring each treated group would move by
``-lambda m_g P``, which is large where features are far from 0, and would make the attribute easier to
decode. The variance of treated rows along the directions falls by the factor (1 - lambda)^2, which a
nonlinear head can read. Report the decodability beside both operators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from frame.errors import InputError
from frame.heads.linear_maps import LinearMap
from frame.interventions.disease_subspace import TOLERANCE
from frame.interventions.operator_inputs import checked_rows, checked_strength
from frame.interventions.training_moments import class_labels, column_moments, covariance_of
from frame.mitigation.feature_matrix import check_matrix

__all__ = ["WHITENED_STRENGTHS", "WhitenedEntanglementOperator", "whitened_entanglement_operator"]

Floats = NDArray[np.float64]

#: Shares that are removed.
WHITENED_STRENGTHS: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
#: Directions that may be removed.
_MOST_DIRECTIONS: Final = 2
#: Principal components with a smaller share of the largest variance are taken for rounding.
_LEAST_VARIANCE: Final = 1e-10


@dataclass(frozen=True, eq=False)
class WhitenedEntanglementOperator:
    """``X - lambda D_a (X - mean) A B``, the strength being lambda.

    Attributes
    ----------
    mean : ndarray of float64, shape (D,)
        Of all training rows.
    read : ndarray of float64, shape (D, directions)
        A: takes centred rows to scores of standard deviation 1 over the training rows, uncorrelated there.
    written : ndarray of float64, shape (directions, D)
        B: how the features go along with these scores.
    reason : str
        Why there are fewer directions than asked for; empty where there are not.
    """

    mean: Floats = field(repr=False)
    read: Floats = field(repr=False)
    written: Floats = field(repr=False)
    reason: str = ""
    strengths: tuple[float, ...] = WHITENED_STRENGTHS
    not_run: Mapping[float, str] = field(default_factory=dict)
    name: str = "whitened entanglement"

    def apply(self, rows: NDArray[Any], signs: NDArray[Any], strength: float) -> NDArray[Any]:
        """Take the share lambda out of the rows with a sign of -1; see ``operators.Operator``.

        Raises
        ------
        InputError
            For a share outside 0 to 1, signs that do not belong to the rows, or rows that are not finite.
        """
        from frame.heads.passes import available_threads
        from frame.interventions.row_products import remove_projection

        share = _share(strength)
        given, a = checked_rows(rows, signs, len(self.mean))
        if share == 0:
            return rows
        changed = np.array(given, dtype=np.float64)
        remove_projection(
            *(changed, np.flatnonzero(a < 0), self.read, self.written),
            centre=self.mean,
            share=share,
            threads=available_threads(),
        )
        return changed


def whitened_entanglement_operator(
    features: NDArray[Any],
    labels: Any,
    *,
    directions: int = 1,
    strengths: Sequence[float] = WHITENED_STRENGTHS,
    tolerance: float = TOLERANCE,
    threads: int | None = None,
    device: str = "cpu",
) -> WhitenedEntanglementOperator:
    """Make the operator from training rows.

    Parameters
    ----------
    features : ndarray of float16, float32 or float64, shape (n, D)
        Training rows; may be read-only or mapped from a file.
    labels : array_like, shape (n,)
        0 and 1.
    directions : {1, 2}
        The second is that of a head on what the first leaves; after whitening little is left, so it is often
        a direction of chance.
    strengths : sequence of float
        Shares, 0 to 1; 0 is added where it is missing.
    tolerance, threads, device
        Of the solver.

    Raises
    ------
    InputError
        For rows that are not finite (with their number), labels that are not 0 and 1 or all the same, rows
        that are all the same, or no disease signal at all.
    """
    matrix = check_matrix(features)
    if directions not in (1, 2) or isinstance(directions, bool):
        raise InputError(f"{directions!r} whitened directions were asked for; give 1 or {_MOST_DIRECTIONS}.")
    codes = class_labels(labels, len(matrix))
    if len(np.unique(codes)) < 2:
        raise InputError(f"All {len(codes):,} training rows have the same label, so there is no direction.")
    run = tuple(sorted({0.0, *(_share(s) for s in strengths)}))
    columns = column_moments(matrix)
    varies = ~columns.constant
    if not varies.any():
        raise InputError(f"All {len(codes):,} training rows hold the same features; there is no direction.")
    scale = np.where(varies, 1 / np.where(varies, columns.deviation, 1.0), 0.0)
    correlation = covariance_of(matrix, columns.mean) * scale * scale[:, None]
    variances, components = np.linalg.eigh(correlation)
    kept = variances > _LEAST_VARIANCE * variances[-1]
    root, components = np.sqrt(variances[kept]), components[:, kept]
    to_white = scale[:, None] * components / root
    from_white = root[:, None] * components.T * np.where(varies, columns.deviation, 0.0)
    white, reason = _white_directions(
        matrix, codes, columns.mean, to_white, directions, tolerance, threads, device
    )
    return WhitenedEntanglementOperator(columns.mean, to_white @ white, white.T @ from_white, reason, run)


def _white_directions(
    features: NDArray[Any],
    codes: NDArray[np.int8],
    mean: Floats,
    to_white: Floats,
    count: int,
    tolerance: float,
    threads: int | None,
    device: str,
) -> tuple[Floats, str]:
    """Orthonormal directions of heads in whitened coordinates, shape (components, found)."""
    from frame.heads.logistic import fit_logistic

    n_components = to_white.shape[1]
    found = np.empty((n_components, 0))
    whitened = LinearMap(mean, np.ones(len(mean)), to_white)
    preconditioner: Any = None
    for j in range(min(count, n_components)):
        fit = fit_logistic(
            features,
            codes,
            classes=(0, 1),
            class_weight="balanced",
            map=whitened if j == 0 else whitened.then(np.eye(n_components) - found @ found.T),
            preconditioner=preconditioner,
            tolerance=tolerance,
            threads=threads,
            device=device,
        )
        preconditioner = fit.preconditioner
        vector = fit.coefficients[0] - found @ (found.T @ fit.coefficients[0])
        length = float(np.linalg.norm(vector))
        # Whitened columns have a standard deviation of 1: this is the spread of the head's scores.
        if not length > 100 * tolerance:
            break
        vector = vector / length
        vector = vector - found @ (found.T @ vector)
        found = np.column_stack([found, vector / np.linalg.norm(vector)])
    if found.shape[1] == 0:
        raise InputError("No head reads the disease from these features; there is no direction.")
    return found, "" if found.shape[1] == count else "no disease signal is left after 1 direction"


def _share(given: Any) -> float:
    share = checked_strength(given, "whitened entanglement", None)
    if share > 1:
        raise InputError(
            f"The share that the whitened entanglement operator removes is {given!r}; give 0 to 1."
        )
    return share

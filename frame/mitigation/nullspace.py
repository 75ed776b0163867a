"""Iterated nullspace projection (INLP): the directions a linear probe finds are taken out, and again."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from frame.heads.linear_maps import standardising_map
from frame.heads.logistic import fit_logistic
from frame.mitigation.affine_erasers import NO_VARIANCE, AffineEraser, Floats, group_moments, largest_gap

__all__ = ["ITERATIONS", "ROUNDS", "directions_of", "fit_projector"]

#: Rounds, penalty and iterations of nullspace projection.
ROUNDS: Final = 10
PENALTY: Final = 1.0
ITERATIONS: Final = 500
#: A probe whose coefficients are all below this, per standard deviation of a column, has found nothing.
_NO_COEFFICIENT = 1e-6
#: A direction this much weaker than a probe's strongest one is what the solver leaves of none.
_WEAKEST = 1e-4


def fit_projector(
    features: NDArray[Any], codes: NDArray[Any], *, rounds: int = ROUNDS
) -> tuple[AffineEraser, dict[str, Any]]:
    """Iterated nullspace projection: fit a probe of the group, project its directions out, and again.

    Parameters
    ----------
    features : ndarray of float, shape (n, D)
    codes : ndarray of int, shape (n,)
        Group of each row, not negative. With one group nothing is taken out.
    rounds : int
        At most.

    Returns
    -------
    eraser : AffineEraser
        An orthogonal projection in standardised coordinates (``left`` is ``right`` transposed).
    facts : dict
        ``rounds`` done, ``directions`` taken out, ``stopped`` (why before the last round, or empty),
        ``not_converged`` (rounds whose probe did not reach its optimum).

    Notes
    -----
    Rows are standardised once. A probe is multinomial, C = 1, at most 500 iterations, without class weights;
    it is fitted in the space that is left, which gives the coefficients of a fit on projected rows. K groups
    give K - 1 directions a round: the mean of the K coefficient rows is the null direction of the
    multinomial model and is taken off first.

    References
    ----------
    Ravfogel et al., Null it out: guarding protected attributes by iterative nullspace projection, ACL 2020.
    """
    present, group = np.unique(codes, return_inverse=True)
    standard = standardising_map(features)
    n_columns = standard.n_columns
    removed = np.zeros((n_columns, 0))
    preconditioner = None
    facts: dict[str, Any] = {"rounds": 0, "directions": 0, "stopped": "", "not_converged": []}
    if len(present) < 2:
        rounds, facts["stopped"] = 0, "there is one group"
    for number in range(1, rounds + 1):
        if removed.shape[1] == n_columns:
            facts["stopped"] = f"no dimension left after round {number - 1}"
            break
        left = np.linalg.qr(removed, mode="complete")[0][:, removed.shape[1] :]
        probe = fit_logistic(
            features,
            group,
            classes=range(len(present)),
            C=PENALTY,
            map=standard if number == 1 else standard.then(left),
            iterations=ITERATIONS,
            preconditioner=preconditioner,
        )
        preconditioner = probe.preconditioner
        if probe.status == "not converged":
            facts["not_converged"].append(number)
        inner = probe.coefficients if number == 1 else probe.coefficients @ left.T
        found = directions_of(inner)
        if found.shape[1] == 0:
            facts["stopped"] = f"no direction tells the groups apart in round {number}"
            break
        removed = np.linalg.qr(np.column_stack([removed, found]))[0]
        facts["rounds"], facts["directions"] = number, removed.shape[1]
    means, within = group_moments(features, group, standard)
    spread = np.where(within > NO_VARIANCE, np.sqrt(within), 1.0)
    eraser = AffineEraser(
        standard.centre,
        standard.scale,
        removed,
        np.ascontiguousarray(removed.T),
        tuple(int(code) for code in present),
        largest_gap(means, spread),
        largest_gap(means - means @ removed @ removed.T, spread),
        spread / standard.scale,
    )
    return eraser, facts


def directions_of(coefficients: Floats) -> Floats:
    """Orthonormal basis, shape (D, r), of the directions that a linear probe reads.

    Parameters
    ----------
    coefficients : ndarray of float64, shape (1, D) or (K, D)
        Of a binary or a multinomial model. The mean of K rows is taken off: adding one vector to all rows
        changes no probability.

    Returns
    -------
    ndarray of float64, shape (D, r)
        r is 1 or at most K - 1; 0 where every coefficient is zero to rounding.
    """
    rows = coefficients if len(coefficients) == 1 else coefficients - coefficients.mean(axis=0)
    _, sizes, basis = np.linalg.svd(rows, full_matrices=False)
    most = max(1, len(coefficients) - 1)
    kept = (sizes > _NO_COEFFICIENT) & (sizes > _WEAKEST * sizes[0]) & (np.arange(len(sizes)) < most)
    return np.ascontiguousarray(basis[kept].T)

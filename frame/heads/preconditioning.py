"""Approximate second derivatives of a fit, so that its iterations are few.

The second derivative of the objective is about ``by_class x (curvature * moments) + penalty``: the weighted
second moments of the standardised features (with a one for the intercept) times a small matrix over classes.
For two classes, and at the start of a fit of several, it is exact but for the rows left out. Rows are drawn
with a chance in proportion to their curvature, the heaviest surely, so that rare positives are all there.

With more than :data:`WIDEST` features the drawn rows themselves are kept instead of their moments, at most
2,048 of them and 128 MiB, and the solve goes through their inner products.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, cholesky

from frame.heads.linear_maps import LinearMap
from frame.heads.passes import Passes

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Features up to which their second moments are kept, (D + 1) x (D + 1) numbers.
WIDEST: Final = 4096
#: Beyond: drawn rows, and numbers in them, at most.
_ROWS, _NUMBERS = 2048, 1 << 25
#: Multiplications of a product of rows with themselves in the time of one number of a pass, measured.
_PRODUCTS_A_NUMBER: Final = 36.0
#: Share of the rows from which all are taken.
_ALMOST_ALL: Final = 0.75
#: Share of the largest curvature below which a row is left out.
_FAINT: Final = 1e-10
#: Added to the diagonal, against its mean, until it can be factorised.
_JITTERS: Final = (1e-12, 1e-10, 1e-8, 1e-6, 1e-4)
_TINY, _LARGE = float(np.finfo(np.float64).tiny), 1e300


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """Second moments of some rows; valid, if less apt, for other weights and labels.

    Attributes
    ----------
    moments : ndarray of float64, shape (D + 1, D + 1), or None
        Weighted mean of the outer product of [(x - centre) * scale, 1].
    sample : ndarray, shape (rows, D + 1), or None
        Rows whose product with themselves is that mean, where there are too many features for it.
    centre, scale : ndarray of float64, shape (D,)
    n_rows : int
        Rows that were drawn.
    whole : bool
        Whether these are all rows that count.
    """

    moments: Floats | None
    sample: NDArray[Any] | None
    centre: Floats
    scale: Floats
    n_rows: int
    whole: bool

    def of_map(self, target: LinearMap) -> tuple[Floats | None, Floats | None]:
        """Moments (M + 1, M + 1), or rows (rows, M + 1), of the columns of a map."""
        ratio = target.scale / self.scale
        shift = (self.centre - target.centre) * target.scale
        same = bool((ratio == 1).all() and (shift == 0).all())
        if self.moments is None:
            rows = np.asarray(self.sample, dtype=np.float64)
            if not same:
                rows = np.hstack([rows[:, :-1] * ratio + rows[:, -1:] * shift, rows[:, -1:]])
            if target.matrix is not None:
                rows = np.hstack([rows[:, :-1] @ target.matrix, rows[:, -1:]])
            return (rows.T @ rows, None) if rows.shape[1] <= len(rows) else (None, rows)
        found = self.moments
        if not same:
            wide = np.append(ratio, 1.0)
            edge = found[:-1, -1] * ratio
            found = found * wide * wide[:, None]
            found[:-1, :-1] += np.outer(shift, edge) + np.outer(edge, shift) + np.outer(shift, shift)
            found[:-1, -1] += shift
            found[-1, :-1] += shift
        if target.matrix is None:
            return found, None
        mapped = np.empty((target.n_columns + 1, target.n_columns + 1))
        mapped[:-1, :-1] = target.matrix.T @ (found[:-1, :-1] @ target.matrix)
        mapped[:-1, -1] = mapped[-1, :-1] = target.matrix.T @ found[:-1, -1]
        mapped[-1, -1] = 1.0
        return mapped, None


def rows_worth_drawing(n_rows: int, n_features: int, n_classes: int) -> int:
    """Rows at which drawing more costs as much as the passes they save.

    With m rows an iteration leaves about sqrt(D / m) of the error, and a pass over all rows costs n * D
    numbers, m rows m * D**2 multiplications; at the optimum m log(m / D)**2 = 36 * 36 * n / D for a gradient
    that is to fall by e**18.
    """
    passes = max(n_classes - 1, 1)
    aim = 36.0 * _PRODUCTS_A_NUMBER * passes * n_rows / n_features**2
    low, high = np.e, 1e9
    for _ in range(60):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if middle * np.log(middle) ** 2 < aim else (low, middle)
    count = int(np.ceil(low * n_features))
    return n_rows if count > _ALMOST_ALL * n_rows else count


def products_in_passes(count: int, n_rows: int, n_features: int) -> float:
    """What the moments of ``count`` rows cost, in passes over all rows."""
    return count * n_features / (_PRODUCTS_A_NUMBER * n_rows)


def drawn_rows(shares: Floats, count: int, seed: int) -> tuple[Integers, Floats]:
    """Rows drawn without replacement with a chance in proportion to their share, and what each stands for.

    Rows whose chance would pass 1 are taken and the others drawn for the places left, systematically. The
    sum of what they stand for is that of all shares in expectation.
    """
    if int((shares > 0).sum()) <= count:
        rows = np.flatnonzero(shares)
        return rows, shares[rows]
    sure = np.zeros(len(shares), dtype=np.bool_)
    while True:
        left = count - int(sure.sum())
        chance = shares * (left / shares[~sure].sum())
        more = ~sure & (chance >= 1)
        if not more.any():
            break
        sure |= more
    chance[sure] = 1.0
    places = np.floor(np.cumsum(chance) + np.random.default_rng(seed).random())
    rows = np.flatnonzero(np.diff(places, prepend=0.0) > 0)
    return rows, shares[rows] / chance[rows]


def preconditioner_from(
    passes: Passes, curvatures: Floats, at: LinearMap, count: int, seed: int
) -> Preconditioner:
    """Draw rows in proportion to their curvature (n,); moments are of the features as a map standardises."""
    shares = np.where(curvatures > _FAINT * curvatures.max(initial=0.0), curvatures, 0.0)
    wide = passes.n_features > WIDEST
    if wide:
        count = max(min(count, _ROWS, _NUMBERS // passes.n_features), 1)
    rows, stands = drawn_rows(shares, count, seed)
    if not len(rows):  # every row is predicted with certainty
        rows, stands = np.arange(1), np.ones(1)
    roots = np.sqrt(stands / stands.sum())
    take = passes.standardised if wide else passes.moments
    found = take(rows, roots, at.centre, at.scale)
    whole = len(rows) == int((shares > 0).sum())
    moments, sample = (None, found) if wide else (found, None)
    return Preconditioner(moments, sample, at.centre, at.scale, len(rows), whole)


class Factor:
    """The preconditioner of one fit at one point, made ready to be solved with."""

    def __init__(
        self, found: Preconditioner, at: LinearMap, curvature: float, by_class: Floats, penalty: float
    ) -> None:
        moments, rows = found.of_map(at)
        strengths, self._turn = np.linalg.eigh(by_class)
        # Directions in which all classes move alike change no prediction; the penalty alone rules them.
        known = strengths > 1e-12
        self._penalty = penalty
        self._solvers: list[_Dense | _LowRank | None] = []
        for strength, there in zip(strengths * curvature, known, strict=True):
            if not there:
                self._solvers.append(None)
            elif moments is not None:
                self._solvers.append(_Dense(moments, float(strength), penalty))
            else:
                assert rows is not None
                self._solvers.append(_LowRank(rows, float(strength), penalty, found.whole))

    def solve(self, gradient: Floats) -> Floats:
        """The step that the preconditioner takes for a gradient, both of shape (K, M + 1)."""
        turned = self._turn.T @ gradient
        for k, solver in enumerate(self._solvers):
            if solver is None:
                turned[k, :-1] /= self._penalty
                turned[k, -1] = 0.0
            else:
                turned[k] = solver.solve(turned[k])
        return np.asarray(self._turn @ turned, dtype=np.float64)


class _Dense:
    def __init__(self, moments: Floats, strength: float, penalty: float) -> None:
        diagonal = np.diagonal(moments) * strength
        ridge = np.append(np.full(len(moments) - 1, penalty), 0.0)
        self._alone: Floats | None = None
        for jitter in _JITTERS:
            whole = moments * strength
            whole[np.diag_indices_from(whole)] += ridge + jitter * (diagonal.mean() + _TINY)
            try:
                self._factor = cholesky(whole, lower=True, overwrite_a=True, check_finite=False)
            except LinAlgError:
                continue
            return
        # Numbers too large for their squares: the columns by themselves.
        self._alone = np.minimum(np.nan_to_num(diagonal, posinf=_LARGE), _LARGE) + ridge + _TINY

    def solve(self, gradient: Floats) -> Floats:
        if self._alone is not None:
            return gradient / self._alone
        return np.asarray(cho_solve((self._factor, True), gradient, check_finite=False), dtype=np.float64)


class _LowRank:
    """(1 - s) R'R + s diag(R'R) + penalty of rows R, s after Ledoit and Wolf (2004, J Multivar Anal)."""

    def __init__(self, rows: Floats, strength: float, penalty: float, whole: bool) -> None:
        inner = rows @ rows.T
        own = np.einsum("ij,ij->j", rows, rows)
        if whole:
            shrinkage = 0.0
        else:
            square = float((inner**2).sum())
            noise = float((np.diagonal(inner) ** 2).sum()) - square / len(rows)
            spread = square - float(np.trace(inner)) ** 2 / rows.shape[1]
            shrinkage = min(max(noise, 0.0) / max(spread, noise, _TINY), 1.0)
        ridge = np.append(np.full(len(own) - 1, penalty), 0.0)
        self._diagonal = ridge + strength * (shrinkage * own + 1e-9 * own.mean())
        self._rows = rows * np.sqrt(strength * (1 - shrinkage))
        middle = (self._rows / self._diagonal) @ self._rows.T
        middle[np.diag_indices_from(middle)] += 1.0
        self._factor = cholesky(middle, lower=True, overwrite_a=True, check_finite=False)

    def solve(self, gradient: Floats) -> Floats:
        first = gradient / self._diagonal
        inner = cho_solve((self._factor, True), self._rows @ first, check_finite=False)
        return np.asarray(first - (inner @ self._rows) / self._diagonal, dtype=np.float64)

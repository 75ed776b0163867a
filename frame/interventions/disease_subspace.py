"""Directions of the features that a linear head reads a disease from, one after another.

A head is fitted, its direction is recorded, the features are deflated along it, and the next head is fitted
on what is left. The features are never rewritten: with Q the directions so far, deflated and standardised
features are ``(x - mean) (I - QQ') diag(1 / sd)``, a :class:`~frame.heads.linear_maps.LinearMap` that the
solver folds into its coefficients, and every ``sd`` follows from one covariance of the training rows.

Where the description (Supplementary Algorithm 2 of the paper) leaves a choice, this is done:

* A head is the disease head: balanced class weights, penalty C = 1 on the coefficients of standardised
  features, an intercept without penalty. Its direction is taken to the coordinates of the features and
  scaled to length 1.
* **The recorded direction is orthogonal to the ones before.** The coefficients of a head on deflated
  features, divided by their standard deviations, are not orthogonal to what was removed; what the head reads
  of the features is that vector projected on what is left. The projection is recorded. The columns of the
  basis are therefore orthonormal and nested: the first j of them are what a run of j directions gives.
* **The standardisation is computed again after every deflation**, as a sequence of scikit-learn fits with a
  ``StandardScaler`` would do it. A column of which less than 1e-10 of its variance is left takes no further
  part (it would be rounding noise, blown up to a standard deviation of 1).
* **Constant columns are dropped** before anything is fitted; the directions are 0 there.
* **A zero direction ends the sequence**: where the gradient of the head at zero coefficients is not above the
  tolerance of the fit, nothing is left that a head reads. The number reached is recorded, with the reason.
* **At most half of the columns that vary** are used as directions; a larger number is not run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from frame.errors import InputError
from frame.heads.linear_maps import LinearMap
from frame.interventions.training_moments import class_labels, column_moments, covariance_of
from frame.mitigation.feature_matrix import check_matrix

if TYPE_CHECKING:
    from frame.heads.logistic import LogisticFit

__all__ = [
    "ENTANGLEMENT_STRENGTHS",
    "TOLERANCE",
    "DiseaseSubspace",
    "disease_direction",
    "disease_subspace",
    "largest_dimension",
]

Floats = NDArray[np.float64]

#: Dimensions of the removed subspace, as in the paper.
ENTANGLEMENT_STRENGTHS: Final = (0, 1, 4, 16, 64, 256)
#: Largest gradient of a fit, per unit of weight (scikit-learn's ``tol``).
TOLERANCE: Final = 1e-8
#: Least share of a column's variance that may be left after deflation.
_LEAST_LEFT: Final = 1e-10
_ITERATIONS: Final = 1000
#: The shared second derivative is made anew after these directions, as the signal and with it the curvature
#: of the rows changes most at first, and where a fit needs more iterations than this and than it used to.
_RENEWED: Final = (1, 4, 16, 64)
_SLOW: Final = 10


@dataclass(frozen=True, eq=False)
class DiseaseSubspace:
    """Nested disease directions, in the coordinates of the features.

    Attributes
    ----------
    basis : ndarray of float64, shape (D, reached)
        Orthonormal columns in the order in which they were found; 0 in constant columns.
    asked, reached : int
        Directions asked for, and found.
    reason : str
        Why fewer were found; empty where all were.
    iterations : tuple of int
        Of the solver, for each direction.
    passes : tuple of float
        Readings of the training rows, for each direction.
    gradients : tuple of float
        Gradient at which each fit ended, per unit of weight.
    n_not_converged : int
        Fits that ended above the tolerance.
    constant_columns : ndarray of int64
        Columns that hold one value in all training rows.
    n_rows : int
        Training rows.
    most : int
        Directions that may be run: half of the columns that vary, rounded down.
    """

    basis: Floats = field(repr=False)
    asked: int
    reached: int
    reason: str
    iterations: tuple[int, ...] = field(repr=False)
    passes: tuple[float, ...] = field(repr=False)
    gradients: tuple[float, ...] = field(repr=False)
    n_not_converged: int
    constant_columns: NDArray[np.int64] = field(repr=False)
    n_rows: int
    most: int

    def why_not(self, k: int) -> str:
        """Why k directions cannot be removed; empty where they can."""
        if k <= self.reached:
            return ""
        if k > self.most:
            return _too_many(k, len(self.basis) - len(self.constant_columns))
        return self.reason or f"the subspace was fitted with {self.asked} direction{'s' * (self.asked != 1)}"

    def first(self, k: int) -> Floats:
        """The first k directions, shape (D, k); what a run of k gives."""
        if not 0 <= k <= self.reached:
            why = self.why_not(k)
            raise InputError(
                f"{k} disease direction{' was' if k == 1 else 's were'} asked for, and {self.reached} "
                f"{'was' if self.reached == 1 else 'were'} found"
                f"{f' ({why})' if why else ''}; ask for 0 to {self.reached}."
            )
        return self.basis[:, :k]


def largest_dimension(n_columns: int, strengths: Sequence[int] = ENTANGLEMENT_STRENGTHS) -> int:
    """The largest strength that is at most half of the columns that vary; 0 where none is."""
    return max((k for k in strengths if k <= n_columns // 2), default=0)


def _too_many(k: int, n_varying: int) -> str:
    columns = "1 column that varies" if n_varying == 1 else f"{n_varying:,} columns that vary"
    return f"{k} direction{' is' if k == 1 else 's are'} more than half of the {columns}"


def _after(k: int) -> str:
    return "" if k == 0 else f" after {k} direction{'' if k == 1 else 's'}"


class Deflation:
    """What is left of standardised features without the directions so far, as a map of the features."""

    def __init__(self, mean: Floats, covariance: Floats) -> None:
        self._mean = mean
        self._covariance = covariance.copy()  # of what is left
        self._total = np.diag(covariance).copy()
        self._left = np.diag((self._total > 0).astype(np.float64))  # I - QQ', without constant columns
        self.basis = np.empty((len(mean), 0))

    def standardised(self) -> LinearMap:
        """Map of the features to what is left, each column with a standard deviation of 1 (or all 0)."""
        variance = np.diag(self._covariance)
        kept = variance > _LEAST_LEFT * self._total
        scale = np.zeros(len(variance))
        np.divide(1.0, np.sqrt(variance, where=kept, out=np.ones_like(variance)), where=kept, out=scale)
        return LinearMap(self._mean, np.ones(len(scale)), self._left * scale)

    def orthogonal(self, vector: Floats) -> Floats:
        """Unit vector of what a vector has outside of the directions so far; zeros where that is nothing."""
        length = float(np.linalg.norm(vector))
        if length == 0 or not np.isfinite(length):
            return np.zeros_like(vector)
        unit = vector / length
        for _ in range(2):  # once leaves rounding behind, twice is enough
            unit = unit - self.basis @ (self.basis.T @ unit)
        left = float(np.linalg.norm(unit))
        return unit / left if left > 1e-8 else np.zeros_like(vector)

    def remove(self, direction: Floats) -> None:
        """Take a unit direction, orthogonal to the former ones, out of the features."""
        self.basis = np.column_stack([self.basis, direction])
        self._left -= np.outer(direction, direction)
        along = self._covariance @ direction
        along -= (direction @ along / 2) * direction
        change = np.outer(direction, along)
        self._covariance -= change
        self._covariance -= change.T


def disease_subspace(
    features: NDArray[Any],
    labels: Any,
    k: int = ENTANGLEMENT_STRENGTHS[-1],
    *,
    tolerance: float = TOLERANCE,
    threads: int | None = None,
    device: str = "cpu",
    progress: Callable[[int, int], None] | None = None,
) -> DiseaseSubspace:
    """Nested disease directions of training rows; see the head of this module for what is done exactly.

    Parameters
    ----------
    features : ndarray of float16, float32 or float64, shape (n, D)
        Training rows; may be read-only or mapped from a file (then read once per pass).
    labels : array_like, shape (n,)
        0 and 1.
    k : int
        Directions asked for.
    tolerance : float
        Largest gradient of each fit, per unit of weight.
    threads : int, optional
        Of the solver.
    device : str
        Of the solver.
    progress : callable, optional
        Called with the directions found and those that are looked for, after each.

    Returns
    -------
    DiseaseSubspace
        With fewer directions, and a reason, where k is more than half of the columns that vary, where no
        disease signal or no variance is left, or where all labels are the same.

    Raises
    ------
    InputError
        For rows that are not finite (with their number), labels that are not 0 and 1, or k below 0.
    """
    features = check_matrix(features)
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 0:
        raise InputError(f"The number of disease directions is {k!r}; give a whole number from 0.")
    codes = class_labels(labels, len(features))
    columns = column_moments(features)
    varying = np.flatnonzero(~columns.constant)
    most = len(varying) // 2
    reason = ""
    if k > most:
        reason = _too_many(int(k), len(varying))
    found = _Sequence(features, codes, tolerance, threads, device)
    if k and most and len(np.unique(codes)) < 2:
        reason = f"all {len(codes):,} training rows have the same label"
    elif min(k, most):
        reason = found.run(columns.mean, varying, min(int(k), most), progress) or reason
    return found.result(int(k), reason, np.flatnonzero(columns.constant))


def disease_direction(
    features: NDArray[Any],
    labels: Any,
    *,
    tolerance: float = TOLERANCE,
    threads: int | None = None,
    device: str = "cpu",
) -> Floats:
    """Direction of a disease head on standardised training rows, in the coordinates of the features.

    It is the first column of :func:`disease_subspace`, which has it already where that was run.

    Returns
    -------
    ndarray of float64, shape (D,)
        Of length 1; 0 in constant columns.

    Raises
    ------
    InputError
        Where there is none: all labels or all rows are the same, or no head reads the disease.
    """
    features = check_matrix(features)
    codes = class_labels(labels, len(features))
    columns = column_moments(features)
    varying = np.flatnonzero(~columns.constant)
    reason = f"all {len(codes):,} training rows have the same label"
    found = _Sequence(features, codes, tolerance, threads, device)
    if len(np.unique(codes)) == 2:
        reason = found.run(columns.mean, varying, 1, None)
    if not found.directions:
        raise InputError(f"There is no disease direction: {reason}.")
    return found.directions[0]


class _Sequence:
    """The fits of one sequence, and what they found."""

    def __init__(
        self,
        features: NDArray[Any],
        codes: NDArray[np.int8],
        tolerance: float,
        threads: int | None,
        device: str,
    ) -> None:
        self._features, self._codes, self._tolerance = features, codes, tolerance
        self._threads, self._device = threads, device
        self._preconditioner: Any = None
        self._fresh = 0  # iterations of the fit that the second derivative was last made after
        self.directions: list[Floats] = []
        self._fits: list[tuple[int, float, float, bool]] = []

    def run(
        self, mean: Floats, varying: NDArray[np.int64], k: int, progress: Callable[[int, int], None] | None
    ) -> str:
        """Find up to k directions; why fewer were found, or nothing."""
        covariance = covariance_of(self._features, mean)
        dropped = np.setdiff1d(np.arange(len(mean)), varying)
        covariance[dropped] = 0.0
        covariance[:, dropped] = 0.0
        difference = self._difference_of_means(mean)
        difference[dropped] = 0.0
        deflation = Deflation(mean, covariance)
        for j in range(k):
            step = deflation.standardised()
            assert step.matrix is not None
            if not step.matrix.any():
                return f"no variance is left{_after(j)}"
            # Balanced weights give each class half: at 0 the gradient is a quarter of the means' difference.
            if np.abs(difference @ step.matrix).max() / 4 <= self._tolerance:
                return f"no disease signal is left{_after(j)}"
            fit = self._fitted(step)
            direction = deflation.orthogonal(step.matrix @ fit.coefficients[0])
            if not direction.any():
                return f"no disease signal is left{_after(j)}"
            self._fits.append((fit.iterations, fit.passes, fit.gradient, fit.status == "converged"))
            self.directions.append(direction)
            deflation.remove(direction)
            if progress is not None:
                progress(j + 1, k)
        return ""

    def _difference_of_means(self, mean: Floats) -> Floats:
        """Mean of the positive training rows less that of the negative ones, shape (D,)."""
        sums = np.zeros((2, len(mean)))
        for first in range(0, len(self._codes), 4096):
            part = slice(first, first + 4096)
            centred = np.asarray(self._features[part], dtype=np.float64) - mean
            for k in (0, 1):
                sums[k] += (self._codes[part] == k).astype(np.float64) @ centred
        counts = np.bincount(self._codes, minlength=2)
        found: Floats = sums[1] / counts[1] - sums[0] / counts[0]
        return found

    def _fitted(self, step: LinearMap) -> LogisticFit:
        """The head on what is left.

        The former head reads nothing of it, so there are no coefficients to start from. What is shared is
        the second derivative of the head in the coordinates of the features, over all rows, which the solver
        takes to each map. It depends on the directions so far alone, so that a longer run has the same ones.
        """
        from frame.heads.logistic import fit_logistic, preconditioner_of

        fit = fit_logistic(
            self._features,
            self._codes,
            classes=(0, 1),
            class_weight="balanced",
            map=step,
            preconditioner=self._preconditioner,
            iterations=_ITERATIONS,
            tolerance=self._tolerance,
            threads=self._threads,
            device=self._device,
        )
        place = len(self._fits) + 1
        if place in _RENEWED or fit.iterations > max(_SLOW, 1.5 * self._fresh):
            chance = fit.probability(self._features)
            shares = (len(self._codes) / (2 * np.bincount(self._codes, minlength=2)))[self._codes]
            curvatures = shares * chance * (1 - chance)
            self._preconditioner = preconditioner_of(
                self._features,
                map=step,
                weights=curvatures,
                rows=len(self._codes),
                device=self._device,
                threads=self._threads,
            )
            self._fresh = fit.iterations
        return fit

    def result(self, asked: int, reason: str, constant: NDArray[np.int64]) -> DiseaseSubspace:
        n_columns = self._features.shape[1]
        basis = np.column_stack(self.directions) if self.directions else np.empty((n_columns, 0))
        return DiseaseSubspace(
            basis=basis,
            asked=asked,
            reached=len(self.directions),
            reason=reason,
            iterations=tuple(fit[0] for fit in self._fits),
            passes=tuple(float(fit[1]) for fit in self._fits),
            gradients=tuple(float(fit[2]) for fit in self._fits),
            n_not_converged=sum(not fit[3] for fit in self._fits),
            constant_columns=constant,
            n_rows=len(self._features),
            most=(n_columns - len(constant)) // 2,
        )

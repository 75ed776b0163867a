"""Two operators that inject a candidate cause into features, before any head is fitted.

For features X (N x D), signs a, sigma the mean over dimensions of the standard deviation over training rows,
u a random unit vector orthogonal to the disease direction, and U_k a basis of k disease directions
(Equation 3 of the paper):

* decodability, ``X + s sigma a u'``: moves whole groups apart, along a direction in which no disease lies;
* entanglement, ``X - D_a X U_k U_k'`` with ``D_a = diag(1[a < 0])``: takes the disease directions out of the
  rows of every group but the largest.

A third one, with removal by shares in whitened coordinates, is in
:mod:`frame.interventions.whitened_directions`.

Equation 4: with any fixed linear head theta, every score of a group moves by the same ``s sigma a theta'u``
under the decodability operator, so that no AUROC within a group changes and equal rows stay equal. In
arithmetic this holds as far as the numbers are wide: the injected rows are float64, and two different scores
closer than their rounding may change places. Stored as float32 the rounding is 5e8 times coarser.

Rows with a sign of 0, whose group is not known, are left as they are, bit for bit. A group that is to be
excluded leaves the analysis altogether: its rows are dropped by the caller before anything is fitted or
measured; its sign is 0 as well, so that no operator touches them where they are still there.

Every row is changed by itself, in one order of operations, so that results are the same bytes from run to run
and in blocks of any size. A strength of 0 gives back what it was given, not a copy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from frame.errors import InputError
from frame.interventions.group_signs import signs_of
from frame.interventions.operator_inputs import (
    check_signs,
    checked_rows,
    checked_strength,
    output_type,
    row_numbers,
)
from frame.interventions.training_moments import column_moments
from frame.mitigation.feature_matrix import check_finite, check_matrix

if TYPE_CHECKING:
    from frame.interventions.disease_subspace import DiseaseSubspace

__all__ = [
    "AVERAGED_DIRECTIONS",
    "BLOCK",
    "DECODABILITY_STRENGTHS",
    "DecodabilityOperator",
    "EntanglementOperator",
    "Operator",
    "decodability_operator",
    "entanglement_operator",
    "injected_blocks",
    "injected_rows",
    "random_direction",
    "signs_of",
]

Floats = NDArray[np.float64]

#: Strengths of the decodability operator, as in the paper.
DECODABILITY_STRENGTHS: Final = (0.0, 0.25, 0.5, 1.0)
#: Random directions that a change under the decodability operator is averaged over: seeds 0 to 19.
AVERAGED_DIRECTIONS: Final = 20
#: Rows of a block, as in the paper; no result depends on it.
BLOCK: Final = 50_000
#: Rows that are read and changed at a time inside a block, so that one copy of a block is held and not three.
_STEP: Final = 4096
#: Keeps these random numbers apart from others of the same seed.
_STREAM: Final = 7


class Operator(Protocol):
    """What changes features at a strength."""

    @property
    def name(self) -> str:
        """What it is called in results."""

    @property
    def strengths(self) -> tuple[float, ...]:
        """Strengths that are run, rising from 0."""

    @property
    def not_run(self) -> Mapping[float, str]:
        """Strengths that were asked for and cannot be run, each with the reason."""

    def apply(self, rows: NDArray[Any], signs: NDArray[Any], strength: float) -> NDArray[Any]:
        """Changed rows (n, D) as float64, a new array; at strength 0 the rows that were given."""


# -- decodability ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DecodabilityOperator:
    """``X + s sigma a u'``.

    Attributes
    ----------
    sigma : float
        Mean over dimensions of the standard deviation over training rows, in units of the features.
    direction : ndarray of float64, shape (D,)
        u: of length 1, orthogonal to the disease direction.
    seed : int
        That u was drawn with.
    """

    sigma: float
    direction: Floats = field(repr=False)
    seed: int
    strengths: tuple[float, ...] = DECODABILITY_STRENGTHS
    not_run: Mapping[float, str] = field(default_factory=dict)
    name: str = "decodability"

    def apply(self, rows: NDArray[Any], signs: NDArray[Any], strength: float) -> NDArray[Any]:
        """Move each row by its sign times s sigma u; see :class:`Operator`.

        Raises
        ------
        InputError
            For a strength below 0, signs that do not belong to the rows, or rows that are not finite.
        """
        s = checked_strength(strength, self.name, None)
        given, a = checked_rows(rows, signs, len(self.direction))
        if s == 0:
            return rows
        changed = np.array(given, dtype=np.float64)  # a copy, exact for narrower numbers
        step = (s * self.sigma) * self.direction
        for sign in (1, -1):
            chosen = a == sign
            changed[chosen] += sign * step
        return changed


def random_direction(disease_direction: NDArray[Any], seed: int) -> Floats:
    """Random unit vector that is orthogonal to the disease direction, shape (D,).

    Parameters
    ----------
    disease_direction : ndarray, shape (D,)
        Of any length above 0.
    seed : int
        From 0. Directions of different seeds are independent, and that of a seed does not depend on how
        many others are drawn.

    Raises
    ------
    InputError
        For a direction that is zero or not finite, fewer than two dimensions, or a seed below 0.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"The seed of a random direction is {seed!r}; give a whole number from 0.")
    w = np.asarray(disease_direction, dtype=np.float64)
    length = float(np.linalg.norm(w)) if w.ndim == 1 else math.nan
    if not (length > 0 and math.isfinite(length)):
        raise InputError(
            f"The disease direction has shape {w.shape} and length {length:g}; give one finite vector that "
            "is not zero."
        )
    if len(w) < 2:
        raise InputError("In one dimension nothing is orthogonal to the disease direction; two are needed.")
    w = w / length
    generator = np.random.default_rng(np.random.SeedSequence(int(seed), spawn_key=(_STREAM,)))
    u = generator.standard_normal(len(w))
    for _ in range(4):  # each round takes out the rounding that the one before left
        u = u - math.fsum(u * w) * w
        u = u / np.linalg.norm(u)
    found: Floats = u
    return found


def decodability_operator(
    features: NDArray[Any],
    train: NDArray[Any] | None,
    signs: NDArray[Any],
    disease_direction: NDArray[Any],
    *,
    seed: int = 0,
    strengths: Sequence[float] = DECODABILITY_STRENGTHS,
) -> DecodabilityOperator:
    """Make the decodability operator of some features.

    Parameters
    ----------
    features : ndarray of float16, float32 or float64, shape (N, D)
        May be mapped from a file; its training rows are read in blocks, twice.
    train : ndarray of bool (N,) or of row numbers, or None
        Training rows; None: all.
    signs : ndarray, shape (N,)
        Of :func:`signs_of`; only checked here.
    disease_direction : ndarray, shape (D,)
        Of :func:`frame.interventions.disease_subspace.disease_direction`.
    seed : int
        Of the random direction u; 0 to 19 for the 20 that a change is averaged over. Use
        :func:`dataclasses.replace` with :func:`random_direction` to read the features once for all of them.
    strengths : sequence of float
        Not below 0; 0 is added where it is missing.

    Raises
    ------
    InputError
        See :func:`random_direction`; or training rows that are not finite, with their number.
    """
    matrix = check_matrix(features)
    check_signs(np.asarray(signs), len(matrix))
    if np.shape(disease_direction) != (matrix.shape[1],):
        raise InputError(
            f"The features have {matrix.shape[1]:,} columns and the disease direction the shape "
            f"{np.shape(disease_direction)}; they must belong together."
        )
    run = sorted({0.0, *(checked_strength(s, "decodability", None) for s in strengths)})
    numbers = row_numbers(train, len(matrix))
    sigma = float(column_moments(matrix, None if train is None else np.sort(numbers)).deviation.mean())
    return DecodabilityOperator(sigma, random_direction(disease_direction, seed), int(seed), tuple(run))


# -- entanglement ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class EntanglementOperator:
    """``X - D_a X U_k U_k'``, the strength being k.

    Attributes
    ----------
    basis : ndarray of float64, shape (D, reached)
        Nested disease directions; the first k of them are removed.
    reason : str
        Why there are no more directions; empty where all were found.
    """

    basis: Floats = field(repr=False)
    strengths: tuple[float, ...]
    not_run: Mapping[float, str] = field(default_factory=dict)
    reason: str = ""
    name: str = "entanglement"

    def apply(self, rows: NDArray[Any], signs: NDArray[Any], strength: float) -> NDArray[Any]:
        """Take the first k directions out of the rows with a sign of -1; see :class:`Operator`.

        Raises
        ------
        InputError
            For a k that is not whole or passes the directions found, signs that do not belong to the rows,
            or rows that are not finite.
        """
        from frame.heads.passes import available_threads
        from frame.interventions.row_products import remove_projection

        k = checked_strength(strength, self.name, self.basis.shape[1], self.reason)
        given, a = checked_rows(rows, signs, len(self.basis))
        if k == 0:
            return rows
        changed = np.array(given, dtype=np.float64)
        left = self.basis[:, : int(k)]
        remove_projection(changed, np.flatnonzero(a < 0), left, left.T, threads=available_threads())
        return changed


def entanglement_operator(
    subspace: DiseaseSubspace, strengths: Sequence[int] | None = None
) -> EntanglementOperator:
    """Make the entanglement operator of a disease subspace.

    Parameters
    ----------
    subspace : DiseaseSubspace
        Fitted once, at the largest strength.
    strengths : sequence of int, optional
        Dimensions to remove; 0 is added where it is missing. None: those of the paper. What passes the
        directions found is in ``not_run`` with the reason.
    """
    from frame.interventions.disease_subspace import ENTANGLEMENT_STRENGTHS

    asked = ENTANGLEMENT_STRENGTHS if strengths is None else strengths
    wanted = sorted({0, *(int(checked_strength(k, "entanglement", math.inf)) for k in asked)})
    return EntanglementOperator(
        basis=subspace.basis,
        strengths=tuple(float(k) for k in wanted if k <= subspace.reached),
        not_run={float(k): subspace.why_not(k) for k in wanted if k > subspace.reached},
        reason=subspace.reason,
    )


# -- streaming ------------------------------------------------------------------------------------------


def injected_blocks(
    operator: Operator,
    features: NDArray[Any],
    signs: NDArray[Any],
    strength: float,
    rows: NDArray[Any] | None = None,
    size: int = BLOCK,
    *,
    dtype: Any = np.float64,
) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Injected features block by block, without a second copy of the features.

    Parameters
    ----------
    operator : Operator
    features : ndarray of float16, float32 or float64, shape (N, D)
        May be read-only or mapped from a file.
    signs : ndarray, shape (N,)
        Of :func:`signs_of`.
    strength : float
    rows : ndarray of bool (N,) or of row numbers, optional
        Rows to inject, in this order; None: all.
    size : int
        Rows of a block, at least 1. The bytes of a row do not depend on it.
    dtype : dtype
        Of the blocks: float64, or float32 where the features are not wider. At strength 0 blocks come as
        they are stored.

    Yields
    ------
    (slice, ndarray)
        Places among the rows asked for, and their features.

    Raises
    ------
    InputError
        At the first block, for a mistake of the caller; for rows that are not finite, with their number.
    """
    matrix = check_matrix(features)
    a = np.asarray(signs)
    check_signs(a, len(matrix))
    kind = output_type(dtype, matrix.dtype)
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
        raise InputError(f"A block of {size!r} rows was asked for; give a whole number from 1.")
    numbers = None if rows is None else row_numbers(rows, len(matrix))
    total = len(matrix) if numbers is None else len(numbers)
    for first in range(0, total, int(size)):
        place = slice(first, min(first + int(size), total))
        chosen: Any = place if numbers is None else numbers[place]
        if strength == 0:
            block = matrix[chosen]
            _whole(operator, matrix, block, a[chosen], strength, numbers)
        else:
            block = np.empty((place.stop - place.start, matrix.shape[1]), dtype=kind)
            for low in range(place.start, place.stop, _STEP):
                part: Any = slice(low, min(low + _STEP, place.stop))
                inner = slice(part.start - first, part.stop - first)
                part = part if numbers is None else numbers[part]
                block[inner] = _whole(operator, matrix, matrix[part], a[part], strength, numbers)
        yield place, block


def injected_rows(
    operator: Operator,
    features: NDArray[Any],
    signs: NDArray[Any],
    rows: NDArray[Any] | None,
    strength: float,
    *,
    dtype: Any = np.float64,
) -> NDArray[Any]:
    """Injected features of some rows, in memory: shape (m, D).

    Parameters
    ----------
    operator, features, signs, rows, strength, dtype
        As of :func:`injected_blocks`.

    Returns
    -------
    ndarray
        Of ``dtype``. At strength 0 the rows as they are stored: the same object where ``rows`` is None, else
        a selection of the same bytes.
    """
    matrix = check_matrix(features)
    if strength == 0:
        for _ in injected_blocks(operator, features, signs, strength, rows, _STEP, dtype=dtype):
            pass  # the same checks as at every other strength
        return features if rows is None else matrix[row_numbers(rows, len(matrix))]
    n_rows = len(matrix) if rows is None else len(row_numbers(rows, len(matrix)))
    found = np.empty((n_rows, matrix.shape[1]), dtype=output_type(dtype, matrix.dtype))
    for place, block in injected_blocks(operator, features, signs, strength, rows, _STEP, dtype=dtype):
        found[place] = block
    return found


def _whole(
    operator: Operator,
    matrix: NDArray[Any],
    block: NDArray[Any],
    signs: NDArray[Any],
    strength: float,
    numbers: NDArray[np.int64] | None,
) -> NDArray[Any]:
    """The operator on a block; where a row is not finite, the error counts all rows that were asked for."""
    try:
        return operator.apply(block, signs, strength)
    except InputError:
        check_finite(matrix, np.arange(len(matrix)) if numbers is None else np.unique(numbers))
        raise

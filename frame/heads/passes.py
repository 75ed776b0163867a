"""Passes over the rows of a fit, in blocks on several threads.

The solver sees rows through :class:`Passes` alone: sums over rows at given coefficients, and weighted second
moments. Blocks are fixed by row numbers and added in order, so that no result depends on the threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from frame.heads import kernels

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Integers = NDArray[np.int64]
Result = TypeVar("Result")

#: Rows of a block: fixed, so that sums do not depend on the number of threads.
BLOCK: Final = 4096
#: Rows at a time that are widened from float16, or copied from another layout.
_FEW: Final = 256
#: Rows of a product of a block with itself.
_PRODUCT: Final = 2048
#: Numbers of a matrix from which threads save more than they cost.
_WORTH_THREADS: Final = 200_000
#: Columns from which second moments of rows that are not float64 are taken in float32, block by block.
_SINGLE_FROM: Final = 512


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Sums over rows at some coefficients.

    Attributes
    ----------
    loss : float
        Weighted log-loss.
    gradient, slopes : ndarray of float64, shapes (K, D) and (K,)
        Its derivatives in the coefficients and intercepts; K is 1 for two classes.
    margins : object
        What each row's prediction is, as the passes keep it.
    """

    loss: float
    gradient: Floats
    slopes: Floats
    margins: Any


class Passes(Protocol):
    """What the solver asks of the rows, wherever they lie."""

    n_rows: int
    n_features: int

    def evaluate(self, coefficients: Floats, intercepts: Floats) -> Evaluation:
        """One pass at coefficients (K, D) and intercepts (K,)."""

    def along(self, first: Any, last: Any, step: float) -> tuple[float, float, float]:
        """Loss and its two derivatives in the step from the first margins towards the last."""

    def curvatures(self, margins: Any) -> tuple[Floats, Floats]:
        """Each row's curvature, shape (n,), and what they are by class, shape (K, K), trace 1."""

    def standardised(self, rows: Integers, roots: Floats, centre: Floats, scale: Floats) -> Floats:
        """Root times [(x - centre) * scale, 1] of some rows, shape (rows, D + 1)."""

    def moments(self, rows: Integers, roots: Floats, centre: Floats, scale: Floats) -> Floats:
        """The product of those rows with themselves, shape (D + 1, D + 1)."""

    def not_finite(self) -> int:
        """Number of rows with a value that is not finite."""

    def close(self) -> None:
        """Let go of threads or memory."""


def available_threads() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def one_thread_a_product() -> Iterator[None]:
    """Keep the linear algebra library to one thread while blocks are spread over threads.

    A result then does not depend on its threads either. Without threadpoolctl, which comes with scikit-learn,
    nothing is changed.
    """
    try:
        limits = import_module("threadpoolctl").threadpool_limits
    except ImportError:
        yield
        return
    with limits(limits=1, user_api="blas"):
        yield


class Blocks:
    """Rows of a matrix in blocks, worked on by threads; use it in a ``with``."""

    def __init__(self, features: NDArray[Any], threads: int | None = None) -> None:
        self.features = features
        self.n_rows, self.n_features = features.shape
        self.starts = range(0, self.n_rows, BLOCK)
        workers = min(threads or available_threads(), len(self.starts))
        worth = workers > 1 and features.size > _WORTH_THREADS
        self._pool = ThreadPoolExecutor(workers) if worth else None

    def __enter__(self) -> Blocks:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the threads go."""
        if self._pool is not None:
            self._pool.shutdown()

    def each(self, work: Callable[[int], Result], starts: range | None = None) -> Iterator[Result]:
        """Results of the blocks that begin at ``starts``, in their order."""
        return (map if self._pool is None else self._pool.map)(
            work, self.starts if starts is None else starts
        )

    def parts(self, start: int) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Rows of a block as the compiled loops read them."""
        stop = min(start + BLOCK, self.n_rows)
        if self.features.dtype != np.float16 and self.features.flags.c_contiguous:
            yield slice(start, stop), self.features[start:stop]
            return
        for first in range(start, stop, _FEW):
            rows = slice(first, min(first + _FEW, stop))
            yield rows, readable(self.features[rows])

    def not_finite(self) -> int:
        """Number of rows with a value that is not finite."""

        def work(start: int) -> int:
            return int((~np.isfinite(self.features[start : start + BLOCK]).all(axis=1)).sum())

        return sum(self.each(work))


class RowPasses(Blocks):
    """Passes over features in memory, or mapped from a file, on processor threads."""

    def __init__(
        self,
        features: NDArray[Any],
        codes: Codes,
        weights: Floats,
        n_classes: int,
        threads: int | None = None,
    ) -> None:
        super().__init__(features, threads)
        self.codes, self.weights, self.n_classes = codes, weights, n_classes

    def evaluate(self, coefficients: Floats, intercepts: Floats) -> Evaluation:
        """One pass; see :class:`Passes`."""
        binary = self.n_classes == 2
        margins = np.empty(self.n_rows if binary else (self.n_rows, self.n_classes))

        def work(start: int) -> tuple[float, Floats, Floats]:
            loss, gradient, slopes = 0.0, np.zeros_like(coefficients), np.zeros_like(intercepts)
            for rows, features in self.parts(start):
                given = (self.codes[rows], self.weights[rows], margins[rows])
                if binary:
                    more, slope = kernels.binary_pass(
                        features, coefficients[0], intercepts[0], *given, gradient[0]
                    )
                    slopes[0] += slope
                else:
                    more = kernels.softmax_pass(features, coefficients, intercepts, *given, gradient, slopes)
                loss += more
            return loss, gradient, slopes

        loss, gradient, slopes = 0.0, np.zeros_like(coefficients), np.zeros_like(intercepts)
        for block in self.each(work):
            loss += block[0]
            gradient += block[1]
            slopes += block[2]
        return Evaluation(loss, gradient, slopes, margins)

    def along(self, first: Floats, last: Floats, step: float) -> tuple[float, float, float]:
        """Loss and derivatives along a step; see :class:`Passes`."""
        line = kernels.binary_line if self.n_classes == 2 else kernels.softmax_line

        def work(start: int) -> tuple[float, float, float]:
            rows = slice(start, start + BLOCK)
            return line(first[rows], last[rows], self.codes[rows], self.weights[rows], step)

        loss, slope, curve = np.sum(list(self.each(work)), axis=0)
        return float(loss), float(slope), float(curve)

    def curvatures(self, margins: Floats) -> tuple[Floats, Floats]:
        """Curvatures by row and class; see :class:`Passes`."""
        if self.n_classes == 2:
            small = np.exp(-np.abs(margins))
            return self.weights * (small / (1 + small) ** 2), np.ones((1, 1))
        shares = np.exp(margins - margins.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        weighted = self.weights[:, None] * shares
        by_class = np.diag(weighted.sum(axis=0)) - shares.T @ weighted
        trace = max(float(np.trace(by_class)), np.finfo(np.float64).tiny)
        return (weighted * (1 - shares)).sum(axis=1), by_class / trace

    def standardised(self, rows: Integers, roots: Floats, centre: Floats, scale: Floats) -> NDArray[Any]:
        """Some rows, standardised; see :class:`Passes`."""
        return self._standardised(rows, roots, centre, scale, double=False)

    def _standardised(
        self, rows: Integers, roots: Floats, centre: Floats, scale: Floats, *, double: bool
    ) -> NDArray[Any]:
        single = not double and self.features.dtype != np.float64 and self.n_features >= _SINGLE_FROM
        kind = np.float32 if single else np.float64
        out = np.empty((len(rows), self.n_features + 1), kind)
        features = self.features
        if features.dtype == np.float16 or not features.flags.c_contiguous:
            features, rows = readable(features[rows]), np.arange(len(rows))
        given = (roots.astype(kind), centre.astype(kind), scale.astype(kind))
        kernels.centred_rows(features, rows, *given, out)
        return out

    def moments(self, rows: Integers, roots: Floats, centre: Floats, scale: Floats) -> Floats:
        """Second moments of some rows; see :class:`Passes`."""
        total = np.empty((self.n_features + 1, self.n_features + 1))
        for double in (False, True):

            def work(start: int, double: bool = double) -> NDArray[Any]:
                part = slice(start, start + _PRODUCT)
                block = self._standardised(rows[part], roots[part], centre, scale, double=double)
                with np.errstate(over="ignore", invalid="ignore"):  # looked for below
                    product: NDArray[Any] = block.T @ block
                return product

            total[:] = 0.0
            for found in self.each(work, range(0, len(rows), _PRODUCT)):
                total += found
            if np.isfinite(total).all():
                break
        return total


def readable(features: NDArray[Any]) -> NDArray[Any]:
    """A few rows as contiguous float32 or float64."""
    if features.dtype != np.float16:
        return np.ascontiguousarray(features)
    bits = np.ascontiguousarray(features).view(np.uint16)
    singles = np.empty(bits.shape, np.uint32)
    kernels.halves_as_singles(bits, singles)
    return singles.view(np.float32)


def linear_scores(
    features: NDArray[Any], coefficients: Floats, intercepts: Floats, threads: int | None = None
) -> Floats:
    """Scores features @ coefficients.T + intercepts in float64, shape (n, K), features read once."""
    margins = np.empty((len(features), len(coefficients)))
    with Blocks(features, threads) as blocks:

        def work(start: int) -> None:
            for rows, part in blocks.parts(start):
                kernels.products(part, coefficients, intercepts, margins[rows])

        for _ in blocks.each(work):
            pass
    return margins

"""Projections of single rows whose bytes depend on that row alone.

A matrix product of a numerical library takes the sums of a row in an order that may depend on how many rows
stand beside it and on the threads. Here every sum has one order, columns first to last and then directions
first to last, without regrouping and without fused operations: a row gives the same bytes in any block, on
any number of threads and on any machine.

Loaded only where it is needed: this module imports numba and compiles on first use.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from frame.inference.kernels import compiled

__all__ = ["remove_projection"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Rows that read the directions together, so that these lie in the fast cache.
_TILE: Final = 8
#: Rows of a thread's task.
_TASK: Final = 512


@compiled
def _add_product(weights: Floats, rows: Floats, sums: Floats) -> None:
    """Add weights (R, n) @ rows (n, m) to sums (R, m), for every sum from the first row to the last.

    Eight rows at a time only spare reading and writing the sum between them: the order is that of one.
    """
    n_rows, width = rows.shape
    whole = n_rows - n_rows % 8
    for j in range(0, whole, 8):
        a, b, c, d = rows[j], rows[j + 1], rows[j + 2], rows[j + 3]
        e, f, g, h = rows[j + 4], rows[j + 5], rows[j + 6], rows[j + 7]
        for r in range(weights.shape[0]):
            total = sums[r]
            p, q, s, t = weights[r, j], weights[r, j + 1], weights[r, j + 2], weights[r, j + 3]
            u, v, w, x = weights[r, j + 4], weights[r, j + 5], weights[r, j + 6], weights[r, j + 7]
            for k in range(width):
                half = (((total[k] + p * a[k]) + q * b[k]) + s * c[k]) + t * d[k]
                total[k] = (((half + u * e[k]) + v * f[k]) + w * g[k]) + x * h[k]
    for j in range(whole, n_rows):
        for r in range(weights.shape[0]):
            for k in range(width):
                sums[r, k] += weights[r, j] * rows[j, k]


@compiled
def _remove(
    block: Floats,
    chosen: Integers,
    centre: Floats,
    left: Floats,
    right: Floats,
    share: float,
    first: int,
    last: int,
    centred: Floats,
    inner: Floats,
    outer: Floats,
) -> None:
    """Rows chosen[first:last] of the block become x - share * ((x - centre) @ left) @ right."""
    n_columns = left.shape[0]
    for start in range(first, last, _TILE):
        size = min(_TILE, last - start)
        for r in range(size):
            for j in range(n_columns):
                centred[r, j] = block[chosen[start + r], j] - centre[j]
        inner[:size] = 0.0
        outer[:size] = 0.0
        _add_product(centred[:size], left, inner[:size])
        _add_product(inner[:size], right, outer[:size])
        for r in range(size):
            for j in range(n_columns):
                block[chosen[start + r], j] -= share * outer[r, j]


def remove_projection(
    block: Floats,
    chosen: Integers,
    left: NDArray[Any],
    right: NDArray[Any],
    *,
    centre: Floats | None = None,
    share: float = 1.0,
    threads: int = 1,
) -> None:
    """Write x - share ((x - centre) left) right over some rows of a block.

    Parameters
    ----------
    block : ndarray of float64, shape (n, D)
        Changed in place, in the chosen rows only.
    chosen : ndarray of int64, shape (m,)
        Row numbers, each once.
    left : ndarray of float64, shape (D, k)
    right : ndarray of float64, shape (k, D)
    centre : ndarray of float64, shape (D,), optional
        None: zeros.
    share : float
    threads : int
        No result depends on it.
    """
    n_columns, n_directions = left.shape
    given = (
        np.ascontiguousarray(chosen, dtype=np.int64),
        np.zeros(n_columns) if centre is None else np.ascontiguousarray(centre, dtype=np.float64),
        np.ascontiguousarray(left, dtype=np.float64),
        np.ascontiguousarray(right, dtype=np.float64),
        float(share),
    )

    def work(first: int) -> None:
        last = min(first + _TASK, len(chosen))
        held = (np.empty((_TILE, n)) for n in (n_columns, n_directions, n_columns))
        _remove(block, *given, first, last, *held)

    starts = range(0, len(chosen), _TASK)
    if threads <= 1 or len(starts) <= 1:
        for first in starts:
            work(first)
        return
    with ThreadPoolExecutor(min(threads, len(starts))) as pool:
        for _ in pool.map(work, starts):
            pass

"""Compiled passes over rows: margins, losses and gradients of a block in one reading of its features.

A pass reads every row once: the inner product with the coefficients, the loss, and the row's share of the
gradient, while the row is in the processor's cache. Features stay in their own precision; all sums are in
float64. Sums inside a row may be taken in any order, so that they become vector instructions; blocks are
fixed by their row numbers and added in order by the caller, so a result does not depend on threads.

Loaded only where it is needed: this module imports numba and compiles on first use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from frame.errors import InputError

try:
    from numba import njit
except ImportError as error:
    raise InputError("A head needs numba; install it with: pip install 'frame-audit[mitigation]'") from error

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Kernel = TypeVar("Kernel", bound=Callable[..., Any])
#: Sums may be regrouped, and multiply-add fused; nothing is assumed about NaN or infinity.
_REGROUPED = {"reassoc", "contract", "nsz"}


def compiled(function: Kernel) -> Kernel:
    """Compile on first use and release the interpreter lock; keep the machine code on disk where possible."""
    try:
        made = njit(cache=True, nogil=True, error_model="numpy", fastmath=_REGROUPED)(function)
    except RuntimeError:  # numba found no folder it may write to, so every process compiles for itself
        made = njit(nogil=True, error_model="numpy", fastmath=_REGROUPED)(function)
    return cast(Kernel, made)


@compiled
def binary_pass(
    features: NDArray[Any],
    coefficients: Floats,
    intercept: float,
    codes: Codes,
    weights: Floats,
    margins: Floats,
    gradient: Floats,
) -> tuple[float, float]:
    """Loss of a block and its derivative in the intercept; writes ``margins``, adds to ``gradient`` (D,)."""
    n_rows, n_columns = features.shape
    loss = 0.0
    slope = 0.0
    for i in range(n_rows):
        margin = 0.0
        for j in range(n_columns):
            margin += features[i, j] * coefficients[j]
        margin += intercept
        margins[i] = margin
        small = np.exp(-abs(margin))
        # Both without the difference of two large numbers, whatever the margin.
        other = -margin if codes[i] == 1 else margin
        loss += weights[i] * (np.log1p(small) + max(other, 0.0))
        miss = (1.0 if other >= 0 else small) / (1.0 + small)
        residual = weights[i] * (-miss if codes[i] == 1 else miss)
        slope += residual
        for j in range(n_columns):
            gradient[j] += residual * features[i, j]
    return loss, slope


@compiled
def softmax_pass(
    features: NDArray[Any],
    coefficients: Floats,
    intercepts: Floats,
    codes: Codes,
    weights: Floats,
    margins: Floats,
    gradient: Floats,
    slopes: Floats,
) -> float:
    """The same for K classes: margins (n, K), gradient (K, D) and slopes (K,) are added to."""
    n_rows, n_columns = features.shape
    n_classes = coefficients.shape[0]
    loss = 0.0
    for i in range(n_rows):
        largest = -np.inf
        for k in range(n_classes):
            margin = 0.0
            for j in range(n_columns):
                margin += features[i, j] * coefficients[k, j]
            margin += intercepts[k]
            margins[i, k] = margin
            largest = max(largest, margin)
        total = 0.0
        for k in range(n_classes):
            total += np.exp(margins[i, k] - largest)
        own = codes[i]
        # The share of the other classes is summed by itself: 1 - p loses digits where p is near 1.
        others = 0.0
        for k in range(n_classes):
            if k != own:
                others += np.exp(margins[i, k] - largest)
        if margins[i, own] == largest:
            loss += weights[i] * np.log1p(others)
        else:
            loss += weights[i] * (np.log(total) + largest - margins[i, own])
        for k in range(n_classes):
            share = -others / total if k == own else np.exp(margins[i, k] - largest) / total
            residual = weights[i] * share
            slopes[k] += residual
            for j in range(n_columns):
                gradient[k, j] += residual * features[i, j]
    return loss


@compiled
def binary_line(
    first: Floats, last: Floats, codes: Codes, weights: Floats, step: float
) -> tuple[float, float, float]:
    """Loss and its first two derivatives in the step, margins being first + step (last - first)."""
    loss = 0.0
    slope = 0.0
    curve = 0.0
    for i in range(first.shape[0]):
        change = last[i] - first[i]
        margin = first[i] + step * change
        small = np.exp(-abs(margin))
        other = -margin if codes[i] == 1 else margin
        loss += weights[i] * (np.log1p(small) + max(other, 0.0))
        miss = (1.0 if other >= 0 else small) / (1.0 + small)
        slope += weights[i] * (-miss if codes[i] == 1 else miss) * change
        curve += weights[i] * small / (1.0 + small) ** 2 * change * change
    return loss, slope, curve


@compiled
def softmax_line(
    first: Floats, last: Floats, codes: Codes, weights: Floats, step: float
) -> tuple[float, float, float]:
    """The same for margins of K classes."""
    n_rows, n_classes = first.shape
    loss = 0.0
    slope = 0.0
    curve = 0.0
    for i in range(n_rows):
        largest = -np.inf
        for k in range(n_classes):
            largest = max(largest, first[i, k] + step * (last[i, k] - first[i, k]))
        total = 0.0
        mean = 0.0
        square = 0.0
        for k in range(n_classes):
            change = last[i, k] - first[i, k]
            part = np.exp(first[i, k] + step * change - largest)
            total += part
            mean += part * change
            square += part * change * change
        mean /= total
        square /= total
        own = codes[i]
        own_change = last[i, own] - first[i, own]
        loss += weights[i] * (np.log(total) + largest - (first[i, own] + step * own_change))
        slope += weights[i] * (mean - own_change)
        curve += weights[i] * (square - mean * mean)
    return loss, slope, curve


@compiled
def products(features: NDArray[Any], coefficients: Floats, intercepts: Floats, margins: Floats) -> None:
    """Write features @ coefficients.T + intercepts, coefficients (K, D), into ``margins`` (n, K)."""
    n_rows, n_columns = features.shape
    for i in range(n_rows):
        for k in range(coefficients.shape[0]):
            margin = 0.0
            for j in range(n_columns):
                margin += features[i, j] * coefficients[k, j]
            margins[i, k] = margin + intercepts[k]


@compiled
def add_moments(
    features: NDArray[Any], weights: Floats, origin: Floats, sums: Floats, squares: Floats
) -> None:
    """Add weighted sums and squares of features - origin, by column, to ``sums`` and ``squares`` (D,)."""
    n_rows, n_columns = features.shape
    for i in range(n_rows):
        for j in range(n_columns):
            value = features[i, j] - origin[j]
            sums[j] += weights[i] * value
            squares[j] += weights[i] * value * value


@compiled
def centred_rows(
    features: NDArray[Any],
    rows: NDArray[np.int64],
    roots: NDArray[Any],
    centre: NDArray[Any],
    scale: NDArray[Any],
    out: NDArray[Any],
) -> None:
    """Write root * [(x - centre) * scale, 1] of some rows into ``out`` (rows, D + 1), in its precision."""
    n_columns = features.shape[1]
    for i in range(rows.shape[0]):
        row = rows[i]
        root = roots[i]
        for j in range(n_columns):
            out[i, j] = (features[row, j] - centre[j]) * scale[j] * root
        out[i, n_columns] = root


@compiled
def halves_as_singles(halves: NDArray[np.uint16], singles: NDArray[np.uint32]) -> None:
    """Write the bits of float16 numbers as those of the same float32 numbers, shapes (n, D).

    The exponent is moved to the wider field as it is, and one product puts its offset right, also for
    subnormal numbers. Infinity becomes NaN like NaN itself.
    """
    numbers = singles.view(np.float32)
    offset = np.float32(2.0**112)
    for i in range(halves.shape[0]):
        for j in range(halves.shape[1]):
            bits = np.uint32(halves[i, j])
            singles[i, j] = ((bits & np.uint32(0x8000)) << np.uint32(16)) | (
                (bits & np.uint32(0x7FFF)) << np.uint32(13)
            )
        for j in range(halves.shape[1]):
            number = numbers[i, j] * offset
            numbers[i, j] = number if abs(number) < 65536 else np.float32(np.nan)

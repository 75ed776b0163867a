"""Least-squares concept erasure (LEACE): no linear map of the erased features tells groups apart."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from frame.errors import InputError
from frame.heads.linear_maps import LinearMap, checked_features, standardising_map
from frame.mitigation.affine_erasers import (
    BLOCK,
    NO_VARIANCE,
    AffineEraser,
    Floats,
    group_moments,
    largest_gap,
    standardised_blocks,
)

__all__ = ["LARGEST_GAP", "SVD_TOLERANCE", "ErasedFeatures", "erase", "fit_eraser"]

#: Gap between two group means after erasure, in pooled standard deviations, from which a result is refused.
LARGEST_GAP: Final = 1e-6
#: Singular values that concept-erasure takes for zero.
SVD_TOLERANCE: Final = 1e-4
#: A direction of group means shorter than this, in whitened standard deviations, is none.
_NO_DIRECTION = 1e-10


@dataclass(frozen=True, eq=False)
class ErasedFeatures:
    """Features from which groups cannot be told by any linear map, and how well that holds.

    Attributes
    ----------
    features : ndarray, shape (n, D)
        In the dtype of the input.
    eraser : AffineEraser
        For other rows, such as those of a test split.
    gap_before, gap, gap_after_casting : float
        Largest difference between two group means of a column, in pooled standard deviations (see
        :class:`AffineEraser`): of the input, of the erased rows in float64, of the rows as returned.
    n_rows, n_without_group : int
        Rows in all, and rows without a group, which are erased but were not used to fit.
    """

    features: NDArray[Any]
    eraser: AffineEraser
    gap_before: float
    gap: float
    gap_after_casting: float
    n_rows: int
    n_without_group: int


def erase(features: NDArray[Any], groups: Any) -> ErasedFeatures:
    """Take everything out of feature vectors that a linear map could tell groups by.

    Parameters
    ----------
    features : ndarray of float16, float32 or float64, shape (n, D)
        Finite; not changed.
    groups : array_like, shape (n,)
        Any labels; None, NaN or NA where the group is not known.

    Returns
    -------
    ErasedFeatures

    Raises
    ------
    InputError
        Where shapes or dtypes do not fit, a value is not finite, no group is known, or the group means of
        the float64 result differ by 1e-6 pooled standard deviations or more.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(0, 2, 500)
    >>> erased = erase(rng.normal(size=(500, 8)) + group[:, None], group)
    >>> erased.gap_before > 0.5, erased.gap < 1e-6
    (True, True)
    """
    from pandas import factorize

    if not isinstance(features, np.ndarray) or features.ndim != 2 or features.dtype.kind != "f":
        found = (
            f"{features.dtype} of shape {features.shape}" if isinstance(features, np.ndarray) else "no array"
        )
        raise InputError(
            f"The features are {found}; give float16, float32 or float64 of shape (rows, columns)."
        )
    checked_features(features)
    given = np.asarray(groups, dtype=object)
    if given.shape != (len(features),):
        raise InputError(
            f"There are {len(features):,} feature vectors and groups of shape {given.shape}; "
            "give one group per row."
        )
    codes = np.asarray(factorize(given, use_na_sentinel=True)[0], dtype=np.int64)
    eraser = fit_eraser(features, codes)
    erased = np.empty_like(features)
    n_groups = int(codes.max()) + 1
    sums, cast_sums = np.zeros((2, n_groups, features.shape[1]))
    for start in range(0, len(features), BLOCK):
        rows = slice(start, start + BLOCK)
        block = eraser.apply(features[rows])
        with np.errstate(over="ignore"):
            erased[rows] = block
        if not np.isfinite(erased[rows]).all():
            raise InputError(
                f"An erased value does not fit into {features.dtype}; give the features in float32."
            )
        member = (codes[rows, None] == np.arange(n_groups)).astype(np.float64)
        sums += member.T @ (block - eraser.centre)
        cast_sums += member.T @ (np.asarray(erased[rows], dtype=np.float64) - eraser.centre)
    counts = np.bincount(codes[codes >= 0], minlength=n_groups)[:, None]
    gap = largest_gap(sums / counts, eraser.spread)
    _refuse(gap)
    return ErasedFeatures(
        features=erased,
        eraser=eraser,
        gap_before=eraser.gap_before,
        gap=gap,
        gap_after_casting=largest_gap(cast_sums / counts, eraser.spread),
        n_rows=len(features),
        n_without_group=int(np.count_nonzero(codes < 0)),
    )


def fit_eraser(
    features: NDArray[Any], codes: NDArray[Any], *, svd_tolerance: float = SVD_TOLERANCE
) -> AffineEraser:
    """Least-squares concept erasure of a group, with the concept-erasure library in float64.

    Parameters
    ----------
    features : ndarray of float, shape (n, D)
    codes : ndarray of int, shape (n,)
        Group of each row; a negative code is no group, and the row is not used.
    svd_tolerance : float
        The library's ``svd_tol``.

    Returns
    -------
    AffineEraser
        The identity (no direction) where fewer than two groups have rows or their means are the same.

    Raises
    ------
    InputError
        Where no row has a group, a value is not finite, concept-erasure is not installed, or the means of
        groups after erasure differ by 1e-6 pooled standard deviations or more.

    Notes
    -----
    The library alone leaves gaps, for reasons that are mended around it and change nothing else:

    - ``svd_tol`` is absolute, and a one-hot column of a group of share p has singular values near p times
      the whitened shift of its mean: with p = 0.0002 a shift of a third of a standard deviation is cut off.
      The groups are therefore coded in K - 1 columns whose whitened cross-covariances with the features are
      orthonormal (every singular value is 1). LEACE depends only on the span of the concept's columns.
    - Columns are standardised first, since eigenvalues of the covariance below the largest times D times the
      float64 precision are dropped, which with columns of very different scale drops whole columns. LEACE
      does not depend on scale.
    - ``constrain_cov_trace`` is off: where erasure would raise the trace it mixes in a projection that does
      not erase.
    - The library's shrinkage of the covariance is kept; it changes how little else is changed, and not the
      equality of the means.
    - Where the remaining gap is above 1e-9 (group means that reach into dropped eigenvalues), the left
      factor is solved again so that the remaining differences of means vanish exactly.

    References
    ----------
    Belrose et al., LEACE: perfect linear concept erasure in closed form, 2023, arXiv:2306.03819.
    """
    known = np.asarray(codes) >= 0
    if not known.any():
        raise InputError("No row has a known group; erasure needs the group of at least some rows.")
    rows = features if bool(known.all()) else features[known]
    present, group = np.unique(np.asarray(codes)[known], return_inverse=True)
    standard = standardising_map(rows)
    if not (np.isfinite(standard.centre).all() and np.isfinite(standard.scale).all()):
        raise InputError("The features hold values that are not finite; leave those rows out first.")
    counts = np.bincount(group).astype(np.float64)
    if len(present) == 1:
        return _identity(standard, present, 1 / standard.scale)
    fitter = _filled_fitter(rows, group, len(present), standard, svd_tolerance)
    means, within = group_moments(rows, group, standard)
    spread = np.where(within > NO_VARIANCE, np.sqrt(within), 1.0)
    before = largest_gap(means, spread)
    recoded = _recoded(fitter, means, counts, svd_tolerance)
    if recoded is None:
        return _identity(standard, present, spread / standard.scale, before)
    eraser = recoded.eraser
    right = np.ascontiguousarray(eraser.proj_right.numpy().T)
    left = np.ascontiguousarray(eraser.proj_left.numpy().T)
    after = largest_gap(means - means @ right @ left, spread)
    if not after <= LARGEST_GAP / 1000:
        left = np.linalg.pinv(means @ right) @ means
        after = largest_gap(means - means @ right @ left, spread)
    _refuse(after)
    return AffineEraser(
        standard.centre,
        standard.scale,
        right,
        left,
        tuple(int(code) for code in present),
        before,
        after,
        spread / standard.scale,
    )


def _identity(standard: LinearMap, present: NDArray[Any], spread: Floats, gap: float = 0.0) -> AffineEraser:
    n_columns = standard.n_columns
    return AffineEraser(
        standard.centre,
        standard.scale,
        np.zeros((n_columns, 0)),
        np.zeros((0, n_columns)),
        tuple(int(code) for code in present),
        gap,
        gap,
        spread,
    )


def _refuse(gap: float) -> None:
    if not gap < LARGEST_GAP:
        raise InputError(
            f"After erasure two group means differ by {gap:.1e} pooled standard deviations, and less than "
            f"{LARGEST_GAP:g} is needed; look for columns whose mean is very large beside "
            "their standard deviation."
        )


def _library() -> Any:
    try:
        with warnings.catch_warnings():
            # The package compiles functions that are not used here in a way that torch calls deprecated.
            warnings.simplefilter("ignore", FutureWarning)
            from concept_erasure import LeaceFitter
    except ImportError as error:
        raise InputError(
            "Erasure needs concept-erasure; install it with: pip install 'frame-audit[mitigation]'"
        ) from error
    return LeaceFitter


def _filled_fitter(
    features: NDArray[Any], group: NDArray[Any], n_groups: int, standard: LinearMap, svd_tolerance: float
) -> Any:
    """The library's fitter after all standardised rows and their one-hot groups, in float64."""
    fitter_class = _library()
    import torch

    fitter = fitter_class(
        features.shape[1], n_groups, dtype=torch.float64, constrain_cov_trace=False, svd_tol=svd_tolerance
    )
    for number, block in enumerate(standardised_blocks(features, standard)):
        codes = group[number * BLOCK : (number + 1) * BLOCK]
        concept = (codes[:, None] == np.arange(n_groups)).astype(np.float64)
        fitter.update(torch.from_numpy(block), torch.from_numpy(concept))
    return fitter


def _recoded(fitter: Any, means: Floats, counts: Floats, svd_tolerance: float) -> Any:
    """The fitter with the groups coded so that each column has the same weight; None without a direction.

    The whitened means of the groups are U S V'. Coded by the columns of A = diag((n - 1)/n_g) V S^-1, the
    whitened cross-covariance is U itself. Directions that are rounding are left out.
    """
    import torch

    eigenvalues, vectors = torch.linalg.eigh(fitter.sigma_xx)
    # The library's own threshold: what it drops is dropped here.
    smallest = eigenvalues[-1] * len(eigenvalues) * torch.finfo(eigenvalues.dtype).eps
    whiten = torch.where(eigenvalues > smallest, eigenvalues.clamp_min(0.0).rsqrt(), 0.0)
    whitened = (vectors * whiten) @ vectors.mH @ torch.from_numpy(means.T)
    _, sizes, basis = torch.linalg.svd(whitened, full_matrices=False)
    kept = (sizes > _NO_DIRECTION * max(1.0, float(sizes[0])))[: len(counts) - 1]
    if not bool(kept.any()):
        return None
    n_kept = int(kept.sum())
    n_rows = float(counts.sum())
    coding = torch.from_numpy((n_rows - 1) / counts)[:, None] * basis[:n_kept].mH / sizes[:n_kept]
    fitter_class = type(fitter)
    recoded = fitter_class(
        len(eigenvalues), n_kept, dtype=torch.float64, constrain_cov_trace=False, svd_tol=svd_tolerance
    )
    recoded.n, recoded.mean_x, recoded.sigma_xx_ = fitter.n, fitter.mean_x, fitter.sigma_xx_
    recoded.mean_z = fitter.mean_z @ coding
    recoded.sigma_xz_ = fitter.sigma_xz_ @ coding
    return recoded

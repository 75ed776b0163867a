"""The passes of a fit on an accelerator, by torch: the same sums, in float64, block by block."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from frame.errors import InputError
from frame.heads.passes import Codes, Evaluation, Integers

Floats = NDArray[np.float64]
#: Numbers of a block that are widened to float64 at a time.
_NUMBERS: Final = 1 << 25
#: What torch on the processor is called.
ON_PROCESSOR: Final = "torch-cpu"


class TorchPasses:
    """Features are copied to the device once, in their own precision; coefficients and sums come back."""

    def __init__(
        self, features: NDArray[Any], codes: Codes, weights: Floats, n_classes: int, device: str
    ) -> None:
        try:
            import torch
        except ImportError as error:
            raise InputError(
                f"Fitting on the device {device!r} needs torch; install it with: "
                "pip install 'frame-audit[mitigation]', or use device='cpu'."
            ) from error
        self._torch = torch
        try:
            self._device = torch.device("cpu" if device == ON_PROCESSOR else device)
            self._weights = torch.tensor(weights, device=self._device)
        except (RuntimeError, AssertionError) as error:
            raise InputError(
                f"The device {device!r} cannot be used by torch here; give 'cpu', {ON_PROCESSOR!r}, or a "
                "device that torch finds, such as 'cuda'."
            ) from error
        self.n_rows, self.n_features = features.shape
        self._rows = max(_NUMBERS // max(self.n_features, 1), 1)
        self._features = torch.empty(features.shape, dtype=_kind(torch, features.dtype), device=self._device)
        for start in range(0, self.n_rows, self._rows):
            part = features[start : start + self._rows]
            self._features[start : start + self._rows] = torch.tensor(part, device=self._device)
        self._binary = n_classes == 2
        self._codes = torch.tensor(codes, device=self._device, dtype=torch.int64)

    def close(self) -> None:
        """Let the memory go."""
        del self._features

    def _wide(self, start: int) -> Any:
        return self._features[start : start + self._rows].to(self._torch.float64)

    def _there(self, values: NDArray[Any]) -> Any:
        return self._torch.tensor(np.ascontiguousarray(values), device=self._device)

    def evaluate(self, coefficients: Floats, intercepts: Floats) -> Evaluation:
        """One pass; see :class:`Passes`."""
        torch = self._torch
        across, offset = self._there(coefficients.T), self._there(intercepts)
        gradient, slopes = torch.zeros_like(across.T), torch.zeros_like(offset)
        loss = torch.zeros((), dtype=torch.float64, device=self._device)
        kept = []
        for start in range(0, self.n_rows, self._rows):
            features = self._wide(start)
            margins = features @ across + offset
            rows = slice(start, start + len(margins))
            losses, residuals = self._of_margins(margins, rows)
            loss += (self._weights[rows] * losses).sum()
            residuals = residuals * self._weights[rows, None]
            gradient += residuals.T @ features
            slopes += residuals.sum(dim=0)
            kept.append(margins)
        return Evaluation(float(loss), gradient.cpu().numpy(), slopes.cpu().numpy(), torch.cat(kept))

    def _of_margins(self, margins: Any, rows: slice) -> tuple[Any, Any]:
        """Losses (n,) and their derivatives in the margins (n, K)."""
        torch, codes = self._torch, self._codes[rows]
        if self._binary:
            sign = (2 * codes - 1).to(torch.float64)
            signed = sign * margins[:, 0]
            return torch.nn.functional.softplus(-signed), (-sign * torch.sigmoid(-signed))[:, None]
        logs = torch.log_softmax(margins, dim=1)
        own = torch.nn.functional.one_hot(codes, margins.shape[1])
        return -(logs * own).sum(dim=1), logs.exp() - own

    def along(self, first: Any, last: Any, step: float) -> tuple[float, float, float]:
        """Loss and derivatives along a step; see :class:`Passes`."""
        torch = self._torch
        change = last - first
        margins = first + step * change
        losses, residuals = self._of_margins(margins, slice(None))
        slope = (residuals * change).sum(dim=1)
        if self._binary:
            share = torch.sigmoid(margins[:, 0])
            curve = share * (1 - share) * change[:, 0] ** 2
        else:
            shares = torch.softmax(margins, dim=1)
            mean = (shares * change).sum(dim=1)
            curve = (shares * (change - mean[:, None]) ** 2).sum(dim=1)
        loss, rise, bend = (float((self._weights * part).sum()) for part in (losses, slope, curve))
        return loss, rise, bend

    def curvatures(self, margins: Any) -> tuple[Floats, Floats]:
        """Curvatures by row and class; see :class:`Passes`."""
        torch = self._torch
        if self._binary:
            share = torch.sigmoid(-margins[:, 0].abs())
            return (self._weights * share * (1 - share)).cpu().numpy(), np.ones((1, 1))
        shares = torch.softmax(margins, dim=1)
        weighted = self._weights[:, None] * shares
        by_class = (torch.diag(weighted.sum(dim=0)) - shares.T @ weighted).cpu().numpy()
        trace = max(float(np.trace(by_class)), np.finfo(np.float64).tiny)
        return (weighted * (1 - shares)).sum(dim=1).cpu().numpy(), by_class / trace

    def standardised(self, rows: Integers, roots: Floats, centre: Floats, scale: Floats) -> NDArray[Any]:
        """Some rows, standardised; see :class:`Passes`."""
        found: NDArray[Any] = self._standardised(rows, roots, centre, scale).cpu().numpy()
        return found

    def _standardised(self, rows: Integers, roots: Floats, centre: Floats, scale: Floats) -> Any:
        features = self._features[self._there(rows)].to(self._torch.float64)
        features = (features - self._there(centre)) * self._there(scale)
        ones = self._torch.ones((len(rows), 1), dtype=features.dtype, device=self._device)
        return self._torch.cat([features, ones], dim=1) * self._there(roots)[:, None]

    def moments(self, rows: Integers, roots: Floats, centre: Floats, scale: Floats) -> Floats:
        """Second moments of some rows; see :class:`Passes`."""
        size = self.n_features + 1
        total = self._torch.zeros((size, size), dtype=self._torch.float64, device=self._device)
        for start in range(0, len(rows), self._rows):
            part = slice(start, start + self._rows)
            block = self._standardised(rows[part], roots[part], centre, scale)
            total += block.T @ block
        found: Floats = total.cpu().numpy()
        return found

    def not_finite(self) -> int:
        """Number of rows with a value that is not finite."""
        torch = self._torch
        starts = range(0, self.n_rows, self._rows)
        return sum(int((~torch.isfinite(self._wide(start)).all(dim=1)).sum()) for start in starts)


def _kind(torch: Any, dtype: np.dtype[Any]) -> Any:
    return {"float16": torch.float16, "float32": torch.float32, "float64": torch.float64}[dtype.name]

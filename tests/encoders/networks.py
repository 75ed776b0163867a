"""Small networks as loaded encoders, for the tests that need torch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from frame.encoders.loaders import LoadedEncoder
from frame.encoders.panel import encoder
from frame.encoders.preprocessing import preprocessing_of

torch = pytest.importorskip("torch", reason="torch is in the extra [models]")

WIDTH = 6


class Pooled(torch.nn.Module):
    """A convolution, a product that is ``scale`` times too large on the way, and a mean."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(3)
            self.first = torch.nn.Conv2d(3, 8, 4, stride=4)
            self.second = torch.nn.Linear(8, 8, bias=False)
            self.third = torch.nn.Linear(8, WIDTH, bias=False)
        with torch.no_grad():
            self.second.weight.mul_(scale)
            self.third.weight.div_(scale)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        hidden = self.first(batch).flatten(2).transpose(1, 2)
        return self.third(self.second(torch.tanh(hidden))).mean(dim=1)


def network(module: torch.nn.Module | None = None, device: str = "cpu") -> LoadedEncoder:
    """An encoder that is a network of the tests."""
    row = replace(encoder("random_vit_s"), name="small", width=WIDTH)
    placed = (module or Pooled()).eval().requires_grad_(False).to(device)
    settings = {"encoder": "small", "revision": ""}
    return LoadedEncoder(row, preprocessing_of(row), settings, placed, device)

"""Small image stores, and an encoder without weights, for the tests of extraction."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from frame.cohorts.image_rows import open_image_rows
from frame.cohorts.images import prepare_images

WIDTH = 5


def ids_of(n_images: int) -> list[str]:
    return [f"site:{k:05d}" for k in range(n_images)]


def make_images(folder: Path, n_images: int = 37, *, unreadable: tuple[int, ...] = (3, 20), size: int = 16):
    """An image store of drawn images, some of which cannot be read."""
    root = folder / "raw"
    root.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    for k in range(n_images):
        pixels = generator.integers(0, 256, (size, size), dtype=np.uint8)
        path = root / f"{k:05d}.png"
        Image.fromarray(pixels).save(path)
        if k in unreadable:
            path.write_bytes(path.read_bytes()[:40])
    table = pd.DataFrame({"image_id": ids_of(n_images), "file": [f"{k:05d}.png" for k in range(n_images)]})
    prepare_images(table, root, folder / "images", size=size, workers=1, shard_rows=8)
    return open_image_rows(folder / "images")


@dataclass(frozen=True)
class Named:
    name: str = "made_up"


@dataclass
class Scaled:
    """What a preprocessing does, without a declaration; counts the images that it has prepared."""

    sha256: str = "0" * 64
    n_prepared: int = 0
    fail_at: int | None = None

    def prepare(self, batch: np.ndarray) -> np.ndarray:
        assert batch.dtype == np.uint8
        if self.fail_at is not None and self.n_prepared >= self.fail_at:
            raise KeyboardInterrupt
        self.n_prepared += len(batch)
        return (batch[:, None] / np.float32(255)).astype(np.float32)


@dataclass
class MadeUp:
    """An encoder of a few sums over pixels; ``answer`` may change what it gives."""

    encoder: Named = field(default_factory=Named)
    preprocessing: Scaled = field(default_factory=Scaled)
    settings: dict[str, Any] = field(default_factory=lambda: {"encoder": "made_up", "revision": "1"})
    device: str = "cpu"
    width: int = WIDTH
    is_network: bool = False
    batches: list[int] = field(default_factory=list)
    answer: Any = None

    def vectors(self, batch: np.ndarray) -> np.ndarray:
        self.batches.append(len(batch))
        flat = batch.reshape(len(batch), -1)
        weights = np.random.default_rng(7).normal(size=(flat.shape[1], self.width))
        found = np.stack([(row[:, None] * weights).sum(axis=0) for row in flat]).astype(np.float32)
        return found if self.answer is None else self.answer(flat, found)

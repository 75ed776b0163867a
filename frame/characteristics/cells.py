"""The cells of the characteristics tables: every simulated design that a method is judged on."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from frame.characteristics.worlds import BESIDE_ONE_SMALL, SIZES, World, mixed_sizes

AUROCS = (0.65, 0.80, 0.92)
PREVALENCES = (0.05, 0.40)
#: Expected positives of the one small subgroup beside four larger ones, and of five small ones.
ONE_SMALL = (3,)
ALL_SMALL = (8,)
#: Seed of the confirmation; another one than was used while the methods were developed.
CONFIRMATION = 20_261_130


@dataclass(frozen=True)
class Cell:
    """One design.

    Attributes
    ----------
    design : str
        Name of the subgroup sizes: ``S1``, ``S2``, ``k1_003``, ``k5_008``, ...
    measure : str
        ``auroc``, ``tpr`` or ``fpr``.
    world : World
        How its cohorts are simulated.
    """

    design: str
    measure: str
    world: World

    @property
    def name(self) -> str:
        """Name that also seeds the cell's cohorts, so that cells can be run in any order."""
        world = self.world
        parts = [self.design, self.measure, f"A{world.auroc:g}", f"p{world.prevalence:g}"]
        parts += [f"cl{int(world.repeats)}", f"sh{int(world.shifted)}"]
        if len(world.correlations) > 1:
            parts.append("icc" + "-".join(f"{c:g}" for c in world.correlations))
        if world.drop:
            parts.append(f"drop{world.drop:g}g{world.sizes[world.dropped]}")
        return "_".join(parts)

    @property
    def large_groups(self) -> bool:
        """Whether at least one subgroup has 60 positives and 60 negatives to be expected."""
        factor = self.world.prevalence
        return max(min(n * factor, n * (1 - factor)) for n in self.world.sizes) >= 60

    def generator(self, cohort: int, seed: int = CONFIRMATION) -> np.random.Generator:
        """Generator of one cohort, independent of all others."""
        return np.random.default_rng([seed, zlib.crc32(self.name.encode()), cohort])


def null_cells(measure: str) -> list[Cell]:
    """All exactly fair designs of a measure: AUROC x prevalence x repeats x shift, for every set of sizes."""
    cells: list[Cell] = []
    for auroc, prevalence, repeats, shifted in product(AUROCS, PREVALENCES, (False, True), (False, True)):
        designs: dict[str, tuple[int, ...]] = dict(SIZES)
        designs |= {f"k1_{k:03d}": mixed_sizes((*BESIDE_ONE_SMALL, k), prevalence) for k in ONE_SMALL}
        designs |= {f"k5_{k:03d}": mixed_sizes((k,) * 5, prevalence) for k in ALL_SMALL}
        for design, sizes in designs.items():
            world = World(sizes, auroc, prevalence, repeats, shifted).for_measure(measure)
            cells.append(Cell(design, measure, world))
    return cells


def correlated_cells() -> list[Cell]:
    """Small subgroups whose images of a patient agree more than those of the large ones."""
    base = World(SIZES["S1"], 0.80, 0.15, repeats=True, shifted=True, correlations=(0.3, 0.4, 0.8, 0.8, 0.8))
    return [
        Cell("S1", "auroc", replace(base, auroc=a, prevalence=p)) for a in (0.80, 0.92) for p in (0.15, 0.40)
    ]


def power_cells() -> list[Cell]:
    """A planted drop of the AUROC in one middle-sized or small subgroup (calibration table D)."""
    cells: list[Cell] = []
    for repeats, auroc, drop, dropped in product((False, True), (0.80, 0.92), (0.05, 0.10), (2, 3)):
        world = World(SIZES["S1"], auroc, 0.15, repeats, True, drop=drop, dropped=dropped)
        cells.append(Cell("S1", "auroc", world))
    return cells

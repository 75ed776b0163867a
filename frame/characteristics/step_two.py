"""The cells on which the whole procedure is judged: worlds of drawn features with a planted truth.

Sizes, doses, seeds, and what counts as held were fixed before a cohort was looked at. One cause was added
later, and nothing was changed or taken away: after the first seven seeds had shown that the entangled world
with five groups rarely gets past step one, the two cells of ``full entanglement`` were put beside it. The
groups have the sizes of the races of the demo's two sources that record race, patients have one to four
images, and the cohort of a seed is the first one of the world with this seed, so that directions vary too.
Cells that differ in the cause only are drawn with the same noise, and are compared in pairs.

In every world but the fair ones one group is treated:

- ``difference``: its disease contrast is shorter, by three times the mean that the fair-model reference has
  at these sizes (measured on fair cohorts with seeds of their own). The best linear score of this group falls
  with it: there is a true difference, and no mechanism of representation behind it.
- ``entanglement``: its disease direction is turned by half of a right angle towards its own direction.
- ``full entanglement``: the same by a whole right angle.
- ``decodability``: nothing is treated; any two groups are told apart with an AUROC of 0.99 (0.90 elsewhere).
- ``label noise``: 15 % of its recorded labels are wrong, as in the demo. A negative control.
- ``site effect``: most of its patients come from a second site, few of the others do; the site shows the
  disease less, in all groups alike. A negative control. Each group has an offset of its own at each site.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from frame.cohorts.phantom.feature_world import FeatureGroup, FeatureWorld

__all__ = [
    "CAUSES",
    "CELLS",
    "FAIR_REFERENCE",
    "NAMES",
    "PATIENTS",
    "PILOT_SEEDS",
    "SEEDS",
    "SHARES",
    "VERDICT_SEEDS",
    "StepTwoCell",
    "group_of",
    "world_of",
]

#: Patients of training, validation and test of the demo's two sources that record race, together.
PATIENTS: Final = (1898, 333, 1669)
#: Shares of the races among them.
SHARES: Final = {"White": 0.44, "Black": 0.20, "Asian": 0.13, "Hispanic or Latino": 0.12, "Other": 0.11}
#: Groups of the designs with two and with five.
NAMES: Final = {2: ("White", "Black"), 5: tuple(SHARES)}
#: Seeds of step one and, as step two takes longer, of the verdicts.
SEEDS: Final = 200
VERDICT_SEEDS: Final = 50
#: Seeds of the fair cohorts that the mean of the reference is measured on; none of them is used again.
PILOT_SEEDS: Final = range(1000, 1040)
#: That mean, AUROC, for two and for five groups; a planted difference is three times as large.
FAIR_REFERENCE: Final = {2: 0.0207, 5: 0.0566}
PLANTED_TIMES: Final = 3
CAUSES: Final = (
    "none",
    "decodability",
    "difference",
    "entanglement",
    "full entanglement",
    "label noise",
    "site effect",
)
AUROC, DECODABILITY, DIMENSIONS = 0.80, 0.90, 32
READABLE: Final = 0.99
#: Share of a right angle.
TURNED: Final = {"entanglement": 0.5, "full entanglement": 1.0}
WRONG: Final = 0.15
#: Shares of the second site's patients in the treated group and in the others, and the site's best AUROC.
SECOND_SITE: Final = (0.8, 0.2)
SECOND_SITE_AUROC: Final = 0.65
_AT_SITE: Final = " at site "


@dataclass(frozen=True)
class StepTwoCell:
    """One design.

    Attributes
    ----------
    step : str
        ``one`` (audit of a linear head) or ``two`` (the whole procedure to its verdict).
    cause : str
        One of :data:`CAUSES`.
    n_groups : int
        2 or 5.
    where : str
        Group that is treated; empty where none is.
    interval : bool
        Whether the interval of the true difference is computed, the slowest part of step one.
    """

    step: str
    cause: str
    n_groups: int
    where: str = ""
    interval: bool = False

    @property
    def name(self) -> str:
        """Name, unique among the cells."""
        parts = [self.step, self.cause, str(self.n_groups), self.where]
        return "_".join(part.replace(" ", "-") for part in parts if part)

    @property
    def seeds(self) -> int:
        """Cohorts that are drawn: seeds from 0."""
        return SEEDS if self.step == "one" else VERDICT_SEEDS


#: In the order in which they are run. ``Black`` is the group of the demo's planted label noise.
CELLS: Final = (
    StepTwoCell("one", "none", 5, interval=True),
    StepTwoCell("one", "none", 2, interval=True),
    StepTwoCell("one", "difference", 5, "Black", interval=True),
    StepTwoCell("one", "difference", 2, "Black", interval=True),
    StepTwoCell("one", "difference", 5, "White"),
    StepTwoCell("one", "difference", 5, "Other"),
    StepTwoCell("two", "decodability", 5),
    StepTwoCell("two", "entanglement", 5, "Black"),
    StepTwoCell("two", "difference", 5, "Black"),
    StepTwoCell("two", "label noise", 5, "Black"),
    StepTwoCell("two", "site effect", 5, "Black"),
    StepTwoCell("two", "entanglement", 2, "Black"),
    StepTwoCell("two", "difference", 2, "Black"),
    StepTwoCell("two", "label noise", 2, "Black"),
    StepTwoCell("two", "site effect", 2, "Black"),
    StepTwoCell("two", "full entanglement", 5, "Black"),
    StepTwoCell("two", "full entanglement", 2, "Black"),
)


def world_of(cell: StepTwoCell, seed: int) -> FeatureWorld:
    """The world of a cell and a seed; its first cohort is the one that is judged.

    Parameters
    ----------
    cell : StepTwoCell
    seed : int
        0 or more.

    Returns
    -------
    FeatureWorld
    """
    groups = [_group(name, cell) for name in NAMES[cell.n_groups]]
    if cell.cause == "site effect":
        groups = [part for group in groups for part in _at_both_sites(group, cell)]
    return FeatureWorld(
        tuple(groups),
        unit="patients",
        auroc=AUROC,
        decodability=READABLE if cell.cause == "decodability" else DECODABILITY,
        dimensions=DIMENSIONS,
        seed=seed,
    )


def group_of(name: str) -> str:
    """The group that is audited, of a group of a world: without its site."""
    return name.partition(_AT_SITE)[0]


def _group(name: str, cell: StepTwoCell) -> FeatureGroup:
    """A group of the demo's size, with what is planted in it."""
    train, validation, test = (round(n * SHARES[name]) for n in PATIENTS)
    group = FeatureGroup(name, train, validation, test)
    if name != cell.where:
        return group
    if cell.cause == "difference":
        return replace(group, auroc=AUROC - PLANTED_TIMES * FAIR_REFERENCE[cell.n_groups])
    if cell.cause in TURNED:
        return replace(group, entanglement=TURNED[cell.cause])
    if cell.cause == "label noise":
        return replace(group, missed=WRONG, invented=WRONG)
    return group


def _at_both_sites(group: FeatureGroup, cell: StepTwoCell) -> list[FeatureGroup]:
    """The patients of a group at the first and at the second site."""
    share = SECOND_SITE[0 if group.name == cell.where else 1]
    second = {part: round(share * getattr(group, part)) for part in ("train", "validation", "test")}
    first = {part: getattr(group, part) - n for part, n in second.items()}
    return [
        replace(group, name=f"{group.name}{_AT_SITE}1", **first),
        replace(group, name=f"{group.name}{_AT_SITE}2", **second, auroc=SECOND_SITE_AUROC),
    ]

"""A comparison that is planned, and what it can show at other sizes and differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from frame.reference.inputs import Counts, check_counts
from frame.reference.planning import detectable_difference
from frame.reference.required import GrowingCounts, RequiredCounts, powers_at, required_counts

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Study:
    """A comparison that is planned: what :func:`frame.detectable_difference` is asked about.

    Attributes
    ----------
    value : float
        Common value of the measure.
    n_positive, n_negative : sequence of int or None
        Cases per subgroup; a rate needs only its own class.
    measure, method : str
        As in :func:`frame.fair_reference`.
    power, alpha, kappa, design_effect : float
        As in :func:`frame.detectable_difference`.
    """

    value: float
    n_positive: Sequence[int] | None
    n_negative: Sequence[int] | None
    measure: str = "auroc"
    method: str = "auto"
    power: float = 0.8
    alpha: float = 0.05
    kappa: float = 1.25
    design_effect: float = 1.0

    @property
    def counts(self) -> Counts:
        """Checked counts, after division by the design effect."""
        return check_counts(
            self.value, self.n_positive, self.n_negative, self.measure, self.method, self.design_effect
        )

    def detectable(self) -> float:
        """Smallest detectable difference; NaN where no difference reaches the power."""
        return detectable_difference(
            self.value,
            self.n_positive,
            self.n_negative,
            self.measure,
            method=self.method,
            power=self.power,
            alpha=self.alpha,
            kappa=self.kappa,
            design_effect=self.design_effect,
        )

    def powers(self, difference: float) -> tuple[float, ...] | None:
        """Power to find a difference for every choice of the different subgroup; None: at no size."""
        return powers_at(self.counts, difference, alpha=self.alpha, kappa=self.kappa)

    def required(self, difference: float, grow: int | None = None) -> RequiredCounts:
        """Counts that a difference needs, as :func:`frame.required_counts` finds them."""
        return required_counts(
            self.value,
            difference,
            self.n_positive,
            self.n_negative,
            self.measure,
            grow=grow,
            method=self.method,
            power=self.power,
            alpha=self.alpha,
            kappa=self.kappa,
            design_effect=self.design_effect,
        )

    def growing(self, grow: int | None = None) -> GrowingCounts:
        """Counts as a function of the smallest class that grows."""
        return GrowingCounts.of(self.n_positive, self.n_negative, self.measure, grow)

    def at(self, n_positive: Sequence[int] | None, n_negative: Sequence[int] | None) -> Study:
        """The same comparison at other counts; an empty class is one that the measure does not use."""
        return replace(self, n_positive=n_positive or None, n_negative=n_negative or None)


def size_curve(study: Study, *, grow: int | None = None, largest: int, points: int = 24) -> pd.DataFrame:
    """Smallest detectable difference against the size of the smallest class that grows.

    Parameters
    ----------
    study : Study
        The comparison.
    grow : int, optional
        Position of the one subgroup that grows; by default all grow in proportion.
    largest : int
        Size up to which to go, at least 2. The curve starts at a tenth of the given size, or of
        ``largest`` where that is less.
    points : int
        Sizes, evenly spaced on a logarithmic axis.

    Returns
    -------
    pandas.DataFrame
        A row per size: ``smallest``, ``n_cases`` (all classes and subgroups that the measure uses),
        ``detectable`` (NaN where no difference reaches the power).
    """
    import pandas as pd

    scaling = study.growing(grow)
    first = max(2, min(scaling.start, largest) // 10)
    sizes = np.unique(np.rint(np.geomspace(first, max(largest, first + 1), points)).astype(int))
    rows = []
    for size in sizes.tolist():
        positives, negatives = scaling.at(size)
        found = study.at(positives, negatives).detectable()
        rows.append({"smallest": size, "n_cases": sum(positives) + sum(negatives), "detectable": found})
    return pd.DataFrame(rows)


def power_curve(study: Study, *, largest: float, points: int = 41) -> pd.DataFrame:
    """Power against the true difference, for the subgroup whose difference is hardest to find.

    Parameters
    ----------
    study : Study
        The comparison.
    largest : float
        Difference up to which to go; cut at what is possible for the common value.
    points : int
        Differences, evenly spaced from 0.

    Returns
    -------
    pandas.DataFrame
        A row per difference: ``difference, power, easiest`` (power for the subgroup whose difference
        is easiest to find). Empty when no difference can be called at these counts.
    """
    import pandas as pd

    possible = min(largest, max(study.value, 1.0 - study.value))
    rows = []
    for difference in np.linspace(0.0, possible, points).tolist():
        powers = study.powers(difference)
        if powers is not None:
            rows.append({"difference": difference, "power": min(powers), "easiest": max(powers)})
    return pd.DataFrame(rows, columns=["difference", "power", "easiest"])

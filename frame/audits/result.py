"""The result of one audit of scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frame.audits.columns import COLUMNS, row_of, typed
from frame.audits.comparisons import ALL_ROWS, Comparison
from frame.audits.intervals import true_interval
from frame.audits.resampled import Replicates, WorstGroup, needs_numba, subgroup_intervals, worst_of
from frame.audits.settings import Settings, share_of
from frame.audits.words import does_not_say, short_words, test_words, verdict_words
from frame.measures.differences import equity_scaled_auroc, worst_group
from frame.measures.rows import ScoredRows
from frame.measures.thresholds import Threshold
from frame.reference.fair_model import FairReference

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Audit", "frame_of", "without_difference"]

Floats = NDArray[np.float64]
_NAN = math.nan


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """One difference between subgroups beside its fair-model reference; made by :func:`frame.audit`.

    Values are on the 0-1 scale, the share is in percent. What cannot be computed is NaN, and ``reason``
    says why. The bootstrap is computed when ``by_group``, ``worst``, ``plot`` or ``to_html`` first need it.

    Attributes
    ----------
    score, label, attribute, stratum : str
        What was audited; the stratum is empty without ``within=``.
    within : str
        Name of the column of the strata, empty without.
    table : DataFrame
        One row per subgroup: counts, value, status and reason, as :func:`frame.measures.subgroup_table`.
    overall_pooled : float
        The measure over all rows. It contains cross-group pairs, so exact fairness does not make an AUROC
        equal to the within-group value.
    threshold : Threshold
        Its value is NaN where the measure needs none.
    n_images, n_positive, n_patients : int
        Rows of this audit; those left out are not counted.
    patients_given : bool
        Whether the unit of sampling is the patient; otherwise it is the image.
    n_missing, n_missing_positive : int
        Images without a value of the attribute, and how many of them are positive.
    n_unlabelled, n_without_score, n_without_patient : int
        Images left out of the whole input, whatever their stratum.
    notes : tuple of str
        What was left out, in words.
    strata : tuple of Audit
        One audit per stratum with ``within=``, the not estimable ones too; empty without.
    q : float
        p after Benjamini-Hochberg correction within the family.
    family : str
        Tests that were corrected together.
    family_size : int
        How many they are.
    """

    score: str
    label: str
    attribute: str
    within: str
    stratum: str
    table: pd.DataFrame
    overall_pooled: float
    threshold: Threshold
    n_images: int
    n_positive: int
    n_patients: int
    patients_given: bool
    n_missing: int
    n_missing_positive: int
    n_unlabelled: int
    n_without_score: int
    n_without_patient: int
    notes: tuple[str, ...]
    settings: Settings
    comparison: Comparison
    strata: tuple[Audit, ...] = ()
    q: float = _NAN
    family: str = ""
    family_size: int = 1
    data_flags: tuple[str, ...] = ()
    _rows: ScoredRows | None = field(default=None, repr=False)

    # -- what was asked ------------------------------------------------------------------------

    @property
    def measure(self) -> str:
        """Measure, for example ``auroc``."""
        return self.settings.measure

    @property
    def method(self) -> str:
        """Method of the reference, never ``auto``."""
        return self.settings.method

    @property
    def protocol(self) -> str:
        """``exact`` or ``paper``."""
        return self.settings.protocol

    @property
    def alpha(self) -> float:
        """Level of the test."""
        return self.settings.alpha

    @property
    def margin(self) -> float:
        """Tolerated true difference."""
        return self.settings.margin

    @property
    def unit(self) -> str:
        """Unit of sampling: ``patient`` or ``image``."""
        return "patient" if self.patients_given else "image"

    # -- the difference and its reference ------------------------------------------------------

    @property
    def observed(self) -> float:
        """Largest minus smallest value of the evaluable subgroups; NaN with fewer than two."""
        return self.comparison.observed

    @property
    def reference(self) -> FairReference | None:
        """Law of the difference under exact fairness; None where there is none."""
        return self.comparison.reference

    @property
    def overall(self) -> float:
        """Common value of the reference."""
        return self.comparison.common

    @property
    def overall_source(self) -> str:
        """Where the common value comes from: ``all rows`` or ``within-group mean``."""
        return self.comparison.common_source

    @property
    def overall_within(self) -> float:
        """Within-group mean: the value that exact fairness speaks of; NaN for a measure without one."""
        return self.comparison.within

    @property
    def remainder(self) -> float:
        """Observed difference minus the mean of the reference; no estimate of the true difference."""
        return self.observed - self.reference.mean if self.reference is not None else _NAN

    @property
    def share(self) -> float:
        """Mean of the reference in percent of the observed difference; no decomposition of it."""
        return share_of(self.reference.mean, self.observed) if self.reference is not None else _NAN

    @property
    def p(self) -> float:
        """One-sided: how often a fair model shows the observed difference or a larger one."""
        return self.comparison.p

    @property
    def p_heterogeneity(self) -> float:
        """Uncorrected p of the heterogeneity Q, for ``calibrated`` methods and ``binomial``."""
        return self.comparison.p_heterogeneity

    @property
    def p_heterogeneity_error(self) -> float:
        """Monte Carlo standard error of ``p_heterogeneity``."""
        return self.comparison.p_heterogeneity_error

    @property
    def exceeds(self) -> bool | None:
        """Whether ``q`` is below ``alpha``; None where there is no p."""
        return None if math.isnan(self.q) else self.q < self.alpha

    @property
    def status(self) -> str:
        """``ok`` or ``not estimable``."""
        return "not estimable" if self.comparison.reason else "ok"

    @property
    def reason(self) -> str:
        """Why there is no p; empty where there is one."""
        return self.comparison.reason

    @property
    def flags(self) -> tuple[str, ...]:
        """What a reader has to know beside the result."""
        return (*self.data_flags, *self.comparison.flags)

    @cached_property
    def detectable(self) -> float:
        """Smallest true shift of one subgroup found with 80 % power; NaN where not computable."""
        return self.comparison.detectable() if self.status == "ok" else _NAN

    @property
    def worst_name(self) -> str:
        """Name of the worst evaluable subgroup; empty where there is none."""
        return worst_group(self.table, self.measure)[0]

    @property
    def equity_scaled(self) -> float:
        """Equity-scaled AUROC; NaN for other measures."""
        if self.measure != "auroc":
            return _NAN
        return equity_scaled_auroc(self.overall_pooled, self.table["value"].to_numpy())

    # -- the bootstrap -------------------------------------------------------------------------

    @cached_property
    def replicates(self) -> Floats | None:
        """Bootstrap values, shape (subgroups + 1, resamples), first row overall; None when switched off."""
        rows, settings = self._rows, self.settings
        if rows is None or settings.resamples == 0 or len(rows) == 0:
            return None
        from frame.inference.replicates import replicate_values

        attribute = rows.attribute(self.attribute)
        try:
            values = replicate_values(
                rows.score(self.score),
                rows.labels,
                rows.patients,
                rows.n_patients,
                attribute.codes,
                len(attribute.levels),
                [self.measure],
                threshold=None if math.isnan(self.threshold.value) else self.threshold.value,
                scale=settings.scale,
                resamples=settings.resamples,
                seed=settings.seed,
            )
        except ModuleNotFoundError as problem:
            raise needs_numba(problem) from None
        return np.asarray(values[0], dtype=np.float64)

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval for the true difference between the evaluable subgroups.

        Tukey-type, from simultaneous pairwise intervals. Variances are the reference's own, larger where a
        subgroup lies nearer to the middle (:func:`frame.reference.simultaneous.variances_apart`), subgroups
        taken to be independent; for a measure without them, the covariance of the patient bootstrap. NaN
        where there is none; ``interval_reason`` says why.
        """
        return self._interval[:2]

    @property
    def interval_reason(self) -> str:
        """Why there is no interval of the true difference; empty where there is one."""
        return self._interval[2]

    @cached_property
    def _interval(self) -> tuple[float, float, str]:
        return true_interval(self.comparison, self.table, self.settings, self._replicated)

    @property
    def _replicated(self) -> Replicates:
        return Replicates(self.measure, self.replicates, self._patients_by_class)

    @cached_property
    def _patients_by_class(self) -> NDArray[np.int64]:
        """Patients with a positive image, with a negative one, and all, shape (3, subgroups)."""
        counted = np.zeros((3, len(self.table)), dtype=np.int64)
        rows = self._rows
        if rows is None or len(rows) == 0:
            return counted
        codes = rows.attribute(self.attribute).codes
        for row, chosen in enumerate((rows.labels, ~rows.labels, np.ones_like(rows.labels))):
            pairs = np.unique(codes[chosen] * rows.n_patients + rows.patients[chosen])
            counted[row] = np.bincount(pairs // rows.n_patients, minlength=len(self.table))
        return counted

    @cached_property
    def by_group(self) -> pd.DataFrame:
        """One row per subgroup, those that are not estimable too.

        Columns ``group, n_images, n_positive, n_negative, n_patients, value, lo, hi, status, reason``; lo
        and hi are the 2.5th and 97.5th percentiles over resampled patients. A value without an interval
        that resampling could show, as with one patient, has the status ``not estimable`` and stays.
        """
        return subgroup_intervals(self.table, self._replicated)

    @cached_property
    def worst(self) -> WorstGroup:
        """The worst evaluable subgroup, its interval and the contrasts of the others with it."""
        return worst_of(self.table, self.measure, self._replicated)

    # -- words, tables, pictures ---------------------------------------------------------------

    @cached_property
    def verdict(self) -> str:
        """The verdict in plain words; with ``within=``, how many strata exceed, and then all rows."""
        own = verdict_words(self)
        if not self.strata:
            return own
        estimable = [s for s in self.strata if s.status == "ok"]
        exceeding = [s.stratum for s in estimable if s.exceeds]
        names = f" ({', '.join(exceeding)})" if exceeding else ""
        left = len(self.strata) - len(estimable)
        return (
            f"Within {self.within}: {len(exceeding)} of {len(estimable)} estimable strata exceed{names}"
            + (f", {left} not estimable" if left else "")
            + f". All strata together: {own}"
        )

    @property
    def short_verdict(self) -> str:
        """The verdict in the fewest plain words."""
        return short_words(self)

    @property
    def limits(self) -> tuple[str, ...]:
        """What the result does not say, one sentence each."""
        return does_not_say(self)

    @property
    def test(self) -> str:
        """The test, its unit and its direction."""
        return test_words(self)

    def __repr__(self) -> str:
        where = f", {self.within} {self.stratum}" if self.stratum else ""
        return (
            f"Audit({self.measure} of '{self.score}' for '{self.label}' by '{self.attribute}'{where}, "
            f"{self.method})\n{self.verdict}"
        )

    def to_frame(self) -> pd.DataFrame:
        """One row, or one per stratum with ``within=``, in the columns that every audit has.

        Returns
        -------
        DataFrame
            The columns of :data:`frame.audits.columns.COLUMNS`.
        """
        return frame_of(self.strata or [self])

    def plot(self, *, suppress_below: int = 0) -> Figure:
        """Draw the observed difference against its reference, and the subgroups with intervals and counts.

        Parameters
        ----------
        suppress_below : int
            Counts below it are not shown, nor the values of their subgroups; 0 shows all.

        Returns
        -------
        matplotlib.figure.Figure
            Also where the audit is not estimable: it says why.

        Raises
        ------
        InputError
            If matplotlib is not installed.
        """
        from frame.audits.report import drawn

        return drawn(self, suppress_below)

    def to_html(self, path: str | Path, *, suppress_below: int = 0) -> Path:
        """Write a self-contained report: one file, no network, readable on a phone and in the dark.

        Parameters
        ----------
        path : str or Path
            File to make or replace.
        suppress_below : int
            Counts below it are shown as ``<N``, and the values of their subgroups are hidden, together with
            those from which they could be computed; 0 shows all.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        InputError
            If the file cannot be written, or matplotlib is not installed.
        """
        from frame.audits.report import write_report

        return write_report([self], Path(path), suppress_below=suppress_below)


def frame_of(audits: Sequence[Audit]) -> pd.DataFrame:
    """Return audits as a table, one row each, every column of one type."""
    return typed(pd.DataFrame([row_of(audit) for audit in audits], columns=list(COLUMNS)))


def without_difference(reason: str) -> Comparison:
    """A comparison that could not be made."""
    return Comparison(_NAN, common_source=ALL_ROWS, reason=reason)

"""The result of step two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from frame.interventions.decision import Change, Precondition
from frame.interventions.verdict_words import caveats_of, headline, sentences

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from frame.audits import Audit

__all__ = ["Verdict"]


@dataclass(frozen=True, eq=False, repr=False)
class Verdict:
    """What a difference between subgroups responds to; made by :func:`frame.mechanism`.

    Attributes
    ----------
    verdict : str
        One of ``consistent with exact fairness``, ``moves with entanglement, not with decodability``, ``moves
        with decodability``, ``moves with both`` and ``undetermined``.
    reasons : tuple of str
        Why, where it is ``undetermined``; clauses without a full stop.
    step_one : Audit
        The gate.
    precondition : Precondition or None
        Whether the disease AUROC fell at the largest k; None where step two was not run.
    decided : mapping of str to Change
        Change of the difference under each operator; empty where step two was not run.
    strengths : DataFrame
        Every quantity at every strength, in the columns of the study's tidy results: ``method`` is the
        operator; values on the 0-1 scale.
    changes : DataFrame
        Difference and disease AUROC from strength 0 to the largest, per operator: ``change, lo, hi, p, moves,
        direction``.
    trend : DataFrame
        The paper's trend test, which decides nothing here.
    directions : DataFrame
        The difference for every random direction of the decodability operator.
    splits : DataFrame
        Images, positives and patients of every group in every split, with the sign of the group.
    label, attribute : str
    levels : tuple of str
        Groups, without the excluded ones.
    notes : tuple of str
        What was left out, capped, added or skipped, in sentences.
    settings : dict
        ``measure, methods, geometry, nonlinear, directions, alpha, min_size, resamples, seed, cap, unit,
        majority, excluded, scores_given, dimensions``.
    """

    verdict: str
    reasons: tuple[str, ...]
    step_one: Audit
    precondition: Precondition | None
    decided: Mapping[str, Change]
    strengths: pd.DataFrame
    changes: pd.DataFrame
    trend: pd.DataFrame
    directions: pd.DataFrame
    splits: pd.DataFrame
    label: str
    attribute: str
    levels: tuple[str, ...]
    notes: tuple[str, ...]
    settings: Mapping[str, Any] = field(repr=False)

    @property
    def majority(self) -> str:
        """Group that the operators leave as it is, or mark with +1."""
        return str(self.settings["majority"])

    @property
    def measure(self) -> str:
        """Measure of the difference."""
        return str(self.settings["measure"])

    @cached_property
    def caveats(self) -> tuple[str, ...]:
        """What the verdict does not say, one sentence each."""
        return caveats_of(self)

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The verdict in words, with its numbers."""
        return tuple(sentences(self))

    def __repr__(self) -> str:
        what = f"{self.measure} of '{self.label}' by '{self.attribute}'"
        return f"Verdict({what})\n{headline(self.verdict)}. " + " ".join(self.sentences)

    def to_frame(self) -> pd.DataFrame:
        """One row: the verdict, step one, the two changes that decide, and the precondition.

        Returns
        -------
        DataFrame
            ``label, attribute, measure, verdict, reasons, majority, observed, reference, p``, then ``change,
            lo, hi, moves`` of ``decodability``, ``entanglement`` and, beside, ``whitened_entanglement``, and
            of the disease AUROC at the largest k (``precondition``). NaN where step two was not run.
        """
        audit = self.step_one
        row: dict[str, Any] = {
            "label": self.label,
            "attribute": self.attribute,
            "measure": self.measure,
            "verdict": self.verdict,
            "reasons": "; ".join(self.reasons),
            "majority": self.majority,
            "n_images": audit.n_images,
            "n_positive": audit.n_positive,
            "n_patients": audit.n_patients,
            "observed": audit.observed,
            "reference": audit.reference.mean if audit.reference is not None else float("nan"),
            "p": audit.p,
        }
        for name in ("decodability", "entanglement", "whitened entanglement"):
            one = self.decided.get(name)
            row |= _columns(name.replace(" ", "_"), one, None if one is None else one.moves)
        held = self.precondition
        row |= _columns(
            "precondition", None if held is None else held.change, None if held is None else held.holds
        )
        table = pd.DataFrame([row])
        flags = [name for name in table.columns if name.endswith(("_moves", "_holds"))]
        return table.astype(dict.fromkeys(flags, "boolean"))

    def plot(self) -> Figure:
        """Draw every quantity against strength, a column for each operator; step one where it stopped there.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        InputError
            If matplotlib is not installed.
        """
        from frame.interventions.mechanism_report import drawn

        return drawn(self)

    def to_html(self, path: str | Path, *, suppress_below: int = 0) -> Path:
        """Write a self-contained report: one file, no network, readable on a phone and in the dark.

        Parameters
        ----------
        path : str or Path
            File to make or replace.
        suppress_below : int
            Counts below it are shown as ``<N``, and the values of their groups are hidden; 0 shows all.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        InputError
            If the file cannot be written, or matplotlib is not installed.
        """
        from frame.interventions.mechanism_report import write_report

        return write_report(self, Path(path), suppress_below=suppress_below)


def _columns(name: str, one: Change | None, judged: bool | None) -> dict[str, Any]:
    nan = float("nan")
    values = (nan, nan, nan, nan) if one is None else (one.largest, one.change, one.lo, one.hi)
    ends = ("strength", "change", "lo", "hi")
    last = "holds" if name == "precondition" else "moves"
    return {f"{name}_{end}": value for end, value in zip(ends, values, strict=True)} | {
        f"{name}_{last}": judged
    }

"""What the patient bootstrap returns: points, paired replicates, intervals, differences and contrasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frame.errors import InputError
from frame.inference.contrasts import paired_contrast
from frame.inference.refusals import CONSTANT, one_patient, summary_of, too_often_undefined
from frame.measures.differences import max_min_difference
from frame.measures.thresholds import Threshold

__all__ = ["CONSTANT", "NO_TEST", "OVERALL", "BootstrapResult"]

Floats = NDArray[np.float64]

#: Attribute and group of the first row of a result.
OVERALL = "overall"
#: Goes beside every bootstrap interval of a max-min difference.
NO_TEST = (
    "This interval is no test against zero: a largest minus a smallest value is never below zero, and its "
    "resamples lie above zero even for an exactly fair model; the fair-model reference is the test."
)

_COLUMNS = (
    *("score", "attribute", "group", "measure", "n_images", "n_positive", "n_negative", "n_patients"),
    *("value", "boot_mean", "sd", "lo", "hi", "n_undefined", "unit", "status", "reason"),
)


@dataclass(frozen=True, eq=False)
class BootstrapResult:
    """Points and paired replicates of all scores, measures and subgroups.

    Attributes
    ----------
    subgroups : DataFrame
        ``attribute, group, n_images, n_positive, n_negative, n_patients``; the first row is overall, then
        every level of every attribute, empty ones included.
    scores, measures : tuple of str
        Names, in the order of the axes below.
    points : ndarray of float64, shape (scores, measures, subgroups)
        Values on the data; NaN where ``reasons`` says why not.
    replicates : ndarray of float64, shape (scores, measures, subgroups, resamples)
        Values in each resample; NaN where undefined in it, and throughout where ``reasons`` says why.
    reasons : ndarray of str objects, shape (scores, measures, subgroups)
        Why a value is not estimable, empty where it is; the rule of :func:`frame.measures.subgroup_table`.
    patients_with_class : ndarray of int64, shape (2, subgroups)
        Patients with a positive image, and with a negative one.
    thresholds : dict of str to Threshold
        Of each score.
    seed, resamples, min_size : int
        As given.
    unit : str
        ``patient``, or ``image (no patient ids)``.
    notes : tuple of str
        Sentences to print beside the numbers: images left out, missing ids, decisions that are all alike.
    """

    subgroups: pd.DataFrame
    scores: tuple[str, ...]
    measures: tuple[str, ...]
    points: Floats
    replicates: Floats
    reasons: NDArray[np.object_]
    patients_with_class: NDArray[np.int64]
    thresholds: dict[str, Threshold]
    seed: int
    resamples: int
    min_size: int
    unit: str
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        what = f"{', '.join(self.scores)}: {', '.join(self.measures)}; {len(self.subgroups)} sets of images"
        return f"BootstrapResult({what}; {self.resamples} resamples, seed {self.seed}, unit {self.unit})"

    def point(self, score: str, measure: str) -> Floats:
        """Values on the data, float64 of shape (subgroups,); NaN where not estimable."""
        values: Floats = self.points[self._place("score", score), self._place("measure", measure)].copy()
        return values

    def values(self, score: str, measure: str) -> Floats:
        """Values in each resample, float64 of shape (subgroups, resamples); NaN as in ``replicates``."""
        values: Floats = self.replicates[self._place("score", score), self._place("measure", measure)].copy()
        return values

    def to_frame(self) -> pd.DataFrame:
        """One row per score, subgroup and measure.

        Returns
        -------
        DataFrame
            ``score, attribute, group, measure, n_images, n_positive, n_negative, n_patients, value,
            boot_mean, sd, lo, hi, n_undefined, unit, status, reason``. ``value`` is computed on the data;
            ``boot_mean``, ``sd`` (ddof 1), ``lo`` and ``hi`` (2.5th and 97.5th percentiles, linear) on the
            resamples in which the measure is defined, and ``n_undefined`` counts the others. ``status`` is
            ``not estimable``, with NaN and the ``reason``, where the subgroup cannot be evaluated, more
            than half of the resamples are undefined, or a class it needs comes from one patient; in the
            last two cases ``value`` stays.
        """
        lines = []
        for s, score in enumerate(self.scores):
            for g, counts in enumerate(self.subgroups.to_dict("records")):
                for m, measure in enumerate(self.measures):
                    reason = self.reasons[s, m, g] or self._one_patient(measure, g)
                    summary = summary_of(self.replicates[s, m, g], reason)
                    value = float(self.points[s, m, g])
                    line = {"score": score, "measure": measure, "value": value, "unit": self.unit}
                    lines.append(counts | line | summary)
        return pd.DataFrame(lines, columns=_COLUMNS)

    def difference(self, score: str, measure: str, attribute: str) -> dict[str, Any]:
        """Largest minus smallest subgroup value of one attribute, with its bootstrap interval.

        Parameters
        ----------
        score, measure, attribute : str
            Names in this result.

        Returns
        -------
        dict
            ``score, attribute, measure, n_groups, value, boot_mean, sd, lo, hi, n_undefined, unit, status,
            reason, note``. The subgroups that can be evaluated on the data enter, the same in every
            resample; a resample in which one of them is undefined counts as undefined. ``note`` says that
            the interval is no test against zero.

        Raises
        ------
        InputError
            For a name that is not in this result.
        """
        point, replicates, n_groups, reason = self._difference(score, measure, attribute)
        return {
            "score": score,
            "attribute": attribute,
            "measure": measure,
            "n_groups": n_groups,
            "value": point,
            **summary_of(replicates, reason),
            "unit": self.unit,
            "note": NO_TEST,
        }

    def contrast(
        self,
        measure: str,
        *,
        scores: str | Sequence[str] | None = None,
        attribute: str | None = None,
        groups: str | Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """Paired change between two scores, or between two subgroups: second minus first.

        Parameters
        ----------
        measure : str
            A measure in this result.
        scores : str or pair of str, optional
            Two names contrast two scores; one name is needed where there are several.
        attribute : str, optional
            None: overall.
        groups : str or pair of str, optional
            With two scores, the subgroup they are contrasted in; None with an attribute contrasts the
            max-min differences of that attribute. With one score, the two subgroups.

        Returns
        -------
        dict
            ``measure, scores, attribute, groups, change, lo, hi, p, resamples, n_undefined, status,
            reason`` by :func:`frame.inference.contrasts.paired_contrast`; not estimable also where more
            than half of the resamples are undefined.

        Raises
        ------
        InputError
            For a name that is not in this result, or unless exactly one of scores and groups is a pair.
        """
        first, second = self._pair(scores, groups)
        sides = []
        for score, group in (first, second):
            if attribute is not None and group is None:
                sides.append(self._difference(score, measure, attribute))
            else:
                sides.append(self._subgroup(score, measure, attribute, group))
        reason = sides[0][3] or sides[1][3]
        change, replicates = sides[1][0] - sides[0][0], sides[1][1] - sides[0][1]
        found = paired_contrast(change, replicates)
        reason = reason or too_often_undefined(replicates)
        if reason:
            nan = float("nan")
            found = replace(found, lo=nan, hi=nan, p=nan, status="not estimable", reason=reason)
        named: dict[str, Any] = {
            "measure": measure,
            "scores": (first[0],) if first[0] == second[0] else (first[0], second[0]),
            "attribute": attribute if attribute is not None else OVERALL,
            "groups": tuple(dict.fromkeys(g for g in (first[1], second[1]) if g is not None)),
        }
        return named | asdict(found)

    def _place(self, kind: str, name: str) -> int:
        names = self.scores if kind == "score" else self.measures
        if name not in names:
            raise InputError(
                f"{kind} is {name!r}; this bootstrap has {', '.join(repr(known) for known in names)}."
            )
        return names.index(name)

    def _members(self, attribute: str) -> NDArray[np.intp]:
        places = np.flatnonzero((self.subgroups["attribute"] == attribute).to_numpy())
        if attribute == OVERALL or len(places) == 0:
            known = [a for a in pd.unique(self.subgroups["attribute"]) if a != OVERALL]
            raise InputError(
                f"attribute is {attribute!r}; this bootstrap has {', '.join(repr(a) for a in known)}."
            )
        return places

    def _one_patient(self, measure: str, group: int) -> str:
        """Why resampling patients cannot show the error of this value; empty when it can."""
        with_positive, with_negative = self.patients_with_class[:, group].tolist()
        return one_patient(
            measure, with_positive, with_negative, int(self.subgroups["n_patients"].iloc[group])
        )

    def _subgroup(
        self, score: str, measure: str, attribute: str | None, group: str | None
    ) -> tuple[float, Floats, int, str]:
        s, m = self._place("score", score), self._place("measure", measure)
        if attribute is None:
            if group is not None:
                raise InputError(f"groups is {group!r} without an attribute; say which attribute it is of.")
            place = 0
        else:
            members = self._members(attribute)
            names = self.subgroups["group"].iloc[members].tolist()
            if group not in names:
                raise InputError(
                    f"group is {group!r}; attribute '{attribute}' has {', '.join(repr(n) for n in names)}."
                )
            place = int(members[names.index(group)])
        reason = self.reasons[s, m, place] or self._one_patient(measure, place)
        called = OVERALL if place == 0 else f"'{group}'"
        return (
            float(self.points[s, m, place]),
            self.replicates[s, m, place],
            1,
            f"{called}: {reason}" if reason else "",
        )

    def _difference(self, score: str, measure: str, attribute: str) -> tuple[float, Floats, int, str]:
        s, m = self._place("score", score), self._place("measure", measure)
        members = self._members(attribute)
        entering = [g for g in members if not self.reasons[s, m, g]]
        point = max_min_difference(self.points[s, m, entering])
        if len(entering) < 2:
            reason = f"{len(entering)} of {len(members)} subgroups can be evaluated, and a difference needs 2"
            return point, np.full(self.resamples, np.nan), len(entering), reason
        values = self.replicates[s, m, entering]
        return point, values.max(axis=0) - values.min(axis=0), len(entering), ""

    def _pair(
        self, scores: str | Sequence[str] | None, groups: str | Sequence[str] | None
    ) -> tuple[tuple[str, str | None], tuple[str, str | None]]:
        if scores is None and len(self.scores) > 1:
            raise InputError(f"scores is None; name one or two of {', '.join(repr(s) for s in self.scores)}.")
        chosen = self.scores if scores is None else (scores,) if isinstance(scores, str) else tuple(scores)
        among: tuple[str | None, ...] = (
            (groups,) if groups is None or isinstance(groups, str) else tuple(groups)
        )
        if sorted((len(chosen), len(among))) != [1, 2]:
            raise InputError(
                f"{len(chosen)} scores and {len(among)} groups were given; a contrast takes two scores or "
                "two groups, and one of the other."
            )
        if len(chosen) == 2:
            return (chosen[0], among[0]), (chosen[1], among[0])
        return (chosen[0], among[0]), (chosen[0], among[1])

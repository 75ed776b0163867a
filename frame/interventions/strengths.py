"""One strength of one operator: refit the head on injected rows, score, and measure everything again."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from frame.heads.capped_rows import CAP
from frame.heads.disease_heads import fit_head
from frame.inference.replicates import replicate_values
from frame.interventions.injected_features import InjectedFeatures, injected_in_memory
from frame.measures.differences import max_min_difference
from frame.measures.registry import MEASURES
from frame.measures.subgroups import reason_not_evaluable
from frame.measures.thresholds import resolve_threshold
from frame.measures.values import measure_value
from frame.mitigation.achievable import UNMITIGATED, Candidate, achievable_both_ways
from frame.mitigation.contract import FITTED, Outcome, Rows, Unit, scores_of_logits
from frame.mitigation.known_groups import head_failure, judged_outcome, one_score
from frame.mitigation.registry import fit_method

if TYPE_CHECKING:
    from frame.heads.disease_heads import Head
    from frame.interventions.mechanism_rows import MechanismRows
    from frame.interventions.operators import Operator

__all__ = [
    "ACHIEVABLE",
    "GEOMETRY",
    "Measured",
    "Measuring",
    "Refitted",
    "Step",
    "evaluable_levels",
    "measured",
    "measured_scores",
    "refitted",
    "tells_nothing",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Quantities of the representation, in the order in which they are shown.
GEOMETRY: Final = ("linear_decodability", "nonlinear_decodability", "overlap", "erasure_cost")
#: The achievable difference, chosen on test as in the paper and chosen on validation.
ACHIEVABLE: Final = ("achievable_difference", "achievable_difference_validation")
#: Name of the rule for thresholds of measures that read decisions.
_RULE: Final = "sensitivity_0.80"
_NAN: Final = math.nan


@dataclass(frozen=True)
class Step:
    """One thing to compute: an operator at one strength, for one random direction.

    Attributes
    ----------
    operator : str
        ``none`` for the features as they are, or the name of an operator.
    strength : float
    direction : int
        Number of the random direction; 0 for operators without one.
    full : bool
        Whether the geometry and the achievable difference are computed too.
    """

    operator: str
    strength: float
    direction: int = 0
    full: bool = True

    @property
    def name(self) -> str:
        """A file name without an ending, the same in every run."""
        operator = self.operator.replace(" ", "_")
        return f"{operator}-{self.strength:.9g}-{self.direction}"


@dataclass(frozen=True)
class Measuring:
    """How every strength is measured.

    Attributes
    ----------
    measure : str
        Key of :data:`frame.measures.MEASURES`.
    methods : tuple of str
        Mitigation methods of the achievable difference; empty leaves it out.
    geometry, nonlinear : bool
        Whether the geometry is computed, and the nonlinear probe with it.
    resamples, seed, min_size : int
    tolerance : float
        Loss of disease AUROC that the achievable difference allows.
    threads : int, optional
        For the bootstrap.
    cap : int
        Most training images of the geometry, as of the head.
    """

    measure: str
    methods: tuple[str, ...]
    geometry: bool
    nonlinear: bool
    resamples: int
    seed: int
    min_size: int
    tolerance: float
    threads: int | None = None
    cap: int = CAP


@dataclass(frozen=True, eq=False)
class Measured:
    """What one step found.

    Attributes
    ----------
    groups : ndarray of float64, shape (levels,)
        The measure on test by group; NaN where not evaluable.
    group_replicates : ndarray of float64, shape (levels, resamples)
        The same in every resample of test patients.
    auroc : float
        Disease AUROC over all test images, those without a group too.
    auroc_replicates : ndarray of float64, shape (resamples,)
    quantities : mapping of str to float
        Achievable difference and geometry; NaN where ``reasons`` says why.
    reasons : mapping of str to str
    facts : mapping
        About the fits: ``head``, ``iterations``, ``threshold``, ``chosen``, ``excluded``; ``degenerate``,
        where the scores tell no images apart: why nothing is measured.
    """

    groups: Floats
    group_replicates: Floats
    auroc: float
    auroc_replicates: Floats
    quantities: Mapping[str, float] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def degenerate(self) -> str:
        """Why nothing can be measured, where the scores tell no images apart; else empty."""
        return str(self.facts.get("degenerate", ""))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is kept as arrays on disk."""
        return {
            "groups": self.groups,
            "group_replicates": self.group_replicates,
            "auroc": np.asarray(self.auroc),
            "auroc_replicates": self.auroc_replicates,
            "quantities": np.asarray(list(self.quantities.values()), dtype=np.float64),
        }

    def said(self) -> dict[str, Any]:
        """What is kept as JSON on disk."""
        return {"names": list(self.quantities), "reasons": dict(self.reasons), "facts": dict(self.facts)}

    @staticmethod
    def of(arrays: Mapping[str, NDArray[Any]], said: Mapping[str, Any]) -> Measured:
        """The reverse of :meth:`arrays` and :meth:`said`."""
        values = dict(zip(said["names"], arrays["quantities"].tolist(), strict=True))
        return Measured(
            arrays["groups"],
            arrays["group_replicates"],
            float(arrays["auroc"]),
            arrays["auroc_replicates"],
            values,
            said["reasons"],
            said["facts"],
        )


def evaluable_levels(data: MechanismRows, split: str, measure: str, min_size: int) -> dict[int, str]:
    """Why each group cannot be evaluated on a split, by its place; empty text where it can.

    Parameters
    ----------
    data : MechanismRows
    split, measure : str
    min_size : int

    Returns
    -------
    dict of int to str
    """
    return {
        place: reason_not_evaluable(measure, n_images, n_positive, min_size)
        for place, (_, n_images, n_positive) in enumerate(data.group_counts(split))
    }


@dataclass(frozen=True, eq=False)
class Refitted:
    """The linear head fitted on injected rows, and what it says.

    Attributes
    ----------
    parts : mapping of str to matrix
        Injected rows of ``train`` (in memory), ``validation`` and ``test`` (made as they are read).
    head : Head
    logits : mapping of str to ndarray of float64
        Of ``validation`` and ``test``.
    """

    parts: Mapping[str, Any]
    head: Head
    logits: Mapping[str, Floats]


def refitted(data: MechanismRows, operator: Operator | None, strength: float, seed: int) -> Refitted:
    """Fit the linear head at one strength and score validation and test.

    Parameters
    ----------
    data : MechanismRows
    operator : Operator or None
        None for the features as they are.
    strength : float
    seed : int

    Returns
    -------
    Refitted
    """
    parts = {name: _matrix(data, operator, strength, name) for name in ("train", "validation", "test")}
    head = fit_head(parts["train"], data.labels("train"), kind="linear", seed=seed)
    return Refitted(parts, head, {name: head.logit(parts[name]) for name in ("validation", "test")})


def measured(data: MechanismRows, fitted: Refitted, step: Step, how: Measuring) -> Measured:
    """Measure everything at one strength on test.

    Parameters
    ----------
    data : MechanismRows
    fitted : Refitted
        The head at this strength.
    step : Step
    how : Measuring

    Returns
    -------
    Measured
    """
    parts, head, logits = fitted.parts, fitted.head, fitted.logits
    found = measured_scores(data, logits, how, head_failure(head))
    facts: dict[str, Any] = {
        "head": head.status,
        "iterations": int(head.details.get("iterations", 0)),
        **found.facts,
    }
    quantities: dict[str, float] = {}
    reasons: dict[str, str] = {}
    if step.full and how.methods:
        _add_achievable(data, parts, head, logits, how, quantities, reasons, facts)
    if step.full and how.geometry:
        _add_geometry(data, parts, how, quantities, reasons, facts)
    return Measured(
        found.groups,
        found.group_replicates,
        found.auroc,
        found.auroc_replicates,
        quantities,
        reasons,
        facts,
    )


def _matrix(data: MechanismRows, operator: Operator | None, strength: float, split: str) -> Any:
    """Rows of one split under the operator: training rows in memory, the others made as they are read."""
    numbers = data.splits[split].numbers
    if split == "train":
        return injected_in_memory(data.features, data.signs, numbers, operator, strength)
    return InjectedFeatures(data.features, data.signs, numbers, operator, strength)


def tells_nothing(
    data: MechanismRows, scores: Mapping[str, Floats], splits: Sequence[str] = ("validation", "test")
) -> str:
    """Why scores tell no images of a known group apart, as a clause; empty where they do.

    Parameters
    ----------
    data : MechanismRows
    scores : mapping of str to ndarray of float64
        Of all images of each split.
    splits : sequence of str

    Returns
    -------
    str
    """
    for split in splits:
        codes = data.codes(split)
        known = codes >= 0
        why = one_score(scores[split][known], codes[known], split)
        if why:
            return re.sub(r"^all [\d,]+ ", "all ", why)  # the counts stand elsewhere, and may be hidden
    return ""


def measured_scores(
    data: MechanismRows, logits: Mapping[str, Floats], how: Measuring, failure: str = ""
) -> Measured:
    """The measure by group and the disease AUROC on test, with their paired replicates.

    Parameters
    ----------
    data : MechanismRows
    logits : mapping of str to ndarray of float64
        Of ``validation`` and ``test``.
    how : Measuring
    failure : str
        Why the head has no scores, where it has none.

    Returns
    -------
    Measured
        Without quantities of the representation. All NaN where the head has no scores, or these tell no
        images apart.
    """
    why = failure or tells_nothing(data, logits)
    if why:
        shape = len(data.levels), how.resamples
        nothing = np.full(shape, np.nan)
        facts = {"threshold": None, "degenerate": why}
        return Measured(nothing[:, 0].copy(), nothing, _NAN, nothing[0].copy(), facts=facts)
    held, known = data.splits["validation"].rows, data.codes("validation") >= 0
    cut = _threshold(logits["validation"][known], held.labels[known], how.measure)
    rows, codes = data.splits["test"].rows, data.codes("test")
    measures = list(dict.fromkeys((how.measure, "auroc")))
    replicates = replicate_values(
        logits["test"],
        rows.labels,
        rows.patients,
        rows.n_patients,
        codes,
        len(data.levels),
        measures,
        threshold=None if math.isnan(cut) else cut,
        scale="logit",
        resamples=how.resamples,
        seed=how.seed,
        threads=how.threads,
    )
    points = _group_values(data, "test", logits["test"], codes, rows.labels, how, cut)
    own = replicates[0, 1:].copy()
    own[np.isnan(points)] = np.nan
    return Measured(
        groups=points,
        group_replicates=own,
        auroc=measure_value("auroc", logits["test"], rows.labels, threshold=None, scale="logit"),
        auroc_replicates=replicates[-1, 0].copy(),
        facts={"threshold": None if math.isnan(cut) else cut},
    )


def _threshold(scores: Floats, labels: NDArray[Any], measure: str) -> float:
    needed = MEASURES[measure].reads == "decisions"
    return resolve_threshold(_RULE, (scores, labels), needed=needed, binary=False).value


def _group_values(
    data: MechanismRows,
    split: str,
    scores: Floats,
    codes: NDArray[Any],
    labels: NDArray[Any],
    how: Measuring,
    cut: float,
) -> Floats:
    """The measure by group of some images of a split, NaN where not evaluable."""
    values = np.full(len(data.levels), np.nan)
    for place, reason in evaluable_levels(data, split, how.measure, how.min_size).items():
        if not reason:
            inside = codes == place
            values[place] = measure_value(
                how.measure,
                scores[inside],
                labels[inside],
                threshold=None if math.isnan(cut) else cut,
                scale="logit",
            )
    return values


# -- the achievable difference ------------------------------------------------------------------------


def _add_achievable(
    data: MechanismRows,
    parts: Mapping[str, Any],
    head: Head,
    logits: Mapping[str, Floats],
    how: Measuring,
    quantities: dict[str, float],
    reasons: dict[str, str],
    facts: dict[str, Any],
) -> None:
    if "degenerate" in facts:
        quantities |= dict.fromkeys(ACHIEVABLE, _NAN)
        reasons |= dict.fromkeys(ACHIEVABLE, facts["degenerate"])
        return
    rows = {
        name: Rows(parts[name], data.labels(name), data.codes(name))
        for name in ("train", "validation", "test")
    }
    start = (scores_of_logits(logits["validation"]), scores_of_logits(logits["test"]))
    unit = Unit(rows["train"], rows["validation"], rows["test"], data.levels, head, start, seed=how.seed)
    candidates = [_candidate(data, unit, UNMITIGATED, Outcome(*start), how)]
    candidates += [_candidate(data, unit, name, fit_method(name, unit), how) for name in how.methods]
    found = achievable_both_ways(candidates, tolerance=how.tolerance)
    for name, one in zip(ACHIEVABLE, found, strict=True):
        quantities[name] = one.difference
        if one.status != "ok":
            reasons[name] = one.reason
    facts["chosen"] = [one.method for one in found]
    facts["excluded"] = [[e.method, e.reason] for e in found[0].excluded]


def _candidate(data: MechanismRows, unit: Unit, name: str, given: Outcome, how: Measuring) -> Candidate:
    """What one method, or the head itself, reaches on the images whose group is known."""
    outcome = judged_outcome(given, unit)
    if outcome.validation is None or outcome.test is None or outcome.status != FITTED:
        return Candidate(name, _NAN, _NAN, status=outcome.status, reason=outcome.reason)
    known = {"validation": unit.validation.known, "test": unit.test.known}
    labels = {split: data.splits[split].rows.labels[flags] for split, flags in known.items()}
    cut = _threshold(outcome.validation.ranks, labels["validation"], how.measure)
    reached = {}
    for split, own in (("validation", outcome.validation), ("test", outcome.test)):
        calibrated = MEASURES[how.measure].reads == "probabilities"
        read = _logits_of(own.probabilities) if calibrated else own.ranks
        codes = data.codes(split)[known[split]]
        values = _group_values(data, split, read, codes, labels[split], how, cut)
        auroc = measure_value("auroc", own.ranks, labels[split], threshold=None, scale="logit")
        reached[split] = max_min_difference(values[~np.isnan(values)]), auroc
    return Candidate(name, *reached["test"], *reached["validation"])


def _logits_of(probabilities: Floats) -> Floats:
    """Logits that :func:`measure_value` reads back as these probabilities."""
    from scipy.special import logit

    return np.asarray(logit(np.clip(probabilities, 1e-16, 1 - 1e-16)), dtype=np.float64)


# -- the geometry -------------------------------------------------------------------------------------


def _add_geometry(
    data: MechanismRows,
    parts: Mapping[str, Any],
    how: Measuring,
    quantities: dict[str, float],
    reasons: dict[str, str],
    facts: dict[str, Any],
) -> None:
    from frame.interventions.geometry import geometry_of

    rows = {name: Rows(parts[name], data.labels(name), data.codes(name)) for name in ("train", "test")}
    found = geometry_of(
        rows["train"], rows["test"], data.levels, nonlinear=how.nonlinear, cap=how.cap, seed=how.seed
    )
    flags = []
    for name in GEOMETRY:
        one = getattr(found, name)
        quantities[name] = one.value
        if one.status != "ok":
            reasons[name] = f"{one.status}: {one.reason}"
        flags += [f"{name}: {flag}" for flag in one.flags]
    facts["flags"] = flags

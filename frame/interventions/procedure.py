"""The whole procedure on one finding and one attribute: the gate of step one, then step two."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from frame.audits.one_audit import audit_one
from frame.audits.settings import check_settings
from frame.errors import InputError
from frame.inference.multiplicities import whole_number
from frame.interventions.decision import decide, precondition_of
from frame.interventions.finished_strengths import FinishedStrengths, digest_of
from frame.interventions.mechanism_rows import MechanismRows, mechanism_rows
from frame.interventions.operator_grids import (
    DECODABILITY,
    ENTANGLEMENT,
    WHITENED,
    GridRun,
    Grids,
    check_grid,
    run_grids,
)
from frame.interventions.strength_tables import (
    Curve,
    changes_table,
    difference_change,
    direction_table,
    loss_change,
    strengths_table,
    trend_table,
)
from frame.interventions.strengths import Measuring, Refitted, Step, refitted, tells_nothing
from frame.interventions.verdict import Verdict
from frame.measures.registry import MEASURES, check_measure
from frame.measures.thresholds import resolve_threshold
from frame.mitigation.achievable import TOLERANCE
from frame.mitigation.feature_rows import SPLITS
from frame.mitigation.known_groups import head_failure
from frame.mitigation.registry import METHODS, NINE
from frame.verdicts import probability

if TYPE_CHECKING:
    from frame.audits import Audit

__all__ = ["DIRECTIONS", "mechanism"]

#: Random directions over which the decodability operator is averaged.
DIRECTIONS: Final = 20
#: An interval needs as many resamples.
FEWEST_RESAMPLES: Final = 100
_MOST_DIRECTIONS: Final = 1000
#: One-sided p above which a note says that scores are not shown to beat chance; it decides nothing.
_CHANCE: Final = 0.05
#: Of decodability, in standard deviations; far beyond what any probe needs.
_MOST_STRENGTH: Final = 1e6


def mechanism(
    features: Any,
    labels: Any,
    groups: Any,
    split: Any,
    *,
    patients: Any = None,
    scores: Any = None,
    exclude: Iterable[str] = (),
    majority: str | None = None,
    measure: str = "auroc",
    methods: str | Sequence[str] = NINE,
    geometry: bool = True,
    nonlinear: bool = True,
    whitened: bool = True,
    directions: int = DIRECTIONS,
    decodability_strengths: Sequence[float] = DECODABILITY,
    entanglement_strengths: Sequence[int] = ENTANGLEMENT,
    whitened_strengths: Sequence[float] = WHITENED,
    reference: str = "auto",
    scale: str = "probability",
    alpha: float = 0.05,
    min_size: int = 20,
    resamples: int = 1000,
    seed: int = 0,
    cap: int = 100_000,
    folder: str | Path | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Verdict:
    """Ask what a difference between subgroups responds to: inject a cause, and measure whether it moves.

    Step one comes first. Where an exactly fair model would show the observed difference with a probability
    above ``alpha`` there is nothing to explain, and step two is not run. Otherwise two operators change the
    embeddings at rising strengths: one makes the group easier to read and leaves the disease alone, the other
    takes disease signal out of every group but the majority. At every strength the linear disease head is
    fitted again and everything is measured again on test, on the same resamples of patients.

    Parameters
    ----------
    features : array_like of float16, float32 or float64, shape (images, dimensions)
        One embedding an image; may be mapped from a file (``numpy.load(..., mmap_mode="r")``), and is read in
        blocks and never changed.
    labels : array_like, shape (images,)
        0 and 1, or False and True; a missing one leaves the image out, counted.
    groups : array_like, shape (images,)
        One attribute. An image without a value fits the head, counts in its disease AUROC, is never changed
        by an operator, sets no threshold, and is in no subgroup.
    split : array_like of str, shape (images,), or mapping
        ``train``, ``validation`` or ``test`` for each image, or row numbers or flags for the three. None:
        drawn by patient, 60 / 15 / 25 %.
    patients : array_like, shape (images,), optional
        Patient of each image; none may be in two splits. Without them each image is its own patient.
    scores : array_like of float, shape (images,), optional
        Scores that step one audits, on validation and test. None: those of the linear head that step two
        starts from.
    exclude : iterable of str
        Groups whose images are dropped everywhere, counted.
    majority : str, optional
        The group that the operators leave as it is, or mark with +1. None: the largest of the training rows.
    measure : str
        Key of :data:`frame.measures.MEASURES`; measures of decisions take their threshold from validation
        (sensitivity 0.80), anew at every strength.
    methods : str or sequence of str
        Mitigation methods of the achievable difference; empty leaves it out, and the result says so.
    geometry, nonlinear : bool
        Whether decodability, overlap and erasure cost are computed, and the nonlinear probe with them, by far
        the slowest part. Without the geometry it is not tested whether decodability saturates before the
        smallest strength, and none is added.
    whitened : bool
        Whether our variant of the entanglement operator stands beside the paper's; it does not decide.
    directions : int
        Random directions over which the decodability operator is averaged; the geometry is that of the first.
    decodability_strengths, entanglement_strengths, whitened_strengths : sequence of number
        Grids, which begin with 0. Directions beyond half of the dimensions are not run.
    reference : str
        Method of step one; see ``method`` of :func:`frame.audit`.
    scale : {"probability", "logit"}
        How step one reads ``scores``.
    alpha : float
        Level of step one.
    min_size : int
        Fewest test images of a group that is compared.
    resamples : int
        Of test patients, 100 or more, shared by all strengths.
    seed : int
        Of every random number.
    cap : int
        Most training images, the same at every strength.
    folder : str or Path, optional
        Where finished strengths are kept, so that a run that was ended goes on. They belong to these inputs,
        settings and this code, and are not read for any other.
    threads : int, optional
        Of the bootstrap; no effect on the results.
    progress : callable, optional
        Called with the number of steps done and their total.

    Returns
    -------
    Verdict
        With ``.verdict .reasons .caveats .step_one .strengths .changes .precondition .trend .to_frame()
        .plot() .to_html(path)``.

    Raises
    ------
    InputError
        One sentence saying what was found, where, what is allowed and what to do.

    Notes
    -----
    An operator moves the difference when the change from strength 0 to the largest exceeds 0.005 and its 95 %
    interval over paired resamples of patients excludes 0. The entanglement test speaks only where the disease
    AUROC falls by more than 0.010 at the largest strength and that interval excludes 0.

    Removing disease signal from some groups raises a difference almost by construction, so a verdict says
    what the difference responds to, and not what caused it.

    References
    ----------
    Equations 3 and 4, and Supplementary Algorithms 1 and 2, of the paper. The paper's decision (a significant
    rank correlation with strength) cannot be met by one unit with four strengths, and where more strengths
    can meet it, it reads one number of each and not its error; it stands beside.
    """
    how, grids = _asked(
        measure,
        methods,
        resamples,
        seed,
        min_size,
        threads,
        whole_number("cap", cap, 1),
        geometry=geometry,
        nonlinear=nonlinear,
        whitened=whitened,
        directions=directions,
        decodability=decodability_strengths,
        entanglement=entanglement_strengths,
        lambdas=whitened_strengths,
    )
    if progress is not None and not callable(progress):
        raise InputError(f"progress is {progress!r:.80}; give a function of two numbers, or None.")
    if scale not in ("probability", "logit"):
        raise InputError(f"scale is {scale!r:.80}; allowed are 'probability', 'logit'.")
    settings = check_settings(
        measure=how.measure,
        method=reference,
        min_size=how.min_size,
        missing="drop",
        scale=scale if scores is not None else "logit",
        alpha=alpha,
        resamples=how.resamples,
        seed=how.seed,
    )
    data = mechanism_rows(
        features,
        labels,
        groups,
        split,
        patients=patients,
        scores=scores,
        exclude=exclude,
        majority=majority,
        cap=how.cap,
        seed=how.seed,
    )
    store = _store(data, how, grids, folder)
    start = refitted(data, None, 0.0, how.seed)
    audit, failed = _gate(data, start, settings)
    p = math.nan if failed else audit.p
    doubt = "" if failed else _not_above_chance(data, start)
    gate = {"p": p, "alpha": settings.alpha, "reason": failed or audit.reason}
    notes = list(data.notes)
    if start.head.status not in ("ok", "converged"):
        notes.append(
            f"The linear head on the features as they are is {start.head.status}: {start.head.reason}."
        )
    if doubt:
        notes.append(doubt)
    said = {
        "measure": how.measure,
        "methods": how.methods,
        "geometry": how.geometry,
        "nonlinear": how.nonlinear,
        "directions": grids.directions,
        "alpha": settings.alpha,
        "min_size": how.min_size,
        "resamples": how.resamples,
        "seed": how.seed,
        "cap": how.cap,
        "unit": audit.unit,
        "majority": data.majority,
        "excluded": dict(data.excluded),
        "scores_given": scores is not None,
        "dimensions": int(data.features.shape[1]),
    }
    curves: tuple[Curve, ...] = ()
    if p <= settings.alpha:
        run = GridRun(data, how, grids, store, progress)
        before = run.step(None, Step("none", 0.0), start)
        del start  # training rows in memory
        curves, found_notes = run_grids(run, before)
        notes += found_notes
    changes = {
        curve.operator: {
            "difference": difference_change(data, how, curve),
            "disease_auroc": loss_change(curve),
        }
        for curve in curves
    }
    precondition = precondition_of(changes["entanglement"]["disease_auroc"]) if curves else None
    verdict, reasons = decide(
        gate, {operator: found["difference"] for operator, found in changes.items()}, precondition
    )
    return Verdict(
        verdict=verdict,
        reasons=reasons,
        step_one=audit,
        precondition=precondition,
        decided={operator: found["difference"] for operator, found in changes.items()},
        strengths=strengths_table(data, how, curves),
        changes=changes_table(changes),
        trend=trend_table(curves, data, how),
        directions=direction_table(curves, data, how),
        splits=_split_counts(data),
        label=data.label,
        attribute=data.attribute,
        levels=data.levels,
        notes=tuple(notes),
        settings=said,
    )


# -- what was asked -----------------------------------------------------------------------------------


def _asked(
    measure: str,
    methods: str | Sequence[str],
    resamples: int,
    seed: int,
    min_size: int,
    threads: int | None,
    cap: int,
    **given: Any,
) -> tuple[Measuring, Grids]:
    for name in ("geometry", "nonlinear", "whitened"):
        if not isinstance(given[name], bool):
            raise InputError(f"{name} is {given[name]!r}; give True or False.")
    if isinstance(min_size, bool) or not isinstance(min_size, int | np.integer) or min_size < 1:
        raise InputError(f"min_size is {min_size!r}; it must be a whole number, 1 or more.")
    how = Measuring(
        measure=check_measure(measure).name,
        methods=_methods(methods),
        geometry=given["geometry"],
        nonlinear=given["nonlinear"],
        resamples=whole_number("resamples", resamples, FEWEST_RESAMPLES, 100_000),
        seed=whole_number("seed", seed, 0, 2**32 - 1),
        min_size=int(min_size),
        tolerance=TOLERANCE,
        threads=None if threads is None else whole_number("threads", threads, 1),
        cap=cap,
    )
    grids = Grids(
        directions=whole_number("directions", given["directions"], 1, _MOST_DIRECTIONS),
        decodability=check_grid("decodability_strengths", given["decodability"], most=_MOST_STRENGTH),
        entanglement=tuple(
            int(k) for k in check_grid("entanglement_strengths", given["entanglement"], whole=True)
        ),
        whitened=check_grid("whitened_strengths", given["lambdas"], most=1.0) if given["whitened"] else (),
    )
    return how, grids


def _methods(methods: str | Sequence[str]) -> tuple[str, ...]:
    """Names of mitigation methods, each known and named once; empty leaves the achievable difference out."""
    several = isinstance(methods, Iterable) and not isinstance(methods, bytes | Mapping)
    named = (methods,) if isinstance(methods, str) else tuple(methods) if several else ()
    if not several or not all(isinstance(name, str) for name in named):
        raise InputError(f"methods is {methods!r:.80}; give a name, a list of names, or () for none.")
    for name in named:
        if name not in METHODS:
            raise InputError(f"method is {name!r}; allowed are {', '.join(METHODS)}.")
        if named.count(name) > 1:
            raise InputError(f"method '{name}' is named {named.count(name)} times; name it once.")
    return named


def _store(data: MechanismRows, how: Measuring, grids: Grids, folder: str | Path | None) -> FinishedStrengths:
    """Where finished strengths are kept; without a folder nothing is hashed."""
    if folder is None:
        return FinishedStrengths(None, "")
    if not isinstance(folder, str | Path):
        raise InputError(f"folder is a {type(folder).__name__}; give a path.")
    if isinstance(folder, str) and not folder.strip():
        raise InputError("folder is empty; give a path, or None.")
    arrays: dict[str, Any] = {"signs": data.signs}
    for part in SPLITS:
        rows = data.splits[part].rows
        arrays |= {
            f"{part} numbers": data.splits[part].numbers,
            f"{part} labels": rows.labels,
            f"{part} groups": data.codes(part),
            f"{part} patients": rows.patients,
        }
    settings = {
        "levels": data.levels,
        "measure": how.measure,
        "methods": how.methods,
        "geometry": how.geometry,
        "nonlinear": how.nonlinear,
        "resamples": how.resamples,
        "seed": how.seed,
        "min_size": how.min_size,
        "tolerance": how.tolerance,
        "cap": how.cap,
        "directions": grids.directions,
        "entanglement": grids.entanglement,
    }
    rows_used = [data.splits[part].numbers for part in SPLITS]
    return FinishedStrengths(Path(folder), digest_of(data.features, rows_used, arrays, settings))


# -- step one -----------------------------------------------------------------------------------------


def _gate(data: MechanismRows, start: Refitted, settings: Any) -> tuple[Audit, str]:
    """Audit the difference on test, of the scores given or of the linear head; why these say nothing."""
    name = "the scores given" if data.scores is not None else "linear head"
    values = {
        part: data.scores[data.splits[part].numbers] if data.scores is not None else start.logits[part]
        for part in ("validation", "test")
    }
    needed = MEASURES[settings.measure].reads == "decisions"
    known = data.codes("validation") >= 0
    held = (values["validation"][known], data.splits["validation"].rows.labels[known])
    cut = resolve_threshold("sensitivity_0.80" if needed else None, held, needed=needed, binary=False)
    if settings.scale == "probability" and MEASURES[settings.measure].reads == "probabilities":
        wrong = int(np.count_nonzero((values["test"] < 0) | (values["test"] > 1)))
        if wrong:
            raise InputError(
                f"scores: {wrong:,} test scores lie outside 0 to 1, and {settings.measure} reads "
                "probabilities; say scale='logit' if they are logits."
            )
    rows = replace(data.splits["test"].rows, scores={name: np.asarray(values["test"], dtype=np.float64)})
    audit = audit_one(replace(rows, binary=False), data.attribute, name, data.label, "", cut, settings)
    failed = head_failure(start.head) if data.scores is None else ""
    return audit, failed or tells_nothing(data, values, ("validation", "test") if needed else ("test",))


def _not_above_chance(data: MechanismRows, start: Refitted) -> str:
    """A sentence where the audited scores are not shown to read the disease; empty where they are."""
    from scipy.stats import mannwhitneyu

    test = data.splits["test"]
    scores = start.logits["test"] if data.scores is None else data.scores[test.numbers]
    positive = test.rows.labels == 1
    if not positive.any() or positive.all():
        return ""
    found = mannwhitneyu(scores[positive], scores[~positive], alternative="greater", method="asymptotic")
    if found.pvalue <= _CHANCE:
        return ""
    area = found.statistic / (np.count_nonzero(positive) * np.count_nonzero(~positive))
    return (
        "On test the scores are not shown to tell positives from negatives better than chance: AUROC "
        f"{area:.3f}, one-sided p {probability(found.pvalue)} with every image taken as independent. With "
        "few positives this may be for want of images; but where a score reads no disease, a verdict says "
        "nothing about groups."
    )


def _split_counts(data: MechanismRows) -> Any:
    """Images, positives and patients of every group in every split."""
    import pandas as pd

    lines = []
    for part in SPLITS:
        rows, codes = data.splits[part].rows, data.codes(part)
        named = [*enumerate(data.levels), (-1, "(missing)")]
        for place, level in named:
            inside = codes == place
            if place < 0 and not inside.any():
                continue
            sign = 0 if place < 0 else 1 if level == data.majority else -1
            lines.append(
                {
                    "split": part,
                    "group": level,
                    "sign": sign,
                    "n_images": int(inside.sum()),
                    "n_positive": int(rows.labels[inside].sum()),
                    "n_patients": len(pd.unique(rows.patients[inside])),
                }
            )
    return pd.DataFrame(lines)

"""Audit scores: one difference, or every score, label, attribute and measure of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from frame.audits.one_audit import audit_one, corrected
from frame.audits.result import Audit, frame_of
from frame.audits.settings import Settings, check_settings
from frame.audits.validation_rows import check_other_patients, validation_columns
from frame.errors import InputError
from frame.measures.columns import named_columns
from frame.measures.registry import MEASURES, check_measure
from frame.measures.rows import ScoredRows, missing_note, scored_rows, split_within
from frame.measures.subgroups import check_probabilities
from frame.measures.thresholds import Threshold, resolve_threshold

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["audit", "audit_table", "audits_of"]


def audit(
    scores: Any,
    labels: Any,
    groups: Any,
    patients: Any = None,
    *,
    measure: str = "auroc",
    method: str = "auto",
    protocol: str = "exact",
    threshold: float | str | None = None,
    validation: tuple[Any, ...] | None = None,
    within: Any = None,
    min_size: int = 20,
    missing: str = "error",
    scale: str = "probability",
    alpha: float = 0.05,
    margin: float = 0.0,
    intersections: bool = False,
    images_repeat: bool = False,
    resamples: int = 1000,
    seed: int = 0,
) -> Audit:
    """Compare the difference between subgroups in your own scores with what an exactly fair model shows.

    Parameters
    ----------
    scores : array_like of float, shape (images,)
        One score an image; only 0 and 1 are decisions. Higher means more positive: no direction is ever
        turned round.
    labels : array_like, shape (images,)
        0 and 1 or false and true, in any dtype that equals them; a missing one means an image without a
        label for the finding, which is left out and counted.
    groups : array_like, shape (images,), or table of such columns
        Subgroup of each image. Several columns need ``intersections=True``, which audits their
        combinations.
    patients : array_like, shape (images,), optional
        Patient of each image, ids of any kind. Without them every image counts as its own patient.
    measure : str
        ``auroc, tpr, fpr, fnr, specificity, accuracy, ppv, npv, ece, brier`` or ``auprc``.
    method : str
        How the fair-model reference is made. ``auto`` is ``calibrated`` for AUROC, TPR, FPR, FNR,
        specificity and accuracy, and ``pooled`` (permutation) for the others. AUROC also has
        ``calibrated-balanced`` (where images of a patient agree more in small subgroups), ``delong``,
        ``obuchowski`` (for comparison), ``hanley-mcneil`` and ``binormal`` (from counts), the rates have
        ``binomial``; all have ``pooled``.
    protocol : {"exact", "paper"}
        ``paper`` simulates as the paper does; for methods on counts.
    threshold : float or str, optional
        A number, ``"sensitivity_0.80"`` or ``"youden"``; the last two need ``validation``. A measure of
        decisions on scores that are not all 0 and 1 needs one of them.
    validation : (scores, labels) or (scores, labels, patients), optional
        Where a threshold comes from; never the audited rows. With patients in both, no patient may be in
        both.
    within : array_like, shape (images,), or str, optional
        Strata to audit each on its own; a name takes that column out of ``groups``.
    min_size : int
        Fewest images of an evaluable subgroup.
    missing : {"error", "group", "drop"}
        What a missing subgroup means: an error, a subgroup of its own, or an image left out and counted.
    scale : {"probability", "logit"}
        How ECE and Brier score read a score.
    alpha : float
        Level of the test.
    margin : float
        Tolerated true difference, in [0, 1); not for ``pooled``, and for at most 8 subgroups.
    intersections : bool
        Audit the combinations of several group columns.
    images_repeat : bool
        Say so if patients have several images and you cannot give their ids: the calibrated reference is
        then shown without a p. Not together with ``patients``.
    resamples : int
        Bootstrap resamples of patients for intervals, computed when first used; 0 switches them off.
    seed : int
        Of every random number.

    Returns
    -------
    Audit
        With ``.observed .reference .remainder .share .p .interval .worst .by_group .verdict .to_frame()
        .plot() .to_html(path)``. A difference that cannot be audited is a result with ``status`` ``not
        estimable`` and a ``reason``, not an error.

    Raises
    ------
    InputError
        One sentence naming the argument, what was found and what is allowed.

    Notes
    -----
    The same evaluable subgroups enter the difference and its reference. ``p`` counts larger differences
    only; ``p_heterogeneity`` stands beside it because the range hardly sees a drop outside the smallest
    subgroup.

    Examples
    --------
    >>> import numpy as np, frame
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.random(600) < 0.3
    >>> result = frame.audit(labels + rng.normal(size=600), labels, np.repeat(["F", "M"], 300))
    >>> result.status, round(result.observed, 3)
    ('ok', 0.024)
    """
    models = named_columns(scores, "scores", "score")
    truth = named_columns(labels, "labels", "label")
    for what, given, many in (("scores", models, "score"), ("labels", truth, "label")):
        if len(given) > 1:
            raise InputError(
                f"{what} has {len(given)} columns; frame.audit takes one {many}, "
                "and frame.audits.audit_table takes many."
            )
    columns = named_columns(groups, "groups", "group")
    n_compared = len(columns) - (isinstance(within, str) and within in columns)
    if n_compared > 1 and not intersections:
        raise InputError(
            f"groups has {n_compared} columns; give one, or intersections=True to audit their combinations, "
            "or use frame.audits.audit_table for an audit of each."
        )
    found = audits_of(
        models,
        truth,
        groups,
        patients,
        measures=[measure],
        method=method,
        protocol=protocol,
        threshold=threshold,
        validation=validation,
        within=within,
        min_size=min_size,
        missing=missing,
        scale=scale,
        alpha=alpha,
        margin=margin,
        intersections=intersections,
        images_repeat=images_repeat,
        resamples=resamples,
        seed=seed,
        whole=True,
    )
    return found[-1]


def audit_table(scores: Any, labels: Any, groups: Any, patients: Any = None, **settings: Any) -> pd.DataFrame:
    """Audit every score, label, attribute and measure, corrected for how many they are.

    Parameters
    ----------
    scores, labels, groups, patients, **settings
        As in :func:`audits_of`.

    Returns
    -------
    DataFrame
        One row per score, label, attribute, stratum and measure, in the columns of
        :data:`frame.audits.columns.COLUMNS`. ``q`` is corrected within ``family``, in which TPR and FNR (FPR
        and specificity) of the same rows are one test.

    Raises
    ------
    InputError
        As :func:`audits_of`.
    """
    return frame_of(audits_of(scores, labels, groups, patients, **settings))


def audits_of(
    scores: Any,
    labels: Any,
    groups: Any,
    patients: Any = None,
    *,
    measures: Sequence[str] = ("auroc",),
    method: str = "auto",
    protocol: str = "exact",
    threshold: float | str | None = None,
    validation: tuple[Any, ...] | None = None,
    within: Any = None,
    min_size: int = 20,
    missing: str = "error",
    scale: str = "probability",
    alpha: float = 0.05,
    margin: float = 0.0,
    intersections: bool = False,
    images_repeat: bool = False,
    resamples: int = 1000,
    seed: int = 0,
    whole: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> list[Audit]:
    """Audit every combination of scores, labels, attributes, strata and measures.

    Parameters
    ----------
    scores, labels, groups : array_like, shape (images,), or table of such columns
        A DataFrame or a dict gives several. Every score and label is audited on the rows that have both.
    patients : array_like, shape (images,), optional
        Patient of each image.
    measures : sequence of str
        See :func:`audit`.
    method : str
        ``auto``, or a method that every measure has.
    validation : (scores, labels) or (scores, labels, patients), optional
        Tables with the same columns as ``scores`` and ``labels``.
    within : array_like, shape (images,), or str, optional
        Strata; each becomes an audit of its own.
    intersections : bool
        Audit the combinations of all attributes too.
    images_repeat : bool
        See :func:`audit`.
    whole : bool
        With ``within``, one audit of all rows that holds those of its strata, in place of the strata.
    progress : callable, optional
        Called with the number of audits done and their total.
    protocol, threshold, min_size, missing, scale, alpha, margin, resamples, seed
        As in :func:`audit`.

    Returns
    -------
    list of Audit
        In the order score, label, attribute, stratum, measure.

    Raises
    ------
    InputError
        One sentence naming the argument, what was found and what is allowed.
    """
    models = named_columns(scores, "scores", "score")
    truths = named_columns(labels, "labels", "label")
    chosen = _settings_of(
        measures,
        method=method,
        protocol=protocol,
        min_size=min_size,
        missing=missing,
        scale=scale,
        alpha=alpha,
        margin=margin,
        resamples=resamples,
        seed=seed,
        intersections=intersections,
        images_repeat=images_repeat,
    )
    if images_repeat and patients is not None:
        raise InputError(
            "images_repeat is True and patients are given, which say so themselves; leave images_repeat out."
        )
    held_out = validation_columns(validation, list(models), list(truths))
    decisions = any(MEASURES[s.measure].reads == "decisions" for s in chosen)
    notes = check_other_patients(validation, patients) if decisions else ()
    found: list[Audit] = []
    steps = _Steps(progress, len(models) * len(truths))
    for score, values in models.items():
        for label, truth in truths.items():
            rows = scored_rows(
                {score: values},
                truth,
                groups,
                patients,
                missing=missing,
                scale=scale,
                intersections=intersections,
                within=within,
            )
            cut = resolve_threshold(
                threshold, held_out.get((score, label)), needed=decisions, binary=rows.binary
            )
            for settings in chosen:
                check_probabilities(rows.score(score), settings.measure, scale, score)
            said = notes if cut.source.endswith("on validation") else ()
            found += _audits_of_rows(rows, score, label, cut, chosen, whole, said, steps)
            steps.finish_pair()
    return corrected(found)


class _Steps:
    """Counts audits for a progress bar; how many one pair makes is known after the first."""

    def __init__(self, progress: Callable[[int, int], None] | None, pairs: int) -> None:
        self._progress, self._pairs = progress, pairs
        self._done, self._pairs_done = 0, 0

    def advance(self, of_this_pair: int) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, max(self._done, of_this_pair * self._pairs))

    def finish_pair(self) -> None:
        self._pairs_done += 1


def _settings_of(measures: Sequence[str], **settings: Any) -> list[Settings]:
    named = [measures] if isinstance(measures, str) else list(measures)
    if not named:
        raise InputError("measures is empty; name at least one, for example 'auroc'.")
    for name in named:
        check_measure(name)
        if named.count(name) > 1:
            raise InputError(f"measure '{name}' is named {named.count(name)} times; name it once.")
    return [check_settings(measure=name, **settings) for name in named]


def _audits_of_rows(
    rows: ScoredRows,
    score: str,
    label: str,
    cut: Threshold,
    chosen: Sequence[Settings],
    whole: bool,
    said: tuple[str, ...],
    steps: _Steps,
) -> list[Audit]:
    dropped = ""
    if rows.within is not None and not bool((rows.within.codes >= 0).all()):
        # All strata together are the rows of the strata, and no others.
        dropped = f"{missing_note(rows.within, rows).rstrip('.')}; they are left out."
        rows = rows.take(rows.within.codes >= 0)
    strata = split_within(rows)
    inside = whole and rows.within is not None
    n_audits = len(rows.attributes) * len(chosen) * (len(strata) + inside)

    def made(part: ScoredRows, attribute: str, stratum: str, settings: Settings) -> Audit:
        one = audit_one(part, attribute, score, label, stratum, cut, settings, said)
        steps.advance(n_audits)
        return replace(one, notes=(dropped, *one.notes)) if dropped else one

    found: list[Audit] = []
    for attribute in [a.name for a in rows.attributes]:
        for settings in chosen:
            each = [made(part, attribute, stratum, settings) for stratum, part in strata]
            found += [replace(made(rows, attribute, "", settings), strata=tuple(each))] if inside else each
    return found

"""Compare mitigation methods on embeddings: every difference before and after, with what it costs.

One disease head is trained on all images that have a label, and several attributes are read from its scores.
Each method is fitted on the same training images, takes its threshold from its own validation scores, and is
judged on test with the same resamples of patients, so that every change is paired.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from frame.audits.suppression import hidden_subgroups
from frame.errors import InputError
from frame.inference.multiplicities import whole_number
from frame.measures.registry import check_measure
from frame.measures.subgroups import check_min_size
from frame.mitigation.achievable import TOLERANCE
from frame.mitigation.comparison_tables import tables_of
from frame.mitigation.contract import WEIGHTINGS
from frame.mitigation.feature_rows import SPLITS, feature_rows
from frame.mitigation.fitted_arms import fitted_arms, head_of, split_rows, unit_of, unmitigated_scores
from frame.mitigation.judged import Arm, Judged, Judging, judge
from frame.mitigation.registry import METHODS, NINE

if TYPE_CHECKING:
    import pandas as pd

    from frame.audits import Audit

__all__ = ["FEWEST_RESAMPLES", "MEASURES_SHOWN", "Comparison", "compare_methods"]

#: The paper's four measures.
MEASURES_SHOWN: Final = ("auroc", "tpr", "fpr", "ece")
HEADS: Final = ("linear", "mlp")
#: An interval needs as many resamples.
FEWEST_RESAMPLES: Final = 100
_RULE: Final = re.compile(r"sensitivity_(\d+(?:\.\d+)?)")


@dataclass(frozen=True, eq=False)
class Comparison:
    """What every method does to every difference; made by :func:`compare_methods`.

    Attributes
    ----------
    label : str
        The finding.
    attributes, measures, methods : tuple of str
        What was compared, in the order of the tables.
    table : DataFrame
        One row per attribute, method and measure, the unmitigated head and the methods that failed included:
        the columns of :data:`frame.mitigation.columns.COLUMNS`. Values on the 0-1 scale, share in percent.
    by_group : DataFrame
        One row per attribute, method, measure and group, with counts, value, interval and paired change.
    achievable : DataFrame
        For every attribute and measure the smallest difference within the allowed loss of disease AUROC,
        once chosen on test (the paper's) and once chosen on validation; both judged on test.
    methods_run : DataFrame
        One row per attribute and method: status, reason, flags, facts of the fit.
    splits : DataFrame
        Counts of the splits.
    notes : tuple of str
        What was left out, drawn, capped or skipped, in sentences.
    settings : dict
        ``head, weighting, threshold, resamples, seed, min_size, missing, cap, alpha, tolerance, unit``.
    audits : tuple of Audit
        For each attribute one audit of the unmitigated head, for the counts of its groups.
    seconds : tuple of (str, str, float, float)
        Step, attribute (may be empty), how long it took, and the time of all processor cores together; in
        no table and no report.
    """

    label: str
    attributes: tuple[str, ...]
    measures: tuple[str, ...]
    methods: tuple[str, ...]
    table: pd.DataFrame
    by_group: pd.DataFrame
    achievable: pd.DataFrame
    methods_run: pd.DataFrame
    splits: pd.DataFrame
    notes: tuple[str, ...]
    settings: Mapping[str, Any]
    audits: tuple[Audit, ...] = field(repr=False)
    seconds: tuple[tuple[str, str, float, float], ...] = field(repr=False)

    def __repr__(self) -> str:
        from frame.mitigation.words import summary_words

        what = f"{len(self.methods)} methods, {self.label} by {', '.join(self.attributes)}"
        return f"Comparison({what})\n" + "\n".join(summary_words(self))

    def to_frame(self) -> pd.DataFrame:
        """One row per attribute, method and measure, then two per attribute and measure: what is achievable.

        Returns
        -------
        DataFrame
            The columns of :data:`frame.mitigation.columns.COLUMNS`. The rows of the achievable difference
            are called ``achievable``; ``chosen_on`` says where, and ``chosen`` which method it is.
        """
        return self.table.copy()

    def hidden(self, suppress_below: int) -> dict[str, frozenset[str]]:
        """Groups of each attribute that must not be shown, for counts below a limit.

        Parameters
        ----------
        suppress_below : int
            Smallest count that may be shown; 0 hides nothing.

        Returns
        -------
        dict of str to frozenset of str
        """
        found = hidden_subgroups(self.audits, suppress_below)
        return dict(zip(self.attributes, found, strict=True))

    def to_html(self, path: str | Path, *, suppress_below: int = 0) -> Path:
        """Write a report: one file, no network, readable on a phone and in the dark.

        Parameters
        ----------
        path : str or Path
            File to make or replace.
        suppress_below : int
            Counts below it are shown as ``<N``, and the values of their groups are hidden, together with
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
        from frame.mitigation.report import write_report

        return write_report(self, Path(path), suppress_below=suppress_below)


def compare_methods(
    features: Any,
    labels: Any,
    groups: Any,
    split: Any = None,
    patients: Any = None,
    *,
    methods: str | Sequence[str] = NINE,
    weighting: str = "paper",
    head: str = "linear",
    measures: str | Sequence[str] = MEASURES_SHOWN,
    threshold: str = "sensitivity_0.80",
    resamples: int = 1000,
    seed: int = 0,
    missing: str = "error",
    min_size: int = 20,
    cap: int = 100_000,
    alpha: float = 0.05,
    tolerance: float = TOLERANCE,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Train a disease head on embeddings, apply every method, and compare the differences on test.

    Parameters
    ----------
    features : array_like of float16, float32 or float64, shape (images, dimensions)
        One embedding an image; may be mapped from a file (``numpy.load(..., mmap_mode="r")``).
    labels : array_like, shape (images,)
        0 and 1, or False and True; a missing one means an image without a label, left out and counted.
    groups : array_like, shape (images,), or table of such columns
        One attribute or several, all read from the same unmitigated scores.
    split : array_like of str, shape (images,), or mapping, optional
        ``train``, ``validation`` or ``test`` for each image (others are left out and counted), or a
        dictionary of row numbers or flags for the three. None: drawn by patient, 60 / 15 / 25 %.
    patients : array_like, shape (images,), optional
        Patient of each image; none may be in two splits. Without them each image is its own patient.
    methods : str or sequence of str
        Names of :data:`frame.mitigation.registry.METHODS`.
    weighting : {"paper", "equal"}
        ``paper``: balanced class weights in the linear disease head and its refits alone (the network has
        none, as in the paper); ``equal``: in every fit.
    head : {"linear", "mlp"}
        Kind of the disease head.
    measures : str or sequence of str
        Names of :data:`frame.measures.MEASURES`.
    threshold : {"sensitivity_0.80", "youden"} or other share
        Rule that gives every method its threshold on its own validation scores.
    resamples : int
        Of patients, 100 or more, shared by all methods, measures and attributes.
    seed : int
        Of every random number.
    missing : {"error", "group", "drop"}
        What a missing group means: an error; a group of its own; or an image that trains the unmitigated
        head, keeps its score, and stays out of what is compared for this attribute, before and after.
    min_size : int
        Fewest test images of a group that is compared.
    cap : int
        Most training images, the same for every method.
    alpha : float
        Level of the tests, after correction.
    tolerance : float
        Loss of disease AUROC that the achievable difference allows.
    threads : int, optional
        For the bootstrap; None takes what the process may use. No effect on the results.
    progress : callable, optional
        Called with the number of steps done and their total.

    Returns
    -------
    Comparison
        A method that cannot be fitted has rows that say so.

    Raises
    ------
    InputError
        One sentence saying what was found, where, what is allowed and what to do.

    Notes
    -----
    Everything is corrected by Benjamini and Hochberg. Paired changes are one family over all methods,
    attributes and measures. Exceedances of the unmitigated head are corrected as an audit does, the
    attributes within a measure; those of the methods in a family of their own for each measure; those of the
    achievable difference over attributes and measures, for each place where it was chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from frame.mitigation.comparison import compare_methods
    >>> rng = np.random.default_rng(0)
    >>> labels, groups = rng.random(3000) < 0.3, rng.choice(["A", "B"], 3000)
    >>> features = rng.normal(size=(3000, 8)) + labels[:, None] * 0.3
    >>> found = compare_methods(features, labels, groups, methods=["reweigh"], resamples=100)
    >>> found.table["method"].unique().tolist()
    ['unmitigated', 'reweigh', 'achievable']
    """
    chosen = _method_names(methods)
    how = _judging(measures, threshold, resamples, seed, min_size, threads)
    _check_choice("weighting", weighting, WEIGHTINGS)
    _check_choice("head", head, HEADS)
    level = _number("alpha", alpha, 0.0, 1.0, inside=True)
    allowed = _number("tolerance", tolerance, 0.0, 1.0, inside=False)
    most_train = whole_number("cap", cap, 1)
    if progress is not None and not callable(progress):
        raise InputError(f"progress is {progress!r:.80}; give a function of two numbers, or None.")
    clock = _Clock(progress)
    data = feature_rows(
        features, labels, groups, split, patients, missing=missing, cap=most_train, seed=how.seed
    )
    clock.total = 3 + len(data.attributes) * (len(chosen) + 1)
    clock.done("reading and checking")
    parts = {name: split_rows(data, name) for name in SPLITS}
    clock.done("collecting rows")
    fitted = head_of(parts["train"], head, how.seed, weighting)
    start = unmitigated_scores(fitted, parts)
    clock.done("unmitigated head")
    notes = list(data.notes)
    if fitted.reason:
        notes.append(f"The unmitigated head is {fitted.status}: {fitted.reason}.")
    judged: dict[str, tuple[list[Arm], Judged]] = {}
    held = (data.splits["validation"].rows, data.splits["test"].rows)
    for attribute in data.attributes:
        unit = unit_of(data, parts, attribute, fitted, start, weighting, how.seed)
        arms = fitted_arms(unit, chosen, head, done=partial(clock.done, attribute=attribute))
        judged[attribute] = arms, judge(attribute, data.label, arms, *held, how)
        clock.done("judging: bootstrap and references", attribute)
    made = tables_of(data, judged, how, head=head, weighting=weighting, alpha=level, tolerance=allowed)
    settings = {
        "head": head,
        "weighting": weighting,
        "missing": missing,
        "cap": most_train,
        "alpha": level,
        "tolerance": allowed,
        "threshold": how.threshold,
        "resamples": how.resamples,
        "seed": how.seed,
        "min_size": how.min_size,
        "unit": made.unit,
    }
    return Comparison(
        label=data.label,
        attributes=data.attributes,
        measures=how.measures,
        methods=chosen,
        table=made.table,
        by_group=made.by_group,
        achievable=made.achievable,
        methods_run=made.methods_run,
        splits=made.splits,
        notes=tuple(dict.fromkeys([*notes, *made.notes])),
        settings=settings,
        audits=tuple(found.audit for _, found in judged.values()),
        seconds=tuple(clock.seconds),
    )


# -- what was asked -----------------------------------------------------------------------------------


def _names(argument: str, given: Any) -> tuple[str, ...]:
    """One name, or several, as a tuple of text."""
    several = isinstance(given, Iterable) and not isinstance(given, bytes | Mapping)
    names = (given,) if isinstance(given, str) else tuple(given) if several else ()
    if not several or not all(isinstance(name, str) for name in names):
        raise InputError(f"{argument} is {given!r:.80}; give a name, or a list of names.")
    return names


def _method_names(methods: str | Sequence[str]) -> tuple[str, ...]:
    named = _names("methods", methods)
    if not named:
        raise InputError(f"methods is empty; give at least one of {', '.join(METHODS)}.")
    for name in named:
        if name not in METHODS:
            raise InputError(f"method is {name!r}; allowed are {', '.join(METHODS)}.")
        if named.count(name) > 1:
            raise InputError(f"method '{name}' is named {named.count(name)} times; name it once.")
    return named


def _judging(
    measures: str | Sequence[str], threshold: Any, resamples: Any, seed: Any, min_size: Any, threads: Any
) -> Judging:
    named = _names("measures", measures)
    if not named:
        raise InputError("measures is empty; name at least one, for example 'auroc'.")
    names = tuple(check_measure(name).name for name in named)
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"measure '{name}' is named {names.count(name)} times; name it once.")
    _check_rule(threshold)
    return Judging(
        measures=names,
        threshold=threshold,
        resamples=whole_number("resamples", resamples, FEWEST_RESAMPLES, 100_000),
        seed=whole_number("seed", seed, 0, 2**32 - 1),
        min_size=check_min_size(min_size),
        threads=None if threads is None else whole_number("threads", threads, 1),
    )


def _check_rule(given: object) -> None:
    """Refuse a number: every method's scores have a scale of their own."""
    found = _RULE.fullmatch(given) if isinstance(given, str) else None
    if given == "youden" or (found is not None and 0.0 < float(found[1]) <= 1.0):
        return
    raise InputError(
        f"threshold is {given!r}; every method has a scale of its own, so give a rule: 'sensitivity_0.80' "
        "(any share in its place) or 'youden'."
    )


def _check_choice(name: str, given: object, allowed: Sequence[str]) -> None:
    if given not in allowed:
        raise InputError(f"{name} is {given!r}; allowed are {', '.join(map(repr, allowed))}.")


def _number(name: str, given: Any, least: float, most: float, *, inside: bool) -> float:
    known = isinstance(given, Real) and not isinstance(given, bool)
    if known and (least < float(given) < most if inside else least <= float(given) <= most):
        return float(given)
    ends = f"between {least:g} and {most:g}" if inside else f"from {least:g} to {most:g}"
    raise InputError(f"{name} is {given!r}; it must be a number {ends}.")


class _Clock:
    """Counts steps for a progress bar and notes how long each took."""

    def __init__(self, progress: Callable[[int, int], None] | None) -> None:
        self._progress = progress
        self._last, self._last_used = time.perf_counter(), time.process_time()
        self.total = 1
        self.seconds: list[tuple[str, str, float, float]] = []

    def done(self, step: str, attribute: str = "") -> None:
        now, used = time.perf_counter(), time.process_time()
        self.seconds.append((step, attribute, now - self._last, used - self._last_used))
        self._last, self._last_used = now, used
        if self._progress is not None:
            self._progress(len(self.seconds), max(self.total, len(self.seconds)))

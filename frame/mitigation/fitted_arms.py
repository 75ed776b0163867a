"""Fit every method of a comparison to one attribute, and put its scores beside the unmitigated ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from frame.heads.disease_heads import fit_head
from frame.mitigation.achievable import UNMITIGATED
from frame.mitigation.contract import (
    Outcome,
    Rows,
    Scores,
    Unit,
    class_weight_of,
    not_fitted,
    scores_of_logits,
)
from frame.mitigation.feature_rows import FeatureRows
from frame.mitigation.judged import REFITTED, Arm
from frame.mitigation.known_groups import head_failure, judged_outcome
from frame.mitigation.registry import fit_method

if TYPE_CHECKING:
    from frame.heads.disease_heads import Head

__all__ = ["fitted_arms", "head_of", "split_rows", "unit_of", "unmitigated_scores"]


def split_rows(data: FeatureRows, split: str) -> Rows:
    """Embeddings and labels of a split, shape (n, dimensions) and (n,), without groups."""
    labels = data.splits[split].rows.labels.astype(np.int8)
    return Rows(data.gathered(split), labels, np.full(len(labels), -1, dtype=np.int64))


def head_of(rows: Rows, kind: str, seed: int, weighting: str = "paper") -> Head:
    """The disease head of a kind; ``paper``: balanced class weights if linear; ``equal``: in any case."""
    return fit_head(
        rows.features,
        rows.labels,
        kind=cast("Any", kind),
        class_weight=class_weight_of(weighting),
        seed=seed,
    )


def unmitigated_scores(head: Head, parts: Mapping[str, Rows]) -> tuple[Scores, Scores]:
    """Scores of validation and of test."""
    found = [scores_of_logits(head.logit(parts[name].features)) for name in ("validation", "test")]
    return found[0], found[1]


def unit_of(
    data: FeatureRows,
    parts: Mapping[str, Rows],
    attribute: str,
    head: Head,
    start: tuple[Scores, Scores],
    weighting: str,
    seed: int,
) -> Unit:
    """What a method is given: the rows of all splits with the groups of one attribute."""
    grouped = {
        name: Rows(rows.features, rows.labels, data.codes(name, attribute)) for name, rows in parts.items()
    }
    return Unit(
        train=grouped["train"],
        validation=grouped["validation"],
        test=grouped["test"],
        levels=data.levels(attribute),
        head=head,
        unmitigated=start,
        weighting="equal" if weighting == "equal" else "paper",
        seed=seed,
    )


def fitted_arms(
    unit: Unit,
    methods: Sequence[str],
    kind: str,
    fit: Callable[[str, Unit], Outcome] | None = None,
    done: Callable[[str], None] = lambda _: None,
) -> list[Arm]:
    """The unmitigated head, its refit on training images with a known group, and every method.

    Parameters
    ----------
    unit : Unit
        Data of one attribute.
    methods : sequence of str
        Names of methods.
    kind : str
        Of the head.
    fit : callable, optional
        Fits one method; None: :func:`frame.mitigation.registry.fit_method`.
    done : callable
        Called with the name of each that has been fitted.

    Returns
    -------
    list of Arm
        In this order, each with the scores of the images whose group is known. The refit is there only where
        the group of a training image is not known; without such images it is the unmitigated head itself.
        Where the disease head could not be fitted nothing is, and every arm has the reason.
    """
    fitting = fit_method if fit is None else fit
    why = head_failure(unit.head)
    arms = [_arm(UNMITIGATED, not_fitted(why) if why else Outcome(*unit.unmitigated), unit)]
    if not bool(unit.train.known.all()):
        arms.append(_arm(REFITTED, not_fitted(why) if why else _refitted(unit, kind), unit))
        done(REFITTED)
    for name in methods:
        arms.append(_arm(name, not_fitted(why) if why else fitting(name, unit), unit))
        done(name)
    return arms


def _refitted(unit: Unit, kind: str) -> Outcome:
    """The head of the training images whose group is known."""
    refit = head_of(unit.group_rows(), kind, unit.seed, unit.weighting)
    why = head_failure(refit)
    if why:
        return not_fitted(why)
    return Outcome(*unmitigated_scores(refit, {"validation": unit.validation, "test": unit.test}))


def _arm(name: str, outcome: Outcome, unit: Unit) -> Arm:
    """What is judged of an outcome: the scores of the images whose group is known."""
    judged = judged_outcome(outcome, unit)
    return Arm(
        name,
        judged.validation,
        judged.test,
        status=judged.status,
        reason=judged.reason,
        flags=tuple(dict.fromkeys(judged.flags)),
        groups=judged.groups,
        facts=judged.facts,
    )

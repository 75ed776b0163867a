"""The collinearity model through heads, mitigation and geometry: 6 collinearities, 5 seeds each.

One unit per collinearity and seed. Nothing of a profile is read: the data are drawn, and every profile gives
the same numbers. The achievable difference is chosen from three sets of methods, since the printed one rests
on three methods of which one is clipped: see :data:`SETS`. What the paper prints comes from fits that stop
before their optimum, :mod:`frame.experiments.synthetic_recipe`; these stand beside ours under
:data:`RECIPE`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from frame.errors import InputError
from frame.experiments.contract import Unit, all_units, tidy
from frame.experiments.synthetic_recipe import (
    CLIPPED,
    one_thread,
    recipe_decodability,
    recipe_scores,
    with_clipped_ranks,
)
from frame.mitigation.achievable import (
    CHOICES,
    UNMITIGATED,
    Achievable,
    achievable_difference,
    candidates_of,
)
from frame.mitigation.registry import METHODS, NINE
from frame.synthetic import (
    COLLINEARITIES,
    DIMENSIONS,
    SEEDS,
    CollinearSample,
    draw_sample,
    within_group_aurocs,
)

if TYPE_CHECKING:
    from frame.mitigation.contract import Outcome, Rows, Scores
    from frame.mitigation.contract import Unit as MitigationUnit
    from frame.workspace.layout import Workspace

__all__ = [
    "ALL_SEEDS",
    "CLIPPED",
    "GEOMETRY",
    "MODULES",
    "NOTE",
    "RECIPE",
    "SETS",
    "TITLE",
    "chosen_methods",
    "collect",
    "run_unit",
    "units",
]

NAME: Final = "synthetic_model"
TITLE: Final = "the collinearity model: difference, achievable difference and geometry"
#: What must be known of every row wherever the table goes.
NOTE: Final = "Synthetic: drawn from the collinearity model; no images, no patients."

#: Sets of methods from which the achievable difference is chosen: the paper's, the same without the clipping,
#: and all nine methods.
SETS: Final[Mapping[str, tuple[str, ...]]] = {
    "printed": ("leace", "reweigh", CLIPPED),
    "unclipped": ("leace", "reweigh", "threshold_shift"),
    "nine": NINE,
}
#: ``method`` of rows that rest on the paper's fits; of a single method it is ``recipe_leace`` and so on. The
#: achievable difference is then chosen from the printed set.
RECIPE: Final = "recipe"
#: Measures of the representation, on test.
GEOMETRY: Final = ("linear_decodability", "nonlinear_decodability", "overlap", "erasure_cost")
#: ``site`` of a row that is about all seeds of a collinearity; of a single one it is ``seed 0`` and so on.
ALL_SEEDS: Final = "all seeds"
#: Modules that are reached through the registry, so that the results are stale when one of them changes.
MODULES: Final = tuple(sorted({METHODS[name].module for name in NINE}))

_LEVELS: Final = ("a = 0", "a = 1")
_PERMUTATIONS: Final = 1000
_SPLITS: Final = ("validation", "test")
_OF_RECIPE: Final = f"{RECIPE}_"
#: For each set of methods: what the names of its rows begin with, and the methods.
_CANDIDATES: Final = {
    **{name: ("", methods) for name, methods in SETS.items()},
    RECIPE: (_OF_RECIPE, SETS["printed"]),
}
_PACKAGES: Final = {
    "sklearn": "scikit-learn",
    "fairlearn": "fairlearn",
    "torch": "torch",
    "concept_erasure": "concept-erasure",
}


def units(workspace: Workspace) -> tuple[Unit, ...]:
    """One unit per collinearity and seed, the same in every profile."""
    return tuple(
        Unit(
            f"collinearity-{round(100 * collinearity):03d}-seed-{seed}",
            (),
            {"collinearity": collinearity, "seed": seed},
        )
        for collinearity, seed in product(COLLINEARITIES, SEEDS)
    )


def run_unit(workspace: Workspace, unit: Unit) -> pd.DataFrame:
    """Fit the head, every method and the geometry to one draw.

    Returns
    -------
    pandas.DataFrame
        Tidy rows; ``strength`` is the collinearity and ``site`` the seed. For ``unmitigated``, each of the
        nine methods and :data:`CLIPPED`, on validation and on test: ``auroc`` of the disease, and
        ``difference`` between the within-group AUROCs. For the unmitigated head also ``auroc`` by group,
        ``difference_population`` (over all samples that the model could draw, in closed form) and
        ``reference`` (of an exactly fair model at the same test counts). Then the :data:`GEOMETRY`, and the
        rows of :data:`RECIPE`.

    Raises
    ------
    frame.InputError
        If a package that the methods need is missing.
    """
    _check_packages()
    with one_thread():
        return _rows_of(unit)


def _rows_of(unit: Unit) -> pd.DataFrame:
    sample = draw_sample(float(unit.settings["collinearity"]), int(unit.settings["seed"]))
    fitted = _mitigation_unit(sample)
    scores: dict[str, tuple[Scores, Scores] | str] = {UNMITIGATED: fitted.unmitigated}
    scores |= _mitigated(fitted)
    scores |= {f"{_OF_RECIPE}{method}": own for method, own in recipe_scores(fitted).items()}
    scores = {method: _judged(fitted, own) for method, own in scores.items()}
    rows = [row for method, own in scores.items() for row in _measured(fitted, method, own)]
    rows += _of_the_head(fitted, sample)
    rows += _geometry(fitted)
    rows.append(
        {
            "split": "test",
            "method": RECIPE,
            "quantity": "linear_decodability",
            "value": recipe_decodability(fitted),
            **_counts(fitted.test),
        }
    )
    return tidy(
        pd.DataFrame(rows),
        experiment=NAME,
        modality="synthetic",
        site=f"seed {sample.seed}",
        finding="disease",
        attribute="group",
        strength=sample.collinearity,
    )


def collect(workspace: Workspace) -> pd.DataFrame:
    """All units, what is achievable in each, means over the seeds, and trends over the 30 units.

    Returns
    -------
    pandas.DataFrame
        The rows of the units, then: ``achievable`` with ``method`` a key of :data:`SETS`, or
        :data:`RECIPE`, and ``split`` where the method was chosen (it is judged on test); every row with
        ``site`` :data:`ALL_SEEDS`, its mean over the seeds and their ``sd``; ``share``, the achievable in
        percent of the unmitigated difference, each averaged over the seeds first; ``spearman_<quantity>``
        and ``spearman_blocked_<quantity>``, its rank correlation with the collinearity over all units and,
        within seeds, averaged over them.
    """
    rows = all_units(NAME, workspace, units(workspace))
    achieved = [
        {
            "site": site,
            "strength": strength,
            "split": chosen_on,
            "method": chosen_from,
            "quantity": "achievable",
            "value": found.difference,
            "status": found.status,
            "reason": found.reason,
        }
        for (strength, site, chosen_from, chosen_on), found in _achievable(rows).items()
    ]
    rows = pd.concat([rows, _tidy(achieved)], ignore_index=True)
    levels = _over_seeds(rows)
    return pd.concat([rows, levels, _shares(levels), _trends(rows)], ignore_index=True)


def chosen_methods(rows: pd.DataFrame) -> pd.DataFrame:
    """Which method has the achievable difference of each unit.

    Parameters
    ----------
    rows : pandas.DataFrame
        Rows of this experiment.

    Returns
    -------
    pandas.DataFrame
        A row per unit, set and split on which the method was chosen: ``collinearity, seed, methods,
        chosen_on, chosen, difference, unmitigated, auroc_lost`` (on test; negative where it gained).
    """
    return pd.DataFrame(
        [
            {
                "collinearity": strength,
                "seed": int(site.removeprefix("seed ")),
                "methods": chosen_from,
                "chosen_on": chosen_on,
                "chosen": found.method,
                "difference": found.difference,
                "unmitigated": found.unmitigated_difference,
                "auroc_lost": found.unmitigated_auroc - found.auroc,
            }
            for (strength, site, chosen_from, chosen_on), found in _achievable(rows).items()
        ]
    )


def _mitigation_unit(sample: CollinearSample) -> MitigationUnit:
    """The draw as mitigation methods take it, with its disease head."""
    from frame.heads.disease_heads import fit_head
    from frame.mitigation.contract import Rows, scores_of_logits
    from frame.mitigation.contract import Unit as MitigationUnit

    parts = {
        split: Rows(
            *(values[sample.split == split] for values in (sample.features, sample.labels, sample.groups))
        )
        for split in ("train", *_SPLITS)
    }
    head = fit_head(parts["train"].features, parts["train"].labels)
    return MitigationUnit(
        train=parts["train"],
        validation=parts["validation"],
        test=parts["test"],
        levels=_LEVELS,
        head=head,
        unmitigated=(
            scores_of_logits(head.logit(parts["validation"].features)),
            scores_of_logits(head.logit(parts["test"].features)),
        ),
    )


def _mitigated(unit: MitigationUnit) -> dict[str, tuple[Scores, Scores] | str]:
    """Scores of each method on validation and test, or why there are none."""
    from frame.mitigation.registry import fit_method

    found = {name: _scores_of(fit_method(name, unit)) for name in NINE}
    shifted = found["threshold_shift"]
    found[CLIPPED] = shifted if isinstance(shifted, str) else with_clipped_ranks(shifted)
    return found


def _scores_of(outcome: Outcome) -> tuple[Scores, Scores] | str:
    if outcome.validation is None or outcome.test is None or outcome.status != "ok":
        return f"{outcome.status}: {outcome.reason}"
    return outcome.validation, outcome.test


def _judged(unit: MitigationUnit, scores: tuple[Scores, Scores] | str) -> tuple[Scores, Scores] | str:
    """Scores that tell images apart; else why nothing is claimed from them."""
    from frame.mitigation.contract import Outcome
    from frame.mitigation.known_groups import judged_outcome

    return scores if isinstance(scores, str) else _scores_of(judged_outcome(Outcome(*scores), unit))


def _measured(unit: MitigationUnit, method: str, scores: tuple[Scores, Scores] | str) -> list[dict[str, Any]]:
    """Disease AUROC and difference of one method on both splits."""
    found = []
    for place, split in enumerate(_SPLITS):
        part = getattr(unit, split)
        same = {"method": method, "split": split, **_counts(part)}
        if isinstance(scores, str):
            missing = {"value": np.nan, "status": "not estimable", "reason": scores}
            found += [{**same, "quantity": quantity, **missing} for quantity in ("auroc", "difference")]
            continue
        ranks = scores[place].ranks
        by_group = _group_aurocs(unit, split, ranks)
        found.append({**same, "quantity": "auroc", "value": _auroc(ranks, part.labels)})
        found.append({**same, "quantity": "difference", "value": max(by_group) - min(by_group)})
    return found


def _of_the_head(unit: MitigationUnit, sample: CollinearSample) -> list[dict[str, Any]]:
    """The unmitigated head by group, over the whole model, and an exactly fair model at its counts."""
    import frame

    same = {"method": UNMITIGATED, "split": "test"}
    ranks, labels, groups = unit.unmitigated[1].ranks, unit.test.labels, unit.test.groups
    positives = [int(labels[groups == group].sum()) for group in range(len(_LEVELS))]
    sizes = [int((groups == group).sum()) for group in range(len(_LEVELS))]
    found: list[dict[str, Any]] = [
        {
            **same,
            "subgroup": level,
            "quantity": "auroc",
            "value": auroc,
            "n_images": sizes[group],
            "n_positive": positives[group],
        }
        for group, (level, auroc) in enumerate(zip(_LEVELS, _group_aurocs(unit, "test", ranks), strict=True))
    ]
    # The head is affine: what it gives to the unit vectors, less its value at zero, are its coefficients.
    at_zero = unit.head.logit(np.zeros((1, DIMENSIONS)))
    population = within_group_aurocs(unit.head.logit(np.eye(DIMENSIONS)) - at_zero, sample)
    found.append({**same, "quantity": "difference_population", "value": abs(population[0] - population[1])})
    negatives = [size - positive for size, positive in zip(sizes, positives, strict=True)]
    reference = frame.fair_reference(_auroc(ranks, labels), positives, negatives, "auroc")
    low, high = reference.interval
    found.append(
        {
            **same,
            "quantity": "reference",
            "value": reference.mean,
            "sd": reference.sd,
            "lo": low,
            "hi": high,
            "n_images": sum(sizes),
            "n_positive": sum(positives),
        }
    )
    return found


def _geometry(unit: MitigationUnit) -> list[dict[str, Any]]:
    """The representation's geometry, fitted on train and measured on test."""
    from frame.interventions.geometry import geometry_of

    found = geometry_of(unit.train, unit.test, unit.levels)
    quantities = {name: getattr(found, name) for name in GEOMETRY}
    return [
        {
            "split": "test",
            "quantity": name,
            "value": quantity.value,
            **_counts(unit.test),
            **({} if quantity.status == "ok" else {"status": "not estimable", "reason": quantity.reason}),
        }
        for name, quantity in quantities.items()
    ]


def _counts(part: Rows) -> dict[str, int]:
    return {"n_images": len(part), "n_positive": int(part.labels.sum())}


def _check_packages() -> None:
    """Say which package is missing before anything is fitted."""
    for module, name in _PACKAGES.items():
        if importlib.util.find_spec(module) is None:
            raise InputError(
                f"The collinearity model needs {name}; install it with: "
                "pip install 'frame-audit[mitigation]'."
            )


def _group_aurocs(unit: MitigationUnit, split: str, ranks: np.ndarray) -> list[float]:
    part = getattr(unit, split)
    return [
        _auroc(ranks[part.groups == group], part.labels[part.groups == group])
        for group in range(len(_LEVELS))
    ]


def _auroc(ranks: np.ndarray, labels: np.ndarray) -> float:
    from frame.measures.values import measure_value

    return float(measure_value("auroc", ranks, labels))


def _achievable(rows: pd.DataFrame) -> dict[tuple[float, str, str, str], Achievable]:
    """By collinearity, seed, set of methods and split on which the method is chosen."""
    draws: dict[tuple[float, str], dict[str, dict[str, Any]]] = {}
    for row in rows[(rows["subgroup"] == "") & (rows["site"] != ALL_SEEDS)].to_dict("records"):
        if row["quantity"] in ("auroc", "difference"):
            methods = draws.setdefault((float(row["strength"]), str(row["site"])), {})
            own = methods.setdefault(str(row["method"]), {"status": "ok", "reason": ""})
            own[f"{row['split']}_{row['quantity']}"] = row["value"]
            if row["status"] != "ok":
                own |= {"status": "not fitted", "reason": row["reason"]}
    found = {}
    for (strength, site), measured in draws.items():
        for chosen_from, (beginning, methods_of_set) in _CANDIDATES.items():
            candidates = candidates_of(
                [
                    {"method": name, **measured[f"{beginning}{name}"]}
                    for name in (UNMITIGATED, *methods_of_set)
                ]
            )
            for chosen_on in CHOICES:
                key = (strength, site, chosen_from, chosen_on)
                found[key] = achievable_difference(candidates, chosen_on=chosen_on)
    return found


def _over_seeds(rows: pd.DataFrame) -> pd.DataFrame:
    """The mean of every quantity over the seeds of a collinearity."""
    found = []
    keys = ["strength", "split", "subgroup", "method", "quantity"]
    for identity, own in rows.groupby(keys, sort=False):
        silent = int((own["status"] != "ok").sum())
        row: dict[str, Any] = dict(zip(keys, identity, strict=True))
        if silent:
            row |= {"status": "not estimable", "reason": f"{silent} of {len(own)} seeds are not estimable"}
        else:
            row |= {"value": own["value"].mean(), "sd": own["value"].std(ddof=1)}
        found.append(row)
    return _tidy(found, site=ALL_SEEDS)


def _shares(levels: pd.DataFrame) -> pd.DataFrame:
    """What is achievable in percent of the unmitigated difference, from means over the seeds."""
    whole = levels[(levels["quantity"] == "difference") & (levels["split"] == "test")]
    of_head = {
        (str(row["method"]), float(row["strength"])): float(row["value"]) for row in whole.to_dict("records")
    }
    rows = levels[levels["quantity"] == "achievable"]
    heads = [f"{_CANDIDATES[chosen_from][0]}{UNMITIGATED}" for chosen_from in rows["method"]]
    unmitigated = [of_head[key] for key in zip(heads, rows["strength"], strict=True)]
    shares = 100.0 * rows["value"].to_numpy() / np.array(unmitigated)
    kept = rows[["strength", "split", "method", "status", "reason"]]
    return _tidy(kept.assign(quantity="share", value=shares), site=ALL_SEEDS)


def _trends(rows: pd.DataFrame) -> pd.DataFrame:
    """Rank correlations with the collinearity over the units, corrected together."""
    from frame.inference.families import correct, family_of
    from frame.inference.trends import spearman_trend

    heads = (UNMITIGATED, f"{_OF_RECIPE}{UNMITIGATED}")
    kept = rows[
        rows["quantity"].isin([*GEOMETRY, "achievable", "difference_population"])
        | ((rows["quantity"] == "difference") & rows["method"].isin(heads) & (rows["split"] == "test"))
    ]
    found = []
    for (split, method, quantity), own in kept.groupby(["split", "method", "quantity"], sort=False):
        for name, blocks in (("spearman", None), ("spearman_blocked", own["site"].to_numpy())):
            trend = spearman_trend(own["strength"], own["value"], blocks, permutations=_PERMUTATIONS)
            found.append(
                {
                    "split": split,
                    "method": method,
                    "quantity": f"{name}_{quantity}",
                    "value": trend.rho,
                    "p": trend.p,
                    # The same tests on the paper's fits are no further ones.
                    "family": f"{family_of('synthetic')}{': recipe' if RECIPE in str(method) else ''}",
                    "status": trend.status,
                    "reason": trend.reason,
                }
            )
    return _tidy(correct(pd.DataFrame(found)), site=ALL_SEEDS)


def _tidy(rows: Any, **same: Any) -> pd.DataFrame:
    return tidy(
        pd.DataFrame(rows).reset_index(drop=True),
        experiment=NAME,
        modality="synthetic",
        finding="disease",
        attribute="group",
        **same,
    )

"""Methods that change what training minimises: group DRO and an adversary on the score.

Both train a linear head on standardised features, full batch, with Adam (weight decay added to the gradient,
as in ``torch.optim.Adam``), 80 epochs, as the paper states them. The paper does not say where they begin:
here the head begins at zero, and the adversary at the uniform draws that are usual for such layers.

80 steps undertrain, so each also has a converged variant (ours):

* group DRO to its optimum, the smallest largest group loss (plus the same weight decay), by the optimal
  weights of the groups; it has converged when the largest group loss is within ``LARGEST_GAP`` of the
  weighted one, which bounds how far the head is from the optimum;
* the adversarial head until its mean over the second half of all epochs stands still
  (``AdversarialGame.run_to_a_mean``), from the head that is best without an adversary: from zero the same
  steps take some ten thousand epochs to come as far. That is a rule and not a bound: such a game circles
  about its balance, with few rows widely, and there its last digits differ between machines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from frame.heads.linear_maps import LinearMap, standardising_map
from frame.heads.logistic import fit_logistic
from frame.heads.passes import linear_scores
from frame.mitigation.adversary import CONVERGED_RATE, AdversarialGame
from frame.mitigation.contract import Outcome, Unit, not_fitted, scores_of_logits
from frame.mitigation.full_batch import WEIGHT_DECAY, FullBatch
from frame.mitigation.training_groups import TrainingGroups, outcome_of, training_groups
from frame.mitigation.worst_group import LARGEST_GAP, WorstGroupSearch, group_dro_steps

__all__ = [
    "adversarial_training",
    "converged_adversarial_training",
    "converged_worst_group_training",
    "worst_group_training",
]

Floats = NDArray[np.float64]

#: Steps of both objectives (the paper's).
EPOCHS: Final = 80


def worst_group_training(unit: Unit) -> Outcome:
    """Group DRO as in the paper: 80 epochs, q *= exp(0.01 loss_g) once per epoch, Adam at 1e-2.

    A group's loss is its mean logistic loss (weighted by label with ``weighting="equal"``). In an epoch the
    losses are taken first, then q changes, then the head steps down the gradient of sum_g q_g loss_g.

    Source: Sagawa et al., Distributionally robust neural networks (2020), Algorithm 1 in full batches.
    """
    groups = training_groups(unit)
    if isinstance(groups, Outcome):
        return groups
    the_map = _standardised(unit, groups)
    batch = FullBatch(unit.train, groups, the_map, unit.weighting)
    weights, losses, coefficients, intercept = group_dro_steps(batch, EPOCHS)
    present = groups.present.tolist()
    actions = {
        number: f"weight {weight:.4f}, loss {loss:.4f} at the last step"
        for number, weight, loss in zip(present, weights, losses, strict=True)
    }
    return _linear_outcome(
        unit,
        groups,
        the_map,
        coefficients,
        intercept,
        actions,
        "weigh against each other",
        facts={"epochs": EPOCHS, "worst_group_loss": float(losses.max())},
    )


def converged_worst_group_training(unit: Unit) -> Outcome:
    """Group DRO to the optimum (ours): the head with the smallest largest group loss.

    Minimises max_g loss_g + (1e-4 / 2) |coefficients|^2, the intercept free. The weights q of the groups that
    maximise min_head sum_g q_g loss_g + penalty are searched by sequential quadratic programming; every head
    on the way is a weighted logistic regression to its optimum. It stops when the largest group loss is
    within ``LARGEST_GAP`` of the weighted one, or after 200 heads, and then says so.
    """
    groups = training_groups(unit)
    if isinstance(groups, Outcome):
        return groups
    search = WorstGroupSearch(unit, groups, _standardised(unit, groups))
    shares = search.run()
    fit, losses = search.best
    present = groups.present.tolist()
    actions = {
        number: f"weight {share:.4f}, loss {loss:.4f}"
        for number, share, loss in zip(present, shares, losses, strict=True)
    }
    gap, fits = search.gap, search.n_fits
    converged = gap <= LARGEST_GAP
    flags: tuple[str, ...] = ()
    if not converged:
        flags = (f"not converged after {fits} heads: the gap is {gap:.1e}, not {LARGEST_GAP:.0e}",)
    logits = [fit.decision(rows.features) for rows in (unit.validation, unit.test)]
    return outcome_of(
        groups,
        (scores_of_logits(logits[0]), scores_of_logits(logits[1])),
        actions=actions,
        purpose="weigh against each other",
        flags=flags,
        facts={
            "iterations": fits,
            "converged": converged,
            "gap": gap,
            "worst_group_loss": float(losses.max()),
        },
    )


def adversarial_training(unit: Unit) -> Outcome:
    """A linear head against an adversary, as in the paper: 80 epochs of Adam at 1e-3 for both.

    The adversary is a layer of 64 rectified units on the head's logit, with one output for each group. It
    steps down the cross-entropy of the group; the head steps down its own logistic loss minus 1.0 times that
    cross-entropy (gradient reversal). With ``weighting="equal"`` both means over rows carry the label's
    weight.

    Source: Zhang, Lemoine and Mitchell, Mitigating unwanted biases with adversarial learning (2018), in the
    form of gradient reversal (Ganin et al. 2016).
    """
    groups = training_groups(unit)
    if isinstance(groups, Outcome):
        return groups
    the_map = _standardised(unit, groups)
    game = AdversarialGame(FullBatch(unit.train, groups, the_map, unit.weighting), unit.seed)
    game.run(EPOCHS)
    return _game_outcome(unit, groups, the_map, game)


def converged_adversarial_training(unit: Unit) -> Outcome:
    """The same game from the smallest disease loss to a mean that stands still (ours).

    The head begins at the smallest disease loss (with the same weight decay, the intercept free), both learn
    ten times as fast, and the head that is returned is the mean over the second half of all epochs. The game
    ends when the scores of the two halves of that mean differ by at most 2 % of their SD over the training
    rows, or after 2,000 epochs, and then says so.
    """
    groups = training_groups(unit)
    if isinstance(groups, Outcome):
        return groups
    the_map = _standardised(unit, groups)
    known = (unit.train.groups >= 0).astype(np.float64)
    weights = known * groups.label_weights(unit.weighting)[unit.train.labels]
    alone = fit_logistic(
        unit.train.features,
        unit.train.labels,
        classes=(0, 1),
        weights=weights / weights.sum(),
        C=1 / WEIGHT_DECAY,
        map=the_map,
    )
    game = AdversarialGame(
        FullBatch(unit.train, groups, the_map, unit.weighting),
        unit.seed,
        (alone.coefficients[0], alone.intercepts),
        CONVERGED_RATE,
    )

    def spread(slope: Floats) -> float:
        scores = _logits(unit.train.features, the_map, slope, 0.0)
        return float(scores[groups.rows].std())

    still, change = game.run_to_a_mean(spread)
    flags: tuple[str, ...] = ()
    if not still:
        moves = f"the mean score still moves by {change:.1%} of its SD"
        flags = (f"not converged after {game.epochs:,} epochs: {moves}",)
    facts = {"iterations": game.epochs, "converged": still, "change": change}
    return _game_outcome(unit, groups, the_map, game, flags=flags, facts=facts)


def _game_outcome(
    unit: Unit,
    groups: TrainingGroups,
    the_map: LinearMap,
    game: AdversarialGame,
    *,
    flags: tuple[str, ...] = (),
    facts: Mapping[str, Any] | None = None,
) -> Outcome:
    return _linear_outcome(
        unit,
        groups,
        the_map,
        game.slope,
        float(game.level[0]),
        {int(number): "guessed by the adversary" for number in groups.present},
        "hide from the adversary",
        flags=flags,
        facts={
            "epochs": game.epochs,
            "disease_loss": game.disease_loss,
            "adversary_loss": game.adversary_loss,
            **(facts or {}),
        },
    )


def _standardised(unit: Unit, groups: TrainingGroups) -> LinearMap:
    """The map that standardises the rows with a known group."""
    known = None if len(groups.rows) == groups.n_training else (unit.train.groups >= 0).astype(np.float64)
    return standardising_map(unit.train.features, known)


def _linear_outcome(
    unit: Unit,
    groups: TrainingGroups,
    the_map: LinearMap,
    coefficients: Floats,
    intercept: float,
    actions: Mapping[int, str],
    purpose: str,
    *,
    flags: tuple[str, ...] = (),
    facts: Mapping[str, Any],
) -> Outcome:
    """Score validation and test with a head on standardised features."""
    if not (np.isfinite(coefficients).all() and np.isfinite(intercept)):
        return not_fitted("training left the finite numbers", **facts)
    logits = [
        _logits(rows.features, the_map, coefficients, intercept) for rows in (unit.validation, unit.test)
    ]
    scored = (scores_of_logits(logits[0]), scores_of_logits(logits[1]))
    return outcome_of(groups, scored, actions=actions, purpose=purpose, flags=flags, facts=facts)


def _logits(features: NDArray[Any], the_map: LinearMap, coefficients: Floats, intercept: float) -> Floats:
    """Scores by a head on standardised features, shape (n,)."""
    raw = np.ascontiguousarray(coefficients * the_map.scale)[None, :]
    return linear_scores(features, raw, intercept - raw @ the_map.centre)[:, 0]

"""Group DRO and the adversary: against references, what they move, and when they change nothing."""

import numpy as np
import pytest
from scipy.optimize import minimize
from score_units import auroc, unit_of
from sklearn.preprocessing import StandardScaler
from training_units import disease, group_beside, log_loss, own_direction, rows_of, three

from frame.heads.linear_maps import standardising_map
from frame.heads.logistic import fit_logistic
from frame.mitigation import adversary, objectives
from frame.mitigation.adversary import AdversarialGame
from frame.mitigation.contract import WEIGHTINGS, Rows
from frame.mitigation.full_batch import FullBatch
from frame.mitigation.objectives import (
    adversarial_training,
    converged_adversarial_training,
    converged_worst_group_training,
    worst_group_training,
)
from frame.mitigation.training_groups import training_groups

BOTH = pytest.mark.parametrize("weighting", WEIGHTINGS)


def label_weights(rows, weighting):
    counts = np.bincount(rows.labels, minlength=2)
    return np.ones(len(rows)) if weighting == "paper" else (len(rows) / (2 * counts))[rows.labels]


def batch_of(unit):
    groups = training_groups(unit)
    return FullBatch(unit.train, groups, standardising_map(unit.train.features), unit.weighting)


def dro_by_hand(unit, *, epochs=80, group_rate=0.01, rate=1e-2, decay=1e-4):
    """Group DRO as its definition reads, row by row on standardised features, with Adam written out."""
    scaler = StandardScaler().fit(unit.train.features.astype(float))
    x = np.column_stack([scaler.transform(unit.train.features.astype(float)), np.ones(len(unit.train))])
    y, groups = unit.train.labels.astype(float), unit.train.groups
    weights = label_weights(unit.train, unit.weighting)
    levels = np.unique(groups)
    q = np.ones(len(levels)) / len(levels)
    theta, m, v = np.zeros(x.shape[1]), np.zeros(x.shape[1]), np.zeros(x.shape[1])
    for t in range(1, epochs + 1):
        z = x @ theta
        loss = np.log(1 + np.exp(-z)) * y + np.log(1 + np.exp(z)) * (1 - y)
        means, slopes = [], []
        for level in levels:
            own = groups == level
            w = weights[own] / weights[own].sum()
            means.append(w @ loss[own])
            slopes.append((w * (1 / (1 + np.exp(-z[own])) - y[own])) @ x[own])
        q = q * np.exp(group_rate * np.array(means))
        q = q / q.sum()
        gradient = q @ np.array(slopes) + decay * theta
        m = 0.9 * m + 0.1 * gradient
        v = 0.999 * v + 0.001 * gradient**2
        theta = theta - rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    test = np.column_stack([scaler.transform(unit.test.features.astype(float)), np.ones(len(unit.test))])
    return test @ theta, q, np.array(means)


@BOTH
def test_group_dro_is_its_definition(weighting):
    unit = three(500, (0.6, 0.3, 0.1), (0.2, 0.4, 0.6), group_beside, weighting=weighting)
    logits, q, losses = dro_by_hand(unit)
    outcome = worst_group_training(unit)
    np.testing.assert_allclose(outcome.test.ranks, logits, atol=1e-9)
    for row, weight, loss in zip(outcome.groups, q, losses, strict=True):
        assert row["action"] == f"weight {weight:.4f}, loss {loss:.4f} at the last step"
    assert outcome.facts["worst_group_loss"] == pytest.approx(losses.max())


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64], ids=["float16", "float32", "float64"])
def test_group_dro_reads_features_of_every_precision(dtype):
    unit = three(300, (0.6, 0.4), (0.2, 0.4), group_beside, dtype=dtype)
    np.testing.assert_allclose(worst_group_training(unit).test.ranks, dro_by_hand(unit)[0], atol=1e-9)


def test_features_with_a_large_mean_and_a_constant_column():
    """Standardising is folded into the coefficients; that must not cost the digits of the small part."""
    plain = three(300, (0.6, 0.4), (0.2, 0.4), group_beside, dtype=np.float64)

    def far(rows):
        features = rows.features + 1000.0
        features[:, -1] = 7.3
        return Rows(features, rows.labels, rows.groups)

    parts = [plain.train, plain.validation, plain.test]
    unit = unit_of(*(far(rows) for rows in parts), levels=("a", "b"))
    for rows in parts:
        rows.features[:, -1] = 0.0
    near = unit_of(*parts, levels=("a", "b"))
    for method in (worst_group_training, adversarial_training):
        np.testing.assert_allclose(method(unit).test.ranks, method(near).test.ranks, atol=1e-6)


@pytest.mark.parametrize("method", [worst_group_training, adversarial_training])
def test_the_order_of_the_rows_does_not_count(method):
    unit = three(300, (0.6, 0.4), (0.2, 0.4), group_beside)
    order = np.random.default_rng(0).permutation(300)
    train = Rows(unit.train.features[order], unit.train.labels[order], unit.train.groups[order])
    other = unit_of(train, unit.validation, unit.test, levels=unit.levels)
    np.testing.assert_allclose(method(unit).test.ranks, method(other).test.ranks, atol=1e-7)


def test_more_rows_than_a_block():
    unit = three(9000, (0.6, 0.4), (0.2, 0.4), group_beside)
    np.testing.assert_allclose(worst_group_training(unit).test.ranks, dro_by_hand(unit)[0], atol=1e-9)


def test_group_dro_lowers_the_largest_loss():
    """A tenth of the rows have their finding in a direction of their own."""
    unit = three(3000, (0.9, 0.1), (0.3, 0.3), own_direction)
    head = fit_logistic(unit.train.features, unit.train.labels, map=standardising_map(unit.train.features))
    before = head.decision(unit.test.features)
    after = worst_group_training(unit)
    own = unit.test.groups == 1
    loss = float(np.mean(np.logaddexp(0, before[own]) - unit.test.labels[own] * before[own]))
    assert loss > 0.6
    assert log_loss(after.test, unit.test, 1) < loss - 0.15
    best = converged_worst_group_training(unit)
    assert log_loss(best.test, unit.test, 1) < loss - 0.18
    first, last = (
        max(log_loss(outcome.test, unit.test, group) for group in range(2)) for outcome in (after, best)
    )
    assert last < first - 0.02
    weights = [float(row["action"].split()[1].rstrip(",")) for row in best.groups]
    assert weights[1] > 0.45  # of a tenth of the rows


def identical_groups(weighting="paper"):
    """The same rows in every group."""
    one = [rows_of(np.arange(200) % 3 == 0, np.zeros(200), disease, seed=seed) for seed in range(3)]
    parts = [
        Rows(np.tile(r.features, (3, 1)), np.tile(r.labels, 3), np.repeat(np.arange(3), 200)) for r in one
    ]
    return unit_of(*parts, weighting=weighting)


@BOTH
def test_group_dro_weighs_identical_groups_alike(weighting):
    unit = identical_groups(weighting)
    outcome = worst_group_training(unit)
    assert {row["action"].split(",")[0] for row in outcome.groups} == {"weight 0.3333"}
    without, _, _ = dro_by_hand(unit, group_rate=0.0)
    np.testing.assert_allclose(outcome.test.ranks, without, atol=1e-9)


@BOTH
def test_converged_group_dro_is_the_plain_fit_on_identical_groups(weighting):
    unit = identical_groups(weighting)
    outcome = converged_worst_group_training(unit)
    weights = label_weights(unit.train, weighting)
    plain = fit_logistic(
        unit.train.features,
        unit.train.labels,
        weights=weights / weights.sum(),
        C=1e4,
        map=standardising_map(unit.train.features),
    )
    np.testing.assert_allclose(outcome.test.ranks, plain.decision(unit.test.features), atol=1e-4)
    assert outcome.facts["converged"]
    assert outcome.facts["iterations"] == 1


@BOTH
def test_converged_group_dro_is_the_smallest_largest_loss(weighting):
    """Against sequential quadratic programming on the head itself: least t with every loss at most t."""
    unit = three(400, (0.6, 0.3, 0.1), (0.2, 0.3, 0.5), own_direction, n_columns=4, weighting=weighting)
    x = np.column_stack([StandardScaler().fit_transform(unit.train.features.astype(float)), np.ones(400)])
    y, weights = unit.train.labels, label_weights(unit.train, weighting)

    def losses(theta):
        z = x @ theta
        each = np.logaddexp(0, z) - y * z
        own = [unit.train.groups == group for group in range(3)]
        return np.array([weights[k] @ each[k] / weights[k].sum() for k in own])

    def slopes(theta):
        each = weights * (1 / (1 + np.exp(-x @ theta)) - y)
        own = [unit.train.groups == group for group in range(3)]
        return np.array([each[k] @ x[k] / weights[k].sum() for k in own])

    def penalty(theta):
        return 5e-5 * theta[:-1] @ theta[:-1]

    found = minimize(
        lambda v: v[-1] + penalty(v[:-1]),
        np.r_[np.zeros(5), 1.0],
        jac=lambda v: np.r_[1e-4 * v[:-2], 0.0, 1.0],
        constraints={
            "type": "ineq",
            "fun": lambda v: v[-1] - losses(v[:-1]),
            "jac": lambda v: np.column_stack([-slopes(v[:-1]), np.ones(3)]),
        },
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    outcome = converged_worst_group_training(unit)
    assert outcome.facts["converged"]
    assert outcome.facts["gap"] <= 1e-4
    assert outcome.facts["worst_group_loss"] == pytest.approx(losses(found.x[:-1]).max(), abs=1e-4)
    named = [float(row["action"].split("loss ")[1]) for row in outcome.groups]
    np.testing.assert_allclose(named, losses(found.x[:-1]), atol=2e-3)


def test_a_search_that_ends_early_says_so(monkeypatch):
    monkeypatch.setattr("frame.mitigation.worst_group.MOST_HEADS", 2)
    outcome = converged_worst_group_training(three(400, (0.9, 0.1), (0.3, 0.3), own_direction))
    assert outcome.status == "ok"
    assert not outcome.facts["converged"]
    assert outcome.facts["iterations"] == 2
    assert outcome.flags[0].startswith("not converged after 2 heads: the gap is ")


def game_of(unit):
    return AdversarialGame(batch_of(unit), unit.seed)


@BOTH
def test_the_reversed_gradient_is_that_of_finite_differences(weighting):
    """For the head: of its loss minus the adversary's; for the adversary: of its own."""
    unit = three(60, (0.5, 0.3, 0.2), (0.3, 0.4, 0.5), group_beside, n_columns=3, weighting=weighting)
    game = game_of(unit)
    rng = np.random.default_rng(1)
    game.slope += rng.normal(size=3)
    game.level += 0.2
    found = game.gradients()
    parameters = [game.slope, game.level, *game.adversary]
    step = 1e-6
    for place, (values, gradient) in enumerate(zip(parameters, found, strict=True)):
        assert values.shape == gradient.shape
        for index in np.ndindex(values.shape):
            kept = values[index]
            sides = []
            for sign in (1, -1):
                values[index] = kept + sign * step
                game.gradients()
                mine = game.disease_loss - game.adversary_loss if place < 2 else game.adversary_loss
                sides.append(mine)
            values[index] = kept
            # a step of 1e-6 on losses near 1: rounding 1e-10, curvature 1e-12
            assert gradient[index] == pytest.approx((sides[0] - sides[1]) / (2 * step), abs=1e-8)


@BOTH
def test_the_adversary_is_that_of_torch(weighting):
    """The same 80 epochs by automatic differentiation and ``torch.optim.Adam``, from the same start."""
    torch = pytest.importorskip("torch")
    unit = three(300, (0.5, 0.3, 0.2), (0.3, 0.4, 0.5), group_beside, weighting=weighting)
    start = game_of(unit)
    x = torch.tensor(StandardScaler().fit_transform(unit.train.features.astype(float)))
    y, groups = torch.tensor(unit.train.labels).double(), torch.tensor(unit.train.groups)
    rows = torch.tensor(label_weights(unit.train, weighting))
    rows = rows / rows.sum()
    parts = [start.slope, start.level, *start.adversary]
    slope, level, inward, bias, outward, base = (torch.tensor(p.copy(), requires_grad=True) for p in parts)
    adam = torch.optim.Adam([slope, level, inward, bias, outward, base], lr=1e-3, weight_decay=1e-4)

    class Reversed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, z):
            return z.clone()

        @staticmethod
        def backward(ctx, gradient):
            return -gradient

    for _ in range(80):
        adam.zero_grad()
        z = x @ slope + level
        hidden = torch.relu(Reversed.apply(z)[:, None] * inward + bias)
        disease = torch.nn.functional.binary_cross_entropy_with_logits(z, y, reduction="none")
        guessed = torch.nn.functional.cross_entropy(hidden @ outward.T + base, groups, reduction="none")
        (rows @ disease + rows @ guessed).backward()
        adam.step()
    test = StandardScaler().fit(unit.train.features.astype(float)).transform(unit.test.features.astype(float))
    expected = test @ slope.detach().numpy() + level.detach().numpy()
    np.testing.assert_allclose(adversarial_training(unit).test.ranks, expected, atol=1e-9)


def told_group(ranks, rows):
    """AUROC with which a score tells group 1 from group 0."""
    return auroc(ranks, (rows.groups == 1).astype(np.int8))


def test_the_adversary_hides_the_group():
    """The group, in column 1, predicts the finding, so a head that is not held back reads it."""
    unit = three(2000, (0.5, 0.5), (0.15, 0.7), group_beside)
    plain = told_group(unit.unmitigated[1].ranks, unit.test)
    assert plain > 0.83
    converged = converged_adversarial_training(unit)
    assert converged.facts["converged"]
    assert told_group(converged.test.ranks, unit.test) < plain - 0.12
    # and what is left is no worse for the finding within a group
    own = unit.test.groups == 0
    within = auroc(converged.test.ranks[own], unit.test.labels[own])
    assert within > auroc(unit.unmitigated[1].ranks[own], unit.test.labels[own])


def test_where_the_mean_stands_still_does_not_depend_on_the_rate(monkeypatch):
    """A third of the learning rate takes longer and ends at the same head."""
    unit = three(2000, (0.5, 0.5), (0.15, 0.7), group_beside)
    fast = converged_adversarial_training(unit)
    monkeypatch.setattr(objectives, "CONVERGED_RATE", 3e-3)
    slow = converged_adversarial_training(unit)
    assert fast.facts["converged"]
    assert slow.facts["converged"]
    assert slow.facts["epochs"] > fast.facts["epochs"]
    assert np.corrcoef(fast.test.ranks, slow.test.ranks)[0, 1] > 0.999
    assert np.std(fast.test.ranks - slow.test.ranks) < 0.05 * np.std(slow.test.ranks)


def test_80_epochs_of_the_adversary_hide_the_group_a_little(monkeypatch):
    unit = three(2000, (0.5, 0.5), (0.15, 0.7), group_beside)
    held = told_group(adversarial_training(unit).test.ranks, unit.test)
    monkeypatch.setattr(adversary, "REVERSAL", 0.0)
    alone = told_group(adversarial_training(unit).test.ranks, unit.test)
    assert held < alone - 0.002


@pytest.mark.parametrize("method", [adversarial_training, converged_adversarial_training])
def test_the_adversary_changes_next_to_nothing_where_the_group_is_not_in_the_features(method, monkeypatch):
    unit = three(4000, (0.5, 0.5), (0.3, 0.3), disease)
    held = method(unit).test.ranks
    monkeypatch.setattr(adversary, "REVERSAL", 0.0)
    alone = method(unit).test.ranks
    assert np.corrcoef(held, alone)[0, 1] > 0.995
    assert abs(auroc(held, unit.test.labels) - auroc(alone, unit.test.labels)) < 0.002
    if method is converged_adversarial_training:  # and without the adversary it is the plain fit
        plain = fit_logistic(
            unit.train.features,
            unit.train.labels,
            C=1e4 / 4000,
            map=standardising_map(unit.train.features),
        )
        assert np.corrcoef(alone, plain.decision(unit.test.features))[0, 1] > 0.9999


def test_80_epochs_undertrain():
    unit = three(2000, (0.5, 0.5), (0.3, 0.4), disease)
    few, whole = adversarial_training(unit), converged_adversarial_training(unit)
    assert few.facts["epochs"] == objectives.EPOCHS == 80
    assert log_loss(whole.test, unit.test, 0) < log_loss(few.test, unit.test, 0) - 0.05


def test_the_seed_is_that_of_the_adversary():
    unit = three(200, (0.5, 0.5), (0.3, 0.4), group_beside)
    other = AdversarialGame(batch_of(unit), 1)
    first = game_of(unit)
    assert not np.array_equal(first.adversary[0], other.adversary[0])
    assert np.array_equal(first.adversary[2], game_of(unit).adversary[2])
    for values, inputs in zip(first.adversary, (1, 1, 64, 64), strict=True):
        assert 0.9 / np.sqrt(inputs) < np.abs(values).max() <= 1 / np.sqrt(inputs) or values.size < 10
    assert first.adversary[2].shape == (2, 64)


def test_a_game_that_goes_on_says_so(monkeypatch):
    monkeypatch.setattr(adversary, "LARGEST_CHANGE", 0.0)
    monkeypatch.setattr(adversary, "MOST_WINDOWS", 8)
    outcome = converged_adversarial_training(three(200, (0.5, 0.5), (0.3, 0.4), group_beside))
    assert outcome.status == "ok"
    assert not outcome.facts["converged"]
    assert outcome.flags[0].startswith("not converged after 400 epochs: the mean score still moves by ")


def test_training_that_leaves_the_finite_numbers_is_not_fitted(monkeypatch):
    monkeypatch.setattr("frame.mitigation.worst_group.HEAD_RATE", np.inf)
    with np.errstate(all="ignore"):
        outcome = worst_group_training(three(60, (0.5, 0.5), (0.3, 0.4), disease))
    assert (outcome.status, outcome.reason) == ("not fitted", "training left the finite numbers")

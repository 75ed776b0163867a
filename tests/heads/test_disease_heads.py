"""Heads of a finding: what section 4 of the method asks for, against scikit-learn."""

import re

import numpy as np
import pytest
from made_features import correlated, drawn_labels
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from frame.errors import InputError
from frame.heads import networks
from frame.heads.disease_heads import fit_head
from frame.heads.linear_maps import standardising_map

X = (2 * correlated(700, 10) + 3).astype(np.float32)
Y = drawn_labels(X, rate=0.2).astype(np.int8)
Z = StandardScaler().fit_transform(X.astype(np.float64))


def test_a_linear_head_is_balanced_logistic_regression_on_standardised_rows():
    head = fit_head(X, Y)
    model = LogisticRegression(tol=1e-10, max_iter=10_000, class_weight="balanced").fit(Z, Y)
    assert (head.kind, head.status, head.reason) == ("linear", "converged", "")
    assert np.abs(head.logit(X) - model.decision_function(Z)).max() <= 1e-4
    assert np.abs(head.probability(X) - model.predict_proba(Z)[:, 1]).max() <= 1e-5
    assert head.logit(X).dtype == np.float64
    assert head.details["n_images"] == 700
    assert head.details["n_positive"] == Y.sum() == 140
    assert head.details["iterations"] >= 1
    assert head.details["gradient"] <= 1e-8


def test_weights_multiply_and_class_weights_can_be_left_out():
    weights = np.random.default_rng(0).exponential(size=700)
    head = fit_head(X, Y, class_weight=None, weights=weights)
    model = LogisticRegression(tol=1e-10, max_iter=10_000).fit(Z, Y, sample_weight=weights)
    assert np.abs(head.logit(X) - model.decision_function(Z)).max() <= 1e-4


def test_a_given_map_takes_the_place_of_standardising():
    projected = standardising_map(X).then(np.eye(10)[:, :4])
    head = fit_head(X, Y, map=projected)
    model = LogisticRegression(tol=1e-10, max_iter=10_000, class_weight="balanced").fit(Z[:, :4], Y)
    assert np.abs(head.logit(X) - model.decision_function(Z[:, :4])).max() <= 1e-4


def by_scikit_learn(z, y, weights, seed=0):
    model = MLPClassifier((256,), alpha=1e-4, max_iter=200, early_stopping=True, random_state=seed)
    return model.fit(z.astype(np.float32), y, sample_weight=weights)


@pytest.mark.parametrize("class_weight", ["balanced", None])
def test_a_head_with_a_hidden_layer_is_that_of_scikit_learn(class_weight):
    head = fit_head(X, Y, kind="mlp", class_weight=class_weight)
    weights = np.ones(700)
    if class_weight:
        weights = np.where(Y == 1, 700 / (2 * 140), 700 / (2 * 560))
    model = by_scikit_learn(standardising_map(X).apply(X), Y, weights)
    assert (head.status, head.reason) == ("converged", "")
    assert head.details["iterations"] == model.n_iter_
    # The network's scores are sums in float32 in scikit-learn, and in float64 here.
    assert np.abs(head.probability(X) - model.predict_proba(Z.astype(np.float32))[:, 1]).max() <= 1e-5
    assert np.abs(expit(head.logit(X)) - head.probability(X)).max() == 0
    # It sees what no line tells apart.
    curved = (X[:, 0] - X[:, 0].mean()) ** 2 > 0.5 * X[:, 0].var()
    assert ((fit_head(X, curved, kind="mlp").logit(X) > 0) == curved).mean() > 0.8


def test_the_default_weights_are_those_of_the_paper():
    """Balanced for the linear head, none for the network; what is asked for wins."""
    for kind, weight in (("linear", "balanced"), ("mlp", None)):
        plain = fit_head(X, Y, kind=kind).logit(X)
        for given in ("balanced", None):
            asked = fit_head(X, Y, kind=kind, class_weight=given).logit(X)
            assert np.array_equal(plain, asked) is (given == weight)


def test_the_seed_is_that_of_the_network():
    one, again, other = (fit_head(X, Y, kind="mlp", seed=seed).logit(X) for seed in (0, 0, 1))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_a_network_stopped_by_its_limit_says_so_and_warns_of_nothing(monkeypatch):
    from frame.heads import disease_heads

    monkeypatch.setattr(disease_heads, "EPOCHS", 2)
    head = fit_head(X, Y, kind="mlp")  # a warning is an error in tests
    assert head.status == "not converged"
    assert head.reason == "early stopping had not ended the fit after 2 passes over the rows"
    assert head.details["iterations"] == 2
    assert head.logit(X).std() > 0


def test_other_warnings_of_scikit_learn_are_passed_on(monkeypatch):
    import warnings

    def fit(self, *_, **__):
        warnings.warn("something else", RuntimeWarning, stacklevel=1)
        raise AssertionError

    monkeypatch.setattr(MLPClassifier, "fit", fit)
    with pytest.raises((RuntimeWarning, AssertionError)):
        networks.fit_network(X, Y.astype(np.int32), np.ones(700), standardising_map(X))


@pytest.mark.parametrize("kind", ["linear", "mlp"])
@pytest.mark.parametrize("label", [0, 1])
def test_one_class_is_a_status(kind, label):
    head = fit_head(X, np.full(700, label), kind=kind)
    assert head.status == "one class"
    assert head.reason == "all 700 rows with a weight have the same label, so there is nothing to tell apart"
    assert not head.logit(X).any()
    assert (head.probability(X) == 0.5).all()
    assert head.details["n_positive"] == 700 * label


def test_a_refusal_of_scikit_learn_is_a_status():
    y = np.zeros(700, dtype=int)
    y[0] = 1
    head = fit_head(X, y, kind="mlp")
    assert head.status == "not fitted"
    assert head.reason.startswith("scikit-learn refused the rows: The least populated class")
    assert not head.logit(X).any()


@pytest.mark.parametrize("kind", ["linear", "mlp"])
def test_what_does_not_fit_is_told(kind):
    with pytest.raises(
        InputError, match=re.escape("The labels are not 700 numbers 0 or 1; give one per row.")
    ):
        fit_head(X, Y + 1, kind=kind)
    with pytest.raises(InputError, match="The labels are not 700 numbers 0 or 1"):
        fit_head(X, Y[:5], kind=kind)
    with pytest.raises(InputError, match=r"class_weight is 'even'; give 'balanced' or None\."):
        fit_head(X, Y, kind=kind, class_weight="even")
    with pytest.raises(InputError, match="give one per row"):
        fit_head(X, Y, kind=kind, weights=np.ones(3))
    with pytest.raises(InputError, match=re.escape("so give (n, 10).")):
        fit_head(X, Y, kind=kind).logit(X[:, :4])
    x = X.copy()
    x[5] = np.nan
    with pytest.raises(InputError, match="1 of 700 rows of features hold a value that is not finite"):
        fit_head(x, Y, kind=kind)


def test_another_kind_is_told():
    with pytest.raises(InputError, match=r"The head is 'forest'; give one of linear, mlp\."):
        fit_head(X, Y, kind="forest")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_features_are_read_only_and_stay(dtype):
    x = X.astype(dtype)
    x.flags.writeable = False
    for kind in ("linear", "mlp"):
        head = fit_head(x, Y, kind=kind)
        assert np.isfinite(head.logit(x)).all()
    assert np.array_equal(x, X.astype(dtype))

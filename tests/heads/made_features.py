"""Drawn features, labels and the objective written out, for tests of heads."""

import numpy as np


def correlated(n_rows, n_columns, seed=0, power=1.0):
    """Singular values fall as 1 / k ** power, randomly rotated; shape (n_rows, n_columns), float64."""
    generator = np.random.default_rng(seed)
    rotation = np.linalg.qr(generator.normal(size=(n_columns, n_columns)))[0]
    return generator.normal(size=(n_rows, n_columns)) / np.arange(1, n_columns + 1) ** power @ rotation


def drawn_labels(features, n_classes=2, rate=0.3, strength=1.5, seed=1):
    """Labels that a linear score predicts in part: for two classes a share ``rate`` is 1."""
    generator = np.random.default_rng(seed)
    score = features @ generator.normal(size=features.shape[1])
    score = strength * (score - score.mean()) / score.std() + generator.logistic(size=len(score))
    cuts = [1 - rate] if n_classes == 2 else np.linspace(0, 1, n_classes + 1)[1:-1] ** 1.5
    return np.searchsorted(np.quantile(score, cuts), score)


def objective(design, codes, weights, coefficients, intercepts, C=1.0):
    """The penalised loss over the sum of the weights, and its gradient (K, M + 1)."""
    scores = design @ coefficients.T + intercepts
    if scores.shape[1] == 1:
        scores = np.hstack([np.zeros_like(scores), scores])
    top = scores.max(axis=1, keepdims=True)
    logs = scores - top - np.log(np.exp(scores - top).sum(axis=1, keepdims=True))
    total = weights.sum()
    loss = -(weights * logs[np.arange(len(codes)), codes]).sum() + (coefficients**2).sum() / (2 * C)
    residuals = weights[:, None] * (np.exp(logs) - np.eye(scores.shape[1])[codes])
    residuals = residuals[:, -len(coefficients) :]
    slopes = residuals.T @ design + coefficients / C
    return loss / total, np.column_stack([slopes, residuals.sum(axis=0)]) / total


def reference(design, labels, weights=None, class_weight=None, C=1.0, solver="lbfgs"):
    """scikit-learn's fit to 1e-10."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=C, tol=1e-10, max_iter=100_000, class_weight=class_weight, solver=solver)
    return model.fit(design, labels, sample_weight=weights)

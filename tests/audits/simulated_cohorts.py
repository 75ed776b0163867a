"""Simulated cohorts for the tests of audits."""

from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Cohort:
    """Simulated images: scores, labels, groups and patients."""

    scores: np.ndarray
    labels: np.ndarray
    groups: np.ndarray
    patients: np.ndarray

    def frame(self):
        return pd.DataFrame(
            {"score": self.scores, "finding": self.labels, "sex": self.groups, "patient": self.patients}
        )


def make_cohort(sizes, *, seed=0, images=1, prevalence=0.3, shift=1.2, drop=0.0):
    """Normal scores of groups A, B, ...; the last group's positives lie lower by ``drop``."""
    rng = np.random.default_rng(seed)
    groups = np.repeat([chr(65 + i) for i in range(len(sizes))], np.asarray(sizes) * images)
    n = len(groups)
    patients = np.repeat(np.arange(n // images), images)
    labels = rng.random(n) < prevalence
    own = np.repeat(rng.normal(size=n // images), images)
    moved = np.where(groups == chr(64 + len(sizes)), shift - drop, shift)
    latent = moved * labels + 1.3 * own * (images > 1) + rng.normal(size=n)
    return Cohort(1 / (1 + np.exp(-latent)), labels, groups, patients)

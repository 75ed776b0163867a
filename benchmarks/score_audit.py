"""One audit of scores against simulations that answer the same question.

Ten simulated, exactly fair cohorts (S1, one to six images a patient) in one process. ``calibrated`` gives the
mean difference and its exceedance without a random number. Beside it 2,000 and 1,000,000 draws from the very
same laws; and 2,000 permutations of patients, by our kernels and with scikit-learn (a few, scaled), which ask
a somewhat other question. Errors are the largest over the cohorts against 1,000,000 draws with another seed,
whose own error is about 0.0005.
"""

from __future__ import annotations

import time

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.metrics import roc_auc_score

from frame.characteristics.worlds import SIZES, Cohort, World, simulated_cohort
from frame.inference.exchangeability import permutation_reference, permuted_memberships
from frame.reference.calibrated import CalibratedReference, calibrated_reference
from frame.reference.placement import placements

COHORTS = 10
DRAWS = 2000
MANY = 1_000_000
#: Permutations timed with scikit-learn.
TIMED = 20
WORLD = World(SIZES["S1"], 0.8, 0.15, repeats=True, shifted=True)


def calibrated(cohort: Cohort) -> tuple[CalibratedReference, float]:
    groups = []
    for g in range(len(WORLD.sizes)):
        rows = cohort.groups == g
        groups.append(placements(cohort.scores[rows], cohort.labels[rows], cohort.patients[rows]))
    values = [g.auroc for g in groups]
    return calibrated_reference(groups, [str(g) for g in range(len(groups))]), max(values) - min(values)


def drawn(reference: CalibratedReference, observed: float, draws: int, seed: int) -> tuple[float, float]:
    """Mean and exceedance among draws from the reference's own Beta laws."""
    c, rng = reference.value, np.random.default_rng(seed)
    total = c * (1 - c) / reference.variances - 1
    ranges = np.ptp(rng.beta(c * total[:, None], (1 - c) * total[:, None], (len(total), draws)), axis=0)
    return float(ranges.mean()), float((1 + np.count_nonzero(ranges >= observed)) / (draws + 1))


def permuted(cohort: Cohort) -> tuple[float, float]:
    found = permutation_reference(
        *(cohort.scores, cohort.labels, cohort.patients, int(cohort.patients[-1]) + 1),
        *(cohort.groups, len(WORLD.sizes), "auroc"),
        permutations=DRAWS,
    )
    return found.mean, found.exceedance(found.observed)


def permuted_with_scikit_learn(cohort: Cohort, permutations: int) -> None:
    membership = np.zeros(int(cohort.patients[-1]) + 1, dtype=np.int64)
    membership[cohort.patients] = cohort.groups
    positive = np.zeros(len(membership), dtype=bool)
    positive[cohort.patients[cohort.labels]] = True
    for draw in range(permutations):
        groups = permuted_memberships(membership, positive, 0, draw)[cohort.patients]
        values = [roc_auc_score(cohort.labels[groups == g], cohort.scores[groups == g]) for g in range(5)]
        assert max(values) >= min(values)


def run() -> None:
    cohorts = [simulated_cohort(WORLD, np.random.default_rng([7, n])) for n in range(COHORTS)]
    calibrated(cohorts[0])[0].law.exceedance(0.1)
    permuted(cohorts[0])

    def timed(function, items):
        start = time.perf_counter()
        found = [function(item) for item in items]
        return time.perf_counter() - start, found

    def exact(cohort):
        reference, observed = calibrated(cohort)
        return reference, observed, reference.law.mean, reference.law.exceedance(observed)

    ours, answers = timed(exact, cohorts)
    truth = [drawn(reference, observed, MANY, 1) for reference, observed, _, _ in answers]
    simulated, by_draws = timed(lambda c: drawn(*calibrated(c), DRAWS, 0), cohorts)
    many, by_many = timed(lambda c: drawn(*calibrated(c), MANY, 0), cohorts)
    permutations, _ = timed(permuted, cohorts)
    start = time.perf_counter()
    permuted_with_scikit_learn(cohorts[0], TIMED)
    loop = (time.perf_counter() - start) * DRAWS / TIMED * COHORTS

    def errors(found):
        means = max(abs(m - t) for (m, _), (t, _) in zip(found, truth, strict=True))
        return means, max(abs(p - t) for (_, p), (_, t) in zip(found, truth, strict=True))

    table = Table(title=f"{COHORTS} audits of {sum(WORLD.sizes):,} images, AUROC, five subgroups (simulated)")
    for name in ("way", "seconds", "times ours", "largest error of the mean", "of p"):
        table.add_column(name, justify="left" if name == "way" else "right")
    rows = [
        ("calibrated, no random number", ours, errors([(m, p) for _, _, m, p in answers])),
        (f"{DRAWS:,} draws from the same laws", simulated, errors(by_draws)),
        (f"{MANY:,} draws from the same laws", many, errors(by_many)),
        (f"{DRAWS:,} permutations, our kernels", permutations, None),
        (f"{DRAWS:,} permutations, scikit-learn ({TIMED} timed)", loop, None),
    ]
    for way, seconds, error in rows:
        shown = ("", "") if error is None else (f"{error[0]:.5f}", f"{error[1]:.5f}")
        table.add_row(way, f"{seconds:.3f}", f"{seconds / ours:.1f}", *shown)
    Console(width=120).print(table)


if __name__ == "__main__":
    run()

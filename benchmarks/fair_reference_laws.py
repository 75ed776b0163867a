"""The exact law of the 89 published differences against simulations and a textbook quadrature.

Same claims, one process, one run. The error beside each time is the largest over the 89 claims, in
absolute terms for the mean and for p, against the exact law; the textbook quadrature is an
independent check of that law (AUROC only: rates have no density).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.integrate import quad
from scipy.stats import norm

from frame.claims import Claim, read_claims
from frame.reference.fair_model import reference_from_counts
from frame.reference.inputs import check_counts
from frame.reference.variances import hanley_mcneil_variance
from frame.tables import table_path


@dataclass
class Answer:
    """Mean and p of one claim."""

    mean: float
    p: float


def counts_of(claim: Claim):
    return check_counts(
        claim.overall, claim.n_positive or None, claim.n_negative or None, claim.measure, "auto"
    )


def exact(claim: Claim) -> Answer:
    reference = reference_from_counts(counts_of(claim), protocol="exact")
    return Answer(reference.mean, reference.exceedance(claim.difference))


def simulated(draws: int) -> Callable[[Claim], Answer]:
    def answer(claim: Claim) -> Answer:
        reference = reference_from_counts(counts_of(claim), protocol="paper", draws=draws)
        return Answer(reference.mean, reference.exceedance(claim.difference))

    return answer


def textbook(claim: Claim) -> Answer:
    """Range of clipped normals with scipy.integrate.quad: the density of the smallest, and 1 - products."""
    counts = counts_of(claim)
    sd = np.sqrt(hanley_mcneil_variance(counts.value, counts.n_positive, counts.n_negative))
    laws = [norm(counts.value, s) for s in sd]
    d = claim.difference

    def between(x: float) -> float:
        below = np.prod([law.cdf(x) for law in laws])
        above = np.prod([law.sf(x) for law in laws])
        return 1.0 - float(below) - float(above)

    def smallest_here(x: float) -> float:
        total = 0.0
        for g, law in enumerate(laws):
            others = [other for i, other in enumerate(laws) if i != g]
            all_above = np.prod([o.sf(x) for o in others])
            none_reaches = np.prod([o.cdf(x + d) - o.cdf(x) for o in others])
            total += law.pdf(x) * float(all_above - none_reaches)
        return total

    low = max(0.0, counts.value - 9 * float(max(sd)))
    points = [x for x in (counts.value - d, counts.value) if low < x < 1 - d]
    mean = quad(between, low, min(1.0, counts.value + 9 * float(max(sd))), points=[counts.value], limit=300)[
        0
    ]
    p = quad(smallest_here, low, 1 - d, points=points, limit=300, epsabs=1e-11)[0]
    at_zero = [float(law.cdf(0)) for law in laws]
    if max(at_zero) > 1e-15:
        p += 1 - float(np.prod([1 - z for z in at_zero]))
        p -= float(np.prod([law.cdf(d) for law in laws]))
        p += float(np.prod([law.cdf(d) - z for law, z in zip(laws, at_zero, strict=True)]))
    return Answer(mean, p)


def timed(answer: Callable[[Claim], Answer], claims: Iterable[Claim]) -> tuple[float, list[Answer]]:
    start = time.perf_counter()
    answers = [answer(claim) for claim in claims]
    return time.perf_counter() - start, answers


def run() -> None:
    claims = read_claims(table_path("published_claims"))
    for claim in claims[:3]:
        exact(claim)  # the first call loads and caches; it is not what is compared
    table = Table(title="Mean and p of the published differences: the exact law against other ways")
    for heading in ("claims", "way", "time", "against exact", "largest error of the mean", "of p"):
        table.add_column(heading, justify="left" if heading in ("claims", "way") else "right")
    families = {
        "rates": [c for c in claims if c.measure != "auroc"],
        "AUROC": [c for c in claims if c.measure == "auroc"],
    }
    for family, members in families.items():
        base, truth = timed(exact, members)
        ways: dict[str, Callable[[Claim], Answer]] = {
            "2,000 draws (paper)": simulated(2_000),
            "200,000 draws": simulated(200_000),
        }
        if family == "AUROC":
            ways["scipy.integrate.quad"] = textbook
        table.add_row(f"{family}, {len(members)}", "exact", f"{1000 * base:,.0f} ms", "1.0", "0", "0")
        for name, way in ways.items():
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                spent, answers = timed(way, members)
            mean_error = max(abs(a.mean - t.mean) for a, t in zip(answers, truth, strict=True))
            p_error = max(abs(a.p - t.p) for a, t in zip(answers, truth, strict=True))
            table.add_row(
                "",
                name,
                f"{1000 * spent:,.0f} ms",
                f"{spent / base:,.1f}",
                f"{mean_error:.1e}",
                f"{p_error:.1e}",
            )
    Console(width=110).print(table)

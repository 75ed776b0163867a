"""Audit published differences: a table of claims in, one row per claim out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frame.claims import Claim, read_claims
from frame.errors import InputError
from frame.inference.multiplicity import benjamini_hochberg, largest_rejected
from frame.reference.fair_model import FairReference, reference_from_counts
from frame.reference.inputs import PROTOCOLS, Counts, check_choice, check_counts, check_number
from frame.reference.planning import LARGEST_MARGIN_SUBGROUPS, detectable_at, exceedance_with_margin
from frame.verdicts import reading

if TYPE_CHECKING:
    import pandas as pd

#: Score-model ratios shown beside every AUROC verdict, and the columns they fill.
KAPPAS = {"p_kappa_1": 1.0, "p_kappa_1_25": 1.25, "p_kappa_1_5": 1.5}
#: The kappa of ``method="binormal"``.
MAIN_KAPPA = 1.25
#: More subgroups than this are no comparison that a reader could follow, and no law computed in time.
_MOST_SUBGROUPS = 60
METHODS = ("auto", "hanley-mcneil", "binormal", "binomial")

COLUMNS = (
    "claim_id",
    "measure",
    "method",
    "protocol",
    "n_groups",
    "smallest_group",
    "observed",
    "overall",
    "overall_source",
    "reference",
    "reference_sd",
    "reference_lo",
    "reference_hi",
    "remainder",
    "share",
    "p",
    "q",
    "exceeds",
    "status",
    "reason",
    *KAPPAS,
    "depends_on_score_model",
    "decimals",
    "p_lo",
    "p_hi",
    "share_lo",
    "share_hi",
    "depends_on_rounding",
    "margin",
    "detectable_80",
    "claim_direction",
    "reading",
)
_WHOLE = ("n_groups", "smallest_group", "decimals")
_YES_NO = ("exceeds", "depends_on_score_model", "depends_on_rounding")
_TEXT = (
    "claim_id",
    "measure",
    "method",
    "protocol",
    "overall_source",
    "status",
    "reason",
    "claim_direction",
    "reading",
)


@dataclass(frozen=True)
class _Settings:
    protocol: str
    method: str
    alpha: float
    margin: float
    design_effect: float


def audit_claims(
    table: pd.DataFrame | str | Path,
    *,
    protocol: str = "exact",
    method: str = "auto",
    alpha: float = 0.05,
    margin: float = 0.0,
    design_effect: float = 1.0,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Compare every claimed difference with its fair-model reference.

    Parameters
    ----------
    table : DataFrame, str or Path
        Claims, one row per claim and subgroup, or the path of a CSV file with them. Columns:
        ``claim_id, metric, subgroup`` and, per claim, values with counts, confusion counts, a total
        with a prevalence, or a difference with an overall value (see ``frame audit --template``).
        Decimals are read from the text of a value; a DataFrame that holds numbers instead of text
        has lost trailing zeros, and then the largest number of decimals in a claim is taken.
    protocol : {"exact", "paper"}
        See :func:`frame.fair_reference`.
    method : {"auto", "hanley-mcneil", "binormal", "binomial"}
        Law of a subgroup AUROC; rates are always binomial. ``auto`` is ``hanley-mcneil``.
    alpha : float
        False discovery rate, strictly between 0 and 1; one family per measure.
    margin : float
        Tolerated true difference, in [0, 1). 0 asks for exact fairness; m asks how often a model would
        show the reported difference whose subgroups lie m/2 below or above the common value.
    design_effect : float
        What-if for repeated images of one patient, at least 1.
    progress : callable, optional
        Called with the number of steps done and their total, two steps a claim.

    Returns
    -------
    DataFrame
        One row per claim, in the order of the table, with the columns in :data:`COLUMNS`. Values are
        on the 0-1 scale and shares in percent. ``p`` is one-sided: the probability that a model that
        is exactly fair shows the reported difference or a larger one; with a margin, the largest such
        probability over the subgroups' places m/2 below or above the common value (kept within 0 and 1).
        ``exceeds`` is ``q < alpha``. A claim that cannot be audited keeps its row: ``status`` is
        ``not estimable`` and ``reason`` says why.

    Raises
    ------
    InputError
        One sentence naming file, row, column or argument, what was found and what is allowed.
    """
    import pandas as pd

    settings = _Settings(
        protocol=check_choice("protocol", protocol, PROTOCOLS),
        method=check_choice("method", method, METHODS),
        alpha=check_number("alpha", alpha, 0.0, 1.0, above=True, below=True),
        margin=check_number("margin", margin, 0.0, 1.0, below=True),
        design_effect=check_number("design_effect", design_effect, 1.0, math.inf, below=True),
    )
    if settings.margin > 0.0 and settings.protocol == "paper":
        raise InputError("margin needs protocol 'exact'; the paper's protocol has none.")
    claims = read_claims(table)
    if settings.method == "binomial":
        for claim in claims:
            if claim.measure == "auroc":
                raise InputError(
                    f"method 'binomial' does not fit claim '{claim.claim_id}', an AUROC; "
                    "use 'auto', 'hanley-mcneil' or 'binormal' (rates are binomial in any case)."
                )
    rows: list[dict[str, Any]] = []
    for done, claim in enumerate(claims):
        rows.append(_audit_one(claim, settings))
        if progress is not None:
            progress(done + 1, 2 * len(claims))
    result = pd.DataFrame(rows, columns=list(COLUMNS))
    exact_p = [_exact_p(claim, settings, row) for claim, row in zip(claims, rows, strict=True)]
    _add_family_verdicts(result, exact_p, settings.alpha)
    _add_detectable(result, claims, settings, progress)
    result["reading"] = [
        reading(direction, exceeds, detectable, observed)
        for direction, exceeds, detectable, observed in zip(
            result["claim_direction"],
            result["exceeds"],
            result["detectable_80"],
            result["observed"],
            strict=True,
        )
    ]
    return _typed(result)


# -- one claim --------------------------------------------------------------------------------------


def _counts_of(claim: Claim, settings: _Settings) -> Counts:
    method = settings.method if claim.measure == "auroc" else "binomial"
    return check_counts(
        claim.overall,
        claim.n_positive or None,
        claim.n_negative or None,
        claim.measure,
        method,
        settings.design_effect,
    )


@lru_cache(maxsize=512)
def _reference(counts: Counts, protocol: str) -> FairReference:
    """One reference per distinct set of counts: claims of one study often share theirs."""
    return reference_from_counts(counts, protocol=protocol, kappa=MAIN_KAPPA)


@lru_cache(maxsize=2048)
def _detectable(counts: Counts, alpha: float) -> float:
    return detectable_at(counts, power=0.8, alpha=alpha, kappa=MAIN_KAPPA)


@lru_cache(maxsize=2048)
def _exceedance(
    counts: Counts, protocol: str, delta: float | Fraction, margin: float, kappa: float | None = None
) -> float:
    if margin > 0.0:
        return exceedance_with_margin(counts, delta, margin, MAIN_KAPPA if kappa is None else kappa)
    if kappa is not None:
        return reference_from_counts(counts, protocol="exact", kappa=kappa).exceedance(delta)
    return _reference(counts, protocol).exceedance(delta)


def _audit_one(claim: Claim, settings: _Settings) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    reason = claim.reason
    if claim.auditable and settings.margin > 0.0 and len(claim.subgroups) > LARGEST_MARGIN_SUBGROUPS:
        reason = (
            f"not auditable: a margin is computed for at most {LARGEST_MARGIN_SUBGROUPS} subgroups, "
            f"this claim has {len(claim.subgroups)}"
        )
    if claim.auditable and _too_much_work(claim):
        reason = "not auditable: so many subgroups and cases are not computed exactly"
    auditable = not reason.startswith("not auditable")
    row |= {
        "claim_id": claim.claim_id,
        "measure": claim.measure,
        "method": "binomial"
        if claim.measure != "auroc"
        else settings.method.replace("auto", "hanley-mcneil"),
        "protocol": settings.protocol,
        "n_groups": len(claim.subgroups),
        "smallest_group": min(claim.denominators) if claim.denominators else None,
        "observed": claim.difference,
        "overall": claim.overall,
        "overall_source": claim.overall_source,
        "status": "ok" if auditable else "not estimable",
        "reason": reason,
        "decimals": claim.decimals,
        "margin": settings.margin,
        "claim_direction": claim.direction,
    }
    if not auditable:
        return row
    counts = _counts_of(claim, settings)
    reference = _reference(counts, settings.protocol)
    delta = claim.difference
    row["reference"], row["reference_sd"] = reference.mean, reference.sd
    row["reference_lo"], row["reference_hi"] = reference.interval
    row["remainder"] = delta - reference.mean
    row["share"] = _share(reference.mean, delta)
    compared = claim.exact_difference if claim.exact_difference is not None else delta
    row["p"] = _exceedance(counts, settings.protocol, compared, settings.margin)
    if claim.half_width > 0.0:
        smallest, largest = max(0.0, delta - claim.half_width), min(1.0, delta + claim.half_width)
        row["p_lo"] = _exceedance(counts, settings.protocol, largest, settings.margin)
        row["p_hi"] = _exceedance(counts, settings.protocol, smallest, settings.margin)
        row["share_lo"], row["share_hi"] = _share(reference.mean, largest), _share(reference.mean, smallest)
    else:
        row["p_lo"] = row["p_hi"] = row["p"]
        row["share_lo"] = row["share_hi"] = row["share"]
    if claim.measure == "auroc":
        band = check_counts(
            claim.overall, claim.n_positive, claim.n_negative, "auroc", "binormal", settings.design_effect
        )
        for column, kappa in KAPPAS.items():
            row[column] = _exceedance(band, "exact", delta, settings.margin, kappa)
    return row


def _too_much_work(claim: Claim) -> bool:
    """Whether the spread of the law, quadratic in the lattice of many subgroups, would take minutes."""
    k = len(claim.subgroups)
    if claim.measure == "auroc":
        return k > _MOST_SUBGROUPS
    spread = claim.overall * (1.0 - claim.overall)
    lattice = sum(min(n + 1.0, 23.0 * math.sqrt(n * spread) + 50.0) for n in claim.denominators)
    return k > _MOST_SUBGROUPS or (k > 14 and lattice**2 * k > 1e9)


def _share(reference: float, difference: float) -> float:
    """Reference in percent of a difference; undefined where the difference is 0."""
    return 100.0 * reference / difference if difference > 1e-9 else math.nan


def _exact_p(claim: Claim, settings: _Settings, row: dict[str, Any]) -> float:
    """Exceedance of the chosen method without simulation error."""
    if row["status"] != "ok":
        return math.nan
    if settings.protocol == "exact" or claim.measure != "auroc":
        return float(row["p"])
    return _exceedance(_counts_of(claim, settings), "exact", claim.difference, settings.margin)


# -- all claims -------------------------------------------------------------------------------------


def _add_family_verdicts(result: pd.DataFrame, exact_p: list[float], alpha: float) -> None:
    """Correct within each measure, and find verdicts that hang on rounding or on the score model."""
    import numpy as np

    for column in ("q", *_YES_NO):
        result[column] = None
    for _, family in result.groupby("measure", sort=False):
        rows = family.index
        p = family["p"].to_numpy(dtype=np.float64, na_value=np.nan)
        made = ~np.isnan(p)
        q = benjamini_hochberg(p)
        exceeds = q < alpha
        bound = largest_rejected(p, alpha)
        low = family["p_lo"].to_numpy(dtype=np.float64, na_value=np.nan)
        high = family["p_hi"].to_numpy(dtype=np.float64, na_value=np.nan)
        rounding = (low < bound) != (high < bound)
        model = np.zeros(len(p), dtype=bool)
        # The band is computed, so it is compared with the computed verdict, not with a simulated one.
        computed = benjamini_hochberg(np.asarray([exact_p[i] for i in rows])) < alpha
        if (family["measure"] == "auroc").all():
            for column in KAPPAS:
                other = benjamini_hochberg(family[column].to_numpy(dtype=np.float64, na_value=np.nan))
                model |= (other < alpha) != computed
        for name, values in (
            ("q", q),
            ("exceeds", exceeds),
            ("depends_on_rounding", rounding),
            ("depends_on_score_model", model),
        ):
            result.loc[rows[made], name] = values[made]


def _add_detectable(
    result: pd.DataFrame,
    claims: list[Claim],
    settings: _Settings,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Beside every claim that does not exceed: what its counts could have shown."""
    found: list[float] = []
    for claim, status, exceeds in zip(claims, result["status"], result["exceeds"], strict=True):
        # With a tolerated margin the test is another one, and its power is not computed.
        if status == "ok" and not exceeds and settings.margin == 0.0:
            found.append(_detectable(_counts_of(claim, settings), settings.alpha))
        else:
            found.append(math.nan)
        if progress is not None:
            progress(len(claims) + len(found), 2 * len(claims))
    result["detectable_80"] = found


def _typed(result: pd.DataFrame) -> pd.DataFrame:
    """One type per column, whatever the table held: text, whole numbers, yes or no, numbers."""
    for column in result.columns:
        if column in _TEXT:
            result[column] = result[column].fillna("").astype(str)
        elif column in _WHOLE:
            result[column] = result[column].astype("Int64")
        elif column in _YES_NO:
            result[column] = result[column].astype("boolean")
        else:
            result[column] = result[column].astype("float64")
    return result

"""Fill the numbers of the published record into the book's text while it is built.

A page writes ``{{ pub_exceed }}`` for a number computed now, on the exact protocol, and
``{{ printed_pub_exceed }}`` for the number that the article prints; the names are the ids of
``data/paper_numbers.csv``. Numbers of our own, which the article does not print, are those of
``own_numbers``. A number that cannot be computed, or that the article does not print, stops the build.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError

if TYPE_CHECKING:
    import pandas as pd

PRINTED_PREFIX = "printed_"
ALPHA = 0.05
PAPER_DRAWS = 2000
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
MEDFAIR_SEX = "zong-2023-04"
PRIVATE_TRAINING = "tayebi-arasteh-2024"


def as_printed(ours: float | int | str, printed: str) -> str:
    """Return our value written as the article writes its own.

    Every number gets as many decimals, and the same thousands separator, as the printed one in its place; a
    half is rounded up. A text of several numbers, such as ``0.017 ± 0.008 [0.005, 0.035]``, must have the
    same form.
    """
    written = ours if isinstance(ours, str) else repr(ours)
    if NUMBER.sub("#", written) != NUMBER.sub("#", printed):
        raise ExtensionError(f"the computed value {written!r} has another form than the printed {printed!r}")
    model = iter(NUMBER.findall(printed))
    return NUMBER.sub(lambda found: _round_like(found.group(), next(model)), written)


def _round_like(ours: str, printed: str) -> str:
    decimals = len(printed.partition(".")[2])
    rounded = Decimal(ours.replace(",", "")).quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_HALF_UP)
    return f"{rounded:,}" if "," in printed else f"{rounded}"


def probability_of_call(p: float, n_claims: int, draws: int = PAPER_DRAWS, alpha: float = ALPHA) -> float:
    """Return how probably the simulation calls the smallest exceedance of a family.

    The claim is called when (1 + hits) / (draws + 1) times the number of claims is below alpha, where hits is
    the number of draws that reach the reported difference; each does with probability p.
    """
    most_hits = math.ceil(alpha * (draws + 1) / n_claims) - 2
    return sum(math.comb(draws, hits) * p**hits * (1 - p) ** (draws - hits) for hits in range(most_hits + 1))


def own_numbers(audited: pd.DataFrame, claims: pd.DataFrame) -> dict[str, str]:
    """Return numbers about the record that the article does not print, as text."""
    by_claim = audited.set_index("claim_id")
    sex = by_claim.loc[MEDFAIR_SEX]
    n_auroc = int((audited["measure"] == "auroc").sum())
    private = by_claim.loc[claims.loc[claims["study"] == PRIVATE_TRAINING, "claim_id"].unique()]
    return {
        "medfair_sex_p": f"{sex['p']:.5f}",
        "medfair_sex_q": f"{sex['q']:.3f}",
        "medfair_sex_called": f"{probability_of_call(sex['p'], n_auroc):.2f}",
        "tayebi_undecided": str(int((private["reading"] == "undecided").sum())),
    }


def record_substitutions() -> dict[str, str]:
    """Audit the published record and return the numbers of the book's text, ours and the printed ones."""
    import frame
    from frame.record import record_numbers
    from frame.tables import load_table

    claims, studies = load_table("published_claims"), load_table("published_studies")
    table = load_table("paper_numbers")
    printed = dict(zip(table["id"], table["value"].astype(str), strict=True))
    audited = frame.audit_claims(claims, protocol="exact")

    computed = own_numbers(audited, claims)
    for name, ours in record_numbers(audited, claims, studies).items():
        if name not in printed:
            raise ExtensionError(f"the computed number {name} has no row in data/paper_numbers.csv")
        try:
            computed[name] = as_printed(ours, printed[name])
        except ExtensionError as error:
            raise ExtensionError(f"{name}: {error}") from error
    unusable = sorted(name for name, text in computed.items() if "nan" in text or "inf" in text)
    if unusable:
        raise ExtensionError(f"these numbers could not be computed: {', '.join(unusable)}")
    return computed | {PRINTED_PREFIX + name: text for name, text in printed.items()}


def fill_substitutions(app: Sphinx, config: Config) -> None:
    """Put the numbers beside the substitutions that ``_config.yml`` may hold."""
    config.myst_substitutions = {**config.myst_substitutions, **record_substitutions()}


def setup(app: Sphinx) -> dict[str, bool]:
    """Compute before the parser reads its settings."""
    app.connect("config-inited", fill_substitutions)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

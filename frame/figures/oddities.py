"""Oddities of the published record that a computation can show, as tables for a notebook."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["impossible_proportions", "overall_outside_range"]


def overall_outside_range(claims: pd.DataFrame) -> pd.DataFrame:
    """List the claims whose printed overall value lies outside the range of their subgroups' values.

    Parameters
    ----------
    claims : pandas.DataFrame
        A row per claim and subgroup, values as text, with the columns of ``data/published_claims.csv``.

    Returns
    -------
    pandas.DataFrame
        A row per such claim: ``claim_id, dataset, measure, smallest, largest, overall``, values as printed.
    """
    import pandas as pd

    rows = []
    for name, part in claims.groupby("claim_id", sort=False):
        printed = str(part["overall_value"].iloc[0])
        if not printed:
            continue
        values = sorted(part["value"].tolist(), key=Decimal)
        if not Decimal(values[0]) <= Decimal(printed) <= Decimal(values[-1]):
            first = part.iloc[0]
            rows.append((name, first["dataset"], first["metric"], values[0], values[-1], printed))
    return pd.DataFrame(rows, columns=["claim_id", "dataset", "measure", "smallest", "largest", "overall"])


def impossible_proportions(claims: pd.DataFrame) -> pd.DataFrame:
    """List the rates that are no whole number of cases divided by their denominator.

    Parameters
    ----------
    claims : pandas.DataFrame
        As for :func:`overall_outside_range`.

    Returns
    -------
    pandas.DataFrame
        A row per subgroup rate that no count rounds to at the printed decimals: ``claim_id, study, subgroup,
        value`` (as printed), ``n``, and ``below, above``, the nearest proportions on either side, rounded to
        the printed decimals.
    """
    import pandas as pd

    rows = []
    for row in claims[claims["metric"] != "auroc"].to_dict("records"):
        value = Decimal(str(row["value"]))
        n = int(row["n_positive"] if row["metric"] == "tpr" else row["n_negative"])
        unit = Decimal(1).scaleb(int(value.as_tuple().exponent))
        count = int(value * n)
        near = [Decimal(k) / n for k in (count, min(count + 1, n))]
        # Half a unit of the last printed digit, its end included: a half may have been rounded either way.
        # A value with all digits of a floating-point number carries that number's own error.
        allowed = max(unit / 2, Decimal("1e-12"))
        if all(abs(proportion - value) > allowed for proportion in near):
            below, above = (str(proportion.quantize(unit)) for proportion in near)
            rows.append((row["claim_id"], row["study"], row["subgroup"], str(row["value"]), n, below, above))
    return pd.DataFrame(rows, columns=["claim_id", "study", "subgroup", "value", "n", "below", "above"])

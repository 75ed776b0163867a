"""What counting ties does to the published record: the one corrected exceedance that differs from the print.

A fair model can show exactly the reported difference. Whether such a draw counts depends, in floating point,
on the last bit of a subtraction: 0.78 - 0.58 is a little more than 0.20. The rule of this project counts it
(tolerance 1e-9); a plain comparison counts it or not by accident.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from frame.inference.multiplicity import benjamini_hochberg
from frame.reference import fair_reference

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["tie_table"]


def tie_table(audited: pd.DataFrame, claims: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    """Exceedance of every claim under the paper's protocol with ties counted and with a plain comparison.

    Parameters
    ----------
    audited : pandas.DataFrame
        The result of :func:`frame.audit_claims` with ``protocol="paper"``.
    claims : pandas.DataFrame
        The claims it was computed from.
    printed : pandas.DataFrame
        ``load_table("paper_supplementary_table7")``.

    Returns
    -------
    pandas.DataFrame
        A row per claim: ``claim_id, measure, observed``; ``subtracted``, the difference as floating point
        subtracts it, written out; ``p_counted, p_plain``, the share of draws that reach it under either
        rule; ``q_counted, q_plain``, corrected within the measure; ``q_printed``.
    """
    values = {str(name): part for name, part in claims.groupby("claim_id", sort=False)}
    rows = audited[["claim_id", "measure", "observed"]].reset_index(drop=True)
    subtracted, plain = [], []
    for claim in audited.to_dict("records"):
        part = values[claim["claim_id"]]
        found = part["value"].astype(float)
        difference = float(found.max() - found.min())
        measure = str(claim["measure"])
        law = fair_reference(
            float(claim["overall"]),
            None if measure == "fpr" else [int(count) for count in part["n_positive"]],
            None if measure == "tpr" else [int(count) for count in part["n_negative"]],
            measure,
            protocol="paper",
        )
        subtracted.append(repr(difference))
        plain.append(law.exceedance(difference, tolerance=0.0))
    rows = rows.assign(subtracted=subtracted, p_counted=audited["p"].to_numpy(), p_plain=plain)
    for rule in ("counted", "plain"):
        corrected = np.full(len(rows), np.nan)
        for measure in rows["measure"].unique():
            own = (rows["measure"] == measure).to_numpy()
            corrected[own] = benjamini_hochberg(rows.loc[own, f"p_{rule}"].to_numpy(dtype=np.float64))
        rows[f"q_{rule}"] = corrected
    return rows.assign(q_printed=rows["claim_id"].map(printed.set_index("claim_id")["p_fdr"]))

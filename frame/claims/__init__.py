"""Tables of published claims: how they are read and what they must hold.

One row per claim and subgroup. A table comes from a CSV file or a DataFrame; :func:`read_claims`
turns it into :class:`Claim` objects or raises one sentence that names the file, the row, the column,
what was found and what is allowed.
"""

from __future__ import annotations

from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING

from frame.claims.cells import check_cells, check_columns
from frame.claims.columns import TEMPLATE
from frame.claims.files import Place, read_csv_text, table_text
from frame.claims.rows import Claim, ClaimRows
from frame.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TEMPLATE", "Claim", "read_claims"]


def read_claims(table: pd.DataFrame | str | Path) -> list[Claim]:
    """Read and check a table of claims.

    Parameters
    ----------
    table : DataFrame, str or Path
        A DataFrame, or the path of a CSV file (comma, semicolon or tab; UTF-8 or UTF-16).

    Returns
    -------
    list of Claim
        In the order in which the claims first appear.

    Raises
    ------
    InputError
        One sentence naming file, row, column, what was found and what is allowed.
    """
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        names = [str(c).strip().lower() for c in table.columns]
        repeated = sorted({n for n in names if names.count(n) > 1})
        if repeated:
            raise InputError(f"claims table: column '{repeated[0]}' stands there twice; keep one.")
        named = table.set_axis(names, axis=1)
        text, place = table_text(named), Place("claims table", 1)
        texts_are_printed = not any(
            isinstance(cell, Real) and not isinstance(cell, bool)
            for column in ("value", "difference")
            if column in names
            for cell in named[column].tolist()
            if not pd.isna(cell)
        )
    elif isinstance(table, (str, Path)):
        text, place = read_csv_text(Path(table)), Place(Path(table).name, 2)
        texts_are_printed = True
    else:
        raise InputError(
            f"the table of claims is a {type(table).__name__}; give a DataFrame or the path of a CSV file."
        )
    check_columns(text, place)
    check_cells(text, place)
    claims: list[Claim] = []
    text["metric"] = text["metric"].str.lower()
    rows: dict[str, list[str]] = {str(c): text[c].tolist() for c in text.columns}
    labels = [int(label) for label in text.index]
    members: dict[str, list[int]] = {}
    for position, claim_id in enumerate(rows["claim_id"]):
        members.setdefault(claim_id, []).append(position)
    for claim_id, positions in members.items():
        claims.append(ClaimRows(rows, labels, positions, place, texts_are_printed).claim(claim_id))
    return claims

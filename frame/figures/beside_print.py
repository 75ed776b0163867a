"""Our numbers under both protocols beside the printed ones, as tables for a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from frame.errors import InputError
from frame.fidelity import compare_numbers, format_like

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["beside_print", "cells_beside_print", "count_verdicts", "differing_cells"]

#: Ids of the printed numbers about the published record begin with one of these.
_RECORD = ("pub_", "fig9")
_QUANTITIES = (
    "n_groups",
    "smallest_group",
    "provenance",
    "observed",
    "reference",
    "reference_lo",
    "reference_hi",
    "q",
    "exceeds",
)


def beside_print(
    places: Sequence[str],
    numbers: Mapping[str, Mapping[str, float | int | str]],
    *,
    cohort: str,
    reasons: Mapping[str, str],
) -> pd.DataFrame:
    """Put the record's numbers under several protocols beside what the paper prints.

    Parameters
    ----------
    places : sequence of str
        Places of the paper, such as ``"Figure 9"``; a number printed in two of them has two rows.
    numbers : mapping of str to mapping
        For each protocol the result of :func:`frame.record.record_numbers`.
    cohort : str
        As in :func:`frame.fidelity.compare_numbers`.
    reasons : mapping of str to str
        Why an id has no value.

    Returns
    -------
    pandas.DataFrame
        A row per printed number about the record: ``place, id, quantity, printed``, then for each protocol
        our value written as the paper writes its own (column named as the protocol) and the verdict
        (``<protocol>_verdict``), then ``reason``: why a number has no value.
    """
    import pandas as pd

    parts = []
    for place in places:
        compared = {
            protocol: _of_record(compare_numbers(place, values, cohort=cohort, reasons=reasons))
            for protocol, values in numbers.items()
        }
        if not compared:
            continue
        first = next(iter(compared.values()))
        table = first[["id", "quantity", "printed"]].copy()
        table.insert(0, "place", place)
        for protocol, own in compared.items():
            table[protocol] = [
                format_like(str(printed), ours) if verdict != "not computed" else None
                for printed, ours, verdict in zip(own["printed"], own["ours"], own["verdict"], strict=True)
            ]
            table[f"{protocol}_verdict"] = own["verdict"]
        table["reason"] = first["reason"].where(first["verdict"] == "not computed", "")
        parts.append(table)
    if not parts:
        raise InputError("No place or no protocol was given.")
    return pd.concat(parts, ignore_index=True)


def count_verdicts(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Count the cells of Supplementary Table 7 that equal the printed ones.

    Parameters
    ----------
    tables : mapping of str to pandas.DataFrame
        For each protocol the result of :func:`frame.record.supplementary_table_7`.

    Returns
    -------
    pandas.DataFrame
        A row per quantity: ``quantity, cells``, then per protocol ``<protocol>_equal`` and
        ``<protocol>_deviation``, the largest absolute deviation from the printed number (NaN where the
        quantity is no number or printed as a bound).
    """
    import pandas as pd

    rows = []
    for quantity in _QUANTITIES:
        row: dict[str, object] = {"quantity": quantity}
        for protocol, table in tables.items():
            verdicts = table[f"{quantity}_verdict"]
            row["cells"] = len(verdicts)
            row[f"{protocol}_equal"] = int((verdicts == "equal").sum())
            printed = pd.to_numeric(table[f"{quantity}_printed"], errors="coerce")
            ours = pd.to_numeric(table[quantity], errors="coerce").astype("float64")
            row[f"{protocol}_deviation"] = float((ours - printed).abs().max())
        rows.append(row)
    return pd.DataFrame(rows)


def differing_cells(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """List the cells of Supplementary Table 7 that differ from the print under any of the protocols.

    Parameters
    ----------
    tables : mapping of str to pandas.DataFrame
        As for :func:`count_verdicts`.

    Returns
    -------
    pandas.DataFrame
        A row per cell: ``claim_id, quantity, printed``, then per protocol our value and its verdict.
    """
    import pandas as pd

    rows = []
    first = next(iter(tables.values()))
    for i, claim in enumerate(first["claim_id"]):
        for quantity in _QUANTITIES:
            verdicts = {name: str(table[f"{quantity}_verdict"].iloc[i]) for name, table in tables.items()}
            if "differs" not in verdicts.values():
                continue
            row = {
                "claim_id": claim,
                "quantity": quantity,
                "printed": first[f"{quantity}_printed"].iloc[i],
            }
            for name, table in tables.items():
                row |= {name: table[quantity].iloc[i], f"{name}_verdict": verdicts[name]}
            rows.append(row)
    columns = ["claim_id", "quantity", "printed"]
    for name in tables:
        columns += [name, f"{name}_verdict"]
    return pd.DataFrame(rows, columns=columns)


def cells_beside_print(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Put Supplementary Table 7 under several protocols beside the print, a row per claim.

    Parameters
    ----------
    tables : mapping of str to pandas.DataFrame
        As for :func:`count_verdicts`.

    Returns
    -------
    pandas.DataFrame
        A row per claim: ``claim_id, label, measure``; for each quantity our value under each protocol
        (``<quantity>_<protocol>``) and the printed text (``<quantity>_printed``); and for each protocol
        ``<protocol>_differs``, the quantities whose verdict is not ``equal``, empty when all agree.
    """
    first = next(iter(tables.values()))
    table = first[["claim_id", "label", "measure"]].reset_index(drop=True)
    for quantity in _QUANTITIES:
        for name, own in tables.items():
            table[f"{quantity}_{name}"] = own[quantity].to_numpy()
        table[f"{quantity}_printed"] = first[f"{quantity}_printed"].to_numpy()
    for name, own in tables.items():
        table[f"{name}_differs"] = [
            ", ".join(quantity for quantity in _QUANTITIES if row[f"{quantity}_verdict"] != "equal")
            for row in own.to_dict("records")
        ]
    return table


def _of_record(compared: pd.DataFrame) -> pd.DataFrame:
    return compared[compared["id"].str.startswith(_RECORD)].reset_index(drop=True)

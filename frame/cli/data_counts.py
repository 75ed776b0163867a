"""What ``frame data counts`` counts and prints."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import typer

from frame.cli.data_phantom import draw_what_is_stale
from frame.cli.data_tables import cell, chosen_sources, text_of
from frame.cli.output import chosen_format
from frame.cli.study_run import say
from frame.cohorts.phantom.truth import NOTE
from frame.cohorts.sources import sources
from frame.errors import InputError
from frame.experiments.cohort_counts import COLUMNS, NAME, SPLITS, policy_name, units
from frame.experiments.contract import all_units
from frame.experiments.results import with_small_cells_hidden
from frame.workspace.graph import make_with_inputs
from frame.writing import check_target, write_text

if TYPE_CHECKING:
    from frame.workspace.layout import Workspace

__all__ = ["counts"]


def counts(
    workspace: Workspace,
    named: Sequence[str],
    *,
    by: str | None,
    findings: Sequence[str],
    policies: bool,
    unit: str,
    recorded: str | None,
    missing: bool,
    out: Path | None,
    form: str | None,
) -> None:
    """Print or write a table of counts.

    Raises
    ------
    frame.InputError
        If a source, an attribute, a finding or a field is unknown, or the table cannot be written.
    """
    chosen = chosen_sources(workspace, named)
    workspace = workspace.only(chosen)
    draw_what_is_stale(workspace)
    shape = chosen_format(out, form)
    target = None if out is None else check_target(out, "--out")
    if recorded is not None or missing:
        make_with_inputs(workspace, [f"manifest:{name}" for name in chosen], say)
        found = _missing(workspace, chosen) if recorded is None else _recorded(workspace, chosen, recorded)
        title, table = found
    else:
        make_with_inputs(workspace, [f"results:{NAME}:{name}" for name in chosen], say)
        rows = all_units(NAME, workspace, units(workspace))
        rows = with_small_cells_hidden(rows, workspace.profile.sizes.smallest_cell)
        if findings:
            title, table = _labels(workspace, rows, by, findings, policies=policies)
        else:
            title, table = _images(workspace, rows, by, unit)
    if shape in ("table", "markdown"):
        table, notes = _for_reading(table)
        if workspace.profile.phantom is not None:
            notes = [NOTE, *notes]
        text = text_of(table, shape, title) + "".join(f"{note}\n" for note in notes)
    else:
        text = text_of(table, shape)
        if workspace.profile.phantom is not None:
            print(NOTE, file=sys.stderr)
    if target is None:
        typer.echo(text, nl=False)
    else:
        write_text(target, text, "--out")


def _images(workspace: Workspace, rows: pd.DataFrame, by: str | None, unit: str) -> tuple[str, pd.DataFrame]:
    rows = rows[(rows["quantity"] == unit) & rows["attribute"].isin(_attributes(workspace, by, rows))]
    if by is None:
        rows = rows[rows["attribute"] == "all"]
    keys = ["site"] if by is None else ["site", "attribute", "subgroup"]
    return f"Numbers of {unit}", _wide(rows, keys)


def _labels(
    workspace: Workspace, rows: pd.DataFrame, by: str | None, findings: Sequence[str], *, policies: bool
) -> tuple[str, pd.DataFrame]:
    from frame.cohorts.labels import LabelPolicy

    known = [finding for finding in dict.fromkeys(rows["finding"]) if finding]
    wanted = known if "all" in findings else list(findings)
    for finding in wanted:
        if finding not in known:
            raise InputError(
                f"--finding is {finding[:60]!r}; the findings of these sources are {', '.join(known)}."
            )
    rows = rows[
        rows["finding"].isin(wanted) & rows["attribute"].isin(_attributes(workspace, by or "none", rows))
    ]
    labels = workspace.profile.labels
    policy = policy_name(LabelPolicy(uncertain=labels.uncertain, blank=labels.blank))
    keys = ["site", "finding"] + ([] if by is None else ["attribute", "subgroup"])
    title = "Images with the finding, of those with a label"
    if not policies:
        rows = rows[rows["method"] == policy]
        title += f" ({policy})"
    else:
        keys.append("method")
    return title, _wide(rows, [*keys, "quantity"]).rename(columns={"method": "policy"})


def _missing(workspace: Workspace, chosen: Sequence[str]) -> tuple[str, pd.DataFrame]:
    """How many images have no level of an attribute, by the label of each finding."""
    from frame.cohorts.missingness import missing_by_label
    from frame.cohorts.schema import FINDINGS, read_manifest_file

    parts = []
    for name in chosen:
        modality = sources()[name].modality
        columns = [
            column
            for attribute, column in COLUMNS[modality].items()
            if attribute not in ("race", "insurance")
        ]
        columns += ["race"] if modality == "fundus" else []
        manifest = read_manifest_file(workspace.path(f"manifests/{name}.parquet"))
        table = missing_by_label(manifest, columns, FINDINGS[modality])
        parts.append(table.assign(site=name)[["site", *table.columns]])
    table = pd.concat(parts, ignore_index=True)
    table = table[table["n_images"] > 0]
    smallest = workspace.profile.sizes.smallest_cell
    small = table["n_images"].between(1, smallest - 1) | table["n_missing"].between(1, smallest - 1)
    for column in ("n_images", "n_missing"):
        table[column] = table[column].astype("Int64").mask(small)
    table["share_missing"] = table["share_missing"].mask(small).round(4)
    return "Images without an attribute, by the label of each finding", table.reset_index(drop=True)


def _recorded(workspace: Workspace, chosen: Sequence[str], field: str) -> tuple[str, pd.DataFrame]:
    parts = []
    for name in chosen:
        tally = pd.read_csv(workspace.path(f"manifests/{name}.tally.csv"), keep_default_na=False)
        parts.append(tally.assign(site=name)[["site", "field", "recorded", "value", "n_images"]])
    table = pd.concat(parts, ignore_index=True)
    fields = list(dict.fromkeys(table["field"]))
    if field not in (*fields, "all"):
        raise InputError(
            f"--recorded is {field[:60]!r}; the fields of these sources are {', '.join(fields)}, all."
        )
    table = table if field == "all" else table[table["field"] == field]
    smallest = workspace.profile.sizes.smallest_cell
    small = table["n_images"] < smallest
    table["n_images"] = table["n_images"].astype("Int64").mask(small)
    return "What each recorded text became" + (
        f" (counts below {smallest} hidden)" if small.any() else ""
    ), table


def _attributes(workspace: Workspace, by: str | None, rows: pd.DataFrame) -> list[str]:
    """Attributes that are asked for; ``none`` is every image together."""
    known = [attribute for attribute in dict.fromkeys(rows["attribute"]) if attribute != "all"]
    if by in (None, "none"):
        return ["all"]
    if by == "all":
        return known
    if by not in known:
        raise InputError(
            f"--by is {str(by)[:60]!r}; the attributes of these sources are {', '.join(known)}, all."
        )
    return [str(by)]


def _wide(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """One row per key, one column per split; a hidden count is missing."""
    order = rows[keys].drop_duplicates()
    for split in (*SPLITS, "all"):
        part = rows.loc[rows["split"] == split, [*keys, "value"]].rename(columns={"value": split})
        order = order.merge(part.astype({split: "Int64"}), on=keys, how="left", validate="one_to_one")
    return order


def _for_reading(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The table as a person reads it, and what is said below it instead of in rows."""
    if "quantity" in table.columns:
        return _labels_for_reading(table), []
    if "n_missing" not in table.columns:
        return table, []
    keys = ["site", "attribute"]
    some = table.assign(some=table["n_missing"].isna() | (table["n_missing"].fillna(1) > 0))
    shown = some.groupby(keys, sort=False)["some"].transform("any").astype(bool)
    full = table[~shown].groupby("site", sort=False)["attribute"].unique()
    notes = [f"{site}: recorded for every image: {', '.join(names)}." for site, names in full.items()]
    return table[shown], notes


def _labels_for_reading(table: pd.DataFrame) -> pd.DataFrame:
    """One row per finding and subgroup: positive of evaluable images."""
    counted = [*SPLITS, "all"]
    keys = [column for column in table.columns if column not in ("quantity", *counted)]
    rows = []
    labelled = table.groupby(["site", "finding"])["all"].transform(lambda values: values.fillna(1).sum() > 0)
    for names, part in table.groupby(keys, sort=False, dropna=False):
        evaluable, positive = (part[part["quantity"] == word].iloc[0] for word in ("evaluable", "positive"))
        row = dict(zip(keys, names, strict=True))
        for split in counted:
            said = f"{cell(positive[split])} of {cell(evaluable[split])}"
            row[split] = said if labelled[part.index[0]] else "not labelled"
        rows.append(row)
    return pd.DataFrame(rows)

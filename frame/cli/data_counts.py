"""What ``frame data counts`` counts and prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pandas as pd
import typer

from frame.cli.data_tables import cell, chosen_sources, text_of
from frame.cli.output import chosen_format
from frame.cli.study_run import draw_what_is_stale, say
from frame.cohorts.phantom.truth import NOTE
from frame.cohorts.sources import sources
from frame.errors import InputError
from frame.experiments.cohort_counts import COLUMNS, NAME, NOT_RECORDED, SPLITS, policy_name, units
from frame.experiments.contract import all_units
from frame.experiments.results import with_small_cells_hidden
from frame.experiments.small_cells import group_hidden
from frame.workspace.graph import make_with_inputs
from frame.workspace.roots import source_roots
from frame.writing import check_target, write_text

if TYPE_CHECKING:
    from frame.workspace.layout import Workspace

__all__ = ["counts"]

_KEYS: Final = ["finding", "attribute", "subgroup", "split"]


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
    if target is not None:
        _check_no_input(workspace, target)
    if recorded is not None and missing:
        raise InputError("--recorded and --missing are two tables; ask for one of them at a time.")
    # Every table hides the same cells: what one leaves blank must not be had from another.
    make_with_inputs(workspace, [f"results:{NAME}:{name}" for name in chosen], say)
    rows = all_units(NAME, workspace, units(workspace))
    rows = with_small_cells_hidden(rows, workspace.profile.sizes.smallest_cell)
    if recorded is not None:
        title, table = _recorded(workspace, rows, chosen, recorded)
    elif missing:
        title, table = _missing(workspace, rows, chosen)
    elif findings:
        title, table = _labels(workspace, rows, by, findings, policies=policies)
    else:
        title, table = _images(workspace, rows, by, unit)
    if shape in ("table", "markdown"):
        table, notes = _for_reading(table)
        if workspace.profile.phantom is not None:
            notes = [NOTE, *notes]
        text = text_of(table, shape, title) + "".join(f"{note}\n" for note in notes)
    else:
        # The mark goes wherever the file goes.
        text = text_of(table if workspace.profile.phantom is None else table.assign(data=NOTE), shape)
    if target is None:
        typer.echo(text, nl=False)
    else:
        write_text(target, text, "--out")


def _check_no_input(workspace: Workspace, target: Path) -> None:
    """A table of counts must not replace a file of a release, of the workspace, or the profile."""
    folders = {"workspace": workspace.root}
    for name in workspace.profile.sources:
        roots = source_roots(workspace.profile, name, workspace.root)
        given = {f"release of {name}": roots.root, f"tables linked with {name}": roots.linked_root}
        folders |= {word: folder for word, folder in given.items() if folder is not None}
    own = Path(workspace.profile.origin)
    if target.exists() and own.exists() and target.samefile(own):
        raise InputError(f"--out is '{target.name[:60]}', the profile itself; give another file.")
    for word, folder in folders.items():
        if target.exists() and target.is_relative_to(folder.resolve()):
            raise InputError(
                f"--out is '{target.name[:60]}', a file in the folder of the {word}; give another file."
            )


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


def _missing(workspace: Workspace, rows: pd.DataFrame, chosen: Sequence[str]) -> tuple[str, pd.DataFrame]:
    """How many images have no level of an attribute, by the label of each finding."""
    from frame.cohorts.missingness import missing_by_label
    from frame.cohorts.schema import FINDINGS, read_manifest_file

    parts = []
    for name in chosen:
        modality = sources()[name].modality
        attributes = {
            column: attribute
            for attribute, column in COLUMNS[modality].items()
            if modality == "fundus" or attribute not in ("race", "insurance")
        }
        manifest = read_manifest_file(workspace.path(f"manifests/{name}.parquet"))
        table = missing_by_label(manifest, list(attributes), FINDINGS[modality])
        table = table[table["n_images"] > 0].reset_index(drop=True)
        shut = _hidden_cells(rows, name)
        for column, levels in (("n_images", None), ("n_missing", (NOT_RECORDED, "unknown"))):
            closed = [
                any(
                    (finding, *((attributes[column_of], level) if level else ("all", "all")), "all") in shut
                    for level in levels or (None,)
                )
                for finding, column_of in zip(table["finding"], table["attribute"], strict=True)
            ]
            table[column] = table[column].astype("Int64").mask(pd.Series(closed, index=table.index))
        hidden = table["n_images"].isna() | table["n_missing"].isna()
        table["share_missing"] = table["share_missing"].mask(hidden).round(4)
        parts.append(table.assign(site=name)[["site", *table.columns]])
    return "Images without an attribute, by the label of each finding", pd.concat(parts, ignore_index=True)


def _hidden_cells(rows: pd.DataFrame, site: str) -> set[tuple[str, str, str, str]]:
    """Finding (none: images and subjects), attribute, level and split of the cells that are hidden."""
    some = rows[(rows["site"] == site) & rows["value"].isna()]
    return set(some[_KEYS].itertuples(index=False, name=None))


def _recorded(
    workspace: Workspace, rows: pd.DataFrame, chosen: Sequence[str], field: str
) -> tuple[str, pd.DataFrame]:
    """What became of each recorded text; counts are hidden in step with those of the levels and findings."""
    smallest = workspace.profile.sizes.smallest_cell
    parts = []
    for name in chosen:
        tally = pd.read_csv(workspace.path(f"manifests/{name}.tally.csv"), keep_default_na=False)
        tally = tally.assign(site=name)[["site", "field", "recorded", "value", "n_images"]]
        shut = _hidden_cells(rows, name)
        known = set(rows.loc[rows["site"] == name, "attribute"])
        hidden = tally["n_images"].between(1, smallest - 1)
        for names, lines in tally.groupby("field", sort=False):
            begun = [_shut_level(str(names), str(value), shut, known) for value in lines["value"]]
            start = hidden[lines.index] | pd.Series(begun, index=lines.index)
            hidden[lines.index] = group_hidden(lines["n_images"], lines["value"], start, smallest)
        tally["n_images"] = tally["n_images"].astype("Int64").mask(hidden)
        parts.append(tally)
    table = pd.concat(parts, ignore_index=True)
    fields = list(dict.fromkeys(table["field"]))
    if field not in (*fields, "all"):
        raise InputError(
            f"--recorded is {field[:60]!r}; the fields of these sources are {', '.join(fields)}, all."
        )
    table = table if field == "all" else table[table["field"] == field]
    some = table["n_images"].isna().any()
    return "What each recorded text became" + (f" (counts below {smallest} hidden)" if some else ""), table


def _shut_level(field: str, value: str, shut: set[tuple[str, str, str, str]], known: set[str]) -> bool:
    """Whether the count of all recorded texts with this value is hidden elsewhere."""
    if field == "released_split":
        return any(("", "all", "all", split) in shut for split in SPLITS)
    if field == "label":
        return (value, "all", "all", "all") in shut
    attribute = f"{field}_recorded" if f"{field}_recorded" in known else field
    level = value or NOT_RECORDED
    return ("", attribute, level, "all") in shut


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

"""What ``frame data check`` and ``frame data build`` do and print."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pandas as pd
import typer

from frame.cli.data_tables import chosen_sources, text_of
from frame.cli.study_run import draw_what_is_stale, place, say
from frame.cli.text import printable
from frame.cohorts.manifest import needs_lists
from frame.cohorts.phantom.truth import NOTE
from frame.cohorts.sources import PACKAGED, Source, find_files, source_files, sources
from frame.workspace.graph import make_with_inputs, stages
from frame.workspace.roots import source_roots, unset_variables

if TYPE_CHECKING:
    from frame.workspace.layout import Workspace
    from frame.workspace.profiles import Profile

__all__ = ["build", "check", "found_rows"]

_NEEDED: Final = {"yes": "needed", "no": "optional", "images": "needed", "split": "needed"}
_CREDENTIAL: Final = {
    "none": "open to everyone",
    "registration": "after registration",
    "credentialed": "credentialed users only",
}


# -- check --------------------------------------------------------------------------------------------


def check(workspace: Workspace, named: Sequence[str], form: str) -> bool:
    """Print which released files of a profile are there; True when nothing that is needed is missing."""
    rows = [row for source in chosen_sources(workspace, named) for row in found_rows(workspace, source)]
    table = pd.DataFrame(rows)
    if form == "table":
        typer.echo(_check_text(workspace, table), nl=False)
    else:
        typer.echo(text_of(table, form), nl=False)
    return not (table["status"] == "missing").any()


def found_rows(workspace: Workspace, name: str, profile: Profile | None = None) -> Iterator[dict[str, str]]:
    """One row per released file of a source: what it holds, whether it is needed, whether it is there."""
    profile = profile or workspace.profile
    settings = profile.sources[name]
    unset = unset_variables(settings.root) if settings.root != PACKAGED else ()
    roots = None if unset else source_roots(profile, name, workspace.root)
    root = None if roots is None else roots.root
    gone = bool(unset) or (root is not None and not root.is_dir())
    # A folder that is not there holds nothing; the package's tables are found without a folder.
    found = None if gone or roots is None else find_files(name, root, roots.linked_root, lists_needed=True)
    # What a program draws is never to be fetched.
    absent = "missing" if profile.phantom is None else "not drawn"
    for file in source_files(name):
        if file.needed == "images" and not settings.images:
            continue
        there = found is not None and (found.images if file.needed == "images" else found.paths.get(file.key))
        needed = _NEEDED[file.needed]
        if file.needed == "split" and not needs_lists(name, settings):
            needed = "optional"
        yield {
            "source": name,
            "file": file.patterns[0],
            "folder": settings.root if file.root == "main" else settings.linked_root or settings.root,
            "holds": file.holds,
            "needed": needed,
            "status": "found" if there else (absent if needed == "needed" else "not there"),
        }


def _check_text(workspace: Workspace, table: pd.DataFrame) -> str:
    phantom = workspace.profile.phantom is not None
    lines = [f"Profile {workspace.profile.name}: {workspace.profile.title}".rstrip(": ")]
    lines += [NOTE, ""] if phantom else [""]
    for name, rows in table.groupby("source", sort=False):
        about = sources()[str(name)]
        lines.append(f"{about.title} ({name})")
        width = max(len(row) for row in rows["file"])
        for row in rows.to_dict("records"):
            mark = f"{'MISSING' if row['status'] == 'missing' else row['status']:<9}"
            word = "" if row["status"] == "found" or row["needed"] == "needed" else f", {row['needed']}"
            lines.append(f"  {mark}  {row['file']:<{width}}  {row['holds']}{word}")
        if (rows["status"] == "missing").any():
            lines += _next(workspace, about)
        lines.append("")
    missing = table[table["status"] == "missing"]
    undrawn = table.loc[table["status"] == "not drawn", "source"].nunique()
    if undrawn:
        lines.append(
            f"Nothing has to be fetched. {undrawn} of {table['source'].nunique()} sources are not drawn yet; "
            f"building draws them. Next: frame data build --profile {workspace.profile.origin}"
        )
    elif missing.empty:
        lines.append(
            f"Everything that is needed is there. Next: frame data build --profile {workspace.profile.origin}"
        )
    else:
        lines.append(
            f"{len(missing)} needed {'file is' if len(missing) == 1 else 'files are'} missing, of "
            f"{missing['source'].nunique()} of {table['source'].nunique()} sources."
        )
    return "\n".join(lines) + "\n"


def _next(workspace: Workspace, about: Source) -> list[str]:
    settings = workspace.profile.sources[about.name]
    lines = [
        f"  Get it from: {about.owner}",
        f"               {about.address}",
        f"  Terms:       {about.terms} ({_CREDENTIAL[about.credential]})",
    ]
    for key, given in (("root", settings.root), ("linked_root", settings.linked_root)):
        if given is None or given == PACKAGED:
            continue
        unset = unset_variables(given)
        if unset:
            lines.append(
                f"  Then:        export {unset[0]}=/folder/of/the/release   "
                f"({key} is {printable(given)}, not set)"
            )
            continue
        roots = source_roots(workspace.profile, about.name, workspace.root)
        folder = roots.root if key == "root" else roots.linked_root
        if folder is not None and not folder.is_dir():
            lines.append(f"  Note:        {key} is {printable(given)}, and there is no such folder")
    return lines


# -- build --------------------------------------------------------------------------------------------


def build(workspace: Workspace, named: Sequence[str], *, tables_only: bool) -> None:
    """Make manifests and images, and print what became of every source."""
    chosen = chosen_sources(workspace, named)
    workspace = workspace.only(chosen)
    draw_what_is_stale(workspace)
    there = stages(workspace)
    wanted = [f"manifest:{name}" for name in chosen]
    if not tables_only:
        wanted += [f"{kind}:{name}" for name in chosen for kind in ("images", "reports")]
        if not named:
            wanted += [name for name in there if name.startswith("check:")]
    wanted = [name for name in wanted if name in there]
    ran = make_with_inputs(workspace, wanted, say)
    if workspace.profile.phantom is not None:
        typer.echo(NOTE)
    for name in chosen:
        typer.echo(_built_text(workspace, name, images=f"images:{name}" in wanted))
    typer.echo(
        f"\n{len(ran)} of {len(wanted)} artefacts were made, the others were fresh. They lie in "
        f"{place(workspace, 'manifests')}.\nNext: frame data counts --profile {workspace.profile.origin}"
    )


def _built_text(workspace: Workspace, name: str, *, images: bool) -> str:
    from frame.cohorts.images import open_images
    from frame.cohorts.schema import read_manifest_file

    manifest = read_manifest_file(
        workspace.path(f"manifests/{name}.parquet"), columns=["subject_id", "split"]
    )
    left_out = pd.read_csv(workspace.path(f"manifests/{name}.left_out.csv"))
    drawn = " (phantom)" if workspace.profile.phantom else ""
    counted = _counted(manifest, workspace.profile.sizes.smallest_cell)
    lines = [f"{sources()[name].title}{drawn}: {counted}"]
    lines += [f"  left out: {row.n_images:,} ({row.reason})" for row in left_out.itertuples()]
    if images:
        index = open_images(workspace.path(f"images/{name}")).index
        reasons = index.loc[index["status"] != "ready", "reason"].value_counts().sort_index()
        lines.append(f"  images ready: {int((index['status'] == 'ready').sum()):,}")
        lines += [f"  unreadable: {count:,} ({reason})" for reason, count in reasons.items()]
    return "\n".join(lines)


def _counted(manifest: pd.DataFrame, smallest: int) -> str:
    """Images and subjects; by split only where none of these counts is small."""
    n_images, n_subjects = len(manifest), manifest["subject_id"].nunique()
    if n_subjects < smallest:
        return f"fewer than {smallest} subjects, so that no count is shown"
    said = f"{n_images:,} images of {n_subjects:,} subjects"
    by_split = manifest.groupby("split", observed=True)["subject_id"].agg(["size", "nunique"])
    if by_split.to_numpy().min() < smallest:
        return f"{said} (a split has fewer than {smallest}, so that none is shown)"
    sizes = [f"{split} {by_split['size'].get(split, 0):,}" for split in ("train", "validation", "test")]
    return f"{said} ({', '.join(sizes)})"

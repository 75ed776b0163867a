"""Stages that turn released files into manifests, prepared images and reports."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pandas as pd

from frame.cohorts.identical_files import check_identical
from frame.cohorts.images import open_images, prepare_images
from frame.cohorts.manifest import build_manifest, located_files, split_rule, write_counts
from frame.cohorts.release_folder import ReleaseFolder
from frame.cohorts.report_table import report_table, write_reports
from frame.cohorts.schema import read_manifest_file, write_manifest
from frame.cohorts.sources import sources
from frame.errors import InputError
from frame.tables import table_path
from frame.workspace.phantom_stages import raw_list
from frame.workspace.roots import source_roots
from frame.workspace.stages import Stage

if TYPE_CHECKING:
    from frame.cohorts.sites.contract import SiteFiles
    from frame.workspace.layout import Workspace

__all__ = ["COLOUR", "WITH_REPORTS", "modality_stages", "rule_tables", "source_stages"]

#: Tables of ``data/`` that the rows of a source are made with, by what the source records.
_RULES: Final = {
    "race": ("race_terms", "ethnicity_terms"),
    "ethnicity": ("ethnicity_terms",),
    "insurance": ("insurance_terms",),
    "sex": ("sex_codes",),
    "skin_type": ("skin_type_codes",),
    "view": ("view_terms",),
}
#: Site modules that read reports.
WITH_REPORTS: Final = ("mimic_cxr", "chexpert")
#: Colour of the prepared images of a modality.
COLOUR: Final = {"chest": "L", "skin": "RGB", "fundus": "L"}


def source_stages(workspace: Workspace, source: str) -> list[Stage]:
    """The stages of one image source: its manifest, its images and its reports.

    Where a source is drawn its raw files are an artefact of the workspace. They are looked for when a stage
    is run, and its stages can be named before they are there.

    Raises
    ------
    frame.InputError
        If released files that are needed are not found.
    """
    settings = workspace.profile.sources[source]
    drawn: tuple[str, ...] = ()
    tables: dict[str, Path] = {}
    names: dict[str, Callable[[Workspace], str | None]] = {}
    names_and_times: dict[str, Callable[[Workspace], str | None]] = {}
    if workspace.profile.phantom is not None:
        drawn = (raw_list(source),)
    else:
        files = _files(workspace, source)
        tables = {f"table {key}": path for key, path in files.paths.items() if path.is_file()}
        release = ReleaseFolder(files.root)
        names_and_times = {"image files": release.names_and_times}
        if settings.images:
            names = {"names of the image files": release.names}
    rules = {f"data/{table}": table_path(table) for table in rule_tables(source)}
    manifest = f"manifests/{source}.parquet"
    site = f"frame.cohorts.sites.{source}"
    found = [
        Stage(
            name=f"manifest:{source}",
            outputs=(manifest, f"manifests/{source}.left_out.csv", f"manifests/{source}.tally.csv"),
            run=partial(_make_manifest, source),
            inputs=drawn,
            files={**tables, **rules},
            fingerprints=names,
            settings={
                "split": split_rule(source, settings.split),
                "images": settings.images,
                "modality": sources()[source].modality,
                "seed": workspace.profile.seed,
            },
            modules=("frame.cohorts.manifest", site),
        )
    ]
    if settings.images:
        found.append(
            Stage(
                name=f"images:{source}",
                outputs=(f"images/{source}/index.parquet",),
                run=partial(_make_images, source),
                inputs=(manifest, *drawn),
                fingerprints=names_and_times,
                settings={
                    "sizes.image": workspace.profile.sizes.image,
                    "colour": COLOUR[sources()[source].modality],
                },
                modules=("frame.cohorts.images",),
                in_place=True,
                whole=partial(_whole, source),
            )
        )
    if source in WITH_REPORTS and settings.reports:
        found.append(
            Stage(
                name=f"reports:{source}",
                outputs=(f"manifests/{source}.reports.parquet",),
                run=partial(_make_reports, source),
                inputs=(manifest, *drawn),
                files={**tables, "data/demographic_terms": table_path("demographic_terms")},
                modules=("frame.cohorts.report_table", site),
            )
        )
    return found


def rule_tables(source: str) -> tuple[str, ...]:
    """Tables of ``data/`` that the manifest of a source is made with."""
    about = sources()[source]
    named = {
        table
        for field, tables in _RULES.items()
        if about.records[field] not in ("no", "")
        for table in tables
    }
    return tuple(sorted(named | ({"finding_names"} if about.modality == "chest" else set())))


def modality_stages(workspace: Workspace, modality: str) -> list[Stage]:
    """The check over all sources of a modality that have images: no file lies in two splits."""
    named = [
        name for name in workspace.profile.sources_of(modality) if workspace.profile.sources[name].images
    ]
    if not named:
        return []
    return [
        Stage(
            name=f"check:{modality}",
            outputs=(f"results/identical_files/{modality}.csv",),
            run=partial(_check_files, modality, tuple(named)),
            inputs=tuple(f"manifests/{name}.parquet" for name in named)
            + tuple(f"images/{name}/index.parquet" for name in named),
            settings={"identical_files": workspace.profile.identical_files},
            modules=("frame.cohorts.identical_files",),
        )
    ]


def _make_manifest(source: str, workspace: Workspace, folder: Path) -> None:
    manifest = build_manifest(
        _files(workspace, source), workspace.profile.sources[source], workspace.profile.seed
    )
    write_manifest(manifest.table, folder / f"{source}.parquet")
    write_counts(manifest.left_out, folder / f"{source}.left_out.csv")
    write_counts(manifest.tally, folder / f"{source}.tally.csv")


def _make_images(source: str, workspace: Workspace, folder: Path) -> None:
    files = _files(workspace, source)
    assert files.root is not None
    size, colour = workspace.profile.sizes.image, COLOUR[sources()[source].modality]
    report = prepare_images(
        read_manifest_file(workspace.path(f"manifests/{source}.parquet"), columns=["image_id", "file"]),
        files.root,
        workspace.path(f"images/{source}"),
        size=size,
        colour=colour,
        key=f"{size} {colour}",
    )
    if not report.n_ready:
        reasons = "; ".join(f"{count:,}: {reason}" for reason, count in report.reasons.items())
        raise InputError(
            f"Source {source}: none of its {report.n_images:,} images can be read ({reasons}); "
            "check the files of the release."
        )


def _whole(source: str, workspace: Workspace) -> bool:
    """Whether every shard of a source's images is there in its full size."""
    try:
        open_images(workspace.path(f"images/{source}"))
    except InputError:
        return False
    return True


def _make_reports(source: str, workspace: Workspace, folder: Path) -> None:
    manifest = read_manifest_file(workspace.path(f"manifests/{source}.parquet"))
    write_reports(report_table(_files(workspace, source), manifest), folder / f"{source}.reports.parquet")


def _check_files(modality: str, named: tuple[str, ...], workspace: Workspace, folder: Path) -> None:
    columns = ["image_id", "site", "subject_id", "split"]
    rows = pd.concat(
        [read_manifest_file(workspace.path(f"manifests/{name}.parquet"), columns=columns) for name in named]
    )
    index = pd.concat([open_images(workspace.path(f"images/{name}")).index for name in named])
    strict = workspace.profile.identical_files == "error"
    found = check_identical(index, rows, site=f"The {modality} sources", strict=strict)
    counts = found.by_split.assign(what="stand in one split")
    others = [
        ("belong to several subjects", found.n_across_subjects),
        ("stand in two splits", found.n_across_splits),
    ]
    counts = pd.concat(
        [counts, pd.DataFrame(others, columns=["what", "n_files"]).assign(split="all")], ignore_index=True
    )
    counts["n_images"] = counts["n_images"].astype("Int64")
    write_counts(counts[["what", "split", "n_files", "n_images"]], folder / f"{modality}.csv")


def _files(workspace: Workspace, source: str) -> SiteFiles:
    roots = source_roots(workspace.profile, source, workspace.root)
    return located_files(source, workspace.profile.sources[source], roots.root, roots.linked_root)

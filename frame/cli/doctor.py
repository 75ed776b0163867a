"""What ``frame doctor`` finds: packages, data, and what can be run with them."""

from __future__ import annotations

import importlib.metadata
import platform
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from frame import __version__
from frame.cli.text import printable
from frame.errors import InputError

if TYPE_CHECKING:
    from frame.workspace.layout import Workspace
    from frame.workspace.profiles import Profile

__all__ = ["diagnose"]

#: What each extra is for, and the packages that show whether it is there.
EXTRAS: Final = {
    "": (
        "audits of published counts and of scores, planning",
        ("numpy", "scipy", "pandas", "pandera", "typer", "rich"),
    ),
    "scores": ("bootstrap intervals, parquet files", ("numba", "pyarrow")),
    "plots": ("figures", ("matplotlib", "seaborn")),
    "study": (
        "cohorts, experiments, notebooks",
        ("pyarrow", "pillow", "pydantic", "pyyaml", "papermill", "snakemake"),
    ),
    "dicom": ("sex and age of the VinDr sets", ("pydicom",)),
    "book": ("the book", ("jupyter-book", "ipykernel", "papermill")),
    "mitigation": (
        "mitigation methods on features",
        ("scikit-learn", "fairlearn", "concept-erasure", "torch", "numba"),
    ),
    "models": (
        "encoders, pretraining",
        ("torch", "timm", "transformers", "open_clip_torch", "torchxrayvision", "scikit-learn"),
    ),
}


def diagnose(profile: str, workspace: Path | None) -> None:
    """Print what is installed, which data is found, and what can be run.

    Raises
    ------
    frame.InputError
        If the profile cannot be read.
    """
    typer.echo(f"frame {__version__}, Python {platform.python_version()}\n\nPackages")
    lacking = {extra: _lacking(packages) for extra, (_, packages) in EXTRAS.items()}
    for extra, (use, packages) in EXTRAS.items():
        name = f"[{extra}]" if extra else "base"
        state = "there" if not lacking[extra] else f"MISSING: {', '.join(lacking[extra])}"
        typer.echo(f"  {name:<12} {use}: {state}")
        if not lacking[extra]:
            typer.echo(
                f"               {', '.join(f'{package} {_version(package)}' for package in packages)}"
            )
    _accelerator()
    wanting = [extra for extra in lacking if extra and lacking[extra]]
    if wanting:
        typer.echo(f"  Install what is missing with: pip install 'frame-audit[{','.join(wanting)}]'")
    if lacking["study"]:
        typer.echo("\nData and stages: unknown without [study].")
        return
    _study(profile, workspace)


def _lacking(packages: tuple[str, ...]) -> list[str]:
    return [package for package in packages if _version(package) is None]


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _accelerator() -> None:
    if _version("torch") is None:
        typer.echo("  Accelerator: unknown without torch")
        return
    torch: Any = import_module("torch")
    there = torch.cuda.is_available()
    typer.echo(
        f"  Accelerator: {torch.cuda.get_device_name(0) if there else 'none; torch runs on the processor'}"
    )


def _missing_files(workspace: Workspace, source: str, profile: Profile) -> list[str]:
    """Needed files of a source that are not found, or what keeps them from being looked for."""
    from frame.cli.data_run import found_rows

    try:
        rows = list(found_rows(workspace, source, profile))
    except InputError as problem:
        return [printable(str(problem))]
    return [row["file"] for row in rows if row["status"] == "missing"]


def _encoders(profile: Profile) -> None:
    """Which encoders of a profile can be loaded here; of all encoders where the profile names none."""
    from frame.encoders.availability import availability
    from frame.encoders.panel import encoder, encoders

    named = list(dict.fromkeys(name for names in profile.encoders.values() for name in names))
    typer.echo(f"\nEncoders of profile {profile.name}" if named else "\nEncoders")
    found = {name: availability(encoder(name)) for name in named or encoders()}
    ready = sum(one.status == "ready" for one in found.values())
    if not named:
        typer.echo(
            f"  The profile names none; {ready} of {len(found)} can be loaded here (frame encoders list)."
        )
        return
    for name, one in found.items():
        typer.echo(f"  {name}: {one.status if one.status == 'ready' else one.status.upper()}, {one.detail}")
    typer.echo(f"  {ready} of {len(found)} can be loaded here.")


def _study(profile: str, workspace: Path | None) -> None:
    from frame.cli.study import opened
    from frame.cli.study_run import shown
    from frame.cohorts.sources import sources
    from frame.workspace.profiles import load_profile, profile_names

    chosen = opened(profile, workspace)
    names = list(dict.fromkeys([*profile_names(), chosen.profile.origin]))
    typer.echo("\nProfiles")
    for name in names:
        one = load_profile(name)
        ready = [source for source in one.sources if not _missing_files(chosen, source, one)]
        said = (
            "all sources found"
            if len(ready) == len(one.sources)
            else f"{len(ready)} of {len(one.sources)} sources found"
        )
        if one.phantom is not None:
            said = "nothing to find, its sources are drawn"
        typer.echo(f"  {one.name:<12} {one.title}: {said}")
    typer.echo(f"\nSources of profile {chosen.profile.name}")
    for source in chosen.profile.sources:
        missing = _missing_files(chosen, source, chosen.profile)
        said = (
            ("found" if chosen.profile.phantom is None else "drawn")
            if not missing
            else "not drawn yet"
            if chosen.profile.phantom is not None
            else f"MISSING {len(missing)}: {missing[0]}{', ...' if len(missing) > 1 else ''}"
        )
        typer.echo(f"  {sources()[source].title} ({source}): {said}")
    _encoders(chosen.profile)
    typer.echo(f"\nWorkspace: {shown(chosen.root)}{'' if chosen.root.is_dir() else ' (not made yet)'}")
    try:
        from frame.workspace.graph import stages, stale_stages

        stale = stale_stages(chosen)
        typer.echo(
            f"  {len(stale)} of {len(stages(chosen))} stages are stale; frame book --dry-run lists them."
        )
        typer.echo(f"Next: frame book --profile {chosen.profile.origin}" if stale else "Everything is fresh.")
    except InputError as problem:
        typer.echo(f"  Not ready: {problem}")
        typer.echo(f"Next: frame data check --profile {chosen.profile.origin}")

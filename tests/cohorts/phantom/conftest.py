"""Worlds that several tests read: the demo's tables at full size, and a small world with its images."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def truth():
    from frame.cohorts.phantom.truth import PhantomTruth

    return PhantomTruth()


@pytest.fixture(scope="session")
def small_truth(truth):
    from frame.cohorts.phantom.truth import scaled

    return scaled(truth, 0.01)


@pytest.fixture(scope="session")
def populations(truth):
    from frame.cohorts.phantom.population import population

    return {source: population(truth, source) for source in truth.sources}


@pytest.fixture(scope="session")
def tables(truth, populations, tmp_path_factory) -> Path:
    """All files of the demo's world but its images."""
    from frame.cohorts.phantom.world import LAYOUTS

    folder = tmp_path_factory.mktemp("tables")
    for source, images in populations.items():
        for name, content in LAYOUTS[source](truth, images, 64).items():
            target = folder / source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    return folder


@pytest.fixture(scope="session")
def small_world(small_truth, tmp_path_factory) -> Path:
    from frame.cohorts.phantom.world import write_world

    folder = tmp_path_factory.mktemp("world")
    write_world(small_truth, folder, 32, 1)
    return folder


@pytest.fixture(scope="session")
def read():
    """Read the manifest of a source through its site module."""
    from frame.cohorts.manifest import build_manifest, located_files
    from frame.cohorts.phantom.truth import ROOTS, SPLIT_RULES
    from frame.workspace.profiles import SourceSettings

    def one(folder: Path, source: str, images: bool):
        settings = SourceSettings(root="x", split=SPLIT_RULES.get(source, "default"), images=images)
        linked = folder / source / ROOTS[source] if source in ROOTS else None
        files = located_files(source, settings, folder / source, linked)
        return files, build_manifest(files, settings, 0)

    return one


@pytest.fixture(scope="session")
def manifests(truth, tables, read):
    return {source: read(tables, source, images=False)[1] for source in truth.sources}

"""Every world that is accepted can be read: tiny sizes, each split at 0, through the site modules."""

from __future__ import annotations

import itertools

import pytest
from pydantic import ValidationError

from frame.cohorts.phantom import population_chest
from frame.cohorts.phantom.population import population
from frame.cohorts.phantom.truth import SOURCES, PhantomTruth, Sizes, modality_of
from frame.cohorts.phantom.world import LAYOUTS

ALL = tuple(source for names in SOURCES.values() for source in names)
#: Images by split: every one of them at 0 and not, and the smallest worlds.
SIZES = [sizes for n in (1, 6) for sizes in itertools.product((0, n), repeat=3) if any(sizes)]


def _world(source, sizes, seed=0):
    train, validation, test = sizes
    one = {source: Sizes(train=train, validation=validation, test=test)}
    return PhantomTruth(seed=seed, **{modality_of(source): one})


def _read_back(truth, source, folder, read):
    images = population(truth, source)
    for name, content in LAYOUTS[source](truth, images, 32).items():
        target = folder / source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return images, read(folder, source, images=False)[1]


def _refused(source, sizes):
    train, validation, test = sizes
    if source.startswith("vindr"):
        return bool(validation) or not train or not test
    return source == "nih_cxr14" and (not train + validation or not test)


@pytest.mark.parametrize("source", ALL)
def test_what_is_accepted_can_be_read(source, tmp_path, read):
    n_read = 0
    for sizes in SIZES:
        if _refused(source, sizes):
            with pytest.raises(ValidationError, match=f"chest.{source}: .*(must be 0|must be 1 or more)"):
                _world(source, sizes)
            continue
        folder = tmp_path / "-".join(map(str, sizes))
        images, manifest = _read_back(_world(source, sizes), source, folder, read)
        assert len(manifest.table) == len(images) == sum(sizes), sizes
        n_read += 1
    assert n_read == (2 if source.startswith("vindr") else 6 if source == "nih_cxr14" else 14)


@pytest.mark.parametrize(
    ("source", "share"),
    [("mimic_cxr", "NOT_LISTED"), ("mimic_cxr", "NOT_ADMITTED"), ("chexpert", "VALID")],
)
def test_no_released_table_is_empty_by_chance(source, share, tmp_path, read, monkeypatch):
    """A few patients may all be those that a table leaves out; one of them is then in it."""
    monkeypatch.setattr(population_chest, share, 1.0)
    images, manifest = _read_back(_world(source, (1, 1, 1)), source, tmp_path, read)
    assert len(manifest.table) == len(images) == 3

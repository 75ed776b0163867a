"""Whether what is planted in phantoms is found by a weak encoder, and nothing else, over many worlds.

Each world has a seed of its own. Its adults are drawn with each mark of race, a logistic head on means of
16 by 16 blocks is fitted for each finding, and its AUROC is compared between groups of test images. Where
nothing is planted the mean over the worlds lies within Monte-Carlo error of 0; the mark must not change it.

``python -m benchmarks.phantom_truth [WORLDS] [IMAGES]``; with 50 worlds of 3,300 images about two hours of
one core. The tests judge the same over fifty small worlds (tests/cohorts/phantom/test_fifty_worlds.py).
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from frame.cohorts.phantom.truth import PhantomTruth, RacePlant
from frame.figures.phantom_decoding import (
    ENCODERS,
    MARKS,
    attribute_decodability,
    draw_cohort,
    finding_aurocs,
)

WORLDS, IMAGES = 50, 3300
SOURCES = ("mimic_cxr", "nih_cxr14")
#: Monte-Carlo standard errors beyond which a mean is not 0. Forty means are judged for race.
BEYOND = 3.5
#: The control may be told a little better in the oldest, where what may hide it is fainter, but not worse.
WORSE = -0.02


def one_world(seed: int, mark: str, images: int) -> pd.DataFrame:
    """What is told in one world: a row for each finding."""
    truth = PhantomTruth(seed=seed, race=RacePlant.model_validate({"texture": mark}))
    cohort = draw_cohort(truth, SOURCES, images, encoders=tuple(ENCODERS))
    found = finding_aurocs(cohort)
    told = {
        name: float(attribute_decodability(cohort, name).set_index("attribute")["auroc"]["race"].mean())
        for name in ENCODERS
    }
    return found.assign(
        seed=seed,
        mark=mark,
        by_race=found["largest_group"] - found["other_groups"],
        by_age=found["oldest"] - found["younger"],
        **told,
    )


def mean_and_error(values: pd.Series) -> tuple[float, float]:
    """Mean over the worlds with its Monte-Carlo standard error."""
    numbers = values.to_numpy(dtype=np.float64)
    return float(numbers.mean()), float(numbers.std(ddof=1) / np.sqrt(len(numbers)))


def summary(rows: pd.DataFrame) -> list[tuple[str, ...]]:
    """For each mark and finding the means, and whether each is what was planted."""
    control = PhantomTruth().age.control
    lines: list[tuple[str, ...]] = []
    for (mark, finding), part in rows.groupby(["mark", "finding"], sort=False):
        race, race_error = mean_and_error(part["by_race"])
        age, age_error = mean_and_error(part["by_age"])
        planted = age > WORSE if finding == control else age < -BEYOND * age_error
        lines.append(
            (
                str(mark),
                str(finding),
                f"{part['auroc'].mean():.3f}",
                f"{race:+.4f} ± {race_error:.4f}",
                f"{age:+.4f} ± {age_error:.4f}",
                "yes" if abs(race) < BEYOND * race_error else "NO",
                "yes" if planted else "NO",
            )
        )
    return lines


def mark_effects(rows: pd.DataFrame) -> list[str]:
    """By finding: the difference by race with a mark less that without any, world by world."""
    wide = rows.pivot_table(index=["finding", "seed"], columns="mark", values="by_race")
    lines = []
    for mark in MARKS[:-1]:
        for finding, change in (wide[mark] - wide["none"]).groupby("finding", sort=False):
            mean, error = mean_and_error(change)
            lines.append(f"{mark}, {finding}: {mean:+.4f} ± {error:.4f}")
    return lines


def run(worlds: int = WORLDS, images: int = IMAGES, workers: int = 2) -> None:
    """Draw and judge all worlds, and print what was found."""
    console, start = Console(), time.perf_counter()
    jobs = list(product(range(worlds), MARKS))
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        parts = []
        drawn = pool.map(one_world, *zip(*jobs, strict=True), [images] * len(jobs))
        for (seed, mark), part in zip(jobs, drawn, strict=True):
            parts.append(part)
            print(f"world {seed}, mark {mark}: drawn and judged", file=sys.stderr, flush=True)
    rows = pd.concat(parts, ignore_index=True)
    table = Table(title=f"{worlds} phantom worlds, {images:,} images each: mean AUROC, and differences in it")
    for name in ("mark", "finding", "AUROC", "by race", "oldest less younger", "race fair", "age as planted"):
        table.add_column(name)
    for line in summary(rows):
        table.add_row(*line)
    console.print(table)
    for name in ENCODERS:
        told = rows.groupby("mark", sort=False)[name].mean()
        shown = ", ".join(f"{mark} {value:.3f}" for mark, value in told.items())
        console.print(f"Race told from the rest by {name}, mean AUROC: {shown}")
    console.print("What the mark changes in the difference by race:")
    for text in mark_effects(rows):
        console.print(f"  {text}")
    console.print(f"{time.perf_counter() - start:.0f} s with {workers} processes")


if __name__ == "__main__":
    run(*(int(given) for given in sys.argv[1:3]))

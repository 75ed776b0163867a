"""Whether what is planted in phantoms is found by a weak encoder, and nothing else, over many worlds.

Each world has a seed of its own. Its adults are drawn with and without the mark of race, a logistic head on
means of 16 by 16 blocks is fitted for each finding, and its AUROC is compared between groups of test images.
Where nothing is planted the mean over the worlds lies within Monte-Carlo error of 0; the mark must change
neither.

``python -m benchmarks.phantom_truth [WORLDS] [IMAGES]``; with 50 worlds of 3,300 images about an hour.
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
from frame.figures.phantom_decoding import attribute_decodability, draw_cohort, finding_aurocs

WORLDS, IMAGES = 50, 3300
SOURCES = ("mimic_cxr", "nih_cxr14")
FINDINGS = ("pleural_effusion", "cardiomegaly", "edema", "pneumonia", "support_devices")
MARKS = ("fixed", "none")
#: Monte-Carlo standard errors beyond which a mean is not 0. Ten means are judged for race.
BEYOND = 3.0


def one_world(seed: int, mark: str, images: int) -> pd.DataFrame:
    truth = PhantomTruth(seed=seed, race=RacePlant(texture=mark))
    cohort = draw_cohort(truth, SOURCES, images)
    found = finding_aurocs(cohort, FINDINGS)
    race = attribute_decodability(cohort).set_index("attribute")["auroc"]["race"].mean()
    return found.assign(
        seed=seed,
        mark=mark,
        race=race,
        by_race=found["largest_group"] - found["other_groups"],
        by_age=found["oldest"] - found["younger"],
    )


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Means over the worlds with their Monte-Carlo errors, and whether each is what was planted."""
    control = PhantomTruth().age.control
    found = []
    for (mark, finding), part in rows.groupby(["mark", "finding"], sort=False):
        row = {"mark": mark, "finding": finding, "worlds": len(part), "auroc": part["auroc"].mean()}
        for gap in ("by_race", "by_age"):
            error = part[gap].std(ddof=1) / np.sqrt(len(part))
            row |= {gap: part[gap].mean(), f"{gap}_error": error}
        row["race_fair"] = abs(row["by_race"]) < BEYOND * row["by_race_error"]
        there = row["by_age"] < -BEYOND * row["by_age_error"]
        row["age_as_planted"] = there if finding != control else row["by_age"] > -BEYOND * row["by_age_error"]
        found.append(row)
    return pd.DataFrame(found)


def mark_effect(rows: pd.DataFrame) -> pd.DataFrame:
    """By finding: the difference by race with the mark less that without it, world by world."""
    wide = rows.pivot_table(index=["finding", "seed"], columns="mark", values="by_race")
    change = (wide["fixed"] - wide["none"]).groupby("finding", sort=False)
    return pd.DataFrame({"mean": change.mean(), "error": change.std(ddof=1) / np.sqrt(change.size())})


def run(worlds: int = WORLDS, images: int = IMAGES, workers: int = 2) -> None:
    console, start = Console(), time.perf_counter()
    jobs = list(product(range(worlds), MARKS))
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        parts = []
        drawn = pool.map(one_world, *zip(*jobs, strict=True), [images] * len(jobs))
        for (seed, mark), part in zip(jobs, drawn, strict=True):
            parts.append(part)
            print(f"world {seed}, mark {mark}: drawn and judged", file=sys.stderr, flush=True)
    rows = pd.concat(parts, ignore_index=True)
    table = Table(title=f"{worlds} phantom worlds, {images:,} images each: mean AUROC and differences in it")
    for name in ("mark", "finding", "AUROC", "by race", "oldest less younger", "race fair", "age as planted"):
        table.add_column(name)
    for row in summary(rows).to_dict("records"):
        table.add_row(
            row["mark"],
            row["finding"],
            f"{row['auroc']:.3f}",
            f"{row['by_race']:+.4f} ± {row['by_race_error']:.4f}",
            f"{row['by_age']:+.4f} ± {row['by_age_error']:.4f}",
            "yes" if row["race_fair"] else "NO",
            "yes" if row["age_as_planted"] else "NO",
        )
    console.print(table)
    told = rows.groupby("mark")["race"].mean()
    console.print(
        "Race told from the rest, mean AUROC: " + ", ".join(f"{m} {v:.3f}" for m, v in told.items())
    )
    for finding, row in mark_effect(rows).iterrows():
        change = f"{row['mean']:+.4f} ± {row['error']:.4f}"
        console.print(f"  {finding}: the mark changes the difference by race by {change}")
    console.print(f"{time.perf_counter() - start:.0f} s with {workers} processes")


if __name__ == "__main__":
    run(*(int(given) for given in sys.argv[1:3]))

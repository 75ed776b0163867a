"""The same file under two ids: counted, and an error where the copies lie in two splits.

A copy in the test split of an image that a model was trained on makes its score worthless. Public sets hold
such copies under new names, so equal ids are not enough to find them; equal bytes are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations

import pandas as pd

from frame.errors import InputError

__all__ = ["IdenticalFiles", "check_identical"]


@dataclass(frozen=True)
class IdenticalFiles:
    """Files that occur more than once.

    Attributes
    ----------
    n_files : int
        Different files that stand under more than one image id.
    n_images : int
        Image ids that they stand under.
    n_across_subjects : int
        Those files whose image ids belong to more than one subject, so that one subject counts as several.
    n_across_splits : int
        Those files whose image ids lie in more than one split; 0 unless the check was not strict.
    by_split : pandas.DataFrame
        Columns ``split``, ``n_files`` and ``n_images``, one row per split that has any.
    """

    n_files: int
    n_images: int
    n_across_subjects: int
    n_across_splits: int
    by_split: pd.DataFrame


def check_identical(
    index: pd.DataFrame, manifest: pd.DataFrame, *, site: str, strict: bool = True
) -> IdenticalFiles:
    """Find files with the same bytes.

    Parameters
    ----------
    index : pandas.DataFrame
        Index of an image store: ``image_id`` and ``sha256``. With a column ``status``, images that cannot be
        read take no part (empty files are all the same).
    manifest : pandas.DataFrame
        ``image_id``, ``subject_id`` and ``split``, one row per image.
    site : str
        Name of the source, or words for several that are checked together, for the error message.
    strict : bool
        Whether a file in two splits is an error; otherwise it is counted.

    Returns
    -------
    IdenticalFiles
        What is there.

    Raises
    ------
    frame.InputError
        If ``strict`` and a file lies in two splits: how many, in which splits, of which source; or if an
        image of the index has no row in the manifest.
    """
    for name, table, columns in (
        ("index of the images", index, ("image_id", "sha256")),
        ("manifest", manifest, ("image_id", "subject_id", "split")),
    ):
        missing = [column for column in columns if column not in table.columns]
        if missing:
            raise InputError(f"{site}: the {name} has no column {missing[0]}; it needs {', '.join(columns)}.")
    known = index["sha256"].notna() & (index["sha256"] != "")
    if "status" in index.columns:
        known &= index["status"] == "ready"
    files = index.loc[known, ["image_id", "sha256"]]
    copies = files[files["sha256"].duplicated(keep=False)]
    rows = copies.merge(
        manifest[["image_id", "subject_id", "split"]], on="image_id", how="left", validate="one_to_one"
    )
    absent = int(rows["split"].isna().sum())
    if absent:
        raise InputError(
            f"{site}: {absent:,} images whose file occurs more than once are in no split; prepare the images "
            f"of the manifest as it is now."
        )
    by_file = rows.groupby("sha256", sort=True)
    n_splits = by_file["split"].nunique()
    crossing = rows[rows["sha256"].isin(n_splits.index[n_splits > 1])]
    if strict and len(crossing):
        raise InputError(_crossing(site, crossing))
    within = rows.groupby("split", sort=True)["sha256"]
    return IdenticalFiles(
        n_files=len(n_splits),
        n_images=len(rows),
        n_across_subjects=int(by_file["subject_id"].nunique().gt(1).sum()),
        n_across_splits=int((n_splits > 1).sum()),
        by_split=pd.DataFrame({"n_files": within.nunique(), "n_images": within.size()}).reset_index(),
    )


def _crossing(site: str, rows: pd.DataFrame) -> str:
    pairs: Counter[tuple[str, str]] = Counter()
    for _, splits in rows.groupby("sha256")["split"]:
        pairs.update(combinations(sorted(set(splits.astype(str))), 2))
    n_files = rows["sha256"].nunique()
    shown = ", ".join(f"{first} and {second} ({count:,})" for (first, second), count in sorted(pairs.items()))
    stand = "file stands" if n_files == 1 else "files stand"
    return (
        f"{site}: {n_files:,} {stand} under {len(rows):,} image ids in more than one split: {shown}; give "
        f"the copies one subject, so that they share a split, leave all but one out, or set identical_files: "
        f"count in the profile to have them counted only."
    )

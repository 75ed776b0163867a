"""NIH ChestX-ray14, from its table of images and its lists of the released split.

All images are frontal. The table of 2020 and those of 2017 are read alike: ages are numbers, or texts such
as ``058Y``, ``013M`` and the impossible ``411Y``. The findings come from a text such as ``Effusion|Mass``,
in which a name that is not there says that it was not mined from the report. The release has two lists: the
test set, and training and validation together.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from frame.cohorts import harmonise
from frame.cohorts.listing import files_under
from frame.cohorts.sites.contract import SiteFiles, SiteRows
from frame.cohorts.sites.finding_codes import codes_from_names, finding_names
from frame.cohorts.sites.released_tables import (
    Columns,
    assembled,
    check_filled,
    check_linked,
    check_unique,
    counted,
    left_out,
    needed_path,
    read_columns,
    tallied,
)
from frame.errors import InputError

__all__ = ["read_rows"]

SOURCE: Final = "nih_cxr14"
#: Where the images lie: in one folder, or in the twelve that the archives unpack to.
IMAGES: Final = ("images/*.png", "images_*/images/*.png", "images_*/*.png", "*.png")
_COLUMNS: Final = (
    "Image Index",
    "Finding Labels",
    "Patient ID",
    "Patient Age",
    "Patient Gender",
    "View Position",
)


def read_rows(files: SiteFiles) -> SiteRows:
    """Read the images of ChestX-ray14.

    Parameters
    ----------
    files : SiteFiles
        ``entries``; for the released split also ``train_val_list`` and ``test_list``.

    Returns
    -------
    SiteRows
        ``file`` is missing where no image of that name lies below the root. ``released_split`` is
        ``train_val`` or ``test``, and missing where the image is in neither list or the lists are not given.

    Raises
    ------
    frame.InputError
        If a table or list is not as released, or an image is in both lists.
    """
    path = needed_path(files, "entries")
    images = read_columns(path, _COLUMNS)
    check_unique(images, ["Image Index"], path.name)
    check_filled(images, ["Patient ID"], path.name)
    names = finding_names(SOURCE)
    coded = codes_from_names(SOURCE, images["Finding Labels"], _parse)
    unknown = coded.tally[
        (coded.tally["field"] == "label") & ~coded.tally["recorded"].isin([*names, "no label"])
    ]
    if len(unknown):
        raise InputError(
            f"{path.name}: {len(unknown):,} label names in {int(unknown['n_images'].sum()):,} images are "
            f"none of {', '.join(names)}; the table must be as released."
        )
    age = harmonise.ages(images["Patient Age"])
    sex = harmonise.sex(images["Patient Gender"])
    view = harmonise.view(images["View Position"])
    splits, split_tally = _splits(files, images["Image Index"])
    columns: Columns = {
        "image_id": images["Image Index"].str.removesuffix(".png"),
        "patient_id": images["Patient ID"],
        "subject_id": images["Patient ID"],
        "subject_kind": "patient",
        "file": _image_files(files, images["Image Index"]),
        "released_split": splits,
        "age": age.values,
        "sex": sex.values,
        "view": view.values.replace("lateral", "unknown"),
    }
    views = view.tally.assign(value=view.tally["value"].replace("lateral", "unknown"))
    tallies = [views, sex.tally, age.tally, split_tally, coded.tally]
    return assembled(columns, coded.codes, left_out(pd.Series(dtype="str")), tallies)


def _parse(text: str) -> list[str] | None:
    names = [name.strip() for name in text.split("|")]
    return None if names == [""] else names


def _image_files(files: SiteFiles, names: pd.Series) -> pd.Series | float:
    if not files.images or files.root is None:
        return np.nan
    return names.map(files_under(files.root, IMAGES))


def _splits(files: SiteFiles, names: pd.Series) -> tuple[pd.Series, pd.DataFrame]:
    """The released split of each image, from the two lists."""
    nothing = pd.Series(np.nan, index=names.index, dtype="str")
    given = [key for key in ("train_val_list", "test_list") if key in files.paths]
    if not given:
        return nothing, counted("released_split", "lists not given", np.nan, len(names))
    if len(given) == 1:
        raise InputError(
            f"Source {SOURCE} has only one of its two lists, {files.paths[given[0]].name}; give both or none."
        )
    pool, test = (_listed(files.paths[key]) for key in given)
    both = len(pool.intersection(test))
    if both:
        raise InputError(f"{both:,} images of {SOURCE} are in both released lists; download the lists again.")
    splits = names.map({**dict.fromkeys(pool, "train_val"), **dict.fromkeys(test, "test")}).astype("str")
    check_linked(splits.notna(), " with ".join(files.paths[key].name for key in given), "image name")
    told = splits.fillna("in neither list")
    absent = len(pool) + len(test) - int(splits.notna().sum())
    unknown = counted("released_split", "listed and not in the table", np.nan, absent)
    return splits, pd.concat([tallied("released_split", told, splits), unknown], ignore_index=True)


def _listed(path: Path) -> pd.Index:
    """Image names of a list, which has one on each line and no header; its last line may have no end."""
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        lines = pd.Series(
            [line for line in content.decode("utf-8-sig").splitlines() if line.strip()], dtype="str"
        )
    except (ValueError, OSError, EOFError, zlib.error) as problem:
        raise InputError(
            f"{path.name} cannot be read ({type(problem).__name__}); it must hold one image name a line: "
            "download it again."
        ) from None
    if lines.empty:
        raise InputError(f"{path.name} is empty; download it again.")
    images = lines.str.strip()
    wrong = int((~images.str.fullmatch(r"[^,;\s]+\.png")).sum()) + int(images.duplicated().sum())
    if wrong:
        raise InputError(
            f"{path.name}: {wrong:,} of {len(lines):,} lines are no image name or repeat one; download it "
            "again."
        )
    return pd.Index(images)

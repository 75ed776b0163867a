"""The reports of one source: findings and impression of each image, as they are, scrubbed and amplified."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pandas as pd

from frame.cohorts.reports import amplify, scrub_reports
from frame.cohorts.sites import site_module
from frame.errors import InputError

if TYPE_CHECKING:
    from frame.cohorts.sites.contract import SiteFiles

__all__ = ["REPORT_COLUMNS", "report_table", "write_reports"]

REPORT_COLUMNS: Final = (
    "image_id",
    "findings",
    "impression",
    "text",
    "scrubbed",
    "amplified",
    "terms_version",
)


def report_table(files: SiteFiles, manifest: pd.DataFrame) -> pd.DataFrame:
    """Read the reports of a source's images.

    Parameters
    ----------
    files : SiteFiles
        The released files.
    manifest : pandas.DataFrame
        The manifest of the source: ids with the source in front.

    Returns
    -------
    pandas.DataFrame
        :data:`REPORT_COLUMNS`, one row per image of the manifest that has a report, in the manifest's order.
        ``text`` is findings and impression together; ``scrubbed`` the same without demographic terms;
        ``amplified`` the same with a sentence in front that names recorded race, sex and age band.

    Raises
    ------
    frame.InputError
        If the source has no report for any of the images.
    """
    prefix = f"{files.source}:"
    bare = manifest.assign(
        **{
            column: manifest[column].str.removeprefix(prefix)
            for column in ("image_id", "subject_id", "patient_id", "study_id")
        }
    )
    found = site_module(files.source).read_reports(files, bare)
    found = found.assign(image_id=prefix + found["image_id"].astype("str")).set_index("image_id")
    known = manifest.set_index("image_id")
    found = found.reindex(known.index.intersection(found.index, sort=False))
    parts = [found[column].fillna("").str.strip() for column in ("findings", "impression")]
    text = (parts[0] + "\n" + parts[1]).str.strip()
    there = text != ""
    if not there.any():
        raise InputError(
            f"Source {files.source}: none of its {len(manifest):,} images has a report with text."
        )
    text, known = text[there], known.loc[text.index[there]]
    scrubbed = scrub_reports(text)
    named = zip(text, known["race_recorded"], known["sex"], known["age_band"], strict=True)
    return pd.DataFrame(
        {
            "image_id": text.index,
            "findings": parts[0][there].to_numpy(),
            "impression": parts[1][there].to_numpy(),
            "text": text.to_numpy(),
            "scrubbed": scrubbed.texts.to_numpy(),
            "amplified": [amplify(*row) for row in named],
            "terms_version": scrubbed.version,
        }
    )[list(REPORT_COLUMNS)]


def write_reports(table: pd.DataFrame, path: Path) -> None:
    """Write the reports as parquet, the same bytes each time; the folder is the stage's own."""
    table.to_parquet(path, index=False, compression="zstd")

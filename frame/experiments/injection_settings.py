"""What the injection experiment is run on, and what a profile may say about it under its key ``injection``.

The same code runs every profile. By default everything is computed; a profile whose results have to be ready
on a laptop asks for less, and the rows say what was left out. No definition depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, field_validator

from frame.mitigation.registry import METHODS, NINE

__all__ = ["ATTRIBUTES", "FINDINGS", "InjectionSettings", "Reading", "in_full", "left_out_words"]

#: Findings of the injection experiment, as in the paper.
FINDINGS: Final = ("pleural_effusion", "cardiomegaly", "fracture")


@dataclass(frozen=True)
class Reading:
    """One way to read race.

    Attributes
    ----------
    column : str
        Of the manifests.
    exclude : tuple of str
        Groups whose images are left out everywhere.
    words : str
        What it is, for a heading.
    """

    column: str
    exclude: tuple[str, ...]
    words: str


#: ``attribute`` of the rows -> how race is read. The first is the paper's.
ATTRIBUTES: Final[Mapping[str, Reading]] = {
    "race": Reading("race", (), 'race as pooled, no record counted as "Other"'),
    "race_recorded": Reading("race_recorded", (), "race as recorded, images without a record in no group"),
    "race_without_other": Reading("race", ("Other",), 'race without the images of "Other"'),
}


class InjectionSettings(BaseModel):
    """What is computed at every strength.

    ``methods`` are those of the paper's nine that the achievable difference is chosen from. ``in_full`` says
    for which ways to read race the achievable difference and the representation (decodability, overlap,
    erasure cost) are computed: ``every``, or only the ``first`` of :data:`ATTRIBUTES`. The difference, the
    disease AUROC and the verdict are there for all of them in any case.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    methods: tuple[str, ...] = NINE
    in_full: Literal["every", "first"] = "every"

    @field_validator("methods", mode="before")
    @classmethod
    def _tuple(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value


def in_full(asked: str) -> tuple[str, ...]:
    """The ways to read race that are computed in full.

    Parameters
    ----------
    asked : {"every", "first"}

    Returns
    -------
    tuple of str
        Keys of :data:`ATTRIBUTES`.
    """
    return tuple(ATTRIBUTES)[: None if asked == "every" else 1]


def left_out_words(methods: tuple[str, ...], *, full: bool) -> str:
    """What was left out for one way to read race, as a sentence; empty where nothing was.

    Parameters
    ----------
    methods : tuple of str
        Those that the achievable difference is chosen from.
    full : bool
        Whether this way is computed in full.
    """
    if not full:
        return (
            "The achievable difference and the representation were not computed; the profile asks for them "
            "with race as pooled only."
        )
    absent = [METHODS[name].label for name in NINE if name not in methods]
    if not absent or not methods:  # without any method there is a caveat that says so
        return ""
    named = absent[0] if len(absent) == 1 else f"{', '.join(absent[:-1])} and {absent[-1]}"
    return (
        f"The achievable difference is chosen from {len(methods)} of the nine methods: the profile leaves "
        f"out {named}."
    )

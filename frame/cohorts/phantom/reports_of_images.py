"""The reports of a source's images, each from its own stream of random numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from frame.cohorts.phantom.report_text import Person, Report, make_report
from frame.cohorts.phantom.seeds import seed_of, stream
from frame.cohorts.phantom.truth import PhantomTruth
from frame.cohorts.schema import FINDINGS

__all__ = ["reports_of_images"]


def reports_of_images(truth: PhantomTruth, images: pd.DataFrame) -> Iterator[Report]:
    """Write the report of each image.

    Parameters
    ----------
    truth : PhantomTruth
        The world.
    images : pandas.DataFrame
        Chest images of one source, with recorded labels.

    Yields
    ------
    Report
        In the order of the images.
    """
    findings = FINDINGS["chest"]
    codes = images[[f"{name}_recorded" for name in findings]].astype(object).to_numpy()
    severities = images[[f"{name}_severity" for name in findings]].to_numpy()
    people = zip(
        images["age_recorded"], images["sex_recorded"], images["race_recorded"], images["view"],
        images["source"], images["image_number"], strict=True,
    )  # fmt: skip
    for row, (age, sex, race, view, source, number) in enumerate(people):
        said: dict[str, Any] = {
            name: None if code is pd.NA else code for name, code in zip(findings, codes[row], strict=True)
        }
        yield make_report(
            said,
            dict(zip(findings, severities[row], strict=True)),
            Person(float(age), _text(sex), _text(race)),
            str(view),
            stream(seed_of(truth.seed, source, "report", int(number)), "report"),
        )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None

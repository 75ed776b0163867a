"""What is planted by race in drawn chest radiographs, and what step two says of it all the same.

A profile with phantoms has a planted truth. In it no finding is drawn differently by race; what may be wrong
are recorded labels of one finding in one group. So a trend of the race difference, or a verdict that names
entanglement, is not an answer to a cause that was planted in the images.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pandas as pd

from frame.experiments.injection import ALL_FINDINGS
from frame.interventions.decision import CONSISTENT, MOVES_BOTH, MOVES_ENTANGLEMENT, VERDICTS

if TYPE_CHECKING:
    from frame.cohorts.phantom.truth import PhantomTruth

__all__ = ["planted_by_race", "planted_words", "trend_sentence", "verdict_sentences", "with_planted"]

_ALPHA: Final = 0.05


def planted_by_race(truth: PhantomTruth, finding: str) -> str:
    """What is planted by race for a finding of the chest radiographs, in words.

    Parameters
    ----------
    truth : PhantomTruth
        Of the profile.
    finding : str

    Returns
    -------
    str
        As in the table ``step_two_images``.
    """
    if finding == truth.noise.finding and truth.noise.rate > 0:
        return f"label noise in {truth.noise.group}"
    return "nothing" if truth.race.texture == "none" else "decodable, fair"


def planted_words(truth: PhantomTruth) -> str:
    """What is planted by race, as the beginning of a sentence without a full stop."""
    said = "No finding is drawn differently by race"
    if truth.noise.rate <= 0:
        return said
    finding = truth.noise.finding.replace("_", " ")
    return f"{said}, and recorded labels of {finding} are wrong in one group ({truth.noise.group})"


def with_planted(verdicts: pd.DataFrame, truth: PhantomTruth | None) -> pd.DataFrame:
    """The table of verdicts with a column ``planted``; as it was where nothing is planted.

    Parameters
    ----------
    verdicts : pandas.DataFrame
        Of :func:`frame.figures.injection_tables.verdict_table`.
    truth : PhantomTruth or None
        Of the profile; None where its images are real.
    """
    if truth is None:
        return verdicts
    said = [planted_by_race(truth, finding.replace(" ", "_")) for finding in verdicts["finding"]]
    return verdicts.assign(planted=pd.Series(said, index=verdicts.index, dtype="str"))


def trend_sentence(rows: pd.DataFrame, name: str, truth: PhantomTruth | None) -> tuple[str, ...]:
    """How many trends of the race difference are significant where no cause is planted in the images.

    Parameters
    ----------
    rows : pandas.DataFrame
        Collected rows of the experiment ``injection``.
    name : str
        Encoder.
    truth : PhantomTruth or None

    Returns
    -------
    tuple of str
        One sentence; none for real images, or where no trend was tested.
    """
    tests = rows[
        (rows["encoder"] == name)
        & rows["quantity"].isin(["spearman_difference", "spearman_blocked_difference"])
        & rows["p_fdr"].notna()
    ]
    if truth is None or tests.empty:
        return ()
    by_operator = "; ".join(
        f"{operator} {int((own['p_fdr'] < _ALPHA).sum())} of {len(own)}"
        for operator, own in tests.groupby("method", sort=False)
    )
    rejected = int((tests["p_fdr"] < _ALPHA).sum())
    return (
        f"{planted_words(truth)}; {rejected} of the {len(tests)} trend tests of the race difference "
        f"have q below {_ALPHA:g}, pooled and within findings, over all ways to read race ({by_operator}).",
    )


def verdict_sentences(rows: pd.DataFrame, truth: PhantomTruth | None) -> tuple[str, ...]:
    """How many verdicts name entanglement, and how many miss wrong labels, where the truth is planted.

    Parameters
    ----------
    rows : pandas.DataFrame
        Collected rows of the experiment ``injection``.
    truth : PhantomTruth or None

    Returns
    -------
    tuple of str
        None for real images, or where there is no verdict.
    """
    units = rows[(rows["finding"] != ALL_FINDINGS) & (rows["status"] == "ok")]
    beyond = units[units["quantity"] == "verdict_of_step_two"]
    if truth is None or beyond.empty:
        return ()
    named = beyond["value"].isin([VERDICTS.index(MOVES_ENTANGLEMENT), VERDICTS.index(MOVES_BOTH)])
    said = [
        f"{planted_words(truth)}; {int(named.sum())} of the {len(beyond)} verdicts without the gate "
        "name entanglement."
    ]
    gated = units[(units["quantity"] == "verdict") & (units["finding"] == truth.noise.finding)]
    missed = int((gated["value"] == VERDICTS.index(CONSISTENT)).sum())
    if truth.noise.rate > 0 and missed:
        finding = truth.noise.finding.replace("_", " ")
        miss = "it misses" if missed == 1 else "they miss"
        said.append(
            f"{missed} of the {len(gated)} verdicts on {finding} {'says' if missed == 1 else 'say'} "
            f"{CONSISTENT!r}. Wrong labels lower the AUROC of one group against recorded labels, so {miss} a "
            f"true difference{_measured(truth)}."
        )
    return tuple(said)


def _measured(truth: PhantomTruth) -> str:
    """The true difference that was measured on worlds with this truth; empty for any other truth."""
    from frame.cohorts.phantom.truth import PhantomTruth
    from frame.tables import load_table

    if truth.model_copy(update={"seed": 0}) != PhantomTruth():
        return ""
    worlds = load_table("step_two_images")
    own = worlds[(worlds["attribute"] == "race") & (worlds["finding"] == truth.noise.finding)]
    true = own["truth_recorded"].astype(float)
    fair = own["truth_recorded_reference"].astype(float)
    return (
        f": on {len(own)} simulated worlds with this truth, with many more images and another encoder, it is "
        f"{true.min():.2f} to {true.max():.2f}, where an exactly fair head shows {fair.mean():.2f}"
    )

"""When the patient bootstrap shows no interval, and why: one rule for every place that shows one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from frame.inference.contrasts import FEWEST_RESAMPLES
from frame.measures.registry import MEASURES

__all__ = ["CONSTANT", "one_patient", "summary_of", "too_often_undefined"]

Floats = NDArray[np.float64]

#: Said where no resample differs from another.
CONSTANT = "every resample gives the same value, so the interval says nothing about its error"


def one_patient(measure: str, with_positive: int, with_negative: int, n_patients: int) -> str:
    """Why resampling patients cannot show the error of a value; empty where it can.

    Parameters
    ----------
    measure : str
        Says which class is needed.
    with_positive, with_negative, n_patients : int
        Patients with a positive image, with a negative one, and all.

    Returns
    -------
    str
    """
    needs = MEASURES[measure].needs
    if needs in ("positives", "both") and with_positive == 1:
        return "1 patient with a positive: no interval"
    if needs in ("negatives", "both") and with_negative == 1:
        return "1 patient with a negative: no interval"
    return "1 patient: no interval" if n_patients == 1 else ""


def too_often_undefined(replicates: Floats) -> str:
    """Reason where more than half of the resamples, shape (resamples,), are NaN; empty otherwise."""
    undefined = int(np.count_nonzero(np.isnan(replicates)))
    return (
        f"undefined in {undefined} of {len(replicates)} resamples" if 2 * undefined > len(replicates) else ""
    )


def summary_of(replicates: Floats, reason: str) -> dict[str, Any]:
    """Mean, SD and percentiles of the defined replicates, with status and reason.

    Parameters
    ----------
    replicates : ndarray of float64, shape (resamples,)
        NaN where undefined.
    reason : str
        Why there is no interval, where that is known already; otherwise empty.

    Returns
    -------
    dict
        ``boot_mean, sd, lo, hi, n_undefined, status, reason``.
    """
    defined = replicates[~np.isnan(replicates)]
    undefined = len(replicates) - len(defined)
    reason = reason or too_often_undefined(replicates)
    if not reason and len(defined) < FEWEST_RESAMPLES:
        reason = f"defined in {len(defined)} of {len(replicates)} resamples; {FEWEST_RESAMPLES} needed"
    if reason:
        nan = float("nan")
        numbers = {"boot_mean": nan, "sd": nan, "lo": nan, "hi": nan}
        return numbers | {"n_undefined": undefined, "status": "not estimable", "reason": reason}
    lo, hi = np.percentile(defined, [2.5, 97.5])
    remarks = [f"undefined in {undefined} of {len(replicates)} resamples"] if undefined else []
    remarks += [CONSTANT] if defined.min() == defined.max() else []
    return {
        "boot_mean": float(np.mean(defined)),
        "sd": float(np.std(defined, ddof=1)),
        "lo": float(lo),
        "hi": float(hi),
        "n_undefined": undefined,
        "status": "ok",
        "reason": "; ".join(remarks),
    }

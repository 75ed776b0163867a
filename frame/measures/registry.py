"""The measures that a set of scores can be judged by, and what each needs to be computed."""

from __future__ import annotations

from dataclasses import dataclass

from frame.errors import InputError


@dataclass(frozen=True)
class Measure:
    """One measure on scores and labels; all values lie in [0, 1].

    Attributes
    ----------
    name : str
        The name used in arguments and tables, for example ``tpr``.
    title : str
        The name in words, for figures and reports.
    needs : {"positives", "negatives", "both", "any"}
        The class or classes a subgroup must have for the measure to be defined.
    reads : {"ranks", "decisions", "probabilities"}
        What it uses of a score: its rank only, whether it reaches the threshold, or its value as a
        probability.
    better : {"higher", "lower"}
        Which direction is better, and so which subgroup is the worst.
    """

    name: str
    title: str
    needs: str
    reads: str
    better: str


#: Name -> measure, in the order in which tables list them.
MEASURES: dict[str, Measure] = {
    m.name: m
    for m in (
        Measure("auroc", "AUROC", "both", "ranks", "higher"),
        Measure("tpr", "True positive rate", "positives", "decisions", "higher"),
        Measure("fpr", "False positive rate", "negatives", "decisions", "lower"),
        Measure("fnr", "False negative rate", "positives", "decisions", "lower"),
        Measure("specificity", "Specificity", "negatives", "decisions", "higher"),
        Measure("accuracy", "Accuracy", "any", "decisions", "higher"),
        Measure("ppv", "Positive predictive value", "any", "decisions", "higher"),
        Measure("npv", "Negative predictive value", "any", "decisions", "higher"),
        Measure("ece", "Expected calibration error", "any", "probabilities", "lower"),
        Measure("brier", "Brier score", "any", "probabilities", "lower"),
        Measure("auprc", "Average precision", "positives", "ranks", "higher"),
    )
}

_OTHER_NAMES = {
    "auc": "auroc",
    "roc_auc": "auroc",
    "sensitivity": "tpr",
    "recall": "tpr",
    "fall_out": "fpr",
    "miss_rate": "fnr",
    "tnr": "specificity",
    "precision": "ppv",
    "average_precision": "auprc",
    "ap": "auprc",
    "brier_score": "brier",
    "calibration": "ece",
}


def check_measure(name: object) -> Measure:
    """Return the measure of this name.

    Parameters
    ----------
    name : str
        A key of :data:`MEASURES`.

    Returns
    -------
    Measure

    Raises
    ------
    InputError
        For any other name; the sentence lists the names there are.
    """
    if isinstance(name, str):
        if name in MEASURES:
            return MEASURES[name]
        other = _OTHER_NAMES.get(name.strip().lower().replace(" ", "_").replace("-", "_"))
        other = other or (name.strip().lower() if name.strip().lower() in MEASURES else None)
        if other:
            raise InputError(f"measure {name!r} is called {other!r} here; allowed are {', '.join(MEASURES)}.")
    raise InputError(f"measure is {name!r}; allowed are {', '.join(MEASURES)}.")

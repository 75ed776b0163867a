"""Text-mined labels against radiologists, and what their errors do to the difference of a fair score.

Audits of the labels themselves read real tables. Everything about a score is simulated: the score is exactly
fair against the radiologists' labels, so that a difference against the text-mined ones comes from the labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, MaxNLocator
from numpy.typing import NDArray

from frame.cohorts.adjudicated import FINDINGS, AdjudicatedCohort, Finding
from frame.cohorts.label_error import (
    FairScore,
    expected_difference,
    expected_values,
    label_error_table,
    simulated_fair_scores,
)
from frame.figures.style import EDGE, INK, MUTED, SMALL, WIDTH, style_sheet
from frame.presentation import ShownFigure, show_figure, written

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "ATTRIBUTES",
    "audit_mined_labels",
    "differences_from_labels",
    "draw_audited_labels",
    "draw_differences_from_labels",
    "error_rates",
    "repeat_fair_scores",
    "verdicts",
]

#: Attributes of a cohort, with their names in a figure.
ATTRIBUTES: Mapping[str, str] = {"sex": "sex", "age_band": "age", "view": "view"}
#: What a fair score is compared by.
MEASURES: Mapping[str, str] = {"auroc": "AUROC", "tpr": "TPR", "fpr": "FPR"}
#: Label sets, by the beginning of their columns.
LABEL_SETS: Mapping[str, str] = {"radiologist": "radiologists", "text": "text-mined"}

# Images a subgroup needs, as in any audit.
_MIN_SIZE = 20
_COLOUR = "#0a6cb5"


def error_rates(cohort: AdjudicatedCohort, attributes: Sequence[str] = tuple(ATTRIBUTES)) -> pd.DataFrame:
    """How often the text-mined labels err, overall and in each subgroup.

    Parameters
    ----------
    cohort : AdjudicatedCohort
        Images with both sets of labels.
    attributes : sequence of str
        Columns of its images; empty for overall only.

    Returns
    -------
    pandas.DataFrame
        A row per finding that was mined and subgroup, the first of each finding overall: ``finding,
        attribute, group`` and the columns of :func:`frame.cohorts.label_error.label_error_table`.
    """
    import pandas as pd

    images = cohort.images
    tables = []
    for finding in FINDINGS.values():
        if not finding.mined:
            continue
        columns = (images[f"text_{finding.name}"], images[f"radiologist_{finding.name}"])
        everyone = pd.Series("all", index=images.index)
        for attribute, groups in [("overall", everyone), *((a, images[a]) for a in attributes)]:
            table = label_error_table(*columns, groups, images["patient"])
            table.insert(0, "attribute", attribute)
            table.insert(0, "finding", finding.title)
            tables.append(table)
    return pd.concat(tables, ignore_index=True)


def audit_mined_labels(
    cohort: AdjudicatedCohort, *, alpha: float, attributes: Sequence[str] = tuple(ATTRIBUTES)
) -> pd.DataFrame:
    """Audit TPR and FPR of the text-mined labels against those of the radiologists.

    Parameters
    ----------
    cohort : AdjudicatedCohort
        Images with both sets of labels; patients are the units.
    alpha : float
        Level of the corrected test.
    attributes : sequence of str
        Columns of its images.

    Returns
    -------
    pandas.DataFrame
        A row per finding, attribute and measure, in the columns of :func:`frame.audits.audit_table`, with
        ``finding`` in front. ``q`` is corrected over all rows of a measure. A finding that was not mined
        keeps its rows, not estimable, with the reason.
    """
    import pandas as pd

    from frame.audits import audit_table
    from frame.audits.columns import COLUMNS, typed
    from frame.inference.multiplicity import benjamini_hochberg

    images = cohort.images
    tables: list[pd.DataFrame] = []
    for finding in FINDINGS.values():
        if finding.mined:
            table = audit_table(
                {"text-mined": images[f"text_{finding.name}"].astype(np.float64)},
                {finding.title: images[f"radiologist_{finding.name}"]},
                images[list(attributes)],
                images["patient"],
                measures=["tpr", "fpr"],
                alpha=alpha,
                missing="drop",
                resamples=0,
            )
        else:
            rows = [
                {
                    "score": "text-mined",
                    "label": finding.title,
                    "attribute": attribute,
                    "measure": measure,
                    "status": "not estimable",
                    "reason": f"not auditable: {finding.reason}",
                }
                for attribute in attributes
                for measure in ("tpr", "fpr")
            ]
            table = pd.DataFrame(rows, dtype=object).reindex(columns=list(COLUMNS))
            table = table.astype(object)
            table = typed(table)
        tables.append(table)
    audited = pd.concat(tables, ignore_index=True)
    audited.insert(0, "finding", audited["label"])
    audited["family"] = "text-mined labels: " + audited["measure"]
    for family in audited["family"].unique():
        own = audited["family"] == family
        p = audited.loc[own, "p"].to_numpy(dtype=np.float64)
        audited.loc[own, "q"] = benjamini_hochberg(p)
        audited.loc[own, "family_size"] = int(np.isfinite(p).sum())
    ok = audited["q"].notna()
    audited["exceeds"] = (audited["q"] < alpha).where(ok).astype("boolean")
    return audited


def verdicts(audited: pd.DataFrame) -> list[str]:
    """The verdict on each row of an audit, in the fewest words.

    Parameters
    ----------
    audited : pandas.DataFrame
        The result of :func:`audit_mined_labels`.

    Returns
    -------
    list of str
        ``exceeds``, ``does not``, or what its ``reason`` begins with, such as ``not auditable``.
    """
    words = []
    for row in audited.to_dict("records"):
        if row["status"] != "ok":
            words.append(str(row["reason"]).partition(":")[0])
        else:
            words.append("exceeds" if row["exceeds"] else "does not")
    return words


def differences_from_labels(cohort: AdjudicatedCohort, score: FairScore, *, seed: int) -> pd.DataFrame:
    """The differences that label errors alone make of a fair score, beside what chance makes.

    Parameters
    ----------
    cohort : AdjudicatedCohort
        Images; the radiologists' labels count as true.
    score : FairScore
        How well a score works, in every subgroup alike.
    seed : int
        Of the one simulated score from which the reference is taken.

    Returns
    -------
    pandas.DataFrame
        A row per finding, attribute and measure: ``finding, attribute, measure``; ``computed``, the max-min
        difference against the text-mined labels that follows from their error rates, without a score and
        without sampling error; ``reference, reference_lo, reference_hi``, mean and 95 % range of the
        difference that chance alone makes against these labels.
    """
    import pandas as pd

    rows = []
    errors = error_rates(cohort)
    for name, finding in _mined().items():
        truth, labels = _labels(cohort, "radiologist", name), _labels(cohort, "text", name)
        scores = simulated_fair_scores(truth, cohort.images["patient"], score, seed)
        for attribute in ATTRIBUTES:
            own = errors[(errors["finding"] == finding.title) & (errors["attribute"] == attribute)]
            expected = expected_values(own[own["n_images"] >= _MIN_SIZE].reset_index(drop=True), score)
            for measure in MEASURES:
                _, law = _difference(cohort, attribute, scores, labels, measure, score)
                rows.append(
                    {
                        "finding": finding.title,
                        "attribute": attribute,
                        "measure": measure,
                        "computed": expected_difference(expected[measure].tolist()),
                        "reference": float(law.mean),
                        "reference_lo": float(law.quantile(0.025)),
                        "reference_hi": float(law.quantile(0.975)),
                    }
                )
    return pd.DataFrame(rows)


def repeat_fair_scores(
    cohort: AdjudicatedCohort,
    finding: str,
    attribute: str,
    score: FairScore,
    *,
    repeats: int,
    seed: int,
    alpha: float,
) -> pd.DataFrame:
    """How often simulated fair scores exceed their reference, against either set of labels.

    Parameters
    ----------
    cohort : AdjudicatedCohort
        Images; the radiologists' labels count as true.
    finding, attribute : str
        A key of :data:`frame.cohorts.adjudicated.FINDINGS` and one of :data:`ATTRIBUTES`.
    score : FairScore
        How well each score works.
    repeats : int
        Number of scores.
    seed : int
        Score k comes from the seed ``seed + k``.
    alpha : float
        Level of the uncorrected test.

    Returns
    -------
    pandas.DataFrame
        A row per measure and label set: ``measure, labels``; ``observed`` and ``reference``, means over the
        scores; ``exceeds``, the share whose exceedance is below alpha; ``n_scores``.
    """
    import pandas as pd

    truth = _labels(cohort, "radiologist", finding)
    found: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for k in range(repeats):
        scores = simulated_fair_scores(truth, cohort.images["patient"], score, seed + k)
        for measure in MEASURES:
            for label_set in LABEL_SETS:
                labels = _labels(cohort, label_set, finding)
                observed, law = _difference(cohort, attribute, scores, labels, measure, score)
                result = (float(observed), float(law.mean), float(law.exceedance(observed)))
                found.setdefault((measure, label_set), []).append(result)
    return pd.DataFrame(
        [
            {
                "measure": MEASURES[measure],
                "labels": LABEL_SETS[label_set],
                "observed": float(np.mean([observed for observed, _, _ in several])),
                "reference": float(np.mean([mean for _, mean, _ in several])),
                "exceeds": float(np.mean([p < alpha for _, _, p in several])),
                "n_scores": len(several),
            }
            for (measure, label_set), several in found.items()
        ]
    )


def _mined() -> dict[str, Finding]:
    return {name: finding for name, finding in FINDINGS.items() if finding.mined}


def _labels(cohort: AdjudicatedCohort, label_set: str, finding: str) -> NDArray[np.bool_]:
    return cohort.images[f"{label_set}_{finding}"].to_numpy(dtype=np.bool_)


def _difference(
    cohort: AdjudicatedCohort,
    attribute: str,
    scores: NDArray[np.float64],
    labels: NDArray[np.bool_],
    measure: str,
    score: FairScore,
) -> tuple[Any, Any]:
    """Observed difference and the law of the calibrated reference, as in :func:`frame.audit`."""
    from frame.reference.calibrated import calibrated_reference
    from frame.reference.clustered_rates import clustered_reference, rate_counts
    from frame.reference.placement import placements

    patients = cohort.images["patient"].to_numpy(dtype=np.int64)
    groups = cohort.images[attribute]
    own = [np.flatnonzero((groups == level).to_numpy()) for level in sorted(groups.dropna().unique())]
    own = [rows for rows in own if len(rows) >= _MIN_SIZE]
    names = [str(i) for i in range(len(own))]
    if measure == "auroc":
        placed = [placements(scores[rows], labels[rows], patients[rows]) for rows in own]
        values = [group.auroc for group in placed]
        return max(values) - min(values), calibrated_reference(placed, names).law
    cases = [rows[labels[rows] == (measure == "tpr")] for rows in own]
    counted = [rate_counts(scores[rows] >= score.threshold, patients[rows]) for rows in cases]
    rates = [Fraction(int(c.hits.sum()), c.n) for c in counted]
    return max(rates) - min(rates), clustered_reference(counted, names).law


# -- drawing ----------------------------------------------------------------------------------------


def draw_audited_labels(audited: pd.DataFrame) -> ShownFigure:
    """The differences in TPR and FPR of the text-mined labels beside their references.

    Parameters
    ----------
    audited : pandas.DataFrame
        The result of :func:`audit_mined_labels`.

    Returns
    -------
    ShownFigure
        A row per finding and attribute. Line: 95 % of the differences of labels that err equally in all
        subgroups. Tick: their mean. Dot: the observed difference, filled where it exceeds. Rows that are not
        estimable are left out of the figure and named in its text.
    """
    ok = audited[audited["status"] == "ok"]
    left_out = audited.loc[audited["status"] != "ok", "finding"].unique().tolist()
    figure = _draw(ok, "observed", ok["exceeds"].astype(bool).tolist(), ("tpr", "fpr"))
    lines = [
        f"{_where(row)}: {written(row['observed'])}, by chance {written(row['reference_lo'])} to "
        f"{written(row['reference_hi'])}{', exceeds' if row['exceeds'] else ''}"
        for row in ok.to_dict("records")
    ]
    lines += [f"not shown: {', '.join(left_out)}"] if left_out else []
    return show_figure(figure, "Differences of the text-mined labels between subgroups\n" + "\n".join(lines))


def draw_differences_from_labels(differences: pd.DataFrame) -> ShownFigure:
    """The differences that label errors alone make of a fair score, beside what chance makes.

    Parameters
    ----------
    differences : pandas.DataFrame
        The result of :func:`differences_from_labels`.

    Returns
    -------
    ShownFigure
        A row per finding and attribute, a panel per measure. Line: 95 % of the differences by chance alone.
        Tick: their mean. Dot: the difference made by label errors, filled where it lies above the line.
    """
    beyond = (differences["computed"] > differences["reference_hi"]).tolist()
    figure = _draw(differences, "computed", beyond, tuple(MEASURES))
    lines = [
        f"{_where(row)}: label errors {written(row['computed'])}, chance {written(row['reference_lo'])} to "
        f"{written(row['reference_hi'])}"
        for row in differences.to_dict("records")
    ]
    return show_figure(figure, "Differences that label errors make of a fair score\n" + "\n".join(lines))


def _where(row: dict[Any, Any]) -> str:
    return f"{row['finding']}, {ATTRIBUTES[row['attribute']]}, {MEASURES[row['measure']]}"


#: Texts of the key by the column that is drawn: filled dot, open dot, line.
_KEYS = {
    "observed": ("observed, exceeds", "observed, does not", "95 % of equal labels"),
    "computed": ("label errors, above chance", "label errors, not above", "95 % by chance alone"),
}


def _draw(table: pd.DataFrame, column: str, filled: Sequence[bool], measures: Sequence[str]) -> Figure:
    """One row per finding and attribute, one panel per measure: range and mean of a law, and a dot."""
    places = _places(table)
    with style_sheet():
        figure = Figure(figsize=(WIDTH, 1.9 + 0.36 * len(places)))
        panels = figure.subplots(1, len(measures), sharey=True, squeeze=False)[0].tolist()
        for axes, measure in zip(panels, measures, strict=True):
            for row, full in zip(table.to_dict("records"), filled, strict=True):
                if row["measure"] == measure:
                    y = places[row["finding"], row["attribute"]]
                    span = [row["reference_lo"], row["reference_hi"]]
                    axes.plot(span, [y, y], color=MUTED, linewidth=3, alpha=0.6)
                    axes.plot(row["reference"], y, marker="|", color=INK, markersize=11, markeredgewidth=2)
                    axes.plot(row[column], y, zorder=3, **_dot(full))
            axes.xaxis.grid(True)
            axes.axvline(0.0, color=INK, linewidth=1.1)
            axes.tick_params(axis="y", length=0)
            axes.set_title(f"Difference\nin {MEASURES[measure]}", fontsize=SMALL, color=INK)
            axes.set_xlim(left=-0.01)
            axes.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
        _name_rows(panels[0], places)
        full_text, open_text, line_text = _KEYS[column]
        handles = [
            Line2D([], [], linestyle="none", label=full_text, **_dot(True)),
            Line2D([], [], linestyle="none", label=open_text, **_dot(False)),
            Line2D([], [], color=MUTED, linewidth=3, alpha=0.6, label=line_text),
            Line2D([], [], linestyle="none", marker="|", color=INK, markersize=11, markeredgewidth=2),
        ]
        handles[-1].set_label("their mean")
        figure.legend(handles=handles, loc="outside lower center", ncols=2, handletextpad=0.5)
    return figure


def _dot(full: bool) -> dict[str, Any]:
    return {
        "marker": "o",
        "markersize": 7.5,
        "markerfacecolor": _COLOUR if full else "white",
        "markeredgecolor": _COLOUR,
        "markeredgewidth": EDGE,
    }


def _places(table: pd.DataFrame) -> dict[tuple[str, str], float]:
    """Height of each finding and attribute, findings a little apart."""
    places: dict[tuple[str, str], float] = {}
    at = 0.0
    for finding in dict.fromkeys(table["finding"]):
        for attribute in dict.fromkeys(table.loc[table["finding"] == finding, "attribute"]):
            places[finding, attribute] = at
            at += 1.0
        at += 0.5
    return places


def _name_rows(axes: Axes, places: dict[tuple[str, str], float]) -> None:
    """Write finding and attribute at the first row of a finding, the attribute alone below it."""
    named: set[str] = set()
    names = []
    for finding, attribute in places:
        names.append(ATTRIBUTES[attribute] if finding in named else f"{finding}: {ATTRIBUTES[attribute]}")
        named.add(finding)
    axes.yaxis.set_major_locator(FixedLocator(list(places.values())))
    axes.set_yticklabels(names, fontsize=SMALL)
    axes.set_ylim(max(places.values()) + 0.6, -0.6)

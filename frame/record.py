"""The published record: what the audit of 89 printed differences adds up to.

Every function takes the result of :func:`frame.audit_claims` and the table of claims it was computed from,
and returns a tidy table or the numbers that the paper prints about the record (its Figure 9, its Results and
Discussion, and its Supplementary Table 7), keyed as ``data/paper_numbers.csv`` keys them. Nothing is copied
from the printed values. Conventions of the paper, found by reproducing them:

- a **share** is the reference in percent of the reported difference, and a median share is the median of the
  claims' shares, not a ratio of medians; the two claims that report exactly 0.000 have no share and are left
  out, a claim that reports 0.0002 is not;
- a **rate** is a TPR or an FPR difference; medians of subgroup sizes in Figure 9e are over rate claims;
- a reference is **larger than reported** on unrounded values;
- a task named twice in different words counts once (``no finding (underdiagnosis)`` is ``no finding``), and
  the common diseases of DDI count as a dataset of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from frame.errors import InputError
from frame.fidelity import compare_table
from frame.tables import load_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "NOT_COMPUTED",
    "STUDY_LABELS",
    "by_modality",
    "by_study",
    "describe_claims",
    "largest_per_cohort",
    "provenance_counts",
    "record_numbers",
    "supplementary_table_7",
]

#: Printed numbers about the record that do not follow from the claims, with the reason.
NOT_COMPUTED = {
    "pub_ddi_images": (
        "the claims hold the lightest and the darkest skin tones only (415 photographs); "
        "the 241 between them are not part of any claim"
    ),
}

#: Short names of the audited studies, with the year of the article.
STUDY_LABELS = {
    "seyyed-kalantari-2021": "Seyyed-Kalantari 2021",
    "glocker-2023": "Glocker 2023",
    "lotter-2024": "Lotter 2024",
    "zong-2023": "MEDFAIR",
    "daneshjou-2022": "Daneshjou 2022",
    "burlina-2021": "Burlina 2021",
    "vaidya-2024": "Vaidya 2024",
    "yala-2022": "Yala 2022",
    "tayebi-arasteh-2024": "Tayebi Arasteh 2024",
}

# The paper's Figure 9c names two studies otherwise than their key does.
_FIGURE_9C = {"zong-2023": "fig9c_medfair", "yala-2022": "fig9c_yala_2021"}
_PROVENANCE = {
    "reported": ("R", "printed in the article"),
    "derived": ("D", "derived by arithmetic on printed totals and shares"),
    "reconstructed": ("P", "reconstructed from the pool's composition and the split"),
}
_DESCRIPTION = ("study", "modality", "dataset", "task", "attribute", "condition", "provenance")


def describe_claims(audited: pd.DataFrame, claims: pd.DataFrame) -> pd.DataFrame:
    """Add to each audited claim what it is about.

    Parameters
    ----------
    audited : pandas.DataFrame
        The result of :func:`frame.audit_claims`, a row per claim.
    claims : pandas.DataFrame
        The claims it was computed from, a row per claim and subgroup, with the columns of
        ``data/published_claims.csv``.

    Returns
    -------
    pandas.DataFrame
        The rows of ``audited`` in their order, with ``study, modality, dataset, task, attribute, condition,
        provenance`` of each claim, ``kind`` (``"rate"`` or ``"auroc"``), ``label`` (short name of the study)
        and ``reference_larger`` (the reference exceeds the reported difference, unrounded).

    Raises
    ------
    frame.InputError
        If an audited claim is not in ``claims``, or ``claims`` lacks a describing column.
    """
    absent = [label for label in _DESCRIPTION if label not in claims.columns]
    if absent:
        raise InputError(f"The table of claims has no column {absent[0]}; the published record has it.")
    missing = sorted(set(audited["claim_id"]) - set(claims["claim_id"]))
    if missing:
        raise InputError(f"The audited claim {missing[0]} is not in the table of claims.")
    described = claims.drop_duplicates("claim_id").set_index("claim_id")[list(_DESCRIPTION)]
    frame = audited.merge(described, left_on="claim_id", right_index=True, how="left", validate="one_to_one")
    frame["kind"] = frame["measure"].map({"auroc": "auroc", "tpr": "rate", "fpr": "rate"})
    frame["label"] = frame["study"].map(lambda study: STUDY_LABELS.get(study, study))
    frame["reference_larger"] = frame["reference"] > frame["observed"] + 1e-9
    return frame


def by_modality(audited: pd.DataFrame, claims: pd.DataFrame) -> pd.DataFrame:
    """Count and summarise the claims per modality and kind of statistic (Figure 9, panels b and e).

    Parameters
    ----------
    audited, claims : pandas.DataFrame
        As for :func:`describe_claims`.

    Returns
    -------
    pandas.DataFrame
        A row per modality and kind, rates first, modalities in the order of the claims: ``modality, kind,
        n_claims, n_exceed, n_share`` (claims with a share), ``share_median`` (percent), ``smallest_median``
        (cases), ``observed_median, reference_median`` (0-1 scale), ``n_reference_larger``.
    """
    frame = describe_claims(audited, claims)
    table = frame.groupby(["kind", "modality"], sort=False).agg(
        n_claims=("claim_id", "size"),
        n_exceed=("exceeds", "sum"),
        n_share=("share", "count"),
        share_median=("share", "median"),
        smallest_median=("smallest_group", "median"),
        observed_median=("observed", "median"),
        reference_median=("reference", "median"),
        n_reference_larger=("reference_larger", "sum"),
    )
    order = list(dict.fromkeys(frame["modality"]))
    rows = [(kind, name) for kind in ("rate", "auroc") for name in order if (kind, name) in table.index]
    columns = ["modality", "kind", *table.columns]
    return table.loc[rows].reset_index()[columns].astype({"n_exceed": int, "n_reference_larger": int})


def by_study(audited: pd.DataFrame, claims: pd.DataFrame) -> pd.DataFrame:
    """Count the claims above their reference per study (Figure 9, panel c).

    Parameters
    ----------
    audited, claims : pandas.DataFrame
        As for :func:`describe_claims`.

    Returns
    -------
    pandas.DataFrame
        A row per study, fewest claims first: ``study, label, modality, n_claims, n_exceed``.
    """
    frame = describe_claims(audited, claims)
    table = frame.groupby(["study", "label", "modality"], sort=False).agg(
        n_claims=("claim_id", "size"), n_exceed=("exceeds", "sum")
    )
    table = table.reset_index().astype({"n_exceed": int})
    return table.sort_values("n_claims", kind="stable").reset_index(drop=True)


def largest_per_cohort(audited: pd.DataFrame, claims: pd.DataFrame) -> pd.DataFrame:
    """Find the largest reported difference of each cohort (Figure 9, panel f).

    Parameters
    ----------
    audited, claims : pandas.DataFrame
        As for :func:`describe_claims`.

    Returns
    -------
    pandas.DataFrame
        A row per dataset, smallest difference first: ``dataset, claim_id, study, label, modality, measure,
        smallest_group, observed, reference, reference_lo, reference_hi, q, exceeds``. The first claim of the
        table stands for equal differences.
    """
    frame = describe_claims(audited, claims)
    estimable = frame[frame["status"] == "ok"]
    rounded = estimable["observed"].round(12)
    largest = rounded.groupby(estimable["dataset"], sort=False).idxmax()
    columns = ["dataset", "claim_id", "study", "label", "modality", "measure", "smallest_group", "observed"]
    columns += ["reference", "reference_lo", "reference_hi", "q", "exceeds"]
    table = estimable.loc[largest, columns]
    return table.sort_values("observed", kind="stable").reset_index(drop=True)


def provenance_counts(audited: pd.DataFrame, claims: pd.DataFrame) -> pd.DataFrame:
    """Count the claims by where their denominators come from (Figure 9, panel g).

    Parameters
    ----------
    audited, claims : pandas.DataFrame
        As for :func:`describe_claims`.

    Returns
    -------
    pandas.DataFrame
        A row per provenance: ``provenance, letter`` (as in Supplementary Table 7), ``meaning, n_claims``.
    """
    import pandas as pd

    counts = describe_claims(audited, claims)["provenance"].value_counts()
    return pd.DataFrame(
        {
            "provenance": list(_PROVENANCE),
            "letter": [letter for letter, _ in _PROVENANCE.values()],
            "meaning": [meaning for _, meaning in _PROVENANCE.values()],
            "n_claims": [int(counts.get(name, 0)) for name in _PROVENANCE],
        }
    )


def record_numbers(
    audited: pd.DataFrame, claims: pd.DataFrame, studies: pd.DataFrame
) -> dict[str, float | int | str]:
    """Compute every number that the paper prints about the published record.

    Parameters
    ----------
    audited : pandas.DataFrame
        The result of :func:`frame.audit_claims` on the published claims, under either protocol.
    claims : pandas.DataFrame
        ``load_table("published_claims")``.
    studies : pandas.DataFrame
        ``load_table("published_studies")``.

    Returns
    -------
    dict
        By the ``id`` of ``data/paper_numbers.csv`` (those beginning ``pub_`` or ``fig9``): counts as ``int``,
        differences on the 0-1 scale, medians and shares (percent) as unrounded ``float``, and a text where
        the paper prints several numbers at once (``"7 of 12"``; reference ± SD [interval] at three decimals).
        The ids in :data:`NOT_COMPUTED` are absent.

    Raises
    ------
    frame.InputError
        If the claims are not the published record (a claim that the paper names is missing).
    """
    frame = describe_claims(audited, claims)
    rate, auroc = frame[frame["kind"] == "rate"], frame[frame["kind"] == "auroc"]
    numbers: dict[str, float | int | str] = {
        "pub_claims": len(frame),
        "pub_studies": int(frame["study"].nunique()),
        "pub_modalities": int(frame["modality"].nunique()),
        "pub_datasets": int(frame["dataset"].nunique()),
        "pub_tasks": int(frame["task"].str.replace(r"\s*\([^)]*\)$", "", regex=True).nunique()),
        "pub_exceed": _count(frame["exceeds"]),
        "pub_not_exceed": len(frame) - _count(frame["exceeds"]),
        "pub_rate": len(rate),
        "pub_rate_exceed": _count(rate["exceeds"]),
        "pub_rate_share": _median(rate["share"]),
        "pub_rate_remaining": 100 - _median(rate["share"]),
        "pub_auroc": len(auroc),
        "pub_auroc_exceed": _count(auroc["exceeds"]),
        "pub_auroc_share": _median(auroc["share"]),
        "pub_reference_larger": _count(frame["reference_larger"]),
    }
    numbers |= _screening_numbers(studies)
    numbers |= _modality_numbers(frame)
    numbers |= _named_claims(frame)
    for row in by_study(audited, claims).itertuples(index=False):
        study = str(row.study)
        label = _FIGURE_9C.get(study, f"fig9c_{study.replace('-', '_')}")
        numbers[label] = f"{row.n_exceed} of {row.n_claims}"
    provenance = provenance_counts(audited, claims).set_index("provenance")["n_claims"]
    numbers |= {
        "fig9g_printed": int(provenance["reported"]),
        "fig9g_derived": int(provenance["derived"]),
        "fig9g_reconstructed": int(provenance["reconstructed"]),
    }
    return numbers


def supplementary_table_7(audited: pd.DataFrame, claims: pd.DataFrame) -> pd.DataFrame:
    """Put our audit beside the paper's Supplementary Table 7.

    Parameters
    ----------
    audited, claims : pandas.DataFrame
        As for :func:`describe_claims`, for the published claims or some of them.

    Returns
    -------
    pandas.DataFrame
        A row per claim in the order of ``audited``: ``claim_id, label, modality, dataset, task, attribute,
        condition, measure``, then for each of ``n_groups, smallest_group, provenance, observed, reference,
        reference_lo, reference_hi, q, exceeds`` our value, the printed text (``..._printed``) and the verdict
        (``..._verdict``: ``equal``, ``differs`` or ``not computed``).

    Raises
    ------
    frame.InputError
        If a claim is not one of the paper's 89.
    """
    printed = load_table("paper_supplementary_table7")
    frame = describe_claims(audited, claims)
    ours = frame.assign(
        provenance=frame["provenance"].map({name: letter for name, (letter, _) in _PROVENANCE.items()}),
        exceeds=frame["exceeds"].map({True: "yes", False: "no"}),
    )
    columns = {
        "n_groups": "n_groups",
        "smallest_group": "smallest_group",
        "provenance": "provenance",
        "reported": "observed",
        "reference": "reference",
        "ref_lo": "reference_lo",
        "ref_hi": "reference_hi",
        "p_fdr": "q",
        "exceeds": "exceeds",
    }
    asked = printed[printed["claim_id"].isin(ours["claim_id"])]
    cells = compare_table(asked, ours, key="claim_id", columns=columns, cohort="published record")
    described = ["claim_id", "label", "modality", "dataset", "task", "attribute", "condition", "measure"]
    table = frame[described]
    for label, own in columns.items():
        cell = cells[cells["quantity"] == label].set_index("claim_id")
        table = table.assign(
            **{
                own: frame[own],
                f"{own}_printed": table["claim_id"].map(cell["printed"]),
                f"{own}_verdict": table["claim_id"].map(cell["verdict"]),
            }
        )
    return table


def _screening_numbers(studies: pd.DataFrame) -> dict[str, float | int | str]:
    excluded = studies[studies["included"] == "no"]
    criterion = excluded["criterion_failed"].astype(str)
    return {
        "pub_screened": len(studies),
        "pub_excluded": len(excluded),
        "pub_fail_first": _count(criterion == "1"),
        "pub_fail_second": _count(criterion == "2"),
        "pub_fail_third": _count(criterion == "3"),
    }


def _modality_numbers(frame: pd.DataFrame) -> dict[str, float | int | str]:
    def part(modality: str, kind: str) -> pd.DataFrame:
        return frame[(frame["modality"] == modality) & (frame["kind"] == kind)]

    chest, skin = part("chest radiograph", "rate"), part("dermatology", "rate")
    pathology, fundus = part("computational pathology", "rate"), part("funduscopy", "rate")
    mammography, abdomen = part("mammography", "rate"), part("abdominal CT", "auroc")
    skin_all = frame[frame["modality"] == "dermatology"]
    no_share = (skin_all["status"] == "ok") & skin_all["share"].isna()
    return {
        "pub_cxr_rate_exceed": _count(chest["exceeds"]),
        "pub_cxr_auroc_exceed": _count(part("chest radiograph", "auroc")["exceeds"]),
        "pub_cxr_share": _median(chest["share"]),
        "pub_cxr_smallest_median": _median(chest["smallest_group"]),
        "pub_cxr_reported_median": _median(chest["observed"]),
        "pub_derm_rate": len(skin),
        "pub_derm_rate_exceed": _count(skin["exceeds"]),
        "pub_derm_rate_share": _median(skin["share"]),
        "pub_derm_smallest_median": _median(skin["smallest_group"]),
        "pub_derm_auroc": len(part("dermatology", "auroc")),
        "fig9b_zero": _count(no_share),
        "pub_path": len(pathology),
        "pub_path_exceed": _count(pathology["exceeds"]),
        "pub_path_share": _median(pathology["share"]),
        "pub_path_remaining": 100 - _median(pathology["share"]),
        "pub_path_smallest_median": _median(pathology["smallest_group"]),
        "pub_path_smallest_min": int(pathology["smallest_group"].min()),
        "pub_path_smallest_max": int(pathology["smallest_group"].max()),
        "pub_burlina": len(fundus),
        "pub_burlina_exceed": _count(fundus["exceeds"]),
        "pub_fundus_share": _median(fundus["share"]),
        "pub_fundus_smallest_median": _median(fundus["smallest_group"]),
        "pub_mammo_exceed": _count(mammography["exceeds"]),
        "pub_mammo_share": _median(mammography["share"]),
        "pub_mammo_smallest_median": _median(mammography["smallest_group"]),
        "pub_mammo_reported_median": _median(mammography["observed"]),
        "pub_ta": len(abdomen),
        "pub_ta_budgets": int(abdomen["condition"].nunique()),
        "pub_ta_min": float(abdomen["observed"].min()),
        "pub_ta_max": float(abdomen["observed"].max()),
        "pub_ta_reference_min": float(abdomen["reference"].min()),
        "pub_ta_reference_max": float(abdomen["reference"].max()),
        "pub_ta_reference_larger": _count(abdomen["reference_larger"]),
        "pub_ta_smallest_min": int(abdomen["smallest_group"].min()),
        "pub_ta_smallest_max": int(abdomen["smallest_group"].max()),
    }


def _named_claims(frame: pd.DataFrame) -> dict[str, float | int | str]:
    underdiagnosis = _one(frame, study="seyyed-kalantari-2021")
    untreated = _one(frame, study="burlina-2021", measure="tpr", condition="baseline")
    race = _one(frame, study="zong-2023", dataset="CheXpert", attribute="race")
    sex = _one(frame, study="zong-2023", dataset="CheXpert", attribute="sex")
    return {
        "pub_sk_diff": float(underdiagnosis["observed"]),
        "pub_sk_reference": _with_interval(underdiagnosis),
        "pub_sk_smallest": int(underdiagnosis["smallest_group"]),
        "pub_zong_race": float(race["observed"]),
        "pub_zong_sex": float(sex["observed"]),
        # One printed number stands for two claims; their mean rounds to it when both do.
        "pub_zong_reference": (float(race["reference"]) + float(sex["reference"])) / 2,
        "pub_burlina_diff": float(untreated["observed"]),
        "pub_burlina_reference": _with_interval(untreated),
    }


def _one(frame: pd.DataFrame, **wanted: str) -> pd.Series[Any]:
    found = frame
    for column, value in wanted.items():
        found = found[found[column] == value]
    if len(found) != 1:
        shown = ", ".join(f"{column} {value}" for column, value in wanted.items())
        raise InputError(
            f"These claims are not the published record: {len(found)} claims instead of one with {shown}."
        )
    return found.iloc[0]


def _with_interval(claim: pd.Series[Any]) -> str:
    mean, sd, lo, hi = (
        float(claim[name]) for name in ("reference", "reference_sd", "reference_lo", "reference_hi")
    )
    return f"{mean:.3f} ± {sd:.3f} [{lo:.3f}, {hi:.3f}]"


def _count(flags: pd.Series[Any]) -> int:
    return int(flags.fillna(False).astype(bool).sum())


def _median(values: pd.Series[Any]) -> float:
    return float(values.median())

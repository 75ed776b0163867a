"""Supplementary Table 8: the rules and the sites from which the printed counts can have been made.

A site either labels a finding in all its images or in none, and only MIMIC-CXR and CheXpert have uncertain
and blank labels. So a printed number of evaluable images is a sum of printed sizes of sites, less what those
two leave out. That is enough to exclude rules and sets of sites without a look at a single image; how many
labels of CheXpert are uncertain or blank is known from its public table.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from frame.figures.cohort_tables import CountedCohorts
from frame.figures.printed_cohorts import PRINTED_NAMES
from frame.figures.public_tables import PublicTable
from frame.tables import load_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "FURTHER_SITES",
    "MINED_SITES",
    "beside_print",
    "compare_rules",
    "labelling_sites",
    "policy_table",
    "possible_sets",
    "printed_labels",
    "site_sizes",
    "sums_of_sites",
]

#: Sites whose labels can be uncertain or blank, and the others.
MINED_SITES: Final = ("mimic_cxr", "chexpert")
FURTHER_SITES: Final = ("nih_cxr14", "padchest", "vindr_cxr", "vindr_pcxr")


def printed_labels() -> pd.DataFrame:
    """The printed table with the names of the findings here.

    Returns
    -------
    pandas.DataFrame
        ``finding`` (column of a manifest), ``title``, ``evaluable``, ``positive``, ``prevalence_pct`` as
        printed, and ``prevalence`` (positive in percent of evaluable).
    """
    table = load_table("paper_supplementary_table8")
    counts = table.astype(dict.fromkeys(("evaluable", "positive", "prevalence_pct"), "int64"))
    finding = counts["finding"].str.lower().str.replace(" ", "_")
    return counts.rename(columns={"finding": "title"}).assign(
        finding=finding, prevalence=100 * counts["positive"] / counts["evaluable"]
    )[["finding", "title", "evaluable", "positive", "prevalence_pct", "prevalence"]]


def site_sizes() -> dict[str, int]:
    """Printed number of images of each of the six sites, by source."""
    from frame.cohorts.sources import sources

    printed = load_table("paper_table1").set_index("row")["images"]
    return {
        name: int(printed[row]) for name, row in PRINTED_NAMES.items() if sources()[name].modality == "chest"
    }


def labelling_sites(finding: str) -> tuple[str, ...]:
    """Sites whose release has a label that counts for a finding, by ``data/harmonisation/finding_names.csv``.

    The table says for each name why it counts or does not; what the paper counted is another question, see
    :func:`possible_sets`.
    """
    names = load_table("finding_names")
    there = set(names.loc[names["finding"] == finding, "source"])
    return tuple(source for source in site_sizes() if source in there)


def sums_of_sites() -> pd.DataFrame:
    """Findings whose printed number of evaluable images is a sum of sizes of sites.

    Such a sum is what remains evaluable when nothing is left out: uncertain labels taken as negative and
    blank ones too.

    Returns
    -------
    pandas.DataFrame
        ``title``, ``evaluable``, ``sites``; no row if there is no such finding.
    """
    import pandas as pd

    sizes = site_sizes()
    sums = {
        sum(sizes[site] for site in chosen): chosen
        for count in range(1, len(sizes) + 1)
        for chosen in combinations(sizes, count)
    }
    rows = [
        {"title": row["title"], "evaluable": row["evaluable"], "sites": _named(sums[row["evaluable"]])}
        for row in printed_labels().to_dict("records")
        if row["evaluable"] in sums
    ]
    return pd.DataFrame(rows, columns=["title", "evaluable", "sites"])


def compare_rules(chexpert: PublicTable) -> pd.DataFrame:
    """The largest number of evaluable images that each rule for blank labels allows, beside the printed one.

    Parameters
    ----------
    chexpert : PublicTable
        CheXpert's public table.

    Returns
    -------
    pandas.DataFrame
        Per finding: ``title``; ``evaluable`` as printed; ``sites`` that label it; ``most``, their images
        together; ``within``, whether the printed number is at most this; ``chexpert_blank``, the share of
        blank labels in CheXpert's public table (0 to 1); ``most_blank_out``, the largest number if blank
        labels are left out, even if MIMIC-CXR had none; ``possible_blank_out``, whether the printed number is
        at most that; ``most_alike`` and ``possible_alike``, the same if MIMIC-CXR has as many blank labels,
        in proportion, as CheXpert.
    """
    import pandas as pd

    sizes = site_sizes()
    blanks = dict(zip(chexpert.codes["finding"], chexpert.codes["blank"], strict=True))
    rows = []
    for row in printed_labels().to_dict("records"):
        sites = labelling_sites(row["finding"])
        most = sum(sizes[site] for site in sites)
        blank = float(blanks[row["finding"]]) / chexpert.n_images
        least_out = round(blank * sizes["chexpert"])
        alike_out = least_out + round(blank * sizes["mimic_cxr"])
        rows.append(
            {
                "title": row["title"],
                "evaluable": row["evaluable"],
                "sites": _named([site for site in sites if site not in MINED_SITES]) or "no other",
                "most": most,
                "within": row["evaluable"] <= most,
                "chexpert_blank": blank,
                "most_blank_out": most - least_out,
                "possible_blank_out": row["evaluable"] <= most - least_out,
                "most_alike": most - alike_out,
                "possible_alike": row["evaluable"] <= most - alike_out,
            }
        )
    return pd.DataFrame(rows)


def possible_sets(chexpert: PublicTable, *, most_left_out: float) -> pd.DataFrame:
    """Sets of sites from which each printed number can come when uncertain labels are left out.

    To MIMIC-CXR and CheXpert, every set of the other four sites is added, whether they label the finding or
    not. Their images less the printed number are those left out; less CheXpert's uncertain ones, taken in
    proportion from its public table, there remain those of MIMIC-CXR. A set is possible if that remainder is
    not negative and a small share of MIMIC-CXR's images.

    Parameters
    ----------
    chexpert : PublicTable
        CheXpert's public table.
    most_left_out : float
        Largest share of MIMIC-CXR's images that may be uncertain, 0 to 1.

    Returns
    -------
    pandas.DataFrame
        Per finding and possible set: ``title``, ``evaluable``, ``sites`` added, ``left_out``,
        ``chexpert_uncertain``, ``remainder`` for MIMIC-CXR and ``share`` of its images (0 to 1);
        ``without_label``, sites of the set whose release has no label for the finding; ``not_counted``,
        sites that have one and are not in the set.
    """
    import pandas as pd

    sizes = site_sizes()
    scale = sizes["chexpert"] / chexpert.n_images
    unclear = dict(zip(chexpert.codes["finding"], chexpert.codes["uncertain"], strict=True))
    base = sum(sizes[site] for site in MINED_SITES)
    rows = []
    for row in printed_labels().to_dict("records"):
        labelled = labelling_sites(row["finding"])
        uncertain = round(float(unclear[row["finding"]]) * scale)
        for count in range(len(FURTHER_SITES) + 1):
            for chosen in combinations(FURTHER_SITES, count):
                left_out = base + sum(sizes[site] for site in chosen) - row["evaluable"]
                remainder = left_out - uncertain
                if not 0 <= remainder <= most_left_out * sizes["mimic_cxr"]:
                    continue
                unused = [s for s in FURTHER_SITES if s in labelled and s not in chosen]
                rows.append(
                    {
                        "title": row["title"],
                        "evaluable": row["evaluable"],
                        "sites": _named(chosen) or "no other",
                        "left_out": left_out,
                        "chexpert_uncertain": uncertain,
                        "remainder": remainder,
                        "share": remainder / sizes["mimic_cxr"],
                        "without_label": _named([s for s in chosen if s not in labelled]) or "none",
                        "not_counted": _named(unused) or "none",
                    }
                )
    return pd.DataFrame(rows)


def policy_table(policies: pd.DataFrame) -> pd.DataFrame:
    """Evaluable and positive images under every policy, a row per finding.

    Parameters
    ----------
    policies : pandas.DataFrame
        As :func:`frame.cohorts.labels.counts_under_policies` gives it, without subgroups.

    Returns
    -------
    pandas.DataFrame
        ``title``; ``evaluable_<uncertain>_<blank>`` for uncertain ``kept`` or ``missing`` and blank
        ``missing`` or ``negative``; ``positive`` and ``positive_uncertain`` (uncertain taken as positive).
    """
    import pandas as pd

    titles = printed_labels().set_index("finding")["title"]
    rows = []
    for finding, part in policies.groupby("finding", sort=False):
        by = {(one["uncertain"], one["blank"]): one for one in part.to_dict("records")}
        row: dict[str, Any] = {"title": titles[str(finding)]}
        for uncertain, label in (("negative", "kept"), ("missing", "missing")):
            for blank in ("missing", "negative"):
                row[f"evaluable_{label}_{blank}"] = int(by[uncertain, blank]["n_evaluable"])
        row["positive"] = int(by["missing", "missing"]["n_positive"])
        row["positive_uncertain"] = int(by["positive", "missing"]["n_positive"])
        rows.append(row)
    return pd.DataFrame(rows)


def beside_print(counted: CountedCohorts, uncertain: str, blank: str) -> pd.DataFrame:
    """Evaluable and positive images of a profile beside the printed ones.

    Parameters
    ----------
    counted : CountedCohorts
        Counts of a profile with chest radiographs.
    uncertain, blank : str
        The policy, as :class:`frame.cohorts.labels.LabelPolicy` takes it.

    Returns
    -------
    pandas.DataFrame
        Per finding: ``title``, ``printed_evaluable``, ``printed_positive``, ``evaluable``, ``positive`` and
        ``prevalence`` (percent; missing without an evaluable image) of all images of the profile, and
        ``policies``, how many of the six policies give these very two numbers. Hidden counts are missing, and
        all of them where the profile has no chest radiographs.
    """
    import pandas as pd

    rows = counted.rows
    rows = rows[
        rows["site"].isin(counted.of("chest")) & (rows["split"] == "all") & (rows["attribute"] == "all")
    ]
    asked = f"uncertain {uncertain}, blank {blank}"
    found = []
    for printed in printed_labels().to_dict("records"):
        of = rows[rows["finding"] == printed["finding"]]
        pairs = {
            method: tuple(
                _whole(part.loc[part["quantity"] == quantity, "value"])
                for quantity in ("evaluable", "positive")
            )
            for method, part in of.groupby("method", sort=False)
        }
        evaluable, positive = pairs.get(asked, (None, None))
        found.append(
            {
                "title": printed["title"],
                "printed_evaluable": printed["evaluable"],
                "printed_positive": printed["positive"],
                "evaluable": evaluable,
                "positive": positive,
                "prevalence": 100 * positive / evaluable if evaluable and positive is not None else None,
                "policies": None
                if evaluable is None or positive is None
                else sum(pair == pairs[asked] for pair in pairs.values()),
            }
        )
    return pd.DataFrame(found).astype(
        {"evaluable": "Int64", "positive": "Int64", "prevalence": "float64", "policies": "Int64"}
    )


def _whole(values: pd.Series) -> int | None:
    return None if values.isna().any() else int(values.sum())


def _named(sites: Sequence[str]) -> str:
    return ", ".join(PRINTED_NAMES[site] for site in sites)

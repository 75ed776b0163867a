"""Supplementary Table 3: how much of the category Other is a site that records nothing.

The paper pools race and insurance over six sites of which two record them. Whoever is at one of the other
four is Other. The registry of sources says which sites record what; the printed Table 1 says how many images
they have; together they give the printed counts of the category.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from frame.figures.cohort_tables import CountedCohorts
from frame.figures.printed_cohorts import PRINTED_NAMES
from frame.tables import load_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["OTHER_SPLITS", "levels_beside_print", "other_by_split", "recorded_shares", "recording_sites"]

#: Columns of Table 1 with images, and how each is named.
OTHER_SPLITS: Final = {"images": "all", "train": "train", "validation": "validation", "test": "test"}
_RECORDED: Final = ("yes", "linked")


def recording_sites() -> pd.DataFrame:
    """The six sites of chest radiographs: what each records, and its printed images.

    Returns
    -------
    pandas.DataFrame
        ``source``, ``row`` (of Table 1), ``race``, ``insurance`` (``yes``, ``linked`` in a second release,
        ``no``), then the printed ``images``, ``train``, ``validation``, ``test``.
    """
    import pandas as pd

    from frame.cohorts.sources import sources

    printed = {row["row"]: row for row in load_table("paper_table1").to_dict("records")}
    rows = []
    for name, about in sources().items():
        if about.modality != "chest":
            continue
        row = PRINTED_NAMES[name]
        counts = {column: int(printed[row][column]) for column in OTHER_SPLITS}
        records = {field: about.records[field] for field in ("race", "insurance")}
        rows.append({"source": name, "row": row, **records, **counts})
    return pd.DataFrame(rows)


def other_by_split() -> pd.DataFrame:
    """The printed category Other of race, taken apart by where it comes from.

    Returns
    -------
    pandas.DataFrame
        Per split, and all of them (``split``): ``images`` of the pool, ``other`` as printed,
        ``not_recorded`` (images of the sites without the field), ``recorded`` (the rest of Other), and the
        shares of ``not_recorded`` in Other (``share_other``) and in the pool (``share_pool``), 0 to 1.
    """
    import pandas as pd

    sites = recording_sites()
    table = load_table("paper_table1")
    chest = table[table["section"].str.startswith("Chest")].to_dict("records")
    printed = {row["row"]: row for row in chest}
    rows = []
    for column, split in OTHER_SPLITS.items():
        images = int(printed["All chest radiographs"][column])
        other = int(printed["Race, Other"][column])
        absent = int(sites.loc[~sites["race"].isin(_RECORDED), column].sum())
        rows.append(
            {
                "split": split,
                "images": images,
                "other": other,
                "not_recorded": absent,
                "recorded": other - absent,
                "share_other": absent / other,
                "share_pool": absent / images,
            }
        )
    return pd.DataFrame(rows)


def recorded_shares() -> pd.DataFrame:
    """Each printed level's share of all test images, and of those at sites that record the attribute.

    Returns
    -------
    pandas.DataFrame
        ``attribute``, ``category``, the printed ``recorded``, ``not_recorded`` and ``total``;
        ``share_not_recorded`` of the level, ``share_pooled`` in the pool, ``share_recorded`` among the images
        of sites that record the attribute; all 0 to 1.
    """
    table = load_table("paper_supplementary_table3")
    counts = table.astype(dict.fromkeys(("recorded", "not_recorded", "total"), "int64"))
    by = counts.groupby("attribute", sort=False)
    return counts.assign(
        share_not_recorded=counts["not_recorded"] / counts["total"],
        share_pooled=counts["total"] / by["total"].transform("sum"),
        share_recorded=counts["recorded"] / by["recorded"].transform("sum"),
    )


def levels_beside_print(counted: CountedCohorts, split: str) -> pd.DataFrame:
    """The levels of race and insurance in a profile, pooled and as recorded.

    Parameters
    ----------
    counted : CountedCohorts
        Counts of a profile with chest radiographs.
    split : {"train", "validation", "test", "all"}
        Which images.

    Returns
    -------
    pandas.DataFrame
        ``attribute``, ``category``; ``printed_total`` and ``printed_recorded`` (of the test images; missing
        for the last level); ``pooled`` and ``recorded`` of the profile. The last level of each attribute is
        ``not recorded``: in the pooled attribute nobody has it. Hidden counts are missing.
    """
    import pandas as pd

    printed = load_table("paper_supplementary_table3").set_index(["attribute", "category"])
    sites = counted.of("chest")
    rows: list[dict[str, Any]] = []
    for attribute in ("Race", "Insurance"):
        named = [category for name, category in printed.index if name == attribute]
        for category in [*named, "not recorded"]:
            there = category in named
            cell = printed.loc[(attribute, category)] if there else None
            field = attribute.lower()
            rows.append(
                {
                    "attribute": attribute,
                    "category": category,
                    "printed_total": None if cell is None else int(cell["total"]),
                    "printed_recorded": None if cell is None else int(cell["recorded"]),
                    "pooled": counted.count(sites, "images", split, field, category),
                    "recorded": counted.count(sites, "images", split, f"{field}_recorded", category),
                }
            )
    counts = ("printed_total", "printed_recorded", "pooled", "recorded")
    return pd.DataFrame(rows).astype(dict.fromkeys(counts, "Int64"))

"""Table 1: what a profile has, and which of its counts must agree with the printed ones.

A count of ours stands beside a printed one in any case. It is *compared* only where it is a count of the same
images under the same rule: all images of NIH ChestX-ray14, for instance, but not its images for validation,
which are another random tenth. Everywhere else the row says what is different.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from frame.fidelity import agreement
from frame.figures.printed_cohorts import COLUMNS, LEVELS, PRINTED_NAMES, SECTIONS, SPLITS, printed_cell
from frame.tables import load_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "CountedCohorts",
    "cells_beside_print",
    "compare_sources",
    "compare_subgroups",
    "composition",
    "counted_cohorts",
    "sources_by_split",
]

#: Modality -> section of its subgroups.
_SUBGROUP_SECTIONS: Final = {**SECTIONS, "chest": "Chest radiograph subgroups"}
#: More sources than this are counted in a caption, not named.
_MOST_NAMED: Final = 3
_SAME: Final = ""
_DRAWN: Final = "drawn images, no patients"
_HASHED: Final = "patients are split by a hash here"
_ANOTHER_TENTH: Final = "another random tenth of the same patients"
_NOT_REBUILT: Final = "the public columns give another number"
_TENTH_LEFT_OUT: Final = "in print a tenth of the training images is left out"
_OTHER_ORDER: Final = "the order in which lesions were drawn is not published"


@dataclass(frozen=True)
class CountedCohorts:
    """The counts of a profile, fit to be shown.

    Attributes
    ----------
    profile : str
        Name of the profile.
    sources : tuple of str
        Its sources in order.
    titles : tuple of str
        Their names in text.
    rules : dict of str to str
        How each is split: ``released``, ``hashed`` or ``fractions``.
    modalities : dict of str to str
        Modality of each.
    smallest_cell : int
        Counts below this are hidden (missing), and those from which they could be computed.
    rows : pandas.DataFrame
        Tidy rows of the experiment ``cohort_counts``: images and subjects of every attribute; evaluable and
        positive images of all subgroups together.
    drawn : bool
        Whether the images are drawings by a program; no count of theirs is compared with a printed one.
    planned : dict of str to int
        Images of each source that the profile asks to draw; empty where nothing is drawn.
    """

    profile: str
    sources: tuple[str, ...]
    titles: tuple[str, ...]
    rules: dict[str, str]
    modalities: dict[str, str]
    smallest_cell: int
    rows: pd.DataFrame = field(repr=False)
    drawn: bool = False
    planned: dict[str, int] = field(default_factory=dict)

    @property
    def note(self) -> str:
        """What every file of these counts must say of them; blank where the images are released ones."""
        from frame.cohorts.phantom.truth import NOTE

        return NOTE if self.drawn else ""

    @property
    def cohort(self) -> str:
        """The sources in words, for a caption."""
        if self.drawn:
            return f"phantom: drawn images, no patients; profile {self.profile}"
        if len(self.titles) <= _MOST_NAMED:
            return ", ".join(self.titles)
        return f"the {len(self.titles)} sources of profile {self.profile}"

    def of(self, modality: str) -> tuple[str, ...]:
        """Sources of one modality."""
        return tuple(source for source in self.sources if self.modalities[source] == modality)

    def count(
        self, sources: Sequence[str], quantity: str, split: str, attribute: str, level: str
    ) -> int | None:
        """Images or subjects of some sources together; None where a part of it is hidden or not there."""
        if not sources:
            return None
        rows = self.rows
        wanted = (
            rows["site"].isin(sources)
            & (rows["quantity"] == quantity)
            & (rows["split"] == split)
            & (rows["attribute"] == attribute)
            & (rows["subgroup"] == level)
        )
        values = rows.loc[wanted, "value"]
        return None if len(values) != len(sources) or values.isna().any() else int(values.sum())


def counted_cohorts(profile: str) -> CountedCohorts:
    """Read the counts of a profile from its workspace.

    Parameters
    ----------
    profile : str
        ``demo``, ``tables``, ``open``, ``paper``, or the path of a profile.

    Returns
    -------
    CountedCohorts
        With counts below the profile's smallest cell hidden.

    Raises
    ------
    frame.InputError
        If there is no such profile, or its counts were not made yet; the sentence says which command makes
        them.
    """
    from frame.cohorts.manifest import split_rule
    from frame.cohorts.sources import sources
    from frame.experiments.results import with_small_cells_hidden, workspace_result
    from frame.workspace.profiles import load_profile

    loaded = load_profile(profile)
    rows = workspace_result("cohort_counts", profile)
    # All rows take part: what is hidden here must be hidden in every table of these counts.
    smallest = loaded.sizes.smallest_cell
    hidden = with_small_cells_hidden(rows, smallest)
    shown = hidden["quantity"].isin(["images", "subjects"]) | (hidden["attribute"] == "all")
    hidden = hidden[shown].reset_index(drop=True)
    names = tuple(loaded.sources)
    return CountedCohorts(
        profile=loaded.name,
        sources=names,
        titles=tuple(sources()[name].title for name in names),
        rules={name: split_rule(name, loaded.sources[name].split) for name in names},
        modalities={name: sources()[name].modality for name in names},
        smallest_cell=smallest,
        rows=hidden,
        drawn=loaded.phantom is not None,
        planned={name: loaded.phantom.sizes(name).total for name in names} if loaded.phantom else {},
    )


# -- a profile beside the print -----------------------------------------------------------------------


def composition(counted: CountedCohorts, modality: str, attributes: Sequence[str]) -> pd.DataFrame:
    """Images by split and subjects of each level, of the sources of one modality together.

    Parameters
    ----------
    counted : CountedCohorts
        Counts of a profile.
    modality : {"chest", "skin", "fundus"}
        A modality that the profile has.
    attributes : sequence of str
        Attributes of ``cohort_counts``; those that the modality does not have are left out.

    Returns
    -------
    pandas.DataFrame
        ``attribute``, ``level``, then images by split (``train``, ``validation``, ``test``), ``images`` and
        ``subjects``; first the row ``all``. Hidden counts are missing.
    """
    import pandas as pd

    sources = counted.of(modality)
    there = counted.rows[counted.rows["site"].isin(sources)]
    rows = []
    for attribute in ("all", *attributes):
        levels = there.loc[there["attribute"] == attribute, "subgroup"]
        for level in dict.fromkeys(levels):
            row: dict[str, Any] = {"attribute": attribute, "level": level}
            for split in SPLITS:
                row[split] = counted.count(sources, "images", split, attribute, level)
            row["images"] = counted.count(sources, "images", "all", attribute, level)
            row["subjects"] = counted.count(sources, "subjects", "all", attribute, level)
            rows.append(row)
    counts = [*SPLITS, "images", "subjects"]
    return pd.DataFrame(rows).astype(dict.fromkeys(counts, "Int64"))


def sources_by_split(counted: CountedCohorts) -> pd.DataFrame:
    """The sources of a profile with their images by split.

    Returns
    -------
    pandas.DataFrame
        ``row`` (name as in Table 1), ``modality``, ``rule`` of the split, ``train``, ``validation``,
        ``test``, ``images``, ``subjects``; ``planned`` (images) where the sources are drawn.
        Hidden counts are missing.
    """
    import pandas as pd

    rows = []
    for source in counted.sources:
        row: dict[str, Any] = {
            "row": PRINTED_NAMES[source],
            "modality": counted.modalities[source],
            "rule": counted.rules[source],
        }
        for split in SPLITS:
            row[split] = counted.count((source,), "images", split, "all", "all")
        row["images"] = counted.count((source,), "images", "all", "all", "all")
        row["subjects"] = counted.count((source,), "subjects", "all", "all", "all")
        if counted.drawn:
            row["planned"] = counted.planned[source]
        rows.append(row)
    table = pd.DataFrame(rows)
    return table.astype(dict.fromkeys(table.columns[3:], "Int64"))


def compare_sources(counted: CountedCohorts) -> pd.DataFrame:
    """The rows of Table 1 on sources, cell by cell, beside the profile.

    Returns
    -------
    pandas.DataFrame
        A row per source of the profile and column of the table: ``row``, ``quantity``, ``printed``,
        ``ours``, ``verdict`` (as in :data:`frame.fidelity.VERDICTS`), ``reason``. Of drawn images ``printed``
        is missing.
    """
    import pandas as pd

    rows = []
    for source in counted.sources:
        name = PRINTED_NAMES[source]
        for column in COLUMNS:
            section = SECTIONS[counted.modalities[source]]
            ours = counted.count((source,), *_asked(column), "all", "all")
            why = _why_not(source, counted, column)
            rows.append(
                {"row": name, "quantity": column, **_compared(printed_cell(section, name, column), ours, why)}
            )
    return _without_print(pd.DataFrame(rows), counted)


def compare_subgroups(counted: CountedCohorts) -> pd.DataFrame:
    """The rows of Table 1 on subgroups beside the profile, of each modality that it has.

    Returns
    -------
    pandas.DataFrame
        As :func:`compare_sources`; counts are compared only where the profile has every source of the
        modality and each of them must agree.
    """
    import pandas as pd

    rows = []
    table = load_table("paper_table1")
    for modality, section in _SUBGROUP_SECTIONS.items():
        sources = counted.of(modality)
        if not sources:
            continue
        every = [name for name in PRINTED_NAMES if _modality(name) == modality]
        for name in table.loc[(table["section"] == section) & table["row"].isin(LEVELS), "row"]:
            attribute, level = LEVELS[name]
            needed = [s for s in every if s != "isic_2019"] if attribute == "skin_type" else every
            for column in COLUMNS:
                ours = counted.count(sources, *_asked(column), attribute, level)
                why = "; ".join(dict.fromkeys(filter(None, (_why_not(s, counted, column) for s in sources))))
                absent = [s for s in needed if s not in sources]
                if absent:
                    why = f"{len(needed) - len(absent)} of {len(needed)} sources"
                row = f"{name} (fundus)" if modality == "fundus" else name
                cell = {"row": row, "quantity": column}
                rows.append({**cell, **_compared(printed_cell(section, name, column), ours, why)})
    return _without_print(pd.DataFrame(rows), counted)


def _without_print(compared: pd.DataFrame, counted: CountedCohorts) -> pd.DataFrame:
    """No printed count stands beside one of drawn images, neither on a page nor in a file."""
    if counted.drawn:
        compared = compared.assign(printed=None)
    return compared.astype({"printed": "Int64", "ours": "Int64"})


def cells_beside_print(compared: pd.DataFrame, columns: Sequence[str] = COLUMNS) -> pd.DataFrame:
    """A comparison with a row per row of the printed table.

    Parameters
    ----------
    compared : pandas.DataFrame
        The result of :func:`compare_sources` or :func:`compare_subgroups`.
    columns : sequence of str
        Columns of the printed table to show.

    Returns
    -------
    pandas.DataFrame
        ``row``; for each column ``<column>_printed`` and ``<column>_ours``; ``agrees`` names the columns that
        agree, ``differs`` those that should and do not, ``elsewhere`` says what is not compared and why.
    """
    import pandas as pd

    rows = []
    for name, cells in compared.groupby("row", sort=False):
        cells = cells[cells["quantity"].isin(columns)].set_index("quantity")
        row: dict[str, Any] = {"row": name}
        for column in columns:
            row[f"{column}_printed"] = cells.loc[column, "printed"]
            row[f"{column}_ours"] = cells.loc[column, "ours"]
        for label, verdict in (("agrees", "equal"), ("differs", "differs")):
            row[label] = ", ".join(_word(c) for c in columns if cells.loc[c, "verdict"] == verdict) or "none"
        reasons: dict[str, list[str]] = {}
        for column in columns:
            if cells.loc[column, "verdict"] in ("other cohort", "not computed"):
                reasons.setdefault(str(cells.loc[column, "reason"]), []).append(_word(column))
        row["elsewhere"] = "; ".join(f"{', '.join(c)}: {why}" for why, c in reasons.items()) or "none"
        rows.append(row)
    return pd.DataFrame(rows)


def _word(column: str) -> str:
    return column.replace("_", " ")


def _asked(column: str) -> tuple[str, str]:
    """Quantity and split of ``cohort_counts`` that a column of the table counts."""
    if column == "test_patients":
        return "subjects", "test"
    return "images", "all" if column == "images" else column


def _why_not(source: str, counted: CountedCohorts, column: str) -> str:
    """Why a count of ours need not agree with the printed one; blank where it must."""
    rule = counted.rules[source]
    if counted.drawn:
        return _DRAWN
    if column == "images":
        if source in ("chexpert", "padchest"):
            return _NOT_REBUILT
        return _TENTH_LEFT_OUT if source == "vindr_pcxr" else _SAME
    if rule == "hashed":
        return _HASHED
    if source in ("mimic_cxr", "chexpert"):
        return "the released split cannot give the printed counts"
    in_training = column in ("train", "validation")
    if source == "nih_cxr14" and in_training:
        return _ANOTHER_TENTH
    if source == "vindr_pcxr" and column == "train":
        return _TENTH_LEFT_OUT
    return _OTHER_ORDER if source == "isic_2019" and column != "test_patients" else _SAME


def _compared(printed: int, ours: int | None, why: str) -> dict[str, Any]:
    row: dict[str, Any] = {"printed": printed, "ours": ours}
    if ours is None:
        return row | {"verdict": "not computed", "reason": "hidden, since it or another count is small"}
    if why:
        return row | {"verdict": "other cohort", "reason": why}
    return row | {"verdict": "equal" if agreement(str(printed), ours).equal else "differs", "reason": ""}


def _modality(source: str) -> str:
    from frame.cohorts.sources import sources

    return sources()[source].modality

"""Tables of the collinearity model: its numbers by collinearity, beside the print, and what they rest on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from frame.errors import InputError
from frame.experiments.synthetic_model import ALL_SEEDS, CLIPPED, GEOMETRY, RECIPE, SETS, chosen_methods
from frame.fidelity import compare_numbers, format_like
from frame.mitigation.achievable import CHOICES, TOLERANCE, UNMITIGATED
from frame.mitigation.registry import METHODS, NINE
from frame.synthetic import COLLINEARITIES, SAMPLES
from frame.tables import load_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "COHORT",
    "SET_NAMES",
    "beside_the_print",
    "choices_by_level",
    "draw_table",
    "level_table",
    "method_table",
    "our_numbers",
    "printed_shares",
    "seed_table",
    "share_table",
    "trend_table",
]

#: What these numbers come from, as :data:`frame.fidelity.PAPER_COHORTS` calls it.
COHORT: Final = "synthetic model"
#: The sets of methods in words.
SET_NAMES: Final = {
    "printed": "three methods, one clipped (as printed)",
    "unclipped": "the same three, not clipped",
    "nine": "all nine methods",
    RECIPE: "three methods, one clipped, fits stopped early",
}
#: Method and split of the rows that a comparison with the print rests on: the paper's fits, and ours.
_FITS: Final = {
    "recipe": (f"{RECIPE}_{UNMITIGATED}", RECIPE, RECIPE),
    "optimum": (UNMITIGATED, "printed", ""),
}
#: Quantities whose trend is tested, in words.
_TRENDS: Final = {
    "difference": "observed difference",
    "difference_population": "difference of the head over the whole model",
    "achievable": "achievable difference",
    "linear_decodability": "linear decodability",
    "nonlinear_decodability": "nonlinear decodability",
    "overlap": "geometric overlap",
    "erasure_cost": "erasure cost",
}
_TREND_COLUMNS: Final = {"rho": "value", "p": "p", "p_fdr": "p_fdr"}
_EARLY: Final = "the printed value rests on fits that stop before their optimum"
_WHY: Final = dict.fromkeys(
    ("syn_achievable_p", "syn_overlap_p"), "which tests the paper corrects together is not printed"
)
_SHARE_IDS: Final = dict(
    zip(
        COLLINEARITIES,
        (
            "syn_share_0",
            "syn_share_0_10",
            "syn_share_0_25",
            "syn_share_0_50",
            "syn_share_0_75",
            "syn_share_1_00",
        ),
        strict=True,
    )
)


def level_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Means over the seeds, a row per collinearity.

    Parameters
    ----------
    rows : pandas.DataFrame
        Collected rows of the experiment ``synthetic_model``.

    Returns
    -------
    pandas.DataFrame
        ``collinearity, difference, difference_sd, auroc, population, reference, difference_recipe``, the four
        measures of geometry, then ``achievable_<set>_<split>`` and ``share_<set>_<split>`` (percent) for each
        set of methods, ``recipe`` among them, and each split on which the method is chosen. NaN where not
        estimable.

    Raises
    ------
    frame.InputError
        If the rows are not those of the whole experiment.
    """
    import pandas as pd

    named = _over_seeds(rows)
    early = f"{RECIPE}_{UNMITIGATED}"
    columns = {
        "difference": ("difference", UNMITIGATED, "test"),
        "auroc": ("auroc", UNMITIGATED, "test"),
        "population": ("difference_population", UNMITIGATED, "test"),
        "reference": ("reference", UNMITIGATED, "test"),
        "difference_recipe": ("difference", early, "test"),
        **{name: (name, "", "test") for name in GEOMETRY},
        **{
            f"{quantity}_{methods}_{split}": (quantity, methods, split)
            for quantity in ("achievable", "share")
            for methods in (*SETS, RECIPE)
            for split in CHOICES
        },
    }
    found = []
    for level in COLLINEARITIES:
        row = {"collinearity": level, "difference_sd": _cell(named, columns["difference"], level, "sd")}
        row |= {name: _cell(named, key, level, "value") for name, key in columns.items()}
        found.append(row)
    return pd.DataFrame(found).astype("float64")


def seed_table(rows: pd.DataFrame) -> pd.DataFrame:
    """The unmitigated difference of every draw, a row per collinearity and seed.

    Parameters
    ----------
    rows : pandas.DataFrame
        As for :func:`level_table`.

    Returns
    -------
    pandas.DataFrame
        ``collinearity, seed, difference, reference, reference_lo, reference_hi, population, outside``:
        the reference of an exactly fair model at the test counts of the draw, with the interval that holds
        95 % of such models, and whether the difference lies above it.
    """
    import pandas as pd

    own = rows[(rows["method"] == UNMITIGATED) & (rows["split"] == "test") & (rows["subgroup"] == "")]
    own = own[own["site"] != ALL_SEEDS]
    keys = ["strength", "site"]
    by_quantity = {name: part.set_index(keys) for name, part in own.groupby("quantity")}
    difference = by_quantity["difference"]["value"]
    reference = by_quantity["reference"].loc[difference.index]
    population = by_quantity["difference_population"]["value"].loc[difference.index]
    return pd.DataFrame(
        {
            "collinearity": difference.index.get_level_values("strength"),
            "seed": [int(site.split()[-1]) for site in difference.index.get_level_values("site")],
            "difference": difference.to_numpy(),
            "reference": reference["value"].to_numpy(),
            "reference_lo": reference["lo"].to_numpy(),
            "reference_hi": reference["hi"].to_numpy(),
            "population": population.to_numpy(),
            "outside": difference.to_numpy() > reference["hi"].to_numpy(),
        }
    )


def trend_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Rank correlations with the collinearity, a row per quantity.

    Parameters
    ----------
    rows : pandas.DataFrame
        As for :func:`level_table`.

    Returns
    -------
    pandas.DataFrame
        ``quantity, methods, chosen_on, rho, p, p_fdr, blocked_rho, blocked_p, blocked_p_fdr, family,
        tests``: over all units as in the paper, and within seeds, averaged over them (ours). ``methods`` and
        ``chosen_on`` are blank where no method is chosen; ``tests`` is the size of the family.
    """
    import pandas as pd

    named = {key[:3]: row for key, row in _over_seeds(rows).items() if key[0].startswith("spearman_")}
    named = {key: row for key, row in named.items() if RECIPE not in key[1]}
    found: list[dict[str, Any]] = []
    for (quantity, method, split), row in named.items():
        words = _TRENDS.get(quantity.removeprefix("spearman_"))
        if words is None:
            continue
        blocked = named[(quantity.replace("spearman_", "spearman_blocked_"), method, split)]
        chosen = method in SETS
        found.append(
            {
                "quantity": words,
                "methods": SET_NAMES[method] if chosen else "",
                "chosen_on": split if chosen else "",
                **{name: row[column] for name, column in _TREND_COLUMNS.items()},
                **{f"blocked_{name}": blocked[column] for name, column in _TREND_COLUMNS.items()},
                "family": row["family"],
                "tests": len(named),
            }
        )
    places = {words: place for place, words in enumerate(_TRENDS.values())}
    found.sort(key=lambda row: places[row["quantity"]])
    return pd.DataFrame(found)


def our_numbers(rows: pd.DataFrame, fits: str) -> dict[str, float | int]:
    """Our value of every printed number of the model, by its ``id`` in ``paper_numbers``.

    Parameters
    ----------
    rows : pandas.DataFrame
        As for :func:`level_table`.
    fits : {"recipe", "optimum"}
        Logistic regressions that stop as the paper's do, or run to their optimum.
    """
    head, methods, probe = _FITS[fits]
    named = _over_seeds(rows)
    first, last = min(COLLINEARITIES), max(COLLINEARITIES)
    achievable = ("spearman_achievable", methods, "test")
    decodability = ("spearman_linear_decodability", probe, "test")
    return {
        "syn_diff_from": _cell(named, ("difference", head, "test"), first, "value"),
        "syn_diff_to": _cell(named, ("difference", head, "test"), last, "value"),
        "syn_achievable_rho": _cell(named, achievable, None, "value"),
        "syn_achievable_p": _cell(named, achievable, None, "p_fdr"),
        "syn_rho_linear_decodability": _cell(named, decodability, None, "value"),
        "syn_overlap_p": _cell(named, decodability, None, "p_fdr"),
        "syn_units": len(rows[rows["site"] != ALL_SEEDS].drop_duplicates(["strength", "site"])),
        "syn_samples": SAMPLES,
        **{
            name: _cell(named, ("share", methods, "test"), level, "value")
            for level, name in _SHARE_IDS.items()
        },
    }


def beside_the_print(rows: pd.DataFrame) -> pd.DataFrame:
    """Every printed number of the model beside ours, from the paper's fits and from fits at their optimum.

    Parameters
    ----------
    rows : pandas.DataFrame
        As for :func:`level_table`.

    Returns
    -------
    pandas.DataFrame
        A row per number: ``place, id, quantity, printed``, then for each kind of fit our value written as the
        paper writes its own (``recipe``, ``optimum``) and the verdict (``recipe_verdict``,
        ``optimum_verdict``), and ``reason``: why one of them differs.
    """
    import pandas as pd

    parts = []
    for place in ("Results", "Figure 5"):
        table = None
        for fits in _FITS:
            ours = our_numbers(rows, fits)
            compared = compare_numbers(place, ours, cohort=COHORT)
            compared = compared[compared["id"].isin(ours)].reset_index(drop=True)
            if table is None:
                table = compared[["id", "quantity", "printed"]].assign(place=place)
            table[fits] = [
                format_like(str(printed), value)
                for printed, value in zip(compared["printed"], compared["ours"], strict=True)
            ]
            table[f"{fits}_verdict"] = compared["verdict"]
        parts.append(table)
    found = pd.concat(parts, ignore_index=True)
    # As the file has them, two quantities only make sense below another row, and one explains a panel.
    found["quantity"] = found["quantity"].str.replace(r" \(n = .*\)$", "", regex=True)
    found.loc[found["id"].isin(list(_WHY)), "quantity"] = "corrected p of the correlation above"
    differs = (found["recipe_verdict"] != "equal") | (found["optimum_verdict"] != "equal")
    why = found["id"].map(_WHY).fillna(_EARLY)
    found["reason"] = why.where(differs, "")
    return found[["place", *[name for name in found.columns if name != "place"]]]


def printed_shares() -> Mapping[float, float]:
    """The printed share of each collinearity, in percent."""
    values = load_table("paper_numbers").set_index("id")["value"]
    return {collinearity: float(values[name]) for collinearity, name in _SHARE_IDS.items()}


def share_table(rows: pd.DataFrame) -> pd.DataFrame:
    """The achievable difference in percent of the unmitigated one, a row per set of methods and choice.

    Parameters
    ----------
    rows : pandas.DataFrame
        As for :func:`level_table`.

    Returns
    -------
    pandas.DataFrame
        ``methods, chosen_on``, then a column per collinearity. Fits stopped early have rows of their own.
    """
    import pandas as pd

    named = _over_seeds(rows)
    return pd.DataFrame(
        [
            {"methods": words, "chosen_on": split}
            | {
                f"{level:g}": _cell(named, ("share", methods, split), level, "value")
                for level in COLLINEARITIES
            }
            for split in CHOICES
            for methods, words in SET_NAMES.items()
        ]
    )


def draw_table(rows: pd.DataFrame) -> pd.DataFrame:
    """What was measured on the test samples of every draw, fits at their optimum, in a form to be passed on.

    Parameters
    ----------
    rows : pandas.DataFrame
        As for :func:`level_table`.

    Returns
    -------
    pandas.DataFrame
        ``collinearity, seed, method, subgroup, quantity, value, lo, hi, status, reason``, a row per number;
        ``lo`` and ``hi`` are the interval of an exactly fair model.
    """
    kept = rows[(rows["site"] != ALL_SEEDS) & (rows["split"] == "test")]
    kept = kept[~kept["method"].str.startswith(RECIPE)]
    kept = kept.assign(collinearity=kept["strength"], seed=kept["site"].str.removeprefix("seed "))
    columns = [
        "collinearity",
        "seed",
        "method",
        "subgroup",
        "quantity",
        "value",
        "lo",
        "hi",
        "status",
        "reason",
    ]
    return kept[columns].reset_index(drop=True)


def choices_by_level(rows: pd.DataFrame) -> pd.DataFrame:
    """In how many seeds each method has the achievable difference.

    Parameters
    ----------
    rows : pandas.DataFrame
        As for :func:`level_table`.

    Returns
    -------
    pandas.DataFrame
        ``methods, chosen_on, chosen``, then a column per collinearity with the number of seeds, and ``all``.
        Methods that are never chosen have no row.
    """
    import pandas as pd

    chosen = chosen_methods(rows)
    chosen = chosen[chosen["methods"] != RECIPE]
    found = []
    for (methods, chosen_on), own in chosen.groupby(["methods", "chosen_on"], sort=False):
        for method, part in own.groupby("chosen", sort=False):
            counts = part["collinearity"].value_counts()
            row: dict[str, object] = {
                "methods": SET_NAMES[str(methods)],
                "chosen_on": chosen_on,
                "chosen": _method_name(str(method)),
            }
            row |= {f"{level:g}": int(counts.get(level, 0)) for level in COLLINEARITIES}
            found.append(row | {"all": len(part)})
    table = pd.DataFrame(found)
    order = table["methods"].map({words: place for place, words in enumerate(SET_NAMES.values())})
    table = table.assign(order=order).sort_values(
        ["order", "chosen_on", "all"], ascending=[True, True, False], kind="stable", ignore_index=True
    )
    return table.drop(columns="order")


def method_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Change of the difference and of the disease AUROC on test under every method, over the seeds.

    Parameters
    ----------
    rows : pandas.DataFrame
        As for :func:`level_table`.

    Returns
    -------
    pandas.DataFrame
        A row per method and collinearity: ``method, collinearity, difference, change, auroc, auroc_change,
        seeds_allowed`` (in how many of the ``seeds`` the disease AUROC fell by at most 0.010). NaN where a
        method could not be fitted in every seed.
    """
    import numpy as np
    import pandas as pd

    single = rows[rows["site"] != ALL_SEEDS]
    values = {
        (str(row["quantity"]), str(row["method"]), float(row["strength"]), str(row["site"])): float(
            row["value"]
        )
        for row in single.to_dict("records")
        if row["split"] == "test" and row["subgroup"] == ""
    }
    sites = list(dict.fromkeys(single["site"]))
    found = []
    for method in (UNMITIGATED, *NINE, CLIPPED):
        for level in COLLINEARITIES:
            own, before = (
                {
                    quantity: np.array([values[(quantity, name, level, site)] for site in sites])
                    for quantity in ("difference", "auroc")
                }
                for name in (method, UNMITIGATED)
            )
            found.append(
                {
                    "method": _method_name(method),
                    "collinearity": level,
                    "difference": own["difference"].mean(),
                    "change": (own["difference"] - before["difference"]).mean(),
                    "auroc": own["auroc"].mean(),
                    "auroc_change": (own["auroc"] - before["auroc"]).mean(),
                    "seeds_allowed": int((own["auroc"] >= before["auroc"] - TOLERANCE - 1e-12).sum()),
                    "seeds": len(sites),
                }
            )
    return pd.DataFrame(found)


def _over_seeds(rows: pd.DataFrame) -> dict[tuple[str, str, str, float | None], dict[str, Any]]:
    """Rows about all seeds by quantity, method, split and collinearity (None: over all of them)."""
    found = {}
    for row in rows[(rows["site"] == ALL_SEEDS) & (rows["subgroup"] == "")].to_dict("records"):
        level = None if math.isnan(row["strength"]) else float(row["strength"])
        key = (str(row["quantity"]), str(row["method"]), str(row["split"]), level)
        found[key] = {str(name): value for name, value in row.items()}
    return found


def _cell(
    named: Mapping[tuple[str, str, str, float | None], Mapping[str, Any]],
    key: tuple[str, str, str],
    level: float | None,
    column: str,
) -> float:
    """One number, or an error that says what the rows must be."""
    try:
        return float(named[(*key, level)][column])
    except KeyError:
        raise InputError(
            f"The rows have no {key[0]!r}; give the collected result of the experiment synthetic_model."
        ) from None


def _method_name(method: str) -> str:
    """A method in words."""
    if method in METHODS:
        return METHODS[method].label
    return {UNMITIGATED: "none", CLIPPED: "Threshold shift, clipped"}[method]

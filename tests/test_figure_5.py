"""Figure 5, panels a to c: the tables behind them, and what is drawn."""

import numpy as np
import pandas as pd
import pytest
from drawn_text import misplaced_texts
from synthetic_rows import EFFECTS, all_unit_rows, unmitigated

from frame.errors import InputError
from frame.experiments import synthetic_model
from frame.experiments.synthetic_model import ALL_SEEDS, CLIPPED, SETS
from frame.figures.collinearity import (
    SET_NAMES,
    beside_the_print,
    choices_by_level,
    draw_table,
    level_table,
    method_table,
    our_numbers,
    printed_shares,
    seed_table,
    share_table,
    trend_table,
)
from frame.figures.figure_5 import panel_a, panel_b, panel_c, three_sets
from frame.mitigation.registry import NINE
from frame.synthetic import COLLINEARITIES, SEEDS
from frame.tables import load_table


@pytest.fixture(scope="module")
def rows():
    """The collected rows of made-up units."""
    with pytest.MonkeyPatch.context() as patch:
        units = pd.concat(all_unit_rows().values(), ignore_index=True)
        patch.setattr(synthetic_model, "all_units", lambda *_: units)
        return synthetic_model.collect(None)


def test_levels(rows):
    levels = level_table(rows)
    assert levels["collinearity"].tolist() == list(COLLINEARITIES)
    whole = [np.mean([unmitigated(level, seed) for seed in SEEDS]) for level in COLLINEARITIES]
    np.testing.assert_allclose(levels["difference"], whole)
    np.testing.assert_allclose(levels["achievable_printed_test"], 0.4 * np.array(whole))
    np.testing.assert_allclose(levels["share_nine_validation"], 25.0)
    np.testing.assert_allclose(levels["population"], 0.14 * np.square(COLLINEARITIES))
    np.testing.assert_allclose(levels["overlap"], 0.58 - 0.05 * np.array(COLLINEARITIES))
    assert not levels.isna().any().any()


def test_levels_of_other_rows_are_refused(rows):
    with pytest.raises(InputError, match="The rows have no 'difference'; give the collected result of"):
        level_table(rows[rows["site"] != ALL_SEEDS])


def test_seeds(rows):
    seeds = seed_table(rows)
    assert len(seeds) == len(COLLINEARITIES) * len(SEEDS)
    np.testing.assert_allclose(
        seeds["difference"],
        [unmitigated(level, seed) for level, seed in zip(seeds["collinearity"], seeds["seed"], strict=True)],
    )
    assert (seeds["outside"] == (seeds["difference"] > 0.03)).all()
    assert 0 < seeds["outside"].sum() < len(seeds)


def test_trends(rows):
    trends = trend_table(rows)
    assert len(trends) == 6 + 2 * len(SETS)
    chosen = trends[trends["quantity"] == "achievable difference"]
    assert set(chosen["methods"]) == {SET_NAMES[name] for name in SETS}
    assert set(trends["family"]) == {"synthetic"}
    assert set(trends["tests"]) == {2 * len(trends)}
    by_name = trends.set_index("quantity")
    assert by_name.loc["linear decodability", "blocked_rho"] == pytest.approx(-1.0)
    assert by_name.loc["observed difference", "blocked_rho"] == pytest.approx(1.0)


def test_our_numbers_are_those_of_the_named_fits(rows):
    ours = our_numbers(rows, "recipe")
    printed = set(load_table("paper_numbers")["id"])
    assert {name for name in printed if name.startswith("syn_")} == set(ours)
    assert ours["syn_units"] == 30
    assert ours["syn_share_0_25"] == pytest.approx(40.0)
    changed = rows.copy()
    changed.loc[changed["method"].str.startswith("recipe"), "value"] = 7.0
    assert our_numbers(changed, "recipe")["syn_diff_to"] == 7.0
    assert our_numbers(changed, "optimum") == our_numbers(rows, "optimum")


def test_beside_the_print(rows):
    table = beside_the_print(rows).set_index("id")
    assert set(table["place"]) == {"Results", "Figure 5"}
    assert len(table) == 14
    assert table.loc["syn_units", ["printed", "recipe", "recipe_verdict"]].tolist() == ["30", "30", "equal"]
    assert table.loc["syn_share_0", ["printed", "recipe", "recipe_verdict"]].tolist() == [
        "81",
        "40",
        "differs",
    ]
    assert table.loc["syn_units", "reason"] == ""
    assert "corrects together" in table.loc["syn_overlap_p", "reason"]
    assert "before their optimum" in table.loc["syn_share_0", "reason"]


def test_who_is_chosen(rows):
    chosen = choices_by_level(rows)
    assert chosen["chosen"].tolist() == [
        *["Threshold shift, clipped"] * 2,
        *["LEACE"] * 2,
        *["Exponentiated gradient"] * 2,
    ]
    assert (chosen["all"] == 30).all()
    assert (chosen[[f"{level:g}" for level in COLLINEARITIES]] == 5).all().all()


def test_methods(rows):
    methods = method_table(rows)
    assert len(methods) == (len(NINE) + 2) * len(COLLINEARITIES)
    own = methods[methods["method"] == "INLP"]
    np.testing.assert_allclose(own["auroc_change"], EFFECTS["inlp"][1])
    assert (own["seeds_allowed"] == 0).all()
    own = methods[methods["method"] == "LEACE"]
    np.testing.assert_allclose(own["change"], -0.5 * methods.loc[methods["method"] == "none", "difference"])
    assert (own["seeds_allowed"] == 5).all()


def test_printed_shares_are_those_of_the_table():
    assert list(printed_shares().values()) == [81, 83, 95, 87, 99, 99]
    assert list(printed_shares()) == list(COLLINEARITIES)


# ---- drawn


@pytest.fixture(scope="module")
def figures(rows):
    levels, seeds = level_table(rows), seed_table(rows)
    return {
        "a": panel_a(levels, seeds),
        "b": panel_b(levels),
        "c": panel_c(levels, printed_shares()),
        "sets": three_sets(levels),
    }


@pytest.mark.parametrize("name", ["a", "b", "c", "sets"])
def test_text_is_large_inside_and_not_on_other_text(figures, name):
    assert misplaced_texts(figures[name].figure, 11.5) == []


@pytest.mark.parametrize("name", ["a", "b", "c", "sets"])
def test_a_figure_is_drawn_the_same_each_time_and_has_words(figures, name):
    assert figures[name].png() == figures[name].png()
    for level in COLLINEARITIES:
        assert f"collinearity {level:g}: " in figures[name].summary


def test_filled_marks_are_the_draws_that_exceed(figures, rows):
    (axes,) = figures["a"].figure.axes
    marks = [line for line in axes.lines if line.get_marker() == "o"]
    drawn = {line.get_markerfacecolor() != "white": len(line.get_ydata()) for line in marks}
    outside = seed_table(rows)["outside"]
    assert drawn == {True: int(outside.sum()), False: int((~outside).sum())}


def test_bars_have_the_length_of_the_share_and_a_mark_where_it_is_printed(figures):
    (axes,) = figures["c"].figure.axes
    widths = [bar.get_width() for bar in axes.patches]
    assert widths == pytest.approx([100.0] * 6 + [40.0] * 6)
    assert [line.get_xdata()[0] for line in axes.lines] == list(printed_shares().values())
    assert "collinearity 0.5: 40.0 % achievable (printed 87 %)" in figures["c"].summary


def test_both_panels_of_the_sets_have_one_scale(figures):
    upper, lower = figures["sets"].figure.axes
    assert upper.get_ylim() == lower.get_ylim()
    assert [axes.get_title(loc="left") for axes in (upper, lower)] == [
        "Method chosen on test",
        "Method chosen on validation",
    ]


def test_the_clipped_shift_is_in_the_printed_set_alone():
    assert [name for name, methods in SETS.items() if CLIPPED in methods] == ["printed"]


def test_shares(rows):
    shares = share_table(rows)
    assert len(shares) == 2 * (len(SETS) + 1)
    by_name = shares.set_index(["methods", "chosen_on"])
    for methods, share in (("printed", 40.0), ("recipe", 40.0), ("unclipped", 50.0), ("nine", 25.0)):
        np.testing.assert_allclose(by_name.loc[(SET_NAMES[methods], "validation")].to_numpy(float), share)


def test_draws_to_pass_on(rows):
    draws = draw_table(rows)
    assert len(draws) == 30 * (2 * (len(NINE) + 2) + 2 + 2 + 4 + len(SETS))
    assert not draws.duplicated(["collinearity", "seed", "method", "subgroup", "quantity"]).any()
    own = draws[(draws["method"] == "leace") & (draws["quantity"] == "difference")]
    assert own["value"].iloc[-1] == pytest.approx(0.5 * unmitigated(1.0, 4))

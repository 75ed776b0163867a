"""The figures of a planned study: the numbers behind them, and what is drawn."""

import numpy as np
import pandas as pd
import pytest

import frame
from frame.figures.planning import draw_plan, draw_power, draw_sizes
from frame.reference.required import required_counts
from frame.reference.study import Study, power_curve, size_curve

STUDY = Study(0.8, [150, 60], [1500, 200])


def test_sizes_are_detectable_differences():
    curve = size_curve(STUDY, largest=600, points=8)
    assert curve["smallest"].iloc[[0, -1]].tolist() == [6, 600]
    for row in curve.iloc[[0, 3, 7]].itertuples():
        counts = [[int(np.ceil(n * row.smallest / 60)) for n in side] for side in ([150, 60], [1500, 200])]
        assert row.detectable == frame.detectable_difference(0.8, *counts)
        assert row.n_cases == sum(map(sum, counts))
    assert (curve["detectable"].diff().dropna() < 0).all()


def test_sizes_when_one_subgroup_grows():
    curve = size_curve(STUDY, grow=1, largest=600, points=5)
    last = curve.iloc[-1]
    assert last["detectable"] == frame.detectable_difference(0.8, [150, 600], [1500, 2000])
    assert last["n_cases"] == 150 + 600 + 1500 + 2000


def test_power_is_that_of_the_hardest_subgroup():
    detectable = STUDY.detectable()
    curve = power_curve(STUDY, largest=detectable, points=11)
    assert curve["difference"].iloc[[0, -1]].tolist() == [0.0, detectable]
    assert curve["power"].iloc[0] == pytest.approx(0.05, abs=1e-6)
    assert curve["power"].iloc[-1] == pytest.approx(0.8, abs=1e-6)
    assert (curve["easiest"] >= curve["power"]).all()
    assert (curve["easiest"] > curve["power"]).any()


def test_power_where_nothing_can_be_called_is_empty():
    curve = power_curve(Study(0.5, [1, 1], None, "tpr"), largest=0.4)
    assert list(curve.columns) == ["difference", "power", "easiest"]
    assert len(curve) == 0


def test_a_curve_stops_at_what_is_possible():
    curve = power_curve(Study(0.7, [40, 40], None, "tpr"), largest=5.0, points=3)
    assert curve["difference"].iloc[-1] == 0.7


def test_study_asks_the_same_questions_as_the_functions():
    study = Study(0.85, [90, 40], None, "tpr", power=0.9, alpha=0.1, design_effect=1.5)
    options = {"power": 0.9, "alpha": 0.1, "design_effect": 1.5}
    assert study.detectable() == frame.detectable_difference(0.85, [90, 40], None, "tpr", **options)
    assert study.required(0.1) == required_counts(0.85, 0.1, [90, 40], None, "tpr", **options)
    assert study.growing(1).smallest == ("positives", 1)
    assert STUDY.growing().smallest == ("positives", 1)
    assert Study(0.8, [150, 60], [30, 200]).growing().smallest == ("negatives", 0)


def _curves():
    sizes = pd.DataFrame({"smallest": [10, 60, 300], "n_cases": [1, 2, 3], "detectable": [0.3, 0.13, 0.06]})
    power = pd.DataFrame(
        {"difference": [0.0, 0.1, 0.2], "power": [0.05, 0.5, 0.9], "easiest": [0.05, 0.6, 1]}
    )
    return sizes, power


def test_sizes_are_drawn_where_the_table_says():
    sizes, _ = _curves()
    shown = draw_sizes(sizes, axis="Positives in b", given=60, difference=0.08, needed=200)
    (axes,) = shown.figure.axes
    curve, *lines = axes.get_lines()
    assert curve.get_xydata().tolist() == [[10, 0.3], [60, 0.13], [300, 0.06]]
    assert axes.get_xscale() == "log"
    assert axes.get_ylim()[0] == 0
    assert [line.get_xdata()[0] for line in lines[:2]] == [60, 200]
    assert lines[2].get_ydata()[0] == 0.08
    assert [text.get_text() for text in axes.texts] == ["given: 60", "needed: 200", "to be found: 0.08"]
    assert axes.get_xlabel() == "Positives in b"
    assert "60: 0.130" not in shown.summary  # every fourth size is told
    assert "10: 0.300" in shown.summary
    assert "Given: 60. To be found: 0.08; needed: 200." in shown.summary


def test_labels_of_two_sizes_lean_apart():
    sizes, _ = _curves()
    for given, needed in ((60, 70), (70, 60)):
        (axes,) = draw_sizes(sizes, axis="n", given=given, needed=needed, difference=0.1).figure.axes
        by_size = sorted(axes.texts[:2], key=lambda text: text.xy[0])
        assert [text.get_ha() for text in by_size] == ["right", "left"]


def test_only_what_is_there_is_drawn():
    sizes, power = _curves()
    (axes,) = draw_sizes(sizes, axis="n", given=60).figure.axes
    assert [text.get_text() for text in axes.texts] == ["given: 60"]
    shown = draw_sizes(sizes, axis="n", given=60, difference=0.01)
    assert shown.summary.endswith("needed: no count.")
    (axes,) = draw_power(power, power=0.8).figure.axes
    assert len(axes.get_lines()) == 2  # the curve and the wanted power


def test_power_is_drawn_where_the_table_says():
    _, power = _curves()
    shown = draw_power(power, power.assign(power=[0.05, 0.8, 1.0]), power=0.8, difference=0.1)
    (axes,) = shown.figure.axes
    given, needed, wanted, difference = axes.get_lines()
    assert given.get_ydata().tolist() == [0.05, 0.5, 0.9]
    assert needed.get_ydata().tolist() == [0.05, 0.8, 1.0]
    assert (wanted.get_ydata()[0], difference.get_xdata()[0]) == (0.8, 0.1)
    (legend,) = shown.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["given counts", "needed counts"]
    assert shown.summary.endswith("Wanted power: 0.8.")


def test_both_on_one_sheet():
    sizes, power = _curves()
    shown = draw_plan(
        sizes, power, None, axis="Positives in b", given=60, needed=None, difference=0.08, power=0.8
    )
    upper, lower = shown.figure.axes
    assert upper.get_ylabel() == "Detectable difference"
    assert lower.get_ylabel() == "Power"
    assert "Detectable difference by size" in shown.summary
    assert "Power by true difference" in shown.summary
    shown.figure.draw_without_rendering()
    # The text of the labels above the axes does not leave the sheet.
    for text in upper.texts:
        box = text.get_window_extent()
        assert box.x0 >= 0
        assert box.x1 <= shown.figure.bbox.x1

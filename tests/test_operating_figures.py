"""The figures of size and power: every cell is drawn, and the numbers beside them are the table's."""

import pytest
from drawn_text import misplaced_texts

from frame.characteristics.tables import characteristics
from frame.figures.operating_characteristics import (
    METHOD_NAMES,
    draw_calibrated_sizes,
    draw_method_sizes,
    draw_power,
    method_sizes,
)
from frame.figures.style import SMALL


@pytest.fixture(scope="module")
def fair():
    table = characteristics("sizes_auroc")
    return table[table["correlations"].isin(["", "0.5"])]


def test_sizes_are_summed_up_per_method(fair):
    summed = method_sizes(fair).set_index(["method", "images"])
    own = fair[(fair["method"] == "delong") & fair["repeats"]]
    row = summed.loc[("own variance (DeLong)", "1-6 a patient")]
    assert (row["cells"], row["cohorts"]) == (len(own), own["cohorts"].iloc[0])
    assert (row["smallest"], row["largest"]) == (own["size"].min(), own["size"].max())
    assert row["mean"] == pytest.approx(own["rejected"].sum() / own["cohorts"].sum())
    assert row["held"] == ((own["size_hi"] >= 0.03) & (own["size_lo"] <= 0.07)).sum()


def test_every_method_of_the_tables_has_a_name(fair):
    assert set(fair["method"]) | set(characteristics("sizes_tpr")["method"]) <= set(METHOD_NAMES)


def test_every_cell_is_a_mark(fair):
    figure = draw_method_sizes(fair).figure
    drawn = sum(len(line.get_xdata()) for line in figure.axes[0].lines if line.get_linestyle() == "None")
    assert drawn == len(fair)
    assert misplaced_texts(figure, SMALL) == []


def test_calibrated_cells_with_their_intervals(fair):
    shown = draw_calibrated_sizes({"AUROC": fair})
    own = fair[fair["method"] == "calibrated"]
    drawn = [container.lines[0].get_ydata() for container in shown.figure.axes[0].containers]
    assert sorted(v for part in drawn for v in part) == sorted(own["size"])
    assert f"{own['size'].max():.3f}" in str(shown.summary)
    assert misplaced_texts(shown.figure, SMALL) == []


def test_power_of_both_statistics():
    table = characteristics("power_auroc")
    shown = draw_power(table)
    assert len(shown.figure.axes[0].get_yticks()) == table["cell"].nunique()
    best = table.loc[table["method"] == "heterogeneity", "size"].max()
    assert f"Q {best:.3f}" in str(shown.summary)
    assert misplaced_texts(shown.figure, SMALL) == []

"""The tables and the figure of drawn images: every world is in them once."""

import pandas as pd
import pytest

from frame.characteristics.step_two_image_tables import image_groups_table, images_table
from frame.characteristics.step_two_images import ATTRIBUTES, FINDINGS
from frame.figures.planted_images import (
    changes_by_world,
    differences_by_world,
    draw_images,
    groups_by_unit,
    summary_by_unit,
)
from frame.interventions.decision import MOVES_BOTH, MOVES_ENTANGLEMENT


@pytest.fixture(scope="module")
def images():
    return images_table()


def test_counts_and_means_are_those_of_the_worlds(images):
    table = summary_by_unit(images).set_index(["attribute", "finding"])
    assert len(table) == len(ATTRIBUTES) * len(FINDINGS)
    for (attribute, finding), own in images.groupby(["attribute", "finding"]):
        row = table.loc[(attribute, finding.replace("_", " "))]
        assert row["worlds"] == len(own) == 5
        assert row["estimable"] == (own["status"] == "ok").sum()
        assert row["called"] == (own["p"] <= 0.05).sum()
        assert row["holds_actual"] == (own["holds_actual"] == "yes").sum()
        assert row["holds_recorded"] == (own["holds_recorded"] == "yes").sum()
        assert row["blamed"] == own["verdict"].isin([MOVES_ENTANGLEMENT, MOVES_BOTH]).sum()
        assert row["blamed"] <= row["blamed_beyond"]
        assert row["truth_actual"] == pytest.approx(own["truth_actual"].mean())


def test_what_is_missing_is_no_world_called(images):
    damaged = images.copy()
    first = damaged.index[damaged["attribute"] == "race"][0]
    damaged.loc[first, ["p", "observed", "lo", "hi"]] = float("nan")
    damaged.loc[first, ["status", "holds_actual", "verdict"]] = ["not estimable", "", ""]
    row = summary_by_unit(damaged).iloc[0]
    assert (row["worlds"], row["estimable"]) == (5, 4)
    others = images[(images["attribute"] == "race") & (images["finding"] == FINDINGS[0])].iloc[1:]
    assert row["holds_actual"] == (others["holds_actual"] == "yes").sum()
    assert row["called"] == (others["p"] <= 0.05).sum()
    drawn = draw_images(damaged)
    assert "observed –" in repr(drawn)


def test_every_world_has_its_ends_as_text(images):
    first = differences_by_world(images).iloc[0]
    assert first["range"] == f"{images['reference_lo'][0]:.3f} to {images['reference_hi'][0]:.3f}"
    assert first["interval"] == f"{images['lo'][0]:.3f} to {images['hi'][0]:.3f}"
    changes = changes_by_world(images)
    assert len(changes) == len(images)
    assert changes["with_entanglement"][0].startswith(f"+{images['entanglement_change'][0]:.3f} (+")
    assert changes["auroc"][0].startswith(f"\N{MINUS SIGN}{-images['disease_change'][0]:.3f} (")
    missing = images.assign(disease_change=float("nan"))
    assert not changes_by_world(missing)["auroc"].str.contains("to").any()


def test_groups_are_means_over_the_worlds():
    groups = image_groups_table()
    table = groups_by_unit(groups).set_index(["attribute", "finding", "group"])
    assert len(table) == len(FINDINGS) * (5 + 4 + 2)
    own = groups[(groups["finding"] == "cardiomegaly") & (groups["group"] == "Black")]
    row = table.loc[("race", "cardiomegaly", "Black")]
    assert row["value"] == pytest.approx(own["value"].mean())
    assert row["truth_actual"] == pytest.approx(own["truth_actual"].mean())
    assert row["n_images"] == round(own["n_images"].astype(float).mean())


def test_the_figure_says_every_world(images):
    shown = draw_images(images)
    lines = repr(shown).splitlines()
    assert len(lines) == len(images)
    for row in images.to_dict("records"):
        (line,) = [
            one
            for one in lines
            if one.startswith(f"{row['finding']} by {row['attribute']}, seed {row['seed']}:")
        ]
        assert f"observed {row['observed']:.3f} " in line or row["observed"] < 0.001
    assert len(shown.figure.axes) == len(ATTRIBUTES) * len(FINDINGS)
    called = sum(
        mark.get_markerfacecolor() != "white"
        for axes in shown.figure.axes
        for mark in axes.lines
        if mark.get_marker() == "o"
    )
    assert called == (images["p"] <= 0.05).sum() > 0
    assert pd.Series([axes.get_title(loc="left") for axes in shown.figure.axes]).ne("").all()

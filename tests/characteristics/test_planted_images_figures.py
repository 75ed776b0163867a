"""The tables and the figure of drawn images: every world is in them once."""

import pandas as pd
import pytest

from frame.characteristics.step_two_image_tables import image_groups_table, images_table
from frame.characteristics.step_two_images import ATTRIBUTES, DESIGN, FINDINGS, cohort_rows
from frame.figures.planted_images import (
    UNDECIDED,
    changes_by_world,
    differences_by_world,
    draw_images,
    groups_by_unit,
    summary_by_unit,
    wrong_labels,
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
        for kind in ("recorded", "actual"):
            fair = own[f"truth_{kind}"] <= own[f"truth_{kind}_reference"]
            held = own[f"holds_{kind}"] == "yes"
            assert row[f"as_fair_{kind}"] == fair.sum()
            assert row[f"undecided_{kind}"] == (held & (own["lo"] > 0) & fair).sum()
            assert row[f"holds_{kind}"] == held.sum() - row[f"undecided_{kind}"]
        assert row["begins_at_0"] == (own["lo"] == 0).sum()
        assert row["blamed"] == own["verdict"].isin([MOVES_ENTANGLEMENT, MOVES_BOTH]).sum()
        assert row["blamed"] <= row["blamed_beyond"]
        assert row["truth_actual"] == pytest.approx(own["truth_actual"].mean())
    # Both happen, and so neither is a constant.
    assert 0 < table["undecided_recorded"].sum() < table["holds_recorded"].sum()
    assert 0 < table["as_fair_actual"].sum() < len(images)
    assert 0 < table["begins_at_0"].sum() < len(images)


def test_an_interval_without_0_does_not_hold_a_truth_that_may_be_0(images):
    row = images[(images["seed"] == 4) & (images["attribute"] == "race") & (images["finding"] == "fracture")]
    assert (row["lo"] > 0).all()
    shown = differences_by_world(row).iloc[0]
    assert (shown["holds_recorded"], shown["holds_actual"]) == (UNDECIDED, UNDECIDED)
    assert shown["fair_recorded"] == f"{row['truth_recorded_reference'].iloc[0]:.3f}, within"
    larger = row.assign(truth_recorded=row["truth_recorded_reference"] + 0.001, lo=0.001)
    shown = differences_by_world(larger).iloc[0]
    assert (shown["holds_recorded"], shown["holds_actual"]) == ("yes", UNDECIDED)
    assert shown["fair_recorded"].endswith(", above")
    assert differences_by_world(row.assign(lo=0.0)).iloc[0]["holds_recorded"] == "yes"
    missed = differences_by_world(row.assign(holds_recorded="no", holds_actual="")).iloc[0]
    assert (missed["holds_recorded"], missed["holds_actual"]) == ("no", "")
    unknown = row.assign(truth_recorded=float("nan"), holds_recorded="")
    assert differences_by_world(unknown).iloc[0]["fair_recorded"].count(",") == 0


def test_uncertain_codes_are_wrong_labels_of_every_finding():
    table = wrong_labels([0]).set_index("finding")
    assert list(table.index) == [finding.replace("_", " ") for finding in FINDINGS]
    assert (table["uncertain"] > 0).all()
    assert (table["uncertain_elsewhere"] > 0).all()
    others = table.drop("cardiomegaly")
    assert (others["wrong"] == others["uncertain"]).all()
    noisy = table.loc["cardiomegaly"]
    assert noisy["wrong"] > 2 * noisy["uncertain"]
    # What is planted is in one group.
    assert (table["wrong_elsewhere"] == table["uncertain_elsewhere"]).all()
    images, _ = cohort_rows(DESIGN.truth(0))
    by_hand = (images["fracture_recorded"] == -1) & (images["fracture_true"] == 1)
    assert table.loc["fracture", "wrong"] == by_hand.sum() == 8
    assert table.loc["fracture", "n_images"] == (images["fracture_recorded"].isin([-1, 0, 1])).sum()


def test_what_is_missing_is_no_world_called(images):
    damaged = images.copy()
    first = damaged.index[damaged["attribute"] == "race"][0]
    damaged.loc[first, ["p", "observed", "lo", "hi"]] = float("nan")
    damaged.loc[first, ["status", "holds_actual", "verdict"]] = ["not estimable", "", ""]
    row = summary_by_unit(damaged).iloc[0]
    assert (row["worlds"], row["estimable"]) == (5, 4)
    others = images[(images["attribute"] == "race") & (images["finding"] == FINDINGS[0])].iloc[1:]
    assert row["holds_actual"] == (others["holds_actual"] == "yes").sum()
    assert row["begins_at_0"] == (others["lo"] == 0).sum()
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
    for name in ("n_images", "truth_images", "truth_labelled", "truth_labelled_positive"):
        assert row[name] == round(own[name].astype(float).mean())
    assert row["truth_labelled"] < row["truth_images"]


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

"""Figure 4, panels d to h: the tables behind them, and what is drawn."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from drawn_text import misplaced_texts

from frame.characteristics.step_two_images import planted
from frame.cohorts.phantom.truth import LabelNoise, PhantomTruth, RacePlant
from frame.errors import InputError
from frame.experiments import injection
from frame.experiments.contract import named_units
from frame.experiments.injection import ATTRIBUTES, GRIDS, QUANTITIES
from frame.experiments.injection_settings import FINDINGS
from frame.figures.figure_4 import panel_d, panel_e, panel_f, panel_g, panel_h
from frame.figures.injection_planted import (
    planted_by_race,
    planted_words,
    trend_sentence,
    verdict_sentences,
    with_planted,
)
from frame.figures.injection_tables import (
    QUANTITY_WORDS,
    RACE_WORDS,
    beside_the_print,
    caveat_list,
    change_table,
    counted_words,
    curve_table,
    injection_rows,
    note_list,
    note_table,
    shown_encoder,
    trend_table,
    verdict_table,
    who_is_where,
    why_no_curves,
)
from frame.interventions.decision import CONSISTENT, MOVES_BOTH, MOVES_ENTANGLEMENT, UNDETERMINED, VERDICTS
from frame.tables import load_table
from frame.workspace.graph import stages
from frame.workspace.layout import open_workspace
from frame.workspace.profiles import load_profile

NAME = "block_means"
#: Marks of panel h.
OPERATOR_OF_MARK = {"o": "decodability", "D": "entanglement", "s": "whitened entanglement"}
START = {
    "linear_decodability": 0.85,
    "nonlinear_decodability": 0.84,
    "difference": 0.08,
    "achievable_difference": 0.07,
    "achievable_difference_validation": 0.09,
    "disease_auroc": 0.83,
    "overlap": 0.1,
    "erasure_cost": 0.004,
}


def value_of(operator, place, quantity, number):
    """A difference that follows entanglement, and decodability that follows everything."""
    step = {"linear_decodability": 0.02, "nonlinear_decodability": 0.02}.get(quantity, 0.0)
    if operator != "decodability":
        step = {"difference": 0.01, "disease_auroc": -0.01}.get(quantity, step)
    return START[quantity] + step * place + 0.01 * (number - 1)


def unit_rows():
    """Rows of three units, of which one has no verdict."""
    found = []
    for number, finding in enumerate(FINDINGS):
        same = {"encoder": NAME, "finding": finding, "attribute": "race"}
        for operator, grid in GRIDS.items():
            for place, strength in enumerate(grid):
                for quantity in QUANTITIES:
                    row = same | {"method": operator, "strength": strength, "quantity": quantity}
                    if strength == 256:
                        row |= {"value": np.nan, "status": "not estimable", "reason": "not run: too many"}
                    else:
                        row["value"] = value_of(operator, place, quantity, number)
                    found.append(row)
        said = dict.fromkeys(("observed", "reference", "exceedance"), 0.08)
        counts = {"n_images": 900, "n_positive": 90 + number, "n_patients": 700}
        found += [
            same | counts | {"method": "step one", "quantity": one, "value": v} for one, v in said.items()
        ]
        change = same | {"method": "entanglement", "strength": 64.0}
        found.append(change | {"quantity": "change_difference", "value": 0.04, "lo": 0.02, "hi": 0.06})
        found.append(change | {"quantity": "change_disease_auroc", "value": -0.05, "lo": -0.07, "hi": -0.03})
        found.append(change | {"quantity": "moves", "value": 1.0})
        found.append(same | {"method": "verdict", "quantity": "note", "value": 0.0, "reason": "All of it."})
        for quantity, verdict in (("verdict", CONSISTENT), ("verdict_of_step_two", MOVES_ENTANGLEMENT)):
            place = float(VERDICTS.index(verdict))
            row = {"method": "verdict", "quantity": quantity, "value": place, "reason": verdict}
            found.append(same | row)
        found.append(same | {"method": "verdict", "quantity": "caveat", "value": 0.0, "reason": "Weak."})
    same = {"encoder": NAME, "finding": FINDINGS[0], "attribute": "race_recorded", "method": "verdict"}
    found.append(same | {"quantity": "note", "value": 0.0, "reason": "Of one."})
    verdict = f"{UNDETERMINED}: the entanglement test says nothing here: nothing fell"
    place = float(VERDICTS.index(UNDETERMINED))
    found.append(same | {"quantity": "verdict", "value": place, "reason": verdict})
    return injection.tidy(pd.DataFrame(found), experiment="injection", modality="chest", split="test")


@pytest.fixture(scope="module")
def rows():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(injection, "units", lambda _: ())
        patch.setattr(injection, "all_units", lambda *_: unit_rows())
        return injection.collect(SimpleNamespace())


def test_curves_are_the_means_over_findings(rows):
    curves = curve_table(rows, NAME)
    own = curves[(curves["operator"] == "entanglement") & (curves["quantity"] == "difference")]
    assert own["strength"].tolist() == list(GRIDS["entanglement"])
    np.testing.assert_allclose(own["value"].iloc[:5], 0.08 + 0.01 * np.arange(5))
    assert np.isnan(own["value"].iloc[5])
    assert set(curves["quantity"]) == set(QUANTITY_WORDS)


def test_other_rows_are_refused(rows):
    with pytest.raises(InputError, match="no curves of encoder 'x' and attribute 'race'; give the collected"):
        curve_table(rows, "x")


def test_printed_values_stand_in_a_column_of_their_own(rows):
    beside = beside_the_print(rows, NAME)
    assert len(beside) == len(load_table("paper_figure4")) == 50
    assert "verdict" not in "".join(beside.columns)
    row = beside[
        (beside["operator"] == "entanglement")
        & (beside["strength"] == "64")
        & (beside["quantity"] == "Race difference")
    ].iloc[0]
    assert (row["here"], row["printed"]) == ("0.120", "0.101")
    blank = beside[beside["strength"] == "256"]
    assert blank["here"].isna().all()
    assert (blank["printed"] != "").all()


def test_every_way_to_read_race_has_a_word():
    assert list(RACE_WORDS) == list(ATTRIBUTES)


def test_verdicts_with_and_without_the_gate(rows):
    table = verdict_table(rows)
    assert len(table) == len(FINDINGS) + 1
    assert set(table["verdict"].iloc[[0, 1, 2]]) == {CONSISTENT}
    row = table[table["race"] == RACE_WORDS["race_recorded"]].iloc[0]
    assert (row["verdict"], row["beyond"]) == (UNDETERMINED, "not estimable")
    assert row["reason"] == "the entanglement test says nothing here: nothing fell"
    assert np.isnan(row["observed"])
    first = table.iloc[0]
    assert (first["encoder"], first["beyond"]) == ("Block means, 16 x 16", MOVES_ENTANGLEMENT)
    assert first["finding"] == "pleural effusion"
    assert table["n_positive"].tolist()[:3] == [90, 91, 92]
    assert (first["n_images"], first["n_patients"]) == (900, 700)


def test_changes_with_their_intervals(rows):
    table = change_table(rows)
    assert len(table) == len(FINDINGS)
    first = table.iloc[0]
    assert (first["operator"], first["strength"], first["moves"]) == ("entanglement", "64", "yes")
    assert [first[f"difference{end}"] for end in ("", "_lo", "_hi")] == [0.04, 0.02, 0.06]
    assert [first[f"disease_auroc{end}"] for end in ("", "_lo", "_hi")] == [-0.05, -0.07, -0.03]


def test_trends_of_each_operator(rows):
    trends = trend_table(rows, NAME).set_index(["operator", "quantity"])
    assert len(trends) == len(GRIDS) * len(QUANTITY_WORDS)
    assert trends.loc[("entanglement", "Race difference"), "blocked_rho"] == pytest.approx(1.0)
    assert trends.loc[("decodability", "Linear decodability"), "blocked_rho"] == pytest.approx(1.0)
    assert np.isnan(trends.loc[("decodability", "Race difference"), "blocked_rho"])
    row = trends.loc[("entanglement", "Race difference")]
    assert (row["pairs"], row["blocked_pairs"]) == ("15 of 18", "15 of 18")
    assert trends.loc[("whitened entanglement", "Race difference"), "pairs"] == "15 of 15"
    # Sizes count tests with a p: within findings, what does not move has none.
    assert row["tests"] == 6
    assert row["blocked_tests"] == 3
    assert trends.loc[("entanglement", "Disease AUROC"), ["tests", "blocked_tests"]].tolist() == [2, 1]


def test_sentences_stand_once(rows):
    assert caveat_list(rows) == ["Weak."]
    few = "The profile names 1 encoder for the injection; the paper has 2."
    absent = "Entanglement: 1 of 6 strengths was not run: 256 (too many)."
    assert note_list(rows, NAME) == ["All of it.", few, absent]
    assert note_table(rows).drop(columns="encoder").to_numpy().tolist() == [
        ["all", RACE_WORDS["race"], "All of it."],
        ["pleural effusion", RACE_WORDS["race_recorded"], "Of one."],
        ["all", "all", few],
        ["all", RACE_WORDS["race"], absent],
    ]
    part = rows[~((rows["finding"] == FINDINGS[2]) & (rows["quantity"] == "note"))]
    assert note_list(part, NAME)[0] == "Pleural effusion, cardiomegaly: All of it."
    assert counted_words(rows, NAME) == (
        "Test images: pleural effusion 900 (90 positive, 700 patients); cardiomegaly 900 (91 positive, 700 "
        "patients); fracture 900 (92 positive, 700 patients). Intervals resample patients. The p of step "
        "one comes from the calibrated law of the difference under an exactly fair model; the p of a trend "
        "permutes values over strengths."
    )
    assert who_is_where(rows) == ("Block means, 16 x 16", "pleural effusion, cardiomegaly, fracture")


# ---- nothing to show


def without_race():
    """Rows of an encoder whose units all failed."""
    same = {"encoder": NAME, "attribute": "race", "method": "verdict", "quantity": "verdict"}
    failed = {"value": np.nan, "status": "not estimable", "reason": "race has one group"}
    rows = [same | failed | {"finding": finding} for finding in FINDINGS]
    return injection.tidy(pd.DataFrame(rows), experiment="injection", modality="chest", split="test")


def drawn_panels(rows, name, attribute="race"):
    return [panel(rows, name, attribute) for panel in (panel_d, panel_e, panel_f, panel_g, panel_h)]


def test_units_that_failed_are_told_in_place_of_the_panels():
    rows = without_race()
    said = "Nothing to show: there is no race difference without injection (race has one group)."
    assert why_no_curves(rows, NAME, "race", "difference") == said
    first, *others = drawn_panels(rows, NAME)
    assert [repr(one) for one in others] == [said] * 4
    assert "no race difference and linear decodability without" in repr(first)
    assert beside_the_print(rows, NAME)["here"].isna().all()
    assert verdict_table(rows)["verdict"].tolist() == ["not estimable"] * 3
    assert verdict_table(rows)["reason"].tolist() == ["race has one group"] * 3
    assert change_table(rows).empty
    assert trend_table(rows, NAME).empty


def test_a_profile_without_encoders_shows_that_it_has_none(monkeypatch, tmp_path):
    monkeypatch.setenv("FRAME_WORKSPACE", str(tmp_path))
    rows = injection_rows("tables")
    assert rows.empty
    assert shown_encoder(rows, "first") == ""
    assert who_is_where(rows) == ("none", "none")
    assert {repr(one) for one in drawn_panels(rows, "")} == {why_no_curves(rows, "", "race", "difference")}
    assert "names no encoder for the injection" in why_no_curves(rows, "", "race", "difference")
    assert verdict_table(rows).empty
    assert len(beside_the_print(rows, "")) == 50
    assert (caveat_list(rows), note_list(rows, ""), len(note_table(rows))) == ([], [], 0)
    assert counted_words(rows, "") == "No test image was compared."
    with pytest.raises(InputError, match=r"injection are not there yet; make them with: frame run injection"):
        injection_rows("demo")


def test_a_notebook_waits_only_for_experiments_that_the_profile_has(tmp_path):
    for name, waits in (("tables", False), ("demo", True)):
        workspace = open_workspace(load_profile(name), tmp_path / name)
        assert bool(named_units("injection", workspace)) is waits
        stage = stages(workspace)["notebook:figure_4"]
        assert stage.inputs == (("results/injection.parquet",) if waits else ())


def test_an_encoder_that_was_not_run_is_refused(rows):
    assert shown_encoder(rows, "first") == shown_encoder(rows, NAME) == NAME
    with pytest.raises(InputError, match="encoder is 'rad'; give first, or one that was run: block_means"):
        shown_encoder(rows, "rad")


def test_a_way_to_read_race_that_was_not_computed_in_full_is_drawn_without_the_rest(rows):
    """Its difference and disease AUROC are there; panel d needs the decodability too."""
    part = rows[~rows["quantity"].str.contains("decodab|achiev|overlap|erasure")].assign(attribute="race")
    assert "no linear decodability without injection (it was not computed" in repr(panel_d(part, NAME))
    (axes,) = panel_e(part, NAME).figure.axes
    assert [one.get_text() for one in axes.get_yticklabels()] == ["Race difference", "Disease AUROC"]


def test_a_value_that_fails_for_another_reason_is_not_said_to_be_not_run(rows):
    broken = rows.copy()
    there = (broken["quantity"] == "overlap") & (broken["strength"] == 4)
    broken.loc[there, ["value"]] = np.nan
    broken.loc[there, "status"], broken.loc[there, "reason"] = "not estimable", "no subspace"
    (axes,) = panel_f(broken, NAME).figure.axes
    texts = [text.get_text() for text in axes.texts]
    assert (texts.count("none"), texts.count("not run")) == (1, len(QUANTITY_WORDS))


# ---- drawn


@pytest.fixture(scope="module")
def figures(rows):
    return {
        "d": panel_d(rows, NAME),
        "e": panel_e(rows, NAME),
        "f": panel_f(rows, NAME),
        "whitened": panel_f(rows, NAME, operator="whitened entanglement"),
        "g": panel_g(rows, NAME),
        "h": panel_h(rows, NAME),
    }


@pytest.mark.parametrize("name", ["d", "e", "f", "whitened", "g", "h"])
def test_text_is_large_inside_and_not_on_other_text(figures, name):
    assert misplaced_texts(figures[name].figure, 11.5) == []


def test_values_are_written_and_those_not_run_are_said_to_be(figures):
    (axes,) = figures["f"].figure.axes
    texts = [text.get_text() for text in axes.texts]
    assert texts.count("not run") == len(QUANTITY_WORDS)
    assert "0.120" in texts
    assert "Race difference: 0: 0.080, 1: 0.090" in repr(figures["f"])


def test_colours_have_one_scale_for_all_operators(figures):
    scales = {repr(figures[name]).split("Colours reach ")[1].split(".\n")[0] for name in "ef"}
    assert scales == {"from -0.080 to +0.080"}
    (axes,) = figures["e"].figure.axes
    faces = {tuple(np.round(patch.get_facecolor()[:3], 3)) for patch in axes.patches}
    assert len(faces) == 4  # no change, and three rises of decodability


def test_the_largest_strength_that_was_run_is_drawn(figures):
    assert "Entanglement, 64: mean 0.120 (pleural effusion 0.110" in repr(figures["g"])
    assert "No injection: mean 0.080" in repr(figures["g"])


def test_marks_that_are_not_significant_are_open(figures, rows):
    trends = trend_table(rows, NAME)
    said = repr(figures["h"])
    tested = trends[trends["rho"].notna()].set_index(["operator", "quantity"])
    assert said.count("(open)") == int((tested["p_fdr"] >= 0.05).sum()) > 0
    assert said.count("+") + said.count("-") >= len(tested)
    filled = filled_marks(figures["h"], tested)
    assert filled == (tested["p_fdr"] < 0.05).to_dict()
    assert set(filled.values()) == {True, False}
    # The corrected p decides: with another q and the same p the marks are open.
    there = rows["quantity"].eq("spearman_difference") & (rows["p_fdr"] < 0.05)
    assert there.sum() == 2
    corrected = rows.assign(p_fdr=rows["p_fdr"].mask(there, 0.05))
    opened = {place for place, was in filled.items() if was} - {
        place for place, now in filled_marks(panel_h(corrected, NAME), tested).items() if now
    }
    assert opened == {(one, "Race difference") for one in ("entanglement", "whitened entanglement")}


def filled_marks(shown, tested):
    """Whether the mark of every tested trend of panel h is filled; marks stand at its correlation."""
    (axes,) = shown.figure.axes
    words = [one.get_text() for one in axes.get_yticklabels()]
    found = {}
    for line in axes.lines:
        if line.get_marker() not in OPERATOR_OF_MARK:  # the line at 0
            continue
        ((x,), (y,)) = line.get_data()
        place = (OPERATOR_OF_MARK[line.get_marker()], words[round(y)])
        assert x == tested.loc[place, "rho"]
        found[place] = line.get_markerfacecolor() == line.get_markeredgecolor()
        assert found[place] or line.get_markerfacecolor() == "white"
    return found


# ---- what is planted


@pytest.mark.parametrize("finding", FINDINGS)
def test_plants_are_those_of_the_table_of_drawn_worlds(finding):
    assert planted_by_race(PhantomTruth(), finding) == planted("race", finding)


def test_another_truth_plants_something_else():
    plain = PhantomTruth(noise=LabelNoise(rate=0.0), race=RacePlant(texture="none"))
    assert planted_by_race(plain, "cardiomegaly") == "nothing"
    assert planted_words(plain) == "No finding is drawn differently by race"
    moved = PhantomTruth(noise=LabelNoise(finding="fracture", group="Asian"))
    assert planted_by_race(moved, "fracture") == "label noise in Asian"
    assert planted_by_race(moved, "cardiomegaly") == "decodable, fair"
    assert planted_words(moved).endswith("and recorded labels of fracture are wrong in one group (Asian)")


def test_verdicts_stand_beside_what_is_planted(rows):
    table = verdict_table(rows)
    there = with_planted(table, PhantomTruth())
    assert there.loc[there["finding"] == "cardiomegaly", "planted"].tolist() == ["label noise in Black"]
    assert set(there.loc[there["finding"] != "cardiomegaly", "planted"]) == {"decodable, fair"}
    assert with_planted(table, None) is table  # nothing is planted in released images


def test_significant_trends_are_counted_beside_the_planted_truth(rows):
    own = rows[rows["quantity"].isin(["spearman_difference", "spearman_blocked_difference"])]
    rejected = own[own["p_fdr"] < 0.05]
    assert set(rejected["method"]) <= {"entanglement", "whitened entanglement"}
    tested = int(own["p_fdr"].notna().sum())
    (said,) = trend_sentence(rows, NAME, PhantomTruth())
    assert said.startswith("No finding is drawn differently by race, and recorded labels of cardio")
    assert f"; {len(rejected)} of the {tested} trend tests of the race difference have q below 0.05," in said
    assert said.endswith("(decodability 0 of 1; entanglement 2 of 2; whitened entanglement 2 of 2).")
    fewer = rows.copy()
    fewer.loc[rejected.index, "p_fdr"] = 0.05
    assert f"; 0 of the {tested} trend" in trend_sentence(fewer, NAME, PhantomTruth())[0]
    assert trend_sentence(rows, NAME, None) == trend_sentence(rows, "x", PhantomTruth()) == ()


def test_verdicts_are_counted_beside_the_planted_truth(rows):
    named, missed = verdict_sentences(rows, PhantomTruth())
    assert "; 3 of the 3 verdicts without the gate name entanglement." in named
    assert missed.startswith("1 of the 1 verdicts on cardiomegaly says 'consistent with exact fairness'.")
    assert "on 5 simulated worlds with this truth" in missed
    assert "it is 0.13 to 0.17, where an exactly fair head shows 0.02." in missed
    worlds = load_table("step_two_images")
    true = worlds.loc[(worlds["attribute"] == "race") & (worlds["finding"] == "cardiomegaly")]
    low, high = (getattr(true["truth_recorded"].astype(float), one)() for one in ("min", "max"))
    assert (f"{low:.2f}", f"{high:.2f}") == ("0.13", "0.17")
    # Another truth was not measured; without wrong labels nothing is missed.
    other = verdict_sentences(rows, PhantomTruth(noise=LabelNoise(rate=0.3)))
    assert other[1].endswith("so it misses a true difference.")
    assert len(verdict_sentences(rows, PhantomTruth(noise=LabelNoise(rate=0.0)))) == 1
    assert verdict_sentences(rows, None) == ()
    units = rows.copy()
    beyond = units["quantity"] == "verdict_of_step_two"
    units.loc[beyond, "value"] = [
        float(VERDICTS.index(one)) for one in (UNDETERMINED, CONSISTENT, MOVES_BOTH)
    ]
    assert "; 1 of the 3 verdicts" in verdict_sentences(units, PhantomTruth())[0]

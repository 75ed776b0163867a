"""The patient-level notebook's tables and figures: intervals, references and false alarms of fair cohorts."""

import numpy as np
import pandas as pd
import pytest
from drawn_text import misplaced_texts
from matplotlib.colors import to_hex
from scipy.stats import binomtest

from frame.audits import audit
from frame.characteristics.worlds import World, simulated_cohort
from frame.errors import InputError
from frame.figures.patient_level import (
    UNITS,
    WAYS,
    compare_units,
    draw_fair_differences,
    draw_intervals,
    false_alarms,
    repeat_fair_cohorts,
)
from frame.figures.style import SMALL

WORLD = World(sizes=(500, 300, 150), auroc=0.8, prevalence=0.3, repeats=True)


@pytest.fixture(scope="module")
def cohort():
    return simulated_cohort(WORLD, np.random.default_rng([5, 0]))


@pytest.fixture(scope="module")
def units(cohort):
    return compare_units(cohort, resamples=400, seed=0)


@pytest.fixture(scope="module")
def repeated():
    return repeat_fair_cohorts(WORLD, cohorts=30, resamples=100, seed=5)


def test_patients_make_wider_intervals_around_the_same_values(units, cohort):
    assert units["n_images"].tolist() == [500, 300, 150]
    assert (units["n_patients"] < units["n_images"]).all()
    assert (units["width_ratio"] > 1.05).all()
    width = units["hi_patient"] - units["lo_patient"]
    assert units["width_ratio"].tolist() == pytest.approx(
        (width / (units["hi_image"] - units["lo_image"])).tolist()
    )
    by_hand = audit(cohort.scores, cohort.labels, cohort.groups, cohort.patients, resamples=0)
    assert units["auroc"].tolist() == by_hand.table["value"].tolist()


def test_each_cohort_is_read_as_frame_audit_reads_it(repeated, cohort):
    first = repeated.iloc[0]
    by_patient = audit(cohort.scores, cohort.labels, cohort.groups, cohort.patients, resamples=0)
    by_image = audit(cohort.scores, cohort.labels, cohort.groups, resamples=0)
    paper = audit(cohort.scores, cohort.labels, cohort.groups, method="hanley-mcneil", resamples=0)
    assert first["observed"] == by_patient.observed
    for column, found in (("patient", by_patient), ("image", by_image), ("hanley_mcneil", paper)):
        assert first[f"p_{column}"] == pytest.approx(found.p, rel=1e-9)
        assert first[f"reference_{column}"] == pytest.approx(found.reference.mean, rel=1e-9)


def test_no_bootstrap_interval_of_a_difference_reaches_zero(repeated):
    assert repeated[["above_zero_image", "above_zero_patient"]].all(axis=None)
    assert repeated[["lo_image", "lo_patient"]].min(axis=None) > 0
    assert (repeated["hi_patient"] > repeated["lo_patient"]).all()


def test_images_make_the_reference_too_small(repeated):
    means = repeated[["observed", "reference_patient", "reference_image"]].mean()
    assert means["reference_image"] < 0.9 * means["reference_patient"]
    # 30 cohorts: the standard error of the mean difference is about a tenth of it.
    assert means["reference_patient"] == pytest.approx(means["observed"], rel=0.3)


def test_repeats_follow_the_seed():
    first = repeat_fair_cohorts(WORLD, cohorts=2, resamples=50, seed=5)
    again = repeat_fair_cohorts(WORLD, cohorts=1, resamples=50, seed=5)
    other = repeat_fair_cohorts(WORLD, cohorts=1, resamples=50, seed=6)
    pd.testing.assert_frame_equal(first.head(1), again)
    assert first["observed"][0] != other["observed"][0]


def test_a_world_with_a_drop_is_refused():
    with pytest.raises(InputError, match=r"planted drop of 0\.1; a fair one has 0"):
        repeat_fair_cohorts(World((100, 100), 0.8, 0.3, drop=0.1), cohorts=1, resamples=50, seed=0)


def test_false_alarms_are_counted_with_wilson_intervals():
    p = [0.01, 0.04, 0.05, 0.5]
    table = pd.DataFrame(
        {
            "p_image": p,
            "p_patient": [0.5] * 4,
            "p_hanley_mcneil": [0.001] * 4,
            "above_zero_image": [True, True, True, False],
            "above_zero_patient": [False] * 4,
        }
    )
    alarms = false_alarms(table, alpha=0.05).set_index("way")
    assert list(alarms.index) == list(WAYS)
    assert alarms["share"].tolist() == [0.75, 0.0, 1.0, 0.5, 0.0]
    for share, lo, hi in zip(alarms["share"], alarms["lo"], alarms["hi"], strict=True):
        wilson = binomtest(round(4 * share), 4).proportion_ci(0.99, method="wilson")
        assert (lo, hi) == pytest.approx((wilson.low, wilson.high), abs=1e-9)


def test_figures_are_readable(units, repeated):
    assert misplaced_texts(draw_intervals(units, true_value=0.8).figure, SMALL) == []
    assert misplaced_texts(draw_fair_differences(repeated, shown=20).figure, SMALL) == []


def test_the_interval_figure_holds_its_table(units):
    shown = draw_intervals(units, true_value=0.8)
    lines = shown.figure.axes[0].lines
    for unit, (colour, marker) in UNITS.items():
        spans = [tuple(line.get_xdata()) for line in lines if to_hex(line.get_color()) == colour]
        spans = [span for span in spans if len(span) == 2]
        assert spans == list(zip(units[f"lo_{unit}"], units[f"hi_{unit}"], strict=True))
        (points,) = [line for line in lines if line.get_marker() == marker]
        assert points.get_xdata().tolist() == units["auroc"].tolist()
    assert [tuple(line.get_xdata()) for line in lines if line.get_linestyle() == "--"] == [(0.8, 0.8)]
    assert f"{units['lo_patient'][0]:.3f} to {units['hi_patient'][0]:.3f}" in shown.summary


def test_the_figure_of_differences_holds_its_table(repeated):
    shown = draw_fair_differences(repeated, shown=20)
    first = repeated.head(20).sort_values("observed", kind="stable")
    axes = shown.figure.axes[0]
    spans = [tuple(line.get_ydata()) for line in axes.lines if len(line.get_xdata()) == 2]
    spans = [span for span in spans if span[0] != span[1]]
    assert spans == list(zip(first["lo_patient"], first["hi_patient"], strict=True))
    (points,) = [line for line in axes.lines if line.get_marker() == "o"]
    assert points.get_ydata().tolist() == first["observed"].tolist()
    assert axes.get_ylim()[0] < 0
    assert f"lowest end of a bootstrap interval {first['lo_patient'].min():.3f}" in shown.summary

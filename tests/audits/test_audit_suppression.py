"""Small cells: nothing below the limit is shown, nor what it could be computed from."""

import re
from html import unescape

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_cohorts import make_cohort

import frame
from frame.audits import audits_of
from frame.audits.report import report_text
from frame.audits.suppression import (
    _hidden,
    hidden_subgroups,
    hides_totals,
    hides_values,
    masked_text,
    shown_count,
    suppressed_frame,
)
from frame.errors import InputError


@pytest.fixture(scope="module")
def rare():
    """Four groups; the last has 24 images, 3 of them positive."""
    c = make_cohort((300, 200, 60, 24))
    labels = c.labels.copy()
    labels[-24:] = [True] * 3 + [False] * 21
    return frame.audit(c.scores, labels, c.groups, c.patients, min_size=20, resamples=100)


def words(html):
    html = re.sub(r"<(svg|style).*?</\1>", " ", html, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def test_nothing_is_hidden_without_a_limit(rare):
    assert hidden_subgroups([rare], 0) == [frozenset()]
    assert "hidden" not in words(report_text([rare]))


def test_a_small_cell_takes_a_second_group_with_it(rare):
    assert hidden_subgroups([rare], 10) == [frozenset({"C", "D"})]
    shown = words(report_text([rare], suppress_below=10))
    assert "D hidden <10 hidden hidden hidden" in shown
    assert "C hidden hidden hidden hidden hidden" in shown
    assert "suppressed (counts below 10" in shown
    assert re.search(r"A 300 \d+ \d+ 300", shown)
    assert "Counts below 10 are suppressed" in shown


def test_few_images_left_out_do_not_follow_from_the_totals():
    c = make_cohort((300, 200, 60))
    groups = c.groups.astype(object)
    groups[:7] = None
    audit = frame.audit(c.scores, c.labels, groups, c.patients, missing="drop", resamples=0)
    assert hides_totals(audit, 10)
    assert not hides_totals(audit, 7)
    # Every group is large; the smallest goes, so that the others and the total rows do not give 7.
    assert hidden_subgroups([audit], 10) == [frozenset({"C"})]
    shown = words(report_text([audit], suppress_below=10))
    assert "all rows hidden hidden hidden hidden" in shown
    assert "553" not in shown
    row = suppressed_frame([audit], 10).iloc[0]
    assert row[["n_images", "n_positive", "n_patients", "n_missing"]].isna().all()
    assert suppressed_frame([audit], 7).iloc[0]["n_images"] == 553


def test_the_values_of_both_ends_go_together(rare):
    unnamed = hides_values(rare, frozenset({"C", "D"}))
    values = rare.table.set_index("group")["value"]
    ends = {values.idxmin(), values.idxmax()}
    assert ends & {"C", "D"}
    assert unnamed == {"C", "D"} | ends
    html = report_text([rare], suppress_below=10)
    for group in unnamed:
        assert f"{values[group]:.3f}" not in words(html)
    assert f"{values[(set('ABCD') - unnamed).pop()]:.3f}" in words(html)


def test_picture_and_alternative_text_hide_too(rare):
    from matplotlib.text import Text

    shown = {t.get_text() for t in rare.plot(suppress_below=10).findobj(Text)}
    assert "<10 / hidden" in shown
    assert "suppressed" in shown
    assert not any(text.startswith("3 /") for text in shown)
    assert "2 of them suppressed" in report_text([rare], suppress_below=10)


def test_table_hides_too(rare):
    row = suppressed_frame([rare], 10).iloc[0]
    assert row["smallest_group"] is pd.NA
    assert pd.isna(row["equity_scaled"])
    assert "counts below 10 and what they follow from are suppressed" in row["flags"]
    assert row["n_images"] == 584
    plain = suppressed_frame([rare], 0).iloc[0]
    assert plain["smallest_group"] == 24
    assert suppressed_frame([rare], 3).iloc[0]["smallest_group"] == 24


def test_reasons_and_notes_lose_their_counts():
    c = make_cohort((60, 6, 5))
    groups = c.groups.astype(object)
    groups[:4] = None
    made = frame.audit(c.scores, c.labels, groups, c.patients, missing="drop", resamples=0)
    assert "(6)" in made.reason
    assert "for 4 of 71" in made.notes[0]
    shown = words(report_text([made], suppress_below=10))
    assert "(6)" not in shown
    assert "(5)" not in shown
    assert "missing for fewer than 10 of 71 images; they are left out" in shown
    row = suppressed_frame([made], 10).iloc[0]
    assert row["n_missing"] is pd.NA
    assert row["reason"] == "one estimable group, and a difference needs two"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (
            "7 pooled degrees of freedom, fewer than 10",
            "fewer than 10 pooled degrees of freedom, fewer than 10",
        ),
        ("1,207 patients have images", "1,207 patients have images"),
        ("3 of 200 images (2 of 40 positives)", "fewer than 10 of 200 images"),
        ("p 0.03; AUROC 0.5", "p 0.03; AUROC 0.5"),
        (
            "no interval: 'C' has 1 patient with a positive",
            "no interval: 'C' has too few patients with a positive",
        ),
    ],
)
def test_masked_text(text, masked):
    assert masked_text(text, 10) == masked
    assert masked_text(text, 0) == text


def test_strata_and_intersections_do_not_give_each_other_away(cohort):
    rng = np.random.default_rng(8)
    view = np.where(rng.random(len(cohort.scores)) < 0.5, "PA", "AP")
    rare_view = (cohort.groups == "C") & (view == "AP")
    view[np.flatnonzero(rare_view)[3:]] = "PA"
    made = frame.audit(cohort.scores, cohort.labels, cohort.groups, cohort.patients, within=view, resamples=0)
    alone = [hidden_subgroups([s], 10)[0] for s in made.strata]
    together = hidden_subgroups([made, *made.strata], 10)
    assert "C" in alone[0]
    assert alone[1] == frozenset()
    assert together[1] == together[2] == alone[0]

    crossed = audits_of(
        cohort.scores,
        cohort.labels,
        {"sex": cohort.groups, "view": view},
        cohort.patients,
        intersections=True,
        resamples=0,
    )
    hidden = hidden_subgroups(crossed, 10)
    assert hidden[0] == hidden[1] == frozenset()
    assert hidden[2] == frozenset(crossed[2].table["group"])
    assert hidden_subgroups([crossed[2]], 10)[0] < hidden[2]


@given(
    positives=st.lists(st.integers(0, 40), min_size=1, max_size=7),
    negatives=st.data(),
    limit=st.integers(1, 15),
)
@settings(max_examples=200, deadline=None)
def test_no_hidden_count_follows_from_the_totals(positives, negatives, limit):
    rest = [negatives.draw(st.integers(0, 60)) for _ in positives]
    table = pd.DataFrame({"group": [f"g{i}" for i in range(len(positives))]})
    table["n_positive"], table["n_negative"] = positives, rest
    table["n_images"] = table["n_positive"] + table["n_negative"]
    repeats = negatives.draw(st.integers(1, 4))
    table["n_patients"] = -(-table["n_images"] // repeats)
    hidden = _hidden(table, limit, False)
    rows = table.set_index("group")
    for group, row in rows.iterrows():
        if group not in hidden:
            assert row.min() >= limit
    left = rows.loc[sorted(hidden)]
    if 0 < len(hidden) < len(rows):
        # What subtraction from the totals gives is a sum of two or more groups, and no small one.
        assert len(hidden) > 1
        assert left.sum().min() >= limit
    small = (rows < limit).any(axis=1)
    assert set(rows.index[small]) <= set(hidden)


def test_shown_counts():
    assert (shown_count(3, 10), shown_count(12, 10, True), shown_count(1234, 10)) == (
        "<10",
        "hidden",
        "1,234",
    )
    assert shown_count(3, 0) == "3"


def test_a_wrong_limit_is_one_sentence(rare):
    with pytest.raises(InputError, match="suppress_below is -1"):
        report_text([rare], suppress_below=-1)
    with pytest.raises(InputError, match=r"suppress_below is 2\.5"):
        rare.plot(suppress_below=2.5)

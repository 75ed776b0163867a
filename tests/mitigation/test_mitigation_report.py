"""The report of a comparison, its words and its figure, and what they do not show."""

import math
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from frame.errors import InputError
from frame.figures.mitigation_changes import LARGER, SMALLER, MethodPicture, draw_methods
from frame.mitigation import fitted_arms
from frame.mitigation.comparison import compare_methods
from frame.mitigation.contract import Outcome, Scores, not_fitted
from frame.mitigation.hiding import hidden_values, masked, suppressed_groups, suppressed_table
from frame.mitigation.registry import METHODS, fit_method
from frame.mitigation.report import report_text
from frame.mitigation.report_figure import drawn
from frame.mitigation.words import measure_words, signed, summary_words

METHODS_SHOWN = ["reweigh", "threshold_shift", "platt", "leace"]


def made(seed=0, patients=900):
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(patients), rng.integers(1, 4, patients))
    n = len(patient)
    sex = rng.choice(["F", "M"], patients)[patient]
    site = rng.choice(["<b>north</b>", "south", "rare"], patients, p=[0.55, 0.40, 0.05])[patient]
    finding = (rng.random(n) < 0.35).astype(int)
    features = rng.normal(size=(n, 5))
    features[:, 0] += finding * np.where(sex == "F", 0.4, 1.8)
    split = np.repeat(["train", "validation", "test"], [300, 250, 350])[patient]
    table = pd.DataFrame({"finding & more": finding, "sex": sex, "site": site, "split": split})
    table["patient"] = [f"canary{p:04d}" for p in patient]
    return features, table


def outcomes(name, unit):
    """Two real methods, one that is degenerate and one that was not fitted."""
    if name == "leace":
        return not_fitted("7 images of group 'rare' are too few")
    if name == "platt":
        flat = [Scores(np.zeros(len(s.ranks)), np.full(len(s.ranks), 0.3)) for s in unit.unmitigated]
        return Outcome(*flat, status="degenerate", reason="it is constant", flags=("1 predictor",))
    return fit_method(name, unit)


@pytest.fixture(scope="module")
def found():
    features, table = made()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitted_arms, "fit_method", outcomes)
        return compare_methods(
            features,
            table["finding & more"],
            table[["sex", "site"]],
            table["split"],
            table["patient"],
            methods=METHODS_SHOWN,
            resamples=400,
        )


@pytest.fixture(scope="module")
def page(found):
    return report_text(found, source="made <up>")


class Reader(HTMLParser):
    """Text, links, ids and open tags of a page."""

    void = frozenset(("meta", "br", "link", "img", "use", "path", "rect", "line", "circle"))

    def __init__(self):
        super().__init__()
        self.open, self.text, self.links, self.ids = [], [], [], []

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.links += [named[k] for k in ("href", "xlink:href", "src") if k in named]
        if "id" in named:
            self.ids.append(named["id"])
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.void:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(page):
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


def words_of(page):
    return " ".join(" ".join(read(page).text).split())


def test_the_page_is_whole_and_needs_no_network(page):
    reader = read(page)
    assert all(link.startswith("#") for link in reader.links)
    assert {link[1:] for link in reader.links} <= set(reader.ids)
    assert len(reader.ids) == len(set(reader.ids))
    assert "http" not in re.sub(r"http://www.w3.org/[\w/.-]*", "", page)
    assert "<script" not in page


def test_names_from_the_data_are_no_markup(page):
    assert "<b>north" not in page
    assert "&lt;b&gt;north&lt;/b&gt;" in page
    assert "Mitigation compared: finding &amp; more by sex and site" in page
    assert "made &lt;up&gt;" in page


def test_what_was_found_comes_first(found, page):
    words = words_of(page)
    lead = summary_words(found)[0]
    assert words.index(lead) < words.index("Every difference before mitigation")
    for sentence in summary_words(found):
        assert " ".join(sentence.split()) in words


def test_every_difference_has_its_section_figure_and_tables(found, page):
    words = words_of(page)
    for measure in ("AUROC", "True positive rate", "False positive rate", "Expected calibration error"):
        for attribute in ("sex", "site"):
            assert words.count(f"{measure} by {attribute} under every method, on test images") == 1
    assert page.count("<svg") == 8
    assert page.count("<figcaption>") == 8
    for attribute in found.attributes:
        for measure in found.measures:
            for sentence in measure_words(found, attribute, measure):
                assert " ".join(sentence.split()) in words


def test_methods_are_explained_and_failures_said(page):
    words = words_of(page)
    for method in METHODS_SHOWN:
        assert " ".join(METHODS[method].sentence.split()) in words
    assert "LEACE was not fitted: 7 images of group 'rare' are too few." in words
    assert "is degenerate: it is constant; no improvement is claimed from its scores." in words
    assert "not fitted: 7 images of group 'rare' are too few" in words
    assert "What it does not say" in words
    assert "Not exceeding" in words or "not exceeding is not fairness" in words


def test_no_patient_is_in_it(page):
    assert "canary" not in page


def test_the_same_comparison_gives_the_same_bytes(found, page):
    assert report_text(found, source="made <up>") == page


def test_to_html_writes_the_report(found, tmp_path):
    path = found.to_html(tmp_path / "r.html")
    assert path.read_text(encoding="utf-8") == report_text(found)
    with pytest.raises(InputError, match="path names a folder"):
        found.to_html(tmp_path)


# -- suppression --------------------------------------------------------------------------------------


def test_small_counts_are_not_in_the_report(found):
    limit = 60
    n_rare = int(found.by_group.query("group == 'rare'")["n_images"].iloc[0])
    assert n_rare < limit
    words = words_of(report_text(found, suppress_below=limit))
    assert f"Counts below {limit} are suppressed, and what they follow from." in words
    assert "fewer than 60 images of group 'rare' are too few" in words
    assert "7 images" not in words
    assert f"/ {n_rare}" not in words


def test_hidden_groups_have_no_value_anywhere(found):
    hidden = found.hidden(60)
    assert hidden["sex"] == frozenset()
    assert "rare" in hidden["site"]
    assert len(hidden["site"]) > 1
    groups = suppressed_groups(found, 60)
    gone = groups[(groups["attribute"] == "site") & groups["group"].isin(hidden["site"])]
    numbers = ["n_images", "n_positive", "n_negative", "n_patients", "value", "lo", "hi", "change"]
    assert gone[numbers].isna().all(axis=None)
    kept = groups[groups["attribute"] == "sex"]
    assert kept["value"].notna().all()
    table = suppressed_table(found, 60)
    site = table[table["attribute"] == "site"]
    assert site["smallest_group"].isna().all()
    assert site["flags"].str.contains("counts below 60 and what they follow from are suppressed").all()
    assert site.loc[site["worst_group"].isin(hidden["site"]), "worst_value"].isna().all()
    pd.testing.assert_frame_equal(suppressed_table(found, 0), found.table)


def test_both_ends_go_where_one_is_hidden():
    values = {"a": 0.1, "b": 0.5, "c": 0.9, "d": math.nan}
    assert hidden_values(values, frozenset({"a"})) == {"a", "c"}
    assert hidden_values(values, frozenset({"b"})) == {"b"}
    assert hidden_values(values, frozenset()) == frozenset()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("kept, 3 positive images", "kept, fewer than 10 positive images"),
        ("12 images", "12 images"),
        ("shifted by 0.003", "shifted by 0.003"),
        ("1,003 images", "1,003 images"),
        ("95 % of them, 5 % not", "95 % of them, 5 % not"),
        ("disease AUROC is 0.030 lower", "disease AUROC is 0.030 lower"),
        ("group t3: 9 images", "group t3: fewer than 10 images"),
    ],
)
def test_small_numbers_in_a_reason(text, shown):
    assert masked(text, 10) == shown
    assert masked(text, 0) == text


# -- words and figure ---------------------------------------------------------------------------------


def test_signs():
    assert [signed(v) for v in (0.0123, -0.0123, 0.0001, -0.0001, 0.0)] == [
        "+0.012", "\N{MINUS SIGN}0.012", "0.000", "0.000", "0.000",
    ]  # fmt: skip


def test_words_count_what_the_table_holds(found):
    changed = found.table[found.table["changes"].notna()]
    moved = changed[changed["changes"].astype(bool)]
    smaller = int((moved["change"] < 0).sum())
    assert summary_words(found)[0] == (
        f"{len(moved)} of {len(changed)} paired changes of a difference (4 methods, 2 attributes, 4 "
        f"measures) are more than chance after correction: {smaller} make it smaller, "
        f"{len(moved) - smaller} larger."
    )
    assert 0 < smaller < len(moved)
    for attribute in found.attributes:
        for measure in found.measures:
            said = " ".join(measure_words(found, attribute, measure))
            own = moved[(moved["attribute"] == attribute) & (moved["measure"] == measure)]
            for line in own.to_dict("records"):
                assert f"{line['name']} {signed(line['change'])} [" in said


def picture(**changes):
    methods = pd.DataFrame(
        {
            "name": ["A", "B", "C", "a longer name that needs two lines of text", "字"],
            "after": [0.05, 0.14, 0.10, math.nan, 0.09],
            "lo": [0.03, 0.12, 0.08, math.nan, math.nan],
            "hi": [0.07, 0.16, 0.12, math.nan, math.nan],
            "changes": [True, True, False, False, False],
            "note": ["", "", "", "not fitted: 字 $x^2$ " + "long " * 30, ""],
        }
    )
    return MethodPicture(
        **({"title": "AUROC by sex", "methods": methods, "before": 0.10, "band": (0.01, 0.06)} | changes)
    )


def test_marks_say_direction_and_whether_it_is_more_than_chance():
    (axes,) = draw_methods(picture()).axes
    marks = {
        float(line.get_xdata()[0]): (line.get_marker(), line.get_markerfacecolor())
        for line in axes.lines
        if line.get_marker() not in ("None", None, "")
    }
    assert marks[0.05] == ("v", SMALLER)
    assert marks[0.14] == ("^", LARGER)
    assert marks[0.10] == ("o", "white")
    assert [text.get_text()[:10] for text in axes.texts] == ["not fitted"]
    assert axes.get_xlim()[0] <= 0.0 < 0.16 < axes.get_xlim()[1]
    assert [tick.get_text() for tick in axes.get_yticklabels()][:3] == ["A", "B", "C"]


def test_a_difference_that_is_not_there_is_drawn_too():
    nothing = picture().methods.assign(after=math.nan, lo=math.nan, hi=math.nan, note="not estimable")
    figure = draw_methods(picture(methods=nothing, before=math.nan, band=(math.nan, math.nan)))
    assert len(figure.axes[0].texts) == 5


def test_the_figure_shows_the_paired_interval(found):
    figure = drawn(found, "sex", "fpr")
    table = found.table.query("attribute == 'sex' and measure == 'fpr' and method == 'threshold_shift'").iloc[
        0
    ]
    ends = [line.get_xdata() for line in figure.axes[0].lines if len(line.get_xdata()) == 2]
    wanted = [table["before"] + table["change_lo"], table["before"] + table["change_hi"]]
    assert any(np.allclose(np.asarray(x, dtype=float), wanted) for x in ends)

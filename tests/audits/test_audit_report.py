"""Reports and pictures: self-contained, readable by a machine that reads aloud, free of rows."""

import math
import os
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from simulated_cohorts import make_cohort

import frame
from frame.audits.report import report_text, write_report
from frame.errors import InputError
from frame.figures.score_audit import OBSERVED, reference_bars
from frame.figures.style import SMALL

VOID = {"meta", "br", "img", "link", "hr", "input", "source"}


class Page(HTMLParser):
    """Tags with their attributes, text, and whether every tag is closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.words = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self):
        return " ".join("".join(self.words).split())


@pytest.fixture(scope="module")
def unequal():
    return make_cohort((400, 300, 12), drop=0.0, seed=4)


@pytest.fixture(scope="module")
def result(unequal):
    return frame.audit(unequal.scores, unequal.labels, unequal.groups, unequal.patients, resamples=100)


@pytest.fixture(scope="module")
def html(result):
    return report_text([result])


def test_report_needs_nothing_from_outside(html):
    page = Page(html)
    for tag, attributes in page.tags:
        assert tag not in ("script", "link", "img", "iframe", "object")
        for name, value in attributes.items():
            if name in ("href", "src", "xlink:href"):
                assert value.startswith("#")
    assert re.findall(r"https?://[^\s\"'<>]+", html.replace("http://www.w3.org/", "")) == []
    assert "@import" not in html
    assert re.findall(r"url\((?!#)", html) == []


def test_report_reads_in_order(html, result):
    words = Page(html).text
    order = [
        "Subgroup audit: AUROC by group",
        result.verdict,
        "What it does not say",
        result.limits[0],
        "The difference and its reference",
        "Subgroups of group",
        "How it was computed",
        f"frame {frame.__version__}",
    ]
    places = [words.index(" ".join(part.split())) for part in order]
    assert places == sorted(places)


def test_report_has_counts_unit_test_seed_and_versions(html, result):
    words = Page(html).text
    table = result.by_group.set_index("group")
    for group in "AB":
        row = table.loc[group]
        shown = f"{group} {row['n_images']} {row['n_positive']} {row['n_negative']} {row['n_patients']} "
        assert f"{shown}{row['value']:.3f} {row['lo']:.3f} to {row['hi']:.3f} ok" in spaced(html)
    assert "not estimable: fewer than 20 images (12)" in words
    for said in ("Unit of sampling", "patient", "one-sided", "Seed", "100 bootstrap resamples", "numpy "):
        assert said in words
    assert f"p, one-sided {result.p:.3f}" in spaced(html)


def spaced(html):
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_report_has_its_look_inside(html):
    assert "prefers-color-scheme: dark" in html
    assert 'name="viewport"' in html
    assert '<html lang="en">' in html
    # The figure follows the page's colours.
    assert OBSERVED not in html[html.index("<svg") :]
    assert "var(--ink)" in html[html.index("<svg") :]


def test_figure_is_read_aloud(html, result):
    (svg,) = [attributes for tag, attributes in Page(html).tags if tag == "svg"]
    assert svg["role"] == "img"
    assert f"the observed difference is {result.observed:.3f}" in svg["aria-label"]
    assert "3 subgroups of group" in svg["aria-label"]
    assert "width" not in svg


def test_labels_are_text(unequal):
    names = {"A": "<script>alert(1)</script>", "B": 'F & "M"', "C": "\x1b[2J$x_1$"}
    groups = pd.Series([names[g] for g in unequal.groups], name="<b>sex</b>")
    made = frame.audit(
        pd.Series(unequal.scores, name="a<i>"),
        unequal.labels,
        groups,
        unequal.patients,
        min_size=1,
        resamples=100,
    )
    text = report_text([made])
    assert {tag for tag, _ in Page(text).tags} & {"script", "b", "i"} == set()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "\x1b" not in text
    assert "$x_1$" in Page(text).text


def test_nothing_of_the_rows_is_in_a_report():
    c = make_cohort((80, 80))
    ids = [f"canary-{i}" for i in range(160)]
    c.scores[7] = 0.123456789
    made = frame.audit(c.scores, c.labels, c.groups, ids, resamples=100)
    text = report_text([made])
    assert "canary" not in text
    assert "0.123456789" not in text


def test_same_audit_same_bytes(result):
    assert report_text([result]) == report_text([result])


def test_many_audits_share_a_page(unequal):
    rng = np.random.default_rng(0)
    view = rng.choice(["PA", "AP", "none"], len(unequal.scores), p=[0.6, 0.39, 0.01])
    made = frame.audit(
        unequal.scores, unequal.labels, unequal.groups, unequal.patients, within=view, resamples=100
    )
    text = report_text([made])
    page = Page(text)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    linked = [a["href"][1:] for tag, a in page.tags if tag == "a"]
    assert linked == ["audit-1", "audit-2", "audit-3", "audit-4"]
    assert set(linked) <= set(ids)
    used = re.findall(r"(?:href=\"#|url\(#)([^\")]+)", text)
    assert set(used) <= set(ids)
    assert page.text.startswith("Subgroup audit: 4 differences")


def test_to_html_writes_one_whole_file(result, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old", encoding="utf-8")
    assert result.to_html(path) == path.resolve()
    assert path.read_text(encoding="utf-8").endswith("</html>\n")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(InputError, match="its folder does not exist"):
        result.to_html(tmp_path / "none" / "report.html")
    with pytest.raises(InputError, match="names a folder"):
        result.to_html(tmp_path)


def test_a_failure_leaves_the_old_report(result, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old", encoding="utf-8")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(InputError, match="no space left"):
        write_report([result], path)
    assert path.read_text(encoding="utf-8") == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_not_estimable_has_a_report_and_a_picture(tmp_path):
    c = make_cohort((40,))
    made = frame.audit(c.scores, c.labels, c.groups, c.patients, resamples=100)
    path = made.to_html(tmp_path / "r.html")
    words = Page(path.read_text(encoding="utf-8")).text
    assert made.verdict in words
    assert made.plot().axes


def test_a_missing_matplotlib_is_one_sentence(result, monkeypatch):
    for name in list(sys.modules):
        if name.startswith("frame.figures"):
            monkeypatch.delitem(sys.modules, name)
    for name in [m for m in sys.modules if m.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"needs matplotlib; .*'frame-audit\[plots\]'"):
        result.plot()


# -- the picture ------------------------------------------------------------------------------------


def test_picture_shows_the_audit(result):
    sys_path_texts = drawn(result.plot())
    assert f"observed {result.observed:.3f}" in sys_path_texts
    assert f"as large or larger (p {result.p:.3f})" in sys_path_texts
    for group in "ABC":
        assert group in sys_path_texts
        n = int((result.table["group"] == group).idxmax())
        counts = f"{result.table['n_positive'][n]} / {result.table['n_images'][n]}"
        assert counts in sys_path_texts
    assert "not estimable: fewer than 20 images (12)" in sys_path_texts


def drawn(figure):
    from matplotlib.text import Text

    return {t.get_text() for t in figure.findobj(Text) if t.get_visible()}


def test_picture_marks_exceeding_by_filling(unfair, result):
    exceeding = frame.audit(unfair.scores, unfair.labels, unfair.groups, unfair.patients, resamples=0)
    marks = {}
    for name, one in (("exceeds", exceeding), ("does not", result)):
        (mark,) = [line for line in one.plot().axes[0].lines if line.get_marker() == "D"]
        marks[name] = mark.get_markerfacecolor()
    assert marks == {"exceeds": OBSERVED, "does not": "white"}


def test_picture_is_readable(result, unequal, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    from drawn_text import misplaced_texts

    assert misplaced_texts(result.plot(), SMALL) == []
    names = {
        "A": "Hispanic or Latino, any race",
        "B": "Native Hawaiian or other Pacific Islander",
        "C": "日本 $\\frac$",
    }
    long = frame.audit(
        unequal.scores, unequal.labels, [names[g] for g in unequal.groups], min_size=1, resamples=100
    )
    assert misplaced_texts(long.plot(), SMALL) == []


def test_bars_hold_all_of_the_law():
    law = frame.fair_reference(0.8, [100, 60], None, "tpr")
    bars = reference_bars(law.exceedance, 0.05, law.quantile(0.999))
    assert bars["probability"].sum() == pytest.approx(1.0)
    assert np.isclose(bars["lo"], 0.05).any()
    reaching = bars["probability"][bars["lo"] >= 0.05 - 1e-9].sum()
    assert reaching == pytest.approx(law.exceedance(0.05))
    for observed in (0.0, 1e-6, 0.4, 1.0):
        bars = reference_bars(law.exceedance, observed, 0.15)
        assert bars["probability"].sum() == pytest.approx(1.0)
        assert len(bars) < 2000
        assert bars["hi"].iloc[-1] >= observed
        assert not math.isnan(bars["hi"].iloc[-1])

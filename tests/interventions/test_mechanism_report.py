"""The report and the figure of step two: whole, private, and honest about what was not run."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from mechanism_worlds import QUICK, asked, cohort, planted_verdict

from frame.audits.suppression import hidden_subgroups
from frame.errors import InputError
from frame.interventions.mechanism_report import report_text
from frame.interventions.procedure import mechanism
from frame.interventions.strength_tables import smallest_p
from frame.interventions.verdict_hiding import hidden_in_splits, suppressed_row, suppressed_strengths
from frame.interventions.verdict_words import trend_words


class Page(HTMLParser):
    """Collects text and checks that every element is closed."""

    VOID = frozenset({"meta", "br"})

    def __init__(self, page):
        super().__init__()
        self.open, self.text, self.skip, self.links = [], [], 0, []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.links += [value for name, value in attrs if name in ("src", "href") and value]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)


def text_of(page):
    parsed = Page(page)
    assert parsed.open == []
    assert all(link.startswith("#") for link in parsed.links)
    return re.sub(r"\s+", " ", " ".join(parsed.text))


def test_the_report_says_everything(tmp_path):
    verdict = planted_verdict(2)
    path = verdict.to_html(tmp_path / "report.html")
    page = path.read_text(encoding="utf-8")
    said = text_of(page)
    for sentence in (*verdict.sentences, *verdict.caveats, *verdict.notes):
        assert sentence in said
    assert said.index("Moves with entanglement, not with decodability") < said.index("What it does not say")
    assert page.count("<svg") == 3
    assert len(set(re.findall(r'id="([^"]+)"', page))) == len(re.findall(r'id="([^"]+)"', page))
    for name in ("Decodability", "Entanglement", "Whitened entanglement (ours)", "Step one", "Settings"):
        assert name in said
    assert "precondition holds" in said
    assert "cannot be expected below 1/3 over 3 strengths (1/6 one-sided), and it reads" in said
    assert "1/12" not in said
    assert "http" not in page.replace("http://www.w3.org", "")
    assert report_text(verdict) == page


def test_the_trend_test_is_told_for_the_strengths_that_were_run():
    rows = [
        {
            "operator": operator,
            "rho": 1.0,
            "p": 0.01,
            "n_strengths": n,
            "smallest_p": smallest_p(n),
            "status": "ok",
            "reason": "",
        }
        for operator, n in (("decodability", 4), ("entanglement", 6), ("whitened entanglement", 8))
    ]
    assert (
        "below 1/12 over 4 strengths (1/24 one-sided) and 1/360 over 6 strengths (1/720 one-sided), and it"
        in trend_words(rows[:2])[-1]
    )
    assert (
        "below 1/360 over 6 strengths (1/720 one-sided) and 1/1,001 over 8 strengths,"
        in (trend_words(rows[1:])[-1])
    )
    none = trend_words([rows[0] | {"status": "not estimable", "reason": "it has 2 pairs, 3 needed"}])
    assert none[-1] == "The paper decides by this test, which stands beside and decides nothing here."


def test_a_report_that_stopped_at_the_gate(tmp_path):
    verdict = asked(cohort(number=1))
    said = text_of(verdict.to_html(tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "Consistent with exact fairness" in said
    assert "step two was not run" in said
    assert "trend test" not in said
    assert verdict.plot().get_axes()


def test_markup_in_names_stays_text(tmp_path):
    drawn = cohort(2, 0.6)
    groups = pd.Series(np.where(drawn.groups == "A", "<b>A</b>", "x&y"), name="<script>")
    verdict = mechanism(
        drawn.features,
        pd.Series(drawn.labels, name="</main>"),
        groups,
        drawn.split,
        patients=drawn.patients,
        **QUICK | {"whitened": False},
    )
    page = report_text(verdict, source="</style>")
    assert "<script>" not in page
    assert "<b>A" not in page
    text_of(page)


def canary_verdict():
    drawn = cohort(3, 0.6)
    ids = np.asarray([f"CANARY{number}" for number in drawn.patients], dtype=object)
    return mechanism(
        drawn.features,
        pd.Series(drawn.labels, name="finding"),
        pd.Series(drawn.groups, name="race"),
        drawn.split,
        patients=ids,
        **QUICK | {"whitened": False},
    )


def test_no_patient_is_in_anything(tmp_path):
    verdict = canary_verdict()
    tables = (verdict.strengths, verdict.changes, verdict.trend, verdict.directions, verdict.splits)
    for said in (
        report_text(verdict),
        repr(verdict),
        *(table.to_csv() for table in (*tables, verdict.to_frame())),
    ):
        assert "CANARY" not in said


def test_small_counts_are_hidden():
    verdict = canary_verdict()
    smallest = int(verdict.step_one.table["n_positive"].min())
    limit = smallest + 1
    page = text_of(report_text(verdict, suppress_below=limit))
    assert f"<{limit}" in page
    assert "of the groups by" not in page
    for row in verdict.splits.to_dict("records"):
        if row["n_positive"] < limit:
            assert not re.search(
                rf"\b{row['group']} (?:\+|−)1 {row['n_images']:,} {row['n_positive']} ", page
            )
    table = suppressed_strengths(verdict, limit)
    groups = table[table["quantity"] == "subgroup_value"]
    assert groups["value"].isna().all()
    assert groups["n_images"].isna().all()
    assert (groups["status"] == "suppressed").all()
    counts = table[["n_images", "n_positive", "n_patients"]]
    assert not ((counts > 0) & (counts < limit)).fillna(False).to_numpy(dtype=bool).any()
    pd.testing.assert_frame_equal(suppressed_strengths(verdict, 0), verdict.strengths)
    assert suppressed_row(verdict, 10**6)["n_images"].isna().all()
    assert suppressed_row(verdict, 5)["verdict"].item() == verdict.verdict


def test_a_group_that_is_small_in_training_alone_is_hidden_with_others():
    verdict = canary_verdict()
    splits = verdict.splits.copy()
    group = splits["group"].iloc[0]
    small = (splits["split"] == "train") & (splits["group"] == group)
    splits.loc[small, ["n_images", "n_positive", "n_patients"]] = [54, 4, 54]
    notes = (
        f"Excluded on request: 120 images of 'race' ('X' 116, 'Y' {4}).",
        f"{group} has one training image and was left out",
        "300 of 494 training images were drawn (cap, seed 0), the same at every strength",
    )
    changed = replace(verdict, splits=splits, notes=notes)
    assert hidden_in_splits(changed, 0) == frozenset()
    limit = 5
    assert hidden_subgroups([verdict.step_one], limit)[0] == frozenset()
    hidden = hidden_in_splits(changed, limit)
    assert group in hidden
    assert len(hidden) > 1
    page = text_of(report_text(changed, suppress_below=limit))
    for row in splits[splits["group"].isin(hidden)].to_dict("records"):
        assert not re.search(rf"\b{row['group']} (?:\+|−)1 [^ ]*{row['n_images']:,} ", page)
    assert "116" not in page
    assert "one training image" not in page
    assert "counts below 5 are hidden" in page
    assert "300 of 494 training images were drawn" in page


@pytest.mark.parametrize("operators", [1, 2, 3])
def test_the_figure_shows_every_quantity(operators):
    from frame.interventions.mechanism_report import drawn
    from frame.interventions.strength_tables import OPERATORS

    figure = drawn(planted_verdict(2), OPERATORS[:operators])
    panels = figure.get_axes()
    assert len(panels) == 5 * operators
    strengths = [label.get_text() for label in panels[0].get_xticklabels()]
    assert strengths == ["0", "0.5", "1"]


def test_the_figure_says_what_was_not_run():
    verdict = asked(cohort(2, 0.6), entanglement_strengths=(0, 8, 64), whitened=False, geometry=False)
    figure = verdict.plot()
    words = [text.get_text() for axes in figure.get_axes() for text in axes.texts]
    assert words == ["not run", "not run"]


def test_where_it_cannot_be_written(tmp_path):
    with pytest.raises(InputError, match="its folder does not exist"):
        planted_verdict(2).to_html(tmp_path / "nowhere" / "report.html")

"""Reports: they say what the labels say, and name people so that they can be scrubbed."""

from __future__ import annotations

import numpy as np
import pytest

from frame.cohorts.phantom.report_text import PEOPLE, Person, Report, full_text, make_report
from frame.cohorts.report_sections import sections_of_text
from frame.cohorts.report_table import report_table
from frame.cohorts.reports import scrub
from frame.cohorts.schema import FINDINGS

CHEST = FINDINGS["chest"]
NOBODY = Person(float("nan"), None, None)


def _report(seed, codes=None, person=NOBODY, severity=0.5):
    said = {**dict.fromkeys(CHEST), **(codes or {})}
    return make_report(said, dict.fromkeys(CHEST, severity), person, "AP", np.random.default_rng(seed))


def test_blank_findings_are_not_mentioned():
    for seed in range(40):
        report = _report(seed)
        assert report.findings == ""
        assert report.impression in ("", "No acute cardiopulmonary process.")


def test_positive_denied_and_doubted():
    both = {True: [], False: []}
    for seed in range(60):
        report = _report(seed, {"pneumothorax": 1, "pleural_effusion": 0, "edema": -1}, severity=0.9)
        text = f"{report.findings} {report.impression}"
        assert "large pneumothorax" in text
        assert "ossible mild pulmonary edema" in text
        both[bool(report.findings)].append(report.findings)
    assert both[True]
    assert both[False]  # some reports have an impression only
    for findings in both[True]:
        assert "No pleural effusion" in findings or "no pleural effusion" in findings or "clear" in findings


def test_a_weak_finding_is_called_so():
    text = _report(0, {"pneumothorax": 1}, severity=0.3)
    assert "small apical pneumothorax" in text.findings + text.impression


def test_denied_findings_share_a_sentence():
    texts = [_report(seed, dict.fromkeys(CHEST, 0)).findings for seed in range(30)]
    assert any(" or " in text and "There is no " in text for text in texts)
    assert all("pneumothorax" not in text or "o " in text for text in texts)


def test_one_label_changes_one_sentence():
    """The same numbers are used whatever the labels."""
    seen = 0
    for seed in range(30):
        more = _report(seed, {"fracture": 1, "edema": 1, "pneumonia": -1}).findings
        less = _report(seed, {"fracture": 1, "pneumonia": -1}).findings
        if more:
            gone = [one for one in more.split(". ") if one.rstrip(".") not in less]
            assert len(gone) == 1
            assert "edema" in gone[0]
            seen += 1
    assert seen > 20


@pytest.mark.parametrize("race", list(PEOPLE))
def test_people_are_named_and_scrubbed(race):
    named = 0
    for seed in range(150):
        report = _report(seed, {"edema": 1}, Person(67.0, "female", race))
        text = f"{report.findings} {report.impression}"
        named += "woman" in text
        scrubbed = scrub(text).text.casefold()
        left = set(scrubbed.replace("-", " ").split())
        assert not left & {"woman", "67", "caucasian", "asian", "african", "hispanic"}
        assert "edema" in scrubbed
    assert 25 < named < 75


def test_full_text_is_cut_at_its_headings():
    report = Report("CHEST (PORTABLE AP)", "man with cough.", "Clear lungs.", "Normal chest.")
    assert sections_of_text(full_text(report)) == ("Clear lungs.", "Normal chest.")
    only = Report("CHEST (PORTABLE AP)", "man with cough.", "", "Normal chest.")
    assert sections_of_text(full_text(only)) == ("", "Normal chest.")


@pytest.mark.parametrize("source", ["mimic_cxr", "chexpert"])
def test_reports_are_read_back(tables, manifests, read, populations, source):
    files, manifest = read(tables, source, images=False)
    found = report_table(files, manifest.table)
    assert len(found) > 0.97 * len(manifest.table)
    codes = manifest.table.set_index("image_id").loc[found["image_id"], "pneumothorax"]
    text = found["text"].str.casefold()
    positive = (codes == 1).to_numpy(dtype=bool)
    assert text[positive].str.contains("pneumothorax").all()
    assert not text[(codes == -2).to_numpy(dtype=bool)].str.contains("pneumothorax").any()
    assert not text[~positive].str.contains("there is a (?:small apical|large) pneumothorax").any()
    assert (found["scrubbed"] != found["text"]).mean() > 0.2

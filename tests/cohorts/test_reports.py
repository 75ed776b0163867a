"""Reports: sections, demographic terms removed and put in front; all sentences here are invented."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frame.cohorts import reports
from frame.cohorts.adjudicated import AGE_BANDS
from frame.cohorts.report_sections import HEADINGS, sections_of_columns, sections_of_text
from frame.cohorts.reports import AGE_WORDS, RACES, SEXES, amplify, scrub, scrub_reports, terms_version
from frame.errors import InputError
from frame.tables import load_table

REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "real" / "reports" / "ecgen-radiology"
needs_reports = pytest.mark.skipif(not REAL.is_dir(), reason="the 100 real reports are not here")


# --- sections

ARCHIVE = """                                 FINAL REPORT
 EXAMINATION:  CHEST (PA AND LAT)

 INDICATION:  ___ year old woman with cough  // pneumonia?

 TECHNIQUE:  Two views.

 COMPARISON:  None.
 {body}"""


@pytest.mark.parametrize(
    ("body", "findings", "impression"),
    [
        (
            "\n FINDINGS:\n\n Clear lungs.\n No effusion.\n\n IMPRESSION:\n\n Normal.\n",
            "Clear lungs. No effusion.",
            "Normal.",
        ),
        ("\n IMPRESSION:  Normal.", "", "Normal."),
        ("\n FINDINGS:  Clear lungs.", "Clear lungs.", ""),
        ("\n FINDINGS AND IMPRESSION:  Small effusion.", "Small effusion.", ""),
        ("\n FINDINGS/IMPRESSION:  Small effusion.", "Small effusion.", ""),
        ("\n FINDINGS:  Effusion.\n CONCLUSION:  Same.", "Effusion.", "Same."),
        ("\n Findings: Effusion.\n Impression: Same.", "Effusion.", "Same."),
        ("\n IMPRESSION:  Same.\n FINDINGS:  Effusion.", "Effusion.", "Same."),
        (
            "\n FINDINGS:\n LUNGS:  Clear.\n HEART:  Normal.\n IMPRESSION:  Fine.",
            "LUNGS: Clear. HEART: Normal.",
            "Fine.",
        ),
        ("\n FINDINGS:  A.\n IMPRESSION:  B.\n ADDENDUM:  C.\n IMPRESSION:  D.", "A.", "B. D."),
        ("\n IMPRESSION:  Fine.\n RECOMMENDATION(S):  Repeat.\n NOTIFICATION:  Told by phone.", "", "Fine."),
        ("\n PORTABLE AP CHEST RADIOGRAPH:  Low volumes.\n IMPRESSION:  Same.", "Low volumes.", "Same."),
        ("\n CHEST, PA AND LATERAL:  Other.\n FINDINGS:  Clear.", "Clear.", ""),
        (
            "\n\n The lungs are clear.\n\n There is no effusion.\n",
            "The lungs are clear. There is no effusion.",
            "",
        ),
        ("", "", ""),
        ("\n FINDINGS:\n IMPRESSION:  Fine.", "", "Fine."),
        ("\n FINDINGS:\r\n\r\n Clear.\r\n IMPRESSION: Fine.", "Clear.", "Fine."),
    ],
)
def test_sections_of_an_archive_report(body, findings, impression):
    assert sections_of_text(ARCHIVE.format(body=body)) == (findings, impression)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ("", "")),
        ("  \n ", ("", "")),
        ("No acute process.", ("No acute process.", "")),
        ("FINAL REPORT\n\nNo acute process.\n\nHeart normal.", ("No acute process. Heart normal.", "")),
        ("INDICATION: cough", ("", "")),
        (
            "NARRATIVE: x.  FINDINGS: Clear.  IMPRESSION: 1. Fine. END OF IMPRESSION: y",
            ("Clear.", "1. Fine."),
        ),
        (
            "The impression: of a rib on the lung. Findings: none new.",
            ("The impression: of a rib on the lung. Findings: none new.", ""),
        ),
        ("FINDINGS :Clear.\nIMPRESSION : Fine.", ("Clear.", "Fine.")),
    ],
    ids=[
        "empty",
        "blank",
        "one paragraph",
        "paragraphs",
        "indication only",
        "one line",
        "words in a sentence",
        "blank before the colon",
    ],
)
def test_sections_of_other_texts(text, expected):
    assert sections_of_text(text) == expected


def test_each_heading_begins_what_the_list_says():
    for kind, names in HEADINGS.items():
        for name in names:
            for heading in (name.upper(), name.capitalize()):
                findings, impression = sections_of_text(
                    f"FINDINGS: One.\nIMPRESSION: Two.\n{heading}: Three."
                )
                expected = {"findings": ("One. Three.", "Two."), "impression": ("One.", "Two. Three.")}
                assert (findings, impression) == expected.get(kind, ("One.", "Two.")), heading


@given(st.text(alphabet="FINDGSmpreon: \n.ABCHT-/", max_size=80))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_any_text_has_sections_made_of_its_words(text):
    for section in sections_of_text(text):
        assert set(section.split()) <= set(text.split()) | set(re.split(r"[\s:]+", text)) | _tails(text)
        assert section == " ".join(section.split())


def _tails(text):
    """Words cut at a colon that ends a heading."""
    return {word[at + 1 :] for word in text.split() for at, letter in enumerate(word) if letter == ":"} | {
        word[:at] for word in text.split() for at in range(len(word))
    }


def test_a_long_line_in_capitals_is_cut_in_time():
    assert sections_of_text("A CHEST " * 20_000)[1] == ""


def test_sections_given_as_columns():
    findings = pd.Series(["Clear\n lungs.", np.nan, np.nan, np.nan], index=[3, 1, 2, 0], dtype="str")
    impression = pd.Series([np.nan, "Fine.", np.nan, np.nan], index=findings.index, dtype="str")
    whole = pd.Series(["FINDINGS: No.", "FINDINGS: No.", "IMPRESSION: Cut.", np.nan], index=findings.index)
    table = sections_of_columns(findings, impression, whole)
    assert table.index.equals(findings.index)
    assert table["findings"].tolist() == ["Clear lungs.", "", "", ""]
    assert table["impression"].tolist() == ["", "Fine.", "Cut.", ""]
    assert sections_of_columns(findings, impression)["impression"].tolist() == ["", "Fine.", "", ""]
    with pytest.raises(InputError, match="must belong to the same rows"):
        sections_of_columns(findings, impression.reset_index(drop=True))


# --- the list of terms


def test_the_list_has_one_version_and_its_expressions_work():
    terms = load_table("demographic_terms")
    assert terms["version"].unique().tolist() == [terms_version()] == ["1"]
    assert set(terms["kind"]) == {"sex", "race", "ethnicity", "age"}
    assert set(terms["form"]) == {"word", "pattern", "keep"}
    words = terms.loc[terms["form"] != "pattern", "term"]
    assert (words == words.str.lower()).all()
    assert words.str.fullmatch(r"[a-z0-9/.'-]+( [a-z0-9-]+)*").all()
    for term in terms.loc[terms["form"] == "pattern", "term"]:
        assert re.compile(term).match("") is None


def test_every_word_of_the_list_is_removed_in_any_case():
    terms = load_table("demographic_terms")
    for word in terms.loc[terms["form"] == "word", "term"]:
        for shown in (
            word,
            word.upper(),
            word.capitalize(),
            word.replace("-", "\u2011"),
            word.replace(" ", "\n"),
        ):
            assert scrub(f"Cough, {shown} , fever").text == "Cough, fever", shown


def test_every_kept_phrase_stays_and_holds_a_term():
    terms = load_table("demographic_terms")
    for phrase in terms.loc[terms["form"] == "keep", "term"]:
        text = f"The {phrase} is seen."
        assert scrub(text) == reports.Scrubbed(text, 0)
    expression = reports._expression(
        {"word_x": reports._words(terms.loc[terms["form"] == "word", "term"].tolist())}
    )
    held = [phrase for phrase in terms.loc[terms["form"] == "keep", "term"] if not expression.search(phrase)]
    assert held == NOT_WORDS


#: Phrases in which a title or an age, not a word, would be found, or that stand for a family of spellings.
NOT_WORDS = ["her2", "men1", "men2", "childs pugh"]


def test_a_list_of_two_versions_is_refused(monkeypatch):
    table = load_table("demographic_terms")
    table.loc[3, "version"] = "2"
    monkeypatch.setattr(reports, "load_table", lambda _: table)
    with pytest.raises(InputError, match="the rows are of 2 versions"):
        reports._rules.__wrapped__()


def test_a_pattern_that_matches_nothing_is_refused():
    with pytest.raises(InputError, match="a pattern matches the empty text"):
        reports._patterns([r"\d*"])


# --- scrubbing


@pytest.mark.parametrize(
    ("text", "left", "n_removed"),
    [
        ("58-year-old woman, cough.", "cough.", 2),
        ("Cough in a 58 year old male.", "Cough in a.", 2),
        ("___ year old M w/ fever", "w/ fever", 1),
        ("XXXX-year-old female with cough", "with cough", 2),
        ("58-year-old-male: cough", ": cough", 2),
        ("58\u2011year\u2011old man; cough", "cough", 2),
        ("Fifty-eight-year-old lady with pain", "with pain", 2),
        ("58 y/o F with pain", "with pain", 1),
        ("58yoM with pain", "with pain", 1),
        ("58 y.o. with pain", "with pain", 1),
        ("58M with pain", "with pain", 1),
        ("58F with pain", "with pain", 1),
        ("58 yr F, pain", "pain", 1),
        ("___F with pain", "with pain", 1),
        ("Pain. Patient aged 58 years.", "Pain. Patient.", 1),
        ("Age: 58. Sex: F. Pain.", "Pain.", 2),
        ("3-month-old boy, cough", "cough", 2),
        ("In her late 60s, smoker", "In, smoker", 1),
        ("Woman's left breast", "left breast", 1),
        ("She's in pain. He'll return.", "in pain. return.", 2),
        ("African-American, Hispanic/Latino or Asian?", "or?", 3),
        ("Non-Hispanic white patient", "patient", 2),
        ("Cough (male), fever", "Cough, fever", 1),
        ("Clear lungs. 58-year-old man. No effusion.", "Clear lungs. No effusion.", 2),
        ("Normal female pelvis", "Normal pelvis", 1),
        ("male", "", 1),
        ("Cough, male, smoker", "Cough, smoker", 1),
        ("Elderly, frail", "frail", 1),
        ("Mr. ___ has a cough. MR of the spine and MS.", "___ has a cough. MR of the spine and MS.", 1),
        ("MALE WITH COUGH", "WITH COUGH", 1),
    ],
)
def test_terms_are_removed(text, left, n_removed):
    assert scrub(text) == reports.Scrubbed(left, n_removed)


@pytest.mark.parametrize(
    "text",
    [
        "The mandible and the manubrium are intact in this human.",
        "Womanizer, whitening, blackish, maleolus, femaleness, boycott, heal, shear, hither.",
        "An age-indeterminate fracture, with age-related change.",
        "White matter and white blood cells; the bundle of His; a man-made device.",
        "Child-Pugh B; HER-2; MEN 1.",
        "A 3 week old rib fracture and a 10 day old drain.",
        "A 28F chest tube and a 14 F catheter, 3 mm, saturation in the 90s, 58 F in the room.",
        "Adult respiratory distress syndrome. Lady Windermere syndrome.",
        "Breast, prostate, pregnancy, pediatric, senile.",
        "  Two blanks,\n\n lines ,and odd ( marks ) stay .",
        "",
    ],
)
def test_a_text_without_terms_is_unchanged(text):
    assert scrub(text) == reports.Scrubbed(text, 0)


VOCABULARY = [
    *(
        "58-year-old",
        "58",
        "year",
        "old",
        "M",
        "F",
        "male",
        "african",
        "american",
        "white",
        "matter",
        "his",
        "bundle",
    ),
    *(
        ",",
        ".",
        "-",
        "/",
        "(",
        ")",
        "with",
        "cough",
        "man",
        "-made",
        "non-",
        "hispanic",
        "\n",
        "aged",
        "to",
        "'s",
        ":",
    ),
]


@given(st.lists(st.sampled_from(VOCABULARY), max_size=14), st.sampled_from(["", " "]))
@settings(max_examples=400, deadline=None, derandomize=True)
def test_after_scrubbing_no_term_remains(words, joint):
    once = scrub(joint.join(words))
    assert scrub(once.text) == reports.Scrubbed(once.text, 0)
    if once.n_removed == 0:
        assert once.text == joint.join(words)


def test_many_reports_at_once():
    texts = pd.Series(["58-year-old white woman, cough.", np.nan, "Clear lungs."], index=[7, 3, 5])
    found = scrub_reports(texts)
    assert found.texts.tolist() == ["cough.", "", "Clear lungs."]
    assert found.texts.index.tolist() == [7, 3, 5]
    assert (found.n_changed, found.version) == (1, "1")
    assert found.removed.set_index("kind")["n_removed"].to_dict() == {
        "sex": 1,
        "race": 1,
        "ethnicity": 0,
        "age": 1,
    }


# --- amplifying


def test_one_sentence_is_put_in_front():
    text = "Clear lungs."
    assert amplify(text, "White", "male", "<40") == "White male patient aged under 40 years. Clear lungs."
    assert amplify(text, race="Asian") == "Asian patient. Clear lungs."
    assert amplify(text, sex="female", race=np.nan, age_band="") == "Female patient. Clear lungs."
    assert amplify(text, age_band=">=80") == "Patient aged 80 years or older. Clear lungs."
    assert amplify(text, race="Other") == "Other-race patient. Clear lungs."
    assert amplify("", sex="male") == "Male patient."


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, ""], ids=["None", "NaN", "NA", "empty"])
def test_without_any_part_the_text_is_unchanged(missing):
    assert amplify("Clear lungs. ", missing, missing, missing) == "Clear lungs. "


@pytest.mark.parametrize("race", [*RACES, None])
@pytest.mark.parametrize("sex", [*SEXES, None])
@pytest.mark.parametrize("band", [*AGE_BANDS, None])
def test_scrubbing_takes_away_what_amplifying_adds(race, sex, band):
    amplified = amplify("Clear lungs.", race, sex, band)
    assert scrub(amplified).text in ("Clear lungs.", "patient. Clear lungs.", "Patient. Clear lungs.")
    assert amplified.endswith("Clear lungs.")
    assert amplified.count(".") == 1 + ((race, sex, band) != (None, None, None))


def test_the_age_bands_are_those_of_the_cohorts():
    assert list(AGE_WORDS) == list(AGE_BANDS)


@pytest.mark.parametrize(
    ("part", "value"), [("race", "white"), ("sex", "F"), ("age_band", "60-80"), ("sex", 1)], ids=str
)
def test_an_unknown_part_is_refused(part, value):
    with pytest.raises(InputError, match=f"{part} is {value!r}; it must be one of"):
        amplify("Clear lungs.", **{part: value})


# --- the real reports, read and changed in memory only


class Texts(list):
    """Texts; a failing test shows their number and no text."""

    def __repr__(self):
        return f"{len(self)} texts"


def real(*labels):
    texts = Texts()
    for path in sorted(REAL.glob("*.xml")):
        root = ElementTree.parse(path).getroot()
        parts = {part.get("Label"): part.text or "" for part in root.iter("AbstractText")}
        texts.append(" ".join(parts.get(label, "") for label in labels))
    return texts


@needs_reports
def test_no_sex_and_no_age_remains_in_real_reports():
    indications = real("INDICATION")
    assert len(indications) == 100
    named = re.compile(
        r"\b(?:fe)?male\b|\b(?:wo)?man\b|\bgentleman\b|\blady\b|\bgirl\b|\bboy\b", re.IGNORECASE
    )
    assert sum(bool(named.search(text)) for text in indications) >= 55
    aged = re.compile(r"\byears?[- ]old\b", re.IGNORECASE)
    assert sum(bool(aged.search(text)) for text in indications) >= 55
    scrubbed = Texts(scrub(text).text for text in indications)
    assert sum(bool(named.search(text) or aged.search(text)) for text in scrubbed) == 0
    assert sum(scrub(text).n_removed > 0 for text in scrubbed) == 0


@needs_reports
def test_real_findings_lose_terms_only():
    texts = real("FINDINGS", "IMPRESSION")
    changed = sum(scrub(text).text != text for text in texts)
    removed = sum(scrub(text).n_removed for text in texts)
    assert changed <= 5  # hardly any names a person
    assert removed <= 8
    kept = sum(len(scrub(text).text) for text in texts) / sum(map(len, texts))
    assert kept > 0.999


@needs_reports
def test_real_sections_are_cut_from_a_text_with_headings():
    findings, impressions = real("FINDINGS"), real("IMPRESSION")
    assert sum(not text for text in findings) == 20
    whole = Texts(
        f"INDICATION: {i}\n\nFINDINGS: {f}\n\nIMPRESSION: {m}\n"
        for i, f, m in zip(real("INDICATION"), findings, impressions, strict=True)
    )
    cut = Texts(sections_of_text(text) for text in whole)
    expected = Texts(
        (" ".join(f.split()), " ".join(m.split())) for f, m in zip(findings, impressions, strict=True)
    )
    assert sum(a != b for a, b in zip(cut, expected, strict=True)) == 0


@needs_reports
def test_real_reports_get_one_sentence():
    for text in real("FINDINGS", "IMPRESSION"):
        amplified = amplify(text, "Black", "female", "40-<60")
        sentence, _, rest = amplified.partition(". ")
        assert sentence == "Black female patient aged 40 to 59 years"
        assert rest == text, "the text was changed"

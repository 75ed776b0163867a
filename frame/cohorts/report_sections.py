"""Findings and impression of a radiograph report given as free text.

MIMIC-CXR releases its reports as text with headings in capitals, as other archives do. Its users cut them at
the headings, and where a report has neither findings nor an impression they take what stands below the first
blank line of its last section (the authors' own section parser does so). The rules here are the same in
substance, written anew:

* A heading is one of the names in :data:`HEADINGS` followed by a colon: in any case at the start of a line,
  in capitals also within one. Other words with a colon, such as ``LUNGS:`` in a structured report, stay text
  of the section that they stand in.
* What stands under a joint heading (``FINDINGS AND IMPRESSION:``) is given once, as findings, so that the two
  parts put together do not repeat it. ``CONCLUSION:`` and ``SUMMARY:`` are an impression.
* A heading that names the picture (``PORTABLE AP CHEST RADIOGRAPH:``) begins the findings where the report
  has no heading of that name.
* Without findings and impression: the paragraphs below the first one of the last section are the findings. A
  text of one paragraph without any heading is taken whole; one under a heading such as ``INDICATION:`` is not
  taken.

Runs of white space become one blank. Several sections of one kind (an addendum) follow each other.
"""

from __future__ import annotations

import re
from typing import Final

import pandas as pd

from frame.errors import InputError

__all__ = ["HEADINGS", "sections_of_columns", "sections_of_text"]

#: What each known heading begins; ``other`` ends the section before it and is left out.
HEADINGS: Final[dict[str, tuple[str, ...]]] = {
    "findings": (
        *("findings", "finding", "findings and impression", "findings/impression", "findings / impression"),
        *("findings/ impression", "impression and findings", "impression/findings", "observations"),
        *("findings & impression", "report"),
    ),
    "impression": (
        *("impression", "impressions", "conclusion", "conclusions", "summary", "opinion"),
        *("final impression", "provisional findings impression", "pfi"),
    ),
    "other": (
        *("examination", "exam", "type of examination", "study", "indication", "indications", "history"),
        *("clinical history", "clinical information", "clinical indication", "history/indication"),
        *("indication/history", "patient history", "reason for exam", "reason for examination", "reason"),
        *("reason for this examination", "medical condition", "comparison", "comparisons"),
        *("comparison study", "comparison film", "technique", "procedure", "procedure comments"),
        *("narrative", "recommendation", "recommendations", "recommendation(s)", "notification"),
        *("notifications", "wet read", "addendum", "end of impression", "accession number", "final report"),
        *("preliminary report", "dictated by", "signed by", "electronically signed by", "attending"),
        *("radiologist", "date", "underlying medical condition"),
    ),
}

_KIND: Final = {name: kind for kind, names in HEADINGS.items() for name in names}


def _either(names: list[str]) -> str:
    """Any of the names, the longest first, their blanks of any width."""
    return "|".join(r"[ \t]+".join(map(re.escape, name.split(" "))) for name in names)


_LONGEST_FIRST: Final = sorted(_KIND, key=lambda name: (-len(name), name))
_NAMES: Final = _either(_LONGEST_FIRST)
_CAPITALS: Final = _either([name.upper() for name in _LONGEST_FIRST])
_WORDS: Final = r"[A-Z0-9 ,/&()-]{0,50}"
#: At the start of a line a known heading in any case, or one in capitals that names the picture; elsewhere a
#: known one in capitals, after a blank or a full stop.
_HEADING: Final = re.compile(
    rf"(?:^[ \t]*(?P<line>(?i:{_NAMES}))[ \t]*:)"
    rf"|(?:^[ \t]*(?P<picture>(?=[A-Z]){_WORDS}?(?:CHEST|RADIOGRAPHS?|X-?RAYS?){_WORDS}):)"
    rf"|(?:(?<=[\s.])(?P<within>{_CAPITALS})[ \t]*:)",
    re.MULTILINE,
)
_BLANK_LINE: Final = re.compile(r"\n[ \t]*\n")


def sections_of_text(text: str) -> tuple[str, str]:
    r"""Cut a report into findings and impression.

    Parameters
    ----------
    text : str
        The whole report. Line ends may be of any system.

    Returns
    -------
    (str, str)
        Findings and impression, each ``""`` where the report has none; see the module's rules.

    Examples
    --------
    >>> from frame.cohorts.report_sections import sections_of_text
    >>> sections_of_text("INDICATION: Cough.\n\nFINDINGS: Clear lungs.\nIMPRESSION:\n Normal chest.")
    ('Clear lungs.', 'Normal chest.')
    >>> sections_of_text("FINDINGS AND IMPRESSION: Small effusion.")
    ('Small effusion.', '')
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    headings = list(_HEADING.finditer(text))
    kinds = [_kind(heading) for heading in headings]
    starts = [heading.start() for heading in headings] + [len(text)]
    bodies = [text[heading.end() : end] for heading, end in zip(headings, starts[1:], strict=True)]
    parts: dict[str, list[str]] = {"findings": [], "impression": [], "picture": [], "other": []}
    for kind, body in zip(kinds, bodies, strict=True):
        parts[kind].append(_one_line(body))
    findings = " ".join(filter(None, parts["findings"] or parts["picture"]))
    impression = " ".join(filter(None, parts["impression"]))
    if not findings and not impression:
        findings = _last_paragraphs(bodies[-1] if bodies else text, headed=bool(bodies))
    return findings, impression


def sections_of_columns(
    findings: pd.Series, impression: pd.Series, report: pd.Series | None = None
) -> pd.DataFrame:
    """Findings and impression of a table that holds them as columns, as CheXpert Plus does.

    Parameters
    ----------
    findings, impression : pandas.Series of str
        The cut sections; missing where a report has none.
    report : pandas.Series of str, optional
        The whole reports. One is cut by :func:`sections_of_text` where both sections are missing.

    Returns
    -------
    pandas.DataFrame
        Columns ``findings`` and ``impression`` (str, ``""`` where there is none), the index of ``findings``.

    Raises
    ------
    frame.InputError
        If the columns are not of one index.
    """
    for column in (impression, report):
        if column is not None and not column.index.equals(findings.index):
            raise InputError("The columns of findings, impressions and reports must belong to the same rows.")
    table = pd.DataFrame(
        {
            "findings": [_one_line(text) for text in findings.fillna("").astype(str)],
            "impression": [_one_line(text) for text in impression.fillna("").astype(str)],
        },
        index=findings.index,
        dtype="str",
    )
    if report is not None:
        uncut = (table["findings"] == "") & (table["impression"] == "") & report.notna()
        cut = [sections_of_text(text) for text in report[uncut].astype(str)]
        table.loc[uncut, "findings"] = [pair[0] for pair in cut]
        table.loc[uncut, "impression"] = [pair[1] for pair in cut]
    return table


def _kind(heading: re.Match[str]) -> str:
    if heading["picture"] is not None:
        return "picture"
    name = heading["line"] or heading["within"]
    return _KIND[_one_line(name).lower()]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _last_paragraphs(text: str, *, headed: bool) -> str:
    """All paragraphs but the first; the only one where no heading stands above it."""
    paragraphs = [p for p in map(_one_line, _BLANK_LINE.split(text)) if p]
    if len(paragraphs) == 1 and not headed:
        return paragraphs[0]
    return " ".join(paragraphs[1:])

"""The report of step two: one file that needs no network, with the verdict first."""

from __future__ import annotations

import io
import platform
import re
import zlib
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from frame import __version__
from frame.audits.page import STYLE
from frame.audits.suppression import hidden_subgroups, hides_totals, hides_values, masked_text, shown_count
from frame.audits.words import in_sentence, verdict_words
from frame.errors import InputError
from frame.interventions.decision import CONSISTENT, UNDETERMINED
from frame.interventions.strength_tables import OPERATORS
from frame.interventions.verdict_hiding import (
    hidden_in_splits,
    masked_notes,
    reason_without_counts,
    shown_sentences,
)
from frame.interventions.verdict_words import QUANTITY_NAMES, headline, rule_words, trend_words
from frame.measures.registry import MEASURES
from frame.mitigation.report_parts import DASH, cell, number, probability_words, table_html, text
from frame.mitigation.words import signed
from frame.writing import check_target, write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from frame.interventions.verdict import Verdict

__all__ = ["TITLES", "drawn", "report_text", "write_report"]

#: Operators as headings, and what their strengths are.
TITLES: Final[Mapping[str, tuple[str, str]]] = {
    "decodability": ("Decodability", "strength s"),
    "entanglement": ("Entanglement", "directions removed, k"),
    "whitened entanglement": ("Whitened entanglement (ours)", "share removed, λ"),
}
_EXPLAINED: Final[Mapping[str, str]] = {
    "decodability": (
        "Every row of the majority is moved by s times the mean standard deviation of the features along one "
        "random direction, every row of another named group by as much the other way. The direction is "
        "orthogonal to the disease direction, so the group becomes easier to read and the disease does not. "
        "With a fixed linear head no value within a group would change; the head is fitted again."
    ),
    "entanglement": (
        "The first k disease directions are taken out of the rows of every named group but the majority. The "
        "head is fitted again on all rows."
    ),
    "whitened entanglement": (
        "Ours, beside the paper's: a share of the one disease direction is taken out of the centred rows in "
        "whitened coordinates. It does not decide."
    ),
}
#: Packages whose versions a report names, because its numbers rest on them.
_PACKAGES: Final = ("numpy", "scipy", "pandas", "numba", "scikit-learn", "matplotlib")
_MORE_STYLE: Final = """\
.beside { color: var(--muted); font-size: 0.86rem; white-space: nowrap; }
.reason { color: var(--muted); min-width: 12rem; }
thead .number { vertical-align: bottom; white-space: normal; }
"""


def drawn(verdict: Verdict, operators: Sequence[str] | None = None) -> Figure:
    """Draw every quantity against strength; step one where it stopped there.

    Parameters
    ----------
    verdict : Verdict
    operators : sequence of str, optional
        Which operators; None: all that were run.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InputError
        If matplotlib is not installed.
    """
    if not len(verdict.strengths):
        return verdict.step_one.plot()
    try:
        from frame.figures.strength_curves import OperatorPicture, draw_strengths
    except ModuleNotFoundError as problem:
        if (problem.name or "").split(".")[0] != "matplotlib":
            raise
        raise InputError(
            "a figure needs matplotlib; install it with: pip install 'frame-audit[plots]'"
        ) from None
    table = verdict.strengths[verdict.strengths["quantity"] != "subgroup_value"]
    chosen = [name for name in OPERATORS if name in set(table["method"])] if operators is None else operators
    pictures = [
        OperatorPicture(*TITLES[name], table.loc[table["method"] == name, list(_DRAWN)]) for name in chosen
    ]
    known = table[table["value"].notna()]
    return draw_strengths(pictures, list(dict.fromkeys(known["quantity"])))


_DRAWN: Final = ("strength", "quantity", "value", "lo", "hi")


def write_report(
    verdict: Verdict, path: Path, *, suppress_below: int = 0, name: str = "path", source: str = ""
) -> Path:
    """Write the report of a verdict.

    Parameters
    ----------
    verdict : Verdict
    path : Path
        File to make or replace.
    suppress_below : int
        See :meth:`frame.interventions.verdict.Verdict.to_html`.
    name : str
        Option or argument that gave the path, for error messages.
    source : str
        Where the embeddings come from, in words that may be shown to anyone.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        If the file cannot be written, or matplotlib is not installed.
    """
    target = check_target(path, name)
    write_text(target, report_text(verdict, suppress_below=suppress_below, source=source), name)
    return target


def report_text(verdict: Verdict, *, suppress_below: int = 0, source: str = "") -> str:
    """Return the report as HTML; the arguments are those of :func:`write_report`."""
    hidden = hidden_subgroups([verdict.step_one], suppress_below)[0]
    title = f"What moves the difference: {in_sentence(verdict.measure)} by {verdict.attribute}"
    parts = [f"<h1>{text(title)}</h1>", _found(verdict, suppress_below)]
    for operator in OPERATORS:
        if operator in set(verdict.strengths["method"]):
            parts.append(_operator(verdict, operator, hidden, suppress_below))
    parts += [
        _step_one(verdict, hidden, suppress_below),
        _trend(verdict),
        _splits(verdict, hidden_in_splits(verdict, suppress_below), suppress_below),
        _settings(verdict, suppress_below, source),
    ]
    body = "\n".join(part for part in parts if part)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{text(title)}</title>\n<style>\n{STYLE}{_MORE_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _list(sentences: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{text(s)}</li>" for s in sentences) + "</ul>"


# -- the verdict --------------------------------------------------------------------------------------


def _kind(verdict: Verdict) -> str:
    return {CONSISTENT: "consistent", UNDETERMINED: "none"}.get(verdict.verdict, "exceeds")


def _found(verdict: Verdict, limit: int) -> str:
    kind = _kind(verdict)
    first, *others = shown_sentences(verdict, limit)
    paragraphs = f"<p>{text(first)}</p>"
    beside = _list(others) if others else ""
    table = ""
    if len(verdict.changes):
        rows = [_change_row(row, verdict) for row in verdict.changes.to_dict("records")]
        heads = (
            ("Operator and quantity", ""),
            ("Largest strength", "number"),
            ("Before", "number"),
            ("After", "number"),
            ("Change, 95 % interval", "number"),
            ("p, two-sided", "number"),
            ("Moves", ""),
        )
        table = table_html("From strength 0 to the largest", heads, rows, "overview")
        table += f"<p>{text(rule_words())}</p>"
    caveats = [masked_text(sentence, limit) for sentence in verdict.caveats]
    return (
        f'<div class="verdict {kind}"><span class="mark {kind}">{text(headline(verdict.verdict))}</span>'
        f"{paragraphs}</div>\n{beside}\n{table}\n<h2>What it does not say</h2>\n{_list(caveats)}"
    )


def _change_row(row: Mapping[Any, Any], verdict: Verdict) -> str:
    name = f"{TITLES[row['operator']][0]}: {QUANTITY_NAMES[row['quantity']]}"
    if row["status"] != "ok":
        cells = f'<td class="reason" colspan="6">{text(row["reason"])}</td>'
        return f'<tr><th scope="row">{text(name)}</th>{cells}</tr>'
    ends = f"[{signed(row['lo'])}, {signed(row['hi'])}]"
    change = signed(row["change"]) + f'<br><span class="beside">{ends}</span>'
    word = ""
    if row["quantity"] == "difference":
        word = f"yes, {row['direction']}" if row["moves"] else "no"
    elif row["operator"] == "entanglement" and verdict.precondition is not None:
        word = f"precondition {'holds' if verdict.precondition.holds else 'fails'}"
    numbers = [f"{row['strength']:g}", number(row["before"]), number(row["after"]), change]
    numbers.append(text(probability_words(row["p"])))
    cells = "".join(cell(one) for one in numbers)
    return f'<tr><th scope="row">{text(name)}</th>{cells}<td>{word}</td></tr>'


# -- operators ----------------------------------------------------------------------------------------


def _operator(verdict: Verdict, operator: str, hidden: frozenset[str], limit: int) -> str:
    table = verdict.strengths[verdict.strengths["method"] == operator]
    small = hidden_in_splits(verdict, limit)
    table = table.assign(reason=[reason_without_counts(str(r), small, limit) for r in table["reason"]])
    parts = [f"<h2>{text(TITLES[operator][0])}</h2>", f"<p>{text(_EXPLAINED[operator])}</p>"]
    words = (
        f"{TITLES[operator][0]}: every quantity against its strength ({TITLES[operator][1]}). Lines of the "
        "difference and of the disease AUROC are 95 % bootstrap intervals. The numbers stand below."
    )
    parts.append(_figure_html(drawn(verdict, [operator]), words, operator))
    parts.append(_strength_table(table, operator, limit))
    if len(hidden) == 0:
        parts.append(_group_table(table, operator, verdict))
    return "<section>\n" + "\n".join(parts) + "\n</section>"


def _strength_table(table: pd.DataFrame, operator: str, limit: int) -> str:
    strengths = list(dict.fromkeys(table["strength"]))
    rows = []
    for quantity in dict.fromkeys(table["quantity"]):
        if quantity == "subgroup_value":
            continue
        cells, reasons = [], []
        lines = table[table["quantity"] == quantity].set_index("strength")
        for strength in strengths:
            line = lines.loc[strength]
            shown = number(line["value"])
            if not pd.isna(line["lo"]):
                ends = f"[{line['lo']:.3f}, {line['hi']:.3f}]"
                shown += f'<br><span class="beside">{ends}</span>'
            cells.append(cell(shown))
            if line["reason"]:
                reasons.append(str(line["reason"]))
        said = "; ".join(dict.fromkeys(masked_text(reason, limit) for reason in reasons))
        name = QUANTITY_NAMES[quantity]
        rows.append(
            f'<tr><th scope="row">{text(name[:1].upper() + name[1:])}</th>{"".join(cells)}'
            f'<td class="reason">{text(said)}</td></tr>'
        )
    heads = [("Quantity", ""), *((f"{strength:g}", "number") for strength in strengths), ("Remark", "")]
    return table_html(f"Every quantity by {TITLES[operator][1]}", heads, rows, "overview")


def _group_table(table: pd.DataFrame, operator: str, verdict: Verdict) -> str:
    """Values of the groups at every strength."""
    strengths = list(dict.fromkeys(table["strength"]))
    lines = table[table["quantity"] == "subgroup_value"]
    if not len(lines):
        return ""
    rows = []
    for group in dict.fromkeys(lines["subgroup"]):
        found = lines[lines["subgroup"] == group].set_index("strength").reindex(strengths)
        cells = [cell(number(value)) for value in found["value"]]
        reasons = "; ".join(
            dict.fromkeys(r for r in found["reason"].dropna() if "random directions" not in r)
        )
        remark = f'<td class="reason">{text(reasons)}</td>'
        rows.append(f'<tr><th scope="row">{text(group)}</th>{"".join(cells)}{remark}</tr>')
    heads = [("Group", ""), *((f"{strength:g}", "number") for strength in strengths), ("Remark", "")]
    title = f"{MEASURES[verdict.measure].title} of the groups by {TITLES[operator][1]}"
    return table_html(title, heads, rows, "overview")


def _figure_html(figure: Figure, words: str, own: str) -> str:
    """A figure as inline SVG whose colours follow the page."""
    from frame.figures.strength_curves import DIFFERENCE, PERFORMANCE, REPRESENTATION
    from frame.figures.style import GRID, INK, MUTED, style_sheet

    held = io.StringIO()
    with style_sheet():
        figure.savefig(held, format="svg", transparent=True, metadata={"Date": None})
    svg = held.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    followed = {INK: "ink", MUTED: "muted", GRID: "grid", "#ffffff": "page", PERFORMANCE: "muted"}
    followed |= {DIFFERENCE: "exceeds", REPRESENTATION: "consistent"}
    for colour, variable in followed.items():
        svg = svg.replace(colour, f"var(--{variable})")
    # Several figures share a page: their parts must not share names.
    prefix = zlib.crc32(own.encode())
    svg = re.sub(r'id="([^"]+)"', rf'id="f{prefix}-\1"', svg)
    svg = re.sub(r'(href="#|url\(#)([^")]+)', rf"\1f{prefix}-\2", svg)
    svg = re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', "", svg, count=1)
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{text(words)}"', 1)
    return f"<figure>\n{svg}\n<figcaption>{text(words)}</figcaption>\n</figure>"


# -- step one, trend, counts, settings ----------------------------------------------------------------


def _step_one(verdict: Verdict, hidden: frozenset[str], limit: int) -> str:
    audit = verdict.step_one
    words = masked_text(verdict_words(audit, hides_values(audit, hidden)), limit)
    flags = [masked_text(flag, limit) for flag in audit.flags]
    more = f"<p>{text('; '.join(flags))}.</p>" if flags else ""
    return (
        f"<h2>Step one</h2>\n<p>{text(f'Audited: {audit.score}.')} {text(words)}</p>\n{more}"
        f"<p>{text(f'The test: {audit.test}.')}</p>"
    )


def _trend(verdict: Verdict) -> str:
    said = trend_words(verdict.trend.to_dict("records"))
    return f"<h2>The paper's trend test</h2>\n{_list(said)}" if said else ""


def _splits(verdict: Verdict, hidden: frozenset[str], limit: int) -> str:
    rows = []
    small = any(0 < int(n) < limit for n in verdict.splits["n_images"]) if limit else False
    few = hides_totals(verdict.step_one, limit) if limit else False
    for row in verdict.splits.to_dict("records"):
        gone = str(row["group"]) in hidden or (row["group"] == "(missing)" and (few or small))
        shown = [
            shown_count(int(row[name]), limit, gone) for name in ("n_images", "n_positive", "n_patients")
        ]
        if verdict.settings["unit"] != "patient":
            shown[2] = "no ids"
        sign = {1: "+1", -1: "\N{MINUS SIGN}1", 0: "0"}[int(row["sign"])]
        cells = "".join(cell(text(one)) for one in (sign, *shown))
        rows.append(f'<tr><th scope="row">{text(row["split"])}</th><td>{text(row["group"])}</td>{cells}</tr>')
    heads = (
        ("Split", ""),
        ("Group", ""),
        ("Sign", "number"),
        ("Images", "number"),
        ("Positive", "number"),
        ("Patients", "number"),
    )
    return "<h2>Images and patients</h2>\n" + table_html(f"Groups of {verdict.attribute}", heads, rows)


def _settings(verdict: Verdict, limit: int, source: str) -> str:
    settings = verdict.settings
    shown = [
        ("Finding", verdict.label),
        ("Measure", MEASURES[verdict.measure].title),
        ("Majority", f"{verdict.majority} (sign +1)"),
        ("Excluded", ", ".join(settings["excluded"]) or "none"),
        ("Head", "linear, fitted again at every strength on the same training images"),
        (
            "Resamples",
            f"{settings['resamples']:,} of {settings['unit']}s, seed {settings['seed']}, shared by all",
        ),
        ("Random directions", f"{settings['directions']}; geometry of the first"),
        ("Level of step one", f"{settings['alpha']:g}"),
        ("Mitigation methods", ", ".join(settings["methods"]) or "none"),
    ]
    entries = "".join(f"<dt>{text(what)}</dt><dd>{text(value or DASH)}</dd>" for what, value in shown)
    notes = masked_notes(verdict, limit)
    versions = [f"frame {__version__}", f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    hidden = f"<p>Counts below {limit} are suppressed.</p>" if limit else ""
    told = f"<p>Source: {text(source)}</p>" if source else ""
    beside = f"<h3>Notes</h3>\n{_list(notes)}" if notes else ""
    return (
        f"<h2>Settings</h2>\n<dl>{entries}</dl>\n{beside}\n"
        f"<footer>{told}{hidden}<p>{text(', '.join(versions))}.</p></footer>"
    )

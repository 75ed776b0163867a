"""The report: one file that needs no network, with the verdict first."""

from __future__ import annotations

import io
import math
import platform
import re
from collections.abc import Sequence
from html import escape
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from frame import __version__
from frame.audits.page import STYLE
from frame.audits.suppression import hidden_subgroups, hides_totals, hides_values, masked_text, shown_count
from frame.audits.words import in_sentence, verdict_words
from frame.errors import InputError
from frame.measures.registry import MEASURES
from frame.verdicts import probability
from frame.writing import check_target, printable, write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from frame.audits.result import Audit

__all__ = ["drawn", "report_text", "write_report"]

_DASH = "–"
#: Packages whose versions a report names, because its numbers rest on them.
_PACKAGES = ("numpy", "scipy", "pandas", "numba", "matplotlib")


def write_report(
    audits: Sequence[Audit], path: Path, *, suppress_below: int = 0, name: str = "path", source: str = ""
) -> Path:
    """Write one report of one or more audits.

    Parameters
    ----------
    audits : sequence of Audit
        In the order in which they are shown; those of strata are shown too.
    path : Path
        File to make or replace.
    suppress_below : int
        See :meth:`frame.Audit.to_html`.
    name : str
        Option or argument that gave the path, for error messages.
    source : str
        Where the scores come from, in words that may be shown to anyone.

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
    write_text(target, report_text(audits, suppress_below=suppress_below, source=source), name)
    return target


def report_text(audits: Sequence[Audit], *, suppress_below: int = 0, source: str = "") -> str:
    """Return the report as HTML; the arguments are those of :func:`write_report`."""
    shown = _with_strata(audits)
    hidden = hidden_subgroups(shown, suppress_below)
    title = _title(shown)
    parts = [f"<h1>{_text(title)}</h1>"]
    if len(shown) > 1:
        parts.append(_overview(shown))
    for number, (audit, left_out) in enumerate(zip(shown, hidden, strict=True), start=1):
        parts.append(_section(audit, left_out, suppress_below, number))
    parts.append(_how_made(shown, suppress_below, source))
    body = "\n".join(parts)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{_text(title)}</title>\n<style>\n{STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _with_strata(audits: Sequence[Audit]) -> list[Audit]:
    found: list[Audit] = []
    for audit in audits:
        found += [audit, *audit.strata]
    return found


def _text(words: object) -> str:
    """Text for HTML; control characters become their escapes."""
    return escape(printable(str(words)))


def _title(audits: Sequence[Audit]) -> str:
    if len(audits) > 1:
        return f"Subgroup audit: {len(audits)} differences"
    first = audits[0]
    return f"Subgroup audit: {in_sentence(first.measure)} by {first.attribute}"


def _name(audit: Audit) -> str:
    where = f", {audit.within} {audit.stratum}" if audit.stratum else ""
    return f"{audit.score} for {audit.label}: {in_sentence(audit.measure)} by {audit.attribute}{where}"


# -- parts of the page ------------------------------------------------------------------------------


def _mark(audit: Audit) -> tuple[str, str]:
    """Class and word of a verdict."""
    if audit.exceeds is None:
        return "none", "not estimable" if audit.reference is None else "no verdict"
    return ("exceeds", "exceeds") if audit.exceeds else ("consistent", "does not exceed")


def _overview(audits: Sequence[Audit]) -> str:
    judged = [a for a in audits if a.exceeds is not None]
    exceeding = sum(bool(a.exceeds) for a in judged)
    lead = f"{exceeding} of {len(judged)} differences exceed their references"
    left = len(audits) - len(judged)
    lead += f"; {left} could not be judged." if left else "."
    rows = []
    for number, audit in enumerate(audits, start=1):
        kind, word = _mark(audit)
        reference = f"{audit.reference.mean:.3f}" if audit.reference is not None else _DASH
        observed = _DASH if math.isnan(audit.observed) else f"{audit.observed:.3f}"
        q = _DASH if math.isnan(audit.q) else probability(audit.q)
        rows.append(
            f'<tr><th scope="row"><a href="#audit-{number}">{_text(_name(audit))}</a></th>'
            f'<td><span class="mark {kind}">{word}</span></td><td class="number">{observed}</td>'
            f'<td class="number">{reference}</td><td class="number">{_text(q)}</td></tr>'
        )
    heads = (
        ("Audit", ""),
        ("Verdict", ""),
        ("Difference", "number"),
        ("Reference", "number"),
        ("q", "number"),
    )
    return f'<p class="lead">{lead}</p>\n{_table("All audits", heads, rows, "overview")}'


def _table(caption: str, heads: Sequence[tuple[str, str]], rows: Sequence[str], kind: str = "") -> str:
    cells = "".join(
        f'<th scope="col" class="{place}">{_text(h)}</th>' if place else f'<th scope="col">{_text(h)}</th>'
        for h, place in heads
    )
    table = f'<table class="{kind}">' if kind else "<table>"
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{_text(caption)}">\n{table}\n'
        f"<caption>{_text(caption)}</caption>\n<thead><tr>{cells}</tr></thead>\n<tbody>\n"
        + "\n".join(rows)
        + "\n</tbody>\n</table>\n</div>"
    )


def _section(audit: Audit, hidden: frozenset[str], limit: int, number: int) -> str:
    kind, word = _mark(audit)
    unnamed = hides_values(audit, hidden)
    verdict = masked_text(verdict_words(audit, unnamed), limit)
    heading = f'<h2 id="audit-{number}">{_text(_name(audit))}</h2>\n'
    parts = [
        f'<section>\n{heading}<div class="verdict {kind}"><span class="mark {kind}">{word}</span>'
        f"<p>{_text(verdict)}</p></div>"
    ]
    flags = [masked_text(flag, limit) for flag in audit.flags]
    if flags:
        parts.append("<h3>Flags</h3>\n" + _list(flags))
    parts.append("<h3>What it does not say</h3>\n" + _list(audit.limits))
    parts.append(_figure(audit, limit, hidden))
    parts.append(_numbers(audit, hidden, limit))
    parts.append(_groups(audit, hidden, unnamed, limit))
    parts.append(_contrasts(audit, hidden, unnamed))
    parts.append(_settings(audit, limit))
    return "\n".join(part for part in parts if part) + "\n</section>"


def _list(sentences: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{_text(s)}</li>" for s in sentences) + "</ul>"


def _model(audit: Audit) -> tuple[str, str]:
    """What the reference stands for: after "if", and as a thing under which differences come about."""
    if audit.method == "pooled":
        return "membership did not matter (permuted)", "permuted membership"
    return "exactly fair", "an exactly fair model"


def _numbers(audit: Audit, hidden: frozenset[str], limit: int) -> str:
    if audit.reference is None:
        return ""
    lo, hi = audit.reference.interval
    entries = [
        ("Observed difference", f"{audit.observed:.3f}"),
        (f"If {_model(audit)[0]}: mean, 95 % range", f"{audit.reference.mean:.3f}, {lo:.3f} to {hi:.3f}"),
        ("Remainder", f"{audit.remainder:.3f}"),
        ("Share", "undefined" if math.isnan(audit.share) else f"{audit.share:,.0f} %"),
        ("p, one-sided", _DASH if math.isnan(audit.p) else probability(audit.p)),
    ]
    if audit.family_size > 1 and not math.isnan(audit.q):
        entries.append((f"q, over {audit.family_size} audits ({audit.family})", probability(audit.q)))
    if not math.isnan(audit.p_heterogeneity):
        shown = f"{probability(audit.p_heterogeneity)}, Monte Carlo error {audit.p_heterogeneity_error:.1g}"
        none = ", tolerates no margin" if audit.margin else ""
        entries.append((f"p of the heterogeneity Q of all subgroups, uncorrected{none}", shown))
    lo, hi = audit.interval
    shown = audit.interval_reason or f"{lo:.3f} to {hi:.3f}"
    entries.append(("95 % interval of the true difference", masked_text(shown, limit)))
    if audit.exceeds is False and not math.isnan(audit.detectable):
        single = f"80 % power in a single test at level {audit.alpha:g}, without correction"
        entries.append((f"Detectable shift of one subgroup, {single}", f"{audit.detectable:.3f}"))
    entries.append((f"Common value ({audit.overall_source})", f"{audit.overall:.3f}"))
    for what, value in (
        ("Value over all rows", audit.overall_pooled),
        ("Within-group mean", audit.overall_within),
    ):
        if not math.isnan(value):
            entries.append((what, f"{value:.3f}"))
    if not math.isnan(audit.equity_scaled) and not hidden:
        entries.append(("Equity-scaled AUROC", f"{audit.equity_scaled:.3f}"))
    rows = [
        f'<tr><th scope="row">{_text(what)}</th><td class="number">{_text(value)}</td></tr>'
        for what, value in entries
    ]
    return _table("The difference and its reference", (("Quantity", ""), ("Value", "number")), rows, "pairs")


def _groups(audit: Audit, hidden: frozenset[str], unnamed: frozenset[str], limit: int) -> str:
    heads = [("Subgroup", ""), ("Images", "number"), ("Positive", "number"), ("Negative", "number")]
    heads += [("Patients", "number"), (MEASURES[audit.measure].title, "number"), ("95 % interval", "number")]
    heads += [("Status", "")]
    rows = []
    for row in audit.by_group.to_dict("records"):
        group = str(row["group"])
        counts = [
            shown_count(int(row[name]), limit, group in hidden)
            for name in ("n_images", "n_positive", "n_negative", "n_patients")
        ]
        if not audit.patients_given:
            counts[-1] = "no ids"
        value, interval, status = _value_cells(row, group, hidden, unnamed, limit)
        cells = "".join(f'<td class="number">{_text(c)}</td>' for c in (*counts, value, interval))
        rows.append(f'<tr><th scope="row">{_text(group)}</th>{cells}<td>{_text(status)}</td></tr>')
    totals = [audit.n_images, audit.n_positive, audit.n_images - audit.n_positive, audit.n_patients]
    shown = [shown_count(total, limit, hides_totals(audit, limit)) for total in totals]
    if not audit.patients_given:
        shown[-1] = "no ids"
    value = _DASH if math.isnan(audit.overall_pooled) else f"{audit.overall_pooled:.3f}"
    cells = "".join(f'<td class="number">{_text(c)}</td>' for c in (*shown, value, ""))
    rows.append(f'<tr class="total"><th scope="row">all rows</th>{cells}<td></td></tr>')
    return _table(f"Subgroups of {audit.attribute}", heads, rows)


def _value_cells(
    row: dict[object, object], group: str, hidden: frozenset[str], unnamed: frozenset[str], limit: int
) -> tuple[str, str, str]:
    """Value, interval and status of a subgroup as the table shows them."""
    status, reason = str(row["status"]), str(row["reason"])
    if group in hidden:
        return "hidden", "", f"suppressed (counts below {limit}, or next to them)"
    if group in unnamed:
        return "hidden", "", "value suppressed: another one would follow from it"
    value, lo, hi = (float(str(row[name])) for name in ("value", "lo", "hi"))
    said = status if status == "ok" and not reason else f"{status}: {reason}" if reason else status
    interval = "" if math.isnan(lo) else f"{lo:.3f} to {hi:.3f}"
    return _DASH if math.isnan(value) else f"{value:.3f}", interval, said


def _contrasts(audit: Audit, hidden: frozenset[str], unnamed: frozenset[str]) -> str:
    worst = audit.worst
    if not worst.name or len(worst.contrasts) == 0:
        return ""
    if worst.name in unnamed:
        return "<p>Contrasts with the worst subgroup are suppressed.</p>"
    rows = []
    for row in worst.contrasts.to_dict("records"):
        if str(row["group"]) in hidden | unnamed:
            cells = ["hidden", "", ""]
        else:
            interval = _DASH if math.isnan(row["lo"]) else f"{row['lo']:+.3f} to {row['hi']:+.3f}"
            p = str(row["reason"]) if math.isnan(row["p"]) else probability(row["p"])
            cells = [f"{row['change']:+.3f}", interval, p]
        shown = "".join(f'<td class="number">{_text(c)}</td>' for c in cells)
        rows.append(f'<tr><th scope="row">{_text(row["group"])}</th>{shown}</tr>')
    heads = (
        ("Subgroup", ""),
        ("Change", "number"),
        ("95 % interval", "number"),
        ("p, two-sided, uncorrected", "number"),
    )
    return _table(f"Against the worst subgroup, {worst.name} ({worst.value:.3f})", heads, rows)


def _settings(audit: Audit, limit: int) -> str:
    n_positive = shown_count(audit.n_positive, limit)
    counts = f"{shown_count(audit.n_images, limit)} images, {n_positive} positive"
    if audit.patients_given:
        counts += f", {shown_count(audit.n_patients, limit)} patients"
    if hides_totals(audit, limit):
        counts = "suppressed: few images were left out"
    entries = [
        ("Unit of sampling", audit.unit if audit.patients_given else "image (no patient id was given)"),
        ("Counted", counts),
        ("Test", audit.test),
        (
            "Evaluable subgroups",
            f"at least {audit.settings.min_size} images, and the classes the measure needs",
        ),
    ]
    if not math.isnan(audit.threshold.value):
        entries.append(("Threshold", f"{audit.threshold.value:.6g} ({audit.threshold.source})"))
    if audit.settings.resamples:
        entries.append(
            ("Intervals", f"{audit.settings.resamples:,} bootstrap resamples, whole {audit.unit}s drawn")
        )
    entries.append(("Seed", str(audit.settings.seed)))
    entries += [("Note", masked_text(note, limit)) for note in audit.notes]
    listed = "".join(f"<dt>{_text(what)}</dt><dd>{_text(value)}</dd>" for what, value in entries)
    return f"<h3>How it was computed</h3>\n<dl>{listed}</dl>"


def _how_made(audits: Sequence[Audit], suppress_below: int, source: str) -> str:
    versions = [f"frame {__version__}", f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    families = sorted({f"{a.family}: {a.family_size}" for a in audits if a.family_size > 1})
    corrected = (
        f"<p>Corrected by Benjamini and Hochberg within families ({_text('; '.join(families))} tests).</p>"
        if families
        else ""
    )
    hidden = (
        f"<p>Counts below {suppress_below} are suppressed, and what they could be computed from.</p>"
        if suppress_below
        else ""
    )
    shown = f"<p>Source: {_text(source)}</p>" if source else ""
    return f"<footer>{shown}{corrected}{hidden}<p>{_text(', '.join(versions))}.</p></footer>"


# -- the figure -------------------------------------------------------------------------------------


def drawn(audit: Audit, suppress_below: int = 0, hidden: frozenset[str] | None = None) -> Figure:
    """Draw an audit; see :meth:`frame.Audit.plot`."""
    try:
        from frame.figures.score_audit import AuditPicture, draw_audit, reference_bars
    except ModuleNotFoundError as problem:
        if (problem.name or "").split(".")[0] != "matplotlib":
            raise
        raise InputError(
            "a figure needs matplotlib; install it with: pip install 'frame-audit[plots]'"
        ) from None
    left_out = hidden_subgroups([audit], suppress_below)[0] if hidden is None else hidden
    reference = audit.reference
    bars = None
    if reference is not None and not math.isnan(audit.observed):
        bars = reference_bars(reference.exceedance, audit.observed, reference.quantile(0.999))
    where = f", {audit.within} {audit.stratum}" if audit.stratum else ""
    title = MEASURES[audit.measure].title
    return draw_audit(
        AuditPicture(
            title=f"{title} by {audit.attribute}{where}",
            measure=title,
            groups=_picture_groups(audit, left_out, suppress_below),
            bars=bars,
            observed=audit.observed,
            p=audit.p,
            exceeds=bool(audit.exceeds),
            common=audit.overall if bars is not None else math.nan,
            reason=masked_text(audit.reason, suppress_below),
            fair="permuted membership" if audit.method == "pooled" else "exactly fair model",
        )
    )


def _picture_groups(audit: Audit, hidden: frozenset[str], limit: int) -> pd.DataFrame:
    unnamed = hides_values(audit, hidden)
    worst = audit.worst.name
    several = int(audit.table["evaluable"].sum()) > 1
    rows = []
    for row in audit.by_group.to_dict("records"):
        group = str(row["group"])
        gone = group in unnamed
        small = group in hidden
        n_positive = shown_count(int(row["n_positive"]), limit, small)
        counts = f"{n_positive} / {shown_count(int(row['n_images']), limit, small)}"
        note = "suppressed" if gone else f"not estimable: {row['reason']}"
        rows.append(
            {
                "group": group,
                "value": math.nan if gone else row["value"],
                "lo": math.nan if gone else row["lo"],
                "hi": math.nan if gone else row["hi"],
                "counts": counts,
                "note": note,
                "worst": group == worst and not gone and several,
            }
        )
    return pd.DataFrame(rows, columns=["group", "value", "lo", "hi", "counts", "note", "worst"])


def _figure(audit: Audit, limit: int, hidden: frozenset[str]) -> str:
    """The figure as inline SVG whose colours follow the page, with its content in words."""
    figure = drawn(audit, limit, hidden)
    from frame.figures.score_audit import OBSERVED, SUBGROUP
    from frame.figures.style import GRID, INK, MUTED, style_sheet

    held = io.StringIO()
    with style_sheet():
        figure.savefig(held, format="svg", transparent=True, metadata={"Date": None})
    svg = held.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # Edges of bars and open marks are drawn in white, which is the page.
    followed = {INK: "ink", MUTED: "muted", GRID: "grid", "#ffffff": "page"}
    followed |= {OBSERVED: "exceeds", SUBGROUP: "consistent"}
    for colour, variable in followed.items():
        svg = svg.replace(colour, f"var(--{variable})")
    # Several figures share a page: their parts must not share names.
    own = f"{abs(hash_of(_name(audit)))}"
    svg = re.sub(r'id="([^"]+)"', rf'id="f{own}-\1"', svg)
    svg = re.sub(r'(href="#|url\(#)([^")]+)', rf"\1f{own}-\2", svg)
    words = _text(alt_text(audit, hidden))
    svg = re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', "", svg, count=1)
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{words}"', 1)
    return f"<figure>\n{svg}\n<figcaption>{words}</figcaption>\n</figure>"


def hash_of(words: str) -> int:
    """A number for a name, the same in every run."""
    import zlib

    return zlib.crc32(words.encode("utf-8"))


def alt_text(audit: Audit, hidden: frozenset[str]) -> str:
    """What the figure shows, in words."""
    named = len(audit.table)
    below = f"{named} subgroups of {audit.attribute} with their counts and intervals"
    if hidden:
        below += f", {len(hidden)} of them suppressed"
    if audit.reference is None or math.isnan(audit.observed):
        return f"No reference could be made. Below: {below}."
    p = "no p is shown" if math.isnan(audit.p) else f"p {probability(audit.p)}"
    return (
        f"Above: how likely each difference is under {_model(audit)[1]}, mean {audit.reference.mean:.3f}; "
        f"the observed difference is {audit.observed:.3f}, {p}. Below: {below}."
    )

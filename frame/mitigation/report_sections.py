"""One difference in the report of a comparison: figure, methods, what is achievable, groups."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from frame.measures.registry import MEASURES
from frame.mitigation.achievable import UNMITIGATED
from frame.mitigation.comparison_tables import method_name
from frame.mitigation.contract import FITTED
from frame.mitigation.hiding import masked
from frame.mitigation.judged import REFITTED
from frame.mitigation.registry import METHODS
from frame.mitigation.report_figure import figure_html
from frame.mitigation.report_parts import (
    DASH,
    anchor,
    cell,
    chosen_name,
    interval_cell,
    mark,
    masked_words,
    number,
    probability_words,
    table_html,
    text,
)
from frame.mitigation.words import best_of, is_true, measure_words, rows_of, signed

if TYPE_CHECKING:
    from frame.mitigation.comparison import Comparison

__all__ = ["section"]


def section(
    comparison: Comparison, groups: pd.DataFrame, attribute: str, measure: str, place: int, limit: int
) -> str:
    """The section of one attribute and measure.

    Parameters
    ----------
    comparison : Comparison
        The result.
    groups : DataFrame
        As :func:`frame.mitigation.hiding.suppressed_groups`.
    attribute, measure : str
        Which difference.
    place : int
        Place of the attribute, for the link to the section.
    limit : int
        Smallest count that may be shown.

    Returns
    -------
    str
        HTML.
    """
    title = MEASURES[measure].title
    rows = rows_of(comparison, attribute, measure)
    kind, word = mark(rows[0]["exceeds"])
    sentences = [masked_words(s, limit) for s in measure_words(comparison, attribute, measure)]
    body = "".join(f"<p>{text(s)}</p>" for s in sentences)
    parts = [
        f'<section>\n<h2 id="{anchor(place, measure)}">{text(f"{title} by {attribute}")}</h2>\n'
        f'<div class="verdict {kind}"><span class="mark {kind}">before mitigation: {word}</span>{body}</div>',
        figure_html(comparison, attribute, measure, limit),
        _method_table(rows, attribute, measure, limit),
        _achievable_table(comparison, attribute, measure, limit),
        _group_table(comparison, groups, attribute, measure, limit),
    ]
    flags = dict.fromkeys(
        masked(f"{r['name']}: {flag}", limit) for r in rows for flag in str(r["flags"]).split("; ") if flag
    )
    if flags:
        items = "".join(f"<li>{text(flag)}</li>" for flag in flags)
        parts.append(f"<details><summary>Flags ({len(flags)})</summary><ul>{items}</ul></details>")
    return "\n".join(parts) + "\n</section>"


def _method_table(rows: Sequence[Mapping[str, Any]], attribute: str, measure: str, limit: int) -> str:
    heads = (
        ("Method", ""),
        ("Difference", "number"),
        ("Change [95 %]", "number"),
        ("q", "number"),
        ("If fair", "number"),
        ("q of exceedance", "number"),
        ("Disease AUROC", "number"),
        ("Change [95 %]", "number"),
    )
    lines = []
    for row in rows:
        name = f'<th scope="row">{text(row["name"])}</th>'
        kind = ' class="start"' if row["method"] == UNMITIGATED else ""
        if row["after"] is None or pd.isna(row["after"]):
            reason = masked(f"{row['status']}: {row['reason']}", limit)
            lines.append(f'<tr{kind}>{name}<td class="reason" colspan="7">{text(reason)}</td></tr>')
            continue
        marked = " smaller" if row["change"] < 0 else " larger"
        change = interval_cell(row, "change")
        cells = [
            cell(number(row["after"])),
            cell(change, "number" + (marked if is_true(row["changes"]) else "")),
            cell(text(probability_words(row["change_q"]))),
            cell(number(row["reference"])),
            cell(
                text(probability_words(row["exceedance_q"])),
                "number" + (" larger" if is_true(row["exceeds"]) else ""),
            ),
            cell(number(row["auroc"])),
            cell(interval_cell(row, "auroc_change")),
        ]
        if row["status"] != FITTED:
            beside = f'<span class="beside">{text(row["status"])}</span>'
            name = f'<th scope="row">{text(row["name"])} {beside}</th>'
        lines.append(f"<tr{kind}>{name}{''.join(cells)}</tr>")
    return table_html(
        f"{MEASURES[measure].title} by {attribute} under every method, on test images", heads, lines, "wide"
    )


def _achievable_table(comparison: Comparison, attribute: str, measure: str, limit: int) -> str:
    heads = (
        ("Smallest difference", ""),
        ("Method", ""),
        ("Difference", "number"),
        ("Change [95 %]", "number"),
        ("If fair [95 %]", "number"),
        ("q of exceedance", "number"),
        ("Disease AUROC on test (change)", "number"),
        ("Candidates", "number"),
    )
    lines, left_out = [], []
    for choice, one in best_of(comparison, attribute, measure).items():
        called = "chosen on test (the paper)" if choice == "test" else "chosen on validation (ours)"
        if not one["method"]:
            reason = masked(str(one["reason"]), limit)
            lines.append(
                f'<tr><th scope="row">{called}</th><td class="reason" colspan="7">{text(reason)}</td></tr>'
            )
            continue
        band = number(one["reference"])
        if not pd.isna(one["reference_lo"]):
            ends = f"[{number(one['reference_lo'])}, {number(one['reference_hi'])}]"
            band += f'<br><span class="beside">{ends}</span>'
        q = text(probability_words(one["exceedance_q"]))
        lines.append(
            f'<tr><th scope="row">{called}</th><td>{text(chosen_name(one))}</td>'
            f"{cell(number(one['after']))}{cell(interval_cell(one, 'change'))}{cell(band)}"
            f"{cell(q, 'number larger' if is_true(one['exceeds']) else 'number')}"
            f"{cell(_auroc_on_test(one))}{cell(str(int(one['n_candidates'])))}</tr>"
        )
        if one["excluded"]:
            left_out.append(f"{called}: {_excluded(str(one['excluded']), limit)}")
    caption = (
        f"The smallest difference, with a loss of at most {comparison.settings['tolerance']:g} of disease "
        "AUROC allowed on the images that chose it"
    )
    table = table_html(caption, heads, lines)
    if not left_out:
        return table
    items = "".join(f"<li>{text(words)}</li>" for words in left_out)
    return f"{table}\n<details><summary>Methods that could not be chosen</summary><ul>{items}</ul></details>"


def _auroc_on_test(best: Mapping[str, Any]) -> str:
    """Disease AUROC with what it loses on test, where the limit on the loss need not hold."""
    if best["method"] == UNMITIGATED:
        return number(best["auroc"])
    return f"{number(best['auroc'])} ({signed(best['auroc'] - best['auroc_before'])})"


def _excluded(words: str, limit: int) -> str:
    """Excluded methods by their names for readers."""
    for method in (UNMITIGATED, REFITTED, *METHODS):
        words = re.sub(rf"(^|; ){method}: ", rf"\1{method_name(method)}: ", words)
    return masked(words, limit)


def _group_table(
    comparison: Comparison, groups: pd.DataFrame, attribute: str, measure: str, limit: int
) -> str:
    chosen = groups[(groups["attribute"] == attribute) & (groups["measure"] == measure)]
    start = chosen[chosen["method"] == UNMITIGATED]
    names = [str(group) for group in start["group"]]
    hidden = comparison.hidden(limit)[attribute]
    heads = [("Method", "")]
    for row in start.to_dict("records"):
        count = (
            "hidden"
            if str(row["group"]) in hidden
            else f"{int(row['n_positive']):,} / {int(row['n_images']):,}"
        )
        heads.append((f'{text(row["group"])}<br><span class="beside">{count}</span>', "number"))
    lines = []
    for method, part in chosen.groupby("method", sort=False):
        cells = [_group_cell(row) for row in part.to_dict("records")]
        first = ' class="start"' if method == UNMITIGATED else ""
        lines.append(f'<tr{first}><th scope="row">{text(method_name(str(method)))}</th>{"".join(cells)}</tr>')
    reasons = {
        f"{row['group']}: {row['reason']}"
        for row in start.to_dict("records")
        if row["status"] != FITTED and row["reason"]
    }
    caption = f"{MEASURES[measure].title} of each group, with the paired change (positive / all images)"
    said = "".join(f"<li>{text(words)}</li>" for words in sorted(reasons))
    notes = f"<ul>{said}</ul>" if said else ""
    return (
        f"<details><summary>{len(names)} groups under every method</summary>\n"
        f"{table_html(caption, heads, lines, 'wide')}{notes}</details>"
    )


def _group_cell(row: Mapping[Any, Any]) -> str:
    if row["value"] is None or pd.isna(row["value"]):
        return cell("hidden" if row["status"] == "suppressed" or not row["reason"] else DASH)
    change = row["change"]
    beside = ""
    if change is not None and not pd.isna(change):
        ends = (
            "" if pd.isna(row["change_lo"]) else f" [{signed(row['change_lo'])}, {signed(row['change_hi'])}]"
        )
        beside = f'<br><span class="beside">{signed(change)}{ends}</span>'
    return cell(f"{number(row['value'])}{beside}")

"""The report of a comparison of methods: one file that needs no network, with what was found first."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from frame import __version__
from frame.audits.page import STYLE
from frame.audits.words import in_sentence
from frame.mitigation.contract import FITTED
from frame.mitigation.hiding import masked, suppressed_groups, suppressed_splits, without_small_counts
from frame.mitigation.registry import FAMILIES, METHODS
from frame.mitigation.report_parts import (
    anchor,
    cell,
    chosen_name,
    mark,
    masked_words,
    number,
    table_html,
    text,
)
from frame.mitigation.report_sections import section
from frame.mitigation.words import best_of, caveats, is_true, listed, rows_of, summary_words
from frame.writing import check_target, write_text

if TYPE_CHECKING:
    from frame.mitigation.comparison import Comparison

__all__ = ["report_text", "write_report"]

#: Packages whose versions a report names, because its numbers rest on them.
_PACKAGES: Final = ("numpy", "scipy", "scikit-learn", "fairlearn", "concept-erasure", "torch", "numba")
_MORE_STYLE: Final = """\
.found li { margin-bottom: 0.55rem; }
.smaller { color: var(--consistent); font-weight: 650; }
.larger { color: var(--exceeds); font-weight: 650; }
.beside { color: var(--muted); font-size: 0.86rem; white-space: nowrap; }
.reason { color: var(--muted); white-space: normal; min-width: 14rem; }
.start th, .start td { border-bottom: 2px solid var(--grid); }
thead .number { vertical-align: bottom; }
nav ul { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: 0.3rem 1rem; }
details { margin: 0.8rem 0; }
summary { cursor: pointer; color: var(--consistent); }
thead .number { white-space: normal; }
.overview .beside { white-space: normal; }
main { max-width: 60rem; }
main > p, main > ul, main > dl, .verdict, section > ul { max-width: 50rem; }
.wide th[scope="row"] { min-width: 8.5rem; }
"""


def write_report(
    comparison: Comparison, path: Path, *, suppress_below: int = 0, name: str = "path", source: str = ""
) -> Path:
    """Write the report of a comparison.

    Parameters
    ----------
    comparison : Comparison
        The result.
    path : Path
        File to make or replace.
    suppress_below : int
        See :meth:`frame.mitigation.comparison.Comparison.to_html`.
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
    write_text(target, report_text(comparison, suppress_below=suppress_below, source=source), name)
    return target


def report_text(comparison: Comparison, *, suppress_below: int = 0, source: str = "") -> str:
    """Return the report as HTML; the arguments are those of :func:`write_report`."""
    groups = suppressed_groups(comparison, suppress_below)
    comparison = without_small_counts(comparison, suppress_below)
    title = f"Mitigation compared: {comparison.label} by {listed(comparison.attributes)}"
    parts = [f"<h1>{text(title)}</h1>", _found(comparison, suppress_below)]
    for place, attribute in enumerate(comparison.attributes):
        for measure in comparison.measures:
            parts.append(section(comparison, groups, attribute, measure, place, suppress_below))
    parts += [_methods(comparison, suppress_below), _list("What it does not say", caveats(comparison))]
    parts += [_settings(comparison, suppress_below), _how_made(suppress_below, source)]
    body = "\n".join(part for part in parts if part)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{text(title)}</title>\n<style>\n{STYLE}{_MORE_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _list(heading: str, sentences: Sequence[str]) -> str:
    items = "".join(f"<li>{text(s)}</li>" for s in sentences)
    return f"<h2>{text(heading)}</h2>\n<ul>{items}</ul>"


# -- what was found -----------------------------------------------------------------------------------


def _found(comparison: Comparison, limit: int) -> str:
    lead, *others = summary_words(comparison)
    items = "".join(f"<li>{text(masked_words(s, limit))}</li>" for s in others)
    rows = []
    for place, attribute in enumerate(comparison.attributes):
        for measure in comparison.measures:
            rows.append(_overview_row(comparison, attribute, measure, place))
    heads = (
        ("Difference", ""),
        ("Before", "number"),
        ("If fair", "number"),
        ("Methods that change it", ""),
        ("Achievable, chosen on test", "number"),
        ("Chosen on validation", "number"),
        ("What remains", ""),
    )
    table = table_html(
        "Every difference before mitigation, and the smallest one reached", heads, rows, "overview"
    )
    return f'<p class="lead">{text(lead)}</p>\n<ul class="found">{items}</ul>\n{table}'


def _overview_row(comparison: Comparison, attribute: str, measure: str, place: int) -> str:
    rows = rows_of(comparison, attribute, measure)
    start, best = rows[0], best_of(comparison, attribute, measure)
    moved = [r for r in rows if is_true(r["changes"])]
    words = []
    for kind, chosen in (
        ("smaller", [r for r in moved if r["change"] < 0]),
        ("larger", [r for r in moved if r["change"] > 0]),
    ):
        if chosen:
            words.append(f'<span class="{kind}">{len(chosen)} {kind}</span>')
    shown = []
    for choice in ("test", "validation"):
        one = best[choice]
        by = "" if not one["method"] else f'<br><span class="beside">{text(chosen_name(one))}</span>'
        shown.append(cell(f"{number(one['after'])}{by}"))
    ours = best["validation"]
    kind, word = mark(ours["exceeds"] if ours["method"] else None)
    title = f"{in_sentence(measure)} by {attribute}"
    link = f'<a href="#{anchor(place, measure)}">{text(title[:1].upper() + title[1:])}</a>'
    return (
        f'<tr><th scope="row">{link}</th>'
        f"{cell(number(start['before']))}{cell(number(start['reference']))}"
        f"<td>{', '.join(words) or 'none'}</td>{''.join(shown)}"
        f'<td><span class="mark {kind}">{word}</span></td></tr>'
    )


# -- methods, settings --------------------------------------------------------------------------------


def _methods(comparison: Comparison, limit: int) -> str:
    entries = []
    table = comparison.methods_run
    for method in comparison.methods:
        known = METHODS[method]
        lines = [f"<p>{text(known.sentence)} It changes {text(FAMILIES[known.family])}.</p>"]
        for row in table[table["method"] == method].to_dict("records"):
            said = [
                "" if row["status"] == FITTED else f"{row['status']}: {row['reason']}",
                str(row["flags"]),
                str(row["facts"]),
            ]
            shown = "; ".join(part for part in said if part)
            if shown:
                where = f"{row['attribute']}: " if len(comparison.attributes) > 1 else ""
                lines.append(f'<p class="beside reason">{text(where + masked(shown, limit))}</p>')
        entries.append(f"<dt>{text(known.label)}</dt><dd>{''.join(lines)}</dd>")
    return f"<h2>The methods</h2>\n<dl>{''.join(entries)}</dl>"


def _settings(comparison: Comparison, limit: int) -> str:
    settings = comparison.settings
    rows = []
    for row in suppressed_splits(comparison, limit):
        cells = [row["n_images"], row["n_positive"], row["n_patients"], row["n_images_before_cap"]]
        shown = "".join(cell(text(c)) for c in cells)
        rows.append(f'<tr><th scope="row">{row["split"]}</th>{shown}</tr>')
    heads = (
        ("Split", ""),
        ("Images used", "number"),
        ("Positive", "number"),
        ("Patients", "number"),
        ("Images in all", "number"),
    )
    balanced = (
        "balanced in every fit"
        if settings["weighting"] == "equal"
        else "balanced in the disease head and its refits, none inside methods with weights of their own"
        if settings["head"] == "linear"
        else "none, as in the paper for a head with a hidden layer"
    )
    entries = [
        ("Head", f"{settings['head']}, one for all images with a label; class weights {balanced}"),
        ("Threshold", f"{settings['threshold']} of each method's own validation scores, one for all groups"),
        (
            "Intervals",
            f"{settings['resamples']:,} bootstrap resamples of {settings['unit']}s, the same for every "
            "method, measure and attribute, so that changes are paired",
        ),
        (
            "Changes",
            "more than chance where the paired interval excludes 0 and q is below "
            f"{settings['alpha']:g}: two-sided p, Benjamini and Hochberg over all methods, measures and "
            "attributes (family 'mitigation change')",
        ),
        (
            "References",
            "as in an audit of scores: computed from each method's own scores, one-sided exceedance, "
            "Benjamini and Hochberg within each measure: before mitigation over attributes, as in an audit, "
            "and after it over methods and attributes; for the achievable difference over attributes and "
            "measures, for each place of choice",
        ),
        (
            "Compared groups",
            f"at least {settings['min_size']} test images, and the classes the measure needs",
        ),
        ("Seed", str(settings["seed"])),
        *(("Note", note) for note in comparison.notes),
    ]
    listing = "".join(f"<dt>{text(what)}</dt><dd>{text(value)}</dd>" for what, value in entries)
    return (
        f"<h2>How it was computed</h2>\n{table_html('Images and patients of the splits', heads, rows)}\n"
        f"<dl>{listing}</dl>"
    )


def _how_made(limit: int, source: str) -> str:
    versions = [f"frame {__version__}", f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    hidden = f"<p>Counts below {limit} are suppressed, and what they follow from.</p>" if limit else ""
    shown = f"<p>Source: {text(source)}</p>" if source else ""
    return f"<footer>{shown}{hidden}<p>{text(', '.join(versions))}.</p></footer>"

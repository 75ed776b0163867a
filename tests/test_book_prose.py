"""The pages of the book and the README: their tables, numbers, citations, links and examples.

Nothing here checks style. Each test compares what a page says with the thing it speaks about: the tables in
``data/``, the audit computed now, the bibliography, the files that a link names, the command's own help.
"""

from __future__ import annotations

import csv
import functools
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BOOK = ROOT / "book"
DATA = ROOT / "data"
#: The paper's text is not part of the project; a checkout that has it beside it compares against it.
PAPER = ROOT.parent / "shared" / "paper" / "frame-paper.txt"

PAGES = sorted(BOOK.glob("*.md"))
TEXTS = [*PAGES, ROOT / "README.md"]
#: Entries of the bibliography that no page needs to cite.
NOCITE: frozenset[str] = frozenset()
#: Sources of our own, which the paper does not list.
NOT_IN_THE_PAPER = {
    "lotfinia2026frame",
    *("brier1950verification", "cochran1954combination", "delong1988comparing", "field2007bootstrapping"),
    *("hochberg1987multiple", "majkowska2020chest", "naeini2015obtaining", "oakdenrayner2020exploring"),
    *("obuchowski1997nonparametric", "owen1956tables", "phipson2010permutation", "rao1992clustered"),
}
#: A run of this many words in common with the paper is a copied sentence.
COPIED_WORDS = 12

needs_paper = pytest.mark.skipif(
    not PAPER.is_file(), reason="the paper's text does not lie beside this checkout"
)


def page_id(path: Path) -> str:
    return path.name


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def prose(text: str) -> str:
    """The text of a page without its code; what stands in a directive stays."""
    kept: list[str] = []
    fence = ""
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fence = "" if fence else line.strip()
        elif not fence or fence.startswith("```{"):
            kept.append(line)
    assert not fence, f"{fence} is never closed"
    return "\n".join(kept)


def rows_of(name: str) -> list[dict[str, str]]:
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def tables_under(text: str, heading: str) -> list[list[list[str]]]:
    """Body rows of the pipe tables between a heading and the next one."""
    section = re.split(r"^#+ ", text.split(f"{heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    tables = re.findall(r"(?:^\|.*\|\n)+", section, flags=re.MULTILINE)
    return [[[c.strip() for c in line.strip("|").split("|")] for line in t.splitlines()[2:]] for t in tables]


def study_in_cell(cell: str) -> tuple[str, str]:
    """Name and address of the study that a table cell names; the citation beside it is dropped."""
    cell = re.sub(r"\s*\{cite\}`[^`]*`", "", cell)
    linked = re.fullmatch(r"\[(.*)\]\((.*)\)", cell)
    name, address = linked.groups() if linked else (cell, "")
    return re.sub(r" \([A-Za-z0-9]+\)$", "", name), address


def study_in_data(row: dict[str, str]) -> tuple[str, str]:
    found = re.match(r".*? \d{4}\b", row["citation"])
    assert found, row["citation"]
    return found.group(), row["doi_or_url"]


# --- the tables of studies -----------------------------------------------------------------------------


def test_table_of_included_studies_equals_the_data():
    (table,) = tables_under(
        read(BOOK / "published_record.md"), "### The {{ pub_studies }} studies that meet all four"
    )
    shown = [(*study_in_cell(study), modality, claims) for study, modality, claims in table]
    expected = [
        (*study_in_data(r), r["modality"], r["n_claims"])
        for r in rows_of("published_studies")
        if r["included"] == "yes"
    ]
    assert shown == expected


@pytest.mark.parametrize(
    ("criterion", "heading"),
    [
        ("1", "### Excluded by the first criterion: another statistic"),
        ("2", "### Excluded by the second criterion: only plotted"),
        ("3", "### Excluded by the third criterion: no counts"),
    ],
)
def test_table_of_excluded_studies_equals_the_data(criterion, heading):
    (table,) = tables_under(read(BOOK / "published_record.md"), heading)
    shown = [(*study_in_cell(study), reason, basis) for study, reason, basis in table]
    expected = [
        (*study_in_data(r), r["reason"], r["criterion_basis"])
        for r in rows_of("published_studies")
        if r["included"] == "no" and r["criterion_failed"] == criterion
    ]
    assert shown == expected


def test_every_excluded_study_fails_one_of_the_three_criteria_shown():
    excluded = [r for r in rows_of("published_studies") if r["included"] == "no"]
    assert {r["criterion_failed"] for r in excluded} == {"1", "2", "3"}


def test_table_of_directions_equals_the_data():
    text = read(BOOK / "published_record.md")
    table = tables_under(text, "## What each study claimed, and how a reading follows")[0]
    shown = [(*study_in_cell(study), claim, code.strip("`")) for study, claim, code in table]
    expected = [
        (
            *study_in_data(r),
            r["claim_direction"] or "(no claim about this difference)",
            r["direction"] or "(none)",
        )
        for r in rows_of("published_studies")
        if r["included"] == "yes"
    ]
    assert shown == expected


def test_direction_of_a_claim_is_that_of_its_study():
    direction = {r["study"]: r["direction"] for r in rows_of("published_studies")}
    assert all(r["claim_direction"] == direction[r["study"]] for r in rows_of("published_claims"))


# --- citations -----------------------------------------------------------------------------------------


def bibliography() -> dict[str, dict[str, str]]:
    """Fields of every entry of the bibliography; a key that occurs twice is an error."""
    entries: dict[str, dict[str, str]] = {}
    for key, body in re.findall(
        r"^@\w+\{(\w+),\n(.*?)^\}", read(BOOK / "references.bib"), flags=re.MULTILINE | re.DOTALL
    ):
        assert key not in entries, f"{key} is in the bibliography twice"
        entries[key] = dict(re.findall(r"^\s*(\w+)\s*=\s*\{(.*)\},$", body, flags=re.MULTILINE))
    return entries


def cited_keys() -> set[str]:
    roles = [role for page in PAGES for role in re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", read(page))]
    return {key.strip() for role in roles for key in role.split(",")}


def test_every_citation_is_in_the_bibliography():
    assert cited_keys() - bibliography().keys() == set()


def test_every_entry_of_the_bibliography_is_cited():
    assert bibliography().keys() - cited_keys() == NOCITE


def test_keys_of_the_bibliography_carry_the_year():
    assert [
        key for key, entry in bibliography().items() if not re.fullmatch(rf"[a-z]+{entry['year']}[a-z]+", key)
    ] == []


def words(text: str) -> list[str]:
    """Words in lower case, without numbers, since page numbers interrupt the paper's sentences.

    A word that the paper's typesetting broke at a line end is joined.
    """
    return re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])- (?=[a-z])", "", text).lower())


@needs_paper
def test_titles_of_the_bibliography_stand_in_the_paper():
    paper = "".join(words(read(PAPER)))
    plain = {key: re.sub(r"[{}\\&]", "", entry["title"]) for key, entry in bibliography().items()}
    missing = [key for key, title in plain.items() if "".join(words(title)) not in paper]
    assert set(missing) == NOT_IN_THE_PAPER - {"lotfinia2026frame"}


# --- numbers in the text -------------------------------------------------------------------------------


@functools.cache
def substitutions() -> dict[str, str]:
    """The numbers that the book's extension fills in."""
    path = BOOK / "_extensions" / "record_numbers.py"
    spec = importlib.util.spec_from_file_location("record_numbers_extension", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.record_substitutions()


SUBSTITUTION = re.compile(r"\{\{\s*(\w+)\s*\}\}")


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_number_in_the_text_is_computed(page):
    assert set(SUBSTITUTION.findall(read(page))) - substitutions().keys() == set()


def test_numbers_that_differ_from_print_are_those_that_deviations_lists():
    differ = {k for k, ours in substitutions().items() if substitutions().get(f"printed_{k}", ours) != ours}
    (table,) = tables_under(read(BOOK / "deviations.md"), "### Summary numbers in the last digit")
    assert {SUBSTITUTION.findall(here)[0] for _, here, _ in table} == differ
    assert all(
        SUBSTITUTION.findall(p) == [f"printed_{k}" for k in SUBSTITUTION.findall(h)] for _, h, p in table
    )


@functools.cache
def audited(*, overall: bool = True, **options):
    """The audit of the published record, as a table; without the printed overall values if so asked."""
    import frame
    from frame.tables import load_table

    claims = load_table("published_claims")
    if not overall:
        claims = claims.drop(columns="overall_value")
    return frame.audit_claims(claims, **options).set_index("claim_id")


def test_no_verdict_depends_on_the_printed_overall_values():
    # deviations.md says that the weighted mean for every claim instead changes no verdict.
    assert (audited()["exceeds"] == audited(overall=False)["exceeds"]).all()


def test_a_design_effect_of_1_2_undoes_the_auroc_exceedance():
    # deviations.md shows the command.
    auroc = audited()[audited()["measure"] == "auroc"]
    assert list(auroc.index[auroc["exceeds"]]) == ["zong-2023-04"]
    assert not audited(design_effect=1.2).loc[auroc.index, "exceeds"].any()


def test_no_claim_that_does_not_exceed_was_detectable_at_its_reported_size():
    # index.md, step_one.md, published_record.md and deviations.md say so of all of them.
    below = audited()[~audited()["exceeds"]]
    assert len(below) > 0
    assert (below["detectable_80"].isna() | (below["detectable_80"] > below["observed"])).all()
    assert set(below["reading"]) == {"undecided"}


def test_no_auroc_difference_in_dermatology_or_abdominal_ct_exceeds():
    # published_record.md and deviations.md.
    modality = {r["claim_id"]: r["modality"] for r in rows_of("published_claims")}
    table = audited()
    silent = [c for c in table.index if modality[c] in {"dermatology", "abdominal CT"}]
    rows = table.loc[silent].query("measure == 'auroc'")
    assert len(rows) == 28
    assert not rows["exceeds"].any()


def test_ties_of_burlina_are_as_deviations_says():
    q = audited(protocol="paper")["q"].round(3)
    assert [q[f"burlina-2021-{number}"] for number in ("02", "03", "05")] == [0.004, 0.698, 0.005]


def test_share_of_a_tiny_difference_is_thousands_of_percent():
    # published_record.md, "A difference of zero".
    row = audited().loc["zong-2023-02"]
    assert row["observed"] == pytest.approx(0.0002)
    assert 2000 < row["share"] < 10_000


@functools.cache
def claims() -> dict[str, list[dict[str, str]]]:
    """Rows of every claim of the record."""
    found: dict[str, list[dict[str, str]]] = {}
    for row in rows_of("published_claims"):
        found.setdefault(row["claim_id"], []).append(row)
    return found


def sizes(claim: list[dict[str, str]]) -> list[int]:
    """Denominator of every subgroup of a claim."""
    columns = {"auroc": ("n_positive", "n_negative"), "tpr": ("n_positive",), "fpr": ("n_negative",)}
    return [sum(int(row[column]) for column in columns[row["metric"]]) for row in claim]


def test_families_and_overall_values_are_as_deviations_says():
    assert Counter(rows[0]["metric"] for rows in claims().values()) == {"auroc": 36, "tpr": 29, "fpr": 24}
    without = [rows[0]["metric"] for rows in claims().values() if not rows[0]["overall_value"]]
    assert len(without) == 27
    assert "auroc" not in without


def test_five_overall_values_lie_above_their_subgroups():
    above, below = [], []
    for claim_id, rows in claims().items():
        values = [float(row["value"]) for row in rows]
        overall = float(rows[0]["overall_value"] or max(values))
        above += [claim_id] * (overall > max(values))
        below += [claim_id] * (overall < min(values))
    assert len(above) == 5
    assert all(claim_id.startswith("daneshjou-2022") for claim_id in above)
    assert below == []


def test_sizes_are_as_deviations_says():
    assert sorted({n for rows in claims().values() for n in sizes(rows)})[:4] == [9, 15, 16, 21]
    abdominal = [sizes(rows) for claim_id, rows in claims().items() if claim_id.startswith("tayebi")]
    assert ({min(s) for s in abdominal}, max(max(s) for s in abdominal)) == ({75, 127}, 197)
    pathology = sorted(
        min(sizes(rows)) for claim_id, rows in claims().items() if claim_id.startswith("vaidya")
    )
    assert pathology[2:4] == [26, 55]


def test_oddities_of_the_record_are_as_the_page_says():
    assert len({rows[0]["task"] for rows in claims().values()}) == 11
    value = {(c, r["subgroup"]): float(r["value"]) for c, rows in claims().items() for r in rows}
    for claim_id, metric in (("daneshjou-2022-05", "fpr"), ("daneshjou-2022-09", "tpr")):
        assert claims()[claim_id][0]["metric"] == metric
        assert value[claim_id, "FST V-VI"] < value[claim_id, "FST I-II"]
    totals = {}
    for rows in (claims()["tayebi-arasteh-2024-01"], claims()["tayebi-arasteh-2024-02"]):
        counts = [sum(int(r[c]) for r in rows) for c in ("n_positive", "n_negative")]
        totals[rows[0]["attribute"]] = counts
    assert totals == {"sex": [172, 152], "age": [173, 152]}
    on_mimic = {rows[0]["study"] for rows in claims().values() if rows[0]["dataset"] == "MIMIC-CXR"}
    assert len(on_mimic) == 4


def test_hanley_mcneil_error_against_normal_scores():
    # deviations.md: 4 to 35 % too large from 0.60 to 0.90 with five to twenty negatives per positive.
    from frame.reference.variances import binormal_variance, hanley_mcneil_variance

    def ratios(kappa):
        cells = [(a, n, n * k) for a in (0.6, 0.7, 0.8, 0.9) for n in (10, 50, 400) for k in (5, 20)]
        return [float(hanley_mcneil_variance(*c) / binormal_variance(*c, kappa)) ** 0.5 for c in cells]

    assert (round(100 * min(ratios(1.0))) - 100, round(100 * max(ratios(1.0))) - 100) == (4, 35)
    assert 0.88 < min(ratios(1.5)) < max(ratios(1.5)) < 1.09


# --- links, figures, form ------------------------------------------------------------------------------


def labels() -> Counter[str]:
    """Targets that the pages define: labels before headings, equations and figures."""
    found: Counter[str] = Counter()
    for page in PAGES:
        found.update(re.findall(r"^\(([\w-]+)\)=$", read(page), flags=re.MULTILINE))
        found.update(re.findall(r"^:(?:label|name): *([\w-]+)$", read(page), flags=re.MULTILINE))
    return found


def test_labels_are_unique():
    assert [label for label, n in labels().items() if n > 1] == []


def links(text: str) -> list[str]:
    return re.findall(r"\]\(([^()\s]+)\)", prose(text))


@pytest.mark.parametrize("page", TEXTS, ids=page_id)
def test_every_internal_link_has_its_target(page):
    dead = []
    for target in links(read(page)):
        if re.match(r"https?:", target):
            continue
        if target.startswith("#"):
            if target[1:] not in labels():
                dead.append(target)
        elif not (page.parent / target).exists():
            dead.append(target)
    assert dead == []


def test_every_equation_that_is_referred_to_exists_and_none_is_lost():
    defined = {label for label in labels() if label.startswith("eq-")}
    used = {key for page in PAGES for key in re.findall(r"\{eq\}`([^`]+)`", read(page))}
    assert used - defined == set()
    blocks = [b for page in PAGES for b in re.findall(r"```\{math\}\n(.*?)```", read(page), flags=re.DOTALL)]
    assert blocks
    assert all(block.startswith(":label: eq-") for block in blocks)


@pytest.mark.parametrize("page", TEXTS, ids=page_id)
def test_every_picture_exists_and_has_alt_text(page):
    text = read(page)
    pictures = re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", text)
    for name, body in re.findall(r"```\{(?:figure|image)\} *(\S+)\n(.*?)```", text, flags=re.DOTALL):
        alt = re.search(r"^:alt: *(.+)$", body, flags=re.MULTILINE)
        pictures.append((alt.group(1) if alt else "", name))
    assert [name for alt, name in pictures if len(alt) < 40 or not (page.parent / name).is_file()] == []


@pytest.mark.parametrize("page", [ROOT / "README.md", BOOK / "index.md"], ids=page_id)
def test_alt_text_of_the_overview_says_what_the_picture_shows(page):
    from frame.figures.overview import describe, overview_examples

    (alt,) = re.findall(r"!\[(.*)\]\(book/images/overview.svg\)|^:alt: (.*)$", read(page), flags=re.MULTILINE)
    assert "".join(alt) == describe(overview_examples())


def test_every_page_of_the_contents_is_there_and_no_other():
    listed = set(re.findall(r"(?:root|file): *(book/\w+)", read(ROOT / "_toc.yml")))
    assert listed == {f"book/{page.stem}" for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_page_begins_with_what_the_reader_will_know(page):
    title, opening = read(page).split("\n\n")[:2]
    assert re.fullmatch(r"# .+", title)
    assert opening.startswith("At the end of this page you ")


@needs_paper
@pytest.mark.parametrize("page", TEXTS, ids=page_id)
def test_no_sentence_is_shared_with_the_paper(page):
    text = re.sub(r"\{cite(?::\w+)?\}`[^`]*`", " ", read(page))
    for entry in bibliography().values():
        text = re.sub(r"\s+", " ", text).replace(entry["title"], " | ")
        text = text.replace(entry["title"].replace("{", "").replace("}", ""), " | ")
    printed = {row["id"]: row["value"] for row in rows_of("paper_numbers")}
    text = SUBSTITUTION.sub(lambda m: printed.get(m.group(1).removeprefix("printed_"), "|"), text)

    def runs(items: list[str]) -> set[tuple[str, ...]]:
        return set(zip(*(items[k:] for k in range(COPIED_WORDS)), strict=False))

    paper = runs(words(read(PAPER)))
    shared = {run for piece in text.split("|") for run in runs(words(piece)) & paper}
    assert sorted(" ".join(run) for run in shared) == []


# --- what the how-to promises --------------------------------------------------------------------------


def frame_command(*arguments: str) -> str:
    """Standard output of the command line, on a wide terminal so that nothing is wrapped."""
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(
        [sys.executable, "-c", "from frame.cli import main; main()", *arguments],
        env=environment, capture_output=True, text=True, cwd=ROOT, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_options_of_the_how_to_exist_and_none_is_left_out():
    told = set(re.findall(r"--[a-z][a-z-]+", read(BOOK / "audit_your_own.md")))
    offered = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", frame_command("audit", "--help")))
    assert told - offered == set()
    assert offered - told - {"--help"} == set()


def test_columns_of_the_how_to_are_those_of_an_audit():
    tables = tables_under(read(BOOK / "audit_your_own.md"), "## 4. Read the result")
    told = {name for table in tables for row in table for name in re.findall(r"`(\w+)`", row[0])}
    computed = ["claim_id", *audited().columns]
    assert told == set(computed) - {"claim_id", "measure"}


def test_examples_in_python_run(tmp_path):
    (tmp_path / "my_claims.csv").write_text(frame_command("audit", "--template"), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for page in (ROOT / "README.md", BOOK / "audit_your_own.md", BOOK / "phantom.md"):
        blocks = re.findall(r"^```python\n(.*?)^```", read(page), flags=re.MULTILINE | re.DOTALL)
        assert blocks, page
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", "\n".join(blocks)],
            env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, f"{page.name}: {done.stderr}"


def test_example_table_of_the_how_to_can_be_audited(tmp_path):
    page = read(BOOK / "audit_your_own.md")
    (block,) = re.findall(r"^```text\n(claim_id.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    table = tmp_path / "claims.csv"
    table.write_text(block, encoding="utf-8")
    (row,) = json.loads(frame_command("audit", str(table), "--format", "json"))
    assert row["status"] == "ok"
    assert not row["exceeds"]
    quoted = [row[k] for k in ("observed", "reference", "reference_lo", "reference_hi", "p", "detectable_80")]
    (sentence,) = re.findall(r'Quote a result like this one.*?"(.*?)"', page, flags=re.DOTALL)
    assert re.findall(r"\d\.\d{3}", sentence) == [f"{number:.3f}" for number in quoted]
    assert f'"{row["share"]:.0f} % of the difference is chance"' in page


@pytest.mark.parametrize("page", [ROOT / "README.md", BOOK / "index.md"], ids=page_id)
def test_notebook_command_names_a_notebook_and_its_parameters(page):
    (command,) = re.findall(r"frame notebook (.*)$", read(page), flags=re.MULTILINE)
    notebook = json.loads(read(ROOT / "notebooks" / f"{command.split()[0]}.ipynb"))
    (cell,) = [c for c in notebook["cells"] if "parameters" in c["metadata"].get("tags", [])]
    defined = re.findall(r"^(\w+)\s*=", "".join(cell["source"]), flags=re.MULTILINE)
    named = re.findall(r"-p (\w+)=", command)
    assert named
    assert set(named) <= set(defined)

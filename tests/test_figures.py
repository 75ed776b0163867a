"""Figures: each draws what its tidy table holds, is readable, and can be told apart without colour."""

import itertools
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from drawn_text import drawn_texts, misplaced_texts
from matplotlib.colors import to_hex

import frame
from frame.errors import InputError
from frame.figures import figure_9, overview
from frame.figures.style import MODALITIES, SMALL, WIDTH
from frame.record import (
    by_modality,
    by_study,
    describe_claims,
    largest_per_cohort,
    provenance_counts,
)
from frame.tables import load_table

ROOT = Path(__file__).resolve().parents[1]
STORED = ROOT / "book" / "images" / "overview.svg"
COLOURS = {look.colour for look in MODALITIES.values()}


@pytest.fixture(scope="module")
def claims():
    return load_table("published_claims")


@pytest.fixture(scope="module")
def audited(claims):
    return frame.audit_claims(claims)


@pytest.fixture(scope="module")
def described(audited, claims):
    return describe_claims(audited, claims)


@pytest.fixture(scope="module")
def panels(audited, claims, described):
    return {
        "a": figure_9.panel_a(described),
        "b": figure_9.panel_b(described),
        "c": figure_9.panel_c(by_study(audited, claims)),
        "d": figure_9.panel_d(described),
        "e": figure_9.panel_e(by_modality(audited, claims)),
        "f": figure_9.panel_f(largest_per_cohort(audited, claims)),
        "g": figure_9.panel_g(provenance_counts(audited, claims)),
    }


@pytest.fixture(scope="module")
def examples():
    return overview.overview_examples()


# ---- the style


def linear(colour):
    channels = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(channels):
    """CIE L*a*b* of linear sRGB, D65."""
    to_xyz = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750]])
    to_xyz = np.vstack([to_xyz, [0.0193339, 0.1191920, 0.9503041]])
    xyz = to_xyz @ np.clip(channels, 0, 1) / np.array([0.95047, 1.0, 1.08883])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


# Machado, Oliveira, Fernandes 2009, severity 1: what an eye without one kind of cone sees, in linear sRGB.
EYES = {
    "usual": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


@pytest.mark.parametrize("eye", EYES)
def test_colours_of_modalities_are_apart_for_every_eye(eye):
    seen = {colour: lab(np.asarray(EYES[eye]) @ linear(colour)) for colour in COLOURS}
    nearest = min(np.linalg.norm(seen[a] - seen[b]) for a, b in itertools.combinations(seen, 2))
    assert nearest > 15  # two or three just-noticeable differences would be 5 to 7


def test_every_modality_of_the_record_has_its_own_colour_and_marker(described):
    assert set(described["modality"]) == set(MODALITIES)
    assert len(COLOURS) == len({look.marker for look in MODALITIES.values()}) == len(MODALITIES)


@pytest.mark.parametrize("colour", sorted(COLOURS))
def test_colours_stand_out_from_white(colour):
    luminance = float(linear(colour) @ [0.2126, 0.7152, 0.0722])
    assert 1.05 / (luminance + 0.05) >= 3


# ---- Figure 9


def marks(shown):
    """The claims drawn in a figure: colour of the edge, whether filled, and where."""
    found = []
    for line in shown.figure.axes[0].lines:
        edge, face = to_hex(line.get_markeredgecolor()), to_hex(line.get_markerfacecolor())
        if edge not in COLOURS or line.get_marker() in ("None", "", "d"):
            continue
        assert face in (edge, "#ffffff")
        found += [(edge, face == edge, x, y) for x, y in zip(*line.get_data(), strict=True)]
    return found


def expected(table, x, y):
    rows = table[[x, y, "modality", "exceeds"]].astype({x: float, y: float})
    return sorted((MODALITIES[m].colour, bool(e), a, b) for a, b, m, e in rows.itertuples(index=False))


def test_panel_a_draws_every_claim_where_it_lies(panels, described):
    assert sorted(marks(panels["a"])) == expected(described, "observed", "reference")
    assert sum(filled for _, filled, *_ in marks(panels["a"])) == int(described["exceeds"].sum()) == 41


def test_panel_d_draws_every_claim_where_it_lies(panels, described):
    assert sorted(marks(panels["d"])) == expected(described, "smallest_group", "reference")


def test_panel_b_draws_every_share_and_counts_what_has_none(panels, described):
    with_share = described[described["share"].notna()]
    drawn = marks(panels["b"])
    assert sorted(x for *_, x, _ in drawn) == sorted(with_share["share"])
    assert sum(filled for _, filled, *_ in drawn) == int(with_share["exceeds"].sum())
    assert len(described) - len(drawn) == 2
    labels = [label.get_text() for label in panels["b"].figure.axes[0].get_yticklabels()]
    assert "Dermatology\n11 of 16 exceed\n2 without a share" in labels
    assert sum("without a share" in label for label in labels) == 1
    assert "Abdominal CT\n0 of 20 exceed" in labels


def test_panel_b_keeps_the_claims_of_a_row_within_it(panels):
    axes = panels["b"].figure.axes[0]
    rows = axes.get_yticks()
    for *_, y in marks(panels["b"]):
        assert min(abs(y - row) for row in rows) < 0.5


def test_panel_c_draws_the_counts_of_every_study(panels, audited, claims):
    studies = by_study(audited, claims)
    axes = panels["c"].figure.axes[0]
    widths = [round(bar.get_width()) for bar in axes.patches]
    assert widths[0::2] == studies["n_claims"].tolist()
    assert widths[1::2] == studies["n_exceed"].tolist()
    assert {to_hex(bar.get_facecolor()) for bar in axes.patches[0::2]} == {"#ffffff"}
    written = [text.get_text() for text in axes.texts]
    assert "7 of 12" in written
    assert len(written) == len(studies)


def test_panel_e_shows_rates_only(panels, audited, claims):
    rates = by_modality(audited, claims).query("kind == 'rate'")
    assert len(panels["e"].figure.axes[0].lines) == len(rates) == 5
    assert "Pathology: 67.6 % at 40.5 cases" in panels["e"].summary
    assert "Abdominal" not in panels["e"].summary


def test_panel_f_draws_report_reference_and_interval(panels, audited, claims):
    cohorts = largest_per_cohort(audited, claims)
    assert sorted(x for *_, x, _ in marks(panels["f"])) == sorted(cohorts["observed"])
    lines = panels["f"].figure.axes[0].lines
    spans = [tuple(line.get_xdata()) for line in lines if len(line.get_xdata()) == 2]
    assert spans == list(zip(cohorts["reference_lo"], cohorts["reference_hi"], strict=True))
    diamonds = [float(line.get_xdata()[0]) for line in lines if line.get_marker() == "d"]
    assert diamonds == cohorts["reference"].tolist()


def test_panel_g_draws_all_claims(panels, claims):
    widths = [round(bar.get_width()) for bar in panels["g"].figure.axes[0].patches]
    assert sum(widths) == claims["claim_id"].nunique()


def test_panels_follow_their_table(described):
    one = described.index[described["exceeds"]][0]
    changed = described.copy()
    changed.loc[one, "exceeds"] = False
    changed.loc[one, "reference"] += 0.001
    for panel in (figure_9.panel_a, figure_9.panel_d):
        assert sum(filled for _, filled, *_ in marks(panel(changed))) == 40
    assert "40 exceed" in figure_9.panel_a(changed).summary


def test_a_modality_without_a_look_is_refused(described):
    with pytest.raises(KeyError):
        figure_9.panel_c(by_study_of_unknown())


def by_study_of_unknown():
    import pandas as pd

    return pd.DataFrame({"label": ["x"], "modality": ["sonography"], "n_claims": [2], "n_exceed": [1]})


# ---- readable


@pytest.mark.parametrize("name", list("abcdefg"))
def test_text_is_large_inside_the_figure_and_does_not_overlap(panels, name):
    assert panels[name].figure.get_figwidth() == WIDTH
    assert SMALL >= 10
    assert misplaced_texts(panels[name].figure, SMALL) == []


def test_drawing_leaves_the_readers_settings_alone(described):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    with mpl.rc_context({"font.size": 3, "axes.labelsize": 3}):
        shown = figure_9.panel_a(described)
        assert min(text.get_fontsize() for text in drawn_texts(shown.figure)) >= SMALL
    assert dict(mpl.rcParams) == before


def test_import_of_frame_loads_no_matplotlib():
    code = (
        "import sys, frame, frame.fidelity, frame.parameters, frame.presentation, frame.record\n"
        "frame.fair_reference, frame.audit_claims\n"
        "assert 'matplotlib' not in sys.modules and 'PIL' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# ---- the overview


def test_overview_shows_one_difference_that_exceeds_and_one_that_does_not(examples):
    assert [example.exceeds for example in examples] == [True, False]


def test_overview_is_computed_from_the_law_of_the_claims(examples, audited):
    for example, claim in zip(examples, ("burlina-2021-04", "glocker-2023-01"), strict=True):
        row = audited.set_index("claim_id").loc[claim]
        assert (example.observed, example.p) == (row["observed"], row["p"])
        assert example.reference == pytest.approx(row["reference"], abs=1e-12)
        # The bins hold nearly all mass, and those from the reported difference on hold the exceedance.
        assert sum(example.mass) == pytest.approx(1, abs=2e-3)
        lost = 1 - sum(example.mass)
        beyond = sum(
            m for low, m in zip(example.edges, example.mass, strict=False) if low >= example.observed - 1e-9
        )
        assert beyond + lost == pytest.approx(row["p"], abs=1e-9)


def test_mass_in_bins_is_the_binomial_law():
    # Two groups of two, rate 1/2: the difference is 0, 1/2 or 1 with probability 3/8, 1/2 and 1/8.
    law = frame.fair_reference(0.5, [2, 2], None, "tpr")
    mass = overview.mass_in_bins(law, [Fraction(k, 2) for k in range(4)])
    assert mass == pytest.approx([3 / 8, 1 / 2, 1 / 8], abs=1e-12)


def test_overview_shades_the_tail(examples):
    figure = overview.draw(examples)
    upper, lower = figure.axes
    shaded = [bar for bar in upper.patches if to_hex(bar.get_facecolor()) == overview.BEYOND]
    assert len(upper.patches) == len(examples[0].mass)
    assert min(bar.get_x() + bar.get_width() / 2 for bar in shaded) == pytest.approx(0.5)
    fair, beyond = lower.patches
    assert to_hex(beyond.get_facecolor()) == overview.BEYOND
    assert beyond.get_data().edges[0] == pytest.approx(examples[1].observed)
    assert fair.get_data().edges[-1] == pytest.approx(examples[1].observed)
    assert misplaced_texts(figure, SMALL) == []
    words = " ".join(text.get_text() for text in drawn_texts(figure))
    for name in (
        "Burlina 2021",
        "Glocker 2023",
        "not simulated",
        "Verdict: exceeds",
        "Verdict: does not exceed",
    ):
        assert name in re.sub(r"\s+", " ", words)


def test_overview_is_the_same_file_every_time(tmp_path, monkeypatch, examples):
    monkeypatch.setattr(overview, "overview_examples", lambda: examples)
    first, second = tmp_path / "first.svg", tmp_path / "second.svg"
    overview.write(first)
    overview.write(second)
    assert first.read_bytes() == second.read_bytes()
    text = first.read_text(encoding="utf-8")
    assert "<dc:date>" not in text
    assert "matplotlib v" not in text.lower()
    assert overview.describe(examples) in text


def test_stored_overview_shows_the_numbers_of_today(examples):
    assert overview.describe(examples) in STORED.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["overview.png", "absent/overview.svg"])
def test_overview_is_written_to_an_svg_file_only(tmp_path, name, capsys):
    with pytest.raises(InputError, match=r"ending in \.svg in an existing folder"):
        overview.write(tmp_path / name)
    assert overview.main([str(tmp_path / name)]) == 2
    assert "in an existing folder" in capsys.readouterr().err


def test_overview_wants_one_file(capsys):
    assert overview.main([]) == 2
    assert capsys.readouterr().err == "Give one file: python -m frame.figures.overview FILE.svg\n"

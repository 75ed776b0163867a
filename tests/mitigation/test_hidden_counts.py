"""No output of a comparison tells the training counts of a hidden group, nor lets them be computed."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from frame.cli.mitigate_output import markdown_text, table_text
from frame.mitigation.comparison import compare_methods
from frame.mitigation.hidden_texts import without_small_counts, words_without_counts
from frame.mitigation.hiding import suppressed_groups, suppressed_table
from frame.mitigation.registry import METHODS
from frame.mitigation.report import report_text

LIMIT = 10
SAID = "counts below 10 are hidden"
#: Images of each split by group; the four of 'rare' are all negative, so some methods say what they lack.
SIZES = {"train": (293, 197, 4), "validation": (127, 113, 3), "test": (151, 131, 5)}


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(1)
    parts = []
    for split, sizes in SIZES.items():
        site = np.repeat(["A", "B", "rare"], sizes)
        finding = np.where(site == "rare", 0, rng.random(len(site)) < 0.4).astype(int)
        # Only in the test split has the rare group a positive image.
        finding[-1] = split == "test"
        parts.append(pd.DataFrame({"split": split, "site": site, "finding": finding}))
    table = pd.concat(parts, ignore_index=True)
    features = rng.normal(size=(len(table), 4))
    features[:, 0] += table["finding"] * np.where(table["site"] == "A", 0.5, 1.5)
    return compare_methods(
        features,
        table["finding"],
        table[["site"]],
        table["split"],
        methods=[name for name in METHODS if "adversarial" not in name],
        measures=("auroc", "ece"),
        resamples=100,
    )


def words_of_page(page):
    page = re.sub(r"<svg.*?</svg>|<style>.*?</style>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))


def texts(found):
    groups, table = suppressed_groups(found, LIMIT), suppressed_table(found, LIMIT)
    return {
        "groups": groups.drop(columns=["sentence"], errors="ignore").to_csv(index=False),
        "table": table.to_csv(index=False),
        "terminal": table_text(found, LIMIT, "rows", 160),
        "markdown": markdown_text(found, LIMIT, "rows"),
        "page": words_of_page(report_text(found, suppress_below=LIMIT)),
    }


def test_the_example_tells_counts_without_a_limit(found):
    groups = suppressed_groups(found, 0)
    told = " ".join(groups["action"] + groups["action_reason"])
    assert "from 293 to" in told
    assert "from 4 to" in told
    assert "no positive training image" in told


def test_every_group_has_the_verb_of_its_method_and_no_number(found):
    groups = suppressed_groups(found, LIMIT)
    assert groups["status"].eq("suppressed").any()
    for method, part in groups[groups["action"] != ""].groupby("method"):
        assert len(set(part["action"])) == 1, method
        assert not part["action"].str.contains(r"\d").any(), method
        assert part.groupby("measure")["action_reason"].nunique().eq(1).all(), method
    assert set(groups["action"]) == {"", "resampled", "weighted", "shifted", "calibrated", "treated"}
    assert set(groups["action_reason"]) == {"", SAID}


@pytest.mark.parametrize("output", ["groups", "table", "terminal", "markdown", "page"])
def test_no_output_holds_a_count_of_training_or_validation_images_by_group(found, output):
    text = texts(found)[output]
    for split in ("train", "validation"):
        for n in SIZES[split]:
            assert not re.search(rf"(?<![\d.,]){n} (?:training |validation |negative |positive )?image", text)
            assert not re.search(rf"from {n}\b", text)
    for split in ("train", "validation"):
        for n in SIZES[split][:2]:
            assert not re.search(rf"(?<![\w.,-]){n}(?![\w.,%])", text), n
    assert "kept the identity" not in text
    assert "kept its scores" not in text
    assert not re.search(r"no (?:positive |negative )?(?:training|validation) image", text)
    assert not re.search(r"(?:rows used|effective images|left out|groups calibrated|groups shifted) \d", text)


@pytest.mark.parametrize("output", ["table", "page"])
def test_a_flag_on_a_hidden_group_says_that_it_is_hidden(found, output):
    text = texts(found)[output]
    assert SAID in text
    assert not re.search(r"rare(?: has|: (?!counts below 10, or next to them))", text)


def test_the_comparison_itself_is_not_changed(found):
    before = found.table.copy(), found.by_group.copy(), found.notes
    once = without_small_counts(found, LIMIT)
    pd.testing.assert_frame_equal(found.table, before[0])
    pd.testing.assert_frame_equal(found.by_group, before[1])
    assert found.notes == before[2]
    twice = without_small_counts(once, LIMIT)
    pd.testing.assert_frame_equal(once.table, twice.table)
    pd.testing.assert_frame_equal(once.by_group, twice.by_group)
    assert without_small_counts(found, 0) is found


@pytest.mark.parametrize(
    ("note", "shown"),
    [
        (
            "'sex' is missing for 40 of 360 images (3 of 144 positives, 37 of 216 negatives); they train the "
            "unmitigated head, so 25 images of validation and 12 images of test stay out of everything.",
            "'sex' is missing for 40 of 360 images; they train the "
            "unmitigated head, so images of validation and images of test stay out of everything.",
        ),
        (
            "15 images of other splits are left out (11 'held', 4 'x').",
            "15 images of other splits are left out.",
        ),
        ("4 images have no patient id and are left out.", "fewer than 10 images have no patient id and are"),
        ("The patients were split at random with seed 0 (60 % train).",) * 2,
    ],
    ids=["missing", "splits", "few", "seed"],
)
def test_notes_leave_nothing_to_subtract(found, note, shown):
    (said,) = without_small_counts(replace(found, notes=(note,)), LIMIT).notes
    assert said.startswith(shown)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("rare has no positive training image", SAID),
        ("B has no training image; A: kept the identity, 12 validation images, none positive", SAID),
        ("platt: rare has no negative training image; leace: it fails", f"platt: {SAID}; leace: it fails"),
        ("only A has training images, so there is nothing to even out", SAID),
        ("paired change: undefined in 7 of 100 resamples", SAID),
        ("below chance: the AUROC of group 'rare' is below 0.5 and is kept as it is", SAID),
        ("below chance: the AUROC of group 'A' is below", "below chance: the AUROC of group 'A' is below"),
        ("A: slope -0.3 on the validation images is not positive", "A: slope on the validation images is"),
        ("not converged after 80 epochs", "not converged after 80 epochs"),
    ],
    ids=["class", "two", "method", "only", "resamples", "value", "other", "slope", "fit"],
)
def test_flags_and_reasons_that_tell_a_count(words, shown):
    assert words_without_counts(words, frozenset({"rare"}), LIMIT).startswith(shown)

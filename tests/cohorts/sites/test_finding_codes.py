"""The table of label names, and codes from answers, names and marks."""

import ast
import importlib.util

import pandas as pd
import pytest
from chest_sources import CHEST, LABELS, read_text

from frame.cohorts.adjudicated import installed_table
from frame.cohorts.sites.finding_codes import (
    codes_from_answers,
    codes_from_names,
    codes_of_findings,
    finding_names,
    label_tally,
    marks_by_finding,
    marks_by_name,
)
from frame.errors import InputError
from frame.tables import load_table

SOURCES = ("mimic_cxr", "chexpert", "nih_cxr14", "padchest", "vindr_cxr", "vindr_pcxr")


def test_every_name_is_used_or_says_why_not():
    table = load_table("finding_names")
    assert list(dict.fromkeys(table["source"])) == list(SOURCES)
    unused = table[table["finding"] == ""]
    assert (unused["reason"] != "").all()
    # A name that is not used has one row, and no other row uses it.
    rows = table.groupby(["source", "recorded"])["finding"].agg(["size", "min"])
    assert (rows[rows["min"] == ""]["size"] == 1).all()
    renamed = table[(table["finding"] != "") & (table["reason"] == "")]
    folded = renamed["recorded"].str.lower().str.replace(" ", "_")
    assert (folded == renamed["finding"]).all(), "a name that differs from its finding needs a reason"


def test_which_findings_each_source_labels():
    labelled = {
        source: {finding for findings in finding_names(source).values() for finding in findings}
        for source in SOURCES
    }
    assert labelled["mimic_cxr"] == labelled["chexpert"] == set(CHEST)
    assert set(CHEST) - labelled["nih_cxr14"] == {
        "enlarged_cardiomediastinum",
        "fracture",
        "lung_opacity",
        "support_devices",
    }
    assert set(CHEST) - labelled["padchest"] == {"enlarged_cardiomediastinum", "lung_opacity"}
    assert set(CHEST) - labelled["vindr_cxr"] == {"enlarged_cardiomediastinum", "support_devices"}
    assert labelled["vindr_pcxr"] == {"pneumonia"}


@pytest.mark.skipif(
    importlib.util.find_spec("torchxrayvision") is None,
    reason="the package with the PadChest table is not installed (make env installs it)",
)
def test_every_name_of_padchest_is_in_the_table_and_no_other():
    rows = read_text(installed_table("PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv.gz"))
    texts = {row["Labels"] for row in rows if row["Labels"].startswith("[")}
    names = {name.strip() for text in texts for name in ast.literal_eval(text)} - {""}
    assert names == set(finding_names("padchest"))


def answers(**columns):
    n = len(next(iter(columns.values())))
    return pd.DataFrame({name: columns.get(name.replace(" ", "_"), [""] * n) for name in LABELS}, dtype="str")


def test_answers():
    table = answers(Edema=["1.0", "0.0", "-1.0", "", "1", "0", "-1", None])
    coded = codes_from_answers("chexpert", table)
    assert list(coded.codes["edema"]) == [1, 0, -1, -2, 1, 0, -1, -2]
    assert (coded.codes["fracture"] == -2).all()
    assert list(coded.codes.columns) == list(CHEST)
    told = coded.tally[coded.tally["value"] == "edema"]
    assert dict(zip(told["recorded"], told["n_images"], strict=True)) == {
        "Edema: positive": 2,
        "Edema: negative": 2,
        "Edema: uncertain": 2,
        "Edema: blank": 2,
    }


@pytest.mark.parametrize("text", ["2.0", "nan", " 1.0", "yes", "-2"])
def test_another_answer_is_refused(text):
    with pytest.raises(InputError, match=r"^The labels of mimic_cxr hold 1 cells with another text"):
        codes_from_answers("mimic_cxr", answers(Edema=["1.0", text]))


def test_names():
    texts = pd.Series(["Mass|Effusion", "No Finding", "", "Mass|Effusion", "Hernia"], index=[5, 6, 7, 8, 9])
    coded = codes_from_names("nih_cxr14", texts, lambda text: text.split("|") if text else None)
    assert list(coded.codes.index) == list(texts.index)
    assert list(coded.codes["lung_lesion"].fillna(-9)) == [1, 0, -9, 1, 0]
    assert list(coded.codes["pleural_effusion"].fillna(-9)) == [1, 0, -9, 1, 0]
    assert coded.codes["fracture"].isna().all()
    told = dict(zip(coded.tally["recorded"], coded.tally["n_images"], strict=True))
    assert told == {"no label": 1, "Effusion": 2, "Hernia": 1, "Mass": 2, "No Finding": 1}


def test_a_name_listed_twice_counts_once():
    coded = codes_from_names("padchest", pd.Series(["x"]), lambda _: ["nodule", "nodule", "multiple nodules"])
    assert dict(zip(coded.tally["recorded"], coded.tally["n_images"], strict=True)) == {
        "multiple nodules": 1,
        "nodule": 1,
    }
    assert coded.codes["lung_lesion"][0] == 1


def test_a_name_that_counts_for_two_findings_says_so():
    counts = label_tally("padchest", {"hydropneumothorax": 3, "normal": 0, "unheard of": 1})
    assert counts.to_dict("list") == {
        "field": ["label"] * 2,
        "recorded": ["hydropneumothorax", "unheard of"],
        "value": ["pleural_effusion and pneumothorax", "not listed"],
        "n_images": [3, 1],
    }


def test_marks():
    used = [name for name, findings in finding_names("vindr_cxr").items() if findings]
    table = pd.DataFrame({name: ["0", "1.0"] for name in used}, dtype="str")
    marks = marks_by_name("vindr_cxr", table)
    assert marks.dtypes.eq(bool).all()
    present = marks_by_finding("vindr_cxr", marks)
    assert present.to_numpy().tolist() == [[False] * 11, [True] * 11]
    codes = codes_of_findings(present)
    assert codes["support_devices"].isna().all()
    assert list(codes["fracture"]) == [0, 1]


def test_many_rows_share_the_work_of_one_text():
    calls = []

    def parse(text):
        calls.append(text)
        return [text]

    texts = pd.Series(["nodule", "normal"] * 50_000)
    coded = codes_from_names("padchest", texts, parse)
    assert len(calls) == 2
    assert int((coded.codes["lung_lesion"] == 1).sum()) == 50_000

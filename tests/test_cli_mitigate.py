"""``frame mitigate``: what it reads, prints, writes and answers to wrong input."""

import json
import os
import re
import subprocess
import sys
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from frame.cli.application import application
from frame.mitigation.columns import COLUMNS, GROUPS
from frame.mitigation.registry import METHODS, NINE

N = 360


def run(*arguments, width=140):
    return CliRunner().invoke(
        application,
        ["mitigate", *(str(a) for a in arguments)],
        env={"COLUMNS": str(width), "TERM": "dumb"},
    )


def table(seed=0):
    rng = np.random.default_rng(seed)
    patient = np.arange(N) // 2
    return pd.DataFrame(
        {
            "image": [f"canary_{i}.png" for i in range(N)],
            "finding": (rng.random(N) < 0.4).astype(int),
            "sex": rng.choice(["F", "M"], N // 2)[patient],
            "age": rng.choice(["<40", "40+"], N // 2)[patient],
            "split": np.repeat(["train", "validation", "test"], [180, 60, 120]),
            "patient": [f"canary{p:03d}" for p in patient],
        }
    )


def embeddings(finding, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(len(finding), 4)) + finding.to_numpy()[:, None] * 0.8).astype("float32")


@pytest.fixture
def files(tmp_path):
    given = table()
    np.save(tmp_path / "features.npy", embeddings(given["finding"]))
    given.to_csv(tmp_path / "images.csv", index=False)
    return tmp_path


def arguments(folder, **replaced):
    given = {
        "--features": folder / "features.npy",
        "--table": folder / "images.csv",
        "--label": "finding",
        "--group": "sex",
        "--patient": "patient",
        "--split": "split",
        "--method": "platt",
        "--measure": "auroc",
        "--resamples": "100",
    } | {f"--{name.replace('_', '-')}": value for name, value in replaced.items()}
    return [part for name, value in given.items() if value is not None for part in (name, value)]


def plain(text):
    return " ".join(text.split())


# -- what it prints and writes ------------------------------------------------------------------------


def test_help_names_every_option():
    shown = run("--help", width=200).stdout
    for option in (
        *("--features", "--table", "--label", "--group", "--patient", "--split", "--missing", "--method"),
        *("--list", "--weights", "--head", "--cap", "--seed", "--measure", "--threshold", "--min-size"),
        *("--tolerance", "--alpha", "--resamples", "--out", "--format", "--html", "--groups-out"),
        "--suppress-below",
    ):
        assert option in shown


def test_list_explains_every_method():
    result = run("--list", width=120)
    assert (result.exit_code, result.stderr) == (0, "")
    words = plain(result.stdout)
    for method in METHODS.values():
        assert method.name in words
        assert plain(method.sentence) in words
    assert words.count("beside the paper's nine") == len(METHODS) - len(NINE)


def test_list_and_help_load_nothing_heavy():
    code = (
        "import sys\nfrom frame.cli import main\nsys.argv = ['frame', 'mitigate', {!r}]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('LOADED', *sorted({{m.split('.')[0] for m in sys.modules}}))"
    )
    for option in ("--list", "--help"):
        shown = subprocess.run(
            [sys.executable, "-c", code.format(option)], capture_output=True, text=True, check=True
        ).stdout
        loaded = set(shown[shown.index("LOADED") :].split())
        heavy = {"numpy", "scipy", "pandas", "sklearn", "torch", "numba", "fairlearn", "matplotlib"}
        assert not loaded & heavy


@pytest.mark.parametrize("width", [80, 120, 140])
def test_printed_result_fits_the_window(files, width):
    result = run(*arguments(files), "--method", "reweigh", width=width)
    assert result.exit_code == 0
    words = plain(result.stdout)
    assert "AUROC by sex" in words
    assert "The difference in AUROC between subgroups of sex is" in words
    assert "with a loss of at most 0.01 of disease AUROC allowed on the images that chose it" in words
    assert "paired changes of a difference (2 methods, 1 attribute, 1 measure) are more than chance" in words
    assert "train 180 images" in words
    assert "canary" not in result.stdout + result.stderr


def test_every_format(files):
    for name in ("r.csv", "r.json", "r.md", "r.txt"):
        result = run(*arguments(files), "--out", files / name)
        assert result.exit_code == 0, result.stderr
        assert result.stdout == ""
        assert f"Written to {files / name}" in result.stderr.replace("\n", "")
        text = (files / name).read_text(encoding="utf-8")
        assert "canary" not in text
    written = pd.read_csv(files / "r.csv", keep_default_na=False)
    assert list(written.columns) == list(COLUMNS)
    assert written["method"].tolist() == ["unmitigated", "platt", "achievable", "achievable"]
    held = json.loads((files / "r.json").read_text(encoding="utf-8"))
    assert [row["method"] for row in held] == written["method"].tolist()
    assert held[0]["change"] is None
    assert held[1]["before"] == pytest.approx(float(written["before"].iloc[1]))
    assert "### AUROC by sex" in (files / "r.md").read_text(encoding="utf-8")
    printed = run(*arguments(files), "--format", "csv")
    pd.testing.assert_frame_equal(pd.read_csv(StringIO(printed.stdout), keep_default_na=False), written)


def test_report_and_groups(files):
    result = run(*arguments(files), "--html", files / "r.html", "--groups-out", files / "g.csv")
    assert result.exit_code == 0, result.stderr
    report = (files / "r.html").read_text(encoding="utf-8")
    assert "Mitigation compared: finding by sex" in report
    assert "features.npy and images.csv, 360 rows of 4 numbers (float32)" in report
    groups = pd.read_csv(files / "g.csv", keep_default_na=False)
    assert list(groups.columns) == list(GROUPS)
    assert groups["group"].tolist() == ["F", "M"] * 2
    assert "canary" not in report + groups.to_csv()


def test_a_table_in_parquet_and_two_attributes(files):
    table().to_parquet(files / "images.parquet")
    result = run(*arguments(files, table=files / "images.parquet"), "--group", "age", "--format", "csv")
    shown = pd.read_csv(StringIO(result.stdout), keep_default_na=False)
    from_csv = run(*arguments(files), "--group", "age", "--format", "csv")
    assert result.stdout == from_csv.stdout
    assert shown["attribute"].unique().tolist() == ["sex", "age"]


def test_without_a_split_it_says_that_one_was_drawn(files):
    result = run(*arguments(files, split=None))
    assert result.exit_code == 0, result.stderr
    assert "No split was given: the patients were split at random with seed 0" in plain(result.stdout)


def test_without_ids_it_names_the_option_for_them(files):
    shown = plain(run(*arguments(files, patient=None)).stdout)
    assert "so give --patient if there are ids." in shown
    assert "patients=" not in shown


def test_weights_and_missing_groups(files):
    given = table()
    given.loc[::9, "sex"] = ""
    given.to_csv(files / "images.csv", index=False)
    refused = run(*arguments(files))
    assert refused.exit_code == 2
    assert "column 'sex' is blank for 40 of 360 images" in refused.stderr
    assert "--missing drop leaves them out" in refused.stderr
    kept = run(*arguments(files), "--missing", "drop", "--weights", "equal", "--format", "csv")
    shown = pd.read_csv(StringIO(kept.stdout), keep_default_na=False)
    assert shown["method"].tolist()[:2] == ["unmitigated", "unmitigated_known_groups"]
    assert set(shown["weighting"]) == {"equal"}
    assert set(shown["n_without_group"]) == {13}


def test_small_counts_are_hidden(files):
    given = table()
    rare = given.index[given["split"] == "test"][:5]
    given.loc[rare, "sex"] = "X"
    given.to_csv(files / "images.csv", index=False)
    result = run(
        *arguments(files),
        "--suppress-below",
        "10",
        "--html",
        files / "r.html",
        "--groups-out",
        files / "g.csv",
    )
    assert result.exit_code == 0, result.stderr
    groups = pd.read_csv(files / "g.csv", keep_default_na=False).astype(str)
    hidden = groups[groups["status"] == "suppressed"]
    assert set(hidden["group"]) >= {"X"}
    assert len(set(hidden["group"])) > 1  # one alone could be computed from the others
    assert hidden[["n_images", "n_positive", "value", "change"]].eq("").all(axis=None)
    assert "Counts below 10 are suppressed" in result.stdout
    for text in (result.stdout, (files / "r.html").read_text(encoding="utf-8")):
        assert not re.search(r"\b[1-9] images\b", text)


# -- mistakes -----------------------------------------------------------------------------------------


def refusal(*given):
    result = run(*given)
    assert result.exit_code == 2, result.stdout
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert "canary" not in result.stderr
    assert result.stderr.startswith("frame: ")
    return plain(result.stderr).removeprefix("frame: ")


def saved(array, **options):
    def make(path):
        np.save(path, array, **options)

    return make


def written(content):
    return lambda path: path.write_bytes(content)


def cut_off(path):
    np.save(path, np.zeros((N, 4), dtype="float32"))
    path.write_bytes(path.read_bytes()[:-100])


def with_nan(path):
    array = np.zeros((N, 4), dtype="float32")
    array[3, 1] = np.nan
    np.save(path, array)


def archived(path):
    with path.open("wb") as file:
        np.savez(file, features=np.zeros((N, 4)))


ZEROS = np.zeros((N, 4), dtype="float32")
BAD_FEATURES = {
    "absent": (lambda path: None, "there is no such file; check the name and the folder."),
    "folder": (lambda path: path.mkdir(), "is a folder; give a .npy file."),
    "empty_file": (written(b""), "is empty; save the embeddings with numpy.save('embeddings.npy', array)."),
    "text": (written(b"1,2,3\n"), "is no .npy file, whatever its name ends with; save the embeddings"),
    "archive": (archived, "is an archive (.npz, .zip or a torch file), whatever its name ends with;"),
    "parquet": (written(b"PAR1xxxx"), "is a parquet file, whatever its name ends with;"),
    "pickle": (written(b"\x80\x04\x95"), "is a pickle, whatever its name ends with;"),
    "damaged_header": (
        written(b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f4'"),
        "the header of the .npy file is",
    ),
    "later_format": (written(b"\x93NUMPY\x03\x00\x10\x00\x00\x00{}"), "has the .npy format 3.0, which plain"),
    "cut_off": (cut_off, "is cut off: its header promises 5,888 bytes and there are 5,788; write it again."),
    "objects": (
        saved(np.array([[None]] * N, dtype=object), allow_pickle=True),
        "holds pickled Python objects, which are not read because a pickle can run code;",
    ),
    "structured": (
        saved(np.zeros(N, dtype=[("a", "f4"), ("b", "f4")])),
        "is a structured array with 2 named columns; give a plain array of numbers, one row per image.",
    ),
    "one_dimension": (saved(ZEROS[:, 0]), "has 1 dimension (shape (360,)); give two, one row per image"),
    "three_dimensions": (saved(ZEROS[:, :, None]), "has 3 dimensions (shape (360, 4, 1)); give two,"),
    "no_dimension": (saved(np.float32(1.0)), "has 0 dimensions (shape ()); give two,"),
    "no_rows": (saved(ZEROS[:0]), "is empty (0 rows of 4 numbers); give at least one row and one column."),
    "whole_numbers": (saved(ZEROS.astype("int16")), "holds int16; give float16, float32 or float64"),
    "text_array": (saved(np.array([["a"]] * N)), "holds <U1; give float16, float32 or float64"),
    "complex": (saved(ZEROS.astype("complex64")), "holds complex64; give float16, float32 or float64"),
    "fewer_rows": (
        saved(ZEROS[:-1]),
        "has 359 rows and images.csv has 360; give one row per image in both, in the same order.",
    ),
    "not_a_number": (
        with_nan,
        "1 row has a missing or infinite value (in column 1, counted from 0); make these embeddings again,",
    ),
}


@pytest.mark.parametrize("case", BAD_FEATURES)
def test_bad_embeddings_are_a_sentence(case, files):
    make, sentence = BAD_FEATURES[case]
    path = files / "features.npy"
    path.unlink()
    make(path)
    out = files / "r.csv"
    said = refusal(*arguments(files), "--out", out)
    assert said.startswith("features.npy")
    assert sentence in said
    assert not out.exists()


@pytest.mark.parametrize(
    "make",
    [
        saved(embeddings(table()["finding"]).astype(">f4")),
        saved(np.asfortranarray(embeddings(table()["finding"]))),
        saved(embeddings(table()["finding"]).astype("float64")),
    ],
    ids=["big_endian", "fortran", "double"],
)
def test_other_ways_to_store_the_same_embeddings_give_the_same(make, files):
    wanted = run(*arguments(files), "--format", "csv").stdout
    (files / "features.npy").unlink()
    make(files / "features.npy")
    given = run(*arguments(files), "--format", "csv")
    assert given.exit_code == 0, given.stderr
    one, other = (pd.read_csv(StringIO(text)) for text in (wanted, given.stdout))
    pd.testing.assert_frame_equal(one, other, atol=1e-5)


def changed(**columns):
    def change(given):
        return given.assign(**{name: make(given) for name, make in columns.items()})

    return change


BAD_TABLES = {
    "labels": (
        changed(finding=lambda t: t["finding"].replace({0: -1})),
        "images.csv, column 'finding': the labels hold -1 (",
    ),
    "label_words": (
        changed(finding=lambda t: np.where(t["finding"] == 1, "yes", "no")),
        "Write 0 or 1 into that column, and nothing where the label is unknown.",
    ),
    "no_labels": (changed(finding=lambda t: ""), "labels are missing for all 360 images"),
    "one_class_in_a_split": (
        changed(finding=lambda t: t["finding"].where(t["split"] != "validation", 0)),
        "split 'validation' has no positive among its 60 images with a label; every split needs both",
    ),
    "one_group": (changed(sex=lambda t: "F"), "column 'sex' has one subgroup, 'F'; a difference needs two."),
    "ids_as_groups": (
        changed(sex=lambda t: t["image"]),
        "360 different values in 360 rows are too many for subgroups",
    ),
    "patient_in_two_splits": (
        changed(patient=lambda t: t["patient"].where(t.index != 350, "canary000")),
        "1 patient is in more than one split (1 in test and train).",
    ),
    "no_test": (
        changed(split=lambda t: t["split"].replace({"test": "held out"})),
        "images.csv, column 'split': no row says 'test'; found are 180 'train', 60 'validation', 120",
    ),
    "blank_patient": (
        changed(patient=lambda t: t["patient"].where(t.index != 4, "")),
        "the id is missing for 1 of 360 images; fill it in, or leave those images out with --missing drop.",
    ),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_tables_are_a_sentence(case, files):
    change, sentence = BAD_TABLES[case]
    change(table()).to_csv(files / "images.csv", index=False)
    assert sentence in refusal(*arguments(files))


def test_features_too_large_for_their_squares_name_the_file(files):
    np.save(files / "features.npy", embeddings(table()["finding"]).astype("float64") * 1e200)
    said = refusal(*arguments(files))
    assert said.startswith("features.npy: the features are too large for their squares in float64; divide")


BAD_OPTIONS = {
    "no_features": ({"features": None}, "no --features were given; name a .npy file"),
    "no_table": ({"table": None}, "no --table was given; name a CSV or parquet file"),
    "no_label": ({"label": None}, "no --label was given; name a column of images.csv with it."),
    "no_group": ({"group": None}, "no --group was given; name a column of images.csv with it."),
    "unknown_column": ({"label": "findin"}, "images.csv has no column 'findin'; did you mean 'finding'?"),
    "one_column_twice": ({"group": "split"}, "column 'split' is named 2 times; name each column once,"),
    "blank_column": ({"patient": " "}, "an option names a column without a name;"),
    "method": ({"method": "leaze"}, "--method is 'leaze'; allowed are resample, reweigh,"),
    "threshold": ({"threshold": "0.5"}, "--threshold is '0.5'; every method has a scale of its own, so give"),
    "resamples": ({"resamples": "9"}, "--resamples is 9; give a whole number of at least 100"),
    "tolerance": ({"tolerance": "-1"}, "--tolerance is -1.0; it must be a number from 0 to 1."),
    "alpha": ({"alpha": "1"}, "--alpha is 1.0; it must be a number between 0 and 1."),
    "cap": ({"cap": "0"}, "--cap is 0; give a whole number of at least 1."),
    "min_size": ({"min_size": "0"}, "--min-size is 0"),
    "seed": ({"seed": "-3"}, "--seed is -3; give a whole number of at least 0"),
    "suppress_below": ({"suppress_below": "-3"}, "--suppress-below is -3"),
}


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_bad_options_are_a_sentence(case, files):
    replaced, sentence = BAD_OPTIONS[case]
    assert refusal(*arguments(files, **replaced)).startswith(sentence)


BAD_TARGETS = {
    "features": (("--out", "features.npy", "--format", "csv"), "--out is 'features.npy', the file of embed"),
    "table": (
        ("--out", "images.csv"),
        "--out is 'images.csv', the table of images itself; give another file.",
    ),
    "same": (
        ("--out", "r.csv", "--groups-out", "r.csv"),
        "--groups-out and --out are both 'r.csv'; give two",
    ),
    "folder": (("--html", "."), "--html names a folder"),
    "no_folder": (("--html", "gone/r.html"), "--html: 'r.html' cannot be written to: its folder does not"),
    "ending": (("--out", "r.xlsx"), "--out is 'r.xlsx', whose ending says no format;"),
    "groups_ending": (
        ("--groups-out", "g.json"),
        "--groups-out is 'g.json', whose ending is not .csv; end it with .csv.",
    ),
    "html_ending": (
        ("--html", "r.txt"),
        "--html is 'r.txt', whose ending is not .html or .htm; end it with .html.",
    ),
}


@pytest.mark.parametrize("case", BAD_TARGETS)
def test_bad_targets_are_a_sentence(case, files):
    given, sentence = BAD_TARGETS[case]
    before = {path.name: path.read_bytes() for path in files.iterdir()}
    paths = [str(files / g) if not g.startswith("--") and g != "csv" else g for g in given]
    assert refusal(*arguments(files), *paths).startswith(sentence)
    assert {path.name: path.read_bytes() for path in files.iterdir()} == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_no_right_to_write_is_a_sentence(files):
    (files / "closed").mkdir(mode=0o500)
    said = refusal(*arguments(files), "--out", files / "closed" / "r.csv")
    assert said == "--out: 'r.csv' cannot be written (permission denied)."


def test_an_unwritable_file_is_a_sentence_before_anything_is_fitted(files, monkeypatch):
    target = files / "r.csv"
    target.write_text("kept")
    monkeypatch.setattr(os, "access", lambda _, mode: mode != os.W_OK)
    assert "'r.csv' may not be written to" in refusal(*arguments(files), "--out", target)
    assert target.read_text() == "kept"

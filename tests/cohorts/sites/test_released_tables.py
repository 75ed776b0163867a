"""Released tables as text: blank cells and zeros stay, damage is refused without quoting a row."""

import gzip
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from frame.cohorts.sites.contract import SiteFiles, SiteRows
from frame.cohorts.sites.released_tables import (
    check_filled,
    check_linked,
    check_unique,
    first_kept,
    looked_up,
    only_frontal,
    read_columns,
    tallied,
    whole_numbers,
)
from frame.errors import InputError

SECRET = "canary-4711-patient"


def text(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_cells_stay_as_they_are(tmp_path):
    path = text(tmp_path / "t.csv", '\ufeffid,b,note\n007,NA,x\n7 ,,"two\nlines"\n')
    table = read_columns(path, ("note", "id"))
    assert table.to_dict("list") == {"note": ["x", "two\nlines"], "id": ["007", "7 "]}
    assert read_columns(path, ("id",), others=True).to_dict("list")["b"] == ["NA", ""]
    assert list(read_columns(path, ("note",), others=True).columns) == ["note", "id", "b"]


def test_plain_and_compressed_files_read_alike(tmp_path):
    plain = text(tmp_path / "t.csv", "id,b\n1,2\n")
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_columns(plain, ("b", "id")).equals(read_columns(packed, ("b", "id")))


RAGGED = (
    "t.csv has a row with another number of cells than its header; the file is cut off or damaged: download "
    "it again."
)
UNREADABLE = (
    "t.csv cannot be read ({}); it must be a CSV file in UTF-8, plain or compressed: download it again."
)
NO_COLUMN = "t.csv has no column {} columns; it must be the table as its owner releases it, with its header."
TWICE = (
    "t.csv has two columns of one name{}, and which one is meant cannot be told; it must be the table as its "
    "owner releases it."
)
QUOTE = (
    "t.csv has a quotation mark that opens a cell and does not close it, so that rows below it would be "
    "lost; the file is cut off or damaged: download it again."
)
DAMAGED = {
    "no-column": (f"id,{SECRET}\n1,2\n", NO_COLUMN.format("b among its 2")),
    "no-rows": ("id,b\n", "t.csv has no row below its header; download it again."),
    "cut-off": (f"id,b\n1,2\n{SECRET}", RAGGED),
    "longer-rows": (f"id,b\n1,2,{SECRET}\n", RAGGED),
    "one-longer-row": (f"id,b\n1,2\n1,2,{SECRET}\n1,2\n", RAGGED),
    "empty": ("", NO_COLUMN.format("id, b among its 0")),
    "latin": ("id,b\n1,é\n".encode("latin-1"), UNREADABLE.format("UnicodeDecodeError")),
    "no-text": (b"\x00\xff\xfe\x01", UNREADABLE.format("UnicodeDecodeError")),
    "column-twice": (f"id,b,id\n1,2,{SECRET}\n", TWICE.format(" (id)")),
    "open-quote": (f'id,b\n1,"x\n{SECRET},y\n3,z\n', QUOTE),
    "two-open-quotes": (f'id,b\n1,"x\n2,{SECRET}\n3,"y\n4,z\n', QUOTE),
    "open-quote-in-a-column-not-asked-for": (f'id,b,note\n1,2,"x\n{SECRET},y,3\n', QUOTE),
    "late-latin": (b"id,b\n" + b"1,2\n" * 9_000 + b"1,\xe9\n", UNREADABLE.format("ArrowInvalid")),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_tables_are_refused_without_their_rows(tmp_path, case):
    content, message = DAMAGED[case]
    with pytest.raises(InputError) as error:
        read_columns(text(tmp_path / "t.csv", content), ("id", "b"))
    assert str(error.value) == message
    assert SECRET not in str(error.value)


def test_two_columns_of_one_name_are_refused_where_all_are_read(tmp_path):
    path = text(tmp_path / "t.csv", "id,b,b\n1,2,3\n")
    assert len(read_columns(path, ("id",))) == 1
    with pytest.raises(InputError) as error:
        read_columns(path, ("id",), others=True)
    assert str(error.value) == TWICE.format("")


@pytest.mark.parametrize(
    "content",
    [
        "id,b\n1,2\n3,4",
        "id,b\r\n1,2\r\n3,4\r\n",
        "id,b\r1,2\r3,4\r",
        "id,b\n1,2\n\n3,4\n\n",
        '"id","b"\n"1","2"\n"3","4"\n',
        "\ufeffid,b\n1,2\n3,4\n",
    ],
    ids=["no-end", "crlf", "cr", "blank-lines", "quoted", "mark"],
)
def test_line_ends_and_quotes_of_any_kind(tmp_path, content):
    table = read_columns(text(tmp_path / "t.csv", content), ("id", "b"))
    assert table.to_dict("list") == {"id": ["1", "3"], "b": ["2", "4"]}


def test_quotes_that_are_no_damage(tmp_path):
    content = 'id,b\n1,"say ""a, b"" twice\nand\n\nagain"\n2,5" tube\n3,""\n'
    table = read_columns(text(tmp_path / "t.csv", content), ("id", "b"))
    assert list(table["id"]) == ["1", "2", "3"]
    assert list(table["b"]) == ['say "a, b" twice\nand\n\nagain', '5" tube', ""]


def test_an_archive_that_ends_early_anywhere_or_is_altered_is_refused(tmp_path):
    rows = "".join(f"{at},{at * 7919 % 100_003}\n" for at in range(20_000))
    packed = gzip.compress(f"id,b\n{rows}".encode())
    altered = bytearray(packed)
    altered[-6] ^= 1
    ends = [1, 12, 100, len(packed) // 3, len(packed) - 9, len(packed) - 8, len(packed) - 4, len(packed) - 1]
    for content in (*(packed[:end] for end in ends), bytes(altered), packed + b"more"):
        with pytest.raises(InputError, match=r"^t.csv.gz cannot be read"):
            read_columns(text(tmp_path / "t.csv.gz", content), ("id", "b"))
    whole = read_columns(text(tmp_path / "t.csv.gz", packed), ("id", "b"))
    assert len(whole) == 20_000


def test_a_join_without_any_row_is_refused_and_one_with_some_is_not():
    check_linked(np.array([False, True, False]), "t.csv", "id")
    check_linked(pd.Series(dtype=bool), "t.csv", "id")
    with pytest.raises(InputError, match=r"^t.csv has no row for any of 2 images by id; .*12 into 12\.0"):
        check_linked(pd.Series([False, False]), "t.csv", "id")


def test_whole_numbers_are_read_or_refused():
    found = whole_numbers(pd.Series(["2150", "2150.0", " 7 ", "", None], dtype="str"), "year", "t.csv")
    assert found.fillna(-99).tolist() == [2150, 2150, 7, -99, -99]
    for odd in ("2150.5", "1e3", "inf", "0x10", "abc"):
        with pytest.raises(InputError, match=r"^t.csv holds 1 cells with another text .* in column year"):
            whole_numbers(pd.Series(["1", odd]), "year", "t.csv")


def test_a_broken_archive_and_an_absent_file_are_refused(tmp_path):
    packed = gzip.compress(("id,b\n" + "1,2\n" * 10_000).encode())
    for name, content in (("cut.csv.gz", packed[: len(packed) // 2]), ("plain.csv.gz", b"id,b\n1,2\n")):
        with pytest.raises(InputError, match=f"^{name} cannot be read"):
            read_columns(text(tmp_path / name, content), ("id", "b"))
    with pytest.raises(InputError, match=r"^gone.csv cannot be read \(FileNotFoundError\)"):
        read_columns(tmp_path / "gone.csv", ("id",))


def test_keys():
    table = pd.DataFrame({"a": ["1", "1", "2"], "b": ["x", "y", " "]}, dtype="str")
    check_unique(table[["a"]].assign(c=["1", "2", "3"]), ["a", "c"], "t.csv")
    with pytest.raises(InputError, match=r"^t.csv: 1 of 3 rows have the a of an earlier row"):
        check_unique(table, ["a"], "t.csv")
    with pytest.raises(InputError, match=r"^t.csv: b is blank in 1 of 3 rows; every row needs one\.$"):
        check_filled(table, ["a", "b"], "t.csv")


def test_look_up():
    table = pd.DataFrame({"key": ["7", "007", "a"], "value": ["seven", "spare", ""]}, dtype="str")
    keys = pd.Series(["007", "b", "7", "007", "a"], index=[3, 1, 4, 15, 9], dtype="str")
    rows = looked_up(keys, table, "key")
    assert list(rows.index) == list(keys.index)
    assert list(rows["found"]) == [True, False, True, True, True]
    assert list(rows["value"].fillna("missing")) == ["spare", "missing", "seven", "spare", ""]


def test_most_frequent_level_and_ties():
    levels = pd.Series(["A", "B", None, "B", "A", None, "C", None], dtype="str")
    subjects = pd.Series(["p", "p", "p", "q", "q", "q", "r", "s"], dtype="str")
    kept = first_kept(levels, subjects)
    assert dict(kept) == {"p": 1, "q": 4, "r": 6, "s": 7}


def test_tally_counts_missing_values_and_blank_texts():
    counts = tallied("x", pd.Series(["b", "", None, "b", "c"]), pd.Series(["1", None, None, "1", None]))
    assert list(counts["recorded"]) == ["", "b", "c"]
    assert list(counts["n_images"]) == [2, 2, 1]
    assert list(counts["value"].fillna("missing")) == ["missing", "1", "missing"]


def test_frontal_views_are_numbered_anew():
    images = pd.DataFrame({"view": ["L", "PA", "AP_horizontal", ""], "n": range(4)})
    kept, views, excluded, told = only_frontal(images, "view")
    assert list(kept.index) == list(views.index) == [0, 1]
    assert list(kept["n"]) == [1, 2]
    assert list(views) == ["PA", "AP"]
    assert excluded.to_dict("list") == {"reason": ["no view recorded", "view L"], "n_images": [1, 1]}
    assert set(told["recorded"]) == {"PA", "AP_horizontal"}


def test_rows_and_files_do_not_print_their_tables():
    table = pd.DataFrame({"image_id": [SECRET]})
    assert SECRET not in repr(SiteRows(table, table, table))
    assert "SiteFiles" in repr(SiteFiles("x", None, None, {}))


def test_nothing_heavy_is_loaded_for_the_package():
    heavy = "{'pydicom', 'PIL', 'pyarrow', 'numpy', 'torch'}"
    code = f"import sys, frame.cohorts.sites; print(sorted({heavy} & set(sys.modules)))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_a_missing_pyarrow_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError) as error:
        read_columns(text(tmp_path / "t.csv", "id\n1\n"), ("id",))
    assert (
        str(error.value) == "Reading t.csv needs pyarrow; install it with: pip install 'frame-audit[study]'."
    )


def test_large_tables_keep_text_and_order(tmp_path):
    n = 70_000
    ids = np.random.default_rng(0).permutation(n)
    content = "id,b\n" + "".join(f"{at:06d},{at % 7}\n" for at in ids)
    table = read_columns(text(tmp_path / "t.csv", content), ("id", "b"))
    assert list(table["id"]) == [f"{at:06d}" for at in ids]

"""Reading tables of claims: every mistake gets one sentence that says where it is."""

import math
from fractions import Fraction

import pandas as pd
import pytest

from frame import InputError
from frame.claims import TEMPLATE, read_claims

HEADER = "claim_id,metric,subgroup,value,n_positive,n_negative,overall_value"
GOOD = [
    "one,auroc,Female,0.86,120,910,0.84",
    "one,auroc,Male,0.81,135,1010,0.84",
    "two,tpr,Young,0.80,212,,",
    "two,tpr,Old,0.75,301,,",
]


def write(tmp_path, lines, name="claims.csv", encoding="utf-8", end="\n"):
    path = tmp_path / name
    path.write_bytes((end.join(lines) + end).encode(encoding))
    return path


def replaced(row, old, new):
    lines = [HEADER, *GOOD]
    assert old in lines[row], "the test must change something"
    lines[row] = lines[row].replace(old, new)
    return lines


BAD = {
    # what: (lines, what the sentence must contain)
    "missing column": (
        [HEADER.replace("metric,", ""), "one,Female,0.86,120,910,0.84"],
        ["claims.csv", "'metric' missing", "found are claim_id, subgroup"],
    ),
    "misspelt column": (
        [HEADER.replace("overall_value", "overal_value"), *GOOD],
        ["'overal_value' is not known", "did you mean 'overall_value'"],
    ),
    "column twice": ([HEADER + ",value", *(r + ",0.1" for r in GOOD)], ["'value'", "twice"]),
    "no rows": ([HEADER], ["header but no row"]),
    "unknown measure": (
        replaced(1, "auroc", "accuracy"),
        ["row 2, column 'metric'", "'accuracy'", "auroc, tpr, fpr"],
    ),
    "sensitivity": (replaced(3, "tpr", "sensitivity"), ["row 4", "sensitivity is called tpr"]),
    "specificity": (replaced(3, "tpr", "specificity"), ["row 4", "fpr = 1 - specificity"]),
    "negative count": (replaced(1, "120", "-120"), ["row 2, column 'n_positive'", "'-120' is negative"]),
    "fractional count": (
        replaced(1, "120", "120.5"),
        ["row 2, column 'n_positive'", "'120.5' is a fraction"],
    ),
    "missing count": (replaced(2, "135", ""), ["row 3, column 'n_positive'", "blank", "not printed"]),
    "missing rate count": (replaced(4, "301", ""), ["row 5, column 'n_positive'", "tpr needs this count"]),
    "count in words": (replaced(1, "120", "many"), ["row 2, column 'n_positive'", "'many' is no number"]),
    "infinite count": (replaced(1, "120", "inf"), ["row 2, column 'n_positive'", "'inf'"]),
    "count with separator": (
        replaced(1, "910", '"1,910"'),
        ["row 2, column 'n_negative'", "thousands separator"],
    ),
    "huge count": (replaced(1, "910", "9999999999"), ["row 2, column 'n_negative'", "larger than"]),
    "value above 1": (replaced(1, "0.86", "186"), ["row 2, column 'value'", "'186' is outside 0 to 1"]),
    "value below 0": (replaced(1, "0.86", "-0.1"), ["row 2, column 'value'", "'-0.1' is outside 0 to 1"]),
    "percent": (replaced(1, "0.86", "86"), ["row 2, column 'value'", "percentage", "0.86"]),
    "percent sign": (replaced(1, "0.86", "86%"), ["row 2, column 'value'", "percentage", "fraction"]),
    "overall in percent": (replaced(1, "0.84", "84"), ["row 2, column 'overall_value'", "percentage"]),
    "decimal comma": (replaced(1, "0.86", '"0,86"'), ["row 2, column 'value'", "decimal comma"]),
    "value in words": (replaced(1, "0.86", "high"), ["row 2, column 'value'", "'high' is no number"]),
    "value nan": (replaced(1, "0.86", "nan"), ["row 2, column 'value'", "'nan' is no number"]),
    "missing value": (replaced(4, "0.75", ""), ["row 5, column 'value'", "blank"]),
    "one subgroup": ([HEADER, GOOD[0]], ["row 2", "'one' has one subgroup only"]),
    "subgroup twice": (replaced(2, "Male", "Female"), ["row 3, column 'subgroup'", "'Female' stands twice"]),
    "blank subgroup": (replaced(2, "Male", ""), ["row 3, column 'subgroup'", "blank"]),
    "blank claim": (replaced(2, "one", ""), ["row 3, column 'claim_id'", "blank"]),
    "conflicting overall": (
        replaced(2, "0.84", "0.85"),
        ["row 3, column 'overall_value'", "'0.85' conflicts with '0.84'"],
    ),
    "conflicting metric": (
        replaced(2, "auroc", "tpr"),
        ["row 3, column 'metric'", "'tpr' conflicts with 'auroc'"],
    ),
    "unknown direction": (
        [HEADER + ",claim_direction", *(r + ",harm" for r in GOOD)],
        ["row 2, column 'claim_direction'", "disparity, caution or blank"],
    ),
    "ragged row": (
        [HEADER, *GOOD, "three,tpr,A,0.8,10,20,0.8,extra,cells"],
        ["claims.csv", "row 6", "more cells"],
    ),
    "no separator": (["just some text", "and more"], ["no comma, semicolon or tab"]),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_tables_get_one_sentence(tmp_path, what):
    lines, fragments = BAD[what]
    with pytest.raises(InputError) as error:
        read_claims(write(tmp_path, lines))
    sentence = str(error.value)
    assert "\n" not in sentence
    for fragment in fragments:
        assert fragment in sentence, sentence


def test_several_problems_are_counted_and_the_first_is_named(tmp_path):
    lines = [line.replace("0.8", "8") for line in [HEADER, *GOOD]]
    with pytest.raises(InputError, match=r"row 2, column 'value'.*more cell\(s\)"):
        read_claims(write(tmp_path, lines))


def test_files_that_are_no_tables(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_claims(tmp_path / "absent.csv")
    with pytest.raises(InputError, match="cannot be opened"):
        read_claims(tmp_path)
    cases = {
        "empty.csv": (b"", "empty"),
        "blank.csv": (b"\n \n", "empty"),
        "xlsx.csv": (b"PK\x03\x04rest", "spreadsheet"),
    }
    cases |= {
        "xls.csv": (b"\xd0\xcf\x11\xe0rest", "spreadsheet"),
        "latin.csv": (b"claim_id,metr\xefc\n", "UTF-8"),
    }
    cases |= {"zero.csv": (b"claim_id,metric\n\x00,1\n", "zero bytes")}
    for name, (content, fragment) in cases.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(InputError, match=fragment) as error:
            read_claims(path)
        assert name in str(error.value)
        assert str(tmp_path) not in str(error.value)


@pytest.mark.parametrize(
    ("encoding", "end", "separator"),
    [
        ("utf-8", "\r\n", ","),
        ("utf-8-sig", "\n", ","),
        ("utf-8-sig", "\r\n", ";"),
        ("utf-16", "\r\n", "\t"),
        ("utf-8", "\r", ","),
    ],
)
def test_line_ends_marks_and_separators_change_nothing(tmp_path, encoding, end, separator):
    plain = read_claims(write(tmp_path, [HEADER, *GOOD]))
    lines = [line.replace(",", separator) for line in [HEADER, *GOOD, ",,,,,,"]]
    assert read_claims(write(tmp_path, lines, "other.csv", encoding, end)) == plain


def test_semicolons_allow_decimal_commas(tmp_path):
    lines = [line.replace(",", ";").replace("0.", "0,") for line in [HEADER, *GOOD]]
    assert read_claims(write(tmp_path, lines)) == read_claims(write(tmp_path, [HEADER, *GOOD], "plain.csv"))


def claims_of(text, tmp_path):
    return {c.claim_id: c for c in read_claims(write(tmp_path, text.splitlines()))}


def test_the_four_kinds_of_input(tmp_path):
    claims = claims_of(TEMPLATE, tmp_path)
    assert list(claims) == [
        "values-and-counts",
        "confusion-counts",
        "total-and-prevalence",
        "difference-only",
    ]
    assert all(c.auditable for c in claims.values())
    counted = claims["confusion-counts"]
    assert counted.n_positive == (260, 400)
    assert counted.exact_difference == Fraction(212, 260) - Fraction(301, 400)
    assert counted.overall == pytest.approx(513 / 660)
    assert (counted.overall_source, counted.decimals, counted.half_width) == ("weighted mean", None, 0.0)
    shares = claims["total-and-prevalence"]
    assert shares.n_negative == (2400 - 432, 800 - 176)
    assert shares.overall == pytest.approx((0.11 * 1968 + 0.19 * 624) / 2592)
    alone = claims["difference-only"]
    assert (alone.difference, alone.overall, alone.values) == (0.05, 0.88, ())
    assert (alone.decimals, alone.half_width) == (2, 0.005)
    printed = claims["values-and-counts"]
    assert (printed.overall_source, printed.decimals, printed.half_width) == ("printed", 2, 0.01)
    assert printed.denominators == (1030, 1145)


def test_prevalence_is_multiplied_in_decimal_and_rounded_half_up(tmp_path):
    text = "claim_id,metric,subgroup,value,n_total,prevalence\na,tpr,x,0.5,50,0.29\na,tpr,y,0.5,15,0.5\n"
    # 50 x 0.29 is 14.5; in binary it is 14.499999999999998
    assert claims_of(text, tmp_path)["a"].n_positive == (15, 8)


@pytest.mark.parametrize(
    ("row", "fragments"),
    [
        ("a,tpr,x,0.70,,,8,2,,", ["row 2, column 'value'", "'0.70' conflicts with 0.8000"]),
        ("a,tpr,x,0.80,11,,8,2,,", ["row 2, column 'n_positive'", "11 conflicts with 10"]),
        ("a,tpr,x,,,,8,,,", ["row 2, column 'fn'", "'tp' is given"]),
        ("a,tpr,x,0.8,,,,,100,", ["row 2, column 'prevalence'", "'n_total' is given"]),
        ("a,tpr,x,0.8,,,,,,0.3", ["row 2, column 'n_total'", "'prevalence' is given"]),
    ],
)
def test_inputs_of_a_row_must_agree(tmp_path, row, fragments):
    header = "claim_id,metric,subgroup,value,n_positive,n_negative,tp,fn,n_total,prevalence"
    with pytest.raises(InputError) as error:
        read_claims(write(tmp_path, [header, row, "a,tpr,y,0.8,10,,8,2,,"]))
    for fragment in fragments:
        assert fragment in str(error.value), str(error.value)


def test_a_difference_excludes_values(tmp_path):
    header = HEADER + ",difference"
    with pytest.raises(InputError, match="both a difference and subgroup values"):
        read_claims(write(tmp_path, [header, *(r + ",0.05" for r in GOOD)]))


def test_what_an_article_does_not_print_leaves_a_claim_that_is_not_auditable(tmp_path):
    header = HEADER + ",provenance,difference"
    rows = [
        "no-counts,auroc,x,0.8,,,,not printed,",
        "no-counts,auroc,y,0.9,,,,not printed,",
        "no-values,tpr,x,,10,,,not printed,",
        "no-values,tpr,y,,10,,,Not printed,",
        "no-overall,auroc,x,,10,10,,reported,0.1",
        "no-overall,auroc,y,,10,10,,reported,0.1",
        "no-positives,tpr,x,0.5,0,,,reported,",
        "no-positives,tpr,y,0.5,10,,,reported,",
        "one-left-out,tpr,x,0.5,0,,,reported,",
        "one-left-out,tpr,y,0.5,10,,,reported,",
        "one-left-out,tpr,z,0.7,10,,,reported,",
    ]
    claims = {c.claim_id: c for c in read_claims(write(tmp_path, [header, *rows]))}
    assert [c.auditable for c in claims.values()] == [False, False, False, False, True]
    assert "no printed number of positives" in claims["no-counts"].reason
    assert "no printed value" in claims["no-values"].reason
    assert "needs an overall value" in claims["no-overall"].reason
    assert "subgroup 'x' left out (0 positives)" in claims["no-positives"].reason
    kept = claims["one-left-out"]
    assert kept.subgroups == ("y", "z")
    assert kept.reason == "subgroup 'x' left out (0 positives)"
    assert kept.difference == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("values", "decimals"),
    [
        (("0.20", "0.3"), 1),
        (("0.20", "0.30"), 2),
        (("1", "0.95"), 2),  # a spreadsheet made 1 of 1.00
        (("1", "0"), None),
        (("0.1234567", "0.9876543"), None),
        (("0.1234567", "0.98"), 2),
        (("8.7e-1", "0.91"), 2),
        ((".5", "0.75"), 1),
    ],
)
def test_decimals_come_from_the_text(tmp_path, values, decimals):
    lines = [HEADER, f"a,tpr,x,{values[0]},10,,", f"a,tpr,y,{values[1]},10,,"]
    assert read_claims(write(tmp_path, lines))[0].decimals == decimals


def test_a_table_of_numbers_takes_the_longest_decimals():
    table = pd.DataFrame(
        {
            "claim_id": "a",
            "metric": "TPR ",
            "subgroup": ["x", "y"],
            "value": [0.2, 0.23],
            "n_positive": [10.0, 12.0],
        }
    )
    claim = read_claims(table)[0]
    assert (claim.measure, claim.decimals, claim.n_positive) == ("tpr", 2, (10, 12))
    table["n_positive"] = [10.0, math.nan]
    with pytest.raises(InputError, match="claims table, row 2, column 'n_positive'"):
        read_claims(table)


def test_extra_columns_are_allowed(tmp_path):
    lines = [HEADER + ",notes", *(r + ",seen" for r in GOOD)]
    assert len(read_claims(write(tmp_path, lines))) == 2


def test_rows_are_counted_as_in_a_spreadsheet(tmp_path):
    lines = ["", HEADER, GOOD[0], "", GOOD[1].replace("0.81", "81")]
    with pytest.raises(InputError, match="row 5, column 'value'"):
        read_claims(write(tmp_path, lines))


def test_short_rows_are_blank_to_their_end(tmp_path):
    lines = [HEADER, "a,tpr,x,0.5,10", "a,tpr,y,0.5,10"]
    assert read_claims(write(tmp_path, lines))[0].n_positive == (10, 10)


@pytest.mark.parametrize("row", [2, 3])
def test_a_row_longer_than_the_header_is_refused_wherever_it_stands(tmp_path, row):
    lines = [HEADER, *GOOD]
    lines[row - 1] += ",0,86"
    with pytest.raises(InputError, match=f"row {row}: .* cells"):
        read_claims(write(tmp_path, lines))


def test_a_quote_left_open_swallows_no_row(tmp_path):
    lines = [HEADER + ",source_table", *(r + ',"Table 1"' for r in GOOD)]
    lines[2] = lines[2].removesuffix('"')
    with pytest.raises(InputError, match="line break"):
        read_claims(write(tmp_path, lines))


def test_a_thousands_point_is_no_count(tmp_path):
    with pytest.raises(
        InputError, match=r"row 2, column 'n_negative': '1\.000' is a count with a thousands separator"
    ):
        read_claims(write(tmp_path, replaced(1, "910", "1.000")))


def test_a_prevalence_in_scientific_notation_is_quick(tmp_path):
    text = (
        "claim_id,metric,subgroup,value,n_total,prevalence\na,fpr,x,0.5,50,1e-9999999\na,fpr,y,0.5,15,5e-1\n"
    )
    assert claims_of(text, tmp_path)["a"].n_negative == (50, 7)


def test_no_case_of_a_class_leaves_the_subgroup_out(tmp_path):
    text = "claim_id,metric,subgroup,tp,fn\na,tpr,x,0,0\na,tpr,y,5,5\na,tpr,z,6,4\n"
    assert claims_of(text, tmp_path)["a"].reason == "subgroup 'x' left out (0 positives)"


def test_columns_are_named_in_any_case():
    table = pd.DataFrame({"Claim_ID": "a", "METRIC": "tpr", " subgroup ": ["x", "y"], "Value": [0.8, 0.85]})
    claim = read_claims(table.assign(N_positive=[10, 12]))[0]
    assert (claim.decimals, claim.values) == (2, (0.8, 0.85))
    with pytest.raises(InputError, match="'value' stands there twice"):
        read_claims(table.assign(N_positive=[10, 12], value=0.5))


@pytest.mark.parametrize("table", [None, 5, [], {}, b"x"])
def test_what_is_no_table_is_named(table):
    with pytest.raises(InputError, match=f"is a {type(table).__name__}"):
        read_claims(table)


def test_an_overall_value_outside_its_subgroups_is_said(tmp_path):
    claim = read_claims(write(tmp_path, [HEADER, *(r.replace("0.84", "0.94") for r in GOOD[:2])]))[0]
    assert claim.reason == "overall value 0.94 lies outside the subgroup values"
    assert claim.auditable
    rates = [HEADER, "a,tpr,x,1.000,1900,,1.000", "a,tpr,y,0.992,120,,1.000"]
    rounded = read_claims(write(tmp_path, rates, "rates.csv"))[0]
    assert rounded.overall_source == "weighted mean"
    assert rounded.reason == "overall value printed as 1.000, weighted mean used"

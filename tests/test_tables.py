"""The versioned tables: each meets its schema, a damaged copy does not, and the texts are as transcribed."""

import hashlib
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from frame.errors import InputError
from frame.tables import TABLES, check_table, load_table, table_path

# SHA-256 of each file as transcribed, without the one column that was coded afterwards. A float rewritten by
# a spreadsheet (0.20 to 0.2), a changed minus sign or a reordered row changes it.
TRANSCRIBED = {
    "published_claims": "e39459f05292cd206abaab7cf81eb1a7d2b3b99751dc2d0cd8c7bcc55493c230",
    "published_studies": "661694f4f972562d191eeaa3c20b7718c7ba47483e0d896dafdc8cc7061ed62c",
    "published_claims_checks": "5561374a21b65582dd6e90dad097de78b22e76af8ea74e1aaa5ff23d23a033ec",
    "paper_numbers": "076083800ca4083f5c795f13685781566dfe97b1cc01c48db1b6ab1584eececb",
    "paper_supplementary_table7": "cdf79ce269edce62d8131ad28607fee13d52036c1874365dcf6e0ccd7708c734",
    "paper_table1": "415f7a4b6155ea28a976cf03c5b6aaa4e9f0e37ce6bee651de2486a1c56e0123",
    "paper_table2": "5ccb405da9f81d1d6cc3f0faec3d057025c6c446aaa3717e941f48c761f955b7",
    "paper_supplementary_table1": "ffefd221c0b1da46b207164b8a0e3263eaf123650163ae8dc4ea246ff9337613",
    "paper_supplementary_table2": "ed474adc8c7d358783e692e2a611889e17f03d80684fd449bdfdea88207a8094",
    "paper_supplementary_table3": "5dc27347bde0479e9d7abe1d417d5f0b4a6c6eb5cad0103f1fe922eaaf4decb3",
    "paper_supplementary_table4": "ade1fee09486837201dfb504dabdacd4d69e0ef75b099420f3e55bcc9e8c1c4f",
    "paper_supplementary_table5": "9907fb1902ef3b4fbd838f71ba6b9642984d849e7e3d5685e448a3289d453a91",
    "paper_supplementary_table6": "79c790697d594e147ee1f8df91f8032116f4b7ea274ce93478f1238514b2d56a",
    "paper_supplementary_table8": "5ea10032d1885b19d69360e72637c452cc818094af6ecaff08e2da8703176dfd",
    "paper_figure4": "b337a794ed89c8b7efa32ae0fedd043257bcfaaed082b6a6940768bd77653160",
    "paper_figure6g": "c6eec1c86fd056d5f9c1ac344c295fdff30a7ace528c1f457c552556b1c12434",
}
CODED_AFTERWARDS = ("published_claims", "published_studies")
DIRECTIONS = {
    "seyyed-kalantari-2021": "disparity",
    "daneshjou-2022": "disparity",
    "vaidya-2024": "disparity",
    "glocker-2023": "caution",
    "tayebi-arasteh-2024": "caution",
}


def text_of(name):
    """The table before typing: every cell text."""
    import pandas as pd

    return pd.read_csv(table_path(name), dtype=str, keep_default_na=False, encoding="utf-8")


@pytest.fixture(scope="module")
def claims():
    return load_table("published_claims")


@pytest.fixture(scope="module")
def studies():
    return load_table("published_studies")


@pytest.fixture(scope="module")
def readme():
    return (table_path("published_claims").parent / "README.md").read_text(encoding="utf-8")


# ---- registry and loader


def test_every_csv_of_the_data_folder_is_registered():
    folder = table_path("published_claims").parent
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*.csv")}
    assert found == {table.file for table in TABLES.values()}
    assert all(name == table.name == Path(table.file).stem for name, table in TABLES.items())


@pytest.mark.parametrize("name", TABLES)
def test_a_table_meets_its_schema(name):
    table = load_table(name)
    assert len(table) == len(text_of(name))
    for label, column in TABLES[name].columns.items():
        assert str(table[label].dtype) == ("Int64" if column.count else "str")


@pytest.mark.parametrize("name", TRANSCRIBED)
def test_the_text_is_as_transcribed(name):
    text = table_path(name).read_text(encoding="utf-8")
    if name in CODED_AFTERWARDS:
        text = re.sub(r",[a-z_]*$", "", text, flags=re.MULTILINE)
    assert hashlib.sha256(text.encode()).hexdigest() == TRANSCRIBED[name]


def test_printed_decimals_survive_loading(claims):
    assert claims.loc[claims["claim_id"] == "glocker-2023-02", "value"].tolist() == ["0.20", "0.20", "0.23"]
    changes = load_table("paper_supplementary_table1")["median_paired_change"]
    assert changes.tolist() == ["−0.002", "+0.004", "+0.002", "+0.001"]  # the first with U+2212


def test_an_unknown_name_is_refused():
    with pytest.raises(InputError, match="no table 'claims'; the tables are published_claims, "):
        load_table("claims")


def test_a_missing_file_is_one_sentence(monkeypatch, tmp_path):
    import frame.tables

    monkeypatch.setattr(frame.tables, "__file__", str(tmp_path / "frame" / "tables.py"))
    with pytest.raises(InputError, match=r"paper_numbers\.csv is neither in the installed package"):
        load_table("paper_numbers")


def test_an_installed_copy_is_preferred(monkeypatch, tmp_path):
    import frame.tables

    package = tmp_path / "frame"
    (package / "data").mkdir(parents=True)
    (package / "data" / "paper_figure6g.csv").write_text("x", encoding="utf-8")
    monkeypatch.setattr(frame.tables, "__file__", str(package / "tables.py"))
    assert table_path("paper_figure6g") == package.resolve() / "data" / "paper_figure6g.csv"


def test_importing_the_module_loads_neither_pandas_nor_pandera():
    code = "import sys, frame.tables; print(sorted({'pandas', 'pandera', 'numpy'} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


# ---- damaged copies


@pytest.mark.parametrize(
    ("name", "label"), [(name, label) for name in TABLES for label in TABLES[name].columns]
)
def test_a_bad_cell_is_named(name, label):
    table = text_of(name)
    table.loc[2, label] = " x"
    with pytest.raises(InputError) as error:
        check_table(name, table)
    assert str(error.value).startswith(
        f"{TABLES[name].file}, line 4, column {label}: found ' x'; allowed is "
    )


@pytest.mark.parametrize("name", TABLES)
def test_a_changed_shape_is_refused(name):
    table = text_of(name)
    first, second = table.columns[:2]
    with pytest.raises(InputError, match=f"column {second} is missing"):
        check_table(name, table.drop(columns=second))
    with pytest.raises(InputError, match="column extra is unknown"):
        check_table(name, table.assign(extra=""))
    with pytest.raises(InputError, match="out of order"):
        check_table(name, table[[second, first, *table.columns[2:]]])
    with pytest.raises(InputError, match="stands there a second time"):
        check_table(name, table.iloc[[*range(len(table)), 0]])
    with pytest.raises(InputError, match="no row below the header"):
        check_table(name, table.iloc[:0])


@pytest.mark.parametrize(
    ("name", "row", "label", "value", "message"),
    [
        ("published_claims", 0, "value", "17.2", "found '17.2'; allowed is a decimal number from 0 to 1"),
        ("published_claims", 0, "value", "1.01", "found '1.01'"),
        ("published_claims", 4, "n_positive", "0", "found '0'; allowed is a whole number from 1, or nothing"),
        ("published_claims", 4, "n_positive", "2509.0", "found '2509.0'"),
        ("published_claims", 4, "metric", "AUROC", "allowed is one of auroc, tpr, fpr"),
        ("published_claims", 4, "claim_direction", "unclear", "allowed is one of disparity, caution"),
        ("published_claims", 4, "n_negative", "", "'denominator present'"),
        ("published_claims", 5, "overall_value", "0.88", "'one description per claim'"),
        ("published_claims", 5, "claim_direction", "", "'one description per claim'"),
        ("published_claims", 0, "claim_id", "glocker-2023-99", "'two subgroups per claim'"),
        ("published_studies", 0, "criterion_failed", "1", "'included or criterion'"),
        ("published_studies", 9, "criterion_failed", "", "'included or criterion'"),
        ("published_studies", 9, "direction", "disparity", "'included or criterion'"),
        ("paper_supplementary_table7", 0, "ref_lo", "0.018", "'reference inside its interval'"),
        ("paper_supplementary_table7", 0, "exceeds", "no", "'mark follows q'"),
        ("paper_supplementary_table7", 0, "p_fdr", "0.1", "found '0.1'"),
        ("paper_supplementary_table7", 0, "study", "zong-2023", "'claim id of study'"),
        ("paper_table1", 0, "train", "180301", "'splits add up'"),
        ("paper_supplementary_table3", 4, "total", "68522", "'recorded and not add up'"),
        ("paper_supplementary_table8", 0, "prevalence_pct", "16", "'prevalence is positive over evaluable'"),
        ("paper_supplementary_table4", 0, "exceeding", "10", "'part within whole'"),
        ("paper_supplementary_table6", 0, "equity_scaled_significant", "53", "'part within whole'"),
        ("paper_supplementary_table5", 0, "race_q1", "0.004", "'quartiles in order'"),
        ("paper_supplementary_table1", 0, "nonlinear_q3", "0.071", "'quartiles in order'"),
    ],
)
def test_a_broken_copy_fails(name, row, label, value, message):
    table = text_of(name)
    table.loc[row, label] = value
    with pytest.raises(InputError) as error:
        check_table(name, table)
    assert message in str(error.value)
    assert TABLES[name].file in str(error.value)


# ---- the published record


def test_sizes_of_the_record(claims, studies):
    assert len(claims) == 230
    assert claims["claim_id"].nunique() == 89
    assert studies["included"].value_counts().to_dict() == {"no": 13, "yes": 9}
    excluded = studies[studies["included"] == "no"]
    assert excluded["criterion_failed"].value_counts().to_dict() == {1: 5, 3: 5, 2: 3}


def test_claims_and_studies_agree(claims, studies):
    first = claims.drop_duplicates("claim_id")
    included = studies[studies["included"] == "yes"].set_index("study")
    assert first["study"].value_counts().to_dict() == included["n_claims"].to_dict()
    for label, own in (
        ("doi_or_url", "doi_or_url"),
        ("modality", "modality"),
        ("claim_direction", "direction"),
    ):
        assert first.groupby("study")[label].unique().str.join("|").to_dict() == included[own].to_dict()


def test_directions_are_the_coded_ones(studies):
    coded = studies.set_index("study")["direction"]
    assert coded[coded != ""].to_dict() == DIRECTIONS
    words = studies.set_index("study")["claim_direction"]
    assert all(
        words[study].startswith("Reports a disparity")
        for study, code in DIRECTIONS.items()
        if code == "disparity"
    )


def test_the_printed_table_has_the_claims_in_order(claims):
    printed = load_table("paper_supplementary_table7")
    first = claims.drop_duplicates("claim_id")
    assert printed["claim_id"].tolist() == first["claim_id"].tolist()
    assert printed["metric"].tolist() == first["metric"].tolist()


def test_addresses_are_of_one_study_each(studies):
    given = studies.loc[studies["doi_or_url"] != "", "doi_or_url"]
    assert given.is_unique
    assert given.str.match(r"https://(doi\.org/10\.\d{4}|openreview\.net|proceedings\.mlr\.press)").all()


# ---- the spot checks, by arithmetic


def of_study(claims, study, *metrics):
    chosen = claims[(claims["study"] == study) & claims["metric"].isin(metrics)]
    denominator = chosen["n_positive"].where(chosen["metric"] == "tpr", chosen["n_negative"])
    return list(zip(chosen["claim_id"], chosen["value"], denominator.astype(int), strict=True))


def is_proportion(value, denominator):
    """Whether some whole number over the denominator is printed as this value (either rounding of a tie)."""
    decimals = len(value.partition(".")[2])
    nearest = round(Fraction(value) * denominator)
    half = Fraction(1, 2 * 10**decimals)
    return any(
        abs(Fraction(count, denominator) - Fraction(value)) <= half
        for count in range(nearest - 1, nearest + 2)
    )


def test_underdiagnosis_counts_are_whole(claims):
    counts = [float(value) * size for _, value, size in of_study(claims, "seyyed-kalantari-2021", "fpr")]
    assert counts == pytest.approx([1153, 823, 295, 512], abs=1e-9)


def test_daneshjou_rates_are_proportions(claims):
    rates = of_study(claims, "daneshjou-2022", "tpr", "fpr")
    assert len(rates) == 32
    assert all(is_proportion(value, size) for _, value, size in rates)


def test_daneshjou_groups_fit_the_data_set(claims):
    full = claims[claims["claim_id"] == "daneshjou-2022-01"]
    positive, negative = full["n_positive"].astype(int), full["n_negative"].astype(int)
    assert (positive + negative).tolist() == [208, 207]
    assert 171 - positive.sum() + 485 - negative.sum() == 241


def test_vaidya_recalls_are_not_all_proportions(claims):
    recalls = of_study(claims, "vaidya-2024", "tpr")
    assert len(recalls) == 18
    assert sum(not is_proportion(value, size) for _, value, size in recalls) == 13


def test_burlina_accuracies(claims):
    value = claims.set_index(["claim_id", "subgroup"])["value"].astype(float)
    for fpr, tpr, lighter, darker in (("01", "04", 0.730, 0.605), ("02", "05", 0.720, 0.715)):
        for group, accuracy in (("Lighter skin", lighter), ("Darker skin", darker)):
            specificity = 1 - value[f"burlina-2021-{fpr}", group]
            assert (value[f"burlina-2021-{tpr}", group] + specificity) / 2 == pytest.approx(accuracy)


def test_odd_proportions_are_exactly_the_known_ones(claims):
    studies = ("glocker-2023", "lotter-2024", "daneshjou-2022", "burlina-2021", "yala-2022")
    odd = {
        (claim, value)
        for study in studies
        for claim, value, size in of_study(claims, study, "tpr", "fpr")
        if not is_proportion(value, size)
    }
    assert odd == {("yala-2022-04", "0.400"), ("lotter-2024-04", "0.195"), ("lotter-2024-05", "0.204")}


def test_group_totals(claims):
    def total(claim):
        rows = claims[claims["claim_id"] == claim]
        return int(rows["n_positive"].astype(int).sum()), int(rows["n_negative"].astype(int).sum())

    assert [sum(total(f"zong-2023-0{i}")) for i in (1, 2, 3, 4)] == [22279, 22278, 37095, 37092]
    assert total("tayebi-arasteh-2024-01") == (172, 152)  # by sex
    assert total("tayebi-arasteh-2024-02") == (173, 152)  # by age


def test_the_checks_name_known_claims(claims):
    known = set(claims["claim_id"])
    named = re.findall(r"[a-z-]+-\d{4}-\d{2}", " ".join(load_table("published_claims_checks")["claims"]))
    assert named
    assert set(named) <= known


# ---- the paper's own sums


def test_table_1_adds_up():
    table = load_table("paper_table1").set_index("row")
    images = table["images"]
    chest = ["MIMIC-CXR", "CheXpert", "NIH ChestX-ray14", "PadChest", "VinDr-CXR", "VinDr-PCXR"]
    assert images[chest].sum() == images["All chest radiographs"] == 650207
    assert images[["DDI", "Fitzpatrick17k", "ISIC 2019"]].sum() == images["All dermatology"]
    bands = [row for row in table.index if row.startswith("Age, ") and row != "Age, not recorded"]
    assert images[bands].sum() == 629226  # the text prints 629,227


def test_printed_numbers_agree_with_the_printed_tables():
    printed = load_table("paper_numbers").set_index("id")["value"]
    table = load_table("paper_table1").set_index("row")["images"]
    for label, row in (("cxr_images", "All chest radiographs"), ("derm_images", "All dermatology")):
        assert int(printed[label].replace(",", "")) == table[row]
    findings = load_table("paper_supplementary_table2").set_index("finding")
    assert findings.loc["Pleural other", "race_reference"] == printed["pleural_other_reference"]
    figure = load_table("paper_figure4")
    last = figure[(figure["injection"] == "entanglement") & (figure["strength"] == "256")].set_index(
        "quantity"
    )
    assert last.loc["race difference", "value"] == printed["inj_ent_diff_to"]


# ---- the README


@pytest.mark.parametrize("name", TABLES)
def test_the_readme_names_each_file_its_rows_and_its_columns(name, readme):
    table = TABLES[name]
    row = next(line for line in readme.splitlines() if line.startswith(f"| `{table.file}` |"))
    assert re.search(rf"\| {len(load_table(name))}\b", row)
    assert not [label for label in table.columns if f"`{label}`" not in readme]


def test_the_readme_lists_every_overall_value_outside_its_subgroups(claims, readme):
    outside = []
    for claim, rows in claims[claims["overall_value"] != ""].groupby("claim_id", sort=False):
        values = [Fraction(value) for value in rows["value"]]
        if not min(values) <= Fraction(rows["overall_value"].iloc[0]) <= max(values):
            outside.append(claim)
    assert len(outside) == 5
    listed = readme[readme.index("Overall value outside") :].split(". ", 1)[0]
    assert re.findall(r"[a-z]+-\d{4}-\d{2}", listed) == outside


def test_nothing_of_the_data_folder_is_executable_or_foreign():
    folder = table_path("published_claims").parent
    assert {path.suffix for path in folder.iterdir()} <= {".csv", ".md", ""}

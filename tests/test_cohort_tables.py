"""Table 1 and Supplementary Tables 3 and 8: sums, rules, bounds, and what is compared with what."""

import dataclasses
from itertools import combinations

import pandas as pd
import pytest

import frame.figures.cohort_tables as cohort_tables
import frame.figures.label_counts as label_counts
import frame.figures.other_category as other_category
import frame.figures.printed_cohorts as printed_cohorts
from frame.cohorts.labels import LabelPolicy
from frame.cohorts.sources import sources
from frame.errors import InputError
from frame.experiments.cohort_counts import policy_name
from frame.figures.cohort_tables import CountedCohorts
from frame.figures.public_tables import PublicTable, public_table
from frame.tables import load_table

NIH = {"images": 112_120, "train": 77_870, "validation": 8_654, "test": 25_596, "test_patients": 2_797}


def counted(cells, *, rules=None, smallest_cell=1):
    """Counts as an experiment gives them: (source, quantity, split, attribute, level) -> number or None."""
    names = tuple(dict.fromkeys(key[0] for key in cells))
    rows = [
        dict(zip(("site", "quantity", "split", "attribute", "subgroup"), key[:5], strict=True))
        | {"finding": "", "method": "", "value": float("nan") if value is None else float(value)}
        for key, value in cells.items()
    ]
    return CountedCohorts(
        profile="tried",
        sources=names,
        titles=tuple(sources()[name].title for name in names),
        rules=dict.fromkeys(names, "released") | (rules or {}),
        modalities={name: sources()[name].modality for name in names},
        smallest_cell=smallest_cell,
        rows=pd.DataFrame(rows),
    )


def source_cells(source, counts, attribute="all", level="all"):
    found = {
        (source, "images", "all" if column == "images" else column, attribute, level): value
        for column, value in counts.items()
        if column != "test_patients"
    }
    return found | {(source, "subjects", "test", attribute, level): counts["test_patients"]}


def altered(monkeypatch, module, name, row, column, value):
    """Let a module read a table in which one cell is another."""

    def load(asked):
        table = load_table(asked)
        if asked == name:
            table = table.copy()
            table.loc[table[table.columns[1 if name == "paper_table1" else 0]] == row, column] = value
        return table

    monkeypatch.setattr(module, "load_table", load)


# -- the printed table ------------------------------------------------------------------------------------


def test_every_sum_of_the_table_holds_and_one_of_the_text_does_not():
    checks = printed_cohorts.addition_checks()
    assert dict(checks["kind"].value_counts()) == {"splits": 31, "sources": 10, "subgroups": 25, "text": 7}
    (odd,) = checks[checks["outcome"] == "does not add up"].to_dict("records")
    assert (odd["kind"], odd["total"], odd["printed"], odd["difference"]) == ("text", 629_226, 629_227, -1)
    more = checks[checks["outcome"] == "more, as it may be"]
    assert dict(zip(more["checked"].str.split(",").str[0], more["difference"], strict=True)) == {
        "sex": 2,
        "age": 1_181,
        "race": 13,
    }
    assert set(more["column"]) == {"test_patients"}


def test_the_six_sites_are_the_pool():
    checks = printed_cohorts.addition_checks()
    (pool,) = checks[(checks["kind"] == "sources") & (checks["printed"] == 650_207)].to_dict("records")
    assert (pool["total"], pool["outcome"]) == (650_207, "adds up")


@pytest.mark.parametrize(
    ("row", "column", "broken"),
    [("PadChest", "images", 2), ("Age, 40–60", "test", 2), ("Sex, male", "test_patients", 1)],
)
def test_a_wrong_cell_breaks_the_sums_that_it_is_in(monkeypatch, row, column, broken):
    before = printed_cohorts.addition_checks()
    right = load_table("paper_table1").set_index("row").loc[row, column]
    altered(monkeypatch, printed_cohorts, "paper_table1", row, column, right - 100)
    after = printed_cohorts.addition_checks()
    changed = (before["outcome"] == "does not add up") != (after["outcome"] == "does not add up")
    assert int(changed.sum()) == broken


def test_patients_of_subgroups_that_are_too_few_do_not_pass(monkeypatch):
    altered(monkeypatch, printed_cohorts, "paper_table1", "Race, White", "test_patients", 10_000)
    checks = printed_cohorts.addition_checks()
    race = checks[(checks["checked"] == "race, chest radiographs") & (checks["column"] == "test_patients")]
    assert list(race["outcome"]) == ["does not add up"]


def test_printed_splits_follow_from_rules(monkeypatch):
    rules = printed_cohorts.rule_checks()
    assert rules["follows"].all()
    assert len(rules) == 11
    lesions = rules[rules["row"] == "ISIC 2019"].iloc[0]
    assert (lesions["rule"], lesions["expected"]) == ("0.3 of 13,931 lesions", 4_179)
    pediatric = rules[(rules["row"] == "VinDr-PCXR") & (rules["column"] == "train")].iloc[0]
    assert pediatric["expected"] == 7_728 - 773
    altered(monkeypatch, printed_cohorts, "paper_table1", "VinDr-PCXR", "train", 7_728)
    assert list(printed_cohorts.rule_checks().query("not follows")["row"]) == ["VinDr-PCXR"]


def test_a_fifth_of_the_patients_fits_padchest_alone():
    shares = printed_cohorts.printed_test_shares().set_index("row")
    assert shares.loc["PadChest", "released"] == "no"
    assert abs(shares.loc["PadChest", "share_patients"] - 0.2) < 0.001
    # Four standard deviations of a random fifth of so many patients is less than one percent of them.
    for row in ("MIMIC-CXR", "CheXpert"):
        patients = shares.loc[row, "patients"]
        assert abs(shares.loc[row, "share_patients"] - 0.2) > 4 * (0.2 * 0.8 / patients) ** 0.5


def test_sizes_that_can_be_rebuilt_and_those_that_cannot():
    rows = printed_cohorts.rebuilt_counts().set_index("row")
    assert list(rows.loc["NIH ChestX-ray14", ["images", "patients"]]) == [112_120, 30_805]
    assert list(rows["more_images"]) == [0, 33_162, 108]
    assert list(rows["more_patients"]) == [0, 6_662, 42]
    assert rows.loc["CheXpert", "left_out"] == "32,387 lateral view"


# -- a profile beside it ----------------------------------------------------------------------------------


def verdicts(table):
    return dict(zip(table["quantity"], table["verdict"], strict=True))


def test_the_whole_of_nih_is_compared_under_any_split():
    ours = {**NIH, "train": 80_178, "validation": 9_848, "test": 22_094, "test_patients": 6_227}
    table = cohort_tables.compare_sources(
        counted(source_cells("nih_cxr14", ours), rules={"nih_cxr14": "hashed"})
    )
    assert verdicts(table) == {
        "images": "equal",
        **dict.fromkeys(("train", "validation", "test", "test_patients"), "other cohort"),
    }
    assert set(table.loc[table["verdict"] == "other cohort", "reason"]) == {
        "patients are split by a hash here"
    }


def test_the_released_test_set_is_compared_and_a_random_tenth_is_not():
    ours = {**NIH, "train": 78_302, "validation": 8_222}
    table = cohort_tables.compare_sources(counted(source_cells("nih_cxr14", ours)))
    assert verdicts(table) == {
        "images": "equal",
        "train": "other cohort",
        "validation": "other cohort",
        "test": "equal",
        "test_patients": "equal",
    }


def test_a_count_that_must_agree_and_does_not_differs():
    table = cohort_tables.compare_sources(counted(source_cells("nih_cxr14", {**NIH, "test": 25_595})))
    assert verdicts(table)["test"] == "differs"


def test_an_equal_number_of_another_cohort_is_not_called_equal():
    exact = {
        "images": 157_865,
        "train": 115_449,
        "validation": 13_098,
        "test": 29_318,
        "test_patients": 9_810,
    }
    table = cohort_tables.compare_sources(
        counted(source_cells("chexpert", exact), rules={"chexpert": "hashed"})
    )
    assert set(table["verdict"]) == {"other cohort"}


@pytest.mark.parametrize("source", list(sources()))
def test_every_source_has_its_row_in_the_printed_table(source):
    table = cohort_tables.compare_sources(counted(source_cells(source, dict.fromkeys(NIH, 1))))
    assert len(table) == 5
    assert set(table["row"]) == {printed_cohorts.PRINTED_NAMES[source]}
    assert (table["printed"] >= 0).all()


def test_a_hidden_count_is_not_computed():
    table = cohort_tables.compare_sources(counted(source_cells("nih_cxr14", {**NIH, "test": None})))
    hidden = table[table["verdict"] == "not computed"]
    assert list(hidden["quantity"]) == ["test"]
    assert hidden["ours"].isna().all()
    assert "hidden" in hidden["reason"].iloc[0]


def test_counts_of_sources_add_up_and_a_hidden_part_hides_the_sum():
    cells = {
        ("nih_cxr14", "images", "test", "sex", "female"): 5,
        ("padchest", "images", "test", "sex", "female"): 7,
        ("padchest", "images", "train", "sex", "female"): None,
        ("nih_cxr14", "images", "train", "sex", "female"): 3,
    }
    table = counted(cells)
    both = ("nih_cxr14", "padchest")
    assert table.count(both, "images", "test", "sex", "female") == 12
    assert table.count(both, "images", "train", "sex", "female") is None
    assert table.count(("nih_cxr14",), "images", "train", "sex", "female") == 3
    assert table.count(both, "images", "all", "sex", "female") is None
    assert table.count((), "images", "test", "sex", "female") is None


def subgroup_cells(names, value):
    levels = set(printed_cohorts.LEVELS.values())
    found = {}
    for name in names:
        for attribute, level in levels:
            found |= source_cells(name, dict.fromkeys(NIH, value), attribute, level)
    return found


def test_subgroups_of_one_site_are_not_compared():
    table = cohort_tables.compare_subgroups(counted(subgroup_cells(["nih_cxr14"], 1)))
    assert set(table["verdict"]) == {"other cohort"}
    assert set(table["reason"]) == {"1 of 6 sources"}
    assert table["row"].nunique() == 13


def test_subgroups_of_all_sources_are_compared_where_all_must_agree():
    skin = ["ddi", "fitzpatrick17k"]
    rules = dict.fromkeys(skin, "fractions")
    table = cohort_tables.compare_subgroups(counted(subgroup_cells([*skin, "fairvision"], 1), rules=rules))
    assert set(table["row"]) == {
        *("Skin type I–II", "Skin type III–IV", "Skin type V–VI"),
        *(f"Race, {race} (fundus)" for race in ("White", "Black", "Asian")),
    }
    # ISIC 2019 records no skin type, so that the two others are all.
    assert set(table["verdict"]) == {"differs"}


def test_a_site_that_cannot_be_rebuilt_keeps_the_pool_from_being_compared():
    chest = [name for name in sources() if sources()[name].modality == "chest"]
    table = cohort_tables.compare_subgroups(counted(subgroup_cells(chest, 1)))
    images = table[table["quantity"] == "images"]
    assert set(images["verdict"]) == {"other cohort"}
    assert images["reason"].str.contains("the public columns give another number").all()
    assert set(table["ours"]) == {6}


def test_rows_of_the_same_name_in_two_sections_stay_apart():
    table = cohort_tables.compare_subgroups(counted(subgroup_cells(["nih_cxr14", "fairvision"], 2)))
    sheet = cohort_tables.cells_beside_print(table, ("images", "test")).set_index("row")
    assert sheet.index.is_unique
    assert sheet.loc["Race, White", "images_printed"] == 234_624
    assert sheet.loc["Race, White (fundus)", "images_printed"] == 7_725
    assert sheet.loc["Race, White", "elsewhere"] == "images, test: 1 of 6 sources"
    assert sheet.loc["Race, White (fundus)", "differs"] == "images, test"


def test_composition_has_every_level_and_hides_what_is_hidden():
    cells = source_cells("nih_cxr14", NIH) | {("nih_cxr14", "subjects", "all", "all", "all"): 30_805}
    for level, value in (("female", 10), ("male", None)):
        cells |= source_cells("nih_cxr14", dict.fromkeys(NIH, value), "sex", level)
        cells |= {("nih_cxr14", "subjects", "all", "sex", level): value}
    table = cohort_tables.composition(counted(cells), "chest", ("sex", "skin_type"))
    assert list(table["level"]) == ["all", "female", "male"]
    assert list(table["subjects"].astype(object)) == [30_805, 10, pd.NA]


def test_many_sources_are_counted_and_not_named_in_a_caption():
    few = counted(subgroup_cells(["ddi", "nih_cxr14"], 1))
    assert few.cohort == "Diverse Dermatology Images (DDI), NIH ChestX-ray14"
    assert counted(subgroup_cells(list(sources()), 1)).cohort == "the 10 sources of profile tried"


# -- the category Other -----------------------------------------------------------------------------------


def test_other_without_a_record_is_the_four_sites_that_record_none():
    sites = other_category.recording_sites()
    silent = sites[sites["race"] == "no"]
    assert list(silent["source"]) == ["nih_cxr14", "padchest", "vindr_cxr", "vindr_pcxr"]
    assert list(silent["test"]) == [25_596, 22_045, 3_000, 1_397]
    printed = load_table("paper_supplementary_table3").set_index(["attribute", "category"])
    for attribute in ("Race", "Insurance"):
        assert printed.loc[(attribute, "Other"), "not_recorded"] == silent["test"].sum() == 52_038


def test_shares_of_the_category_other():
    table = other_category.recorded_shares().set_index(["attribute", "category"])
    other = 100 * table.xs("Other", level="category")["share_not_recorded"]
    assert [round(other["Race"]), round(other["Insurance"])] == [76, 80]
    assert table.groupby("attribute")[["share_pooled", "share_recorded"]].sum().round(12).eq(1).all(axis=None)


def test_splits_of_the_category_other_add_up():
    table = other_category.other_by_split().set_index("split")
    parts = table.loc[["train", "validation", "test"], ["images", "other", "not_recorded", "recorded"]].sum()
    assert list(parts) == list(table.loc["all", ["images", "other", "not_recorded", "recorded"]].astype(int))
    assert table.loc["test", "recorded"] == 16_483


def test_levels_of_a_profile_stand_beside_the_printed_ones():
    cells = {}
    for attribute in ("race", "insurance"):
        for level in (
            *("White", "Black", "Asian", "Hispanic or Latino"),
            *("Medicare", "Private", "Medicaid", "Other", "not recorded"),
        ):
            cells["nih_cxr14", "images", "test", attribute, level] = 9 * (level == "Other")
            cells["nih_cxr14", "images", "test", f"{attribute}_recorded", level] = 9 * (
                level == "not recorded"
            )
    table = other_category.levels_beside_print(counted(cells), "test").set_index(["attribute", "category"])
    assert list(table.loc[("Race", "Other")]) == [68_521, 16_483, 9, 0]
    assert list(table.loc[("Race", "not recorded")].astype(object)) == [pd.NA, pd.NA, 0, 9]
    assert len(table) == 11


def test_a_profile_without_chest_radiographs_has_no_counts_there():
    table = other_category.levels_beside_print(counted(source_cells("ddi", NIH)), "test")
    assert table[["pooled", "recorded"]].isna().all(axis=None)


# -- labels -----------------------------------------------------------------------------------------------


def invented(n=1_000, uncertain=10, blank=0):
    findings = label_counts.printed_labels()["finding"]
    codes = pd.DataFrame(
        {
            "finding": findings,
            "positive": 100,
            "negative": n - 100 - uncertain - blank,
            "uncertain": uncertain,
            "blank": blank,
            "unlabelled": 0,
        }
    )
    return PublicTable("chexpert", "CheXpert", n, n, n, pd.DataFrame(), pd.DataFrame(), codes, pd.DataFrame())


def test_printed_prevalence_is_the_ratio_of_its_row():
    table = label_counts.printed_labels()
    assert (table["prevalence"].round() == table["prevalence_pct"]).all()
    assert list(table["finding"])[4] == "enlarged_cardiomediastinum"


def test_sites_that_label_a_finding_follow_the_table_of_names():
    assert label_counts.labelling_sites("lung_opacity") == ("mimic_cxr", "chexpert", "vindr_cxr")
    assert label_counts.labelling_sites("support_devices") == ("mimic_cxr", "chexpert", "padchest")
    assert "vindr_pcxr" in label_counts.labelling_sites("pneumonia")


def test_no_printed_number_is_a_sum_of_sites(monkeypatch):
    assert label_counts.sums_of_sites().empty
    sizes = label_counts.site_sizes()
    fits = sizes["mimic_cxr"] + sizes["chexpert"] + sizes["vindr_cxr"]
    altered(monkeypatch, label_counts, "paper_supplementary_table8", "Lung lesion", "evaluable", fits)
    (row,) = label_counts.sums_of_sites().to_dict("records")
    assert (row["title"], row["sites"]) == ("Lung lesion", "MIMIC-CXR, CheXpert, VinDr-CXR")


def test_without_blank_labels_every_printed_number_is_possible():
    table = label_counts.compare_rules(invented(blank=0))
    assert table["within"].all()
    assert (table["most"] == table["most_blank_out"]).all()
    assert table["possible_alike"].all()


def test_half_blank_takes_half_of_chexpert_and_then_half_of_mimic():
    sizes = label_counts.site_sizes()
    row = label_counts.compare_rules(invented(blank=500)).set_index("title").loc["Fracture"]
    assert row["most"] == sum(sizes[s] for s in ("mimic_cxr", "chexpert", "padchest", "vindr_cxr"))
    assert row["most"] - row["most_blank_out"] == round(sizes["chexpert"] / 2)
    assert row["most_blank_out"] - row["most_alike"] == round(sizes["mimic_cxr"] / 2)


def test_the_rule_of_the_text_is_impossible_for_eight_findings():
    table = label_counts.compare_rules(public_table("chexpert"))
    assert table["within"].all()
    assert int((~table["possible_blank_out"]).sum()) == 8
    assert not table["possible_alike"].any()


def test_possible_sets_are_all_those_that_leave_a_small_remainder():
    table, sizes = invented(uncertain=20), label_counts.site_sizes()
    found = label_counts.possible_sets(table, most_left_out=0.3)
    base = sizes["mimic_cxr"] + sizes["chexpert"]
    uncertain = round(0.02 * sizes["chexpert"])
    expected = 0
    for row in label_counts.printed_labels().itertuples():
        for count in range(5):
            for chosen in combinations(label_counts.FURTHER_SITES, count):
                rest = base + sum(sizes[s] for s in chosen) - row.evaluable - uncertain
                expected += 0 <= rest <= 0.3 * sizes["mimic_cxr"]
    assert len(found) == expected > 13
    assert (found["left_out"] - found["chexpert_uncertain"] == found["remainder"]).all()


def test_findings_whose_count_leaves_out_a_site_are_those_of_the_deviations():
    sets = label_counts.possible_sets(public_table("chexpert"), most_left_out=0.1)
    labelled = sets[sets["without_label"] == "none"]
    assert labelled["title"].nunique() == 13
    partial = labelled.groupby("title")["not_counted"].agg(lambda names: (names != "none").all())
    assert list(partial[partial].index) == [
        *("Edema", "Fracture", "Lung lesion", "Pleural effusion", "Pleural other", "Support devices"),
    ]
    effusion = set(labelled.loc[labelled["title"] == "Pleural effusion", "sites"])
    assert effusion == {"NIH ChestX-ray14, VinDr-CXR", "PadChest, VinDr-CXR"}


def test_policies_of_chexpert_are_counted_as_its_codes_say():
    chexpert = public_table("chexpert")
    table = label_counts.policy_table(chexpert.policies).set_index("title")
    codes = chexpert.codes.set_index("finding")
    row, code = table.loc["Fracture"], codes.loc["fracture"]
    assert row["evaluable_kept_negative"] == chexpert.n_images
    assert row["evaluable_missing_missing"] == code["positive"] + code["negative"]
    assert row["evaluable_missing_negative"] == chexpert.n_images - code["uncertain"]
    assert row["positive_uncertain"] - row["positive"] == code["uncertain"]


def label_cells(evaluable, positive, *, other_policy=None):
    rows = []
    for finding in label_counts.printed_labels()["finding"]:
        for uncertain in ("negative", "positive", "missing"):
            for blank in ("missing", "negative"):
                method = policy_name(LabelPolicy(uncertain=uncertain, blank=blank))
                pair = other_policy if other_policy and uncertain == "positive" else (evaluable, positive)
                rows += [
                    (finding, method, quantity, value)
                    for quantity, value in zip(("evaluable", "positive"), pair, strict=True)
                ]
    table = pd.DataFrame(rows, columns=["finding", "method", "quantity", "value"]).astype({"value": float})
    table = table.assign(site="nih_cxr14", split="all", attribute="all", subgroup="all")
    base = counted(source_cells("nih_cxr14", NIH))
    return CountedCohorts(
        base.profile, base.sources, base.titles, base.rules, base.modalities, base.smallest_cell, table
    )


def test_no_count_of_drawn_images_is_compared_with_the_print():
    real = counted(source_cells("nih_cxr14", NIH))
    drawn = dataclasses.replace(real, drawn=True)
    assert "equal" in set(cohort_tables.compare_sources(real)["verdict"])
    for compare in (cohort_tables.compare_sources, cohort_tables.compare_subgroups):
        assert {"equal", "differs"} & set(compare(drawn)["verdict"]) == set()
        assert compare(real)["printed"].notna().any()
        assert compare(drawn)["printed"].isna().all()
    assert real.note == ""
    assert drawn.note == "Phantom: drawn images, no patients."
    assert set(cohort_tables.compare_sources(drawn)["reason"]) == {"drawn images, no patients"}
    assert drawn.cohort == "phantom: drawn images, no patients; profile tried"


def test_sources_by_split_say_what_was_planned_of_drawn_ones():
    real = counted(source_cells("nih_cxr14", NIH))
    found = cohort_tables.sources_by_split(real)
    assert list(found.columns[:3]) == ["row", "modality", "rule"]
    assert "planned" not in found
    (row,) = found.to_dict("records")
    for column in ("train", "validation", "test", "images"):
        assert row[column] == real.count(
            ("nih_cxr14",), "images", "all" if column == "images" else column, "all", "all"
        )
    assert row["subjects"] == real.count(("nih_cxr14",), "subjects", "all", "all", "all")
    drawn = dataclasses.replace(real, drawn=True, planned={"nih_cxr14": 7})
    assert list(cohort_tables.sources_by_split(drawn)["planned"]) == [7]


def test_labels_of_a_profile_and_how_many_policies_agree():
    alike = label_counts.beside_print(label_cells(200, 50), "missing", "negative")
    assert set(alike["policies"]) == {6}
    assert set(alike["prevalence"]) == {25.0}
    apart = label_counts.beside_print(label_cells(200, 50, other_policy=(210, 60)), "missing", "negative")
    assert set(apart["policies"]) == {4}
    asked = label_counts.beside_print(label_cells(200, 50, other_policy=(210, 60)), "positive", "missing")
    assert set(asked["evaluable"]) == {210}


def test_hidden_labels_stay_hidden():
    table = label_counts.beside_print(label_cells(200, float("nan")), "missing", "negative")
    assert set(table["evaluable"]) == {200}
    assert table[["positive", "prevalence", "policies"]].isna().all(axis=None)


# -- the tables inside the package --------------------------------------------------------------------------


def test_counts_of_a_public_table_add_up_and_hold_no_row():
    table = public_table("chexpert")
    assert (table.n_released, table.n_images, table.n_patients) == (223_414, 191_027, 64_534)
    codes = table.codes[["positive", "negative", "uncertain", "blank", "unlabelled"]]
    assert (codes.sum(axis=1) == table.n_images).all()
    assert "patient" not in " ".join(map(str, [*table.codes.columns, *table.policies.columns]))
    assert len(repr(table)) < 200


@pytest.mark.parametrize("source", ["chexpert", "nih_cxr14", "padchest"])
def test_levels_of_a_public_table_are_all_its_images(source):
    table = public_table(source)
    assert set(table.levels.groupby("attribute")["images"].sum()) == {table.n_images}
    assert (table.levels["patients"] <= table.levels["images"]).all()
    assert table.levels.groupby("attribute")["patients"].sum().ge(table.n_patients).all()


def test_levels_of_nih_are_those_of_its_table():
    from frame.cohorts.adjudicated import installed_table

    raw = pd.read_csv(installed_table("Data_Entry_2017_v2020.csv.gz"))
    levels = public_table("nih_cxr14").levels.set_index(["attribute", "level"])
    age = raw["Patient Age"]
    expected = {
        ("sex", "female"): raw["Patient Gender"] == "F",
        ("sex", "male"): raw["Patient Gender"] == "M",
        ("age", "<40"): age < 40,
        ("age", "60-<80"): (age >= 60) & (age < 80),
        ("age", ">=80"): (age >= 80) & (age <= 120),
        ("age", "not recorded"): age > 120,
    }
    for key, chosen in expected.items():
        assert levels.loc[key, "images"] == chosen.sum(), key
        assert levels.loc[key, "patients"] == raw.loc[chosen, "Patient ID"].nunique(), key


def test_a_source_that_is_in_no_package_is_refused():
    with pytest.raises(InputError, match=r"^The table of 'mimic_cxr' is in no installed package; there are "):
        public_table("mimic_cxr")


def test_counts_that_were_not_made_name_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("FRAME_WORKSPACE", str(tmp_path / "none"))
    with pytest.raises(InputError, match="frame run cohort_counts --profile demo"):
        cohort_tables.counted_cohorts("demo")

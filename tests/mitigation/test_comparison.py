"""Methods compared: every number beside an independent computation, paired, corrected, and never skipped."""

import math
import re

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

import frame
from frame.audits import audit_table
from frame.errors import InputError
from frame.heads.disease_heads import Head, fit_head
from frame.inference.multiplicities import patient_multiplicities
from frame.inference.multiplicity import benjamini_hochberg
from frame.measures.rows import scored_rows
from frame.mitigation import fitted_arms
from frame.mitigation.columns import COLUMNS, GROUPS
from frame.mitigation.comparison import compare_methods
from frame.mitigation.contract import Outcome, Scores, not_fitted, scores_of_logits
from frame.mitigation.judged import REFITTED, Arm, Judging, judge
from frame.mitigation.multiplicity import smallest_q_note
from frame.mitigation.report import report_text
from frame.mitigation.words import achievable_words, measure_words, signed

RESAMPLES = 120
FAST = ["reweigh", "threshold_shift", "platt"]


def made(seed=0, patients=700, dimensions=6):
    """Embeddings of simulated images, one to three a patient, with a group whose finding shows less."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(patients), rng.integers(1, 4, patients))
    sex = rng.choice(["F", "M"], patients)[patient]
    age = rng.choice(["<40", "40-<60", "60+"], patients, p=[0.3, 0.4, 0.3])[patient]
    finding = (rng.random(len(patient)) < np.where(age == "60+", 0.45, 0.3)).astype(int)
    features = rng.normal(size=(len(patient), dimensions))
    features[:, 0] += finding * np.where(sex == "F", 0.7, 1.5)
    features[:, 1] += sex == "F"
    split = np.repeat(["train", "validation", "test"], [300, 150, 250])[patient]
    table = pd.DataFrame({"finding": finding, "sex": sex, "age": age, "split": split})
    table["patient"] = [f"canary{p:04d}" for p in patient]
    return features.astype("float32"), table


def compared(features, table, groups=("sex", "age"), **settings):
    return compare_methods(
        features,
        table["finding"],
        table[list(groups)],
        table["split"],
        table["patient"],
        **({"methods": FAST, "resamples": RESAMPLES} | settings),
    )


@pytest.fixture(scope="module")
def data():
    return made()


@pytest.fixture(scope="module")
def found(data):
    return compared(*data)


def row(found, attribute, method, measure):
    table = found.table
    chosen = table[
        (table["attribute"] == attribute) & (table["method"] == method) & (table["measure"] == measure)
    ]
    assert len(chosen) == 1
    return chosen.iloc[0]


# -- the unmitigated head, recomputed with scikit-learn -----------------------------------------------


def head_of(features, table, rows=None):
    """Test and validation logits of scikit-learn's head."""
    train = (table["split"] == "train").to_numpy() if rows is None else rows
    scaler = StandardScaler().fit(features[train].astype(float))
    model = LogisticRegression(C=1.0, class_weight="balanced", tol=1e-10, max_iter=5000)
    model.fit(scaler.transform(features[train].astype(float)), table["finding"][train])
    return model.decision_function(scaler.transform(features.astype(float)))


def ece(labels, chances):
    bins = np.minimum((chances * 15).astype(int), 14)
    return sum(
        (bins == b).sum() / len(labels) * abs(labels[bins == b].mean() - chances[bins == b].mean())
        for b in range(15)
        if (bins == b).any()
    )


def test_the_unmitigated_head_against_scikit_learn(data, found):
    features, table = data
    scores = head_of(features, table)
    test = (table["split"] == "test").to_numpy()
    held = ((table["split"] == "validation") & (table["finding"] == 1)).to_numpy()
    cut = np.percentile(scores[held], 20)
    for attribute in ("sex", "age"):
        values = {m: [] for m in ("auroc", "tpr", "fpr", "ece")}
        for _, part in table[test].groupby(attribute):
            y, s = part["finding"].to_numpy(), scores[part.index]
            values["auroc"].append(roc_auc_score(y, s))
            values["tpr"].append(np.mean(s[y == 1] >= cut))
            values["fpr"].append(np.mean(s[y == 0] >= cut))
            values["ece"].append(ece(y, expit(s)))
        for measure, each in values.items():
            start = row(found, attribute, "unmitigated", measure)
            assert start["before"] == start["after"] == pytest.approx(max(each) - min(each), abs=1e-5)
            worst = min(each) if measure in ("auroc", "tpr") else max(each)
            assert start["worst_value"] == pytest.approx(worst, abs=1e-5)
        overall = roc_auc_score(table["finding"][test], scores[test])
        assert row(found, attribute, "reweigh", "tpr")["auroc_before"] == pytest.approx(overall, abs=1e-6)
        assert row(found, attribute, "unmitigated", "tpr")["threshold"] == pytest.approx(cut, abs=1e-4)


def test_references_are_those_of_an_audit(data, found):
    features, table = data
    scores = head_of(features, table)
    test = table["split"] == "test"
    part = table[test]
    audit = frame.audit(scores[test.to_numpy()], part["finding"], part["sex"], part["patient"], resamples=0)
    start = row(found, "sex", "unmitigated", "auroc")
    assert start["reference_method"] == "calibrated"
    assert start["reference"] == pytest.approx(audit.reference.mean, abs=1e-6)
    assert start["exceedance"] == pytest.approx(audit.p, rel=1e-3)
    assert (start["n_images"], start["n_positive"]) == (len(part), part["finding"].sum())
    assert start["n_patients"] == part["patient"].nunique()


# -- judging scores, recomputed with numpy ------------------------------------------------------------

JUDGING = Judging(("auroc", "tpr", "fpr", "ece"), "sensitivity_0.80", RESAMPLES, 3, 5, None)


def scored(n_patients=60, seed=1):
    """Rows of made-up scores: labels, patients and groups of validation and test, and two arms."""
    rng = np.random.default_rng(seed)

    def rows(first):
        patient = np.repeat(np.arange(first, first + n_patients), rng.integers(1, 4, n_patients))
        group = np.array(["a", "b", "c"])[patient % 3]
        labels = rng.random(len(patient)) < 0.4
        return scored_rows(
            {"row": np.arange(len(patient), dtype=float)}, labels, {"g": group}, patient, scale="logit"
        )

    validation, test = rows(0), rows(1000)
    arms = []
    for name in ("unmitigated", "reweigh"):
        scores = [
            scores_of_logits(part.labels * 1.0 + rng.normal(size=len(part))) for part in (validation, test)
        ]
        arms.append(Arm(name, *scores))
    return arms, validation, test


def weighted(measure, labels, ranks, chances, cut, weights):
    if measure == "auroc":
        return roc_auc_score(labels, ranks, sample_weight=weights)
    if measure in ("tpr", "fpr"):
        case = labels == (measure == "tpr")
        return np.average(ranks[case] >= cut, weights=weights[case])
    bins = np.minimum((chances * 15).astype(int), 14)
    gaps = [abs(np.sum(weights[bins == b] * (labels[bins == b] - chances[bins == b]))) for b in range(15)]
    return sum(gaps) / weights.sum()


def test_paired_intervals_against_a_bootstrap_written_out():
    arms, validation, test = scored()
    found = judge("g", "finding", arms, validation, test, JUDGING)
    codes, labels = test.attribute("g").codes, test.labels
    drawn = patient_multiplicities(test.n_patients, RESAMPLES, 3)[test.patients]
    cuts = [np.percentile(arm.validation.ranks[validation.labels], 20) for arm in arms]
    for measure in JUDGING.measures:
        each = np.empty((2, 3, RESAMPLES + 1))
        for a, arm in enumerate(arms):
            for g in range(3):
                inside = codes == g
                part = labels[inside], arm.test.ranks[inside], arm.test.probabilities[inside], cuts[a]
                counts = np.column_stack([np.ones(len(labels)), drawn])[inside]
                for b in range(RESAMPLES + 1):
                    each[a, g, b] = weighted(measure, *part, counts[:, b].astype(float))
        differences = each.max(axis=1) - each.min(axis=1)
        change = differences[1] - differences[0]
        line = next(r for r in found.rows if r["method"] == "reweigh" and r["measure"] == measure)
        assert line["before"] == pytest.approx(differences[0, 0], abs=1e-12)
        assert line["after"] == pytest.approx(differences[1, 0], abs=1e-12)
        assert line["change"] == pytest.approx(change[0], abs=1e-12)
        assert (line["change_lo"], line["change_hi"]) == pytest.approx(
            tuple(np.percentile(change[1:], [2.5, 97.5])), abs=1e-12
        )
        distance = np.abs(change[1:] - change[1:].mean())
        p = (1 + np.count_nonzero(distance >= abs(change[0]) - 1e-12)) / (RESAMPLES + 1)
        assert line["change_p"] == pytest.approx(p)
        for g, name in enumerate("abc"):
            own = next(
                r
                for r in found.groups
                if (r["method"], r["measure"], r["group"]) == ("reweigh", measure, name)
            )
            assert own["value"] == pytest.approx(each[1, g, 0], abs=1e-12)
            moved = each[1, g, 1:] - each[0, g, 1:]
            assert (own["change_lo"], own["change_hi"]) == pytest.approx(
                tuple(np.percentile(moved, [2.5, 97.5])), abs=1e-12
            )


def test_the_same_multiplicities_serve_every_measure_and_call():
    arms, validation, test = scored()
    start = arms[0]
    # The same order and the same probabilities: no resample can tell the two apart.
    twin = Arm("reweigh", *(Scores(3 * s.ranks + 1, s.probabilities) for s in (start.validation, start.test)))
    found = judge("g", "finding", [start, twin], validation, test, JUDGING)
    for line in found.rows:
        if line["method"] == "reweigh":
            assert (line["change"], line["change_lo"], line["change_hi"]) == (0.0, 0.0, 0.0)
            assert (line["auroc_change_lo"], line["auroc_change_hi"]) == (0.0, 0.0)
            assert line["change_p"] == 1.0


def test_thresholds_come_from_each_methods_own_validation_scores():
    arms, validation, test = scored()
    found = judge("g", "finding", arms, validation, test, JUDGING)
    for arm in arms:
        line = next(r for r in found.rows if r["method"] == arm.name and r["measure"] == "tpr")
        assert line["threshold"] == np.percentile(arm.validation.ranks[validation.labels], 20)
        assert line["threshold_source"] == "sensitivity_0.80 on validation"


def test_validation_points():
    arms, validation, test = scored()
    found = judge("g", "finding", arms, validation, test, JUDGING)
    codes = validation.attribute("g").codes
    ranks = arms[1].validation.ranks
    values = [roc_auc_score(validation.labels[codes == g], ranks[codes == g]) for g in range(3)]
    line = next(r for r in found.rows if r["method"] == "reweigh" and r["measure"] == "auroc")
    assert line["validation_difference"] == pytest.approx(max(values) - min(values))
    assert line["validation_auroc"] == pytest.approx(roc_auc_score(validation.labels, ranks))


# -- tables -------------------------------------------------------------------------------------------


def test_tables_have_a_row_for_everything(found):
    assert list(found.table.columns) == list(COLUMNS)
    assert list(found.by_group.columns) == list(GROUPS)
    n = 2 * 4
    assert len(found.table) == n * (1 + len(FAST)) + 2 * n
    assert found.table["method"].value_counts().to_dict() == dict.fromkeys(["unmitigated", *FAST], n) | {
        "achievable": 2 * n
    }
    assert len(found.by_group) == 4 * (1 + len(FAST)) * (2 + 3)
    assert found.splits["split"].tolist() == ["train", "validation", "test"]
    assert found.splits["n_patients"].tolist() == [300, 150, 250]
    for table in (found.table, found.by_group, found.achievable, found.methods_run):
        assert not table.isin(["nan", "None", "<NA>"]).any(axis=None)
    assert "canary" not in found.table.to_csv() + found.by_group.to_csv() + repr(found)


def test_families_are_corrected_as_they_are_named(found):
    table = found.table[found.table["method"] != "achievable"]
    changes = table[table["change_p"].notna()]
    assert set(changes["change_family"]) == {"mitigation change"}
    assert len(changes) == 2 * 4 * len(FAST)
    assert changes["change_q"].to_numpy() == pytest.approx(benjamini_hochberg(changes["change_p"]))
    for measure, both in table.groupby("measure"):
        start = both["method"] == "unmitigated"
        for part, family in ((both[start], ""), (both[~start], ": methods")):
            assert set(part["exceedance_family"]) == {f"scores: {measure}{family}"}
            made = part[part["exceedance"].notna()]
            assert made["exceedance_q"].to_numpy() == pytest.approx(benjamini_hochberg(made["exceedance"]))
            assert (made["exceeds"] == (made["exceedance_q"] < 0.05)).all()
    for choice, best in found.achievable.groupby("chosen_on"):
        assert set(best["exceedance_family"]) == {f"mitigation achievable: chosen on {choice}"}
        made = best[best["exceedance"].notna()]
        assert made["exceedance_q"].to_numpy() == pytest.approx(benjamini_hochberg(made["exceedance"]))
        assert (made["exceeds"] == (made["exceedance_q"] < 0.05)).all()
    moved = changes[changes["changes"].astype(bool)]
    assert len(moved)
    assert (moved["change_q"] < 0.05).all()
    assert ((moved["change_lo"] > 0) | (moved["change_hi"] < 0)).all()


def test_the_verdict_on_the_head_is_that_of_an_audit(data, found):
    """The q of the unmitigated head does not depend on the methods beside it."""
    features, table = data
    test = (table["split"] == "test").to_numpy()
    part = table[test]
    given = head_of(features, table)[test], part["finding"], part[["sex", "age"]], part["patient"]
    audited = audit_table(*given, scale="logit", resamples=0)
    for line in audited.to_dict("records"):
        own = row(found, line["attribute"], "unmitigated", "auroc")
        assert own["exceedance_q"] == pytest.approx(line["q"], rel=1e-3)
        assert own["exceedance_family"] == line["family"]
    assert audited["attribute"].tolist() == ["sex", "age"]


def test_the_smallest_q_stands_beside_the_size_of_the_family(found):
    (note,) = [note for note in found.notes if "corrected together" in note]
    size = int(found.table["change_q"].notna().sum())
    assert note == (
        f"{size} paired changes are corrected together; with {RESAMPLES} resamples the smallest q that one "
        f"of them can reach alone is {size / (RESAMPLES + 1):.3g}, not below 0.05, so a change can only "
        f"count together with others; {20 * size} resamples would let it count alone."
    )
    rows = [{"attribute": "a", "method": "m", "measure": name, "change_q": 1.0} for name in ("tpr", "fnr")]
    assert smallest_q_note(rows, 100, 0.05) == (
        "1 paired change is corrected together; with 100 resamples the smallest q that one of them can reach "
        "alone is 0.0099.",
    )
    assert smallest_q_note([], 100, 0.05) == ()


@pytest.mark.parametrize(("size", "alpha"), [(3, 0.05), (72, 0.05), (7, 0.01), (11, 0.3)])
def test_the_resamples_that_are_named_are_the_fewest(size, alpha):
    rows = [{"attribute": "a", "method": str(n), "measure": "tpr", "change_q": 1.0} for n in range(size)]
    (note,) = smallest_q_note(rows, 1, alpha)
    enough = int(re.search(r"others; ([\d,]+) resamples", note)[1].replace(",", ""))
    assert size / (enough + 1) < alpha <= size / enough


def test_words_say_from_how_many_and_what_it_costs_on_test(found):
    for line in found.achievable.to_dict("records"):
        words = achievable_words(found, line["attribute"], line["measure"])
        assert f"{line['n_candidates']} candidates" in words.partition(":")[0]
        assert "allowed on the images that chose it" in words
        if line["method"] != "unmitigated":
            assert f"{line['name']}, test AUROC {signed(line['auroc'] - line['auroc_before'])}" in words
    assert (found.achievable["method"] != "unmitigated").any()


def test_rates_that_are_one_test_count_once(data):
    found = compared(*data, measures=["tpr", "fnr"], groups=["sex"], methods=["reweigh", "platt"])
    table = found.table[found.table["change_p"].notna()].set_index(["method", "measure"])
    p = [table.loc[(m, "tpr"), "change_p"] for m in ("reweigh", "platt")]
    q = [table.loc[(m, "fnr"), "change_q"] for m in ("reweigh", "platt")]
    assert q == pytest.approx(benjamini_hochberg(p).tolist())


def test_achievable_rows_are_those_of_the_chosen_method(found):
    for line in found.achievable.to_dict("records"):
        own = row(found, line["attribute"], line["method"], line["measure"])
        assert line["after"] == own["after"]
        assert line["reference"] == own["reference"]
        assert line["exceedance"] == own["exceedance"]
        assert line["auroc"] == own["auroc"]
        assert line["n_candidates"] + (line["excluded"].count(":") > 0) >= 1
    table = found.table[found.table["method"] == "achievable"]
    assert table["chosen_on"].tolist() == ["test", "validation"] * 8
    assert table["chosen"].tolist() == found.achievable["method"].tolist()
    paper = found.achievable[found.achievable["chosen_on"] == "test"]
    assert (paper["after"] <= paper["before"]).all()


def test_methods_beside_the_nine_are_shown_and_never_chosen(data):
    found = compared(*data, groups=["sex"], methods=["platt_monotone", "reweigh"], measures=["ece"])
    assert row(found, "sex", "platt_monotone", "ece")["status"] == "ok"
    assert (
        found.achievable["excluded"]
        .str.contains("platt_monotone: left out: not one of the paper's nine methods")
        .all()
    )


def test_the_same_input_gives_the_same_tables(data, found):
    again = compared(*data, threads=1)
    pd.testing.assert_frame_equal(again.table, found.table)
    pd.testing.assert_frame_equal(again.by_group, found.by_group)


def test_attributes_share_the_unmitigated_head(data, found):
    alone = compared(*data, groups=["age"])
    names = ["before", "auroc_before", "threshold", "reference", "exceedance"]
    both = found.table[(found.table["attribute"] == "age") & (found.table["method"] == "unmitigated")]
    pd.testing.assert_frame_equal(
        alone.table[alone.table["method"] == "unmitigated"][names].reset_index(drop=True),
        both[names].reset_index(drop=True),
    )


def test_equal_weights_change_what_methods_with_own_weights_do(data, found):
    equal = compared(*data, groups=["sex"], weighting="equal", methods=["reweigh", "threshold_shift"])
    for method, same in (("unmitigated", True), ("threshold_shift", True), ("reweigh", False)):
        one = row(found, "sex", method, "ece")["after"]
        other = row(equal, "sex", method, "ece")["after"]
        assert math.isclose(one, other, abs_tol=1e-9) is same
    assert set(equal.table["weighting"]) == {"equal"}


def test_a_measure_alone_does_not_need_the_others(data):
    found = compared(*data, groups=["sex"], methods="platt", measures="brier")
    line = row(found, "sex", "platt", "brier")
    assert not math.isnan(line["auroc"])
    assert not math.isnan(line["change_lo"])


def test_small_groups_are_listed_and_not_compared(data):
    features, table = data
    table = table.copy()
    rare = table.index[table["split"] == "test"][:6]
    table["sex"] = table["sex"].where(~table.index.isin(rare), "X")
    found = compared(features, table, groups=["sex"])
    groups = found.by_group[(found.by_group["group"] == "X") & (found.by_group["measure"] == "auroc")]
    assert groups["reason"].unique().tolist() == ["fewer than 20 images (6)"]
    assert row(found, "sex", "unmitigated", "auroc")["n_groups"] == 2


def test_one_estimable_group_has_no_difference(data):
    features, table = data
    found = compared(features, table, groups=["sex"], methods=["reweigh"], measures=["auroc"], min_size=10**6)
    start = row(found, "sex", "unmitigated", "auroc")
    assert start["status"] == "not estimable"
    assert start["reason"].startswith("no estimable group (F: fewer than 1000000 images")
    assert math.isnan(start["before"])
    assert found.achievable["status"].unique().tolist() == ["not estimable"]


# -- images without a group ---------------------------------------------------------------------------


def test_everything_is_read_on_the_images_whose_group_is_known(data, monkeypatch):
    features, table = data
    table = table.copy()
    blank = np.arange(len(table)) % 7 == 0
    table["sex"] = table["sex"].where(~blank)
    units, arms = [], []

    def spied(*arguments, **more):
        units.append(arguments[0])
        arms.extend(fitted_arms.fitted_arms(*arguments, **more))
        return arms

    monkeypatch.setattr("frame.mitigation.comparison.fitted_arms", spied)
    found = compared(features, table, groups=["sex"], missing="drop")
    for arm in arms:
        for own, rows in ((arm.validation, units[0].validation), (arm.test, units[0].test)):
            assert 0 < rows.known.sum() < len(rows)
            assert own.ranks.shape == own.probabilities.shape == (rows.known.sum(),)
    test, scores = (table["split"] == "test").to_numpy(), head_of(features, table)
    judged = test & ~blank
    start = row(found, "sex", "unmitigated", "tpr")
    assert start["auroc"] == pytest.approx(roc_auc_score(table["finding"][judged], scores[judged]), abs=1e-6)
    held = (table["split"] == "validation").to_numpy() & ~blank & (table["finding"] == 1).to_numpy()
    assert start["threshold"] == pytest.approx(np.percentile(scores[held], 20), abs=1e-4)
    assert start["n_without_group"] == int((blank & test).sum())
    assert start["n_images"] == int(judged.sum())
    assert start["n_positive"] == table["finding"][judged].sum()
    assert start["n_patients"] == table["patient"][judged].nunique()
    assert start["n_train_known"] == int((~blank & (table["split"] == "train")).sum())
    assert found.audits[0].n_missing == int((blank & test).sum())
    (note,) = [note for note in found.notes if "keep its score" in note]
    left_out = [int((blank & (table["split"] == split)).sum()) for split in ("validation", "test")]
    assert f"so {left_out[0]} images of validation and {left_out[1]} images of test stay out" in note
    # The head refitted on images with a known group is shown beside the unmitigated one.
    refit = head_of(features, table, ((table["split"] == "train") & ~blank).to_numpy())
    shown = row(found, "sex", REFITTED, "auroc")
    assert shown["auroc"] == pytest.approx(roc_auc_score(table["finding"][judged], refit[judged]), abs=1e-6)
    assert math.isnan(shown["change_q"])
    assert "a control, no method" in found.achievable["excluded"].iloc[0]


def test_another_level_of_the_scores_is_no_change_where_groups_are_unknown():
    """The balanced head's log-odds lie 2.4 higher at a prevalence of 8 %: no change in what they rank."""
    rng = np.random.default_rng(0)
    n = 6000
    finding = rng.random(n) < 0.08
    sex = rng.choice(["F", "M"], n).astype(object)
    sex[rng.random(n) < 0.4] = None
    features = rng.normal(size=(n, 4)) + finding[:, None] * [1.2, 0, 0, 0]
    split = np.repeat(["train", "validation", "test"], [3000, 1000, 2000])
    found = compare_methods(features, finding, sex, split, methods=["reweigh"], missing="drop", resamples=100)
    line = row(found, "group", "reweigh", "tpr")
    assert line["auroc_change"] == pytest.approx(0, abs=0.002)
    start = row(found, "group", "unmitigated", "tpr")
    assert line["validation_auroc"] == pytest.approx(start["validation_auroc"], abs=0.005)


def test_without_unknown_groups_it_is_the_same_as_without_the_images(data):
    """Judged as if the images without a group were not there: the same head, since all train."""
    features, table = data
    table = table.copy()
    blank = (np.arange(len(table)) % 7 == 0) & (table["split"] != "train").to_numpy()
    table["sex"] = table["sex"].where(~blank)
    kept = compared(features, table, groups=["sex"], missing="drop").table
    alone = compared(features[~blank], table[~blank].reset_index(drop=True), groups=["sex"]).table
    pd.testing.assert_frame_equal(
        kept.drop(columns="n_without_group"), alone.drop(columns="n_without_group"), rtol=1e-9
    )


@pytest.mark.parametrize(("split", "label", "what"), [("validation", 1, "positive"), ("test", 0, "negative")])
def test_known_groups_of_one_class_are_refused(data, split, label, what):
    features, table = data
    table = table.copy()
    gone = (table["split"] == split) & (table["finding"] == label)
    table["sex"] = table["sex"].where(~gone)
    with pytest.raises(InputError, match=f"column 'sex' is blank for every {what} {split} image"):
        compared(features, table, groups=["sex"], missing="drop")


def test_without_such_images_no_refit_is_shown(found):
    assert REFITTED not in set(found.table["method"])


# -- methods that fail --------------------------------------------------------------------------------


def outcomes(name, unit):
    start = unit.unmitigated
    if name == "reweigh":
        return not_fitted("one group has no image")
    if name == "platt":
        flat = [Scores(np.zeros(len(s.ranks)), np.full(len(s.ranks), 0.3)) for s in start]
        return Outcome(*flat, status="degenerate", reason="it is constant")
    if name == "leace":
        wrong = Scores(np.full(len(start[1].ranks), np.nan), start[1].probabilities)
        return Outcome(start[0], wrong)
    if name == "inlp":
        short = Scores(start[1].ranks[:-1], start[1].probabilities[:-1])
        return Outcome(start[0], short)
    if name == "resample":
        return Outcome(start[0], Scores(start[1].ranks, start[1].probabilities + 1.0))
    return Outcome(*start, flags=("a flag",), groups=({"group": "F", "action": "kept", "reason": "few"},))


def test_what_fails_leaves_a_row_that_says_so(data, monkeypatch):
    monkeypatch.setattr(fitted_arms, "fit_method", outcomes)
    methods = ["reweigh", "platt", "leace", "inlp", "resample", "threshold_shift"]
    found = compared(*data, groups=["sex"], methods=methods, measures=["auroc", "ece"])
    n_test = int(found.splits["n_images"].iloc[2])
    reasons = {m: row(found, "sex", m, "auroc")["reason"] for m in methods}
    assert reasons == {
        "reweigh": "one group has no image",
        "platt": "it is constant",
        "leace": f"{n_test:,} of its test ranks are not finite",
        "inlp": f"its test ranks have shape ({n_test - 1},), not ({n_test},)",
        "resample": "its test probabilities leave the range from 0 to 1",
        "threshold_shift": "",
    }
    statuses = {m: row(found, "sex", m, "auroc")["status"] for m in methods}
    assert statuses["platt"] == "degenerate"
    assert [statuses[m] for m in ("reweigh", "leace", "inlp", "resample")] == ["not fitted"] * 4
    degenerate = row(found, "sex", "platt", "auroc")
    assert degenerate["after"] == 0.0  # shown
    assert degenerate["changes"] is pd.NA  # and nothing claimed from it
    assert math.isnan(degenerate["change_q"])
    assert degenerate["exceeds"] is pd.NA
    paper = found.achievable[found.achievable["chosen_on"] == "test"]
    assert paper["method"].tolist() == ["unmitigated"] * 2
    assert "platt: degenerate: it is constant" in paper["excluded"].iloc[0]
    assert "reweigh: not fitted: one group has no image" in paper["excluded"].iloc[0]
    kept = row(found, "sex", "threshold_shift", "auroc")
    assert "a flag" in kept["flags"]
    groups = found.by_group[found.by_group["method"] == "threshold_shift"]
    assert groups[groups["group"] == "F"]["action"].unique().tolist() == ["kept"]
    assert "Reweighing was not fitted: one group has no image." in repr(found)
    assert "no improvement is claimed from its scores." in repr(found)


def test_a_head_that_cannot_be_fitted_leaves_rows_that_say_so(data, monkeypatch):
    """scikit-learn refuses a network for, say, a class with one image: no zeros that look like scores."""

    def refused(features, labels, *, kind, **_):
        return Head(kind, "not fitted", "scikit-learn refused the rows: too few", {}, None)

    monkeypatch.setattr(fitted_arms, "fit_head", refused)
    features, table = data
    table = table.assign(sex=table["sex"].where(np.arange(len(table)) % 7 != 0))
    found = compared(features, table, groups=["sex"], head="mlp", measures=["auroc", "tpr"], missing="drop")
    table = found.table[found.table["method"] != "achievable"]
    start = table["method"] == "unmitigated"
    assert set(table[start]["status"]) == {"not estimable"}
    assert set(table[~start]["status"]) == {"not fitted"}
    why = "the disease head could not be fitted: scikit-learn refused the rows: too few"
    assert set(table["reason"]) == {why}
    assert table[["before", "after", "auroc", "exceedance"]].isna().all(axis=None)
    assert found.achievable["status"].unique().tolist() == ["not estimable"]
    assert found.achievable["method"].unique().tolist() == [""]
    assert why in repr(found)
    assert why in report_text(found, suppress_below=10)
    assert f"is not estimable: {why}." in measure_words(found, "sex", "auroc")[0]


def test_a_refit_with_one_class_has_no_scores(data):
    """Where every training image of known group is negative, the refitted head would say 0 for all."""
    features, table = data
    table = table.copy()
    gone = (table["split"] == "train") & (table["finding"] == 1)
    table["sex"] = table["sex"].where(~gone)
    found = compared(features, table, groups=["sex"], missing="drop", measures=["auroc"])
    line = row(found, "sex", REFITTED, "auroc")
    assert line["status"] == "not fitted"
    assert line["reason"].startswith("the disease head could not be fitted: all ")
    assert math.isnan(line["after"])


def test_a_constant_head_is_degenerate_and_nothing_is_claimed(data):
    features, table = data
    found = compared(np.ones_like(features), table, groups=["sex"], measures=["auroc"])
    n = int(found.splits["n_images"].iloc[1])
    table = found.table[found.table["method"] != "achievable"]
    for method, reason in {
        "unmitigated": f"all {n} validation images have one score",
        "reweigh": f"all {n} validation images have one score",
        "platt": "no group could be calibrated, so every group kept the identity",
    }.items():
        line = row(found, "sex", method, "auroc")
        assert line["status"] == "degenerate"
        assert line["reason"] == reason
    assert table["exceeds"].isna().all()
    assert table["changes"].isna().all()
    assert found.achievable["method"].unique().tolist() == [""]


@pytest.mark.parametrize("kind", ["linear", "mlp"])
def test_class_weights_of_the_head_and_its_refits(data, kind):
    """Of a network none under the paper's weights and balanced under equal ones; of a linear one balanced."""
    features, table = data
    train, test = ((table["split"] == name).to_numpy() for name in ("train", "test"))
    part = table[test].reset_index(drop=True)
    shown = {}
    for weighting in ("paper", "equal"):
        found = compared(
            features,
            table,
            ["sex"],
            head=kind,
            weighting=weighting,
            methods=["leace", "optimal_transport"],
            measures=["ece"],
        )
        balanced = kind == "linear" or weighting == "equal"
        head = fit_head(
            features[train], table["finding"][train], kind=kind, class_weight="balanced" if balanced else None
        )
        chances = head.probability(features[test])
        each = [ece(own["finding"].to_numpy(), chances[own.index]) for _, own in part.groupby("sex")]
        start = row(found, "sex", "unmitigated", "ece")
        assert start["after"] == pytest.approx(max(each) - min(each), abs=1e-9)
        shown[weighting] = [row(found, "sex", m, "ece")["worst_value"] for m in found.methods]
    for one, other in zip(*shown.values(), strict=True):
        assert bool(one == other) is (kind == "linear")


def test_everything_failing_is_still_a_result(data, monkeypatch):
    monkeypatch.setattr(fitted_arms, "fit_method", lambda *_: not_fitted("no reason"))
    found = compared(*data, groups=["sex"], measures=["auroc"])
    assert (found.table["change_q"].notna()).sum() == 0
    assert found.achievable["method"].tolist() == ["unmitigated"] * 2
    assert repr(found).splitlines()[1] == (
        "No change of a difference (3 methods, 1 attribute, 1 measure) could be tested."
    )


def test_a_group_of_three_positives_breaks_nothing():
    """397 images of one group and 3 of another, all positive, in every split: every method has its rows."""
    rng = np.random.default_rng(0)
    groups = np.tile(np.r_[["b"] * 3, ["a"] * 397], 3)
    labels = np.where(groups == "b", True, rng.random(1200) < 0.4)
    features = rng.normal(size=(1200, 4)) + labels[:, None] * [1.0, 0, 0, 0]
    split = np.repeat(["train", "validation", "test"], 400)
    found = compare_methods(features, labels, groups, split, resamples=100, min_size=1)
    assert len(found.table) == 4 * (1 + 9) + 8
    status = found.methods_run.set_index("method")["status"].to_dict()
    assert status.pop("exponentiated_gradient") == "degenerate"
    # Ten projections leave nothing of four columns: one score for all, from which nothing is claimed.
    assert status.pop("inlp") == "degenerate"
    assert set(status.values()) == {"ok"}
    lines = found.table[found.table["method"] == "inlp"]
    assert set(lines["reason"]) == {"all 400 validation images have one score"}
    assert lines["change_q"].isna().all()
    assert lines["exceeds"].isna().all()
    assert found.achievable["excluded"].str.contains("inlp: degenerate: all 400 validation images").all()
    aurocs = found.table[(found.table["measure"] == "auroc") & (found.table["method"] != "achievable")]
    assert aurocs["after"].isna().all()
    reasons = set(aurocs["reason"]) - set(found.methods_run["reason"])
    assert reasons == {"one estimable group, and a difference needs two (b: 0 negatives)"}
    assert not found.table["changes"].fillna(False).any()
    groups = found.by_group[(found.by_group["group"] == "b") & (found.by_group["measure"] == "tpr")]
    kept = groups.set_index("method").loc["platt"]
    assert (kept["n_images"], kept["n_positive"], kept["action"]) == (3, 3, "kept the identity")
    assert kept["action_reason"] != ""
    assert groups.set_index("method").loc["threshold_shift", "action"].startswith("shifted by")


# -- what was asked -----------------------------------------------------------------------------------

BAD = {
    "method": ({"methods": ["leace", "nothing"]}, "method is 'nothing'; allowed are resample, reweigh,"),
    "methods_twice": ({"methods": ["leace", "leace"]}, "method 'leace' is named 2 times; name it once."),
    "no_methods": ({"methods": []}, "methods is empty; give at least one of resample,"),
    "measure": ({"measures": ["auc"]}, "measure 'auc' is called 'auroc' here"),
    "no_measures": ({"measures": []}, "measures is empty; name at least one, for example 'auroc'."),
    "measures_twice": ({"measures": ["ece", "ece"]}, "measure 'ece' is named 2 times; name it once."),
    "weighting": ({"weighting": "both"}, "weighting is 'both'; allowed are 'paper', 'equal'."),
    "head": ({"head": "tree"}, "head is 'tree'; allowed are 'linear', 'mlp'."),
    "threshold": (
        {"threshold": 0.5},
        "threshold is 0.5; every method has a scale of its own, so give a rule: 'sensitivity_0.80' (any "
        "share in its place) or 'youden'.",
    ),
    "resamples": ({"resamples": 50}, "resamples is 50; give a whole number of at least 100"),
    "seed": ({"seed": -1}, "seed is -1; give a whole number of at least 0"),
    "min_size": ({"min_size": 0}, "min_size is 0"),
    "cap": ({"cap": 0}, "cap is 0; give a whole number of at least 1."),
    "alpha": ({"alpha": 0}, "alpha is 0; it must be a number between 0 and 1."),
    "tolerance": ({"tolerance": 2}, "tolerance is 2; it must be a number from 0 to 1."),
    "missing": ({"missing": "ignore"}, "missing is 'ignore'; allowed are 'error', 'group', 'drop'."),
}


@pytest.mark.parametrize("case", BAD)
def test_mistakes_are_sentences(case, data):
    settings, sentence = BAD[case]
    with pytest.raises(InputError) as raised:
        compared(*data, **settings)
    assert str(raised.value).startswith(sentence)


def test_progress_ends_at_its_total(data):
    steps = []
    compared(
        *data, groups=["sex"], methods=["platt"], measures=["auroc"],
        progress=lambda done, total: steps.append((done, total)),
    )  # fmt: skip
    assert [done for done, _ in steps] == list(range(1, len(steps) + 1))
    assert steps[-1][0] == steps[-1][1]
